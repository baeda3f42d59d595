//! Erasures: what was recorded by mistake, and is hidden by now, becomes unreadable in every file (R36).
//!
//! An erasure is a purge without a grace, of the fields that a request selects, which rewrites every file that holds a byte of
//! them. Invariants:
//! * nothing goes that anybody sees, or that a later decision could show again;
//! * what stays all the same is named.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::level_ends;
use fieldstone_format::log::SideRecord;
use fieldstone_format::store_record::{Erasure, STORE_RECORDS_SINCE};
use fieldstone_journal::Journal;
use fieldstone_journal::compact::{ErasedSide, Eraser, Judge, MetEntry, SideCommit, Verdict, survey};
use fieldstone_journal::journal::{PurgeOptions, PurgeReport};
use xxhash_rust::xxh3::xxh3_128;

use crate::api::{EraseSide, Erasing, ErasureReport, LeftLog, Session};
use crate::compact::left_log;
use crate::read::{HiddenEntries, Matcher};
use crate::snapshot::{Owners, Snapshot};

/// Files that hold something, each with the reason.
type Left = BTreeSet<(String, String)>;

/// Checks what is to be erased, and ends this process's log, so that what it holds can go.
pub fn begin(journal: &Journal, what: &Erasing) -> Result<()> {
    check(&journal.schema().make(|schema| Ok(schema.clone()))?, &what.requests)?;
    if what.doit {
        journal.access().check_writable()?;
        journal.format().check(STORE_RECORDS_SINCE, "an erasure")?;
    }
    journal.committer().leave_log();
    Ok(())
}

/// Makes hidden content of requests unreadable; see the facade's `Store::erase`. `side` decides about attributes; it has
/// looked at the store after [`begin`].
pub fn erase(journal: &Journal, what: &Erasing, side: &mut EraseSide<'_>) -> Result<ErasureReport> {
    let schema = journal.schema().make(|schema| Ok(schema.clone()))?;
    let snapshot = journal.looks().snapshot()?;
    let mut judge = ErasureJudge { hidden: hidden(journal, what, &schema)?, side };
    check_owners(journal, &snapshot, &mut judge.hidden, &what.session)?;
    let mut report = purged(journal, false, &mut judge, &what.session)?;
    if what.doit {
        if report.versions + report.rows > 0 {
            let erased = vec![(0, report.versions.to_string()), (1, report.rows.to_string())];
            let noted = Erasure { what: hashed(&schema, &what.requests), erased };
            let maintenance = journal.maintenance();
            let _room = maintenance.room_for_record();
            journal.ranges().note_erasure(noted, &what.session)?;
        }
        report = purged(journal, true, &mut judge, &what.session)?;
    }
    let snapshot = journal.looks().snapshot()?;
    let mut left = Left::new();
    if let Some(why) = &report.kept {
        left.insert(("the store".to_owned(), why.clone()));
    }
    let visible = survey_left(journal, &snapshot, &mut judge.hidden, what.doit, &mut left)?;
    let kept = report.left.into_iter().map(|left| left_log(&snapshot, left));
    Ok(ErasureReport {
        fields: report.fields,
        versions: report.versions,
        attributes: report.rows,
        visible,
        nbytes: report.nbytes,
        files: report.condemned,
        left: kept.chain(left.into_iter().map(named)).collect(),
        done: what.doit,
    })
}

fn hidden(journal: &Journal, what: &Erasing, schema: &Schema) -> Result<HiddenEntries> {
    let now = journal.env().clock.now();
    let matcher = |request| Ok(Matcher::new(schema.select_at(request, now)?));
    let matchers = what.requests.iter().map(matcher).collect::<Result<Vec<_>>>()?;
    Ok(HiddenEntries::new(journal.files(), journal.access().user(&what.session), matchers, (now, 0)))
}

fn purged(
    journal: &Journal,
    doit: bool,
    judge: &mut ErasureJudge<'_>,
    session: &Session,
) -> Result<PurgeReport> {
    let options = PurgeOptions { doit, grace: 0, ..PurgeOptions::default() };
    journal.maintenance().purge(&options, judge, session, &mut |_| Ok(()))
}

/// Denied where a request selects fields in another user's dataset or in a locked one, hidden ones among them.
fn check_owners(
    journal: &Journal,
    snapshot: &Arc<Snapshot>,
    hidden: &mut HiddenEntries,
    session: &Session,
) -> Result<()> {
    if matches!(snapshot.owners, Owners::One(_)) && snapshot.locks.is_empty() {
        return Ok(());
    }
    hidden.look(snapshot, HashSet::new())?;
    let mut last = Vec::new();
    let looked = survey(snapshot, &mut |key, _| {
        let dataset = &key[..level_ends(key)?[0]];
        if dataset == last || !hidden.selects(key)? {
            return Ok(());
        }
        last = dataset.to_vec();
        journal.datasets().check_owned(last.clone(), session)?;
        journal.datasets().check_unlocked(LockKind::Wipe, &last, snapshot)
    });
    looked.map(drop)
}

