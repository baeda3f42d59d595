//! Parses the text of a schema.
//!
//! ```text
//! schema    = section { section } { extension }
//! section   = { types | catalog | setting } rule { rule }
//! extension = "extension" ";" { types | optional } { rule }                at least one of optional and rule
//! optional  = keyword "?" [ ":" type ] ";"
//! types     = keyword ":" type ";"
//! catalog   = "catalog" role "=" keyword ";" { role "=" keyword ";" }      role: project, run, step, variable
//!             a run may be several keywords of a rule's first level: keyword { "/" keyword }
//! setting   = "compression" "=" ( "none" | "zstd" [ ":" level ] ) ";"
//! rule      = "[" predicates { "[" predicates { "[" predicates "]" } "]" } "]"
//! predicate = keyword [ ":" type ] [ "?" [ default ] | "-" [ value ] | "=" [ "!" ] value { "/" [ "!" ] value } ]
//!           | "*"                                                          further keywords
//! ```
//!
//! Comments run from `#` to the end of the line. Each section is a schema of its own: its types and roles apply only
//! to its rules, so that two schemas, one after the other, form one. A section without roles has those of the section
//! before it. An extension belongs to the last section; its types apply to its own rules; `extend` defines what it
//! may not change.

use std::collections::HashMap;
use std::sync::Arc;

use super::rule::{Condition, Predicate, Presence, Rule, RuleLevel};
use super::types::KeywordType;
use super::words::Vocabulary;
use super::{CatalogRoles, Inner, optional};
use crate::compression::Compression;
use crate::key::{KeyValue, LEVELS, Names};
use crate::nearest::did_you_mean;
use crate::sync::Mutex;
use crate::{Code, Error, Result};

/// Types in force inside some brackets, innermost last.
type Scope = Vec<(Arc<str>, KeywordType)>;

/// The common part of the rules of one section.
struct Section {
    /// The index of its first type.
    types: usize,
    roles: Arc<CatalogRoles>,
}

/// Parses a schema. Line numbers in errors count from `origin`, if the parsed text begins there.
pub(super) fn parse(text: &str, origin: usize) -> Result<Inner> {
    let mut parser = Parser { text, origin, at: 0, ids: HashMap::new() };
    let mut scope = Scope::new();
    let mut compression = None;
    let mut rules = Vec::new();
    let mut section = Section { types: 0, roles: Arc::default() };
    loop {
        section = parser.section(&mut scope, &section.roles, &mut compression, &mut rules)?;
        if matches!(parser.peek(), None | Some('[' | ']')) || parser.is_extension()? {
            break;
        }
    }
    let loose = loose(&parser.ids, &rules, &scope);
    let (mut parts, mut last) = (vec![rules.len()], None);
    while let Some(place) = parser.extension()? {
        parser.part(&section, &mut scope, &mut rules)?;
        parts.push(rules.len());
        last = Some(place);
    }
    if parser.peek().is_some() {
        return Err(parser.error("expected `[` or the end of the schema"));
    }
    let older = last.map(|place| parse(&text[..place], origin).map(Arc::new)).transpose()?;
    let mut params: Vec<Arc<str>> = Vec::new();
    let used = rules.iter().flat_map(Rule::predicates).map(|p| (&p.name, p.kind));
    for (name, kind) in scope.iter().map(|(name, kind)| (name, *kind)).chain(used) {
        if kind == KeywordType::Param && !params.contains(name) {
            params.push(name.clone());
        }
    }
    let mut roles: Vec<Arc<CatalogRoles>> = Vec::new();
    for rule in &rules {
        if !roles.contains(&rule.roles) {
            roles.push(rule.roles.clone());
        }
    }
    Ok(Inner {
        text: text.to_owned(),
        roles,
        compression,
        loose,
        ids: parser.ids,
        params,
        types: scope,
        rules,
        parts,
        older,
        open_names: Mutex::new(Vec::new()),
    })
}

