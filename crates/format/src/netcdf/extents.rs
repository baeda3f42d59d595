//! From a box of a variable (start, count, stride) to ranges of bytes in the file.
//!
//! [`extents`] returns contiguous runs, all of one length and as long as possible, in memory order: in memory
//! the box is dense, with the last dimension varying fastest. Whole inner dimensions join into one run; with
//! a stride above 1 in the innermost dimension each element is a run of its own. Runs also ascend in the
//! file, because strides are positive and records follow one another, so that several requests can be merged
//! as they come.
//!
//! Invariants: every offset is checked against overflow before the first run is returned; a run is never
//! empty; memory is a few words for each dimension with more than one index, however large the box.
//!
//! ```
//! use fieldstone_format::netcdf::extents::{VariableExtent, Reach, extents};
//! use fieldstone_format::netcdf::{Dim, NcType};
//! # fn main() -> fieldstone_core::Result<()> {
//! let dims = [Dim { name: "y", len: 3, is_record: false }, Dim { name: "x", len: 4, is_record: false }];
//! let t = VariableExtent { name: "t", ty: NcType::Int, dims: &dims, begin: 100, record_stride: 0 };
//! let runs = extents(&t, &[1, 1], &[2, 2], &[], Reach::Existing)?;
//! let runs: Vec<_> = runs.map(|run| (run.offset, run.elements, run.at)).collect();
//! assert_eq!(runs, [(120, 2, 0), (136, 2, 2)]);
//! # Ok(()) }
//! ```

use fieldstone_core::{Code, Error, Result};

use super::{Dim, NcType};

/// The position of a variable in its file.
#[derive(Debug, Clone, Copy)]
pub struct VariableExtent<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// Its type.
    pub ty: NcType,
    /// Its dimensions, outermost first; the record dimension has the current number of records as its length.
    pub dims: &'a [Dim<'a>],
    /// Offset of its first byte.
    pub begin: u64,
    /// Bytes from one of its records to the next, if its first dimension is the record dimension.
    pub record_stride: u64,
}

/// Limit of a box along the record dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The last record: for reading.
    Existing,
    /// The largest offset: for writing, which adds records.
    Growing,
}

/// Elements that are contiguous in the file and in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first one in the file.
    pub offset: u64,
    /// Number of elements, at least one.
    pub elements: u64,
    /// Position of the first one among the elements of the box.
    pub at: u64,
}

/// A dimension, or several that act as one, along which runs repeat.
#[derive(Debug, Clone, Copy)]
struct Axis {
    count: u64,
    step: u64,
    index: u64,
}

/// The runs of a box; see the module's description.
#[derive(Debug, Clone)]
pub struct Extents {
    /// Innermost first.
    axes: Vec<Axis>,
    offset: u64,
    at: u64,
    run: u64,
    elements: u64,
    end: u64,
    records: u64,
}

impl Extents {
    /// Elements of the whole box.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Elements of each run; all runs of a box have the same length.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The offset after the last byte of the box; 0 for an empty one.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Lowest number of records after a write of the box; 0 for an empty box and for a variable without
    /// record dimension.
    pub fn records(&self) -> u64 {
        self.records
    }
}

impl Iterator for Extents {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.at == self.elements {
            return None;
        }
        let run = Run { offset: self.offset, elements: self.run, at: self.at };
        self.at += self.run;
        for axis in &mut self.axes {
            axis.index += 1;
            if axis.index < axis.count {
                self.offset += axis.step;
                break;
            }
            self.offset -= (axis.count - 1) * axis.step;
            axis.index = 0;
        }
        Some(run)
    }
}

