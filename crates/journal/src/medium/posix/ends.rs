//! The end files of a folder of logs, as a reader knows them.
//!
//! Invariants:
//! * an end file counts if it belongs to the owner of its log, to root, or to the owner of the folder: nobody else ends
//!   a user's log;
//! * a damaged end file is named, and ends nothing;
//! * an end file never changes, so that it is read once.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::env::Disk;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::log_end::{LogEnd, file_name, parse_ending_name, parse_file_name};

use super::end_file::{self, EndFile};
use super::layout::Layout;
use super::store::Store;
use crate::medium::{Problem, Tip};

/// The end files that are known.
#[derive(Debug, Default)]
pub struct Ends {
    read: BTreeMap<Id, EndFile>,
    /// Files that are listed and were not read yet.
    unread: BTreeSet<Id>,
    /// Those among them that could not be read, since when, and why.
    failed: BTreeMap<Id, (u64, Problem)>,
}

/// Whether a name in the folder of logs is one that the end of a log has.
pub fn is_of_an_end(name: &str) -> bool {
    parse_file_name(name).is_some() || parse_ending_name(name).is_some() || end_file::is_unfinished(name)
}

impl Ends {
    /// Takes the names in the folder of logs.
    pub fn list(&mut self, names: &[String]) {
        let listed: BTreeSet<Id> = names.iter().filter_map(|name| parse_file_name(name)).collect();
        self.read.retain(|writer, _| listed.contains(writer));
        self.failed.retain(|writer, _| listed.contains(writer));
        self.unread = listed.into_iter().filter(|writer| !self.read.contains_key(writer)).collect();
    }

    /// Reads what was not read yet; whether there was any.
    pub fn look(&mut self, disk: &dyn Disk, layout: &Layout, now: u64) -> Result<bool> {
        if self.unread.is_empty() {
            return Ok(false);
        }
        let mut has_new = false;
        for writer in self.unread.clone() {
            let (why, damage) = match end_file::read(disk, layout, writer) {
                Ok(Some(file)) => {
                    self.read.insert(writer, file);
                    self.unread.remove(&writer);
                    self.failed.remove(&writer);
                    has_new = true;
                    continue;
                }
                Ok(None) => continue,
                Err(e) if e.kind() == ErrorKind::Corrupt => (e.message().to_owned(), true),
                Err(e) if matches!(e.kind(), ErrorKind::Denied | ErrorKind::Invalid) => {
                    (format!("it is not read: {}", e.message()), false)
                }
                Err(e) => return Err(e),
            };
            let file = format!("logs/{}", file_name(writer));
            let since = self.failed.get(&writer).map_or(now, |(since, _)| *since);
            self.failed.insert(writer, (since, Problem { file, why, damage, skipped: false }));
        }
        Ok(has_new)
    }

    /// Whether a file could not be read.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// The files that could not be read, for `late` nanoseconds at least.
    pub fn problems(&self, now: u64, late: u64) -> impl Iterator<Item = &Problem> {
        let old = move |(since, _): &&(u64, Problem)| now.saturating_sub(*since) >= late;
        self.failed.values().filter(old).map(|(_, problem)| problem)
    }

    /// The end of a user's log, where an end file that counts names one.
    pub fn of(&self, writer: Id, owner: u32, store: Option<&Store>) -> Option<&LogEnd> {
        let file = self.read.get(&writer).filter(|_| !planted::is(Planted::EndFileIgnored))?;
        let counts = file.counts(owner, store.map(|store| store.folder_owner));
        let is_ours = store.is_none_or(|store| store.has(file.end.store));
        (counts && is_ours).then_some(&file.end)
    }

    /// Logs that ended before their first commit, and the users who ended them.
    pub fn logless(&self) -> impl Iterator<Item = (Id, u32)> {
        let empty = self.read.iter().filter(|(_, file)| file.end.sequence == 0);
        empty.map(|(writer, file)| (*writer, file.owner))
    }

