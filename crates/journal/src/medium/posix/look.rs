//! Looking at one log: whether it moved, and what of it counts.

use std::collections::HashMap;
use std::io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, Stat};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::board::Slot;
use fieldstone_format::log::{HEADER_PREFIX, LogHeader};

use super::boards::Boards;
use super::ends::{self, Ends};
use super::log_reader::{LogReader, foreign_version, read_header};
use super::open_files::OpenFiles;
use super::store::Store;
use crate::medium::Tip;

/// A file that changed less than this long ago, nanoseconds, may change again without a new time.
const FRESH: u64 = 2_000_000_000;

/// A log with a commit, and its file as it was looked at last.
#[derive(Debug, Clone)]
pub struct LogState {
    /// Its last commit.
    pub tip: Arc<Tip>,
    /// Change time of the file, nanoseconds since 1970, by the file system.
    mtime: i64,
    /// Bytes of the file; beyond the last commit there may be zeros or a torn tail.
    pub len: u64,
    /// Identity of the file.
    inode: u64,
    /// When that change time was seen first, by the monotonic clock.
    changed: u64,
    /// When all behind the last commit was looked at last.
    searched: u64,
}

impl LogState {
    /// Whether the file is certainly what it was when all of it was looked at. Its length alone says nothing:
    /// a writer may have zeros there, which it overwrites. `mtime`: the change
    /// time, where it is to be what all was looked at with.
    fn is_same(&self, stat: &Stat, mtime: Option<i64>) -> bool {
        let stable = |mtime| mtime == self.mtime && self.searched >= self.changed.saturating_add(FRESH);
        (stat.inode, stat.len, stat.uid) == (self.inode, self.len, self.tip.uid)
            && mtime.is_none_or(|mtime| stat.len == self.tip.ends.end() || stable(mtime))
    }

    /// The log with a header that could be read only now.
    pub fn with_tip(&self, tip: Tip) -> LogState {
        LogState { tip: Arc::new(tip), ..self.clone() }
    }

    /// The log with one commit more, of this process's own writer.
    pub fn followed_by(&self, tip: Arc<Tip>) -> LogState {
        let len = self.len.max(tip.ends.end());
        LogState { mtime: tip.changed, len, searched: 0, tip, ..*self }
    }
}

/// The outcome of a look at a log.
#[derive(Debug)]
pub enum Looked {
    /// Nothing new.
    Same,
    /// Commits that were not known, or another file or length.
    Moved(Box<LogState>),
    /// No commit yet; the user who owns the log.
    Empty(u32),
    /// A log of a version that is not known here.
    Foreign(u32),
    /// It is missing, or shorter than what was read of it.
    Cut(String),
    /// It is none that this user reads here, and why.
    Passed(String),
}

/// The inputs of a look.
pub struct Looker<'a> {
    pub env: &'a Env,
    pub files: &'a OpenFiles,
    pub store: Option<&'a Store>,
    pub boards: &'a Boards,
    pub ends: &'a Ends,
    /// The clock.
    pub now: i64,
    /// The clock that never goes back.
    pub monotonic: u64,
}

/// A log that is open, and what its file is now.
struct OpenLog<'f> {
    writer: Id,
    path: &'f Path,
    file: &'f dyn DiskFile,
    stat: Stat,
    /// Change time of the file, nanoseconds since 1970.
    mtime: i64,
}

