//! Writing: this process's own log, and nothing else.
//!
//! * here: what threads of this process share, under one lock that is never held across a sync;
//! * `commit`: one commit, from a batch to the log; whoever makes it has the log to himself meanwhile;
//! * `session`: one outside transactions, one for each transaction: what was archived and not yet
//!   flushed (`batch`), and who is still to learn of what a failure took (`loss`);
//! * `encoded`: a value as it is handed over;
//! * `log`: what a commit says of those before it; `live_segments`: the segments of the log and their merging;
//! * `waiting`: what is asked of that which waits for a flush;
//! * `shared`: where bytes stand that later values may be equal to.
//!
//! Where the bytes go is the [medium](crate::medium)'s. Invariants:
//! * a flush of up to [`INLINE_MAX`] bytes is one append to the log; a larger one syncs its data log
//!   before;
//! * after any failed write or sync the log is sealed at its last commit and never written again; the
//!   next flush begins a new one; a log, data log or store that is gone from its place counts as failed;
//! * what a failure drops is reported to all whose it was; what another log can take is not dropped;
//! * the stamp of a commit is greater than every stamp visible when its flush began.

mod batch;
mod commit;
mod encoded;
mod live_segments;
mod log;
mod loss;
mod session_state;
mod shared;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, Result};
use fieldstone_format::attempt::Origin;
use fieldstone_format::keys::key_text;
use fieldstone_format::log::SideRecord;
use fieldstone_format::{FORMAT_VERSION, Id};

use batch::Batch;
pub use commit::{Commit, Flight, Horizon, check_format};
pub use encoded::Encoded;
use log::Log;
pub use loss::Losses;
use loss::{Loss, Robbed};
use session_state::SessionState;
use shared::Shared;
pub use waiting::PendingArray;

use crate::author::Author;
use crate::identity::{StoreIdentity, random_id};
use crate::medium::{DataWriter, Medium};
use crate::session::SessionKey;
use crate::snapshot::Flushed;

/// Payload up to which a flush is one write to the log (J-2).
pub const INLINE_MAX: usize = 1 << 20;

/// What failed.
#[derive(Debug, Clone, Copy)]
pub enum Failed<'a> {
    /// A session's value, with this encoded key, was being taken into the data log.
    Value(SessionKey, &'a [u8]),
    /// The store was being made for a session.
    Store(SessionKey),
    /// A session's flush.
    Flush(SessionKey),
    /// A decision on a transaction, which belongs to no session.
    Decision,
}

impl Failed<'_> {
    fn session(&self) -> Option<SessionKey> {
        match self {
            Failed::Value(session, _) | Failed::Store(session) | Failed::Flush(session) => Some(*session),
            Failed::Decision => None,
        }
    }

    fn key(&self) -> Option<&[u8]> {
        match self {
            Failed::Value(_, key) => Some(key),
            _ => None,
        }
    }
}

/// How far somebody has read the side records that wait for a session's flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PendingCursor {
    /// Changes when records that were there do not wait any more: flushed, lost or discarded.
    pub epoch: u64,
    /// Records that were read.
    pub records: usize,
}

impl PendingCursor {
    /// Whether all records that `earlier` has read are still the first of those that wait.
    pub fn continues(&self, earlier: PendingCursor) -> bool {
        earlier.records == 0 || (self.epoch == earlier.epoch && self.records >= earlier.records)
    }
}

/// Side records that wait for a session's flush.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingSide {
    /// The cursor behind them.
    pub end: PendingCursor,
    /// Whether they stand behind what the cursor had read; else they are all that waits, from the first on.
    pub continues: bool,
    /// The records, in their order.
    pub records: Vec<SideRecord>,
}

