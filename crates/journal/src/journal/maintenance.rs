//! Maintenance: what keeps a store as cheap as its living content, however long it is used.

use std::cmp::Reverse;
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::CondemnedRow;
use tracing::{debug, debug_span};

use super::looks::Looks;
use crate::compact::{
    CLOSING_GRACE_LEAST, CLOSING_LOGS, CLOSING_ONE_IN, CLOSING_WAITING, Chooser, CompactOptions,
    CompactProgress, CompactReport, Made, choose, living_names, make,
};
use crate::medium::posix::reserve::Room;
use crate::medium::posix::{FileMedium, There, removal_rank};
use crate::session::Session;
use crate::snapshot::{Snapshot, standing_holds};
use crate::writer::check_format;

/// How often a maker looks again because another one was first.
pub(super) const RACES: usize = 16;
/// The version of the format that has takeovers.
pub(super) const TAKEOVERS_SINCE: u32 = 2;
/// How long replaced files stay at least where files show late, nanoseconds (R29).
const GRACE_WHERE_LATE: u64 = 120_000_000_000;
/// A hold keeps files that were replaced this long before it, nanoseconds: clocks differ.
const HELD_BEFORE: i64 = 3_600_000_000_000;

/// Maintenance of a store in a folder.
#[derive(Debug, Clone, Copy)]
pub struct Maintenance<'a> {
    pub(super) looks: Looks<'a>,
}

