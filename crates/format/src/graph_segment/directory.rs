//! The directory of a segment's file, which follows the pages and lists the sections; and the trailer, which
//! locates the directory.
//!
//! ```text
//! file      = pages  directory  trailer
//! directory = version: varint  store: id  vertices: varint  relations: varint  base: u64  most: u64
//!             names: list text  users: list varint  sections x section
//! section   = length: varint  pages: varint  pages x { offset: varint  stored: varint  crc: u32 }
//! trailer   = offset: u64  length: u64  crc: u32 of the directory  crc: u32 of the 20 bytes before  magic: 8 bytes
//! ```
//! Page i of a section holds its bytes from 16,384 i; it is compressed if its stored length is shorter.

use fieldstone_core::Result;

use super::PAGE;
use crate::bytes::{Cursor, Put};
use crate::{Id, crc, unknown_version};

/// The last bytes of a segment's file.
pub const MAGIC: [u8; 8] = *b"FSGRAPHS";
/// Bytes of the trailer.
pub const TRAILER: usize = 32;
const VERSION: u64 = 3;

/// A section of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Section {
    /// Places of vertices, ascending.
    Places,
    /// For each vertex, and once after the last: the positions of its rows, its adjacency and its name.
    Offsets,
    /// Rows.
    Rows,
    /// Adjacency.
    Adjacency,
    /// Commits that brought content: for each the stamp that made it visible and its own, `u64` each,
    /// ascending.
    Known,
    /// Deletions of vertices: place, stamp `u64`, index of the user `u32`; by place, newest first.
    Tombstones,
    /// Declared types.
    Types,
    /// Names of vertices.
    Names,
    /// Stores to which content moved.
    Archives,
}

impl Section {
    /// Every section, in order.
    pub const ALL: [Section; 9] = [
        Section::Places,
        Section::Offsets,
        Section::Rows,
        Section::Adjacency,
        Section::Known,
        Section::Tombstones,
        Section::Types,
        Section::Names,
        Section::Archives,
    ];
}

/// The position of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Offset in the file.
    pub offset: u64,
    /// Stored bytes.
    pub stored: u32,
    /// CRC-32C of the stored bytes.
    pub crc: u32,
}

/// The pages of one section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pages {
    /// Raw bytes.
    pub length: u64,
    /// The pages.
    pub pages: Vec<Page>,
}

impl Pages {
    /// Raw bytes of a page.
    pub fn raw_len(&self, page: usize) -> usize {
        (self.length - (page * PAGE) as u64).min(PAGE as u64) as usize
    }
}

/// Summary of a segment, known before any page is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Vertices.
    pub vertices: u64,
    /// Versions of relations.
    pub relations: u64,
    /// The stamp to which other stamps are relative.
    pub base: u64,
    /// The highest stamp.
    pub most: u64,
    /// Names of types of vertices and relations.
    pub names: Vec<String>,
    /// Users.
    pub users: Vec<u32>,
}

/// The directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The store's id.
    pub store: Id,
    /// Its summary.
    pub summary: Summary,
    /// Its sections, in the order of [`Section::ALL`].
    pub sections: Vec<Pages>,
}

