//! Attributes: of variables, and global ones, which have paths.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, Names, NcType, Version, layout, names, paths};

use super::{Definitions, check_room, check_type, checked};

impl Definitions {
    /// Gives a variable (by local number), or with `None` the container, an attribute; one of that name is
    /// replaced. `value` is external bytes: big-endian elements without padding. A global attribute's name is a
    /// path.
    ///
    /// Errors: `Invalid` for an illegal name, a type that the format does not have, a value that is no whole
    /// number of elements, `_FillValue` of another type than its variable or not of one element; `NotFound`
    /// where there is no such variable.
    pub fn put_att(&mut self, var: Option<u32>, name: &str, ty: NcType, value: &[u8]) -> Result<()> {
        let Some(var) = var else {
            return self.put_global(name, ty, value);
        };
        self.check_var(var)?;
        let name = names::nfc(name);
        let path = self.header.vars.names.get(var as usize);
        check_attr(self, path, self.header.vars.types[var as usize], &name, ty, value)?;
        let is_last = var as usize + 1 == self.header.vars.len();
        let is_base = u64::from(var) < self.base.vars;
        if !is_base && let Some(attrs) = self.changed.get_mut(&var) {
            put(attrs, &name, ty, value);
            return Ok(());
        }
        let own = self.header.vars.get(var as usize);
        if is_last && !is_base && own.attrs().all(|attr| attr.name != name) {
            self.header.vars.attrs_of_last(&name, ty, value);
            return Ok(());
        }
        let mut attrs = self.attrs_of(var)?;
        put(&mut attrs, &name, ty, value);
        self.change_attrs(var, attrs);
        Ok(())
    }

    fn put_global(&mut self, name: &str, ty: NcType, value: &[u8]) -> Result<()> {
        let name = checked("global attribute", name)?;
        if name == paths::ATTRIBUTE {
            return Err(Error::invalid(format!("the name of global attribute `{name}` is reserved"))
                .with_hint(
                    "it states how paths are spelled in the file, and is written where there are any",
                ));
        }
        check_type(self.header.version, "global attribute", &name, ty)?;
        check_value(self.header.version, &format!("global attribute `{name}`"), ty, value)?;
        match self.attrs.find(&self.header.attrs.names, &name) {
            Some(id) => self.replace_global(id, ty, value),
            None => {
                check_room("global attributes", self.header.attrs.len(), 1)?;
                self.has_paths |= name.contains('/');
                self.header.attrs.push(&name, ty, value);
            }
        }
        Ok(())
    }

    /// Attributes of a variable, late ones among them.
    pub fn attrs_of(&self, var: u32) -> Result<Attrs> {
        self.check_var(var)?;
        Ok(match self.changed.get(&var) {
            Some(attrs) => attrs.clone(),
            None => self.header.vars.attrs_of(var as usize),
        })
    }

    pub(super) fn check_var(&self, var: u32) -> Result<()> {
        let vars = self.header.vars.len();
        if (var as usize) < vars {
            return Ok(());
        }
        Err(Error::not_found(format!("no variable number {var}; {vars} are defined on this rank")))
    }

    pub(super) fn check_attrs(&self, vars: &Names, attrs: &Attrs, ends: &[u64]) -> Result<()> {
        let mut start = 0;
        for (i, end) in ends.iter().enumerate() {
            for at in start..*end as usize {
                let attr = attrs.get(at);
                let owner = || format!("attribute `{}` of variable `{}`", attr.name, vars.get(i));
                names::check_name(attr.name).map_err(|error| error.context(owner()))?;
                if names::nfc(attr.name) != attr.name {
                    return Err(Error::invalid(format!("{}: its name is not NFC-normalised", owner())));
                }
                check_type(self.header.version, "attribute", attr.name, attr.ty)?;
                if (start..at).any(|other| attrs.names.get(other) == attr.name) {
                    return Err(Error::conflict(format!("{} is given twice", owner())));
                }
            }
            start = *end as usize;
        }
        Ok(())
    }
}

fn check_attr(
    definitions: &Definitions,
    path: &str,
    var_type: NcType,
    name: &str,
    ty: NcType,
    value: &[u8],
) -> Result<()> {
    let whole = format!("attribute `{name}` of variable `{path}`");
    names::check_name(name).map_err(|error| error.context(&whole))?;
    check_type(definitions.header.version, "attribute", name, ty)
        .map_err(|error| error.context(format_args!("variable `{path}`")))?;
    check_value(definitions.header.version, &whole, ty, value)?;
    if name == "_FillValue" && (ty != var_type || value.len() != ty.size()) {
        return Err(Error::invalid(format!(
            "{whole}: it has {} elements of type {}, and must have one of the variable's type {}",
            value.len() / ty.size(),
            ty.name(),
            var_type.name()
        )));
    }
    Ok(())
}

fn check_value(version: Version, whole: &str, ty: NcType, value: &[u8]) -> Result<()> {
    if value.len().is_multiple_of(ty.size()) {
        let elements = (value.len() / ty.size()) as u64;
        return layout::check_count(version, elements, || format!("number of elements of {whole}"));
    }
    Err(Error::invalid(format!(
        "{whole}: {} bytes are no whole number of elements of {} ({} bytes each)",
        value.len(),
        ty.name(),
        ty.size()
    )))
}

fn put(attrs: &mut Attrs, name: &str, ty: NcType, value: &[u8]) {
    match attrs.position(name) {
        Some(i) => attrs.replace(i, ty, value),
        None => attrs.push(name, ty, value),
    }
}
