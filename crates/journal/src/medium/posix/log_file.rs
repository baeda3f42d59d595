//! A log in a file: frames, syncs, zeros, and what is done when a write fails.
//!
//! A file that grows costs the file system a transaction of its own with each sync. So a writer that flushes
//! little and often writes zeros behind a frame, and puts the next frames there. Invariants:
//! * zeros come with a commit, by its write and its sync: at most as many as the log holds then and
//!   [`ZEROED_MAX`], none before the fourth small flush;
//! * behind the last commit of a log there is nothing but zeros and what a failed or unfinished frame left;
//! * a log that is closed ends with its last commit;
//! * a commit is durable, and its writer looks then whether somebody ends the log: only what the end reaches is
//!   acknowledged (R12).

use std::io::ErrorKind::NotFound;
use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, creation_failed, read_exact_at, write_all_vectored_at};
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::board::Slot;
use fieldstone_format::log::{CommitRecord, FOOT, FrameInfo, HEAD, LogHeader};
use fieldstone_format::log_end::{EndReason, LogEnd, file_name as end_name};

use super::end_file::{self, ENDS_SINCE};
use super::layout::Layout;
use super::linked::Linked;
use super::slot::{BoardSlot, slot_of};
use super::takeovers::replaced_upto;
use crate::medium::{Address, LogWriter, attempt_slept, ended_meanwhile};

/// Most zeros written at once.
const ZEROED_MAX: u64 = 1 << 20;
/// Longest frame of a small flush, and how many of them come before the first zeros.
const SMALL: u64 = 64 << 10;
const SMALL_BEFORE: u32 = 3;
/// A log that is begun so long after its id was drawn may have been ended before, nanoseconds. Nobody ends one within a day.
const LATE_FIRST: i64 = 3_600_000_000_000;

static ZEROS: [u8; ZEROED_MAX as usize] = [0; ZEROED_MAX as usize];

/// A log being written. The file is created by its first commit.
#[derive(Debug)]
pub struct LogFile {
    env: Env,
    layout: Layout,
    writer: Id,
    store: Id,
    path: PathBuf,
    header: Vec<u8>,
    /// Whether readers of its version heed end files.
    has_ends: bool,
    file: Option<Arc<dyn DiskFile>>,
    linked: Linked,
    /// Bytes of the log up to its last commit; the header counts from the start.
    length: u64,
    /// Sequence and hash of the last commit; zeros before the first.
    last: (u64, u32),
    /// Its end, once somebody has made one.
    end: Option<LogEnd>,
    /// Whether a takeover holds all that was acknowledged, so that the file may be gone.
    taken_over: bool,
    /// When its writer drew its id, nanoseconds since 1970.
    drawn: i64,
    /// The last moment at which the next frame may become durable.
    deadline: i64,
    last_slot: Option<Slot>,
    board: Option<BoardSlot>,
    /// Bytes of the file that are there for frames: up to the last commit, and zeros behind it.
    space: u64,
    /// Small flushes so far, up to [`SMALL_BEFORE`].
    small: u32,
    /// A frame whose write was begun and which did not become a commit.
    torn: Option<FrameInfo>,
}

impl LogFile {
    /// A log without a file.
    pub fn new(env: &Env, layout: &Layout, header: &LogHeader) -> LogFile {
        let (writer, store, has_ends) = (header.writer, header.store, header.version >= ENDS_SINCE);
        let header = header.encode();
        LogFile {
            env: env.clone(),
            store,
            has_ends,
            path: layout.log(writer),
            layout: layout.clone(),
            writer,
            length: header.len() as u64,
            header,
            file: None,
            linked: Linked::default(),
            last: (0, 0),
            end: None,
            taken_over: false,
            drawn: env.clock.now(),
            deadline: i64::MAX,
            last_slot: None,
            board: None,
            space: 0,
            small: 0,
            torn: None,
        }
    }

