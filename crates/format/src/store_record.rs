//! Side records of the store that speak of many entries at once (takeovers.md, 6), since version 2: ranges (wipes, hides,
//! locks, overlays), rules of retention, holds, pointers, hand-overs and erasures.
//!
//! They are in commits that [`schema_extension::mark`](crate::schema_extension) marks, like settings, so that a reader finds
//! them without looking at other commits.
//!
//! ```text
//! record    = side body of one of the following, by kind
//! selection = varint { level: u8  keyword: text  varint { value: bytes } }      values as in keys, ascending
//! 0x0303    = action: u8  selection  version: bytes  age: u8 0 | 1 i64  part
//! 0x0304    = name: text  what: u8  text  older: u8 0 | 1 varint  versions: u8 0 | 1 varint  action: u8  target: text
//! 0x0305    = name: text  expires: i64  version: bytes  why: text
//! 0x0306    = store: id  url: text  selection  version: bytes
//! 0x0307    = owner  owner
//! 0x0308    = what: text  varint { view: u8  name: text }
//! ```
//!
//! ```
//! use fieldstone_format::store_record::{self, Hold, StoreRecord};
//!
//! let hold = StoreRecord::Hold(Hold { name: "tape".into(), expires: 9, version: vec![], why: String::new() });
//! assert_eq!(store_record::decode(&store_record::encode(&hold))?, Some(hold));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod range;

use fieldstone_core::Result;

pub use range::{Range, RangeAction, Selection, SelectionItem};

use crate::bytes::{Cursor, Put};
use crate::log::SideRecord;
use crate::owner::Owner;
use crate::{Id, side};

const RANGE: u16 = 0x0303;
/// The kind of a rule of retention.
pub const RULE: u16 = 0x0304;
/// The kind of a hold.
pub const HOLD: u16 = 0x0305;
/// The kind of a pointer.
pub const POINTER: u16 = 0x0306;
/// The kind of a hand-over.
pub const HAND_OVER: u16 = 0x0307;
const ERASURE: u16 = 0x0308;

/// The first version of the format that has these records.
pub const STORE_RECORDS_SINCE: u32 = 2;

/// A record of one of these kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreRecord {
    /// Speaks of the entries that a selection selects.
    Range(Range),
    /// A rule of retention.
    Rule(Rule),
    /// Keeps a snapshot from being purged.
    Hold(Hold),
    /// Another store names bytes of this one.
    Pointer(Pointer),
    /// One owner's datasets and runs become another's.
    HandOver(HandOver),
    /// Names content that was made unreadable.
    Erasure(Erasure),
}

/// A rule of retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name; the newest rule of a name counts.
    pub name: String,
    /// Whether `text` is a query of the catalog, and not a request.
    pub query: bool,
    /// The fields it speaks of.
    pub text: String,
    /// Fields older than this number of nanoseconds.
    pub older: Option<u64>,
    /// Versions of a field that stay.
    pub versions: Option<u64>,
    /// The action on these fields.
    pub action: RuleAction,
}

/// The action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// Nothing more: the rule of this name ends.
    End,
    /// Wipes.
    Wipe,
    /// Moves to the store at a URL.
    Move(String),
}

/// Keeps a snapshot from being purged until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its name; the newest hold of a name counts.
    pub name: String,
    /// Until when, nanoseconds since 1970.
    pub expires: i64,
    /// The snapshot.
    pub version: Vec<u8>,
    /// The reason, in words.
    pub why: String,
}

/// Another store names bytes of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The other store.
    pub store: Id,
    /// The place of that store.
    pub url: String,
    /// The fields that it names.
    pub selection: Selection,
    /// As of this snapshot; empty if it names them no more.
    pub version: Vec<u8>,
}

/// Datasets and runs of one owner become another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    /// The owner before.
    pub from: Owner,
    /// The owner after.
    pub to: Owner,
}

/// Names what was made unreadable, for audits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The request, in words.
    pub what: String,
    /// Names of the erased content, each with the view that showed it: 0 fields, 1 catalog, 2 graph.
    pub erased: Vec<(u8, String)>,
}

fn put_optional(value: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        out.put_varint(value);
    }
}

fn optional(cursor: &mut Cursor<'_>) -> Result<Option<u64>> {
    if cursor.flag()? { Ok(Some(cursor.varint()?)) } else { Ok(None) }
}

