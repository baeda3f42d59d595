//! This writer's log: frames, syncs, and what happens when they fail.
//!
//! A file that grows costs the file system a transaction of its own with each sync. So a writer that flushes
//! little and often writes zeros behind a frame, and puts the next frames there. Invariants:
//! * zeros come with a commit, by its write and its sync: at most as many as the log holds then and
//!   [`ZEROED_MAX`], none before the fourth small flush;
//! * behind the last commit of a log there is nothing but zeros and what a failed or unfinished frame left;
//! * a log that is closed ends with its last commit.

use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, write_all_vectored_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::board::Slot;
use fieldstone_format::log::{CommitRecord, Ends, Envelope, FOOT, HEAD, LogHeader, Prepared, Section};
use fieldstone_format::run::RunRef;
use fieldstone_format::{Id, crc};

use super::linked::Linked;
use super::live_runs::LiveRuns;
use super::slot::BoardSlot;
use crate::identity::{StoreIdentity, random_id};
use crate::layout::Layout;

/// Most zeros written at once.
const ZEROED_MAX: u64 = 1 << 20;
/// Longest frame of a small flush, and how many of them come before the first zeros.
const SMALL: u64 = 64 << 10;
const SMALL_BEFORE: u32 = 3;

static ZEROS: [u8; ZEROED_MAX as usize] = [0; ZEROED_MAX as usize];

/// What a flush did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flushed {
    /// The log.
    pub writer: Id,
    /// Sequence of the commit.
    pub sequence: u64,
    /// What a board says of the log from now on.
    pub slot: Slot,
    /// What the commit says, and where it stands.
    pub record: Arc<CommitRecord>,
    /// Where its frame lies.
    pub ends: Ends,
}

/// A log being written. The file is created by its first commit.
#[derive(Debug)]
pub struct LogFile {
    writer: Id,
    path: PathBuf,
    header: Vec<u8>,
    file: Option<Arc<dyn DiskFile>>,
    linked: Linked,
    /// Bytes of the log up to its last commit; the header counts from the start.
    length: u64,
    sequence: u64,
    /// Offset of the last frame, of the last one with a decision, and of the last one with side records.
    last_frame: u64,
    last_decision: u64,
    last_side: u64,
    last_slot: Option<Slot>,
    /// Transactions that commits of this log were prepared under.
    prepared: Vec<Prepared>,
    runs: LiveRuns,
    board: Option<BoardSlot>,
    /// Bytes of the file that are there for frames: up to the last commit, and zeros behind it.
    space: u64,
    /// Small flushes so far, up to [`SMALL_BEFORE`].
    small: u32,
    /// Length of a frame whose write was begun and which did not become a commit.
    torn: Option<u64>,
}

impl LogFile {
    /// A log with a new random name.
    pub fn new(env: &Env, layout: &Layout, identity: &StoreIdentity, sealed: &[(Id, u64)]) -> LogFile {
        let writer = random_id(env);
        let who = &env.identity;
        let header = LogHeader {
            writer,
            store: identity.id,
            created: env.clock.now(),
            uid: who.uid(),
            process: who.process(),
            host: who.host(),
            user: who.user_name(who.uid()),
            program: concat!("fieldstone ", env!("CARGO_PKG_VERSION")).to_owned(),
            schema: identity.schema.clone(),
            sealed: sealed.to_vec(),
        }
        .encode();
        LogFile {
            writer,
            path: layout.log(writer),
            length: header.len() as u64,
            header,
            file: None,
            linked: Linked::default(),
            sequence: 0,
            last_frame: 0,
            last_decision: 0,
            last_side: 0,
            last_slot: None,
            prepared: Vec::new(),
            runs: LiveRuns::default(),
            board: None,
            space: 0,
            small: 0,
            torn: None,
        }
    }

    /// The writer's id.
    pub fn writer(&self) -> Id {
        self.writer
    }

    /// Sequence of the next commit.
    pub fn next_sequence(&self) -> u64 {
        self.sequence + 1
    }

    /// Whether the file was found gone.
    pub fn is_gone(&self) -> bool {
        self.linked.is_gone()
    }

    /// A transaction has ended: what was prepared under it is not of interest any more.
    pub fn settle(&mut self, transaction: Id) {
        self.prepared.retain(|prepared| prepared.transaction != transaction);
    }

    /// The transactions prepared so far that are not among the ended ones.
    pub fn prepared(&self, ended: impl Fn(Id) -> bool) -> Vec<Prepared> {
        self.prepared.iter().filter(|p| !ended(p.transaction)).copied().collect()
    }

    /// Where the payload of the next frame will stand.
    pub fn payload_offset(&self) -> u64 {
        self.length + HEAD as u64
    }

    /// Where the payload of the last frame stands.
    pub fn last_payload(&self) -> u64 {
        self.last_frame + HEAD as u64
    }

