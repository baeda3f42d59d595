//! Entries of a header's lists, parsed in place: nothing is copied before it is known to be complete.
//!
//! Invariants: no read goes beyond the slice; an incomplete entry in the slice is distinguished from a wrong
//! one; lengths are checked before they are added.

use fieldstone_core::{Error, Result};

use super::{Finding, Places, shown};
use crate::netcdf::write::List;
use crate::netcdf::{Attr, NcType, Version};

/// The reason why there is no entry.
#[derive(Debug)]
pub(super) enum Stop {
    /// The slice ends before it and would need `upto` bytes. The missing part is at `offset`.
    Short { upto: u64, offset: u64, what: &'static str },
    /// Its bytes break a rule.
    Broken { offset: u64, rule: &'static str, message: String },
}

/// An entry, or the reason why there is none.
pub(super) type Parsed<T> = std::result::Result<T, Stop>;

/// A position in a slice of a header, whose first byte has the offset `base` in the file.
#[derive(Debug, Clone)]
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
    version: Version,
}

impl<'a> Scan<'a> {
    pub fn new(bytes: &'a [u8], base: u64, version: Version) -> Scan<'a> {
        Scan { bytes, at: 0, base, version }
    }
    /// Bytes parsed so far.
    pub fn used(&self) -> usize {
        self.at
    }
    /// Offset in the file of the next byte.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }
    pub fn take(&mut self, len: u64, what: &'static str) -> Parsed<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(len).ok().and_then(|len| rest.get(..len)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => {
                let upto = (self.at as u64).saturating_add(len);
                Err(Stop::Short { upto, offset: self.offset(), what })
            }
        }
    }
    pub fn u32(&mut self, what: &'static str) -> Parsed<u32> {
        let bytes = self.take(4, what)?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
    fn wide(&mut self, width: usize, what: &'static str) -> Parsed<u64> {
        Ok(number(self.take(width as u64, what)?))
    }
    /// A count, a length or a vsize as it is in the file.
    pub fn raw_size(&mut self, what: &'static str) -> Parsed<u64> {
        self.wide(self.version.size_width(), what)
    }
    /// A count or a length, which must not be negative.
    pub fn size(&mut self, what: &'static str) -> Parsed<u64> {
        let offset = self.offset();
        let value = self.raw_size(what)?;
        if i64::try_from(value).is_ok() {
            return Ok(value);
        }
        let message = format!("{what} is {}", value as i64);
        Err(Stop::Broken { offset, rule: "counts and lengths are not negative", message })
    }
    /// `len` bytes and their padding to a multiple of four.
    fn padded(&mut self, len: u64, what: &'static str) -> Parsed<(&'a [u8], &'a [u8])> {
        let bytes = self.take(len, what)?;
        Ok((bytes, self.take(len.wrapping_neg() & 3, "padding")?))
    }
    fn name(&mut self) -> Parsed<(&'a [u8], &'a [u8])> {
        let len = self.size("length of a name")?;
        self.padded(len, "name")
    }
    fn ty(&mut self) -> Parsed<NcType> {
        let offset = self.offset();
        let code = self.u32("type")?;
        NcType::from_code(code).ok_or_else(|| {
            let message = format!("type {code}");
            Stop::Broken { offset, rule: "types are 1 to 6, in CDF-5 1 to 11", message }
        })
    }
    /// Tag and count of a list.
    pub fn list_head(&mut self, list: List) -> Parsed<u64> {
        let offset = self.offset();
        let tag = self.u32("tag of a list")?;
        if tag != 0 && tag != list.tag() {
            let message = format!("tag {tag} at the beginning of a list of {}", list.name());
            let rule =
                "a list has the tag 10 (dimensions), 11 (variables) or 12 (attributes), an empty one 0";
            return Err(Stop::Broken { offset, rule, message });
        }
        let count = self.size("number of entries of a list")?;
        if tag == 0 && count != 0 {
            let message = format!("tag 0 and {count} {}", list.name());
            return Err(Stop::Broken { offset, rule: "a list with tag 0 is empty", message });
        }
        Ok(count)
    }
    pub fn dim(&mut self) -> Parsed<DimEntry<'a>> {
        let (name, padding) = self.name()?;
        Ok(DimEntry { name, padding, len: self.size("length of a dimension")? })
    }
    pub fn attr(&mut self) -> Parsed<AttrEntry<'a>> {
        #[cfg(test)]
        ATTRS.set(ATTRS.get() + 1);
        let offset = self.offset();
        let (name, padding) = self.name()?;
        let ty = self.ty()?;
        let count_at = self.offset();
        let count = self.size("number of elements of an attribute")?;
        let len = count.checked_mul(ty.size() as u64).filter(|len| *len <= i64::MAX as u64);
        let Some(len) = len else {
            let message = format!("{count} elements of type {}", ty.name());
            return Err(Stop::Broken { offset: count_at, rule: "values lie in the file", message });
        };
        let (value, value_padding) = self.padded(len, "values of an attribute")?;
        Ok(AttrEntry { offset, name, padding, ty, value, value_padding })
    }
    /// The part of a variable before its attributes, and their number; the later fields are 0.
    fn var_head(&mut self) -> Parsed<VarEntry<'a>> {
        let (name, padding) = self.name()?;
        let width = self.version.size_width();
        let ndims_at = self.offset();
        let ndims = self.size("number of dimensions of a variable")?;
        let Some(len) = ndims.checked_mul(width as u64) else {
            let message = format!("{ndims} dimensions");
            return Err(Stop::Broken { offset: ndims_at, rule: "dimension ids lie in the file", message });
        };
        let dims_at = self.offset();
        let dims = self.take(len, "dimension ids")?;
        let attrs_at = self.offset();
        let count = self.list_head(List::Attrs)?;
        let smallest = (4 + 2 * width) as u64;
        // Refuses an impossible count before its entries are searched one by one.
        if count.checked_mul(smallest).is_none() {
            let message = format!("{count} attributes");
            return Err(Stop::Broken { offset: attrs_at, rule: "entries lie in the file", message });
        }
        let (attrs, ty) = (self.clone(), NcType::Byte);
        Ok(VarEntry { name, padding, dims, dims_at, width, attrs, count, ty, vsize: 0, begin: 0 })
    }
    /// The part of a variable after its attributes.
    fn var_tail(&mut self) -> Parsed<(NcType, u64, u64)> {
        let ty = self.ty()?;
        let vsize = self.raw_size("vsize")?;
        let begin_at = self.offset();
        let begin = self.wide(self.version.offset_width(), "begin")?;
        if begin > i64::MAX as u64 {
            let message = format!("begin is {}", begin as i64);
            return Err(Stop::Broken { offset: begin_at, rule: "offsets are not negative", message });
        }
        Ok((ty, vsize, begin))
    }
    pub fn var(&mut self) -> Parsed<VarEntry<'a>> {
        let head = self.var_head()?;
        for _ in 0..head.count {
            self.attr()?;
        }
        let (ty, vsize, begin) = self.var_tail()?;
        Ok(VarEntry { ty, vsize, begin, ..head })
    }
    /// Parses a variable for its length. Continues where an earlier scan of fewer bytes from the same
    /// position stopped.
    pub fn var_from(&mut self, progress: &mut Progress) -> Parsed<()> {
        let mut left = match progress.0 {
            Some((at, left)) => {
                self.at = at.min(self.bytes.len());
                left
            }
            None => self.var_head()?.count,
        };
        loop {
            progress.0 = Some((self.at, left));
            if left == 0 {
                return self.var_tail().map(|_| ());
            }
            self.attr()?;
            left -= 1;
        }
    }
}

