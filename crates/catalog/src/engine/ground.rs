//! The ground on which records are applied: the database, and the numbers of logs, runs, variables, tags and
//! transactions in one engine. Their part in memory stays as long as this is the only process that applies.
//! If another process applies, the *revision* changes, and this process forgets its part in memory.

use std::collections::{HashMap, HashSet};

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, TagDecl, VariableName};
use fieldstone_journal::feed::OWN_LOG;

use super::dirty::Dirty;
use super::order::{OrderKey, UNKNOWN, User, UserAt};
use super::rows::{damaged, ints, no_name, run_name};
use super::{Cell, Database, Flow, RunId, TagId, VariableId};

/// Batches whose places are kept in memory.
const BATCHES: usize = 100_000;
/// Runs whose names are kept in memory.
const RUNS: usize = 100_000;

/// A log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log {
    pub number: i64,
    /// The last applied commit, including those of this transaction of the database.
    pub sequence: u64,
}

/// The number of a log, and whether its user was known before.
#[derive(Debug, Clone, Copy)]
pub(super) enum LogUser {
    /// The same user.
    Same(i64),
    /// Unknown: this is the first commit of the log.
    First(i64),
    /// Another user.
    Another(i64),
}

/// A batch of attributes, as far as its rows need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    /// The place of row 0.
    pub place: OrderKey,
    pub singles: bool,
    pub txn: i64,
    pub user: User,
}

impl Batch {
    /// The user who wrote it, and when.
    pub fn by(&self) -> UserAt {
        UserAt { user: self.user, stamp: self.place.own }
    }

    /// The place of a row.
    pub fn place(&self, row: i64) -> OrderKey {
        OrderKey { row: if self.singles { row } else { 0 }, ..self.place }
    }
}

/// A transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Txn {
    pub number: i64,
    /// Fingerprint of the decision that was applied last; empty for none.
    pub decided: Vec<u8>,
    /// Some of its rows hid others or were hidden: it cannot be undone row by row.
    pub not_revertible: bool,
    /// Its records are no longer kept.
    pub dropped: bool,
}

/// A deletion of a whole run, step, variable or tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tombstone {
    pub place: OrderKey,
    pub txn: i64,
    pub user: User,
}

impl Tombstone {
    /// The user who deleted, and when.
    pub fn by(&self) -> UserAt {
        UserAt { user: self.user, stamp: self.place.own }
    }
}

/// Numbers and names in memory.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    /// The revision that is in memory; 0 for nothing.
    revision: i64,
    logs: HashMap<Id, Log>,
    writers: HashMap<i64, Id>,
    /// Users of logs, by number of the log.
    users: HashMap<i64, User>,
    /// The only user of all that was applied before there could be several, and the last run at that time.
    pub sole: Option<(User, RunId)>,
    /// Runs that this transaction of the database created.
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

/// A log, if it is one: content that is overlaid on the tables is in none.
pub(super) fn flushed(log: Id) -> Option<Id> {
    Some(log).filter(|log| *log != OWN_LOG)
}

/// 16 bytes as an id.
pub(super) fn id(bytes: &[u8]) -> Result<Id> {
    bytes.try_into().map(Id).map_err(|_| damaged("holds an id that does not have 16 bytes"))
}

/// The error for rows whose batch is missing.
pub(super) fn no_batch(batch: i64) -> Error {
    damaged(format!("holds attributes of batch {batch}, which is missing"))
}

fn user_of(users: &HashMap<i64, User>, log: i64) -> User {
    users.get(&log).copied().unwrap_or(UNKNOWN)
}

fn writer_of(writers: &HashMap<i64, Id>, log: i64) -> Result<Id> {
    writers.get(&log).copied().ok_or_else(|| damaged(format!("names log {log}, which it does not hold")))
}

