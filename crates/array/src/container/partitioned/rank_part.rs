//! The parts that one rank prepares alone: the paths of its objects, its metadata blocks, its name index, its path
//! list.
//!
//! Invariants: blocks have a rank's objects in the order of its definitions; a dimension is in the block of the first
//! variable that needs it, or in an earlier one; only the rank's own definitions determine where blocks are cut.

use std::collections::{HashMap, HashSet};

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::{Header, Names, layout, paths};
use fieldstone_format::partitioned::pages::PathCounts;
use fieldstone_format::partitioned::{
    BLOCK_TARGET, BlockBuilder, BlockEntry, ListedPath, Table, path_hash, path_list,
};

use crate::container::hash_sort::sort_words;
use crate::container::words::words;

/// Dimensions, global attributes, variables: the order of all columns by kind.
pub(super) const DIM: usize = 0;
pub(super) const ATTR: usize = 1;
pub(super) const VAR: usize = 2;

/// Names of a header, by kind.
pub(super) fn names_of(header: &Header) -> [&Names; 3] {
    [&header.dims.names, &header.attrs.names, &header.vars.names]
}

/// The paths of a rank's objects.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Hash of each path, in the order of first use.
    pub hashes: Vec<[u8; 16]>,
    /// By kind, the path of each object.
    pub of: [Vec<u32>; 3],
}

impl Paths {
    /// Finds the paths of all objects.
    pub fn of(header: &Header) -> Paths {
        let mut paths = Paths::default();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for (kind, names) in names_of(header).into_iter().enumerate() {
            let mut last: Option<(&str, u32)> = None;
            paths.of[kind].reserve_exact(names.len());
            for name in names.iter() {
                let path = paths::split(name).0;
                let number = match last {
                    Some((other, number)) if other == path => number,
                    _ => *numbers.entry(path).or_insert_with(|| {
                        paths.hashes.push(path_hash(path));
                        paths.hashes.len() as u32 - 1
                    }),
                };
                last = Some((path, number));
                paths.of[kind].push(number);
            }
        }
        paths
    }

    /// The number of objects that `filter` keeps under each path, for `writer`.
    pub fn counts(&self, filter: &ObjectFilter, writer: u32) -> Vec<PathCounts> {
        let mut counts = vec![PathCounts { writer, ..PathCounts::default() }; self.hashes.len()];
        for (kind, of) in self.of.iter().enumerate() {
            for path in filter.iter(kind, of.len()).map(|i| of[i] as usize) {
                match kind {
                    DIM => counts[path].dims += 1,
                    ATTR => counts[path].attrs += 1,
                    _ => counts[path].vars += 1,
                }
            }
        }
        counts
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> u64 {
        self.hashes.len() as u64 * 16 + self.of.iter().map(|of| of.len() as u64 * 4).sum::<u64>()
    }
}

/// Selects the objects that this rank writes: all except those that a lower rank defines too.
#[derive(Debug, Default)]
pub(crate) struct ObjectFilter {
    /// By kind, numbers of the objects left out, ascending.
    pub out: [Vec<u32>; 3],
}

impl ObjectFilter {
    /// Numbers of the objects of a kind that are kept, of `count`.
    pub fn iter(&self, kind: usize, count: usize) -> impl Iterator<Item = usize> + '_ {
        let mut out = self.out[kind].iter().peekable();
        (0..count).filter(move |i| out.next_if(|next| **next as usize == *i).is_none())
    }
}

/// Sizes that must be known of all ranks before any offset can be computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub dims: u64,
    pub attrs: u64,
    pub vars: u64,
    /// Bytes of fixed variables, each padded.
    pub fixed: u64,
    /// Bytes of a record, variables padded.
    pub record: u64,
    pub record_vars: u64,
    /// Bytes of a record without padding.
    pub plain: u64,
    /// Sums wrap; the sum of the upper halves shows whether data exceed the largest file.
    fixed_upper: u64,
    /// As `fixed_upper`.
    record_upper: u64,
}

words!(Sizes {
    dims: u64,
    attrs: u64,
    vars: u64,
    fixed: u64,
    record: u64,
    record_vars: u64,
    plain: u64,
    fixed_upper: u64,
    record_upper: u64,
});

impl Sizes {
    pub fn of(header: &Header, filter: &ObjectFilter) -> Result<Sizes> {
        let mut sizes = Sizes {
            dims: (header.dims.len() - filter.out[DIM].len()) as u64,
            attrs: (header.attrs.len() - filter.out[ATTR].len()) as u64,
            vars: (header.vars.len() - filter.out[VAR].len()) as u64,
            ..Sizes::default()
        };
        for i in filter.iter(VAR, header.vars.len()) {
            let var = header.vars.get(i);
            let bytes = layout::bytes_of(header, var)?;
            let padded = bytes.next_multiple_of(4);
            let sum = if header.is_record(var) {
                sizes.record_vars += 1;
                sizes.plain += bytes;
                &mut sizes.record
            } else {
                &mut sizes.fixed
            };
            *sum = sum.checked_add(padded).filter(|sum| *sum <= i64::MAX as u64).ok_or_else(|| {
                Code::ContainerLimit.error(format!("variable `{}` ends beyond the largest file", var.name()))
            })?;
        }
        (sizes.fixed_upper, sizes.record_upper) = (sizes.fixed >> 32, sizes.record >> 32);
        Ok(sizes)
    }

