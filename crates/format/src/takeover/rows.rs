//! The rows of a takeover's tables (takeovers.md, 4). Numbers in keys are big-endian, so that keys sort by them.
//!
//! ```text
//! names         writer                        taken: varint  sequence: varint  end: varint  hash: u32  stamp: varint
//!                                             time: i64  began: varint  created: i64  uid: u32  process: u32
//!                                             rank: varint  how: u8  facts: varint  attempt: varint
//!                                             data logs: varint { number: varint length: varint }
//! commits       writer sequence index         stamp: varint  time: zigzag  flags: u8  [transaction]  [origin]
//!                                             [order: stamp: varint writer]  [view: varint]  taken: varint  fields: varint  bytes: varint
//! transactions  transaction                   sealed: varint  decisions: varint { … }  prepared: varint { … }
//! store records stamp writer sequence index   owner  time: i64  kind: u16  data: bytes
//! datasets      encoded first level           stamp: varint  writer  entries: varint  bytes: varint  purged: varint
//!                                             [single: u8]
//! attempts      name                          began: u64  writer
//! flushes       session number                repetition: varint  writer  sequence: varint  time: i64
//! axes          level: u8  keyword  value     place: varint
//! condemned     path                          since: i64  number: varint
//! ```
//! Entries and side records are as other modules describe them; facts and taken logs have no value.

use std::sync::Arc;

use fieldstone_core::key::KeyValue;
use fieldstone_core::{Error, Result};

use crate::bytes::{Cursor, Put, put_time, read_time};
use crate::log::{Decision, SideRecord};
use crate::origin::EntryOrigin;
use crate::owner::Owner;
use crate::{Id, keys};

/// Nothing may follow the last part of a row.
fn end<T>(cursor: &Cursor<'_>, row: T) -> Result<T> {
    if cursor.is_empty() { Ok(row) } else { Err(cursor.fail("a row of a takeover is too long")) }
}

fn number(cursor: &mut Cursor<'_>) -> Result<u32> {
    u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a number exceeds 32 bits"))
}

/// How a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its writer closed it.
    Closed,
    /// An end file ended it.
    EndFile,
    /// An accepted loss ended it.
    Accepted,
}

/// A log that a takeover replaces, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRow {
    /// Number of the takeover that took it over first.
    pub taken: u64,
    /// Sequence of its last commit.
    pub sequence: u64,
    /// Address behind that commit.
    pub end: u64,
    /// Hash of that commit.
    pub hash: u32,
    /// Stamp of that commit.
    pub stamp: u64,
    /// Time of that commit.
    pub time: i64,
    /// Stamp of the log's first commit.
    pub began: u64,
    /// When the log began, by its header.
    pub created: i64,
    /// The user in its header.
    pub uid: u32,
    /// The process in its header.
    pub process: u32,
    /// The rank in its header.
    pub rank: Option<u32>,
    /// How it ended.
    pub how: Ended,
    /// Number of its row in the table of facts.
    pub facts: u64,
    /// Number of its row in the table of attempts.
    pub attempt: Option<u64>,
    /// Its writer's data logs that stay, and their durable lengths.
    pub data_logs: Vec<(u32, u64)>,
}

