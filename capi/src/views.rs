//! Views: the part of an array that each rank holds. No call here is collective; the next write or read
//! checks, on all ranks, whether a view fits.
//!
//! A call sets the view of sets of a group directly, or makes a handle, which serves groups and imports
//! alike.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use fieldstone::arrays::{Halo, View};
use fieldstone::{Code, Result};

use crate::arguments::{count as counted, items, numbers, result, texts};
use crate::handles::{find, fs_group, fs_view, give, take};
use crate::status::call;

/// Sets the view of the named sets, or of all if `nsets` is 0.
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

/// Adds a halo to a view: null, or two numbers for each dimension.
///
/// # Safety
/// `halo` is null or leads to twice `ndim` numbers that no thread changes during the call.
unsafe fn with_halo(view: View, ndim: c_int, halo: *const u64) -> Result<View> {
    if halo.is_null() {
        return Ok(view);
    }
    // SAFETY: not null, and the caller promises that many numbers.
    let widths = unsafe { items(halo, counted(ndim, "dimensions")?.saturating_mul(2), "halo") }?;
    Ok(view
        .halo(Halo::Each(widths.as_chunks().0.iter().map(|[before, behind]| (*before, *behind)).collect())))
}

/// The view of a box.
///
/// # Safety
/// The lists are null or have `ndim` numbers, `halo` twice as many, that no thread changes during the call.
unsafe fn block(
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    halo: *const u64,
    stride: *const u64,
) -> Result<View> {
    // SAFETY: the caller's promise is the same.
    let (start, count) = unsafe { (numbers(start, ndim, "start")?, numbers(count, ndim, "count")?) };
    let mut view = View::block(start, count);
    if !stride.is_null() {
        // SAFETY: as above, and it is not null.
        view = view.stride(unsafe { numbers(stride, ndim, "stride") }?);
    }
    // SAFETY: as above.
    unsafe { with_halo(view, ndim, halo) }
}

/// The view of a balanced cut.
///
/// # Safety
/// As for [`block`].
unsafe fn grid(ndim: c_int, grid: *const u64, halo: *const u64) -> Result<View> {
    // SAFETY: the caller's promise is the same.
    unsafe { numbers(grid, ndim, "grid").and_then(|grid| with_halo(View::grid(grid), ndim, halo)) }
}

/// The view of blocks dealt out in turn.
///
/// # Safety
/// As for [`block`].
unsafe fn cyclic(ndim: c_int, grid: *const u64, blocks: *const u64) -> Result<View> {
    // SAFETY: the caller's promise is the same.
    let (grid, blocks) = unsafe { (numbers(grid, ndim, "grid")?, numbers(blocks, ndim, "list of blocks")?) };
    Ok(View::cyclic(grid, blocks))
}

/// The view of a map.
///
/// # Safety
/// `map` is null or has `length` numbers that no thread changes during the call.
unsafe fn irregular(length: usize, map: *const i64, owned: i64, dim: c_int) -> Result<View> {
    // SAFETY: the caller's promise is the same.
    let map = unsafe { items(map, length, "map") }?;
    let owned = match owned {
        -1 => None,
        owned => Some(u64::try_from(owned).map_err(|_| Code::Argument.error(format!("{owned} owned")))?),
    };
    let dim = if dim == -1 { None } else { Some(counted(dim, "as a dimension")?) };
    Ok(View::irregular(map, owned, dim))
}

/// The view of a handle; `None` for null.
pub fn optional_view(view: *mut fs_view) -> Result<Option<Arc<View>>> {
    if view.is_null() { Ok(None) } else { find(view).map(Some) }
}

/// Makes a handle for a view.
///
/// # Safety
/// `place` is null or leads to a place for the handle.
pub unsafe fn give_view(place: *mut *mut fs_view, view: impl FnOnce() -> Result<View>) -> Result<()> {
    // SAFETY: the caller's promise is the same.
    let place = unsafe { result(place, std::ptr::null_mut(), "place for the view") }?;
    *place = give(Arc::new(view()?));
    Ok(())
}

/// This rank holds the box of `count` indices from `start`, in the `nsets` named sets, or in all if `nsets`
/// is 0. `halo` (null: none) has two numbers for each dimension: the width by which memory is larger before
/// and after the box. The halo is not written; a read fills the part of it that is inside the array. `stride`
/// (null: 1) is for reading every `stride`-th index. A rank may hold nothing: a count of 0.
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
    // SAFETY: the caller passes `ndim` numbers in each list, twice as many in `halo`, and `nsets` texts, or
    // null.
    call(|| unsafe { set_view(group, (nsets, sets), block(ndim, start, count, halo, stride)) })
}

