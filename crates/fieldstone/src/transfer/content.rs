//! A field's content, carried over and compared in parts of bounded size.
//!
//! An array is cut into boxes of at most [`PART`] bytes along its chunks (or of one chunk, if that is longer), so that
//! no chunk is read twice; opaque bytes into ranges. The digest of a field covers its written elements in the order of
//! these parts, which depends on the source alone.
//!
//! Each element is written with the commit that wrote it first: where several commits have a share in an array, no box
//! reaches into the shares of two.

use std::cell::{Cell, RefCell};

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, uncovered};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::origin::EntryOrigin;
use fieldstone_format::owner::Owner;
use fieldstone_store::api::{ArchiveOptions, ByteStream, Compression, FieldSpec, FieldStore, Value};
use fieldstone_store::{Field, FieldPart, Outline};
use xxhash_rust::xxh3::Xxh3;

use crate::arrays::CarriedArray;

/// Bytes of an array in memory at once.
const PART: u64 = 16 << 20;

/// More boxes than an array has.
const ALL: usize = usize::MAX >> 8;

/// The compression level for a field that was compressed before.
const LEVEL: i32 = 3;

/// The result of archiving a field elsewhere.
pub enum Archived {
    /// It was archived; the digest of the bytes read.
    Whole(u128),
    /// The source cannot be read, and nothing was written.
    Unreadable(Error),
    /// A part of the source cannot be read, and others were written.
    Torn(Error),
}

/// Whether an error means that stored data cannot be read: damage, or pieces that disagree.
pub fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Conflict)
}

/// A field of the source, and its division into parts.
pub struct Content {
    field: Field,
    /// `None` for opaque bytes.
    outline: Option<Outline>,
    /// Boxes with written elements.
    written: Vec<IndexBox>,
    /// The same boxes, cut where the shares of two commits meet, each with the number of its origin.
    shares: Vec<(IndexBox, usize)>,
    /// The commits of its parts, newest part first.
    origins: Vec<EntryOrigin>,
    complete: bool,
    /// Whether it is a whole array in a file of its store.
    in_file: bool,
    /// Number of elements that nobody wrote, whose places are not known.
    holes: u64,
}

impl Content {
    /// A field; `in_file`: it may stay an array in a file.
    pub fn new(field: Field, in_file: bool) -> Result<Content> {
        let outline = field.outline()?;
        let in_file = in_file && field.stored_array()?.is_some();
        let holes = if in_file { field.holes()? } else { 0 };
        let written = match &outline {
            Some(outline) if holes > 0 => vec![IndexBox::whole(&outline.shape)?],
            Some(_) => field.written()?,
            None => Vec::new(),
        };
        let parts = field.parts()?;
        let shares = match parts.iter().all(|part| part.origin == parts[0].origin) {
            true => written.iter().map(|region| (region.clone(), 0)).collect(),
            false if outline.is_some() => shares(&parts)?,
            false => Vec::new(),
        };
        let origins = parts.into_iter().map(|part| part.origin).collect();
        Ok(Content {
            complete: field.is_complete()?,
            field: field.lenient(),
            outline,
            written,
            shares,
            origins,
            in_file,
            holes,
        })
    }

    /// A field, and with `versions` the older values that it hides, newest first; `in_file`: the newest may stay an array in
    /// a file.
    pub fn with_older(field: Field, versions: bool, in_file: bool) -> Result<Vec<Content>> {
        let (mut contents, mut next) = (Vec::new(), Some(field));
        while let Some(field) = next {
            next = if versions { field.older()? } else { None };
            contents.push(Content::new(field, in_file && contents.is_empty())?);
        }
        order_places(&mut contents);
        Ok(contents)
    }

    /// The least place in the order among its parts; `None` if nobody knows their commits.
    pub fn oldest_place(&self) -> Option<u64> {
        self.origins.iter().map(|origin| origin.stamp).min()
    }

    /// The greatest one.
    pub fn newest_place(&self) -> Option<u64> {
        self.origins.iter().map(|origin| origin.stamp).max()
    }

    /// The user of another store to whom its newest part belonged.
    pub fn owner(&self) -> Option<u32> {
        match self.origins.first()?.owner {
            Some(Owner::User(user)) => Some(user),
            _ => None,
        }
    }

