//! Handles: the values that a caller holds in place of our objects.
//!
//! A handle looks like a pointer but is a number from a table. Calls look it up and never follow it, and no
//! number is used twice, so a null, closed, mistaken or invented handle is detected. If one thread closes a
//! handle that another is using, the object lives until that call returns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use fieldstone::arrays::{ArrayGroup, JobImport, JobMesh, View};
use fieldstone::container::Container;
use fieldstone::{Code, Error, Result};

use crate::job::{OpenFile, OpenJob, OpenPartition};
use crate::open::{KeyBuilder, OpenList};

/// An open store.
pub struct fs_store {
    _opaque: [u8; 0],
}

/// A key under construction.
pub struct fs_key {
    _opaque: [u8; 0],
}

/// A list that a caller reads.
pub struct fs_list {
    _opaque: [u8; 0],
}

/// An open container.
pub struct fs_container {
    _opaque: [u8; 0],
}

/// A job: the ranks that write and read groups of arrays together.
pub struct fs_arrays {
    _opaque: [u8; 0],
}

/// A group of a job.
pub struct fs_group {
    _opaque: [u8; 0],
}

/// The part of an array that a rank holds.
pub struct fs_view {
    _opaque: [u8; 0],
}

/// An outside file that all ranks of a job have open.
pub struct fs_import {
    _opaque: [u8; 0],
}

/// An unstructured mesh that all ranks of a job have open.
pub struct fs_mesh {
    _opaque: [u8; 0],
}

/// A rank's part of an unstructured mesh.
pub struct fs_partition {
    _opaque: [u8; 0],
}

/// A type of handle.
pub trait Handle: Sized + 'static {
    /// The type of the objects.
    type Target: ?Sized + Send + Sync;
    /// The type's name in C.
    const NAME: &str;
    /// The handles of this type that are open.
    fn table() -> &'static Table<Self::Target>;
}

impl Handle for fs_store {
    type Target = fieldstone::Store;
    const NAME: &str = "fs_store";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<fieldstone::Store> = Table::new();
        &TABLE
    }
}

impl Handle for fs_key {
    type Target = Mutex<KeyBuilder>;
    const NAME: &str = "fs_key";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<Mutex<KeyBuilder>> = Table::new();
        &TABLE
    }
}

impl Handle for fs_list {
    type Target = Mutex<OpenList>;
    const NAME: &str = "fs_list";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<Mutex<OpenList>> = Table::new();
        &TABLE
    }
}

impl Handle for fs_container {
    type Target = Container;
    const NAME: &str = "fs_container";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<Container> = Table::new();
        &TABLE
    }
}

impl Handle for fs_arrays {
    type Target = OpenJob;
    const NAME: &str = "fs_arrays";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<OpenJob> = Table::new();
        &TABLE
    }
}

impl Handle for fs_group {
    type Target = ArrayGroup;
    const NAME: &str = "fs_group";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<ArrayGroup> = Table::new();
        &TABLE
    }
}

impl Handle for fs_view {
    type Target = View;
    const NAME: &str = "fs_view";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<View> = Table::new();
        &TABLE
    }
}

impl Handle for fs_import {
    type Target = OpenFile<JobImport>;
    const NAME: &str = "fs_import";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<OpenFile<JobImport>> = Table::new();
        &TABLE
    }
}

impl Handle for fs_mesh {
    type Target = OpenFile<JobMesh>;
    const NAME: &str = "fs_mesh";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<OpenFile<JobMesh>> = Table::new();
        &TABLE
    }
}

impl Handle for fs_partition {
    type Target = OpenPartition;
    const NAME: &str = "fs_partition";
    fn table() -> &'static Table<Self::Target> {
        static TABLE: Table<OpenPartition> = Table::new();
        &TABLE
    }
}

/// The open handles of one type.
pub struct Table<T: ?Sized>(RwLock<BTreeMap<usize, Arc<T>>>);

impl<T: ?Sized> Table<T> {
    const fn new() -> Table<T> {
        Table(RwLock::new(BTreeMap::new()))
    }
}

/// The next number for all types together, so that a handle of one type is never valid for another. It begins
/// where small numbers and leftovers in freed memory are unlikely to hit, and steps like an aligned pointer.
static NEXT: AtomicUsize = AtomicUsize::new(0x4653_0010);
const STEP: usize = 16;

/// Makes a new handle for an object.
pub fn give<H: Handle>(object: Arc<H::Target>) -> *mut H {
    let number = NEXT.fetch_add(STEP, Ordering::Relaxed);
    H::table().0.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
    std::ptr::without_provenance_mut(number)
}

/// The object of a handle.
pub fn find<H: Handle>(handle: *const H) -> Result<Arc<H::Target>> {
    let table = H::table().0.read().unwrap_or_else(PoisonError::into_inner);
    table.get(&handle.addr()).cloned().ok_or_else(|| unknown(handle))
}

/// Closes a handle; the object lives while a call still uses it.
pub fn take<H: Handle>(handle: *const H) -> Result<Arc<H::Target>> {
    let mut table = H::table().0.write().unwrap_or_else(PoisonError::into_inner);
    table.remove(&handle.addr()).ok_or_else(|| unknown(handle))
}

fn unknown<H: Handle>(handle: *const H) -> Error {
    let name = H::NAME;
    if handle.is_null() {
        return Code::Argument
            .error(format!("the {name} handle is null"))
            .with_hint("check the status of the call that should have made it");
    }
    Code::Argument
        .error(format!("{handle:p} is not an open {name} handle"))
        .with_hint("the handle was closed already, was never set, or has another type")
}

/// Locks the object of a handle; a panic in an earlier call does not lock later calls out.
pub fn lock<T>(object: &Mutex<T>) -> MutexGuard<'_, T> {
    object.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_handles_of_the_right_type_are_found() {
        let key = give::<fs_key>(Arc::default());
        assert!(find(key).is_ok());
        assert!(find(key.cast::<fs_list>()).is_err());
        assert!(find(std::ptr::null::<fs_key>()).err().unwrap().message().contains("null"));
        assert!(find(key.wrapping_byte_add(1)).is_err());
        assert!(take(key).is_ok());
        assert!(take(key).is_err(), "closed twice");
        assert_ne!(give::<fs_key>(Arc::default()), key, "a number is never given again");
    }
}
