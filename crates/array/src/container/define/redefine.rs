//! Redefinition: definitions that begin from the header of an existing file.
//!
//! Every rank begins from the same header, the *base*, whose numbers stay. Ranks add objects of their own as in a new
//! container. At `enddef` they exchange their changes of the base (renamed objects, put or deleted attributes) as a
//! list of [`Change`]s, so that all ranks have the same base again.
//!
//! A rank only notes which objects of the base it changed; their new state is in its definitions, and it sends that.
//! So an object that changed many times is sent once, in its final state, and changes adopted from other ranks are
//! not sent again when a refused `enddef` is repeated.

use std::collections::{BTreeMap, HashMap};

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Header, Names, NcType};

use super::{Definitions, checked, taken};
use crate::container::model::{Counts, Format};

/// A change of an object of the base. Numbers are those of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A dimension's new path.
    DimName(u32, String),
    /// A variable's new path.
    VarName(u32, String),
    /// All attributes of a variable, in their new state.
    VarAttrs(u32, Attrs),
    /// A global attribute (by name) and its value.
    PutGlobal(String, NcType, Vec<u8>),
    /// A deleted global attribute.
    DelGlobal(String),
}

impl Definitions {
    /// Begins from `base`, whose names are paths.
    pub fn from_header(format: Format, base: Header) -> Definitions {
        let mut definitions = Definitions::new(format);
        let paths = |names: &Names| names.text().contains('/');
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

    /// Renames a dimension.
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
            self.edits.dims.insert(dim);
        }
        Ok(())
    }

    /// Renames a variable.
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
            self.edits.vars.insert(var);
        }
        Ok(())
    }

    /// Deletes an attribute of a variable or, with `None`, a global one.
    ///
    /// Errors: `NotFound` if there is none of that name.
    pub fn del_att(&mut self, var: Option<u32>, name: &str) -> Result<()> {
        let name = fieldstone_format::netcdf::names::nfc(name);
        let missing = || Error::not_found(format!("no attribute `{name}` to delete"));
        if let Some(var) = var {
            let attrs = self.attrs_of(var)?;
            let i = attrs.position(&name).ok_or_else(missing)?;
            self.note_attrs(var);
            self.late.set(var, attrs.without(i));
            return Ok(());
        }
        let names = &self.header.attrs.names;
        let id = self.attrs.find(names, &name).ok_or_else(missing)?;
        if self.remove_global(id) {
            self.edits.put.remove(&*name);
            self.edits.deleted.insert(name.into_owned());
        }
        Ok(())
    }

    /// This rank's changes of the base: each object once, in its current state.
    pub fn changes(&mut self) -> Vec<Change> {
        let header = &self.header;
        let dim = |id: &u32| Change::DimName(*id, header.dims.names.get(*id as usize).to_owned());
        let mut changes: Vec<Change> = self.edits.dims.iter().map(dim).collect();
        let var = |id: &u32| Change::VarName(*id, header.vars.names.get(*id as usize).to_owned());
        changes.extend(self.edits.vars.iter().map(var));
        changes.extend(self.edits.attrs.iter().map(|id| {
            let late = self.late.of(*id).cloned();
            Change::VarAttrs(*id, late.unwrap_or_else(|| header.vars.attrs_of(*id as usize)))
        }));
        for name in &self.edits.put {
            if let Some(id) = self.attrs.search(&header.attrs.names, name) {
                let attr = header.attrs.get(id as usize);
                changes.push(Change::PutGlobal(name.clone(), attr.ty, attr.value.to_vec()));
            }
        }
        changes.extend(self.edits.deleted.iter().cloned().map(Change::DelGlobal));
        changes
    }

    /// Applies the changes of other ranks to the base. They are not noted, because the rank that made them sends
    /// them. All names change at once, so that ranks may exchange names among objects.
    ///
    /// Errors: `Conflict` if a name is taken; then no object is renamed.
    pub(crate) fn adopt(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<()> {
        let (mut dims, mut vars, mut rest) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for change in changes {
            match change {
                Change::DimName(id, path) => drop(dims.insert(id, path)),
                Change::VarName(id, path) => drop(vars.insert(id, path)),
                other => rest.push(other),
            }
        }
        let new_dims = renamed("dimension", &self.header.dims.names, &dims)?;
        let new_vars = renamed("variable", &self.header.vars.names, &vars)?;
        if let Some(names) = new_dims {
            self.header.dims.names = names;
            self.dims.clear();
        }
        if let Some(names) = new_vars {
            self.header.vars.names = names;
            self.vars.clear();
        }
        self.has_paths |= dims.values().chain(vars.values()).any(|path| path.contains('/'));
        for change in rest {
            match change {
                Change::VarAttrs(id, attrs) => self.late.set(id, attrs),
                Change::PutGlobal(name, ty, value) => match self.base_global(&name) {
                    Some(id) => self.header.attrs.replace(id as usize, ty, &value),
                    None => return Err(Error::internal(format!("no global attribute `{name}` to change"))),
                },
                // An attribute of that name that this rank has but the file had not is the rank's own, and stays.
                Change::DelGlobal(name) => {
                    if let Some(id) = self.base_global(&name) {
                        self.remove_global(id);
                    }
                }
                Change::DimName(..) | Change::VarName(..) => {}
            }
        }
        Ok(())
    }

    /// Notes that attributes of a variable changed, if the variable is in the base.
    pub(super) fn note_attrs(&mut self, var: u32) {
        if u64::from(var) < self.base.vars {
            self.edits.attrs.insert(var);
        }
    }

    pub(super) fn replace_global(&mut self, id: u32, ty: NcType, value: &[u8]) {
        self.header.attrs.replace(id as usize, ty, value);
        if u64::from(id) < self.base.attrs {
            self.edits.put.insert(self.header.attrs.names.get(id as usize).to_owned());
        }
    }

    /// The global attribute of the base with this name.
    fn base_global(&mut self, name: &str) -> Option<u32> {
        let found = self.attrs.search(&self.header.attrs.names, name);
        found.filter(|id| u64::from(*id) < self.base.attrs)
    }

    /// Removes a global attribute; returns whether it was in the base.
    fn remove_global(&mut self, id: u32) -> bool {
        self.header.attrs = self.header.attrs.without(id as usize);
        self.attrs.clear();
        let was_base = u64::from(id) < self.base.attrs;
        self.base.attrs -= u64::from(was_base);
        was_base
    }
}

/// `names` with the new names in place; `None` if there are none. All names are distinct afterwards.
fn renamed(kind: &str, names: &Names, new: &BTreeMap<u32, String>) -> Result<Option<Names>> {
    let Some((last, _)) = new.last_key_value() else { return Ok(None) };
    if *last as usize >= names.len() {
        return Err(Error::internal(format!(
            "{kind} number {last} was renamed, but {} are known",
            names.len()
        )));
    }
    let mut given = HashMap::with_capacity(new.len());
    for (id, path) in new {
        if given.insert(path.as_str(), *id).is_some() {
            return Err(taken(kind, path));
        }
    }
    let mut all = Names::with_capacity(names.len(), names.text().len());
    for (i, name) in names.iter().enumerate() {
        match new.get(&(i as u32)) {
            Some(path) => all.push(path),
            None if given.contains_key(name) => return Err(taken(kind, name)),
            None => all.push(name),
        }
    }
    Ok(Some(all))
}