/// The writer of one process.
#[derive(Debug)]
pub struct Writer {
    env: Env,
    medium: Arc<dyn Medium>,
    /// Of which job what it writes is.
    origin: Origin,
    /// The version of the format that the store is of, and this writer's next log.
    format: u32,
    /// The store's identity, once this writer knows it to be there.
    identity: Option<StoreIdentity>,
    /// The log; absent before the first commit, and while a commit under way has it.
    log: Option<Log>,
    /// The id of the log, wherever it is.
    log_id: Option<Id>,
    /// Whether a commit is under way.
    busy: bool,
    data: Option<Box<dyn DataWriter>>,
    /// Logs of this writer that failed, with the lengths at which they end.
    sealed: Vec<(Id, u64)>,
    sessions: HashMap<SessionKey, SessionState>,
    /// The last commit of each session that has not ended here.
    flushed: HashMap<SessionKey, Flushed>,
    /// Batches that were begun so far.
    batches: u64,
    /// How often each session lost something to a failure.
    losses: Losses,
    robbed: Robbed,
    last_stamp: u64,
    /// Places of values that were archived with a digest.
    shared: Shared,
}

impl Writer {
    /// A writer without a log: the first commit makes one.
    pub fn new(env: Env, medium: Arc<dyn Medium>, origin: Origin) -> Writer {
        Writer {
            env,
            medium,
            origin,
            format: FORMAT_VERSION,
            identity: None,
            log: None,
            log_id: None,
            busy: false,
            data: None,
            sealed: Vec::new(),
            sessions: HashMap::new(),
            flushed: HashMap::new(),
            batches: 0,
            losses: Losses::default(),
            robbed: Robbed::default(),
            last_stamp: 0,
            shared: Shared::default(),
        }
    }

    /// Fields archived and not yet flushed, over all sessions.
    pub fn unflushed(&self) -> u64 {
        self.sessions.values().flat_map(SessionState::batches).map(|batch| batch.len() as u64).sum()
    }

    /// The number of the last batch of a session that waits for a flush.
    pub fn waits_for(&self, session: SessionKey) -> Option<u64> {
        self.sessions.get(&session)?.waits_for()
    }

    /// Notes a flush that waits for what a session holds now: its ticket, and the number of the last batch. `None` where
    /// there is nothing to wait for.
    pub fn enter(&mut self, session: SessionKey) -> Option<(u64, u64)> {
        let own = self.sessions.get_mut(&session)?;
        let target = own.waits_for()?;
        Some((own.enter(target), target))
    }

    /// The flush waits no more: what was lost of that which it waited for, whoever lost it.
    pub fn leave(&mut self, session: SessionKey, ticket: u64) -> Result<()> {
        let lost = self.sessions.get_mut(&session).and_then(|own| own.leave(ticket));
        self.tidy(session);
        lost.map_or(Ok(()), |lost| Err(lost.error()))
    }

    /// Losses of a session that no call has reported to their threads, for whoever closes; once.
    pub fn report_untold(&mut self, session: SessionKey) -> Result<()> {
        let lost = self.sessions.get_mut(&session).and_then(SessionState::report_untold);
        lost.map_or(Ok(()), |lost| Err(lost.error()))
    }

    /// Whether a session's batches up to a number are durable, or lost.
    pub fn is_through(&self, session: SessionKey, number: u64) -> bool {
        self.sessions.get(&session).is_none_or(|session| session.is_through(number))
    }

    /// Whether a commit is under way.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// The last commit of a session that has not ended here.
    pub fn flushed(&self, session: SessionKey) -> Option<Flushed> {
        self.flushed.get(&session).cloned()
    }

    /// Encoded keys in a session.
    pub fn keys(&self, session: SessionKey) -> Vec<Vec<u8>> {
        let batches = self.sessions.get(&session).into_iter().flat_map(SessionState::batches);
        batches.flat_map(|batch| batch.keys().map(<[u8]>::to_vec)).collect()
    }

    /// Raises what a failure lost of a session and this thread has not heard of; once, but again and again
    /// for a transaction that was robbed.
    pub fn check(&mut self, session: SessionKey) -> Result<()> {
        session.transaction.map_or(Ok(()), |id| self.robbed.check(id))?;
        let outcome = self.sessions.get_mut(&session).map_or(Ok(()), SessionState::check);
        self.tidy(session);
        outcome
    }

