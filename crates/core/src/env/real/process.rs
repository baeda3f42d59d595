//! The number of this process, without a system call each time: what notices a fork asks for it many times a call.
//!
//! It stands in a page of memory that the kernel empties in a child of a fork (`MADV_WIPEONFORK`, Linux 4.14), however the
//! fork was made; whoever finds it empty asks the kernel. Where there is no such page, the kernel is asked each time.
//!
//! ```
//! use fieldstone_core::env::Env;
//! assert_eq!(Env::real().identity.process(), std::process::id());
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of the process that asks.
pub fn number() -> u32 {
    static PAGE: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
    let Some(known) = PAGE.get_or_init(emptied_by_fork) else { return ask() };
    match known.load(Ordering::Relaxed) {
        0 => {
            let number = ask();
            known.store(number, Ordering::Relaxed);
            number
        }
        number => number,
    }
}

fn ask() -> u32 {
    rustix::process::getpid().as_raw_pid().unsigned_abs()
}

/// A number that is 0 in each child of a fork, until it is set there.
#[cfg(target_os = "linux")]
fn emptied_by_fork() -> Option<&'static AtomicU32> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

    let length = rustix::param::page_size();
    // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing that anybody has.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let page = page.ok()?;
    // SAFETY: the range is that mapping, whole; the advice changes what a child finds there, not what we do.
    unsafe { madvise(page, length, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the mapping is page-aligned, large enough, zeroed, readable and writable, and is never unmapped; all
    // access is atomic. A child finds the mapping there with zeroes, which are a valid number, too.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

#[cfg(not(target_os = "linux"))]
fn emptied_by_fork() -> Option<&'static AtomicU32> {
    None
}
