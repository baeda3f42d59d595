//! Losses that somebody accepted (J-36): what they give up never counts, whatever comes back of it.
//!
//! An acceptance counts where it was made by root, by the owner of the folder of logs, or by whoever owns the log of the
//! writer whose file it concerns. Of two, the older one holds first: one whose own commit an older one has given up does
//! not count.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use fieldstone_format::Id;
use fieldstone_format::acceptance::Lost;

use super::{AcceptedLoss, SnapshotLog};
use crate::takeover::Takeovers;

/// The user who may do anything.
const ROOT: u32 = 0;

/// The acceptances that count.
#[derive(Debug, Clone, Default)]
pub struct Accepted {
    all: Vec<Arc<AcceptedLoss>>,
    /// Of logs: the last commit that counts.
    ends: HashMap<Id, u64>,
    /// Data logs that are given up as a whole.
    files: HashSet<(Id, u32)>,
    /// Entries that are given up: writer, sequence, ordinal.
    entries: HashSet<(Id, u64, u64)>,
    /// Blocks of indexes that are given up: log or takeover, file, offset.
    blocks: HashSet<(Id, u32, u64)>,
}

impl Accepted {
    /// Those that count of all that stand in logs and takeovers; `owner`: whose the log of a writer is, or was.
    pub fn find(
        all: impl Iterator<Item = Arc<AcceptedLoss>>,
        folder_owner: Option<u32>,
        owner: impl Fn(Id) -> Option<u32>,
    ) -> Accepted {
        let mut all: Vec<Arc<AcceptedLoss>> = all.collect();
        all.sort_by_key(|loss| (loss.stamp, loss.log, loss.sequence));
        let mut accepted = Accepted::default();
        for loss in all {
            let may = folder_owner.is_none_or(|owner| owner == loss.user)
                || loss.user == ROOT
                || owner(loss.acceptance.writer) == Some(loss.user);
            if may && accepted.end(loss.log).is_none_or(|end| loss.sequence <= end) {
                accepted.take(loss);
            }
        }
        accepted
    }

    fn take(&mut self, loss: Arc<AcceptedLoss>) {
        let (writer, number) = (loss.acceptance.writer, loss.acceptance.number);
        match &loss.acceptance.lost {
            Lost::Beyond { last, .. } => {
                let end = self.ends.entry(writer).or_insert(*last);
                *end = (*end).min(*last);
            }
            Lost::Whole => drop(self.files.insert((writer, number))),
            Lost::Entries(entries) => self.entries.extend(entries.iter().map(|(s, o)| (writer, *s, *o))),
            Lost::Index(blocks) => self.blocks.extend(blocks.iter().map(|(f, o)| (writer, *f, *o))),
        }
        self.all.push(loss);
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> &[Arc<AcceptedLoss>] {
        &self.all
    }

    /// The last commit of a log that counts, where the rest was given up.
    pub fn end(&self, log: Id) -> Option<u64> {
        self.ends.get(&log).copied()
    }

    /// Logs whose end was given up.
    pub fn ended(&self) -> impl Iterator<Item = Id> {
        self.ends.keys().copied()
    }

    /// Whether a log has commits up to a mark that were given up.
    pub fn is_beyond(&self, log: Id, mark: u64) -> bool {
        self.end(log).is_some_and(|end| mark > end)
    }

    /// Whether a data log was given up as a whole.
    pub fn has_file(&self, writer: Id, number: u32) -> bool {
        self.files.contains(&(writer, number))
    }

    /// Whether anything of a file was given up.
    pub fn concerns(&self, writer: Id, number: u32) -> bool {
        self.all.iter().any(|loss| (loss.acceptance.writer, loss.acceptance.number) == (writer, number))
    }

    /// Whether entries of a commit were given up by their names.
    pub fn concerns_commit(&self, writer: Id, sequence: u64) -> bool {
        self.entries.iter().any(|(of, number, _)| (*of, *number) == (writer, sequence))
    }

    /// Whether a block of a log's index was given up that lies in the log between two addresses.
    pub fn has_block_within(&self, log: Id, range: &Range<u64>) -> bool {
        self.blocks.iter().any(|(of, file, at)| (*of, *file) == (log, 0) && range.contains(at))
    }

    /// Lets the readers of these logs and takeovers pass over blocks that were given up.
    pub(super) fn give_up_blocks(&self, logs: &[Arc<SnapshotLog>], takeovers: &Takeovers) {
        for (of, file, offset) in &self.blocks {
            let segments = logs.iter().filter(|log| log.writer == *of).flat_map(|log| &log.segments);
            segments
                .filter(|segment| segment.reference.file == *file)
                .for_each(|segment| segment.give_up(*offset));
            let takeover = takeovers.all().iter().find(|takeover| takeover.header.id == *of);
            takeover.iter().for_each(|takeover| takeover.give_up((*file, *offset)));
        }
    }

    /// Whether entries are to be looked at: some were given up.
    pub fn has_entries(&self) -> bool {
        !self.files.is_empty() || !self.entries.is_empty()
    }

    /// Whether an entry was given up: by its name, or with the data log that its bytes are in.
    pub fn hides(&self, entry: (Id, u64, u64), file: Option<(Id, u32)>) -> bool {
        self.entries.contains(&entry) || file.is_some_and(|(writer, file)| self.has_file(writer, file))
    }
}
