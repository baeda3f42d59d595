//! Distributed arrays: what the ranks of a job hold of global arrays, in files that any tool opens (SDM, 2001).
//!
//! | module | |
//! |---|---|
//! | [`files`] | the files of a group of sets |

pub mod files;
