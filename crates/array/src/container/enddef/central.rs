//! The strategies of the paper's baselines: they gather everything on all ranks (`app`) or on rank 0 (`library-hash`,
//! `library-sort`) and check it there; rank 0 writes.
//!
//! `app` does what an application does with a library that wants every definition on every rank: gather, then define
//! everything everywhere, and look up each definition by name. The library's own way gathers on rank 0 at `enddef`
//! and checks with a chained hash table of a chosen number of slots, or by sorting. Files are the same, byte for
//! byte, as those of [`scalable`](super::scalable).

use std::collections::{BTreeMap, HashMap};

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::trailer::{IndexPart, Kind as Entry, entry};

use super::difference::{Conflict, Conflicts, check_records, difference};
use super::emit;
use super::names::Kind;
use super::options::EnddefOptions;
use super::packing::{MessageReader, put_bytes, put_object, put_u32};
use super::placement::{self, LocalEntries, Placement, PlacementOptions, Ranks};
use super::report::Watch;
use crate::container::define::{Definitions, lookup::hash_of};
use crate::container::model::{Counts, Strategy};
use crate::container::words::{Words, words};

/// Limit on the slots of strategy `library-hash`. Rank 0 holds four bytes for each.
pub const MAX_SLOTS: usize = 1 << 26;

/// The method of looking up names.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// A table with this number of slots.
    Slots(usize),
    /// A table of at least as many slots as there are objects.
    AsMany,
    /// By sorting.
    Sort,
}

/// The header of all ranks, which rank 0 writes.
#[derive(Debug)]
pub(super) struct CentralHeader {
    pub placement: Placement,
    /// Present on rank 0.
    all: Option<Box<GatheredHeader>>,
    pub index: Option<IndexPart>,
    pub moves: bool,
}

/// The definitions of all ranks, and their places in the file.
#[derive(Debug)]
struct GatheredHeader {
    header: Header,
    placement: Placement,
    entries: LocalEntries,
}

impl CentralHeader {
    /// Writes all of the header on rank 0, and nothing on the others; returns the number of bytes.
    pub fn write(&mut self, file: &TeamFile, numrecs: u64, watch: &mut Watch<'_>) -> Result<u64> {
        let Some(all) = &mut self.all else { return Ok(0) };
        all.header.numrecs = Some(numrecs);
        emit::write(file, &all.header, (&all.placement, &all.entries), self.index.as_mut(), watch)
    }
}

pub(super) fn plan(
    team: &Team,
    definitions: &mut Definitions,
    options: &EnddefOptions<'_>,
    watch: &mut Watch<'_>,
) -> Result<CentralHeader> {
    let base = definitions.base();
    let base = [base.dims as usize, base.attrs as usize, base.vars as usize];
    let skip = if team.rank() == 0 { [0; 3] } else { base };
    let has_paths = definitions.has_paths();
    let (header, _) = definitions.for_enddef();
    let parts = gather(team, header, (skip, has_paths), options.strategy, watch)?;
    let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();

    let check = match options.strategy {
        Strategy::LibraryHash { slots } => Check::Slots(slots),
        Strategy::LibrarySort => Check::Sort,
        _ => Check::AsMany,
    };
    let merged = match parts.is_empty() {
        true => Ok(None),
        false => merge(header, &parts, check, watch).map(Some),
    };
    let merged = team.agree("checked", merged)?;
    if let Some(merged) = &merged {
        watch.hold(merged.header.memory());
    }
    watch.release(bytes);
    drop(parts);

    // Rank 0 places everything and sends the result to the others.
    let done = match merged {
        None => Ok(None),
        Some(merged) => place_all(merged, base, options, watch).map(Some),
    };
    let done = team.agree("placed", done)?;
    let sent = match (&done, team.rank()) {
        (Some((all, numbers)), 0) => pack_placements(all, numbers, options.old, base),
        _ => Ok(vec![Vec::new(); team.size()]),
    };
    let received = team.alltoallv("numbers", sent)?;
    let (placement, moves) = team.agree("numbers received", unpack_placement(header, &received[0]))?;

    let all = match (done, team.rank()) {
        (Some((all, _)), 0) => Some(Box::new(all)),
        _ => None,
    };
    let index = match (options.indexing.wants(placement.counts), &all) {
        (true, Some(all)) => Some(index(&all.header)),
        (true, None) => Some(IndexPart::default()),
        (false, _) => None,
    };
    watch.end("check");
    Ok(CentralHeader { placement, all, index, moves })
}

