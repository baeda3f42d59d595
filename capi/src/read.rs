//! Reading fields: their description, whole fields and boxes, into the caller's memory.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::prelude::*;
use fieldstone::{Code, DType, Error, Field, IndexBox, ReadOptions, Result};

use crate::arguments::{
    FS_MAX_RANK, buffer as writable, byte_count, dtype as element_type, key as read_key, numbers, pairs,
    result,
};
use crate::handles::{find, fs_store};
use crate::status::call;

/// Size of the text of an element type, including its zero byte.
pub const FS_DTYPE_SIZE: usize = 32;

/// Description of a field.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct fs_field_info {
    /// Raw bytes of the field.
    nbytes: u64,
    /// Dimensions of an array; -1 for opaque bytes.
    ndim: i32,
    /// 1 if every element was written, else 0.
    complete: i32,
    /// Element type with its byte order, such as "<f8"; "" for opaque bytes.
    dtype: [c_char; FS_DTYPE_SIZE],
    /// Extents of the array; 0 from `ndim` on.
    shape: [u64; FS_MAX_RANK],
}

const NO_INFO: fs_field_info =
    fs_field_info { nbytes: 0, ndim: -1, complete: 0, dtype: [0; FS_DTYPE_SIZE], shape: [0; FS_MAX_RANK] };

/// The one field that a key names.
///
/// # Safety
/// `key` is null or leads to bytes that end in a zero byte.
unsafe fn field(store: *mut fs_store, key: *const c_char) -> Result<Field> {
    let store = find(store)?;
    // SAFETY: the caller's promise is the same.
    let key = unsafe { read_key(key) }?;
    store.get(&pairs(&key), &ReadOptions::default())
}

/// A field's element type and extents; Invalid for opaque bytes.
fn array_of(field: &Field) -> Result<(DType, Vec<u64>)> {
    match (field.dtype()?, field.shape()?) {
        (Some(dtype), Some(shape)) => Ok((dtype, shape)),
        _ => Err(Code::NotAnArray
            .error(format!("{} is opaque bytes, not an array", field.key()?))
            .with_hint("read it with fs_get")),
    }
}

/// Refuses to return elements to a caller who expects another type, and returns the shape.
fn check_type(field: &Field, wanted: DType) -> Result<Vec<u64>> {
    let (dtype, shape) = array_of(field)?;
    if dtype == wanted {
        return Ok(shape);
    }
    Err(Code::DtypeMismatch
        .error(format!("{} has elements {dtype}, not {wanted}", field.key()?))
        .with_hint("read it with its own type"))
}

/// A box of a field; an error names the field, too.
fn box_of(field: &Field, start: &[u64], count: &[u64], shape: &[u64]) -> Result<IndexBox> {
    let name = field.key()?;
    IndexBox::new(start.to_vec(), count.to_vec(), shape).map_err(|e| e.context(name))
}

/// Describes the field of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_info(
    store: *mut fs_store,
    key: *const c_char,
    info: *mut fs_field_info,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the result.
        let info = unsafe { result(info, NO_INFO, "place for the info") }?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let field = unsafe { field(store, key) }?;
        let mut found =
            fs_field_info { nbytes: field.nbytes()?, complete: i32::from(field.is_complete()?), ..NO_INFO };
        if field.dtype()?.is_some() {
            let (dtype, shape) = array_of(&field)?;
            let text = dtype.to_string();
            let too_long = |what: &str| Error::internal(format!("{what} of {dtype} {shape:?} does not fit"));
            if text.len() >= FS_DTYPE_SIZE {
                return Err(too_long("the type"));
            }
            found.ndim = i32::try_from(shape.len()).map_err(|_| too_long("the rank"))?;
            found.shape.get_mut(..shape.len()).ok_or_else(|| too_long("the shape"))?.copy_from_slice(&shape);
            found.dtype.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
        }
        *info = found;
        Ok(())
    })
}

