//! A header's bytes: the size of each entry before it is written, and the entries of any range of a list.
//!
//! Ranks that write one header together each append the entries of their own range. They therefore need the
//! sizes beforehand, and ids of dimensions pass through a map from the caller's numbers to the file's.
//!
//! | bytes | size | written by |
//! |---|---|---|
//! | magic, numrecs | [`head_size`] | [`put_head`] |
//! | tag and count of a list | [`list_head_size`] | [`put_list_head`] |
//! | dimensions | [`dims_size`] | [`put_dims`] |
//! | global attributes, with the head of their list | [`attrs_size`] | [`put_attrs`] |
//! | variables | [`vars_size`] | [`put_vars`] |
//!
//! Invariants: a function appends exactly the size that its counterpart returns; padding is zero; numbers
//! beyond the width of a field (which [`lay_out`](super::layout::lay_out) refuses) are written as all ones.
//!
//! ```
//! use fieldstone_format::netcdf::{Header, NcType, Version, layout, write};
//! let mut header = Header::new(Version::Cdf1);
//! let x = header.dims.push("x", 3);
//! header.vars.push("v", NcType::Short, &[x]);
//! layout::lay_out(&mut header, &layout::Alignment::default(), false, None)?;
//! assert_eq!(write::header(&header, false).len() as u64, write::header_len(&header, false));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::ops::Range;

use super::{Attr, Attrs, Header, NcType, Var, Version, paths};

/// First bytes of every netCDF classic file; the version's byte follows.
pub const MAGIC: [u8; 3] = *b"CDF";

/// First bytes of a file that its writer has not finished; the next byte is the version's.
pub const UNFINISHED: [u8; 3] = *b"FSU";

/// A list of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    /// Dimensions.
    Dims,
    /// Attributes, global or of a variable.
    Attrs,
    /// Variables.
    Vars,
}

impl List {
    /// The tag of a list of this kind unless it is empty. An empty list has tag 0.
    pub fn tag(self) -> u32 {
        match self {
            List::Dims => 10,
            List::Vars => 11,
            List::Attrs => 12,
        }
    }
    /// Name of its objects.
    pub fn name(self) -> &'static str {
        match self {
            List::Dims => "dimensions",
            List::Vars => "variables",
            List::Attrs => "attributes",
        }
    }
}

fn padded(len: usize) -> u64 {
    (len as u64).next_multiple_of(4)
}

/// Bytes of a name in the file, before padding.
pub fn name_len(name: &str, escaped: bool) -> usize {
    if escaped { paths::encoded_len(name) } else { name.len() }
}

/// Bytes of magic and number of records.
pub fn head_size(version: Version) -> u64 {
    4 + version.size_width() as u64
}

/// Bytes of a list's tag and count.
pub fn list_head_size(version: Version) -> u64 {
    4 + version.size_width() as u64
}

fn name_size(version: Version, name: &str, escaped: bool) -> u64 {
    version.size_width() as u64 + padded(name_len(name, escaped))
}

/// Bytes of a dimension's entry.
pub fn dim_size(version: Version, name: &str, escaped: bool) -> u64 {
    name_size(version, name, escaped) + version.size_width() as u64
}

/// Bytes of an attribute's entry. `escaped` is for global attributes: those of variables never are.
pub fn attr_size(version: Version, attr: Attr<'_>, escaped: bool) -> u64 {
    let fixed = 4 + version.size_width() as u64;
    name_size(version, attr.name, escaped) + fixed + padded(attr.value.len())
}

/// Bytes of a variable's entry.
pub fn var_size(version: Version, var: Var<'_>, escaped: bool) -> u64 {
    let width = version.size_width() as u64;
    let attrs: u64 = var.attrs().map(|attr| attr_size(version, attr, false)).sum();
    let fixed = width + list_head_size(version) + 4 + width + version.offset_width() as u64;
    name_size(version, var.name(), escaped) + fixed + width * var.dims().len() as u64 + attrs
}

/// Bytes of the entries of dimensions `range`.
pub fn dims_size(header: &Header, range: Range<usize>, escaped: bool) -> u64 {
    range.map(|i| dim_size(header.version, header.dims.names.get(i), escaped)).sum()
}

