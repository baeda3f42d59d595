//! Options, values, list entries and reports of the field store as bytes.

use std::path::PathBuf;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::Summary;
use fieldstone_core::{Error, Result};
use fieldstone_format::bytes::Cursor;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::entry::EntryId;
use fieldstone_format::origin::{EntryOrigin, OriginAttempt};
use fieldstone_format::owner::Owner;
use fieldstone_store::api::{
    AcceptanceReport, Advice, ArchiveOptions, BlockPlace, CheckpointOptions, CheckpointReport,
    CompactProgress, CompactReport, Compaction, Damage, DatasetLock, Erasing, ErasureReport, ExternalContent,
    ExternalSpec, Extremes, FieldLocation, FileState, FormatPin, HiddenFields, Hiding, KeyEntry, LeftLog,
    ListEntry, ListOptions, Locking, MaintainAction, MaintainProgress, MaintainReport, MaintainStep,
    Maintaining, PlaceFile, PurgeProgress, PurgeReport, Purging, ReadOptions, RemoveOptions, Retaining,
    RetentionRule, RetrieveOptions, Stats, StatsBy, StatsRow, Status, StatusProblem, StoredArray,
    StoredArraySpec, TransactionState, TransactionStatus, Value, VerifyReport, WipeReport, Wiping,
    WriterStatus,
};
use fieldstone_store::api::{HandOverInfo, HandOverReport, HandingOver};
use fieldstone_store::api::{HoldInfo, Holding};
use fieldstone_store::api::{IndexedField, OverlaidFields, Overlaying, PointedFields, Pointing};
use fieldstone_store::{FieldPart, Outline};

use crate::{In, Out, Wire, wire_enum, wire_struct};

/// States of writers, the values of [`WriterStatus::state`].
const STATES: [&str; 5] = ["open", "closed", "gone", "silent", "ended"];

/// A [`Value`] that owns its data.
#[derive(Debug, Clone)]
pub enum ArchivedValue {
    /// Opaque bytes.
    Bytes(Vec<u8>),
    /// A whole array: elements, type and extents.
    Array(Vec<u8>, DType, Vec<u64>),
    /// A piece: elements and type; start, extents and the whole array's shape.
    Piece(Vec<u8>, DType, [Vec<u64>; 3]),
}

impl ArchivedValue {
    /// Appends a value in the form that this type reads, without copying its data.
    pub fn put_value(value: &Value<'_>, out: &mut Out<'_>) {
        let put = |out: &mut Out<'_>, tag: u8, data: &[u8]| {
            out.bytes().push(tag);
            (data.len() as u64).put(out);
            out.bytes().extend_from_slice(data);
        };
        match value {
            Value::Bytes(data) => put(out, 0, data),
            Value::Array { data, dtype, shape } => {
                put(out, 1, data);
                dtype.put(out);
                shape.to_vec().put(out);
            }
            Value::Piece { data, dtype, start, count, shape } => {
                put(out, 2, data);
                dtype.put(out);
                [start.to_vec(), count.to_vec(), shape.to_vec()].put(out);
            }
        }
    }

    /// The value that borrows this one's data.
    pub fn lend(&self) -> Value<'_> {
        match self {
            ArchivedValue::Bytes(data) => Value::Bytes(data),
            ArchivedValue::Array(data, dtype, shape) => Value::Array { data, dtype: *dtype, shape },
            ArchivedValue::Piece(data, dtype, [start, count, shape]) => {
                Value::Piece { data, dtype: *dtype, start, count, shape }
            }
        }
    }
}

/// An [`ExternalSpec`] that owns its data.
#[derive(Debug, Clone)]
pub struct ExternalValue {
    path: PathBuf,
    offset: u64,
    parts: u64,
    stride: u64,
    bytes: u64,
    array: Option<(DType, Vec<u64>)>,
    seen: Option<FileState>,
}

impl ExternalValue {
    /// A copy to send.
    pub fn of(spec: &ExternalSpec<'_>) -> ExternalValue {
        let (bytes, array) = match spec.content {
            ExternalContent::Bytes(bytes) => (bytes, None),
            ExternalContent::Array { dtype, shape } => (0, Some((dtype, shape.to_vec()))),
        };
        let ExternalSpec { path, offset, parts, stride, seen, .. } = *spec;
        ExternalValue { path: path.to_owned(), offset, parts, stride, bytes, array, seen }
    }

