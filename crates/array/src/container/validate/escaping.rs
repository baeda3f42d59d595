//! Checks that the names in a file with escaped paths are distinct when displayed.
//!
//! Different paths have different escaped forms. But tools without paths may give a file names that are not the
//! escaped form of any path (`x~y`); these are displayed unchanged. A path that is displayed with the same name
//! (escaped as `x~~y`) then looks alike, and a search by that name finds only one of the two.

use std::collections::HashSet;

use fieldstone_format::netcdf::parse::{Examined, Finding, Findings, shown};
use fieldstone_format::netcdf::{Names, paths};

/// Reports names that are displayed like another name of their list.
pub(super) fn check(file: &Examined, findings: &mut Findings) {
    let (header, places) = (&file.header, &file.places);
    of_list("dimension", &header.dims.names, places.dims_at, findings);
    of_list("global attribute", &header.attrs.names, places.attrs_at, findings);
    of_list("variable", &header.vars.names, places.vars_at, findings);
}

fn of_list(kind: &str, names: &Names, at: u64, findings: &mut Findings) {
    // Names that are not an escaped path are rare, and without them all displayed names differ.
    let mut escaping = String::new();
    let unspelled: Vec<(&str, String)> = names
        .iter()
        .filter_map(|name| {
            escaping.clear();
            paths::encode(name, &mut escaping);
            (escaping != name && paths::decode(name) == name).then(|| (name, escaping.clone()))
        })
        .collect();
    if unspelled.is_empty() {
        return;
    }
    let all: HashSet<&str> = names.iter().collect();
    for (name, escaping) in unspelled.iter().filter(|(_, escaping)| all.contains(&**escaping)) {
        let rule = "names of a file with escaped paths differ when displayed";
        let message = format!(
            "it is not an escaped path and is displayed unchanged; `{}` is displayed the same way",
            shown(escaping)
        );
        let finding = Finding::warning(at, format!("{kind} `{}`", shown(name)), rule, message);
        findings.push(finding.with_hint("rename one of the two, with ncrename for example"));
    }
}
