//! Fields: which variable of a run is at which step, and the type and shape of its arrays.
//!
//! An archived field makes rows. If an entry may not be the newest of its key, the index asks the store
//! what the run, variable and step hold ([`Fields::rechecks`], [`Fields::set_held`]): after a removal, and if
//! arrays differ from one another or share a place with opaque bytes. So the tables depend on the store's
//! content and not on the order in which entries came.
//!
//! Type and shape of a variable are those of its array at the last step that holds one; of several arrays
//! there, the last by key counts. `held.says` has one bit for arrays and one for opaque bytes that were seen
//! at a place; the bit for arrays is cleared once the store has none.

use std::collections::HashMap;

use fieldstone_core::dtype::DType;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, VariableName};

use super::decisions::Decisions;
use super::declaration::shape_text;
use super::ground::Ground;
use super::owners::Owners;
use super::rows::ints;
use super::{Cell, Flow, NO_STEP, NO_VARIABLE, RunId, VariableId};

/// Variables whose last array is kept in memory before it is written.
const LAST: usize = 100_000;
/// Bits of `held.says`: arrays, opaque bytes.
const ARRAY: i64 = 1;
const OPAQUE: i64 = 2;

/// A field, or its removal, by run, variable and step of its key.
#[derive(Debug, Clone)]
pub struct FieldRow {
    /// The run.
    pub run: RunName,
    /// The variable; `None` if the schema has none.
    pub variable: Option<VariableName>,
    /// The step; `None` if the schema has none.
    pub step: Option<i64>,
    /// The user who owns the log.
    pub user: u32,
    /// Number of its commit in the log.
    pub sequence: u64,
    /// The writer's clock at its commit, nanoseconds since 1970.
    pub time: i64,
    /// The transaction under which it is prepared.
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
    /// Whether the answer must name the array; else it is enough to know whether there is a field.
    pub array: bool,
}

/// The fields that the store holds at a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Whether there is a field.
    pub held: bool,
    /// Type and shape of the last array by key.
    pub array: Option<(DType, Vec<u64>)>,
}

/// Type and shape, as the tables have them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Says {
    dtype: Option<String>,
    shape: Option<String>,
}

/// The last array of each variable that was looked up.
type Arrays = HashMap<(RunId, VariableId), Last>;

/// The last array of a variable.
#[derive(Debug, Clone)]
struct Last {
    /// Its step; `None` if the variable has no array.
    step: Option<i64>,
    says: Says,
    /// Whether the table differs from this.
    changed: bool,
}

/// The fields that are being applied: the last array of each variable.
#[derive(Debug, Default)]
pub(super) struct Fields {
    arrays: Arrays,
}

impl Fields {
    /// Applies entries of one log, in any order and any number of times. Entries of a transaction count as
    /// far as its decision allows at this moment.
    pub fn apply(
        &mut self,
        ground: &mut Ground,
        owners: &mut Owners,
        decisions: &Decisions,
        writer: Id,
        rows: &[FieldRow],
    ) -> Result<()> {
        let (mut last, mut of) = (None, None);
        for row in rows {
            decisions.note_undecided(ground, row.transaction)?;
            let run = ground.run(&row.run)?;
            if of != Some(run) {
                owners.act(ground, run, row.user.into())?;
                of = Some(run);
            }
            let variable = match &row.variable {
                Some(variable) => ground.variable(variable)?,
                None => NO_VARIABLE,
            };
            let key = (run, variable, row.step.unwrap_or(NO_STEP));
            if !row.removal {
                ground.dirty.written(run, row.time);
            }
            // Undecided entries are not shown, unless the transaction itself is overlaid.
            let seen = row.transaction.is_none_or(|id| decisions.shows_fields(id, writer, row.sequence));
            if row.removal || !seen {
                note_recheck(ground, key, row.removal && seen)?;
                // After this, the place must be recorded again even for an equal entry.
                last = None;
                continue;
            }
            let says = if row.dtype.is_some() || row.shape.is_some() { ARRAY } else { OPAQUE };
            // Entries of a written array come in runs with equal keys: record each place once.
            if last != Some((key, says)) {
                note_held(ground, key, says)?;
                last = Some((key, says));
            }
            if says == ARRAY {
                self.note_array(ground, key, row)?;
            }
        }
        Ok(())
    }

