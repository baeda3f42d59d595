//! A takeover being written, and what goes when one is there (takeovers.md, 9).
//!
//! Invariants:
//! * the file has another name until all of it is durable; the link to its own name decides between several makers (R60);
//! * no name is removed before the link is durable;
//! * a board is replaced as a whole, and its other slots stay; slots that their writers rewrote meanwhile are
//!   carried over (R25).

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::{Disk, DiskFile, Env, creation_failed, read_exact_at, write_all_at};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::board::{SLOT, Slot};
use fieldstone_format::owner::Owner;
use fieldstone_format::table::{BlockRef, BlockSink};
use fieldstone_format::takeover::{TakeoverHeader, TakeoverRecord, file_name, new_name};
use fieldstone_format::{Id, crc};

use super::FileMedium;
use super::array_files::ArrayFolders;
use super::takeovers::is_foreign;

/// Bytes collected before they are written.
const BUFFER: usize = 1 << 20;

/// The outcome of giving a takeover its name.
#[derive(Debug)]
pub enum LinkOutcome {
    /// It has the name.
    Own,
    /// Another takeover has it.
    Others,
    /// Nobody has it.
    Failed(Error),
    /// It may have the name.
    Unsure(Error),
}

/// A takeover that has no name yet.
#[derive(Debug)]
pub struct TakeoverFile {
    disk: Arc<dyn Disk>,
    logs: PathBuf,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Bytes of the file so far, without what the buffer holds.
    written: u64,
    buffer: Vec<u8>,
}

impl TakeoverFile {
    /// A file with room for a header of this length. Its first name is durable before anything else is written for the
    /// takeover: it says whose copy a data log is.
    pub fn create(medium: &FileMedium, id: Id, header_len: usize) -> Result<TakeoverFile> {
        let logs = medium.layout.logs();
        let path = logs.join(new_name(id));
        let disk = medium.env.disk.clone();
        let file = disk.create_alike(&path).map_err(|e| creation_failed(&*disk, &path, e))?;
        let new = TakeoverFile { disk, logs, path, file, written: 0, buffer: vec![0; header_len] };
        new.sync_name()?;
        Ok(new)
    }

    /// The place of the next byte.
    fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn write_buffer(&mut self) -> Result<()> {
        write_all_at(&*self.file, &self.buffer, self.written)
            .map_err(|e| Error::io("write", &self.path, e))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes record and header behind the tables, and all of it durably.
    pub fn finish(&mut self, header: &mut TakeoverHeader, record: &TakeoverRecord) -> Result<()> {
        let record = record.encode();
        header.record_offset = self.end();
        header.record_len =
            u32::try_from(record.len()).map_err(|_| Error::internal("a record is too long"))?;
        header.record_crc = crc(&record);
        let header = header.encode();
        for part in [&record[..], &record, &header, &TakeoverHeader::tail(header.len() as u32)] {
            self.buffer.extend_from_slice(part);
        }
        self.write_buffer()?;
        write_all_at(&*self.file, &header, 0).map_err(|e| Error::io("write", &self.path, e))?;
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }

    /// Gives the file its name. From then on it counts.
    pub fn link(&self, owner: &str, number: u64) -> LinkOutcome {
        let name = self.logs.join(file_name(owner, number));
        let Err(error) = self.disk.link(&self.path, &name) else { return LinkOutcome::Own };
        // An answer may be lost on a network, after the link was made.
        let is_own = || -> io::Result<bool> { Ok(self.disk.stat(&name)?.inode == self.file.stat()?.inode) };
        match is_own() {
            Ok(true) => LinkOutcome::Own,
            Ok(false) => LinkOutcome::Others,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                LinkOutcome::Failed(match error.kind() == io::ErrorKind::Unsupported {
                    true => {
                        Error::invalid("the file system of the store has no hard links: it has no takeovers")
                            .with_hint(
                                "keep the store on another file system if it has to forget past writers",
                            )
                    }
                    false => Error::io("link", &name, error),
                })
            }
            Err(_) => LinkOutcome::Unsure(Error::io("link", &name, error)),
        }
    }

