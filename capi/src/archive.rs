//! Archiving fields: bytes, whole arrays, pieces of arrays.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, FieldSpec, Value};

use crate::arguments::{byte_count, bytes, dtype as element_type, key as read_key, numbers, pairs};
use crate::handles::{find, fs_store};
use crate::status::call;

/// Archives opaque bytes. The store has its own copy when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_archive_bytes(
    store: *mut fs_store,
    key: *const c_char,
    data: *const c_void,
    length: usize,
) -> c_int {
    call(|| {
        let store = find(store)?;
        // SAFETY: the caller passes a text that ends in a zero byte and `length` bytes, or null.
        let (key, data) = unsafe { (read_key(key)?, bytes(data, length, "data")?) };
        store.archive(&pairs(&key), Value::Bytes(data), &ArchiveOptions::default())
    })
}

/// Archives a whole array of `shape`; `data` holds all its elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_archive_array(
    store: *mut fs_store,
    key: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    data: *const c_void,
) -> c_int {
    call(|| {
        let store = find(store)?;
        // SAFETY: the caller passes texts that end in a zero byte and `ndim` numbers, or null.
        let (key, dtype, shape) =
            unsafe { (read_key(key)?, element_type(dtype)?, numbers(shape, ndim, "shape")?) };
        // SAFETY: the caller passes as many elements as the shape has, or null.
        let data = unsafe { bytes(data, byte_count(dtype, shape)?, "data") }?;
        store.archive(&pairs(&key), Value::Array { data, dtype, shape }, &ArchiveOptions::default())
    })
}

/// Archives a piece of an array of `shape`: the box of `start` and `count`; `data` holds the box's elements.
/// The other pieces may come from other calls, flushes and processes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_archive_piece(
    store: *mut fs_store,
    key: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    start: *const u64,
    count: *const u64,
    data: *const c_void,
) -> c_int {
    call(|| {
        let store = find(store)?;
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let (key, dtype) = unsafe { (read_key(key)?, element_type(dtype)?) };
        // SAFETY: the caller passes `ndim` numbers in each list, or null.
        let (shape, start, count) = unsafe {
            (numbers(shape, ndim, "shape")?, numbers(start, ndim, "start")?, numbers(count, ndim, "count")?)
        };
        // SAFETY: the caller passes as many elements as the box has, or null.
        let data = unsafe { bytes(data, byte_count(dtype, count)?, "data") }?;
        let piece = Value::Piece { data, dtype, start, count, shape };
        store.archive(&pairs(&key), piece, &ArchiveOptions::default())
    })
}

/// Starts an array field from scratch: the next flush hides all pieces archived before. `fill` is one
/// element, the value of unwritten elements (null: the type's missing value). `chunks` are the extents of the
/// chunks into which pieces are cut (null: chosen by size).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_create_field(
    store: *mut fs_store,
    key: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    fill: *const c_void,
    chunks: *const u64,
) -> c_int {
    call(|| {
        let store = find(store)?;
        // SAFETY: the caller passes texts that end in a zero byte and `ndim` numbers, or null.
        let (key, dtype, shape) =
            unsafe { (read_key(key)?, element_type(dtype)?, numbers(shape, ndim, "shape")?) };
        let fill = match fill.is_null() {
            true => None,
            // SAFETY: not null, so the caller passes one element.
            false => Some(unsafe { bytes(fill, dtype.size(), "fill") }?),
        };
        let chunks = match chunks.is_null() {
            true => None,
            // SAFETY: not null, so the caller passes `ndim` numbers.
            false => Some(unsafe { numbers(chunks, ndim, "chunks") }?),
        };
        let spec = FieldSpec { dtype, shape, fill, chunks };
        store.create_field(&pairs(&key), &spec, &ArchiveOptions::default())
    })
}
