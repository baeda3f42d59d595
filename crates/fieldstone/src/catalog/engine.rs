//! The engine as this process has it: opened when it is first needed, brought up to the store's logs
//! before each read, and made again when its file is damaged or gone.
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

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fieldstone_catalog::engine::{CommitRef, Database, Flow, Index, Postgres, Sqlite, Wait, schema};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_store::api::{Feed, SideRecord};

use super::inner::{Inner, lock};
use super::place::{self, EnginePlace};

/// Connections that are kept while nobody reads.
const IDLE: usize = 4;
/// How often a read follows logs that move on, or an engine that is made again under it.
const ROUNDS: usize = 64;

/// What a read sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What stands in the engine.
    AsIs,
    /// All that is visible to everybody.
    Synced,
    /// That, and what this handle and the transaction hold.
    All(Option<Id>),
}

/// The engines of one process.
#[derive(Debug, Default)]
pub struct Engines {
    place: Mutex<Option<EnginePlace>>,
    /// Connections to the file or the server that nobody uses.
    idle: Mutex<Vec<Engine>>,
    /// The engine in memory: there is one, because it holds the data.
    memory: Mutex<Option<Engine>>,
}

/// Number that stands for the commit in which what is outside of transactions will be flushed.
pub const OWN: u64 = 1;
/// The same for a transaction.
pub const OWN_TRANSACTION: u64 = 2;

/// What this handle has not flushed.
#[derive(Debug, Default)]
struct Own {
    user: u32,
    all: Vec<SideRecord>,
    transaction: Vec<SideRecord>,
}

impl Own {
    /// As commits of the log that nobody has.
    fn commits(&self) -> Vec<CommitRef<'_>> {
        let sides = [(OWN, &self.all[..]), (OWN_TRANSACTION, &self.transaction[..])];
        let commit = |(sequence, side)| CommitRef {
            writer: Id::NONE,
            user: self.user,
            sequence,
            stamp: u64::MAX,
            transaction: None,
            side,
        };
        sides.into_iter().filter(|(_, side)| !side.is_empty()).map(commit).collect()
    }
}

/// One connection.
#[derive(Debug)]
pub struct Engine {
    index: Option<Index>,
    /// The file, and which one it was when it was opened.
    file: Option<(PathBuf, Option<u64>)>,
    /// The process that opened it.
    process: u32,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // In a forked child the connection is its parent's: to close it could end the parent's, too.
        if std::process::id() != self.process {
            std::mem::forget(self.index.take());
        }
    }
}

impl Engine {
    fn of(database: Box<dyn Database>, file: Option<PathBuf>, store: Id) -> Result<Engine> {
        let file = file.map(|path| (path.clone(), place::inode_of(&path)));
        let index = Index::open(database, store)?;
        Ok(Engine { index: Some(index), file, process: std::process::id() })
    }

    /// The index.
    pub fn index(&mut self) -> Result<&mut Index> {
        self.index.as_mut().ok_or_else(|| Error::internal("a catalog's engine was closed while it was used"))
    }

    /// Whether its file is still the one under the name.
    fn is_current(&self) -> bool {
        self.file.as_ref().is_none_or(|(path, inode)| place::inode_of(path) == *inode)
    }
}

/// Whether a file has tables of a later release.
fn newer_layout(database: &mut Sqlite) -> Result<bool> {
    let mut newer = false;
    database.begin(false, Wait::Yes)?;
    let read = database.query("SELECT value FROM meta WHERE name = 'layout'", &[], &mut |row| {
        let numbers = (row[0].text()?.parse::<u64>(), schema::LAYOUT.parse::<u64>());
        newer = matches!(numbers, (Ok(theirs), Ok(ours)) if theirs > ours);
        Ok(Flow::Stop)
    });
    database.rollback()?;
    match read {
        Err(e) if e.kind() == ErrorKind::Corrupt => Err(e),
        // A file without tables.
        _ => Ok(newer),
    }
}

/// Why a connection's work was not done.
struct Failed {
    error: Error,
    /// Whether it may go better with another connection.
    again: bool,
}

/// Whether a connection is good for more after an error.
fn keeps(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::Unavailable)
}

