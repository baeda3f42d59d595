//! Files in a folder: on a disk of this machine, of a network, or simulated.
//!
//! ```text
//! fieldstone          the marker: id and schema (`create`)
//! logs/WRITER.log     header and frames (`log_file`, `log_reader`); claims (`claims`)
//! logs/OWNER-N.takeover  what stands in for ended logs (`takeovers`)
//! data/WRITER-N.data  payloads of large flushes (`data_log`)
//! logs/WRITER.end     the end of a log (`end_file`, `ends`); `ending` makes those of processes that are gone
//! boards/HOST.board   what the writers of a host say of their logs (`slot`, `boards`)
//! ```
//!
//! * `takeovers`: which takeovers count, and which logs they replace; `takeover_file`: one that is being written, and what
//!   goes when it is there; `part_file`: what makers leave that die;
//! * `watch`: which logs moved (of the `store`); `look`: what a look at one log says; `folder`: listing again what changed;
//! * `array_files`: the folders of array files, and which of their files may go;
//! * `linked`: whether what was written can still be reached; `open_files`: files opened for reading;
//! * `remains`: what a store has that lost its folder of logs;
//! * `repair`: mending damaged and missing parts by a copy of the store;
//! * `inspect`: checking everything; `checkpoint`: copying it all to another disk; `log_copy`: new frames of a log in a copy.
//!
//! Lengths prove nothing: after the last commit of a log there may be zeros, or a torn frame.

pub mod array_files;
pub mod backup;
mod boards;
pub mod checkpoint;
mod claims;
mod create;
mod data_log;
mod end_file;
pub mod ending;
mod ends;
mod folder;
mod inspect;
pub mod layout;
mod linked;
mod log_copy;
mod log_file;
mod log_reader;
mod look;
pub mod open_files;
mod part_file;
mod remains;
pub mod repair;
pub mod reserve;
mod slot;
mod store;
mod takeover_file;
mod takeovers;
mod watch;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, FileKind};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::copy_mark::CopyMark;
use fieldstone_format::log::{CommitRecord, FrameInfo, HEADER_PREFIX, LogHeader};

use self::data_log::DataLog;
use self::layout::{Layout, OlderVersion};
use self::linked::Existence;
use self::log_file::LogFile;
use self::log_reader::{LogReader, read_header};
use self::open_files::OpenFiles;
pub use self::part_file::FoundPart;
pub use self::takeover_file::{LinkOutcome, TakeoverFile, There, removal_rank};
use self::watch::FolderWatch;
use super::{Address, Claimed, DataWriter, Inspect, LogWriter, Medium, Watch};
use crate::identity::StoreIdentity;

/// A store's folder.
#[derive(Debug)]
pub struct FileMedium {
    env: Env,
    layout: Layout,
    /// Whether the store was there when it was opened, or was made since.
    existence: Arc<Existence>,
    files: Arc<OpenFiles>,
}

impl FileMedium {
    /// The store in a folder, which need not be there yet.
    pub fn new(env: Env, folder: &Path) -> Result<FileMedium> {
        FileMedium::at(env, folder, None)
    }

    /// The same; a backup shows takeovers as of an older version, as far as it still has them.
    pub fn at(env: Env, folder: &Path, version: Option<OlderVersion>) -> Result<FileMedium> {
        let root = env.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
        let layout = Layout::new(root);
        let layout = match create::read_copy_mark(&env, &layout)? {
            Some(mark) => layout.of_copy(mark, version),
            None => layout,
        };
        Ok(FileMedium::over(env, layout, Arc::default()))
    }

    /// The mark of a copy, as it was when the folder was opened.
    pub fn copy(&self) -> Option<&CopyMark> {
        self.layout.copy()
    }

    fn over(env: Env, layout: Layout, existence: Arc<Existence>) -> FileMedium {
        let files = Arc::new(OpenFiles::new(env.disk.clone(), layout.clone()));
        FileMedium { env, layout, existence, files }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        self.layout.root()
    }

    /// Invalid if something other than a folder has the store's path.
    pub fn check_folder(&self) -> Result<()> {
        match self.env.disk.stat(self.root()) {
            Ok(stat) if stat.kind != FileKind::Directory => Err(Code::FileKind
                .error(format!("{} is a file, and a store is a folder", self.root().display()))
                .with_hint("give the store's folder; a file is taken into a store by ingest")),
            _ => Ok(()),
        }
    }

