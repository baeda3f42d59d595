//! Files that an execution reads and writes: their paths, their content, and whether they changed.
//!
//! Patterns are those of a shell: `*`, `?` and `[a-z]` in a name, `**` for folders of any depth, which at the end also
//! matches their files. A name that begins with a dot needs a pattern that does. An existing path is taken literally,
//! whatever characters it holds. A named folder also means all files below it: reading one of them means reading the
//! folder's content.
//!
//! Invariants:
//! * ids are full paths without links, as `fieldstone trace` looks for them;
//! * links that match a pattern are followed, those below a watched folder are not;
//! * a note names each file that cannot be read; it does not prevent the rest of the record (G-34).

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use fieldstone_core::env::real::open_named;
use fieldstone_core::sync::Mutex;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Bytes of a file per read.
const PART: usize = 1 << 20;
/// Maximum depth of nested folders.
const DEPTH: usize = 64;

/// Marks that tell a file from its predecessor at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// Time of creation, nanoseconds since 1970, if the file system has it.
    created: Option<u64>,
}

/// A file or folder that was read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Its full path.
    pub path: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Its length.
    pub bytes: u64,
    /// Checksum of its content; `None` if that cannot be read, and for folders.
    pub checksum: Option<String>,
    /// Whether it replaces another file that was there before.
    pub replaces: bool,
    /// Time of creation, if known.
    pub created: Option<u64>,
    /// Time of the last change of its content, nanoseconds since 1970.
    pub modified: u64,
}

/// Files as they were at one moment.
pub type FileIdentities = BTreeMap<PathBuf, FileIdentity>;

impl FileIdentity {
    /// The mark from a file's metadata.
    pub fn of(facts: &Metadata) -> FileIdentity {
        let created = facts.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        FileIdentity {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
            created: created.and_then(|since| u64::try_from(since.as_nanos()).ok()),
        }
    }
}

/// The text of a checksum of bytes.
pub fn checksum_text(bytes: &[u8]) -> String {
    format!("xxh3:{:032x}", xxh3_128(bytes))
}

/// The text of a file's checksum, and its number of bytes.
fn checksum(path: &Path) -> std::io::Result<(String, u64)> {
    let (mut file, mut part, mut sum, mut bytes) = (open_named(path)?, vec![0; PART], Xxh3::new(), 0);
    loop {
        let n = file.read(&mut part)?;
        if n == 0 {
            return Ok((format!("xxh3:{:032x}", sum.digest128()), bytes));
        }
        sum.update(part.get(..n).unwrap_or_default());
        bytes += n as u64;
    }
}

/// Looks at a file, also through a link. `before` is the mark of its predecessor. Facts that cannot be recorded go to
/// `notes`.
pub fn look(path: &Path, before: Option<&FileIdentity>, notes: &mut Vec<String>) -> Option<NamedFile> {
    let mut note = |why: &dyn std::fmt::Display| notes.push(format!("{}: {why}", path.display()));
    let facts = fs::canonicalize(path).and_then(|full| fs::metadata(&full).map(|facts| (full, facts)));
    let (full, facts) = match facts {
        Ok(facts) => facts,
        Err(e) => {
            note(&e);
            return None;
        }
    };
    let Some(text) = full.to_str() else {
        note(&"its path is not UTF-8, so it has no vertex");
        return None;
    };
    if !facts.is_dir() && !facts.is_file() {
        note(&"is neither a file nor a folder");
        return None;
    }
    let identity = FileIdentity::of(&facts);
    let replaces = before.is_none_or(|before| {
        (before.device, before.inode, before.created) != (identity.device, identity.inode, identity.created)
    });
    let (seconds, nanoseconds) = identity.modified;
    let modified = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
    let mut file = NamedFile {
        path: text.to_owned(),
        folder: facts.is_dir(),
        bytes: identity.size,
        checksum: None,
        replaces,
        created: identity.created,
        modified: u64::try_from(modified).unwrap_or(0),
    };
    if !file.folder {
        match checksum(&full) {
            Ok((sum, bytes)) => (file.checksum, file.bytes) = (Some(sum), bytes),
            Err(e) => note(&e),
        }
    }
    Some(file)
}

/// Looks at a program, as [`look`]. The last result is reused as long as the file is the same.
pub fn look_at_program(path: &Path, notes: &mut Vec<String>) -> Option<NamedFile> {
    static LAST: Mutex<Option<(PathBuf, FileIdentity, NamedFile)>> = Mutex::new(None);
    let identity = identity(path);
    // A lock that a thread held during a fork stays locked in the child, which then looks by itself.
    let Some(mut last) = LAST.try_lock() else { return look(path, None, notes) };
    if let Some((known, then, file)) = &*last
        && known == path
        && Some(then) == identity.as_ref()
    {
        return Some(file.clone());
    }
    let file = look(path, None, notes)?;
    *last = identity.map(|identity| (path.to_owned(), identity, file.clone()));
    Some(file)
}