impl Engines {
    /// Keeps a connection for whoever reads next.
    fn keep(&self, engine: Engine) {
        let mut idle = lock(&self.idle);
        if idle.len() < IDLE {
            idle.push(engine);
        }
    }
}

/// Opens a file. Conflict where its tables are of a later release.
fn open_file(path: &Path, store: Id) -> Result<Engine> {
    let inode;
    let outcome = {
        let _guard = place::prepare(path)?;
        inode = place::inode_of(path);
        Sqlite::open(path).and_then(|mut database| match newer_layout(&mut database)? {
            true => Err(Error::conflict("its tables are of a later release")),
            false => Engine::of(Box::new(database), Some(path.to_owned()), store),
        })
    };
    let named = |e: Error| e.context(format!("the catalog's engine {}", path.display()));
    match outcome {
        Err(e) if e.kind() == ErrorKind::Corrupt => {
            place::set_aside(path, inode)?;
            Err(named(e))
        }
        outcome => outcome.map_err(named),
    }
}

/// Whether the marks of an engine reach all heads of the logs.
pub fn covers(marks: &HashMap<Id, u64>, heads: &[(Id, u64)]) -> bool {
    heads.iter().all(|(writer, head)| marks.get(writer).is_some_and(|mark| mark >= head))
}

impl Inner {
    /// Where the engine is.
    pub fn place(&self) -> Result<EnginePlace> {
        let mut known = lock(&self.engines().place);
        // Its folder may have been deleted with it.
        let gone = |place: &EnginePlace| matches!(place, EnginePlace::File(path) if path.parent().is_none_or(|folder| !folder.exists()));
        match &*known {
            Some(place) if !gone(place) => Ok(place.clone()),
            _ => {
                let place = place::choose(&self.store.home(), self.settings.engine.as_deref())?;
                Ok(known.insert(place).clone())
            }
        }
    }