    /// The zeros that go behind a frame: none while it finds room in those there are.
    fn zeros_behind(&self, ends: &FrameInfo) -> &'static [u8] {
        // J-4: only a writer that flushes often gains by zeros; a thousand short ones would leave them behind.
        let busy = ends.length <= SMALL && self.small >= SMALL_BEFORE;
        let most = if busy && ends.end() > self.space { ends.end().min(ZEROED_MAX) } else { 0 };
        &ZEROS[..most as usize]
    }

    /// Writes the slot, on another board where the one before cannot be written or was replaced. The commit is
    /// durable already, and what boards do not say readers find out, so that nothing is reported.
    fn publish(&mut self, slot: &Slot) {
        if let Some(board) = self.board.take() {
            match board.write(&self.env, slot) {
                Ok(()) => {
                    self.board = Some(board);
                    return;
                }
                Err(_) => board.give_up(),
            }
        }
        // For a log that ends, another store may stand in its place by now: not where the log is still in its own.
        if !slot.closed || self.is_in_place() {
            self.board = BoardSlot::claim(&self.env, &self.layout, slot).ok();
        }
    }

    fn is_in_place(&self) -> bool {
        let open = self.file.as_ref().and_then(|file| file.stat().ok());
        let named = self.env.disk.stat(&self.path).ok();
        open.zip(named).is_some_and(|(open, named)| open.inode == named.inode)
    }

    /// Makes the end file of this log at a commit, or reads the one that is there: the end that is in force now. `None`
    /// on a file system without hard links.
    fn end_at(
        &self,
        file: &dyn DiskFile,
        last: (u64, u32),
        end: u64,
        why: EndReason,
    ) -> Result<Option<LogEnd>> {
        let (identity, writer, (sequence, hash)) = (&self.env.identity, self.writer, last);
        let (time, uid) = (self.env.clock.now(), identity.uid());
        let own =
            LogEnd { writer, store: self.store, sequence, end, hash, time, uid, why, host: identity.host() };
        let Some((made, is_ours)) = end_file::make(&self.env, &self.layout, &own)? else { return Ok(None) };
        if is_ours {
            return Ok(Some(made.end));
        }
        let owner = file.stat().map_err(|e| Error::io("look at", &self.path, e))?.uid;
        let folder = self.layout.logs();
        let folder_owner = self.env.disk.stat(&folder).map_err(|e| Error::io("look at", &folder, e))?.uid;
        if made.counts(owner, Some(folder_owner)) && made.end.store == self.store {
            return Ok(Some(made.end));
        }
        let (path, user) = (self.path.display(), identity.user_name(made.owner));
        let why = format!("{path} cannot be ended: {user} made its end file, whose log it is not");
        Err(Error::unavailable(why).with_hint("ask the owner of the store to remove that file"))
    }

    /// Ends the log at the commit that is durable now, as somebody asks for who gave it a second name; or obeys the
    /// end file that is there.
    fn end_as_asked(&mut self, file: &dyn DiskFile, ends: &FrameInfo) -> Result<()> {
        let end = self.end_at(file, (ends.sequence, ends.hash), ends.end(), EndReason::Asked)?;
        let last = end.as_ref().map_or(u64::MAX, |end| end.sequence);
        self.end = end;
        if last >= ends.sequence { Ok(()) } else { Err(ended_meanwhile(self.path.display(), last)) }
    }

    /// Looks, once the file is gone, whether it went because a takeover replaces it up to a commit, with sequence and hash.
    fn look_for_takeover(&mut self, last: (u64, u32)) -> bool {
        let owner = self.file.as_ref().and_then(|file| file.stat().ok()).map(|stat| stat.uid);
        let log = (self.writer, self.store);
        let found = owner.and_then(|owner| replaced_upto(&self.env, &self.layout, log, owner));
        self.taken_over |= found == Some(last);
        self.taken_over
    }

    /// After the sync of a frame whose file is gone: fine where a takeover has the frame; else its keys are lost, if a
    /// takeover has what comes before them, or the whole log is.
    fn obey_takeover(&mut self, ends: &FrameInfo, gone: Error) -> Result<()> {
        if self.look_for_takeover((ends.sequence, ends.hash)) {
            return Ok(());
        }
        let is_ended = self.look_for_takeover(self.last);
        Err(if is_ended { ended_meanwhile(self.path.display(), self.last.0) } else { gone })
    }

    /// After the first commit of a log that was drawn long before: its writer had files without a log, and somebody may have
    /// ended it for that (R65).
    fn look_late(&mut self, file: &dyn DiskFile, ends: &FrameInfo) -> Result<()> {
        if self.env.disk.stat(&self.layout.logs().join(end_name(self.writer))).is_ok() {
            return self.end_as_asked(file, ends);
        }
        match self.look_for_takeover(self.last) {
            true => Err(ended_meanwhile(self.path.display(), self.last.0)),
            false => Ok(()),
        }
    }

    /// After a failure: the end that is in force. The header of the next log says it as well (J-10): there may be no
    /// end file.
    fn end_after_failure(&self, file: &dyn DiskFile) -> Option<LogEnd> {
        if self.is_ended() || !self.has_ends || self.linked.is_gone() {
            return self.end.clone();
        }
        self.end_at(file, self.last, self.length, EndReason::Failed).ok().flatten()
    }

    /// Destroys the frame that a failed write left, as far as the disk still takes writes.
    fn destroy(&self, file: &dyn DiskFile, torn: &FrameInfo) {
        let Ok(stat) = file.stat() else { return };
        // Head and foot of the frame: without them there is no commit, whatever the disk keeps.
        // J-10: what a failed sync dropped cannot be known, so the log ends here for good.
        let ends = [(self.length, HEAD), (self.length + torn.length - FOOT as u64, FOOT)];
        for (at, length) in ends.into_iter().filter(|(at, _)| *at < stat.len) {
            let _ = file.write_at(&ZEROS[..length.min((stat.len - at) as usize)], at);
        }
        // A write that failed for lack of room gives its room back.
        let _ = file.set_len(self.length.min(stat.len));
    }

    /// Says on the board that nothing more comes.
    fn publish_closed(&mut self) {
        if let Some(mut slot) = self.last_slot {
            slot.closed = true;
            self.publish(&slot);
        }
    }
}

