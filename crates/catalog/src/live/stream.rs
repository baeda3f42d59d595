//! Hits one at a time, found by a thread of their own in bounded memory.

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::sync::mpsc::{Receiver, SyncSender, sync_channel};
use fieldstone_core::sync::thread;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::AttributeId;

use crate::engine::{Flow, can_stand_in};
use crate::query::{self, Hit, HitTable, Query};
use crate::reader::consistent_read::ConsistentRead;
use crate::reader::location::EngineLocation;
use crate::reader::{EngineReader, Visibility};

/// Capacity of the queue between the thread that finds hits and the one that takes them.
const WAITING: usize = 1024;
/// Hits of a stream that are remembered, so that it can continue from another engine: some 4 MB.
const REMEMBERED: usize = 1 << 16;

/// Hits, one at a time.
pub fn stream(
    reader: &Arc<EngineReader>,
    query: &Query,
) -> Result<Box<dyn Iterator<Item = Result<Hit>> + Send>> {
    // Check before copying the query for the thread that answers it.
    query.expr.size().check()?;
    reader.store.journal.check_there()?;
    let _span = tracing::debug_span!("query", streamed = true).entered();
    reader.raise_apply_error()?;
    let visibility = Visibility::All(&query.session);
    let moment = reader.consistent_read(visibility)?;
    let pending = query.session.transaction().is_some() || moment.has_own();
    if pending || reader.connections.location_now(&moment.seen.heads)? == EngineLocation::Memory {
        // No other thread may use that engine, or write to it, while it is read.
        let table = reader.look_from(moment, visibility, &mut |index| query::collect(index, query))?;
        return Ok(Box::new(TableHits { table, next: 0 }));
    }
    let (sender, receiver) = sync_channel(WAITING);
    let reader = reader.clone();
    let query = query.clone();
    thread::Builder::new()
        .name("catalog".into())
        .spawn(move || send(&reader, &query, moment, &sender))
        .map_err(|e| Code::ProcessLimit.error(format!("cannot start a thread for a query: {e}")))?;
    Ok(Box::new(HitStream { receiver: Some(receiver), process: std::process::id() }))
}

/// Finds hits and sends them until the receiver is gone. If the engine breaks on the way, a rebuilt one
/// supplies the hits that were not sent yet.
fn send(reader: &EngineReader, query: &Query, moment: ConsistentRead, sender: &SyncSender<Result<Hit>>) {
    let mut sent = StreamProgress { limit: query.limit, ids: HashSet::new(), count: 0 };
    let span = tracing::debug_span!("stream", hits = tracing::field::Empty);
    let _within = span.enter();
    let mut limits = query.session.limits(&reader.store.env.clock);
    let outcome = reader.look_shared(moment, &mut |index| {
        let again = sent.again()?;
        query::run(index, query, &mut |hit| {
            limits.step()?;
            let hit = hit.to_hit();
            let id = hit.id;
            if again && sent.ids.contains(&id) {
                return Ok(Flow::More);
            }
            if sent.is_all() || sender.send(Ok(hit)).is_err() {
                return Ok(Flow::Stop);
            }
            sent.note(id);
            Ok(Flow::More)
        })
    });
    let outcome = match outcome {
        Err(e) if can_stand_in(&e) && sent.count == 0 => {
            reader.connections.go_away();
            // Collect everything at once: the receiver of the hits may query that engine in between.
            reader.ask(query, |tables| query::collect(tables, query)).map(|table| {
                TableHits { table, next: 0 }.all(|hit| sender.send(hit).is_ok());
            })
        }
        outcome => outcome.map(drop),
    };
    span.record("hits", sent.count);
    if let Err(error) = outcome {
        // The receiver may be gone.
        drop(sender.send(Err(error)));
    }
}

/// The hits that a stream has sent.
struct StreamProgress {
    limit: Option<u64>,
    /// The first of them, up to [`REMEMBERED`].
    ids: HashSet<AttributeId>,
    count: u64,
}

impl StreamProgress {
    /// Whether hits were sent before. Unavailable if too many were sent to remember which.
    fn again(&self) -> Result<bool> {
        if self.count > self.ids.len() as u64 {
            return Err(Error::unavailable("the catalog's engine broke during the read")
                .with_hint("query again: the engine is built again first"));
        }
        Ok(self.count > 0)
    }

    fn is_all(&self) -> bool {
        self.limit.is_some_and(|limit| self.count >= limit)
    }

    fn note(&mut self, id: AttributeId) {
        self.count += 1;
        if self.ids.len() < REMEMBERED {
            self.ids.insert(id);
        }
    }
}

/// The hits of a table, as an iterator.
struct TableHits {
    table: HitTable,
    next: usize,
}

impl Iterator for TableHits {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        let hit = self.table.hit(self.next)?;
        self.next += 1;
        Some(Ok(hit))
    }
}

/// Hits that another thread finds. Dropping this ends that thread.
struct HitStream {
    receiver: Option<Receiver<Result<Hit>>>,
    /// The process that has the thread.
    process: u32,
}

impl HitStream {
    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Iterator for HitStream {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        if self.is_forked() {
            // The thread exists only in the parent.
            std::mem::forget(self.receiver.take()?);
            let error = Code::Forked.error("this process was forked after the query for these hits");
            return Some(Err(error.with_hint("query again in this process")));
        }
        self.receiver.as_ref()?.recv().ok()
    }
}

impl Drop for HitStream {
    fn drop(&mut self) {
        if self.is_forked() {
            // A thread that is not in this process may have locked it.
            std::mem::forget(self.receiver.take());
        }
    }
}
