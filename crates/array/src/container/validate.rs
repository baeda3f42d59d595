//! Checks that a file obeys its format. For netCDF classic: the checks of `ncvalidator`, and others that it lacks
//! (invalid and duplicate names, `vsize`, data beyond the end of the file). For the partitioned header: all rules of
//! `spec/partitioned-header.md` about the bytes, and how far the writer of an unfinished file got.
//!
//! | module | what it checks |
//! |---|---|
//! | `report` | (the result) |
//! | `ends` | positions of data against the end of the file |
//! | `partitioned` | head, index table, positions of the parts, data; unfinished files |
//! | `parts` | parts of a partitioned header, up to the end of the file |
//! | `blocks` | metadata blocks and the objects in them |
//! | `indexes` | the path index and the name indexes against the blocks |
//! | `lists` | the path lists against the blocks |
//! | `escaping` | names of a classic file with escaped paths |
//!
//! | fault | severity |
//! |---|---|
//! | a broken rule of the grammar or of layout; data cut off in the middle | error |
//! | valid but unusual: a streaming number of records, unwritten variables (also of the last record), bytes after the data | warning |
//!
//! Invariants: nothing is changed; findings come in file order, each with its offset and rule; the check continues
//! after a finding as long as the rest still has a meaning; data bytes are not read.
//!
//! ```
//! use fieldstone_array::container::validate::validate;
//! let report = validate(&b"CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec())?;
//! assert!(report.ok);
//! let report = validate(&b"FSU\x05".to_vec())?;
//! assert!(report.findings[0].message.contains("never finished"));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod blocks;
mod ends;
mod escaping;
mod indexes;
mod lists;
mod partitioned;
mod parts;
mod report;

use fieldstone_core::Result;
use fieldstone_format::netcdf::layout::{Layout, bytes_of};
use fieldstone_format::netcdf::parse::{Examined, Findings, Source, examine};
use fieldstone_format::netcdf::trailer::{LOCATOR, Locator};
use fieldstone_format::netcdf::{Header, paths};

use super::model::Format;
use ends::{Ends, last_record};

pub use fieldstone_format::netcdf::parse::{Finding, Severity};
pub use report::Report;

/// Checks a file. An error means that reading it failed; the report lists the file's faults.
pub fn validate(source: &(impl Source + ?Sized)) -> Result<Report> {
    let mut findings = Findings::default();
    let mut report = Report::default();
    if partitioned::is_one(source)? {
        partitioned::check(source, &mut report, &mut findings)?;
    } else if let Some(file) = examine(source, &mut findings)? {
        report.format = Some(Format::Classic(file.header.version));
        report.counts = [file.places.dims, file.places.attrs, file.places.vars];
        report.header_len = file.places.header_len;
        report.paths = paths::is_escaped(&file.header.attrs);
        if report.paths {
            escaping::check(&file, &mut findings);
        }
        report.numrecs = file.header.numrecs.unwrap_or(0);
        let locator = locator(source, file.file_len)?;
        // The positions of data follow from the header, so they are checked only if the header is valid.
        if findings.ok()
            && let Ok(layout) = Layout::of(&file.header, file.places.header_len)
        {
            report.index = data(&file, &layout, locator, &mut findings, &mut report.numrecs);
        }
    }
    report.ok = findings.ok();
    report.omitted = findings.omitted.iter().sum();
    report.findings = findings.list;
    Ok(report)
}

fn locator(source: &(impl Source + ?Sized), file_len: u64) -> Result<Option<Locator>> {
    let Some(at) = file_len.checked_sub(LOCATOR) else { return Ok(None) };
    let mut bytes = [0; LOCATOR as usize];
    let read = source.read_at(&mut bytes, at)?;
    Ok(Locator::decode(bytes.get(..read).unwrap_or(&[])))
}

/// Checks the positions of data against the end of the file. Returns whether a name index follows the data.
fn data(
    file: &Examined,
    layout: &Layout,
    locator: Option<Locator>,
    findings: &mut Findings,
    numrecs: &mut u64,
) -> bool {
    let (header, file_len) = (&file.header, file.file_len);
    let index = locator.and_then(|locator| locator.places().begin(file_len, file.places.header_len));
    let data_len = index.unwrap_or(file_len);
    fixed(header, file_len, findings);
    *numrecs = header.numrecs.unwrap_or_else(|| layout.records_in(data_len));
    if header.numrecs.is_some() && layout.record_size > 0 && *numrecs > 0 {
        records(header, layout, *numrecs, file_len, findings);
    }
    let end = layout.file_len(*numrecs).unwrap_or(u64::MAX);
    let end = if header.vars.is_empty() { file.places.header_len } else { end };
    match (index, locator) {
        (Some(begin), Some(locator)) if begin >= end || header.vars.is_empty() => {
            let same = (u64::from(locator.dims), u64::from(locator.vars))
                == (file.places.dims, file.places.vars)
                && locator.header_len == file.places.header_len;
            if !same {
                let rule = "a name index describes the header";
                let message = "the name index belongs to another header: readers ignore it";
                findings.push(Finding::warning(begin, "name index", rule, message));
            }
            return true;
        }
        (Some(begin), _) => {
            let rule = "a name index follows the data";
            let message = format!("the name index begins at {begin}, data end at {end}: readers ignore it");
            findings.push(Finding::warning(begin, "name index", rule, message));
        }
        _ if file_len > end && header.numrecs.is_some() => {
            let (rule, bytes) = ("a file ends with its data", file_len - end);
            findings.push(Finding::warning(end, "", rule, format!("{bytes} bytes follow the data")));
        }
        _ => {}
    }
    false
}

/// Fixed variables: a variable cut by the end of the file is damage; variables completely beyond it were never
/// written.
fn fixed(header: &Header, file_len: u64, findings: &mut Findings) {
    let mut ends = Ends::new(file_len, 0);
    for var in header.vars.iter().filter(|var| !header.is_record(*var)) {
        ends.var(var.name(), var.begin(), bytes_of(header, var).unwrap_or(0));
    }
    ends.finish(None, findings);
}

/// Records of a classic file, whose number is at offset 4.
fn records(header: &Header, layout: &Layout, numrecs: u64, file_len: u64, findings: &mut Findings) {
    let Some(last) = last_record(layout, (numrecs, 4), file_len, findings) else { return };
    let mut ends = Ends::new(file_len, last);
    for var in header.vars.iter().filter(|var| header.is_record(*var)) {
        let begin = var.begin().saturating_sub(layout.record_begin);
        ends.var(var.name(), begin, bytes_of(header, var).unwrap_or(0));
    }
    ends.finish(Some(numrecs.saturating_sub(1)), findings);
}
