//! Writing: this process's own log, and nothing else.
//!
//! * `session`: one outside transactions, one for each transaction: what was archived and not yet
//!   flushed (`batch`), and who is still to be told of what a failure took (`loss`);
//! * `data_log`: where payloads beyond [`INLINE_MAX`] go as they come;
//! * `log_file`: frames, syncs, sealing; `live_runs`: the index runs of the log and their merging;
//! * `shared`: where bytes stand that later values may be equal to;
//! * `slot`: this writer's place on the host's board; `create`: the first commit of a store;
//! * `linked`: whether what was written still stands under its name, and the store in its place.
//!
//! Invariants:
//! * a flush of up to [`INLINE_MAX`] bytes is one write and one sync; a larger one syncs its data log
//!   before the log; the board is written after;
//! * after any failed write or sync the log is sealed at its last commit and never written again; the
//!   next flush begins a new one; a log, data log or store that is gone from its place counts as failed;
//! * what a failure drops is told to all whose it was; what another log can take is not dropped;
//! * the stamp of a commit is greater than every stamp visible when its flush began.

mod batch;
pub mod create;
pub mod data_log;
mod encoded;
pub mod linked;
mod live_runs;
pub mod log_file;
mod loss;
mod session;
mod shared;
mod slot;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, Result};
use fieldstone_format::keys::key_text;
use fieldstone_format::log::{CommitRecord, Decision, SideRecord};
use fieldstone_format::run::CommitInfo;
use fieldstone_format::{Id, log};

use create::create_store;
use data_log::DataLog;
pub use encoded::Encoded;
use linked::Existence;
pub use log_file::Flushed;
use log_file::LogFile;
use session::Session;
use shared::Shared;

use crate::identity::StoreIdentity;
use crate::join::Sources;
use crate::layout::Layout;
use crate::snapshot::Snapshot;

/// Payload up to which a flush is one write to the log.
pub const INLINE_MAX: usize = 1 << 20;

/// What a flush must know of the rest of the store.
#[derive(Debug, Clone, Default)]
pub struct Horizon {
    /// The largest stamp anyone has published.
    pub max_stamp: u64,
    /// What was visible when the flush began: which transactions have ended.
    pub snapshot: Option<Arc<Snapshot>>,
}

/// The writer of one process.
#[derive(Debug)]
pub struct Writer {
    env: Env,
    layout: Layout,
    log: Option<LogFile>,
    data: Option<DataLog>,
    /// Logs of this writer that failed, with the lengths at which they end.
    sealed: Vec<(Id, u64)>,
    sessions: HashMap<Option<Id>, Session>,
    /// Who has side records for the sessions.
    sources: Sources,
    /// Whether there is a store already.
    existence: Arc<Existence>,
    last_stamp: u64,
    /// Places of values that were archived with a digest.
    shared: Shared,
}

/// What is done about encoded first levels before anything under them is committed.
pub type Claim<'a> = &'a dyn Fn(&BTreeSet<Vec<u8>>) -> Result<()>;

impl Writer {
    /// A writer without a log: the first commit makes one.
    pub fn new(env: Env, layout: Layout, sources: Sources, existence: Arc<Existence>) -> Writer {
        Writer {
            env,
            layout,
            log: None,
            data: None,
            sealed: Vec::new(),
            sessions: HashMap::new(),
            sources,
            existence,
            last_stamp: 0,
            shared: Shared::default(),
        }
    }

    /// Fields archived and not yet flushed, over all sessions.
    pub fn unflushed(&self) -> u64 {
        self.sessions.values().map(|session| session.batch.len() as u64).sum()
    }

    /// Whether a session has anything to flush.
    pub fn has_work(&self, session: Option<Id>) -> bool {
        self.sessions.get(&session).is_some_and(|session| !session.batch.is_empty())
    }

    /// Encoded first levels of the keys in a session.
    pub fn datasets(&self, session: Option<Id>) -> BTreeSet<Vec<u8>> {
        self.sessions.get(&session).map(|session| session.batch.datasets()).unwrap_or_default()
    }

    /// Encoded keys in a session.
    pub fn keys(&self, session: Option<Id>) -> Vec<Vec<u8>> {
        let keys = |session: &Session| session.batch.keys().map(<[u8]>::to_vec).collect();
        self.sessions.get(&session).map(keys).unwrap_or_default()
    }

