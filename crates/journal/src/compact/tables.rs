//! The small tables of a takeover, which fit into memory: logs, facts, attempts, transactions, the store's own records,
//! flushes, condemned files. Of inputs that are takeovers their rows are carried over as they are (R15, R21, R23).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::bytes::Cursor;
use fieldstone_format::log::{self, LogHeader, SideRecord};
use fieldstone_format::owner::Owner;
use fieldstone_format::table::{BlockSink, TableBuilder, TableRef};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{
    AttemptRow, CondemnedRow, DecisionRow, Facts, FlushRow, NameRow, PreparedRow, StoreRecordRow,
    TransactionRow, flush_key, taken_key,
};
use fieldstone_format::{Id, crc, data, log_end, schema_extension};

use super::ended_log::{EmptyLog, EndedLog, LogCommit};
use super::inputs::Inputs;
use crate::medium::Medium;
use crate::medium::posix::There;
use crate::takeover::Takeover;

/// How long flushes of clients are remembered, nanoseconds (R71).
const FLUSHES_KEPT: i64 = 24 * 3_600_000_000_000;

/// Rows by key.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The small tables of a takeover.
#[derive(Debug, Default)]
pub struct SmallTables {
    names: BTreeMap<Id, NameRow>,
    facts: BTreeSet<Facts>,
    attempts: BTreeMap<String, AttemptRow>,
    transactions: BTreeMap<Id, TransactionRow>,
    records: Rows,
    flushes: BTreeMap<Vec<u8>, FlushRow>,
    condemned: BTreeMap<String, CondemnedRow>,
    /// By log, its row of facts and its attempt, which have numbers once all are known.
    of_log: HashMap<Id, (Facts, Option<String>)>,
    /// The greatest stamp of a commit.
    pub newest: u64,
}

impl SmallTables {
    /// The tables of these inputs, made at a time.
    pub fn gather(inputs: &Inputs, medium: &dyn Medium, now: i64) -> Result<SmallTables> {
        let mut tables = SmallTables::default();
        for takeover in &inputs.takeovers {
            tables.newest = tables.newest.max(takeover.header.newest);
            tables.add_takeover(inputs, takeover, now).map_err(|e| takeover.named(e))?;
        }
        for log in &inputs.logs {
            tables.newest = tables.newest.max(log.log.record.stamp);
            tables.add_log(inputs, log, now);
            for commit in &log.commits {
                tables.add_records(inputs.user, log, commit, medium)?;
            }
        }
        inputs.empty.iter().for_each(|log| tables.add_empty(inputs.number, log));
        tables.number_facts();
        for (id, row) in &mut tables.transactions {
            if inputs.endings.seals(*id) {
                row.sealed = inputs.number;
            }
            row.decisions.sort_by_key(|row| (row.stamp, row.writer));
        }
        if let Some(plan) = &inputs.purge {
            let stays = |writer: Id, number: u32| !plan.condemned.contains(&(writer, number));
            for (writer, row) in &mut tables.names {
                row.data_logs.retain(|(number, _)| stays(*writer, *number));
            }
        }
        tables.condemn(inputs, medium, now)?;
        Ok(tables)
    }