    /// Makes its name durable: nothing that the takeover replaces may go before.
    pub fn sync_name(&self) -> Result<()> {
        self.disk.sync_dir(&self.logs).map_err(|e| Error::io("sync", &self.logs, e))
    }
}

impl BlockSink for TakeoverFile {
    fn put(&mut self, stored: &[u8]) -> Result<BlockRef> {
        let reference =
            BlockRef { file: 0, offset: self.end(), stored: stored.len() as u64, crc: crc(stored) };
        self.buffer.extend_from_slice(stored);
        if self.buffer.len() >= BUFFER {
            self.write_buffer()?;
        }
        Ok(reference)
    }
}

impl Drop for TakeoverFile {
    /// The first name goes, whether or not the file got its own.
    fn drop(&mut self) {
        let _ = self.disk.unlink(&self.path);
    }
}

/// In which order condemned files go, the least first.
pub fn removal_rank(path: &str) -> u8 {
    if path.starts_with("arrays/") {
        return 3;
    }
    match path.rsplit('.').next() {
        Some("log") => 0,
        Some("ending") => 1,
        Some("end") => 2,
        Some("data") => 3,
        _ => 4,
    }
}

/// The files of a store that a takeover may condemn.
#[derive(Debug)]
pub struct There<'a> {
    files: &'a FileMedium,
    /// Names in the folder of logs.
    pub in_logs: HashSet<String>,
    /// Names in the folder of data logs.
    pub in_data: HashSet<String>,
}

impl<'a> There<'a> {
    /// Those of now.
    pub fn of(files: &'a FileMedium) -> Result<There<'a>> {
        Ok(There { files, in_logs: files.names_in("logs")?, in_data: files.names_in("data")? })
    }

    /// Whether a file is there, given relative to the store's folder, and is one that may go.
    pub fn has(&self, path: &str) -> bool {
        match path.split_once('/') {
            Some(("logs", name)) => self.in_logs.contains(name),
            Some(("data", name)) => self.in_data.contains(name),
            Some(("arrays", _)) => ArrayFolders::of(self.files).has(path),
            _ => false,
        }
    }
}

impl FileMedium {
    /// Makes names in the folder of logs durable.
    pub fn sync_logs(&self) -> Result<()> {
        let logs = self.layout.logs();
        self.env.disk.sync_dir(&logs).map_err(|e| Error::io("sync", &logs, e))
    }

    /// Whether changes by another host may show late here.
    pub fn shows_late(&self) -> bool {
        self.env.disk.lags(&self.layout.logs())
    }

    /// Removes files of the store that nothing names any more, given relative to its folder; returns those that are gone.
    /// Logs go before their second names, or a writer that wakes would find one name and go on; then the ends of logs, and
    /// takeovers last (R12, R29).
    pub fn remove_condemned(&self, mut paths: Vec<String>) -> Result<Vec<String>> {
        paths.sort_by_key(|path| removal_rank(path));
        let mut gone = Vec::with_capacity(paths.len());
        for path in paths {
            let file = self.layout.root().join(&path);
            match self.env.disk.unlink(&file) {
                Ok(()) => gone.push(path),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io("remove", &file, e)),
            }
        }
        let folders = gone.iter().filter_map(|path| path.rsplit_once('/')).map(|(folder, _)| folder);
        let of_arrays: HashSet<&str> = folders.filter(|folder| folder.starts_with("arrays/")).collect();
        of_arrays.into_iter().for_each(|folder| ArrayFolders::of(self).remove(folder));
        Ok(gone)
    }

