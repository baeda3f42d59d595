//! Keeping up with the logs of a folder: boards say which moved, a look at each log says whether they are right.
//!
//! The first look reads the folder of logs and the end of each log. A later one reads one board file per host
//! and then the logs whose slots moved. Invariants:
//! * a board is a hint, also by its silence: every log that is not closed is looked at by [`Look::All`], and
//!   by any look a second after the last such one;
//! * what this process wrote itself it knows without a board;
//! * a log that is missing or shorter than its slot, or than it was, lost commits: that is found by each look
//!   for as long as it lasts, so that reads can say so;
//! * a log that cannot be read is skipped and named; it hides nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::board::Slot;
use fieldstone_format::log::{self, CommitRecord, FrameInfo};
use fieldstone_format::log_end::{EndReason, LogEnd};
use fieldstone_format::{Id, unknown_version};

use super::boards::Boards;
use super::claims::ListedClaims;
use super::create::read_marker;
use super::ends::Ends;
use super::folder::{Listing, list_if_changed};
use super::log_reader::read_header;
use super::look::{LogState, Looked, Looker};
use super::open_files::OpenFiles;
use super::remains;
use super::slot::slot_of;
use super::store::Store;
use super::takeovers::{FolderTakeovers, Opener};
use crate::medium::{Claims, Ended, Findings, LogsGone, Look, Loss, Problem, Tip, Watch, is_believed};
use crate::takeover::Takeovers;

/// How long boards are trusted, nanoseconds.
const TRUST: u64 = 1_000_000_000;
/// How long a log may look shorter than it is where another host's writes show late, nanoseconds.
const LAG: u64 = 60_000_000_000;

/// The known state of a folder of logs.
#[derive(Debug)]
pub struct FolderWatch {
    env: Env,
    files: Arc<OpenFiles>,
    logs_folder: Listing,
    /// Logs in the folder, in order, and what stands there under a log's name and is none.
    listed: Vec<Id>,
    strange: Vec<Problem>,
    claims: Arc<ListedClaims>,
    takeovers: FolderTakeovers,
    boards: Boards,
    /// The last commit of this process's writer in each of its logs.
    own: BTreeMap<Id, Slot>,
    /// Whether anything differs from what the last look that ended well has shown.
    moved: bool,
    log_states: BTreeMap<Id, LogState>,
    /// Logs without a commit so far, with their users.
    empty: HashMap<Id, u32>,
    /// Logs that do not show yet what their slot says, or have none: looked at each time.
    behind: BTreeSet<Id>,
    /// Logs that are not read, and why.
    passed: BTreeMap<Id, Problem>,
    /// Logs that lost commits, and since when that shows.
    losses: BTreeMap<Id, (u64, Loss)>,
    /// Ends of logs whose last write failed, by the word of the writer's next log, and the user who
    /// owns that: no one ends another user's log.
    sealed: HashMap<Id, (u64, u32)>,
    /// End files.
    ends: Ends,
    /// Logs of a version that we do not know.
    foreign: BTreeMap<Id, u32>,
    /// Logs that takeovers replace, as far as anything still names them.
    replaced: HashSet<Id>,
    /// The identity of the store, once it is known.
    store: Option<Store>,
    /// Whether other hosts' writes may show late, once that is known.
    lags: Option<bool>,
    /// When every log was looked at last.
    looked: Option<u64>,
    /// The problems that the last look found.
    findings: Findings,
}

impl FolderWatch {
    /// A watch that has seen nothing yet.
    pub fn new(env: Env, files: Arc<OpenFiles>) -> FolderWatch {
        let claims = Arc::new(ListedClaims::new(env.disk.clone(), files.layout(), &[]));
        FolderWatch {
            env,
            files,
            logs_folder: Listing::default(),
            listed: Vec::new(),
            strange: Vec::new(),
            claims,
            takeovers: FolderTakeovers::new(),
            boards: Boards::default(),
            own: BTreeMap::new(),
            moved: false,
            log_states: BTreeMap::new(),
            empty: HashMap::new(),
            behind: BTreeSet::new(),
            passed: BTreeMap::new(),
            losses: BTreeMap::new(),
            sealed: HashMap::new(),
            ends: Ends::default(),
            foreign: BTreeMap::new(),
            replaced: HashSet::new(),
            store: None,
            lags: None,
            looked: None,
            findings: Findings::default(),
        }
    }

