//! Bytes that stay in a file outside the store: read once, for checksums and extremes.
//!
//! An array is cut into slabs, boxes whose elements follow one another in C order, so that block after
//! block is byte range after byte range, and a box of the array touches few of them.

use std::path::Path;

use fieldstone_core::env::{Disk, DiskFile};
use fieldstone_core::geometry::{Summary, element_count, summarize_without};
use fieldstone_core::key::FieldKey;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::block::{Block, INLINE_BLOCKS, put_blocks};
use fieldstone_format::crc;
use fieldstone_format::entry::{ArrayInfo, Blocks, External, Layout, Location};
use fieldstone_format::keys::encode_key;
use fieldstone_format::location::file_url;

use fieldstone_journal::writer::{Encoded, Payload};

use super::blocks::new_entry;
use crate::api::{ExternalContent, ExternalSpec, FileState};
use crate::read::{Outside, slab};

/// Raw length of a block of bytes outside.
const BLOCK: u64 = 1 << 20;

/// Reads what a spec describes, and prepares its entry.
///
/// `missing` are elements that the summary leaves out.
pub fn external(
    key: &FieldKey,
    disk: &dyn Disk,
    spec: &ExternalSpec<'_>,
    missing: &[u8],
) -> Result<Encoded<'static>> {
    prepare(key, disk, spec, missing).map_err(|e| e.context(key))
}

fn prepare(
    key: &FieldKey,
    disk: &dyn Disk,
    spec: &ExternalSpec<'_>,
    missing: &[u8],
) -> Result<Encoded<'static>> {
    let named = |action: &'static str| move |e| Error::io(action, spec.path, e);
    let path = disk.absolute(spec.path).map_err(named("look at"))?;
    let file = disk.open_read(&path).map_err(named("open"))?;
    let state = |file: &dyn DiskFile| {
        let (stat, mtime) = file.stat_with_time().map_err(named("look at"))?;
        Ok::<_, Error>(FileState { nbytes: stat.len, mtime })
    };
    let seen = state(&*file)?;
    if spec.seen.is_some_and(|before| before != seen) {
        return Err(changed(spec));
    }
    let (length, array) = length_and_array(spec.content)?;
    let external = place(spec, &path, seen, length, array.is_some())?;
    let mut entry = new_entry(true, length, array);
    let layout = entry.layout(external.size)?;
    let outside = Outside::new(file, &external, length);
    let (blocks, sum) = read(&outside, &layout, spec.content, missing)?;
    if state(outside.file())? != seen {
        return Err(changed(spec));
    }
    if let Some(array) = &mut entry.array {
        array.summary = sum;
    }
    let mut table = Vec::new();
    if blocks.len() > INLINE_BLOCKS {
        put_blocks(&blocks, entry.array.is_some(), &mut table);
    }
    entry.location = Location::External(Box::new(external));
    Ok(Encoded {
        key: encode_key(key),
        entry,
        size: 0,
        blocks,
        payload: Payload::default(),
        table,
        digest: None,
        origin: None,
    })
}

/// The number of bytes outside, and the array that they are, if they are one.
fn length_and_array(content: ExternalContent<'_>) -> Result<(u64, Option<ArrayInfo>)> {
    match content {
        ExternalContent::Bytes(length) => Ok((length, None)),
        ExternalContent::Array { dtype, shape } => {
            let length = element_count(shape)?.checked_mul(dtype.size() as u64);
            let length = length.ok_or_else(|| Code::Shape.error("the array exceeds 64 bits"))?;
            let chunk = slab(shape, dtype, BLOCK);
            let shape = shape.to_vec();
            Ok((length, Some(ArrayInfo { dtype, shape, piece: None, chunk, fill: None, summary: None })))
        }
    }
}

/// The place of `length` bytes in a file that is as `seen`, without their blocks.
fn place(
    spec: &ExternalSpec<'_>,
    path: &Path,
    seen: FileState,
    length: u64,
    is_array: bool,
) -> Result<External> {
    let external = External {
        url: file_url(path),
        nbytes: seen.nbytes,
        mtime: seen.mtime,
        offset: spec.offset,
        parts: spec.parts,
        stride: spec.stride,
        size: if length > BLOCK && !is_array { BLOCK } else { 0 },
        file: 0,
        blocks: Blocks::Inline(Vec::new()),
    };
    external.check(length).map_err(|_| {
        Error::invalid(format!(
            "{length} bytes in {} parts from {} on do not lie within {} of {} bytes",
            spec.parts,
            spec.offset,
            path.display(),
            seen.nbytes
        ))
    })?;
    Ok(external)
}

/// The blocks of bytes outside, and the summary of all of them if each has one.
fn read(
    outside: &Outside,
    layout: &Layout,
    content: ExternalContent<'_>,
    missing: &[u8],
) -> Result<(Vec<Block>, Option<Summary>)> {
    let (mut blocks, mut raw, mut at) = (Vec::new(), Vec::new(), 0);
    let mut sum: Option<Summary> = None;
    let mut all = true;
    for index in 0..layout.count()? {
        let length = layout.raw_len(index)?;
        raw.resize(usize::try_from(length).map_err(|_| Code::OutOfMemory.error("not enough memory"))?, 0);
        outside.read(&mut raw, at)?;
        at += length;
        let summary = match content {
            ExternalContent::Array { dtype, .. } => summarize_without(dtype, &raw, missing),
            ExternalContent::Bytes(_) => None,
        };
        match (&mut sum, &summary) {
            (Some(sum), Some(part)) => sum.merge(part),
            (None, Some(part)) => sum = Some(*part),
            (_, None) => all = false,
        }
        blocks.push(Block { stored: length, crc: crc(&raw), summary });
    }
    Ok((blocks, sum.filter(|_| all)))
}

fn changed(spec: &ExternalSpec<'_>) -> Error {
    Code::FileChanged
        .error(format!("{} was changed while it was being taken", spec.path.display()))
        .with_hint("take it again when nobody writes to it any more")
}
