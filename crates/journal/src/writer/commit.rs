//! One commit: from a batch to the log.
//!
//! A thread that makes a commit takes the log and the batch out of the writer ([`Writer::begin`]), works without its
//! lock, and brings the log back ([`Writer::finish`], or [`Writer::fail`] after a failure). No other commit begins
//! meanwhile: a frame begins only after the sync of the one before has returned.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::is_catalog;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::log::{self, CommitRecord, Decision, Prepared, SideRecord};
use fieldstone_format::segment::CommitInfo;

use super::Writer;
use super::batch::Batch;
use super::log::Log;
use crate::author::{Author, AuthorPart, CommitFacts, Landed};
use crate::medium::{DataWriter, Unsynced, clock_stamp, is_believed};
use crate::session::{Session, SessionKey};
use crate::snapshot::{ALL_KINDS, Flushed, Snapshot};

/// The state of the rest of the store that a commit must know.
#[derive(Debug, Clone, Default)]
pub struct Horizon {
    /// The largest stamp anyone has published.
    pub max_stamp: u64,
    /// The visible state when the commit began: which transactions have ended.
    pub snapshot: Option<Arc<Snapshot>>,
}

/// The parts of the writer that a commit under way has taken out.
#[derive(Debug)]
pub struct Flight {
    session: SessionKey,
    /// The user who owns it.
    user: u32,
    /// The content to commit; none for a decision.
    batch: Option<Arc<Batch>>,
    log: Log,
    /// The greatest stamp of this writer so far.
    last_stamp: u64,
    /// Its owner.
    author: Author,
    /// The rows that he handed in.
    part: Option<AuthorPart>,
    /// Whether they are durable.
    landed: Option<Landed>,
}

/// The records to commit besides a batch.
#[derive(Debug, Default)]
pub struct Commit {
    /// The commits of others.
    pub horizon: Horizon,
    /// A decision on a transaction.
    pub decision: Option<Decision>,
    /// Side records that go with it, of no session.
    pub records: Vec<SideRecord>,
    /// Numbers of data logs, and the lengths that are durable.
    pub data_logs: Vec<(u32, u64)>,
    /// Transactions that this process opened and nobody has ended.
    pub open: Vec<Id>,
}

impl Flight {
    /// Encoded first levels that the commit writes to, or claims.
    pub fn datasets(&self) -> BTreeSet<Vec<u8>> {
        self.batch.as_ref().map(|batch| batch.datasets()).unwrap_or_default()
    }

    /// The user who owns it.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The log that the commit goes to.
    pub fn log(&self) -> Id {
        self.log.writer()
    }

    /// Files of arrays that the commit names, relative to the store's folder.
    pub fn array_files(&self) -> BTreeSet<&str> {
        self.batch.as_ref().map(|batch| batch.array_files()).unwrap_or_default()
    }

    /// The commit does not count unless it is durable by this moment.
    pub fn set_deadline(&mut self, at: i64) {
        self.log.set_deadline(at);
    }

    /// Has the author hand in what he adds. No lock is held, and nothing is written yet.
    pub fn ask_author(&mut self) {
        self.part = self.author.as_ref().map(|author| author.hand_in(self.log.store()));
    }

    /// Ends the log durably at its last commit, after a failure: [`Writer::fail`] seals it.
    pub fn end_log(&mut self) {
        self.log.end();
    }

    /// Lets the author know that the commit is durable.
    pub fn report(&self) {
        if let (Some(author), Some(landed)) = (&self.author, &self.landed) {
            author.landed(landed);
        }
    }

    /// Writes the commit; it is durable when this returns.
    pub fn write(&mut self, env: &Env, commit: Commit) -> Result<Flushed> {
        let Commit { horizon, decision, records, data_logs, mut open } = commit;
        let none = Arc::default();
        let (batch, log) = (self.batch.as_ref().unwrap_or(&none), &mut self.log);
        let (time, user) = (env.clock.now(), self.user);
        // J-7: beyond all that was visible when the flush began, whatever the clock says; and beyond all that its
        // author has read (G-31).
        let part = self.part.take().unwrap_or_default();
        let (floor, ticket) = (part.floor, part.ticket);
        let stamp = self
            .last_stamp
            .max(horizon.max_stamp)
            .max(if is_believed(floor, time) { floor } else { 0 })
            .checked_add(1)
            .ok_or_else(|| Error::internal("stamps are used up"))?
            .max(clock_stamp(time));
        let has_ended = |id| horizon.snapshot.as_ref().is_some_and(|seen| seen.has_ended(id, user));
        log.forget_left(has_ended);
        open.retain(|transaction| !has_ended(*transaction));
        let mut record = CommitRecord {
            sequence: log.next_sequence(),
            stamp,
            time,
            transaction: self.session.transaction.filter(|_| self.batch.is_some()),
            prepared: log.prepared(has_ended),
            fields: batch.len() as u64,
            bytes: batch.raw_bytes(),
            data_logs,
            side_count: (batch.side.len() + records.len()) as u64,
            decision,
            ..CommitRecord::default()
        };
        if let Some(decision) = &mut record.decision {
            if !decision.committed || decision.kinds == ALL_KINDS {
                open.retain(|transaction| *transaction != decision.transaction);
            }
            cover(decision, &log.all_prepared());
        }
        if let Some(id) = record.transaction {
            log::note_prepared(&mut record.prepared, id, record.sequence, record.fields, time);
        }
        record.open = open;
        let info = CommitInfo {
            sequence: record.sequence,
            stamp,
            time,
            transaction: record.transaction,
            origin: None,
            view: 0,
        };
        let segment = batch.segment(log.version(), log.payload_offset(), info)?;
        let store = log.store();
        let added = part.records(&CommitFacts {
            id: CommitId { store, log: log.writer(), sequence: record.sequence },
            stamp,
            time,
            fields: record.fields,
            bytes: record.bytes,
            writes: record.fields > 0 || batch.side.iter().any(is_catalog),
        })?;
        self.landed = Some(Landed { store, stamp, ticket: Some(ticket).filter(|_| !added.is_empty()) });
        record.side_count += added.len() as u64;
        let side = log::encode_side(batch.side.iter().chain(&records).chain(&added));
        let flushed = log.append(record, batch.inline_payload(), segment, &side)?;
        log.note_time(env);
        self.last_stamp = stamp;
        Ok(flushed)
    }
}