impl NameRow {
    /// Encodes the value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.put_varint(self.taken);
        out.put_varint(self.sequence);
        out.put_varint(self.end);
        out.put_u32(self.hash);
        out.put_varint(self.stamp);
        out.put_i64(self.time);
        out.put_varint(self.began);
        out.put_i64(self.created);
        out.put_u32(self.uid);
        out.put_u32(self.process);
        out.put_varint(self.rank.map_or(0, |rank| u64::from(rank) + 1));
        out.push(self.how as u8);
        out.put_varint(self.facts);
        out.put_varint(self.attempt.map_or(0, |attempt| attempt + 1));
        out.put_varint(self.data_logs.len() as u64);
        for (number, length) in &self.data_logs {
            out.put_varint(u64::from(*number));
            out.put_varint(*length);
        }
        out
    }

    /// Decodes the value.
    pub fn decode(bytes: &[u8]) -> Result<NameRow> {
        let cursor = &mut Cursor::new(bytes);
        let mut row = NameRow {
            taken: cursor.varint()?,
            sequence: cursor.varint()?,
            end: cursor.varint()?,
            hash: cursor.u32()?,
            stamp: cursor.varint()?,
            time: cursor.i64()?,
            began: cursor.varint()?,
            created: cursor.i64()?,
            uid: cursor.u32()?,
            process: cursor.u32()?,
            rank: match cursor.varint()? {
                0 => None,
                rank => Some(u32::try_from(rank - 1).map_err(|_| cursor.fail("a rank exceeds 32 bits"))?),
            },
            how: match cursor.u8()? {
                0 => Ended::Closed,
                1 => Ended::EndFile,
                2 => Ended::Accepted,
                _ => return Err(cursor.fail("a log has ended in an unknown way")),
            },
            facts: cursor.varint()?,
            attempt: cursor.varint()?.checked_sub(1),
            data_logs: Vec::new(),
        };
        for _ in 0..cursor.count(2)? {
            row.data_logs.push((number(cursor)?, cursor.varint()?));
        }
        end(cursor, row)
    }
}

/// The key of a commit, or of the rows of one with an origin.
pub fn commit_key(writer: Id, sequence: u64, index: u32) -> Vec<u8> {
    [&writer.0[..], &sequence.to_be_bytes(), &index.to_be_bytes()].concat()
}

/// Writer, sequence and index in the key of a commit.
pub fn parse_commit_key(key: &[u8]) -> Result<(Id, u64, u32)> {
    let (writer, sequence, rest) = parse_side_key_part(key)?;
    let mut cursor = Cursor::new(rest);
    let index = u32::from_be_bytes(cursor.array()?);
    end(&cursor, (writer, sequence, index))
}

/// The key of the side records of a commit.
pub fn side_key(writer: Id, sequence: u64) -> Vec<u8> {
    [&writer.0[..], &sequence.to_be_bytes()].concat()
}

/// Writer and sequence in the key of side records.
pub fn parse_side_key(key: &[u8]) -> Result<(Id, u64)> {
    let (writer, sequence, rest) = parse_side_key_part(key)?;
    end(&Cursor::new(rest), (writer, sequence))
}

fn parse_side_key_part(key: &[u8]) -> Result<(Id, u64, &[u8])> {
    let mut cursor = Cursor::new(key);
    let (writer, sequence) = (cursor.id()?, u64::from_be_bytes(cursor.array()?));
    Ok((writer, sequence, &key[cursor.position()..]))
}

const TRANSACTION: u8 = 1;
const ORIGIN: u8 = 2;
const ORDER: u8 = 4;
const VIEW: u8 = 8;

/// A commit of a log that a takeover replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRow {
    /// Its stamp.
    pub stamp: u64,
    /// The writer's clock, nanoseconds since 1970.
    pub time: i64,
    /// The transaction under which it is prepared.
    pub transaction: Option<Id>,
    /// The origin of its entries, if they were moved.
    pub origin: Option<EntryOrigin>,
    /// The place in the order that a forgotten decision gave it.
    pub order: Option<(u64, Id)>,
    /// The view of a stack of stores under which it was made; 0 in a single store.
    pub view: u64,
    /// Number of the takeover that took its log over first.
    pub taken: u64,
    /// Entries that it published.
    pub fields: u64,
    /// Their raw bytes.
    pub bytes: u64,
}

