//! Outside files that a job reads through views: raw and netCDF files, recorded in the catalog.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use fieldstone::arrays::{FileRead, JobImport, MemoryMut};
use fieldstone::catalog::{ImportedVariable, StorageOrder};
use fieldstone::{Code, DType, Result};

use crate::arguments::{
    FS_MAX_RANK, copy_text, count, dtype as element_type, items, numbers, optional_text, result, text, texts,
};
use crate::declared::storage_order;
use crate::elements::{ElementLayout, GivenLayout};
use crate::handles::{find, fs_arrays, fs_import, fs_view};
use crate::job::OpenFile;
use crate::job_handles::close_import;
use crate::read::FS_DTYPE_SIZE;
use crate::status::call;
use crate::views::optional_view;

/// Size of the name of a file's variable, including its zero byte.
pub const FS_NAME_SIZE: usize = 257;

/// A variable of a raw file; the file itself does not describe it.
#[repr(C)]
pub struct fs_raw_variable {
    /// Its name in the import.
    pub name: *const c_char,
    /// Type of its elements, in the file's byte order: "<i4", ">f8".
    pub dtype: *const c_char,
    /// Position of its first element in the file, in bytes.
    pub offset: u64,
    /// Number of dimensions.
    pub ndim: c_int,
    /// Its extents.
    pub shape: *const u64,
}

/// How to import a file. A null pointer means the same as all zeros and nulls.
#[repr(C)]
pub struct fs_import_options {
    /// Not 0: the import reads the variables once and records their checksum in the catalog.
    pub checksum: c_int,
    /// Order of the dimensions in shapes and views of its variables, and of memory without strides: "C" (or
    /// null), or "F", with the dimensions of the file in reverse.
    pub order: *const c_char,
}

/// A variable of an imported file.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct fs_variable_info {
    /// Its name, cut if it is longer.
    pub name: [c_char; FS_NAME_SIZE],
    /// Type of its elements, in the file's byte order.
    pub dtype: [c_char; FS_DTYPE_SIZE],
    /// Number of dimensions.
    pub ndim: c_int,
    /// Its extents; 0 from `ndim` on.
    pub shape: [u64; FS_MAX_RANK],
}

const NO_VARIABLE: fs_variable_info =
    fs_variable_info { name: [0; FS_NAME_SIZE], dtype: [0; FS_DTYPE_SIZE], ndim: 0, shape: [0; FS_MAX_RANK] };

/// Collective: imports a raw file, with type, position and shape of `nvariables` variables. Reads none of
/// them yet. The catalog records path, size, time and variables. FS_NOT_FOUND if the file does not exist;
/// FS_CORRUPT if it ends before a variable does; FS_CONFLICT if the ranks differ, or if an earlier import of
/// the file does. `options` may be null. The handle ends with its job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_import_raw(
    job: *mut fs_arrays,
    path: *const c_char,
    nvariables: c_int,
    variables: *const fs_raw_variable,
    options: *const fs_import_options,
    import: *mut *mut fs_import,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let import = unsafe { result(import, std::ptr::null_mut(), "place for the import") };
        let given = || -> Result<_> {
            let import = import?;
            // SAFETY: the caller passes texts, options and `nvariables` variables, or null.
            let (path, (checksum, order)) = unsafe { (text(path, "path")?, import_options(options)?) };
            // SAFETY: as above.
            let variables =
                unsafe { items(variables, count(nvariables, "variables")?, "list of variables") }?;
            // SAFETY: as above.
            let variables = variables.iter().map(|one| unsafe { raw_variable(one, order) });
            Ok((import, path, checksum, order, variables.collect::<Result<Vec<_>>>()?))
        };
        match given() {
            Ok((import, path, checksum, order, variables)) => {
                let opened = job.job.import_raw(Path::new(path), Ok(variables), checksum)?;
                *import = job.give_import(opened, order);
                Ok(())
            }
            Err(error) => Err(job.job.refuse("import", error)),
        }
    })
}

