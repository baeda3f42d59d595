//! How a move removes from its source: in one commit, or in a transaction.
//!
//! A user who switches a kind of a transaction off shows again everything that it removed, until maintenance has sealed
//! the transaction a day later: a purge waits for that (R17). One commit is final at once; its rows wait in memory, so only a
//! move of few of them is one.
//!
//! Invariant: nothing is removed before [`Removal::make`].

use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_journal::session::SessionId;
use fieldstone_store::api::Transactions;

use crate::{Session, Store};

/// Most fields and attributes that one commit removes: some 50 MB in memory.
const FEW: u64 = 200_000;
/// Numbers of sessions that no client of a server has.
static NEXT: AtomicU64 = AtomicU64::new(1 << 63);

/// A removal from a store.
#[derive(Debug)]
pub struct Removal {
    session: Session,
    transaction: Option<Id>,
}

impl Removal {
    /// One of this number of fields and attributes.
    pub fn begin(from: &Store, rows: u64) -> Result<Removal> {
        let session = Session::new(SessionId::of(NEXT.fetch_add(1, Ordering::Relaxed)));
        Ok(match rows <= FEW {
            true => Removal { session, transaction: None },
            false => {
                let transaction = from.begin()?;
                Removal { session: Session::from(transaction), transaction: Some(transaction) }
            }
        })
    }

    /// The session in which it is written.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Writes the rows so far to the disk, and empties their memory, where they stay invisible.
    pub fn relieve(&self, from: &Store) -> Result<()> {
        self.transaction.map_or(Ok(()), |_| from.flush(self.session.clone()))
    }

    /// Removes.
    pub fn make(&self, from: &Store) -> Result<()> {
        match self.transaction {
            Some(transaction) => from.decide(transaction, true),
            None => from.flush(self.session.clone()),
        }
    }

    /// Gives it up.
    pub fn give_up(&self, from: &Store) -> Result<()> {
        match self.transaction {
            Some(transaction) => from.abandon(transaction, &Session::default()),
            None => from.discard(self.session.clone()),
        }
    }
}
