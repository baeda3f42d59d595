//! Records of the catalog as side records: kinds and bytes.

use fieldstone_core::{Code, Error, Result};

use super::arrays::{
    check_group, check_history, check_import, check_mesh, have_sums, history_ranks, put_groups,
    put_histories, put_imports, put_meshes, read_groups, read_histories, read_imports, read_meshes,
};
use super::attributes::{put_batch, read_batch};
use super::batch::{batch_kind, check_batch, split_batch};
use super::declarations::{
    check_moved, check_name, check_run, check_step, check_variable, need_flags, put_moved, put_removals,
    put_runs, put_states, put_steps, put_tags, put_variables, read_moved, read_removals, read_runs,
    read_states, read_steps, read_tags, read_variables,
};
use super::{Record, Removal};
use crate::bytes::Cursor;
use crate::erased;
use crate::log::{SideRecord, kinds};
use crate::side;

/// Kinds of side records that belong to the catalog, known or not.
pub const KINDS: std::ops::RangeInclusive<u16> = 0x0100..=0x01ff;
const RUNS: u16 = 0x0100;
const STEPS: u16 = 0x0101;
const VARIABLES: u16 = 0x0102;
const TAGS: u16 = 0x0103;
const ATTRIBUTES: u16 = 0x0104;
const REMOVALS: u16 = 0x0105;
/// Runs of which at least one has a flag. Other runs keep the older form, which every release reads.
const RUNS_WITH_FLAGS: u16 = 0x0106;
const GROUPS: u16 = 0x0107;
const IMPORTS: u16 = 0x0108;
const MESHES: u16 = 0x0109;
const HISTORIES: u16 = 0x010a;
const MOVED: u16 = 0x010b;
const STATES: u16 = 0x010c;
/// Meshes of which at least one has checksums of its file. Other meshes keep the older form, which every
/// release reads.
const MESHES_WITH_SUMS: u16 = 0x010d;

/// Most rows of a record: attributes, steps, deleted attributes.
pub const ROWS_MAX: usize = 65_536;

/// Whether a side record belongs to the catalog.
pub fn is_catalog(side: &SideRecord) -> bool {
    KINDS.contains(&erased::kind_of(side))
}

/// Whether a side record declares runs, steps, variables or groups of arrays.
pub fn declares(side: &SideRecord) -> bool {
    [RUNS, RUNS_WITH_FLAGS, STEPS, VARIABLES, GROUPS].contains(&side.kind)
}

/// Whether a side record, by its kind alone, neither adds runs nor changes their declarations: steps,
/// variables, tags and attributes belong to an existing run, and groups and imports create none.
pub fn keeps_runs(side: &SideRecord) -> bool {
    const KEEP: [u16; 9] =
        [STEPS, VARIABLES, TAGS, ATTRIBUTES, GROUPS, IMPORTS, MESHES, MESHES_WITH_SUMS, HISTORIES];
    !is_catalog(side) || KEEP.contains(&erased::kind_of(side))
}

impl Record {
    /// Encodes the record, which has passed [`check`](Record::check) and, if it may be long,
    /// [`split`](Record::split).
    pub fn encode(&self) -> SideRecord {
        let mut body = Vec::new();
        let kind = match self {
            Record::Runs(runs) => {
                put_runs(&mut body, runs);
                if need_flags(runs) { RUNS_WITH_FLAGS } else { RUNS }
            }
            Record::Steps(run, steps) => {
                put_steps(&mut body, run, steps);
                STEPS
            }
            Record::Variables(run, variables) => {
                put_variables(&mut body, run, variables);
                VARIABLES
            }
            Record::Tags(tags) => {
                put_tags(&mut body, tags);
                TAGS
            }
            Record::Attributes(batch) => {
                put_batch(&mut body, batch);
                ATTRIBUTES
            }
            Record::Remove(removals) => {
                put_removals(&mut body, removals);
                REMOVALS
            }
            Record::Groups(run, groups) => {
                put_groups(&mut body, run, groups);
                GROUPS
            }
            Record::Imports(run, imports) => {
                put_imports(&mut body, run, imports);
                IMPORTS
            }
            Record::Meshes(meshes) => {
                put_meshes(&mut body, meshes);
                if have_sums(meshes) { MESHES_WITH_SUMS } else { MESHES }
            }
            Record::Histories(histories) => {
                put_histories(&mut body, histories);
                HISTORIES
            }
            Record::Moved(moved) => {
                put_moved(&mut body, moved);
                MOVED
            }
            Record::States(states) => {
                put_states(&mut body, states);
                STATES
            }
        };
        side::encode(kind, &body)
    }