/// Collective: gathers the definitions of all ranks on every rank that the strategy wants them on. Leaves out the
/// first `skip` objects, which rank 0 already has.
fn gather(
    team: &Team,
    header: &Header,
    (skip, has_paths): ([usize; 3], bool),
    strategy: Strategy,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<u8>>> {
    // An error travels with the definitions, so that no rank waits for definitions that will not come.
    let packed = check_slots(strategy).map(|()| pack(header, skip, has_paths));
    let packed_len = packed.as_ref().map_or(0, |packed| packed.len() as u64);
    watch.hold(packed_len);
    let parts = match strategy {
        Strategy::App => team.allgather("definitions", packed)?,
        _ => team.gather("definitions", 0, packed)?,
    };
    watch.hold(parts.iter().map(|part| part.len() as u64).sum());
    watch.release(packed_len);
    watch.end("exchange");
    Ok(parts)
}

/// For each rank: the numbers, in the merged header, of each dimension and each variable that the rank sent.
type SentNumbers = Vec<[Vec<u32>; 2]>;

/// Places the definitions of all ranks, as a single rank does.
fn place_all(
    merged: MergedHeader,
    base: [usize; 3],
    options: &EnddefOptions<'_>,
    watch: &mut Watch<'_>,
) -> Result<(GatheredHeader, SentNumbers)> {
    let mut header = merged.header;
    let lens = [header.dims.len(), header.attrs.len(), header.vars.len()];
    let mine = lens.map(|len| placement::ranges(0, len, &[]));
    let escaped = merged.has_paths;
    let plan = PlacementOptions { escaped, alignment: options.alignment, old: options.old, base };
    let (placement, entries) = placement::place(Ranks::ALONE, &mut header, mine, &plan)?;
    watch.hold(lens[2] as u64 * 24);
    Ok((GatheredHeader { header, placement, entries }, merged.numbers))
}

/// The message of rank 0 to each rank.
fn pack_placements(
    all: &GatheredHeader,
    numbers: &[[Vec<u32>; 2]],
    old: Option<&Header>,
    base: [usize; 3],
) -> Result<Vec<Vec<u8>>> {
    let moved = placement::moves(old, &all.header, &all.placement.layout)?;
    let lists = numbers.iter().enumerate();
    let packed =
        lists.map(|(rank, list)| pack_placement(&all.placement, &all.header, moved, list, rank, base));
    Ok(packed.collect())
}

/// Checks that the hash table of a strategy may have this number of slots.
///
/// Errors: `Invalid`.
pub(in crate::container) fn check_slots(strategy: Strategy) -> Result<()> {
    match strategy {
        Strategy::LibraryHash { slots: 0 } => {
            Err(Code::Option.error("strategy library-hash: the hash table has no slots").with_hint(
                "give at least one slot; the table is fast with about as many as the container has objects",
            ))
        }
        Strategy::LibraryHash { slots } if slots > MAX_SLOTS => Err(Code::Option
            .error(format!(
                "strategy library-hash: a hash table of {slots} slots exceeds the limit of {MAX_SLOTS}"
            ))
            .with_hint("about as many slots as the container has objects are enough")),
        _ => Ok(()),
    }
}

/// The positions of the parts, equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlacementHead {
    layout: Layout,
    counts: Counts,
    escaped: bool,
    /// Whether data that the file has must move.
    moved: bool,
    lists: [u64; 3],
}

words!(PlacementHead { layout: Layout, counts: Counts, escaped: bool, moved: bool, lists: [u64; 3] });

/// The message of rank 0 to another rank: the positions of the parts, the numbers of the rank's dimensions and
/// variables, and the begins of the variables.
fn pack_placement(
    placed: &Placement,
    all: &Header,
    moved: bool,
    numbers: &[Vec<u32>; 2],
    rank: usize,
    base: [usize; 3],
) -> Vec<u8> {
    let Placement { layout, counts, escaped, lists, .. } = *placed;
    let mut out = PlacementHead { layout, counts, escaped, moved, lists }.to_bytes();
    let skip = if rank == 0 { [0; 3] } else { base };
    for (numbers, skip) in numbers.iter().zip([skip[0], skip[2]]) {
        put_u32(&mut out, (skip + numbers.len()) as u32);
        (0..skip as u32).chain(numbers.iter().copied()).for_each(|id| put_u32(&mut out, id));
    }
    for id in (0..skip[2] as u32).chain(numbers[1].iter().copied()) {
        out.extend_from_slice(&all.vars.begins[id as usize].to_le_bytes());
        out.extend_from_slice(&all.vars.vsizes[id as usize].to_le_bytes());
    }
    out
}

