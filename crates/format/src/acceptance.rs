//! Side records that accept a loss (4.6 of the store format), since version 2.
//!
//! They are in commits that [`schema_extension::mark`] marks, like settings. An accepted loss never counts
//! again, even if the file comes back.
//!
//! ```text
//! record  = side body of: writer: id  number: varint (0: its log, n: its data log n)  what  why: text
//!           fields: varint  keys: varint { text }      how many fields are concerned, and the keys of some
//! what    = 0 last: varint known: varint     of the log: commits up to `last` count; `known` were known
//!         | 1                                the data log as a whole
//!         | 2 varint { sequence: varint ordinal: varint }     single entries of the writer, in this order
//!         | 3 varint { file: varint offset: varint }          blocks of the index, of a log or a takeover
//! ```
//!
//! ```
//! use fieldstone_format::Id;
//! use fieldstone_format::acceptance::{self, Acceptance, Lost};
//! let lost = Lost::Beyond { last: 3, known: 5 };
//! let made = Acceptance { writer: Id([7; 16]), number: 0, lost, why: "the disk".into(), fields: 0, keys: vec![] };
//! assert_eq!(acceptance::decode(&acceptance::encode(&made))?, Some(made));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::Result;

use crate::bytes::{Cursor, Put};
use crate::log::SideRecord;
#[cfg(doc)]
use crate::schema_extension;
use crate::{Id, side};

const ACCEPTANCE: u16 = 0x0302;

/// The first version of the format that has acceptances.
pub const ACCEPTANCES_SINCE: u32 = 2;

/// Most keys that a record names.
pub const KEYS_MAX: usize = 1000;

/// The lost part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Of a log: all commits after `last`; commits up to `known` were known.
    Beyond {
        /// The last commit that counts; 0 if none does.
        last: u64,
        /// The last known commit.
        known: u64,
    },
    /// A whole data log: entries with bytes in it do not count.
    Whole,
    /// Entries of the writer that do not count: sequence of the commit and ordinal, in order.
    Entries(Vec<(u64, u64)>),
    /// Blocks of the index in a log, or in the takeover with this id, with all entries in them: file (0, or a data log) and
    /// offset, in order.
    Index(Vec<(u32, u64)>),
}

/// An accepted loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// The writer whose file lost something.
    pub writer: Id,
    /// The file: 0 is its log, n its data log n.
    pub number: u32,
    /// The accepted losses.
    pub lost: Lost,
    /// The reason, in words; empty if none was given.
    pub why: String,
    /// Number of lost fields, as far as they are known.
    pub fields: u64,
    /// Keys of some lost fields, at most [`KEYS_MAX`].
    pub keys: Vec<String>,
}

/// Encodes an acceptance as a side record.
pub fn encode(acceptance: &Acceptance) -> SideRecord {
    let mut body = Vec::new();
    body.put_id(acceptance.writer);
    body.put_varint(u64::from(acceptance.number));
    match &acceptance.lost {
        Lost::Beyond { last, known } => {
            body.push(0);
            body.put_varint(*last);
            body.put_varint(*known);
        }
        Lost::Whole => body.push(1),
        Lost::Entries(entries) => {
            body.push(2);
            body.put_varint(entries.len() as u64);
            for (sequence, ordinal) in entries {
                body.put_varint(*sequence);
                body.put_varint(*ordinal);
            }
        }
        Lost::Index(blocks) => {
            body.push(3);
            body.put_varint(blocks.len() as u64);
            for (file, offset) in blocks {
                body.put_varint(u64::from(*file));
                body.put_varint(*offset);
            }
        }
    }
    body.put_bytes(acceptance.why.as_bytes());
    body.put_varint(acceptance.fields);
    body.put_varint(acceptance.keys.len() as u64);
    acceptance.keys.iter().for_each(|key| body.put_bytes(key.as_bytes()));
    side::encode(ACCEPTANCE, &body)
}

/// Decodes an acceptance; `None` for a record of another kind.
pub fn decode(record: &SideRecord) -> Result<Option<Acceptance>> {
    if record.kind != ACCEPTANCE {
        return Ok(None);
    }
    let body = side::body(record)?;
    let mut cursor = Cursor::new(&body);
    let writer = cursor.id()?;
    let number =
        u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a file's number exceeds 32 bits"))?;
    let lost = match (cursor.u8()?, number) {
        (0, 0) => Lost::Beyond { last: cursor.varint()?, known: cursor.varint()? },
        (1, 1..) => Lost::Whole,
        (2, _) => {
            let mut entries = Vec::new();
            for _ in 0..cursor.count(2)? {
                entries.push((cursor.varint()?, cursor.varint()?));
            }
            match entries.is_sorted_by(|a, b| a < b) {
                true => Lost::Entries(entries),
                false => return Err(cursor.fail("the entries of an acceptance are not in order")),
            }
        }
        (3, 0) => {
            let mut blocks = Vec::new();
            for _ in 0..cursor.count(2)? {
                let file = u32::try_from(cursor.varint()?);
                blocks.push((
                    file.map_err(|_| cursor.fail("a file's number exceeds 32 bits"))?,
                    cursor.varint()?,
                ));
            }
            match !blocks.is_empty() && blocks.is_sorted_by(|a, b| a < b) {
                true => Lost::Index(blocks),
                false => return Err(cursor.fail("the blocks of an acceptance are not in order")),
            }
        }
        _ => return Err(cursor.fail("an acceptance has an unknown form")),
    };
    let (why, fields) = (cursor.text()?.to_owned(), cursor.varint()?);
    let mut keys = Vec::new();
    for _ in 0..cursor.count(1)? {
        keys.push(cursor.text()?.to_owned());
    }
    let acceptance = Acceptance { writer, number, lost, why, fields, keys };
    if cursor.is_empty() { Ok(Some(acceptance)) } else { Err(cursor.fail("an acceptance is too long")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acceptance_is_read_back_and_a_damaged_one_is_refused() {
        let of = |number, lost| Acceptance {
            writer: Id([3; 16]),
            number,
            lost,
            why: "tape 7".into(),
            fields: 2,
            keys: vec!["{run=a}".into(), "{run=b}".into()],
        };
        let all = [
            of(0, Lost::Beyond { last: 0, known: 9 }),
            of(2, Lost::Whole),
            of(0, Lost::Entries(vec![(1, 0), (1, 4), (3, 0)])),
            of(1, Lost::Entries(vec![])),
            of(0, Lost::Index(vec![(0, 70), (2, 44), (2, 90)])),
        ];
        for made in all {
            let record = encode(&made);
            assert_eq!(decode(&record).ok().flatten().as_ref(), Some(&made));
            for end in 0..record.bytes.len() {
                let cut = SideRecord { kind: record.kind, bytes: record.bytes[..end].into() };
                assert!(decode(&cut).is_err(), "cut at {end}");
            }
            assert_eq!(decode(&SideRecord { kind: 0x0301, ..record }).ok(), Some(None));
        }
        let unsorted = of(0, Lost::Index(vec![(2, 44), (0, 70)]));
        for wrong in [of(1, Lost::Beyond { last: 1, known: 2 }), of(0, Lost::Whole), unsorted] {
            assert!(decode(&encode(&wrong)).is_err());
        }
        assert!(decode(&encode(&of(0, Lost::Entries(vec![(2, 0), (1, 0)])))).is_err());
    }
}
