//! Purges: entries that nothing shows any more go, and so does the room that they took (takeovers.md, 10).
//!
//! One purge makes several takeovers where much is copied: each gives back the room of its inputs before the next one is made,
//! if the grace allows it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, Result};
use tracing::{debug, debug_span};

use super::looks::Looks;
use super::maintenance::{Graces, Maintenance, RACES, TAKEOVERS_SINCE, raced};
use crate::compact::{
    Chooser, CompactOptions, Inputs, Judge, LeftLog, Made, PURGE_EXTRA, PurgePlan, choose_all, make,
    protection,
};
use crate::entry_source::EntrySource;
use crate::medium::posix::FileMedium;
use crate::medium::posix::reserve::Room;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::writer::check_format;

/// How a store is purged.
#[derive(Debug, Clone)]
pub struct PurgeOptions {
    /// Whether anything goes; else the report says what would.
    pub doit: bool,
    /// Most bytes that are copied.
    pub max_bytes: Option<u64>,
    /// How long files stay that nothing names any more, nanoseconds; 0 only where nobody else has the store open.
    pub grace: u64,
    /// Most bytes that are copied before room is given back.
    pub extra: u64,
    /// Most bytes that are copied in a second.
    pub rate: Option<u64>,
}

impl Default for PurgeOptions {
    fn default() -> PurgeOptions {
        let (doit, max_bytes, rate) = Default::default();
        PurgeOptions { doit, max_bytes, grace: crate::compact::GRACE, extra: PURGE_EXTRA, rate }
    }
}

/// How far a purge has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeProgress {
    /// Keys that were looked at.
    pub keys: u64,
    /// Bytes that are given back.
    pub nbytes: u64,
}

/// The result of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Keys of which anything goes.
    pub fields: u64,
    /// Entries that go.
    pub versions: u64,
    /// Bytes that are given back, at once or when the grace is over.
    pub nbytes: u64,
    /// Rows of side records that an erasure takes.
    pub rows: u64,
    /// Bytes that are written for that: payload that stays, and indexes.
    pub rewritten: u64,
    /// Files that go, because they are replaced or nothing names them any more.
    pub condemned: u64,
    /// Files that stay until the grace is over.
    pub waiting: u64,
    /// Files of the store, before and after.
    pub files: (u64, u64),
    /// The reason why nothing goes, if there is one for everything.
    pub kept: Option<String>,
    /// Files that have to stay as they are.
    pub left: Vec<LeftLog>,
    /// Whether more could go by another call, as this one copies no more bytes.
    pub more: bool,
}

impl PurgeReport {
    fn count(&mut self, plan: &PurgePlan) {
        self.fields += plan.fields;
        self.versions += plan.versions;
        self.nbytes += plan.freed;
        self.rows += plan.erasure.rows;
        self.rewritten += plan.copied + plan.index;
        self.condemned += plan.files;
    }
}

/// A purge under way.
struct Purge<'a, 'b> {
    maintenance: Maintenance<'a>,
    options: &'b PurgeOptions,
    /// Files of arrays in closed folders that no takeover condemns, with their bytes.
    beside: BTreeMap<String, u64>,
    /// With the grace that the store needs.
    compact: CompactOptions,
    judge: &'b mut dyn Judge,
    session: &'b Session,
    each: &'b mut dyn FnMut(PurgeProgress) -> Result<()>,
    progress: PurgeProgress,
    report: PurgeReport,
    /// Bytes that may be copied yet.
    most: u64,
    /// The error of an input that found no room.
    full: Option<Error>,
    /// Inputs of which nothing can go now, by file.
    skipped: HashSet<String>,
    /// Inputs that cannot be read whole.
    damaged: HashSet<String>,
}

/// The step after a round.
enum Next {
    /// Nothing is left to do.
    End,
    /// Another round, with what the store has now.
    Again,
}

