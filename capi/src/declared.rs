//! Declarations of a job's groups.

use std::ffi::{c_char, c_int, c_void};

use fieldstone::arrays::{GroupOptions, LevelChoice, Method, SetOptions};
use fieldstone::catalog::{MeshLocation, StorageOrder};
use fieldstone::{Code, Result};

use crate::arguments::{
    FS_MAX_RANK, bytes, count, dtype as element_type, items, optional_text, result, text,
};
use crate::attributes::{attributes, fs_attr, fs_hint, hints};
use crate::handles::{find, fs_arrays, fs_group};
use crate::status::call;

/// As the first extent of a set's shape: the extent differs from step to step and is the sum over all ranks.
pub const FS_VARYING: u64 = u64::MAX;

/// A set of a group: its properties that are equal at all steps.
#[repr(C)]
pub struct fs_set {
    /// Its name: the variable of the run.
    pub name: *const c_char,
    /// Type of its elements.
    pub dtype: *const c_char,
    /// Number of dimensions.
    pub ndim: c_int,
    /// Global extents; the first may be FS_VARYING.
    pub shape: *const u64,
    /// Names of its dimensions; null if none has a name. Each entry may be null, too.
    pub dims: *const *const c_char,
    /// One element: the value of unwritten elements; null for none.
    pub fill: *const c_void,
    /// Number of attributes.
    pub nattrs: c_int,
    /// Its attributes.
    pub attrs: *const fs_attr,
}

/// Options of a group. A null pointer means the same as all zeros and nulls.
#[repr(C)]
pub struct fs_group_options {
    /// 1: a file for each set and step; 2: for each set; 3: for each group; 0: chosen by the measured cost of
    /// opening a file.
    pub level: c_int,
    /// How elements get to files: "direct", "exchange", "view"; "auto" (or null) chooses by the views.
    pub method: *const c_char,
    /// "C" (or null): the last dimension varies fastest, in files and in memory without strides. "F": the
    /// first one does; C and Python programs see the dimensions of the field in reverse.
    pub order: *const c_char,
    /// Number of attributes.
    pub nattrs: c_int,
    /// Attributes of all its sets and of its files; an attribute of a set overrides one of the same name
    /// here.
    pub attrs: *const fs_attr,
    /// Number of extents in `chunks`: the dimensions of its sets; 0: chosen by size.
    pub nchunks: c_int,
    /// Extents of chunks, for arrays in the store's logs.
    pub chunks: *const u64,
    /// Compression of chunks: "none", "zstd" or "zstd:LEVEL"; null: the store's default.
    pub compression: *const c_char,
    /// The mesh of the store to which its sets belong; null for none. The mesh gives the first extent of
    /// their shape and its dimension; with `ndim` 0 that is the whole shape.
    pub mesh: *const c_char,
    /// Location on the mesh: "node", "edge", "face" or "volume".
    pub location: *const c_char,
    /// Number of hints.
    pub nhints: c_int,
    /// Hints for opening its files, in addition to those of the job; fs_group_why names the hints that had no
    /// effect.
    pub hints: *const fs_hint,
}

/// Collective: declares a group of `nsets` sets, or opens a declared one. Sets that the group lacks are added
/// to it, even if it is open. FS_CONFLICT if the ranks differ, or if an earlier declaration does. `options`
/// may be null. The handle ends with its job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_group(
    job: *mut fs_arrays,
    name: *const c_char,
    nsets: c_int,
    sets: *const fs_set,
    options: *const fs_group_options,
    group: *mut *mut fs_group,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let group = unsafe { result(group, std::ptr::null_mut(), "place for the group") };
        let given = || -> Result<_> {
            let group = group?;
            // SAFETY: the caller passes a text that ends in a zero byte, `nsets` sets and options, or null.
            Ok((group, unsafe { (text(name, "name of a group")?, declared(nsets, sets, options)?) }))
        };
        match given() {
            Ok((group, (name, options))) => *group = job.give_group(job.job.group(name, &options)?),
            Err(error) => return Err(job.job.refuse("group", error)),
        }
        Ok(())
    })
}

/// Collective: opens a declared group; FS_NOT_FOUND if no group has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_declared_group(
    job: *mut fs_arrays,
    name: *const c_char,
    group: *mut *mut fs_group,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller passes null or a place for the handle.
        let group = unsafe { result(group, std::ptr::null_mut(), "place for the group") };
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        match group.and_then(|group| Ok((group, unsafe { text(name, "name of a group") }?))) {
            Ok((group, name)) => *group = job.give_group(job.job.declared_group(name)?),
            Err(error) => return Err(job.job.refuse("group", error)),
        }
        Ok(())
    })
}

