//! This writer's log: what its next commit says of those before it.

use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, Result};
use fieldstone_format::attempt::{Attempt, Origin};
use fieldstone_format::log::{CommitRecord, Envelope, HEAD, LogHeader, Prepared, Section};
use fieldstone_format::segment::SegmentRef;
use fieldstone_format::{Id, crc};

use super::live_segments::LiveSegments;
use crate::identity::StoreIdentity;
use crate::medium::{Address, LogWriter, Medium, ended_meanwhile};
use crate::snapshot::Flushed;

/// A log without a commit for so long, nanoseconds, may have been ended by others.
const IDLE: u64 = 600_000_000_000;

/// A log being written. The medium makes it with its first commit.
#[derive(Debug)]
pub struct Log {
    medium: Box<dyn LogWriter>,
    header: Arc<LogHeader>,
    /// Stamp of the first commit.
    began: Option<u64>,
    sequence: u64,
    /// Addresses of the last frame, of the last one with a decision, and of the last one with side records.
    last_frame: Address,
    last_decision: Address,
    last_side: Address,
    /// Transactions that commits of this log were prepared under.
    prepared: Vec<Prepared>,
    /// The same of logs that this writer left, which list them for readers: a decision covers them, too.
    left: Vec<(Id, Prepared)>,
    /// Bytes of frames, and when the first of them was durable, by the monotonic clock.
    bytes: u64,
    since: Option<u64>,
    /// When the last one was, by both clocks.
    last: (i64, u64),
    segments: LiveSegments,
}

impl Log {
    /// A log of a version of the format. `sealed`: earlier logs of this writer that failed, and where they end.
    pub fn new(
        env: &Env,
        medium: &dyn Medium,
        identity: &StoreIdentity,
        (writer, version): (Id, u32),
        sealed: &[(Id, u64)],
        origin: &Origin,
    ) -> Log {
        let who = &env.identity;
        let header = LogHeader {
            version,
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
            origin: origin.clone(),
            owner: None,
            lifetime: who.lifetime(),
        };
        Log {
            medium: medium.log(header.clone()),
            header: Arc::new(header),
            began: None,
            sequence: 0,
            last_frame: 0,
            last_decision: 0,
            last_side: 0,
            prepared: Vec::new(),
            left: Vec::new(),
            bytes: 0,
            since: None,
            last: (0, 0),
            segments: LiveSegments::default(),
        }
    }

    /// The writer's id.
    pub fn writer(&self) -> Id {
        self.header.writer
    }

    /// The version of the format that all of it has.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// Whether nothing of it was made yet.
    pub fn is_unmade(&self) -> bool {
        self.sequence == 0
    }

    /// The store's id, as the header has it.
    pub fn store(&self) -> Id {
        self.header.store
    }

    /// Sequence of the next commit.
    pub fn next_sequence(&self) -> u64 {
        self.sequence + 1
    }

    /// Whether the log was found gone.
    pub fn is_gone(&self) -> bool {
        self.medium.is_gone()
    }

    /// Whether somebody else has ended it.
    pub fn is_ended(&self) -> bool {
        self.medium.is_ended()
    }

    /// Whether a takeover holds all of it, so that its files may be gone.
    pub fn is_taken_over(&self) -> bool {
        self.medium.is_taken_over()
    }

    /// Its commits, their bytes, and its age.
    pub fn extent(&self, env: &Env) -> (u64, u64, u64) {
        let age = self.since.map_or(0, |since| env.clock.monotonic().saturating_sub(since));
        (self.sequence, self.bytes, age)
    }

    /// A transaction has ended: what was prepared under it is not of interest any more.
    pub fn forget_transaction(&mut self, transaction: Id) {
        self.prepared.retain(|prepared| prepared.transaction != transaction);
        self.left.retain(|(_, prepared)| prepared.transaction != transaction);
    }

    /// The transactions prepared so far in this log, and in those left before it.
    pub fn all_prepared(&self) -> Vec<(Id, Prepared)> {
        let own = self.prepared.iter().map(|prepared| (self.writer(), *prepared));
        self.left.iter().copied().chain(own).collect()
    }

    /// Forgets transactions prepared in logs left before it that have ended.
    pub fn forget_left(&mut self, ended: impl Fn(Id) -> bool) {
        self.left.retain(|(_, prepared)| !ended(prepared.transaction));
    }

