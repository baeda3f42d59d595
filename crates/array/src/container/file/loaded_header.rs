//! A header held completely in memory.
//!
//! Invariants: names are paths; the attribute that describes their escaping is not among the attributes; of equal
//! names (which a valid file does not have), a search finds the first.

use std::borrow::Cow;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::parse::{self, Source};
use fieldstone_format::netcdf::{Attrs, Header, Names, names, paths};

use super::header::OpenHeader;
use crate::container::access::Records;
use crate::container::define::lookup::Lookup;
use crate::container::model::{Counts, DimInfo, Format, Metadata, VarInfo, is_under};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct LoadedHeader {
    header: Header,
    layout: Layout,
    records: Arc<Records>,
    dims: Mutex<Lookup>,
    vars: Mutex<Lookup>,
}

/// A header as it was read.
#[derive(Debug)]
pub(crate) struct ParsedHeader {
    /// With names as they are in the file.
    pub raw: Header,
    /// The positions of its parts.
    pub layout: Layout,
    /// Whether the rule of paths escapes its names.
    pub escaped: bool,
}

impl ParsedHeader {
    /// Reads a file's header.
    pub fn from(source: &dyn Source) -> Result<ParsedHeader> {
        let (raw, places) = parse::header(source)?;
        let layout = Layout::of(&raw, places.header_len)?;
        let escaped = paths::is_escaped(&raw.attrs);
        Ok(ParsedHeader { raw, layout, escaped })
    }

    /// Number of records; for a streaming file, computed from its length.
    pub fn numrecs(&self, source: &dyn Source) -> Result<u64> {
        match self.raw.numrecs {
            Some(numrecs) => Ok(numrecs),
            None => Ok(self.layout.records_in(source.len()?)),
        }
    }

    /// The header with names as paths, without the attribute that describes the escaping.
    pub fn shown(mut self) -> (Header, Layout) {
        if self.escaped {
            let header = &mut self.raw;
            header.dims.names = decoded(&header.dims.names);
            header.vars.names = decoded(&header.vars.names);
            header.attrs = shown_attrs(&header.attrs, true);
        }
        (self.raw, self.layout)
    }
}

/// The path for a name in the file.
pub(crate) fn shown_name(name: &str, escaped: bool) -> Cow<'_, str> {
    if escaped { paths::decode(name) } else { Cow::Borrowed(name) }
}

/// Global attributes with names as paths, without the one that describes the escaping.
pub(crate) fn shown_attrs(raw: &Attrs, escaped: bool) -> Attrs {
    let mut attrs = Attrs::default();
    for attr in raw.iter().filter(|attr| !escaped || attr.name != paths::ATTRIBUTE) {
        attrs.push(&shown_name(attr.name, escaped), attr.ty, attr.value);
    }
    attrs
}

fn decoded(names: &Names) -> Names {
    names.iter().map(paths::decode).collect()
}

/// A variable of a header, as readers see it.
pub(crate) fn var_info(header: &Header, id: usize, record_size: u64, numrecs: u64) -> VarInfo {
    let var = header.vars.get(id);
    let mut attrs = Attrs::default();
    var.attrs().for_each(|attr| attrs.push(attr.name, attr.ty, attr.value));
    VarInfo {
        id: id as u64,
        name: var.name().to_owned(),
        ty: var.ty(),
        dims: var.dims().iter().map(|dim| dim_info(header, *dim as usize, numrecs)).collect(),
        attrs,
        begin: var.begin(),
        record_stride: if header.is_record(var) { record_size } else { 0 },
    }
}

/// A dimension of a header, as readers see it.
pub(crate) fn dim_info(header: &Header, id: usize, numrecs: u64) -> DimInfo {
    let dim = header.dims.get(id);
    let len = if dim.is_record { numrecs } else { dim.len };
    DimInfo { id: id as u64, name: dim.name.to_owned(), len, is_record: dim.is_record }
}

impl LoadedHeader {
    /// Makes it from a header with names as paths.
    pub fn new(header: Header, layout: Layout, records: Arc<Records>) -> LoadedHeader {
        LoadedHeader { header, layout, records, dims: Mutex::default(), vars: Mutex::default() }
    }

    /// The header, with names as paths.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn find(&self, lookup: &Mutex<Lookup>, names: &Names, path: &str) -> Option<usize> {
        let mut lookup = lookup.lock();
        let mut find = |path: &str| lookup.search(names, path).map(|id| id as usize);
        // Other writers may have left a name as it was given: it is listed that way, so a search must find it that
        // way.
        find(path).or_else(|| match names::nfc(path) {
            Cow::Owned(path) => find(&path),
            Cow::Borrowed(_) => None,
        })
    }

    /// Numbers of the requested objects: from `from` on, at most `limit`.
    fn range(from: u64, limit: usize, len: usize) -> std::ops::Range<usize> {
        let from = usize::try_from(from).unwrap_or(len).min(len);
        from..from.saturating_add(limit).min(len)
    }
}

impl Metadata for LoadedHeader {
    fn format(&self) -> Format {
        Format::Classic(self.header.version)
    }
    fn counts(&self) -> Result<Counts> {
        Ok(Counts {
            dims: self.header.dims.len() as u64,
            attrs: self.header.attrs.len() as u64,
            vars: self.header.vars.len() as u64,
        })
    }
    fn numrecs(&self) -> Result<u64> {
        Ok(self.records.get())
    }
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>> {
        let id = self.find(&self.vars, &self.header.vars.names, path);
        Ok(id.map(|id| var_info(&self.header, id, self.layout.record_size, self.records.get())))
    }
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>> {
        let id = self.find(&self.dims, &self.header.dims.names, path);
        Ok(id.map(|id| dim_info(&self.header, id, self.records.get())))
    }
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>> {
        let range = LoadedHeader::range(from, limit, self.header.vars.len());
        let numrecs = self.records.get();
        Ok(range.map(|id| var_info(&self.header, id, self.layout.record_size, numrecs)).collect())
    }
    fn vars_of(&self, path: &str) -> Result<Vec<VarInfo>> {
        let names = self.header.vars.names.iter().enumerate().filter(|(_, name)| is_under(name, path));
        let (record_size, numrecs) = (self.layout.record_size, self.records.get());
        Ok(names.map(|(id, _)| var_info(&self.header, id, record_size, numrecs)).collect())
    }
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>> {
        let range = LoadedHeader::range(from, limit, self.header.dims.len());
        Ok(range.map(|id| dim_info(&self.header, id, self.records.get())).collect())
    }
    fn attrs(&self) -> Result<Attrs> {
        Ok(self.header.attrs.clone())
    }
    fn memory(&self) -> u64 {
        let tables = [&self.dims, &self.vars];
        let tables = tables.map(|table| table.lock().memory());
        self.header.memory() + tables.iter().sum::<u64>()
    }
}

impl OpenHeader for LoadedHeader {
    fn layout(&self) -> Result<Layout> {
        Ok(self.layout)
    }
    fn header(&self) -> Result<&Header> {
        Ok(&self.header)
    }
}
