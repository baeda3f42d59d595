//! Reading everything and comparing it with its checksums. Damage is collected, never thrown: the rest
//! of the store is looked at whatever is found.
//!
//! Damage is what a visible field, or one of a transaction that is not decided, stands on. A version that newer ones hide,
//! or that was removed, is read too, and named in a note where it is damaged: only older versions of the store need it.

use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Selection;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::Location;
use fieldstone_format::log::FrameInfo;
use fieldstone_format::marker::{self, Marker};
use fieldstone_format::segment::{BlockCursor, SegmentMeta};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_journal::Journal;
use fieldstone_journal::entry_source::{EntryCursor, EntrySource, Place};
use fieldstone_journal::medium::Inspect;
use fieldstone_journal::segment::Segment;
use fieldstone_journal::takeover::Takeover;

use super::headers::ArrayHeaders;
use super::missing::{missing_takeovers, unexplained_data};
use super::status::accepted;
use crate::api::{Damage, PlaceFile, VerifyReport};
use crate::files::Files;
use crate::read::{Match, Matcher, Part, Source, lookup};
use crate::snapshot::{Refresher, Snapshot, SnapshotLog};

/// Verifies what a request selects, hidden versions included; for the empty request also the marker,
/// every commit of every log, every table of every takeover, boards and headers.
///
/// With `since`, an older snapshot, only what its commits did not bring: what it has was verified before.
pub fn verify(
    files: &Arc<Files>,
    (snapshot, since): (&Arc<Snapshot>, Option<&Snapshot>),
    selection: Selection,
    refresher: &Mutex<Refresher>,
    identity: &dyn Identity,
) -> Result<VerifyReport> {
    let (report, compared, in_logs) = (VerifyReport::default(), Vec::new(), Vec::new());
    let headers = ArrayHeaders::default();
    let mut check = Check { files, snapshot, since, passed: 0, report, headers, compared, in_logs };
    let whole = selection.is_unconstrained();
    let mut matcher = Matcher::new(selection);
    for (index, source) in snapshot.sources.iter().enumerate() {
        if check.was_verified(source) {
            continue;
        }
        match source {
            EntrySource::Segment(segment, _) => check.segment(index, segment, &mut matcher)?,
            EntrySource::Takeover(takeover) => check.takeover_entries(index, takeover, &mut matcher)?,
        }
    }
    for problem in &snapshot.problems {
        if problem.damage {
            check.damage(None, problem.file.clone(), &Error::corrupt(problem.why.clone()));
        } else {
            check.report.notes.push(format!("{}: {}", problem.file, problem.why));
        }
    }
    if let Some(gone) = &snapshot.without_logs {
        check.damage(None, "logs".to_owned(), &gone.error());
    }
    if whole {
        check.marker()?;
        let refresher = refresher.lock();
        for log in snapshot.logs.iter().filter(|log| !is_older_log(log, since)) {
            check.log(log, &refresher)?;
        }
        for takeover in snapshot.taken.takeovers().all().iter().filter(|t| !is_older_takeover(t, since)) {
            check.takeover(takeover)?;
        }
        check.strangers(&refresher)?;
    }
    let passed = check.passed;
    let mut report = check.report;
    if since.is_some() {
        let what = if passed == 1 {
            "1 part of a field was".to_owned()
        } else {
            format!("{passed} parts of fields were")
        };
        report.notes.push(format!("{what} passed over: the version that was named has them"));
    }
    report.accepted = accepted(identity, snapshot, files);
    report.damaged.dedup();
    Ok(report)
}

/// Verifies what a request selects and a version does not have: all that later commits brought. NotFound if the version is gone.
pub fn verify_since(journal: &Journal, request: &Request, since: &str) -> Result<VerifyReport> {
    let looks = journal.looks();
    let snapshot = looks.even_without_logs()?;
    let older = looks.older(&snapshot, since)?;
    let now = journal.env().clock.now();
    let selection = journal.schema().make(|schema| schema.select_at(request, now))?;
    let (identity, both) = (&*journal.env().identity, (&snapshot, Some(&older)));
    verify(journal.files(), both, selection, looks.refresher(), identity)
}

/// Whether an error is a line of the report: damage, and a file that this user may not read.
fn is_line(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Denied)
}

/// Whether an older snapshot has all of a log.
fn is_older_log(log: &SnapshotLog, since: Option<&Snapshot>) -> bool {
    let older = since.and_then(|since| since.log(log.writer));
    older.is_some_and(|older| older.record.sequence == log.record.sequence)
}

/// Whether an older snapshot has a takeover.
fn is_older_takeover(takeover: &Takeover, since: Option<&Snapshot>) -> bool {
    let mut known = since.into_iter().flat_map(|since| since.version().takeovers().to_vec());
    known.any(|name| name.owner == takeover.owner() && name.number >= takeover.number())
}

