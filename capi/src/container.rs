//! Containers: create, define, write and read self-describing array files, alone or by all ranks.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use fieldstone::container::{
    self, Container, CreateOptions, Format, Mode, NcType, Selection, VarInfo, VarRef,
};
use fieldstone::{Code, Error, Result, element_count};

use crate::arguments::{FS_MAX_RANK, buffer, bytes, numbers, optional_text, result, text};
use crate::comm::{fs_comm, ranks, refuse};
use crate::handles::{find, fs_container, give, take};
use crate::status::call;

/// The element types of containers.
const TYPES: [(&str, NcType); 11] = [
    ("i1", NcType::Byte),
    ("S1", NcType::Char),
    ("i2", NcType::Short),
    ("i4", NcType::Int),
    ("f4", NcType::Float),
    ("f8", NcType::Double),
    ("u1", NcType::UByte),
    ("u2", NcType::UShort),
    ("u4", NcType::UInt),
    ("i8", NcType::Int64),
    ("u8", NcType::UInt64),
];

/// As a dimension's length: the record dimension, which grows.
pub const FS_RECORD: u64 = u64::MAX;

/// As the variable of an attribute: the container itself.
pub const FS_GLOBAL: u32 = u32::MAX;

/// Creates a container, in define mode. `format` is "cdf1", "cdf2", "cdf5" (or null) or "partitioned".
/// Collective over `comm` unless that is null. An existing file of that path is replaced only by
/// fs_container_sync or fs_container_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_create(
    path: *const c_char,
    format: *const c_char,
    comm: *const fs_comm,
    container: *mut *mut fs_container,
) -> c_int {
    call(|| {
        crate::log::start();
        // SAFETY: the caller passes null or a place for the handle.
        let container = unsafe { result(container, std::ptr::null_mut(), "place for the container") };
        // SAFETY: the caller passes a table of functions or null.
        let comm = unsafe { ranks(comm) }?;
        let given = || -> Result<_> {
            let container = container?;
            // SAFETY: the caller passes texts that end in a zero byte, or null.
            let (path, format) = unsafe { (text(path, "path")?, optional_text(format, "format")?) };
            let format = Format::parse(format.unwrap_or("cdf5"))?;
            Ok((container, path, CreateOptions { format, ..CreateOptions::default() }))
        };
        let (container, path, options) = given().or_else(|error| refuse(comm.as_ref(), "create", error))?;
        *container = give(Arc::new(container::create(Path::new(path), comm, &options)?));
        Ok(())
    })
}

/// Opens a container, in data mode: for reading with `mode` "r" (or null), for reading and writing with "a".
/// Collective over `comm` unless that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_open(
    path: *const c_char,
    mode: *const c_char,
    comm: *const fs_comm,
    container: *mut *mut fs_container,
) -> c_int {
    call(|| {
        crate::log::start();
        // SAFETY: the caller passes null or a place for the handle.
        let container = unsafe { result(container, std::ptr::null_mut(), "place for the container") };
        // SAFETY: the caller passes a table of functions or null.
        let comm = unsafe { ranks(comm) }?;
        let given = || -> Result<_> {
            let container = container?;
            // SAFETY: the caller passes texts that end in a zero byte, or null.
            let (path, mode) = unsafe { (text(path, "path")?, optional_text(mode, "mode")?) };
            match mode.unwrap_or("r") {
                "r" => Ok((container, path, Mode::Read)),
                "a" => Ok((container, path, Mode::Append)),
                other => Err(Code::Option.error(format!("'{other}' is not a mode: give r or a"))),
            }
        };
        let (container, path, mode) = given().or_else(|error| refuse(comm.as_ref(), "open", error))?;
        *container = give(Arc::new(container::open(Path::new(path), mode, comm)?));
        Ok(())
    })
}

/// Defines a dimension on this rank; the length FS_RECORD makes it the record dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_def_dim(
    container: *mut fs_container,
    path: *const c_char,
    length: u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let path = unsafe { text(path, "path") }?;
        find(container)?.define().dim(path, (length != FS_RECORD).then_some(length)).map(drop)
    })
}

