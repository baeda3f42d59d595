//! Checks metadata blocks and their objects against the index table, the head and each other.
//!
//! Blocks are read twice: for their names and dimensions, then for their variables, whose dimensions may be in any
//! block. Blocks with apparently duplicate names are read a third time. After each writer's blocks, the first pass
//! checks the writer's name index, and the second its path list; after all blocks, the first pass checks the path
//! index.
//!
//! Invariants: memory holds at most two blocks, 16 bytes for each object, 8 more for each dimension, 32 more for each
//! object with a duplicate name, and the paths of one writer.

use std::collections::{HashMap, HashSet};

use fieldstone_core::Result;
use fieldstone_format::netcdf::parse::{Finding, Findings, Source, shown};
use fieldstone_format::netcdf::{Attrs, names, paths};
use fieldstone_format::partitioned::pages::{PATH_ENTRY, PathCounts};
use fieldstone_format::partitioned::{Block, BlockVar, name_entry, name_key, path_entry, path_hash};

use super::ends::Ends;
use super::parts::File;
use super::{indexes, lists};

/// Dimensions, global attributes, variables.
const KINDS: [&str; 3] = ["dimension", "attribute", "variable"];

/// Limit on a variable's dimensions that a message shows.
const SHOWN_DIMS: usize = 20;

/// The sizes of the data part, computed from the variables.
#[derive(Debug, Default)]
pub(super) struct DataSums {
    /// Bytes of all fixed variables, each padded.
    pub fixed: u64,
    /// Bytes of a record: with padded variables, and without padding.
    record: u64,
    plain: u64,
    pub record_vars: u64,
    /// Variables of the last record compared with the end of the file; meaningful if that record is in the file.
    pub last_record: Ends,
}

impl DataSums {
    pub fn record_size(&self) -> u64 {
        if self.record_vars == 1 { self.plain } else { self.record }
    }
}

/// The pass over the blocks.
pub(super) struct Blocks<'f, S: ?Sized> {
    file: &'f File<'f, S>,
    findings: &'f mut Findings,
    /// For each valid block, the lengths of its dimensions.
    lens: Vec<Option<Vec<u64>>>,
    /// By kind, hash and number of each object.
    hashes: [Vec<(u64, u64)>; 3],
    /// The sums over the variables; `None` if not all of them could be read.
    pub data: Option<DataSums>,
}

