//! A metadata block: dimensions, global attributes and variables that one writer defined, under one or many
//! paths, in the order of their definition.
//!
//! A block begins with a table of offsets, so that a reader can decode one object without the others. Numbers
//! of objects inside a block are *slots*: 0 is the block's first dimension (or attribute, or variable).
//!
//! Invariants: offsets ascend and are inside the block; an object's entry is used up to its last byte; a name
//! is stored as a path (shared by the block's objects) and a last part; a variable's begin counts from the
//! beginning of the data part, or of the records if it is a record variable.
//!
//! ```
//! use fieldstone_format::netcdf::NcType;
//! use fieldstone_format::partitioned::{Block, BlockBuilder};
//! let mut builder = BlockBuilder::default();
//! builder.dim("a/x", 10, false).unwrap();
//! builder.var("a/t", NcType::Float, false, &[0], [].into_iter(), 64).unwrap();
//! let block = Block::decode(builder.finish()).unwrap();
//! assert_eq!(block.var(0).unwrap().name, "a/t");
//! assert_eq!((block.least_path().unwrap(), block.vars()), ("a", 1));
//! ```

use fieldstone_core::{Code, Error, Result};

use super::{Cursor, MAX_ENTRY};
use crate::netcdf::paths::split;
use crate::netcdf::{Attr, Attrs, NcType};

/// Bytes before the table of offsets.
const COUNTS: usize = 16;

/// Joins a path and a last part to a name.
fn join(path: &str, last: &str) -> String {
    if path.is_empty() { last.to_owned() } else { format!("{path}/{last}") }
}

/// Entries of one kind that the builder gathers.
#[derive(Debug, Clone, Default)]
struct Entries {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl Entries {
    fn begin(&mut self) -> &mut Vec<u8> {
        self.starts.push(self.bytes.len() as u32);
        &mut self.bytes
    }
}

/// Gathers the objects of a block.
#[derive(Debug, Clone, Default)]
pub struct BlockBuilder {
    paths: Entries,
    dims: Entries,
    attrs: Entries,
    vars: Entries,
    last: Option<(u32, u32)>,
    numbers: std::collections::HashMap<Box<str>, u32>,
}

impl BlockBuilder {
    /// Bytes that the block takes so far.
    pub fn len(&self) -> usize {
        let kinds = [&self.paths, &self.dims, &self.attrs, &self.vars];
        COUNTS + kinds.map(|kind| kind.bytes.len() + 4 * kind.starts.len()).iter().sum::<usize>()
    }
    /// Whether it holds no object.
    pub fn is_empty(&self) -> bool {
        self.dims.starts.is_empty() && self.attrs.starts.is_empty() && self.vars.starts.is_empty()
    }
    /// Dimensions so far.
    pub fn dims(&self) -> usize {
        self.dims.starts.len()
    }
    /// Global attributes so far.
    pub fn attrs(&self) -> usize {
        self.attrs.starts.len()
    }
    /// Variables so far.
    pub fn vars(&self) -> usize {
        self.vars.starts.len()
    }
    /// The lowest and the highest path of its objects.
    pub fn path_range(&self) -> (&str, &str) {
        let least = self.numbers.keys().min().map_or("", |path| path);
        (least, self.numbers.keys().max().map_or("", |path| path))
    }
    /// Number of different paths of its objects.
    pub fn paths(&self) -> usize {
        self.paths.starts.len()
    }

    /// The number of a path in this block. Objects of one path usually follow one another.
    fn path(&mut self, path: &str) -> u32 {
        if let Some((start, number)) = self.last
            && self.paths.bytes[start as usize..].starts_with(path.as_bytes())
            && self.paths.starts.get(number as usize + 1).map_or(self.paths.bytes.len(), |end| *end as usize)
                == start as usize + path.len()
        {
            return number;
        }
        let next = self.paths.starts.len() as u32;
        let number = match self.numbers.get(path) {
            Some(number) => *number,
            None => {
                self.paths.begin().extend_from_slice(path.as_bytes());
                self.numbers.insert(path.into(), next);
                next
            }
        };
        self.last = Some((self.paths.starts[number as usize], number));
        number
    }

