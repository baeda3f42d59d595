//! Maintenance: what rules of retention ask for, and what pays (takeovers.md, 6.3).
//!
//! Fields that rules move to another store are moved before, by the facade. Steps, in this order, so that room comes back before any is taken: files go whose grace is over (and logs end whose processes
//! are gone, so that later steps may take them); fields that rules call too
//! old are wiped; versions that rules let go are purged; ended logs become one file. Invariants:
//! * a step that fails is named and left, and the others are made; only the caller's own end ends all;
//! * nothing goes but by a rule, and by no rule in a dataset of another user;
//! * each step is as good as a call of its own: whoever dies between two of them leaves a store that the next call maintains.

use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::store_record::STORE_RECORDS_SINCE;
use fieldstone_journal::Journal;
use fieldstone_journal::compact::CompactOptions;
use fieldstone_journal::journal::{PurgeOptions, PurgeProgress};

use crate::api::{MaintainAction, MaintainProgress, MaintainReport, MaintainStep, Maintaining};
use crate::read::{HiddenEntries, Limit, Matcher};
use crate::retain::{is_known, moves};
use crate::snapshot::{StoreRule, rules_for};
use crate::wipe::{Foreign, Vanishing, vanish};

/// A purge pays if it gives back at least this many bytes,
const PURGE_LEAST: u64 = 64 << 10;
/// and at least one of this number of bytes that it writes again: a fifth of the bytes that it touches are dead.
const PURGE_SHARE: u64 = 4;
/// Ended logs above which compaction pays.
const ENDED_MANY: u64 = 12;
/// Keys or entries between two reports of progress.
const OFTEN: u64 = 1024;

/// Maintenance under way.
struct Maintainer<'a> {
    journal: &'a Journal,
    what: &'a Maintaining,
    each: &'a mut dyn FnMut(MaintainProgress) -> Result<()>,
    /// Whether the caller ended it.
    is_stopped: bool,
    report: MaintainReport,
    /// Bytes that may be written yet.
    most: Option<u64>,
}

/// Applies the rules of retention that count for this user's data, and does for his files what pays; see the facade's
/// `Store::maintain`. `each` hears how far it is, and may end it by an error.
pub fn maintain(
    journal: &Journal,
    what: &Maintaining,
    each: &mut dyn FnMut(MaintainProgress) -> Result<()>,
) -> Result<MaintainReport> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "maintenance")?;
    let snapshot = journal.looks().snapshot()?;
    let rules = rules_for(&snapshot, journal.access().user(&what.session));
    if !what.dry_run {
        // While there is room, a reserve is made: each step takes it for itself.
        drop(journal.maintenance().room());
    }
    let (report, most) = (MaintainReport::default(), what.max_bytes);
    let mut work = Maintainer { journal, what, each, is_stopped: false, report, most };
    work.step(MaintainAction::Sweep, "", Maintainer::sweep)?;
    let wipes = |rule: &&Arc<StoreRule>| !moves(rule) && (rule.rule.older.is_some() || !is_known(rule));
    for rule in rules.iter().filter(wipes) {
        work.step(MaintainAction::Wipe, &rule.rule.text, |work, step| work.wipe(rule, step))?;
    }
    work.step(MaintainAction::Purge, "", |work, step| work.purge(&rules, step))?;
    work.step(MaintainAction::Compact, "", Maintainer::compact)?;
    let mut report = work.report;
    if let Ok(survey) = journal.maintenance().survey(what.grace, &what.session) {
        report.waiting = survey.waiting;
    }
    Ok(report)
}

