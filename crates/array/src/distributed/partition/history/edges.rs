//! Reading edges that are kept by node: a rank reads the blocks that may have rows of its nodes, and takes these rows.
//!
//! Every edge stands in the rows of both its ends, so that a row is all that there is at a node. Numbers of edges are put in
//! order by a set of them, without a comparison.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::partition::words::{Word, words};
use fieldstone_format::partition::{BlockEntry, ContentSum, ENTRY, HistoryHeader, HistoryKind};

use super::super::number_set::{NumberCollector, NumberSet};
use super::super::picked::{LocalMesh, LocalNumbers, zeros};
use super::super::vector::NodeRanks;
use super::super::{Partition, PartitionKey, PartitionSource};
use super::{KeptFile, PIECE, of_another, read_alone};

/// Collective: this rank's part of the mesh whose edges the file has. `buffer` bounds the bytes that are read at once
/// and those of an exchange; it is equal on all ranks.
///
/// Errors: `NotFound` where there is no such file; `Conflict` for one of another mesh; `Corrupt` for a damaged one. All
/// ranks raise the same.
pub fn read_edges(
    team: &Team,
    path: &Path,
    mesh: ContentSum,
    vector: &NodeRanks<'_>,
    buffer: u64,
) -> Result<Partition> {
    let owned = vector.owned(team, buffer)?;
    let (local, edges, read) = read_alone(team, path, |file| {
        let header = file.header(HistoryKind::Edges, mesh)?;
        if header.nodes != vector.nodes {
            return Err(of_another("number of nodes", header.nodes, vector.nodes));
        }
        let local = match (header.narrow_nodes(), header.narrow_edges()) {
            (true, true) => read::<u32, u32>(file, &header, owned, buffer),
            (true, false) => read::<u32, u64>(file, &header, owned, buffer),
            (false, true) => read::<u64, u32>(file, &header, owned, buffer),
            (false, false) => read::<u64, u64>(file, &header, owned, buffer),
        };
        Ok((local?, header.edges, file.read))
    })?;
    let ghost_ranks = vector.of_set(team, Ok(&local.ghosts))?;
    let ranks = vector.ranks as u32;
    let key = PartitionKey { mesh, vector: vector.sum(), nodes: vector.nodes, edges, ranks };
    let part = Partition::new((key, PartitionSource::Edges), local, ghost_ranks);
    Ok(Partition { read, ..part })
}

fn read<W: Word, E: Word>(
    file: &mut KeptFile<'_>,
    header: &HistoryHeader,
    owned: NumberSet,
    buffer: u64,
) -> Result<LocalMesh> {
    let blocks = wanted(file, header, &owned)?;
    let mut rows = Rows::<W, E>::default();
    let mut bytes = Vec::new();
    let mut rest = &blocks[..];
    while let Some((_, first)) = rest.first() {
        // Blocks that stand side by side are read together.
        let (mut end, mut count) = (first.offset, 0);
        for (_, block) in rest {
            let longer = block.offset + block.length(header);
            if block.offset != end || count > 0 && longer - first.offset > (buffer / 2).max(PIECE as u64) {
                break;
            }
            (end, count) = (longer, count + 1);
        }
        bytes.resize((end - first.offset) as usize, 0);
        file.read(&mut bytes, first.offset)?;
        let (now, later) = rest.split_at(count);
        for (number, block) in now {
            let at = (block.offset - first.offset) as usize;
            let bytes = &bytes[at..at + block.length(header) as usize];
            if crc32c::crc32c(bytes) != block.sum {
                return Err(Code::Checksum.error(format!("block {number} does not match its checksum")));
            }
            let taken = rows.take(header, block, bytes, &owned);
            taken.ok_or_else(|| Error::corrupt(format!("block {number} contradicts itself")))?;
        }
        rest = later;
    }
    drop(bytes);
    rows.assemble(header, owned)
}

/// The blocks that may have rows of own nodes, with their numbers.
fn wanted(
    file: &mut KeptFile<'_>,
    header: &HistoryHeader,
    owned: &NumberSet,
) -> Result<Vec<(u64, BlockEntry)>> {
    let (mut wanted, mut number) = (Vec::new(), 0);
    let mut bytes = Vec::new();
    while number < header.entries {
        let count = (header.entries - number).min((PIECE / ENTRY) as u64);
        bytes.resize(count as usize * ENTRY, 0);
        file.read(&mut bytes, header.entry(number))?;
        for (bytes, number) in bytes.as_chunks::<ENTRY>().0.iter().zip(number..) {
            let block = BlockEntry::decode(header, bytes, number)?;
            if owned.any_within(block.first, block.last) {
                wanted.push((number, block));
            }
        }
        number += count;
    }
    Ok(wanted)
}

