//! Attributes of variables, and global attributes, whose names are paths.

use fieldstone_core::{Code, Result};
use fieldstone_format::netcdf::{Attr, Attrs, Names, NcType, Version, fill, layout, names, paths};

use super::repeats::{FEW, first_repeat};
use super::{Definitions, VarColumns, check_room, check_type, checked};

impl Definitions {
    /// Puts an attribute on a variable (by local number) or, with `None`, on the container; replaces one of that
    /// name. `value` has external bytes: big-endian elements without padding. The name of a global attribute is a
    /// path.
    ///
    /// Errors: `Invalid` for an invalid name, a type that the format does not have, a value that is not a whole
    /// number of elements, or a `_FillValue` of another type than its variable or with other than one element;
    /// `NotFound` if there is no such variable.
    pub fn put_att(&mut self, var: Option<u32>, name: &str, ty: NcType, value: &[u8]) -> Result<()> {
        let Some(var) = var else {
            return self.put_global(name, ty, value);
        };
        self.check_var(var)?;
        let name = names::nfc(name);
        let path = self.header.vars.names.get(var as usize);
        let attr = Attr { name: &name, ty, value };
        check_given(self.header.version, path, self.header.vars.types[var as usize], &attr)?;
        let is_last = var as usize + 1 == self.header.vars.len();
        let is_base = u64::from(var) < self.base.vars;
        if is_last && !is_base && self.late.of(var).is_none() {
            // The usual case: a few attributes right after their variable.
            let mut own = self.header.vars.get(var as usize).attrs();
            let is_new_of_few = own.len() < FEW && own.all(|attr| attr.name != name);
            drop(own);
            if is_new_of_few {
                self.header.vars.attrs_of_last(&name, ty, value);
                return Ok(());
            }
        }
        self.note_attrs(var);
        self.late.put(&self.header.vars, var, &attr);
        Ok(())
    }

    fn put_global(&mut self, name: &str, ty: NcType, value: &[u8]) -> Result<()> {
        let name = checked("global attribute", name)?;
        if name == paths::ATTRIBUTE {
            return Err(Code::Name
                .error(format!("the name of global attribute `{name}` is reserved"))
                .with_hint(
                    "it describes how paths are escaped in the file, and is written if there are any",
                ));
        }
        check_type(self.header.version, "global attribute", &name, ty)?;
        check_value(self.header.version, || format!("global attribute `{name}`"), ty, value)?;
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

    /// Attributes of a variable, including late ones.
    pub fn attrs_of(&self, var: u32) -> Result<Attrs> {
        self.check_var(var)?;
        Ok(match self.late.of(var) {
            Some(attrs) => attrs.clone(),
            None => self.header.vars.attrs_of(var as usize),
        })
    }

    pub(super) fn check_var(&self, var: u32) -> Result<()> {
        let vars = self.header.vars.len();
        if (var as usize) < vars {
            return Ok(());
        }
        Err(Code::VariableNotFound
            .error(format!("no variable number {var}; {vars} are defined on this rank")))
    }
}

/// Checks attributes of variables in columns as [`put_att`](Definitions::put_att) does each, but for fill values.
pub(super) fn check_attrs(version: Version, columns: &VarColumns<'_>, vars: &Names) -> Result<()> {
    let Some((attrs, ends)) = columns.attrs else { return Ok(()) };
    let mut start = 0;
    for (i, end) in ends.iter().enumerate() {
        let (path, own) = (vars.get(i), start..*end as usize);
        for at in own.clone() {
            let attr = attrs.get(at);
            check_attr(version, path, &attr)?;
            if names::nfc(attr.name) != attr.name {
                return Err(
                    Code::Name.error(format!("{}: its name is not NFC-normalised", attr_of_var(path, &attr)))
                );
            }
        }
        if let Some(twice) = first_repeat(own.map(|at| attrs.names.get(at))) {
            return Err(Code::DefinitionExists
                .error(format!("attribute `{twice}` of variable `{path}` is given twice")));
        }
        start = *end as usize;
    }
    Ok(())
}

/// Checks an attribute that a user gives a variable; its name is in NFC.
pub(super) fn check_given(version: Version, path: &str, var_type: NcType, attr: &Attr<'_>) -> Result<()> {
    check_attr(version, path, attr)?;
    check_fill(path, var_type, attr)
}

fn attr_of_var(path: &str, attr: &Attr<'_>) -> String {
    format!("attribute `{}` of variable `{path}`", attr.name)
}

/// Checks that hold for every attribute of a variable named `path`. Builds texts only for an error, because there may
/// be millions of attributes.
fn check_attr(version: Version, path: &str, attr: &Attr<'_>) -> Result<()> {
    let Attr { name, ty, value } = *attr;
    names::check_name(name).map_err(|error| error.context(attr_of_var(path, attr)))?;
    check_type(version, "attribute", name, ty)
        .map_err(|error| error.context(format_args!("variable `{path}`")))?;
    check_value(version, || attr_of_var(path, attr), ty, value)
}

/// Checks a fill value that a user gives. Foreign files have other fill values, too, which stay as they are.
pub(super) fn check_fill(path: &str, var_type: NcType, attr: &Attr<'_>) -> Result<()> {
    let Attr { name, ty, value } = *attr;
    if name == fill::ATTRIBUTE && (ty != var_type || value.len() != ty.size()) {
        return Err(Code::ValueType.error(format!(
            "{}: it has {} elements of type {}, but must have one of the variable's type {}",
            attr_of_var(path, attr),
            value.len() / ty.size(),
            ty.name(),
            var_type.name()
        )));
    }
    Ok(())
}

fn check_value(version: Version, attr_of_var: impl Fn() -> String, ty: NcType, value: &[u8]) -> Result<()> {
    if value.len().is_multiple_of(ty.size()) {
        let elements = (value.len() / ty.size()) as u64;
        return layout::check_count(version, elements, || format!("number of elements of {}", attr_of_var()));
    }
    Err(Code::Value.error(format!(
        "{}: {} bytes are not a whole number of elements of {} ({} bytes each)",
        attr_of_var(),
        value.len(),
        ty.name(),
        ty.size()
    )))
}
