//! The sessions of a writer: what each has given and not flushed, and what it lost.
//!
//! A [`SessionState`] is made when something is given for its session, and dropped when nothing is left to remember of it.
//! All of it is memory, under the writer's lock: nothing here writes, or knows of a log.
//!
//! Invariants:
//! * the numbers of batches grow over all sessions, in the order in which the batches were begun;
//! * what a failure takes is counted for its session, before anyone learns of it;
//! * a transaction that was robbed stays so until it has ended here.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::key_text;
use fieldstone_format::log::SideRecord;

use super::batch::Batch;
use super::loss::{Failed, Loss, Losses, Robbed};
use super::session_state::SessionState;
use crate::author::Author;
use crate::session::SessionKey;
use crate::snapshot::Flushed;

/// The unflushed content of the sessions of one process, and their losses.
#[derive(Debug, Default)]
pub struct Sessions {
    states: HashMap<SessionKey, SessionState>,
    /// The last commit of each session that has not ended here.
    flushed: HashMap<SessionKey, Flushed>,
    /// Batches that were begun so far.
    batches: u64,
    /// How often each session lost something to a failure.
    losses: Losses,
    robbed: Robbed,
}

impl Sessions {
    /// Fields archived and not yet flushed, over all sessions.
    pub fn unflushed(&self) -> u64 {
        self.states.values().flat_map(SessionState::batches).map(|batch| batch.len() as u64).sum()
    }

    /// Whether anything waits for a flush, of any session.
    pub fn hold_anything(&self) -> bool {
        self.states.values().any(SessionState::holds_anything)
    }

    /// The number of the last batch of a session that waits for a flush.
    pub fn waits_for(&self, session: SessionKey) -> Option<u64> {
        self.state(session)?.waits_for()
    }

    /// Notes a flush that waits for what a session holds now: its ticket, and the number of the last batch. `None` where
    /// there is nothing to wait for.
    pub fn enter(&mut self, session: SessionKey) -> Option<(u64, u64)> {
        let own = self.state_mut(session)?;
        let target = own.waits_for()?;
        Some((own.enter(target), target))
    }

    /// The flush waits no more: what was lost of that which it waited for, whoever lost it.
    pub fn leave(&mut self, session: SessionKey, ticket: u64) -> Result<()> {
        let lost = self.state_mut(session).and_then(|own| own.leave(ticket));
        self.tidy(session);
        lost.map_or(Ok(()), |lost| Err(lost.error()))
    }

    /// Whether a session's batches up to a number are durable, or lost.
    pub fn is_through(&self, session: SessionKey, number: u64) -> bool {
        self.state(session).is_none_or(|session| session.is_through(number))
    }

    /// The last commit of a session that has not ended here.
    pub fn flushed(&self, session: SessionKey) -> Option<Flushed> {
        self.flushed.get(&session).cloned()
    }

    /// Whether values of this author may join those that wait in a session.
    pub fn may_take(&self, session: SessionKey, author: &Author) -> bool {
        self.state(session).is_none_or(|own| own.batch.may_take(author))
    }

    /// Raises what a failure lost of a session and this thread has not learned of; once, but again and again
    /// for a transaction that was robbed.
    pub fn check(&mut self, session: SessionKey) -> Result<()> {
        session.transaction.map_or(Ok(()), |id| self.robbed.check(id))?;
        let outcome = self.state_mut(session).map_or(Ok(()), SessionState::check);
        self.tidy(session);
        outcome
    }

    /// Losses of a session that no call has reported to their threads, for whoever closes; once.
    pub fn report_untold(&mut self, session: SessionKey) -> Result<()> {
        let lost = self.state_mut(session).and_then(SessionState::report_untold);
        lost.map_or(Ok(()), |lost| Err(lost.error()))
    }

    /// How often each session has lost something, of those that did.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Takes catalog and graph changes of this thread for the next commit of a session. Without any it is
    /// noted that this thread is about to have some.
    pub fn take_side(&mut self, session: SessionKey, records: Vec<SideRecord>) {
        let own = self.given(session);
        own.note();
        own.batch.side.extend(records);
    }

    /// Counts attributes of this thread that the caller keeps for a session, for now; how often the session
    /// has lost something so far.
    pub fn keep(&mut self, session: SessionKey, attributes: u64) -> u64 {
        self.given(session).keep(attributes);
        self.losses.of(session)
    }

    /// Takes the side records of that many attributes, which were kept when the session had lost something that often.
    /// `false` where it has lost more since: they were counted as lost.
    pub fn take_kept(
        &mut self,
        session: SessionKey,
        losses: u64,
        attributes: u64,
        records: Vec<SideRecord>,
    ) -> bool {
        if self.losses.of(session) != losses {
            return false;
        }
        self.given(session).take_kept(attributes, records);
        true
    }

    /// Takes an encoded first level that the next commit of a session claims beside those of its fields.
    pub fn take_claim(&mut self, session: SessionKey, level: Vec<u8>) {
        let own = self.given(session);
        own.note();
        own.batch.claims.insert(level);
    }

    /// Forgets what a session holds.
    pub fn discard(&mut self, session: SessionKey) {
        if let Some(own) = self.state_mut(session) {
            own.discard(session.transaction.is_some());
        }
        self.tidy(session);
    }

    /// A session, where anything is known of it.
    pub(super) fn state(&self, session: SessionKey) -> Option<&SessionState> {
        self.states.get(&session)
    }

    pub(super) fn state_mut(&mut self, session: SessionKey) -> Option<&mut SessionState> {
        self.states.get_mut(&session)
    }

