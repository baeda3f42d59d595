//! `ARCHITECTURE.md`, the design decisions and the glossary lead readers to code: what they name has to be there.
//!
//! ```text
//! `crates/store/src/api`, `bench/run.sh`                a file or folder of the repository
//! `crates/journal/src/journal/{commit,transactions}.rs` several of them
//! `journal::writer::{log_file, linked}`                 modules of a crate of ours
//! `catalog::engine::Database`                           a module, and a word that the crate has
//! ```

use std::fs;
use std::path::Path;

use super::{files, has_word, none, root};

/// The crates whose names begin such paths.
const CRATES: &[&str] =
    &["core", "format", "journal", "store", "array", "catalog", "graph", "slots", "fieldstone"];
/// The folders that begin paths of files.
const FOLDERS: &[&str] = &["bench/", "capi/", "crates/", "docs/", "fuzz/", "python/", "spec/", "tests/"];

/// A name with one list in braces as all that it stands for.
fn each(name: &str) -> Vec<String> {
    match name.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (list, tail))) => {
            list.split(',').map(|item| format!("{head}{}{tail}", item.trim())).collect()
        }
        None => vec![name.to_owned()],
    }
}

/// Whether a path of modules leads to a module, or its last part is a word of the module or folder it leads to.
fn is_in_code(name: &str, exists: &impl Fn(&str) -> bool, has: &impl Fn(&str, &str) -> bool) -> bool {
    let path = format!("crates/{}", name.replacen("::", "/src/", 1).replace("::", "/"));
    let is_module = |path: &str| exists(&format!("{path}.rs")) || exists(&format!("{path}/mod.rs"));
    let item = path
        .rsplit_once('/')
        .is_some_and(|(module, word)| (is_module(module) || module.ends_with("/src")) && has(module, word));
    is_module(&path) || item
}

/// Names of a page, in backticks, that lead nowhere. `exists`: whether there is a file or folder; `has`: whether
/// a word stands in a module, given without its ending.
fn map_complaints(
    page: &str,
    markdown: &str,
    exists: &impl Fn(&str) -> bool,
    has: &impl Fn(&str, &str) -> bool,
) -> Vec<String> {
    let prose = markdown.split("```").step_by(2); // what lies between is code
    let tokens = prose.flat_map(|text| text.split('`').skip(1).step_by(2));
    let mut complaints = Vec::new();
    for token in tokens {
        let is_file = FOLDERS.iter().any(|folder| token.starts_with(folder));
        let is_code = token.split_once("::").is_some_and(|(first, _)| CRATES.contains(&first));
        for name in each(token).iter().filter(|_| is_file || is_code) {
            let path = name.split([' ', '(']).next().unwrap_or("");
            let is_there =
                if is_file { exists(path.trim_end_matches('/')) } else { is_in_code(path, exists, has) };
            if !is_there {
                complaints.push(format!("{page}: `{name}` leads nowhere"));
            }
        }
    }
    complaints
}

/// Types that the glossary says our words are called in code, and which no code defines (any more): a word that
/// was renamed there has to lose that note here.
fn old_names(glossary: &str, defines: &impl Fn(&str) -> bool) -> Vec<String> {
    let notes = glossary.lines().filter_map(|row| row.split_once("n code")?.1.split('|').next());
    let types = notes.flat_map(|note| note.split('`').skip(1).step_by(2));
    let types = types.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()) && !defines(name));
    types.map(|name| format!("docs/glossary.md: no code defines `{name}`")).collect()
}

#[test]
fn the_glossary_knows_how_code_calls_it() {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let code: Vec<_> = files(&["rs"]).into_iter().filter(|(path, _)| path.starts_with("crates/")).collect();
    let defines = |name: &str| {
        let kinds = ["struct", "enum", "trait", "type"].map(|kind| format!("{kind} {name}"));
        let begins = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        code.iter().any(|(_, text)| kinds.iter().any(|kind| text.split(kind.as_str()).skip(1).any(begins)))
    };
    assert!(defines("Snapshot") && !defines("Snapsho"));
    none(old_names(&glossary, &defines));
    let row = "| **word** | what. In code `Old`, also *old* and `new.rs` | `Other` |";
    assert_eq!(old_names(row, &|name| name == "New"), ["docs/glossary.md: no code defines `Old`"]);
    assert!(old_names(row, &|name| name == "Old").is_empty());
}

#[test]
fn the_map_leads_to_code() {
    let exists = |path: &str| root().join(path).exists();
    let has = |module: &str, word: &str| {
        let at = |path: String| fs::read_to_string(root().join(path)).is_ok_and(|text| has_word(&text, word));
        at(format!("{module}.rs")) || at(format!("{module}/mod.rs")) || at(format!("{module}/lib.rs"))
    };
    let is_map = |path: &str| {
        path == "ARCHITECTURE.md" || path == "docs/glossary.md" || Path::new(path).starts_with("docs/design")
    };
    let pages: Vec<_> = files(&["md"]).into_iter().filter(|(path, _)| is_map(path)).collect();
    assert!(pages.len() > 2, "the check finds no map");
    none(pages.iter().flat_map(|(path, text)| map_complaints(path, text, &exists, &has)).collect());
}

#[test]
fn a_wrong_map_is_noticed() {
    let exists =
        |path: &str| ["crates/store/src/api/mod.rs", "crates/store/src/api", "docs/a.md"].contains(&path);
    let has = |module: &str, word: &str| module == "crates/store/src/api" && word == "Field";
    let complaints = |text: &str| map_complaints("p.md", text, &exists, &has).len();
    for good in
        ["`store::api`", "`crates/store/src/api/`", "`store::{api}`", "`store::api::Field`", "`std::fs`"]
    {
        assert_eq!(complaints(good), 0, "{good}");
    }
    assert_eq!(complaints("```text\n`store::none`\n```\n`docs/a.md`"), 0);
    for bad in ["`store::read`", "`crates/store/src/read`", "`store::{api, read}`", "`store::api::Fields`"] {
        assert_eq!(complaints(bad), 1, "{bad}");
    }
    assert_eq!(complaints("`docs/{b,c}.md` and `docs/{a,d}.md`"), 3);
}
