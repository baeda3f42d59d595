//! Schemas: they define the keywords of a key, their types, and how fields are collocated.
//!
//! A schema is written in FDB's three-level rule language: `[dataset keywords [index keywords [field keywords]]]`
//! with types, optional keywords, defaults and conditions. Archiving uses the first rule that accepts the whole key;
//! reading considers every rule.
//!
//! ```
//! use fieldstone_core::schema::Schema;
//! let schema = Schema::parse("step: Integer; [run [variable [step, level?]]]")?;
//! let key = schema.resolve(&[("step", "06"), ("variable", "t"), ("run", "a")])?;
//! assert_eq!(key.to_string(), "{run=a}{variable=t}{step=6}");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```
//!
//! Modules: `types` turns text into canonical values (`number`, `calendar`, `step`, `param`), `range` steps over
//! them, `parser` parses a schema into `rule`s, `resolve` makes keys, `select` interprets requests, `language`
//! applies the rules of MARS before types parse values, `words` and `param` hold ECMWF's tables, `matcher` compares
//! stored keys, `candidates` lists the keys that a request names, `roles` finds the run, variable and step of a key,
//! `extend` and `optional` add rules and optional keywords.

pub(crate) mod calendar;
mod candidates;
mod describe;
mod extend;
mod language;
mod matcher;
mod number;
mod optional;
mod param;
mod parser;
mod range;
mod resolve;
mod roles;
mod rule;
mod select;
mod slips;
mod step;
pub mod step_number;
mod types;
mod words;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use candidates::Keys;
pub use describe::{KeywordDescription, LevelDescription, RuleDescription};
pub use matcher::{Constraint, Like, OneOf, ShapeMatcher};
pub use roles::CatalogRoles;
pub use select::Selection;
pub use types::{KeywordType, Typed};
pub use words::Vocabulary;

use crate::Result;
use crate::compression::Compression;
use crate::key::{FieldKey, Names};
use crate::request::Request;
use crate::sync::Mutex;
use rule::Rule;

const SIMULATION: &str = include_str!("../../schemas/simulation.schema");
const MARS: &str = include_str!("../../schemas/mars.schema");
const MIXED: &str = include_str!("../../schemas/mixed.schema");
/// The schemas that Fieldstone provides.
const BUILTINS: [(&str, &str); 3] = [("simulation", SIMULATION), ("mars", MARS), ("mixed", MIXED)];

/// A parsed schema. Clones share it.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

pub(crate) struct Inner {
    text: String,
    types: Vec<(Arc<str>, KeywordType)>,
    rules: Vec<Rule>,
    /// The number of rules up to the end of each part: the original schema, and its extensions.
    parts: Vec<usize>,
    /// The schema before its last extension.
    older: Option<Arc<Inner>>,
    /// The distinct roles of its rules, in their order.
    roles: Vec<Arc<CatalogRoles>>,
    compression: Option<Compression>,
    /// Every name and source of a predicate, with its number.
    ids: HashMap<Arc<str>, usize>,
    /// MARS keywords without a type, whose texts are replaced if they are words of a vocabulary.
    loose: Vec<(Arc<str>, Vocabulary)>,
    /// Keywords of type Param.
    params: Vec<Arc<str>>,
    /// Names of levels that had further keywords; the keys that have them share the names.
    open_names: Mutex<Vec<Names>>,
}

impl Schema {
    /// Parses a schema. Errors name line and column.
    pub fn parse(text: &str) -> Result<Schema> {
        parser::parse(text, 0).map(|inner| Schema(Arc::new(inner)))
    }

    /// A schema that Fieldstone provides: "simulation", "mars", or "mixed", which has the rules of both.
    pub fn builtin(name: &str) -> Option<Schema> {
        let (_, text) = BUILTINS.iter().find(|(known, _)| *known == name)?;
        Schema::parse(text).ok()
    }

    /// The text, exactly as it was parsed.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The builtin's name, if the text is a builtin's.
    pub fn name(&self) -> Option<&str> {
        BUILTINS.iter().find(|(_, text)| *text == self.text()).map(|(name, _)| *name)
    }

    /// All keywords of all rules in the schema's order, each once.
    pub fn keywords(&self) -> Vec<Arc<str>> {
        let mut all: Vec<Arc<str>> = Vec::new();
        for name in self.0.rules.iter().flat_map(|r| &r.levels).flat_map(|l| l.names.iter()) {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        all
    }

    /// A keyword as the schema spells it: `date` for `Date`, and MARS's other names if the schema recognises them; an
    /// unknown keyword stays as given.
    pub fn spelling<'a>(&'a self, keyword: &'a str) -> &'a str {
        self.0.keyword(keyword)
    }

    /// The type of a keyword at its deepest use; `None` if no rule and no declaration has the keyword.
    pub fn type_of(&self, keyword: &str) -> Option<KeywordType> {
        let used = self.0.rules.iter().find_map(|rule| {
            rule.levels.iter().rev().flat_map(|l| &l.predicates).find(|p| &*p.name == keyword).map(|p| p.kind)
        });
        used.or_else(|| self.0.types.iter().rev().find(|(name, _)| &**name == keyword).map(|(_, t)| *t))
    }

    /// The compression that the schema sets for blocks (`compression = zstd:3;`), used if neither the call nor the
    /// handle sets one.
    pub fn compression(&self) -> Option<Compression> {
        self.0.compression
    }

    /// Makes the key that `pairs` name, for archiving, by the first rule that accepts all of them.
    pub fn resolve(&self, pairs: &[(&str, &str)]) -> Result<FieldKey> {
        self.0.resolve(pairs)
    }

    /// Refuses an unknown keyword that is one letter away from a keyword that the key lacks: catches typing errors in
    /// a key written by a person before a rule with further keywords accepts it. Accepts a keyword for which
    /// `is_used` returns true.
    pub fn check_slips(&self, pairs: &[(&str, &str)], is_used: impl Fn(&str) -> Result<bool>) -> Result<()> {
        slips::check_slips(&self.0, pairs, is_used)
    }

    /// Interprets a request, for reading, under all rules. Refuses days relative to today; see [`Schema::select_at`].
    pub fn select(&self, request: &Request) -> Result<Selection> {
        self.selection(request, None)
    }

    /// As [`Schema::select`], with today's date (UTC) for relative days: `now` is nanoseconds since 1970-01-01, as a
    /// [`Clock`](crate::env::Clock) gives it.
    pub fn select_at(&self, request: &Request, now: i64) -> Result<Selection> {
        self.selection(request, Some(now))
    }

    fn selection(&self, request: &Request, now: Option<i64>) -> Result<Selection> {
        let own = Selection::new(self.clone(), &self.0.plain(request, now)?)?;
        request.bounds().iter().try_fold(own, |own, bound| Ok(own.within(self.selection(bound, now)?)))
    }
}

impl Inner {
    /// The type of a further keyword in a rule's open level.
    fn extra_type(&self, rule: &Rule, keyword: &str) -> KeywordType {
        let types = self.types.get(rule.types.clone()).unwrap_or_default();
        types.iter().rev().find(|(name, _)| &**name == keyword).map_or(KeywordType::Text, |(_, t)| *t)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("name", &self.name()).field("text", &self.text()).finish()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.text() == other.text()
    }
}

impl Eq for Schema {}
