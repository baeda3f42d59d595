//! Steps of a run: those that exist, and those that are complete.
//!
//! A step is complete for some variables when each has a field at it, all these fields are complete, and no two come
//! from different attempts of a job: fields of a dead attempt and of the new one do not form a step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::RunName;
use fieldstone_store::api::{FieldAccess, ListEntry, ListOptions};

use crate::Session;
use crate::Store;

/// The fields of one step, for the variables seen so far.
#[derive(Debug, Default)]
struct StepState {
    variables: usize,
    incomplete: bool,
    attempts: BTreeSet<Arc<str>>,
}

/// Steps that are complete for all of these variables of a run.
pub fn common_steps(
    store: &Store,
    run: &RunName,
    variables: &[String],
    session: &Session,
) -> Result<BTreeSet<i64>> {
    let mut steps: BTreeMap<i64, StepState> = BTreeMap::new();
    for (seen, variable) in variables.iter().enumerate() {
        for entry in entries(store, run, variable, session)? {
            let (step, entry) = entry?;
            let state = steps.entry(step).or_default();
            // A variable may have several fields at a step, such as those of an ensemble.
            state.variables += usize::from(state.variables == seen);
            state.incomplete |= !entry.complete;
            state.attempts.extend(entry.attempt);
        }
    }
    let whole = |state: &StepState| {
        state.variables == variables.len() && !state.incomplete && state.attempts.len() <= 1
    };
    Ok(steps.into_iter().filter(|(_, state)| whole(state)).map(|(step, _)| step).collect())
}

/// The fields of a variable of a run, each with its step.
pub fn entries(
    store: &Store,
    run: &RunName,
    variable: &str,
    session: &Session,
) -> Result<impl Iterator<Item = Result<(i64, ListEntry)>>> {
    let catalog = store.catalog();
    let with = catalog.key_of(run, Some(variable), Some(0))?;
    let without: BTreeSet<String> =
        catalog.key_of(run, Some(variable), None)?.into_iter().map(|(keyword, _)| keyword).collect();
    let Some((keyword, _)) = with.iter().find(|(keyword, _)| !without.contains(keyword)) else {
        return Err(Error::internal("the schema has no keyword for steps"));
    };
    let pairs = with.iter().filter(|(other, _)| other != keyword);
    let pairs: Vec<(&str, &str)> = pairs.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let request: Request = fieldstone_store::api::key_request(&pairs);
    let options = ListOptions { session: session.clone(), ..ListOptions::default() };
    let keyword = keyword.clone();
    Ok(store.list(&request, &options)?.filter_map(move |entry| match entry {
        Ok(entry) => {
            let step = entry.key.get(&keyword).and_then(|value| value.to_string().parse::<i64>().ok());
            step.map(|step| Ok((step, entry)))
        }
        Err(error) => Some(Err(error)),
    }))
}
