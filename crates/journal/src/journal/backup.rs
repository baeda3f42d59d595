//! Backups of a store in a folder: a round of copying, and the promotion of a backup (J-51).

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::copy_mark::CopyState;
use tracing::debug_span;

use super::Journal;
use super::options::JournalOptions;
use crate::medium::posix::FileMedium;
use crate::medium::posix::backup::{self, BackupProgress, BackupReport, BackupSource, SnapshotFiles, Target};
use crate::snapshot::Snapshot;

/// How often a round begins again because files went that it was to copy: without a hold, maintenance removes some.
const AGAIN: usize = 3;

impl Journal {
    /// Brings the backup of this store in a folder up to what is visible now; makes it where the folder is absent or empty.
    /// Others may read and write meanwhile. The backup is whole at every moment: it shows its version of before until all of the
    /// new one is durable. With `purge` it drops what purges of the source dropped. `each` hears how far it is, and may end it by
    /// an error.
    pub fn back_up(
        &self,
        (target, folder): (&Env, &Path),
        purge: bool,
        each: &mut dyn FnMut(BackupProgress) -> Result<()>,
    ) -> Result<BackupReport> {
        let _span = debug_span!("back up").entered();
        let medium = self.medium().clone();
        let files = self.backed_up(medium.files())?;
        let mut gone = 0;
        loop {
            self.looks().refresh()?;
            let snapshot = self.looks().snapshot()?;
            if let Some(loss) = snapshot.losses.first() {
                return Err(loss.error().context("the store has lost commits, which its backup may have"));
            }
            let source = BackupSource {
                medium: files,
                identity: self.access().identity().clone(),
                version: snapshot.version(),
                content: content(&snapshot),
                given_up: given_up(&snapshot),
            };
            let to = Target::open(target, folder, &source)?;
            let shown = shown(target, folder)?;
            let content = shown.as_deref().map(content);
            match backup::round(&source, &to, content.as_ref(), purge, each) {
                Err(e) if backup::may_have_gone(&e) && gone < AGAIN => {
                    // The same version needs the same files: if they are gone, they are lost.
                    self.looks().refresh()?;
                    if self.looks().snapshot()?.taken.takeovers().is_same(snapshot.taken.takeovers()) {
                        return Err(e);
                    }
                    gone += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// The folder of a store that can have a backup.
    fn backed_up<'a>(&self, files: Option<&'a FileMedium>) -> Result<&'a FileMedium> {
        let shown = self.access().shown();
        let files = files.filter(|_| !self.access().is_in_memory()).ok_or_else(|| {
            Error::invalid(format!("the store at {shown} is not in a folder of this machine"))
                .with_hint("take a checkpoint of a store in memory; make backups where the folder is")
        })?;
        if files.copy().is_some_and(|copy| copy.state == CopyState::Backup) {
            return Err(Error::invalid(format!("the store at {shown} is a backup itself"))
                .with_hint("make another backup of its source, or promote this one"));
        }
        if self.access().options().at.is_some() {
            return Err(Error::invalid("a backup shows the present version, not an older one")
                .with_hint("open the store without a version"));
        }
        Ok(files)
    }
}

/// Makes the backup in a folder a store of its own, with an id of its own, which this returns.
pub fn promote(env: &Env, folder: &Path) -> Result<Id> {
    let journal = open_read(env, folder)?;
    let snapshot = journal.looks().snapshot()?;
    if let Some(loss) = snapshot.losses.first() {
        return Err(loss.error());
    }
    let medium = journal.medium().clone();
    let Some(files) = medium.files() else { return Err(Error::internal("a folder is a store of files")) };
    let promoted = backup::promote(files, &content(&snapshot), snapshot.format.version);
    promoted.map_err(|e| e.context("a promotion"))
}

/// The snapshot that a backup shows; `None` if it shows nothing yet, or cannot be read: then all of it is copied again.
fn shown(env: &Env, folder: &Path) -> Result<Option<Arc<Snapshot>>> {
    let Ok(journal) = open_read(env, folder) else { return Ok(None) };
    let Ok(snapshot) = journal.looks().snapshot() else { return Ok(None) };
    let is_whole = snapshot.losses.is_empty() && !snapshot.problems.iter().any(|problem| problem.damage);
    let medium = journal.medium().clone();
    let marked = medium.files().and_then(|files| files.copy());
    let is_it = marked.is_some_and(|mark| mark.version == snapshot.version());
    Ok((is_whole && is_it).then_some(snapshot))
}

pub(super) fn open_read(env: &Env, folder: &Path) -> Result<Journal> {
    let url = folder.display().to_string();
    Journal::open(env.clone(), folder, JournalOptions { url, must_exist: true, ..JournalOptions::default() })
}

/// The last commits of living logs of which an acceptance names entries.
fn given_up(snapshot: &Snapshot) -> HashSet<(Id, u64)> {
    let accepted = &snapshot.accepted;
    let concerned = snapshot.logs.iter().filter(|log| {
        accepted.concerns_commit(log.writer, log.record.sequence)
            || accepted.has_block_within(log.writer, &(log.ends.frame..log.ends.end()))
    });
    concerned.map(|log| (log.writer, log.record.sequence)).collect()
}

pub(super) fn content(snapshot: &Snapshot) -> SnapshotFiles {
    SnapshotFiles {
        tips: snapshot.logs.iter().map(|log| log.tip.clone()).collect(),
        takeovers: snapshot.taken.takeovers().clone(),
    }
}
