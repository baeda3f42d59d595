//! Sessions: for whom a call is made. Each call of the journal, the catalog and the graph is given one.
//!
//! A handle has a session of its own, [`Session::default`], which all its threads share. A server gives each client
//! another one ([`Session::new`]). A session with a transaction ([`Session::within`]) is the same client's, and what it
//! writes becomes visible with the transaction.
//!
//! Invariants:
//! * a flush publishes what was taken under its session's [`SessionKey`], and nothing else;
//! * owners are the session's user ([`Session::user`]), whoever runs the process;
//! * a session is a value: what waits for its flush is the writer's, under its key.
//!
//! ```
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_format::log::SideRecord;
//! use fieldstone_journal::journal::JournalOptions;
//! use fieldstone_journal::session::SessionId;
//! use fieldstone_journal::{Journal, Session};
//!
//! let options = JournalOptions { url: "memory:".into(), writable: true, ..Default::default() };
//! let journal = Journal::open(SimWorld::memory(), "/store".as_ref(), options)?;
//! let (alice, bob) = (Session::new(SessionId::of(1)), Session::new(SessionId::of(2)));
//! journal.unflushed().add(vec![SideRecord { kind: 1, bytes: (*b"a note").into() }], &alice)?;
//! journal.committer().flush(&bob)?;
//! assert!(journal.unflushed().holds(&alice));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fieldstone_core::env::{Clock, Identity};
use fieldstone_core::{Code, Result};
use fieldstone_format::Id;

use crate::author::{Author, CommitAuthor};

/// Steps of a long call between two looks at its limits.
const CHECKED: u32 = 256;

/// The number of a client; a handle's own session has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionId(Option<NonZeroU64>);

impl SessionId {
    /// The client of a number; 0 is the handle itself.
    pub const fn of(number: u64) -> SessionId {
        SessionId(NonZeroU64::new(number))
    }

    /// The number; 0 is the handle itself.
    pub fn number(self) -> u64 {
        self.0.map_or(0, NonZeroU64::get)
    }
}

/// Under which key the writer keeps what a session has not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionKey {
    /// The client.
    pub id: SessionId,
    /// The transaction that it writes in.
    pub transaction: Option<Id>,
}

impl SessionKey {
    /// The same client's key within a transaction.
    pub fn within(self, transaction: Id) -> SessionKey {
        SessionKey { transaction: Some(transaction), ..self }
    }

    /// The same client's key outside of transactions.
    pub fn outside(self) -> SessionKey {
        SessionKey { transaction: None, ..self }
    }
}

/// Ends the calls of a session early, from any thread.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends them: each raises `Unavailable` at its next check, or completes.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they were ended.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// For whom a call is made.
#[derive(Debug, Clone, Default)]
pub struct Session {
    key: SessionKey,
    user: Option<u32>,
    author: Author,
    deadline: Option<u64>,
    cancel: Option<Cancel>,
}

impl Session {
    /// A client's session, outside of transactions.
    pub fn new(id: SessionId) -> Session {
        Session { key: SessionKey { id, transaction: None }, ..Session::default() }
    }

    /// This session within a transaction, or outside of any.
    pub fn within(&self, transaction: impl Into<Option<Id>>) -> Session {
        let key = SessionKey { transaction: transaction.into(), ..self.key };
        Session { key, ..self.clone() }
    }

    /// This session for a user other than the one who runs the process.
    pub fn of_user(&self, user: u32) -> Session {
        Session { user: Some(user), ..self.clone() }
    }

    /// This session on behalf of an author, who adds to its commits.
    pub fn by(&self, author: Arc<dyn CommitAuthor>) -> Session {
        Session { author: Some(author), ..self.clone() }
    }

    /// This session with a deadline: calls raise `Unavailable` at their first check past it. `deadline`: nanoseconds of
    /// the world's monotonic clock.
    pub fn until(&self, deadline: u64) -> Session {
        Session { deadline: Some(deadline), ..self.clone() }
    }

    /// This session with a way to end its calls.
    pub fn cancelled_by(&self, cancel: Cancel) -> Session {
        Session { cancel: Some(cancel), ..self.clone() }
    }

    /// The key of its unflushed content.
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// The transaction that it writes in, and whose prepared content it sees.
    pub fn transaction(&self) -> Option<Id> {
        self.key.transaction
    }

    /// The author of its values.
    pub fn author(&self) -> &Author {
        &self.author
    }

    /// The user who owns what it makes: its own, else the process's.
    pub fn user(&self, identity: &dyn Identity) -> u32 {
        self.user.unwrap_or_else(|| identity.uid())
    }

    /// The user that it is for, where it is not the one who runs the process.
    pub fn own_user(&self) -> Option<u32> {
        self.user
    }

    /// Its deadline, nanoseconds of the world's monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// The way to end its calls, where it has one.
    pub fn cancel(&self) -> Option<&Cancel> {
        self.cancel.as_ref()
    }

    /// Raises `Unavailable` where the session was cancelled or its deadline is past. Long calls ask between steps;
    /// a commit that has begun is not broken off.
    pub fn check(&self, clock: &dyn Clock) -> Result<()> {
        if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return Err(Code::Cancelled.error("the call was cancelled"));
        }
        if self.deadline.is_some_and(|deadline| clock.monotonic() >= deadline) {
            return Err(Code::DeadlinePassed
                .error("the call's deadline has passed")
                .with_hint("give it more time, or ask for less at once"));
        }
        Ok(())
    }

    /// Its limits, for a call of many steps.
    pub fn limits(&self, clock: &Arc<dyn Clock>) -> Limits {
        let limited = self.deadline.is_some() || self.cancel.is_some();
        // A stream of results outlives its call, and must not keep the session's author with it.
        let only_limits =
            || Session { deadline: self.deadline, cancel: self.cancel.clone(), ..Session::default() };
        Limits { of: limited.then(|| (only_limits(), clock.clone())), steps: 0 }
    }
}

/// The limits of a session, for a call of many steps. By default there are none.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    of: Option<(Session, Arc<dyn Clock>)>,
    steps: u32,
}

impl Limits {
    /// Counts a step, and [checks](Limits::check) at the first and then at each 256th.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps % CHECKED == 1 { self.check() } else { Ok(()) }
    }

    /// Raises `Unavailable` if the session was cancelled or its deadline is past: for steps that take long.
    pub fn check(&self) -> Result<()> {
        self.of.as_ref().map_or(Ok(()), |(session, clock)| session.check(&**clock))
    }
}

impl From<Id> for Session {
    fn from(transaction: Id) -> Session {
        Session::default().within(transaction)
    }
}

impl From<Option<Id>> for Session {
    fn from(transaction: Option<Id>) -> Session {
        Session::default().within(transaction)
    }
}
