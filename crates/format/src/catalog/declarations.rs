//! Runs, steps, variables, tags and deletions: their bytes and their rules.
//!
//! ```text
//! run        = project: text  name: text
//! tag        = name: text  version: zigzag  type: u8  unit: text
//! optional x = 0 | 1 x
//! named      = n: varint  n x { name: text  value }
//! runs       = n: varint  n x { run  job: optional text  params: named  created: i64
//!              grid: optional value  notes: optional text  outside: optional value }
//! runs with flags: the same, each with flags: u8 after it (1: only its owner annotates it;
//!              2: existing fields are not written again; 4: they are, despite the store's setting)
//! steps      = run  n: varint  ints(n) of numbers  times: u8 0 none | 1 floats(n)
//!              | 2 bits(n, 1) m: varint  floats(m) of those with a time
//! variables  = run  n: varint  n x { name: text  version: zigzag  dtype: optional text
//!              shape: optional list  dims: varint n x text  attrs: named
//!              coords: varint n x { dimension: varint  0 f64 f64 | 1 m: varint planes(m) | 2 text }
//!              decomposition: optional list  finders: optional value }
//! list       = n: varint  n x varint
//! tags       = n: varint  n x tag
//! moved      = n: varint  n x { run  outside: value }
//! states     = n: varint  n x { run  state: u8  note: text }
//! removals   = n: varint  n x { 0 run | 1 run zigzag | 2 run text zigzag | 3 tag
//!              | 4 w: varint w x id  m: varint  ints(m) of writers  ints(m) of sequences
//!                ints(m) of records  ints(m) of rows }
//! ```

use fieldstone_core::dtype::DType;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Code, Error, Result};

use super::batch::RANK_MAX;
use super::{
    Annotate, AttributeId, Coordinate, ROWS_MAX, Removal, RunDecl, RunName, RunPhase, RunState, StepDecl,
    TagDecl, VariableDecl, VariableName,
};
use crate::Id;
use crate::bytes::{Cursor, Put};
use crate::columns::{
    put_floats, put_ints, put_planes, put_zigzag, read_floats, read_ints, read_planes, read_zigzag,
};
use crate::setting::IfExists;
use crate::value::{put_value, read_value};

pub(super) fn put_optional<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

pub(super) fn read_optional<T>(
    cursor: &mut Cursor<'_>,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T>,
) -> Result<Option<T>> {
    match cursor.u8()? {
        0 => Ok(None),
        1 => read(cursor).map(Some),
        _ => Err(cursor.fail("a part is marked neither present nor absent")),
    }
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.put_bytes(text.as_bytes());
}

pub(super) fn read_text(cursor: &mut Cursor<'_>) -> Result<String> {
    cursor.text().map(str::to_owned)
}

/// Reads `n` items and allocates as they come: a count alone does not justify an allocation.
pub(super) fn read_all<T>(
    cursor: &mut Cursor<'_>,
    item_bytes: usize,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut items = Vec::new();
    for _ in 0..cursor.count(item_bytes)? {
        items.push(read(cursor)?);
    }
    Ok(items)
}

pub(super) fn put_named(out: &mut Vec<u8>, named: &[(String, Value)]) {
    out.put_varint(named.len() as u64);
    for (name, value) in named {
        put_text(out, name);
        put_value(out, value);
    }
}

pub(super) fn read_named(cursor: &mut Cursor<'_>) -> Result<Vec<(String, Value)>> {
    read_all(cursor, 2, |cursor| Ok((read_text(cursor)?, read_value(cursor)?)))
}

pub(super) fn put_list(out: &mut Vec<u8>, list: &[u64]) {
    out.put_varint(list.len() as u64);
    list.iter().for_each(|n| out.put_varint(*n));
}

pub(super) fn read_list(cursor: &mut Cursor<'_>) -> Result<Vec<u64>> {
    read_all(cursor, 1, |cursor| cursor.varint())
}