/// Progress in a variable's entry: the position in it and, after its first attribute is reached, the number
/// of remaining attributes. Without it each chunk would start over, and a variable of many attributes would
/// cost the square of its length.
#[derive(Debug, Default)]
pub(super) struct Progress(Option<(usize, u64)>);

#[cfg(test)]
thread_local! {
    /// Number of attributes parsed.
    pub(super) static ATTRS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A name without the zero bytes that old writers counted as part of it.
pub(super) fn trimmed(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &name[..end]
}

fn text(name: &[u8]) -> Result<&str> {
    let name = trimmed(name);
    std::str::from_utf8(name).map_err(|_| Error::corrupt(format!("name `{}` is not UTF-8", shown(name))))
}

/// A dimension in the bytes of its header.
#[derive(Debug, Clone, Copy)]
pub struct DimEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) padding: &'a [u8],
    /// Its length; 0 for the record dimension.
    pub len: u64,
}

impl<'a> DimEntry<'a> {
    /// Its name as it is in the file.
    pub fn name(&self) -> Result<&'a str> {
        text(self.name)
    }
}

/// An attribute in the bytes of its header.
#[derive(Debug, Clone, Copy)]
pub struct AttrEntry<'a> {
    pub(super) offset: u64,
    pub(super) name: &'a [u8],
    pub(super) padding: &'a [u8],
    pub(super) ty: NcType,
    pub(super) value: &'a [u8],
    pub(super) value_padding: &'a [u8],
}

