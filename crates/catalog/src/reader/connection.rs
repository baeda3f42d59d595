//! Connections to engines: which connection a call gets, how long it waits for other processes, and the
//! fallback if these make no progress.
//!
//! | engine | wait for others |
//! |---|---|
//! | a file | [`QUIET`], longer while the holder works, at most [`WORKING`] |
//! | a server | [`SERVER`] |
//! | in memory | never |
//!
//! After that wait, the handle uses an engine of its own in memory, which follows the logs like any
//! other. Every [`RETRY`] one call tries the shared engine again, [`BRIEF`]ly; if that succeeds, the handle
//! returns to it and drops its own.
//!
//! Invariants:
//! * no call waits without limit for another process;
//! * a forked child does not use, close or wait for a connection of its parent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_journal::marks::{Heads, Marks};

use super::engine_file::{self, LockTerms};
use super::location::{self, EngineLocation};
use super::lock_holders;
use super::open_store::OpenStore;
use crate::engine::{
    Busy, Database, Dialect, Flow, Index, Postgres, Sqlite, Wait, can_stand_in, is_busy, schema,
};

/// Connections that are kept while there are no reads.
const IDLE: usize = 4;
/// How long to wait for a process that does nothing.
const QUIET: Duration = Duration::from_millis(1500);
/// How long to wait in total for processes that work, in nanoseconds.
const WORKING: u64 = 30_000_000_000;
/// How long to wait for other clients of a server.
const SERVER: Duration = Duration::from_secs(60);
/// How long to wait if there is an alternative.
const BRIEF: Duration = Duration::from_millis(100);
/// Bytes of SQLite's `-shm` that are locked by a process that writes, checkpoints the log or recovers it.
const SHM_LOCKS: (u64, u64) = (120, 122);
/// Time between two attempts to return to the shared engine, in nanoseconds.
const RETRY: u64 = 10_000_000_000;

/// How long a call waits for other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// [`BRIEF`]ly.
    Brief,
    /// Until it is clear that they make no progress.
    Full,
}

impl Patience {
    fn limit(self, place: &EngineLocation) -> Duration {
        match self {
            Patience::None => Duration::ZERO,
            Patience::Brief => BRIEF,
            Patience::Full if matches!(place, EngineLocation::Postgres(_)) => SERVER,
            Patience::Full => QUIET,
        }
    }
}

/// The engines of one process.
#[derive(Debug)]
pub struct Connections {
    store: Arc<OpenStore>,
    turns: Turns,
    place: Mutex<Option<EngineLocation>>,
    /// Unused connections to the file or the server.
    idle: Mutex<Vec<Connection>>,
    /// The engine in memory: only one, because it holds the data.
    memory: Mutex<Option<Connection>>,
}

/// Decides for each call between the shared engine and the one in memory that replaces it.
#[derive(Debug, Default)]
struct Turns {
    /// Until this time of the monotonic clock the shared engine is not tried, because others hold it.
    away: Mutex<Option<u64>>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    index: Option<Index>,
    /// The file, with its inode when it was opened.
    file: Option<(PathBuf, Option<u64>)>,
    /// How long the present user of the connection waits for others.
    pub patience: Patience,
    /// The process that opened it.
    process: u32,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // In a forked child the connection belongs to the parent: closing it could end the parent's
        // connection, too.
        if std::process::id() != self.process {
            std::mem::forget(self.index.take());
        }
    }
}

impl Connection {
    fn of(
        database: Box<dyn Database>,
        file: Option<PathBuf>,
        store: Id,
        patience: Patience,
    ) -> Result<Connection> {
        let file = file.map(|path| (path.clone(), engine_file::inode_of(&path)));
        let index = Index::open(database, store)?;
        Ok(Connection { index: Some(index), file, patience, process: std::process::id() })
    }

    /// A connection to an engine in memory for a single caller.
    pub fn private(database: Box<dyn Database>, store: Id) -> Result<Connection> {
        Connection::of(database, None, store, Patience::Full)
    }

    /// The index.
    pub fn index(&mut self) -> Result<&mut Index> {
        self.index.as_mut().ok_or_else(|| Error::internal("the catalog's engine was closed while in use"))
    }

