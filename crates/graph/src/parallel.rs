//! Runs independent pieces of work on several threads.

use std::iter;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldstone_core::sync::thread;

/// The results of `work` for all items, in their order; on at most `threads` threads, and no more than there
/// are cores. A panic of one becomes a panic of the caller.
pub fn map<I: Sync, O: Send>(items: &[I], threads: usize, work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(threads).min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let some = || -> Vec<(usize, O)> {
        let mine = iter::from_fn(|| {
            let i = next.fetch_add(1, Ordering::Relaxed);
            items.get(i).map(|item| (i, work(item)))
        });
        mine.collect()
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, made)| made).collect()
}
