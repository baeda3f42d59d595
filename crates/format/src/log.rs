//! A writer's log, `logs/<writer>.log`: a header, then frames without gaps. A frame is written by one write
//! and made durable by one sync; only its commit record makes anything visible.
//!
//! ```text
//! header = "FIELDSTONE-LOG\0\0"  version: u32  length: u32  writer: id  store: id
//!          created: i64  uid: u32  process: u32  host: text  user: text  program: text
//!          schema: text  sealed: varint { writer: id  length: varint }
//!          since version 2: attempt: text  job: text  rank: varint  u8 0 | owner  process
//!          crc: u32
//! frame  = head  body  record  record  foot      body = payload  segments  side records
//! head   = "FSfr"  version: u16  0: u16  length: u64  sequence: u64
//!          record length: u32  record crc: u32  body crc: u32  crc: u32         40 bytes
//! foot   = "FSnd"  version: u16  0: u16  frame offset: u64  length: u64  sequence: u64
//!          record length: u32  record crc: u32  body crc: u32  hash: u32  crc: u32    52 bytes
//! ```
//! The head's own checksum (the commit's *hash*) covers its first 36 bytes followed by the frame's offset
//! (u64), so that a frame copied elsewhere is not a valid frame. It covers the checksums of record and body,
//! hence the whole commit. `length` counts from head to foot. The foot repeats the head, so that one read at
//! the end of a log finds its last commit. The record is stored twice, so that no single damaged place hides
//! a commit.
//!
//! `sealed` names earlier logs of the same process whose last write or sync failed, and the lengths at which
//! they end: later bytes were never flushed.

use std::sync::Arc;

use fieldstone_core::env::Lifetime;
pub use fieldstone_core::kinds;
use fieldstone_core::{Code, Error, Result};

use crate::attempt::{ATTEMPTS_SINCE, Attempt, Origin};
use crate::bytes::{Cursor, Put, sealed};
use crate::flush_part::FlushPart;
use crate::owner::{Owner, decode_lifetime, put_lifetime};
use crate::segment::SegmentRef;
use crate::{FIRST_VERSION, Id, crc, is_known, unknown_version};

const LOG_MAGIC: &[u8; 16] = b"FIELDSTONE-LOG\0\0";
const HEAD_MAGIC: &[u8; 4] = b"FSfr";
const FOOT_MAGIC: &[u8; 4] = b"FSnd";
/// Length of a frame's head.
pub const HEAD: usize = 40;
/// Length of a frame's foot.
pub const FOOT: usize = 52;
/// Number of bytes from which `length` of a log's header can be read.
pub const HEADER_PREFIX: usize = 24;
/// Longest header accepted.
pub const HEADER_MAX: u32 = 16 << 20;

/// Name of a writer's log inside the store's `logs` folder.
pub fn file_name(writer: Id) -> String {
    format!("{writer}.log")
}

/// The writer in a log's file name.
pub fn parse_file_name(name: &str) -> Option<Id> {
    Id::parse(name.strip_suffix(".log")?)
}

/// The header of a log: its writer, and the schema of its commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHeader {
    /// Version of the format, shared by all frames and segments of the log.
    pub version: u32,
    /// The writer's id.
    pub writer: Id,
    /// The store's id; zeros if the header is damaged, see [`LogHeader::known_store`].
    pub store: Id,
    /// Time when the log began, by the writer's clock, nanoseconds since 1970.
    pub created: i64,
    /// Numeric user.
    pub uid: u32,
    /// Process id.
    pub process: u32,
    /// Host name.
    pub host: String,
    /// User name.
    pub user: String,
    /// Program and version that wrote it.
    pub program: String,
    /// Text of the schema.
    pub schema: String,
    /// Logs that end earlier than their files do.
    pub sealed: Vec<(Id, u64)>,
    /// The job to which it belongs; version 1 cannot store one.
    pub origin: Origin,
    /// To whom it belongs, if not to the owner of its file; version 1 cannot store one.
    pub owner: Option<Owner>,
    /// The process that writes it; version 1 cannot store it.
    pub lifetime: Lifetime,
}

impl LogHeader {
    /// A placeholder for a damaged header.
    pub fn unknown(writer: Id) -> LogHeader {
        let unknown = || "unknown".to_owned();
        LogHeader {
            version: FIRST_VERSION,
            writer,
            store: Id::LEAST,
            created: 0,
            uid: 0,
            process: 0,
            host: unknown(),
            user: unknown(),
            program: unknown(),
            schema: String::new(),
            sealed: Vec::new(),
            origin: Origin::default(),
            owner: None,
            lifetime: Lifetime::default(),
        }
    }

