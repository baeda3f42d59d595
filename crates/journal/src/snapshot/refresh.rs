//! Keeping a snapshot up to date.
//!
//! A refresh asks the medium what moved and makes a new snapshot where anything in it would differ.
//! Reads share a refresh only if it began after all of them did; what this process wrote itself is known
//! without a look.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, FrameInfo};
use tracing::Span;

use super::{LogView, Snapshot};
use crate::medium::{Look, Medium, Problem, Watch};
use crate::segment::BlockCache;

/// A commit of this process that is durable: the next snapshot has it without a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flushed {
    /// The log.
    pub writer: Id,
    /// What the commit says.
    pub record: Arc<CommitRecord>,
    /// Where its frame lies.
    pub ends: FrameInfo,
}

/// The state between refreshes.
#[derive(Debug)]
pub struct Refresher {
    medium: Arc<dyn Medium>,
    watch: Box<dyn Watch>,
    cache: Arc<BlockCache>,
    views: HashMap<Id, Arc<LogView>>,
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
            views: HashMap::new(),
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
        // J-13: whoever asks from here on may have heard of a flush that this refresh does not see.
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
        Span::current().record("logs", self.views.len()).record("moved", moved);
        Ok(self.current.clone())
    }

    /// Makes a snapshot of what the last look found.
    fn publish(&mut self) -> Result<()> {
        let tips = self.watch.tips();
        let mut views = HashMap::with_capacity(tips.len());
        for tip in &tips {
            let known = self.views.get(&tip.writer);
            let view = match known {
                Some(known) if Arc::ptr_eq(&known.tip, tip) => known.clone(),
                Some(known) if known.record.sequence == tip.record.sequence => {
                    Arc::new(LogView { tip: tip.clone(), ..(**known).clone() })
                }
                // A log may have been cut back: what it was is nothing to go on from.
                _ => {
                    let known = known.filter(|known| known.record.sequence < tip.record.sequence);
                    Arc::new(LogView::new(&self.medium, &self.cache, tip, known.map(|known| &**known)))
                }
            };
            views.insert(tip.writer, view);
        }
        self.views = views;
        let findings = self.watch.findings();
        let mut problems = findings.problems;
        for view in tips.iter().filter_map(|tip| self.views.get(&tip.writer)) {
            problems.extend(view.decisions_damage.as_ref().map(|why| Problem {
                file: self.medium.shown(view.writer, 0),
                why: why.clone(),
                damage: true,
                passed_over: false,
            }));
        }
        let logs = self.views.values().cloned().collect();
        let (claims, owner) = (self.watch.claims(), self.watch.folder_owner());
        let snapshot = Snapshot::new(logs, &claims, owner, Some(&self.current))?;
        let (foreign, losses) = (findings.foreign, findings.losses);
        self.current = Arc::new(Snapshot { problems, foreign, losses, ..snapshot });
        Ok(())
    }

    /// The greatest Lamport timestamp that a commit of now has to exceed.
    pub fn max_stamp(&self) -> u64 {
        self.watch.max_stamp()
    }

    /// The last commit that a log's own user says to be durable, and whether the log is closed.
    pub fn announced(&self, log: &LogView) -> Option<(u64, bool)> {
        self.watch.announced(&log.tip)
    }

    /// This snapshot cut back: a log as it was at its commit `sequence`, if it reaches back to it.
    pub(super) fn log_at(&self, log: &Arc<LogView>, sequence: u64) -> Result<Option<Arc<LogView>>> {
        if log.record.sequence == sequence {
            return Ok(Some(log.clone()));
        }
        Ok(log.back_at(&self.medium, &self.cache, sequence)?.map(Arc::new))
    }

    /// A snapshot of these logs, with the owners as the last look found them.
    pub(super) fn snapshot_of(&self, logs: Vec<Arc<LogView>>) -> Result<Snapshot> {
        Snapshot::new(logs, &self.watch.claims(), self.watch.folder_owner(), None)
    }
}