/// Edges by list: those whose first end is own, and those of which only the second one is.
#[derive(Debug)]
struct Rows<W, E>([EdgeColumns<W, E>; 2]);

#[derive(Debug)]
struct EdgeColumns<W, E> {
    numbers: Vec<E>,
    first: Vec<W>,
    second: Vec<W>,
}

impl<W, E> Default for Rows<W, E> {
    fn default() -> Self {
        let none = || EdgeColumns { numbers: Vec::new(), first: Vec::new(), second: Vec::new() };
        Rows([none(), none()])
    }
}

impl<W: Word, E: Word> Rows<W, E> {
    /// Takes own rows of a block in; `None` where it is not well formed.
    fn take(
        &mut self,
        header: &HistoryHeader,
        block: &BlockEntry,
        bytes: &[u8],
        owned: &NumberSet,
    ) -> Option<()> {
        let columns = block.columns(header, bytes)?;
        let mut edges = words::<E>(columns.numbers).zip(words::<W>(columns.others));
        let is_second = 1 << (8 * W::WIDTH - 1);
        let mut before = None;
        for (node, count) in words::<W>(columns.nodes).zip(words::<u32>(columns.counts)) {
            let is_sound =
                (block.first..=block.last).contains(&node) && before.is_none_or(|last| last < node);
            if !is_sound || edges.len() < count as usize {
                return None;
            }
            before = Some(node);
            if !owned.contains(node) {
                if let Some(last) = (count as usize).checked_sub(1) {
                    edges.nth(last)?;
                }
                continue;
            }
            for (number, other) in edges.by_ref().take(count as usize) {
                let (is_first, other) = (other & is_second == 0, other & !is_second);
                if number >= header.edges || other >= header.nodes {
                    return None;
                }
                let (list, first, second) = match is_first {
                    true => (0, node, other),
                    // The row of the first end has it.
                    false if owned.contains(other) => continue,
                    false => (1, other, node),
                };
                let list = &mut self.0[list];
                list.numbers.push(E::low(number));
                list.first.push(W::low(first));
                list.second.push(W::low(second));
            }
        }
        (edges.len() == 0).then_some(())
    }

    /// Puts edges in order and gives their ends local numbers.
    fn assemble(self, header: &HistoryHeader, owned: NumberSet) -> Result<LocalMesh> {
        let Rows([with_first, with_second]) = self;
        let owned_edges = with_first.numbers.len();
        let count = owned_edges + with_second.numbers.len();
        let mut ghosts = NumberCollector::new(header.nodes, count as u64);
        for second in with_first.second.iter().map(|end| end.number()) {
            if !owned.contains(second) {
                ghosts.insert(second);
            }
        }
        with_second.first.iter().for_each(|end| ghosts.insert(end.number()));
        let ghosts = ghosts.finish();
        let local = LocalNumbers { owned: &owned, ghosts: &ghosts };
        let nodes = local.nodes()?;
        let mut edges = zeros(count);
        let numbers = Arc::get_mut(&mut edges).unwrap_or_default();
        let mut ends = vec![[0; 2]; count];
        for (list, from) in [(with_first, 0), (with_second, owned_edges)] {
            let mut order = NumberCollector::new(header.edges, list.numbers.len() as u64);
            list.numbers.iter().for_each(|number| order.insert(number.number()));
            let order = order.finish();
            if order.len() != list.numbers.len() {
                return Err(Error::corrupt("an edge stands twice in one row"));
            }
            let mut at = from;
            order.for_each(|number| {
                numbers[at] = number as i64;
                at += 1;
            });
            for ((number, first), second) in list.numbers.iter().zip(&list.first).zip(&list.second) {
                let place = order.index(number.number()).unwrap_or(0);
                ends[from + place] = local.ends(first.number(), second.number())?;
            }
        }
        let owned = owned.len();
        Ok(LocalMesh { nodes, owned, ghosts, edges, owned_edges, ends })
    }
}