    fn add_takeover(&mut self, inputs: &Inputs, takeover: &Arc<Takeover>, now: i64) -> Result<()> {
        let (mut facts, mut attempts) = (Vec::new(), Vec::new());
        takeover.each_below(TakeoverTable::Facts, &[], |key, _| {
            facts.push(Facts::decode(key)?);
            Ok(())
        })?;
        takeover.each_below(TakeoverTable::Attempts, &[], |key, value| {
            let name = std::str::from_utf8(key)
                .map_err(|_| Error::corrupt("the name of an attempt is not UTF-8"))?;
            attempts.push(name.to_owned());
            self.add_attempt(name, AttemptRow::decode(value)?);
            Ok(())
        })?;
        let missing = || Error::corrupt("a log names a missing row");
        let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        takeover.each_log(|log| {
            let facts = facts.get(at(log.row.facts)).ok_or_else(missing)?.clone();
            let attempt = log.row.attempt.map(|number| attempts.get(at(number)).cloned().ok_or_else(missing));
            self.of_log.insert(log.writer, (facts, attempt.transpose()?));
            self.names.insert(log.writer, (*log.row).clone());
            Ok(())
        })?;
        takeover.each_below(TakeoverTable::Transactions, &[], |key, value| {
            let id = Cursor::new(key).id()?;
            if inputs.endings.is_over(id) {
                return Ok(());
            }
            let row = TransactionRow::decode(id, value)?;
            let known = self.transactions.entry(id).or_default();
            if !planted::is(Planted::TakeoverWithoutSeals) {
                known.sealed = known.sealed.max(row.sealed);
            }
            known.decisions.extend(row.decisions);
            known.prepared.extend(row.prepared);
            Ok(())
        })?;
        takeover.each_below(TakeoverTable::StoreRecords, &[], |key, value| {
            self.records.insert(key.to_vec(), value.to_vec());
            Ok(())
        })?;
        takeover.each_below(TakeoverTable::Flushes, &[], |key, value| {
            self.add_flush(key.to_vec(), FlushRow::decode(value)?, now);
            Ok(())
        })?;
        takeover.each_below(TakeoverTable::Condemned, &[], |key, value| {
            let path = String::from_utf8_lossy(key).into_owned();
            self.condemned.insert(path, CondemnedRow::decode(value)?);
            Ok(())
        })
    }

    fn add_attempt(&mut self, name: &str, row: AttemptRow) {
        let known = self.attempts.entry(name.to_owned()).or_insert(row);
        if (row.began, row.writer) < (known.began, known.writer) {
            *known = row;
        }
    }

    fn add_flush(&mut self, key: Vec<u8>, row: FlushRow, now: i64) {
        if now.saturating_sub(row.time) > FLUSHES_KEPT {
            return;
        }
        let known = self.flushes.entry(key).or_insert(row);
        if row.repetition > known.repetition {
            *known = row;
        }
    }

    fn add_log(&mut self, inputs: &Inputs, ended: &EndedLog, now: i64) {
        let (log, header) = (&ended.log, &ended.log.header);
        let writer = log.writer;
        let facts = facts(header);
        let attempt = log.record.attempt.as_ref();
        if let Some(attempt) = attempt {
            self.add_attempt(&attempt.name, AttemptRow { began: attempt.began, writer });
        }
        self.of_log.insert(writer, (facts, attempt.map(|attempt| attempt.name.clone())));
        let row = NameRow {
            taken: inputs.number,
            sequence: log.record.sequence,
            end: log.ends.end(),
            hash: log.ends.hash,
            stamp: log.record.stamp,
            time: log.record.time,
            began: ended.commits.first().map_or(log.record.stamp, |commit| commit.stamp),
            created: header.created,
            uid: header.uid,
            process: header.process,
            rank: header.origin.rank,
            how: ended.how,
            facts: 0,
            attempt: None,
            data_logs: log.record.data_logs.clone(),
        };
        self.names.insert(writer, row);
        for commit in &ended.commits {
            for flush in &commit.flushes {
                let row = FlushRow {
                    repetition: flush.repetition,
                    writer,
                    sequence: commit.sequence,
                    time: commit.time,
                };
                self.add_flush(flush_key(flush.session, flush.number), row, now);
            }
            self.add_transactions(inputs, writer, commit);
        }
    }

