//! Stores: open, flush, discard, close.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use fieldstone::{Mode, OpenOptions};

use crate::arguments::{optional_text, result, text};
use crate::handles::{find, fs_store, give, take};
use crate::status::call;

/// Opens a store. `url` is the path of a folder, or "memory:" for a new store in memory. `mode` is "a" (or
/// null) to read and archive, creating the store if needed; "r" to read; "r+" to read and archive in an
/// existing store; "x" to create a new store. With FIELDSTONE_CREATE=0 in the environment "a" means "r+".
/// `schema` is "simulation", "mars", the path of a schema file or the text of a schema; null means the
/// store's own schema, and "simulation" for a new store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_open(
    url: *const c_char,
    mode: *const c_char,
    schema: *const c_char,
    store: *mut *mut fs_store,
) -> c_int {
    call(|| {
        crate::log::start();
        // SAFETY: the caller passes null or a place for the handle.
        let store = unsafe { result(store, std::ptr::null_mut(), "place for the store") }?;
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let (url, mode, schema) =
            unsafe { (text(url, "url")?, optional_text(mode, "mode")?, optional_text(schema, "schema")?) };
        let mode = mode.map(Mode::parse).transpose()?.unwrap_or_default();
        let options = OpenOptions { mode, schema: schema.map(str::to_owned), ..OpenOptions::default() };
        *store = give(Arc::new(fieldstone::open(url, &options)?));
        Ok(())
    })
}

/// Makes all fields archived through this handle durable and visible, all or nothing.
#[unsafe(no_mangle)]
pub extern "C" fn fs_flush(store: *mut fs_store) -> c_int {
    call(|| find(store)?.flush(None))
}

/// Discards all fields archived through this handle and not flushed.
#[unsafe(no_mangle)]
pub extern "C" fn fs_discard(store: *mut fs_store) -> c_int {
    call(|| find(store)?.discard(None))
}

/// Flushes and closes the store. The handle is closed even if this fails. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_close(store: *mut fs_store) -> c_int {
    call(|| if store.is_null() { Ok(()) } else { take(store)?.close() })
}
