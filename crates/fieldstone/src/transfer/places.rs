//! Variables and steps of a run, and for each the further keywords (member, level) of its fields and attributes.
//!
//! Fields have a value of each further keyword, attributes of some: an attribute belongs to the fields with its values.
//!
//! Invariant: memory holds about 50 bytes per field, and each combination of further keywords once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::key::FieldKey;
use fieldstone_core::schema::Schema;
use fieldstone_format::catalog::RunName;

use crate::catalog::Hit;

/// Means no variable.
const NONE: u32 = u32::MAX;

/// Further keywords with their values, by keyword.
pub type Further = Vec<(Arc<str>, Arc<str>)>;

/// Combinations of further keywords at one variable and step, by number.
#[derive(Debug)]
enum Numbers {
    One(u32),
    Many(Vec<u32>),
}

impl Numbers {
    fn as_slice(&self) -> &[u32] {
        match self {
            Numbers::One(number) => std::slice::from_ref(number),
            Numbers::Many(numbers) => numbers,
        }
    }

    fn add(&mut self, number: u32) {
        if self.as_slice().contains(&number) {
            return;
        }
        match self {
            Numbers::One(first) => *self = Numbers::Many(vec![*first, number]),
            Numbers::Many(numbers) => numbers.push(number),
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Places {
    names: HashMap<String, u32>,
    at: HashMap<(u32, Option<i64>), Numbers>,
    combinations: Vec<Further>,
    numbers: HashMap<Further, u32>,
}

impl Places {
    /// Adds a field or attribute at a place.
    pub fn add(&mut self, variable: Option<&str>, step: Option<i64>, further: Further) {
        let name = match variable {
            None => NONE,
            Some(name) => match self.names.get(name) {
                Some(number) => *number,
                None => {
                    let number = self.names.len() as u32;
                    self.names.insert(name.to_owned(), number);
                    number
                }
            },
        };
        let number = match self.numbers.get(&further) {
            Some(number) => *number,
            None => {
                let number = self.combinations.len() as u32;
                self.combinations.push(further.clone());
                self.numbers.insert(further, number);
                number
            }
        };
        match self.at.entry((name, step)) {
            Entry::Occupied(mut there) => there.get_mut().add(number),
            Entry::Vacant(place) => drop(place.insert(Numbers::One(number))),
        }
    }

    fn there(&self, variable: Option<&str>, step: Option<i64>) -> impl Iterator<Item = &Further> {
        let name = variable.map_or(Some(NONE), |name| self.names.get(name).copied());
        let numbers = name.and_then(|name| self.at.get(&(name, step)));
        let numbers = numbers.into_iter().flat_map(Numbers::as_slice);
        numbers.filter_map(|number| self.combinations.get(*number as usize))
    }

    /// Whether something there has these values, and possibly others.
    pub fn has(&self, variable: Option<&str>, step: Option<i64>, values: &[(Arc<str>, Arc<str>)]) -> bool {
        self.there(variable, step).any(|there| values.iter().all(|value| there.contains(value)))
    }

    /// Whether something there has only values from these.
    pub fn has_within(&self, variable: Option<&str>, step: Option<i64>, values: &Further) -> bool {
        self.there(variable, step).any(|there| there.iter().all(|value| values.contains(value)))
    }

    /// Steps of all places.
    pub fn steps(&self) -> BTreeSet<i64> {
        self.at.keys().filter_map(|(_, step)| *step).collect()
    }

    /// Variables, each with the steps of its places.
    pub fn variables(&self) -> impl Iterator<Item = (&str, BTreeSet<Option<i64>>)> {
        self.names.iter().map(|(name, number)| {
            let of = self.at.keys().filter(|(variable, _)| variable == number);
            (name.as_str(), of.map(|(_, step)| *step).collect())
        })
    }
}

/// Further keywords of the field of a key of a run.
pub fn further_of(schema: &Schema, run: &RunName, key: &FieldKey) -> Further {
    let roles = schema.roles_of_run(&run.project, &run.name).ok();
    let is_further = |keyword: &str| {
        roles.is_none_or(|roles| {
            let of_run = roles.run.iter().chain(&roles.project).chain(&roles.variable).chain(&roles.step);
            !of_run.into_iter().any(|role| **role == *keyword)
        })
    };
    let mut further: Further = Vec::new();
    for (keyword, value) in key.iter().filter(|(keyword, value)| !value.is_absent() && is_further(keyword)) {
        // If a keyword is at several levels, the deepest counts.
        further.retain(|(known, _)| **known != **keyword);
        further.push((Arc::from(&**keyword), Arc::from(&*value.text())));
    }
    further.sort();
    further
}

/// Further keywords that an attribute names.
pub fn named_by(hit: &Hit) -> Further {
    let mut named: Further = hit
        .keywords
        .iter()
        .flat_map(|all| all.iter())
        .filter(|(_, value)| !value.is_empty())
        .map(|(keyword, value)| (Arc::from(&**keyword), Arc::from(&**value)))
        .collect();
    named.sort();
    named
}
