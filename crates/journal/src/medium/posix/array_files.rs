//! The folders of array files: who writes into them, and which of their files may go (array-files.md, 7; R28).
//!
//! A commit with entries that name files first leaves the name of its log in each of their folders, and then looks
//! whether the folder is closed. A purge first closes a folder, and then looks for names of logs there (R53). So
//! whoever comes second sees the other, however long either sleeps in between. A purge may have removed a whole folder by
//! then: so the commit also looks for the files. Invariants:
//! * a folder is closed only once each log named in it has ended, and no job says that it goes on;
//! * no commit names a file in a folder that is closed: what nothing names there then, nothing ever will;
//! * only files of this user's go, and only files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind::{AlreadyExists, NotFound, PermissionDenied, StorageFull};
use std::path::{Component, Path};

use fieldstone_core::env::{Env, FileKind};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log_end::{EndReason, LogEnd, file_name as end_name};

use super::FileMedium;
use super::create::{LATE, POLL};
use super::end_file;

/// The folder of array files in a store's.
const ARRAYS: &str = "arrays";
/// Prefix of the name of a log that a folder's files are written for.
const WRITER: &str = ".writer-";
/// The name that closes a folder.
const CLOSED: &str = ".closed";
/// Prefix of the flag of an open job.
const FLAG: &str = "open-";
/// Prefix of the name that condemns a mesh or a kept partition (mesh-files.md, 4).
pub const GONE: &str = ".gone-";
/// Suffix of a file that is being written.
const PART: &str = ".part";
/// Most folders within one another.
const DEPTH: usize = 16;
/// A folder without a name or flag is nobody's if nothing in it changed for so long, nanoseconds.
const SILENT: i64 = 86_400_000_000_000;
/// Nanoseconds of silence after which a job on another host counts as ended.
const WEEK: i64 = 7 * SILENT;

/// Whether a name in the folder of array files is one that keeps account of others.
pub fn is_mark(name: &str) -> bool {
    name == CLOSED || name.starts_with(WRITER)
}

/// Whether a name beside the logs says something of jobs or of other files, and holds no data.
pub fn is_note(name: &str) -> bool {
    name.starts_with(FLAG) || name.starts_with(GONE)
}

/// Whether the writer at the end of a file's name (`…PROCESS@HOST`, with or without `.part`) has ended: by its process,
/// if it ran on this host, else by its silence. Names of earlier releases do not end in a writer.
pub fn is_gone(env: &Env, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(PART).unwrap_or(name);
    let own = env.identity.writer_name();
    let (own_host, host) = (own.split_once('@'), name.rsplit_once('@'));
    if let (Some((_, own_host)), Some((before, host))) = (own_host, host)
        && own_host == host
    {
        let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        return digits.parse().is_ok_and(|process| !env.identity.alive(process));
    }
    let changed = env.disk.stat_with_time(path).map(|(_, changed)| changed);
    changed.is_ok_and(|changed| env.clock.now().saturating_sub(changed) > WEEK)
}

/// The answer of whoever knows the logs of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogState {
    /// Its writer may commit.
    Living,
    /// Nothing is added to it any more.
    Ended,
    /// No log has this name: its writer may not have begun it yet.
    Unknown,
}

/// The content of a folder.
#[derive(Debug, Default)]
struct Folder {
    files: Vec<String>,
    folders: Vec<String>,
    flags: Vec<String>,
    writers: Vec<Id>,
    is_closed: bool,
}

/// The folders of array files in a store's folder, and files that have a writer and no log.
#[derive(Debug, Clone, Copy)]
pub struct ArrayFolders<'a> {
    medium: &'a FileMedium,
}

/// A look at all folders of array files.
struct Closing<'a> {
    folders: ArrayFolders<'a>,
    state: &'a dyn Fn(Id) -> Result<LogState>,
    /// Whether folders are closed; else only those that could be.
    doit: bool,
    found: BTreeMap<String, u64>,
}

