//! The selection of a request.
//!
//! A keyword may have different types in different rules and levels (`date` as a year above and as a day below), so
//! each listed keyword is parsed under every type that it may have. Its *main* type is that of its deepest use in the
//! first rule that can parse all of its values; positions in the request always count the distinct values under the
//! main type.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::candidates::{Keys, lacking};
use super::matcher::{Constraint, Like, ListedPlace, OneOf, ShapeMatcher};
use super::range::{MAX_LISTED, ValueRun, too_many};
use super::rule::{Rule, RuleLevel};
use super::types::KeywordType;
use super::{Inner, Schema};
use crate::key::{FieldKey, KeyValue, LEVELS, Names, Quoted};
use crate::nearest::did_you_mean;
use crate::request::{Item, Request, Values, Wanted};
use crate::{Code, Error, Result};

/// The selection of a request, over all rules of a schema. Clones share it.
#[derive(Debug, Clone)]
pub struct Selection {
    pub(super) schema: Schema,
    pub(super) listed: Arc<[Listed]>,
    /// Keywords given as `*` or `?*`.
    pub(super) any: Arc<[String]>,
    /// Keywords given with patterns.
    likes: Arc<[(Arc<str>, Arc<Like>)]>,
    /// Keywords given as `?*`: keys must have them.
    pub(super) present: Arc<[String]>,
    /// Keywords given as `!*`: keys must lack them.
    pub(super) absent: Arc<[String]>,
    /// The bounds of the request: keys must match these, too.
    bounds: Vec<Selection>,
}

/// A keyword with concrete values.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) keyword: Arc<str>,
    kind: KeywordType,
    values: Arc<OneOf>,
    /// The user's text of each distinct value; `None` if the values come from a range.
    texts: Option<Vec<String>>,
    readings: HashMap<KeywordType, Arc<OneOf>>,
}

impl Listed {
    fn new(schema: &Inner, keyword: &str, items: &[Item]) -> Result<Listed> {
        if items.is_empty() {
            return Err(Code::KeywordValue
                .error(format!("{keyword} has an empty list of values"))
                .with_hint(format!("leave {keyword} out to accept any value")));
        }
        let kinds = kinds(schema, keyword)?;
        let mut first_error = None;
        for &kind in &kinds {
            match expand(kind, keyword, items) {
                Ok((values, texts)) => {
                    let mut listed = Listed {
                        keyword: schema
                            .ids
                            .get_key_value(keyword)
                            .map_or_else(|| keyword.into(), |(k, _)| k.clone()),
                        kind,
                        values: Arc::new(values),
                        texts,
                        readings: HashMap::new(),
                    };
                    for &other in &kinds {
                        let reading = listed.read_as(other, items);
                        listed.readings.insert(other, reading);
                    }
                    return Ok(listed);
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| Error::internal(format!("{keyword} has no type"))))
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the values are counted under this type.
    pub(super) fn is_of(&self, kind: KeywordType) -> bool {
        self.kind == kind
    }

    /// The i-th value under a type.
    pub(super) fn value(&self, i: usize, kind: KeywordType) -> Option<KeyValue> {
        let value = self.values.get(i)?;
        if kind == self.kind {
            return Some(value);
        }
        let text = match &self.texts {
            Some(texts) => texts.get(i)?.into(),
            None => value.text(),
        };
        kind.canonical(&self.keyword, &text).ok()
    }

    /// The values under another type, if it can parse them, with their positions under the main type.
    fn read_as(&self, kind: KeywordType, items: &[Item]) -> Arc<OneOf> {
        if kind == self.kind {
            return self.values.clone();
        }
        if let ([Item::Range { .. }], Ok((run, None))) = (items, expand(kind, &self.keyword, items))
            && run.len() == self.len()
        {
            return Arc::new(run);
        }
        self.read_each(kind)
    }

    fn read_each(&self, kind: KeywordType) -> Arc<OneOf> {
        Arc::new(OneOf::each((0..self.len()).filter_map(|i| Some((self.value(i, kind)?, i)))))
    }

    fn reading(&self, kind: KeywordType) -> Arc<OneOf> {
        self.readings.get(&kind).cloned().unwrap_or_else(|| self.read_each(kind))
    }

    /// The values under any of several types.
    fn reading_of_all(&self, kinds: &[KeywordType]) -> Arc<OneOf> {
        match kinds {
            [kind] => self.reading(*kind),
            _ => {
                let readings: Vec<Arc<OneOf>> = kinds.iter().map(|k| self.reading(*k)).collect();
                Arc::new(OneOf::each(readings.iter().flat_map(|r| r.entries())))
            }
        }
    }
}

impl Selection {
    pub(super) fn new(schema: Schema, request: &Request) -> Result<Selection> {
        let mut listed = Vec::new();
        let (mut any, mut present, mut likes) = (Vec::new(), Vec::new(), Vec::new());
        let mut absent = Vec::new();
        for (keyword, values) in request.iter() {
            match values {
                Values::List(items) => listed.push(Listed::new(&schema.0, keyword, items)?),
                Values::Any | Values::Present => {
                    kinds(&schema.0, keyword)?;
                    any.push(keyword.to_owned());
                    if *values == Values::Present {
                        present.push(keyword.to_owned());
                    }
                }
                Values::Absent => {
                    kinds(&schema.0, keyword)?;
                    absent.push(keyword.to_owned());
                }
                Values::Like(wanted) => {
                    let kinds = kinds(&schema.0, keyword)?;
                    likes.push((keyword.into(), Arc::new(like(&kinds, keyword, wanted))));
                }
            }
        }
        let order = schema.keywords();
        let rank = |l: &Listed| order.iter().position(|k| *k == l.keyword).unwrap_or(order.len());
        listed.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.keyword.cmp(&b.keyword)));
        Ok(Selection {
            schema,
            listed: listed.into(),
            any: any.into(),
            present: present.into(),
            absent: absent.into(),
            likes: likes.into(),
            bounds: Vec::new(),
        })
    }

