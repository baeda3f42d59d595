//! Maintenance: what keeps a store as cheap as its living content, however long it is used.

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::CondemnedRow;
use tracing::{debug, debug_span};

use super::looks::Looks;
use crate::compact::{CompactOptions, CompactProgress, CompactReport, choose, make};
use crate::medium::posix::FileMedium;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::writer::check_format;

/// How often a maker looks again because another one was first.
const RACES: usize = 16;
/// The version of the format that has takeovers.
const TAKEOVERS_SINCE: u32 = 2;
/// How long replaced files stay at least where files show late, nanoseconds (R29).
const GRACE_WHERE_LATE: u64 = 120_000_000_000;

/// Maintenance of a store in a folder.
#[derive(Debug, Clone, Copy)]
pub struct Maintenance<'a> {
    pub(super) looks: Looks<'a>,
}

impl Maintenance<'_> {
    /// Takes over the ended logs of this user, and removes files that earlier takeovers replaced a grace ago. `each` hears how
    /// far it is, and may end it by an error: what is done until then stays.
    pub fn compact(
        &self,
        options: &CompactOptions,
        session: &Session,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport> {
        let Looks { access, medium, .. } = self.looks;
        access.check_writable()?;
        access.check_user(session)?;
        let Some(files) = medium.files() else {
            return Err(Error::invalid("a store that is not in a folder has no takeovers"));
        };
        let _span = debug_span!("compact").entered();
        let mut snapshot = self.look()?;
        access.check_versions(&snapshot)?;
        check_format(TAKEOVERS_SINCE, snapshot.format.version, "a takeover")?;
        let mut report = CompactReport::default();
        (report.logs.0, report.segments.0) = counts(&snapshot);
        report.files.0 = medium.inspect().size()?.0;
        let mut progress = CompactProgress::default();
        let (user, mut races) = (access.user(session), 0);
        let mut options = options.clone();
        loop {
            let chosen = {
                let refresher = self.looks.refresher().lock();
                choose((medium, &snapshot), &refresher, user, &options, &mut report.left)?
            };
            let Some(inputs) = chosen else { break };
            let before = progress.entries;
            // A handle that was opened before the store existed learns only here what store it became.
            let identity = medium.create(access.identity().clone())?;
            let made = make(access.env(), &**medium, &identity, &inputs, &mut |entries| {
                session.check(&*access.env().clock)?;
                progress.entries = before + entries;
                each(progress)
            })?;
            if made {
                progress.logs += inputs.logs.len() as u64;
                report.nbytes += inputs.bytes();
                options.max_bytes = options.max_bytes.map(|most| most.saturating_sub(inputs.log_bytes()));
                debug!(number = inputs.number, logs = inputs.logs.len(), "took logs over");
                each(progress)?;
            } else {
                races += 1;
                if races == RACES {
                    return Err(Error::unavailable(
                        "other processes take over logs of this user all the time",
                    )
                    .with_hint("try again later; one maintainer at a time is enough"));
                }
            }
            snapshot = self.look()?;
            if made && !inputs.is_more {
                break;
            }
        }
        self.clean(files, &snapshot, options.grace, &mut report)?;
        let snapshot = self.look()?;
        (report.logs.1, report.segments.1) = counts(&snapshot);
        report.files.1 = medium.inspect().size()?.0;
        Ok(report)
    }

    /// Looks at every log.
    fn look(&self) -> Result<Arc<Snapshot>> {
        self.looks.refresh()?;
        self.looks.snapshot()
    }

    /// Removes replaced files of this user whose grace is over, and slots of logs that are replaced.
    fn clean(
        &self,
        files: &FileMedium,
        snapshot: &Snapshot,
        grace: u64,
        report: &mut CompactReport,
    ) -> Result<()> {
        let (env, user) = (self.looks.access.env(), self.looks.access.env().identity.uid());
        let grace = if files.shows_late() { grace.max(GRACE_WHERE_LATE) } else { grace };
        let (now, mut due) = (env.clock.now(), Vec::new());
        let grace = i64::try_from(grace).unwrap_or(i64::MAX);
        let own = snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user);
        let (in_logs, in_data) = (files.names_in("logs")?, files.names_in("data")?);
        for takeover in own {
            takeover.each_below(TakeoverTable::Condemned, &[], |key, value| {
                let row = CondemnedRow::decode(value)?;
                let path = String::from_utf8_lossy(key).into_owned();
                let is_there = match path.split_once('/') {
                    Some(("logs", name)) => in_logs.contains(name),
                    Some(("data", name)) => in_data.contains(name),
                    _ => false,
                };
                match now.saturating_sub(row.since) >= grace {
                    true if is_there => due.push(path),
                    false if is_there => report.waiting += 1,
                    _ => {}
                }
                Ok(())
            })?;
        }
        files.remove_condemned(due)?;
        files.remove_stale_makers()?;
        files.drop_slots(&|log: Id| Ok(snapshot.log(log).is_none() && snapshot.head(log) > 0))
    }
}

/// Logs and sources of entries.
fn counts(snapshot: &Snapshot) -> (u64, u64) {
    (snapshot.logs.len() as u64, snapshot.sources.len() as u64)
}
