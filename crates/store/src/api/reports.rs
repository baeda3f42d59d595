//! Reports of a store: verify, stats, status. All fields are public and most have a default, because every
//! implementation of a store makes reports itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::Id;
use fieldstone_format::attempt::Origin;

#[cfg(doc)]
use super::Admin;

/// Something `verify` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The field, where the damage belongs to one.
    pub key: Option<String>,
    /// File, relative to the store's folder.
    pub file: String,
    /// The fault, in words.
    pub why: String,
}

/// The scope and the findings of [`Admin::verify`].
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Fields (versions and pieces) whose blocks were read.
    pub fields: u64,
    /// Bytes of blocks that were read and compared.
    pub bytes: u64,
    /// Files looked at.
    pub files: u64,
    /// The damage.
    pub damaged: Vec<Damage>,
    /// Notes other than damage: torn tails, orphaned bytes.
    pub notes: Vec<String>,
    /// Files beside the logs that fields stand in, relative to the store's folder.
    pub array_files: BTreeSet<String>,
    /// Losses that somebody accepted: they are not among what is damaged.
    pub accepted: Vec<AcceptanceReport>,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub fn ok(&self) -> bool {
        self.damaged.is_empty()
    }
}

/// Counts of a store, or of the fields that a request selects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datasets.
    pub datasets: u64,
    /// Indexes (second level).
    pub indexes: u64,
    /// Visible fields.
    pub fields: u64,
    /// Raw bytes of the visible fields.
    pub bytes: u64,
    /// Stored bytes of their blocks (compressed).
    pub stored_bytes: u64,
    /// Versions and pieces that newer ones hide.
    pub masked: u64,
    /// Writers.
    pub writers: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of all files of the store.
    pub file_bytes: u64,
    /// Files of the store.
    pub files: u64,
}

/// By which [`Admin::stats_by`] sums up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatsBy {
    /// The user to whom an entry's dataset belongs.
    Owner,
    /// The values of the first level.
    Dataset,
    /// The writer that archived an entry, by the id that names its log.
    Writer,
    /// The value of a keyword.
    Keyword(String),
}

impl StatsBy {
    /// As a user names it: `owner`, `dataset`, `writer` or a keyword.
    pub fn parse(name: &str) -> StatsBy {
        match name {
            "owner" => StatsBy::Owner,
            "dataset" => StatsBy::Dataset,
            "writer" => StatsBy::Writer,
            keyword => StatsBy::Keyword(keyword.to_owned()),
        }
    }
}

/// One row of [`Admin::stats_by`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatsRow {
    /// The owner, dataset, writer or value; `None` for fields without the keyword.
    pub name: Option<String>,
    /// Visible fields. A field of several pieces counts where its newest piece does.
    pub fields: u64,
    /// Their raw bytes.
    pub nbytes: u64,
    /// Bytes that their blocks take in the store.
    pub stored: u64,
    /// Bytes that blocks of hidden versions, and of removed and wiped fields take.
    pub dead: u64,
}

/// One writer as `status` shows it.
#[derive(Debug, Clone)]
pub struct WriterStatus {
    /// Its id, which names its log.
    pub writer: Id,
    /// Host it ran on.
    pub host: String,
    /// Process id there.
    pub process: u32,
    /// User.
    pub user: String,
    /// `open`; `closed`; `ended`: by an end file; `gone`: a process of this host that ended without closing; `silent`:
    /// one of another host that has not written for an hour, nobody here knows whether it lives.
    pub state: &'static str,
    /// Commits.
    pub commits: u64,
    /// Segments.
    pub segments: u64,
    /// When it last flushed, nanoseconds since 1970, by its clock.
    pub last_flush: i64,
    /// How far its clock is ahead of the file system's, nanoseconds, where it is off by a minute or more.
    pub clock_offset: Option<i64>,
    /// Bytes behind its last commit: being written, or torn.
    pub tail: u64,
    /// The attempt it is of, the scheduler's job and its rank there, as far as it named them.
    pub origin: Origin,
}