    /// Selects the keys that both select; order, positions and possible missing keys stay those of `self`.
    pub fn within(mut self, bound: Selection) -> Selection {
        self.bounds.push(bound);
        self
    }

    /// Whether everything is selected.
    pub fn is_unconstrained(&self) -> bool {
        self.names_nothing()
            && self.present.is_empty()
            && self.absent.is_empty()
            && self.bounds.iter().all(Selection::is_unconstrained)
    }

    /// Whether no keyword has values, so that no field can be missing.
    pub fn lists_nothing(&self) -> bool {
        self.listed.is_empty()
    }

    /// Whether no keyword has values or patterns.
    pub fn names_nothing(&self) -> bool {
        self.lists_nothing() && self.likes.is_empty()
    }

    /// Whether it demands something of these keywords of the first level alone, none of which a key may have at a deeper one,
    /// too: that one would count.
    pub fn demands_only(&self, names: &[Arc<str>]) -> bool {
        let below = |level: &Arc<RuleLevel>, keyword: &str| level.names.iter().any(|name| **name == *keyword);
        let is_deeper = |keyword: &str| {
            self.schema.0.rules.iter().any(|rule| rule.levels[1..].iter().any(|level| below(level, keyword)))
        };
        let is_among = |keyword: &str| names.iter().any(|name| **name == *keyword) && !is_deeper(keyword);
        self.listed.iter().all(|listed| is_among(&listed.keyword))
            && self.likes.iter().all(|(keyword, _)| is_among(keyword))
            && self.present.iter().chain(&*self.absent).all(|keyword| is_among(keyword))
            && self.bounds.iter().all(|bound| bound.demands_only(names))
    }

    /// Whether it has bounds in addition to its own keywords.
    pub(super) fn is_bound(&self) -> bool {
        !self.bounds.iter().all(Selection::is_unconstrained)
    }

    /// Whether a key is selected. To compare many keys, the constraints for their shape are faster.
    pub fn takes(&self, key: &FieldKey) -> bool {
        let names = [0, 1, 2].map(|level| &key.levels[level].names);
        let matches = |matcher: ShapeMatcher| {
            key.levels.iter().enumerate().all(|(level, own)| matcher.matches_level(level, &own.values))
        };
        self.for_shape(names).is_some_and(matches)
    }

