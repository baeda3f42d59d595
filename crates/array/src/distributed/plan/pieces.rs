//! Arrays as boxes, for a caller that keeps boxes instead of a file: the logs of a store.
//!
//! If each rank holds a box and no element comes twice, each rank passes its own, without an exchange. Else elements
//! go to the aggregators of contiguous ranges, as for a file, and the aggregators cut them into boxes.
//!
//! Invariants: the boxes of all ranks do not overlap; without a fill, they contain no unwritten elements; a box has
//! at most [`Settings::buffer`](super::Settings::buffer) bytes, or one index of the first dimension if that is more.

use std::fmt;
use std::sync::Arc;

use fieldstone_core::env::comm::{CommWriter, Step, Team};
use fieldstone_core::geometry::{IndexBox, flat_boxes};
use fieldstone_core::{Error, Result};

use super::exchange;
use super::{Footprint, Method, MoveReport, Planner, Write, WriteCall};

/// Receives the boxes of this rank, with their bytes in C order of the box.
pub trait PieceSink: Send + Sync + fmt::Debug {
    /// Receives one box.
    fn piece(&self, part: &IndexBox, bytes: &[u8]) -> Result<()>;
}

impl Planner {
    /// Collective: passes the boxes of an array of `shape` that this rank is to keep to `sink`. A rank that failed
    /// before passes its error. Method `view` is not available here.
    ///
    /// Errors: as for [`write`](Planner::write), and those of the sink.
    pub fn write_pieces(
        &self,
        team: &Team,
        step: impl Into<Step>,
        (shape, sink): (&[u64], &Arc<dyn PieceSink>),
        local: Result<Write<'_>>,
    ) -> Result<MoveReport> {
        let step = step.into();
        let before = team.counters().sent;
        let WriteCall { write, plan, coverage, mut report } = self.begin_write(team, step, local)?;
        let own = plan.footprint.bounds();
        let boxes = team.max(step, Ok(vec![u64::from(own.is_none())]))?.first() == Some(&0);
        let filled = report.holes > 0 && write.fill.is_some();
        let exchanges = match (boxes, coverage.repeated) {
            (_, 1..) => {
                Some("ranks write elements more than once, and only the aggregators can compare them")
            }
            (false, 0) => Some("not every rank holds a box"),
            (true, 0) if filled => Some("aggregators fill the elements that no rank writes"),
            (true, 0) if write.settings.method == Method::Exchange => Some("the caller chose it"),
            (true, 0) => None,
        };
        (report.method, report.why) = match exchanges {
            Some(why) => (Method::Exchange, why.to_owned()),
            None => (Method::Direct, "every rank holds a box, which becomes a piece of the field".to_owned()),
        };
        report.written = match own {
            Some(bounds) if report.method == Method::Direct => {
                let given = give(&plan.footprint, bounds, &write, (shape, sink));
                team.agree(step, given)?
            }
            _ => {
                let size = write.array.size;
                let ranges = RangePieces { shape: shape.to_vec(), size, sink: sink.clone() };
                let to = team.pseudo_file::<dyn CommWriter>(Arc::new(ranges));
                let (routes, how) = (plan.routes(team, step)?, (&write, report.holes, None));
                self.memory.lend(|buffers| exchange::write(&plan, routes, &to, step, how, buffers))?
            }
        };
        report.exchanged = team.counters().sent - before;
        Ok(report)
    }
}

/// Passes a rank's own box on, some indices of the first dimension at a time.
fn give(
    footprint: &Footprint,
    (start, count): (&[u64], &[u64]),
    write: &Write<'_>,
    (shape, sink): (&[u64], &Arc<dyn PieceSink>),
) -> Result<u64> {
    if footprint.elements() == 0 {
        return Ok(0);
    }
    let size = write.from.element().size() as u64;
    let rows = count.first().copied().unwrap_or(1);
    let row = footprint.elements() / rows * size;
    let most = (write.settings.buffer as u64 / row).clamp(1, rows);
    let mut bytes = vec![0; (most * row) as usize];
    let (mut done, mut filled) = (0, 0);
    let hand_on = |bytes: &[u8], done: u64| {
        let (mut start, mut count) = (start.to_vec(), count.to_vec());
        if let (Some(start), Some(count)) = (start.first_mut(), count.first_mut()) {
            (*start, *count) = (*start + done, bytes.len() as u64 / row);
        }
        sink.piece(&IndexBox::new(start, count, shape)?, bytes)
    };
    // Runs of a box come in its C order.
    for run in footprint.runs() {
        let (mut at, mut left) = (run.memory, run.elements);
        while left > 0 {
            let room = (bytes.len() - filled) as u64 / size;
            let take = left.min(room);
            let len = (take * size) as usize;
            write.from.copy(at as usize, &mut bytes[filled..filled + len]);
            (at, left, filled) = (at + take, left - take, filled + len);
            if filled == bytes.len() {
                hand_on(&bytes, done)?;
                (done, filled) = (done + bytes.len() as u64 / row, 0);
                bytes.truncate(((rows - done).min(most) * row) as usize);
            }
        }
    }
    Ok(footprint.elements() * size)
}

/// Ranges of an array's bytes that become boxes of it.
#[derive(Debug)]
struct RangePieces {
    shape: Vec<u64>,
    /// Size of an element in bytes.
    size: u64,
    sink: Arc<dyn PieceSink>,
}

impl CommWriter for RangePieces {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let first = offset / self.size;
        let mut done = 0;
        for part in flat_boxes(&self.shape, first, first + data.len() as u64 / self.size)? {
            let len = (part.element_count()? * self.size) as usize;
            let lacks = || Error::internal("a range of an array ends inside an element");
            let bytes = data.get(done..done + len).ok_or_else(lacks)?;
            self.sink.piece(&part, bytes)?;
            done += len;
        }
        Ok(())
    }
}