/// An open transaction as `status` shows it.
#[derive(Debug, Clone)]
pub struct TransactionStatus {
    /// Its id.
    pub id: Id,
    /// The writer of the flush: user, host, process.
    pub owners: Vec<String>,
    /// Fields prepared.
    pub fields: u64,
    /// Kinds of content that are visible already, as bits.
    pub kinds: u32,
    /// When it was first flushed into, nanoseconds since 1970.
    pub since: i64,
}

/// Something that is wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusProblem {
    /// Its code, for a program; none for a note that asks for no action.
    pub code: Option<Code>,
    /// The file, relative to the store's folder; empty where it concerns several.
    pub file: String,
    /// The fault, in words.
    pub why: String,
}

impl fmt::Display for StatusProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.is_empty() {
            true => f.write_str(&self.why),
            false => write!(f, "{}: {}", self.file, self.why),
        }
    }
}

/// A loss that somebody accepted: what is missing never counts again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptanceReport {
    /// The file that lost something, relative to the store's folder.
    pub file: String,
    /// The losses that are given up.
    pub what: String,
    /// How many fields are concerned, as far as they are known.
    pub fields: u64,
    /// Keys of some of them.
    pub keys: Vec<String>,
    /// The user that accepted it.
    pub user: String,
    /// When, nanoseconds since 1970, by the clock of whoever did.
    pub time: i64,
    /// Why, in words; empty where nobody said.
    pub why: String,
}

impl fmt::Display for AcceptanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; accepted by {}", self.file, self.what, self.user)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

/// The user that pinned the version of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatPin {
    /// The user.
    pub user: String,
    /// When, nanoseconds since 1970, by his clock.
    pub time: i64,
}

/// The report of [`Admin::status`].
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// The location of the store.
    pub url: String,
    /// Its id; `None` before the first commit.
    pub id: Option<Id>,
    /// Name of its schema, or `custom`.
    pub schema: String,
    /// Version of the format that the store is of, and is written in.
    pub format: u32,
    /// Its pin, which only the owner's upgrade raises; none where the version is that of its logs.
    pub format_pin: Option<FormatPin>,
    /// Its current version.
    pub version: String,
    /// Writers, by id.
    pub writers: Vec<WriterStatus>,
    /// Undecided transactions.
    pub transactions: Vec<TransactionStatus>,
    /// Owner of each dataset, where users differ; else the one owner.
    pub owners: Vec<String>,
    /// The fault, in words.
    pub problems: Vec<StatusProblem>,
    /// Losses that somebody accepted.
    pub accepted: Vec<AcceptanceReport>,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Files that can still be made there; `None` where nobody can say.
    pub free_inodes: Option<u64>,
    /// Bytes of each user's files.
    pub bytes_by_user: Vec<(String, u64)>,
    /// Fields archived by this handle and not yet flushed.
    pub unflushed: u64,
    /// Commands worth running for this user.
    pub advice: Vec<Advice>,
}

/// A command worth running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// The command, for a shell.
    pub command: String,
    /// Its gain, in words.
    pub gain: String,
    /// Whether numbers in these words are estimates.
    pub is_estimate: bool,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.command, self.gain)
    }
}

impl Status {
    /// The exit code of the program: 0, or that of the worst problem. Damage comes first, then what failed, then what
    /// this user may not.
    pub fn code(&self) -> u8 {
        let kinds = || self.problems.iter().filter_map(|problem| problem.code).map(Code::kind);
        let order = [ErrorKind::Corrupt, ErrorKind::Unavailable];
        let worst = order.into_iter().find(|kind| kinds().any(|k| k == *kind)).or_else(|| kinds().next());
        worst.map_or(0, ErrorKind::exit_code)
    }

    /// How many writers there are of each state, in the order of their names.
    pub fn states(&self) -> BTreeMap<&'static str, u64> {
        let mut states = BTreeMap::new();
        self.writers.iter().for_each(|writer| *states.entry(writer.state).or_default() += 1);
        states
    }
}
