//! Flushes and decisions: who waits for whom, and what is reported to whom.
//!
//! One commit of a handle is under way at a time. A flush that finds one waits for it; when it is over, one of
//! those who wait commits all that has been collected meanwhile, and the others return with it: flushes that
//! wait at once are one commit and one sync. A transaction's flush has a commit of its own.
//!
//! Invariants:
//! * no lock is held across a sync: others archive and read meanwhile;
//! * the stamp and the owners are looked up when the batch is closed, so that they hold for everybody in it;
//! * a commit is known to the next snapshot at the moment at which its batch is unflushed no more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fieldstone_core::Error;
use fieldstone_core::Result;
use fieldstone_core::sync::{MutexGuard, thread};
use fieldstone_format::log::{Decision, SideRecord};
use tracing::field::Empty;
use tracing::{Span, debug_span};

use super::ownership::check_user;
use super::{Journal, State};
use crate::session::{Session, SessionKey};
use crate::snapshot::{Flushed, LogView};
use crate::writer::{Commit, Encoded, Failed, Flight, Horizon, Writer};

/// How often a flush lets other threads run before it begins, whatever a clock says.
const YIELDS: u32 = 200;

/// A commit under way. Where it is dropped before its end, by a panic, others do not wait for it for ever.
struct Turn<'a> {
    state: &'a State,
    /// Whose commit it is.
    session: &'a Session,
    /// What is said of it where it fails.
    failed: Failed<'static>,
    flight: Option<Flight>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take() {
            let mut writer = self.state.writer.lock();
            writer.take_back(flight);
            writer.fail(self.failed, Error::internal("a commit was broken off"));
        }
        self.state.turn.notify_all();
    }
}

impl Journal {
    /// Takes an encoded value for the session's next commit.
    pub fn take(&self, value: Encoded<'_>, session: &Session) -> Result<()> {
        let (state, own) = (self.state(), session.key());
        let key = value.key.bytes.clone();
        let mut writer = state.writer.lock();
        loop {
            // What waits of another author is a commit of its own (G-31).
            if !writer.may_take(own, session.author()) {
                drop(writer);
                self.commit_session(session)?;
                writer = state.writer.lock();
            } else if writer.needs_data_log(own, &value) && !writer.is_ready() {
                // Before anything is noted: others may commit meanwhile what waits here.
                writer = match self.make_ready(state, writer) {
                    Ok(writer) => writer,
                    Err(e) => {
                        return Err(idle(state, state.writer.lock()).fail(Failed::Value(own, &key), e));
                    }
                };
            } else {
                break;
            }
        }
        writer.check_piece(own, &value)?;
        let Some(value) = writer.take(own, value, session.author()) else { return Ok(()) };
        match writer.spill(own, value) {
            Ok(()) => Ok(()),
            Err(e) => Err(idle(state, writer).fail(Failed::Value(own, &key), e)),
        }
    }

