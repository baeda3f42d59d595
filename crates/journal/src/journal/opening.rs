//! Which store a journal is opened on: by its marker, or, where that is damaged or lost, by a log.

use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::copy_mark::CopyState;
use fieldstone_format::marker::{self, Marker};

use super::looks::LookState;
use super::options::JournalOptions;
use super::schema_state::SCHEMA_MAX;
use crate::identity::StoreIdentity;
use crate::medium::posix::FileMedium;
use crate::medium::{Look, Medium};

/// The error of a store that is not there.
pub fn no_store(shown: &str, wants_to_write: bool) -> Error {
    Code::StoreNotFound.error(format!("there is no store at {shown}")).with_hint(match wants_to_write {
        true => "check the path, and whether its file system is mounted; fieldstone init makes a store",
        false => "check the path; a store is made by the first flush into it",
    })
}

/// Refuses options that no store can be opened with.
pub fn check_options(options: &JournalOptions) -> Result<()> {
    if options.schema.as_ref().is_some_and(|schema| schema.text().len() > SCHEMA_MAX) {
        return Err(Code::TooLarge
            .error(format!("the schema is longer than {SCHEMA_MAX} bytes"))
            .with_hint("every log repeats it: keep it to rules and types"));
    }
    options.origin.check()
}

/// Refuses a store that is there and must not be, or is not there and must be or finds no room.
pub fn check_existence(
    exists: bool,
    medium: &dyn Medium,
    shown: &str,
    options: &JournalOptions,
) -> Result<()> {
    match exists {
        false if options.must_exist => Err(no_store(shown, options.writable)),
        false => medium.files().map_or(Ok(()), |files| files.check_room()),
        true if options.must_be_new => Err(Code::StoreExists
            .error(format!("there is a store at {shown} already"))
            .with_hint("open it with mode a")),
        true => Ok(()),
    }
}

/// A backup is open for reading alone, and shows one version of its source. A copy that was promoted is a store as any other.
pub fn open_copy(files: &FileMedium, shown: &str, options: &mut JournalOptions) -> Result<()> {
    let Some(copy) = files.copy().filter(|copy| copy.state == CopyState::Backup) else { return Ok(()) };
    if options.writable {
        return Err(Code::ReadOnly
            .error(format!("the store at {shown} is a backup of store {}, which nobody writes into", copy.id))
            .with_hint(format!(
                "open it with mode r; fieldstone promote {shown} makes it a store of its own, which follows its source no more"
            )));
    }
    options.at.get_or_insert_with(|| copy.version.encode());
    options.is_backup = true;
    Ok(())
}

/// The schema of a store: its own where it is there, else the one asked for.
pub fn schema_of(found: Option<&StoreIdentity>, options: &JournalOptions) -> Result<Schema> {
    match (found, &options.schema) {
        (Some(found), _) => Schema::parse(&found.schema),
        (None, Some(asked)) => Ok(asked.clone()),
        (None, None) => {
            let schema = Schema::builtin("simulation");
            schema.ok_or_else(|| Error::internal("no schema is built in"))
        }
    }
}

/// Identity of the store in a medium; `None` where there is none.
pub fn find_identity(medium: &dyn Medium, looks: &LookState) -> Result<Option<StoreIdentity>> {
    let found = identity_now(looks, medium.marker()?)?;
    match (found, medium.files()) {
        (Ok(identity), _) => Ok(identity),
        // The store is being made on another host: its marker's name shows here before its bytes.
        (Err(_), Some(files)) => identity_now(looks, files.marker_when(marker::is_filled)?)?,
        (Err(damage), None) => Err(damage),
    }
}

/// The identity by a marker and the logs that there are now; an inner error where no log replaces a damaged marker.
fn identity_now(looks: &LookState, marker: Option<Vec<u8>>) -> Result<Result<Option<StoreIdentity>>> {
    let marker = marker.map(|bytes| Marker::decode(&bytes));
    if let Some(Ok(marker)) = marker {
        return Ok(Ok(Some(StoreIdentity { id: marker.id, schema: marker.schema })));
    }
    let snapshot = looks.refresher().lock().refresh(Look::All)?;
    let of_log = snapshot.logs.iter().find_map(|log| Some((log.header.known_store()?, &log.header.schema)));
    let of_takeover = || snapshot.taken.takeovers().all().first().map(|t| (t.header.store, &t.header.schema));
    Ok(match (of_log.or_else(of_takeover), marker) {
        (Some((id, schema)), _) => Ok(Some(StoreIdentity { id, schema: schema.clone() })),
        (None, Some(Err(damage))) => Err(damage),
        (None, _) => Ok(None),
    })
}
