//! The inputs of one takeover: ended logs, read and checked whole, and older takeovers.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::flush_part::FlushPart;
use fieldstone_format::log::{CommitRecord, Decision, FrameInfo, HEAD, LogHeader, Section};
use fieldstone_format::origin::{EntryOrigin, OriginRank};
use fieldstone_format::takeover::rows::Ended;
use fieldstone_format::{Id, schema_extension};

use super::CompactOptions;
use crate::medium::{self, Inspect, Medium};
use crate::snapshot::{Refresher, Snapshot, SnapshotLog};
use crate::takeover::Takeover;

/// Bytes that a log without a commit counts for: those of a takeover that holds nothing else.
const EMPTY_BYTES: u64 = 4096;
/// Most logs that one takeover takes over; a pass makes several where there are more.
const LOGS_MAX: usize = 1024;

/// A commit of a log that is taken over.
#[derive(Debug)]
pub struct LogCommit {
    pub sequence: u64,
    pub stamp: u64,
    pub time: i64,
    pub transaction: Option<Id>,
    pub fields: u64,
    pub bytes: u64,
    pub view: u64,
    /// Begin and length of the payload in its frame.
    pub payload: (u64, u64),
    pub side: Section,
    pub side_count: u64,
    /// A decision on a transaction, where it is not the mark of the store's own records.
    pub decision: Option<Decision>,
    pub flushes: Vec<FlushPart>,
}

impl LogCommit {
    fn new(ends: &FrameInfo, record: CommitRecord) -> LogCommit {
        let begin = ends.frame + HEAD as u64;
        // Behind the payload comes the segment that the commit adds, else its side records.
        let own = record.segments.last().filter(|segment| segment.file == 0 && segment.offset >= begin);
        let end = own.map_or(record.side.offset, |segment| segment.offset);
        LogCommit {
            sequence: record.sequence,
            stamp: record.stamp,
            time: record.time,
            transaction: record.transaction,
            fields: record.fields,
            bytes: record.bytes,
            view: record.view,
            payload: (begin, end.saturating_sub(begin)),
            side: record.side,
            side_count: record.side_count,
            decision: record.decision.filter(|decision| decision.transaction != schema_extension::FLAG),
            flushes: record.flushes,
        }
    }
}

/// A log that is taken over.
#[derive(Debug)]
pub struct EndedLog {
    pub log: Arc<SnapshotLog>,
    pub how: Ended,
    /// Its commits, oldest first.
    pub commits: Vec<LogCommit>,
    /// The origins of moved entries, by commit; each has a row of its own.
    pub origins: BTreeMap<(u64, OriginRank), EntryOrigin>,
}

impl EndedLog {
    /// Reads all commits of a log, and compares every byte of them with its checksum (R19).
    fn read(
        inspect: &dyn Inspect,
        snapshot: &Snapshot,
        log: &Arc<SnapshotLog>,
        how: Ended,
    ) -> Result<EndedLog> {
        let (mut commits, mut damage) = (Vec::new(), None);
        inspect.check(log, &mut |ends, outcome| match outcome {
            Ok(record) => commits.push(LogCommit::new(&ends, record)),
            Err(e) => damage = damage.take().or(Some(e)),
        })?;
        damage.map_or(Ok(()), Err)?;
        inspect.check_header(log)?;
        let is_given_up = |number: u32| snapshot.accepted.has_file(log.writer, number);
        for (number, length) in log.record.data_logs.iter().filter(|(number, _)| !is_given_up(*number)) {
            inspect.check_data(log.writer, *number, *length)?;
        }
        let is_whole = commits.iter().map(|commit| commit.sequence).eq(1..=log.record.sequence);
        if !is_whole {
            return Err(Error::corrupt("commits of the log are missing"));
        }
        let mut origins = BTreeMap::new();
        for segment in &log.segments {
            let meta = segment.meta()?;
            for commit in &meta.commits {
                let origin = commit.origin.and_then(|origin| meta.origins.get(origin as usize));
                if let Some(origin) = origin {
                    origins.insert((commit.sequence, origin.rank()), origin.clone());
                }
            }
        }
        Ok(EndedLog { log: log.clone(), how, commits, origins })
    }

