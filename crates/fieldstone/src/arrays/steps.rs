//! Which steps of a run are there.

use std::collections::BTreeSet;

use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::RunName;
use fieldstone_store::api::ListOptions;

use crate::Store;

/// Steps at which all of these variables of a run have whole fields.
pub fn common_steps(
    store: &Store,
    run: &RunName,
    variables: &[String],
    transaction: Option<Id>,
) -> Result<BTreeSet<i64>> {
    let mut common: Option<BTreeSet<i64>> = None;
    let catalog = store.catalog();
    for variable in variables {
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
        let mut steps = BTreeSet::new();
        for entry in store.list(&request, &options)? {
            let entry = entry?;
            let step = entry.key.get(keyword).and_then(|value| value.to_string().parse::<i64>().ok());
            steps.extend(step.filter(|_| entry.complete));
        }
        common = Some(match common {
            Some(known) => known.intersection(&steps).copied().collect(),
            None => steps,
        });
    }
    Ok(common.unwrap_or_default())
}
