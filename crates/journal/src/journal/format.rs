//! The version of the format that the store is of: what is written in it, who pins and raises it.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::setting::{self, Setting};
use fieldstone_format::{FIRST_VERSION, FORMAT_VERSION};

use super::settings::StoreSettings;
use crate::session::Session;
use crate::writer::check_format;

/// The version of the format that a store is of.
#[derive(Debug, Clone, Copy)]
pub struct FormatVersion<'a> {
    pub(super) settings: StoreSettings<'a>,
}

impl FormatVersion<'_> {
    /// The version of the format that the next commit is written in, as far as this process has looked; the first call
    /// looks.
    pub fn now(&self) -> Result<u32> {
        let looks = self.settings.committer.looks();
        if looks.known_format() == 0 {
            looks.even_without_logs()?;
        }
        Ok(looks.known_format())
    }

    /// Denied where something came into the format later than the version that the store is of. Where that is so by what
    /// is known, its owner may have upgraded it meanwhile: it is looked at again.
    pub fn check(&self, since: u32, what: &str) -> Result<()> {
        if since > self.now()? {
            self.settings.committer.looks().even_without_logs()?;
        }
        check_format(since, self.now()?, what)
    }

    /// Pins the version of the format, durably: nobody but the owner, by [`upgrade`](Self::upgrade), raises it. Denied for
    /// others than the store's owner, Conflict where it is of another one.
    pub fn pin(&self, version: u32, session: &Session) -> Result<()> {
        if !(FIRST_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(Code::Option
                .error(format!("format {version} is not known"))
                .with_hint(format!("this release writes formats {FIRST_VERSION} to {FORMAT_VERSION}")));
        }
        let looks = self.settings.committer.looks();
        let format = looks.even_without_logs()?.format;
        if format.version == version && format.pin.is_some() {
            return Ok(());
        }
        if !format.is_open && format.version != version {
            let url = &looks.access.options().url;
            let error = format!("the store at {url} is of format {}", format.version);
            return Err(Error::conflict(error).with_hint(match version > format.version {
                true => "fieldstone upgrade raises it",
                false => "what is there is not written again: a new store may be pinned to an older format",
            }));
        }
        self.set(version, session)
    }

    /// Raises the store to the newest version of the format that this release writes, durably: older releases read on
    /// what they know, and write nothing. Gives the versions before and after. Denied for others than the store's owner.
    pub fn upgrade(&self, session: &Session) -> Result<(u32, u32)> {
        let looks = self.settings.committer.looks();
        looks.access.check_writable()?;
        let snapshot = looks.snapshot()?;
        looks.access.check_versions(&snapshot)?;
        looks.access.check_store_owner(&snapshot, "upgrade", session)?;
        let before = snapshot.format.version;
        if before < FORMAT_VERSION {
            self.set(FORMAT_VERSION, session)?;
        }
        Ok((before, FORMAT_VERSION))
    }

    fn set(&self, version: u32, session: &Session) -> Result<()> {
        self.settings.set(&Setting { name: setting::FORMAT.to_owned(), value: version.to_string() }, session)
    }
}
