//! The weak profile: how a host of a network file system sees the changes of other hosts.
//!
//! Each look at a directory's names, a file's length or a file's bytes shows the state at some moment, drawn from the
//! seed, at most the staleness ago. Invariants:
//! * a host sees its own changes at once;
//! * a host never sees an object go back in time;
//! * a host sees bytes of a file no newer than its length, so that the end of a file can appear as zeros;
//! * the true state decides every change to the tree (create, link, rename, unlink).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use super::WorldState;
use super::file::{FileData, FileNode, Recent, RecentWrite, Stamp};
use super::random::Random;
use super::tree::{Dir, Ino, Node, ROOT, names};

/// The property that a look reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aspect {
    Names,
    Len,
    Bytes,
    Links,
}

/// The profile's settings, and how recent a state each host has seen.
#[derive(Debug, Clone)]
pub(super) struct Weak {
    pub(super) staleness: i64,
    seen: BTreeMap<(Arc<str>, Ino, Aspect), i64>,
}

impl Weak {
    pub(super) fn new(staleness: i64) -> Weak {
        Weak { staleness, seen: BTreeMap::new() }
    }

    /// The moment up to which `host` sees the changes of others in this look, at most `latest`.
    fn moment(&mut self, who: &Stamp, ino: Ino, aspect: Aspect, latest: i64, rng: &mut Random) -> i64 {
        let seen = self.seen.entry((who.host.clone(), ino, aspect)).or_insert(i64::MIN);
        let oldest = who.time.saturating_sub(self.staleness).max(*seen);
        let width = u64::try_from(latest.saturating_sub(oldest)).unwrap_or(0);
        // Often the host fetches nothing new, as with a cached attribute.
        let ahead = if rng.coin() { 0 } else { rng.below(width.saturating_add(1)) };
        *seen = oldest.saturating_add_unsigned(ahead);
        *seen
    }
}

impl Dir {
    /// The entry `name` as `host` sees it, with the changes of others up to `moment`.
    fn entry_at(&self, name: &str, host: &str, moment: i64) -> Option<Ino> {
        let mut past = self.history.iter().filter(|p| p.name == name).peekable();
        let Some(first) = past.peek() else { return self.entries.get(name).copied() };
        let before = first.from;
        past.rfind(|p| &*p.by.host == host || p.by.time <= moment).map_or(before, |p| p.to)
    }

    /// Drops the changes that every host sees.
    fn forget_seen(&mut self, cutoff: i64) {
        self.history.retain(|p| p.by.time > cutoff);
    }
}

impl Recent {
    fn forget_seen(&mut self, cutoff: i64) {
        let seen = self.writes.iter().take_while(|w| w.time <= cutoff).count();
        for write in self.writes.drain(..seen) {
            match write.sets_len {
                true => self.base.resize(write.piece.offset, 0),
                false => write.piece.apply(&mut self.base),
            }
        }
    }

    fn visible<'a>(&'a self, host: &'a str, moment: i64) -> impl Iterator<Item = &'a RecentWrite> {
        self.writes.iter().filter(move |w| &*w.host == host || w.time <= moment)
    }

    fn len_at(&self, host: &str, moment: i64) -> usize {
        let after = |len: usize, write: &RecentWrite| match write.sets_len {
            true => write.piece.offset,
            false => len.max(write.piece.end()),
        };
        self.visible(host, moment).fold(self.base.len(), after)
    }

    /// Reads the bytes seen at `moment`, up to `len` (the length seen); zeros if the host has seen none.
    fn read_at(&self, buffer: &mut [u8], offset: u64, host: &str, moment: i64, len: usize) -> usize {
        let Some(start) = usize::try_from(offset).ok().filter(|o| *o < len) else { return 0 };
        let n = buffer.len().min(len - start);
        let buffer = &mut buffer[..n];
        buffer.fill(0);
        overlay(buffer, start, 0, &self.base);
        for RecentWrite { piece, sets_len, .. } in self.visible(host, moment) {
            match sets_len {
                true => buffer[piece.offset.saturating_sub(start).min(n)..].fill(0),
                false => overlay(buffer, start, piece.offset, &piece.data),
            }
        }
        n
    }
}

/// Copies the overlap of `data`, at offset `at`, into `buffer`, at offset `start`.
fn overlay(buffer: &mut [u8], start: usize, at: usize, data: &[u8]) {
    let from = start.max(at);
    let to = (start + buffer.len()).min(at + data.len());
    if from < to {
        buffer[from - start..to - start].copy_from_slice(&data[from - at..to - at]);
    }
}

