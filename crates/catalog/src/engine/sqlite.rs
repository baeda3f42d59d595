//! SQLite as the engine: one file on a local file system, or memory.
//!
//! * The journal is a write-ahead log: readers never wait for the process that applies.
//! * A power cut may lose the newest applied commits together with their watermarks; they are applied again.
//! * No part of the file is mapped, because another process may set it aside at any time.
//! * Every page that is read is checked against its checksum (`vfs.rs`); a mismatch is Corrupt.
//! * Each connection prepares every SQL statement once and keeps it.
//!
//! ```
//! use fieldstone_catalog::engine::{Cell, Database, Flow, Sqlite, Wait};
//! let mut db = Sqlite::memory()?;
//! db.batch("CREATE TABLE t (a INTEGER)")?;
//! assert!(db.begin(true, Wait::Yes)?);
//! db.execute("INSERT INTO t VALUES ($1)", &[Cell::Int(7)])?;
//! db.commit()?;
//! let mut found = 0;
//! db.query("SELECT a FROM t", &[], &mut |row| { found = row[0].int()?; Ok(Flow::More) })?;
//! assert_eq!(found, 7);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fieldstone_core::value::ValueType;
use fieldstone_core::{Code, Error, Result};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, CachedStatement, Connection, OpenFlags, Row, ToSql, ffi};
use rustix::fs::Access;

use super::{
    AttrRow, Busy, Cell, Database, Dialect, Flow, Interrupt, Probe, Selection, Wait, schema, statement, vfs,
    views,
};

/// How long a caller waits for a process that applies, unless [`Database::set_patience`] changes it.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Cache of pages, in KiB.
const CACHE_KIB: i64 = 64 * 1024;
/// Maximum number of statements that stay prepared; the engine has fewer.
const STATEMENTS: usize = 128;
/// Steps of SQLite's virtual machine between two checks whether to stop a user's statement: some hundred
/// microseconds.
const STOP_STEPS: i32 = 10_000;
const INSERT: &str = "INSERT INTO attr (run, tag, step, variable, curve, batch, row, kind, num, payload, region) \
                      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// A connection to SQLite.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    path: Option<PathBuf>,
    patience: Duration,
}

impl Sqlite {
    /// Opens or creates the file. No part of its path may be a symbolic link. Denied if the user may not
    /// write, Corrupt if it is not a database, Conflict if a later release wrote it.
    pub fn open(path: &Path) -> Result<Sqlite> {
        Sqlite::open_within(path, PATIENCE)
    }

    /// Like [`open`](Sqlite::open), but with this [patience](Database::set_patience) from the beginning.
    pub fn open_within(path: &Path, patience: Duration) -> Result<Sqlite> {
        super::fork::ready()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        vfs::register()?;
        match header(path) {
            Some(header) if schema::LAYOUT.parse().is_ok_and(|ours| header.layout > ours) => {
                return Err(Code::LaterTables.error("a later release wrote its tables"));
            }
            Some(Header { reserved: 0, .. }) => {
                let what = format!("{} has no checksums: an earlier release wrote it", path.display());
                return Err(Code::EngineDamaged
                    .error(what)
                    .with_hint("the catalog is an index: `fieldstone rebuild` builds it again"));
            }
            _ => {}
        }
        let connection = Connection::open_with_flags_and_vfs(path, flags, vfs::NAME)
            .map_err(|cause| error(Some(path), "open", cause))?;
        Sqlite::prepared(connection, Some(path.to_owned()), patience)
    }

    /// A database in memory, which is gone with this value.
    pub fn memory() -> Result<Sqlite> {
        super::fork::ready()?;
        let connection = Connection::open_in_memory().map_err(|cause| error(None, "open", cause))?;
        Sqlite::prepared(connection, None, PATIENCE)
    }

    /// A database that is gone with this value, in memory as long as it is small, then in the folder of temporary files.
    pub fn temporary() -> Result<Sqlite> {
        super::fork::ready()?;
        let connection = Connection::open("").map_err(|cause| error(None, "open", cause))?;
        Sqlite::prepared(connection, None, PATIENCE)
    }

