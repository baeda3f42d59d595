//! The rules of the MARS language that apply before a schema's types parse values.
//!
//! * A keyword in capitals means the one in lower case, if the schema declares that (`CLASS=OD`, `Date=20260101`). If
//!   no level accepts further keywords, MARS's other names are recognised, too (`level` for `levelist`).
//! * `target` names the file for a request's answer. It selects nothing and no key has it, unless the schema declares
//!   a keyword of that name.
//! * `all` means `*`, and `off` means that the keyword is not given, for keywords without free text.
//! * `0`, `-1` ... as a date mean today, yesterday ..., in UTC.
//! * In a schema of MARS keys that leaves `class`, `type`, `stream`, `levtype` or `domain` without a type, as FDB's
//!   do, MARS's words for them ignore case and include their other names; any other text stays as it is.
//! * A parameter's name may mean another number, depending on class, stream, type and levtype.

use std::borrow::Cow;
use std::collections::HashSet;

use super::calendar::{Day, relative};
use super::param::{self, CONTEXT};
use super::select::kinds;
use super::types::KeywordType;
use super::words::Vocabulary;
use super::{Inner, calendar};
use crate::request::{Item, Request, TARGET, Values};
use crate::{Code, Result};

/// MARS's other names of keywords.
const ALIASES: [(&str, &str); 6] = [
    ("levtyp", "levtype"),
    ("leve", "levelist"),
    ("level", "levelist"),
    ("levellist", "levelist"),
    ("parameter", "param"),
    ("parameters", "param"),
];

impl Inner {
    fn declared(&self, keyword: &str) -> Option<&str> {
        if let Some((name, _)) = self.ids.get_key_value(keyword) {
            return Some(name);
        }
        self.types.iter().find(|(name, _)| &**name == keyword).map(|(name, _)| &**name)
    }

    /// The schema's spelling of a keyword.
    pub(super) fn keyword<'a>(&'a self, given: &'a str) -> &'a str {
        if self.ids.contains_key(given) || self.declared(given).is_some() {
            return given;
        }
        let capitals = given.chars().any(char::is_uppercase);
        let lower = match capitals {
            true => Cow::Owned(given.to_lowercase()),
            false => Cow::Borrowed(given),
        };
        if let Some(name) = self.declared(&lower) {
            return name;
        }
        if capitals && lower == TARGET {
            return TARGET;
        }
        // An extension does not change the earlier meaning of words.
        let first = self.parts.first().copied().unwrap_or_default();
        if self.rules.iter().take(first).any(|rule| rule.open.is_some()) {
            return given;
        }
        let alias = ALIASES.iter().find(|(other, _)| *other == lower);
        alias.and_then(|(_, name)| self.declared(name)).unwrap_or(given)
    }

    /// Whether a keyword names the file for an answer, and is not part of a key.
    pub(super) fn is_target(&self, keyword: &str) -> bool {
        keyword == TARGET && self.declared(TARGET).is_none()
    }

    /// Values of a key that must be replaced: words of untyped keywords, and names of parameters that mean another
    /// number in this context; with their positions.
    pub(super) fn rewritten(&self, pairs: &[(&str, &str)]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (i, (keyword, text)) in pairs.iter().enumerate() {
            let keyword = self.keyword(keyword);
            let given = |word: &str| pairs.iter().find(|(k, _)| self.keyword(k) == word).map(|(_, v)| *v);
            let new = match self.params.iter().any(|p| **p == *keyword) && param::is_name(text) {
                true => in_context(text, given).map(|number| number.to_string()),
                false => self.word(keyword, text),
            };
            found.extend(new.map(|new| (i, new)));
        }
        found
    }

    /// The standard word for the text of an untyped keyword.
    fn word(&self, keyword: &str, text: &str) -> Option<String> {
        let (_, vocabulary) = self.loose.iter().find(|(name, _)| **name == *keyword)?;
        vocabulary.canonical(text).filter(|word| word != text)
    }