/// This rank holds its part of a balanced cut into `grid` parts in each dimension, cut like numpy's
/// array_split; ranks are in C order over the grid. `halo` is as in fs_group_view_block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_grid(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    ndim: c_int,
    grid: *const u64,
    halo: *const u64,
) -> c_int {
    // SAFETY: the caller passes `ndim` numbers, twice as many in `halo`, and `nsets` texts, or null.
    call(|| unsafe { set_view(group, (nsets, sets), self::grid(ndim, grid, halo)) })
}

/// This rank holds every `grid`-th block of `blocks` indices: the blocks are dealt out in turn in each
/// dimension; ranks are in C order over the grid. In memory the blocks are side by side.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_cyclic(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    ndim: c_int,
    grid: *const u64,
    blocks: *const u64,
) -> c_int {
    // SAFETY: the caller passes `ndim` numbers in each list, and `nsets` texts, or null.
    call(|| unsafe { set_view(group, (nsets, sets), cyclic(ndim, grid, blocks)) })
}

/// This rank holds the `length` global indices of `map` along dimension `dim`, and other dimensions whole;
/// with `dim` -1 single elements, by their number in file order. An index of -1 means no element. The first
/// `owned` entries are written (-1: all), all are read. The map is copied.
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
    // SAFETY: the caller passes `length` numbers, and `nsets` texts, or null.
    call(|| unsafe { set_view(group, (nsets, sets), irregular(length, map, owned, dim)) })
}

/// This rank holds `count` indices of the first dimension, which is FS_VARYING, after those of the lower
/// ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view_joined(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    count: u64,
) -> c_int {
    // SAFETY: the caller passes `nsets` texts, or null.
    call(|| unsafe { set_view(group, (nsets, sets), Ok(View::joined(count))) })
}

/// As fs_group_view_block, but makes a handle, which fs_view_free frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_view_block(
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    halo: *const u64,
    stride: *const u64,
    view: *mut *mut fs_view,
) -> c_int {
    // SAFETY: the caller passes `ndim` numbers in each list, twice as many in `halo`, and a place for the
    // handle, or null.
    call(|| unsafe { give_view(view, || block(ndim, start, count, halo, stride)) })
}

/// As fs_group_view_grid, but makes a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_view_grid(
    ndim: c_int,
    grid: *const u64,
    halo: *const u64,
    view: *mut *mut fs_view,
) -> c_int {
    // SAFETY: the caller passes `ndim` numbers, twice as many in `halo`, and a place for the handle, or null.
    call(|| unsafe { give_view(view, || self::grid(ndim, grid, halo)) })
}

/// As fs_group_view_cyclic, but makes a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_view_cyclic(
    ndim: c_int,
    grid: *const u64,
    blocks: *const u64,
    view: *mut *mut fs_view,
) -> c_int {
    // SAFETY: the caller passes `ndim` numbers in each list, and a place for the handle, or null.
    call(|| unsafe { give_view(view, || cyclic(ndim, grid, blocks)) })
}

/// As fs_group_view_irregular, but makes a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_view_irregular(
    length: usize,
    map: *const i64,
    owned: i64,
    dim: c_int,
    view: *mut *mut fs_view,
) -> c_int {
    // SAFETY: the caller passes `length` numbers, and a place for the handle, or null.
    call(|| unsafe { give_view(view, || irregular(length, map, owned, dim)) })
}

/// As fs_group_view_joined, but makes a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_view_joined(count: u64, view: *mut *mut fs_view) -> c_int {
    // SAFETY: the caller passes a place for the handle, or null.
    call(|| unsafe { give_view(view, || Ok(View::joined(count))) })
}

/// Frees a view; groups and sets that use it keep it. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_view_free(view: *mut fs_view) -> c_int {
    call(|| if view.is_null() { Ok(()) } else { take(view).map(drop) })
}

/// This rank holds the part that the view says of the `nsets` named sets, or of all if `nsets` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_view(
    group: *mut fs_group,
    nsets: c_int,
    sets: *const *const c_char,
    view: *mut fs_view,
) -> c_int {
    // SAFETY: the caller passes `nsets` texts, or null.
    call(|| unsafe { set_view(group, (nsets, sets), find(view).map(|view| (*view).clone())) })
}
