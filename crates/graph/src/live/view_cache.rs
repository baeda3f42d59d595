//! The view of a process: the first read opens it; it is built again when it is damaged or cut in another
//! way, and written to disk.
//!
//! Invariants:
//! * the slots of the view stay as they are, unless somebody cuts it in another way;
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
use fieldstone_journal::view::{HeldField, Holds, Wait};

use crate::folder::{MergeOlder, SegmentFolder};
use crate::segment::PageCache;
use crate::slot::StartSlots;
use crate::view::{GraphView, SlotHost};

/// Bytes of records that are applied together: as rows and segments they take several times as much.
const STEP: usize = 16 << 20;
/// Bytes of segment pages that a process keeps in memory.
const CACHE: usize = 128 << 20;
/// Name of the graph's folder in the store's.
const FOLDER: &str = "graph";

/// The place of a graph's views on disk, and the starter of their slots. All processes of a graph share it.
#[derive(Debug)]
pub struct ViewPlace {
    env: Env,
    journal: Arc<Journal>,
    /// The folder that the caller chose.
    chosen: Option<PathBuf>,
    /// The folder, once the store exists and has a place for segments.
    folder: OnceLock<Arc<SegmentFolder>>,
    slots: Arc<dyn StartSlots>,
}

impl ViewPlace {
    /// The folder that the caller chose, or one of the store's own.
    pub fn new(journal: Arc<Journal>, chosen: Option<PathBuf>, slots: Arc<dyn StartSlots>) -> ViewPlace {
        ViewPlace { env: journal.env().clone(), journal, chosen, folder: OnceLock::new(), slots }
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
    there.then(|| trusted_folder::for_view(store, FOLDER, &[&id, FOLDER], home.env.identity.uid()))?
}

/// The view of a process. See the module.
#[derive(Debug)]
pub struct ViewCache {
    place: Arc<ViewPlace>,
    /// `None` before the first read.
    view: Mutex<Option<GraphView>>,
    /// Its slots, once they are known.
    partitioning: Mutex<Option<Partitioning>>,
}

impl ViewCache {
    /// No view yet.
    pub fn new(place: Arc<ViewPlace>) -> ViewCache {
        ViewCache { place, view: Mutex::default(), partitioning: Mutex::default() }
    }

    /// The view, locked.
    pub fn lock(&self) -> MutexGuard<'_, Option<GraphView>> {
        self.view.lock()
    }

    /// Bytes of its segments that are in memory.
    pub fn in_memory(&self) -> u64 {
        self.lock().as_ref().map_or(0, |view| view.applied().in_memory())
    }

    /// Whether one of its slots no longer serves.
    pub fn has_lost_slots(&self) -> bool {
        self.lock().as_ref().is_some_and(GraphView::lost_slots)
    }

    /// Sets the slots of views that are built from now on.
    pub fn cut_as(&self, partitioning: Partitioning) {
        *self.partitioning.lock() = Some(partitioning);
    }

    /// The slots of a view that is built again: as before, or as on disk.
    fn host(&self) -> SlotHost {
        let known = *self.partitioning.lock();
        let partitioning = known.or_else(|| self.place.folder()?.partitioning()).unwrap_or_default();
        SlotHost { partitioning, env: self.place.env.clone(), starter: self.place.slots.clone() }
    }

    /// The locked view; opens it if necessary.
    pub fn opened<'a>(&self, slot: &'a mut Option<GraphView>, feed: &Feed) -> Result<&'a mut GraphView> {
        let view = match slot.take() {
            Some(view) => view,
            None => {
                let view = GraphView::open(self.place.folder(), self.host(), feed)?;
                self.cut_as(view.partitioning());
                view
            }
        };
        Ok(slot.insert(view))
    }

    /// Drops the view: the next read makes it from the list on disk and the newer part of the logs.
    pub fn let_go(&self) {
        *self.lock() = None;
    }

    /// Forgets the view, on disk too; the next read builds it from the logs.
    pub fn remake(&self) -> Result<()> {
        let host = self.host();
        self.cut_as(host.partitioning);
        let mut slot = self.lock();
        // A file that cannot be removed will be found damaged again, and will then be the error of that read.
        let removed = self.place.folder().map_or(Ok(()), |folder| folder.forget());
        // The old slots must stop before new ones write in their place.
        *slot = None;
        *slot = Some(GraphView::empty(self.place.folder(), host)?);
        removed
    }

    /// Writes segments in memory to disk.
    pub fn save(&self, older: MergeOlder) {
        let Some(folder) = self.place.folder() else { return };
        let frozen = self.lock().as_mut().map(GraphView::freeze);
        let Some(Ok(frozen)) = frozen else { return };
        let saved = frozen.save(&folder, older).unwrap_or(None);
        let done = saved.is_some();
        let mut slot = self.lock();
        if let Some(view) = slot.as_mut() {
            view.install(&frozen, saved);
            if !done && folder.number() > frozen.began_with() {
                // Another process has written more: the next read begins there.
                *slot = None;
            }
        }
    }
}

/// Makes a view apply a feed, in steps.
pub fn follow(view: &mut GraphView, feed: &Feed, newest: bool, clock: &dyn Clock) -> Result<Followed> {
    let pace = Pace { bytes: STEP, ..Pace::usual(clock) };
    follow::follow(view, feed, &NoFields, &Following { wait: Wait::Yes, newest, pace })
}

/// The graph needs no fields.
struct NoFields;

impl Holds for NoFields {
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
    fn a_view_is_opened_once_and_again_when_it_was_let_go() {
        let journal = Journal::open(SimWorld::memory(), "/s".as_ref(), JournalOptions::default()).unwrap();
        let journal = Arc::new(journal);
        let place = ViewPlace::new(journal.clone(), Some("/view".into()), Arc::new(NoSlots));
        let cache = ViewCache::new(Arc::new(place));
        let feed = journal.looks().feed().unwrap();
        let generation = |cache: &ViewCache| {
            let mut slot = cache.lock();
            let view = cache.opened(&mut slot, &feed).unwrap();
            follow(view, &feed, true, &*journal.env().clock).unwrap();
            view.applied().generation
        };
        let first = generation(&cache);
        cache.remake().unwrap();
        assert!(cache.lock().is_some() && !cache.has_lost_slots() && cache.in_memory() == 0);
        cache.let_go();
        assert_eq!(generation(&cache), first);
        cache.cut_as(Partitioning { slots: 4, ..Partitioning::default() });
        assert_eq!(cache.remake().unwrap_err().kind(), ErrorKind::Unavailable, "it is cut as was asked for");
    }
}
