//! Writers, transactions and problems.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::attempt::Origin;
use fieldstone_format::{FIRST_VERSION, Id};
use fieldstone_journal::medium::Inspect;

use crate::api::{Status, TransactionStatus, WriterStatus};
use crate::snapshot::{LogView, Owners, Refresher, Snapshot};

/// A clock that differs from the file system's by this much, nanoseconds, is named.
const CLOCK_OFF: i64 = 60_000_000_000;

/// Collects the status; the caller adds what only the handle knows.
pub fn status(
    env: &Env,
    inspect: &dyn Inspect,
    snapshot: &Arc<Snapshot>,
    refresher: &Refresher,
) -> Result<Status> {
    let mut transactions: HashMap<Id, TransactionStatus> = HashMap::new();
    for log in &snapshot.logs {
        for prepared in &log.record.prepared {
            let decided = snapshot.transaction_state(prepared.transaction, log.uid);
            if decided.is_some_and(|decided| decided.closed()) {
                continue;
            }
            let entry = transactions.entry(prepared.transaction).or_insert_with(|| TransactionStatus {
                id: prepared.transaction,
                owners: Vec::new(),
                fields: 0,
                kinds: decided.map_or(0, |decided| decided.kinds()),
                since: prepared.since,
            });
            let header = &log.header;
            let state = state(env, log, refresher);
            entry
                .owners
                .push(format!("{}@{} process {} ({state})", header.user, header.host, header.process));
            entry.fields += prepared.fields;
            entry.since = entry.since.min(prepared.since);
        }
    }
    let mut transactions: Vec<_> = transactions.into_values().collect();
    transactions.sort_by_key(|t| (t.since, t.id));
    let owners = match &snapshot.owners {
        Owners::One(owner) => owner.iter().map(|uid| env.identity.user_name(*uid)).collect(),
        Owners::Many(owners, _) => {
            let mut lines: Vec<String> = owners
                .iter()
                .map(|(prefix, uid)| {
                    format!(
                        "{} {}",
                        fieldstone_format::keys::level_text(prefix),
                        env.identity.user_name(*uid)
                    )
                })
                .collect();
            lines.sort_unstable();
            lines
        }
    };
    Ok(Status {
        id: snapshot.logs.first().map(|log| log.header.store),
        format: snapshot.logs.iter().map(|log| log.header.version).max().unwrap_or(FIRST_VERSION),
        version: snapshot.version().encode(),
        writers: snapshot.logs.iter().map(|log| writer(env, log, inspect, refresher)).collect(),
        transactions,
        owners,
        problems: snapshot.problems.iter().map(|p| format!("{}: {}", p.file, p.why)).collect(),
        free_bytes: inspect.free_bytes(),
        ..Status::default()
    })
}

fn state(env: &Env, log: &LogView, refresher: &Refresher) -> &'static str {
    let here = log.header.host == env.identity.host();
    match refresher.announced(log) {
        Some((_, true)) => "closed",
        _ if here && !env.identity.alive(log.header.process) => "gone",
        _ => "open",
    }
}

/// Of which job a log is; by its commits where its header is damaged.
fn origin(log: &LogView) -> Origin {
    let attempt = log.record.attempt.as_ref().map(|attempt| attempt.name.clone()).unwrap_or_default();
    Origin { attempt, ..log.header.origin.clone() }
}

fn writer(env: &Env, log: &LogView, inspect: &dyn Inspect, refresher: &Refresher) -> WriterStatus {
    let off = log.record.time.saturating_sub(log.changed);
    WriterStatus {
        writer: log.writer,
        host: log.header.host.clone(),
        process: log.header.process,
        user: log.header.user.clone(),
        state: state(env, log, refresher),
        commits: log.record.sequence,
        segments: log.segments.len() as u64,
        last_flush: log.record.time,
        clock_off: (off.saturating_abs() >= CLOCK_OFF).then_some(off),
        // A log that is gone since has a problem of its own.
        tail: inspect.tail(log).unwrap_or(0),
        origin: origin(log),
    }
}
