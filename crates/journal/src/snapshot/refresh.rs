//! Keeping a snapshot up to date.
//!
//! A refresh asks the medium what moved and makes a new snapshot if anything in it would differ. Reads share a
//! refresh only if it began after all of them did. This process's own writes are known without a look.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, FrameInfo};
use tracing::Span;

use super::{Accepted, Snapshot, SnapshotLog, TakeoverContent};
use crate::block_cache::BlockCache;
use crate::medium::{Ended, Look, Loss, Medium, Problem, Watch};

/// A commit of this process that is durable: the next snapshot has it without a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flushed {
    /// The log.
    pub writer: Id,
    /// The commit's content.
    pub record: Arc<CommitRecord>,
    /// The extent of its frame.
    pub ends: FrameInfo,
}

/// The state between refreshes.
#[derive(Debug)]
pub struct Refresher {
    medium: Arc<dyn Medium>,
    watch: Box<dyn Watch>,
    cache: Arc<BlockCache>,
    snapshot_logs: HashMap<Id, Arc<SnapshotLog>>,
    /// Logs whose end was given up, as they were then.
    cut: HashMap<Id, Arc<SnapshotLog>>,
    /// Whether a look found something that no snapshot shows yet.
    moved: bool,
    /// Up to which ticket reads were served by a refresh that began after they asked.
    served: u64,
    current: Arc<Snapshot>,
}

impl Refresher {
    /// A refresher that has seen nothing yet.
    pub fn new(medium: Arc<dyn Medium>, cache: Arc<BlockCache>) -> Refresher {
        Refresher {
            watch: medium.watch(),
            medium,
            cache,
            snapshot_logs: HashMap::new(),
            cut: HashMap::new(),
            moved: false,
            served: 0,
            current: Arc::new(Snapshot::empty()),
        }
    }

    /// Takes a commit of this process's writer, which is durable.
    pub fn wrote(&mut self, flushed: &Flushed) {
        self.watch.wrote(flushed.writer, &flushed.ends, &flushed.record);
    }

    /// The newest snapshot for whoever drew `ticket` from `asked` before he waited for the lock: of a refresh
    /// that began after that. One that began earlier may lack what was flushed before he asked.
    pub fn refresh_for(&mut self, ticket: u64, asked: &AtomicU64) -> Result<Arc<Snapshot>> {
        if self.served >= ticket {
            return Ok(self.current.clone());
        }
        // J-13: a caller that asks from here on may know of a flush that this refresh does not see.
        let upto = asked.load(Ordering::SeqCst);
        let snapshot = self.refresh(Look::Hints)?;
        self.served = upto;
        Ok(snapshot)
    }

    /// Looks at what moved and returns the newest snapshot.
    pub fn refresh(&mut self, look: Look) -> Result<Arc<Snapshot>> {
        self.moved |= self.watch.look(look)?;
        let moved = self.moved;
        if moved {
            self.publish()?;
            self.moved = false;
        }
        Span::current().record("logs", self.snapshot_logs.len()).record("moved", moved);
        Ok(self.current.clone())
    }

