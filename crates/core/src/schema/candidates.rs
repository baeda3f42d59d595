//! The keys that a request names outright: the product of its lists under every rule, one at a time.

use std::sync::Arc;

use super::rule::{Condition, Predicate, Presence, Rule};
use super::select::Selection;
use super::types::KeywordType;
use crate::key::{FieldKey, KeyValue, LEVELS, Level, Names};

/// An iterator over the keys that a request names; see [`Selection::keys`].
#[derive(Debug, Clone)]
pub struct Keys {
    selection: Selection,
    templates: Vec<Template>,
    exact: bool,
    /// Position of each listed keyword; `None` at the end.
    positions: Option<Vec<usize>>,
    next_template: usize,
    /// Keys of this combination already given, where several rules could give one key.
    given: Vec<FieldKey>,
}

/// A key of one rule with places to fill.
#[derive(Debug, Clone)]
struct Template {
    levels: [(Names, Vec<Slot>); LEVELS],
    exact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    Fixed(KeyValue),
    Listed { which: usize, kind: KeywordType, condition: Option<Condition> },
}

/// What one rule makes of a request.
enum Fit {
    /// No key of the rule can match.
    Never,
    /// A required keyword is not listed.
    Open,
    Keys(Template),
}

impl Template {
    /// Whether it says of every key what `later` says, but for keywords that are absent: then archiving makes
    /// none by `later`, because the first rule that takes a key makes it.
    fn takes_all_of(&self, later: &Template) -> bool {
        let present = |template: &Template| -> Vec<(Arc<str>, Slot)> {
            let slots = template.levels.iter().flat_map(|(names, slots)| names.iter().cloned().zip(slots));
            let present = slots.filter(|(_, slot)| !matches!(slot, Slot::Fixed(KeyValue::Absent)));
            present.map(|(name, slot)| (name, slot.clone())).collect()
        };
        present(self) == present(later)
    }
}

impl Keys {
    pub(super) fn new(selection: &Selection) -> Option<Keys> {
        let mut keys = Keys {
            selection: selection.clone(),
            templates: Vec::new(),
            exact: true,
            positions: Some(vec![0; selection.listed.len()]),
            next_template: 0,
            given: Vec::new(),
        };
        let mut open = false;
        for rule in &selection.schema.0.rules {
            match fit(rule, selection) {
                Fit::Never => {}
                Fit::Open => open = true,
                Fit::Keys(template) => {
                    keys.exact &= template.exact;
                    if !keys.templates.iter().any(|earlier| earlier.takes_all_of(&template)) {
                        keys.templates.push(template);
                    }
                }
            }
        }
        keys.exact &= !open;
        (!open || !keys.templates.is_empty()).then_some(keys)
    }

    /// Whether these keys are all that the request can match. False where an optional keyword is not
    /// named (its default or absence is listed, stored keys may have other values) or a rule takes
    /// further keywords.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// How many keys there are in all, however many were taken. Counted without making them where
    /// each combination of values is one key of one rule.
    pub fn count_keys(&self) -> u64 {
        if self.templates.is_empty() {
            return 0;
        }
        let slots = || self.templates.iter().flat_map(|t| &t.levels).flat_map(|(_, slots)| slots);
        let plain = |slot: &Slot| match slot {
            Slot::Fixed(_) => true,
            Slot::Listed { which, kind, condition } => {
                condition.is_none() && self.selection.listed[*which].is_of(*kind)
            }
        };
        if self.templates.len() == 1 && slots().all(plain) && !self.selection.is_bound() {
            return self.selection.count_listed().unwrap_or(u64::MAX);
        }
        let whole = Keys {
            positions: Some(vec![0; self.selection.listed.len()]),
            next_template: 0,
            given: Vec::new(),
            ..self.clone()
        };
        whole.fold(0, |n, _| n + 1)
    }

    /// The key of one rule for the present combination.
    fn make(&self, template: &Template, positions: &[usize]) -> Option<FieldKey> {
        let level = |(names, slots): &(Names, Vec<Slot>)| -> Option<Level> {
            let values = slots.iter().map(|slot| self.fill(slot, positions)).collect::<Option<Vec<_>>>()?;
            Some(Level { names: names.clone(), values })
        };
        let [a, b, c] = &template.levels;
        Some(FieldKey { levels: [level(a)?.into(), level(b)?.into(), level(c)?.into()] })
    }

    fn fill(&self, slot: &Slot, positions: &[usize]) -> Option<KeyValue> {
        match slot {
            Slot::Fixed(value) => Some(value.clone()),
            Slot::Listed { which, kind, condition } => {
                let value = self.selection.listed[*which].value(*positions.get(*which)?, *kind)?;
                condition.as_ref().is_none_or(|c| c.takes(&value)).then_some(value)
            }
        }
    }

    /// The next combination, the last keyword fastest.
    fn advance(&mut self) {
        let lists = &self.selection.listed;
        if let Some(positions) = &mut self.positions {
            for (position, list) in positions.iter_mut().zip(lists.iter()).rev() {
                *position += 1;
                if *position < list.len() {
                    return;
                }
                *position = 0;
            }
        }
        self.positions = None;
    }
}

