//! The state of a run: from its writers' last word, and from their logs.

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// Its writer marked it as running, and has its log open.
    Running,
    /// It finished.
    Finished,
    /// It failed, for this reason.
    Failed(String),
    /// No writer marked it, or the one that marked it as running has ended.
    Unknown,
}

impl RunStatus {
    /// "running", "finished", "failed" or "unknown".
    pub fn name(&self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Finished => "finished",
            RunStatus::Failed(_) => "failed",
            RunStatus::Unknown => "unknown",
        }
    }
}
