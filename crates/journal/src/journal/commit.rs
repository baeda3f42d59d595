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

use fieldstone_core::sync::{Condvar, Mutex, MutexGuard, thread};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{Decision, SideRecord};
use tracing::field::Empty;
use tracing::{Span, debug_span};

use super::begun::Begun;
use super::datasets::Datasets;
use super::ended::{check_floor, check_open};
use super::gathering::Gathering;
use super::looks::Looks;
use super::unflushed::Unflushed;
use crate::medium::attempt_ended;
use crate::medium::posix::array_files::ArrayFolders;
use crate::session::{Session, SessionKey};
use crate::snapshot::silent::attempt_lasts;
use crate::snapshot::{Flushed, Snapshot, may_be_below_a_floor};
use crate::writer::{Commit, Encoded, Failed, Flight, Horizon, Writer};

/// How often a flush lets other threads run before it begins, whatever a clock says.
const YIELDS: u32 = 200;

/// The state that threads of one process share to commit.
#[derive(Debug)]
pub struct CommitState {
    pub(super) writer: Mutex<Writer>,
    /// Notified when a commit is over.
    turn: Condvar,
    /// The flushes that come, and how many of them share a commit.
    gathering: Mutex<Gathering>,
}

impl CommitState {
    /// Of a process that has written nothing.
    pub fn new(writer: Writer) -> CommitState {
        CommitState { writer: Mutex::new(writer), turn: Condvar::new(), gathering: Mutex::default() }
    }

    fn wait<'a>(&self, writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        self.turn.wait(writer)
    }

    /// The writer, at a moment at which no commit is under way.
    pub fn idle(&self) -> MutexGuard<'_, Writer> {
        self.until_idle(self.writer.lock())
    }

    fn until_idle<'a>(&self, mut writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        while writer.is_busy() {
            writer = self.wait(writer);
        }
        writer
    }
}

/// A commit under way. If a panic drops it before its end, other threads do not wait for it for ever.
struct Turn<'a> {
    state: &'a CommitState,
    /// The session that commits.
    session: &'a Session,
    /// The failure, where it fails.
    failed: Failed<'static>,
    flight: Option<Flight>,
}

impl Turn<'_> {
    /// Gives up a commit that was not to be; the session keeps its values. Returns what is to be reported.
    fn turn_back(&mut self, error: Error) -> Error {
        let mut writer = self.state.writer.lock();
        match self.flight.take().map_or(Ok(()), |flight| writer.turn_back(flight)) {
            Ok(()) => error,
            Err(lost) => writer.fail(Failed::Store(self.session.key()), lost),
        }
    }
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

/// Makes the commits of one process by a handle.
#[derive(Debug, Clone, Copy)]
pub struct Committer<'a> {
    pub(super) datasets: Datasets<'a>,
    pub(super) state: &'a CommitState,
    pub(super) begun: &'a Begun,
}

