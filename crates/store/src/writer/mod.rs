//! Writing: this process's own log, and nothing else.
//!
//! * `batch`: what was archived and not yet flushed, per session (one outside transactions, one for
//!   each transaction);
//! * `blocks`: cutting, compressing and checksumming a value, outside of any lock; `external`: the same
//!   for bytes that stay where they are;
//! * `data_log`: where payloads beyond [`INLINE_MAX`] go as they come;
//! * `log_file`: frames, syncs, sealing; `live_runs`: the index runs of the log and their merging;
//! * `shared`: where bytes stand that later values may be equal to;
//! * `slot`: this writer's place on the host's board; `create`: the first commit of a store.
//!
//! Invariants:
//! * a flush of up to [`INLINE_MAX`] bytes is one write and one sync; a larger one syncs its data log
//!   before the log; the board is written after;
//! * after any failed write or sync the log is sealed at its last commit and never written again; the
//!   next flush begins a new one;
//! * the stamp of a commit is greater than every stamp visible when its flush began.

mod batch;
mod blocks;
mod create;
pub use create::{create_store, foreign_marker, read_marker};
mod data_log;
mod external;
mod live_runs;
mod log_file;
mod shared;
mod slot;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, Result};
use fieldstone_format::log::{CommitRecord, Decision, SideRecord};
use fieldstone_format::run::CommitInfo;
use fieldstone_format::{Id, log};

pub use batch::Batch;
pub use blocks::Prepared;
use data_log::DataLog;
use log_file::LogFile;
use shared::Shared;

use crate::layout::Layout;
use crate::read::Versions;
use crate::snapshot::Snapshot;

/// Payload up to which a flush is one write to the log.
pub const INLINE_MAX: usize = 1 << 20;

/// Who the store is, as this writer writes it into its logs.
#[derive(Debug, Clone)]
pub struct StoreIdentity {
    /// The store's id.
    pub id: Id,
    /// Text of its schema.
    pub schema: String,
}

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
    sessions: HashMap<Option<Id>, Batch>,
    last_stamp: u64,
    /// Places of values that were archived with [`crate::api::ArchiveOptions::share`].
    shared: Shared,
}

/// What a flush did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// The log.
    pub writer: Id,
    /// Sequence of the commit.
    pub sequence: u64,
}

impl Writer {
    pub fn new(env: Env, layout: Layout) -> Writer {
        Writer {
            env,
            layout,
            log: None,
            data: None,
            sealed: Vec::new(),
            sessions: HashMap::new(),
            last_stamp: 0,
            shared: Shared::default(),
        }
    }

    /// Fields archived and not yet flushed, over all sessions.
    pub fn unflushed(&self) -> u64 {
        self.sessions.values().map(|batch| batch.len() as u64).sum()
    }

    /// Whether a session has anything to flush.
    pub fn has_work(&self, session: Option<Id>) -> bool {
        self.sessions.get(&session).is_some_and(|batch| !batch.is_empty())
    }

    /// Encoded first levels of the keys in a session.
    pub fn datasets(&self, session: Option<Id>) -> BTreeSet<Vec<u8>> {
        self.sessions.get(&session).map(Batch::datasets).unwrap_or_default()
    }

    /// Encoded keys in a session.
    pub fn keys(&self, session: Option<Id>) -> Vec<Vec<u8>> {
        self.sessions
            .get(&session)
            .map(|batch| batch.keys().map(<[u8]>::to_vec).collect())
            .unwrap_or_default()
    }

    /// Forgets what a session holds.
    pub fn discard(&mut self, session: Option<Id>) {
        self.sessions.remove(&session);
    }

    /// Takes catalog and graph changes for the next commit of a session.
    pub fn take_side(&mut self, session: Option<Id>, records: Vec<SideRecord>) {
        self.sessions.entry(session).or_default().side.extend(records);
    }

    /// Takes an encoded first level that the next commit of a session claims beside those of its fields.
    pub fn take_claim(&mut self, session: Option<Id>, level: Vec<u8>) {
        self.sessions.entry(session).or_default().claims.insert(level);
    }

    /// Catalog and graph changes that wait for the next commit of a session.
    pub fn side(&self, session: Option<Id>) -> Vec<SideRecord> {
        self.sessions.get(&session).map(|batch| batch.side.clone()).unwrap_or_default()
    }

    /// Takes a prepared value; its payload is in memory or in the data log when this returns.
    pub fn take(
        &mut self,
        session: Option<Id>,
        value: Prepared<'_>,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<()> {
        let batch = self.sessions.entry(session).or_default();
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
        value: Prepared<'_>,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<()> {
        self.ready(identity)?;
        let (Some(log), Some(batch)) = (&self.log, self.sessions.get_mut(&session)) else {
            return Err(Error::internal("the writer lost its log"));
        };
        let data = match &mut self.data {
            Some(data) => data,
            None => self.data.insert(DataLog::create(&self.env, &self.layout, log.writer(), 1)?),
        };
        batch.move_to(data)?;
        batch.add_spilled(value, data)
    }

    /// Makes sure that there is a log to write to.
    fn ready(&mut self, identity: &dyn Fn() -> Result<StoreIdentity>) -> Result<()> {
        if self.log.is_none() {
            let identity = create_store(&self.env, &self.layout, identity()?)?;
            self.log = Some(LogFile::new(&self.env, &self.layout, &identity, &self.sealed));
        }
        Ok(())
    }

    /// Flushes a session; `None` where it held nothing.
    pub fn flush(
        &mut self,
        session: Option<Id>,
        horizon: Horizon,
        identity: &dyn Fn() -> Result<StoreIdentity>,
    ) -> Result<Option<Flushed>> {
        match self.sessions.get(&session) {
            Some(batch) if !batch.is_empty() => {}
            _ => return Ok(None),
        }
        let outcome = self.commit(session, None, horizon, identity);
        match outcome {
            Ok(flushed) => {
                self.sessions.remove(&session);
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
        let batch = self.sessions.entry(session).or_default();
        let time = self.env.clock.now();
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
            prepared: log.prepared(|id| horizon.snapshot.as_ref().is_some_and(|seen| seen.has_ended(id))),
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

    /// After a failure: seals the log, drops the lost batch and names it, with the key of the value that
    /// was just being taken.
    fn fail(&mut self, session: Option<Id>, taking: Option<&[u8]>, error: Error) -> Error {
        if let Some(log) = self.log.take()
            && let Some(end) = log.seal(&self.env, &self.layout)
        {
            self.sealed.push(end);
        }
        self.data = None;
        // A place is one in the files of one log; the next log has others.
        self.shared = Shared::default();
        let mut lost: Vec<String> = taking.map(Versions::text_of).into_iter().collect();
        lost.extend(self.sessions.remove(&session).iter().flat_map(Batch::names));
        // Batches of other sessions lost what they had written into the data log, or named in the log.
        self.sessions.retain(|_, batch| {
            if batch.is_bound() {
                lost.extend(batch.names());
            }
            !batch.is_bound()
        });
        if lost.is_empty() {
            return error;
        }
        error.context(format!("not archived: {}", batch::name_some(&lost)))
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

/// Draws a random id.
pub fn random_id(env: &Env) -> Id {
    let mut id = [0; 16];
    env.rand.fill(&mut id);
    Id(id)
}