    /// Raises what a failure lost of a session and this thread has not heard of; once, but again and again
    /// for a transaction that was robbed.
    pub fn check(&mut self, session: Option<Id>) -> Result<()> {
        let outcome = self.sessions.get_mut(&session).map_or(Ok(()), |own| own.check(session));
        self.tidy(session);
        outcome
    }

    /// Forgets what a session holds.
    pub fn discard(&mut self, session: Option<Id>) {
        if let Some(own) = self.sessions.get_mut(&session) {
            own.discard();
        }
        self.tidy(session);
    }

    /// Forgets a session, which has ended.
    pub fn end(&mut self, session: Id) {
        self.sessions.remove(&Some(session));
        if let Some(log) = &mut self.log {
            log.settle(session);
        }
    }

    fn tidy(&mut self, session: Option<Id>) {
        if self.sessions.get(&session).is_some_and(Session::is_idle) {
            self.sessions.remove(&session);
        }
    }

    /// Takes catalog and graph changes of this thread for the next commit of a session. Without any it is
    /// noted that this thread is about to have some.
    pub fn take_side(&mut self, session: Option<Id>, records: Vec<SideRecord>) {
        let own = self.sessions.entry(session).or_default();
        own.note();
        own.batch.side.extend(records);
    }

    /// Takes such changes from where they were kept for whoever made them.
    pub fn take_drained(&mut self, session: Option<Id>, records: Vec<SideRecord>) {
        self.sessions.entry(session).or_default().batch.side.extend(records);
    }

    /// Takes an encoded first level that the next commit of a session claims beside those of its fields.
    pub fn take_claim(&mut self, session: Option<Id>, level: Vec<u8>) {
        let own = self.sessions.entry(session).or_default();
        own.note();
        own.batch.claims.insert(level);
    }

    /// Catalog and graph changes that wait for the next commit of a session.
    pub fn side(&self, session: Option<Id>) -> Vec<SideRecord> {
        self.sessions.get(&session).map(|session| session.batch.side.clone()).unwrap_or_default()
    }

