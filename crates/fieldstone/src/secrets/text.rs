//! Secrets inside a text: after names, in headers, in URLs.

use std::ops::Range;

use super::names::{Suspicion, is_one, suspicion};

/// Minimum length of a user name in a URL that may be a token.
const TOKEN_MIN: usize = 16;
/// Authentication schemes, which stand between the name of a header and the secret.
const SCHEMES: [&str; 12] = [
    "bearer",
    "basic",
    "token",
    "digest",
    "apikey",
    "key",
    "negotiate",
    "ntlm",
    "sharedkey",
    "oauth",
    "bot",
    "aws4-hmac-sha256",
];
/// Words before `:` that are not users.
const NO_USERS: [&str; 12] =
    ["mailto", "acct", "sip", "sips", "xmpp", "npm", "doi", "urn", "pkg", "file", "tag", "cid"];

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// One argument: the text after `name=` at its beginning is one value, including spaces.
    Argument,
    /// A line, code or prose: `$NAME` and `$(…)` are references there.
    Line,
}

/// The secrets of a text that follow a telling name.
pub fn secrets(text: &str, kind: TextKind, found: &mut Vec<Range<usize>>) {
    named(text, kind, found);
    identified(text, found);
    in_urls(text, found);
    accounts(text, found);
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Whether a character ends a value in a text.
fn ends_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '&' | ';' | ',' | ')' | '}' | ']' | '|' | '<' | '>')
}

/// The values after names of secrets.
fn named(text: &str, kind: TextKind, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(begin) = text[at..].find(is_name).map(|offset| at + offset) {
        let end = text[begin..].find(|c| !is_name(c)).map_or(text.len(), |offset| begin + offset);
        at = end;
        let name = &text[begin..end];
        let in_query = text[..begin].ends_with(['?', '&']);
        let suspicion = match suspicion(name) {
            Suspicion::None => continue,
            // A name in a URL's query is not a word of a language.
            Suspicion::Possible if in_query && !name.eq_ignore_ascii_case("key") => Suspicion::Likely,
            known => known,
        };
        if let Some(value) = header(text, name, end) {
            at = value.end.max(at);
            found.push(value);
            continue;
        }
        let Some(value) = value_behind(text, (begin, end), kind) else { continue };
        let words = &text[value.clone()];
        let is_code = kind == TextKind::Line || (begin > 0 && text.contains(char::is_whitespace));
        if is_one(suspicion, name, words) && !(is_code && is_reference(words)) {
            at = value.end.max(at);
            found.push(value);
        }
    }
}

/// The password of SQL's `IDENTIFIED BY 'password'`.
fn identified(text: &str, found: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase();
    for (at, name) in lower.match_indices("identified by ") {
        let value = text[at + name.len()..].trim_start();
        let (open, length) = length_of(value, false);
        let begin = text.len() - value.len() + open;
        found.push(begin..begin + length);
    }
}

/// The value of an HTTP header after its name: all of it, except the authentication scheme.
fn header(text: &str, name: &str, end: usize) -> Option<Range<usize>> {
    let name = name.to_ascii_lowercase();
    if !(name.ends_with("authorization") || name.ends_with("cookie")) {
        return None;
    }
    let value = text[end..].strip_prefix(':')?.trim_start();
    let begin = text.len() - value.len();
    // It ends with the line, or with the quote that encloses the header.
    let length = value.find(['"', '\'', '\n', '\r', '`']).unwrap_or(value.len());
    let value = value[..length].trim_end();
    let first = value.split_whitespace().next().unwrap_or_default();
    let is_scheme = SCHEMES.contains(&first.to_ascii_lowercase().as_str());
    let rest = if is_scheme { value[first.len()..].trim_start() } else { value };
    let stop = begin + value.len();
    (!rest.is_empty()).then_some(stop - rest.len()..stop)
}

/// The value of a name at `begin..end`.
fn value_behind(text: &str, (begin, end): (usize, usize), kind: TextKind) -> Option<Range<usize>> {
    let rest = &text[end..];
    if begin == 0 && rest.starts_with('=') && kind == TextKind::Argument {
        // The rest of the argument, including spaces.
        return Some(end + 1..text.len());
    }
    // "name": "value" has a quote before the colon, which a backslash may escape.
    let behind = rest.trim_start_matches(['"', '\'', '\\', ']']);
    let quoted = behind.len() < rest.len();
    let spaced = behind.trim_start_matches([' ', '\t']);
    let value = match spaced.chars().next()? {
        // `==`, `=>` and `:=` also introduce values.
        '=' => spaced.trim_start_matches(['=', '>', '~']).trim_start_matches([' ', '\t']),
        ':' if quoted || spaced.len() == behind.len() || spaced[1..].starts_with('=') => {
            spaced[1..].trim_start_matches('=').trim_start()
        }
        // setenv("NAME", "value") has a comma, SQL's PASSWORD 'value' nothing.
        ',' if text[..begin].trim_end_matches(['"', '\'']).ends_with('(')
            && spaced[1..].trim_start().starts_with(['"', '\'']) =>
        {
            spaced[1..].trim_start()
        }
        '"' | '\'' if !quoted && spaced.len() < behind.len() => spaced,
        _ => return None,
    };
    // `::` separates names, and a URL's scheme is not the name of a secret.
    if value.starts_with(':') || value.starts_with("//") {
        return None;
    }
    let escaped = value.strip_prefix('\\').filter(|value| value.starts_with(['"', '\'']));
    let value = escaped.unwrap_or(value);
    // Python's b"…", r"…", f"…".
    let value = match value.chars().next() {
        Some('b' | 'r' | 'f' | 'u') if value[1..].starts_with(['"', '\'']) => &value[1..],
        _ => value,
    };
    let (open, length) = length_of(value, escaped.is_some());
    let start = text.len() - value.len() + open;
    Some(start..start + length)
}

