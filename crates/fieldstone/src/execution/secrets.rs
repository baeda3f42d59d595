//! What looks like a secret in a command line or an environment, so that it is never written.
//!
//! A secret is known by the name before it (`--password=X`, `--token X`, `API_KEY=X`, `"secret": "X"`), by where it stands
//! (`https://user:X@host`, `Bearer X`), by its shape (keys of AWS, tokens of GitHub and others, JSON web tokens,
//! private keys), or because a variable of the environment with such a name has it as its value.
//!
//! Invariants:
//! * when in doubt something is a secret: a script that asks for it once is the price (G-33);
//! * of a secret nothing is kept, neither its length nor a digest.

use std::ops::Range;

/// Stands for a secret that is not an argument.
pub const HIDDEN: &str = "***";
/// Values of the environment that are shorter may stand in an argument by chance.
const VALUE_MIN: usize = 6;
/// User names in URLs from this length on may be tokens.
const TOKEN_MIN: usize = 16;

/// Names that hold one of these, without separators, are of secrets.
const PARTS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "credential", "apikey", "accesskey", "privatekey", "jwt"];
/// So are those of which one of these is a word.
const WORDS: [&str; 7] = ["token", "tokens", "auth", "authorization", "pwd", "bearer", "cookie"];
/// Names that end in one of these say where a secret is.
const PLACES: [&str; 4] = ["file", "path", "dir", "folder"];

/// Arguments with what stands for their secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedArguments {
    /// The arguments; the k-th secret stands as `${FIELDSTONE_SECRET_k}`.
    pub argv: Vec<String>,
    /// Which arguments have any, from 0.
    pub masked: Vec<usize>,
}

/// Masks secrets in arguments. `known`: values that are secrets wherever they stand.
pub fn mask(argv: &[String], known: &[String]) -> MaskedArguments {
    let mut out = MaskedArguments::default();
    let (mut number, mut option) = (0, None);
    for (index, argument) in argv.iter().enumerate() {
        let follows = |name: &str| !argument.starts_with('-') && !is_count(name, argument);
        let is_value = option.take().is_some_and(follows);
        let ranges = if is_value { whole(argument) } else { secrets(argument, known) };
        option = Some(argument.as_str()).filter(|argument| index > 0 && is_secret_option(argument));
        let ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        if ranges.is_empty() {
            out.argv.push(argument.clone());
            continue;
        }
        let (mut text, mut at) = (String::new(), 0);
        for range in ranges {
            number += 1;
            text.push_str(&argument[at..range.start]);
            text.push_str(&format!("${{FIELDSTONE_SECRET_{number}}}"));
            at = range.end;
        }
        text.push_str(&argument[at..]);
        out.argv.push(text);
        out.masked.push(index);
    }
    out
}

/// A text in which secrets are hidden.
pub fn hide(text: &str) -> String {
    let mut out = text.to_owned();
    for range in secrets(text, &[]).into_iter().rev() {
        out.replace_range(range, HIDDEN);
    }
    out
}

/// Values of variables of the environment whose names are of secrets.
pub fn values(environment: &[(String, String)]) -> Vec<String> {
    let secret = |(name, value): &&(String, String)| value.len() >= VALUE_MIN && is_secret_name(name);
    environment.iter().filter(secret).map(|(_, value)| value.clone()).collect()
}

/// Whether what has this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    if words.last().is_some_and(|word| PLACES.contains(&word.as_str()))
        || words.first().is_some_and(|w| w == "no")
    {
        return false;
    }
    let joined = words.concat();
    let is_word =
        |word: &String| WORDS.contains(&word.as_str()) || word.ends_with("token") || word.ends_with("auth");
    let is_pass =
        words.last().is_some_and(|word| word == "pass") && (words.len() > 1 || name.starts_with("--"));
    PARTS.iter().any(|part| joined.contains(part)) || words.iter().any(is_word) || is_pass
}

/// The words of a name: `--apiKey_X` has api, key and x.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut joins, mut lower) = (false, false);
    for c in name.chars() {
        let begins = !joins || (lower && c.is_uppercase());
        joins = c.is_alphanumeric();
        lower = c.is_lowercase();
        match words.last_mut() {
            _ if !joins => {}
            Some(word) if !begins => word.extend(c.to_lowercase()),
            _ => words.push(c.to_lowercase().collect()),
        }
    }
    words
}