    /// Adds a dimension; `len` is 0 for the record dimension.
    pub fn dim(&mut self, name: &str, len: u64, is_record: bool) -> Result<()> {
        let (path, last) = split(name);
        let path = self.path(path);
        let out = self.dims.begin();
        out.extend_from_slice(&path.to_be_bytes());
        out.extend_from_slice(&u32::from(is_record).to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(last.as_bytes());
        self.limit(name, 16 + last.len())
    }

    /// Adds a global attribute. Its name may be a path.
    pub fn attr(&mut self, attr: Attr<'_>) -> Result<()> {
        let (path, last) = split(attr.name);
        let path = self.path(path);
        let out = self.attrs.begin();
        let start = out.len();
        out.extend_from_slice(&path.to_be_bytes());
        put_attr(out, last, attr)?;
        let len = out.len() - start;
        self.limit(attr.name, len)
    }

    /// Adds a variable over the dimensions with these numbers of the file. `begin` is relative; see the
    /// module's description.
    pub fn var<'a>(
        &mut self,
        name: &str,
        ty: NcType,
        is_record: bool,
        dims: &[u64],
        attrs: impl ExactSizeIterator<Item = Attr<'a>>,
        begin: u64,
    ) -> Result<()> {
        let (path, last) = split(name);
        let path = self.path(path);
        let len = name_len(name, last)?;
        let out = self.vars.begin();
        let start = out.len();
        out.extend_from_slice(&path.to_be_bytes());
        out.extend_from_slice(&[ty as u8, u8::from(is_record)]);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&(dims.len() as u32).to_be_bytes());
        out.extend_from_slice(&(attrs.len() as u32).to_be_bytes());
        out.extend_from_slice(&begin.to_be_bytes());
        dims.iter().for_each(|dim| out.extend_from_slice(&dim.to_be_bytes()));
        out.extend_from_slice(last.as_bytes());
        for attr in attrs {
            put_attr(out, attr.name, attr)?;
        }
        let len = out.len() - start;
        self.limit(name, len)
    }

    fn limit(&self, name: &str, len: usize) -> Result<()> {
        if len > MAX_ENTRY || self.len() > u32::MAX as usize {
            let message = format!("`{name}` takes {len} bytes of a header; the limit is {MAX_ENTRY}");
            return Err(Code::TooLarge
                .error(message)
                .with_hint("keep large values in variables, not in attributes"));
        }
        Ok(())
    }

    /// Removes all objects, to start the next block; keeps its memory.
    pub fn clear(&mut self) {
        for kind in [&mut self.paths, &mut self.dims, &mut self.attrs, &mut self.vars] {
            kind.bytes.clear();
            kind.starts.clear();
        }
        self.last = None;
        self.numbers.clear();
    }

    /// Encodes the block.
    pub fn finish(&self) -> Vec<u8> {
        let kinds = [&self.paths, &self.dims, &self.attrs, &self.vars];
        let mut out = Vec::with_capacity(self.len());
        kinds.iter().for_each(|kind| out.extend_from_slice(&(kind.starts.len() as u32).to_be_bytes()));
        let objects: usize = kinds.iter().map(|kind| kind.starts.len()).sum();
        let mut base = (COUNTS + objects * 4) as u32;
        for kind in kinds {
            kind.starts.iter().for_each(|start| out.extend_from_slice(&(base + start).to_be_bytes()));
            base += kind.bytes.len() as u32;
        }
        kinds.iter().for_each(|kind| out.extend_from_slice(&kind.bytes));
        out
    }
}

fn name_len(name: &str, last: &str) -> Result<u16> {
    u16::try_from(last.len())
        .map_err(|_| Code::Name.error(format!("the name `{name}` takes {} bytes", last.len())))
}

fn put_attr(out: &mut Vec<u8>, last: &str, attr: Attr<'_>) -> Result<()> {
    out.extend_from_slice(&name_len(attr.name, last)?.to_be_bytes());
    out.extend_from_slice(&[attr.ty as u8, 0]);
    out.extend_from_slice(&(attr.value.len() as u64).to_be_bytes());
    out.extend_from_slice(last.as_bytes());
    out.extend_from_slice(attr.value);
    Ok(())
}

/// A dimension in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDim {
    /// Its path.
    pub name: String,
    /// Its length; 0 for the record dimension.
    pub len: u64,
    /// Whether it is the record dimension.
    pub is_record: bool,
}

