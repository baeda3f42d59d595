//! Types shared by all of [`container`](super): formats, strategies, and the descriptions of dimensions and variables
//! that readers get, in whatever form the file's header is kept.

use std::collections::BTreeMap;
use std::fmt;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::{Attrs, NcType, Version, names, paths};

/// The layout of a container's header on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// netCDF classic.
    Classic(Version),
    /// The partitioned header: an index table and metadata blocks.
    Partitioned,
}

impl Format {
    const WORDS: [(&str, Format); 4] = [
        ("cdf1", Format::Classic(Version::Cdf1)),
        ("cdf2", Format::Classic(Version::Cdf2)),
        ("cdf5", Format::Classic(Version::Cdf5)),
        ("partitioned", Format::Partitioned),
    ];

    /// The name by which users choose it.
    pub fn word(self) -> &'static str {
        let known = Format::WORDS.iter().find(|(_, format)| *format == self);
        known.map_or("", |(word, _)| word)
    }

    /// The format with this name.
    ///
    /// Errors: `Invalid`, with the valid names.
    pub fn parse(word: &str) -> Result<Format> {
        let known = Format::WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, format)| *format).ok_or_else(|| {
            Code::Option
                .error(format!("{word:?} is not a format of containers"))
                .with_hint("give cdf1, cdf2, cdf5 or partitioned")
        })
    }
}

/// The method by which ranks build one header at `enddef`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Ranks that own a part of all hashes check names; scans give offsets; each rank writes its own part of a
    /// standard header. The default of CDF-5.
    Scalable,
    /// All ranks gather and define everything; rank 0 writes. The paper's baseline at the level of the application.
    App,
    /// Rank 0 gathers everything, checks it with a hash table, and writes. The paper's baseline in the library.
    LibraryHash {
        /// Slots of the table.
        slots: usize,
    },
    /// As [`LibraryHash`](Strategy::LibraryHash), but checks by sorting.
    LibrarySort,
    /// The partitioned header; the only strategy of [`Format::Partitioned`].
    Partitioned,
}

impl Strategy {
    /// Default number of slots of the hash table: the paper's choice for its 98 MB header.
    const SLOTS: u64 = 16_384;

    /// The name by which users choose it.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::Scalable => "scalable",
            Strategy::App => "app",
            Strategy::LibraryHash { .. } => "library-hash",
            Strategy::LibrarySort => "library-sort",
            Strategy::Partitioned => "partitioned",
        }
    }

    /// The strategy with this name; `slots` are those of a hash table.
    ///
    /// Errors: `Invalid` for another name, with the valid names, and for slots of a strategy without a table.
    pub fn parse(word: &str, slots: Option<u64>) -> Result<Strategy> {
        let slots_of = || usize::try_from(slots.unwrap_or(Strategy::SLOTS)).unwrap_or(usize::MAX);
        let strategy = match word {
            "scalable" => Strategy::Scalable,
            "app" => Strategy::App,
            "library-hash" => Strategy::LibraryHash { slots: slots_of() },
            "library-sort" => Strategy::LibrarySort,
            "partitioned" => Strategy::Partitioned,
            other => {
                return Err(Code::Option
                    .error(format!("{other:?} is not a strategy of containers"))
                    .with_hint("give scalable, app, library-hash, library-sort or partitioned"));
            }
        };
        if slots.is_some() && !matches!(strategy, Strategy::LibraryHash { .. }) {
            return Err(Code::Option
                .error(format!("hash_size belongs to strategy library-hash, not to {word}"))
                .with_hint("leave hash_size out, or give strategy library-hash"));
        }
        Ok(strategy)
    }
}

/// A dimension as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimInfo {
    /// Its number in the file.
    pub id: u64,
    /// Its path.
    pub name: String,
    /// Its length; for the record dimension, the number of records at the time of the query.
    pub len: u64,
    /// Whether it is the record dimension.
    pub is_record: bool,
}

