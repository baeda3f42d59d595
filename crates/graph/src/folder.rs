//! The index's segments on disk: a folder that may be deleted at any time.
//!
//! ```text
//! graph/manifest                 the list of live segments, with a mark per log; replaced by rename
//! graph/<id>.segment             a segment
//! graph/slot-<n>/<id>.segment    one of the n-th slot, if there are several
//! graph/lock                     host and process of the writer. It only saves work
//! ```
//!
//! Invariants:
//! * a reader takes no lock, and a manifest that it has read names files that were complete when it was put
//!   in place;
//! * nobody waits: a process that finds the lock taken keeps its segments in memory;
//! * files that are damaged, or belong to another store or release, are not used: the index is built again
//!   from the logs;
//! * only the holder of the lock removes files, and only those that the manifest it just put in place does
//!   not name. A process that has one open continues to read it.
//!
//! Nothing here is synced: checksums reveal what a power cut destroyed.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::{Env, FileKind, read_exact_at, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::graph_segment::manifest::{Live, Manifest};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_journal::identity::random_id;

use crate::parallel;
use crate::segment::{FileSink, FileStorage, KeepHalves, PageCache, Segment, Storage, merge_kept};

const MANIFEST: &str = "manifest";
const LOCK: &str = "lock";
const SEGMENT: &str = ".segment";
const SLOT: &str = "slot-";
/// Longest manifest that is read: one for some million logs.
const MANIFEST_MAX: u64 = 1 << 30;
/// How often a reader starts again because the list was replaced during its read.
const ROUNDS: usize = 8;
/// Number of segments of one tier that are merged into one of the next; also the ratio of sizes between
/// tiers.
const TIER: usize = 4;
/// Largest segment of the first tier.
const TIER_BYTES: u64 = 8 << 20;
/// Maximum number of segments that are written at once: each needs the pages of its sources in memory.
const WRITERS_MAX: usize = 4;

/// The older segments that are written again together with those in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOlder {
    /// None: memory must become free soon.
    None,
    /// As many as keep the number of segments small, as long as these and the segments in memory have at most
    /// this many bytes: each row is written again once in each tier.
    Tiers(u64),
    /// Groups with at most this many bytes become one each: few segments remain, and none is much larger.
    UpTo(u64),
}

fn tier(bytes: u64) -> u32 {
    (bytes / TIER_BYTES).checked_ilog(TIER as u64).map_or(0, |tier| tier + 1)
}

fn sum(segments: &[Arc<Segment>]) -> u64 {
    segments.iter().map(|segment| segment.bytes).sum()
}

/// The first of the segments that are merged into one of at most `largest` bytes, so that each tier has few:
/// at the latest the first that is in memory.
fn merged_from(segments: &[Arc<Segment>], largest: u64) -> usize {
    let mut from = in_memory(segments);
    loop {
        let own = tier(sum(&segments[from..]));
        // Everything after the last larger segment is of this tier or below, and may be merged.
        let larger = segments[..from].iter().rposition(|segment| tier(segment.bytes) > own);
        let first = larger.map_or(0, |larger| larger + 1);
        let new = usize::from(from < segments.len());
        // Fewer than a tier's worth, or too large: nothing is gained by another merge.
        if from == first || from - first + new < TIER || sum(&segments[first..]) > largest {
            return from;
        }
        from = first;
    }
}

/// The first segment that is in memory. Those on disk come before it.
fn in_memory(segments: &[Arc<Segment>]) -> usize {
    segments.iter().position(|segment| segment.is_in_memory()).unwrap_or(segments.len())
}

/// Divides the segments into parts, in their order. Each part becomes one segment; a part of a single segment
/// on disk is not written.
fn merged(segments: &[Arc<Segment>], older: MergeOlder) -> Vec<&[Arc<Segment>]> {
    match older {
        MergeOlder::None => behind(segments, in_memory(segments)),
        MergeOlder::Tiers(largest) => behind(segments, merged_from(segments, largest)),
        MergeOlder::UpTo(largest) => grouped(segments, largest),
    }
}

