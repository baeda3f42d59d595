//! Decisions about transactions, as the applying process knows them.

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::log::kinds;
use fieldstone_journal::feed::TransactionState;

use super::ground::{Ground, Txn};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    states: HashMap<Id, TransactionState>,
    /// The transaction that is overlaid on the tables: it is seen, whatever is decided.
    pub overlaid: Option<Id>,
}

impl Decisions {
    /// Takes what is decided of a transaction now.
    pub fn know(&mut self, state: TransactionState) {
        self.states.insert(state.transaction, state);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.states.clear();
    }

    pub fn get(&self, transaction: Id) -> Option<&TransactionState> {
        self.states.get(&transaction)
    }

    /// Whether a field of a commit of a transaction is seen.
    pub fn shows_fields(&self, transaction: Id, writer: Id, sequence: u64) -> bool {
        let decided = |state: &TransactionState| state.visible(kinds::FIELDS, writer, sequence).is_some();
        self.overlaid == Some(transaction) || self.get(transaction).is_some_and(decided)
    }

    /// Something of a transaction is applied. Where nothing is known to be decided about it and the tables were
    /// decided otherwise, by one who follows a newer feed and has not come to an end, they are decided again.
    pub fn note_undecided(&self, ground: &mut Ground, transaction: Option<Id>) -> Result<()> {
        let Some(id) = transaction.filter(|id| !self.states.contains_key(id)) else { return Ok(()) };
        match ground.names.known_txn(id) {
            Some(txn) if !txn.decided.is_empty() => {
                let txn = Txn { decided: Vec::new(), ..txn.clone() };
                ground.set_txn(id, txn)
            }
            _ => Ok(()),
        }
    }
}
