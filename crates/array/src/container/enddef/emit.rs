//! A rank's part of the header, written in pieces.
//!
//! Each rank serialises the entries that it places, list by list, and writes about a mebibyte at a time; rank 0
//! also writes the head and the tag and count of each list. The file's first bytes are not those of a netCDF
//! file but say that it is unfinished: whoever publishes it writes the magic, last.
//!
//! Invariant: ranks write every byte of the header, each exactly once.

use std::ops::Range;

use fieldstone_core::Result;
use fieldstone_core::env::comm::TeamFile;
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::trailer::{IndexPart, STRIDE};
use fieldstone_format::netcdf::write::{self, List};

use super::place::Placed;
use super::report::Watch;

/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// Entries that are serialised between two looks at the buffer.
const STEP: usize = 64;

/// Bytes on their way to the file.
#[derive(Debug)]
struct Stream<'a> {
    file: &'a TeamFile,
    /// Offset of the first byte of `buffer`.
    at: u64,
    buffer: Vec<u8>,
    /// Whose checksums are kept.
    index: Option<&'a mut IndexPart>,
    written: u64,
}

impl Stream<'_> {
    /// Writes what is there, and goes on at `at`.
    fn seek(&mut self, at: u64) -> Result<()> {
        if self.here() == at {
            return Ok(());
        }
        self.flush()?;
        self.at = at;
        Ok(())
    }

    fn here(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Some(index) = &mut self.index {
            index.header.add(self.at, &self.buffer);
        }
        self.file.write_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn flush_full(&mut self) -> Result<()> {
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }
}

/// Writes this rank's part of the header, as `header` and `placed` say; gives how many bytes that were. With
/// `index`, header offsets and checksums are added to it.
pub(super) fn write(
    file: &TeamFile,
    header: &Header,
    placed: &Placed,
    index: Option<&mut IndexPart>,
    watch: &mut Watch<'_>,
) -> Result<u64> {
    let version = header.version;
    let room = (PIECE + PIECE / 8).min(placed.bytes as usize + 4096);
    let mut stream = Stream { file, at: 0, buffer: Vec::with_capacity(room), index, written: 0 };
    watch.hold(room as u64);
    let is_root = file.team().rank() == 0;
    let totals = [placed.counts.dims, placed.counts.attrs + u64::from(placed.spelled), placed.counts.vars];
    if is_root {
        let mut head = Vec::new();
        write::put_head(&mut head, version, header.numrecs);
        head[..3].copy_from_slice(&write::UNFINISHED);
        stream.written += head.len() as u64;
        file.write_at(&head, 0)?;
        stream.at = head.len() as u64;
    }
    for (kind, list) in [List::Dims, List::Attrs, List::Vars].into_iter().enumerate() {
        if is_root {
            stream.seek(placed.lists[kind])?;
            write::put_list_head(&mut stream.buffer, version, list, totals[kind]);
        }
        if placed.mine[kind].is_empty() {
            continue;
        }
        stream.seek(placed.at[kind])?;
        for range in &placed.mine[kind] {
            entries(&mut stream, header, placed, list, range.clone())?;
        }
    }
    stream.flush()?;
    if is_root && placed.spelled {
        // Behind the attributes of all ranks, before the list of variables.
        let statement = write::statement();
        stream.at = placed.lists[2] - write::attr_size(version, statement, false);
        write::put_attr(&mut stream.buffer, version, statement, false);
        stream.flush()?;
    }
    watch.release(room as u64);
    Ok(stream.written)
}

fn entries(
    stream: &mut Stream<'_>,
    header: &Header,
    placed: &Placed,
    list: List,
    range: Range<usize>,
) -> Result<()> {
    let ids = match list {
        List::Dims => &placed.dim_ids[..],
        _ => &placed.var_ids[..],
    };
    let mut from = range.start;
    while from < range.end {
        // Up to the next object whose offset is kept, so that none lies inside of a step.
        let to = match list {
            List::Attrs => from + 1,
            _ => from + STEP.min((STRIDE - ids[from] % STRIDE) as usize),
        };
        let step = from..to.min(range.end);
        let here = stream.here();
        if let Some(index) = &mut stream.index
            && list != List::Attrs
            && ids[from] % STRIDE == 0
        {
            let offsets = if list == List::Dims { &mut index.dim_offsets } else { &mut index.var_offsets };
            offsets.push(here);
        }
        match list {
            List::Dims => write::put_dims(&mut stream.buffer, header, step, placed.spelled),
            List::Vars => {
                let dim_id = |local: u32| placed.dim_ids[local as usize];
                write::put_vars(&mut stream.buffer, header, step, placed.spelled, dim_id);
            }
            List::Attrs => {
                write::put_attr(&mut stream.buffer, header.version, header.attrs.get(from), placed.spelled);
            }
        }
        from = to;
        stream.flush_full()?;
    }
    Ok(())
}
