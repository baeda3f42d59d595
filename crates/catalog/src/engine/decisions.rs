//! Decisions about transactions, as far as the applying process knows them.

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
    /// The transaction that is overlaid on the tables; it is visible whatever its decision.
    pub overlaid: Option<Id>,
}

impl Decisions {
    /// Takes the present state of a transaction.
    pub fn know(&mut self, state: TransactionState) {
        self.states.insert(state.transaction, state);
    }

    /// Forgets all states.
    pub fn clear(&mut self) {
        self.states.clear();
    }

    pub fn get(&self, transaction: Id) -> Option<&TransactionState> {
        self.states.get(&transaction)
    }

    /// Whether a field of a commit of a transaction is visible.
    pub fn shows_fields(&self, transaction: Id, writer: Id, sequence: u64) -> bool {
        let decided = |state: &TransactionState| state.visible(kinds::FIELDS, writer, sequence).is_some();
        self.overlaid == Some(transaction) || self.get(transaction).is_some_and(decided)
    }

    /// Content of a transaction is being applied, and no decision about it is known here. If the tables
    /// already follow a decision, another process that read a newer feed applied it and did not finish; then
    /// the decision is applied again.
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