    /// Takes an array as the last one of its variable, if it is. If another array of the same step differs,
    /// asks the store.
    fn note_array(
        &mut self,
        ground: &mut Ground,
        key: (RunId, VariableId, i64),
        row: &FieldRow,
    ) -> Result<()> {
        let (run, variable, step) = key;
        if variable == NO_VARIABLE {
            return Ok(());
        }
        let last = self.last_array(ground, run, variable)?;
        // Only the last step with an array determines type and shape.
        if last.step.is_some_and(|last| last > step) {
            return Ok(());
        }
        let says = says(row.dtype, row.shape.as_deref());
        if last.step != Some(step) {
            *last = Last { step: Some(step), says, changed: true };
            return Ok(());
        }
        if last.says == says {
            return Ok(());
        }
        // Two arrays of one step differ: the store knows which is the newest of its key.
        ask(ground, key)
    }

    /// A variable's last array, from memory or from the table.
    fn last_array(&mut self, ground: &mut Ground, run: RunId, variable: VariableId) -> Result<&mut Last> {
        let key = (run, variable);
        if !self.arrays.contains_key(&key) {
            if self.arrays.len() >= LAST {
                self.flush(ground)?;
            }
            let mut last = Last { step: None, says: Says::default(), changed: false };
            let sql = "SELECT field_step, field_dtype, field_shape FROM variable \
                       WHERE run = $1 AND variable = $2";
            ground.db.query(sql, &[run, variable].map(Cell::Int), &mut |row| {
                last.step = row[0].int_or_null()?;
                last.says.dtype = row[1].text_or_null()?.map(str::to_owned);
                last.says.shape = row[2].text_or_null()?.map(str::to_owned);
                Ok(Flow::Stop)
            })?;
            self.arrays.insert(key, last);
        }
        self.arrays.get_mut(&key).ok_or_else(|| Error::internal("an entry that was just inserted is missing"))
    }

    /// Writes the last arrays to the tables.
    pub fn flush(&mut self, ground: &mut Ground) -> Result<()> {
        for ((run, variable), last) in std::mem::take(&mut self.arrays) {
            if !last.changed {
                continue;
            }
            let cells = [
                Cell::Int(run),
                Cell::Int(variable),
                last.step.map_or(Cell::Null, Cell::Int),
                Cell::maybe_text(last.says.dtype.as_deref()),
                Cell::maybe_text(last.says.shape.as_deref()),
            ];
            let sql = "INSERT INTO variable (run, variable, declared, field_step, field_dtype, field_shape) \
                       VALUES ($1, $2, 0, $3, $4, $5) ON CONFLICT (run, variable) DO UPDATE SET \
                       field_step = excluded.field_step, field_dtype = excluded.field_dtype, \
                       field_shape = excluded.field_shape";
            ground.db.execute(sql, &cells)?;
            match last.step {
                Some(_) => ground.dirty.used_variable(run, variable),
                // Perhaps nothing uses the variable any more: then its row goes.
                None => ground.dirty.variable(run, variable),
            }
        }
        Ok(())
    }

    /// Places that the store must be asked about, at most `limit`. Report each answer with
    /// [`Index::set_held`](super::Index::set_held), until this list is empty: an answer may add further
    /// places.
    pub fn rechecks(&mut self, ground: &mut Ground, limit: usize) -> Result<Vec<HeldPlace>> {
        let sql =
            "SELECT run, variable, step FROM recheck WHERE open = 1 ORDER BY run, variable, step LIMIT $1";
        self.places(ground, sql, &[Cell::Int(i64::try_from(limit).unwrap_or(i64::MAX))])
    }

