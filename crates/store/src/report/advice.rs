//! Advice: commands worth running, each with what it would gain. Nothing is read for it beyond what a status knows: no
//! index, and no folder.

use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::FORMAT_VERSION;
use fieldstone_format::store_record::RangeAction;

use crate::api::{Advice, Status};
use crate::snapshot::{Refresher, Snapshot, rules_for};

/// Ended logs from which on compaction is advised.
const ENDED_MANY: u64 = 13;
/// Files and transactions that are named one by one.
const NAMED: usize = 3;

/// The advice for a user, given the rest of the status.
pub fn advice(status: &Status, snapshot: &Snapshot, refresher: &Refresher, user: u32) -> Vec<Advice> {
    let mut all = Vec::new();
    let url = quoted(&status.url);
    let mut add = |command: String, gain: String, is_estimate: bool| {
        all.push(Advice { command: format!("fieldstone {command}"), gain, is_estimate });
    };
    for problem in
        status.problems.iter().filter(|problem| problem.code == Some(Code::LogShortened)).take(NAMED)
    {
        let file = quoted(&problem.file);
        add(
            format!("accept {url} {file}"),
            format!("{} is lost for good; restore it if you can", problem.file),
            false,
        );
    }
    let is_damaged = |code: Code| code.kind() == ErrorKind::Corrupt;
    if status.problems.iter().any(|problem| problem.code.is_some_and(is_damaged)) {
        add(format!("verify {url}"), "it names every damaged field and file".to_owned(), false);
    }
    if snapshot.format.version < FORMAT_VERSION && snapshot.folder_owner.is_none_or(|owner| owner == user) {
        let gain = format!("format {FORMAT_VERSION}: past writers can be merged, and room comes back");
        add(format!("upgrade {url}"), gain, false);
    }
    for transaction in &status.transactions {
        let is_left =
            |owner: &String| ["closed", "ended", "gone"].iter().any(|s| owner.ends_with(&format!("({s})")));
        if !transaction.owners.is_empty() && transaction.owners.iter().all(is_left) {
            let gain = format!("{} fields of a transaction that nobody ended", transaction.fields);
            add(format!("transaction abort {url} {}", transaction.id), gain, false);
        }
    }
    if snapshot.format.version >= 2 {
        let rules = rules_for(snapshot, user).len();
        if rules > 0 {
            let rules = if rules == 1 { "1 rule".to_owned() } else { format!("{rules} rules") };
            add(format!("maintain {url}"), format!("{rules} of retention: daily, by cron"), false);
        }
        let own = snapshot.logs.iter().filter(|log| log.uid == user);
        let ended = own.filter(|log| refresher.ended(log).is_some()).count() as u64;
        if ended >= ENDED_MANY {
            let own = snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user);
            let gain = format!("ended logs: {ended} files -> about {}", own.count() + 1);
            add(format!("compact {url}"), gain, true);
        }
        if rules == 0 && has_unpurged_wipe(snapshot, user) {
            let gain =
                "wiped fields keep their room; it prints how much, and frees it with --doit".to_owned();
            add(format!("purge {url} --all"), gain, false);
        }
    }
    all
}

/// Whether this user has wiped anything since the last purge.
fn has_unpurged_wipe(snapshot: &Snapshot, user: u32) -> bool {
    let ranges = snapshot.logs.iter().flat_map(|log| &log.ranges).chain(&snapshot.taken.ranges);
    let wipes = ranges.filter(|made| made.user == user && made.range.action == RangeAction::Wipe);
    let purges = snapshot.taken.takeovers().all().iter();
    let purges = purges.filter(|takeover| takeover.user == user && takeover.header.purge);
    let last = purges.map(|takeover| takeover.header.created).max();
    wipes.map(|made| made.time).max().is_some_and(|wiped| last.is_none_or(|purged| wiped > purged))
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
