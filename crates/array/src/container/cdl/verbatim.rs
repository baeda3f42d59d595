//! A netCDF header as plain netCDF readers see it: with the names in the file, including escaped paths and the
//! attribute that describes the escaping. ncdump prints this.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Header, Var, pad4};

use crate::container::{Counts, DimInfo, Format, Metadata, VarInfo};

/// A header without decoding.
#[derive(Debug)]
pub struct Verbatim {
    header: Header,
    numrecs: u64,
    record_stride: u64,
}

impl Verbatim {
    /// `file_len` determines the number of records of a streaming file.
    ///
    /// Errors: Corrupt if a variable refers to a missing dimension, or is too large.
    pub fn new(header: Header, file_len: u64) -> Result<Verbatim> {
        let mut stride = 0_u64;
        let mut first = u64::MAX;
        let mut only = None;
        let mut records = 0_usize;
        for var in header.vars.iter().filter(|var| header.is_record(*var)) {
            let bytes = record_bytes(&header, var)?;
            let padded = pad4(bytes).ok_or_else(|| too_large(var))?;
            stride = stride.checked_add(padded).ok_or_else(|| too_large(var))?;
            first = first.min(var.begin());
            only = Some(bytes);
            records += 1;
        }
        // A single record variable is not padded.
        if let (1, Some(bytes)) = (records, only) {
            stride = bytes;
        }
        let streamed = || file_len.saturating_sub(first).checked_div(stride).unwrap_or(0);
        let numrecs = header.numrecs.unwrap_or_else(streamed);
        Ok(Verbatim { header, numrecs, record_stride: stride })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of one record of all record variables.
    pub fn record_size(&self) -> u64 {
        self.record_stride
    }

    fn dim(&self, id: usize) -> DimInfo {
        let dim = self.header.dims.get(id);
        let len = if dim.is_record { self.numrecs } else { dim.len };
        DimInfo { id: id as u64, name: dim.name.to_owned(), len, is_record: dim.is_record }
    }

    fn var(&self, var: Var<'_>) -> VarInfo {
        let mut attrs = Attrs::default();
        var.attrs().for_each(|attr| attrs.push(attr.name, attr.ty, attr.value));
        VarInfo {
            id: var.id() as u64,
            name: var.name().to_owned(),
            ty: var.ty(),
            dims: var.dims().iter().map(|id| self.dim(*id as usize)).collect(),
            attrs,
            begin: var.begin(),
            record_stride: if self.header.is_record(var) { self.record_stride } else { 0 },
        }
    }
}

/// Bytes of one record of a variable, or of a whole variable without records; not padded.
fn record_bytes(header: &Header, var: Var<'_>) -> Result<u64> {
    let mut bytes = var.ty().size() as u64;
    for (i, id) in var.dims().iter().enumerate() {
        let id = *id as usize;
        if id >= header.dims.len() {
            let wrong = format!(
                "variable `{}`: dimension {id}, but there are {} (rule: dimid < number of dimensions)",
                var.name(),
                header.dims.len()
            );
            return Err(Error::corrupt(wrong));
        }
        let dim = header.dims.get(id);
        if !(i == 0 && dim.is_record) {
            bytes = bytes.checked_mul(dim.len).ok_or_else(|| too_large(var))?;
        }
    }
    Ok(bytes)
}

fn too_large(var: Var<'_>) -> Error {
    Error::corrupt(format!("variable `{}` has more than 2^64 bytes", var.name()))
}

impl Metadata for Verbatim {
    fn format(&self) -> Format {
        Format::Classic(self.header.version)
    }
    fn counts(&self) -> Result<Counts> {
        let header = &self.header;
        Ok(Counts {
            dims: header.dims.len() as u64,
            attrs: header.attrs.len() as u64,
            vars: header.vars.len() as u64,
        })
    }
    fn numrecs(&self) -> Result<u64> {
        Ok(self.numrecs)
    }
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>> {
        Ok(self
            .header
            .vars
            .names
            .iter()
            .position(|name| name == path)
            .map(|i| self.var(self.header.vars.get(i))))
    }
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>> {
        Ok(self.header.dims.names.iter().position(|name| name == path).map(|i| self.dim(i)))
    }
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>> {
        let part = range(from, limit, self.header.vars.len());
        Ok(part.map(|i| self.var(self.header.vars.get(i))).collect())
    }
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>> {
        Ok(range(from, limit, self.header.dims.len()).map(|i| self.dim(i)).collect())
    }
    fn attrs(&self) -> Result<Attrs> {
        Ok(self.header.attrs.clone())
    }
    fn memory(&self) -> u64 {
        self.header.memory()
    }
}

fn range(from: u64, limit: usize, len: usize) -> std::ops::Range<usize> {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(len);
    from..from.saturating_add(limit).min(len)
}