/// A variable in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockVar {
    /// Its path.
    pub name: String,
    /// Its type.
    pub ty: NcType,
    /// Whether its first dimension is the record dimension.
    pub is_record: bool,
    /// Numbers of its dimensions in the file.
    pub dims: Vec<u64>,
    /// Its attributes.
    pub attrs: Attrs,
    /// Offset of its first byte from the beginning of the data part, or of the records.
    pub begin: u64,
}

/// A block whose table of offsets was checked; its objects are decoded one by one.
#[derive(Debug, Clone)]
pub struct Block {
    bytes: Vec<u8>,
    counts: [usize; 4],
}

impl Block {
    /// Checks counts and offsets of a block. Its checksum is in the index table, see
    /// [`BlockEntry::check`](super::BlockEntry::check).
    pub fn decode(bytes: Vec<u8>) -> Result<Block> {
        let mut cursor = Cursor::new(&bytes, "block");
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = cursor.u32()? as usize;
        }
        let objects = counts.iter().sum::<usize>();
        let table = objects.checked_mul(4).filter(|len| *len <= bytes.len() - COUNTS);
        let Some(table) = table else {
            return Err(Error::corrupt(format!(
                "block: {objects} objects do not fit into {} bytes",
                bytes.len()
            )));
        };
        let mut before = COUNTS + table;
        for i in 0..objects {
            let offset = cursor.u32()? as usize;
            if offset < before || offset > bytes.len() || (i == 0 && offset != before) {
                let message =
                    format!("block: entry {i} begins at {offset}; offsets must ascend in the block");
                return Err(Error::corrupt(message));
            }
            before = offset;
        }
        if objects == 0 && bytes.len() != COUNTS {
            return Err(Error::corrupt("block: bytes without an object"));
        }
        Ok(Block { bytes, counts })
    }

    /// Number of different paths of its objects.
    pub fn paths(&self) -> usize {
        self.counts[0]
    }
    /// Its dimensions.
    pub fn dims(&self) -> usize {
        self.counts[1]
    }
    /// Its global attributes.
    pub fn attrs(&self) -> usize {
        self.counts[2]
    }
    /// Its variables.
    pub fn vars(&self) -> usize {
        self.counts[3]
    }
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.counts[1..] == [0, 0, 0]
    }

    fn offset(&self, i: usize) -> usize {
        let at = COUNTS + i * 4;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_be_bytes(bytes) as usize
    }

    /// The entry of a slot of a kind: 0 paths, 1 dimensions, 2 attributes, 3 variables.
    fn entry(&self, kind: usize, slot: usize, what: &'static str) -> Result<Cursor<'_>> {
        if slot >= self.counts[kind] {
            let message = format!("{what} {slot} of a block that holds {}", self.counts[kind]);
            return Err(Error::corrupt(message));
        }
        let i = self.counts[..kind].iter().sum::<usize>() + slot;
        let last = i + 1 == self.counts.iter().sum::<usize>();
        let end = if last { self.bytes.len() } else { self.offset(i + 1) };
        Ok(Cursor::new(&self.bytes[self.offset(i)..end], what))
    }

    /// Offset of a path's entry in the block; the block's length if there is none.
    pub fn path_at(&self, number: usize) -> usize {
        self.entry_at(0, number)
    }
    /// As [`path_at`](Block::path_at), for a dimension.
    pub fn dim_at(&self, slot: usize) -> usize {
        self.entry_at(1, slot)
    }
    /// As [`path_at`](Block::path_at), for a global attribute.
    pub fn attr_at(&self, slot: usize) -> usize {
        self.entry_at(2, slot)
    }
    /// As [`path_at`](Block::path_at), for a variable.
    pub fn var_at(&self, slot: usize) -> usize {
        self.entry_at(3, slot)
    }

    fn entry_at(&self, kind: usize, slot: usize) -> usize {
        let before = self.counts[..kind].iter().sum::<usize>();
        if slot < self.counts[kind] { self.offset(before + slot) } else { self.bytes.len() }
    }

    /// A path by its number in this block.
    pub fn path(&self, number: usize) -> Result<&str> {
        let mut cursor = self.entry(0, number, "path")?;
        cursor.text(cursor.bytes.len())
    }

    /// The lowest of its paths.
    pub fn least_path(&self) -> Result<&str> {
        (0..self.paths())
            .map(|i| self.path(i))
            .try_fold(None, |least: Option<&str>, path| {
                let path = path?;
                Ok(Some(least.map_or(path, |least| least.min(path))))
            })
            .map(|least| least.unwrap_or(""))
    }

    /// The name in a slot, as path and last part, without decoding the rest of its entry.
    pub fn var_name(&self, slot: usize) -> Result<(&str, &str)> {
        let mut cursor = self.entry(3, slot, "variable")?;
        let path = cursor.u32()?;
        cursor.u16()?;
        let len = cursor.u16()?;
        let ndims = cursor.u32()? as usize;
        cursor.take(12)?;
        cursor.take(ndims.saturating_mul(8))?;
        Ok((self.path(path as usize)?, cursor.text(usize::from(len))?))
    }

    /// As [`var_name`](Block::var_name), for a dimension.
    pub fn dim_name(&self, slot: usize) -> Result<(&str, &str)> {
        let mut cursor = self.entry(1, slot, "dimension")?;
        let path = cursor.u32()?;
        cursor.take(12)?;
        Ok((self.path(path as usize)?, cursor.text(cursor.bytes.len())?))
    }

    /// As [`var_name`](Block::var_name), for a global attribute.
    pub fn attr_name(&self, slot: usize) -> Result<(&str, &str)> {
        let mut cursor = self.entry(2, slot, "attribute")?;
        let path = cursor.u32()?;
        let len = cursor.u16()?;
        cursor.take(10)?;
        Ok((self.path(path as usize)?, cursor.text(usize::from(len))?))
    }

    /// The dimension in a slot.
    pub fn dim(&self, slot: usize) -> Result<BlockDim> {
        let mut cursor = self.entry(1, slot, "dimension")?;
        let path = self.path(cursor.u32()? as usize)?;
        let is_record = flag(cursor.u32()?)?;
        let len = cursor.u64()?;
        Ok(BlockDim { name: join(path, cursor.text(cursor.bytes.len())?), len, is_record })
    }

    /// Adds the global attribute in a slot to `attrs`.
    pub fn attr(&self, slot: usize, attrs: &mut Attrs) -> Result<()> {
        let mut cursor = self.entry(2, slot, "attribute")?;
        let path = self.path(cursor.u32()? as usize)?;
        let attr = take_attr(&mut cursor)?;
        attrs.push(&join(path, attr.name), attr.ty, attr.value);
        used_up(cursor)
    }

    /// The variable in a slot.
    pub fn var(&self, slot: usize) -> Result<BlockVar> {
        let mut cursor = self.entry(3, slot, "variable")?;
        let path = self.path(cursor.u32()? as usize)?;
        let ty = take_type(&mut cursor)?;
        let is_record = flag(u32::from(cursor.u8()?))?;
        let len = cursor.u16()?;
        let (ndims, nattrs) = (cursor.u32()? as usize, cursor.u32()?);
        let begin = cursor.u64()?;
        let ids = cursor.take(ndims.saturating_mul(8))?;
        let dims = ids.as_chunks::<8>().0.iter().map(|id| u64::from_be_bytes(*id)).collect();
        let name = join(path, cursor.text(usize::from(len))?);
        let mut attrs = Attrs::default();
        for _ in 0..nattrs {
            let attr = take_attr(&mut cursor)?;
            attrs.push(attr.name, attr.ty, attr.value);
        }
        used_up(cursor)?;
        Ok(BlockVar { name, ty, is_record, dims, attrs, begin })
    }
}

