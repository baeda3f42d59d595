//! The location of a store's engine.
//!
//! | store | engine |
//! |---|---|
//! | in memory, on a simulated disk, or open at an older version | in memory, by replay |
//! | a folder on a local file system that is ours, in which others cannot replace our files | `<store>/catalog/index.sqlite` |
//! | any other folder | `$XDG_CACHE_HOME/fieldstone/<store id>/index.sqlite`, or `~/.cache` if that is not set |
//! | the cache is on a network, or others may write to it | a folder of the user under the system's temporary folder |
//! | the same holds for all of these | in memory |
//! | the disk of these is full | in memory, for a while |
//!
//! Invariants:
//! * SQLite never opens a file on a network file system;
//! * an engine belongs to one user: no file and no link of another user is opened, and none is created for
//!   others (`trusted_folder`);
//! * nothing is created in a folder of another user.

use std::path::{Path, PathBuf};

use fieldstone_core::env::real::trusted_folder;
use fieldstone_core::{Code, Result};
use fieldstone_journal::home::Home;

/// Name of the engine's folder in the store's.
const FOLDER: &str = "catalog";
/// Name of the engine's file.
const FILE: &str = "index.sqlite";

/// The location of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineLocation {
    /// In this process's memory.
    Memory,
    /// An SQLite file.
    File(PathBuf),
    /// A schema of a PostgreSQL server.
    Postgres(String),
}

impl std::fmt::Display for EngineLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EngineLocation::Memory => f.write_str("memory"),
            EngineLocation::File(path) => write!(f, "{}", path.display()),
            EngineLocation::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

/// The URL without its password, for messages.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (server, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match server.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or("");
            format!("{scheme}://{user}@{host}{tail}")
        }
        None => url.to_owned(),
    }
}

/// Chooses the engine's location. `engine` is the caller's choice; without one, a store in a folder uses the
/// variable `FIELDSTONE_CATALOG`.
pub fn choose(home: &Home, engine: Option<&str>) -> Result<EngineLocation> {
    if home.pinned {
        return Ok(EngineLocation::Memory);
    }
    let variable =
        std::env::var("FIELDSTONE_CATALOG").ok().filter(|text| !text.is_empty() && home.folder.is_some());
    match engine.or(variable.as_deref()) {
        Some(url) if url.starts_with("postgresql://") || url.starts_with("postgres://") => {
            return Ok(EngineLocation::Postgres(url.to_owned()));
        }
        Some("memory:") => return Ok(EngineLocation::Memory),
        Some(url) => {
            return Err(Code::Url.error(format!("'{url}' is not a valid URL of a catalog's engine")).with_hint(
                "give postgresql://user@host/database, memory:, or nothing for the file next to the store",
            ));
        }
        None => {}
    }
    let Some(folder) = &home.folder else { return Ok(EngineLocation::Memory) };
    let own = trusted_folder::for_index(folder, FOLDER, &[&home.id.to_string()], home.env.identity.uid());
    Ok(own.map_or(EngineLocation::Memory, |folder| EngineLocation::File(folder.join(FILE))))
}

/// Whether an engine's file can still be at its path; false if its folder was deleted or replaced.
pub fn stands(path: &Path, uid: u32) -> bool {
    path.parent().is_some_and(|folder| trusted_folder::is_own(folder, uid))
}

/// The file for this layout, if a newer one uses the usual name.
pub fn of_layout(path: &Path, layout: &str) -> PathBuf {
    path.with_file_name(format!("index-{layout}.sqlite"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use super::*;
    use fieldstone_core::env::{Env, Identity};
    use fieldstone_format::Id;

    /// This machine, for another user.
    #[derive(Debug)]
    struct User(u32);

    impl Identity for User {
        fn host(&self) -> String {
            Env::real().identity.host()
        }
        fn process(&self) -> u32 {
            Env::real().identity.process()
        }
        fn uid(&self) -> u32 {
            self.0
        }
        fn user_name(&self, uid: u32) -> String {
            uid.to_string()
        }
        fn alive(&self, process: u32) -> bool {
            Env::real().identity.alive(process)
        }
    }

    fn beside(home: &Home, store: &Path) -> Option<PathBuf> {
        trusted_folder::beside(store, FOLDER, home.env.identity.uid()).map(|folder| folder.join(FILE))
    }

    fn home(folder: Option<&Path>) -> Home {
        let folder = folder.map(Path::to_owned);
        Home { id: Id([7; 16]), folder, writable: true, pinned: false, env: Env::real() }
    }

    #[test]
    fn it_stands_beside_the_store_or_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let found = choose(&home(Some(folder.path())), None).unwrap();
        assert_eq!(found, EngineLocation::File(folder.path().join("catalog/index.sqlite")));
        assert_eq!(choose(&home(None), None).unwrap(), EngineLocation::Memory);
        let older = Home { pinned: true, ..home(Some(folder.path())) };
        assert_eq!(choose(&older, None).unwrap(), EngineLocation::Memory);
    }

    #[test]
    fn it_is_asked_for_by_url() {
        let url = "postgresql://me:secret@host:1/db?x=1";
        let found = choose(&home(None), Some(url)).unwrap();
        assert_eq!(found, EngineLocation::Postgres(url.into()));
        assert_eq!(found.to_string(), "postgresql://me@host:1/db?x=1");
        assert!(choose(&home(None), Some("mysql://host")).unwrap_err().message().contains("mysql://host"));
    }

    #[test]
    fn another_user_gets_an_engine_elsewhere_and_makes_nothing_here() {
        let store = tempfile::tempdir().unwrap();
        let own = home(Some(store.path()));
        assert!(beside(&own, store.path()).is_some());
        let theirs =
            Home { env: Env { identity: Arc::new(User(own.env.identity.uid() + 1)), ..Env::real() }, ..own };
        assert_eq!(beside(&theirs, store.path()), None, "it is in our folder");
        fs::remove_dir(store.path().join(FOLDER)).unwrap();
        let shared = fs::Permissions::from_mode(0o1777);
        fs::set_permissions(store.path(), shared).unwrap();
        for writable in [false, true] {
            assert_eq!(beside(&Home { writable, ..theirs.clone() }, store.path()), None);
        }
        assert!(!store.path().join(FOLDER).exists());
    }

    #[test]
    fn a_folder_that_was_replaced_is_noticed() {
        let store = tempfile::tempdir().unwrap();
        let own = home(Some(store.path()));
        let path = beside(&own, store.path()).unwrap();
        let uid = own.env.identity.uid();
        assert!(stands(&path, uid));
        let folder = store.path().join(FOLDER);
        fs::rename(&folder, store.path().join("old")).unwrap();
        assert!(!stands(&path, uid));
        std::os::unix::fs::symlink(store.path().join("old"), &folder).unwrap();
        assert!(!stands(&path, uid));
    }
}
