//! The inputs of one takeover: ended logs and older takeovers.

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::log::{self, LogHeader};
use fieldstone_format::takeover::part::TakeoverPart;
use fieldstone_format::takeover::rows::Ended;

use super::CompactOptions;
use super::ended_log::{EmptyLog, EndedLog};
use super::endings::{Endings, is_due, next_floor};
use super::plan::PurgePlan;
use crate::medium::posix::FoundPart;
use crate::medium::{self, Medium};
use crate::snapshot::{Refresher, Snapshot, SnapshotLog};
use crate::takeover::Takeover;

/// Bytes that a log without a commit counts for: those of a takeover that holds nothing else.
const EMPTY_BYTES: u64 = 4096;
/// Most logs that one takeover takes over; a pass makes several where there are more.
const LOGS_MAX: usize = 1024;

/// A log that stays as it is, although it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLog {
    /// Its file.
    pub file: String,
    /// The reason.
    pub why: String,
}

/// The inputs of one takeover.
#[derive(Debug)]
pub struct Inputs {
    /// The user whose logs they are.
    pub user: u32,
    /// The number of the takeover to be made.
    pub number: u64,
    /// The store, and its schema.
    pub store: (Id, String),
    /// Logs, by writer.
    pub logs: Vec<EndedLog>,
    /// Logs without a commit.
    pub empty: Vec<EmptyLog>,
    /// Takeovers, the oldest first.
    pub takeovers: Vec<Arc<Takeover>>,
    /// The takeovers of the user that stay, with their digests.
    pub live: Vec<(u64, u64)>,
    /// More logs are left for another takeover.
    pub is_more: bool,
    /// The fate of ended transactions.
    pub endings: Endings,
    /// How far a maker of the same inputs had come that is gone.
    pub part: Option<TakeoverPart>,
    /// The entries that the takeover leaves out, if it is a purge.
    pub purge: Option<PurgePlan>,
}

/// The file of a log, by the medium that it is in.
pub fn name_of_log(writer: Id) -> String {
    format!("logs/{}", log::file_name(writer))
}

/// The files of the inputs, by the medium that they are in.
fn names<'a>(
    logs: impl Iterator<Item = Id> + 'a,
    takeovers: &'a [Arc<Takeover>],
) -> impl Iterator<Item = String> + 'a {
    let logs = logs.map(name_of_log);
    logs.chain(takeovers.iter().map(|takeover| takeover.shown.clone()))
}

impl Inputs {
    /// Their files.
    pub fn names(&self) -> Vec<String> {
        let logs = self.logs.iter().map(|log| log.log.writer);
        names(logs.chain(self.empty.iter().map(|log| log.writer)), &self.takeovers).collect()
    }

    /// Those of them that have these names.
    pub fn narrowed(
        mut self,
        names: &HashSet<String>,
        snapshot: &Snapshot,
        at: (i64, u64),
    ) -> Result<Inputs> {
        self.logs.retain(|log| names.contains(&name_of_log(log.log.writer)));
        let is_chosen = |takeover: &Arc<Takeover>| names.contains(&takeover.shown);
        let (chosen, others) = self.takeovers.into_iter().partition(is_chosen);
        self.takeovers = chosen;
        self.live.extend(others.iter().map(|takeover: &Arc<Takeover>| (takeover.number(), takeover.digest)));
        self.live.sort_unstable();
        self.endings = Endings::find(snapshot, self.user, (&self.logs, &self.takeovers), at)?;
        Ok(self)
    }

    /// Number of the logs.
    pub fn count(&self) -> u64 {
        (self.logs.len() + self.empty.len()) as u64
    }

    /// Bytes of the logs.
    pub fn log_bytes(&self) -> u64 {
        self.logs.iter().map(EndedLog::bytes).sum::<u64>() + self.empty.len() as u64 * EMPTY_BYTES
    }

    /// Bytes of all that is read.
    pub fn bytes(&self) -> u64 {
        self.log_bytes() + self.takeovers.iter().map(|takeover| weight(takeover)).sum::<u64>()
    }
}

/// Bytes of a takeover and its data logs.
pub fn weight(takeover: &Takeover) -> u64 {
    takeover.bytes + takeover.record.data_logs.iter().map(|(_, length)| length).sum::<u64>()
}

/// The state of a store out of which takeovers are made.
#[derive(Clone, Copy)]
pub struct Chooser<'a> {
    pub medium: &'a Arc<dyn Medium>,
    pub snapshot: &'a Snapshot,
    pub refresher: &'a Refresher,
    /// The user whose logs are taken over.
    pub user: u32,
    pub options: &'a CompactOptions,
    /// Nanoseconds since 1970.
    pub now: i64,
}

