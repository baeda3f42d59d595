//! The module `fieldstone._native`: parses Python's arguments, calls the facade and converts the results. It has no
//! logic of its own; the package `fieldstone` in Python is a thin layer over it.
//!
//! Modules: `data` lends memory (with `catalog::arrow`, the only `unsafe` code); `request` and `keys` convert
//! requests and keys; `opening` opens; `store`, `fields`, `listing`, `expand` and `table` are the classes; `compact`
//! takes logs over, `stats` counts; `describe` serves xarray, `chunk` Zarr; `ingest` takes files, `fdb` the fields of
//! an FDB, `grib` GRIB messages; `reports` and `errors` make objects of classes defined in Python; `log` forwards records to `logging`; `catalog` covers runs,
//! tags and attributes, `graph` provenance, `execution` executions, `context` the execution that a call belongs to,
//! `container` array files, `arrays` arrays that ranks write together; `registry` remembers open stores until the
//! program exits.
//!
//! Every call that may wait releases the interpreter's lock; no call waits for one of our locks while holding it.

mod arrays;
mod autoflush;
mod backup;
mod catalog;
mod checkpoint;
mod chunk;
mod comm;
mod compact;
mod container;
mod context;
mod data;
mod describe;
mod erase;
mod errors;
mod execution;
mod expand;
mod explain;
mod export;
mod fdb;
mod fields;
mod graph;
mod grib;
mod hold;
mod ingest;
mod interrupt;
mod keys;
mod listing;
mod locks;
mod log;
mod maintain;
mod news;
mod opening;
mod prefetch;
mod purge;
mod registry;
mod repair;
mod reports;
mod request;
mod retain;
mod sequence;
mod stats;
mod store;
mod table;
mod transaction;
mod transfer;
mod wipe;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: fieldstone::env::real::HugePages = fieldstone::env::real::HugePages;

/// HTML of an object for notebooks, from the function `name` of `fieldstone._html`.
fn html<'py, T>(py: Python<'py>, name: &str, object: &Bound<'py, T>) -> PyResult<Bound<'py, PyAny>> {
    py.import("fieldstone._html")?.getattr(name)?.call1((object.as_any(),))
}

/// The native half of the package `fieldstone`.
#[pymodule(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::arrays::{
        PyArrayGroup, PyArrayJob, PyJobImport, PyJobMesh, PyPartition, array_table, check_mesh, histories,
        meshes, open_arrays, write_xdmf,
    };
    #[pymodule_export]
    use super::backup::{backup, promote};
    #[pymodule_export]
    use super::catalog::levels::{level_of, name_at, on_level};
    #[pymodule_export]
    use super::catalog::{
        HitStream, PyCatalog, PyCoordinateAxis, PyHit, PyHitTable, PyQuery, PyRelated, PyTest, PyWhere,
        PyWriter, Region,
    };
    #[pymodule_export]
    use super::checkpoint::{checkpoint_interval, checkpoint_overhead};
    #[pymodule_export]
    use super::chunk::{PyBlock, field, length, made};
    #[pymodule_export]
    use super::comm::check_comm;
    #[pymodule_export]
    use super::compact::compact;
    #[pymodule_export]
    use super::container::{PyContainer, PyVar, container_create, container_open};
    #[pymodule_export]
    use super::container::{
        PyView, view_block, view_cyclic, view_decomposition, view_irregular, view_joined,
    };
    #[pymodule_export]
    use super::context::PyMembership;
    #[pymodule_export]
    use super::describe::Cube;
    #[pymodule_export]
    use super::erase::erase;
    #[pymodule_export]
    use super::execution::{PyExecution, record_late_reads};
    #[pymodule_export]
    use super::expand::{Expansion, ExpansionIterator};
    #[pymodule_export]
    use super::export::{export_messages, exports_grib, written};
    #[pymodule_export]
    use super::fdb::{fdb_schema, ingest_fdb};
    #[pymodule_export]
    use super::fields::{FieldsIterator, PyField, PyFields, Reader};
    #[pymodule_export]
    use super::graph::{
        PyGraph, PyPaths, PyTravelled, Traced, audit, compare, export, graph_of, partition, partitions_of,
        script,
    };
    #[pymodule_export]
    use super::grib::grib_keys;
    #[pymodule_export]
    use super::hold::{hold, holds, release};
    #[pymodule_export]
    use super::ingest::{ingest, suggest_schema};
    #[pymodule_export]
    use super::keys::Key;
    #[pymodule_export]
    use super::listing::{Entry, PyListing, list_since};
    #[pymodule_export]
    use super::locks::{
        hand_over, hand_overs, hidden, locks, overlays, pointers, reindex, set_hidden, set_lock, set_overlay,
    };
    #[pymodule_export]
    use super::maintain::maintain;
    #[pymodule_export]
    use super::opening::open;
    #[pymodule_export]
    use super::prefetch::prefetch;
    #[pymodule_export]
    use super::purge::purge;
    #[pymodule_export]
    use super::registry::finish;
    #[pymodule_export]
    use super::repair::repair;
    #[pymodule_export]
    use super::request::{PyRequest, within};
    #[pymodule_export]
    use super::retain::{retain, rules};
    #[pymodule_export]
    use super::sequence::items;
    #[pymodule_export]
    use super::stats::stats_by;
    #[pymodule_export]
    use super::store::{Opened, Store, comm_of};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::transaction::{PyTransaction, decide, transaction};
    #[pymodule_export]
    use super::transfer::transfer;
    #[pymodule_export]
    use super::wipe::wipe;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::log::start();
        let python =
            module.py().import("sys")?.getattr("executable")?.extract::<Option<std::path::PathBuf>>()?;
        if let Some(python) = python.filter(|python| !python.as_os_str().is_empty()) {
            fieldstone::helper::use_python(python);
        }
        let kinds: Vec<&str> = fieldstone::ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        module.add("ERROR_KINDS", kinds)?;
        use pyo3::types::IntoPyDict;
        let code = |code: &fieldstone::Code| (code.as_str(), (code.kind().name(), code.is_retryable()));
        module.add("ERROR_CODES", fieldstone::Code::ALL.iter().map(code).into_py_dict(module.py())?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
