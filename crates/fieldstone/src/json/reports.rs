//! A store as a whole: its state, checks, losses, transactions, an overview; and errors.

use fieldstone_core::{Code, Error};
use fieldstone_store::api::{
    AcceptanceReport, Advice, CompactReport, Damage, DatasetLock, FormatPin, HiddenFields, Id, LeftLog,
    MaintainReport, MaintainStep, PurgeReport, RetentionRule, Status, StatusProblem, TransactionStatus,
    VerifyReport, WipeReport, WriterStatus,
};
use fieldstone_store::api::{
    ErasureReport, HandOverInfo, HandOverReport, HoldInfo, OverlaidFields, PointedFields,
};
use serde_json::{Map, Value, json};

use super::fields::axes_ends;
use super::values::{text, time};
use crate::facts::Overview;
use crate::{BackupReport, MendedPart, PrefetchReport, ReindexReport, RepairReport};

/// Maximum number of entries in one list of a status.
const BOUND: usize = 100;
/// Maximum number of bytes of a version in a status.
const VERSION_MAX: usize = 1024;

/// An error, for programs that do not read its text.
pub fn error(error: &Error) -> Value {
    json!({
        "kind": error.kind().name(),
        "code": error.code().as_str(),
        "retryable": error.is_retryable(),
        "message": error.message(),
        "hint": error.hint(),
    })
}

/// The state of a store; with `every`, also all earlier writers. Of owners, transactions, problems and losses it has
/// the first hundred, and their numbers under `totals`.
pub fn status(status: &Status, every: bool) -> Value {
    let bytes = status.bytes_by_user.iter().map(|(user, bytes)| (user.clone(), json!(bytes)));
    let mut document = json!({
        "url": status.url,
        "id": status.id.as_ref().map(ToString::to_string),
        "schema": status.schema,
        "format": status.format,
        "format_pinned": status.format_pin.as_ref().map(pin),
        "version": Some(&status.version).filter(|version| version.len() <= VERSION_MAX),
        "owners": status.owners.iter().take(BOUND).collect::<Vec<_>>(),
        "free_bytes": status.free_bytes,
        "free_inodes": status.free_inodes,
        "bytes_by_user": bytes.collect::<Map<_, _>>(),
        "states": status.states(),
        "transactions": status.transactions.iter().take(BOUND).map(undecided).collect::<Vec<_>>(),
        "problems": status.problems.iter().take(BOUND).map(problem).collect::<Vec<_>>(),
        "accepted": status.accepted.iter().take(BOUND).map(accepted).collect::<Vec<_>>(),
        "advice": status.advice.iter().map(advice).collect::<Vec<_>>(),
        "totals": {
            "writers": status.writers.len(),
            "owners": status.owners.len(),
            "transactions": status.transactions.len(),
            "problems": status.problems.len(),
            "accepted": status.accepted.len(),
        },
        "code": status.code(),
    });
    if every {
        document["writers"] = status.writers.iter().map(writer).collect();
    }
    document
}

/// A process that writes or wrote, with the state of its log.
pub fn writer(writer: &WriterStatus) -> Value {
    json!({
        "writer": writer.writer.to_string(),
        "host": writer.host,
        "process": writer.process,
        "user": writer.user,
        "state": writer.state,
        "commits": writer.commits,
        "segments": writer.segments,
        "last_flush": time(writer.last_flush),
        "clock_offset_seconds": writer.clock_offset.map(|ns| ns as f64 / 1e9),
        "tail": writer.tail,
        "attempt": text(&writer.origin.attempt),
        "job": text(&writer.origin.job),
        "rank": writer.origin.rank,
    })
}

fn undecided(transaction: &TransactionStatus) -> Value {
    json!({
        "id": transaction.id.to_string(),
        "owners": transaction.owners.iter().take(BOUND).collect::<Vec<_>>(),
        "fields": transaction.fields,
        "since": time(transaction.since),
    })
}

fn problem(problem: &StatusProblem) -> Value {
    json!({"code": problem.code.map(Code::as_str), "file": problem.file, "why": problem.why})
}

fn advice(advice: &Advice) -> Value {
    json!({"command": advice.command, "gain": advice.gain, "estimate": advice.is_estimate})
}

fn pin(pin: &FormatPin) -> Value {
    json!({"user": pin.user, "time": time(pin.time)})
}

/// An undecided transaction, with all its owners.
pub fn transaction(transaction: &TransactionStatus) -> Value {
    json!({
        "id": transaction.id.to_string(),
        "since": time(transaction.since),
        "fields": transaction.fields,
        "owners": transaction.owners,
    })
}

