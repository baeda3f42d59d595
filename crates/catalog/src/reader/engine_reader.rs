//! Reads the engine: before each read, brings it up to the store's logs, whichever engine it is
//! (`connection`).
//!
//! Invariants:
//! * a read of `Synced` or `All` begins only after the engine holds every commit that the store's logs held
//!   at the request, and sees one state to its end;
//! * content that is not visible to everybody is applied within a transaction of the engine that is rolled
//!   back;
//! * nothing is created on disk before the store has a commit.

use std::sync::Arc;

use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_journal::beside::Beside;
use fieldstone_journal::follow::Followed;
use fieldstone_journal::instant::{Instant, ReadOwn};

use super::connection::{Connection, Connections, Patience};
use super::consistent_read::{ConsistentRead, Visibility, own_commits};
use super::following::EngineFollower;
use super::location::EngineLocation;
use super::open_store::OpenStore;
use super::overlay::Overlays;
use crate::engine::{Index, PointSource, Tables, UserNames};
use crate::pending::Pending;
use crate::query::Query;

/// How often a read follows logs that grow, or starts again because the engine is being rebuilt.
pub const ROUNDS: usize = 64;

/// Reads the engines of one process.
#[derive(Debug)]
pub struct EngineReader {
    pub store: Arc<OpenStore>,
    pub pending: Pending,
    pub connections: Arc<Connections>,
    pub follower: EngineFollower,
    pub overlays: Overlays,
    /// The thread that applies flushed records.
    pub(super) applying: Beside,
    /// An error of that thread that no read has returned yet.
    pub(super) apply_error: Mutex<Option<Error>>,
}

impl EngineReader {
    pub fn new(store: Arc<OpenStore>) -> EngineReader {
        let connections = Arc::new(Connections::new(store.clone()));
        EngineReader {
            pending: Pending::new(store.journal.clone()),
            follower: EngineFollower { store: store.clone(), connections: connections.clone() },
            connections,
            store,
            overlays: Overlays::default(),
            applying: Beside::default(),
            apply_error: Mutex::default(),
        }
    }

    /// Removes the shared engine, or builds it again where it is on a server, and says which server that is.
    pub fn renew(&self) -> Result<Option<String>> {
        self.join_applying();
        self.overlays.clear();
        let feed = self.store.journal.looks().feed()?;
        let place = self.connections.location_for(&feed.heads())?;
        match &place {
            EngineLocation::Postgres(_) => {
                let mut work =
                    |engine: &mut Connection| self.follower.replay(engine.index()?, &feed).map(drop);
                self.connections.with(&place, Patience::Full, &mut work)?;
                Ok(Some(place.to_string()))
            }
            _ => self.connections.discard(&place).map(|()| None),
        }
    }

    /// Answers a query from one state of everything that it may see.
    pub fn ask<T>(&self, query: &Query, answer: impl Fn(&mut dyn Tables) -> Result<T>) -> Result<T> {
        let _span = tracing::debug_span!("query", streamed = false).entered();
        self.store.journal.check_there()?;
        self.raise_apply_error()?;
        self.look(Visibility::All(&query.session), &mut |index| answer(index))
    }

    /// Calls `read` with the catalog; calls it again if the engine broke during the call.
    pub fn look<T>(
        &self,
        visibility: Visibility<'_>,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        self.look_from(self.consistent_read(visibility)?, visibility, read)
    }

