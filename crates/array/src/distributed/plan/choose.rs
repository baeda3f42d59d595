//! Which method is taken, and why: from the lengths of runs, for all ranks alike.
//!
//! The costs are measured ones of this kind of machine, and only their ratio counts: a call that writes or reads a
//! run costs about as much as moving 2 KiB to another rank and placing them there.

use super::{Coverage, Method, MovePlan, Read, Write};

/// Nanoseconds of a call of the system for one run.
const CALL: f64 = 1500.0;
/// Nanoseconds to hand a byte to its owner: gathered, sent, placed.
const BYTE: f64 = 0.8;
/// Nanoseconds to route one element or run.
const ROUTE: f64 = 4.0;
/// Nanoseconds of a message.
const MESSAGE: f64 = 5000.0;

/// Whether the exchange is cheaper, and the costs of both in words.
fn costs(plan: &MovePlan, ranks: usize, size: u64, buffer: usize) -> (bool, String) {
    let (bytes, runs) = (plan.most.elements as f64 * size as f64, plan.most.runs as f64);
    let total = plan.footprint.total() as f64 * size as f64;
    let rounds = (total / plan.owners as f64 / (buffer as f64 / 3.0)).ceil().max(1.0);
    let direct = runs * CALL;
    let share = if ranks == 1 { 0.5 } else { 1.0 };
    let exchange = share * (bytes * BYTE + runs * ROUTE) + rounds * (CALL + (ranks - 1) as f64 * MESSAGE);
    let length = if runs > 0.0 { bytes / runs } else { 0.0 };
    let text = format!(
        "{runs} runs of {length:.0} bytes on the rank that has most cost about {:.2} ms in calls, an exchange {:.2} ms",
        direct / 1e6,
        exchange / 1e6
    );
    (exchange < direct, text)
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
            "{} elements are written more than once, which only their owners can compare",
            coverage.repeated
        );
        return (Method::Exchange, why);
    }
    if asked != Method::Auto {
        return (asked, "it was asked for".to_owned());
    }
    let (exchanges, why) = costs(plan, ranks, write.array.size, write.settings.buffer);
    (if exchanges { Method::Exchange } else { Method::Direct }, why)
}

pub(super) fn for_reading(plan: &MovePlan, ranks: usize, read: &Read<'_, '_>) -> (Method, String) {
    if read.settings.method != Method::Auto {
        return (read.settings.method, "it was asked for".to_owned());
    }
    let (exchanges, why) = costs(plan, ranks, read.array.size, read.settings.buffer);
    (if exchanges { Method::Exchange } else { Method::Direct }, why)
}
