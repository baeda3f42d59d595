//! Rows that depend on declarations, fields and attributes together, derived again whenever one of these
//! changed.
//!
//! The oldest declaration of a name counts; others with different content are conflicts. So the tables depend
//! on the set of declarations and not on their order of arrival. A field or an attribute is enough for a row
//! of `step` or `variable`; a run or a tag is shown for the same reasons.

use std::collections::{BTreeSet, HashMap};

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{Annotate, Record, RunDecl, RunState};

use super::arrays::recompute_of_arrays;
use super::conflicts::note_conflicts;
use super::declaration::{StoredDeclaration, content, declared, record, run_decl, shape_text, variable_decl};
use super::ground::Ground;
use super::kinds::{MOVED, RUN, STATE, STEP, TAG, VARIABLE};
use super::order::{OrderKey, User};
use super::owners::Owners;
use super::rows::ints;
use super::{Cell, NO_VARIABLE, RunId, TagId, VariableId};

/// Derives the rows of everything that is marked dirty.
pub(super) fn recompute_declared(ground: &mut Ground, owners: &mut Owners) -> Result<()> {
    let dirty = std::mem::take(&mut ground.dirty);
    for (run, time) in dirty.written {
        let sql = "UPDATE run SET written = $2 WHERE run = $1 AND (written IS NULL OR written > $2)";
        ground.db.execute(sql, &[run, time].map(Cell::Int))?;
    }
    for run in dirty.runs {
        recompute_run(ground, owners, run)?;
    }
    for ((run, step), used) in dirty.steps {
        recompute_step(ground, owners, run, step, used)?;
    }
    for ((run, variable), used) in dirty.variables {
        recompute_variable(ground, owners, run, variable, used)?;
    }
    for key in dirty.of_arrays {
        recompute_of_arrays(ground, owners, key)?;
    }
    let mut names = BTreeSet::new();
    for tag in dirty.tags {
        let sql = "SELECT name FROM tag WHERE tag = $1";
        names.extend(ground.db.first(sql, &[Cell::Int(tag)], |row| Ok(row[0].text()?.to_owned()))?);
    }
    names.iter().try_for_each(|name| recompute_tags(ground, name))
}

/// The place of a run's data, if somebody has moved them.
fn moved_to(ground: &mut Ground, owners: &mut Owners, run: RunId) -> Result<Option<Value>> {
    let newest = newest(ground, owners, (MOVED, run), |run| format!("the place of the data of {run}"))?;
    Ok(match newest.map(|newest| record(&newest.content)).transpose()? {
        Some(Record::Moved(moved)) => moved.into_iter().next().map(|(_, outside)| outside),
        _ => None,
    })
}

/// The newest of a run's declarations of a kind in which a newer one replaces the older; `what` names the content
/// in conflicts with users who do not own the run.
fn newest(
    ground: &mut Ground,
    owners: &mut Owners,
    (kind, run): (i64, RunId),
    what: impl FnOnce(String) -> String,
) -> Result<Option<StoredDeclaration>> {
    let (mut kept, others) = owners.declared_in(ground, kind, run, 0)?;
    let what = match others.len() {
        0 => String::new(),
        _ => what(ground.run_text(run)?),
    };
    note_conflicts(ground, (kind, run, 0), &what, &[], &others, |_, _| Ok(false))?;
    Ok(kept.pop())
}

/// The state of a run, as its owner set it last.
fn state_of(ground: &mut Ground, owners: &mut Owners, run: RunId) -> Result<Option<RunState>> {
    let Some(newest) = newest(ground, owners, (STATE, run), |run| format!("the state of {run}"))? else {
        return Ok(None);
    };
    Ok(match record(&newest.content)? {
        Record::States(states) => {
            let said = states.into_iter().next();
            said.map(|(_, state)| RunState { writer: super::ground::flushed(newest.place.writer), ..state })
        }
        _ => None,
    })
}