/// The runs of the box that takes `count` indices from `start`, `stride` apart, in each dimension. An empty
/// `stride` means 1 everywhere.
///
/// Errors: `Invalid` if a list does not match the variable's number of dimensions, if a stride is 0, or if
/// the box reaches beyond a dimension; the message names the dimension, the index and the length. An offset
/// of 2^63 or more is also `Invalid`, or `Corrupt` if the header claims that the file has it already.
pub fn extents(
    place: &VariableExtent<'_>,
    start: &[u64],
    count: &[u64],
    stride: &[u64],
    reach: Reach,
) -> Result<Extents> {
    check_lists(place, start, count, stride)?;
    let stride_of = |i: usize| stride.get(i).copied().unwrap_or(1);
    let last = check_box(place, start, count, stride_of, reach)?;
    let mut extents =
        Extents { axes: Vec::new(), offset: place.begin, at: 0, run: 1, elements: 1, end: 0, records: 0 };
    if count.contains(&0) {
        extents.elements = 0;
        return Ok(extents);
    }
    let too_far = || match reach {
        Reach::Existing => {
            let text = format!("variable `{}`: according to the header it reaches to byte 2^63", place.name);
            Error::corrupt(text).with_hint("no file is that long: the header is damaged")
        }
        Reach::Growing => beyond(place),
    };
    let size = place.ty.size() as u64;
    // The offset of the last element, which bounds all others.
    let mut end = place.begin;
    let mut step = size;
    for (i, dim) in place.dims.iter().enumerate().rev() {
        if dim.is_record && i == 0 {
            step = place.record_stride;
            extents.records = last[i].checked_add(1).ok_or_else(too_far)?;
        }
        let first = start[i].checked_mul(step).ok_or_else(too_far)?;
        extents.offset = extents.offset.checked_add(first).ok_or_else(too_far)?;
        let reached = last[i].checked_mul(step).ok_or_else(too_far)?;
        end = end.checked_add(reached).ok_or_else(too_far)?;
        extents.elements = extents.elements.checked_mul(count[i]).ok_or_else(too_far)?;
        if count[i] > 1 {
            let apart = step.checked_mul(stride_of(i)).ok_or_else(too_far)?;
            extents.join(count[i], apart, size);
        }
        if i > 0 {
            step = step.checked_mul(dim.len).ok_or_else(too_far)?;
        }
    }
    extents.end = end.checked_add(size).filter(|end| *end <= i64::MAX as u64).ok_or_else(too_far)?;
    Ok(extents)
}

impl Extents {
    /// Adds a dimension outside the present ones. The product of counts does not overflow, because `elements`
    /// has computed it.
    fn join(&mut self, count: u64, apart: u64, size: u64) {
        match self.axes.last_mut() {
            None if self.run.checked_mul(size) == Some(apart) => self.run *= count,
            Some(axis) if axis.count.checked_mul(axis.step) == Some(apart) => axis.count *= count,
            _ => self.axes.push(Axis { count, step: apart, index: 0 }),
        }
    }
}

fn check_lists(place: &VariableExtent<'_>, start: &[u64], count: &[u64], stride: &[u64]) -> Result<()> {
    let rank = place.dims.len();
    for (what, given) in [("start", start.len()), ("count", count.len()), ("stride", stride.len())] {
        if given != rank && !(what == "stride" && given == 0) {
            let name = place.name;
            return Err(Code::Box
                .error(format!("variable `{name}` has {rank} dimensions, but {what} has {given} values"))
                .with_hint("give one value for each dimension, outermost first"));
        }
    }
    if let Some(i) = stride.iter().position(|stride| *stride == 0) {
        let (name, dim) = (place.name, place.dims[i].name);
        return Err(Code::Box
            .error(format!("variable `{name}`, dimension `{dim}`: stride 0"))
            .with_hint("a stride is at least 1"));
    }
    Ok(())
}

/// The last index in each dimension; `start` if the box is empty.
fn check_box(
    place: &VariableExtent<'_>,
    start: &[u64],
    count: &[u64],
    stride: impl Fn(usize) -> u64,
    reach: Reach,
) -> Result<Vec<u64>> {
    let mut last = Vec::with_capacity(start.len());
    for (i, dim) in place.dims.iter().enumerate() {
        let steps = count[i].saturating_sub(1).checked_mul(stride(i));
        let end = steps.and_then(|steps| start[i].checked_add(steps)).ok_or_else(|| beyond(place))?;
        let grows = reach == Reach::Growing && i == 0 && dim.is_record;
        // An empty box may be just after the last index, like a half-open range.
        let fits = if count[i] == 0 { start[i] <= dim.len } else { end < dim.len };
        if !fits && !grows {
            let (name, dim_name, len) = (place.name, dim.name, dim.len);
            let (what, hint) = match dim.is_record {
                true => (format!("there are {len} records"), "records are added by writing them"),
                false => (format!("its length is {len}"), "a box must be inside the variable's shape"),
            };
            let index = if count[i] == 0 { start[i] } else { end };
            return Err(Code::Box
                .error(format!("variable `{name}`, dimension `{dim_name}`: index {index} is outside, {what}"))
                .with_hint(hint));
        }
        last.push(end);
    }
    Ok(last)
}

fn beyond(place: &VariableExtent<'_>) -> Error {
    Code::ContainerLimit
        .error(format!("variable `{}`: the box ends at or beyond byte 2^63 of the file", place.name))
        .with_hint("no file can be that long: look at start, count and stride")
}

#[cfg(test)]
mod tests;
