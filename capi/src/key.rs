//! Keys built keyword by keyword, for callers that would otherwise print and quote by hand.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex};

use crate::arguments::text;
use crate::handles::{find, fs_key, give, lock, take};
use crate::open::KeyBuilder;
use crate::status::call;

/// Begins a key. Never null; free it with fs_key_free.
#[unsafe(no_mangle)]
pub extern "C" fn fs_key_new() -> *mut fs_key {
    let mut key = std::ptr::null_mut();
    call(|| {
        key = give(Arc::new(Mutex::new(KeyBuilder::default())));
        Ok(())
    });
    key
}

/// Sets a keyword's value, replacing an earlier one. The value is taken literally: "a/b" is one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_key_set(key: *mut fs_key, keyword: *const c_char, value: *const c_char) -> c_int {
    call(|| {
        let key = find(key)?;
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let (keyword, value) = unsafe { (text(keyword, "keyword")?, text(value, "value")?) };
        lock(&key).set(keyword, value)
    })
}

/// Sets a keyword's value to a whole number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_key_set_int(key: *mut fs_key, keyword: *const c_char, value: i64) -> c_int {
    call(|| {
        let key = find(key)?;
        // SAFETY: the caller passes a text that ends in a zero byte, or null.
        let keyword = unsafe { text(keyword, "keyword") }?;
        lock(&key).set(keyword, &value.to_string())
    })
}

/// The key as text, for all calls that take a key. Valid until the key is set again or freed. Null if the
/// handle is not valid; a call that takes that null returns FS_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn fs_key_text(key: *const fs_key) -> *const c_char {
    let mut text = std::ptr::null();
    call(|| {
        text = lock(&*find(key)?).text.as_ptr();
        Ok(())
    });
    text
}

/// Frees a key. Does nothing with null.
#[unsafe(no_mangle)]
pub extern "C" fn fs_key_free(key: *mut fs_key) -> c_int {
    call(|| if key.is_null() { Ok(()) } else { take(key).map(drop) })
}
