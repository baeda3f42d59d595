//! Reindexing: fields of this store become entries of another one, which name them and copy nothing (R34, J-54).
//!
//! Invariants:
//! * an entry names store, log, commit and ordinal, so that it is found wherever its bytes are later;
//! * the store that holds the bytes records who names them before the other one has an entry; its purges leave them.

use std::sync::Arc;

use fieldstone_core::key::{LEVELS, Names};
use fieldstone_core::request::Request;
use fieldstone_core::schema::Selection;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::block::Block;
use fieldstone_format::entry::{Blocks, Entry, External, Location};
use fieldstone_format::keys::{KeyDecoder, encode_key, key_text, level_ends};
use fieldstone_format::store_record::{self, Pointer, STORE_RECORDS_SINCE, SelectionItem};
use fieldstone_journal::writer::{Encoded, Payload};
use fieldstone_journal::{Journal, Session};

use crate::api::{ArchiveOptions, IndexedField, LeftLog, PointedFields, Pointing};
use crate::local::LocalStore;
use crate::overlay::{check_lists, listed, request_of};
use crate::read::{EntryUrl, Part, Scan};
use crate::snapshot::{Snapshot, StorePointer, standing_pointers};

/// Fields in one answer.
pub const PORTION: usize = 512;

/// The next fields of a request behind an encoded key, at most [`PORTION`], as entries that name this store.
pub fn indexed(
    store: &LocalStore,
    request: &Request,
    after: &[u8],
    session: &Session,
) -> Result<Vec<IndexedField>> {
    check_lists(request, "a reindex")?;
    let folder = store.folder().ok_or_else(|| {
        Code::WrongStore
            .error("other stores cannot name fields of a store in memory")
            .with_hint("reindex from a store in a folder")
    })?;
    let journal = store.journal();
    let selection = select(journal, request)?;
    let mut scan = Scan::new(journal.looks().snapshot()?, selection, None)?.on(journal.files());
    scan = scan.within(session.limits(&journal.env().clock));
    if !after.is_empty() {
        scan.skip_to(&[after, &[0]].concat())?;
    }
    let (mut found, mut decoder, id) = (Vec::new(), KeyDecoder::new(), journal.home().id);
    while found.len() < PORTION
        && let Some(versions) = scan.next_key()?
    {
        versions.array()?;
        let decoded = decoder.decode(&versions.key)?;
        let present = decoded.iter().filter(|(_, value)| !value.is_absent());
        let key = present.map(|(keyword, value)| (keyword.to_string(), value.to_string())).collect();
        let name = |part: &Part| {
            let (store, entry) = (id, part.id());
            let url = EntryUrl { folder: folder.clone(), store, entry, key: versions.key.clone() };
            named(part, &url)
        };
        let parts = versions.live().iter().rev().map(name).collect::<Result<_>>()?;
        found.push(IndexedField { key, encoded: versions.key, parts });
    }
    Ok(found)
}

/// Takes entries that name another store; those that do not fit the schema are left, each with its key and the reason.
pub fn take_indexed(
    store: &LocalStore,
    fields: &[IndexedField],
    session: &Session,
) -> Result<Vec<(String, String)>> {
    let journal = store.journal();
    journal.access().check_writable()?;
    if store.folder().is_none() {
        return Err(Code::WrongStore
            .error("a store in memory cannot name fields of other stores")
            .with_hint("copy the fields, or name them in a store in a folder"));
    }
    let mut left = Vec::new();
    for field in fields {
        let pairs: Vec<(&str, &str)> = field.key.iter().map(|(name, value)| (&**name, &**value)).collect();
        let key = match journal.schema().make(|schema| schema.resolve(&pairs)) {
            Ok(key) => encode_key(&key),
            Err(e) => {
                let own = pairs.iter().map(|(name, value)| format!("{name}={value}"));
                left.push((own.collect::<Vec<_>>().join(","), e.message().to_owned()));
                continue;
            }
        };
        journal.datasets().check(key.bytes[..key.ends[0]].to_vec(), session)?;
        let options = ArchiveOptions { session: session.clone(), ..ArchiveOptions::default() };
        for part in &field.parts {
            let entry = Entry::decode(part)?;
            let blocks = match &entry.location {
                Location::None => Vec::new(),
                Location::External(external) => {
                    EntryUrl::parse(&external.url)?;
                    match &external.blocks {
                        Blocks::Inline(blocks) => blocks.clone(),
                        Blocks::Table { .. } => return Err(Error::corrupt("an indexed field has a table")),
                    }
                }
                _ => return Err(Error::corrupt("an indexed field does not name a store")),
            };
            let (key, payload, table) = (key.clone(), Payload::default(), Vec::new());
            let (digest, origin) = (None, None);
            store.take(
                Encoded { key, entry, size: 0, blocks, payload, table, digest, origin },
                false,
                &options,
            )?;
        }
    }
    Ok(left)
}

