//! The fields of a retrieve as one seekable file.
//!
//! Invariant: memory holds one array of at most [`PART`] bytes, or a part of a larger one: whole layers of chunks, if
//! these take at most [`LAYER`].

use std::io::{self, Read, Seek, SeekFrom};

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::{Error, Result};

use super::{Field, Fields};

/// Bytes of an array that are read at a time.
const PART: u64 = 32 << 20;
/// Bytes up to which a layer of chunks is read at a time, so that no chunk is read twice.
const LAYER: u64 = 64 << 20;

/// Reads fields one after another; seeks without reading what lies between.
#[derive(Debug)]
pub struct FieldsReader {
    fields: Fields,
    /// Offset of each field, and the total: known as far as was needed.
    offsets: Vec<u64>,
    position: u64,
    current: Option<Current>,
}

/// The field read last: opaque ones are read in ranges, arrays in parts.
#[derive(Debug)]
struct Current {
    index: usize,
    field: Field,
    /// The part of an array read last, and its offset in the bytes of the field.
    part: Option<(u64, Vec<u8>)>,
}

impl Current {
    /// Copies bytes of the field from `within` on; returns how many, at least one of a buffer that is not empty.
    fn copy(&mut self, within: u64, out: &mut [u8]) -> Result<usize> {
        if self.field.dtype()?.is_none() {
            self.field.read_range(within, out)?;
            return Ok(out.len());
        }
        let holds = |(start, bytes): &(u64, Vec<u8>)| (*start..start + bytes.len() as u64).contains(&within);
        if !self.part.as_ref().is_some_and(holds) {
            // One of two parts would be in the way of the other.
            self.part = None;
            self.part = Some(self.read_part(within)?);
        }
        let (start, bytes) = self.part.as_ref().ok_or_else(|| Error::internal("a part was lost"))?;
        let rest = &bytes[(within - start) as usize..];
        let n = rest.len().min(out.len());
        out[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    /// The part of an array that holds a byte, and its offset.
    fn read_part(&self, within: u64) -> Result<(u64, Vec<u8>)> {
        let field = &self.field;
        // Elements that nobody wrote are refused before anything of the field is given out.
        if field.nbytes()? <= PART || (!field.is_lenient() && !field.is_complete()?) {
            return Ok((0, field.read()?));
        }
        let (dtype, shape) = field.array()?;
        let chunks = field.chunks().unwrap_or_default();
        let (region, start) = part_around(shape, &chunks, dtype.size() as u64, within)?;
        Ok((start, field.read_box(Some(&region))?))
    }
}

/// The part of an array of more than [`PART`] bytes that holds the byte at `within`, and its offset: layers of chunks
/// along one dimension, of which all later ones are whole, so that its bytes follow one another.
fn part_around(shape: &[u64], chunks: &[u64], item: u64, within: u64) -> Result<(IndexBox, u64)> {
    // Bytes of one row of each dimension.
    let mut rows = vec![item; shape.len()];
    for at in (1..shape.len()).rev() {
        rows[at - 1] = rows[at].saturating_mul(shape[at]);
    }
    let chunk = |at: usize| chunks.get(at).copied().unwrap_or(1).clamp(1, shape[at].max(1));
    let fits = |at: &usize| rows[*at].saturating_mul(chunk(*at)) <= LAYER;
    let cut = (0..shape.len()).find(fits).or(shape.len().checked_sub(1));
    let cut = cut.ok_or_else(|| Error::internal("a scalar is read whole"))?;
    let (row, layer) = (rows[cut], chunk(cut));
    let most = match row.saturating_mul(layer) <= LAYER {
        true => (PART / (row * layer)).max(1) * layer,
        false => (PART / row).max(1),
    };
    let outer = within / row;
    let (mut before, begin) = (outer / shape[cut], outer % shape[cut] / most * most);
    let start = (before * shape[cut] + begin) * row;
    let (mut origin, mut count) = (vec![0; shape.len()], shape.to_vec());
    (origin[cut], count[cut]) = (begin, most.min(shape[cut] - begin));
    for at in (0..cut).rev() {
        (origin[at], count[at]) = (before % shape[at], 1);
        before /= shape[at];
    }
    Ok((IndexBox::new(origin, count, shape)?, start))
}

impl FieldsReader {
    pub(super) fn new(fields: Fields) -> FieldsReader {
        FieldsReader { fields, offsets: vec![0], position: 0, current: None }
    }

    /// Bytes in all.
    pub fn total(&mut self) -> Result<u64> {
        self.offsets_to(u64::MAX)?;
        Ok(self.offsets[self.offsets.len() - 1])
    }

    /// Learns offsets until one lies behind `position` or all are known.
    fn offsets_to(&mut self, position: u64) -> Result<()> {
        while self.offsets.len() <= self.fields.len() && self.offsets[self.offsets.len() - 1] <= position {
            let next = self.offsets.len() - 1;
            let end = self.offsets[next].saturating_add(self.fields.get(next)?.nbytes()?);
            self.offsets.push(end);
        }
        Ok(())
    }

    fn read_some(&mut self, out: &mut [u8]) -> Result<usize> {
        self.offsets_to(self.position)?;
        let index = self.offsets.partition_point(|&o| o <= self.position).saturating_sub(1);
        if out.is_empty() || index >= self.fields.len() {
            return Ok(0);
        }
        let within = self.position - self.offsets[index];
        if within == 0 && self.offsets[index + 1] - self.position <= out.len() as u64 {
            // Whole fields fit: they go straight to the caller.
            let (next, bytes) = self.fields.read_whole(index, out)?;
            if bytes > 0 {
                self.offsets_to(self.offsets[index] + bytes as u64)?;
                self.position += bytes as u64;
                debug_assert!(next > index);
                return Ok(bytes);
            }
        }
        if self.current.as_ref().is_none_or(|current| current.index != index) {
            self.current = Some(Current { index, field: self.fields.get(index)?, part: None });
        }
        let n = (self.offsets[index + 1] - self.position).min(out.len() as u64) as usize;
        let Some(current) = &mut self.current else {
            return Err(Error::internal("the current field was lost"));
        };
        let n = current.copy(within, &mut out[..n])?;
        self.position += n as u64;
        Ok(n)
    }
}

impl Read for FieldsReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.read_some(out).map_err(io::Error::other)
    }
}

