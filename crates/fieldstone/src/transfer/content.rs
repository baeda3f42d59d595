//! A field's content, carried over and compared in parts of bounded size.
//!
//! An array is cut into boxes of at most [`PART`] bytes along its chunks (or of one chunk, if that is longer), so that
//! no chunk is read twice; opaque bytes into ranges. The digest of a field covers its written elements in the order of
//! these parts, which depends on the source alone.

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_store::api::{ArchiveOptions, Compression, FieldSpec, FieldStore, Value};
use fieldstone_store::{Field, Outline};
use xxhash_rust::xxh3::Xxh3;

/// Bytes of an array in memory at once.
const PART: u64 = 16 << 20;

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
    complete: bool,
}

impl Content {
    pub fn new(field: Field) -> Result<Content> {
        let outline = field.outline()?;
        let written = if outline.is_some() { field.written()? } else { Vec::new() };
        Ok(Content { complete: field.is_complete()?, field: field.lenient(), outline, written })
    }

    /// Number of bytes to carry over.
    pub fn nbytes(&self) -> Result<u64> {
        let Some(outline) = &self.outline else { return self.field.nbytes() };
        let item = outline.dtype.size() as u64;
        self.written
            .iter()
            .try_fold(0, |sum: u64, part| Ok(sum.saturating_add(part.element_count()?.saturating_mul(item))))
    }

    /// Archives the field under `key` of another store.
    pub fn archive(
        &self,
        to: &dyn FieldStore,
        key: &[(&str, &str)],
        options: &ArchiveOptions,
    ) -> Result<Archived> {
        let packed = self.field.is_compressed()?;
        let compression = if packed { Compression::Zstd(LEVEL) } else { Compression::None };
        let mut options = ArchiveOptions { compression: Some(compression), ..options.clone() };
        let Some(outline) = &self.outline else {
            return self.archive_whole(&mut |bytes| to.archive(key, Value::Bytes(bytes), &options));
        };
        let Outline { dtype, shape, fill, chunks } = outline;
        options.chunks.clone_from(chunks);
        let parts = self.parts();
        if self.complete
            && fill.is_none()
            && let [_] = &parts[..]
        {
            return self.archive_whole(&mut |data| {
                to.archive(key, Value::Array { data, dtype: *dtype, shape }, &options)
            });
        }
        let mut digest = Xxh3::new();
        let mut created = false;
        // Read the first part before anything is written.
        for part in &parts {
            let data = match self.field.read_box(Some(part)) {
                Err(e) if is_damage(&e) && created => return Ok(Archived::Torn(e)),
                Err(e) if is_damage(&e) => return Ok(Archived::Unreadable(e)),
                data => data?,
            };
            if !created {
                self.create(to, key, &options)?;
                created = true;
            }
            digest.update(&data);
            let (start, count) = (part.start(), part.count());
            to.archive(key, Value::Piece { data: &data, dtype: *dtype, start, count, shape }, &options)?;
        }
        if !created {
            self.create(to, key, &options)?;
        }
        Ok(Archived::Whole(digest.digest128()))
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
            && self.same_elements(&other.written()?)?;
        if !alike {
            return Ok(None);
        }
        for part in self.parts() {
            digest.update(&other.read_box(Some(&part))?);
        }
        Ok(Some(digest.digest128()))
    }

    /// The digest of the field itself.
    pub fn digest(&self) -> Result<Option<u128>> {
        self.digest_of(&self.field)
    }

    /// Whether other boxes hold the same elements; those of each list do not overlap.
    fn same_elements(&self, other: &[IndexBox]) -> Result<bool> {
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

    fn parts(&self) -> Vec<IndexBox> {
        let Some(outline) = &self.outline else { return Vec::new() };
        let chunks = self.field.chunks().unwrap_or_default();
        let mut parts = Vec::new();
        for region in &self.written {
            cut(region, 0, &chunks, outline.dtype.size() as u64, &mut parts);
        }
        parts
    }
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
