//! What handles of a job, and of what was made of it, stand for. `job_handles` gives and ends them.

use std::sync::{Arc, Mutex};

use fieldstone::arrays::{ArrayJob, JobPartition};
use fieldstone::catalog::StorageOrder;

/// A job, and the handles that end with it.
pub struct OpenJob {
    pub job: ArrayJob,
    /// In the order in which they were given, which is the same on all ranks.
    pub handles: Mutex<Vec<JobHandle>>,
}

/// A handle by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum JobHandle {
    Group(usize),
    Import(usize),
    Mesh(usize),
    Partition(usize),
}

/// A file that all ranks of a job have open: an import or a mesh.
pub struct OpenFile<T> {
    pub owner: Arc<OpenJob>,
    /// In which order the dimensions of its variables are said.
    pub order: StorageOrder,
    /// None where it was closed.
    pub file: Mutex<Option<T>>,
}

/// A partition and its job.
pub struct OpenPartition {
    pub owner: Arc<OpenJob>,
    pub part: JobPartition,
}