    /// Takes a prepared value; its payload is in memory or in the data log when this returns.
    pub fn take(
        &mut self,
        session: Option<Id>,
        value: Encoded<'_>,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<()> {
        let own = self.sessions.entry(session).or_default();
        own.note();
        let batch = &mut own.batch;
        if let Some(place) = value.digest.and_then(|digest| self.shared.find(digest)) {
            batch.add_shared(value, place);
            return Ok(());
        }
        if !batch.spilled() && batch.inline_len() + value.stored_len() <= INLINE_MAX {
            batch.add_inline(value);
            return Ok(());
        }
        let key = value.key.bytes.clone();
        match self.spill(session, value, identity) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail(session, Some(&key), error)),
        }
    }

    fn spill(
        &mut self,
        session: Option<Id>,
        value: Encoded<'_>,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<()> {
        self.ready(identity)?;
        let (Some(log), Some(own)) = (&self.log, self.sessions.get_mut(&session)) else {
            return Err(Error::internal("the writer lost its log"));
        };
        let data = match &mut self.data {
            Some(data) => data,
            None => self.data.insert(DataLog::create(&self.env, &self.layout, log.writer(), 1)?),
        };
        own.batch.move_to(data)?;
        own.batch.add_spilled(value, data)
    }

    /// Makes sure that there is a log to write to.
    fn ready(&mut self, identity: &dyn Fn() -> Result<StoreIdentity>) -> Result<()> {
        if self.log.is_none() {
            let identity = create_store(&self.env, &self.layout, identity()?, &self.existence)?;
            self.log = Some(LogFile::new(&self.env, &self.layout, &identity, &self.sealed));
        }
        Ok(())
    }

    /// Flushes a session; `None` where it held nothing. What a failure lost before is raised first.
    pub fn flush(
        &mut self,
        session: Option<Id>,
        horizon: Horizon,
        claim: Claim<'_>,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<Option<Flushed>> {
        self.check(session)?;
        if !self.has_work(session) {
            return Ok(None);
        }
        // The folder in which claims are made is there once the log is. Who may not claim keeps the batch.
        if let Err(error) = self.ready(identity) {
            return Err(self.fail(session, None, error));
        }
        claim(&self.datasets(session))?;
        match self.commit(session, None, horizon, identity) {
            Ok(flushed) => {
                if let Some(own) = self.sessions.get_mut(&session) {
                    own.empty();
                }
                self.tidy(session);
                Ok(Some(flushed))
            }
            Err(error) => Err(self.fail(session, None, error)),
        }
    }

    /// Writes a decision on a transaction.
    pub fn decide(
        &mut self,
        decision: Decision,
        horizon: Horizon,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<Flushed> {
        // A session of its own: what else is unflushed stays so.
        let session = Some(Id::NONE);
        self.sessions.remove(&session);
        let outcome = self.commit(session, Some(decision), horizon, identity);
        self.sessions.remove(&session);
        outcome.map_err(|error| self.fail(session, None, error))
    }

    fn commit(
        &mut self,
        session: Option<Id>,
        decision: Option<Decision>,
        horizon: Horizon,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<Flushed> {
        self.ready(identity)?;
        let batch = &mut self.sessions.entry(session).or_default().batch;
        let (time, user) = (self.env.clock.now(), self.env.identity.uid());
        let stamp = self
            .last_stamp
            .max(horizon.max_stamp)
            .checked_add(1)
            .ok_or_else(|| Error::internal("stamps are used up"))?
            .max(u64::try_from(time).unwrap_or(0));
        let Some(log) = &mut self.log else { return Err(Error::internal("the writer lost its log")) };
        let mut record = CommitRecord {
            sequence: log.next_sequence(),
            stamp,
            time,
            transaction: session.filter(|id| *id != Id::NONE),
            prepared: log
                .prepared(|id| horizon.snapshot.as_ref().is_some_and(|seen| seen.has_ended(id, user))),
            fields: batch.len() as u64,
            bytes: batch.raw_bytes(),
            side_count: batch.side.len() as u64,
            decision,
            ..CommitRecord::default()
        };
        if let Some(id) = record.transaction {
            log::note_prepared(&mut record.prepared, id, record.sequence, record.fields, time);
        }
        if let Some(data) = &mut self.data {
            if batch.spilled() {
                data.sync(&self.env, &self.layout)?;
            }
            if batch.is_bound() {
                data.check(&self.env)?;
            }
            record.data_logs.push((data.number(), data.synced()));
        }
        let info = CommitInfo { sequence: record.sequence, stamp, time, transaction: record.transaction };
        let base = log.payload_offset();
        let payload = batch.inline_payload();
        let run = batch.index_run(base, info)?;
        let side = log::encode_side(&batch.side);
        let flushed = log.append(&self.env, &self.layout, record, payload, run, &side)?;
        self.last_stamp = stamp;
        batch.tell(base, &mut self.shared);
        Ok(flushed)
    }

    /// After a failure: seals the log, drops what a session cannot flush any more, with the value that was
    /// just being taken, and says what the call is to raise. Batches of other sessions that name bytes of
    /// the failed files are dropped as well, and their users told by their next calls; the others go into
    /// the next log.
    fn fail(&mut self, session: Option<Id>, taking: Option<&[u8]>, error: Error) -> Error {
        let data = self.data.take();
        if let Some(log) = self.log.take() {
            if log.is_gone() || data.is_some_and(|data| data.is_gone()) {
                // What was flushed before is gone as well: nothing is committed without it.
                for part in log.prepared(|_| false) {
                    let own = self.sessions.entry(Some(part.transaction)).or_default();
                    own.lose_prepared(&error);
                }
            }
            self.sealed.extend(log.seal(&self.env, &self.layout));
        }
        // A place is one in the files of one log; the next log has others.
        self.shared = Shared::default();
        let sources = self.sources.alive();
        let side = |id| sources.iter().flat_map(|source| source.lost(id)).collect();
        let mut robbed = Vec::new();
        for (&id, other) in &mut self.sessions {
            if id != session && other.batch.is_bound() {
                robbed.push((id, other.lose(id, false, None, side(id), &error)));
            }
        }
        robbed.retain(|(_, loss)| !loss.is_empty());
        robbed.sort_unstable_by_key(|(id, _)| *id);
        let taking = taking.map(key_text);
        let own =
            self.sessions.entry(session).or_default().lose(session, true, taking, side(session), &error);
        let error = own.told_by(error, &robbed);
        self.sessions.retain(|_, session| !session.is_idle());
        error
    }

    /// Says that this writer writes no more.
    pub fn close(&mut self) {
        if let Some(log) = self.log.take() {
            log.close(&self.env, &self.layout);
        }
        self.data = None;
        self.shared = Shared::default();
    }
}
