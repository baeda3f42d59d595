//! Declarations as `decl` stores them: a record of one declaration, as bytes.

use fieldstone_core::Result;
use fieldstone_core::value::ValueType;
use fieldstone_format::catalog::{Record, RunDecl, RunName, VariableDecl};
use fieldstone_format::log::SideRecord;

use super::ground::Ground;
use super::order::{OrderKey, User, UserAt};
use super::rows::damaged;
use super::{Cell, RunId};

/// A stored declaration.
pub(super) struct StoredDeclaration {
    pub place: OrderKey,
    pub user: User,
    pub content: Vec<u8>,
}

/// The empty name in place of the run's: `decl` has the run already, so its name is not stored again.
pub(super) fn nameless() -> RunName {
    RunName { project: String::new(), name: "-".to_owned() }
}

/// A record of one declaration, as bytes.
pub(super) fn content(record: &Record) -> Vec<u8> {
    let side = record.encode();
    [&side.kind.to_le_bytes()[..], &side.bytes].concat()
}

pub(super) fn record(content: &[u8]) -> Result<Record> {
    let (kind, bytes) = content.split_at(content.len().min(2));
    let kind = kind.try_into().map(u16::from_le_bytes).unwrap_or(0);
    Record::decode(&SideRecord { kind, bytes: bytes.into() })
}

/// A run's declaration, from its bytes.
pub(super) fn run_decl(content: &[u8]) -> Result<Option<RunDecl>> {
    Ok(match record(content)? {
        Record::Runs(runs) => runs.into_iter().next(),
        _ => None,
    })
}

/// A variable's declaration, from its bytes.
pub(super) fn variable_decl(content: &[u8]) -> Result<Option<VariableDecl>> {
    Ok(match record(content)? {
        Record::Variables(_, variables) => variables.into_iter().next(),
        _ => None,
    })
}

pub(super) fn shape_text(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    extents.join(",")
}

impl StoredDeclaration {
    /// The user who declared, and when.
    pub fn by(&self) -> UserAt {
        UserAt { user: self.user, stamp: self.place.own }
    }

    pub fn again(&self) -> StoredDeclaration {
        StoredDeclaration { place: self.place, user: self.user, content: self.content.clone() }
    }
}

/// Declarations of one name, oldest first.
pub(super) fn declared(
    ground: &mut Ground,
    kind: i64,
    run: RunId,
    item: i64,
) -> Result<Vec<StoredDeclaration>> {
    let names = &ground.names;
    let sql = "SELECT stamp, decider, own, log, sequence, record, place, content FROM decl \
               WHERE kind = $1 AND run = $2 AND item = $3";
    let mut kept = ground.db.all(sql, &[kind, run, item].map(Cell::Int), |row| {
        let (place, user) = (names.place(&row[..7])?, names.user(row[3].int()?));
        Ok(StoredDeclaration { place, user, content: row[7].bytes()?.to_vec() })
    })?;
    kept.sort_by_key(|kept| kept.place);
    Ok(kept)
}

/// A type of values, from its number.
pub(super) fn value_type(number: i64) -> Result<ValueType> {
    let kind = u8::try_from(number).ok().and_then(ValueType::from_u8);
    kind.ok_or_else(|| damaged(format!("holds a type of values {number}")))
}
