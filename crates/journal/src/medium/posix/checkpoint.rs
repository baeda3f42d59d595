//! A store in memory, written to a folder as an ordinary store, while writing goes on.
//!
//! A checkpoint is a copy of the store's files up to the last commit of one snapshot. Files only grow,
//! so the next checkpoint into the same folder copies what is new.
//!
//! Invariants, at every moment and after a kill, a full disk or a power cut:
//! * the folder is a whole store at the version of the checkpoint before (at the first: no store, or one
//!   without fields), of this one, or of a commit between;
//! * a commit shows only when every byte it names is durable: data logs are synced before logs, and a
//!   log's new frames come in an order in which no reader finds them until all are durable (`log_copy`).
//!
//! Boards are not copied: they say which processes of a host are writing, and none writes there.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::{Disk, DiskFile, Env, write_all_at, write_all_streaming};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;

use super::FileMedium;
use super::create::{create_store, read_marker};
use super::layout::Layout;
use super::linked::Existence;
use super::log_copy::{hide_new_frames, parts};
use super::log_reader::{LogReader, read_header};
use super::open_files::{OpenFiles, read_vec};
use crate::identity::StoreIdentity;
use crate::medium::Tip;

/// Bytes copied at a time.
const PART: u64 = 4 << 20;

/// Lengths that are durable in a folder, by writer and number of its file; as this process left them.
pub type Durable = HashMap<(Id, u32), u64>;

/// How a checkpoint writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Whether an earlier checkpoint of this store in the folder is gone on with; else the folder must be
    /// new or empty.
    pub incremental: bool,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        CheckpointOptions { incremental: true }
    }
}

/// The result of a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The version that the folder now holds.
    pub version: String,
    /// Bytes that were new.
    pub bytes: u64,
    /// Files that they went to.
    pub files: u64,
    /// How long it took.
    pub nanoseconds: u64,
}

