//! One log as a reader sees it: its last commit and what this commit names.

use std::ops::Deref;
use std::sync::Arc;

use fieldstone_core::{Error, Result};

use super::Decided;
use super::chain::Chain;
use crate::medium::{Medium, Tip};
use crate::segment::{BlockCache, Segment};

/// A log up to one of its commits: the [`Tip`], and what is read for it.
#[derive(Debug, Clone)]
pub struct LogView {
    /// The commit.
    pub tip: Arc<Tip>,
    /// The segments it names, oldest first.
    pub segments: Vec<Arc<Segment>>,
    /// Decisions in this log up to the commit, oldest first.
    pub decisions: Chain<Arc<Decided>>,
    /// What hides earlier decisions.
    pub decisions_damage: Option<String>,
}

impl Deref for LogView {
    type Target = Tip;

    fn deref(&self) -> &Tip {
        &self.tip
    }
}

impl LogView {
    /// The log up to a commit, given what is known of it up to an earlier one.
    pub fn new(
        medium: &Arc<dyn Medium>,
        cache: &Arc<BlockCache>,
        tip: &Arc<Tip>,
        known: Option<&LogView>,
    ) -> LogView {
        let (decisions, broken) = decisions(&**medium, tip, known);
        let decisions_damage = match broken {
            Some(e) => Some(e.message().to_owned()),
            None => known.and_then(|known| known.decisions_damage.clone()),
        };
        let segments = segments_of(medium, cache, tip, known);
        LogView { tip: tip.clone(), segments, decisions, decisions_damage }
    }

    /// The log as it was at its commit `sequence`; `None` where it does not reach back to it.
    pub fn back_at(
        &self,
        medium: &Arc<dyn Medium>,
        cache: &Arc<BlockCache>,
        sequence: u64,
    ) -> Result<Option<LogView>> {
        // Commits are found by going back from one to the one before.
        let (mut ends, mut record) = (self.ends, self.record.clone());
        while record.sequence > sequence {
            if record.previous == 0 || record.previous >= ends.frame {
                return Ok(None);
            }
            let (earlier, its) = medium.commit_before(self.writer, record.previous, &ends, &record)?;
            (ends, record) = (earlier, Arc::new(its));
        }
        let tip = Arc::new(Tip { ends, record, ..(*self.tip).clone() });
        let (decisions, broken) = decisions(&**medium, &tip, None);
        match broken {
            Some(e) => Err(e),
            None => {
                let segments = segments_of(medium, cache, &tip, Some(self));
                let decisions_damage = self.decisions_damage.clone();
                Ok(Some(LogView { tip, segments, decisions, decisions_damage }))
            }
        }
    }
}

/// The segments that a commit names; those that a view has already are shared with it.
fn segments_of(
    medium: &Arc<dyn Medium>,
    cache: &Arc<BlockCache>,
    tip: &Tip,
    view: Option<&LogView>,
) -> Vec<Arc<Segment>> {
    let seen = |reference| view?.segments.iter().find(|segment| segment.reference == reference).cloned();
    let segment = |&reference| {
        let new = || Arc::new(Segment::new(tip.writer, reference, medium.clone(), cache.clone()));
        seen(reference).unwrap_or_else(new)
    };
    tip.record.segments.iter().map(segment).collect()
}

/// All decisions up to a commit, oldest first, given those known up to an earlier one; and what
/// stopped the way back, if it did not reach its end.
fn decisions(
    medium: &dyn Medium,
    tip: &Tip,
    known: Option<&LogView>,
) -> (Chain<Arc<Decided>>, Option<Error>) {
    let mut newest_first = Vec::new();
    let mut broken = None;
    let sure = known.map_or(0, |known| known.ends.frame + 1);
    let mut ends = tip.ends;
    let mut record = std::borrow::Cow::Borrowed(&*tip.record);
    loop {
        if let Some(decision) = &record.decision {
            newest_first.push(Arc::new(Decided { decision: decision.clone(), stamp: record.stamp }));
        }
        let before = record.previous_decision;
        if before == 0 || before < sure {
            break;
        }
        match medium.commit_before(tip.writer, before, &ends, &record) {
            Ok((earlier, its)) => (ends, record) = (earlier, std::borrow::Cow::Owned(its)),
            Err(e) => {
                broken = Some(e);
                break;
            }
        }
    }
    let mut decisions = known.map(|known| known.decisions.clone()).unwrap_or_default();
    newest_first.into_iter().rev().for_each(|decided| decisions.push(decided));
    (decisions, broken)
}
