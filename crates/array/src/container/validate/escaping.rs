//! Whether names of a file that escapes paths are distinct when they are shown.
//!
//! Different paths have different spellings. But tools that know nothing of paths may give a file names that no
//! path is escaped as (`x~y`), which are shown as they stand; the escaping of the path with that very name
//! (`x~~y`) is then shown alike, and by that name one of the two is found.

use std::collections::HashSet;

use fieldstone_format::netcdf::parse::{Examined, Finding, Findings, shown};
use fieldstone_format::netcdf::{Names, paths};

/// Notes names that are shown as another of their list is.
pub(super) fn check(file: &Examined, findings: &mut Findings) {
    let (header, places) = (&file.header, &file.places);
    of_list("dimension", &header.dims.names, places.dims_at, findings);
    of_list("global attribute", &header.attrs.names, places.attrs_at, findings);
    of_list("variable", &header.vars.names, places.vars_at, findings);
}

fn of_list(kind: &str, names: &Names, at: u64, findings: &mut Findings) {
    // Those that no path is escaped as are rare, and without them nothing is shown twice.
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
        let rule = "names of a file that escapes paths are shown apart";
        let message =
            format!("it is no escaped path and shown as it stands; `{}` is shown so, too", shown(escaping));
        let finding = Finding::warning(at, format!("{kind} `{}`", shown(name)), rule, message);
        findings.push(finding.with_hint("rename one of the two, with ncrename for example"));
    }
}