/// The error of a flush whose files, or whose folder, a purge has taken away.
fn taken_away(how: &str, path: &str) -> Error {
    Code::LogEnded
        .error(format!("a purge has {how} {path}, because its job had ended, or was silent for a day"))
        .with_hint("open the job again: it writes files of its own")
}

impl<'a> ArrayFolders<'a> {
    /// Of a store.
    pub fn of(medium: &'a FileMedium) -> ArrayFolders<'a> {
        ArrayFolders { medium }
    }

    /// Before a commit to a log whose entries name these files: leaves the log's name in their folders. Conflict where a
    /// purge closed one, or has removed files of one that it closed.
    pub fn note(self, log: Id, paths: &BTreeSet<&str>) -> Result<()> {
        let disk = &self.medium.env.disk;
        let folders: BTreeSet<&str> =
            paths.iter().filter_map(|path| path.rsplit_once('/')).map(|(folder, _)| folder).collect();
        for within in folders.into_iter().filter(|within| within.starts_with(ARRAYS)) {
            let folder = self.medium.layout.root().join(within);
            let mark = folder.join(format!("{WRITER}{log}"));
            match disk.create_alike(&mark) {
                Ok(_) => {}
                // One of another user's, whose purges free only files of their own.
                Err(e) if matches!(e.kind(), AlreadyExists | PermissionDenied) => {}
                Err(e) if e.kind() == NotFound => return Err(taken_away("removed", within)),
                Err(e) => return Err(Error::io("make", &mark, e)),
            }
            if disk.stat(&folder.join(CLOSED)).is_ok() {
                return Err(taken_away("closed", within));
            }
        }
        // The name that closes a folder goes after its files: where it is not there and they are, they stay.
        match paths.iter().find(|path| path.starts_with(ARRAYS) && self.is_missing(path)) {
            Some(missing) => Err(taken_away("removed", missing)),
            None => Ok(()),
        }
    }

    /// Whether a file is not there; one of another host may show late.
    fn is_missing(self, path: &str) -> bool {
        let (env, path) = (&self.medium.env, self.medium.layout.root().join(path));
        let patience = if env.disk.lags(self.medium.layout.root()) { LATE } else { 0 };
        let mut waited = 0;
        while env.disk.stat(&path).is_err_and(|e| e.kind() == NotFound) {
            if waited >= patience {
                return true;
            }
            env.clock.sleep(POLL);
            waited += POLL;
        }
        false
    }

    /// Closes the folders of array files whose jobs have ended (or with `doit: false`, finds them); this user's files in
    /// them, with their bytes.
    pub fn close(self, doit: bool, state: &dyn Fn(Id) -> Result<LogState>) -> Result<BTreeMap<String, u64>> {
        let mut walk = Closing { folders: self, state, doit, found: BTreeMap::new() };
        walk.folder(ARRAYS, (DEPTH, false))?;
        Ok(walk.found)
    }

    /// Whether this user's array file has this path in the store, and no link leads to it.
    pub fn has(self, path: &str) -> bool {
        let (disk, root) = (&self.medium.env.disk, self.medium.layout.root());
        let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let Some((parents, _)) = path.rsplit_once('/').filter(|_| is_plain) else { return false };
        // A folder that is a link is listed as neither.
        let mut above = String::new();
        for part in parents.split('/') {
            let listed = disk.list_dir(&root.join(&above)).unwrap_or_default();
            if !listed.iter().any(|(name, kind)| name == part && *kind == FileKind::Directory) {
                return false;
            }
            above = if above.is_empty() { part.to_owned() } else { format!("{above}/{part}") };
        }
        let stat = disk.stat(&root.join(path));
        stat.is_ok_and(|stat| stat.kind == FileKind::File && stat.uid == self.medium.env.identity.uid())
    }

    /// Removes folders of array files in which nothing is left but marks.
    pub fn remove(self, within: &str) {
        let disk = &self.medium.env.disk;
        let folder = self.medium.layout.root().join(within);
        let Ok(names) = disk.list_dir(&folder) else { return };
        if within == ARRAYS || !names.iter().all(|(name, kind)| *kind == FileKind::File && is_mark(name)) {
            return;
        }
        // The name that closes it goes last: until then it is closed.
        let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable_by_key(|name| name == CLOSED);
        let gone = names.iter().try_for_each(|name| disk.unlink(&folder.join(name)));
        if gone.and_then(|()| disk.remove_dir(&folder)).is_ok()
            && let Some((above, _)) = within.rsplit_once('/')
        {
            self.remove(above);
        }
    }

    fn list(self, within: &str) -> Result<Option<Folder>> {
        let path = self.medium.layout.root().join(within);
        let names = match self.medium.env.disk.list_dir(&path) {
            Ok(names) => names,
            Err(e) if matches!(e.kind(), NotFound | PermissionDenied) => return Ok(None),
            Err(e) => return Err(Error::io("list", &path, e)),
        };
        let mut folder = Folder::default();
        for (name, kind) in names {
            match (kind, name.strip_prefix(WRITER)) {
                (FileKind::Directory, _) => folder.folders.push(name),
                (FileKind::Other, _) => {}
                (FileKind::File, Some(id)) => folder.writers.extend(Id::parse(id)),
                (FileKind::File, None) if name == CLOSED => folder.is_closed = true,
                (FileKind::File, None) if name.starts_with(FLAG) => folder.flags.push(name),
                (FileKind::File, None) => folder.files.push(name),
            }
        }
        Ok(Some(folder))
    }
}

impl Closing<'_> {
    /// `is_open`: a job above says that it goes on.
    fn folder(&mut self, within: &str, (depth, is_open): (usize, bool)) -> Result<()> {
        let Some(folder) = self.folders.list(within)? else { return Ok(()) };
        let is_open = is_open || self.is_flagged(within, &folder);
        if !folder.files.is_empty() && !is_open && (folder.is_closed || self.close(within, &folder)?) {
            let (disk, root) = (&self.folders.medium.env.disk, self.folders.medium.layout.root());
            for path in folder.files.iter().map(|name| format!("{within}/{name}")) {
                if let Ok(stat) = disk.stat(&root.join(&path))
                    && stat.uid == self.folders.medium.env.identity.uid()
                {
                    self.found.insert(path, stat.len);
                }
            }
        }
        for name in folder.folders.iter().filter(|_| depth > 0) {
            self.folder(&format!("{within}/{name}"), (depth - 1, is_open))?;
        }
        Ok(())
    }