    /// Takes the listing of the folder of logs.
    fn list(&mut self) {
        let names = &self.logs_folder.names;
        self.listed = names.iter().filter_map(|name| log::parse_file_name(name)).collect();
        self.listed.sort_unstable();
        self.ends.list(names);
        self.strange = self.logs_folder.problems("logs", |name| log::parse_file_name(name).is_some());
        self.claims = Arc::new(ListedClaims::new(self.env.disk.clone(), self.files.layout(), names));
        // Nothing is reported about a log that is gone and never counted.
        let listed: BTreeSet<Id> = self.listed.iter().copied().collect();
        self.empty.retain(|writer, _| listed.contains(writer));
        self.passed.retain(|writer, _| listed.contains(writer));
        self.foreign.retain(|writer, _| listed.contains(writer));
    }

    /// Takes the takeovers that the folder lists. Logs that they replace are not looked at any more.
    fn list_takeovers(&mut self) -> Result<()> {
        let names = &self.logs_folder.names;
        self.find_store(!names.is_empty())?;
        let opener = Opener { env: &self.env, files: &self.files, store: self.store.as_ref() };
        if self.takeovers.list(&self.logs_folder.names, &opener)? {
            self.moved = true;
            let known = self.listed.iter().chain(self.log_states.keys()).chain(self.own.keys());
            let known: BTreeSet<Id> = known.chain(self.losses.keys()).copied().collect();
            for log in known {
                if self.is_replaced(log)? {
                    self.forget(log);
                }
            }
        }
        Ok(())
    }

    /// Forgets a log that a takeover replaces.
    fn forget(&mut self, log: Id) {
        self.log_states.remove(&log);
        self.own.remove(&log);
        self.empty.remove(&log);
        self.behind.remove(&log);
        self.passed.remove(&log);
        self.losses.remove(&log);
        self.foreign.remove(&log);
    }

