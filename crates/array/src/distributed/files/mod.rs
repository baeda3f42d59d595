//! The files of a group of sets: CDF-5 files that every netCDF tool opens, with the same bytes for any number of ranks.
//!
//! | module | |
//! |---|---|
//! | [`sets`] | sets, and how each is a variable |
//! | [`organisation`] | which file a set goes to at a step |
//! | [`image`] | the header of a file, and where its variables lie |
//! | [`sums`] | checksums of what ranks write |
//! | [`checked`] | what ranks read, checked |
//! | [`deferred`] | writes that a thread makes |
//! | [`direct_io`] | reading and writing past the page cache |
//! | [`show`] | what a killed job did not live to show |
//! | [`group_files`] | the files on all ranks: made, written into, shown |

pub mod checked;
pub mod deferred;
pub mod direct_io;
pub mod group_files;
pub mod image;
pub mod organisation;
pub mod sets;
pub mod show;
pub mod sums;