    /// A new connection. A file that is damaged is set aside.
    fn connect(&self, place: &EnginePlace) -> Result<Engine> {
        let store = self.store.home().id;
        match place {
            EnginePlace::Memory => Engine::of(Box::new(Sqlite::memory()?), None, store),
            EnginePlace::Postgres(url) => Engine::of(Box::new(Postgres::open(url, store)?), None, store),
            EnginePlace::File(path) => match open_file(path, store) {
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    // Who has the later release goes on with that file, and we have one of our own.
                    let own = place::of_layout(path, schema::LAYOUT);
                    let engine = open_file(&own, store)?;
                    *lock(&self.engines().place) = Some(EnginePlace::File(own));
                    Ok(engine)
                }
                outcome => outcome,
            },
        }
    }

    /// Lends a connection. Where its file turns out to be damaged or is not the one under its name any
    /// more, the work is done once again, on a new one: all of an engine is in the logs.
    pub fn with_engine<T>(
        &self,
        place: &EnginePlace,
        work: &mut dyn FnMut(&mut Engine) -> Result<T>,
    ) -> Result<T> {
        match self.lend(place, work) {
            Err(Failed { again: true, .. }) => {
                let place = if *place == EnginePlace::Memory { EnginePlace::Memory } else { self.place()? };
                self.lend(&place, work).map_err(|failed| failed.error)
            }
            outcome => outcome.map_err(|failed| failed.error),
        }
    }

    fn lend<T>(
        &self,
        place: &EnginePlace,
        work: &mut dyn FnMut(&mut Engine) -> Result<T>,
    ) -> std::result::Result<T, Failed> {
        let engines = self.engines();
        let broken = |error: Error| Failed { again: error.kind() == ErrorKind::Corrupt, error };
        if *place == EnginePlace::Memory {
            let mut slot = lock(&engines.memory);
            let mut engine = match slot.take() {
                Some(engine) => engine,
                None => self.connect(place).map_err(broken)?,
            };
            let outcome = work(&mut engine);
            if outcome.as_ref().err().is_none_or(keeps) {
                *slot = Some(engine);
            }
            return outcome.map_err(broken);
        }
        let idle = lock(&engines.idle).pop().filter(Engine::is_current);
        let was_idle = idle.is_some();
        let mut engine = match idle {
            Some(engine) => engine,
            None => {
                // Others that lie idle have the old file, too.
                lock(&engines.idle).retain(Engine::is_current);
                self.connect(place).map_err(broken)?
            }
        };
        match work(&mut engine) {
            Ok(value) => {
                engines.keep(engine);
                Ok(value)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                if let Some((path, inode)) = engine.file.clone() {
                    drop(engine);
                    place::set_aside(&path, inode).map_err(|error| Failed { again: false, error })?;
                }
                Err(Failed { again: true, error })
            }
            Err(error) => {
                // A server that was started anew has ended all connections: a new one is tried.
                let on_server = matches!(place, EnginePlace::Postgres(_));
                let ended = on_server && was_idle && error.kind() == ErrorKind::Unavailable;
                if ended {
                    lock(&engines.idle).clear();
                }
                let again = ended || !engine.is_current();
                if keeps(&error) && !again {
                    engines.keep(engine);
                }
                Err(Failed { again, error })
            }
        }
    }

    /// The engine's place for a store with these heads: in memory while there is nothing to keep.
    pub fn place_for(&self, heads: &[(Id, u64)]) -> Result<EnginePlace> {
        if heads.is_empty() { Ok(EnginePlace::Memory) } else { self.place() }
    }

    /// Lets `read` look at the catalog; it is called again where the engine broke under it.
    pub fn look<T>(&self, view: View, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
        let (feed, own) = self.moment(view)?;
        let heads = feed.heads();
        let place = self.place_for(&heads)?;
        self.with_engine(&place, &mut |engine| {
            let index = engine.index()?;
            if view == View::AsIs {
                return reading(index, read);
            }
            for _ in 0..ROUNDS {
                self.follow(index, &feed, Wait::Yes)?;
                let laid_over = match view {
                    View::All(session) => {
                        index.set_owners(super::owners::of(self, &feed, true));
                        index.overlay(session, &own.commits())?
                    }
                    _ => false,
                };
                if let View::All(Some(transaction)) = view
                    && let Err(error) = super::follow::lay_fields(self, index, &feed, transaction)
                {
                    index.abort()?;
                    return Err(error);
                }
                if !laid_over {
                    index.begin_read()?;
                }
                // Somebody may have begun to make the engine anew since we followed.
                let marks = index.watermarks();
                if marks.as_ref().is_ok_and(|marks| !covers(marks, &heads)) {
                    index.end_read()?;
                    continue;
                }
                let outcome = marks.and_then(|_| read(index));
                let ended = index.end_read();
                return outcome.and_then(|value| ended.map(|()| value));
            }
            Err(Error::unavailable("the catalog's engine is made anew again and again")
                .with_hint("try again"))
        })
    }

    /// What the logs hold and what this handle has not flushed, of one moment.
    fn moment(&self, view: View) -> Result<(Feed, Own)> {
        let mut feed = self.store.feed()?;
        let View::All(session) = view else { return Ok((feed, Own::default())) };
        for _ in 0..ROUNDS {
            let user = self.user();
            let mut own = Own { user, all: self.store.pending_side(None)?, transaction: Vec::new() };
            if session.is_some() {
                own.transaction = self.store.pending_side(session)?;
            }
            if own.all.is_empty() && own.transaction.is_empty() {
                return Ok((feed, own));
            }
            // What another thread flushes now must not be seen twice.
            let later = self.store.feed()?;
            if later.heads() == feed.heads() {
                return Ok((feed, own));
            }
            feed = later;
        }
        Ok((feed, Own::default()))
    }

    /// Brings an engine up to a feed; `false` where another process has it and `wait` is No.
    pub fn follow(&self, index: &mut Index, feed: &Feed, wait: Wait) -> Result<bool> {
        super::follow::follow(self, index, feed, wait)
    }

    /// Applies what is in the logs if nobody else does so at this moment.
    pub fn catch_up(&self) -> Result<bool> {
        let feed = self.store.feed()?;
        let heads = feed.heads();
        let place = self.place_for(&heads)?;
        self.with_engine(&place, &mut |engine| {
            let index = engine.index()?;
            self.follow(index, &feed, Wait::No)
        })
    }
}

/// One read of one state.
fn reading<T>(index: &mut Index, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
    index.begin_read()?;
    let outcome = read(index);
    let ended = index.end_read();
    outcome.and_then(|value| ended.map(|()| value))
}