    /// Forgets what a session holds.
    pub fn discard(&mut self, session: SessionKey) {
        if let Some(own) = self.sessions.get_mut(&session) {
            own.discard(session.transaction.is_some());
        }
        self.tidy(session);
    }

    /// Forgets a transaction, which has ended. Values that others took for it behind the end stay, until their flushes are
    /// refused.
    pub fn end(&mut self, transaction: Id) {
        let is_of = |key: &SessionKey| key.transaction == Some(transaction);
        self.sessions.retain(|key, own| !is_of(key) || own.holds_anything());
        self.flushed.retain(|key, _| !is_of(key));
        self.robbed.end(transaction);
        if let Some(log) = &mut self.log {
            log.forget_transaction(transaction);
        }
    }

    fn tidy(&mut self, session: SessionKey) {
        if self.sessions.get(&session).is_some_and(SessionState::is_idle) {
            self.sessions.remove(&session);
        }
    }

    fn session(&mut self, session: SessionKey) -> &mut SessionState {
        let batches = &mut self.batches;
        self.sessions.entry(session).or_insert_with(|| {
            *batches += 1;
            SessionState::new(*batches)
        })
    }

    /// Takes catalog and graph changes of this thread for the next commit of a session. Without any it is
    /// noted that this thread is about to have some.
    pub fn take_side(&mut self, session: SessionKey, records: Vec<SideRecord>) {
        let own = self.session(session);
        own.note();
        own.batch.side.extend(records);
    }

    /// Counts attributes of this thread that the caller keeps for a session, for now; how often the session
    /// has lost something so far.
    pub fn keep(&mut self, session: SessionKey, attributes: u64) -> u64 {
        self.session(session).keep(attributes);
        self.losses.of(session)
    }

    /// Takes side records of so many attributes that were kept, and counted when the session had lost
    /// something so often. `false` where it has lost more since: they were counted as lost.
    pub fn take_kept(
        &mut self,
        session: SessionKey,
        losses: u64,
        attributes: u64,
        records: Vec<SideRecord>,
    ) -> bool {
        if self.losses.of(session) != losses {
            return false;
        }
        self.session(session).take_kept(attributes, records);
        true
    }

    /// How often each session has lost something, of those that did.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Takes an encoded first level that the next commit of a session claims beside those of its fields.
    pub fn take_claim(&mut self, session: SessionKey, level: Vec<u8>) {
        let own = self.session(session);
        own.note();
        own.batch.claims.insert(level);
    }

    /// Catalog and graph changes that wait for a commit of a session, behind what `cursor` has read of them.
    pub fn side_behind(&self, session: SessionKey, cursor: PendingCursor) -> PendingSide {
        let end = self.side_cursor(session);
        let continues = cursor.records == 0 || cursor.epoch == end.epoch;
        let passed = if continues { cursor.records } else { 0 };
        let batches = self.sessions.get(&session).into_iter().flat_map(SessionState::batches);
        let mut records = Vec::with_capacity(end.records.saturating_sub(passed));
        let mut left = passed;
        for batch in batches {
            let skipped = left.min(batch.side.len());
            records.extend_from_slice(&batch.side[skipped..]);
            left -= skipped;
        }
        PendingSide { end, continues, records }
    }

    /// Where [`side_behind`](Self::side_behind) would end now.
    pub fn side_cursor(&self, session: SessionKey) -> PendingCursor {
        let Some(own) = self.sessions.get(&session) else { return PendingCursor::default() };
        let records = own.batches().map(|batch| batch.side.len()).sum();
        PendingCursor { epoch: own.epoch, records }
    }

    /// Whether the store is known to be there: a log is begun only then.
    pub fn is_ready(&self) -> bool {
        self.identity.is_some()
    }

