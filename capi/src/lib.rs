//! Fieldstone for C and Fortran: the functions of `include/fieldstone.h`.
//!
//! This crate converts and calls; it holds no logic of a store. Its invariants:
//! * no call crashes on an argument that it can check: null pointers, closed or mistaken handles, text that
//!   is not UTF-8, and ranks and sizes out of range are `Invalid`;
//! * no panic leaves it: [`status::call`] turns a panic into `Internal`;
//! * a handle is a number that calls look up, never an address that they follow (see [`handles`]), so any
//!   thread may use it, even after another has closed it;
//! * the header's preamble lists the caller's promises: texts end in a zero byte, buffers are as large as the
//!   arguments say, and no thread changes them during the call. Each `unsafe` rests on that.
#![allow(non_camel_case_types, reason = "the names are those of the C header")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the header's preamble states the promises once for all functions"
)]

mod archive;
mod arguments;
mod arrays;
mod attributes;
mod comm;
mod container;
mod declared;
mod elements;
mod group;
mod handles;
mod imports;
mod job;
mod job_handles;
mod key;
mod list;
mod log;
mod meshes;
mod open;
mod partitions;
mod read;
mod status;
mod store;
mod views;

#[global_allocator]
static ALLOCATOR: fieldstone::env::real::HugePages = fieldstone::env::real::HugePages;
