//! Maps keys of fields to runs, steps and variables, and back, by the roles that the schema gives to keywords
//! (`catalog run = …; step = …; variable = …;`, Q-17).
//!
//! A step is a number of hours, or a number that stands for `0-24` or `30m` (`core::schema::step_number`).

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::{Schema, step_number};
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, VariableName};
use fieldstone_format::keys::encode_level;
use fieldstone_journal::follower::FieldLookup;

use crate::engine::Standing;

/// The place of a field in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CatalogLocation {
    /// The run.
    pub run: RunName,
    /// The variable.
    pub variable: Option<VariableName>,
    /// The step.
    pub step: Option<i64>,
}

/// The place of the field with a key; `None` if the key names no run.
pub fn place_of(schema: &Schema, key: &FieldKey) -> Option<CatalogLocation> {
    let (project, name) = schema.run_of(key)?;
    let variable = schema.variable_of(key);
    Some(CatalogLocation {
        run: RunName { project, name },
        variable: variable.map(|name| VariableName { name: name.into_owned(), version: 0 }),
        step: schema.step_of(key),
    })
}

/// Keywords and values of the fields of a run, a variable and a step.
pub fn key_of(
    schema: &Schema,
    run: &RunName,
    variable: Option<&str>,
    step: Option<i64>,
) -> Result<Vec<(String, String)>> {
    let none = |role: &str| {
        Code::SchemaRole
            .error(format!("the store's schema has no keyword for the {role}"))
            .with_hint("a schema names them like this: catalog run = expver; step = step; variable = param;")
    };
    let roles = schema.roles_of_run(&run.project, &run.name)?;
    let pairs = schema.pairs_of(&run.project, &run.name)?;
    let mut pairs: Vec<(String, String)> =
        pairs.into_iter().map(|(keyword, value)| (keyword.to_string(), value)).collect();
    if let Some(variable) = variable {
        let keyword = roles.variable.as_ref().ok_or_else(|| none("variable"))?;
        pairs.push((keyword.to_string(), variable.to_owned()));
    }
    if let Some(step) = step {
        let keyword = roles.step.as_ref().ok_or_else(|| none("step"))?;
        pairs.push((keyword.to_string(), step_number::text(step)));
    }
    Ok(pairs)
}

/// The request for all fields with these values.
pub fn request_of(pairs: &[(String, String)]) -> Request {
    let mut request = Request::new();
    for (keyword, value) in pairs {
        request.set(keyword.as_str(), Values::list([value.as_str()]));
    }
    request
}

/// The encoded level of keys that has the run's owner.
pub fn owner_level(schema: &Schema, run: &RunName) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_level(&schema.run_level(&run.project, &run.name), &mut bytes);
    bytes
}

/// The fields at a place: those that everybody sees, or those that a transaction has prepared. Searches for
/// an array only with `array`.
pub(super) fn standing(
    schema: &Schema,
    fields: &dyn FieldLookup,
    place: &CatalogLocation,
    array: bool,
    transaction: Option<Id>,
) -> Result<Standing> {
    let mut standing = Standing::default();
    let variable = place.variable.as_ref().map(|variable| variable.name.as_str());
    let pairs = match key_of(schema, &place.run, variable, place.step) {
        // By this schema, no key can have such a run.
        Err(e) if e.kind() == ErrorKind::Invalid => return Ok(standing),
        pairs => pairs?,
    };
    fields.fields(&request_of(&pairs), transaction, &mut |field| {
        if place_of(schema, &field.key).as_ref() != Some(place) {
            return Ok(true);
        }
        standing.held = true;
        if let Some(last) = &field.array
            && array
        {
            standing.array = Some(last.clone());
        }
        Ok(array)
    })?;
    Ok(standing)
}
