//! A function has one job, and is short enough to be read at once.
//!
//! Its length is that from the line of `fn` to its closing brace, whatever it nests. rustfmt puts the brace under the
//! line of `fn`.

use super::{files, is_test, none, shipped};

/// Most lines of a function of code that ships.
const FUNCTION_MAX: usize = 70;

/// The function whose declaration a line opens: its name. Before `fn` stand words alone, as in `pub(super) const fn`.
pub(super) fn opens(line: &str) -> Option<&str> {
    let (before, rest) = line.trim_start().split_once("fn ")?;
    let is_before = |c: char| c.is_ascii_alphabetic() || "() :\"".contains(c);
    if !before.chars().all(is_before) || !(before.is_empty() || before.ends_with(' ')) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

/// The functions of a file with their lengths in lines; those without a body, as traits have them, do not count.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().map(str::trim_end).collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let Some(name) = opens(line) else { continue };
        let head = lines[first..].iter().position(|line| line.ends_with(['{', '}', ';']));
        let Some(body) = head.map(|head| first + head).filter(|body| !lines[*body].ends_with(';')) else {
            continue;
        };
        if lines[body].ends_with('}') {
            found.push((name, body - first + 1));
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let last = lines[body..].iter().position(|line| *line == end).map_or(lines.len() - 1, |n| body + n);
        found.push((name, last - first + 1));
    }
    found
}

fn complaints(path: &str, code: &str) -> Vec<String> {
    let long = functions(code).into_iter().filter(|(_, lines)| *lines > FUNCTION_MAX);
    let complaint = |(name, lines)| {
        format!("{path}: `{name}` has {lines} lines, more than {FUNCTION_MAX}: split it by what its parts do")
    };
    long.map(complaint).collect()
}

/// Whether a file ships.
pub(super) fn ships(path: &str) -> bool {
    path.contains("/src/")
        && !is_test(path)
        && !path.starts_with("crates/testkit/")
        && !path.starts_with("fuzz/")
}

#[test]
fn functions_have_one_job() {
    let files: Vec<_> = files(&["rs"]).into_iter().filter(|(path, _)| ships(path)).collect();
    let code: Vec<_> = files.iter().map(|(path, text)| (path, shipped(text))).collect();
    let known: usize = code.iter().map(|(_, code)| functions(code).len()).sum();
    assert!(known > 5_000, "the check finds {known} functions");
    none(code.iter().flat_map(|(path, code)| complaints(path, code)).collect());
}

#[test]
fn the_check_can_fail() {
    let body = |lines: usize| "        f();\n".repeat(lines);
    let of = |head: &str, lines: usize| format!("impl A {{\n    {head} {{\n{}    }}\n}}\n", body(lines));
    let expected = ["a.rs: `long` has 71 lines, more than 70: split it by what its parts do"];
    for head in [
        "fn long()",
        "pub fn long(a: u8) -> [u8; 4]",
        "pub(super) const fn long<'a>()",
        "pub(in crate::a) async fn long()",
        "pub extern \"C\" fn long()",
    ] {
        assert_eq!(complaints("a.rs", &of(head, 69)), expected, "{head}");
        assert!(complaints("a.rs", &of(head, 68)).is_empty(), "{head}");
    }
    // The declaration counts, too, and so does what a function nests.
    assert_eq!(complaints("a.rs", &of("fn long(\n        a: u8,\n    )", 67)), expected);
    let nested = format!("fn long() {{\n    fn short() {{\n{}    }}\n}}\n", body(67));
    assert_eq!(complaints("a.rs", &nested), expected);
}

#[test]
fn lengths_are_those_of_bodies() {
    let code = "\
trait A {
    fn declared(&self);
    fn wide(
        &self,
    ) -> u8
    where
        Self: Sized;
    fn empty() {}
}
fn two() {
}
let f: fn(u8) = two;
fn three() {
    let x = S { a: 1 };
} // the end
";
    assert_eq!(functions(&shipped(code)), [("empty", 1), ("two", 2), ("three", 3)]);
}