    fn places(&mut self, ground: &mut Ground, sql: &str, cells: &[Cell<'_>]) -> Result<Vec<HeldPlace>> {
        let keys = ground.db.all(sql, cells, ints)?;
        let mut places = Vec::with_capacity(keys.len());
        for key in keys.into_iter().map(<(RunId, VariableId, i64)>::from) {
            let run = ground.run_name(key.0)?;
            let sql = "SELECT name, version FROM variable_name WHERE variable = $1";
            let variable = ground.db.first(sql, &[Cell::Int(key.1)], |row| {
                Ok(VariableName { name: row[0].text()?.to_owned(), version: row[1].int()? })
            })?;
            let array = self.asks_array(ground, key)?;
            let step = Some(key.2).filter(|step| *step != NO_STEP);
            places.push(HeldPlace { key, run, variable, step, array });
        }
        Ok(places)
    }

    /// Whether the last array of a variable may be the one at this place.
    fn asks_array(
        &mut self,
        ground: &mut Ground,
        (run, variable, step): (RunId, VariableId, i64),
    ) -> Result<bool> {
        let sql = "SELECT says FROM held WHERE run = $1 AND variable = $2 AND step = $3";
        let says = ground.db.int(sql, &[run, variable, step].map(Cell::Int))?;
        // Opaque bytes alone cannot give a variable its type and shape.
        if variable == NO_VARIABLE || says == Some(OPAQUE) {
            return Ok(false);
        }
        Ok(self.last_array(ground, run, variable)?.step.is_none_or(|last| last <= step))
    }

    /// Reports the fields at a place.
    pub fn set_held(&mut self, ground: &mut Ground, place: &HeldPlace, standing: &Standing) -> Result<()> {
        let (run, variable, step) = place.key;
        let cells = [run, variable, step].map(Cell::Int);
        let here = "WHERE run = $1 AND variable = $2 AND step = $3";
        ground.db.execute(&format!("UPDATE recheck SET open = 0 {here}"), &cells)?;
        if standing.held {
            // The field may have come back; content that nobody asked about counts as both.
            insert_held(ground, place.key, ARRAY | OPAQUE)?;
        } else if ground.db.execute(&format!("DELETE FROM held {here}"), &cells)? > 0 {
            ground.dirty.step(run, step);
            ground.dirty.variable(run, variable);
        }
        if !place.array {
            return Ok(());
        }
        if let Some((dtype, shape)) = &standing.array {
            let says = says(Some(*dtype), Some(shape));
            *self.last_array(ground, run, variable)? = Last { step: Some(step), says, changed: true };
            return Ok(());
        }
        // The place has fields, but no array any more.
        ground.db.execute(&format!("UPDATE held SET says = {OPAQUE} {here}"), &cells)?;
        if self.last_array(ground, run, variable)?.step != Some(step) {
            return Ok(());
        }
        // The array before it may have been removed or hidden, too.
        let sql = format!(
            "SELECT MAX(step) FROM held WHERE run = $1 AND variable = $2 AND step < $3 AND says <> {OPAQUE}"
        );
        let before = ground.db.int(&sql, &cells)?;
        *self.last_array(ground, run, variable)? =
            Last { step: before, says: Says::default(), changed: true };
        before.map_or(Ok(()), |before| ask(ground, (run, variable, before)))
    }
}

/// The places that are recorded as holding fields.
#[derive(Debug)]
pub struct HeldFields<'a> {
    pub(super) fields: &'a mut Fields,
    pub(super) ground: &'a mut Ground,
}

impl HeldFields<'_> {
    /// All of them, after `after`, at most `limit`.
    pub fn places(&mut self, after: Option<&HeldPlace>, limit: usize) -> Result<Vec<HeldPlace>> {
        let (run, variable, step) = after.map_or((0, 0, i64::MIN), |place| place.key);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT run, variable, step FROM held WHERE (run, variable, step) > ($1, $2, $3) \
                   ORDER BY run, variable, step LIMIT $4";
        self.fields.places(self.ground, sql, &[run, variable, step, limit].map(Cell::Int))
    }

    /// The first run behind one that has any.
    pub fn next_run(&mut self, after: Option<RunId>) -> Result<Option<(RunId, RunName)>> {
        let sql = "SELECT MIN(run) FROM held WHERE run > $1";
        match self.ground.db.int(sql, &[Cell::Int(after.unwrap_or(i64::MIN))])? {
            Some(run) => Ok(Some((run, self.ground.run_name(run)?))),
            None => Ok(None),
        }
    }

    /// Those of a run, after `after`, at most `limit`.
    pub fn of_run(&mut self, run: RunId, after: Option<&HeldPlace>, limit: usize) -> Result<Vec<HeldPlace>> {
        let (_, variable, step) = after.map_or((run, i64::MIN, i64::MIN), |place| place.key);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT run, variable, step FROM held WHERE run = $1 AND (variable, step) > ($2, $3) \
                   ORDER BY variable, step LIMIT $4";
        self.fields.places(self.ground, sql, &[run, variable, step, limit].map(Cell::Int))
    }

    /// Records that a field of a run was written, whether or not it was wiped.
    pub fn note_written(&mut self, run: &RunName, time: i64) -> Result<()> {
        let run = self.ground.run(run)?;
        self.ground.dirty.written(run, time);
        Ok(())
    }

    /// Records that a run holds no field any more.
    pub fn clear_run(&mut self, run: RunId) -> Result<()> {
        let (ground, of_run) = (&mut *self.ground, &[Cell::Int(run)]);
        let distinct = |column: &str| format!("SELECT DISTINCT {column} FROM held WHERE run = $1");
        let steps = ground.db.all(&distinct("step"), of_run, ints::<1>)?;
        let variables = ground.db.all(&distinct("variable"), of_run, ints::<1>)?;
        ground.db.execute("DELETE FROM held WHERE run = $1", of_run)?;
        ground.db.execute("UPDATE recheck SET open = 0 WHERE run = $1", of_run)?;
        steps.into_iter().for_each(|[step]| ground.dirty.step(run, step));
        for [variable] in variables {
            ground.dirty.variable(run, variable);
            if variable != NO_VARIABLE {
                let none = Last { step: None, says: Says::default(), changed: true };
                *self.fields.last_array(ground, run, variable)? = none;
            }
        }
        Ok(())
    }
}

