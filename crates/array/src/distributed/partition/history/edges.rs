//! Reads edges stored by node: a rank reads the blocks that may have rows of its nodes, and takes these rows.
//!
//! If nodes are so scattered that the ranks would read the file more than twice, each rank reads a share of the
//! blocks, and sends rows to the ranks of their nodes.
//!
//! Every edge is in the rows of both its ends, so the row of a node has all its edges. A set puts the edge numbers in
//! order without comparisons.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};
use fieldstone_format::partition::words::{Word, words};
use fieldstone_format::partition::{BlockEntry, ContentSum, ENTRY, HistoryHeader, HistoryKind};

use super::super::number_set::{NumberCollector, NumberSet};
use super::super::picked::{LocalMesh, LocalNumbers, zeros};
use super::super::vector::NodeRanks;
use super::super::{Partition, PartitionKey, PartitionSource, with_file};
use super::{KeptFile, PIECE, STEP, damaged, of_another};
use crate::distributed::agreed::alike;

mod scattered;

/// Limit on how often all ranks together read the file's blocks; above it, each rank reads a share and sends rows.
const MOST_READ: u64 = 2;
/// Bytes that a rank may read in any case.
const LITTLE: u64 = 1 << 20;

/// Collective: this rank's part of the mesh whose edges the file has. `buffer` limits the bytes read at a time and
/// those of an exchange; it is equal on all ranks.
///
/// Errors: `NotFound` if there is no such file; `Conflict` for one of another mesh; `Corrupt` for a damaged one. All
/// ranks raise the same.
pub fn read_edges(
    team: &Team,
    path: &Path,
    mesh: ContentSum,
    vector: &NodeRanks<'_>,
    buffer: u64,
) -> Result<Partition> {
    let text = format!("a mesh {mesh}, buffer {buffer}");
    alike(team, STEP, Ok(text), "use equal mesh and buffer on all ranks")?;
    let owned = vector.owned(team, buffer)?;
    let (local, edges, read) = with_file(team, path, |file| {
        let mut file = KeptFile { file, read: 0 };
        let opened = open(&mut file, mesh, vector, &owned);
        let own = opened
            .as_ref()
            .map_err(Error::replicate)
            .map(|(header, wanted)| vec![wanted.iter().map(|(_, block)| block.length(header)).sum()]);
        let wanted_by_all = team.total(STEP, own)?[0];
        let (header, wanted) = opened?;
        let most = MOST_READ.saturating_mul(header.length - header.data());
        let is_scattered = wanted_by_all > most.max(LITTLE.saturating_mul(team.size() as u64));
        let mut kept = KeptEdges { file: &mut file, header, buffer, bytes: Vec::new() };
        let wanted = (!is_scattered).then_some(&wanted[..]);
        let local = match (header.narrow_nodes(), header.narrow_edges()) {
            (true, true) => read::<u32, u32>(&mut kept, team, vector, owned, wanted),
            (true, false) => read::<u32, u64>(&mut kept, team, vector, owned, wanted),
            (false, true) => read::<u64, u32>(&mut kept, team, vector, owned, wanted),
            (false, false) => read::<u64, u64>(&mut kept, team, vector, owned, wanted),
        };
        Ok((local?, header.edges, file.read))
    })?;
    let ghost_ranks = vector.of_set(team, Ok(&local.ghosts))?;
    let ranks = vector.ranks as u32;
    let key = PartitionKey { mesh, vector: vector.sum(), nodes: vector.nodes, edges, ranks };
    let part = Partition::new((key, PartitionSource::Edges), local, ghost_ranks);
    Ok(Partition { read, ..part })
}

/// Blocks with their numbers.
type NumberedBlocks = Vec<(u64, BlockEntry)>;