/// The first `from` segments one by one, and all others together.
fn behind(segments: &[Arc<Segment>], from: usize) -> Vec<&[Arc<Segment>]> {
    let (before, rest) = segments.split_at(from);
    let rest = (!rest.is_empty()).then_some(rest);
    before.chunks(1).chain(rest).collect()
}

/// Groups of consecutive segments with at most `largest` bytes.
fn grouped(segments: &[Arc<Segment>], largest: u64) -> Vec<&[Arc<Segment>]> {
    let mut parts = Vec::new();
    let mut rest = segments;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|segment| {
            bytes += segment.bytes;
            bytes <= largest
        });
        // A segment that is too large by itself stays alone.
        let (part, others) = rest.split_at(fits.count().max(1));
        parts.push(part);
        rest = others;
    }
    parts
}

/// The segments of a slot, the older first, and the halves of their relations that are to be kept.
#[derive(Debug, Clone, Copy)]
pub struct SlotSegments<'a> {
    /// The segments.
    pub segments: &'a [Arc<Segment>],
    /// All halves, if absent.
    pub keep: Option<&'a dyn KeepHalves>,
}

/// The result of writing to disk.
#[derive(Debug)]
pub struct SavedSlots {
    /// The list that is in place now.
    pub manifest: Manifest,
    /// The segments of each slot, the older first.
    pub segments: Vec<Vec<Arc<Segment>>>,
}

/// The folder of one store's segments.
#[derive(Debug)]
pub struct SegmentFolder {
    env: Env,
    path: PathBuf,
    store: Id,
    cache: Arc<PageCache>,
}

/// The lock of the process that writes into the folder, until it is dropped.
#[derive(Debug)]
struct WriteLock<'a> {
    folder: &'a SegmentFolder,
}

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        // A lock that cannot be removed turns out later to be of a dead process.
        let _ = self.folder.env.disk.unlink(&self.folder.path.join(LOCK));
    }
}

