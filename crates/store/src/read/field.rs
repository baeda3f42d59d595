//! One field, read lazily and checked.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, fill_box, uncovered};
use fieldstone_core::key::FieldKey;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::block::{Block, check};
use fieldstone_format::entry::{Blocks, EntryId, Location};
use fieldstone_format::keys::KeyDecoder;

use super::blocks::Source;
use super::versions::Versions;
use crate::files::Files;
use crate::snapshot::Snapshot;

/// A field of a pinned snapshot. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Field {
    files: Arc<Files>,
    /// Keeps the snapshot's files and runs alive.
    snapshot: Arc<Snapshot>,
    versions: Arc<Versions>,
    lenient: bool,
}

/// How an array field was declared and is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// The value of what nobody wrote, where it is not the element type's own.
    pub fill: Option<Vec<u8>>,
    /// Extents of the chunks, where anybody chose them.
    pub chunks: Option<Vec<u64>>,
}

impl Field {
    pub(crate) fn new(
        files: Arc<Files>,
        snapshot: Arc<Snapshot>,
        versions: Versions,
        lenient: bool,
    ) -> Field {
        Field { files, snapshot, versions: Arc::new(versions), lenient }
    }

    /// The same field, with what nobody wrote filled instead of refused.
    pub fn lenient(mut self) -> Field {
        self.lenient = true;
        self
    }

    /// The same field, with what nobody wrote refused.
    pub fn strict(mut self) -> Field {
        self.lenient = false;
        self
    }

    /// Its key.
    pub fn key(&self) -> Result<FieldKey> {
        KeyDecoder::new().decode(&self.versions.key)
    }

    /// The encoded key.
    pub(crate) fn encoded_key(&self) -> &[u8] {
        &self.versions.key
    }

    /// The name of its newest part.
    pub(crate) fn id(&self) -> EntryId {
        self.versions.newest().id()
    }

    /// The folder of its store.
    pub(crate) fn root(&self) -> &Path {
        self.files.layout().root()
    }

    /// The text that names the snapshot this field belongs to.
    pub fn version(&self) -> String {
        self.snapshot.version().encode()
    }

    /// Raw bytes.
    pub fn nbytes(&self) -> Result<u64> {
        self.versions.nbytes()
    }

    /// Element type; `None` for opaque bytes.
    pub fn dtype(&self) -> Result<Option<DType>> {
        Ok(self.versions.array()?.map(|(dtype, _)| dtype))
    }

    /// Extents; `None` for opaque bytes.
    pub fn shape(&self) -> Result<Option<Vec<u64>>> {
        Ok(self.versions.array()?.map(|(_, shape)| shape.to_vec()))
    }

    /// Whether every element is there.
    pub fn is_complete(&self) -> Result<bool> {
        self.versions.is_complete()
    }

    /// When its newest part was flushed, nanoseconds since 1970, by the writer's clock.
    pub fn time(&self) -> i64 {
        self.versions.newest().commit.time
    }

    /// Extents of the chunks in which its newest part is stored; `None` for opaque bytes.
    pub fn chunks(&self) -> Option<Vec<u64>> {
        let array = self.versions.newest().entry.array.as_ref()?;
        Some(array.chunk.clone().unwrap_or_else(|| match &array.piece {
            Some(piece) => piece.count().to_vec(),
            None => array.shape.clone(),
        }))
    }

    /// How an array was declared and is stored, so that another store can have it the same way; `None`
    /// for opaque bytes.
    pub fn outline(&self) -> Result<Option<Outline>> {
        let Some((dtype, shape)) = self.versions.array()? else { return Ok(None) };
        let live = self.versions.live();
        let arrays = || live.iter().filter_map(|part| part.entry.array.as_ref());
        let chunks = match live {
            // Where files outside are cut is no wish of anybody.
            [part] if matches!(part.entry.location, Location::External(_)) => None,
            [part] if part.entry.generation && part.entry.location != Location::None => self.chunks(),
            // Of several pieces each has its own; what was declared counts before them.
            _ => arrays().rev().find_map(|array| array.chunk.clone()),
        };
        let fill = arrays().find_map(|array| array.fill.clone()).filter(|fill| *fill != dtype.default_fill());
        Ok(Some(Outline { dtype, shape: shape.to_vec(), fill, chunks }))
    }

