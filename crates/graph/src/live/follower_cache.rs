//! The follower of a process: the first read opens it; it is built again when it is damaged or cut in another
//! way, and written to disk.
//!
//! Invariants:
//! * the slots of the follower stay as they are, unless somebody cuts it in another way;
//! * segments that cannot be written stay in memory: nobody needs them on disk.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fieldstone_core::Result;
use fieldstone_core::env::real::trusted_folder;
use fieldstone_core::env::{Clock, Env};
use fieldstone_core::request::Request;
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_format::Id;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_journal::Journal;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::follow::{self, Followed, Following, Pace};
use fieldstone_journal::follower::{FieldLookup, HeldField, Wait};

use crate::folder::{MergeOlder, SegmentFolder};
use crate::follower::{GraphFollower, SlotHost};
use crate::segment::PageCache;
use crate::slot::StartSlots;

/// Bytes of records that are applied together: as rows and segments they take several times as much.
const STEP: usize = 16 << 20;
/// Bytes of segment pages that a process keeps in memory.
const CACHE: usize = 128 << 20;
/// Name of the graph's folder in the store's.
const FOLDER: &str = "graph";

/// The place of a graph's followers on disk, and the starter of their slots. All processes of a graph share it.
#[derive(Debug)]
pub struct FollowerPlace {
    env: Env,
    journal: Arc<Journal>,
    /// The folder that the caller chose.
    chosen: Option<PathBuf>,
    /// The folder, once the store exists and has a place for segments.
    folder: OnceLock<Arc<SegmentFolder>>,
    slots: Arc<dyn StartSlots>,
}

impl FollowerPlace {
    /// The folder that the caller chose, or one of the store's own.
    pub fn new(journal: Arc<Journal>, chosen: Option<PathBuf>, slots: Arc<dyn StartSlots>) -> FollowerPlace {
        FollowerPlace { env: journal.env().clone(), journal, chosen, folder: OnceLock::new(), slots }
    }

    /// Whether the caller chose the folder.
    pub fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// The folder; `None`: segments stay in memory.
    pub fn folder(&self) -> Option<Arc<SegmentFolder>> {
        if let Some(known) = self.folder.get() {
            return Some(known.clone());
        }
        let path = self.chosen.clone().or_else(|| own_folder(&self.journal))?;
        let (store, cache) = (self.journal.home().id, PageCache::new(CACHE));
        let folder = Arc::new(SegmentFolder::new(self.env.clone(), path, store, cache));
        Some(self.folder.get_or_init(|| folder).clone())
    }
}

/// The folder for the segments of a store; `None` for a store in memory or at an older version.
fn own_folder(journal: &Journal) -> Option<PathBuf> {
    let home = journal.home();
    let store = home.folder.as_ref().filter(|_| !home.pinned)?;
    // Create nothing before the store exists.
    let there = journal.env().disk.stat(store).is_ok();
    let id = home.id.to_string();
    there.then(|| trusted_folder::for_index(store, FOLDER, &[&id, FOLDER], home.env.identity.uid()))?
}

/// The follower of a process. See the module.
#[derive(Debug)]
pub struct FollowerCache {
    place: Arc<FollowerPlace>,
    /// `None` before the first read.
    follower: Mutex<Option<GraphFollower>>,
    /// Its slots, once they are known.
    partitioning: Mutex<Option<Partitioning>>,
}

impl FollowerCache {
    /// No follower yet.
    pub fn new(place: Arc<FollowerPlace>) -> FollowerCache {
        FollowerCache { place, follower: Mutex::default(), partitioning: Mutex::default() }
    }

