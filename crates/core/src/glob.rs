//! Patterns of names: `*` matches any characters, `?` one, `[a-z]` one of a set, `[!a]` one that is not in the set.
//!
//! A pattern must match the whole text, including case. `[` without its `]` matches itself, `]` at the beginning of a
//! set belongs to the set, and in a set `*` and `?` match themselves: `[*]` matches a star. Matching takes at most
//! length of the text times length of the pattern steps.

/// A pattern, parsed once and matched often.
///
/// ```
/// use fieldstone_core::value::Glob;
/// assert!(Glob::new("temp*[0-9]").matches("temperature_2"));
/// assert!(!Glob::new("temp*").matches("Temperature"));
/// assert_eq!(Glob::new("temp*").prefix(), "temp");
/// ```
#[derive(Debug, Clone)]
pub struct Glob {
    parts: Vec<GlobPart>,
}

#[derive(Debug, Clone, PartialEq)]
enum GlobPart {
    Is(char),
    Any,
    Many,
    Set { not: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Parses a pattern; every text is a valid pattern.
    pub fn new(pattern: &str) -> Glob {
        let chars: Vec<char> = pattern.chars().collect();
        let mut parts = Vec::with_capacity(chars.len());
        let mut at = 0;
        while at < chars.len() {
            let (part, used) = match chars[at] {
                '*' => (GlobPart::Many, 1),
                '?' => (GlobPart::Any, 1),
                '[' => set(&chars[at..]).unwrap_or((GlobPart::Is('['), 1)),
                c => (GlobPart::Is(c), 1),
            };
            if part != GlobPart::Many || parts.last() != Some(&GlobPart::Many) {
                parts.push(part);
            }
            at += used;
        }
        Glob { parts }
    }

    /// Whether a text has a character that makes it a pattern.
    pub fn is_pattern(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    /// The pattern that matches exactly `text`.
    pub fn escape(text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '*' | '?' | '[' => out.extend(['[', c, ']']),
                _ => out.push(c),
            }
        }
        out
    }

    /// The common beginning of all texts that match.
    pub fn prefix(&self) -> String {
        self.parts.iter().map_while(|part| if let GlobPart::Is(c) = part { Some(*c) } else { None }).collect()
    }

    /// Whether the pattern matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        // After a mismatch, only the last star is tried again, one character further: earlier ones cannot help.
        let (mut part, mut rest) = (0, text.chars());
        let mut star: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            if self.parts.get(part) == Some(&GlobPart::Many) {
                part += 1;
                star = Some((part, rest.clone()));
                continue;
            }
            let fits = match (rest.next(), self.parts.get(part)) {
                (None, None) => return true,
                (None, Some(_)) => return false,
                (Some(_), None) => false,
                (Some(c), Some(one)) => one.takes(c),
            };
            if fits {
                part += 1;
                continue;
            }
            let Some((after, from)) = &mut star else { return false };
            if from.next().is_none() {
                return false;
            }
            part = *after;
            rest = from.clone();
        }
    }
}

impl GlobPart {
    fn takes(&self, c: char) -> bool {
        match self {
            GlobPart::Is(one) => *one == c,
            GlobPart::Any | GlobPart::Many => true,
            GlobPart::Set { not, ranges } => ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *not,
        }
    }
}

/// Parses the set that begins at `chars[0]`, a `[`; also returns its number of characters.
fn set(chars: &[char]) -> Option<(GlobPart, usize)> {
    let not = chars.get(1) == Some(&'!');
    let first = 1 + usize::from(not);
    let end = first + 1 + chars.get(first + 1..)?.iter().position(|c| *c == ']')?;
    let inside = &chars[first..end];
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < inside.len() {
        match (inside.get(at + 1), inside.get(at + 2)) {
            (Some('-'), Some(last)) => {
                ranges.push((inside[at], *last));
                at += 3;
            }
            _ => {
                ranges.push((inside[at], inside[at]));
                at += 1;
            }
        }
    }
    Some((GlobPart::Set { not, ranges }, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries all ways to match, at any cost.
    fn slow(parts: &[GlobPart], text: &[char]) -> bool {
        match (parts.first(), text.first()) {
            (None, None) => true,
            (Some(GlobPart::Many), _) => {
                slow(&parts[1..], text) || (!text.is_empty() && slow(parts, &text[1..]))
            }
            (Some(part), Some(c)) => part.takes(*c) && slow(&parts[1..], &text[1..]),
            _ => false,
        }
    }

    #[test]
    fn patterns_match_what_they_say() {
        for (pattern, yes, no) in [
            ("temp*", "temperature", "Temperature"),
            ("*", "", "\u{0}never"),
            ("a?c", "abc", "ac"),
            ("[a-c]x", "bx", "dx"),
            ("[!a-c]x", "dx", "bx"),
            ("[]]", "]", "["),
            ("[!]]", "a", "]"),
            ("a[", "a[", "a"),
            ("[*]", "*", "a"),
            ("[-a]", "-", "b"),
            ("é?", "éà", "e"),
            ("*a*b", "xaxbxb", "xbxa"),
        ] {
            let glob = Glob::new(pattern);
            assert!(glob.matches(yes), "{pattern} {yes}");
            if pattern != "*" {
                assert!(!glob.matches(no), "{pattern} {no}");
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4000))]
        #[test]
        fn matching_agrees_with_all_ways(pattern in "[ab*?\\[\\]!-]{0,9}", text in "[ab\\[\\]]{0,9}") {
            let glob = Glob::new(&pattern);
            let chars: Vec<char> = text.chars().collect();
            let expected = slow(&glob.parts, &chars);
            proptest::prop_assert_eq!(glob.matches(&text), expected);
            proptest::prop_assert!(!expected || text.starts_with(&glob.prefix()));
            proptest::prop_assert!(Glob::new(&Glob::escape(&text)).matches(&text));
            proptest::prop_assert_eq!(Glob::new(&Glob::escape(&text)).matches(&pattern), text == pattern);
        }
    }

    #[test]
    fn many_stars_cost_little() {
        let text = "a".repeat(20_000);
        assert!(!Glob::new(&format!("{}b", "*a".repeat(50))).matches(&text));
    }
}
