//! Distributed arrays: the ranks' parts of global arrays, in files that any tool can open (SDM, 2001).
//!
//! | module | what it does |
//! |---|---|
//! | [`view`] | the part of a global array that a rank holds |
//! | `blocks` | the blocks by which arrays are checksummed and verified |
//! | [`buffer`] | callers' buffers, with any strides |
//! | [`plan`] | moves elements between ranks and files |
//! | [`files`] | the files of a group of sets |
//! | [`group`] | sets of a group, written and read by their views |
//! | [`import`] | outside files |
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
