//! Copies data to their new places in a redefinition.
//!
//! Invariants: all ranks share the work, each with about the same number of bytes; a rank holds at most [`PIECE`]
//! bytes of data in memory; bytes missing at the end of the old file, and pieces of zeros, stay holes in the new one.

use fieldstone_core::env::comm::TeamFile;
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::layout::{Layout, bytes_of};
use fieldstone_format::netcdf::{Header, pad4};

/// Bytes copied at a time.
const PIECE: u64 = 4 << 20;

/// A copy from one place to another: `count` parts of `len`, `from_stride` and `to_stride` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    from: u64,
    to: u64,
    len: u64,
    count: u64,
    from_stride: u64,
    to_stride: u64,
}

/// The copies needed: the variables of `old`, which are the first of `new`.
fn moves(old: &Header, new: &Header, numrecs: u64) -> Result<Vec<Move>> {
    let (before, after) = (Layout::of(old, 0)?, Layout::of(new, 0)?);
    let mut list: Vec<Move> = Vec::new();
    for var in old.vars.iter() {
        let bytes = bytes_of(old, var)?;
        let to = new.vars.get(var.id()).begin();
        let is_record = old.is_record(var);
        let padded = pad4(bytes).ok_or_else(|| Error::invalid("a variable of 2^64 bytes"))?;
        let lone = is_record && (before.one_record_var || after.one_record_var);
        let len = if lone { bytes } else { padded };
        let count = if is_record { numrecs } else { 1 };
        let next = Move {
            from: var.begin(),
            to,
            len,
            count,
            from_stride: if is_record { before.record_size } else { 0 },
            to_stride: if is_record { after.record_size } else { 0 },
        };
        // Variables that are adjacent in both files go together.
        match list.last_mut() {
            Some(last)
                if last.from + last.len == next.from
                    && last.to + last.len == next.to
                    && (last.count, last.from_stride, last.to_stride)
                        == (next.count, next.from_stride, next.to_stride) =>
            {
                last.len += next.len;
            }
            _ => list.push(next),
        }
    }
    for one in &mut list {
        // Records that are adjacent in both files form one part.
        if one.count > 1 && one.len == one.from_stride && one.len == one.to_stride {
            one.len =
                one.len.checked_mul(one.count).ok_or_else(|| Error::invalid("2^64 bytes of records"))?;
            one.count = 1;
        }
    }
    list.retain(|one| one.len > 0 && one.count > 0);
    Ok(list)
}

/// Collective: copies the data of all variables of `old` from their place in one file to their place by `new` in
/// another.
pub(super) fn copy(
    from: &TeamFile,
    to: &TeamFile,
    headers: Result<(&Header, &Header)>,
    numrecs: u64,
) -> Result<()> {
    let team = to.team();
    let copied = headers.and_then(|(old, new)| {
        let list = moves(old, new, numrecs)?;
        let total: u128 = list.iter().map(|one| u128::from(one.len) * u128::from(one.count)).sum();
        let (rank, size) = (team.rank() as u128, team.size() as u128);
        let (begin, end) = (total * rank / size, total * (rank + 1) / size);
        let (mut at, mut buffer) = (0u128, Vec::new());
        for one in &list {
            let (len, all) = (u128::from(one.len), u128::from(one.len) * u128::from(one.count));
            let (first, last) = (begin.max(at), end.min(at + all));
            let mut here = first;
            while here < last {
                let (number, inside) = ((here - at) / len, (here - at) % len);
                let bytes = (len - inside).min(last - here) as u64;
                let (number, inside) = (number as u64, inside as u64);
                let source = one.from + number * one.from_stride + inside;
                part(from, to, source, one.to + number * one.to_stride + inside, bytes, &mut buffer)?;
                here += u128::from(bytes);
            }
            at += all;
        }
        Ok(())
    });
    // The ranks that later write the elements are not those that moved them.
    to.visibility_barrier("move data", copied)
}

fn part(from: &TeamFile, to: &TeamFile, at: u64, goes: u64, len: u64, buffer: &mut Vec<u8>) -> Result<()> {
    let mut done = 0;
    while done < len {
        buffer.resize((len - done).min(PIECE) as usize, 0);
        let read = from.read_at(buffer, at + done)?;
        if read == 0 {
            return Ok(());
        }
        // The new file already reads as zeros, so a sparse file stays sparse.
        if buffer[..read].iter().any(|byte| *byte != 0) {
            to.write_at(&buffer[..read], goes + done)?;
        }
        done += read as u64;
    }
    Ok(())
}
