//! Compaction: which logs a request means, and the journal's report as the API has it.
//!
//! Invariant: a log that may hold a selected entry is meant, also if it cannot be read: it is then left, and named.

use std::collections::HashSet;

use fieldstone_core::schema::Selection;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::{Id, log};
use fieldstone_journal::compact::CompactOptions;
use fieldstone_journal::entry_source::{EntryCursor, EntrySource};

use crate::api::{CompactProgress, CompactReport, Compaction, LeftLog};
use crate::local::LocalStore;
use crate::read::{Match, Matcher};
use crate::snapshot::Snapshot;

/// Entries between two reports of progress.
const ENTRIES: u64 = 1024;

impl LocalStore {
    /// Takes over ended logs of this user, and removes files that earlier takeovers replaced a grace ago; see the facade's
    /// `Store::compact`. `each` hears how far it is, and may end it by an error.
    pub fn compact(
        &self,
        what: &Compaction,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport> {
        let journal = self.journal();
        // Before anything is read, and in the words of that call, where it would refuse.
        journal.access().check_writable()?;
        let options = CompactOptions {
            only: self.meant(what)?,
            max_bytes: what.max_bytes,
            rate: what.rate,
            grace: what.grace,
            ..CompactOptions::default()
        };
        let report = journal.maintenance().compact(&options, &what.session, &mut now_and_then(each))?;
        let snapshot = journal.looks().snapshot()?;
        let left = report.left.into_iter().map(|left| left_log(&snapshot, left));
        Ok(CompactReport {
            logs: report.logs,
            segments: report.segments,
            files: report.files,
            nbytes: report.nbytes,
            waiting: report.waiting,
            left: left.collect(),
        })
    }

    /// The logs with an entry that a request selects; `None` for all logs.
    fn meant(&self, what: &Compaction) -> Result<Option<HashSet<Id>>> {
        let schema = self.journal().schema();
        if what.requests.iter().any(|request| request.is_empty()) || what.requests.is_empty() {
            return Ok(None);
        }
        let now = self.journal().env().clock.now();
        let select = |request| schema.make(|schema| schema.select_at(request, now));
        let selections = what.requests.iter().map(select).collect::<Result<Vec<Selection>>>()?;
        let snapshot = self.journal().looks().snapshot()?;
        let mut meant = HashSet::new();
        for selection in selections {
            let mut matcher = Matcher::new(selection);
            for index in 0..snapshot.sources.len() {
                what.session.check(&*self.journal().env().clock)?;
                add_if_selected(&snapshot, index, &mut matcher, &mut meant)?;
            }
        }
        Ok(Some(meant))
    }
}

/// Adds the log of a segment with an entry that is selected, or with one that cannot be read.
fn add_if_selected(
    snapshot: &Snapshot,
    index: usize,
    matcher: &mut Matcher,
    meant: &mut HashSet<Id>,
) -> Result<()> {
    let source = &snapshot.sources[index];
    let EntrySource::Segment(segment, _) = source else { return Ok(()) };
    if meant.contains(&segment.writer) {
        return Ok(());
    }
    match holds_selected(source, index, matcher) {
        Ok(false) => {}
        Ok(true) => drop(meant.insert(segment.writer)),
        Err(e) if e.kind() == ErrorKind::Corrupt => drop(meant.insert(segment.writer)),
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Whether any entry of a source is selected; it seeks from one candidate to the next.
fn holds_selected(source: &EntrySource, index: usize, matcher: &mut Matcher) -> Result<bool> {
    let mut cursor = EntryCursor::new(source, index);
    let mut more = cursor.advance()?;
    while more {
        match matcher.test(cursor.key())? {
            Match::Yes => return Ok(true),
            Match::Seek(target) => more = cursor.seek(&target)?,
        }
    }
    Ok(false)
}

/// Passes on the first report, those of a takeover that was made, and some of those between: a caller may be far away.
fn now_and_then(
    each: &mut dyn FnMut(CompactProgress) -> Result<()>,
) -> impl FnMut(CompactProgress) -> Result<()> {
    let mut last: Option<CompactProgress> = None;
    move |progress| {
        let is_due = |last: &CompactProgress| {
            progress.logs != last.logs || progress.entries.abs_diff(last.entries) >= ENTRIES
        };
        if last.as_ref().is_none_or(is_due) {
            last = Some(progress);
            each(progress)?;
        }
        Ok(())
    }
}

/// A log that stays, as the API has it.
pub fn left_log(snapshot: &Snapshot, left: fieldstone_journal::compact::LeftLog) -> LeftLog {
    LeftLog {
        accepted: writer_of(&left.file).is_some_and(|writer| is_accepted(snapshot, writer)),
        file: left.file,
        why: left.why,
    }
}

/// Whether a loss of a writer was accepted: `verify` says whether anything else of its log is damaged.
fn is_accepted(snapshot: &Snapshot, writer: Id) -> bool {
    snapshot.accepted.all().iter().any(|loss| loss.acceptance.writer == writer)
}

/// The writer whose log a file is.
fn writer_of(file: &str) -> Option<Id> {
    log::parse_file_name(file.rsplit('/').next()?)
}
