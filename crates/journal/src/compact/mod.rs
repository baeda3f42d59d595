//! Making takeovers: ended logs of one user, and his older takeovers, become one file that stands in for them
//! (takeovers.md, 9).
//!
//! A store forgets past writers so: opening it costs what its living logs and a few takeovers cost, however many writers there
//! ever were. Invariants:
//! * only logs that have ended are taken over, whole, and only where every byte of them matches its checksum (R11, R19);
//! * a takeover counts from the moment its file has its name, and holds everything that its inputs held (R15, R21, R23);
//! * the inputs stay for a grace: a reader that looked before the takeover was there finds them (R29);
//! * two makers never take over one log twice: the name of the takeover decides, and the loser looks again (R60).
//!
//! ```text
//! inputs     which logs and takeovers; their commits, read and checked
//! payload    bytes of small flushes, copied into a data log
//! part       how far that has come, for whoever goes on if the maker dies
//! tables     the small tables, in memory
//! commits    commits and side records, merged row by row
//! endings    transactions that have ended: sealed, and later forgotten
//! entries    index entries, merged by key; datasets, axes
//! walk       a purge: all entries of a snapshot by key, and which of them go
//! plan       a purge: ranges that are live, files that are dead
//! purge      a purge: how its plan is made
//! erasing    an erasure: side records without the values that are erased
//! survey     all entries of a snapshot, key by key
//! ```
//!
//! ```
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_format::log::SideRecord;
//! use fieldstone_journal::compact::CompactOptions;
//! use fieldstone_journal::journal::JournalOptions;
//! use fieldstone_journal::{Journal, Session};
//!
//! let env = SimWorld::memory();
//! let session = Session::default();
//! let open = || JournalOptions { writable: true, ..Default::default() };
//! for _ in 0..3 {
//!     let writer = Journal::open(env.clone(), "/store".as_ref(), open())?;
//!     writer.unflushed().add(vec![SideRecord { kind: 1, bytes: (*b"a note").into() }], &session)?;
//!     writer.committer().flush(&session)?;
//!     writer.close(&session)?;
//! }
//! let journal = Journal::open(env, "/store".as_ref(), open())?;
//! let report = journal.maintenance().compact(&CompactOptions::default(), &session, &mut |_| Ok(()))?;
//! assert_eq!(report.logs, (3, 0));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod commits;
mod ended_log;
mod endings;
mod entries;
mod erasing;
mod inputs;
mod part;
mod payload;
mod plan;
mod purge;
mod survey;
mod tables;
mod walk;

use std::collections::HashSet;

use fieldstone_core::env::Env;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::owner::Owner;
use fieldstone_format::table::TableRef;
use fieldstone_format::takeover::{Maker, TakeoverHeader, TakeoverRecord, TakeoverTable, parse_file_name};

use self::commits::{CommitNumbers, write_side};
use self::entries::EntryMerge;
pub use self::inputs::LeftLog;
pub(crate) use self::inputs::{Chooser, Inputs, choose, choose_all, living_names, store_of};
use self::part::Progress;
use self::payload::Payload;
pub(crate) use self::plan::PurgePlan;
pub use self::purge::PURGE_EXTRA;
pub use self::survey::survey;
use self::tables::SmallTables;
use self::walk::PurgeWalk;
pub(crate) use self::walk::protection;
pub use self::walk::{ErasedSide, Eraser, Judge, MetEntry, SideCommit, Verdict};
use crate::identity::random_id;
use crate::medium::Medium;
use crate::medium::posix::{FileMedium, LinkOutcome, TakeoverFile};
use crate::snapshot::Snapshot;

/// How long files stay that a takeover replaced, nanoseconds.
pub const GRACE: u64 = 3_600_000_000_000;

/// Bytes of payload after which a maker notes how far it has come (R67).
pub const PART_EVERY: u64 = 64 << 20;

