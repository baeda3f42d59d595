//! Sorted entries of fixed length in checksummed pages.
//!
//! Two indexes have this form: the **path index** (hash of a path, writer, number of the writer's objects
//! there) and each writer's **name index** (hash of an object's path, its number with the writer).
//!
//! Invariants: entries ascend as bytes, in a page and from page to page; no page is empty, but any page may
//! be partly filled; hashes only lead to a place, and the name at that place decides.
//!
//! ```
//! use fieldstone_format::partitioned::{Page, pages};
//! let mut out = Vec::new();
//! pages::write(&[[0u8, 1], [0, 7], [3, 3]], &mut out);
//! let page = Page::decode(&out, 2).unwrap();
//! assert_eq!(page.starting_with(&[0]).count(), 2);
//! ```

use crc32c::crc32c;
use fieldstone_core::{Code, Error, Result};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::Cursor;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Bytes of a page before its entries: checksum and number of entries.
pub const PAGE_HEAD: usize = 8;
/// Bytes of an entry of a name index.
pub const NAME_ENTRY: usize = 8;
/// Bytes of an entry of the path index.
pub const PATH_ENTRY: usize = 32;

/// Entries of `entry` bytes that a page holds.
pub fn entries_per_page(entry: usize) -> usize {
    (PAGE - PAGE_HEAD) / entry
}

/// Pages that `entries` entries of `entry` bytes take.
pub fn pages_of(entries: u64, entry: usize) -> u64 {
    entries.div_ceil(entries_per_page(entry) as u64)
}

/// Appends pages with the entries, which must ascend.
pub fn write<const N: usize>(entries: &[[u8; N]], out: &mut Vec<u8>) {
    for chunk in entries.chunks(entries_per_page(N)) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
        out.extend_from_slice(chunk.as_flattened());
        out.resize(start + PAGE, 0);
        let crc = crc32c(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&crc.to_be_bytes());
    }
}

/// A page that matched its checksum.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    entries: &'a [u8],
    entry: usize,
}

impl<'a> Page<'a> {
    /// Checks a page of entries of `entry` bytes.
    pub fn decode(bytes: &'a [u8], entry: usize) -> Result<Page<'a>> {
        let mut cursor = Cursor::new(bytes, "index page");
        let page = cursor.take(PAGE)?;
        let mut cursor = Cursor::new(page, "index page");
        if cursor.u32()? != crc32c(&page[4..]) {
            return Err(Code::Checksum.error("a page of the index does not match its checksum"));
        }
        let count = cursor.u32()? as usize;
        if count == 0 || count > entries_per_page(entry) {
            return Err(Error::corrupt(format!("a page of the index claims to hold {count} entries")));
        }
        Ok(Page { entries: cursor.take(count * entry)?, entry })
    }

    /// Its entries.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.entries.chunks_exact(self.entry)
    }

    /// Its first entry.
    pub fn first(&self) -> &'a [u8] {
        &self.entries[..self.entry]
    }

    /// Its last entry.
    pub fn last(&self) -> &'a [u8] {
        &self.entries[self.entries.len() - self.entry..]
    }

    /// Its entries that begin with `key`.
    pub fn starting_with<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'k> {
        let (mut low, mut high) = (0, self.entries.len() / self.entry);
        while low < high {
            let middle = (low + high) / 2;
            let entry = &self.entries[middle * self.entry..][..self.entry];
            if entry < key { low = middle + 1 } else { high = middle }
        }
        let rest = self.entries[low * self.entry..].chunks_exact(self.entry);
        rest.take_while(move |entry| entry.starts_with(key))
    }
}

/// The first bytes of a name index entry for the object with this path.
pub fn name_key(path: &str) -> [u8; 4] {
    ((xxh3_64(path.as_bytes()) >> 32) as u32).to_be_bytes()
}

/// An entry of a name index. `number` is the object's number among its writer's dimensions or variables,
/// below 2^31.
pub fn name_entry(key: [u8; 4], is_var: bool, number: u32) -> [u8; NAME_ENTRY] {
    let mut entry = [0; NAME_ENTRY];
    entry[..4].copy_from_slice(&key);
    entry[4..].copy_from_slice(&(number | u32::from(is_var) << 31).to_be_bytes());
    entry
}

/// Decodes an entry of a name index: whether it is a variable, and its number with the writer.
pub fn read_name_entry(entry: &[u8]) -> Result<(bool, u32)> {
    let mut cursor = Cursor::new(entry, "entry of a name index");
    cursor.u32()?;
    let number = cursor.u32()?;
    Ok((number >> 31 == 1, number & !(1 << 31)))
}

/// The first bytes of a path index entry.
pub fn path_hash(path: &str) -> [u8; 16] {
    xxh3_128(path.as_bytes()).to_be_bytes()
}

/// Number of a writer's objects under a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// The writer.
    pub writer: u32,
    /// Dimensions.
    pub dims: u32,
    /// Global attributes.
    pub attrs: u32,
    /// Variables.
    pub vars: u32,
}

/// An entry of the path index.
pub fn path_entry(hash: [u8; 16], counts: &PathCounts) -> [u8; PATH_ENTRY] {
    let mut entry = [0; PATH_ENTRY];
    entry[..16].copy_from_slice(&hash);
    let values = [counts.writer, counts.dims, counts.attrs, counts.vars];
    for (place, value) in entry[16..].chunks_exact_mut(4).zip(values) {
        place.copy_from_slice(&value.to_be_bytes());
    }
    entry
}

/// Decodes an entry of the path index.
pub fn read_path_entry(entry: &[u8]) -> Result<PathCounts> {
    let mut cursor = Cursor::new(entry, "entry of the path index");
    cursor.take(16)?;
    let (writer, dims) = (cursor.u32()?, cursor.u32()?);
    Ok(PathCounts { writer, dims, attrs: cursor.u32()?, vars: cursor.u32()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_and_no_other() {
        let mut entries: Vec<[u8; 8]> =
            (0..2_000u32).map(|i| name_entry((i / 3 * 7).to_be_bytes(), i % 2 == 0, i)).collect();
        entries.sort_unstable();
        let mut out = Vec::new();
        write(&entries, &mut out);
        assert_eq!(out.len() as u64, pages_of(2_000, 8) * PAGE as u64);
        let pages: Vec<Page> = out.chunks(PAGE).map(|page| Page::decode(page, 8).unwrap()).collect();
        assert_eq!(pages.iter().map(|page| page.entries().len()).sum::<usize>(), 2_000);
        for key in 0..700u32 * 7 {
            let wanted = entries.iter().filter(|entry| entry[..4] == key.to_be_bytes()).count();
            let key = key.to_be_bytes();
            assert_eq!(pages.iter().map(|page| page.starting_with(&key).count()).sum::<usize>(), wanted);
        }
    }

    #[test]
    fn a_flipped_bit_of_a_page_is_seen() {
        let mut out = Vec::new();
        write(
            &[path_entry(path_hash("a/b"), &PathCounts { writer: 1, dims: 2, attrs: 3, vars: 4 })],
            &mut out,
        );
        assert_eq!(read_path_entry(Page::decode(&out, 32).unwrap().first()).unwrap().attrs, 3);
        for bit in 0..PAGE * 8 {
            out[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::decode(&out, 32).is_err(), "bit {bit}");
            out[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