    /// Whether the path still leads to its file.
    fn is_current(&self) -> bool {
        self.file.as_ref().is_none_or(|(path, inode)| engine_file::inode_of(path) == *inode)
    }
}

/// Whether a later release wrote the tables of a file.
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

/// The reason why a connection's work was not done.
struct ConnectionFailure {
    error: Error,
    /// Whether another connection may succeed.
    again: bool,
}

/// Whether a connection can be used further after an error.
pub fn keeps(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Internal | ErrorKind::Unavailable)
}

/// The engine that a call uses.
enum EngineChoice {
    Shared(Patience),
    Private,
}

impl Turns {
    fn turn(&self, now: u64) -> EngineChoice {
        let mut away = self.away.lock();
        match *away {
            None => EngineChoice::Shared(Patience::Full),
            Some(until) if now < until => EngineChoice::Private,
            Some(_) => {
                // This call tries; the others need not wait for it.
                *away = Some(now.saturating_add(RETRY));
                EngineChoice::Shared(Patience::Brief)
            }
        }
    }

    /// Switches to the engine in memory for a while.
    fn go_away(&self, now: u64) {
        *self.away.lock() = Some(now.saturating_add(RETRY));
    }
}

impl Connections {
    pub fn new(store: Arc<OpenStore>) -> Connections {
        Connections {
            store,
            turns: Turns::default(),
            place: Mutex::default(),
            idle: Mutex::default(),
            memory: Mutex::default(),
        }
    }

    /// Keeps a connection for the next reader.
    fn put_back(&self, engine: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE {
            idle.push(engine);
        }
    }

    /// The shared engine worked: drops the one in memory.
    fn returned(&self) {
        *self.turns.away.lock() = None;
        // If a call is using it, it stays until the next return.
        if let Some(mut own) = self.memory.try_lock() {
            drop(own.take());
        }
    }

    /// Removes an engine of this user, and what was set aside of it: the logs hold everything.
    pub fn discard(&self, place: &EngineLocation) -> Result<()> {
        self.idle.lock().clear();
        drop(self.memory.lock().take());
        match place {
            EngineLocation::File(path) => engine_file::discard(path, self.terms(Patience::Full.limit(place))),
            _ => Ok(()),
        }
    }

