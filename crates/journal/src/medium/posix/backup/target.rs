//! The folder of a backup: whether it is one of this store, its mark, files that nothing in it needs any more, its promotion.

use std::collections::BTreeSet;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::Path;

use fieldstone_core::env::{Env, FileKind, write_all_at};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::copy_mark::{BesideFile, CopyMark, CopyState};
use fieldstone_format::log_end::{EndReason, LogEnd};
use fieldstone_format::version::Version;
use fieldstone_format::{Id, data, log, log_end, takeover};

use super::super::FileMedium;
use super::super::create::{create_store, read_copy_mark, read_marker};
use super::super::end_file::{self, ENDS_SINCE, UNFINISHED};
use super::super::layout::Layout;
use super::super::linked::Existence;
use super::beside::FOLDERS;
use super::copier::give_as;
use super::needed::{Needed, SnapshotFiles};
use super::{BackupSource, GRACE, new_mark};
use crate::identity::random_id;

/// The folder of a backup.
#[derive(Debug)]
pub struct Target {
    env: Env,
    layout: Layout,
    mark: CopyMark,
    /// Whether it shows a version, beside that of nothing.
    is_new: bool,
}

impl Target {
    /// The backup of a store in a folder, which is made if it is absent or empty. Conflict if anything else is there; then
    /// nothing is touched.
    pub fn open(env: &Env, folder: &Path, source: &BackupSource<'_>) -> Result<Target> {
        let root = env.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
        let from = source.medium.root();
        if root.starts_with(from) || from.starts_with(&root) {
            return Err(Error::invalid(format!("{} and the store are in one another", root.display()))
                .with_hint("give a folder outside of the store, on another disk if you can"));
        }
        let layout = Layout::new(root);
        let found = read_copy_mark(env, &layout)?;
        let is_new = found.is_none();
        let mark = match found {
            Some(mark) => check_mark(mark, source, &layout)?,
            None => {
                check_empty(env, &layout)?;
                new_mark(&source.identity, &source.medium.layout, env.clock.now())
            }
        };
        let is_new = is_new || mark.version == Version::new(Vec::new());
        let target = Target { env: env.clone(), layout, mark, is_new };
        if target.env.disk.stat(&target.layout.copy_mark()).is_err() {
            let root = target.layout.root();
            env.disk.create_dir_all(root).map_err(|e| Error::io("make", root, e))?;
            // Before anything else: nobody must take it for a store to write into.
            write_mark(env, &target.layout, &target.mark)?;
        }
        if env.disk.stat(&target.layout.marker()).is_err() {
            create_store(env, &target.layout, source.identity.clone(), &Existence::default())?;
        }
        Ok(target)
    }

    /// Its paths.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its world.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Its mark, as it was found.
    pub fn mark(&self) -> &CopyMark {
        &self.mark
    }

    /// The version that it shows; empty for nothing.
    pub fn shown_version(&self) -> String {
        if self.is_new { String::new() } else { self.mark.version.encode() }
    }

    /// Makes the folders of files, and gives them the owners of those in the source.
    pub fn make_folders(&self, source: &Env, from: &Layout) -> Result<()> {
        let to = self.layout.root();
        for folder in ["", "logs", "data", "boards"].into_iter().chain(FOLDERS) {
            let (of, to) = (from.root().join(folder), to.join(folder));
            if source.disk.stat(&of).is_err() {
                continue;
            }
            self.env.disk.create_dir_alike(&to).map_err(|e| Error::io("make", &to, e))?;
            if self.env.identity.uid() == 0 {
                give_as(source, &of, &self.env, &to)?;
            }
        }
        Ok(())
    }

    /// Removes files that the shown version does not need, once it is a grace old; how many. If a purge dropped something, files
    /// stay that older versions need.
    pub fn clean(&self, vouched: &Needed) -> Result<u64> {
        let is_due = self.env.clock.now().saturating_sub(self.mark.time) >= GRACE;
        if self.is_new || vouched.is_purged || !is_due {
            return Ok(0);
        }
        self.keep(vouched, &self.mark.beside)
    }

    /// Removes all files that a version does not need; how many.
    pub fn keep(&self, needed: &Needed, beside: &[BesideFile]) -> Result<u64> {
        remove_others(&self.env, &self.layout, needed, beside)
    }

