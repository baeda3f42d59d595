//! Ids of transactions: since version 2 they say when the transaction began, so that ended ones can be forgotten.
//!
//! ```text
//! id = begun: u64 big-endian  lane: u16 big-endian  6 random bytes        in version 1 all 16 bytes are random
//! ```
//! `begun` is the opener's next stamp; `lane` is 0 in a single store.
//!
//! ```
//! use fieldstone_format::transaction_id::{TransactionId, begun};
//!
//! let id = TransactionId { begun: 7, lane: 0, random: [1; 6] }.encode();
//! assert_eq!(begun(id), 7);
//! ```

use crate::Id;

/// The first version of the format whose ids say when a transaction began.
pub const BEGUN_SINCE: u32 = 2;

/// The parts of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionId {
    /// A stamp above every stamp that the opener had read.
    pub begun: u64,
    /// The lane of a stack to which the transaction belongs.
    pub lane: u16,
    /// Random bytes, which distinguish transactions that begin at the same stamp.
    pub random: [u8; 6],
}

impl TransactionId {
    /// The id.
    pub fn encode(&self) -> Id {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.begun.to_be_bytes());
        id[8..10].copy_from_slice(&self.lane.to_be_bytes());
        id[10..].copy_from_slice(&self.random);
        Id(id)
    }

    /// The parts of an id.
    pub fn decode(id: Id) -> TransactionId {
        let [a, b, c, d, e, f, g, h, i, j, random @ ..] = id.0;
        TransactionId {
            begun: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            lane: u16::from_be_bytes([i, j]),
            random,
        }
    }
}

/// The stamp at which a transaction of version 2 began.
pub fn begun(id: Id) -> u64 {
    TransactionId::decode(id).begun
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_their_beginning_and_keep_their_parts() {
        let of = |begun, lane, random| TransactionId { begun, lane, random: [random; 6] };
        let all = [of(0, 0, 0), of(1, 0, 9), of(255, 1, 3), of(256, 0, 0), of(u64::MAX, 7, 255)];
        let ids: Vec<Id> = all.iter().map(TransactionId::encode).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().zip(&all).all(|(id, parts)| TransactionId::decode(*id) == *parts));
    }
}
