//! Looking after a folder: every commit and header against its checksums, what stands there, how much it is.

use std::collections::BTreeMap;
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::path::{Path, PathBuf};

use fieldstone_core::env::{Disk, FileKind, Space};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::log::{CommitRecord, FrameInfo};
use fieldstone_format::{Id, claim, data, log, takeover};

use super::FileMedium;
use super::ends::is_of_an_end;
use super::log_reader::{LogReader, read_header};
use super::open_files::read_vec;
use super::reserve::is_reserve;
use super::takeovers::check_copies;
use crate::medium::{Address, DataLoss, Inspect, Tip};
use crate::takeover::Takeover;

impl Inspect for FileMedium {
    fn check(&self, log: &Tip, each: &mut dyn FnMut(FrameInfo, Result<CommitRecord>)) -> Result<()> {
        self.walk(log.writer, log.ends.end(), |reader| {
            let mut frames = vec![log.ends];
            let mut previous = log.record.previous;
            let mut broken = None;
            while previous != 0 {
                let next = frames[frames.len() - 1].frame;
                let found =
                    reader.ends(previous, Some(next)).and_then(|ends| Ok((ends, reader.record(&ends)?)));
                match found {
                    Ok((ends, record)) if ends.end() == next => {
                        frames.push(ends);
                        previous = record.previous;
                    }
                    Ok(_) => {
                        let short = Error::corrupt("the frame does not reach the next");
                        broken = Some(reader.named(previous, short));
                    }
                    Err(e) => broken = Some(e),
                }
                if broken.is_some() {
                    break;
                }
            }
            for ends in frames.iter().rev() {
                each(*ends, reader.check_frame(ends));
            }
            broken.map_or(Ok(()), Err)
        })
    }

    fn check_takeover(&self, takeover: &Takeover) -> Result<()> {
        check_copies(&*self.env.disk, &self.files.path(takeover.header.id, 0))
    }

    fn check_header(&self, log: &Tip) -> Result<()> {
        let path = self.layout.log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        match read_header(&*file, &path, log.ends.end())? {
            Some((header, _)) if header.writer == log.writer => Ok(()),
            Some(_) => Err(Error::corrupt(format!("{} carries another log's name", path.display()))),
            None => Err(Code::Truncated.error(format!("the header of {} is cut", path.display()))),
        }
    }

    fn check_data(&self, writer: Id, number: u32, upto: Address) -> Result<()> {
        if upto == 0 {
            return Ok(());
        }
        let path = self.files.path(writer, number);
        let file = self.files.get(writer, number)?;
        let stat = file.stat().map_err(|e| Error::io("look at", &path, e))?;
        if stat.len < upto {
            return Err(Code::Truncated.error(format!("{} bytes are there, {upto} were synced", stat.len)));
        }
        data::check_header(&read_vec(&*file, &path, 0, data::HEADER_LEN)?, writer, number)
    }

    /// Zeros do not count.
    fn tail(&self, log: &Tip) -> Result<u64> {
        let path = self.layout.log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        let end = file.stat().map_err(|e| Error::io("look at", &path, e))?.len;
        let reader = LogReader { file: &*file, path: &path, end };
        Ok(reader.data_end(log.ends.end())?.saturating_sub(log.ends.end()))
    }

