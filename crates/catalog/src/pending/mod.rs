//! Records on their way into the next commit of a session, in the order of the calls. Single attributes at
//! different places are gathered into few records first.
//!
//! The module counts attributes until they are applied, so that large flushes are not left to the next read.

mod attribute_buffer;

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_format::catalog::{AttributeBatch, Record};
use fieldstone_journal::participant::Buffered;
use fieldstone_journal::session::SessionKey;
use fieldstone_journal::{Journal, Session};

use attribute_buffer::AttributeBatches;

/// The state that one process keeps for sessions.
#[derive(Debug)]
pub struct Pending {
    journal: Arc<Journal>,
    attributes: Buffered<AttributeBatches>,
    rows: Mutex<AttributeCounts>,
}

/// Attributes on their way into the engine.
#[derive(Debug, Default)]
struct AttributeCounts {
    /// Attributes handed to sessions since their last flush.
    sessions: HashMap<SessionKey, u64>,
    /// Attributes flushed and not applied.
    unapplied: u64,
}

impl AttributeCounts {
    /// Counts a flush of a session; returns the number of attributes that wait to be applied.
    fn flush(&mut self, session: SessionKey) -> u64 {
        self.unapplied += self.sessions.remove(&session).unwrap_or(0);
        self.unapplied
    }
}

impl Pending {
    pub fn new(journal: Arc<Journal>) -> Pending {
        Pending { journal, attributes: Buffered::default(), rows: Mutex::default() }
    }

    /// Adds records to the next commit of a session, after all that were added before.
    pub fn emit(&self, session: &Session, records: Vec<Record>) -> Result<()> {
        let rows = records.iter().map(|record| match record {
            Record::Attributes(batch) => batch.rows as u64,
            _ => 0,
        });
        self.count(session, rows.sum());
        self.hand_over(session);
        self.journal.unflushed().add(records.iter().map(Record::encode).collect(), session)
    }

    /// Adds one attribute, which may become part of a larger record. Until then the journal counts it, and
    /// knows which session a failure concerns.
    pub fn buffer(&self, session: &Session, single: AttributeBatch) {
        self.count(session, 1);
        self.attributes.put(self.journal.unflushed(), session, 1, |batches| batches.add(single));
    }

    fn count(&self, session: &Session, rows: u64) {
        *self.rows.lock().sessions.entry(session.key()).or_default() += rows;
    }

    /// Hands the gathered attributes to the journal.
    pub fn hand_over(&self, session: &Session) {
        self.attributes.hand_over(self.journal.unflushed(), session);
    }

    /// Drops the records that a session holds.
    pub fn discard(&self, session: &Session) {
        self.attributes.discard(session);
        self.forget(session.key());
    }

    /// Forgets a session that has lost its records.
    pub fn forget(&self, session: SessionKey) {
        self.rows.lock().sessions.remove(&session);
    }

    /// Counts a flush of a session; returns the number of attributes that wait to be applied.
    pub fn flushed(&self, session: SessionKey) -> u64 {
        self.rows.lock().flush(session)
    }

    /// The number of attributes that are flushed and not applied.
    pub fn unapplied(&self) -> u64 {
        self.rows.lock().unapplied
    }

    /// Counts this many of them as applied.
    pub fn applied(&self, rows: u64) {
        let mut left = self.rows.lock();
        left.unapplied = left.unapplied.saturating_sub(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_format::Id;

    #[test]
    fn attributes_are_counted_by_session_until_they_are_flushed() {
        let mut counts = AttributeCounts::default();
        let (one, other) =
            (SessionKey::default(), SessionKey { transaction: Some(Id([7; 16])), ..SessionKey::default() });
        counts.sessions.extend([(one, 5), (other, 2)]);
        assert_eq!(counts.flush(one), 5);
        assert_eq!(counts.flush(one), 5, "nothing more was given");
        assert_eq!(counts.flush(other), 7);
    }
}
