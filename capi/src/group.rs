//! Writes and reads of a job's groups: each rank passes the part of a set that its view gives it.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::arrays::{ArrayGroup, READ, WRITE, WriteOptions};
use fieldstone::{Code, DType, Result};

use crate::arguments::{FS_MAX_RANK, copy_text, dtype as element_type, result, text};
use crate::attributes::{fs_hint, hints as hints_of};
use crate::elements::{ElementLayout, GivenLayout};
use crate::handles::{find, fs_group, fs_view};
use crate::status::call;
use crate::views::optional_view;

/// Gets the shape of this rank's part of a set, which its view determines and its memory must have: the
/// number of dimensions, and extents in `shape`, which has room for FS_MAX_RANK. Not collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_local_shape(
    group: *mut fs_group,
    set: *const c_char,
    ndim: *mut c_int,
    shape: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for a number.
        let ndim = unsafe { result(ndim, 0, "place for the number of dimensions") }?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let local = find(group)?.local_shape(unsafe { text(set, "set") }?)?;
        if local.len() > FS_MAX_RANK {
            return Err(Code::Shape.error(format!("a part of {} dimensions", local.len())));
        }
        for (n, extent) in local.iter().enumerate() {
            // SAFETY: the caller passes room for FS_MAX_RANK numbers; `result` refuses null.
            *unsafe { result(shape.wrapping_add(n), 0, "place for the shape") }? = *extent;
        }
        *ndim = local.len() as c_int;
        Ok(())
    })
}

/// Collective: writes a set at a step, each rank its own part. `dtype` is the type of the data, in either
/// byte order (null: the type of the set). `shape` is the shape of the data, which must be the view's (null:
/// the view's). `strides` are the bytes from one element to the next in each dimension, starting at the first
/// element in `data` (null: the elements are contiguous, in the group's order). Both lists have `ndim`
/// numbers.
///
/// FS_CONFLICT if ranks write different bytes to one element. With `wait` 0 the call returns after the
/// exchange of elements: the caller may change the data, and a thread writes the elements to files; if that
/// fails, a later call reports the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_write(
    group: *mut fs_group,
    set: *const c_char,
    step: i64,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *const c_void,
    wait: c_int,
) -> c_int {
    let given = GivenData { dtype, layout: GivenLayout { ndim, shape, strides } };
    // SAFETY: the caller passes texts, lists and data as the arguments say, or null.
    call(|| unsafe { write(group, (set, step), given, data, wait != 0, (0, std::ptr::null())) })
}

/// Collective: as fs_group_write, with hints for this call in addition to the group's: for its exchange
/// ("cb_nodes"), and for a file that it creates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_write_with(
    group: *mut fs_group,
    set: *const c_char,
    step: i64,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *const c_void,
    wait: c_int,
    nhints: c_int,
    hints: *const fs_hint,
) -> c_int {
    let given = GivenData { dtype, layout: GivenLayout { ndim, shape, strides } };
    // SAFETY: the caller passes texts, lists and data as the arguments say, or null.
    call(|| unsafe { write(group, (set, step), given, data, wait != 0, (nhints, hints)) })
}

/// Collective: reads this rank's part of a set at a step into `data`; the arguments are those of
/// fs_group_write. Unflushed writes are read, too. FS_NOT_FOUND if the set or step does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_read(
    group: *mut fs_group,
    set: *const c_char,
    step: i64,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *mut c_void,
) -> c_int {
    let given = GivenData { dtype, layout: GivenLayout { ndim, shape, strides } };
    // SAFETY: the caller passes texts, lists and data as the arguments say, or null.
    call(|| unsafe { read(group, (set, step), std::ptr::null_mut(), given, data, (0, std::ptr::null())) })
}

/// Collective: as fs_group_read, with a view for this call (null: the set's) and hints for this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_read_with(
    group: *mut fs_group,
    set: *const c_char,
    step: i64,
    view: *mut fs_view,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *mut c_void,
    nhints: c_int,
    hints: *const fs_hint,
) -> c_int {
    let given = GivenData { dtype, layout: GivenLayout { ndim, shape, strides } };
    // SAFETY: the caller passes texts, lists and data as the arguments say, or null.
    call(|| unsafe { read(group, (set, step), view, given, data, (nhints, hints)) })
}

/// Collective: gets the steps at which a set is flushed and complete, ascending. `count` becomes their
/// number, even if `steps` has room for fewer; then the first `capacity` steps are given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_steps(
    group: *mut fs_group,
    set: *const c_char,
    steps: *mut i64,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    call(|| {
        let group = find(group)?;
        // SAFETY: the caller passes a text that ends in a zero byte, and a place for a number, or null.
        let given = unsafe {
            result(count, 0, "place for the count").and_then(|count| Ok((count, text(set, "set")?)))
        };
        let (count, set) = given.map_err(|error| group.refuse("steps", error))?;
        let found = group.steps(set)?;
        for (n, step) in found.iter().take(capacity).enumerate() {
            // SAFETY: the caller passes room for `capacity` numbers; `result` refuses null.
            *unsafe { result(steps.wrapping_add(n), 0, "place for the steps") }? = *step;
        }
        *count = found.len();
        Ok(())
    })
}

