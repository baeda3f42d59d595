//! Parses the text of a request.
//!
//! ```text
//! text    = request { ( verb "," | line break ) request }
//! request = [ verb [ "," ] ] [ pair { "," pair } ]  |  { "{" [ pair { "," pair } ] "}" }
//! pair    = keyword "=" ( "*" | "?*" | "!*" | item { "/" item } )
//! item    = value [ "/" "to" "/" value [ "/" "by" "/" value ] ]  |  pattern
//! value   = words, or text in double or single quotes with JSON's escapes
//! pattern = words with `*` in or beside them, such as tos* or *_mean; no range stands beside one
//! ```
//!
//! White space may separate any two tokens. Words on one line form one value, joined by a blank (`levtype = pressure
//! levels`); a word ends at any of `, / = { } * " \`. A `#` at the beginning of a word starts a comment, which ends
//! with its line.
//!
//! In a text of several requests, a line break ends a request, unless a `,`, `/` or `=` precedes or follows it.

use super::{ABSENT, Item, Request, Values, Wanted, is_keyword, is_word, line_and_column};
use crate::{Code, Error, Result};

const VERBS: [&str; 16] = [
    "retrieve", "archive", "list", "read", "get", "wipe", "purge", "axes", "stage", "where", "dump", "stats",
    "status", "verify", "copy", "move",
];

pub(super) fn parse(text: &str) -> Result<Request> {
    let mut parser = Parser { text, at: 0, end: 0, many: false };
    let request = parser.request()?.1;
    match parser.peek() {
        None => Ok(request),
        Some(_) => Err(parser
            .error("expected one request, but another begins here")
            .with_hint("pass a text of several requests to a call that takes a list of requests")),
    }
}

/// The requests of a text, each with the keywords that it inherits from earlier requests with its verb.
pub(super) fn parse_many(text: &str) -> Result<Vec<Request>> {
    let mut parser = Parser { text, at: 0, end: 0, many: true };
    let mut last: Vec<(String, Request)> = Vec::new();
    let mut all = Vec::new();
    while parser.peek().is_some() {
        let (verb, own) = parser.request()?;
        let known = last.iter().position(|(v, _)| Some(v) == verb.as_ref());
        let mut request = known.map_or_else(Request::new, |i| last[i].1.clone());
        let mut given = Request::new();
        for (keyword, values) in own.pairs {
            let before = request.pairs.len();
            request.pairs.retain(|(k, _)| !k.eq_ignore_ascii_case(&keyword));
            let inherited = request.pairs.len() < before;
            // If nothing was inherited, the schema decides whether `off` is a value.
            if !(inherited && is_off(&values)) {
                given.add(keyword, values, false)?;
            }
        }
        // A keyword that one request gives twice, also in capitals, stays twice: the schema refuses that.
        request.pairs.append(&mut given.pairs);
        match (known, verb) {
            (Some(i), _) => last[i].1 = request.clone(),
            (None, Some(verb)) => last.push((verb, request.clone())),
            (None, None) => {}
        }
        all.push(request);
    }
    Ok(all)
}

fn is_off(values: &Values) -> bool {
    matches!(values, Values::List(items) if matches!(&items[..], [Item::One(word)] if is_word(word, "off")))
}

/// A value in the text; a bare one may be a word of the language, or a pattern.
struct Value {
    text: String,
    bare: bool,
}

impl Value {
    fn is(&self, word: &str) -> bool {
        self.bare && is_word(&self.text, word)
    }

    fn is_pattern(&self) -> bool {
        self.bare && self.text.contains('*')
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// The end of the last value.
    end: usize,
    /// Whether a line break ends a request.
    many: bool,
}

impl Parser<'_> {
    /// One request and its verb, in lower case.
    fn request(&mut self) -> Result<(Option<String>, Request)> {
        let mut request = Request::new();
        if self.peek() == Some('{') {
            while self.peek().is_some() && !self.at_verb() {
                self.take('{')?;
                // A keyword of several levels keeps the value of its deepest level, the most precise.
                self.pairs(Some('}'), |keyword, values| request.add(keyword, values, true))?;
                self.take('}')?;
                self.end = self.at;
                if self.at_new_line() {
                    break;
                }
            }
            return Ok((None, request));
        }
        let verb = self.verb()?;
        self.pairs(None, |keyword, values| request.add(keyword, values, false))?;
        Ok((verb, request))
    }