    fn is_flagged(&self, within: &str, folder: &Folder) -> bool {
        let path = self.folders.medium.layout.root().join(within);
        folder.flags.iter().any(|flag| !is_gone(&self.folders.medium.env, &path.join(flag)))
    }

    /// Closes a folder, if its job has ended; whether it is closed.
    fn close(&self, within: &str, folder: &Folder) -> Result<bool> {
        let is_own = self.is_own(within, folder);
        if !is_own || !self.has_ended(within, folder)? {
            return Ok(false);
        }
        if !self.doit {
            return Ok(true);
        }
        let (disk, path) = (&self.folders.medium.env.disk, self.folders.medium.layout.root().join(within));
        match disk.create_alike(&path.join(CLOSED)) {
            Ok(_) => {}
            Err(e) if e.kind() == AlreadyExists => {}
            // Others' folders stay open; without room there is another time.
            Err(e) if matches!(e.kind(), NotFound | PermissionDenied | StorageFull) => return Ok(false),
            Err(e) => return Err(Error::io("close", &path, e)),
        }
        // R53: the record is there, and only now the look counts.
        let Some(now) = self.folders.list(within)? else { return Ok(false) };
        let stays = !self.is_flagged(within, &now) && self.have_ended(&now.writers)?;
        if !stays {
            let _ = disk.unlink(&path.join(CLOSED));
        }
        Ok(stays)
    }

    /// Whether all files are this user's.
    fn is_own(&self, within: &str, folder: &Folder) -> bool {
        let (disk, path) = (&self.folders.medium.env.disk, self.folders.medium.layout.root().join(within));
        let uid = self.folders.medium.env.identity.uid();
        folder.files.iter().all(|name| disk.stat(&path.join(name)).is_ok_and(|stat| stat.uid == uid))
    }

