//! Distributed arrays: jobs, whose ranks declare groups of sets and make them durable together.
//!
//! * here: jobs, and what groups are declared with; `views`: which part of a set is a rank's; `group`: writes and reads;
//!   `elements`: memory of a caller, at any strides;
//! * all calls on jobs and groups but those on views and reports are collective: an argument that is wrong on one rank is
//!   an error on all, and the job goes on.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

use fieldstone::arrays::{
    ArrayGroup, ArrayJob, GroupOptions, JobOptions, LevelChoice, Method, Phase, SetOptions,
};
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{ArrayLayout, StorageOrder};
use fieldstone::{Code, DType, DTypeKind, Error, Result};

use crate::arguments::{
    FS_MAX_RANK, bytes, copy_text, count, dtype as element_type, items, optional_text, result, text,
};
use crate::comm::{fs_comm, ranks, refuse};
use crate::handles::{find, fs_arrays, fs_group, fs_store, give, lock, take};
use crate::job::OpenJob;
use crate::status::call;

/// As the first extent of a set's shape: another one at each step, the sum of what the ranks hold.
pub const FS_VARYING: u64 = u64::MAX;

/// How a job is opened; equal on all ranks. All zeros and nulls are what a null pointer is.
#[repr(C)]
pub struct fs_arrays_options {
    /// The project within which the run's name is unique; null for none.
    pub project: *const c_char,
    /// How many ranks write in an exchange; 0: all.
    pub writers: usize,
    /// How many ranks read in an exchange; 0: all.
    pub readers: usize,
    /// Bytes that a rank may use for moving elements; 0: 64 MiB.
    pub buffer: usize,
    /// Where arrays lie: "files" (also where null), netCDF files that belong to the store; "fields", the store's own logs.
    pub layout: *const c_char,
}

/// An attribute: `count` values of a type, or of type "S1" a text of as many bytes.
#[repr(C)]
pub struct fs_attr {
    /// Its name.
    pub name: *const c_char,
    /// Type of its values.
    pub dtype: *const c_char,
    /// How many there are.
    pub count: usize,
    /// The values.
    pub values: *const c_void,
}

/// A set of a group: what is equal at all its steps.
#[repr(C)]
pub struct fs_set {
    /// Its name: the variable of the run.
    pub name: *const c_char,
    /// Type of its elements.
    pub dtype: *const c_char,
    /// How many dimensions it has.
    pub ndim: c_int,
    /// Global extents; the first may be FS_VARYING.
    pub shape: *const u64,
    /// Names of its dimensions; null where none has one, and so may each be.
    pub dims: *const *const c_char,
    /// One element: what stands where nobody writes; null for none.
    pub fill: *const c_void,
    /// How many attributes it has.
    pub nattrs: c_int,
    /// Its attributes.
    pub attrs: *const fs_attr,
}

/// What a group is declared with beside its sets. All zeros and nulls are what a null pointer is.
#[repr(C)]
pub struct fs_group_options {
    /// 1: a file per set and step; 2: per set; 3: per group; 0: by the measured cost of an open.
    pub level: c_int,
    /// How elements go to files: "direct", "exchange", "view"; "auto", or null, by the views.
    pub method: *const c_char,
    /// "C" (also where null): the last dimension varies fastest, in files and where no strides are given in memory;
    /// "F": the first one does, and programs in C and Python that get the field see its dimensions in reverse.
    pub order: *const c_char,
    /// How many attributes it has.
    pub nattrs: c_int,
    /// Its attributes.
    pub attrs: *const fs_attr,
    /// How many extents `chunks` has: the dimensions of its sets; 0: chosen by size.
    pub nchunks: c_int,
    /// Extents of chunks, where arrays lie in the store's logs.
    pub chunks: *const u64,
    /// Compression of them: "none", "zstd" or "zstd:LEVEL"; null: as the store has it.
    pub compression: *const c_char,
}

