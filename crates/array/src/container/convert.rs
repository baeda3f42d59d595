//! Converts a container to another format, with the same contents.
//!
//! Elements have the same external bytes in all formats, so data are copied unchanged, in pieces. Names are paths in
//! both; if the target is a netCDF classic file, the reversible rule escapes them.
//!
//! Invariants: objects keep their order, so that a conversion there and back gives the same header; a rank holds at
//! most [`PIECE`] bytes of data in memory; variables beyond the end of the source stay holes.

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Names};

use super::define::{DimColumn, Types, VarColumns};
use super::file::{Container, truncation};
use super::model::{Metadata, VarInfo, record_offset, slab_len};

/// Bytes copied at a time.
const PIECE: u64 = 4 << 20;
/// Variables or dimensions handled together.
const BATCH: usize = 4096;

/// Report of a conversion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Converted {
    /// Number of variables.
    pub vars: u64,
    /// Bytes of data that this rank copied.
    pub bytes: u64,
}

/// Defines the contents of `from` in `to`, which is in define mode and empty, ends define mode and copies the data.
/// Collective: rank 0 defines, all ranks copy. The caller closes `to`.
///
/// Errors: `Invalid`, naming the object, if the format of `to` cannot hold it; `Corrupt` if data are cut off.
pub fn convert(from: &Container, to: &Container) -> Result<Converted> {
    let team = to.team();
    let source = from.metadata();
    let defined = source.and_then(|source| {
        check_untruncated(from, &*source)?;
        if team.rank() == 0 {
            define_all(&*source, to)?;
        }
        Ok(source)
    });
    let source = team.agree("convert", defined)?;
    to.enddef()?;
    let copied = copy_share(from, to, &*source);
    let done = copied.and_then(|bytes| Ok(Converted { vars: source.counts()?.vars, bytes }));
    team.agree("convert data", done)
}

/// Checks that a container has all data that it describes; see [`truncation`].
pub(super) fn check_untruncated(from: &Container, source: &dyn Metadata) -> Result<()> {
    truncation::check(source, &from.layout()?, source.numrecs()?, from.file()?.len()?)
}

/// Defines the contents of `source`, in its order.
pub(super) fn define_all(source: &dyn Metadata, to: &Container) -> Result<()> {
    let counts = source.counts()?;
    let mut at = 0;
    while at < counts.dims {
        let dims = source.dims(at, BATCH)?;
        if dims.is_empty() {
            return Err(Error::corrupt(format!("{} has no dimension number {at}", counts.dims)));
        }
        for dim in &dims {
            to.define().dim(&dim.name, (!dim.is_record).then_some(dim.len))?;
        }
        at += dims.len() as u64;
    }
    for attr in source.attrs()?.iter() {
        to.define().put_att(None, attr.name, attr.ty, attr.value)?;
    }
    at = 0;
    while at < counts.vars {
        let vars = source.vars(at, BATCH)?;
        if vars.is_empty() {
            return Err(Error::corrupt(format!("{} has no variable number {at}", counts.vars)));
        }
        define_vars(&vars, to)?;
        at += vars.len() as u64;
    }
    Ok(())
}

/// Dimensions have the same numbers as in the source: they were defined first, in its order.
fn define_vars(vars: &[VarInfo], to: &Container) -> Result<()> {
    let names: Names = vars.iter().map(|var| &var.name).collect();
    let types: Vec<_> = vars.iter().map(|var| var.ty).collect();
    let (mut ids, mut id_ends) = (Vec::new(), Vec::with_capacity(vars.len()));
    let (mut attrs, mut attr_ends) = (Attrs::default(), Vec::with_capacity(vars.len()));
    for var in vars {
        for dim in &var.dims {
            ids.push(u32::try_from(dim.id).map_err(|_| Error::invalid(format!("dimension {}", dim.id)))?);
        }
        id_ends.push(ids.len() as u64);
        var.attrs.iter().for_each(|attr| attrs.push(attr.name, attr.ty, attr.value));
        attr_ends.push(attrs.len() as u64);
    }
    to.define().vars(&VarColumns {
        names: &names,
        types: Types::Each(&types),
        dims: DimColumn::Ids(&ids, &id_ends),
        attrs: Some((&attrs, &attr_ends)),
    })?;
    Ok(())
}

