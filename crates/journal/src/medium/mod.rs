//! The storage for the bytes of one store (J-28): files of a folder ([`posix`]), or objects ([`objects`]).
//!
//! Above this line a log is a sequence of commits, each at an [`Address`], and nothing is known of paths,
//! lengths, inodes, torn tails or zeros. Below it nothing is known of keys, transactions and followers.
//!
//! * [`Medium`]: the store itself, and bytes of its logs;
//! * [`Watch`]: which logs there are, and the last commit of each;
//! * [`LogWriter`], [`DataWriter`]: what one writer appends;
//! * [`Inspect`]: looking after what is stored.
//!
//! Contract of every medium (the suites of stores and followers run on each):
//! * a commit is there as a whole or not at all, and durable when [`LogWriter::append`] returns;
//! * a commit that [`Watch::look`] has shown once is shown by all later looks, or is missing and then named
//!   as a [`Loss`];
//! * a look sees each commit whose append returned before the look began (on media that show other hosts'
//!   writes late: when they show);
//! * addresses in a log grow from commit to commit; within one commit, and within what one
//!   [`DataWriter::write`] took, they count bytes.
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_journal::journal::{Journal, JournalOptions};
//! use fieldstone_journal::medium::objects::{ObjectMedium, Objects};
//!
//! let env = SimWorld::memory();
//! let objects = Arc::new(Objects::default());
//! let medium = Arc::new(ObjectMedium::new(env.clone(), objects));
//! let journal = Journal::over(env, medium, JournalOptions { writable: true, ..Default::default() })?;
//! assert!(journal.looks().snapshot()?.logs.is_empty());
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

pub mod objects;
pub mod posix;
mod tip;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use fieldstone_core::env::Space;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, FrameInfo, LogHeader};
use fieldstone_format::marker::Marker;

use crate::identity::StoreIdentity;
use crate::takeover::{Takeover, Takeovers};
pub use tip::{Findings, LogsGone, Look, Loss, Problem, Tip, clock_stamp, is_believed};

/// The position of a byte in a log or a data log. Sums of an address and a length are valid within one commit only.
pub type Address = u64;

/// The user who claimed a level before us: the level, and his number.
pub type Claimed = (Vec<u8>, u32);

/// The storage for the bytes of one store.
pub trait Medium: Send + Sync + fmt::Debug {
    /// The same store for a forked child: without any lock that a thread of the parent may hold.
    fn forked(&self) -> Arc<dyn Medium>;

    /// The store's name, in messages and in the ids of its fields.
    fn name(&self) -> &OsStr;

    /// A writer's log (number 0) or data log as messages name it.
    fn shown(&self, writer: Id, number: u32) -> String;

    /// The bytes of the marker; `None` where there is no store.
    fn marker(&self) -> Result<Option<Vec<u8>>>;

    /// There is a store with this id: [`create`](Self::create) never makes it again where it is gone.
    fn note_exists(&self, id: Id);

    /// Creates the store if it does not exist; durable when this returns. The first caller decides the identity,
    /// which this returns. Conflict if the store has another schema, Unavailable if it existed before and is gone.
    fn create(&self, identity: StoreIdentity) -> Result<StoreIdentity>;

    /// Claims encoded first levels for this process's user, where others may write into the store. `false` where
    /// that cannot be said yet. The inner error is the first level that is another user's.
    fn claim(&self, levels: &[&Vec<u8>]) -> Result<std::result::Result<bool, Claimed>>;

    /// Looks at the logs, from now on.
    fn watch(&self) -> Box<dyn Watch>;

    /// Fills `buffer` from an address.
    fn read(&self, writer: Id, number: u32, buffer: &mut [u8], at: Address) -> Result<()>;

    /// Reads `length` bytes; Corrupt, before anything is allocated, where there are fewer.
    fn read_vec(&self, writer: Id, number: u32, at: Address, length: u64) -> Result<Vec<u8>>;

    /// The commit at `target`, which the one at `from`, with this record, says to be before it.
    fn commit_before(
        &self,
        log: Id,
        target: Address,
        from: &FrameInfo,
        record: &CommitRecord,
    ) -> Result<(FrameInfo, CommitRecord)>;

    /// Commits of a log from its first one on, up to one that cannot be read or to `until`.
    fn first_commits(&self, log: Id, until: Address) -> Result<Vec<(FrameInfo, CommitRecord)>>;

    /// A new log. Nothing is made of it before its first commit.
    fn log(&self, header: LogHeader) -> Box<dyn LogWriter>;

