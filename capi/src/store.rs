//! Stores: open, flush, close.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use fieldstone::{Mode, OpenOptions};

use crate::arguments::{optional_text, result, text};
use crate::handles::{find, fs_store, give, take};
use crate::status::call;

/// Opens a store. `url` is a folder's path, or "memory:" for a new store in memory. `mode` is "a" to read and
/// archive (also where null), "r" to read, "r+" to read and archive where a store is, or "x" for a new store;
/// with FIELDSTONE_CREATE=0 in the environment "a" is "r+". `schema` is "simulation", "mars", a
/// schema file's path or a schema's text; where null the store's own, "simulation" for a new one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_open(
    url: *const c_char,
    mode: *const c_char,
    schema: *const c_char,
    store: *mut *mut fs_store,
) -> c_int {
    call(|| {
        crate::log::start();
        // SAFETY: the caller gives null or a place for the handle.
        let store = unsafe { result(store, std::ptr::null_mut(), "place for the store") }?;
        // SAFETY: the caller gives texts that end in a zero byte, or null.
        let (url, mode, schema) =
            unsafe { (text(url, "url")?, optional_text(mode, "mode")?, optional_text(schema, "schema")?) };
        let mode = mode.map(Mode::parse).transpose()?.unwrap_or_default();
        let options = OpenOptions { mode, schema: schema.map(str::to_owned), ..OpenOptions::default() };
        *store = give(Arc::new(fieldstone::open(url, &options)?));
        Ok(())
    })
}

/// Makes all that was archived through this handle durable and visible, all or nothing.
#[unsafe(no_mangle)]
pub extern "C" fn fs_flush(store: *mut fs_store) -> c_int {
    call(|| find(store)?.flush(None))
}

/// Forgets what was archived through this handle and not flushed.
#[unsafe(no_mangle)]
pub extern "C" fn fs_discard(store: *mut fs_store) -> c_int {
    call(|| find(store)?.discard(None))
}

/// Flushes and closes. The handle is gone also where this fails. Null is nothing to close.
#[unsafe(no_mangle)]
pub extern "C" fn fs_close(store: *mut fs_store) -> c_int {
    call(|| if store.is_null() { Ok(()) } else { take(store)?.close() })
}
