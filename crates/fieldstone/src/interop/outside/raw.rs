//! Reading raw files: elements in C order after an offset.

use std::path::Path;

use fieldstone_core::env::{Disk, DiskFile, read_exact_at};
use fieldstone_core::geometry::{IndexBox, byte_count, copy_box};
use fieldstone_core::{Code, Error, ErrorKind, Result};

use super::{Format, ObjectRead, Plan, holds};

/// Ranges of a file with up to this many bytes between them are read as one.
const GAP: u64 = 16 << 10;
/// Bytes per read that covers several ranges.
const SPAN: u64 = 1 << 20;

/// Reads the box of a plan into `out`, which covers it.
pub fn read_raw(disk: &dyn Disk, plan: &Plan, out: &mut [u8]) -> Result<()> {
    if plan.format != Format::Raw {
        return Err(Code::FileFormat
            .error(format!("this program cannot read files of format {}", plan.format.name()))
            .with_hint("read them in Python, with run.read or hit.read"));
    }
    let size = plan.dtype.size();
    for read in &plan.reads {
        let part = read_part(disk, plan, read, size).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Code::FileNotFound
                .error(format!("there is no file {}", holds(read)))
                .with_hint("check template and root of the run's outside"),
            _ => e,
        })?;
        copy_box(&part, &read.part, out, &plan.region, &read.part, size)?;
    }
    Ok(())
}

/// The bytes of a part, in C order.
fn read_part(disk: &dyn Disk, plan: &Plan, read: &ObjectRead, size: usize) -> Result<Vec<u8>> {
    let path = Path::new(&read.path);
    let file = disk.open_read(path).map_err(|e| Error::io("open", path, e))?;
    let there = file.stat().map_err(|e| Error::io("stat", path, e))?.len;
    let piece = byte_count(read.piece.count(), size)? as u64;
    let before = read.lead.map_or(Some(0), |lead| lead.checked_mul(piece));
    let before = before.and_then(|before| before.checked_add(plan.offset));
    let fits = |end: u64| if read.lead.is_some() { end <= there } else { end == there };
    let Some(before) = before.filter(|b| b.checked_add(piece).is_some_and(fits)) else {
        let expected = before.and_then(|b| b.checked_add(piece)).unwrap_or(u64::MAX);
        return Err(Code::OutsideChanged.error(format!(
            "the file {}, has {there} bytes instead of {expected}",
            holds(read)
        ))
        .with_hint(
            "it is another file, or still being written; check dtype, chunks and offset of the run's outside",
        ));
    };
    let inner = read.part.relative_to(&read.piece)?;
    let mut out = vec![0; byte_count(inner.count(), size)?];
    Ranges::new(read.piece.count(), &inner, size as u64).read(&*file, path, before, &mut out)?;
    Ok(out)
}

/// The ranges of bytes of a box in a C-order array: `rows` of `length` bytes.
struct Ranges<'a> {
    shape: &'a [u64],
    inner: &'a IndexBox,
    size: u64,
    /// Dimensions that vary from range to range; later ones lie inside one range.
    outer: usize,
    length: u64,
}

impl Ranges<'_> {
    fn new<'a>(shape: &'a [u64], inner: &'a IndexBox, size: u64) -> Ranges<'a> {
        let mut outer = shape.len();
        let mut length = size;
        // A range extends into the next dimension if it covers all of this one.
        while outer > 0 {
            outer -= 1;
            length *= inner.count()[outer];
            if inner.count()[outer] != shape[outer] {
                break;
            }
        }
        Ranges { shape, inner, size, outer, length }
    }

    /// The start of a range.
    fn offset(&self, place: &[u64]) -> u64 {
        let mut offset = 0;
        for d in 0..self.shape.len() {
            let index = place.get(d).copied().unwrap_or(0) + self.inner.start()[d];
            offset = offset * self.shape[d] + index;
        }
        offset * self.size
    }

    fn read(&self, file: &dyn DiskFile, path: &Path, before: u64, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let failed = |e| Error::io("read", path, e);
        let mut place = vec![0; self.outer];
        let mut buffer = Vec::new();
        let mut done = 0;
        let mut more = true;
        while more {
            // Ranges that lie close together, up to a span.
            let first = self.offset(&place);
            let mut starts = vec![first];
            let mut end = first + self.length;
            more = self.advance(&mut place);
            while more {
                let next = self.offset(&place);
                if next - end > GAP || next + self.length - first > SPAN {
                    break;
                }
                starts.push(next);
                end = next + self.length;
                more = self.advance(&mut place);
            }
            let length = self.length as usize;
            if starts.len() == 1 {
                read_exact_at(file, &mut out[done..done + length], before + first).map_err(failed)?;
                done += length;
                continue;
            }
            buffer.resize((end - first) as usize, 0);
            read_exact_at(file, &mut buffer, before + first).map_err(failed)?;
            for start in starts {
                let at = (start - first) as usize;
                out[done..done + length].copy_from_slice(&buffer[at..at + length]);
                done += length;
            }
        }
        Ok(())
    }

    fn advance(&self, place: &mut [u64]) -> bool {
        for d in (0..place.len()).rev() {
            place[d] += 1;
            if place[d] < self.inner.count()[d] {
                return true;
            }
            place[d] = 0;
        }
        false
    }
}
