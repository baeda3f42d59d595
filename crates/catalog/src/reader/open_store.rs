//! The store of a catalog, which all its processes share: its fields, its journal and its environment; and
//! its users.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::Id;
use fieldstone_format::catalog::RunName;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::{Journal, Session};

use super::port::FieldPort;
use crate::engine::Writer;
use crate::follower::roles::owner_level;
use crate::follower::writer_of;

/// A store that is open.
#[derive(Debug)]
pub struct OpenStore {
    pub fields: Arc<dyn FieldPort>,
    pub journal: Arc<Journal>,
    pub env: Env,
    /// `postgresql://…`; the embedded engine if absent.
    pub engine: Option<String>,
}

impl OpenStore {
    /// The user of a session.
    pub fn user(&self, session: &Session) -> u32 {
        session.user(&*self.env.identity)
    }

    /// The name of a user.
    pub fn user_name(&self, user: u32) -> String {
        self.env.identity.user_name(user)
    }

    /// This process, as in the header of its log.
    pub fn own_writer(&self) -> Writer {
        let (identity, origin) = (&self.env.identity, self.journal.access().origin());
        Writer {
            host: identity.host(),
            process: identity.process(),
            rank: origin.rank,
            job: origin.job.clone(),
            attempt: origin.attempt.clone(),
        }
    }

    /// The writer of a log, by the id in a hit; `None` if its header is damaged, or the log does not exist.
    pub fn writer(&self, log: Option<Id>) -> Result<Option<Writer>> {
        let Some(log) = log else { return Ok(Some(self.own_writer())) };
        self.journal.looks().snapshot().map(|snapshot| writer_of(&snapshot, log))
    }

    /// The owner of a run; `first` is the user who declared it first.
    pub fn owner(&self, run: &RunName, first: Option<u32>) -> Result<Option<u32>> {
        Ok(self.owner_at(&self.journal.looks().feed()?, run, first))
    }

    /// The owner of a run at the moment of a feed.
    pub fn owner_at(&self, feed: &Feed, run: &RunName, first: Option<u32>) -> Option<u32> {
        if first.is_some() && first == feed.folder_owner() {
            return first;
        }
        feed.owner(&owner_level(&self.journal.schema().now(), run)).or(first)
    }

    /// A feed taken after a look at every log; the flag is true if it holds nothing that `feed` lacks.
    pub fn newer(&self, feed: &Feed) -> Result<(Feed, bool)> {
        self.journal.looks().refresh()?;
        let later = self.journal.looks().feed()?;
        let newest = later.heads() == feed.heads();
        Ok((later, newest))
    }
}