pub(super) fn put_run(out: &mut Vec<u8>, run: &RunName) {
    put_text(out, &run.project);
    put_text(out, &run.name);
}

pub(super) fn read_run(cursor: &mut Cursor<'_>) -> Result<RunName> {
    Ok(RunName { project: read_text(cursor)?, name: read_text(cursor)? })
}

pub(super) fn put_tag(out: &mut Vec<u8>, tag: &TagDecl) {
    put_text(out, &tag.name);
    put_zigzag(out, tag.version);
    out.push(tag.kind as u8);
    put_text(out, &tag.unit);
}

pub(super) fn read_tag(cursor: &mut Cursor<'_>) -> Result<TagDecl> {
    let (name, version) = (read_text(cursor)?, read_zigzag(cursor)?);
    let kind = ValueType::from_u8(cursor.u8()?).ok_or_else(|| cursor.fail("a tag has an unknown type"))?;
    Ok(TagDecl { name, version, kind, unit: read_text(cursor)? })
}

/// The flag of a run that only its owner annotates.
const OWNER_ANNOTATES: u8 = 1;
/// The first flag of a run that sets the behaviour of a write to an existing field.
const EXIST_ERROR: u8 = 2;
const EXIST_NEW: u8 = 4;
/// The flag of a run with a state, as engines keep it: the state, its reason, and the log that recorded it.
const STATE: u8 = 8;

/// Whether a record of these runs needs the form with flags.
pub(super) fn need_flags(runs: &[RunDecl]) -> bool {
    runs.iter().any(|decl| flags_of(decl) != 0)
}

fn flags_of(decl: &RunDecl) -> u8 {
    let annotate = if decl.annotate == Annotate::Owner { OWNER_ANNOTATES } else { 0 };
    let if_exists = decl
        .if_exists
        .map_or(0, |if_exists| if if_exists == IfExists::Error { EXIST_ERROR } else { EXIST_NEW });
    annotate | if_exists | if decl.state.is_some() { STATE } else { 0 }
}

pub(super) fn put_runs(out: &mut Vec<u8>, runs: &[RunDecl]) {
    let flags = need_flags(runs);
    out.put_varint(runs.len() as u64);
    for decl in runs {
        put_run(out, &decl.run);
        put_optional(out, decl.job.as_deref(), put_text);
        put_named(out, &decl.params);
        out.put_i64(decl.created);
        put_optional(out, decl.grid.as_ref(), put_value);
        put_optional(out, decl.notes.as_deref(), put_text);
        put_optional(out, decl.outside.as_ref(), put_value);
        if flags {
            out.push(flags_of(decl));
            if let Some(state) = &decl.state {
                out.push(state.phase as u8);
                put_text(out, &state.note);
                put_log(out, state.writer);
            }
        }
    }
}

/// Reads runs, each with its flags if the form has them.
pub(super) fn read_runs(cursor: &mut Cursor<'_>, flags: bool) -> Result<Vec<RunDecl>> {
    read_all(cursor, 15, |cursor| {
        let mut decl = RunDecl {
            run: read_run(cursor)?,
            job: read_optional(cursor, read_text)?,
            params: read_named(cursor)?,
            created: cursor.i64()?,
            grid: read_optional(cursor, read_value)?,
            notes: read_optional(cursor, read_text)?,
            outside: read_optional(cursor, read_value)?,
            annotate: Annotate::All,
            if_exists: None,
            state: None,
        };
        let flags = if flags { cursor.u8()? } else { 0 };
        if flags & OWNER_ANNOTATES != 0 {
            decl.annotate = Annotate::Owner;
        }
        if flags & STATE != 0 {
            decl.state = Some(RunState { writer: None, ..read_state(cursor)? });
            if let Some(state) = &mut decl.state {
                state.writer = read_log(cursor)?;
            }
        }
        decl.if_exists = match flags & !OWNER_ANNOTATES & !STATE {
            0 => None,
            EXIST_ERROR => Some(IfExists::Error),
            EXIST_NEW => Some(IfExists::New),
            _ => return Err(cursor.fail("a run with unknown flags")),
        };
        Ok(decl)
    })
}

