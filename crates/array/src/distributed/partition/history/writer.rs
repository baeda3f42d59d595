//! Writes stored partitions while the run continues.
//!
//! [`parts`](HistoryWriter::parts) and [`edges`](HistoryWriter::edges) agree on the range that each rank writes, and
//! create the file under a temporary name. [`write`](HistoryWriter::write) prepares and writes the bytes of this
//! rank, in pieces; it only uses the disk and makes no call of a communicator, so that it may run on any thread.
//! [`finish`](HistoryWriter::finish) gives the file its name once all ranks have written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::comm::Team;
use fieldstone_core::env::{Disk, DiskFile, write_all_at};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::partition::words::put_words;
use fieldstone_format::partition::{
    BLOCK_EDGES, BlockEntry, ContentSum, HistoryHeader, HistoryKind, PartEntry,
};

use super::super::Partition;
use super::PIECE;

const STEP: &str = "write partition";

/// One rank's share in writing a file. See the module's documentation. A writer that is not
/// [finished](HistoryWriter::finish) leaves the temporary file behind.
#[derive(Debug)]
pub struct HistoryWriter {
    part: Arc<Partition>,
    header: HistoryHeader,
    rank: usize,
    /// Number of this rank's first entry.
    entry: u64,
    /// Offset of its data.
    offset: u64,
    /// In a file of edges: the number of edges of each own node.
    degrees: Vec<u32>,
    temporary: PathBuf,
    path: PathBuf,
}

impl HistoryWriter {
    /// Collective: begins a file of complete parts at `path`, with the name `temporary` until it is complete.
    ///
    /// Errors: if the file cannot be created. All ranks raise the same.
    pub fn parts(
        team: &Team,
        disk: &dyn Disk,
        (path, temporary): (&Path, &Path),
        part: &Arc<Partition>,
    ) -> Result<HistoryWriter> {
        let header = header(HistoryKind::Parts, part, team.size());
        let own = part_entry(part, 0, 0).length(&header);
        HistoryWriter::begin(team, disk, (path, temporary), part, header, Ok((1, own, Vec::new())))
    }

    /// Collective: begins a file of the edges by node at `path`, with the name `temporary` until it is complete.
    ///
    /// Errors: as for [`parts`](HistoryWriter::parts); `Invalid` if a rank has 2^32 edges or more.
    pub fn edges(
        team: &Team,
        disk: &dyn Disk,
        (path, temporary): (&Path, &Path),
        part: &Arc<Partition>,
    ) -> Result<HistoryWriter> {
        let header = header(HistoryKind::Edges, part, team.size());
        let own = degrees(part).map(|degrees| {
            let (mut blocks, mut bytes) = (0, 0);
            for_each_block(&degrees, |block| {
                blocks += 1;
                bytes += block.length(&header);
            });
            (blocks, bytes, degrees)
        });
        HistoryWriter::begin(team, disk, (path, temporary), part, header, own)
    }