/// Ended logs of a user from which on a writer that closes may take them over (R32).
pub const CLOSING_LOGS: usize = 32;
/// One of this number of closing writers does it.
pub const CLOSING_ONE_IN: u8 = 16;
/// Most bytes that a closing writer reads, of logs and in all: a tenth of a second.
const CLOSING_LOG_BYTES: u64 = 1 << 20;
const CLOSING_BYTES: u64 = 4 << 20;
/// How long replaced files stay for a closing writer, nanoseconds.
const CLOSING_GRACE: u64 = 300_000_000_000;
/// How long they stay at least, where more than [`CLOSING_WAITING`] wait.
pub const CLOSING_GRACE_LEAST: u64 = 2_000_000_000;
/// Replaced files from which on a closing writer removes the oldest earlier. Short jobs may end two hundred times a second,
/// and each open lists all names. A reader that finds a file gone looks for its commits in the newest takeover.
pub const CLOSING_WAITING: usize = 256;

impl CompactOptions {
    /// Those of a writer that closes.
    pub fn closing() -> CompactOptions {
        CompactOptions {
            only: None,
            max_bytes: Some(CLOSING_LOG_BYTES),
            max_merge: Some(CLOSING_BYTES),
            grace: CLOSING_GRACE,
            part_every: PART_EVERY,
            rate: None,
        }
    }
}

impl CompactOptions {
    /// Whether a log may be taken over.
    fn asks(&self, writer: Id) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&writer))
    }
}

/// How a store is compacted.
#[derive(Debug, Clone)]
pub struct CompactOptions {
    /// Logs that may be taken over; `None` for all.
    pub only: Option<HashSet<Id>>,
    /// Most bytes of logs that are read.
    pub max_bytes: Option<u64>,
    /// Most bytes of logs and older takeovers that one takeover is made of.
    pub max_merge: Option<u64>,
    /// How long replaced files stay, nanoseconds; 0 only where nobody else has the store open.
    pub grace: u64,
    /// Bytes of payload after which a maker notes how far it has come.
    pub part_every: u64,
    /// Most bytes of payload that are copied in a second.
    pub rate: Option<u64>,
}

impl Default for CompactOptions {
    fn default() -> CompactOptions {
        let (only, max_bytes, max_merge, rate) = Default::default();
        CompactOptions { only, max_bytes, max_merge, grace: GRACE, part_every: PART_EVERY, rate }
    }
}

/// How far compaction has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactProgress {
    /// Logs that were taken over.
    pub logs: u64,
    /// Entries that were written.
    pub entries: u64,
}

/// The result of compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Logs that a look goes through, before and after.
    pub logs: (u64, u64),
    /// Segments and takeovers that a lookup may search, before and after.
    pub segments: (u64, u64),
    /// Files of the store, before and after.
    pub files: (u64, u64),
    /// Bytes that were read of logs and takeovers, and written again.
    pub nbytes: u64,
    /// Files that stay until the grace is over.
    pub waiting: u64,
    /// Logs that have ended and stay as they are.
    pub left: Vec<LeftLog>,
}

/// The outcome of making a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// It counts.
    Done,
    /// Another maker took its number: its payload may be there, as that of this id.
    Late(Id),
}

/// The snapshot that a purge is of, and whoever decides what goes.
pub(crate) type Purging<'a> = (&'a Snapshot, &'a mut dyn Judge);

