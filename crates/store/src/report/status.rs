//! Writers, transactions and problems.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::env::{Env, Identity};
use fieldstone_core::value::moment_text;
use fieldstone_core::{Code, Result};
use fieldstone_format::Id;
use fieldstone_format::acceptance::{Acceptance, Lost};
use fieldstone_format::attempt::Origin;
use fieldstone_format::takeover;
use fieldstone_journal::medium::{DataLoss, Inspect};

use crate::api::{
    AcceptanceReport, FormatPin, HandOverInfo, Status, StatusProblem, TransactionStatus, WriterStatus,
};
use crate::files::Files;
use crate::hand_over;
use crate::snapshot::{AcceptedLoss, Owners, Problem, Refresher, Snapshot, SnapshotLog, StoreHandOver};

/// A clock that differs from the file system's by this much, nanoseconds, is named.
const CLOCK_OFF: i64 = 60_000_000_000;

/// A writer of another host that has not written for so long, nanoseconds, is not called open.
const SILENT: i64 = 3_600_000_000_000;

/// Collects the status; the caller adds what only the handle knows.
pub fn status(
    env: &Env,
    inspect: &dyn Inspect,
    snapshot: &Arc<Snapshot>,
    refresher: &Refresher,
    files: &Files,
) -> Result<Status> {
    let space = inspect.space();
    let transactions = transactions(env, snapshot, refresher);
    let mut problems = problems(inspect, snapshot, files)?;
    problems.extend(handed_over(&*env.identity, snapshot));
    let owners = match &snapshot.owners {
        Owners::One(owner) => owner.iter().map(|uid| env.identity.user_name(*uid)).collect(),
        Owners::Many(owners) => {
            let mut lines: Vec<String> = owners
                .all()
                .map(|(prefix, uid)| {
                    format!("{} {}", fieldstone_format::keys::level_text(prefix), env.identity.user_name(uid))
                })
                .collect();
            lines.sort_unstable();
            lines
        }
    };
    Ok(Status {
        id: (!snapshot.sources.is_empty())
            .then(|| snapshot.store_of(0))
            .or_else(|| snapshot.logs.first().map(|log| log.header.store)),
        format: snapshot.format.version,
        format_pin: snapshot
            .format
            .pin
            .map(|pin| FormatPin { user: env.identity.user_name(pin.user), time: pin.time }),
        version: snapshot.version().encode(),
        writers: snapshot.logs.iter().map(|log| writer(env, log, inspect, refresher)).collect(),
        transactions,
        owners,
        problems,
        accepted: accepted(&*env.identity, snapshot, files),
        free_bytes: space.map_or(0, |space| space.free_bytes),
        free_inodes: space.map(|space| space.free_inodes).filter(|free| *free != u64::MAX),
        bytes_by_user: bytes_by_user(env, inspect, snapshot)?,
        ..Status::default()
    })
}

/// The transactions that wait for a decision, the oldest first.
fn transactions(env: &Env, snapshot: &Snapshot, refresher: &Refresher) -> Vec<TransactionStatus> {
    let mut transactions: HashMap<Id, TransactionStatus> = HashMap::new();
    for (id, prepared) in snapshot.all_prepared() {
        let decided = snapshot.transaction_state(id, prepared.user);
        if decided.is_some_and(|decided| decided.closed()) {
            continue;
        }
        let entry = transactions.entry(id).or_insert_with(|| TransactionStatus {
            id,
            owners: Vec::new(),
            fields: 0,
            kinds: decided.map_or(0, |decided| decided.kinds()),
            since: prepared.since,
        });
        // A log that is taken over has ended.
        let state = snapshot.log(prepared.writer).map_or("closed", |log| state(env, log, refresher));
        if let Some(header) = snapshot.header(prepared.writer) {
            entry
                .owners
                .push(format!("{}@{} process {} ({state})", header.user, header.host, header.process));
        }
        entry.fields += prepared.fields;
        entry.since = entry.since.min(prepared.since);
    }
    let mut transactions: Vec<_> = transactions.into_values().collect();
    transactions.sort_by_key(|t| (t.since, t.id));
    transactions
}

