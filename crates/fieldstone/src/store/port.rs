//! The calls that catalog and graph make to their store.

use std::sync::{Arc, Weak};

use fieldstone_catalog::engine::{CoordinateRange, GridRegion, MeshRegion, PointSource, VariableRow};
use fieldstone_catalog::live::FieldPort;
use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_core::sync::Mutex;
use fieldstone_format::Id;
use fieldstone_format::catalog::{MeshDecl, MeshLocation, RunName};
use fieldstone_graph::live::GraphPort;
use fieldstone_graph::slot::StartSlots;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::follower::FieldLookup;
use fieldstone_journal::participant::FlushParticipant;
use fieldstone_slots::SlotOptions;
use fieldstone_store::Standing;
use fieldstone_store::api::{FieldAccess, ListOptions, RemoveOptions, Transactions};

use super::composed::Composed;
use crate::Session;

impl Composed {
    /// Adds a participant with records for this process's flushes.
    fn take_part(&self, participant: Weak<dyn FlushParticipant>) {
        let participants = self.participants.get(Mutex::default);
        participants.lock().push(participant);
    }
}

impl GraphPort for Composed {
    fn changed(&self, session: &Session) -> Result<()> {
        self.note_change(session)
    }

    fn join_graph(&self, graph: Weak<dyn FlushParticipant>) {
        self.take_part(graph);
    }

    fn slots(&self) -> Arc<dyn StartSlots> {
        Arc::new(SlotOptions::default())
    }
}

impl PointSource for Composed {
    fn region(
        &self,
        mesh: &MeshDecl,
        location: MeshLocation,
        ranges: &[CoordinateRange],
    ) -> Result<Option<MeshRegion>> {
        let (disk, root) = (&self.journal.env().disk, self.fields.folder().unwrap_or_default());
        Ok(self.mesh_points.located(disk, &root, mesh, location)?.region(ranges))
    }

    fn grids(
        &self,
        run: &RunName,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        self.grids.regions(&self.fields, run, variables, asked, ranges)
    }
}

impl FieldPort for Composed {
    fn standing(&self, feed: &Feed) -> Box<dyn FieldLookup> {
        let now = self.journal.env().clock.now();
        Box::new(Standing::at(feed, self.journal.schema().now(), now))
    }

    fn count(&self, request: &Request, session: &Session) -> Result<u64> {
        let options = ListOptions { session: session.clone(), ..ListOptions::default() };
        let mut entries = self.fields.list(request, &options)?;
        entries.try_fold(0, |count, entry| entry.map(|_| count + 1))
    }

    fn remove(&self, request: &Request, session: &Session) -> Result<u64> {
        self.fields.remove(request, &RemoveOptions { session: session.clone() })
    }

    fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()> {
        Transactions::set_active_kinds(self, transaction, on, off, session)
    }

    fn changed(&self, session: &Session) -> Result<()> {
        self.note_change(session)
    }

    fn join(&self, catalog: Weak<dyn FlushParticipant>) {
        self.take_part(catalog);
    }
}
