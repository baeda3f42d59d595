//! Reading the engine: brought up to the store's logs before each read, whichever engine it is (`connection`).
//!
//! ```text
//! AsIs      what stands in the engine, without a look at the logs: enough to know that something is there
//! Synced    all that is visible to everybody
//! All(id)   that, what this handle has not flushed, and what a transaction holds
//! ```
//!
//! Invariants:
//! * a read of `Synced` or `All` begins only after the engine holds every commit that the store's logs
//!   held when the read was asked for, and reads one state to its end;
//! * what is not visible to everybody is applied within a transaction of the engine that is rolled back;
//! * nothing is made on disk before the store has a commit.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_journal::feed::{Commit, OWN_LOG};
use fieldstone_journal::follow::{Followed, covers, is_ahead};
use fieldstone_journal::instant::{Cursors, Instant, OwnPart, OwnRecords, ReadOwn};

use super::connection::{Connection, Patience};
use super::inner::Inner;
use crate::engine::{Index, PointSource, UserNames, is_busy};
use fieldstone_journal::Session;
use fieldstone_journal::participant::FlushParticipant;

/// How often a read follows logs that move on, or an engine that is made again under it.
const ROUNDS: usize = 64;

/// What a read sees.
#[derive(Debug, Clone, Copy)]
pub enum Visibility<'a> {
    /// What stands in the engine.
    AsIs,
    /// All that is visible to everybody.
    Synced,
    /// That, and what this session has not flushed, with what its transaction has prepared.
    All(&'a Session),
}

/// Number that stands for the commit in which what is outside of transactions will be flushed.
pub const OWN: u64 = 1;
/// The same for a transaction.
pub const OWN_TRANSACTION: u64 = 2;

/// The sight of a read: the content of the logs and what its session has not flushed, of one instant.
#[derive(Debug, Clone)]
pub struct ConsistentView {
    /// The instant.
    pub seen: Instant,
    /// Whether nobody can give a newer feed.
    pub newest: bool,
}

impl ConsistentView {
    /// Whether the session has something that is not flushed.
    pub fn has_own(&self) -> bool {
        self.seen.pending.records() > 0
    }
}

impl Inner {
    /// Lets `read` look at the catalog; it is called again where the engine broke under it.
    pub fn look<T>(
        &self,
        visibility: Visibility<'_>,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        self.look_from(self.consistent_view(visibility)?, visibility, read)
    }

