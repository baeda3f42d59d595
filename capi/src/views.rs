//! Views of a group: which part of its sets is this rank's. Calls of this rank alone; whether a view fits is seen in the
//! next write or read, on all ranks.

use std::ffi::{c_char, c_int};

use fieldstone::arrays::{Halo, View};
use fieldstone::{Code, Result};

use crate::arguments::{count as counted, items, numbers, texts};
use crate::handles::{find, fs_group};
use crate::status::call;

/// Gives the sets named a view, or all where `nsets` is 0.
///
/// # Safety
/// `sets` is null or leads to `nsets` texts that end in a zero byte.
unsafe fn set_view(
    group: *mut fs_group,
    (nsets, sets): (c_int, *const *const c_char),
    view: Result<View>,
) -> Result<()> {
    let (group, view) = (find(group)?, view?);
    // SAFETY: the caller's promise is the same.
    let names = unsafe { texts(sets, counted(nsets, "sets")?, "list of sets") }?;
    group.view(&view, if names.is_empty() { None } else { Some(&names) })
}

/// A view with its halo: null, or two numbers a dimension.
///
/// # Safety
/// `halo` is null or leads to twice `ndim` numbers that nobody changes during the call.
unsafe fn with_halo(view: View, ndim: c_int, halo: *const u64) -> Result<View> {
    if halo.is_null() {
        return Ok(view);
    }
    // SAFETY: not null, and by the caller's promise so many numbers.
    let widths = unsafe { items(halo, counted(ndim, "dimensions")?.saturating_mul(2), "halo") }?;
    Ok(view
        .halo(Halo::Each(widths.as_chunks().0.iter().map(|[before, behind]| (*before, *behind)).collect())))
}

/// This rank holds the box of `count` indices from `start` on, of the `nsets` sets named, or of all where `nsets` is 0.
/// `halo` (null: none) has two numbers a dimension: how much wider memory is before and behind; it is not written, and a
/// read fills what of it lies within the array. `stride` (null: 1) is for reading: every so many indices. A rank may
/// hold nothing: a count of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_block(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    halo: *const u64,
    stride: *const u64,
) -> c_int {
    call(|| {
        let view = || {
            // SAFETY: the caller gives `ndim` numbers each, or null.
            let (start, count) = unsafe { (numbers(start, ndim, "start")?, numbers(count, ndim, "count")?) };
            let mut view = View::block(start, count);
            if !stride.is_null() {
                // SAFETY: as above, and it is not null.
                view = view.stride(unsafe { numbers(stride, ndim, "stride") }?);
            }
            // SAFETY: the caller gives twice `ndim` numbers, or null.
            unsafe { with_halo(view, ndim, halo) }
        };
        // SAFETY: the caller gives `nsets` texts, or null.
        unsafe { set_view(group, (nsets, sets), view()) }
    })
}

/// This rank holds its part of a balanced cut in `grid` parts a dimension, as numpy's array_split cuts; ranks in C order
/// over the grid. `halo` as in fs_group_view_block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_grid(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    ndim: c_int,
    grid: *const u64,
    halo: *const u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller gives `ndim` numbers and twice as many, or null.
        let view =
            unsafe { numbers(grid, ndim, "grid").and_then(|grid| with_halo(View::grid(grid), ndim, halo)) };
        // SAFETY: the caller gives `nsets` texts, or null.
        unsafe { set_view(group, (nsets, sets), view) }
    })
}

/// This rank holds every so many of blocks of `blocks` indices, which are dealt out in turn in every dimension; ranks in
/// C order over the grid. In memory its blocks stand side by side.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_cyclic(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    ndim: c_int,
    grid: *const u64,
    blocks: *const u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller gives `ndim` numbers each, or null.
        let lists = unsafe { (numbers(grid, ndim, "grid"), numbers(blocks, ndim, "list of blocks")) };
        let view = lists.0.and_then(|grid| Ok(View::cyclic(grid, lists.1?)));
        // SAFETY: the caller gives `nsets` texts, or null.
        unsafe { set_view(group, (nsets, sets), view) }
    })
}

/// This rank holds the `length` global indices of `map` along dimension `dim`, other dimensions whole; with `dim` -1
/// single elements, by their number in the order in which files have them. An index of -1 stands for no element. The
/// first `owned` entries are written (-1: all), all are read. The map is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_irregular(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    length: usize,
    map: *const i64,
    owned: i64,
    dim: c_int,
) -> c_int {
    call(|| {
        let view = || {
            // SAFETY: the caller gives `length` numbers, or null.
            let map = unsafe { items(map, length, "map") }?;
            let owned = match owned {
                -1 => None,
                owned => {
                    Some(u64::try_from(owned).map_err(|_| Code::Argument.error(format!("{owned} owned")))?)
                }
            };
            let dim = if dim == -1 { None } else { Some(counted(dim, "as a dimension")?) };
            Ok(View::irregular(map, owned, dim))
        };
        // SAFETY: the caller gives `nsets` texts, or null.
        unsafe { set_view(group, (nsets, sets), view()) }
    })
}

/// This rank holds `count` indices of the first dimension, which is FS_VARYING, behind those of the lower ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_joined(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    count: u64,
) -> c_int {
    // SAFETY: the caller gives `nsets` texts, or null.
    call(|| unsafe { set_view(group, (nsets, sets), Ok(View::joined(count))) })
}