pub(super) fn put_moved(out: &mut Vec<u8>, moved: &[(RunName, Value)]) {
    out.put_varint(moved.len() as u64);
    for (run, outside) in moved {
        put_run(out, run);
        put_value(out, outside);
    }
}

pub(super) fn read_moved(cursor: &mut Cursor<'_>) -> Result<Vec<(RunName, Value)>> {
    read_all(cursor, 3, |cursor| Ok((read_run(cursor)?, read_value(cursor)?)))
}

fn read_state(cursor: &mut Cursor<'_>) -> Result<RunState> {
    let byte = cursor.u8()?;
    let phase = [RunPhase::Running, RunPhase::Finished, RunPhase::Failed]
        .into_iter()
        .find(|phase| *phase as u8 == byte)
        .ok_or_else(|| cursor.fail("a run in an unknown state"))?;
    Ok(RunState { phase, note: read_text(cursor)?, writer: None })
}

pub(super) fn put_states(out: &mut Vec<u8>, states: &[(RunName, RunState)]) {
    out.put_varint(states.len() as u64);
    for (run, state) in states {
        put_run(out, run);
        out.push(state.phase as u8);
        put_text(out, &state.note);
    }
}

pub(super) fn read_states(cursor: &mut Cursor<'_>) -> Result<Vec<(RunName, RunState)>> {
    read_all(cursor, 4, |cursor| Ok((read_run(cursor)?, read_state(cursor)?)))
}

pub(super) fn check_moved((run, outside): &(RunName, Value)) -> Result<()> {
    check_name("run", &run.name)?;
    outside.check()
}

pub(super) fn put_steps(out: &mut Vec<u8>, run: &RunName, steps: &[StepDecl]) {
    put_run(out, run);
    out.put_varint(steps.len() as u64);
    put_ints(out, &steps.iter().map(|step| step.number).collect::<Vec<i64>>());
    let times: Vec<f64> = steps.iter().filter_map(|step| step.time).collect();
    if times.is_empty() {
        out.push(0);
    } else if times.len() == steps.len() {
        out.push(1);
        put_floats(out, &times);
    } else {
        out.push(2);
        let bits = |eight: &[StepDecl]| {
            eight.iter().enumerate().fold(0, |byte, (i, step)| byte | u8::from(step.time.is_some()) << i)
        };
        out.extend(steps.chunks(8).map(bits));
        out.put_varint(times.len() as u64);
        put_floats(out, &times);
    }
}

pub(super) fn read_steps(cursor: &mut Cursor<'_>) -> Result<(RunName, Vec<StepDecl>)> {
    let run = read_run(cursor)?;
    let n = cursor.size()?;
    if !(1..=ROWS_MAX).contains(&n) {
        return Err(cursor.fail("an impossible number of steps"));
    }
    let numbers = read_ints(cursor, n)?;
    let times: Vec<Option<f64>> = match cursor.u8()? {
        0 => vec![None; n],
        1 => read_floats(cursor, n)?.into_iter().map(Some).collect(),
        2 => {
            let bits = cursor.take(n.div_ceil(8))?;
            let there: Vec<bool> = (0..n).map(|i| bits[i / 8] >> (i % 8) & 1 == 1).collect();
            let m = cursor.size()?;
            if m == 0 || m != there.iter().filter(|there| **there).count() {
                return Err(cursor.fail("the number of times does not match their bits"));
            }
            let mut times = read_floats(cursor, m)?.into_iter();
            there.into_iter().map(|there| if there { times.next() } else { None }).collect()
        }
        _ => return Err(cursor.fail("times have an unknown form")),
    };
    let steps = numbers.into_iter().zip(times).map(|(number, time)| StepDecl { number, time });
    Ok((run, steps.collect()))
}

