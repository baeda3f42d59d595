//! Moving hidden versions of the graph to another store.
//!
//! Invariants:
//! * a version is marked as moved only after it is durable in the other store;
//! * a crash leaves a version here, or in both stores, and never in neither; another run finishes the move;
//! * memory holds one portion: 65,536 versions, or 16 MiB of their properties and one version.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::graph::Archive;
use fieldstone_graph::archive::ArchiveReport;
use fieldstone_store::api::{Admin, FieldAccess};

use crate::Session;
use crate::Store;
use crate::transfer::open_target;

/// Moves the user's own versions that newer ones hide at a moment and ever after to the graph of the store at `url`,
/// which is made if it is absent; without `doit` it only reports what would move. Invalid for a moment in the future,
/// for the store itself and one in memory, Conflict if a type is declared differently there.
///
/// ```
/// use fieldstone::{OpenOptions, Session};
/// use fieldstone::graph::{VertexName, VertexPut, archive};
/// # let folder = tempfile::tempdir().map_err(|e| fieldstone::Error::internal(e.to_string()))?;
/// # let cold = folder.path().join("cold").display().to_string();
/// let store = fieldstone::open("memory:", &OpenOptions::default())?;
/// let file = VertexName::new("file", "/data/a.nc");
/// for time in [1, 2] {
///     store.graph().put_vertices(vec![VertexPut { time: Some(time), ..VertexPut::new(file.clone()) }], &Session::default())?;
/// }
/// assert_eq!(archive(&store, 3, &cold, true)?.vertices, 1);
/// let there = fieldstone::open(&cold, &OpenOptions::default())?;
/// assert_eq!(there.graph().vertex(&file, None, &Session::default())?.stamp, 1);
/// # Ok::<(), fieldstone::Error>(())
/// ```
pub fn archive(store: &Store, before: u64, url: &str, doit: bool) -> Result<ArchiveReport> {
    if url == "memory:" {
        return Err(Error::invalid("a store in memory ends with its process").with_hint("give a folder"));
    }
    if !doit {
        return store.graph().hidden(before, &mut |_| Ok(()), &Session::default());
    }
    let to = open_target(url, store)?;
    let path = crate::open::local_path(url)?;
    // Readers may run in another folder.
    let path = std::path::absolute(&path).map_err(|e| Error::io("find", &path, e))?;
    let url = path.to_str().ok_or_else(|| Error::invalid("the path of the store is not UTF-8"))?;
    archive_into(store, before, &to, url)
}

/// The same into an open store; a request for a moved version names `url`.
pub fn archive_into(store: &Store, before: u64, to: &Store, url: &str) -> Result<ArchiveReport> {
    if store.status()?.id.is_some() && store.status()?.id == to.status()?.id {
        return Err(Code::WrongStore
            .error(format!(
                "{} and {url} are the same store, or one is a copy of the other's files",
                store.url()
            ))
            .with_hint("move into another store"));
    }
    // Only mark versions that other processes can also see.
    store.flush(None)?;
    let archive = Archive { before, url: url.into() };
    let report = store.graph().hidden(
        before,
        &mut |versions| {
            to.graph().take_versions(versions, &Session::default())?;
            to.flush(None).map_err(|e| e.context("flushing the target store"))?;
            store.graph().put_stubs(&archive, versions, &Session::default())?;
            store.flush(None)
        },
        &Session::default(),
    )?;
    Ok(ArchiveReport { done: true, ..report })
}
