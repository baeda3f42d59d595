//! Holds (takeovers.md, 6.4): how one is set and released, and which are in force.
//!
//! Invariants:
//! * a hold counts whoever set it, and expires by itself: a backup that dies holds the store for an hour at most;
//! * the one who set it, root and the owner of the store release it; nobody else ends it early.

use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::store_record::Hold;
use fieldstone_format::version::Version;
use fieldstone_journal::Journal;
use fieldstone_journal::session::Session;

use crate::api::{HoldInfo, Holding};
use crate::snapshot::{StoreHold, newest_holds};

/// Longest hold, nanoseconds: a year.
const LONGEST: u64 = 366 * 86_400 * 1_000_000_000;
/// Bytes of a name or a reason.
const TEXT_MAX: usize = 4096;

/// Sets a hold; see the facade's `Store::hold`.
pub fn hold(journal: &Journal, how: &Holding) -> Result<HoldInfo> {
    journal.access().check_writable()?;
    if how.lasts == 0 || how.lasts > LONGEST {
        return Err(Code::Option
            .error("a hold lasts longer than nothing and a year at most")
            .with_hint("give a time such as \"2h\"; a hold that stands may be set again"));
    }
    if how.name.len().max(how.why.len()) > TEXT_MAX {
        return Err(Code::TooLarge
            .error(format!("the name or the reason of a hold is longer than {TEXT_MAX} bytes"))
            .with_hint("shorten it"));
    }
    let snapshot = journal.looks().snapshot()?;
    let name = match &how.name[..] {
        "" => {
            let mut drawn = [0; 16];
            journal.env().rand.fill(&mut drawn);
            let user = journal.env().identity.user_name(journal.access().user(&how.session));
            format!("{user}-{}", &Id(drawn).to_string()[..8])
        }
        name => {
            // Others may not shorten it by replacing it.
            if let Some(known) = newest(&snapshot, name).filter(|known| is_standing(journal, known)) {
                check_may(journal, &known, &how.session)?;
            }
            name.to_owned()
        }
    };
    let lasts = i64::try_from(how.lasts).unwrap_or(i64::MAX);
    let expires = journal.env().clock.now().saturating_add(lasts);
    let version = snapshot.version().to_record();
    let hold = Hold { name: name.clone(), expires, version, why: how.why.clone() };
    journal.settings().hold(&hold, &how.session.within(None))?;
    let set = newest(&*journal.looks().snapshot()?, &name);
    let set = set.filter(|set| set.hold.expires == expires);
    set.map(|set| row(journal, &set)).ok_or_else(|| {
        Error::conflict(format!("the hold {name:?} was set or released by another process meanwhile"))
            .with_hint("give it a name of its own")
    })
}

/// Ends a hold before it expires; see the facade's `Store::release`.
pub fn release(journal: &Journal, name: &str, session: &Session) -> Result<()> {
    journal.access().check_writable()?;
    let snapshot = journal.looks().snapshot()?;
    let Some(known) = newest(&snapshot, name).filter(|known| is_standing(journal, known)) else {
        return Err(Error::not_found(format!("no hold has the name {name:?}, or it has expired"))
            .with_hint("holds() lists those in force"));
    };
    check_may(journal, &known, session)?;
    // One that expires before its commit's time ends it.
    let ended = Hold { expires: 0, why: String::new(), ..known.hold.clone() };
    journal.settings().hold(&ended, &session.within(None))
}

/// The holds in force, by their ends; see the facade's `Store::holds`.
pub fn holds(journal: &Journal) -> Result<Vec<HoldInfo>> {
    let snapshot = journal.looks().snapshot()?;
    let mut all: Vec<_> =
        newest_holds(&snapshot).into_iter().filter(|hold| is_standing(journal, hold)).collect();
    all.sort_by(|a, b| (a.hold.expires, &a.hold.name).cmp(&(b.hold.expires, &b.hold.name)));
    Ok(all.iter().map(|hold| row(journal, hold)).collect())
}

fn newest(snapshot: &crate::snapshot::Snapshot, name: &str) -> Option<std::sync::Arc<StoreHold>> {
    newest_holds(snapshot).into_iter().find(|known| known.hold.name == name)
}

fn is_standing(journal: &Journal, hold: &StoreHold) -> bool {
    hold.hold.expires > journal.env().clock.now()
}

/// Denied for a hold of somebody else's.
fn check_may(journal: &Journal, hold: &StoreHold, session: &Session) -> Result<()> {
    let user = journal.access().user(session);
    let is_owner = journal.looks().snapshot()?.folder_owner == Some(user);
    if user == hold.user || user == 0 || is_owner {
        return Ok(());
    }
    let by = journal.env().identity.user_name(hold.user);
    Err(Error::new(ErrorKind::Denied, format!("the hold {:?} is {by}'s", hold.hold.name))
        .with_hint(format!("ask {by}, or wait until it expires")))
}

fn row(journal: &Journal, hold: &StoreHold) -> HoldInfo {
    HoldInfo {
        name: hold.hold.name.clone(),
        why: hold.hold.why.clone(),
        by: journal.env().identity.user_name(hold.user),
        since: hold.time,
        until: hold.hold.expires,
        version: Version::from_record(&hold.hold.version).map(|v| v.encode()).unwrap_or_default(),
    }
}
