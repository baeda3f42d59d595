//! Ended logs, read and checked whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::flush_part::FlushPart;
use fieldstone_format::log::{CommitRecord, Decision, FrameInfo, HEAD, Section};
use fieldstone_format::origin::{EntryOrigin, OriginRank};
use fieldstone_format::takeover::rows::Ended;
use fieldstone_format::{Id, schema_extension};

use crate::medium::Inspect;
use crate::snapshot::SnapshotLog;

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
    pub fn read(inspect: &dyn Inspect, log: &Arc<SnapshotLog>, how: Ended) -> Result<EndedLog> {
        let (mut commits, mut damage) = (Vec::new(), None);
        inspect.check(log, &mut |ends, outcome| match outcome {
            Ok(record) => commits.push(LogCommit::new(&ends, record)),
            Err(e) => damage = damage.take().or(Some(e)),
        })?;
        damage.map_or(Ok(()), Err)?;
        inspect.check_header(log)?;
        for (number, length) in &log.record.data_logs {
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
    pub fn bytes(&self) -> u64 {
        self.log.ends.end()
    }
}
