//! Owners of runs, and the rights of other users.
//!
//! A run and the dataset of its fields have one owner if the schema lets a run alone name a dataset
//! ([`Schema::run_level`](fieldstone_core::schema::Schema::run_level)); otherwise the run has an owner of its
//! own. If the store names none, the first user who declared the run owns it; a run that the owner of the
//! folder of logs declared always belongs to that user. An operation that is refused here does not count in
//! the engine either, whoever writes it into a log.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{Annotate, RunName};
use fieldstone_journal::Session;

use super::Registry;
use super::shown::run_text;
use crate::follower::roles::owner_level;

impl Registry {
    /// Ensures that the session's user owns a run: either already, or because nobody does and this session
    /// claims it.
    pub fn need_own(&self, session: &Session, run: &RunName) -> Result<()> {
        if self.declarations().is_mine(session.key(), run) {
            return Ok(());
        }
        let owner = self.run_owner(session, run)?;
        self.claim_run(session, run, owner)
    }

    /// Refuses a run that another user owns.
    pub fn refuse_others(&self, session: &Session, run: &RunName) -> Result<()> {
        match self.run_owner(session, run)?.filter(|owner| *owner != self.store.user(session)) {
            Some(owner) => Err(self.owned_by(run, owner)),
            None => Ok(()),
        }
    }

    /// Claims a run for a session, unless another user owns it.
    pub fn claim_run(&self, session: &Session, run: &RunName, owner: Option<u32>) -> Result<()> {
        if self.declarations().is_mine(session.key(), run) {
            return Ok(());
        }
        match owner {
            Some(owner) if owner != self.store.user(session) => return Err(self.owned_by(run, owner)),
            _ => self
                .store
                .journal
                .datasets()
                .claim(owner_level(&self.store.journal.schema().now(), run), session)?,
        }
        self.declarations().cache_mine(session.key(), run);
        Ok(())
    }

    /// Refuses attributes of other users if a run does not allow them.
    pub fn need_annotate(&self, session: &Session, run: &RunName, annotate: Annotate) -> Result<()> {
        if annotate == Annotate::All || self.declarations().is_mine(session.key(), run) {
            return Ok(());
        }
        let first = self.find_run(session, run)?.and_then(|info| info.first);
        match self.store.owner(run, first)? {
            Some(owner) if owner != self.store.user(session) => {
                let (run, name) = (run_text(run), self.store.user_name(owner));
                Err(Code::RunOwned
                    .error(format!("only its owner {name} may annotate run {run}"))
                    .with_hint(format!("ask {name} to annotate it, or annotate a run of your own")))
            }
            _ => Ok(()),
        }
    }

    /// The error for a change to another user's run.
    pub fn owned_by(&self, run: &RunName, owner: u32) -> Error {
        let (run, name) = (run_text(run), self.store.user_name(owner));
        Code::RunOwned.error(format!("{name} owns run {run}")).with_hint(format!(
            "ask {name} for steps, variables and deletions; you may annotate the run, and delete your own attributes"
        ))
    }
}
