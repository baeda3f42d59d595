//! The choice of index entries that a follower is given.

use std::collections::{HashMap, HashSet};

use fieldstone_format::Id;
use fieldstone_format::segment::CommitInfo;
use fieldstone_format::takeover::TakeoverTable;

use crate::entry_source::{EntryCommit, EntrySource};
use crate::snapshot::{Selected, Snapshot};

/// The entries that somebody asks for.
#[derive(Debug)]
pub(super) enum EntriesAsked {
    /// Of one log, by commits behind a mark.
    Log { writer: Id, after: u64 },
    /// Of logs that takeovers replace: of all, or of these, by commits behind a mark.
    Taken(Option<HashMap<Id, u64>>),
    /// Prepared under a transaction, in these logs or in all.
    Under { transaction: Id, logs: Option<HashSet<Id>> },
    /// Under keys that one of these selects.
    Selected(Vec<Selected>),
}

impl EntriesAsked {
    /// Whether a source may hold such entries; damage may hide some.
    pub(super) fn may_be_in(&self, snapshot: &Snapshot, source: usize) -> bool {
        match (self, &snapshot.sources[source]) {
            (EntriesAsked::Log { writer, after }, EntrySource::Segment(segment, _)) => {
                segment.writer == *writer && snapshot.head(*writer) > *after
            }
            (EntriesAsked::Log { writer, .. }, EntrySource::Takeover(takeover)) => {
                takeover.log(*writer).map_or(true, |log| log.is_some())
            }
            (EntriesAsked::Taken(_), EntrySource::Segment(..)) => false,
            (EntriesAsked::Taken(None), EntrySource::Takeover(_)) => true,
            (EntriesAsked::Taken(Some(behind)), EntrySource::Takeover(takeover)) => {
                behind.keys().any(|writer| takeover.log(*writer).map_or(true, |log| log.is_some()))
            }
            (EntriesAsked::Under { logs, .. }, EntrySource::Segment(segment, _)) => {
                logs.as_ref().is_none_or(|logs| logs.contains(&segment.writer))
            }
            (EntriesAsked::Under { transaction, .. }, EntrySource::Takeover(takeover)) => {
                let row = takeover.value(TakeoverTable::Transactions, &transaction.0);
                row.map_or(true, |row| row.is_some())
            }
            (EntriesAsked::Selected(selected), EntrySource::Segment(segment, _)) => {
                let meta = segment.meta();
                let datasets = meta.as_ref().ok().and_then(|meta| meta.datasets.as_ref());
                datasets.is_none_or(|datasets| {
                    datasets.iter().any(|(dataset, _)| selected.iter().any(|one| one.selects_in(dataset)))
                })
            }
            (EntriesAsked::Selected(_), EntrySource::Takeover(_)) => true,
        }
    }

    /// Whether a segment with these commits has such entries.
    pub(super) fn is_in(&self, commits: &[CommitInfo]) -> bool {
        match self {
            EntriesAsked::Log { after, .. } => commits.last().is_some_and(|commit| commit.sequence > *after),
            EntriesAsked::Taken(_) => true,
            EntriesAsked::Under { transaction, .. } => {
                commits.iter().any(|commit| commit.transaction == Some(*transaction))
            }
            EntriesAsked::Selected(_) => true,
        }
    }

    /// Whether an entry under a key may be such.
    pub(super) fn is_under(&self, key: &[u8]) -> bool {
        match self {
            EntriesAsked::Selected(selected) => selected.iter().any(|one| one.selects(key)),
            _ => true,
        }
    }

    /// Whether the entries of a commit are such.
    pub(super) fn is(&self, commit: &EntryCommit) -> bool {
        match self {
            EntriesAsked::Log { writer, after } => commit.writer == *writer && commit.sequence > *after,
            EntriesAsked::Taken(None) => true,
            EntriesAsked::Taken(Some(behind)) => {
                behind.get(&commit.writer).is_some_and(|after| commit.sequence > *after)
            }
            EntriesAsked::Under { transaction, logs } => {
                commit.transaction == Some(*transaction)
                    && logs.as_ref().is_none_or(|logs| logs.contains(&commit.writer))
            }
            EntriesAsked::Selected(_) => true,
        }
    }
}
