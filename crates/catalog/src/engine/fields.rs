//! Fields: which variable of a run is in which step.
//!
//! A field that is archived makes rows; one that is removed leaves a note, because another field may
//! stand at the same run, variable and step: who applies asks the store and says what is so
//! ([`Index::rechecks`], [`Index::set_held`]).

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, VariableName, kinds};

use super::declare::shape_text;
use super::index::{Doing, Index};
use super::{Cell, Flow, NO_STEP, NO_VARIABLE, RunId, VariableId};

/// Variables whose newest field is kept in memory before it is written.
const NEWEST: usize = 100_000;

/// A field, or its removal, by what its key says of run, variable and step.
#[derive(Debug, Clone)]
pub struct FieldRow {
    /// The run.
    pub run: RunName,
    /// The variable; `None` where the schema has none.
    pub variable: Option<VariableName>,
    /// The step; `None` where the schema has none.
    pub step: Option<i64>,
    /// The user who owns the log.
    pub user: u32,
    /// Number of its commit in the log.
    pub sequence: u64,
    /// Stamp of its commit.
    pub stamp: u64,
    /// The transaction it is prepared under.
    pub transaction: Option<Id>,
    /// Whether the field is removed.
    pub removal: bool,
    /// Element type.
    pub dtype: Option<DType>,
    /// Shape of the whole array.
    pub shape: Option<Vec<u64>>,
}

/// A run, variable and step in the engine's numbers, with their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPlace {
    key: (RunId, VariableId, i64),
    /// The run.
    pub run: RunName,
    /// The variable.
    pub variable: Option<VariableName>,
    /// The step.
    pub step: Option<i64>,
}

/// What the newest fields of variables say.
pub(super) type Newest = HashMap<(RunId, VariableId), ([u8; 32], Option<String>, Option<String>)>;

impl Index {
    /// Applies entries of one log, in any order and as often as you like. Entries of a transaction count
    /// as far as its decision says so now.
    pub fn apply_entries(&mut self, writer: Id, rows: &[FieldRow]) -> Result<()> {
        let (mut last, mut of) = (None, None);
        for row in rows {
            let run = self.names.run(&mut *self.db, &row.run)?;
            if of != Some(run) {
                self.act(run, row.user.into())?;
                of = Some(run);
            }
            let variable = match &row.variable {
                Some(variable) => self.names.variable(&mut *self.db, variable)?,
                None => NO_VARIABLE,
            };
            let key = (run, variable, row.step.unwrap_or(NO_STEP));
            let cells = [key.0, key.1, key.2].map(Cell::Int);
            let seen = self.sees(writer, row);
            if row.removal || !seen {
                self.note_recheck(&cells, row.removal && seen)?;
                last = None;
                continue;
            }
            if row.dtype.is_some() || row.shape.is_some() {
                self.newest_field(writer, row, run, variable)?;
            }
            if last != Some(key) {
                let sql = "INSERT INTO held (run, variable, step) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
                if self.db.execute(sql, &cells)? > 0 {
                    self.dirty.used_step(key.0, key.2);
                    self.dirty.used_variable(key.0, key.1);
                    // A removal that is newer may have been read before.
                    let sql = "UPDATE recheck SET open = 1 WHERE run = $1 AND variable = $2 AND step = $3";
                    self.db.execute(sql, &cells)?;
                }
                last = Some(key);
            }
        }
        Ok(())
    }

    fn sees(&self, writer: Id, row: &FieldRow) -> bool {
        let Some(id) = row.transaction else { return true };
        if self.doing == Doing::Overlay(Some(id)) {
            return true;
        }
        let decision = self.decisions.get(&id);
        decision.is_some_and(|d| (d.visible)(kinds::FIELDS, writer, row.sequence).is_some())
    }

