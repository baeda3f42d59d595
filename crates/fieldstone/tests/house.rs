//! The rules of the house, as tests: which crate may use which, how long a file or a function may be, what may
//! not stand in code, and that the docs name only what exists. `CONTRIBUTING.md` says them in prose.
//!
//! Each check is a function over text that returns complaints; the tests run them over the
//! repository, and the module `checks_can_fail` shows each check a text that breaks its rule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "house/circles.rs"]
mod circles;
#[path = "house/decisions.rs"]
mod decisions;
#[path = "house/dependencies.rs"]
mod dependencies;
#[path = "house/functions.rs"]
mod functions;
#[path = "house/kit.rs"]
mod kit;
#[path = "house/map.rs"]
mod map;
#[path = "house/passages.rs"]
mod passages;
#[path = "house/promised.rs"]
mod promised;
#[path = "house/prose.rs"]
mod prose;
#[path = "house/spread.rs"]
mod spread;
#[path = "house/threads.rs"]
mod threads;
#[path = "house/words.rs"]
mod words;

/// The libraries, lowest first; each may use those that [`LAYERS`] gives it.
const CORE: &str = "fieldstone-core";
const FORMAT: &str = "fieldstone-format";
const JOURNAL: &str = "fieldstone-journal";
const STORE: &str = "fieldstone-store";
const ARRAY: &str = "fieldstone-array";
const CATALOG: &str = "fieldstone-catalog";
const GRAPH: &str = "fieldstone-graph";
const WIRE: &str = "fieldstone-wire";
const SLOTS: &str = "fieldstone-slots";
const FACADE: &str = "fieldstone";

/// Each package of ours, and those of ours that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    (CORE, &[]),
    (FORMAT, &[CORE]),
    (JOURNAL, &[CORE, FORMAT]),
    (STORE, &[CORE, FORMAT, JOURNAL]),
    (ARRAY, &[CORE, FORMAT]),
    (CATALOG, &[CORE, FORMAT, JOURNAL]),
    (GRAPH, &[CORE, FORMAT, JOURNAL]),
    (SLOTS, &[CORE, FORMAT, JOURNAL, GRAPH]),
    (WIRE, &[CORE, FORMAT, JOURNAL, STORE, CATALOG, GRAPH]),
    (FACADE, &[CORE, FORMAT, JOURNAL, STORE, ARRAY, CATALOG, GRAPH, SLOTS, WIRE]),
    ("fieldstone-cli", &[FACADE]),
    ("fieldstone-capi", &[FACADE]),
    ("fieldstone-python", &[FACADE]),
    ("fieldstone-testkit", &[CORE]),
    ("fieldstone-simulation", &[CORE, FORMAT, JOURNAL, STORE, FACADE]),
];

/// Files of more than [`LONG`] lines, each with the reason why it is not split.
const LONG_FILES: &[(&str, &str)] = &[];
const LONG: usize = 800;
const TOO_LONG: usize = 1_200;

/// Most methods of a public trait: one that implements or wraps it has to understand all of them.
const METHODS_MAX: usize = 20;

/// The places of `unsafe`, each with the reason; a name that ends in `/` is a folder.
const UNSAFE_FILES: &[(&str, &str)] = &[
    ("capi/", "a C ABI takes raw pointers from its caller"),
    ("crates/array/tests/memory.rs", "an allocator that counts"),
    (
        "crates/catalog/src/engine/checked.rs",
        "files of SQLite's, read and written through a table of C functions",
    ),
    (
        "crates/catalog/src/engine/fork.rs",
        "SQLite's mutexes and its fstat are wrapped for processes that fork",
    ),
    ("crates/catalog/src/engine/vfs.rs", "the table of C functions itself, which SQLite calls"),
    ("crates/catalog/tests/fork.rs", "it forks, and waits for its children"),
    ("crates/core/src/env/real.rs", "sync_file_range, for which rustix has no binding"),
    ("crates/core/src/env/real/huge_pages.rs", "an allocator, and advice on its memory"),
    ("crates/core/src/env/real/process.rs", "a page of memory that the kernel empties in a forked child"),
    ("crates/fieldstone/src/execution/child.rs", "handlers of signals, for which rustix has no binding"),
    ("crates/journal/src/fork.rs", "a list that needs no lock, which a fork could leave locked"),
    ("python/src/catalog/arrow.rs", "C structures of Arrow are taken out of capsules"),
    ("python/src/data.rs", "memory of Python objects is read and filled without copying it"),
];