impl<'a> Committer<'a> {
    pub(super) fn looks(&self) -> &Looks<'a> {
        &self.datasets.looks
    }

    pub(super) fn unflushed(&self) -> Unflushed<'a> {
        Unflushed { access: self.looks().access, writer: &self.state.writer }
    }

    /// Makes what a session gave durable and visible; under a transaction: durable and prepared. Other sessions' values
    /// wait for flushes of theirs.
    pub fn flush(&self, session: &Session) -> Result<()> {
        let looks = self.looks();
        looks.access.check_writable()?;
        looks.access.check_user(session)?;
        let _span = debug_span!("flush", transaction = session.transaction().map(display)).entered();
        let user = looks.access.user(session);
        let is_listed = session.transaction().map_or(Ok(true), |id| self.is_listed(id, user))?;
        let Some(flushed) = self.commit_session(session)? else { return Ok(()) };
        if let Some(transaction) = session.transaction() {
            let snapshot = looks.snapshot()?;
            if !is_listed {
                check_floor(transaction, user, &snapshot)?;
            }
            // A decision may have been written meanwhile; then this flush is not part of it.
            check_open(&*looks.access.env().identity, session, Some(&flushed), &snapshot)?;
        }
        Ok(())
    }

    /// Whether a transaction was listed before this moment: no floor passes it then (R16).
    fn is_listed(&self, transaction: Id, user: u32) -> Result<bool> {
        let looks = self.looks();
        let known = looks.refresher().lock().current().clone();
        let is_known = known.lists(transaction, user);
        // Others may have listed it since, and taken logs over: without a look their floor would seem to pass it.
        let is_young = !may_be_below_a_floor(transaction, looks.access.env().clock.now());
        match is_known || is_young && known.taken.takeovers().is_empty() {
            true => Ok(is_known),
            false => Ok(looks.snapshot()?.lists(transaction, user)),
        }
    }

    /// Takes an encoded value for the session's next commit.
    pub fn take(&self, value: Encoded<'_>, session: &Session) -> Result<()> {
        let (state, own) = (self.state, session.key());
        let key = value.key.bytes.clone();
        let mut writer = state.writer.lock();
        loop {
            // Values of another author that wait are a commit of their own (G-31).
            if !writer.sessions.may_take(own, session.author()) {
                drop(writer);
                self.commit_session(session)?;
                writer = state.writer.lock();
            } else if writer.needs_data_log(own, &value) && !writer.is_ready() {
                // Before anything is noted: others may commit meanwhile what waits here.
                writer = match self.make_ready(writer) {
                    Ok(writer) => writer,
                    Err(e) => {
                        return Err(state.idle().fail(Failed::Value(own, &key), e));
                    }
                };
            } else {
                break;
            }
        }
        writer.sessions.check_piece(own, &value)?;
        let Some(value) = writer.take(own, value, session.author()) else { return Ok(()) };
        match writer.spill(own, value) {
            Ok(()) => Ok(()),
            Err(e) => Err(state.until_idle(writer).fail(Failed::Value(own, &key), e)),
        }
    }

    /// Makes the store where this writer does not know it to be there, without the lock meanwhile.
    fn make_ready(&self, mut writer: MutexGuard<'a, Writer>) -> Result<MutexGuard<'a, Writer>> {
        let Looks { access, medium, .. } = self.looks();
        while !writer.is_ready() {
            drop(writer);
            let identity = medium.create(access.identity().clone())?;
            writer = self.state.writer.lock();
            writer.ready(identity);
        }
        Ok(writer)
    }

    /// Commits what a session took; the session's last commit then, by whomever. `None` where there was nothing
    /// to commit. After an error of a commit that somebody else made, what is left of it is committed all the same, unless
    /// something of this thread's was lost.
    fn commit_session(&self, session: &Session) -> Result<Option<Flushed>> {
        let state = self.state;
        let mut writer = state.writer.lock();
        writer.sessions.check(session.key())?;
        let Some((ticket, target)) = writer.sessions.enter(session.key()) else { return Ok(None) };
        drop(writer);
        let outcome = self.commit_up_to(session, target);
        // J-11: it answers for all that it waited for, also where this thread had put nothing in.
        let lost = state.writer.lock().sessions.leave(session.key(), ticket);
        outcome.and_then(|flushed| lost.map(|()| flushed))
    }

    /// Returns when a session's batches up to a number are durable, or when this thread has lost something.
    fn commit_up_to(&self, session: &Session, target: u64) -> Result<Option<Flushed>> {
        let (state, own) = (self.state, session.key());
        let mut writer = state.writer.lock();
        if !writer.has_made_log() {
            // Its log gets the version of the format that the store is of now.
            drop(writer);
            self.looks().even_without_logs()?;
            writer = state.writer.lock();
        }
        if shares(own) {
            state.gathering.lock().arrive();
        }
        let mut yields = 0;
        loop {
            // Whenever the lock was given away, a commit may have failed. It is reported before anything else is done, for a
            // batch that is lost waits for nothing either.
            writer.sessions.check(own)?;
            // J-3: another thread has committed what this one waits for, with its own.
            if writer.sessions.is_through(own, target) {
                return Ok(writer.sessions.flushed(own));
            }
            session.check(&*self.looks().access.env().clock)?;
            if writer.is_busy() {
                writer = state.wait(writer);
            } else if writer.is_ready() {
                let now = self.looks().access.env().clock.monotonic();
                if !shares(own) || yields == YIELDS || !state.gathering.lock().is_worth_waiting(now) {
                    break;
                }
                drop(writer);
                thread::yield_now();
                yields += 1;
                writer = state.writer.lock();
            } else {
                drop(writer);
                // A session keeps its values where the store's place cannot even be looked at.
                self.looks().even_without_logs()?;
                writer = match self.make_ready(state.writer.lock()) {
                    Ok(writer) => writer,
                    Err(e) => return Err(state.idle().fail(Failed::Store(own), e)),
                };
            }
        }
        let flight = writer.begin(session, true, self.looks().known_format())?;
        if shares(own) {
            state.gathering.lock().begin(self.looks().access.env().clock.monotonic());
        }
        drop(writer);
        let failed = Failed::Flush(own);
        let mut turn = Turn { state, session, failed, flight: Some(flight) };
        let horizon = match self.admit(&mut turn) {
            Ok(horizon) => horizon,
            // A session that may not write there keeps its values.
            Err(e) => return Err(turn.turn_back(e)),
        };
        self.write(&mut turn, Commit { horizon, ..Commit::default() }).map(Some)
    }

    /// Writes a decision, and side records in the same commit.
    pub(super) fn decide(
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
        let access = self.looks().access;
        if access.attempt().is_empty() || access.check_writable().is_err() {
            return Ok(());
        }
        let (horizon, snapshot) = self.looks().horizon()?;
        let user = access.user(session);
        match snapshot.knows_attempt(user, access.attempt()) {
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
        self.looks().access.check_user(session)?;
        let state = self.state;
        let mut writer = state.idle();
        while !writer.is_ready() {
            writer = state.until_idle(self.make_ready(writer)?);
        }
        let flight = writer.begin(session, false, self.looks().known_format())?;
        drop(writer);
        let failed = Failed::Decision;
        let mut turn = Turn { state, session, failed, flight: Some(flight) };
        if let (Some(flight), Some(snapshot)) = (&mut turn.flight, &horizon.snapshot) {
            let looks = self.looks();
            if let Err(e) = check_attempt(flight, looks, snapshot, looks.access.env().clock.now()) {
                return Err(turn.turn_back(e));
            }
        }
        self.write(&mut turn, Commit { horizon, decision, records, ..Commit::default() })
    }

    /// Looks up what a commit must exceed, and whether its user may write to its datasets.
    fn admit(&self, turn: &mut Turn<'_>) -> Result<Horizon> {
        let looks = self.looks();
        // R64: the time before the look, so that nothing shows later than it says.
        let now = looks.access.env().clock.now();
        let (horizon, snapshot) = looks.horizon()?;
        if let Some(flight) = &mut turn.flight {
            check_attempt(flight, looks, &snapshot, now)?;
        }
        check_open(&*looks.access.env().identity, turn.session, None, &snapshot)?;
        let levels = turn.flight.as_ref().map(Flight::datasets).unwrap_or_default();
        self.datasets.admit(&levels, &snapshot, turn.session)?;
        if let (Some(flight), Some(files)) = (&turn.flight, looks.medium.files()) {
            ArrayFolders::of(files).note(flight.log(), &flight.array_files())?;
        }
        Ok(horizon)
    }

    /// Ends this process's log, so that it can be taken over; the next commit begins a new one. It stays where values that
    /// wait name bytes of its files.
    pub fn leave_log(&self) {
        self.state.idle().leave_log();
    }

    /// Forgets a transaction that has ended.
    pub(super) fn forget(&self, transaction: Id) {
        self.state.writer.lock().end(transaction);
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
                self.write_flight(flight, commit)
            }
            None => Err(Error::internal("a commit has nothing to write")),
        };
        match outcome {
            Ok(flushed) => {
                span.record("fields", flushed.record.fields);
                span.record("records", flushed.record.side_count);
                span.record("bytes", flushed.ends.end().saturating_sub(flushed.ends.frame));
                // Both at once: a read sees each record as unflushed, or as committed.
                let mut refresher = self.looks().refresher().lock();
                let mut writer = state.writer.lock();
                refresher.wrote(&flushed);
                if let Some(flight) = turn.flight.take() {
                    writer.finish(flight, flushed.clone());
                }
                if shares(turn.session.key()) {
                    state.gathering.lock().end(self.looks().access.env().clock.monotonic());
                }
                Ok(flushed)
            }
            Err(e) => {
                // R11: before anybody learns of it, and without a lock, because it syncs.
                if let Some(flight) = &mut turn.flight {
                    flight.end_log();
                }
                let mut writer = state.writer.lock();
                if let Some(flight) = turn.flight.take() {
                    writer.take_back(flight);
                }
                Err(writer.fail(turn.failed, e))
            }
        }
    }

    fn write_flight(&self, flight: &mut Flight, commit: Commit) -> Result<Flushed> {
        let state = self.state;
        let unsynced = state.writer.lock().unsynced(flight)?;
        if let Some(unsynced) = &unsynced {
            unsynced.sync()?;
        }
        let data_logs = state.writer.lock().data_logs(flight, unsynced.as_ref())?;
        // The log's own, and that of a data log which holds something of this commit.
        Span::current().record("syncs", 1 + u64::from(unsynced.is_some()));
        let flushed = flight
            .write(self.looks().access.env(), Commit { data_logs, open: self.begun.open(), ..commit })?;
        flight.report();
        Ok(flushed)
    }
}

/// Conflict for an attempt that has ended; else the commit gets a deadline (R64).
fn check_attempt(flight: &mut Flight, looks: &Looks<'_>, snapshot: &Snapshot, now: i64) -> Result<()> {
    let attempt = looks.access.attempt();
    if attempt.is_empty() {
        return Ok(());
    }
    let file_system = || {
        let time = looks.medium.files().and_then(|files| files.file_system_time().ok());
        time.unwrap_or(now)
    };
    let lasts = attempt_lasts(snapshot, (flight.user(), attempt), flight.log(), now, file_system)?;
    if lasts <= 0 {
        return Err(attempt_ended(attempt));
    }
    flight.set_deadline(now.saturating_add(lasts - 1));
    Ok(())
}

/// Whether flushes of a session wait for one another: the threads of a handle share one outside of transactions.
fn shares(session: SessionKey) -> bool {
    session.transaction.is_none()
}
