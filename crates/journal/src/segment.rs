//! Segments as they are read: meta part, filter and blocks come on demand and are kept.

use std::sync::{Arc, OnceLock};

use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::crc;
use fieldstone_format::segment::{BlockCursor, Filter, SegmentMeta, SegmentRef};
use fieldstone_format::{Id, keys};

use crate::block_cache::BlockCache;
use crate::medium::Medium;

/// A segment of one log.
#[derive(Debug)]
pub struct Segment {
    /// The log's writer.
    pub writer: Id,
    /// The position of the segment.
    pub reference: SegmentRef,
    medium: Arc<dyn Medium>,
    cache: Arc<BlockCache>,
    number: u64,
    meta: OnceLock<Arc<SegmentMeta>>,
    filter: OnceLock<Filter>,
    /// Offsets in its file of blocks that were given up, which readers pass over if they are damaged.
    given_up: Mutex<Vec<u64>>,
}

impl Segment {
    /// A segment of which nothing has been read yet.
    pub fn new(
        writer: Id,
        reference: SegmentRef,
        medium: Arc<dyn Medium>,
        cache: Arc<BlockCache>,
    ) -> Segment {
        let number = cache.next();
        let (meta, filter, given_up) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Segment { writer, reference, medium, cache, number, meta, filter, given_up }
    }

    /// Lets readers pass over the block at an offset of its file, if it is damaged: somebody gave it up.
    pub fn give_up(&self, offset: u64) {
        let mut given_up = self.given_up.lock();
        if !given_up.contains(&offset) {
            given_up.push(offset);
        }
    }

    /// Whether somebody gave block `index` up.
    pub fn gives_up(&self, index: usize) -> bool {
        let place = self.meta().ok().and_then(|meta| meta.directory.get(index));
        place.is_some_and(|place| self.given_up.lock().contains(&(self.reference.offset + place.offset)))
    }

    /// The file that it stands in, as messages name it.
    pub fn shown(&self) -> String {
        self.medium.shown(self.writer, self.reference.file)
    }

    /// Says which file and range an error is about.
    fn named(&self, error: Error) -> Error {
        error.context(format!("segment at {} of {}", self.reference.offset, self.shown()))
    }

    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        // A damaged length must not become an allocation: the segment's own length bounds it.
        if offset.checked_add(length).is_none_or(|end| end > self.reference.length) {
            return Err(Error::corrupt("a part lies outside its segment"));
        }
        let mut buffer = vec![0; length as usize];
        self.medium.read(self.writer, self.reference.file, &mut buffer, self.reference.offset + offset)?;
        Ok(buffer)
    }

    /// The meta part.
    pub fn meta(&self) -> Result<&Arc<SegmentMeta>> {
        if let Some(meta) = self.meta.get() {
            return Ok(meta);
        }
        // The copy at the end was written last and is read first; the one at the beginning stands in.
        let [last, first] = self.reference.meta_offsets().map(|offset| offset - self.reference.offset);
        let meta = self.meta_copy(last).or_else(|e| self.meta_copy(first).map_err(|_| e))?;
        Ok(self.meta.get_or_init(|| Arc::new(meta)))
    }

    fn meta_copy(&self, offset: u64) -> Result<SegmentMeta> {
        let between = self.reference.length - 2 * self.reference.meta_len;
        self.read(offset, self.reference.meta_len)
            .and_then(|bytes| SegmentMeta::decode(&bytes, self.reference.meta_crc, between))
            .map_err(|e| self.named(e))
    }

    /// Compares both copies of the meta part with their checksum, for `verify`.
    pub fn check_meta(&self) -> Result<()> {
        for offset in self.reference.meta_offsets() {
            self.meta_copy(offset - self.reference.offset)?;
        }
        Ok(())
    }

    /// Whether a key with this hash may be here. A damaged filter rules nothing out.
    pub fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        let meta = self.meta()?;
        if key < &meta.first_key[..] || key > &meta.last_key[..] {
            return Ok(false);
        }
        match self.filter() {
            Ok(filter) => Ok(filter.may_contain(hash)),
            Err(e) if e.kind() == ErrorKind::Corrupt => Ok(true),
            Err(e) => Err(e),
        }
    }

    fn filter(&self) -> Result<&Filter> {
        if let Some(filter) = self.filter.get() {
            return Ok(filter);
        }
        let meta = self.meta()?;
        let bits = self.read(meta.filter_offset, meta.filter_len).map_err(|e| self.named(e))?;
        if crc(&bits) != meta.filter_crc || bits.is_empty() != (meta.filter_hashes == 0) {
            return Err(self.named(Code::Checksum.error("a filter does not match its checksum")));
        }
        Ok(self.filter.get_or_init(|| Filter::new(bits.into(), meta.filter_hashes)))
    }

    /// Reads and checks the filter, for `verify`.
    pub fn check_filter(&self) -> Result<()> {
        self.filter().map(drop)
    }

    /// Block `index`, checked.
    pub fn block(&self, index: usize) -> Result<Arc<[u8]>> {
        if let Some(block) = self.cache.get((self.number, index)) {
            return Ok(block);
        }
        let block = self.block_uncached(index)?;
        self.cache.put((self.number, index), &block);
        Ok(block)
    }

    /// Block `index`, read and checked now.
    pub fn block_uncached(&self, index: usize) -> Result<Arc<[u8]>> {
        let meta = self.meta()?;
        let place = meta.directory.get(index).ok_or_else(|| Error::internal("no such index block"))?;
        let block = self.read(place.offset, place.length).map_err(|e| self.named(e))?;
        if crc(&block) != place.crc {
            let first = keys::KeyDecoder::new().decode(&place.first_key).map(|k| k.to_string());
            return Err(self.named(Code::Checksum.error(format!(
                "the block of {} entries from {} on does not match its checksum",
                place.entries,
                first.unwrap_or_default()
            ))));
        }
        Ok(block.into())
    }
}

