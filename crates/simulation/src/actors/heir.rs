//! Heirs: the store's owner hands over what Bob owns, and gives it back.

use fieldstone::prelude::*;
use fieldstone::{ErrorKind, Mode, Session, Store};

use crate::call::Call;
use crate::model::change::{Change, Key, What};
use crate::process::{BOB, PLACES, text};
use crate::simulation::{Checked, Simulation, open};

/// A user without a process.
const HEIR: u32 = 503;

/// Hands over to a user who writes nothing, and back, so that all that there is stays as it was. Between the two Bob may not
/// write into what was his. A flush of his that is under way might count or not, so that none is.
pub fn hand_over(simulation: &mut Simulation) -> Checked {
    let bob = PLACES.iter().position(|(_, user)| *user == BOB).unwrap_or(0);
    let process = &simulation.processes[bob];
    let is_busy = process.stopped.is_some() || process.is_shaky || !process.pending.is_empty();
    if is_busy || !simulation.model.is_certain() {
        return Ok(());
    }
    // A run without fields is nobody's dataset yet: he may begin it.
    if !simulation.model.state().fields.keys().any(|key| key.run == "b") {
        return Ok(());
    }
    simulation.settle();
    simulation.opened += 1;
    simulation.note(|| format!("the owner hands over what {BOB} has to {HEIR}, and back"));
    let env = simulation.world.process(PLACES[0].0);
    let admin = open(&env, Mode::Append, "", None).map_err(|error| text(&error).to_string())?;
    hand(&admin, BOB, HEIR)?;
    simulation.settle();
    trespass(simulation, bob)?;
    hand(&admin, HEIR, BOB)?;
    admin.close().map_err(|error| text(&error).to_string())
}

fn hand(admin: &Store, from: u32, to: u32) -> Checked {
    let report = admin.hand_over(&from.to_string(), &to.to_string());
    report.map(drop).map_err(|error| format!("{from} cannot be handed over to {to}: {}", text(&error)))
}

/// Bob writes into his run, which he may not.
fn trespass(simulation: &mut Simulation, bob: usize) -> Checked {
    if simulation.processes[bob].idle().is_none() {
        return Ok(());
    }
    let key = Key { run: "b".into(), variable: "t".into(), step: 0 };
    let calls = [Call::Take(Change::Field(key, What::Whole(1)), false), Call::Flush];
    let outcome = simulation.call(bob, &calls, None);
    if let Some(store) = simulation.processes[bob].idle() {
        drop(store.discard(Session::default()));
    }
    match outcome {
        Err((_, error)) if error.kind() == ErrorKind::Denied => Ok(()),
        Err((_, error)) if simulation.has_lost_log(&error) => {
            (simulation.processes[bob].is_shaky, simulation.is_troubled) = (true, true);
            Ok(())
        }
        Err((_, error)) => Err(format!("{bob}: not Denied, but {}", text(&error))),
        Ok(()) => Err(format!("{bob} may write into what was handed over")),
    }
}
