//! The prose of a file: paragraphs of Markdown, comments and strings of source files.
//!
//! A passage is text that one reads in one go: a paragraph, an item of a list, a cell of a table, a block of
//! comments, a string. Code within it (fenced, indented by a fence's rules, or in backticks) is left out: a span in
//! backticks becomes `` ` ``, so that a sentence which begins with code does not seem to begin with its second word.

/// A passage, and the line in which it begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Passage {
    pub line: usize,
    pub text: String,
}

/// The prose of a file, by the ending of its name.
pub fn passages(path: &str, text: &str) -> Vec<Passage> {
    match path.rsplit('.').next() {
        Some("md") => markdown(text.lines().enumerate().map(|(n, line)| (n + 1, line))),
        Some("rs") => source(text, &RUST),
        Some("py" | "pyi") => source(text, &PYTHON),
        Some("c" | "h") => source(text, &C),
        Some("f90") => source(text, &FORTRAN),
        _ => Vec::new(),
    }
}

/// How a language marks what is prose.
struct Language {
    comment: &'static str,
    block: Option<(&'static str, &'static str)>,
    quotes: &'static [&'static str],
    /// A quote doubles to stand for itself, and a backslash is a character like any other.
    doubled: bool,
}

const RUST: Language = Language { comment: "//", block: Some(("/*", "*/")), quotes: &["\""], doubled: false };
const PYTHON: Language =
    Language { comment: "#", block: None, quotes: &["\"\"\"", "'''", "\"", "'"], doubled: false };
const C: Language = Language { comment: "//", block: Some(("/*", "*/")), quotes: &["\""], doubled: false };
const FORTRAN: Language = Language { comment: "!", block: None, quotes: &["\"", "'"], doubled: true };

/// Paragraphs, items and cells of Markdown, given as numbered lines.
fn markdown<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Passage> {
    let (mut found, mut fence) = (Vec::<Passage>::new(), false);
    let mut open = false; // the last passage goes on in the next line
    for (line, text) in lines {
        let text = text.trim();
        if text.starts_with("```") || text.starts_with("~~~") {
            (fence, open) = (!fence, false);
            continue;
        }
        if fence || text.is_empty() || text.starts_with(">>>") {
            open = false;
            continue;
        }
        let text = without_code(text);
        if text.starts_with('|') {
            let cells = text.split('|').map(str::trim).filter(|cell| !cell.is_empty());
            found.extend(cells.map(|cell| Passage { line, text: cell.to_owned() }));
            open = false;
            continue;
        }
        let marked = text.trim_start_matches(['-', '*', '#', '>', '+']);
        let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = number.strip_prefix(". ").filter(|_| number.len() < text.len());
        let listed = Some(marked).filter(|item| item.len() < text.len() && item.starts_with(' '));
        let (item, begins) = match numbered.or(listed) {
            Some(item) => (item, true),
            None => (&*text, false),
        };
        match found.last_mut().filter(|_| open && !begins) {
            Some(last) => {
                last.text.push(' ');
                last.text.push_str(&text);
            }
            None => found.push(Passage { line, text: item.trim_start().to_owned() }),
        }
        open = !text.starts_with('#');
    }
    found
}

/// A line in which each span in backticks has become one backtick.
fn without_code(line: &str) -> String {
    if !line.contains('`') {
        return line.to_owned();
    }
    let mut out = String::new();
    for (n, part) in line.split('`').enumerate() {
        if n % 2 == 0 { out.push_str(part) } else { out.push('`') }
    }
    out
}

