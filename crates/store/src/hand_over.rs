//! Hand-overs: all datasets and runs of a user belong to another one from now on (J-55).
//!
//! Invariants:
//! * one record says so, whatever the user has: no field is written again, and nobody else's logs are touched;
//! * only the store's owner and root hand over, and every hand-over stays on record.

use fieldstone_core::env::Identity;
use fieldstone_core::{Error, Result};
use fieldstone_format::store_record::STORE_RECORDS_SINCE;
use fieldstone_journal::Journal;
use fieldstone_journal::snapshot::{Snapshot, StoreHandOver};

use crate::api::{HandOverInfo, HandOverReport, HandingOver};

/// Hands over what a user owns; see the facade's `DatasetAccess::hand_over`.
pub fn hand_over(journal: &Journal, how: &HandingOver) -> Result<HandOverReport> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "a hand-over")?;
    let identity = &journal.env().identity;
    let (from, to) = (user(&**identity, &how.from)?, user(&**identity, &how.to)?);
    if from == to {
        return Err(Error::invalid(format!("{} cannot hand over to himself", identity.user_name(from)))
            .with_hint("name the user who is to own the datasets and runs"));
    }
    let settings = journal.settings();
    settings.check_may_hand_over(&how.session)?;
    // Without anything to hand over no record says that something was.
    let datasets = match has_anything(&*journal.looks().snapshot()?, from) {
        true => settings.hand_over((from, to), &how.session)?,
        false => 0,
    };
    Ok(HandOverReport { from: identity.user_name(from), to: identity.user_name(to), datasets })
}

/// All hand-overs, oldest first.
pub fn hand_overs(journal: &Journal) -> Result<Vec<HandOverInfo>> {
    let (snapshot, identity) = (journal.looks().snapshot()?, &journal.env().identity);
    Ok(snapshot.hand_overs.iter().map(|made| info(&**identity, made)).collect())
}

/// A hand-over, with the names of the users.
pub fn info(identity: &dyn Identity, made: &StoreHandOver) -> HandOverInfo {
    let name = |user| identity.user_name(user);
    HandOverInfo { from: name(made.from), to: name(made.to), by: name(made.user), since: made.time }
}

fn user(identity: &dyn Identity, name: &str) -> Result<u32> {
    identity.user_number(name).ok_or_else(|| {
        Error::not_found(format!("this host knows no user {name:?}"))
            .with_hint("give the name of an account or its number; status names the owners of datasets")
    })
}

/// Whether a user has written something into a store, or was handed over what somebody had.
fn has_anything(snapshot: &Snapshot, user: u32) -> bool {
    snapshot.logs.iter().any(|log| log.uid == user)
        || snapshot.taken.takeovers().all().iter().any(|takeover| takeover.user == user)
        || snapshot.hand_overs.reach(user)
}
