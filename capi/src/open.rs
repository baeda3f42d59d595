//! The objects behind the handles of keys and lists.

use std::ffi::CString;

use fieldstone::{Code, Listing, Request, Result, Values};

use crate::status::c_text;

/// A key and its text, to which the caller holds a pointer.
#[derive(Default)]
pub struct KeyBuilder {
    pub pairs: Request,
    pub text: CString,
}

impl KeyBuilder {
    /// Sets a keyword's value.
    pub fn set(&mut self, keyword: &str, value: &str) -> Result<()> {
        if keyword.is_empty() {
            return Err(Code::KeywordUnknown.error("the keyword is empty"));
        }
        self.pairs.set(keyword, Values::list([value]));
        self.text = c_text(&self.pairs.to_string());
        Ok(())
    }
}

/// A list and the text to which the caller holds a pointer.
pub struct OpenList {
    pub entries: Listing,
    pub key: CString,
}
