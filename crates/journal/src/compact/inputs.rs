//! The inputs of one takeover: ended logs and older takeovers.

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::takeover::rows::Ended;

use super::CompactOptions;
use super::ended_log::EndedLog;
use super::endings::{Endings, is_due};
use crate::medium::{self, Medium};
use crate::snapshot::{Refresher, Snapshot, SnapshotLog};
use crate::takeover::Takeover;

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
    /// Logs, by writer.
    pub logs: Vec<EndedLog>,
    /// Takeovers, the oldest first.
    pub takeovers: Vec<Arc<Takeover>>,
    /// The takeovers of the user that stay, with their digests.
    pub live: Vec<(u64, u64)>,
    /// More logs are left for another takeover.
    pub is_more: bool,
    /// The fate of ended transactions.
    pub endings: Endings,
}

impl Inputs {
    /// Bytes of the logs.
    pub fn log_bytes(&self) -> u64 {
        self.logs.iter().map(EndedLog::bytes).sum()
    }

    /// Bytes of all that is read.
    pub fn bytes(&self) -> u64 {
        self.log_bytes() + self.takeovers.iter().map(|takeover| weight(takeover)).sum::<u64>()
    }
}

/// Bytes of a takeover and its data logs.
fn weight(takeover: &Takeover) -> u64 {
    takeover.bytes + takeover.record.data_logs.iter().map(|(_, length)| length).sum::<u64>()
}

/// Chooses what the next takeover of a user takes over; `None` if nothing is to be done. Notes in `left` which ended logs
/// cannot be taken over.
pub fn choose(
    (medium, snapshot): (&Arc<dyn Medium>, &Snapshot),
    refresher: &Refresher,
    user: u32,
    (options, now): (&CompactOptions, i64),
    left: &mut Vec<LeftLog>,
) -> Result<Option<Inputs>> {
    let known: HashSet<String> = left.iter().map(|log| log.file.clone()).collect();
    let (mut logs, mut bytes, mut is_more) = (Vec::new(), 0, false);
    for log in snapshot.logs.iter().filter(|log| log.uid == user) {
        let file = medium.shown(log.writer, 0);
        let is_asked = options.only.as_ref().is_none_or(|only| only.contains(&log.writer));
        let Some(how) = how_ended(refresher, log).filter(|_| is_asked && !known.contains(&file)) else {
            continue;
        };
        if logs.len() == LOGS_MAX {
            is_more = true;
            break;
        }
        // Others may be small enough.
        if options.max_bytes.is_some_and(|most| bytes + log.ends.end() > most) {
            continue;
        }
        let read = match hindrance(snapshot, log, &file) {
            Some(why) => Err(Error::corrupt(why)),
            None => EndedLog::read(medium.inspect(), log, how),
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
    let own: Vec<&Arc<Takeover>> =
        snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user).collect();
    let at = (now, options.grace);
    let first = first_merged(&own, bytes, options.max_merge, (snapshot.taken.floor(user), at))?;
    if logs.is_empty() && first == own.len() {
        return Ok(None);
    }
    let newest = own.iter().map(|takeover| takeover.number()).max().unwrap_or(0);
    let (stay, taken) = own.split_at(first);
    let takeovers: Vec<Arc<Takeover>> = taken.iter().map(|takeover| (*takeover).clone()).collect();
    let endings = Endings::find(snapshot, user, (&logs, &takeovers), at)?;
    Ok(Some(Inputs {
        user,
        number: medium.files().map_or(newest + 1, |files| files.next_takeover(user, newest)),
        logs,
        takeovers,
        live: stay.iter().map(|takeover| (takeover.number(), takeover.digest)).collect(),
        is_more,
        endings,
    }))
}

/// The first of the takeovers that become a part of a new one, which reads this number of bytes of logs.
fn first_merged(
    own: &[&Arc<Takeover>],
    mut bytes: u64,
    most: Option<u64>,
    (floor, at): (u64, (i64, u64)),
) -> Result<usize> {
    // As segments of a log: weights more than double from one takeover to the next older one, so that few are left.
    let mut first = own.len();
    let fits = |bytes: u64| most.is_none_or(|most| bytes <= most);
    while first > 0
        && weight(own[first - 1]) <= bytes.saturating_mul(2)
        && fits(bytes + weight(own[first - 1]))
    {
        first -= 1;
        bytes += weight(own[first]);
    }
    for (i, takeover) in own[..first].iter().enumerate() {
        let all = own[i..first].iter().map(|takeover| weight(takeover)).sum::<u64>();
        if fits(bytes + all) && is_due(takeover, floor, at)? {
            return Ok(i);
        }
    }
    Ok(first)
}

/// How a log has ended; `None` if its writer may go on (R11).
fn how_ended(refresher: &Refresher, log: &SnapshotLog) -> Option<Ended> {
    if planted::is(Planted::LivingLogTaken) {
        return Some(Ended::Closed);
    }
    refresher.ended(log).map(|ended| match ended {
        medium::Ended::Closed => Ended::Closed,
        medium::Ended::EndFile => Ended::EndFile,
    })
}

/// The reason why a log cannot be taken over, as far as it shows without reading it.
fn hindrance(snapshot: &Snapshot, log: &SnapshotLog, file: &str) -> Option<String> {
    let loss = snapshot.losses.iter().find(|loss| loss.log == log.writer).map(|loss| loss.why.clone());
    let damage = snapshot.problems.iter().find(|problem| problem.damage && problem.file == file);
    let accepted = snapshot.accepted.end(log.writer).map(|_| "a loss of it was accepted".to_owned());
    log.header_damage.clone().or(loss).or_else(|| damage.map(|problem| problem.why.clone())).or(accepted)
}
