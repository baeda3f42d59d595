//! Makes keys from keyword and text pairs: canonical values in the schema's order.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Inner;
use super::rule::{Condition, Predicate, Presence, Rule};
use crate::key::{FieldKey, KeyValue, Level, Names};
use crate::nearest::did_you_mean;
use crate::request::MAX_KEYWORDS;
use crate::{Code, Error, Result};

/// Limit on the sets of further keywords whose names are shared; beyond it, each key has its own names.
const MAX_OPEN_NAMES: usize = 256;
const NONE: u16 = u16::MAX;

/// The caller's pairs, indexed by keyword number.
struct Given<'a> {
    pairs: &'a [(&'a str, &'a str)],
    /// The pair of each keyword number.
    slots: Vec<u16>,
    /// Pairs whose keywords no rule knows.
    unknown: Vec<u16>,
}

impl Given<'_> {
    /// The pair that gives a predicate its value.
    fn pair(&self, predicate: &Predicate) -> Option<u16> {
        let own = self.slots[predicate.name_id];
        let found = if own == NONE { self.slots[predicate.source_id] } else { own };
        (found != NONE).then_some(found)
    }

    /// Checks that a year or month agrees with the date, if both are given.
    fn check_part(&self, predicate: &Predicate, value: &KeyValue) -> Result<()> {
        let (own, whole) = (self.slots[predicate.name_id], self.slots[predicate.source_id]);
        if predicate.name_id == predicate.source_id || own == NONE || whole == NONE {
            return Ok(());
        }
        let (source, text) = self.pairs[usize::from(whole)];
        if predicate.kind.canonical(source, text)? == *value {
            return Ok(());
        }
        Err(Code::KeyContradiction.error(format!("{}={value} contradicts {source}={text}", predicate.name)))
    }
}

impl Inner {
    pub(super) fn resolve(&self, pairs: &[(&str, &str)]) -> Result<FieldKey> {
        // A key that the schema accepted before its extension stays the same for ever.
        let mut older = self.older.as_deref();
        let mut oldest_first = Vec::new();
        while let Some(schema) = older {
            oldest_first.push(schema);
            older = schema.older.as_deref();
        }
        for schema in oldest_first.into_iter().rev() {
            if let Ok(Some(key)) = schema.taken(pairs) {
                return Ok(key);
            }
        }
        match self.taken(pairs)? {
            Some(key) => Ok(key),
            None => Err(self.with_own_words(pairs, |given| Ok(self.explain(given)))?),
        }
    }

    /// The key by the first rule that accepts the pairs; `None` if none does.
    fn taken(&self, pairs: &[(&str, &str)]) -> Result<Option<FieldKey>> {
        self.with_own_words(pairs, |given| {
            let mut used = vec![false; given.pairs.len()];
            for rule in &self.rules {
                used.fill(false);
                if let Some(extras) = takes(rule, given, &mut used) {
                    return self.build(rule, given, &extras).map(Some);
                }
            }
            Ok(None)
        })
    }

    /// Passes the pairs on in the schema's spelling.
    fn with_own_words<T>(
        &self,
        pairs: &[(&str, &str)],
        then: impl FnOnce(&Given<'_>) -> Result<T>,
    ) -> Result<T> {
        let rewritten = self.rewritten(pairs);
        let known = |(keyword, _): &(&str, &str)| self.ids.contains_key(*keyword);
        if rewritten.is_empty() && pairs.iter().all(known) {
            return then(&self.given(pairs)?);
        }
        let mut plain: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (self.keyword(k), *v)).collect();
        for (i, text) in &rewritten {
            plain[*i].1 = text;
        }
        then(&self.given(&plain)?)
    }