    /// The store is there.
    pub fn ready(&mut self, identity: StoreIdentity) {
        self.identity = Some(identity);
    }

    /// Whether values of this author may join those that wait in a session.
    pub fn may_take(&self, session: SessionKey, author: &Author) -> bool {
        self.sessions.get(&session).is_none_or(|own| own.batch.may_take(author))
    }

    /// Whether a value needs the data log, which is one of a store that is there.
    pub fn needs_data_log(&self, session: SessionKey, value: &Encoded<'_>) -> bool {
        let shares = value.digest.is_some_and(|digest| self.shared.find(digest).is_some());
        let batch = self.sessions.get(&session).map(|own| &own.batch);
        let spilled = batch.is_some_and(Batch::spilled);
        let waiting = batch.map_or(0, Batch::inline_len);
        !shares && (spilled || waiting + value.stored_len() > INLINE_MAX)
    }

    /// Takes an encoded value of an author, where it can be kept in memory; else it is given back.
    pub fn take<'a>(
        &mut self,
        session: SessionKey,
        value: Encoded<'a>,
        author: &Author,
    ) -> Option<Encoded<'a>> {
        let place = value.digest.and_then(|digest| self.shared.find(digest));
        let spills = self.needs_data_log(session, &value);
        let own = self.session(session);
        own.note();
        own.batch.note_author(author.clone());
        match place {
            Some(place) => own.batch.add_shared(value, place),
            None if spills => return Some(value),
            None => own.batch.add_inline(value),
        }
        None
    }

    /// Takes a value into the data log, with all that waited in memory: what [`take`](Self::take) gave back, under the same
    /// lock. After an error the caller calls [`fail`](Self::fail), when no commit is under way.
    pub fn spill(&mut self, session: SessionKey, value: Encoded<'_>) -> Result<()> {
        let writer = self.log()?;
        if self.data.is_none() {
            self.data = Some(self.medium.data_log(writer, 1)?);
        }
        let (Some(data), Some(own)) = (&mut self.data, self.sessions.get_mut(&session)) else {
            return Err(Error::internal("a value is spilled that nobody took"));
        };
        own.batch.move_to(&mut **data)?;
        own.batch.add_spilled(value, &mut **data)
    }

    /// The id of the log; one is begun where there is none.
    fn log(&mut self) -> Result<Id> {
        match self.log_id {
            Some(id) => Ok(id),
            None => {
                let id = random_id(&self.env);
                self.log = Some(self.new_log(id, self.format)?);
                self.log_id = Some(id);
                Ok(id)
            }
        }
    }

    fn new_log(&self, id: Id, version: u32) -> Result<Log> {
        let identity =
            self.identity.as_ref().ok_or_else(|| Error::internal("a log is begun before the store"))?;
        Ok(Log::new(&self.env, &*self.medium, identity, (id, version), &self.sealed, &self.origin))
    }

    /// Whether a log of this writer is on disk, or is being made.
    pub fn has_made_log(&self) -> bool {
        self.busy || self.log.as_ref().is_some_and(|log| !log.is_unmade())
    }

    /// Sees that the log has the version that the store is of, while no commit is under way. A log has one version
    /// (J-30): where it is older, since the store was upgraded meanwhile, this writer goes on in a new one, and what
    /// waits in any session and names bytes of the old files is copied. After an error nothing has changed, but for
    /// what a failed data log lost, of which everybody learns.
    fn raise(&mut self, session: SessionKey, format: u32) -> Result<()> {
        self.format = format;
        let needed = format;
        let old = match &self.log {
            // Nothing of it is on disk: what its data log holds stays where it is.
            Some(log) if log.is_unmade() && log.version() != needed => {
                self.log = Some(self.new_log(log.writer(), needed)?);
                return Ok(());
            }
            Some(log) if log.version() < needed => log.writer(),
            _ => return Ok(()),
        };
        let new = random_id(&self.env);
        let bound = self.sessions.iter().filter(|(_, own)| own.batch.is_bound());
        let bound: Vec<SessionKey> = bound.map(|(id, _)| *id).collect();
        let (mut data, mut copied) = (None, Vec::new());
        if !bound.is_empty() {
            // What it keeps in memory is to be read back; where that fails, it is lost.
            if let Some(Err(e)) = self.data.as_mut().map(|data| data.unsynced()) {
                return Err(self.fail(Failed::Flush(session), e));
            }
            let mut to = self.medium.data_log(new, 1)?;
            let read = |file, at, length| self.medium.read_vec(old, file, at, length);
            for id in bound {
                if let Some(own) = self.sessions.get(&id) {
                    copied.push((id, own.batch.copy_bound(read, &mut *to)?));
                }
            }
            data = Some(to);
        }
        let left = self.log.replace(self.new_log(new, needed)?);
        (self.log_id, self.data) = (Some(new), data);
        for (id, copies) in copied {
            if let Some(own) = self.sessions.get_mut(&id) {
                own.batch.rebind(copies);
            }
        }
        self.shared = Shared::default();
        if let Some(left) = left {
            left.close();
        }
        Ok(())
    }

    /// After a failure, while no commit is under way: seals the log, drops what cannot be flushed any more, and
    /// says what the call is to raise. Batches that name bytes of the failed files are dropped as well, and
    /// their users learn of it by their next calls; the others go into the next log.
    pub fn fail(&mut self, what: Failed<'_>, error: Error) -> Error {
        let data = self.data.take();
        let data_gone = data.as_ref().is_some_and(|data| data.is_gone());
        if let Some(data) = data {
            data.give_up();
        }
        (self.identity, self.log_id) = (None, None);
        if let Some(log) = self.log.take() {
            if log.is_gone() || data_gone {
                // What was flushed before is gone as well: nothing is committed without it.
                for part in log.prepared(|_| false) {
                    self.robbed.add(part.transaction, Loss::by(&error).of_prepared());
                }
            }
            self.sealed.extend(log.seal());
        }
        // A place is one in the files of one log; the next log has others.
        self.shared = Shared::default();
        let bound = self.sessions.iter().filter(|(_, own)| own.batch.is_bound()).map(|(key, _)| *key);
        let others: Vec<SessionKey> = bound.filter(|key| what.session() != Some(*key)).collect();
        let mut robbed: Vec<(SessionKey, Loss)> =
            others.into_iter().map(|key| (key, self.lose(key, None, &error))).collect();
        robbed.retain(|(_, loss)| !loss.is_empty());
        robbed.sort_unstable_by_key(|(id, _)| *id);
        let error = match what.session() {
            Some(session) => self.lose(session, Some(&what), &error).raised_by(error, &robbed),
            None => Loss::by(&error).raised_by(error, &robbed),
        };
        self.sessions.retain(|_, session| !session.is_idle());
        error
    }

    /// A session loses what it cannot flush any more. `failed`: the call of the session that failed, where it was one of its
    /// own, which informs its thread.
    fn lose(&mut self, key: SessionKey, failed: Option<&Failed<'_>>, error: &Error) -> Loss {
        self.losses.count(key);
        let all = failed.is_some_and(|failed| !matches!(failed, Failed::Flush(_)));
        let taking = failed.and_then(Failed::key).map(key_text);
        let own = self.session(key);
        let lost = own.lose(all, failed.is_some(), taking, error);
        let loss = lost.loss.clone();
        match key.transaction {
            None => own.leave_word(lost),
            Some(id) if lost.is_untold() => self.robbed.add(id, loss.clone()),
            Some(_) => {}
        }
        loss
    }

    /// Says that this writer writes no more.
    pub fn close(&mut self) {
        if let Some(log) = self.log.take() {
            log.close();
        }
        (self.data, self.log_id, self.identity) = (None, None, None);
        self.shared = Shared::default();
    }
}