impl Seek for FieldsReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.total().map_err(io::Error::other)?.checked_add_signed(by),
        };
        self.position = target
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a seek to before the beginning"))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Parts follow one another without a gap, and hold at most what the head of this file says.
    #[test]
    fn parts_of_an_array_follow_one_another() {
        let shapes: [(&[u64], &[u64]); 6] = [
            (&[16 << 20], &[1 << 20]),
            (&[1000, 100, 100], &[10, 100, 100]),
            (&[40, 512, 512], &[64, 64, 64]),
            (&[3, 5, 2000, 1000], &[1, 5, 300, 1000]),
            (&[2, 40 << 20], &[1, 40 << 20]),
            (&[7, 1, 9, 200_003], &[]),
        ];
        for (shape, chunks) in shapes {
            let total: u64 = shape.iter().product::<u64>() * 8;
            let mut at = 0;
            while at < total {
                let (region, start) = part_around(shape, chunks, 8, at).unwrap();
                let bytes = region.element_count().unwrap() * 8;
                assert_eq!(start, at, "{shape:?}");
                assert!(bytes > 0 && bytes <= LAYER, "{shape:?}: {bytes}");
                for within in [at + 1, at + bytes / 2, at + bytes - 1] {
                    assert_eq!(part_around(shape, chunks, 8, within).unwrap(), (region.clone(), start));
                }
                at += bytes;
            }
            assert_eq!(at, total);
        }
    }
}
