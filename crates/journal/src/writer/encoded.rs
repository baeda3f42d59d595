//! A value as it is handed over to the journal: its key, its entry and the bytes to store.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::block::Block;
use fieldstone_format::entry::Entry;
use fieldstone_format::keys::EncodedKey;
use fieldstone_format::origin::EntryOrigin;
use xxhash_rust::xxh3::Xxh3;

/// Least number of stored bytes that are looked for among those there are.
const SHARED_MIN: usize = 256;

/// Stored bytes that are written part by part, so that memory need not hold all of them.
pub trait StoredParts {
    /// Their number.
    fn nbytes(&self) -> u64;

    /// Passes them on, one part behind the other.
    fn write(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// The stored bytes of a value.
pub enum Payload<'a> {
    /// In memory.
    Bytes(Cow<'a, [u8]>),
    /// Written part by part; more than [`INLINE_MAX`](super::INLINE_MAX) bytes, so that they always go to a data log.
    Parts(&'a dyn StoredParts),
}

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.nbytes())
    }
}

impl Payload<'_> {
    /// The number of bytes.
    pub fn nbytes(&self) -> u64 {
        match self {
            Payload::Bytes(bytes) => bytes.len() as u64,
            Payload::Parts(parts) => parts.nbytes(),
        }
    }

    /// The bytes in memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Bytes(bytes) => bytes,
            Payload::Parts(_) => &[],
        }
    }
}

impl Default for Payload<'_> {
    fn default() -> Self {
        Payload::Bytes(Cow::Borrowed(&[]))
    }
}

impl<'a> From<Cow<'a, [u8]>> for Payload<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Payload<'a> {
        Payload::Bytes(bytes)
    }
}

/// A value ready to be taken by a batch.
#[derive(Debug)]
pub struct Encoded<'a> {
    /// Its key.
    pub key: EncodedKey,
    /// Its entry; commit and ordinal are filled in later, and the location where it is `None`.
    pub entry: Entry,
    /// Raw length of all blocks but the last of opaque bytes.
    pub size: u64,
    /// The stored bytes.
    pub blocks: Vec<Block>,
    /// The stored bytes of all blocks, one behind the other.
    pub payload: Payload<'a>,
    /// The table of blocks, where there are too many for the index.
    pub table: Vec<u8>,
    /// Digest of the stored bytes, if equal bytes may share their place.
    pub digest: Option<u128>,
    /// The commit of another store that it was moved from.
    pub origin: Option<Arc<EntryOrigin>>,
}

impl<'a> Encoded<'a> {
    /// Bytes to store.
    pub fn stored_len(&self) -> usize {
        usize::try_from(self.payload.nbytes()).unwrap_or(usize::MAX).saturating_add(self.table.len())
    }

    /// Lets the value share its place with equal ones; a small one costs less than looking for it.
    pub fn share(&mut self) {
        if let Payload::Bytes(payload) = &self.payload
            && self.stored_len() >= SHARED_MIN
        {
            let mut hasher = Xxh3::new();
            hasher.update(&(payload.len() as u64).to_le_bytes());
            hasher.update(payload);
            hasher.update(&self.table);
            self.digest = Some(hasher.digest128());
        }
    }
}