pub(super) fn put_variables(out: &mut Vec<u8>, run: &RunName, variables: &[VariableDecl]) {
    put_run(out, run);
    out.put_varint(variables.len() as u64);
    for decl in variables {
        put_text(out, &decl.variable.name);
        put_zigzag(out, decl.variable.version);
        put_optional(out, decl.dtype.as_ref(), |out, dtype| put_text(out, &dtype.to_string()));
        put_optional(out, decl.shape.as_deref(), put_list);
        out.put_varint(decl.dims.len() as u64);
        decl.dims.iter().for_each(|dim| put_text(out, dim));
        put_named(out, &decl.attrs);
        out.put_varint(decl.coords.len() as u64);
        for (dim, coordinate) in &decl.coords {
            out.put_varint(u64::from(*dim));
            put_coordinate(out, coordinate);
        }
        put_optional(out, decl.decomposition.as_deref(), put_list);
        put_optional(out, decl.finders.as_ref(), put_value);
    }
}

fn put_coordinate(out: &mut Vec<u8>, coordinate: &Coordinate) {
    match coordinate {
        Coordinate::Uniform { first, spacing } => {
            out.push(0);
            [first, spacing].into_iter().for_each(|number| out.put_u64(number.to_bits()));
        }
        Coordinate::Rectilinear(values) => {
            out.push(1);
            out.put_varint(values.len() as u64);
            put_planes(out, values);
        }
        Coordinate::Other(name) => {
            out.push(2);
            put_text(out, name);
        }
    }
}

fn read_coordinate(cursor: &mut Cursor<'_>) -> Result<Coordinate> {
    Ok(match cursor.u8()? {
        0 => Coordinate::Uniform {
            first: f64::from_bits(cursor.u64()?),
            spacing: f64::from_bits(cursor.u64()?),
        },
        1 => {
            let m = cursor.count(4)?;
            Coordinate::Rectilinear(read_planes(cursor, m)?)
        }
        2 => Coordinate::Other(read_text(cursor)?),
        _ => return Err(cursor.fail("coordinates have an unknown form")),
    })
}

pub(super) fn read_variables(cursor: &mut Cursor<'_>) -> Result<(RunName, Vec<VariableDecl>)> {
    let run = read_run(cursor)?;
    let variables = read_all(cursor, 9, |cursor| {
        let variable = VariableName { name: read_text(cursor)?, version: read_zigzag(cursor)? };
        let dtype = read_optional(cursor, |cursor| {
            let text = cursor.text()?;
            DType::parse(text).map_err(|_| cursor.fail("not an element type of numpy"))
        })?;
        Ok(VariableDecl {
            variable,
            dtype,
            shape: read_optional(cursor, read_list)?,
            dims: read_all(cursor, 1, read_text)?,
            attrs: read_named(cursor)?,
            coords: read_all(cursor, 3, |cursor| {
                let dim = u32::try_from(cursor.varint()?)
                    .map_err(|_| cursor.fail("a dimension has an impossible number"))?;
                Ok((dim, read_coordinate(cursor)?))
            })?,
            decomposition: read_optional(cursor, read_list)?,
            finders: read_optional(cursor, read_value)?,
        })
    })?;
    Ok((run, variables))
}

pub(super) fn put_tags(out: &mut Vec<u8>, tags: &[TagDecl]) {
    out.put_varint(tags.len() as u64);
    tags.iter().for_each(|tag| put_tag(out, tag));
}

pub(super) fn read_tags(cursor: &mut Cursor<'_>) -> Result<Vec<TagDecl>> {
    read_all(cursor, 4, read_tag)
}

