//! Files beside the logs that nothing names: those of arrays in folders that are closed, and those of writers that never
//! made a log (takeovers.md, 10.2; R28, R65).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::takeover::{new_name, part};
use fieldstone_format::{Id, data};

use super::maintenance::{Maintenance, condemned};
use crate::compact::{CompactOptions, CompactReport, store_of};
use crate::medium::posix::array_files::{ArrayFolders, LogState};
use crate::medium::posix::{FileMedium, There};
use crate::session::Session;
use crate::snapshot::Snapshot;

impl Maintenance<'_> {
    /// This user's array files in closed folders that no takeover condemns, with their bytes. With `doit`, folders are closed
    /// whose jobs have ended.
    pub(super) fn unnamed_arrays(
        &self,
        files: &FileMedium,
        snapshot: &Snapshot,
        doit: bool,
    ) -> Result<BTreeMap<String, u64>> {
        let user = self.looks.access.env().identity.uid();
        let mut found = {
            let refresher = self.looks.refresher().lock();
            ArrayFolders::of(files).close(doit, &|log| {
                if snapshot.taken.takeovers().log(log)?.is_some() {
                    return Ok(LogState::Ended);
                }
                match snapshot.log(log) {
                    Some(log) if refresher.ended(log).is_some() => Ok(LogState::Ended),
                    Some(_) => Ok(LogState::Living),
                    None if refresher.knows(log) => Ok(LogState::Living),
                    None => Ok(LogState::Unknown),
                }
            })?
        };
        if !found.is_empty() {
            for (_, path) in condemned(files, snapshot, user)? {
                found.remove(&path);
            }
        }
        Ok(found)
    }

    /// Ends this user's writers that left files, have no log, and were silent for a day.
    pub(super) fn end_logless(&self, files: &FileMedium, snapshot: &Snapshot) -> Result<u64> {
        let user = self.looks.access.env().identity.uid();
        let Some(store) = store_of(snapshot).map(|(store, _)| store) else { return Ok(0) };
        let takeovers = snapshot.taken.takeovers();
        let mut known: HashSet<Id> = takeovers.all().iter().map(|takeover| takeover.header.id).collect();
        for (_, path) in condemned(files, snapshot, user)? {
            let of = path.strip_prefix("data/").and_then(data::parse_file_name);
            known.extend(of.map(|(id, _)| id));
        }
        let there = There::of(files)?;
        let refresher = self.looks.refresher().lock();
        ArrayFolders::of(files).end_logless(store, &|writer| {
            // Copies of makers of takeovers, whose names say how far they are.
            let is_making =
                there.in_logs.contains(&new_name(writer)) || there.in_data.contains(&part::file_name(writer));
            Ok(is_making
                || known.contains(&writer)
                || refresher.knows(writer)
                || takeovers.log(writer)?.is_some())
        })
    }

    /// This user's logs that ended before their first commit.
    fn empty(&self, session: &Session) -> HashSet<Id> {
        let user = self.looks.access.user(session);
        let empty = self.looks.refresher().lock().ended_empty().into_iter();
        empty.filter(|(_, (owner, _))| *owner == user).map(|(writer, _)| writer).collect()
    }

    /// Whether there are any.
    pub(super) fn has_empty(&self, session: &Session) -> bool {
        !self.empty(session).is_empty()
    }

    /// Takes them over: a takeover condemns their files.
    pub(super) fn take_over_empty(
        &self,
        snapshot: &Arc<Snapshot>,
        session: &Session,
        grace: u64,
    ) -> Result<()> {
        let own = self.empty(session);
        if own.is_empty() {
            return Ok(());
        }
        let options = CompactOptions { only: Some(own), grace, ..CompactOptions::default() };
        let mut report = CompactReport::default();
        self.take_over(snapshot.clone(), &options, session, &mut |_| Ok(()), &mut report).map(drop)
    }
}
