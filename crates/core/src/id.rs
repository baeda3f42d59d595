//! Names that a store gives: ids of writers, stores and transactions, and the names of entries.
//!
//! ```
//! use fieldstone_core::id::Id;
//! let id = Id::parse("000102030405060708090a0b0c0d0e0f");
//! assert_eq!(id.map(|id| id.to_string()).as_deref(), Some("000102030405060708090a0b0c0d0e0f"));
//! ```

/// The random 128-bit name of a writer, a store or a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// All zeros, the lowest id: the beginning of every range of ids.
    pub const LEAST: Id = Id([0; 16]);

    /// Parses 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Id> {
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        let mut id = [0; 16];
        for (i, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Id(id)).filter(|id| id.to_string() == text)
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// The name of an entry in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryId {
    /// The writer that committed it.
    pub writer: Id,
    /// Sequence of the commit in the writer's log.
    pub sequence: u64,
    /// Position in the commit.
    pub ordinal: u64,
}
