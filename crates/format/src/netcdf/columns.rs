//! A netCDF header in memory, by columns: all names in one buffer, all attribute values in another. A million
//! variables take a dozen vectors instead of a million small allocations.
//!
//! The same columns hold definitions in progress, headers read from files, and the parts that ranks send to
//! one another. Names are the caller's; other code checks whether they are legal netCDF names.
//!
//! Invariants: columns of one table have equal lengths; ends ascend and the last one is the buffer's length;
//! attribute values are external bytes (big-endian, not padded), a whole number of elements.
//!
//! ```
//! use fieldstone_format::netcdf::{Header, NcType, Version};
//! let mut header = Header::new(Version::Cdf5);
//! let x = header.dims.push("x", 100);
//! let t = header.vars.push("t", NcType::Float, &[x]);
//! header.vars.attrs_of_last("units", NcType::Char, b"K");
//! assert_eq!(header.vars.get(t as usize).attrs().next().map(|a| a.name), Some("units"));
//! ```

use std::ops::Range;

use super::{NcType, Version};

mod bulk;

/// A list of names in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    text: String,
    ends: Vec<u64>,
}

impl Names {
    /// An empty list with room for `names` names that take `bytes` together.
    pub fn with_capacity(names: usize, bytes: usize) -> Names {
        Names { text: String::with_capacity(bytes), ends: Vec::with_capacity(names) }
    }
    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Appends a name.
    pub fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u64);
    }
    /// Name number `i`. Panics if there is none, like a slice.
    pub fn get(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start as usize..self.ends[i] as usize]
    }
    /// All names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// All names, concatenated.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The end of each name in [`text`](Names::text).
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }
    /// Bytes of memory that it holds.
    pub fn memory(&self) -> u64 {
        (self.text.capacity() + self.ends.capacity() * 8) as u64
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Names {
        let mut list = Names::default();
        names.into_iter().for_each(|name| list.push(name.as_ref()));
        list
    }
}

/// Dimensions. The record dimension has length 0 here, as in the file; its number is in `record`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dims {
    /// Their names.
    pub names: Names,
    /// Their lengths; 0 for the record dimension.
    pub lens: Vec<u64>,
    /// Number of the record dimension.
    pub record: Option<u32>,
}

/// A dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its length; 0 for the record dimension.
    pub len: u64,
    /// Whether it is the record dimension.
    pub is_record: bool,
}

impl Dims {
    /// Number of dimensions.
    pub fn len(&self) -> usize {
        self.lens.len()
    }
    /// Whether there are no dimensions.
    pub fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }
    /// Appends a dimension of fixed length and returns its number.
    pub fn push(&mut self, name: &str, len: u64) -> u32 {
        self.names.push(name);
        self.lens.push(len);
        self.lens.len() as u32 - 1
    }
    /// Appends the record dimension and returns its number.
    pub fn push_record(&mut self, name: &str) -> u32 {
        let id = self.push(name, 0);
        self.record = Some(id);
        id
    }
    /// Dimension number `i`. Panics if there is none, like a slice.
    pub fn get(&self, i: usize) -> Dim<'_> {
        Dim { name: self.names.get(i), len: self.lens[i], is_record: self.record == Some(i as u32) }
    }
    /// All dimensions, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dim<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// Bytes of memory that they hold.
    pub fn memory(&self) -> u64 {
        self.names.memory() + self.lens.capacity() as u64 * 8
    }
}

/// A list of attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attrs {
    /// Their names.
    pub names: Names,
    /// Their types.
    pub types: Vec<NcType>,
    values: Vec<u8>,
    ends: Vec<u64>,
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub ty: NcType,
    /// Its external bytes: big-endian elements, without padding.
    pub value: &'a [u8],
}

impl Attr<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.value.len() / self.ty.size()
    }
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

impl Attrs {
    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.types.len()
    }
    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
    /// Appends an attribute; `value` is external bytes without padding.
    pub fn push(&mut self, name: &str, ty: NcType, value: &[u8]) {
        self.names.push(name);
        self.types.push(ty);
        self.values.extend_from_slice(value);
        self.ends.push(self.values.len() as u64);
    }
    /// Attribute number `i`. Panics if there is none, like a slice.
    pub fn get(&self, i: usize) -> Attr<'_> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        let value = &self.values[start as usize..self.ends[i] as usize];
        Attr { name: self.names.get(i), ty: self.types[i], value }
    }
    /// All attributes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Attr<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// The first attribute with that name.
    pub fn find(&self, name: &str) -> Option<Attr<'_>> {
        self.iter().find(|attr| attr.name == name)
    }
    /// Bytes of memory that they hold.
    pub fn memory(&self) -> u64 {
        self.names.memory()
            + (self.types.capacity() + self.values.capacity() + self.ends.capacity() * 8) as u64
    }
}

