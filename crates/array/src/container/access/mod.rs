//! Elements in and out: boxes of variables between memory and the file, alone or by all ranks together.
//!
//! | module | what it does |
//! |---|---|
//! | [`request`] | what is asked for, and its checks |
//! | [`records`] | how many records there are, as far as this rank knows |
//! | [`fill`] | fill values where nobody has written yet, shared by the ranks |
//! | `join` | many requests as one ascending list of byte ranges, in bounded rounds |
//! | `stream` | one long run, in pieces that stay in the cache |
//! | [`views`] | what the ranks of a job hold of a variable, moved together |
//!
//! [`put`] and [`get`] are this rank's own affair; [`put_all`] and [`get_all`] are called by all ranks, each
//! with its own requests or with none. Requests of one call are joined: their byte ranges are merged as they
//! ascend, and neighbours become one read or write. Where puts of one call overlap, the later one wins.
//!
//! Values are converted as in [`fieldstone_format::netcdf::values`]. Values that do not fit are `Invalid`, and
//! the first one is named; by then everything else has been converted and written or read, and the fill value
//! stands where they do not fit.
//!
//! Invariants: memory in use beside the caller's is bounded by [`TOGETHER`] a rank, whatever is asked for; the
//! caller's data are not changed by a put; all ranks make the same number of rounds; nothing is written or
//! read before all requests of all ranks are known to be right.

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

/// Runs of at least this many bytes are read straight to their place.
const LONG_RUN: u64 = 1 << 16;

/// Writes the requests; this rank alone. Records are added as needed; other ranks see them in the next
/// collective call.
///
/// Errors: `Invalid` for a box outside the variable, data of another length, text for numbers, values that
/// do not fit (see the module's text), records added by one of several ranks where records are filled.
pub fn put(target: &Target<'_>, puts: &[Put<'_>]) -> Result<()> {
    let requests = puts.iter().map(|put| put_request(target, put)).collect::<Result<Vec<_>>>()?;
    let records = needed(&requests);
    // Else another thread could fill what this one has written.
    let grows = target.filled.is_some() && records > target.records.get();
    let _growing = grows.then(|| target.records.growing());
    let known = target.records.get();
    if let (Some(vars), true) = (target.filled, records > known) {
        if target.file.team().size() > 1 {
            return Err(Error::invalid(format!(
                "one rank alone cannot go from {known} to {records} records where records are filled"
            ))
            .with_hint("add records in a collective put, or create the file without filling"));
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

/// How far the requests of one rank reach, and of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PutReach {
    /// Records that the requests need.
    needed: u64,
    /// Records that there are.
    known: u64,
    /// Offset behind the last byte of the requests.
    end: u64,
    file_len: u64,
}

words!(PutReach { needed: u64, known: u64, end: u64, file_len: u64 });

/// Writes the requests of all ranks together. Records are added as needed, and known to all ranks
/// afterwards. A rank that has failed before passes its error, which then is everybody's.
///
/// Errors: as [`put`], on all ranks, naming the rank.
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
        // Collective writes with gaps behind the end of a file leave in them what was in some buffer.
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

/// Reads the requests; this rank alone.
///
/// Errors: `Invalid` for a box outside the variable or beyond the last record, memory of another length,
/// text for numbers, values that do not fit (see the module's text); `Corrupt` where the file ends early.
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

/// Reads the requests of all ranks together. Records that any rank added are known to all afterwards.
///
/// Errors: as [`get`], on all ranks, naming the rank.
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

/// Whether the file holds a box of a variable, or can be taken as if it did. For those that need memory for the
/// elements first: what a damaged header describes may be more than any machine has.
///
/// Errors: of the box, as [`get`]; `Corrupt` where the file ends before it.
pub fn check_held(target: &Target<'_>, var: &VarInfo, selection: &Selection) -> Result<()> {
    let end = extents_of(target, var, selection, Reach::Existing)?.end();
    let held = target.file.len()?;
    if target.past_end == PastEnd::Zeros || end <= held {
        return Ok(());
    }
    Err(Code::Truncated
        .error(format!(
            "variable `{}`: what is asked for ends at byte {end}, but the file at {held}",
            var.name
        ))
        .with_hint("the file was cut, or its header is damaged: `fieldstone container validate` says where"))
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
    .with_hint("the fill value stands there; all other elements were converted"))
}
