//! The reads of an execution, commit by commit, and the stores that have recorded them.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::{RelationRow, Version, VertexName};

use crate::interop::lineage::props::{PropList, count};

/// Maximum length of the list of requests for one commit.
const REQUESTS: usize = 1024;
/// Marks a list of requests that was cut.
const CUT: &str = "; …";

/// Reads of fields that one commit holds.
#[derive(Debug, Clone)]
struct CommitReads {
    first: u64,
    last: u64,
    time: i64,
    fields: u64,
    bytes: u64,
    /// The requests, each once.
    request: String,
    latest: Arc<str>,
    /// The URL of the store, if others can open it.
    url: Option<Arc<str>>,
    /// The number of the last change.
    changed: u64,
}

/// The changes that one store has recorded.
#[derive(Debug, Clone, Default)]
struct StoreKnows {
    described: bool,
    /// The number of the last change that it has.
    upto: u64,
}

/// A read to be recorded.
#[derive(Debug, Clone)]
pub struct ReadNote<'a> {
    /// The commit that wrote the field.
    pub commit: CommitId,
    /// A stamp above the commit's.
    pub stamp: u64,
    /// The clock.
    pub time: i64,
    /// 1 if the field was not read before, else 0.
    pub fields: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// The request.
    pub request: &'a Arc<str>,
    /// The URL of the store.
    pub url: Option<&'a Arc<str>>,
}

/// All reads of an execution.
#[derive(Debug, Default)]
pub struct Ledger {
    commits: Vec<(CommitId, CommitReads)>,
    places: HashMap<CommitId, usize>,
    /// The index of the commit that was read last: neighbouring fields mostly share a commit.
    last: usize,
    stores: HashMap<Id, StoreKnows>,
    changes: u64,
}

impl Ledger {
    /// Notes a read.
    pub fn note(&mut self, note: &ReadNote<'_>) {
        self.changes += 1;
        let changed = self.changes;
        if self.commits.get(self.last).is_none_or(|(id, _)| *id != note.commit) {
            self.last = *self.places.entry(note.commit).or_insert_with(|| {
                self.commits.push((note.commit, CommitReads::begun(note)));
                self.commits.len() - 1
            });
        }
        let Some((_, reads)) = self.commits.get_mut(self.last) else { return };
        reads.last = reads.last.max(note.stamp);
        reads.fields += note.fields;
        reads.bytes = reads.bytes.saturating_add(note.bytes);
        reads.changed = changed;
        if !Arc::ptr_eq(&reads.latest, note.request) && reads.latest != *note.request {
            reads.latest = note.request.clone();
            reads.add_request(note.request);
        }
    }

    /// Whether there are reads that no store has recorded.
    pub fn is_behind(&self) -> bool {
        self.changes > self.stores.values().map(|known| known.upto).max().unwrap_or(0)
    }

    /// Whether a store has the execution's identity.
    pub fn is_described(&self, store: Id) -> bool {
        self.stores.get(&store).is_some_and(|known| known.described)
    }

    /// Records that a store has the execution's identity.
    pub fn note_described(&mut self, store: Id) {
        self.stores.entry(store).or_default().described = true;
    }

    /// Relations for reads that a store lacks.
    pub fn fresh(&self, store: Id, reader: &VertexName) -> Result<Vec<RelationRow>> {
        let upto = self.stores.get(&store).map_or(0, |known| known.upto);
        let mut fresh: Vec<_> = self.commits.iter().filter(|(_, reads)| reads.changed > upto).collect();
        fresh.sort_by_key(|(id, reads)| (reads.first, *id));
        fresh.into_iter().map(|(id, reads)| reads.row(*id, store, reader)).collect()
    }

    /// The number of the last change.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Records that a store has all changes up to a number, and the execution's identity.
    pub fn landed(&mut self, store: Id, upto: u64) {
        let known = self.stores.entry(store).or_default();
        known.described = true;
        known.upto = known.upto.max(upto);
    }
}

impl CommitReads {
    fn begun(note: &ReadNote<'_>) -> CommitReads {
        CommitReads {
            first: note.stamp,
            last: note.stamp,
            time: note.time,
            fields: 0,
            bytes: 0,
            request: note.request.to_string(),
            latest: note.request.clone(),
            url: note.url.cloned(),
            changed: 0,
        }
    }

