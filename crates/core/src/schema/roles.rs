//! Catalog roles: the keywords that play project, run, variable and step, and the name of a key's run.
//!
//! The `catalog` line of a schema assigns the roles. Several keywords of the first level may form a run, since MARS
//! has no keyword for it; the run's name then joins their values by `/`:
//!
//! ```
//! use fieldstone_core::schema::Schema;
//! let schema = Schema::builtin("mars").ok_or(fieldstone_core::Error::internal("no mars"))?;
//! let pairs = [("class", "od"), ("expver", "1"), ("stream", "oper"), ("date", "20240229"), ("time", "12"),
//!     ("type", "fc"), ("levtype", "pl"), ("step", "6"), ("levelist", "500"), ("param", "130")];
//! let key = schema.resolve(&pairs)?;
//! let (project, run) = schema.run_of(&key).unwrap_or_default();
//! assert_eq!((&*project, &*run), ("", "od/0001/oper/20240229/1200"));
//! assert_eq!((schema.variable_of(&key).as_deref(), schema.step_of(&key)), (Some("130"), Some(6)));
//! let back = schema.pairs_of("", &run)?;
//! assert_eq!(back.iter().map(|(keyword, _)| &**keyword).collect::<Vec<_>>(),
//!     ["class", "expver", "stream", "date", "time"]);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```
//!
//! A schema of several sections (F-14; `mixed`: GRIB, and data of runs) gives each rule the roles of its section. A
//! key has the roles of its rule, and a run those of the rule that names it.
//!
//! A name of several keywords uses those that the key's rule names in its first level, in the order of the `catalog`
//! line. An absent keyword leaves its place empty (`od/0001/oper//`). In a value, `%` is written `%25` and `/` is
//! written `%2F`. So a name has one meaning, except if two rules have equally many of these keywords and accept the
//! same values: then the first rule counts. A run of one keyword has its plain value as name; but if an earlier rule
//! would read this name as one of its own (`mixed`, a run named `a/20240101/0000`), `%` and `/` are escaped in it,
//! too.

use std::sync::Arc;

use super::rule::{Presence, Rule};
use super::types::KeywordType;
use super::{Inner, Schema, step_number};
use crate::key::{FieldKey, KeyValue, Level};
use crate::{Code, Error, Result};

/// The roles of a schema without a `catalog` line.
static NO_ROLES: CatalogRoles = CatalogRoles { project: None, run: Vec::new(), step: None, variable: None };

/// The keywords that play project, run, variable and step for the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogRoles {
    /// Keyword of the project.
    pub project: Option<Arc<str>>,
    /// Keywords of the run; empty if the schema names none.
    pub run: Vec<Arc<str>>,
    /// Keyword of the step.
    pub step: Option<Arc<str>>,
    /// Keyword of the variable.
    pub variable: Option<Arc<str>>,
}

impl Schema {
    /// The distinct roles of all sections: the keywords that the schema names as project, run, step and variable
    /// (`catalog run = ...;`).
    pub fn catalog_roles(&self) -> &[Arc<CatalogRoles>] {
        &self.0.roles
    }

    /// The roles of a key: those of its rule.
    pub fn roles_of(&self, key: &FieldKey) -> &CatalogRoles {
        let sets = &self.0.roles;
        if let [one] = &sets[..] {
            return one;
        }
        let names = [0, 1, 2].map(|level| &key.levels[level].names);
        if let Some(rule) = self.0.rules.iter().find(|rule| rule.has_shape(names)) {
            return &rule.roles;
        }
        // The key comes from an earlier schema: find the role by its own keywords.
        let known = |keyword: &Arc<str>| key.get(keyword).is_some();
        let fits =
            |roles: &&Arc<CatalogRoles>| roles.run.iter().any(known) && roles.variable.iter().all(known);
        sets.iter().find(fits).or(sets.first()).map_or(&NO_ROLES, |roles| roles)
    }

    /// The roles of a run with this name: those of the first rule that has such a name. Invalid if no key has such a
    /// run.
    pub fn roles_of_run(&self, project: &str, name: &str) -> Result<&CatalogRoles> {
        RunNames::of(&self.0).named(project, name).map(|(roles, _)| roles)
    }

    /// Project and name of the run to which a key belongs; the project is empty if the key has none. `None` if the
    /// schema or the key has no run.
    pub fn run_of(&self, key: &FieldKey) -> Option<(String, String)> {
        let roles = self.roles_of(key);
        let project = roles.project.as_deref().and_then(|keyword| key.get(keyword));
        let project = project.map(|value| value.text().into_owned()).unwrap_or_default();
        let name = match &roles.run[..] {
            [] => return None,
            [keyword] => {
                let value = key.get(keyword)?.text().into_owned();
                if RunNames::of(&self.0).is_anothers(roles, &project, &value) {
                    escaped(&value)
                } else {
                    value
                }
            }
            keywords => {
                let first = &key.levels[0];
                let place = |keyword: &Arc<str>| first.names.iter().position(|name| name == keyword);
                let values = keywords.iter().filter_map(place).map(|i| &first.values[i]);
                let parts: Vec<String> = values.map(|value| escaped(&value.text())).collect();
                if parts.iter().all(String::is_empty) {
                    return None;
                }
                parts.join("/")
            }
        };
        Some((project, name))
    }