impl Maintenance<'_> {
    /// Ends logs whose processes are gone, takes over the ended logs of this user, and removes files that earlier takeovers
    /// replaced a grace ago. `each` hears how far it is, and may end it by an error: what is done until then stays.
    pub fn compact(
        &self,
        options: &CompactOptions,
        session: &Session,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport> {
        let Looks { access, medium, .. } = self.looks;
        access.check_writable()?;
        access.check_user(session)?;
        let files = self.files()?;
        let _span = debug_span!("compact").entered();
        let grace = if planted::is(Planted::NoGrace) { 0 } else { options.grace };
        files.end_logs(options.grace)?;
        let mut snapshot = self.look()?;
        access.check_versions(&snapshot)?;
        check_format(TAKEOVERS_SINCE, snapshot.format.version, "a takeover")?;
        if self.end_logless(files, &snapshot)? > 0 {
            snapshot = self.look()?;
        }
        let mut report = CompactReport::default();
        (report.logs.0, report.segments.0) = counts(&snapshot);
        report.files.0 = medium.inspect().size()?.0;
        // On a full disk this room is all that there is.
        self.clean(files, &snapshot, Graces::all(grace))?;
        let snapshot = self.take_over(snapshot, options, session, each, &mut report)?;
        report.waiting = self.clean(files, &snapshot, Graces::all(grace))?;
        let snapshot = self.look()?;
        (report.logs.1, report.segments.1) = counts(&snapshot);
        report.files.1 = medium.inspect().size()?.0;
        Ok(report)
    }

    /// Counts what is there for maintenance to do, and reads no entries.
    pub fn survey(&self, grace: u64, session: &Session) -> Result<Survey> {
        let Looks { access, .. } = self.looks;
        let (files, user) = (self.files()?, access.user(session));
        let snapshot = self.look()?;
        let mut survey = Survey::default();
        {
            let refresher = self.looks.refresher().lock();
            for log in snapshot.logs.iter().filter(|log| log.uid == user && refresher.ended(log).is_some()) {
                survey.ended += 1;
                survey.ended_bytes += log.ends.end();
            }
            let empty = refresher.ended_empty().into_iter().filter(|(_, (owner, _))| *owner == user);
            survey.ended += empty.count() as u64;
        }
        survey.takeovers =
            snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user).count() as u64;
        survey.is_busy = files.parts(user)?.iter().any(|found| !found.is_gone);
        let (now, grace) = (access.env().clock.now(), self.grace(files, grace));
        for (since, _) in condemned(files, &snapshot, user)? {
            survey.waiting += 1;
            let age = u64::try_from(now.saturating_sub(since)).unwrap_or(0);
            survey.due += u64::from(age >= grace);
        }
        Ok(survey)
    }

    /// Removes files that takeovers replaced a grace ago, and ends logs whose processes are gone; how many files wait.
    pub fn sweep(&self, grace: u64, session: &Session) -> Result<u64> {
        let access = self.looks.access;
        access.check_writable()?;
        access.check_user(session)?;
        let (files, snapshot) = (self.files()?, self.look()?);
        access.check_versions(&snapshot)?;
        // Room comes before what needs some.
        let waiting = self.clean(files, &snapshot, Graces::all(grace))?;
        files.end_logs(grace)?;
        Ok(waiting)
    }

    /// Room for what frees room, while it lives, where the disk is full; `None` for a store that is not in a folder.
    pub fn room(&self) -> Option<Room<'_>> {
        self.files().ok().map(Room::of)
    }

    /// The same for a record alone.
    pub fn room_for_record(&self) -> Option<Room<'_>> {
        self.files().ok().map(Room::for_little)
    }

    /// The files of a store in a folder: other stores have no takeovers.
    pub(super) fn files(&self) -> Result<&FileMedium> {
        let url = &self.looks.access.options().url;
        // A checkpoint copies the logs that its snapshot names, and no takeovers (J-27).
        if self.looks.access.is_in_memory() {
            return Err(Error::invalid(format!(
                "the store at {url} is in memory: its logs are not taken over"
            ))
            .with_hint("take a checkpoint of it, and compact that folder"));
        }
        self.looks.medium.files().ok_or_else(|| {
            Error::invalid(format!("the store at {url} is not in a folder: it has no takeovers"))
                .with_hint("copy its fields to a store in a folder")
        })
    }

    /// Takes over a few ended logs, if there are many: for a writer that closes, after its last flush was acknowledged. Its
    /// errors are nobody's: the next writer tries again.
    pub(super) fn merge_on_close(&self, session: &Session) {
        let is_due = || -> Result<bool> {
            let refresher = self.looks.refresher().lock();
            let user = self.looks.access.user(session);
            let own = refresher.current().logs.iter().filter(|log| log.uid == user);
            Ok(own.filter(|log| refresher.ended(log).is_some()).count() >= CLOSING_LOGS)
        };
        let mut drawn = [0];
        self.looks.access.env().rand.fill(&mut drawn);
        let merge = || -> Result<()> {
            let Some(files) = self.looks.medium.files().filter(|_| drawn[0] % CLOSING_ONE_IN == 0) else {
                return Ok(());
            };
            if !is_due()? {
                return Ok(());
            }
            let _span = debug_span!("closing merge").entered();
            let (options, snapshot) = (CompactOptions::closing(), self.look()?);
            if snapshot.format.version < TAKEOVERS_SINCE {
                return Ok(());
            }
            let mut report = CompactReport::default();
            let snapshot = self.take_over(snapshot, &options, session, &mut |_| Ok(()), &mut report)?;
            let graces = Graces { of_all: options.grace, of_oldest: CLOSING_GRACE_LEAST };
            self.clean(files, &snapshot, graces).map(drop)
        };
        if let Err(error) = merge() {
            debug!(%error, "a closing merge was not made");
        }
    }

    /// Makes takeovers while there are ended logs; the snapshot that shows them.
    pub(super) fn take_over(
        &self,
        mut snapshot: Arc<Snapshot>,
        options: &CompactOptions,
        session: &Session,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
        report: &mut CompactReport,
    ) -> Result<Arc<Snapshot>> {
        let Looks { access, medium, .. } = self.looks;
        let mut progress = CompactProgress::default();
        let (user, mut races, mut late) = (access.user(session), 0, None);
        let mut options = options.clone();
        options.grace = self.grace(self.files()?, options.grace);
        loop {
            let chosen = {
                let refresher = self.looks.refresher().lock();
                let of = Chooser {
                    medium,
                    snapshot: &snapshot,
                    refresher: &refresher,
                    user,
                    options: &options,
                    now: access.env().clock.now(),
                };
                choose(of, late, &mut report.left)?
            };
            let Some(inputs) = chosen else { return Ok(snapshot) };
            let before = progress.entries;
            let how = (&options, None);
            let made = make(access.env(), &**medium, &inputs, how, &mut |entries| {
                session.check(&*access.env().clock)?;
                progress.entries = before + entries;
                each(progress)
            })?;
            late = match made {
                Made::Done => None,
                Made::Late(id) => Some(id),
            };
            if made == Made::Done {
                progress.logs += inputs.count();
                report.nbytes += inputs.bytes();
                options.max_bytes = options.max_bytes.map(|most| most.saturating_sub(inputs.log_bytes()));
                debug!(number = inputs.number, logs = inputs.count(), "took logs over");
                each(progress)?;
            } else {
                races += 1;
                if races == RACES {
                    return Err(raced());
                }
            }
            snapshot = self.look()?;
            if made == Made::Done && !inputs.is_more {
                return Ok(snapshot);
            }
        }
    }

    /// How long a file stays that nothing names any more, given the grace that was asked for; `None` for a store that is not in
    /// a folder.
    pub fn grace_of(&self, grace: u64) -> Option<u64> {
        self.files().ok().map(|files| self.grace(files, grace))
    }

    /// A grace, which is longer where files show late.
    pub(super) fn grace(&self, files: &FileMedium, grace: u64) -> u64 {
        let is_late = files.shows_late() && !planted::is(Planted::NoGrace);
        if is_late { grace.max(GRACE_WHERE_LATE) } else { grace }
    }

    /// Looks at every log.
    pub(super) fn look(&self) -> Result<Arc<Snapshot>> {
        self.looks.refresh()?;
        self.looks.snapshot()
    }

    /// Removes replaced files of this user whose grace is over, and slots of logs that are replaced; how many files wait.
    pub(super) fn clean(&self, files: &FileMedium, snapshot: &Snapshot, graces: Graces) -> Result<u64> {
        let (env, user) = (self.looks.access.env(), self.looks.access.env().identity.uid());
        let [of_all, of_oldest] = [graces.of_all, graces.of_oldest].map(|grace| self.grace(files, grace));
        let mut condemned = condemned(files, snapshot, user)?;
        // The newest are those that readers of before may look for. Of one age a log comes last: its end file stays with it.
        condemned.sort_unstable_by_key(|(since, path)| Reverse((*since, removal_rank(path))));
        let age = |since: i64| u64::try_from(env.clock.now().saturating_sub(since)).unwrap_or(0);
        // A user who copies the store under a hold finds all that was there when it began (R38).
        let held = standing_holds(snapshot, env.clock.now()).map(|hold| hold.time).min();
        let is_held = |since: i64| held.is_some_and(|held| since.saturating_add(HELD_BEFORE) >= held);
        let is_due = |(rank, (since, _)): &(usize, (i64, String))| {
            !is_held(*since) && age(*since) >= if *rank < CLOSING_WAITING { of_all } else { of_oldest }
        };
        let (due, waiting): (Vec<_>, Vec<_>) = condemned.into_iter().enumerate().partition(is_due);
        let due: Vec<String> = due.into_iter().map(|(_, (_, path))| path).collect();
        if !due.is_empty() && !planted::is(Planted::UnlinkBeforeSync) {
            // The takeover's own maker may have died before this.
            files.sync_logs()?;
        }
        files.remove_condemned(due)?;
        let living = living_names(snapshot, &self.looks.refresher().lock(), user);
        files.remove_stale_makers(user, &|name| living.contains(name))?;
        files.drop_slots(&|log: Id| {
            Ok(snapshot.log(log).is_none() && snapshot.taken.takeovers().log_of(log, user)?.is_some())
        })?;
        Ok(waiting.len() as u64)
    }
}

