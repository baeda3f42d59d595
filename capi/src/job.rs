//! What a handle of a job stands for.

use std::sync::Mutex;

use fieldstone::arrays::ArrayJob;

/// A job, and the handles of its groups, which end with it.
pub struct OpenJob {
    pub job: ArrayJob,
    pub groups: Mutex<Vec<usize>>,
}
