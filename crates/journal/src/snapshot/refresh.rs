//! Keeping up with the logs: boards say which moved, a look at each log says whether they are right.
//!
//! Opening reads the folder of logs and the end of each log. A refresh reads one board file per host and
//! then the logs whose slots moved. Invariants:
//! * a board is a hint, also by its silence: every log that is not closed is looked at by [`Look::All`], and
//!   by any refresh a second after the last such look;
//! * reads share a refresh only if it began after all of them did;
//! * what this process wrote itself it knows without a board;
//! * a log that is missing or shorter than its slot, or than it was, lost commits: that is kept in the
//!   snapshot for as long as it lasts, so that reads can say so;
//! * a log that cannot be read is passed over and named; it hides nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::Env;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::board::Slot;
use fieldstone_format::log;
use fieldstone_format::{Id, unknown_version};
use tracing::Span;

use super::boards::Boards;
use super::claims::Claims;
use super::folder::{Listing, list_if_changed};
use super::look::{Looked, Looker, Store, runs_of};
use super::walker::{Walker, read_header};
use super::{LogView, Loss, Problem, Snapshot, is_believed};
use crate::files::Files;
use crate::run::BlockCache;
use crate::writer::Flushed;
use crate::writer::create::read_marker;

/// How long boards are trusted, nanoseconds.
const TRUST: u64 = 1_000_000_000;
/// How long a log may look shorter than it is where another host's writes show late, nanoseconds.
const LAG: u64 = 60_000_000_000;

/// How much a refresh looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What boards say moved, and everything once a second.
    Hints,
    /// Every log that is not closed.
    All,
}

/// The state between refreshes.
#[derive(Debug)]
pub struct Refresher {
    env: Env,
    files: Arc<Files>,
    cache: Arc<BlockCache>,
    logs_folder: Listing,
    /// Logs in the folder, and what stands there under a log's name and is none.
    listed: Vec<Id>,
    strange: Vec<Problem>,
    claims: Arc<Claims>,
    boards: Boards,
    /// What this process's writer wrote last, in each of its logs.
    own: BTreeMap<Id, Slot>,
    /// Whether it wrote something that no snapshot shows yet.
    own_moved: bool,
    views: HashMap<Id, Arc<LogView>>,
    /// Logs without a commit so far, with their users.
    empty: HashMap<Id, u32>,
    /// Logs that do not show yet what their slot says, or have none: looked at each time.
    unsettled: BTreeSet<Id>,
    /// Logs that are not read, and why.
    passed: BTreeMap<Id, Problem>,
    /// Logs that lost commits, and since when that shows.
    losses: BTreeMap<Id, (u64, Loss)>,
    /// Ends of logs whose last write failed, by the word of the writer's next log, and the user who
    /// owns that: no one ends another user's log.
    sealed: HashMap<Id, (u64, u32)>,
    /// Logs of a version that we do not know.
    foreign: BTreeMap<Id, u32>,
    /// What store this is, once that is known.
    store: Option<Store>,
    /// Whether other hosts' writes may show late, once that is known.
    lags: Option<bool>,
    /// When every log was looked at last.
    looked: Option<u64>,
    /// Up to which ticket reads were served by a refresh that began after they asked.
    served: u64,
    current: Arc<Snapshot>,
}

impl Refresher {
    /// A refresher that has seen nothing yet.
    pub fn new(env: Env, files: Arc<Files>, cache: Arc<BlockCache>) -> Refresher {
        let claims = Arc::new(Claims::new(env.disk.clone(), files.layout(), &[]));
        Refresher {
            env,
            files,
            cache,
            logs_folder: Listing::default(),
            listed: Vec::new(),
            strange: Vec::new(),
            claims,
            boards: Boards::default(),
            own: BTreeMap::new(),
            own_moved: false,
            views: HashMap::new(),
            empty: HashMap::new(),
            unsettled: BTreeSet::new(),
            passed: BTreeMap::new(),
            losses: BTreeMap::new(),
            sealed: HashMap::new(),
            foreign: BTreeMap::new(),
            store: None,
            lags: None,
            looked: None,
            served: 0,
            current: Arc::new(Snapshot::empty()),
        }
    }

    /// Notes a commit of this process's writer, which is durable. Where the one before it is known, nothing
    /// of the log needs to be read again.
    pub fn wrote(&mut self, flushed: &Flushed) {
        let writer = flushed.writer;
        self.own.insert(writer, flushed.slot);
        let follows = |view: &&Arc<LogView>| view.ends.end() == flushed.ends.frame;
        if let Some(view) = self.views.get(&writer).filter(follows) {
            let runs = runs_of(&self.files, &self.cache, writer, &flushed.record, Some(view));
            self.views.insert(writer, Arc::new(view.followed_by(&flushed.record, flushed.ends, runs)));
            self.own_moved = true;
        }
    }

