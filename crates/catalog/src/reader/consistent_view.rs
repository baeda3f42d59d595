//! The view of a read: all of one instant.
//!
//! ```text
//! AsIs      what stands in the engine, without a look at the logs: enough to know that something is there
//! Synced    all that is visible to everybody
//! All(id)   that, what this handle has not flushed, and what a transaction holds
//! ```

use fieldstone_journal::feed::{Commit, OWN_LOG};
use fieldstone_journal::instant::{Cursors, Instant, OwnPart, OwnRecords};
use fieldstone_journal::{Journal, Session};

/// The view of a read.
#[derive(Debug, Clone, Copy)]
pub enum Visibility<'a> {
    /// The content of the engine.
    AsIs,
    /// All that is visible to everybody.
    Synced,
    /// That, and what this session has not flushed, with what its transaction has prepared.
    All(&'a Session),
}

/// Number that stands for the commit in which what is outside of transactions will be flushed.
pub const OWN: u64 = 1;
/// The same for a transaction.
pub const OWN_TRANSACTION: u64 = 2;

/// The sight of a read: the content of the logs and what its session has not flushed, of one instant.
#[derive(Debug, Clone)]
pub struct ConsistentView {
    /// The instant.
    pub seen: Instant,
    /// Whether nobody can give a newer feed.
    pub newest: bool,
}

impl ConsistentView {
    /// Whether the session has something that is not flushed.
    pub fn has_own(&self) -> bool {
        self.seen.pending.records() > 0
    }

    /// Records of a view that its session has not flushed; `None` where some of it is flushed or gone by now.
    pub fn unflushed(&self, journal: &Journal, session: &Session) -> Option<OwnRecords> {
        match &self.seen.held {
            None => OwnRecords::between(journal.unflushed(), Cursors::default(), self.seen.pending, session),
            held => held.clone(),
        }
    }
}

/// Records that are not flushed, as commits of the log that nobody has.
pub fn own_commits(own: OwnRecords, user: u32) -> Vec<Commit> {
    let commit = |part: OwnPart| Commit {
        writer: OWN_LOG,
        owner: user,
        sequence: if part.within { OWN_TRANSACTION } else { OWN },
        stamp: u64::MAX,
        time: 0,
        transaction: None,
        side: part.records,
    };
    own.parts.into_iter().map(commit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_records_are_commits_of_no_log() {
        let part = |within| OwnPart { within, before: 0, records: Vec::new() };
        let own = OwnRecords { parts: vec![part(false), part(true)], end: Cursors::default() };
        let commits = own_commits(own, 1000);
        let sequences: Vec<u64> = commits.iter().map(|commit| commit.sequence).collect();
        assert_eq!(sequences, [OWN, OWN_TRANSACTION]);
        assert!(commits.iter().all(|commit| commit.writer == OWN_LOG && commit.owner == 1000));
    }
}