fn flag(value: u32) -> Result<bool> {
    match value {
        0 | 1 => Ok(value == 1),
        _ => Err(Error::corrupt(format!("block: a flag has the value {value}, not 0 or 1"))),
    }
}

fn take_type(cursor: &mut Cursor<'_>) -> Result<NcType> {
    let code = cursor.u8()?;
    NcType::from_code(u32::from(code))
        .ok_or_else(|| Error::corrupt(format!("block: type {code} is not one of 1 to 11")))
}

fn take_attr<'a>(cursor: &mut Cursor<'a>) -> Result<Attr<'a>> {
    let len = cursor.u16()?;
    let ty = take_type(cursor)?;
    cursor.u8()?;
    let bytes = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
    let name = cursor.text(usize::from(len))?;
    let value = cursor.take(bytes)?;
    if !bytes.is_multiple_of(ty.size()) {
        let message = format!("block: attribute `{name}` of type {} has {bytes} bytes", ty.name());
        return Err(Error::corrupt(message));
    }
    Ok(Attr { name, ty, value })
}

fn used_up(cursor: Cursor<'_>) -> Result<()> {
    if cursor.bytes.is_empty() {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "block: {} bytes are left in the entry of a {}",
        cursor.bytes.len(),
        cursor.what
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BlockBuilder {
        let mut builder = BlockBuilder::default();
        let title = Attr { name: "run/title", ty: NcType::Char, value: b"a test" };
        builder.attr(title).unwrap();
        for path in ["run/b", "run/a", "run/b"] {
            builder.dim(&format!("{path}/x"), 7, false).unwrap();
        }
        builder.dim("time", 0, true).unwrap();
        let attrs = [
            Attr { name: "units", ty: NcType::Char, value: b"K" },
            Attr { name: "empty", ty: NcType::Double, value: b"" },
        ];
        builder.var("run/b/t", NcType::Float, true, &[3, 0], attrs.into_iter(), 128).unwrap();
        builder.var("plain", NcType::UInt64, false, &[], [].into_iter(), u64::MAX).unwrap();
        builder
    }

    #[test]
    fn objects_come_back_as_they_were_given() {
        let builder = sample();
        let bytes = builder.finish();
        assert_eq!(bytes.len(), builder.len());
        assert_eq!((builder.paths(), builder.path_range()), (4, ("", "run/b")));
        let block = Block::decode(bytes).unwrap();
        assert_eq!((block.paths(), block.dims(), block.attrs(), block.vars()), (4, 4, 1, 2));
        assert_eq!(block.dim(1).unwrap(), BlockDim { name: "run/a/x".into(), len: 7, is_record: false });
        assert_eq!(block.dim(3).unwrap(), BlockDim { name: "time".into(), len: 0, is_record: true });
        assert_eq!(block.dim_name(2).unwrap(), ("run/b", "x"));
        let mut attrs = Attrs::default();
        assert_eq!(block.attr_name(0).unwrap(), ("run", "title"));
        assert_eq!((block.path_at(0), block.var_at(2)), (16 + 11 * 4, block.len()));
        block.attr(0, &mut attrs).unwrap();
        assert_eq!((attrs.get(0).name, attrs.get(0).value), ("run/title", &b"a test"[..]));
        let var = block.var(0).unwrap();
        assert_eq!((var.name.as_str(), var.dims.as_slice(), var.begin), ("run/b/t", &[3, 0][..], 128));
        assert!(var.is_record && var.attrs.find("units").is_some_and(|attr| attr.value == b"K"));
        assert_eq!(var.attrs.len(), 2);
        assert_eq!(block.var(1).unwrap().begin, u64::MAX);
        assert_eq!(block.var_name(1).unwrap(), ("", "plain"));
        assert!(block.var(2).is_err() && block.dim(4).is_err());
    }

    /// Even with a correct checksum a block may be nonsense; that is an error, not a panic.
    #[test]
    fn no_byte_of_a_block_makes_it_panic() {
        let bytes = sample().finish();
        let read = |bytes: Vec<u8>| -> Result<()> {
            let block = Block::decode(bytes)?;
            (0..block.dims()).try_for_each(|i| block.dim(i).and(block.dim_name(i)).map(drop))?;
            (0..block.attrs())
                .try_for_each(|i| block.attr(i, &mut Attrs::default()).and(block.attr_name(i).map(drop)))?;
            block.least_path()?;
            (0..block.vars()).try_for_each(|i| block.var(i).and(block.var_name(i).map(drop)))
        };
        read(bytes.clone()).unwrap();
        let mut refused = 0;
        for i in 0..bytes.len() {
            for change in 1..=255u8 {
                let mut damaged = bytes.clone();
                damaged[i] ^= change;
                refused += u32::from(read(damaged).is_err());
            }
            assert!(read(bytes[..i].to_vec()).is_err(), "{i} bytes");
        }
        assert!(refused > 10_000, "{refused}");
    }
}
