//! Transactions: what becomes visible together, and who decides.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::Decision;
use tracing::debug_span;

use super::Journal;
use crate::identity::random_id;
use crate::session::Session;
use crate::snapshot::{ALL_KINDS, Flushed, Snapshot};
use crate::writer::Horizon;

impl Journal {
    /// Opens a transaction that this handle will decide.
    pub fn begin(&self) -> Result<Id> {
        self.check_writable()?;
        let id = random_id(&self.env);
        self.state().begun.lock().insert(id);
        Ok(id)
    }

    /// Decides a transaction: visible for all, or never.
    pub fn decide(&self, transaction: Id, commit: bool, session: &Session) -> Result<()> {
        self.end(transaction, commit, true, session)
    }

    /// Aborts a transaction of which nobody but this handle has the id.
    pub fn abandon(&self, transaction: Id, session: &Session) -> Result<()> {
        self.end(transaction, false, false, session)
    }

    /// Makes kinds of content of a transaction visible (`on`) or invisible again (`off`), as bits.
    pub fn decide_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()> {
        self.check_writable()?;
        let session = &session.within(transaction);
        let _span = debug_span!("decide", %transaction, on, off).entered();
        if on & off != 0 {
            return Err(Error::invalid("a kind is to be made visible and invisible at once"));
        }
        if on != 0 {
            self.flush(session)?;
        }
        let (horizon, snapshot) = self.horizon()?;
        let user = session.user(&*self.env.identity);
        let state = snapshot.transaction_state(transaction, user);
        if state.is_some_and(|state| state.aborted()) {
            return self.check_open(session, None, &snapshot);
        }
        self.check_decider(transaction, &snapshot.prepared(transaction, user), &snapshot)?;
        let before = state.map_or(0, |state| state.kinds());
        let kinds = (before | on) & !off;
        let covers = match state {
            Some(state) if state.closed() => state.covers().to_vec(),
            _ => snapshot.prepared(transaction, user),
        };
        let covered = |(writer, sequence): &(Id, u64)| {
            state.is_some_and(|state| state.covers_commit(*writer, *sequence))
        };
        if kinds == before && covers.iter().all(covered) {
            return Ok(());
        }
        self.write_decision(Decision { transaction, committed: true, kinds, covers }, horizon, session)
    }

    /// Conflict where a session's transaction has ended and does not hold what we flushed last.
    pub(super) fn check_open(
        &self,
        session: &Session,
        flushed: Option<Flushed>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let Some(transaction) = session.transaction() else { return Ok(()) };
        let state = snapshot.transaction_state(transaction, session.user(&*self.env.identity));
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

    /// Ends a transaction. `given`: somebody else may have its id.
    fn end(&self, transaction: Id, commit: bool, given: bool, session: &Session) -> Result<()> {
        self.check_writable()?;
        let session = &session.within(transaction);
        let _span = debug_span!("decide", %transaction, commit).entered();
        if commit {
            self.flush(session)?;
        } else {
            self.discard(session)?;
        }
        let (horizon, snapshot) = self.horizon()?;
        let user = session.user(&*self.env.identity);
        let state = snapshot.transaction_state(transaction, user);
        if let Some(state) = state.filter(|state| state.closed()) {
            if state.aborted() == commit {
                self.check_open(session, None, &snapshot)?;
            }
        } else {
            let covers = snapshot.prepared(transaction, user);
            self.check_decider(transaction, &covers, &snapshot)?;
            // J-21: the end is written even of nothing, for those who have joined and not flushed yet.
            if given || !covers.is_empty() || state.is_some() {
                let kinds = ALL_KINDS;
                let decision = Decision { transaction, committed: commit, kinds, covers };
                self.write_decision(decision, horizon, session)?;
            }
        }
        let state = self.state();
        state.writer.lock().end(transaction);
        state.begun.lock().remove(&transaction);
        Ok(())
    }

    /// Writes a decision; Conflict where it ends a transaction that another process flushed into meanwhile.
    fn write_decision(&self, decision: Decision, horizon: Horizon, session: &Session) -> Result<()> {
        let transaction = decision.transaction;
        let ends = decision.committed && decision.kinds == ALL_KINDS;
        let flushed = self.commit_decision(decision, horizon, session)?;
        // Those of the log itself may be more than were asked for.
        let covers = flushed.record.decision.as_ref().map_or(&[][..], |decision| &decision.covers);
        if !ends {
            return Ok(());
        }
        // Another process that flushed into the transaction while it was decided gets an error from its own flush, or we get
        // one here, because one of us always sees the other (J-19).
        let late: Vec<String> = self
            .snapshot()?
            .prepared(transaction, session.user(&*self.env.identity))
            .into_iter()
            .filter(|(w, s)| !covers.iter().any(|(v, t)| v == w && t >= s))
            .map(|(w, _)| w.to_string())
            .collect();
        if late.is_empty() {
            return Ok(());
        }
        Err(Code::TransactionRaced
            .error(format!(
                "transaction {transaction} is committed, without what writer {} flushed meanwhile",
                late.join(", ")
            ))
            .with_hint("let all joined processes leave before the opener commits"))
    }
}