/// Applies the message of rank 0.
fn unpack_placement(header: &mut Header, received: &[u8]) -> Result<(Placement, bool)> {
    let (head, rest) = PlacementHead::split_from(received)?;
    let mut from = MessageReader(rest);
    let mut ids = [Vec::new(), Vec::new()];
    for ids in &mut ids {
        for _ in 0..from.u32()? {
            ids.push(u64::from(from.u32()?));
        }
    }
    let [dim_ids, var_ids] = ids;
    header.vars.begins = Vec::with_capacity(var_ids.len());
    header.vars.vsizes = Vec::with_capacity(var_ids.len());
    for _ in 0..var_ids.len() {
        header.vars.begins.push(from.u64()?);
        header.vars.vsizes.push(from.u64()?);
    }
    let PlacementHead { layout, counts, escaped, moved, lists } = head;
    Ok((Placement { dim_ids, var_ids, lists, counts, layout, escaped }, moved))
}

/// The whole index, on the only rank that has everything.
fn index(all: &Header) -> IndexPart {
    let (dims, vars) = (&all.dims.names, &all.vars.names);
    let mut entries = Vec::with_capacity(dims.len() + vars.len());
    entries.extend(dims.iter().enumerate().map(|(id, path)| entry(hash_of(path), Entry::Dim, id as u32)));
    entries.extend(vars.iter().enumerate().map(|(id, path)| entry(hash_of(path), Entry::Var, id as u32)));
    entries.sort_unstable();
    IndexPart { entries, ..IndexPart::default() }
}

fn pack(header: &Header, skip: [usize; 3], has_paths: bool) -> Vec<u8> {
    let lens = [header.dims.len(), header.attrs.len(), header.vars.len()];
    let (mut out, mut one) = (Vec::with_capacity(header.memory() as usize), Vec::new());
    out.push(u8::from(has_paths));
    for kind in Kind::ALL {
        let (from, to) = (skip[kind as usize], lens[kind as usize]);
        put_u32(&mut out, (to - from) as u32);
        for i in from..to {
            one.clear();
            put_object(&mut one, header, kind, i);
            put_bytes(&mut out, &one);
        }
    }
    out
}

/// All definitions as one header.
struct MergedHeader {
    header: Header,
    has_paths: bool,
    /// The numbers in `header`.
    numbers: SentNumbers,
}

fn merge(own: &Header, parts: &[Vec<u8>], check: Check, watch: &mut Watch<'_>) -> Result<MergedHeader> {
    let mut readers = Vec::with_capacity(parts.len());
    let mut has_paths = false;
    for part in parts {
        let mut from = MessageReader(part);
        has_paths |= from.u8()? == 1;
        readers.push(from);
    }
    let mut all = Header::new(own.version);
    let mut numbers: SentNumbers = vec![Default::default(); parts.len()];
    let mut conflicts = Conflicts::default();
    let mut dims: HashMap<&str, u32> = HashMap::new();
    for kind in Kind::ALL {
        // Each is rank, local number, path, and the rest of the definition.
        let mut objects: Vec<(usize, u32, &str, &[u8])> = Vec::new();
        for (rank, from) in readers.iter_mut().enumerate() {
            for i in 0..from.u32()? {
                let mut object = MessageReader(from.bytes()?);
                objects.push((rank, i, object.text()?, object.0));
            }
        }
        watch.hold(objects.len() as u64 * 48);
        watch.report.names_held += objects.len() as u64;
        let firsts = firsts(&objects, check, watch)?;
        let mut number = vec![0u32; objects.len()];
        let mut groups: BTreeMap<u32, Vec<u32>> = Default::default();
        let mut records = Vec::new();
        for (at, (rank, _, path, rest)) in objects.iter().enumerate() {
            let first = firsts[at] as usize;
            if first == at {
                if kind == Kind::Dim && rest.first() == Some(&1) {
                    records.push((*path, *rank));
                }
                number[at] = define(&mut all, kind, path, rest, &mut dims)?;
            } else {
                number[at] = number[first];
                groups.entry(first as u32).or_insert_with(|| vec![first as u32]).push(at as u32);
            }
            match kind {
                Kind::Dim => numbers[*rank][0].push(number[at]),
                Kind::Var => numbers[*rank][1].push(number[at]),
                Kind::Attr => {}
            }
        }
        for (first, group) in groups {
            let defined: Vec<(usize, &[u8])> =
                group.iter().map(|at| (objects[*at as usize].0, objects[*at as usize].3)).collect();
            let (rank, local, path, _) = objects[first as usize];
            if let Some(text) = difference(kind, path, &defined)? {
                conflicts.add(Conflict { kind, first: (rank as u32, local), text });
            }
        }
        watch.release(objects.len() as u64 * 48);
        check_records(&records)?;
    }
    conflicts.into_result()?;
    Ok(MergedHeader { header: all, has_paths, numbers })
}

