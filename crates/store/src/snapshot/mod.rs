//! Snapshots: which commits of which logs a read sees.
//!
//! A snapshot names, for every log, its last commit that belongs to it. Everything else follows from
//! the commit records: the runs to search, the verdicts on transactions, the order of versions. A
//! snapshot never changes; a refresh makes a new one that shares what did not move.

mod chain;
mod folder;
mod log_view;
mod owners;
mod refresh;
mod verdict;
pub mod walker;

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::kinds;
use fieldstone_format::run::CommitInfo;
use fieldstone_format::version::Version;

use chain::Layers;
pub use log_view::LogView;
pub use owners::Owners;
pub use refresh::Refresher;
pub use verdict::{ALL_KINDS, Decided, Verdict};
pub use walker::Walker;

use crate::run::{Run, RunCursor};

/// Something wrong that was found while looking at the logs; reads go on without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File, relative to the store.
    pub file: String,
    /// What is wrong.
    pub why: String,
    /// Whether stored data are damaged; else it is only worth knowing (a torn tail).
    pub damage: bool,
}

/// Where a version of a field stands in the order of all versions; the greater one is newer.
pub type Order = (u64, Id);

/// What a read sees.
#[derive(Debug)]
pub struct Snapshot {
    /// Logs with at least one commit, by writer id.
    pub logs: Vec<Arc<LogView>>,
    /// Runs of all logs; `run_log[i]` is the index of run i's log.
    pub runs: Vec<Arc<Run>>,
    /// Index into `logs` for each run.
    pub run_log: Vec<u32>,
    /// Verdicts by transaction.
    pub verdicts: Layers<Id, Arc<Verdict>>,
    /// Users who own datasets.
    pub owners: Owners,
    /// What was found wrong.
    pub problems: Vec<Problem>,
    /// Files and slots of a version of the format that is not known here.
    pub foreign: Vec<String>,
    /// Largest stamp in any log.
    pub max_stamp: u64,
}

impl Snapshot {
    /// The snapshot of a store without commits.
    pub fn empty() -> Snapshot {
        Snapshot {
            logs: Vec::new(),
            runs: Vec::new(),
            run_log: Vec::new(),
            verdicts: Layers::default(),
            owners: Owners::One(None),
            problems: Vec::new(),
            foreign: Vec::new(),
            max_stamp: 0,
        }
    }

    /// A snapshot of these logs, which shares with one before it what did not change.
    pub fn new(
        mut logs: Vec<Arc<LogView>>,
        problems: Vec<Problem>,
        before: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        logs.sort_by_key(|log| log.writer);
        let (mut runs, mut run_log) = (Vec::new(), Vec::new());
        for (i, log) in logs.iter().enumerate() {
            runs.extend(log.runs.iter().cloned());
            run_log.resize(runs.len(), i as u32);
        }
        let verdicts = match before.and_then(|before| verdicts(&logs, before)) {
            Some(verdicts) => verdicts,
            None => verdicts(&logs, &Snapshot::empty()).unwrap_or_default(),
        };
        let max_stamp = logs.iter().map(|log| log.record.stamp).max().unwrap_or(0);
        let owners = Owners::find(&logs)?;
        Ok(Snapshot { logs, runs, run_log, verdicts, owners, problems, foreign: Vec::new(), max_stamp })
    }

    /// The log that run `index` belongs to.
    pub fn log_of(&self, run: usize) -> &Arc<LogView> {
        &self.logs[self.run_log[run] as usize]
    }

    /// The log of `writer`.
    pub fn log(&self, writer: Id) -> Option<&Arc<LogView>> {
        self.logs.binary_search_by_key(&writer, |log| log.writer).ok().map(|i| &self.logs[i])
    }

    /// The order of a commit's entries among all versions; `None` where they are not visible.
    /// Entries of a transaction count from the decision on that shows fields; one's own transaction sees
    /// them before.
    pub fn order(&self, writer: Id, commit: &CommitInfo, own: Option<Id>) -> Option<Order> {
        let Some(id) = commit.transaction else { return Some((commit.stamp, writer)) };
        // All alike, so that the commits' own stamps count, as they will after the decision.
        let undecided = (own == Some(id)).then_some((u64::MAX, Id::NONE));
        let Some(verdict) = self.verdicts.get(&id) else { return undecided };
        verdict
            .visible(kinds::FIELDS, writer, commit.sequence)
            .or_else(|| undecided.filter(|_| verdict.is_open_for(writer, commit.sequence)))
    }

