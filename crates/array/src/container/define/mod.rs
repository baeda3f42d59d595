//! Define mode: the objects that one rank defines for a container.
//!
//! [`Definitions`] takes dimensions, variables and attributes one by one or in columns. It checks at once everything
//! that needs no other rank: names, types, lengths, and the dimensions to which a variable refers. It writes nothing
//! and does not communicate. Ranks meet at [`enddef`](super::enddef).
//!
//! Names are paths. A variable searches for its dimensions in its own path, then in each enclosing one.
//!
//! ```
//! use fieldstone_array::container::{Format, define::Definitions};
//! use fieldstone_format::netcdf::{NcType, Version};
//! # fn main() -> fieldstone_core::Result<()> {
//! let mut definitions = Definitions::new(Format::Classic(Version::Cdf5));
//! definitions.def_dim("time", None)?;
//! definitions.def_dim("event_7/hits", Some(12))?;
//! let charge = definitions.def_var("event_7/plane_u/charge", NcType::Float, &["hits"])?;
//! definitions.put_att(Some(charge), "units", NcType::Char, b"pC")?;
//! assert!(definitions.def_var("event_8/charge", NcType::Float, &["hits"]).is_err());
//! # Ok(()) }
//! ```
//!
//! Invariants: local numbers count from 0 in the order of definition and never change; every dimension number of a
//! variable exists; a name defined on its own is new. Names defined in columns may repeat an earlier name: `enddef`
//! finds and names it.

mod attributes;
mod base_edits;
mod bulk;
mod columns;
mod late_attrs;
pub(crate) mod lookup;
mod redefine;
mod repeats;

use std::borrow::Cow;
use std::ops::Range;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::{Attr, Header, Names, NcType, Version, layout, names, paths};

pub use columns::{DimColumn, Types, VarColumns};
use late_attrs::LateAttrs;
use lookup::Lookup;

use super::model::{Counts, Format};
use base_edits::BaseEdits;
pub use redefine::Change;

/// The length that marks the record dimension in [`Definitions::def_dims`].
pub const RECORD: u64 = u64::MAX;

/// The definitions of one rank. See the module's documentation.
#[derive(Debug, Clone)]
pub struct Definitions {
    format: Format,
    header: Header,
    dims: Lookup,
    vars: Lookup,
    attrs: Lookup,
    /// Attributes of variables that got one after a later variable was defined, or another value.
    late: LateAttrs,
    /// Objects that were in the file before a redefinition: the same on all ranks.
    base: Counts,
    /// This rank's changes to those.
    edits: BaseEdits,
    has_paths: bool,
    scratch: String,
}

impl Definitions {
    /// Makes empty definitions for a container of `format`.
    pub fn new(format: Format) -> Definitions {
        Definitions {
            format,
            header: Header::new(version_of(format)),
            dims: Lookup::default(),
            vars: Lookup::default(),
            attrs: Lookup::default(),
            late: LateAttrs::default(),
            base: Counts::default(),
            edits: BaseEdits::default(),
            has_paths: false,
            scratch: String::new(),
        }
    }

    /// The format of the container.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether any name is a path of several parts.
    pub fn has_paths(&self) -> bool {
        self.has_paths
    }

    /// The definitions, with names as paths. Moves late attributes into place.
    pub fn header(&mut self) -> &Header {
        self.late.merge_into(&mut self.header.vars);
        &self.header
    }

    /// The definitions without the changed attributes of variables, which [`attrs_of`](Definitions::attrs_of)
    /// returns: moving late attributes into place takes a pass over all variables, too much for a look at one.
    pub fn listed(&self) -> &Header {
        &self.header
    }

    /// The number of objects defined.
    pub fn counts(&self) -> Counts {
        Counts {
            dims: self.header.dims.len() as u64,
            attrs: self.header.attrs.len() as u64,
            vars: self.header.vars.len() as u64,
        }
    }

    /// Bytes of memory that the definitions hold.
    pub fn memory(&self) -> u64 {
        let lookups = self.dims.memory() + self.vars.memory() + self.attrs.memory();
        self.header.memory() + lookups + self.late.memory()
    }

