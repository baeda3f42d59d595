//! Whether a file keeps its format. Of netCDF classic: what `ncvalidator` looks at, and what it does not (illegal
//! and doubled names, `vsize`, data that the file does not hold). Of the partitioned header: all that
//! `spec/partitioned-header.md` says of the bytes, and how far the writer of an unfinished file came.
//!
//! | module | what it looks at |
//! |---|---|
//! | `partitioned` | head, index table, how the parts lie, the data; unfinished files |
//! | `blocks` | metadata blocks and the objects in them |
//! | `indexes` | the path index and the name indexes against what the blocks say |
//! | `lists` | the path lists against what the blocks say |
//! | `spelling` | names of a classic file that spells paths |
//!
//! | what | as |
//! |---|---|
//! | a broken rule of the grammar or of layout; data cut off in the middle | error |
//! | legal but odd: a streaming number of records, variables (also of the last record) that nobody wrote, bytes after the data | warning |
//!
//! Invariants: nothing is changed; findings are in the order of the file, each with its offset and rule; the
//! check goes on after a finding where what follows still has a meaning; bytes of data are not read.
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
mod indexes;
mod lists;
mod partitioned;
mod spelling;

use fieldstone_core::Result;
use fieldstone_format::netcdf::layout::{Layout, bytes_of};
use fieldstone_format::netcdf::parse::{Examined, Findings, Source, examine, shown};
use fieldstone_format::netcdf::trailer::{LOCATOR, Locator};
use fieldstone_format::netcdf::{Header, paths};

use super::model::Format;

pub use fieldstone_format::netcdf::parse::{Finding, Severity};

/// What [`validate`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether no rule is broken. Warnings leave it true.
    pub ok: bool,
    /// What was found, at most [`Findings::LIMIT`].
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub left_out: u64,
    /// The format that the file says it has, where the header could be read to its end.
    pub format: Option<Format>,
    /// Number of dimensions, global attributes and variables.
    pub counts: [u64; 3],
    /// Number of records; of a streaming file, what its size makes.
    pub numrecs: u64,
    /// Bytes of the header.
    pub header_len: u64,
    /// Whether names are paths, spelled.
    pub paths: bool,
    /// Whether a name index stands at the end.
    pub index: bool,
}

/// Checks a file. Errors are those of reading it; what is wrong with it is in the report.
pub fn validate(source: &(impl Source + ?Sized)) -> Result<Report> {
    let mut findings = Findings::default();
    let mut report = Report::default();
    if partitioned::is_one(source)? {
        partitioned::check(source, &mut report, &mut findings)?;
    } else if let Some(file) = examine(source, &mut findings)? {
        report.format = Some(Format::Classic(file.header.version));
        report.counts = [file.places.dims, file.places.attrs, file.places.vars];
        report.header_len = file.places.header_len;
        report.paths = paths::is_spelled(&file.header.attrs);
        if report.paths {
            spelling::check(&file, &mut findings);
        }
        report.numrecs = file.header.numrecs.unwrap_or(0);
        let locator = locator(source, file.file_len)?;
        // Places of data follow from the header, so they are looked at only where that is sound.
        if findings.ok()
            && let Ok(layout) = Layout::of(&file.header, file.places.header_len)
        {
            report.index = data(&file, &layout, locator, &mut findings, &mut report.numrecs);
        }
    }
    report.ok = findings.ok();
    report.left_out = findings.left_out.iter().sum();
    report.findings = findings.list;
    Ok(report)
}

fn locator(source: &(impl Source + ?Sized), file_len: u64) -> Result<Option<Locator>> {
    let Some(at) = file_len.checked_sub(LOCATOR) else { return Ok(None) };
    let mut bytes = [0; LOCATOR as usize];
    let read = source.read_at(&mut bytes, at)?;
    Ok(Locator::decode(bytes.get(..read).unwrap_or(&[])))
}

