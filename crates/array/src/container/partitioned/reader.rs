//! Reads a partitioned header on demand.
//!
//! Opening reads the head and the index table. Finding a name reads one or two pages of an index and one block;
//! listing objects reads each block once, in order; only counts by path read the path lists. A few decoded blocks and
//! pages are cached.
//!
//! Invariants: nothing is trusted before its checksum matched; a hash leads to a slot, and the name in the slot
//! decides; a damaged name index or path list only slows answers down, because the blocks of its writer are searched
//! instead; the answer "there is none" comes only after everything that could hold the object was read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::netcdf::{Attrs, Version, names, paths};
use fieldstone_format::partitioned::pages::{self, NAME_ENTRY, PAGE, PATH_ENTRY, PathCounts};
use fieldstone_format::partitioned::{Block, Head, Page, Table, name_key, path_hash};

use super::lru_cache::LruCache;
use crate::container::access::Records;
use crate::container::model::{Counts, DimInfo, Format, Metadata, Object, PathTotals, VarInfo};

/// Limit on cached blocks, in bytes.
const BLOCKS_KEPT: usize = 4 << 20;
/// Index pages read at a time, and number of such runs in the cache.
const PAGES_AT_ONCE: u64 = 4;
const RUNS_KEPT: usize = 16;

/// Recently read blocks and pages; of the pages, the latest comes first.
#[derive(Debug)]
struct ReadCache {
    blocks: LruCache<usize, Arc<Block>>,
    runs: VecDeque<(u64, Arc<Vec<u8>>)>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Reader {
    file: TeamFile,
    head: Head,
    table: Table,
    records: Arc<Records>,
    cache: Mutex<ReadCache>,
    reads: AtomicU64,
}

/// An index of sorted pages in the file.
#[derive(Debug, Clone, Copy)]
struct Index {
    offset: u64,
    pages: u64,
    entry: usize,
    what: &'static str,
}

impl Reader {
    /// Reads head and index table of a finished file.
    ///
    /// Errors: `Corrupt` for a file of another kind, one that was never finished, or damage.
    pub fn open(file: TeamFile) -> Result<Reader> {
        let mut bytes = vec![0; Head::LEN];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        let head = Head::decode(&bytes)?;
        let len = file.len()?;
        if head.table_offset.saturating_add(head.table_len) > len {
            return Err(Code::Truncated.error(format!(
                "the file ends at {len}, but its index table at {}",
                head.table_offset.saturating_add(head.table_len)
            )));
        }
        let bytes = exactly(&file, head.table_offset, head.table_len)?;
        let table = Table::decode(&bytes, &head)?;
        let reader = Reader::of(file, head, table);
        reader.reads.store(2, Ordering::Relaxed);
        Ok(reader)
    }

    /// Makes a reader from a known head and table; the file may be unfinished.
    pub fn of(file: TeamFile, head: Head, table: Table) -> Reader {
        let records = Arc::new(Records::new(head.numrecs, Version::Cdf5));
        let cache = Mutex::new(ReadCache { blocks: LruCache::new(BLOCKS_KEPT), runs: VecDeque::new() });
        Reader { file, head, table, records, cache, reads: AtomicU64::new(0) }
    }

    /// The head; its number of records is that at the time of opening.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The index table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Number of reads of the file so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The number of records, shared with writers that add some.
    pub fn records(&self) -> Arc<Records> {
        self.records.clone()
    }

    /// The numbers of objects directly under `path`, from one read of the path index.
    pub fn totals(&self, path: &str) -> Result<Counts> {
        let mut totals = Counts::default();
        for entry in self.writers_of(path)? {
            totals.dims += u64::from(entry.dims);
            totals.attrs += u64::from(entry.attrs);
            totals.vars += u64::from(entry.vars);
        }
        Ok(totals)
    }

    /// A decoded block, from the cache, or read and checked.
    ///
    /// Errors: `Corrupt`, with the number and paths of the block, if its checksum does not match.
    pub fn block(&self, number: usize) -> Result<Arc<Block>> {
        if let Some(block) = self.cache().blocks.get(number) {
            return Ok(block);
        }
        let Some(entry) = self.table.blocks.get(number) else {
            return Err(Error::internal(format!("block {number} of {}", self.table.blocks.len())));
        };
        self.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = exactly(&self.file, entry.offset, u64::from(entry.len));
        let block =
            bytes.and_then(|bytes| entry.check(bytes)).map_err(|error| self.in_block(number, error))?;
        let block = Arc::new(block);
        self.cache().blocks.add(number, block.clone(), block.len());
        Ok(block)
    }

