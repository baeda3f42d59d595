//! A line as bash has it: split into words, and candidates in the form that readline puts in.
//!
//! Readline replaces not the word but what follows its last break character (`=`, `:`, `@` …), so that a
//! candidate loses what stands before that; and it inserts a candidate as it is, so that blanks and signs
//! of the shell are escaped, but inside quotes.

use super::Candidate;

/// Candidates for the line up to the cursor, each as bash takes it; `word` is what bash will replace.
pub fn for_bash(line: &str, word: &str, find: impl Fn(&[String]) -> Vec<Candidate>) -> Vec<String> {
    let Split { words, raw, quote } = split(line);
    // The first word is the program.
    let Some(words) = words.get(1..).filter(|words| !words.is_empty()) else { return Vec::new() };
    let typed = match quote {
        Some(_) => words.last().map_or("", String::as_str),
        None => raw,
    };
    let kept = typed.strip_suffix(word).unwrap_or("");
    let form = |c: Candidate| {
        let text = if quote.is_some() { c.word } else { escape(&c.word) };
        match text.strip_prefix(kept) {
            Some(rest) => rest.to_owned(),
            None => text,
        }
    };
    find(words).into_iter().map(form).collect()
}

/// A line in words.
pub struct Split<'a> {
    /// The words without quotes; the last is the one at the cursor, empty behind a blank.
    pub words: Vec<String>,
    /// The last one as it was typed.
    pub raw: &'a str,
    /// The quote that is open at the end.
    pub quote: Option<char>,
}

/// Splits a line as `sh` does.
pub fn split(line: &str) -> Split<'_> {
    let mut words = vec![String::new()];
    let (mut quote, mut escaped, mut start) = (None, false, 0);
    for (i, c) in line.char_indices() {
        let Some(word) = words.last_mut() else { break };
        match (quote, c) {
            _ if escaped => {
                // Inside double quotes a backslash stands for itself before most characters.
                if quote == Some('"') && !"\"\\$`".contains(c) {
                    word.push('\\');
                }
                word.push(c);
                escaped = false;
            }
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                if start < i {
                    words.push(String::new());
                }
                start = i + c.len_utf8();
            }
            (None, c) => word.push(c),
        }
    }
    Split { words, raw: &line[start..], quote }
}

fn escape(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_./:=,+-@%~".contains(c);
    let mut escaped = String::new();
    for c in text.chars() {
        if !plain(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (line, words) in [
            ("f list store", vec!["f", "list", "store"]),
            ("f  list ", vec!["f", "list", ""]),
            ("f 'a b' \"c d\"e", vec!["f", "a b", "c de"]),
            (r#"f run=\"my\ run\" x"#, vec!["f", "run=\"my run\"", "x"]),
            (r#"f "a\x\"b" "#, vec!["f", "a\\x\"b", ""]),
            ("f 'run=", vec!["f", "run="]),
            ("", vec![""]),
        ] {
            assert_eq!(split(line).words, words, "{line}");
        }
    }

    #[test]
    fn candidates_are_what_readline_puts_in() {
        let offer = |words: &'static [&str]| {
            move |_: &[String]| words.iter().map(|w| Candidate::new(*w, "")).collect::<Vec<_>>()
        };
        // Behind the last `=`, which readline takes for a break.
        assert_eq!(for_bash("f list s run=", "", offer(&["run=a", "run=b"])), ["a", "b"]);
        assert_eq!(for_bash("f list s run=a,step=0/", "0/", offer(&["run=a,step=0/6"])), ["0/6"]);
        assert_eq!(for_bash("f list s ru", "ru", offer(&["run="])), ["run="]);
        assert_eq!(for_bash("f list s v=", "", offer(&["v=\"a b\""])), [r#"\"a\ b\""#]);
        assert_eq!(for_bash("f list s @", "", offer(&["@a.req"])), ["a.req"]);
        // Inside quotes nothing is escaped and nothing is a break.
        assert_eq!(for_bash("f list s 'v=", "v=", offer(&["v=\"a b\""])), ["v=\"a b\""]);
        assert_eq!(for_bash("f", "f", offer(&["x"])), [""; 0]);
    }
}