    /// Rewrites a request into the schema's keywords and literal values.
    pub(super) fn plain(&self, request: &Request, now: Option<i64>) -> Result<Request> {
        let mut plain = Request::new();
        let mut seen = HashSet::new();
        for (keyword, values) in request.iter() {
            let keyword = self.keyword(keyword);
            if self.is_target(keyword) {
                continue;
            }
            if !seen.insert(keyword) {
                return Err(Code::KeyContradiction
                    .error(format!("`{keyword}` is given twice"))
                    .with_hint("list its values: keyword=a/b"));
            }
            let Values::List(items) = values else {
                plain.set(keyword, values.clone());
                continue;
            };
            let kinds = kinds(self, keyword)?;
            if let ([Item::One(word)], true) = (&items[..], kinds.iter().all(|kind| kind.is_closed())) {
                if word.eq_ignore_ascii_case("all") {
                    plain.set(keyword, Values::Any);
                    continue;
                }
                if word.eq_ignore_ascii_case("off") {
                    continue;
                }
            }
            let items = items.iter().map(|item| match item {
                Item::One(text) if let Some(word) = self.word(keyword, text) => Ok(Item::One(word)),
                item => plain_item(keyword, &kinds, item, now),
            });
            plain.set(keyword, Values::List(items.collect::<Result<_>>()?));
        }
        self.name_params(&mut plain);
        Ok(plain)
    }

    /// Writes the numbers of parameter names that the request's context changes.
    fn name_params(&self, request: &mut Request) {
        for keyword in &self.params {
            let Some(Values::List(items)) = request.get(keyword) else { continue };
            if !items.iter().any(|item| matches!(item, Item::One(text) if param::is_name(text))) {
                continue;
            }
            let first = |word: &str| match request.get(word)? {
                Values::List(items) => match items.first()? {
                    Item::One(text) => Some(text.as_str()),
                    Item::Range { .. } => None,
                },
                Values::Any | Values::Present | Values::Absent | Values::Like(_) => None,
            };
            let named = |item: &Item| match item {
                Item::One(text) => in_context(text, first).map(|number| Item::One(number.to_string())),
                Item::Range { .. } => None,
            };
            let items = items.iter().map(|item| named(item).unwrap_or_else(|| item.clone())).collect();
            request.set(keyword.to_string(), Values::List(items));
        }
    }
}

/// The number of a parameter's name in the context of these values of other keywords.
fn in_context<'a>(name: &str, given: impl Fn(&str) -> Option<&'a str>) -> Option<i64> {
    let context = CONTEXT.map(|keyword| {
        let (_, vocabulary) = Vocabulary::ALL.iter().find(|(name, _)| *name == keyword)?;
        vocabulary.canonical(given(keyword)?)
    });
    param::in_context(name, context.each_ref().map(Option::as_deref))
}

fn plain_item(keyword: &str, kinds: &[KeywordType], item: &Item, now: Option<i64>) -> Result<Item> {
    if !kinds.iter().any(|kind| kind.takes_relative_days()) {
        return Ok(item.clone());
    }
    let day = |text: &str| match relative(text) {
        Some(days) => day_before(keyword, text, days, now),
        None => Ok(text.to_owned()),
    };
    Ok(match item {
        Item::One(text) => Item::One(day(text)?),
        Item::Range { from, to, by } => Item::Range { from: day(from)?, to: day(to)?, by: by.clone() },
    })
}

fn day_before(keyword: &str, text: &str, days: i64, now: Option<i64>) -> Result<String> {
    let Some(now) = now else {
        return Err(Code::KeywordValue
            .error(format!("{keyword}={text} is relative to today, but this call does not know the date"))
            .with_hint("write the day itself: YYYYMMDD"));
    };
    let today = Day::at(now).map(calendar::Day::number);
    let day = today.and_then(|today| Day::from_number(today.checked_add(days)?));
    day.map(Day::text)
        .ok_or_else(|| Code::KeywordValue.error(format!("{keyword}={text} is outside the years 1 to 9999")))
}