/// The place, from stamp, decider, own, log, sequence, call, row.
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
    pub fn known_log(&self, writer: Id) -> Option<Log> {
        self.logs.get(&writer).copied()
    }

    /// The user who owns a log.
    pub fn user(&self, log: i64) -> User {
        user_of(&self.users, log)
    }

    /// The user of all logs, if there is only one.
    pub fn only_user(&self) -> User {
        let mut known = self.users.values().filter(|user| **user != UNKNOWN);
        let first = known.next().copied().unwrap_or(UNKNOWN);
        if known.all(|user| *user == first) { first } else { UNKNOWN }
    }

    /// Whether this transaction of the database created a run.
    pub fn is_new(&self, run: RunId) -> bool {
        self.new_runs.contains(&run)
    }

    pub fn writer(&self, log: i64) -> Result<Id> {
        writer_of(&self.writers, log)
    }

    /// Records that a log is applied up to this commit.
    pub fn applied(&mut self, writer: Id, sequence: u64) {
        if let Some(log) = self.logs.get_mut(&writer) {
            log.sequence = log.sequence.max(sequence);
        }
    }

    /// A transaction, if it is known.
    /// Transactions on which no decision was applied.
    pub fn undecided(&self) -> impl Iterator<Item = Id> {
        self.txns.iter().filter(|(_, txn)| txn.decided.is_empty()).map(|(id, _)| *id)
    }

    pub fn known_txn(&self, transaction: Id) -> Option<&Txn> {
        self.txns.get(&transaction)
    }

    pub fn keep_batch(&mut self, batch: i64, info: Batch) {
        // Drop everything at the limit: entries can be read again, and no order of use must be maintained.
        if self.batches.len() > BATCHES {
            self.batches.clear();
        }
        self.batches.insert(batch, info);
    }

    /// The place, from stamp, decider, own, log, sequence, call, row.
    pub fn place(&self, row: &[Cell<'_>]) -> Result<OrderKey> {
        place_of(&self.writers, row)
    }
}

/// The tables, their cached part, and the rows that must be derived again.
#[derive(Debug)]
pub(super) struct Ground {
    pub db: Box<dyn Database>,
    pub names: NameTable,
    pub dirty: Dirty,
}

impl Ground {
    pub fn new(db: Box<dyn Database>) -> Ground {
        Ground { db, names: NameTable::default(), dirty: Dirty::default() }
    }

    /// Forgets the part in memory.
    pub fn forget(&mut self) {
        self.names = NameTable::default();
        self.dirty = Dirty::default();
    }

    /// Forgets the part in memory if another process has changed the tables.
    pub fn refresh(&mut self) -> Result<()> {
        self.names.new_runs.clear();
        let now = self.revision()? as i64;
        // In memory it is one more than in the tables, so that 0 means that nothing is loaded.
        if self.names.revision == now + 1 {
            return Ok(());
        }
        self.names = NameTable { revision: now + 1, ..NameTable::default() };
        let NameTable { logs, writers, users, txns, sole, .. } = &mut self.names;
        self.db.query("SELECT value FROM meta WHERE name = 'sole'", &[], &mut |row| {
            let numbers = row[0].text()?.split_once(' ');
            *sole = numbers.and_then(|(user, runs)| Some((user.parse().ok()?, runs.parse().ok()?)));
            Ok(Flow::Stop)
        })?;
        self.db.query("SELECT log, writer, sequence, uid FROM log", &[], &mut |row| {
            let (number, writer) = (row[0].int()?, id(row[1].bytes()?)?);
            logs.insert(writer, Log { number, sequence: row[2].int()? as u64 });
            writers.insert(number, writer);
            users.insert(number, row[3].int()?);
            Ok(Flow::More)
        })?;
        self.db.query("SELECT txn, name, decided, not_revertible, dropped FROM txn", &[], &mut |row| {
            let txn = Txn {
                number: row[0].int()?,
                decided: row[2].bytes()?.to_vec(),
                not_revertible: row[3].int()? != 0,
                dropped: row[4].int()? != 0,
            };
            txns.insert(id(row[1].bytes()?)?, txn);
            Ok(Flow::More)
        })?;
        self.load_tombstones()
    }

