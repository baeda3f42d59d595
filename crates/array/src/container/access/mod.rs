//! Elements in and out: boxes of variables between memory and the file, alone or by all ranks together.
//!
//! | module | what it does |
//! |---|---|
//! | [`records`] | how many records there are, as far as this rank knows |
//! | [`fill`] | fill values where nobody has written yet, shared by the ranks |
//! | `join` | many requests as one ascending list of byte ranges, in bounded rounds |
//! | `stream` | one long run, in pieces that stay in the cache |
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

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::extents::{Extents, Place, Reach, extents};
use fieldstone_format::netcdf::fill::{default_fill, fill_of};
use fieldstone_format::netcdf::values::{Conversion, Misfit};
use fieldstone_format::netcdf::{Dim, NcType, Version};

use super::VarInfo;

pub mod fill;
mod join;
pub mod records;
mod stream;

pub use fill::FillVar;
pub use records::Records;

/// Bytes of one round of a rank on its own: half of what a core's cache commonly holds.
pub const ALONE: usize = 1 << 19;
/// Bytes of one round of a rank in a collective call.
pub const TOGETHER: usize = 1 << 24;
/// Runs of at least this many bytes are read straight to their place.
const LONG_RUN: u64 = 1 << 16;

/// A box of a variable: `count` indices from `start` on, `stride` apart, in each dimension. An empty
/// `stride` means 1 everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// First index in each dimension.
    pub start: Vec<u64>,
    /// How many indices in each dimension.
    pub count: Vec<u64>,
    /// Distance of indices in each dimension; empty for 1 everywhere.
    pub stride: Vec<u64>,
}

impl Selection {
    /// All of a variable whose dimensions have these lengths.
    pub fn all(shape: &[u64]) -> Selection {
        Selection { start: vec![0; shape.len()], count: shape.to_vec(), stride: Vec::new() }
    }

    /// The box from `start` on of `count` indices.
    pub fn of(start: &[u64], count: &[u64]) -> Selection {
        Selection { start: start.to_vec(), count: count.to_vec(), stride: Vec::new() }
    }

    /// The same with indices `stride` apart.
    pub fn strided(mut self, stride: &[u64]) -> Selection {
        self.stride = stride.to_vec();
        self
    }

    /// One element.
    pub fn element(index: &[u64]) -> Selection {
        Selection::of(index, &vec![1; index.len()])
    }
}

/// What reading finds behind the end of the file, in variables that were never written to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// Zeros, as in any hole of a file: for a file that is being written.
    Zeros,
    /// An error: a finished file is whole, so this one was cut.
    Corrupt,
}

/// The file that elements go to or come from, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The file.
    pub file: &'a TeamFile,
    /// Its format; CDF-5 for the partitioned header.
    pub version: Version,
    /// The number of its records.
    pub records: &'a Records,
    /// Where records are filled as they are added: the record variables that this rank takes care of. Each
    /// is in the list of exactly one rank. `None` on all ranks where records are not filled.
    pub filled: Option<&'a [FillVar]>,
    /// What lies behind the end of the file.
    pub beyond: Beyond,
}

/// A request to write.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    /// The variable.
    pub var: &'a VarInfo,
    /// Which of its elements.
    pub selection: &'a Selection,
    /// The elements, dense, the last dimension varying fastest, in this machine's byte order.
    pub data: &'a [u8],
    /// Their type.
    pub ty: NcType,
}

/// A request to read.
#[derive(Debug)]
pub struct Get<'a> {
    /// The variable.
    pub var: &'a VarInfo,
    /// Which of its elements.
    pub selection: &'a Selection,
    /// Takes the elements, dense, the last dimension varying fastest, in this machine's byte order.
    pub into: &'a mut [u8],
    /// The type they are to have.
    pub ty: NcType,
}

/// A request that has been looked at: the checks are done.
#[derive(Debug)]
struct Request<'a, M> {
    var: &'a VarInfo,
    extents: Extents,
    conversion: Conversion,
    /// The big-endian value that takes the place of those that do not fit.
    fill: &'a [u8],
    memory: M,
}

impl<M> Request<'_, M> {
    /// Bytes of an element in the file.
    fn external(&self) -> u64 {
        self.conversion.external().size() as u64
    }
    /// Bytes of an element in memory.
    fn internal(&self) -> usize {
        self.conversion.memory().size()
    }
    fn run_bytes(&self) -> u64 {
        self.extents.run() * self.external()
    }
    fn bytes(&self) -> u64 {
        self.extents.elements() * self.external()
    }
}

/// The first value that did not fit: the number of its request, and the value.
type FirstMisfit = Option<(usize, Misfit)>;

/// Writes the requests; this rank alone. Records are added as needed; other ranks learn of them in the next
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
    told(&requests, misfit)
}

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
    let requests = team.agree("put", requests)?;
    let end = requests.iter().map(|request| request.extents.end()).max().unwrap_or(0);
    let own = target.file.len().map(|len| vec![needed(&requests), target.records.get(), end, len]);
    let reached = team.max("put", own)?;
    let (records, known) = (reached[0].max(reached[1]), reached[1]);
    if reached[2] > reached[3] {
        // Collective writes with gaps behind the end of a file leave in them what was in some buffer.
        target.file.set_len("put", Ok(reached[2]))?;
    }
    if let (Some(vars), true) = (target.filled, records > known) {
        fill::write_shared(
            target.file,
            Ok(vars.iter().flat_map(|var| var.jobs(known, records, false)).collect()),
        )?;
    }
    let misfit = join::put_all(target, &requests)?;
    target.records.raise(records);
    team.agree("put", told(&requests, misfit))
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
        outcome = outcome.and(told(std::slice::from_ref(request), misfit.map(|misfit| (0, misfit))));
    }
    let misfit = join::get(target, &mut short)?;
    outcome.and(told(&short, misfit))
}