/// Crates that reach the outside world through `core::env` alone, and the one file behind it.
const PURE: &[&str] = &[
    "crates/array/src/",
    "crates/core/src/",
    "crates/format/src/",
    "crates/journal/src/",
    "crates/store/src/",
];
const REAL: &str = "crates/core/src/env/real";

/// Marks of unfinished work, spelled in halves so that this file does not hold them.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file of the repository with one of the extensions, as (path from the root, text).
/// Folders that begin with a dot and those that hold what a build or a run makes are left out.
fn files(extensions: &[&str]) -> Vec<(String, String)> {
    fn walk(folder: &Path, root: &Path, extensions: &[&str], found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let made = ["__pycache__", "node_modules", "wheel-data", "demo-out"].contains(&name.as_str());
                if !made && !name.starts_with('.') && !name.starts_with("target") {
                    walk(&path, root, extensions, found);
                }
            } else if extensions.iter().any(|extension| path.extension().is_some_and(|e| e == *extension))
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((path.strip_prefix(root).unwrap().to_string_lossy().into_owned(), text));
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &root, extensions, &mut found);
    found.sort();
    assert!(!found.is_empty(), "no file ends in {extensions:?}");
    found
}

fn sources() -> Vec<(String, String)> {
    files(&["rs", "py", "c", "h", "f90", "sh"])
}

// ---- layers

/// The package's name and those of ours that it ships with: dev-dependencies do not count.
fn uses(manifest: &str) -> (String, BTreeSet<String>) {
    let (mut name, mut used, mut section) = (String::new(), BTreeSet::new(), String::new());
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        }
        let ships = section.contains("dependencies") && !section.contains("dev-dependencies");
        if let Some(value) = line.strip_prefix("name = ").filter(|_| section == "package") {
            name = value.trim_matches('"').to_owned();
        }
        // Under a header, as the header's last part, or renamed: any word that is a name of ours.
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        used.extend(words.filter(|word| ships && word.starts_with(FACADE)).map(str::to_owned));
    }
    (name, used)
}

fn layer_complaints(manifest: &str) -> Vec<String> {
    let (name, used) = uses(manifest);
    let Some((_, allowed)) = LAYERS.iter().find(|(package, _)| *package == name) else {
        return vec![format!("package `{name}` has no place in the table of layers")];
    };
    let forbidden = used.iter().filter(|other| !allowed.contains(&other.as_str()));
    forbidden.map(|other| format!("`{name}` must not use `{other}`")).collect()
}

// ---- code

fn length_complaint(path: &str, lines: usize, listed: bool) -> Option<String> {
    match (lines, listed) {
        (TOO_LONG.., _) => Some(format!("{path} has {lines} lines, {TOO_LONG} or more: split it")),
        (LONG.., false) => {
            Some(format!("{path} has {lines} lines, {LONG} or more: split it, or list why not"))
        }
        (..LONG, true) => Some(format!("{path} has {lines} lines: take it off the list of long files")),
        _ => None,
    }
}

fn unfinished(path: &str, text: &str) -> Vec<String> {
    let mark = |line: &str| UNFINISHED.iter().copied().find(|mark| line.contains(mark));
    let found = text.lines().enumerate().filter_map(|(n, line)| Some((n + 1, mark(line)?)));
    found.map(|(line, mark)| format!("{path}:{line}: {mark}")).collect()
}

/// The code of a Rust file that ships: without line comments and without items under `#[cfg(test)]`.
fn shipped(text: &str) -> String {
    let (mut code, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let indent = &line[..line.len() - line.trim_start().len()];
            let item = lines.by_ref().find(|line| !line.trim_start().starts_with("#[")).unwrap_or("");
            if item.ends_with('{') {
                let end = format!("{indent}}}"); // rustfmt puts the closing brace under the item
                lines.by_ref().find(|line| *line == end);
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or(""));
        code.push('\n');
    }
    code
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

/// Which of `std::fs` and `std::time` the code names, also as `use std::{fs, …}`.
fn outside_world(code: &str) -> Vec<&'static str> {
    let packed: String = code.split_whitespace().collect();
    let groups: Vec<&str> =
        packed.split("std::{").skip(1).filter_map(|rest| rest.split(';').next()).collect();
    let named = |module: &&str| {
        let path = format!("std::{module}");
        packed.split(&path).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            || groups.iter().any(|group| has_word(group, module))
    };
    ["fs", "time"].into_iter().filter(named).collect()
}