fn recompute_run(ground: &mut Ground, owners: &mut Owners, run: RunId) -> Result<()> {
    let (kept, others) = owners.declared_in(ground, RUN, run, 0)?;
    let what = if kept.len() > 1 || !others.is_empty() { ground.run_text(run)? } else { String::new() };
    // Processes that make sure that a run exists declare it with their own clocks.
    let timeless = |kept: &StoredDeclaration| {
        let decl = run_decl(&kept.content)?.map(|decl| RunDecl { created: 0, ..decl });
        Ok::<_, fieldstone_core::Error>(decl.map(|decl| content(&Record::Runs(vec![decl]))))
    };
    note_conflicts(ground, (RUN, run, 0), &what, &kept, &others, |a, b| Ok(timeless(a)? != timeless(b)?))?;
    let all: Vec<(OrderKey, User)> = kept.iter().chain(&others).map(|kept| (kept.place, kept.user)).collect();
    let first = owners.first_among(ground, run, &all)?.map(|first| owners.put_first(&first));
    let first = first.as_deref().map_or(Cell::Null, Cell::Bytes);
    let (moved, state) = (moved_to(ground, owners, run)?, state_of(ground, owners, run)?);
    let decl = kept.first().map(|kept| run_decl(&kept.content)).transpose()?.flatten();
    let Some(mut decl) = decl else {
        let sql = "UPDATE run SET declared = 0, job = NULL, created = NULL, notes = NULL, grid = NULL, \
                   params = NULL, content = NULL, annotate = 0, first = $2 WHERE run = $1";
        return ground.db.execute(sql, &[Cell::Int(run), first]).map(|_| ());
    };
    if let Some(outside) = moved {
        decl.outside = Some(outside);
    }
    decl.state = state;
    let bytes = content(&Record::Runs(vec![decl.clone()]));
    let (grid, params) = (decl.grid.as_ref().map(Value::to_json), Value::named_json(&decl.params));
    let cells = [
        Cell::Int(run),
        Cell::maybe_text(decl.job.as_deref()),
        Cell::Int(decl.created),
        Cell::maybe_text(decl.notes.as_deref()),
        Cell::maybe_text(grid.as_deref()),
        Cell::Text(&params),
        Cell::Bytes(&bytes),
        Cell::Int((decl.annotate == Annotate::Owner).into()),
        first,
    ];
    let sql = "UPDATE run SET declared = 1, job = $2, created = $3, notes = $4, grid = $5, params = $6, \
               content = $7, annotate = $8, first = $9 WHERE run = $1";
    ground.db.execute(sql, &cells).map(|_| ())
}

fn recompute_step(ground: &mut Ground, owners: &mut Owners, run: RunId, step: i64, used: bool) -> Result<()> {
    let (kept, others) = owners.declared_in(ground, STEP, run, step)?;
    let time = |kept: &StoredDeclaration| {
        Some(f64::from_bits(u64::from_le_bytes(kept.content.as_slice().try_into().ok()?)))
    };
    // A declaration without a time contradicts none.
    let timed: Vec<StoredDeclaration> =
        kept.iter().filter(|kept| time(kept).is_some()).map(StoredDeclaration::again).collect();
    let what = match timed.len() {
        ..2 if others.is_empty() => String::new(),
        _ => format!("step {step} of {}", ground.run_text(run)?),
    };
    note_conflicts(ground, (STEP, run, step), &what, &timed, &others, |a, b| Ok(a.content != b.content))?;
    let key = [Cell::Int(run), Cell::Int(step)];
    if kept.is_empty() && !used && !step_is_used(ground, run, step)? {
        return ground.db.execute("DELETE FROM step WHERE run = $1 AND step = $2", &key).map(|_| ());
    }
    // NaN is not a valid time: SQLite stores none.
    let time = timed.first().and_then(time).filter(|time| !time.is_nan());
    let [run, step] = key;
    let cells = [run, step, Cell::Int((!kept.is_empty()).into()), Cell::maybe_real(time)];
    let sql = "INSERT INTO step (run, step, declared, time) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (run, step) DO UPDATE SET declared = excluded.declared, time = excluded.time";
    ground.db.execute(sql, &cells).map(|_| ())
}