/// The paths that patterns match below a folder, each once. `absent` receives the patterns without a match.
pub fn expand(patterns: &[String], folder: &Path, absent: &mut dyn FnMut(&str)) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for pattern in patterns {
        let mut named = expand_one(pattern, folder);
        if named.is_empty() {
            absent(pattern);
        }
        all.append(&mut named);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The same for files that are read: a folder that is named literally also adds the files below it, except those in
/// `without`.
pub fn expand_reads(
    patterns: &[String],
    folder: &Path,
    without: Option<&Path>,
    absent: &mut dyn FnMut(&str),
) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for pattern in patterns {
        let named = expand(std::slice::from_ref(pattern), folder, absent);
        let last = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if last == "**" || !last.contains(['*', '?', '[']) || folder.join(pattern).exists() {
            for root in named.iter().filter(|path| path.is_dir()) {
                each_below(root, without, &mut |path, _| all.push(path));
            }
        }
        all.extend(named);
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn expand_one(pattern: &str, folder: &Path) -> Vec<PathBuf> {
    let whole = folder.join(pattern);
    if whole.symlink_metadata().is_ok() {
        return vec![whole];
    }
    let mut found = vec![PathBuf::new()];
    for component in whole.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        found = match &*name {
            "**" => found.iter().flat_map(|path| folders_below(path)).collect(),
            name if name.contains(['*', '?', '[']) => {
                found.iter().flat_map(|path| children(path, name)).collect()
            }
            name => found
                .into_iter()
                .map(|path| path.join(name))
                .filter(|path| path.symlink_metadata().is_ok())
                .collect(),
        };
    }
    if whole.file_name().is_some_and(|last| last == "**") {
        let within = |folder: &PathBuf| children(folder, "*").into_iter().filter(|path| !is_folder(path));
        let files: Vec<PathBuf> = found.iter().flat_map(within).collect();
        found.extend(files);
        found.sort_unstable();
    }
    found
}

/// Passes the regular files below a folder to `take`, except those in `without`; no link is followed.
fn each_below(root: &Path, without: Option<&Path>, take: &mut dyn FnMut(PathBuf, &Metadata)) {
    let Ok(root) = fs::canonicalize(root) else { return };
    let mut pending = vec![root];
    while let Some(folder) = pending.pop() {
        if without == Some(&*folder) {
            continue;
        }
        for path in entries(&folder) {
            match path.symlink_metadata() {
                Ok(facts) if facts.is_dir() => pending.push(path),
                Ok(facts) if facts.is_file() => take(path, &facts),
                _ => {}
            }
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    all.sort_unstable();
    all
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|facts| facts.is_dir())
}

/// A folder and those below it.
fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![(folder.to_owned(), 0)];
    let mut at = 0;
    while let Some((folder, depth)) = all.get(at).cloned() {
        at += 1;
        if depth < DEPTH {
            let below = entries(&folder).into_iter().filter(|path| is_folder(path) && !is_hidden(path));
            all.extend(below.map(|path| (path, depth + 1)));
        }
    }
    all.into_iter().map(|(folder, _)| folder).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().first() == Some(&b'.'))
}

fn children(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern: Vec<char> = pattern.chars().collect();
    let fits = |path: &PathBuf| {
        let name: Vec<char> = path.file_name().unwrap_or_default().to_string_lossy().chars().collect();
        (pattern.first() == Some(&'.') || !is_hidden(path)) && fits_name(&pattern, &name)
    };
    entries(folder).into_iter().filter(fits).collect()
}

/// Whether a name matches a pattern.
fn fits_name(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The place to resume from if the text after the last `*` does not fit.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() || p < pattern.len() {
        let next = match pattern.get(p) {
            Some('*') => {
                retry = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') if n < name.len() => Some(p + 1),
            Some('[') if n < name.len() => match class(&pattern[p + 1..], name[n]) {
                Some((fits, length)) => fits.then_some(p + 1 + length),
                None => (name[n] == '[').then_some(p + 1),
            },
            Some(c) if name.get(n) == Some(c) => Some(p + 1),
            _ => None,
        };
        match (next, retry) {
            (Some(next), _) => (p, n) = (next, n + 1),
            (None, Some((star, from))) if from < name.len() => {
                retry = Some((star, from + 1));
                (p, n) = (star + 1, from + 1);
            }
            _ => return false,
        }
    }
    true
}

/// Whether a character is in the class that begins here, and the length of the class with its `]`.
fn class(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let first = usize::from(negated);
    let end = first + 1 + pattern.get(first + 1..)?.iter().position(|c| *c == ']')?;
    let members = pattern.get(first..end)?;
    let (mut at, mut fits) = (0, false);
    while let Some(low) = members.get(at) {
        match (members.get(at + 1), members.get(at + 2)) {
            (Some('-'), Some(high)) => {
                fits |= (low..=high).contains(&&c);
                at += 3;
            }
            _ => {
                fits |= *low == c;
                at += 1;
            }
        }
    }
    Some((fits != negated, end + 1))
}

/// The mark of a file now, if it exists.
pub fn identity(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|facts| FileIdentity::of(&facts))
}

