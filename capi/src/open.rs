//! Keys and lists that a caller has open: what stands behind their handles.

use std::ffi::CString;

use fieldstone::{Code, Listing, Request, Result, Values};

use crate::status::c_text;

/// A key and its text, which the caller holds a pointer to.
#[derive(Default)]
pub struct KeyBuilder {
    pub pairs: Request,
    pub text: CString,
}

impl KeyBuilder {
    /// Gives a keyword a value.
    pub fn set(&mut self, keyword: &str, value: &str) -> Result<()> {
        if keyword.is_empty() {
            return Err(Code::KeywordUnknown.error("the keyword is empty"));
        }
        self.pairs.set(keyword, Values::list([value]));
        self.text = c_text(&self.pairs.to_string());
        Ok(())
    }
}

/// A list and the text that the caller holds a pointer to.
pub struct OpenList {
    pub entries: Listing,
    pub key: CString,
}
