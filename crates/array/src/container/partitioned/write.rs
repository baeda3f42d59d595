//! The collective end of define mode for a container with the partitioned header (C-2).
//!
//! The ranks first find the *paths* that several of them share (16 bytes for each path, to the rank that owns its
//! hash). They compare only objects under those paths, as `enddef` of CDF-5 does for all. Then come the offsets: sums
//! over the lower ranks give each rank its numbers and begins, before any block exists; each rank builds its blocks,
//! and a second set of sums gives their positions. The ranks write blocks, name indexes, the path index and path
//! lists in parallel, and build each block again as they write it, so that none is held in memory. All ranks gather
//! the index table, and rank 0 writes it and the head.
//!
//! Invariants: every rank writes only what it owns; the file is marked as unfinished until its first bytes are
//! [`finished`]; begins and numbers are those of a CDF-5 file with the same definitions, except for the begin of the
//! data part.

use std::ops::Range;

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::{Alignment, Layout};
use fieldstone_format::partitioned::pages::{self, NAME_ENTRY, PAGE, PATH_ENTRY};
use fieldstone_format::partitioned::{Head, MAGIC, Table, UNFINISHED, WriterEntry, path_entry};

use super::rank_part::{self, Blocks, ObjectFilter, Paths, Sizes};
use crate::container::words::{Words, words};
use crate::container::write_buffer::{PIECE, WriteBuffer};

/// Pages of an index built at a time.
const TOGETHER: usize = 16;

/// A rank's part of a header, checked and placed, but not yet written.
#[derive(Debug)]
pub(crate) struct PreparedHeader {
    /// The file's head.
    pub head: Head,
    /// The whole index table.
    pub table: Table,
    /// The positions of the file's parts. The header consists of head, blocks, indexes and table.
    pub layout: Layout,
    /// Input for building the blocks again.
    filter: ObjectFilter,
    before: Sizes,
    blocks: Range<u64>,
    names: (u64, Vec<u64>),
    paths: (u64, Vec<[u8; PATH_ENTRY]>),
    list: (u64, Vec<u8>),
}

/// The positions of a rank's objects in the file.
#[derive(Debug)]
pub(crate) struct ObjectNumbers {
    /// Number of each of this rank's dimensions.
    pub dim_ids: Vec<u64>,
    /// Number of each of this rank's variables.
    pub var_ids: Vec<u64>,
    /// Begin of each variable that this rank places; 0 for those that a lower rank places.
    pub begins: Vec<u64>,
}

impl ObjectNumbers {
    /// Bytes of memory held.
    pub fn memory(&self) -> u64 {
        (self.dim_ids.len() + self.var_ids.len() + self.begins.len()) as u64 * 8
    }
}

/// Sizes of one rank's parts of the header, and sums of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeaderParts {
    /// Bytes of metadata blocks.
    blocks: u64,
    /// Pages of name indexes.
    name_pages: u64,
    /// Pages of the path index.
    path_pages: u64,
    /// Paths in the path index.
    paths: u64,
    /// Bytes of path lists.
    lists: u64,
}

words!(HeaderParts { blocks: u64, name_pages: u64, path_pages: u64, paths: u64, lists: u64 });

/// The result of comparing the objects under shared paths.
pub(crate) trait Ownership {
    /// The objects that a lower rank places, by kind.
    fn not_mine(&self) -> [Vec<u32>; 3];
    /// Fills in the numbers of those, which come from the ranks that place them.
    fn resolve_numbers(&self, team: &Team, dims: &mut [u64], vars: &mut [u64]) -> Result<()>;
}

/// The case in which only one rank defines each object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoleOwnership;

impl Ownership for SoleOwnership {
    fn not_mine(&self) -> [Vec<u32>; 3] {
        Default::default()
    }
    fn resolve_numbers(&self, _team: &Team, _dims: &mut [u64], _vars: &mut [u64]) -> Result<()> {
        Ok(())
    }
}

