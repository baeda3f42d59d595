//! The contents of a file under its paths, from the writers' path lists: one read for all of them.
//!
//! Invariants: a block is read only if a list is damaged, or if the blocks that may hold a path take fewer bytes than
//! the list; a list is trusted as a whole or not, and never against the index table; memory holds at most
//! [`LISTS_AT_ONCE`] bytes of lists, or the list of one writer.

use std::collections::BTreeMap;
use std::ops::Range;

use fieldstone_core::{Error, Result};
use fieldstone_format::partitioned::{ListedPath, PathList, Table};

use super::reader::Reader;
use crate::container::model::{Counts, Metadata, PathTotals, VarInfo, is_below, total_of};

/// Limit on the bytes of lists read at a time: the lists of some million paths.
const LISTS_AT_ONCE: u64 = 128 << 20;
/// Two lists with at most this many bytes between them are read together.
const GAP: u64 = 1 << 20;

/// Processes an entry of a writer's list.
type ListVisitor<'a> = dyn FnMut(usize, &ListedPath<'_>) -> Result<()> + 'a;

impl Reader {
    /// The blocks that may hold objects of a path: those between the first and the last in each writer's list. Reads
    /// the lists of writers that may have the path.
    pub fn blocks_of(&self, path: &str) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        let writers: Vec<usize> = self.writers_below(path).collect();
        let damaged = self.listed(&writers, &mut |writer, listed| {
            let first = self.table().blocks_of_writer(writer).start;
            if listed.path == path {
                found.extend(first + listed.first_block as usize..=first + listed.last_block as usize);
            }
            Ok(())
        })?;
        let may_hold = |block: &usize| {
            let (least, greatest) = self.table().path_range(*block);
            (least..=greatest).contains(&path)
        };
        found.extend(damaged.into_iter().flat_map(|writer| self.blocks_below(writer, path)).filter(may_hold));
        found.sort_unstable();
        Ok(found)
    }

    /// See [`Metadata::each_path`].
    pub(super) fn totals_below(
        &self,
        top: &str,
        see: &mut dyn FnMut(&str, PathTotals) -> Result<()>,
    ) -> Result<()> {
        let numrecs = self.numrecs()?;
        let writers: Vec<usize> = self.writers_below(top).collect();
        let damaged = self.listed(&writers, &mut |_, listed| match is_below(listed.path, top) {
            true => see(listed.path, totals(listed, numrecs)?),
            false => Ok(()),
        })?;
        for block in damaged.into_iter().flat_map(|writer| self.blocks_below(writer, top)) {
            self.each_of_block(block, &mut |object| {
                let (path, totals) = total_of(&object)?;
                if is_below(path, top) { see(path, totals) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    /// See [`Metadata::below`].
    pub(super) fn counts_below(&self, top: &str) -> Result<BTreeMap<String, Counts>> {
        let mut found: BTreeMap<String, Counts> = BTreeMap::new();
        let mut add = |path: &str, counts: Counts| match found.get_mut(path) {
            _ if !is_below(path, top) => {}
            Some(sum) => sum.add(&counts),
            None => drop(found.insert(path.to_owned(), counts)),
        };
        // The objects of a single path often fill only a block or two.
        let (small, large): (Vec<usize>, Vec<usize>) = self.writers_below(top).partition(|writer| {
            let blocks = self.blocks_below(*writer, top);
            let bytes: u64 = blocks.map(|block| u64::from(self.table().blocks[block].len)).sum();
            !top.is_empty() && bytes < self.table().writers[*writer].list_len
        });
        let damaged = self.listed(&large, &mut |_, listed| {
            add(listed.path, counts(listed));
            Ok(())
        })?;
        for number in small.into_iter().chain(damaged).flat_map(|writer| self.blocks_below(writer, top)) {
            let (block, one) = (self.block(number)?, Counts::default());
            let mut add = |name: Result<(&str, &str)>, one: Counts| -> Result<()> {
                add(name.map_err(|error| self.in_block(number, error))?.0, one);
                Ok(())
            };
            (0..block.dims()).try_for_each(|slot| add(block.dim_name(slot), Counts { dims: 1, ..one }))?;
            (0..block.attrs()).try_for_each(|slot| add(block.attr_name(slot), Counts { attrs: 1, ..one }))?;
            (0..block.vars()).try_for_each(|slot| add(block.var_name(slot), Counts { vars: 1, ..one }))?;
        }
        Ok(found)
    }

    /// See [`Metadata::vars_of`]. Each block records the range of its objects' paths.
    pub(super) fn vars_under(&self, path: &str) -> Result<Vec<VarInfo>> {
        let mut found = Vec::new();
        for number in 0..self.table().blocks.len() {
            let (least, greatest) = self.table().path_range(number);
            if path < least || greatest < path || self.table().blocks[number].vars == 0 {
                continue;
            }
            let (block, first) = (self.block(number)?, self.table().first_of_block(number)[2]);
            for slot in 0..block.vars() {
                let name = block.var_name(slot).map_err(|error| self.in_block(number, error))?;
                if name.0 == path {
                    found.push(self.var(first + slot as u64)?);
                }
            }
        }
        Ok(found)
    }

    /// A writer's blocks that may hold `top` or paths below it.
    fn blocks_below<'a>(&'a self, writer: usize, top: &'a str) -> impl Iterator<Item = usize> + use<'a> {
        // Paths below a path are adjacent in the order of bytes: `0` follows `/`.
        let (from, to) = (format!("{top}/"), format!("{top}0"));
        self.table().blocks_of_writer(writer).filter(move |block| {
            let (least, greatest) = self.table().path_range(*block);
            let itself = least <= top && top <= greatest;
            top.is_empty() || itself || (least < to.as_str() && greatest >= from.as_str())
        })
    }

    fn writers_below<'a>(&'a self, top: &'a str) -> impl Iterator<Item = usize> + use<'a> {
        let writers = 0..self.table().writers.len();
        writers.filter(move |writer| self.blocks_below(*writer, top).next().is_some())
    }

    /// Calls `see` with each entry of these writers' lists; the writers ascend. Returns the writers whose list is
    /// damaged; `see` gets no entry of those.
    fn listed(&self, writers: &[usize], see: &mut ListVisitor<'_>) -> Result<Vec<usize>> {
        let (begin, _) = self.table().lists(self.head());
        let range =
            |writer: usize| self.table().list_of_writer(writer)..self.table().list_of_writer(writer + 1);
        let mut damaged = Vec::new();
        let mut rest = writers;
        while let Some(first) = rest.first() {
            let mut read: Range<u64> = range(*first);
            let mut together = 1;
            while let Some(next) = rest.get(together).map(|writer| range(*writer))
                && next.start - read.end <= GAP
                && next.end - read.start <= LISTS_AT_ONCE
            {
                read.end = next.end;
                together += 1;
            }
            let bytes = self.part(begin + read.start, read.end - read.start)?;
            let (now, later) = rest.split_at(together);
            rest = later;
            for writer in now {
                let list = range(*writer);
                let list = (list.start - read.start) as usize..(list.end - read.start) as usize;
                match bytes.get(list).and_then(|bytes| check_list(bytes, self.table(), *writer).ok()) {
                    Some(list) => list.iter().try_for_each(|listed| see(*writer, listed))?,
                    None => damaged.push(*writer),
                }
            }
        }
        Ok(damaged)
    }
}

/// Checks that a list obeys all rules, and agrees with the table's entries for the writer's blocks.
fn check_list<'a>(bytes: &'a [u8], table: &Table, writer: usize) -> Result<Vec<ListedPath<'a>>> {
    let entry = &table.writers[writer];
    entry.check_list(bytes)?;
    let mut list = PathList::new(bytes, entry.blocks);
    let mut found = Vec::new();
    let mut sums = [0u128; 4];
    while let Some(listed) = list.next_path()? {
        let of_path = [listed.dims, listed.attrs, listed.vars].map(u128::from);
        let data = u128::from(listed.data) + u128::from(listed.record_data);
        sums.iter_mut().zip(of_path.into_iter().chain([data])).for_each(|(sum, value)| *sum += value);
        found.push(listed);
    }
    for block in &table.blocks[table.blocks_of_writer(writer)] {
        let of_block = [block.dims, block.attrs, block.vars].map(u128::from);
        let of_block = of_block.into_iter().chain([u128::from(block.data)]);
        for (sum, value) in sums.iter_mut().zip(of_block) {
            let less = sum.checked_sub(value);
            *sum =
                less.ok_or_else(|| Error::corrupt("the path list has fewer objects than the index table"))?;
        }
    }
    match sums {
        [0, 0, 0, 0] => Ok(found),
        _ => Err(Error::corrupt("the path list has more objects than the index table")),
    }
}

fn counts(listed: &ListedPath<'_>) -> Counts {
    Counts { dims: listed.dims.into(), attrs: listed.attrs.into(), vars: listed.vars.into() }
}

fn totals(listed: &ListedPath<'_>, numrecs: u64) -> Result<PathTotals> {
    let records = listed.record_data.checked_mul(numrecs);
    let bytes = records.and_then(|bytes| bytes.checked_add(listed.data)).ok_or_else(|| {
        let path = listed.path.escape_debug();
        Error::corrupt(format!("path `{path}`: its variables have 2^64 bytes or more"))
    })?;
    Ok(PathTotals { counts: counts(listed), bytes })
}
