//! Files in which partitions of meshes are kept. The normative text is `spec/partition-history.md`.
//!
//! ```text
//! header   magic: "FSPP" (parts) or "FSPE" (edges)  version: u16  width of nodes: u8  width of edges: u8
//!          mesh: u128  vector: u128 (0 in a file of edges)  nodes: u64  edges: u64
//!          parts: u32  zeros: u32  entries: u64  length of the file: u64  zeros to byte 124  crc: u32
//! entries  of a part:  offset: u64  owned: u64  ghosts: u64  edges: u64  owned edges: u64  crc of the part: u32  crc: u32
//!          of a block: offset: u64  rows: u32  edges: u32  first: u64  last: u64  zeros: u64  crc of the block: u32  crc: u32
//! data     a part for each rank, or blocks of rows; concatenated without gaps
//! ```
//! The checksum of an entry covers its number (u64) and the bytes before the checksum.
//!
//! Invariants: a decoded entry is inside the file; its counts match its length in the file.

use fieldstone_core::{Code, Error, Result};

use crate::bytes::{Cursor, Put};
use crate::{crc, crc_append, unknown_version};

pub mod words;

/// A checksum of 128 bits of a mesh or a partitioning vector: the sum of hashes of its elements with their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentSum(pub u128);

impl std::fmt::Display for ContentSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl ContentSum {
    /// Parses the text that [`Display`](std::fmt::Display) writes.
    pub fn parse(text: &str) -> Option<ContentSum> {
        let sum = u128::from_str_radix(text, 16).ok().map(ContentSum);
        sum.filter(|sum| sum.to_string() == text)
    }
}

/// Version of these files.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER: usize = 128;
/// Bytes of an entry.
pub const ENTRY: usize = 48;
/// Most edges of a block.
pub const BLOCK_EDGES: u64 = 1 << 14;

/// Content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryKind {
    /// A finished part for each rank.
    Parts,
    /// Edges sorted by node.
    Edges,
}

impl HistoryKind {
    fn magic(self) -> &'static [u8; 4] {
        match self {
            HistoryKind::Parts => b"FSPP",
            HistoryKind::Edges => b"FSPE",
        }
    }
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryHeader {
    /// Its content.
    pub kind: HistoryKind,
    /// Checksum of the mesh.
    pub mesh: ContentSum,
    /// Checksum of the vector; 0 in a file of edges.
    pub vector: ContentSum,
    /// Nodes of the mesh.
    pub nodes: u64,
    /// Edges of the mesh.
    pub edges: u64,
    /// Ranks that wrote it; for parts, the ranks that use them.
    pub parts: u32,
    /// Number of entries.
    pub entries: u64,
    /// Size of the file in bytes.
    pub length: u64,
}

impl HistoryHeader {
    /// Whether node numbers take four bytes in the file: with one bit to spare.
    pub fn narrow_nodes(&self) -> bool {
        self.nodes <= 1 << 31
    }

    /// Whether edge numbers take four bytes in the file.
    pub fn narrow_edges(&self) -> bool {
        words::narrow(self.edges)
    }

    /// Bytes of a node number.
    pub fn node_width(&self) -> u64 {
        if self.narrow_nodes() { 4 } else { 8 }
    }

    /// Bytes of an edge number.
    pub fn edge_width(&self) -> u64 {
        if self.narrow_edges() { 4 } else { 8 }
    }

    /// Offset of the data.
    pub fn data(&self) -> u64 {
        HEADER as u64 + self.entries.saturating_mul(ENTRY as u64)
    }

    /// Offset of an entry.
    pub fn entry(&self, number: u64) -> u64 {
        HEADER as u64 + number.saturating_mul(ENTRY as u64)
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = Vec::with_capacity(HEADER);
        out.extend_from_slice(self.kind.magic());
        out.put_u16(VERSION);
        out.extend_from_slice(&[self.node_width() as u8, self.edge_width() as u8]);
        out.extend_from_slice(&self.mesh.0.to_le_bytes());
        out.extend_from_slice(&self.vector.0.to_le_bytes());
        out.put_u64(self.nodes);
        out.put_u64(self.edges);
        out.put_u32(self.parts);
        out.put_u32(0);
        out.put_u64(self.entries);
        out.put_u64(self.length);
        out.resize(HEADER - 4, 0);
        let sum = crc(&out);
        out.put_u32(sum);
        let mut header = [0; HEADER];
        header.copy_from_slice(&out);
        header
    }