    /// Whether a takeover of its own user replaces a log.
    fn is_replaced(&mut self, log: Id) -> Result<bool> {
        if self.replaced.contains(&log) {
            return Ok(true);
        }
        let users = self.takeovers.users_of(log)?;
        if users.is_empty() {
            return Ok(false);
        }
        // The owner of the folder could replace the files of others anyway.
        if self.store.as_ref().is_some_and(|store| users.contains(&store.folder_owner)) {
            self.replaced.insert(log);
            return Ok(true);
        }
        let path = self.files.layout().log(log);
        let is_own = match self.env.disk.stat(&path) {
            Ok(stat) => users.contains(&stat.uid),
            // Its file is gone: what is known of it, or a board, says whose it was.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let known = self.log_states.get(&log).map(|state| state.tip.uid);
                let boards = || {
                    let slots = self.boards.slots().filter(|(_, slot)| slot.writer == log);
                    slots.map(|(owner, _)| owner)
                };
                known.map_or_else(
                    || boards().count() == 0 || boards().any(|owner| users.contains(&owner)),
                    |uid| users.contains(&uid),
                )
            }
            Err(e) => return Err(Error::io("look at", &path, e)),
        };
        if is_own {
            self.replaced.insert(log);
        }
        Ok(is_own)
    }

    /// Whether the folder of logs is gone, and what shows that.
    fn without_logs(&self) -> Option<LogsGone> {
        let is_absent = self.logs_folder.is_absent();
        is_absent.then(|| remains::without_logs(&*self.env.disk, self.files.layout())).flatten()
    }

    /// Learns what store this is, from its marker: logs of another one do not count.
    fn find_store(&mut self, has_logs: bool) -> Result<()> {
        if self.store.is_none() && has_logs {
            let layout = self.files.layout();
            if let Ok(Some(Ok(marker))) = read_marker(&self.env, layout) {
                let folder = layout.logs();
                self.store = match self.env.disk.stat(&folder) {
                    Ok(stat) => {
                        Some(Store { id: marker.id, former: layout.former(), folder_owner: stat.uid })
                    }
                    // Another host's folder shows late.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
                    Err(e) => return Err(Error::io("look at", &folder, e)),
                };
            }
        }
        Ok(())
    }

    /// The store, once it is known.
    pub fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Whether a log has no commit, as far as the last look saw.
    pub fn is_empty(&self, writer: Id) -> bool {
        self.empty.contains_key(&writer)
    }

    /// The last commit of a log that is known.
    fn sequence(&self, writer: Id) -> u64 {
        self.log_states.get(&writer).map_or(0, |log_state| log_state.tip.record.sequence)
    }

    /// The information about a log from its user: this process itself, or the boards of the log's owner.
    fn slot(&self, writer: Id) -> Option<&Slot> {
        let owner = self
            .log_states
            .get(&writer)
            .map(|log_state| log_state.tip.uid)
            .or(self.empty.get(&writer).copied());
        let board = owner.and_then(|owner| self.boards.slot(writer, owner));
        let own = self.own.get(&writer);
        own.into_iter().chain(board).max_by_key(|slot| slot.sequence)
    }

    /// Whether a log is read up to its end file, and its header with it.
    fn is_read(&self, log_state: &LogState) -> bool {
        let tip = &log_state.tip;
        tip.header_damage.is_none() && self.ends.is_reached(tip, self.store.as_ref())
    }

    /// Whether a log is to be looked at now.
    fn is_due(&self, writer: Id, all: bool) -> bool {
        let Some(log_state) = self.log_states.get(&writer) else {
            // Of a log without a commit nothing is due until it has a slot.
            return all || !self.empty.contains_key(&writer) || self.slot(writer).is_some();
        };
        // The listing says at no cost that a log is gone, and a look that it is back: a closed one, too.
        if self.listed.binary_search(&writer).is_err() || self.losses.contains_key(&writer) {
            return true;
        }
        if self.is_read(log_state) {
            return false;
        }
        match self.slot(writer) {
            Some(slot) if slot.sequence > log_state.tip.record.sequence => true,
            // Its writer is done with it: nothing comes any more, unless its last flush made the end file and failed only then.
            Some(slot) if slot.closed && slot.hash == log_state.tip.ends.hash => {
                self.ends.has_more(&log_state.tip, self.store.as_ref())
            }
            slot => all || slot.is_none() || log_state.tip.header_damage.is_some(),
        }
    }

    fn is_behind(&self, writer: Id) -> bool {
        let Some(log_state) = self.log_states.get(&writer) else {
            return !self.empty.contains_key(&writer) || self.slot(writer).is_some();
        };
        if self.is_read(log_state) {
            return false;
        }
        self.slot(writer).is_none_or(|slot| slot.sequence > log_state.tip.record.sequence)
            || log_state.tip.header_damage.is_some()
    }

    /// Looks at a log.
    fn look_at(&mut self, writer: Id, now: u64, all: bool) -> Result<()> {
        let slot = self.slot(writer).copied();
        let log_state = self.log_states.get(&writer).cloned();
        let looker = Looker {
            env: &self.env,
            files: &self.files,
            store: self.store.as_ref(),
            boards: &self.boards,
            ends: &self.ends,
            now: self.env.clock.now(),
            monotonic: now,
        };
        let whole = all || slot.is_none();
        let outcome = looker.look(writer, slot.as_ref(), log_state.as_ref(), whole, &mut self.sealed);
        let problem =
            |file: String, why: &str, damage| Problem { file, why: why.to_owned(), damage, skipped: !damage };
        let file = self.files.shown(writer, 0);
        self.foreign.remove(&writer);
        let mut passed = None;
        let mut cut = None;
        match outcome {
            Ok(Looked::Same) => {}
            Ok(Looked::Moved(now)) => {
                self.moved |= log_state.is_none_or(|log_state| {
                    log_state.tip.record.sequence < now.tip.record.sequence
                        || log_state.tip.uid != now.tip.uid
                });
                self.log_states.insert(writer, *now);
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
        Ok(())
    }

    /// Notes whether a log is shorter than is known of it.
    fn note_loss(&mut self, writer: Id, file: String, cut: Option<String>, now: u64) {
        let seen = self.sequence(writer);
        let owner = self.owner(writer);
        let slot = self.slot(writer).or_else(|| self.boards.slot(writer, owner?));
        let end = owner.and_then(|owner| self.ends.of(writer, owner, self.store.as_ref()));
        let last = end.map_or(u64::MAX, |end| end.sequence);
        let on_board = slot.map_or(0, |slot| slot.sequence).min(last);
        // Of a log that its own writer ended.
        let is_sure = |end: &&LogEnd| matches!(end.why, EndReason::Failed | EndReason::Asked);
        let listed = self.listed.binary_search(&writer).is_ok();
        let at_end = end.filter(is_sure).filter(|_| listed).map_or(0, |end| end.sequence);
        let known = on_board.max(at_end).max(seen);
        let by = if on_board == known { "board slot" } else { "end file" };
        let behind =
            (known > seen).then(|| format!("the log ends with commit {seen}, its {by} knows commit {known}"));
        let unreadable = self.passed.get(&writer).is_some_and(|problem| !problem.damage)
            || planted::is(Planted::ShortLogBelieved);
        match cut.or(behind).zip(owner).filter(|_| !unreadable) {
            Some((why, owner)) => {
                let since = self.losses.get(&writer).map_or(now, |(since, _)| *since);
                self.losses.insert(writer, (since, Loss { log: writer, owner, seen, known, file, why }));
            }
            None => drop(self.losses.remove(&writer)),
        }
    }

    /// Reads a header that seemed damaged once more: another host's first page may show late.
    fn read_header_again(&mut self, writer: Id) -> Result<()> {
        let Some(log_state) =
            self.log_states.get(&writer).filter(|log_state| log_state.tip.header_damage.is_some())
        else {
            return Ok(());
        };
        let path = self.files.layout().log(writer);
        let file = self.env.disk.open_plain(&path, false).map_err(|e| Error::io("open", &path, e));
        let header = match file.and_then(|file| read_header(&*file, &path, log_state.len)) {
            Ok(Some((header, _))) => header,
            Ok(None) => return Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => return Ok(()),
            Err(e) => return Err(e),
        };
        for (sealed, length) in &header.sealed {
            self.sealed.insert(*sealed, (*length, log_state.tip.uid));
        }
        let tip = Tip { header: Arc::new(header), header_damage: None, ..(*log_state.tip).clone() };
        let log_state = log_state.with_tip(tip);
        self.log_states.insert(writer, log_state);
        self.moved = true;
        Ok(())
    }

    /// Logs seen up to a commit that never was confirmed.
    fn beyond_seal(&self) -> Vec<Id> {
        let beyond = |writer: &Id, length: u64, uid: u32| {
            self.log_states
                .get(writer)
                .is_some_and(|log_state| log_state.tip.uid == uid && log_state.tip.ends.end() > length)
        };
        self.sealed.iter().filter(|(w, (length, uid))| beyond(w, *length, *uid)).map(|(w, _)| *w).collect()
    }

    /// Forgets logs that were read beyond their ends: they are read again, up to these.
    fn forget_beyond_ends(&mut self) {
        let (ends, store) = (&self.ends, self.store.as_ref());
        let before = self.log_states.len();
        self.log_states.retain(|_, log_state| !ends.is_beyond(&log_state.tip, store));
        self.moved |= self.log_states.len() < before;
    }

    /// The problems that exist now.
    fn find(&mut self, writers: &[Id], now: u64) -> Findings {
        let mut problems: Vec<Problem> = self.boards.problems().chain(&self.strange).cloned().collect();
        problems.extend(self.passed.values().cloned());
        problems.extend(self.takeovers.problems().iter().cloned());
        let mut foreign = self.boards.foreign().to_vec();
        for (writer, version) in &self.foreign {
            let file = self.files.shown(*writer, 0);
            let why = unknown_version("the log", version).message().to_owned();
            problems.push(Problem { file: file.clone(), why, damage: true, skipped: false });
            foreign.push(format!("{file} of format version {version}"));
        }
        for writer in writers {
            self.note_damage(*writer, &mut problems);
        }
        let lags = match self.lags {
            _ if self.losses.is_empty() && !self.ends.has_failed() => false,
            Some(lags) => lags,
            None => *self.lags.insert(self.env.disk.lags(&self.files.layout().logs())),
        };
        problems.extend(self.ends.problems(now, if lags { LAG } else { 0 }).cloned());
        // J-15: a file that only shows late is not a loss.
        let certain = |since: u64| !lags || now.saturating_sub(since) >= LAG;
        let (losses, late): (Vec<_>, Vec<_>) =
            self.losses.values().cloned().partition(|(since, _)| certain(*since));
        let plain = |losses: Vec<(u64, Loss)>| losses.into_iter().map(|(_, loss)| loss);
        let losses = plain(losses).chain(self.takeovers.losses().iter().cloned()).collect();
        Findings { problems, foreign, losses, late: plain(late).collect(), without_logs: None }
    }

    /// Reports what is damaged in the header of a log that is read nevertheless, and a log that lost commits.
    fn note_damage(&self, writer: Id, problems: &mut Vec<Problem>) {
        let log_state = self.log_states.get(&writer);
        let file = || self.files.shown(writer, 0);
        let mut note = |why: &str, damage| {
            problems.push(Problem { file: file(), why: why.to_owned(), damage, skipped: false })
        };
        if let Some(why) = log_state.and_then(|log_state| log_state.tip.header_damage.as_deref()) {
            // The header is written with the first commit: before its sync has returned, a power cut may
            // keep the commit and not the header.
            note(why, self.slot(writer).is_some() || self.sequence(writer) > 1);
        }
        if let Some((_, loss)) = self.losses.get(&writer) {
            note(&loss.why, true);
        }
    }
}

impl Watch for FolderWatch {
    fn look(&mut self, look: Look) -> Result<bool> {
        let folder = self.files.layout().logs();
        let logs_moved = list_if_changed(&self.env, &folder, &mut self.logs_folder)?;
        if logs_moved {
            self.list();
        }
        if logs_moved || self.takeovers.is_due() {
            self.list_takeovers()?;
        }
        let boards_moved = self.boards.read(&self.env, self.files.layout(), self.listed.len())?;
        let without_logs = self.without_logs();
        let gone_moved = without_logs != self.findings.without_logs;
        let now = self.env.clock.monotonic();
        // J-8: boards are believed for a second only, because a replaced one is silent.
        let all = look == Look::All || self.looked.is_none_or(|then| now.saturating_sub(then) >= TRUST);
        let own_due = self.own.values().any(|slot| self.sequence(slot.writer) < slot.sequence);
        if !(boards_moved || logs_moved || all || own_due || gone_moved || self.moved)
            && self.behind.is_empty()
        {
            return Ok(false);
        }
        if all {
            self.looked = Some(now);
        }
        // A log can be on a board before the folder's listing shows it (network file systems).
        let mut writers: Vec<Id> = self.listed.clone();
        writers.extend(self.boards.slots().map(|(_, slot)| slot.writer));
        writers.extend(self.own.keys());
        writers.extend(self.log_states.keys());
        writers.sort_unstable();
        writers.dedup();
        self.find_store(!writers.is_empty())?;
        if !self.takeovers.counted().is_empty() {
            let mut living = Vec::with_capacity(writers.len());
            for writer in writers {
                if !self.is_replaced(writer)? {
                    living.push(writer);
                }
            }
            writers = living;
        }
        self.moved |= self.ends.look(&*self.env.disk, self.files.layout(), now)?;
        self.forget_beyond_ends();
        for &writer in writers.iter().filter(|writer| self.is_due(**writer, all)).collect::<Vec<_>>() {
            self.look_at(writer, now, all)?;
            self.read_header_again(writer)?;
        }
        // A header read just now may end a log that was looked at before.
        for writer in self.beyond_seal() {
            self.log_states.remove(&writer);
            self.moved = true;
            self.look_at(writer, now, true)?;
        }
        // A log that is missing may have been replaced since the folder was listed.
        if !self.losses.is_empty() && list_if_changed(&self.env, &folder, &mut self.logs_folder)? {
            self.list();
            self.list_takeovers()?;
            writers.retain(|writer| !self.replaced.contains(writer));
        }
        self.behind = writers.iter().filter(|writer| self.is_behind(**writer)).copied().collect();
        let findings = Findings { without_logs, ..self.find(&writers, now) };
        self.moved |= findings != self.findings;
        self.findings = findings;
        Ok(std::mem::take(&mut self.moved))
    }

    /// If the commit before it is known, nothing of the log needs to be read again.
    fn wrote(&mut self, log: Id, ends: &FrameInfo, record: &Arc<CommitRecord>) {
        self.own.insert(log, slot_of(&self.env, log, ends, record));
        if let Some(log_state) =
            self.log_states.get_mut(&log).filter(|log_state| log_state.tip.ends.end() == ends.frame)
        {
            *log_state = log_state.followed_by(Arc::new(log_state.tip.followed_by(record, *ends)));
            self.moved = true;
        }
    }

    fn tips(&self) -> Vec<Arc<Tip>> {
        self.log_states.values().map(|log_state| log_state.tip.clone()).collect()
    }

    fn takeovers(&self) -> Takeovers {
        self.takeovers.counted().clone()
    }

    fn findings(&self) -> Findings {
        self.findings.clone()
    }

    /// Of logs, and of slots of logs that another host's cache does not show whole yet.
    fn max_stamp(&self) -> u64 {
        let now = self.env.clock.now();
        let of_slot = |(owner, slot): (u32, &Slot)| {
            let there = self
                .log_states
                .get(&slot.writer)
                .map(|log_state| log_state.tip.uid)
                .or(self.empty.get(&slot.writer).copied());
            (there == Some(owner) || owner == self.env.identity.uid()).then_some(slot.stamp)
        };
        let logs = self.log_states.values().map(|log_state| log_state.tip.record.stamp);
        let taken = self.takeovers.counted().all().iter().map(|takeover| takeover.header.newest);
        let stamps = logs.chain(self.boards.slots().filter_map(of_slot)).chain(taken);
        stamps.filter(|stamp| is_believed(*stamp, now)).max().unwrap_or(0)
    }

    fn claims(&self) -> Arc<dyn Claims> {
        self.claims.clone()
    }

    fn folder_owner(&self) -> Option<u32> {
        self.store.as_ref().map(|store| store.folder_owner)
    }

    fn owner(&self, log: Id) -> Option<u32> {
        let there =
            self.log_states.get(&log).map(|log_state| log_state.tip.uid).or(self.empty.get(&log).copied());
        let replaced = || self.takeovers.counted().log(log).ok().flatten().map(|(takeover, _)| takeover.user);
        // Of a log that is gone: whose board knows it.
        there.or_else(replaced).or_else(|| {
            let slots = self.boards.slots().filter(|(_, slot)| slot.writer == log);
            slots.max_by_key(|(_, slot)| slot.sequence).map(|(owner, _)| owner)
        })
    }

    fn announced(&self, log: &Tip) -> Option<(u64, bool)> {
        self.boards.slot(log.writer, log.uid).map(|slot| (slot.sequence, slot.closed))
    }

    fn ended(&self, log: &Tip) -> Option<Ended> {
        let names_it = |slot: &&Slot| (slot.sequence, slot.hash) == (log.record.sequence, log.ends.hash);
        let slot = self.boards.slot(log.writer, log.uid).filter(names_it);
        let closed = slot.filter(|slot| slot.closed).map(|_| Ended::Closed);
        closed.or_else(|| self.ends.is_reached(log, self.store.as_ref()).then_some(Ended::EndFile))
    }

    fn ended_empty(&self) -> Vec<(Id, u32)> {
        let has_ended = |(writer, owner): &(Id, u32)| {
            self.ends.of(*writer, *owner, self.store.as_ref()).is_some_and(|end| end.sequence == 0)
        };
        let mut ended: Vec<(Id, u32)> = self.empty.iter().map(|(writer, owner)| (*writer, *owner)).collect();
        ended.retain(has_ended);
        // R65: writers with files and without a log are ended, too. A maker of a takeover that was taken for one may have
        // made it all the same, and then the takeover's data log counts.
        let logless = self.ends.logless().filter(|(writer, _)| {
            let has_log = self.log_states.contains_key(writer) || self.empty.contains_key(writer);
            let name = fieldstone_format::log::file_name(*writer);
            !has_log
                && !self.logs_folder.names.contains(&name)
                && matches!(self.takeovers.counted().log(*writer), Ok(None))
                && !self.takeovers.counted().all().iter().any(|takeover| takeover.header.id == *writer)
        });
        ended.extend(logless);
        ended.sort_unstable();
        ended
    }
}