    /// Whether a log ended before the commit that was its last one for a reader.
    pub fn is_beyond(&self, tip: &Tip, store: Option<&Store>) -> bool {
        self.of(tip.writer, tip.uid, store).is_some_and(|end| tip.record.sequence > end.sequence)
    }

    /// Whether a log ended after the commit that was its last one for a reader.
    pub fn has_more(&self, tip: &Tip, store: Option<&Store>) -> bool {
        self.of(tip.writer, tip.uid, store).is_some_and(|end| tip.record.sequence < end.sequence)
    }

    /// Whether a log has ended with this commit.
    pub fn is_reached(&self, tip: &Tip, store: Option<&Store>) -> bool {
        self.of(tip.writer, tip.uid, store).is_some_and(|end| tip.record.sequence == end.sequence)
    }
}

impl EndFile {
    /// Whether it ends a log of `owner` in a folder of `folder_owner`.
    pub fn counts(&self, owner: u32, folder_owner: Option<u32>) -> bool {
        self.owner == owner || self.owner == 0 || Some(self.owner) == folder_owner
    }
}

/// The bytes of a log that count by its end file.
pub fn length(end: &LogEnd) -> u64 {
    if end.sequence == 0 { 0 } else { end.end }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fieldstone_core::env::sim::SimWorld;
    use fieldstone_format::log_end::EndReason;

    use super::*;

    fn end(writer: Id, sequence: u64) -> LogEnd {
        LogEnd {
            writer,
            store: Id([9; 16]),
            sequence,
            end: 100 * sequence,
            hash: 1,
            time: 0,
            uid: 1000,
            why: EndReason::Silent,
            host: "a".into(),
        }
    }

    #[test]
    fn an_end_file_is_read_once_and_counts_by_its_owner() {
        let (world, layout) = (SimWorld::new(1), Layout::new("/s"));
        let env = world.host("a");
        env.disk.create_dir_all(Path::new("/s/logs")).unwrap();
        let (one, two) = (Id([1; 16]), Id([2; 16]));
        let (made, is_ours) = end_file::make(&env, &layout, &end(one, 3)).unwrap().unwrap();
        assert!(is_ours && made.end.sequence == 3);
        let (there, is_ours) = end_file::make(&env, &layout, &end(one, 4)).unwrap().unwrap();
        assert!(!is_ours && there.end.sequence == 3, "the link decides");
        let damaged = Path::new("/s/logs").join(file_name(two));
        env.disk.create_new(&damaged).unwrap().write_at(b"FIELDSTONE-ENDS\0", 0).unwrap();
        let listed = env.disk.list_dir(Path::new("/s/logs")).unwrap();
        let names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
        assert!(names.len() == 2 && names.iter().all(|name| is_of_an_end(name)), "{names:?}");
        let mut ends = Ends::default();
        ends.list(&names);
        assert!(ends.look(&*env.disk, &layout, 5).unwrap());
        assert!(!ends.look(&*env.disk, &layout, 6).unwrap());
        let of = |owner, store| ends.of(one, owner, store).map(|end| end.sequence);
        let store = Store { id: Id([9; 16]), former: [].into(), folder_owner: 1000 };
        let other = Store { id: Id([8; 16]), ..store.clone() };
        let promoted = Store { former: [Id([9; 16])].into(), ..other.clone() };
        assert_eq!(of(1000, None), Some(3));
        assert_eq!(of(7, None), None, "nobody ends another user's log");
        assert_eq!(of(7, Some(&store)), Some(3), "but the owner of the folder");
        assert_eq!(of(1000, Some(&other)), None, "of another store");
        assert_eq!(of(1000, Some(&promoted)), Some(3), "that it was copied from");
        let problems: Vec<_> = ends.problems(6, 0).collect();
        assert!(problems.len() == 1 && problems[0].damage && ends.of(two, 1000, None).is_none());
        assert_eq!(ends.problems(6, 2).count(), 0, "it may only show late");
        ends.list(&[]);
        assert!(ends.of(one, 1000, None).is_none() && !ends.has_failed());
    }
}
