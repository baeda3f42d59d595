//! Distributed arrays: jobs, whose ranks declare groups of sets and make them durable together.
//!
//! * this file: jobs; `declared`: the declarations of groups, with `attributes` and hints; `views`: the part
//!   of a set that a rank holds; `group`: writes and reads; `elements`: a caller's memory with any strides;
//! * `imports`: files from outside; `meshes`: unstructured meshes; `partitions`: a rank's part of a mesh;
//! * all calls on jobs and on handles made from them are collective, except those documented otherwise: a
//!   wrong argument on one rank is an error on all ranks, and the job goes on.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use fieldstone::arrays::{ArrayJob, JobOptions, Phase};
use fieldstone::catalog::ArrayLayout;
use fieldstone::{Code, Result};

use crate::arguments::{copy_text, items, optional_text, result, text};
use crate::attributes::{fs_hint, hints};
use crate::comm::{fs_comm, ranks, refuse};
use crate::handles::{find, fs_arrays, fs_store, give, take};
use crate::job::OpenJob;
use crate::status::call;

/// How to open a job; equal on all ranks. A null pointer means the same as all zeros and nulls.
#[repr(C)]
pub struct fs_arrays_options {
    /// The project in which the run's name is unique; null for none.
    pub project: *const c_char,
    /// Number of ranks that write in an exchange; 0: all.
    pub writers: usize,
    /// Number of ranks that read in an exchange; 0: all.
    pub readers: usize,
    /// Bytes that a rank may use to move elements; 0: 64 MiB.
    pub buffer: usize,
    /// Storage of arrays: "files" (or null) for netCDF files that belong to the store, "fields" for the
    /// store's own logs.
    pub layout: *const c_char,
    /// Number of hints.
    pub nhints: c_int,
    /// Hints for opening all files of the job, in addition to those of the communicator.
    pub hints: *const fs_hint,
}

/// Work that this rank of a job has done since the job began.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct fs_arrays_counts {
    /// Bytes of elements and indices sent to other ranks.
    pub exchanged: u64,
    /// Bytes written to files.
    pub written: u64,
    /// Bytes read from files.
    pub read: u64,
    /// Files created or opened.
    pub opened: u64,
    /// Exchanges planned.
    pub plans: u64,
    /// Connections opened to the catalog's engine.
    pub connections: u64,
    /// Seconds spent on declaring groups, choosing files and looking up places.
    pub plan_seconds: f64,
    /// Seconds spent on exchanging and writing elements.
    pub write_seconds: f64,
    /// Seconds spent on making elements durable.
    pub sync_seconds: f64,
    /// Seconds spent on the store's commits.
    pub commit_seconds: f64,
    /// Seconds spent on reading elements.
    pub read_seconds: f64,
}

/// Opens a job of a store, which each rank has opened before. The job creates or continues the run of this
/// name; with a null name it creates a new run. Collective over `comm` unless that is null. `options` may be
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_open(
    store: *mut fs_store,
    name: *const c_char,
    comm: *const fs_comm,
    options: *const fs_arrays_options,
    job: *mut *mut fs_arrays,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the handle.
        let job = unsafe { result(job, std::ptr::null_mut(), "place for the job") };
        // SAFETY: the caller passes a table of functions or null.
        let comm = unsafe { ranks(comm) }?;
        let given = || -> Result<_> {
            let (job, store) = (job?, find(store)?);
            // SAFETY: the caller passes a text that ends in a zero byte, and options, or null.
            let (name, options) = unsafe { (optional_text(name, "name")?, job_options(options)?) };
            Ok((job, store, name, options))
        };
        let (job, store, name, options) = given().or_else(|error| refuse(comm.as_ref(), "job", error))?;
        let opened = ArrayJob::open(&store, comm, name, &options)?;
        *job = give(Arc::new(OpenJob::new(opened)));
        Ok(())
    })
}

/// Copies the name of the run, cut to `capacity` bytes including its zero byte. Not collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_run(job: *mut fs_arrays, name: *mut c_char, capacity: usize) -> c_int {
    call(|| {
        let run = find(job)?.job.run();
        // SAFETY: the caller passes `capacity` bytes, or null.
        unsafe { copy_text(&run.name().name, name, capacity) }
    })
}

/// Collective: makes all writes since the last flush durable and visible in one commit, or none of them.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_flush(job: *mut fs_arrays) -> c_int {
    call(|| find(job)?.job.flush())
}

/// Collective: discards all writes since the last flush.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_discard(job: *mut fs_arrays) -> c_int {
    call(|| find(job)?.job.discard())
}

/// Collective: flushes, and closes all files. Even if this fails, it closes the handles of the job and of its
/// groups, imports, meshes and partitions. Does nothing with null. The store stays open.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_close(job: *mut fs_arrays) -> c_int {
    call(|| {
        if job.is_null() {
            return Ok(());
        }
        let job = take(job)?;
        let files = job.close_files();
        job.job.close().and(files)
    })
}

/// Ends the job on this rank because of an error of its own, whatever the others do: their current or next
/// collective call fails with this message. All ranks lose unflushed writes, and the handles are closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_abandon(job: *mut fs_arrays, message: *const c_char) -> c_int {
    call(|| {
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let message = unsafe { text(message, "message") }?;
        let job = take(job)?;
        // The team closes the open files: a collective close would wait for ranks that do not come.
        let files = job.end();
        job.job.abandon(Code::RankFailed.error(message));
        drop(files);
        Ok(())
    })
}

/// Counts the work that this rank has done so far. Not collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_report(job: *mut fs_arrays, counts: *mut fs_arrays_counts) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the counts.
        let counts = unsafe { result(counts, fs_arrays_counts::default(), "place for the counts") }?;
        let report = find(job)?.job.report();
        let seconds = |phase| report.seconds.get(&phase).copied().unwrap_or(0.0);
        *counts = fs_arrays_counts {
            exchanged: report.exchanged,
            written: report.written,
            read: report.read,
            opened: report.opened,
            plans: report.plans,
            connections: report.connections,
            plan_seconds: seconds(Phase::Plan),
            write_seconds: seconds(Phase::Write),
            sync_seconds: seconds(Phase::Sync),
            commit_seconds: seconds(Phase::Commit),
            read_seconds: seconds(Phase::Read),
        };
        Ok(())
    })
}

/// # Safety
/// `options` is null or leads to options whose texts end in a zero byte or are null.
unsafe fn job_options(options: *const fs_arrays_options) -> Result<JobOptions> {
    let mut chosen = JobOptions::default();
    if options.is_null() {
        return Ok(chosen);
    }
    // SAFETY: not null, and the caller promises that it leads to options.
    let options = unsafe { items(options, 1, "options of a job") }?;
    for given in options {
        // SAFETY: the caller's promise is the same.
        let project = unsafe { optional_text(given.project, "project") }?;
        chosen.project = project.unwrap_or_default().to_owned();
        (chosen.writers, chosen.readers) =
            (Some(given.writers).filter(|n| *n > 0), Some(given.readers).filter(|n| *n > 0));
        if given.buffer > 0 {
            chosen.buffer = given.buffer;
        }
        // SAFETY: as above.
        chosen.layout = match unsafe { optional_text(given.layout, "layout") }?.unwrap_or("files") {
            "files" => ArrayLayout::Files,
            "fields" => ArrayLayout::Fields,
            other => {
                return Err(Code::Option.error(format!("'{other}' is not a layout: give files or fields")));
            }
        };
        // SAFETY: as above.
        chosen.hints = unsafe { hints(given.nhints, given.hints) }?;
    }
    Ok(chosen)
}
