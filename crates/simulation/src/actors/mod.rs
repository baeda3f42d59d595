//! The actors: each draws its action from the seed of a step, makes it, and lets the model know.
//!
//! * `writer`: fields, attributes and relations of one flush; removals; datasets of others;
//! * `transaction`: beginning and deciding; `annotator`: deletions of attributes; `relations`: deletions of relations;
//! * `together`: several processes at once; `trouble`: opening, ends, stops, faults, clocks, power;
//! * `maintainer`: ends of logs whose processes are gone, or seem so; takeovers;
//! * `wiper`: wipes and hides; `eraser`: erasures; `heir`: hand-overs; `administrator`: backups;
//! * `owner`: locks, overlays, rules of retention; `mover`: moves, and other stores that name fields;
//! * `reader`: looks that the model must explain, versions that are kept, and the checks at the end.
//!
//! An actor that cannot act, such as a process without a handle, does nothing: so each part of a plan is a plan.

mod administrator;
mod annotator;
mod eraser;
mod heir;
mod maintainer;
mod mover;
mod owner;
pub mod reader;
mod relations;
mod together;
mod transaction;
mod trouble;
mod wiper;
mod writer;

use crate::plan::{Step, Verb};
use crate::simulation::{Checked, Simulation};

pub use self::writer::prepare;

/// Does one step.
pub fn act(simulation: &mut Simulation, step: &Step) -> Checked {
    match step.verb {
        Verb::Open => trouble::open(simulation, step),
        Verb::Close => trouble::close(simulation, step),
        Verb::Die => simulation.die(step.who),
        Verb::Write => writer::write(simulation, step),
        Verb::Remove => writer::remove(simulation, step),
        Verb::Begin => transaction::begin(simulation, step),
        Verb::Decide => transaction::decide(simulation, step),
        Verb::Discard => writer::discard(simulation, step),
        Verb::Erase => annotator::erase(simulation, step),
        Verb::Unrelate => relations::unrelate(simulation, step),
        Verb::Claim => writer::claim(simulation, step),
        Verb::Trespass => writer::trespass(simulation, step),
        Verb::Fault | Verb::Kill | Verb::Stop => trouble::arm(simulation, step),
        Verb::Resume => simulation.resume(step.who),
        Verb::Together => together::write(simulation, step),
        Verb::Power => trouble::power(simulation, step),
        Verb::Clock => trouble::clock(simulation, step),
        Verb::Wait => trouble::wait(simulation, step),
        Verb::Remember => reader::remember(simulation, step),
        Verb::LookBack => reader::look_back(simulation, step),
        Verb::Maintain => maintainer::maintain(simulation, step),
        Verb::Compact => maintainer::compact(simulation, step),
        Verb::Purge => maintainer::purge(simulation, step),
        Verb::Forget => maintainer::forget(simulation, step),
        Verb::Wipe => wiper::wipe(simulation, step),
        Verb::Expunge => eraser::expunge(simulation, step),
        Verb::Lock => owner::lock(simulation, step),
        Verb::Overlay => owner::overlay(simulation, step),
        Verb::Retain => owner::retain(simulation, step),
        Verb::Move => mover::move_away(simulation, step),
        Verb::Point => mover::point(simulation, step),
        Verb::Nap => maintainer::nap(simulation, step),
    }
}
