//! Slots behind the interface of the graph, which starts them, hands them rows, asks for their content and
//! has them walk.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_graph::segment::{Rows, Segment};
use fieldstone_graph::slot::{BegunTravel, Engine, ShelfContent, Slots, StartSlots};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::TravelPlan;
use fieldstone_journal::session::Limits;

use crate::cluster::{SlotCluster, SlotOptions};
use crate::travels;

impl StartSlots for SlotOptions {
    fn start(
        &self,
        partitioning: Partitioning,
        contents: Vec<ShelfContent>,
        env: &Env,
    ) -> Result<Arc<dyn Slots>> {
        Ok(Arc::new(SlotCluster::start(partitioning, contents, env, self)?))
    }
}

impl Slots for SlotCluster {
    fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    fn serve(&self) -> bool {
        let mut lead = self.lead();
        lead.look();
        lead.all_serve()
    }

    fn insert(&self, rows: &Rows) -> Result<()> {
        let mut lead = self.lead();
        lead.insert(rows)?;
        lead.finish();
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.lead().settle()
    }

    fn segments(&self) -> Result<Vec<Arc<Segment>>> {
        let shown = self.lead().show(false, false)?;
        Ok(self.read(&shown)?.into_iter().flat_map(|shelf| shelf.segments).collect())
    }

    fn contents(&self) -> Result<Vec<ShelfContent>> {
        let shown = self.lead().show(false, true)?;
        self.read(&shown)
    }

    fn freeze(&self) -> Result<Vec<ShelfContent>> {
        let shown = self.lead().show(true, true)?;
        self.read(&shown)
    }

    fn thaw(&self, saved: Option<Vec<Vec<Arc<Segment>>>>) -> Result<()> {
        // The storage keeps them until each slot has taken its own.
        let put = |segments: Vec<Arc<Segment>>| -> Vec<u64> {
            segments.into_iter().map(|segment| self.storage.put(segment)).collect()
        };
        let saved: Option<Vec<Vec<u64>>> = saved.map(|slots| slots.into_iter().map(put).collect());
        let thawed = self.lead().thaw(saved.clone());
        saved.iter().flatten().flatten().for_each(|number| self.storage.forget(*number));
        thawed.map(drop)
    }

    fn begin(
        self: Arc<Self>,
        state: &Arc<GraphState>,
        over: &[Arc<Segment>],
        plan: TravelPlan,
        engine: Engine,
        limits: Limits,
    ) -> Result<Box<dyn BegunTravel>> {
        Ok(Box::new(travels::begin(&self, state, over, plan, engine, limits)?))
    }
}