/// Where data lie against where the file ends. Gives whether a name index follows them.
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
                let message = "the name index is of another header: readers pass it over";
                findings.push(Finding::warning(begin, "name index", rule, message));
            }
            return true;
        }
        (Some(begin), _) => {
            let rule = "a name index follows the data";
            let message =
                format!("the name index begins at {begin}, data end at {end}: readers pass it over");
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

/// Fixed variables: one that the end cuts is damage; those that lie wholly behind it were never written.
fn fixed(header: &Header, file_len: u64, findings: &mut Findings) {
    let mut ends = Ends::new(file_len, 0);
    for var in header.vars.iter().filter(|var| !header.is_record(*var)) {
        ends.var(var.name(), var.begin(), bytes_of(header, var).unwrap_or(0));
    }
    ends.finish(None, findings);
}

/// Looks at one variable after another, where it lies against the end of the file. Padding is not looked at: the
/// last of a file may be missing.
#[derive(Debug, Default)]
struct Ends {
    file_len: u64,
    /// The offset from which begins count.
    base: u64,
    /// Name and end of the first that the end of the file cuts: where nothing overlaps there is one at most.
    cut: Option<(String, u64)>,
    unwritten: u64,
    /// Name and begin of the first of those that were never written.
    first: Option<(String, u64)>,
}

impl Ends {
    fn new(file_len: u64, base: u64) -> Ends {
        Ends { file_len, base, ..Ends::default() }
    }

    fn var(&mut self, name: &str, begin: u64, bytes: u64) {
        let (begin, file_len) = (self.base.saturating_add(begin), self.file_len);
        let end = begin.saturating_add(bytes);
        if bytes == 0 || end <= file_len {
            return;
        }
        if begin >= file_len {
            self.unwritten += 1;
            self.first.get_or_insert_with(|| (shown(name), begin));
        } else {
            self.cut.get_or_insert_with(|| (shown(name), end));
        }
    }

    /// Tells what is cut or missing: of a record, where its number is given.
    fn finish(self, record: Option<u64>, findings: &mut Findings) {
        let (file_len, unwritten) = (self.file_len, self.unwritten);
        let rule = if record.is_some() { "a file holds its records" } else { "a file holds its data" };
        let of_record = record.map_or(String::new(), |number| format!(" of record {number}"));
        if let Some((name, end)) = self.cut {
            let message = format!("its data{of_record} end at {end}, but the file ends at {file_len}");
            let finding = Finding::error(file_len, format!("variable `{name}`"), rule, message);
            findings.push(finding.with_hint("the file was cut, or its writer stopped: take a whole copy"));
        }
        if let Some((name, begin)) = self.first {
            let message = format!(
                "the file ends at {file_len}, before the data{of_record} of {unwritten} variables, the first at {begin}: never written"
            );
            findings.push(Finding::warning(file_len, format!("variable `{name}`"), rule, message));
        }
    }
}

/// Records of a classic file, whose number of them stands at offset 4.
fn records(header: &Header, layout: &Layout, numrecs: u64, file_len: u64, findings: &mut Findings) {
    let Some(last) = last_record(layout, (numrecs, 4), file_len, findings) else { return };
    let mut ends = Ends::new(file_len, last);
    for var in header.vars.iter().filter(|var| header.is_record(*var)) {
        let begin = var.begin().saturating_sub(layout.record_begin);
        ends.var(var.name(), begin, bytes_of(header, var).unwrap_or(0));
    }
    ends.finish(Some(numrecs.saturating_sub(1)), findings);
}

/// Where the last record begins. A record that lies wholly behind the end of the file is not there: `None`, and a
/// finding. The number of records stands at an offset.
fn last_record(layout: &Layout, numrecs: (u64, u64), file_len: u64, findings: &mut Findings) -> Option<u64> {
    let ((numrecs, at), rule) = (numrecs, "a file holds its records");
    let before_last = layout.record_size.checked_mul(numrecs.saturating_sub(1));
    let last = before_last.and_then(|bytes| layout.record_begin.checked_add(bytes));
    let there = last.filter(|last| *last < file_len);
    if there.is_none() {
        let held = layout.records_in(file_len);
        let message = format!("{numrecs} records of {} bytes, the file holds {held}", layout.record_size);
        let finding = Finding::error(at, "", rule, message);
        findings.push(finding.with_hint("the file was cut, or its number of records is wrong"));
    }
    there
}
