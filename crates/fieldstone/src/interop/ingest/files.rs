//! Files named by paths: single ones, those in folders, those that match a pattern.
//!
//! Invariants:
//! * the order is that of the given paths, in a folder or a pattern that of names; no file comes twice from folders and
//!   patterns;
//! * names that begin with a dot are skipped in folders and match no pattern, unless the pattern begins with a dot;
//! * a folder is entered once, whatever links lead to it; a folder that is a store is not entered;
//! * paths that are not files, and patterns without a match, are in `skipped` with the reason.
//!
//! ```text
//! heap                the files in heap and, but for `shallow`, in the folders below it
//! heap/*.nc           `*` any characters, `?` one, `[a-c]`, `[!a-c]` one of these or none of them; none of them a `/`
//! heap/**/*.grib      `**` any folders, or none
//! ```

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use fieldstone_core::value::Glob;
use fieldstone_format::marker;

use super::{Skipped, WHOLE_FILE, WHOLE_FOLDER, WHOLE_PATTERN};

/// The files that paths name.
#[derive(Debug, Default)]
pub struct NamedFiles {
    /// The files, also missing ones: reading them reports why.
    pub files: Vec<PathBuf>,
    /// Paths that are not files, with the reason.
    pub skipped: Vec<Skipped>,
    /// Files that came from folders and patterns.
    seen: HashSet<PathBuf>,
}

impl NamedFiles {
    /// Finds the files. `shallow`: does not enter folders below a folder; `whole`: takes folders themselves.
    pub fn of<P: AsRef<Path>>(paths: &[P], shallow: bool, whole: bool) -> NamedFiles {
        let mut found = NamedFiles::default();
        for path in paths.iter().map(AsRef::as_ref) {
            match std::fs::metadata(path) {
                Ok(facts) if facts.is_dir() && !whole => found.folder(path, shallow),
                Ok(_) => found.files.push(path.to_owned()),
                Err(_) if is_pattern(path.as_os_str()) => found.pattern(path, shallow, whole),
                Err(_) => found.files.push(path.to_owned()),
            }
        }
        found
    }

    fn skip(&mut self, path: &Path, what: &str, why: impl Into<String>) {
        self.skipped.push(Skipped { path: path.to_owned(), what: what.to_owned(), why: why.into() });
    }

    fn folder(&mut self, path: &Path, shallow: bool) {
        let (files, skipped) = (self.files.len(), self.skipped.len());
        self.walk(path, shallow, &mut HashSet::new());
        if self.files.len() == files && self.skipped.len() == skipped {
            self.skip(path, WHOLE_FOLDER, "it holds no files");
        }
    }

    fn walk(&mut self, path: &Path, shallow: bool, entered: &mut HashSet<(u64, u64)>) {
        if path.join(marker::FILE_NAME).is_file() {
            self.skip(path, WHOLE_FOLDER, "it is a store; use `fieldstone copy` to copy its fields");
            return;
        }
        if std::fs::metadata(path).is_ok_and(|facts| !entered.insert((facts.dev(), facts.ino()))) {
            return;
        }
        let names = match names(path) {
            Ok(names) => names,
            Err(error) => return self.skip(path, WHOLE_FOLDER, format!("cannot be read: {error}")),
        };
        let mut folders = Vec::new();
        for name in names.into_iter().filter(|name| !name.as_bytes().starts_with(b".")) {
            let entry = path.join(name);
            match std::fs::metadata(&entry) {
                Ok(facts) if facts.is_dir() => folders.push(entry),
                Ok(facts) => self.entry(entry, &facts),
                Err(_) => self.skip(&entry, WHOLE_FILE, "a broken link"),
            }
        }
        if !shallow {
            folders.iter().for_each(|folder| self.walk(folder, false, entered));
        }
    }

    fn entry(&mut self, path: PathBuf, facts: &Metadata) {
        if !facts.is_file() {
            self.skip(&path, WHOLE_FILE, "not a regular file");
        } else if self.seen.insert(path.clone()) {
            self.files.push(path);
        }
    }

    fn pattern(&mut self, pattern: &Path, shallow: bool, whole: bool) {
        let mut matched = vec![PathBuf::new()];
        let mut parts = pattern.components().peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            let bytes = part.as_os_str().as_bytes();
            matched = match part {
                Component::Normal(_) if bytes == b"**" => {
                    matched.iter().flat_map(|path| below(path, &mut HashSet::new())).collect()
                }
                Component::Normal(name) if is_pattern(name) => {
                    let fits = |name: &OsStr| matches(bytes, name.as_bytes());
                    let under = |path: &PathBuf| -> Vec<PathBuf> {
                        let names = names(here(path)).unwrap_or_default();
                        let own = names.into_iter().filter(|name| fits(name)).map(|name| path.join(name));
                        own.filter(|path| last || path.is_dir()).collect()
                    };
                    matched.iter().flat_map(under).collect()
                }
                _ => matched.iter().map(|path| path.join(part)).filter(|path| path.exists()).collect(),
            };
        }
        if matched.is_empty() {
            return self.skip(pattern, WHOLE_PATTERN, "no file matches it");
        }
        for path in matched {
            match std::fs::metadata(&path) {
                Ok(facts) if facts.is_dir() && !whole => self.folder(&path, shallow),
                Ok(facts) if facts.is_dir() => self.files.push(path),
                Ok(facts) => self.entry(path, &facts),
                Err(_) => self.skip(&path, WHOLE_FILE, "a broken link"),
            }
        }
    }
}

fn is_pattern(name: &OsStr) -> bool {
    Glob::is_pattern(&name.to_string_lossy())
}

fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// The names in a folder, sorted.
fn names(path: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}

/// A folder and those below it, each once.
fn below(path: &Path, entered: &mut HashSet<(u64, u64)>) -> Vec<PathBuf> {
    let Ok(facts) = std::fs::metadata(here(path)) else { return Vec::new() };
    if !facts.is_dir() || !entered.insert((facts.dev(), facts.ino())) {
        return Vec::new();
    }
    let mut all = vec![path.to_owned()];
    for name in names(here(path)).unwrap_or_default() {
        if !name.as_bytes().starts_with(b".") {
            all.extend(below(&path.join(name), entered));
        }
    }
    all
}

/// Whether a pattern of one name matches it: by characters if both are text, else by bytes.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") {
        return false;
    }
    match (std::str::from_utf8(pattern), std::str::from_utf8(name)) {
        (Ok(pattern), Ok(name)) => Glob::new(pattern).matches(name),
        _ => {
            let chars = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
            Glob::new(&chars(pattern)).matches(&chars(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, name, fit) in [
            ("*.nc", "a.nc", true),
            ("*.nc", ".nc", false),
            (".*", ".nc", true),
            ("a?c", "aéc", true),
            ("**", "abc", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), fit, "{pattern} {name}");
        }
        assert!(matches(b"a?\xff", b"ax\xff"), "names need not be text");
        assert!(!matches(b"a?\xff", b"ax\xfe"));
    }
}
