//! Redefinition: definitions that begin from what a file already has.
//!
//! Every rank begins from the same header, the *base*; its numbers stay. Ranks add objects of their own as
//! in a new container. What they do to the base (rename, give or delete an attribute) is also kept as a list
//! of [`Change`]s, which `enddef` exchanges, so that all ranks have the same base again.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Header, NcType};

use super::{Definitions, checked, taken};
use crate::container::model::{Counts, Format};

/// A change of an object of the base. Numbers are those of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A dimension's new path.
    DimName(u32, String),
    /// A variable's new path.
    VarName(u32, String),
    /// All attributes of a variable, as they are to be.
    VarAttrs(u32, Attrs),
    /// A global attribute (by name) and its value.
    PutGlobal(String, NcType, Vec<u8>),
    /// A global attribute that is no more.
    DelGlobal(String),
}

impl Definitions {
    /// Begins from `base`, whose names are paths.
    pub fn from_header(format: Format, base: Header) -> Definitions {
        let mut definitions = Definitions::new(format);
        let paths = |names: &fieldstone_format::netcdf::Names| names.text().contains('/');
        definitions.has_paths =
            paths(&base.dims.names) || paths(&base.vars.names) || paths(&base.attrs.names);
        definitions.base = Counts {
            dims: base.dims.len() as u64,
            attrs: base.attrs.len() as u64,
            vars: base.vars.len() as u64,
        };
        definitions.header = base;
        definitions
    }

    /// Gives a dimension another path.
    pub fn rename_dim(&mut self, dim: u32, path: &str) -> Result<()> {
        let path = checked("dimension", path)?;
        if dim as usize >= self.header.dims.len() {
            return Err(Error::not_found(format!("no dimension number {dim} is defined on this rank")));
        }
        match self.find_dim(&path) {
            Some(other) if other != dim => return Err(taken("dimension", &path)),
            _ => self.header.dims.names.replace(dim as usize, &path),
        }
        self.dims.clear();
        self.has_paths |= path.contains('/');
        if u64::from(dim) < self.base.dims {
            self.changes.push(Change::DimName(dim, path.into_owned()));
        }
        Ok(())
    }

    /// Gives a variable another path.
    pub fn rename_var(&mut self, var: u32, path: &str) -> Result<()> {
        let path = checked("variable", path)?;
        self.check_var(var)?;
        match self.find_var(&path) {
            Some(other) if other != var => return Err(taken("variable", &path)),
            _ => self.header.vars.names.replace(var as usize, &path),
        }
        self.vars.clear();
        self.has_paths |= path.contains('/');
        if u64::from(var) < self.base.vars {
            self.changes.push(Change::VarName(var, path.into_owned()));
        }
        Ok(())
    }

    /// Deletes an attribute of a variable, or with `None` a global one.
    ///
    /// Errors: `NotFound` where there is none of that name.
    pub fn del_att(&mut self, var: Option<u32>, name: &str) -> Result<()> {
        let name = fieldstone_format::netcdf::names::nfc(name);
        let missing = || Error::not_found(format!("no attribute `{name}` to delete"));
        if let Some(var) = var {
            let attrs = self.attrs_of(var)?;
            let i = attrs.position(&name).ok_or_else(missing)?;
            self.change_attrs(var, attrs.without(i));
            return Ok(());
        }
        let names = &self.header.attrs.names;
        let i = self.attrs.find(names, &name).ok_or_else(missing)?;
        self.header.attrs = self.header.attrs.without(i as usize);
        self.attrs.clear();
        if u64::from(i) < self.base.attrs {
            self.base.attrs -= 1;
            self.changes.push(Change::DelGlobal(name.into_owned()));
        }
        Ok(())
    }

    /// What was done to the base on this rank.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Does what another rank did to the base.
    pub(crate) fn adopt(&mut self, change: Change) -> Result<()> {
        match change {
            Change::DimName(id, path) => self.rename_dim(id, &path),
            Change::VarName(id, path) => self.rename_var(id, &path),
            Change::VarAttrs(id, attrs) => {
                self.changed.insert(id, attrs);
                Ok(())
            }
            Change::PutGlobal(name, ty, value) => self.put_att(None, &name, ty, &value),
            Change::DelGlobal(name) => match self.attrs.find(&self.header.attrs.names, &name) {
                Some(_) => self.del_att(None, &name),
                None => Ok(()),
            },
        }
    }

    pub(super) fn change_attrs(&mut self, var: u32, attrs: Attrs) {
        if u64::from(var) < self.base.vars {
            self.note(var, &attrs);
        }
        self.changed.insert(var, attrs);
    }

    /// The latest attributes of a variable of the base are the only ones to tell of.
    pub(super) fn note(&mut self, var: u32, attrs: &Attrs) {
        self.changes.retain(|change| !matches!(change, Change::VarAttrs(other, _) if *other == var));
        self.changes.push(Change::VarAttrs(var, attrs.clone()));
    }

    pub(super) fn replace_global(&mut self, id: u32, ty: NcType, value: &[u8]) {
        self.header.attrs.replace(id as usize, ty, value);
        if u64::from(id) < self.base.attrs {
            let name = self.header.attrs.names.get(id as usize).to_owned();
            self.changes.push(Change::PutGlobal(name, ty, value.to_vec()));
        }
    }
}