    /// A log without a commit has a row all the same: it says that nothing of its writer counts (R65).
    fn add_empty(&mut self, number: u64, log: &EmptyLog) {
        let header = &log.header;
        self.of_log.insert(log.writer, (facts(header), None));
        let row = NameRow {
            taken: number,
            sequence: 0,
            end: 0,
            hash: 0,
            stamp: 0,
            time: 0,
            began: 0,
            created: header.created,
            uid: header.uid,
            process: header.process,
            rank: header.origin.rank,
            how: log.how,
            facts: 0,
            attempt: None,
            data_logs: Vec::new(),
        };
        self.names.insert(log.writer, row);
    }

    fn add_transactions(&mut self, inputs: &Inputs, writer: Id, commit: &LogCommit) {
        let is_forgotten = |id: Id| inputs.endings.is_over(id);
        let left_out = planted::is(Planted::TakeoverWithoutDecisions);
        let decision = commit.decision.clone().filter(|decision| !is_forgotten(decision.transaction));
        if let Some(decision) = decision.filter(|_| !left_out) {
            let row = self.transactions.entry(decision.transaction).or_default();
            row.decisions.push(DecisionRow {
                stamp: commit.stamp,
                writer,
                sequence: commit.sequence,
                decision,
            });
        }
        let Some(transaction) = commit.transaction.filter(|id| !is_forgotten(*id)) else { return };
        let prepared = &mut self.transactions.entry(transaction).or_default().prepared;
        match prepared.iter_mut().find(|row| row.writer == writer) {
            Some(row) => (row.sequence, row.fields) = (commit.sequence, row.fields + commit.fields),
            None => prepared.push(PreparedRow {
                writer,
                sequence: commit.sequence,
                fields: commit.fields,
                since: commit.time,
            }),
        }
    }

    /// The store's own records of a commit.
    fn add_records(
        &mut self,
        user: u32,
        ended: &EndedLog,
        commit: &LogCommit,
        medium: &dyn Medium,
    ) -> Result<()> {
        let writer = ended.log.writer;
        for (index, record) in side_records(medium, writer, commit)?.into_iter().enumerate() {
            if !schema_extension::KINDS.contains(&record.kind) {
                continue;
            }
            let (key, value) = StoreRecordRow {
                stamp: commit.stamp,
                writer,
                sequence: commit.sequence,
                index: index as u32,
                owner: Owner::User(user),
                time: commit.time,
                record,
            }
            .encode();
            self.records.insert(key, value);
        }
        Ok(())
    }

    fn number_facts(&mut self) {
        self.facts = self.of_log.values().map(|(facts, _)| facts.clone()).collect();
        let facts: HashMap<&Facts, u64> = self.facts.iter().zip(0..).collect();
        let attempts: HashMap<&str, u64> = self.attempts.keys().map(String::as_str).zip(0..).collect();
        for (writer, row) in &mut self.names {
            if let Some((of, attempt)) = self.of_log.get(writer) {
                row.facts = facts.get(of).copied().unwrap_or(0);
                row.attempt = attempt.as_ref().and_then(|name| attempts.get(name.as_str()).copied());
            }
        }
    }

    /// Names the files that nothing needs any more once the takeover is there, and forgets those that are gone.
    fn condemn(&mut self, inputs: &Inputs, medium: &dyn Medium, now: i64) -> Result<()> {
        let Some(files) = medium.files() else { return Ok(()) };
        let there = There::of(files)?;
        let (is_there, in_data) = (|path: &str| there.has(path), &there.in_data);
        self.condemned.retain(|path, _| is_there(path));
        let row = CondemnedRow { since: now, number: inputs.number };
        let mut add = |path: String| {
            if is_there(&path) {
                self.condemned.entry(path).or_insert(row);
            }
        };
        let living = inputs.logs.iter().map(|ended| ended.log.writer);
        for writer in living.chain(inputs.empty.iter().map(|empty| empty.writer)) {
            for name in [log::file_name(writer), log_end::ending_name(writer), log_end::file_name(writer)] {
                add(format!("logs/{name}"));
            }
        }
        // R65: no commit of theirs counts, so that nothing names their data.
        let empty: HashSet<Id> = inputs.empty.iter().map(|empty| empty.writer).collect();
        let of_empty =
            |name: &&String| data::parse_file_name(name).is_some_and(|(id, _)| empty.contains(&id));
        in_data.iter().filter(of_empty).for_each(|name| add(format!("data/{name}")));
        let purged = inputs.purge.iter().flat_map(|plan| &plan.condemned);
        purged.for_each(|(writer, number)| add(format!("data/{}", data::file_name(*writer, *number))));
        inputs.purge.iter().flat_map(|plan| plan.beside.keys()).for_each(|path| add(path.clone()));
        for takeover in &inputs.takeovers {
            add(takeover.shown.clone());
            for (number, _) in &takeover.record.data_logs {
                add(format!("data/{}", data::file_name(takeover.header.id, *number)));
            }
        }
        Ok(())
    }