impl WorldState {
    /// The inode that `path` names for this host; if that is stale, also its number of a moment ago.
    pub(super) fn look_up(&mut self, path: &Path, who: &Stamp) -> io::Result<Ino> {
        let WorldState { tree, weak: Some(weak), rng, .. } = self else { return self.tree.lookup(path) };
        let mut at = ROOT;
        for name in names(path)? {
            if let Some(dir) = tree.dir_mut(at) {
                dir.forget_seen(who.time.saturating_sub(weak.staleness));
            }
            let moment = weak.moment(who, at, Aspect::Names, who.time, rng);
            let dir = tree.dir(at)?;
            let stale = dir.entry_at(&name, &who.host, moment).ok_or(Errno::NOENT)?;
            // A file that was removed in the meantime cannot be opened, because the server knows.
            let gone = match tree.nodes.get(&stale) {
                Some(Node::File(file)) => file.read().links == 0,
                Some(Node::Dir(_)) => false,
                None => true,
            };
            at = match gone {
                true => *dir.entries.get(&name).ok_or(Errno::NOENT)?,
                false => stale,
            };
        }
        Ok(at)
    }

    /// The names in a directory as this host sees them.
    pub(super) fn names_in(&mut self, ino: Ino, who: &Stamp) -> io::Result<Vec<(String, Ino)>> {
        let WorldState { tree, weak, rng, .. } = self;
        let dir = tree.dir(ino)?;
        let owned = |(name, ino): (&String, &Ino)| (name.clone(), *ino);
        let Some(weak) = weak else { return Ok(dir.entries.iter().map(owned).collect()) };
        let moment = weak.moment(who, ino, Aspect::Names, who.time, rng);
        let mut entries = dir.entries.clone();
        for past in &dir.history {
            match dir.entry_at(&past.name, &who.host, moment) {
                Some(ino) => drop(entries.insert(past.name.clone(), ino)),
                None => drop(entries.remove(&past.name)),
            }
        }
        Ok(entries.into_iter().collect())
    }

    /// The length of a file as this host sees it.
    pub(super) fn len_of(&mut self, file: &FileNode, who: &Stamp) -> u64 {
        let WorldState { weak: Some(weak), rng, .. } = self else { return file.read().len() };
        let data = &mut *file.write();
        let cutoff = who.time.saturating_sub(weak.staleness);
        let Some(recent) = recent_since(data, cutoff) else { return data.len() };
        let moment = weak.moment(who, file.ino, Aspect::Len, who.time, rng);
        recent.len_at(&who.host, moment) as u64
    }

    /// The number of a file's names as this host sees it.
    pub(super) fn links_of(&mut self, file: &FileNode, who: &Stamp) -> u64 {
        let WorldState { weak: Some(weak), rng, .. } = self else { return u64::from(file.read().links) };
        let data = &mut *file.write();
        let cutoff = who.time.saturating_sub(weak.staleness);
        data.named.past.retain(|(by, _)| by.time > cutoff);
        // Nothing is drawn for a file that kept its names.
        if data.named.past.is_empty() {
            return u64::from(data.links);
        }
        let moment = weak.moment(who, file.ino, Aspect::Links, who.time, rng);
        u64::from(data.links_at(&who.host, moment))
    }

    /// Reads a file as this host sees it.
    pub(super) fn read_seen(
        &mut self,
        file: &FileNode,
        buffer: &mut [u8],
        offset: u64,
        who: &Stamp,
    ) -> usize {
        let WorldState { weak: Some(weak), rng, .. } = self else {
            return file.read().read_at(buffer, offset);
        };
        let data = &mut *file.write();
        let cutoff = who.time.saturating_sub(weak.staleness);
        let Some(recent) = recent_since(data, cutoff) else { return data.read_at(buffer, offset) };
        let len_moment = weak.moment(who, file.ino, Aspect::Len, who.time, rng);
        let moment = weak.moment(who, file.ino, Aspect::Bytes, len_moment, rng);
        let len = recent.len_at(&who.host, len_moment);
        recent.read_at(buffer, offset, &who.host, moment, len)
    }

    /// Turns the profile on or changes its staleness.
    pub(super) fn weaken(&mut self, staleness: i64) {
        match &mut self.weak {
            Some(weak) => weak.staleness = staleness,
            None => self.weak = Some(Weak::new(staleness)),
        }
        for node in self.tree.nodes.values() {
            if let Node::File(file) = node {
                let data = &mut *file.write();
                let base = &data.bytes;
                data.recent.get_or_insert_with(|| Recent { base: base.clone(), writes: Vec::new() });
            }
        }
    }
}

/// The changes of a file that other hosts may not see yet, without those older than `cutoff`.
fn recent_since(data: &mut FileData, cutoff: i64) -> Option<&Recent> {
    let recent = data.recent.as_mut()?;
    recent.forget_seen(cutoff);
    Some(recent)
}
