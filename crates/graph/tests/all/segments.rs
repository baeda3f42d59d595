//! Segments, built, merged and read, against a plain look at all rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_format::graph::{Record, RelationRow, VertexName};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_graph::follower::dump;
use fieldstone_graph::segment::{CommitOrder, MemorySink, Rows, Segment, build, merge};
use fieldstone_graph::state::GraphState;
use fieldstone_testkit::{Random, random::seeds, seeded};

use crate::common;

fn merged(segments: &[&Segment]) -> Segment {
    let mut sink = MemorySink::default();
    let summary = merge(segments, &mut sink).unwrap();
    Segment::over(sink.storage(), summary).unwrap()
}

/// Commits with their records.
fn commits(dice: &mut Random) -> Vec<(CommitOrder, Vec<Record>)> {
    let n = 1 + dice.below(8);
    let commit = |dice: &mut Random| {
        let source = CommitOrder {
            known: CommitKnown { since: dice.below(4), stamp: dice.below(3) },
            user: 1 + dice.below(2) as u32,
        };
        (source, (0..1 + dice.below(3)).map(|_| common::record(dice)).collect())
    };
    (0..n).map(|_| commit(dice)).collect()
}

fn rows(commits: &[(CommitOrder, Vec<Record>)]) -> Rows {
    let mut rows = Rows::default();
    for (source, records) in commits {
        rows.begin(*source);
        records.iter().for_each(|record| rows.add(*source, &record.encode()).unwrap());
    }
    rows
}

#[test]
fn parts_in_any_order_merged_or_not_say_what_the_whole_says() {
    for seed in seeds(300) {
        let dice = &mut *seeded(seed);
        let mut commits = commits(dice);
        let whole = dump(&GraphState::of(vec![Arc::new(build(&rows(&commits)).unwrap())])).unwrap();
        for _ in 0..4 {
            commits = dice.shuffled(commits);
            let cut = dice.below(1 + commits.len() as u64) as usize;
            let (a, b) = commits.split_at(cut);
            let parts = [a, b].map(|part| Arc::new(build(&rows(part)).unwrap()));
            assert_eq!(dump(&GraphState::of(parts.to_vec())).unwrap(), whole);
            let both = merged(&[&*parts[0], &*parts[1]]);
            assert_eq!(dump(&GraphState::of(vec![Arc::new(both)])).unwrap(), whole);
        }
    }
}

/// Rows by stamp and user.
type Versions<'a> = BTreeMap<(u64, u32), Vec<&'a RelationRow>>;

/// Both ends of a relation have the same versions, and those that were put.
#[test]
fn a_relation_stands_at_both_of_its_ends() {
    for seed in seeds(200) {
        let dice = &mut *seeded(seed);
        let commits = commits(dice);
        let state = GraphState::of(vec![Arc::new(build(&rows(&commits)).unwrap())]);
        let mut put: BTreeMap<(String, VertexName, VertexName), Versions<'_>> = BTreeMap::new();
        for (source, records) in &commits {
            for row in records.iter().flat_map(|record| match record {
                Record::Relations(rows) | Record::ArchivedRelations(_, rows) => rows.as_slice(),
                _ => &[],
            }) {
                let relation = (row.kind.to_string(), row.source.clone(), row.target.clone());
                put.entry(relation)
                    .or_default()
                    .entry((row.version.stamp, source.user))
                    .or_default()
                    .push(row);
            }
        }
        for ((kind, source, target), versions) in put {
            let ends = [VertexPlace::of(&source), VertexPlace::of(&target)];
            for (end, far, reverse) in [(ends[0], ends[1], false), (ends[1], ends[0], true)] {
                let edges = state.edges(end, &|known, back| known == kind && back == reverse).unwrap();
                let edge = edges.iter().find(|edge| edge.far == far).unwrap();
                let stamps: Vec<(u64, u32)> = edge.versions.iter().map(|v| (v.stamp, v.user)).collect();
                let mut expected: Vec<(u64, u32)> = versions.keys().copied().collect();
                expected.sort_by_key(|(stamp, user)| (std::cmp::Reverse(*stamp), *user));
                assert_eq!(stamps, expected);
                for version in &edge.versions {
                    let (time, props) = state.reader().row(end, edge, version).unwrap();
                    let candidates = &versions[&(version.stamp, version.user)];
                    assert!(candidates.iter().any(|row| {
                        row.version.time == time
                            && row.props == props
                            && row.until == version.until
                            && row.version.deleted == version.deleted
                    }));
                }
            }
        }
    }
}
