//! The system's allocator, asking for huge pages for large allocations.
//!
//! The first touch of each page of memory costs a fault. With pages of 4 KiB, faults take a third and more of the
//! processor time in an exchange of large arrays (A-49); with pages of 2 MiB they cost almost nothing. Only a program
//! as a whole can choose its allocator: the Python module, the C library and the command line use this one, and a
//! Rust program may.
//!
//! ```
//! use fieldstone_core::env::real::HugePages;
//!
//! #[global_allocator]
//! static ALLOCATOR: HugePages = HugePages;
//! let zeroes = vec![0u8; 16 << 20];
//! assert!(zeroes.iter().all(|byte| *byte == 0));
//! ```
//!
//! Invariants: all memory comes from the [`System`] allocator, so it may be freed through either; on a kernel without
//! huge pages, or with huge pages turned off (`/sys/kernel/mm/transparent_hugepage/enabled`), nothing changes.

use std::alloc::{GlobalAlloc, Layout, System};

/// Allocations of at least this many bytes ask for huge pages: the size of one, because the kernel aligns a mapping
/// of this length to one (Linux 6.7).
const LARGE: usize = 2 << 20;

/// See the module's documentation.
#[derive(Debug, Clone, Copy, Default)]
pub struct HugePages;

// SAFETY: every method passes its arguments to `System`, which keeps the contract, and returns its result. The advice
// in between neither moves nor changes memory.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise on `layout` is passed on.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `memory` came from `System` through this allocator; the caller promises the rest.
        advised(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Asks for huge pages in the whole pages of an allocation.
#[inline]
fn advised(memory: *mut u8, size: usize) -> *mut u8 {
    if size >= LARGE && !memory.is_null() {
        advise(memory, size);
    }
    memory
}

#[cfg(target_os = "linux")]
#[cold]
fn advise(memory: *mut u8, size: usize) {
    use rustix::mm::{Advice, madvise};

    let page = rustix::param::page_size();
    let before = memory.align_offset(page);
    let whole = size.saturating_sub(before) / page * page;
    // SAFETY: `before + whole` is at most `size`, so the range lies in the allocation; the advice changes which pages
    // the kernel uses for it, not their content. If the kernel refuses, the memory is just as usable.
    let _ = unsafe { madvise(memory.wrapping_add(before).cast(), whole, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use fieldstone_testkit::require::require;

    use super::*;

    /// Whether huge pages were requested for the middle of this memory; `None` if the kernel does not say.
    #[allow(clippy::disallowed_methods)]
    fn is_advised(memory: *const u8, size: usize) -> Option<bool> {
        let middle = memory.addr() + size / 2;
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let mut is_here = false;
        for line in maps.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if let Some((from, to)) = word.split_once('-') {
                let address = |text| usize::from_str_radix(text, 16);
                if let (Ok(from), Ok(to)) = (address(from), address(to)) {
                    is_here = (from..to).contains(&middle);
                }
            } else if is_here && word == "VmFlags:" {
                return Some(rest.split_whitespace().any(|flag| flag == "hg"));
            }
        }
        None
    }

    #[test]
    fn large_memory_is_of_huge_pages_however_it_was_got_and_small_memory_is_not() {
        let has_some = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        if !require("huge-pages", has_some, "this kernel has no transparent huge pages") {
            return;
        }
        let large = Layout::from_size_align(LARGE + 12_345, 8).unwrap();
        let small = Layout::from_size_align(LARGE / 4, 8).unwrap();
        // SAFETY: the layouts have a size, the memory is used inside its bounds, and is freed with its current
        // layout.
        unsafe {
            let first = HugePages.alloc(large);
            assert_eq!(is_advised(first, large.size()), Some(true));
            first.write_bytes(7, large.size());
            let grown = HugePages.realloc(first, large, 3 * LARGE);
            assert_eq!(is_advised(grown, 3 * LARGE), Some(true));
            assert!((0..large.size()).all(|at| *grown.add(at) == 7));
            let zeroed = HugePages.alloc_zeroed(large);
            assert_eq!(is_advised(zeroed, large.size()), Some(true));
            assert!((0..large.size()).all(|at| *zeroed.add(at) == 0));
            let other = HugePages.alloc(small);
            assert_eq!(is_advised(other, small.size()), Some(false));
            HugePages.dealloc(grown, Layout::from_size_align(3 * LARGE, 8).unwrap());
            HugePages.dealloc(zeroed, large);
            HugePages.dealloc(other, small);
        }
    }
}