    /// A new data log.
    fn data_log(&self, writer: Id, number: u32) -> Result<Box<dyn DataWriter>>;

    /// Maintenance of the store.
    fn inspect(&self) -> &dyn Inspect;

    /// The store's folder, where it is one of files.
    fn files(&self) -> Option<&posix::FileMedium> {
        None
    }
}

/// Which logs there are, and the last commit of each.
pub trait Watch: Send + fmt::Debug {
    /// Looks; whether anything may differ from the look before.
    fn look(&mut self, look: Look) -> Result<bool>;

    /// Takes a commit of this process's own, which is durable: no look is needed to know it.
    fn wrote(&mut self, log: Id, ends: &FrameInfo, record: &Arc<CommitRecord>);

    /// The logs with a commit, by writer.
    fn tips(&self) -> Vec<Arc<Tip>>;

    /// The takeovers that count. Logs that one of them replaces are not among the tips.
    fn takeovers(&self) -> Takeovers {
        Takeovers::default()
    }

    /// The problems that the last look found.
    fn findings(&self) -> Findings;

    /// The greatest stamp that a new commit must exceed.
    fn max_stamp(&self) -> u64;

    /// The owners of claims.
    fn claims(&self) -> Arc<dyn Claims>;

    /// The user who may replace the logs of all others, once that is known.
    fn folder_owner(&self) -> Option<u32>;

    /// The user whose log it is, or was, as far as anything says so.
    fn owner(&self, log: Id) -> Option<u32>;

    /// The last commit that a log's own user says to be durable, and whether the log is closed.
    fn announced(&self, log: &Tip) -> Option<(u64, bool)>;

    /// How a log ended, where this commit is its last one for ever.
    fn ended(&self, log: &Tip) -> Option<Ended>;

    /// The logs that ended before their first commit, with their users.
    fn ended_empty(&self) -> Vec<(Id, u32)> {
        Vec::new()
    }
}

/// How a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its writer closed it.
    Closed,
    /// An end file names its last commit.
    EndFile,
    /// Somebody accepted the loss of its later commits.
    Accepted,
}

/// The claimant of an encoded first level of keys, found by a look at the logs.
pub trait Claims: Send + Sync + fmt::Debug {
    /// The user; `None` where nobody did.
    fn owner(&self, level: &[u8]) -> Option<u32>;
}

/// Appends commits to one log.
pub trait LogWriter: Send + fmt::Debug {
    /// The position of the next frame.
    fn next(&self) -> Address;

    /// Appends a frame, whose parts follow one another; durable when this returns. Unavailable where the log
    /// is gone from its place.
    fn append(&mut self, ends: &FrameInfo, parts: &[&[u8]]) -> Result<()>;

    /// The next frame does not count unless it is durable by this moment, nanoseconds since 1970.
    fn set_deadline(&mut self, _at: i64) {}

    /// Shows readers the commit that was appended last: a hint, which fails nothing.
    fn announce(&mut self, ends: &FrameInfo, record: &CommitRecord);

    /// Fills `buffer` with bytes that this writer appended.
    fn read(&self, buffer: &mut [u8], at: Address) -> Result<()>;

    /// Whether the log was found gone.
    fn is_gone(&self) -> bool;

    /// Whether the log has ended with its last commit, because somebody else asked for that: nothing more is appended.
    fn is_ended(&self) -> bool;

    /// Whether a takeover holds all that was acknowledged, so that its files may be gone.
    fn is_taken_over(&self) -> bool {
        false
    }

    /// Looks whether somebody has ended the log, or asks for that, since the last append, which was long ago.
    fn wake(&mut self) {}

    /// Makes the end of the log, at its last commit, durable after a failure, as far as that is possible.
    /// [`seal`](Self::seal) does it where it was not done.
    fn end(&mut self) {}

    /// Ends the log at its last commit after a failure: its address, for the header of the next log. `None`
    /// where nothing was made yet.
    fn seal(self: Box<Self>) -> Option<Address>;

    /// Says that nothing more comes.
    fn close(self: Box<Self>);
}

/// The error of a commit of an attempt that has ended.
pub fn attempt_ended(attempt: &str) -> Error {
    Code::AttemptEnded
        .error(format!("the attempt {attempt} flushed nothing for 30 days, and a newer one has begun"))
        .with_hint("open the store with the name of a new attempt, and archive again what is named here")
}