    /// Defines a dimension and returns its local number; `None` makes it the record dimension.
    ///
    /// Errors: `Invalid` for an invalid name or length; `Conflict` if the name is taken, or there is another record
    /// dimension.
    pub fn def_dim(&mut self, path: &str, len: Option<u64>) -> Result<u32> {
        let path = checked("dimension", path)?;
        if self.dims.find(&self.header.dims.names, &path).is_some() {
            return Err(taken("dimension", &path));
        }
        check_room("dimensions", self.header.dims.len(), 1)?;
        self.has_paths |= path.contains('/');
        match len {
            Some(len) => {
                layout::check_dim_len(self.header.version, &path, len)?;
                Ok(self.header.dims.push(&path, len))
            }
            None => {
                self.check_record(&path)?;
                Ok(self.header.dims.push_record(&path))
            }
        }
    }

    /// Defines a variable and returns its local number; searches for its dimensions from its path outwards.
    ///
    /// Errors: `Invalid` for an invalid name, a type that the format does not have, an unknown dimension (with the
    /// paths tried), or the record dimension in another position than the first; `Conflict` if the name is taken.
    pub fn def_var(&mut self, path: &str, ty: NcType, dims: &[&str]) -> Result<u32> {
        let path = checked("variable", path)?;
        let mut ids = Vec::with_capacity(dims.len());
        for dim in dims {
            ids.push(self.resolve(&path, dim)?);
        }
        self.def_var_by_ids(&path, ty, &ids)
    }

    /// As [`def_var`](Definitions::def_var), with attributes: defines everything or nothing.
    ///
    /// Errors: also those of [`put_att`](Definitions::put_att).
    pub fn def_var_with(&mut self, path: &str, ty: NcType, dims: &[&str], attrs: &[Attr<'_>]) -> Result<u32> {
        for attr in attrs {
            let name = names::nfc(attr.name);
            attributes::check_given(self.header.version, path, ty, &Attr { name: &name, ..*attr })?;
        }
        let var = self.def_var(path, ty, dims)?;
        for Attr { name, ty, value } in attrs {
            self.put_att(Some(var), name, *ty, value)?;
        }
        Ok(var)
    }

    /// As [`def_var`](Definitions::def_var), over dimensions with these local numbers.
    pub fn def_var_by_ids(&mut self, path: &str, ty: NcType, dims: &[u32]) -> Result<u32> {
        let path = checked("variable", path)?;
        check_type(self.header.version, "variable", &path, ty)?;
        self.check_dims(&path, dims)?;
        if self.vars.find(&self.header.vars.names, &path).is_some() {
            return Err(taken("variable", &path));
        }
        check_room("variables", self.header.vars.len(), 1)?;
        self.has_paths |= path.contains('/');
        Ok(self.header.vars.push(&path, ty, dims))
    }

    /// Local number of the dimension to which a variable named `var` refers as `dim`.
    pub fn resolve(&mut self, var: &str, dim: &str) -> Result<u32> {
        let dim = names::nfc(dim);
        for parent in paths::enclosing(var) {
            self.scratch.clear();
            if !parent.is_empty() {
                self.scratch.push_str(parent);
                self.scratch.push('/');
            }
            self.scratch.push_str(&dim);
            let found = self.dims.find(&self.header.dims.names, &self.scratch);
            if let Some(id) = found {
                return Ok(id);
            }
        }
        let tried = paths::enclosing(var).map(|parent| match parent.is_empty() {
            true => format!("`{dim}`"),
            false => format!("`{parent}/{dim}`"),
        });
        let tried: Vec<String> = tried.collect();
        Err(Error::invalid(format!(
            "variable `{var}`: no dimension `{dim}` is defined on this rank (tried {})",
            tried.join(", ")
        ))
        .with_hint("define the dimension first; if another rank has it, define it here too, identically"))
    }

    /// Local number of the dimension with this path.
    pub fn find_dim(&mut self, path: &str) -> Option<u32> {
        let path = names::nfc(path);
        self.dims.find(&self.header.dims.names, &path)
    }

    /// Local number of the variable with this path.
    pub fn find_var(&mut self, path: &str) -> Option<u32> {
        let path = names::nfc(path);
        self.vars.find(&self.header.vars.names, &path)
    }

    fn check_dims(&self, path: &str, dims: &[u32]) -> Result<()> {
        let known = self.header.dims.len();
        for (position, id) in dims.iter().enumerate() {
            if *id as usize >= known {
                return Err(Error::invalid(format!(
                    "variable `{path}`: dimension number {id}, but {known} are defined on this rank"
                )));
            }
            if position > 0 && self.header.dims.record == Some(*id) {
                return Err(Code::Shape.error(format!(
                    "variable `{path}`: the record dimension `{}` is its dimension {}, but may only be \
                     the first",
                    self.header.dims.names.get(*id as usize),
                    position + 1
                )));
            }
        }
        Ok(())
    }

    fn check_record(&self, path: &str) -> Result<()> {
        match self.header.dims.record {
            None => Ok(()),
            Some(other) => Err(Code::DefinitionDiffers.error(format!(
                "dimension `{path}` would be a second record dimension, after `{}`; a container has at \
                 most one",
                self.header.dims.names.get(other as usize)
            ))),
        }
    }

    /// The input of `enddef`: the header, with late attributes in place, and the hashes of all its names (dimensions,
    /// attributes, variables).
    pub fn for_enddef(&mut self) -> (&mut Header, [&[u64]; 3]) {
        self.late.merge_into(&mut self.header.vars);
        let header = &mut self.header;
        let dims = self.dims.hashes(&header.dims.names);
        let attrs = self.attrs.hashes(&header.attrs.names);
        let vars = self.vars.hashes(&header.vars.names);
        (header, [dims, attrs, vars])
    }

    /// Objects that the file had before a redefinition.
    pub fn base(&self) -> Counts {
        self.base
    }
}

/// The netCDF version whose rules apply to a format.
pub(crate) fn version_of(format: Format) -> Version {
    match format {
        Format::Classic(version) => version,
        Format::Partitioned => Version::Cdf5,
    }
}

/// `path` as it is kept (NFC), if it is valid.
fn checked<'a>(kind: &str, path: &'a str) -> Result<Cow<'a, str>> {
    let path = names::nfc(path);
    paths::check_path(&path).map_err(|error| error.context(kind))?;
    Ok(path)
}

