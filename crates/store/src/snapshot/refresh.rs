//! Keeping up with the logs: reading boards, finding logs, following them from commit to commit.
//!
//! Opening reads the folder of logs and the end of each log. A refresh reads one board file per host
//! and then only the logs whose slots moved. Boards are hints: a log without a slot is looked at each
//! time, and the folders are listed again whenever they change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::board::{SLOT, Slot};
use fieldstone_format::log::{self, CommitRecord, Ends, HEADER_PREFIX, LogHeader};
use fieldstone_format::{Id, unknown_version};

use super::folder::{Listing, list_if_changed};
use super::walker::{Walker, foreign_version, read_header};
use super::{LogView, Problem, Snapshot};
use crate::files::Files;
use crate::run::{BlockCache, Run};

/// Longest board that is believed.
const BOARD_MAX: u64 = 64 << 20;

/// What the last refresh read, to see at a glance that nothing moved.
#[derive(Debug, Default)]
struct Seen {
    boards: Vec<Vec<u8>>,
    /// Slots that do not decode.
    torn_slots: Vec<Problem>,
    /// Slots of a version that we do not know.
    foreign_slots: Vec<String>,
    logs: Vec<Id>,
    /// Logs without a slot, or that do not show yet what their slot says: looked at each time.
    unsettled: Vec<Id>,
}

/// The state between refreshes.
#[derive(Debug)]
pub struct Refresher {
    env: Env,
    files: Arc<Files>,
    cache: Arc<BlockCache>,
    logs_folder: Listing,
    boards_folder: Listing,
    seen: Seen,
    slots: HashMap<Id, Slot>,
    views: HashMap<Id, Arc<LogView>>,
    /// Ends of logs whose last write failed, by the word of the writer's next log, and the user who
    /// owns that: no one ends another user's log.
    sealed: HashMap<Id, (u64, u32)>,
    /// Logs of a version that we do not know.
    foreign: BTreeMap<Id, u32>,
    current: Arc<Snapshot>,
}

impl Refresher {
    pub fn new(env: Env, files: Arc<Files>, cache: Arc<BlockCache>) -> Refresher {
        Refresher {
            env,
            files,
            cache,
            logs_folder: Listing::default(),
            boards_folder: Listing::default(),
            seen: Seen::default(),
            slots: HashMap::new(),
            views: HashMap::new(),
            sealed: HashMap::new(),
            foreign: BTreeMap::new(),
            current: Arc::new(Snapshot::empty()),
        }
    }

    /// Looks at what moved and returns the newest snapshot.
    pub fn refresh(&mut self) -> Result<Arc<Snapshot>> {
        let boards_moved = self.read_boards()?;
        let logs = self.files.layout().logs();
        let logs_moved = list_if_changed(&self.env, &logs, &mut self.logs_folder)?;
        if logs_moved {
            let names = &self.logs_folder.names;
            self.seen.logs = names.iter().filter_map(|name| log::parse_file_name(name)).collect();
        }
        if !boards_moved && !logs_moved && self.seen.unsettled.is_empty() {
            return Ok(self.current.clone());
        }
        // A log can be on a board before the folder's listing shows it (network file systems).
        let mut writers = self.seen.logs.clone();
        writers.extend(self.slots.keys());
        writers.sort_unstable();
        writers.dedup();
        let mut moved = false;
        let mut problems = self.seen.torn_slots.clone();
        self.foreign.clear();
        for &writer in &writers {
            moved |= self.look_safely(writer, &mut problems)?;
            moved |= self.read_header_again(writer)?;
        }
        // A header read just now may end a log that was looked at before.
        for writer in self.beyond_seal() {
            self.views.remove(&writer);
            self.look_safely(writer, &mut problems)?;
            moved = true;
        }
        let behind = |w: &&Id| {
            let view = self.views.get(*w);
            let seen = view.map_or(0, |view| view.record.sequence);
            self.slots.get(*w).is_none_or(|slot| seen < slot.sequence)
                || view.is_some_and(|view| view.header_damage.is_some())
        };
        self.seen.unsettled = writers.iter().filter(behind).copied().collect();
        for writer in writers {
            self.note_damage(writer, &mut problems);
        }
        let mut foreign = self.seen.foreign_slots.clone();
        for (writer, version) in &self.foreign {
            let file = self.files.layout().shown(*writer, 0);
            problems.push(self.problem(*writer, unknown_version("the log", version).message()));
            foreign.push(format!("{file} of format version {version}"));
        }
        if moved || problems != self.current.problems || foreign != self.current.foreign {
            let views = self.views.values().cloned().collect();
            self.current =
                Arc::new(Snapshot { foreign, ..Snapshot::new(views, problems, Some(&self.current))? });
        }
        Ok(self.current.clone())
    }

