//! Rows that match: reads a batch of probes, decides its rows, and sorts those that match.
//!
//! ```text
//! partition, step, variable, box along the curve, box, id      the order, the same on every engine
//! ```

use std::collections::HashMap;
use std::rc::Rc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;

use super::lookup::Lookup;
use super::partition::Partition;
use super::place::RowRegion;
use super::rows::Reader;
use super::{Cells, RowKeywords};
use crate::engine::{Flow, Probe, VariableId, stored};

/// A row that matches, or may.
#[derive(Debug)]
pub(super) struct MatchedRow {
    pub(super) partition: usize,
    pub(super) step: i64,
    pub(super) variable: VariableId,
    rank: u32,
    curve: i64,
    pub(super) batch: i64,
    pub(super) row: i64,
    pub(super) value: Value,
    /// The position of its box among those of the batch: start, then count.
    at: usize,
    dims: usize,
    /// Its cells, if its box does not hold all of its elements.
    pub(super) cells: Option<Cells>,
    /// Its further keywords.
    pub(super) keywords: Option<RowKeywords>,
    /// Whether the box is its own, not that of the whole variable.
    pub(super) own: bool,
    /// Whether it depends on a related attribute.
    pub(super) open: bool,
}

/// Rows of a batch, with their boxes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) partitions: Vec<Rc<Partition>>,
    pub(super) probes: Vec<Probe>,
    pub(super) expected: u64,
    /// Whether it holds probes whose number of rows was estimated from least and greatest value.
    pub(super) guessed: bool,
    pub(super) found: Vec<MatchedRow>,
    boxes: Vec<i64>,
}

impl Batch {
    /// A row's box, or that of its whole variable if that is known.
    pub(super) fn bounds<'b>(&'b self, found: &'b MatchedRow) -> Option<RowRegion<'b>> {
        (found.dims > 0).then(|| {
            let both = &self.boxes[found.at..found.at + 2 * found.dims];
            let (start, count) = both.split_at(found.dims);
            let cells = found.cells.as_ref().map(|(dim, cells)| (*dim, &**cells));
            RowRegion { start, count, cells }
        })
    }

    /// Reads the probes of a batch into `found`; `false` if there are more than `most` rows.
    pub(super) fn read(&mut self, lookup: &mut Lookup<'_>, most: u64) -> Result<bool> {
        let index: HashMap<(i64, i64), usize> = self
            .partitions
            .iter()
            .enumerate()
            .map(|(i, partition)| ((partition.run.id, partition.tag.id), i))
            .collect();
        let (partitions, probes) = (&self.partitions, std::mem::take(&mut self.probes));
        let (found, boxes) = (&mut self.found, &mut self.boxes);
        let mut reader = Reader::default();
        let (mut last, mut rows) = (usize::MAX, 0u64);
        let visited = lookup.tables.scan(&probes, &mut |row| {
            rows += 1;
            if rows > most {
                return Ok(Flow::Stop);
            }
            let same = partitions
                .get(last)
                .is_some_and(|partition| partition.run.id == row.run && partition.tag.id == row.tag);
            if !same {
                let Some(at) = index.get(&(row.run, row.tag)) else { return Ok(Flow::More) };
                last = *at;
                reader.cell = None;
            }
            let Some(partition) = partitions.get(last) else { return Ok(Flow::More) };
            let Some((cell, open)) = reader.matches(partition, row)? else { return Ok(Flow::More) };
            let value = match reader.value.take() {
                Some(value) => value,
                None => row.value()?,
            };
            let at = boxes.len();
            let own = stored::region_rank(row.region) > 0;
            let (dims, cells) = reader.take_box(row, &cell, boxes)?;
            let rank = cell.variable.as_ref().map_or(0, |variable| variable.rank + 1);
            found.push(MatchedRow {
                partition: last,
                step: row.step,
                variable: row.variable,
                rank,
                curve: row.curve,
                batch: row.batch,
                row: row.row,
                value,
                at,
                dims,
                cells,
                keywords: stored::region_keywords(row.region)?,
                own,
                open,
            });
            Ok(Flow::More)
        })?;
        lookup.stats.visited += visited;
        lookup.stats.probes += probes.len() as u64;
        if rows > most {
            return Ok(false);
        }
        self.sort(lookup)?;
        Ok(true)
    }

    /// Sorts by partition, step, variable, box along the curve, box, id: the same on every engine.
    fn sort(&mut self, lookup: &mut Lookup<'_>) -> Result<()> {
        lookup.ids(self.found.iter().map(|found| found.batch).collect())?;
        let mut found = std::mem::take(&mut self.found);
        found.sort_by(|a, b| {
            (a.partition, a.step, a.rank, a.curve)
                .cmp(&(b.partition, b.step, b.rank, b.curve))
                .then_with(|| a.own.cmp(&b.own))
                .then_with(|| self.bounds(a).cmp(&self.bounds(b)))
                .then_with(|| a.keywords.cmp(&b.keywords))
                .then_with(|| match a.batch == b.batch {
                    true => a.row.cmp(&b.row),
                    false => lookup.id(a.batch, a.row).cmp(&lookup.id(b.batch, b.row)),
                })
        });
        self.found = found;
        Ok(())
    }
}
