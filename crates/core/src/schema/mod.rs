//! Schemas: which keywords a key has, of which types, and how fields are collocated.
//!
//! A schema is FDB's three-level rule language: `[dataset keywords [index keywords [field keywords]]]`
//! with types, optional keywords, defaults and conditions. Archiving takes the first rule that takes
//! the whole key; reading considers every rule.
//!
//! ```
//! use fieldstone_core::schema::Schema;
//! let schema = Schema::parse("step: Integer; [run [variable [step, level?]]]")?;
//! let key = schema.resolve(&[("step", "06"), ("variable", "t"), ("run", "a")])?;
//! assert_eq!(key.to_string(), "{run=a}{variable=t}{step=6}");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```
//!
//! Inside: `types` turns text into canonical values (`number`, `calendar`, `step`, `param`), `range`
//! steps over them, `parser` reads a schema into `rule`s, `resolve` makes keys, `select` reads
//! requests, `language` says what MARS's words mean before types read them, `words` and `param` hold
//! ECMWF's tables, `matcher` compares stored keys, `candidates` lists the keys a request names, `roles`
//! says which run, variable and step a key is of, `extend` and `optional` add rules and
//! optional keywords.

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
pub use describe::{KeywordView, LevelView, RuleView};
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
/// The schemas that come with Fieldstone.
const BUILTINS: [(&str, &str); 3] = [("simulation", SIMULATION), ("mars", MARS), ("mixed", MIXED)];

/// A parsed schema. Cloning shares it.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

pub(crate) struct Inner {
    text: String,
    types: Vec<(Arc<str>, KeywordType)>,
    rules: Vec<Rule>,
    /// How many rules there are up to the end of each part: the schema as it began, and its extensions.
    parts: Vec<usize>,
    /// The schema before its last extension.
    older: Option<Arc<Inner>>,
    /// The different roles of its rules, in their order.
    roles: Vec<Arc<CatalogRoles>>,
    compression: Option<Compression>,
    /// Every name and source of a predicate, with its number.
    ids: HashMap<Arc<str>, usize>,
    /// MARS keywords without a type that are read as words where they are one.
    loose: Vec<(Arc<str>, Vocabulary)>,
    /// Keywords of type Param.
    params: Vec<Arc<str>>,
    /// Names of levels that took further keywords, shared by the keys that have them.
    open_names: Mutex<Vec<Names>>,
}

impl Schema {
    /// Reads a schema. Errors name line and column.
    pub fn parse(text: &str) -> Result<Schema> {
        parser::parse(text, 0).map(|inner| Schema(Arc::new(inner)))
    }

    /// A schema that comes with Fieldstone: "simulation", "mars", or "mixed", which has the rules of both.
    pub fn builtin(name: &str) -> Option<Schema> {
        let (_, text) = BUILTINS.iter().find(|(known, _)| *known == name)?;
        Schema::parse(text).ok()
    }

    /// The text, exactly as it was parsed.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The builtin's name, where the text is a builtin's.
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

    /// A keyword as the schema spells it: `date` for `Date`, and MARS's other names where it reads these; what it does not
    /// know stays as it is given.
    pub fn spelling<'a>(&'a self, keyword: &'a str) -> &'a str {
        self.0.keyword(keyword)
    }

    /// The type of a keyword at its deepest use; `None` for a keyword that no rule and no
    /// declaration knows.
    pub fn type_of(&self, keyword: &str) -> Option<KeywordType> {
        let used = self.0.rules.iter().find_map(|rule| {
            rule.levels.iter().rev().flat_map(|l| &l.predicates).find(|p| &*p.name == keyword).map(|p| p.kind)
        });
        used.or_else(|| self.0.types.iter().rev().find(|(name, _)| &**name == keyword).map(|(_, t)| *t))
    }

    /// How the schema wants blocks to be compressed (`compression = zstd:3;`), where a call or the
    /// handle does not say.
    pub fn compression(&self) -> Option<Compression> {
        self.0.compression
    }

    /// The key that `pairs` name, for archiving: by the first rule that takes all of them.
    pub fn resolve(&self, pairs: &[(&str, &str)]) -> Result<FieldKey> {
        self.0.resolve(pairs)
    }

    /// Refuses a keyword of no rule that is one letter away from one which the key lacks: what people write is checked
    /// for slips before a rule with further keywords takes it. One that `is_used` already is none.
    pub fn check_slips(&self, pairs: &[(&str, &str)], is_used: impl Fn(&str) -> Result<bool>) -> Result<()> {
        slips::check_slips(&self.0, pairs, is_used)
    }

    /// What a request selects, for reading: all rules are considered. Days relative to today are
    /// refused; see [`Schema::select_at`].
    pub fn select(&self, request: &Request) -> Result<Selection> {
        self.selection(request, None)
    }

    /// As [`Schema::select`], with today's date (UTC) for relative ones: `now` is nanoseconds since
    /// 1970-01-01, as a [`Clock`](crate::env::Clock) gives it.
    pub fn select_at(&self, request: &Request, now: i64) -> Result<Selection> {
        self.selection(request, Some(now))
    }

    fn selection(&self, request: &Request, now: Option<i64>) -> Result<Selection> {
        let own = Selection::new(self.clone(), &self.0.plain(request, now)?)?;
        request.bounds().iter().try_fold(own, |own, bound| Ok(own.within(self.selection(bound, now)?)))
    }
}

impl Inner {
    /// The type of a further keyword of a rule's open level.
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
