//! Reports about a store, its checkpoint and its end.

use std::path::Path;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;

use super::{CheckpointOptions, CheckpointReport, Stats, StatsBy, StatsRow, Status, VerifyReport};

/// Reports about a store, its checkpoint and its end.
pub trait Admin {
    /// Counts what a request selects, and the files and writers of the whole store.
    ///
    /// Damage of single fields is skipped: it is [`verify`](Self::verify)'s to name.
    fn stats(&self, request: &Request) -> Result<Stats>;

    /// Fields and bytes of a selection, summed up; the rows are in the order of the values, those without a
    /// value first. Invalid for a keyword that the schema does not know.
    ///
    /// Damage of single fields is skipped: it is [`verify`](Self::verify)'s to name.
    fn stats_by(&self, request: &Request, by: &StatsBy) -> Result<Vec<StatsRow>>;

    /// Writers, undecided transactions, owners, problems.
    fn status(&self) -> Result<Status>;

    /// Logs that reads skip, each with the reason: this user may not read it, it is a link or a pipe, or it belongs
    /// to another store. Their content is missing from every answer; a program warns its user.
    fn skipped(&self) -> Result<Vec<String>>;

    /// Reads and compares everything a request selects, hidden versions too; for the empty request also the
    /// store's own structures.
    ///
    /// The report collects damage. An error says that the store could not be read, and is not a verdict on it.
    fn verify(&self, request: &Request) -> Result<VerifyReport>;

    /// The store's structures as text, line by line, for people: logs, commits, segments, and the versions of the
    /// fields that a request selects. The text has no stable format.
    fn dump(&self, request: &Request) -> Result<Vec<String>>;

    /// Flushes what was archived outside transactions, and writes all that is visible then to a folder,
    /// as an ordinary store.
    ///
    /// Durable when this returns; meanwhile others go on writing. Prepared commits of undecided transactions
    /// go with it, undecided. Only for a store in memory: `Invalid` for others, which are durable at each
    /// flush.
    fn checkpoint(
        &self,
        folder: &Path,
        options: &CheckpointOptions,
        session: &Session,
    ) -> Result<CheckpointReport>;

    /// Flushes what was archived outside transactions, and says that this handle writes no more.
    ///
    /// Raises the losses of this thread by earlier failures, after it has flushed the rest: there is no later call.
    fn close(&self, session: &Session) -> Result<()>;
}
