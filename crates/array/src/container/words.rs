//! Structs as 64-bit words for messages between ranks; each field is listed by name.
//!
//! Sums over ranks and fixed heads of messages are lists of words. [`words!`] makes such a list of a struct: its
//! fields in the order in which the macro lists them, which is the order on the wire. A field may itself take several
//! words.
//!
//! Invariants: the macro lists every field of a struct, or it does not compile; [`take_words`](Words::take_words)
//! takes the words that [`put_words`](Words::put_words) appends, one by one.

use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::layout::Layout;

use super::model::Counts;

/// A value that is sent between ranks as a fixed number of words.
pub(in crate::container) trait Words: Sized {
    /// Number of words.
    const LEN: usize;

    /// Appends the words of the value.
    fn put_words(&self, out: &mut Vec<u64>);

    /// Takes the value's words from the beginning of a list.
    fn take_words(from: &mut impl Iterator<Item = u64>) -> Option<Self>;

    /// The words of the value.
    fn to_words(&self) -> Vec<u64> {
        let mut out = Vec::with_capacity(Self::LEN);
        self.put_words(&mut out);
        out
    }

    /// Makes the value from a list of exactly its words.
    ///
    /// Errors: `Internal` for a list of another length, which another version of this program sent.
    fn from_words(words: &[u64]) -> Result<Self> {
        let fits = words.len() == Self::LEN;
        let value = if fits { Self::take_words(&mut words.iter().copied()) } else { None };
        value.ok_or_else(|| {
            Error::internal(format!("a rank sent {} words, but {} were expected", words.len(), Self::LEN))
        })
    }

    /// The words as bytes, little-endian.
    fn to_bytes(&self) -> Vec<u8> {
        self.to_words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Makes the value from the first bytes of a message; also returns the rest of the message.
    fn split_from(bytes: &[u8]) -> Result<(Self, &[u8])> {
        let short = || {
            Error::internal(format!(
                "a rank sent {} bytes, which do not hold {} words",
                bytes.len(),
                Self::LEN
            ))
        };
        let (head, rest) = bytes.split_at_checked(Self::LEN * 8).ok_or_else(short)?;
        let words: Vec<u64> = head.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok((Self::from_words(&words)?, rest))
    }
}

impl Words for u64 {
    const LEN: usize = 1;
    fn put_words(&self, out: &mut Vec<u64>) {
        out.push(*self);
    }
    fn take_words(from: &mut impl Iterator<Item = u64>) -> Option<u64> {
        from.next()
    }
}

impl Words for bool {
    const LEN: usize = 1;
    fn put_words(&self, out: &mut Vec<u64>) {
        out.push(u64::from(*self));
    }
    fn take_words(from: &mut impl Iterator<Item = u64>) -> Option<bool> {
        from.next().map(|word| word == 1)
    }
}

impl<const N: usize> Words for [u64; N] {
    const LEN: usize = N;
    fn put_words(&self, out: &mut Vec<u64>) {
        out.extend_from_slice(self);
    }
    fn take_words(from: &mut impl Iterator<Item = u64>) -> Option<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = from.next()?;
        }
        Some(words)
    }
}

/// Implements [`Words`] for a struct: lists its fields with their types, in the order of the words.
macro_rules! words {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        impl $crate::container::words::Words for $name {
            const LEN: usize = 0 $(+ <$type as $crate::container::words::Words>::LEN)*;
            fn put_words(&self, out: &mut Vec<u64>) {
                let $name { $($field),* } = self;
                $(<$type as $crate::container::words::Words>::put_words($field, out);)*
            }
            fn take_words(from: &mut impl Iterator<Item = u64>) -> Option<$name> {
                $(let $field = <$type as $crate::container::words::Words>::take_words(from)?;)*
                Some($name { $($field),* })
            }
        }
    };
}
pub(in crate::container) use words;

words!(Counts { dims: u64, attrs: u64, vars: u64 });
words!(Layout {
    header_len: u64,
    data_begin: u64,
    data_end: u64,
    record_begin: u64,
    record_size: u64,
    one_record_var: bool,
});

/// Checks that a value survives the round trip, and returns its words.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(in crate::container) fn round_trip<W: Words + PartialEq + std::fmt::Debug>(value: &W) -> Vec<u64> {
    let words = value.to_words();
    assert_eq!((words.len(), &W::from_words(&words).unwrap()), (W::LEN, value));
    let bytes = [value.to_bytes(), vec![7]].concat();
    let (same, rest) = W::split_from(&bytes).unwrap();
    assert_eq!((&same, rest), (value, &[7][..]));
    assert!(W::from_words(&words[1..]).is_err() && W::split_from(&bytes[..W::LEN * 8 - 1]).is_err());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Outer {
        flag: bool,
        list: [u64; 2],
        counts: Counts,
    }
    words!(Outer { flag: bool, list: [u64; 2], counts: Counts });

    #[test]
    fn fields_go_in_the_order_in_which_they_are_named() {
        let outer = Outer { flag: true, list: [5, 6], counts: Counts { dims: 7, attrs: 8, vars: 9 } };
        assert_eq!(round_trip(&outer), [1, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_layout_comes_back() {
        let layout = Layout {
            header_len: 1,
            data_begin: 2,
            data_end: 3,
            record_begin: 4,
            record_size: 5,
            one_record_var: true,
        };
        assert_eq!(round_trip(&layout), [1, 2, 3, 4, 5, 1]);
    }
}
