//! Modules of one folder do not use one another in a circle, but for those listed: what is part of a circle
//! is read, moved and tested only as a whole.
//!
//! A module stands for all files below it. Imports of a folder's own `mod.rs` do not count: it joins its modules.
//! Neither do tests within files.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_test, none, shipped, sources};

/// Circles that stand today: crate, folder, modules. The list only gets shorter.
const CIRCLES: &[(&str, &str, &str)] = &[
    ("cli", "", "output table"),
    ("core", "env::sim", "file journal tree"),
    ("core", "schema", "candidates select"),
    ("fieldstone", "finders", "elements regions"),
    ("fieldstone", "interop::ingest", "file grib"),
    ("format", "", "netcdf partitioned"),
    ("python", "", "catalog fields grib listing opening reports store table"),
    ("python", "", "data keys request sequence"),
    ("python", "catalog", "arrow columns"),
    ("python", "catalog", "names terms"),
];

type Path<'a> = Vec<&'a str>;

/// Crate and module of a source file; `None` for what belongs to no crate.
fn module(path: &str) -> Option<(&str, Path<'_>)> {
    let (name, rest) = path.split_once("/src/")?;
    let mut parts: Path<'_> = rest.strip_suffix(".rs")?.split('/').collect();
    if matches!(parts.last(), Some(&"lib" | &"main" | &"mod")) {
        parts.pop();
    }
    Some((name.rsplit('/').next().unwrap_or(name), parts))
}

/// The paths of a use declaration, its braces taken apart.
pub(super) fn expanded(declaration: &str, paths: &mut Vec<String>) {
    let Some((prefix, rest)) = declaration.split_once('{') else {
        return paths.push(declaration.split(" as ").next().unwrap_or("").trim().to_owned());
    };
    let (mut depth, mut item) = (0, String::new());
    for c in rest.chars() {
        match c {
            ',' | '}' if depth == 0 => {
                if !item.trim().is_empty() {
                    expanded(&format!("{}{}", prefix.trim(), item.trim()), paths);
                }
                item.clear();
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        item.push(c);
    }
}

/// Every path in the code that begins in its own crate.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for declaration in code.split("use ").skip(1).filter_map(|rest| rest.split_once(';')) {
        expanded(declaration.0, &mut found);
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    found.extend(code.split(|c| !is_name(c)).filter(|word| word.contains("::")).map(str::to_owned));
    found.retain(|path| ["crate", "self", "super"].contains(&path.split("::").next().unwrap_or("")));
    found
}

/// The module that a path in `from` leads to: as much of it as is one.
fn target<'a>(from: &[&'a str], path: &'a str, modules: &BTreeSet<Path<'a>>) -> Path<'a> {
    let mut at = Path::new();
    for (i, part) in path.split("::").enumerate() {
        match (i, part) {
            (0, "crate") => {}
            (0, "self") => at = from.to_vec(),
            (0, "super") => at = from[..from.len().saturating_sub(1)].to_vec(),
            (_, "super") => drop(at.pop()),
            _ => {
                at.push(part);
                if !modules.contains(&at) {
                    at.pop();
                    break;
                }
            }
        }
    }
    at
}

/// Which modules of one folder can be reached from one, along any number of uses.
fn reached<'a>(from: &'a str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        for other in uses.get(module).into_iter().flatten() {
            if seen.insert(*other) {
                next.push(other);
            }
        }
    }
    seen
}

/// The circles of one crate, given module and code of each file: folder and modules.
fn circles(files: &[(Path<'_>, String)]) -> Vec<(String, String)> {
    let modules: BTreeSet<Path<'_>> = files.iter().map(|(module, _)| module.clone()).collect();
    let used: Vec<(&Path<'_>, Vec<String>)> =
        files.iter().map(|(module, code)| (module, paths(code))).collect();
    let mut folders: BTreeMap<Path<'_>, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (module, paths) in &used {
        for path in paths {
            let target = target(module, path, &modules);
            let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                let folder = folders.entry(module[..shared].to_vec()).or_default();
                folder
                    .entry(from)
                    .or_default()
                    .insert(modules.get(&target).map_or(*to, |known| known[shared]));
            }
        }
    }
    let mut found = BTreeSet::new();
    for (folder, uses) in &folders {
        for module in uses.keys() {
            let together: Vec<&str> = reached(module, uses)
                .into_iter()
                .filter(|other| reached(other, uses).contains(module))
                .collect();
            if together.len() > 1 {
                found.insert((folder.join("::"), together.join(" ")));
            }
        }
    }
    found.into_iter().collect()
}

#[test]
fn modules_use_one_another_in_no_new_circle() {
    let sources = sources();
    let mut crates: BTreeMap<&str, Vec<(Path<'_>, String)>> = BTreeMap::new();
    for (path, text) in sources.iter().filter(|(path, _)| path.ends_with(".rs") && !is_test(path)) {
        if let Some((name, module)) = module(path) {
            crates.entry(name).or_default().push((module, shipped(text)));
        }
    }
    let mut found: Vec<(&str, String, String)> = Vec::new();
    for (name, files) in &crates {
        found.extend(circles(files).into_iter().map(|(folder, modules)| (*name, folder, modules)));
    }
    let known = |(name, folder, modules): &(&str, String, String)| {
        CIRCLES.contains(&(name, folder.as_str(), modules.as_str()))
    };
    let mut complaints: Vec<String> = found
        .iter()
        .filter(|circle| !known(circle))
        .map(|(name, folder, modules)| format!("{name}: a circle in `{folder}`: {modules}"))
        .collect();
    complaints.extend(
        CIRCLES
            .iter()
            .filter(|(name, folder, modules)| {
                !found.iter().any(|circle| *name == circle.0 && *folder == circle.1 && *modules == circle.2)
            })
            .map(|(name, folder, modules)| {
                format!("{name}: no circle in `{folder}` any more: {modules}; strike it")
            }),
    );
    none(complaints);
}

#[test]
fn checks_of_circles_can_fail() {
    let file = |module: &'static str, code: &str| (module.split("::").collect(), code.to_owned());
    let straight = [file("a", "use crate::b::{c::X, Y};\n"), file("b", ""), file("b::c", "use super::Y;\n")];
    assert!(circles(&straight).is_empty());
    let round =
        [file("a", "use crate::b::{c::X, Y};\n"), file("b", ""), file("b::c", "fn f(a: &crate::a::A) {}\n")];
    assert_eq!(circles(&round), [(String::new(), "a b".to_owned())]);
    let inner = [
        file("d", ""),
        file("d::a", "use super::b::X;\n"),
        file("d::b", "use super::super::d::c;\n"),
        file("d::c", "use crate::d::a;\n"),
    ];
    assert_eq!(circles(&inner), [("d".to_owned(), "a b c".to_owned())]);
}
