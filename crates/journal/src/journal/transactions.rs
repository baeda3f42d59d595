//! Transactions: flushes that become visible together, and the decisions on them.
//!
//! A decision is a commit of its own. It looks for further flushes after it is durable, and a flush for a decision: one
//! of the two sees the other (J-19), so that no lock between processes is needed.

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::Decision;
use fieldstone_format::transaction_id::{BEGUN_SINCE, TransactionId};
use tracing::debug_span;

use super::commit::Committer;
use super::ended::{check_open, check_unsealed};
use crate::identity::random_id;
use crate::medium::clock_stamp;
use crate::session::Session;
use crate::snapshot::{ALL_KINDS, Snapshot, decided_for, prepared_for};
use crate::writer::Horizon;

/// The transactions of a store.
#[derive(Debug, Clone, Copy)]
pub struct Transactions<'a> {
    pub(super) committer: Committer<'a>,
}

impl Transactions<'_> {
    /// Opens a transaction that this handle will decide.
    pub fn begin(&self) -> Result<Id> {
        let access = self.committer.looks().access;
        access.check_writable()?;
        let id = self.new_id()?;
        self.committer.begun.add(id);
        Ok(id)
    }

    /// An id that nobody has; since version 2 it says when the transaction began, so that it can be forgotten one day.
    fn new_id(&self) -> Result<Id> {
        let looks = self.committer.looks();
        let env = looks.access.env();
        if looks.known_format() == 0 {
            looks.even_without_logs()?;
        }
        if looks.known_format() < BEGUN_SINCE {
            return Ok(random_id(env));
        }
        let mut random = [0; 6];
        env.rand.fill(&mut random);
        let begun = looks.known_stamp().saturating_add(1).max(clock_stamp(env.clock.now()));
        Ok(TransactionId { begun, lane: 0, random }.encode())
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
    pub fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        let session = &session.within(transaction);
        let _span = debug_span!("decide", %transaction, on, off).entered();
        if on & off != 0 {
            return Err(Error::invalid("a kind is to be made visible and invisible at once"));
        }
        if on != 0 {
            self.committer.flush(session)?;
        }
        let (horizon, snapshot) = looks.horizon()?;
        let user = looks.access.user(session);
        let state = decided_for(&snapshot, transaction, user);
        if state.is_some_and(|state| state.aborted()) {
            return check_open(&*looks.access.env().identity, session, None, &snapshot);
        }
        let prepared = prepared_for(&snapshot, transaction, user);
        self.check_decider(transaction, &prepared, &snapshot)?;
        let before = state.map_or(0, |state| state.kinds());
        let kinds = (before | on) & !off;
        let covers = match state {
            Some(state) if state.closed() => state.covers().to_vec(),
            _ => prepared,
        };
        let covered = |(writer, sequence): &(Id, u64)| {
            state.is_some_and(|state| state.covers_commit(*writer, *sequence))
        };
        let is_known = !snapshot.taken.is_forgotten(transaction, user);
        if is_known && kinds == before && covers.iter().all(covered) {
            return Ok(());
        }
        check_unsealed(transaction, user, &snapshot)?;
        self.write_decision(Decision { transaction, committed: true, kinds, covers }, horizon, session)
    }

    /// Denied where a transaction holds what other users flushed and nothing of ours: each user decides for their
    /// own logs.
    fn check_decider(&self, transaction: Id, covers: &[(Id, u64)], snapshot: &Snapshot) -> Result<()> {
        let other = snapshot.prepared_by_all(transaction).next();
        let Some(other) = other.filter(|_| covers.is_empty()) else { return Ok(()) };
        if self.committer.begun.contains(transaction) {
            return Ok(());
        }
        let name = self.committer.looks().access.env().identity.user_name(other.user);
        Err(Code::TransactionOwned
            .error(format!("transaction {transaction} is {name}'s: each user decides for his own logs"))
            .with_hint(format!("ask {name} to commit or abort it")))
    }

    /// Ends a transaction. `given`: somebody else may have its id.
    fn end(&self, transaction: Id, commit: bool, given: bool, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        let session = &session.within(transaction);
        let _span = debug_span!("decide", %transaction, commit).entered();
        if commit {
            self.committer.flush(session)?;
        } else {
            self.committer.unflushed().discard(session);
        }
        let (horizon, snapshot) = looks.horizon()?;
        let user = looks.access.user(session);
        let state = decided_for(&snapshot, transaction, user);
        if let Some(state) = state.filter(|state| state.closed()) {
            if state.aborted() == commit {
                check_open(&*looks.access.env().identity, session, None, &snapshot)?;
            }
        } else {
            let mut covers = prepared_for(&snapshot, transaction, user);
            let is_own = self.committer.begun.contains(transaction);
            // Nothing of it is there, and nothing was to be there.
            if commit || !is_own {
                check_unsealed(transaction, user, &snapshot)?;
            } else if snapshot.taken.is_forgotten(transaction, user) {
                self.committer.begun.remove(transaction);
                return Ok(());
            }
            self.check_decider(transaction, &covers, &snapshot)?;
            if planted::is(Planted::DecisionForgetsLog) && covers.len() > 1 {
                covers.pop();
            }
            // J-21: the end is written even of nothing, for those who have joined and not flushed yet.
            if given || !covers.is_empty() || state.is_some() {
                let kinds = ALL_KINDS;
                let decision = Decision { transaction, committed: commit, kinds, covers };
                self.write_decision(decision, horizon, session)?;
            }
        }
        self.committer.forget(transaction);
        self.committer.begun.remove(transaction);
        Ok(())
    }

    /// Writes a decision; Conflict where it ends a transaction that another process flushed into meanwhile.
    fn write_decision(&self, decision: Decision, horizon: Horizon, session: &Session) -> Result<()> {
        let transaction = decision.transaction;
        let ends = decision.committed && decision.kinds == ALL_KINDS;
        let flushed = self.committer.decide(decision, Vec::new(), horizon, session)?;
        // Those of the log itself may be more than were asked for.
        let covers = flushed.record.decision.as_ref().map_or(&[][..], |decision| &decision.covers);
        let looks = self.committer.looks();
        let snapshot = looks.snapshot()?;
        // R17: who forgets it looks at all decisions a grace after it was sealed; this one was durable before our look.
        if !planted::is(Planted::DeciderDoesNotLook) {
            check_unsealed(transaction, looks.access.user(session), &snapshot)?;
        }
        if !ends {
            return Ok(());
        }
        // Another process that flushed into the transaction while it was decided gets an error from its own flush, or we get
        // one here, because one of us always sees the other (J-19).
        let late: Vec<String> = prepared_for(&snapshot, transaction, looks.access.user(session))
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
