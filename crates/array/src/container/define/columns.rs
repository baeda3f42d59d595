//! Columns of variables, for defining many at a time.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Names, NcType};

use super::attributes::check_fill;

/// Types of variables.
#[derive(Debug, Clone, Copy)]
pub enum Types<'a> {
    /// The same type for all.
    One(NcType),
    /// A type for each variable.
    Each(&'a [NcType]),
}

/// Dimensions of variables, outermost first.
#[derive(Debug, Clone, Copy)]
pub enum DimColumn<'a> {
    /// All variables have these, by name; each looks them up from its own path.
    SameNames(&'a Names),
    /// All variables have these, by local number.
    SameIds(&'a [u32]),
    /// The names of all variables' dimensions, concatenated, and the end of each variable's list.
    Names(&'a Names, &'a [u64]),
    /// The local numbers of all variables' dimensions, concatenated, and the end of each variable's list.
    Ids(&'a [u32], &'a [u64]),
}

/// Variables to define together. Each column has an entry for each of `names`.
#[derive(Debug, Clone, Copy)]
pub struct VarColumns<'a> {
    /// Their paths.
    pub names: &'a Names,
    /// Their types.
    pub types: Types<'a>,
    /// Their dimensions.
    pub dims: DimColumn<'a>,
    /// Their attributes, concatenated, and the end of each variable's list; values are external bytes.
    pub attrs: Option<(&'a Attrs, &'a [u64])>,
}

impl VarColumns<'_> {
    /// Checks that the columns fit each other.
    pub(super) fn check(&self) -> Result<()> {
        let vars = self.names.len();
        let fits = |what: &str, found: usize| match found == vars {
            true => Ok(()),
            false => Err(Error::invalid(format!("{vars} names of variables, but {found} {what}"))
                .with_hint("give one entry for each name")),
        };
        if let Types::Each(types) = self.types {
            fits("types", types.len())?;
        }
        match self.dims {
            DimColumn::Names(names, ends) => {
                fits("lists of dimensions", ends.len())?;
                check_ends("dimensions", ends, names.len())?;
            }
            DimColumn::Ids(ids, ends) => {
                fits("lists of dimensions", ends.len())?;
                check_ends("dimensions", ends, ids.len())?;
            }
            DimColumn::SameNames(_) | DimColumn::SameIds(_) => {}
        }
        if let Some((attrs, ends)) = self.attrs {
            fits("lists of attributes", ends.len())?;
            check_ends("attributes", ends, attrs.len())?;
        }
        Ok(())
    }

    /// Checks that each `_FillValue` is one element of its variable's type. Readers ignore any other fill value, so a
    /// user must not give one by mistake. Leaves columns that do not fit each other to
    /// [`def_many`](super::Definitions::def_many).
    ///
    /// Errors: `Invalid`, naming the variable.
    pub fn check_fill_values(&self) -> Result<()> {
        let Some((attrs, ends)) = self.attrs else { return Ok(()) };
        if self.check().is_err() {
            return Ok(());
        }
        let mut start = 0;
        for (i, end) in ends.iter().enumerate() {
            for at in start..*end as usize {
                check_fill(self.names.get(i), self.ty(i), &attrs.get(at))?;
            }
            start = *end as usize;
        }
        Ok(())
    }

    /// Type of the `i`-th variable.
    pub(super) fn ty(&self, i: usize) -> NcType {
        match self.types {
            Types::One(ty) => ty,
            Types::Each(types) => types[i],
        }
    }
}

pub(super) fn check_ends(what: &str, ends: &[u64], len: usize) -> Result<()> {
    let ascend = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    if ascend && ends.last().copied().unwrap_or(0) == len as u64 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the ends of each variable's {what} do not ascend to {len}, their total number"
    )))
}
