//! Each rank moves its own runs: by calls of its own, or by the communicator's collective call, which is MPI-IO's
//! with MPI.

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Step, TeamFile, TeamReader, TeamWriter};

use super::file_array::FileArray;
use super::spans::Spans;
use super::{Method, MovePlan, Read, Write};
use crate::distributed::buffer::{Buffer, BufferMut};

/// Bytes in a round of a rank on its own: the size of a core's cache.
const ALONE: usize = 1 << 19;
/// Maximum number of bytes in a round of the collective call.
const TOGETHER: usize = 1 << 24;
/// Gaps of up to this many bytes are read together with the data around them.
const GAP: u64 = 1 << 12;

fn budget(method: Method, buffer: usize) -> usize {
    (buffer / 3).min(if method == Method::View { TOGETHER } else { ALONE })
}

/// Collective: writes each rank's runs. Returns the number of bytes that this rank wrote.
pub(super) fn write(
    plan: &MovePlan,
    file: &TeamWriter,
    step: Step,
    write: &Write<'_>,
    method: Method,
) -> Result<u64> {
    let runs = plan.footprint.ascending(plan.order());
    let mut spans = Spans::new(runs, write.array, budget(method, write.settings.buffer), 0);
    let (mut bytes, mut written) = (Vec::new(), 0);
    if method != Method::View {
        let mut outcome = Ok(());
        while outcome.is_ok() && spans.next() {
            gather(&spans, write.from, &mut bytes);
            let mut all = spans.spans.iter();
            outcome =
                all.try_for_each(|span| file.write_at(&bytes[span.buffer_at..][..span.len], span.offset));
            written += spans.bytes as u64;
        }
        file.team().agree(step, outcome)?;
        return Ok(written);
    }
    loop {
        let more = spans.next();
        if file.team().max(step, Ok(vec![u64::from(more)]))?[0] == 0 {
            return Ok(written);
        }
        gather(&spans, write.from, &mut bytes);
        let parts: Vec<(u64, &[u8])> =
            spans.spans.iter().map(|span| (span.offset, &bytes[span.buffer_at..][..span.len])).collect();
        file.write_all(step, Ok(&parts))?;
        written += spans.bytes as u64;
    }
}

fn gather(spans: &Spans<'_>, from: &Buffer<'_>, bytes: &mut Vec<u8>) {
    bytes.resize(spans.bytes.max(bytes.len()), 0);
    for piece in &spans.pieces {
        from.copy(piece.memory as usize, &mut bytes[piece.buffer_at..][..piece.len]);
    }
}

/// Collective: reads each rank's runs. Returns the number of bytes that this rank read.
pub(super) fn read(
    plan: &MovePlan,
    file: &TeamReader,
    step: Step,
    read: &mut Read<'_, '_>,
    method: Method,
) -> Result<u64> {
    let runs = plan.footprint.ascending(plan.order());
    let gap = if method == Method::View { 0 } else { GAP };
    let mut spans = Spans::new(runs, read.array, budget(method, read.settings.buffer), gap);
    let (mut bytes, mut count) = (Vec::new(), 0);
    if method != Method::View {
        let mut outcome = Ok(());
        while outcome.is_ok() && spans.next() {
            bytes.resize(spans.bytes.max(bytes.len()), 0);
            outcome = spans.spans.iter().try_for_each(|span| {
                count += read.past_end.read(file, span.offset, &mut bytes[span.buffer_at..][..span.len])?;
                Ok(())
            });
            if outcome.is_ok() {
                scatter(&spans, read.into, &mut bytes);
            }
        }
        file.team().agree(step, outcome)?;
        return Ok(count);
    }
    // The collective call's parts leave out bytes beyond the end of the file.
    let len = file.team().max(step, file.len().map(|len| vec![len]))?[0];
    loop {
        let more = spans.next();
        if file.team().max(step, Ok(vec![u64::from(more)]))?[0] == 0 {
            return Ok(count);
        }
        bytes.clear();
        bytes.resize(spans.bytes, 0);
        let (mut parts, mut rest, mut checked) = (Vec::new(), &mut bytes[..], Ok(()));
        for span in &spans.spans {
            let (part, behind) = rest.split_at_mut(span.len);
            rest = behind;
            let there = len.saturating_sub(span.offset).min(span.len as u64) as usize;
            let (part, missing) = part.split_at_mut(there);
            let last = span.offset + there as u64;
            checked = checked.and_then(|()| read.past_end.read(file, last, missing).map(drop));
            parts.push((span.offset, part));
            count += there as u64;
        }
        parts.retain(|(_, part)| !part.is_empty());
        file.read_all(step, checked.map(|()| &mut parts[..]))?;
        scatter(&spans, read.into, &mut bytes);
    }
}

fn scatter(spans: &Spans<'_>, into: &mut BufferMut<'_>, bytes: &mut [u8]) {
    let mut own = Vec::new();
    for piece in &spans.pieces {
        let bytes = &mut bytes[piece.buffer_at..][..piece.len];
        match spans.shares {
            // Bytes are swapped in place.
            true => {
                own.clear();
                own.extend_from_slice(bytes);
                into.place(piece.memory as usize, &mut own);
            }
            false => into.place(piece.memory as usize, bytes),
        }
    }
}

/// Collective: writes `fill` into all of an array, on each rank a share, before ranks write their runs. Returns the
/// number of bytes that this rank wrote.
pub(super) fn fill(file: &TeamFile, step: Step, array: FileArray, total: u64, fill: &[u8]) -> Result<u64> {
    let (rank, size) = (file.team().rank() as u128, file.team().size() as u128);
    let cut = |rank: u128| (u128::from(total) * rank / size) as u64;
    let each = (ALONE / fill.len().max(1)).max(1) as u64;
    let pattern = fill.repeat(each.min(total).max(1) as usize);
    let mut written = 0;
    let filled = array.pieces(cut(rank), cut(rank + 1), |offset, _, count| {
        let mut done = 0;
        while done < count {
            let now = each.min(count - done);
            let bytes = &pattern[..now as usize * fill.len()];
            file.write_at(bytes, offset + done * array.size)?;
            (done, written) = (done + now, written + bytes.len() as u64);
        }
        Ok(())
    });
    // The ranks that write the elements are not those that filled them.
    file.visibility_barrier(step, filled)?;
    Ok(written)
}
