//! The layout of data: `vsize` and `begin` of every variable, the record, and the limits of each version.
//!
//! Fixed variables follow the header in the order of their definition, each at a multiple of four; then come
//! records, each with one slab of every record variable. The **only** record variable of a file is not
//! padded.
//!
//! Invariants: nothing overlaps; every product and sum is checked; a second layout never moves a variable
//! towards the beginning of its file.
//!
//! ```
//! use fieldstone_format::netcdf::{Header, NcType, Version, layout};
//! let mut header = Header::new(Version::Cdf5);
//! let (time, x) = (header.dims.push_record("time"), header.dims.push("x", 5));
//! header.vars.push("a", NcType::Byte, &[time, x]);
//! let layout = layout::lay_out(&mut header, &layout::Alignment::default(), false, None)?;
//! assert_eq!((header.vars.vsizes[0], layout.record_size), (8, 5), "a lone record variable is not padded");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::{Code, Error, Result};

use super::names::check_length;
use super::{Header, NcType, Var, Version, pad4, write};

/// Free space and alignment that a writer requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// The data part begins at a multiple of this.
    pub v_align: u64,
    /// The record part begins at a multiple of this.
    pub r_align: u64,
    /// Bytes left free after the header.
    pub h_minfree: u64,
    /// Bytes left free after the fixed variables.
    pub v_minfree: u64,
}

impl Default for Alignment {
    fn default() -> Alignment {
        Alignment { v_align: 512, r_align: 4, h_minfree: 0, v_minfree: 0 }
    }
}

/// Positions of the parts of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the header.
    pub header_len: u64,
    /// Offset of the first fixed variable.
    pub data_begin: u64,
    /// Offset after the last fixed variable and its padding.
    pub data_end: u64,
    /// Offset of the first record.
    pub record_begin: u64,
    /// Bytes from one record to the next; 0 without record variables.
    pub record_size: u64,
    /// Whether exactly one variable has records; those are not padded.
    pub one_record_var: bool,
}

impl Layout {
    /// The layout of a header that was read. Sizes are computed from shapes, not taken from `vsize`.
    pub fn of(header: &Header, header_len: u64) -> Result<Layout> {
        let mut layout = Layout { header_len, ..Layout::default() };
        let mut records = Records::default();
        let (mut data_begin, mut record_begin) = (None::<u64>, None::<u64>);
        for var in header.vars.iter() {
            let bytes = bytes_of(header, var)?;
            let first = if header.is_record(var) {
                records.add(var.name(), bytes)?;
                &mut record_begin
            } else {
                let end = pad4(bytes).and_then(|bytes| var.begin().checked_add(bytes));
                layout.data_end = layout.data_end.max(end.ok_or_else(|| beyond(var.name()))?);
                &mut data_begin
            };
            *first = Some(first.map_or(var.begin(), |at| at.min(var.begin())));
        }
        layout.data_begin = data_begin.or(record_begin).unwrap_or(header_len);
        layout.data_end = layout.data_end.max(layout.data_begin);
        layout.record_begin = record_begin.unwrap_or(layout.data_end);
        (layout.record_size, layout.one_record_var) = records.size();
        Ok(layout)
    }

    /// Size of the file with `numrecs` records; `None` if no file can be that large. Without any data it ends
    /// with its header, because ncvalidator refuses further bytes.
    pub fn file_len(&self, numrecs: u64) -> Option<u64> {
        let records = numrecs.checked_mul(self.record_size)?;
        let fixed = if self.data_end > self.data_begin { self.data_end } else { self.header_len };
        let end = if records == 0 { fixed } else { self.record_begin.checked_add(records)? };
        Some(end).filter(|end| *end <= i64::MAX as u64)
    }

    /// The number of complete records in a file of `len` bytes: the number of a streaming file.
    pub fn records_in(&self, len: u64) -> u64 {
        len.saturating_sub(self.record_begin).checked_div(self.record_size).unwrap_or(0)
    }
}