    /// The spec that borrows this one's data.
    pub fn lend(&self) -> ExternalSpec<'_> {
        let content = match &self.array {
            None => ExternalContent::Bytes(self.bytes),
            Some((dtype, shape)) => ExternalContent::Array { dtype: *dtype, shape },
        };
        let ExternalValue { path, offset, parts, stride, seen, .. } = self;
        ExternalSpec { path, offset: *offset, parts: *parts, stride: *stride, content, seen: *seen }
    }
}

/// A [`StoredArraySpec`] that owns its data.
#[derive(Debug, Clone)]
pub struct StoredValue {
    path: String,
    offset: u64,
    dtype: DType,
    shape: Vec<u64>,
    fill: Option<Vec<u8>>,
    block: u64,
    sums: Vec<u32>,
    holes: u64,
}

impl StoredValue {
    /// A copy to send.
    pub fn of(spec: &StoredArraySpec<'_>) -> StoredValue {
        StoredValue {
            path: spec.path.to_owned(),
            offset: spec.offset,
            dtype: spec.dtype,
            shape: spec.shape.to_vec(),
            fill: spec.fill.map(<[u8]>::to_vec),
            block: spec.block,
            sums: spec.sums.to_vec(),
            holes: spec.holes,
        }
    }

    /// The spec that borrows this one's data.
    pub fn lend(&self) -> StoredArraySpec<'_> {
        StoredArraySpec {
            path: &self.path,
            offset: self.offset,
            dtype: self.dtype,
            shape: &self.shape,
            fill: self.fill.as_deref(),
            block: self.block,
            sums: &self.sums,
            holes: self.holes,
        }
    }
}

/// The facts about a field that its handle knows without another request; the bytes stay with the store.
#[derive(Debug)]
pub struct FieldFacts {
    /// The store's name, equal in all its handles.
    pub store: PathBuf,
    /// The encoded key.
    pub key: Vec<u8>,
    /// Its newest part.
    pub entry: EntryId,
    /// The version that it belongs to.
    pub version: String,
    /// The commits of its parts.
    pub commits: Vec<(CommitId, u64)>,
    /// When its newest part was flushed, nanoseconds since 1970.
    pub time: i64,
    /// Raw bytes.
    pub nbytes: Outcome<u64>,
    /// Element type and shape of an array.
    pub array: Outcome<Option<(DType, Vec<u64>)>>,
    /// Extents of the chunks.
    pub chunks: Option<Vec<u64>>,
    /// Extremes and missing elements.
    pub summary: Option<Summary>,
    /// Whether unwritten elements are filled.
    pub lenient: bool,
}

/// A result that crosses the connection as data.
pub type Outcome<T> = std::result::Result<T, Error>;

impl<T: Wire> Wire for Outcome<T> {
    fn put(&self, out: &mut Out<'_>) {
        self.is_ok().put(out);
        match self {
            Ok(item) => item.put(out),
            Err(error) => error.put(out),
        }
    }

    fn read(input: &mut In<'_>) -> Result<Outcome<T>> {
        Ok(match bool::read(input)? {
            true => Ok(T::read(input)?),
            false => Err(Error::read(input)?),
        })
    }
}

impl Wire for WriterStatus {
    fn put(&self, out: &mut Out<'_>) {
        let WriterStatus { writer, host, process, user, state, commits, segments, last_flush, .. } = self;
        writer.put(out);
        host.put(out);
        process.put(out);
        user.put(out);
        state.to_string().put(out);
        commits.put(out);
        segments.put(out);
        last_flush.put(out);
        self.clock_offset.put(out);
        self.tail.put(out);
        self.origin.put(out);
    }

    fn read(input: &mut In<'_>) -> Result<WriterStatus> {
        Ok(WriterStatus {
            writer: Wire::read(input)?,
            host: Wire::read(input)?,
            process: Wire::read(input)?,
            user: Wire::read(input)?,
            state: one_of(input, &STATES)?,
            commits: Wire::read(input)?,
            segments: Wire::read(input)?,
            last_flush: Wire::read(input)?,
            clock_offset: Wire::read(input)?,
            tail: Wire::read(input)?,
            origin: Wire::read(input)?,
        })
    }
}

impl Wire for Owner {
    fn put(&self, out: &mut Out<'_>) {
        self.encode().put(out);
    }

    fn read(input: &mut In<'_>) -> Result<Owner> {
        Owner::decode(&mut Cursor::new(&Vec::<u8>::read(input)?))
    }
}

