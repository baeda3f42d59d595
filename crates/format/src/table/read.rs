//! Reading a table by key, by number, or from end to end.

use std::sync::Arc;

use fieldstone_core::{Error, Result};

use super::{BlockRef, BlockSource, TableRef};
use crate::bytes::Cursor;

/// Walks the rows of a table. Holds one block for each level of the tree.
#[derive(Debug)]
pub struct TableCursor<S> {
    table: TableRef,
    source: S,
    /// The open blocks, from the root to a leaf; empty before the first row.
    path: Vec<OpenBlock>,
    /// Number of the current row.
    row: u64,
    /// The block that the last move could not read.
    failed: Option<BlockRef>,
}

/// A block, and where the cursor is in it.
#[derive(Debug)]
struct OpenBlock {
    body: Arc<[u8]>,
    position: usize,
    key: Vec<u8>,
    /// Of a leaf: the current value. Of an inner block: nothing.
    value: (usize, usize),
    /// Of an inner block: the current child, and its rows.
    child: Option<(BlockRef, u64)>,
    /// Number of the block's first row.
    first_row: u64,
    /// Rows before the current item, within the block.
    before: u64,
    /// Rows below the block, as its parent says.
    rows: u64,
}

impl OpenBlock {
    fn new(body: Arc<[u8]>, first_row: u64, rows: u64) -> OpenBlock {
        OpenBlock {
            body,
            position: 0,
            key: Vec::new(),
            value: (0, 0),
            child: None,
            first_row,
            before: 0,
            rows,
        }
    }

    fn is_done(&self) -> bool {
        self.position == self.body.len()
    }

    fn read_key(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let (shared, before) = (cursor.size()?, self.key.len());
        if shared > before || (self.position == 0 && shared > 0) {
            return Err(cursor.fail("a key shares more than the earlier key has"));
        }
        let rest = cursor.bytes()?;
        if self.position > 0 && rest < &self.key[shared..] {
            return Err(cursor.fail("rows of a table are not in order"));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        Ok(())
    }

    /// Moves to the next row of a leaf.
    fn next_row(&mut self) -> Result<()> {
        let body = self.body.clone();
        let mut cursor = Cursor::new(&body[self.position..]);
        if self.position > 0 {
            self.before += 1;
        }
        self.read_key(&mut cursor)?;
        let length = cursor.size()?;
        let start = self.position + cursor.position();
        cursor.take(length)?;
        self.value = (start, start + length);
        self.position = start + length;
        if self.is_done() && self.before + 1 != self.rows {
            return Err(Error::corrupt("a block of a table has another number of rows than its parent says"));
        }
        Ok(())
    }

    /// Moves to the next child of an inner block.
    fn next_child(&mut self) -> Result<()> {
        let body = self.body.clone();
        let mut cursor = Cursor::new(&body[self.position..]);
        self.before += self.child.map_or(0, |(_, rows)| rows);
        let (reference, rows) = (BlockRef::decode(&mut cursor)?, cursor.varint()?);
        self.read_key(&mut cursor)?;
        self.child = Some((reference, rows));
        self.position += cursor.position();
        let upto = self.before.checked_add(rows);
        let whole =
            upto.is_some_and(|upto| if self.is_done() { upto == self.rows } else { upto < self.rows });
        if rows == 0 || !whole {
            return Err(cursor.fail("the rows of a block's children do not add up"));
        }
        Ok(())
    }

    /// The key of the item after the current one, and its rows if it is a child; `None` at the end.
    fn peek_child(&self) -> Result<Option<(Vec<u8>, u64)>> {
        if self.is_done() {
            return Ok(None);
        }
        let mut cursor = Cursor::new(&self.body[self.position..]);
        let (_, rows) = (BlockRef::decode(&mut cursor)?, cursor.varint()?);
        let shared = cursor.size()?;
        let known = self.key.get(..shared).ok_or_else(|| cursor.fail("a key shares more than there is"))?;
        Ok(Some(([known, cursor.bytes()?].concat(), rows)))
    }
}

impl<S: BlockSource> TableCursor<S> {
    /// A cursor before the first row.
    pub fn new(table: &TableRef, source: S) -> TableCursor<S> {
        TableCursor { table: table.clone(), source, path: Vec::new(), row: 0, failed: None }
    }

    /// The current row's key.
    pub fn key(&self) -> &[u8] {
        self.path.last().map_or(&[], |leaf| &leaf.key)
    }

    /// The current row's value.
    pub fn value(&self) -> &[u8] {
        self.path.last().map_or(&[], |leaf| &leaf.body[leaf.value.0..leaf.value.1])
    }

    /// The current row's number.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// The number of the first row of the current leaf, and the number of its rows.
    pub fn leaf(&self) -> (u64, u64) {
        self.path.last().map_or((0, 0), |leaf| (leaf.first_row, leaf.rows))
    }

    /// After an error, the block that could not be read, if it was one.
    pub fn failed(&self) -> Option<&BlockRef> {
        self.failed.as_ref()
    }

    /// Whether it is between the first and the last row; after an error, whether it can go on.
    pub fn is_inside(&self) -> bool {
        !self.path.is_empty()
    }

    /// Moves to the next row; `false` at the end. After an error it goes on behind the block that could not be read.
    pub fn advance(&mut self) -> Result<bool> {
        self.failed = None;
        if self.path.is_empty() {
            self.open_root()?;
        } else {
            while self.path.last().is_some_and(OpenBlock::is_done) {
                self.path.pop();
            }
            if self.path.is_empty() {
                return Ok(false);
            }
        }
        while self.path.len() <= usize::from(self.table.height) {
            self.open_next_child()?;
        }
        self.next_row()
    }