    /// Keywords and values of the keys that belong to a run: the inverse of [`Schema::run_of`]. Invalid if no key has
    /// such a run.
    pub fn pairs_of(&self, project: &str, name: &str) -> Result<Vec<(Arc<str>, String)>> {
        RunNames::of(&self.0).named(project, name).map(|(_, pairs)| pairs)
    }

    /// The first level of keys that contains only the run, which determines the run's owner. It is that of the run's
    /// fields if their rule requires no further keyword in its first level; otherwise, and for a name that no key
    /// has, it is a separate level.
    pub fn run_level(&self, project: &str, name: &str) -> Level {
        let own = |pairs: Vec<(Arc<str>, String)>| {
            let (names, values): (Vec<Arc<str>>, Vec<KeyValue>) =
                pairs.into_iter().map(|(keyword, text)| (keyword, KeyValue::Text(text.into()))).unzip();
            Level { names: names.into(), values }
        };
        let Ok(pairs) = self.pairs_of(project, name) else {
            let pairs = [("project", project), ("run", name)];
            return own(pairs.map(|(keyword, text)| (keyword.into(), text.to_owned())).into());
        };
        // A run that the schema named before an extension keeps its level, and so its owner.
        let named_by = |end: &&usize| RunNames::of(&self.0).names_run(**end, name);
        let end = self.0.parts.iter().find(named_by).copied().unwrap_or(self.0.rules.len());
        let rules = self.0.rules.iter().take(end);
        rules.into_iter().find_map(|rule| level_of(rule, &pairs)).unwrap_or_else(|| own(pairs))
    }

    /// The variable of a key.
    pub fn variable_of<'k>(&self, key: &'k FieldKey) -> Option<std::borrow::Cow<'k, str>> {
        Some(key.get(self.roles_of(key).variable.as_deref()?)?.text())
    }

    /// The date keyword of a run, if these pairs lack it and may lack it: without it, the fields of two days would be
    /// one. `None` if the pairs have it, or have it as text.
    pub fn undated(&self, pairs: &[(&str, &str)]) -> Option<Arc<str>> {
        let given = |name: &str| pairs.iter().any(|(keyword, _)| self.0.keyword(keyword) == name);
        for roles in &self.0.roles {
            let is_date = |keyword: &&Arc<str>| self.type_of(keyword) == Some(KeywordType::Date);
            let Some(date) = roles.run.iter().find(is_date) else { continue };
            let is_named = roles.run.iter().any(|keyword| given(keyword));
            if !is_named || given(date) || given(&format!("{date}_text")) {
                continue;
            }
            let first = self.resolve(pairs).ok()?.levels[0].clone();
            let place = first.names.iter().position(|name| name == date);
            return place.filter(|place| first.values[*place].is_absent()).map(|_| date.clone());
        }
        None
    }

    /// The number of the step of a key ([`step_number`]): in hours, or a number that represents `0-24` or `30m`.
    pub fn step_of(&self, key: &FieldKey) -> Option<i64> {
        match key.get(self.roles_of(key).step.as_deref()?)? {
            // In a schema with other steps, `30m` names something else.
            KeyValue::Span { text, .. } => step_number::of(text),
            value => step_number::of(&value.text()).and_then(step_number::whole),
        }
    }
}

/// Keywords with their values.
type NamePairs = Vec<(Arc<str>, String)>;

/// The names of runs that a schema's rules make, in their order.
#[derive(Clone, Copy)]
struct RunNames<'a> {
    rules: &'a [Rule],
    /// The different roles of the rules, in their order.
    roles: &'a [Arc<CatalogRoles>],
}

