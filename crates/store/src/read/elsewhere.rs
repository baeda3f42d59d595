//! Entries that name an entry of another store (R34, J-54): by store, log, commit and ordinal, never by an offset.
//!
//! ```text
//! fieldstone+file:///PATH?store=ID&log=ID&commit=N&entry=N&key=HEX
//! ```
//!
//! Invariants:
//! * the other store is opened once for each handle, and only reads; takeovers and purges there change nothing, since an entry
//!   is looked for under its key by its name;
//! * an entry names one that holds bytes itself, so that a read opens two stores at most.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::{Entry, EntryId, Location};
use fieldstone_format::keys::{key_text, level_ends};
use fieldstone_format::location::{file_url, url_path};
use fieldstone_journal::Journal;
use fieldstone_journal::files::{Beyond, Files};
use fieldstone_journal::journal::JournalOptions;

use super::lookup::parts_under;
use super::versions::Part;
use crate::snapshot::Snapshot;

/// The beginning of such a URL.
const SCHEME: &str = "fieldstone+";

/// The name of an entry of another store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryUrl {
    /// The folder of the store.
    pub folder: PathBuf,
    /// The store.
    pub store: Id,
    /// The entry.
    pub entry: EntryId,
    /// The encoded key under which it stands there.
    pub key: Vec<u8>,
}

impl EntryUrl {
    /// Its text.
    pub fn text(&self) -> String {
        let EntryId { writer, sequence, ordinal } = self.entry;
        let (place, key) = (file_url(&self.folder), hex(&self.key));
        format!(
            "{SCHEME}{place}?store={}&log={writer}&commit={sequence}&entry={ordinal}&key={key}",
            self.store
        )
    }

    /// Whether a URL is one.
    pub fn is_one(url: &str) -> bool {
        url.starts_with(SCHEME)
    }