/// Adds one object to the merged header, as an application that has its definition does.
fn define<'a>(
    all: &mut Header,
    kind: Kind,
    path: &'a str,
    rest: &'a [u8],
    dims: &mut HashMap<&'a str, u32>,
) -> Result<u32> {
    let mut from = MessageReader(rest);
    Ok(match kind {
        Kind::Dim => {
            let is_record = from.u8()? == 1;
            let len = from.u64()?;
            let id = if is_record { all.dims.push_record(path) } else { all.dims.push(path, len) };
            dims.insert(path, id);
            id
        }
        Kind::Attr => {
            let ty = from.ty()?;
            all.attrs.push(path, ty, from.bytes()?);
            all.attrs.len() as u32 - 1
        }
        Kind::Var => {
            let ty = from.ty()?;
            let mut ids = Vec::new();
            for _ in 0..from.u32()? {
                let dim = from.text()?;
                let missing = || Error::internal(format!("variable `{path}`: no dimension `{dim}` was sent"));
                ids.push(dims.get(dim).copied().ok_or_else(missing)?);
            }
            let id = all.vars.push(path, ty, &ids);
            for attr in from.attrs()?.iter() {
                all.vars.attrs_of_last(attr.name, attr.ty, attr.value);
            }
            id
        }
    })
}

/// For each object, the first one with the same path.
fn firsts(objects: &[(usize, u32, &str, &[u8])], check: Check, watch: &mut Watch<'_>) -> Result<Vec<u32>> {
    let mut firsts: Vec<u32> = (0..objects.len() as u32).collect();
    let comparisons = &mut watch.report.comparisons;
    match check {
        Check::Slots(_) | Check::AsMany => {
            let slots = match check {
                Check::Slots(slots) => slots,
                _ => objects.len().next_power_of_two(),
            };
            let mut chains = Chains::new(slots, objects.len())?;
            for (at, (_, _, path, _)) in objects.iter().enumerate() {
                let found = chains.find_or_add(path, at as u32, |i| objects[i as usize].2, comparisons);
                firsts[at] = found.unwrap_or(at as u32);
            }
        }
        Check::Sort => {
            let mut order: Vec<u32> = firsts.clone();
            order.sort_by(|a, b| {
                *comparisons += 1;
                objects[*a as usize].2.cmp(objects[*b as usize].2)
            });
            for pair in order.windows(2) {
                *comparisons += 1;
                if objects[pair[0] as usize].2 == objects[pair[1] as usize].2 {
                    firsts[pair[1] as usize] = firsts[pair[0] as usize];
                }
            }
        }
    }
    Ok(firsts)
}

/// A hash table with chains, like that of the paper's library.
struct Chains {
    /// The first object of each chain.
    heads: Vec<u32>,
    /// The next object in each object's chain.
    next: Vec<u32>,
}

/// The end of a chain.
const NONE: u32 = u32::MAX;

impl Chains {
    /// Errors: `Unavailable` if memory does not suffice for this number of slots.
    fn new(slots: usize, objects: usize) -> Result<Chains> {
        let list = |len: usize| {
            let mut list = Vec::new();
            if list.try_reserve_exact(len).is_err() {
                let message = format!("no memory for a hash table of {slots} slots and {objects} objects");
                return Err(Code::OutOfMemory
                    .error(message)
                    .with_hint("use fewer slots, or another strategy"));
            }
            list.resize(len, NONE);
            Ok(list)
        };
        Ok(Chains { heads: list(slots)?, next: list(objects)? })
    }

    /// Finds the object with that path; if there is none, adds `at` at the chain's end.
    fn find_or_add<'a>(
        &mut self,
        path: &str,
        at: u32,
        name: impl Fn(u32) -> &'a str,
        comparisons: &mut u64,
    ) -> Option<u32> {
        let slot = (hash_of(path) % self.heads.len() as u64) as usize;
        let (mut last, mut other) = (NONE, self.heads[slot]);
        while other != NONE {
            *comparisons += 1;
            if name(other) == path {
                return Some(other);
            }
            (last, other) = (other, self.next[other as usize]);
        }
        match last {
            NONE => self.heads[slot] = at,
            last => self.next[last as usize] = at,
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::words::round_trip;

    #[test]
    fn where_things_are_goes_in_fourteen_words() {
        let layout = Layout {
            header_len: 1,
            data_begin: 2,
            data_end: 3,
            record_begin: 4,
            record_size: 5,
            one_record_var: false,
        };
        let counts = Counts { dims: 7, attrs: 8, vars: 9 };
        let head = PlacementHead { layout, counts, escaped: false, moved: true, lists: [12, 13, 14] };
        assert_eq!(round_trip(&head), [1, 2, 3, 4, 5, 0, 7, 8, 9, 0, 1, 12, 13, 14]);
    }
}
