//! One execution: its identity, and its relations in the commits that it makes.
//!
//! A commit that holds fields, or records of the catalog, gets one relation `write` from the execution, at the commit's
//! own stamp; the same commit records all reads up to then. So a result and its origins become durable together, or
//! neither does (G-30).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::value::Value;
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::graph::{RelationRow, Version, VertexName, VertexRow};
use fieldstone_graph::put::{RelationPut, VertexPut};
use fieldstone_journal::author::{AuthorPart, CommitAuthor, Landed};
use fieldstone_journal::medium::clock_stamp;

use super::ledger::{Ledger, ReadNote};
use super::link::ExecutionLink;
use crate::interop::lineage::GraphRows;
use crate::interop::lineage::props::{PropList, Span, put_execution, relation};

/// An execution that runs in this process.
#[derive(Debug)]
pub struct ExecutionInner {
    /// The world of its store, for the clock and random numbers. The operating system identifies the user.
    pub env: Env,
    /// Number of the process that it runs in.
    pub process: u32,
    /// Its vertex: a job, or a process of one.
    pub vertex: VertexName,
    pub job: VertexName,
    /// The URL of the store that its processes record in, if they can open it.
    pub store: Option<String>,
    /// The store that records who ran the job, if that is another execution.
    recorded: Option<Id>,
    /// The enclosing execution of this process.
    pub outer: Option<Arc<ExecutionInner>>,
    /// The store that holds its record, once it does.
    home: OnceLock<Id>,
    /// The stamp of its beginning.
    pub start: u64,
    /// Properties known at its beginning.
    begun: PropList,
    /// The greatest stamp that it issued or read.
    last: AtomicU64,
    open: AtomicBool,
    ledger: Mutex<Ledger>,
    /// Notes on rows that no commit could take, each once.
    unsaid: Mutex<Vec<String>>,
}

/// The identity of an execution.
#[derive(Debug)]
pub struct Naming {
    pub vertex: VertexName,
    pub job: VertexName,
    pub store: Option<String>,
    pub recorded: Option<Id>,
    pub outer: Option<Arc<ExecutionInner>>,
}

