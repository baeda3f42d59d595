//! How a run goes: as its writers said last, and as their logs show.

/// How a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// Its writer said so, and has its log open.
    Running,
    /// It came to its end.
    Finished,
    /// It came to none, for this reason.
    Failed(String),
    /// Nobody said anything, or who said that it runs is gone.
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