    fn given<'a>(&self, pairs: &'a [(&'a str, &'a str)]) -> Result<Given<'a>> {
        if pairs.len() > MAX_KEYWORDS {
            return Err(Error::invalid(format!(
                "the key has {} keywords; the limit is {MAX_KEYWORDS}",
                pairs.len()
            )));
        }
        let mut given = Given { pairs, slots: vec![NONE; self.ids.len()], unknown: Vec::new() };
        for (i, (keyword, _)) in (0u16..).zip(pairs) {
            if self.is_target(keyword) {
                return Err(Code::KeywordUnknown
                    .error("`target` names the file for an answer and is not part of a key")
                    .with_hint("leave it out, or declare the keyword in the schema"));
            }
            let taken = match self.ids.get(*keyword) {
                Some(&id) => std::mem::replace(&mut given.slots[id], i) != NONE,
                None => {
                    given.unknown.push(i);
                    given.unknown.iter().rev().skip(1).any(|u| pairs[usize::from(*u)].0 == *keyword)
                }
            };
            if taken {
                return Err(Code::KeyContradiction.error(format!("keyword `{keyword}` is given twice")));
            }
        }
        Ok(given)
    }

    fn build(&self, rule: &Rule, given: &Given<'_>, extras: &[u16]) -> Result<FieldKey> {
        let [a, b, c] = [0, 1, 2].map(|l| self.build_level(rule, l, given, extras).map(Arc::new));
        Ok(FieldKey { levels: [a?, b?, c?] })
    }

    fn build_level(&self, rule: &Rule, level: usize, given: &Given<'_>, extras: &[u16]) -> Result<Level> {
        let declared = &rule.levels[level];
        let extras = if rule.open == Some(level) { extras } else { &[] };
        let mut values = Vec::with_capacity(declared.names.len() + extras.len());
        for predicate in declared.predicates.iter().filter(|p| p.visible()) {
            let pair = given.pair(predicate).map(|i| given.pairs[usize::from(i)]);
            let value = predicate.value(pair.map(|p| p.1))?;
            given.check_part(predicate, &value)?;
            values.push(value);
        }
        if extras.is_empty() {
            return Ok(Level { names: declared.names.clone(), values });
        }
        let keywords: Vec<&str> = extras.iter().map(|i| given.pairs[usize::from(*i)].0).collect();
        for &i in extras {
            let (keyword, text) = given.pairs[usize::from(i)];
            values.push(self.extra_type(rule, keyword).canonical(keyword, text)?);
        }
        Ok(Level { names: self.extended_names(&declared.names, &keywords)?, values })
    }

    /// Declared names followed by further ones (sorted by the caller), shared between keys.
    pub(super) fn extended_names(&self, declared: &Names, extras: &[&str]) -> Result<Names> {
        let same = |names: &Names| {
            names.len() == declared.len() + extras.len()
                && names[..declared.len()] == declared[..]
                && names[declared.len()..].iter().zip(extras).all(|(a, b)| **a == **b)
        };
        let mut cache = self.open_names.lock();
        if let Some(names) = cache.iter().rev().find(|n| same(n)) {
            return Ok(names.clone());
        }
        for extra in extras {
            check_keyword(extra)?;
        }
        let names: Names = declared.iter().cloned().chain(extras.iter().map(|e| Arc::from(*e))).collect();
        if cache.len() < MAX_OPEN_NAMES {
            cache.push(names.clone());
        }
        Ok(names)
    }

    /// Explains why no rule accepts the key, by the rule that came closest.
    fn explain(&self, given: &Given<'_>) -> Error {
        let closest = self.rules.iter().map(|rule| Mismatch::of(rule, given)).min_by_key(Mismatch::weight);
        let Some(mismatch) = closest else {
            return Error::internal("the schema has no rules");
        };
        // A refused value says more than missing keywords.
        if let Some((predicate, text)) = mismatch.refused.first() {
            return self.refusal(predicate, text);
        }
        let surplus: Vec<&str> = mismatch.surplus.iter().map(|i| given.pairs[usize::from(*i)].0).collect();
        let mut parts = Vec::new();
        let mut code = Code::KeywordMissing;
        if !mismatch.missing.is_empty() {
            parts.push(format!("the key lacks {}", quoted(&mismatch.missing)));
        }
        if !surplus.is_empty() && (parts.is_empty() || mismatch.open.is_none()) {
            parts.push(format!("the schema has no keyword {}", quoted(&surplus)));
            // A misspelt keyword explains why another one is missing.
            code = Code::KeywordUnknown;
        }
        let error = code.error(parts.join(" and "));
        // A misspelt keyword is near a missing one, or near any keyword of the schema.
        let missing = mismatch.missing.iter().copied();
        let unknown: Vec<&str> = given.unknown.iter().map(|i| given.pairs[usize::from(*i)].0).collect();
        let near_missing = unknown
            .iter()
            .find_map(|s| did_you_mean(s, missing.clone()).map(|near| format!("instead of `{s}`, {near}")));
        let hint = near_missing
            .or_else(|| surplus.iter().find_map(|s| did_you_mean(s, mismatch.known.iter().copied())))
            .unwrap_or_else(|| {
                format!("its keywords are {}", mismatch.known.iter().copied().collect::<Vec<_>>().join(", "))
            });
        error.with_hint(hint)
    }

    /// Explains why a condition refuses a text, and names the values that some rule accepts in its place.
    fn refusal(&self, refused: &Predicate, text: &str) -> Error {
        // The text may not even be a value of the type.
        if let Err(error) = refused.kind.canonical(&refused.name, text) {
            return error;
        }
        let exclude = refused.condition.as_ref().is_some_and(|c| c.exclude);
        let mut values: Vec<String> = Vec::new();
        let same = self.rules.iter().flat_map(Rule::predicates).filter(|p| p.name == refused.name);
        for condition in same.filter_map(|p| p.condition.as_ref()).filter(|c| c.exclude == exclude) {
            for value in &condition.values {
                let value = value.text().into_owned();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        let takes = if exclude { "any value but" } else { "only" };
        let error = Code::KeywordValue.error(format!(
            "{}={text:?} is not allowed: the schema accepts {takes} {}",
            refused.name,
            values.join(", ")
        ));
        match did_you_mean(text, values.iter().map(String::as_str)).filter(|_| !exclude) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl Predicate {
    /// The value of the key if the caller gave `text`.
    pub(super) fn value(&self, text: Option<&str>) -> Result<KeyValue> {
        match (&self.presence, text) {
            (Presence::Hidden(value), _) => Ok(value.clone().unwrap_or(KeyValue::Absent)),
            (_, Some(text)) => self.kind.canonical(&self.name, text),
            (Presence::Optional(default), None) => Ok(default.clone()),
            (Presence::Required, None) => {
                Err(Code::KeywordMissing.error(format!("the key lacks `{}`", self.name)))
            }
        }
    }
}

/// Whether a rule accepts the whole key; returns the further keywords, sorted by name.
fn takes(rule: &Rule, given: &Given<'_>, used: &mut [bool]) -> Option<Vec<u16>> {
    for predicate in rule.predicates() {
        match given.pair(predicate) {
            Some(i) => {
                used[usize::from(i)] = true;
                if let Some(condition) = &predicate.condition {
                    let (_, text) = given.pairs[usize::from(i)];
                    let value = predicate.kind.canonical(&predicate.name, text).ok()?;
                    if !condition.takes(&value) {
                        return None;
                    }
                }
            }
            None if matches!(predicate.presence, Presence::Required) => return None,
            None => {}
        }
    }
    let mut extras = surplus(given, used);
    if !extras.is_empty() && rule.open.is_none() {
        return None;
    }
    extras.sort_by_key(|i| given.pairs[usize::from(*i)].0);
    Some(extras)
}

fn surplus(given: &Given<'_>, used: &[bool]) -> Vec<u16> {
    (0u16..)
        .zip(used)
        .filter(|(_, used)| !**used)
        .map(|(i, _)| i)
        .filter(|i| usize::from(*i) < given.pairs.len())
        .collect()
}

/// How far a rule is from accepting a key.
struct Mismatch<'a> {
    missing: Vec<&'a str>,
    surplus: Vec<u16>,
    /// Predicates that refuse their value.
    refused: Vec<(&'a Predicate, &'a str)>,
    known: BTreeSet<&'a str>,
    open: Option<usize>,
}

impl<'a> Mismatch<'a> {
    fn of(rule: &'a Rule, given: &Given<'a>) -> Mismatch<'a> {
        let mut found = Mismatch {
            missing: Vec::new(),
            surplus: Vec::new(),
            refused: Vec::new(),
            known: rule.predicates().map(|p| &*p.name).collect(),
            open: rule.open,
        };
        let mut used = vec![false; given.pairs.len()];
        for predicate in rule.predicates() {
            let Some(i) = given.pair(predicate) else {
                if matches!(predicate.presence, Presence::Required) {
                    found.missing.push(&predicate.name);
                }
                continue;
            };
            used[usize::from(i)] = true;
            let text = given.pairs[usize::from(i)].1;
            let takes = |c: &Condition| {
                predicate.kind.canonical(&predicate.name, text).is_ok_and(|value| c.takes(&value))
            };
            if !predicate.condition.as_ref().is_none_or(takes) {
                found.refused.push((predicate, text));
            }
        }
        if rule.open.is_none() {
            found.surplus = surplus(given, &used);
        }
        found
    }

    fn weight(&self) -> usize {
        self.missing.len() + self.surplus.len() + self.refused.len()
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")
}

/// Checks that a further keyword can be parsed again from a key's text.
fn check_keyword(keyword: &str) -> Result<()> {
    if crate::request::is_keyword(keyword) {
        return Ok(());
    }
    let shown: String = keyword.chars().take(60).collect();
    Err(Code::KeywordUnknown
        .error(format!("{shown:?} cannot be a keyword"))
        .with_hint("a keyword has letters, digits and _ . - +, at most 255 bytes"))
}