/// Record variables whose data in the first record end outside it, with their ends. A valid file has none,
/// because its records hold their variables without gaps. `layout` is that of `header`.
///
/// Readers that use `begin` can read such a file. But records of these variables overlap those of others or
/// come after them, and the file may have data after [`Layout::file_len`], so that no writer can extend or
/// change it safely.
pub fn outside_record<'h>(
    header: &'h Header,
    layout: &Layout,
) -> impl Iterator<Item = (usize, u64)> + use<'h> {
    let end = layout.record_begin.saturating_add(layout.record_size);
    header.vars.iter().filter(|var| header.is_record(*var)).filter_map(move |var| {
        let ends = var.begin().saturating_add(bytes_of(header, var).ok()?);
        (ends > end).then_some((var.id(), ends))
    })
}

/// The sum of the sizes of record variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Records {
    vars: u64,
    padded: u64,
    bytes: u64,
}

impl Records {
    /// Adds a variable whose records take `bytes`.
    pub fn add(&mut self, name: &str, bytes: u64) -> Result<()> {
        let padded = pad4(bytes).and_then(|bytes| self.padded.checked_add(bytes));
        self.padded = padded.filter(|sum| *sum <= i64::MAX as u64).ok_or_else(|| beyond(name))?;
        self.bytes = bytes;
        self.vars += 1;
        Ok(())
    }

    /// Number of variables added.
    pub fn vars(&self) -> u64 {
        self.vars
    }

    /// Bytes from one record to the next, and whether only one variable has records.
    pub fn size(&self) -> (u64, bool) {
        if self.vars == 1 { (self.bytes, true) } else { (self.padded, false) }
    }
}

fn beyond(name: &str) -> Error {
    Code::ContainerLimit
        .error(format!("variable `{name}` ends beyond byte {} of its file; no file is larger", i64::MAX))
}

/// Bytes of a variable with these lengths, or of one of its records (without the first length), before
/// padding; `None` above 2^63 - 4.
pub fn var_bytes(ty: NcType, lens: impl Iterator<Item = u64> + Clone, is_record: bool) -> Option<u64> {
    let mut lens = lens.skip(usize::from(is_record));
    if lens.clone().any(|len| len == 0) {
        return Some(0);
    }
    lens.try_fold(ty.size() as u64, |bytes, len| bytes.checked_mul(len))
        .filter(|bytes| *bytes <= max_var_bytes(Version::Cdf5))
}

/// Bytes of a variable of `header`, or of one of its records, before padding.
pub fn bytes_of(header: &Header, var: Var<'_>) -> Result<u64> {
    let lens = &header.dims.lens;
    if let Some(id) = var.dims().iter().find(|id| **id as usize >= lens.len()) {
        let (name, dims) = (var.name(), lens.len());
        return Err(Error::invalid(format!("variable `{name}` names dimension {id} of {dims}")));
    }
    let of_var = var.dims().iter().map(|id| lens[*id as usize]);
    var_bytes(var.ty(), of_var, header.is_record(var))
        .ok_or_else(|| too_large(header.version, var.name(), None, header.is_record(var)))
}

/// The `vsize` in the file for a variable of `bytes`: padded, and all ones if a field of CDF-1 or CDF-2
/// cannot hold that.
pub fn vsize(version: Version, bytes: u64) -> u64 {
    let padded = bytes.next_multiple_of(4);
    if version != Version::Cdf5 && padded > u64::from(u32::MAX) - 3 { u64::from(u32::MAX) } else { padded }
}

/// Bytes of the largest variable (or record of one) before the exceptions of [`check_var_bytes`].
pub fn max_var_bytes(version: Version) -> u64 {
    match version {
        Version::Cdf1 => (1 << 31) - 4,
        Version::Cdf2 => (1 << 32) - 4,
        Version::Cdf5 => (1 << 63) - 4,
    }
}

fn too_large(version: Version, name: &str, bytes: Option<u64>, is_record: bool) -> Error {
    let (what, limit) =
        (if is_record { "one record of variable" } else { "variable" }, max_var_bytes(version));
    let bytes = bytes.map_or("more than 9223372036854775804".to_string(), |bytes| bytes.to_string());
    let exception = match (version, is_record) {
        (Version::Cdf5, _) => "",
        (_, true) => "; only the last record variable may be larger",
        (_, false) => "; only the last fixed variable may be larger, and only without record variables",
    };
    Code::ContainerLimit
        .error(format!(
            "{what} `{name}` takes {bytes} bytes; the limit of {} is {limit}{exception}",
            version.name()
        ))
        .with_hint(if version == Version::Cdf5 {
            "make it smaller"
        } else {
            "use the format cdf5, or define it last"
        })
}

