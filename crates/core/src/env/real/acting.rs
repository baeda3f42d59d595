//! Root, acting for another user: files that it makes are that user's, and so is everything in them (R35).
//!
//! Only the owner of a dataset removes what is in it, and fields belong to whoever brings them. So an administrator who moves
//! the fields of others does it for each of them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{RealDisk, RealIdentity};
use crate::env::{Env, Identity, Lifetime};

/// This process, for another user.
#[derive(Debug, Clone, Copy)]
struct ActingIdentity(u32);

/// The environment in which this process, which root runs, acts for a user.
pub fn env_of(user: u32, env: &Env) -> Env {
    Env { disk: Arc::new(RealDisk::of_user(user)), identity: Arc::new(ActingIdentity(user)), ..env.clone() }
}

impl Identity for ActingIdentity {
    fn host(&self) -> String {
        RealIdentity.host()
    }

    fn process(&self) -> u32 {
        RealIdentity.process()
    }

    fn uid(&self) -> u32 {
        self.0
    }

    fn user_name(&self, uid: u32) -> String {
        RealIdentity.user_name(uid)
    }

    fn user_number(&self, name: &str) -> Option<u32> {
        RealIdentity.user_number(name)
    }

    fn alive(&self, process: u32) -> bool {
        RealIdentity.alive(process)
    }

    fn lifetime(&self) -> Lifetime {
        RealIdentity.lifetime()
    }

    fn started(&self, process: u32) -> Option<u64> {
        RealIdentity.started(process)
    }

    fn give(&self, path: &Path, uid: u32) -> io::Result<()> {
        RealIdentity.give(path, uid)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_and_folders_that_root_makes_for_a_user_are_his() {
        let Some(env) = Env::real().acting_as(4_000_000_001) else { return };
        assert_eq!(env.identity.uid(), 4_000_000_001);
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        env.disk.create_new(&at("new")).unwrap();
        env.disk.create_alike(&at("alike")).unwrap();
        env.disk.open_append(&at("appended")).unwrap();
        env.disk.create_dir_alike(&at("folder")).unwrap();
        for name in ["new", "alike", "appended", "folder"] {
            assert_eq!(env.disk.stat(&at(name)).unwrap().uid, 4_000_000_001, "{name}");
        }
        // A file that is there stays as it is.
        Env::real().disk.create_new(&at("other")).unwrap();
        env.disk.open_append(&at("other")).unwrap();
        std::os::unix::fs::symlink(at("other"), at("link")).unwrap();
        env.disk.create_dir_alike(&at("link")).unwrap();
        assert_eq!(env.disk.stat(&at("other")).unwrap().uid, 0);
    }
}
