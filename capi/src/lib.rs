//! Fieldstone for C and Fortran: the functions of `include/fieldstone.h`.
//!
//! This crate converts and calls, and holds no logic of a store. Its invariants:
//! * no call crashes on an argument that it can judge: null pointers, closed or mistaken handles, text
//!   that is not UTF-8, ranks and sizes out of range are `Invalid`;
//! * no panic leaves it: [`status::call`] turns one into `Internal`;
//! * a handle is a number that is looked up, never an address that is followed (see [`handles`]), so it
//!   is safe to use from any thread, and after it was closed;
//! * what a caller must promise stands in the header's preamble: texts end in a zero byte, buffers are
//!   as large as the arguments say, and nobody changes them during the call. Each `unsafe` rests on that.
#![allow(non_camel_case_types, reason = "the names are those of the C header")]
#![allow(clippy::missing_safety_doc, reason = "the header's preamble says it once for all functions")]

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