    /// The marker's bytes once `whole` holds, or at last after the time in which another host may still see the name
    /// of a new marker and not its bytes.
    pub fn marker_when(&self, whole: impl Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>> {
        let mut left = create::torn_for(&self.env, &self.layout) / create::POLL;
        loop {
            let marker = create::marker_bytes(&self.env, &self.layout)?;
            if left == 0 || marker.as_deref().is_none_or(&whole) {
                return Ok(marker);
            }
            self.env.clock.sleep(create::POLL);
            left -= 1;
        }
    }

    /// Invalid where the folder of a store that is to be made holds what is not a store's: it would lie among files of
    /// the user's. Hidden names, and what file systems make of themselves, do not count.
    pub fn check_room(&self) -> Result<()> {
        let Ok(names) = self.env.disk.list_dir(self.root()) else { return Ok(()) };
        let others = names.iter().map(|(name, _)| name.as_str());
        let others = others.filter(|name| !name.starts_with('.') && *name != "lost+found");
        match others.filter(|name| !self.layout.holds(name)).min() {
            None => Ok(()),
            Some(first) => Err(Code::FileKind
                .error(format!(
                    "{} is a folder with other files, such as {first}, and no store",
                    self.root().display()
                ))
                .with_hint("give a folder of its own, which need not be there yet")),
        }
    }

    /// Opens a file below the folder for reading, as a new handle: it sees bytes that others added meanwhile. `data-gone` if
    /// the file is not there, Corrupt if it is not a plain file, because the index names it.
    pub fn open_inside(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let path = self.root().join(path);
        self.env.disk.open_plain(&path, false).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Code::DataGone.error("the file is gone"),
            std::io::ErrorKind::InvalidInput => Error::corrupt("it is not a plain file"),
            _ => Error::io("open", &path, e),
        })
    }

    /// Walks a log up to an offset.
    fn walk<T>(&self, log: Id, end: u64, walk: impl FnOnce(&LogReader<'_>) -> Result<T>) -> Result<T> {
        let path = self.layout.log(log);
        let file = self.files.get_to(log, 0, end)?;
        walk(&LogReader { file: &*file, path: &path, end })
    }
}

impl Medium for FileMedium {
    fn forked(&self) -> Arc<dyn Medium> {
        Arc::new(FileMedium::over(self.env.clone(), self.layout.clone(), self.existence.clone()))
    }

    fn name(&self) -> &OsStr {
        self.layout.root().as_os_str()
    }

    fn shown(&self, writer: Id, number: u32) -> String {
        self.files.shown(writer, number)
    }

    fn marker(&self) -> Result<Option<Vec<u8>>> {
        create::marker_bytes(&self.env, &self.layout)
    }

    fn note_exists(&self, id: Id) {
        self.existence.note(id, self.env.disk.stat(&self.layout.logs()).is_ok());
    }

    fn create(&self, identity: StoreIdentity) -> Result<StoreIdentity> {
        create::create_store(&self.env, &self.layout, identity, &self.existence)
    }

    fn claim(&self, levels: &[&Vec<u8>]) -> Result<std::result::Result<bool, Claimed>> {
        claims::claim_levels(&self.env, &self.layout, levels.iter().copied())
    }

    fn watch(&self) -> Box<dyn Watch> {
        Box::new(FolderWatch::new(self.env.clone(), self.files.clone()))
    }

    fn read(&self, writer: Id, number: u32, buffer: &mut [u8], at: Address) -> Result<()> {
        self.files.read(writer, number, buffer, at)
    }

    fn read_vec(&self, writer: Id, number: u32, at: Address, length: u64) -> Result<Vec<u8>> {
        self.files.read_vec(writer, number, at, length)
    }

    fn commit_before(
        &self,
        log: Id,
        target: Address,
        from: &FrameInfo,
        record: &CommitRecord,
    ) -> Result<(FrameInfo, CommitRecord)> {
        self.walk(log, from.end(), |reader| match target < from.frame {
            true => reader.frame(target).or_else(|_| reader.back_to(target, from.frame, record)),
            false => Err(reader.named(from.frame, Error::corrupt("the chain of commits does not lead back"))),
        })
    }

    fn first_commits(&self, log: Id, until: Address) -> Result<Vec<(FrameInfo, CommitRecord)>> {
        self.walk(log, until, |reader| {
            let header = read_header(reader.file, reader.path, until).ok().flatten();
            let mut at = header.map_or(HEADER_PREFIX as u64, |(_, length)| length);
            let mut commits = Vec::new();
            while at < until {
                let Ok(ends) = reader.head(at) else { break };
                at = ends.end();
                commits.extend(reader.record(&ends).ok().map(|record| (ends, record)));
            }
            Ok(commits)
        })
    }

    fn log(&self, header: LogHeader) -> Box<dyn LogWriter> {
        Box::new(LogFile::new(&self.env, &self.layout, &header))
    }

    fn data_log(&self, writer: Id, number: u32) -> Result<Box<dyn DataWriter>> {
        Ok(Box::new(DataLog::create(&self.env, &self.layout, writer, number)?))
    }

    fn inspect(&self) -> &dyn Inspect {
        self
    }

    fn files(&self) -> Option<&FileMedium> {
        Some(self)
    }
}