/// Counts of files that maintenance may look after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survey {
    /// This user's logs that have ended and that no takeover replaces.
    pub ended: u64,
    /// Their bytes.
    pub ended_bytes: u64,
    /// This user's takeovers.
    pub takeovers: u64,
    /// Files that takeovers replaced and that are still there.
    pub waiting: u64,
    /// Those of them whose grace is over.
    pub due: u64,
    /// Whether another process takes over logs of this user.
    pub is_busy: bool,
}

/// How long replaced files stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Graces {
    /// All of them, nanoseconds.
    of_all: u64,
    /// The oldest, where more than [`CLOSING_WAITING`] wait.
    of_oldest: u64,
}

impl Graces {
    /// One grace for all, however many wait.
    pub(super) fn all(grace: u64) -> Graces {
        Graces { of_all: grace, of_oldest: grace }
    }
}

/// The files that takeovers of a user condemned and that are still there, each since when.
pub(super) fn condemned(files: &FileMedium, snapshot: &Snapshot, user: u32) -> Result<Vec<(i64, String)>> {
    let there = There::of(files)?;
    let mut condemned = Vec::new();
    for takeover in snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user) {
        takeover.each_below(TakeoverTable::Condemned, &[], |key, value| {
            let since = CondemnedRow::decode(value)?.since;
            let path = String::from_utf8_lossy(key).into_owned();
            condemned.extend(there.has(&path).then_some((since, path)));
            Ok(())
        })?;
    }
    Ok(condemned)
}

/// Others were first too often.
pub(super) fn raced() -> Error {
    Error::unavailable("other processes take over logs of this user all the time")
        .with_hint("try again later; one maintainer at a time is enough")
}

/// Logs and sources of entries.
fn counts(snapshot: &Snapshot) -> (u64, u64) {
    (snapshot.logs.len() as u64, snapshot.sources.len() as u64)
}
