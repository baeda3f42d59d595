//! One field of a store in a folder.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, Uncovered, fill_box, uncovered};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::block::{Block, check};
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::entry::{Blocks, Location};

use super::blocks::Source;
use super::lookup::{all_under, parts_under};
use super::purged::purged;
use super::versions::{KeyVersions, Part};
use crate::field::{BlockPlace, Field, FieldId, FieldPart, FieldSource, Outline, StoredArray};
use crate::files::Files;
use crate::snapshot::Snapshot;

/// Bytes of neighbouring fields that are fetched by one read: they stay in the processor's cache while
/// they are checked.
const GROUP_MAX: usize = 512 << 10;

/// A field of a pinned snapshot.
#[derive(Debug)]
pub struct LocalField {
    files: Arc<Files>,
    /// Keeps the snapshot's files and segments alive.
    snapshot: Arc<Snapshot>,
    versions: KeyVersions,
    /// The key under which an overlay shows it.
    shown: Option<Box<[u8]>>,
    /// The same parts where they are now, once a takeover has moved them and their files are gone.
    again: OnceLock<Arc<LocalField>>,
}

impl LocalField {
    /// The field that is visible among the versions of its key.
    pub fn field(files: Arc<Files>, snapshot: Arc<Snapshot>, versions: KeyVersions) -> Field {
        LocalField::shown(files, snapshot, versions, None)
    }

    /// The same, under the key by which an overlay shows it.
    pub fn shown(
        files: Arc<Files>,
        snapshot: Arc<Snapshot>,
        versions: KeyVersions,
        shown: Option<Box<[u8]>>,
    ) -> Field {
        Field::new(Arc::new(LocalField { files, snapshot, versions, shown, again: OnceLock::new() }))
    }

    /// The field, if it is one of a store in a folder.
    fn of(field: &Field) -> Option<&LocalField> {
        let source: &dyn Any = &**field.source();
        source.downcast_ref()
    }

    /// Reads, and once more where the parts are now, if a file is gone that a takeover has replaced (R31).
    fn wherever<T>(&self, mut read: impl FnMut(&LocalField) -> Result<T>) -> Result<T> {
        let mut place = self;
        while let Some(again) = place.again.get() {
            place = again;
        }
        match read(place) {
            Err(gone) if gone.code() == Code::DataGone => match place.find_again()? {
                Some(found) => read(place.again.get_or_init(|| Arc::new(found))),
                None => Err(gone),
            },
            outcome => outcome,
        }
    }

    /// The field with its parts as the newest snapshot has them, by their names; `None` if they are where they were, or nowhere.
    fn find_again(&self) -> Result<Option<LocalField>> {
        let newest = self.files.newest()?;
        if newest.taken.takeovers().is_same(self.snapshot.taken.takeovers()) {
            return Ok(None);
        }
        let mut versions = self.versions.clone();
        let found = parts_under(&newest, &versions.key)?;
        for part in &mut versions.parts {
            // A purge may have left the mark of an attempt in its place.
            let is_it = |found: &&Part| found.id() == part.id() && !found.entry.is_attempt_tombstone();
            let Some(now) = found.iter().find(is_it) else {
                return match newest.head(part.commit.writer) >= part.commit.sequence {
                    // Its commit is there, and the entry is not.
                    true => Err(purged(versions.name())),
                    false => Ok(None),
                };
            };
            *part = Part { order: part.order, ..now.clone() };
        }
        let (files, shown, again) = (self.files.clone(), self.shown.clone(), OnceLock::new());
        Ok(Some(LocalField { files, snapshot: newest, versions, shown, again }))
    }

    /// The versions of the key from the newest that this field hides on.
    fn behind(&self) -> Result<Option<KeyVersions>> {
        let mut versions = self.versions.clone();
        if versions.live == versions.parts.len() {
            // A retrieve keeps what is visible alone.
            let Some(all) = all_under(&self.snapshot, &versions.key, None)? else { return Ok(None) };
            if all.live().iter().map(Part::id).ne(versions.live().iter().map(Part::id)) {
                return Ok(None);
            }
            versions = all;
        }
        Ok(versions.go_back().then_some(versions))
    }