impl LogWriter for LogFile {
    fn next(&self) -> Address {
        self.length
    }

    /// One write, one sync; of the first commit, also a sync of the folder.
    fn append(&mut self, ends: &FrameInfo, parts: &[&[u8]]) -> Result<()> {
        let first = self.file.is_none();
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file = self
                    .env
                    .disk
                    .create_alike(&self.path)
                    .map_err(|e| creation_failed(&*self.env.disk, &self.path, e))?;
                self.file.insert(file).clone()
            }
        };
        let zeros = self.zeros_behind(ends);
        let header = if first { &self.header[..] } else { &[] };
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(parts.len() + 2);
        slices.push(IoSlice::new(header));
        slices.extend(parts.iter().map(|part| IoSlice::new(part)));
        slices.push(IoSlice::new(zeros));
        self.torn = Some(*ends);
        let at = if first { 0 } else { self.length };
        write_all_vectored_at(&*file, &mut slices, at)
            .and_then(|()| if planted::is(Planted::AckBeforeSync) { Ok(()) } else { file.sync_data() })
            .map_err(|e| Error::io("write", &self.path, e))?;
        if first {
            let folder = self.layout.logs();
            self.env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        // J-9: a file that was removed takes writes and syncs like any other.
        if let Err(gone) = self.linked.check(&*self.env.disk, &*file, &self.path) {
            self.obey_takeover(ends, gone)?;
        } else if self.has_ends && self.linked.names() > 1 && !planted::is(Planted::WriterDoesNotLook) {
            // R53: the record is durable, and only now the look counts.
            self.end_as_asked(&*file, ends)?;
        } else if first && self.has_ends && self.env.clock.now().saturating_sub(self.drawn) >= LATE_FIRST {
            self.look_late(&*file, ends)?;
        }
        // R64: a process may sleep between its look at the attempts and this moment.
        if self.env.clock.now() > self.deadline {
            return Err(attempt_slept());
        }
        self.torn = None;
        self.space = self.space.max(ends.end() + zeros.len() as u64);
        self.small = SMALL_BEFORE.min(self.small + u32::from(ends.length <= SMALL));
        self.length = ends.end();
        self.last = (ends.sequence, ends.hash);
        Ok(())
    }

    fn set_deadline(&mut self, at: i64) {
        self.deadline = at;
    }

    fn announce(&mut self, ends: &FrameInfo, record: &CommitRecord) {
        let slot = slot_of(&self.env, self.writer, ends, record);
        self.last_slot = Some(slot);
        self.publish(&slot);
    }

    fn read(&self, buffer: &mut [u8], at: Address) -> Result<()> {
        let file = self.file.as_ref().ok_or_else(|| Error::internal("a log without a commit is read"))?;
        read_exact_at(&**file, buffer, at).map_err(|e| Error::io("read", &self.path, e))
    }

    /// An end before its last commit takes what was acknowledged, as a log that is gone does.
    fn is_gone(&self) -> bool {
        let is_before = |end: &LogEnd| end.sequence < self.last.0;
        !self.taken_over && (self.linked.is_gone() || self.end.as_ref().is_some_and(is_before))
    }

    fn is_ended(&self) -> bool {
        self.taken_over || self.end.is_some()
    }

    fn is_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Only a hint: each append looks again, once it is durable.
    fn wake(&mut self) {
        let Some(file) = self.file.clone().filter(|_| self.has_ends && !self.is_ended()) else { return };
        let stat = self.env.disk.stat(&self.path);
        if stat.as_ref().is_err_and(|e| e.kind() == NotFound) {
            self.look_for_takeover(self.last);
            return;
        }
        let is_asked = stat.is_ok_and(|stat| stat.links > 1);
        if is_asked && let Ok(Some(end)) = self.end_at(&*file, self.last, self.length, EndReason::Asked) {
            self.end = Some(end).filter(|end| end.sequence == self.last.0);
        }
    }

    fn end(&mut self) {
        if let Some(file) = self.file.clone() {
            self.end = self.end_after_failure(&*file);
        }
    }

    /// R11: makes the end file before anybody learns of the failure. Then destroys the frame that a failed write left;
    /// not where somebody else has ended the log: others read it already, up to that end.
    fn seal(mut self: Box<Self>) -> Option<Address> {
        let file = self.file.take()?;
        let end = self.end_after_failure(&*file);
        let own = end.as_ref().is_none_or(|end| end.why == EndReason::Failed && end.sequence == self.last.0);
        if let Some(torn) = self.torn.filter(|_| own) {
            self.destroy(&*file, &torn);
        }
        // A log without a commit ends behind its header: its first frame may have reached the disk.
        self.publish_closed();
        Some(end.filter(|_| !own).map_or(self.length, |end| end.end))
    }

    /// Cuts the zeros behind the last commit, and marks the log as closed on the board.
    fn close(mut self: Box<Self>) {
        if let Some(file) = self.file.as_ref().filter(|_| self.space > self.length) {
            // If that fails, readers skip them.
            let _ = file.set_len(self.length);
        }
        self.publish_closed();
    }
}
