//! Content that a session archived and has not flushed yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::sync::thread::{self, ThreadId};
use fieldstone_core::{Error, Result};
use fieldstone_format::FIRST_VERSION;
use fieldstone_format::block::{Block, INLINE_BLOCKS};
use fieldstone_format::entry::{Blocks, Entry, Location};
use fieldstone_format::keys::key_text;
use fieldstone_format::log::SideRecord;
use fieldstone_format::origin::{EntryOrigin, MOVED_SINCE, OriginRank};
use fieldstone_format::segment::{CommitInfo, SegmentBuilder, SegmentRef};

use super::encoded::{Encoded, Payload};
use super::loss::Keys;
use super::shared::Shared;
use crate::author::{Author, is_same};
use crate::medium::DataWriter;

/// Fields in the order they were archived.
#[derive(Debug, Default)]
pub struct Batch {
    /// Its place in the order of this writer's batches.
    pub number: u64,
    items: Vec<Option<Item>>,
    /// Items per key, for replacing what the same batch archived before.
    by_key: HashMap<Arc<[u8]>, Vec<usize>>,
    /// Stored bytes of fields that go into the frame.
    payload: Vec<u8>,
    /// Whether fields went into the data log.
    spilled: bool,
    /// Whether fields name bytes of earlier commits of this log.
    borrows: bool,
    live: usize,
    raw_bytes: u64,
    /// Catalog and graph changes.
    pub side: Vec<SideRecord>,
    /// Encoded first levels to be claimed beside those of the fields.
    pub claims: BTreeSet<Vec<u8>>,
    /// The owner of the fields; `None` before the first one.
    author: Option<Author>,
}

/// The place to which the bytes of a batch were copied.
#[derive(Debug, Default)]
pub struct Copies {
    /// The data log.
    number: u32,
    /// Items, where their bytes stood, and where they stand.
    items: Vec<(usize, u64, u64)>,
    /// The place of bytes that waited in memory.
    payload: Option<u64>,
}

/// The rows of origins in a commit table.
type Rows = HashMap<OriginRank, u64>;

#[derive(Debug)]
struct Item {
    key: Arc<[u8]>,
    dataset_end: usize,
    entry: Entry,
    /// Digest of the stored bytes, where equal ones may share their place.
    digest: Option<u128>,
    /// Whether the location is one of an earlier commit, which no shift concerns.
    placed: bool,
    /// The thread that archived it.
    thread: ThreadId,
    /// The commit of another store that it was moved from.
    origin: Option<Arc<EntryOrigin>>,
}

impl Item {
    /// Whether it names bytes of the frame, counted from the payload's first byte.
    fn is_in_frame(&self) -> bool {
        !self.placed
            && match &self.entry.location {
                Location::Blocks { file, .. } => *file == 0,
                Location::External(external) => external.file == 0,
                Location::Grown(grown) => grown.file == 0,
                _ => false,
            }
    }
}

impl Batch {
    /// An empty batch with a number, which is greater than those of all earlier ones.
    pub fn new(number: u64) -> Batch {
        Batch { number, ..Batch::default() }
    }

    /// The owner of the fields; `None` if there are none.
    pub fn author(&self) -> Option<&Author> {
        self.author.as_ref()
    }

    /// Whether fields of this author may be added.
    pub fn may_take(&self, author: &Author) -> bool {
        self.author.as_ref().is_none_or(|own| is_same(own, author))
    }

    /// The fields that follow are this author's.
    pub fn note_author(&mut self, author: Author) {
        self.author.get_or_insert(author);
    }

    /// Whether a flush would write nothing.
    pub fn is_empty(&self) -> bool {
        self.live == 0 && self.side.is_empty()
    }

    /// Fields.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Raw bytes of the fields.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Whether fields went into the data log.
    pub fn spilled(&self) -> bool {
        self.spilled
    }

    /// Whether what it holds means nothing in another log.
    pub fn is_bound(&self) -> bool {
        self.spilled || self.borrows
    }

    /// The oldest version of the format that can say what it holds.
    pub fn version(&self) -> u32 {
        let own = self.items.iter().flatten().map(|item| {
            let moved = if item.origin.is_some() { MOVED_SINCE } else { FIRST_VERSION };
            item.entry.location.version().max(moved)
        });
        own.max().unwrap_or(FIRST_VERSION)
    }

