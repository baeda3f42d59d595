//! The graph is a follower of the logs: the journal's suite of behaviours.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::Id;
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning};
use fieldstone_format::log::SideRecord;
use fieldstone_graph::follower::{GraphFollower, SlotHost, dump};
use fieldstone_graph::state::GraphState;
use fieldstone_journal::conformance::follower::{Harness, run_all};
use fieldstone_journal::conformance::history::History;
use fieldstone_journal::conformance::taken::r24_counted;
use fieldstone_journal::feed::Commit;
use fieldstone_journal::follower::{Follower, Wait};
use fieldstone_slots::SlotOptions;
use fieldstone_testkit::Random;

use crate::common;

/// Followers in one piece, or cut into slots.
struct Followers(Option<Partitioning>);

impl Harness for Followers {
    fn open(&mut self, _: usize, _: &History) -> Result<Box<dyn Follower>> {
        let Some(partitioning) = self.0 else { return Ok(Box::new(GraphFollower::new())) };
        let starter = Arc::new(SlotOptions::default());
        Ok(Box::new(GraphFollower::empty(None, SlotHost { partitioning, env: Env::real(), starter })?))
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
fn it_shows_every_behaviour_of_a_follower() {
    run_all(|| Followers(None), 0..40).unwrap();
}

#[test]
fn it_shows_them_cut_into_slots() {
    for (slots, scheme) in
        [(3, PartitionScheme::Dido), (2, PartitionScheme::VertexCut), (4, PartitionScheme::Giga)]
    {
        let partitioning = Partitioning { slots, scheme, threshold: 1, ..Partitioning::default() };
        run_all(|| Followers(Some(partitioning)), 0..8).unwrap();
    }
}

/// 100,000 relations in 50 logs: a takeover of them makes a follower apply nothing.
#[test]
fn r24_relations_are_applied_once_whatever_is_taken_over() {
    let records = &mut |log: u64| {
        let row = |i: u64| RelationRow {
            kind: "read".into(),
            source: VertexName::new("job", &(i % 500).to_string()),
            target: VertexName::new("file", &i.to_string()),
            version: Version { stamp: 1 + i, time: 0, deleted: false },
            until: None,
            props: Props::default(),
        };
        vec![Record::Relations((log * 2000..(log + 1) * 2000).map(row).collect()).encode()]
    };
    r24_counted(&mut Followers(None), 50, records).unwrap();
}

/// A transaction of many relations is built in parts, in parallel: the same row in two of them stays one row,
/// and the newest counts whichever part it is in.
#[test]
fn a_large_transaction_says_what_its_commits_say_one_by_one() {
    let log = Id([1; 16]);
    let commit = |sequence: u64| {
        let row = |i: u64| RelationRow {
            kind: "read".into(),
            source: VertexName::new("job", &(i % 500).to_string()),
            target: VertexName::new("file", &(i / 500).to_string()),
            version: Version { stamp: sequence, time: 0, deleted: i % 7 == sequence },
            until: None,
            props: Props::default(),
        };
        let rows = (0..30_000).map(|i| row(i * (1 + sequence % 2))).collect();
        let side = vec![Record::Relations(rows).encode()];
        Commit {
            writer: log,
            owner: 1,
            sequence,
            stamp: sequence,
            time: 0,
            transaction: None,
            order: None,
            side,
        }
    };
    let commits: Vec<Commit> = (1..=7).map(commit).collect();
    let (mut together, mut alone) = (GraphFollower::new(), GraphFollower::new());
    together.begin(Wait::Yes).unwrap();
    for commit in &commits {
        together.commit(commit).unwrap();
        together.mark(log, commit.sequence).unwrap();
        alone.begin(Wait::Yes).unwrap();
        alone.commit(commit).unwrap();
        alone.mark(log, commit.sequence).unwrap();
        alone.end().unwrap();
    }
    together.end().unwrap();
    assert!(together.dump().unwrap() == alone.dump().unwrap());
    // As one segment, built from all of it.
    let whole = GraphFollower::segment_of(&commits).unwrap().unwrap();
    assert!(together.dump().unwrap() == dump(&GraphState::of(vec![Arc::new(whole)])).unwrap());
}
