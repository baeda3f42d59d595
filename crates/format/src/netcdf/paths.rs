//! Paths as names (C-7): the escaping of `event_7/plane_u/x`, since `/` is illegal in names, and the way
//! back.
//!
//! A path is parts joined by `/`, each a legal name. A file with paths escapes all names of its dimensions,
//! variables and global attributes by one rule, and declares it in the global attribute [`ATTRIBUTE`]: `/`
//! becomes `.`, `.` becomes `~.`, `~` becomes `~~`. Attributes of variables are never escaped.
//!
//! Invariants: `decode(encode(p)) == p` for every text without empty parts, so that different paths have
//! different names; a name that is not the escaping of any path is shown unchanged.
//!
//! ```
//! use fieldstone_format::netcdf::paths;
//! let mut name = String::new();
//! paths::encode("event_7/v1.5/x", &mut name);
//! assert_eq!(name, "event_7.v1~.5.x");
//! assert_eq!(paths::decode(&name), "event_7/v1.5/x");
//! ```

use std::borrow::Cow;

use fieldstone_core::{Code, Result};

use super::names::{check_characters, check_length};
use super::{Attrs, NcType};

/// Name of the global attribute that declares names to be escaped paths.
pub const ATTRIBUTE: &str = "fieldstone_paths";

/// Value of [`ATTRIBUTE`]: the rule itself, for people who find such a file without Fieldstone.
pub const RULE: &str = "names are paths: . stands for /, ~. for ., ~~ for ~";

/// Checks that `path` consists of legal names joined by `/`, and that its escaping fits into a name. A name
/// without `/` is checked at its own length: if other paths in the file make it escaped, layout checks it
/// again.
pub fn check_path(path: &str) -> Result<()> {
    if !path.as_bytes().contains(&b'/') {
        return super::names::check_name(path);
    }
    for part in path.split('/') {
        if part.is_empty() {
            return Err(Code::Name
                .error(format!("path `{}` has an empty part", path.escape_debug()))
                .with_hint("join parts by one /, without one at the begin or the end"));
        }
        check_characters(part).map_err(|error| error.context(format!("path `{}`", path.escape_debug())))?;
    }
    check_length(path, encoded_len(path))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'/' | b'.' | b'~')
}

/// Passes the escaping of `path` to `piece`, piece by piece.
fn spell<'a>(path: &'a str, mut piece: impl FnMut(&'a str)) {
    let mut rest = path;
    while let Some(at) = rest.bytes().position(is_special) {
        // `at` is the place of an ASCII character, so both cuts are between characters.
        piece(&rest[..at]);
        piece(match rest.as_bytes()[at] {
            b'/' => ".",
            b'.' => "~.",
            _ => "~~",
        });
        rest = &rest[at + 1..];
    }
    piece(rest);
}

/// Appends the escaping of `path` to `name`.
pub fn encode(path: &str, name: &mut String) {
    spell(path, |piece| name.push_str(piece));
}

/// Appends the bytes of the escaping of `path` to `name`.
pub fn encode_bytes(path: &str, name: &mut Vec<u8>) {
    spell(path, |piece| name.extend_from_slice(piece.as_bytes()));
}

/// Whether a file with these global attributes escapes paths as names.
pub fn is_escaped(attrs: &Attrs) -> bool {
    attrs.find(ATTRIBUTE).is_some_and(|attr| attr.ty == NcType::Char && attr.value == RULE.as_bytes())
}

/// Bytes of the escaping of `path`.
pub fn encoded_len(path: &str) -> usize {
    path.len() + path.bytes().filter(|byte| matches!(byte, b'.' | b'~')).count()
}

/// The path whose escaping is `name`; `name` itself if there is none.
pub fn decode(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(is_special) {
        return Cow::Borrowed(name);
    }
    let mut path = String::with_capacity(name.len());
    let mut characters = name.chars();
    while let Some(character) = characters.next() {
        match character {
            '/' => return Cow::Borrowed(name),
            '.' => path.push('/'),
            '~' => match characters.next() {
                Some(escaped @ ('.' | '~')) => path.push(escaped),
                _ => return Cow::Borrowed(name),
            },
            other => path.push(other),
        }
    }
    match has_empty_part(&path) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(path),
    }
}

/// Whether it has the form of a path but an empty part.
fn has_empty_part(path: &str) -> bool {
    path.starts_with('/') || path.ends_with('/') || path.contains("//")
}

/// The enclosing path of `path`, empty if there is none, and the last part of `path`.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The enclosing paths of `path`, innermost first and the empty one last: the order in which names are looked
/// up.
///
/// ```
/// use fieldstone_format::netcdf::paths::enclosing;
/// assert_eq!(enclosing("a/b/v").collect::<Vec<_>>(), ["a/b", "a", ""]);
/// ```
pub fn enclosing(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(split(path).0), |path| (!path.is_empty()).then(|| split(path).0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(path: &str) -> String {
        let mut name = String::new();
        encode(path, &mut name);
        name
    }

    #[test]
    fn spelling_keeps_parts_readable() {
        for (path, name) in
            [("x", "x"), ("a/b/c", "a.b.c"), ("v1.5", "v1~.5"), ("a~b/c", "a~~b.c"), ("é/ü.ö", "é.ü~.ö")]
        {
            assert_eq!(escaped(path), name);
            assert_eq!(decode(name), path);
        }
    }

    #[test]
    fn what_is_no_spelling_is_shown_as_it_is() {
        for name in ["a~b", "a~", "a/b", "a.b/c", "~é", "a..c", "a.", ".a", "."] {
            assert_eq!(decode(name), name);
        }
    }

    #[test]
    fn paths_are_legal_names_joined() {
        for good in ["x", "a/b", "event_7/plane u/x.1", "0/1/2"] {
            assert!(check_path(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", "a/ b", "a /b", "a/.b", "a/\n", "a/u\u{308}"] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
        assert!(check_path(&"a.".repeat(128)).is_ok(), "verbatim, it has 256 bytes");
        let error = check_path(&format!("a/{}", "b.".repeat(100))).unwrap_err().to_string();
        assert!(error.contains("302 bytes") && error.contains("256"), "{error}");
    }

    #[test]
    fn enclosing_paths_end_in_the_root() {
        assert_eq!(enclosing("v").collect::<Vec<_>>(), [""]);
        assert_eq!(enclosing("a/v").collect::<Vec<_>>(), ["a", ""]);
        assert_eq!(split("a/b/v"), ("a/b", "v"));
    }

    proptest! {
        #[test]
        fn spelling_is_reversible(path in "[a./~é]{0,12}") {
            let name = escaped(&path);
            prop_assert_eq!(name.len(), encoded_len(&path));
            prop_assert!(!name.contains('/'));
            let shown = if has_empty_part(&path) { &name } else { &path };
            prop_assert_eq!(decode(&name), shown.as_str());
        }

        #[test]
        fn a_name_that_decodes_to_something_else_is_its_spelling(name in "[a./~é]{0,12}") {
            let path = decode(&name);
            prop_assert!(path == name || escaped(&path) == name);
        }
    }
}
