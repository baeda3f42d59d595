//! Parts of a partitioned header, as the checks read them.
//!
//! Invariant: a part is read only if the file is long enough to hold it, so that the file's size limits memory,
//! whatever its numbers are.

use fieldstone_core::Result;
use fieldstone_format::netcdf::parse::{Finding, Findings, Source};
use fieldstone_format::partitioned::{Head, Table};

/// The state shared by all steps of the check.
pub(super) struct File<'f, S: ?Sized> {
    pub source: &'f S,
    pub len: u64,
    pub head: &'f Head,
    pub table: &'f Table,
}

impl<S: Source + ?Sized> File<'_, S> {
    /// Bytes of a part of the header; adds a finding if the file ends before them.
    pub fn part(
        &self,
        offset: u64,
        len: u64,
        what: &str,
        findings: &mut Findings,
    ) -> Result<Option<Vec<u8>>> {
        part(self.source, self.len, (offset, len), what, findings)
    }
}

/// As [`File::part`], before head and table are known.
pub(super) fn part(
    source: &(impl Source + ?Sized),
    file_len: u64,
    (offset, len): (u64, u64),
    what: &str,
    findings: &mut Findings,
) -> Result<Option<Vec<u8>>> {
    let inside = offset.checked_add(len).is_some_and(|end| end <= file_len);
    let mut bytes = vec![0; if inside { len as usize } else { 0 }];
    if inside && source.read_at(&mut bytes, offset)? == bytes.len() {
        return Ok(Some(bytes));
    }
    let message = format!("{len} bytes from here on, but the file ends at {file_len}");
    let finding = Finding::error(offset, what, "a file holds its whole header", message);
    findings.push(finding.with_hint("the file was cut: get a complete copy"));
    Ok(None)
}