/// Gets the number of raw bytes of a key's field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_size(store: *mut fs_store, key: *const c_char, nbytes: *mut u64) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the result.
        let nbytes = unsafe { result(nbytes, 0, "place for nbytes") }?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        *nbytes = unsafe { field(store, key) }?.nbytes()?;
        Ok(())
    })
}

/// Reads a field of either kind into a buffer of `capacity` bytes. `nbytes` becomes the size of the field,
/// even if it exceeds `capacity`, which is FS_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_get(
    store: *mut fs_store,
    key: *const c_char,
    buffer: *mut c_void,
    capacity: usize,
    nbytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the result.
        let nbytes = unsafe { result(nbytes, 0, "place for nbytes") }?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let field = unsafe { field(store, key) }?;
        *nbytes = field.nbytes()?;
        let needed = fitting(&field, *nbytes, capacity)?;
        // SAFETY: no more than the `capacity` bytes that the caller passes, or null.
        field.read_into(unsafe { writable(buffer, needed) }?)
    })
}

/// Reads a box of an array into a buffer of `capacity` bytes. `nbytes` becomes the size of the box, even if
/// it exceeds `capacity`, which is FS_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_get_box(
    store: *mut fs_store,
    key: *const c_char,
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    buffer: *mut c_void,
    capacity: usize,
    nbytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the result.
        let nbytes = unsafe { result(nbytes, 0, "place for nbytes") }?;
        // SAFETY: the caller passes `ndim` numbers in each list, or null.
        let (start, count) = unsafe { (numbers(start, ndim, "start")?, numbers(count, ndim, "count")?) };
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let field = unsafe { field(store, key) }?;
        let (dtype, shape) = array_of(&field)?;
        let region = box_of(&field, start, count, &shape)?;
        *nbytes = byte_count(dtype, count)? as u64;
        let needed = fitting(&field, *nbytes, capacity)?;
        // SAFETY: no more than the `capacity` bytes that the caller passes, or null.
        field.read_box_into(&region, unsafe { writable(buffer, needed) }?)
    })
}

/// Reads a whole array of this element type and shape; FS_INVALID if the array has others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_get_array(
    store: *mut fs_store,
    key: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    buffer: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes a text that ends in a zero byte and `ndim` numbers, or null.
        let (dtype, shape) = unsafe { (element_type(dtype)?, numbers(shape, ndim, "shape")?) };
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let field = unsafe { field(store, key) }?;
        let found = check_type(&field, dtype)?;
        if found != shape {
            return Err(Code::ShapeMismatch
                .error(format!("{} has shape {found:?}, not {shape:?}", field.key()?))
                .with_hint("ask for its shape with fs_info, or read a box of it with fs_get_piece"));
        }
        // SAFETY: the caller passes as many elements as the shape has, or null.
        field.read_into(unsafe { writable(buffer, byte_count(dtype, shape)?) }?)
    })
}

/// Reads a box of an array of this element type; FS_INVALID if the array has another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_get_piece(
    store: *mut fs_store,
    key: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    buffer: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes a text that ends in a zero byte and `ndim` numbers in each list, or null.
        let (dtype, start, count) =
            unsafe { (element_type(dtype)?, numbers(start, ndim, "start")?, numbers(count, ndim, "count")?) };
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let field = unsafe { field(store, key) }?;
        let region = box_of(&field, start, count, &check_type(&field, dtype)?)?;
        // SAFETY: the caller passes as many elements as the box has, or null.
        field.read_box_into(&region, unsafe { writable(buffer, byte_count(dtype, count)?) }?)
    })
}

/// The size of a result as a length in memory, if it fits the caller's buffer.
fn fitting(field: &Field, needed: u64, capacity: usize) -> Result<usize> {
    match usize::try_from(needed) {
        Ok(needed) if needed <= capacity => Ok(needed),
        _ => Err(Code::BufferSize
            .error(format!("{} needs {needed} bytes, the buffer has {capacity}", field.key()?))
            .with_hint("give a buffer of at least nbytes")),
    }
}
