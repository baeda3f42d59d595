//! Containers: netCDF classic files and the partitioned header, from one process or many ranks.

pub use fieldstone_array::container::{Counts, DimInfo, Format, Metadata, Strategy, VarInfo};
pub use fieldstone_core::env::comm::Comm;