    /// Decodes the header of a file of `length` bytes, which must be of this kind.
    pub fn decode(kind: HistoryKind, bytes: &[u8; HEADER], length: u64) -> Result<HistoryHeader> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4)? != kind.magic() {
            return Err(Error::corrupt("the file does not begin like a partition history of this kind"));
        }
        let version = cursor.u16()?;
        if crc(&bytes[..HEADER - 4]).to_le_bytes() != bytes[HEADER - 4..] {
            return Err(Code::Checksum.error("the header does not match its checksum"));
        }
        if version != VERSION {
            return Err(unknown_version("the partition history", version));
        }
        let widths = [u64::from(cursor.u8()?), u64::from(cursor.u8()?)];
        let mut sum = || Ok::<_, Error>(ContentSum(u128::from_le_bytes(cursor.array()?)));
        let (mesh, vector) = (sum()?, sum()?);
        let (nodes, edges, parts) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
        cursor.u32()?;
        let (entries, said) = (cursor.u64()?, cursor.u64()?);
        let header = HistoryHeader { kind, mesh, vector, nodes, edges, parts, entries, length };
        if said != length {
            return Err(
                Code::Truncated.error(format!("the file has {length} bytes, but its header says {said}"))
            );
        }
        let fits = header.data() <= length
            && widths == [header.node_width(), header.edge_width()]
            && nodes.max(edges) < 1 << 62
            && (kind == HistoryKind::Edges || entries == u64::from(parts));
        match fits {
            true => Ok(header),
            false => Err(Error::corrupt("the header contradicts itself")),
        }
    }
}

/// The size of an entry's data.
trait Sized64 {
    /// Bytes of the data.
    fn bytes(&self, header: &HistoryHeader) -> Option<u64>;
}

/// Position and size of a rank's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartEntry {
    /// First byte.
    pub offset: u64,
    /// Own nodes.
    pub owned: u64,
    /// Ghosts.
    pub ghosts: u64,
    /// Edges.
    pub edges: u64,
    /// Edges whose first end is own.
    pub owned_edges: u64,
    /// Checksum of the part.
    pub sum: u32,
}

impl Sized64 for PartEntry {
    fn bytes(&self, header: &HistoryHeader) -> Option<u64> {
        let nodes = self.owned.checked_add(self.ghosts)?.checked_mul(header.node_width())?;
        let edges = self.edges.checked_mul(header.edge_width() + 8)?;
        nodes.checked_add(self.ghosts.checked_mul(4)?)?.checked_add(edges)
    }
}

impl PartEntry {
    /// Bytes of the part: nodes, the rank of each ghost, edge numbers, their ends.
    pub fn length(&self, header: &HistoryHeader) -> u64 {
        self.bytes(header).unwrap_or(u64::MAX)
    }

    /// Encodes the entry.
    pub fn encode(&self, number: u64) -> [u8; ENTRY] {
        let words = [self.offset, self.owned, self.ghosts, self.edges, self.owned_edges];
        seal(words, self.sum, number)
    }

    /// Decodes the entry of a rank.
    pub fn decode(header: &HistoryHeader, bytes: &[u8; ENTRY], number: u64) -> Result<PartEntry> {
        let ([offset, owned, ghosts, edges, owned_edges], sum) = unseal(bytes, number)?;
        let entry = PartEntry { offset, owned, ghosts, edges, owned_edges, sum };
        within(header, offset, &entry)?;
        let fits = owned_edges <= edges && owned.saturating_add(ghosts) <= u64::from(u32::MAX);
        if fits { Ok(entry) } else { Err(contradiction(number)) }
    }
}

/// Position and nodes of a block of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEntry {
    /// First byte.
    pub offset: u64,
    /// Nodes.
    pub rows: u32,
    /// Edges of all rows.
    pub edges: u32,
    /// Node of the first row.
    pub first: u64,
    /// Node of the last row.
    pub last: u64,
    /// Checksum of the block.
    pub sum: u32,
}