impl CommitRow {
    /// Encodes the value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.put_varint(self.stamp);
        put_time(self.time, self.stamp, &mut out);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        out.push(
            flag(self.transaction.is_some(), TRANSACTION)
                | flag(self.origin.is_some(), ORIGIN)
                | flag(self.order.is_some(), ORDER)
                | flag(self.view > 0, VIEW),
        );
        if let Some(transaction) = self.transaction {
            out.put_id(transaction);
        }
        if let Some(origin) = &self.origin {
            origin.put(&mut out);
        }
        if let Some((stamp, writer)) = self.order {
            out.put_varint(stamp);
            out.put_id(writer);
        }
        if self.view > 0 {
            out.put_varint(self.view);
        }
        out.put_varint(self.taken);
        out.put_varint(self.fields);
        out.put_varint(self.bytes);
        out
    }

    /// Decodes the value.
    pub fn decode(bytes: &[u8]) -> Result<CommitRow> {
        let cursor = &mut Cursor::new(bytes);
        let stamp = cursor.varint()?;
        let time = read_time(cursor, stamp)?;
        let flags = cursor.u8()?;
        if flags > TRANSACTION | ORIGIN | ORDER | VIEW || flags & (TRANSACTION | ORDER) == TRANSACTION | ORDER
        {
            return Err(cursor.fail("a commit has flags that do not go together"));
        }
        let row = CommitRow {
            stamp,
            time,
            transaction: if flags & TRANSACTION != 0 { Some(cursor.id()?) } else { None },
            origin: if flags & ORIGIN != 0 { Some(EntryOrigin::decode(cursor)?) } else { None },
            order: if flags & ORDER != 0 { Some((cursor.varint()?, cursor.id()?)) } else { None },
            view: if flags & VIEW != 0 { cursor.varint()? } else { 0 },
            taken: cursor.varint()?,
            fields: cursor.varint()?,
            bytes: cursor.varint()?,
        };
        end(cursor, row)
    }
}

/// A decision in a log that a takeover replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRow {
    /// Stamp of its commit.
    pub stamp: u64,
    /// The log with the commit.
    pub writer: Id,
    /// Sequence of the commit.
    pub sequence: u64,
    /// The decision.
    pub decision: Decision,
}

/// Commits of one log that are prepared under a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreparedRow {
    /// The log.
    pub writer: Id,
    /// The last of these commits.
    pub sequence: u64,
    /// Entries in all of them.
    pub fields: u64,
    /// Time of the first.
    pub since: i64,
}

/// A transaction that is not forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionRow {
    /// Number of the takeover that sealed it; 0 for none.
    pub sealed: u64,
    /// Its decisions, in the order of (stamp, writer).
    pub decisions: Vec<DecisionRow>,
    /// The commits prepared under it, by log.
    pub prepared: Vec<PreparedRow>,
}

impl TransactionRow {
    /// Encodes the value. The transaction itself is the key.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_varint(self.sealed);
        out.put_varint(self.decisions.len() as u64);
        for DecisionRow { stamp, writer, sequence, decision } in &self.decisions {
            out.put_varint(*stamp);
            out.put_id(*writer);
            out.put_varint(*sequence);
            out.push(u8::from(decision.committed));
            out.put_u32(decision.kinds);
            out.put_varint(decision.covers.len() as u64);
            for (writer, sequence) in &decision.covers {
                out.put_id(*writer);
                out.put_varint(*sequence);
            }
        }
        out.put_varint(self.prepared.len() as u64);
        for prepared in &self.prepared {
            out.put_id(prepared.writer);
            out.put_varint(prepared.sequence);
            out.put_varint(prepared.fields);
            out.put_i64(prepared.since);
        }
        out
    }

    /// Decodes the value of a transaction.
    pub fn decode(transaction: Id, bytes: &[u8]) -> Result<TransactionRow> {
        let cursor = &mut Cursor::new(bytes);
        let mut row = TransactionRow { sealed: cursor.varint()?, ..TransactionRow::default() };
        for _ in 0..cursor.count(24)? {
            let (stamp, writer, sequence) = (cursor.varint()?, cursor.id()?, cursor.varint()?);
            let committed = cursor.flag()?;
            let mut decision = Decision { transaction, committed, kinds: cursor.u32()?, covers: Vec::new() };
            for _ in 0..cursor.count(17)? {
                decision.covers.push((cursor.id()?, cursor.varint()?));
            }
            row.decisions.push(DecisionRow { stamp, writer, sequence, decision });
        }
        for _ in 0..cursor.count(26)? {
            row.prepared.push(PreparedRow {
                writer: cursor.id()?,
                sequence: cursor.varint()?,
                fields: cursor.varint()?,
                since: cursor.i64()?,
            });
        }
        match row.decisions.is_sorted_by_key(|row| (row.stamp, row.writer)) {
            true => end(cursor, row),
            false => Err(cursor.fail("decisions are not in order")),
        }
    }
}