    /// Keywords with values, in the schema's order (then further keywords, by name), with the canonical texts of
    /// their distinct values in the request's order. It expands every value of every range; if lists may be long, use
    /// [`Selection::listed_values`].
    pub fn listed(&self) -> Vec<(Arc<str>, Vec<String>)> {
        let texts = |values: &OneOf| values.values().map(|v| v.text().into_owned()).collect();
        self.listed_values().map(|(keyword, values)| (keyword.clone(), texts(values))).collect()
    }

    /// As [`Selection::listed`], without expanding the values.
    pub fn listed_values(&self) -> impl Iterator<Item = (&Arc<str>, &OneOf)> {
        self.listed.iter().map(|l| (&l.keyword, &*l.values))
    }

    /// The number of combinations of the listed values; `None` if it exceeds 64 bits.
    pub fn count_listed(&self) -> Option<u64> {
        self.listed.iter().try_fold(1u64, |n, l| n.checked_mul(u64::try_from(l.len()).ok()?))
    }

    /// Describes a combination of listed values, given by their positions: `run=a,step=6`.
    pub fn describe(&self, positions: &[usize]) -> String {
        let one = |(l, i): (&Listed, &usize)| {
            let value = l.values.get(*i).unwrap_or(KeyValue::Absent);
            format!("{}={}", l.keyword, Quoted(&value.text()))
        };
        self.listed.iter().zip(positions).map(one).collect::<Vec<_>>().join(",")
    }

    /// The constraints on keys with these names; `None` if no such key can match, because the request gives values to
    /// a keyword that the key lacks, or demands its presence.
    pub fn for_shape(&self, names: [&Names; LEVELS]) -> Option<ShapeMatcher> {
        let rules: Vec<&Rule> = self.schema.0.rules.iter().filter(|r| r.has_shape(names)).collect();
        let mut constraints = names.map(|level| vec![Constraint::Any; level.len()]);
        let mut places = self.constrain_listed(names, &rules, &mut constraints);
        self.constrain_parts(&rules, &mut constraints, &mut places)?;
        for (keyword, like) in &*self.likes {
            let mut held = false;
            for place in places_of(names, |name| **name == **keyword) {
                narrow(&mut constraints, place, Constraint::Like(Vec::new(), vec![like.clone()]));
                held = true;
            }
            // A key without the keyword, or with it only as a part of another, matches no pattern.
            if !held {
                return None;
            }
        }
        for keyword in &*self.present {
            let all = places_with_parts(names, &rules, keyword);
            if all.is_empty() {
                return None;
            }
            all.into_iter().for_each(|place| narrow(&mut constraints, place, Constraint::Present));
        }
        for keyword in &*self.absent {
            let all = places_with_parts(names, &rules, keyword);
            all.into_iter().for_each(|place| narrow(&mut constraints, place, Constraint::Absent));
        }
        let mut matcher = ShapeMatcher { constraints, listed: places };
        for bound in &self.bounds {
            matcher.narrow(bound.for_shape(names)?);
        }
        Some(matcher)
    }

    /// Constrains the positions that have the names of listed keywords; returns the deepest position of each keyword.
    fn constrain_listed(
        &self,
        names: [&Names; LEVELS],
        rules: &[&Rule],
        constraints: &mut [Vec<Constraint>; LEVELS],
    ) -> Vec<Option<ListedPlace>> {
        let mut places = Vec::with_capacity(self.listed.len());
        for listed in &*self.listed {
            let mut deepest = None;
            for (level, i) in places_of(names, |name| **name == *listed.keyword) {
                let Some(kinds) = self.kinds_at(rules, (level, i), &listed.keyword) else {
                    continue;
                };
                let values = listed.reading_of_all(&kinds);
                constraints[level][i] = Constraint::OneOf(values.clone());
                deepest = Some((level, i, values));
            }
            places.push(deepest);
        }
        places
    }

    /// Constrains the positions that are parts of a listed keyword, as a year is of a date; `None` if a listed
    /// keyword that is not hidden constrains no position.
    fn constrain_parts(
        &self,
        rules: &[&Rule],
        constraints: &mut [Vec<Constraint>; LEVELS],
        places: &mut [Option<ListedPlace>],
    ) -> Option<()> {
        for (listed, deepest) in self.listed.iter().zip(places) {
            // A position with the keyword itself is more precise than one with a part of it.
            let own = deepest.is_some();
            for (level, i, kind) in parts(rules, &listed.keyword) {
                let part = listed.reading(kind);
                let both = match constraints[level][i].lists() {
                    [old, ..] => Arc::new(old.within(&part)),
                    [] => part,
                };
                constraints[level][i] = Constraint::OneOf(both.clone());
                if !own {
                    *deepest = Some((level, i, both));
                }
            }
            // A rule that drops the keyword accepts any of its values.
            let hides = |rule: &&Rule| rule.predicates().any(|p| p.hidden() && p.name == listed.keyword);
            if deepest.is_none() && !rules.iter().any(hides) {
                return None;
            }
        }
        Some(())
    }