    /// The number of a log in the table of names.
    pub fn numbers(&self) -> HashMap<Id, u64> {
        self.names.keys().copied().zip(0..).collect()
    }

    /// Writes the tables.
    pub fn write(
        &self,
        sink: &mut dyn BlockSink,
        add: &mut dyn FnMut(TakeoverTable, Option<TableRef>),
    ) -> Result<()> {
        let names = self.names.iter().map(|(writer, row)| (writer.0.to_vec(), row.encode()));
        add(TakeoverTable::Names, table(names, sink)?);
        let transactions = self.transactions.iter().map(|(id, row)| (id.0.to_vec(), row.encode()));
        add(TakeoverTable::Transactions, table(transactions, sink)?);
        let records = self.records.iter().map(|(key, value)| (key.clone(), value.clone()));
        add(TakeoverTable::StoreRecords, table(records, sink)?);
        let attempts = self.attempts.iter().map(|(name, row)| (name.clone().into_bytes(), row.encode()));
        add(TakeoverTable::Attempts, table(attempts, sink)?);
        let facts: BTreeSet<Vec<u8>> = self.facts.iter().map(Facts::encode).collect();
        add(TakeoverTable::Facts, table(facts.into_iter().map(|key| (key, Vec::new())), sink)?);
        let flushes = self.flushes.iter().map(|(key, row)| (key.clone(), row.encode()));
        add(TakeoverTable::Flushes, table(flushes, sink)?);
        let taken: BTreeSet<Vec<u8>> =
            self.names.iter().map(|(writer, row)| taken_key(row.taken, *writer)).collect();
        add(TakeoverTable::Taken, table(taken.into_iter().map(|key| (key, Vec::new())), sink)?);
        let condemned = self.condemned.iter().map(|(path, row)| (path.clone().into_bytes(), row.encode()));
        add(TakeoverTable::Condemned, table(condemned, sink)?);
        Ok(())
    }
}

/// The facts about a writer, by the header of its log.
fn facts(header: &LogHeader) -> Facts {
    Facts {
        host: header.host.clone(),
        user: header.user.clone(),
        program: header.program.clone(),
        job: header.origin.job.clone(),
    }
}

/// Writes a table of rows in order.
pub fn table(
    rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    sink: &mut dyn BlockSink,
) -> Result<Option<TableRef>> {
    let mut builder = TableBuilder::new();
    for (key, value) in rows {
        builder.push(&key, &value, sink)?;
    }
    builder.finish(sink)
}

/// The side records of a commit, compared with their checksum.
pub fn side_records(medium: &dyn Medium, writer: Id, commit: &LogCommit) -> Result<Vec<SideRecord>> {
    if commit.side_count == 0 {
        return Ok(Vec::new());
    }
    let bytes = medium.read_vec(writer, 0, commit.side.offset, commit.side.length)?;
    if crc(&bytes) != commit.side.crc {
        return Err(Code::Checksum.error("side records do not match their checksum"));
    }
    log::decode_side(&bytes, commit.side_count)
}
