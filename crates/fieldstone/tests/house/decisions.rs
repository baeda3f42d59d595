//! Design decisions have numbers (`docs/design`), and code and docs cite them. Here: each cited number exists,
//! none is given twice, each decision says why and at what price, and enough are cited in code.
//!
//! ```text
//! ### J-3 Threads of a handle share commits       a decision of the page whose decisions begin with J
//! *Reason.* …                                     at the beginning of a paragraph
//! *Price.* …
//! ```

use std::collections::BTreeSet;

use super::{files, is_test, none, sources};

/// The pages with decisions.
const FOLDER: &str = "docs/design/";
/// The letters that their numbers begin with, one for each page.
const LETTERS: &str = "AJFQGCBT";
/// How many of them are cited in code, at least.
const CITED_MIN: usize = 20;
/// This file, whose numbers are made up.
const THIS: &str = "crates/fieldstone/tests/house/decisions.rs";

/// The numbers that a text names, with their lines: a letter, a hyphen and digits that stand alone, so that
/// neither `CDF-5` nor `UTF-8` is one.
fn citations(text: &str) -> Vec<(usize, String)> {
    let joins = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let mut found = Vec::new();
    for (hyphen, _) in text.match_indices('-') {
        let (before, rest) = (&text[..hyphen], &text[hyphen + 1..]);
        let Some(letter) = before.chars().next_back().filter(|letter| LETTERS.contains(*letter)) else {
            continue;
        };
        let before = &before[..hyphen - 1]; // the letters are of one byte
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let alone = !before.ends_with(|c: char| joins(c) || c == '.') && !rest[digits..].starts_with(joins);
        if digits > 0 && alone {
            let line = before.matches('\n').count() + 1;
            found.push((line, format!("{letter}-{}", &rest[..digits])));
        }
    }
    found
}

/// The decisions of a page: number, line, and the text up to the next heading.
fn decisions(text: &str) -> Vec<(String, usize, String)> {
    let mut all: Vec<(String, usize, String)> = Vec::new();
    let mut inside = false;
    for (n, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            let number = line.strip_prefix("### ").and_then(|rest| rest.split(' ').next()).unwrap_or("");
            inside = citations(number).len() == 1;
            if inside {
                all.push((number.to_owned(), n + 1, String::new()));
                continue;
            }
        }
        if let Some((_, _, body)) = all.last_mut().filter(|_| inside) {
            body.push_str(line);
            body.push('\n');
        }
    }
    all
}

/// Complaints about the decisions of a page.
fn page_complaints(path: &str, text: &str) -> Vec<String> {
    let (mut complaints, mut letters) = (Vec::new(), BTreeSet::new());
    for (number, line, body) in decisions(text) {
        for part in ["*Reason.* ", "*Price.* "] {
            if body.lines().filter(|line| line.starts_with(part)).count() != 1 {
                complaints.push(format!("{path}:{line}: {number} has not one {}", part.trim()));
            }
        }
        letters.extend(number.chars().next());
    }
    if letters.len() > 1 {
        complaints.push(format!("{path} gives numbers of several letters: {letters:?}"));
    }
    complaints
}

/// Numbers that are given twice, on any pages.
fn doubled(numbers: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let twice = numbers.iter().filter(|number| !seen.insert(*number));
    twice.map(|number| format!("{number} is given twice in {FOLDER}")).collect()
}

/// Numbers that a text cites and nobody has given.
fn unknown(path: &str, text: &str, numbers: &[String]) -> Vec<String> {
    let cited = citations(text).into_iter().filter(|(_, number)| !numbers.contains(number));
    cited.map(|(line, number)| format!("{path}:{line}: there is no decision {number} in {FOLDER}")).collect()
}

fn given(pages: &[(String, String)]) -> Vec<String> {
    pages.iter().flat_map(|(_, text)| decisions(text)).map(|(number, ..)| number).collect()
}

fn pages() -> Vec<(String, String)> {
    files(&["md"]).into_iter().filter(|(path, _)| path.starts_with(FOLDER)).collect()
}

#[test]
fn decisions_have_a_number_a_reason_and_a_price() {
    let pages = pages();
    let numbers = given(&pages);
    assert!(numbers.len() >= CITED_MIN, "the check finds {} decisions", numbers.len());
    none(
        pages.iter().flat_map(|(path, text)| page_complaints(path, text)).chain(doubled(&numbers)).collect(),
    );
}

#[test]
fn cited_decisions_exist() {
    let numbers = given(&pages());
    let all = sources().into_iter().chain(files(&["md", "toml", "pyi"])).filter(|(path, _)| path != THIS);
    none(all.flat_map(|(path, text)| unknown(&path, &text, &numbers)).collect());
}

#[test]
fn decisions_are_cited_in_the_code_they_explain() {
    let code = sources().into_iter().filter(|(path, _)| !is_test(path));
    let cited: BTreeSet<String> =
        code.flat_map(|(_, text)| citations(&text)).map(|(_, number)| number).collect();
    assert!(
        cited.len() >= CITED_MIN,
        "code cites {} decisions, fewer than {CITED_MIN}: {cited:?}",
        cited.len()
    );
}

#[test]
fn checks_of_decisions_can_fail() {
    let numbers = |text: &str| citations(text).into_iter().map(|(_, number)| number).collect::<Vec<_>>();
    assert_eq!(numbers("// J-7: why, and (Q-12), `B-3`. See F-1."), ["J-7", "Q-12", "B-3", "F-1"]);
    assert_eq!(citations("a\nb T-4"), [(2, "T-4".to_owned())]);
    assert!(numbers("CDF-5 UTF-8 CRC-32C F-x J- C-1a T-2-3 X-1 _J-1 1.J-1 J--1").is_empty());

    let good = "# Page\n\n### J-1 A title\n\nWhat.\n\n*Reason.* Why.\n\n*Price.* What it costs.\n";
    assert!(page_complaints("p.md", good).is_empty());
    for part in ["*Reason.* Why.", "*Price.* What it costs."] {
        let complaints = page_complaints("p.md", &good.replace(part, ""));
        let word = part.split(' ').next().unwrap_or("");
        assert_eq!(complaints, [format!("p.md:3: J-1 has not one {word}")]);
    }
    // A reason of the next decision, or below the next heading, is not one of this.
    let two = format!("{}{}", good.replace("*Reason.* Why.\n", ""), good.replace("J-1", "J-2"));
    assert_eq!(page_complaints("p.md", &two).len(), 1);
    let moved = good.replace("*Price.*", "## Next\n\n*Price.*");
    assert_eq!(page_complaints("p.md", &moved), ["p.md:3: J-1 has not one *Price.*"]);
    let mixed = format!("{good}{}", good.replace("J-1", "F-1"));
    assert_eq!(page_complaints("p.md", &mixed).len(), 1);

    let given = given(&[("p.md".to_owned(), good.to_owned()), ("q.md".to_owned(), good.to_owned())]);
    assert_eq!(doubled(&given), ["J-1 is given twice in docs/design/"]);
    assert!(doubled(&given[..1]).is_empty());
    assert_eq!(unknown("a.rs", "// J-2: why", &given), ["a.rs:1: there is no decision J-2 in docs/design/"]);
    assert!(unknown("a.rs", "// J-1: why", &given).is_empty());
}