/// Bytes of the list of global attributes with its head. If names are escaped, the attribute that declares
/// this is included; it is not in `attrs`.
pub fn attrs_size(version: Version, attrs: &Attrs, escaped: bool) -> u64 {
    let stated = if escaped { attr_size(version, escape_marker(), false) } else { 0 };
    let entries: u64 = attrs.iter().map(|attr| attr_size(version, attr, escaped)).sum();
    list_head_size(version) + entries + stated
}

/// Bytes of the entries of variables `range`.
pub fn vars_size(header: &Header, range: Range<usize>, escaped: bool) -> u64 {
    range.map(|i| var_size(header.version, header.vars.get(i), escaped)).sum()
}

/// Bytes of the whole header.
pub fn header_len(header: &Header, escaped: bool) -> u64 {
    head_size(header.version)
        + 2 * list_head_size(header.version)
        + dims_size(header, 0..header.dims.len(), escaped)
        + attrs_size(header.version, &header.attrs, escaped)
        + vars_size(header, 0..header.vars.len(), escaped)
}

/// The global attribute that declares names to be escaped paths. It comes after all others.
pub fn escape_marker() -> Attr<'static> {
    Attr { name: paths::ATTRIBUTE, ty: NcType::Char, value: paths::RULE.as_bytes() }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_wide(out: &mut Vec<u8>, wide: bool, value: u64) {
    if wide {
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        put_u32(out, u32::try_from(value).unwrap_or(u32::MAX));
    }
}

fn put_size(out: &mut Vec<u8>, version: Version, value: u64) {
    put_wide(out, version == Version::Cdf5, value);
}

fn put_padding(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&[0; 3][..len.wrapping_neg() & 3]);
}

fn put_name(out: &mut Vec<u8>, version: Version, name: &str, escaped: bool) {
    let len = name_len(name, escaped);
    put_size(out, version, len as u64);
    if len == name.len() && !(escaped && name.contains('/')) {
        out.extend_from_slice(name.as_bytes());
    } else {
        paths::encode_bytes(name, out);
    }
    put_padding(out, len);
}

/// Appends an attribute's entry. `escaped` is for global attributes: those of variables never are.
pub fn put_attr(out: &mut Vec<u8>, version: Version, attr: Attr<'_>, escaped: bool) {
    put_name(out, version, attr.name, escaped);
    put_u32(out, attr.ty as u32);
    put_size(out, version, attr.len() as u64);
    out.extend_from_slice(attr.value);
    put_padding(out, attr.value.len());
}

/// Appends magic and number of records (all ones for a streaming file).
pub fn put_head(out: &mut Vec<u8>, version: Version, numrecs: Option<u64>) {
    out.extend_from_slice(&MAGIC);
    out.push(version as u8);
    put_size(out, version, numrecs.unwrap_or(u64::MAX));
}

/// Appends tag and count of a list.
pub fn put_list_head(out: &mut Vec<u8>, version: Version, list: List, count: u64) {
    put_u32(out, if count == 0 { 0 } else { list.tag() });
    put_size(out, version, count);
}

/// Appends the entries of dimensions `range`.
pub fn put_dims(out: &mut Vec<u8>, header: &Header, range: Range<usize>, escaped: bool) {
    for i in range {
        put_name(out, header.version, header.dims.names.get(i), escaped);
        put_size(out, header.version, header.dims.lens[i]);
    }
}

/// Appends the list of global attributes with its head, and the declaration of the escaping if there is one.
pub fn put_attrs(out: &mut Vec<u8>, version: Version, attrs: &Attrs, escaped: bool) {
    put_list_head(out, version, List::Attrs, attrs.len() as u64 + u64::from(escaped));
    attrs.iter().for_each(|attr| put_attr(out, version, attr, escaped));
    if escaped {
        put_attr(out, version, escape_marker(), false);
    }
}

/// Appends the entries of variables `range`, with the vsizes and begins that layout has set. `dim_id` maps
/// the header's number of a dimension to the file's.
pub fn put_vars(
    out: &mut Vec<u8>,
    header: &Header,
    range: Range<usize>,
    escaped: bool,
    dim_id: impl Fn(u32) -> u64,
) {
    let version = header.version;
    for i in range {
        let var = header.vars.get(i);
        put_name(out, version, var.name(), escaped);
        put_size(out, version, var.dims().len() as u64);
        var.dims().iter().for_each(|id| put_size(out, version, dim_id(*id)));
        let attrs = var.attrs();
        put_list_head(out, version, List::Attrs, attrs.len() as u64);
        attrs.for_each(|attr| put_attr(out, version, attr, false));
        put_u32(out, var.ty() as u32);
        put_size(out, version, var.vsize());
        put_wide(out, version != Version::Cdf1, var.begin());
    }
}