    fn bytes_of<'a>(&'a self, part: &'a Part) -> Source<'a> {
        Source::new(&self.files, part, &self.versions.key)
    }

    /// The whole field.
    fn read_all(&self, lenient: bool, out: &mut [u8]) -> Result<()> {
        if let [part] = self.versions.live()
            && part.entry.generation
            && !matches!(part.entry.location, Location::None)
            && (lenient || part.covers_its_box())
        {
            return self.bytes_of(part).read_all(out);
        }
        match self.versions.array()? {
            Some((_, shape)) => self.read_region(&IndexBox::whole(shape)?, lenient, out),
            None => self.bytes_of(self.versions.newest()).read_all(out),
        }
    }

    /// A box of an array.
    fn read_region(&self, region: &IndexBox, lenient: bool, out: &mut [u8]) -> Result<()> {
        if region.is_empty() {
            return Ok(());
        }
        let live = self.versions.live();
        // Parts that lie in the region: a field may have thousands, and a small box touches few of them.
        let mut touching: Vec<Touching<'_>> = Vec::new();
        for part in live {
            if let Some(own) = part.entry.index_box()?
                && let Some(seen) = own.intersect(region)
            {
                touching.push(Touching { part, own, seen });
            }
        }
        if !self.covers(&touching, region)? {
            if !lenient {
                self.check_region(region)?;
            }
            let fill = live.iter().find_map(|p| p.entry.array.as_ref()?.fill.clone());
            let fill = match (fill, self.versions.array()?) {
                (Some(fill), _) => fill,
                (None, Some((dtype, _))) => dtype.default_fill(),
                (None, None) => return Err(Error::internal("a box of opaque bytes was asked for")),
            };
            fill_box(out, region, region, &fill)?;
        }
        // The newest part is painted last. A part that newer ones cover whole is not read.
        for (i, Touching { part, seen, .. }) in touching.iter().enumerate().rev() {
            if !touching[..i].iter().any(|newer| newer.own.contains(seen)) {
                self.bytes_of(part).read_region(region, out, region)?;
            }
        }
        Ok(())
    }

    /// Whether every element of the region was written; `touching` are the parts that lie in it.
    fn covers(&self, touching: &[Touching<'_>], region: &IndexBox) -> Result<bool> {
        let written = touching.iter().filter(|t| t.part.covers_its_box());
        if written.clone().any(|t| t.own.contains(region)) {
            return Ok(true);
        }
        let boxes = written.map(|t| t.seen.relative_to(region)).collect::<Result<Vec<_>>>()?;
        Ok(uncovered(region.count(), &boxes, 1)?.is_complete())
    }

    /// NotFound unless every element of the region was written.
    fn check_region(&self, region: &IndexBox) -> Result<()> {
        let missing = self.versions.missing(usize::MAX >> 8)?;
        match missing.boxes.iter().any(|hole| hole.overlaps(region)) {
            true => self.versions.check_complete(),
            false => Ok(()),
        }
    }

    /// The one stored block that is the whole field as it is, where that is so.
    fn single_block(&self) -> Option<SingleBlock<'_>> {
        let [part] = self.versions.live() else { return None };
        let entry = &part.entry;
        let Location::Blocks { file, offset, blocks: Blocks::Inline(blocks), .. } = &entry.location else {
            return None;
        };
        match &blocks[..] {
            [block] if entry.generation && block.stored == entry.length => {
                Some(SingleBlock { holder: part.holder, file: *file, offset: *offset, block })
            }
            _ => None,
        }
    }

    /// Whether `next` stands right behind this field in the same file.
    fn is_followed_by(&self, next: &LocalField) -> bool {
        match (self.single_block(), next.single_block()) {
            (Some(a), Some(b)) => {
                (a.holder, a.file, a.offset + a.block.stored) == (b.holder, b.file, b.offset)
            }
            _ => false,
        }
    }

