//! Other formats, in and out: netCDF, GRIB, FDB, files outside a store, provenance.
//!
//! `ingest` recognises a file and archives its fields; [`export`] writes fields as files; `grib` archives messages by
//! their MARS keys; [`outside`] names the files that hold a run's data; [`helper`] is the Python process for work that
//! needs a domain library; [`lineage`] turns external provenance into rows of the graph.
//!
//! Invariants:
//! * no library of another format is linked: formats that we cannot read ourselves go through the helper;
//! * a store knows nothing of this: it receives keys and bytes through its public calls;
//! * a refused file archives nothing, and the report gives the reason.
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