    /// Checks that the data of a sum of sizes fit in a file.
    pub fn in_file(self) -> Result<Sizes> {
        if self.fixed_upper >= 1 << 31 || self.record_upper >= 1 << 31 {
            let message = "the variables of all ranks together end beyond the largest file (2^63 - 1 bytes)";
            return Err(Error::invalid(message));
        }
        Ok(self)
    }

    /// Bytes from one record to the next: the only record variable of a file is not padded.
    pub fn record_size(&self) -> u64 {
        if self.record_vars == 1 { self.plain } else { self.record }
    }
}

/// The contents of a rank's blocks under each of its paths, by the paths' numbers.
struct PathListBuilder<'a> {
    paths: Option<&'a Paths>,
    list: Vec<Option<ListedPath<'a>>>,
}

impl<'a> PathListBuilder<'a> {
    /// Counts an object put into a block; returns its path's entry.
    fn add(
        &mut self,
        header: &'a Header,
        kind: usize,
        i: usize,
        block: usize,
    ) -> Option<&mut ListedPath<'a>> {
        let path = *self.paths?.of[kind].get(i)? as usize;
        let block = block as u32;
        let listed = self.list.get_mut(path)?.get_or_insert_with(|| ListedPath {
            path: paths::split(names_of(header)[kind].get(i)).0,
            first_block: block,
            ..ListedPath::default()
        });
        listed.last_block = block;
        *[&mut listed.dims, &mut listed.attrs, &mut listed.vars][kind] += 1;
        Some(listed)
    }

    fn encode(self) -> Result<Vec<u8>> {
        let mut list: Vec<ListedPath<'_>> = self.list.into_iter().flatten().collect();
        list.sort_unstable_by_key(|listed| listed.path);
        path_list(&list)
    }
}

/// Facts about a rank's metadata blocks, which are consecutive.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Bytes of all of them.
    pub len: u64,
    /// Their entries; offsets count from the first.
    pub table: Table,
    /// Begin of each placed variable, relative to its part; `u64::MAX` for others.
    pub begins: Vec<u64>,
    /// Its path list.
    pub list: Vec<u8>,
}

impl Blocks {
    /// Makes the blocks, passes the bytes of each to `out`, and keeps none of them; so the blocks are made twice,
    /// once to find their lengths and once to write them. `dim_ids` has the numbers in the file of this rank's
    /// dimensions, `before` the sizes of the lower ranks. Without `paths` there is no path list.
    pub fn build<'a>(
        header: &'a Header,
        paths: Option<&'a Paths>,
        filter: &ObjectFilter,
        dim_ids: &[u64],
        before: &Sizes,
        out: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Blocks> {
        let mut listed =
            PathListBuilder { paths, list: vec![None; paths.map_or(0, |paths| paths.hashes.len())] };
        let mut blocks = Blocks { begins: vec![u64::MAX; header.vars.len()], ..Blocks::default() };
        let mut builder = BlockBuilder::default();
        let (mut fixed, mut record) = (before.fixed, before.record);
        let mut data = 0u64;
        for i in filter.iter(ATTR, header.attrs.len()) {
            builder.attr(header.attrs.get(i))?;
            listed.add(header, ATTR, i, blocks.table.blocks.len());
            blocks.close(&mut builder, &mut data, BLOCK_TARGET, out)?;
        }
        let mut dims = filter.iter(DIM, header.dims.len()).peekable();
        let put_dim =
            |builder: &mut BlockBuilder, listed: &mut PathListBuilder<'a>, i: usize, block: usize| {
                let dim = header.dims.get(i);
                listed.add(header, DIM, i, block);
                builder.dim(dim.name, dim.len, dim.is_record)
            };
        let mut ids = Vec::new();
        for i in filter.iter(VAR, header.vars.len()) {
            let var = header.vars.get(i);
            let needs = var.dims().iter().max().map_or(0, |id| *id as usize + 1);
            while let Some(dim) = dims.next_if(|dim| *dim < needs) {
                put_dim(&mut builder, &mut listed, dim, blocks.table.blocks.len())?;
                blocks.close(&mut builder, &mut data, BLOCK_TARGET, out)?;
            }
            let bytes = layout::bytes_of(header, var)?;
            let is_record = header.is_record(var);
            let next = if is_record { &mut record } else { &mut fixed };
            let begin = *next;
            *next += bytes.next_multiple_of(4);
            data = data.saturating_add(bytes);
            if let Some(listed) = listed.add(header, VAR, i, blocks.table.blocks.len()) {
                let sum = if is_record { &mut listed.record_data } else { &mut listed.data };
                *sum = sum.saturating_add(bytes);
            }
            ids.clear();
            ids.extend(var.dims().iter().map(|id| dim_ids[*id as usize]));
            builder.var(var.name(), var.ty(), is_record, &ids, var.attrs(), begin)?;
            blocks.begins[i] = begin;
            blocks.close(&mut builder, &mut data, BLOCK_TARGET, out)?;
        }
        for dim in dims {
            put_dim(&mut builder, &mut listed, dim, blocks.table.blocks.len())?;
            blocks.close(&mut builder, &mut data, BLOCK_TARGET, out)?;
        }
        blocks.close(&mut builder, &mut data, 0, out)?;
        blocks.list = listed.encode()?;
        Ok(blocks)
    }

    /// Ends the block if it has reached `target` bytes.
    fn close(
        &mut self,
        builder: &mut BlockBuilder,
        data: &mut u64,
        target: usize,
        out: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if builder.is_empty() || builder.len() < target {
            return Ok(());
        }
        let bytes = builder.finish();
        let entry = BlockEntry {
            offset: self.len,
            len: bytes.len() as u32,
            crc: fieldstone_format::crc(&bytes),
            dims: builder.dims() as u32,
            attrs: builder.attrs() as u32,
            vars: builder.vars() as u32,
            paths: builder.paths() as u32,
            data: std::mem::take(data),
        };
        let (least, greatest) = builder.path_range();
        self.table.push(entry, least, greatest);
        self.len += bytes.len() as u64;
        builder.clear();
        out(&bytes)
    }
}

