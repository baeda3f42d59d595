//! Checks of arguments from C: texts, bytes, shapes and places for results.
//!
//! Each function names its argument in the error. No check can find out whether a pointer that is not null
//! leads to as much memory as the caller says. The caller promises that, and every `unsafe` here rests on the
//! promise.

use std::ffi::{CStr, c_char, c_int, c_void};

use fieldstone::{Code, DType, Request, Result, element_count};

/// Most dimensions of an array.
pub const FS_MAX_RANK: usize = 32;

/// A text.
///
/// # Safety
/// `pointer` is null or leads to bytes that end in a zero byte and that no thread changes during the call.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(Code::Argument.error(format!("the {name} is null")));
    }
    // SAFETY: not null, and the caller promises that it ends in a zero byte and does not change.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|e| {
        Code::Value
            .error(format!("the {name} is not UTF-8 from byte {} on", e.valid_up_to()))
            .with_hint("convert the text to UTF-8")
    })
}

/// A text that may be absent.
///
/// # Safety
/// As for [`text`].
pub unsafe fn optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise is the same.
    unsafe { text(pointer, name) }.map(Some)
}

/// A key as keywords and values.
///
/// # Safety
/// As for [`text`].
pub unsafe fn key(pointer: *const c_char) -> Result<Vec<(String, String)>> {
    // SAFETY: the caller's promise is the same.
    let text = unsafe { text(pointer, "key") }?;
    Request::parse(text)
        .and_then(|request| request.single_pairs())
        .map_err(|e| e.context(format!("key '{text}'")))
}

/// The pairs of a key as calls take them.
pub fn pairs(key: &[(String, String)]) -> Vec<(&str, &str)> {
    key.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str())).collect()
}

/// Bytes to read.
///
/// # Safety
/// `pointer` is null or leads to `length` bytes that no thread changes during the call.
pub unsafe fn bytes<'a>(pointer: *const c_void, length: usize, name: &str) -> Result<&'a [u8]> {
    check(pointer.cast::<u8>(), length, name)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, bytes need no alignment, the length fits isize, and the caller promises that this
    // much memory is there and does not change.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), length) })
}

/// Bytes to fill.
///
/// # Safety
/// `pointer` is null or leads to `length` bytes that no other code uses during the call.
pub unsafe fn buffer<'a>(pointer: *mut c_void, length: usize) -> Result<&'a mut [u8]> {
    check(pointer.cast::<u8>(), length, "buffer")?;
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as in `bytes`, and the caller promises that no other code uses it.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) })
}

/// A list with one number for each dimension.
///
/// # Safety
/// `pointer` is null or leads to `ndim` numbers that no thread changes during the call.
pub unsafe fn numbers<'a>(pointer: *const u64, ndim: c_int, name: &str) -> Result<&'a [u64]> {
    let rank = usize::try_from(ndim).ok().filter(|rank| *rank <= FS_MAX_RANK);
    let rank = rank.ok_or_else(|| {
        Code::Shape.error(format!("an array of {ndim} dimensions; 0 to {FS_MAX_RANK} are possible"))
    })?;
    check(pointer, rank, name)?;
    if rank == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, aligned, short, and the caller promises that `rank` numbers are there and do not
    // change.
    Ok(unsafe { std::slice::from_raw_parts(pointer, rank) })
}

/// Items of a list: numbers, or structures of numbers and pointers.
///
/// # Safety
/// `pointer` is null or leads to `count` items that no thread changes during the call; any bytes are a valid
/// `T`.
pub unsafe fn items<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    check(pointer, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, aligned, no longer than memory, and the caller promises that `count` items are there
    // and do not change.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// A list of texts.
///
/// # Safety
/// `pointer` is null or leads to `count` pointers, each as for [`text`].
pub unsafe fn texts<'a>(pointer: *const *const c_char, count: usize, name: &str) -> Result<Vec<&'a str>> {
    // SAFETY: the caller's promise is the same.
    let pointers = unsafe { items(pointer, count, name) }?;
    // SAFETY: as above, of each.
    pointers.iter().map(|pointer| unsafe { text(*pointer, name) }).collect()
}

/// A count that C passes as an int.
pub fn count(number: c_int, name: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| Code::Argument.error(format!("{number} {name}")))
}

/// Copies a text and a zero byte into the caller's `capacity` bytes. If the text is too long, it is cut after
/// the last character that fits.
///
/// # Safety
/// `to` is null or leads to `capacity` bytes that no other code uses during the call.
pub unsafe fn copy_text(from: &str, to: *mut c_char, capacity: usize) -> Result<()> {
    // SAFETY: the caller's promise is the same.
    let room = unsafe { buffer(to.cast(), capacity) }?;
    let Some(most) = capacity.checked_sub(1) else {
        return Err(Code::BufferSize.error("no room for a text and its zero byte"));
    };
    let cut = (0..=most.min(from.len())).rev().find(|at| from.is_char_boundary(*at)).unwrap_or(0);
    room[..cut].copy_from_slice(&from.as_bytes()[..cut]);
    room[cut] = 0;
    Ok(())
}

