//! Reading many fields into one buffer: neighbours on disk by one read, large batches by several
//! threads.

use std::thread;

use fieldstone_core::Result;

use crate::read::Field;

/// Bytes of neighbouring fields that are fetched by one read: they stay in the processor's cache while
/// they are checked.
const GROUP_MAX: usize = 512 << 10;
/// Batches of at least this many bytes are shared between threads.
const PARALLEL_MIN: usize = 4 << 20;
/// Most threads of one read.
const THREADS_MAX: usize = 4;

/// Fills `out` with fields one behind the other; each stands with its length, and together they have
/// the length of `out`.
pub fn read_many(batch: &[(Field, usize)], out: &mut [u8]) -> Result<()> {
    let threads = match out.len() {
        0..PARALLEL_MIN => 1,
        _ => thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX)),
    };
    let share = out.len().div_ceil(threads);
    let (mut rest, mut room) = (batch, out);
    thread::scope(|scope| {
        let mut others = Vec::new();
        for _ in 1..threads {
            let mut bytes = 0;
            let fields = rest.iter().take_while(|(_, length)| {
                let begins = bytes < share;
                bytes += if begins { *length } else { 0 };
                begins
            });
            let (mine, behind) = rest.split_at(fields.count());
            let (own, left) = room.split_at_mut(bytes);
            (rest, room) = (behind, left);
            others.push(scope.spawn(move || read_run(mine, own)));
        }
        let last = read_run(rest, room);
        for other in others {
            // A panic there is a panic here, as without threads.
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        last
    })
}

/// The same by one thread.
fn read_run(batch: &[(Field, usize)], out: &mut [u8]) -> Result<()> {
    let (mut at, mut next) = (0, 0);
    while let Some((first, length)) = batch.get(next) {
        let (mut end, mut bytes) = (next + 1, *length);
        if first.single_block().is_some() {
            while let Some((field, length)) = batch.get(end)
                && bytes + length <= GROUP_MAX
                && batch[end - 1].0.is_followed_by(field)
            {
                bytes += length;
                end += 1;
            }
        }
        Field::read_group(&batch[next..end], &mut out[at..at + bytes])?;
        (next, at) = (end, at + bytes);
    }
    Ok(())
}