/// Problems, by files.
fn problems(inspect: &dyn Inspect, snapshot: &Snapshot, files: &Files) -> Result<Vec<StatusProblem>> {
    let (mut all, mut all_notes) = (Vec::new(), Vec::new());
    let mut note =
        |code: Code, file: String, why: String| all.push(StatusProblem { code: Some(code), file, why });
    if let Some(gone) = &snapshot.without_logs {
        note(Code::LogsGone, "logs".to_owned(), gone.what());
    }
    for (writer, number, length) in data_logs(snapshot)? {
        if snapshot.accepted.concerns(writer, number) {
            continue;
        }
        let file = files.shown(writer, number);
        match inspect.data_loss(writer, number, length)? {
            None => {}
            Some(DataLoss::Missing) => note(Code::DataGone, file, "the file is missing".to_owned()),
            Some(DataLoss::Short(there, synced)) => {
                note(Code::Truncated, file, format!("{there} bytes are there, {synced} were synced"));
            }
        }
    }
    let foreign = snapshot.logs.iter().filter(|log| log.header_damage.is_none() && log.header.uid != log.uid);
    let foreign: BTreeSet<&str> = foreign.map(|log| log.header.user.as_str()).collect();
    if !foreign.is_empty() {
        let names: Vec<&str> = foreign.into_iter().collect();
        let why = format!(
            "files of {} belong to other users than those who wrote them, and their datasets with them: after a restore \
             without owners chown gives them back",
            names.join(", ")
        );
        all_notes.push(StatusProblem { code: None, file: String::new(), why });
    }
    if let Some(space) = inspect.space() {
        match (space.free_bytes, space.free_inodes) {
            (_, 0) => {
                note(Code::InodesFull, String::new(), "the file system takes no further file".to_owned())
            }
            (0, _) => note(Code::DiskFull, String::new(), "the file system is full".to_owned()),
            _ => {}
        }
    }
    let in_logs = files.medium().files().map_or(Ok(Default::default()), |files| files.names_in("logs"))?;
    all.extend(snapshot.problems.iter().map(|problem| StatusProblem {
        code: code(snapshot, problem, &in_logs),
        file: problem.file.clone(),
        why: problem.why.clone(),
    }));
    all.append(&mut all_notes);
    Ok(all)
}

/// The hand-overs, as notes.
fn handed_over(identity: &dyn Identity, snapshot: &Snapshot) -> Vec<StatusProblem> {
    let note = |made: &StoreHandOver| {
        let HandOverInfo { from, to, by, since } = hand_over::info(identity, made);
        let why = format!("{by} handed over to {to} what {from} owned on {}", moment_text(since));
        StatusProblem { code: None, file: String::new(), why }
    };
    snapshot.hand_overs.iter().map(note).collect()
}

/// The code of a problem with a log, a takeover or a board, given the names among the logs.
fn code(snapshot: &Snapshot, problem: &Problem, in_logs: &HashSet<String>) -> Option<Code> {
    let of = |text: &String| text.starts_with(&problem.file);
    let name = problem.file.strip_prefix("logs/").unwrap_or_default();
    let is_gone = takeover::parse_file_name(name).is_some() && !in_logs.contains(name);
    match (problem.damage, problem.skipped) {
        (true, _) if is_gone => Some(Code::DataGone),
        (true, _) if snapshot.losses.iter().any(|loss| loss.file == problem.file) => Some(Code::LogShortened),
        (true, _) if snapshot.foreign.iter().any(of) => Some(Code::FormatVersion),
        (true, _) => Some(Code::Corrupt),
        (false, true) => Some(Code::Denied),
        (false, false) => None,
    }
}

/// Losses that somebody accepted.
pub fn accepted(identity: &dyn Identity, snapshot: &Snapshot, files: &Files) -> Vec<AcceptanceReport> {
    snapshot.accepted.all().iter().map(|loss| acceptance(identity, loss, files)).collect()
}