impl<'a> RunNames<'a> {
    fn of(schema: &'a Inner) -> RunNames<'a> {
        RunNames { rules: &schema.rules, roles: &schema.roles }
    }

    /// The roles and the pairs of a run's name.
    fn named(&self, project: &str, name: &str) -> Result<(&'a CatalogRoles, NamePairs)> {
        let has_project = |roles: &&Arc<CatalogRoles>| project.is_empty() || roles.project.is_some();
        let sets = || self.roles.iter().filter(|roles| !roles.run.is_empty());
        if sets().next().is_none() {
            return Err(Code::SchemaRole
                .error("the schema does not define which keyword is the run")
                .with_hint("add `catalog run = KEYWORD;` to the schema of a new store"));
        }
        if !sets().any(|roles| has_project(&roles)) {
            return Err(Code::SchemaRole
                .error(format!("the schema has no projects, but '{project}' is given"))
                .with_hint("leave the project out, or add `catalog project = KEYWORD;` to the schema"));
        }
        for roles in sets().filter(has_project) {
            let mut pairs = Vec::new();
            if let (Some(keyword), false) = (&roles.project, project.is_empty()) {
                pairs.push((keyword.clone(), project.to_owned()));
            }
            match &roles.run[..] {
                [keyword] => {
                    let value = unescaped(name);
                    let meant = escaped(&value) == name && self.is_anothers(roles, project, &value);
                    pairs.push((keyword.clone(), if meant { value } else { name.to_owned() }));
                }
                _ => match self.several(roles, name) {
                    Some(own) => pairs.extend(own),
                    None => continue,
                },
            }
            return Ok((roles, pairs));
        }
        Err(self.no_run(name))
    }

    /// The pairs of a run that several keywords name.
    fn several(&self, roles: &CatalogRoles, name: &str) -> Option<Vec<(Arc<str>, String)>> {
        let parts: Vec<String> = name.split('/').map(unescaped).collect();
        // A name that `run_of` does not give is not a second name of the same run.
        if name.split('/').zip(&parts).any(|(given, part)| escaped(part) != given) {
            return None;
        }
        let mut rules = self.rules.iter().filter(|rule| *rule.roles == *roles);
        rules.find_map(|rule| run_pairs(rule, &roles.run, &parts))
    }

    /// Whether the single value of a run, used as a name, would be the name of an earlier rule's run, or looks like
    /// an escaped value; such values are escaped, so that the two stay apart.
    fn is_anothers(&self, own: &CatalogRoles, project: &str, value: &str) -> bool {
        if self.roles.len() < 2 {
            return false;
        }
        let earlier = || self.roles.iter().take_while(|roles| ***roles != *own);
        let mut value = value.to_owned();
        loop {
            let reads = |roles: &Arc<CatalogRoles>| {
                roles.run.len() > 1
                    && (project.is_empty() || roles.project.is_some())
                    && self.several(roles, &value).is_some()
            };
            if earlier().any(reads) {
                return true;
            }
            let before = unescaped(&value);
            if before == value || escaped(&before) != value {
                return false;
            }
            value = before;
        }
    }

    /// Whether one of the first `rules` rules has runs with this name.
    fn names_run(&self, rules: usize, name: &str) -> bool {
        let parts: Vec<String> = name.split('/').map(unescaped).collect();
        self.rules.iter().take(rules).any(|rule| match &rule.roles.run[..] {
            [keyword] => rule.open.is_some() || rule.predicates().any(|p| p.name == *keyword),
            keywords => run_pairs(rule, keywords, &parts).is_some(),
        })
    }

    fn no_run(&self, name: &str) -> Error {
        let shapes: Vec<String> = self.rules.iter().map(|rule| run_keywords(rule).join("/")).collect();
        Code::SchemaRole
            .error(format!("'{name}' is not a run of this schema"))
            .with_hint(format!("the name of a run has the form {}", shapes.join(" or ")))
    }
}

fn run_keywords(rule: &Rule) -> Vec<&str> {
    let named = |keyword: &&Arc<str>| rule.levels[0].names.contains(keyword);
    rule.roles.run.iter().filter(named).map(|keyword| &**keyword).collect()
}

/// Keywords and values of a run's name by one rule, if the name fits it.
fn run_pairs(rule: &Rule, keywords: &[Arc<str>], parts: &[String]) -> Option<Vec<(Arc<str>, String)>> {
    let first = &rule.levels[0];
    let named = |keyword: &Arc<str>| first.predicates.iter().find(|p| p.visible() && p.name == *keyword);
    let predicates: Vec<_> = keywords.iter().filter_map(named).collect();
    if predicates.len() != parts.len() {
        return None;
    }
    let mut pairs = Vec::new();
    for (predicate, part) in predicates.into_iter().zip(parts) {
        if part.is_empty() {
            // Only an optional keyword leaves its place empty.
            match &predicate.presence {
                Presence::Optional(value) if value.is_absent() => continue,
                _ => return None,
            }
        }
        let value = predicate.kind.canonical(&predicate.name, part).ok()?;
        let taken = predicate.condition.as_ref().is_none_or(|condition| condition.takes(&value));
        if !taken || value.text() != *part {
            return None;
        }
        pairs.push((predicate.name.clone(), part.clone()));
    }
    (!pairs.is_empty()).then_some(pairs)
}

/// The first level of a rule's keys that have only these pairs.
fn level_of(rule: &Rule, pairs: &[(Arc<str>, String)]) -> Option<Level> {
    let first = &rule.levels[0];
    if pairs.iter().any(|(keyword, _)| !first.names.contains(keyword)) {
        return None;
    }
    let mut values = Vec::with_capacity(first.names.len());
    for predicate in first.predicates.iter().filter(|predicate| predicate.visible()) {
        let given = pairs.iter().find(|(keyword, _)| *keyword == predicate.name);
        let value = predicate.value(given.map(|(_, text)| text.as_str())).ok()?;
        let fits = |condition: &super::rule::Condition| given.is_none() || condition.takes(&value);
        if !predicate.condition.as_ref().is_none_or(fits) {
            return None;
        }
        values.push(value);
    }
    Some(Level { names: first.names.clone(), values })
}

fn escaped(value: &str) -> String {
    value.replace('%', "%25").replace('/', "%2F")
}

fn unescaped(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}