    /// How many fields of a batch, from the first on, stand one behind the other, each a single block; and
    /// their bytes.
    fn neighbours(&self, batch: &[(Field, usize)]) -> (usize, usize) {
        let (mut last, mut bytes, mut count) = (self, batch[0].1, 1);
        if self.single_block().is_none() {
            return (count, bytes);
        }
        for (field, length) in &batch[1..] {
            match LocalField::of(field) {
                Some(next) if bytes + length <= GROUP_MAX && last.is_followed_by(next) => {
                    (last, bytes, count) = (next, bytes + length, count + 1);
                }
                _ => break,
            }
        }
        (count, bytes)
    }

    /// Reads neighbours by one read.
    fn read_group(&self, first: SingleBlock<'_>, group: &[(Field, usize)], out: &mut [u8]) -> Result<()> {
        if let Err(e) = self.files.read(first.holder, first.file, out, first.offset) {
            // Which of them is cut shows when they are read one by one.
            return read_each(group, out).and(Err(e));
        }
        let mut rest = &out[..];
        for (field, length) in group {
            let (own, behind) = rest.split_at(*length);
            let single = LocalField::of(field).and_then(LocalField::single_block);
            if single.is_none_or(|single| check(own, single.block).is_err()) {
                return read_each(group, out);
            }
            rest = behind;
        }
        Ok(())
    }
}