/// A side record of the store itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRecordRow {
    /// Stamp of its commit.
    pub stamp: u64,
    /// The log.
    pub writer: Id,
    /// Sequence of its commit.
    pub sequence: u64,
    /// Its number in the commit.
    pub index: u32,
    /// The owner of the log.
    pub owner: Owner,
    /// Time of its commit.
    pub time: i64,
    /// The record.
    pub record: SideRecord,
}

impl StoreRecordRow {
    /// Encodes the row: key and value.
    pub fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let key = [
            &self.stamp.to_be_bytes()[..],
            &self.writer.0,
            &self.sequence.to_be_bytes(),
            &self.index.to_be_bytes(),
        ];
        let mut value = self.owner.encode();
        value.put_i64(self.time);
        value.put_u16(self.record.kind);
        value.put_bytes(&self.record.bytes);
        (key.concat(), value)
    }

    /// Decodes a row.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<StoreRecordRow> {
        let (mut cursor, value) = (Cursor::new(key), &mut Cursor::new(value));
        let row = StoreRecordRow {
            stamp: u64::from_be_bytes(cursor.array()?),
            writer: cursor.id()?,
            sequence: u64::from_be_bytes(cursor.array()?),
            index: u32::from_be_bytes(cursor.array()?),
            owner: Owner::decode(value)?,
            time: value.i64()?,
            record: SideRecord { kind: value.u16()?, bytes: value.bytes()?.into() },
        };
        end(&cursor, ())?;
        end(value, row)
    }
}

/// A dataset in a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetRow {
    /// Stamp of the oldest commit with an entry in it.
    pub stamp: u64,
    /// The log of that commit.
    pub writer: Id,
    /// Entries in it.
    pub entries: u64,
    /// Their raw bytes.
    pub bytes: u64,
    /// Number of the last takeover that dropped entries of it; 0 for none.
    pub purged: u64,
    /// Whether each entry is a field of its own: whole, decided, and the only one under its key in the takeover.
    pub single: bool,
}

/// The byte that ends the row of a dataset whose entries are fields of their own.
const SINGLE: u8 = 1;

impl DatasetRow {
    /// One without a commit.
    pub const NONE: DatasetRow =
        DatasetRow { stamp: 0, writer: Id::LEAST, entries: 0, bytes: 0, purged: 0, single: false };

    /// Encodes the value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_varint(self.stamp);
        out.put_id(self.writer);
        out.put_varint(self.entries);
        out.put_varint(self.bytes);
        out.put_varint(self.purged);
        if self.single {
            out.push(SINGLE);
        }
        out
    }

    /// Decodes the value.
    pub fn decode(bytes: &[u8]) -> Result<DatasetRow> {
        let cursor = &mut Cursor::new(bytes);
        let mut row = DatasetRow {
            stamp: cursor.varint()?,
            writer: cursor.id()?,
            entries: cursor.varint()?,
            bytes: cursor.varint()?,
            purged: cursor.varint()?,
            single: false,
        };
        if !cursor.is_empty() {
            row.single = match cursor.u8()? {
                SINGLE => true,
                _ => return Err(cursor.fail("the row of a dataset ends wrongly")),
            };
        }
        end(cursor, row)
    }
}

/// Since when an attempt is there. The name is the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptRow {
    /// The least stamp of a first commit of a log that names it.
    pub began: u64,
    /// That log.
    pub writer: Id,
}

impl AttemptRow {
    /// Encodes the value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64(self.began);
        out.put_id(self.writer);
        out
    }

    /// Decodes the value.
    pub fn decode(bytes: &[u8]) -> Result<AttemptRow> {
        let cursor = &mut Cursor::new(bytes);
        let row = AttemptRow { began: cursor.u64()?, writer: cursor.id()? };
        end(cursor, row)
    }
}