    fn terms(&self, limit: Duration) -> LockTerms<'_> {
        LockTerms { uid: self.store.env.identity.uid(), clock: &*self.store.env.clock, limit }
    }

    fn now(&self) -> u64 {
        self.store.env.clock.monotonic()
    }

    /// Opens a file. Conflict if a later release wrote its tables.
    fn open_file(&self, path: &Path, patience: Patience) -> Result<Connection> {
        let limit = patience.limit(&EngineLocation::File(path.to_owned()));
        let terms = self.terms(limit);
        let store = self.store.journal.home().id;
        let inode;
        let outcome = {
            let _guard = engine_file::prepare(path, terms)?;
            inode = engine_file::inode_of(path);
            // Check before preparing anything: a later layout must not be changed.
            Sqlite::open_within(path, limit).and_then(|mut database| match newer_layout(&mut database)? {
                true => Err(Code::LaterTables.error("a later release wrote its tables")),
                false => Connection::of(Box::new(database), Some(path.to_owned()), store, patience),
            })
        };
        let named = |e: Error| e.context(format!("the catalog's engine {}", path.display()));
        match outcome {
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                engine_file::set_aside(path, inode, terms)?;
                Err(named(e))
            }
            outcome => outcome.map_err(named),
        }
    }

    /// The location of the engine that this user's processes share.
    pub fn location(&self) -> Result<EngineLocation> {
        let mut known = self.place.lock();
        let uid = self.store.env.identity.uid();
        // Its folder may have been deleted with it, or replaced.
        let gone = |place: &EngineLocation| matches!(place, EngineLocation::File(path) if !location::stands(path, uid));
        match &*known {
            Some(place) if !gone(place) => Ok(place.clone()),
            _ => {
                let home = self.store.journal.home();
                let place = location::choose(&home, self.store.engine.as_deref())?;
                // There is no place next to a store that does not exist yet: look again once it does.
                match &home.folder {
                    Some(folder) if matches!(place, EngineLocation::File(_)) && !folder.exists() => {
                        Ok(EngineLocation::Memory)
                    }
                    _ => Ok(known.insert(place).clone()),
                }
            }
        }
    }

    /// The location of the engine for a store with these heads: in memory while there is nothing to keep.
    pub fn location_for(&self, heads: &Heads) -> Result<EngineLocation> {
        if heads.is_empty() { Ok(EngineLocation::Memory) } else { self.location() }
    }

    /// The location of the engine that this handle uses at this moment.
    pub fn location_now(&self, heads: &Heads) -> Result<EngineLocation> {
        if self.turns.away.lock().is_some() { Ok(EngineLocation::Memory) } else { self.location_for(heads) }
    }

    /// Opens a connection. Sets a damaged file aside.
    fn connect(&self, place: &EngineLocation, patience: Patience) -> Result<Connection> {
        let store = self.store.journal.home().id;
        match place {
            EngineLocation::Memory => Connection::of(Box::new(Sqlite::memory()?), None, store, patience),
            EngineLocation::Postgres(url) => {
                let mut server = Postgres::open(url, store)?;
                server.set_patience(patience.limit(place))?;
                Connection::of(Box::new(server), None, store, patience)
            }
            EngineLocation::File(path) => match self.open_file(path, patience) {
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    // Processes of the later release keep using that file, and we use one of our own.
                    let own = location::of_layout(path, schema::LAYOUT);
                    let engine = self.open_file(&own, patience)?;
                    *self.place.lock() = Some(EngineLocation::File(own));
                    Ok(engine)
                }
                outcome => outcome,
            },
        }
    }

    /// Lends a connection. It leads to an engine in memory if others hold the shared one and make no
    /// progress, or if its disk is full: the logs hold everything.
    pub fn with_engine<T>(
        &self,
        place: &EngineLocation,
        work: &mut dyn FnMut(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        if *place != EngineLocation::Memory
            && let EngineChoice::Shared(patience) = self.turns.turn(self.now())
        {
            let outcome = self.with(place, patience, &mut |engine| {
                // A call that returns to the shared engine must find it free for writing, too: reading alone
                // works without.
                if patience == Patience::Brief {
                    let index = engine.index()?;
                    if !index.begin_apply(Wait::No)? {
                        return Err(Code::EngineBusy
                            .error("another process holds the catalog's engine")
                            .with_source(Busy("not free".into())));
                    }
                    index.abort()?;
                }
                work(engine)
            });
            match outcome {
                Err(e) if can_stand_in(&e) => self.go_away(),
                Err(e) => return Err(e),
                Ok(value) => {
                    self.returned();
                    return Ok(value);
                }
            }
        }
        self.with(&EngineLocation::Memory, Patience::Full, work)
    }

    /// Switches to the engine in memory for a while.
    pub fn go_away(&self) {
        self.turns.go_away(self.now());
    }

    /// Lends a connection to this engine and no other; if others hold it, the error satisfies `is_busy`. If
    /// its file is damaged or was replaced under its name, the work is done once more, on a new file: the
    /// logs hold everything.
    pub fn with<T>(
        &self,
        place: &EngineLocation,
        patience: Patience,
        work: &mut dyn FnMut(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        match self.with_connection(place, patience, work) {
            // A damaged file was set aside or replaced, so its location may have changed as well.
            Err(ConnectionFailure { again: true, .. }) => {
                let place =
                    if *place == EngineLocation::Memory { EngineLocation::Memory } else { self.location()? };
                self.with_connection(&place, patience, work).map_err(|failed| failed.error)
            }
            outcome => outcome.map_err(|failed| failed.error),
        }
    }

    fn with_connection<T>(
        &self,
        place: &EngineLocation,
        patience: Patience,
        work: &mut dyn FnMut(&mut Connection) -> Result<T>,
    ) -> std::result::Result<T, ConnectionFailure> {
        let broken = |error: Error| ConnectionFailure { again: error.kind() == ErrorKind::Corrupt, error };
        if *place == EngineLocation::Memory {
            let mut slot = self.memory.lock();
            let mut engine = match slot.take() {
                Some(engine) => engine,
                None => self.connect(place, patience).map_err(broken)?,
            };
            let outcome = work(&mut engine);
            if outcome.as_ref().err().is_none_or(keeps) {
                *slot = Some(engine);
            }
            return outcome.map_err(broken);
        }
        let idle = self.idle.lock().pop().filter(Connection::is_current);
        // Only an idle connection can have been ended by a restart without being noticed.
        let was_idle = idle.is_some();
        let mut engine = match idle {
            Some(engine) => engine,
            None => {
                // Other idle connections have the old file, too.
                self.idle.lock().retain(Connection::is_current);
                self.connect(place, patience).map_err(broken)?
            }
        };
        if engine.patience != patience {
            engine.patience = patience;
            let set = engine.index().and_then(|index| index.database().set_patience(patience.limit(place)));
            set.map_err(broken)?;
        }
        match work(&mut engine) {
            Ok(value) => {
                self.put_back(engine);
                Ok(value)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                if let Some((path, inode)) = engine.file.clone() {
                    drop(engine);
                    engine_file::set_aside(&path, inode, self.terms(patience.limit(place)))
                        .map_err(|error| ConnectionFailure { again: false, error })?;
                }
                Err(ConnectionFailure { again: true, error })
            }
            Err(error) => {
                // A server that was restarted has ended all connections: try a new one.
                let on_server = matches!(place, EngineLocation::Postgres(_));
                let ended =
                    on_server && was_idle && error.kind() == ErrorKind::Unavailable && !is_busy(&error);
                if ended {
                    self.idle.lock().clear();
                }
                let again = ended || !engine.is_current();
                if keeps(&error) && !again {
                    self.put_back(engine);
                }
                Err(ConnectionFailure { again, error })
            }
        }
    }

    /// Begins work that needs the engine exclusively. Waits while others hold it and make progress.
    pub fn insist<T>(
        &self,
        index: &mut Index,
        patience: Patience,
        begin: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        let place = self.location()?;
        let EngineLocation::File(path) = &place else { return begin(index) };
        if patience != Patience::Full || index.database().dialect() != Dialect::Sqlite {
            return begin(index);
        }
        let begun = self.now();
        // First wait briefly, to learn how far the others are before the longer wait.
        let (mut limit, mut before) = (BRIEF, None);
        let outcome = loop {
            index.database().set_patience(limit)?;
            let busy = match begin(index) {
                Err(e) if is_busy(&e) => e,
                done => break done,
            };
            index.database().set_patience(Duration::ZERO)?;
            let signs = Some(self.signs(path, index));
            // Nothing changed during a whole wait: the others make no progress.
            if signs == before || self.now().saturating_sub(begun) > WORKING {
                break Err(busy);
            }
            (limit, before) = (QUIET, signs);
        };
        index.database().set_patience(patience.limit(&place))?;
        outcome
    }

    /// The signs of progress of the process that holds the engine: its processor time, if the system reveals
    /// it, and the marks. They change at least twice a second if that is possible.
    fn signs(&self, path: &Path, index: &mut Index) -> (u64, Marks) {
        let [_, shm] = engine_file::companions(path);
        let marks = index.watermarks().unwrap_or_default();
        (lock_holders::work(&shm, Some(SHM_LOCKS), self.store.env.identity.uid()), marks)
    }

    /// Adds the name of the process that holds the engine to an error.
    pub fn held(&self, place: &EngineLocation, error: Error) -> Error {
        let EngineLocation::File(path) = place else { return error };
        let [_, shm] = engine_file::companions(path);
        let error = error.context(lock_holders::named(&shm, Some(SHM_LOCKS)));
        error.with_hint("end or resume that process, or try again; queries still work without the engine")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(engines: &Turns, now: u64) -> Option<Patience> {
        match engines.turn(now) {
            EngineChoice::Shared(patience) => Some(patience),
            EngineChoice::Private => None,
        }
    }

    #[test]
    fn one_call_tries_to_return_after_a_while() {
        let engines = Turns::default();
        assert_eq!(turn(&engines, 5), Some(Patience::Full));
        engines.go_away(5);
        assert_eq!(turn(&engines, 4 + RETRY), None);
        assert_eq!(turn(&engines, 5 + RETRY), Some(Patience::Brief), "one tries");
        assert_eq!(turn(&engines, 5 + RETRY), None, "the others go on");
        assert_eq!(turn(&engines, 5 + 2 * RETRY), Some(Patience::Brief));
        *engines.away.lock() = None;
        assert_eq!(turn(&engines, 6 + 2 * RETRY), Some(Patience::Full));
    }
}
