//! The files of a group of sets: CDF-5 files that every netCDF tool can open, with the same bytes for any number of
//! ranks.
//!
//! | module | what it does |
//! |---|---|
//! | [`sets`] | sets, and their form as variables |
//! | [`organisation`] | the file of a set at a step |
//! | [`image`] | the header of a file, and the positions of its variables |
//! | [`sums`] | checksums of written data |
//! | [`checked`] | verified reads |
//! | [`deferred`] | writes by a thread |
//! | [`direct_io`] | reads and writes without the page cache |
//! | [`show`] | the last part of a killed job's flush |
//! | [`group_files`] | the files on all ranks: created, written, shown |

pub mod checked;
pub mod deferred;
pub mod direct_io;
pub mod group_files;
pub mod image;
pub mod organisation;
pub mod sets;
pub mod show;
pub mod sums;