    /// Looks at a log; damage is noted, and what another process removed is passed over.
    fn look_safely(&mut self, writer: Id, problems: &mut Vec<Problem>) -> Result<bool> {
        match self.look(writer) {
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                problems.push(self.problem(writer, e.message()));
                Ok(false)
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            outcome => outcome,
        }
    }

    /// Reads a header that seemed damaged once more: another host's first page may show late. Whether
    /// it is sound now.
    fn read_header_again(&mut self, writer: Id) -> Result<bool> {
        let Some(view) = self.views.get(&writer).filter(|view| view.header_damage.is_some()) else {
            return Ok(false);
        };
        let path = self.files.layout().log(writer);
        let file = self.env.disk.open_read(&path).map_err(|e| Error::io("open", &path, e));
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

    fn problem(&self, writer: Id, why: &str) -> Problem {
        Problem { file: self.files.layout().shown(writer, 0), why: why.to_owned(), damage: true }
    }

    /// Reports what is damaged in a log that is read nevertheless, and a log that ends before its slot
    /// says.
    fn note_damage(&self, writer: Id, problems: &mut Vec<Problem>) {
        let (slot, view) = (self.slots.get(&writer), self.views.get(&writer));
        let seen = view.map_or(0, |view| view.record.sequence);
        if let Some(why) = view.and_then(|view| view.header_damage.as_deref()) {
            // The header is written with the first commit: before its sync has returned, a power cut may
            // keep the commit and not the header.
            let damage = slot.is_some() || seen > 1;
            problems.push(Problem { damage, ..self.problem(writer, why) });
        }
        if let Some(why) = view.and_then(|view| view.decisions_damage.as_deref()) {
            problems.push(self.problem(writer, why));
        }
        let Some(slot) = slot else { return };
        if seen < slot.sequence {
            problems.push(self.problem(
                writer,
                &format!("the log ends with commit {seen}, its board slot knows commit {}", slot.sequence),
            ));
        }
    }

    /// Reads all boards; whether anything in them changed.
    fn read_boards(&mut self) -> Result<bool> {
        let folder = self.files.layout().boards();
        list_if_changed(&self.env, &folder, &mut self.boards_folder)?;
        let mut boards = Vec::new();
        for name in self.boards_folder.names.iter().filter(|name| name.ends_with(".board")) {
            let path = folder.join(name);
            let bytes = match self.env.disk.open_read(&path).and_then(|file| {
                let mut bytes = vec![0; file.stat()?.len.min(BOARD_MAX) as usize];
                let mut filled = 0;
                while filled < bytes.len() {
                    match file.read_at(&mut bytes[filled..], filled as u64)? {
                        0 => break,
                        n => filled += n,
                    }
                }
                bytes.truncate(filled);
                Ok(bytes)
            }) {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io("read", &path, e)),
            };
            boards.push((name.clone(), bytes));
        }
        let moved = !boards.iter().map(|(_, bytes)| bytes).eq(&self.seen.boards);
        if !moved {
            return Ok(false);
        }
        self.seen.torn_slots.clear();
        self.seen.foreign_slots.clear();
        // A slot that is gone or torn vouches for nothing any more: its log is looked at each time.
        let known = std::mem::take(&mut self.slots);
        for (name, bytes) in &boards {
            for (i, slot) in bytes.chunks(SLOT).enumerate() {
                match Slot::decode(slot) {
                    // A slot only ever grows: an older reading (another host's cache) is not news.
                    Ok(slot) => {
                        let seen = self.slots.get(&slot.writer).or(known.get(&slot.writer)).copied();
                        let newest = seen.filter(|seen| seen.sequence > slot.sequence).unwrap_or(slot);
                        self.slots.insert(slot.writer, newest);
                    }
                    // A slot of zeros is one being claimed.
                    Err(_) if slot.iter().all(|&b| b == 0) => {}
                    // Nothing depends on it, and a writer that dies in its last write leaves the same.
                    Err(e) => {
                        if let Some(version) = Slot::foreign(slot) {
                            let what = format!("slot {i} of boards/{name} of format version {version}");
                            self.seen.foreign_slots.push(what);
                        }
                        let why =
                            format!("slot {i} is not read, its log is read without it: {}", e.message());
                        let file = format!("boards/{name}");
                        self.seen.torn_slots.push(Problem { file, why, damage: false });
                    }
                }
            }
        }
        self.seen.boards = boards.into_iter().map(|(_, bytes)| bytes).collect();
        Ok(true)
    }

