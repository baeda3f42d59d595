//! Distributed arrays: jobs, whose ranks declare groups of sets and make them durable together.
//!
//! * here: jobs; `declared`: what groups are declared with, with `attributes` and hints; `views`: which part of a set is a
//!   rank's; `group`: writes and reads; `elements`: memory of a caller, at any strides;
//! * `imports`: files from outside; `meshes`: unstructured meshes; `partitions`: a rank's part of one;
//! * all calls on jobs and what is made of them are collective but for those of which it is said: an argument that is wrong
//!   on one rank is an error on all, and the job goes on.

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

/// How a job is opened; equal on all ranks. All zeros and nulls are what a null pointer is.
#[repr(C)]
pub struct fs_arrays_options {
    /// The project within which the run's name is unique; null for none.
    pub project: *const c_char,
    /// How many ranks write in an exchange; 0: all.
    pub writers: usize,
    /// How many ranks read in an exchange; 0: all.
    pub readers: usize,
    /// Bytes that a rank may use for moving elements; 0: 64 MiB.
    pub buffer: usize,
    /// Where arrays lie: "files" (also where null), netCDF files that belong to the store; "fields", the store's own logs.
    pub layout: *const c_char,
    /// How many hints it has.
    pub nhints: c_int,
    /// Hints that all its files are opened with, beside those of the communicator.
    pub hints: *const fs_hint,
}

/// What this rank of a job has done since it began.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct fs_arrays_counts {
    /// Bytes of elements and indices that it sent to others.
    pub exchanged: u64,
    /// Bytes that it wrote to files.
    pub written: u64,
    /// Bytes that it read from files.
    pub read: u64,
    /// Files that were made or opened.
    pub opened: u64,
    /// Exchanges that were planned.
    pub plans: u64,
    /// Openings of the catalog's engine.
    pub connections: u64,
    /// Seconds for declaring groups, choosing files and looking up places.
    pub plan_seconds: f64,
    /// Seconds for exchanging and writing elements.
    pub write_seconds: f64,
    /// Seconds for making them durable.
    pub sync_seconds: f64,
    /// Seconds for the store's commits.
    pub commit_seconds: f64,
    /// Seconds for reading elements.
    pub read_seconds: f64,
}

/// Opens a job of a store, which each rank has opened: the run of this name, made or continued; where the name is null
/// a new one. Collective over `comm` where that is not null. `options` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_open(
    store: *mut fs_store,
    name: *const c_char,
    comm: *const fs_comm,
    options: *const fs_arrays_options,
    job: *mut *mut fs_arrays,
) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for the handle.
        let job = unsafe { result(job, std::ptr::null_mut(), "place for the job") };
        // SAFETY: the caller gives a table of functions or null.
        let comm = unsafe { ranks(comm) }?;
        let given = || -> Result<_> {
            let (job, store) = (job?, find(store)?);
            // SAFETY: the caller gives a text that ends in a zero byte, and options, or null.
            let (name, options) = unsafe { (optional_text(name, "name")?, job_options(options)?) };
            Ok((job, store, name, options))
        };
        let (job, store, name, options) = given().or_else(|error| refuse(comm.as_ref(), "job", error))?;
        let opened = ArrayJob::open(&store, comm, name, &options)?;
        *job = give(Arc::new(OpenJob::new(opened)));
        Ok(())
    })
}

/// The name of the run, as a text cut to `capacity` bytes with its zero byte; of this rank alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_run(job: *mut fs_arrays, name: *mut c_char, capacity: usize) -> c_int {
    call(|| {
        let run = find(job)?.job.run();
        // SAFETY: the caller gives `capacity` bytes, or null.
        unsafe { copy_text(&run.name().name, name, capacity) }
    })
}

/// Collective: makes all writes since the last flush durable and visible, or none of them: one commit.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_flush(job: *mut fs_arrays) -> c_int {
    call(|| find(job)?.job.flush())
}

/// Collective: forgets all writes since the last flush.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_discard(job: *mut fs_arrays) -> c_int {
    call(|| find(job)?.job.discard())
}

/// Collective: flushes, and closes all files. The handles of the job and of its groups, imports, meshes and partitions are
/// gone also where this fails. Null is nothing to close. The store stays open.
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

/// Ends the job on this rank for an error of its own, whatever the others do: in the call that they are in, or come to,
/// they fail with this message. What was not flushed is gone on all ranks; the handles are gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_abandon(job: *mut fs_arrays, message: *const c_char) -> c_int {
    call(|| {
        // SAFETY: the caller gives a text that ends in a zero byte, or null.
        let message = unsafe { text(message, "message") }?;
        let job = take(job)?;
        // The team closes what is open: nothing may wait for ranks that do not come.
        let files = job.end();
        job.job.abandon(Code::RankFailed.error(message));
        drop(files);
        Ok(())
    })
}

/// What this rank has done so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_report(job: *mut fs_arrays, counts: *mut fs_arrays_counts) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for the counts.
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
    // SAFETY: not null, and by the caller's promise options.
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
                return Err(Code::Option.error(format!("'{other}' is no layout: give files or fields")));
            }
        };
        // SAFETY: as above.
        chosen.hints = unsafe { hints(given.nhints, given.hints) }?;
    }
    Ok(chosen)
}
