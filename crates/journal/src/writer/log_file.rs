//! This writer's log: frames, syncs, and what happens when they fail.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::board::Slot;
use fieldstone_format::log::{CommitRecord, FOOT, HEAD, LogHeader, Prepared, Section, encode_frame};
use fieldstone_format::run::RunRef;
use fieldstone_format::{Id, crc};

use super::linked::Linked;
use super::live_runs::LiveRuns;
use super::slot::BoardSlot;
use crate::identity::{StoreIdentity, random_id};
use crate::layout::Layout;

/// What a flush did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// The log.
    pub writer: Id,
    /// Sequence of the commit.
    pub sequence: u64,
    /// What a board says of the log from now on.
    pub slot: Slot,
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
    /// Whether a write was begun that did not become a commit.
    torn: bool,
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
            torn: false,
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
        let body = [payload, merged.as_ref().map_or(&[], |m| m.bytes()), side].concat();
        let (frame, hash) = encode_frame(self.length, &record, &body);
        debug_assert!(frame.len() >= HEAD + FOOT);
        self.torn = true;
        if first {
            let whole = [&self.header[..], &frame].concat();
            write_all_at(&*file, &whole, 0)
        } else {
            write_all_at(&*file, &frame, self.length)
        }
        .and_then(|()| file.sync_data())
        .map_err(|e| Error::io("write", &self.path, e))?;
        if first {
            let folder = layout.logs();
            env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        self.linked.check(&*env.disk, &*file, &self.path)?;
        self.torn = false;
        self.sequence = record.sequence;
        self.last_frame = self.length;
        if record.decision.is_some() {
            self.last_decision = self.length;
        }
        if record.side_count > 0 {
            self.last_side = self.length;
        }
        self.length += frame.len() as u64;
        self.prepared = record.prepared;
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
            hash,
            process: env.identity.process(),
            time: record.time,
        };
        self.last_slot = Some(slot);
        self.publish(env, layout, &slot);
        Ok(Flushed { writer: self.writer, sequence: self.sequence, slot })
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
        if self.torn
            && let Ok(stat) = file.stat()
            && stat.len > self.length
        {
            // Head and foot of the frame: without them there is no commit, whatever the disk keeps.
            let zeros = [0; HEAD];
            let _ = file.write_at(&zeros, self.length);
            let foot = [0; FOOT];
            let _ = file.write_at(&foot, self.length.max(stat.len.saturating_sub(FOOT as u64)));
        }
        // A log without a commit ends behind its header: its first frame may have reached the disk.
        if let Some(mut slot) = self.last_slot {
            slot.closed = true;
            self.publish(env, layout, &slot);
        }
        Some((self.writer, self.length))
    }

    /// Marks the log as closed on the board.
    pub fn close(mut self, env: &Env, layout: &Layout) {
        if let Some(mut slot) = self.last_slot {
            slot.closed = true;
            self.publish(env, layout, &slot);
        }
    }
}