/// Number of bytes before a value, and its length: to the closing quote or bracket, else to the end of the word.
fn length_of(value: &str, escaped: bool) -> (usize, usize) {
    let open = value.chars().next().unwrap_or(' ');
    let close = match open {
        '"' | '\'' => {
            let tripled = value.starts_with(&open.to_string().repeat(3));
            let begin = if tripled { 3 } else { 1 };
            let length = quoted(&value[begin..], open, escaped);
            return (begin, length);
        }
        '(' => ')',
        '[' => ']',
        '{' => '}',
        _ => {
            let mut before = ' ';
            let mut ends = |c: char| {
                let ends = ends_value(c) && before != '\\';
                before = c;
                ends
            };
            return (0, value.find(&mut ends).unwrap_or(value.len()));
        }
    };
    (1, value[1..].find(close).unwrap_or(value.len() - 1))
}

/// The place where a quote closes; a backslash before one escapes it, unless the quotes are escaped themselves.
fn quoted(value: &str, quote: char, escaped: bool) -> usize {
    let mut before = ' ';
    for (at, c) in value.char_indices() {
        if c == quote && (before != '\\' || escaped) {
            return if escaped { at.saturating_sub(1) } else { at };
        }
        before = if before == '\\' { ' ' } else { c };
    }
    value.len()
}

/// Whether a value is a reference in code: `$NAME`, `${NAME}`, `$(command)`.
pub fn is_reference(value: &str) -> bool {
    let Some(rest) = value.strip_prefix('$') else { return false };
    let named = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    rest.starts_with('(')
        || (rest.starts_with('{')
            && !rest[1..].contains(|c: char| !(c.is_alphanumeric() || "_}".contains(c))))
        || (!rest.is_empty() && rest.chars().all(named))
}

/// Passwords and tokens before the host of a URL.
fn in_urls(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let begin = at + mark.len();
        let token = &text[begin..];
        let token = &token
            [..token.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(token.len())];
        let authority = &token[..token.find(['/', '?', '#']).unwrap_or(token.len())];
        let odd_port = authority.split_once(':').is_some_and(|(_, port)| {
            !port.chars().all(|c| c.is_ascii_digit()) && !authority.starts_with('[')
        });
        let user = match (authority.rfind('@'), token.rfind('@')) {
            (Some(end), _) => &authority[..end],
            // A password with a slash in it.
            (None, Some(end)) if odd_port => &token[..end],
            _ => continue,
        };
        if user.contains(':') || user.len() >= TOKEN_MIN || super::names::is_random(user) {
            found.push(begin..begin + user.len());
        }
    }
}

/// `user:password@host` without a scheme.
fn accounts(text: &str, found: &mut Vec<Range<usize>>) {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | '(' | '[' | '{' | '<' | '`' | ';')
    };
    for (at, _) in text.match_indices('@') {
        let begin = text[..at]
            .rfind(ends)
            .map_or(0, |before| before + text[before..].chars().next().map_or(1, char::len_utf8));
        let account = &text[begin..at];
        let Some((user, password)) = account.split_once(':') else { continue };
        let host = &text[at + 1..];
        let host = &host[..host.find(|c| !is_host(c)).unwrap_or(host.len())];
        let is_version = host.chars().all(|c| c.is_ascii_digit() || c == '.') && host.split('.').count() != 4;
        let is_digest = text[at + 1 + host.len()..].starts_with(':') && host.starts_with("sha");
        let is_user = !password.starts_with('/')
            && !user.is_empty()
            && user.chars().all(|c| c.is_alphanumeric() || "_.-+%\\".contains(c))
            && user.contains(char::is_alphabetic)
            && !NO_USERS.contains(&user.to_ascii_lowercase().as_str());
        if is_user && !password.is_empty() && !host.is_empty() && !is_version && !is_digest {
            found.push(begin..at);
        }
    }
}
