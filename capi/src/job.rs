//! The objects behind the handles of a job. `job_handles` gives and ends the handles.

use std::sync::{Arc, Mutex};

use fieldstone::arrays::{ArrayJob, JobPartition};
use fieldstone::catalog::StorageOrder;

/// A job, and the handles that end with it.
pub struct OpenJob {
    pub job: ArrayJob,
    /// In the order in which the handles were given, which is the same on all ranks.
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
    /// Order of the dimensions in shapes and views.
    pub order: StorageOrder,
    /// `None` after it was closed.
    pub file: Mutex<Option<T>>,
}

/// A partition and its job.
pub struct OpenPartition {
    pub owner: Arc<OpenJob>,
    pub part: JobPartition,
}
