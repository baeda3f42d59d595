//! Compares the positions of data with the end of the file.

use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::parse::{Finding, Findings, shown};

/// Compares the position of one variable after another with the end of the file. Ignores padding: the last padding of
/// a file may be missing.
#[derive(Debug, Default)]
pub(super) struct Ends {
    file_len: u64,
    /// The offset from which begins count.
    base: u64,
    /// Name and end of the first variable that the end of the file cuts: without overlaps there is at most one.
    cut: Option<(String, u64)>,
    unwritten: u64,
    /// Name and begin of the first variable that was never written.
    first: Option<(String, u64)>,
}

impl Ends {
    pub fn new(file_len: u64, base: u64) -> Ends {
        Ends { file_len, base, ..Ends::default() }
    }

    pub fn var(&mut self, name: &str, begin: u64, bytes: u64) {
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

    /// Reports variables that are cut or missing: of a record, if its number is given.
    pub fn finish(self, record: Option<u64>, findings: &mut Findings) {
        let (file_len, unwritten) = (self.file_len, self.unwritten);
        let rule = if record.is_some() { "a file holds its records" } else { "a file holds its data" };
        let of_record = record.map_or(String::new(), |number| format!(" of record {number}"));
        if let Some((name, end)) = self.cut {
            let message = format!("its data{of_record} end at {end}, but the file ends at {file_len}");
            let finding = Finding::error(file_len, format!("variable `{name}`"), rule, message);
            findings.push(finding.with_hint("the file was cut, or its writer stopped: get a complete copy"));
        }
        if let Some((name, begin)) = self.first {
            let message = format!(
                "the file ends at {file_len}, before the data{of_record} of {unwritten} variables, the first at {begin}: never written"
            );
            findings.push(Finding::warning(file_len, format!("variable `{name}`"), rule, message));
        }
    }
}

/// The offset of the last record. If a record is completely beyond the end of the file, it is missing: returns
/// `None`, and adds a finding. The number of records is at an offset.
pub(super) fn last_record(
    layout: &Layout,
    numrecs: (u64, u64),
    file_len: u64,
    findings: &mut Findings,
) -> Option<u64> {
    let ((numrecs, at), rule) = (numrecs, "a file holds its records");
    let before_last = layout.record_size.checked_mul(numrecs.saturating_sub(1));
    let last = before_last.and_then(|bytes| layout.record_begin.checked_add(bytes));
    let there = last.filter(|last| *last < file_len);
    if there.is_none() {
        let held = layout.records_in(file_len);
        let message = format!("{numrecs} records of {} bytes, but the file holds {held}", layout.record_size);
        let finding = Finding::error(at, "", rule, message);
        findings.push(finding.with_hint("the file was cut, or its number of records is wrong"));
    }
    there
}
