//! The interval between checkpoints of a program.

use fieldstone::checkpoint;
use pyo3::prelude::*;

use crate::errors::Raise;

/// Seconds of work between two checkpoints; see `fieldstone.checkpoint_interval`.
#[pyfunction]
#[pyo3(name = "_checkpoint_interval")]
pub fn checkpoint_interval(cost: f64, mtbf: f64, restart: f64) -> PyResult<f64> {
    checkpoint::interval(cost, mtbf, restart).or_raise()
}

/// Time of a run as a multiple of its work; see `fieldstone.checkpoint_overhead`.
#[pyfunction]
#[pyo3(name = "_checkpoint_overhead")]
pub fn checkpoint_overhead(interval: f64, cost: f64, mtbf: f64, restart: f64) -> PyResult<f64> {
    checkpoint::overhead(interval, cost, mtbf, restart).or_raise()
}