    /// Whether any part is stored compressed.
    pub fn is_compressed(&self) -> Result<bool> {
        for part in self.versions.live() {
            let inside = matches!(part.entry.location, Location::Blocks { .. });
            let stored = Source::new(&self.files, part, &self.versions.key).stored_bytes()?;
            if inside && stored < part.entry.length {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Boxes that together hold every element which somebody wrote, and no other; they do not overlap.
    pub fn written(&self) -> Result<Vec<IndexBox>> {
        let (_, shape) = self.array()?;
        if self.is_complete()? {
            return Ok(vec![IndexBox::whole(&shape)?]);
        }
        let holes = self.versions.missing(usize::MAX >> 8)?;
        Ok(uncovered(&shape, &holes.boxes, usize::MAX >> 8)?.boxes)
    }

    /// Extremes and missing elements over all parts, where each has them. Of overlapping parts all
    /// count, so that the extremes may be wider than what is visible.
    pub fn summary(&self) -> Option<Summary> {
        summary_of(&self.versions)
    }

    /// The whole field.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut out = self.buffer(self.nbytes()?)?;
        self.read_into(&mut out)?;
        Ok(out)
    }

    /// The whole field into a buffer of exactly its length.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        let nbytes = self.nbytes()?;
        if out.len() as u64 != nbytes {
            return Err(Error::invalid(format!(
                "{} has {nbytes} bytes, the buffer {}",
                self.versions.name(),
                out.len()
            )));
        }
        if let [part] = self.versions.live()
            && part.entry.generation
            && !matches!(part.entry.location, Location::None)
        {
            return Source::new(&self.files, part, &self.versions.key).read_all(out);
        }
        match self.shape()? {
            Some(shape) => self.read_box_into(&IndexBox::whole(&shape)?, out),
            None => Source::new(&self.files, self.versions.newest(), &self.versions.key).read_all(out),
        }
    }

    /// Bytes from `start` on of an opaque field; `out` must lie inside it.
    pub fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        if self.versions.array()?.is_some() {
            return Err(
                Error::invalid(format!("{} is an array", self.versions.name())).with_hint("read a box of it")
            );
        }
        let nbytes = self.nbytes()?;
        if start.checked_add(out.len() as u64).is_none_or(|end| end > nbytes) {
            return Err(Error::invalid(format!(
                "{} has {nbytes} bytes: {} at {start} reach beyond",
                self.versions.name(),
                out.len()
            )));
        }
        Source::new(&self.files, self.versions.newest(), &self.versions.key).read_range(start, out)
    }

    /// A box of an array in C order (all of it without one); the bytes of an opaque field without one.
    pub fn read_box(&self, region: Option<&IndexBox>) -> Result<Vec<u8>> {
        let Some(region) = region else { return self.read() };
        let (dtype, shape) = self.array()?;
        region.check_within(&shape)?;
        let bytes = region.element_count()?.checked_mul(dtype.size() as u64);
        let mut out =
            self.buffer(bytes.ok_or_else(|| Error::invalid(format!("box [{region}] is too large")))?)?;
        self.read_box_into(region, &mut out)?;
        Ok(out)
    }

