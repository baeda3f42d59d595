//! Appending columns to columns, and changes in their middle.
//!
//! Appending costs one copy for each column, however many objects there are. A change in the middle rebuilds
//! the affected columns, so callers should make many changes in one call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Attrs, Dims, Names, Vars, range};
use crate::netcdf::NcType;

/// Appends the ends of a list whose elements come after `shift` others.
fn append_ends(ends: &mut Vec<u64>, other: &[u64], shift: u64) {
    ends.extend(other.iter().map(|end| end + shift));
}

impl<'a> From<&'a Names> for Cow<'a, Names> {
    fn from(names: &'a Names) -> Cow<'a, Names> {
        Cow::Borrowed(names)
    }
}

impl From<Names> for Cow<'_, Names> {
    fn from(names: Names) -> Self {
        Cow::Owned(names)
    }
}

impl Names {
    /// Reserves room for `names` more names that take `bytes` together.
    pub fn reserve(&mut self, names: usize, bytes: usize) {
        self.ends.reserve(names);
        self.text.reserve(bytes);
    }
    /// Appends all of `other`.
    pub fn append(&mut self, other: &Names) {
        let shift = self.text.len() as u64;
        self.text.push_str(&other.text);
        append_ends(&mut self.ends, &other.ends, shift);
    }
    /// Removes all names, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
    /// Replaces name number `i`. The cost grows with all later names.
    pub fn replace(&mut self, i: usize, name: &str) {
        let span = range(&self.ends, i);
        let (old, new) = (span.len() as u64, name.len() as u64);
        self.text.replace_range(span, name);
        self.ends[i..].iter_mut().for_each(|end| *end = *end - old + new);
    }
}

impl Dims {
    /// Appends dimensions of fixed length, one for each name. Both lists have equal lengths. Owned lists are
    /// not copied if `self` is empty.
    pub fn append(&mut self, names: Cow<'_, Names>, lens: Cow<'_, [u64]>) {
        match names {
            Cow::Owned(names) if self.names.is_empty() => self.names = names,
            names => self.names.append(&names),
        }
        match lens {
            Cow::Owned(lens) if self.lens.is_empty() => self.lens = lens,
            lens => self.lens.extend_from_slice(&lens),
        }
    }
}

impl Attrs {
    /// Number of the first attribute with that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }
    /// Replaces type and value of attribute number `i`.
    pub fn replace(&mut self, i: usize, ty: NcType, value: &[u8]) {
        let span = range(&self.ends, i);
        let (old, new) = (span.len() as u64, value.len() as u64);
        self.types[i] = ty;
        self.values.splice(span, value.iter().copied());
        self.ends[i..].iter_mut().for_each(|end| *end = *end - old + new);
    }
    /// These attributes without number `i`.
    pub fn without(&self, i: usize) -> Attrs {
        let mut kept = Attrs::default();
        for (_, attr) in self.iter().enumerate().filter(|(at, _)| *at != i) {
            kept.push(attr.name, attr.ty, attr.value);
        }
        kept
    }
    /// Appends all of `other`.
    pub fn append(&mut self, other: &Attrs) {
        self.names.append(&other.names);
        self.types.extend_from_slice(&other.types);
        let shift = self.values.len() as u64;
        self.values.extend_from_slice(&other.values);
        append_ends(&mut self.ends, &other.ends, shift);
    }
}

