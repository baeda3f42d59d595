//! Reading and checking blocks. Only blocks that a read touches are fetched, and each is compared with
//! its checksum before any of its bytes is given out.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, read_exact_at};
use fieldstone_core::geometry::{IndexBox, copy_box};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::block::{Block, check, check_raw_len, read_blocks, unpack_checked};
use fieldstone_format::bytes::Cursor;
use fieldstone_format::crc;
use fieldstone_format::entry::{Blocks, Entry, Grown, Layout, Location};

use super::elsewhere::Elsewhere;
use super::outside::Outside;
use super::ranges::ByteRanges;
use super::versions::Part;
use crate::field::StoredArray;
use crate::files::Files;
use fieldstone_format::keys::key_text;
use fieldstone_journal::medium::posix::FileMedium;

/// Most stored bytes that are fetched by one read.
const READ_MAX: u64 = 1 << 20;

/// The bytes of one entry.
pub struct Source<'a> {
    files: &'a Files,
    part: &'a Part,
    key: &'a [u8],
}

/// The source of an entry's blocks.
pub(super) enum Holder {
    /// A file of the writer.
    Own(u32),
    /// A file of the store to which arrays are added.
    Grown(Arc<dyn DiskFile>),
    /// A file outside the store, where blocks stand from 0 on.
    Outside(Outside),
}

/// The location of an entry's blocks.
pub(super) struct Places<'a> {
    pub(super) holder: Holder,
    pub(super) layout: Layout,
    pub(super) blocks: Cow<'a, [Block]>,
    /// Offset of each block in the file; one more for the end.
    pub(super) offsets: Vec<u64>,
}

impl<'a> Source<'a> {
    /// The bytes of `part`, which stands under the encoded `key`.
    pub fn new(files: &'a Files, part: &'a Part, key: &'a [u8]) -> Source<'a> {
        Source { files, part, key }
    }

    pub(super) fn entry(&self) -> &'a Entry {
        &self.part.entry
    }

    /// A file of whoever holds the entry, as messages name it.
    pub(super) fn shown(&self, file: u32) -> String {
        self.files.shown(self.part.holder, file)
    }

    /// The entry of another store that holds the bytes, if this one names it.
    fn elsewhere(&self) -> Result<Option<Elsewhere>> {
        Elsewhere::of(self.files, self.entry()).map_err(|e| self.of_key(e))
    }

    fn of_key(&self, error: Error) -> Error {
        error.context(key_text(self.key))
    }

    fn named(&self, file: u32, offset: u64, error: Error) -> Error {
        let file = self.files.shown(self.part.holder, file);
        error.context(format!("{}, at {offset} of {file}", key_text(self.key)))
    }

    /// As [`named`](Self::named), for the `offset` of a block.
    pub(super) fn placed(&self, holder: &Holder, offset: u64, error: Error) -> Error {
        match (holder, &self.entry().location) {
            (Holder::Own(file), _) => self.named(*file, offset, error),
            (Holder::Outside(_), Location::External(external)) => {
                let at = external.offset;
                let from = if offset > 0 { format!(" and {offset}") } else { String::new() };
                error.context(format!("{}, at {at}{from} of {}", key_text(self.key), external.url))
            }
            (Holder::Grown(_), Location::Grown(grown)) => self.inside(grown, offset, error),
            (Holder::Outside(_) | Holder::Grown(_), _) => error,
        }
    }

    /// As [`named`](Self::named), for an offset in a file of the store that grows.
    fn inside(&self, grown: &Grown, offset: u64, error: Error) -> Error {
        error.context(format!("{}, at {offset} of {}", key_text(self.key), grown.path))
    }

    pub(super) fn too_few(&self) -> Error {
        Error::corrupt(format!("{}: it has fewer blocks than its length needs", key_text(self.key)))
    }