/// Makes one takeover, with what a maker of the same inputs has left that is gone.
pub(crate) fn make(
    env: &Env,
    medium: &dyn Medium,
    inputs: &Inputs,
    (how, purging): (&CompactOptions, Option<Purging<'_>>),
    each: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Made> {
    let files = medium.files().ok_or_else(|| Error::internal("a takeover is made outside of a folder"))?;
    let id = random_id(env);
    let mut header = header(env, inputs, id);
    if planted::is(Planted::TakeoverByOldLook) {
        header.number = newest_named(files, &header.owner.name())? + 1;
    }
    // R67: this name comes before the data log, and goes after it.
    let mut file = TakeoverFile::create(files, id, header.encode().len())?;
    let adopted = inputs.part.as_ref().map(|part| files.adopt(part, id)).transpose()?.flatten();
    let mut progress = Progress::new(env, files, inputs, id, how);
    let mut payload = Payload::copy(inputs, medium, id, adopted, &mut progress).inspect_err(|_| {
        // The first error says more than what this may add.
        let _ = progress.end();
    })?;
    let written = write(env, medium, (inputs, purging), (&mut header, &mut file), &mut payload, each);
    let named = written.map(|()| file.link(&header.owner.name(), header.number));
    // Once the takeover may have its name, its data log stays, whatever happens.
    let outcome = match named {
        Ok(LinkOutcome::Own) => {
            if !planted::is(Planted::UnlinkBeforeSync) {
                file.sync_name()?;
            }
            return progress.end().map(|()| Made::Done);
        }
        Ok(LinkOutcome::Unsure(error)) => return Err(error),
        Ok(LinkOutcome::Others) if progress.is_noted() => {
            payload.keep();
            return Ok(Made::Late(id));
        }
        Ok(LinkOutcome::Others) => Ok(Made::Late(id)),
        Ok(LinkOutcome::Failed(error)) | Err(error) => Err(error),
    };
    payload.give_up(medium, id);
    let _ = progress.end();
    outcome
}

/// The greatest number of a takeover of an owner by the names that are there now, whoever has looked at them.
fn newest_named(files: &FileMedium, owner: &str) -> Result<u64> {
    let names = files.names_in("logs")?;
    let own = names.iter().filter_map(|name| parse_file_name(name)).filter(|(of, _)| *of == owner);
    Ok(own.map(|(_, number)| number).max().unwrap_or(0))
}

fn header(env: &Env, inputs: &Inputs, id: Id) -> TakeoverHeader {
    let who = &env.identity;
    let older = inputs.takeovers.iter().map(|takeover| takeover.number());
    let before = inputs.takeovers.iter().flat_map(|takeover| takeover.header.replaced.iter().copied());
    let mut replaced: Vec<u64> = older.chain(before).collect();
    replaced.sort_unstable();
    replaced.dedup();
    TakeoverHeader {
        id,
        store: inputs.store.0,
        number: inputs.number,
        created: env.clock.now(),
        newest: 0,
        floor: inputs.endings.floor,
        record_offset: 0,
        record_len: 0,
        record_crc: 0,
        owner: Owner::User(inputs.user),
        maker: Maker {
            uid: who.uid(),
            process: who.process(),
            host: who.host(),
            user: who.user_name(who.uid()),
            program: concat!("fieldstone ", env!("CARGO_PKG_VERSION")).to_owned(),
        },
        purge: inputs.purge.as_ref().is_some_and(|plan| plan.versions > 0),
        live: inputs.live.clone(),
        replaced,
        schema: inputs.store.1.clone(),
    }
}

/// Writes all tables of a takeover, durably, into its file, which does not count yet.
fn write(
    env: &Env,
    medium: &dyn Medium,
    (inputs, purging): (&Inputs, Option<Purging<'_>>),
    (header, file): (&mut TakeoverHeader, &mut TakeoverFile),
    payload: &mut Payload,
    each: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let small = SmallTables::gather(inputs, medium, env.clock.now())?;
    header.newest = small.newest;
    let mut record = TakeoverRecord::default();
    let mut add = |table: TakeoverTable, reference: Option<TableRef>| {
        record.tables.extend(reference.map(|reference| (table, reference)));
    };
    let (numbers, commits) = CommitNumbers::write(inputs, file)?;
    add(TakeoverTable::Commits, commits);
    let walk = purging.map(|(snapshot, judge)| {
        let at = (inputs.user, header.created);
        PurgeWalk::new(snapshot, at, inputs.sources(snapshot), judge).map(|walk| (snapshot, walk))
    });
    let mut merge = EntryMerge::new(inputs, &numbers, payload, small.numbers(), walk.transpose()?)?;
    add(TakeoverTable::Entries, merge.write(file, each)?);
    merge.write_summaries(file)?.into_iter().for_each(|(table, reference)| add(table, reference));
    add(TakeoverTable::Side, write_side(inputs, &numbers, medium, file)?);
    small.write(file, &mut add)?;
    (record.removals, record.bytes) = (merge.removals, merge.bytes);
    record.tables.sort_unstable_by_key(|(table, _)| *table);
    record.data_logs = payload.finish()?;
    file.finish(header, &record)
}