fn check_roles(
    parser: &Parser<'_>,
    roles: &CatalogRoles,
    places: Vec<(usize, Arc<str>)>,
    rules: &[Rule],
) -> Result<()> {
    for (place, keyword) in places {
        let known =
            |k: &str| rules.iter().any(|r: &Rule| r.predicates().any(|p| &*p.name == k) || r.open.is_some());
        if !known(&keyword) {
            return Err(parser.error_at(place, &format!("no rule has `{keyword}`")));
        }
        let first = rules.iter().any(|r: &Rule| r.levels[0].names.contains(&keyword));
        if roles.run.len() > 1 && roles.run.contains(&keyword) && !first {
            return Err(parser
                .error_at(place, &format!("no rule has `{keyword}` in its first level"))
                .with_hint("a run of several keywords uses those of a rule's first level"));
        }
    }
    Ok(())
}

/// Keywords of a schema of MARS keys that have a vocabulary but no type in the schema.
fn loose(ids: &HashMap<Arc<str>, usize>, rules: &[Rule], types: &Scope) -> Vec<(Arc<str>, Vocabulary)> {
    if !["class", "expver", "stream", "type"].iter().all(|keyword| ids.contains_key(*keyword)) {
        return Vec::new();
    }
    let untyped = |keyword: &str| {
        !types.iter().any(|(name, _)| &**name == keyword)
            && !rules
                .iter()
                .flat_map(Rule::predicates)
                .any(|p| &*p.name == keyword && p.kind != KeywordType::Text)
    };
    let found = ["class", "type", "stream", "levtype", "domain"].iter().filter_map(|keyword| {
        let (name, _) = ids.get_key_value(*keyword)?;
        let (_, vocabulary) = Vocabulary::ALL.iter().find(|(known, _)| known == keyword)?;
        untyped(keyword).then(|| (name.clone(), *vocabulary))
    });
    found.collect()
}

struct Parser<'a> {
    text: &'a str,
    /// The position from which line numbers in errors count.
    origin: usize,
    at: usize,
    ids: HashMap<Arc<str>, usize>,
}

impl<'a> Parser<'a> {
    /// Parses `extension;` if it is here, and returns its position.
    fn extension(&mut self) -> Result<Option<usize>> {
        let (start, place) = (self.at, self.place());
        if !matches!(self.keyword(), Ok(word) if &*word == "extension") || self.peek() != Some(';') {
            self.at = start;
            return Ok(None);
        }
        self.take(';')?;
        Ok(Some(place))
    }

    fn is_extension(&mut self) -> Result<bool> {
        let start = self.at;
        let found = self.extension()?.is_some();
        self.at = start;
        Ok(found)
    }

    /// Parses one section: declarations, then rules. `roles` are those of the section before it.
    fn section(
        &mut self,
        scope: &mut Scope,
        roles: &Arc<CatalogRoles>,
        compression: &mut Option<Compression>,
        rules: &mut Vec<Rule>,
    ) -> Result<Section> {
        let (types, first) = (scope.len(), rules.len());
        let (mut own, mut places) = (CatalogRoles::default(), Vec::new());
        loop {
            match self.peek() {
                Some('[') => break,
                None if first > 0 => return Err(self.error("expected a rule after these declarations")),
                None => {
                    return Err(self
                        .error("the schema has no rule")
                        .with_hint("a schema ends with a rule of three levels: [run [variable [step]]]"));
                }
                Some(_) if self.setting(compression)? => {}
                Some(_) => self.declaration(scope, types, &mut own, &mut places)?,
            }
        }
        let roles = if places.is_empty() { roles.clone() } else { Arc::new(own) };
        let section = Section { types, roles };
        self.rules(&section, scope, rules)?;
        check_roles(self, &section.roles, places, rules.get(first..).unwrap_or_default())?;
        Ok(section)
    }

