//! A directory tree: the files and directories of each directory, and their metadata.
//!
//! `directory --has--> file|directory`, and for each the static properties mode, uid, gid, size, mtime. Both are
//! stamped with the entry's last change, so that another walk only adds versions for changes. The price: a change of
//! mode alone, which leaves that time, adds no version. `file|directory --ownedBy--> user` is stamped with the inode's
//! last change, because a new owner changes it. A directory's listing follows its rows, so that removed entries can be
//! ended. An entry whose last change is more than a day in the future gets the stamp 1, and a note: a future stamp
//! would push all later ones there.
//!
//! Links are not followed and, like pipes and devices, do not count as files; they are counted. Entries that cannot be
//! examined are noted, and the walk continues. Memory holds one batch of rows and the names of the directories on the
//! way down.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fieldstone_core::env::Env;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};

use super::props::{Span, count, relation};
use super::{GraphRows, Props, VertexName, VertexPut};

/// The relation to the owner of a file or directory.
pub const OWNED_BY: &str = "ownedBy";

/// Rows of a batch; up to three per entry.
const BATCH: usize = 4096;
/// A time up to this many nanoseconds from now is accepted.
const AHEAD: i64 = 86_400_000_000_000;
/// Maximum number of notes; further ones are only counted.
const NOTES: usize = 100;

/// Report of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeReport {
    /// Directories, including the first.
    pub directories: u64,
    /// Files.
    pub files: u64,
    /// Links, pipes, devices: left out.
    pub others: u64,
    /// Entries that could not be examined, or are odd, one line each, at most a hundred.
    pub notes: Vec<String>,
    /// Number of entries that could not be examined.
    pub unreadable: u64,
}

/// A part of a walk's result.
#[derive(Debug)]
pub enum TreePart {
    /// Some thousand rows.
    Rows(GraphRows),
    /// A directory that was read completely.
    Listing(Listing),
}

/// All entries of a directory.
#[derive(Debug)]
pub struct Listing {
    /// The directory.
    pub directory: VertexName,
    /// Its entries. An entry that could not be examined appears as a file and as a directory.
    pub entries: HashSet<VertexName>,
    /// Its last change, as a stamp; 1 if the time is not accepted.
    pub time: u64,
}

/// Walks a directory; `take` gets rows in batches and listings, and can end the walk with an error.
///
/// Ids are full paths below `path`; if `path` is a link, below its target.
pub fn tree(env: &Env, path: &Path, take: &mut dyn FnMut(TreePart) -> Result<()>) -> Result<TreeReport> {
    let failed = |e| Error::io("read", path, e).with_hint("check the path and its permissions");
    let root = std::fs::canonicalize(path).map_err(failed)?;
    let facts = std::fs::symlink_metadata(&root).map_err(failed)?;
    if !facts.is_dir() {
        return Err(Code::FileKind.error(format!("{} is not a directory", path.display())));
    }
    let id =
        root.to_str().ok_or_else(|| Code::Name.error(format!("the path {} is not UTF-8", root.display())))?;
    let latest = env.clock.now().saturating_add(AHEAD);
    let mut walk = Walk { rows: GraphRows::default(), report: TreeReport::default(), latest, take };
    walk.put(None, VertexName::new("directory", id), &facts)?;
    walk.report.directories += 1;
    let mut pending = vec![root];
    while let Some(directory) = pending.pop() {
        match walk.entries(&directory, &mut pending) {
            Ok(()) => {}
            Err(Problem::Unreadable(e)) => walk.note(&directory, &e),
            Err(Problem::Ended(error)) => return Err(error),
        }
    }
    walk.hand_over(0)?;
    Ok(walk.report)
}

struct Walk<'a> {
    rows: GraphRows,
    report: TreeReport,
    /// The latest accepted time.
    latest: i64,
    take: &'a mut dyn FnMut(TreePart) -> Result<()>,
}

/// Why a directory was not walked completely.
enum Problem {
    Unreadable(io::Error),
    Ended(Error),
}

