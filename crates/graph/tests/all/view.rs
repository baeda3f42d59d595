//! The graph is a view of the logs: the journal's suite of behaviours.

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::Id;
use fieldstone_format::graph::Record;
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning};
use fieldstone_format::log::SideRecord;
use fieldstone_graph::slot::SlotOptions;
use fieldstone_graph::view::{GraphView, SlotHost};
use fieldstone_journal::conformance::history::History;
use fieldstone_journal::conformance::view::{Harness, run_all};
use fieldstone_journal::view::View;
use fieldstone_testkit::Random;

use crate::common;

/// Views in one piece, or cut into slots.
struct Views(Option<Partitioning>);

impl Harness for Views {
    fn open(&mut self, _: usize, _: &History) -> Result<Box<dyn View>> {
        let Some(partitioning) = self.0 else { return Ok(Box::new(GraphView::new())) };
        let (clock, options) = (Env::real().clock, SlotOptions::default());
        Ok(Box::new(GraphView::empty(None, SlotHost { partitioning, clock, options })?))
    }

    fn shares(&self) -> bool {
        false
    }

    fn side(&mut self, dice: &mut Random, _: &[(Id, u64)]) -> Vec<SideRecord> {
        let records: Vec<Record> = (0..dice.below(4)).map(|_| common::record(dice)).collect();
        records.iter().map(Record::encode).collect()
    }
}

#[test]
fn it_shows_every_behaviour_of_a_view() {
    run_all(|| Views(None), 0..40).unwrap();
}

#[test]
fn it_shows_them_cut_into_slots() {
    for (slots, scheme) in
        [(3, PartitionScheme::Dido), (2, PartitionScheme::VertexCut), (4, PartitionScheme::Giga)]
    {
        let partitioning = Partitioning { slots, scheme, threshold: 1, ..Partitioning::default() };
        run_all(|| Views(Some(partitioning)), 0..8).unwrap();
    }
}
