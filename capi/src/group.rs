//! Groups of a job: write and read sets at steps, each rank what it holds by its view.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::arrays::{ArrayGroup, WriteOptions};
use fieldstone::{Code, DType, Result};

use crate::arguments::{FS_MAX_RANK, copy_text, dtype as element_type, result, text};
use crate::elements::{ElementLayout, GivenLayout};
use crate::handles::{find, fs_group};
use crate::status::call;

/// The shape of this rank's part of a set by its view, which memory has: the number of dimensions, and extents in
/// `shape`, which has room for FS_MAX_RANK. Of this rank alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_local_shape(
    group: *mut fs_group,
    set: *const c_char,
    ndim: *mut c_int,
    shape: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for a number.
        let ndim = unsafe { result(ndim, 0, "place for the number of dimensions") }?;
        // SAFETY: the caller gives a text that ends in a zero byte, or null.
        let local = find(group)?.local_shape(unsafe { text(set, "set") }?)?;
        if local.len() > FS_MAX_RANK {
            return Err(Code::Shape.error(format!("a part of {} dimensions", local.len())));
        }
        for (n, extent) in local.iter().enumerate() {
            // SAFETY: the caller gives room for FS_MAX_RANK numbers; `result` refuses null.
            *unsafe { result(shape.wrapping_add(n), 0, "place for the shape") }? = *extent;
        }
        *ndim = local.len() as c_int;
        Ok(())
    })
}

/// Collective: writes a set at a step, each rank what it holds. `dtype` is the type of the data, in either byte order;
/// where null, the set's. `shape` is that of the data, to be compared with the view's; null: it is the view's.
/// `strides` are the bytes from one element to the next in each dimension, from `data`, the first one, on; null: the
/// elements stand close, in the group's order. `ndim` numbers each.
///
/// FS_CONFLICT where ranks write one element with different bytes. With `wait` 0 the call returns when the elements were
/// exchanged: the data may be changed, and a thread writes them; what fails then is an error of a later call.
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
    call(|| {
        let group = find(group)?;
        // SAFETY: the caller gives a text that ends in a zero byte, or null.
        let set = unsafe { text(set, "set") }.map_err(|error| group.refuse("write", error))?;
        let given = GivenLayout { ndim, shape, strides };
        let layout = group.local_shape(set).and_then(|local| {
            // SAFETY: the caller gives a text and lists of `ndim` numbers, or null.
            unsafe { ElementLayout::new(&group, declared_or(&group, set, dtype)?, &local, given) }
        });
        let memory = match &layout {
            // SAFETY: the caller gives data of that layout, or null.
            Ok(layout) => unsafe { layout.memory(data) },
            Err(error) => Err(error.replicate()),
        };
        let options = WriteOptions { wait: wait != 0, ..WriteOptions::default() };
        group.write_with(set, step, memory, &options).map(drop)
    })
}

/// Collective: reads what this rank holds of a set at a step into `data`; the arguments are those of fs_group_write.
/// What was written and not flushed is read, too. FS_NOT_FOUND for a set or step that is not there.
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
    call(|| {
        let group = find(group)?;
        // SAFETY: the caller gives a text that ends in a zero byte, or null.
        let set = unsafe { text(set, "set") }.map_err(|error| group.refuse("read", error))?;
        let request = group.begin_read(set, step, None)?;
        let given = GivenLayout { ndim, shape, strides };
        // SAFETY: the caller gives a text and lists of `ndim` numbers, or null.
        let layout = unsafe { declared_or(&group, set, dtype) }
            // SAFETY: as above.
            .and_then(|dtype| unsafe { ElementLayout::new(&group, dtype, request.local_shape(), given) });
        let memory = match &layout {
            // SAFETY: the caller gives data of that layout, which nobody else uses, or null.
            Ok(layout) => unsafe { layout.memory_mut(data) },
            Err(error) => Err(error.replicate()),
        };
        group.read(&request, memory).map(drop)
    })
}

/// Collective: steps at which a set was flushed and is whole, ascending. `count` becomes how many there are, also where
/// `steps` has room for fewer: of `capacity` numbers, the first ones are given.
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
        // SAFETY: the caller gives a text that ends in a zero byte, and a place for a number, or null.
        let given = unsafe {
            result(count, 0, "place for the count").and_then(|count| Ok((count, text(set, "set")?)))
        };
        let (count, set) = given.map_err(|error| group.refuse("steps", error))?;
        let found = group.steps(set)?;
        for (n, step) in found.iter().take(capacity).enumerate() {
            // SAFETY: the caller gives room for `capacity` numbers; `result` refuses null.
            *unsafe { result(steps.wrapping_add(n), 0, "place for the steps") }? = *step;
        }
        *count = found.len();
        Ok(())
    })
}

/// Collective: the newest step at which all sets of the group were flushed and are whole. `found` becomes 0 where there
/// is none, else 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_last_step(
    group: *mut fs_group,
    step: *mut i64,
    found: *mut c_int,
) -> c_int {
    call(|| {
        let group = find(group)?;
        // SAFETY: the caller gives places for numbers, or null.
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

/// The level of the group: 1, 2 or 3; 0 where its arrays lie in the store's logs. Of this rank alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_level(group: *mut fs_group, level: *mut c_int) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for a number.
        let level = unsafe { result(level, 0, "place for the level") }?;
        *level = c_int::from(find(group)?.level().unwrap_or(0));
        Ok(())
    })
}

/// Why level and method are what they are, as a text cut to `capacity` bytes with its zero byte. Of this rank alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_group_why(group: *mut fs_group, why: *mut c_char, capacity: usize) -> c_int {
    call(|| {
        let text = find(group)?.why();
        // SAFETY: the caller gives `capacity` bytes, or null.
        unsafe { copy_text(&text, why, capacity) }
    })
}

/// The type that a caller names, or else the one that a set was declared with.
///
/// # Safety
/// `dtype` is null or leads to bytes that end in a zero byte and that nobody changes during the call.
unsafe fn declared_or(group: &ArrayGroup, set: &str, dtype: *const c_char) -> Result<DType> {
    if !dtype.is_null() {
        // SAFETY: the caller's promise is the same.
        return unsafe { element_type(dtype) };
    }
    let declared = group.sets().iter().find(|known| known.variable.name == set);
    declared
        .map(|set| set.dtype.to_native())
        .ok_or_else(|| Code::VariableNotFound.error(format!("the group has no set '{set}'")))
}