pub(super) fn put_removals(out: &mut Vec<u8>, removals: &[Removal]) {
    out.put_varint(removals.len() as u64);
    for removal in removals {
        match removal {
            Removal::Run(run) => {
                out.push(0);
                put_run(out, run);
            }
            Removal::Step(run, step) => {
                out.push(1);
                put_run(out, run);
                put_zigzag(out, *step);
            }
            Removal::Variable(run, variable) => {
                out.push(2);
                put_run(out, run);
                put_text(out, &variable.name);
                put_zigzag(out, variable.version);
            }
            Removal::Tag(tag) => {
                out.push(3);
                put_tag(out, tag);
            }
            Removal::Attributes(ids) => {
                out.push(4);
                put_ids(out, ids);
            }
        }
    }
}

fn put_ids(out: &mut Vec<u8>, ids: &[AttributeId]) {
    let mut writers: Vec<Option<Id>> = ids.iter().map(|id| id.writer).collect();
    writers.sort_unstable();
    writers.dedup();
    out.put_varint(writers.len() as u64);
    writers.iter().for_each(|writer| put_log(out, *writer));
    out.put_varint(ids.len() as u64);
    let code = |id: &AttributeId| writers.binary_search(&id.writer).unwrap_or(0) as i64;
    put_ints(out, &ids.iter().map(code).collect::<Vec<i64>>());
    put_ints(out, &ids.iter().map(|id| id.sequence as i64).collect::<Vec<i64>>());
    put_ints(out, &ids.iter().map(|id| i64::from(id.record)).collect::<Vec<i64>>());
    put_ints(out, &ids.iter().map(|id| i64::from(id.row)).collect::<Vec<i64>>());
}

pub(super) fn read_removals(cursor: &mut Cursor<'_>) -> Result<Vec<Removal>> {
    let mut left = ROWS_MAX;
    read_all(cursor, 3, |cursor| {
        Ok(match cursor.u8()? {
            0 => Removal::Run(read_run(cursor)?),
            1 => Removal::Step(read_run(cursor)?, read_zigzag(cursor)?),
            2 => {
                let run = read_run(cursor)?;
                Removal::Variable(
                    run,
                    VariableName { name: read_text(cursor)?, version: read_zigzag(cursor)? },
                )
            }
            3 => Removal::Tag(read_tag(cursor)?),
            4 => Removal::Attributes(read_ids(cursor, &mut left)?),
            _ => return Err(cursor.fail("a deletion has an unknown kind")),
        })
    })
}

/// Reads up to `left` attributes.
fn read_ids(cursor: &mut Cursor<'_>, left: &mut usize) -> Result<Vec<AttributeId>> {
    let writers = read_all(cursor, 16, read_log)?;
    let n = cursor.size()?;
    if n == 0 || n > *left {
        return Err(cursor.fail("a deletion has an impossible number of attributes"));
    }
    *left -= n;
    let columns =
        [read_ints(cursor, n)?, read_ints(cursor, n)?, read_ints(cursor, n)?, read_ints(cursor, n)?];
    let id = |i: usize| -> Option<AttributeId> {
        Some(AttributeId {
            writer: *writers.get(usize::try_from(columns[0][i]).ok()?)?,
            sequence: columns[1][i] as u64,
            record: u32::try_from(columns[2][i]).ok()?,
            row: u32::try_from(columns[3][i]).ok()?,
        })
    };
    let ids: Option<Vec<AttributeId>> = (0..n).map(id).collect();
    ids.ok_or_else(|| cursor.fail("a deletion names an impossible attribute"))
}

/// Writes the log of a row; zeros, the id of no log, if it is not flushed.
fn put_log(out: &mut Vec<u8>, log: Option<Id>) {
    out.put_id(log.unwrap_or(Id::LEAST));
}

fn read_log(cursor: &mut Cursor<'_>) -> Result<Option<Id>> {
    Ok(Some(cursor.id()?).filter(|log| *log != Id::LEAST))
}

/// Refuses an empty name.
pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Code::Name.error(format!("a {what} has an empty name")).with_hint("give it a name"));
    }
    Ok(())
}

