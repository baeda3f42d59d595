//! Keeping up with the logs: reading boards, finding logs, following them from commit to commit.
//!
//! Opening reads the folder of logs and the end of each log. A refresh reads one board file per host
//! and then only the logs whose slots moved. Boards are hints: a log without a slot is looked at each
//! time, and the folders are listed again whenever they change.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::env::{Env, FileKind, read_exact_at};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::board::{SLOT, Slot};
use fieldstone_format::log::{self, CommitRecord, Ends, FOOT, HEAD, HEADER_PREFIX, LogHeader};

use super::{LogView, Problem, Snapshot};
use crate::files::{Files, read_vec};
use crate::run::{BlockCache, Run};

/// A folder that changed less than this long ago, nanoseconds, may change again without a new time.
const FRESH: u64 = 2_000_000_000;
/// How long a host may be shown the old names of a folder whose new time it sees already.
const STALE: u64 = 60_000_000_000;
/// How often a folder is listed again in the meantime.
const AGAIN: u64 = 1_000_000_000;
/// Bytes read from the end of a log: enough for foot and record of all but a few commits.
const TAIL: u64 = 4096;
/// Longest board that is believed.
const BOARD_MAX: u64 = 64 << 20;

/// When a folder was last listed, and what it was then.
#[derive(Debug, Default)]
struct Listing {
    mtime: i64,
    /// When that time was first seen, and when the names were last read; never 0 once they were.
    seen_at: u64,
    listed_at: u64,
    settled: bool,
    names: Vec<String>,
}

