//! Definitions in columns: one check and a few copies for any number of objects.

use std::ops::Range;

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Names, NcType, layout};

use super::{Definitions, DimColumn, RECORD, Types, VarColumns, check_room, check_type, kept, numbers};

impl Definitions {
    /// Defines many dimensions; the length [`RECORD`] makes one the record dimension. Gives their local
    /// numbers. A name that is taken is found at `enddef`.
    ///
    /// Errors: as of [`def_dim`](Definitions::def_dim); then none of them is defined.
    pub fn def_dims(&mut self, names: &Names, lens: &[u64]) -> Result<Range<u32>> {
        if names.len() != lens.len() {
            let message = format!("{} names of dimensions, but {} lengths", names.len(), lens.len());
            return Err(Error::invalid(message).with_hint("give one length for each name"));
        }
        let names = kept("dimension", names)?;
        let first = self.header.dims.len();
        check_room("dimensions", first, lens.len())?;
        let mut record = None;
        for (i, len) in lens.iter().enumerate() {
            if *len != RECORD {
                layout::check_dim_len(self.header.version, names.get(i), *len)?;
            } else if let Some(other) = record.replace(i) {
                return Err(Error::conflict(format!(
                    "dimensions `{}` and `{}` are both to be the record dimension; a container has one at most",
                    names.get(other),
                    names.get(i)
                )));
            }
        }
        if let Some(i) = record {
            self.check_record(names.get(i))?;
        }
        self.check_base(&names, Definitions::find_dim, "dimension")?;
        self.has_paths |= names.text().contains('/');
        self.header.dims.append(&names, lens);
        if let Some(i) = record {
            self.header.dims.lens[first + i] = 0;
            self.header.dims.record = Some((first + i) as u32);
        }
        Ok(numbers(first, lens.len()))
    }

    /// Defines many variables. Gives their local numbers. A name that is taken is found at `enddef`.
    ///
    /// Errors: as of [`def_var`](Definitions::def_var); then none of them is defined.
    pub fn def_many(&mut self, columns: &VarColumns<'_>) -> Result<Range<u32>> {
        columns.check()?;
        let names = kept("variable", columns.names)?;
        let (first, count) = (self.header.vars.len(), names.len());
        check_room("variables", first, count)?;
        self.check_types(columns, &names)?;
        self.check_base(&names, Definitions::find_var, "variable")?;
        if let Some((attrs, ends)) = columns.attrs {
            self.check_attrs(&names, attrs, ends)?;
        }
        let (mut ids, mut ends) = (Vec::new(), Vec::new());
        let dims = match columns.dims {
            DimColumn::Ids(ids, ends) => {
                self.check_ids(&names, ids, ends)?;
                (ids, ends)
            }
            DimColumn::SameIds(same) => {
                if count > 0 {
                    self.check_dims(names.get(0), same)?;
                }
                ids = same.repeat(count);
                ends = (1..=count as u64).map(|i| i * same.len() as u64).collect();
                (&ids[..], &ends[..])
            }
            DimColumn::Names(dims, dim_ends) => {
                ids.reserve(dims.len());
                let mut at = 0;
                for (i, end) in dim_ends.iter().enumerate() {
                    let from = ids.len();
                    while at < *end as usize {
                        ids.push(self.resolve(names.get(i), dims.get(at))?);
                        at += 1;
                    }
                    self.check_dims(names.get(i), &ids[from..])?;
                }
                (&ids[..], dim_ends)
            }
            DimColumn::SameNames(dims) => {
                ids.reserve(dims.len() * count);
                ends.reserve(count);
                let mut parent = None;
                for path in names.iter() {
                    let own = path.rfind('/').map(|at| &path[..at]);
                    let from = ids.len();
                    match parent == Some(own) && from >= dims.len() {
                        // Neighbours of one path mean the same dimensions.
                        true => ids.extend_from_within(from - dims.len()..),
                        false => {
                            for dim in dims.iter() {
                                ids.push(self.resolve(path, dim)?);
                            }
                            self.check_dims(path, &ids[from..])?;
                        }
                    }
                    parent = Some(own);
                    ends.push(ids.len() as u64);
                }
                (&ids[..], &ends[..])
            }
        };
        self.has_paths |= names.text().contains('/');
        let types = (0..count).map(|i| columns.ty(i));
        self.header.vars.append(&names, types, dims, columns.attrs);
        Ok(numbers(first, count))
    }

    fn check_types(&self, columns: &VarColumns<'_>, names: &Names) -> Result<()> {
        let check = |i: usize, ty: NcType| check_type(self.header.version, "variable", names.get(i), ty);
        match columns.types {
            Types::One(ty) if !names.is_empty() => check(0, ty),
            Types::One(_) => Ok(()),
            Types::Each(types) => types.iter().enumerate().try_for_each(|(i, ty)| check(i, *ty)),
        }
    }

    fn check_ids(&self, names: &Names, ids: &[u32], ends: &[u64]) -> Result<()> {
        let known = self.header.dims.len() as u32;
        if self.header.dims.record.is_none() && ids.iter().all(|id| *id < known) {
            return Ok(());
        }
        let mut start = 0;
        for (i, end) in ends.iter().enumerate() {
            self.check_dims(names.get(i), &ids[start..*end as usize])?;
            start = *end as usize;
        }
        Ok(())
    }

    /// Refuses names of objects that were in the file before a redefinition: every rank has those already.
    fn check_base(
        &mut self,
        names: &Names,
        find: fn(&mut Definitions, &str) -> Option<u32>,
        kind: &str,
    ) -> Result<()> {
        if self.base == Default::default() {
            return Ok(());
        }
        match names.iter().find(|path| find(self, path).is_some()) {
            Some(path) => Err(super::taken(kind, path)),
            None => Ok(()),
        }
    }
}
