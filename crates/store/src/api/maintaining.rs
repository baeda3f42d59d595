//! Maintenance: the steps that pay, and what came of each.

use std::fmt;

use fieldstone_core::Code;
use fieldstone_journal::Session;

/// How a store is maintained.
#[derive(Debug, Clone)]
pub struct Maintaining {
    /// How long a version stays after it was hidden, and a file after nothing names it any more, nanoseconds.
    pub grace: u64,
    /// Most bytes that are written again.
    pub max_bytes: Option<u64>,
    /// Most bytes that are copied in a second.
    pub rate: Option<u64>,
    /// Whether the steps are only reported.
    pub dry_run: bool,
    /// On whose behalf.
    pub session: Session,
}

impl Default for Maintaining {
    fn default() -> Maintaining {
        let grace = fieldstone_journal::compact::GRACE;
        Maintaining { grace, max_bytes: None, rate: None, dry_run: false, session: Session::default() }
    }
}

/// A kind of step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MaintainAction {
    /// Files are removed that nothing names since a grace.
    #[default]
    Sweep,
    /// Fields move to another store, as a rule says.
    Move,
    /// Fields vanish that a rule calls too old.
    Wipe,
    /// Versions go that rules let go.
    Purge,
    /// Ended logs become one file.
    Compact,
}

impl MaintainAction {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            MaintainAction::Sweep => "sweep",
            MaintainAction::Move => "move",
            MaintainAction::Wipe => "wipe",
            MaintainAction::Purge => "purge",
            MaintainAction::Compact => "compact",
        }
    }
}

/// How far maintenance has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaintainProgress {
    /// The step under way, from 1.
    pub step: u64,
    /// Its kind.
    pub action: MaintainAction,
    /// The rule that it is of, by its request or query; empty for other steps.
    pub request: String,
    /// Keys that were looked at, or entries that were written.
    pub done: u64,
    /// Bytes that are given back; an estimate before the step begins.
    pub nbytes: u64,
}

/// A step of maintenance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaintainStep {
    /// Its kind.
    pub action: MaintainAction,
    /// The request, or query, of the rule that it is of; empty for other steps.
    pub request: String,
    /// Whether it was made; else `why` says why not, and the numbers are estimates.
    pub done: bool,
    /// Fields that vanish or move, or of which versions go.
    pub fields: u64,
    /// Versions that go.
    pub versions: u64,
    /// Bytes that the step gives back, at once or after a grace; of a wipe those that a later purge gives back, before
    /// compression.
    pub nbytes: u64,
    /// Files that are not needed any more.
    pub files: u64,
    /// Bytes that were written again.
    pub rewritten: u64,
    /// How long it took, nanoseconds.
    pub nanoseconds: u64,
    /// Why it was left, or what is left to do.
    pub why: Option<String>,
    /// The error that ended it.
    pub code: Option<Code>,
}

impl fmt::Display for MaintainStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.action.as_str())?;
        if !self.request.is_empty() {
            write!(f, " {}", self.request)?;
        }
        match (self.done, &self.why) {
            (true, None) => write!(f, ": {} bytes, {} files", self.nbytes, self.files),
            (true, Some(why)) => write!(f, ": {} bytes, {} files; {why}", self.nbytes, self.files),
            (false, why) => write!(f, ": left: {}", why.as_deref().unwrap_or("nothing to do")),
        }
    }
}

/// The steps of maintenance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaintainReport {
    /// Each step, in the order in which they were made.
    pub steps: Vec<MaintainStep>,
    /// Files that stay until the grace is over.
    pub waiting: u64,
    /// Whether another call could do more, as this one was not to write more bytes.
    pub more: bool,
}

impl MaintainReport {
    /// The first step that an error ended.
    pub fn failed(&self) -> Option<&MaintainStep> {
        self.steps.iter().find(|step| step.code.is_some())
    }
}

impl fmt::Display for MaintainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            write!(f, "{}{step}", if i > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}