/// The error of a commit that took so long that its attempt may have ended meanwhile.
pub fn attempt_slept() -> Error {
    Code::AttemptEnded
        .error("a commit took so long that its attempt may count as silent for 30 days")
        .with_hint("archive again what is named here, with the name of a new attempt if there is one")
}

/// The error of a commit behind the end of its log.
pub fn ended_meanwhile(log: impl fmt::Display, last: u64) -> Error {
    let why =
        format!("{log} was ended after its commit {last}, while this process slept or seemed to be gone");
    Code::LogEnded.error(why).with_hint("archive again what is named here: this handle goes on in a new log")
}

/// Appends payloads to one data log.
pub trait DataWriter: Send + fmt::Debug {
    /// Its number.
    fn number(&self) -> u32;

    /// Takes bytes; returns where they will stand. Bytes taken one after another, without a sync between, follow
    /// one another.
    fn write(&mut self, bytes: &[u8]) -> Result<Address>;

    /// The handles to sync for everything that was taken.
    fn unsynced(&mut self) -> Result<Unsynced>;

    /// All before an address is durable.
    fn note_synced(&mut self, upto: Address);

    /// Up to where all is durable.
    fn synced(&self) -> Address;

    /// Unavailable where the data log is gone from its place.
    fn check(&mut self) -> Result<()>;

    /// Ends the data log after a failure: frees the room taken since the last sync, which no commit names. Bytes that
    /// cannot be freed stay, and no entry refers to them.
    fn give_up(self: Box<Self>);

    /// Whether it was found gone.
    fn is_gone(&self) -> bool;
}

/// A sync that is to be made, without a lock on the data log.
pub struct Unsynced {
    /// All before is durable when the sync has returned.
    pub upto: Address,
    sync: Box<dyn Fn() -> Result<()> + Send>,
}

impl Unsynced {
    /// A sync after which all before `upto` is durable.
    pub fn new(upto: Address, sync: impl Fn() -> Result<()> + Send + 'static) -> Unsynced {
        Unsynced { upto, sync: Box::new(sync) }
    }

    /// Returns when it is durable.
    pub fn sync(&self) -> Result<()> {
        (self.sync)()
    }
}

impl fmt::Debug for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unsynced({})", self.upto)
    }
}

/// The identity of an existing store: Conflict if it was created with another schema than the requested one.
fn agree(marker: Marker, asked: &StoreIdentity, store: &dyn fmt::Display) -> Result<StoreIdentity> {
    if marker.schema != asked.schema {
        let made = format!("{store} has meanwhile been made a store with another schema");
        return Err(Error::conflict(made).with_hint("open it again"));
    }
    Ok(StoreIdentity { id: marker.id, schema: marker.schema })
}

/// The loss of a data log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataLoss {
    /// All of it.
    Missing,
    /// Its end: bytes that are there, and bytes that were synced.
    Short(u64, u64),
}

/// Looking after what is stored.
pub trait Inspect: Send + Sync + fmt::Debug {
    /// Every commit of a log up to this one, oldest first, with the outcome of checking all of it.
    fn check(&self, log: &Tip, each: &mut dyn FnMut(FrameInfo, Result<CommitRecord>)) -> Result<()>;

    /// Compares both copies of a takeover's header and record with their checksums.
    fn check_takeover(&self, takeover: &Takeover) -> Result<()> {
        let _ = takeover;
        Ok(())
    }

    /// Reads a log's header again.
    fn check_header(&self, log: &Tip) -> Result<()>;

    /// Checks that a data log is one, and holds all before an address.
    fn check_data(&self, writer: Id, number: u32, upto: Address) -> Result<()>;

    /// Bytes behind the last commit of a log that belong to none: being written, or torn.
    fn tail(&self, log: &Tip) -> Result<u64>;

    /// Names that stand among the logs, claims and ends of logs left out, and the logs that they are of.
    fn logs(&self) -> Result<Vec<(String, Option<Id>)>>;

    /// Files in the store's folder that are not the store's, relative to it.
    fn foreign(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// How many files or objects there are, and their bytes.
    fn size(&self) -> Result<(u64, u64)>;

    /// The fault of a data log by its size, where all before an address was synced; nothing is read.
    fn data_loss(&self, writer: Id, number: u32, upto: Address) -> Result<Option<DataLoss>>;

    /// Bytes and files that can still be written; `None` where nobody can say.
    fn space(&self) -> Option<Space>;

    /// Bytes of files that no writer's record counts, such as arrays, by user.
    fn beside_logs(&self) -> Result<BTreeMap<u32, u64>>;
}
