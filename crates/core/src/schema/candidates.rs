//! The keys that a request names completely: for every rule, the product of the request's lists, one key at a time.

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
    /// Keys that this combination has already given, in case several rules give the same key.
    given: Vec<FieldKey>,
}

/// A key of one rule, with gaps to fill.
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

/// The result of applying one rule to a request.
enum Fit {
    /// No key of the rule can match.
    Never,
    /// A required keyword is not listed.
    Open,
    Keys(Template),
}

impl Template {
    /// Whether its keys include all keys of `later`, apart from absent keywords. Then archiving makes none by
    /// `later`, because the first rule that accepts a key makes it.
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

    /// Whether these keys are all that the request can match. False if the request leaves out an optional keyword
    /// (its default or absence is listed, but stored keys may have other values) or a rule accepts further keywords.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// The number of all keys, including those already taken. Computed without making the keys if each combination of
    /// values gives one key of one rule.
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

    /// The key of one rule for the current combination.
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

    /// Moves to the next combination; the last keyword changes fastest.
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

/// The keywords that a request must still list to name keys completely, by the rule that lacks the fewest.
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

/// A template under construction.
struct Draft {
    names: [Names; LEVELS],
    slots: [Vec<Slot>; LEVELS],
    /// For each listed keyword, whether a predicate of the rule uses it.
    used: Vec<bool>,
    exact: bool,
    /// Whether a required keyword is not listed.
    open: bool,
}

impl Draft {
    /// Adds a slot for each of the rule's own predicates; `None` if no key of the rule can match.
    fn of(rule: &Rule, selection: &Selection) -> Option<Draft> {
        let mut draft = Draft {
            names: [0, 1, 2].map(|level| rule.levels[level].names.clone()),
            slots: Default::default(),
            used: vec![false; selection.listed.len()],
            exact: rule.open.is_none(),
            open: false,
        };
        for (level, declared) in rule.levels.iter().enumerate() {
            for predicate in &declared.predicates {
                draft.take_predicate(level, predicate, selection)?;
            }
        }
        Some(draft)
    }

    /// Adds the slot of one predicate, if it needs one; `None` if no key of the rule can match.
    fn take_predicate(&mut self, level: usize, predicate: &Predicate, selection: &Selection) -> Option<()> {
        let find = |keyword: &str| selection.listed.iter().position(|l| *l.keyword == *keyword);
        let which = find(&predicate.name).or_else(|| find(&predicate.source));
        if let Some(which) = which {
            self.used[which] = true;
        }
        let slots = &mut self.slots[level];
        if predicate.hidden() {
            if let Presence::Hidden(Some(value)) = &predicate.presence {
                slots.push(Slot::Fixed(value.clone()));
            } else if predicate.visible() {
                slots.push(Slot::Fixed(KeyValue::Absent));
            }
            return Some(());
        }
        let absent = |keyword: &Arc<str>| selection.absent.iter().any(|k| **k == **keyword);
        if absent(&predicate.name) || absent(&predicate.source) {
            if which.is_some() || !matches!(predicate.presence, Presence::Optional(_)) {
                return None;
            }
            slots.push(Slot::Fixed(KeyValue::Absent));
            return Some(());
        }
        let starred = |keyword: &str| selection.any.iter().any(|k| k == keyword);
        match (which, &predicate.presence) {
            (Some(which), _) => {
                let condition = predicate.condition.clone();
                slots.push(Slot::Listed { which, kind: predicate.kind, condition });
            }
            (None, Presence::Optional(default)) if !starred(&predicate.name) => {
                self.exact = false;
                slots.push(Slot::Fixed(default.clone()));
            }
            _ => self.open = true,
        }
        Some(())
    }

    /// Gives the listed keywords that no predicate uses to the rule's level for further keywords; `None` if it has
    /// none.
    fn take_extras(&mut self, rule: &Rule, selection: &Selection) -> Option<()> {
        let mut extras: Vec<usize> = (0..self.used.len()).filter(|i| !self.used[*i]).collect();
        if extras.is_empty() {
            return Some(());
        }
        extras.sort_by(|a, b| selection.listed[*a].keyword.cmp(&selection.listed[*b].keyword));
        let level = rule.open?;
        let keywords: Vec<&str> = extras.iter().map(|i| &*selection.listed[*i].keyword).collect();
        // No key can have this keyword: archiving refuses it too.
        self.names[level] = selection.schema.0.extended_names(&self.names[level], &keywords).ok()?;
        for which in extras {
            let kind = selection.schema.0.extra_type(rule, &selection.listed[which].keyword);
            self.slots[level].push(Slot::Listed { which, kind, condition: None });
        }
        Some(())
    }
}

/// The keys that a rule makes from a request.
fn fit(rule: &Rule, selection: &Selection) -> Fit {
    let Some(mut draft) = Draft::of(rule, selection) else {
        return Fit::Never;
    };
    for keyword in &*selection.present {
        let shown = |p: &Predicate| p.visible() && (*p.name == **keyword || *p.source == **keyword);
        match rule.predicates().any(shown) {
            true => {}
            false if rule.open.is_some() => draft.open = true,
            false => return Fit::Never,
        }
    }
    if draft.take_extras(rule, selection).is_none() {
        return Fit::Never;
    }
    if draft.open {
        return Fit::Open;
    }
    let [a, b, c] = draft.slots;
    let [x, y, z] = draft.names;
    Fit::Keys(Template { levels: [(x, a), (y, b), (z, c)], exact: draft.exact })
}