/// Variables, with their attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vars {
    /// Their names.
    pub names: Names,
    /// Their types.
    pub types: Vec<NcType>,
    dim_ids: Vec<u32>,
    dim_ends: Vec<u64>,
    attrs: Attrs,
    attr_ends: Vec<u64>,
    /// `vsize` of each, as in the file; empty before layout.
    pub vsizes: Vec<u64>,
    /// Offset of the first byte of each; empty before layout.
    pub begins: Vec<u64>,
}

/// A variable, in a [`Vars`].
#[derive(Debug, Clone, Copy)]
pub struct Var<'a> {
    vars: &'a Vars,
    i: usize,
}

impl Vars {
    /// Number of variables.
    pub fn len(&self) -> usize {
        self.types.len()
    }
    /// Whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
    /// Appends a variable over the dimensions with these numbers and returns its number.
    pub fn push(&mut self, name: &str, ty: NcType, dims: &[u32]) -> u32 {
        self.names.push(name);
        self.types.push(ty);
        self.dim_ids.extend_from_slice(dims);
        self.dim_ends.push(self.dim_ids.len() as u64);
        self.attr_ends.push(self.attrs.len() as u64);
        self.types.len() as u32 - 1
    }
    /// Adds an attribute to the last variable; does nothing without a variable.
    pub fn attrs_of_last(&mut self, name: &str, ty: NcType, value: &[u8]) {
        if let Some(end) = self.attr_ends.last_mut() {
            self.attrs.push(name, ty, value);
            *end += 1;
        }
    }
    /// Variable number `i`. Its use panics if there is none, like a slice.
    pub fn get(&self, i: usize) -> Var<'_> {
        Var { vars: self, i }
    }
    /// All variables, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Var<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// Attributes of all variables, concatenated.
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }
    /// Bytes of memory that they hold.
    pub fn memory(&self) -> u64 {
        let words = self.dim_ends.capacity() + self.attr_ends.capacity();
        let words = words + self.vsizes.capacity() + self.begins.capacity();
        self.names.memory()
            + self.attrs.memory()
            + (self.types.capacity() + self.dim_ids.capacity() * 4 + words * 8) as u64
    }
}

fn range(ends: &[u64], i: usize) -> Range<usize> {
    let start = if i == 0 { 0 } else { ends[i - 1] };
    start as usize..ends[i] as usize
}

impl<'a> Var<'a> {
    /// Its number.
    pub fn id(self) -> usize {
        self.i
    }
    /// Its name.
    pub fn name(self) -> &'a str {
        self.vars.names.get(self.i)
    }
    /// Its type.
    pub fn ty(self) -> NcType {
        self.vars.types[self.i]
    }
    /// Numbers of its dimensions, outermost first.
    pub fn dims(self) -> &'a [u32] {
        &self.vars.dim_ids[range(&self.vars.dim_ends, self.i)]
    }
    /// Its attributes, in order.
    pub fn attrs(self) -> impl ExactSizeIterator<Item = Attr<'a>> {
        range(&self.vars.attr_ends, self.i).map(move |i| self.vars.attrs.get(i))
    }
    /// Its `vsize` as in the file; 0 before layout.
    pub fn vsize(self) -> u64 {
        self.vars.vsizes.get(self.i).copied().unwrap_or(0)
    }
    /// Offset of its first byte; 0 before layout.
    pub fn begin(self) -> u64 {
        self.vars.begins.get(self.i).copied().unwrap_or(0)
    }
}

/// A whole header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The format.
    pub version: Version,
    /// Number of records; `None` for a streaming file, whose size determines it.
    pub numrecs: Option<u64>,
    /// Dimensions.
    pub dims: Dims,
    /// Global attributes.
    pub attrs: Attrs,
    /// Variables.
    pub vars: Vars,
}

impl Header {
    /// An empty header without records.
    pub fn new(version: Version) -> Header {
        Header {
            version,
            numrecs: Some(0),
            dims: Dims::default(),
            attrs: Attrs::default(),
            vars: Vars::default(),
        }
    }
    /// Whether the variable's first dimension is the record dimension.
    pub fn is_record(&self, var: Var<'_>) -> bool {
        self.dims.record.is_some() && var.dims().first().copied() == self.dims.record
    }
    /// Bytes of memory that it holds.
    pub fn memory(&self) -> u64 {
        self.dims.memory() + self.attrs.memory() + self.vars.memory()
    }
}