    /// Reads a text; Corrupt for any other.
    pub fn parse(url: &str) -> Result<EntryUrl> {
        let wrong = || Error::corrupt(format!("'{url}' does not name an entry of a store"));
        let (place, query) =
            url.strip_prefix(SCHEME).and_then(|url| url.rsplit_once('?')).ok_or_else(wrong)?;
        let mut parts = query.split('&');
        let mut next = |name: &str| {
            let part = parts.next().and_then(|part| part.strip_prefix(name)?.strip_prefix('='));
            part.ok_or_else(wrong)
        };
        let (store, log) = (next("store")?, next("log")?);
        let (commit, ordinal, key) = (next("commit")?, next("entry")?, next("key")?);
        let id = |text: &str| Id::parse(text).ok_or_else(wrong);
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let entry = EntryId { writer: id(log)?, sequence: number(commit)?, ordinal: number(ordinal)? };
        let key = unhex(key).ok_or_else(wrong)?;
        level_ends(&key)?;
        Ok(EntryUrl { folder: url_path(place)?, store: id(store)?, entry, key })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

/// The other stores that a handle has opened.
#[derive(Debug)]
pub struct OtherStores {
    env: Env,
    open: Mutex<HashMap<(PathBuf, Id), Arc<OtherStore>>>,
}

impl Beyond for OtherStores {}

/// A store that holds bytes of this one's fields.
#[derive(Debug)]
struct OtherStore {
    journal: Journal,
    /// The snapshot in which entries were found last.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
}

impl OtherStores {
    /// None is opened yet.
    pub fn new(env: Env) -> OtherStores {
        OtherStores { env, open: Mutex::default() }
    }

    fn store(&self, url: &EntryUrl) -> Result<Arc<OtherStore>> {
        let place = (url.folder.clone(), url.store);
        if let Some(known) = self.open.lock().get(&place) {
            return Ok(known.clone());
        }
        let text = url.folder.display().to_string();
        let options = JournalOptions { url: text, must_exist: true, ..JournalOptions::default() };
        let journal = Journal::open(self.env.clone(), &url.folder, options).map_err(|e| match e.kind() {
            ErrorKind::NotFound => gone(&url.folder, "the store is gone"),
            _ => e.context(format!("the store at {}", url.folder.display())),
        })?;
        if journal.home().id != url.store {
            return Err(gone(&url.folder, "another store is at that place"));
        }
        let store = Arc::new(OtherStore { journal, snapshot: Mutex::default() });
        Ok(self.open.lock().entry(place).or_insert(store).clone())
    }
}

impl OtherStore {
    /// The newest snapshot.
    fn look(&self) -> Result<Arc<Snapshot>> {
        let snapshot = self.journal.looks().snapshot()?;
        *self.snapshot.lock() = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// The entry of a name in a snapshot.
    fn find(&self, snapshot: &Snapshot, url: &EntryUrl) -> Result<Option<Part>> {
        let is_it = |part: &Part| part.id() == url.entry && !part.entry.is_attempt_tombstone();
        Ok(parts_under(snapshot, &url.key)?.into_iter().find(is_it))
    }
}

fn gone(folder: &Path, why: &str) -> Error {
    Code::OutsideChanged
        .error(format!("{why}: {} holds the bytes of this field", folder.display()))
        .with_hint("bring the store back to its place, or remove the field here and reindex again")
}

/// An entry of another store.
pub struct Elsewhere {
    store: Arc<OtherStore>,
    url: EntryUrl,
    /// The entry here, which says its kind and length.
    like: Entry,
}

impl Elsewhere {
    /// The entry that one here names; `None` for one that has bytes of its own.
    pub fn of(files: &Files, entry: &Entry) -> Result<Option<Elsewhere>> {
        let Location::External(external) = &entry.location else { return Ok(None) };
        if !EntryUrl::is_one(&external.url) {
            return Ok(None);
        }
        let stores = files.beyond().and_then(|beyond| beyond.downcast_ref::<OtherStores>());
        let stores = stores.ok_or_else(|| Error::internal("other stores cannot be opened here"))?;
        let url = EntryUrl::parse(&external.url)?;
        Ok(Some(Elsewhere { store: stores.store(&url)?, url, like: entry.clone() }))
    }

    /// Reads its bytes by its store's files, as the part that stands under its key, wherever takeovers have moved them.
    pub fn read<T>(&self, mut read: impl FnMut(&Files, &Part, &[u8]) -> Result<T>) -> Result<T> {
        let known = self.store.snapshot.lock().clone();
        if let Some(snapshot) = known
            && let Ok(Some(part)) = self.store.find(&snapshot, &self.url)
        {
            match self.read_part(&part, &mut read) {
                Err(e) if e.code() == Code::DataGone => {}
                outcome => return outcome,
            }
        }
        let Some(part) = self.store.find(&*self.store.look()?, &self.url)? else {
            let why = format!("{} was purged there, or cannot be read", key_text(&self.url.key));
            return Err(gone(&self.url.folder, &why));
        };
        self.read_part(&part, &mut read)
    }

    fn read_part<T>(
        &self,
        part: &Part,
        read: &mut impl FnMut(&Files, &Part, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let key = || key_text(&self.url.key);
        if matches!(&part.entry.location, Location::External(external) if EntryUrl::is_one(&external.url)) {
            return Err(Error::corrupt(format!("{} names an entry that names another one", key())));
        }
        let kind = |entry: &Entry| {
            let array = entry.array.as_ref();
            (entry.length, array.map(|array| (array.dtype, array.shape.clone(), array.piece.clone())))
        };
        if kind(&part.entry) != kind(&self.like) {
            return Err(Error::corrupt(format!("{} has another length or shape there", key())));
        }
        read(self.store.journal.files(), part, &self.url.key)
            .map_err(|e| e.context(format!("the store at {}", self.url.folder.display())))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn urls_are_read_back_and_others_refused() {
        let schema = fieldstone_core::schema::Schema::builtin("simulation").unwrap();
        let key = schema.resolve(&[("run", "a&b?c"), ("variable", "t"), ("step", "6")]).unwrap();
        let url = EntryUrl {
            folder: "/data/a store?&".into(),
            store: Id([3; 16]),
            entry: EntryId { writer: Id([9; 16]), sequence: 7, ordinal: u64::MAX },
            key: fieldstone_format::keys::encode_key(&key).bytes,
        };
        let text = url.text();
        assert!(EntryUrl::is_one(&text) && !EntryUrl::is_one("file:///data"), "{text}");
        assert_eq!(EntryUrl::parse(&text).unwrap(), url);
        for wrong in ["fieldstone+file:///a", "file:///a?store=1", "fieldstone+http://a?store=1"] {
            assert_eq!(EntryUrl::parse(wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
        }
        for end in SCHEME.len()..text.len() {
            assert!(EntryUrl::parse(&text[..end]).is_err(), "{end}");
        }
    }
}
