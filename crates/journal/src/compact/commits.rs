//! The tables of commits and of side records: rows of older takeovers as they are, with those of the logs among them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, Result};
use fieldstone_format::log::encode_side;
use fieldstone_format::origin::{EntryOrigin, OriginRank};
use fieldstone_format::table::{BlockSink, TableBuilder, TableRef};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{CommitRow, commit_key, parse_commit_key, parse_side_key, side_key};
use fieldstone_format::{Id, schema_extension};

use super::ended_log::EndedLog;
use super::endings::Fate;
use super::inputs::Inputs;
use super::tables::side_records;
use crate::medium::Medium;
use crate::takeover::{Rows, Takeover};

/// Sequence of a commit, and the origin of a row of it.
type RowPlace = (u64, Option<OriginRank>);

/// In the place of a number: the commit is gone, with its entries and side records.
const GONE: u32 = u32::MAX;

/// The numbers that commits have in the table of a takeover.
#[derive(Debug, Default)]
pub struct CommitNumbers {
    /// Of each log: sequence and origin of its rows with their numbers, ascending.
    logs: Vec<Vec<(RowPlace, u32)>>,
    /// Of each takeover, by the number that it gave them.
    takeovers: Vec<Vec<u32>>,
    /// The stamp of each commit.
    pub stamps: Vec<u64>,
    /// Numbers of commits that transactions prepared, and that no order makes visible yet.
    prepared: HashSet<u32>,
    /// Log and sequence of commits that are gone: those of forgotten transactions that never were visible.
    gone: HashSet<(Id, u64)>,
}

impl CommitNumbers {
    /// Writes the table of commits.
    pub fn write(inputs: &Inputs, sink: &mut dyn BlockSink) -> Result<(CommitNumbers, Option<TableRef>)> {
        let mut numbers = CommitNumbers {
            logs: vec![Vec::new(); inputs.logs.len()],
            takeovers: vec![Vec::new(); inputs.takeovers.len()],
            stamps: Vec::new(),
            prepared: HashSet::new(),
            gone: HashSet::new(),
        };
        let mut builder = TableBuilder::new();
        let mut streams = Streams::new(&inputs.takeovers, TakeoverTable::Commits)?;
        for (log, ended) in inputs.logs.iter().enumerate() {
            for (key, row, of) in log_rows(ended, inputs.number) {
                streams.pass(&key, |takeover, key, value| {
                    match numbers.note_taken(inputs, takeover, builder.rows(), (key, value))? {
                        Some(value) => builder.push(key, &value, sink),
                        None => Ok(()),
                    }
                })?;
                if let Some(transaction) = row.transaction
                    && inputs.endings.fate(transaction, ended.log.writer, of.0) == Fate::Gone
                {
                    numbers.logs[log].push((of, GONE));
                    numbers.gone.insert((ended.log.writer, of.0));
                    continue;
                }
                let own = number(builder.rows())?;
                numbers.logs[log].push((of, own));
                numbers.stamps.push(row.stamp);
                if row.transaction.is_some() {
                    numbers.prepared.insert(own);
                }
                builder.push(&key, &row.encode(), sink)?;
            }
            // By sequence and origin, whichever way the rows of one commit are numbered.
            numbers.logs[log].sort_unstable();
        }
        streams.pass_all(|takeover, key, value| {
            match numbers.note_taken(inputs, takeover, builder.rows(), (key, value))? {
                Some(value) => builder.push(key, &value, sink),
                None => Ok(()),
            }
        })?;
        Ok((numbers, builder.finish(sink)?))
    }

    /// Numbers a commit of a takeover, and gives its new value; `None` where it is gone.
    fn note_taken<'a>(
        &mut self,
        inputs: &Inputs,
        takeover: usize,
        at: u64,
        (key, value): (&[u8], &'a [u8]),
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let row = CommitRow::decode(value)?;
        let (writer, sequence, _) = parse_commit_key(key)?;
        let fate = row.transaction.map_or(Fate::Stays, |id| inputs.endings.fate(id, writer, sequence));
        if fate == Fate::Gone {
            self.takeovers[takeover].push(GONE);
            self.gone.insert((writer, sequence));
            return Ok(None);
        }
        let own = number(at)?;
        self.takeovers[takeover].push(own);
        self.stamps.push(row.stamp);
        Ok(Some(match fate {
            Fate::Visible(order) => {
                CommitRow { transaction: None, order: Some(order), ..row }.encode().into()
            }
            _ => {
                if row.transaction.is_some() {
                    self.prepared.insert(own);
                }
                value.into()
            }
        }))
    }

    /// Whether what a commit with this number published is prepared, and waits for a decision or for an end of it.
    pub fn is_prepared(&self, number: u32) -> bool {
        self.prepared.contains(&number)
    }

    /// The number of a commit of a log, and of its entries with an origin; `None` where it is gone.
    pub fn of_log(&self, log: usize, sequence: u64, origin: Option<&EntryOrigin>) -> Result<Option<u32>> {
        let rows = &self.logs[log];
        let wanted = (sequence, origin.map(EntryOrigin::rank));
        let found = rows.binary_search_by_key(&wanted, |(of, _)| *of);
        found
            .map(|i| Some(rows[i].1).filter(|number| *number != GONE))
            .map_err(|_| Error::corrupt("a segment names a commit that its log does not have"))
    }