/// What this rank of a job has done since it began.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct fs_arrays_counts {
    /// Bytes of elements and indices that it sent to others.
    pub exchanged: u64,
    /// Bytes that it wrote to files.
    pub written: u64,
    /// Bytes that it read from files.
    pub read: u64,
    /// Files that were made or opened.
    pub opened: u64,
    /// Exchanges that were planned.
    pub plans: u64,
    /// Openings of the catalog's engine.
    pub connections: u64,
    /// Seconds for declaring groups, choosing files and looking up places.
    pub plan_seconds: f64,
    /// Seconds for exchanging and writing elements.
    pub write_seconds: f64,
    /// Seconds for making them durable.
    pub sync_seconds: f64,
    /// Seconds for the store's commits.
    pub commit_seconds: f64,
    /// Seconds for reading elements.
    pub read_seconds: f64,
}

/// A handle of a group, which ends with its job.
fn give_group(job: &OpenJob, group: ArrayGroup) -> *mut fs_group {
    let handle: *mut fs_group = give(Arc::new(group));
    lock(&job.groups).push(handle.addr());
    handle
}

fn end_groups(job: &OpenJob) {
    for group in std::mem::take(&mut *lock(&job.groups)) {
        let _ = take(std::ptr::without_provenance::<fs_group>(group));
    }
}

/// Opens a job of a store, which each rank has opened: the run of this name, made or continued; where the name is null
/// a new one. Collective over `comm` where that is not null. `options` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_open(
    store: *mut fs_store,
    name: *const c_char,
    comm: *const fs_comm,
    options: *const fs_arrays_options,
    job: *mut *mut fs_arrays,
) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for the handle.
        let job = unsafe { result(job, std::ptr::null_mut(), "place for the job") };
        // SAFETY: the caller gives a table of functions or null.
        let comm = unsafe { ranks(comm) }?;
        let given = || -> Result<_> {
            let (job, store) = (job?, find(store)?);
            // SAFETY: the caller gives a text that ends in a zero byte, and options, or null.
            let (name, options) = unsafe { (optional_text(name, "name")?, job_options(options)?) };
            Ok((job, store, name, options))
        };
        let (job, store, name, options) = given().or_else(|error| refuse(comm.as_ref(), "job", error))?;
        let opened = ArrayJob::open(&store, comm, name, &options)?;
        *job = give(Arc::new(OpenJob { job: opened, groups: Mutex::default() }));
        Ok(())
    })
}

/// The name of the run, as a text cut to `capacity` bytes with its zero byte; of this rank alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_run(job: *mut fs_arrays, name: *mut c_char, capacity: usize) -> c_int {
    call(|| {
        let run = find(job)?.job.run();
        // SAFETY: the caller gives `capacity` bytes, or null.
        unsafe { copy_text(&run.name().name, name, capacity) }
    })
}

/// Collective: declares a group of `nsets` sets, or takes it where it is there and says the same. FS_CONFLICT where
/// ranks, or an earlier declaration, say otherwise. `options` may be null. The group ends with its job.
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
        // SAFETY: the caller gives null or a place for the handle.
        let group = unsafe { result(group, std::ptr::null_mut(), "place for the group") };
        let given = || -> Result<_> {
            let group = group?;
            // SAFETY: the caller gives a text that ends in a zero byte, `nsets` sets and options, or null.
            Ok((group, unsafe { (text(name, "name of a group")?, declared(nsets, sets, options)?) }))
        };
        match given() {
            Ok((group, (name, options))) => *group = give_group(&job, job.job.group(name, &options)?),
            Err(error) => drop(job.job.group_of("", Err(error))?),
        }
        Ok(())
    })
}

/// Collective: a group as it was declared; FS_NOT_FOUND where there is none of the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_declared_group(
    job: *mut fs_arrays,
    name: *const c_char,
    group: *mut *mut fs_group,
) -> c_int {
    call(|| {
        let job = find(job)?;
        // SAFETY: the caller gives null or a place for the handle.
        let group = unsafe { result(group, std::ptr::null_mut(), "place for the group") };
        // SAFETY: the caller gives a text that ends in a zero byte, or null.
        match group.and_then(|group| Ok((group, unsafe { text(name, "name of a group") }?))) {
            Ok((group, name)) => *group = give_group(&job, job.job.declared_group(name)?),
            Err(error) => drop(job.job.group_of("", Err(error))?),
        }
        Ok(())
    })
}

/// Collective: makes all writes since the last flush durable and visible, or none of them: one commit.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_flush(job: *mut fs_arrays) -> c_int {
    call(|| find(job)?.job.flush())
}

/// Collective: forgets all writes since the last flush.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_discard(job: *mut fs_arrays) -> c_int {
    call(|| find(job)?.job.discard())
}