    /// Whether a transaction has ended.
    pub fn has_ended(&self, transaction: Id) -> bool {
        self.verdicts.get(&transaction).is_some_and(|verdict| verdict.closed())
    }

    /// Logs with commits prepared under a transaction, each with the last one's sequence.
    pub fn prepared(&self, transaction: Id) -> Vec<(Id, u64)> {
        self.logs
            .iter()
            .filter_map(|log| {
                let prepared = log.record.prepared.iter().find(|p| p.transaction == transaction)?;
                Some((log.writer, prepared.sequence))
            })
            .collect()
    }

    /// Whether anything stands under an encoded first level.
    pub fn has_dataset(&self, prefix: &[u8]) -> bool {
        self.runs.iter().any(|run| {
            let Ok(meta) = run.meta() else { return true };
            match &meta.datasets {
                Some(datasets) => datasets.iter().any(|(known, _)| known == prefix),
                None => {
                    let mut cursor = RunCursor::new(run.clone(), 0);
                    matches!(cursor.seek(prefix), Ok(true)) && cursor.key().starts_with(prefix)
                }
            }
        })
    }

    /// The user who owns what stands under an encoded first level; `None` where nobody does yet.
    pub fn owner(&self, level: &[u8]) -> Option<u32> {
        self.owners.of(level, || self.has_dataset(level))
    }

    /// The text that names this snapshot.
    pub fn version(&self) -> Version {
        let writers = self
            .logs
            .iter()
            .map(|log| {
                let mut prefix = [0; 8];
                prefix.copy_from_slice(&log.writer.0[..8]);
                (prefix, log.record.sequence)
            })
            .collect();
        Version { writers }
    }

    /// This snapshot cut back to an older version.
    pub fn at(&self, version: &Version, refresher: &Refresher) -> Result<Snapshot> {
        let mut logs = Vec::new();
        for log in &self.logs {
            let sequence = version.sequence(log.writer);
            if sequence > log.record.sequence {
                return Err(gone(log.writer));
            }
            if sequence > 0 {
                logs.push(refresher.log_at(log, sequence)?);
            }
        }
        let known = |prefix: &[u8; 8]| logs.iter().any(|log: &Arc<LogView>| log.writer.0[..8] == prefix[..]);
        if version.writers.iter().any(|(prefix, _)| !known(prefix)) {
            return Err(gone(Id::NONE));
        }
        Snapshot::new(logs, self.problems.clone(), None)
    }
}

/// What is decided in these logs, given what was decided in a snapshot before; `None` where a log is not
/// what it was then and more.
fn verdicts(logs: &[Arc<LogView>], before: &Snapshot) -> Option<Layers<Id, Arc<Verdict>>> {
    if before.logs.iter().any(|log| logs.binary_search_by_key(&log.writer, |log| log.writer).is_err()) {
        return None;
    }
    let mut verdicts = before.verdicts.clone();
    for log in logs {
        let known = before.log(log.writer).map_or(0, |log| log.decisions.len());
        if let Some(last) = known.checked_sub(1) {
            let same = before.log(log.writer).and_then(|log| log.decisions.get(last));
            let same = same.zip(log.decisions.get(last)).is_some_and(|(then, now)| Arc::ptr_eq(then, now));
            same.then_some(())?;
        }
        for decided in log.decisions.since(known) {
            let id = decided.decision.transaction;
            let verdict = verdicts.get(&id).cloned().unwrap_or_default();
            verdicts.insert(id, Arc::new(verdict.with((decided.stamp, log.writer), decided.clone())));
        }
    }
    Some(verdicts)
}

fn gone(writer: Id) -> Error {
    let what = if writer == Id::NONE { "a log".to_owned() } else { format!("log {writer}") };
    Error::not_found(format!("this version of the store is not there: {what} does not reach it"))
        .with_hint("the version belongs to another store, or has been purged")
}