    /// Decodes a side record of the catalog; [`rows_erased`](super::rows_erased) names rows that mean nothing any more. Every
    /// defect is Corrupt; a kind of a later release is Conflict.
    pub fn decode(side: &SideRecord) -> Result<Record> {
        let named =
            |error: Error| error.context(format!("a record of the catalog (kind {:#06x})", side.kind));
        if let Some(erased) = erased::decode(side).map_err(named)? {
            return Record::decode(&erased.record);
        }
        side::body(side).and_then(|body| read_body(side.kind, &body)).map_err(named)
    }

    /// Bits of [`kinds`] that must all be set before it is visible.
    pub fn kind_bit(&self) -> u32 {
        match self {
            Record::Runs(_) | Record::Imports(..) | Record::Moved(_) | Record::States(_) => kinds::RUN,
            Record::Steps(..) => kinds::STEP,
            Record::Variables(..) | Record::Groups(..) => kinds::VARIABLE,
            Record::Tags(_) | Record::Meshes(_) | Record::Histories(_) => kinds::TAG,
            Record::Attributes(batch) => batch_kind(batch),
            Record::Remove(removals) => removals.iter().fold(0, |bits, removal| bits | removal.kind_bit()),
        }
    }

    /// Refuses content that a record may not hold.
    pub fn check(&self) -> Result<()> {
        match self {
            Record::Runs(runs) => runs.iter().try_for_each(check_run),
            Record::Steps(run, steps) => {
                check_name("run", &run.name)?;
                steps.iter().try_for_each(|step| check_step(run, step))
            }
            Record::Variables(run, variables) => {
                check_name("run", &run.name)?;
                variables.iter().try_for_each(check_variable)
            }
            Record::Tags(tags) => tags.iter().try_for_each(|tag| check_name("tag", &tag.name)),
            Record::Attributes(batch) => check_batch(batch),
            Record::Remove(_) => Ok(()),
            Record::Groups(run, groups) => {
                check_name("run", &run.name)?;
                groups.iter().try_for_each(check_group)
            }
            Record::Imports(run, imports) => {
                check_name("run", &run.name)?;
                imports.iter().try_for_each(check_import)
            }
            Record::Meshes(meshes) => meshes.iter().try_for_each(check_mesh),
            Record::Histories(histories) => histories.iter().try_for_each(check_history),
            Record::Moved(moved) => moved.iter().try_for_each(check_moved),
            Record::States(states) => states.iter().try_for_each(|(run, _)| check_name("run", &run.name)),
        }
    }

    /// Splits the record into parts of at most [`ROWS_MAX`] rows, short enough to be read again; an empty
    /// record has no parts.
    pub fn split(self) -> Vec<Record> {
        match self {
            Record::Attributes(batch) => split_batch(batch).into_iter().map(Record::Attributes).collect(),
            Record::Steps(run, steps) => {
                steps.chunks(ROWS_MAX).map(|part| Record::Steps(run.clone(), part.to_vec())).collect()
            }
            Record::Remove(removals) => {
                // A record holds one long deletion, or many short ones.
                let rows = |removal: &Removal| match removal {
                    Removal::Attributes(ids) => ids.len(),
                    _ => 1,
                };
                grouped(in_parts(removals), rows).into_iter().map(Record::Remove).collect()
            }
            Record::Groups(run, items) => {
                items.chunks(ROWS_MAX).map(|part| Record::Groups(run.clone(), part.to_vec())).collect()
            }
            Record::Imports(run, items) => {
                items.chunks(ROWS_MAX).map(|part| Record::Imports(run.clone(), part.to_vec())).collect()
            }
            Record::Meshes(items) => {
                items.chunks(ROWS_MAX).map(|part| Record::Meshes(part.to_vec())).collect()
            }
            Record::Histories(items) => {
                grouped(items, history_ranks).into_iter().map(Record::Histories).collect()
            }
            Record::Moved(items) => items.chunks(ROWS_MAX).map(|part| Record::Moved(part.to_vec())).collect(),
            Record::States(items) => {
                items.chunks(ROWS_MAX).map(|part| Record::States(part.to_vec())).collect()
            }
            Record::Runs(items) => items.chunks(ROWS_MAX).map(|part| Record::Runs(part.to_vec())).collect(),
            Record::Tags(items) => items.chunks(ROWS_MAX).map(|part| Record::Tags(part.to_vec())).collect(),
            Record::Variables(run, items) => {
                items.chunks(ROWS_MAX).map(|part| Record::Variables(run.clone(), part.to_vec())).collect()
            }
        }
    }
}