pub(super) fn check_named(what: &str, named: &[(String, Value)]) -> Result<()> {
    Value::Map(named.to_vec()).check().map_err(|error| error.context(what))
}

pub(super) fn check_run(decl: &RunDecl) -> Result<()> {
    check_name("run", &decl.run.name)?;
    check_named(&format!("run '{}': params", decl.run.name), &decl.params)?;
    [&decl.grid, &decl.outside].into_iter().flatten().try_for_each(Value::check)
}

pub(super) fn check_step(run: &RunName, step: &StepDecl) -> Result<()> {
    if step.number == i64::MIN {
        return Err(Error::invalid(format!("run '{}': {} is not a valid step", run.name, i64::MIN)));
    }
    Ok(())
}

/// Refuses a variable with contradictory parts.
pub(super) fn check_variable(decl: &VariableDecl) -> Result<()> {
    check_name("variable", &decl.variable.name)?;
    let what = format!("variable '{}'", decl.variable.name);
    let wrong = |why: String| Err(Error::invalid(format!("{what}: {why}")));
    check_named(&format!("{what}: attrs"), &decl.attrs)?;
    decl.finders.iter().try_for_each(Value::check)?;
    let rank = decl.shape.as_ref().map(Vec::len);
    if rank.is_some_and(|rank| rank > RANK_MAX) {
        return wrong(format!("more than {RANK_MAX} dimensions"));
    }
    if let Some(extent) = decl.shape.iter().flatten().find(|extent| i64::try_from(**extent).is_err()) {
        return wrong(format!("an extent of {extent} is too large"));
    }
    if let Some(rank) = rank.filter(|rank| !decl.dims.is_empty() && decl.dims.len() != *rank) {
        return wrong(format!("{} names for {rank} dimensions", decl.dims.len()));
    }
    if let Some((i, dim)) = decl.dims.iter().enumerate().find(|(i, dim)| decl.dims[..*i].contains(dim)) {
        return wrong(format!("dimension {i} and another one are both named '{dim}'"));
    }
    let pieces = decl.decomposition.as_ref();
    if pieces.is_some_and(|pieces| pieces.contains(&0) || rank.is_some_and(|rank| rank != pieces.len())) {
        return wrong(format!("the decomposition into {pieces:?} does not fit its shape"));
    }
    for (i, (dim, coordinate)) in decl.coords.iter().enumerate() {
        let extent = decl.shape.as_ref().map(|shape| shape.get(*dim as usize).copied());
        if extent == Some(None) || decl.coords[..i].iter().any(|(other, _)| other == dim) {
            return wrong(format!(
                "there are coordinates for dimension {dim}, which is missing or has some already"
            ));
        }
        check_coordinate(coordinate, extent.flatten())
            .or_else(|why| wrong(format!("dimension {dim}: {why}")))?;
    }
    Ok(())
}

fn check_coordinate(coordinate: &Coordinate, extent: Option<u64>) -> std::result::Result<(), String> {
    match coordinate {
        Coordinate::Uniform { first, spacing } => {
            let sound = first.is_finite() && spacing.is_finite() && *spacing != 0.0;
            if sound { Ok(()) } else { Err(format!("coordinates {first} + i * {spacing} do not differ")) }
        }
        Coordinate::Rectilinear(values) => {
            let rises = values.windows(2).all(|two| two[0] < two[1]);
            let falls = values.windows(2).all(|two| two[0] > two[1]);
            if values.is_empty() || !(rises || falls) || !values.iter().all(|value| value.is_finite()) {
                return Err("coordinates neither rise nor fall throughout".into());
            }
            match extent {
                Some(extent) if extent != values.len() as u64 => {
                    Err(format!("{} coordinates for {extent} elements", values.len()))
                }
                _ => Ok(()),
            }
        }
        Coordinate::Other(_) => Ok(()),
    }
}