/// Sends this rank's paths to the owners of their hashes; returns which of them other ranks share, and how many
/// hashes this rank compared.
pub(crate) fn shared_paths(team: &Team, paths: &Paths) -> Result<(Vec<bool>, u64)> {
    let ranks = team.size();
    if ranks == 1 {
        return Ok((vec![false; paths.hashes.len()], 0));
    }
    let mut parts = vec![Vec::new(); ranks];
    for hash in &paths.hashes {
        parts[owner(hash, ranks)].extend_from_slice(hash);
    }
    let received = team.alltoallv("paths", Ok(parts))?;
    let mut seen: Vec<([u8; 16], u32, u32)> = Vec::new();
    for (rank, part) in received.iter().enumerate() {
        let hashes = part.as_chunks::<16>().0.iter().zip(0u32..);
        seen.extend(hashes.map(|(hash, i)| (*hash, rank as u32, i)));
    }
    seen.sort_unstable();
    let mut answers: Vec<Vec<u8>> = received.iter().map(|part| vec![0; part.len() / 16]).collect();
    for group in seen.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        group.iter().for_each(|(_, rank, i)| answers[*rank as usize][*i as usize] = 1);
    }
    let compared = seen.len() as u64;
    let answers = team.alltoallv("shared paths", Ok(answers))?;
    let mut answers: Vec<_> = answers.iter().map(|part| part.iter()).collect();
    let shared = paths.hashes.iter().map(|hash| answers[owner(hash, ranks)].next() == Some(&1));
    Ok((shared.collect(), compared))
}

/// The rank, of `ranks`, that owns a hash: ranges of equal size, in order.
fn owner(hash: &[u8; 16], ranks: usize) -> usize {
    let top = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    ((u64::from(top) * ranks as u64) >> 32) as usize
}

/// Checks and places all ranks' definitions; see the module's documentation. `words` is the name index of all of this
/// rank's objects; `ownership` gives the objects that lower ranks place. Collective. Writes nothing.
pub(crate) fn prepare(
    team: &Team,
    header: &Header,
    hashes: [&[u64]; 3],
    paths: &Paths,
    words: Vec<u64>,
    ownership: &dyn Ownership,
    alignment: &Alignment,
) -> Result<(PreparedHeader, ObjectNumbers)> {
    let filter = ObjectFilter { out: ownership.not_mine() };
    // Numbers and begins follow from the sizes of lower ranks, before any block exists.
    let sums = team.sums("sizes", Sizes::of(header, &filter).map(|sizes| sizes.to_words()))?;
    let before = Sizes::from_words(&sums.before)?.in_file()?;
    let total = Sizes::from_words(&sums.total)?.in_file()?;
    let mut dim_ids = numbers(&filter, rank_part::DIM, header.dims.len(), before.dims);
    let mut var_ids = numbers(&filter, rank_part::VAR, header.vars.len(), before.vars);
    ownership.resolve_numbers(team, &mut dim_ids, &mut var_ids)?;
    let names = match filter.out.iter().all(Vec::is_empty) {
        true => words,
        false => rank_part::name_index(&filter, hashes),
    };
    // Build the blocks once, only to find their lengths, table and path list.
    let built = Blocks::build(header, Some(paths), &filter, &dim_ids, &before, &mut |_| Ok(()));
    let entries = path_index(team, &built, paths, &filter)?;
    let mut built = team.agree("blocks", built)?;
    let distinct = entries.chunk_by(|a, b| a[..16] == b[..16]).count() as u64;
    let name_pages = pages::pages_of(names.len() as u64, NAME_ENTRY);
    let path_pages = pages::pages_of(entries.len() as u64, PATH_ENTRY);
    let list_len = built.list.len() as u64;
    let parts = HeaderParts { blocks: built.len, name_pages, path_pages, paths: distinct, lists: list_len };
    // A second sum gives the offsets of the parts in the header.
    let sums = team.sums("header sizes", Ok(parts.to_words()))?;
    let (parts_before, parts) =
        (HeaderParts::from_words(&sums.before)?, HeaderParts::from_words(&sums.total)?);
    let at = PartOffsets::of(&parts_before, &parts);
    complete_table(&mut built, &at, names.len() as u64);
    let tables = team.allgather("index table", Ok(pack_table(header, &dim_ids, &built.table)))?;
    let (table, record_dim) = team.agree("index table received", join(&tables))?;
    let (table_len, table_crc) = table.measure();
    let layout = team.agree("layout", lay_out(at.table + table_len, &total, alignment))?;
    let head = Head {
        numrecs: 0,
        dims: total.dims,
        attrs: total.attrs,
        vars: total.vars,
        paths: parts.paths,
        record_dim,
        record_size: layout.record_size,
        data_begin: layout.data_begin,
        record_begin: layout.record_begin,
        table_offset: at.table,
        table_len,
        table_crc,
        blocks: table.blocks.len() as u32,
        writers: table.writers.len() as u32,
        paths_offset: at.all_paths,
        paths_pages: parts.path_pages,
    };
    let begins = begins(header, &built, &layout);
    let blocks = at.blocks..at.blocks + built.len;
    let (names, paths, list) = ((at.names, names), (at.paths, entries), (at.list, built.list));
    let ready = PreparedHeader { head, table, layout, filter, before, blocks, names, paths, list };
    Ok((ready, ObjectNumbers { dim_ids, var_ids, begins }))
}