    /// Files of arrays that it names, relative to the store's folder.
    pub fn array_files(&self) -> BTreeSet<&str> {
        let locations = self.items.iter().flatten().map(|item| &item.entry.location);
        let paths = locations.filter_map(|location| match location {
            Location::Grown(grown) => Some(grown.path.as_str()),
            _ => None,
        });
        paths.collect()
    }

    /// Copies to a data log what stands in files of a log that is left, and what waits in memory: where it
    /// stands counts from [`rebind`](Self::rebind) on.
    pub fn copy_bound(
        &self,
        read: impl Fn(u32, u64, u64) -> Result<Vec<u8>>,
        data: &mut dyn DataWriter,
    ) -> Result<Copies> {
        let mut copies = Copies { number: data.number(), ..Copies::default() };
        for (i, item) in self.items.iter().enumerate() {
            let Some(item) = item.as_ref().filter(|item| !item.is_in_frame()) else { continue };
            if let Some((file, offset, length)) = item.entry.location.own_range() {
                copies.items.push((i, offset, data.write(&read(file, offset, length)?)?));
            }
        }
        if !self.payload.is_empty() {
            copies.payload = Some(data.write(&self.payload)?);
        }
        Ok(copies)
    }

    /// From now on its bytes stand where they were copied to.
    pub fn rebind(&mut self, copies: Copies) {
        if let Some(base) = copies.payload {
            for item in self.items.iter_mut().flatten().filter(|item| item.is_in_frame()) {
                item.entry.location.shift(Some(copies.number), base);
            }
            self.payload = Vec::new();
        }
        for (i, from, to) in copies.items {
            if let Some(Some(item)) = self.items.get_mut(i) {
                item.entry.location.relocate(copies.number, from, to);
                item.placed = false;
            }
        }
        (self.spilled, self.borrows) = (true, false);
    }

    /// Bytes waiting for the frame.
    pub fn inline_len(&self) -> usize {
        self.payload.len()
    }

    /// Bytes that go into the frame.
    pub fn inline_payload(&self) -> &[u8] {
        &self.payload
    }

    /// Encoded first levels of the fields, and those claimed beside them.
    pub fn datasets(&self) -> BTreeSet<Vec<u8>> {
        let of_fields = self.items.iter().flatten().map(|item| item.key[..item.dataset_end].to_vec());
        of_fields.chain(self.claims.iter().cloned()).collect()
    }

    /// The newest entry under a key, where there is one.
    pub fn newest(&self, key: &[u8]) -> Option<&Entry> {
        let same = self.by_key.get(key)?;
        same.iter().rev().find_map(|&i| self.items.get(i)?.as_ref()).map(|item| &item.entry)
    }