/// Checks a pointer to `length` elements without following it.
fn check<T>(pointer: *const T, length: usize, name: &str) -> Result<()> {
    if length == 0 {
        return Ok(());
    }
    if pointer.is_null() {
        return Err(Code::Argument.error(format!("the {name} is null")));
    }
    if !pointer.is_aligned() {
        return Err(Code::Argument.error(format!("the {name} at {pointer:p} is not aligned to its type")));
    }
    match length.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Code::Argument
            .error(format!("the {name} cannot have {length} elements: memory ends before"))
            .with_hint("was a negative number given as a length?")),
    }
}

/// The place for a result. It gets its `first` value at once, so that it is set however the call ends.
///
/// # Safety
/// `pointer` is null or leads to a `T` that no other code uses during the call; it may be uninitialised.
pub unsafe fn result<'a, T>(pointer: *mut T, first: T, name: &str) -> Result<&'a mut T> {
    check(pointer.cast_const(), 1, name)?;
    // SAFETY: not null, aligned, and the caller promises that it is ours. `write` does not read the old
    // content.
    unsafe { pointer.write(first) };
    // SAFETY: as above, and it holds a `T` now.
    Ok(unsafe { &mut *pointer })
}

/// An element type.
///
/// # Safety
/// As for [`text`].
pub unsafe fn dtype(pointer: *const c_char) -> Result<DType> {
    // SAFETY: the caller's promise is the same.
    DType::parse(unsafe { text(pointer, "dtype") }?)
}

/// Number of bytes of a box with these extents.
pub fn byte_count(dtype: DType, extents: &[u64]) -> Result<usize> {
    let bytes = element_count(extents)?.checked_mul(dtype.size() as u64);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        Code::Shape.error(format!("{dtype} elements of extents {extents:?} do not fit memory"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_judged_is_refused_by_name() {
        let message = |result: Result<()>| result.unwrap_err().message().to_owned();
        // SAFETY: null and constants; the checks refuse the misaligned pointer and the impossible length
        // before any use.
        unsafe {
            assert_eq!(message(text(std::ptr::null(), "key").map(drop)), "the key is null");
            assert_eq!(
                message(text(c"ab\xff".as_ptr(), "url").map(drop)),
                "the url is not UTF-8 from byte 2 on"
            );
            assert_eq!(message(bytes(std::ptr::null(), 1, "data").map(drop)), "the data is null");
            assert!(
                message(bytes(c"a".as_ptr().cast(), usize::MAX, "data").map(drop)).contains("memory ends")
            );
            assert!(bytes(std::ptr::null(), 0, "data").unwrap().is_empty());
            let pair = [1_u64, 2];
            assert_eq!(numbers(pair.as_ptr(), 2, "shape").unwrap(), [1, 2]);
            assert!(message(numbers(pair.as_ptr(), -1, "shape").map(drop)).contains("-1 dimensions"));
            assert!(message(numbers(pair.as_ptr(), 33, "shape").map(drop)).contains("33 dimensions"));
            let odd = pair.as_ptr().wrapping_byte_add(1);
            assert!(message(numbers(odd, 1, "shape").map(drop)).contains("not aligned"));
            assert!(message(result(std::ptr::null_mut::<u64>(), 0, "nbytes").map(drop)).contains("null"));
        }
    }

    #[test]
    fn texts_are_cut_where_a_character_ends() {
        let mut room = [7_i8; 4];
        // SAFETY: four bytes of this frame; the call with no bytes is refused.
        unsafe {
            copy_text("aé€", room.as_mut_ptr().cast(), 4).unwrap();
            assert_eq!(room, ["a".as_bytes()[0] as i8, 0xc3_u8 as i8, 0xa9_u8 as i8, 0]);
            copy_text("aé€", room.as_mut_ptr().cast(), 3).unwrap();
            assert_eq!(room[..2], [b'a' as i8, 0]);
            assert!(copy_text("a", room.as_mut_ptr().cast(), 0).is_err());
            assert!(texts([c"a".as_ptr(), std::ptr::null()].as_ptr(), 2, "name").is_err());
        }
        assert!(count(-1, "sets").unwrap_err().message().contains("-1 sets"));
    }

    #[test]
    fn sizes_are_counted_without_overflow() {
        assert_eq!(byte_count(DType::F8, &[2, 3]).unwrap(), 48);
        assert_eq!(byte_count(DType::F8, &[u64::MAX, 0]).unwrap(), 0);
        assert!(byte_count(DType::F8, &[1 << 62]).is_err());
        assert!(byte_count(DType::F8, &[1 << 40, 1 << 40]).is_err());
    }
}
