//! The version of the format that the store is of: what is written in it, who pins and raises it.

use std::sync::atomic::Ordering;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::setting::{self, Setting};
use fieldstone_format::{FIRST_VERSION, FORMAT_VERSION};

use super::Journal;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::writer::check_format;

impl Journal {
    /// Takes what a snapshot says of schema and format.
    pub(super) fn follow(&self, snapshot: &Snapshot) {
        self.schema.follow(snapshot);
        let asked = self.options.format.filter(|_| snapshot.format.is_open);
        self.state().format.store(asked.unwrap_or(snapshot.format.version), Ordering::Relaxed);
    }

    /// The version of the format that the next commit is written in, as far as this process has looked; the first call
    /// looks.
    pub fn format(&self) -> Result<u32> {
        let known = || self.state().format.load(Ordering::Relaxed);
        if known() == 0 {
            self.looked()?;
        }
        Ok(known())
    }

    /// Denied where something came into the format later than the version that the store is of. Where that is so by what
    /// is known, its owner may have upgraded it meanwhile: it is looked at again.
    pub fn check_format(&self, since: u32, what: &str) -> Result<()> {
        if since > self.format()? {
            self.looked()?;
        }
        check_format(since, self.format()?, what)
    }

    /// Pins the version of the format, durably: nobody but the owner, by [`upgrade`](Self::upgrade), raises it. Denied for
    /// others than the store's owner, Conflict where it is of another one.
    pub fn pin_format(&self, version: u32, session: &Session) -> Result<()> {
        if !(FIRST_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(Code::Option
                .error(format!("format {version} is not known"))
                .with_hint(format!("this release writes formats {FIRST_VERSION} to {FORMAT_VERSION}")));
        }
        let format = self.looked()?.format;
        if format.version == version && format.pin.is_some() {
            return Ok(());
        }
        if !format.is_open && format.version != version {
            let error = format!("the store at {} is of format {}", self.options.url, format.version);
            return Err(Error::conflict(error).with_hint(match version > format.version {
                true => "fieldstone upgrade raises it",
                false => "what is there is not written again: a new store may be pinned to an older format",
            }));
        }
        self.set(&Setting { name: setting::FORMAT.to_owned(), value: version.to_string() }, session)
    }

    /// Raises the store to the newest version of the format that this release writes, durably: older releases read on
    /// what they know, and write nothing. Gives the versions before and after. Denied for others than the store's owner.
    pub fn upgrade(&self, session: &Session) -> Result<(u32, u32)> {
        self.check_writable()?;
        let snapshot = self.snapshot()?;
        self.check_versions(&snapshot)?;
        self.check_store_owner(&snapshot, "upgrade", session)?;
        let before = snapshot.format.version;
        if before < FORMAT_VERSION {
            self.set(
                &Setting { name: setting::FORMAT.to_owned(), value: FORMAT_VERSION.to_string() },
                session,
            )?;
        }
        Ok((before, FORMAT_VERSION))
    }
}