    /// Makes a snapshot from the findings of the last look.
    fn publish(&mut self) -> Result<()> {
        let tips = self.watch.tips();
        let mut snapshot_logs = HashMap::with_capacity(tips.len());
        for tip in &tips {
            let known = self.snapshot_logs.get(&tip.writer);
            let snapshot_log = match known {
                Some(known) if Arc::ptr_eq(&known.tip, tip) => known.clone(),
                Some(known) if planted::is(Planted::RefreshMissesLog) && known.record.sequence % 4 == 3 => {
                    known.clone()
                }
                Some(known) if known.record.sequence == tip.record.sequence => {
                    Arc::new(SnapshotLog { tip: tip.clone(), ..(**known).clone() })
                }
                // A log may have been cut back: what it was is nothing to go on from.
                _ => {
                    let known = known.filter(|known| known.record.sequence < tip.record.sequence);
                    Arc::new(SnapshotLog::new(&self.medium, &self.cache, tip, known.map(|known| &**known)))
                }
            };
            snapshot_logs.insert(tip.writer, snapshot_log);
        }
        self.snapshot_logs = snapshot_logs;
        let findings = self.watch.findings();
        let mut problems = findings.problems;
        for snapshot_log in tips.iter().filter_map(|tip| self.snapshot_logs.get(&tip.writer)) {
            problems.extend(snapshot_log.decisions_damage.as_ref().map(|why| Problem {
                file: self.medium.shown(snapshot_log.writer, 0),
                why: why.clone(),
                damage: true,
                skipped: false,
            }));
        }
        let takeovers = self.watch.takeovers();
        let taken = match takeovers.is_same(self.current.taken.takeovers()) {
            true => self.current.taken.clone(),
            false => Arc::new(TakeoverContent::new(takeovers)?),
        };
        problems.extend(taken.problems.iter().cloned());
        let (claims, owner) = (self.watch.claims(), self.watch.folder_owner());
        let living = self.snapshot_logs.values().flat_map(|log| log.accepted.iter().cloned());
        let user = |log: Id| {
            let replaced = || taken.log(log).map(|(takeover, _)| takeover.user);
            // A data log of a takeover has its id.
            let of_takeover = || {
                let mut all = taken.takeovers().all().iter();
                all.find(|takeover| takeover.header.id == log).map(|takeover| takeover.user)
            };
            self.watch.owner(log).or_else(replaced).or_else(of_takeover)
        };
        let accepted = Accepted::find(living.chain(taken.accepted.iter().cloned()), owner, user);
        let logs = self.up_to_ends(&accepted)?;
        accepted.give_up_blocks(&logs, taken.takeovers());
        let snapshot = Snapshot::new(logs, taken, &claims, owner, Some(&self.current))?;
        let (foreign, mut losses, without_logs) = (findings.foreign, findings.losses, findings.without_logs);
        let is_accepted = |loss: &Loss| accepted.end(loss.log).is_some_and(|end| loss.seen >= end);
        let open: Vec<Id> = losses.iter().filter(|loss| !is_accepted(loss)).map(|loss| loss.log).collect();
        losses.retain(|loss| open.contains(&loss.log));
        losses.extend(snapshot.taken.losses.iter().cloned());
        let ended = accepted.ended().filter(|log| !open.contains(log));
        let ended: Vec<String> = ended.map(|log| self.medium.shown(log, 0)).collect();
        problems.retain(|problem| !problem.damage || !ended.contains(&problem.file));
        let accepted = Arc::new(accepted);
        self.current = Arc::new(Snapshot { problems, foreign, losses, without_logs, accepted, ..snapshot });
        Ok(())
    }

    /// The logs without what was given up of them.
    fn up_to_ends(&mut self, accepted: &Accepted) -> Result<Vec<Arc<SnapshotLog>>> {
        let mut logs = Vec::with_capacity(self.snapshot_logs.len());
        for snapshot_log in self.snapshot_logs.values() {
            match accepted.end(snapshot_log.writer) {
                Some(0) => {}
                Some(end) if snapshot_log.record.sequence > end => {
                    let same =
                        |cut: &&Arc<SnapshotLog>| cut.record.sequence == end && cut.uid == snapshot_log.uid;
                    let cut = match self.cut.get(&snapshot_log.writer).filter(same) {
                        Some(cut) => cut.clone(),
                        None => self.log_up_to(snapshot_log, end)?,
                    };
                    logs.push(cut);
                }
                _ => logs.push(snapshot_log.clone()),
            }
        }
        let cut = logs.iter().filter(|log| accepted.end(log.writer).is_some());
        self.cut = cut.map(|log| (log.writer, log.clone())).collect();
        Ok(logs)
    }