    /// The store's id, unless the header is damaged.
    pub fn known_store(&self) -> Option<Id> {
        Some(self.store).filter(|store| *store != Id::LEAST)
    }

    /// Encodes the header.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_id(self.writer);
        body.put_id(self.store);
        body.put_i64(self.created);
        body.put_u32(self.uid);
        body.put_u32(self.process);
        for text in [&self.host, &self.user, &self.program, &self.schema] {
            body.put_bytes(text.as_bytes());
        }
        body.put_varint(self.sealed.len() as u64);
        for (writer, length) in &self.sealed {
            body.put_id(*writer);
            body.put_varint(*length);
        }
        if self.version >= ATTEMPTS_SINCE {
            self.origin.encode(&mut body);
            Owner::put_some(self.owner.as_ref(), &mut body);
            put_lifetime(&self.lifetime, &mut body);
        }
        sealed(LOG_MAGIC, self.version, &body)
    }

    /// Length of the whole header, from its first [`HEADER_PREFIX`] bytes.
    pub fn length(prefix: &[u8]) -> Result<u32> {
        let mut cursor = Cursor::new(prefix);
        if cursor.take(16)? != LOG_MAGIC {
            return Err(Error::corrupt("a log does not begin with its magic"));
        }
        let version = cursor.u32()?;
        if !is_known(version) {
            return Err(unknown_version("the log", version));
        }
        match cursor.u32()? {
            length if (HEADER_PREFIX as u32 + 4..=HEADER_MAX).contains(&length) => Ok(length),
            _ => Err(cursor.fail("a log's header has an impossible length")),
        }
    }

    /// The version of a log whose version is not ours, and the length of its header, from its first
    /// [`HEADER_PREFIX`] bytes. Every version keeps magic, version and length in place, and the header's
    /// checksum at its end. If that does not match, the header may be a damaged one of ours.
    pub fn foreign(prefix: &[u8]) -> Option<(u32, u32)> {
        let mut cursor = Cursor::new(prefix);
        let (magic, version, length) = (cursor.take(16).ok()?, cursor.u32().ok()?, cursor.u32().ok()?);
        let possible = (HEADER_PREFIX as u32 + 4..=HEADER_MAX).contains(&length);
        (magic == LOG_MAGIC && !is_known(version) && possible).then_some((version, length))
    }

    /// Whether the header of a log of any version matches its checksum.
    pub fn is_whole(bytes: &[u8]) -> bool {
        bytes.split_last_chunk().is_some_and(|(body, sum)| crc(body).to_le_bytes() == *sum)
    }

    /// Decodes the header from its `length` bytes.
    pub fn decode(bytes: &[u8]) -> Result<LogHeader> {
        let length = LogHeader::length(bytes)? as usize;
        let whole =
            bytes.get(..length).ok_or_else(|| Code::Truncated.error("a log's header is truncated"))?;
        let (body, sum) = whole.split_at(length - 4);
        if crc(body).to_le_bytes() != sum {
            return Err(Code::Checksum.error("a log's header does not match its checksum"));
        }
        let mut cursor = Cursor::new(body);
        let version = Cursor::new(&cursor.take(HEADER_PREFIX)?[LOG_MAGIC.len()..]).u32()?;
        let mut header = LogHeader {
            version,
            writer: cursor.id()?,
            store: cursor.id()?,
            created: cursor.i64()?,
            uid: cursor.u32()?,
            process: cursor.u32()?,
            host: cursor.text()?.to_owned(),
            user: cursor.text()?.to_owned(),
            program: cursor.text()?.to_owned(),
            schema: cursor.text()?.to_owned(),
            sealed: Vec::new(),
            origin: Origin::default(),
            owner: None,
            lifetime: Lifetime::default(),
        };
        for _ in 0..cursor.count(17)? {
            header.sealed.push((cursor.id()?, cursor.varint()?));
        }
        if version >= ATTEMPTS_SINCE {
            header.origin = Origin::decode(&mut cursor)?;
            header.owner = Owner::decode_some(&mut cursor)?;
            header.lifetime = decode_lifetime(&mut cursor)?;
        }
        if cursor.is_empty() { Ok(header) } else { Err(cursor.fail("a log's header is too long")) }
    }
}

