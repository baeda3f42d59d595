//! The number of this process, without a system call each time: the checks for a fork ask for it many times in a
//! call.
//!
//! The number is in a page of memory that the kernel clears in the child of a fork (`MADV_WIPEONFORK`, Linux 4.14),
//! however the process forks; a process that finds zero there asks the kernel. Without such a page, every call asks
//! the kernel.
//!
//! ```
//! use fieldstone_core::env::Env;
//! assert_eq!(Env::real().identity.process(), std::process::id());
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::env::Lifetime;

/// Boot, namespace and start of the calling process, as far as `/proc` says them.
pub fn lifetime() -> Lifetime {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
    let namespace =
        namespace.as_deref().and_then(|link| link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']'));
    Lifetime {
        boot: read("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default(),
        namespace: namespace.and_then(|number| number.parse().ok()).unwrap_or(0),
        started: read("/proc/self/stat").and_then(|stat| started(&stat)).unwrap_or(0),
    }
}

/// The start of a process of this host, as far as `/proc` says it.
pub fn started_of(process: u32) -> Option<u64> {
    started(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The 22nd field of `/proc/PID/stat`. The second, the name of the program, may hold blanks and brackets.
fn started(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The number of the calling process.
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

/// A number that becomes 0 in each child of a fork, until the child sets it.
#[cfg(target_os = "linux")]
fn emptied_by_fork() -> Option<&'static AtomicU32> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

    let length = rustix::param::page_size();
    // SAFETY: a new private mapping at an address that the kernel chooses overlaps no memory in use.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let page = page.ok()?;
    // SAFETY: the range is that whole mapping; the advice changes its content in a child, not in this process.
    unsafe { madvise(page, length, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the mapping is page-aligned, large enough, zeroed, readable and writable, and is never unmapped; all
    // access is atomic. A child finds the mapping filled with zeros, which are a valid number, too.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

#[cfg(not(target_os = "linux"))]
fn emptied_by_fork() -> Option<&'static AtomicU32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_found_behind_any_name() {
        let fields: Vec<String> = (4..30).map(|n| n.to_string()).collect();
        let stat = format!("7 (a ) b (c) S {}", fields.join(" "));
        assert_eq!(started(&stat), Some(22));
        assert_eq!(started("7 (a"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_a_lifetime() {
        assert!(lifetime().is_known());
        assert_eq!(lifetime(), lifetime());
        assert_eq!(started_of(number()), Some(lifetime().started));
    }
}
