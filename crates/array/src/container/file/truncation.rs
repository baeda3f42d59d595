//! Checks that a file has the data that its header describes (C-8).
//!
//! An unwritten variable may be beyond the end of the file: not all writers extend a file to the length in its
//! header. A variable that is cut in its middle was written, and part of it is lost. If even the first byte of the
//! last record is missing, the number of records is wrong or the file was cut.
//!
//! Invariant: reads of a file that passes go beyond its end only for variables that are completely beyond it, so that
//! a loop over its records ends where the file does.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::{Layout, outside_record};

use crate::container::model::{Metadata, record_offset, slab_len};

/// Number of variables examined together.
const BATCH: usize = 4096;

/// Checks a file of `len` bytes with `numrecs` records.
///
/// Errors: `Corrupt` that names the variable that is cut, or the missing records.
pub(in crate::container) fn check(
    metadata: &dyn Metadata,
    layout: &Layout,
    numrecs: u64,
    len: u64,
) -> Result<()> {
    if layout.file_len(numrecs).is_some_and(|end| end <= len) {
        return Ok(());
    }
    let (vars, mut at) = (metadata.counts()?.vars, 0);
    let (mut in_records, mut last_record) = (false, u64::MAX);
    while at < vars {
        let batch = metadata.vars(at, BATCH)?;
        if batch.is_empty() {
            return Err(Error::corrupt(format!("variable {at} of {vars} is missing")));
        }
        for var in &batch {
            let (bytes, is_record) = (slab_len(var)?, var.is_record());
            if bytes == 0 || (is_record && numrecs == 0) {
                continue;
            }
            let begin = match is_record {
                true => record_offset(var.begin, numrecs - 1, var.record_stride)?,
                false => var.begin,
            };
            if begin < len && len - begin < bytes {
                let end = begin.saturating_add(bytes);
                return Err(Code::Truncated
                    .error(format!(
                        "variable `{}` is cut off: {} ends at byte {end}, but the file at {len}",
                        var.name,
                        if is_record { format!("its record {}", numrecs - 1) } else { "it".to_owned() }
                    ))
                    .with_hint("restore the file; mode r can read complete variables one by one"));
            }
            if is_record {
                (in_records, last_record) = (true, last_record.min(begin));
            }
        }
        at += batch.len() as u64;
    }
    if in_records && last_record >= len {
        return Err(Code::Truncated.error(format!(
            "the header states {numrecs} records, the last of which begins at byte {last_record}, but the file ends at \
             {len}"
        ))
        .with_hint("the file was cut, or its number of records (offset 4) is wrong: restore it"));
    }
    Ok(())
}

/// Checks that records can be added: that all record variables are inside one record.
///
/// Errors: `Invalid` that names the variable which is not.
pub(super) fn can_grow(header: &Header, layout: &Layout) -> Result<()> {
    let Some((var, end)) = outside_record(header, layout).next() else { return Ok(()) };
    let (var, last) = (header.vars.get(var), layout.record_begin.saturating_add(layout.record_size));
    Err(Error::invalid(format!(
        "variable `{}`: its first record ends at byte {end}, after the file's first record, which ends at \
         {last}: new records would overwrite others",
        var.name()
    ))
    .with_hint("convert the file, and write to the new one"))
}