    fn logs(&self) -> Result<Vec<(String, Option<Id>)>> {
        let folder = self.layout.logs();
        let names = match self.env.disk.list_dir(&folder) {
            Ok(names) => names,
            Err(e) if e.kind() == NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("list", &folder, e)),
        };
        let of_takeover = |name: &str| {
            takeover::parse_file_name(name).is_some() || takeover::parse_new_name(name).is_some()
        };
        let known = |name: &str| claim::is_file_name(name) || is_of_an_end(name) || of_takeover(name);
        let of_log = |name: &str, kind| log::parse_file_name(name).filter(|_| kind == FileKind::File);
        let kept = names.into_iter().filter(|(name, kind)| *kind != FileKind::File || !known(name));
        Ok(kept.map(|(name, kind)| (format!("logs/{name}"), of_log(&name, kind))).collect())
    }

    fn foreign(&self) -> Result<Vec<String>> {
        // A name that is being made begins with a dot.
        let is_ours = |name: &str| name.starts_with('.') || self.layout.holds(name);
        let of_data = |name: &str| {
            name.starts_with('.') || name.ends_with(".part") || data::parse_file_name(name).is_some()
        };
        let root = names_beside(&*self.env.disk, self.layout.root(), &is_ours)?;
        let data = names_beside(&*self.env.disk, &self.layout.data(), &of_data)?;
        let in_logs = self.logs()?.into_iter().filter(|(_, log)| log.is_none()).map(|(name, _)| name);
        let mut foreign: Vec<String> =
            in_logs.chain(root).chain(data.into_iter().map(|name| format!("data/{name}"))).collect();
        foreign.sort_unstable();
        Ok(foreign)
    }

    fn size(&self) -> Result<(u64, u64)> {
        let (mut files, mut bytes) = (0, 0);
        let layout = &self.layout;
        for folder in [layout.root().to_owned(), layout.logs(), layout.data(), layout.boards()] {
            let names = match self.env.disk.list_dir(&folder) {
                Ok(names) => names,
                Err(e) if e.kind() == NotFound => continue,
                Err(e) => return Err(Error::io("list", &folder, e)),
            };
            for (name, kind) in names {
                if kind == FileKind::File
                    && !is_reserve(&name)
                    && let Ok(stat) = self.env.disk.stat(&folder.join(&name))
                {
                    files += 1;
                    bytes += stat.len;
                }
            }
        }
        Ok((files, bytes))
    }

    fn data_loss(&self, writer: Id, number: u32, upto: Address) -> Result<Option<DataLoss>> {
        let path = self.files.path(writer, number);
        match self.env.disk.stat(&path) {
            Ok(stat) if stat.len >= upto => Ok(None),
            Ok(stat) => Ok(Some(DataLoss::Short(stat.len, upto))),
            Err(e) if e.kind() == NotFound => Ok(Some(DataLoss::Missing)),
            Err(e) => Err(Error::io("look at", &path, e)),
        }
    }

    fn space(&self) -> Option<Space> {
        self.env.disk.space(self.layout.root()).ok()
    }

    fn beside_logs(&self) -> Result<BTreeMap<u32, u64>> {
        let mut bytes = BTreeMap::new();
        let counted = [self.layout.logs(), self.layout.data()];
        let mut folders: Vec<PathBuf> =
            self.layout.of_all_writers().filter(|folder| !counted.contains(folder)).collect();
        while let Some(folder) = folders.pop() {
            let names = match self.env.disk.list_dir(&folder) {
                Ok(names) => names,
                // Files that others remove meanwhile, or keep to themselves, are not counted.
                Err(e) if matches!(e.kind(), NotFound | PermissionDenied) => continue,
                Err(e) => return Err(Error::io("list", &folder, e)),
            };
            for (name, kind) in names {
                let path = folder.join(&name);
                match kind {
                    FileKind::Directory => folders.push(path),
                    FileKind::File => {
                        if let Ok(stat) = self.env.disk.stat(&path) {
                            *bytes.entry(stat.uid).or_default() += stat.len;
                        }
                    }
                    FileKind::Other => {}
                }
            }
        }
        Ok(bytes)
    }
}

/// Names in a folder that are not the store's; none where there is no such folder.
fn names_beside(disk: &dyn Disk, folder: &Path, is_ours: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    match disk.list_dir(folder) {
        Ok(names) => Ok(names.into_iter().map(|(name, _)| name).filter(|name| !is_ours(name)).collect()),
        Err(e) if e.kind() == NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io("list", folder, e)),
    }
}
