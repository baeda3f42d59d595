//! The executor: from a condition to the rows that match it.
//!
//! ```text
//! walk     runs and tags that can hold a hit       names, spans            a Partition each
//! plan     the rows of a partition to read         series, curve, index    probes
//! flush    reads probes, decides rows, sorts       scan                    Found
//! ```
//!
//! Partitions come by project, run, tag and version; the rows of a partition by step, variable and box. The
//! executor reads rows in batches of about [`BATCH`] and decides them by [`Cond::test`], so a batch bounds
//! its memory, or one series if that is larger. SQL has narrowed the rows by keys alone.

use std::rc::Rc;

use fieldstone_core::Result;

use super::Expr;
use super::cond::{Cond, Related};
use super::lookup::Lookup;
use super::matched::Batch;
use super::partition::Partition;
use super::plan::{Piece, Plan, Planner, merge};
use super::walk::{Ask, Walk};
use super::writers::with_batches;
use crate::engine::{Flow, Tables};

/// The approximate number of rows that are read before hits are passed on.
const BATCH: u64 = 50_000;

/// A receiver of matching rows.
pub(super) trait Out {
    fn take(&mut self, lookup: &mut Lookup<'_>, batch: &mut Batch) -> Result<Flow>;
}

/// Answers a query, over the tables of one state.
pub(super) struct Exec<'t> {
    pub(super) lookup: Lookup<'t>,
    pub(super) planner: Planner,
    pub(super) related: Rc<Vec<Related>>,
}

impl<'t> Exec<'t> {
    /// The executor of an expression, and the condition for its hits.
    pub(super) fn of(tables: &'t mut dyn Tables, expr: &Expr) -> Result<(Exec<'t>, Cond)> {
        let (cond, related) = Cond::of(expr)?;
        let (cond, related) = with_batches(tables, cond, related)?;
        let lookup = Lookup::new(tables, &cond, &related);
        Ok((Exec { lookup, planner: Planner::default(), related: Rc::new(related) }, cond))
    }

    /// Passes every match to `out`, in order.
    pub(super) fn ask(&mut self, ask: &Ask<'_>, out: &mut dyn Out) -> Result<Flow> {
        let mut batch = Batch::default();
        let mut limit = ask.few.map_or(BATCH, |few| few.saturating_mul(2).clamp(256, BATCH));
        let mut walk = Walk::of(&mut self.lookup, *ask)?;
        while let Some(partition) = walk.next(&mut self.lookup)? {
            let plan = self.planner.plan(&mut self.lookup, &partition, false)?;
            if self.feed(&mut batch, &partition, plan, &mut limit, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        self.flush(&mut batch, out)
    }

    /// Adds a partition to a batch, and reads the batch whenever it is full.
    fn feed(
        &mut self,
        batch: &mut Batch,
        partition: &Rc<Partition>,
        plan: Plan,
        limit: &mut u64,
        out: &mut dyn Out,
    ) -> Result<Flow> {
        const PARTITIONS: usize = 512;
        const PROBES: usize = 8_192;
        batch.partitions.push(partition.clone());
        let pieces = match plan {
            Plan::Direct { probes, expected, guessed } => {
                batch.guessed |= guessed;
                vec![Piece { probes, expected, ..Piece::default() }]
            }
            Plan::Series(pieces) => merge(partition, pieces),
        };
        for piece in pieces {
            let full = batch.expected + piece.expected > *limit
                || batch.partitions.len() > PARTITIONS
                || batch.probes.len() > PROBES;
            if full && !batch.probes.is_empty() {
                if self.flush(batch, out)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                batch.partitions.push(partition.clone());
                *limit = limit.saturating_mul(4).min(BATCH);
            }
            batch.expected += piece.expected;
            batch.probes.extend(piece.probes);
        }
        Ok(Flow::More)
    }

    /// Reads the batch, passes its matches on, and empties it.
    fn flush(&mut self, batch: &mut Batch, out: &mut dyn Out) -> Result<Flow> {
        let mut batch = std::mem::take(batch);
        // Estimates may be far off: beyond this limit, reading by series needs less time and memory.
        let most = if batch.guessed { batch.expected.saturating_mul(4) + 4 * BATCH } else { u64::MAX };
        if !batch.read(&mut self.lookup, most)? {
            let (mut again, mut limit) = (Batch::default(), BATCH);
            for partition in std::mem::take(&mut batch.partitions) {
                let plan = self.planner.plan(&mut self.lookup, &partition, true)?;
                if self.feed(&mut again, &partition, plan, &mut limit, out)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            return self.flush(&mut again, out);
        }
        if batch.found.is_empty() {
            return Ok(Flow::More);
        }
        if batch.found.iter().any(|found| found.open) {
            self.relate(&mut batch)?;
        }
        out.take(&mut self.lookup, &mut batch)
    }
}