/// Reads the requests of all ranks together. Records that any rank added are known to all afterwards.
///
/// Errors: as [`get`], on all ranks, naming the rank.
pub fn get_all(target: &Target<'_>, gets: Result<&mut [Get<'_>]>) -> Result<()> {
    let team = target.file.team();
    if team.size() == 1 {
        return get(target, gets?);
    }
    target.records.agree(team, "get")?;
    let requests =
        gets.and_then(|gets| gets.iter_mut().map(|get| get_request(target, get)).collect::<Result<Vec<_>>>());
    let mut requests = team.agree("get", requests)?;
    let misfit = join::get_all(target, &mut requests)?;
    team.agree("get", told(&requests, misfit))
}

/// Whether the file holds a box of a variable, or can be taken as if it did. For those that need memory for the
/// elements first: what a damaged header tells of may be more than any machine has.
///
/// Errors: of the box, as [`get`]; `Corrupt` where the file ends before it.
pub fn check_held(target: &Target<'_>, var: &VarInfo, selection: &Selection) -> Result<()> {
    let end = extents_of(target, var, selection, Reach::Existing)?.end();
    let held = target.file.len()?;
    if target.beyond == Beyond::Zeros || end <= held {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "variable `{}`: what is asked for ends at byte {end}, but the file at {held}",
        var.name
    ))
    .with_hint("the file was cut, or its header is damaged: `fieldstone container validate` says where"))
}

fn put_request<'a>(target: &Target<'_>, put: &Put<'a>) -> Result<Request<'a, &'a [u8]>> {
    let fill = fill_of(put.var.ty, put.var.attrs.iter());
    let request = request(target, put.var, put.selection, (put.ty, put.data.len()), Reach::Growing)?;
    let records = request.extents.records();
    if records > target.records.most() {
        return Err(Error::invalid(format!(
            "variable `{}`: {records} records, and a {} file has at most {}",
            put.var.name,
            target.version.name(),
            target.records.most()
        )));
    }
    Ok(Request { fill, memory: put.data, ..request })
}

fn get_request<'a>(target: &Target<'_>, get: &'a mut Get<'_>) -> Result<Request<'a, &'a mut [u8]>> {
    let given = (get.ty, get.into.len());
    let request: Request<'a, &[u8]> = request(target, get.var, get.selection, given, Reach::Existing)?;
    let Request { var, extents, conversion, .. } = request;
    Ok(Request { var, extents, conversion, fill: default_fill(get.ty), memory: &mut *get.into })
}

fn request<'a, M: Default>(
    target: &Target<'_>,
    var: &'a VarInfo,
    selection: &Selection,
    (ty, given): (NcType, usize),
    reach: Reach,
) -> Result<Request<'a, M>> {
    let conversion = Conversion::new(var.ty, ty, target.version)
        .map_err(|error| error.context(format_args!("variable `{}`", var.name)))?;
    let extents = extents_of(target, var, selection, reach)?;
    let elements = extents.elements();
    if elements.checked_mul(ty.size() as u64) != Some(given as u64) {
        return Err(Error::invalid(format!(
            "variable `{}`: the box has {elements} elements of {} bytes in memory ({}), but {given} bytes are given",
            var.name,
            ty.size(),
            ty.name()
        ))
        .with_hint("memory holds exactly the elements of the box"));
    }
    Ok(Request { var, extents, conversion, fill: &[], memory: M::default() })
}

fn extents_of(target: &Target<'_>, var: &VarInfo, selection: &Selection, reach: Reach) -> Result<Extents> {
    let len = |len, is_record| if is_record { target.records.get() } else { len };
    let dims: Vec<Dim<'_>> = var
        .dims
        .iter()
        .map(|dim| Dim { name: &dim.name, len: len(dim.len, dim.is_record), is_record: dim.is_record })
        .collect();
    let VarInfo { name, begin, record_stride, .. } = var;
    let place = Place { name, ty: var.ty, dims: &dims, begin: *begin, record_stride: *record_stride };
    extents(&place, &selection.start, &selection.count, &selection.stride, reach)
}

/// The number of records that writing the requests needs.
fn needed<M>(requests: &[Request<'_, M>]) -> u64 {
    requests.iter().map(|request| request.extents.records()).max().unwrap_or(0)
}

/// Whether one of `puts` writes all of the records from `known` to `records` of `var`.
fn covered(puts: &[Put<'_>], var: &FillVar, known: u64, records: u64) -> bool {
    puts.iter().any(|put| {
        let Selection { start, count, stride } = put.selection;
        let whole = |i: usize, dim: &super::DimInfo| match i {
            0 => start[0] <= known && start[0] + count[0] >= records,
            _ => count[i] == dim.len,
        };
        put.var.begin == var.begin()
            && put.var.is_record()
            && stride.iter().all(|stride| *stride == 1)
            && put.var.dims.iter().enumerate().all(|(i, dim)| whole(i, dim))
    })
}

fn told<M>(requests: &[Request<'_, M>], misfit: FirstMisfit) -> Result<()> {
    let Some((request, Misfit { index, value })) = misfit else { return Ok(()) };
    let request = &requests[request];
    let (external, memory) = (request.conversion.external().name(), request.conversion.memory().name());
    Err(Error::invalid(format!(
        "variable `{}`: element {index} of the box, {value}, does not fit ({external} in the file, {memory} in \
         memory)",
        request.var.name
    ))
    .with_hint("the fill value stands there; all other elements were converted"))
}
