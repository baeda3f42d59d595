//! Numbers of logs, runs, variables, tags and transactions in one engine, and what of them is kept in
//! memory while one process applies again and again. Another process that applies changes the
//! *generation*; what is in memory is forgotten then.

use std::collections::{HashMap, HashSet};

use fieldstone_core::{Code, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, TagDecl, VariableName};
use fieldstone_journal::feed::OWN_LOG;

use super::order::OrderKey;
use super::owners::{UNKNOWN, User};
use super::{Cell, Database, Flow, RunId, TagId, VariableId};

/// Batches whose place is kept in memory.
const BATCHES: usize = 100_000;
/// Names of runs that are kept in memory.
const RUNS: usize = 100_000;

/// A log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log {
    pub number: i64,
    /// Applied up to here; in this transaction of the database too.
    pub sequence: u64,
}

/// The number of a log, by what was known of its user before.
#[derive(Debug, Clone, Copy)]
pub(super) enum LogUser {
    /// The same.
    Same(i64),
    /// Nothing: this is the first of its commits.
    First(i64),
    /// Another user owned it.
    Another(i64),
}

/// A batch of attributes, as far as its rows must know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    /// Of row 0.
    pub place: OrderKey,
    pub singles: bool,
    pub txn: i64,
    pub user: User,
}

impl Batch {
    /// The place of a row.
    pub fn place(&self, row: i64) -> OrderKey {
        OrderKey { row: if self.singles { row } else { 0 }, ..self.place }
    }
}

/// A transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Txn {
    pub number: i64,
    /// Print of the decision that was applied last; empty for none.
    pub decided: Vec<u8>,
    /// Something of it hid something else, or was hidden: it cannot be taken back row by row.
    pub not_revertible: bool,
    /// Its records are not kept any more.
    pub dropped: bool,
}

/// What was deleted as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tombstone {
    pub place: OrderKey,
    pub txn: i64,
    pub user: User,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    /// The generation that is in memory; 0 for nothing.
    generation: i64,
    logs: HashMap<Id, Log>,
    writers: HashMap<i64, Id>,
    /// Users of logs, by number of the log.
    users: HashMap<i64, User>,
    /// The one user of all that was applied before there could be several, and the last run of then.
    pub sole: Option<(User, RunId)>,
    /// Runs that are not older than this transaction of the database.
    new_runs: HashSet<RunId>,
    runs: HashMap<RunName, RunId>,
    variables: HashMap<VariableName, VariableId>,
    tags: HashMap<TagDecl, TagId>,
    /// Groups, imports, meshes and histories, by kind.
    array_items: HashMap<(i64, String), i64>,
    txns: HashMap<Id, Txn>,
    /// By kind, run, item.
    pub tombstones: HashMap<(i64, i64, i64), Vec<Tombstone>>,
    batches: HashMap<i64, Batch>,
    next: HashMap<&'static str, i64>,
}

/// A log, where it is one: what is overlaid on the tables is in none.
pub(super) fn flushed(log: Id) -> Option<Id> {
    Some(log).filter(|log| *log != OWN_LOG)
}

/// 16 bytes as an id.
pub(super) fn id(bytes: &[u8]) -> Result<Id> {
    bytes.try_into().map(Id).map_err(|_| {
        Code::EngineDamaged
            .error("the catalog's engine holds an id that has not 16 bytes")
            .with_hint("the catalog is an index: fieldstone rebuild makes it again")
    })
}