/// # Safety
/// `sets` is null or leads to `nsets` sets; `options` is null or leads to options. Their pointers are null or
/// lead to what their documentation says.
unsafe fn declared(
    nsets: c_int,
    sets: *const fs_set,
    options: *const fs_group_options,
) -> Result<GroupOptions> {
    // SAFETY: the caller's promise is the same.
    let sets = unsafe { items(sets, count(nsets, "sets")?, "list of sets") }?;
    if sets.is_empty() {
        return Err(Code::Argument.error("a group without sets"));
    }
    // SAFETY: as above.
    let sets = sets.iter().map(|set| unsafe { set_options(set) }).collect::<Result<Vec<_>>>()?;
    let mut group = GroupOptions::new(sets);
    if options.is_null() {
        return Ok(group);
    }
    // SAFETY: not null, and the caller promises that it leads to options.
    for given in unsafe { items(options, 1, "options of a group") }? {
        if given.level != 0 {
            let level = u64::try_from(given.level);
            let level = level.map_err(|_| Code::Option.error(format!("the level is {}", given.level)));
            group.level = level.and_then(LevelChoice::number).map_err(|error| {
                error.with_hint("give 1 for a file per set and step, 2 per set, 3 per group, or 0")
            })?;
        }
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let (method, order) =
            unsafe { (optional_text(given.method, "method")?, optional_text(given.order, "order")?) };
        group.method = Method::parse(method.unwrap_or("auto"))?;
        group.order = storage_order(order)?;
        // SAFETY: as above.
        group.attrs = unsafe { attributes(given.nattrs, given.attrs) }?;
        let nchunks = count(given.nchunks, "extents of chunks")?;
        if nchunks > 0 {
            // SAFETY: as above.
            group.chunks = Some(unsafe { items(given.chunks, nchunks, "extents of chunks") }?.to_vec());
        }
        // SAFETY: as above.
        group.compression = unsafe { optional_text(given.compression, "compression") }?.map(str::to_owned);
        // SAFETY: as above.
        let (mesh, location) =
            unsafe { (optional_text(given.mesh, "mesh")?, optional_text(given.location, "location")?) };
        (group.mesh, group.location) = (mesh.map(str::to_owned), location.map(location_of).transpose()?);
        // SAFETY: as above.
        group.hints = unsafe { hints(given.nhints, given.hints) }?;
    }
    Ok(group)
}

fn location_of(word: &str) -> Result<MeshLocation> {
    let all = [MeshLocation::Node, MeshLocation::Edge, MeshLocation::Face, MeshLocation::Volume];
    all.into_iter().find(|location| location.name() == word).ok_or_else(|| {
        let error = Code::Option.error(format!("'{word}' is not a location on a mesh"));
        error.with_hint("give node, edge, face or volume")
    })
}

/// The order for a word; C if there is none.
pub fn storage_order(word: Option<&str>) -> Result<StorageOrder> {
    match word.unwrap_or("C") {
        "C" => Ok(StorageOrder::C),
        "F" => Ok(StorageOrder::Fortran),
        other => Err(Code::Option.error(format!("'{other}' is not an order: give C or F"))),
    }
}

/// # Safety
/// As for [`declared`].
unsafe fn set_options(set: &fs_set) -> Result<SetOptions> {
    // SAFETY: the caller's promise is the same.
    let (name, dtype) = unsafe { (text(set.name, "name of a set")?, element_type(set.dtype)?) };
    let ndim = count(set.ndim, "dimensions")?;
    if ndim > FS_MAX_RANK {
        return Err(Code::Shape.error(format!("set {name}: {ndim} dimensions; {FS_MAX_RANK} are possible")));
    }
    // SAFETY: as above.
    let shape = unsafe { items(set.shape, ndim, "shape of a set") }?;
    let mut dims = Vec::new();
    if !set.dims.is_null() {
        // SAFETY: as above, and it is not null.
        for dim in unsafe { items(set.dims, ndim, "list of dimensions") }? {
            // SAFETY: as above.
            dims.push(unsafe { optional_text(*dim, "name of a dimension") }?.map(str::to_owned));
        }
    }
    let fill = match set.fill.is_null() {
        true => None,
        // SAFETY: as above, and it is not null.
        false => Some(unsafe { bytes(set.fill, dtype.size(), "fill") }?.to_vec()),
    };
    let fill = fill.map(|mut fill| {
        if !dtype.is_native() {
            dtype.swap_bytes(&mut fill);
        }
        fill
    });
    Ok(SetOptions {
        name: name.to_owned(),
        dtype: dtype.to_native(),
        shape: shape.iter().map(|extent| Some(*extent).filter(|extent| *extent != FS_VARYING)).collect(),
        dims,
        // SAFETY: as above.
        attrs: unsafe { attributes(set.nattrs, set.attrs) }?,
        fill,
    })
}
