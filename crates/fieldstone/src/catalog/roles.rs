//! From keys of fields to runs, steps and variables, and back, by the roles that the schema gives to
//! keywords (`catalog run = …; step = …; variable = …;`).
//!
//! A step is a whole number: a field at `0-24` or `30m` counts for its run and its variable, and stands at
//! no step.

use fieldstone_catalog::engine::Standing;
use fieldstone_core::key::FieldKey;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, VariableName};
use fieldstone_store::api::ListOptions;

use super::delete::request_of;
use super::inner::Inner;

/// Where a field stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The run.
    pub run: RunName,
    /// The variable.
    pub variable: Option<VariableName>,
    /// The step.
    pub step: Option<i64>,
}

impl Inner {
    /// Where the field of a key stands; `None` where its key names no run.
    pub fn place_of(&self, key: &FieldKey) -> Option<Place> {
        let (project, name) = self.schema.run_of(key)?;
        let variable = self.schema.variable_of(key);
        Some(Place {
            run: RunName { project, name },
            variable: variable.map(|name| VariableName { name: name.into_owned(), version: 0 }),
            step: self.schema.step_of(key),
        })
    }

    /// What stands at a place: fields that everybody sees, or that a transaction has prepared. Only with
    /// `array` is it looked for an array.
    pub fn standing(&self, place: &Place, array: bool, transaction: Option<Id>) -> Result<Standing> {
        let mut standing = Standing::default();
        let variable = place.variable.as_ref().map(|variable| variable.name.as_str());
        let pairs = match self.key_of(&place.run, variable, place.step) {
            // No key has such a run, by this schema.
            Err(e) if e.kind() == ErrorKind::Invalid => return Ok(standing),
            pairs => pairs?,
        };
        let options = ListOptions { transaction, ..ListOptions::default() };
        for entry in self.store.list(&request_of(&pairs), &options)? {
            let entry = match entry {
                // What is damaged is passed over here as it is where the logs are followed.
                Err(e) if e.kind() == ErrorKind::Corrupt => break,
                entry => entry?,
            };
            if self.place_of(&entry.key).as_ref() != Some(place) {
                continue;
            }
            standing.held = true;
            if !array {
                break;
            }
            if let (Some(dtype), Some(shape)) = (entry.dtype, &entry.shape) {
                standing.array = Some((dtype, shape.to_vec()));
            }
        }
        Ok(standing)
    }

    /// Keywords and values of what stands under a run, a variable and a step.
    pub fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>> {
        let roles = self.schema.catalog_roles();
        let none = |role: &str| {
            Error::invalid(format!("the store's schema has no keyword for the {role}"))
                .with_hint("a schema names them so: catalog run = expver; step = step; variable = param;")
        };
        let pairs = self.schema.pairs_of(&run.project, &run.name)?;
        let mut pairs: Vec<(String, String)> =
            pairs.into_iter().map(|(keyword, value)| (keyword.to_string(), value)).collect();
        if let Some(variable) = variable {
            let keyword = roles.variable.as_ref().ok_or_else(|| none("variable"))?;
            pairs.push((keyword.to_string(), variable.to_owned()));
        }
        if let Some(step) = step {
            let keyword = roles.step.as_ref().ok_or_else(|| none("step"))?;
            pairs.push((keyword.to_string(), step.to_string()));
        }
        Ok(pairs)
    }
}