    /// The number of a user's next takeover: others may have put files under the names of his (R60).
    pub fn next_takeover(&self, user: u32, newest: u64) -> u64 {
        let (disk, owner) = (&*self.env.disk, Owner::User(user).name());
        let folder_owner = disk.stat(&self.layout.logs()).ok().map(|stat| stat.uid);
        let mut number = newest + 1;
        while is_foreign(disk, &self.layout, (&owner, number), folder_owner) {
            number += 1;
        }
        number
    }

    /// Names of files in a folder of the store.
    pub fn names_in(&self, folder: &str) -> Result<HashSet<String>> {
        let folder = self.layout.root().join(folder);
        match self.env.disk.list_dir(&folder) {
            Ok(names) => Ok(names.into_iter().map(|(name, _)| name).collect()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(HashSet::new()),
            Err(e) => Err(Error::io("list", &folder, e)),
        }
    }

    /// Drops slots of logs that takeovers replace from this user's boards of this host, and removes boards of other hosts that
    /// hold no other slots.
    pub fn drop_slots(&self, is_replaced: &dyn Fn(Id) -> Result<bool>) -> Result<()> {
        let boards = self.layout.boards();
        let host = super::slot::file_host(&self.env);
        for name in self.names_in("boards")?.iter().filter(|name| name.ends_with(".board")) {
            let path = boards.join(name);
            let Ok(file) = self.env.disk.open_plain(&path, false) else { continue };
            let stat = file.stat().map_err(|e| Error::io("look at", &path, e))?;
            if stat.uid != self.env.identity.uid() {
                continue;
            }
            let before = read_slots(&*file, stat.len).map_err(|e| Error::io("read", &path, e))?;
            let mut kept = Vec::with_capacity(before.len());
            for slot in before.chunks(SLOT) {
                let decoded = Slot::decode(slot).ok();
                let goes = match decoded {
                    Some(slot) => is_replaced(slot.writer)?,
                    // One that its writer gave up.
                    None => slot.iter().all(|&byte| byte == 0),
                };
                if !goes {
                    kept.push(slot);
                }
            }
            let is_own =
                name.strip_prefix(&host).is_some_and(|rest| rest == ".board" || rest.starts_with('-'));
            if kept.is_empty() {
                let _ = self.env.disk.unlink(&path);
            } else if is_own && kept.len() < before.len() / SLOT {
                match replace_board(&self.env, (&path, &*file), &before, &kept) {
                    // Slots that say nothing cost time alone.
                    Err(e) if e.code() == Code::DiskFull => {
                        let _ = self.env.disk.unlink(&path.with_extension("board-new"));
                    }
                    replaced => replaced?,
                }
            }
        }
        Ok(())
    }
}

/// Whole slots of a board.
fn read_slots(file: &dyn DiskFile, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (len - len % SLOT as u64) as usize];
    read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Replaces a board by one with these of its slots. A slot that its writer rewrote meanwhile is carried over: the writer
/// finds another file under the name, and takes another slot at its next commit.
fn replace_board(
    env: &Env,
    (path, old): (&Path, &dyn DiskFile),
    before: &[u8],
    kept: &[&[u8]],
) -> Result<()> {
    let new_path = path.with_extension("board-new");
    let failed = |e: io::Error| Error::io("replace", path, e);
    let _ = env.disk.unlink(&new_path);
    let new = env.disk.create_alike(&new_path).map_err(failed)?;
    write_all_at(&*new, &kept.concat(), 0).map_err(failed)?;
    env.disk.rename(&new_path, path).map_err(failed)?;
    let Ok(stat) = old.stat() else { return Ok(()) };
    let Ok(now) = read_slots(old, stat.len) else { return Ok(()) };
    for (i, slot) in
        now.chunks(SLOT).enumerate().filter(|(i, slot)| before.get(i * SLOT..(i + 1) * SLOT) != Some(slot))
    {
        let was = before.get(i * SLOT..(i + 1) * SLOT);
        if let Some(place) = kept.iter().position(|kept| Some(*kept) == was) {
            let _ = write_all_at(&*new, slot, (place * SLOT) as u64);
        }
    }
    Ok(())
}