    /// Brings the view of one log up to date; whether it moved.
    fn look(&mut self, writer: Id) -> Result<bool> {
        let slot = self.slots.get(&writer).copied();
        let known = self.views.get(&writer).cloned();
        if let (Some(slot), Some(known)) = (&slot, &known)
            && slot.sequence <= known.record.sequence
        {
            return Ok(false);
        }
        let path = self.files.layout().log(writer);
        let stat = self.env.disk.stat(&path).map_err(|e| Error::io("look at", &path, e))?;
        let known_len = known.as_ref().map_or(0, |known| known.file_len);
        if slot.is_none() && known.is_some() && stat.len == known_len {
            return Ok(false);
        }
        let file = self.env.disk.open_read(&path).map_err(|e| Error::io("open", &path, e))?;
        let (header, header_len, header_damage) = match &known {
            Some(known) => (known.header.clone(), known.header_len, known.header_damage.clone()),
            None => {
                let why = match read_header(&*file, &path, stat.len) {
                    Ok(Some((header, len))) => Ok((header, len)),
                    // Being written; or its length is damaged, which shows if there is a commit.
                    Ok(None) => Err("the length in its header is damaged".to_owned()),
                    Err(e) if e.kind() == ErrorKind::Corrupt => Err(e.message().to_owned()),
                    Err(e) => return Err(e),
                };
                match why {
                    Ok((header, len)) => (Arc::new(header), len, None),
                    // The commits do not depend on it: the last one is found from the end.
                    Err(why) => (Arc::new(LogHeader::unknown(writer)), HEADER_PREFIX as u64, Some(why)),
                }
            }
        };
        for (sealed, length) in &header.sealed {
            self.sealed.insert(*sealed, (*length, stat.uid));
        }
        let end = match self.sealed.get(&writer) {
            Some((length, uid)) if *uid == stat.uid => stat.len.min(*length),
            _ => stat.len,
        };
        let start = known.as_ref().map_or(header_len, |known| known.ends.end());
        let walker = Walker { file: &*file, path: &path, end };
        let Some((ends, record)) = walker.last_commit(start, slot.as_ref())? else {
            // Without a commit of our version, what says another one is no damaged header of ours.
            if header_damage.is_some()
                && let Some(version) = foreign_version(&*file, &path, stat.len)?
            {
                self.foreign.insert(writer, version);
            }
            return Ok(false);
        };
        if let Some(known) = &known {
            if record.sequence <= known.record.sequence {
                return Ok(false);
            }
            LogView::check_follows(&known.record, &record)?;
        }
        let (decisions, broken) = walker.decisions(&ends, &record, known.as_deref());
        let decisions_damage = match broken {
            Some(e) => Some(e.message().to_owned()),
            None => known.as_ref().and_then(|known| known.decisions_damage.clone()),
        };
        let runs = self.runs(writer, &record, known.as_deref());
        let view = LogView {
            writer,
            uid: stat.uid,
            header,
            header_len,
            header_damage,
            record,
            ends,
            runs,
            decisions,
            decisions_damage,
            mtime: stat.mtime,
            file_len: stat.len,
        };
        self.views.insert(writer, Arc::new(view));
        Ok(true)
    }