    /// Bytes of the log.
    fn bytes(&self) -> u64 {
        self.log.ends.end()
    }
}

/// A log that ended before its first commit.
#[derive(Debug)]
pub struct EmptyLog {
    pub writer: Id,
    pub how: Ended,
    /// Its header, as far as it was written.
    pub header: LogHeader,
}

/// A log that stays as it is, although it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLog {
    /// Its file.
    pub file: String,
    /// The reason.
    pub why: String,
}

/// The inputs of one takeover.
#[derive(Debug)]
pub struct Inputs {
    /// The user whose logs they are.
    pub user: u32,
    /// The number of the takeover to be made.
    pub number: u64,
    /// The store, and its schema.
    pub store: (Id, String),
    /// Logs, by writer.
    pub logs: Vec<EndedLog>,
    /// Logs without a commit.
    pub empty: Vec<EmptyLog>,
    /// Takeovers, the oldest first.
    pub takeovers: Vec<Arc<Takeover>>,
    /// The takeovers of the user that stay, with their digests.
    pub live: Vec<(u64, u64)>,
    /// More logs are left for another takeover.
    pub is_more: bool,
}

impl Inputs {
    /// Number of the logs.
    pub fn count(&self) -> u64 {
        (self.logs.len() + self.empty.len()) as u64
    }

    /// Bytes of the logs.
    pub fn log_bytes(&self) -> u64 {
        self.logs.iter().map(EndedLog::bytes).sum::<u64>() + self.empty.len() as u64 * EMPTY_BYTES
    }

    /// Bytes of all that is read.
    pub fn bytes(&self) -> u64 {
        self.log_bytes() + self.takeovers.iter().map(|takeover| weight(takeover)).sum::<u64>()
    }
}

/// Bytes of a takeover and its data logs.
fn weight(takeover: &Takeover) -> u64 {
    takeover.bytes + takeover.record.data_logs.iter().map(|(_, length)| length).sum::<u64>()
}

/// Chooses what the next takeover of a user takes over; `None` if nothing is to be done. Notes in `left` which ended logs
/// cannot be taken over.
pub fn choose(
    (medium, snapshot): (&Arc<dyn Medium>, &Snapshot),
    refresher: &Refresher,
    user: u32,
    options: &CompactOptions,
    left: &mut Vec<LeftLog>,
) -> Result<Option<Inputs>> {
    let own: Vec<&Arc<Takeover>> =
        snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user).collect();
    // A handle that was opened before the store was there does not know which one it is: its logs do.
    let Some(store) = store_of(snapshot) else { return Ok(None) };
    let (logs, mut is_more) = choose_logs((medium, snapshot), refresher, user, options, left)?;
    let mut empty = choose_empty(medium, refresher, user, options)?;
    is_more |= logs.len() + empty.len() > LOGS_MAX;
    empty.truncate(LOGS_MAX - logs.len());
    let newest = own.iter().map(|takeover| takeover.number()).max().unwrap_or(0);
    let (number, takeovers, live) = (newest + 1, Vec::new(), Vec::new());
    let mut inputs = Inputs { user, number, store, logs, empty, takeovers, live, is_more };
    if inputs.count() == 0 {
        return Ok(None);
    }
    inputs.number = medium.files().map_or(newest + 1, |files| files.next_takeover(user, newest));
    // As segments of a log: weights more than double from one takeover to the next older one, so that few are left.
    let (mut first, mut bytes) = (own.len(), inputs.log_bytes());
    let fits = |bytes: u64| options.max_merge.is_none_or(|most| bytes <= most);
    while first > 0
        && weight(own[first - 1]) <= bytes.saturating_mul(2)
        && fits(bytes + weight(own[first - 1]))
    {
        first -= 1;
        bytes += weight(own[first]);
    }
    let (stay, taken) = own.split_at(first);
    inputs.takeovers = taken.iter().map(|takeover| (*takeover).clone()).collect();
    inputs.live = stay.iter().map(|takeover| (takeover.number(), takeover.digest)).collect();
    Ok(Some(inputs))
}