/// Opens the file: its header, and the blocks that may have rows of own nodes.
fn open(
    file: &mut KeptFile<'_>,
    mesh: ContentSum,
    vector: &NodeRanks<'_>,
    owned: &NumberSet,
) -> Result<(HistoryHeader, NumberedBlocks)> {
    let header = file.header(HistoryKind::Edges, mesh)?;
    if header.nodes != vector.nodes {
        return Err(of_another("number of nodes", header.nodes, vector.nodes));
    }
    let all = 0..header.entries;
    Ok((header, blocks(file, &header, all, |block| owned.any_within(block.first, block.last))?))
}

/// The blocks in a range of numbers that `keep` selects.
fn blocks(
    file: &mut KeptFile<'_>,
    header: &HistoryHeader,
    mut range: std::ops::Range<u64>,
    keep: impl Fn(&BlockEntry) -> bool,
) -> Result<NumberedBlocks> {
    let (mut kept, mut bytes) = (Vec::new(), Vec::new());
    while !range.is_empty() {
        let count = (range.end - range.start).min((PIECE / ENTRY) as u64);
        bytes.resize(count as usize * ENTRY, 0);
        file.read(&mut bytes, header.entry(range.start))?;
        for (bytes, number) in bytes.as_chunks::<ENTRY>().0.iter().zip(range.start..) {
            let block = BlockEntry::decode(header, bytes, number)?;
            if keep(&block) {
                kept.push((number, block));
            }
        }
        range.start += count;
    }
    Ok(kept)
}

/// Collective: the rows of own nodes, from the `wanted` blocks or, without these, from the ranks that each read a
/// share.
fn read<W: Word, E: Word>(
    kept: &mut KeptEdges<'_, '_>,
    team: &Team,
    vector: &NodeRanks<'_>,
    owned: NumberSet,
    wanted: Option<&[(u64, BlockEntry)]>,
) -> Result<LocalMesh> {
    let mut rows = EdgeRows::<W, E>::default();
    let taken = match wanted {
        Some(wanted) => rows.take_all(kept, wanted, &owned),
        None => scattered::exchange::<W, E>(kept, team, vector, |edge| rows.put(edge, &owned))?,
    };
    let header = kept.header;
    team.agree(STEP, taken.and_then(|()| rows.assemble(&header, owned)))
}

/// An edge in a row.
#[derive(Debug, Clone, Copy)]
struct RowEdge {
    node: u64,
    number: u64,
    other: u64,
    /// Whether the row's node is the second end.
    is_second: bool,
}

/// A file of edges that is being read.
struct KeptEdges<'a, 'b> {
    file: &'a mut KeptFile<'b>,
    header: HistoryHeader,
    buffer: u64,
    bytes: Vec<u8>,
}

impl KeptEdges<'_, '_> {
    /// The number of leading blocks to read together: they are adjacent, and fit in half of the buffer.
    fn side_by_side(&self, blocks: &[(u64, BlockEntry)]) -> usize {
        let Some((_, first)) = blocks.first() else { return 0 };
        let (mut end, mut count) = (first.offset, 0);
        for (_, block) in blocks {
            let longer = block.offset + block.length(&self.header);
            let is_full = longer - first.offset > (self.buffer / 4).max(PIECE as u64);
            if block.offset != end || count > 0 && is_full {
                break;
            }
            (end, count) = (longer, count + 1);
        }
        count
    }

    /// Reads adjacent blocks; `act` gets each row, with its edges.
    fn rows<W: Word, E: Word>(
        &mut self,
        blocks: &[(u64, BlockEntry)],
        mut act: impl FnMut(u64, &mut dyn Iterator<Item = RowEdge>),
    ) -> Result<()> {
        let (Some((_, first)), Some((_, last))) = (blocks.first(), blocks.last()) else { return Ok(()) };
        let header = self.header;
        self.bytes.resize((last.offset + last.length(&header) - first.offset) as usize, 0);
        self.file.read(&mut self.bytes, first.offset)?;
        for (number, block) in blocks {
            let at = (block.offset - first.offset) as usize;
            let bytes = &self.bytes[at..at + block.length(&header) as usize];
            if crc32c::crc32c(bytes) != block.sum {
                let error = damaged(bytes.len() as u64, block.offset);
                return Err(error.context(format_args!("block {number}")));
            }
            let rows = for_each_row::<W, E>(&header, block, bytes, &mut act);
            rows.ok_or_else(|| Error::corrupt(format!("block {number} contradicts itself")))?;
        }
        Ok(())
    }
}

