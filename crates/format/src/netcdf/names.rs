//! Legal names of netCDF classic files, and their normal form.
//!
//! A name is 1 to [`MAX_NAME`] bytes of UTF-8 in normal form C. Its first character is a letter, a digit, an
//! underscore or any character beyond ASCII. It contains no `/`, control character or DEL, and does not end
//! in a space.
//!
//! Invariants: the same rules hold for dimensions, variables and attributes and in all versions; checking a
//! name of plain ASCII costs one pass over its bytes.
//!
//! ```
//! use fieldstone_format::netcdf::names::{check_name, nfc};
//! assert!(check_name("temperature").is_ok());
//! assert!(check_name("a/b").is_err());
//! assert_eq!(nfc("u\u{308}"), "ü");
//! ```

use std::borrow::Cow;

use fieldstone_core::{Code, Result};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Bytes of the longest name that a file may hold.
pub const MAX_NAME: usize = 256;

/// `name` in normal form C, the form of names in files; a name in this form is not copied.
pub fn nfc(name: &str) -> Cow<'_, str> {
    if name.is_ascii() || is_nfc(name) { Cow::Borrowed(name) } else { Cow::Owned(name.nfc().collect()) }
}

/// Checks that a file may hold `name`; `Invalid` names the rule that it breaks.
pub fn check_name(name: &str) -> Result<()> {
    check_characters(name).and_then(|()| check_length(name, name.len()))
}

/// Checks all rules but the length.
pub(super) fn check_characters(name: &str) -> Result<()> {
    match broken_rule(name.as_bytes()) {
        None if name.is_ascii() || is_nfc(name) => Ok(()),
        None => Err(Code::Name.error(format!("name `{name}` is not in Unicode's normal form C"))
            .with_hint("normalise it (in Python: unicodedata.normalize(\"NFC\", name))")),
        Some(rule) => Err(Code::Name.error(format!("name `{}`: {rule}", name.escape_debug()))
            .with_hint("use letters, digits and _ for the first character; anything but / and control characters after it")),
    }
}

/// Checks that a name that takes `bytes` in the file fits.
pub(super) fn check_length(name: &str, bytes: usize) -> Result<()> {
    if bytes <= MAX_NAME {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    Err(Code::Name
        .error(format!("name `{shown}…` takes {bytes} bytes in the file; netCDF's limit is {MAX_NAME}"))
        .with_hint("shorten the name or one of the parts of its path"))
}

/// The rule about characters that a name breaks, in words.
pub fn broken_rule(name: &[u8]) -> Option<&'static str> {
    let (Some(first), Some(last)) = (name.first(), name.last()) else {
        return Some("a name has at least one character");
    };
    if !(first.is_ascii_alphanumeric() || *first == b'_' || *first >= 0x80) {
        return Some("a name begins with a letter, a digit, an underscore or a character beyond ASCII");
    }
    if name.iter().any(|byte| *byte < 0x20 || *byte == 0x7f) {
        return Some("a name cannot contain control characters");
    }
    if name.contains(&b'/') {
        return Some("a name cannot contain /");
    }
    (*last == b' ').then_some("a name does not end in a space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_netcdf_rules() {
        for good in ["x", "_x", "0", "a b", "a.b", "température", "名前", "a~!@#$%^&*()", &"n".repeat(256)]
        {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", "at least one"),
            (" x", "begins with"),
            ("-x", "begins with"),
            (".x", "begins with"),
            ("a/b", "cannot contain /"),
            ("a\nb", "control"),
            ("a\u{7f}", "control"),
            ("a ", "end in a space"),
            ("u\u{308}", "normal form C"),
        ] {
            let error = check_name(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
        let error = check_name(&"é".repeat(129)).unwrap_err().to_string();
        assert!(error.contains("258 bytes") && error.contains("256"), "{error}");
    }

    #[test]
    fn normal_form_is_reached_once_and_kept() {
        assert!(matches!(nfc("plain"), Cow::Borrowed(_)));
        assert!(matches!(nfc("ü"), Cow::Borrowed(_)));
        assert_eq!(nfc("u\u{308}ber"), "über");
        assert!(check_name(&nfc("u\u{308}ber")).is_ok());
    }
}