impl Rule {
    fn put(&self, out: &mut Vec<u8>) {
        out.put_bytes(self.name.as_bytes());
        out.push(if self.query { 2 } else { 1 });
        out.put_bytes(self.text.as_bytes());
        put_optional(self.older, out);
        put_optional(self.versions, out);
        let (action, target) = match &self.action {
            RuleAction::End => (0, ""),
            RuleAction::Wipe => (1, ""),
            RuleAction::Move(target) => (2, &target[..]),
        };
        out.push(action);
        out.put_bytes(target.as_bytes());
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Rule> {
        let name = cursor.text()?.to_owned();
        let query = match cursor.u8()? {
            1 => false,
            2 => true,
            _ => return Err(cursor.fail("a rule speaks of something unknown")),
        };
        let text = cursor.text()?.to_owned();
        let (older, versions) = (optional(cursor)?, optional(cursor)?);
        let action = match (cursor.u8()?, cursor.text()?) {
            (0, "") => RuleAction::End,
            (1, "") => RuleAction::Wipe,
            (2, target) => RuleAction::Move(target.to_owned()),
            _ => return Err(cursor.fail("a rule has an unknown action")),
        };
        Ok(Rule { name, query, text, older, versions, action })
    }
}

/// Encodes a record as a side record.
pub fn encode(record: &StoreRecord) -> SideRecord {
    let mut body = Vec::new();
    let kind = match record {
        StoreRecord::Range(range) => {
            range.put(&mut body);
            RANGE
        }
        StoreRecord::Rule(rule) => {
            rule.put(&mut body);
            RULE
        }
        StoreRecord::Hold(hold) => {
            body.put_bytes(hold.name.as_bytes());
            body.put_i64(hold.expires);
            body.put_bytes(&hold.version);
            body.put_bytes(hold.why.as_bytes());
            HOLD
        }
        StoreRecord::Pointer(pointer) => {
            body.put_id(pointer.store);
            body.put_bytes(pointer.url.as_bytes());
            pointer.selection.put(&mut body);
            body.put_bytes(&pointer.version);
            POINTER
        }
        StoreRecord::HandOver(HandOver { from, to }) => {
            from.put(&mut body);
            to.put(&mut body);
            HAND_OVER
        }
        StoreRecord::Erasure(Erasure { what, erased }) => {
            body.put_bytes(what.as_bytes());
            body.put_varint(erased.len() as u64);
            for (view, name) in erased {
                body.push(*view);
                body.put_bytes(name.as_bytes());
            }
            ERASURE
        }
    };
    side::encode(kind, &body)
}

/// Decodes a record; `None` for one of another kind.
pub fn decode(side: &SideRecord) -> Result<Option<StoreRecord>> {
    if !(RANGE..=ERASURE).contains(&side.kind) {
        return Ok(None);
    }
    let body = side::body(side)?;
    let cursor = &mut Cursor::new(&body);
    let record = match side.kind {
        RANGE => StoreRecord::Range(Range::decode(cursor)?),
        RULE => StoreRecord::Rule(Rule::decode(cursor)?),
        HOLD => StoreRecord::Hold(Hold {
            name: cursor.text()?.to_owned(),
            expires: cursor.i64()?,
            version: cursor.bytes()?.to_vec(),
            why: cursor.text()?.to_owned(),
        }),
        POINTER => StoreRecord::Pointer(Pointer {
            store: cursor.id()?,
            url: cursor.text()?.to_owned(),
            selection: Selection::decode(cursor)?,
            version: cursor.bytes()?.to_vec(),
        }),
        HAND_OVER => {
            StoreRecord::HandOver(HandOver { from: Owner::decode(cursor)?, to: Owner::decode(cursor)? })
        }
        _ => {
            let mut erasure = Erasure { what: cursor.text()?.to_owned(), erased: Vec::new() };
            for _ in 0..cursor.count(2)? {
                erasure.erased.push((cursor.u8()?, cursor.text()?.to_owned()));
            }
            StoreRecord::Erasure(erasure)
        }
    };
    if cursor.is_empty() { Ok(Some(record)) } else { Err(cursor.fail("a record of the store is too long")) }
}

#[cfg(test)]
mod tests {
    use fieldstone_core::key::KeyValue;

    use super::*;

    fn all() -> Vec<StoreRecord> {
        let item = |level, keyword: &str, values: &[&str]| SelectionItem {
            level,
            keyword: keyword.into(),
            values: values.iter().map(|value| KeyValue::Text((*value).into())).collect(),
        };
        let selection = Selection { items: vec![item(0, "run", &["a", "b"]), item(1, "variable", &["t"])] };
        let range = |action, age| {
            StoreRecord::Range(Range { action, selection: selection.clone(), version: vec![1, 2], age })
        };
        let overlay = RangeAction::Overlay(vec![(0, "run".into(), KeyValue::Text("c".into()))]);
        let rule = |action| {
            let (name, text) = ("hot".into(), "run=a".into());
            StoreRecord::Rule(Rule { name, query: false, text, older: Some(7), versions: None, action })
        };
        let subject = Owner::Subject { issuer: "i".into(), subject: "s".into() };
        vec![
            range(RangeAction::Wipe, None),
            range(RangeAction::Hide, Some(-5)),
            range(RangeAction::Lock(9), None),
            range(overlay.clone(), None),
            range(RangeAction::End(Box::new(overlay)), None),
            range(RangeAction::End(Box::new(RangeAction::Lock(1))), None),
            rule(RuleAction::End),
            rule(RuleAction::Wipe),
            rule(RuleAction::Move("file:///cold".into())),
            StoreRecord::Hold(Hold { name: "h".into(), expires: 3, version: vec![9], why: "tape".into() }),
            StoreRecord::Pointer(Pointer { store: Id([5; 16]), url: "u".into(), selection, version: vec![] }),
            StoreRecord::HandOver(HandOver { from: Owner::User(1), to: subject }),
            StoreRecord::Erasure(Erasure { what: "run=s".into(), erased: vec![(1, "note".into())] }),
        ]
    }

    #[test]
    fn records_are_read_back_and_cut_ones_are_refused() {
        for made in all() {
            let side = encode(&made);
            assert_eq!(decode(&side).ok().flatten().as_ref(), Some(&made));
            for end in 0..side.bytes.len() {
                let cut = SideRecord { kind: side.kind, bytes: side.bytes[..end].into() };
                assert!(decode(&cut).is_err(), "{made:?} cut at {end}");
            }
            assert_eq!(decode(&SideRecord { kind: 0x0302, ..side }).ok(), Some(None));
        }
    }
}