/// The state of one checkpoint.
pub struct Checkpoint<'a> {
    /// The files in memory.
    files: &'a OpenFiles,
    source: &'a Layout,
    /// The last commits that are copied, and the text that names their version.
    tips: Vec<Arc<Tip>>,
    version: String,
    /// The world of the folder.
    target: Env,
    /// The folder.
    layout: Layout,
    /// The store's identity.
    identity: StoreIdentity,
    /// The durable content of the folder.
    durable: Durable,
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint of `source` up to these commits into a folder, in which `durable` is durable already.
    pub fn new(
        source: &'a FileMedium,
        (tips, version): (Vec<Arc<Tip>>, String),
        target: Env,
        folder: &Path,
        identity: StoreIdentity,
        durable: Durable,
    ) -> Checkpoint<'a> {
        let (files, source, layout) = (&*source.files, &source.layout, Layout::new(folder));
        Checkpoint { files, source, tips, version, target, layout, identity, durable }
    }

    /// The content of the folder that is durable now.
    pub fn into_durable(self) -> Durable {
        self.durable
    }

    /// Makes the folder what the snapshot is. On an error `durable` is worth nothing any more.
    pub fn write(&mut self, options: &CheckpointOptions) -> Result<CheckpointReport> {
        let begun = self.target.clock.monotonic();
        self.check(options)?;
        let new = Existence::default();
        create_store(&self.target, &self.layout, self.identity.clone(), &new)?;
        let mut report = CheckpointReport { version: self.version.clone(), ..CheckpointReport::default() };
        let mut logs = self.tips.clone();
        // Everything in another log that a commit refers to was there before it.
        logs.sort_by_key(|log| log.record.stamp);
        let mut new_names = false;
        for log in &logs {
            for &(number, length) in &log.record.data_logs {
                new_names |= self.copy_data(log.writer, number, length, &mut report)?;
            }
        }
        if new_names {
            self.sync_folder(&self.layout.data())?;
        }
        for log in &logs {
            if self.copy_log(log, &mut report)? {
                self.sync_folder(&self.layout.logs())?;
            }
        }
        report.nanoseconds = self.target.clock.monotonic().saturating_sub(begun);
        Ok(report)
    }

    /// Refuses a folder that holds something else.
    fn check(&self, options: &CheckpointOptions) -> Result<()> {
        let (disk, root) = (&*self.target.disk, self.layout.root());
        let taken = match disk.list_dir(root) {
            Ok(names) => !names.is_empty(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
            Err(e) => return Err(Error::io("list", root, e)),
        };
        if !taken {
            return Ok(());
        }
        let shown = root.display();
        if !options.incremental {
            return Err(Code::TargetExists
                .error(format!("{shown} is not empty"))
                .with_hint("give a new folder, or go on with the checkpoint there: incremental"));
        }
        match read_marker(&self.target, &self.layout)? {
            Some(Ok(marker)) if marker.id == self.identity.id => {}
            Some(Ok(_)) => {
                return Err(Code::TargetDiffers
                    .error(format!("{shown} holds another store"))
                    .with_hint("give a new folder: a checkpoint goes on only where this store began one"));
            }
            Some(Err(damage)) => return Err(damage.context(shown)),
            // Folders without a marker: a first checkpoint that was broken off.
            None => {}
        }
        let logs = self.layout.logs();
        for (name, _) in disk.list_dir(&logs).unwrap_or_default() {
            let Some(writer) = fieldstone_format::log::parse_file_name(&name) else { continue };
            if self.tips.iter().all(|tip| tip.writer != writer) {
                return Err(Code::TargetDiffers
                    .error(format!(
                        "logs/{name} in {shown} is not of this store: the checkpoint was written to since"
                    ))
                    .with_hint("give a new folder"));
            }
        }
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> Result<()> {
        self.target.disk.sync_dir(folder).map_err(|e| Error::io("sync", folder, e))
    }

    /// Opens a file of the folder and finds up to where it holds the same bytes as ours, of `length`;
    /// whether its name is new.
    fn open(&self, writer: Id, number: u32, length: u64) -> Result<(Arc<dyn DiskFile>, u64, bool)> {
        let disk: &dyn Disk = &*self.target.disk;
        let path = self.layout.file(writer, number);
        match disk.create_alike(&path) {
            Ok(file) => return Ok((file, 0, true)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io("create", &path, e)),
        }
        let file = disk.open_write(&path).map_err(|e| Error::io("open", &path, e))?;
        let stat = file.stat().map_err(|e| Error::io("stat", &path, e))?;
        if let Some(&durable) = self.durable.get(&(writer, number))
            && durable == stat.len
        {
            return Ok((file, durable, false));
        }
        // Broken off before, or damaged since: what is equal stays.
        let same = self.same(writer, number, &*file, &path, length.min(stat.len))?;
        file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
        // Its name may never have been synced.
        Ok((file, same, true))
    }

    /// How many of the first `length` bytes are equal.
    fn same(&self, writer: Id, number: u32, file: &dyn DiskFile, path: &Path, length: u64) -> Result<u64> {
        let mut at = 0;
        while at < length {
            let n = PART.min(length - at);
            let ours = self.files.read_vec(writer, number, at, n)?;
            let theirs = read_vec(file, path, at, n)?;
            if let Some(i) = ours.iter().zip(&theirs).position(|(a, b)| a != b) {
                return Ok(at + i as u64);
            }
            at += n;
        }
        Ok(length)
    }

    /// Writes our bytes `from..to` of a file.
    fn copy(&self, writer: Id, number: u32, file: &dyn DiskFile, from: u64, to: u64) -> Result<()> {
        let mut at = from;
        while at < to {
            let n = PART.min(to - at);
            let bytes = self.files.read_vec(writer, number, at, n)?;
            self.put(writer, number, file, &bytes, at)?;
            file.start_writeback(at, n);
            at += n;
        }
        Ok(())
    }

    fn put(&self, writer: Id, number: u32, file: &dyn DiskFile, bytes: &[u8], at: u64) -> Result<()> {
        let whole = bytes.len() as u64 == PART;
        let wrote = if whole { write_all_streaming(file, bytes, at) } else { write_all_at(file, bytes, at) };
        wrote.map_err(|e| Error::io("write", &self.layout.file(writer, number), e))
    }

    fn sync(&self, writer: Id, number: u32, file: &dyn DiskFile) -> Result<()> {
        file.sync_data().map_err(|e| Error::io("sync", &self.layout.file(writer, number), e))
    }

    fn copy_data(
        &mut self,
        writer: Id,
        number: u32,
        length: u64,
        report: &mut CheckpointReport,
    ) -> Result<bool> {
        if self.durable.get(&(writer, number)).is_some_and(|&d| d >= length)
            && self.target.disk.stat(&self.layout.file(writer, number)).is_ok_and(|s| s.len >= length)
        {
            return Ok(false);
        }
        let (file, same, new) = self.open(writer, number, length)?;
        if same < length {
            self.copy(writer, number, &*file, same, length)?;
            self.sync(writer, number, &*file)?;
            report.bytes += length - same;
            report.files += 1;
        }
        self.durable.insert((writer, number), length);
        Ok(new)
    }

    /// Copies the frames of a log that are new; whether its name is new.
    fn copy_log(&mut self, log: &Tip, report: &mut CheckpointReport) -> Result<bool> {
        let (writer, end) = (log.writer, log.ends.end());
        let (file, same, new) = self.open(writer, 0, end)?;
        if same < end {
            let from = self.frame_before(log, same)?;
            let path = self.layout.file(writer, 0);
            hide_new_frames(&*file, from, end).map_err(|e| Error::io("write", &path, e))?;
            for (begin, end) in parts(from, end) {
                self.copy(writer, 0, &*file, begin, end)?;
                self.sync(writer, 0, &*file)?;
            }
            report.bytes += end - from;
            report.files += 1;
        }
        self.durable.insert((writer, 0), end);
        Ok(new)
    }

    /// The end of the last frame of a log that lies whole within its first `same` bytes; 0 if there is none.
    fn frame_before(&self, log: &Tip, same: u64) -> Result<u64> {
        let path = self.source.log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        let reader = LogReader { file: &*file, path: &path, end: log.ends.end() };
        let (mut at, mut whole) = match read_header(&*file, &path, log.ends.end())? {
            Some((_, length)) => (length, 0),
            None => return Ok(0),
        };
        if let Some(&durable) = self.durable.get(&(log.writer, 0))
            && durable <= same
            && durable >= at
        {
            at = durable;
            whole = durable;
        }
        while at < same {
            at = reader.head(at)?.end();
            if at <= same {
                whole = at;
            }
        }
        Ok(whole)
    }
}
