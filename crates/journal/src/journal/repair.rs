//! Mending what a store knows: its marker, logs and takeovers (J-56). Fields are mended by the store of fields, afterwards: whoever
//! looks for them needs the index.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::marker::{self, Marker};
use fieldstone_format::takeover::parse_file_name;

use super::Journal;
use super::backup::{content, open_read};
use crate::medium::posix::FileMedium;
use crate::medium::posix::backup::log_path;
use crate::medium::posix::repair::{
    Bench, mend_log, mend_names, mend_own_copies, mend_takeover, mend_takeover_copies,
};
use crate::snapshot::Snapshot;

/// Mends marker, logs and takeovers of the store on a bench, as far as its copy, or the store itself, has them whole.
///
/// Errors: `Conflict` if the copy is one of another store.
pub fn mend_index(bench: &mut Bench) -> Result<()> {
    let copy = bench.source().map(|folder| open_read(&bench.world(), folder)).transpose()?;
    let copy = copy.as_ref();
    check_same(bench, copy)?;
    mend_marker(bench)?;
    let names = bench.names_of_takeovers();
    names.iter().try_for_each(|name| mend_takeover_copies(bench, &format!("logs/{name}")))?;
    if let Some(copy) = copy {
        let (files, shown) = (files_of(copy)?, copy.looks().even_without_logs()?);
        // The newest first: it says which of the older ones count.
        let mut takeovers = content(&shown).takeovers.all().to_vec();
        takeovers.sort_by_key(|takeover| std::cmp::Reverse(takeover.number()));
        takeovers.iter().try_for_each(|takeover| mend_takeover(bench, files, takeover))?;
        mend_names(bench, copy.access().identity().id)?;
    }
    let own = open_read(&bench.world(), bench.root())?;
    let snapshot = own.looks().even_without_logs()?;
    let medium = files_of(&own)?;
    for log in &snapshot.logs {
        mend_own_copies(bench, medium, log)?;
    }
    if let Some(copy) = copy {
        let (files, shown) = (files_of(copy)?, copy.looks().even_without_logs()?);
        let mut tips = content(&shown).tips;
        tips.retain(|tip| is_wanted(bench, &snapshot, tip.writer));
        tips.iter().try_for_each(|tip| mend_log(bench, files, tip))?;
    }
    mend_marker(bench)
}

/// Whether a log of the copy is one of the store: no takeover replaces it, and nobody gave up that it is missing.
fn is_wanted(bench: &Bench, snapshot: &Snapshot, log: fieldstone_format::Id) -> bool {
    let given_up = || snapshot.accepted.end(log).is_some() && bench.length(&log_path(log)).is_none();
    !snapshot.is_replaced(log) && !given_up()
}

fn files_of(journal: &Journal) -> Result<&FileMedium> {
    journal.medium().files().ok_or_else(|| Error::internal("a folder is a store of files"))
}

/// Refuses a copy of another store.
fn check_same(bench: &mut Bench, copy: Option<&Journal>) -> Result<()> {
    let Some(copy) = copy else { return Ok(()) };
    let of_copy = copy.access().identity().clone();
    let own = match open_read(&bench.world(), bench.root()) {
        Ok(own) => own.access().identity().id,
        // Nothing says which store it is: what its files say is compared one by one.
        Err(e) if e.kind() == fieldstone_core::ErrorKind::Corrupt => {
            bench.put_file(marker::FILE_NAME, &Marker { id: of_copy.id, schema: of_copy.schema }.encode());
            let how = bench.of_source("the file");
            bench.note(None, marker::FILE_NAME, how);
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    if own == of_copy.id {
        return Ok(());
    }
    let (root, source) = (bench.root().display(), copy.access().shown());
    Err(Code::TargetDiffers
        .error(format!(
            "{source} is of store {}, and {root} is store {own}: nothing of it can be used",
            of_copy.id
        ))
        .with_hint(
            "name a backup of this store; fieldstone version and the file fieldstone.copy name a store's id",
        ))
}

/// The marker, which every log repeats.
fn mend_marker(bench: &mut Bench) -> Result<()> {
    let length = bench.length(marker::FILE_NAME);
    let bytes = length.and_then(|length| bench.own(marker::FILE_NAME, 0, length));
    if bytes.as_ref().is_some_and(|bytes| Marker::decode(bytes).is_ok()) {
        return Ok(());
    }
    let own = open_read(&bench.world(), bench.root())?;
    if bytes.is_none() && !own.looks().even_without_logs()?.has_commits() {
        return Ok(());
    }
    let identity = own.access().identity().clone();
    let whole = Marker { id: identity.id, schema: identity.schema }.encode();
    match length {
        Some(length) if length == whole.len() as u64 => bench.put(marker::FILE_NAME, 0, &whole),
        _ => bench.put_file(marker::FILE_NAME, &whole),
    }
    bench.note(None, marker::FILE_NAME, "id and schema, from the logs".to_owned());
    Ok(())
}

impl Bench {
    /// Names of takeovers in the store.
    fn names_of_takeovers(&self) -> Vec<String> {
        let names = self.world().disk.list_dir(&self.root().join("logs")).unwrap_or_default();
        names.into_iter().map(|(name, _)| name).filter(|name| parse_file_name(name).is_some()).collect()
    }
}

/// A handle on the store as a bench shows it.
pub fn on_bench(bench: &Bench) -> Result<Arc<Journal>> {
    open_read(&bench.world(), bench.root()).map(Arc::new)
}
