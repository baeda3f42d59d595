//! What comes from other formats and goes to them: netCDF, GRIB, FDB, files outside a store, provenance.
//!
//! `ingest` finds out what a file is and archives its fields; [`export`] writes fields as
//! files; `grib` archives messages by their MARS keys; [`outside`] names the files that a run's data stay in; [`helper`]
//! is the Python process that does what needs a library of the field; [`lineage`] turns provenance that others recorded
//! into rows of the graph.
//!
//! Invariants:
//! * no library of another format is linked: what we cannot read ourselves goes through the helper;
//! * a store knows nothing of this: it is given keys and bytes by the calls that everybody has;
//! * where a file is refused nothing of it is archived, and the report says why.
//!
//! ```
//! use fieldstone::export::{ExportOptions, export};
//! use fieldstone::{Code, OpenOptions};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let exported = export(&store, &[], "fields.xls".as_ref(), &ExportOptions::default());
//! assert_eq!(exported.err().map(|error| error.code()), Some(Code::FileFormat));
//! # Ok::<(), fieldstone::Error>(())
//! ```

pub mod export;
pub(crate) mod grib;
pub mod helper;
pub(crate) mod ingest;
pub mod lineage;
pub mod outside;
pub(crate) mod shared_helper;
