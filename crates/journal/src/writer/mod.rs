//! Writing: this process's own log, and nothing else.
//!
//! * here: the state that threads of this process share, under one lock that is never held across a sync, but for that
//!   of an end file (a data log failed, or somebody else ended the log of an idle handle);
//! * `commit`: one commit, from a batch to the log; the thread that makes it has the log to itself meanwhile;
//! * `sessions`: archived and unflushed content, and losses; `session_state`: the part of one session (`batch`), and
//!   the threads that have yet to learn of a loss (`loss`); `waiting`: questions about content that waits for a
//!   flush;
//! * `encoded`: an encoded value;
//! * `log`: a commit's references to those before it; `limits`: when a log is long enough; `live_segments`: the
//!   segments of the log and their merging;
//! * `shared`: the places of bytes that later values may be equal to.
//!
//! The [medium](crate::medium) decides where the bytes go. Invariants:
//! * a flush of up to [`INLINE_MAX`] bytes is one append to the log; a larger one syncs its data log before;
//! * a log that is long enough, or that somebody else has ended, is left for a new one: between two commits, and such
//!   that no value that waits is lost by it;
//! * after any failed write or sync the log is sealed at its last commit and never written again; the next flush
//!   begins a new one; a log, data log or store that is gone from its place counts as failed;
//! * every session that loses content to a failure gets an error; content that another log can take is not dropped;
//! * the stamp of a commit is greater than every stamp visible when its flush began.

mod batch;
mod commit;
mod encoded;
mod limits;
mod live_segments;
mod log;
mod loss;
mod session_state;
mod sessions;
mod shared;
mod waiting;

use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::attempt::Origin;
use fieldstone_format::log::Prepared;
use fieldstone_format::{FORMAT_VERSION, Id};

use batch::{Batch, Copies};
pub use commit::{Commit, Flight, Horizon, check_format};
pub use encoded::{Encoded, Payload, StoredParts};
pub use limits::LogLimits;
use log::Log;
pub use loss::{Failed, Losses};
pub use sessions::Sessions;
use shared::Shared;
pub use waiting::{PendingArray, PendingCursor, PendingSide};

use crate::author::Author;
use crate::identity::{StoreIdentity, random_id};
use crate::medium::{DataWriter, Medium, ended_meanwhile};
use crate::session::SessionKey;

/// Payload up to which a flush is one write to the log (J-2).
pub const INLINE_MAX: usize = 1 << 20;

/// The writer of one process.
#[derive(Debug)]
pub struct Writer {
    env: Env,
    medium: Arc<dyn Medium>,
    /// Of which job what it writes is.
    origin: Origin,
    limits: LogLimits,
    /// The version of the format that the store is of, and this writer's next log.
    format: u32,
    /// Transactions prepared in logs that were left, until the next one is begun.
    left: Vec<(Id, Prepared)>,
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
    /// The unflushed content of sessions, and their losses.
    pub sessions: Sessions,
    last_stamp: u64,
    /// Places of values that were archived with a digest.
    shared: Shared,
}

/// A data log of the next log, if anything waits, and the places in it to which the batches were copied.
type Copied = (Option<Box<dyn DataWriter>>, Vec<(SessionKey, Copies)>);

impl Writer {
    /// A writer without a log: the first commit makes one.
    pub fn new(env: Env, medium: Arc<dyn Medium>, origin: Origin, limits: LogLimits) -> Writer {
        Writer {
            env,
            medium,
            origin,
            limits,
            format: FORMAT_VERSION,
            left: Vec::new(),
            identity: None,
            log: None,
            log_id: None,
            busy: false,
            data: None,
            sealed: Vec::new(),
            sessions: Sessions::default(),
            last_stamp: 0,
            shared: Shared::default(),
        }
    }

    /// Whether a commit is under way.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Forgets a transaction, which has ended. Values that others took for it behind the end stay, until their flushes are
    /// refused.
    pub fn end(&mut self, transaction: Id) {
        self.sessions.end(transaction);
        self.left.retain(|(_, prepared)| prepared.transaction != transaction);
        if let Some(log) = &mut self.log {
            log.forget_transaction(transaction);
        }
    }

    /// Whether the store is known to be there: a log is begun only then.
    pub fn is_ready(&self) -> bool {
        self.identity.is_some()
    }

    /// The store is there.
    pub fn ready(&mut self, identity: StoreIdentity) {
        self.identity = Some(identity);
    }