    /// The path of the file; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn prepared(connection: Connection, path: Option<PathBuf>, patience: Duration) -> Result<Sqlite> {
        let db = Sqlite { connection, path, patience };
        db.mapped("open", |c| {
            c.busy_timeout(patience)?;
            c.set_prepared_statement_cache_capacity(STATEMENTS);
            // The page size only takes effect in a new file; the same statement creates its write-ahead log.
            c.execute_batch(&format!("PRAGMA page_size = {PAGE}; PRAGMA mmap_size = 0;"))?;
            vfs::reserve(c);
            write_ahead(c)?;
            c.execute_batch(&format!(
                "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{CACHE_KIB};
                 PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = ON;"
            ))?;
            c.query_row("PRAGMA journal_size_limit = 67108864", [], |_| Ok(()))?;
            // Q-8: without this, SQLite compiles a statement again for every range that is bound to it, at
            // ten times the cost.
            c.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            // A name in double quotes that is not a column is an error, not a text.
            c.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
            views::functions(c)
        })?;
        Ok(db)
    }

    fn mapped<T>(&self, doing: &str, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        act(&self.connection).map_err(|cause| error(self.path.as_deref(), doing, cause))
    }

    fn scan_one(
        &self,
        statement: &mut CachedStatement<'_>,
        probe: &Probe,
        row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>,
    ) -> Result<(u64, Flow)> {
        let fail = |cause| error(self.path.as_deref(), "read attributes from", cause);
        bind_probe(statement, probe).map_err(fail)?;
        let mut rows = statement.raw_query();
        let mut visited = 0;
        while let Some(found) = rows.next().map_err(fail)? {
            visited += 1;
            if row(&attr_row(found).map_err(fail)?)? == Flow::Stop {
                return Ok((visited, Flow::Stop));
            }
        }
        Ok((visited, Flow::More))
    }
}

/// Gives a file its write-ahead log. Of two connections that do so in a new file at once, SQLite refuses one as busy
/// without waiting, because each holds a lock that the other needs; to begin a write waits until the other is done.
fn write_ahead(c: &Connection) -> rusqlite::Result<()> {
    let set = || c.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
    for _ in 0..REFUSALS {
        match set() {
            Err(cause) if busy(&cause) => c.execute_batch("BEGIN IMMEDIATE; COMMIT")?,
            done => return done,
        }
    }
    set()
}

/// The facts in a file's header that are read before anything else in the file is trusted.
struct Header {
    /// Bytes that each page leaves for checksums.
    reserved: u8,
    /// `PRAGMA user_version`.
    layout: u32,
}

/// The header of a database; `None` if the file is not a database, which SQLite will reject.
fn header(path: &Path) -> Option<Header> {
    let mut header = [0; 100];
    std::fs::symlink_metadata(path).ok().filter(|facts| facts.is_file())?;
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    let layout = header.get(60..64)?.try_into().map(u32::from_be_bytes).ok()?;
    header.starts_with(b"SQLite format 3\0").then_some(Header { reserved: header[20], layout })
}

/// How often a connection is refused the write-ahead log by others that are faster, before it gives up.
const REFUSALS: usize = 16;

/// Bytes of a page.
const PAGE: usize = super::page::PAGE;