    fn begin(
        team: &Team,
        disk: &dyn Disk,
        (path, temporary): (&Path, &Path),
        part: &Arc<Partition>,
        mut header: HistoryHeader,
        own: Result<(u64, u64, Vec<u32>)>,
    ) -> Result<HistoryWriter> {
        let counts = own.as_ref().map_err(Error::replicate).map(|(entries, bytes, _)| vec![*entries, *bytes]);
        let sums = team.sums(STEP, counts)?;
        let (_, _, degrees) = own?;
        header.entries = sums.total[0];
        header.length = header.data() + sums.total[1];
        let made = match team.rank() {
            0 => create(disk, temporary, header.length),
            _ => Ok(()),
        };
        let is_made = team.rank() == 0 && made.is_ok();
        if let Err(error) = team.agree(STEP, made) {
            if is_made {
                // Otherwise it would block the next attempt.
                let _ = disk.unlink(temporary);
            }
            return Err(error);
        }
        Ok(HistoryWriter {
            part: part.clone(),
            rank: team.rank(),
            entry: sums.before[0],
            offset: header.data() + sums.before[1],
            header,
            degrees,
            temporary: temporary.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.header.length
    }

    /// Prepares and writes this rank's bytes, and makes them durable; on any thread. Returns their number.
    pub fn write(&self, disk: &dyn Disk) -> Result<u64> {
        let failed = |cause: std::io::Error| Error::io("write", &self.temporary, cause);
        let file = disk.open_plain(&self.temporary, true).map_err(failed)?;
        let (mut entries, mut out) = (Vec::new(), RangeWriter::new(&*file, self.offset));
        match self.header.kind {
            HistoryKind::Parts => self.write_part(&mut out, &mut entries),
            HistoryKind::Edges => self.write_rows(&mut out, &mut entries),
        }
        .map_err(failed)?;
        let mut written = out.finish().map_err(failed)? + entries.len() as u64;
        write_all_at(&*file, &entries, self.header.entry(self.entry)).map_err(failed)?;
        if self.rank == 0 {
            let header = self.header.encode();
            write_all_at(&*file, &header, 0).map_err(failed)?;
            written += header.len() as u64;
        }
        file.sync_data().map_err(failed)?;
        Ok(written)
    }

    /// Collective: gives the file its name if all ranks have written; else removes it. `written` is the result of
    /// [`write`](HistoryWriter::write).
    ///
    /// Errors: the failure of a rank, on all.
    pub fn finish(&self, team: &Team, disk: &dyn Disk, written: Result<u64>) -> Result<()> {
        let name = || -> std::io::Result<()> {
            disk.rename(&self.temporary, &self.path)?;
            self.path.parent().map_or(Ok(()), |folder| disk.sync_dir(folder))
        };
        let outcome = team.agree(STEP, written).and_then(|_| {
            let named = if team.rank() == 0 { name() } else { Ok(()) };
            team.agree(STEP, named.map_err(|cause| Error::io("name", &self.path, cause)))
        });
        if outcome.is_err() && team.rank() == 0 {
            // If it cannot be removed, a temporary file stays that no program reads.
            let _ = disk.unlink(&self.temporary);
        }
        outcome
    }

    fn write_part(&self, out: &mut RangeWriter<'_>, entries: &mut Vec<u8>) -> std::io::Result<()> {
        let (part, header) = (&self.part, &self.header);
        let numbers = |list: &'_ [i64]| list.iter().map(|number| *number as u64).collect::<Vec<u64>>();
        for nodes in part.nodes.chunks(PIECE / 8) {
            out.put(numbers(nodes), header.narrow_nodes())?;
        }
        out.put(part.ghost_ranks.iter().map(|rank| u64::from(*rank)), true)?;
        for edges in part.edges.chunks(PIECE / 8) {
            out.put(numbers(edges), header.narrow_edges())?;
        }
        for ends in part.ends.chunks(PIECE / 8) {
            out.put(ends.as_flattened().iter().map(|end| u64::from(*end)), true)?;
        }
        let entry = part_entry(part, self.offset, out.take_sum());
        entries.extend_from_slice(&entry.encode(self.entry));
        Ok(())
    }

    fn write_rows(&self, out: &mut RangeWriter<'_>, entries: &mut Vec<u8>) -> std::io::Result<()> {
        let (part, header) = (&self.part, &self.header);
        let by_node = edges_by_node(part, &self.degrees);
        let is_second = if header.narrow_nodes() { 1 << 31 } else { 1 << 63 };
        let (mut number, mut at, mut outcome) = (self.entry, self.offset, Ok(()));
        for_each_block(&self.degrees, |block| {
            if outcome.is_err() {
                return;
            }
            let node = |row: &(u32, u32)| part.nodes[row.0 as usize] as u64;
            let edge_of = |place: u64| by_node[place as usize] as usize;
            let row_of =
                block.list.iter().flat_map(|(row, count)| std::iter::repeat_n(*row, *count as usize));
            let others =
                row_of.zip(block.edges.clone()).map(|(row, place)| match part.ends[edge_of(place)] {
                    [first, second] if first == row => part.nodes[second as usize] as u64,
                    [first, _] => part.nodes[first as usize] as u64 | is_second,
                });
            outcome = (|| {
                out.put(block.list.iter().map(node), header.narrow_nodes())?;
                out.put(block.list.iter().map(|(_, count)| u64::from(*count)), true)?;
                let numbers = block.edges.clone().map(|place| part.edges[edge_of(place)] as u64);
                out.put(numbers, header.narrow_edges())?;
                out.put(others, header.narrow_nodes())
            })();
            let (first, last) = (block.list.first().map_or(0, node), block.list.last().map_or(0, node));
            let (rows, edges) = (block.list.len() as u32, block.count() as u32);
            let entry = BlockEntry { offset: at, rows, edges, first, last, sum: out.take_sum() };
            entries.extend_from_slice(&entry.encode(number));
            (number, at) = (number + 1, at + entry.length(header));
        });
        outcome
    }
}

fn header(kind: HistoryKind, part: &Partition, ranks: usize) -> HistoryHeader {
    let key = part.key;
    let vector = if kind == HistoryKind::Parts { key.vector } else { ContentSum::default() };
    let (nodes, edges, parts) = (key.nodes, key.edges, ranks as u32);
    HistoryHeader { kind, mesh: key.mesh, vector, nodes, edges, parts, entries: 0, length: 0 }
}

fn part_entry(part: &Partition, offset: u64, sum: u32) -> PartEntry {
    PartEntry {
        offset,
        owned: part.owned as u64,
        ghosts: part.ghost_ranks.len() as u64,
        edges: part.edges.len() as u64,
        owned_edges: part.owned_edges as u64,
        sum,
    }
}

/// Creates a file of that length. A file of that name from an earlier attempt is an error, which names it.
fn create(disk: &dyn Disk, temporary: &Path, length: u64) -> Result<()> {
    let failed = |cause| Error::io("make", temporary, cause);
    let file = disk.create_alike(temporary).map_err(failed)?;
    let sized = file.set_len(length);
    let made = sized.and_then(|()| temporary.parent().map_or(Ok(()), |folder| disk.sync_dir(folder)));
    if made.is_err() {
        // Otherwise it would block the next attempt.
        let _ = disk.unlink(temporary);
    }
    made.map_err(failed)
}

/// The number of edges of each own node; an edge from a node to itself counts once.
fn degrees(part: &Partition) -> Result<Vec<u32>> {
    if u32::try_from(part.edges.len()).is_err() {
        return Err(Code::TooLarge
            .error(format!(
                "this rank's part has {} edges: the limit of a stored part is 2^32",
                part.edges.len()
            ))
            .with_hint("partition the mesh over more ranks"));
    }
    let mut degrees = vec![0u32; part.owned];
    for [first, second] in &part.ends {
        if let Some(degree) = degrees.get_mut(*first as usize) {
            *degree += 1;
        }
        if let Some(degree) = degrees.get_mut(*second as usize).filter(|_| first != second) {
            *degree += 1;
        }
    }
    Ok(degrees)
}

/// The edges of own nodes, node by node, as indices in the part.
fn edges_by_node(part: &Partition, degrees: &[u32]) -> Vec<u32> {
    let (mut next, mut sum) = (Vec::with_capacity(degrees.len()), 0u64);
    for degree in degrees {
        next.push(sum);
        sum += u64::from(*degree);
    }
    let mut by_node = vec![0u32; sum as usize];
    for (edge, [first, second]) in (0u32..).zip(&part.ends) {
        let mut put = |node: u32| {
            if let Some(place) = next.get_mut(node as usize) {
                by_node[*place as usize] = edge;
                *place += 1;
            }
        };
        put(*first);
        if first != second {
            put(*second);
        }
    }
    by_node
}

/// Rows of a block: nodes with the number of their edges in the block; a long row continues in the next block.
struct BlockRows {
    list: Vec<(u32, u32)>,
    /// The range of its edges in the list by node.
    edges: std::ops::Range<u64>,
}

impl BlockRows {
    fn count(&self) -> u64 {
        self.edges.end - self.edges.start
    }

    fn length(&self, header: &HistoryHeader) -> u64 {
        let (rows, edges) = (self.list.len() as u32, self.count() as u32);
        BlockEntry { offset: 0, rows, edges, first: 0, last: 0, sum: 0 }.length(header)
    }
}

/// Cuts rows into blocks of [`BLOCK_EDGES`]; nodes without edges have no row.
fn for_each_block(degrees: &[u32], mut act: impl FnMut(&BlockRows)) {
    let mut block = BlockRows { list: Vec::new(), edges: 0..0 };
    let mut close = |block: &mut BlockRows| {
        act(block);
        block.list.clear();
        block.edges.start = block.edges.end;
    };
    for (node, degree) in (0u32..).zip(degrees) {
        let mut left = u64::from(*degree);
        while left > 0 {
            let some = left.min(BLOCK_EDGES - block.count());
            block.list.push((node, some as u32));
            block.edges.end += some;
            left -= some;
            if block.count() == BLOCK_EDGES {
                close(&mut block);
            }
        }
    }
    if block.count() > 0 {
        close(&mut block);
    }
}

/// Consecutive bytes of a file, in pieces.
struct RangeWriter<'a> {
    file: &'a dyn DiskFile,
    at: u64,
    out: Vec<u8>,
    /// The number of bytes of `out` that are in the checksum.
    summed: usize,
    sum: u32,
    written: u64,
}

impl<'a> RangeWriter<'a> {
    fn new(file: &'a dyn DiskFile, at: u64) -> RangeWriter<'a> {
        RangeWriter { file, at, out: Vec::new(), summed: 0, sum: 0, written: 0 }
    }

    fn put(&mut self, numbers: impl IntoIterator<Item = u64>, is_narrow: bool) -> std::io::Result<()> {
        put_words(&mut self.out, numbers, is_narrow);
        if self.out.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// The checksum of the bytes added since the last one.
    fn take_sum(&mut self) -> u32 {
        self.add_sum();
        std::mem::take(&mut self.sum)
    }

    fn add_sum(&mut self) {
        self.sum = crc32c::crc32c_append(self.sum, &self.out[self.summed..]);
        self.summed = self.out.len();
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.add_sum();
        // Through the page cache, because the next run reads it, often soon.
        write_all_at(self.file, &self.out, self.at)?;
        self.file.start_writeback(self.at, self.out.len() as u64);
        self.at += self.out.len() as u64;
        self.written += self.out.len() as u64;
        self.out.clear();
        self.summed = 0;
        Ok(())
    }

    fn finish(mut self) -> std::io::Result<u64> {
        self.flush()?;
        Ok(self.written)
    }
}
