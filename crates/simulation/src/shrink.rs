//! Shrinking: from a plan that finds an error to one with as few steps as can be found.

use crate::plan::StepPlan;
use crate::run::{Wrong, run};

/// A part of the plan that still finds an error, and that error. Larger parts are left out first.
pub fn shrink(plan: &StepPlan, wrong: Wrong) -> (StepPlan, Wrong) {
    let (mut plan, mut wrong) = (plan.clone(), wrong);
    plan.steps.truncate(wrong.step + 1);
    let mut size = plan.steps.len().div_ceil(2).max(1);
    loop {
        let mut is_smaller = false;
        let mut from = 0;
        while from < plan.steps.len() {
            let mut fewer = plan.clone();
            fewer.steps.drain(from..(from + size).min(plan.steps.len()));
            match run(&fewer) {
                Err(found) => (plan, wrong, is_smaller) = (fewer, found, true),
                Ok(_) => from += size,
            }
        }
        match size {
            1 if !is_smaller => return (plan, wrong),
            1 => {}
            _ => size = size.div_ceil(2),
        }
    }
}
