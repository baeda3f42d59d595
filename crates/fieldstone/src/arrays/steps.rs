//! Which steps of a run are there, and where they stand.

use std::collections::BTreeSet;

use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::RunName;
use fieldstone_store::api::{ListEntry, ListOptions};

use crate::Store;

/// Steps at which all of these variables of a run have whole fields.
pub fn common_steps(
    store: &Store,
    run: &RunName,
    variables: &[String],
    transaction: Option<Id>,
) -> Result<BTreeSet<i64>> {
    let mut common: Option<BTreeSet<i64>> = None;
    for variable in variables {
        let mut steps = BTreeSet::new();
        for entry in entries(store, run, variable, transaction)? {
            let (step, entry) = entry?;
            steps.extend(Some(step).filter(|_| entry.complete));
        }
        common = Some(match common {
            Some(known) => known.intersection(&steps).copied().collect(),
            None => steps,
        });
    }
    Ok(common.unwrap_or_default())
}

/// The fields of a variable of a run, each with its step.
pub fn entries(
    store: &Store,
    run: &RunName,
    variable: &str,
    transaction: Option<Id>,
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
    let options = ListOptions { transaction, ..ListOptions::default() };
    let keyword = keyword.clone();
    Ok(store.list(&request, &options)?.filter_map(move |entry| match entry {
        Ok(entry) => {
            let step = entry.key.get(&keyword).and_then(|value| value.to_string().parse::<i64>().ok());
            step.map(|step| Ok((step, entry)))
        }
        Err(error) => Some(Err(error)),
    }))
}