/// A variable as a reader sees it: enough to locate every element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarInfo {
    /// Its number in the file.
    pub id: u64,
    /// Its path.
    pub name: String,
    /// Its type.
    pub ty: NcType,
    /// Its dimensions, outermost first.
    pub dims: Vec<DimInfo>,
    /// Its attributes.
    pub attrs: Attrs,
    /// Offset of its first byte.
    pub begin: u64,
    /// Bytes from one of its records to the next; 0 for a variable without record dimension.
    pub record_stride: u64,
}

impl VarInfo {
    /// Lengths of the dimensions.
    pub fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.len).collect()
    }
    /// Whether it grows along the record dimension.
    pub fn is_record(&self) -> bool {
        self.dims.first().is_some_and(|dim| dim.is_record)
    }
}

/// The numbers of a container's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dimensions.
    pub dims: u64,
    /// Global attributes.
    pub attrs: u64,
    /// Variables.
    pub vars: u64,
}

impl Counts {
    /// Adds the numbers of another part of the same container.
    pub(super) fn add(&mut self, other: &Counts) {
        self.dims = self.dims.saturating_add(other.dims);
        self.attrs = self.attrs.saturating_add(other.attrs);
        self.vars = self.vars.saturating_add(other.vars);
    }
}

/// The totals of a container's objects under a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathTotals {
    /// Objects.
    pub counts: Counts,
    /// Bytes of its variables' elements, all records included.
    pub bytes: u64,
}