    /// Encoded keys of the fields, each with its entry.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        let standing = self.items.iter().flatten().filter(|item| !item.entry.is_removal());
        standing.map(|item| (&*item.key, &item.entry))
    }

    /// Encoded keys of the fields.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.items.iter().flatten().filter(|item| !item.entry.is_removal()).map(|item| &*item.key)
    }

    /// Keys for a message: those that these threads archived.
    pub fn keys_of(&self, of: impl Fn(ThreadId) -> bool) -> Keys {
        let mut keys = Keys::default();
        let items = self.items.iter().flatten().filter(|item| of(item.thread));
        items.for_each(|item| keys.add(|| key_text(&item.key)));
        keys
    }

    /// Keys for messages, by the thread that archived.
    pub fn keys_by_thread(&self) -> HashMap<ThreadId, Keys> {
        let mut keys: HashMap<ThreadId, Keys> = HashMap::new();
        for item in self.items.iter().flatten() {
            keys.entry(item.thread).or_default().add(|| key_text(&item.key));
        }
        keys
    }

    /// Takes a value whose bytes wait in memory. Offsets count from the payload's first byte until the
    /// frame's place is known.
    pub fn add_inline(&mut self, value: Encoded<'_>) {
        let offset = self.payload.len() as u64;
        self.payload.extend_from_slice(value.payload.bytes());
        self.payload.extend_from_slice(&value.table);
        self.add(0, offset, value, false);
    }

    /// Takes a value whose stored bytes stand in this writer's files already.
    pub fn add_shared(&mut self, value: Encoded<'_>, (file, offset): (u32, u64)) {
        self.add(file, offset, value, true);
        self.borrows = true;
    }

    /// Records where the bytes of the values that may share their place stand, now that the batch is
    /// durable with its payload at `base` of the log.
    pub fn record_addresses(&self, base: u64, shared: &mut Shared) {
        for item in self.items.iter().flatten().filter(|item| !item.placed) {
            if let (Some(digest), Location::Blocks { file, offset, .. }) = (item.digest, &item.entry.location)
            {
                let base = if *file == 0 { base } else { 0 };
                shared.insert(digest, (*file, offset.saturating_add(base)));
            }
        }
    }

    /// Takes a value whose bytes go to the data log.
    pub fn add_spilled(&mut self, value: Encoded<'_>, data: &mut dyn DataWriter) -> Result<()> {
        let offset = match &value.payload {
            Payload::Bytes(payload) => data.write(payload)?,
            Payload::Parts(parts) => {
                let mut offset = None;
                parts.write(&mut |part| {
                    let at = data.write(part)?;
                    offset.get_or_insert(at);
                    Ok(())
                })?;
                offset.ok_or_else(|| Error::internal("a value of parts has none"))?
            }
        };
        data.write(&value.table)?;
        self.add(data.number(), offset, value, false);
        self.spilled = true;
        Ok(())
    }

    /// Moves what waits in memory to the data log.
    pub fn move_to(&mut self, data: &mut dyn DataWriter) -> Result<()> {
        if !self.payload.is_empty() {
            let base = data.write(&self.payload)?;
            for item in self.items.iter_mut().flatten().filter(|item| !item.placed) {
                item.entry.location.shift(Some(data.number()), base);
            }
            self.payload = Vec::new();
        }
        self.spilled = true;
        Ok(())
    }

    /// Takes a value whose payload stands at `offset` of a file.
    fn add(&mut self, file: u32, offset: u64, value: Encoded<'_>, placed: bool) {
        let Encoded { key, mut entry, size, blocks, payload, table, digest, origin } = value;
        let nbytes = payload.nbytes();
        entry.location = match entry.location {
            Location::None => {
                let location = locate(file, offset, size, blocks, nbytes, &table);
                // A created field has no bytes of its own.
                let created = entry.array.is_some()
                    && matches!(&location, Location::Blocks { blocks: Blocks::Inline(b), .. } if b.is_empty())
                    && entry.length > 0;
                if created { Location::None } else { location }
            }
            Location::External(mut external) => {
                external.blocks = listed(offset, blocks, nbytes, &table);
                external.file = if table.is_empty() { 0 } else { file };
                Location::External(external)
            }
            Location::Grown(mut grown) => {
                grown.blocks = listed(offset, blocks, nbytes, &table);
                grown.file = if table.is_empty() { 0 } else { file };
                Location::Grown(grown)
            }
            elsewhere => elsewhere,
        };
        let key: Arc<[u8]> = key.bytes.into_boxed_slice().into();
        let dataset_end = fieldstone_format::keys::level_ends(&key).map_or(key.len(), |ends| ends[0]);
        let thread = thread::current().id();
        self.put(Item { key, dataset_end, entry, digest, placed, thread, origin });
    }

    /// Takes an item behind all others.
    fn put(&mut self, mut item: Item) {
        item.entry.ordinal = self.items.len() as u64;
        let same = self.by_key.entry(item.key.clone()).or_default();
        // A removal of one version leaves alone what is newer.
        if item.entry.generation && !matches!(item.entry.location, Location::Removed { only: Some(_) }) {
            // Nobody can ever see what the same commit replaces, but entries of other origins have places of their own.
            same.retain(|&i| {
                if self.items[i].as_ref().is_some_and(|old| old.origin != item.origin) {
                    return true;
                }
                if let Some(old) = self.items[i].take() {
                    self.live -= 1;
                    self.raw_bytes = self.raw_bytes.saturating_sub(old.entry.length);
                }
                false
            });
        }
        same.push(self.items.len());
        self.live += 1;
        self.raw_bytes = self.raw_bytes.saturating_add(item.entry.length);
        self.items.push(Some(item));
    }

    /// Takes all of a later batch behind its own. `data`: the data log, where one of them has used it. After an error
    /// each of the two has what it had.
    pub fn append(&mut self, later: &mut Batch, data: Option<&mut dyn DataWriter>) -> Result<()> {
        if let Some(data) = data
            && (self.spilled || later.spilled)
        {
            self.move_to(data)?;
            later.move_to(data)?;
        }
        let mut later = std::mem::take(later);
        let base = self.payload.len() as u64;
        self.payload.append(&mut later.payload);
        for mut item in later.items.into_iter().flatten() {
            if item.is_in_frame() {
                item.entry.location.shift(None, base);
            }
            self.put(item);
        }
        self.author = match (self.author.take(), later.author) {
            // Fields of both that must wait for one commit are recorded for neither.
            (Some(own), Some(other)) => {
                if is_same(&own, &other) {
                    Some(own)
                } else {
                    Some(None)
                }
            }
            (own, other) => own.or(other),
        };
        self.borrows |= later.borrows;
        self.side.append(&mut later.side);
        self.claims.append(&mut later.claims);
        Ok(())
    }

    /// The segment of this batch for a log of a version, in which its inline payload will stand at `base`. `None` for a
    /// batch without fields.
    pub fn segment(
        &self,
        version: u32,
        base: u64,
        commit: CommitInfo,
    ) -> Result<Option<(Vec<u8>, SegmentRef)>> {
        if self.live == 0 {
            return Ok(None);
        }
        let (commits, origins, rows) = self.commit_rows(commit);
        let row_of = |item: &Item| match &item.origin {
            Some(origin) => rows.get(&origin.rank()).copied().unwrap_or(0),
            None => origins.len() as u64,
        };
        let mut items: Vec<(u64, &Item)> =
            self.items.iter().flatten().map(|item| (row_of(item), item)).collect();
        items.sort_by(|(row, a), (other, b)| {
            a.key.cmp(&b.key).then(other.cmp(row)).then(b.entry.ordinal.cmp(&a.entry.ordinal))
        });
        let mut builder = SegmentBuilder::of(version);
        let mut value = Vec::new();
        for (row, item) in items {
            value.clear();
            if item.is_in_frame() || row > 0 {
                let mut entry = Entry { commit: row, ..item.entry.clone() };
                if item.is_in_frame() {
                    entry.location.shift(None, base);
                }
                entry.encode(&mut value);
            } else {
                item.entry.encode(&mut value);
            }
            builder.push(&item.key, &value, row, item.entry.length)?;
        }
        builder.finish_with(commits, origins, 1).map(Some)
    }

    /// The rows of the commit table: one for each origin, ascending by its rank, and at their end one without if entries need
    /// it; the origins, and the row of each.
    fn commit_rows(&self, commit: CommitInfo) -> (Vec<CommitInfo>, Vec<EntryOrigin>, Rows) {
        let mut by_rank: BTreeMap<OriginRank, &EntryOrigin> = BTreeMap::new();
        let mut unmoved = false;
        for item in self.items.iter().flatten() {
            match &item.origin {
                Some(origin) => drop(by_rank.insert(origin.rank(), origin)),
                None => unmoved = true,
            }
        }
        let mut commits: Vec<CommitInfo> =
            (0..by_rank.len() as u32).map(|i| CommitInfo { origin: Some(i), ..commit }).collect();
        if unmoved || commits.is_empty() {
            commits.push(commit);
        }
        let rows = by_rank.keys().copied().zip(0..).collect();
        (commits, by_rank.into_values().cloned().collect(), rows)
    }
}

fn locate(file: u32, offset: u64, size: u64, blocks: Vec<Block>, payload: u64, table: &[u8]) -> Location {
    Location::Blocks { file, offset, size, blocks: listed(offset, blocks, payload, table) }
}

/// Blocks in the entry, or in the table that stands behind the payload.
fn listed(offset: u64, blocks: Vec<Block>, payload: u64, table: &[u8]) -> Blocks {
    if blocks.len() <= INLINE_BLOCKS {
        return Blocks::Inline(blocks);
    }
    Blocks::Table { offset: offset + payload, length: table.len() as u64, crc: fieldstone_format::crc(table) }
}