/// A catalog or graph change in a commit: a kind that its reader knows, and bytes. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideRecord {
    /// Kind of the bytes.
    pub kind: u16,
    /// The change.
    pub bytes: Arc<[u8]>,
}

/// The decision on a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The transaction.
    pub transaction: Id,
    /// Whether it committed; otherwise it was aborted.
    pub committed: bool,
    /// Kinds of content that are visible, see [`kinds`]; all ones for everything.
    pub kinds: u32,
    /// Logs whose prepared commits it covers, each up to a sequence.
    pub covers: Vec<(Id, u64)>,
}

/// A range of a log with its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Section {
    /// Offset in the log.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// CRC-32C.
    pub crc: u32,
}

/// The commits that a log has prepared under one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The transaction.
    pub transaction: Id,
    /// Sequence of the last commit prepared under it.
    pub sequence: u64,
    /// Entries prepared under it.
    pub fields: u64,
    /// Time of its first commit, nanoseconds since 1970.
    pub since: i64,
}

/// Adds a commit to the prepared commits of its transaction.
pub fn note_prepared(all: &mut Vec<Prepared>, transaction: Id, sequence: u64, fields: u64, time: i64) {
    match all.iter_mut().find(|p| p.transaction == transaction) {
        Some(known) => {
            known.sequence = sequence;
            known.fields = known.fields.saturating_add(fields);
        }
        None => all.push(Prepared { transaction, sequence, fields, since: time }),
    }
}

/// The record of a commit. Everything visible in a log follows from its last commit record.
///
/// ```text
/// record = stamp: u64  time: i64  previous: u64  previous decision: u64  previous side: u64
///          transaction: u8 0 | 1 id
///          prepared: varint { id  sequence: varint  fields: varint  since: i64 }
///          fields: varint  bytes: varint
///          data logs: varint { number: varint  length: varint }
///          segments: varint { segment reference }
///          side records: section, count: varint
///          condemned: varint { name: text }
///          decision: u8 0 | 1 id verdict: u8 kinds: u32 covers: varint { writer: id sequence: varint }
///          since version 2: attempt: u8 0 | 1 name: text began: u64
///          flushes: varint { session: id  number: varint  repetition: varint }  open: varint { transaction: id }
///          view: varint  siblings: varint { lane: varint }
/// section = offset: varint  length: varint  crc: u32
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitRecord {
    /// Number of the commit in its log, from 1. Stored in the frame's head.
    pub sequence: u64,
    /// Order among all commits of the store; ties by writer id.
    pub stamp: u64,
    /// The writer's clock, nanoseconds since 1970; the time that people see.
    pub time: i64,
    /// Offset of the previous frame, 0 for none.
    pub previous: u64,
    /// Offset of the last earlier frame with a decision, 0 for none.
    pub previous_decision: u64,
    /// Offset of the last earlier frame with side records, 0 for none.
    pub previous_side: u64,
    /// The transaction under which this commit is prepared.
    pub transaction: Option<Id>,
    /// Transactions for which this log has prepared commits, as far as its writer knows them to be undecided.
    pub prepared: Vec<Prepared>,
    /// Entries published by this commit.
    pub fields: u64,
    /// Raw bytes of these entries.
    pub bytes: u64,
    /// The writer's data logs and their durable lengths.
    pub data_logs: Vec<(u32, u64)>,
    /// The segments that together hold every entry of this log, oldest first.
    pub segments: Vec<SegmentRef>,
    /// Position of this commit's side records.
    pub side: Section,
    /// Number of side records.
    pub side_count: u64,
    /// Files without references from this commit on.
    pub condemned: Vec<String>,
    /// A decision on a transaction.
    pub decision: Option<Decision>,
    /// The attempt to which it belongs; version 1 cannot store one.
    pub attempt: Option<Attempt>,
    /// The flushes of clients that it holds; version 1 cannot store them.
    pub flushes: Vec<FlushPart>,
    /// Transactions that this log's writer opened and nobody has ended, as far as it knows; version 1 cannot store them.
    pub open: Vec<Id>,
    /// The view of a stack of stores under which it was made; 0 in a single store, and in version 1.
    pub view: u64,
    /// Lanes of the stack that hold the other parts of this flush; version 1 cannot store them.
    pub siblings: Vec<u16>,
}

