//! Found runs, kept while nothing can have changed the answer. So a lookup of the run before each of its
//! annotations does not have to read unflushed records.
//!
//! An answer stays valid at the same heads of the logs while the sessions have received nothing but steps,
//! variables, tags and attributes since: these belong to existing runs. The journal knows what they received,
//! even from another thread or from another catalog of the same store.

use std::collections::HashMap;

use fieldstone_core::sync::Mutex;
use fieldstone_format::catalog::keeps_runs;
use fieldstone_journal::Journal;
use fieldstone_journal::instant::{Cursors, Instant};
use fieldstone_journal::marks::Heads;
use fieldstone_journal::writer::PendingCursor;

use crate::query::RunInfo;
use crate::reader::consistent_read::ConsistentRead;
use fieldstone_journal::Session;
use fieldstone_journal::session::SessionKey;

/// Maximum number of sessions, and of runs in each, that are remembered.
const SESSIONS: usize = 64;
const RUNS: usize = 1024;

/// A name, with the project if it was given.
type Name = (Option<String>, String);

/// The answers in one session.
#[derive(Debug, Default)]
struct Answers {
    heads: Heads,
    pending: Cursors,
    runs: HashMap<Name, RunInfo>,
}

/// The answers in one process.
#[derive(Debug, Default)]
pub struct RunAnswers {
    sessions: Mutex<HashMap<SessionKey, Answers>>,
}

/// Moves a cursor on to another one, if all records between them leave the runs unchanged.
fn moves_on(journal: &Journal, session: &Session, cursor: &mut PendingCursor, to: PendingCursor) -> bool {
    if *cursor == to {
        return true;
    }
    let pending = journal.unflushed().behind(session, *cursor);
    let holds = pending.continues && pending.records.iter().all(keeps_runs);
    *cursor = pending.end;
    holds
}

impl RunAnswers {
    /// The answer for a name, if it is also valid in this read.
    pub fn find(
        &self,
        journal: &Journal,
        moment: &ConsistentRead,
        session: &Session,
        name: &Name,
    ) -> Option<RunInfo> {
        let mut sessions = self.sessions.lock();
        let own = sessions.get_mut(&session.key())?;
        let (pending, to) = (&mut own.pending, moment.seen.pending);
        let holds = own.heads == moment.seen.heads
            && moves_on(journal, &session.within(None), &mut pending.outside, to.outside)
            && (session.transaction().is_none()
                || moves_on(journal, session, &mut pending.within, to.within));
        if !holds {
            sessions.remove(&session.key());
            return None;
        }
        own.runs.get(name).cloned()
    }

    /// Records the answer from a consistent read.
    pub fn note(&self, moment: ConsistentRead, session: &Session, name: Name, run: &RunInfo) {
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS && !sessions.contains_key(&session.key()) {
            sessions.clear();
        }
        let own = sessions.entry(session.key()).or_default();
        let Instant { heads, pending, .. } = moment.seen;
        // Keep the other answers if they are valid up to this read; otherwise start again with this one.
        let same = own.heads == heads && own.pending == pending;
        if !same || own.runs.len() >= RUNS {
            *own = Answers { heads, pending, ..Answers::default() };
        }
        own.runs.insert(name, run.clone());
    }
}