    fn cache(&self) -> fieldstone_core::sync::MutexGuard<'_, ReadCache> {
        self.cache.lock()
    }

    /// Adds the facts about a block that a user needs to an error in it.
    pub(super) fn in_block(&self, number: usize, error: Error) -> Error {
        let (least, greatest) = self.table.path_range(number);
        let offset = self.table.blocks.get(number).map_or(0, |block| block.offset);
        let paths = match (least, greatest) {
            ("", "") => "objects outside any path".to_owned(),
            _ if least == greatest => format!("path `{least}`"),
            _ => format!("paths from `{least}` to `{greatest}`"),
        };
        let error = error.context(format!("metadata block {number} at offset {offset} ({paths})"));
        match error.hint() {
            Some(_) => error,
            None => error.with_hint("other blocks stay readable; restore the file, or write it again"),
        }
    }

    /// A page of an index, in the run of pages read with it.
    fn run(&self, index: &Index, page: u64) -> Result<(Arc<Vec<u8>>, usize)> {
        let first = page - page % PAGES_AT_ONCE;
        let count = PAGES_AT_ONCE.min(index.pages - first);
        let at = index.offset + first * PAGE as u64;
        let start = (page - first) as usize * PAGE;
        let known = self.cache().runs.iter().find(|(other, _)| *other == at).map(|(_, run)| run.clone());
        if let Some(run) = known {
            return Ok((run, start));
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        let run = Arc::new(exactly(&self.file, at, count * PAGE as u64)?);
        let mut cache = self.cache();
        cache.runs.push_front((at, run.clone()));
        cache.runs.truncate(RUNS_KEPT);
        Ok((run, start))
    }

    /// Calls `found` with every entry of an index that begins with `key`, until it returns true.
    fn search(&self, index: &Index, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<()> {
        if index.pages == 0 {
            return Ok(());
        }
        let with = |page: u64, ask: &mut dyn FnMut(Page<'_>) -> Result<bool>| -> Result<bool> {
            let (run, start) = self.run(index, page)?;
            let of_page = |error: Error| {
                let at = index.offset + page * PAGE as u64;
                error.context(format!("{} at offset {at}", index.what))
            };
            ask(Page::decode(&run[start..], index.entry).map_err(of_page)?)
        };
        // The first page whose last entry is not below the key. Hashes are evenly distributed, so the first guess is
        // near; from there, doubling steps find the page in any case.
        let below = |page: u64| with(page, &mut |page| Ok(&page.last()[..key.len()] < key));
        let mut top = [0; 4];
        top.copy_from_slice(&key[..4]);
        let guess = (u64::from(u32::from_be_bytes(top)) * index.pages) >> 32;
        let (mut low, mut high) = (0, index.pages);
        let mut step = 1;
        if below(guess)? {
            low = guess + 1;
            while low < high {
                let probe = (low + step - 1).min(high - 1);
                if below(probe)? {
                    low = probe + 1;
                    step *= 2;
                } else {
                    high = probe;
                    break;
                }
            }
        } else {
            high = guess;
            while low < high {
                let probe = high.saturating_sub(step).max(low);
                if below(probe)? {
                    low = probe + 1;
                    break;
                }
                high = probe;
                step *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if below(middle)? { low = middle + 1 } else { high = middle }
        }
        for page in low..index.pages {
            let done = with(page, &mut |page| {
                for entry in page.starting_with(key) {
                    if found(entry)? {
                        return Ok(true);
                    }
                }
                Ok(&page.last()[..key.len()] != key)
            })?;
            if done {
                break;
            }
        }
        Ok(())
    }

    /// The entries of a path in the path index: one for each writer that defined an object under it.
    fn writers_of(&self, path: &str) -> Result<Vec<PathCounts>> {
        let (offset, pages) = (self.head.paths_offset, self.head.paths_pages);
        let index = Index { offset, pages, entry: PATH_ENTRY, what: "path index" };
        let mut writers = Vec::new();
        self.search(&index, &path_hash(path), &mut |entry| {
            writers.push(pages::read_path_entry(entry)?);
            Ok(false)
        })?;
        Ok(writers)
    }

    /// Number in the file of the object with this path.
    fn find(&self, path: &str, is_var: bool) -> Result<Option<u64>> {
        let defined = |counts: &PathCounts| if is_var { counts.vars > 0 } else { counts.dims > 0 };
        let all = || (0..self.table.writers.len()).collect::<Vec<_>>();
        let writers = match self.table.writers.len() {
            0 | 1 => all(),
            _ => match self.writers_of(paths::split(path).0) {
                Ok(entries) => entries.iter().filter(|e| defined(e)).map(|e| e.writer as usize).collect(),
                Err(error) if error.kind() == ErrorKind::Corrupt => all(),
                Err(error) => return Err(error),
            },
        };
        for writer in writers {
            let found = match self.find_in_index(writer, path, is_var) {
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    self.find_in_blocks(writer, path, is_var)?
                }
                found => found?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn find_in_index(&self, writer: usize, path: &str, is_var: bool) -> Result<Option<u64>> {
        let Some(entry) = self.table.writers.get(writer) else {
            return Err(Error::corrupt(format!(
                "the path index names writer {writer}, which does not exist"
            )));
        };
        let pages = pages::pages_of(entry.names, NAME_ENTRY);
        let index = Index { offset: entry.names_offset, pages, entry: NAME_ENTRY, what: "name index" };
        let first = self.table.first_of_block(self.table.blocks_of_writer(writer).start);
        let mut found = None;
        self.search(&index, &name_key(path), &mut |entry| {
            let (is_var_entry, number) = pages::read_name_entry(entry)?;
            if is_var_entry != is_var {
                return Ok(false);
            }
            let number = first[if is_var { 2 } else { 0 }] + u64::from(number);
            if self.is_called(number, is_var, path)? {
                found = Some(number);
            }
            Ok(found.is_some())
        })?;
        Ok(found)
    }

    /// Searches all of a writer's blocks, without its name index.
    fn find_in_blocks(&self, writer: usize, path: &str, is_var: bool) -> Result<Option<u64>> {
        for number in self.table.blocks_of_writer(writer) {
            let block = self.block(number)?;
            let slots = if is_var { block.vars() } else { block.dims() };
            for slot in 0..slots {
                if is_path(name_of(&block, is_var, slot).map_err(|e| self.in_block(number, e))?, path) {
                    let first = self.table.first_of_block(number)[if is_var { 2 } else { 0 }];
                    return Ok(Some(first + slot as u64));
                }
            }
        }
        Ok(None)
    }

    fn is_called(&self, number: u64, is_var: bool, path: &str) -> Result<bool> {
        let (block, slot) = self.locate(number, is_var)?;
        let name = self.block(block)?;
        let name = name_of(&name, is_var, slot).map_err(|error| self.in_block(block, error))?;
        Ok(is_path(name, path))
    }

    /// The block of an object, and its slot there.
    fn locate(&self, number: u64, is_var: bool) -> Result<(usize, usize)> {
        let (kind, located) = match is_var {
            true => ("variable", self.table.block_of_var(number)),
            false => ("dimension", self.table.block_of_dim(number)),
        };
        located.ok_or_else(|| Error::corrupt(format!("an index names {kind} {number}, but there are fewer")))
    }

    /// Calls `see` with every object of a block.
    pub(super) fn each_of_block(
        &self,
        number: usize,
        see: &mut dyn FnMut(Object<'_>) -> Result<()>,
    ) -> Result<()> {
        let (block, first) = (self.block(number)?, self.table.first_of_block(number)[2]);
        let named = |(above, last): (&str, &str)| match above {
            "" => last.to_owned(),
            _ => format!("{above}/{last}"),
        };
        for slot in 0..block.dims() {
            let name = block.dim_name(slot).map_err(|error| self.in_block(number, error))?;
            see(Object::Dim(&named(name)))?;
        }
        for slot in 0..block.attrs() {
            let name = block.attr_name(slot).map_err(|error| self.in_block(number, error))?;
            see(Object::Attr(&named(name)))?;
        }
        for slot in 0..block.vars() {
            see(Object::Var(&self.var(first + slot as u64)?))?;
        }
        Ok(())
    }

    /// `len` bytes from `offset` on, in one read.
    pub(super) fn part(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        exactly(&self.file, offset, len)
    }

    fn dim(&self, number: u64) -> Result<DimInfo> {
        let (block, slot) = self.locate(number, false)?;
        let dim = self.block(block)?.dim(slot).map_err(|error| self.in_block(block, error))?;
        if dim.is_record != (self.head.record_dim == Some(number)) {
            let error = Error::corrupt(format!("dimension `{}`: head and block differ on records", dim.name));
            return Err(self.in_block(block, error));
        }
        let len = if dim.is_record { self.records.get() } else { dim.len };
        Ok(DimInfo { id: number, name: dim.name, len, is_record: dim.is_record })
    }

    pub(super) fn var(&self, number: u64) -> Result<VarInfo> {
        let (block_number, slot) = self.locate(number, true)?;
        let block = self.block(block_number)?;
        let var = block.var(slot).map_err(|error| self.in_block(block_number, error))?;
        let dims = var.dims.iter().map(|dim| self.dim(*dim)).collect::<Result<Vec<_>>>();
        let dims = dims.map_err(|error| error.context(format!("variable `{}`", var.name)))?;
        let is_record = dims.first().is_some_and(|dim| dim.is_record);
        let base = if is_record { self.head.record_begin } else { self.head.data_begin };
        match base.checked_add(var.begin).filter(|_| is_record == var.is_record) {
            Some(begin) => Ok(VarInfo {
                id: number,
                name: var.name,
                ty: var.ty,
                dims,
                attrs: var.attrs,
                begin,
                record_stride: if is_record { self.head.record_size } else { 0 },
            }),
            None => {
                let error =
                    Error::corrupt(format!("variable `{}`: its data cannot be at this position", var.name));
                Err(self.in_block(block_number, error))
            }
        }
    }
}

fn name_of(block: &Block, is_var: bool, slot: usize) -> Result<(&str, &str)> {
    if is_var { block.var_name(slot) } else { block.dim_name(slot) }
}

fn is_path((above, last): (&str, &str), path: &str) -> bool {
    paths::split(path) == (above, last)
}

/// `len` bytes from `offset` on. The caller has checked the length against the file or the table.
fn exactly(file: &TeamFile, offset: u64, len: u64) -> Result<Vec<u8>> {
    let end = offset.checked_add(len);
    if end.is_none_or(|end| end > i64::MAX as u64) || (len > 1 << 20 && end > Some(file.len()?)) {
        return Err(
            Code::Truncated.error(format!("{len} bytes at offset {offset} are beyond the end of the file"))
        );
    }
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, offset)?;
    if read < bytes.len() {
        return Err(
            Code::Truncated.error(format!("{len} bytes at offset {offset}: the file ends after {read}"))
        );
    }
    Ok(bytes)
}

impl Metadata for Reader {
    fn format(&self) -> Format {
        Format::Partitioned
    }
    fn counts(&self) -> Result<Counts> {
        Ok(Counts { dims: self.head.dims, attrs: self.head.attrs, vars: self.head.vars })
    }
    fn numrecs(&self) -> Result<u64> {
        Ok(self.records.get())
    }
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>> {
        self.find(&names::nfc(path), true)?.map(|number| self.var(number)).transpose()
    }
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>> {
        self.find(&names::nfc(path), false)?.map(|number| self.dim(number)).transpose()
    }
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>> {
        let end = from.saturating_add(limit as u64).min(self.head.vars);
        (from..end).map(|number| self.var(number)).collect()
    }
    fn vars_of(&self, path: &str) -> Result<Vec<VarInfo>> {
        self.vars_under(&names::nfc(path))
    }
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>> {
        let end = from.saturating_add(limit as u64).min(self.head.dims);
        (from..end).map(|number| self.dim(number)).collect()
    }
    fn attrs(&self) -> Result<Attrs> {
        let mut attrs = Attrs::default();
        for (number, entry) in self.table.blocks.iter().enumerate().filter(|(_, entry)| entry.attrs > 0) {
            let block = self.block(number)?;
            for slot in 0..entry.attrs as usize {
                block.attr(slot, &mut attrs).map_err(|error| self.in_block(number, error))?;
            }
        }
        Ok(attrs)
    }
    fn each(&self, see: &mut dyn FnMut(Object<'_>) -> Result<()>) -> Result<()> {
        (0..self.table.blocks.len()).try_for_each(|number| self.each_of_block(number, see))
    }
    fn each_path(&self, path: &str, see: &mut dyn FnMut(&str, PathTotals) -> Result<()>) -> Result<()> {
        self.totals_below(&names::nfc(path), see)
    }
    fn below(&self, path: &str) -> Result<BTreeMap<String, Counts>> {
        self.counts_below(&names::nfc(path))
    }
    fn memory(&self) -> u64 {
        let cache = self.cache();
        let runs: usize = cache.runs.iter().map(|(_, run)| run.len()).sum();
        self.table.memory() + (cache.blocks.bytes() + runs) as u64
    }
}