impl CommitRecord {
    fn encode(&self, version: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.put_u64(self.stamp);
        out.put_i64(self.time);
        out.put_u64(self.previous);
        out.put_u64(self.previous_decision);
        out.put_u64(self.previous_side);
        out.push(u8::from(self.transaction.is_some()));
        if let Some(id) = self.transaction {
            out.put_id(id);
        }
        out.put_varint(self.prepared.len() as u64);
        for prepared in &self.prepared {
            out.put_id(prepared.transaction);
            out.put_varint(prepared.sequence);
            out.put_varint(prepared.fields);
            out.put_i64(prepared.since);
        }
        out.put_varint(self.fields);
        out.put_varint(self.bytes);
        out.put_varint(self.data_logs.len() as u64);
        for (number, length) in &self.data_logs {
            out.put_varint(u64::from(*number));
            out.put_varint(*length);
        }
        out.put_varint(self.segments.len() as u64);
        self.segments.iter().for_each(|segment| segment.encode(&mut out));
        out.put_varint(self.side.offset);
        out.put_varint(self.side.length);
        out.put_u32(self.side.crc);
        out.put_varint(self.side_count);
        out.put_varint(self.condemned.len() as u64);
        self.condemned.iter().for_each(|name| out.put_bytes(name.as_bytes()));
        out.push(u8::from(self.decision.is_some()));
        if let Some(decision) = &self.decision {
            out.put_id(decision.transaction);
            out.push(u8::from(decision.committed));
            out.put_u32(decision.kinds);
            out.put_varint(decision.covers.len() as u64);
            for (writer, sequence) in &decision.covers {
                out.put_id(*writer);
                out.put_varint(*sequence);
            }
        }
        if version >= ATTEMPTS_SINCE {
            Attempt::encode(self.attempt.as_ref(), &mut out);
            FlushPart::put_all(&self.flushes, &mut out);
            out.put_varint(self.open.len() as u64);
            self.open.iter().for_each(|transaction| out.put_id(*transaction));
            out.put_varint(self.view);
            out.put_varint(self.siblings.len() as u64);
            self.siblings.iter().for_each(|lane| out.put_varint(u64::from(*lane)));
        }
        out
    }

    fn decode(bytes: &[u8], sequence: u64, version: u32) -> Result<CommitRecord> {
        let cursor = &mut Cursor::new(bytes);
        let mut record = CommitRecord {
            sequence,
            stamp: cursor.u64()?,
            time: cursor.i64()?,
            previous: cursor.u64()?,
            previous_decision: cursor.u64()?,
            previous_side: cursor.u64()?,
            ..CommitRecord::default()
        };
        if cursor.flag()? {
            record.transaction = Some(cursor.id()?);
        }
        for _ in 0..cursor.count(26)? {
            record.prepared.push(Prepared {
                transaction: cursor.id()?,
                sequence: cursor.varint()?,
                fields: cursor.varint()?,
                since: cursor.i64()?,
            });
        }
        record.fields = cursor.varint()?;
        record.bytes = cursor.varint()?;
        for _ in 0..cursor.count(2)? {
            let number = u32::try_from(cursor.varint()?)
                .map_err(|_| cursor.fail("a data log's number is too large"))?;
            record.data_logs.push((number, cursor.varint()?));
        }
        for _ in 0..cursor.count(8)? {
            record.segments.push(SegmentRef::decode(cursor)?);
        }
        record.side = Section { offset: cursor.varint()?, length: cursor.varint()?, crc: cursor.u32()? };
        record.side_count = cursor.varint()?;
        for _ in 0..cursor.count(1)? {
            record.condemned.push(cursor.text()?.to_owned());
        }
        if cursor.flag()? {
            let mut decision = Decision {
                transaction: cursor.id()?,
                committed: cursor.flag()?,
                kinds: cursor.u32()?,
                covers: vec![],
            };
            for _ in 0..cursor.count(17)? {
                decision.covers.push((cursor.id()?, cursor.varint()?));
            }
            record.decision = Some(decision);
        }
        if version >= ATTEMPTS_SINCE {
            record.attempt = Attempt::decode(cursor)?;
            if record.attempt.as_ref().is_some_and(|attempt| attempt.began > record.stamp) {
                return Err(cursor.fail("an attempt begins after its commit"));
            }
            record.decode_clients(cursor)?;
        }
        if cursor.is_empty() { Ok(record) } else { Err(cursor.fail("a commit record is too long")) }
    }