/// A flush of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushRow {
    /// Its highest repetition.
    pub repetition: u64,
    /// The log with its commit.
    pub writer: Id,
    /// Sequence of that commit.
    pub sequence: u64,
    /// Time of that commit.
    pub time: i64,
}

impl FlushRow {
    /// Encodes the value; session and number are the key.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_varint(self.repetition);
        out.put_id(self.writer);
        out.put_varint(self.sequence);
        out.put_i64(self.time);
        out
    }

    /// Decodes the value.
    pub fn decode(bytes: &[u8]) -> Result<FlushRow> {
        let cursor = &mut Cursor::new(bytes);
        let row = FlushRow {
            repetition: cursor.varint()?,
            writer: cursor.id()?,
            sequence: cursor.varint()?,
            time: cursor.i64()?,
        };
        end(cursor, row)
    }
}

/// A file that nothing names any more. The path is the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CondemnedRow {
    /// Since when, nanoseconds since 1970.
    pub since: i64,
    /// The takeover that named it last.
    pub number: u64,
}

impl CondemnedRow {
    /// Encodes the value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_i64(self.since);
        out.put_varint(self.number);
        out
    }

    /// Decodes the value.
    pub fn decode(bytes: &[u8]) -> Result<CondemnedRow> {
        let cursor = &mut Cursor::new(bytes);
        let row = CondemnedRow { since: cursor.i64()?, number: cursor.varint()? };
        end(cursor, row)
    }
}

/// The key of a log in the table of taken logs: the number that first took it, and the log.
pub fn taken_key(number: u64, writer: Id) -> Vec<u8> {
    [&number.to_be_bytes()[..], &writer.0].concat()
}

/// Number and log in a key of the table of taken logs.
pub fn parse_taken_key(key: &[u8]) -> Result<(u64, Id)> {
    let mut cursor = Cursor::new(key);
    let row = (u64::from_be_bytes(cursor.array()?), cursor.id()?);
    end(&cursor, row)
}

/// The key of a flush in its table.
pub fn flush_key(session: Id, number: u64) -> Vec<u8> {
    [&session.0[..], &number.to_be_bytes()].concat()
}

/// The part that the logs of one process share: a key in the table of facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts {
    /// The host in the log's header.
    pub host: String,
    /// The user's name there.
    pub user: String,
    /// The program there.
    pub program: String,
    /// The job there.
    pub job: String,
}

impl Facts {
    /// Encodes the key.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for text in [&self.host, &self.user, &self.program, &self.job] {
            keys::encode_text(text, &mut out);
        }
        out
    }

    /// Decodes the key.
    pub fn decode(mut key: &[u8]) -> Result<Facts> {
        let mut text = || keys::decode_text(&mut key).map(|text| text.to_string());
        let facts = Facts { host: text()?, user: text()?, program: text()?, job: text()? };
        end(&Cursor::new(key), facts)
    }
}

/// The key of a value in the table of axes: its level, its keyword, and the value as keys have it.
pub fn axis_key(level: u8, keyword: &str, value: &KeyValue) -> Vec<u8> {
    let mut out = axis_prefix(level, keyword);
    keys::encode_value(value, &mut out);
    out
}

/// The begin of such a key, which an encoded value follows.
pub fn axis_prefix(level: u8, keyword: &str) -> Vec<u8> {
    let mut out = vec![level];
    keys::encode_text(keyword, &mut out);
    out
}

/// The value of such a row: how many keywords were met before this one, in the order of the entries.
pub fn axis_place(place: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_varint(place);
    out
}

/// Reads such a value.
pub fn parse_axis_place(value: &[u8]) -> Result<u64> {
    let cursor = &mut Cursor::new(value);
    let place = cursor.varint()?;
    end(cursor, place)
}

/// Level, keyword and value in a key of the table of axes.
pub fn parse_axis_key(key: &[u8]) -> Result<(u8, Arc<str>, KeyValue)> {
    let (level, mut rest) = key.split_first().ok_or_else(|| Error::corrupt("an axis has no level"))?;
    let axis = (*level, keys::decode_text(&mut rest)?, keys::decode_value(&mut rest)?);
    end(&Cursor::new(rest), axis)
}
