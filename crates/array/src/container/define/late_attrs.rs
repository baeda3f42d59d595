//! Attributes of variables that came late: after a later variable was defined, or with another value.
//!
//! A header keeps the attributes of all variables one behind the other, so that one more in the middle moves all that follow.
//! They wait here instead, and are put into their place all at once.
//!
//! Invariants: of a variable that is here, all attributes are here, and those in the header do not count; a table of names
//! belongs to attributes that are here.

use std::collections::BTreeMap;

use fieldstone_format::netcdf::{Attr, Attrs, Vars};

use super::lookup::Lookup;
use super::repeats::FEW;

/// Attributes that wait for their place. See the module's text.
#[derive(Debug, Clone, Default)]
pub(super) struct LateAttrs {
    changed: BTreeMap<u32, Attrs>,
    /// Names of those that are many.
    many: BTreeMap<u32, Lookup>,
}

impl LateAttrs {
    /// All attributes of a variable, where some of them are late.
    pub fn of(&self, var: u32) -> Option<&Attrs> {
        self.changed.get(&var)
    }

    /// Gives a variable of `vars` an attribute; one of that name is replaced.
    pub fn put(&mut self, vars: &Vars, var: u32, attr: &Attr<'_>) {
        let attrs = self.changed.entry(var).or_insert_with(|| vars.attrs_of(var as usize));
        let position = match attrs.len() {
            0..=FEW => attrs.position(attr.name),
            _ => {
                let lookup = self.many.entry(var).or_default();
                lookup.search(&attrs.names, attr.name).map(|position| position as usize)
            }
        };
        match position {
            Some(position) => attrs.replace(position, attr.ty, attr.value),
            None => attrs.push(attr.name, attr.ty, attr.value),
        }
    }

    /// From now on a variable has these attributes.
    pub fn set(&mut self, var: u32, attrs: Attrs) {
        self.many.remove(&var);
        self.changed.insert(var, attrs);
    }

    /// Puts all of them into their place in `vars`.
    pub fn merge_into(&mut self, vars: &mut Vars) {
        if !self.changed.is_empty() {
            vars.replace_attrs(&self.changed);
            self.changed.clear();
            self.many.clear();
        }
    }

    /// Bytes of memory that they hold.
    pub fn memory(&self) -> u64 {
        let attrs = self.changed.values().map(|attrs| attrs.memory()).sum::<u64>();
        attrs + self.many.values().map(Lookup::memory).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_format::netcdf::NcType;

    use super::*;

    #[test]
    fn late_attributes_replace_those_of_the_same_name_few_or_many() {
        let mut vars = Vars::default();
        for name in ["a", "b"] {
            vars.push(name, NcType::Int, &[]);
        }
        let mut late = LateAttrs::default();
        let all = 3 * FEW;
        for value in [b"1", b"2"] {
            for i in 0..all {
                let name = format!("n{i}");
                late.put(&vars, 0, &Attr { name: &name, ty: NcType::Char, value });
            }
        }
        assert!(late.of(0).is_some_and(|attrs| attrs.len() == all) && late.of(1).is_none());
        assert!(late.memory() > 0);
        late.merge_into(&mut vars);
        assert!(late.of(0).is_none() && late.memory() == 0);
        let own = vars.attrs_of(0);
        assert_eq!((own.len(), vars.attrs_of(1).len(), own.get(all - 1).value), (all, 0, &b"2"[..]));
        late.set(1, own.without(0));
        assert_eq!(late.of(1).map(|attrs| attrs.position("n0")), Some(None));
    }
}
