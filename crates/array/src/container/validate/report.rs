//! The result of a validation.

use fieldstone_format::netcdf::parse::Finding;

use crate::container::model::Format;

/// The result of [`validate`](super::validate).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether no rule is broken. Warnings leave it true.
    pub ok: bool,
    /// The findings, at most [`Findings::LIMIT`](fieldstone_format::netcdf::parse::Findings::LIMIT).
    pub findings: Vec<Finding>,
    /// The number of further findings.
    pub omitted: u64,
    /// The format stated in the file, if the header could be read to its end.
    pub format: Option<Format>,
    /// Number of dimensions, global attributes and variables.
    pub counts: [u64; 3],
    /// Number of records; for a streaming file, computed from its size.
    pub numrecs: u64,
    /// Bytes of the header.
    pub header_len: u64,
    /// Whether names are escaped paths.
    pub paths: bool,
    /// Whether a name index is at the end.
    pub index: bool,
}
