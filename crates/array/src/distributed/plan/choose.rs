//! Chooses the method for all ranks from the lengths of runs, and gives the reason.
//!
//! The costs were measured on this kind of machine, and only their ratio counts: a call that reads a run costs about
//! as much as moving 2 KiB to another rank and placing them there. Ranks that write to one file take turns at its
//! lock: with four ranks, a call that writes a run costs as much as moving 40 KiB. Flushed data are read and verified
//! in whole blocks: ranks with parts of the same blocks all read these blocks.

use super::{Coverage, Method, MovePlan, Read, Write, exchange};
use crate::distributed::blocks::{BLOCK, PIECES};
use crate::distributed::view::Footprint;

/// Nanoseconds of a system call for one run.
const CALL: f64 = 1500.0;
/// Nanoseconds of a call that writes one run, for each rank that writes to the same file.
const TURN: f64 = 8000.0;
/// Nanoseconds to move a byte to its aggregator: gathered, sent, placed.
const BYTE: f64 = 0.8;
/// Nanoseconds to route one element or run.
const ROUTE: f64 = 4.0;
/// Nanoseconds of a message.
const MESSAGE: f64 = 5000.0;
/// Nanoseconds to read and verify a byte of a block.
const CHECK: f64 = 0.3;
/// Elements of a short run.
const SHORT: u64 = 64;

/// Whether the exchange is cheaper, and the costs of both as text; `beside` has the nanoseconds that direct calls
/// spend on blocks.
fn costs(plan: &MovePlan, ranks: usize, (size, buffer): (u64, usize), beside: Beside) -> (bool, String) {
    let (bytes, runs) = (plan.most.elements as f64 * size as f64, plan.most.runs as f64);
    let total = plan.footprint.total() as f64 * size as f64;
    let rounds = (total / plan.aggregators as f64 / exchange::share(buffer, ranks) as f64).ceil().max(1.0);
    let call = match beside {
        Beside::Writing if ranks > 1 => ranks as f64 * TURN,
        _ => CALL,
    };
    let (calls, blocks) = (runs * call, plan.most.blocks as f64 * (BLOCK * size) as f64);
    let (direct, what) = match beside {
        // With more pieces than checksums are kept for, all ranks read everything back.
        Beside::Writing if plan.most.runs > PIECES * (plan.footprint.total() / BLOCK + 16) => {
            (calls + total / ranks as f64 * CHECK, "calls and in reading back")
        }
        Beside::Reading if blocks * CHECK > calls => (blocks * CHECK, "blocks to verify"),
        _ => (calls, "calls"),
    };
    let share = if ranks == 1 { 0.5 } else { 1.0 };
    let exchange = share * (bytes * BYTE + runs * ROUTE) + rounds * (CALL + (ranks - 1) as f64 * MESSAGE);
    let length = if runs > 0.0 { bytes / runs } else { 0.0 };
    let text = format!(
        "{runs} runs of {length:.0} bytes on the busiest rank cost about {:.2} ms in {what}, an exchange \
         {:.2} ms",
        direct / 1e6,
        exchange / 1e6
    );
    (exchange < direct, text)
}

/// The number of blocks of the array that some runs touch. Short runs are always exchanged, so theirs do not count.
pub(super) fn blocks(footprint: &Footprint, runs: u64) -> u64 {
    if footprint.elements() / SHORT < runs {
        return 0;
    }
    let mut touched = vec![0u64; footprint.total().div_ceil(BLOCK).div_ceil(64) as usize];
    for run in footprint.runs() {
        for block in run.at / BLOCK..=(run.at + run.elements - 1) / BLOCK {
            touched[(block / 64) as usize] |= 1 << (block % 64);
        }
    }
    touched.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The cost of blocks, in addition to the calls.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Writing,
    Reading,
}

pub(super) fn for_writing(
    plan: &MovePlan,
    ranks: usize,
    write: &Write<'_>,
    coverage: Coverage,
) -> (Method, String) {
    let asked = write.settings.method;
    if coverage.repeated > 0 {
        let why = format!(
            "ranks write {} elements more than once, and only the aggregators can compare them",
            coverage.repeated
        );
        return (Method::Exchange, why);
    }
    if asked != Method::Auto {
        return (asked, "the caller chose it".to_owned());
    }
    let sizes = (write.array.size, write.settings.buffer);
    let (exchanges, why) = costs(plan, ranks, sizes, Beside::Writing);
    (if exchanges { Method::Exchange } else { Method::Direct }, why)
}

pub(super) fn for_reading(plan: &MovePlan, ranks: usize, read: &Read<'_, '_>) -> (Method, String) {
    if read.settings.method != Method::Auto {
        return (read.settings.method, "the caller chose it".to_owned());
    }
    let (exchanges, why) = costs(plan, ranks, (read.array.size, read.settings.buffer), Beside::Reading);
    (if exchanges { Method::Exchange } else { Method::Direct }, why)
}
