//! A type has one job: its own methods stand in few files, and are not many.
//!
//! Types that have more are listed with their numbers. A number that is larger than it has to be is a complaint, too: what
//! has got better stays so.

use std::collections::{BTreeMap, BTreeSet};

use super::functions::{opens, ships};
use super::{files, none, shipped};

/// Most files in which a type has methods, and most methods.
const FILES_MAX: usize = 4;
const METHODS_MAX: usize = 40;

/// Types that have more, by the file that declares them: in how many files they have methods, and how many these are.
const WIDE: &[(&str, &str, usize, usize)] = &[];

/// The name at the beginning of a text.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
    let line = line.strip_prefix("pub(super) ").unwrap_or(line);
    let rest = ["struct ", "enum ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    Some(name(rest)).filter(|name| !name.is_empty())
}

/// The type whose own methods a line at the margin begins: not those of a trait.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = match rest.strip_prefix('<') {
        None => rest,
        Some(inner) => {
            let (mut depth, mut before) = (1, ' ');
            let end = inner.char_indices().find_map(|(at, c)| {
                let closes = c == '>' && before != '-';
                depth += i32::from(c == '<') - i32::from(closes);
                before = c;
                (depth == 0).then_some(at + 1)
            });
            &inner[end?..]
        }
    };
    let rest = rest.trim_start();
    // `impl super::Name` is one of Name.
    let path = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
    rest[..path].rsplit("::").next().filter(|name| !name.is_empty())
}

/// How many characters two paths have in common at their beginning.
fn common(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// The folder of a crate's sources.
fn crate_of(path: &str) -> &str {
    path.split("/src/").next().unwrap_or(path)
}

/// Files and methods of each type, by the file that declares it and its name.
fn spread(all: &[(String, String)]) -> BTreeMap<(&str, &str), (BTreeSet<&str>, usize)> {
    let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (path, code) in all {
        for found in code.lines().filter_map(declared) {
            places.entry((crate_of(path), found)).or_default().push(path);
        }
    }
    let mut types: BTreeMap<(&str, &str), (BTreeSet<&str>, usize)> = BTreeMap::new();
    for (path, code) in all {
        let mut own = None;
        for line in code.lines() {
            let is_item = line.starts_with(|c: char| c.is_ascii_alphabetic());
            if is_item && !line.starts_with("where") {
                own = implemented(line).and_then(|name| {
                    // Types of one name are distinguished by their declarations: the nearest one counts.
                    let declared = places.get(&(crate_of(path), name))?;
                    declared.iter().max_by_key(|place| common(place, path)).map(|place| (*place, name))
                });
            }
            let is_method = line.starts_with("    ") && !line.starts_with("     ") && opens(line).is_some();
            if let Some(own) = own.filter(|_| is_method) {
                let (files, methods) = types.entry(own).or_default();
                files.insert(path);
                *methods += 1;
            }
        }
    }
    types
}

fn complaints(all: &[(String, String)], wide: &[(&str, &str, usize, usize)]) -> Vec<String> {
    let found = spread(all);
    let mut complaints = Vec::new();
    for ((path, name), (files, methods)) in &found {
        let listed = wide.iter().find(|(place, known, ..)| place == path && known == name);
        let (most_files, most_methods) = listed.map_or((FILES_MAX, METHODS_MAX), |(_, _, f, m)| (*f, *m));
        if files.len() > most_files || *methods > most_methods {
            complaints.push(format!(
                "{path}: `{name}` has {methods} methods in {} files, more than {most_methods} in {most_files}: \
                 split it by what its parts do",
                files.len()
            ));
        }
    }
    for (path, name, most_files, most_methods) in wide {
        let (files, methods) = found.get(&(path, name)).map_or((0, 0), |(files, n)| (files.len(), *n));
        let needed = (files.max(FILES_MAX), methods.max(METHODS_MAX));
        if needed != (*most_files, *most_methods) && (files <= *most_files && methods <= *most_methods) {
            let (files, methods) = needed;
            complaints.push(format!("{path}: list `{name}` with {files} files and {methods} methods"));
        }
    }
    complaints
}

#[test]
fn types_have_one_job() {
    let files = files(&["rs"]).into_iter().filter(|(path, _)| ships(path) && !path.contains("/conformance/"));
    let code: Vec<(String, String)> = files.map(|(path, text)| (path, shipped(&text))).collect();
    let known = spread(&code);
    assert!(known.len() > 800, "the check finds {} types", known.len());
    none(complaints(&code, WIDE));
}

#[test]
fn the_check_can_fail() {
    let methods = |count: usize| "    pub(super) fn a(&self) {\n    }\n".repeat(count);
    let file = |path: &str, code: String| (path.to_owned(), code);
    let with = |count: usize| {
        let head = "pub struct A<T> {\n    a: T,\n}\n\nimpl<T: Fn() -> B<T>> A<T> {\n";
        file("x/src/a.rs", format!("{head}{}}}\n\nimpl B for A {{\n{}}}\n", methods(count), methods(9)))
    };
    let of = |all: &[(String, String)], wide: &[(&str, &str, usize, usize)]| complaints(all, wide);
    assert!(of(&[with(40)], &[]).is_empty());
    let many = "x/src/a.rs: `A` has 41 methods in 1 files, more than 40 in 4: split it by what its parts do";
    assert_eq!(of(&[with(41)], &[]), [many]);
    assert!(of(&[with(41)], &[("x/src/a.rs", "A", 4, 41)]).is_empty());
    let better = ["x/src/a.rs: list `A` with 4 files and 41 methods"];
    assert_eq!(of(&[with(41)], &[("x/src/a.rs", "A", 5, 42)]), better);
    let one = format!("impl super::A {{\n{}}}\n", methods(1));
    let spread: Vec<_> =
        std::iter::once(with(1)).chain((0..4).map(|n| file(&format!("x/src/{n}.rs"), one.clone()))).collect();
    assert_eq!(of(&spread, &[]).len(), 1);
    assert!(of(&spread[..4], &[]).is_empty());
    // Another type of that name, with methods of its own.
    let other = file("x/src/b/mod.rs", format!("enum A {{\n}}\n{one}"));
    assert!(of(&[spread[..4].to_vec(), vec![other]].concat(), &[]).is_empty());
}
