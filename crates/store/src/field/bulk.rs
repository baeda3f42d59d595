//! Reading many fields into one buffer: what comes at the same cost by one call of the source, large
//! batches by several threads.

use fieldstone_core::sync::thread;

use fieldstone_core::{Error, Result};

use super::Field;

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
            others.push(scope.spawn(move || read_segment(mine, own)));
        }
        let last = read_segment(rest, room);
        for other in others {
            // A panic there is a panic here, as without threads.
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        last
    })
}

/// The same by one thread.
fn read_segment(batch: &[(Field, usize)], out: &mut [u8]) -> Result<()> {
    let (mut rest, mut room) = (batch, out);
    while let Some((first, _)) = rest.first() {
        let count = first.source().read_first(rest, room)?;
        if count == 0 {
            return Err(Error::internal("a store read nothing of a batch"));
        }
        let (read, behind) = rest.split_at(count);
        let bytes = read.iter().map(|(_, length)| length).sum();
        (rest, room) = (behind, &mut room[bytes..]);
    }
    Ok(())
}