    fn load_tombstones(&mut self) -> Result<()> {
        let mut tombstones: HashMap<_, Vec<Tombstone>> = HashMap::new();
        let (writers, users) = (&self.names.writers, &self.names.users);
        let sql =
            "SELECT kind, run, item, stamp, decider, own, log, sequence, record, place, txn FROM tombstone";
        self.db.query(sql, &[], &mut |row| {
            let place = place_of(writers, &row[3..10])?;
            let key = (row[0].int()?, row[1].int()?, row[2].int()?);
            let user = user_of(users, row[6].int()?);
            tombstones.entry(key).or_default().push(Tombstone { place, txn: row[10].int()?, user });
            Ok(Flow::More)
        })?;
        self.names.tombstones = tombstones;
        Ok(())
    }

    /// A counter that each transaction that applies something increases by one.
    pub fn revision(&mut self) -> Result<u64> {
        let sql = "SELECT value FROM meta WHERE name = 'generation'";
        Ok(self.db.first(sql, &[], |row| Ok(row[0].text()?.parse().unwrap_or(0)))?.unwrap_or(0))
    }

    /// Shows other processes that something was applied.
    pub fn next_revision(&mut self) -> Result<()> {
        let text = self.names.revision.to_string();
        self.db.execute("UPDATE meta SET value = $1 WHERE name = 'generation'", &[Cell::Text(&text)])?;
        self.names.revision += 1;
        // A store may have very many runs, so this cache needs a limit, too.
        if self.names.runs.len() > RUNS {
            self.names.runs.clear();
        }
        Ok(())
    }

    /// The next free number of a table.
    pub fn next(&mut self, table: &'static str, sql: &str) -> Result<i64> {
        let last = match self.names.next.get(table) {
            // The highest number is read once, then counted here: another process that applies changes the
            // generation, which clears the counter.
            Some(last) => *last,
            None => self.db.int(sql, &[])?.unwrap_or(0),
        };
        self.names.next.insert(table, last + 1);
        Ok(last + 1)
    }

    pub fn log(&mut self, writer: Id) -> Result<i64> {
        match self.names.logs.get(&writer) {
            Some(log) => Ok(log.number),
            None => self.new_log(writer, UNKNOWN),
        }
    }

    fn new_log(&mut self, writer: Id, user: User) -> Result<i64> {
        let number = self.next("log", "SELECT MAX(log) FROM log")?;
        let cells = [Cell::Int(number), Cell::Bytes(&writer.0), Cell::Int(user)];
        self.db.execute(
            "INSERT INTO log (log, writer, sequence, uid, taken) VALUES ($1, $2, 0, $3, 0)",
            &cells,
        )?;
        self.names.logs.insert(writer, Log { number, sequence: 0 });
        self.names.writers.insert(number, writer);
        self.names.users.insert(number, user);
        Ok(number)
    }

    /// The number of a log, whose owner is `user`.
    pub fn log_of(&mut self, writer: Id, user: User) -> Result<LogUser> {
        let Some(log) = self.names.logs.get(&writer) else {
            return Ok(LogUser::First(self.new_log(writer, user)?));
        };
        let (number, known) = (log.number, user_of(&self.names.users, log.number));
        if known == user {
            return Ok(LogUser::Same(number));
        }
        let cells = [Cell::Int(number), Cell::Int(user)];
        self.db.execute("UPDATE log SET uid = $2 WHERE log = $1", &cells)?;
        self.names.users.insert(number, user);
        // A log gets its user with its first commit; a decision or a removal may have named the log before.
        Ok(if known == UNKNOWN { LogUser::First(number) } else { LogUser::Another(number) })
    }

