//! Small files beside the logs: end files and claims, each with a checksum of its own.

use fieldstone_core::Result;
use fieldstone_format::log_end::{self, EndReason, LogEnd};
use fieldstone_format::{Id, claim};

use super::Bench;

/// Mends damaged end files and claims of the store with this id by the copy. Files that are not there stay away: an end file of
/// the copy may be one of a promotion that was broken off.
pub fn mend_names(bench: &mut Bench, store: Id) -> Result<()> {
    let names = bench.world().disk.list_dir(&bench.root().join("logs")).unwrap_or_default();
    for (name, _) in names {
        let is_whole = |bytes: &[u8]| match log_end::parse_file_name(&name) {
            Some(writer) => LogEnd::decode(bytes).is_ok_and(|end| {
                (end.writer, end.store) == (writer, store) && end.why != EndReason::Administrator
            }),
            // The name of a claim is made of its content.
            None => claim::decode(bytes)
                .is_ok_and(|level| (0..claim::NAMES).any(|n| claim::file_name(&level, n) == name)),
        };
        let path = format!("logs/{name}");
        if log_end::parse_file_name(&name).is_none() && !claim::is_file_name(&name) {
            continue;
        }
        let all = |length: Option<u64>| length.filter(|length| *length <= claim::CLAIM_MAX);
        let own = all(bench.length(&path)).and_then(|length| bench.own(&path, 0, length));
        if own.as_ref().is_some_and(|bytes| LogEnd::decode(bytes).is_ok() || is_whole(bytes)) {
            continue;
        }
        let copy = all(bench.source_length(&path)).and_then(|length| bench.of_copy(&path, 0, length));
        let Some(copy) = copy.filter(|bytes| is_whole(bytes)) else { continue };
        match own.is_some_and(|own| own.len() == copy.len()) {
            true => bench.put(&path, 0, &copy),
            false => bench.take_file(&path, copy.len() as u64),
        }
        let how = bench.of_source("the file");
        bench.note(None, &path, how);
    }
    Ok(())
}