/// An entry that names another one by a URL.
fn named(part: &Part, url: &EntryUrl) -> Result<Vec<u8>> {
    if part.entry.location.holes() > 0 {
        return Err(Code::FieldIncomplete
            .error(format!("{} has elements that nobody wrote in a file of arrays", key_text(&url.key)))
            .with_hint("write them, or copy the field"));
    }
    let mut entry = Entry { commit: 0, ordinal: 0, holder: None, ..part.entry.clone() };
    let text = match &entry.location {
        Location::None => None,
        // It names the store that holds the bytes.
        Location::External(external) if EntryUrl::is_one(&external.url) => Some(external.url.clone()),
        _ => Some(url.text()),
    };
    if let Some(array) = &mut entry.array {
        array.chunk = None;
    }
    if let Some(url) = text {
        let length = entry.length;
        let whole = Block { stored: length, crc: 0, summary: None };
        let blocks = Blocks::Inline(vec![whole; usize::from(entry.layout(0)?.count()? > 0)]);
        let (mtime, offset, parts, size, file) = (0, 0, 1, 0, 0);
        let (nbytes, stride) = (length, length);
        entry.location = Location::External(Box::new(External {
            url,
            nbytes,
            mtime,
            offset,
            parts,
            stride,
            size,
            file,
            blocks,
        }));
    }
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    Ok(bytes)
}

/// Records that another store names what a request selects, or does so no more; returns whether it counts for all of that.
pub fn point(journal: &Journal, request: &Request, how: &Pointing) -> Result<bool> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "a pointer")?;
    check_lists(request, "a reindex")?;
    let snapshot = journal.looks().snapshot()?;
    let selection = select(journal, request)?;
    let mut scan = Scan::new(snapshot.clone(), selection.clone(), None)?.on(journal.files()).lenient(true);
    scan = scan.within(how.session.limits(&journal.env().clock));
    let (mut decoder, mut selections, mut is_whole) = (KeyDecoder::new(), Vec::new(), true);
    let (mut shapes, mut dataset) = (Vec::new(), Vec::new());
    while let Some(versions) = scan.next_key()? {
        let level = &versions.key[..level_ends(&versions.key)?[0]];
        if dataset != level {
            dataset = level.to_vec();
            is_whole = is_whole && journal.ranges().check_may(level, &snapshot, "keep", &how.session).is_ok();
        }
        let key = decoder.decode(&versions.key)?;
        let names = [0, 1, 2].map(|level| key.levels[level].names.clone());
        if shapes.contains(&names) {
            continue;
        }
        let selected = selected(&selection, [&names[0], &names[1], &names[2]])?;
        shapes.push(names);
        if !selections.contains(&selected) {
            selections.push(selected);
        }
    }
    let version = if how.names { snapshot.version().to_record() } else { Vec::new() };
    let pointer =
        |selection| Pointer { store: how.store, url: how.url.clone(), selection, version: version.clone() };
    let pointers: Vec<Pointer> = selections.into_iter().map(pointer).collect();
    if !pointers.is_empty() {
        journal.ranges().point(pointers, &how.session)?;
    }
    Ok(is_whole)
}

/// The stores that name entries of this one, oldest first.
pub fn pointers(journal: &Journal) -> Result<Vec<PointedFields>> {
    let (snapshot, identity) = (journal.looks().snapshot()?, &journal.env().identity);
    let row = |pointer: &Arc<StorePointer>| PointedFields {
        request: request_of(&pointer.pointer.selection),
        store: pointer.pointer.store,
        url: pointer.pointer.url.clone(),
        by: identity.user_name(pointer.user),
        since: pointer.time,
    };
    Ok(standing_pointers(&snapshot).iter().map(row).collect())
}

/// The reasons why a purge leaves fields that other stores name.
pub fn left_for_others(snapshot: &Snapshot) -> Vec<LeftLog> {
    let left = |pointer: &Arc<StorePointer>| LeftLog {
        file: request_of(&pointer.pointer.selection),
        why: format!("the store at {} names these fields: they stay as they are", pointer.pointer.url),
        accepted: true,
    };
    standing_pointers(snapshot).iter().map(left).collect()
}

fn select(journal: &Journal, request: &Request) -> Result<Selection> {
    let now = journal.env().clock.now();
    journal.schema().make(|schema| schema.select_at(request, now))
}

/// A request on keys with these names, as a record has it.
fn selected(selection: &Selection, names: [&Names; LEVELS]) -> Result<store_record::Selection> {
    let matcher = selection.for_shape(names);
    let matcher = matcher.ok_or_else(|| Error::internal("a key was selected that does not match"))?;
    let mut items = Vec::new();
    for (level, (names, constraints)) in names.iter().zip(&matcher.constraints).enumerate() {
        for (keyword, constraint) in names.iter().zip(constraints) {
            let Some(values) = listed(constraint, keyword)? else { continue };
            items.push(SelectionItem { level: level as u8, keyword: keyword.clone(), values });
        }
    }
    Ok(store_record::Selection { items })
}
