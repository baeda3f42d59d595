//! Ranges: what an action says of all keys that a selection selects, as of a snapshot.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::KeyValue;

use crate::bytes::{Cursor, Put};
use crate::keys::{decode_value, encode_value};

/// Selects keys: those that match every item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The items; without any, every key is selected.
    pub items: Vec<SelectionItem>,
}

/// The values that one keyword may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionItem {
    /// Level of the keyword: 0, 1 or 2.
    pub level: u8,
    /// The keyword.
    pub keyword: Arc<str>,
    /// The values, ascending.
    pub values: Vec<KeyValue>,
}

impl Selection {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.items.len() as u64);
        for item in &self.items {
            out.push(item.level);
            out.put_bytes(item.keyword.as_bytes());
            out.put_varint(item.values.len() as u64);
            item.values.iter().for_each(|value| put_value(value, out));
        }
    }

    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Selection> {
        let mut items = Vec::new();
        for _ in 0..cursor.count(3)? {
            let (level, keyword) = (level(cursor)?, cursor.text()?.into());
            let mut values = Vec::new();
            for _ in 0..cursor.count(2)? {
                values.push(read_value(cursor)?);
            }
            if !values.is_sorted_by(|a, b| a < b) {
                return Err(cursor.fail("the values of a selection are not in order"));
            }
            items.push(SelectionItem { level, keyword, values });
        }
        Ok(Selection { items })
    }
}

fn level(cursor: &mut Cursor<'_>) -> Result<u8> {
    match cursor.u8()? {
        level @ 0..=2 => Ok(level),
        _ => Err(cursor.fail("a key has three levels")),
    }
}

fn put_value(value: &KeyValue, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    encode_value(value, &mut bytes);
    out.put_bytes(&bytes);
}

fn read_value(cursor: &mut Cursor<'_>) -> Result<KeyValue> {
    let mut bytes = cursor.bytes()?;
    let value = decode_value(&mut bytes)?;
    if bytes.is_empty() { Ok(value) } else { Err(cursor.fail("a value is too long")) }
}

/// The statement of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeAction {
    /// The entries of the snapshot are hidden for good.
    Wipe,
    /// They are hidden until the range ends.
    Hide,
    /// The newest earlier range with this action and the same selection ends.
    End(Box<RangeAction>),
    /// Actions on what is selected are refused; as bits: 1 archive, 2 list, 4 retrieve, 8 wipe.
    Lock(u8),
    /// Selected keys appear under other values, too: level, keyword, value.
    Overlay(Vec<(u8, Arc<str>, KeyValue)>),
}

const LOCKS: u8 = 15;

impl RangeAction {
    fn number(&self) -> u8 {
        match self {
            RangeAction::Wipe => 1,
            RangeAction::Hide => 2,
            RangeAction::End(_) => 3,
            RangeAction::Lock(_) => 4,
            RangeAction::Overlay(_) => 5,
        }
    }

    fn put_part(&self, out: &mut Vec<u8>) {
        match self {
            RangeAction::Wipe | RangeAction::Hide => {}
            RangeAction::End(ended) => {
                out.push(ended.number());
                ended.put_part(out);
            }
            RangeAction::Lock(locks) => out.push(*locks),
            RangeAction::Overlay(values) => {
                out.put_varint(values.len() as u64);
                for (level, keyword, value) in values {
                    out.push(*level);
                    out.put_bytes(keyword.as_bytes());
                    put_value(value, out);
                }
            }
        }
    }

    fn decode_part(number: u8, cursor: &mut Cursor<'_>) -> Result<RangeAction> {
        Ok(match number {
            1 => RangeAction::Wipe,
            2 => RangeAction::Hide,
            3 => match cursor.u8()? {
                ended @ (2 | 4 | 5) => RangeAction::End(Box::new(RangeAction::decode_part(ended, cursor)?)),
                _ => return Err(cursor.fail("a range of this kind has no end")),
            },
            4 => match cursor.u8()? {
                locks @ 1..=LOCKS => RangeAction::Lock(locks),
                _ => return Err(cursor.fail("a lock has unknown bits")),
            },
            5 => {
                let mut values = Vec::new();
                for _ in 0..cursor.count(4)? {
                    values.push((level(cursor)?, cursor.text()?.into(), read_value(cursor)?));
                }
                RangeAction::Overlay(values)
            }
            _ => return Err(cursor.fail("a range has an unknown action")),
        })
    }
}

/// An action on the keys that a selection selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The action.
    pub action: RangeAction,
    /// The keys.
    pub selection: Selection,
    /// The snapshot of whose entries it speaks; empty for locks and overlays.
    pub version: Vec<u8>,
    /// It speaks only of entries whose commit has time and stamp before this time, nanoseconds since 1970.
    pub age: Option<i64>,
}

impl Range {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.action.number());
        self.selection.put(out);
        out.put_bytes(&self.version);
        out.push(u8::from(self.age.is_some()));
        if let Some(age) = self.age {
            out.put_i64(age);
        }
        self.action.put_part(out);
    }

    pub(super) fn decode(cursor: &mut Cursor<'_>) -> Result<Range> {
        let number = cursor.u8()?;
        let (selection, version) = (Selection::decode(cursor)?, cursor.bytes()?.to_vec());
        let age = if cursor.flag()? { Some(cursor.i64()?) } else { None };
        Ok(Range { action: RangeAction::decode_part(number, cursor)?, selection, version, age })
    }
}