    /// The types that a position of a key may have; `None` if the rule drops the caller's value.
    fn kinds_at(&self, rules: &[&Rule], place: (usize, usize), keyword: &str) -> Option<Vec<KeywordType>> {
        let mut kinds = Vec::new();
        for rule in rules {
            let kind = match rule.predicate_at(place.0, place.1) {
                Some(predicate) if predicate.hidden() => return None,
                Some(predicate) => predicate.kind,
                None => self.schema.0.extra_type(rule, keyword),
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() {
            // The key comes from an earlier schema: its values show their type.
            use KeywordType as T;
            kinds = vec![self.schema.type_of(keyword).unwrap_or(T::Text)];
            for kind in [T::Integer, T::Double, T::Step, T::Text] {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        Some(kinds)
    }

    /// The keys that the request names completely, one for each combination of listed values and rule, in request
    /// order (the first keyword of the schema changes slowest). `None` if a keyword is open, so that keys must be
    /// searched. See [`Keys::exact`] for the keys that the list leaves out.
    pub fn keys(&self) -> Option<Keys> {
        // Only the stored fields determine the values that a pattern matches.
        if !self.likes.is_empty() {
            return None;
        }
        Keys::new(self)
    }

    /// As [`Selection::keys`]; the error names the keywords that the request leaves open.
    pub fn expand(&self) -> Result<Keys> {
        self.keys().ok_or_else(|| {
            let open = lacking(self);
            Code::RequestTooBroad
                .error(format!(
                    "the request leaves {} open, so it does not name keys completely",
                    open.join(", ")
                ))
                .with_hint("list the values of each; `list` and `axes` show which are stored")
        })
    }

    /// The canonical key of a request with one value for each keyword.
    pub fn only_key(&self) -> Option<FieldKey> {
        if self.count_listed() != Some(1) {
            return None;
        }
        self.keys()?.next()
    }
}

/// Level and index of the names that satisfy a test, outermost first.
fn places_of<'a>(
    names: [&'a Names; LEVELS],
    test: impl Fn(&Arc<str>) -> bool + 'a,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let all = names
        .into_iter()
        .enumerate()
        .flat_map(|(level, n)| n.iter().enumerate().map(move |(i, name)| (level, i, name)));
    all.filter(move |(_, _, name)| test(name)).map(|(level, i, _)| (level, i))
}

/// Adds a constraint to those of a position.
fn narrow(constraints: &mut [Vec<Constraint>; LEVELS], (level, i): (usize, usize), further: Constraint) {
    let constraint = &mut constraints[level][i];
    *constraint = std::mem::replace(constraint, Constraint::Any).and(further);
}

/// The positions of a keyword, then those whose value is a part of its value.
fn places_with_parts(names: [&Names; LEVELS], rules: &[&Rule], keyword: &str) -> Vec<(usize, usize)> {
    let own = places_of(names, |name| **name == *keyword);
    let part = parts(rules, keyword).into_iter().map(|(level, i, _)| (level, i));
    own.chain(part).collect()
}

/// Positions whose value is a part of `keyword`'s, outermost first.
fn parts(rules: &[&Rule], keyword: &str) -> Vec<(usize, usize, KeywordType)> {
    let mut found = Vec::new();
    for rule in rules {
        for (level, declared) in rule.levels.iter().enumerate() {
            for (i, predicate) in declared.predicates.iter().filter(|p| p.visible()).enumerate() {
                let part = (level, i, predicate.kind);
                if *predicate.source == *keyword
                    && predicate.name != predicate.source
                    && !found.contains(&part)
                {
                    found.push(part);
                }
            }
        }
    }
    found
}

/// Every type that a keyword may have, the main candidate first; `Invalid` for an unknown keyword.
pub(super) fn kinds(schema: &Inner, keyword: &str) -> Result<Vec<KeywordType>> {
    let mut kinds = Vec::new();
    let mut parts = Vec::new();
    let mut further = Vec::new();
    for rule in &schema.rules {
        for predicate in rule.levels.iter().rev().flat_map(|l| &l.predicates) {
            if *predicate.name == *keyword {
                kinds.push(if predicate.hidden() { KeywordType::Text } else { predicate.kind });
            } else if *predicate.source == *keyword {
                parts.push(predicate.kind);
            }
        }
        further.extend(rule.open.map(|_| schema.extra_type(rule, keyword)));
    }
    kinds.append(&mut further);
    // A date that a schema has only as parts is still parsed as a date.
    if kinds.is_empty() && !parts.is_empty() {
        kinds.push(KeywordType::Date);
    }
    kinds.append(&mut parts);
    let mut distinct: Vec<KeywordType> = Vec::new();
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    if !distinct.is_empty() {
        return Ok(distinct);
    }
    let known = || schema.rules.iter().flat_map(|r| r.predicates()).flat_map(|p| [&*p.name, &*p.source]);
    let hint = did_you_mean(keyword, known()).unwrap_or_else(|| {
        let mut all: Vec<&str> = Vec::new();
        for name in known() {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        format!("its keywords are {}", all.join(", "))
    });
    Err(Code::KeywordUnknown.error(format!("the schema has no keyword `{keyword}`")).with_hint(hint))
}

/// Patterns, with the canonical texts of the listed values under any of the keyword's types.
fn like(kinds: &[KeywordType], keyword: &str, wanted: &[Wanted]) -> Like {
    let (mut texts, mut patterns) = (Vec::new(), Vec::new());
    for one in wanted {
        match one {
            Wanted::Glob(pattern) => patterns.push(pattern.as_str()),
            Wanted::One(text) => {
                let values = kinds.iter().filter_map(|kind| kind.canonical(keyword, text).ok());
                texts.extend(values.map(|value| value.text().into_owned()));
            }
        }
    }
    Like::new(texts, &patterns)
}

/// The distinct values of a list under one type, and the user's text of each.
fn expand(kind: KeywordType, keyword: &str, items: &[Item]) -> Result<(OneOf, Option<Vec<String>>)> {
    if let [Item::Range { from, to, by }] = items {
        return Ok((OneOf::run(ValueRun::new(kind, keyword, from, to, by.as_deref())?), None));
    }
    if let Some(grid) = whole_grid(kind, items) {
        return Ok((OneOf::each([(kind.canonical(keyword, &grid)?, 0)]), Some(vec![grid])));
    }
    let mut runs = Vec::new();
    let mut count = items.len() as u64;
    for item in items {
        if let Item::Range { from, to, by } = item {
            let run = ValueRun::new(kind, keyword, from, to, by.as_deref())?;
            count = count.saturating_add(run.len());
            runs.push(run);
        }
    }
    if count > MAX_LISTED {
        return Err(too_many(keyword, MAX_LISTED));
    }
    let mut runs = runs.iter();
    let mut all: Vec<(KeyValue, Option<&String>)> = Vec::new();
    for item in items {
        match item {
            Item::One(text) => all.push((kind.canonical(keyword, text)?, Some(text))),
            Item::Range { .. } => {
                all.extend(runs.next().into_iter().flat_map(ValueRun::iter).map(|v| (v, None)))
            }
        }
    }
    let mut seen = HashSet::with_capacity(all.len());
    all.retain(|(value, _)| seen.insert(value.clone()));
    let text = |(value, text): &(KeyValue, Option<&String>)| match text {
        Some(text) => (*text).clone(),
        None => value.text().into_owned(),
    };
    let texts = all.iter().map(text).collect();
    Ok((OneOf::each(all.into_iter().map(|(value, _)| value).zip(0..)), Some(texts)))
}

/// MARS writes a grid as a list: `grid=0.25/0.25`.
fn whole_grid(kind: KeywordType, items: &[Item]) -> Option<String> {
    if kind != KeywordType::Grid || items.len() < 2 {
        return None;
    }
    let parts: Option<Vec<&str>> = items
        .iter()
        .map(|item| match item {
            Item::One(text) if !text.contains(['/', '+']) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("+"))
}