    /// The newest snapshot for whoever drew `ticket` from `asked` before he waited for the lock: of a refresh
    /// that began after that. One that began earlier may lack what was flushed before he asked.
    pub fn refresh_for(&mut self, ticket: u64, asked: &AtomicU64) -> Result<Arc<Snapshot>> {
        if self.served >= ticket {
            return Ok(self.current.clone());
        }
        let upto = asked.load(Ordering::SeqCst);
        let snapshot = self.refresh(Look::Hints)?;
        self.served = upto;
        Ok(snapshot)
    }

    /// Looks at what moved and returns the newest snapshot.
    pub fn refresh(&mut self, look: Look) -> Result<Arc<Snapshot>> {
        let folder = self.files.layout().logs();
        let logs_moved = list_if_changed(&self.env, &folder, &mut self.logs_folder)?;
        if logs_moved {
            self.list();
        }
        let boards_moved = self.boards.read(&self.env, self.files.layout(), self.listed.len())?;
        let now = self.env.clock.monotonic();
        let all = look == Look::All || self.looked.is_none_or(|then| now.saturating_sub(then) >= TRUST);
        let own_moved = std::mem::take(&mut self.own_moved)
            || self.own.values().any(|slot| self.sequence(slot.writer) < slot.sequence);
        if !(boards_moved || logs_moved || all || own_moved) && self.unsettled.is_empty() {
            return Ok(self.current.clone());
        }
        if all {
            self.looked = Some(now);
        }
        // A log can be on a board before the folder's listing shows it (network file systems).
        let mut writers: Vec<Id> = self.listed.clone();
        writers.extend(self.boards.slots().map(|(_, slot)| slot.writer));
        writers.extend(self.own.keys());
        writers.extend(self.views.keys());
        writers.sort_unstable();
        writers.dedup();
        self.find_store(!writers.is_empty())?;
        let mut moved = own_moved;
        let span = Span::current();
        span.record("logs", writers.len());
        for &writer in writers.iter().filter(|writer| self.is_due(**writer, all)).collect::<Vec<_>>() {
            moved |= self.look(writer, now, all)?;
            moved |= self.read_header_again(writer)?;
        }
        // A header read just now may end a log that was looked at before.
        for writer in self.beyond_seal() {
            self.views.remove(&writer);
            self.look(writer, now, true)?;
            moved = true;
        }
        span.record("moved", moved);
        self.unsettled = writers.iter().filter(|writer| self.is_unsettled(**writer)).copied().collect();
        self.publish(moved, &writers, now)
    }

    /// Takes the listing of the folder of logs.
    fn list(&mut self) {
        let names = &self.logs_folder.names;
        self.listed = names.iter().filter_map(|name| log::parse_file_name(name)).collect();
        self.strange = self.logs_folder.problems("logs", |name| log::parse_file_name(name).is_some());
        self.claims = Arc::new(Claims::new(self.env.disk.clone(), self.files.layout(), names));
        // Of what is no longer there and never counted, nothing is said.
        let listed: BTreeSet<Id> = self.listed.iter().copied().collect();
        self.empty.retain(|writer, _| listed.contains(writer));
        self.passed.retain(|writer, _| listed.contains(writer));
        self.foreign.retain(|writer, _| listed.contains(writer));
    }

    /// Learns what store this is, from its marker: logs of another one do not count.
    fn find_store(&mut self, has_logs: bool) -> Result<()> {
        if self.store.is_none() && has_logs {
            let layout = self.files.layout();
            if let Ok(Some(Ok(marker))) = read_marker(&self.env, layout) {
                let folder = layout.logs();
                self.store = match self.env.disk.stat(&folder) {
                    Ok(stat) => Some(Store { id: marker.id, folder_owner: stat.uid }),
                    // Another host's folder shows late.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
                    Err(e) => return Err(Error::io("look at", &folder, e)),
                };
            }
        }
        Ok(())
    }

    /// The last commit of a log that is known.
    fn sequence(&self, writer: Id) -> u64 {
        self.views.get(&writer).map_or(0, |view| view.record.sequence)
    }

    /// What is said of a log by its user: this process itself, or the boards of the log's owner.
    fn slot(&self, writer: Id) -> Option<&Slot> {
        let owner = self.views.get(&writer).map(|view| view.uid).or(self.empty.get(&writer).copied());
        let board = owner.and_then(|owner| self.boards.slot(writer, owner));
        let own = self.own.get(&writer);
        own.into_iter().chain(board).max_by_key(|slot| slot.sequence)
    }