/// Checks a variable's size against the limit of `version`. In CDF-1 and CDF-2 one variable may be larger:
/// the last record variable, or the last fixed one if no variable has records.
pub fn check_var_bytes(
    version: Version,
    name: &str,
    bytes: u64,
    is_record: bool,
    is_last_of_its_kind: bool,
    record_vars: u64,
) -> Result<()> {
    let excepted = version != Version::Cdf5 && is_last_of_its_kind && (is_record || record_vars == 0);
    if bytes <= max_var_bytes(version) || excepted {
        return Ok(());
    }
    Err(too_large(version, name, Some(bytes), is_record))
}

/// Checks that a variable may begin at `begin`: below 2^31 in CDF-1, below 2^63 in the others.
pub fn check_begin(version: Version, name: &str, begin: u64) -> Result<()> {
    let limit = if version == Version::Cdf1 { i32::MAX as u64 } else { i64::MAX as u64 };
    if begin <= limit {
        return Ok(());
    }
    Err(Code::ContainerLimit
        .error(format!(
            "variable `{name}` would begin at byte {begin}; the largest offset of {} is {limit}",
            version.name()
        ))
        .with_hint("use the format cdf2 or cdf5, or define large variables last"))
}

/// Largest length of a dimension, and largest number of objects in a list, of elements of an attribute and of
/// dimensions of a variable.
pub fn max_count(version: Version) -> u64 {
    if version == Version::Cdf5 { i64::MAX as u64 } else { i32::MAX as u64 }
}

/// Checks the length of a fixed dimension against the limits of `version`.
pub fn check_dim_len(version: Version, name: &str, len: u64) -> Result<()> {
    if len == 0 {
        return Err(Code::Shape
            .error(format!(
                "dimension `{name}` has length 0, which marks the record dimension in netCDF classic"
            ))
            .with_hint("leave the dimension and its variables out, or make it the record dimension"));
    }
    check_count(version, len, || format!("length of dimension `{name}`"))
}

/// Checks a count against the limit of `version`; `what` names the count for the message.
pub fn check_count(version: Version, count: u64, what: impl Fn() -> String) -> Result<()> {
    let limit = max_count(version);
    if count <= limit {
        return Ok(());
    }
    let what = what();
    Err(Code::ContainerLimit
        .error(format!("{what} is {count}; the limit of {} is {limit}", version.name()))
        .with_hint(if version == Version::Cdf5 { "make it smaller" } else { "use the format cdf5" }))
}

/// Checks everything that does not depend on offsets: lengths, types, lengths of names as written to the
/// file.
pub fn check_limits(header: &Header, escaped: bool) -> Result<()> {
    let version = header.version;
    let check_name = |name: &str| check_length(name, write::name_len(name, escaped));
    let check_type = |ty: NcType, whose: &dyn Fn() -> String| {
        if ty.is_in(version) {
            return Ok(());
        }
        let (ty, whose, version) = (ty.name(), whose(), version.name());
        Err(Code::ContainerFormat
            .error(format!("{whose} has type {ty}, which {version} does not have"))
            .with_hint("use the format cdf5 or a type from byte to double"))
    };
    let check_attr = |attr: super::Attr<'_>| {
        let name = attr.name;
        check_type(attr.ty, &|| format!("attribute `{name}`"))?;
        check_count(version, attr.len() as u64, || format!("number of elements of attribute `{name}`"))
    };
    for (list, count) in [
        ("dimensions", header.dims.len()),
        ("global attributes", header.attrs.len()),
        ("variables", header.vars.len()),
    ] {
        check_count(Version::Cdf1, count as u64, || format!("number of {list}"))?;
    }
    for dim in header.dims.iter() {
        check_name(dim.name)?;
        if !dim.is_record {
            check_dim_len(version, dim.name, dim.len)?;
        }
    }
    for attr in header.attrs.iter() {
        check_name(attr.name)?;
        check_attr(attr)?;
    }
    for var in header.vars.iter() {
        check_name(var.name())?;
        check_type(var.ty(), &|| format!("variable `{}`", var.name()))?;
        var.attrs()
            .try_for_each(|attr| check_length(attr.name, attr.name.len()).and_then(|()| check_attr(attr)))?;
    }
    Ok(())
}

