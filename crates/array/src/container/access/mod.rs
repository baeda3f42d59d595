//! Moves elements in and out: boxes of variables between memory and the file, by one rank or by all ranks together.
//!
//! | module | what it does |
//! |---|---|
//! | [`request`] | requests, and their checks |
//! | [`records`] | the number of records, as far as this rank knows |
//! | [`fill`] | fill values for data not yet written; the ranks share the work |
//! | `join` | merges many requests into one ascending list of byte ranges, in bounded rounds |
//! | `stream` | moves one long run in pieces that stay in the cache |
//! | [`views`] | moves the ranks' views of a variable together |
//!
//! [`put`] and [`get`] work on this rank alone; all ranks call [`put_all`] and [`get_all`], each with its own
//! requests or with none. The requests of one call are joined: their byte ranges are merged in ascending order, and
//! adjacent ranges become one read or write. If puts of one call overlap, the later one wins.
//!
//! Values are converted as in [`fieldstone_format::netcdf::values`]. Values that do not fit are `Invalid`, and the
//! error names the first one; by then all other values have been converted and written or read, and the fill value
//! replaces those that do not fit.
//!
//! Invariants: memory in addition to the caller's is limited to [`TOGETHER`] on each rank, whatever the request; a
//! put does not change the caller's data; all ranks make the same number of rounds; nothing is written or read before
//! all requests of all ranks are known to be valid.

use fieldstone_core::env::comm::Step;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::extents::Reach;
use fieldstone_format::netcdf::values::Misfit;

use super::VarInfo;
use super::words::{Words, words};
use request::{FirstMisfit, Request, extents_of, get_request, needed, put_request};

pub mod fill;
mod join;
pub mod records;
pub mod request;
mod stream;
pub mod views;

pub use fill::FillVar;
pub use records::Records;
pub use request::{ALONE, Get, PastEnd, Put, Selection, TOGETHER, Target};

/// The steps of writing and reading elements.
pub(super) const PUT: Step = Step::repeatable("put");
pub(super) const GET: Step = Step::repeatable("get");

/// Runs of at least this many bytes are read directly to their destination.
const LONG_RUN: u64 = 1 << 16;

/// Writes the requests on this rank alone. Adds records as needed; other ranks see them in the next collective call.
///
/// Errors: `Invalid` for a box outside the variable, data of another length, text for numbers, values that do not fit
/// (see the module's documentation), or records added by one of several ranks if records are filled.
pub fn put(target: &Target<'_>, puts: &[Put<'_>]) -> Result<()> {
    let requests = puts.iter().map(|put| put_request(target, put)).collect::<Result<Vec<_>>>()?;
    let records = needed(&requests);
    // Otherwise another thread could fill elements that this one has written.
    let grows = target.filled.is_some() && records > target.records.get();
    let _growing = grows.then(|| target.records.growing());
    let known = target.records.get();
    if let (Some(vars), true) = (target.filled, records > known) {
        if target.file.team().size() > 1 {
            return Err(Error::invalid(format!(
                "one rank alone cannot go from {known} to {records} records if records are filled"
            ))
            .with_hint("add records in a collective put, or create the file without fill values"));
        }
        let jobs = vars.iter().flat_map(|var| var.jobs(known, records, covered(puts, var, known, records)));
        let _others_may_write = target.records.sharing();
        fill::write(target.file, &jobs.collect::<Vec<_>>())?;
    }
    let misfit = match &requests[..] {
        [one] if one.run_bytes() >= LONG_RUN => {
            let _others_may_write = target.records.sharing();
            stream::put(target.file, one)?.map(|misfit| (0, misfit))
        }
        _ => join::put(target, &requests)?,
    };
    target.records.raise(records);
    report_misfit(&requests, misfit)
}

/// The extent of the requests of one rank, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PutReach {
    /// Records that the requests need.
    needed: u64,
    /// Records that exist.
    known: u64,
    /// Offset after the last byte of the requests.
    end: u64,
    file_len: u64,
}

words!(PutReach { needed: u64, known: u64, end: u64, file_len: u64 });