/// Collective: imports `nnames` variables of a netCDF classic file, by name; with `nnames` 0 all variables.
/// As fs_arrays_import_raw; FS_INVALID for a netCDF-4 file, which is HDF5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_import_netcdf(
    job: *mut fs_arrays,
    path: *const c_char,
    nnames: c_int,
    names: *const *const c_char,
    options: *const fs_import_options,
    import: *mut *mut fs_import,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let import = unsafe { result(import, std::ptr::null_mut(), "place for the import") };
        let given = || -> Result<_> {
            let import = import?;
            // SAFETY: the caller passes texts, options and `nnames` texts, or null.
            let (path, (checksum, order)) = unsafe { (text(path, "path")?, import_options(options)?) };
            // SAFETY: as above.
            let names = unsafe { texts(names, count(nnames, "names")?, "list of names") }?;
            Ok((import, path, checksum, order, names))
        };
        match given() {
            Ok((import, path, checksum, order, names)) => {
                let opened = job.job.import_netcdf(Path::new(path), &names, checksum)?;
                *import = job.give_import(opened, order);
                Ok(())
            }
            Err(error) => Err(job.job.refuse("import", error)),
        }
    })
}

/// Counts the variables of an import. Not collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_import_count(import: *mut fs_import, count: *mut c_int) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for a number.
        let count = unsafe { result(count, 0, "place for the count") }?;
        let known = find(import)?.with(|import| Ok(import.variables().len()))?;
        *count = c_int::try_from(known).unwrap_or(c_int::MAX);
        Ok(())
    })
}

/// Describes a variable of an import, by its number from 0, in the order of the import's list. Not
/// collective.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_import_variable(
    import: *mut fs_import,
    number: c_int,
    info: *mut fs_variable_info,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the structure.
        let info = unsafe { result(info, NO_VARIABLE, "place for the variable") }?;
        let import = find(import)?;
        let mut all = import.with(|import| Ok(import.variables()))?;
        let number = usize::try_from(number).ok().filter(|number| *number < all.len()).ok_or_else(|| {
            Code::VariableNotFound.error(format!("variable {number} of an import that has {}", all.len()))
        })?;
        let variable = all.swap_remove(number);
        let mut shape = variable.shape;
        if shape.len() > FS_MAX_RANK {
            return Err(Code::Shape.error(format!("a variable of {} dimensions", shape.len())));
        }
        if import.order == StorageOrder::Fortran {
            shape.reverse();
        }
        info.ndim = shape.len() as c_int;
        info.shape[..shape.len()].copy_from_slice(&shape);
        // SAFETY: the caller owns both lists and passed them for this call.
        unsafe {
            copy_text(&variable.name, info.name.as_mut_ptr(), FS_NAME_SIZE)?;
            copy_text(&variable.dtype.to_string(), info.dtype.as_mut_ptr(), FS_DTYPE_SIZE)
        }
    })
}

/// Collective: gets the shape of this rank's part of a variable by a view (null: its share of a balanced cut
/// of the file's first dimension): the number of dimensions, and extents in `shape`, which has room for
/// FS_MAX_RANK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_import_local_shape(
    import: *mut fs_import,
    name: *const c_char,
    view: *mut fs_view,
    ndim: *mut c_int,
    shape: *mut u64,
) -> c_int {
    call(|| {
        let import = find(import)?;
        // SAFETY: the caller passes a text, a place for a number and room for FS_MAX_RANK, or null.
        let given = unsafe { shape_place(ndim, shape) }.and_then(|place| {
            // SAFETY: as above.
            Ok((place, optional_view(view)?, unsafe { text(name, "name of a variable") }?))
        });
        let (place, view, name) = given.map_err(|error| import.owner.job.refuse("import", error))?;
        let begun = import.with(|file| file.begin_read_in(name, view.as_deref(), import.order))?;
        place.set(begun.local_shape())
    })
}

/// Collective: reads this rank's part of a variable by a view (null: its share of a balanced cut of the
/// file's first dimension) into `data`. `dtype` is the type of the data, in either byte order (null: the
/// variable's type, in this machine's byte order). `shape`, `strides` and `ndim` are those of fs_group_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_import_read(
    import: *mut fs_import,
    name: *const c_char,
    view: *mut fs_view,
    dtype: *const c_char,
    ndim: c_int,
    shape: *const u64,
    strides: *const i64,
    data: *mut c_void,
) -> c_int {
    call(|| {
        let import = find(import)?;
        let given = optional_view(view).and_then(|view| {
            // SAFETY: the caller passes a text that ends in a zero byte, or null.
            Ok((view, unsafe { text(name, "name of a variable") }?))
        });
        let (view, name) = given.map_err(|error| import.owner.job.refuse("import", error))?;
        let given = (dtype, GivenLayout { ndim, shape, strides });
        // SAFETY: the caller passes lists and data as the arguments say, or null.
        unsafe {
            read_file(
                &import,
                |file, order| file.begin_read_in(name, view.as_deref(), order),
                given,
                data,
                |file: &JobImport, begun, memory| file.read(begun, memory).map(drop),
            )
        }
    })
}

