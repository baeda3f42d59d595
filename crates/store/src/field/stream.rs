//! The fields of a retrieve as one seekable file.

use std::io::{self, Read, Seek, SeekFrom};

use fieldstone_core::{Error, Result};

use super::{Field, Fields};

/// Reads fields one after another; seeks without reading what lies between.
#[derive(Debug)]
pub struct FieldsReader {
    fields: Fields,
    /// Offset of each field, and the total: known as far as was needed.
    offsets: Vec<u64>,
    position: u64,
    /// The field read last: opaque ones are read in ranges, arrays whole.
    current: Option<(usize, Field, Option<Vec<u8>>)>,
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
        if self.current.as_ref().is_none_or(|(i, _, _)| *i != index) {
            self.current = Some((index, self.fields.get(index)?, None));
        }
        let n = (self.offsets[index + 1] - self.position).min(out.len() as u64) as usize;
        let Some((_, field, whole)) = &mut self.current else {
            return Err(Error::internal("the current field was lost"));
        };
        if field.dtype()?.is_some() {
            if whole.is_none() {
                *whole = Some(field.read()?);
            }
            if let Some(bytes) = whole {
                out[..n].copy_from_slice(&bytes[within as usize..within as usize + n]);
            }
        } else {
            field.read_range(within, &mut out[..n])?;
        }
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
