//! What a validation gives.

use fieldstone_format::netcdf::parse::Finding;

use crate::container::model::Format;

/// What [`validate`](super::validate) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether no rule is broken. Warnings leave it true.
    pub ok: bool,
    /// What was found, at most [`Findings::LIMIT`](fieldstone_format::netcdf::parse::Findings::LIMIT).
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
    /// Whether names are paths, escaped.
    pub paths: bool,
    /// Whether a name index stands at the end.
    pub index: bool,
}
