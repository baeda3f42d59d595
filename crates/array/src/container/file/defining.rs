//! Define mode of an open container: the definitions of this rank, by the numbers that callers hold.
//!
//! Invariant: a number that was handed out means the same object for ever, also after a redefinition.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::Ordering;

use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::{Attr, Names, NcType};

use super::state::{DefineMode, State};
use super::{Container, DimRef, VarRef};
use crate::container::define::VarColumns;

/// Defines dimensions, variables and attributes on this rank. Every call is an error in data mode.
#[derive(Debug, Clone, Copy)]
pub struct Define<'a> {
    pub(super) container: &'a Container,
}

impl Define<'_> {
    /// Defines a dimension on this rank; `None` makes it the record dimension.
    pub fn dim(&self, path: &str, len: Option<u64>) -> Result<DimRef> {
        self.defining("def_dim", |define| {
            let local = define.definitions.def_dim(path, len)?;
            Ok(DimRef(define.dims.hand_out(local..local + 1).start))
        })
    }

    /// Defines many dimensions on this rank; the length [`RECORD`](crate::container::define::RECORD) marks the record dimension.
    /// Lists that are given away are not copied.
    pub fn dims<'a>(
        &self,
        names: impl Into<Cow<'a, Names>>,
        lens: impl Into<Cow<'a, [u64]>>,
    ) -> Result<Range<u32>> {
        self.defining("def_dims", |define| {
            let locals = define.definitions.def_dims(names, lens)?;
            Ok(define.dims.hand_out(locals))
        })
    }

    /// Defines a variable on this rank. Its dimensions are looked up in its own path, then in each enclosing
    /// one.
    pub fn var(&self, path: &str, ty: NcType, dims: &[&str]) -> Result<VarRef> {
        self.defining("def_var", |define| {
            let local = define.definitions.def_var(path, ty, dims)?;
            Ok(VarRef(define.vars.hand_out(local..local + 1).start))
        })
    }

    /// As [`var`](Self::var), with attributes of external (big-endian) bytes: all of it, or nothing.
    pub fn var_with(&self, path: &str, ty: NcType, dims: &[&str], attrs: &[Attr<'_>]) -> Result<VarRef> {
        self.defining("def_var", |define| {
            let local = define.definitions.def_var_with(path, ty, dims, attrs)?;
            Ok(VarRef(define.vars.hand_out(local..local + 1).start))
        })
    }

    /// Defines many variables on this rank.
    pub fn vars(&self, columns: &VarColumns<'_>) -> Result<Range<u32>> {
        self.defining("def_many", |define| {
            let locals = define.def_many(columns)?;
            Ok(define.vars.hand_out(locals))
        })
    }

    /// Appends to `ids` the numbers, as [`vars`](Self::vars) takes them, of the dimensions that variables
    /// name: `dims` one variable's after another, `ends` where each variable's end, and the variables those of
    /// `vars`, in NFC, from number `first` on. So a long column of names can be taken piece by piece. Gives false
    /// and does nothing where numbers that callers hold are not those of the definitions, after a redefinition:
    /// then `vars` is to be given the names.
    pub fn resolve_dims(
        &self,
        (vars, first): (&Names, usize),
        (dims, ends): (&Names, &[u64]),
        ids: &mut Vec<u32>,
    ) -> Result<bool> {
        self.defining("def_many", |define| {
            if !define.dims.is_same() {
                return Ok(false);
            }
            define.definitions.resolve_dims((vars, first), (dims, ends), ids)?;
            Ok(true)
        })
    }

    /// Gives a variable, or with `None` the container, an attribute of external (big-endian) bytes. One of
    /// that name is replaced.
    pub fn put_att(&self, var: Option<VarRef>, name: &str, ty: NcType, value: &[u8]) -> Result<()> {
        self.defining("put_att", |define| {
            let var = var.map(|var| define.vars.local(var.0));
            define.definitions.put_att(var, name, ty, value)
        })
    }

    /// Deletes an attribute of a variable, or with `None` of the container.
    pub fn del_att(&self, var: Option<VarRef>, name: &str) -> Result<()> {
        self.defining("del_att", |define| {
            let var = var.map(|var| define.vars.local(var.0));
            define.definitions.del_att(var, name)
        })
    }

    /// Gives a dimension another path.
    pub fn rename_dim(&self, dim: DimRef, path: &str) -> Result<()> {
        self.defining("rename_dim", |define| {
            let dim = define.dims.local(dim.0);
            define.definitions.rename_dim(dim, path)
        })
    }

    /// Gives a variable another path.
    pub fn rename_var(&self, var: VarRef, path: &str) -> Result<()> {
        self.defining("rename_var", |define| {
            let var = define.vars.local(var.0);
            define.definitions.rename_var(var, path)
        })
    }

    fn defining<T>(&self, what: &str, act: impl FnOnce(&mut DefineMode) -> Result<T>) -> Result<T> {
        let (container, clock) = (self.container, &self.container.env.clock);
        match &mut *container.state() {
            State::Define(define) => {
                let since = clock.monotonic();
                let done = act(define);
                let spent = clock.monotonic().saturating_sub(since);
                container.defining.fetch_add(spent, Ordering::Relaxed);
                done
            }
            State::Data(_) => Err(Code::ContainerMode
                .error(format!("{what}: {} is in data mode", container.path.display()))
                .with_hint("call redef first, on all ranks")),
            State::Ended(why) => Err(container.ended(what, why)),
        }
    }
}
