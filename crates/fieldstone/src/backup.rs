//! Backups: a folder that shows one version of a store, and is brought up to date by copying what is new.
//!
//! A backup has the id and the versions of its source, opens for reading alone, and is whole at every moment. [`promote`] makes it a
//! store of its own.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, BackupOptions, OpenOptions, Value, backup, open, promote};
//!
//! let folder = tempfile::tempdir()?;
//! let path = |name: &str| folder.path().join(name).display().to_string();
//! let store = open(&path("s"), &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let to = folder.path().join("copy");
//! let first = backup(&store, &to, &BackupOptions::default())?;
//! assert!(first.nbytes > 0 && first.damaged.is_empty());
//! assert!(open(&path("copy"), &OpenOptions::default()).is_err()); // nobody writes into it
//! promote(&to)?;
//! open(&path("copy"), &OpenOptions::default())?.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::path::Path;
use std::time::Duration;

use fieldstone_core::env::{Env, Pace};
use fieldstone_core::request::Request;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_journal::Journal;
use fieldstone_journal::journal::JournalOptions;
use fieldstone_store::api::Damage;

use crate::open::{Mode, OpenOptions, open};
use crate::store::{Hold, Store, check_rate, hold};

pub use fieldstone_journal::medium::posix::backup::BackupProgress;

/// How long a hold of a backup stands, and when it is extended: if the process dies, purges wait no longer than that.
const HELD: Duration = Duration::from_secs(3600);
const EXTEND: Duration = Duration::from_secs(1200);
/// How long a backup that follows its source waits for a flush before it looks around, and between two rounds.
const LOOK: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_secs(2);

/// Called with the progress of a backup, and between rounds; an error ends the call, and the backup shows its last version.
pub type OnBackup<'a> = dyn Fn(BackupProgress) -> Result<()> + 'a;

/// Options of [`backup`].
#[derive(Clone, Copy)]
pub struct BackupOptions<'a> {
    /// Goes on: each flush into the source is in the backup a few seconds later. The call ends with the error of `progress`.
    pub follow: bool,
    /// Drops what purges of the source dropped: older versions of the backup do not have it from then on.
    pub purge: bool,
    /// Reads back what was copied, and names what does not match its checksum.
    pub verify: bool,
    /// The number of bytes to copy in a second at most, so that others who write meanwhile wait less; as fast as it goes
    /// by default.
    pub rate: Option<u64>,
    /// Receives progress reports.
    pub progress: Option<&'a OnBackup<'a>>,
}

impl Default for BackupOptions<'_> {
    fn default() -> Self {
        BackupOptions { follow: false, purge: false, verify: true, rate: None, progress: None }
    }
}

impl fmt::Debug for BackupOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupOptions")
            .field("follow", &self.follow)
            .field("purge", &self.purge)
            .field("verify", &self.verify)
            .field("rate", &self.rate)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The version that the backup shows now.
    pub version: String,
    /// The version that it showed before the call; empty if it is new.
    pub before: String,
    /// Files that were copied, as a whole or what was new of them.
    pub files: u64,
    /// Bytes that were copied.
    pub nbytes: u64,
    /// Files that were removed from the backup, because nothing in it needs them any more.
    pub removed: u64,
    /// Parts of fields, and files, that do not match their checksums in the source, and therefore not in the backup.
    pub damaged: Vec<Damage>,
    /// Files in the source's folder that are not the store's: they are not in the backup.
    pub foreign: Vec<String>,
    /// Whether a hold kept all files in the source meanwhile: not if its handle only reads, or in a store of format 1.
    pub held: bool,
}

/// Copies what is visible in a store into its backup, a folder that the first call makes: at first all, later what is new. Others
/// may read and write meanwhile; a hold keeps purges from dropping anything until the call ends.
///
/// The backup shows its version of before until everything of the new one is durable there, so that the call may end at any
/// moment. It keeps the versions of its source, also such that a purge of the source dropped later.
///
/// Errors: `Conflict` if the folder holds anything else than a backup of this store, which is left as it is; `Corrupt` if the
/// source has lost commits; `Denied` if files of other users would lose their owners; `Invalid` for a store in memory, a handle
/// at an older version, and a folder inside of the store.
pub fn backup(store: &Store, to: &Path, options: &BackupOptions<'_>) -> Result<BackupReport> {
    let folder = store.backend().native_folder().ok_or_else(|| {
        Error::invalid(format!("the store at {} is not in a folder of this machine", store.backend().url()))
            .with_hint("take a checkpoint of a store in memory; make backups where the folder is")
    })?;
    check_rate(options.rate)?;
    let env = Env::real();
    let url = folder.display().to_string();
    let at_source = JournalOptions { url, must_exist: true, native: true, ..JournalOptions::default() };
    let source = Journal::open(env.clone(), &folder, at_source)?;
    let mut holding = Holding::begin(store, to, &env)?;
    let mut report = BackupReport { held: holding.hold.is_some(), ..BackupReport::default() };
    let outcome = rounds((&source, to), options, &mut holding, &mut report);
    holding.end();
    outcome.map(|()| report)
}