    fn add_request(&mut self, request: &str) {
        // A list that was cut stays so: it is not searched any more.
        if self.request.ends_with(CUT) || self.request.split("; ").any(|known| known == request) {
            return;
        }
        let fits = self.request.len() + request.len() <= REQUESTS;
        self.request.push_str(if fits { "; " } else { CUT });
        self.request.push_str(if fits { request } else { "" });
    }

    fn row(&self, id: CommitId, recorded_in: Id, reader: &VertexName) -> Result<RelationRow> {
        let mut props = PropList::default();
        props.set("fields", count(self.fields));
        props.set("bytes", count(self.bytes));
        props.set("request", Value::Text(self.request.clone()));
        let url = self.url.as_ref().filter(|_| id.store != recorded_in);
        props.set_some("store", url.map(|url| Value::Text(url.to_string())));
        Ok(RelationRow {
            kind: "read".into(),
            source: reader.clone(),
            target: VertexName::new("commit", &id.to_string()),
            version: Version { stamp: self.first, time: self.time, deleted: false },
            until: Some(self.last),
            props: props.props()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(store: u8, sequence: u64) -> CommitId {
        CommitId { store: Id([store; 16]), log: Id([9; 16]), sequence }
    }

    fn read(ledger: &mut Ledger, sequence: u64, stamp: u64, request: &str) {
        let request: Arc<str> = request.into();
        let url: Arc<str> = "/other".into();
        let note = ReadNote {
            commit: commit(1, sequence),
            stamp,
            time: 0,
            fields: 1,
            bytes: 10,
            request: &request,
            url: Some(&url),
        };
        ledger.note(&note);
    }

    #[test]
    fn a_store_is_given_what_it_does_not_have_yet() {
        let reader = VertexName::new("job", "1");
        let mut ledger = Ledger::default();
        read(&mut ledger, 1, 5, "a");
        read(&mut ledger, 1, 6, "b");
        read(&mut ledger, 1, 7, "a");
        read(&mut ledger, 2, 8, "a");
        let rows = ledger.fresh(Id([1; 16]), &reader).unwrap();
        assert_eq!(rows.len(), 2);
        let get = |row: &RelationRow, name: &str| row.props.get(name).unwrap();
        assert_eq!((rows[0].version.stamp, rows[0].until), (5, Some(7)));
        assert_eq!(get(&rows[0], "fields"), Some(Value::Int(3)));
        assert_eq!(get(&rows[0], "request"), Some(Value::Text("a; b".into())));
        assert_eq!(get(&rows[0], "store"), None, "it is the same store");
        // Until a commit with them is durable, all are handed in again.
        assert_eq!(ledger.fresh(Id([1; 16]), &reader).unwrap().len(), 2);
        ledger.landed(Id([1; 16]), ledger.changes());
        assert!(!ledger.is_behind() && ledger.is_described(Id([1; 16])));
        read(&mut ledger, 2, 9, "a");
        assert!(ledger.is_behind());
        assert_eq!(ledger.fresh(Id([1; 16]), &reader).unwrap().len(), 1);
        let elsewhere = ledger.fresh(Id([2; 16]), &reader).unwrap();
        assert_eq!(elsewhere.len(), 2);
        assert_eq!(get(&elsewhere[0], "store"), Some(Value::Text("/other".into())));
    }

    #[test]
    fn requests_are_kept_up_to_a_length() {
        let mut ledger = Ledger::default();
        (0..1000).for_each(|n| read(&mut ledger, 1, n, &format!("step={n}")));
        let row = ledger.fresh(Id([1; 16]), &VertexName::new("job", "1")).unwrap().remove(0);
        let Some(Value::Text(text)) = row.props.get("request").unwrap() else { panic!("no text") };
        assert!(text.starts_with("step=0; step=1; ") && text.ends_with("; …") && text.len() < 1100, "{text}");
        assert_eq!(row.props.get("fields").unwrap(), Some(Value::Int(1000)));
    }
}
