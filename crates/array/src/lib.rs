//! Arrays in files: [`container`] reads and writes netCDF classic files and the partitioned header, alone
//! or by many ranks at once; [`distributed`] spreads global arrays over the ranks of a job.
//!
//! Nothing here opens a file or sends a message but through `core::env`.

pub mod container;
pub mod distributed;