/// Writes the requests of all ranks together. Adds records as needed; all ranks know them afterwards. A rank that has
/// failed before passes its error, which all ranks then return.
///
/// Errors: as [`put`], on all ranks; they name the rank.
pub fn put_all(target: &Target<'_>, puts: Result<&[Put<'_>]>) -> Result<()> {
    let team = target.file.team();
    if team.size() == 1 {
        return put(target, puts?);
    }
    let requests =
        puts.and_then(|puts| puts.iter().map(|put| put_request(target, put)).collect::<Result<Vec<_>>>());
    let requests = team.agree(PUT, requests)?;
    let end = requests.iter().map(|request| request.extents.end()).max().unwrap_or(0);
    let own = target.file.len().map(|file_len| {
        PutReach { needed: needed(&requests), known: target.records.get(), end, file_len }.to_words()
    });
    let PutReach { needed, known, end, file_len } = PutReach::from_words(&team.max(PUT, own)?)?;
    let records = needed.max(known);
    if end > file_len {
        // Collective writes with gaps beyond the end of the file put stale bytes of a buffer into the gaps.
        target.file.set_len(PUT, Ok(end))?;
    }
    if let (Some(vars), true) = (target.filled, records > known) {
        fill::write_shared(
            target.file,
            Ok(vars.iter().flat_map(|var| var.jobs(known, records, false)).collect()),
        )?;
    }
    let misfit = join::put_all(target, &requests)?;
    target.records.raise(records);
    team.agree(PUT, report_misfit(&requests, misfit))
}

/// Reads the requests on this rank alone.
///
/// Errors: `Invalid` for a box outside the variable or beyond the last record, memory of another length, text for
/// numbers, values that do not fit (see the module's documentation); `Corrupt` if the file ends early.
pub fn get(target: &Target<'_>, gets: &mut [Get<'_>]) -> Result<()> {
    let requests = gets.iter_mut().map(|get| get_request(target, get)).collect::<Result<Vec<_>>>()?;
    let (mut long, mut short): (Vec<_>, Vec<_>) =
        requests.into_iter().partition(|request| request.run_bytes() >= LONG_RUN);
    let mut outcome = Ok(());
    for request in &mut long {
        let misfit = stream::get(target, request)?;
        outcome = outcome.and(report_misfit(std::slice::from_ref(request), misfit.map(|misfit| (0, misfit))));
    }
    let misfit = join::get(target, &mut short)?;
    outcome.and(report_misfit(&short, misfit))
}

/// Reads the requests of all ranks together. Afterwards all ranks know the records that any rank added.
///
/// Errors: as [`get`], on all ranks; they name the rank.
pub fn get_all(target: &Target<'_>, gets: Result<&mut [Get<'_>]>) -> Result<()> {
    let team = target.file.team();
    if team.size() == 1 {
        return get(target, gets?);
    }
    target.records.agree(team, GET)?;
    let requests =
        gets.and_then(|gets| gets.iter_mut().map(|get| get_request(target, get)).collect::<Result<Vec<_>>>());
    let mut requests = team.agree(GET, requests)?;
    let misfit = join::get_all(target, &mut requests)?;
    team.agree(GET, report_misfit(&requests, misfit))
}

/// Checks that the file contains a box of a variable, or may be treated as if it did. Callers that first allocate
/// memory for the elements need this, because a damaged header may describe more than any machine has.
///
/// Errors: for the box, as [`get`]; `Corrupt` if the file ends before the box.
pub fn check_held(target: &Target<'_>, var: &VarInfo, selection: &Selection) -> Result<()> {
    let end = extents_of(target, var, selection, Reach::Existing)?.end();
    let held = target.file.len()?;
    if target.past_end == PastEnd::Zeros || end <= held {
        return Ok(());
    }
    Err(Code::Truncated
        .error(format!(
            "variable `{}`: the requested box ends at byte {end}, but the file at {held}",
            var.name
        ))
        .with_hint(
            "the file was cut, or its header is damaged: check it with `fieldstone container validate`",
        ))
}

/// Whether one of `puts` writes all of the records from `known` to `records` of `var`.
fn covered(puts: &[Put<'_>], var: &FillVar, known: u64, records: u64) -> bool {
    puts.iter().any(|put| {
        let Selection { start, count, stride } = put.selection;
        let covers = |i: usize, dim: &super::DimInfo| match i {
            0 => start[0] <= known && start[0] + count[0] >= records,
            _ => count[i] == dim.len,
        };
        put.var.begin == var.begin()
            && put.var.is_record()
            && stride.iter().all(|stride| *stride == 1)
            && put.var.dims.iter().enumerate().all(|(i, dim)| covers(i, dim))
    })
}

/// The error that names the first value that did not fit.
fn report_misfit<M>(requests: &[Request<'_, M>], misfit: FirstMisfit) -> Result<()> {
    let Some((request, Misfit { index, value })) = misfit else { return Ok(()) };
    let request = &requests[request];
    let (external, memory) = (request.conversion.external().name(), request.conversion.memory().name());
    Err(Code::Value.error(format!(
        "variable `{}`: element {index} of the box, {value}, does not fit ({external} in the file, {memory} in \
         memory)",
        request.var.name
    ))
    .with_hint("the fill value replaces it; all other elements were converted"))
}