    /// The follower, locked.
    pub fn lock(&self) -> MutexGuard<'_, Option<GraphFollower>> {
        self.follower.lock()
    }

    /// Bytes of its segments that are in memory.
    pub fn in_memory(&self) -> u64 {
        self.lock().as_ref().map_or(0, |follower| follower.applied().in_memory())
    }

    /// Whether one of its slots no longer serves.
    pub fn has_lost_slots(&self) -> bool {
        self.lock().as_ref().is_some_and(GraphFollower::lost_slots)
    }

    /// Sets the slots of followers that are built from now on.
    pub fn cut_as(&self, partitioning: Partitioning) {
        *self.partitioning.lock() = Some(partitioning);
    }

    /// The slots of a follower that is built again: as before, or as on disk.
    fn host(&self) -> SlotHost {
        let known = *self.partitioning.lock();
        let partitioning = known.or_else(|| self.place.folder()?.partitioning()).unwrap_or_default();
        SlotHost { partitioning, env: self.place.env.clone(), starter: self.place.slots.clone() }
    }

    /// The locked follower; opens it if necessary.
    pub fn opened<'a>(
        &self,
        slot: &'a mut Option<GraphFollower>,
        feed: &Feed,
    ) -> Result<&'a mut GraphFollower> {
        let follower = match slot.take() {
            Some(follower) => follower,
            None => {
                let follower = GraphFollower::open(self.place.folder(), self.host(), feed)?;
                self.cut_as(follower.partitioning());
                follower
            }
        };
        Ok(slot.insert(follower))
    }

    /// Drops the follower: the next read makes it from the list on disk and the newer part of the logs.
    pub fn let_go(&self) {
        *self.lock() = None;
    }

    /// Forgets the follower, on disk too; the next read builds it from the logs.
    pub fn remake(&self) -> Result<()> {
        let host = self.host();
        self.cut_as(host.partitioning);
        let mut slot = self.lock();
        // A file that cannot be removed will be found damaged again, and will then be the error of that read.
        let removed = self.place.folder().map_or(Ok(()), |folder| folder.forget());
        // The old slots must stop before new ones write in their place.
        *slot = None;
        *slot = Some(GraphFollower::empty(self.place.folder(), host)?);
        removed
    }

    /// Writes segments in memory to disk.
    pub fn save(&self, older: MergeOlder) {
        let Some(folder) = self.place.folder() else { return };
        let frozen = self.lock().as_mut().map(GraphFollower::freeze);
        let Some(Ok(frozen)) = frozen else { return };
        let saved = frozen.save(&folder, older).unwrap_or(None);
        let done = saved.is_some();
        let mut slot = self.lock();
        if let Some(follower) = slot.as_mut() {
            follower.install(&frozen, saved);
            if !done && folder.number() > frozen.began_with() {
                // Another process has written more: the next read begins there.
                *slot = None;
            }
        }
    }
}

/// Makes a follower apply a feed, in steps.
pub fn follow(
    follower: &mut GraphFollower,
    feed: &Feed,
    newest: bool,
    clock: &dyn Clock,
) -> Result<Followed> {
    let pace = Pace { bytes: STEP, ..Pace::usual(clock) };
    follow::follow(follower, feed, &NoFields, &Following { wait: Wait::Yes, newest, pace })
}

/// The graph needs no fields.
struct NoFields;

impl FieldLookup for NoFields {
    fn fields(
        &self,
        _: &Request,
        _: Option<Id>,
        _: &mut dyn FnMut(&HeldField) -> Result<bool>,
    ) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::{ShelfContent, Slots};
    use fieldstone_core::env::sim::SimWorld;
    use fieldstone_core::{Error, ErrorKind};
    use fieldstone_journal::journal::JournalOptions;

    /// A host on which no slots can run.
    #[derive(Debug)]
    struct NoSlots;

    impl StartSlots for NoSlots {
        fn start(&self, _: Partitioning, _: Vec<ShelfContent>, _: &Env) -> Result<Arc<dyn Slots>> {
            Err(Error::unavailable("no slots"))
        }
    }

    #[test]
    fn a_follower_is_opened_once_and_again_when_it_was_let_go() {
        let journal = Journal::open(SimWorld::memory(), "/s".as_ref(), JournalOptions::default()).unwrap();
        let journal = Arc::new(journal);
        let place = FollowerPlace::new(journal.clone(), Some("/view".into()), Arc::new(NoSlots));
        let cache = FollowerCache::new(Arc::new(place));
        let feed = journal.looks().feed().unwrap();
        let revision = |cache: &FollowerCache| {
            let mut slot = cache.lock();
            let follower = cache.opened(&mut slot, &feed).unwrap();
            follow(follower, &feed, true, &*journal.env().clock).unwrap();
            follower.applied().revision
        };
        let first = revision(&cache);
        cache.remake().unwrap();
        assert!(cache.lock().is_some() && !cache.has_lost_slots() && cache.in_memory() == 0);
        cache.let_go();
        assert_eq!(revision(&cache), first);
        cache.cut_as(Partitioning { slots: 4, ..Partitioning::default() });
        assert_eq!(cache.remake().unwrap_err().kind(), ErrorKind::Unavailable, "it is cut as was asked for");
    }
}
