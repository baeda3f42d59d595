//! Distributed arrays: what the ranks of a job hold of global arrays, in files that any tool opens (SDM, 2001).
//!
//! | module | |
//! |---|---|
//! | [`view`] | what of a global array a rank holds |
//! | [`files`] | the files of a group of sets |

pub mod files;
pub mod view;