/// Offsets of the header's parts in the file.
struct PartOffsets {
    /// This rank's blocks.
    blocks: u64,
    /// This rank's name index.
    names: u64,
    /// The path index of all ranks.
    all_paths: u64,
    /// This rank's part of the path index.
    paths: u64,
    /// This rank's path list.
    list: u64,
    /// The index table.
    table: u64,
}

impl PartOffsets {
    /// The offsets for a rank, from the sizes of the parts of lower ranks and of all.
    fn of(before: &HeaderParts, total: &HeaderParts) -> PartOffsets {
        let first = Head::LEN as u64;
        let all_names = first + total.blocks;
        let all_paths = all_names + total.name_pages * PAGE as u64;
        let all_lists = all_paths + total.path_pages * PAGE as u64;
        PartOffsets {
            blocks: first + before.blocks,
            names: all_names + before.name_pages * PAGE as u64,
            all_paths,
            paths: all_paths + before.path_pages * PAGE as u64,
            list: all_lists + before.lists,
            table: all_lists + total.lists,
        }
    }
}

/// Sets the positions of this rank's blocks in its index table, and adds the entry of the rank, which has `names`
/// names.
fn complete_table(built: &mut Blocks, at: &PartOffsets, names: u64) {
    for block in &mut built.table.blocks {
        block.offset += at.blocks;
    }
    built.table.writers.push(WriterEntry {
        blocks: built.table.blocks.len() as u32,
        names_offset: at.names,
        names,
        list_len: built.list.len() as u64,
        list_crc: fieldstone_format::crc(&built.list),
    });
}

/// A rank's message for the index table: the number and name of its record dimension, and its part of the table.
/// [`join`] parses it.
fn pack_table(header: &Header, dim_ids: &[u64], table: &Table) -> Vec<u8> {
    let record = header.dims.record.map(|id| (dim_ids[id as usize], header.dims.names.get(id as usize)));
    let (id, name) = record.map_or((0, ""), |(id, name)| (id + 1, name));
    let mut packed = id.to_be_bytes().to_vec();
    packed.extend_from_slice(&(name.len() as u64).to_be_bytes());
    packed.extend_from_slice(name.as_bytes());
    packed.extend(table.pack());
    packed
}

