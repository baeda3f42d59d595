//! The state that a read sees: everything of one instant.
//!
//! ```text
//! AsIs      the content of the engine, without a look at the logs: enough to know that something exists
//! Synced    everything that is visible to everybody
//! All(id)   that, with this handle's unflushed records and a transaction's content
//! ```

use fieldstone_journal::feed::{Commit, OWN_LOG};
use fieldstone_journal::instant::{Cursors, Instant, OwnPart, OwnRecords};
use fieldstone_journal::{Journal, Session};

/// The part of the store that a read sees.
#[derive(Debug, Clone, Copy)]
pub enum Visibility<'a> {
    /// The content of the engine.
    AsIs,
    /// Everything that is visible to everybody.
    Synced,
    /// That, with the unflushed records of this session and the prepared ones of its transaction.
    All(&'a Session),
}

/// The sequence number that stands for the future commit of unflushed records outside of transactions.
pub const OWN: u64 = 1;
/// The same for a transaction.
pub const OWN_TRANSACTION: u64 = 2;

/// The state that a read sees: the content of the logs and its session's unflushed records, of one instant.
#[derive(Debug, Clone)]
pub struct ConsistentRead {
    /// The instant.
    pub seen: Instant,
    /// Whether no newer feed is available.
    pub newest: bool,
}

impl ConsistentRead {
    /// Whether the session has unflushed records.
    pub fn has_own(&self) -> bool {
        self.seen.pending.records() > 0
    }

    /// The unflushed records of the read's session; `None` if some of them are flushed or dropped by now.
    pub fn unflushed(&self, journal: &Journal, session: &Session) -> Option<OwnRecords> {
        match &self.seen.held {
            None => OwnRecords::between(journal.unflushed(), Cursors::default(), self.seen.pending, session),
            held => held.clone(),
        }
    }
}

/// Unflushed records, as commits of a log that does not exist.
pub fn own_commits(own: OwnRecords, user: u32) -> Vec<Commit> {
    let commit = |part: OwnPart| Commit {
        writer: OWN_LOG,
        owner: user,
        sequence: if part.within { OWN_TRANSACTION } else { OWN },
        stamp: u64::MAX,
        time: 0,
        transaction: None,
        order: None,
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
