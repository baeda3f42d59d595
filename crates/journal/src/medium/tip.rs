//! The last commit of a log, and what a look at the logs found wrong.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, FrameInfo, LogHeader};

/// How much a look looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The logs that moved according to hints, and all logs once a second.
    Hints,
    /// Every log that is not closed.
    All,
}

/// The last commit of a log that counts.
#[derive(Debug, Clone)]
pub struct Tip {
    /// The log's writer.
    pub writer: Id,
    /// The owner of the log; decides promise 10.
    pub uid: u32,
    /// The writer as the log's header describes it.
    pub header: Arc<LogHeader>,
    /// The error in the header, which then describes nothing.
    pub header_damage: Option<String>,
    /// The commit.
    pub record: Arc<CommitRecord>,
    /// The extent of its frame.
    pub ends: FrameInfo,
    /// When the log was changed last, nanoseconds since 1970, by the medium's clock.
    pub changed: i64,
}

impl Tip {
    /// Checks that this commit can count: its stamp has to be plausible, and it has to follow `before`, the last one.
    /// Media call it before they show a commit.
    pub fn check(&self, before: Option<&Tip>, now: i64) -> Result<()> {
        let sequence = self.record.sequence;
        if !is_possible(self.record.stamp, now) {
            return Err(Error::corrupt(format!(
                "commit {sequence} has a stamp that lies centuries ahead: none of its writer's commits count"
            )));
        }
        match before.map(|tip| &*tip.record) {
            Some(before) if sequence <= before.sequence || self.record.stamp <= before.stamp => {
                Err(Error::corrupt(format!("commit {sequence} does not follow commit {}", before.sequence)))
            }
            _ => Ok(()),
        }
    }

    /// The log with one commit more.
    pub fn followed_by(&self, record: &Arc<CommitRecord>, ends: FrameInfo) -> Tip {
        Tip {
            record: record.clone(),
            ends,
            // As far ahead of this process's clock as before.
            changed: self.changed.saturating_add(record.time.saturating_sub(self.record.time)),
            ..self.clone()
        }
    }
}

/// The problems that a look found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Damaged or skipped parts, and other notes.
    pub problems: Vec<Problem>,
    /// Parts of a version of the format that this release does not know.
    pub foreign: Vec<String>,
    /// Logs that lost commits.
    pub losses: Vec<Loss>,
    /// Logs that seem to have lost commits, or may only show late.
    pub late: Vec<Loss>,
    /// A sign of logs that are gone with their folder.
    pub without_logs: Option<LogsGone>,
}

/// Something wrong that was found while looking at the logs; reads go on without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File, relative to the store.
    pub file: String,
    /// The fault, in words.
    pub why: String,
    /// Whether stored data are damaged; else it is only worth knowing (a torn tail).
    pub damage: bool,
    /// Whether what the file holds is missing from reads: it is a log that this user may not read, or none of
    /// this store's.
    pub skipped: bool,
}

/// A store whose folder of logs is gone, and with it all that they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogsGone {
    /// The file with the problem.
    pub store: String,
    /// A file of it that is still there: its path within the store.
    pub remains: String,
}

impl LogsGone {
    /// The error of each call that needs the logs.
    pub fn error(&self) -> Error {
        Code::LogsGone.error(format!("{}; {} is there", self.what(), self.remains)).with_hint(
            "mount its file system, or restore logs from a backup: it says all that the store holds; for a new store \
             give another folder",
        )
    }

    /// The fault, in words.
    pub fn what(&self) -> String {
        format!("the folder logs of the store at {} is missing", self.store)
    }
}

/// A log that lost commits: it is missing, or shorter than what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The log.
    pub log: Id,
    /// The user whose log it is.
    pub owner: u32,
    /// The last commit that can be read; 0 where none can.
    pub seen: u64,
    /// The last one that is known of.
    pub known: u64,
    /// File, relative to the store.
    pub file: String,
    /// The missing part.
    pub why: String,
}

impl Loss {
    /// The error of a read that the missing commits may concern.
    pub fn error(&self) -> Error {
        Code::LogShortened
            .error(format!("{}: {}: what was flushed then may be missing here", self.file, self.why))
            .with_hint(
                "mend it from a backup: fieldstone repair STORE --from BACKUP; to read what is left, retrieve or list with strict=False; to give up \
                 what is missing for good: fieldstone accept STORE FILE",
            )
    }
}

/// A century, nanoseconds.
const CENTURY: u64 = 36_525 * 86_400 * 1_000_000_000;
/// 2026-01-01, nanoseconds since 1970: no clock is believed to be older than this release.
const RELEASE: u64 = 1_767_225_600_000_000_000;

/// A clock's time as a stamp. 0 of a clock that no host has right: before 1970, or a century after this release.
/// Others would not follow its commits, nor count them at all (J-18); these take the place behind what is there.
pub fn clock_stamp(now: i64) -> u64 {
    u64::try_from(now).ok().filter(|now| *now < RELEASE + CENTURY).unwrap_or(0)
}

fn century_ahead(now: i64) -> u64 {
    u64::try_from(now).unwrap_or(0).max(RELEASE).saturating_add(CENTURY)
}

/// Whether later commits follow a stamp. Clocks may be wrong, but a stamp a century ahead of this host's clock is not
/// plausible: following it would exhaust the numbers (J-18).
pub fn is_believed(stamp: u64, now: i64) -> bool {
    stamp < century_ahead(now)
}

/// Whether commits with a stamp count at all. A century more than [`is_believed`]: honest commits that follow
/// one that was just believed stay readable for everybody.
fn is_possible(stamp: u64, now: i64) -> bool {
    stamp < century_ahead(now).saturating_add(CENTURY)
}