    /// A log as it was at its commit `end`. Views that this handle had of it may be gone.
    fn log_up_to(&self, snapshot_log: &SnapshotLog, end: u64) -> Result<Arc<SnapshotLog>> {
        if let Ok(Some(cut)) = snapshot_log.back_at(&self.medium, &self.cache, end) {
            return Ok(Arc::new(cut));
        }
        let mut watch = self.medium.watch();
        watch.look(Look::All)?;
        let tips = watch.tips();
        let tip = tips.iter().find(|tip| tip.writer == snapshot_log.writer && tip.record.sequence >= end);
        let now = tip.map(|tip| SnapshotLog::new(&self.medium, &self.cache, tip, None));
        let cut = match now {
            Some(now) => now.back_at(&self.medium, &self.cache, end)?,
            None => None,
        };
        let file = self.medium.shown(snapshot_log.writer, 0);
        cut.map(Arc::new)
            .ok_or_else(|| Error::corrupt(format!("{file} does not reach its commit {end} any more")))
    }

    /// The newest snapshot that was made.
    pub fn current(&self) -> &Arc<Snapshot> {
        &self.current
    }

    /// The greatest Lamport timestamp that a commit of now has to exceed.
    pub fn max_stamp(&self) -> u64 {
        self.watch.max_stamp()
    }

    /// The last commit that a log's own user says to be durable, and whether the log is closed.
    pub fn announced(&self, log: &SnapshotLog) -> Option<(u64, bool)> {
        self.watch.announced(&log.tip)
    }

    /// How a log ended, where its commit in the snapshot is its last one for ever.
    pub fn ended(&self, log: &SnapshotLog) -> Option<Ended> {
        let is_accepted = self.current.accepted.end(log.writer) == Some(log.record.sequence);
        if is_accepted { Some(Ended::Accepted) } else { self.watch.ended(&log.tip) }
    }

    /// Whether anything but an end file says that there is, or was, a log with this name.
    pub fn knows(&self, log: Id) -> bool {
        let Snapshot { losses, accepted, .. } = &*self.current;
        self.watch.owner(log).is_some()
            || self.current.log(log).is_some()
            || losses.iter().any(|loss| loss.log == log)
            || accepted.end(log).is_some()
    }

    /// The logs without a commit that have ended and that no takeover replaces: their users, and how they ended.
    pub fn ended_empty(&self) -> BTreeMap<Id, (u32, Ended)> {
        let mut ended: BTreeMap<Id, (u32, Ended)> = BTreeMap::new();
        for (writer, user) in self.watch.ended_empty() {
            ended.insert(writer, (user, Ended::EndFile));
        }
        let Snapshot { accepted, losses, taken, .. } = &*self.current;
        let is_open = |log: Id| losses.iter().any(|loss| loss.log == log);
        // R20: what such a log holds never counts.
        for log in accepted.ended().filter(|log| accepted.end(*log) == Some(0) && !is_open(*log)) {
            let user = self.watch.owner(log);
            let is_living = |user: &u32| matches!(taken.takeovers().log_of(log, *user), Ok(None));
            if let Some(user) = user.filter(is_living) {
                ended.insert(log, (user, Ended::Accepted));
            }
        }
        ended
    }

    /// This snapshot cut back: a log as it was at its commit `sequence`, if it reaches back to it.
    pub(super) fn log_at(&self, log: &Arc<SnapshotLog>, sequence: u64) -> Result<Option<Arc<SnapshotLog>>> {
        if log.record.sequence == sequence {
            return Ok(Some(log.clone()));
        }
        Ok(log.back_at(&self.medium, &self.cache, sequence)?.map(Arc::new))
    }

    /// A snapshot of these logs, with the owners as the last look found them.
    pub(super) fn snapshot_of(
        &self,
        logs: Vec<Arc<SnapshotLog>>,
        taken: Arc<TakeoverContent>,
    ) -> Result<Snapshot> {
        self.current.accepted.give_up_blocks(&logs, taken.takeovers());
        let snapshot = Snapshot::new(logs, taken, &self.watch.claims(), self.watch.folder_owner(), None)?;
        Ok(Snapshot { accepted: self.current.accepted.clone(), ..snapshot })
    }
}
