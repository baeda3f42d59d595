//! The best interval between checkpoints: Daly's optimum, from the cost of a checkpoint and the machine's failure rate.
//!
//! J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
//! Computer Systems 22(3), 2006. Failures come at random, on average every `mtbf` seconds, also during checkpoints and
//! restarts; work since the last complete checkpoint is repeated.
//!
//! ```
//! // A checkpoint takes 30 s, the machine fails once a day, a restart takes 2 minutes.
//! let interval = fieldstone::checkpoint::interval(30.0, 86_400.0, 120.0)?;
//! assert_eq!(interval.round(), 2257.0);
//! let ratio = fieldstone::checkpoint::overhead(interval, 30.0, 86_400.0, 120.0)?;
//! assert!(ratio < 1.03);
//! # Ok::<(), fieldstone::Error>(())
//! ```

use fieldstone_core::{Code, Result};

fn positive(name: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Code::Option
        .error(format!("{name}={value} is not a valid time"))
        .with_hint("give seconds, more than 0"))
}

fn checked(cost: f64, mtbf: f64, restart: f64) -> Result<()> {
    positive("cost", cost)?;
    positive("mtbf", mtbf)?;
    if restart.is_finite() && restart >= 0.0 {
        return Ok(());
    }
    Err(Code::Option
        .error(format!("restart={restart} is not a valid time"))
        .with_hint("give seconds, 0 or more"))
}

/// Seconds of work between two checkpoints that minimise the time of the whole run: `cost` is the time of a checkpoint,
/// `mtbf` the mean time between failures of everything that the run uses, `restart` the time to continue after a
/// failure. In this model the optimum does not depend on `restart`; [`overhead`] does.
pub fn interval(cost: f64, mtbf: f64, restart: f64) -> Result<f64> {
    checked(cost, mtbf, restart)?;
    if cost >= 2.0 * mtbf {
        return Ok(mtbf);
    }
    let ratio = cost / (2.0 * mtbf);
    Ok((2.0 * cost * mtbf).sqrt() * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - cost)
}

/// Expected time of a run, as a multiple of its work, with a checkpoint after every `interval` seconds of work;
/// infinite if it would not end.
pub fn overhead(interval: f64, cost: f64, mtbf: f64, restart: f64) -> Result<f64> {
    checked(cost, mtbf, restart)?;
    positive("interval", interval)?;
    Ok(mtbf / interval * (restart / mtbf).exp() * ((interval + cost) / mtbf).exp_m1())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn no_other_interval_is_much_better() {
        for cost in [1e-3, 0.1, 1.0, 30.0, 300.0, 3000.0] {
            for mtbf in [600.0, 3600.0, 86_400.0, 1e7] {
                let best = interval(cost, mtbf, 60.0).unwrap();
                let at_best = overhead(best, cost, mtbf, 60.0).unwrap();
                let mut least = f64::INFINITY;
                for i in -400..400 {
                    least =
                        least.min(overhead(best * (f64::from(i) / 100.0).exp(), cost, mtbf, 60.0).unwrap());
                }
                // If a checkpoint takes as long as the machine lives, the estimate is coarser.
                let within = if cost < mtbf / 2.0 { 1.001 } else { 1.2 };
                assert!(at_best <= least * within, "cost {cost}, mtbf {mtbf}: {at_best} > {least}");
            }
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (cost, mtbf, restart) in [
            (0.0, 1.0, 0.0),
            (1.0, -1.0, 0.0),
            (1.0, f64::NAN, 0.0),
            (1.0, 1.0, -1.0),
            (1.0, f64::INFINITY, 0.0),
        ] {
            assert!(interval(cost, mtbf, restart).is_err(), "{cost} {mtbf} {restart}");
            assert!(overhead(1.0, cost, mtbf, restart).is_err());
        }
        assert!(overhead(0.0, 1.0, 1.0, 1.0).is_err());
    }
}
