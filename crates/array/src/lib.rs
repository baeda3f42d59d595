//! Arrays in files: [`container`] reads and writes netCDF classic files and the partitioned header, on one rank or
//! many; [`distributed`] spreads global arrays over the ranks of a job.
//!
//! All files and messages go through `core::env`.

pub mod container;
pub mod distributed;
