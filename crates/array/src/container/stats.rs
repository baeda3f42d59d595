//! Counts a container's objects and bytes, in total and below each path.
//!
//! Invariants: counts and bytes by path come from the header's own totals; types and attributes of variables come
//! from one pass over all objects, which reads each part of the header once; memory grows with the number of distinct
//! paths, not with the objects below them.

use std::collections::BTreeMap;

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::NcType;

pub use super::model::bytes;
use super::model::total_of;
use super::{Counts, Metadata, Object, PathTotals};

/// The objects below one path. The text is empty for objects outside every path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathStats {
    /// The path, cut to the requested depth.
    pub path: String,
    /// The numbers of its objects, without attributes of variables.
    pub counts: Counts,
    /// Bytes of its variables' elements, all records included.
    pub bytes: u64,
}

/// The totals of a container, for all objects and by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// The numbers of all objects, without attributes of variables.
    pub counts: Counts,
    /// Records.
    pub numrecs: u64,
    /// Bytes of all elements.
    pub bytes: u64,
    /// By path, in their order.
    pub paths: Vec<PathStats>,
}

/// The totals of a container, and counts that need its variables one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// The totals, overall and by path.
    pub totals: Totals,
    /// Attributes of all variables.
    pub var_attrs: u64,
    /// For each type in use, the number of variables and their bytes.
    pub types: Vec<(NcType, u64, u64)>,
}

/// Counts by paths of up to `depth` parts. Reads no metadata block of a partitioned header.
///
/// Errors: those of [`Metadata`]; Corrupt if there are 2^64 bytes or more.
pub fn totals(metadata: &dyn Metadata, depth: usize) -> Result<Totals> {
    let mut sums = Sums::new(depth);
    metadata.each_path("", &mut |path, totals| sums.add(path, &totals))?;
    sums.finish(metadata)
}

/// As [`totals`], with the counts that need the variables themselves.
pub fn stats(metadata: &dyn Metadata, depth: usize) -> Result<Stats> {
    let mut sums = Sums::new(depth);
    let mut var_attrs = 0;
    let mut types: BTreeMap<NcType, (u64, u64)> = BTreeMap::new();
    metadata.each(&mut |object| {
        let (path, totals) = total_of(&object)?;
        // `totals` has checked that all bytes are fewer than 2^64, so those of each type are, too.
        sums.add(path, &totals)?;
        if let Object::Var(var) = object {
            let of_type = types.entry(var.ty).or_default();
            of_type.0 += 1;
            of_type.1 += totals.bytes;
            var_attrs += var.attrs.len() as u64;
        }
        Ok(())
    })?;
    let types = types.into_iter().map(|(ty, (vars, bytes))| (ty, vars, bytes)).collect();
    Ok(Stats { totals: sums.finish(metadata)?, var_attrs, types })
}

/// Running totals.
#[derive(Debug, Default)]
struct Sums {
    depth: usize,
    bytes: u64,
    paths: BTreeMap<String, PathTotals>,
}

impl Sums {
    fn new(depth: usize) -> Sums {
        Sums { depth, ..Sums::default() }
    }

    /// Adds the objects directly under a path to the entry of that path, cut to `depth` parts.
    fn add(&mut self, path: &str, totals: &PathTotals) -> Result<()> {
        self.bytes = self.bytes.checked_add(totals.bytes).ok_or_else(|| {
            Error::corrupt(format!(
                "path `{}`: up to this path there are 2^64 bytes or more",
                path.escape_debug()
            ))
        })?;
        let end = match self.depth {
            0 => 0,
            _ => path.match_indices('/').nth(self.depth - 1).map_or(path.len(), |(at, _)| at),
        };
        match self.paths.get_mut(&path[..end]) {
            Some(sum) => {
                sum.counts.add(&totals.counts);
                sum.bytes += totals.bytes; // At most the sum of all.
            }
            None => drop(self.paths.insert(path[..end].to_owned(), *totals)),
        }
        Ok(())
    }

    fn finish(self, metadata: &dyn Metadata) -> Result<Totals> {
        let one = |(path, PathTotals { counts, bytes })| PathStats { path, counts, bytes };
        Ok(Totals {
            counts: metadata.counts()?,
            numrecs: metadata.numrecs()?,
            bytes: self.bytes,
            paths: self.paths.into_iter().map(one).collect(),
        })
    }
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
        let Stats { totals: all, var_attrs, types } = stats(&events(), 1).unwrap();
        assert_eq!(all, totals(&events(), 1).unwrap());
        assert_eq!(all.counts, Counts { dims: 3, attrs: 2, vars: 3 });
        assert_eq!((all.numrecs, var_attrs, all.bytes), (4, 1, 40 + 24 + 8));
        let of = |path: &str, dims, attrs, vars, bytes| PathStats {
            path: path.into(),
            counts: Counts { dims, attrs, vars },
            bytes,
        };
        let paths = [of("", 1, 1, 1, 8), of("event_1", 1, 1, 1, 40), of("event_2", 1, 0, 1, 24)];
        assert_eq!(all.paths, paths);
        let wanted = [(NcType::Short, 1, 24), (NcType::Float, 1, 40), (NcType::Int64, 1, 8)];
        assert_eq!(types, wanted);
    }

    #[test]
    fn paths_are_distinguished_down_to_the_depth() {
        let paths = |depth| {
            let totals = totals(&events(), depth).unwrap();
            totals.paths.into_iter().map(|place| place.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(0), [""]);
        assert_eq!(paths(2), ["", "event_1", "event_2/plane_u"]);
        assert_eq!(paths(9), paths(2));
    }
}
