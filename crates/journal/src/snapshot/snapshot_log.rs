//! One log as a reader sees it: its last commit and what this commit names.

use std::ops::Deref;
use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::acceptance::{self, Acceptance};
use fieldstone_format::log::{self, CommitRecord};
use fieldstone_format::setting::{self, Setting};
use fieldstone_format::store_record::{self, StoreRecord};
use fieldstone_format::{Id, crc, schema_extension};

use super::chain::Chain;
use super::ranges::checked;
use super::{Decided, StoreHandOver, StoreHold, StorePointer, StoreRange, StoreRule};
use crate::block_cache::BlockCache;
use crate::medium::{Medium, Tip};
use crate::segment::Segment;

/// A log up to one of its commits: the [`Tip`], and what is read for it.
#[derive(Debug, Clone)]
pub struct SnapshotLog {
    /// The commit.
    pub tip: Arc<Tip>,
    /// The segments it names, oldest first.
    pub segments: Vec<Arc<Segment>>,
    /// Decisions in this log up to the commit, oldest first.
    pub decisions: Chain<Arc<Decided>>,
    /// Extensions of the schema in this log up to the commit, oldest first.
    pub extensions: Vec<Arc<SchemaExtension>>,
    /// Settings of the store in this log up to the commit, oldest first.
    pub settings: Vec<Arc<StoreSetting>>,
    /// Losses that are accepted in this log up to the commit, oldest first.
    pub accepted: Vec<Arc<AcceptedLoss>>,
    /// Holds in this log up to the commit, oldest first.
    pub holds: Vec<Arc<StoreHold>>,
    /// Ranges in this log up to the commit, oldest first.
    pub ranges: Vec<Arc<StoreRange>>,
    /// Rules of retention in this log up to the commit, oldest first.
    pub rules: Vec<Arc<StoreRule>>,
    /// Pointers of other stores in this log up to the commit, oldest first.
    pub pointers: Vec<Arc<StorePointer>>,
    /// Hand-overs in this log up to the commit, oldest first.
    pub hand_overs: Vec<StoreHandOver>,
    /// A record that hides earlier decisions, an extension of the schema, or a setting.
    pub decisions_damage: Option<String>,
}

/// The part of the schema that a commit adds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaExtension {
    /// Stamp of the commit.
    pub stamp: u64,
    /// Its log.
    pub writer: Id,
    /// The added rules and keywords.
    pub text: String,
}

/// The setting of the whole store that a commit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSetting {
    /// Stamp of the commit.
    pub stamp: u64,
    /// Its log.
    pub writer: Id,
    /// When, nanoseconds since 1970, by the writer's clock.
    pub time: i64,
    /// The user whose log it is.
    pub user: u32,
    /// The new value.
    pub setting: Setting,
}

/// An acceptance in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// Stamp of its commit.
    pub stamp: u64,
    /// The log that it stands in, and the number of its commit there.
    pub log: Id,
    /// Sequence of its commit.
    pub sequence: u64,
    /// When, nanoseconds since 1970, by the clock of whoever accepted.
    pub time: i64,
    /// The user who accepted.
    pub user: u32,
    /// Accepted losses.
    pub acceptance: Acceptance,
}

impl Deref for SnapshotLog {
    type Target = Tip;

    fn deref(&self) -> &Tip {
        &self.tip
    }
}

impl SnapshotLog {
    /// The log up to a commit, given what is known of it up to an earlier one.
    pub fn new(
        medium: &Arc<dyn Medium>,
        cache: &Arc<BlockCache>,
        tip: &Arc<Tip>,
        known: Option<&SnapshotLog>,
    ) -> SnapshotLog {
        let Decisions { decisions, flagged, broken } = decisions(&**medium, tip, known);
        let Flagged { extensions, settings, accepted, holds, ranges, rules, pointers, hand_overs } = flagged;
        let decisions_damage = match broken {
            Some(e) => Some(e.message().to_owned()),
            None => known.and_then(|known| known.decisions_damage.clone()),
        };
        let segments = segments_of(medium, cache, tip, known);
        SnapshotLog {
            tip: tip.clone(),
            segments,
            decisions,
            extensions,
            settings,
            accepted,
            holds,
            ranges,
            rules,
            pointers,
            hand_overs,
            decisions_damage,
        }
    }

    /// The log as it was at its commit `sequence`; `None` where it does not reach back to it.
    pub fn back_at(
        &self,
        medium: &Arc<dyn Medium>,
        cache: &Arc<BlockCache>,
        sequence: u64,
    ) -> Result<Option<SnapshotLog>> {
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
        let Decisions { decisions, flagged, broken } = decisions(&**medium, &tip, None);
        match broken {
            Some(e) => Err(e),
            None => {
                let Flagged { extensions, settings, accepted, holds, ranges, rules, pointers, hand_overs } =
                    flagged;
                let segments = segments_of(medium, cache, &tip, Some(self));
                let decisions_damage = self.decisions_damage.clone();
                Ok(Some(SnapshotLog {
                    tip,
                    segments,
                    decisions,
                    extensions,
                    settings,
                    accepted,
                    holds,
                    ranges,
                    rules,
                    pointers,
                    hand_overs,
                    decisions_damage,
                }))
            }
        }
    }
}