    /// A session that something is given for.
    pub(super) fn given(&mut self, session: SessionKey) -> &mut SessionState {
        let batches = &mut self.batches;
        self.states.entry(session).or_insert_with(|| {
            *batches += 1;
            SessionState::new(*batches)
        })
    }

    fn tidy(&mut self, session: SessionKey) {
        if self.state(session).is_some_and(SessionState::is_idle) {
            self.states.remove(&session);
        }
    }

    /// Sessions whose batch means nothing in another log.
    pub(super) fn bound(&self) -> Vec<SessionKey> {
        self.states.iter().filter(|(_, own)| own.batch.is_bound()).map(|(key, _)| *key).collect()
    }

    /// Takes the batch of a session for a commit.
    pub(super) fn take_off(&mut self, session: SessionKey) -> Arc<Batch> {
        self.batches += 1;
        let number = self.batches;
        self.given(session).take_off(number)
    }

    /// The batch that was taken for a commit is durable.
    pub(super) fn landed(&mut self, session: SessionKey, flushed: Flushed) {
        if let Some(own) = self.state_mut(session) {
            own.landed();
        }
        self.tidy(session);
        self.flushed.insert(session, flushed);
    }

    /// Forgets a transaction, which has ended. Values that others gave for it behind the end stay, until their flushes are
    /// refused.
    pub(super) fn end(&mut self, transaction: Id) {
        let is_of = |key: &SessionKey| key.transaction == Some(transaction);
        self.states.retain(|key, own| !is_of(key) || own.holds_anything());
        self.flushed.retain(|key, _| !is_of(key));
        self.robbed.end(transaction);
    }

    /// A transaction loses all that it had flushed.
    pub(super) fn rob(&mut self, transaction: Id, error: &Error) {
        self.robbed.add(transaction, Loss::by(error).of_prepared());
    }

    /// After a failure of a log and its files: drops what cannot be flushed any more, and says what the call is to raise.
    /// Batches that name bytes of the failed files are dropped as well, and their users learn of it by their next calls.
    pub(super) fn fail(&mut self, what: Failed<'_>, error: Error) -> Error {
        let others: Vec<SessionKey> =
            self.bound().into_iter().filter(|key| what.session() != Some(*key)).collect();
        let mut robbed: Vec<(SessionKey, Loss)> =
            others.into_iter().map(|key| (key, self.lose(key, None, &error))).collect();
        robbed.retain(|(_, loss)| !loss.is_empty());
        robbed.sort_unstable_by_key(|(id, _)| *id);
        let error = match what.session() {
            Some(session) => self.lose(session, Some(&what), &error).raised_by(error, &robbed),
            None => Loss::by(&error).raised_by(error, &robbed),
        };
        self.states.retain(|_, session| !session.is_idle());
        error
    }

    /// A session loses what it cannot flush any more. `failed`: the call of the session that failed, where it was one of its
    /// own, which informs its thread.
    fn lose(&mut self, key: SessionKey, failed: Option<&Failed<'_>>, error: &Error) -> Loss {
        self.losses.count(key);
        let all = failed.is_some_and(|failed| !matches!(failed, Failed::Flush(_)));
        let taking = failed.and_then(Failed::key).map(key_text);
        let own = self.given(key);
        let lost = own.lose(all, failed.is_some(), taking, error);
        let loss = lost.loss.clone();
        match key.transaction {
            None => own.leave_word(lost),
            Some(id) if lost.is_untold() => self.robbed.add(id, loss.clone()),
            Some(_) => {}
        }
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Vec<SideRecord> {
        vec![SideRecord { kind: 0x7777, bytes: (*b"note").into() }]
    }

    #[test]
    fn a_session_is_remembered_while_something_of_it_waits() {
        let mut sessions = Sessions::default();
        let (outside, within) = (SessionKey::default(), SessionKey::default().within(Id([1; 16])));
        assert!(!sessions.hold_anything() && sessions.waits_for(outside).is_none());
        sessions.take_side(outside, note());
        sessions.take_side(within, note());
        let first = sessions.waits_for(outside).unwrap();
        assert!(sessions.waits_for(within).unwrap() > first, "batches are numbered over all sessions");
        let taken = sessions.take_off(outside);
        assert!(taken.number == first && !sessions.is_through(outside, first));
        sessions.end(Id([1; 16]));
        assert!(sessions.waits_for(within).is_some(), "what others gave stays until its flush");
        sessions.discard(within);
        assert!(sessions.state(within).is_none() && sessions.state(outside).is_some());
    }

    #[test]
    fn a_failure_is_counted_and_raised_for_whom_it_robs() {
        let mut sessions = Sessions::default();
        let key = SessionKey::default();
        sessions.take_side(key, note());
        let (ticket, number) = sessions.enter(key).unwrap();
        drop(sessions.take_off(key));
        let raised = sessions.fail(Failed::Flush(key), Error::unavailable("the disk is full"));
        assert!(raised.message().contains("not archived: 1 record"), "{raised}");
        assert!(sessions.is_through(key, number) && sessions.losses().of(key) == 1);
        assert!(sessions.check(key).is_ok(), "the call that failed has reported it");
        assert!(sessions.leave(key, ticket).is_err(), "whoever waited for the batch learns of it");
        sessions.rob(Id([1; 16]), &Error::unavailable("gone"));
        let robbed = key.within(Id([1; 16]));
        assert!(sessions.check(robbed).is_err() && sessions.check(robbed).is_err());
        sessions.end(Id([1; 16]));
        assert!(sessions.check(robbed).is_ok());
    }
}
