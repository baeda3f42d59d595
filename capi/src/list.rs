//! Lists of the fields in a store.

use std::ffi::{CString, c_char, c_int};
use std::sync::{Arc, Mutex};

use fieldstone::prelude::*;
use fieldstone::{ListOptions, Request};

use crate::arguments::{optional_text, result};
use crate::handles::{find, fs_list, fs_store, give, lock, take};
use crate::open::OpenList;
use crate::status::{c_text, call};

/// Opens a list of the fields that a request selects, such as "run=a,step=0/to/24/by/6"; null or "" selects
/// all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_list_open(
    store: *mut fs_store,
    request: *const c_char,
    list: *mut *mut fs_list,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for the handle.
        let list = unsafe { result(list, std::ptr::null_mut(), "place for the list") }?;
        let store = find(store)?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let request = unsafe { optional_text(request, "request") }?;
        let request = request.map(Request::parse).transpose()?.unwrap_or_default();
        let entries = store.list(&request, &ListOptions::default())?;
        *list = give(Arc::new(Mutex::new(OpenList { entries, key: CString::default() })));
        Ok(())
    })
}

/// Gets the next field: its key, which every call accepts, and its raw bytes. After the last field `key`
/// becomes null, with FS_OK. The text is valid until the next call for this list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_list_next(
    list: *mut fs_list,
    key: *mut *const c_char,
    nbytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller passes null or a place for each result.
        let (key, nbytes) = unsafe {
            (result(key, std::ptr::null(), "place for the key")?, result(nbytes, 0, "place for nbytes")?)
        };
        let list = find(list)?;
        let mut list = lock(&list);
        let Some(entry) = list.entries.next().transpose()? else { return Ok(()) };
        list.key = c_text(&entry.key.to_string());
        (*key, *nbytes) = (list.key.as_ptr(), entry.nbytes);
        Ok(())
    })
}

/// Closes a list. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_list_close(list: *mut fs_list) -> c_int {
    call(|| if list.is_null() { Ok(()) } else { take(list).map(drop) })
}
