//! One rule, flattened: three levels of predicates.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::CatalogRoles;
use super::types::KeywordType;
use crate::key::{KeyValue, LEVELS, Names};

/// Whether a key must have the keyword.
#[derive(Debug, Clone)]
pub(crate) enum Presence {
    /// The keyword must be given.
    Required,
    /// It may be left out; the key then has this value.
    Optional(KeyValue),
    /// The caller's value is dropped; the key has this value, or lacks the keyword.
    Hidden(Option<KeyValue>),
}

/// The values that a rule accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub exclude: bool,
    pub values: Vec<KeyValue>,
}

impl Condition {
    pub(crate) fn takes(&self, value: &KeyValue) -> bool {
        self.values.contains(value) != self.exclude
    }
}

/// One keyword of one level.
#[derive(Debug, Clone)]
pub(crate) struct Predicate {
    /// Name in the key.
    pub name: Arc<str>,
    pub name_id: usize,
    /// Keyword whose value is used if `name` itself is not given (`date` for a year).
    pub source: Arc<str>,
    pub source_id: usize,
    pub kind: KeywordType,
    pub presence: Presence,
    pub condition: Option<Condition>,
}

impl Predicate {
    /// Whether keys of this rule show the keyword.
    pub(crate) fn visible(&self) -> bool {
        !matches!(self.presence, Presence::Hidden(None))
    }

    /// Whether the caller's value is dropped.
    pub(crate) fn hidden(&self) -> bool {
        matches!(self.presence, Presence::Hidden(_)) || self.kind == KeywordType::Ignore
    }
}

/// One level of a rule.
#[derive(Debug, Clone)]
pub(crate) struct RuleLevel {
    pub predicates: Vec<Predicate>,
    /// Names of the visible predicates, in order.
    pub names: Names,
    /// Whether further keywords are accepted here.
    pub open: bool,
}

/// One path through the schema's brackets.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// The levels; rules that nest in the same brackets share them.
    pub levels: [Arc<RuleLevel>; LEVELS],
    /// Index of the open level, if any.
    pub open: Option<usize>,
    /// The schema's types in force for its further keywords: those of its section that were declared before it.
    pub types: Range<usize>,
    /// The catalog roles of its keywords.
    pub roles: Arc<CatalogRoles>,
}

impl Rule {
    pub(crate) fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        self.levels.iter().flat_map(|level| &level.predicates)
    }

    /// Whether a key with these names may come from this rule.
    pub(crate) fn has_shape(&self, names: [&Names; LEVELS]) -> bool {
        self.levels.iter().zip(names).all(|(level, names)| {
            let declared = level.names.len();
            names.len() >= declared
                && names[..declared] == level.names[..]
                && (names.len() == declared || (level.open && self.are_extras(&names[declared..])))
        })
    }

    fn are_extras(&self, names: &[Arc<str>]) -> bool {
        let declared: HashSet<&str> = self.predicates().map(|p| &*p.name).collect();
        !names.iter().any(|n| declared.contains(&**n))
    }

    /// The visible predicate at a position in a key of this shape; `None` for a further keyword.
    pub(crate) fn predicate_at(&self, level: usize, place: usize) -> Option<&Predicate> {
        self.levels.get(level)?.predicates.iter().filter(|p| p.visible()).nth(place)
    }
}