impl<'a> AttrEntry<'a> {
    /// The attribute.
    pub fn get(&self) -> Result<Attr<'a>> {
        Ok(Attr { name: text(self.name)?, ty: self.ty, value: self.value })
    }
}

/// A variable in the bytes of its header.
#[derive(Debug, Clone)]
pub struct VarEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) padding: &'a [u8],
    dims: &'a [u8],
    pub(super) dims_at: u64,
    width: usize,
    attrs: Scan<'a>,
    count: u64,
    /// Its type.
    pub ty: NcType,
    /// Its `vsize` as it is in the file.
    pub vsize: u64,
    /// Offset of its first byte.
    pub begin: u64,
}

impl<'a> VarEntry<'a> {
    /// Its name as it is in the file.
    pub fn name(&self) -> Result<&'a str> {
        text(self.name)
    }
    /// Numbers of its dimensions, outermost first, unchecked.
    pub fn dims(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.dims.chunks_exact(self.width).map(number)
    }
    /// Its attributes, in order.
    pub fn attrs(&self) -> impl Iterator<Item = AttrEntry<'a>> + use<'a> {
        let mut scan = self.attrs.clone();
        // They were parsed once already, so none can fail.
        (0..self.count).map_while(move |_| scan.attr().ok())
    }
}

fn whole<T>(entry: Parsed<T>, used: impl FnOnce() -> usize, object: &str) -> Result<Option<(T, usize)>> {
    match entry {
        Ok(entry) => Ok(Some((entry, used()))),
        Err(Stop::Short { .. }) => Ok(None),
        Err(Stop::Broken { offset, rule, message }) => {
            Err(Finding::error(offset, object, rule, message).into_error())
        }
    }
}

/// The dimension whose entry is at the beginning of `bytes`, and the entry's length; `None` if the slice ends
/// before it does. Offsets in errors count from the beginning of `bytes`.
pub fn dim_entry(bytes: &[u8], version: Version) -> Result<Option<(DimEntry<'_>, usize)>> {
    let mut scan = Scan::new(bytes, 0, version);
    let entry = scan.dim();
    whole(entry, || scan.used(), "entry of a dimension")
}

/// The attribute whose entry is at the beginning of `bytes`; see [`dim_entry`].
pub fn attr_entry(bytes: &[u8], version: Version) -> Result<Option<(AttrEntry<'_>, usize)>> {
    let mut scan = Scan::new(bytes, 0, version);
    let entry = scan.attr();
    whole(entry, || scan.used(), "entry of an attribute")
}

/// The variable whose entry is at the beginning of `bytes`; see [`dim_entry`]. The caller checks that the
/// version has its type and that its dimensions exist.
pub fn var_entry(bytes: &[u8], version: Version) -> Result<Option<(VarEntry<'_>, usize)>> {
    let mut scan = Scan::new(bytes, 0, version);
    let entry = scan.var();
    whole(entry, || scan.used(), "entry of a variable")
}

/// The count in the head of a list (its tag and count) at the beginning of `bytes`. See [`dim_entry`].
pub fn list_head(bytes: &[u8], list: List, version: Version) -> Result<Option<u64>> {
    let mut scan = Scan::new(bytes, 0, version);
    let count = scan.list_head(list);
    Ok(whole(count, || 0, "head of a list")?.map(|(count, _)| count))
}

impl Places {
    /// Whether the parts are in the order of a header.
    pub fn in_order(&self) -> bool {
        self.dims_at <= self.attrs_at && self.attrs_at <= self.vars_at && self.vars_at <= self.header_len
    }
}
