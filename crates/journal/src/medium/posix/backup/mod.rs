//! Backups: a folder that shows one version of a store, and is brought up to a newer one (store format, 15.7).
//!
//! The mark `fieldstone.copy` names the version that the backup shows. A round copies all that a newer version needs beside that,
//! and then replaces the mark: a rename switches from one version to the other. Invariants:
//! * nothing that the shown version needs is changed or removed, so that a round may end anywhere;
//! * everything that the next version needs is durable before the mark names it;
//! * files that are not needed any more go a grace later, unless a purge dropped something: older versions need them then.
//!
//! | module | |
//! |---|---|
//! | `needed` | the files of a snapshot |
//! | `copier` | single files |
//! | `target` | the folder: whether it is ours, its mark, what goes |
//! | `beside` | files of arrays, meshes and histories |

mod beside;
mod copier;
mod needed;
mod target;

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::copy_mark::{BesideFile, CopyMark, CopyState};
use fieldstone_format::version::Version;
use fieldstone_format::{Id, claim, log_end};

pub use self::needed::{Needed, SnapshotFiles, log_path};
pub use self::target::{Target, promote};

use self::copier::Copier;
use super::FileMedium;
use super::layout::Layout;
use super::log_reader::LogReader;
use crate::identity::StoreIdentity;
use crate::medium::Tip;

/// How long files stay in a backup that its version does not need any more, nanoseconds: a reader may have them open.
pub const GRACE: i64 = 3_600_000_000_000;

/// How far a round has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackupProgress {
    /// Files that were copied.
    pub files: u64,
    /// Bytes that were copied.
    pub nbytes: u64,
}

/// The result of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The version that the backup shows now.
    pub version: String,
    /// The version that it showed before; empty if it is new.
    pub before: String,
    /// Files that were copied, as a whole or what was new of them.
    pub files: u64,
    /// Bytes that were copied.
    pub nbytes: u64,
    /// Files that were removed from the backup, because nothing in it needs them any more.
    pub removed: u64,
    /// Files in the store's folder that are not the store's, and are not in the backup.
    pub foreign: Vec<String>,
}

/// The source of a round.
#[derive(Debug)]
pub struct BackupSource<'a> {
    /// The store.
    pub medium: &'a FileMedium,
    /// Its identity.
    pub identity: StoreIdentity,
    /// The version to copy, and the snapshot that shows it.
    pub version: Version,
    /// The snapshot.
    pub content: SnapshotFiles,
    /// Last commits of which somebody gave up what is damaged: writers with their sequences.
    pub given_up: HashSet<(Id, u64)>,
}

/// Copies a version of a store into its backup, of which `shown` is the snapshot that it shows now, if it has one. With `purge`
/// the backup drops what purges of the source dropped.
pub fn round(
    source: &BackupSource<'_>,
    target: &Target,
    shown: Option<&SnapshotFiles>,
    purge: bool,
    each: &mut dyn FnMut(BackupProgress) -> Result<()>,
) -> Result<BackupReport> {
    let (from, to) = (&source.medium.layout, target.layout());
    let vouched = shown.map_or_else(|| Ok(Needed::default()), Needed::of)?;
    let needed = Needed::of(&source.content)?;
    check_owners(&source.medium.env, from, &needed)?;
    let removed = target.clean(&vouched)?;
    let mut copier = Copier {
        source: (&source.medium.env, from),
        target: (target.env(), to),
        each,
        report: BackupReport { removed, ..BackupReport::default() },
    };
    target.make_folders(&source.medium.env, from)?;
    for (path, upto) in &needed.data {
        copier.grow(path, *upto, vouched.bytes(path))?;
    }
    let beside = beside::copy(&mut copier, &target.mark().beside)?;
    for (path, bytes) in needed.takeovers.iter().filter(|(path, _)| vouched.bytes(path) == 0) {
        copier.whole(path, *bytes)?;
    }
    for (path, upto) in &needed.logs {
        copier.grow(path, *upto, vouched.bytes(path))?;
    }
    copy_names(&mut copier, &needed)?;
    check_last_commits(source, &vouched)?;
    let mut report = copier.report;
    report.foreign = foreign(source.medium)?;
    report.before = target.shown_version();
    report.version = source.version.encode();
    if report.files > 0 || report.version != report.before || beside != target.mark().beside {
        target.sync()?;
        target.switch(&source.version, beside.clone())?;
    }
    if purge {
        report.removed += target.keep(&needed, &beside)?;
    }
    Ok(report)
}

