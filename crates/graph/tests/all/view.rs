//! The graph is a view of the logs: the journal's suite of behaviours.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::graph::Record;
use fieldstone_format::log::SideRecord;
use fieldstone_graph::view::GraphView;
use fieldstone_journal::conformance::history::History;
use fieldstone_journal::conformance::view::{Harness, run_all};
use fieldstone_journal::view::View;
use fieldstone_testkit::Random;

use crate::common;

struct Views;

impl Harness for Views {
    fn open(&mut self, _: usize, _: &History) -> Result<Box<dyn View>> {
        Ok(Box::new(GraphView::new()))
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
    run_all(|| Views, 0..40).unwrap();
}