/// The single statement for a probe's shape.
fn shape(probe: &Probe) -> &'static str {
    macro_rules! sql {
        ($rest:literal) => {
            concat!(
                "SELECT run, tag, step, variable, curve, batch, row, kind, num, payload, region ",
                "FROM attr WHERE run = $1 AND tag = $2 AND ",
                $rest
            )
        };
    }
    match probe {
        Probe::Key { variable: None, .. } => {
            sql!("step BETWEEN $3 AND $4 ORDER BY run, tag, step, variable, curve, batch, row")
        }
        Probe::Key { curve: None, .. } => {
            sql!("step = $3 AND variable = $4 ORDER BY run, tag, step, variable, curve, batch, row")
        }
        Probe::Key { .. } => sql!(
            "step = $3 AND variable = $4 AND curve BETWEEN $5 AND $6 \
             ORDER BY run, tag, step, variable, curve, batch, row"
        ),
        Probe::Number { .. } => sql!("num BETWEEN $3 AND $4 ORDER BY num"),
        Probe::Text { to: Some(_), .. } => {
            sql!("kind = 5 AND payload BETWEEN $3 AND $4 ORDER BY payload")
        }
        Probe::Text { .. } => sql!("kind = 5 AND payload >= $3 ORDER BY payload"),
    }
}

fn bind_probe(statement: &mut CachedStatement<'_>, probe: &Probe) -> rusqlite::Result<()> {
    match probe {
        Probe::Key { run, tag, steps, variable, curve } => {
            statement.raw_bind_parameter(1, run)?;
            statement.raw_bind_parameter(2, tag)?;
            statement.raw_bind_parameter(3, steps.start())?;
            let Some(variable) = variable else { return statement.raw_bind_parameter(4, steps.end()) };
            statement.raw_bind_parameter(4, variable)?;
            let Some(curve) = curve else { return Ok(()) };
            statement.raw_bind_parameter(5, curve.start())?;
            statement.raw_bind_parameter(6, curve.end())
        }
        Probe::Number { run, tag, numbers } => {
            statement.raw_bind_parameter(1, run)?;
            statement.raw_bind_parameter(2, tag)?;
            statement.raw_bind_parameter(3, numbers.start())?;
            statement.raw_bind_parameter(4, numbers.end())
        }
        Probe::Text { run, tag, from, to } => {
            statement.raw_bind_parameter(1, run)?;
            statement.raw_bind_parameter(2, tag)?;
            statement.raw_bind_parameter(3, from)?;
            to.as_ref().map_or(Ok(()), |to| statement.raw_bind_parameter(4, to))
        }
    }
}

fn attr_row<'a>(row: &'a Row<'_>) -> rusqlite::Result<AttrRow<'a>> {
    let kind = row.get_ref(7)?.as_i64()?;
    let kind = u8::try_from(kind).ok().and_then(ValueType::from_u8);
    let kind =
        kind.ok_or_else(|| rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), None))?;
    Ok(AttrRow {
        run: row.get_ref(0)?.as_i64()?,
        tag: row.get_ref(1)?.as_i64()?,
        step: row.get_ref(2)?.as_i64()?,
        variable: row.get_ref(3)?.as_i64()?,
        curve: row.get_ref(4)?.as_i64()?,
        batch: row.get_ref(5)?.as_i64()?,
        row: row.get_ref(6)?.as_i64()?,
        kind,
        num: row.get_ref(8)?.as_f64_or_null()?,
        payload: cell(row.get_ref(9)?)?,
        region: row.get_ref(10)?.as_blob_or_null()?.unwrap_or_default(),
    })
}

fn cell(value: ValueRef<'_>) -> rusqlite::Result<Cell<'_>> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Real(value),
        ValueRef::Text(_) => Cell::Text(value.as_str()?),
        ValueRef::Blob(value) => Cell::Bytes(value),
    })
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Cell::Null => ValueRef::Null,
            Cell::Int(value) => ValueRef::Integer(value),
            Cell::Real(value) => ValueRef::Real(value),
            Cell::Text(value) => ValueRef::Text(value.as_bytes()),
            Cell::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

