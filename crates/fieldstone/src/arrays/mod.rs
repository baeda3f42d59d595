//! Distributed arrays of a store: the ranks of a job write and read groups of sets, each rank its own part (SDM, 2001).
//!
//! * `job`: an [`ArrayJob`] is a run that all ranks make or continue together; `inner`: its state on a rank; `declare`,
//!   `flush`: its groups, and its flushes, each one commit by rank 0;
//! * `folder`: the folder of its files; `pending`: unflushed work;
//! * `group`: an [`ArrayGroup`] of a job: views, writes, reads;
//! * `spec`: the declaration of a group, and its record in the catalog; `attributes`: values as netCDF stores them;
//! * `partitions`: a rank's part of a mesh; `imports`: external files; `meshes`: unstructured meshes, and groups on
//!   them;
//! * `inventory`: a run's arrays in a store; `rewrite`: rewrites a run's arrays; `show`: completes files that a killed
//!   job left;
//! * `marked`: hints for files that tags give;
//! * `level`: chooses the level of file organisation that pays;
//! * `stored`: meshes in one process; `xdmf`: a text with which other programs draw fields on a mesh in place;
//! * `source`: the place of flushed arrays; `logged`: arrays that ranks write into the store's logs; `logged_array`:
//!   reads such an array like a file; `carried`: files of arrays that come from another store.
//!
//! Invariants:
//! * all calls of jobs and groups are collective; a failure on one rank is a failure on all, and the job goes on;
//! * only rank 0 talks to the store and its catalog: one connection, one commit per flush;
//! * no file shows a step before the store does (A-10), and a job only writes files that it made.
//!
//! ```
//! use fieldstone::arrays::{ArrayJob, GroupOptions, JobOptions, SetOptions, View};
//! use fieldstone::{Array, DType, OpenOptions};
//! # fn main() -> fieldstone::Result<()> {
//! # let folder = tempfile::tempdir().map_err(|e| fieldstone::Error::internal(e.to_string()))?;
//! # let url = folder.path().join("store").display().to_string();
//! let store = fieldstone::open(&url, &OpenOptions::default())?;
//! let job = ArrayJob::open(&store, None, Some("demo"), &JobOptions::default())?;
//! let sets = [SetOptions::new("p", DType::F8, &[4, 2])];
//! let group = job.group("flow", &GroupOptions::new(sets))?;
//! let p: Vec<u8> = (0..8).flat_map(|i| f64::from(i).to_ne_bytes()).collect();
//! group.write_dense("p", 0, &p)?;
//! job.flush()?;
//! assert_eq!(group.read_dense("p", 0, Some(&View::block(&[1, 0], &[1, 2])))?, p[16..32]);
//! assert_eq!(store.run("demo")?.read("p", Some(0))?.nbytes()?, 64);
//! # Ok(()) }
//! ```

mod attributes;
mod carried;
mod declare;
mod flush;
mod folder;
mod group;
mod imports;
mod inner;
mod inventory;
mod job;
mod level;
mod logged;
mod logged_array;
mod marked;
mod memory;
mod meshes;
mod partitions;
mod pending;
mod report;
mod rewrite;
mod show;
mod source;
mod spec;
mod stored;
mod xdmf;

pub use attributes::netcdf_attrs;
pub(crate) use carried::{CarriedArray, CarriedFiles, CarriedPlace};
pub use fieldstone_array::distributed::group::{Memory, MemoryMut, READ, WRITE, dense_strides};
pub use fieldstone_array::distributed::mesh::{
    EdgeShare, MeshArray, MeshAxis, MeshContent, MeshCoordinate, MeshPoints, MeshRows,
};
pub use fieldstone_array::distributed::partition::{Partition, PartitionMethod, PartitionSource};
pub use fieldstone_array::distributed::plan::Method;
pub use fieldstone_array::distributed::view::{Halo, View};
pub use fieldstone_core::env::comm::hints::Hints;
pub(crate) use folder::new_job;
pub use group::{ArrayGroup, ReadRequest, WriteOptions};
pub use imports::{FileRead, JobImport};
pub use inner::JobOptions;
pub use inventory::{ArrayFile, GroupInventory, groups_of};
pub use job::ArrayJob;
pub use meshes::JobMesh;
pub(crate) use partitions::edges_of_import;
pub use partitions::{JobPartition, MeshEdges, MeshVector, PartitionOptions};
pub use report::{JobReport, Phase};
pub use rewrite::{RewrittenGroup, rewrite};
pub(crate) use show::is_open;
pub use show::{ShownFiles, opens, show};
pub use spec::{GroupOptions, LevelChoice, SetOptions};
pub(crate) use stored::check_mesh_of;
pub use stored::{NodeRows, StoredMesh, check_mesh, mesh_path};
pub use xdmf::{XdmfReport, write_xdmf};

use fieldstone_core::env::comm::{Step, Team};
use fieldstone_core::{Error, Result};

/// The first error of calls that must all be made, whatever their results: they are collective.
fn each(outcomes: impl Iterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for outcome in outcomes {
        first = first.and(outcome);
    }
    first
}

/// Takes part, as failed, in the call that the other ranks make. Returns the error that the others get, too.
fn refuse(team: &Team, call: impl Into<Step>, error: Error) -> Error {
    match team.agree::<()>(call, Err(error)) {
        Err(error) => error,
        Ok(()) => Error::internal("a rank failed, and its team did not notice"),
    }
}