impl Maintainer<'_> {
    /// Makes a step, and notes what came of it. Fails only where the caller ends everything.
    fn step(
        &mut self,
        action: MaintainAction,
        request: &str,
        make: impl FnOnce(&mut Self, &mut MaintainStep) -> Result<()>,
    ) -> Result<()> {
        let clock = self.journal.env().clock.clone();
        let mut step = MaintainStep { action, request: request.to_owned(), ..MaintainStep::default() };
        self.tell(&step, 0, 0)?;
        let before = clock.monotonic();
        let made = make(self, &mut step);
        step.nanoseconds = clock.monotonic().saturating_sub(before);
        if let Err(error) = made {
            let is_end = matches!(error.code(), Code::Cancelled | Code::DeadlinePassed);
            if self.is_stopped || is_end || error.kind() == ErrorKind::Internal {
                return Err(error);
            }
            // It is not a fault that others do the same, or that a store has no files to look after.
            let is_shared = error.code() == Code::Unavailable
                || error.kind() == ErrorKind::Invalid && action != MaintainAction::Wipe;
            (step.done, step.why) = (false, Some(error.message().to_owned()));
            step.code = (!is_shared).then(|| error.code());
        }
        self.most = self.most.map(|most| most.saturating_sub(step.rewritten));
        self.report.steps.push(step);
        Ok(())
    }

    fn tell(&mut self, step: &MaintainStep, done: u64, nbytes: u64) -> Result<()> {
        let number = self.report.steps.len() as u64 + 1;
        let (action, request) = (step.action, step.request.clone());
        let heard = (self.each)(MaintainProgress { step: number, action, request, done, nbytes });
        self.is_stopped |= heard.is_err();
        heard
    }

    /// Removes files whose grace is over.
    fn sweep(&mut self, step: &mut MaintainStep) -> Result<()> {
        let maintenance = self.journal.maintenance();
        let survey = maintenance.survey(self.what.grace, &self.what.session)?;
        step.files = survey.due;
        if !self.what.dry_run {
            maintenance.sweep(self.what.grace, &self.what.session)?;
        }
        step.done = !self.what.dry_run && survey.due > 0;
        step.why = match survey.due {
            0 => Some("no replaced file is a grace old".to_owned()),
            _ => self.what.dry_run.then(|| "a dry run".to_owned()),
        };
        Ok(())
    }

    /// Wipes what a rule calls too old.
    fn wipe(&mut self, rule: &StoreRule, step: &mut MaintainStep) -> Result<()> {
        let (journal, older) = (self.journal, rule.rule.older.unwrap_or(0));
        if !is_known(rule) {
            step.why = Some("a later release made this rule".to_owned());
            return Ok(());
        }
        let now = journal.env().clock.now();
        let before = now.saturating_sub(i64::try_from(older).unwrap_or(i64::MAX));
        let age = Some(before).filter(|_| !planted::is(Planted::RuleWithoutAge));
        let request = Request::parse(&rule.rule.text)?;
        let selection = journal.schema().make(|schema| schema.select_at(&request, now))?;
        let doit = !self.what.dry_run;
        let what = Vanishing { age, doit, ..Vanishing::wipe(Foreign::PassedOver) };
        let hidden = vanish(journal, selection, &what, &self.what.session)?;
        (step.fields, step.nbytes) = (hidden.fields, hidden.nbytes);
        step.done = doit && hidden.fields > 0;
        step.why = match (hidden.fields, doit) {
            (0, _) => Some("nothing is old enough".to_owned()),
            (_, true) => None,
            (_, false) => Some("a dry run".to_owned()),
        };
        Ok(())
    }

    /// Drops what rules let go, if that pays.
    fn purge(&mut self, rules: &[Arc<StoreRule>], step: &mut MaintainStep) -> Result<()> {
        let journal = self.journal;
        let (user, now) = (journal.access().user(&self.what.session), journal.env().clock.now());
        let mut limits = Vec::new();
        // Which fields were under a query's hits is not known any more.
        for rule in rules.iter().filter(|rule| is_known(rule) && !rule.rule.query) {
            let request = Request::parse(&rule.rule.text)?;
            let selection = journal.schema().make(|schema| schema.select_at(&request, now))?;
            let versions = rule.rule.versions.map_or(u64::MAX, |versions| versions.max(1));
            limits.push(Limit { matcher: Matcher::new(selection), versions });
        }
        if limits.is_empty() {
            step.why = Some("no rule of retention lets anything go".to_owned());
            return Ok(());
        }
        let mut judge =
            HiddenEntries::by(journal.files(), user, limits, (now, self.what.grace)).leaving_pointed();
        let run = |work: &mut Self, step: &MaintainStep, doit, judge: &mut HiddenEntries| {
            let options = PurgeOptions {
                doit,
                max_bytes: work.most,
                rate: work.what.rate,
                grace: work.what.grace,
                ..PurgeOptions::default()
            };
            let (session, mut last) = (&work.what.session.clone(), 0);
            journal.maintenance().purge(&options, judge, session, &mut |progress: PurgeProgress| {
                let is_due = progress.keys >= last + OFTEN;
                last = if is_due { progress.keys } else { last };
                if is_due { work.tell(step, progress.keys, progress.nbytes) } else { Ok(()) }
            })
        };
        let looked = run(self, step, false, &mut judge)?;
        (step.fields, step.versions, step.nbytes) = (looked.fields, looked.versions, looked.nbytes);
        (step.files, step.rewritten) = (looked.condemned, 0);
        step.why = match looked {
            _ if looked.kept.is_some() => looked.kept,
            _ if looked.nbytes == 0 && looked.versions == 0 => {
                Some("nothing is hidden for a grace".to_owned())
            }
            _ if looked.nbytes < PURGE_LEAST
                || looked.nbytes.saturating_mul(PURGE_SHARE) < looked.rewritten =>
            {
                Some(format!(
                    "it does not pay: {} bytes would come back, and {} be written again",
                    looked.nbytes, looked.rewritten
                ))
            }
            _ if self.what.dry_run => Some("a dry run".to_owned()),
            _ => None,
        };
        if step.why.is_some() {
            return Ok(());
        }
        self.tell(step, 0, step.nbytes)?;
        let made = run(self, step, true, &mut judge)?;
        (step.fields, step.versions, step.nbytes) = (made.fields, made.versions, made.nbytes);
        (step.files, step.rewritten) = (made.condemned, made.rewritten);
        step.done = made.versions + made.condemned > 0;
        self.report.more |= made.more;
        step.why = match (step.done, made.more) {
            (_, true) => Some("more is left for another call".to_owned()),
            (false, _) => Some("another process did it meanwhile".to_owned()),
            (true, _) => None,
        };
        Ok(())
    }

    /// Takes ended logs over, if they are many.
    fn compact(&mut self, step: &mut MaintainStep) -> Result<()> {
        let maintenance = self.journal.maintenance();
        let survey = maintenance.survey(self.what.grace, &self.what.session)?;
        (step.files, step.why) = (survey.ended, None);
        if survey.is_busy {
            step.why = Some("another process takes logs over".to_owned());
        } else if survey.ended <= ENDED_MANY {
            step.why = Some(format!("{} ended logs: more than {ENDED_MANY} pay", survey.ended));
        } else if self.what.dry_run {
            step.why = Some("a dry run".to_owned());
        }
        if step.why.is_some() {
            return Ok(());
        }
        let options = CompactOptions {
            max_bytes: self.most,
            rate: self.what.rate,
            grace: self.what.grace,
            ..CompactOptions::default()
        };
        let (session, mut last) = (self.what.session.clone(), 0);
        let made = maintenance.compact(&options, &session, &mut |progress| {
            let is_due = progress.entries >= last + OFTEN;
            last = if is_due { progress.entries } else { last };
            if is_due { self.tell(step, progress.entries, 0) } else { Ok(()) }
        })?;
        let after = maintenance.survey(self.what.grace, &self.what.session)?;
        step.files = survey.ended.saturating_sub(after.ended);
        (step.rewritten, step.done) = (made.nbytes, step.files > 0);
        let is_bounded = self.most.is_some() && after.ended > 0 && made.left.is_empty();
        self.report.more |= is_bounded;
        step.why = match made.left.first() {
            Some(log) => Some(format!("{}: {}", log.file, log.why)),
            None if is_bounded => Some("more is left for another call".to_owned()),
            None if !step.done => Some("another process did it meanwhile".to_owned()),
            None => None,
        };
        Ok(())
    }
}
