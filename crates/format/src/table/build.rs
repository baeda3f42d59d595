//! Writing a table row by row.

use fieldstone_core::{Error, Result};

use super::{BLOCK_TARGET, BlockRef, BlockSink, HEIGHT_MAX, TableRef, pack_block};
use crate::bytes::Put;
use crate::segment::shared_prefix;

/// Writes a table from rows in order. Memory: one open block for each level of the tree.
#[derive(Debug, Default)]
pub struct TableBuilder {
    /// The open block of each level; the leaves first.
    levels: Vec<OpenBlock>,
    rows: u64,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

/// A block that is not full yet.
#[derive(Debug, Default)]
struct OpenBlock {
    body: Vec<u8>,
    /// Rows below it.
    rows: u64,
    first_key: Vec<u8>,
    /// The last key in the block, which the next one is shortened by.
    last_key: Vec<u8>,
    /// Number of items.
    items: u64,
}

impl OpenBlock {
    fn put_key(&mut self, key: &[u8], out_before_key: &[u8]) {
        self.body.extend_from_slice(out_before_key);
        let shared = if self.items == 0 { 0 } else { shared_prefix(&self.last_key, key) };
        self.body.put_varint(shared as u64);
        self.body.put_bytes(&key[shared..]);
        if self.items == 0 {
            self.first_key = key.to_vec();
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.items += 1;
    }
}

impl TableBuilder {
    /// A table without rows.
    pub fn new() -> TableBuilder {
        TableBuilder::default()
    }

    /// Number of rows so far; the number of the next one.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Key of the last row.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Adds a row, whose key is not less than the one before.
    pub fn push(&mut self, key: &[u8], value: &[u8], sink: &mut dyn BlockSink) -> Result<()> {
        if self.rows > 0 && key < &self.last_key[..] {
            return Err(Error::internal("rows of a table are not in order"));
        }
        if self.rows == 0 {
            self.first_key = key.to_vec();
            self.levels = vec![OpenBlock::default()];
        }
        let leaf = &mut self.levels[0];
        leaf.put_key(key, &[]);
        leaf.body.put_bytes(value);
        leaf.rows += 1;
        self.rows += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        if leaf.body.len() >= BLOCK_TARGET {
            self.close(0, sink)?;
        }
        Ok(())
    }

    /// Closes the open block of a level and names it in the one above.
    fn close(&mut self, level: usize, sink: &mut dyn BlockSink) -> Result<()> {
        let mut level = level;
        loop {
            let block = std::mem::take(&mut self.levels[level]);
            let reference = sink.put(&pack_block(&block.body))?;
            level += 1;
            if level == self.levels.len() {
                if level > usize::from(HEIGHT_MAX) {
                    return Err(Error::internal("a table is too high"));
                }
                self.levels.push(OpenBlock::default());
            }
            let above = &mut self.levels[level];
            above.add(reference, &block);
            if above.body.len() < BLOCK_TARGET || above.items < 2 {
                return Ok(());
            }
        }
    }

    /// The table; `None` without rows. All of it is in `sink` then.
    pub fn finish(mut self, sink: &mut dyn BlockSink) -> Result<Option<TableRef>> {
        if self.rows == 0 {
            return Ok(None);
        }
        let mut level = 0;
        loop {
            let top = level + 1 == self.levels.len();
            let block = std::mem::take(&mut self.levels[level]);
            if block.items == 0 {
                // Everything of this level is closed and named above.
                level += 1;
                continue;
            }
            let reference = match (top, block.only_child()) {
                // A root with one child is not needed: the child is the root.
                (true, Some(child)) if level > 0 => {
                    level -= 1;
                    child
                }
                _ => sink.put(&pack_block(&block.body))?,
            };
            if top {
                let height = level as u8;
                let (first_key, last_key) = (self.first_key, self.last_key);
                return Ok(Some(TableRef { rows: self.rows, height, root: reference, first_key, last_key }));
            }
            level += 1;
            self.levels[level].add(reference, &block);
        }
    }
}

impl OpenBlock {
    /// Names a closed block of the level below.
    fn add(&mut self, reference: BlockRef, block: &OpenBlock) {
        let mut head = Vec::with_capacity(24);
        reference.put(&mut head);
        head.put_varint(block.rows);
        self.put_key(&block.first_key, &head);
        self.rows += block.rows;
    }

    /// The only child of an inner block.
    fn only_child(&self) -> Option<BlockRef> {
        let mut cursor = crate::bytes::Cursor::new(&self.body);
        (self.items == 1).then(|| BlockRef::decode(&mut cursor).ok()).flatten()
    }
}