    /// Takes the transactions that the logs before it have prepared.
    pub fn follow(&mut self, left: Vec<(Id, Prepared)>) {
        self.left = left;
    }

    /// The transactions prepared so far that are not among the ended ones.
    pub fn prepared(&self, ended: impl Fn(Id) -> bool) -> Vec<Prepared> {
        self.prepared.iter().filter(|p| !ended(p.transaction)).copied().collect()
    }

    /// The position of the payload of the next frame.
    pub fn payload_offset(&self) -> Address {
        self.medium.next() + HEAD as u64
    }

    /// The position of the payload of the last frame.
    pub fn last_payload(&self) -> Address {
        self.last_frame + HEAD as u64
    }

    /// Appends a commit; it is durable when this returns. Unavailable where the log is gone from its place.
    pub fn append(
        &mut self,
        mut record: CommitRecord,
        payload: &[u8],
        segment: Option<(Vec<u8>, SegmentRef)>,
        side: &[u8],
    ) -> Result<Flushed> {
        let frame = self.medium.next();
        let mut merged = segment.map(|segment| self.segments.merge(&*self.medium, segment)).transpose()?;
        let mut at = self.payload_offset() + payload.len() as u64;
        if let Some(merged) = &mut merged {
            merged.place(at);
            at += merged.bytes().len() as u64;
        }
        record.segments = self.segments.references(merged.as_ref());
        record.side = Section { offset: at, length: side.len() as u64, crc: crc(side) };
        record.previous = self.last_frame;
        record.previous_decision = self.last_decision;
        record.previous_side = self.last_side;
        let began = self.began.unwrap_or(record.stamp);
        let attempt = &self.header.origin.attempt;
        record.attempt = (!attempt.is_empty()).then(|| Attempt { name: attempt.clone(), began });
        let merged_bytes = merged.as_ref().map_or(&[][..], |m| m.bytes());
        let Envelope { head, record: encoded, foot, ends } =
            Envelope::new(self.version(), frame, &record, &[payload, merged_bytes, side]);
        // J-6: the record stands twice, head and foot say the same: no single damaged place hides a commit.
        self.medium.append(&ends, &[&head, payload, merged_bytes, side, &encoded, &encoded, &foot])?;
        (self.began, self.sequence) = (Some(began), record.sequence);
        self.bytes += ends.length;
        self.last_frame = frame;
        if record.decision.is_some() {
            self.last_decision = frame;
        }
        if record.side_count > 0 {
            self.last_side = frame;
        }
        self.prepared = record.prepared.clone();
        if let Some(merged) = merged {
            self.segments.apply(merged);
        }
        self.medium.announce(&ends, &record);
        Ok(Flushed { writer: self.writer(), record: Arc::new(record), ends })
    }

    /// The next commit does not count unless it is durable by this moment.
    pub fn set_deadline(&mut self, at: i64) {
        self.medium.set_deadline(at);
    }

    /// Notes when the last commit was durable.
    pub fn note_time(&mut self, env: &Env) {
        self.last = (env.clock.now(), env.clock.monotonic());
        self.since.get_or_insert(self.last.1);
    }

    /// Before a commit: looks whether the log was ended while this process did nothing for long. One of the clocks may
    /// stand still while a machine sleeps.
    pub fn wake(&mut self, env: &Env) {
        let idle = env.clock.now().saturating_sub(self.last.0).unsigned_abs();
        let idle = idle.max(env.clock.monotonic().saturating_sub(self.last.1));
        if !self.is_unmade() && idle >= IDLE {
            self.medium.wake();
        }
    }

    /// The error where a data log of this writer is gone: if a takeover holds all that was acknowledged, both logs may go.
    pub fn judge(&mut self, gone: Error) -> Error {
        self.medium.wake();
        match self.is_taken_over() {
            true => ended_meanwhile(format_args!("the log of writer {}", self.writer()), self.sequence),
            false => gone,
        }
    }

    /// Makes the end durable, after a failure.
    pub fn end(&mut self) {
        self.medium.end();
    }

    /// Ends the log at its last commit after a failure: what the header of the next log says of it.
    pub fn seal(self) -> Option<(Id, Address)> {
        let writer = self.writer();
        self.medium.seal().map(|end| (writer, end))
    }

    /// Says that nothing more comes.
    pub fn close(self) {
        self.medium.close();
    }
}
