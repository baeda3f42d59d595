//! A path list: for each path with objects of a writer, the number of these objects, the size of their data,
//! and the writer's blocks that hold them.
//!
//! The lists of all writers are concatenated directly before the index table, so that one read, without any
//! block, gives the content of every path.
//!
//! Invariants of a decoded list: paths ascend by bytes, are unique and have at least one object; blocks are
//! among the writer's; every byte is used. An entry borrows its path, so a list takes no memory besides its
//! bytes.
//!
//! ```
//! use fieldstone_format::partitioned::{ListedPath, PathList, path_list};
//! let listed = ListedPath { path: "event_1", vars: 2, data: 40, ..ListedPath::default() };
//! let bytes = path_list(&[listed]).unwrap();
//! let mut list = PathList::new(&bytes, 1);
//! assert_eq!(list.next_path().unwrap(), Some(listed));
//! assert_eq!(list.next_path().unwrap(), None);
//! ```

use fieldstone_core::{Code, Error, Result};

use super::Cursor;

/// One writer's objects directly under a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListedPath<'a> {
    /// The path; empty for objects without one.
    pub path: &'a str,
    /// Dimensions.
    pub dims: u32,
    /// Global attributes.
    pub attrs: u32,
    /// Variables.
    pub vars: u32,
    /// The first of the writer's blocks (from 0) with such an object.
    pub first_block: u32,
    /// The last of them.
    pub last_block: u32,
    /// Bytes of data of fixed variables, without padding.
    pub data: u64,
    /// Bytes of data of record variables in one record, without padding.
    pub record_data: u64,
}

/// Encodes a list. The paths must ascend.
///
/// Errors: `Invalid` for a path of more than 65,535 bytes.
pub fn path_list(paths: &[ListedPath<'_>]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(paths.iter().map(|listed| ENTRY + listed.path.len()).sum());
    for listed in paths {
        let len = u16::try_from(listed.path.len()).map_err(|_| {
            Code::Name.error(format!("the path `{}` takes {} bytes", listed.path, listed.path.len()))
        })?;
        out.extend_from_slice(&len.to_be_bytes());
        for value in [listed.dims, listed.attrs, listed.vars, listed.first_block, listed.last_block] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        out.extend_from_slice(&listed.data.to_be_bytes());
        out.extend_from_slice(&listed.record_data.to_be_bytes());
        out.extend_from_slice(listed.path.as_bytes());
    }
    Ok(out)
}

/// Bytes of an entry before its path.
const ENTRY: usize = 38;

/// Decodes a list that matched its checksum, path by path.
#[derive(Debug, Clone)]
pub struct PathList<'a> {
    rest: Cursor<'a>,
    len: usize,
    blocks: u32,
    before: Option<&'a str>,
}

impl<'a> PathList<'a> {
    /// The list of a writer with `blocks` blocks.
    pub fn new(bytes: &'a [u8], blocks: u32) -> PathList<'a> {
        PathList { rest: Cursor::new(bytes, "path list"), len: bytes.len(), blocks, before: None }
    }

    /// Position of the next entry in the list.
    pub fn at(&self) -> usize {
        self.len - self.rest.bytes.len()
    }

    /// The next path; `None` after the last. Errors: `Corrupt` with the broken rule.
    pub fn next_path(&mut self) -> Result<Option<ListedPath<'a>>> {
        if self.rest.bytes.is_empty() {
            return Ok(None);
        }
        let at = self.at();
        let rest = &mut self.rest;
        let len = rest.u16()?;
        let mut listed = ListedPath {
            dims: rest.u32()?,
            attrs: rest.u32()?,
            vars: rest.u32()?,
            first_block: rest.u32()?,
            last_block: rest.u32()?,
            data: rest.u64()?,
            record_data: rest.u64()?,
            ..ListedPath::default()
        };
        listed.path = rest.text(usize::from(len))?;
        let wrong = |rule: &str| {
            let path = listed.path.escape_debug();
            Err(Error::corrupt(format!("path list: the entry of `{path}` at byte {at}: {rule}")))
        };
        if self.before.is_some_and(|before| before >= listed.path) {
            return wrong("paths must ascend and be unique");
        }
        if (listed.dims, listed.attrs, listed.vars) == (0, 0, 0) {
            return wrong("a path of the list must have an object");
        }
        if listed.first_block > listed.last_block || listed.last_block >= self.blocks {
            return wrong("its blocks must ascend and be the writer's");
        }
        self.before = Some(listed.path);
        Ok(Some(listed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<ListedPath<'static>> {
        let of = |path, dims, attrs, vars, first_block, last_block| ListedPath {
            path,
            dims,
            attrs,
            vars,
            first_block,
            last_block,
            data: 1 << 40,
            record_data: 7,
        };
        vec![of("", 1, 0, 0, 0, 0), of("a", 0, 2, 0, 0, 3), of("a/ö", 0, 0, 3, 1, 1), of("b", 4, 5, 6, 2, 3)]
    }

    fn read(bytes: &[u8], blocks: u32) -> Result<Vec<ListedPath<'_>>> {
        let mut list = PathList::new(bytes, blocks);
        let mut found = Vec::new();
        while let Some(listed) = list.next_path()? {
            found.push(listed);
        }
        assert_eq!(list.at(), bytes.len());
        Ok(found)
    }

    #[test]
    fn what_is_listed_is_read() {
        let bytes = path_list(&sample()).unwrap();
        assert_eq!(bytes.len(), 4 * ENTRY + 1 + 4 + 1);
        assert_eq!(read(&bytes, 4).unwrap(), sample());
        assert_eq!(read(&[], 0).unwrap(), []);
        let mut list = PathList::new(&bytes, 4);
        list.next_path().unwrap();
        assert_eq!(list.at(), ENTRY);
        let long = "x".repeat(1 << 16);
        let error = path_list(&[ListedPath { path: &long, ..sample()[0] }]).unwrap_err();
        assert!(error.message().contains("65536"), "{error}");
    }

    #[test]
    fn each_broken_rule_is_reported() {
        let refused = |change: fn(&mut Vec<ListedPath<'static>>), blocks: u32, rule: &str| {
            let mut list = sample();
            change(&mut list);
            let error = read(&path_list(&list).unwrap(), blocks).map(drop).unwrap_err();
            assert!(error.message().contains(rule), "{error}");
        };
        refused(|list| list.swap(1, 2), 4, "`a` at byte 80: paths must ascend");
        refused(|list| list[2].path = "a", 4, "be unique");
        refused(|list| list[0].dims = 0, 4, "`` at byte 0: a path of the list must have an object");
        refused(|list| list[2].last_block = 0, 4, "its blocks must ascend");
        refused(|_| {}, 3, "be the writer's");
        let bytes = path_list(&sample()).unwrap();
        let whole: Vec<usize> = (0..bytes.len()).filter(|len| read(&bytes[..*len], 4).is_ok()).collect();
        assert_eq!(whole, [0, 38, 77, 119], "only whole entries are read");
        // No changed bit makes it panic, whatever it reads.
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = read(&damaged, 4);
        }
    }
}
