//! Transactions that have ended: nothing that comes into one later is ever visible, and once one is sealed nobody decides on it
//! any more.

use fieldstone_core::env::Identity;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;

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
    let user = session.user(identity);
    if snapshot.taken.is_forgotten(transaction, user) {
        return Err(forgotten(transaction));
    }
    if flushed.is_none() && !snapshot.lists(transaction, user) {
        check_floor(transaction, user, snapshot)?;
    }
    let state = snapshot.transaction_state(transaction, user);
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

/// Conflict where a transaction that nothing lists began before a floor (R16): takeovers may have forgotten it, or may soon.
pub fn check_floor(transaction: Id, user: u32, snapshot: &Snapshot) -> Result<()> {
    match snapshot.is_below_announced_floor(transaction, user) {
        true => Err(forgotten(transaction)),
        false => Ok(()),
    }
}

/// Conflict where no decision on a transaction counts any more (R17).
pub fn check_unsealed(transaction: Id, user: u32, snapshot: &Snapshot) -> Result<()> {
    if snapshot.taken.is_forgotten(transaction, user) {
        return Err(forgotten(transaction));
    }
    match snapshot.taken.sealed(transaction, user)? {
        None | Some(0) => Ok(()),
        Some(_) => Err(Code::TransactionDecided
            .error(format!(
                "transaction {transaction} ended long ago: maintenance has sealed it, and it stays as it is"
            ))
            .with_hint("hide or remove its fields instead")),
    }
}

/// Conflict (R16).
fn forgotten(transaction: Id) -> Error {
    Code::TransactionDecided
        .error(format!(
            "transaction {transaction} has ended, and is forgotten: nothing that comes for it is ever visible"
        ))
        .with_hint("begin a new transaction")
}