/// Records that a place holds a field: an array or opaque bytes.
fn note_held(ground: &mut Ground, key: (RunId, VariableId, i64), says: i64) -> Result<()> {
    let cells = [key.0, key.1, key.2, says].map(Cell::Int);
    let here = "WHERE run = $1 AND variable = $2 AND step = $3";
    if insert_held(ground, key, says)? {
        // A newer removal may have been read before.
        return ground.db.execute(&format!("UPDATE recheck SET open = 1 {here}"), &cells[..3]).map(|_| ());
    }
    let seen = ground.db.int(&format!("SELECT says FROM held {here}"), &cells[..3])?;
    if seen == Some(says) {
        return Ok(());
    }
    // An array may hide opaque bytes, or opaque bytes may hide it.
    ground.db.execute(&format!("UPDATE held SET says = {} {here}", ARRAY | OPAQUE), &cells[..3])?;
    ask(ground, key)
}

/// Adds a place that holds a field; `false` if it is known.
fn insert_held(
    ground: &mut Ground,
    (run, variable, step): (RunId, VariableId, i64),
    says: i64,
) -> Result<bool> {
    let sql = "INSERT INTO held (run, variable, step, says) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let new = ground.db.execute(sql, &[run, variable, step, says].map(Cell::Int))? > 0;
    if new {
        ground.dirty.used_step(run, step);
        ground.dirty.used_variable(run, variable);
    }
    Ok(new)
}

/// Records that the store must be asked about a place. `removed` places are remembered: fields that are read
/// later may be older. An entry that is invisible now may have been visible; then the field that it hid is
/// visible again.
fn note_recheck(ground: &mut Ground, key: (RunId, VariableId, i64), removed: bool) -> Result<()> {
    if removed {
        return ask(ground, key);
    }
    let cells = [key.0, key.1, key.2].map(Cell::Int);
    let here = "WHERE run = $1 AND variable = $2 AND step = $3";
    let both = ARRAY | OPAQUE;
    // A removal was seen here before, so the place may have changed; otherwise ask only if it holds fields.
    if ground.db.execute(&format!("UPDATE recheck SET open = 1 {here}"), &cells)? > 0 {
        return ground.db.execute(&format!("UPDATE held SET says = {both} {here}"), &cells).map(|_| ());
    }
    let sql = format!(
        "INSERT INTO recheck (run, variable, step, open) SELECT run, variable, step, 1 FROM held {here}"
    );
    ground.db.execute(&sql, &cells).map(|_| ())
}

/// Marks a place for a question to the store.
fn ask(ground: &mut Ground, (run, variable, step): (RunId, VariableId, i64)) -> Result<()> {
    let sql = "INSERT INTO recheck (run, variable, step, open) VALUES ($1, $2, $3, 1) \
               ON CONFLICT (run, variable, step) DO UPDATE SET open = 1";
    ground.db.execute(sql, &[run, variable, step].map(Cell::Int)).map(|_| ())
}

fn says(dtype: Option<DType>, shape: Option<&[u64]>) -> Says {
    Says { dtype: dtype.map(|dtype| dtype.to_string()), shape: shape.map(shape_text) }
}
