//! Files, folders and stores below what is typed.

use std::path::Path;

use super::Candidate;

/// Files and folders.
pub fn any(current: &str) -> Vec<Candidate> {
    below(current, |name, path| match path.is_dir() {
        true => Some(Candidate::new(format!("{name}/"), "")),
        false => Some(Candidate::new(name, "")),
    })
}

/// Stores, and folders that may hold some.
pub fn stores(current: &str) -> Vec<Candidate> {
    below(current, |name, path| match path.is_dir() {
        true if path.join("logs").is_dir() && path.join("boards").is_dir() => {
            Some(Candidate::new(name, "store"))
        }
        true => Some(Candidate::new(format!("{name}/"), "")),
        false => None,
    })
}

fn below(current: &str, shown: impl Fn(&str, &Path) -> Option<Candidate>) -> Vec<Candidate> {
    let (folder, start) = match current.rfind('/') {
        Some(at) => current.split_at(at + 1),
        None => ("", current),
    };
    // The shell keeps the tilde, so that what is typed stays as it is.
    let real = match (folder.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ if folder.is_empty() => "./".to_owned(),
        _ => folder.to_owned(),
    };
    let entries = std::fs::read_dir(real).into_iter().flatten().flatten();
    let mut found: Vec<Candidate> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            (name.starts_with(start) && !hidden).then(|| shown(&name, &entry.path())).flatten()
        })
        .map(|c| Candidate { word: format!("{folder}{}", c.word), ..c })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_distinguished_from_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["store/logs", "store/boards", "some/deeper", ".hidden"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("s.grib"), "").unwrap();
        let root = format!("{}/", folder.path().display());
        let names = |found: Vec<Candidate>| -> Vec<String> {
            found.into_iter().map(|c| c.word.strip_prefix(&root).unwrap().to_owned()).collect()
        };
        assert_eq!(names(stores(&format!("{root}s"))), ["some/", "store"]);
        assert_eq!(names(any(&format!("{root}s"))), ["s.grib", "some/", "store/"]);
        assert_eq!(names(stores(&root)), ["some/", "store"]);
        assert_eq!(names(any(&format!("{root}.h"))), [".hidden/"]);
        assert_eq!(any("/no/such/folder/"), []);
    }
}
