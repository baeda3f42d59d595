//! Requests to write or read elements, and the checks on them.

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::extents::{Extents, Reach, VariableExtent, extents};
use fieldstone_format::netcdf::fill::{default_fill, fill_of};
use fieldstone_format::netcdf::values::{Conversion, Misfit};
use fieldstone_format::netcdf::{Dim, NcType, Version};

use super::fill::FillVar;
use super::records::Records;
use crate::container::model::VarInfo;

/// Bytes in one round of a rank on its own: half of a typical core's cache.
pub const ALONE: usize = 1 << 19;
/// Bytes in one round of a rank in a collective call.
pub const TOGETHER: usize = 1 << 24;

/// A box of a variable: `count` indices from `start` on, `stride` apart, in each dimension. An empty
/// `stride` means 1 everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// First index in each dimension.
    pub start: Vec<u64>,
    /// Number of indices in each dimension.
    pub count: Vec<u64>,
    /// Distance between indices in each dimension; empty for 1 everywhere.
    pub stride: Vec<u64>,
}

impl Selection {
    /// The whole of a variable whose dimensions have these lengths.
    pub fn all(shape: &[u64]) -> Selection {
        Selection { start: vec![0; shape.len()], count: shape.to_vec(), stride: Vec::new() }
    }

    /// The box of `count` indices from `start` on.
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

/// The result of a read beyond the end of the file, in a variable that was not written to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastEnd {
    /// Zeros, as in any hole of a file: for a file that is still being written.
    Zeros,
    /// An error: a finished file is complete, so this one was cut.
    Corrupt,
}

/// The file to or from which elements move, and the known facts about it.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The file.
    pub file: &'a TeamFile,
    /// The file's format; CDF-5 for the partitioned header.
    pub version: Version,
    /// The number of records in the file.
    pub records: &'a Records,
    /// If new records are filled: the record variables that this rank takes care of. Each is in the list of exactly
    /// one rank. `None` on all ranks if records are not filled.
    pub filled: Option<&'a [FillVar]>,
    /// The treatment of bytes beyond the end of the file.
    pub past_end: PastEnd,
}

/// A request to write.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    /// The variable.
    pub var: &'a VarInfo,
    /// The selected elements.
    pub selection: &'a Selection,
    /// The elements, dense, the last dimension varying fastest, in this machine's byte order.
    pub data: &'a [u8],
    /// The type of the elements in memory.
    pub ty: NcType,
}

/// A request to read.
#[derive(Debug)]
pub struct Get<'a> {
    /// The variable.
    pub var: &'a VarInfo,
    /// The selected elements.
    pub selection: &'a Selection,
    /// Receives the elements, dense, the last dimension varying fastest, in this machine's byte order.
    pub into: &'a mut [u8],
    /// The type of the elements in memory.
    pub ty: NcType,
}

/// A request that has passed the checks.
#[derive(Debug)]
pub(super) struct Request<'a, M> {
    pub var: &'a VarInfo,
    pub extents: Extents,
    pub conversion: Conversion,
    /// The big-endian value that replaces values that do not fit.
    pub fill: &'a [u8],
    pub memory: M,
}

impl<M> Request<'_, M> {
    /// Size of an element in the file.
    pub fn external(&self) -> u64 {
        self.conversion.external().size() as u64
    }
    /// Size of an element in memory.
    pub fn internal(&self) -> usize {
        self.conversion.memory().size()
    }
    pub fn run_bytes(&self) -> u64 {
        self.extents.run() * self.external()
    }
    pub fn bytes(&self) -> u64 {
        self.extents.elements() * self.external()
    }
}

/// The first value that did not fit, with the number of its request.
pub(super) type FirstMisfit = Option<(usize, Misfit)>;

/// A request to write, checked.
pub(super) fn put_request<'a>(target: &Target<'_>, put: &Put<'a>) -> Result<Request<'a, &'a [u8]>> {
    let fill = fill_of(put.var.ty, put.var.attrs.iter());
    let request = request(target, put.var, put.selection, (put.ty, put.data.len()), Reach::Growing)?;
    let records = request.extents.records();
    if records > target.records.most() {
        return Err(Code::ContainerLimit.error(format!(
            "variable `{}`: {records} records, but a {} file has at most {}",
            put.var.name,
            target.version.name(),
            target.records.most()
        )));
    }
    Ok(Request { fill, memory: put.data, ..request })
}

/// A request to read, checked.
pub(super) fn get_request<'a>(
    target: &Target<'_>,
    get: &'a mut Get<'_>,
) -> Result<Request<'a, &'a mut [u8]>> {
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
        return Err(Code::BufferSize.error(format!(
            "variable `{}`: the box has {elements} elements of {} bytes in memory ({}), but {given} bytes are given",
            var.name,
            ty.size(),
            ty.name()
        ))
        .with_hint("pass memory for exactly the elements of the box"));
    }
    Ok(Request { var, extents, conversion, fill: &[], memory: M::default() })
}

/// The byte ranges of a box of a variable.
pub(super) fn extents_of(
    target: &Target<'_>,
    var: &VarInfo,
    selection: &Selection,
    reach: Reach,
) -> Result<Extents> {
    let len = |len, is_record| if is_record { target.records.get() } else { len };
    let dims: Vec<Dim<'_>> = var
        .dims
        .iter()
        .map(|dim| Dim { name: &dim.name, len: len(dim.len, dim.is_record), is_record: dim.is_record })
        .collect();
    let VarInfo { name, begin, record_stride, .. } = var;
    let place =
        VariableExtent { name, ty: var.ty, dims: &dims, begin: *begin, record_stride: *record_stride };
    extents(&place, &selection.start, &selection.count, &selection.stride, reach)
}

/// The number of records that the file has after the requests are written.
pub(super) fn needed<M>(requests: &[Request<'_, M>]) -> u64 {
    requests.iter().map(|request| request.extents.records()).max().unwrap_or(0)
}