/// Collective: closes the file. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_import_close(import: *mut fs_import) -> c_int {
    call(|| close_import(import))
}

/// The place for a shape.
pub struct ShapePlace<'a> {
    ndim: &'a mut c_int,
    shape: *mut u64,
}

/// # Safety
/// `ndim` is null or leads to a number, and `shape` is null or leads to FS_MAX_RANK of them. No other code
/// uses them while the place exists.
pub unsafe fn shape_place<'a>(ndim: *mut c_int, shape: *mut u64) -> Result<ShapePlace<'a>> {
    // SAFETY: the caller's promise is the same.
    let ndim = unsafe { result(ndim, 0, "place for the number of dimensions") }?;
    // SAFETY: as above: one of those numbers.
    unsafe { result(shape, 0, "place for the shape") }?;
    Ok(ShapePlace { ndim, shape })
}

impl ShapePlace<'_> {
    pub fn set(self, local: &[u64]) -> Result<()> {
        if local.len() > FS_MAX_RANK {
            return Err(Code::Shape.error(format!("a part of {} dimensions", local.len())));
        }
        for (n, extent) in local.iter().enumerate() {
            // SAFETY: by the promise of `shape_place` there are FS_MAX_RANK numbers.
            *unsafe { result(self.shape.wrapping_add(n), 0, "place for the shape") }? = *extent;
        }
        *self.ndim = local.len() as c_int;
        Ok(())
    }
}

/// Collective: reads a part of a file into a caller's data; `begin` begins the read.
///
/// # Safety
/// The type is null or a text that ends in a zero byte. The lists of the layout are null or as long as it
/// says. The data are null, or have that layout and no other code uses them during the call.
pub unsafe fn read_file<T>(
    file: &Arc<OpenFile<T>>,
    begin: impl FnOnce(&T, StorageOrder) -> Result<FileRead>,
    (dtype, given): (*const c_char, GivenLayout),
    data: *mut c_void,
    read: impl FnOnce(&T, &FileRead, Result<MemoryMut<'_>>) -> Result<()>,
) -> Result<()> {
    file.with(|open| {
        let begun = begin(open, file.order)?;
        // SAFETY: the caller's promise is the same.
        let layout = unsafe { dtype_or(dtype, begun.dtype()) }
            // SAFETY: as above.
            .and_then(|dtype| unsafe { ElementLayout::new(file.order, dtype, begun.local_shape(), given) });
        let memory = match &layout {
            // SAFETY: as above.
            Ok(layout) => unsafe { layout.memory_mut(data) },
            Err(error) => Err(error.replicate()),
        };
        read(open, &begun, memory)
    })
}

/// # Safety
/// As for [`text`].
unsafe fn dtype_or(given: *const c_char, known: DType) -> Result<DType> {
    match given.is_null() {
        true => Ok(known),
        // SAFETY: the caller's promise is the same.
        false => unsafe { element_type(given) },
    }
}

/// Whether to compute a checksum, and the order.
///
/// # Safety
/// `options` is null or leads to options whose text ends in a zero byte or is null.
unsafe fn import_options(options: *const fs_import_options) -> Result<(bool, StorageOrder)> {
    if options.is_null() {
        return Ok((false, StorageOrder::C));
    }
    // SAFETY: not null, and the caller promises that it leads to options.
    let given = unsafe { items(options, 1, "options of an import") }?;
    let one = |given: &fs_import_options| -> Result<_> {
        // SAFETY: the caller's promise is the same.
        let order = unsafe { optional_text(given.order, "order") }?;
        Ok((given.checksum != 0, storage_order(order)?))
    };
    given.iter().map(one).next().unwrap_or(Ok((false, StorageOrder::C)))
}

/// # Safety
/// The texts end in a zero byte. The shape is null or has `ndim` numbers.
unsafe fn raw_variable(given: &fs_raw_variable, order: StorageOrder) -> Result<ImportedVariable> {
    // SAFETY: the caller's promise is the same.
    let (name, dtype) = unsafe { (text(given.name, "name of a variable")?, element_type(given.dtype)?) };
    // SAFETY: as above.
    let mut shape = unsafe { numbers(given.shape, given.ndim, "shape of a variable") }?.to_vec();
    if order == StorageOrder::Fortran {
        shape.reverse();
    }
    Ok(ImportedVariable { name: name.to_owned(), dtype, offset: given.offset, shape })
}