fn align(at: u64, to: u64) -> Option<u64> {
    at.checked_next_multiple_of(to.max(1))?.checked_next_multiple_of(4).filter(|at| *at <= i64::MAX as u64)
}

/// Offset of data after a header of `header_len`, if there are variables.
pub fn data_begin(header_len: u64, alignment: &Alignment) -> Result<u64> {
    header_len.checked_add(alignment.h_minfree).and_then(|at| align(at, alignment.v_align)).ok_or_else(|| {
        let free = alignment.h_minfree;
        Code::ContainerLimit
            .error(format!("a header of {header_len} bytes with {free} free bytes exceeds the largest file"))
    })
}

/// Offset of records after fixed data that end at `data_end`.
pub fn record_begin(data_end: u64, alignment: &Alignment) -> Result<u64> {
    data_end.checked_add(alignment.v_minfree).and_then(|at| align(at, alignment.r_align)).ok_or_else(|| {
        let free = alignment.v_minfree;
        Code::ContainerLimit
            .error(format!("{free} free bytes after data that end at {data_end} exceed the largest file"))
    })
}

/// Sets `vsizes` and `begins`, after checking all limits. `old` is the present header of the file, whose
/// dimensions and variables come first in the new one: its variables keep their positions if possible.
pub fn lay_out(
    header: &mut Header,
    alignment: &Alignment,
    escaped: bool,
    old: Option<&Header>,
) -> Result<Layout> {
    check_limits(header, escaped)?;
    let version = header.version;
    let header_len = write::header_len(header, escaped);
    let count = header.vars.len();
    let mut sizes = Vec::with_capacity(count);
    let (mut last_fixed, mut last_record, mut records) = (None, None, Records::default());
    for var in header.vars.iter() {
        let bytes = bytes_of(header, var)?;
        if header.is_record(var) {
            records.add(var.name(), bytes)?;
            last_record = Some(var.id());
        } else {
            last_fixed = Some(var.id());
        }
        sizes.push(bytes);
    }
    let old_begin = |i: usize| old.and_then(|old| old.vars.begins.get(i).copied()).unwrap_or(0);
    let old_layout = old.map(|old| Layout::of(old, 0)).transpose()?.unwrap_or_default();
    // Data stay in place as long as the new header fits before them; only a larger one gets new free space.
    let data_begin = if count == 0 && alignment.h_minfree == 0 {
        header_len.max(old_layout.data_begin)
    } else if header_len <= old_layout.data_begin {
        old_layout.data_begin
    } else {
        data_begin(header_len, alignment)?
    };

    let mut begins = vec![0; count];
    let mut at = data_begin;
    for var in header.vars.iter().filter(|var| !header.is_record(*var)) {
        let (i, name) = (var.id(), var.name());
        check_var_bytes(version, name, sizes[i], false, last_fixed == Some(i), records.vars)?;
        // Free space before an old variable remains, so that the variable does not move down.
        begins[i] = at.max(old_begin(i));
        check_begin(version, name, begins[i])?;
        let end = begins[i].checked_add(sizes[i].next_multiple_of(4));
        at = end.filter(|end| *end <= i64::MAX as u64).ok_or_else(|| beyond(name))?;
    }
    let data_end = at;
    let had_records = old.is_some_and(|old| old.vars.iter().any(|var| old.is_record(var)));
    // Existing records stay in place unless the fixed variables have grown into them.
    let record_begin = if had_records && data_end <= old_layout.record_begin {
        old_layout.record_begin
    } else if records.vars > 0 {
        record_begin(data_end, alignment)?
    } else {
        data_end
    };
    at = record_begin;
    for var in header.vars.iter().filter(|var| header.is_record(*var)) {
        let (i, name) = (var.id(), var.name());
        check_var_bytes(version, name, sizes[i], true, last_record == Some(i), records.vars)?;
        begins[i] = at;
        check_begin(version, name, at)?;
        at = at
            .checked_add(sizes[i].next_multiple_of(4))
            .filter(|end| *end <= i64::MAX as u64)
            .ok_or_else(|| beyond(name))?;
    }
    let (record_size, one_record_var) = records.size();
    header.vars.vsizes = sizes.into_iter().map(|bytes| vsize(version, bytes)).collect();
    header.vars.begins = begins;
    Ok(Layout { header_len, data_begin, data_end, record_begin, record_size, one_record_var })
}

#[cfg(test)]
mod tests;