/// Splits removals with more than [`ROWS_MAX`] attributes; leaves out removals without any attribute.
fn in_parts(removals: Vec<Removal>) -> Vec<Removal> {
    let mut parts = Vec::with_capacity(removals.len());
    for removal in removals {
        match removal {
            Removal::Attributes(ids) => {
                parts.extend(ids.chunks(ROWS_MAX).map(|ids| Removal::Attributes(ids.to_vec())));
            }
            other => parts.push(other),
        }
    }
    parts
}

/// Groups items in their order, with at most [`ROWS_MAX`] rows in a group; a larger item is a group of its
/// own.
fn grouped<T>(items: impl IntoIterator<Item = T>, rows_of: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut groups, mut rows): (Vec<Vec<T>>, usize) = (Vec::new(), 0);
    for item in items {
        let more = rows_of(&item);
        match groups.last_mut() {
            Some(last) if rows + more <= ROWS_MAX => {
                rows += more;
                last.push(item);
            }
            _ => {
                rows = more;
                groups.push(vec![item]);
            }
        }
    }
    groups
}

impl Removal {
    /// Bits of [`kinds`] that must all be set before it is visible. Attributes may be of any of the three.
    pub fn kind_bit(&self) -> u32 {
        match self {
            Removal::Run(_) => kinds::RUN,
            Removal::Step(..) => kinds::STEP,
            Removal::Variable(..) => kinds::VARIABLE,
            Removal::Tag(_) => kinds::TAG,
            Removal::Attributes(_) => {
                kinds::RUN_ATTRIBUTE | kinds::STEP_ATTRIBUTE | kinds::VARIABLE_ATTRIBUTE
            }
        }
    }
}

fn read_body(kind: u16, body: &[u8]) -> Result<Record> {
    let mut cursor = Cursor::new(body);
    let record = match kind {
        RUNS => Record::Runs(read_runs(&mut cursor, false)?),
        RUNS_WITH_FLAGS => Record::Runs(read_runs(&mut cursor, true)?),
        STEPS => {
            let (run, steps) = read_steps(&mut cursor)?;
            Record::Steps(run, steps)
        }
        VARIABLES => {
            let (run, variables) = read_variables(&mut cursor)?;
            Record::Variables(run, variables)
        }
        TAGS => Record::Tags(read_tags(&mut cursor)?),
        ATTRIBUTES => Record::Attributes(read_batch(&mut cursor)?),
        REMOVALS => Record::Remove(read_removals(&mut cursor)?),
        GROUPS => {
            let (run, groups) = read_groups(&mut cursor)?;
            Record::Groups(run, groups)
        }
        IMPORTS => {
            let (run, imports) = read_imports(&mut cursor)?;
            Record::Imports(run, imports)
        }
        MESHES => Record::Meshes(read_meshes(&mut cursor, false)?),
        MESHES_WITH_SUMS => Record::Meshes(read_meshes(&mut cursor, true)?),
        HISTORIES => Record::Histories(read_histories(&mut cursor)?),
        MOVED => Record::Moved(read_moved(&mut cursor)?),
        STATES => Record::States(read_states(&mut cursor)?),
        _ => {
            let message = "a later release wrote it";
            return Err(Code::LaterTables.error(message).with_hint("use that release to read the catalog"));
        }
    };
    if !cursor.is_empty() {
        return Err(cursor.fail("a record is longer than its content"));
    }
    // Attributes were checked while they were read.
    if !matches!(record, Record::Attributes(_)) {
        record.check().map_err(|error| Error::corrupt(error.message()))?;
    }
    Ok(record)
}
