//! Who owns a run, and what others may do with it.
//!
//! A run and the dataset of its fields have one owner, where the schema lets a dataset be named by a run
//! alone ([`Schema::run_level`](fieldstone_core::schema::Schema::run_level)); else the run has an owner of
//! its own. Where the store names nobody, the user who declared the run first owns it; one that the owner of the
//! folder of logs declared is always his. What is refused here with an error does not count in the engine either, whoever wrote it into a log.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{Annotate, RunName};
use fieldstone_journal::Session;
use fieldstone_journal::feed::Feed;

use super::shown::run_text;
use crate::engine::Writer;
use crate::live::inner::Inner;
use crate::view::roles::owner_level;
use crate::view::writer_of;

impl Inner {
    /// The user of a session.
    pub fn user(&self, session: &Session) -> u32 {
        session.user(&*self.env.identity)
    }

    /// The name of a user.
    pub fn user_name(&self, user: u32) -> String {
        self.env.identity.user_name(user)
    }

    /// This process, as the header of its log says it.
    pub fn own_writer(&self) -> Writer {
        let (identity, origin) = (&self.env.identity, self.journal.origin());
        Writer {
            host: identity.host(),
            process: identity.process(),
            rank: origin.rank,
            job: origin.job.clone(),
            attempt: origin.attempt.clone(),
        }
    }

    /// The writer of a log, as a hit names it; `None` where its header is damaged, or the log is not there.
    pub fn writer(&self, log: Option<Id>) -> Result<Option<Writer>> {
        let Some(log) = log else { return Ok(Some(self.own_writer())) };
        self.journal.snapshot().map(|snapshot| writer_of(&snapshot, log))
    }

    /// The owner of a run; `first` is who declared it first.
    pub fn owner(&self, run: &RunName, first: Option<u32>) -> Result<Option<u32>> {
        Ok(self.owner_at(&self.journal.feed()?, run, first))
    }

    /// The same at the moment of a feed.
    pub fn owner_at(&self, feed: &Feed, run: &RunName, first: Option<u32>) -> Option<u32> {
        if first.is_some() && first == feed.folder_owner() {
            return first;
        }
        feed.owner(&owner_level(&self.journal.schema(), run)).or(first)
    }

    /// Makes sure that a run is ours: it is, or it is nobody's and this session claims it.
    pub fn need_own(&self, session: &Session, run: &RunName) -> Result<()> {
        if self.declarations().is_mine(session.key(), run) {
            return Ok(());
        }
        let owner = self.run_owner(session, run)?;
        self.claim_run(session, run, owner)
    }

    /// Claims a run for a session, unless it is another's.
    pub fn claim_run(&self, session: &Session, run: &RunName, owner: Option<u32>) -> Result<()> {
        if self.declarations().is_mine(session.key(), run) {
            return Ok(());
        }
        match owner {
            Some(owner) if owner != self.user(session) => return Err(self.owned_by(run, owner)),
            _ => self.journal.claim(owner_level(&self.journal.schema(), run), session)?,
        }
        self.declarations().cache_mine(session.key(), run);
        Ok(())
    }

    /// Refuses attributes of others where a run takes none.
    pub fn need_annotate(&self, session: &Session, run: &RunName, annotate: Annotate) -> Result<()> {
        if annotate == Annotate::All || self.declarations().is_mine(session.key(), run) {
            return Ok(());
        }
        let first = self.find_run(session, run)?.and_then(|info| info.first);
        match self.owner(run, first)? {
            Some(owner) if owner != self.user(session) => {
                let (run, name) = (run_text(run), self.user_name(owner));
                Err(Code::RunOwned
                    .error(format!("run {run} is annotated by its owner {name} alone"))
                    .with_hint(format!("ask {name} to annotate it, or annotate a run of your own")))
            }
            _ => Ok(()),
        }
    }

    /// The error for who would change another's run.
    pub fn owned_by(&self, run: &RunName, owner: u32) -> Error {
        let (run, name) = (run_text(run), self.user_name(owner));
        Code::RunOwned.error(format!("run {run} is owned by {name}")).with_hint(format!(
            "ask {name} for steps, variables and deletions; you may annotate it, and delete what you annotated"
        ))
    }
}