impl ExecutionInner {
    /// An execution that begins now.
    pub fn new(env: Env, naming: Naming, begun: PropList) -> ExecutionInner {
        let Naming { vertex, job, store, recorded, outer } = naming;
        let read = outer.as_ref().map_or(0, |outer| outer.last.load(Ordering::Relaxed));
        let inner = ExecutionInner {
            process: std::process::id(),
            env,
            vertex,
            job,
            store,
            recorded,
            outer,
            home: OnceLock::new(),
            start: 0,
            begun,
            last: AtomicU64::new(read),
            open: AtomicBool::new(true),
            ledger: Mutex::default(),
            unsaid: Mutex::default(),
        };
        ExecutionInner { start: inner.stamp(), ..inner }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    /// A stamp above all that it read or issued.
    pub fn stamp(&self) -> u64 {
        self.stamp_at(self.env.clock.now())
    }

    fn stamp_at(&self, now: i64) -> u64 {
        let now = clock_stamp(now);
        let next = |last: u64| now.max(last.saturating_add(1));
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(before.unwrap_or_default())
    }

    /// Whether it is still running.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Marks it as ended: nothing more is recorded of it.
    pub fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
        if let Some(outer) = &self.outer {
            // Later steps of the outer execution may follow from this one's reads.
            outer.last.fetch_max(self.last.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The link for processes that it starts.
    pub fn link(&self) -> ExecutionLink {
        let process = (self.vertex != self.job).then(|| self.vertex.id.to_string());
        let id = self.home.get().copied().or(self.recorded);
        ExecutionLink { job: self.job.id.to_string(), process, store: self.store.clone(), id }
    }

    /// Records a read of a field's bytes, which these commits wrote.
    pub fn note_read(&self, commits: &[(CommitId, u64)], note: &FieldRead<'_>) {
        if !self.is_open() {
            return;
        }
        let time = self.env.clock.now();
        for (commit, stamp) in commits {
            self.last.fetch_max(*stamp, Ordering::Relaxed);
            let (commit, stamp) = (*commit, self.stamp_at(time));
            let FieldRead { fields, bytes, request, url } = *note;
            self.ledger().note(&ReadNote { commit, stamp, time, fields, bytes, request, url });
        }
    }

    /// Relations for its reads that the store lacks: for a commit that may be another execution's.
    pub fn reads(&self, store: Id) -> Result<Vec<RelationPut>> {
        let put = |row: RelationRow| {
            let RelationRow { kind, source, target, version, until, props } = row;
            RelationPut { kind, source, target, props, time: Some(version.stamp), until }
        };
        Ok(self.ledger().fresh(store, &self.vertex)?.into_iter().map(put).collect())
    }

    /// Whether it has reads that no store has recorded.
    pub fn is_behind(&self) -> bool {
        self.ledger().is_behind()
    }

    /// The store of this id has its record and its identity.
    pub fn note_described(&self, store: Id) {
        self.home.get_or_init(|| store);
        self.ledger().note_described(store);
    }

    /// The store that records who ran its job.
    pub fn recorded(&self) -> Option<Id> {
        if self.vertex == self.job { self.home.get().copied() } else { self.recorded }
    }

    /// Its identity, for a store: its vertex, its job and its user; after its end, also the properties known then.
    pub fn description(&self, store: Option<Id>, end: Option<(u64, &PropList)>) -> Result<GraphRows> {
        let mut rows = GraphRows::default();
        let span = Span { begin: self.start, end: end.map(|(end, _)| end) };
        let none = PropList::default();
        let ended = end.map_or(&none, |(_, ended)| ended);
        put_execution(&mut rows, &self.vertex, span, self.begun.clone(), ended)?;
        let user = VertexName::new("user", &Env::real().identity.uid().to_string());
        if self.vertex != self.job {
            rows.relations.push(relation("contains", &self.job, &self.vertex, span));
        }
        // The execution that began the job records its user there.
        if self.vertex == self.job || self.recorded.is_none() || self.recorded != store {
            rows.relations.push(relation("run", &user, &self.job, span));
        }
        Ok(rows)
    }

    /// Notes on facts that commits lack, one line each; each is returned once.
    pub fn take_unsaid(&self) -> Vec<String> {
        std::mem::take(&mut self.unsaid.lock())
    }

    fn part(&self, store: Id) -> Result<AuthorPart> {
        let ledger = self.ledger();
        let mut part = AuthorPart {
            floor: self.last.load(Ordering::Relaxed),
            writer: Some(self.vertex.clone()),
            reads: ledger.fresh(store, &self.vertex)?,
            ticket: ledger.changes(),
            ..AuthorPart::default()
        };
        if !ledger.is_described(store) {
            let described = self.description(Some(store), None)?;
            part.vertices = described.vertices.into_iter().map(|put| self.vertex_row(put)).collect();
            part.relations = described.relations.into_iter().map(|put| self.relation_row(put)).collect();
        }
        Ok(part)
    }

    fn version(&self, time: Option<u64>) -> Version {
        let stamp = time.unwrap_or(self.start);
        Version { stamp, time: stamp as i64, deleted: false }
    }

    fn vertex_row(&self, put: VertexPut) -> VertexRow {
        let VertexPut { vertex, fixed, props, time } = put;
        VertexRow { vertex, version: self.version(time), fixed, props }
    }

    fn relation_row(&self, put: RelationPut) -> RelationRow {
        let RelationPut { kind, source, target, props, time, until } = put;
        RelationRow { kind, source, target, version: self.version(time), until, props }
    }
}

/// A read of a field.
#[derive(Debug, Clone, Copy)]
pub struct FieldRead<'a> {
    /// 1 if the field was not read before, else 0.
    pub fields: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// The request.
    pub request: &'a Arc<str>,
    /// The URL of the store.
    pub url: Option<&'a Arc<str>>,
}

impl CommitAuthor for ExecutionInner {
    fn hand_in(&self, store: Id) -> AuthorPart {
        let floor = self.last.load(Ordering::Relaxed);
        self.part(store).unwrap_or_else(|error| {
            let note = format!("cannot record the origins of a commit: {error}");
            tracing::warn!("{note}");
            let mut unsaid = self.unsaid.lock();
            if !unsaid.contains(&note) {
                unsaid.push(note);
            }
            AuthorPart { floor, ..AuthorPart::default() }
        })
    }

    fn landed(&self, landed: &Landed) {
        self.last.fetch_max(landed.stamp, Ordering::Relaxed);
        if let Some(ticket) = landed.ticket {
            self.ledger().landed(landed.store, ticket);
        }
    }
}

/// Texts as one value.
pub fn texts(all: &[String]) -> Value {
    Value::List(all.iter().map(|text| Value::Text(text.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(begun: PropList) -> ExecutionInner {
        let job = VertexName::new("job", "1");
        let naming = Naming { vertex: job.clone(), job, store: None, recorded: None, outer: None };
        ExecutionInner::new(Env::real(), naming, begun)
    }

    #[test]
    fn a_part_that_cannot_be_made_is_noted_once_and_keeps_its_floor() {
        let mut begun = PropList::default();
        begun.set("", Value::Int(1)); // no property is called so
        let execution = execution(begun);
        for _ in 0..2 {
            let part = execution.hand_in(Id([1; 16]));
            assert!(part.writer.is_none() && part.vertices.is_empty() && part.floor == execution.start);
        }
        let unsaid = execution.take_unsaid();
        assert!(unsaid.len() == 1 && unsaid[0].contains("the origins of a commit"), "{unsaid:?}");
        assert!(execution.take_unsaid().is_empty());
    }

    #[test]
    fn who_an_execution_is_is_handed_in_until_a_commit_with_it_is_durable() {
        let (execution, store) = (execution(PropList::default()), Id([1; 16]));
        let part = execution.hand_in(store);
        assert!(part.writer.is_some() && !part.vertices.is_empty());
        // That commit took none of it.
        execution.landed(&Landed { store, stamp: part.floor + 1, ticket: None });
        let again = execution.hand_in(store);
        assert_eq!((again.vertices.len(), again.floor), (part.vertices.len(), part.floor + 1));
        execution.landed(&Landed { store, stamp: part.floor + 2, ticket: Some(again.ticket) });
        assert!(execution.hand_in(store).vertices.is_empty());
        assert!(!execution.hand_in(Id([2; 16])).vertices.is_empty());
    }
}
