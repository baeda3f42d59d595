//! Rules that span several entries: types of a version, ids of dimensions, sizes and places of variables.
//!
//! Invariants: what readers rely on (ids in range, the record dimension first, no overlap) is refused; what
//! they compute themselves (`vsize`) is only noted.

use super::entry::VarEntry;
use super::findings::{Finding, Notes};
use super::{Places, Tried};
use crate::netcdf::layout::{self, Records};
use crate::netcdf::{Header, NcType, Version, pad4};

/// A type that the version has.
pub(super) fn type_of(
    notes: &mut Notes<'_>,
    version: Version,
    offset: u64,
    object: &impl Fn() -> String,
    ty: NcType,
) -> Tried<()> {
    if !ty.is_in(version) {
        let message = format!("type {} in {}", ty.name(), version.name());
        let rule = "types are 1 to 6, in CDF-5 1 to 11";
        notes.refuse(Finding::error(offset, object(), rule, message))?;
    }
    Ok(())
}

/// Dimensions that exist, the record dimension in the first place only; `ids` gets them.
pub(super) fn dims_of(
    notes: &mut Notes<'_>,
    header: &Header,
    var: &VarEntry<'_>,
    object: &impl Fn() -> String,
    ids: &mut Vec<u32>,
) -> Tried<()> {
    let dims = header.dims.len();
    for (place, id) in var.dims().enumerate() {
        match u32::try_from(id) {
            Ok(known) if (known as usize) < dims => {
                if place > 0 && header.dims.record == Some(known) {
                    let rule = "the record dimension is a variable's first dimension only";
                    let message = format!("the record dimension is dimension {place} of it (from 0)");
                    notes.refuse(Finding::error(var.dims_at, object(), rule, message))?;
                }
                ids.push(known);
            }
            _ => {
                let rule = "a dimension id is below the number of dimensions";
                let message = format!("dimension id {id}, but there are {dims} dimensions");
                notes.refuse(Finding::error(var.dims_at, object(), rule, message))?;
            }
        }
    }
    Ok(())
}

/// Sizes and begins of all variables. `offsets`: those of their entries, where findings are kept.
pub(super) fn places(header: &Header, places: &Places, offsets: &[u64], notes: &mut Notes<'_>) -> Tried<()> {
    let at = |i: usize| offsets.get(i).copied().unwrap_or(places.vars_at);
    let named = |i: usize| format!("variable `{}`", header.vars.names.get(i).escape_debug());
    let mut bytes = Vec::with_capacity(header.vars.len());
    let (mut last_fixed, mut last_record, mut records) = (None, None, Records::default());
    for var in header.vars.iter() {
        let i = var.id();
        let is_record = header.is_record(var);
        let size = layout::bytes_of(header, var);
        let summed = match &size {
            Ok(size) if is_record => records.add(var.name(), *size),
            _ => Ok(()),
        };
        let size = match size.and_then(|size| summed.map(|()| size)) {
            Ok(size) => size,
            Err(error) => {
                let rule = "sizes of variables are below 2^63";
                notes.refuse(Finding::error(at(i), named(i), rule, error.to_string()))?;
                // Sums over sizes mean nothing any more.
                return Ok(());
            }
        };
        if is_record {
            last_record = Some(i)
        } else {
            last_fixed = Some(i)
        }
        bytes.push(size);
    }
    if notes.kept() {
        for (i, size) in bytes.iter().enumerate() {
            let var = header.vars.get(i);
            let is_record = header.is_record(var);
            let last = if is_record { last_record } else { last_fixed } == Some(i);
            let checked =
                layout::check_var_bytes(header.version, var.name(), *size, is_record, last, records.vars());
            if let Err(error) = checked {
                let rule = "variables keep the size limit of the version";
                notes.note(|| Finding::error(at(i), named(i), rule, error.to_string()));
            }
            let vsize = layout::vsize(header.version, *size);
            if var.vsize() != vsize {
                let message = format!("vsize is {}, its shape makes {vsize}", var.vsize());
                let rule = "vsize is the padded size of a variable, or of one of its records";
                notes.note(|| Finding::error(at(i), named(i), rule, message));
            }
            let begin = var.begin();
            if let Err(error) = layout::check_begin(header.version, var.name(), begin) {
                let rule = "offsets keep the limit of the version";
                notes.note(|| Finding::error(at(i), named(i), rule, error.to_string()));
            }
            if !begin.is_multiple_of(4) {
                let rule = "variables begin at multiples of 4";
                notes.note(|| Finding::warning(at(i), named(i), rule, format!("begin is {begin}")));
            }
        }
    }
    begins(header, places, &bytes, &at, &named, notes)
}

/// Nothing overlaps, and the order of data is that of definition: fixed variables, then a record's.
fn begins(
    header: &Header,
    places: &Places,
    bytes: &[u64],
    at: &impl Fn(usize) -> u64,
    named: &impl Fn(usize) -> String,
    notes: &mut Notes<'_>,
) -> Tried<()> {
    // The end of what comes before, with and without its padding.
    let (mut end, mut padded_end, mut before) = (places.header_len, places.header_len, None);
    for records in [false, true] {
        for (i, size) in bytes.iter().enumerate() {
            let var = header.vars.get(i);
            if header.is_record(var) != records {
                continue;
            }
            let begin = var.begin();
            if begin < padded_end {
                let other = before.map_or("the header".to_string(), named);
                let rule = "data follow the header in the order of definition, fixed before records, without overlap";
                let message = format!("begins at {begin}, but {other} ends at {end} (padded: {padded_end})");
                let finding = Finding::error(at(i), named(i), rule, message);
                if begin < end {
                    notes.refuse(finding)?;
                } else {
                    notes.note(|| finding);
                }
            }
            let Some(padded) = pad4(*size).and_then(|size| begin.checked_add(size)) else {
                let rule = "offsets are below 2^63";
                let message = format!("begins at {begin} and takes {size} bytes");
                notes.refuse(Finding::error(at(i), named(i), rule, message))?;
                continue;
            };
            if padded >= padded_end {
                (end, padded_end, before) = (begin + size, padded, Some(i));
            }
        }
    }
    Ok(())
}