    /// The number of a commit that a takeover gave another one; `None` where it is gone.
    pub fn of_takeover(&self, takeover: usize, number: u64) -> Result<Option<u32>> {
        let found = usize::try_from(number).ok().and_then(|i| self.takeovers[takeover].get(i));
        let found = *found.ok_or_else(|| Error::corrupt("an index entry names no commit"))?;
        Ok(Some(found).filter(|number| *number != GONE))
    }
}

fn number(row: u64) -> Result<u32> {
    let number = u32::try_from(row).ok().filter(|number| *number != GONE);
    number.ok_or_else(|| Error::internal("a takeover has more than 2^32 commits"))
}

/// Key, row and place of a commit.
type LogRow = (Vec<u8>, CommitRow, RowPlace);

/// The rows of a log's commits, in the order of their keys.
fn log_rows(ended: &EndedLog, taken: u64) -> Vec<LogRow> {
    let writer = ended.log.writer;
    let mut rows = Vec::with_capacity(ended.commits.len() + ended.origins.len());
    for commit in &ended.commits {
        let row = CommitRow {
            stamp: commit.stamp,
            time: commit.time,
            transaction: commit.transaction,
            origin: None,
            order: None,
            view: commit.view,
            taken,
            fields: commit.fields,
            bytes: commit.bytes,
        };
        let sequence = commit.sequence;
        rows.push((commit_key(writer, sequence, 0), row.clone(), (sequence, None)));
        let of_commit = ended.origins.iter().filter(|((of, _), _)| *of == sequence);
        for (index, ((_, rank), origin)) in (1..).zip(of_commit) {
            let row = CommitRow { origin: Some(origin.clone()), ..row.clone() };
            rows.push((commit_key(writer, sequence, index), row, (sequence, Some(*rank))));
        }
    }
    rows
}

/// Writes the table of side records of catalog and graph.
pub fn write_side(
    inputs: &Inputs,
    numbers: &CommitNumbers,
    medium: &dyn Medium,
    sink: &mut dyn BlockSink,
) -> Result<Option<TableRef>> {
    let mut builder = TableBuilder::new();
    let mut streams = Streams::new(&inputs.takeovers, TakeoverTable::Side)?;
    let is_forgotten = planted::is(Planted::TakeoverWithoutSideRecords);
    for ended in &inputs.logs {
        for commit in &ended.commits {
            if numbers.gone.contains(&(ended.log.writer, commit.sequence)) {
                continue;
            }
            let records = side_records(medium, ended.log.writer, commit)?;
            // All records of a commit, or none: deletions name records by their numbers.
            let is_ours = |kind: u16| !schema_extension::KINDS.contains(&kind);
            if !records.iter().any(|record| is_ours(record.kind)) || is_forgotten {
                continue;
            }
            let key = side_key(ended.log.writer, commit.sequence);
            streams
                .pass(&key, |_, key, value| push_side(inputs, numbers, (key, value), &mut builder, sink))?;
            let records = inputs.erased((ended.log.writer, commit.sequence)).unwrap_or(&records);
            builder.push(&key, &encode_side(records), sink)?;
        }
    }
    streams.pass_all(|_, key, value| push_side(inputs, numbers, (key, value), &mut builder, sink))?;
    builder.finish(sink)
}

fn push_side(
    inputs: &Inputs,
    numbers: &CommitNumbers,
    (key, value): (&[u8], &[u8]),
    builder: &mut TableBuilder,
    sink: &mut dyn BlockSink,
) -> Result<()> {
    let commit = parse_side_key(key)?;
    match inputs.erased(commit) {
        _ if numbers.gone.contains(&commit) => Ok(()),
        Some(records) => builder.push(key, &encode_side(records), sink),
        None => builder.push(key, value, sink),
    }
}

/// The rows of one table of several takeovers, in the order of their keys.
struct Streams {
    /// Cursors that stand on rows, each with the number of its takeover among the inputs.
    rows: Vec<(usize, Rows)>,
}

impl Streams {
    fn new(takeovers: &[Arc<Takeover>], table: TakeoverTable) -> Result<Streams> {
        let mut rows = Vec::new();
        for (i, takeover) in takeovers.iter().enumerate() {
            if let Some(mut cursor) = takeover.cursor(table)
                && cursor.advance().map_err(|e| takeover.named(e))?
            {
                rows.push((i, cursor));
            }
        }
        Ok(Streams { rows })
    }

    /// Hands on all rows before a key.
    fn pass(&mut self, before: &[u8], each: impl FnMut(usize, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.pass_while(|key| key < before, each)
    }

    /// Hands on all rows that are left.
    fn pass_all(&mut self, each: impl FnMut(usize, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        self.pass_while(|_| true, each)
    }

    fn pass_while(
        &mut self,
        goes: impl Fn(&[u8]) -> bool,
        mut each: impl FnMut(usize, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        // Few takeovers are merged at a time.
        while let Some(least) =
            (0..self.rows.len()).min_by(|a, b| self.rows[*a].1.key().cmp(self.rows[*b].1.key()))
        {
            let (takeover, cursor) = &mut self.rows[least];
            if !goes(cursor.key()) {
                return Ok(());
            }
            each(*takeover, cursor.key(), cursor.value())?;
            if !cursor.advance()? {
                self.rows.swap_remove(least);
            }
        }
        Ok(())
    }
}
