//! The contents of an open container, in either mode: in define mode, the definitions of this rank; in data mode,
//! everything.

use std::sync::Arc;

use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::Attrs;

use super::data::DataMode;
use super::loaded_header::dim_info;
use super::state::{DefineMode, State};
use super::{Container, VarRef};
use crate::container::model::{Counts, DimInfo, Format, VarInfo, is_under};

impl Container {
    /// Whether it is in define mode.
    pub fn is_defining(&self) -> bool {
        matches!(&*self.state(), State::Define(_))
    }

    /// Whether it was closed or abandoned.
    pub fn is_closed(&self) -> bool {
        matches!(&*self.state(), State::Ended(_))
    }

    /// Queries the definitions of this rank, or the file. Does not lock the container while it reads the file.
    fn either<T>(
        &self,
        what: &str,
        define: impl FnOnce(&mut DefineMode) -> Result<T>,
        data: impl FnOnce(&DataMode) -> Result<T>,
    ) -> Result<T> {
        let held: Arc<DataMode> = match &mut *self.state() {
            State::Define(own) => return define(own),
            State::Data(held) => held.clone(),
            State::Ended(why) => return Err(self.ended(what, why)),
        };
        data(&held)
    }

    /// The format of its header.
    pub fn format(&self) -> Result<Format> {
        self.either("format", |own| Ok(own.definitions.format()), |data| Ok(data.metadata.format()))
    }

    /// The number of its objects.
    pub fn counts(&self) -> Result<Counts> {
        self.either("counts", |own| Ok(own.definitions.counts()), |data| data.metadata.counts())
    }

    /// At most `limit` dimensions from number `from` on, in order.
    pub fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>> {
        let define = |own: &mut DefineMode| {
            let header = own.definitions.listed();
            let numrecs = header.numrecs.unwrap_or(0);
            Ok(page(from, limit, header.dims.len()).map(|i| dim_info(header, i, numrecs)).collect())
        };
        self.either("dims", define, |data| data.metadata.dims(from, limit))
    }

    /// At most `limit` variables from number `from` on, in order.
    pub fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>> {
        let define = |own: &mut DefineMode| {
            let vars = page(from, limit, own.definitions.listed().vars.len());
            vars.map(|local| own.described(local)).collect()
        };
        self.either("vars", define, |data| data.metadata.vars(from, limit))
    }

    /// The variables directly under a path, in order; in a file with very many variables, it reads no more of the
    /// others than necessary.
    pub fn vars_of(&self, path: &str) -> Result<Vec<VarInfo>> {
        let define = |own: &mut DefineMode| {
            let names = own.definitions.listed().vars.names.iter().enumerate();
            let locals = names.filter(|(_, name)| is_under(name, path));
            locals.map(|(local, _)| own.described(local)).collect()
        };
        self.either("vars_of", define, |data| data.metadata.vars_of(path))
    }

    /// The container's own attributes.
    pub fn attrs(&self) -> Result<Attrs> {
        let define = |own: &mut DefineMode| Ok(own.definitions.listed().attrs.clone());
        self.either("attrs", define, |data| data.metadata.attrs())
    }

    /// The handle of a variable in define mode, by its path.
    ///
    /// Errors: `NotFound` if this rank has not defined it; `Invalid` in data mode.
    pub fn var_ref(&self, path: &str) -> Result<VarRef> {
        let define = |own: &mut DefineMode| {
            let local = own.definitions.find_var(path);
            let handle = local.and_then(|local| own.vars.handle(local));
            let unknown =
                || Code::VariableNotFound.error(format!("variable `{path}` is not defined on this rank"));
            handle.map(VarRef).ok_or_else(unknown)
        };
        let data = |_: &DataMode| {
            Err(Code::ContainerMode
                .error(format!("variable `{path}`: {} is in data mode", self.path.display()))
                .with_hint("call redef first, on all ranks"))
        };
        self.either("var_ref", define, data)
    }
}

/// The numbers of one page of a list.
fn page(from: u64, limit: usize, len: usize) -> std::ops::Range<usize> {
    let first = usize::try_from(from).map_or(len, |from| from.min(len));
    first..first.saturating_add(limit).min(len)
}