    /// Makes all names durable.
    pub fn sync(&self) -> Result<()> {
        for folder in [self.layout.data(), self.layout.logs(), self.layout.root().to_owned()] {
            self.env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        Ok(())
    }

    /// Shows another version from now on. Conflict if another process did so meanwhile.
    pub fn switch(&self, version: &Version, beside: Vec<BesideFile>) -> Result<()> {
        if read_copy_mark(&self.env, &self.layout)?.as_ref() != Some(&self.mark) {
            return Err(Code::TargetDiffers
                .error(format!(
                    "another process brought the backup in {} up to date",
                    self.layout.root().display()
                ))
                .with_hint("let one process at a time do that"));
        }
        let mark =
            CopyMark { version: version.clone(), time: self.env.clock.now(), beside, ..self.mark.clone() };
        write_mark(&self.env, &self.layout, &mark)
    }
}

/// Makes a backup a store of its own: the id that it has from now on. `shown` is the snapshot that it shows.
pub fn promote(medium: &FileMedium, shown: &SnapshotFiles, format: u32) -> Result<Id> {
    let (env, layout) = (&medium.env, &medium.layout);
    let Some(mark) = layout.copy().filter(|mark| mark.state == CopyState::Backup) else {
        return Err(Error::invalid(format!("{} is not a backup", layout.root().display()))
            .with_hint("promote a folder that fieldstone backup made, and that was not promoted yet"));
    };
    // Files of a round that was broken off must not count from now on.
    let needed = Needed::of(shown)?;
    for tip in &shown.tips {
        let path = layout.log(tip.writer);
        let file = env.disk.open_plain(&path, true).map_err(|e| Error::io("open", &path, e))?;
        if file.stat().map_err(|e| Error::io("look at", &path, e))?.len > tip.ends.end() {
            file.set_len(tip.ends.end()).map_err(|e| Error::io("cut", &path, e))?;
            file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
        }
        if format >= ENDS_SINCE {
            end_log(env, layout, (mark.id, tip.uid), tip)?;
        }
    }
    remove_others(env, layout, &needed, &mark.beside)?;
    let folder = layout.logs();
    env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
    let mut former = vec![mark.id];
    former.extend(&mark.former);
    let promoted = CopyMark {
        state: CopyState::Promoted,
        id: random_id(env),
        former,
        time: env.clock.now(),
        beside: Vec::new(),
        ..mark.clone()
    };
    write_mark(env, layout, &promoted)?;
    Ok(promoted.id)
}

/// Ends a log whose writer goes on elsewhere, in the source.
fn end_log(env: &Env, layout: &Layout, (store, owner): (Id, u32), tip: &crate::medium::Tip) -> Result<()> {
    let end = LogEnd {
        writer: tip.writer,
        store,
        sequence: tip.record.sequence,
        end: tip.ends.end(),
        hash: tip.ends.hash,
        time: env.clock.now(),
        uid: env.identity.uid(),
        why: EndReason::Administrator,
        host: env.identity.host(),
    };
    let path = layout.logs().join(log_end::file_name(tip.writer));
    match end_file::make(env, layout, &end)? {
        Some((there, _)) if there.end.sequence == end.sequence => {}
        Some(_) => {
            // Of a round that was broken off: it names commits that are not shown.
            env.disk.unlink(&path).map_err(|e| Error::io("remove", &path, e))?;
            end_file::make(env, layout, &end)?;
        }
        // Without hard links a log ends when its writer has been silent for a day.
        None => return Ok(()),
    }
    match env.disk.stat(&path) {
        Ok(stat) if stat.uid != owner => {
            env.identity.give(&path, owner).or_else(|e| match env.identity.uid() {
                0 => Err(Error::io("give away", &path, e)),
                _ => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

/// The mark that was found, if it is of a backup of this store.
fn check_mark(mark: CopyMark, source: &BackupSource<'_>, layout: &Layout) -> Result<CopyMark> {
    let shown = layout.root().display();
    let is_same = mark.id == source.identity.id && mark.former[..] == source.medium.layout.former()[..];
    match mark.state {
        CopyState::Backup if is_same => Ok(mark),
        CopyState::Backup => Err(Code::TargetDiffers
            .error(format!("{shown} is a backup of another store, {}", mark.id))
            .with_hint("give a folder of its own for each store")),
        CopyState::Promoted => Err(Code::TargetDiffers
            .error(format!("{shown} was promoted: it is a store of its own"))
            .with_hint("give a new folder")),
    }
}

/// Conflict if a folder that is not a backup holds anything.
fn check_empty(env: &Env, layout: &Layout) -> Result<()> {
    let shown = layout.root().display();
    if read_marker(env, layout)?.is_some() {
        return Err(Code::TargetDiffers
            .error(format!("{shown} holds a store that is not a backup"))
            .with_hint("give a new folder"));
    }
    match env.disk.list_dir(layout.root()) {
        Ok(names) => match names.iter().map(|(name, _)| name).find(|name| !name.starts_with(UNFINISHED)) {
            None => Ok(()),
            Some(first) => Err(Code::TargetExists
                .error(format!("{shown} is not empty: it holds {first}"))
                .with_hint("give a new folder, or one that an earlier backup of this store made")),
        },
        Err(e) if e.kind() == NotFound => Ok(()),
        Err(e) if e.kind() == NotADirectory => Err(Code::FileKind
            .error(format!("{shown} is a file, and a backup is a folder"))
            .with_hint("give a new folder")),
        Err(e) => Err(Error::io("list", layout.root(), e)),
    }
}

/// Replaces the mark, durably.
fn write_mark(env: &Env, layout: &Layout, mark: &CopyMark) -> Result<()> {
    let (disk, root, path) = (&env.disk, layout.root(), layout.copy_mark());
    let temporary = root.join(format!("{UNFINISHED}{}", random_id(env)));
    let file = disk.create_alike(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    let written = write_all_at(&*file, &mark.encode(), 0)
        .and_then(|()| file.sync_data())
        .and_then(|()| disk.rename(&temporary, &path));
    if let Err(e) = written {
        let _ = disk.unlink(&temporary);
        return Err(Error::io("write", &path, e));
    }
    disk.sync_dir(root).map_err(|e| Error::io("sync", root, e))
}

/// Names in a folder; none if it is absent.
pub fn names(env: &Env, folder: &Path) -> Result<BTreeSet<String>> {
    match env.disk.list_dir(folder) {
        Ok(names) => Ok(names.into_iter().map(|(name, _)| name).collect()),
        Err(e) if e.kind() == NotFound => Ok(BTreeSet::new()),
        Err(e) => Err(Error::io("list", folder, e)),
    }
}

/// Removes files of a store that are not needed; how many.
fn remove_others(env: &Env, layout: &Layout, needed: &Needed, beside: &[BesideFile]) -> Result<u64> {
    let mut removed = 0;
    let mut remove = |path: &Path| match env.disk.unlink(path) {
        Ok(()) => {
            removed += 1;
            Ok(())
        }
        Err(e) if e.kind() == NotFound => Ok(()),
        Err(e) => Err(Error::io("remove", path, e)),
    };
    for name in names(env, &layout.logs())? {
        let path = format!("logs/{name}");
        let of_log = |log: Id| !needed.logs.contains_key(&super::needed::log_path(log));
        let is_other = if takeover::parse_file_name(&name).is_some() {
            !needed.takeovers.contains_key(&path)
        } else {
            log::parse_file_name(&name).or_else(|| log_end::parse_file_name(&name)).is_some_and(of_log)
        };
        if is_other || name.starts_with(UNFINISHED) {
            remove(&layout.root().join(path))?;
        }
    }
    for name in names(env, &layout.data())? {
        let path = format!("data/{name}");
        if data::parse_file_name(&name).is_some() && !needed.data.contains_key(&path) {
            remove(&layout.root().join(path))?;
        }
    }
    let kept: BTreeSet<&str> = beside.iter().map(|file| file.path.as_str()).collect();
    let mut folders: Vec<String> = FOLDERS.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(folder) = folders.pop() {
        for (name, kind) in env.disk.list_dir(&layout.root().join(&folder)).unwrap_or_default() {
            let path = format!("{folder}/{name}");
            match kind {
                FileKind::Directory => folders.push(path),
                FileKind::File if !kept.contains(path.as_str()) => remove(&layout.root().join(path))?,
                _ => {}
            }
        }
    }
    Ok(removed)
}