impl Walk<'_> {
    /// Takes the entries of a directory, by name; subdirectories are walked later.
    fn entries(&mut self, directory: &Path, pending: &mut Vec<PathBuf>) -> std::result::Result<(), Problem> {
        // Before reading it: the next walk finds entries that are removed in between.
        let facts = std::fs::symlink_metadata(directory).map_err(Problem::Unreadable)?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(Problem::Unreadable)? {
            names.push(entry.map_err(Problem::Unreadable)?.file_name());
        }
        names.sort_unstable();
        // Paths below are made from a path that is text.
        let above = directory.to_str().map(|path| VertexName::new("directory", path));
        let (mut below, mut entries) = (Vec::new(), HashSet::new());
        for name in names {
            let path = directory.join(&name);
            let facts = match std::fs::symlink_metadata(&path) {
                Ok(facts) => facts,
                // Removed after the directory was read.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => {
                    self.note(&path, &e);
                    let kinds =
                        path.to_str().into_iter().flat_map(|id| ["file", "directory"].map(|kind| (kind, id)));
                    entries.extend(kinds.map(|(kind, id)| VertexName::new(kind, id)));
                    continue;
                }
            };
            let kind = match facts.file_type() {
                kind if kind.is_dir() => "directory",
                kind if kind.is_file() => "file",
                _ => {
                    self.report.others += 1;
                    continue;
                }
            };
            let Some(id) = path.to_str() else {
                self.note(&path, &io::Error::other("its name is not UTF-8"));
                continue;
            };
            entries.insert(VertexName::new(kind, id));
            self.put(above.as_ref(), VertexName::new(kind, id), &facts).map_err(Problem::Ended)?;
            if kind == "directory" {
                self.report.directories += 1;
                below.push(path);
            } else {
                self.report.files += 1;
            }
        }
        pending.extend(below.into_iter().rev());
        let Some(directory) = above else { return Ok(()) };
        let time = self.stamp(facts.mtime(), facts.mtime_nsec()).unwrap_or(1);
        (self.take)(TreePart::Listing(Listing { directory, entries, time })).map_err(Problem::Ended)
    }

    /// A time as a stamp; `None` if it is in the future. Times before 1970 have the first stamp, 1.
    fn stamp(&self, seconds: i64, nanoseconds: i64) -> Option<u64> {
        let time = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        (time <= self.latest).then(|| u64::try_from(time).unwrap_or(1).max(1))
    }

    fn put(&mut self, above: Option<&VertexName>, vertex: VertexName, facts: &Metadata) -> Result<()> {
        let mtime = facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec());
        let time = self.stamp(facts.mtime(), facts.mtime_nsec()).unwrap_or_else(|| {
            self.say(format!("{vertex}: its time of change lies in the future"));
            1
        });
        let owned = self.stamp(facts.ctime(), facts.ctime_nsec()).unwrap_or(time);
        let owner = VertexName::new("user", &facts.uid().to_string());
        self.rows.relations.push(relation(OWNED_BY, &vertex, &owner, Span { begin: owned, end: None }));
        let values = [
            ("mode", Value::Int(i64::from(facts.permissions().mode() & 0o7777))),
            ("uid", Value::Int(i64::from(facts.uid()))),
            ("gid", Value::Int(i64::from(facts.gid()))),
            ("size", count(facts.len())),
            ("mtime", Value::DateTime(mtime)),
        ];
        let fixed = Some(Props::of(values.iter().map(|(name, value)| (*name, value)))?);
        if let Some(above) = above {
            self.rows.relations.push(relation("has", above, &vertex, Span { begin: time, end: None }));
        }
        self.rows.vertices.push(VertexPut { fixed, time: Some(time), ..VertexPut::new(vertex) });
        self.hand_over(BATCH)
    }

    /// Passes the rows on if there are at least `least`.
    fn hand_over(&mut self, least: usize) -> Result<()> {
        if self.rows.len() >= least.max(1) {
            return (self.take)(TreePart::Rows(std::mem::take(&mut self.rows)));
        }
        Ok(())
    }

    fn note(&mut self, path: &Path, why: &io::Error) {
        self.report.unreadable += 1;
        self.say(format!("{}: {why}", path.display()));
    }

    fn say(&mut self, note: String) {
        if self.report.notes.len() < NOTES {
            self.report.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn walk(path: &Path) -> (GraphRows, TreeReport, usize) {
        let (mut rows, mut batches) = (GraphRows::default(), 0);
        let report = tree(&Env::real(), path, &mut |part| {
            if let TreePart::Rows(batch) = part {
                assert!(batch.len() <= BATCH + 2);
                batches += 1;
                rows.extend(batch);
            }
            Ok(())
        });
        (rows, report.unwrap(), batches)
    }

    #[test]
    fn a_tree_has_what_is_in_it_and_nothing_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/f"), "12345").unwrap();
        std::fs::write(at("a/g"), "").unwrap();
        symlink(folder.path(), at("a/loop")).unwrap();
        std::fs::write(at("a").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        std::fs::set_permissions(at("a/b/f"), PermissionsExt::from_mode(0o640)).unwrap();
        let link = at("link");
        symlink(at("a"), &link).unwrap();
        let (rows, report, _) = walk(&link);
        let root = std::fs::canonicalize(at("a")).unwrap();
        let name = |name: &VertexName| name.to_string().replace(root.to_str().unwrap(), "");
        let (owners, has): (Vec<_>, Vec<_>) = rows.relations.iter().partition(|r| &*r.kind == OWNED_BY);
        let uid = std::fs::metadata(at("a")).unwrap().uid().to_string();
        assert!(owners.len() == 4 && owners.iter().all(|r| r.target == VertexName::new("user", &uid)));
        let related: Vec<String> =
            has.iter().map(|r| format!("{} {} {}", name(&r.source), r.kind, name(&r.target))).collect();
        let expected =
            ["directory: has directory:/b", "directory: has file:/g", "directory:/b has file:/b/f"];
        assert_eq!(related, expected);
        assert_eq!((report.directories, report.files, report.others, report.unreadable), (2, 2, 1, 1));
        assert!(report.notes[0].contains("UTF-8"), "{report:?}");
        let file = rows.vertices.iter().find(|put| name(&put.vertex) == "file:/b/f").unwrap();
        let facts = std::fs::metadata(at("a/b/f")).unwrap();
        let get = |name: &str| file.fixed.as_ref().unwrap().get(name).unwrap();
        assert_eq!((get("size"), get("mode")), (Some(Value::Int(5)), Some(Value::Int(0o640))));
        assert_eq!(get("uid"), Some(Value::Int(facts.uid().into())));
        assert_eq!(get("gid"), Some(Value::Int(facts.gid().into())));
        let mtime = facts.mtime() * 1_000_000_000 + facts.mtime_nsec();
        assert_eq!(get("mtime"), Some(Value::DateTime(mtime)));
        assert_eq!(file.time, Some(mtime as u64));
        assert_eq!(walk(&link).0, rows, "taken twice it is the same");
    }

    #[test]
    fn a_large_directory_comes_in_batches() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..=BATCH {
            std::fs::write(folder.path().join(i.to_string()), "").unwrap();
        }
        let (rows, report, batches) = walk(folder.path());
        assert_eq!((report.files, rows.len(), batches), (BATCH as u64 + 1, 3 * BATCH + 5, 3));
    }

    #[test]
    fn times_that_cannot_be_are_no_stamps() {
        let folder = tempfile::tempdir().unwrap();
        for (name, time) in [("early", "@-1"), ("late", "2090-01-01"), ("now", "@5")] {
            let path = folder.path().join(name);
            let done = std::process::Command::new("touch").args(["-d", time]).arg(path).status();
            assert!(done.unwrap().success());
        }
        let (rows, report, _) = walk(folder.path());
        let has = rows.relations.iter().filter(|put| &*put.kind == "has");
        let stamps: Vec<Option<u64>> = has.map(|put| put.time).collect();
        assert_eq!(stamps, [Some(1), Some(1), Some(5_000_000_000)]);
        assert!(report.notes.len() == 1 && report.notes[0].contains("late"), "{report:?}");
    }

    #[test]
    fn what_is_no_directory_is_refused_and_an_error_ends_the_walk() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, "").unwrap();
        let env = Env::real();
        let mut none = |_| Ok(());
        assert_eq!(tree(&env, &file, &mut none).unwrap_err().code(), Code::FileKind);
        let absent = folder.path().join("absent");
        assert_eq!(tree(&env, &absent, &mut none).unwrap_err().code(), Code::FileNotFound);
        let mut full = |_| Err(Error::unavailable("full"));
        assert_eq!(tree(&env, folder.path(), &mut full).unwrap_err().message(), "full");
    }
}
