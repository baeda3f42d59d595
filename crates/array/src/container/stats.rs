//! How many objects a container has, in all and below each path, and how many bytes they are.
//!
//! Invariants: one pass over all objects, in which each part of the header is read once; memory grows with the number
//! of paths that are told apart, not with the objects below them.

use std::collections::BTreeMap;

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::NcType;

use super::{Counts, Metadata, Object, VarInfo};

/// Objects below one path. Its own text is empty for those that stand in none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathStats {
    /// The path, cut to the depth that was asked for.
    pub path: String,
    /// Its objects. Attributes of variables are not among them.
    pub counts: Counts,
    /// Bytes of its variables' elements, all records included.
    pub bytes: u64,
}

/// What a container holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// All objects. Attributes of variables are not among them.
    pub counts: Counts,
    /// Attributes of all variables.
    pub var_attrs: u64,
    /// Records.
    pub numrecs: u64,
    /// Bytes of all elements.
    pub bytes: u64,
    /// Variables of each type that there is, and their bytes.
    pub types: Vec<(NcType, u64, u64)>,
    /// By path, in their order.
    pub paths: Vec<PathStats>,
}

/// Counts, with paths told apart down to `depth` parts.
///
/// Errors: those of [`Metadata`]; Corrupt where a variable has 2^64 bytes or more.
pub fn stats(metadata: &dyn Metadata, depth: usize) -> Result<Stats> {
    let mut stats = Stats { counts: metadata.counts()?, numrecs: metadata.numrecs()?, ..Stats::default() };
    let mut paths: BTreeMap<String, (Counts, u64)> = BTreeMap::new();
    let mut types: BTreeMap<NcType, (u64, u64)> = BTreeMap::new();
    metadata.each(&mut |object| {
        let var = match object {
            Object::Dim(name) => {
                at(&mut paths, name, depth).0.dims += 1;
                return Ok(());
            }
            Object::Attr(name) => {
                at(&mut paths, name, depth).0.attrs += 1;
                return Ok(());
            }
            Object::Var(var) => var,
        };
        let bytes = bytes(var)?;
        let place = at(&mut paths, &var.name, depth);
        place.0.vars += 1;
        place.1 = add(var, place.1, bytes)?;
        let of_type = types.entry(var.ty).or_default();
        of_type.0 += 1;
        of_type.1 = add(var, of_type.1, bytes)?;
        stats.bytes = add(var, stats.bytes, bytes)?;
        stats.var_attrs += var.attrs.len() as u64;
        Ok(())
    })?;
    stats.types = types.into_iter().map(|(ty, (vars, bytes))| (ty, vars, bytes)).collect();
    stats.paths =
        paths.into_iter().map(|(path, (counts, bytes))| PathStats { path, counts, bytes }).collect();
    Ok(stats)
}

/// Bytes of a variable's elements; Corrupt where they are more than a number of 64 bits tells.
pub fn bytes(var: &VarInfo) -> Result<u64> {
    let size = var.ty.size() as u64;
    let shape = var.dims.iter().map(|dim| dim.len);
    if shape.clone().any(|len| len == 0) {
        return Ok(0);
    }
    let bytes = shape.into_iter().try_fold(size, u64::checked_mul);
    bytes.ok_or_else(|| too_large(var))
}

fn add(var: &VarInfo, sum: u64, bytes: u64) -> Result<u64> {
    sum.checked_add(bytes).ok_or_else(|| too_large(var))
}

fn too_large(var: &VarInfo) -> Error {
    Error::corrupt(format!("variable `{}`: with it there are 2^64 bytes or more", var.name))
}

/// Where an object counts: its enclosing path, cut to `depth` parts.
fn at<'a>(paths: &'a mut BTreeMap<String, (Counts, u64)>, name: &str, depth: usize) -> &'a mut (Counts, u64) {
    let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
    let end = match depth {
        0 => 0,
        _ => parent.match_indices('/').nth(depth - 1).map_or(parent.len(), |(at, _)| at),
    };
    paths.entry(parent[..end].to_owned()).or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::container::cdl::Verbatim;
    use fieldstone_format::netcdf::{Header, Version};

    fn events() -> Verbatim {
        let mut header = Header::new(Version::Cdf5);
        header.numrecs = Some(4);
        let t = header.dims.push_record("t");
        let x = header.dims.push("event_1/x", 10);
        let y = header.dims.push("event_2/plane_u/y", 3);
        header.attrs.push("title", NcType::Char, b"events");
        header.attrs.push("event_1/weight", NcType::Double, &[0; 8]);
        header.vars.push("event_1/hits", NcType::Float, &[x]);
        header.vars.attrs_of_last("units", NcType::Char, b"1");
        header.vars.push("event_2/plane_u/hits", NcType::Short, &[t, y]);
        header.vars.push("count", NcType::Int64, &[]);
        header.vars.begins = vec![0; 3];
        Verbatim::new(header, 0).unwrap()
    }

    #[test]
    fn objects_are_counted_in_all_and_below_each_path() {
        let stats = stats(&events(), 1).unwrap();
        assert_eq!(stats.counts, Counts { dims: 3, attrs: 2, vars: 3 });
        assert_eq!((stats.numrecs, stats.var_attrs, stats.bytes), (4, 1, 40 + 24 + 8));
        let of = |path: &str, dims, attrs, vars, bytes| PathStats {
            path: path.into(),
            counts: Counts { dims, attrs, vars },
            bytes,
        };
        let paths = [of("", 1, 1, 1, 8), of("event_1", 1, 1, 1, 40), of("event_2", 1, 0, 1, 24)];
        assert_eq!(stats.paths, paths);
        let types = [(NcType::Short, 1, 24), (NcType::Float, 1, 40), (NcType::Int64, 1, 8)];
        assert_eq!(stats.types, types);
    }

    #[test]
    fn paths_are_told_apart_down_to_the_depth() {
        let paths = |depth| {
            let stats = stats(&events(), depth).unwrap();
            stats.paths.into_iter().map(|place| place.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(0), [""]);
        assert_eq!(paths(2), ["", "event_1", "event_2/plane_u"]);
        assert_eq!(paths(9), paths(2));
    }
}