    /// Parses a MARS verb and its comma, if they are here.
    fn verb(&mut self) -> Result<Option<String>> {
        self.peek();
        let start = self.at;
        let word = self.word().to_ascii_lowercase();
        if VERBS.contains(&word.as_str()) {
            match self.peek() {
                Some(',') => {
                    self.take(',')?;
                    return Ok(Some(word));
                }
                None => return Ok(Some(word)),
                Some(_) => {}
            }
        }
        self.at = start;
        Ok(None)
    }

    /// Whether another request begins here.
    fn at_verb(&mut self) -> bool {
        let start = self.at;
        let found = matches!(self.verb(), Ok(Some(_)));
        self.at = start;
        found
    }

    /// Whether a request begins here because a line did.
    fn at_new_line(&mut self) -> bool {
        let more = self.peek().is_some();
        more && self.many && self.text.get(self.end..self.at).is_some_and(|between| between.contains('\n'))
    }

    fn pairs(&mut self, end: Option<char>, mut add: impl FnMut(String, Values) -> Result<()>) -> Result<()> {
        while self.peek() != end {
            let place = self.at;
            let keyword = self.one(false)?;
            if !keyword.bare || !is_keyword(&keyword.text) {
                // Quoted keywords exist so that every request can be printed; no schema has one.
                if keyword.bare {
                    return Err(self.error_at(place, &format!("`{}` cannot be a keyword", keyword.text)));
                }
            }
            if self.peek() != Some('=') {
                return Err(self.error(&format!("expected `=` after `{}`", keyword.text)));
            }
            self.take('=')?;
            let values = self.values(&keyword.text)?;
            add(keyword.text, values)
                .map_err(|e| e.context(format!("request {}", line_and_column(self.text, place))))?;
            match self.peek() {
                found if found == end => break,
                Some(',') => self.take(',')?,
                Some(_) if end.is_none() && (self.at_verb() || self.at_new_line()) => break,
                Some('=') => {
                    return Err(self
                        .error("expected `,` or `/`")
                        .with_hint("separate pairs by a comma, and quote a value that contains ="));
                }
                Some(_) => {
                    return Err(self
                        .error("expected `,` or `/`")
                        .with_hint("quote a value that contains white space or one of , / = { } *"));
                }
                None => return Err(self.error("expected `}`")),
            }
        }
        Ok(())
    }