impl Maintenance<'_> {
    /// Drops entries of this user's ended logs and takeovers that a judge lets go, and the files that nothing names then. `each`
    /// hears how far it is, and may end it by an error: what is done until then stays.
    pub fn purge(
        &self,
        options: &PurgeOptions,
        judge: &mut dyn Judge,
        session: &Session,
        each: &mut dyn FnMut(PurgeProgress) -> Result<()>,
    ) -> Result<PurgeReport> {
        let Looks { access, medium, .. } = self.looks;
        if options.doit {
            access.check_writable()?;
            access.check_user(session)?;
        }
        let files = self.files()?;
        let _span = debug_span!("purge").entered();
        let grace = if planted::is(Planted::NoGrace) { 0 } else { options.grace };
        let _room = options.doit.then(|| Room::of(files));
        let files_before = medium.inspect().size()?.0;
        let mut snapshot = match options.doit {
            true => self.prepare(files, (options.grace, grace), session)?,
            false => self.look()?,
        };
        access.check_versions(&snapshot)?;
        let mut compact = CompactOptions { rate: options.rate, ..CompactOptions::default() };
        (compact.grace, compact.part_every) = (self.grace(files, options.grace), u64::MAX);
        // R28: before the look that shows all that was committed into them.
        let beside = self.unnamed_arrays(files, &snapshot, options.doit)?;
        if !beside.is_empty() {
            snapshot = self.look()?;
        }
        let mut purge = Purge {
            maintenance: *self,
            beside,
            options,
            compact,
            judge,
            session,
            each,
            progress: PurgeProgress::default(),
            report: PurgeReport::default(),
            most: options.max_bytes.unwrap_or(u64::MAX),
            full: None,
            skipped: HashSet::new(),
            damaged: HashSet::new(),
        };
        purge.report.files.0 = files_before;
        purge.report.kept = protection(&snapshot, access.user(session), access.env().clock.now());
        let mut races = 0;
        while purge.report.kept.is_none() {
            match purge.round(&snapshot, &mut races)? {
                Next::End => break,
                Next::Again => snapshot = self.look()?,
            }
            if options.doit && grace == 0 {
                self.clean(files, &snapshot, Graces::all(grace))?;
            }
        }
        let (full, mut report) = (purge.full, purge.report);
        if options.doit {
            report.waiting = self.clean(files, &snapshot, Graces::all(grace))?;
        }
        report.files.1 = medium.inspect().size()?.0;
        match full {
            Some(error) if report.versions + report.condemned == 0 => return Err(error),
            full => report.more |= full.is_some(),
        }
        Ok(report)
    }
}

impl Maintenance<'_> {
    /// Does what a purge needs no judge for: ends logs, removes files whose grace is over, and takes over logs that hold
    /// nothing; the store after that. `graces`: that of logs, and that of files.
    fn prepare(&self, files: &FileMedium, graces: (u64, u64), session: &Session) -> Result<Arc<Snapshot>> {
        unless_full(files.end_logs(graces.0))?;
        let mut snapshot = self.look()?;
        self.looks.access.check_versions(&snapshot)?;
        check_format(TAKEOVERS_SINCE, snapshot.format.version, "a purge")?;
        // On a full disk this room is all that there is, but for the reserve.
        self.clean(files, &snapshot, Graces::all(graces.1))?;
        if unless_full(self.end_logless(files, &snapshot))? > 0 || self.has_empty(session) {
            snapshot = self.look()?;
            unless_full(self.take_over_empty(&snapshot, session, graces.0))?;
            snapshot = self.look()?;
        }
        Ok(snapshot)
    }
}