    /// Parses the text after `extension;`.
    fn part(&mut self, section: &Section, scope: &mut Scope, rules: &mut Vec<Rule>) -> Result<()> {
        let (own, before) = (scope.len(), rules.len());
        let mut named: Vec<(usize, Arc<str>, Option<KeywordType>)> = Vec::new();
        while self.peek().is_some_and(|c| c != '[') {
            let start = self.at;
            if self.extension()?.is_some() {
                self.at = start;
                break;
            }
            let place = self.place();
            let word = self.keyword()?;
            match self.peek() {
                Some('?') => {
                    self.take('?')?;
                    let kind = match self.peek() {
                        Some(':') => {
                            self.take(':')?;
                            Some(self.kind()?)
                        }
                        _ => None,
                    };
                    self.take(';')?;
                    named.push((place, word, kind));
                }
                Some(':') => {
                    self.at = start;
                    let (roles, places) = (&mut CatalogRoles::default(), &mut Vec::new());
                    self.declaration(scope, own, roles, places)?;
                }
                _ => {
                    return Err(self
                        .error_at(place, "expected a type, an optional keyword or a rule")
                        .with_hint(
                            "write `number?: Integer;` or a rule; roles and compression stay as they are",
                        ));
                }
            }
        }
        let mut added = Vec::new();
        for (place, name, kind) in named {
            let types = scope.iter().skip(section.types);
            let declared = types.rev().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
            let kind = kind.or(declared).unwrap_or(KeywordType::Text);
            if kind.part_of_date().is_some() {
                return Err(self.error_at(place, "a part of a date is not a keyword of its own"));
            }
            let name_id = self.id(&name);
            added.push(Predicate {
                source: name.clone(),
                source_id: name_id,
                name,
                name_id,
                kind,
                presence: Presence::Optional(KeyValue::Absent),
                condition: None,
            });
        }
        optional::with_optional(rules, added, scope.len())?;
        self.rules(section, scope, rules)?;
        if rules.len() == before {
            return Err(self
                .error("the extension has no rule and no optional keyword")
                .with_hint("write `number?: Integer;`, or a rule of three levels"));
        }
        Ok(())
    }

    fn rules(&mut self, section: &Section, scope: &Scope, rules: &mut Vec<Rule>) -> Result<()> {
        let own = scope.get(section.types..).unwrap_or_default().to_vec();
        while self.peek() == Some('[') {
            self.rule(&own, (section, scope.len()), &mut Vec::new(), rules)?;
        }
        Ok(())
    }

    /// Parses `compression = …;` if it is here; a declaration with `:` gives a keyword of that name a type instead.
    fn setting(&mut self, compression: &mut Option<Compression>) -> Result<bool> {
        let (start, place) = (self.at, self.place());
        if !matches!(self.keyword(), Ok(word) if &*word == "compression") || self.peek() != Some('=') {
            self.at = start;
            return Ok(false);
        }
        self.take('=')?;
        let value_place = self.place();
        let rest = &self.text[self.at..];
        let Some(end) = rest.find([';', '\n']) else { return Err(self.error("expected `;`")) };
        let found = Compression::parse(rest[..end].trim())
            .map_err(|e| self.error_at(value_place, e.message()).with_hint("use none, zstd or zstd:LEVEL"))?;
        self.at += end;
        self.take(';')?;
        if compression.replace(found).is_some() {
            return Err(self.error_at(place, "`compression` is set twice"));
        }
        Ok(true)
    }

    /// Parses a declaration. `own` is the index of the first type of this part.
    fn declaration(
        &mut self,
        scope: &mut Scope,
        own: usize,
        roles: &mut CatalogRoles,
        role_places: &mut Vec<(usize, Arc<str>)>,
    ) -> Result<()> {
        let mut place = self.place();
        let mut word = self.keyword()?;
        if &*word == "catalog" && self.peek() != Some(':') {
            place = self.place();
            word = self.keyword()?;
        }
        if self.peek() == Some('=') {
            self.take('=')?;
            return self.role(place, &word, roles, role_places);
        }
        self.take(':')?;
        let kind = self.kind()?;
        if scope.iter().skip(own).any(|(name, _)| *name == word) {
            return Err(self.error_at(place, &format!("`{word}` has two types")));
        }
        scope.push((word, kind));
        self.take(';')
    }

    /// Parses the text after `role =`.
    fn role(
        &mut self,
        place: usize,
        word: &str,
        roles: &mut CatalogRoles,
        role_places: &mut Vec<(usize, Arc<str>)>,
    ) -> Result<()> {
        let known = ["project", "run", "step", "variable"];
        if !known.contains(&word) {
            return Err(self
                .error_at(place, &format!("`{word}` is not a role of the catalog"))
                .with_hint("the roles are project, run, step and variable"));
        }
        let mut keywords: Vec<Arc<str>> = Vec::new();
        loop {
            let keyword_place = self.place();
            let keyword = self.keyword()?;
            if keywords.contains(&keyword) {
                return Err(self.error_at(keyword_place, &format!("`{keyword}` is named twice")));
            }
            keywords.push(keyword.clone());
            role_places.push((keyword_place, keyword));
            if word != "run" || self.peek() != Some('/') {
                break;
            }
            self.take('/')?;
        }
        let one = keywords.first().cloned();
        let before = match word {
            "run" => !std::mem::replace(&mut roles.run, keywords).is_empty(),
            "step" => std::mem::replace(&mut roles.step, one).is_some(),
            "variable" => std::mem::replace(&mut roles.variable, one).is_some(),
            _ => std::mem::replace(&mut roles.project, one).is_some(),
        };
        if before {
            return Err(self.error_at(place, &format!("the role `{word}` is given twice")));
        }
        self.take(';')
    }