    fn runs(&self, writer: Id, record: &CommitRecord, known: Option<&LogView>) -> Vec<Arc<Run>> {
        let seen = |reference| known?.runs.iter().find(|run| run.reference == reference).cloned();
        record
            .runs
            .iter()
            .map(|&reference| {
                seen(reference).unwrap_or_else(|| {
                    Arc::new(Run::new(writer, reference, self.files.clone(), self.cache.clone()))
                })
            })
            .collect()
    }

    /// `log` cut back to its commit `sequence`.
    pub fn log_at(&self, log: &Arc<LogView>, sequence: u64) -> Result<Arc<LogView>> {
        // Commits are found by going back from one to the one before.
        if log.record.sequence == sequence {
            return Ok(log.clone());
        }
        let path = self.files.layout().log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        let walker = Walker { file: &*file, path: &path, end: log.ends.end() };
        let (mut ends, mut record) = (log.ends, log.record.clone());
        while record.sequence > sequence {
            if record.previous == 0 || record.previous >= ends.frame {
                return Err(super::gone(log.writer));
            }
            (ends, record) = walker.back_to(record.previous, ends.frame, &record)?;
        }
        let (decisions, broken) = walker.decisions(&ends, &record, None);
        if let Some(e) = broken {
            return Err(e);
        }
        let runs = self.runs(log.writer, &record, Some(log));
        Ok(Arc::new(LogView { ends, record, decisions, runs, ..(**log).clone() }))
    }

    /// Every commit of a log, oldest first, with the outcome of checking all of its frame.
    pub fn commits(&self, log: &LogView, mut each: impl FnMut(Ends, Result<CommitRecord>)) -> Result<()> {
        let path = self.files.layout().log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        let walker = Walker { file: &*file, path: &path, end: log.ends.end() };
        let mut frames = vec![log.ends];
        let mut previous = log.record.previous;
        let mut broken = None;
        while previous != 0 {
            let next = frames[frames.len() - 1].frame;
            let found = walker.ends(previous, Some(next)).and_then(|ends| Ok((ends, walker.record(&ends)?)));
            match found {
                Ok((ends, record)) if ends.end() == next => {
                    frames.push(ends);
                    previous = record.previous;
                }
                Ok(_) => {
                    broken = Some(walker.named(previous, Error::corrupt("the frame does not reach the next")))
                }
                Err(e) => broken = Some(e),
            }
            if broken.is_some() {
                break;
            }
        }
        for ends in frames.iter().rev() {
            each(*ends, walker.check_frame(ends));
        }
        broken.map_or(Ok(()), Err)
    }

    /// Reads a log's header again.
    pub fn check_header(&self, log: &LogView) -> Result<()> {
        let path = self.files.layout().log(log.writer);
        let file = self.files.get(log.writer, 0)?;
        match read_header(&*file, &path, log.file_len)? {
            Some((header, _)) if header.writer == log.writer => Ok(()),
            Some(_) => Err(Error::corrupt(format!("{} carries another log's name", path.display()))),
            None => Err(Error::corrupt(format!("the header of {} is cut", path.display()))),
        }
    }

    /// The slots of all boards.
    pub fn slots(&self) -> &HashMap<Id, Slot> {
        &self.slots
    }
}
