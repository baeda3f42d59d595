//! What a store says of itself, its checkpoint and its end.

use std::path::Path;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;

use super::{CheckpointOptions, CheckpointReport, Stats, Status, VerifyReport};

/// What a store says of itself, its checkpoint and its end.
pub trait Admin {
    /// Counts what a request selects, and the files and writers of the whole store.
    ///
    /// Damage of single fields is passed over: it is [`verify`](Self::verify)'s to name.
    fn stats(&self, request: &Request) -> Result<Stats>;

    /// Writers, undecided transactions, owners, problems.
    fn status(&self) -> Result<Status>;

    /// Logs that reads pass over, each with the reason: this user may not read it, it is a link or a pipe, it
    /// is of another store. What they hold is missing from every answer; a program warns its user.
    fn passed_over(&self) -> Result<Vec<String>>;

    /// Reads and compares everything a request selects, hidden versions too; for the empty request also the
    /// store's own structures.
    ///
    /// Damage is collected in the report, never thrown; an error says that it could not be looked at, and is
    /// no verdict.
    fn verify(&self, request: &Request) -> Result<VerifyReport>;

    /// The store's structures as text, line by line, for people: logs, commits, segments, and the versions of
    /// the fields that a request selects. The text is no format.
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
    /// What earlier failures took of this thread is raised, after what is left has been flushed: there is no
    /// later call.
    fn close(&self, session: &Session) -> Result<()>;
}
