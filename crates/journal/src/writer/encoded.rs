//! A value as it is handed over to the journal: its key, its entry and the bytes to store.

use std::borrow::Cow;
use std::sync::Arc;

use fieldstone_format::block::Block;
use fieldstone_format::entry::Entry;
use fieldstone_format::keys::EncodedKey;
use fieldstone_format::origin::EntryOrigin;
use xxhash_rust::xxh3::Xxh3;

/// Least number of stored bytes that are looked for among those there are.
const SHARED_MIN: usize = 256;

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
    pub payload: Cow<'a, [u8]>,
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
        self.payload.len() + self.table.len()
    }

    /// Lets the value share its place with equal ones; a small one costs less than looking for it.
    pub fn share(&mut self) {
        if self.stored_len() >= SHARED_MIN {
            let mut hasher = Xxh3::new();
            hasher.update(&(self.payload.len() as u64).to_le_bytes());
            hasher.update(&self.payload);
            hasher.update(&self.table);
            self.digest = Some(hasher.digest128());
        }
    }
}
