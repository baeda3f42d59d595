//! Reads of the tables next to queries: the places and users of declarations. All of them need a read in
//! progress.

use std::collections::BTreeSet;

use fieldstone_core::Result;
use fieldstone_format::catalog::{AttributeId, RunName, VariableName};

use super::ground::{flushed, id};
use super::kinds::{GROUP, IMPORT, MOVED, RUN, STATE, STEP, TAG, VARIABLE};
use super::order::UNKNOWN;
use super::owners::first_by_now;
use super::{Cell, Database, Flow, TagId};

/// The object of a declaration: the run itself, a step, a variable, a group of arrays, or an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declared {
    /// The run, its state, or the place of its data.
    Run,
    /// A step.
    Step(i64),
    /// A variable.
    Variable(VariableName),
    /// A group of arrays.
    Group(String),
    /// An import.
    Import(String),
}

/// The place of a declaration in the logs, and its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationRow {
    /// The object that it declares.
    pub of: Declared,
    /// The place where it was written.
    pub id: AttributeId,
    /// The user who wrote it.
    pub user: u32,
}

/// The places of all existing declarations of a run, its steps, variables, groups and imports. Needs a read in progress.
pub fn declarations(db: &mut dyn Database, run: &RunName) -> Result<Vec<DeclarationRow>> {
    let cells = [Cell::Text(&run.name), Cell::Text(&run.project)];
    let sql = "SELECT run FROM run WHERE name = $1 AND project = $2";
    let Some(run) = db.int(sql, &cells)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for kind in [RUN, MOVED, STATE, STEP, VARIABLE, GROUP, IMPORT] {
        let sql = "SELECT l.writer, d.sequence, d.record, d.place, l.uid, d.item, v.name, v.version, a.name \
                   FROM decl d JOIN log l ON l.log = d.log LEFT JOIN variable_name v ON v.variable = d.item \
                   LEFT JOIN array_item a ON a.item = d.item WHERE d.kind = $1 AND d.run = $2";
        db.query(sql, &[kind, run].map(Cell::Int), &mut |row| {
            let id = AttributeId {
                writer: flushed(id(row[0].bytes()?)?),
                sequence: row[1].int()? as u64,
                record: row[2].int()? as u32,
                row: row[3].int()? as u32,
            };
            let of = match kind {
                STEP => Declared::Step(row[5].int()?),
                VARIABLE => Declared::Variable(VariableName {
                    name: row[6].text()?.to_owned(),
                    version: row[7].int()?,
                }),
                GROUP => Declared::Group(row[8].text()?.to_owned()),
                IMPORT => Declared::Import(row[8].text()?.to_owned()),
                _ => Declared::Run,
            };
            rows.push(DeclarationRow { of, id, user: u32::try_from(row[4].int()?).unwrap_or(u32::MAX) });
            Ok(Flow::More)
        })?;
    }
    Ok(rows)
}

/// Whether logs of several users were applied, or are overlaid on the tables. Needs a read in progress.
pub fn is_shared(db: &mut dyn Database) -> Result<bool> {
    let sql = "SELECT COUNT(DISTINCT uid) FROM log WHERE uid <> $1";
    Ok(db.int(sql, &[Cell::Int(UNKNOWN)])?.unwrap_or(0) > 1)
}

/// The user who declared a run first, even if that declaration was deleted, or to whom that one's things were handed over.
/// Needs a read in progress.
pub fn first_user(db: &mut dyn Database, run: &RunName) -> Result<Option<u32>> {
    let cells = [Cell::Text(&run.name), Cell::Text(&run.project)];
    let sql = "SELECT first FROM run WHERE name = $1 AND project = $2";
    Ok(db.first(sql, &cells, |row| first_by_now(&row[0]))?.flatten())
}

/// Users who declared a tag. Needs a read in progress.
pub fn users_of_tag(db: &mut dyn Database, tag: TagId) -> Result<BTreeSet<u32>> {
    let sql = "SELECT DISTINCT l.uid FROM decl d JOIN log l ON l.log = d.log \
               WHERE d.kind = $1 AND d.run = 0 AND d.item = $2";
    let users = db.all(sql, &[TAG, tag].map(Cell::Int), |row| row[0].int())?;
    Ok(users.into_iter().filter_map(|user| u32::try_from(user).ok()).collect())
}