impl Database for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn set_patience(&mut self, limit: Duration) -> Result<()> {
        self.patience = limit;
        self.mapped("open", |c| c.busy_timeout(limit))
    }

    fn begin(&mut self, write: bool, wait: Wait) -> Result<bool> {
        if vfs::is_damaged(&self.connection) {
            // SQLite found the damage while it copied its log into the file, and had no caller to report it to.
            let cause = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), None);
            return Err(error(self.path.as_deref(), "begin in", cause));
        }
        let patience = self.patience;
        let done = self.mapped("begin in", |c| {
            c.busy_timeout(if write && wait == Wait::No { Duration::ZERO } else { patience })?;
            let done = c.prepare_cached(if write { "BEGIN IMMEDIATE" } else { "BEGIN" })?.raw_execute();
            c.busy_timeout(patience)?;
            match done {
                Err(cause) if wait == Wait::No && busy(&cause) => return Ok(false),
                done => done?,
            };
            // A transaction sees the state of its first read, not of its beginning, so read something now.
            if let Err(cause) = c.prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?.exists([]) {
                let _ = c.execute_batch("ROLLBACK");
                return Err(cause);
            }
            Ok(true)
        })?;
        Ok(done)
    }

    fn commit(&mut self) -> Result<()> {
        let done = self.mapped("commit in", |c| c.prepare_cached("COMMIT")?.raw_execute().map(|_| ()));
        if done.is_err() {
            // A failed commit leaves the transaction open; the handle must stay usable.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        done
    }

    fn rollback(&mut self) -> Result<()> {
        // SQLite rolls back by itself after some errors.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.mapped("roll back in", |c| c.prepare_cached("ROLLBACK")?.raw_execute().map(|_| ()))
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.mapped("define tables in", |c| c.execute_batch(sql))
    }

    fn execute(&mut self, sql: &str, parameters: &[Cell<'_>]) -> Result<u64> {
        self.mapped("write to", |c| {
            let mut statement = c.prepare_cached(&numbered(sql))?;
            for (i, parameter) in parameters.iter().enumerate() {
                statement.raw_bind_parameter(i + 1, *parameter)?;
            }
            statement.raw_execute().map(|rows| rows as u64)
        })
    }

    fn query(
        &mut self,
        sql: &str,
        parameters: &[Cell<'_>],
        row: &mut dyn FnMut(&[Cell<'_>]) -> Result<Flow>,
    ) -> Result<()> {
        let fail = |cause| error(self.path.as_deref(), "read", cause);
        let mut statement = self.connection.prepare_cached(&numbered(sql)).map_err(fail)?;
        for (i, parameter) in parameters.iter().enumerate() {
            statement.raw_bind_parameter(i + 1, *parameter).map_err(fail)?;
        }
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        while let Some(found) = rows.next().map_err(fail)? {
            let mut cells = [Cell::Null; 32];
            let cells = &mut cells[..columns.min(32)];
            for (i, slot) in cells.iter_mut().enumerate() {
                *slot = found.get_ref(i).and_then(cell).map_err(fail)?;
            }
            if row(cells)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        let fail = |cause| error(self.path.as_deref(), "read attributes from", cause);
        let mut visited = 0;
        for alike in probes.chunk_by(|a, b| std::ptr::eq(shape(a), shape(b))) {
            let Some(first) = alike.first() else { continue };
            let mut statement = self.connection.prepare_cached(shape(first)).map_err(fail)?;
            for probe in alike {
                let (read, flow) = self.scan_one(&mut statement, probe, row)?;
                visited += read;
                if flow == Flow::Stop {
                    return Ok(visited);
                }
            }
        }
        Ok(visited)
    }

    fn insert_attrs(&mut self, rows: &mut dyn Iterator<Item = AttrRow<'_>>) -> Result<u64> {
        self.mapped("insert attributes into", |c| {
            // One row for each statement: for several rows SQLite builds a temporary table first (one row
            // at a time took 0.65 of the time).
            let mut statement = c.prepare_cached(INSERT)?;
            let mut count = 0;
            for row in rows {
                insert_row(&mut statement, &row)?;
                count += 1;
            }
            Ok(count)
        })
    }

    fn pages(&mut self) -> Result<Option<u64>> {
        let pages: i64 =
            self.mapped("measure", |c| c.query_row("PRAGMA page_count", [], |row| row.get(0)))?;
        Ok(u64::try_from(pages).ok())
    }

    fn copy(&mut self) -> Result<Option<Box<dyn Database>>> {
        let mut copy = Sqlite::memory()?;
        let step = self.mapped("copy", |c| Backup::new(c, &mut copy.connection)?.step(-1))?;
        // If others hold the database, the caller continues without a copy.
        Ok((step == StepResult::Done).then(|| Box::new(copy) as Box<dyn Database>))
    }

    fn explain(&mut self, sql: &str) -> Result<String> {
        self.mapped("explain in", |c| {
            let mut statement = c.prepare(&format!("EXPLAIN QUERY PLAN {}", numbered(sql)))?;
            let mut rows = statement.raw_query();
            let mut plan = String::new();
            while let Some(row) = rows.next()? {
                plan.push_str(row.get_ref(3)?.as_str()?);
                plan.push('\n');
            }
            Ok(plan)
        })
    }

    fn probe_sql(&self, probe: &Probe) -> String {
        shape(probe).to_owned()
    }

    fn select(&mut self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        let statement = statement::taken(statement, Dialect::Sqlite)?;
        let fail = |cause| error(self.path.as_deref(), "read", cause);
        self.connection.execute_batch("PRAGMA query_only = ON").map_err(fail)?;
        if let Some(stop) = stop.cloned() {
            let handler = self.connection.progress_handler(STOP_STEPS, Some(move || stop.is_due()));
            handler.map_err(|cause| error(self.path.as_deref(), "read", cause))?;
        }
        let answer = self.selected(&statement);
        let cleared = self.connection.progress_handler(0, None::<fn() -> bool>);
        let writable = self.connection.execute_batch("PRAGMA query_only = OFF");
        cleared.and(writable).map_err(|cause| error(self.path.as_deref(), "read", cause))?;
        answer
    }
}

impl Sqlite {
    /// The result of a statement that only reads.
    fn selected(&self, statement: &str) -> Result<Selection> {
        let fail = |cause| self.blame(cause);
        let mut parts = Batch::new(&self.connection, statement);
        let first = parts.next().map_err(fail)?;
        let Some(mut first) = first else { return Err(Code::Sql.error("SQL: no statement")) };
        let one = matches!(parts.next(), Ok(None));
        if !one || !first.readonly() {
            return Err(Code::Sql
                .error("SQL: give exactly one statement that only reads")
                .with_hint("begin with SELECT, WITH or EXPLAIN"));
        }
        rows_of(&mut first).map_err(fail)
    }

    /// SQLite's complaints about a statement from outside are errors of that statement; all others are errors
    /// of the file.
    fn blame(&self, cause: rusqlite::Error) -> Error {
        let (said, at) = match &cause {
            rusqlite::Error::SqlInputError { msg, offset, .. } => (
                msg.as_str(),
                usize::try_from(*offset).map_or(String::new(), |at| format!(" at character {at}")),
            ),
            rusqlite::Error::SqliteFailure(code, said) if code.extended_code == ffi::SQLITE_ERROR => {
                (said.as_deref().unwrap_or("it cannot be run"), String::new())
            }
            rusqlite::Error::SqliteFailure(code, _) if code.extended_code == ffi::SQLITE_INTERRUPT => {
                return Code::Sql.error("SQL: the statement was stopped");
            }
            _ => return error(self.path.as_deref(), "read", cause),
        };
        Code::Sql.error(format!("SQL{at}: {said}")).with_hint(views::hint(said))
    }
}

fn rows_of(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<Selection> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let kinds = names.iter().map(|name| views::kind(name)).collect();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..names.len()).map(|i| cell(row.get_ref(i)?).map(|cell| cell.to_value()));
        found.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok(Selection { names: statement::distinct(names), kinds, rows: found })
}

/// Adapts parameters: SQLite takes `$2` for a name, and numbers names in order of appearance.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

fn insert_row(statement: &mut CachedStatement<'_>, row: &AttrRow<'_>) -> rusqlite::Result<()> {
    let whole = [row.run, row.tag, row.step, row.variable, row.curve, row.batch, row.row, row.kind as i64];
    for (i, value) in whole.into_iter().enumerate() {
        statement.raw_bind_parameter(i + 1, value)?;
    }
    statement.raw_bind_parameter(9, row.num)?;
    statement.raw_bind_parameter(10, row.payload)?;
    match row.region {
        [] => statement.raw_bind_parameter(11, None::<i64>)?,
        region => statement.raw_bind_parameter(11, region)?,
    }
    statement.raw_execute().map(|_| ())
}

fn code_of(cause: &rusqlite::Error) -> Option<rusqlite::ErrorCode> {
    match cause {
        rusqlite::Error::SqliteFailure(code, _) => Some(code.code),
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        _ => None,
    }
}

fn busy(cause: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(code_of(cause), Some(DatabaseBusy | DatabaseLocked))
}

/// Whether only a failing disk can be the reason why the file does not open. A symbolic link in its path is
/// another one.
fn may_write(path: &Path, cause: &rusqlite::Error) -> bool {
    let linked = ffi::SQLITE_CANTOPEN_SYMLINK;
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK);
    cause.sqlite_extended_error_code() != Some(linked)
        && !path.is_dir()
        && file.err().is_none_or(|e| e == rustix::io::Errno::NOENT)
        && rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// The least room that SQLite's shared memory needs.
const SHARED_MEMORY: u64 = 32 << 10;

const FREE: &str = "free some space and try again";

/// Whether a file's folder has no room for SQLite's shared memory.
fn has_no_room(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|s| s.f_bavail.saturating_mul(s.f_frsize) < SHARED_MEMORY)
}

/// Maps SQLite's codes to ours. Values of an unexpected type also come from damage.
fn error(path: Option<&Path>, doing: &str, cause: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Theirs;
    let wrong_type = matches!(cause, rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::Utf8Error(..));
    let (code, hint) = match code_of(&cause) {
        Some(Theirs::DatabaseCorrupt | Theirs::NotADatabase) => {
            (Code::EngineDamaged, "the catalog is an index: `fieldstone rebuild` builds it again")
        }
        Some(Theirs::DiskFull) => (Code::DiskFull, FREE),
        // SQLite reports with this code that the memory which its processes share has no room.
        Some(Theirs::SystemIoFailure) if path.is_some_and(has_no_room) => (Code::DiskFull, FREE),
        Some(Theirs::OutOfMemory) => (Code::OutOfMemory, "free some memory and try again"),
        Some(Theirs::SystemIoFailure) => {
            (Code::IoFailed, "repair the disk or move the catalog, then try again")
        }
        Some(Theirs::DatabaseBusy | Theirs::DatabaseLocked | Theirs::FileLockingProtocolFailed) => {
            (Code::EngineBusy, "another process is writing the catalog: try again")
        }
        // SQLite reports any failure to open the file as one of permissions.
        Some(Theirs::ReadOnly | Theirs::CannotOpen) if path.is_some_and(|path| may_write(path, &cause)) => {
            (Code::IoFailed, "repair the disk or move the catalog, then try again")
        }
        Some(Theirs::ReadOnly | Theirs::CannotOpen | Theirs::PermissionDenied) => {
            (Code::PermissionDenied, "check the permissions of the catalog's folder")
        }
        Some(Theirs::AuthorizationForStatementDenied) => {
            (Code::EngineDenied, "check the permissions of the catalog's folder")
        }
        None if wrong_type => {
            (Code::EngineDamaged, "the catalog is an index: `fieldstone rebuild` builds it again")
        }
        _ => (Code::Internal, "report it"),
    };
    let place = path.map_or("a database in memory".to_owned(), |path| path.display().to_string());
    let said = code.error(format!("cannot {doing} {place}: {cause}")).with_hint(hint);
    match code_of(&cause) {
        Some(Theirs::DatabaseBusy | Theirs::DatabaseLocked | Theirs::FileLockingProtocolFailed) => {
            said.with_source(Busy(cause.to_string()))
        }
        _ => said.with_source(cause),
    }
}