/// The public traits of a file with the number of their own methods, provided ones too.
fn public_traits(code: &str) -> Vec<(String, usize)> {
    let (mut traits, mut lines) = (Vec::new(), code.lines());
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let head = line.trim_start().trim_start_matches("pub ").trim_start_matches("unsafe ");
        let Some(head) = head.strip_prefix("trait ").filter(|_| line.trim_start().starts_with("pub ")) else {
            continue;
        };
        let name: String = head.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if line.ends_with("{}") {
            traits.push((name, 0));
            continue;
        }
        let end = format!("{indent}}}"); // rustfmt puts the closing brace under the trait
        let own = format!("{indent}    "); // and its items one step further in
        let is_method = |line: &str| {
            let item = line.strip_prefix(&own).filter(|item| !item.starts_with(' ')).unwrap_or("");
            let words = item.split(' ').take_while(|word| ["unsafe", "async", "const", "fn"].contains(word));
            words.last() == Some("fn")
        };
        let methods = lines.by_ref().take_while(|line| *line != end).filter(|line| is_method(line)).count();
        traits.push((name, methods));
    }
    traits
}

fn trait_complaints(path: &str, code: &str) -> Vec<String> {
    let traits = public_traits(code).into_iter().filter(|(_, methods)| *methods > METHODS_MAX);
    let complaint = |(name, methods)| {
        format!(
            "{path}: `{name}` has {methods} methods, more than {METHODS_MAX}: split it by what its users need"
        )
    };
    traits.map(complaint).collect()
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

// ---- docs

/// The targets of the links of a page that lead to files of the repository.
fn links(markdown: &str) -> Vec<&str> {
    let prose = markdown.split("```").step_by(2); // what lies between is code
    let targets = prose.flat_map(|text| text.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

/// Complaints about a table of `docs/papers.md`: the last column of each row names, in backticks, the
/// tests, examples or benchmarks that show the row, or gives the reason why ours differs. A name is
/// `path`, `path::name` or `name`, where needed with `test: ` or the like before it.
fn paper_complaints(markdown: &str, exists: impl Fn(Option<&str>, Option<&str>) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines: Vec<&str> = markdown.lines().map(str::trim).collect();
    for (n, row) in lines.iter().enumerate() {
        let is_header = lines.get(n + 1).is_some_and(|next| next.starts_with("|-"));
        if !row.starts_with('|') || row.starts_with("|-") || is_header {
            continue;
        }
        let last = row.strip_suffix('|').unwrap_or(row).rsplit('|').next().unwrap_or("").trim();
        if last.is_empty() {
            complaints.push(format!("line {}: neither a name nor a reason", n + 1));
        }
        for token in last.split('`').skip(1).step_by(2) {
            let token = token.split_once(": ").map_or(token, |(_, name)| name);
            let (path, name) = match token.split_once("::") {
                Some((path, name)) if path.contains(['/', '.']) => (Some(path), name.rsplit("::").next()),
                None if token.contains(['/', '.']) => (Some(token), None),
                _ => (None, token.rsplit("::").next()),
            };
            if !exists(path, name) {
                complaints.push(format!("line {}: `{token}` does not exist", n + 1));
            }
        }
    }
    complaints
}

// ---- the repository

fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn crates_use_only_the_layers_below_them() {
    let manifests = files(&["toml"]).into_iter().filter(|(path, _)| path.ends_with("/Cargo.toml"));
    let members = manifests.filter(|(_, text)| !text.lines().any(|line| line == "[workspace]")); // not another one
    none(members.flat_map(|(_, text)| layer_complaints(&text)).collect());
}

#[test]
fn files_stay_readable_in_length() {
    let listed = |path: &str| LONG_FILES.iter().any(|(long, _)| *long == path);
    let files = files(&["rs", "py"]);
    let gone = LONG_FILES.iter().filter(|(long, _)| files.iter().all(|(path, _)| path != long));
    let gone = gone.map(|(long, _)| format!("{long} is listed as long but does not exist"));
    let lengths =
        files.iter().filter_map(|(path, text)| length_complaint(path, text.lines().count(), listed(path)));
    none(lengths.chain(gone).collect());
}

#[test]
fn nothing_is_left_unfinished() {
    none(sources().iter().flat_map(|(path, text)| unfinished(path, text)).collect());
}

#[test]
fn the_outside_world_is_reached_through_env_alone() {
    let pure = |path: &str| PURE.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(REAL);
    let files = files(&["rs"]).into_iter().filter(|(path, _)| pure(path) && !is_test(path));
    let named = |(path, text): (String, String)| {
        let modules = outside_world(&shipped(&text)).into_iter();
        modules.map(move |module| format!("{path} uses std::{module}: go through core::env"))
    };
    none(files.flat_map(named).collect());
}

#[test]
fn public_traits_can_be_implemented() {
    let files: Vec<_> = files(&["rs"]).into_iter().filter(|(path, _)| !is_test(path)).collect();
    let named = files.iter().flat_map(|(_, text)| public_traits(&shipped(text)));
    let fields = named.filter(|(name, _)| name == "FieldAccess").map(|(_, methods)| methods);
    assert_eq!(fields.collect::<Vec<_>>().len(), 1, "the check does not find the trait of fields");
    none(files.iter().flat_map(|(path, text)| trait_complaints(path, &shipped(text))).collect());
}

#[test]
fn unsafe_stands_only_where_it_is_listed() {
    let covers =
        |listed: &str, path: &str| path == listed || listed.ends_with('/') && path.starts_with(listed);
    let this = "crates/fieldstone/tests/house.rs";
    let files =
        files(&["rs"]).into_iter().filter(|(path, text)| path != this && has_word(&shipped(text), "unsafe"));
    let used: Vec<String> = files.map(|(path, _)| path).collect();
    let unlisted = used.iter().filter(|path| !UNSAFE_FILES.iter().any(|(listed, _)| covers(listed, path)));
    let idle = UNSAFE_FILES.iter().filter(|(listed, _)| !listed.ends_with('/'));
    let idle = idle.filter(|(listed, _)| !used.iter().any(|path| path == listed));
    let unlisted = unlisted.map(|path| format!("{path} uses unsafe and is not listed"));
    none(unlisted.chain(idle.map(|(path, _)| format!("{path} is listed for unsafe and has none"))).collect());
}

#[test]
fn every_crate_opens_with_what_it_is_for() {
    let is_root = |path: &str| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    let silent = files(&["rs"]).into_iter().filter(|(path, text)| is_root(path) && !text.starts_with("//! "));
    none(silent.map(|(path, _)| format!("{path} does not open with //! docs")).collect());
}

#[test]
fn papers_name_only_what_exists() {
    let Ok(papers) = fs::read_to_string(root().join("docs/papers.md")) else { return };
    let sources = sources();
    // Found once, and not by each of a thousand names again.
    let apart = |c: char| !(c.is_alphanumeric() || c == '_');
    let words: HashSet<&str> = sources.iter().flat_map(|(_, text)| text.split(apart)).collect();
    let exists = |path: Option<&str>, name: Option<&str>| match (path, name) {
        (Some(path), None) => root().join(path).exists(),
        (Some(path), Some(name)) => {
            fs::read_to_string(root().join(path)).is_ok_and(|text| has_word(&text, name))
        }
        (None, Some(name)) => words.contains(name),
        (None, None) => false,
    };
    none(paper_complaints(&papers, exists));
}

#[test]
fn links_lead_somewhere_and_every_page_is_linked() {
    let pages = files(&["md"]);
    let (mut reached, mut broken) = (BTreeSet::new(), Vec::new());
    for (page, text) in &pages {
        for link in links(text) {
            match root().join(page).parent().unwrap().join(link).canonicalize() {
                Ok(target) => drop(reached.insert(target)),
                Err(_) => broken.push(format!("{page}: the link to {link} leads nowhere")),
            }
        }
    }
    let documents = pages.iter().filter(|(page, _)| page.starts_with("docs/") || page.starts_with("spec/"));
    let lost = documents.filter(|(page, _)| !reached.contains(&root().join(page)));
    none(lost.map(|(page, _)| format!("no page links to {page}")).chain(broken).collect());
}

mod checks_can_fail {
    use super::*;

    #[test]
    fn layers() {
        let complaints =
            |rest: &str| layer_complaints(&format!("[package]\nname = \"fieldstone-store\"\n{rest}\n"));
        assert!(complaints("[dependencies]\nfieldstone-core.workspace = true").is_empty());
        assert!(complaints("[dev-dependencies]\nfieldstone = \"0\"").is_empty());
        for rest in [
            "[dependencies]\nfieldstone-graph.workspace = true",
            "[dependencies.fieldstone-graph]\npath = \"x\"",
            "[build-dependencies]\nfieldstone-graph = { path = \"x\" }",
            "[target.'cfg(unix)'.dependencies]\nfieldstone-graph = \"1\"",
            "[dependencies]\nother = { package = \"fieldstone-graph\" }",
        ] {
            assert_eq!(complaints(rest), ["`fieldstone-store` must not use `fieldstone-graph`"]);
        }
        assert_eq!(layer_complaints("[package]\nname = \"fieldstone-new\"\n").len(), 1);
    }

    #[test]
    fn lengths() {
        assert_eq!(length_complaint("a.rs", 799, false), None);
        assert_eq!(length_complaint("a.rs", 900, true), None);
        assert!(length_complaint("a.rs", 800, false).is_some());
        assert!(length_complaint("a.rs", 1_200, true).is_some());
        assert!(length_complaint("a.rs", 799, true).is_some());
    }

    #[test]
    fn marks_of_unfinished_work() {
        for mark in UNFINISHED {
            assert_eq!(
                unfinished("a.rs", &format!("fn f() {{\n    {mark}()\n}}")),
                [format!("a.rs:2: {mark}")]
            );
        }
        assert!(unfinished("a.rs", "fn method() {}").is_empty());
    }

    #[test]
    fn the_outside_world() {
        assert_eq!(outside_world("use std::fs::File;\nlet t: std::time::Instant;"), ["fs", "time"]);
        assert_eq!(outside_world("use std::{\n    fmt,\n    time::{self, Instant},\n};"), ["time"]);
        assert!(outside_world("use std::fmt;\nlet fs = rustix::fs::open;\nstd::timely();").is_empty());
        let tested = "use std::io;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nfn f() {} // std::time\n";
        assert!(outside_world(&shipped(tested)).is_empty());
        assert_eq!(outside_world(&shipped("#[cfg(test)]\nmod tests;\nuse std::fs;\n")), ["fs"]);
    }

    #[test]
    fn traits() {
        let with = |methods: usize, rest: &str| {
            let methods: String = (0..methods).map(|i| format!("    fn f{i}(&self) -> u8;\n\n")).collect();
            format!("pub trait Wide: Send {{\n{methods}{rest}}}\n")
        };
        assert!(trait_complaints("a.rs", &with(20, "")).is_empty());
        let expected = "a.rs: `Wide` has 21 methods, more than 20: split it by what its users need";
        for rest in [
            "    fn last(&self);\n",
            "    unsafe fn last(&self);\n",
            "    fn last(&self) -> u8 {\n        self.f0()\n    }\n",
            "    fn last<\n        A,\n    >(\n        &self,\n        f: fn(A),\n    );\n",
        ] {
            assert_eq!(trait_complaints("a.rs", &with(20, rest)), [expected]);
            let inside = with(20, rest).replace('\n', "\n    ");
            assert_eq!(trait_complaints("a.rs", &format!("mod m {{\n    {inside}\n}}\n")), [expected]);
        }
        // Private methods, the content of bodies, and methods outside the trait do not count.
        let body = "    fn last(&self) -> u8 {\n        fn g() {}\n        g()\n    }\n    const N: u8;\n";
        for good in [
            with(21, "").replace("pub trait", "trait"),
            with(21, "").replace("pub trait", "pub(crate) trait"),
            with(19, body),
            format!("{}impl A {{\n    fn f() {{}}\n}}\n", with(20, "")),
            format!("pub trait Empty: A + B {{}}\nimpl A {{\n{}", "    fn f() {}\n".repeat(30)),
        ] {
            assert_eq!(trait_complaints("a.rs", &good), [""; 0], "{good}");
        }
    }

    #[test]
    fn unsafe_code() {
        assert!(has_word(&shipped("let x = unsafe { f() };"), "unsafe"));
        assert!(!has_word(&shipped("#![deny(unsafe_code)] // unsafe"), "unsafe"));
    }

    #[test]
    fn papers() {
        let exists = |path: Option<&str>, name: Option<&str>| {
            path.is_none_or(|path| path == "tests/a.rs") && name.is_none_or(|name| name == "b")
        };
        let complaints = |last: &str| {
            paper_complaints(&format!("| what | shown by |\n|---|---|\n| x | {last} |\n"), exists).len()
        };
        for good in ["`tests/a.rs`", "`test: tests/a.rs::m::b`", "`b`", "differs: a reason", "`b`, `m::b`"] {
            assert_eq!(complaints(good), 0, "{good}");
        }
        for bad in ["`tests/c.rs`", "`tests/a.rs::c`", "`test: c`", "", "`b`, `c`"] {
            assert_eq!(complaints(bad), 1, "{bad}");
        }
    }

    #[test]
    fn page_links() {
        assert_eq!(links("[a](b.md), [c](https://x), [d](#e) and [f](g/h.md#i)"), ["b.md", "g/h.md"]);
        assert_eq!(links("[a](b)\n```python\nf[i](j)\n```\n[c](d)"), ["b", "d"]);
    }
}