    /// Like [`look`](EngineReader::look), at a consistent read that was taken before.
    pub fn look_from<T>(
        &self,
        moment: ConsistentRead,
        visibility: Visibility<'_>,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        if let Visibility::All(session) = visibility {
            session.check(&*self.store.env.clock)?;
        }
        self.overlays.drop_idle(self.store.env.clock.monotonic());
        let read = &mut self.with_sources(read);
        self.with_consistent_read(moment, visibility, &mut |moment| {
            if let Visibility::All(session) = visibility
                && (session.transaction().is_some() || moment.has_own())
                && moment.seen.held.is_none()
                && let Some(outcome) = self.overlays.look_at(&self.follower, moment, session, read)?
            {
                return Ok(outcome);
            }
            let place = self.connections.location_for(&moment.seen.heads)?;
            self.connections.with_engine(&place, &mut |engine| self.look_at(engine, visibility, moment, read))
        })
    }

    /// Like [`look`](EngineReader::look) at content that everybody may see, but only on the shared engine,
    /// which others may read and write in between. If it is not free, the error satisfies `is_busy`.
    pub fn look_shared<T>(
        &self,
        moment: ConsistentRead,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        let read = &mut self.with_sources(read);
        self.with_consistent_read(moment, Visibility::Synced, &mut |moment| {
            let place = self.connections.location_for(&moment.seen.heads)?;
            let work = &mut |engine: &mut Connection| self.look_at(engine, Visibility::Synced, moment, read);
            self.connections.with(&place, Patience::Full, work)
        })
    }

    /// Reads an index that has the source of points, and the names of users.
    fn with_sources<T>(
        &self,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> impl FnMut(&mut Index) -> Result<T> {
        let points: Arc<dyn PointSource> = self.store.fields.clone();
        let identity = self.store.env.identity.clone();
        let names: UserNames = Arc::new(move |user| identity.user_name(user));
        move |index| {
            index.set_points(points.clone());
            index.set_user_names(names.clone());
            read(index)
        }
    }

    /// Works with a consistent read. If `work` returns nothing, tries a later consistent read: the engine has applied more than the
    /// read holds, or its unflushed records are flushed by now.
    fn with_consistent_read<T>(
        &self,
        mut moment: ConsistentRead,
        visibility: Visibility<'_>,
        work: &mut dyn FnMut(&ConsistentRead) -> Result<Option<T>>,
    ) -> Result<T> {
        for _ in 0..ROUNDS {
            if let Some(value) = work(&moment)? {
                return Ok(value);
            }
            let (_, mut newest) = self.store.newer(&moment.seen.feed)?;
            // Only an engine that is ahead of everything there is has applied what was lost; a read that came too late for
            // its unflushed records says nothing of the engine.
            if let Visibility::All(session) = visibility {
                newest &= moment.unflushed(&self.store.journal, session).is_some();
            }
            moment = ConsistentRead { newest, ..self.consistent_read_with(visibility, ReadOwn::AtOnce)? };
        }
        Err(remade())
    }

    fn look_at<T>(
        &self,
        engine: &mut Connection,
        visibility: Visibility<'_>,
        moment: &ConsistentRead,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<Option<T>> {
        let patience = engine.patience;
        let ConsistentRead { seen: Instant { feed, heads, .. }, newest } = moment;
        let index = engine.index()?;
        if matches!(visibility, Visibility::AsIs) {
            return reading(index, read).map(Some);
        }
        for _ in 0..ROUNDS {
            if self.follower.follow(index, feed, *newest, patience)? == Followed::Behind {
                return Ok(None);
            }
            let overlaid = match visibility {
                Visibility::All(session) => {
                    // The records were flushed in the meantime: the read must be taken again.
                    let Some(own) = moment.unflushed(&self.store.journal, session) else { return Ok(None) };
                    let records = own.end.records() as u64;
                    self.overlays.note(&own);
                    let commits = own_commits(own, self.store.user(session));
                    let laid = self.follower.overlay(index, feed, session, &commits, patience)?;
                    let rows = index.attributes_applied() + records;
                    self.overlays.note_relaid(session.key(), if laid { rows } else { 0 });
                    laid
                }
                _ => false,
            };
            if !overlaid {
                index.begin_read()?;
            }
            // Another process may have begun to rebuild the engine since this one followed the logs.
            let marks = index.watermarks();
            if marks.as_ref().is_ok_and(|marks| !marks.covers(heads)) {
                index.end_read()?;
                continue;
            }
            // Or it applied records that were unflushed when the read was taken: do not show them twice.
            if overlaid && !newest && marks.as_ref().is_ok_and(|marks| feed.is_behind(marks)) {
                index.end_read()?;
                return Ok(None);
            }
            let outcome = marks.and_then(|_| read(index));
            let ended = index.end_read();
            return outcome.and_then(|value| ended.map(|()| Some(value)));
        }
        Err(remade())
    }

    /// The content of the logs and the session's unflushed records, of one instant. Looks at the logs once.
    pub fn consistent_read(&self, visibility: Visibility<'_>) -> Result<ConsistentRead> {
        self.consistent_read_with(visibility, ReadOwn::Later)
    }

    fn consistent_read_with(&self, visibility: Visibility<'_>, held: ReadOwn) -> Result<ConsistentRead> {
        if let Visibility::All(session) = visibility {
            // Records gathered outside of the transaction belong to the read, too.
            self.pending.hand_over(&session.within(None));
            if session.transaction().is_some() {
                self.pending.hand_over(session);
            }
            for _ in 0..ROUNDS {
                if let Some(seen) = Instant::now(&self.store.journal, session, held)? {
                    return Ok(ConsistentRead { seen, newest: false });
                }
            }
        }
        Ok(ConsistentRead { seen: Instant::of(self.store.journal.looks().feed()?), newest: false })
    }
}

fn remade() -> Error {
    Code::EngineBusy
        .error("the catalog's engine was rebuilt again and again during the read")
        .with_hint("try again")
}

/// One read of one state.
fn reading<T>(index: &mut Index, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
    index.begin_read()?;
    let outcome = read(index);
    let ended = index.end_read();
    outcome.and_then(|value| ended.map(|()| value))
}