    /// Moves on to the next row under the current key; `false` if there is none. A leaf is opened only if it can hold one.
    pub fn advance_under(&mut self, key: &[u8]) -> Result<bool> {
        if self.path.last().is_some_and(OpenBlock::is_done) {
            let above = self.path.iter().rev().find(|block| !block.is_done());
            match above.map(OpenBlock::peek_child).transpose()?.flatten() {
                Some((next, _)) if next == key => {}
                _ => return Ok(false),
            }
        }
        Ok(self.advance()? && self.key() == key)
    }

    /// Moves to the first row whose key is at least `key`, from wherever the cursor is; `false` if there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if key > &self.table.last_key[..] {
            self.path.clear();
            return Ok(false);
        }
        self.descend(|next, _| next < key)?;
        while self.advance()? {
            if self.key() >= key {
                return Ok(true);
            }
        }
        Err(Error::corrupt("a table ends before its last key"))
    }

    /// Moves to the row of a number; `false` if there is none.
    pub fn seek_row(&mut self, number: u64) -> Result<bool> {
        if number >= self.table.rows {
            self.path.clear();
            return Ok(false);
        }
        self.descend(|_, first_row| first_row <= number)?;
        while self.advance()? {
            if self.row == number {
                return Ok(true);
            }
        }
        Err(Error::corrupt("a table ends before its last row"))
    }

    /// Moves to the row of a number, from the current one where both are in one leaf and it comes later.
    pub fn go_to_row(&mut self, number: u64) -> Result<bool> {
        let (first, rows) = self.leaf();
        let is_ahead = self.path.last().is_some_and(|leaf| leaf.position > 0) && self.row <= number;
        if !is_ahead || self.path.len() <= usize::from(self.table.height) || number - first >= rows {
            return self.seek_row(number);
        }
        while self.row < number {
            if !self.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Opens the blocks down to the last leaf of which `is_before` holds, given its first key and first number. Rows with
    /// one key may begin in a leaf before the one that begins with the key.
    fn descend(&mut self, is_before: impl Fn(&[u8], u64) -> bool) -> Result<()> {
        self.path.clear();
        self.failed = None;
        self.open_root()?;
        while self.path.len() <= usize::from(self.table.height) {
            let block = self.path.last_mut().ok_or_else(|| Error::internal("no block is open"))?;
            block.next_child()?;
            while let Some((next, _)) = block.peek_child()? {
                let rows = block.child.map_or(0, |(_, rows)| rows);
                if !is_before(&next, block.first_row + block.before + rows) {
                    break;
                }
                block.next_child()?;
            }
            self.open_child()?;
        }
        Ok(())
    }

    fn open_root(&mut self) -> Result<()> {
        let root = self.table.root;
        let body = self.source.block(&root).inspect_err(|_| self.failed = Some(root))?;
        self.push(body, 0, self.table.rows, None)
    }

    fn open_next_child(&mut self) -> Result<()> {
        let block = self.path.last_mut().ok_or_else(|| Error::internal("no block is open"))?;
        if let Err(e) = block.next_child() {
            self.path.pop();
            return Err(e);
        }
        self.open_child()
    }

    /// Opens the current child of the lowest block.
    fn open_child(&mut self) -> Result<()> {
        let block = self.path.last().ok_or_else(|| Error::internal("no block is open"))?;
        let (reference, rows) = block.child.ok_or_else(|| Error::internal("no child is chosen"))?;
        let (first_row, key) = (block.first_row + block.before, block.key.clone());
        let body = self.source.block(&reference).inspect_err(|_| self.failed = Some(reference))?;
        self.push(body, first_row, rows, Some(key))
    }

    /// Opens a block. Its first key must be the one that its parent names.
    fn push(&mut self, body: Arc<[u8]>, first_row: u64, rows: u64, named: Option<Vec<u8>>) -> Result<()> {
        let is_leaf = self.path.len() == usize::from(self.table.height);
        let mut cursor = Cursor::new(&body);
        if !is_leaf {
            let _ = (BlockRef::decode(&mut cursor)?, cursor.varint()?);
        }
        let first = (cursor.size()?, cursor.bytes()?);
        let expected = named.as_deref().unwrap_or(&self.table.first_key);
        if first != (0, expected) {
            return Err(Error::corrupt("a block of a table begins with another key than its parent says"));
        }
        self.path.push(OpenBlock::new(body, first_row, rows));
        Ok(())
    }

    fn next_row(&mut self) -> Result<bool> {
        let leaf = self.path.last_mut().ok_or_else(|| Error::internal("no block is open"))?;
        if let Err(e) = leaf.next_row() {
            self.path.pop();
            return Err(e);
        }
        self.row = leaf.first_row + leaf.before;
        Ok(true)
    }
}

/// Reads every row of a table and checks that the tree and the order are right, for `verify`.
#[derive(Debug, Default)]
pub struct CheckedRows {
    /// Number of rows.
    pub rows: u64,
    last_key: Vec<u8>,
}

impl CheckedRows {
    /// Walks a table; calls `each` with every key and value.
    pub fn walk(
        table: &TableRef,
        source: impl BlockSource,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<CheckedRows> {
        let (mut cursor, mut seen) = (TableCursor::new(table, source), CheckedRows::default());
        while cursor.advance()? {
            if seen.rows > 0 && cursor.key() < &seen.last_key[..] {
                return Err(Error::corrupt("rows of a table are not in order"));
            }
            seen.last_key.clear();
            seen.last_key.extend_from_slice(cursor.key());
            seen.rows += 1;
            each(cursor.key(), cursor.value())?;
        }
        if seen.rows != table.rows || seen.last_key != table.last_key {
            return Err(Error::corrupt("a table ends elsewhere than its reference says"));
        }
        Ok(seen)
    }
}
