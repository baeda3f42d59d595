//! How a run goes: as its writers said last, and as their logs show.

use fieldstone_core::Result;
use fieldstone_format::catalog::{RunPhase, RunState};

use super::Run;

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

impl Run {
    /// How it goes.
    pub fn state(&self) -> Result<RunStatus> {
        let Some(said) = self.info()?.decl.state else { return Ok(RunStatus::Unknown) };
        Ok(match said.phase {
            RunPhase::Finished => RunStatus::Finished,
            RunPhase::Failed => RunStatus::Failed(said.note),
            // What this handle has not flushed yet is its own.
            RunPhase::Running if said.writer.is_none() => RunStatus::Running,
            RunPhase::Running => {
                let writers = self.store.status()?.writers;
                let open =
                    writers.iter().any(|writer| Some(writer.writer) == said.writer && writer.state == "open");
                if open { RunStatus::Running } else { RunStatus::Unknown }
            }
        })
    }

    /// Says that it is being written, and flushes: visible to all when this returns.
    pub fn begin(&self) -> Result<()> {
        self.say(RunPhase::Running, "")?;
        self.flush()
    }

    /// Says that it came to its end, and flushes.
    pub fn finish(&self) -> Result<()> {
        self.say(RunPhase::Finished, "")?;
        self.flush()
    }

    /// Says that it failed, and why. Visible to all when this returns; what was archived and not flushed is not
    /// flushed by it.
    pub fn fail(&self, why: &str) -> Result<()> {
        if self.session.transaction().is_some() {
            return self.say(RunPhase::Failed, why);
        }
        let transaction = self.store.transaction()?;
        let alone = Run { session: self.session.within(transaction.id()), ..self.clone() };
        alone.say(RunPhase::Failed, why)?;
        transaction.commit()
    }

    fn say(&self, phase: RunPhase, note: &str) -> Result<()> {
        let state = RunState { phase, note: note.to_owned(), writer: None };
        self.store.catalog().set_state(&self.name, state, &self.session)
    }

    /// Flushes, but for a run of a transaction, which whoever has that decides.
    fn flush(&self) -> Result<()> {
        match self.session.transaction() {
            None => self.store.flush(self.session.clone()),
            Some(_) => Ok(()),
        }
    }
}
