//! The name of a commit, unique across stores: lineage uses it for the result of one flush.
//!
//! ```text
//! id = store: 32 hex digits  "/"  log: 32 hex digits  "/"  sequence: decimal
//! ```
//!
//! ```
//! use fieldstone_format::Id;
//! use fieldstone_format::commit_id::CommitId;
//! let id = CommitId { store: Id([1; 16]), log: Id([2; 16]), sequence: 7 };
//! assert!(id.to_string().ends_with("0202/7"));
//! assert_eq!(CommitId::parse(&id.to_string()), Some(id));
//! ```

use std::fmt;

use crate::Id;

/// Names a commit forever: the store, the commit's log, and its sequence there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId {
    /// The store's id.
    pub store: Id,
    /// The writer's id, as in the log's header.
    pub log: Id,
    /// The commit's sequence in that log, from 1.
    pub sequence: u64,
}

impl CommitId {
    /// Reads exactly the text that [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<CommitId> {
        let mut parts = text.split('/');
        let (store, log, sequence) = (parts.next()?, parts.next()?, parts.next()?);
        let sequence = sequence.parse().ok().filter(|n: &u64| n.to_string() == sequence && *n > 0)?;
        let id = CommitId { store: Id::parse(store)?, log: Id::parse(log)?, sequence };
        parts.next().is_none().then_some(id)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.store, self.log, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_text_names_a_commit() {
        let id = CommitId { store: Id([1; 16]), log: Id([0xab; 16]), sequence: 12 };
        let text = id.to_string();
        assert_eq!(CommitId::parse(&text), Some(id));
        let upper = text.to_uppercase();
        for wrong in ["", "//", &text[1..], &upper, &format!("{text}/"), &text.replace("/12", "/012")] {
            assert_eq!(CommitId::parse(wrong), None, "{wrong}");
        }
        assert_eq!(CommitId::parse(&text.replace("/12", "/0")), None);
    }
}