/// Defines a variable on this rank, of `ndim` dimensions. Each dimension is looked up in the variable's own
/// path and then in each enclosing one. Sets `var` (may be null) to the variable's number, which
/// fs_container_put_att takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_def_var(
    container: *mut fs_container,
    path: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    dims: *const *const c_char,
    var: *mut u32,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let (path, ty) = unsafe { (text(path, "path")?, nc_type(dtype)?) };
        let count = usize::try_from(ndim).ok().filter(|ndim| *ndim <= FS_MAX_RANK);
        let count = count.ok_or_else(|| Code::Shape.error(format!("a variable of {ndim} dimensions")))?;
        if count > 0 && (dims.is_null() || !dims.is_aligned()) {
            return Err(Code::Argument.error("the list of dimensions is null or not aligned"));
        }
        // SAFETY: not null, aligned, and the caller promises that `ndim` texts are there.
        let name = |n| unsafe { text(*dims.add(n), "name of a dimension") };
        let names = (0..count).map(name).collect::<Result<Vec<_>>>()?;
        let defined = find(container)?.define().var(path, ty, &names)?;
        if !var.is_null() {
            // SAFETY: not null, and the caller passes a place for a number.
            *unsafe { result(var, 0, "place for the variable") }? = defined.0;
        }
        Ok(())
    })
}

/// Writes an attribute of a variable, by its number, or with FS_GLOBAL of the container: `count` values of a
/// type. Text has the type "S1".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_put_att(
    container: *mut fs_container,
    var: u32,
    name: *const c_char,
    dtype: *const c_char,
    count: usize,
    values: *const c_void,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let (name, ty) = unsafe { (text(name, "name")?, nc_type(dtype)?) };
        let length = count.checked_mul(ty.size()).ok_or_else(|| Error::invalid("too many values"))?;
        // SAFETY: the caller passes that many values.
        let mut values = unsafe { bytes(values, length, "values") }?.to_vec();
        if cfg!(target_endian = "little") {
            values.chunks_exact_mut(ty.size()).for_each(<[u8]>::reverse);
        }
        let var = (var != FS_GLOBAL).then_some(VarRef(var));
        find(container)?.define().put_att(var, name, ty, &values)
    })
}

/// Collective: ends define mode. All ranks agree on the header and write it. FS_CONFLICT if definitions of
/// one name differ: the message names the object, the difference and the ranks.
#[unsafe(no_mangle)]
pub extern "C" fn fs_container_enddef(container: *mut fs_container) -> c_int {
    call(|| find(container)?.enddef().map(drop))
}

/// Collective: returns to define mode.
#[unsafe(no_mangle)]
pub extern "C" fn fs_container_redef(container: *mut fs_container) -> c_int {
    call(|| find(container)?.redef())
}

/// Writes the box `start`, `count` of a variable; if `stride` is not null, only every `stride`-th element of
/// each dimension. `data` holds elements of type `dtype`, which are converted by netCDF's rules. If
/// `collective` is not 0, all ranks call it, each for its own box.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_put(
    container: *mut fs_container,
    path: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    stride: *const u64,
    data: *const c_void,
    collective: c_int,
) -> c_int {
    call(|| {
        let container = find(container)?;
        let asked = || {
            // SAFETY: the caller passes texts, `ndim` numbers in each list or null, and data of that many
            // elements.
            unsafe {
                let (var, ty, selection, length) =
                    selected(&container, path, dtype, (ndim, start, count, stride))?;
                Ok((var, ty, selection, bytes(data, length, "data")?))
            }
        };
        match asked() {
            Ok((var, ty, selection, data)) => {
                container.elements().put(&var, &selection, data, ty, collective != 0)
            }
            Err(error) => refused(&container, error, collective),
        }
    })
}

/// Reads the box `start`, `count` of a variable into `data`; the arguments are those of fs_container_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_get(
    container: *mut fs_container,
    path: *const c_char,
    dtype: *const c_char,
    ndim: c_int,
    start: *const u64,
    count: *const u64,
    stride: *const u64,
    data: *mut c_void,
    collective: c_int,
) -> c_int {
    call(|| {
        let container = find(container)?;
        let asked = || {
            // SAFETY: as in `fs_container_put`; the caller owns the memory that is filled.
            unsafe {
                let (var, ty, selection, length) =
                    selected(&container, path, dtype, (ndim, start, count, stride))?;
                Ok((var, ty, selection, buffer(data, length)?))
            }
        };
        match asked() {
            Ok((var, ty, selection, data)) => {
                container.elements().get(&var, &selection, data, ty, collective != 0)
            }
            Err(error) => refused(&container, error, collective),
        }
    })
}