impl Vars {
    /// Dimension numbers of all variables, concatenated.
    pub fn dim_ids(&self) -> &[u32] {
        &self.dim_ids
    }
    /// The end of each variable's dimension numbers in [`dim_ids`](Vars::dim_ids).
    pub fn dim_ends(&self) -> &[u64] {
        &self.dim_ends
    }
    /// The end of each variable's attributes in [`attrs`](Vars::attrs).
    pub fn attr_ends(&self) -> &[u64] {
        &self.attr_ends
    }
    /// Appends variables: names and types, dimension numbers, concatenated and with the end of each
    /// variable's, and attributes likewise (none without `attrs`). The lists have equal lengths.
    pub fn append(
        &mut self,
        names: &Names,
        types: impl Iterator<Item = NcType>,
        (dim_ids, dim_ends): (&[u32], &[u64]),
        attrs: Option<(&Attrs, &[u64])>,
    ) {
        self.names.append(names);
        self.types.extend(types);
        let shift = self.dim_ids.len() as u64;
        self.dim_ids.extend_from_slice(dim_ids);
        append_ends(&mut self.dim_ends, dim_ends, shift);
        let shift = self.attrs.len() as u64;
        match attrs {
            Some((attrs, ends)) => {
                self.attrs.append(attrs);
                append_ends(&mut self.attr_ends, ends, shift);
            }
            None => self.attr_ends.resize(self.names.len(), shift),
        }
    }
    /// Replaces the attributes of variables, by number, all at once.
    pub fn replace_attrs(&mut self, changed: &BTreeMap<u32, Attrs>) {
        let (mut attrs, mut ends) = (Attrs::default(), Vec::with_capacity(self.attr_ends.len()));
        for i in 0..self.len() {
            match changed.get(&(i as u32)) {
                Some(changed) => attrs.append(changed),
                None => self.get(i).attrs().for_each(|attr| attrs.push(attr.name, attr.ty, attr.value)),
            }
            ends.push(attrs.len() as u64);
        }
        self.attrs = attrs;
        self.attr_ends = ends;
    }
    /// The attributes of variable number `i`, as a separate list.
    pub fn attrs_of(&self, i: usize) -> Attrs {
        let mut own = Attrs::default();
        self.get(i).attrs().for_each(|attr| own.push(attr.name, attr.ty, attr.value));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netcdf::Header;
    use crate::netcdf::Version;

    #[test]
    fn appended_columns_are_the_pushed_ones() {
        let mut pushed = Header::new(Version::Cdf5);
        let mut one = Header::new(Version::Cdf5);
        for i in 0..7u64 {
            pushed.dims.push(&format!("d{i}"), i + 1);
            one.dims.push(&format!("d{i}"), i + 1);
        }
        for i in 0..9u32 {
            for header in [&mut pushed, &mut one] {
                header.vars.push(&format!("v{i}"), NcType::Int, &[i % 7, 0][..(i % 3) as usize]);
                (0..i % 4).for_each(|k| header.vars.attrs_of_last(&format!("a{k}"), NcType::Char, b"x"));
            }
        }
        let mut twice = one.clone();
        twice.dims.append(Cow::Borrowed(&one.dims.names), Cow::Borrowed(&one.dims.lens));
        let mut moved = Header::new(Version::Cdf5).dims;
        moved.append(Cow::Owned(one.dims.names.clone()), Cow::Owned(one.dims.lens.clone()));
        assert_eq!(moved, one.dims);
        moved.append(Cow::Owned(one.dims.names.clone()), Cow::Owned(one.dims.lens.clone()));
        assert_eq!(moved, twice.dims);
        let dims = (one.vars.dim_ids(), one.vars.dim_ends());
        let attrs = Some((one.vars.attrs(), one.vars.attr_ends()));
        twice.vars.append(&one.vars.names, one.vars.types.iter().copied(), dims, attrs);
        for i in 0..7u64 {
            pushed.dims.push(&format!("d{i}"), i + 1);
        }
        for i in 0..9u32 {
            pushed.vars.push(&format!("v{i}"), NcType::Int, &[i % 7, 0][..(i % 3) as usize]);
            (0..i % 4).for_each(|k| pushed.vars.attrs_of_last(&format!("a{k}"), NcType::Char, b"x"));
        }
        assert_eq!(twice, pushed);
    }

    #[test]
    fn changes_in_the_middle_leave_the_rest() {
        let mut vars = Vars::default();
        for i in 0..3 {
            vars.push(&format!("v{i}"), NcType::Int, &[]);
            vars.attrs_of_last("units", NcType::Char, b"K");
        }
        let mut changed = vars.attrs_of(1);
        changed.push("long_name", NcType::Char, b"temperature");
        changed.replace(0, NcType::Char, b"celsius");
        vars.replace_attrs(&BTreeMap::from([(1, changed)]));
        let values: Vec<Vec<&[u8]>> = vars.iter().map(|v| v.attrs().map(|a| a.value).collect()).collect();
        assert_eq!(values, [vec![&b"K"[..]], vec![b"celsius", b"temperature"], vec![b"K"]]);
        vars.names.replace(0, "a longer name");
        assert_eq!(vars.names.iter().collect::<Vec<_>>(), ["a longer name", "v1", "v2"]);
        assert_eq!(vars.attrs_of(1).without(0).names.iter().collect::<Vec<_>>(), ["long_name"]);
    }
}
