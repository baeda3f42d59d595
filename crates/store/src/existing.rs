//! Archiving under a key that has a field already, if that is to be an error (F-12).
//!
//! Invariants:
//! * a call is refused for what is visible when it is made, and for what this handle took before it and has not
//!   flushed;
//! * a flush looks again, for what others flushed meanwhile, before it writes anything; where it refuses, all of it
//!   waits on. Nobody waits for another writer: two that flush in the same moment may both succeed;
//! * a piece is refused where every element of its box is there. Until the field is whole, pieces of older attempts
//!   do not count for a writer that names an attempt, which hides them.

use std::collections::{BTreeMap, HashMap};

use fieldstone_core::geometry::{IndexBox, uncovered};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::key_text;
use fieldstone_journal::session::SessionKey;

use crate::read::{KeyVersions, Part, lookup};
use crate::snapshot::Snapshot;

/// Content under one key that a handle accepted as new, and has not flushed.
#[derive(Debug, Default)]
struct PendingNew {
    whole: bool,
    created: bool,
    /// Boxes of pieces.
    boxes: Vec<IndexBox>,
}

type Taken = BTreeMap<Vec<u8>, PendingNew>;

/// Content that must be new when it is flushed.
#[derive(Debug, Default)]
pub struct NewFields {
    sessions: Mutex<HashMap<SessionKey, Taken>>,
}

impl NewFields {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionKey, Taken>> {
        self.sessions.lock()
    }

    /// Conflict where a key has what is about to be archived: a whole field, or the piece with this box.
    pub fn check(
        &self,
        snapshot: &Snapshot,
        key: &[u8],
        piece: Option<&IndexBox>,
        session: SessionKey,
        attempt: &str,
    ) -> Result<()> {
        if let Some(there) = lookup(snapshot, key, session.transaction)? {
            check_there(snapshot, &there, piece, attempt)?;
        }
        self.check_pending(key, piece, session)
    }

    /// Conflict where this handle took before what is about to be archived.
    pub fn check_pending(&self, key: &[u8], piece: Option<&IndexBox>, session: SessionKey) -> Result<()> {
        let sessions = self.sessions();
        let Some(taken) = sessions.get(&session).and_then(|session| session.get(key)) else { return Ok(()) };
        let again = match piece {
            Some(piece) => taken.whole || is_covered(piece, taken.boxes.iter())?,
            None => true,
        };
        if again { Err(exists(key, "was archived here before, and is not flushed yet")) } else { Ok(()) }
    }

    /// Notes what was taken: the piece with this box, a field that was created, or a whole one.
    pub fn note(&self, key: &[u8], piece: Option<IndexBox>, created: bool, session: SessionKey) {
        let mut sessions = self.sessions();
        let taken = sessions.entry(session).or_default().entry(key.to_vec()).or_default();
        match piece {
            Some(piece) => taken.boxes.push(piece),
            None if created => taken.created = true,
            None => taken.whole = true,
        }
    }

    /// Whether a session holds anything that is to be new.
    pub fn is_empty(&self, session: SessionKey) -> bool {
        !self.sessions().contains_key(&session)
    }

    /// Conflict where others flushed what a session took to be new.
    pub fn check_all(&self, snapshot: &Snapshot, session: SessionKey, attempt: &str) -> Result<()> {
        let sessions = self.sessions();
        for (key, taken) in sessions.get(&session).into_iter().flatten() {
            let Some(there) = lookup(snapshot, key, session.transaction)? else { continue };
            if taken.whole || taken.created {
                check_there(snapshot, &there, None, attempt)?;
            }
            for piece in &taken.boxes {
                check_there(snapshot, &there, Some(piece), attempt)?;
            }
        }
        Ok(())
    }

    /// A session's fields were flushed, lost or discarded.
    pub fn forget(&self, session: SessionKey) {
        self.sessions().remove(&session);
    }
}

/// Conflict where what is visible has what is about to be archived.
fn check_there(
    snapshot: &Snapshot,
    there: &KeyVersions,
    piece: Option<&IndexBox>,
    attempt: &str,
) -> Result<()> {
    let of = |part: &Part| snapshot.attempt_name(part.commit.writer);
    // A writer with an attempt goes on where a dead one left off: what that one did not finish is hidden by it.
    let counts = |part: &&Part| attempt.is_empty() || of(part).is_none_or(|other| other == attempt);
    let refused = match (there.is_complete().unwrap_or(false), piece) {
        (true, _) => true,
        (false, None) => there.live().iter().any(|part| counts(&part)),
        (false, Some(piece)) => {
            let written = there.live().iter().filter(counts).filter(|part| part.covers_its_box());
            let boxes = written.filter_map(|part| part.entry.index_box().transpose());
            is_covered(piece, boxes.collect::<Result<Vec<_>>>()?.iter())?
        }
    };
    if !refused {
        return Ok(());
    }
    let header = snapshot.header(there.newest().commit.writer);
    let by =
        header.map_or_else(|| "somebody".to_owned(), |header| format!("{}@{}", header.user, header.host));
    let of = of(there.newest()).map(|other| format!(" in attempt {other}")).unwrap_or_default();
    Err(exists(&there.key, &format!("is there already, written by {by}{of}")))
}

/// Whether boxes cover one.
fn is_covered<'a>(piece: &IndexBox, boxes: impl Iterator<Item = &'a IndexBox>) -> Result<bool> {
    let seen = boxes.filter_map(|own| own.intersect(piece)).map(|seen| seen.relative_to(piece));
    Ok(uncovered(piece.count(), &seen.collect::<Result<Vec<_>>>()?, 1)?.is_complete())
}

fn exists(key: &[u8], how: &str) -> Error {
    Code::FieldExists.error(format!("{} {how}", key_text(key))).with_hint(
        "if_exists=\"new\" makes a newer version; a restart goes on behind the last step that is there",
    )
}
