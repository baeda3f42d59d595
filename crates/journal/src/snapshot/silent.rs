//! Attempts that have ended: silent for 30 days, while a newer one of their user has begun (R64).
//!
//! An entry that outranks older attempts leaves a mark in a purge, so that what these flush late stays hidden. Marks need not
//! stay for ever: an attempt that was silent for so long flushes nothing any more. Invariants:
//! * a commit of an attempt is durable less than 30 days after its last one, or, while no newer attempt was known, after the look
//!   for one; else it does not count;
//! * a mark goes once its own attempt is an hour older than that, and so is the last commit of each older one. Clocks may
//!   differ by that hour, less the time by which files show late;
//! * where a clock may have been set meanwhile, the file system's counts.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::AttemptRow;

use super::{Order, Snapshot};
use crate::medium::clock_stamp;

/// Silence after which an attempt has ended, nanoseconds.
const SILENT: i64 = 30 * 24 * 3_600_000_000_000;
/// How much longer marks stay, nanoseconds.
const MARGIN: i64 = 3_600_000_000_000;

/// How long a commit of a user's attempt to a log may take, nanoseconds; nothing is left where the attempt has ended. `now`:
/// by the writer's clock, before this snapshot was taken; `file_system`: by that of the file system.
pub fn attempt_lasts(
    snapshot: &Snapshot,
    (user, name): (u32, &str),
    log: Id,
    now: i64,
    file_system: impl FnOnce() -> i64,
) -> Result<i64> {
    let of_attempt = || {
        snapshot.logs.iter().filter(|log| {
            log.uid == user && log.record.attempt.as_ref().is_some_and(|attempt| attempt.name == name)
        })
    };
    let age = |time: i64| now.saturating_sub(time);
    let own = snapshot.log(log).map(|own| age(own.record.time));
    let mut ages = own.into_iter().chain(of_attempt().map(|log| age(log.record.time)));
    // The first is enough: whoever flushes often looks no further.
    if let Some(age) = ages.find(|age| (0..SILENT).contains(age)) {
        return Ok(SILENT - age);
    }
    let Some(began) = snapshot.attempt_began(user, name) else { return Ok(SILENT) };
    let now = file_system();
    let mut last =
        of_attempt().map(|log| (log.record.time, log.record.stamp)).max_by_key(|of| seen(*of, now));
    let mut is_newest = snapshot.logs.iter().filter(|log| log.uid == user).all(|log| {
        let other = log.record.attempt.as_ref();
        let other = other.and_then(|other| snapshot.attempt_began(user, &other.name));
        other.is_none_or(|other| other <= began)
    });
    for takeover in snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user) {
        takeover.each_below(TakeoverTable::Attempts, &[], |_, value| {
            let row = AttemptRow::decode(value)?;
            is_newest &= (row.began, row.writer) <= began;
            Ok(())
        })?;
    }
    if is_newest {
        return Ok(SILENT);
    }
    for takeover in snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user) {
        takeover.each_log(|log| {
            if takeover.attempt_name(&log)?.as_deref() == Some(name) {
                let of = (log.row.time, log.row.stamp);
                last = last.into_iter().chain([of]).max_by_key(|of| seen(*of, now));
            }
            Ok(())
        })?;
    }
    Ok(last.map_or(0, |last| SILENT.saturating_sub(now.saturating_sub(seen(last, now)))))
}

/// When the oldest attempt of a user began that may flush yet, at a moment by the file system's clock; `None` if none may.
pub fn oldest_attempt(snapshot: &Snapshot, user: u32, now: i64) -> Result<Option<Order>> {
    let before = now.saturating_sub(SILENT).saturating_sub(MARGIN);
    let mut oldest: Option<Order> = None;
    let mut note = |of: (i64, u64), name: &str| {
        let began = snapshot.attempt_began(user, name).filter(|_| seen(of, now) > before);
        oldest = oldest.into_iter().chain(began).min();
    };
    for log in snapshot.logs.iter().filter(|log| log.uid == user) {
        if let Some(attempt) = &log.record.attempt {
            note((log.record.time, log.record.stamp), &attempt.name);
        }
    }
    for takeover in snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user) {
        takeover.each_log(|log| {
            if let Some(name) = takeover.attempt_name(&log)? {
                note((log.row.time, log.row.stamp), &name);
            }
            Ok(())
        })?;
    }
    Ok(oldest)
}

/// When a commit was made, at most now: the younger of its time and its stamp, as a clock may be wrong.
fn seen((time, stamp): (i64, u64), now: i64) -> i64 {
    time.max(i64::try_from(stamp).unwrap_or(i64::MAX)).min(now)
}

/// Whether an attempt began so long ago that its marks may go.
pub fn is_long_ago((began, _): Order, now: i64) -> bool {
    began <= clock_stamp(now.saturating_sub(SILENT).saturating_sub(MARGIN))
}
