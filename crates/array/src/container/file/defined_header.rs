//! The header of a container of which this rank has just defined a part.
//!
//! Queries about the objects that this rank defined and placed are answered from memory. The first query about other
//! objects reads the rest from the file, so a rank holds the definitions of others only if it asks for them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::{Attrs, Header, Version};

use super::header::{LocalIds, OpenHeader};
use super::loaded_header::{LoadedHeader, ParsedHeader, dim_info, var_info};
use super::source::UnfinishedSource;
use crate::container::access::Records;
use crate::container::define::Definitions;
use crate::container::model::{Counts, DimInfo, Format, Metadata, Object, PathTotals, VarInfo};
use crate::container::partitioned::Reader;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct DefinedHeader {
    pub version: Version,
    pub file: TeamFile,
    pub layout: Layout,
    pub counts: Counts,
    pub records: Arc<Records>,
    pub definitions: Mutex<Definitions>,
    /// Numbers in the file of the variables defined here.
    pub var_ids: Vec<u64>,
    /// Numbers in the file of the dimensions defined here.
    pub dim_ids: Vec<u64>,
    /// The whole header, after the first query for another rank's objects.
    pub loaded: OnceLock<LoadedHeader>,
    /// With the partitioned header, its reader, which takes the place of `loaded`.
    pub reader: Option<Arc<Reader>>,
}

impl DefinedHeader {
    /// The definitions of this rank.
    pub fn mine(&self) -> MutexGuard<'_, Definitions> {
        self.definitions.lock()
    }

    /// The whole header; read from the file at the first call.
    fn loaded(&self) -> Result<&LoadedHeader> {
        if self.loaded.get().is_none() {
            let read = ParsedHeader::from(&UnfinishedSource(self.file.clone(), self.version))?;
            let (header, layout) = read.shown();
            let _ = self.loaded.set(LoadedHeader::new(header, layout, self.records.clone()));
        }
        self.loaded.get().ok_or_else(|| Error::internal("a header that was read is not there"))
    }

    /// The source for other ranks' objects.
    fn all_objects(&self) -> Result<&dyn Metadata> {
        match &self.reader {
            Some(reader) => Ok(&**reader),
            None => Ok(self.loaded()?),
        }
    }

    /// Whether this rank defined all variables and dimensions of the file, in this order.
    fn is_all_mine(&self, mine: &Definitions) -> bool {
        let counts = mine.counts();
        counts.vars == self.counts.vars && counts.dims == self.counts.dims && self.file.team().size() == 1
    }
}

impl Metadata for DefinedHeader {
    fn format(&self) -> Format {
        match self.reader {
            Some(_) => Format::Partitioned,
            None => Format::Classic(self.version),
        }
    }
    fn counts(&self) -> Result<Counts> {
        Ok(self.counts)
    }
    fn numrecs(&self) -> Result<u64> {
        Ok(self.records.get())
    }
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>> {
        let (found, all) = {
            let mut mine = self.mine();
            (mine.find_var(path), self.is_all_mine(&mine))
        };
        match found {
            Some(local) => self.local_var(local).map(Some),
            None if all => Ok(None),
            None => self.all_objects()?.find_var(path),
        }
    }
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>> {
        {
            let mut mine = self.mine();
            if let Some(local) = mine.find_dim(path) {
                let mut info = dim_info(mine.header(), local as usize, self.records.get());
                info.id = self.dim_ids.get(local as usize).copied().unwrap_or(info.id);
                return Ok(Some(info));
            }
            if self.is_all_mine(&mine) {
                return Ok(None);
            }
        }
        self.all_objects()?.find_dim(path)
    }
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>> {
        self.all_objects()?.vars(from, limit)
    }
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>> {
        self.all_objects()?.dims(from, limit)
    }
    fn attrs(&self) -> Result<Attrs> {
        self.all_objects()?.attrs()
    }
    fn each(&self, see: &mut dyn FnMut(Object<'_>) -> Result<()>) -> Result<()> {
        self.all_objects()?.each(see)
    }
    fn each_path(&self, path: &str, see: &mut dyn FnMut(&str, PathTotals) -> Result<()>) -> Result<()> {
        self.all_objects()?.each_path(path, see)
    }
    fn below(&self, path: &str) -> Result<BTreeMap<String, Counts>> {
        self.all_objects()?.below(path)
    }
    fn memory(&self) -> u64 {
        let ids = self.var_ids.capacity() + self.dim_ids.capacity();
        self.mine().memory()
            + ids as u64 * 8
            + self.loaded.get().map_or(0, Metadata::memory)
            + self.reader.as_ref().map_or(0, |reader| reader.memory())
    }
}

impl OpenHeader for DefinedHeader {
    fn layout(&self) -> Result<Layout> {
        Ok(self.layout)
    }
    fn header(&self) -> Result<&Header> {
        match &self.reader {
            Some(reader) => reader.header(),
            None => Ok(self.loaded()?.header()),
        }
    }
    fn local_ids(&self) -> Option<LocalIds<'_>> {
        Some(LocalIds { vars: &self.var_ids, dims: &self.dim_ids })
    }
    fn local_var(&self, local: u32) -> Result<VarInfo> {
        let mut mine = self.mine();
        let id = self.var_ids.get(local as usize).copied().ok_or_else(|| {
            Code::VariableNotFound.error(format!(
                "no variable number {local}; {} were defined on this rank",
                self.var_ids.len()
            ))
        })?;
        let header = mine.header();
        let placed = header.vars.begins.get(local as usize).is_some_and(|begin| *begin != 0);
        if !placed {
            drop(mine);
            let var = self.all_objects()?.vars(id, 1)?.pop();
            return var.ok_or_else(|| Error::internal(format!("the file has no variable number {id}")));
        }
        let mut info = var_info(header, local as usize, self.layout.record_size, self.records.get());
        info.id = id;
        for dim in &mut info.dims {
            dim.id = self.dim_ids.get(dim.id as usize).copied().unwrap_or(dim.id);
        }
        Ok(info)
    }
}