/// Whether a value says how many tokens there may be.
fn is_count(name: &str, value: &str) -> bool {
    name.to_lowercase().ends_with("tokens") && value.chars().all(|c| c.is_ascii_digit())
}

/// Whether an argument is an option whose value, the next argument, is a secret.
fn is_secret_option(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    argument.starts_with('-') && !name.is_empty() && name.chars().all(is_name) && is_secret_name(argument)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Where a value in the midst of a text ends.
fn ends_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '&' | ';' | ',' | ')' | '}' | ']' | '|' | '<' | '>')
}

/// All of a text.
fn whole(text: &str) -> Vec<Range<usize>> {
    std::iter::once(0..text.len()).collect()
}

/// The secrets of a text, in order and apart from one another.
fn secrets(text: &str, known: &[String]) -> Vec<Range<usize>> {
    if text.contains("PRIVATE KEY-----") {
        return whole(text);
    }
    let mut found = Vec::new();
    named(text, &mut found);
    in_urls(text, &mut found);
    shaped(text, &mut found);
    for value in known {
        found.extend(text.match_indices(value.as_str()).map(|(at, value)| at..at + value.len()));
    }
    found.sort_by_key(|range| (range.start, range.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in found.into_iter().filter(|range| !range.is_empty()) {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

/// What stands behind a name of a secret.
fn named(text: &str, found: &mut Vec<Range<usize>>) {
    let mut at = 0;
    while let Some(begin) = text[at..].find(is_name).map(|offset| at + offset) {
        let end = text[begin..].find(|c| !is_name(c)).map_or(text.len(), |offset| begin + offset);
        at = end;
        let name = &text[begin..end];
        if !is_secret_name(name) {
            continue;
        }
        let Some(value) = value_behind(text, begin, end) else { continue };
        if !is_count(name, &text[value.clone()]) {
            at = value.end.max(at);
            found.push(value);
        }
    }
}

/// The value of a name that stands at `begin..end`.
fn value_behind(text: &str, begin: usize, end: usize) -> Option<Range<usize>> {
    let rest = &text[end..];
    // "name": "value" has a quote before the sign.
    let behind = rest.trim_start_matches(['"', '\'']);
    let quoted = behind.len() < rest.len();
    let spaced = behind.trim_start();
    if begin == 0 && rest.starts_with('=') {
        // The rest of the argument, spaces and all.
        return Some(end + 1..text.len());
    }
    let sign = spaced.chars().next()?;
    let value = match sign {
        '=' | ':' if sign == ':' || quoted || spaced.len() == behind.len() => spaced[1..].trim_start(),
        _ if text[begin..].starts_with("--") && rest.starts_with(char::is_whitespace) && sign != '-' => {
            spaced
        }
        _ => return None,
    };
    // A value in quotes ends at the quote.
    let open = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let value = if open.is_some() { &value[1..] } else { value };
    let start = text.len() - value.len();
    let length = match open {
        Some(quote) => value.find(quote),
        // The word behind "Authorization: Bearer" is another one.
        None => value.find(ends_value),
    };
    Some(start..start + length.unwrap_or(value.len()))
}

/// Passwords and tokens before the host of a URL.
fn in_urls(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let begin = at + mark.len();
        let token = &text[begin..];
        let token = &token
            [..token.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(token.len())];
        let authority = &token[..token.find(['/', '?', '#']).unwrap_or(token.len())];
        let odd_port =
            authority.split_once(':').is_some_and(|(_, port)| !port.chars().all(|c| c.is_ascii_digit()));
        let user = match (authority.rfind('@'), token.rfind('@')) {
            (Some(end), _) => &authority[..end],
            // A password with a slash in it.
            (None, Some(end)) if odd_port => &token[..end],
            _ => continue,
        };
        if user.contains(':') || user.len() >= TOKEN_MIN {
            found.push(begin..begin + user.len());
        }
    }
}

/// What has the shape of a secret.
fn shaped(text: &str, found: &mut Vec<Range<usize>>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=' | '~');
    let mut at = 0;
    let mut before = "";
    while let Some(begin) = text[at..].find(is_part).map(|offset| at + offset) {
        let end = text[begin..].find(|c| !is_part(c)).map_or(text.len(), |offset| begin + offset);
        let word = &text[begin..end];
        let scheme = ["bearer", "basic"].iter().any(|scheme| before.eq_ignore_ascii_case(scheme));
        if (scheme && word.len() >= 8 && !word.starts_with('-')) || is_token(word) {
            found.push(begin..end);
        } else if let Some((head, value)) = word.split_once('=')
            && is_token(value)
        {
            found.push(begin + head.len() + 1..end);
        }
        (at, before) = (end, word);
    }
}

fn is_token(word: &str) -> bool {
    let long = |prefix: &str, least: usize| {
        word.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= least && rest.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        })
    };
    let aws = (word.starts_with("AKIA") || word.starts_with("ASIA"))
        && word.len() == 20
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let github = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].iter().any(|prefix| long(prefix, 20));
    let other =
        ["github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "hf_", "sk-"].iter().any(|p| long(p, 16));
    let jwt = word.starts_with("eyJ") && word.len() > 40 && word.matches('.').count() == 2;
    aws || github || other || jwt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(argv: &[&str]) -> Vec<String> {
        let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
        let masked = mask(&argv, &["from-the-environment".to_owned()]);
        masked.argv.iter().map(|text| text.replace("${FIELDSTONE_SECRET_", "<").replace('}', ">")).collect()
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let cases: [(&[&str], &[&str]); 16] = [
            (&["a", "--password=x y"], &["a", "--password=<1>"]),
            (&["a", "--token", "X", "in"], &["a", "--token", "<1>", "in"]),
            (&["a", "--api-key", "X", "--secret-key=Y"], &["a", "--api-key", "<1>", "--secret-key=<2>"]),
            (&["env", "DB_PASSWD=X", "b"], &["env", "DB_PASSWD=<1>", "b"]),
            (&["a", "--authToken", "X"], &["a", "--authToken", "<1>"]),
            (&["a", "https://me:X@host/p"], &["a", "https://<1>@host/p"]),
            (&["a", "https://me:X/Y@host/p"], &["a", "https://<1>@host/p"]),
            (&["a", "https://h/?q=1&access_token=X&b=2"], &["a", "https://h/?q=1&access_token=<1>&b=2"]),
            (&["sh", "-c", "f --password X g"], &["sh", "-c", "f --password <1> g"]),
            (&["sh", "-c", "f --password='X Y' g"], &["sh", "-c", "f --password='<1>' g"]),
            (&["sh", "-c", "PASSWORD=X f; TOKEN=Y g"], &["sh", "-c", "PASSWORD=<1>"]),
            (&["a", r#"{"secret": "X", "n": 1}"#], &["a", r#"{"secret": "<1>", "n": 1>"#]),
            (&["curl", "-H", "Authorization: Bearer Xabcdefgh"], &["curl", "-H", "Authorization: <1> <2>"]),
            (&["a", "AKIAABCDEFGHIJKLMNOP"], &["a", "<1>"]),
            (&["a", "xfrom-the-environmenty"], &["a", "x<1>y"]),
            (&["a", "--key=ghp_abcdefghijklmnopqrstuvwxyz"], &["a", "--key=<1>"]),
        ];
        for (argv, expected) in cases {
            assert_eq!(masked(argv), expected, "{argv:?}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let argv = [
            "a",
            "--author",
            "me",
            "--tokenizer",
            "bpe",
            "--max-tokens",
            "512",
            "--max-tokens=512",
            "--password-file=/p",
            "--no-password",
            "x",
            "-o",
            "git@host:repo",
            "ssh://git@host/r",
            "https://host:8080/a@b",
            "x=1",
            "--compass",
            "north",
            "--bypass=1",
        ];
        let kept = masked(&argv);
        assert_eq!(kept, argv);
    }

    #[test]
    fn the_name_of_the_program_and_text_that_looks_masked_are_text() {
        assert_eq!(masked(&["--password", "x"]), ["--password", "x"]);
        let argv = ["a".to_owned(), "${FIELDSTONE_SECRET_1}".to_owned()];
        assert_eq!(mask(&argv, &[]).masked, Vec::<usize>::new());
    }

    #[test]
    fn texts_are_hidden_whatever_they_hold() {
        assert_eq!(hide("https://me:x@host/r.git"), "https://***@host/r.git");
        for text in ["", "é=ü", "token", "token=", "://", "://@", "password:", "\"password\":\"", "--token é"]
        {
            drop(hide(text));
        }
    }
}