    /// Parses one pair of brackets: `path` holds the levels around it; the types up to the number next to the section
    /// are in force outside of them.
    fn rule(
        &mut self,
        scope: &Scope,
        outside: (&Section, usize),
        path: &mut Vec<Arc<RuleLevel>>,
        rules: &mut Vec<Rule>,
    ) -> Result<()> {
        let place = self.place();
        if path.len() == LEVELS {
            return Err(self
                .error("a rule has three levels, but this is a fourth")
                .with_hint("move these keywords into the third level"));
        }
        self.take('[')?;
        let mut scope = scope.clone();
        let mut level = RuleLevel { predicates: Vec::new(), names: Arc::from([]), open: false };
        while !matches!(self.peek(), Some('[' | ']') | None) {
            self.predicate(&mut scope, &mut level)?;
            match self.peek() {
                Some(',') => self.take(',')?,
                Some('[' | ']') | None => {}
                Some(_) => return Err(self.error("expected `,`, `[` or `]`")),
            }
        }
        level.names =
            level.predicates.iter().filter(|p| p.visible()).map(|p| p.name.clone()).collect::<Names>();
        path.push(Arc::new(level));
        let deeper = self.peek() == Some('[');
        while self.peek() == Some('[') {
            self.rule(&scope, outside, path, rules)?;
        }
        self.take(']')?;
        if path.len() < LEVELS && !deeper {
            return Err(self
                .error_at(
                    place,
                    &format!("a rule has three levels, but this one ends at level {}", path.len()),
                )
                .with_hint("nest them: [dataset keywords [index keywords [field keywords]]]"));
        }
        if let Ok(levels) = <[Arc<RuleLevel>; LEVELS]>::try_from(path.clone()) {
            let open: Vec<usize> = (0..LEVELS).filter(|l| levels[*l].open).collect();
            if open.len() > 1 {
                return Err(self.error_at(place, "a rule has `*` at more than one level"));
            }
            let (section, end) = outside;
            let (types, roles) = (section.types..end, section.roles.clone());
            rules.push(Rule { levels, open: open.first().copied(), types, roles });
        }
        path.pop();
        Ok(())
    }

    fn predicate(&mut self, scope: &mut Scope, level: &mut RuleLevel) -> Result<()> {
        let place = self.place();
        if self.peek() == Some('*') {
            self.take('*')?;
            if self.peek() == Some('?') {
                self.take('?')?;
            }
            level.open = true;
            return Ok(());
        }
        let source = self.keyword()?;
        let mut own_type = None;
        if self.peek() == Some(':') {
            self.take(':')?;
            own_type = Some(self.kind()?);
        }
        let mark = self.peek().filter(|c| matches!(c, '?' | '-' | '='));
        if let Some(mark) = mark {
            self.take(mark)?;
        }
        let value_place = self.place();
        let values = match mark {
            Some('=') => self.values()?,
            Some(_) => self.value().into_iter().collect(),
            None => Vec::new(),
        };
        if own_type.is_none() && mark == Some('?') && self.peek() == Some(':') {
            self.take(':')?;
            own_type = Some(self.kind()?);
        }
        if let Some(kind) = own_type {
            scope.push((source.clone(), kind));
        }
        let kind =
            scope.iter().rev().find(|(name, _)| *name == source).map_or(KeywordType::Text, |(_, kind)| *kind);
        let canonical = |text: &str| {
            kind.canonical(&source, text)
                .map_err(|e| e.context(format!("schema {}", self.line_and_column(value_place))))
        };
        let first = values.first().map(|v| canonical(v));
        let (presence, condition) = match mark {
            Some('?') => (Presence::Optional(first.unwrap_or(Ok(KeyValue::Absent))?), None),
            Some('-') => (Presence::Hidden(first.transpose()?), None),
            Some(_) => (Presence::Required, Some(self.condition(value_place, &values, canonical)?)),
            None => (Presence::Required, None),
        };
        let name: Arc<str> = match kind.part_of_date() {
            Some(part) if &*source == "date" => part.into(),
            _ => source.clone(),
        };
        if level.predicates.iter().any(|p| p.name == name) {
            return Err(self.error_at(place, &format!("`{name}` occurs twice in one level")));
        }
        let source: Arc<str> = if kind.part_of_date().is_some() { "date".into() } else { source };
        let (name_id, source_id) = (self.id(&name), self.id(&source));
        level.predicates.push(Predicate { name, name_id, source, source_id, kind, presence, condition });
        Ok(())
    }