/// An object in a pass over all of them.
#[derive(Debug, Clone, Copy)]
pub enum Object<'a> {
    /// A dimension, by its path.
    Dim(&'a str),
    /// A global attribute, by its path.
    Attr(&'a str),
    /// A variable.
    Var(&'a VarInfo),
}

/// Number of objects requested at a time in a pass over all.
const BATCH: usize = 256;

/// The contents of a container's header, in whatever form it is kept: all in memory, found through a name index, or
/// in metadata blocks. Reads what it needs, when it needs it.
///
/// Errors of all calls: `Corrupt`, with offset and rule, if the bytes are not a valid header.
pub trait Metadata: Send + Sync + fmt::Debug {
    /// The format of the header.
    fn format(&self) -> Format;
    /// Number of objects.
    fn counts(&self) -> Result<Counts>;
    /// Current number of records.
    fn numrecs(&self) -> Result<u64>;
    /// The variable with this path; `None` only if it certainly does not exist.
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>>;
    /// The dimension with this path.
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>>;
    /// At most `limit` variables from number `from` on, in order.
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>>;
    /// The variables directly under a path, in order. Of the others, it reads only as much as the header's layout
    /// requires: nothing with the partitioned header, otherwise their names.
    fn vars_of(&self, path: &str) -> Result<Vec<VarInfo>> {
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let page = self.vars(from, BATCH)?;
            if page.is_empty() {
                return Ok(found);
            }
            from += page.len() as u64;
            found.extend(page.into_iter().filter(|var| is_under(&var.name, path)));
        }
    }
    /// At most `limit` dimensions from number `from` on, in order.
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>>;
    /// Global attributes, without the one that describes how paths are escaped.
    fn attrs(&self) -> Result<Attrs>;
    /// Calls `see` with every object, those of a kind in their order. Reads each part of the header once.
    fn each(&self, see: &mut dyn FnMut(Object<'_>) -> Result<()>) -> Result<()> {
        let mut from = 0;
        loop {
            let dims = self.dims(from, BATCH)?;
            if dims.is_empty() {
                break;
            }
            from += dims.len() as u64;
            dims.iter().try_for_each(|dim| see(Object::Dim(&dim.name)))?;
        }
        self.attrs()?.iter().try_for_each(|attr| see(Object::Attr(attr.name)))?;
        from = 0;
        loop {
            let vars = self.vars(from, BATCH)?;
            if vars.is_empty() {
                return Ok(());
            }
            from += vars.len() as u64;
            vars.iter().try_for_each(|var| see(Object::Var(var)))?;
        }
    }
    /// Calls `see` with `path` and each path below it (with all paths if `path` is empty) and the totals of the
    /// objects directly under each. A path may come more than once: its totals are the sum. With the partitioned
    /// header, a call for all paths reads no metadata block.
    fn each_path(&self, path: &str, see: &mut dyn FnMut(&str, PathTotals) -> Result<()>) -> Result<()> {
        self.each(&mut |object| {
            let (above, totals) = total_of(&object)?;
            if is_below(above, path) { see(above, totals) } else { Ok(()) }
        })
    }
    /// `path` and the paths below it, sorted, with the numbers of objects directly under each; all paths if `path` is
    /// empty. Reads the same as [`each_path`](Metadata::each_path).
    fn below(&self, path: &str) -> Result<BTreeMap<String, Counts>> {
        let mut found: BTreeMap<String, Counts> = BTreeMap::new();
        self.each_path(path, &mut |path, totals| {
            match found.get_mut(path) {
                Some(counts) => counts.add(&totals.counts),
                None => drop(found.insert(path.to_owned(), totals.counts)),
            }
            Ok(())
        })?;
        Ok(found)
    }
    /// Bytes of memory held.
    fn memory(&self) -> u64;
}

/// Whether an object with this name is directly under `path`, as given or in NFC.
pub(super) fn is_under(name: &str, path: &str) -> bool {
    let above = paths::split(name).0;
    above == path || above == names::nfc(path)
}

/// Whether `path` is `top` or is below it.
pub(super) fn is_below(path: &str, top: &str) -> bool {
    top.is_empty() || path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path directly above an object, and the object as that path's totals.
pub(super) fn total_of<'a>(object: &Object<'a>) -> Result<(&'a str, PathTotals)> {
    let mut totals = PathTotals::default();
    let name = match *object {
        Object::Dim(name) => {
            totals.counts.dims = 1;
            name
        }
        Object::Attr(name) => {
            totals.counts.attrs = 1;
            name
        }
        Object::Var(var) => {
            totals.counts.vars = 1;
            totals.bytes = bytes(var)?;
            &var.name
        }
    };
    Ok((name.rsplit_once('/').map_or("", |(above, _)| above), totals))
}

/// Size of a variable's elements in bytes; Corrupt if it is 2^64 or more.
pub fn bytes(var: &VarInfo) -> Result<u64> {
    let size = var.ty.size() as u64;
    let shape = var.dims.iter().map(|dim| dim.len);
    if shape.clone().any(|len| len == 0) {
        return Ok(0);
    }
    let bytes = shape.into_iter().try_fold(size, u64::checked_mul);
    bytes.ok_or_else(|| Error::corrupt(format!("variable `{}`: it has 2^64 bytes or more", var.name)))
}

/// Bytes of a fixed variable, or of one record of a record variable.
pub(super) fn slab_len(var: &VarInfo) -> Result<u64> {
    let lens = var.dims.iter().filter(|dim| !dim.is_record).map(|dim| dim.len);
    let len = lens.clone().try_fold(var.ty.size() as u64, |len, dim| len.checked_mul(dim));
    let end = len.and_then(|len| var.begin.checked_add(len)).filter(|end| *end <= i64::MAX as u64);
    match (len, end) {
        (Some(len), Some(_)) => Ok(len),
        _ => Err(Code::ContainerLimit.error(format!("variable `{}` ends beyond the largest file", var.name))),
    }
}

/// Offset of a record of a variable whose records begin at `begin` and are `stride` apart.
pub(super) fn record_offset(begin: u64, record: u64, stride: u64) -> Result<u64> {
    let at = record.checked_mul(stride).and_then(|at| at.checked_add(begin));
    at.filter(|at| *at <= i64::MAX as u64)
        .ok_or_else(|| Error::corrupt(format!("record {record} begins beyond the largest file")))
}