/// A rank's name index, sorted: its entries as numbers.
pub(crate) fn name_index(filter: &ObjectFilter, hashes: [&[u64]; 3]) -> Vec<u64> {
    let mut words = Vec::with_capacity(hashes[DIM].len() + hashes[VAR].len());
    for kind in [DIM, VAR] {
        for (number, i) in filter.iter(kind, hashes[kind].len()).enumerate() {
            words.push(hashes[kind][i] >> 32 << 32 | u64::from(kind == VAR) << 31 | number as u64);
        }
    }
    sort_words(words)
}

/// By kind, local numbers of the objects to compare with those of other ranks: those under shared paths, and those
/// whose hash this rank has twice. `words` is the name index of all its objects.
pub(crate) fn to_compare(
    paths: &Paths,
    shared: &[bool],
    hashes: [&[u64]; 3],
    words: &[u64],
) -> [Vec<u32>; 3] {
    let twice = twice(hashes, words);
    let is_any_shared = shared.contains(&true);
    [DIM, ATTR, VAR].map(|kind| {
        let twice = &twice[kind];
        if !is_any_shared && twice.is_empty() {
            return Vec::new();
        }
        let compared = paths.of[kind].iter().zip(hashes[kind]).zip(0u32..).filter(|((path, hash), _)| {
            shared[**path as usize] || (!twice.is_empty() && twice.contains(hash))
        });
        compared.map(|(_, i)| i).collect()
    })
}

/// By kind, the hashes that a rank has more than once, which are adjacent in its name index.
fn twice(hashes: [&[u64]; 3], words: &[u64]) -> [HashSet<u64>; 3] {
    let mut found = [DIM, ATTR, VAR].map(|_| HashSet::new());
    for group in words.chunk_by(|a, b| a >> 31 == b >> 31).filter(|group| group.len() > 1) {
        let kind = if group[0] >> 31 & 1 == 0 { DIM } else { VAR };
        let whole = group.iter().map(|word| hashes[kind][(word & 0x7fff_ffff) as usize]);
        found[kind].extend(repeated(whole.collect()));
    }
    found[ATTR].extend(repeated(hashes[ATTR].to_vec()));
    found
}

fn repeated(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::words::round_trip;

    #[test]
    fn sizes_go_in_nine_words() {
        let sizes = Sizes {
            dims: 1,
            attrs: 2,
            vars: 3,
            fixed: 4,
            record: 5,
            record_vars: 6,
            plain: 7,
            fixed_upper: 8,
            record_upper: 9,
        };
        assert_eq!(round_trip(&sizes), (1..=9).collect::<Vec<_>>());
    }

    #[test]
    fn hashes_that_come_twice_are_found_and_no_others() {
        let found = |hashes: [&[u64]; 3]| twice(hashes, &name_index(&ObjectFilter::default(), hashes));
        let none = [DIM, ATTR, VAR].map(|_| HashSet::new());
        assert_eq!(found([&[], &[], &[]]), none);
        // Equal upper halves do not make equal hashes, and a dimension may have the name of a variable.
        assert_eq!(found([&[7, 8, 9], &[7], &[7, 1 << 40 | 7]]), none);
        let sets = [HashSet::from([7]), HashSet::from([3]), HashSet::from([1 << 40])];
        assert_eq!(found([&[7, 8, 7, 7], &[3, 4, 3], &[5, 1 << 40, 6, 1 << 40]]), sets);
        let mut random = fieldstone_testkit::seeded(1);
        let mut hashes: Vec<u64> = (0..100_000).map(|_| random.next_u64()).collect();
        assert!(found([&hashes, &[], &hashes]).iter().all(HashSet::is_empty));
        let again: Vec<u64> = hashes.iter().copied().step_by(1000).collect();
        hashes.extend(&again);
        assert_eq!(found([&[], &[], &hashes])[VAR], again.into_iter().collect());
    }
}
