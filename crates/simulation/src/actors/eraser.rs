//! Erasers: a process makes unreadable what nothing shows any more in a run of its user's.

use std::collections::BTreeSet;

use fieldstone::{EraseOptions, Mode, Request};

use super::trouble;
use crate::plan::{PROCESSES, Step};
use crate::process::{PLACES, run_of, text};
use crate::simulation::{Checked, Simulation, open};

/// Erases what is hidden, at a moment at which that is certain. Mostly, the user's processes close before: no log that others
/// write holds any of it then. No version may show it after that, and what is visible stays.
pub fn expunge(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let (host, user) = PLACES[who];
    if random.below(3) > 0 {
        for other in (0..PROCESSES).filter(|other| PLACES[*other].1 == user) {
            trouble::close(simulation, &Step { who: other, ..*step })?;
        }
    }
    simulation.settle();
    let run = run_of(user, &mut random).to_owned();
    let request = Request::parse(&format!("run={run}")).map_err(|error| error.to_string())?;
    let shown = simulation.model.is_certain().then(|| simulation.model.state().shown_fields());
    (simulation.purges, simulation.compactions) = (simulation.purges + 1, simulation.compactions + 1);
    simulation.opened += 1;
    let env = simulation.world.process(host);
    let outcome = open(&env, Mode::Append, "", None).and_then(|store| {
        let report = store.erase(&[request], &EraseOptions { doit: true });
        store.close().and(report)
    });
    simulation.note(|| format!("a process of {host} erases what run {run} hides: {outcome:?}"));
    let report = match outcome {
        Ok(report) => report,
        Err(error) if simulation.has_links => return Err(format!("erasure on {host}: {}", text(&error))),
        Err(_) => return Ok(()),
    };
    simulation.kept.iter_mut().for_each(|kept| kept.lacks_attributes |= report.attributes > 0);
    // Hidden fields are not shown, and stay.
    let is_sure = report.left.is_empty() && simulation.hides == 0;
    let Some(shown) = shown.filter(|_| is_sure) else { return Ok(()) };
    for kept in &mut simulation.kept {
        // Opaque fields have one version each; an array may share pieces with the one that hides it.
        let of_run = format!("{{run={run}}}{{variable=o}}");
        let hidden = kept
            .look
            .fields
            .iter()
            .filter(|(key, was)| key.starts_with(&of_run) && shown.get(*key) != Some(*was));
        let hidden: BTreeSet<String> = hidden.map(|(key, _)| key.clone()).collect();
        kept.erased.extend(hidden);
    }
    Ok(())
}