impl<'f, S: Source + ?Sized> Blocks<'f, S> {
    pub fn new(file: &'f File<'f, S>, findings: &'f mut Findings) -> Blocks<'f, S> {
        Blocks { file, findings, lens: Vec::new(), hashes: Default::default(), data: None }
    }

    /// A block that matches its checksum and the table's counts.
    fn block(&mut self, number: usize) -> Result<Option<Block>> {
        let Some(entry) = self.file.table.blocks.get(number) else { return Ok(None) };
        let what = named(self.file, number);
        let bytes = self.file.part(entry.offset, u64::from(entry.len), &what, self.findings)?;
        let Some(bytes) = bytes else { return Ok(None) };
        match entry.check(bytes) {
            Ok(block) => Ok(Some(block)),
            Err(error) => {
                let rule = "a block matches its CRC and counts in the table";
                let finding = Finding::error(entry.offset, what, rule, error.message());
                self.findings
                    .push(finding.with_hint("other blocks stay readable; restore the file from a copy"));
                Ok(None)
            }
        }
    }

    /// The first pass: names, dimensions and global attributes; then the indexes.
    pub fn names(&mut self) -> Result<()> {
        let mut all_paths: Vec<[u8; PATH_ENTRY]> = Vec::new();
        let mut all_sound = true;
        for writer in 0..self.file.table.writers.len() {
            let (mut entries, mut under) = (Vec::new(), HashMap::new());
            let mut numbers = [0u32; 3];
            let mut sound = true;
            for number in self.file.table.blocks_of_writer(writer) {
                let block = self.block(number)?;
                let lens = block
                    .as_ref()
                    .and_then(|block| self.names_of(number, block, &mut numbers, &mut entries, &mut under));
                sound &= lens.is_some();
                self.lens.push(lens);
            }
            if sound {
                entries.sort_unstable();
                self.count_of_names(writer, entries.len() as u64);
            }
            indexes::names(self.file, writer, sound.then_some(&entries[..]), self.findings)?;
            let counts = under.into_iter().map(|(hash, counts): (_, PathCounts)| {
                path_entry(hash, &PathCounts { writer: writer as u32, ..counts })
            });
            all_paths.extend(counts);
            all_sound &= sound;
        }
        all_paths.sort_unstable();
        indexes::paths(self.file, all_sound.then_some(&all_paths[..]), self.findings)?;
        let distinct = all_paths.chunk_by(|a, b| a[..16] == b[..16]).count() as u64;
        if all_sound && distinct != self.file.head.paths {
            let message = format!("{}, but objects are under {distinct}", self.file.head.paths);
            let rule = "the head has the number of different paths";
            self.findings.push(Finding::error(48, "head", rule, message));
        }
        self.record_dimension();
        self.doubles()
    }

    fn count_of_names(&mut self, writer: usize, found: u64) {
        let stated = self.file.table.writers[writer].names;
        if stated != found {
            let rule = "a name index has an entry for each dimension and variable of its writer";
            let message = format!("{stated} entries for {found} objects");
            let what = format!("index table, writer {writer}");
            self.findings.push(Finding::error(self.file.head.table_offset, what, rule, message));
        }
    }

    /// Checks the names in a block. Returns the lengths of its dimensions if all could be read.
    fn names_of(
        &mut self,
        number: usize,
        block: &Block,
        numbers: &mut [u32; 3],
        entries: &mut Vec<[u8; 8]>,
        under: &mut HashMap<[u8; 16], PathCounts>,
    ) -> Option<Vec<u64>> {
        let (table, head) = (self.file.table, self.file.head);
        let (at, first) = (table.blocks.get(number)?.offset, table.first_of_block(number));
        let mut used: HashSet<&str> = HashSet::new();
        let mut lens = Vec::with_capacity(block.dims());
        let mut sound = true;
        for kind in 0..3 {
            let (count, place): (usize, &dyn Fn(usize) -> usize) = match kind {
                0 => (block.dims(), &|slot| block.dim_at(slot)),
                1 => (block.attrs(), &|slot| block.attr_at(slot)),
                _ => (block.vars(), &|slot| block.var_at(slot)),
            };
            for slot in 0..count {
                let at = at + place(slot) as u64;
                let read = match kind {
                    0 => block.dim(slot).and_then(|dim| {
                        lens.push(dim.len);
                        let id = first[0] + slot as u64;
                        if dim.is_record != (head.record_dim == Some(id)) || (dim.is_record && dim.len > 0) {
                            let object = || format!("dimension `{}`", shown(&dim.name));
                            let rule = "one dimension is the record dimension: the one in the head, of \
                                        length 0";
                            let message =
                                || format!("length {}, record dimension: {}", dim.len, dim.is_record);
                            self.findings.error(at, rule, || (object(), message()));
                        }
                        block.dim_name(slot)
                    }),
                    1 => block
                        .attr_name(slot)
                        .and_then(|name| block.attr(slot, &mut Attrs::default()).map(|()| name)),
                    _ => block.var_name(slot),
                };
                match read {
                    Ok((path, last)) => {
                        used.insert(path);
                        let name = joined(path, last);
                        self.name(kind, (path, last), &name, at);
                        let hash = path_hash(&name);
                        let (hash, _) = hash.split_first_chunk::<8>()?;
                        self.hashes[kind].push((u64::from_be_bytes(*hash), first[kind] + slot as u64));
                        let counts = under.entry(path_hash(path)).or_default();
                        *[&mut counts.dims, &mut counts.attrs, &mut counts.vars][kind] += 1;
                        if kind != 1 {
                            entries.push(name_entry(name_key(&name), kind == 2, numbers[kind]));
                        }
                    }
                    Err(error) => {
                        self.unreadable(number, KINDS[kind], slot, at, error.message());
                        sound = false;
                    }
                }
                numbers[kind] = numbers[kind].wrapping_add(1);
            }
        }
        sound &= self.paths_of(number, block, &used);
        sound.then_some(lens)
    }

    fn unreadable(&mut self, number: usize, kind: &str, slot: usize, at: u64, message: &str) {
        let object = || format!("{}, {kind} in slot {slot}", named(self.file, number));
        let rule = "an entry of a block agrees with the table of entries";
        self.findings.error(at, rule, || (object(), message));
    }

    /// Checks the paths that a block lists against those of its objects and those in the table.
    fn paths_of(&mut self, number: usize, block: &Block, used: &HashSet<&str>) -> bool {
        let at = self.file.table.blocks[number].offset;
        let mut listed = HashSet::new();
        for i in 0..block.paths() {
            let place = at + block.path_at(i) as u64;
            match block.path(i) {
                Ok(path) if used.contains(path) && listed.insert(path) => {}
                Ok(path) => {
                    let rule = "a block lists each path of its objects once";
                    let message = || format!("`{}` is listed twice, or without an object", shown(path));
                    self.findings.error(place, rule, || (named(self.file, number), message()));
                }
                Err(error) => {
                    self.unreadable(number, "path", i, place, error.message());
                    return false;
                }
            }
        }
        let range = (used.iter().min().copied(), used.iter().max().copied());
        let range = (range.0.unwrap_or(""), range.1.unwrap_or(""));
        if range != self.file.table.path_range(number) {
            let rule = "the table has the least and the greatest path of a block";
            let message = || format!("`{}` to `{}`", shown(range.0), shown(range.1));
            self.findings.error(at, rule, || (named(self.file, number), message()));
        }
        true
    }

    fn name(&mut self, kind: usize, (path, last): (&str, &str), name: &str, at: u64) {
        let problem = match paths::check_path(name) {
            Ok(()) if last.contains('/') => {
                format!("`{}` was given as the last part of a path (`{}`)", shown(last), shown(path))
            }
            Ok(()) => return,
            Err(error) => error.message().to_owned(),
        };
        let object = || format!("{} `{}`", KINDS[kind], shown(name));
        self.findings.error(at, "a name is a path of valid names", || (object(), problem));
    }

    fn record_dimension(&mut self) {
        let Some(number) = self.file.head.record_dim else { return };
        // If the block could be read, its names were checked there.
        if self.file.table.block_of_dim(number).is_none() {
            let rule = "the record dimension is one of the dimensions";
            let message = format!("number {number}, but there are {}", self.file.head.dims);
            self.findings.push(Finding::error(56, "head", rule, message));
        }
    }

    /// Checks that objects of one kind have different names.
    fn doubles(&mut self) -> Result<()> {
        for kind in 0..KINDS.len() {
            let mut hashes = std::mem::take(&mut self.hashes[kind]);
            hashes.sort_unstable();
            let same = hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1);
            let mut numbers: Vec<u64> = same.flatten().map(|(_, number)| *number).collect();
            drop(hashes);
            numbers.sort_unstable();
            self.doubles_among(kind, &numbers)?;
        }
        Ok(())
    }

