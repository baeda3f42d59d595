//! GRIB messages, editions 1 and 2: their bounds, their fields, and the content of their headers.
//!
//! | module | holds |
//! |---|---|
//! | [`messages`] | the messages of a stream of bytes, and the damage between them |
//! | [`fields`] | a message of several fields as messages of one |
//! | [`header`] | the sections that decide a field's key, and the numbers read from them |
//! | [`template`] | the key of all headers that differ only in read numbers |
//!
//! eccodes knows the meaning of every key of every centre. This module knows the layout, and a few numbers
//! that change from field to field (date, time, step, level, number), so it asks eccodes once for all fields
//! that differ in nothing else. The rules are in `spec/helper-protocol.md`, "GRIB keys".
//!
//! Invariants: no input makes a panic; memory is bounded by one message; results for a header depend only on
//! its bytes, never on sizes or numbers of templates.
//!
//! ```
//! use fieldstone_format::grib::messages::{Stretch, Messages};
//!
//! let bytes = b"a bulletin, then GRIB\0\0\0\x02 and no more";
//! let (mut messages, mut buffer) = (Messages::new(), Vec::new());
//! let found = messages.next(&bytes[..], &mut buffer)?;
//! assert!(matches!(found, Some(Stretch::Damaged { offset: 17, .. })));
//! assert!(messages.next(&bytes[..], &mut buffer)?.is_none());
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

pub mod fields;
pub mod header;
pub mod messages;
pub mod template;

/// An unsigned number of `n` bytes (at most 8) at `at`; `None` if some of them are missing.
fn number(bytes: &[u8], at: usize, n: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(n)?)?;
    Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// The same as a length or an offset in memory.
fn length(bytes: &[u8], at: usize, n: usize) -> Option<usize> {
    usize::try_from(number(bytes, at, n)?).ok()
}