/// Chooses and reads logs with commits; also, whether there are more.
fn choose_logs(
    (medium, snapshot): (&Arc<dyn Medium>, &Snapshot),
    refresher: &Refresher,
    user: u32,
    options: &CompactOptions,
    left: &mut Vec<LeftLog>,
) -> Result<(Vec<EndedLog>, bool)> {
    let known: HashSet<String> = left.iter().map(|log| log.file.clone()).collect();
    let (mut logs, mut bytes) = (Vec::new(), 0);
    for log in snapshot.logs.iter().filter(|log| log.uid == user) {
        let file = medium.shown(log.writer, 0);
        let Some(how) =
            how_ended(refresher, log).filter(|_| options.asks(log.writer) && !known.contains(&file))
        else {
            continue;
        };
        if logs.len() == LOGS_MAX {
            return Ok((logs, true));
        }
        // Others may be small enough.
        if options.max_bytes.is_some_and(|most| bytes + log.ends.end() > most) {
            continue;
        }
        let read = match hindrance(snapshot, log, &file) {
            Some(why) => Err(Error::corrupt(why)),
            None => EndedLog::read(medium.inspect(), snapshot, log, how),
        };
        match read {
            Ok(log) => {
                bytes += log.bytes();
                logs.push(log);
            }
            // Damage stays where it is until somebody mends or accepts it: else it would become absence (R19).
            Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Denied) => {
                left.push(LeftLog { file, why: e.message().to_owned() });
            }
            Err(e) => return Err(e),
        }
    }
    Ok((logs, false))
}

/// The logs of a user that ended before their first commit.
fn choose_empty(
    medium: &Arc<dyn Medium>,
    refresher: &Refresher,
    user: u32,
    options: &CompactOptions,
) -> Result<Vec<EmptyLog>> {
    let Some(files) = medium.files() else { return Ok(Vec::new()) };
    let mut empty = Vec::new();
    for (writer, (owner, how)) in refresher.ended_empty() {
        if owner == user && options.asks(writer) {
            let header = files.header_of_empty(writer)?;
            let header = header.unwrap_or_else(|| LogHeader { uid: owner, ..LogHeader::unknown(writer) });
            empty.push(EmptyLog { writer, how: as_row(how), header });
        }
    }
    Ok(empty)
}

/// The id of the store, and the text of its schema, by any log or takeover.
fn store_of(snapshot: &Snapshot) -> Option<(Id, String)> {
    let living = snapshot.logs.iter().find_map(|log| {
        let store = log.header.known_store()?;
        Some((store, log.header.schema.clone()))
    });
    living.or_else(|| {
        let takeover = snapshot.taken.takeovers().all().last()?;
        Some((takeover.header.store, takeover.header.schema.clone()))
    })
}

/// How a log has ended; `None` if its writer may go on (R11).
fn how_ended(refresher: &Refresher, log: &SnapshotLog) -> Option<Ended> {
    if planted::is(Planted::LivingLogTaken) {
        return Some(Ended::Closed);
    }
    refresher.ended(log).map(as_row)
}

fn as_row(ended: medium::Ended) -> Ended {
    match ended {
        medium::Ended::Closed => Ended::Closed,
        medium::Ended::EndFile => Ended::EndFile,
        medium::Ended::Accepted => Ended::Accepted,
    }
}

/// The reason why a log cannot be taken over, as far as it shows without reading it.
fn hindrance(snapshot: &Snapshot, log: &SnapshotLog, file: &str) -> Option<String> {
    let loss = snapshot.losses.iter().find(|loss| loss.log == log.writer).map(|loss| loss.why.clone());
    let damage = snapshot.problems.iter().find(|problem| problem.damage && problem.file == file);
    log.header_damage.clone().or(loss).or_else(|| damage.map(|problem| problem.why.clone()))
}