/// Reads a word, which must be one of these.
pub(crate) fn one_of(input: &mut In<'_>, words: &'static [&'static str]) -> Result<&'static str> {
    let text = input.cursor.text()?;
    let known = words.iter().find(|word| **word == text);
    known.copied().ok_or_else(|| input.cursor.fail(&format!("the word {text} is unknown")))
}

wire_enum! {
    ArchivedValue { 0 Bytes(data), 1 Array(data, dtype, shape), 2 Piece(data, dtype, places) }
    MaintainAction { 0 Sweep, 1 Wipe, 2 Purge, 3 Compact, 4 Move }
    StatsBy { 0 Owner, 1 Dataset, 2 Writer, 3 Keyword(name) }
    PlaceFile { 0 Own(writer, file), 1 Grown(path), 2 Outside(path), 3 Takeover(path) }
}

wire_struct! {
    ExternalValue { path, offset, parts, stride, bytes, array, seen }
    StoredValue { path, offset, dtype, shape, fill, block, sums, holes }
    FieldFacts { store, key, entry, version, commits, time, nbytes, array, chunks, summary, lenient }
    FileState { nbytes, mtime }
    Outline { dtype, shape, fill, chunks }
    StoredArray { path, offset, dtype, shape, block, sums, holes }
    BlockPlace { part, file, offset, stored, raw, crc }
    ArchiveOptions { session, compression, chunks, share, if_exists, verbatim, missing, dry_run, origin }
    EntryOrigin { store, writer, sequence, stamp, time, owner, attempt }
    OriginAttempt { name, began, writer }
    FieldPart { origin, region }
    RemoveOptions { session }
    ReadOptions { session }
    ListOptions { depth, masked, session }
    RetrieveOptions { strict, session }
    FieldLocation { file, offset, length }
    Extremes { min, max, missing }
    ListEntry {
        key, depth, nbytes, dtype, shape, chunks, packed, complete, place, time, owner, summary, attempt, masked,
    }
    Damage { key, file, why }
    AcceptanceReport { file, what, fields, keys, user, time, why }
    VerifyReport { fields, bytes, files, damaged, notes, array_files, accepted }
    Stats {
        datasets, indexes, fields, bytes, stored_bytes, masked, writers, segments, file_bytes, files,
    }
    StatsRow { name, fields, nbytes, stored, dead }
    TransactionStatus { id, owners, fields, kinds, since }
    StatusProblem { code, file, why }
    FormatPin { user, time }
    Status {
        url, id, schema, format, format_pin, version, writers, transactions, owners, problems, accepted, free_bytes,
        free_inodes, bytes_by_user, unflushed, advice,
    }
    Advice { command, gain, is_estimate }
    KeyEntry { id, order, attempt, generation, removal, live, length, piece }
    TransactionState { id, user, kinds, aborted, ended, order, prepared }
    CheckpointOptions { incremental }
    CheckpointReport { version, bytes, files, nanoseconds }
    Compaction { requests, max_bytes, rate, grace, session }
    CompactProgress { logs, entries }
    LeftLog { file, why, accepted }
    CompactReport { logs, segments, files, nbytes, waiting, left }
    Purging { requests, all, doit, max_bytes, rate, grace, engine, session }
    PurgeProgress { keys, nbytes }
    PurgeReport { fields, versions, nbytes, condemned, waiting, files, kept, left, more }
    Erasing { requests, doit, engine, session }
    ErasureReport { fields, versions, attributes, visible, nbytes, files, left, done }
    Wiping { older_than, doit, all, session }
    Locking { what, locks, session }
    DatasetLock { dataset, what, by, since }
    Hiding { hides, session }
    HiddenFields { request, by, since }
    Overlaying { values, shows, session }
    OverlaidFields { request, values, by, since }
    HandingOver { from, to, session }
    HandOverReport { from, to, datasets }
    HandOverInfo { from, to, by, since }
    IndexedField { key, encoded, parts }
    Pointing { store, url, names, session }
    PointedFields { request, store, url, by, since }
    WipeReport { fields, nbytes, foreign, done }
    Retaining { query, to, older_than, versions, drop, all, session }
    RetentionRule { request, query, to, older_than, versions, owner, since }
    Holding { name, lasts, why, session }
    HoldInfo { name, why, by, since, until, version }
    Maintaining { grace, max_bytes, rate, dry_run, session }
    MaintainProgress { step, action, request, done, nbytes }
    MaintainStep {
        action, request, done, fields, versions, nbytes, files, rewritten, nanoseconds, why, code,
    }
    MaintainReport { steps, waiting, more }
}
