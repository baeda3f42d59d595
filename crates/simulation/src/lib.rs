//! A simulation of the whole store from a seed: processes of several hosts and users write fields, attributes and
//! relations, in transactions and attempts, while processes die, stop and fail, clocks jump and the power fails. After
//! each step a reader's look is compared with a plain model (T-6).
//!
//! * [`plan`]: a seed's steps, as plain data; [`run`]: makes them; [`shrink`]: removes those without which a run fails
//!   all the same;
//! * [`simulation`]: world, processes and the meaning of outcomes; [`actors`]: a module for each kind of actor;
//!   [`call`], [`process`]: calls as data, made in any thread; [`look`]: a reader's look;
//! * [`model`]: what must be seen.
//!
//! Invariants:
//! * a plan gives the same run each time, in every process;
//! * each part of a plan is a plan.
//!
//! ```
//! use fieldstone_simulation::{plan::StepPlan, run::run};
//! assert!(run(&StepPlan::of(1, 5)).is_ok());
//! ```

pub mod actors;
pub mod call;
pub mod look;
pub mod model;
pub mod plan;
pub mod process;
pub mod run;
pub mod shrink;
pub mod simulation;
