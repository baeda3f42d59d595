//! Which bytes of a field do not match their checksums: what a copy of the store may have whole.

use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::crc;
use fieldstone_format::entry::{Blocks, Location};

use super::blocks::Source;

/// Reads bytes of a file of the store, given by path, offset and length; `None` where they are not there.
pub type ReadOwn<'a> = dyn Fn(&str, u64, u64) -> Option<Vec<u8>> + 'a;

/// A range of a file of the store that does not match its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    /// The file, relative to the store's folder.
    pub path: String,
    /// Its begin.
    pub offset: u64,
    /// Its length.
    pub length: u64,
    /// The checksum of its bytes.
    pub crc: u32,
    /// Whether it lists blocks, which can be looked at once it is whole.
    pub is_table: bool,
}

impl Source<'_> {
    /// The damaged ranges; `own` reads bytes of a file of the store, if they are there. Empty where the index alone holds the
    /// field, or a file outside the store.
    pub fn damaged(&self, own: &ReadOwn<'_>) -> Result<Vec<DamagedRange>> {
        let entry = self.entry();
        let (file, path, offset, size, blocks) = match &entry.location {
            Location::Blocks { file, offset, size, blocks } => {
                (*file, self.shown(*file), *offset, *size, blocks)
            }
            Location::Grown(grown) => {
                (grown.file, grown.path.clone(), grown.offset, grown.size, &grown.blocks)
            }
            _ => return Ok(Vec::new()),
        };
        let is_whole = |path: &str, at: u64, length: u64, sum: u32| {
            own(path, at, length).is_some_and(|bytes| crc(&bytes) == sum)
        };
        if let Blocks::Table { offset, length, crc } = blocks {
            let path = self.shown(file);
            if !is_whole(&path, *offset, *length, *crc) {
                let range =
                    DamagedRange { path, offset: *offset, length: *length, crc: *crc, is_table: true };
                return Ok(vec![range]);
            }
        }
        let layout = entry.layout(size)?;
        let listed = match self.listed(file, blocks, &layout) {
            Err(e) if e.kind() == ErrorKind::Corrupt => return Ok(Vec::new()),
            listed => listed?,
        };
        let (mut at, mut damaged) = (offset, Vec::new());
        for block in listed.iter() {
            if !is_whole(&path, at, block.stored, block.crc) {
                let (offset, length, crc) = (at, block.stored, block.crc);
                damaged.push(DamagedRange { path: path.clone(), offset, length, crc, is_table: false });
            }
            let Some(next) = at.checked_add(block.stored) else { break };
            at = next;
        }
        Ok(damaged)
    }
}