impl Looker<'_> {
    /// Looks at a log of which `log_state` is known and of which its user says `slot`. `whole`: also for what no slot
    /// says.
    pub fn look(
        &self,
        writer: Id,
        slot: Option<&Slot>,
        log_state: Option<&LogState>,
        whole: bool,
        sealed: &mut HashMap<Id, (u64, u32)>,
    ) -> Result<Looked> {
        let path = self.files.layout().log(writer);
        let moved = log_state
            .is_none_or(|log_state| slot.is_some_and(|slot| slot.sequence > log_state.tip.record.sequence));
        if !moved
            && let Some(log_state) = log_state
            && self.is_same_by_name(&path, log_state, whole)?
        {
            return Ok(Looked::Same);
        }
        let file = match self.env.disk.open_plain(&path, false) {
            Ok(file) => file,
            Err(e) if e.kind() == NotFound => return Ok(self.missing(writer, slot, log_state)),
            Err(e) if e.kind() == InvalidInput => return Ok(Looked::Passed(format!("it is not read: {e}"))),
            // J-16: one file of another user must not stop all reads; it is named instead.
            Err(e) if e.kind() == PermissionDenied => {
                let why = "this user may not read it; its content is missing here";
                return Ok(Looked::Passed(why.to_owned()));
            }
            Err(e) => return Err(Error::io("open", &path, e)),
        };
        let (stat, mtime) = file.stat_with_time().map_err(|e| Error::io("look at", &path, e))?;
        if let Some(log_state) = log_state {
            if stat.len < log_state.tip.ends.end() {
                let (known, sequence) = (log_state.tip.ends.end(), log_state.tip.record.sequence);
                let len = stat.len;
                return Ok(Looked::Cut(format!(
                    "the log has {len} bytes, commit {sequence} ended at {known} when it was read"
                )));
            }
            if stat.inode != log_state.inode {
                // Another file took the name: what was opened before is not it.
                self.files.forget(writer);
            }
        }
        let slot = slot.or_else(|| self.boards.slot(writer, stat.uid));
        self.read_on(
            &OpenLog { writer, path: &path, file: &*file, stat, mtime },
            slot,
            log_state,
            whole,
            sealed,
        )
    }

    /// Whether the file that stands under the name of a log now is certainly what was looked at.
    fn is_same_by_name(&self, path: &Path, log_state: &LogState, whole: bool) -> Result<bool> {
        let disk = &self.env.disk;
        let seen = match whole {
            true => disk.stat_with_time(path).map(|(stat, mtime)| (stat, Some(mtime))),
            false => disk.stat(path).map(|stat| (stat, None)),
        };
        match seen {
            Ok((stat, mtime)) => Ok(log_state.is_same(&stat, mtime)),
            Err(e) if e.kind() == NotFound => Ok(false),
            Err(e) => Err(Error::io("look at", path, e)),
        }
    }

    /// Reads a log from the last commit of `log_state` on, or all of one that is not known yet.
    fn read_on(
        &self,
        log: &OpenLog<'_>,
        slot: Option<&Slot>,
        log_state: Option<&LogState>,
        whole: bool,
        sealed: &mut HashMap<Id, (u64, u32)>,
    ) -> Result<Looked> {
        let OpenLog { writer, path, file, stat, mtime } = log;
        let (header, start, header_damage) = match log_state {
            // The position from which we expect a frame.
            Some(log_state) => {
                (log_state.tip.header.clone(), log_state.tip.ends.end(), log_state.tip.header_damage.clone())
            }
            None => self.header(*writer, *file, stat.len)?,
        };
        if let Some(store) = self.store
            && let Some(other) = header.known_store().filter(|named| !store.has(*named))
        {
            return Ok(Looked::Passed(format!("it is not read: it is a log of another store, {other}")));
        }
        for (ended, length) in &header.sealed {
            sealed.insert(*ended, (*length, stat.uid));
        }
        let end = match sealed.get(writer) {
            Some((length, uid)) if *uid == stat.uid => stat.len.min(*length),
            _ => stat.len,
        };
        // R12: the end counts, also if the file holds more.
        let end = self.ends.of(*writer, stat.uid, self.store).map_or(end, |by| end.min(ends::length(by)));
        let reader = LogReader { file: *file, path, end };
        let marked = self.files.layout().copy().map_or(0, |mark| mark.version.sequence(*writer));
        let vouching = (slot, marked);
        let Some((ends, record)) = reader.last_commit(start, vouching, !whole && log_state.is_some())? else {
            // Without a commit of our version, a header that names another version is not a damaged header of ours.
            if header_damage.is_some()
                && let Some(version) = foreign_version(*file, path, stat.len)?
            {
                return Ok(Looked::Foreign(version));
            }
            return Ok(match log_state {
                Some(log_state) => self.same(log_state, (stat, *mtime), whole),
                None => Looked::Empty(stat.uid),
            });
        };
        if let Some(log_state) =
            log_state.filter(|log_state| record.sequence <= log_state.tip.record.sequence)
        {
            return Ok(self.same(log_state, (stat, *mtime), whole));
        }
        let (writer, uid, changed) = (*writer, stat.uid, *mtime);
        let tip = Tip { writer, uid, header, header_damage, record: Arc::new(record), ends, changed };
        tip.check(log_state.map(|log_state| &*log_state.tip), self.now)?;
        Ok(Looked::Moved(Box::new(self.state(log_state, Arc::new(tip), (stat, *mtime), whole))))
    }

    /// A log without a new commit: its file may have changed all the same.
    fn same(&self, log_state: &LogState, (stat, mtime): (&Stat, i64), whole: bool) -> Looked {
        let tip = if (log_state.tip.uid, log_state.tip.changed) == (stat.uid, mtime) {
            log_state.tip.clone()
        } else {
            Arc::new(Tip { uid: stat.uid, changed: mtime, ..(*log_state.tip).clone() })
        };
        Looked::Moved(Box::new(self.state(Some(log_state), tip, (stat, mtime), whole)))
    }

    /// The state that is known now: when the change time was first seen, and when the whole file was last read.
    fn state(
        &self,
        log_state: Option<&LogState>,
        tip: Arc<Tip>,
        (stat, mtime): (&Stat, i64),
        whole: bool,
    ) -> LogState {
        let known = log_state.filter(|log_state| log_state.mtime == mtime && log_state.inode == stat.inode);
        let changed = known.map_or(self.monotonic, |log_state| log_state.changed);
        let searched = if whole { self.monotonic } else { known.map_or(0, |log_state| log_state.searched) };
        LogState { tip, mtime, len: stat.len, inode: stat.inode, changed, searched }
    }

    fn missing(&self, writer: Id, slot: Option<&Slot>, log_state: Option<&LogState>) -> Looked {
        let on_boards = self.boards.slots().map(|(_, slot)| slot).filter(|slot| slot.writer == writer);
        let sequences = slot.into_iter().chain(on_boards).map(|slot| slot.sequence);
        match sequences.chain(log_state.map(|log_state| log_state.tip.record.sequence)).max() {
            Some(sequence) => Looked::Cut(format!("the log is missing; it had {sequence} commits")),
            // Another process removed what was listed.
            None => Looked::Same,
        }
    }

    /// The header of a log that is not known yet, its length, and what is wrong with it.
    fn header(
        &self,
        writer: Id,
        file: &dyn DiskFile,
        len: u64,
    ) -> Result<(Arc<LogHeader>, u64, Option<String>)> {
        let path = self.files.layout().log(writer);
        let why = match read_header(file, &path, len) {
            Ok(Some((header, length))) => return Ok((Arc::new(header), length, None)),
            // Being written; or its length is damaged, which shows if there is a commit.
            Ok(None) => "the length in its header is damaged".to_owned(),
            Err(e) if e.kind() == ErrorKind::Corrupt => e.message().to_owned(),
            Err(e) => return Err(e),
        };
        // The commits do not depend on it: the last one is found from the end.
        Ok((Arc::new(LogHeader::unknown(writer)), HEADER_PREFIX as u64, Some(why)))
    }
}
