//! Ending the logs of processes that are gone, or silent, so that takeovers may take them over (R12).
//!
//! A log first gets a second name, `logs/WRITER.ending`, by a hard link; a grace later, an end file with the last whole
//! commit that is there then. A writer that only slept finds one of the two after its next sync, before it
//! acknowledges: it makes the end file itself, or obeys it. Invariants:
//! * nothing depends on the judgement that a process is gone: one that is not loses at most the flush that it is in;
//! * the moment of the second name is the time of the log's inode, which a link moves, and a write, too: so it never
//!   seems older than it is;
//! * a log that lost commits, or cannot be read, is not ended: its end would hide that;
//! * on a file system without hard links nothing is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind::{AlreadyExists, NotFound, PermissionDenied, Unsupported};
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::FileKind;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{LogHeader, parse_file_name};
use fieldstone_format::log_end::{EndReason, LogEnd, ending_name, file_name};

use super::FileMedium;
use super::end_file::{self, ENDS_SINCE};
use super::log_reader::read_header;
use super::open_files::OpenFiles;
use super::watch::FolderWatch;
use crate::medium::{Look, Tip, Watch};

/// A log that was not changed for so long, nanoseconds, by the file system's clock, is ended.
const SILENT: i64 = 86_400_000_000_000;
/// The least grace where another host's writes, and a second name, may show late, nanoseconds.
const LATE: u64 = 120_000_000_000;

/// A log that was ended for its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedLog {
    /// The log.
    pub writer: Id,
    /// The host and the number of its process, by the log's header.
    pub host: String,
    /// The number.
    pub process: u32,
    /// Its last commit; 0 if it has none.
    pub sequence: u64,
    /// Why it was ended.
    pub why: EndReason,
}

/// A log that may be ended.
struct Candidate {
    writer: Id,
    header: Arc<LogHeader>,
    /// Its last commit: sequence, address behind it, hash.
    last: (u64, u64, u32),
    /// When it was changed last, nanoseconds since 1970, by the file system's clock.
    changed: i64,
    inode: u64,
}

/// The moment of a call, and what it may do.
struct Ending<'a> {
    medium: &'a FileMedium,
    /// Names in the folder of logs.
    names: BTreeSet<String>,
    /// By the clock of the file system, before the look at the logs.
    now: i64,
    grace: u64,
}

impl FileMedium {
    /// Gives a second name to each log whose process is gone or silent, and ends those that have had one for `grace`
    /// nanoseconds; two minutes at least where files show late. Of logs of this user; root and the owner of the folder
    /// of logs end those of all users. Returns the logs that are ended now, durably.
    pub fn end_logs(&self, grace: u64) -> Result<Vec<EndedLog>> {
        let (disk, folder) = (&self.env.disk, self.layout.logs());
        let folder_owner = match disk.stat(&folder) {
            Ok(stat) => stat.uid,
            Err(e) if e.kind() == NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("look at", &folder, e)),
        };
        let user = self.env.identity.uid();
        let may_all = user == 0 || user == folder_owner;
        let grace = if disk.lags(&folder) { grace.max(LATE) } else { grace };
        // The look comes after this moment: it shows what was written a grace after a second name.
        let now = self.file_system_time()?;
        let names = disk.list_dir(&folder).map_err(|e| Error::io("list", &folder, e))?;
        let names = names.into_iter().filter(|(_, kind)| *kind == FileKind::File).map(|(name, _)| name);
        let ending = Ending { medium: self, names: names.collect(), now, grace };
        let (mut ended, mut named) = (Vec::new(), false);
        for candidate in ending.candidates(|owner| may_all || owner == user)? {
            match ending.step(&candidate)? {
                Step::Named => named = true,
                Step::Ended(log) => ended.push(log),
                Step::Nothing => {}
            }
        }
        if named {
            disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        Ok(ended)
    }

    /// The header of a log without a commit, where that is whole.
    pub fn header_of_empty(&self, writer: Id) -> Result<Option<LogHeader>> {
        let path = self.layout.log(writer);
        let file = match self.env.disk.open_plain(&path, false) {
            Ok(file) => file,
            Err(e) if matches!(e.kind(), NotFound | PermissionDenied) => return Ok(None),
            Err(e) => return Err(Error::io("open", &path, e)),
        };
        let len = file.stat().map_err(|e| Error::io("look at", &path, e))?.len;
        Ok(read_header(&*file, &path, len).ok().flatten().map(|(header, _)| header))
    }

    /// The time by the file system's clock: that of a file made now.
    pub fn file_system_time(&self) -> Result<i64> {
        let path = end_file::unfinished(&self.env, &self.layout);
        let made = self.env.disk.create_alike(&path).and_then(|file| file.stat_with_time());
        let _ = self.env.disk.unlink(&path);
        made.map(|(_, time)| time).map_err(|e| Error::io("make", &path, e))
    }
}

/// The header that stands for one which never was written whole: of no process, so that only its silence ends the log.
/// Not in a store that writers of version 1 may still write: they do not look for ends.
fn nameless(store: Id) -> LogHeader {
    LogHeader { version: ENDS_SINCE, store, host: String::new(), ..LogHeader::unknown(Id::LEAST) }
}

/// The outcome for one log.
enum Step {
    /// It has a second name now.
    Named,
    /// It has an end file now.
    Ended(EndedLog),
    /// Neither.
    Nothing,
}

