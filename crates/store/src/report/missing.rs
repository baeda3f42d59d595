//! Takeovers that are missing, as far as anything else speaks of them. The newest one of an owner is on no list: versions on record
//! may name it, and its data logs are there.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_format::owner::Owner;
use fieldstone_format::takeover::{TakeoverTable, part};
use fieldstone_format::version::{OwnerName, TakeoverName, Version};
use fieldstone_format::{Id, data, log_end, takeover};
use fieldstone_journal::medium::posix::FileMedium;

use crate::snapshot::{Refresher, Snapshot};

/// Takeovers that versions on record name and that are not there: by their files the reasons, and whether another one has the name
/// now, so that nobody can bring the first one back.
pub fn missing_takeovers(snapshot: &Snapshot) -> BTreeMap<String, (String, bool)> {
    let (logs, taken) = (&snapshot.logs, &snapshot.taken);
    let ranges = logs.iter().flat_map(|log| &log.ranges).chain(&taken.ranges);
    let ranges = ranges.map(|made| ("a wipe or a hide", &made.range.version));
    let holds = logs.iter().flat_map(|log| &log.holds).chain(&taken.holds);
    let holds = holds.map(|made| ("a hold", &made.hold.version));
    let pointers = logs.iter().flat_map(|log| &log.pointers).chain(&taken.pointers);
    let pointers = pointers.map(|made| ("a pointer of another store", &made.pointer.version));
    let mut missing = BTreeMap::new();
    for (what, record) in ranges.chain(holds).chain(pointers) {
        // A record that names no version, or is damaged, says nothing here.
        let Ok(version) = Version::from_record(record) else { continue };
        for name in version.takeovers() {
            let Some((file, is_replaced)) = missing_file(snapshot, name) else { continue };
            let why = match is_replaced {
                true => format!("another takeover has its name: the one that {what} on record names is gone"),
                false => format!("the file is missing: {what} on record names it"),
            };
            missing.insert(file, (why, is_replaced));
        }
    }
    missing
}

/// The file of a takeover that is not there, and whether another one has its name.
fn missing_file(snapshot: &Snapshot, name: &TakeoverName) -> Option<(String, bool)> {
    let OwnerName::User(user) = name.owner else { return None };
    let (takeovers, owner) = (snapshot.taken.takeovers(), Owner::User(user).name());
    let of_owner = format!("logs/{owner}-");
    // One that cannot be opened is a problem of its own.
    let is_named = snapshot.problems.iter().any(|problem| problem.file.starts_with(&of_owner));
    let is_missing = !is_named && !takeovers.reach(name);
    let file = format!("logs/{}", takeover::file_name(&owner, name.number));
    is_missing.then(|| (file, takeovers.contradict(name)))
}

/// Data logs that nothing explains: a writer that has not committed yet has some, and a takeover that is missing had some.
pub fn unexplained_data(
    files: &FileMedium,
    snapshot: &Snapshot,
    refresher: &Refresher,
) -> Result<Vec<String>> {
    let (in_logs, in_data) = (files.names_in("logs")?, files.names_in("data")?);
    let takeovers = snapshot.taken.takeovers();
    let is_known = |id: Id| -> Result<bool> {
        let is_making = in_logs.contains(&takeover::new_name(id)) || in_data.contains(&part::file_name(id));
        Ok(is_making
            || in_logs.contains(&log_end::file_name(id))
            || refresher.knows(id)
            || takeovers.all().iter().any(|takeover| takeover.header.id == id)
            || takeovers.log(id)?.is_some())
    };
    let is_condemned = |name: &str| -> Result<bool> {
        let path = format!("data/{name}");
        for takeover in takeovers.all() {
            if takeover.value(TakeoverTable::Condemned, path.as_bytes())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut unexplained = Vec::new();
    for name in &in_data {
        let Some((id, _)) = data::parse_file_name(name) else { continue };
        if !is_known(id)? && !is_condemned(name)? {
            unexplained.push(format!("data/{name}"));
        }
    }
    unexplained.sort_unstable();
    Ok(unexplained)
}
