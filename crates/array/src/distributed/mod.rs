//! Distributed arrays: what the ranks of a job hold of global arrays, in files that any tool opens (SDM, 2001).
//!
//! | module | |
//! |---|---|
//! | [`view`] | what of a global array a rank holds |
//! | `blocks` | the blocks in which arrays are summed and checked |
//! | [`buffer`] | buffers of callers, at any strides |
//! | [`plan`] | who sends which elements to whom |
//! | [`files`] | the files of a group of sets |
//! | [`group`] | sets of a group, written and read by their views |
//! | [`import`] | files from outside |
//! | [`mesh`] | unstructured meshes |
//! | [`partition`] | each rank's part of an unstructured mesh |

mod agreed;
mod blocks;
pub mod buffer;
pub mod files;
pub mod group;
pub mod import;
pub mod mesh;
pub mod partition;
pub mod plan;
pub mod view;