    pub fn run(&mut self, run: &RunName) -> Result<RunId> {
        if let Some(id) = self.names.runs.get(run) {
            return Ok(*id);
        }
        let cells = [Cell::Text(&run.name), Cell::Text(&run.project)];
        let found = self.db.int("SELECT run FROM run WHERE name = $1 AND project = $2", &cells)?;
        let id = match found {
            Some(id) => id,
            None => {
                let id = self.next("run", "SELECT MAX(run) FROM run")?;
                let cells = [Cell::Int(id), Cell::Text(&run.project), Cell::Text(&run.name)];
                let sql = "INSERT INTO run (run, project, name, declared, annotate, shut, owned) \
                           VALUES ($1, $2, $3, 0, 0, 0, 0)";
                self.db.execute(sql, &cells)?;
                self.names.new_runs.insert(id);
                id
            }
        };
        self.names.runs.insert(run.clone(), id);
        Ok(id)
    }

    pub fn variable(&mut self, variable: &VariableName) -> Result<VariableId> {
        if let Some(id) = self.names.variables.get(variable) {
            return Ok(*id);
        }
        let cells = [Cell::Text(&variable.name), Cell::Int(variable.version)];
        let sql = "SELECT variable FROM variable_name WHERE name = $1 AND version = $2";
        let id = match self.db.int(sql, &cells)? {
            Some(id) => id,
            None => {
                let id = self.next("variable_name", "SELECT MAX(variable) FROM variable_name")?;
                let cells = [Cell::Int(id), Cell::Text(&variable.name), Cell::Int(variable.version)];
                let sql = "INSERT INTO variable_name (variable, name, version) VALUES ($1, $2, $3)";
                self.db.execute(sql, &cells)?;
                id
            }
        };
        self.names.variables.insert(variable.clone(), id);
        Ok(id)
    }

    pub fn tag(&mut self, tag: &TagDecl) -> Result<TagId> {
        if let Some(id) = self.names.tags.get(tag) {
            return Ok(*id);
        }
        let identity = [
            Cell::Text(&tag.name),
            Cell::Int(tag.version),
            Cell::Int(tag.kind as i64),
            Cell::Text(&tag.unit),
        ];
        let sql = "SELECT tag FROM tag WHERE name = $1 AND version = $2 AND kind = $3 AND unit = $4";
        let id = match self.db.int(sql, &identity)? {
            Some(id) => id,
            None => {
                let id = self.next("tag", "SELECT MAX(tag) FROM tag")?;
                let [name, version, kind, unit] = identity;
                let sql = "INSERT INTO tag (tag, name, version, kind, unit, shown, declared) \
                           VALUES ($1, $2, $3, $4, $5, 0, 0)";
                self.db.execute(sql, &[Cell::Int(id), name, version, kind, unit])?;
                id
            }
        };
        self.names.tags.insert(tag.clone(), id);
        Ok(id)
    }

    /// The number of a group, import, mesh or history; the same in all runs.
    pub fn array_item(&mut self, kind: i64, name: &str) -> Result<i64> {
        if let Some(item) = self.names.array_items.get(&(kind, name.to_owned())) {
            return Ok(*item);
        }
        let cells = [Cell::Int(kind), Cell::Text(name)];
        let sql = "SELECT item FROM array_item WHERE kind = $1 AND name = $2";
        let item = match self.db.int(sql, &cells)? {
            Some(item) => item,
            None => {
                let item = self.next("array_item", "SELECT MAX(item) FROM array_item")?;
                let [kind, name] = cells;
                let sql = "INSERT INTO array_item (item, kind, name) VALUES ($1, $2, $3)";
                self.db.execute(sql, &[Cell::Int(item), kind, name])?;
                item
            }
        };
        self.names.array_items.insert((kind, name.to_owned()), item);
        Ok(item)
    }

