//! Characters and words of a query, and errors that point at them.

use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, Result};

use super::DEPTH;

/// Characters of a line that an error shows.
const SHOWN: usize = 72;

/// A position in the text of a query.
#[derive(Debug, Clone)]
pub(super) struct Scan<'a> {
    text: &'a str,
    pub at: usize,
    depth: usize,
}

/// Whether a character may be in a keyword or the bare name of a dimension.
pub(super) fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a character ends a bare word.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "(),=<>\"'".contains(c)
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a str) -> Scan<'a> {
        Scan { text, at: 0, depth: 0 }
    }

    /// The text that was read since a position.
    pub fn text_from(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or("")
    }

    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Skips white space; returns the next character.
    pub fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Consumes `expected` if it is next.
    pub fn takes(&mut self, expected: char) -> bool {
        let there = self.peek() == Some(expected);
        if there {
            self.at += expected.len_utf8();
        }
        there
    }

    pub fn take(&mut self, expected: char) -> Result<()> {
        if self.takes(expected) { Ok(()) } else { Err(self.expected(&format!("`{expected}`"))) }
    }

    /// Consumes letters, digits and `_`.
    pub fn ident(&mut self) -> &'a str {
        self.peek();
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !is_ident(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// The next keyword, without consuming it.
    pub fn peek_ident(&mut self) -> &'a str {
        let start = self.at;
        let word = self.ident();
        self.at = start;
        word
    }

    /// Consumes a keyword, in any case, if it is next.
    pub fn keyword(&mut self, word: &str) -> bool {
        let start = self.at;
        let there = self.ident().eq_ignore_ascii_case(word);
        if !there {
            self.at = start;
        }
        there
    }

    /// Consumes a bare word: up to white space, a parenthesis, a comma, a quote, or one of `= < >`; empty for
    /// none.
    pub fn bare(&mut self) -> &'a str {
        self.peek();
        let rest = self.rest();
        let word = &rest[..rest.find(ends_word).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// Consumes quoted text, with JSON's escapes, if it is next.
    pub fn quoted(&mut self) -> Result<Option<String>> {
        let Some(quote @ ('"' | '\'')) = self.peek() else { return Ok(None) };
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let place = self.at;
            match self.next() {
                None => {
                    return Err(self.error_at(start, "the quote has no end").with_hint(format!(
                        "end it with {quote}; write \\{quote} for a {quote} in the text"
                    )));
                }
                Some(c) if c == quote => return Ok(Some(text)),
                Some('\\') => text.push(self.escape(place)?),
                Some(c) => text.push(c),
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
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
                Some(high @ 0xd800..0xdc00) if self.rest().starts_with("\\u") => {
                    self.at += 2;
                    let low = self.hex().filter(|low| (0xdc00..0xe000).contains(low));
                    low.and_then(|low| char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))
                }
                Some(code) => char::from_u32(code),
                None => None,
            },
            _ => None,
        };
        c.ok_or_else(|| {
            self.error_at(place, "the escape is not one of JSON")
                .with_hint("write a backslash in quotes twice")
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let four = self.rest().get(..4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(four, 16).ok()
    }

    /// Runs `inner` one level deeper; refuses excessive nesting.
    pub fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH {
            let message = format!("more than {DEPTH} levels of nesting");
            return Err(self.error_at(self.at, &message).with_hint("ask for less in one query"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// An error that says what should be here, and what is.
    pub fn expected(&mut self, what: &str) -> Error {
        let found = match self.peek() {
            None => "found the end".to_owned(),
            Some(_) => {
                let mut word: String = self.rest().chars().take_while(|c| is_ident(*c)).take(24).collect();
                if word.is_empty() {
                    word = self.rest().chars().take(1).collect();
                }
                format!("found `{word}`")
            }
        };
        self.error_at(self.at, &format!("expected {what}, {found}"))
    }

    /// An error about an unknown word, with the known words that are similar.
    pub fn unknown(&self, place: usize, what: &str, word: &str, known: &[&str]) -> Error {
        let hint = did_you_mean(word, known.iter().copied())
            .unwrap_or_else(|| format!("known: {}", known.join(", ")));
        let shown: String = word.chars().take(40).collect();
        self.error_at(place, &format!("`{shown}` is not a known {what}")).with_hint(hint)
    }

    /// An error about the character at `place`: shows the line, and a caret below the character.
    pub fn error_at(&self, place: usize, what: &str) -> Error {
        let before = self.text.get(..place).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[line_start..].split('\n').next().unwrap_or("");
        let column = before[line_start..].chars().count();
        let first = column.saturating_sub(SHOWN * 2 / 3);
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = line.chars().skip(first).take(SHOWN).map(clean).collect();
        let (left, right) = (
            if first > 0 { "…" } else { "" },
            if line.chars().nth(first + SHOWN).is_some() { "…" } else { "" },
        );
        let caret = " ".repeat(column - first + left.chars().count());
        let place = match before.matches('\n').count() {
            0 => format!("character {}", column + 1),
            lines => format!("line {}, character {}", lines + 1, column + 1),
        };
        Code::QuerySyntax.error(format!("query, {place}: {what}\n  {left}{shown}{right}\n  {caret}^"))
    }
}