/// Collective: flushes, and closes all files. The handles of the job and its groups are gone also where this fails.
/// Null is nothing to close. The store stays open.
#[unsafe(no_mangle)]
pub extern "C" fn fs_arrays_close(job: *mut fs_arrays) -> c_int {
    call(|| {
        if job.is_null() {
            return Ok(());
        }
        let job = take(job)?;
        end_groups(&job);
        job.job.close()
    })
}

/// Ends the job on this rank for an error of its own, whatever the others do: in the call that they are in, or come to,
/// they fail with this message. What was not flushed is gone on all ranks; the handles are gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_abandon(job: *mut fs_arrays, message: *const c_char) -> c_int {
    call(|| {
        // SAFETY: the caller gives a text that ends in a zero byte, or null.
        let message = unsafe { text(message, "message") }?;
        let job = take(job)?;
        end_groups(&job);
        job.job.abandon(Code::RankFailed.error(message));
        Ok(())
    })
}

/// What this rank has done so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_arrays_report(job: *mut fs_arrays, counts: *mut fs_arrays_counts) -> c_int {
    call(|| {
        // SAFETY: the caller gives null or a place for the counts.
        let counts = unsafe { result(counts, fs_arrays_counts::default(), "place for the counts") }?;
        let report = find(job)?.job.report();
        let seconds = |phase| report.seconds.get(&phase).copied().unwrap_or(0.0);
        *counts = fs_arrays_counts {
            exchanged: report.exchanged,
            written: report.written,
            read: report.read,
            opened: report.opened,
            plans: report.plans,
            connections: report.connections,
            plan_seconds: seconds(Phase::Plan),
            write_seconds: seconds(Phase::Write),
            sync_seconds: seconds(Phase::Sync),
            commit_seconds: seconds(Phase::Commit),
            read_seconds: seconds(Phase::Read),
        };
        Ok(())
    })
}

/// # Safety
/// `options` is null or leads to options whose texts end in a zero byte or are null.
unsafe fn job_options(options: *const fs_arrays_options) -> Result<JobOptions> {
    let mut chosen = JobOptions::default();
    if options.is_null() {
        return Ok(chosen);
    }
    // SAFETY: not null, and by the caller's promise options.
    let options = unsafe { items(options, 1, "options of a job") }?;
    for given in options {
        // SAFETY: the caller's promise is the same.
        let project = unsafe { optional_text(given.project, "project") }?;
        chosen.project = project.unwrap_or_default().to_owned();
        (chosen.writers, chosen.readers) =
            (Some(given.writers).filter(|n| *n > 0), Some(given.readers).filter(|n| *n > 0));
        if given.buffer > 0 {
            chosen.buffer = given.buffer;
        }
        // SAFETY: as above.
        chosen.layout = match unsafe { optional_text(given.layout, "layout") }?.unwrap_or("files") {
            "files" => ArrayLayout::Files,
            "fields" => ArrayLayout::Fields,
            other => {
                return Err(Code::Option.error(format!("'{other}' is no layout: give files or fields")));
            }
        };
    }
    Ok(chosen)
}

/// # Safety
/// `sets` is null or leads to `nsets` sets, `options` is null or leads to options; what they lead to is null or as they
/// say.
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
    // SAFETY: not null, and by the caller's promise options.
    for given in unsafe { items(options, 1, "options of a group") }? {
        if given.level != 0 {
            let level = u64::try_from(given.level).unwrap_or(u64::MAX);
            group.level = LevelChoice::number(level)
                .map_err(|_| Code::Option.error(format!("{} is no level of a group", given.level)))
                .map_err(|error| {
                    error.with_hint("1: a file per set and step; 2: per set; 3: per group; or 0")
                })?;
        }
        // SAFETY: the caller gives texts that end in a zero byte, or null.
        let (method, order) =
            unsafe { (optional_text(given.method, "method")?, optional_text(given.order, "order")?) };
        group.method = Method::parse(method.unwrap_or("auto"))?;
        group.order = match order.unwrap_or("C") {
            "C" => StorageOrder::C,
            "F" => StorageOrder::Fortran,
            other => return Err(Code::Option.error(format!("'{other}' is no order: give C or F"))),
        };
        // SAFETY: as above.
        group.attrs = unsafe { attributes(given.nattrs, given.attrs) }?;
        let nchunks = count(given.nchunks, "extents of chunks")?;
        if nchunks > 0 {
            // SAFETY: as above.
            group.chunks = Some(unsafe { items(given.chunks, nchunks, "extents of chunks") }?.to_vec());
        }
        // SAFETY: as above.
        group.compression = unsafe { optional_text(given.compression, "compression") }?.map(str::to_owned);
    }
    Ok(group)
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