    /// Makes the store where this writer does not know it to be there, without the lock meanwhile.
    fn make_ready<'a>(
        &self,
        state: &'a State,
        mut writer: MutexGuard<'a, Writer>,
    ) -> Result<MutexGuard<'a, Writer>> {
        while !writer.is_ready() {
            drop(writer);
            let identity = state.medium.create(self.identity())?;
            writer = state.writer.lock();
            writer.ready(identity);
        }
        Ok(writer)
    }

    /// Commits what a session took; the session's last commit then, by whomever. `None` where there was nothing
    /// to commit. After an error of a commit that somebody else made, what is left of it is committed all the same, unless
    /// something of this thread's was lost.
    pub(super) fn commit_session(&self, session: &Session) -> Result<Option<Flushed>> {
        let state = self.state();
        let mut writer = state.writer.lock();
        writer.check(session.key())?;
        let Some((ticket, target)) = writer.enter(session.key()) else { return Ok(None) };
        drop(writer);
        let outcome = self.commit_up_to(session, target);
        // J-11: it answers for all that it waited for, also where this thread had put nothing in.
        let lost = state.writer.lock().leave(session.key(), ticket);
        outcome.and_then(|flushed| lost.map(|()| flushed))
    }

    /// Returns when a session's batches up to a number are durable, or when this thread has lost something.
    fn commit_up_to(&self, session: &Session, target: u64) -> Result<Option<Flushed>> {
        let (state, own) = (self.state(), session.key());
        let mut writer = state.writer.lock();
        if !writer.has_made_log() {
            // Its log gets the version of the format that the store is of now.
            drop(writer);
            self.looked()?;
            writer = state.writer.lock();
        }
        if shares(own) {
            state.gathering.lock().arrive();
        }
        let mut yields = 0;
        loop {
            // Whenever the lock was given away, a commit may have failed. It is reported before anything else is done, for a
            // batch that is lost waits for nothing either.
            writer.check(own)?;
            // J-3: another thread has committed what this one waits for, with its own.
            if writer.is_through(own, target) {
                return Ok(writer.flushed(own));
            }
            session.check(&*self.env.clock)?;
            if writer.is_busy() {
                writer = wait(state, writer);
            } else if writer.is_ready() {
                let now = self.env.clock.monotonic();
                if !shares(own) || yields == YIELDS || !state.gathering.lock().is_worth_waiting(now) {
                    break;
                }
                drop(writer);
                thread::yield_now();
                yields += 1;
                writer = state.writer.lock();
            } else {
                drop(writer);
                // Where the store's place cannot even be looked at, what was archived is kept.
                self.looked()?;
                writer = match self.make_ready(state, state.writer.lock()) {
                    Ok(writer) => writer,
                    Err(e) => return Err(idle(state, state.writer.lock()).fail(Failed::Store(own), e)),
                };
            }
        }
        let flight = writer.begin(session, true, state.format.load(Ordering::Relaxed))?;
        if shares(own) {
            state.gathering.lock().begin(self.env.clock.monotonic());
        }
        drop(writer);
        let failed = Failed::Flush(own);
        let mut turn = Turn { state, session, failed, flight: Some(flight) };
        let horizon = match self.admit(&turn) {
            Ok(horizon) => horizon,
            // Who may not write there keeps what he archived.
            Err(e) => {
                let mut writer = state.writer.lock();
                return match turn.flight.take().map_or(Ok(()), |flight| writer.turn_back(flight)) {
                    Ok(()) => Err(e),
                    Err(lost) => Err(writer.fail(Failed::Store(own), lost)),
                };
            }
        };
        self.write(&mut turn, Commit { horizon, ..Commit::default() }).map(Some)
    }

    /// Writes a decision on a transaction.
    pub(super) fn commit_decision(
        &self,
        decision: Decision,
        horizon: Horizon,
        session: &Session,
    ) -> Result<Flushed> {
        self.commit_deciding(decision, Vec::new(), horizon, session)
    }

    /// Writes a decision, and side records in the same commit.
    pub(super) fn commit_deciding(
        &self,
        decision: Decision,
        records: Vec<SideRecord>,
        horizon: Horizon,
        session: &Session,
    ) -> Result<Flushed> {
        self.commit_alone(Some(decision), records, horizon, session)
    }

    /// Makes known that the attempt of this handle has begun, by a commit that holds nothing, unless another process
    /// of it has done so (J-32). Does nothing where no attempt is named, or the handle only reads.
    pub fn announce(&self, session: &Session) -> Result<()> {
        if self.attempt().is_empty() || self.check_writable().is_err() {
            return Ok(());
        }
        let (horizon, snapshot) = self.horizon()?;
        let user = session.user(&*self.env.identity);
        let named = |log: &Arc<LogView>| {
            let attempt = log.record.attempt.as_ref();
            log.uid == user && attempt.is_some_and(|attempt| attempt.name == self.attempt())
        };
        match snapshot.logs.iter().any(named) {
            true => Ok(()),
            false => self.commit_alone(None, Vec::new(), horizon, session).map(drop),
        }
    }

    /// Writes a commit without fields.
    fn commit_alone(
        &self,
        decision: Option<Decision>,
        records: Vec<SideRecord>,
        horizon: Horizon,
        session: &Session,
    ) -> Result<Flushed> {
        check_user(&*self.env.identity, session)?;
        let state = self.state();
        let mut writer = idle(state, state.writer.lock());
        while !writer.is_ready() {
            writer = idle(state, self.make_ready(state, writer)?);
        }
        let flight = writer.begin(session, false, state.format.load(Ordering::Relaxed))?;
        drop(writer);
        let failed = Failed::Decision;
        let mut turn = Turn { state, session, failed, flight: Some(flight) };
        self.write(&mut turn, Commit { horizon, decision, records, ..Commit::default() })
    }

    /// Looks up what a commit must exceed, and whether its user may write to its datasets.
    fn admit(&self, turn: &Turn<'_>) -> Result<Horizon> {
        let (horizon, snapshot) = self.horizon()?;
        self.check_open(turn.session, None, &snapshot)?;
        let datasets = turn.flight.as_ref().map(Flight::datasets).unwrap_or_default();
        for prefix in &datasets {
            self.check_owner(prefix, &snapshot, turn.session).inspect_err(|_| {
                turn.state.own_datasets.lock().remove(prefix);
            })?;
        }
        self.claim_levels(&datasets)?;
        Ok(horizon)
    }

    /// Writes the commit and hands it to the next snapshot; after a failure says what was lost.
    fn write(&self, turn: &mut Turn<'_>, commit: Commit) -> Result<Flushed> {
        let state = turn.state;
        let span = debug_span!(
            "commit",
            transaction = turn.session.transaction().map(display),
            fields = Empty,
            records = Empty,
            bytes = Empty,
            syncs = Empty
        );
        let _within = span.enter();
        let outcome = match &mut turn.flight {
            Some(flight) => {
                flight.ask_author();
                self.write_flight(state, flight, commit)
            }
            None => Err(Error::internal("a commit has nothing to write")),
        };
        match outcome {
            Ok(flushed) => {
                span.record("fields", flushed.record.fields);
                span.record("records", flushed.record.side_count);
                span.record("bytes", flushed.ends.end().saturating_sub(flushed.ends.frame));
                // Both at once: a read sees each record as unflushed, or as committed.
                let mut refresher = state.refresher.lock();
                let mut writer = state.writer.lock();
                refresher.wrote(&flushed);
                if let Some(flight) = turn.flight.take() {
                    writer.finish(flight, flushed.clone());
                }
                if shares(turn.session.key()) {
                    state.gathering.lock().end(self.env.clock.monotonic());
                }
                Ok(flushed)
            }
            Err(e) => {
                let mut writer = state.writer.lock();
                if let Some(flight) = turn.flight.take() {
                    writer.take_back(flight);
                }
                Err(writer.fail(turn.failed, e))
            }
        }
    }

    fn write_flight(&self, state: &State, flight: &mut Flight, commit: Commit) -> Result<Flushed> {
        let unsynced = state.writer.lock().unsynced(flight)?;
        if let Some(unsynced) = &unsynced {
            unsynced.sync()?;
        }
        let data_logs = state.writer.lock().data_logs(flight, unsynced.as_ref())?;
        // The log's own, and that of a data log which holds something of this commit.
        Span::current().record("syncs", 1 + u64::from(unsynced.is_some()));
        let flushed = flight.write(&self.env, Commit { data_logs, ..commit })?;
        flight.report();
        Ok(flushed)
    }
}

/// Whether flushes of a session wait for one another: the threads of a handle share one outside of transactions.
fn shares(session: SessionKey) -> bool {
    session.transaction.is_none()
}

fn wait<'a>(state: &State, writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
    state.turn.wait(writer)
}

/// Waits until no commit is under way.
pub(super) fn idle<'a>(state: &State, mut writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
    while writer.is_busy() {
        writer = wait(state, writer);
    }
    writer
}
