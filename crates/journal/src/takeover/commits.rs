//! The commits of the logs that a takeover replaces.

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::origin::EntryOrigin;
use fieldstone_format::segment::CommitInfo;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{CommitRow, commit_key, parse_commit_key};

use super::Takeover;
use crate::order::Order;

/// A commit of a log that a takeover replaces, or of its entries that were moved from one other commit.
#[derive(Debug, Clone)]
pub struct TakenCommit {
    /// Its log.
    pub writer: Id,
    /// Its content.
    pub info: CommitInfo,
    /// The commit that its entries were moved from.
    pub origin: Option<Arc<EntryOrigin>>,
    /// Its place in the order, where the decision that made it visible is forgotten.
    pub order: Option<Order>,
    /// The number of the takeover that took its log over first.
    pub taken: u64,
    /// The attempt that its log is of.
    pub attempt: Option<Arc<str>>,
    /// Entries and raw bytes that it published.
    pub published: (u64, u64),
}

impl Takeover {
    /// The commit with a number in the table of commits, as entries name it.
    pub fn commit(self: &Arc<Self>, number: u64) -> Result<TakenCommit> {
        let found = self.commits.get(number, || self.load_commits(number))?;
        found.ok_or_else(|| self.named(Error::corrupt("an index entry names no commit")))
    }

    fn load_commits(self: &Arc<Self>, number: u64) -> Result<Option<(u64, Vec<TakenCommit>)>> {
        // Neighbours are of one log.
        let mut last: Option<(Id, Option<Arc<str>>)> = None;
        self.leaf(TakeoverTable::Commits, number, |key, value| {
            let (writer, sequence, _) = parse_commit_key(key)?;
            let attempt = match &last {
                Some((of, attempt)) if *of == writer => attempt.clone(),
                _ => self.attempt_of(writer)?,
            };
            last = Some((writer, attempt.clone()));
            Ok(taken_commit((writer, sequence), CommitRow::decode(value)?, attempt))
        })
    }

    fn attempt_of(self: &Arc<Self>, writer: Id) -> Result<Option<Arc<str>>> {
        // Most stores have none: then nothing is looked up.
        if self.rows(TakeoverTable::Attempts) == 0 {
            return Ok(None);
        }
        let Some(log) = self.log(writer)? else { return Ok(None) };
        Ok(self.attempt_name(&log)?.map(Arc::from))
    }

    /// The commit of a log with a sequence.
    pub fn commit_of(self: &Arc<Self>, writer: Id, sequence: u64) -> Result<Option<TakenCommit>> {
        let Some(value) = self.value(TakeoverTable::Commits, &commit_key(writer, sequence, 0))? else {
            return Ok(None);
        };
        let row = CommitRow::decode(&value).map_err(|e| self.named(e))?;
        Ok(Some(taken_commit((writer, sequence), row, None)))
    }

    /// All commits of a log, in their order, without rows of moved entries.
    pub fn each_commit(
        self: &Arc<Self>,
        writer: Id,
        mut each: impl FnMut(TakenCommit) -> Result<()>,
    ) -> Result<()> {
        self.each_below(TakeoverTable::Commits, &writer.0, |key, value| {
            let (writer, sequence, index) = parse_commit_key(key)?;
            match index {
                0 => each(taken_commit((writer, sequence), CommitRow::decode(value)?, None)),
                _ => Ok(()),
            }
        })
    }
}

fn taken_commit((writer, sequence): (Id, u64), row: CommitRow, attempt: Option<Arc<str>>) -> TakenCommit {
    let CommitRow { stamp, time, transaction, origin, order, view, taken, fields, bytes } = row;
    let info = CommitInfo { sequence, stamp, time, transaction, origin: None, view };
    let origin = origin.map(Arc::new);
    TakenCommit { writer, info, origin, order, taken, attempt, published: (fields, bytes) }
}
