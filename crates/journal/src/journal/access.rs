//! The store that a handle is of, and what the handle may do there.
//!
//! All of it was decided when the journal was opened, and is the same in every process that inherits the handle. The checks
//! look at nothing but this and their arguments: they take no lock and do no I/O.

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Result};
use fieldstone_format::attempt::Origin;
use fieldstone_format::{FIRST_VERSION, FORMAT_VERSION, marker};

use super::options::JournalOptions;
use crate::identity::StoreIdentity;
use crate::session::Session;
use crate::snapshot::Snapshot;

/// The store of a handle, and the rights of the handle.
#[derive(Debug)]
pub struct Access {
    env: Env,
    options: JournalOptions,
    /// The store, or the one that it becomes if this handle makes it.
    identity: StoreIdentity,
    /// Version of the marker, where it is not ours.
    marker_version: Option<String>,
    /// The folder, as the caller named it, for messages.
    shown: String,
}

impl Access {
    pub(super) fn new(
        env: Env,
        options: JournalOptions,
        identity: StoreIdentity,
        marker_version: Option<String>,
        shown: &str,
    ) -> Access {
        Access { env, options, identity, marker_version, shown: shown.to_owned() }
    }

    /// The world that the store lives in.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The job that this handle writes for.
    pub fn origin(&self) -> &Origin {
        &self.options.origin
    }

    /// The attempt of that job; empty where it names none.
    pub fn attempt(&self) -> &str {
        &self.options.origin.attempt
    }

    /// Whether the store is in memory, and files outside are on another disk.
    pub fn is_in_memory(&self) -> bool {
        self.options.outside.is_some()
    }

    pub(super) fn options(&self) -> &JournalOptions {
        &self.options
    }

    pub(super) fn identity(&self) -> &StoreIdentity {
        &self.identity
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The user on whose behalf a session acts.
    pub fn user(&self, session: &Session) -> u32 {
        session.user(&*self.env.identity)
    }

    /// Denied where this handle only reads.
    pub fn check_writable(&self) -> Result<()> {
        if self.options.writable {
            return Ok(());
        }
        let why = if self.options.is_backup {
            "is a backup, which nobody writes into until it is promoted"
        } else if self.options.at.is_some() {
            "was opened at an older version"
        } else {
            "is open for reading only"
        };
        Err(Code::ReadOnly
            .error(format!("the store at {} {why}", self.options.url))
            .with_hint("open it with mode a"))
    }

    /// Refuses to write beside what is of another version of the format: what we cannot read we could
    /// contradict.
    pub(super) fn check_versions(&self, snapshot: &Snapshot) -> Result<()> {
        if snapshot.format.version > FORMAT_VERSION {
            return Err(Code::LaterStore
                .error(format!(
                    "the store at {} was upgraded to a later format than {FORMAT_VERSION}, this release's newest",
                    self.options.url
                ))
                .with_hint("write with a later release; reading goes on here as far as it knows the logs"));
        }
        let marker =
            self.marker_version.as_ref().map(|v| format!("{} of format version {v}", marker::FILE_NAME));
        // J-17: reading goes on without what is of another version, writing does not.
        let Some(first) = marker.as_ref().or(snapshot.foreign.first()) else { return Ok(()) };
        Err(Code::LaterStore.error(format!(
            "the store at {} holds {first}; this release knows versions {FIRST_VERSION} to {FORMAT_VERSION} and does not write beside others",
            self.options.url
        ))
        .with_hint("write with a release that knows all versions in the store; reading goes on here"))
    }

    /// Denied where a session's user is not the one who owns what this process writes: a log is its file's owner's.
    pub(super) fn check_user(&self, session: &Session) -> Result<()> {
        let (identity, user) = (&self.env.identity, self.user(session));
        if user == identity.uid() {
            return Ok(());
        }
        let (user, own) = (identity.user_name(user), identity.user_name(identity.uid()));
        Err(Code::StoreOwned
            .error(format!(
                "a session of {user} cannot write here: what this process writes is owned by {own}"
            ))
            .with_hint(format!("let {user} write from a process of their own")))
    }

    /// Denied for others than the owner of the folder of logs.
    pub(super) fn check_store_owner(&self, snapshot: &Snapshot, what: &str, session: &Session) -> Result<()> {
        let user = self.user(session);
        let Some(owner) = snapshot.folder_owner.filter(|owner| *owner != user) else { return Ok(()) };
        let name = self.env.identity.user_name(owner);
        Err(Code::StoreOwned
            .error(format!("the store at {} is {name}'s to {what}", self.options.url))
            .with_hint(format!("ask {name}, the owner of its folder logs")))
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_core::ErrorKind;
    use fieldstone_core::env::sim::SimWorld;
    use fieldstone_format::Id;

    use super::*;

    fn access(options: JournalOptions, marker_version: Option<&str>) -> Access {
        let identity = StoreIdentity { id: Id([1; 16]), schema: String::new() };
        let options = JournalOptions { url: "memory:".into(), ..options };
        Access::new(SimWorld::memory(), options, identity, marker_version.map(str::to_owned), "/s")
    }

    #[test]
    fn a_handle_that_only_reads_says_why() {
        let reads = access(JournalOptions::default(), None);
        let message = |access: &Access| access.check_writable().unwrap_err().to_string();
        assert!(message(&reads).contains("open for reading only"));
        let older = access(JournalOptions { at: Some("v".into()), ..Default::default() }, None);
        assert!(message(&older).contains("at an older version"));
        let writes = access(JournalOptions { writable: true, ..Default::default() }, None);
        assert!(writes.check_writable().is_ok());
    }

    #[test]
    fn nothing_is_written_beside_what_cannot_be_read() {
        let mut snapshot = Snapshot::empty();
        let known = access(JournalOptions::default(), None);
        assert!(known.check_versions(&snapshot).is_ok());
        let foreign = access(JournalOptions::default(), Some("9")).check_versions(&snapshot).unwrap_err();
        assert!(foreign.to_string().contains("of format version 9"), "{foreign}");
        snapshot.format.version = FORMAT_VERSION + 1;
        assert!(
            known.check_versions(&snapshot).unwrap_err().to_string().contains("upgraded to a later format")
        );
    }

    #[test]
    fn the_owner_of_the_logs_alone_may_change_the_store() {
        let access = access(JournalOptions::default(), None);
        let (mut snapshot, session) = (Snapshot::empty(), Session::default());
        let own = access.user(&session);
        for (owner, allowed) in [(None, true), (Some(own), true), (Some(own + 1), false)] {
            snapshot.folder_owner = owner;
            let outcome = access.check_store_owner(&snapshot, "upgrade", &session);
            assert_eq!(outcome.map_err(|e| e.kind()), if allowed { Ok(()) } else { Err(ErrorKind::Denied) });
        }
        assert!(access.check_user(&session).is_ok());
        let other = access.check_user(&session.of_user(own + 1)).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Denied);
    }
}
