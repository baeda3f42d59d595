//! Wipes of the field store: the places of a run that hold no field any more.
//!
//! A wipe may hide the fields of a million places, so that the store is asked once for each run that it may concern, and
//! not for each place.

use std::collections::HashMap;

use fieldstone_core::schema::Schema;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::catalog::RunName;
use fieldstone_format::store_record::Selection;
use fieldstone_journal::follower::FieldLookup;

use super::roles::{self, CatalogLocation};
use crate::engine::{Index, Standing};

/// Places that are looked at in one call.
const PLACES: usize = 4096;

/// Whether a selection may select fields of a run: no keyword of the run has another value.
fn may_concern(selection: &Selection, pairs: &[(String, String)]) -> bool {
    selection.items.iter().all(|item| {
        let own = pairs.iter().find(|(keyword, _)| **keyword == *item.keyword);
        own.is_none_or(|(_, text)| item.values.iter().any(|value| value.text() == text.as_str()))
    })
}

/// Asks the store again what the runs hold that wipes may concern.
pub fn ask_again(
    index: &mut Index,
    schema: &Schema,
    wipes: &[Selection],
    fields: &dyn FieldLookup,
) -> Result<()> {
    let mut after = None;
    while let Some((id, run)) = index.held_fields().next_run(after)? {
        after = Some(id);
        let pairs = match roles::key_of(schema, &run, None, None) {
            Err(e) if e.kind() == ErrorKind::Invalid => continue,
            pairs => pairs?,
        };
        if !wipes.iter().any(|wipe| may_concern(wipe, &pairs)) {
            continue;
        }
        let standing = standing_of(schema, fields, &run, &pairs)?;
        if standing.is_empty() {
            index.held_fields().clear_run(id)?;
            continue;
        }
        let mut last = None;
        loop {
            let places = index.held_fields().of_run(id, last.as_ref(), PLACES)?;
            for held in &places {
                let place = CatalogLocation {
                    run: held.run.clone(),
                    variable: held.variable.clone(),
                    step: held.step,
                };
                match standing.get(&place) {
                    Some(_) if !held.array => {}
                    found => index.set_held(held, &found.cloned().unwrap_or_default())?,
                }
            }
            match places.last() {
                Some(place) => last = Some(place.clone()),
                None => break,
            }
        }
    }
    Ok(())
}

/// The fields that stand at each place of a run.
fn standing_of(
    schema: &Schema,
    fields: &dyn FieldLookup,
    run: &RunName,
    pairs: &[(String, String)],
) -> Result<HashMap<CatalogLocation, Standing>> {
    let mut standing: HashMap<CatalogLocation, Standing> = HashMap::new();
    fields.fields(&roles::request_of(pairs), None, &mut |field| {
        if let Some(place) = roles::place_of(schema, &field.key).filter(|place| place.run == *run) {
            let known = standing.entry(place).or_default();
            known.held = true;
            // The last one by key counts, as elsewhere.
            known.array = field.array.clone().or_else(|| known.array.take());
        }
        Ok(true)
    })?;
    Ok(standing)
}