struct Check<'a> {
    files: &'a Arc<Files>,
    snapshot: &'a Arc<Snapshot>,
    /// A snapshot that was verified before.
    since: Option<&'a Snapshot>,
    /// Parts of fields that were passed over for that.
    passed: u64,
    report: VerifyReport,
    headers: ArrayHeaders,
    /// The key whose pieces were compared last: those of one segment follow one another.
    compared: Vec<u8>,
    /// Damaged values that stand in logs: whose log, where, and whether only older versions of the store need them.
    in_logs: Vec<(Id, u64, bool)>,
}

impl<'a> Check<'a> {
    fn inspect(&self) -> &'a dyn Inspect {
        self.files.medium().inspect()
    }

    fn damage(&mut self, key: Option<String>, file: String, error: &Error) {
        self.report.damaged.push(Damage { key, file, why: error.message().to_owned() });
    }

    /// Keeps damage, and logs that this user may not read; passes other errors on: a failing disk is not a verdict on
    /// the store.
    fn note(
        &mut self,
        key: Option<String>,
        file: impl FnOnce() -> String,
        outcome: Result<()>,
    ) -> Result<()> {
        match outcome {
            Err(e) if is_line(&e) => {
                self.damage(key, file(), &e);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Whether a source holds nothing but what was verified before; its parts are counted.
    fn was_verified(&mut self, source: &EntrySource) -> bool {
        match source {
            EntrySource::Takeover(takeover) if is_older_takeover(takeover, self.since) => {
                self.passed += takeover.rows(TakeoverTable::Entries);
                true
            }
            _ => false,
        }
    }

    fn segment(&mut self, index: usize, segment: &Arc<Segment>, matcher: &mut Matcher) -> Result<()> {
        let file = || PlaceFile::Own(segment.writer, segment.reference.file).to_string();
        let meta: Arc<SegmentMeta> = match segment.meta() {
            Ok(meta) => meta.clone(),
            Err(e) => return self.note(None, file, Err(e)),
        };
        self.note(None, file, segment.check_meta())?;
        self.note(None, file, segment.check_filter())?;
        for block in 0..meta.directory.len() {
            let bytes = match segment.block_uncached(block) {
                Ok(bytes) => bytes,
                Err(e) if is_line(&e) && segment.gives_up(block) => {
                    self.report.notes.push(format!("{}: {}; this loss is accepted", file(), e.message()));
                    continue;
                }
                Err(e) => {
                    self.note(None, file, Err(e))?;
                    continue;
                }
            };
            let mut cursor = BlockCursor::new(&bytes);
            let mut place = 0;
            loop {
                match cursor.advance() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(e) => {
                        self.note(None, file, Err(e))?;
                        break;
                    }
                }
                let at = (block as u32, place);
                place += 1;
                if matches!(matcher.test(cursor.key()), Ok(Match::Yes)) {
                    self.entry(index, at, cursor.key(), cursor.value())?;
                }
            }
        }
        Ok(())
    }

    /// The entries of a takeover; its blocks are read from disk again.
    fn takeover_entries(
        &mut self,
        index: usize,
        takeover: &Arc<Takeover>,
        matcher: &mut Matcher,
    ) -> Result<()> {
        if takeover.gives_up(None) {
            return self.other_entries(index, takeover, matcher);
        }
        let mut row = 0u64;
        let walked = takeover.check(TakeoverTable::Entries, |key, value| {
            let at = ((row >> 32) as u32, row as u32);
            row += 1;
            match matches!(matcher.test(key), Ok(Match::Yes)) {
                true => self.entry(index, at, key, value),
                false => Ok(()),
            }
        });
        self.note(None, || takeover.shown.clone(), walked)
    }

    /// The entries of a takeover of which some blocks were given up.
    fn other_entries(&mut self, index: usize, takeover: &Arc<Takeover>, matcher: &mut Matcher) -> Result<()> {
        let source = EntrySource::Takeover(takeover.clone());
        let mut cursor = EntryCursor::tolerant(&source, index);
        while cursor.advance()? {
            if matches!(matcher.test(cursor.key()), Ok(Match::Yes)) {
                self.entry(index, cursor.place(), cursor.key(), cursor.value())?;
            }
        }
        for e in cursor.take_damage() {
            self.note(None, || takeover.shown.clone(), Err(e))?;
        }
        self.report.notes.push(format!("{}: blocks of its index were given up", takeover.shown));
        Ok(())
    }

    /// Header, record and all other tables of a takeover, and the headers of the data logs that it names.
    fn takeover(&mut self, takeover: &Arc<Takeover>) -> Result<()> {
        let file = || takeover.shown.clone();
        self.report.files += 1;
        let copies = self.inspect().check_takeover(takeover);
        self.note(None, file, copies)?;
        for table in TakeoverTable::ALL.into_iter().filter(|table| *table != TakeoverTable::Entries) {
            self.note(None, file, takeover.check(table, |_, _| Ok(())))?;
        }
        let mut data_logs: Vec<(Id, u32, u64)> = Vec::new();
        let own = takeover.record.data_logs.iter();
        data_logs.extend(own.map(|(number, length)| (takeover.header.id, *number, *length)));
        let walked = takeover.each_log(|log| {
            data_logs.extend(log.row.data_logs.iter().map(|(number, length)| (log.writer, *number, *length)));
            Ok(())
        });
        self.note(None, file, walked)?;
        for (writer, number, length) in data_logs {
            if self.snapshot.accepted.concerns(writer, number) {
                continue;
            }
            let outcome = self.inspect().check_data(writer, number, length);
            self.report.files += 1;
            self.note(None, || self.files.shown(writer, number), outcome)?;
        }
        Ok(())
    }

    fn entry(&mut self, source: usize, at: Place, key: &[u8], value: &[u8]) -> Result<()> {
        let name = || Some(fieldstone_format::keys::key_text(key));
        let part = match Part::decode(self.snapshot, source, at, value) {
            Ok(part) => part,
            Err(e) => {
                let file = self.snapshot.sources[source].shown();
                return self.note(name(), || file, Err(e));
            }
        };
        if self.since.is_some_and(|since| since.holds(&part.commit)) {
            self.passed += 1;
            return Ok(());
        }
        if self.snapshot.gives_up(&part.commit, part.holder, &part.entry) {
            return Ok(());
        }
        let file = match &part.entry.location {
            Location::Removed { .. } => return Ok(()),
            Location::Blocks { file, .. } => PlaceFile::Own(part.holder, *file),
            Location::Grown(grown) => {
                self.report.array_files.insert(grown.path.clone());
                PlaceFile::Grown(grown.path.as_str().into())
            }
            Location::External(external) => PlaceFile::Outside(external.url.as_str().into()),
            _ => match &self.snapshot.sources[source] {
                EntrySource::Segment(..) => PlaceFile::Own(part.holder, 0),
                EntrySource::Takeover(takeover) => PlaceFile::Takeover(takeover.place.clone()),
            },
        };
        self.report.fields += 1;
        if part.entry.array.as_ref().is_some_and(|array| array.piece.is_some()) && self.compared != key {
            self.pieces(key)?;
        }
        match Source::new(self.files, &part, key).verify() {
            Ok(bytes) => {
                self.report.bytes += bytes;
                self.header(&part)?;
            }
            // Of a file that is not the store's, whatever keeps it from being read is worth a line.
            Err(e) if !is_line(&e) && !matches!(file, PlaceFile::Outside(_)) => return Err(e),
            Err(e) => {
                let hidden = self.is_hidden(&part, key);
                if let Location::Blocks { file: 0, offset, .. } = &part.entry.location {
                    self.in_logs.push((part.holder, *offset, hidden));
                }
                match hidden {
                    true => self.older(name().unwrap_or_default(), &file, &e),
                    false => self.damage(name(), file.to_string(), &e),
                }
            }
        }
        Ok(())
    }

    /// The header of a file of arrays, by an array in it that is as it was.
    fn header(&mut self, part: &Part) -> Result<()> {
        let (Location::Grown(grown), Some(array)) = (&part.entry.location, &part.entry.array) else {
            return Ok(());
        };
        let files = self.files.clone();
        let Some(folder) = files.medium().files() else { return Ok(()) };
        let described = self.headers.check(folder, grown, array);
        self.note(None, || grown.path.clone(), described)
    }

    /// Damage that no visible field has.
    fn older(&mut self, name: String, file: &PlaceFile, error: &Error) {
        let note = format!("{file}: an older version of {name}: {}", error.message());
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    /// Whether what does not match in a frame of a log is explained by values that only older versions of the store need.
    fn is_older(damaged: &[(Id, u64, bool)], log: &SnapshotLog, ends: &FrameInfo, error: &Error) -> bool {
        let within = ends.frame..ends.end();
        let mut here = damaged.iter().filter(|(writer, at, _)| *writer == log.writer && within.contains(at));
        // Record, side records and segments have checksums of their own.
        error.code() == Code::Checksum && here.next().is_some_and(|one| one.2) && here.all(|one| one.2)
    }

    /// Names pieces that no reader can put together: their bytes are sound, and whoever wrote them is to know.
    fn pieces(&mut self, key: &[u8]) -> Result<()> {
        self.compared = key.to_vec();
        // Unreadable parts of the index are named separately.
        match lookup(self.snapshot, key, None).and_then(|found| found.map_or(Ok(()), |v| v.array().map(drop)))
        {
            Err(e) if e.kind() == ErrorKind::Conflict => {
                let note = e.message().to_owned();
                if !self.report.notes.contains(&note) {
                    self.report.notes.push(note);
                }
                Ok(())
            }
            Err(e) if is_line(&e) => Ok(()),
            outcome => outcome,
        }
    }

    /// Whether newer versions hide an entry, or it was removed or aborted.
    fn is_hidden(&self, part: &Part, key: &[u8]) -> bool {
        if let Some(id) = part.commit.transaction
            && self.snapshot.order(&part.commit, None).is_none()
        {
            return self.snapshot.has_ended(id, part.commit.user);
        }
        let found = lookup(self.snapshot, key, None);
        found.is_ok_and(|found| found.is_none_or(|v| !v.live().iter().any(|live| live.id() == part.id())))
    }

    fn marker(&mut self) -> Result<()> {
        let marker = self.files.medium().marker()?;
        let damaged = match marker.map(|bytes| Marker::decode(&bytes)) {
            Some(Ok(_)) => None,
            Some(Err(e)) => Some(e),
            None if !self.snapshot.has_commits() => None,
            None => Some(Error::corrupt("the file is missing; the logs still give id and schema")),
        };
        self.report.files += 1;
        if let Some(e) = damaged {
            self.damage(None, marker::FILE_NAME.to_owned(), &e);
        }
        Ok(())
    }

    /// Header, every frame, and the headers of the data logs.
    fn log(&mut self, log: &SnapshotLog, refresher: &Refresher) -> Result<()> {
        let name = self.files.shown(log.writer, 0);
        self.report.files += 1;
        let mut failures = Vec::new();
        let confirmed = refresher.announced(log).map_or(0, |(sequence, _)| sequence);
        let in_logs = std::mem::take(&mut self.in_logs);
        let walked = self.inspect().check(log, &mut |ends, outcome| {
            let Err(e) = outcome else { return };
            let e = e.context(format!("commit {}", ends.sequence));
            if ends.sequence == log.record.sequence && ends.sequence > confirmed {
                // Before its sync has returned, a power cut may tear what stands in a frame twice.
                self.report.notes.push(format!("{name}: {}; nothing in it is lost", e.message()));
            } else if self.snapshot.accepted.concerns_commit(log.writer, ends.sequence)
                || self.snapshot.accepted.has_block_within(log.writer, &(ends.frame..ends.end()))
            {
                self.report.notes.push(format!("{name}: {}; this loss is accepted", e.message()));
            } else if !Check::is_older(&in_logs, log, &ends, &e) {
                failures.push(e);
            }
        });
        self.in_logs = in_logs;
        for e in failures.into_iter().chain(walked.err()) {
            self.note(None, || name.clone(), Err(e))?;
        }
        // A header found damaged before is among the snapshot's problems.
        if log.header_damage.is_none() {
            let header = self.inspect().check_header(log);
            self.note(None, || name.clone(), header)?;
        }
        // A log that is gone since has a problem of its own.
        let tail = self.inspect().tail(log).unwrap_or(0);
        if tail > 0 {
            self.report.notes.push(format!(
                "{name}: {tail} bytes behind the last commit belong to no commit (being written, or torn)"
            ));
        }
        let accepted = &self.snapshot.accepted;
        for &(number, length) in
            log.record.data_logs.iter().filter(|(n, _)| !accepted.concerns(log.writer, *n))
        {
            let name = self.files.shown(log.writer, number);
            let outcome = self.inspect().check_data(log.writer, number, length);
            self.report.files += 1;
            self.note(None, || name, outcome)?;
        }
        Ok(())
    }

    /// Takeovers that are missing, logs that hold no commit, data logs that nothing explains, and files that are not of a store.
    fn strangers(&mut self, refresher: &Refresher) -> Result<()> {
        for (file, (why, is_replaced)) in missing_takeovers(self.snapshot) {
            match is_replaced {
                true => self.report.notes.push(format!("{file}: {why}")),
                false => self.damage(None, file, &Code::DataGone.error(why)),
            }
        }
        for (name, log) in self.inspect().logs()? {
            match log.map(|id| self.snapshot.head(id) > 0 || self.snapshot.is_replaced(id)) {
                // One that a takeover replaces goes after a while.
                Some(true) => {}
                Some(false) => self.report.notes.push(format!("{name}: holds no whole commit")),
                None => self.report.notes.push(format!("{name}: is not a file of the store")),
            }
        }
        let Some(files) = self.files.medium().files() else { return Ok(()) };
        match unexplained_data(files, self.snapshot, refresher) {
            Ok(unexplained) => self.report.notes.extend(unexplained.into_iter().map(|file| {
                format!(
                    "{file}: no log and no takeover names it: its writer has not committed yet, or what named it is missing"
                )
            })),
            // Damage has a line of its own.
            Err(e) if is_line(&e) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}
