//! Rules that span several entries: types of a version, ids of dimensions, sizes and positions of variables.
//!
//! Invariants: a violation on which readers depend (ids in range, the record dimension first, no overlap) is
//! refused. Values that readers compute themselves (`vsize`) or skip (gaps between record variables) are only
//! noted.

use fieldstone_core::Error;

use super::entry::VarEntry;
use super::findings::{Notes, shown};
use super::{Places, Tried};
use crate::netcdf::layout::{self, Layout, Records};
use crate::netcdf::{Header, NcType, Version, pad4};

/// Checks that the version has the type.
pub(super) fn type_of(
    notes: &mut Notes<'_>,
    version: Version,
    offset: u64,
    object: &impl Fn() -> String,
    ty: NcType,
) -> Tried<()> {
    if !ty.is_in(version) {
        let rule = "types are 1 to 6, in CDF-5 1 to 11";
        notes.refuse(offset, rule, || (object(), format!("type {} in {}", ty.name(), version.name())))?;
    }
    Ok(())
}

/// Checks that dimensions exist and the record dimension is only the first one; collects them in `ids`.
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
                    let message = || format!("the record dimension is dimension {place} of it (from 0)");
                    notes.refuse(var.dims_at, rule, || (object(), message()))?;
                }
                ids.push(known);
            }
            _ => {
                let rule = "a dimension id is below the number of dimensions";
                let message = || format!("dimension id {id}, but there are {dims} dimensions");
                notes.refuse(var.dims_at, rule, || (object(), message()))?;
            }
        }
    }
    Ok(())
}

/// Checks sizes and begins of all variables. `offsets` are those of their entries, if findings are kept.
pub(super) fn places(header: &Header, places: &Places, offsets: &[u64], notes: &mut Notes<'_>) -> Tried<()> {
    let at = |i: usize| offsets.get(i).copied().unwrap_or(places.vars_at);
    let named = |i: usize| format!("variable `{}`", shown(header.vars.names.get(i)));
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
                notes.refuse(at(i), rule, || (named(i), error.to_string()))?;
                // Sums of sizes have no meaning now.
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
            // Messages clip the name, which takes time, so they are made only for a finding.
            let version = header.version;
            let of = |name: &str| {
                layout::check_var_bytes(version, name, *size, is_record, last, records.vars()).err()
            };
            if of("").is_some() {
                let rule = "variables keep the size limit of the version";
                notes.error(at(i), rule, || (named(i), words(of(&shown(var.name())))));
            }
            let vsize = layout::vsize(version, *size);
            if var.vsize() != vsize {
                let message = || format!("vsize is {}, its shape makes {vsize}", var.vsize());
                let rule = "vsize is the padded size of a variable, or of one of its records";
                notes.error(at(i), rule, || (named(i), message()));
            }
            let begin = var.begin();
            let of = |name: &str| layout::check_begin(version, name, begin).err();
            if of("").is_some() {
                let rule = "offsets keep the limit of the version";
                notes.error(at(i), rule, || (named(i), words(of(&shown(var.name())))));
            }
            if !begin.is_multiple_of(4) {
                let rule = "variables begin at multiples of 4";
                notes.warning(at(i), rule, || (named(i), format!("begin is {begin}")));
            }
        }
    }
    begins(header, places, &bytes, &at, &named, notes)?;
    within_record(header, places, &at, &named, notes);
    Ok(())
}

fn words(error: Option<Error>) -> String {
    error.map_or(String::new(), |error| error.to_string())
}

/// Checks that every record variable is inside the first record. Readers use the begin of each variable, so
/// they tolerate others. But the distance of two records is the sum of all record sizes: records of a
/// variable that begins further on overlap those of another, or come after the computed end of the file.
fn within_record(
    header: &Header,
    places: &Places,
    at: &impl Fn(usize) -> u64,
    named: &impl Fn(usize) -> String,
    notes: &mut Notes<'_>,
) {
    if !notes.kept() {
        return;
    }
    let Ok(layout) = Layout::of(header, places.header_len) else { return };
    let (first, end) = (layout.record_begin, layout.record_begin.saturating_add(layout.record_size));
    for (i, ends) in layout::outside_record(header, &layout) {
        let rule = "a record holds one record of every record variable, with nothing between them";
        let message = || {
            let begin = header.vars.get(i).begin();
            format!("its first record lies from {begin} to {ends}, the file's from {first} to {end}")
        };
        notes.error(at(i), rule, || (named(i), message()));
    }
}

/// Checks that nothing overlaps, and that data are in definition order: fixed variables, then those of a
/// record.
fn begins(
    header: &Header,
    places: &Places,
    bytes: &[u64],
    at: &impl Fn(usize) -> u64,
    named: &impl Fn(usize) -> String,
    notes: &mut Notes<'_>,
) -> Tried<()> {
    // The end of the previous data, with and without padding.
    let (mut end, mut padded_end, mut before) = (places.header_len, places.header_len, None);
    for records in [false, true] {
        for (i, size) in bytes.iter().enumerate() {
            let var = header.vars.get(i);
            if header.is_record(var) != records {
                continue;
            }
            let begin = var.begin();
            if begin < padded_end {
                let rule = "data follow the header in the order of definition, fixed before records, without overlap";
                let describe = || {
                    let other = before.map_or("the header".to_string(), named);
                    let ends = format!("{other} ends at {end} (padded: {padded_end})");
                    (named(i), format!("begins at {begin}, but {ends}"))
                };
                if begin < end {
                    notes.refuse(at(i), rule, describe)?;
                } else {
                    notes.error(at(i), rule, describe);
                }
            }
            let Some(padded) = pad4(*size).and_then(|size| begin.checked_add(size)) else {
                let rule = "offsets are below 2^63";
                let message = || format!("begins at {begin} and takes {size} bytes");
                notes.refuse(at(i), rule, || (named(i), message()))?;
                continue;
            };
            if padded >= padded_end {
                (end, padded_end, before) = (begin + size, padded, Some(i));
            }
        }
    }
    Ok(())
}
