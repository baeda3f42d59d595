//! Purges: whose fields a request selects, and the journal's report as the API has it.

use std::sync::Arc;

use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::{Code, Result};
use fieldstone_format::keys::level_ends;
use fieldstone_journal::journal::PurgeOptions;

use crate::api::{PurgeProgress, PurgeReport, Purging};
use crate::compact::left_log;
use crate::local::LocalStore;
use crate::read::{HiddenEntries, Matcher, Scan};
use crate::reindex::left_for_others;
use crate::snapshot::{Owners, Snapshot};

/// Keys between two reports of progress.
const KEYS: u64 = 1024;

impl LocalStore {
    /// Drops hidden versions of this user's fields, and gives back their room; see the facade's `Store::purge`. `each` hears
    /// how far it is, and may end it by an error.
    pub fn purge(
        &self,
        what: &Purging,
        each: &mut dyn FnMut(PurgeProgress) -> Result<()>,
    ) -> Result<PurgeReport> {
        let journal = self.journal();
        if what.doit {
            journal.access().check_writable()?;
        }
        let schema = journal.schema().make(|schema| Ok(schema.clone()))?;
        let selections = self.selections(what, &schema)?;
        let snapshot = journal.looks().snapshot()?;
        for selection in &selections {
            self.check_owners(&snapshot, selection, what)?;
        }
        let matchers = selections.into_iter().map(Matcher::new).collect();
        let (user, now) = (journal.access().user(&what.session), journal.env().clock.now());
        let mut hidden =
            HiddenEntries::new(journal.files(), user, matchers, (now, what.grace)).leaving_pointed();
        let options = PurgeOptions {
            doit: what.doit,
            max_bytes: what.max_bytes,
            rate: what.rate,
            grace: what.grace,
            ..PurgeOptions::default()
        };
        let mut last: Option<PurgeProgress> = None;
        let mut now_and_then = |progress: PurgeProgress| {
            let is_due = |last: &PurgeProgress| {
                progress.nbytes != last.nbytes || progress.keys.abs_diff(last.keys) >= KEYS
            };
            if last.as_ref().is_none_or(is_due) {
                last = Some(progress);
                each(progress)?;
            }
            Ok(())
        };
        let report = journal.maintenance().purge(&options, &mut hidden, &what.session, &mut now_and_then)?;
        let snapshot = journal.looks().snapshot()?;
        Ok(PurgeReport {
            fields: report.fields,
            versions: report.versions,
            nbytes: report.nbytes,
            condemned: report.condemned,
            waiting: report.waiting,
            files: report.files,
            kept: report.kept,
            left: left_for_others(&snapshot)
                .into_iter()
                .chain(report.left.into_iter().map(|left| left_log(&snapshot, left)))
                .collect(),
            more: report.more,
        })
    }

    /// The selections of the requests; none where all fields are meant.
    fn selections(&self, what: &Purging, schema: &Schema) -> Result<Vec<Selection>> {
        if what.requests.iter().all(Request::is_empty) {
            return match what.all {
                true => Ok(Vec::new()),
                false => Err(Code::RequestTooBroad
                    .error("a purge of all fields was asked for")
                    .with_hint("name datasets or indexes, such as run=a, or ask for all")),
            };
        }
        what.requests.iter().try_for_each(|request| check_levels(schema, request))?;
        let now = self.journal().env().clock.now();
        what.requests.iter().map(|request| schema.select_at(request, now)).collect()
    }

    /// Denied where a request selects another user's dataset, or one where a lock forbids it.
    fn check_owners(&self, snapshot: &Arc<Snapshot>, selection: &Selection, what: &Purging) -> Result<()> {
        if matches!(snapshot.owners, Owners::One(_)) && snapshot.locks.is_empty() {
            return Ok(());
        }
        let mut scan = Scan::new(snapshot.clone(), selection.clone(), None)?.with_removed(true).lenient(true);
        while let Some(versions) = scan.next_key()? {
            let dataset = &versions.key[..level_ends(&versions.key)?[0]];
            self.journal().datasets().check_owned(dataset.to_vec(), &what.session)?;
            self.journal().datasets().check_unlocked(LockKind::Wipe, dataset, snapshot)?;
            scan.skip_prefix(dataset)?;
        }
        Ok(())
    }
}

/// Invalid for a keyword below the second level.
fn check_levels(schema: &Schema, request: &Request) -> Result<()> {
    let rules = schema.rules();
    for (keyword, _) in request.iter() {
        let keyword = schema.spelling(keyword);
        let is_named = |levels: std::ops::Range<usize>| {
            let mut named = rules.iter().flat_map(|rule| &rule.levels[levels.clone()]);
            named.any(|level| level.keywords.iter().any(|known| *known.name == *keyword))
        };
        if is_named(2..3) || !is_named(0..2) && rules.iter().any(|rule| rule.levels[2].open) {
            return Err(Code::RequestTooBroad
                .error(format!(
                    "the keyword `{keyword}` is of single fields, and a purge is of datasets or indexes"
                ))
                .with_hint("name keywords of the first two levels alone"));
        }
    }
    request.bounds().iter().try_for_each(|bound| check_levels(schema, bound))
}
