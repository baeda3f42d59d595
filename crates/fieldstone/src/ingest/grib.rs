//! The place of GRIB messages: the key of the header, or, where another message of the same ingest has
//! it, that key and what tells the two apart.

use std::collections::HashMap;

use fieldstone_core::request::Request;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::keys::encode_key;
use fieldstone_store::api::{FieldStore, ListOptions, ReadOptions};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::borrowed;
use crate::helper::Texts;

/// Where a message goes.
pub enum Verdict {
    /// Under this key.
    New(Texts),
    /// It is there already.
    Held,
}

/// The messages of one ingest, by key.
pub struct Messages<'a> {
    store: &'a dyn FieldStore,
    /// Whether the store held nothing when the ingest began, so that nothing need be compared with it.
    fresh: bool,
    holders: HashMap<u128, Holder>,
    /// Keys that the current file brought.
    current: Vec<u128>,
}

/// Who has a key.
struct Holder {
    /// Digest of the message.
    message: u128,
    /// Digests of what tells it apart, keyword and value together.
    apart: Box<[u64]>,
}

impl<'a> Messages<'a> {
    pub fn new(store: &'a dyn FieldStore) -> Result<Messages<'a>> {
        let datasets = ListOptions { depth: 1, ..ListOptions::default() };
        let fresh = store.list(&Request::new(), &datasets)?.next().is_none();
        Ok(Messages { store, fresh, holders: HashMap::new(), current: Vec::new() })
    }

    /// Finds the place of a message by the rules of `spec/helper-protocol.md`, "GRIB keys".
    pub fn place(&mut self, mut key: Texts, apart: &Texts, message: &[u8]) -> Result<Verdict> {
        let digest = xxh3_128(message);
        let mut further = apart.iter();
        let mut ordinal = 1u64;
        let id = loop {
            let resolved = self.store.schema().resolve(&borrowed(&key)).map_err(|e| self.explain(e))?;
            let id = xxh3_128(&encode_key(&resolved).bytes);
            let Some(holder) = self.holders.get(&id) else { break id };
            if holder.message == digest {
                return Ok(Verdict::Held);
            }
            let differs = |pair: &&(String, String)| {
                !key.iter().any(|(keyword, _)| *keyword == pair.0) && !holder.apart.contains(&fact(pair))
            };
            if let Some(pair) = further.find(differs) {
                key.push(pair.clone());
                continue;
            }
            ordinal += 1;
            key.retain(|(keyword, _)| keyword != "ordinal");
            key.push(("ordinal".to_owned(), ordinal.to_string()));
        };
        let held = !self.fresh && self.stored(&key, message)?;
        self.holders.insert(id, Holder { message: digest, apart: apart.iter().map(fact).collect() });
        self.current.push(id);
        Ok(if held { Verdict::Held } else { Verdict::New(key) })
    }

    /// Whether the store has this very message under this very key.
    fn stored(&self, key: &Texts, message: &[u8]) -> Result<bool> {
        let pairs = borrowed(key);
        let field = match self.store.get(&pairs, &ReadOptions::default()) {
            Ok(field) => field,
            // Invalid: the key names several fields, none of them its own.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => return Ok(false),
            Err(e) => return Err(e),
        };
        if field.key()? != self.store.schema().resolve(&pairs)?
            || field.dtype()?.is_some()
            || field.nbytes()? != message.len() as u64
        {
            return Ok(false);
        }
        // A damaged field is not this message: archived again it is whole again.
        Ok(field.read().is_ok_and(|bytes| bytes == message))
    }

    fn explain(&self, error: Error) -> Error {
        if self.store.schema().name() != Some("simulation") {
            return error;
        }
        Error::invalid("the store has the schema simulation, which has no place for GRIB")
            .with_hint("take GRIB files into a store of their own, opened with the schema mars")
    }

    /// The current file is not taken: what it brought is not there.
    pub fn forget(&mut self) {
        for id in self.current.drain(..) {
            self.holders.remove(&id);
        }
    }

    /// What comes next is another file.
    pub fn next_file(&mut self) {
        self.current.clear();
    }
}

fn fact((keyword, value): &(String, String)) -> u64 {
    xxh3_64(format!("{keyword}={value}").as_bytes())
}