/// The files that patterns match and those below watched folders, except those in `without`.
pub fn identities(
    patterns: &[String],
    watched: &[PathBuf],
    folder: &Path,
    without: Option<&Path>,
) -> FileIdentities {
    let mut identities = FileIdentities::new();
    for path in expand(patterns, folder, &mut |_| {}) {
        if let Ok(full) = fs::canonicalize(&path)
            && let Ok(facts) = fs::metadata(&full)
        {
            if facts.is_dir() {
                each_below(&full, without, &mut |path, facts| {
                    identities.insert(path, FileIdentity::of(facts));
                });
            }
            identities.insert(full, FileIdentity::of(&facts));
        }
    }
    for root in watched {
        each_below(&folder.join(root), without, &mut |path, facts| {
            identities.insert(path, FileIdentity::of(facts));
        });
    }
    identities
}

/// The files of `after` that changed, with their content's checksums.
pub fn changed(before: &FileIdentities, after: &FileIdentities, notes: &mut Vec<String>) -> Vec<NamedFile> {
    let is_new = |(path, identity): &(&PathBuf, &FileIdentity)| before.get(*path) != Some(identity);
    after.iter().filter(is_new).filter_map(|(path, _)| look(path, before.get(path), notes)).collect()
}

/// The file of a program: a path, or a name that is searched as a shell does. Links are not followed if the program's
/// name depends on them.
pub fn program(name: &str, path: Option<&str>, folder: &Path) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.mode() & 0o111 != 0);
    if name.contains('/') {
        return Some(folder.join(name)).filter(is_program);
    }
    // An empty part of the list means the folder itself.
    path.unwrap_or("/usr/bin:/bin").split(':').map(|part| folder.join(part).join(name)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        fits_name(&chars(pattern), &chars(name))
    }

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "a"),
            ("a*c", "abbc"),
            ("*.n?", "a.nc"),
            ("[a-c]1", "b1"),
            ("[!a]", "b"),
            ("[]]", "]"),
            ("*[0-9]*.nc", "x7y.nc"),
            ("[", "["),
            ("a[", "a["),
            ("é?", "éü"),
            ("**", "a"),
            ("[a-]", "-"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a", ""),
            ("?", ""),
            ("*.nc", "a.n"),
            ("[a-c]", "d"),
            ("[!a]", "a"),
            ("a*b", "abc"),
            ("[", "a"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_name_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b/.hidden")).unwrap();
        for name in ["a/x.nc", "a/b/y.nc", "a/b/.z.nc", "a/b/.hidden/w.nc", "a/[odd]*.nc", "a/x y\n'.txt"] {
            fs::write(root.join(name), name).unwrap();
        }
        let names = |pattern: &str| {
            let below = |path: PathBuf| path.strip_prefix(root).unwrap().display().to_string();
            expand_one(pattern, root).into_iter().map(below).collect::<Vec<_>>()
        };
        assert_eq!(names("a/*.nc"), ["a/[odd]*.nc", "a/x.nc"]);
        assert_eq!(names("**/*.nc"), ["a/[odd]*.nc", "a/x.nc", "a/b/y.nc"]);
        assert_eq!(names("a/b/.*.nc"), ["a/b/.z.nc"]);
        assert_eq!(names("a/[odd]*.nc"), ["a/[odd]*.nc"], "it is there");
        assert_eq!(names("a/x y*"), ["a/x y\n'.txt"]);
        assert_eq!(names(&root.join("a/?.nc").display().to_string()), ["a/x.nc"]);
        assert!(names("a/none").is_empty() && names("none/*").is_empty());
    }

    #[test]
    fn what_changed_is_known_by_its_inode_size_or_time() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["same", "longer", "replaced", "removed"] {
            fs::write(root.join(name), name).unwrap();
        }
        fs::create_dir(root.join("store")).unwrap();
        let watched = [root.clone()];
        let without = root.join("store");
        let identities = || super::identities(&[], &watched, &root, Some(&without));
        let before = identities();
        fs::write(root.join("longer"), "much longer").unwrap();
        fs::write(root.join("other"), "1").unwrap();
        fs::rename(root.join("other"), root.join("replaced")).unwrap();
        fs::remove_file(root.join("removed")).unwrap();
        fs::write(root.join("new"), "").unwrap();
        fs::write(root.join("store/log"), "").unwrap();
        let mut notes = Vec::new();
        let changed = changed(&before, &identities(), &mut notes);
        let facts: Vec<_> =
            changed.iter().map(|f| (f.path.rsplit('/').next().unwrap(), f.bytes, f.replaces)).collect();
        assert_eq!(facts, [("longer", 11, false), ("new", 0, true), ("replaced", 1, true)]);
        assert_eq!(changed[2].checksum.as_deref(), Some(&*checksum_text(b"1")));
        assert!(notes.is_empty(), "{notes:?}");
    }
}