    fn condition(
        &self,
        place: usize,
        values: &[String],
        canonical: impl Fn(&str) -> Result<KeyValue>,
    ) -> Result<Condition> {
        // One `!` in front excludes the whole list; FDB users also repeat it.
        let exclude = values.first().is_some_and(|v| v.starts_with('!'));
        if !exclude && values.iter().any(|v| v.starts_with('!')) {
            return Err(self
                .error_at(place, "a value with `!` follows one without")
                .with_hint("write k=!a/b for any value but a and b"));
        }
        let values =
            values.iter().map(|v| canonical(v.strip_prefix('!').unwrap_or(v))).collect::<Result<_>>()?;
        Ok(Condition { exclude, values })
    }

    fn id(&mut self, keyword: &Arc<str>) -> usize {
        let next = self.ids.len();
        *self.ids.entry(keyword.clone()).or_insert(next)
    }

    fn kind(&mut self) -> Result<KeywordType> {
        let place = self.place();
        let word = self.keyword()?;
        KeywordType::parse(&word).ok_or_else(|| {
            let names = KeywordType::ALL.iter().map(|(name, _)| *name);
            let hint = did_you_mean(&word, names.clone())
                .unwrap_or_else(|| format!("the types are {}", names.collect::<Vec<_>>().join(", ")));
            self.error_at(place, &format!("`{word}` is not a type")).with_hint(hint)
        })
    }

    fn values(&mut self) -> Result<Vec<String>> {
        let mut values = Vec::new();
        loop {
            let Some(value) = self.value() else {
                return Err(self.error("expected a value"));
            };
            values.push(value);
            if self.peek() != Some('/') {
                return Ok(values);
            }
            self.take('/')?;
        }
    }

    /// A bare value of a default or condition, if there is one here.
    fn value(&mut self) -> Option<String> {
        self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_whitespace() || "/,;:[]?#=".contains(c)).unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| rest[..end].to_owned())
    }

    fn keyword(&mut self) -> Result<Arc<str>> {
        self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_.".contains(c))).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("expected a keyword"));
        }
        self.at += end;
        Ok(rest[..end].into())
    }

    /// The next character that is neither white space nor comment.
    fn peek(&mut self) -> Option<char> {
        loop {
            let rest = &self.text[self.at..];
            let c = rest.chars().next()?;
            if c == '#' {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if c.is_whitespace() {
                self.at += c.len_utf8();
            } else {
                return Some(c);
            }
        }
    }

    fn take(&mut self, expected: char) -> Result<()> {
        if self.peek() != Some(expected) {
            return Err(self.error(&format!("expected `{expected}`")));
        }
        self.at += expected.len_utf8();
        Ok(())
    }

    fn place(&mut self) -> usize {
        self.peek();
        self.at
    }

    fn error(&mut self, what: &str) -> Error {
        let found = match self.peek() {
            Some(c) => format!("{what}, found `{c}`"),
            None => format!("{what}, found the end"),
        };
        self.error_at(self.at, &found)
    }

    fn error_at(&self, place: usize, what: &str) -> Error {
        Code::SchemaSyntax.error(format!("schema {}: {what}", self.line_and_column(place)))
    }

    fn line_and_column(&self, place: usize) -> String {
        let from = self.origin.min(place);
        crate::request::line_and_column(&self.text[from..], place - from)
    }
}