impl Directory {
    /// Encodes the directory.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Summary { vertices, relations, base, most, names, users } = &self.summary;
        out.put_varint(VERSION);
        out.put_id(self.store);
        out.put_varint(*vertices);
        out.put_varint(*relations);
        out.put_u64(*base);
        out.put_u64(*most);
        out.put_varint(names.len() as u64);
        names.iter().for_each(|name| out.put_bytes(name.as_bytes()));
        out.put_varint(users.len() as u64);
        users.iter().for_each(|user| out.put_varint(u64::from(*user)));
        for Pages { length, pages } in &self.sections {
            out.put_varint(*length);
            out.put_varint(pages.len() as u64);
            for page in pages {
                out.put_varint(page.offset);
                out.put_varint(u64::from(page.stored));
                out.put_u32(page.crc);
            }
        }
        out
    }

    /// The trailer of a directory at an offset.
    pub fn trailer(bytes: &[u8], offset: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(TRAILER);
        out.put_u64(offset);
        out.put_u64(bytes.len() as u64);
        out.put_u32(crc(bytes));
        out.put_u32(crc(&out.clone()));
        out.extend_from_slice(&MAGIC);
        out
    }

    /// Position, length and checksum of the directory.
    pub fn find(trailer: &[u8; TRAILER], file: u64) -> Result<(u64, u64, u32)> {
        let mut cursor = Cursor::new(trailer);
        let (offset, length, sum) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
        if cursor.u32()? != crc(&trailer[..20]) || cursor.array()? != MAGIC {
            return Err(cursor.fail("the trailer of a segment is damaged"));
        }
        match offset.checked_add(length).and_then(|end| end.checked_add(TRAILER as u64)) {
            Some(end) if end == file => Ok((offset, length, sum)),
            _ => Err(cursor.fail("the trailer of a segment does not fit its file")),
        }
    }

    /// Decodes a directory whose checksum was checked; its pages must be before `end`.
    pub fn decode(bytes: &[u8], end: u64) -> Result<Directory> {
        let mut cursor = Cursor::new(bytes);
        let version = cursor.varint()?;
        if version != VERSION {
            return Err(unknown_version("a segment of the graph", version));
        }
        let store = cursor.id()?;
        let (vertices, relations) = (cursor.varint()?, cursor.varint()?);
        let (base, most) = (cursor.u64()?, cursor.u64()?);
        let (mut names, mut users) = (Vec::new(), Vec::new());
        for _ in 0..cursor.count(1)? {
            names.push(cursor.text()?.to_owned());
        }
        for _ in 0..cursor.count(1)? {
            let user = u32::try_from(cursor.varint()?);
            users.push(user.map_err(|_| cursor.fail("a user's number exceeds 32 bits"))?);
        }
        let mut sections = Vec::with_capacity(Section::ALL.len());
        for _ in Section::ALL {
            sections.push(read_pages(&mut cursor, end)?);
        }
        let summary = Summary { vertices, relations, base, most, names, users };
        if cursor.is_empty() {
            Ok(Directory { store, summary, sections })
        } else {
            Err(cursor.fail("a directory is longer than its content"))
        }
    }
}

fn read_pages(cursor: &mut Cursor<'_>, end: u64) -> Result<Pages> {
    let length = cursor.varint()?;
    let n = cursor.count(6)?;
    if length.div_ceil(PAGE as u64) != n as u64 {
        return Err(cursor.fail("a section's number of pages does not match its length"));
    }
    let mut pages = Pages { length, pages: Vec::with_capacity(n) };
    for i in 0..n {
        let (offset, stored, crc) = (cursor.varint()?, cursor.varint()?, cursor.u32()?);
        let fits = offset.checked_add(stored).is_some_and(|to| to <= end);
        if !fits || stored as usize > pages.raw_len(i) {
            return Err(cursor.fail("a page is outside its file"));
        }
        pages.pages.push(Page { offset, stored: stored as u32, crc });
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Directory {
        let page = Page { offset: 10, stored: 20, crc: 30 };
        let pages = Pages { length: PAGE as u64 + 20, pages: vec![page, page] };
        let summary =
            Summary { vertices: 3, names: vec!["file".into()], users: vec![7], ..Summary::default() };
        let sections = Section::ALL.into_iter().map(|_| pages.clone()).collect();
        Directory { store: Id([3; 16]), summary, sections }
    }

    #[test]
    fn a_directory_comes_back() {
        let bytes = directory().encode();
        assert_eq!(Directory::decode(&bytes, 30).unwrap(), directory());
        assert!(Directory::decode(&bytes, 29).is_err(), "a page after the end");
        for cut in 0..bytes.len() {
            assert!(Directory::decode(&bytes[..cut], 30).is_err());
        }
    }

    #[test]
    fn a_trailer_fits_its_file_alone() {
        let bytes = directory().encode();
        let trailer: [u8; TRAILER] = Directory::trailer(&bytes, 100).try_into().unwrap();
        let end = 100 + bytes.len() as u64 + TRAILER as u64;
        assert_eq!(Directory::find(&trailer, end).unwrap(), (100, bytes.len() as u64, crc(&bytes)));
        assert!(Directory::find(&trailer, end + 1).is_err());
        for bit in 0..TRAILER * 8 {
            let mut flipped = trailer;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Directory::find(&flipped, end).is_err(), "bit {bit}");
        }
    }
}
