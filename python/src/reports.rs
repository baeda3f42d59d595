//! Reports as the dataclasses of `fieldstone.reports`.

use std::time::Duration;

use fieldstone::transfer::TransferReport;
use fieldstone::{
    ABSENT, AcceptanceReport, CheckpointReport, Code, CompactReport, DatasetLock, ErasureReport,
    HiddenFields, IngestReport, LeftLog, MaintainReport, PrefetchReport, PurgeReport, RetentionRule, Stats,
    Status, VerifyReport, WipeReport,
};
use fieldstone::{BackupReport, HoldInfo, OverlaidFields, PointedFields, ReindexReport, RepairReport};
use fieldstone::{HandOverInfo, HandOverReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::listing::time_object;

/// Builds a dataclass from keyword arguments.
macro_rules! report {
    ($py:expr, $class:literal, { $($name:ident: $value:expr),* $(,)? }) => {{
        let fields = PyDict::new($py);
        $(fields.set_item(stringify!($name), $value)?;)*
        $py.import("fieldstone.reports")?.getattr($class)?.call((), Some(&fields))
    }};
}

/// The result of `verify` over all requests.
pub fn verify(py: Python<'_>, reports: Vec<VerifyReport>) -> PyResult<Bound<'_, PyAny>> {
    let mut sum = VerifyReport::default();
    for report in reports {
        sum.fields += report.fields;
        sum.bytes += report.bytes;
        sum.files = sum.files.max(report.files);
        sum.damaged
            .extend(report.damaged.into_iter().filter(|d| !sum.damaged.contains(d)).collect::<Vec<_>>());
        sum.accepted = report.accepted;
        sum.notes.extend(report.notes.into_iter().filter(|n| !sum.notes.contains(n)).collect::<Vec<_>>());
    }
    let damaged = sum
        .damaged
        .into_iter()
        .map(|damage| report!(py, "Damage", { key: damage.key, file: damage.file, why: damage.why }));
    let damaged = PyTuple::new(py, damaged.collect::<PyResult<Vec<_>>>()?)?;
    let notes = PyTuple::new(py, sum.notes)?;
    let accepted = acceptances(py, sum.accepted)?;
    report!(py, "VerifyReport", {
        fields: sum.fields, bytes: sum.bytes, files: sum.files, damaged: damaged, notes: notes,
        accepted: accepted,
    })
}

/// A loss that a user accepted.
pub fn acceptance(py: Python<'_>, report: AcceptanceReport) -> PyResult<Bound<'_, PyAny>> {
    report!(py, "AcceptanceReport", {
        file: report.file, what: report.what, fields: report.fields, keys: PyTuple::new(py, report.keys)?,
        user: report.user, time: time_object(py, report.time)?, why: report.why,
    })
}

fn acceptances(py: Python<'_>, all: Vec<AcceptanceReport>) -> PyResult<Bound<'_, PyTuple>> {
    let all = all.into_iter().map(|report| acceptance(py, report));
    PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)
}

/// Counters of a store.
pub fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyAny>> {
    report!(py, "Stats", {
        datasets: stats.datasets,
        indexes: stats.indexes,
        fields: stats.fields,
        bytes: stats.bytes,
        stored_bytes: stats.stored_bytes,
        masked: stats.masked,
        writers: stats.writers,
        segments: stats.segments,
        file_bytes: stats.file_bytes,
        files: stats.files,
    })
}

/// The result of a checkpoint.
pub fn checkpoint<'py>(py: Python<'py>, report: &CheckpointReport) -> PyResult<Bound<'py, PyAny>> {
    report!(py, "CheckpointReport", {
        version: &report.version,
        bytes: report.bytes,
        files: report.files,
        seconds: report.nanoseconds as f64 / 1e9,
    })
}

/// The result of a compaction.
pub fn compacted(py: Python<'_>, report: CompactReport) -> PyResult<Bound<'_, PyAny>> {
    let left = left_logs(py, report.left)?;
    report!(py, "CompactReport", {
        logs: report.logs,
        segments: report.segments,
        files: report.files,
        nbytes: report.nbytes,
        waiting: report.waiting,
        left: left,
    })
}

/// The result of a purge.
pub fn purged(py: Python<'_>, report: PurgeReport) -> PyResult<Bound<'_, PyAny>> {
    let left = left_logs(py, report.left)?;
    report!(py, "PurgeReport", {
        fields: report.fields,
        versions: report.versions,
        nbytes: report.nbytes,
        condemned: report.condemned,
        waiting: report.waiting,
        files: report.files,
        kept: report.kept,
        left: left,
        more: report.more,
    })
}

fn left_logs(py: Python<'_>, left: Vec<LeftLog>) -> PyResult<Bound<'_, PyTuple>> {
    let left = left
        .into_iter()
        .map(|log| report!(py, "LeftLog", { file: log.file, why: log.why, accepted: log.accepted }));
    PyTuple::new(py, left.collect::<PyResult<Vec<_>>>()?)
}

/// A lock on a dataset.
pub fn lock(py: Python<'_>, lock: DatasetLock) -> PyResult<Bound<'_, PyAny>> {
    let (what, since) = (lock.what.name(), time_object(py, lock.since)?);
    report!(py, "DatasetLock", { dataset: lock.dataset, what: what, by: lock.by, since: since })
}

/// The result of a reindex.
pub fn reindexed(py: Python<'_>, report: ReindexReport) -> PyResult<Bound<'_, PyAny>> {
    let left = PyTuple::new(py, report.left)?;
    report!(py, "ReindexReport", { fields: report.fields, kept: report.kept, left: left })
}

/// A store that names fields of another one.
pub fn pointed(py: Python<'_>, pointed: PointedFields) -> PyResult<Bound<'_, PyAny>> {
    let (since, store) = (time_object(py, pointed.since)?, pointed.store.to_string());
    let (request, url, by) = (pointed.request, pointed.url, pointed.by);
    report!(py, "PointedFields", { request: request, store: store, url: url, by: by, since: since })
}

/// The result of a hand-over.
pub fn handed_over(py: Python<'_>, report: HandOverReport) -> PyResult<Bound<'_, PyAny>> {
    let (old, new) = (report.from, report.to);
    report!(py, "HandOverReport", { old: old, new: new, datasets: report.datasets })
}

/// A hand-over on record.
pub fn hand_over(py: Python<'_>, made: HandOverInfo) -> PyResult<Bound<'_, PyAny>> {
    let since = time_object(py, made.since)?;
    let (old, new) = (made.from, made.to);
    report!(py, "HandOverInfo", { old: old, new: new, by: made.by, since: since })
}

/// An overlay that is in force.
pub fn overlaid(py: Python<'_>, overlaid: OverlaidFields) -> PyResult<Bound<'_, PyAny>> {
    let since = time_object(py, overlaid.since)?;
    let (request, values) = (overlaid.request, overlaid.values);
    report!(py, "OverlaidFields", { request: request, values: values, by: overlaid.by, since: since })
}

/// A hide that is in force.
pub fn hidden(py: Python<'_>, hidden: HiddenFields) -> PyResult<Bound<'_, PyAny>> {
    let since = time_object(py, hidden.since)?;
    report!(py, "HiddenFields", { request: hidden.request, by: hidden.by, since: since })
}

/// The result of an erasure.
pub fn erased(py: Python<'_>, report: ErasureReport) -> PyResult<Bound<'_, PyAny>> {
    let left = left_logs(py, report.left)?;
    report!(py, "ErasureReport", {
        fields: report.fields,
        versions: report.versions,
        attributes: report.attributes,
        visible: report.visible,
        nbytes: report.nbytes,
        files: report.files,
        left: left,
        done: report.done,
    })
}

/// The counts of a wipe.
pub fn wiped(py: Python<'_>, report: WipeReport) -> PyResult<Bound<'_, PyAny>> {
    let (foreign, done) = (PyTuple::new(py, report.foreign)?, report.done);
    report!(py, "WipeReport", { fields: report.fields, nbytes: report.nbytes, foreign: foreign, done: done })
}

/// The counts of a backup.
pub fn backed_up(py: Python<'_>, report: BackupReport) -> PyResult<Bound<'_, PyAny>> {
    let damaged = report
        .damaged
        .into_iter()
        .map(|damage| report!(py, "Damage", { key: damage.key, file: damage.file, why: damage.why }));
    let damaged = PyTuple::new(py, damaged.collect::<PyResult<Vec<_>>>()?)?;
    let before = Some(report.before).filter(|before| !before.is_empty());
    report!(py, "BackupReport", {
        version: report.version, before: before, files: report.files, nbytes: report.nbytes, removed: report.removed,
        damaged: damaged, foreign: PyTuple::new(py, report.foreign)?, held: report.held,
    })
}

/// The parts that were mended, or would be, and those that are left.
pub fn repaired(py: Python<'_>, report: RepairReport) -> PyResult<Bound<'_, PyAny>> {
    let mended = report
        .mended
        .into_iter()
        .map(|part| report!(py, "MendedPart", { key: part.key, file: part.file, how: part.how }));
    let left = report
        .left
        .into_iter()
        .map(|damage| report!(py, "Damage", { key: damage.key, file: damage.file, why: damage.why }));
    let mended = PyTuple::new(py, mended.collect::<PyResult<Vec<_>>>()?)?;
    let left = PyTuple::new(py, left.collect::<PyResult<Vec<_>>>()?)?;
    report!(py, "RepairReport", { mended: mended, left: left, nbytes: report.nbytes, done: report.done })
}

/// A hold.
pub fn hold(py: Python<'_>, hold: HoldInfo) -> PyResult<Bound<'_, PyAny>> {
    let (since, until) = (time_object(py, hold.since)?, time_object(py, hold.until)?);
    report!(py, "HoldInfo", {
        name: hold.name, why: hold.why, by: hold.by, since: since, until: until, version: hold.version,
    })
}

/// A rule of retention.
pub fn rule(py: Python<'_>, rule: RetentionRule) -> PyResult<Bound<'_, PyAny>> {
    report!(py, "RetentionRule", {
        request: rule.request,
        query: rule.query,
        to: rule.to,
        older_than: rule.older_than.map(Duration::from_nanos),
        versions: rule.versions,
        owner: rule.owner,
        since: time_object(py, rule.since)?,
    })
}

/// The steps of maintenance.
pub fn maintained(py: Python<'_>, report: MaintainReport) -> PyResult<Bound<'_, PyAny>> {
    let steps = report.steps.into_iter().map(|step| {
        report!(py, "MaintainStep", {
            action: step.action.as_str(),
            request: named(&step.request),
            done: step.done,
            fields: step.fields,
            versions: step.versions,
            nbytes: step.nbytes,
            files: step.files,
            rewritten: step.rewritten,
            seconds: step.nanoseconds as f64 / 1e9,
            why: step.why,
            code: step.code.map(Code::as_str),
        })
    });
    let steps = PyTuple::new(py, steps.collect::<PyResult<Vec<_>>>()?)?;
    report!(py, "MaintainReport", { steps: steps, waiting: report.waiting, more: report.more })
}

fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// The state of a store: writers, transactions, problems.
pub fn status(py: Python<'_>, status: Status) -> PyResult<Bound<'_, PyAny>> {
    let writers = status.writers.iter().map(|writer| {
        report!(py, "WriterStatus", {
            writer: writer.writer.to_string(),
            host: &writer.host,
            process: writer.process,
            user: &writer.user,
            state: writer.state,
            commits: writer.commits,
            segments: writer.segments,
            last_flush: time_object(py, writer.last_flush)?,
            clock_offset: writer.clock_offset.map(|nanoseconds| nanoseconds as f64 / 1e9),
            tail: writer.tail,
            attempt: named(&writer.origin.attempt),
            job: named(&writer.origin.job),
            rank: writer.origin.rank,
        })
    });
    let writers = PyTuple::new(py, writers.collect::<PyResult<Vec<_>>>()?)?;
    let transactions = status.transactions.iter().map(|transaction| {
        report!(py, "TransactionStatus", {
            id: transaction.id.to_string(),
            owners: PyTuple::new(py, &transaction.owners)?,
            fields: transaction.fields,
            since: time_object(py, transaction.since)?,
        })
    });
    let transactions = PyTuple::new(py, transactions.collect::<PyResult<Vec<_>>>()?)?;
    let code = status.code();
    let problem = py.import("fieldstone.reports")?.getattr("Problem")?;
    let problems = status.problems.iter().map(|found| {
        problem.call1((found.to_string(), found.code.map(Code::as_str), &found.file, &found.why))
    });
    let problems = PyTuple::new(py, problems.collect::<PyResult<Vec<_>>>()?)?;
    let pinned =
        status.format_pin.map(|pin| Ok::<_, PyErr>((pin.user, time_object(py, pin.time)?))).transpose()?;
    let accepted = acceptances(py, status.accepted)?;
    let advice = status.advice.into_iter().map(|advice| {
        report!(py, "Advice", {
            command: advice.command, gain: advice.gain, estimate: advice.is_estimate,
        })
    });
    let advice = PyTuple::new(py, advice.collect::<PyResult<Vec<_>>>()?)?;
    let bytes_by_user = PyDict::new(py);
    for (user, bytes) in status.bytes_by_user {
        bytes_by_user.set_item(user, bytes)?;
    }
    report!(py, "Status", {
        url: status.url,
        id: status.id.map(|id| id.to_string()),
        schema: status.schema,
        format: status.format,
        version: status.version,
        writers: writers,
        transactions: transactions,
        owners: PyTuple::new(py, status.owners)?,
        problems: problems,
        code: code,
        format_pinned: pinned,
        accepted: accepted,
        free_bytes: status.free_bytes,
        free_inodes: status.free_inodes,
        bytes_by_user: bytes_by_user,
        unflushed: status.unflushed,
        advice: advice,
    })
}

/// The result of an ingest: fields taken and messages left out.
pub fn ingest(py: Python<'_>, report: IngestReport) -> PyResult<Bound<'_, PyAny>> {
    let (files, done) = (report.files, report.done);
    let taken = report.taken.into_iter().map(|taken| {
        let key = PyDict::new(py);
        for (keyword, value) in taken.key {
            key.set_item(keyword, value)?;
        }
        for keyword in taken.lacks {
            key.set_item(keyword, ABSENT)?;
        }
        report!(py, "Taken", {
            path: taken.path,
            fields: taken.fields,
            bytes: taken.bytes,
            unchanged: taken.unchanged,
            relations: taken.relations,
            meshes: taken.meshes,
            key: key,
        })
    });
    let taken = PyTuple::new(py, taken.collect::<PyResult<Vec<_>>>()?)?;
    let skipped = report
        .skipped
        .into_iter()
        .map(|skipped| report!(py, "Skipped", { path: skipped.path, what: skipped.what, why: skipped.why }));
    let skipped = PyTuple::new(py, skipped.collect::<PyResult<Vec<_>>>()?)?;
    report!(py, "IngestReport", { taken: taken, skipped: skipped, files: files, done: done })
}

/// The result of a prefetch.
pub fn prefetched(py: Python<'_>, report: PrefetchReport) -> PyResult<Bound<'_, PyAny>> {
    let damaged = report.damaged.into_iter();
    let damaged = damaged.map(|field| report!(py, "Unreadable", { key: field.key, why: field.why }));
    let damaged = PyTuple::new(py, damaged.collect::<PyResult<Vec<_>>>()?)?;
    report!(py, "PrefetchReport", { fields: report.fields, nbytes: report.nbytes, damaged: damaged })
}

/// The result of a copy or a move.
pub fn transfer(py: Python<'_>, report: TransferReport) -> PyResult<Bound<'_, PyAny>> {
    let left = report.left.into_iter().map(|left| {
        let names = PyTuple::new(py, left.names)?;
        report!(py, "LeftBehind", { kind: left.kind, count: left.count, names: names, why: left.why })
    });
    let left = PyTuple::new(py, left.collect::<PyResult<Vec<_>>>()?)?;
    let damaged = report.damaged.into_iter();
    let damaged = damaged.map(|field| report!(py, "Unreadable", { key: field.key, why: field.why }));
    let damaged = PyTuple::new(py, damaged.collect::<PyResult<Vec<_>>>()?)?;
    report!(py, "TransferReport", {
        fields: report.fields,
        bytes: report.bytes,
        unchanged: report.unchanged,
        versions: report.versions,
        attributes: report.attributes,
        removed: report.removed,
        kept: PyTuple::new(py, report.kept)?,
        left: left,
        damaged: damaged,
    })
}

/// The result of an export.
pub fn export(py: Python<'_>, report: fieldstone::export::ExportReport) -> PyResult<Bound<'_, PyAny>> {
    let skipped = report
        .skipped
        .into_iter()
        .map(|skipped| report!(py, "Skipped", { path: skipped.path, what: skipped.what, why: skipped.why }));
    let skipped = PyTuple::new(py, skipped.collect::<PyResult<Vec<_>>>()?)?;
    report!(py, "ExportReport", {
        files: PyTuple::new(py, report.files)?, format: report.format, fields: report.fields,
        bytes: report.bytes, skipped: skipped,
    })
}