/// Chooses what the next takeover of a user takes over; `None` if nothing is to be done. Notes in `left` which ended logs
/// cannot be taken over. `late`: the takeover that this caller has begun, and whose number others took.
pub fn choose(of: Chooser<'_>, late: Option<Id>, left: &mut Vec<LeftLog>) -> Result<Option<Inputs>> {
    let (mut busy, mut begun) = (HashSet::new(), Vec::new());
    for FoundPart { part, is_gone } in
        of.medium.files().map_or(Ok(Vec::new()), |files| files.parts(of.user))?
    {
        busy.extend(part.inputs.iter().cloned());
        if is_gone && !part.inputs.is_empty() || late == Some(part.id) {
            begun.push(part);
        }
    }
    // A closing writer has no time for what took another one long.
    let is_whole = of.options.only.is_none() && of.options.max_bytes.is_none();
    for part in begun.into_iter().filter(|part| is_whole || late == Some(part.id)) {
        let names: HashSet<String> = part.inputs.iter().cloned().collect();
        let mut failed = Vec::new();
        let all = CompactOptions { only: None, max_bytes: None, max_merge: None, ..of.options.clone() };
        let same = Chooser { options: &all, ..of };
        let inputs = same.inputs(&|name| names.contains(name), true, &mut failed)?;
        match inputs.filter(|inputs| inputs.names() == part.inputs) {
            Some(inputs) => return Ok(Some(Inputs { part: Some(part), is_more: true, ..inputs })),
            // Others took some of them over, or one is damaged now.
            None => {
                busy.retain(|name| !names.contains(name));
                of.medium.files().map_or(Ok(()), |files| files.remove_left(part.id, of.user))?;
            }
        }
    }
    of.inputs(&|name| !busy.contains(name), false, left)
}

/// All ended logs and takeovers of a user that a purge may read: what other makers have begun with is theirs. `None` if there
/// is nothing. Notes in `left` which ended logs cannot be taken over.
pub fn choose_all(
    of: Chooser<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
    left: &mut Vec<LeftLog>,
) -> Result<Option<Inputs>> {
    let parts = of.medium.files().map_or(Ok(Vec::new()), |files| files.parts(of.user))?;
    let busy: HashSet<String> = parts.into_iter().flat_map(|found| found.part.inputs).collect();
    let inputs = of.inputs(&|name| is_wanted(name) && !busy.contains(name), true, left)?;
    // Logs without a commit are left to others: nothing goes with them.
    Ok(inputs.map(|inputs| Inputs { empty: Vec::new(), ..inputs }))
}