/// Makes the backup in a folder a store of its own, durably: it gets an id of its own, which this returns, and opens for writing.
/// Its content and its older versions stay. `Invalid` for any other folder.
pub fn promote(folder: &Path) -> Result<String> {
    let env = Env::real();
    let folder = env.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
    fieldstone_journal::journal::promote(&env, &folder).map(|id| id.to_string())
}

/// One round, or rounds until `progress` ends them.
fn rounds(
    (source, to): (&Journal, &Path),
    options: &BackupOptions<'_>,
    holding: &mut Holding,
    report: &mut BackupReport,
) -> Result<()> {
    let env = Env::real();
    let report_on = |progress: BackupProgress| options.progress.map_or(Ok(()), |each| each(progress));
    let mut is_first = true;
    loop {
        let begun = env.clock.monotonic();
        let copied = (report.files, report.nbytes);
        let (mut pace, mut paced) = (Pace::new(&env.clock, options.rate), 0);
        let mut each = |progress: BackupProgress| {
            holding.extend()?;
            pace.spend(progress.nbytes.saturating_sub(paced));
            paced = progress.nbytes;
            report_on(BackupProgress { files: copied.0 + progress.files, nbytes: copied.1 + progress.nbytes })
        };
        let round = source.back_up((&env, to), options.purge && is_first, &mut each)?;
        if is_first {
            report.before.clone_from(&round.before);
        }
        is_first = false;
        report.files += round.files;
        report.nbytes += round.nbytes;
        report.removed += round.removed;
        report.foreign = round.foreign;
        if options.verify && round.version != round.before {
            verify(to, &round.before, report)?;
        }
        report.version = round.version;
        if !options.follow {
            return Ok(());
        }
        let session = fieldstone_journal::Session::default();
        let look = u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX);
        loop {
            holding.extend()?;
            report_on(BackupProgress { files: report.files, nbytes: report.nbytes })?;
            let is_news = source.looks().wait(&report.version, look, &session)?;
            let since = Duration::from_nanos(env.clock.monotonic().saturating_sub(begun));
            if is_news && since >= PAUSE {
                break;
            }
            if is_news {
                env.clock.sleep(look);
            }
        }
    }
}

/// Reads back what a round brought.
fn verify(to: &Path, before: &str, report: &mut BackupReport) -> Result<()> {
    let copy = open(&to.display().to_string(), &OpenOptions { mode: Mode::Read, ..OpenOptions::default() })?;
    let found = match before {
        "" => copy.backend().verify(&Request::new())?,
        before => match copy.backend().verify_since(&Request::new(), before) {
            Err(e) if e.kind() == ErrorKind::NotFound => copy.backend().verify(&Request::new())?,
            found => found?,
        },
    };
    report.damaged.extend(found.damaged);
    Ok(())
}

/// The hold of a backup, which is extended as long as the backup runs.
struct Holding {
    hold: Option<Hold>,
    env: Env,
    set: u64,
}

impl Holding {
    fn begin(store: &Store, to: &Path, env: &Env) -> Result<Holding> {
        // A user who only reads may make a backup all the same.
        let hold = match store.backend().check_writable() {
            Ok(()) => match hold(store, HELD, &format!("backup to {}", to.display())) {
                // A store of format 1 has no purges.
                Err(e) if e.kind() == ErrorKind::Denied => None,
                held => Some(held?),
            },
            Err(_) => None,
        };
        Ok(Holding { hold, env: env.clone(), set: env.clock.monotonic() })
    }

    fn extend(&mut self) -> Result<()> {
        let age = Duration::from_nanos(self.env.clock.monotonic().saturating_sub(self.set));
        if let Some(hold) = self.hold.as_mut().filter(|_| age >= EXTEND) {
            hold.extend(HELD)?;
            self.set = self.env.clock.monotonic();
        }
        Ok(())
    }

    fn end(&self) {
        if let Some(Err(error)) = self.hold.as_ref().map(Hold::release) {
            tracing::warn!(%error, "a hold stays until it expires");
        }
    }
}