    /// Reads what a commit says of clients, of open transactions and of a stack.
    fn decode_clients(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.flushes = FlushPart::decode_all(cursor)?;
        for _ in 0..cursor.count(16)? {
            self.open.push(cursor.id()?);
        }
        self.view = cursor.varint()?;
        for _ in 0..cursor.count(1)? {
            let lane = u16::try_from(cursor.varint()?);
            self.siblings.push(lane.map_err(|_| cursor.fail("a lane exceeds 16 bits"))?);
        }
        Ok(())
    }
}

/// Writes the side records of a commit.
///
/// ```text
/// side records = { kind: u16  bytes }
/// ```
pub fn encode_side<'a>(records: impl IntoIterator<Item = &'a SideRecord>) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        out.put_u16(record.kind);
        out.put_bytes(&record.bytes);
    }
    out
}

/// Reads `count` side records.
pub fn decode_side(bytes: &[u8], count: u64) -> Result<Vec<SideRecord>> {
    let records = decode_all_side(bytes)?;
    if records.len() as u64 != count {
        return Err(Error::corrupt("a commit's number of side records does not match its count"));
    }
    Ok(records)
}

/// Reads side records up to the end of their bytes, as a takeover has them.
pub fn decode_all_side(bytes: &[u8]) -> Result<Vec<SideRecord>> {
    let mut cursor = Cursor::new(bytes);
    let mut records = Vec::new();
    while !cursor.is_empty() {
        records.push(SideRecord { kind: cursor.u16()?, bytes: cursor.bytes()?.into() });
    }
    Ok(records)
}

/// The parts of a frame around its body.
#[derive(Debug)]
pub struct Envelope {
    /// The head, before the body.
    pub head: Vec<u8>,
    /// The record, stored twice after the body.
    pub record: Vec<u8>,
    /// The foot, at the end.
    pub foot: Vec<u8>,
    /// The content that head and foot share.
    pub ends: FrameInfo,
}

impl Envelope {
    /// The parts around a body, which may come in pieces, in a frame at `offset` of a log of a version.
    pub fn new(version: u32, offset: u64, record: &CommitRecord, body: &[&[u8]]) -> Envelope {
        let record_bytes = record.encode(version);
        let body_len: usize = body.iter().map(|part| part.len()).sum();
        let mut ends = FrameInfo {
            version: version as u16,
            frame: offset,
            length: (HEAD + body_len + 2 * record_bytes.len() + FOOT) as u64,
            sequence: record.sequence,
            record_len: record_bytes.len() as u32,
            record_crc: crc(&record_bytes),
            body_crc: body.iter().fold(0, |sum, part| crate::crc_append(sum, part)),
            hash: 0,
        };
        let (mut head, mut foot) = (Vec::with_capacity(HEAD), Vec::with_capacity(FOOT));
        ends.put_head(&mut head);
        ends.hash = head_crc(&head, offset);
        head.put_u32(ends.hash);
        ends.put_foot(&mut foot);
        Envelope { head, record: record_bytes, foot, ends }
    }
}

/// Encodes a frame at `offset` of a log of the first version; also returns the commit's hash.
pub fn encode_frame(offset: u64, record: &CommitRecord, body: &[u8]) -> (Vec<u8>, u32) {
    let Envelope { head, record, foot, ends } = Envelope::new(FIRST_VERSION, offset, record, &[body]);
    ([&head, body, &record, &record, &foot].concat(), ends.hash)
}

fn head_crc(first: &[u8], offset: u64) -> u32 {
    crc32c::crc32c_append(crc(first), &offset.to_le_bytes())
}

/// The content that head and foot of a frame share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameInfo {
    /// Version of the format.
    pub version: u16,
    /// Offset of the frame in its log.
    pub frame: u64,
    /// Length of the frame, head to foot.
    pub length: u64,
    /// Sequence of its commit.
    pub sequence: u64,
    /// Length of the record.
    pub record_len: u32,
    /// Checksum of the record.
    pub record_crc: u32,
    /// Checksum of payload, segments and side records.
    pub body_crc: u32,
    /// Checksum of the head: the commit's hash.
    pub hash: u32,
}

