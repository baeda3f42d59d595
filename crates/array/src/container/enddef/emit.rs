//! Writes a rank's part of the header in pieces.
//!
//! Each rank serialises the entries that it places, list by list, and writes about a mebibyte at a time; rank 0 also
//! writes the head, and the tag and count of each list. The file's first bytes are not those of a netCDF file but
//! mark it as unfinished: the caller that publishes it writes the magic last.
//!
//! Invariant: ranks write every byte of the header exactly once.

use std::ops::Range;

use fieldstone_core::Result;
use fieldstone_core::env::comm::TeamFile;
use fieldstone_format::netcdf::Header;
use fieldstone_format::netcdf::trailer::{IndexPart, STRIDE};
use fieldstone_format::netcdf::write::{self, List};

use super::placement::{LocalEntries, Placement};
use super::report::Watch;
use crate::container::write_buffer::{PIECE, WriteBuffer};

/// Entries serialised between two checks of the buffer.
const STEP: usize = 64;

/// Pieces of the header; their checksums are kept if there is an index.
#[derive(Debug)]
struct Stream<'a> {
    out: WriteBuffer<'a>,
    index: Option<&'a mut IndexPart>,
}

impl Stream<'_> {
    fn seek(&mut self, at: u64) -> Result<()> {
        if self.out.here() != at {
            self.flush()?;
        }
        self.out.seek(at)
    }

    fn flush(&mut self) -> Result<()> {
        let (at, bytes) = self.out.gathered();
        if let Some(index) = self.index.as_mut().filter(|_| !bytes.is_empty()) {
            index.header.add(at, bytes);
        }
        self.out.flush()
    }
}

/// Writes this rank's part of the header, as `header` and `placed` describe; returns its number of bytes. Adds header
/// offsets and checksums to `index`, if there is one.
pub(super) fn write(
    file: &TeamFile,
    header: &Header,
    (placed, own): (&Placement, &LocalEntries),
    index: Option<&mut IndexPart>,
    watch: &mut Watch<'_>,
) -> Result<u64> {
    let version = header.version;
    let room = (PIECE + PIECE / 8).min(own.bytes as usize + 4096);
    let mut stream = Stream { out: WriteBuffer::new(file, room), index };
    let mut head_len = 0;
    watch.hold(room as u64);
    let is_root = file.team().rank() == 0;
    let totals = [placed.counts.dims, placed.counts.attrs + u64::from(placed.escaped), placed.counts.vars];
    if is_root {
        let mut head = Vec::new();
        write::put_head(&mut head, version, header.numrecs);
        head[..3].copy_from_slice(&write::UNFINISHED);
        head_len = head.len() as u64;
        file.write_at(&head, 0)?;
    }
    for (kind, list) in [List::Dims, List::Attrs, List::Vars].into_iter().enumerate() {
        if is_root {
            stream.seek(placed.lists[kind])?;
            write::put_list_head(stream.out.buffer(), version, list, totals[kind]);
        }
        if own.mine[kind].is_empty() {
            continue;
        }
        stream.seek(own.at[kind])?;
        for range in &own.mine[kind] {
            entries(&mut stream, header, placed, list, range.clone())?;
        }
    }
    stream.flush()?;
    if is_root && placed.escaped {
        // The position after the attributes of all ranks, before the list of variables.
        let statement = write::escape_marker();
        stream.seek(placed.lists[2] - write::attr_size(version, statement, false))?;
        write::put_attr(stream.out.buffer(), version, statement, false);
        stream.flush()?;
    }
    watch.release(room as u64);
    Ok(head_len + stream.out.written())
}

fn entries(
    stream: &mut Stream<'_>,
    header: &Header,
    placed: &Placement,
    list: List,
    range: Range<usize>,
) -> Result<()> {
    let ids = match list {
        List::Dims => &placed.dim_ids[..],
        _ => &placed.var_ids[..],
    };
    let mut from = range.start;
    while from < range.end {
        // Stop at the next object whose offset is kept, so that no such offset is inside a step.
        let to = match list {
            List::Attrs => from + 1,
            _ => from + STEP.min((STRIDE - ids[from] % STRIDE) as usize),
        };
        let step = from..to.min(range.end);
        let here = stream.out.here();
        if let Some(index) = &mut stream.index
            && list != List::Attrs
            && ids[from] % STRIDE == 0
        {
            let offsets = if list == List::Dims { &mut index.dim_offsets } else { &mut index.var_offsets };
            offsets.push(here);
        }
        match list {
            List::Dims => write::put_dims(stream.out.buffer(), header, step, placed.escaped),
            List::Vars => {
                let dim_id = |local: u32| placed.dim_ids[local as usize];
                write::put_vars(stream.out.buffer(), header, step, placed.escaped, dim_id);
            }
            List::Attrs => {
                write::put_attr(stream.out.buffer(), header.version, header.attrs.get(from), placed.escaped);
            }
        }
        from = to;
        if stream.out.is_full() {
            stream.flush()?;
        }
    }
    Ok(())
}
