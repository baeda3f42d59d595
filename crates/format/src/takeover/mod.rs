//! `logs/<owner>-<n>.takeover`: one file that stands in for the ended logs of one user (takeovers.md, 3).
//!
//! ```text
//! file   = header  body  record  record  header  tail
//! header = "FIELDSTONE-TAKE\0"  version: u32  length: u32  id  store: id  number: u64  created: i64  newest: u64
//!          floor: u64  record offset: u64  record length: u32  record crc: u32  owner
//!          uid: u32  process: u32  host: text  user: text  program: text  purge: u8
//!          live: varint { number: varint digest: u64 }  replaced: varint { number: varint }  schema: text  crc: u32
//! record = data logs: varint { number: varint length: varint }  removals: u8  bytes: varint
//!          tables: varint { table: u8  reference }
//! tail   = header length: u32  crc: u32  "FStakend"
//! ```
//! The body holds blocks of [tables](crate::table), whose rows are described in [`rows`], and payload. Header and record
//! are there twice, so that no single damaged place hides a takeover.

pub mod part;
pub mod rows;

use fieldstone_core::{Code, Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::bytes::{Cursor, Put, sealed};
use crate::owner::Owner;
use crate::table::TableRef;
use crate::{Id, crc, unknown_version};

const MAGIC: &[u8; 16] = b"FIELDSTONE-TAKE\0";
const TAIL_MAGIC: &[u8; 8] = b"FStakend";
/// The only version of takeovers.
const VERSION: u32 = 2;
/// Number of bytes from which the length of a header can be read.
pub const HEADER_PREFIX: usize = 24;
/// Longest header accepted.
pub const HEADER_MAX: u32 = 16 << 20;
/// Length of the tail.
pub const TAIL: usize = 16;

/// The name of a takeover's file, inside the folder `logs`: the owner's part of it, and the number.
pub fn file_name(owner: &str, number: u64) -> String {
    format!("{owner}-{number}.takeover")
}

/// The name of a takeover's file while it is written, by its id.
pub fn new_name(id: Id) -> String {
    format!("{id}.takeover-new")
}

/// The id in the name of a takeover that is being written.
pub fn parse_new_name(name: &str) -> Option<Id> {
    Id::parse(name.strip_suffix(".takeover-new")?)
}

/// The owner's part and the number in the name of a takeover's file.
pub fn parse_file_name(name: &str) -> Option<(&str, u64)> {
    let (owner, digits) = name.strip_suffix(".takeover")?.rsplit_once('-')?;
    let number = digits.parse().ok().filter(|number| *number > 0)?;
    let of_user = |uid: &str| uid.parse::<u32>().is_ok_and(|number| number.to_string() == uid);
    let of_subject = |hash: &str| Id::parse(hash).is_some();
    let known =
        owner.strip_prefix('u').is_some_and(of_user) || owner.strip_prefix('s').is_some_and(of_subject);
    (known && file_name(owner, number) == name).then_some((owner, number))
}

/// A table of a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TakeoverTable {
    /// The logs that are replaced.
    Names = 1,
    /// Their commits.
    Commits = 2,
    /// Their index entries.
    Entries = 3,
    /// Transactions that are not forgotten.
    Transactions = 4,
    /// Side records of catalog and graph.
    Side = 5,
    /// Side records of the store itself.
    StoreRecords = 6,
    /// Datasets, and whose they are.
    Datasets = 7,
    /// Values of the keywords.
    Axes = 8,
    /// Attempts.
    Attempts = 9,
    /// Hosts, users, programs and jobs of the logs.
    Facts = 10,
    /// Flushes of clients in the last day.
    Flushes = 11,
    /// The logs again, by the number that first took them over.
    Taken = 12,
    /// Files that nothing names any more.
    Condemned = 13,
}

impl TakeoverTable {
    /// All tables, in their order.
    pub const ALL: [TakeoverTable; 13] = [
        TakeoverTable::Names,
        TakeoverTable::Commits,
        TakeoverTable::Entries,
        TakeoverTable::Transactions,
        TakeoverTable::Side,
        TakeoverTable::StoreRecords,
        TakeoverTable::Datasets,
        TakeoverTable::Axes,
        TakeoverTable::Attempts,
        TakeoverTable::Facts,
        TakeoverTable::Flushes,
        TakeoverTable::Taken,
        TakeoverTable::Condemned,
    ];