    /// Fills `out` from `offset` of the source.
    pub(super) fn fetch(&self, holder: &Holder, out: &mut [u8], offset: u64) -> Result<()> {
        match holder {
            Holder::Own(file) => self.files.read(self.part.holder, *file, out, offset),
            Holder::Outside(outside) => outside.read(out, offset),
            Holder::Grown(file) => read_exact_at(&**file, out, offset).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => Code::Truncated.error("the file ends before"),
                _ => Error::io("read", Path::new("a file of the store"), e),
            }),
        }
        .map_err(|e| self.placed(holder, offset, e))
    }

    /// The whole raw bytes into `out`, which has the entry's length.
    pub fn read_all(&self, out: &mut [u8]) -> Result<()> {
        // The common case without any allocation: one stored block is the field.
        if let Location::Blocks { file, offset, blocks: Blocks::Inline(blocks), .. } = &self.entry().location
            && let [block] = &blocks[..]
            && block.stored == out.len() as u64
            && self.entry().length == block.stored
        {
            self.files
                .read(self.part.holder, *file, out, *offset)
                .map_err(|e| self.named(*file, *offset, e))?;
            return check(out, block).map_err(|e| self.named(*file, *offset, e));
        }
        match &self.entry().array {
            None => self.read_range(0, out),
            Some(_) => match self.entry().index_box()? {
                Some(whole) => self.read_region(&whole, out, &whole),
                None => Err(Error::internal("an array has no box")),
            },
        }
    }

    /// Raw bytes from `start` on into `out`; opaque entries only.
    pub fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        if let Location::Inline { data, crc: sum } = &self.entry().location {
            if crc(data) != *sum {
                return Err(Code::Checksum.error(format!(
                    "{}: the bytes in its index entry do not match their checksum",
                    key_text(self.key)
                )));
            }
            let from = start as usize;
            return match data.get(from..from.saturating_add(out.len())) {
                Some(part) => {
                    out.copy_from_slice(part);
                    Ok(())
                }
                None => Err(Error::corrupt(format!(
                    "{}: fewer bytes than its index entry says",
                    key_text(self.key)
                ))),
            };
        }
        if out.is_empty() {
            return Ok(());
        }
        if let Some(found) = self.elsewhere()? {
            return found
                .read(|files, part, key| Source::new(files, part, key).read_range(start, out))
                .map_err(|e| self.of_key(e));
        }
        let places = self.places()?;
        let Layout::Bytes { size, .. } = places.layout else {
            return Err(Error::internal("a range of an array was asked for"));
        };
        let (first, last) = match size {
            0 => (0, 0),
            size => (start / size, (start + out.len() as u64 - 1) / size),
        };
        self.each_block(&places, first..=last, |index, raw| {
            let begins = index * size;
            let from = start.max(begins);
            let to = (start + out.len() as u64).min(begins + raw.len() as u64);
            out[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&raw[(from - begins) as usize..(to - begins) as usize]);
            Ok(())
        })
    }

    /// The elements of `region` (in the field's index space) into `out`, which covers `out_box`.
    pub fn read_region(&self, region: &IndexBox, out: &mut [u8], out_box: &IndexBox) -> Result<()> {
        let Some(own) = self.entry().index_box()? else {
            return Err(Error::internal("a box of opaque bytes was asked for"));
        };
        let Some(wanted) = own.intersect(region) else { return Ok(()) };
        if wanted.is_empty() || matches!(self.entry().location, Location::None | Location::Removed { .. }) {
            return Ok(());
        }
        if let Some(found) = self.elsewhere()? {
            return found
                .read(|files, part, key| Source::new(files, part, key).read_region(region, out, out_box))
                .map_err(|e| self.of_key(e));
        }
        let places = self.places()?;
        let Layout::Chunks(grid, item) = &places.layout else {
            return self.read_ranges(&places, (&own, &wanted), out, out_box);
        };
        let local = wanted.relative_to(&own)?;
        let touched: Vec<u64> = grid.overlapping(&local)?.collect();
        // A box that is one block goes straight to where it is wanted.
        if let [only] = touched[..]
            && *out_box == wanted
            && grid.chunk_box(only)?.shifted_into(&own)? == wanted
        {
            return self.read_block(&places, only, out);
        }
        let mut rest = &touched[..];
        while let Some(&first) = rest.first() {
            let n = rest.iter().zip(first..).take_while(|(a, b)| **a == *b).count();
            self.each_block(&places, first..=first + n as u64 - 1, |index, raw| {
                let chunk = grid.chunk_box(index)?.shifted_into(&own)?;
                match chunk.intersect(&wanted) {
                    Some(part) => copy_box(raw, &chunk, out, out_box, &part, *item as usize),
                    None => Ok(()),
                }
            })?;
            rest = &rest[n..];
        }
        Ok(())
    }

    /// A box of an array whose blocks are ranges of its bytes.
    fn read_ranges(
        &self,
        places: &Places<'_>,
        (own, wanted): (&IndexBox, &IndexBox),
        out: &mut [u8],
        out_box: &IndexBox,
    ) -> Result<()> {
        let (Layout::Bytes { length, size }, Some(array)) = (&places.layout, &self.entry().array) else {
            return Err(Error::internal("opaque bytes have no boxes"));
        };
        let size = if *size == 0 { *length } else { *size };
        let mut ranges = ByteRanges::new(own, wanted, out_box, array.dtype.size() as u64);
        // Neighbouring blocks that hold any of it, as ranges: first and last.
        let mut touched: Vec<(u64, u64)> = Vec::new();
        for range in ranges.clone() {
            let (first, last) = (range.from / size, (range.end() - 1) / size);
            match touched.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = last,
                _ => touched.push((first, last)),
            }
        }
        let mut current = ranges.next();
        for (first, last) in touched {
            self.each_block(places, first..=last, |index, raw| {
                let begins = index * size;
                let ends = begins + raw.len() as u64;
                while let Some(range) = current.filter(|range| range.from < ends) {
                    let (from, to) = (range.from.max(begins), range.end().min(ends));
                    let at = (range.to + from - range.from) as usize;
                    let bytes = &raw[(from - begins) as usize..(to - begins) as usize];
                    out[at..at + bytes.len()].copy_from_slice(bytes);
                    if range.end() > ends {
                        break;
                    }
                    current = ranges.next();
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The location of the array, if it is in a file of the store.
    pub fn stored_array(&self) -> Result<Option<StoredArray>> {
        let (Location::Grown(grown), Some(array)) = (&self.entry().location, &self.entry().array) else {
            return Ok(None);
        };
        let blocks = self.listed(grown.file, &grown.blocks, &self.entry().layout(grown.size)?)?;
        Ok(Some(StoredArray {
            path: self.folder()?.root().join(&grown.path),
            offset: grown.offset,
            dtype: array.dtype,
            shape: array.shape.clone(),
            block: if grown.size == 0 { self.entry().length } else { grown.size },
            sums: blocks.iter().map(|block| block.crc).collect(),
            holes: grown.holes,
        }))
    }

    /// The store's folder, which holds files with arrays.
    fn folder(&self) -> Result<&'a FileMedium> {
        self.files
            .medium()
            .files()
            .ok_or_else(|| Error::corrupt("the store has no folder for files with arrays"))
    }

    /// Opens the file that holds the array, and sees that all of it is there.
    fn open_grown(&self, grown: &Grown, layout: &Layout, blocks: &[Block]) -> Result<Arc<dyn DiskFile>> {
        for (index, block) in blocks.iter().enumerate() {
            if layout.raw_len(index as u64)? != block.stored {
                return Err(Error::corrupt("its blocks do not have its length"));
            }
        }
        let file = self.folder()?.open_inside(&grown.path)?;
        let stat = file.stat().map_err(|e| Error::io("look at", Path::new(&grown.path), e))?;
        let ends = grown.offset.saturating_add(self.entry().length);
        if stat.len < ends {
            return Err(Code::Truncated
                .error(format!("the file has {} bytes, and the array ends at {ends}", stat.len)));
        }
        Ok(file)
    }

    /// Compares every block with its checksum; returns the stored bytes.
    pub fn verify(&self) -> Result<u64> {
        match &self.entry().location {
            Location::None | Location::AttemptTombstone(_) | Location::Removed { .. } => Ok(0),
            Location::Inline { .. } => {
                let mut raw = vec![0; self.entry().length as usize];
                self.read_range(0, &mut raw).map(|()| raw.len() as u64)
            }
            Location::Blocks { .. } | Location::External(_) | Location::Grown(_) => {
                if let Some(found) = self.elsewhere()? {
                    return found
                        .read(|files, part, key| Source::new(files, part, key).verify())
                        .map_err(|e| self.of_key(e));
                }
                let places = self.places()?;
                let n = places.blocks.len() as u64;
                if n > 0 {
                    self.each_block(&places, 0..=n - 1, |_, _| Ok(()))?;
                }
                Ok(places.offsets[n as usize] - places.offsets[0])
            }
        }
    }

    /// Stored bytes of all blocks.
    pub fn stored_bytes(&self) -> Result<u64> {
        match &self.entry().location {
            Location::Blocks { blocks: Blocks::Inline(blocks), .. } => {
                Ok(blocks.iter().map(|b| b.stored).sum())
            }
            Location::Blocks { .. } => {
                let places = self.places()?;
                Ok(places.offsets[places.blocks.len()] - places.offsets[0])
            }
            Location::Inline { data, .. } => Ok(data.len() as u64),
            Location::Grown(_) => Ok(self.entry().length),
            Location::None
            | Location::AttemptTombstone(_)
            | Location::External(_)
            | Location::Removed { .. } => Ok(0),
        }
    }

    /// The blocks, from the entry or from their table in a file of the writer.
    pub(super) fn listed(&self, file: u32, blocks: &'a Blocks, layout: &Layout) -> Result<Cow<'a, [Block]>> {
        let (table, length, sum) = match blocks {
            Blocks::Inline(blocks) => return Ok(Cow::Borrowed(&blocks[..])),
            Blocks::Table { offset, length, crc } => (*offset, *length, *crc),
        };
        let read = || -> Result<Vec<Block>> {
            let table = self.files.read_vec(self.part.holder, file, table, length)?;
            if crc(&table) != sum {
                return Err(Code::Checksum.error("its table of blocks does not match its checksum"));
            }
            let mut cursor = Cursor::new(&table);
            let blocks = read_blocks(&mut cursor, layout.count()?, self.entry().array.is_some())?;
            if cursor.is_empty() { Ok(blocks) } else { Err(cursor.fail("a table of blocks is too long")) }
        };
        Ok(Cow::Owned(read().map_err(|e| self.named(file, table, e))?))
    }

    pub(super) fn places(&self) -> Result<Places<'a>> {
        let entry = self.entry();
        let (file, offset, size, blocks) = match &entry.location {
            Location::Blocks { file, offset, size, blocks } => (file, *offset, size, blocks),
            Location::External(external) => (&external.file, 0, &external.size, &external.blocks),
            Location::Grown(grown) => (&grown.file, grown.offset, &grown.size, &grown.blocks),
            _ => return Err(Error::internal("an entry without blocks was asked for them")),
        };
        let layout = entry.layout(*size)?;
        let blocks = self.listed(*file, blocks, &layout)?;
        let mut offsets = Vec::with_capacity(blocks.len() + 1);
        let mut at = offset;
        for block in blocks.iter() {
            offsets.push(at);
            at = at
                .checked_add(block.stored)
                .ok_or_else(|| Error::corrupt("a field's blocks exceed 64 bits"))?;
        }
        offsets.push(at);
        let holder = match &entry.location {
            Location::External(external) => {
                let open = Outside::open(self.files.outside(), external, entry.length);
                let whole = || match at == entry.length {
                    true => Ok(()),
                    false => Err(Error::corrupt("its blocks do not have its length")),
                };
                let named = |e: Error| {
                    e.context(format!("{}, at {} of {}", key_text(self.key), external.offset, external.url))
                };
                Holder::Outside(whole().and(open).map_err(named)?)
            }
            Location::Grown(grown) => {
                let open = self.open_grown(grown, &layout, &blocks);
                Holder::Grown(open.map_err(|e| self.inside(grown, grown.offset, e))?)
            }
            _ => Holder::Own(*file),
        };
        Ok(Places { holder, layout, blocks, offsets })
    }

    /// The raw bytes of one block into `out`, which has its raw length.
    fn read_block(&self, places: &Places<'_>, index: u64, out: &mut [u8]) -> Result<()> {
        let at = index as usize;
        let (Some(block), Some(&offset)) = (places.blocks.get(at), places.offsets.get(at)) else {
            return Err(self.too_few());
        };
        let named = |e: Error| self.placed(&places.holder, offset, e);
        if block.stored == out.len() as u64 {
            self.fetch(&places.holder, out, offset)?;
            return check(out, block).map_err(named);
        }
        check_raw_len(block.stored, out.len() as u64).map_err(named)?;
        // No longer than the raw bytes, for which there is room.
        let mut stored = vec![0; block.stored.min(out.len() as u64) as usize];
        self.fetch(&places.holder, &mut stored, offset)?;
        check(&stored, block).map_err(named)?;
        unpack_checked(&stored, out).map_err(named)
    }

    /// Fetches neighbouring blocks together, checks each and hands its raw bytes over.
    fn each_block(
        &self,
        places: &Places<'_>,
        range: std::ops::RangeInclusive<u64>,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut next, last) = (*range.start() as usize, *range.end() as usize);
        if last >= places.blocks.len() {
            return Err(self.too_few());
        }
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        while next <= last {
            let begin = places.offsets[next];
            let mut end = next + 1;
            while end <= last && places.offsets[end + 1] - begin <= READ_MAX {
                end += 1;
            }
            let length = places.offsets[end] - begin;
            match &places.holder {
                // A block this long is unusual: see that the file has it before memory is taken.
                Holder::Own(file) if length > 2 * READ_MAX => {
                    stored = self
                        .files
                        .read_vec(self.part.holder, *file, begin, length)
                        .map_err(|e| self.placed(&places.holder, begin, e))?;
                }
                // The index says no more of a file outside than the file was seen to have.
                holder => {
                    stored.resize(
                        usize::try_from(length).map_err(|_| Code::OutOfMemory.error("not enough memory"))?,
                        0,
                    );
                    self.fetch(holder, &mut stored, begin)?;
                }
            }
            for index in next..end {
                let block = &places.blocks[index];
                let at = (places.offsets[index] - begin) as usize;
                let bytes = &stored[at..at + block.stored as usize];
                let named = |e: Error| self.placed(&places.holder, places.offsets[index], e);
                check(bytes, block).map_err(named)?;
                let raw_len = places.layout.raw_len(index as u64)?;
                if raw_len == block.stored {
                    each(index as u64, bytes)?;
                } else {
                    check_raw_len(block.stored, raw_len).map_err(named)?;
                    raw.resize(
                        usize::try_from(raw_len).map_err(|_| Code::OutOfMemory.error("not enough memory"))?,
                        0,
                    );
                    unpack_checked(bytes, &mut raw).map_err(named)?;
                    each(index as u64, &raw)?;
                }
            }
            next = end;
        }
        Ok(())
    }
}