/// What the last refresh read, to see at a glance that nothing moved.
#[derive(Debug, Default)]
struct Seen {
    boards: Vec<Vec<u8>>,
    /// Slots that do not decode.
    torn_slots: Vec<Problem>,
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
        for &writer in &writers {
            moved |= self.look_safely(writer, &mut problems)?;
        }
        // A header read just now may end a log that was looked at before.
        for writer in self.beyond_seal() {
            self.views.remove(&writer);
            self.look_safely(writer, &mut problems)?;
            moved = true;
        }
        let behind = |w: &&Id| {
            let seen = self.views.get(*w).map_or(0, |view| view.record.sequence);
            self.slots.get(*w).is_none_or(|slot| seen < slot.sequence)
        };
        self.seen.unsettled = writers.iter().filter(behind).copied().collect();
        for writer in writers {
            self.note_damage(writer, &mut problems);
        }
        if moved || problems != self.current.problems {
            self.current = Arc::new(Snapshot::new(self.views.values().cloned().collect(), problems)?);
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
                    Err(e) => self.seen.torn_slots.push(Problem {
                        file: format!("boards/{name}"),
                        why: format!(
                            "slot {i} is torn or damaged, its log is read without it: {}",
                            e.message()
                        ),
                        damage: false,
                    }),
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

/// Walks the frames of a log.
struct Walker<'a> {
    file: &'a dyn fieldstone_core::env::DiskFile,
    path: &'a std::path::Path,
    /// Where the log ends for us.
    end: u64,
}

impl Walker<'_> {
    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        if offset.checked_add(length).is_none_or(|end| end > self.end) {
            return Err(Error::corrupt(format!("{} is cut", self.path.display())));
        }
        read_vec(self.file, self.path, offset, length)
    }

    fn named(&self, at: u64, error: Error) -> Error {
        error.context(format!("frame at {at} of {}", self.path.display()))
    }

    fn head(&self, at: u64) -> Result<Ends> {
        let bytes = self.read(at, HEAD as u64)?;
        let ends = Ends::decode_head(&bytes, at).map_err(|e| self.named(at, e))?;
        if ends.end() > self.end {
            return Err(self.named(at, Error::corrupt("the frame is cut")));
        }
        Ok(ends)
    }

    /// The record of a frame, from whichever copy is whole.
    fn record(&self, ends: &Ends) -> Result<CommitRecord> {
        let [last, first] = ends.record_offsets();
        self.record_copy(ends, last).or_else(|e| self.record_copy(ends, first).map_err(|_| e))
    }

    fn record_copy(&self, ends: &Ends, offset: u64) -> Result<CommitRecord> {
        let bytes = self.read(offset, u64::from(ends.record_len))?;
        ends.record(&bytes).map_err(|e| self.named(ends.frame, e))
    }

    /// Head and foot of the frame at an offset: either will do.
    fn ends(&self, at: u64, end: Option<u64>) -> Result<Ends> {
        self.head(at).or_else(|e| {
            let end = end.ok_or_else(|| e.replicate())?;
            let foot = self.read(end - FOOT as u64, FOOT as u64)?;
            Ends::decode_foot(&foot, end).ok().filter(|ends| ends.frame == at).ok_or(e)
        })
    }

    fn frame(&self, at: u64) -> Result<(Ends, CommitRecord)> {
        let ends = self.head(at)?;
        let record = self.record(&ends)?;
        Ok((ends, record))
    }

    /// The frame at `target`, found by going back from commit to commit from the one at `from`, whose
    /// record is given: then a frame's foot is found too, where its head is damaged.
    fn back_to(&self, target: u64, from: u64, record: &CommitRecord) -> Result<(Ends, CommitRecord)> {
        let (mut next, mut previous) = (from, record.previous);
        loop {
            if previous < target || previous >= next {
                return Err(self.named(next, Error::corrupt("the chain of commits does not lead back")));
            }
            let ends = self.ends(previous, Some(next))?;
            let record = self.record(&ends)?;
            if previous == target {
                return Ok((ends, record));
            }
            (next, previous) = (previous, record.previous);
        }
    }

    /// Compares every part of a frame with its checksum.
    fn check_frame(&self, ends: &Ends) -> Result<CommitRecord> {
        let head = self.head(ends.frame)?;
        let foot = self.read(ends.end() - FOOT as u64, FOOT as u64)?;
        let foot = Ends::decode_foot(&foot, ends.end()).map_err(|e| self.named(ends.frame, e))?;
        if head != foot {
            return Err(self.named(ends.frame, Error::corrupt("head and foot of the frame differ")));
        }
        let [last, first] = ends.record_offsets();
        let record = self.record_copy(ends, last)?;
        self.record_copy(ends, first)?;
        self.check_body(ends)?;
        Ok(record)
    }

    fn check_body(&self, ends: &Ends) -> Result<()> {
        let (mut at, mut left) = ends.body();
        let mut sum = 0;
        let mut buffer = vec![0; left.min(1 << 20) as usize];
        while left > 0 {
            let n = left.min(buffer.len() as u64) as usize;
            read_exact_at(self.file, &mut buffer[..n], at).map_err(|e| Error::io("read", self.path, e))?;
            sum = fieldstone_format::crc_append(sum, &buffer[..n]);
            at += n as u64;
            left -= n as u64;
        }
        if sum == ends.body_crc {
            return Ok(());
        }
        Err(self.named(ends.frame, Error::corrupt("the commit does not match its checksum")))
    }

    /// The last whole commit at or behind `start`, where a frame begins (or the log ends).
    ///
    /// A commit is whole if its body matches its checksum. That is not read again where the board
    /// vouches for the commit (its slot is written after the sync), nor for commits that another one
    /// follows (it was begun after their sync returned).
    fn last_commit(&self, start: u64, slot: Option<&Slot>) -> Result<Option<(Ends, CommitRecord)>> {
        let vouched = |ends: &Ends| {
            slot.is_some_and(|s| s.sequence > ends.sequence || s.frame == ends.frame && s.hash == ends.hash)
        };
        if let Some((ends, record)) = self.tail(start)?
            && (vouched(&ends) || self.check_body(&ends).is_ok())
        {
            return Ok(Some((ends, record)));
        }
        // No foot at the end: a torn tail, or a frame being written. Step forward from what is sure.
        let mut at = start;
        let mut whole: Vec<(Ends, CommitRecord)> = Vec::new();
        if let Some(slot) = slot
            && slot.frame >= start
            && let Ok((ends, record)) = self.frame(slot.frame)
            && ends.hash == slot.hash
        {
            at = ends.end();
            whole.push((ends, record));
        }
        while at < self.end {
            let Ok((ends, record)) = self.frame(at) else { break };
            at = ends.end();
            whole.push((ends, record));
        }
        while let Some((ends, record)) = whole.pop() {
            if vouched(&ends) || self.check_body(&ends).is_ok() {
                return Ok(Some((ends, record)));
            }
        }
        Ok(None)
    }

    /// The commit whose foot ends the log, if one does.
    fn tail(&self, start: u64) -> Result<Option<(Ends, CommitRecord)>> {
        if self.end < start.saturating_add((HEAD + FOOT) as u64) {
            return Ok(None);
        }
        let length = TAIL.min(self.end - start);
        let bytes = self.read(self.end - length, length)?;
        let Ok(ends) = Ends::decode_foot(&bytes[bytes.len() - FOOT..], self.end) else { return Ok(None) };
        if ends.frame < start {
            return Ok(None);
        }
        let before_foot = bytes.len() - FOOT;
        let near = before_foot.checked_sub(ends.record_len as usize).map(|from| &bytes[from..before_foot]);
        let record = match near.map(|bytes| ends.record(bytes)) {
            Some(Ok(record)) => Ok(record),
            _ => self.record(&ends),
        };
        Ok(record.ok().map(|record| (ends, record)))
    }

    /// All decisions up to a commit, oldest first, given those known up to an earlier one; and what
    /// stopped the walk, if it did not reach its end.
    fn decisions(
        &self,
        ends: &Ends,
        record: &CommitRecord,
        known: Option<&LogView>,
    ) -> (Vec<(log::Decision, u64)>, Option<Error>) {
        let mut decisions = Vec::new();
        let mut broken = None;
        let sure = known.map_or(0, |known| known.ends.end());
        let mut at = ends.frame;
        let mut record = std::borrow::Cow::Borrowed(record);
        loop {
            if let Some(decision) = &record.decision {
                decisions.push((decision.clone(), record.stamp));
            }
            let before = record.previous_decision;
            if before == 0 || before < sure {
                break;
            }
            let found = match before < at {
                true => self.frame(before).or_else(|_| self.back_to(before, at, &record)),
                false => Err(Error::corrupt("the chain of decisions does not lead back")),
            };
            match found {
                Ok((_, earlier)) => (at, record) = (before, std::borrow::Cow::Owned(earlier)),
                Err(e) => {
                    broken = Some(e);
                    break;
                }
            }
        }
        decisions.extend(known.into_iter().flat_map(|known| known.decisions.iter().rev().cloned()));
        decisions.reverse();
        (decisions, broken)
    }
}