fn taken(kind: &str, path: &str) -> Error {
    Code::DefinitionExists
        .error(format!("{kind} `{path}` is already defined on this rank"))
        .with_hint("use another name, or the number that its definition returned")
}

/// Checks that the format has the type.
fn check_type(version: Version, kind: &str, path: &str, ty: NcType) -> Result<()> {
    if ty.is_in(version) {
        return Ok(());
    }
    let message = format!("{kind} `{path}`: {} has no type {}", version.name(), ty.name());
    Err(Code::ContainerFormat.error(message).with_hint("create the container with format cdf5"))
}

/// Checks that `more` objects fit in addition to `defined`: numbers in files are signed 32-bit.
fn check_room(kind: &str, defined: usize, more: usize) -> Result<()> {
    let limit = i32::MAX as usize;
    match defined.checked_add(more) {
        Some(all) if all <= limit => Ok(()),
        _ => {
            Err(Code::ContainerLimit.error(format!("{defined} {kind} and {more} more; {limit} are allowed")))
        }
    }
}

/// Local numbers from `first` on.
fn numbers(first: usize, count: usize) -> Range<u32> {
    first as u32..(first + count) as u32
}

/// `list` with every name as it is kept; `list` itself if nothing changes.
fn kept<'a>(kind: &str, list: Cow<'a, Names>) -> Result<Cow<'a, Names>> {
    if list.text().is_ascii() {
        // One look at all characters saves a look at each name's; if in doubt, the rules check each name.
        let harmless = |ok: bool, byte: u8| ok & (b' '..0x7f).contains(&byte);
        let plain = list.text().bytes().fold(true, harmless);
        let good = |part: &[u8]| {
            part.first().is_some_and(u8::is_ascii_alphabetic) && part.last().is_some_and(|last| *last != b' ')
        };
        for path in list.iter() {
            // An escaped path takes at most two bytes for one.
            let fits = path.len() <= names::MAX_NAME / 2;
            if !(plain && fits && path.as_bytes().split(|byte| *byte == b'/').all(good)) {
                paths::check_path(path).map_err(|error| error.context(kind))?;
            }
        }
        return Ok(list);
    }
    let mut kept = Names::with_capacity(list.len(), list.text().len());
    for path in list.iter() {
        kept.push(&checked(kind, path)?);
    }
    Ok(Cow::Owned(kept))
}