pub(super) fn one_int(db: &mut dyn Database, sql: &str, cells: &[Cell<'_>]) -> Result<Option<i64>> {
    let mut found = None;
    db.query(sql, cells, &mut |row| {
        found = row[0].int_or_null()?;
        Ok(Flow::Stop)
    })?;
    Ok(found)
}

impl NameTable {
    /// Forgets what another process has changed since.
    pub fn refresh(&mut self, db: &mut dyn Database) -> Result<()> {
        self.new_runs.clear();
        let mut now = 0;
        db.query("SELECT value FROM meta WHERE name = 'generation'", &[], &mut |row| {
            now = row[0].text()?.parse().unwrap_or(0);
            Ok(Flow::Stop)
        })?;
        if self.generation == now + 1 {
            return Ok(());
        }
        *self = NameTable { generation: now + 1, ..NameTable::default() };
        let NameTable { logs, writers, users, txns, sole, .. } = self;
        db.query("SELECT value FROM meta WHERE name = 'sole'", &[], &mut |row| {
            let numbers = row[0].text()?.split_once(' ');
            *sole = numbers.and_then(|(user, runs)| Some((user.parse().ok()?, runs.parse().ok()?)));
            Ok(Flow::Stop)
        })?;
        db.query("SELECT log, writer, sequence, uid FROM log", &[], &mut |row| {
            let (number, writer) = (row[0].int()?, id(row[1].bytes()?)?);
            logs.insert(writer, Log { number, sequence: row[2].int()? as u64 });
            writers.insert(number, writer);
            users.insert(number, row[3].int()?);
            Ok(Flow::More)
        })?;
        db.query("SELECT txn, name, decided, not_revertible, dropped FROM txn", &[], &mut |row| {
            let txn = Txn {
                number: row[0].int()?,
                decided: row[2].bytes()?.to_vec(),
                not_revertible: row[3].int()? != 0,
                dropped: row[4].int()? != 0,
            };
            txns.insert(id(row[1].bytes()?)?, txn);
            Ok(Flow::More)
        })?;
        self.load_tombstones(db)
    }

    fn load_tombstones(&mut self, db: &mut dyn Database) -> Result<()> {
        let mut tombstones: HashMap<_, Vec<Tombstone>> = HashMap::new();
        let (writers, users) = (&self.writers, &self.users);
        let sql =
            "SELECT kind, run, item, stamp, decider, own, log, sequence, record, place, txn FROM tombstone";
        db.query(sql, &[], &mut |row| {
            let place = place_of(writers, &row[3..10])?;
            let key = (row[0].int()?, row[1].int()?, row[2].int()?);
            let user = user_of(users, row[6].int()?);
            tombstones.entry(key).or_default().push(Tombstone { place, txn: row[10].int()?, user });
            Ok(Flow::More)
        })?;
        self.tombstones = tombstones;
        Ok(())
    }

    /// Says to other processes that something was applied.
    pub fn next_generation(&mut self, db: &mut dyn Database) -> Result<()> {
        let text = self.generation.to_string();
        db.execute("UPDATE meta SET value = $1 WHERE name = 'generation'", &[Cell::Text(&text)])?;
        self.generation += 1;
        if self.runs.len() > RUNS {
            self.runs.clear();
        }
        Ok(())
    }

    /// The next free number of a table.
    pub fn next(&mut self, db: &mut dyn Database, table: &'static str, sql: &str) -> Result<i64> {
        let last = match self.next.get(table) {
            Some(last) => *last,
            None => one_int(db, sql, &[])?.unwrap_or(0),
        };
        self.next.insert(table, last + 1);
        Ok(last + 1)
    }

    pub fn known_log(&self, writer: Id) -> Option<Log> {
        self.logs.get(&writer).copied()
    }

    pub fn log(&mut self, db: &mut dyn Database, writer: Id) -> Result<i64> {
        match self.logs.get(&writer) {
            Some(log) => Ok(log.number),
            None => self.new_log(db, writer, UNKNOWN),
        }
    }

    fn new_log(&mut self, db: &mut dyn Database, writer: Id, user: User) -> Result<i64> {
        let number = self.next(db, "log", "SELECT MAX(log) FROM log")?;
        let cells = [Cell::Int(number), Cell::Bytes(&writer.0), Cell::Int(user)];
        db.execute("INSERT INTO log (log, writer, sequence, uid) VALUES ($1, $2, 0, $3)", &cells)?;
        self.logs.insert(writer, Log { number, sequence: 0 });
        self.writers.insert(number, writer);
        self.users.insert(number, user);
        Ok(number)
    }

    /// The number of a log, whose owner is `user`.
    pub fn log_of(&mut self, db: &mut dyn Database, writer: Id, user: User) -> Result<LogUser> {
        let Some(log) = self.logs.get(&writer) else {
            return Ok(LogUser::First(self.new_log(db, writer, user)?));
        };
        let (number, known) = (log.number, user_of(&self.users, log.number));
        if known == user {
            return Ok(LogUser::Same(number));
        }
        let cells = [Cell::Int(number), Cell::Int(user)];
        db.execute("UPDATE log SET uid = $2 WHERE log = $1", &cells)?;
        self.users.insert(number, user);
        Ok(if known == UNKNOWN { LogUser::First(number) } else { LogUser::Another(number) })
    }

    /// The user who owns a log.
    pub fn user(&self, log: i64) -> User {
        user_of(&self.users, log)
    }

    /// The user of all logs, where there is one.
    pub fn only_user(&self) -> User {
        let mut known = self.users.values().filter(|user| **user != UNKNOWN);
        let first = known.next().copied().unwrap_or(UNKNOWN);
        if known.all(|user| *user == first) { first } else { UNKNOWN }
    }

    /// Whether a run is not older than this transaction of the database.
    pub fn is_new(&self, run: RunId) -> bool {
        self.new_runs.contains(&run)
    }

    pub fn writer(&self, log: i64) -> Result<Id> {
        writer_of(&self.writers, log)
    }

    /// A log is applied up to here.
    pub fn applied(&mut self, writer: Id, sequence: u64) {
        if let Some(log) = self.logs.get_mut(&writer) {
            log.sequence = log.sequence.max(sequence);
        }
    }

    pub fn run(&mut self, db: &mut dyn Database, run: &RunName) -> Result<RunId> {
        if let Some(id) = self.runs.get(run) {
            return Ok(*id);
        }
        let cells = [Cell::Text(&run.name), Cell::Text(&run.project)];
        let found = one_int(db, "SELECT run FROM run WHERE name = $1 AND project = $2", &cells)?;
        let id = match found {
            Some(id) => id,
            None => {
                let id = self.next(db, "run", "SELECT MAX(run) FROM run")?;
                let cells = [Cell::Int(id), Cell::Text(&run.project), Cell::Text(&run.name)];
                let sql = "INSERT INTO run (run, project, name, declared, annotate, shut, owned) \
                           VALUES ($1, $2, $3, 0, 0, 0, 0)";
                db.execute(sql, &cells)?;
                self.new_runs.insert(id);
                id
            }
        };
        self.runs.insert(run.clone(), id);
        Ok(id)
    }

    pub fn variable(&mut self, db: &mut dyn Database, variable: &VariableName) -> Result<VariableId> {
        if let Some(id) = self.variables.get(variable) {
            return Ok(*id);
        }
        let cells = [Cell::Text(&variable.name), Cell::Int(variable.version)];
        let sql = "SELECT variable FROM variable_name WHERE name = $1 AND version = $2";
        let id = match one_int(db, sql, &cells)? {
            Some(id) => id,
            None => {
                let id = self.next(db, "variable_name", "SELECT MAX(variable) FROM variable_name")?;
                let cells = [Cell::Int(id), Cell::Text(&variable.name), Cell::Int(variable.version)];
                let sql = "INSERT INTO variable_name (variable, name, version) VALUES ($1, $2, $3)";
                db.execute(sql, &cells)?;
                id
            }
        };
        self.variables.insert(variable.clone(), id);
        Ok(id)
    }

    pub fn tag(&mut self, db: &mut dyn Database, tag: &TagDecl) -> Result<TagId> {
        if let Some(id) = self.tags.get(tag) {
            return Ok(*id);
        }
        let identity = [
            Cell::Text(&tag.name),
            Cell::Int(tag.version),
            Cell::Int(tag.kind as i64),
            Cell::Text(&tag.unit),
        ];
        let sql = "SELECT tag FROM tag WHERE name = $1 AND version = $2 AND kind = $3 AND unit = $4";
        let id = match one_int(db, sql, &identity)? {
            Some(id) => id,
            None => {
                let id = self.next(db, "tag", "SELECT MAX(tag) FROM tag")?;
                let [name, version, kind, unit] = identity;
                let sql = "INSERT INTO tag (tag, name, version, kind, unit, shown, declared) \
                           VALUES ($1, $2, $3, $4, $5, 0, 0)";
                db.execute(sql, &[Cell::Int(id), name, version, kind, unit])?;
                id
            }
        };
        self.tags.insert(tag.clone(), id);
        Ok(id)
    }

    /// The number of a group, import, mesh or history; the same in all runs.
    pub fn array_item(&mut self, db: &mut dyn Database, kind: i64, name: &str) -> Result<i64> {
        if let Some(item) = self.array_items.get(&(kind, name.to_owned())) {
            return Ok(*item);
        }
        let cells = [Cell::Int(kind), Cell::Text(name)];
        let sql = "SELECT item FROM array_item WHERE kind = $1 AND name = $2";
        let item = match one_int(db, sql, &cells)? {
            Some(item) => item,
            None => {
                let item = self.next(db, "array_item", "SELECT MAX(item) FROM array_item")?;
                let [kind, name] = cells;
                let sql = "INSERT INTO array_item (item, kind, name) VALUES ($1, $2, $3)";
                db.execute(sql, &[Cell::Int(item), kind, name])?;
                item
            }
        };
        self.array_items.insert((kind, name.to_owned()), item);
        Ok(item)
    }

    pub fn txn(&mut self, db: &mut dyn Database, transaction: Id) -> Result<Txn> {
        if let Some(txn) = self.txns.get(&transaction) {
            return Ok(txn.clone());
        }
        let number = self.next(db, "txn", "SELECT MAX(txn) FROM txn")?;
        let cells = [Cell::Int(number), Cell::Bytes(&transaction.0), Cell::Bytes(&[])];
        let sql = "INSERT INTO txn (txn, name, decided, not_revertible, dropped) VALUES ($1, $2, $3, 0, 0)";
        db.execute(sql, &cells)?;
        let txn = Txn { number, ..Txn::default() };
        self.txns.insert(transaction, txn.clone());
        Ok(txn)
    }

    /// A transaction that something is known of.
    pub fn known_txn(&self, transaction: Id) -> Option<&Txn> {
        self.txns.get(&transaction)
    }

    pub fn set_txn(&mut self, db: &mut dyn Database, transaction: Id, txn: Txn) -> Result<()> {
        let cells = [
            Cell::Int(txn.number),
            Cell::Bytes(&txn.decided),
            Cell::Int(txn.not_revertible.into()),
            Cell::Int(txn.dropped.into()),
        ];
        db.execute("UPDATE txn SET decided = $2, not_revertible = $3, dropped = $4 WHERE txn = $1", &cells)?;
        self.txns.insert(transaction, txn);
        Ok(())
    }

    /// Something of a transaction hid something else, or was hidden.
    pub fn not_revertible(&mut self, db: &mut dyn Database, txn: i64) -> Result<()> {
        if txn == 0 {
            return Ok(());
        }
        for known in self.txns.values_mut().filter(|known| known.number == txn) {
            if known.not_revertible {
                return Ok(());
            }
            known.not_revertible = true;
        }
        db.execute("UPDATE txn SET not_revertible = 1 WHERE txn = $1", &[Cell::Int(txn)]).map(|_| ())
    }

    /// A batch of attributes.
    pub fn batch(&mut self, db: &mut dyn Database, batch: i64) -> Result<Batch> {
        if let Some(found) = self.batches.get(&batch) {
            return Ok(*found);
        }
        let (writers, users) = (&self.writers, &self.users);
        let mut found = None;
        let sql =
            "SELECT stamp, decider, own, log, sequence, call, 0, singles, txn FROM batch WHERE batch = $1";
        db.query(sql, &[Cell::Int(batch)], &mut |row| {
            let place = place_of(writers, &row[..7])?;
            let user = user_of(users, row[3].int()?);
            found = Some(Batch { place, singles: row[7].int()? != 0, txn: row[8].int()?, user });
            Ok(Flow::Stop)
        })?;
        let found = found.ok_or_else(|| {
            Code::EngineDamaged
                .error(format!("the catalog's engine holds attributes of batch {batch}, which is not there"))
                .with_hint("the catalog is an index: fieldstone rebuild makes it again")
        })?;
        self.keep_batch(batch, found);
        Ok(found)
    }

    pub fn keep_batch(&mut self, batch: i64, info: Batch) {
        if self.batches.len() > BATCHES {
            self.batches.clear();
        }
        self.batches.insert(batch, info);
    }
}

fn user_of(users: &HashMap<i64, User>, log: i64) -> User {
    users.get(&log).copied().unwrap_or(UNKNOWN)
}

fn writer_of(writers: &HashMap<i64, Id>, log: i64) -> Result<Id> {
    writers.get(&log).copied().ok_or_else(|| {
        Code::EngineDamaged
            .error(format!("the catalog's engine names log {log}, which it does not hold"))
            .with_hint("the catalog is an index: fieldstone rebuild makes it again")
    })
}

/// From stamp, decider, own, log, sequence, call, row.
pub(super) fn place_of(writers: &HashMap<i64, Id>, row: &[Cell<'_>]) -> Result<OrderKey> {
    Ok(OrderKey {
        stamp: row[0].int()? as u64,
        decider: writer_of(writers, row[1].int()?)?,
        own: row[2].int()? as u64,
        writer: writer_of(writers, row[3].int()?)?,
        sequence: row[4].int()? as u64,
        call: row[5].int()?,
        row: row[6].int()?,
    })
}

impl NameTable {
    /// From stamp, decider, own, log, sequence, call, row.
    pub fn place(&self, row: &[Cell<'_>]) -> Result<OrderKey> {
        place_of(&self.writers, row)
    }
}