/// Copies this rank's share of the variables.
fn copy_share(from: &Container, to: &Container, source: &dyn Metadata) -> Result<u64> {
    let (rank, size) = (to.team().rank() as u64, to.team().size() as u64);
    let (vars, numrecs) = (source.counts()?.vars, source.numrecs()?);
    let part = |rank: u64| (u128::from(vars) * u128::from(rank) / u128::from(size)) as u64;
    let target = to.metadata()?;
    let mut copy = DataCopier::new(from.file()?, to.file()?);
    let (mut at, end) = (part(rank), part(rank + 1));
    while at < end {
        let limit = (end - at).min(BATCH as u64) as usize;
        let (old, new) = (source.vars(at, limit)?, target.vars(at, limit)?);
        for (old, new) in old.iter().zip(&new) {
            copy.var(old, new)?;
        }
        at += limit as u64;
    }
    copy.records(numrecs)?;
    to.grow(numrecs)?;
    Ok(copy.bytes)
}

/// Copies variables from one file to another; variables that are adjacent in both go together.
#[derive(Debug)]
pub(super) struct DataCopier {
    from: TeamFile,
    to: TeamFile,
    /// Source, target and length of the bytes still to copy.
    pending: (u64, u64, u64),
    /// For each record variable: begin and stride in the source, begin and stride in the target, length.
    slabs: Vec<[u64; 5]>,
    buffer: Vec<u8>,
    /// Bytes copied so far.
    pub bytes: u64,
}

impl DataCopier {
    pub fn new(from: TeamFile, to: TeamFile) -> DataCopier {
        DataCopier { from, to, pending: (0, 0, 0), slabs: Vec::new(), buffer: Vec::new(), bytes: 0 }
    }

    /// Copies a fixed variable; keeps a record variable for [`records`](DataCopier::records).
    pub fn var(&mut self, old: &VarInfo, new: &VarInfo) -> Result<()> {
        let len = slab_len(old)?;
        if old.is_record() {
            if len > 0 {
                self.slabs.push([old.begin, old.record_stride, new.begin, new.record_stride, len]);
            }
            return Ok(());
        }
        self.part(old.begin, new.begin, len)
    }

    /// Copies `numrecs` records of the record variables, and what is still pending.
    pub fn records(&mut self, numrecs: u64) -> Result<()> {
        let slabs = std::mem::take(&mut self.slabs);
        for record in 0..if slabs.is_empty() { 0 } else { numrecs } {
            for [begin, stride, new_begin, new_stride, len] in &slabs {
                let at = record_offset(*begin, record, *stride)?;
                self.part(at, record_offset(*new_begin, record, *new_stride)?, *len)?;
            }
        }
        self.flush()
    }

    fn part(&mut self, from: u64, to: u64, len: u64) -> Result<()> {
        let (source, target, known) = self.pending;
        if source + known == from && target + known == to && known + len <= PIECE {
            self.pending.2 += len;
            return Ok(());
        }
        self.flush()?;
        self.pending = (from, to, len);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let (mut source, mut target, mut left) = std::mem::take(&mut self.pending);
        while left > 0 {
            self.buffer.resize(left.min(PIECE) as usize, 0);
            let read = self.from.read_at(&mut self.buffer, source)?;
            if read == 0 {
                break;
            }
            self.to.write_at(&self.buffer[..read], target)?;
            self.bytes += read as u64;
            (source, target, left) = (source + read as u64, target + read as u64, left - read as u64);
        }
        Ok(())
    }
}