/// The segments that a commit names; those that a log has already are shared with it.
fn segments_of(
    medium: &Arc<dyn Medium>,
    cache: &Arc<BlockCache>,
    tip: &Tip,
    snapshot_log: Option<&SnapshotLog>,
) -> Vec<Arc<Segment>> {
    let seen =
        |reference| snapshot_log?.segments.iter().find(|segment| segment.reference == reference).cloned();
    let segment = |&reference| {
        let new = || Arc::new(Segment::new(tip.writer, reference, medium.clone(), cache.clone()));
        seen(reference).unwrap_or_else(new)
    };
    tip.record.segments.iter().map(segment).collect()
}

/// The content of a log's chain of decisions.
struct Decisions {
    decisions: Chain<Arc<Decided>>,
    flagged: Flagged,
    /// The error that stopped the way back, or hides an extension, a setting or an acceptance.
    broken: Option<Error>,
}

/// All decisions up to a commit, oldest first, given those known up to an earlier one.
fn decisions(medium: &dyn Medium, tip: &Tip, known: Option<&SnapshotLog>) -> Decisions {
    let (mut newest_first, mut found) = (Vec::new(), Vec::new());
    let mut broken = None;
    let sure = known.map_or(0, |known| known.ends.frame + 1);
    let mut ends = tip.ends;
    let mut record = std::borrow::Cow::Borrowed(&*tip.record);
    loop {
        if let Some(decision) = &record.decision {
            let (stamp, sequence) = (record.stamp, record.sequence);
            newest_first.push(Arc::new(Decided { decision: decision.clone(), stamp, sequence }));
            if decision.transaction == schema_extension::FLAG {
                match flagged(medium, tip, &record) {
                    Ok(flagged) => found.push(flagged),
                    Err(e) => broken = Some(e.context(format!("commit {}", record.sequence))),
                }
            }
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
    let mut flagged = known.map_or_else(Flagged::default, |known| Flagged {
        extensions: known.extensions.clone(),
        settings: known.settings.clone(),
        accepted: known.accepted.clone(),
        holds: known.holds.clone(),
        ranges: known.ranges.clone(),
        rules: known.rules.clone(),
        pointers: known.pointers.clone(),
        hand_overs: known.hand_overs.clone(),
    });
    for more in found.into_iter().rev() {
        flagged.extensions.extend(more.extensions);
        flagged.settings.extend(more.settings);
        flagged.accepted.extend(more.accepted);
        flagged.holds.extend(more.holds);
        flagged.ranges.extend(more.ranges);
        flagged.rules.extend(more.rules);
        flagged.pointers.extend(more.pointers);
        flagged.hand_overs.extend(more.hand_overs);
    }
    Decisions { decisions, flagged, broken }
}

/// The store's own records in flagged commits; oldest first.
#[derive(Default)]
struct Flagged {
    extensions: Vec<Arc<SchemaExtension>>,
    settings: Vec<Arc<StoreSetting>>,
    accepted: Vec<Arc<AcceptedLoss>>,
    holds: Vec<Arc<StoreHold>>,
    ranges: Vec<Arc<StoreRange>>,
    rules: Vec<Arc<StoreRule>>,
    pointers: Vec<Arc<StorePointer>>,
    hand_overs: Vec<StoreHandOver>,
}

fn flagged(medium: &dyn Medium, tip: &Tip, record: &CommitRecord) -> Result<Flagged> {
    let (writer, user, time) = (tip.writer, tip.uid, record.time);
    let bytes = medium.read_vec(writer, 0, record.side.offset, record.side.length)?;
    if crc(&bytes) != record.side.crc {
        return Err(Code::Checksum.error("side records do not match their checksum"));
    }
    let (mut found, stamp, sequence) = (Flagged::default(), record.stamp, record.sequence);
    for side in log::decode_side(&bytes, record.side_count)? {
        if let Some(text) = schema_extension::decode(&side)? {
            found.extensions.push(Arc::new(SchemaExtension { stamp, writer, text }));
        }
        if let Some(setting) = setting::decode(&side)? {
            found.settings.push(Arc::new(StoreSetting { stamp, writer, time, user, setting }));
        }
        if let Some(acceptance) = acceptance::decode(&side)? {
            let log = writer;
            found.accepted.push(Arc::new(AcceptedLoss { stamp, log, sequence, time, user, acceptance }));
        }
        found.holds.extend(StoreHold::decode((stamp, writer), (user, time), &side)?.map(Arc::new));
        found.rules.extend(StoreRule::decode((stamp, writer), (user, time), &side)?.map(Arc::new));
        found.pointers.extend(StorePointer::decode((stamp, writer), (user, time), &side)?.map(Arc::new));
        found.hand_overs.extend(StoreHandOver::decode((stamp, writer), (user, time), &side)?);
        if let Some(StoreRecord::Range(range)) = store_record::decode(&side)? {
            found.ranges.push(checked(StoreRange { stamp, log: writer, sequence, time, user, range })?);
        }
    }
    Ok(found)
}