impl FrameInfo {
    fn put_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(HEAD_MAGIC);
        out.put_u16(self.version);
        out.put_u16(0);
        out.put_u64(self.length);
        out.put_u64(self.sequence);
        out.put_u32(self.record_len);
        out.put_u32(self.record_crc);
        out.put_u32(self.body_crc);
    }

    fn put_foot(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(FOOT_MAGIC);
        out.put_u16(self.version);
        out.put_u16(0);
        for value in [self.frame, self.length, self.sequence] {
            out.put_u64(value);
        }
        for value in [self.record_len, self.record_crc, self.body_crc, self.hash] {
            out.put_u32(value);
        }
        let sum = crc(&out[start..]);
        out.put_u32(sum);
    }

    /// The bytes of the frame's head.
    pub fn encode_head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD);
        self.put_head(&mut head);
        head.put_u32(self.hash);
        head
    }

    /// The bytes of the frame's foot.
    pub fn encode_foot(&self) -> Vec<u8> {
        let mut foot = Vec::with_capacity(FOOT);
        self.put_foot(&mut foot);
        foot
    }

    /// Decodes the head of the frame at `offset`.
    pub fn decode_head(bytes: &[u8], offset: u64) -> Result<FrameInfo> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4)? != HEAD_MAGIC {
            return Err(cursor.fail("a frame does not begin with its magic"));
        }
        let (version, zero) = (cursor.u16()?, cursor.u16()?);
        let ends = FrameInfo {
            version,
            frame: offset,
            length: cursor.u64()?,
            sequence: cursor.u64()?,
            record_len: cursor.u32()?,
            record_crc: cursor.u32()?,
            body_crc: cursor.u32()?,
            hash: cursor.u32()?,
        };
        if head_crc(&bytes[..HEAD - 4], offset) != ends.hash {
            return Err(cursor.fail("a frame's head does not match its checksum"));
        }
        ends.check(zero)
    }

    /// Decodes the foot that ends a log of `log_len` bytes.
    pub fn decode_foot(bytes: &[u8], log_len: u64) -> Result<FrameInfo> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4)? != FOOT_MAGIC {
            return Err(cursor.fail("a frame does not end with its magic"));
        }
        let (version, zero) = (cursor.u16()?, cursor.u16()?);
        let ends = FrameInfo {
            version,
            frame: cursor.u64()?,
            length: cursor.u64()?,
            sequence: cursor.u64()?,
            record_len: cursor.u32()?,
            record_crc: cursor.u32()?,
            body_crc: cursor.u32()?,
            hash: cursor.u32()?,
        };
        if cursor.u32()? != crc(&bytes[..FOOT - 4]) {
            return Err(cursor.fail("a frame's foot does not match its checksum"));
        }
        let ends = ends.check(zero)?;
        let mut head = Vec::with_capacity(HEAD);
        ends.put_head(&mut head);
        if ends.frame.checked_add(ends.length) != Some(log_len) || head_crc(&head, ends.frame) != ends.hash {
            return Err(cursor.fail("a frame's foot contradicts its position or its head"));
        }
        Ok(ends)
    }

    fn check(self, zero: u16) -> Result<FrameInfo> {
        if !is_known(u32::from(self.version)) || zero != 0 {
            return Err(Code::FormatVersion.error("a frame has another format version"));
        }
        if self.length < (HEAD + FOOT) as u64 + 2 * u64::from(self.record_len)
            || self.frame.checked_add(self.length).is_none()
        {
            return Err(Error::corrupt("a frame is shorter than its parts"));
        }
        Ok(self)
    }

    /// Offset of the frame's end.
    pub fn end(&self) -> u64 {
        self.frame + self.length
    }

    /// Offset in the log and length of payload, segments and side records.
    pub fn body(&self) -> (u64, u64) {
        let start = self.frame + HEAD as u64;
        (start, self.record_offsets()[1] - start)
    }

    /// Offsets in the log of the two copies of the record.
    pub fn record_offsets(&self) -> [u64; 2] {
        let last = self.end() - FOOT as u64 - u64::from(self.record_len);
        [last, last - u64::from(self.record_len)]
    }

    /// Decodes the record.
    pub fn record(&self, bytes: &[u8]) -> Result<CommitRecord> {
        if bytes.len() != self.record_len as usize || crc(bytes) != self.record_crc {
            return Err(Code::Checksum.error("a commit record does not match its checksum"));
        }
        let record = CommitRecord::decode(bytes, self.sequence, u32::from(self.version))?;
        let (start, length) = self.body();
        let side = &record.side;
        let end = side.offset.checked_add(side.length);
        let inside = side.offset >= start && end.is_some_and(|end| end <= start + length);
        if (*side != Section::default() || record.side_count > 0) && !inside {
            return Err(Error::corrupt("side records are outside their commit"));
        }
        Ok(record)
    }
}