impl Chooser<'_> {
    /// The inputs of the next takeover among files with these names; `all` of them, or what it is worth while to take over.
    fn inputs(
        &self,
        may: &dyn Fn(&str) -> bool,
        all: bool,
        left: &mut Vec<LeftLog>,
    ) -> Result<Option<Inputs>> {
        let Chooser { medium, snapshot, user, options, .. } = *self;
        let own: Vec<Arc<Takeover>> = snapshot
            .taken
            .takeovers()
            .all()
            .iter()
            .filter(|takeover| takeover.user == user)
            .cloned()
            .collect();
        // A handle that was opened before the store was there does not know which one it is: its logs do.
        let Some(store) = store_of(snapshot) else { return Ok(None) };
        let most = if all { usize::MAX } else { LOGS_MAX };
        let (logs, mut is_more) = self.logs(may, most, left)?;
        let mut empty = self.empty(may)?;
        is_more |= logs.len() + empty.len() > most;
        empty.truncate(most.saturating_sub(logs.len()));
        let newest = own.iter().map(|takeover| takeover.number()).max().unwrap_or(0);
        let (takeovers, live, endings) = (Vec::new(), Vec::new(), Endings::default());
        let mut inputs = Inputs {
            user,
            number: 0,
            store,
            logs,
            empty,
            takeovers,
            live,
            is_more,
            endings,
            part: None,
            purge: None,
        };
        let first = if all { own.len() } else { self.first_merged(&own, inputs.log_bytes(), may)? };
        for (i, takeover) in own.iter().enumerate() {
            if i >= first || all && may(&takeover.shown) {
                inputs.takeovers.push(takeover.clone());
            } else {
                inputs.live.push((takeover.number(), takeover.digest));
            }
        }
        if inputs.count() == 0 && inputs.takeovers.is_empty() {
            return Ok(None);
        }
        inputs.number = medium.files().map_or(newest + 1, |files| files.next_takeover(user, newest));
        let at = (self.now, options.grace);
        inputs.endings = Endings::find(snapshot, user, (&inputs.logs, &inputs.takeovers), at)?;
        Ok(Some(inputs))
    }

    /// The first of a user's takeovers that become a part of a new one, which reads this number of bytes of logs.
    fn first_merged(
        &self,
        own: &[Arc<Takeover>],
        mut bytes: u64,
        may: &dyn Fn(&str) -> bool,
    ) -> Result<usize> {
        // As segments of a log: weights more than double from one takeover to the next older one, so that few are left.
        let mut first = own.len();
        let fits = |bytes: u64| self.options.max_merge.is_none_or(|most| bytes <= most);
        while first > 0
            && weight(&own[first - 1]) <= bytes.saturating_mul(2)
            && fits(bytes + weight(&own[first - 1]))
            && may(&own[first - 1].shown)
        {
            first -= 1;
            bytes += weight(&own[first]);
        }
        let at = (self.now, self.options.grace);
        let floor = next_floor(self.snapshot, self.user, at)?;
        for (i, takeover) in own[..first].iter().enumerate() {
            let between = &own[i..first];
            let all = between.iter().map(|takeover| weight(takeover)).sum::<u64>();
            let may_all = between.iter().all(|takeover| may(&takeover.shown));
            if may_all && fits(bytes + all) && is_due(takeover, floor, at)? {
                return Ok(i);
            }
        }
        Ok(first)
    }

    /// Logs with commits, read whole, up to a number; also, whether there are more.
    fn logs(
        &self,
        may: &dyn Fn(&str) -> bool,
        most: usize,
        left: &mut Vec<LeftLog>,
    ) -> Result<(Vec<EndedLog>, bool)> {
        let Chooser { medium, snapshot, refresher, user, options, .. } = *self;
        let known: HashSet<String> = left.iter().map(|log| log.file.clone()).collect();
        let (mut logs, mut bytes) = (Vec::new(), 0);
        for log in snapshot.logs.iter().filter(|log| log.uid == user) {
            let file = medium.shown(log.writer, 0);
            let is_chosen = options.asks(log.writer) && !known.contains(&file) && may(&file);
            let Some(how) = how_ended(refresher, log).filter(|_| is_chosen) else { continue };
            if logs.len() == most {
                return Ok((logs, true));
            }
            // Others may be small enough.
            if options.max_bytes.is_some_and(|most| bytes + log.ends.end() > most) {
                continue;
            }
            let read = match hindrance(snapshot, log, &file) {
                Some(why) => Err(Error::corrupt(why)),
                None => EndedLog::read(medium.inspect(), snapshot, log, how),
            };
            match read {
                Ok(log) => {
                    bytes += log.bytes();
                    logs.push(log);
                }
                // Damage stays where it is until somebody mends or accepts it: else it would become absence (R19).
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Denied) => {
                    left.push(LeftLog { file, why: e.message().to_owned() });
                }
                Err(e) => return Err(e),
            }
        }
        Ok((logs, false))
    }

    /// Logs that ended before their first commit.
    fn empty(&self, may: &dyn Fn(&str) -> bool) -> Result<Vec<EmptyLog>> {
        let Some(files) = self.medium.files() else { return Ok(Vec::new()) };
        let mut empty = Vec::new();
        for (writer, (owner, how)) in self.refresher.ended_empty() {
            if owner == self.user && self.options.asks(writer) && may(&self.medium.shown(writer, 0)) {
                let header = files.header_of_empty(writer)?;
                let header = header.unwrap_or_else(|| LogHeader { uid: owner, ..LogHeader::unknown(writer) });
                empty.push(EmptyLog { writer, how: as_row(how), header });
            }
        }
        Ok(empty)
    }
}

/// The files of a user's logs and takeovers that are not replaced.
pub fn living_names(snapshot: &Snapshot, refresher: &Refresher, user: u32) -> HashSet<String> {
    let logs = snapshot.logs.iter().filter(|log| log.uid == user).map(|log| log.writer);
    let empty = refresher.ended_empty().into_iter().filter(|(_, (owner, _))| *owner == user);
    let own: Vec<Arc<Takeover>> =
        snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user).cloned().collect();
    names(logs.chain(empty.map(|(writer, _)| writer)), &own).collect()
}

/// The id of the store, and the text of its schema, by any log or takeover.
pub fn store_of(snapshot: &Snapshot) -> Option<(Id, String)> {
    let living = snapshot.logs.iter().find_map(|log| {
        let store = log.header.known_store()?;
        Some((store, log.header.schema.clone()))
    });
    living.or_else(|| {
        let takeover = snapshot.taken.takeovers().all().last()?;
        Some((takeover.header.store, takeover.header.schema.clone()))
    })
}

/// How a log has ended; `None` if its writer may go on (R11).
fn how_ended(refresher: &Refresher, log: &SnapshotLog) -> Option<Ended> {
    if planted::is(Planted::LivingLogTaken) {
        return Some(Ended::Closed);
    }
    refresher.ended(log).map(as_row)
}

fn as_row(ended: medium::Ended) -> Ended {
    match ended {
        medium::Ended::Closed => Ended::Closed,
        medium::Ended::EndFile => Ended::EndFile,
        medium::Ended::Accepted => Ended::Accepted,
    }
}

/// The reason why a log cannot be taken over, as far as it shows without reading it.
fn hindrance(snapshot: &Snapshot, log: &SnapshotLog, file: &str) -> Option<String> {
    let loss = snapshot.losses.iter().find(|loss| loss.log == log.writer).map(|loss| loss.why.clone());
    let damage = snapshot.problems.iter().find(|problem| problem.damage && problem.file == file);
    log.header_damage.clone().or(loss).or_else(|| damage.map(|problem| problem.why.clone()))
}