    /// Whether a log is to be looked at now.
    fn is_due(&self, writer: Id, all: bool) -> bool {
        let Some(view) = self.views.get(&writer) else {
            // Of a log without a commit nothing is due until it has a slot.
            return all || !self.empty.contains_key(&writer) || self.slot(writer).is_some();
        };
        match self.slot(writer) {
            Some(slot) if slot.sequence > view.record.sequence => true,
            // Its writer is done with it: nothing comes any more.
            Some(slot) if slot.closed && slot.hash == view.ends.hash => false,
            slot => all || slot.is_none() || view.header_damage.is_some(),
        }
    }

    fn is_unsettled(&self, writer: Id) -> bool {
        let Some(view) = self.views.get(&writer) else {
            return !self.empty.contains_key(&writer) || self.slot(writer).is_some();
        };
        self.slot(writer).is_none_or(|slot| slot.sequence > view.record.sequence)
            || view.header_damage.is_some()
    }

    /// Looks at a log; whether it moved.
    fn look(&mut self, writer: Id, now: u64, all: bool) -> Result<bool> {
        let slot = self.slot(writer).copied();
        let view = self.views.get(&writer).cloned();
        let looker = Looker {
            env: &self.env,
            files: &self.files,
            cache: &self.cache,
            store: self.store.as_ref(),
            boards: &self.boards,
            now: self.env.clock.now(),
            monotonic: now,
        };
        let whole = all || slot.is_none();
        let outcome = looker.look(writer, slot.as_ref(), view.as_ref(), whole, &mut self.sealed);
        let problem = |file: String, why: &str, damage| Problem {
            file,
            why: why.to_owned(),
            damage,
            passed_over: !damage,
        };
        let file = self.files.layout().shown(writer, 0);
        self.foreign.remove(&writer);
        let mut passed = None;
        let mut moved = false;
        let mut cut = None;
        match outcome {
            Ok(Looked::Same) => {}
            Ok(Looked::Moved(now)) => {
                moved =
                    view.is_none_or(|view| view.record.sequence < now.record.sequence || view.uid != now.uid);
                self.views.insert(writer, Arc::new(*now));
                self.empty.remove(&writer);
            }
            Ok(Looked::Empty(user)) => drop(self.empty.insert(writer, user)),
            Ok(Looked::Foreign(version)) => drop(self.foreign.insert(writer, version)),
            Ok(Looked::Cut(why)) => cut = Some(why),
            Ok(Looked::Passed(why)) => passed = Some(problem(file.clone(), &why, false)),
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                passed = Some(problem(file.clone(), e.message(), true))
            }
            Err(e) => return Err(e),
        }
        let is_passed = passed.is_some();
        match passed {
            Some(problem) => drop(self.passed.insert(writer, problem)),
            None => drop(self.passed.remove(&writer)),
        }
        self.note_loss(writer, file, cut.filter(|_| !is_passed), now);
        Ok(moved)
    }

    /// Notes whether a log is shorter than is known of it.
    fn note_loss(&mut self, writer: Id, file: String, cut: Option<String>, now: u64) {
        let seen = self.sequence(writer);
        let view = self.views.get(&writer);
        // A log that no longer is there has no owner: whose board knows it is the one who lost it.
        let theirs = self.boards.slots().filter(|(_, slot)| slot.writer == writer);
        let of_boards = theirs.max_by_key(|(_, slot)| slot.sequence).map(|(owner, _)| owner);
        let owner = view.map(|view| view.uid).or(self.empty.get(&writer).copied()).or(of_boards);
        let slot = self.slot(writer).or_else(|| self.boards.slot(writer, owner?));
        let behind = slot.filter(|slot| slot.sequence > seen).map(|slot| {
            format!("the log ends with commit {seen}, its board slot knows commit {}", slot.sequence)
        });
        let unreadable = self.passed.get(&writer).is_some_and(|problem| !problem.damage);
        match cut.or(behind).zip(owner).filter(|_| !unreadable) {
            Some((why, owner)) => {
                let since = self.losses.get(&writer).map_or(now, |(since, _)| *since);
                self.losses.insert(writer, (since, Loss { owner, file, why }));
            }
            None => drop(self.losses.remove(&writer)),
        }
    }

    /// Reads a header that seemed damaged once more: another host's first page may show late. Whether
    /// it is sound now.
    fn read_header_again(&mut self, writer: Id) -> Result<bool> {
        let Some(view) = self.views.get(&writer).filter(|view| view.header_damage.is_some()) else {
            return Ok(false);
        };
        let path = self.files.layout().log(writer);
        let file = self.env.disk.open_plain(&path, false).map_err(|e| Error::io("open", &path, e));
        let (header, header_len) = match file.and_then(|file| read_header(&*file, &path, view.file_len)) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => return Ok(false),
            Err(e) => return Err(e),
        };
        for (sealed, length) in &header.sealed {
            self.sealed.insert(*sealed, (*length, view.uid));
        }
        let view = LogView { header: Arc::new(header), header_len, header_damage: None, ..(**view).clone() };
        self.views.insert(writer, Arc::new(view));
        Ok(true)
    }

    /// Logs seen up to a commit that never was confirmed.
    fn beyond_seal(&self) -> Vec<Id> {
        let beyond = |writer: &Id, length: u64, uid: u32| {
            self.views.get(writer).is_some_and(|view| view.uid == uid && view.ends.end() > length)
        };
        self.sealed.iter().filter(|(w, (length, uid))| beyond(w, *length, *uid)).map(|(w, _)| *w).collect()
    }

    /// Makes a new snapshot where anything in it would differ.
    fn publish(&mut self, moved: bool, writers: &[Id], now: u64) -> Result<Arc<Snapshot>> {
        let mut problems: Vec<Problem> = self.boards.problems().chain(&self.strange).cloned().collect();
        problems.extend(self.passed.values().cloned());
        let mut foreign = self.boards.foreign().to_vec();
        for (writer, version) in &self.foreign {
            let file = self.files.layout().shown(*writer, 0);
            let why = unknown_version("the log", version).message().to_owned();
            problems.push(Problem { file: file.clone(), why, damage: true, passed_over: false });
            foreign.push(format!("{file} of format version {version}"));
        }
        for writer in writers {
            self.note_damage(*writer, &mut problems);
        }
        let lags = match self.lags {
            _ if self.losses.is_empty() => false,
            Some(lags) => lags,
            None => *self.lags.insert(self.env.disk.lags(&self.files.layout().logs())),
        };
        let certain = |since: u64| !lags || now.saturating_sub(since) >= LAG;
        let losses: Vec<Loss> =
            self.losses.values().filter(|(since, _)| certain(*since)).map(|(_, loss)| loss.clone()).collect();
        let current = &self.current;
        if moved || problems != current.problems || foreign != current.foreign || losses != current.losses {
            let views = self.views.values().cloned().collect();
            let folder_owner = self.store.as_ref().map(|store| store.folder_owner);
            let snapshot = Snapshot::new(views, &self.claims, folder_owner, Some(current))?;
            self.current = Arc::new(Snapshot { problems, foreign, losses, ..snapshot });
        }
        Ok(self.current.clone())
    }

    /// Reports what is damaged in a log that is read nevertheless, and a log that lost commits.
    fn note_damage(&self, writer: Id, problems: &mut Vec<Problem>) {
        let view = self.views.get(&writer);
        let file = || self.files.layout().shown(writer, 0);
        let mut note = |why: &str, damage| {
            problems.push(Problem { file: file(), why: why.to_owned(), damage, passed_over: false })
        };
        if let Some(why) = view.and_then(|view| view.header_damage.as_deref()) {
            // The header is written with the first commit: before its sync has returned, a power cut may
            // keep the commit and not the header.
            note(why, self.slot(writer).is_some() || self.sequence(writer) > 1);
        }
        if let Some(why) = view.and_then(|view| view.decisions_damage.as_deref()) {
            note(why, true);
        }
        if let Some((_, loss)) = self.losses.get(&writer) {
            note(&loss.why, true);
        }
    }

    /// The greatest Lamport timestamp that a commit of now has to exceed: of logs, and of slots of logs that
    /// another host's cache does not show whole yet.
    pub fn max_stamp(&self) -> u64 {
        let now = self.env.clock.now();
        let of_slot = |(owner, slot): (u32, &Slot)| {
            let there =
                self.views.get(&slot.writer).map(|view| view.uid).or(self.empty.get(&slot.writer).copied());
            (there == Some(owner) || owner == self.env.identity.uid()).then_some(slot.stamp)
        };
        let logs = self.views.values().map(|view| view.record.stamp);
        let stamps = logs.chain(self.boards.slots().filter_map(of_slot));
        stamps.filter(|stamp| is_believed(*stamp, now)).max().unwrap_or(0)
    }

    /// Bytes behind the last commit of a log that are no zeros: a frame being written, or torn.
    pub fn tail(&self, log: &LogView) -> Result<u64> {
        let path = self.files.layout().log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        let end = file.stat().map_err(|e| Error::io("look at", &path, e))?.len;
        let walker = Walker { file: &*file, path: &path, end };
        Ok(walker.data_end(log.ends.end())?.saturating_sub(log.ends.end()))
    }

    /// What a log's own user says of it.
    pub fn slot_of(&self, log: &LogView) -> Option<&Slot> {
        self.boards.slot(log.writer, log.uid)
    }

    /// What owners of datasets are told by.
    pub fn ownership(&self) -> (&Arc<Claims>, Option<u32>) {
        (&self.claims, self.store.as_ref().map(|store| store.folder_owner))
    }

    /// Where the logs are.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// Where blocks of indexes are kept.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }
}