    /// Notes that a place must be asked for, where it is said to hold a field. What was `removed` from is
    /// kept for fields that are read later and may be older.
    fn note_recheck(&mut self, place: &[Cell<'_>; 3], removed: bool) -> Result<()> {
        let sql = match removed {
            true => {
                "INSERT INTO recheck (run, variable, step, open) VALUES ($1, $2, $3, 1) \
                 ON CONFLICT (run, variable, step) DO UPDATE SET open = 1"
            }
            false => {
                "INSERT INTO recheck (run, variable, step, open) SELECT run, variable, step, 1 FROM held \
                 WHERE run = $1 AND variable = $2 AND step = $3 \
                 ON CONFLICT (run, variable, step) DO UPDATE SET open = 1"
            }
        };
        self.db.execute(sql, place).map(|_| ())
    }

    fn newest_field(&mut self, writer: Id, row: &FieldRow, run: RunId, variable: VariableId) -> Result<()> {
        let mut order = [0; 32];
        order[..8].copy_from_slice(&row.stamp.to_be_bytes());
        order[8..24].copy_from_slice(&writer.0);
        order[24..].copy_from_slice(&row.sequence.to_be_bytes());
        let newest = self.dirty.fields.get(&(run, variable));
        if newest.is_some_and(|(newest, ..)| *newest >= order) {
            return Ok(());
        }
        let dtype = row.dtype.map(|dtype| dtype.to_string());
        let shape = row.shape.as_deref().map(shape_text);
        self.dirty.fields.insert((run, variable), (order, dtype, shape));
        if self.dirty.fields.len() > NEWEST {
            self.flush_fields()?;
        }
        Ok(())
    }

    /// Writes what the newest fields say.
    pub(super) fn flush_fields(&mut self) -> Result<()> {
        for ((run, variable), (order, dtype, shape)) in std::mem::take(&mut self.dirty.fields) {
            let cells = [
                Cell::Int(run),
                Cell::Int(variable),
                Cell::maybe_text(dtype.as_deref()),
                Cell::maybe_text(shape.as_deref()),
                Cell::Bytes(&order),
            ];
            if variable == NO_VARIABLE {
                continue;
            }
            let sql = "INSERT INTO variable (run, variable, declared, field_dtype, field_shape, field_order) \
                       VALUES ($1, $2, 0, $3, $4, $5) ON CONFLICT (run, variable) DO UPDATE SET \
                       field_dtype = excluded.field_dtype, field_shape = excluded.field_shape, \
                       field_order = excluded.field_order \
                       WHERE variable.field_order IS NULL OR variable.field_order < excluded.field_order";
            self.db.execute(sql, &cells)?;
        }
        Ok(())
    }

    /// Places where a field was removed, at most `limit`; ask the store whether another is there, and say
    /// so with [`Index::set_held`].
    pub fn rechecks(&mut self, limit: usize) -> Result<Vec<HeldPlace>> {
        let sql =
            "SELECT run, variable, step FROM recheck WHERE open = 1 ORDER BY run, variable, step LIMIT $1";
        self.places(sql, &[Cell::Int(i64::try_from(limit).unwrap_or(i64::MAX))])
    }

    /// All places that are said to hold fields, behind `after`, at most `limit`: for a store of which a
    /// part was wiped.
    pub fn held_places(&mut self, after: Option<&HeldPlace>, limit: usize) -> Result<Vec<HeldPlace>> {
        let (run, variable, step) = after.map_or((0, 0, i64::MIN), |place| place.key);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT run, variable, step FROM held WHERE (run, variable, step) > ($1, $2, $3) \
                   ORDER BY run, variable, step LIMIT $4";
        self.places(sql, &[run, variable, step, limit].map(Cell::Int))
    }

    fn places(&mut self, sql: &str, cells: &[Cell<'_>]) -> Result<Vec<HeldPlace>> {
        let mut keys = Vec::new();
        self.db.query(sql, cells, &mut |row| {
            keys.push((row[0].int()?, row[1].int()?, row[2].int()?));
            Ok(Flow::More)
        })?;
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let mut run = RunName { project: String::new(), name: String::new() };
            let sql = "SELECT project, name FROM run WHERE run = $1";
            self.db.query(sql, &[Cell::Int(key.0)], &mut |row| {
                run = RunName { project: row[0].text()?.to_owned(), name: row[1].text()?.to_owned() };
                Ok(Flow::Stop)
            })?;
            let mut variable = None;
            let sql = "SELECT name, version FROM variable_name WHERE variable = $1";
            self.db.query(sql, &[Cell::Int(key.1)], &mut |row| {
                variable = Some(VariableName { name: row[0].text()?.to_owned(), version: row[1].int()? });
                Ok(Flow::Stop)
            })?;
            places.push(HeldPlace { key, run, variable, step: Some(key.2).filter(|step| *step != NO_STEP) });
        }
        Ok(places)
    }

    /// Says whether a place holds a field.
    pub fn set_held(&mut self, place: &HeldPlace, held: bool) -> Result<()> {
        let (run, variable, step) = place.key;
        let cells = [run, variable, step].map(Cell::Int);
        let here = "WHERE run = $1 AND variable = $2 AND step = $3";
        self.db.execute(&format!("UPDATE recheck SET open = 0 {here}"), &cells)?;
        if !held && self.db.execute(&format!("DELETE FROM held {here}"), &cells)? > 0 {
            self.dirty.step(run, step);
            self.dirty.variable(run, variable);
        }
        Ok(())
    }
}
