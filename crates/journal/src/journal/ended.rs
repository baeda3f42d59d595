//! Transactions that have ended: nothing that comes into one later is ever visible.

use fieldstone_core::env::Identity;
use fieldstone_core::{Code, Result};

use crate::session::Session;
use crate::snapshot::{Flushed, Snapshot};

/// Conflict where a session's transaction has ended and does not hold what this handle flushed last.
pub fn check_open(
    identity: &dyn Identity,
    session: &Session,
    flushed: Option<&Flushed>,
    snapshot: &Snapshot,
) -> Result<()> {
    let Some(transaction) = session.transaction() else { return Ok(()) };
    let state = snapshot.transaction_state(transaction, session.user(identity));
    let Some(state) = state.filter(|state| state.closed()) else {
        return Ok(());
    };
    if flushed.is_some_and(|flushed| state.covers_commit(flushed.writer, flushed.ends.sequence)) {
        return Ok(());
    }
    let verb = if state.aborted() { "aborted" } else { "committed" };
    Err(Code::TransactionDecided
        .error(format!("transaction {transaction} is {verb} already: what comes later is never visible"))
        .with_hint("begin a new transaction"))
}