impl SegmentFolder {
    /// The folder at a path, of the store with this id.
    pub fn new(env: Env, path: PathBuf, store: Id, cache: Arc<PageCache>) -> SegmentFolder {
        SegmentFolder { env, path, store, cache }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The list and its segments, the older first; `None` if there is none that can be used.
    pub fn load(&self) -> Option<(Manifest, Vec<Arc<Segment>>)> {
        for _ in 0..ROUNDS {
            let manifest = self.manifest().ok()??;
            match self.open_all(&manifest) {
                Ok(segments) => return Some((manifest, segments)),
                // Another process may have replaced the list since.
                Err(_) if self.manifest().ok()??.revision != manifest.revision => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// The number of the list; 0 if there is none that can be used.
    pub fn number(&self) -> u64 {
        self.manifest().ok().flatten().map_or(0, |manifest| manifest.revision)
    }

    fn manifest(&self) -> Result<Option<Manifest>> {
        let path = self.path.join(MANIFEST);
        let failed = |e| Error::io("read", &path, e);
        let file = match self.env.disk.open_plain(&path, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let length = file.stat().map_err(failed)?.len;
        if length > MANIFEST_MAX {
            return Err(Error::corrupt(format!("{}: its length is impossible", path.display())));
        }
        let mut bytes = vec![0; length as usize];
        read_exact_at(&*file, &mut bytes, 0).map_err(failed)?;
        let manifest = Manifest::decode(&bytes).map_err(|e| e.context(path.display()))?;
        if manifest.store != Some(self.store) {
            return Err(Error::corrupt(format!("{}: it belongs to another store", path.display())));
        }
        Ok(Some(manifest))
    }

    fn open_all(&self, manifest: &Manifest) -> Result<Vec<Arc<Segment>>> {
        let open = |live: &Live| {
            let segment = self.open(&live.name)?;
            match segment.bytes == live.bytes {
                true => Ok(segment),
                false => Err(Error::corrupt(format!(
                    "{}: its length differs from the one in the manifest",
                    live.name
                ))),
            }
        };
        manifest.segments.iter().map(open).collect()
    }

    fn open(&self, name: &str) -> Result<Arc<Segment>> {
        let (folder, file) = name.split_once('/').unwrap_or((SLOT, name));
        // A list is not trusted: its names must not lead out of the folder.
        if !name.ends_with(SEGMENT) || file.contains('/') || !folder.starts_with(SLOT) {
            return Err(Error::corrupt(format!("'{name}' is not a valid name of a segment")));
        }
        let storage =
            FileStorage::open(&*self.env.disk, &self.path.join(name), self.store, self.cache.clone())?;
        let summary = storage.summary();
        Segment::over(Storage::File(storage), summary).map(Arc::new)
    }

    /// Writes the slots' segments in memory, merged with `older` ones on disk, and replaces the list of
    /// generation `based_on` by a new one. `None` if another process writes or has written.
    pub fn save(
        &self,
        slots: &[SlotSegments<'_>],
        list: Manifest,
        based_on: u64,
        older: MergeOlder,
    ) -> Result<Option<SavedSlots>> {
        let Some(lock) = self.lock()? else { return Ok(None) };
        let current = self.manifest().unwrap_or(None);
        // Another process has saved more; its list must not be replaced by an older one.
        if current.map_or(0, |manifest| manifest.revision) != based_on {
            return Ok(None);
        }
        let mut kept = Vec::with_capacity(slots.len());
        let mut live = Vec::new();
        for (slot, SlotSegments { segments, keep }) in (0..).zip(slots) {
            let folder = (slots.len() > 1).then_some(slot);
            let own = self.write_parts(folder, &merged(segments, older), *keep)?;
            for segment in &own {
                let name =
                    self.name_of(segment).ok_or_else(|| Error::internal("a segment in memory is listed"))?;
                live.push(Live { slot, name, bytes: segment.bytes });
            }
            kept.push(own);
        }
        let manifest = Manifest { store: Some(self.store), revision: based_on + 1, segments: live, ..list };
        self.replace(&manifest)?;
        self.clean(&manifest);
        drop(lock);
        Ok(Some(SavedSlots { manifest, segments: kept }))
    }

    /// The name of a segment's file below the folder; `None` if it is in memory.
    fn name_of(&self, segment: &Segment) -> Option<String> {
        let path = segment.path()?.strip_prefix(&self.path).ok()?;
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        Some(parts.join("/"))
    }

    /// Makes each part one segment on disk, some at a time.
    fn write_parts(
        &self,
        slot: Option<u16>,
        parts: &[&[Arc<Segment>]],
        keep: Option<&dyn KeepHalves>,
    ) -> Result<Vec<Arc<Segment>>> {
        let stays = |part: &[Arc<Segment>]| part.len() == 1 && !part[0].is_in_memory();
        let writers = parts.iter().filter(|part| !stays(part)).count().min(WRITERS_MAX);
        let written = parallel::map(parts, writers, |part| match stays(part) {
            true => Ok(part[0].clone()),
            false => self.write(slot, part, keep),
        });
        written.into_iter().collect()
    }

    fn write(
        &self,
        slot: Option<u16>,
        segments: &[Arc<Segment>],
        keep: Option<&dyn KeepHalves>,
    ) -> Result<Arc<Segment>> {
        let mut name = format!("{}{SEGMENT}", random_id(&self.env));
        if let Some(slot) = slot {
            let folder = format!("{SLOT}{slot:03}");
            let path = self.path.join(&folder);
            match self.env.disk.create_dir_alike(&path) {
                // The folder may remain from an earlier list.
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("make", &path, e));
                }
                _ => name = format!("{folder}/{name}"),
            }
        }
        let path = self.path.join(&name);
        let file = self.env.disk.create_new(&path).map_err(|e| Error::io("make", &path, e))?;
        let mut sink = FileSink::new(file, &path);
        let sources: Vec<&Segment> = segments.iter().map(|segment| &**segment).collect();
        let written =
            merge_kept(&sources, &mut sink, keep).and_then(|summary| sink.finish(self.store, summary));
        match written {
            Ok(_) => self.open(&name),
            Err(error) => {
                // The next writer removes the remains.
                let _ = self.env.disk.unlink(&path);
                Err(error)
            }
        }
    }

    fn replace(&self, manifest: &Manifest) -> Result<()> {
        let (path, new) =
            (self.path.join(MANIFEST), self.path.join(format!("manifest-{}", random_id(&self.env))));
        let failed = |e| Error::io("write", &new, e);
        let file = self.env.disk.create_new(&new).map_err(failed)?;
        let placed =
            write_all_at(&*file, &manifest.encode(), 0).and_then(|()| self.env.disk.rename(&new, &path));
        if placed.is_err() {
            let _ = self.env.disk.unlink(&new);
        }
        placed.map_err(failed)
    }

    /// Removes files that are not needed. The next writer tries again if this fails.
    fn clean(&self, manifest: &Manifest) {
        let live: HashSet<&str> = manifest.segments.iter().map(|live| &*live.name).collect();
        let list = |path: &Path| self.env.disk.list_dir(path).unwrap_or_default();
        for (name, kind) in list(&self.path) {
            if kind == FileKind::File && !live.contains(&*name) && name != MANIFEST && name != LOCK {
                let _ = self.env.disk.unlink(&self.path.join(name));
            } else if kind == FileKind::Directory && name.starts_with(SLOT) {
                for (file, _) in list(&self.path.join(&name)) {
                    if !live.contains(&*format!("{name}/{file}")) {
                        let _ = self.env.disk.unlink(&self.path.join(&name).join(file));
                    }
                }
            }
        }
    }

    /// How the index on disk is cut into slots; `None` if there is none that can be used.
    pub fn partitioning(&self) -> Option<Partitioning> {
        Some(self.manifest().ok()??.partitioning)
    }

    /// Removes the list: the next reader builds the index again. Reports a failure.
    pub fn forget(&self) -> Result<()> {
        let path = self.path.join(MANIFEST);
        match self.env.disk.unlink(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
            _ => Ok(()),
        }
    }

    /// The lock, unless a living process holds it.
    fn lock(&self) -> Result<Option<WriteLock<'_>>> {
        let path = self.path.join(LOCK);
        let identity = &self.env.identity;
        let own = format!("{} {}", identity.process(), identity.host());
        let new = self.path.join(format!("lock-{}", random_id(&self.env)));
        let failed = |e| Error::io("make", &new, e);
        let file = self.env.disk.create_new(&new).map_err(failed)?;
        let made =
            write_all_at(&*file, own.as_bytes(), 0).map_err(failed).and_then(|()| self.take(&new, &path));
        // The lock has its final name by now, or is not needed.
        let _ = self.env.disk.unlink(&new);
        Ok(made?.then(|| WriteLock { folder: self }))
    }

    /// Gives a complete lock file its final name, so that nobody sees one without its owner.
    fn take(&self, new: &Path, path: &Path) -> Result<bool> {
        for _ in 0..2 {
            match self.env.disk.link(new, path) {
                Ok(()) => return Ok(true),
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(Error::io("make", path, e)),
                Err(_) if self.is_held(path) => return Ok(false),
                // The lock of a process that was killed. Two processes that remove it at once may both write:
                // each puts a complete list in place, and the later one counts.
                Err(_) => drop(self.env.disk.unlink(path)),
            }
        }
        Ok(false)
    }

    /// Whether the process that a lock names may be alive.
    fn is_held(&self, path: &Path) -> bool {
        let mut bytes = [0; 256];
        let read = self.env.disk.open_plain(path, false).and_then(|file| file.read_at(&mut bytes, 0));
        let Ok(n) = read else { return false };
        let text = String::from_utf8_lossy(&bytes[..n]);
        let named = text.split_once(' ').and_then(|(process, host)| Some((process.parse().ok()?, host)));
        let identity = &self.env.identity;
        // The processes of another host are not known here: the folder is on a local file system, so it was
        // this host.
        named.is_some_and(|(process, host)| host == identity.host() && identity.alive(process))
    }
}