/// A loss that somebody accepted, in words.
pub fn acceptance(identity: &dyn Identity, loss: &AcceptedLoss, files: &Files) -> AcceptanceReport {
    let Acceptance { writer, number, lost, why, fields, keys } = &loss.acceptance;
    let what = match lost {
        Lost::Beyond { last: 0, known } => format!("all {known} commits are given up"),
        Lost::Beyond { last, known } => format!("commits {} to {known} are given up", last + 1),
        Lost::Whole => format!("all of it is given up, bytes of {fields} fields"),
        Lost::Entries(entries) if entries.is_empty() => "all of it is given up".to_owned(),
        Lost::Entries(entries) => format!("{} damaged entries are given up", entries.len()),
        Lost::Index(blocks) => {
            let plural = if blocks.len() == 1 { "" } else { "s" };
            format!("{} damaged block{plural} of its index given up, with all entries there", blocks.len())
        }
    };
    // A record without entries names a file beside the logs.
    let beside = keys.first().filter(|_| *lost == Lost::Entries(Vec::new()));
    AcceptanceReport {
        file: beside.cloned().unwrap_or_else(|| files.shown(*writer, *number)),
        what,
        fields: *fields,
        keys: if beside.is_some() { Vec::new() } else { keys.clone() },
        user: identity.user_name(loss.user),
        time: loss.time,
        why: why.clone(),
    }
}

/// The data logs of all writers and takeovers, each with its durable length.
fn data_logs(snapshot: &Snapshot) -> Result<Vec<(Id, u32, u64)>> {
    let mut all = Vec::new();
    for log in &snapshot.logs {
        all.extend(log.record.data_logs.iter().map(|(number, length)| (log.writer, *number, *length)));
    }
    for takeover in snapshot.taken.takeovers().all() {
        let id = takeover.header.id;
        all.extend(takeover.record.data_logs.iter().map(|(number, length)| (id, *number, *length)));
        takeover.each_log(|log| {
            all.extend(log.row.data_logs.iter().map(|(number, length)| (log.writer, *number, *length)));
            Ok(())
        })?;
    }
    Ok(all)
}

/// Bytes of each user's files: of logs as their commits say, of others as they are.
fn bytes_by_user(env: &Env, inspect: &dyn Inspect, snapshot: &Snapshot) -> Result<Vec<(String, u64)>> {
    let mut bytes = inspect.beside_logs()?;
    for log in &snapshot.logs {
        *bytes.entry(log.uid).or_default() += log.ends.end();
    }
    for takeover in snapshot.taken.takeovers().all() {
        *bytes.entry(takeover.user).or_default() += takeover.bytes;
    }
    for (writer, _, length) in data_logs(snapshot)? {
        let of_takeover =
            snapshot.taken.takeovers().all().iter().find(|takeover| takeover.header.id == writer);
        let user = of_takeover.map(|takeover| takeover.user).or_else(|| snapshot.user_of(writer));
        *bytes.entry(user.unwrap_or_default()).or_default() += length;
    }
    Ok(bytes.into_iter().map(|(user, bytes)| (env.identity.user_name(user), bytes)).collect())
}

fn state(env: &Env, log: &SnapshotLog, refresher: &Refresher) -> &'static str {
    let here = log.header.host == env.identity.host();
    let silent = env.clock.now().saturating_sub(log.changed.max(log.record.time)) >= SILENT;
    match refresher.announced(log) {
        Some((_, true)) => "closed",
        _ if refresher.ended(log).is_some() => "ended",
        _ if here && !env.identity.alive(log.header.process) => "gone",
        _ if !here && silent => "silent",
        _ => "open",
    }
}

/// Of which job a log is; by its commits where its header is damaged.
fn origin(log: &SnapshotLog) -> Origin {
    let attempt = log.record.attempt.as_ref().map(|attempt| attempt.name.clone()).unwrap_or_default();
    Origin { attempt, ..log.header.origin.clone() }
}

fn writer(env: &Env, log: &SnapshotLog, inspect: &dyn Inspect, refresher: &Refresher) -> WriterStatus {
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
        clock_offset: (off.saturating_abs() >= CLOCK_OFF).then_some(off),
        // A log that is gone since has a problem of its own.
        tail: inspect.tail(log).unwrap_or(0),
        origin: origin(log),
    }
}
