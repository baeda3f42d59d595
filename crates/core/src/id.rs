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

    /// Parses 32 hexadecimal digits, in lower case.
    pub fn parse(text: &str) -> Option<Id> {
        let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
        let mut id = [0; 16];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Id(id))
    }
}

/// The value of a hexadecimal digit in lower case.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| std::fmt::Error)?)
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
