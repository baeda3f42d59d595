//! Compares stored keys with a request.

use std::collections::HashMap;
use std::sync::Arc;

use super::range::ValueRun;
use crate::glob::Glob;
use crate::key::{KeyValue, LEVELS};

/// Lists up to this length are searched without a hash.
const SHORT: usize = 8;

/// The values that a request lists for one position in a key, under one type.
#[derive(Debug, Clone)]
pub struct OneOf {
    values: List,
    min: Option<KeyValue>,
    max: Option<KeyValue>,
}

#[derive(Debug, Clone)]
enum List {
    /// A range; nothing is stored per value.
    ValueRun(ValueRun),
    /// Each value with its position among the request's values.
    Each { values: Vec<(KeyValue, usize)>, index: HashMap<KeyValue, usize> },
}

impl OneOf {
    pub(super) fn run(run: ValueRun) -> OneOf {
        let ends = [run.get(0), run.len().checked_sub(1).and_then(|last| run.get(last))];
        let min = ends.iter().flatten().min().cloned();
        let max = ends.iter().flatten().max().cloned();
        OneOf { values: List::ValueRun(run), min, max }
    }

    /// Makes a list of values with their positions; the first of equal values counts.
    pub(super) fn each(places: impl IntoIterator<Item = (KeyValue, usize)>) -> OneOf {
        let mut values: Vec<(KeyValue, usize)> = Vec::new();
        let mut index = HashMap::new();
        for (value, place) in places {
            if !index.contains_key(&value) {
                index.insert(value.clone(), place);
                values.push((value, place));
            }
        }
        if values.len() <= SHORT {
            index = HashMap::new();
        }
        let min = values.iter().map(|(v, _)| v).min().cloned();
        let max = values.iter().map(|(v, _)| v).max().cloned();
        OneOf { values: List::Each { values, index }, min, max }
    }

    /// The values that `other` lists too.
    pub(super) fn within(&self, other: &OneOf) -> OneOf {
        OneOf::each(self.entries().filter(|(v, _)| other.position(v).is_some()))
    }

    /// Every value with its position among the request's values.
    pub(super) fn entries(&self) -> Box<dyn Iterator<Item = (KeyValue, usize)> + '_> {
        match &self.values {
            List::ValueRun(run) => Box::new(run.iter().zip(0..)),
            List::Each { values, .. } => Box::new(values.iter().cloned()),
        }
    }

    /// The position of a value among the request's values for its keyword.
    pub fn position(&self, value: &KeyValue) -> Option<usize> {
        match &self.values {
            List::ValueRun(run) => usize::try_from(run.position(value)?).ok(),
            List::Each { values, index } if index.is_empty() => {
                values.iter().find(|(v, _)| v == value).map(|(_, place)| *place)
            }
            List::Each { index, .. } => index.get(value).copied(),
        }
    }

    /// The i-th distinct value, in request order.
    pub fn get(&self, i: usize) -> Option<KeyValue> {
        match &self.values {
            List::ValueRun(run) => run.get(u64::try_from(i).ok()?),
            List::Each { values, .. } => values.get(i).map(|(v, _)| v.clone()),
        }
    }

    /// The number of distinct values.
    pub fn len(&self) -> usize {
        match &self.values {
            List::ValueRun(run) => usize::try_from(run.len()).unwrap_or(usize::MAX),
            List::Each { values, .. } => values.len(),
        }
    }

    /// Whether no value can match.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The distinct values, in request order.
    pub fn values(&self) -> impl Iterator<Item = KeyValue> + '_ {
        self.entries().map(|(value, _)| value)
    }

    /// The smallest value in typed order.
    pub fn min(&self) -> Option<&KeyValue> {
        self.min.as_ref()
    }

    /// The greatest value in typed order.
    pub fn max(&self) -> Option<&KeyValue> {
        self.max.as_ref()
    }
}

/// The patterns of a request for one position in a key, and the values listed with them.
#[derive(Debug, Clone)]
pub struct Like {
    texts: Vec<String>,
    globs: Vec<Glob>,
}

impl Like {
    /// Makes a constraint from texts and patterns.
    pub(super) fn new(texts: Vec<String>, patterns: &[&str]) -> Like {
        Like { texts, globs: patterns.iter().map(|pattern| Glob::new(pattern)).collect() }
    }

    /// Whether a value is one of the texts, or a pattern matches it. False for an absent value.
    pub fn takes(&self, value: &KeyValue) -> bool {
        let text = value.text();
        *value != KeyValue::Absent
            && (self.texts.iter().any(|own| **own == *text)
                || self.globs.iter().any(|glob| glob.matches(&text)))
    }
}