    /// As [`look`](Inner::look) at a view that was taken before.
    pub fn look_from<T>(
        &self,
        view: ConsistentView,
        visibility: Visibility<'_>,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        if let Visibility::All(session) = visibility {
            session.check(&*self.env.clock)?;
        }
        self.overlays().drop_idle(self.env.clock.monotonic());
        let read = &mut self.with_sources(read);
        self.with_consistent_view(view, visibility, &mut |view| {
            if let Visibility::All(session) = visibility
                && (session.transaction().is_some() || view.has_own())
                && view.seen.held.is_none()
                && let Some(outcome) = self.look_at_copy(view, session, read)?
            {
                return Ok(outcome);
            }
            let place = self.location_for(&view.seen.heads)?;
            self.with_engine(&place, &mut |engine| self.look_at(engine, visibility, view, read))
        })
    }

    /// As [`look`](Inner::look) at what all may see, but on the shared engine alone, which others may read
    /// and write meanwhile. An error of which `is_busy` says so: it is not free.
    pub fn look_shared<T>(
        &self,
        view: ConsistentView,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        let read = &mut self.with_sources(read);
        self.with_consistent_view(view, Visibility::Synced, &mut |view| {
            let place = self.location_for(&view.seen.heads)?;
            let work = &mut |engine: &mut Connection| self.look_at(engine, Visibility::Synced, view, read);
            self.with(&place, Patience::Full, work)
        })
    }

    /// Reads an index that knows where meshes lie, and the names of users.
    fn with_sources<T>(
        &self,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> impl FnMut(&mut Index) -> Result<T> {
        let points: Arc<dyn PointSource> = self.fields.clone();
        let identity = self.env.identity.clone();
        let names: UserNames = Arc::new(move |user| identity.user_name(user));
        move |index| {
            index.set_points(points.clone());
            index.set_user_names(names.clone());
            read(index)
        }
    }

    /// Does something with a view; with a later one where it gives nothing, because the engine has applied
    /// more than that, or what was not flushed is by now.
    fn with_consistent_view<T>(
        &self,
        mut view: ConsistentView,
        visibility: Visibility<'_>,
        work: &mut dyn FnMut(&ConsistentView) -> Result<Option<T>>,
    ) -> Result<T> {
        for _ in 0..ROUNDS {
            if let Some(value) = work(&view)? {
                return Ok(value);
            }
            let (_, newest) = self.newer(&view.seen.feed)?;
            view = ConsistentView { newest, ..self.view_with(visibility, ReadOwn::AtOnce)? };
        }
        Err(remade())
    }

    fn look_at<T>(
        &self,
        engine: &mut Connection,
        visibility: Visibility<'_>,
        view: &ConsistentView,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<Option<T>> {
        let patience = engine.patience;
        let ConsistentView { seen: Instant { feed, heads, .. }, newest } = view;
        let index = engine.index()?;
        if matches!(visibility, Visibility::AsIs) {
            return reading(index, read).map(Some);
        }
        for _ in 0..ROUNDS {
            if self.follow(index, feed, *newest, patience)? == Followed::Behind {
                return Ok(None);
            }
            let overlaid = match visibility {
                Visibility::All(session) => {
                    let Some(own) = self.unflushed(view, session) else { return Ok(None) };
                    let records = own.end.records() as u64;
                    let commits = self.own_commits(own, session);
                    let laid = self.overlay(index, feed, session, &commits, patience)?;
                    let rows = index.attributes_applied() + records;
                    self.overlays().note_relaid(session.key(), if laid { rows } else { 0 });
                    laid
                }
                _ => false,
            };
            if !overlaid {
                index.begin_read()?;
            }
            // Somebody may have begun to make the engine anew since we followed.
            let marks = index.watermarks();
            if marks.as_ref().is_ok_and(|marks| !covers(marks, heads)) {
                index.end_read()?;
                continue;
            }
            // Or applied what this handle had not flushed when the view was taken: it is not shown twice.
            if overlaid && !newest && marks.as_ref().is_ok_and(|marks| is_ahead(marks, heads)) {
                index.end_read()?;
                return Ok(None);
            }
            let outcome = marks.and_then(|_| read(index));
            let ended = index.end_read();
            return outcome.and_then(|value| ended.map(|()| Some(value)));
        }
        Err(remade())
    }

    /// The content of the logs and what the session has not flushed, of one instant. The logs are looked at once.
    pub fn consistent_view(&self, visibility: Visibility<'_>) -> Result<ConsistentView> {
        self.view_with(visibility, ReadOwn::Later)
    }

    fn view_with(&self, visibility: Visibility<'_>, held: ReadOwn) -> Result<ConsistentView> {
        if let Visibility::All(session) = visibility {
            self.hand_over(&session.within(None));
            if session.transaction().is_some() {
                self.hand_over(session);
            }
            for _ in 0..ROUNDS {
                if let Some(seen) = Instant::now(&self.journal, session, held)? {
                    return Ok(ConsistentView { seen, newest: false });
                }
            }
        }
        Ok(ConsistentView { seen: Instant::of(self.journal.feed()?), newest: false })
    }

    /// Records of a view that its session has not flushed; `None` where some of it is flushed or gone by now.
    pub fn unflushed(&self, view: &ConsistentView, session: &Session) -> Option<OwnRecords> {
        match &view.seen.held {
            None => OwnRecords::between(&self.journal, Cursors::default(), view.seen.pending, session),
            held => held.clone(),
        }
    }

    /// Records that are not flushed, as commits of the log that nobody has.
    pub fn own_commits(&self, own: OwnRecords, session: &Session) -> Vec<Commit> {
        let commit = |part: OwnPart| {
            self.overlays().note(part.records.len());
            Commit {
                writer: OWN_LOG,
                owner: self.user(session),
                sequence: if part.within { OWN_TRANSACTION } else { OWN },
                stamp: u64::MAX,
                time: 0,
                transaction: None,
                side: part.records,
            }
        };
        own.parts.into_iter().map(commit).collect()
    }

    /// Applies what is in the logs if nobody else does so at this moment; waits for nobody.
    pub fn catch_up(&self) -> Result<bool> {
        let (mut feed, mut newest) = (self.journal.feed()?, false);
        for _ in 0..ROUNDS {
            let place = self.location_for(&feed.heads())?;
            let work =
                &mut |engine: &mut Connection| self.follow(engine.index()?, &feed, newest, Patience::None);
            match self.with(&place, Patience::None, work) {
                Err(e) if is_busy(&e) => return Ok(false),
                Ok(Followed::Behind) => (feed, newest) = self.newer(&feed)?,
                outcome => return outcome.map(|followed| followed == Followed::Done),
            }
        }
        Ok(false)
    }
}

fn remade() -> Error {
    Code::EngineBusy.error("the catalog's engine is made anew again and again").with_hint("try again")
}

/// One read of one state.
fn reading<T>(index: &mut Index, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
    index.begin_read()?;
    let outcome = read(index);
    let ended = index.end_read();
    outcome.and_then(|value| ended.map(|()| value))
}