/// A transaction that began.
pub fn begun(id: &Id) -> Value {
    json!({"id": id.to_string()})
}

/// A transaction that was committed or aborted, and its number of fields.
pub fn decided(id: &Id, fields: u64) -> Value {
    json!({"id": id.to_string(), "fields": fields})
}

/// A loss that was accepted.
pub fn accepted(report: &AcceptanceReport) -> Value {
    json!({
        "file": report.file,
        "what": report.what,
        "fields": report.fields,
        "keys": report.keys,
        "user": report.user,
        "time": time(report.time),
        "why": report.why,
    })
}

/// The result of a reindex.
pub fn reindexed(report: &ReindexReport) -> Value {
    let left = |(key, why): &(String, String)| json!({"key": key, "why": why});
    let left: Value = report.left.iter().map(left).collect();
    json!({"fields": report.fields, "kept": report.kept, "left": left})
}

/// The stores that name fields of another one.
pub fn pointers(pointers: &[PointedFields]) -> Value {
    let row = |one: &PointedFields| {
        let (store, since) = (one.store.to_string(), time(one.since));
        json!({"request": one.request, "store": store, "url": one.url, "by": one.by, "since": since})
    };
    pointers.iter().map(row).collect()
}

/// The result of a hand-over.
pub fn handed_over(report: &HandOverReport) -> Value {
    json!({"from": report.from, "to": report.to, "datasets": report.datasets})
}

/// All hand-overs.
pub fn hand_overs(all: &[HandOverInfo]) -> Value {
    let row =
        |one: &HandOverInfo| json!({"from": one.from, "to": one.to, "by": one.by, "since": time(one.since)});
    all.iter().map(row).collect()
}

/// The overlays in force.
pub fn overlays(overlays: &[OverlaidFields]) -> Value {
    let row = |one: &OverlaidFields| json!({"request": one.request, "values": one.values, "by": one.by, "since": time(one.since)});
    overlays.iter().map(row).collect()
}

/// The locks in force.
pub fn hidden(hidden: &[HiddenFields]) -> Value {
    let row = |one: &HiddenFields| json!({"request": one.request, "by": one.by, "since": time(one.since)});
    hidden.iter().map(row).collect()
}

/// The locks in force, by dataset.
pub fn locks(locks: &[DatasetLock]) -> Value {
    let lock = |lock: &DatasetLock| json!({"dataset": lock.dataset, "what": lock.what.name(), "by": lock.by, "since": time(lock.since)});
    json!(locks.iter().map(lock).collect::<Vec<_>>())
}

/// The counts of a verification, and the damage that it found.
pub fn verified(report: &VerifyReport) -> Value {
    let damage = |damage: &Damage| json!({"key": damage.key, "file": damage.file, "why": damage.why});
    json!({
        "ok": report.ok(),
        "fields": report.fields,
        "bytes": report.bytes,
        "files": report.files,
        "damaged": report.damaged.iter().map(damage).collect::<Vec<_>>(),
        "notes": report.notes,
        "accepted": report.accepted.iter().map(accepted).collect::<Vec<_>>(),
    })
}

/// The counts of a compaction, each before and after it, and the logs that it left.
pub fn compacted(report: &CompactReport) -> Value {
    let pair = |(before, after): (u64, u64)| json!({"before": before, "after": after});
    let left = |log: &LeftLog| json!({"file": log.file, "why": log.why, "accepted": log.accepted});
    json!({
        "logs": pair(report.logs),
        "segments": pair(report.segments),
        "files": pair(report.files),
        "nbytes": report.nbytes,
        "waiting": report.waiting,
        "left": report.left.iter().map(left).collect::<Vec<_>>(),
    })
}

/// The counts of a purge, or of a dry run.
pub fn purged(report: &PurgeReport, doit: bool) -> Value {
    let left = |log: &LeftLog| json!({"file": log.file, "why": log.why, "accepted": log.accepted});
    json!({
        "done": doit,
        "fields": report.fields,
        "versions": report.versions,
        "nbytes": report.nbytes,
        "condemned": report.condemned,
        "waiting": report.waiting,
        "files": {"before": report.files.0, "after": report.files.1},
        "kept": report.kept,
        "left": report.left.iter().map(left).collect::<Vec<_>>(),
        "more": report.more,
    })
}