/// The demand of a request on one position in a key.
#[derive(Debug, Clone)]
pub enum Constraint {
    /// No demand: any value and an absent one match.
    Any,
    /// Any value, but not an absent one.
    Present,
    /// Only an absent value.
    Absent,
    /// One of these values.
    OneOf(Arc<OneOf>),
    /// One value of each of these lists.
    AllOf(Vec<Arc<OneOf>>),
    /// The same; all of these patterns must match as well.
    Like(Vec<Arc<OneOf>>, Vec<Arc<Like>>),
}

impl Constraint {
    /// Whether a value satisfies the constraint.
    pub fn matches(&self, value: &KeyValue) -> bool {
        match self {
            Constraint::Present => return !value.is_absent(),
            Constraint::Absent => return value.is_absent(),
            _ => {}
        }
        self.lists().iter().all(|list| list.position(value).is_some())
            && self.patterns().iter().all(|like| like.takes(value))
    }

    /// The patterns that a value must all match.
    pub fn patterns(&self) -> &[Arc<Like>] {
        match self {
            Constraint::Like(_, patterns) => patterns,
            _ => &[],
        }
    }

    /// The lists that must all contain a value.
    pub fn lists(&self) -> &[Arc<OneOf>] {
        match self {
            Constraint::Any | Constraint::Present | Constraint::Absent => &[],
            Constraint::OneOf(list) => std::slice::from_ref(list),
            Constraint::AllOf(lists) | Constraint::Like(lists, _) => lists,
        }
    }

    /// The constraint that both give together. The lists stay separate, so a range of a billion values is never
    /// expanded.
    pub(super) fn and(self, other: Constraint) -> Constraint {
        match (self, other) {
            (Constraint::Any, other) => other,
            (own, Constraint::Any) => own,
            (Constraint::Absent, Constraint::Absent) => Constraint::Absent,
            // A value that is present in any way is not absent.
            (Constraint::Absent, _) | (_, Constraint::Absent) => Constraint::OneOf(Arc::new(OneOf::each([]))),
            // A listed value is present: no list has an absent value.
            (Constraint::Present, other) => other,
            (own, Constraint::Present) => own,
            (own, other) => {
                let lists = [own.lists(), other.lists()].concat();
                match [own.patterns(), other.patterns()].concat() {
                    patterns if patterns.is_empty() => Constraint::AllOf(lists),
                    patterns => Constraint::Like(lists, patterns),
                }
            }
        }
    }
}

/// The position of a listed keyword in keys of one shape: level, index, and the values that it may have there.
pub(super) type ListedPlace = (usize, usize, Arc<OneOf>);

/// The constraints of a request on the keys of one shape.
#[derive(Debug, Clone)]
pub struct ShapeMatcher {
    /// Aligned with the names of each level.
    pub constraints: [Vec<Constraint>; LEVELS],
    /// For each listed keyword, the place whose value gives its position; `None` if this shape drops the keyword.
    pub(super) listed: Vec<Option<ListedPlace>>,
}

impl ShapeMatcher {
    /// Adds the constraints of another request on the same shape.
    pub(super) fn narrow(&mut self, other: ShapeMatcher) {
        for (own, other) in self.constraints.iter_mut().flatten().zip(other.constraints.into_iter().flatten())
        {
            *own = std::mem::replace(own, Constraint::Any).and(other);
        }
    }

    /// Whether the values of one level satisfy the request.
    pub fn matches_level(&self, level: usize, values: &[KeyValue]) -> bool {
        self.constraints.get(level).is_some_and(|constraints| {
            constraints.len() == values.len() && constraints.iter().zip(values).all(|(c, v)| c.matches(v))
        })
    }

    /// Writes, for each keyword of [`Selection::listed`](super::Selection::listed), the position of this key's value
    /// among the keyword's values, so that a caller can rank keys in request order. A keyword that this shape drops
    /// has position 0. False (without positions) if the key does not match.
    pub fn listed_positions(&self, values: [&[KeyValue]; LEVELS], positions: &mut Vec<usize>) -> bool {
        positions.clear();
        if !(0..LEVELS).all(|level| self.matches_level(level, values[level])) {
            return false;
        }
        for place in &self.listed {
            let position = match place {
                None => Some(0),
                Some((level, i, list)) => values[*level].get(*i).and_then(|value| list.position(value)),
            };
            let Some(position) = position else {
                positions.clear();
                return false;
            };
            positions.push(position);
        }
        true
    }
}