    /// Type and shape, if it is a whole array in a file of its store.
    pub fn array_in_file(&self) -> Option<(DType, &[u64])> {
        let outline = self.outline.as_ref().filter(|_| self.in_file && self.shares.len() == 1);
        outline.map(|outline| (outline.dtype, &outline.shape[..]))
    }

    /// It as an array for a file, under `key` of another store; see [`archive`](Self::archive).
    pub fn carried_array(
        &self,
        key: &[(&str, &str)],
        lift: Option<u64>,
        options: &ArchiveOptions,
    ) -> Option<CarriedArray> {
        let Outline { dtype, shape, fill, .. } = self.outline.clone()?;
        let options = self.with_origin(self.shares.first()?.1, lift, options);
        let key = key.iter().map(|(keyword, value)| ((*keyword).to_owned(), (*value).to_owned()));
        Some(CarriedArray { key: key.collect(), dtype, shape, fill, holes: self.holes, options })
    }

    /// Passes the bytes of its parts on, and returns their digest; the error of a part that cannot be read is the inner one.
    pub fn read_parts(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Result<u128>> {
        let mut digest = Xxh3::new();
        for (part, _) in &self.parts() {
            let data = match self.field.read_box(Some(part)) {
                Err(e) if is_damage(&e) => return Ok(Err(e)),
                data => data?,
            };
            digest.update(&data);
            take(&data)?;
        }
        Ok(Ok(digest.digest128()))
    }

    /// These options with the origin of a part; `lift` raises its place in the order.
    fn with_origin(&self, part: usize, lift: Option<u64>, options: &ArchiveOptions) -> ArchiveOptions {
        let origin = self.origins.get(part).zip(lift);
        let raised = |(origin, lift): (&EntryOrigin, u64)| EntryOrigin {
            stamp: origin.stamp.saturating_add(lift),
            ..origin.clone()
        };
        ArchiveOptions { origin: origin.map(raised), ..options.clone() }
    }

    /// Number of bytes to carry over.
    pub fn nbytes(&self) -> Result<u64> {
        let Some(outline) = &self.outline else { return self.field.nbytes() };
        let item = outline.dtype.size() as u64;
        self.written
            .iter()
            .try_fold(0, |sum: u64, part| Ok(sum.saturating_add(part.element_count()?.saturating_mul(item))))
    }

    /// Archives the field under `key` of another store; with `lift`, each part as of its commit, with its place in the order
    /// raised by that much.
    pub fn archive(
        &self,
        to: &dyn FieldStore,
        key: &[(&str, &str)],
        lift: Option<u64>,
        options: &ArchiveOptions,
    ) -> Result<Archived> {
        let packed = self.field.is_compressed()?;
        let compression = if packed { Compression::Zstd(LEVEL) } else { Compression::None };
        let mut options = ArchiveOptions { compression: Some(compression), ..options.clone() };
        let Some(outline) = &self.outline else {
            let options = self.with_origin(0, lift, &options);
            if self.field.nbytes()? > PART {
                return self.archive_stream(to, key, &options);
            }
            return self.archive_whole(&mut |bytes| to.archive(key, Value::Bytes(bytes), &options));
        };
        let Outline { dtype, shape, fill, chunks } = outline;
        options.chunks.clone_from(chunks);
        let parts = self.parts();
        if self.complete
            && fill.is_none()
            && let [(_, origin)] = &parts[..]
        {
            let options = self.with_origin(*origin, lift, &options);
            return self.archive_whole(&mut |data| {
                to.archive(key, Value::Array { data, dtype: *dtype, shape }, &options)
            });
        }
        let mut digest = Xxh3::new();
        let mut created = false;
        let creation = self.with_origin(self.origins.len().saturating_sub(1), lift, &options);
        // Read the first part before anything is written.
        for (part, origin) in &parts {
            let data = match self.field.read_box(Some(part)) {
                Err(e) if is_damage(&e) && created => return Ok(Archived::Torn(e)),
                Err(e) if is_damage(&e) => return Ok(Archived::Unreadable(e)),
                data => data?,
            };
            if !created {
                self.create(to, key, &creation)?;
                created = true;
            }
            digest.update(&data);
            let (start, count) = (part.start(), part.count());
            let options = self.with_origin(*origin, lift, &options);
            to.archive(key, Value::Piece { data: &data, dtype: *dtype, start, count, shape }, &options)?;
        }
        if !created {
            self.create(to, key, &creation)?;
        }
        Ok(Archived::Whole(digest.digest128()))
    }

    /// Opaque bytes, of which memory holds a part.
    fn archive_stream(
        &self,
        to: &dyn FieldStore,
        key: &[(&str, &str)],
        options: &ArchiveOptions,
    ) -> Result<Archived> {
        let nbytes = self.field.nbytes()?;
        // They are read once before anything is written.
        let (digested, damage) = (RefCell::new((0, Xxh3::new())), Cell::new(None));
        let read = |at: u64, out: &mut [u8]| {
            self.field.read_range(at, out).inspect_err(|error| {
                damage.set(is_damage(error).then(|| error.replicate()));
            })?;
            let (end, digest) = &mut *digested.borrow_mut();
            if at == *end {
                digest.update(out);
                *end += out.len() as u64;
            }
            Ok(())
        };
        let archived = to.archive_stream(key, ByteStream { nbytes, read: &read }, options);
        let (end, digest) = digested.into_inner();
        match (archived, damage.take()) {
            (Err(_), Some(error)) if end < nbytes => Ok(Archived::Unreadable(error)),
            (Err(_), Some(error)) => Ok(Archived::Torn(error)),
            (archived, _) => archived.map(|()| Archived::Whole(digest.digest128())),
        }
    }

    fn archive_whole(&self, archive: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Archived> {
        let data = match self.field.read() {
            Err(e) if is_damage(&e) => return Ok(Archived::Unreadable(e)),
            data => data?,
        };
        archive(&data)?;
        let mut digest = Xxh3::new();
        digest.update(&data);
        Ok(Archived::Whole(digest.digest128()))
    }

    fn create(&self, to: &dyn FieldStore, key: &[(&str, &str)], options: &ArchiveOptions) -> Result<()> {
        let Some(Outline { dtype, shape, fill, chunks }) = &self.outline else { return Ok(()) };
        let spec = FieldSpec { dtype: *dtype, shape, fill: fill.as_deref(), chunks: chunks.as_deref() };
        to.create_field(key, &spec, options)
    }

    /// The digest of a field that should equal this one; `None` if type, shape, or the set of written elements show
    /// that it does not.
    pub fn digest_of(&self, other: &Field) -> Result<Option<u128>> {
        let mut digest = Xxh3::new();
        let Some(outline) = &self.outline else {
            let nbytes = self.field.nbytes()?;
            if other.dtype()?.is_some() || other.nbytes()? != nbytes {
                return Ok(None);
            }
            let mut bytes = vec![0; PART.min(nbytes) as usize];
            let mut at = 0;
            while at < nbytes {
                let n = PART.min(nbytes - at) as usize;
                other.read_range(at, &mut bytes[..n])?;
                digest.update(&bytes[..n]);
                at += n as u64;
            }
            return Ok(Some(digest.digest128()));
        };
        let alike = other.dtype()? == Some(outline.dtype)
            && other.shape()?.as_ref() == Some(&outline.shape)
            && self.same_elements(other)?;
        if !alike {
            return Ok(None);
        }
        for (part, _) in self.parts() {
            digest.update(&other.read_box(Some(&part))?);
        }
        Ok(Some(digest.digest128()))
    }

    /// The digest of the field itself.
    pub fn digest(&self) -> Result<Option<u128>> {
        self.digest_of(&self.field)
    }

    /// Whether the same elements of another array are written.
    fn same_elements(&self, other: &Field) -> Result<bool> {
        let holes = other.holes()?;
        if self.holes > 0 || holes > 0 {
            return Ok(self.holes == holes);
        }
        let other = &other.written()?[..];
        let count = |boxes: &[IndexBox]| {
            boxes.iter().try_fold(0u64, |sum, b| Ok::<_, Error>(sum + b.element_count()?))
        };
        let mut both = 0;
        for a in &self.written {
            for b in other {
                both += a.intersect(b).map_or(Ok(0), |part| part.element_count())?;
            }
        }
        Ok(both == count(&self.written)? && both == count(other)?)
    }

    /// Boxes to carry over one by one, each with the number of its origin.
    fn parts(&self) -> Vec<(IndexBox, usize)> {
        let Some(outline) = &self.outline else { return Vec::new() };
        // The parts of an array in a file are contiguous there.
        let chunks = if self.in_file { Vec::new() } else { self.field.chunks().unwrap_or_default() };
        let mut parts = Vec::new();
        for (region, origin) in &self.shares {
            let mut boxes = Vec::new();
            cut(region, 0, &chunks, outline.dtype.size() as u64, &mut boxes);
            parts.extend(boxes.into_iter().map(|part| (part, *origin)));
        }
        parts
    }
}

/// Gives parts, newest first, places that ascend with their age also where writers differ: entries of one transaction have the
/// place of the decision, and their commits' own stamps, which no origin has, say which is newer.
fn order_places(contents: &mut [Content]) {
    let mut before: Option<(u64, Id)> = None;
    for origin in contents.iter_mut().rev().flat_map(|content| content.origins.iter_mut().rev()) {
        if let Some((stamp, writer)) = before.filter(|before| *before > (origin.stamp, origin.writer)) {
            origin.stamp = stamp.saturating_add(u64::from(origin.writer < writer));
        }
        before = Some((origin.stamp, origin.writer));
    }
}

/// Boxes that do not overlap, each with the number of the newest part that has its elements.
fn shares(parts: &[FieldPart]) -> Result<Vec<(IndexBox, usize)>> {
    let mut shares = Vec::new();
    let mut newer: Vec<&IndexBox> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let Some(own) = &part.region else { continue };
        let hidden = newer.iter().filter_map(|other| other.intersect(own));
        let hidden = hidden.map(|seen| seen.relative_to(own)).collect::<Result<Vec<_>>>()?;
        for seen in uncovered(own.count(), &hidden, ALL)?.boxes {
            let start = seen.start().iter().zip(own.start()).map(|(within, at)| at.saturating_add(*within));
            shares.push((IndexBox::unbounded(start.collect(), seen.count().to_vec())?, number));
        }
        newer.push(own);
    }
    Ok(shares)
}

/// Cuts a box, from dimension `d` on, into boxes of at most [`PART`] bytes that are whole chunks.
fn cut(region: &IndexBox, d: usize, chunks: &[u64], item: u64, parts: &mut Vec<IndexBox>) {
    let count = region.count();
    let bytes = count.iter().fold(item, |product, n| product.saturating_mul(*n));
    if bytes <= PART || d == count.len() {
        parts.push(region.clone());
        return;
    }
    let chunk = chunks.get(d).copied().unwrap_or(1).max(1);
    let slab = (bytes / count[d]).saturating_mul(chunk);
    let step = chunk.saturating_mul((PART / slab.max(1)).max(1));
    let mut at = 0;
    while at < count[d] {
        let (mut start, mut extent) = (region.start().to_vec(), count.to_vec());
        start[d] += at;
        extent[d] = step.min(count[d] - at);
        at = at.saturating_add(step);
        // The parts of a valid box lie inside it.
        if let Ok(part) = IndexBox::unbounded(start, extent) {
            cut(&part, d + 1, chunks, item, parts);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_core::geometry::uncovered;

    use super::*;

    #[test]
    fn a_box_is_cut_along_its_chunks_without_gap_or_overlap() {
        for (shape, chunks, item) in [
            (vec![1000, 500, 400], vec![20, 20, 20], 8),
            (vec![40_000_000], vec![8192], 4),
            (vec![3, 5_000_000], vec![3, 5_000_000], 8),
            (vec![3, 5_000_000], vec![1, 5_000_000], 8),
            (vec![7, 9], vec![2, 2], 8),
            (vec![], vec![], 8),
        ] {
            let whole = IndexBox::whole(&shape).unwrap();
            let mut parts = Vec::new();
            cut(&whole, 0, &chunks, item, &mut parts);
            let elements: u64 = parts.iter().map(|p| p.element_count().unwrap()).sum();
            assert_eq!(elements, whole.element_count().unwrap());
            assert!(uncovered(&shape, &parts, 1).unwrap().is_complete());
            let chunk = chunks.iter().product::<u64>() * item;
            for part in &parts {
                assert!(part.element_count().unwrap() * item <= PART.max(chunk), "{part}");
                assert!(part.start().iter().zip(&chunks).all(|(s, c)| s % c == 0), "{part}");
            }
        }
    }
}