/// The counts of an erasure, and what may still hold it.
pub fn erased(report: &ErasureReport) -> Value {
    let left = |left: &LeftLog| json!({"file": left.file, "why": left.why});
    json!({
        "fields": report.fields,
        "versions": report.versions,
        "attributes": report.attributes,
        "visible": report.visible,
        "nbytes": report.nbytes,
        "files": report.files,
        "left": report.left.iter().map(left).collect::<Vec<_>>(),
        "done": report.done,
    })
}

/// The counts of a prefetch.
pub fn prefetched(report: &PrefetchReport) -> Value {
    let damaged = report.damaged.iter().map(|field| json!({"key": field.key, "why": field.why}));
    json!({
        "fields": report.fields,
        "nbytes": report.nbytes,
        "damaged": damaged.collect::<Vec<_>>(),
    })
}

/// The counts of a wipe.
pub fn wiped(report: &WipeReport) -> Value {
    json!({
        "fields": report.fields,
        "nbytes": report.nbytes,
        "foreign": report.foreign,
        "done": report.done,
    })
}

/// The counts of a backup.
pub fn backed_up(report: &BackupReport) -> Value {
    let damage = |damage: &Damage| json!({"key": damage.key, "file": damage.file, "why": damage.why});
    json!({
        "version": report.version,
        "before": text(&report.before),
        "files": report.files,
        "nbytes": report.nbytes,
        "removed": report.removed,
        "damaged": report.damaged.iter().map(damage).collect::<Vec<_>>(),
        "foreign": report.foreign,
        "held": report.held,
    })
}

/// The parts that were mended, or would be, and those that are left.
pub fn repaired(report: &RepairReport) -> Value {
    let mended = |part: &MendedPart| json!({"key": part.key, "file": part.file, "how": part.how});
    let damage = |damage: &Damage| json!({"key": damage.key, "file": damage.file, "why": damage.why});
    json!({
        "mended": report.mended.iter().map(mended).collect::<Vec<_>>(),
        "left": report.left.iter().map(damage).collect::<Vec<_>>(),
        "nbytes": report.nbytes,
        "done": report.done,
    })
}

/// A hold.
pub fn hold(hold: &HoldInfo) -> Value {
    json!({
        "name": hold.name,
        "why": hold.why,
        "by": hold.by,
        "since": time(hold.since),
        "until": time(hold.until),
        "version": hold.version,
    })
}

/// Holds.
pub fn holds(holds: &[HoldInfo]) -> Value {
    json!({"holds": holds.iter().map(hold).collect::<Vec<_>>()})
}

/// Rules of retention.
pub fn rules(rules: &[RetentionRule]) -> Value {
    let rule = |rule: &RetentionRule| {
        json!({
            "request": rule.request,
            "query": rule.query,
            "to": rule.to,
            "older_than": rule.older_than.map(|age| age as f64 / 1e9),
            "versions": rule.versions,
            "owner": rule.owner,
            "since": time(rule.since),
        })
    };
    json!({"rules": rules.iter().map(rule).collect::<Vec<_>>()})
}

/// The steps of maintenance.
pub fn maintained(report: &MaintainReport) -> Value {
    let step = |step: &MaintainStep| {
        json!({
            "action": step.action.as_str(),
            "request": text(&step.request),
            "done": step.done,
            "fields": step.fields,
            "versions": step.versions,
            "nbytes": step.nbytes,
            "files": step.files,
            "rewritten": step.rewritten,
            "seconds": step.nanoseconds as f64 / 1e9,
            "why": step.why,
            "code": step.code.map(Code::as_str),
        })
    };
    json!({
        "steps": report.steps.iter().map(step).collect::<Vec<_>>(),
        "waiting": report.waiting,
        "more": report.more,
    })
}

/// An overview of a store, or of the fields that a request selects.
pub fn overview(overview: &Overview) -> Value {
    json!({
        "url": overview.url,
        "schema": overview.schema,
        "version": overview.version,
        "request": overview.request.to_string(),
        "datasets": overview.stats.datasets,
        "indexes": overview.stats.indexes,
        "fields": overview.stats.fields,
        "bytes": overview.stats.bytes,
        "stored_bytes": overview.stats.stored_bytes,
        "axes": axes_ends(&overview.axes),
        "catalog": overview.catalog.as_ref().map(super::catalog::overview),
    })
}

/// The versions of the format before an upgrade and after it.
pub fn upgraded(before: u32, after: u32) -> Value {
    json!({"before": before, "format": after})
}

/// The structures of a store as text.
pub fn dump(lines: &[String]) -> Value {
    json!({"lines": lines})
}

/// One line of [`dump`], by itself.
pub fn dump_line(line: &str) -> Value {
    json!({"line": line})
}