    /// Compares the names of the objects with these numbers, which ascend, so that each block is read once.
    fn doubles_among(&mut self, kind: usize, numbers: &[u64]) -> Result<()> {
        // Half of a hash does not distinguish two names; the whole hash does.
        let mut seen: HashMap<[u8; 16], u64> = HashMap::new();
        let mut held: Option<(usize, Option<Block>)> = None;
        for number in numbers {
            let Some((place, slot)) = self.place(kind, *number) else { continue };
            if held.as_ref().is_none_or(|(held, _)| *held != place) {
                drop(held.take()); // Before the next block is read.
                held = Some((place, self.block(place)?));
            }
            let Some((_, Some(block))) = &held else { continue };
            let (at, name) = match kind {
                0 => (block.dim_at(slot), block.dim_name(slot)),
                1 => (block.attr_at(slot), block.attr_name(slot)),
                _ => (block.var_at(slot), block.var_name(slot)),
            };
            let Ok((path, last)) = name else { continue };
            let name = joined(path, last);
            let first = *seen.entry(path_hash(&name)).or_insert(*number);
            if first != *number {
                let message = || {
                    let object = format!("{} `{}`", KINDS[kind], shown(&name));
                    (object, format!("number {number} has the name of number {first}"))
                };
                let at = self.file.table.blocks[place].offset + at as u64;
                self.findings.error(at, "objects of a kind have different names", message);
            }
        }
        Ok(())
    }