    /// Whether a value needs the data log, which is one of a store that is there.
    pub fn needs_data_log(&self, session: SessionKey, value: &Encoded<'_>) -> bool {
        let shares = value.digest.is_some_and(|digest| self.shared.find(digest).is_some());
        let batch = self.sessions.state(session).map(|own| &own.batch);
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
        let own = self.sessions.given(session);
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
        let (Some(data), Some(own)) = (&mut self.data, self.sessions.state_mut(session)) else {
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
                let mut log = self.new_log(id, self.format)?;
                log.follow(std::mem::take(&mut self.left));
                (self.log, self.log_id) = (Some(log), Some(id));
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

    /// Leaves the log where it is long enough and nothing that waits names bytes of its files: the next commit begins a
    /// new one. While no commit is under way.
    fn leave_long_log(&mut self) {
        let Some(log) = &self.log else { return };
        let (commits, bytes, age) = log.extent(&self.env);
        if !self.limits.are_reached(commits, bytes, age) && !log.is_ended()
            || !self.sessions.bound().is_empty()
        {
            return;
        }
        self.leave_log();
    }

    /// Closes the log, while no commit is under way: the next commit begins a new one. Not while values that wait name bytes of
    /// its files.
    pub fn leave_log(&mut self) {
        if !self.sessions.bound().is_empty() || !self.has_made_log() {
            return;
        }
        if let Some(left) = self.log.take() {
            self.left = left.all_prepared();
            left.close();
        }
        (self.data, self.log_id) = (None, None);
        self.shared = Shared::default();
    }

    /// Sees, while no commit is under way, that the log is one to write to. It has one version (J-30): where that is
    /// older than the store's, which was upgraded meanwhile, and where the log is much too long or was ended, this
    /// writer goes on in a new one, and what waits in any session and names bytes of the old files is copied. After an
    /// error nothing has changed, but for what a failed data log lost, of which everybody learns.
    fn move_on(&mut self, session: SessionKey, format: u32) -> Result<()> {
        self.format = format;
        if let Some(log) = &mut self.log {
            log.wake(&self.env);
        }
        self.leave_long_log();
        self.log()?;
        let needed = format;
        let is_over = |log: &Log| {
            let (commits, bytes, age) = log.extent(&self.env);
            log.is_ended() || self.limits.are_exceeded(commits, bytes, age)
        };
        let (old, is_taken_over, last) = match &self.log {
            // Nothing of it is on disk: what its data log holds stays where it is.
            Some(log) if log.is_unmade() && log.version() != needed => {
                let mut log = self.new_log(log.writer(), needed)?;
                log.follow(self.log.as_ref().map(Log::all_prepared).unwrap_or_default());
                self.log = Some(log);
                return Ok(());
            }
            Some(log) if log.version() < needed || is_over(log) => {
                (log.writer(), log.is_taken_over(), log.next_sequence() - 1)
            }
            _ => return Ok(()),
        };
        let new = random_id(&self.env);
        // Bytes in memory are to be read back; where that fails, they are lost.
        if !self.sessions.bound().is_empty()
            && let Some(Err(e)) = self.data.as_mut().map(|data| data.unsynced())
        {
            return Err(self.fail(Failed::Flush(session), e));
        }
        let (data, copied) = match self.copy_bound(old, new) {
            Ok(copied) => copied,
            // It went with its log, which a takeover replaced while this process slept.
            Err(gone) if is_taken_over && gone.code() == Code::DataGone => {
                let error = ended_meanwhile(format_args!("the log of writer {old}"), last);
                return Err(self.fail(Failed::Flush(session), error));
            }
            Err(e) => return Err(e),
        };
        let mut log = self.new_log(new, needed)?;
        log.follow(self.log.as_ref().map(Log::all_prepared).unwrap_or_default());
        let left = self.log.replace(log);
        (self.log_id, self.data) = (Some(new), data);
        for (id, copies) in copied {
            if let Some(own) = self.sessions.state_mut(id) {
                own.batch.rebind(copies);
            }
        }
        self.shared = Shared::default();
        if let Some(left) = left {
            left.close();
        }
        Ok(())
    }

    /// Copies what waits in any session and names bytes in files of the old log, into a data log of the new one.
    fn copy_bound(&self, old: Id, new: Id) -> Result<Copied> {
        let bound = self.sessions.bound();
        if bound.is_empty() {
            return Ok((None, Vec::new()));
        }
        let mut data = self.medium.data_log(new, 1)?;
        let read = |file, at, length| self.medium.read_vec(old, file, at, length);
        let mut copied = Vec::new();
        for id in bound {
            let Some(own) = self.sessions.state(id) else { continue };
            match own.batch.copy_bound(read, &mut *data) {
                Ok(copies) => copied.push((id, copies)),
                Err(e) => {
                    data.give_up();
                    return Err(e);
                }
            }
        }
        Ok((Some(data), copied))
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
            self.left = log.all_prepared();
            if log.is_gone() || data_gone && !log.is_taken_over() {
                // Earlier flushes are gone as well: nothing is committed without them.
                for part in log.prepared(|_| false) {
                    self.sessions.rob(part.transaction, &error);
                }
                self.left.retain(|(writer, _)| *writer != log.writer());
            }
            self.sealed.extend(log.seal());
        }
        // A place is one in the files of one log; the next log has others.
        self.shared = Shared::default();
        self.sessions.fail(what, error)
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
