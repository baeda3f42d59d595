//! Remains of makers of takeovers that died: unfinished files, copies of payload, and notes that say how much was copied
//! (takeovers.md, 9.3; R67).
//!
//! Invariants:
//! * a maker's `logs/ID.takeover-new` is there, durably, before its data log is: so that nobody has to guess whose copy a
//!   data log is;
//! * the name of an unfinished takeover of another maker goes before its data log: from then on that maker cannot give it
//!   the name that counts, and whether it did so before shows in the folder; a note is there until the data log is gone;
//! * a maker that goes on with a dead one's payload gives the data log another name first: the dead one may only have slept,
//!   and writes the same bytes then, to the same places.

use std::collections::HashSet;
use std::io::ErrorKind::NotFound;
use std::path::Path;

use fieldstone_core::env::{Lifetime, creation_failed, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::owner::Owner;
use fieldstone_format::takeover::part::{PART_MAX, TakeoverPart, file_name, parse_file_name};
use fieldstone_format::takeover::{self, TakeoverHeader, new_name, parse_new_name};
use fieldstone_format::{Id, data};

use super::FileMedium;
use super::data_log::DataLog;
use super::end_file::UNFINISHED;
use super::open_files::read_vec;
use super::takeovers::read_header;
use crate::medium::DataWriter;

/// A file of a maker that is gone is removed when nobody has written it for so long, nanoseconds.
const STALE: i64 = 3_600_000_000_000;
/// A maker on another host is gone if it has come no further for so long, nanoseconds.
const SILENT: i64 = 24 * STALE;

/// How far a maker had come.
#[derive(Debug, Clone)]
pub struct FoundPart {
    /// Its note.
    pub part: TakeoverPart,
    /// Whether it is gone.
    pub is_gone: bool,
}

impl FileMedium {
    /// How far makers had come that take over logs of a user. Files of others do not count, and damaged ones say nothing.
    pub fn parts(&self, user: u32) -> Result<Vec<FoundPart>> {
        let mut found = Vec::new();
        let mut names: Vec<String> = self.names_in("data")?.into_iter().collect();
        names.sort_unstable();
        for id in names.iter().filter_map(|name| parse_file_name(name)) {
            let path = self.layout.data().join(file_name(id));
            let file = match self.env.disk.open_plain(&path, false) {
                Ok(file) => file,
                Err(_) => continue,
            };
            let (stat, changed) = file.stat_with_time().map_err(|e| Error::io("look at", &path, e))?;
            if ![0, user].contains(&stat.uid) {
                continue;
            }
            let part = read_vec(&*file, &path, 0, stat.len.min(PART_MAX))
                .and_then(|bytes| TakeoverPart::decode(&bytes));
            let Ok(part) = part else { continue };
            if part.id == id && part.owner == Owner::User(user) {
                let is_gone = self.is_gone(&part, changed);
                found.push(FoundPart { part, is_gone });
            }
        }
        Ok(found)
    }

    fn is_gone(&self, part: &TakeoverPart, changed: i64) -> bool {
        let identity = &self.env.identity;
        let is_here = part.host == identity.host();
        part.inputs.is_empty()
            || is_here && identity.has_ended(part.process, &part.lifetime)
            || self.env.clock.now().saturating_sub(changed) >= SILENT
    }

    /// Makes names in the folder of data logs durable.
    pub fn sync_data(&self) -> Result<()> {
        let data = self.layout.data();
        self.env.disk.sync_dir(&data).map_err(|e| Error::io("sync", &data, e))
    }

    /// Notes, durably, how far a maker has come.
    pub fn note_part(&self, part: &TakeoverPart) -> Result<()> {
        let (disk, folder) = (&*self.env.disk, self.layout.data());
        let path = folder.join(file_name(part.id));
        let new = path.with_extension("part-new");
        let _ = disk.unlink(&new);
        let file = disk.create_alike(&new).map_err(|e| creation_failed(disk, &new, e))?;
        let written = write_all_at(&*file, &part.encode(), 0)
            .and_then(|()| file.sync_data())
            .and_then(|()| disk.rename(&new, &path))
            .and_then(|()| disk.sync_dir(&folder));
        written.map_err(|e| {
            let _ = disk.unlink(&new);
            Error::io("write", &path, e)
        })
    }

    /// Removes the note of a maker, which needs it no more.
    pub fn remove_part(&self, id: Id) -> Result<()> {
        for extension in ["part", "part-new"] {
            let path = self.layout.data().join(file_name(id)).with_extension(extension);
            match self.env.disk.unlink(&path) {
                Err(e) if e.kind() != NotFound => return Err(Error::io("remove", &path, e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The data log of a maker that is gone, as that of another one, and how much of it is there; `None` where it is not.
    /// Nothing is lost if this one dies, too, whenever that is: then all is copied again.
    pub fn adopt(&self, part: &TakeoverPart, id: Id) -> Result<Option<(Box<dyn DataWriter>, u64)>> {
        let (disk, folder) = (&*self.env.disk, self.layout.data());
        let [(number, length)] = part.data_logs[..] else { return Ok(None) };
        if self.has_name(part.id)? {
            return Ok(None);
        }
        let (old, new) = (self.layout.file(part.id, number), self.layout.file(id, number));
        if !disk.stat(&old).is_ok_and(|stat| stat.len >= length) {
            return Ok(None);
        }
        disk.rename(&old, &new).map_err(|e| Error::io("rename", &old, e))?;
        let file = disk.open_plain(&new, true).map_err(|e| Error::io("open", &new, e))?;
        write_all_at(&*file, &data::encode_header(id, number), 0)
            .and_then(|()| file.sync_data())
            .and_then(|()| disk.sync_dir(&folder))
            .map_err(|e| Error::io("write", &new, e))?;
        let log = DataLog::go_on(&self.env, &self.layout, (id, number), file, length);
        self.remove_part(part.id)?;
        Ok(Some((Box::new(log), length)))
    }

    /// Takes the name of an unfinished takeover away; whether it has the name that counts. It has if nobody can say.
    fn has_name(&self, id: Id) -> Result<bool> {
        let (disk, logs) = (&self.env.disk, self.layout.logs());
        let path = logs.join(new_name(id));
        match disk.unlink(&path) {
            Err(e) if e.kind() != NotFound => return Err(Error::io("remove", &path, e)),
            _ => {}
        }
        let names = self.names_in("logs")?;
        let mut takeovers = names.iter().filter(|name| takeover::parse_file_name(name).is_some());
        Ok(takeovers.any(|name| self.id_of(&logs.join(name)).is_none_or(|of| of == id)))
    }

    /// The id of a takeover; `None` where it cannot be read.
    fn id_of(&self, path: &Path) -> Option<Id> {
        let file = self.env.disk.open_plain(path, false).ok()?;
        let len = file.stat().ok()?.len;
        let header: Result<(TakeoverHeader, Vec<u8>)> = read_header(&*file, path, len);
        header.ok().map(|(header, _)| header.id)
    }

    /// Removes what a maker left that is gone: the name of its takeover, its data log unless the takeover counts, and its
    /// note.
    pub fn remove_left(&self, id: Id, user: u32) -> Result<()> {
        let has_note = self.env.disk.stat(&self.layout.data().join(file_name(id))).is_ok();
        if !has_note {
            // Without inputs: of a maker that is gone, and whose copy is of no use. A full disk has no room for it.
            let part = TakeoverPart {
                id,
                store: Id::LEAST,
                owner: Owner::User(user),
                host: String::new(),
                process: 0,
                lifetime: Lifetime::default(),
                inputs: Vec::new(),
                data_logs: Vec::new(),
            };
            let _ = self.note_part(&part);
        }
        if !self.has_name(id)? {
            let names = self.names_in("data")?;
            let of_it =
                names.iter().filter(|name| data::parse_file_name(name).is_some_and(|(of, _)| of == id));
            self.remove_condemned(of_it.map(|name| format!("data/{name}")).collect())?;
            self.sync_data()?;
        }
        self.remove_part(id)
    }

    /// Removes unfinished takeovers and end files whose makers are gone, and copies of payload that nobody goes on with:
    /// something that they copied is not `living` any more.
    pub fn remove_stale_makers(&self, user: u32, living: &dyn Fn(&str) -> bool) -> Result<()> {
        let mut kept = HashSet::new();
        for FoundPart { part, is_gone } in self.parts(user)? {
            let is_done = part.inputs.is_empty() || !part.inputs.iter().all(|input| living(input));
            if is_gone && is_done {
                self.remove_left(part.id, user)?;
            } else {
                kept.insert(part.id);
            }
        }
        for name in self.names_in("logs")? {
            let id = parse_new_name(&name);
            if id.is_none() && !name.starts_with(UNFINISHED) || id.is_some_and(|id| kept.contains(&id)) {
                continue;
            }
            let path = self.layout.logs().join(&name);
            let Ok((stat, changed)) = self.env.disk.stat_with_time(&path) else { continue };
            let is_stale = self.env.clock.now().saturating_sub(changed) > STALE;
            if !is_stale || stat.uid != self.env.identity.uid() {
                continue;
            }
            match id {
                Some(id) => self.remove_left(id, user)?,
                None => drop(self.env.disk.unlink(&path)),
            }
        }
        Ok(())
    }
}