    fn values(&mut self, keyword: &str) -> Result<Values> {
        if self.at_star() {
            self.take('*')?;
            self.end = self.at;
            return Ok(Values::Any);
        }
        for (sign, values) in [("?*", Values::Present), (ABSENT, Values::Absent)] {
            if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(sign)) {
                self.at += sign.len();
                self.end = self.at;
                return Ok(values);
            }
        }
        if matches!(self.peek(), None | Some(',' | '}')) {
            return Err(self
                .error(&format!("{keyword} has no value"))
                .with_hint(format!("leave {keyword} out, or write {keyword}=* for any value")));
        }
        let mut values = vec![self.value()?];
        while self.peek() == Some('/') {
            self.take('/')?;
            values.push(self.value()?);
        }
        if values.iter().any(Value::is_pattern) {
            self.patterns(keyword, values)
        } else {
            self.items(keyword, values)
        }
    }

    /// The values of a list with at least one pattern.
    fn patterns(&self, keyword: &str, values: Vec<Value>) -> Result<Values> {
        if values.iter().any(|value| value.is("to") || value.is("by")) {
            return Err(self
                .error_at(self.at, &format!("{keyword} has both a range and a pattern"))
                .with_hint("list the values, or ask for the range alone"));
        }
        let wanted = values.into_iter().map(|value| match value.is_pattern() {
            true => Wanted::Glob(value.text),
            false => Wanted::One(value.text),
        });
        Ok(Values::Like(wanted.collect()))
    }

    /// The values and ranges of a list without patterns.
    fn items(&self, keyword: &str, values: Vec<Value>) -> Result<Values> {
        let mut items = Vec::new();
        let mut values = values.into_iter().peekable();
        while let Some(value) = values.next() {
            if !items.is_empty() && (value.is("to") || value.is("by")) {
                return Err(self
                    .error_at(self.at, &format!("{keyword} has a misplaced `{}`", value.text))
                    .with_hint("a range is a/to/b or a/to/b/by/c; quote a value that is the word itself"));
            }
            if !values.peek().is_some_and(|next| next.is("to")) {
                items.push(Item::One(value.text));
                continue;
            }
            values.next();
            let to = values.next().filter(|v| !v.is("by"));
            let mut by = None;
            if values.peek().is_some_and(|next| next.is("by")) {
                values.next();
                by = Some(values.next());
            }
            match (to, by) {
                (Some(to), None) => items.push(Item::Range { from: value.text, to: to.text, by: None }),
                (Some(to), Some(Some(by))) => {
                    items.push(Item::Range { from: value.text, to: to.text, by: Some(by.text) });
                }
                _ => {
                    return Err(self
                        .error_at(self.at, &format!("{keyword} has a range without its end or interval"))
                        .with_hint("a range is a/to/b or a/to/b/by/c"));
                }
            }
        }
        Ok(Values::List(items))
    }

    fn value(&mut self) -> Result<Value> {
        self.one(true)
    }

    /// A value in quotes, or bare: one word, or, with `many`, the words up to the end of the line.
    fn one(&mut self, many: bool) -> Result<Value> {
        if let Some(quote @ ('"' | '\'')) = self.peek() {
            let text = self.quoted(quote)?;
            self.end = self.at;
            return Ok(Value { text, bare: false });
        }
        let mut text = self.starred(many);
        if text.is_empty() {
            let error = self.error("expected a value");
            return Err(match self.peek() {
                Some('*' | '\\') => error.with_hint("quote a value that contains * or \\"),
                _ => error,
            });
        }
        if many {
            self.further_words(&mut text);
        }
        if let Some('*' | '\\' | '"') = self.text[self.at..].chars().next() {
            return Err(self
                .error(&format!("the value that begins with `{text}` does not end here"))
                .with_hint("quote a value that contains \\, \" or a * that is not a pattern"));
        }
        self.end = self.at;
        Ok(Value { text, bare: true })
    }

    /// Adds the words that follow on the same line.
    fn further_words(&mut self, text: &mut String) {
        loop {
            let start = self.at;
            let rest = &self.text[start..];
            self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let next = self.text[self.at..].chars().next();
            let word = if matches!(next, Some('#' | '\'')) { String::new() } else { self.starred(true) };
            if word.is_empty() {
                self.at = start;
                return;
            }
            text.push(' ');
            text.push_str(&word);
        }
    }

    /// Whether a `*` here is a value of its own: no character follows it directly.
    fn at_star(&mut self) -> bool {
        if self.peek() != Some('*') {
            return false;
        }
        let behind = self.text[self.at + 1..].chars().next();
        behind.is_none_or(|c| c.is_whitespace() || c.is_control() || ",/={}\"\\".contains(c))
    }

    /// A word; with `stars`, including each `*` that touches it.
    fn starred(&mut self, stars: bool) -> String {
        let mut text = self.word().to_owned();
        while stars && self.text[self.at..].starts_with('*') {
            self.at += 1;
            text.push('*');
            text.push_str(self.word());
        }
        text
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let ends = |c: char| c.is_whitespace() || c.is_control() || ",/={}*\"\\".contains(c);
        let end = rest.find(ends).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Text in quotes, with JSON's escapes; other characters mean themselves.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let start = self.at;
        self.take(quote)?;
        let mut text = String::new();
        loop {
            let place = self.at;
            let Some(c) = self.next() else {
                return Err(self.error_at(start, "the quote has no end"));
            };
            match c {
                c if c == quote => return Ok(text),
                '\\' => text.push(self.escape(place)?),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, place: usize) -> Result<char> {
        let c = match self.next() {
            Some(c @ ('"' | '\'' | '\\' | '/')) => Some(c),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('u') => match self.hex() {
                Some(high @ 0xd800..0xdc00) if self.text[self.at..].starts_with("\\u") => {
                    self.at += 2;
                    let low = self.hex().filter(|l| (0xdc00..0xe000).contains(l));
                    low.and_then(|low| char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))
                }
                Some(code) => char::from_u32(code),
                None => None,
            },
            _ => None,
        };
        c.ok_or_else(|| {
            self.error_at(place, "the escape is not one of JSON's")
                .with_hint("in quotes, write a backslash twice")
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let four = self.text.get(self.at..self.at + 4)?;
        if !four.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(four, 16).ok()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.text[self.at..].chars().next()?;
        self.at += c.len_utf8();
        Some(c)
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

    fn error(&mut self, what: &str) -> Error {
        let found = match self.peek() {
            Some(c) => format!("{what}, found `{c}`"),
            None => format!("{what}, found the end"),
        };
        self.error_at(self.at, &found)
    }

    fn error_at(&self, place: usize, what: &str) -> Error {
        Code::RequestSyntax.error(format!("request {}: {what}", line_and_column(self.text, place)))
    }
}