impl Ending<'_> {
    /// The logs that may be ended: neither closed nor ended, whole, and of owners whose logs this user may end.
    fn candidates(&self, may: impl Fn(u32) -> bool) -> Result<Vec<Candidate>> {
        let FileMedium { env, layout, .. } = self.medium;
        // New handles: one of before may show an old length.
        let files = Arc::new(OpenFiles::new(env.disk.clone(), layout.clone()));
        let mut watch = FolderWatch::new(env.clone(), files);
        watch.look(Look::All)?;
        let findings = watch.findings();
        // Losses, too, also those that may only show late.
        let unsure: BTreeSet<&str> = findings.problems.iter().map(|problem| problem.file.as_str()).collect();
        let tips = watch.tips();
        let tips: BTreeMap<Id, &Arc<Tip>> = tips.iter().map(|tip| (tip.writer, tip)).collect();
        let is_ending = !watch.takeovers().is_empty()
            || tips.values().any(|tip| tip.header_damage.is_none() && tip.header.version >= ENDS_SINCE);
        let nameless = watch.store().filter(|_| is_ending).map(|store| nameless(store.id));
        let mut candidates = Vec::new();
        for writer in self.names.iter().filter_map(|name| parse_file_name(name)) {
            let has_end = self.names.contains(&file_name(writer));
            if has_end || unsure.contains(self.medium.files.shown(writer, 0).as_str()) {
                continue;
            }
            let path = layout.log(writer);
            let (stat, changed) = match env.disk.stat_with_time(&path) {
                Ok(found) => found,
                Err(e) if e.kind() == NotFound => continue,
                Err(e) => return Err(Error::io("look at", &path, e)),
            };
            let tip = tips.get(&writer);
            let has_ended = tip.is_some_and(|tip| watch.ended(tip).is_some());
            if has_ended || !may(stat.uid) || tip.is_none() && !watch.is_empty(writer) {
                continue;
            }
            let header = match tip {
                Some(tip) => Some(tip.header.clone()),
                None => self.medium.header_of_empty(writer)?.or_else(|| nameless.clone()).map(Arc::new),
            };
            let Some(header) = header.filter(|header| header.version >= ENDS_SINCE) else { continue };
            let behind = if header.writer == writer { header.encode().len() as u64 } else { 0 };
            let last = tip.map_or((0, behind, 0), |tip| (tip.record.sequence, tip.ends.end(), tip.ends.hash));
            candidates.push(Candidate { writer, header, last, changed, inode: stat.inode });
        }
        Ok(candidates)
    }

    /// Does what is due with a log.
    fn step(&self, log: &Candidate) -> Result<Step> {
        let FileMedium { env, layout, .. } = self.medium;
        let (disk, path) = (&env.disk, layout.log(log.writer));
        let header = &log.header;
        let is_here = header.host == env.identity.host();
        let is_gone = is_here && env.identity.has_ended(header.process, &header.lifetime);
        let second = layout.logs().join(ending_name(log.writer));
        if !self.names.contains(&ending_name(log.writer)) {
            let is_silent = self.now.saturating_sub(log.changed) >= SILENT;
            let linked = (is_gone || is_silent).then(|| disk.link(&path, &second));
            return match linked {
                None => Ok(Step::Nothing),
                Some(Ok(())) => Ok(Step::Named),
                // No links here, not for this user, or somebody was first.
                Some(Err(e))
                    if matches!(e.kind(), AlreadyExists | NotFound | PermissionDenied | Unsupported) =>
                {
                    Ok(Step::Nothing)
                }
                Some(Err(e)) => Err(Error::io("name", &second, e)),
            };
        }
        // Anybody may have put something else under that name: then its writer sees no second name.
        let is_second = disk.stat(&second).is_ok_and(|stat| stat.inode == log.inode);
        let since = match disk.open_plain(&path, false).and_then(|file| file.inode_time()) {
            Ok(since) if is_second => since,
            Ok(_) => return Ok(Step::Nothing),
            Err(e) if matches!(e.kind(), NotFound | PermissionDenied) => return Ok(Step::Nothing),
            Err(e) => return Err(Error::io("look at", &path, e)),
        };
        match u64::try_from(self.now.saturating_sub(since)) {
            Ok(age) if age >= self.grace => {}
            _ => return Ok(Step::Nothing),
        }
        self.end(log, &path, if is_gone { EndReason::Gone } else { EndReason::Silent })
    }

    /// Makes the end file.
    fn end(&self, log: &Candidate, path: &Path, why: EndReason) -> Result<Step> {
        let (env, header) = (&self.medium.env, &log.header);
        // A process that died before its sync left bytes that only this machine has.
        let synced = env.disk.open_plain(path, false).and_then(|file| file.sync_data());
        synced.map_err(|e| Error::io("sync", path, e))?;
        let (sequence, end, hash) = log.last;
        let own = LogEnd {
            writer: log.writer,
            store: header.store,
            sequence,
            end,
            hash,
            time: env.clock.now(),
            uid: env.identity.uid(),
            why,
            host: env.identity.host(),
        };
        let is_ours = end_file::make(env, &self.medium.layout, &own)?.is_some_and(|(_, is_ours)| is_ours);
        let (writer, host, process) = (log.writer, header.host.clone(), header.process);
        Ok(if is_ours {
            Step::Ended(EndedLog { writer, host, process, sequence, why })
        } else {
            Step::Nothing
        })
    }
}