/// Lets a decision cover all that this writer has prepared: since its horizon another thread may have flushed into the
/// transaction, and its flush has returned (J-19).
fn cover(decision: &mut Decision, prepared: &[(Id, Prepared)]) {
    for (writer, own) in prepared.iter().filter(|(_, own)| own.transaction == decision.transaction) {
        match decision.covers.iter_mut().find(|(log, _)| log == writer) {
            Some((_, sequence)) => *sequence = own.sequence.max(*sequence),
            None => decision.covers.push((*writer, own.sequence)),
        }
    }
}

/// Denied where what is asked for came later into the format than the version that the store is of.
pub fn check_format(since: u32, format: u32, what: &str) -> Result<()> {
    if since <= format {
        return Ok(());
    }
    Err(Code::FormatPinned
        .error(format!("{what} needs format {since}, and the store is of format {format}"))
        .with_hint(
            "ask the owner of the store for: fieldstone upgrade STORE; older releases do not write it then",
        ))
}

impl Writer {
    /// Begins a commit for a session in a store of a version of the format: of the session's batch, or, without
    /// `flushes`, one that holds no batch. Denied where the version has no place for what the batch holds.
    pub fn begin(&mut self, session: &Session, flushes: bool, format: u32) -> Result<Flight> {
        let key = session.key();
        if let Some(own) = self.sessions.state(key).filter(|_| flushes) {
            check_format(own.batch.version(), format, "an array in a file of the store")?;
        }
        self.move_on(key, format)?;
        let log = self.log.take().ok_or_else(|| Error::internal("two commits are under way at once"))?;
        self.busy = true;
        let batch = flushes.then(|| self.sessions.take_off(key));
        // A commit without values is of who makes it.
        let author = match &batch {
            Some(batch) => batch.author().unwrap_or(session.author()).clone(),
            None => None,
        };
        let (user, last_stamp) = (session.user(&*self.env.identity), self.last_stamp);
        Ok(Flight { session: key, user, batch, log, last_stamp, author, part: None, landed: None })
    }

    /// The files that the commit's data logs have to sync before it is written; `None` if they hold nothing of it.
    pub fn unsynced(&mut self, flight: &Flight) -> Result<Option<Unsynced>> {
        match (&mut self.data, &flight.batch) {
            (Some(data), Some(batch)) if batch.spilled() => data.unsynced().map(Some),
            _ => Ok(None),
        }
    }

    /// The sync has returned: what the commit's record says of data logs.
    pub fn data_logs(&mut self, flight: &mut Flight, synced: Option<&Unsynced>) -> Result<Vec<(u32, u64)>> {
        let Some(data) = &mut self.data else { return Ok(Vec::new()) };
        if let Some(synced) = synced {
            data.note_synced(synced.upto);
        }
        if flight.batch.as_ref().is_some_and(|batch| batch.is_bound()) {
            data.check().map_err(|gone| flight.log.judge(gone))?;
        }
        Ok(vec![(data.number(), data.synced())])
    }

    /// Takes the log back, and the batch as well, which stays unflushed.
    pub fn turn_back(&mut self, flight: Flight) -> Result<()> {
        let Flight { session, batch, log, .. } = flight;
        drop(batch);
        (self.log, self.busy) = (Some(log), false);
        let data = self.data.as_mut().map(|data| &mut **data as &mut dyn DataWriter);
        match self.sessions.state_mut(session) {
            Some(own) => own.turn_back(data),
            None => Ok(()),
        }
    }

    /// Takes the log back after a commit that is durable.
    pub fn finish(&mut self, flight: Flight, flushed: Flushed) {
        let Flight { session, batch, log, last_stamp, .. } = flight;
        if let Some(batch) = batch {
            batch.record_addresses(log.last_payload(), &mut self.shared);
            self.sessions.landed(session, flushed);
        }
        (self.log, self.busy, self.last_stamp) = (Some(log), false, last_stamp);
        self.leave_long_log();
    }

    /// Takes the log back after a failure, as the log that failed; [`fail`](Self::fail) follows.
    pub fn take_back(&mut self, flight: Flight) {
        (self.log, self.busy) = (Some(flight.log), false);
    }
}
