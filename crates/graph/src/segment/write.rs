//! Writes segments: sections grow while vertices are written in the order of their places.

use std::sync::Arc;

use fieldstone_core::env::{DiskFile, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::bytes::{Cursor, Put};
use fieldstone_format::graph::{Archive, Record, TypeDecl};
use fieldstone_format::graph_segment::adjacency::{AdjacencyWriter, EdgeVersion};
use fieldstone_format::graph_segment::directory::{Directory, Page, Pages, Section, Summary};
use fieldstone_format::graph_segment::rows::{VertexVersion, put_name, put_row, put_target_row, put_vertex};
use fieldstone_format::graph_segment::{CommitKnown, OFFSETS_BYTES, PAGE, VertexPlace};

use super::packer::{PackedPage, PagePacker};
use super::{ArchiveRow, Storage, Tombstone, TypeRow};

/// The destination of a segment's bytes.
pub trait Sink {
    /// Adds bytes to a section.
    fn put(&mut self, section: Section, bytes: &[u8]) -> Result<()>;
}

/// Sections in memory.
#[derive(Debug)]
pub struct MemorySink(Vec<Vec<u8>>);

impl Default for MemorySink {
    fn default() -> MemorySink {
        MemorySink(Section::ALL.into_iter().map(|_| Vec::new()).collect())
    }
}

impl MemorySink {
    /// The written sections, as storage.
    pub fn storage(self) -> Storage {
        Storage::Memory(self.0)
    }
}

impl Sink for MemorySink {
    fn put(&mut self, section: Section, bytes: &[u8]) -> Result<()> {
        self.0[section as usize].extend_from_slice(bytes);
        Ok(())
    }
}

/// A file that is written page by page; pages of different sections follow one another as they fill.
#[derive(Debug)]
pub struct FileSink {
    file: Arc<dyn DiskFile>,
    path: std::path::PathBuf,
    /// The part of each section that does not fill a page yet.
    open: Vec<Vec<u8>>,
    sections: Vec<Pages>,
    packer: Option<PagePacker>,
    /// Pages of all sections so far.
    pages: usize,
    /// Pages that wait to be written, and their place in the file.
    waiting: Vec<u8>,
    offset: u64,
}

/// Bytes that one call writes.
const WRITE: usize = 1 << 20;
/// Number of pages from which on a thread pays.
const SMALL: usize = 64;

impl FileSink {
    /// A sink into an empty file.
    pub fn new(file: Arc<dyn DiskFile>, path: &std::path::Path) -> FileSink {
        FileSink {
            file,
            path: path.to_owned(),
            open: Section::ALL.into_iter().map(|_| Vec::with_capacity(PAGE)).collect(),
            sections: Section::ALL.into_iter().map(|_| Pages::default()).collect(),
            packer: None,
            pages: 0,
            waiting: Vec::new(),
            offset: 0,
        }
    }

    fn flush(&mut self) -> Result<()> {
        let at = self.offset - self.waiting.len() as u64;
        write_all_at(&*self.file, &self.waiting, at).map_err(|e| Error::io("write", &self.path, e))?;
        self.waiting.clear();
        Ok(())
    }

    fn page(&mut self, section: Section) -> Result<()> {
        let raw = std::mem::replace(&mut self.open[section as usize], Vec::with_capacity(PAGE));
        self.pages += 1;
        if self.pages == SMALL {
            self.packer = PagePacker::start();
        }
        let packed = match &mut self.packer {
            Some(packer) => packer.give(section, raw)?,
            None => Some(PackedPage::of(section, raw)),
        };
        packed.map_or(Ok(()), |page| self.add(&page))
    }

    fn add(&mut self, page: &PackedPage) -> Result<()> {
        let PackedPage { section, stored, crc } = page;
        let place = Page { offset: self.offset, stored: stored.len() as u32, crc: *crc };
        self.sections[*section as usize].pages.push(place);
        self.offset += stored.len() as u64;
        self.waiting.extend_from_slice(stored);
        if self.waiting.len() >= WRITE { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining bytes, the directory and the trailer; returns the file's length.
    pub fn finish(mut self, store: Id, summary: Summary) -> Result<u64> {
        for section in Section::ALL {
            if !self.open[section as usize].is_empty() {
                self.page(section)?;
            }
        }
        if let Some(mut packer) = self.packer.take() {
            while let Some(page) = packer.take()? {
                self.add(&page)?;
            }
        }
        let directory = Directory { store, summary, sections: std::mem::take(&mut self.sections) }.encode();
        let trailer = Directory::trailer(&directory, self.offset);
        for part in [directory, trailer] {
            self.offset += part.len() as u64;
            self.waiting.extend_from_slice(&part);
        }
        self.flush()?;
        Ok(self.offset)
    }
}

impl Sink for FileSink {
    fn put(&mut self, section: Section, mut bytes: &[u8]) -> Result<()> {
        self.sections[section as usize].length += bytes.len() as u64;
        while !bytes.is_empty() {
            let open = &mut self.open[section as usize];
            let n = bytes.len().min(PAGE - open.len());
            open.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if open.len() == PAGE {
                self.page(section)?;
            }
        }
        Ok(())
    }
}

/// The row of a relation's version.
#[derive(Debug, Clone, Copy)]
pub enum NewRow<'a> {
    /// The row is with the source.
    Elsewhere,
    /// A row copied from another segment.
    Bytes(&'a [u8]),
    /// Time, and the bytes of the properties.
    Content(i64, &'a [u8]),
    /// The same, at the target.
    AtTarget(i64, &'a [u8]),
}

/// The content of a segment besides vertices and relations.
pub struct Declared<'a> {
    pub types: &'a [TypeRow],
    pub archives: &'a [ArchiveRow],
}

/// A segment that is being written. Vertices come in the order of their places: each is
/// [begun](Writer::begin), gets its [groups](Writer::group) with their [versions](Writer::version) in order,
/// and is [ended](Writer::end).
pub struct Writer<'a, S: Sink> {
    sink: &'a mut S,
    base: u64,
    rows: u64,
    adjacency: u64,
    names: u64,
    relations: u64,
    /// Whether relations of the open group are counted: those that leave the vertex.
    counted: bool,
    most: u64,
    /// Rows of the vertex, and the beginning of those of its relations.
    row_bytes: Vec<u8>,
    behind: usize,
    adjacent: AdjacencyWriter,
    adjacency_bytes: Vec<u8>,
}

impl<'a, S: Sink> Writer<'a, S> {
    /// Begins a segment; stamps are relative to `base`.
    pub fn new(sink: &'a mut S, base: u64) -> Writer<'a, S> {
        Writer {
            sink,
            base,
            rows: 0,
            adjacency: 0,
            names: 0,
            relations: 0,
            counted: false,
            most: 0,
            row_bytes: Vec::new(),
            behind: 0,
            adjacent: AdjacencyWriter::new(base),
            adjacency_bytes: Vec::new(),
        }
    }

    fn offsets(&mut self) -> Result<()> {
        let mut bytes = [0; OFFSETS_BYTES];
        for (into, offset) in bytes.chunks_exact_mut(6).zip([self.rows, self.adjacency, self.names]) {
            into.copy_from_slice(&offset.to_le_bytes()[..6]);
        }
        self.sink.put(Section::Offsets, &bytes)
    }

    /// Begins the next vertex.
    pub fn begin(
        &mut self,
        place: VertexPlace,
        (kind, id): (u32, &str),
        versions: &[VertexVersion],
    ) -> Result<()> {
        self.offsets()?;
        self.sink.put(Section::Places, &place.0.to_be_bytes())?;
        self.row_bytes.clear();
        put_name(&mut self.row_bytes, kind, id);
        self.sink.put(Section::Names, &self.row_bytes)?;
        self.names += self.row_bytes.len() as u64;
        self.row_bytes.clear();
        put_vertex(&mut self.row_bytes, self.base, versions);
        self.behind = self.row_bytes.len();
        for version in versions {
            self.most = self.most.max(version.stamp);
            if version.deleted {
                let mut bytes = Vec::with_capacity(28);
                bytes.extend_from_slice(&place.0.to_be_bytes());
                bytes.put_u64(version.stamp);
                bytes.put_u32(version.user);
                self.sink.put(Section::Tombstones, &bytes)?;
            }
        }
        Ok(())
    }

    /// Begins a group of the vertex; codes ascend.
    pub fn group(&mut self, code: u32) {
        self.counted = code & 1 == 0;
        self.adjacent.group(code, (self.row_bytes.len() - self.behind) as u64);
    }

    /// Adds a version of a relation to the group; numbers of far ends ascend, and versions of one relation
    /// are newest first.
    pub fn version(&mut self, far: u32, version: EdgeVersion, row: NewRow<'_>) -> Result<()> {
        self.most = self.most.max(version.stamp);
        let before = self.row_bytes.len();
        match row {
            NewRow::Elsewhere => {}
            NewRow::Bytes(bytes) => self.row_bytes.extend_from_slice(bytes),
            NewRow::Content(time, props) => {
                put_row(&mut self.row_bytes, version.stamp, time, props);
            }
            NewRow::AtTarget(time, props) => {
                put_target_row(&mut self.row_bytes, version.stamp, time, props);
            }
        }
        self.relations += u64::from(self.counted);
        let row = u32::try_from(self.row_bytes.len() - before);
        let row = row.map_err(|_| Error::invalid("properties of a relation exceed 4 GiB"))?;
        self.adjacent.version(far, EdgeVersion { row, ..version });
        Ok(())
    }

    /// Ends the vertex.
    pub fn end(&mut self) -> Result<()> {
        self.adjacency_bytes.clear();
        self.adjacent.finish(&mut self.adjacency_bytes);
        self.sink.put(Section::Rows, &self.row_bytes)?;
        self.sink.put(Section::Adjacency, &self.adjacency_bytes)?;
        self.rows += self.row_bytes.len() as u64;
        self.adjacency += self.adjacency_bytes.len() as u64;
        Ok(())
    }

    /// Ends the segment.
    pub fn finish(
        mut self,
        vertices: u64,
        names: Vec<String>,
        users: Vec<u32>,
        known: &[CommitKnown],
        declared: &Declared<'_>,
    ) -> Result<Summary> {
        if vertices > 0 {
            self.offsets()?;
        }
        for known in known {
            self.sink
                .put(Section::Known, &[known.since.to_le_bytes(), known.stamp.to_le_bytes()].concat())?;
        }
        self.sink.put(Section::Types, &put_types(declared.types))?;
        self.sink.put(Section::Archives, &put_archives(declared.archives))?;
        let Writer { base, most, relations, .. } = self;
        Ok(Summary { vertices, relations, base, most, names, users })
    }
}

/// `types = n x { since: u64  stamp: u64  user: varint  record: bytes }`, each record as in a side record.
fn put_types(types: &[TypeRow]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in types {
        out.put_u64(row.known.since);
        out.put_u64(row.known.stamp);
        out.put_varint(u64::from(row.user));
        out.put_bytes(&Record::Types(vec![row.declared.clone()]).encode().bytes);
    }
    out
}

pub fn read_types(bytes: &[u8]) -> Result<Vec<TypeRow>> {
    let mut cursor = Cursor::new(bytes);
    let mut types = Vec::new();
    while !cursor.is_empty() {
        let known = CommitKnown { since: cursor.u64()?, stamp: cursor.u64()? };
        let user = u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a user exceeds 32 bits"))?;
        let declared: Vec<TypeDecl> = Record::decode_types(cursor.bytes()?)?;
        types.extend(declared.into_iter().map(|declared| TypeRow { known, user, declared }));
    }
    Ok(types)
}

/// `archives = n x { since: u64  stamp: u64  user: varint  before: u64  url: text }`.
fn put_archives(archives: &[ArchiveRow]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in archives {
        out.put_u64(row.known.since);
        out.put_u64(row.known.stamp);
        out.put_varint(u64::from(row.user));
        out.put_u64(row.archive.before);
        out.put_bytes(row.archive.url.as_bytes());
    }
    out
}

pub fn read_archives(bytes: &[u8]) -> Result<Vec<ArchiveRow>> {
    let mut cursor = Cursor::new(bytes);
    let mut archives = Vec::new();
    while !cursor.is_empty() {
        let known = CommitKnown { since: cursor.u64()?, stamp: cursor.u64()? };
        let user = u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a user exceeds 32 bits"))?;
        let archive = Archive { before: cursor.u64()?, url: cursor.text()?.into() };
        archives.push(ArchiveRow { known, user, archive });
    }
    Ok(archives)
}

pub fn read_tombstones(bytes: &[u8], summary: &Summary) -> Result<Vec<Tombstone>> {
    let mut cursor = Cursor::new(bytes);
    let mut tombstones = Vec::new();
    while !cursor.is_empty() {
        let place = VertexPlace(u128::from_be_bytes(cursor.array()?));
        let (stamp, user) = (cursor.u64()?, cursor.u32()?);
        let user = summary.users.get(user as usize).copied();
        let user = user.ok_or_else(|| cursor.fail("a tombstone names a user that is not there"))?;
        tombstones.push(Tombstone { place, stamp, user });
    }
    Ok(tombstones)
}
