//! A row of attr while it is read: its box and value are decoded only if a term needs them.

use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;

use super::Cells;
use super::bounds;
use super::cond::Row;
use super::lookup::Lookup;
use super::partition::{CellCondition, Partition};
use super::place::RowRegion;
use crate::engine::{AttrRow, Flow, Probe, VariableId, stored};

/// Decides rows one at a time.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) cell: Option<(i64, VariableId, Rc<CellCondition>)>,
    pub(super) start: Vec<i64>,
    pub(super) count: Vec<i64>,
    pub(super) cells: Option<Cells>,
    /// Whether start, count and cells belong to the present row.
    pub(super) decoded: bool,
    pub(super) value: Option<Value>,
}

impl Reader {
    /// Decodes a box into start, count and cells.
    pub(super) fn decode(&mut self, region: &[u8]) -> Result<()> {
        self.start.clear();
        self.count.clear();
        for dim in stored::region_dims(region) {
            let (start, count) = dim?;
            self.start.push(start);
            self.count.push(count);
        }
        self.cells = stored::region_cells(region)?;
        self.decoded = true;
        Ok(())
    }

    /// Adds the box of the last matching row to `boxes`, start and count; returns its number of dimensions,
    /// and the row's own cells. A row without a box has that of its whole variable.
    pub(super) fn take_box(
        &mut self,
        row: &AttrRow<'_>,
        cell: &CellCondition,
        boxes: &mut Vec<i64>,
    ) -> Result<(usize, Option<Cells>)> {
        if stored::region_rank(row.region) > 0 {
            if !self.decoded {
                self.decode(row.region)?;
            }
            boxes.extend_from_slice(&self.start);
            boxes.extend_from_slice(&self.count);
            self.decoded = false;
            return Ok((self.start.len(), self.cells.take()));
        }
        let Some((start, count)) = &cell.whole else { return Ok((0, None)) };
        boxes.extend_from_slice(start);
        boxes.extend_from_slice(count);
        Ok((start.len(), None))
    }

    /// The cell of a matching row, and whether the match depends on a related attribute.
    pub(super) fn matches(
        &mut self,
        partition: &Partition,
        row: &AttrRow<'_>,
    ) -> Result<Option<(Rc<CellCondition>, bool)>> {
        if !bounds::within(&partition.steps, row.step) {
            return Ok(None);
        }
        let cell = match &self.cell {
            Some((step, variable, cell)) if *step == row.step && *variable == row.variable => cell.clone(),
            _ => {
                let cell = partition.cell(row.step, row.variable)?;
                self.cell = Some((row.step, row.variable, cell.clone()));
                cell
            }
        };
        self.decoded = false;
        self.value = None;
        let mut cell_of_row = CellOfRow { reader: self, row, cell: &cell };
        Ok(match cell.cond.test(&mut cell_of_row)? {
            Some(false) => None,
            Some(true) => Some((cell, false)),
            None => Some((cell, true)),
        })
    }
}

/// A row whose box and value are decoded on demand.
struct CellOfRow<'a, 'r> {
    reader: &'a mut Reader,
    row: &'a AttrRow<'r>,
    cell: &'a CellCondition,
}

impl Row for CellOfRow<'_, '_> {
    fn bounds(&mut self) -> Result<Option<RowRegion<'_>>> {
        if stored::region_rank(self.row.region) == 0 {
            let whole = self.cell.whole.as_ref();
            return Ok(whole.map(|(start, count)| RowRegion { start, count, cells: None }));
        }
        if !self.reader.decoded {
            self.reader.decode(self.row.region)?;
        }
        let Reader { start, count, cells, .. } = &*self.reader;
        let cells = cells.as_ref().map(|(dim, cells)| (*dim, &**cells));
        Ok(Some(RowRegion { start, count, cells }))
    }

    fn keyword(&mut self, name: &str) -> Result<Option<Arc<str>>> {
        let keywords = stored::region_keywords(self.row.region)?;
        Ok(keywords.and_then(|all| all.iter().find(|(known, _)| **known == *name).map(|(_, v)| v.clone())))
    }

    fn batch(&self) -> Option<i64> {
        Some(self.row.batch)
    }

    fn value(&mut self) -> Result<&Value> {
        let value = match self.reader.value.take() {
            Some(value) => value,
            None => self.row.value()?,
        };
        Ok(self.reader.value.insert(value))
    }

    fn related(&self, _: usize) -> Option<bool> {
        None
    }
}

/// Whether some row of these probes matches; stops at the first one.
pub(super) fn any(lookup: &mut Lookup<'_>, partition: &Partition, probes: &[Probe]) -> Result<bool> {
    let (mut reader, mut hit) = (Reader::default(), false);
    lookup.stats.visited += lookup.tables.scan(probes, &mut |row| {
        hit = reader.matches(partition, row)?.is_some();
        Ok(if hit { Flow::Stop } else { Flow::More })
    })?;
    lookup.stats.probes += probes.len() as u64;
    Ok(hit)
}

/// Step and variable of every matching row of these probes.
pub(super) fn each(
    lookup: &mut Lookup<'_>,
    partition: &Partition,
    probes: &[Probe],
    take: &mut dyn FnMut(i64, VariableId) -> Flow,
) -> Result<()> {
    let mut reader = Reader::default();
    lookup.stats.visited += lookup.tables.scan(probes, &mut |row| {
        Ok(match reader.matches(partition, row)? {
            Some(_) => take(row.step, row.variable),
            None => Flow::More,
        })
    })?;
    lookup.stats.probes += probes.len() as u64;
    Ok(())
}

/// The number of matching rows of these probes.
pub(super) fn count(lookup: &mut Lookup<'_>, partition: &Partition, probes: &[Probe]) -> Result<u64> {
    let (mut reader, mut hits) = (Reader::default(), 0);
    lookup.stats.visited += lookup.tables.scan(probes, &mut |row| {
        hits += u64::from(reader.matches(partition, row)?.is_some());
        Ok(Flow::More)
    })?;
    lookup.stats.probes += probes.len() as u64;
    Ok(hits)
}