/// Walks the entries of a segment in order, with jumps.
#[derive(Debug)]
pub struct SegmentCursor {
    segment: Arc<Segment>,
    next_block: usize,
    entry: u32,
    block: Option<BlockCursor<Arc<[u8]>>>,
    tolerant: bool,
    /// Blocks that a tolerant cursor skipped.
    damage: Vec<Error>,
}

impl SegmentCursor {
    /// A cursor before the first entry, which stops at damage.
    pub fn new(segment: Arc<Segment>) -> SegmentCursor {
        SegmentCursor { segment, next_block: 0, entry: 0, block: None, tolerant: false, damage: Vec::new() }
    }

    /// A cursor before the first entry, which skips damaged blocks and keeps account of them.
    pub fn tolerant(segment: Arc<Segment>) -> SegmentCursor {
        SegmentCursor { tolerant: true, ..SegmentCursor::new(segment) }
    }

    /// The damaged parts that the cursor has skipped so far.
    pub fn take_damage(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.damage)
    }

    /// Moves on by one entry; `false` at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(block) = &mut self.block {
                match block.advance() {
                    Ok(true) => {
                        self.entry += 1;
                        return Ok(true);
                    }
                    Ok(false) => {}
                    Err(e) if self.tolerant => self.damage.push(self.segment.named(e)),
                    Err(e) => return Err(self.segment.named(e)),
                }
                self.block = None;
            }
            if self.next_block >= self.segment.meta()?.directory.len() {
                return Ok(false);
            }
            self.open_block(self.next_block)?;
        }
    }

    /// Moves on to the next entry under the current key; `false` where there is none. A block is opened
    /// only if it can hold one.
    pub fn advance_under(&mut self, key: &[u8]) -> Result<bool> {
        if let Some(block) = &mut self.block {
            if block.advance().map_err(|e| self.segment.named(e))? {
                self.entry += 1;
                return Ok(self.key() == key);
            }
            self.block = None;
        }
        match self.segment.meta()?.directory.get(self.next_block) {
            Some(next) if *next.first_key == *key => self.advance(),
            _ => Ok(false),
        }
    }

    /// Opens a block; a tolerant cursor is left between blocks where it is damaged.
    fn open_block(&mut self, index: usize) -> Result<()> {
        self.next_block = index + 1;
        self.entry = 0;
        self.block = match self.segment.block(index) {
            Ok(block) => Some(BlockCursor::new(block)),
            Err(e) if e.kind() == ErrorKind::Corrupt && self.segment.gives_up(index) => None,
            Err(e) if self.tolerant && e.kind() == ErrorKind::Corrupt => {
                self.damage.push(e);
                None
            }
            Err(e) => return Err(e),
        };
        Ok(())
    }

    /// Moves to the first entry whose key is at least `key`; `false` where there is none. Never moves
    /// back.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.block.is_some() && self.entry > 0 && self.key() >= key {
            return Ok(true);
        }
        let mut target = self.segment.meta()?.block_for(key);
        if self.block.is_none() {
            target = target.max(self.next_block);
        }
        if self.block.is_none() || target >= self.next_block {
            if target >= self.segment.meta()?.directory.len() {
                return Ok(false);
            }
            self.open_block(target)?;
        }
        while self.advance()? {
            if self.key() >= key {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves to the entry at a place; `false` where there is none.
    pub fn go_to(&mut self, (block, place): (u32, u32)) -> Result<bool> {
        let is_open = self.block.is_some() && self.next_block == block as usize + 1;
        if !is_open || self.entry > place + 1 {
            self.open_block(block as usize)?;
        }
        while self.entry <= place {
            if !self.advance()? || self.next_block != block as usize + 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Key of the current entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |b| b.key())
    }

    /// Value of the current entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |b| b.value())
    }

    /// Block and place in it of the current entry.
    pub fn place(&self) -> (u32, u32) {
        (self.next_block.saturating_sub(1) as u32, self.entry.saturating_sub(1))
    }
}