/// Compares the last commit of each log that grew with its checksum: damage that nobody has looked at yet ends the round. Parts of
/// it that somebody gave up go along; the mark vouches for such a commit, as a board does in the source.
fn check_last_commits(source: &BackupSource<'_>, vouched: &Needed) -> Result<()> {
    let (disk, layout) = (&source.medium.env.disk, &source.medium.layout);
    let is_new = |tip: &&Arc<Tip>| {
        vouched.bytes(&log_path(tip.writer)) < tip.ends.end()
            && !source.given_up.contains(&(tip.writer, tip.record.sequence))
    };
    for tip in source.content.tips.iter().filter(is_new) {
        let path = layout.log(tip.writer);
        let file = disk.open_plain(&path, false).map_err(|e| Error::io("open", &path, e))?;
        let reader = LogReader { file: &*file, path: &path, end: tip.ends.end() };
        reader.check_body(&tip.ends).map_err(|e| {
            e.context("the last commit of a log is damaged, and the backup shows its version of before")
                .with_hint("mend the store with `fieldstone repair`, or accept the loss")
        })?;
    }
    Ok(())
}

/// Copies claims, and the end files of living logs.
fn copy_names(copier: &mut Copier<'_>, needed: &Needed) -> Result<()> {
    let (env, layout) = copier.source;
    let names = target::names(env, &layout.logs())?;
    let there = target::names(copier.target.0, &copier.target.1.logs())?;
    for name in names.iter().filter(|name| claim::is_file_name(name) && !there.contains(*name)) {
        copier.small(&format!("logs/{name}"))?;
    }
    let is_living = |name: &str| {
        log_end::parse_file_name(name).is_some_and(|log| needed.logs.contains_key(&needed::log_path(log)))
    };
    for name in names.iter().filter(|name| is_living(name)) {
        copier.small(&format!("logs/{name}"))?;
    }
    // One that a promotion made which was broken off.
    for name in there.iter().filter(|name| is_living(name) && !names.contains(*name)) {
        let path = copier.target.1.logs().join(name);
        copier.target.0.disk.unlink(&path).map_err(|e| Error::io("remove", &path, e))?;
    }
    Ok(())
}

/// Names of files that are not the store's.
fn foreign(medium: &FileMedium) -> Result<Vec<String>> {
    crate::medium::Inspect::foreign(medium)
}

/// Denied if a file would lose its owner, before anything is copied.
fn check_owners(env: &Env, layout: &Layout, needed: &Needed) -> Result<()> {
    let own = env.identity.uid();
    if own == 0 {
        return Ok(());
    }
    for path in needed.paths().filter(|path| path.starts_with("logs/")) {
        let path = layout.root().join(path);
        match env.disk.stat(&path) {
            Ok(stat) if stat.uid != own => {
                let owner = env.identity.user_name(stat.uid);
                return Err(Code::PermissionDenied
                    .error(format!(
                        "{} belongs to {owner}, whose it would not be in the backup",
                        path.display()
                    ))
                    .with_hint("make backups of a store of several users as root"));
            }
            Ok(_) => {}
            Err(e) => return Err(Error::io("look at", &path, e)),
        }
    }
    Ok(())
}

/// A mark of a new backup, which shows nothing yet.
fn new_mark(identity: &StoreIdentity, former: &Layout, time: i64) -> CopyMark {
    CopyMark {
        state: CopyState::Backup,
        id: identity.id,
        former: former.former().to_vec(),
        version: Version::new(Vec::new()),
        time,
        beside: Vec::new(),
    }
}

/// Whether an error may be that of a file which went while it was copied.
pub fn may_have_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt)
}

type Beside = Vec<BesideFile>;