    fn of(number: u8) -> Option<TakeoverTable> {
        TakeoverTable::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The header of a takeover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverHeader {
    /// Names its data logs.
    pub id: Id,
    /// The store.
    pub store: Id,
    /// Its number among the owner's takeovers.
    pub number: u64,
    /// When it was made, nanoseconds since 1970.
    pub created: i64,
    /// The greatest stamp of a commit in it.
    pub newest: u64,
    /// Transactions that began before this stamp and are not in it are forgotten.
    pub floor: u64,
    /// Offset of the first copy of the record.
    pub record_offset: u64,
    /// Length of one copy.
    pub record_len: u32,
    /// CRC-32C of the record.
    pub record_crc: u32,
    /// The owner of the logs.
    pub owner: Owner,
    /// The process that made it.
    pub maker: Maker,
    /// Whether entries were dropped.
    pub purge: bool,
    /// The other takeovers of this owner that count, each with its digest; ascending.
    pub live: Vec<(u64, u64)>,
    /// Takeovers whose content this one has; ascending.
    pub replaced: Vec<u64>,
    /// Text of the schema.
    pub schema: String,
}

/// The process that made a takeover; informs people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maker {
    /// Numeric user.
    pub uid: u32,
    /// Process id.
    pub process: u32,
    /// Host name.
    pub host: String,
    /// User name.
    pub user: String,
    /// Program and version.
    pub program: String,
}

impl TakeoverHeader {
    /// Encodes the header.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_id(self.id);
        body.put_id(self.store);
        body.put_u64(self.number);
        body.put_i64(self.created);
        body.put_u64(self.newest);
        body.put_u64(self.floor);
        body.put_u64(self.record_offset);
        body.put_u32(self.record_len);
        body.put_u32(self.record_crc);
        self.owner.put(&mut body);
        body.put_u32(self.maker.uid);
        body.put_u32(self.maker.process);
        for text in [&self.maker.host, &self.maker.user, &self.maker.program] {
            body.put_bytes(text.as_bytes());
        }
        body.push(u8::from(self.purge));
        body.put_varint(self.live.len() as u64);
        for (number, digest) in &self.live {
            body.put_varint(*number);
            body.put_u64(*digest);
        }
        body.put_varint(self.replaced.len() as u64);
        self.replaced.iter().for_each(|number| body.put_varint(*number));
        body.put_bytes(self.schema.as_bytes());
        sealed(MAGIC, VERSION, &body)
    }

    /// Length of the whole header, from its first [`HEADER_PREFIX`] bytes.
    pub fn length(prefix: &[u8]) -> Result<u32> {
        let mut cursor = Cursor::new(prefix);
        if cursor.take(16)? != MAGIC {
            return Err(cursor.fail("a takeover does not begin with its magic"));
        }
        match cursor.u32()? {
            VERSION => {}
            version => return Err(unknown_version("the takeover", version)),
        }
        match cursor.u32()? {
            length if (HEADER_PREFIX as u32 + 4..=HEADER_MAX).contains(&length) => Ok(length),
            _ => Err(cursor.fail("a takeover's header has an impossible length")),
        }
    }

    /// Decodes the header from its bytes.
    pub fn decode(bytes: &[u8]) -> Result<TakeoverHeader> {
        let length = TakeoverHeader::length(bytes)? as usize;
        let whole =
            bytes.get(..length).ok_or_else(|| Code::Truncated.error("a takeover's header is truncated"))?;
        let (body, sum) = whole.split_at(length - 4);
        if crc(body).to_le_bytes() != sum {
            return Err(Code::Checksum.error("a takeover's header does not match its checksum"));
        }
        let mut cursor = Cursor::new(body);
        cursor.take(HEADER_PREFIX)?;
        let mut header = TakeoverHeader {
            id: cursor.id()?,
            store: cursor.id()?,
            number: cursor.u64()?,
            created: cursor.i64()?,
            newest: cursor.u64()?,
            floor: cursor.u64()?,
            record_offset: cursor.u64()?,
            record_len: cursor.u32()?,
            record_crc: cursor.u32()?,
            owner: Owner::decode(&mut cursor)?,
            maker: Maker {
                uid: cursor.u32()?,
                process: cursor.u32()?,
                host: cursor.text()?.to_owned(),
                user: cursor.text()?.to_owned(),
                program: cursor.text()?.to_owned(),
            },
            purge: cursor.flag()?,
            live: Vec::new(),
            replaced: Vec::new(),
            schema: String::new(),
        };
        for _ in 0..cursor.count(9)? {
            header.live.push((cursor.varint()?, cursor.u64()?));
        }
        for _ in 0..cursor.count(1)? {
            header.replaced.push(cursor.varint()?);
        }
        header.schema = cursor.text()?.to_owned();
        let ascending =
            header.live.is_sorted_by(|a, b| a.0 < b.0) && header.replaced.is_sorted_by(|a, b| a < b);
        let last = header.live.last().map(|(number, _)| number).max(header.replaced.last());
        if !ascending || last.is_some_and(|last| *last >= header.number) || !cursor.is_empty() {
            return Err(cursor.fail("a takeover's header contradicts itself"));
        }
        Ok(header)
    }