/// Comments and strings of a source file.
fn source(text: &str, language: &Language) -> Vec<Passage> {
    let (mut found, mut comments) = (Vec::new(), Vec::<(usize, &str)>::new());
    let mut rest = text;
    let mut line = 1;
    let mut apart = false; // code stands between the last comment and here
    while !rest.is_empty() {
        if rest.starts_with(language.comment) {
            let end = rest.find('\n').unwrap_or(rest.len());
            let words = rest[..end].trim_start_matches(['/', '!', '#', '<', '>']);
            if apart || comments.last().is_none_or(|(last, _)| last + 1 != line) {
                found.extend(markdown(comments.drain(..)));
            }
            apart = false;
            comments.push((line, words));
            rest = &rest[end..];
        } else if let Some((from, to)) = language.block.filter(|(from, _)| rest.starts_with(from)) {
            let body = &rest[from.len()..];
            let end = body.find(to).unwrap_or(body.len());
            let lines = body[..end].lines().enumerate();
            found.extend(markdown(lines.map(|(n, text)| (line + n, text.trim().trim_start_matches('*')))));
            let past = (from.len() + end + to.len()).min(rest.len());
            line += rest[..past].matches('\n').count();
            rest = &rest[past..];
        } else if let Some(quote) = language.quotes.iter().find(|quote| rest.starts_with(**quote)) {
            let (body, past) = string(rest, quote, language.doubled);
            let whole = body.replace("\\n", "\n").replace("\\\"", "\"");
            let lines: Vec<&str> = whole.lines().map(|text| text.trim_end_matches('\\')).collect();
            found.extend(markdown(lines.iter().enumerate().map(|(n, text)| (line + n, *text))));
            line += rest[..past].matches('\n').count();
            rest = &rest[past..];
        } else if let Some(past) = raw_string(rest).filter(|_| language.comment == "//") {
            line += rest[..past].matches('\n').count();
            rest = &rest[past..];
        } else {
            // A word is passed whole: `r` of a name does not begin a raw string. So is a character in quotes.
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let quoted = ["'\"'", "'\\\"'", "b'\"'"].iter().find(|quoted| rest.starts_with(**quoted));
            let step = quoted.map_or(word, |quoted| quoted.len());
            let step = if step > 0 { step } else { rest.chars().next().map_or(1, char::len_utf8) };
            line += usize::from(rest.starts_with('\n'));
            apart |= !rest.starts_with(char::is_whitespace);
            rest = &rest[step..];
        }
    }
    found.extend(markdown(comments.drain(..)));
    found.sort_by_key(|passage| passage.line);
    found
}

/// The body of the string that a text begins with, and where the string ends.
fn string<'a>(text: &'a str, quote: &str, doubled: bool) -> (&'a str, usize) {
    let mut at = quote.len();
    while at < text.len() {
        let rest = &text[at..];
        if let Some(after) = rest.strip_prefix(quote) {
            if doubled && after.starts_with(quote) {
                at += 2 * quote.len();
                continue;
            }
            return (&text[quote.len()..at], at + quote.len());
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let escaped = !doubled && rest.starts_with('\\');
        at += first + if escaped { rest[first..].chars().next().map_or(0, char::len_utf8) } else { 0 };
    }
    (&text[quote.len()..], text.len())
}

/// The end of the raw string of Rust that a text begins with. Raw strings hold code more often than prose, so the
/// check skips them.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.strip_prefix('r').or_else(|| text.strip_prefix("br"))?;
    let marks = hashes.len() - hashes.trim_start_matches('#').len();
    let body = hashes[marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    let from = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |at| from + at + end.len()))
}

#[test]
fn prose_is_found_in_each_language() {
    let of = |path: &str, text: &str| -> Vec<(usize, String)> {
        passages(path, text).into_iter().map(|passage| (passage.line, passage.text)).collect()
    };
    let owned = |all: &[(usize, &str)]| -> Vec<(usize, String)> {
        all.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    };
    let page =
        "# A\nOne `x` two\nthree.\n\n- four\n  five\n1. six\n\n```sh\ncode\n```\n| a | b |\n|---|---|\nend";
    let expected = [
        (1, "A"),
        (2, "One ` two three."),
        (5, "four five"),
        (7, "six"),
        (12, "a"),
        (12, "b"),
        (13, "---"),
        (13, "---"),
        (14, "end"),
    ];
    assert_eq!(of("a.md", page), owned(&expected));
    let rust = "//! Head,\n//! second.\n\n/// Doc.\nfn f(c: char) { g(\"one\\\n  two\", '\"', r#\"raw \" code\"#); } // why\n/* a\n * b */";
    let expected = [(1, "Head, second."), (4, "Doc."), (5, "one two"), (6, "why"), (7, "a b")];
    assert_eq!(of("a.rs", rust), owned(&expected));
    let python = "\"\"\"Doc.\n\nMore.\"\"\"\nx = 'a' + \"b\\\"c\" # why\n";
    assert_eq!(of("a.py", python), owned(&[(1, "Doc."), (3, "More."), (4, "a"), (4, "b\"c"), (4, "why")]));
    assert_eq!(of("a.h", "/** One.\n * Two. */\nint a; // three"), owned(&[(1, "One. Two."), (3, "three")]));
    assert_eq!(of("a.f90", "!> One.\nx = 'it''s' ! two"), owned(&[(1, "One."), (2, "it''s"), (2, "two")]));
}