impl Iterator for Keys {
    type Item = FieldKey;

    fn next(&mut self) -> Option<FieldKey> {
        if self.templates.is_empty() {
            return None;
        }
        loop {
            let positions = self.positions.as_ref()?;
            let Some(template) = self.templates.get(self.next_template) else {
                self.next_template = 0;
                self.given.clear();
                self.advance();
                continue;
            };
            self.next_template += 1;
            let Some(key) = self.make(template, positions) else {
                continue;
            };
            if self.selection.is_bound() && !self.selection.takes(&key) {
                continue;
            }
            if self.templates.len() > 1 {
                if self.given.contains(&key) {
                    continue;
                }
                self.given.push(key.clone());
            }
            return Some(key);
        }
    }
}

/// The keywords that a request must list before it names keys outright, by the rule that lacks the
/// fewest.
pub(super) fn lacking(selection: &Selection) -> Vec<Arc<str>> {
    let listed = |keyword: &str| selection.listed.iter().any(|l| *l.keyword == *keyword);
    let starred = |keyword: &str| selection.any.iter().any(|k| k == keyword);
    let lacks = |rule: &&Rule| -> Vec<Arc<str>> {
        let open = rule.predicates().filter(|p| {
            let optional = matches!(p.presence, Presence::Optional(_)) && !starred(&p.name);
            !(p.hidden() || optional || listed(&p.name) || listed(&p.source))
        });
        let mut lacks: Vec<Arc<str>> = Vec::new();
        for predicate in open {
            if !lacks.contains(&predicate.source) {
                lacks.push(predicate.source.clone());
            }
        }
        lacks
    };
    let rules = &selection.schema.0.rules;
    let open = rules.iter().filter(|rule| matches!(fit(rule, selection), Fit::Open));
    open.map(|rule| lacks(&rule)).min_by_key(Vec::len).unwrap_or_default()
}

fn fit(rule: &Rule, selection: &Selection) -> Fit {
    let find = |keyword: &str| selection.listed.iter().position(|l| *l.keyword == *keyword);
    let starred = |keyword: &str| selection.any.iter().any(|k| k == keyword);
    let mut used = vec![false; selection.listed.len()];
    let mut exact = rule.open.is_none();
    let mut slots: [Vec<Slot>; LEVELS] = Default::default();
    let mut open = false;
    for (declared, slots) in rule.levels.iter().zip(&mut slots) {
        for predicate in &declared.predicates {
            let which = find(&predicate.name).or_else(|| find(&predicate.source));
            if let Some(which) = which {
                used[which] = true;
            }
            if predicate.hidden() {
                if let Presence::Hidden(Some(value)) = &predicate.presence {
                    slots.push(Slot::Fixed(value.clone()));
                } else if predicate.visible() {
                    slots.push(Slot::Fixed(KeyValue::Absent));
                }
                continue;
            }
            let absent = |keyword: &Arc<str>| selection.absent.iter().any(|k| **k == **keyword);
            if absent(&predicate.name) || absent(&predicate.source) {
                if which.is_some() || !matches!(predicate.presence, Presence::Optional(_)) {
                    return Fit::Never;
                }
                slots.push(Slot::Fixed(KeyValue::Absent));
                continue;
            }
            match (which, &predicate.presence) {
                (Some(which), _) => {
                    let condition = predicate.condition.clone();
                    slots.push(Slot::Listed { which, kind: predicate.kind, condition });
                }
                (None, Presence::Optional(default)) if !starred(&predicate.name) => {
                    exact = false;
                    slots.push(Slot::Fixed(default.clone()));
                }
                _ => open = true,
            }
        }
    }
    for keyword in &*selection.present {
        let shown = |p: &Predicate| p.visible() && (*p.name == **keyword || *p.source == **keyword);
        match rule.predicates().any(shown) {
            true => {}
            false if rule.open.is_some() => open = true,
            false => return Fit::Never,
        }
    }
    let mut extras: Vec<usize> = (0..used.len()).filter(|i| !used[*i]).collect();
    extras.sort_by(|a, b| selection.listed[*a].keyword.cmp(&selection.listed[*b].keyword));
    let mut names = [0, 1, 2].map(|level| rule.levels[level].names.clone());
    match rule.open {
        None if !extras.is_empty() => return Fit::Never,
        Some(level) if !extras.is_empty() => {
            let keywords: Vec<&str> = extras.iter().map(|i| &*selection.listed[*i].keyword).collect();
            // A keyword that no key can have: archiving refuses it too.
            let Ok(extended) = selection.schema.0.extended_names(&names[level], &keywords) else {
                return Fit::Never;
            };
            names[level] = extended;
            for which in extras {
                let kind = selection.schema.0.extra_type(rule, &selection.listed[which].keyword);
                slots[level].push(Slot::Listed { which, kind, condition: None });
            }
        }
        _ => {}
    }
    if open {
        return Fit::Open;
    }
    let [a, b, c] = slots;
    let [x, y, z] = names;
    Fit::Keys(Template { levels: [(x, a), (y, b), (z, c)], exact })
}
