//! The formats of every byte of a Fieldstone store that outlives a process: each is parsed and written in one
//! place. Pure: no code here opens a file. The normative text is `spec/store-format.md`.
//!
//! | module | bytes |
//! |---|---|
//! | [`marker`] | `fieldstone.store`: identity and schema of a store |
//! | [`log`] | `logs/<id>.log`: header, frames, commit records |
//! | [`attempt`] | the job to which a log and its commits belong |
//! | [`owner`], [`flush_part`], [`transaction_id`] | to whom a log belongs and which process writes it; flushes of clients; ids of transactions |
//! | [`log_end`] | `logs/<id>.end`: the end of a log |
//! | [`takeover`], [`table`] | `logs/<owner>-<n>.takeover`: what stands in for ended logs, in sorted tables |
//! | [`origin`] | the commit from which entries were moved |
//! | [`data`] | `data/<id>-<n>.data`: header in front of blocks |
//! | [`segment`] | segments: sorted entries, directory, axes, filter |
//! | [`entry`] | the value of an index entry: the description of a field and the location of its blocks |
//! | [`block`] | blocks and block tables |
//! | [`chunk`] | chunks for readers of Zarr |
//! | [`keys`] | keys as bytes whose order is the typed order |
//! | [`board`] | `boards/*.board`: a board slot for each writer |
//! | [`claim`] | `logs/<hash>.claim`: the owner of a dataset, in a store of several users |
//! | [`version`], [`commit_id`] | texts that name a snapshot, a commit |
//! | [`grib`] | GRIB messages: their bounds, their fields, their headers |
//! | [`netcdf`] | netCDF classic files, and the parts that the partitioned header shares with them |
//! | [`partitioned`] | the partitioned header: index table, metadata blocks, indexes of paths and names |
//! | [`pio`] | decomposition files of ParallelIO |
//! | [`catalog`] | side records of runs, steps, variables, tags and attributes |
//! | [`partition`] | history files of partitioned meshes: edges by node, and finished parts |
//! | [`graph`] | side records of vertices and relations |
//! | [`graph_segment`] | segments of the graph's index, and their list |
//! | [`graph_message`] | messages between the slots of that index |
//! | [`schema_extension`] | side records that extend the schema |
//! | [`setting`] | side records with settings for a whole store |
//! | [`acceptance`] | side records that accept a loss |
//! | [`store_record`] | side records that speak of many entries: ranges, rules, holds, pointers, hand-overs |
//! | [`side`] | bodies of side records, compressed if that is shorter |
//! | [`value`], [`value_test`], `columns` | one value; a test of values; columns of numbers and texts |
//! | [`content_sum`] | the checksum of content that ranks hold in parts |
//! | [`helper`] | frames on the pipe to the helper process |
//! | [`darshan`] | those frames for a Darshan log |
//!
//! Invariants: integers are little-endian except inside keys and containers; every parse checks bounds and returns
//! `Corrupt` with the offset and the rule broken; nothing allocates more than its input justifies.

pub mod acceptance;
pub mod array_source;
pub mod attempt;
pub mod block;
pub mod board;
pub mod bytes;
pub mod catalog;
pub mod chunk;
pub mod claim;
mod columns;
pub mod commit_id;
pub mod content_sum;
pub mod copy_mark;
pub mod darshan;
pub mod data;
pub mod entry;
pub mod erased;
pub mod flush_part;
pub mod graph;
pub mod graph_message;
pub mod graph_segment;
pub mod grib;
pub mod helper;
pub mod keys;
pub mod location;
pub mod log;
pub mod log_end;
pub mod marker;
pub mod netcdf;
pub mod origin;
pub mod owner;
pub mod partition;
pub mod partitioned;
pub mod pio;
pub mod schema_extension;
pub mod segment;
pub mod setting;
pub mod side;
pub mod store_record;
pub mod table;
pub mod takeover;
pub mod transaction_id;
pub mod value;
pub mod value_test;
pub mod version;

pub use fieldstone_core::id::Id;
use fieldstone_core::{Code, Error};

/// Newest version of the on-disk format: a log that uses something new has it.
pub const FORMAT_VERSION: u32 = 2;

/// Oldest version, written unless a log needs a newer one. Markers, data logs, boards and claims have no
/// other version.
pub const FIRST_VERSION: u32 = 1;

/// Whether this release reads logs of a version.
pub(crate) fn is_known(version: u32) -> bool {
    (FIRST_VERSION..=FORMAT_VERSION).contains(&version)
}

/// The error for a file whose version this release does not know.
pub fn unknown_version(what: impl std::fmt::Display, version: impl std::fmt::Display) -> Error {
    let version = version.to_string();
    let hint = match version.as_str() {
        "0" => "version 0 was never released: make the store again from its sources",
        _ => "use a release that knows this version",
    };
    Code::FormatVersion
        .error(format!("{what} has format version {version}, which this release does not know"))
        .with_hint(hint)
}

/// The checksum of all formats: CRC-32C (Castagnoli).
pub fn crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
}

/// Continues a checksum: `crc_append(crc(a), b)` is the checksum of a and b together.
pub fn crc_append(sum: u32, data: &[u8]) -> u32 {
    crc32c::crc32c_append(sum, data)
}