impl PreparedHeader {
    /// Writes this rank's part of `header`, whose dimensions have the numbers `dim_ids`; returns the number of bytes.
    /// The file is then marked as unfinished.
    pub fn write(&self, file: &TeamFile, header: &Header, dim_ids: &[u64]) -> Result<u64> {
        let mut out = WriteBuffer::new(file, PIECE);
        if file.team().rank() == 0 {
            let mut first = self.head.encode();
            first[..4].copy_from_slice(&UNFINISHED);
            out.add(&first)?;
            out.seek(self.head.table_offset)?;
            out.add(&self.table.encode())?;
        }
        out.seek(self.blocks.start)?;
        // Build the blocks again, and write each at once instead of keeping it.
        Blocks::build(header, None, &self.filter, dim_ids, &self.before, &mut |block| out.add(block))?;
        if out.here() != self.blocks.end {
            return Err(Error::internal("metadata blocks changed after they were placed"));
        }
        out.seek(self.names.0)?;
        let (mut pages, mut entries) = (Vec::new(), Vec::new());
        for names in self.names.1.chunks(TOGETHER * pages::entries_per_page(NAME_ENTRY)) {
            entries.clear();
            entries.extend(names.iter().map(|word| word.to_be_bytes()));
            pages.clear();
            pages::write::<NAME_ENTRY>(&entries, &mut pages);
            out.add(&pages)?;
        }
        out.seek(self.paths.0)?;
        for paths in self.paths.1.chunks(TOGETHER * pages::entries_per_page(PATH_ENTRY)) {
            pages.clear();
            pages::write(paths, &mut pages);
            out.add(&pages)?;
        }
        out.seek(self.list.0)?;
        out.add(&self.list.1)?;
        out.flush()?;
        Ok(out.written())
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> u64 {
        let indexes = self.names.1.len() * NAME_ENTRY + self.paths.1.len() * PATH_ENTRY;
        self.table.memory() + (indexes + self.list.1.len()) as u64
    }
}

/// The first bytes of a finished file with this number of records. They are written last: first the rest, then the
/// magic (the first four).
pub fn finished(numrecs: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.resize(Head::NUMRECS_AT as usize, 0);
    bytes.extend_from_slice(&Head::numrecs_field(numrecs));
    bytes
}

/// Numbers in the file, from `first` on; the numbers of objects that other ranks place are resolved later.
fn numbers(filter: &ObjectFilter, kind: usize, count: usize, first: u64) -> Vec<u64> {
    let mut numbers = vec![u64::MAX; count];
    for (number, i) in (first..).zip(filter.iter(kind, count)) {
        numbers[i] = number;
    }
    numbers
}

/// This rank's part of the path index: the entries of all ranks whose hashes it owns, sorted.
fn path_index(
    team: &Team,
    built: &Result<Blocks>,
    paths: &Paths,
    filter: &ObjectFilter,
) -> Result<Vec<[u8; PATH_ENTRY]>> {
    let mut parts = vec![Vec::new(); team.size()];
    if built.is_ok() {
        let counts = paths.counts(filter, team.rank() as u32);
        for (hash, counts) in paths.hashes.iter().zip(&counts) {
            if (counts.dims, counts.attrs, counts.vars) != (0, 0, 0) {
                parts[owner(hash, team.size())].extend_from_slice(&path_entry(*hash, counts));
            }
        }
    }
    let parts = team.alltoallv("path index", Ok(parts))?;
    let mut entries = Vec::with_capacity(parts.iter().map(|part| part.len() / PATH_ENTRY).sum());
    parts.iter().for_each(|part| entries.extend_from_slice(part.as_chunks::<PATH_ENTRY>().0));
    entries.sort_unstable();
    Ok(entries)
}

/// Joins all ranks' parts into the whole table; also returns the number of the record dimension.
fn join(parts: &[Vec<u8>]) -> Result<(Table, Option<u64>)> {
    let mut table = Table::default();
    let mut record_dim: Option<(usize, u64, String)> = None;
    for (rank, part) in parts.iter().enumerate() {
        let short = || Error::internal(format!("rank {rank} sent no part of the index table"));
        let (id, part) = part.split_first_chunk::<8>().ok_or_else(short)?;
        let (len, part) = part.split_first_chunk::<8>().ok_or_else(short)?;
        let name = part.split_at_checked(u64::from_be_bytes(*len) as usize);
        let (name, part) = name.ok_or_else(short)?;
        table.unpack(part)?;
        match (u64::from_be_bytes(*id).checked_sub(1), &record_dim) {
            (Some(id), None) => record_dim = Some((rank, id, String::from_utf8_lossy(name).into_owned())),
            (Some(id), Some((other, first, other_name))) if id != *first => {
                let name = String::from_utf8_lossy(name);
                return Err(Code::DefinitionDiffers
                    .error(format!(
                        "a container has at most one record dimension, but rank {other} defines \
                         `{other_name}` and rank {rank} `{name}`"
                    ))
                    .with_hint("give all but one of them a length, or define the same one on all ranks"));
            }
            _ => {}
        }
    }
    table.count();
    Ok((table, record_dim.map(|(_, id, _)| id)))
}

fn lay_out(header_len: u64, total: &Sizes, alignment: &Alignment) -> Result<Layout> {
    let up = |at: u64, free: u64, align: u64| {
        at.checked_add(free)?.checked_next_multiple_of(align.max(4)).filter(|at| *at <= i64::MAX as u64)
    };
    let beyond =
        || Code::ContainerLimit.error("the container would be larger than the largest file (2^63 - 1 bytes)");
    let data_begin = up(header_len, alignment.h_minfree, alignment.v_align).ok_or_else(beyond)?;
    let data_end = data_begin.checked_add(total.fixed).ok_or_else(beyond)?;
    let record_begin = up(data_end, alignment.v_minfree, alignment.r_align).ok_or_else(beyond)?;
    let (record_size, one_record_var) = (total.record_size(), total.record_vars == 1);
    // The first record must fit, as with a classic header.
    record_begin.checked_add(record_size).filter(|end| *end <= i64::MAX as u64).ok_or_else(beyond)?;
    Ok(Layout { header_len, data_begin, data_end, record_begin, record_size, one_record_var })
}

fn begins(header: &Header, built: &Blocks, layout: &Layout) -> Vec<u64> {
    let begins = built.begins.iter().zip(header.vars.iter()).map(|(begin, var)| {
        let base = if header.is_record(var) { layout.record_begin } else { layout.data_begin };
        begin.checked_add(base).unwrap_or(0)
    });
    begins.collect()
}