/// Collective: gets the newest step at which all sets of the group are flushed and complete. `found` becomes
/// 1, or 0 if no such step exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_last_step(
    group: *mut fs_group,
    step: *mut i64,
    found: *mut c_int,
) -> c_int {
    call(|| {
        let group = find(group)?;
        // SAFETY: the caller passes places for numbers, or null.
        let places = unsafe {
            result(step, 0, "place for the step")
                .and_then(|step| Ok((step, result(found, 0, "place for found")?)))
        };
        let (step, found) = places.map_err(|error| group.refuse("steps", error))?;
        if let Some(last) = group.last_step()? {
            (*step, *found) = (last, 1);
        }
        Ok(())
    })
}

/// Gets the organisation level of the group: 1, 2 or 3; 0 if its arrays are in the store's logs. Not
/// collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_level(group: *mut fs_group, level: *mut c_int) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for a number.
        let level = unsafe { result(level, 0, "place for the level") }?;
        *level = c_int::from(find(group)?.level().unwrap_or(0));
        Ok(())
    })
}

/// Explains the choice of level and method, as a text cut to `capacity` bytes including its zero byte. Not
/// collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_why(group: *mut fs_group, why: *mut c_char, capacity: usize) -> c_int {
    call(|| {
        let text = find(group)?.why();
        // SAFETY: the caller passes `capacity` bytes, or null.
        unsafe { copy_text(&text, why, capacity) }
    })
}

/// Type and layout of a caller's data.
#[derive(Clone, Copy)]
struct GivenData {
    dtype: *const c_char,
    layout: GivenLayout,
}

/// Collective: the body of a write.
///
/// # Safety
/// The texts end in a zero byte, the lists are as long as their counts say, and the data have the layout;
/// each may be null.
unsafe fn write(
    group: *mut fs_group,
    (set, step): (*const c_char, i64),
    given: GivenData,
    data: *const c_void,
    wait: bool,
    (nhints, hints): (c_int, *const fs_hint),
) -> Result<()> {
    let group = find(group)?;
    // SAFETY: the caller's promise is the same.
    let said = unsafe { text(set, "set").and_then(|set| Ok((set, hints_of(nhints, hints)?))) };
    let (set, hints) = said.map_err(|error| group.refuse(WRITE, error))?;
    let layout = group.local_shape(set).and_then(|local| {
        // SAFETY: as above.
        unsafe {
            ElementLayout::new(group.order(), declared_or(&group, set, given.dtype)?, &local, given.layout)
        }
    });
    let memory = match &layout {
        // SAFETY: as above.
        Ok(layout) => unsafe { layout.memory(data) },
        Err(error) => Err(error.replicate()),
    };
    group.write_with(set, step, memory, &WriteOptions { wait, hints }).map(drop)
}

/// Collective: the body of a read.
///
/// # Safety
/// As for [`write`], and no other code uses the data during the call.
unsafe fn read(
    group: *mut fs_group,
    (set, step): (*const c_char, i64),
    view: *mut fs_view,
    given: GivenData,
    data: *mut c_void,
    (nhints, hints): (c_int, *const fs_hint),
) -> Result<()> {
    let group = find(group)?;
    let said = || -> Result<_> {
        // SAFETY: the caller's promise is the same.
        Ok((optional_view(view)?, unsafe { (text(set, "set")?, hints_of(nhints, hints)?) }))
    };
    let (view, (set, hints)) = said().map_err(|error| group.refuse(READ, error))?;
    let request = group.begin_read_with(set, step, view.as_deref(), &hints)?;
    // SAFETY: as above.
    let layout = unsafe {
        declared_or(&group, set, given.dtype)
            .and_then(|dtype| ElementLayout::new(group.order(), dtype, request.local_shape(), given.layout))
    };
    let memory = match &layout {
        // SAFETY: as above.
        Ok(layout) => unsafe { layout.memory_mut(data) },
        Err(error) => Err(error.replicate()),
    };
    group.read(&request, memory).map(drop)
}

/// The type that a caller names, or else the declared type of the set.
///
/// # Safety
/// `dtype` is null or leads to bytes that end in a zero byte and that no thread changes during the call.
unsafe fn declared_or(group: &ArrayGroup, set: &str, dtype: *const c_char) -> Result<DType> {
    if !dtype.is_null() {
        // SAFETY: the caller's promise is the same.
        return unsafe { element_type(dtype) };
    }
    let declared = group.find_set(set);
    declared
        .map(|set| set.dtype.to_native())
        .ok_or_else(|| Code::VariableNotFound.error(format!("the group has no set '{set}'")))
}
