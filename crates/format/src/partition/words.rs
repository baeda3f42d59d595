//! Lists of numbers as bytes, four or eight each: the form in which partitions are sent and kept.
//!
//! ```
//! use fieldstone_format::partition::words::{put_words, words};
//! let mut bytes = Vec::new();
//! put_words(&mut bytes, [1, 70_000], true);
//! assert_eq!((bytes.len(), words::<u32>(&bytes).collect::<Vec<_>>()), (8, vec![1, 70_000]));
//! ```

/// A number of a list.
pub trait Word: Copy + Send + Sync + 'static {
    /// Its bytes.
    const WIDTH: usize;
    /// The number of bytes in little-endian order; 0 if they are too few.
    fn of(bytes: &[u8]) -> u64;
    /// Writes the low bytes of a number into `bytes`, which has the right length.
    fn put(number: u64, bytes: &mut [u8]);
    /// The low bytes of a number.
    fn low(number: u64) -> Self;
    /// The value as a u64.
    fn number(self) -> u64;
}

impl Word for u32 {
    const WIDTH: usize = 4;
    #[inline]
    fn of(bytes: &[u8]) -> u64 {
        bytes.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    }
    #[inline]
    fn put(number: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&(number as u32).to_le_bytes());
    }
    #[inline]
    fn low(number: u64) -> u32 {
        number as u32
    }
    #[inline]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Word for u64 {
    const WIDTH: usize = 8;
    #[inline]
    fn of(bytes: &[u8]) -> u64 {
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
    #[inline]
    fn put(number: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    #[inline]
    fn low(number: u64) -> u64 {
        number
    }
    #[inline]
    fn number(self) -> u64 {
        self
    }
}

/// Whether numbers below `limit` fit four bytes.
pub fn narrow(limit: u64) -> bool {
    limit <= 1 << 32
}

/// The numbers in some bytes.
#[inline]
pub fn words<W: Word>(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
    bytes.chunks_exact(W::WIDTH).map(W::of)
}

/// Appends numbers.
pub fn put_words(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>, is_narrow: bool) {
    let numbers = numbers.into_iter();
    match is_narrow {
        true => numbers.for_each(|number| out.extend_from_slice(&(number as u32).to_le_bytes())),
        false => numbers.for_each(|number| out.extend_from_slice(&number.to_le_bytes())),
    }
}