/// Whether a field or an attribute uses a step. Derived rows do not count: they may not exist yet.
fn step_is_used(ground: &mut Ground, run: RunId, step: i64) -> Result<bool> {
    // Jump from one variable to the next: each takes at most two lookups, however many steps it has.
    let mut from = Some((NO_VARIABLE, step));
    // `held` is ordered by variable before step, so the step cannot be looked up directly.
    while let Some((variable, at_step)) = from {
        let sql = "SELECT run, variable, step FROM held WHERE (run, variable, step) >= ($1, $2, $3) \
                   ORDER BY run, variable, step LIMIT 1";
        let found = ground.db.first(sql, &[run, variable, at_step].map(Cell::Int), ints)?;
        from = match found.filter(|found| found[0] == run) {
            Some([_, _, there]) if there == step => return Ok(true),
            Some([_, other, there]) if there < step => Some((other, step)),
            Some([_, other, _]) => other.checked_add(1).map(|next| (next, step)),
            None => None,
        };
    }
    for tag in ground.tags_of(run)? {
        let sql = "SELECT step FROM series WHERE run = $1 AND tag = $2 AND step = $3 LIMIT 1";
        if ground.db.int(sql, &[run, tag, step].map(Cell::Int))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn variable_is_used(ground: &mut Ground, run: RunId, variable: VariableId) -> Result<bool> {
    let sql = "SELECT step FROM held WHERE run = $1 AND variable = $2 LIMIT 1";
    if ground.db.int(sql, &[run, variable].map(Cell::Int))?.is_some() {
        return Ok(true);
    }
    for tag in ground.tags_of(run)? {
        let sql = "SELECT step FROM series WHERE run = $1 AND tag = $2 AND variable = $3 LIMIT 1";
        if ground.db.int(sql, &[run, tag, variable].map(Cell::Int))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn recompute_variable(
    ground: &mut Ground,
    owners: &mut Owners,
    run: RunId,
    variable: VariableId,
    used: bool,
) -> Result<()> {
    let (kept, others) = owners.declared_in(ground, VARIABLE, run, variable)?;
    let key = [Cell::Int(run), Cell::Int(variable)];
    let mut what = String::new();
    if kept.len() > 1 || !others.is_empty() {
        let sql = "SELECT name FROM variable_name WHERE variable = $1";
        let name = ground.db.first(sql, &key[1..], |row| Ok(row[0].text()?.to_owned()))?.unwrap_or_default();
        what = format!("variable '{name}' of {}", ground.run_text(run)?);
    }
    let differ = |a: &StoredDeclaration, b: &StoredDeclaration| Ok(a.content != b.content);
    note_conflicts(ground, (VARIABLE, run, variable), &what, &kept, &others, differ)?;
    if kept.is_empty() && !used && !variable_is_used(ground, run, variable)? {
        let sql = "DELETE FROM variable WHERE run = $1 AND variable = $2";
        return ground.db.execute(sql, &key).map(|_| ());
    }
    let decl = kept.first().map(|kept| variable_decl(&kept.content)).transpose()?.flatten();
    let dtype = decl.as_ref().and_then(|decl| decl.dtype).map(|dtype| dtype.to_string());
    let shape = decl.as_ref().and_then(|decl| decl.shape.as_deref()).map(shape_text);
    let dims = decl.as_ref().filter(|decl| !decl.dims.is_empty()).map(|decl| decl.dims.join(","));
    let attrs = decl.as_ref().map(|decl| Value::named_json(&decl.attrs));
    let bytes = kept.first().map_or(Cell::Null, |kept| Cell::Bytes(&kept.content));
    let [run, variable] = key;
    let cells = [
        run,
        variable,
        Cell::Int(decl.is_some().into()),
        Cell::maybe_text(dtype.as_deref()),
        Cell::maybe_text(shape.as_deref()),
        Cell::maybe_text(dims.as_deref()),
        Cell::maybe_text(attrs.as_deref()),
        bytes,
    ];
    let sql = "INSERT INTO variable (run, variable, declared, dtype, shape, dims, attrs, content) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (run, variable) DO UPDATE SET \
               declared = excluded.declared, dtype = excluded.dtype, shape = excluded.shape, \
               dims = excluded.dims, attrs = excluded.attrs, content = excluded.content";
    ground.db.execute(sql, &cells).map(|_| ())
}

/// Gives the tags of one name the versions that are shown. A tag gets the version it asked for, unless an
/// older tag asked for the same; the remaining tags, oldest first, get the next free versions.
fn recompute_tags(ground: &mut Ground, name: &str) -> Result<()> {
    let sql = "SELECT tag, version, kind, unit FROM tag WHERE name = $1";
    let tags = ground.db.all(sql, &[Cell::Text(name)], |row| {
        Ok((row[0].int()?, row[1].int()?, row[2].int()?, row[3].text()?.to_owned()))
    })?;
    let mut living = Vec::new();
    for (tag, version, kind, unit) in tags {
        let oldest = declared(ground, TAG, 0, tag)?.first().map(|kept| kept.place);
        let sql = "SELECT tag FROM span WHERE tag = $1 LIMIT 1";
        let used = ground.db.int(sql, &[Cell::Int(tag)])?.is_some();
        set_shown(ground, tag, version, oldest.is_some())?;
        if oldest.is_some() || used {
            living.push((oldest.is_none(), oldest, version, kind, unit, tag));
        }
    }
    // Declared tags come first, the oldest before others; then those that only have attributes.
    living.sort();
    let mut shown: HashMap<i64, i64> = HashMap::new();
    for (.., version, _, _, tag) in &living {
        shown.entry(*version).or_insert(*tag);
    }
    for (undeclared, _, version, _, _, tag) in &living {
        if shown.get(version) == Some(tag) {
            continue;
        }
        let free = (version.saturating_add(1)..=i64::MAX).find(|next| !shown.contains_key(next));
        let free = free.unwrap_or(*version);
        shown.insert(free, *tag);
        set_shown(ground, *tag, free, !undeclared)?;
    }
    Ok(())
}

fn set_shown(ground: &mut Ground, tag: TagId, shown: i64, declared: bool) -> Result<()> {
    let cells = [tag, shown, declared.into()].map(Cell::Int);
    ground.db.execute("UPDATE tag SET shown = $2, declared = $3 WHERE tag = $1", &cells).map(|_| ())
}