/// The header of a log; `None` where it is not all there yet.
fn read_header(
    file: &dyn fieldstone_core::env::DiskFile,
    path: &std::path::Path,
    len: u64,
) -> Result<Option<(LogHeader, u64)>> {
    if len < HEADER_PREFIX as u64 {
        return Ok(None);
    }
    let named = |e: Error| e.context(path.display());
    let prefix = read_vec(file, path, 0, HEADER_PREFIX as u64)?;
    if prefix.iter().all(|&b| b == 0) {
        return Ok(None);
    }
    let length = u64::from(LogHeader::length(&prefix).map_err(named)?);
    if length > len {
        return Ok(None);
    }
    let bytes = read_vec(file, path, 0, length)?;
    Ok(Some((LogHeader::decode(&bytes).map_err(named)?, length)))
}

/// Lists a folder again if it changed, or may have changed within the grain of its clock; whether
/// its names did change.
fn list_if_changed(env: &Env, folder: &std::path::Path, listing: &mut Listing) -> Result<bool> {
    let stat = match env.disk.stat(folder) {
        Ok(stat) => stat,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let had_names = !listing.names.is_empty();
            *listing = Listing::default();
            return Ok(had_names);
        }
        Err(e) => return Err(Error::io("look at", folder, e)),
    };
    let now = env.clock.monotonic();
    if stat.mtime != listing.mtime || listing.seen_at == 0 {
        (listing.mtime, listing.seen_at, listing.settled) = (stat.mtime, now.max(1), false);
    }
    if listing.settled {
        return Ok(false);
    }
    let age = now.saturating_sub(listing.seen_at);
    if age > FRESH && now.saturating_sub(listing.listed_at) < AGAIN {
        return Ok(false);
    }
    (listing.listed_at, listing.settled) = (now, age > STALE);
    let mut names: Vec<String> = match env.disk.list_dir(folder) {
        Ok(names) => names.into_iter().filter(|(_, kind)| *kind == FileKind::File).map(|(n, _)| n).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(Error::io("list", folder, e)),
    };
    names.sort_unstable();
    let moved = names != listing.names;
    listing.names = names;
    Ok(moved)
}
