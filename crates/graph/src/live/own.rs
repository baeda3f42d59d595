//! Rows over the follower: those that a session has not flushed, or that its transaction holds.
//!
//! Each session's rows are kept as segments, so that a read adds only the rows that came since the last one.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_journal::feed::{Commit, OWN_LOG};
use fieldstone_journal::instant::{Cursors, OwnPart, OwnRecords};
use fieldstone_journal::session::SessionKey;
use fieldstone_journal::{Journal, Session};

use crate::follower::GraphFollower;
use crate::segment::{Segment, merge_young};
use crate::state::GraphState;

/// Maximum number of sessions whose own rows are kept ready for reads.
const SESSIONS: usize = 64;

/// The rows of the sessions of a process.
#[derive(Debug, Default)]
pub struct OwnRows(Mutex<HashMap<SessionKey, Overlay>>);

/// The rows over the follower for a session.
#[derive(Debug)]
struct Overlay {
    base: Arc<GraphState>,
    pending: Cursors,
    segments: Vec<Arc<Segment>>,
    shown: Arc<GraphState>,
}

impl OwnRows {
    /// The follower with the rows of a session, whose user has this number; `None` if some of them were flushed
    /// in the meantime.
    pub fn over(
        &self,
        follower: &GraphFollower,
        (journal, session, user): (&Journal, &Session, u32),
        pending: Cursors,
    ) -> Result<Option<Arc<GraphState>>> {
        let base = follower.state();
        // A session without a transaction and without rows of its own reads the follower that all share.
        if pending.records() == 0 && session.transaction().is_none() {
            return Ok(Some(base));
        }
        let mut sessions = self.0.lock();
        // Over another base, the rows might be in the follower already; and after a flush or rollback, the
        // pending records do not continue those that were read.
        let holds = |own: &Overlay| Arc::ptr_eq(&own.base, &base) && pending.continues(own.pending);
        let known = sessions.remove(&session.key()).filter(holds);
        let mut own = match known {
            Some(own) => own,
            None => {
                // Flushed rows of the transaction are in the logs, but the follower shows them to all only after
                // the commit.
                let prepared = follower.prepared(session.transaction())?;
                let segments = Vec::from_iter(prepared);
                let shown = Arc::new(base.with(segments.iter().cloned()));
                Overlay { base, pending: Cursors::default(), segments, shown }
            }
        };
        let Some(more) = OwnRecords::between(journal.unflushed(), own.pending, pending, session) else {
            return Ok(None);
        };
        let commits: Vec<Commit> = more.parts.into_iter().map(|part| own_commit(user, part)).collect();
        if let Some(segment) = GraphFollower::segment_of(&commits)? {
            own.segments.push(Arc::new(segment));
            // After many small puts, a read would otherwise search a segment for each of them.
            merge_young(&mut own.segments)?;
            own.shown = Arc::new(own.base.with(own.segments.iter().cloned()));
        }
        own.pending = pending;
        let shown = own.shown.clone();
        // All of them can be made again from pending records, so the choice need not be a good one.
        if sessions.len() >= SESSIONS {
            sessions.clear();
        }
        sessions.insert(session.key(), own);
        Ok(Some(shown))
    }

    /// The segments of a state that are over the follower for a session.
    pub fn segments(&self, session: &Session, state: &Arc<GraphState>) -> Vec<Arc<Segment>> {
        let sessions = self.0.lock();
        let own = sessions.get(&session.key()).filter(|own| Arc::ptr_eq(&own.shown, state));
        own.map_or_else(Vec::new, |own| own.segments.clone())
    }

    /// Forgets a session that has flushed its rows, or given them up.
    pub fn forget(&self, session: &Session) {
        drop(self.0.lock().remove(&session.key()));
    }

    /// Forgets all rows, because the follower was replaced.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Unflushed records as a commit, newer than all others.
fn own_commit(owner: u32, part: OwnPart) -> Commit {
    // Newer than every stamp of a log; within the session, later puts are newer.
    let stamp = u64::MAX / 2 + part.before as u64;
    let side = part.records;
    Commit { writer: OWN_LOG, owner, sequence: 1, stamp, time: 0, transaction: None, order: None, side }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::env::sim::SimWorld;
    use fieldstone_format::graph::{Props, Record, Version, VertexName, VertexRow};
    use fieldstone_format::graph_segment::VertexPlace;
    use fieldstone_journal::instant::{Instant, ReadOwn};
    use fieldstone_journal::journal::JournalOptions;

    #[test]
    fn rows_that_wait_lie_over_the_follower_until_they_are_forgotten() {
        let options = JournalOptions { url: "memory:".into(), writable: true, ..Default::default() };
        let journal = Journal::open(SimWorld::memory(), "/s".as_ref(), options).unwrap();
        let (session, follower, own) = (Session::default(), GraphFollower::new(), OwnRows::default());
        let shown = || {
            let seen = Instant::now(&journal, &session, ReadOwn::Later).unwrap().unwrap();
            own.over(&follower, (&journal, &session, 7), seen.pending).unwrap().unwrap()
        };
        assert!(Arc::ptr_eq(&shown(), &follower.state()), "nothing waits");
        let vertex = VertexName::new("file", "a");
        let version = Version { stamp: 1, time: 1, deleted: false };
        let row = VertexRow { vertex: vertex.clone(), version, fixed: None, props: Props::default() };
        journal.unflushed().add(Record::encode_rows(&[row], &[]), &session).unwrap();
        let state = shown();
        assert_eq!(state.vertex_versions(VertexPlace::of(&vertex)).unwrap()[0].user, 7);
        assert_eq!(own.segments(&session, &state).len(), 1);
        assert!(Arc::ptr_eq(&shown(), &state), "segments that are ready are not made again");
        own.forget(&session);
        assert!(own.segments(&session, &state).is_empty());
    }
}