impl Purge<'_, '_> {
    fn round(&mut self, snapshot: &Arc<Snapshot>, races: &mut usize) -> Result<Next> {
        let Looks { access, medium, .. } = self.maintenance.looks;
        let now = access.env().clock.now();
        let Some(all) = self.inputs(snapshot, now)? else { return Ok(Next::End) };
        let mut plan = self.plan(snapshot, &all, now)?;
        if !plan.damaged.is_empty() {
            self.leave_damaged(snapshot, &plan);
            return Ok(Next::Again);
        }
        if !self.options.doit {
            self.report.count(&plan);
            return Ok(Next::End);
        }
        let (chosen, least, is_all) = plan.first(self.options.extra.min(self.most), &self.skipped);
        if chosen.is_empty() {
            return Ok(Next::End);
        }
        if least > self.most {
            self.report.more = true;
            return Ok(Next::End);
        }
        let mut inputs = all.narrowed(&chosen, snapshot, (now, self.compact.grace))?;
        if !is_all {
            // Entries of the others stay for now, and so does everything above them.
            plan = self.plan(snapshot, &inputs, now)?;
            if plan.is_empty() {
                self.skipped.extend(chosen);
                return Ok(Next::Again);
            }
        }
        let (copied, number) = (plan.copied, inputs.number);
        inputs.purge = Some(plan);
        let session = self.session;
        let judge: &mut dyn Judge = &mut *self.judge;
        let how = (&self.compact, Some((&**snapshot, judge)));
        let made = make(access.env(), &**medium, &inputs, how, &mut |_| session.check(&*access.env().clock));
        let made = match made {
            // Others may find room, and give back more.
            Err(e) if e.code() == Code::DiskFull => {
                self.skipped.extend(chosen);
                self.full = Some(e);
                return Ok(Next::Again);
            }
            made => made?,
        };
        if made != Made::Done {
            *races += 1;
            return if *races == RACES { Err(raced()) } else { Ok(Next::Again) };
        }
        self.most = self.most.saturating_sub(copied);
        if let Some(plan) = &inputs.purge {
            self.report.count(plan);
            self.beside.retain(|path, _| !plan.beside.contains_key(path));
            self.progress.nbytes = self.report.nbytes;
            debug!(number, versions = plan.versions, copied, freed = plan.freed, "purged");
        }
        (self.each)(self.progress)?;
        Ok(Next::Again)
    }

    /// All ended logs and takeovers.
    fn inputs(&mut self, snapshot: &Arc<Snapshot>, now: i64) -> Result<Option<Inputs>> {
        let Looks { access, medium, .. } = self.maintenance.looks;
        let refresher = self.maintenance.looks.refresher().lock();
        let (user, options) = (access.user(self.session), &self.compact);
        let ended = snapshot.logs.iter().filter(|log| refresher.ended(log).is_some());
        self.judge.look(snapshot, ended.map(|log| log.writer).collect())?;
        let of = Chooser { medium, snapshot, refresher: &refresher, user, options, now };
        choose_all(of, &|name| !self.damaged.contains(name), &mut self.report.left)
    }

    fn plan(&mut self, snapshot: &Arc<Snapshot>, inputs: &Inputs, now: i64) -> Result<PurgePlan> {
        let Looks { access, medium, .. } = self.maintenance.looks;
        let (session, clock) = (self.session, &*access.env().clock);
        let (progress, each) = (&mut self.progress, &mut *self.each);
        PurgePlan::find((snapshot, &**medium), (inputs, &self.beside), now, self.judge, &mut || {
            session.check(clock)?;
            progress.keys += 1;
            each(*progress)
        })
    }

    /// Leaves files alone that cannot be read whole (R19).
    fn leave_damaged(&mut self, snapshot: &Snapshot, plan: &PurgePlan) {
        for source in &plan.damaged {
            let file = match &snapshot.sources[*source] {
                EntrySource::Segment(segment, _) => self.maintenance.looks.medium.shown(segment.writer, 0),
                EntrySource::Takeover(takeover) => takeover.shown.clone(),
            };
            if self.damaged.insert(file.clone()) {
                let why = "a part of its index cannot be read".to_owned();
                self.report.left.push(LeftLog { file, why });
            }
        }
    }
}

/// The outcome of a step that a purge can do without.
fn unless_full<T: Default>(made: Result<T>) -> Result<T> {
    match made {
        Err(e) if e.code() == Code::DiskFull => Ok(T::default()),
        made => made,
    }
}