impl Sized64 for BlockEntry {
    fn bytes(&self, header: &HistoryHeader) -> Option<u64> {
        let rows = u64::from(self.rows) * (header.node_width() + 4);
        Some(rows + u64::from(self.edges) * (header.node_width() + header.edge_width()))
    }
}

impl BlockEntry {
    /// Bytes of the block.
    pub fn length(&self, header: &HistoryHeader) -> u64 {
        self.bytes(header).unwrap_or(u64::MAX)
    }

    /// Encodes the entry.
    pub fn encode(&self, number: u64) -> [u8; ENTRY] {
        let counts = u64::from(self.rows) | u64::from(self.edges) << 32;
        seal([self.offset, counts, self.first, self.last, 0], self.sum, number)
    }

    /// Decodes the entry of a block.
    pub fn decode(header: &HistoryHeader, bytes: &[u8; ENTRY], number: u64) -> Result<BlockEntry> {
        let ([offset, counts, first, last, _], sum) = unseal(bytes, number)?;
        let (rows, edges) = (counts as u32, (counts >> 32) as u32);
        let entry = BlockEntry { offset, rows, edges, first, last, sum };
        within(header, offset, &entry)?;
        let fits = first <= last && last < header.nodes && u64::from(edges) <= BLOCK_EDGES && rows <= edges;
        if fits && rows > 0 { Ok(entry) } else { Err(contradiction(number)) }
    }

    /// The columns in the bytes of a block, whose checksum was checked.
    pub fn columns<'a>(&self, header: &HistoryHeader, bytes: &'a [u8]) -> Option<BlockColumns<'a>> {
        let (rows, edges) = (self.rows as usize, self.edges as usize);
        let (nodes, rest) = bytes.split_at_checked(rows * header.node_width() as usize)?;
        let (counts, rest) = rest.split_at_checked(rows * 4)?;
        let (numbers, others) = rest.split_at_checked(edges * header.edge_width() as usize)?;
        (others.len() == edges * header.node_width() as usize).then_some(BlockColumns {
            nodes,
            counts,
            numbers,
            others,
        })
    }
}

/// A block: rows of nodes, ascending, and the edges of each.
#[derive(Debug, Clone, Copy)]
pub struct BlockColumns<'a> {
    /// The node of each row.
    pub nodes: &'a [u8],
    /// Number of edges of each row, four bytes each.
    pub counts: &'a [u8],
    /// The number of each edge.
    pub numbers: &'a [u8],
    /// The node at the other end, with the highest bit set if the row's node is the second end.
    pub others: &'a [u8],
}

fn contradiction(number: u64) -> Error {
    Error::corrupt(format!("entry {number} contradicts itself"))
}

fn within(header: &HistoryHeader, offset: u64, entry: &impl Sized64) -> Result<()> {
    let end = entry.bytes(header).and_then(|bytes| offset.checked_add(bytes));
    match end {
        Some(end) if offset >= header.data() && end <= header.length => Ok(()),
        _ => Err(Error::corrupt("an entry names bytes outside the file's data")),
    }
}

fn seal(words: [u64; 5], sum: u32, number: u64) -> [u8; ENTRY] {
    let mut out = Vec::with_capacity(ENTRY);
    words.into_iter().for_each(|word| out.put_u64(word));
    out.put_u32(sum);
    let own = crc_append(crc(&number.to_le_bytes()), &out);
    out.put_u32(own);
    let mut entry = [0; ENTRY];
    entry.copy_from_slice(&out);
    entry
}

fn unseal(bytes: &[u8; ENTRY], number: u64) -> Result<([u64; 5], u32)> {
    let own = crc_append(crc(&number.to_le_bytes()), &bytes[..ENTRY - 4]);
    if own.to_le_bytes() != bytes[ENTRY - 4..] {
        return Err(Code::Checksum.error(format!("entry {number} does not match its checksum")));
    }
    let mut cursor = Cursor::new(bytes);
    let mut words = [0; 5];
    for word in &mut words {
        *word = cursor.u64()?;
    }
    Ok((words, cursor.u32()?))
}