/// Counts the dimensions, variables, global attributes and records of a container in data mode; the number of
/// records is the one that this rank knows. Each place may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_inq(
    container: *mut fs_container,
    dims: *mut u64,
    vars: *mut u64,
    attrs: *mut u64,
    records: *mut u64,
) -> c_int {
    call(|| {
        let container = find(container)?;
        let counts = container.metadata()?.counts()?;
        let values = [counts.dims, counts.vars, counts.attrs, container.numrecs()?];
        for (place, value) in [dims, vars, attrs, records].into_iter().zip(values) {
            if !place.is_null() {
                // SAFETY: not null, and the caller passes a place for a number.
                *unsafe { result(place, 0, "place for a count") }? = value;
            }
        }
        Ok(())
    })
}

/// Gets the number of dimensions of a variable, and their lengths in `shape`, which has room for FS_MAX_RANK.
/// FS_NOT_FOUND if no variable has that path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_container_inq_var(
    container: *mut fs_container,
    path: *const c_char,
    ndim: *mut c_int,
    shape: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for a number.
        let ndim = unsafe { result(ndim, 0, "place for the number of dimensions") }?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let var = find(container)?.var(unsafe { text(path, "path") }?)?;
        let lengths = var.shape();
        if lengths.len() > FS_MAX_RANK {
            return Err(Code::Box.error(format!("{} has {} dimensions", var.name, lengths.len())));
        }
        for (n, length) in lengths.iter().enumerate() {
            // SAFETY: the caller passes room for FS_MAX_RANK numbers; `result` refuses null.
            *unsafe { result(shape.wrapping_add(n), 0, "place for the shape") }? = *length;
        }
        *ndim = lengths.len() as c_int;
        Ok(())
    })
}

/// Collective: makes the writes of all ranks durable, and readable by every rank.
#[unsafe(no_mangle)]
pub extern "C" fn fs_container_sync(container: *mut fs_container) -> c_int {
    call(|| find(container)?.sync())
}

/// Collective: finishes and closes the container. The handle is closed even if this fails. Does nothing with
/// null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_container_close(container: *mut fs_container) -> c_int {
    call(|| {
        if container.is_null() {
            return Ok(());
        }
        let container = take(container)?;
        // The handle is gone, so no later call can finish the container: if it is still in define mode, all
        // ranks abort it.
        container.close().inspect_err(|error| container.abort(Some(error.replicate())))
    })
}

/// Reports an argument that this rank refused: in a collective call all ranks get the error, and the
/// container goes on.
fn refused(container: &Container, error: Error, collective: c_int) -> Result<()> {
    match collective {
        0 => Err(error),
        _ => Err(container.fail(error)),
    }
}

/// The container type for a dtype.
///
/// # Safety
/// As for [`text`].
unsafe fn nc_type(dtype: *const c_char) -> Result<NcType> {
    // SAFETY: the caller's promise is the same.
    let dtype = unsafe { text(dtype, "dtype") }?;
    let found = TYPES.iter().find(|(name, _)| *name == dtype).map(|(_, ty)| *ty);
    found.ok_or_else(|| {
        let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        Code::Dtype
            .error(format!("'{dtype}' is not an element type of containers"))
            .with_hint(format!("types are {}", names.join(", ")))
    })
}

/// The selection of a call: variable, memory type, box, bytes of the data.
///
/// # Safety
/// Texts end in a zero byte or are null; lists are null or have `ndim` numbers.
unsafe fn selected(
    container: &Container,
    path: *const c_char,
    dtype: *const c_char,
    (ndim, start, count, stride): (c_int, *const u64, *const u64, *const u64),
) -> Result<(VarInfo, NcType, Selection, usize)> {
    // SAFETY: the caller's promise is the same.
    let (path, ty) = unsafe { (text(path, "path")?, nc_type(dtype)?) };
    // SAFETY: as above.
    let (start, count) = unsafe { (numbers(start, ndim, "start")?, numbers(count, ndim, "count")?) };
    let mut selection = Selection::of(start, count);
    if !stride.is_null() {
        // SAFETY: as above, and it is not null.
        selection = selection.strided(unsafe { numbers(stride, ndim, "stride") }?);
    }
    let length = element_count(count)?.checked_mul(ty.size() as u64);
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or_else(|| Code::Box.error(format!("a box of {count:?} does not fit memory")))?;
    Ok((container.var(path)?, ty, selection, length))
}
