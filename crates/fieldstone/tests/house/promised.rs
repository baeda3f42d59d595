//! The promised API hands out values, not records: names of the crate of bytes leave the facade only if they are
//! listed here, each with a reason (B-1).
//!
//! The calls of a field store reach the facade as a whole, so their crate's `api` follows the same rule.

use super::circles::expanded;
use super::{files, none, shipped};

/// The folders that make up the promised API.
const FOLDERS: &[&str] = &["crates/fieldstone/src/", "crates/store/src/api/"];
/// The crate of bytes, as code names it.
const BYTES: &str = "fieldstone_format::";

/// The names that leave, each with the reason; a name that ends in `::` stands for all below it.
const LEAVE: &[(&str, &str)] = &[
    ("FORMAT_VERSION", "the number of the format itself, which programs print"),
    ("chunk", "functions that write chunks for readers of Zarr, a format of others"),
    ("graph::Props", "properties stay in the bytes of their record until somebody reads one"),
    ("graph::push_props", "it fills a column with such properties, without a value for each row"),
    ("netcdf::", "the words of netCDF classic, a format of others: a container is such a file"),
];

/// The names of the crate of bytes that a file hands on to everybody.
fn handed_on(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for declaration in code.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';')) {
        expanded(declaration.0, &mut paths);
    }
    paths.iter().filter_map(|path| path.strip_prefix(BYTES).map(str::to_owned)).collect()
}

fn may_leave(listed: &str, name: &str) -> bool {
    name == listed || listed.ends_with("::") && name.starts_with(listed)
}

#[test]
fn only_listed_names_of_the_crate_of_bytes_are_promised() {
    let promised = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let sources = files(&["rs"]).into_iter().filter(|(path, _)| promised(path));
    let found: Vec<(String, String)> = sources
        .flat_map(|(path, text)| handed_on(&shipped(&text)).into_iter().map(move |name| (path.clone(), name)))
        .collect();
    let unlisted = found.iter().filter(|(_, name)| !LEAVE.iter().any(|(listed, _)| may_leave(listed, name)));
    let unlisted = unlisted.map(|(path, name)| {
        format!("{path} promises `{BYTES}{name}`: move the value to the core, or list the name with a reason")
    });
    let idle = LEAVE.iter().filter(|(listed, _)| !found.iter().any(|(_, name)| may_leave(listed, name)));
    let idle = idle.map(|(listed, _)| format!("`{listed}` is listed, but the facade does not promise it"));
    none(unlisted.chain(idle).collect());
}

#[test]
fn names_are_found_in_lists_and_only_if_everybody_gets_them() {
    let code = "pub use fieldstone_format::{A, b::{C, D}};\npub use fieldstone_format::e;\n";
    assert_eq!(handed_on(code), ["A", "b::C", "b::D", "e"]);
    assert_eq!(handed_on("pub use fieldstone_format::a::B as C;"), ["a::B"]);
    let within =
        "pub(crate) use fieldstone_format::A;\nuse fieldstone_format::B;\npub use fieldstone_core::C;\n";
    assert!(handed_on(within).is_empty());
    assert!(may_leave("netcdf::", "netcdf::layout::Layout") && may_leave("chunk", "chunk"));
    assert!(!may_leave("netcdf::", "netcdf") && !may_leave("chunk", "chunk::encode"));
}