    /// The tail that follows the second copy of a header of this length.
    pub fn tail(length: u32) -> [u8; TAIL] {
        let mut out = Vec::with_capacity(TAIL);
        out.put_u32(length);
        let sum = crc(&out);
        out.put_u32(sum);
        out.extend_from_slice(TAIL_MAGIC);
        let mut tail = [0; TAIL];
        tail.copy_from_slice(&out);
        tail
    }

    /// The length of the header, from the last [`TAIL`] bytes of the file.
    pub fn length_of_tail(tail: &[u8]) -> Result<u32> {
        let mut cursor = Cursor::new(tail);
        let length = cursor.u32()?;
        match cursor.u32()? == crc(&length.to_le_bytes()) && cursor.take(8)? == TAIL_MAGIC {
            true if (HEADER_PREFIX as u32 + 4..=HEADER_MAX).contains(&length) => Ok(length),
            _ => Err(cursor.fail("a takeover does not end with its tail")),
        }
    }

    /// The digest of a takeover with this header and this record.
    pub fn digest(header: &[u8], record: &[u8]) -> u64 {
        let mut hasher = Xxh3::new();
        hasher.update(header);
        hasher.update(record);
        hasher.digest()
    }
}

/// The record of a takeover: where its tables are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakeoverRecord {
    /// The takeover's own data logs and their lengths.
    pub data_logs: Vec<(u32, u64)>,
    /// Whether an entry is a removal or an attempt tombstone.
    pub removals: bool,
    /// Raw bytes of all entries.
    pub bytes: u64,
    /// The tables with rows, ascending.
    pub tables: Vec<(TakeoverTable, TableRef)>,
}

impl TakeoverRecord {
    /// A table; `None` if it has no rows.
    pub fn table(&self, table: TakeoverTable) -> Option<&TableRef> {
        self.tables.iter().find(|(known, _)| *known == table).map(|(_, reference)| reference)
    }

    /// Encodes the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_varint(self.data_logs.len() as u64);
        for (number, length) in &self.data_logs {
            out.put_varint(u64::from(*number));
            out.put_varint(*length);
        }
        out.push(u8::from(self.removals));
        out.put_varint(self.bytes);
        out.put_varint(self.tables.len() as u64);
        for (table, reference) in &self.tables {
            out.push(*table as u8);
            reference.put(&mut out);
        }
        out
    }

    /// Decodes a copy of the record, which the header describes.
    pub fn decode(bytes: &[u8], header: &TakeoverHeader) -> Result<TakeoverRecord> {
        if bytes.len() != header.record_len as usize || crc(bytes) != header.record_crc {
            return Err(Code::Checksum.error("a takeover's record does not match its checksum"));
        }
        let mut cursor = Cursor::new(bytes);
        let mut record = TakeoverRecord::default();
        for _ in 0..cursor.count(2)? {
            let number =
                u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a file number is too large"))?;
            record.data_logs.push((number, cursor.varint()?));
        }
        record.removals = cursor.flag()?;
        record.bytes = cursor.varint()?;
        for _ in 0..cursor.count(8)? {
            let table = TakeoverTable::of(cursor.u8()?)
                .ok_or_else(|| cursor.fail("a takeover has an unknown table"))?;
            record.tables.push((table, TableRef::decode(&mut cursor)?));
        }
        if !record.tables.is_sorted_by(|a, b| a.0 < b.0) || !cursor.is_empty() {
            return Err(Error::corrupt("a takeover's record contradicts itself"));
        }
        Ok(record)
    }
}
