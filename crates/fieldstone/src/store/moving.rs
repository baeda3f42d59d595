//! Rules that move fields to another store: what they are about, and their steps of maintenance (takeovers.md, 6.3).
//!
//! A rule names a request, or a query of the catalog whose hits say which fields go, each with everything on it. The
//! decision is that of [`move_to`]: a process that dies leaves a field in one of the stores, or in both.
//!
//! Invariants:
//! * only fields in datasets of the caller move;
//! * a target that is not there is not made: it may be one that is not mounted;
//! * a rule that cannot be applied is a step that is left, and the others are made.

use std::path::Path;

use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_store::api::{
    FieldAccess, MaintainAction, MaintainProgress, MaintainReport, MaintainStep, RetentionRule,
};

use super::maintain::{MaintainOptions, OnMaintain, check_rate};
use crate::Session;
use crate::Store;
use crate::catalog::query::text::parse;
use crate::open::{Mode, OpenOptions, local_path};
use crate::transfer::{TransferOptions, What, found, move_to};

/// A target as a rule keeps it: absolute, so that the rule means the same wherever it is applied.
pub fn absolute(to: &str) -> Result<String> {
    if to == "memory:" {
        return Err(Code::Option
            .error("a rule cannot move fields into a store in memory")
            .with_hint("name a folder: to=\"/archive/store\""));
    }
    let path = local_path(to)?;
    if path.as_os_str().is_empty() {
        return Err(Code::Option.error("the rule does not say where fields go").with_hint("name a folder"));
    }
    let path = Env::real().disk.absolute(&path).map_err(|e| fieldstone_core::Error::io("find", &path, e))?;
    utf8(&path)
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Code::Name.error(format!("the path {} is not UTF-8, and a rule keeps text", path.display()))
    })
}

/// A query as a rule keeps it; `Invalid` if it is none.
pub fn checked(query: &str) -> Result<String> {
    parse(query)?;
    Ok(query.trim().to_owned())
}

/// The steps of rules that move fields, each with the number of the first step after it.
pub struct Moving<'a> {
    pub store: &'a Store,
    pub dry_run: bool,
    pub progress: Option<&'a OnMaintain<'a>>,
}

impl Moving<'_> {
    /// Makes the step of a rule. Fails only where the caller ends everything.
    pub fn step(&self, number: u64, rule: &RetentionRule) -> Result<MaintainStep> {
        let clock = self.store.backend().env().clock.clone();
        let request = rule.query.clone().unwrap_or_else(|| rule.request.clone());
        let mut step = MaintainStep { action: MaintainAction::Move, request, ..MaintainStep::default() };
        self.tell(&step, number, 0)?;
        let before = clock.monotonic();
        let moved = self.apply(rule, number, &mut step);
        step.nanoseconds = clock.monotonic().saturating_sub(before);
        if let Err(error) = moved {
            if matches!(error.code(), Code::Cancelled | Code::DeadlinePassed)
                || error.kind() == ErrorKind::Internal
            {
                return Err(error);
            }
            let is_shared = error.code() == Code::Unavailable;
            (step.done, step.why) = (false, Some(error.message().to_owned()));
            step.code = (!is_shared).then(|| error.code());
        }
        Ok(step)
    }

    fn tell(&self, step: &MaintainStep, number: u64, done: u64) -> Result<()> {
        let (action, request) = (step.action, step.request.clone());
        let progress = MaintainProgress { step: number, action, request, done, nbytes: step.nbytes };
        self.progress.map_or(Ok(()), |report| report(progress))
    }

    fn apply(&self, rule: &RetentionRule, number: u64, step: &mut MaintainStep) -> Result<()> {
        let now = self.store.backend().env().clock.now();
        let before = |age: u64| now.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX));
        let what = match &rule.query {
            Some(query) => What::Under(parse(query)?.exact()),
            None => What::Requests(vec![Request::parse(&rule.request)?]),
        };
        let shown = step.clone();
        let options = TransferOptions {
            strict: false,
            before: rule.older_than.map(before),
            own: true,
            progress: Some(&|done, _| self.tell(&shown, number, done)),
            ..TransferOptions::default()
        };
        (step.fields, step.nbytes) = found(self.store, &what, &options)?;
        step.why = match step.fields {
            0 if rule.older_than.is_some() => Some("nothing is old enough".to_owned()),
            0 => Some("nothing of yours is found".to_owned()),
            _ if self.dry_run => Some("a dry run".to_owned()),
            _ => None,
        };
        let Some(to) = rule.to.as_deref().filter(|_| step.why.is_none()) else { return Ok(()) };
        let there = OpenOptions { mode: Mode::Update, ..OpenOptions::default() };
        let target = match crate::open(to, &there) {
            Ok(target) => target,
            Err(error) => {
                // Somebody has to look: what the rule keeps small grows.
                step.why = Some(format!("{to} does not take fields: {}", error.message()));
                step.code = Some(error.code());
                return Ok(());
            }
        };
        let report = move_to(self.store, what, &target, &options)?;
        target.close()?;
        step.fields = report.removed;
        step.done = report.removed > 0;
        step.why = match (report.damaged.first(), report.kept.len()) {
            (Some(damaged), _) => Some(format!("{}: {}", damaged.key, damaged.why)),
            (None, 0) => None,
            (None, kept) => Some(format!("{kept} were written meanwhile, and stay")),
        };
        step.code = report.damaged.first().map(|_| Code::Checksum);
        // The version that the next look at the store sees.
        self.store.refresh()
    }
}

/// See [`Store::maintain`]: the steps of rules that move fields, then those of the store.
pub fn maintain(store: &Store, options: &MaintainOptions<'_>) -> Result<MaintainReport> {
    let rules = store.backend().moving_rules(&Session::default())?;
    let moving = Moving { store, dry_run: options.dry_run, progress: options.progress };
    let mut steps = Vec::with_capacity(rules.len());
    for rule in &rules {
        steps.push(moving.step(steps.len() as u64 + 1, rule)?);
    }
    let before = steps.len() as u64;
    let mut each = |progress: MaintainProgress| {
        let progress = MaintainProgress { step: progress.step + before, ..progress };
        options.progress.map_or(Ok(()), |report| report(progress))
    };
    check_rate(options.rate)?;
    let mut report = store.backend().maintain(&options.to_call(), &mut each)?;
    report.steps.splice(0..0, steps);
    Ok(report)
}