/// Notes hidden content of the selected fields that is still there; returns the number of fields that are visible.
fn survey_left(
    journal: &Journal,
    snapshot: &Arc<Snapshot>,
    hidden: &mut HiddenEntries,
    done: bool,
    left: &mut Left,
) -> Result<u64> {
    let ended = {
        let looks = journal.looks();
        let refresher = looks.refresher().lock();
        let ended = snapshot.logs.iter().filter(|log| refresher.ended(log).is_some());
        ended.map(|log| log.writer).collect::<HashSet<Id>>()
    };
    hidden.look(snapshot, ended)?;
    let mut visible = 0;
    let damaged = survey(snapshot, &mut |key, entries| {
        let (residues, has_field) = hidden.residues(key, entries)?;
        visible += u64::from(has_field);
        // A dry run leaves everything where it is, and names what would stay.
        for (source, residue) in residues.into_iter().filter(|(_, residue)| done || residue.stays()) {
            left.insert((snapshot.sources[source].shown(), residue.why().to_owned()));
        }
        Ok(())
    })?;
    for source in damaged {
        left.insert((snapshot.sources[source].shown(), "a part of its index cannot be read".to_owned()));
    }
    Ok(visible)
}

fn named((file, why): (String, String)) -> LeftLog {
    LeftLog { file, why, accepted: false }
}

/// Invalid for requests that do not list values.
fn check(schema: &Schema, requests: &[Request]) -> Result<()> {
    let hint = "list values that name the mistake, such as run=a";
    if requests.is_empty() || requests.iter().any(Request::is_empty) {
        return Err(Code::RequestTooBroad.error("an erasure of everything was asked for").with_hint(hint));
    }
    for request in requests {
        check_bounds(request)?;
        let pattern = request.iter().find(|(_, values)| !matches!(values, Values::List(_)));
        if let Some((keyword, _)) = pattern {
            let keyword = schema.spelling(keyword);
            let message =
                format!("the request does not list values of `{keyword}`: an erasure takes no patterns");
            return Err(Error::invalid(message).with_hint(hint));
        }
    }
    Ok(())
}

/// Invalid within a filter that does not list values.
fn check_bounds(request: &Request) -> Result<()> {
    for bound in request.bounds() {
        if let Some((keyword, _)) = bound.iter().find(|(_, values)| !matches!(values, Values::List(_))) {
            let message =
                format!("the store is restricted by a pattern of `{keyword}`: an erasure takes none");
            return Err(Error::invalid(message).with_hint("open the store without it"));
        }
        check_bounds(bound)?;
    }
    Ok(())
}

/// Requests with a hash in the place of each value: a value may be what was recorded by mistake.
fn hashed(schema: &Schema, requests: &[Request]) -> String {
    let one = |request: &Request| {
        let pairs = request.iter().map(|(keyword, values)| {
            let keyword = schema.spelling(keyword);
            format!("{keyword}={:032x}", xxh3_128(format!("{keyword}={values}").as_bytes()))
        });
        pairs.collect::<Vec<_>>().join(",")
    };
    requests.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Decides what goes: hidden entries, and the rows of side records that `side` names.
struct ErasureJudge<'a> {
    hidden: HiddenEntries,
    side: &'a mut EraseSide<'a>,
}

impl Judge for ErasureJudge<'_> {
    fn look(&mut self, snapshot: &Arc<Snapshot>, ended: HashSet<Id>) -> Result<()> {
        self.hidden.look(snapshot, ended)
    }

    fn judge(&mut self, key: &[u8], entries: &[MetEntry], verdicts: &mut [Verdict]) -> Result<()> {
        if planted::is(Planted::EraseShown) && self.hidden.selects(key)? {
            verdicts.fill(Verdict::Goes);
            return Ok(());
        }
        self.hidden.judge(key, entries, verdicts)
    }

    fn is_sound(&mut self, key: &[u8], entry: &MetEntry) -> Result<bool> {
        self.hidden.is_sound(key, entry)
    }

    fn eraser(&mut self) -> Option<&mut dyn Eraser> {
        Some(self)
    }
}

impl Eraser for ErasureJudge<'_> {
    fn is_wanted(&mut self, dataset: &[u8]) -> Result<bool> {
        self.hidden.selects_dataset(dataset)
    }

    fn records(&mut self, commit: &SideCommit, records: &[SideRecord]) -> Result<Option<ErasedSide>> {
        match self.hidden.is_final(commit.transaction) {
            true => (self.side)(commit, records),
            false => Ok(None),
        }
    }
}
