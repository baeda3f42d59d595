//! Definitions in columns: one check and a few copies for any number of objects.

use std::borrow::Cow;
use std::ops::Range;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::{Names, NcType, Version, layout};

use super::attributes::check_attrs;
use super::columns::check_ends;
use super::{Definitions, DimColumn, RECORD, Types, VarColumns, check_room, check_type, kept, numbers};

impl Definitions {
    /// Defines many dimensions and returns their local numbers; the length [`RECORD`] makes one the record dimension.
    /// `enddef` finds names that are already taken. Owned lists are not copied.
    ///
    /// Errors: as for [`def_dim`](Definitions::def_dim); then none of them is defined.
    pub fn def_dims<'a>(
        &mut self,
        names: impl Into<Cow<'a, Names>>,
        lens: impl Into<Cow<'a, [u64]>>,
    ) -> Result<Range<u32>> {
        let (names, lens) = (names.into(), lens.into());
        if names.len() != lens.len() {
            let message = format!("{} names of dimensions, but {} lengths", names.len(), lens.len());
            return Err(Error::invalid(message).with_hint("give one length for each name"));
        }
        let names = kept("dimension", names)?;
        let (first, count) = (self.header.dims.len(), lens.len());
        check_room("dimensions", first, count)?;
        let mut record = None;
        for (i, len) in lens.iter().enumerate() {
            if *len != RECORD {
                layout::check_dim_len(self.header.version, names.get(i), *len)?;
            } else if let Some(other) = record.replace(i) {
                return Err(Code::DefinitionDiffers.error(format!(
                    "dimensions `{}` and `{}` would both be the record dimension; a container has at most \
                     one",
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
        self.header.dims.append(names, lens);
        if let Some(i) = record {
            self.header.dims.lens[first + i] = 0;
            self.header.dims.record = Some((first + i) as u32);
        }
        Ok(numbers(first, count))
    }

    /// Defines many variables and returns their local numbers. `enddef` finds names that are already taken.
    ///
    /// Fill values may have any type and length, as in foreign files;
    /// [`check_fill_values`](VarColumns::check_fill_values) checks those that a user gives.
    ///
    /// Errors: as for [`def_var`](Definitions::def_var) and [`put_att`](Definitions::put_att); then none of them is
    /// defined.
    pub fn def_many(&mut self, columns: &VarColumns<'_>) -> Result<Range<u32>> {
        columns.check()?;
        let names = kept("variable", Cow::Borrowed(columns.names))?;
        let (first, count) = (self.header.vars.len(), names.len());
        check_room("variables", first, count)?;
        check_types(self.header.version, columns, &names)?;
        self.check_base(&names, Definitions::find_var, "variable")?;
        check_attrs(self.header.version, columns, &names)?;
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
                self.resolve_dims((&names, 0), (dims, dim_ends), &mut ids)?;
                self.check_ids(&names, &ids, dim_ends)?;
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
                        // Adjacent variables of one path refer to the same dimensions.
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

    /// Appends the local numbers of the dimensions that variables name to `ids`, as [`def_many`](Self::def_many)
    /// finds them: `dims` concatenates the lists of all variables, `ends` has the end of each variable's list, and
    /// the variables are those of `vars`, in NFC, from number `first` on. So a long column of names can be processed
    /// piece by piece.
    ///
    /// Errors: `Invalid` for an unknown dimension, or columns that do not fit each other.
    pub fn resolve_dims(
        &mut self,
        (vars, first): (&Names, usize),
        (dims, ends): (&Names, &[u64]),
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        check_ends("dimensions", ends, dims.len())?;
        if first.checked_add(ends.len()).is_none_or(|last| last > vars.len()) {
            let (rows, vars) = (ends.len(), vars.len());
            return Err(Error::invalid(format!(
                "{rows} lists of dimensions from number {first} on for {vars} variables"
            )));
        }
        let mut at = 0;
        for (i, end) in ends.iter().enumerate() {
            while at < *end as usize {
                ids.push(self.resolve(vars.get(first + i), dims.get(at))?);
                at += 1;
            }
        }
        Ok(())
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

    /// Refuses names of objects that the file had before a redefinition: every rank has those already.
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

fn check_types(version: Version, columns: &VarColumns<'_>, names: &Names) -> Result<()> {
    let check = |i: usize, ty: NcType| check_type(version, "variable", names.get(i), ty);
    match columns.types {
        Types::One(ty) if !names.is_empty() => check(0, ty),
        Types::One(_) => Ok(()),
        Types::Each(types) => types.iter().enumerate().try_for_each(|(i, ty)| check(i, *ty)),
    }
}