    pub fn txn(&mut self, transaction: Id) -> Result<Txn> {
        if let Some(txn) = self.names.txns.get(&transaction) {
            return Ok(txn.clone());
        }
        let number = self.next("txn", "SELECT MAX(txn) FROM txn")?;
        let cells = [Cell::Int(number), Cell::Bytes(&transaction.0), Cell::Bytes(&[])];
        let sql = "INSERT INTO txn (txn, name, decided, not_revertible, dropped) VALUES ($1, $2, $3, 0, 0)";
        self.db.execute(sql, &cells)?;
        let txn = Txn { number, ..Txn::default() };
        self.names.txns.insert(transaction, txn.clone());
        Ok(txn)
    }

    pub fn set_txn(&mut self, transaction: Id, txn: Txn) -> Result<()> {
        let cells = [
            Cell::Int(txn.number),
            Cell::Bytes(&txn.decided),
            Cell::Int(txn.not_revertible.into()),
            Cell::Int(txn.dropped.into()),
        ];
        self.db.execute(
            "UPDATE txn SET decided = $2, not_revertible = $3, dropped = $4 WHERE txn = $1",
            &cells,
        )?;
        self.names.txns.insert(transaction, txn);
        Ok(())
    }

    /// Marks a transaction: some of its rows hid others or were hidden.
    pub fn not_revertible(&mut self, txn: i64) -> Result<()> {
        if txn == 0 {
            return Ok(());
        }
        // Several rows of one transaction call this: write the flag once.
        for known in self.names.txns.values_mut().filter(|known| known.number == txn) {
            if known.not_revertible {
                return Ok(());
            }
            known.not_revertible = true;
        }
        self.db.execute("UPDATE txn SET not_revertible = 1 WHERE txn = $1", &[Cell::Int(txn)]).map(|_| ())
    }

    /// A batch of attributes.
    pub fn batch(&mut self, batch: i64) -> Result<Batch> {
        if let Some(found) = self.names.batches.get(&batch) {
            return Ok(*found);
        }
        let (writers, users) = (&self.names.writers, &self.names.users);
        let sql =
            "SELECT stamp, decider, own, log, sequence, call, 0, singles, txn FROM batch WHERE batch = $1";
        let found = self.db.first(sql, &[Cell::Int(batch)], |row| {
            let place = place_of(writers, &row[..7])?;
            let user = user_of(users, row[3].int()?);
            Ok(Batch { place, singles: row[7].int()? != 0, txn: row[8].int()?, user })
        })?;
        let found = found.ok_or_else(|| no_batch(batch))?;
        self.names.keep_batch(batch, found);
        Ok(found)
    }

    /// Rows of a record (log, sequence, record) that were deleted individually, with the users who did so, and when.
    pub fn deleted_rows(&mut self, record: (i64, u64, i64)) -> Result<Vec<(i64, UserAt)>> {
        let cells = [record.0, record.1 as i64, record.2].map(Cell::Int);
        let sql = "SELECT row, uid, own FROM tombstone_row WHERE log = $1 AND sequence = $2 AND record = $3";
        let rows = self.db.all(sql, &cells, ints)?;
        let by = |[row, user, own]: [i64; 3]| (row, UserAt { user, stamp: own as u64 });
        Ok(rows.into_iter().map(by).collect())
    }

    /// Tags that have attributes in a run.
    pub fn tags_of(&mut self, run: RunId) -> Result<Vec<TagId>> {
        self.db.all("SELECT tag FROM span WHERE run = $1", &[Cell::Int(run)], |row| row[0].int())
    }

    pub fn run_text(&mut self, run: RunId) -> Result<String> {
        let run = self.run_name(run)?;
        Ok(match &*run.project {
            "" => format!("run '{}'", run.name),
            project => format!("run '{}' of project '{project}'", run.name),
        })
    }

    /// The name of a run; empty if there is none.
    pub fn run_name(&mut self, run: RunId) -> Result<RunName> {
        let found =
            self.db.first("SELECT project, name FROM run WHERE run = $1", &[Cell::Int(run)], run_name)?;
        Ok(found.unwrap_or_else(no_name))
    }
}