impl FieldSource for LocalField {
    fn id(&self) -> FieldId<'_> {
        FieldId {
            store: self.files.medium().name(),
            key: self.shown.as_deref().unwrap_or(&self.versions.key),
            entry: self.versions.newest().id(),
        }
    }

    fn commits(&self) -> Vec<(CommitId, u64)> {
        let mut commits: Vec<(CommitId, u64)> = Vec::new();
        for part in self.versions.live() {
            let (id, stamp) = part.written_by(&self.snapshot);
            // Pieces of one commit follow one another.
            if commits.last().is_none_or(|(last, _)| *last != id) {
                commits.push((id, stamp));
            }
        }
        commits
    }

    fn parts(&self) -> Result<Vec<FieldPart>> {
        let part = |part: &Part| {
            let region = part.entry.index_box()?.filter(|_| part.covers_its_box());
            Ok(FieldPart { origin: part.origin(&self.snapshot)?, region })
        };
        self.versions.live().iter().map(part).collect()
    }

    fn older(&self) -> Result<Option<Field>> {
        let (files, snapshot) = (self.files.clone(), self.snapshot.clone());
        let field = |versions| LocalField::shown(files, snapshot, versions, self.shown.clone());
        Ok(self.behind()?.map(field))
    }

    fn version(&self) -> String {
        self.snapshot.version().encode()
    }

    fn time(&self) -> i64 {
        self.versions.newest().commit.time
    }

    fn nbytes(&self) -> Result<u64> {
        self.versions.nbytes()
    }

    fn array(&self) -> Result<Option<(DType, &[u64])>> {
        self.versions.array()
    }

    fn missing(&self, limit: usize) -> Result<Uncovered> {
        match self.versions.is_whole() {
            true => Ok(Uncovered::default()),
            false => self.versions.missing(limit),
        }
    }

    fn holes(&self) -> Result<u64> {
        match self.versions.is_complete()? {
            true => Ok(0),
            false => Ok(self.versions.holes()),
        }
    }

    fn chunks(&self) -> Option<Vec<u64>> {
        let newest = self.versions.newest();
        let array = newest.entry.array.as_ref()?;
        Some(newest.chunk().unwrap_or_else(|| match &array.piece {
            Some(piece) => piece.count().to_vec(),
            None => array.shape.clone(),
        }))
    }

    fn outline(&self) -> Result<Option<Outline>> {
        let Some((dtype, shape)) = self.versions.array()? else { return Ok(None) };
        let live = self.versions.live();
        let arrays = || live.iter().filter_map(|part| part.entry.array.as_ref());
        let chunks = match live {
            // The offsets at which files outside are cut reflect no wish of a caller.
            [part] if matches!(part.entry.location, Location::External(_) | Location::Grown(_)) => None,
            [part] if part.entry.generation && part.entry.location != Location::None => self.chunks(),
            // Each of several pieces has its own; the declared ones come first.
            _ => arrays().rev().find_map(|array| array.chunk.clone()),
        };
        let fill = arrays().find_map(|array| array.fill.clone()).filter(|fill| *fill != dtype.default_fill());
        Ok(Some(Outline { dtype, shape: shape.to_vec(), fill, chunks }))
    }

    fn is_compressed(&self) -> Result<bool> {
        self.wherever(|field| {
            for part in field.versions.live() {
                let inside = matches!(part.entry.location, Location::Blocks { .. });
                let stored = field.bytes_of(part).stored_bytes()?;
                if inside && stored < part.entry.length {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn stored_array(&self) -> Result<Option<StoredArray>> {
        let [part] = self.versions.live() else { return Ok(None) };
        self.bytes_of(part).stored_array()
    }

    fn block_place(&self, region: &IndexBox) -> Result<Option<BlockPlace>> {
        self.versions.array()?;
        // Only of the newest part that lies in the region is nothing hidden there.
        for (at, part) in self.versions.live().iter().enumerate() {
            if part.entry.index_box()?.is_some_and(|own| own.overlaps(region)) {
                return self.bytes_of(part).block_of(region, at);
            }
        }
        Ok(None)
    }

    fn read_block(&self, place: &BlockPlace, out: &mut [u8]) -> Result<()> {
        match self.versions.live().get(place.part) {
            Some(part) => self.bytes_of(part).read_stored(place, out),
            None => Err(Error::internal("a block of another field was asked for")),
        }
    }

    fn summary(&self) -> Option<Summary> {
        summary_of(&self.versions)
    }

    fn read(&self, region: Option<&IndexBox>, lenient: bool, out: &mut [u8]) -> Result<()> {
        self.wherever(|field| match region {
            Some(region) => field.read_region(region, lenient, out),
            None => field.read_all(lenient, out),
        })
    }

    fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        self.wherever(|field| field.bytes_of(field.versions.newest()).read_range(start, out))
    }

    fn read_first(&self, batch: &[(Field, usize)], out: &mut [u8]) -> Result<usize> {
        let Some((first, length)) = batch.first() else { return Ok(0) };
        let (count, bytes) = self.neighbours(batch);
        match self.single_block().filter(|_| count > 1) {
            Some(single) => self.read_group(single, &batch[..count], &mut out[..bytes])?,
            None => self.wherever(|field| field.read_all(first.is_lenient(), &mut out[..*length]))?,
        }
        Ok(count)
    }
}

fn read_each(group: &[(Field, usize)], out: &mut [u8]) -> Result<()> {
    let mut rest = out;
    for (field, length) in group {
        let (own, behind) = rest.split_at_mut(*length);
        field.read_into(own)?;
        rest = behind;
    }
    Ok(())
}

/// A block that is a whole field.
struct SingleBlock<'a> {
    holder: Id,
    file: u32,
    offset: u64,
    block: &'a Block,
}

/// A part that lies in a region: its box, and what of it lies there.
struct Touching<'a> {
    part: &'a Part,
    own: IndexBox,
    seen: IndexBox,
}

/// Extremes and missing elements over the visible generation.
pub fn summary_of(versions: &KeyVersions) -> Option<Summary> {
    let mut parts = versions.live().iter().filter(|p| p.entry.location != Location::None);
    let of = |part: &Part| part.entry.array.as_ref()?.summary;
    let mut sum = of(parts.next()?)?;
    for part in parts {
        sum.merge(&of(part)?);
    }
    Some(sum)
}