/// The whole header.
pub fn header(header: &Header, escaped: bool) -> Vec<u8> {
    let version = header.version;
    let mut out = Vec::with_capacity(header_len(header, escaped) as usize);
    put_head(&mut out, version, header.numrecs);
    put_list_head(&mut out, version, List::Dims, header.dims.len() as u64);
    put_dims(&mut out, header, 0..header.dims.len(), escaped);
    put_attrs(&mut out, version, &header.attrs, escaped);
    put_list_head(&mut out, version, List::Vars, header.vars.len() as u64);
    put_vars(&mut out, header, 0..header.vars.len(), escaped, u64::from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(version: Version) -> Header {
        let mut header = Header::new(version);
        let time = header.dims.push_record("time");
        let x = header.dims.push("a/b.x", 5);
        header.attrs.push("title~", NcType::Char, b"abcde");
        header.vars.push("a/v", NcType::Short, &[time, x]);
        header.vars.attrs_of_last("units.x", NcType::Char, b"K");
        header.vars.push("scalar", NcType::Double, &[]);
        header.vars.vsizes = vec![12, 8];
        header.vars.begins = vec![1024, 512];
        header
    }

    #[test]
    fn entries_have_the_sizes_that_were_given() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            for escaped in [false, true] {
                let header = sample(version);
                let mut out = Vec::new();
                put_dims(&mut out, &header, 1..2, escaped);
                assert_eq!(out.len() as u64, dims_size(&header, 1..2, escaped));
                out.clear();
                put_attrs(&mut out, version, &header.attrs, escaped);
                assert_eq!(out.len() as u64, attrs_size(version, &header.attrs, escaped));
                out.clear();
                put_vars(&mut out, &header, 0..1, escaped, u64::from);
                assert_eq!(out.len() as u64, vars_size(&header, 0..1, escaped));
                let whole = super::header(&header, escaped);
                assert_eq!(whole.len() as u64, header_len(&header, escaped));
                assert_eq!(whole.len() % 4, 0);
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut header = Header::new(Version::Cdf1);
        let x = header.dims.push("x", 3);
        header.vars.push("vv", NcType::Short, &[x]);
        header.vars.attrs_of_last("a", NcType::Byte, &[7]);
        header.vars.vsizes = vec![8];
        header.vars.begins = vec![120];
        let mut expected = b"CDF\x01".to_vec();
        for word in [0_u32, 10, 1, 1] {
            expected.extend(word.to_be_bytes());
        }
        expected.extend(b"x\0\0\0");
        for word in [3_u32, 0, 0, 11, 1, 2] {
            expected.extend(word.to_be_bytes());
        }
        expected.extend(b"vv\0\0");
        for word in [1_u32, 0, 12, 1, 1] {
            expected.extend(word.to_be_bytes());
        }
        expected.extend(b"a\0\0\0\0\0\0\x01\0\0\0\x01\x07\0\0\0");
        for word in [3_u32, 8, 120] {
            expected.extend(word.to_be_bytes());
        }
        assert_eq!(super::header(&header, false), expected);
    }

    #[test]
    fn slices_with_mapped_dimensions_join_to_the_whole() {
        let whole = sample(Version::Cdf5);
        let mut mine = Header::new(Version::Cdf5);
        let x = mine.dims.push("a/b.x", 5);
        let time = mine.dims.push_record("time");
        mine.vars.push("a/v", NcType::Short, &[time, x]);
        mine.vars.attrs_of_last("units.x", NcType::Char, b"K");
        (mine.vars.vsizes, mine.vars.begins) = (vec![12], vec![1024]);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        put_vars(&mut a, &whole, 0..1, true, u64::from);
        put_vars(&mut b, &mine, 0..1, true, |id| [1, 0][id as usize]);
        assert_eq!(a, b);
    }
}