    fn has_ended(&self, within: &str, folder: &Folder) -> Result<bool> {
        if !folder.writers.is_empty() {
            return self.have_ended(&folder.writers);
        }
        // Of a job that has committed nothing yet, or of an earlier release.
        Ok(self.is_silent(within, folder.files.iter().map(String::as_str)))
    }

    fn is_silent<'b>(&self, within: &str, names: impl IntoIterator<Item = &'b str>) -> bool {
        let (env, path) = (&self.folders.medium.env, self.folders.medium.layout.root().join(within));
        names.into_iter().all(|name| {
            let changed = env.disk.stat_with_time(&path.join(name));
            changed.is_ok_and(|(_, changed)| env.clock.now().saturating_sub(changed) >= SILENT)
        })
    }

    fn have_ended(&self, writers: &[Id]) -> Result<bool> {
        for writer in writers {
            let has_ended = match (self.state)(*writer)? {
                LogState::Living => false,
                LogState::Ended => true,
                LogState::Unknown => self.folders.has_end(*writer),
            };
            if !has_ended {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Writers without a log: one that is drawn has data logs, and names in folders of array files, before its first commit.
impl ArrayFolders<'_> {
    fn has_end(&self, writer: Id) -> bool {
        self.medium.env.disk.stat(&self.medium.layout.logs().join(end_name(writer))).is_ok()
    }

    /// Ends writers without a log that left files and were silent for a day: their logs will never count (R65). `is_known`:
    /// whether a log or a takeover has this name, or anything else that says whose its files are. The number of them.
    pub fn end_logless(self, store: Id, is_known: &dyn Fn(Id) -> Result<bool>) -> Result<u64> {
        let mut silent: BTreeMap<Id, bool> = BTreeMap::new();
        for name in self.medium.names_in("data")? {
            if let Some((writer, _)) = fieldstone_format::data::parse_file_name(&name) {
                let path = self.medium.layout.data().join(name);
                silent
                    .entry(writer)
                    .and_modify(|all| *all &= self.is_left(&path))
                    .or_insert(self.is_left(&path));
            }
        }
        self.writers_of_arrays(ARRAYS, DEPTH, &mut silent)?;
        let mut ended = 0;
        for (writer, _) in silent.into_iter().filter(|(_, is_silent)| *is_silent) {
            let has_log = self.medium.env.disk.stat(&self.medium.layout.log(writer)).is_ok();
            if has_log || self.has_end(writer) || is_known(writer)? {
                continue;
            }
            let end = LogEnd {
                writer,
                store,
                sequence: 0,
                end: 0,
                hash: 0,
                time: self.medium.env.clock.now(),
                uid: self.medium.env.identity.uid(),
                why: EndReason::Silent,
                host: self.medium.env.identity.host(),
            };
            ended += u64::from(end_file::make(&self.medium.env, &self.medium.layout, &end)?.is_some());
        }
        Ok(ended)
    }

    /// Whether a file is this user's, and nobody changed it for a day.
    fn is_left(&self, path: &Path) -> bool {
        let found = self.medium.env.disk.stat_with_time(path);
        found.is_ok_and(|(stat, changed)| {
            stat.uid == self.medium.env.identity.uid()
                && self.medium.env.clock.now().saturating_sub(changed) >= SILENT
        })
    }

    fn writers_of_arrays(&self, within: &str, depth: usize, silent: &mut BTreeMap<Id, bool>) -> Result<()> {
        let Some(folder) = self.list(within)? else { return Ok(()) };
        let path = self.medium.layout.root().join(within);
        for writer in &folder.writers {
            let is_left = self.is_left(&path.join(format!("{WRITER}{writer}")));
            silent.entry(*writer).and_modify(|all| *all &= is_left).or_insert(is_left);
        }
        for name in folder.folders.iter().filter(|_| depth > 0) {
            self.writers_of_arrays(&format!("{within}/{name}"), depth - 1, silent)?;
        }
        Ok(())
    }
}