/// # Safety
/// As for [`declared`].
unsafe fn attributes(nattrs: c_int, attrs: *const fs_attr) -> Result<Vec<(String, Value)>> {
    // SAFETY: the caller's promise is the same.
    let attrs = unsafe { items(attrs, count(nattrs, "attributes")?, "list of attributes") }?;
    let named = |attr: &fs_attr| {
        // SAFETY: as above.
        let (name, dtype) = unsafe { (text(attr.name, "name of an attribute")?, element_type(attr.dtype)?) };
        let length = attr.count.checked_mul(dtype.size()).ok_or_else(|| Error::invalid("too many values"))?;
        // SAFETY: as above.
        let values = unsafe { bytes(attr.values, length, "values of an attribute") }?;
        Ok((name.to_owned(), value(name, dtype, values)?))
    };
    attrs.iter().map(named).collect()
}

/// Values of an attribute, as the catalog has them.
fn value(name: &str, dtype: DType, values: &[u8]) -> Result<Value> {
    if (dtype.kind(), dtype.size()) == (DTypeKind::Bytes, 1) {
        let text = std::str::from_utf8(values);
        let text = text.map_err(|_| Code::Value.error(format!("the attribute {name} is not UTF-8")))?;
        return Ok(Value::Text(text.to_owned()));
    }
    let mut native = values.to_vec();
    if !dtype.is_native() {
        dtype.swap_bytes(&mut native);
    }
    let numbers = native.chunks_exact(dtype.size()).map(|bytes| number(dtype, bytes));
    let mut numbers: Vec<Value> = numbers.collect::<Option<_>>().ok_or_else(|| {
        Code::Dtype
            .error(format!("the attribute {name} has values of {}", dtype.name()))
            .with_hint("give integers, f4, f8, or S1 for a text")
    })?;
    Ok(if numbers.len() == 1 { numbers.remove(0) } else { Value::Array(numbers) })
}

fn number(dtype: DType, bytes: &[u8]) -> Option<Value> {
    let wide = |bytes: &[u8]| -> u64 {
        let byte = |all: u64, byte: &u8| (all << 8) | u64::from(*byte);
        match cfg!(target_endian = "big") {
            true => bytes.iter().fold(0, byte),
            false => bytes.iter().rev().fold(0, byte),
        }
    };
    let bits = wide(bytes);
    let unused = 64_u32.checked_sub(8 * u32::try_from(bytes.len()).ok()?)?;
    match (dtype.kind(), bytes.len()) {
        (DTypeKind::UInt, _) => Some(Value::UInt(bits)),
        (DTypeKind::Int, _) => Some(Value::Int((bits << unused) as i64 >> unused)),
        (DTypeKind::Float, 4) => Some(Value::Float(f64::from(f32::from_bits(u32::try_from(bits).ok()?)))),
        (DTypeKind::Float, 8) => Some(Value::Float(f64::from_bits(bits))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_texts_and_numbers() {
        let of = |dtype: &str, bytes: &[u8]| value("a", DType::parse(dtype).unwrap(), bytes);
        assert_eq!(of("S1", b"mV").unwrap(), Value::Text("mV".into()));
        assert_eq!(of("i2", &(-2_i16).to_ne_bytes()).unwrap(), Value::Int(-2));
        assert_eq!(of(">u4", &7_u32.to_be_bytes()).unwrap(), Value::UInt(7));
        assert_eq!(of("f4", &0.5_f32.to_ne_bytes()).unwrap(), Value::Float(0.5));
        let two = [1_f64.to_ne_bytes(), 2_f64.to_ne_bytes()].concat();
        assert_eq!(of("f8", &two).unwrap(), Value::Array(vec![Value::Float(1.0), Value::Float(2.0)]));
        assert!(of("c8", &[0; 8]).unwrap_err().message().contains("values of"));
        assert!(of("S1", b"\xff").is_err());
    }
}
