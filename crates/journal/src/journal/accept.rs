//! Accepting what a writer's files lost: who may, what the folder shows now, and the commit that says so.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::acceptance::{self, Acceptance};
use fieldstone_format::{Id, schema_extension};

use super::commit::Committer;
use super::looks::Looks;
use crate::medium::Look;
use crate::session::Session;
use crate::snapshot::{AcceptedLoss, Snapshot};

/// How often a log is looked at that seems to have lost commits and may only show late, nanoseconds.
const LATE: u64 = 1_000_000_000;

/// A writer's log as the medium shows it to a look without a past.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileState {
    /// The user whose it is, or was; `None` where nothing says so.
    pub owner: Option<u32>,
    /// The gap in the log: the last readable commit, and the last known one.
    pub beyond: Option<(u64, u64)>,
    /// Whether its writer is a process of this host that lives and has not closed it.
    pub is_alive: bool,
}

/// Losses that are accepted.
#[derive(Debug, Clone, Copy)]
pub struct Acceptances<'a> {
    pub(super) committer: Committer<'a>,
}

impl Acceptances<'_> {
    /// Looks at a writer's log as if for the first time.
    pub fn file_state(&self, writer: Id) -> Result<FileState> {
        let Looks { access, medium, .. } = self.committer.looks();
        let mut watch = medium.watch();
        watch.look(Look::All)?;
        // A log that only shows late is not lost.
        while watch.findings().late.iter().any(|loss| loss.log == writer) {
            access.env().clock.sleep(LATE);
            watch.look(Look::All)?;
        }
        let findings = watch.findings();
        let loss = findings.losses.iter().find(|loss| loss.log == writer);
        let tips = watch.tips();
        let tip = tips.iter().find(|tip| tip.writer == writer);
        let identity = &access.env().identity;
        let is_alive = tip.is_some_and(|tip| {
            let closed = watch.announced(tip).is_some_and(|(_, closed)| closed);
            let has_ended = closed || watch.ended(tip).is_some();
            !has_ended && tip.header.host == identity.host() && identity.alive(tip.header.process)
        });
        // A log that is there and cannot be read as one at all.
        let file = medium.shown(writer, 0);
        let unread = tip.is_none() && findings.problems.iter().any(|p| p.file == file && p.damage);
        let beyond = loss.map(|loss| (loss.seen, loss.known)).or_else(|| unread.then_some((0, 0)));
        Ok(FileState { owner: watch.owner(writer), beyond, is_alive })
    }

    /// Denied for others than root, the owner of the folder of logs, and whoever owns the log of a writer.
    pub fn check_may(
        &self,
        writer: Id,
        owner: Option<u32>,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<()> {
        let Looks { access, medium, .. } = self.committer.looks();
        let (user, identity) = (access.user(session), &access.env().identity);
        if user == 0 || owner == Some(user) || snapshot.folder_owner.is_none_or(|owner| owner == user) {
            return Ok(());
        }
        let file = medium.shown(writer, 0);
        let name = |uid: Option<u32>| uid.map_or_else(|| "nobody".to_owned(), |uid| identity.user_name(uid));
        let (of_log, of_store) = (name(owner), name(snapshot.folder_owner));
        Err(Code::StoreOwned
            .error(format!("{file} belongs to {of_log}: its owner, or the store's, has to accept the loss"))
            .with_hint(format!("ask {of_store}, the owner of the folder logs")))
    }

    /// Commits an acceptance, durably; Conflict where it does not count.
    pub fn accept(&self, acceptance: Acceptance, session: &Session) -> Result<Arc<AcceptedLoss>> {
        let looks = self.committer.looks();
        let (horizon, _) = looks.horizon()?;
        let records = vec![acceptance::encode(&acceptance)];
        let flushed = self.committer.decide(schema_extension::flag(), records, horizon, session)?;
        let snapshot = looks.snapshot()?;
        let made = (flushed.writer, flushed.record.sequence);
        let counted = snapshot.accepted.all().iter().find(|loss| (loss.log, loss.sequence) == made);
        counted.cloned().ok_or_else(|| {
            Error::conflict("the acceptance does not count: whose the file is has changed meanwhile")
                .with_hint("look at fieldstone status, and accept again")
        })
    }
}