    /// Block and slot of an object.
    fn place(&self, kind: usize, number: u64) -> Option<(usize, usize)> {
        let table = self.file.table;
        // The last block that does not begin after it: earlier blocks may have no object of the kind.
        let (mut low, mut high) = (0, table.blocks.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match table.first_of_block(middle)[kind] <= number {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let block = low.checked_sub(1)?;
        Some((block, usize::try_from(number.checked_sub(table.first_of_block(block)[kind])?).ok()?))
    }

    /// The second pass: variables, their attributes, and the positions of their data.
    pub fn variables(&mut self) -> Result<()> {
        let (head, len) = (self.file.head, self.file.len);
        let before_last = head.numrecs.saturating_sub(1).saturating_mul(head.record_size);
        let last_record = Ends::new(len, head.record_begin.saturating_add(before_last));
        let mut data = Some(DataSums { last_record, ..DataSums::default() });
        let mut ends = Ends::new(len, head.data_begin);
        for writer in 0..self.file.table.writers.len() {
            let mut held = Some(lists::ExpectedPaths::default());
            for (number, of_writer) in self.file.table.blocks_of_writer(writer).zip(0..) {
                let known = self.lens.get(number).is_some_and(Option::is_some);
                let block = if known { self.block(number)? } else { None };
                let Some(block) = block else {
                    (data, held) = (None, None);
                    continue;
                };
                if let Some(held) = &mut held {
                    let dims = (0..block.dims()).map(|slot| (0, block.dim_name(slot)));
                    let attrs = (0..block.attrs()).map(|slot| (1, block.attr_name(slot)));
                    for (kind, name) in dims.chain(attrs) {
                        // The first pass checked that names are readable.
                        let Ok((path, _)) = name else { continue };
                        held.add(path, kind, of_writer, 0, 0);
                    }
                }
                self.variables_of(number, &block, of_writer, &mut data, &mut held, &mut ends);
            }
            lists::check(self.file, writer, held.as_ref(), self.findings)?;
        }
        ends.finish(None, self.findings);
        self.data = data;
        Ok(())
    }

    /// Checks the variables of one block; `of_writer` is its index among the blocks of its writer.
    fn variables_of(
        &mut self,
        number: usize,
        block: &Block,
        of_writer: u32,
        data: &mut Option<DataSums>,
        held: &mut Option<lists::ExpectedPaths>,
        ends: &mut Ends,
    ) {
        let entry = self.file.table.blocks[number];
        let mut bytes_of_block = Some(0u64);
        for slot in 0..block.vars() {
            let at = entry.offset + block.var_at(slot) as u64;
            let var = match block.var(slot) {
                Ok(var) => var,
                Err(error) => {
                    self.unreadable(number, KINDS[2], slot, at, error.message());
                    (*data, *held, bytes_of_block) = (None, None, None);
                    continue;
                }
            };
            self.attributes(&var, at);
            let bytes = self.bytes_of(&var, at);
            bytes_of_block = bytes_of_block.zip(bytes).and_then(|(sum, bytes)| sum.checked_add(bytes));
            *data = data.take().zip(bytes).and_then(|(data, bytes)| self.placed(data, &var, bytes, at, ends));
            match (held.as_mut(), bytes) {
                (Some(held), Some(bytes)) => {
                    let (fixed, record) = if var.is_record { (0, bytes) } else { (bytes, 0) };
                    held.add(paths::split(&var.name).0, 2, of_writer, fixed, record);
                }
                _ => *held = None,
            }
        }
        if bytes_of_block.is_some_and(|bytes| bytes != entry.data) {
            let rule = "the table has the bytes of data of a block's variables";
            let message = format!("{}, but its variables have {}", entry.data, bytes_of_block.unwrap_or(0));
            self.findings.push(Finding::error(entry.offset, named(self.file, number), rule, message));
        }
    }

    /// Checks the attributes of a variable: valid and different names.
    fn attributes(&mut self, var: &BlockVar, at: u64) {
        let mut seen = HashSet::new();
        for attr in var.attrs.iter() {
            let object = || format!("variable `{}`, attribute `{}`", shown(&var.name), shown(attr.name));
            if let Err(error) = names::check_name(attr.name) {
                self.findings.error(at, "a name is valid in netCDF", || (object(), error.message()));
            }
            if !seen.insert(attr.name) {
                let rule = "attributes of a variable have different names";
                self.findings.error(at, rule, || (object(), "it occurs twice"));
            }
        }
    }

    /// Size of a fixed variable, or of one record, in bytes; `None` if its dimensions are not known.
    fn bytes_of(&mut self, var: &BlockVar, at: u64) -> Option<u64> {
        let head = self.file.head;
        let object = || format!("variable `{}`", shown(&var.name));
        if let Some(id) = var.dims.iter().find(|id| **id >= head.dims) {
            let message = || format!("dimension {id}, but there are {}", head.dims);
            self.findings.error(at, "a variable has dimensions of the file", || (object(), message()));
            return None;
        }
        let record = |id: &u64| head.record_dim == Some(*id);
        if var.is_record != var.dims.first().is_some_and(record) || var.dims.iter().skip(1).any(record) {
            let rule = "a record variable has the record dimension first, others do not have it";
            let message = || {
                let some = &var.dims[..var.dims.len().min(SHOWN_DIMS)];
                let more = if var.dims.len() > some.len() { " and more" } else { "" };
                format!("record variable: {}, dimensions: {some:?}{more}", var.is_record)
            };
            self.findings.error(at, rule, || (object(), message()));
            return None;
        }
        let mut bytes = Some(var.ty.size() as u64);
        for id in var.dims.iter().skip(usize::from(var.is_record)) {
            let (block, slot) = self.file.table.block_of_dim(*id)?;
            let len = self.lens.get(block)?.as_ref()?.get(slot)?;
            bytes = bytes.and_then(|bytes| bytes.checked_mul(*len));
        }
        let bytes = bytes.filter(|bytes| *bytes <= i64::MAX as u64 - 3);
        if bytes.is_none() {
            let rule = "a variable ends inside the largest file";
            self.findings.error(at, rule, || (object(), "it has 2^63 bytes or more"));
        }
        bytes
    }

    /// Checks the position of a variable's data against the end of those before it.
    fn placed(
        &mut self,
        mut data: DataSums,
        var: &BlockVar,
        bytes: u64,
        at: u64,
        ends: &mut Ends,
    ) -> Option<DataSums> {
        let head = self.file.head;
        let (place, base) = match var.is_record {
            true => (&mut data.record, head.record_begin),
            false => (&mut data.fixed, head.data_begin),
        };
        let object = || format!("variable `{}`", shown(&var.name));
        if var.begin != *place {
            let rule = "data are in the order of the variables, each padded to a multiple of 4";
            let message =
                || format!("begins at {} of its part, but those before it end at {place}", var.begin);
            self.findings.error(at, rule, || (object(), message()));
            return None;
        }
        let begin = base.checked_add(*place);
        *place = place.checked_add(bytes.next_multiple_of(4)).filter(|end| *end <= i64::MAX as u64)?;
        if begin.is_none_or(|begin| begin > i64::MAX as u64) {
            let rule = "a variable ends inside the largest file";
            self.findings.error(at, rule, || (object(), "it begins beyond 2^63 - 1"));
            return None;
        }
        if var.is_record {
            data.record_vars += 1;
            data.plain = data.plain.saturating_add(bytes);
            data.last_record.var(&var.name, var.begin, bytes);
        } else {
            ends.var(&var.name, var.begin, bytes);
        }
        Some(data)
    }
}

fn joined(path: &str, last: &str) -> String {
    if path.is_empty() { last.to_owned() } else { format!("{path}/{last}") }
}

/// Describes a block.
pub(super) fn named<S: ?Sized>(file: &File<'_, S>, number: usize) -> String {
    match file.table.path_range(number) {
        ("", "") => format!("metadata block {number} (objects outside any path)"),
        (least, greatest) if least == greatest => {
            format!("metadata block {number} (path `{}`)", shown(least))
        }
        (least, greatest) => {
            format!("metadata block {number} (paths from `{}` to `{}`)", shown(least), shown(greatest))
        }
    }
}