    /// A box of an array into a buffer of exactly its bytes, in C order.
    pub fn read_box_into(&self, region: &IndexBox, out: &mut [u8]) -> Result<()> {
        let (dtype, shape) = self.array()?;
        region.check_within(&shape)?;
        let bytes = region.element_count()?.checked_mul(dtype.size() as u64);
        if bytes != Some(out.len() as u64) {
            return Err(Error::invalid(format!(
                "box [{region}] of {} does not have the buffer's {} bytes",
                self.versions.name(),
                out.len()
            )));
        }
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
            if !self.lenient {
                self.check_region(region)?;
            }
            let fill = live.iter().find_map(|p| p.entry.array.as_ref()?.fill.clone());
            let fill = fill.unwrap_or_else(|| dtype.default_fill());
            fill_box(out, region, region, &fill)?;
        }
        // The newest part is painted last. A part that newer ones cover whole is not read.
        for (i, Touching { part, seen, .. }) in touching.iter().enumerate().rev() {
            if !touching[..i].iter().any(|newer| newer.own.contains(seen)) {
                Source::new(&self.files, part, &self.versions.key).read_region(region, out, region)?;
            }
        }
        Ok(())
    }

    /// Whether every element of the region was written; `touching` are the parts that lie in it.
    fn covers(&self, touching: &[Touching<'_>], region: &IndexBox) -> Result<bool> {
        let written = touching.iter().filter(|t| t.part.entry.location != Location::None);
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

    fn array(&self) -> Result<(DType, Vec<u64>)> {
        match self.versions.array()? {
            Some((dtype, shape)) => Ok((dtype, shape.to_vec())),
            None => Err(Error::invalid(format!("{} is opaque bytes, not an array", self.versions.name()))),
        }
    }

    fn buffer(&self, bytes: u64) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        let fits = usize::try_from(bytes).is_ok_and(|n| buffer.try_reserve_exact(n).is_ok());
        if !fits {
            return Err(Error::unavailable(format!(
                "{} takes {bytes} bytes, more than this machine's memory",
                self.versions.name()
            ))
            .with_hint("read it box by box"));
        }
        buffer.resize(bytes as usize, 0);
        Ok(buffer)
    }

    /// The one stored block that is the whole field as it is, where that is so.
    pub(crate) fn single_block(&self) -> Option<SingleBlock<'_>> {
        let [part] = self.versions.live() else { return None };
        let entry = &part.entry;
        let Location::Blocks { file, offset, blocks: Blocks::Inline(blocks), .. } = &entry.location else {
            return None;
        };
        match &blocks[..] {
            [block] if entry.generation && block.stored == entry.length => {
                Some(SingleBlock { writer: part.writer, file: *file, offset: *offset, block })
            }
            _ => None,
        }
    }

    /// Whether `next` stands right behind this field in the same file.
    pub(crate) fn is_followed_by(&self, next: &Field) -> bool {
        match (self.single_block(), next.single_block()) {
            (Some(a), Some(b)) => {
                (a.writer, a.file, a.offset + a.block.stored) == (b.writer, b.file, b.offset)
            }
            _ => false,
        }
    }

    /// Reads fields, given with their lengths, that stand one behind the other, each a single block, by
    /// one read; a single field of any kind.
    pub(crate) fn read_group(group: &[(Field, usize)], out: &mut [u8]) -> Result<()> {
        let Some((first, _)) = group.first() else { return Ok(()) };
        let Some(single) = first.single_block().filter(|_| group.len() > 1) else {
            return first.read_into(out);
        };
        if let Err(e) = first.files.read(single.writer, single.file, out, single.offset) {
            // Which of them is cut shows when they are read one by one.
            return Field::read_each(group, out).and(Err(e));
        }
        let mut rest = &out[..];
        for (field, length) in group {
            let (own, behind) = rest.split_at(*length);
            if field.single_block().is_none_or(|single| check(own, single.block).is_err()) {
                return Field::read_each(group, out);
            }
            rest = behind;
        }
        Ok(())
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
}

/// A block that is a whole field.
pub(crate) struct SingleBlock<'a> {
    writer: Id,
    file: u32,
    offset: u64,
    block: &'a Block,
}

/// A part that lies in a region: its box, and what of it lies there.
struct Touching<'a> {
    part: &'a super::versions::Part,
    own: IndexBox,
    seen: IndexBox,
}

/// Extremes and missing elements over the visible generation.
pub(crate) fn summary_of(versions: &Versions) -> Option<Summary> {
    let mut parts = versions.live().iter().filter(|p| p.entry.location != Location::None);
    let of = |part: &super::versions::Part| part.entry.array.as_ref()?.summary;
    let mut sum = of(parts.next()?)?;
    for part in parts {
        sum.merge(&of(part)?);
    }
    Some(sum)
}