    /// Appends a commit: one write, one sync; then the board. Unavailable where the log is gone from its
    /// place.
    pub fn append(
        &mut self,
        env: &Env,
        layout: &Layout,
        mut record: CommitRecord,
        payload: &[u8],
        run: Option<(Vec<u8>, RunRef)>,
        side: &[u8],
    ) -> Result<Flushed> {
        let first = self.file.is_none();
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file =
                    env.disk.create_alike(&self.path).map_err(|e| Error::io("create", &self.path, e))?;
                self.file.insert(file).clone()
            }
        };
        let mut merged = run.map(|run| self.runs.merge(&*file, run)).transpose()?;
        let mut at = self.payload_offset() + payload.len() as u64;
        if let Some(merged) = &mut merged {
            merged.place(at);
            at += merged.bytes().len() as u64;
        }
        record.runs = self.runs.references(merged.as_ref());
        record.side = Section { offset: at, length: side.len() as u64, crc: crc(side) };
        record.previous = self.last_frame;
        record.previous_decision = self.last_decision;
        record.previous_side = self.last_side;
        let merged_bytes = merged.as_ref().map_or(&[][..], |m| m.bytes());
        let Envelope { head, record: encoded, foot, ends } =
            Envelope::new(self.length, &record, &[payload, merged_bytes, side]);
        let zeros = self.zeros_behind(&ends);
        let header = if first { &self.header[..] } else { &[] };
        // J-6: the record stands twice, head and foot say the same: no single damaged place hides a commit.
        let parts = [header, &head, payload, merged_bytes, side, &encoded, &encoded, &foot, zeros];
        self.torn = Some(ends.length);
        let at = if first { 0 } else { self.length };
        write_all_vectored_at(&*file, &mut parts.map(IoSlice::new), at)
            .and_then(|()| file.sync_data())
            .map_err(|e| Error::io("write", &self.path, e))?;
        if first {
            let folder = layout.logs();
            env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        // J-9: a file that was removed takes writes and syncs like any other.
        self.linked.check(&*env.disk, &*file, &self.path)?;
        self.torn = None;
        self.space = self.space.max(ends.end() + zeros.len() as u64);
        self.small = SMALL_BEFORE.min(self.small + u32::from(ends.length <= SMALL));
        self.sequence = record.sequence;
        self.last_frame = self.length;
        if record.decision.is_some() {
            self.last_decision = self.length;
        }
        if record.side_count > 0 {
            self.last_side = self.length;
        }
        self.length = ends.end();
        self.prepared = record.prepared.clone();
        if let Some(merged) = merged {
            self.runs.apply(merged);
        }
        let slot = Slot {
            writer: self.writer,
            closed: false,
            length: self.length,
            sequence: self.sequence,
            stamp: record.stamp,
            frame: self.last_frame,
            hash: ends.hash,
            process: env.identity.process(),
            time: record.time,
        };
        self.last_slot = Some(slot);
        self.publish(env, layout, &slot);
        Ok(Flushed { writer: self.writer, sequence: self.sequence, slot, record: Arc::new(record), ends })
    }

    /// The zeros that go behind a frame: none while it finds room in those there are.
    fn zeros_behind(&self, ends: &Ends) -> &'static [u8] {
        // J-4: only a writer that flushes often gains by zeros; a thousand short ones would leave them behind.
        let busy = ends.length <= SMALL && self.small >= SMALL_BEFORE;
        let most = if busy && ends.end() > self.space { ends.end().min(ZEROED_MAX) } else { 0 };
        &ZEROS[..most as usize]
    }

    /// Writes the slot, on another board where the one before cannot be written or was replaced. The commit is
    /// durable already, and what boards do not say readers find out, so that nothing is reported.
    fn publish(&mut self, env: &Env, layout: &Layout, slot: &Slot) {
        if let Some(board) = self.board.take() {
            match board.write(env, slot) {
                Ok(()) => {
                    self.board = Some(board);
                    return;
                }
                Err(_) => board.give_up(),
            }
        }
        // Not for a log that ends: another store may stand in its place by now.
        if !slot.closed {
            self.board = BoardSlot::claim(env, layout, slot).ok();
        }
    }

    /// Ends the log at its last commit after a failure; `None` where there is no file yet. What a failed
    /// frame left behind is made no frame, as far as the disk still takes writes.
    pub fn seal(mut self, env: &Env, layout: &Layout) -> Option<(Id, u64)> {
        let file = self.file.take()?;
        if let Some(torn) = self.torn
            && let Ok(stat) = file.stat()
        {
            // Head and foot of the frame: without them there is no commit, whatever the disk keeps.
            // J-10: what a failed sync dropped cannot be known, so the log ends here for good.
            let ends = [(self.length, HEAD), (self.length + torn - FOOT as u64, FOOT)];
            for (at, length) in ends.into_iter().filter(|(at, _)| *at < stat.len) {
                let _ = file.write_at(&ZEROS[..length.min((stat.len - at) as usize)], at);
            }
        }
        // A log without a commit ends behind its header: its first frame may have reached the disk.
        if let Some(mut slot) = self.last_slot {
            slot.closed = true;
            self.publish(env, layout, &slot);
        }
        Some((self.writer, self.length))
    }

    /// Cuts the zeros behind the last commit, and marks the log as closed on the board.
    pub fn close(mut self, env: &Env, layout: &Layout) {
        if let Some(file) = self.file.as_ref().filter(|_| self.space > self.length) {
            // Where that fails, readers pass over them.
            let _ = file.set_len(self.length);
        }
        if let Some(mut slot) = self.last_slot {
            slot.closed = true;
            self.publish(env, layout, &slot);
        }
    }
}