/// Calls `act` for each row; `None` if the block is malformed.
fn for_each_row<W: Word, E: Word>(
    header: &HistoryHeader,
    block: &BlockEntry,
    bytes: &[u8],
    act: &mut impl FnMut(u64, &mut dyn Iterator<Item = RowEdge>),
) -> Option<()> {
    let columns = block.columns(header, bytes)?;
    let highest = 1 << (8 * W::WIDTH - 1);
    let (mut place, mut before, mut is_sound) = (0, None, true);
    for (node, count) in words::<W>(columns.nodes).zip(words::<u32>(columns.counts)) {
        let within = (block.first..=block.last).contains(&node) && before.is_none_or(|last| last < node);
        let end = place + count as usize;
        let numbers = columns.numbers.get(place * E::WIDTH..end * E::WIDTH).filter(|_| within)?;
        let others = columns.others.get(place * W::WIDTH..end * W::WIDTH)?;
        (place, before) = (end, Some(node));
        let mut edges = words::<E>(numbers).zip(words::<W>(others)).map(|(number, other)| {
            let (is_second, other) = (other & highest != 0, other & !highest);
            is_sound &= number < header.edges && other < header.nodes;
            RowEdge { node, number, other, is_second }
        });
        act(node, &mut edges);
    }
    (is_sound && place == block.edges as usize).then_some(())
}

/// Two lists of edges: those whose first end is own, and those with only an own second end.
#[derive(Debug)]
struct EdgeRows<W, E>([EdgeColumns<W, E>; 2]);

#[derive(Debug)]
struct EdgeColumns<W, E> {
    numbers: Vec<E>,
    first: Vec<W>,
    second: Vec<W>,
}

impl<W, E> Default for EdgeRows<W, E> {
    fn default() -> Self {
        let none = || EdgeColumns { numbers: Vec::new(), first: Vec::new(), second: Vec::new() };
        EdgeRows([none(), none()])
    }
}

impl<W: Word, E: Word> EdgeRows<W, E> {
    /// Adds the own rows of these blocks.
    fn take_all(
        &mut self,
        kept: &mut KeptEdges<'_, '_>,
        mut blocks: &[(u64, BlockEntry)],
        owned: &NumberSet,
    ) -> Result<()> {
        while !blocks.is_empty() {
            let (now, later) = blocks.split_at(kept.side_by_side(blocks));
            kept.rows::<W, E>(now, |node, edges| {
                if owned.contains(node) {
                    edges.for_each(|edge| self.put(edge, owned));
                }
            })?;
            blocks = later;
        }
        Ok(())
    }

    /// Adds an edge of an own row.
    #[inline]
    fn put(&mut self, edge: RowEdge, owned: &NumberSet) {
        let RowEdge { node, number, other, is_second } = edge;
        let (list, first, second) = match is_second {
            false => (0, node, other),
            // The row of the first end already has it.
            true if owned.contains(other) => return,
            true => (1, other, node),
        };
        let list = &mut self.0[list];
        list.numbers.push(E::low(number));
        list.first.push(W::low(first));
        list.second.push(W::low(second));
    }

    /// Puts edges in order and replaces their ends by local numbers.
    fn assemble(self, header: &HistoryHeader, owned: NumberSet) -> Result<LocalMesh> {
        let EdgeRows([with_first, with_second]) = self;
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
                return Err(Error::corrupt("an edge occurs twice in one row"));
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
