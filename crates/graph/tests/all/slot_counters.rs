//! The slots of relations, and the counters of a walk in them, against a model that computes both at once;
//! and the paper's Fig. 6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning, SlotLabels};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_graph::partition::Partition;
use fieldstone_graph::segment::{CommitOrder, Rows};
use fieldstone_graph::slot::{Engine, Slots, all_splits};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::{Travel, TravelStep, VertexTest};
use fieldstone_journal::session::Limits;
use fieldstone_slots::simulated::NetworkFaults;
use fieldstone_slots::travels;
use fieldstone_testkit::{Random, random::seeds, require::full, seeded};

use crate::slot_model::{Half, Model, WalkCost};
use crate::slots::Simulated;

/// Type, source, target.
type Relation = (&'static str, u64, u64);

fn file(number: u64) -> VertexName {
    VertexName::new("file", &number.to_string())
}

fn place(number: u64) -> VertexPlace {
    VertexPlace::of(&file(number))
}

/// Relations as rows of a log, each with a stamp of its own.
fn rows(relations: &[Relation], stamp: &mut u64) -> Rows {
    let mut rows = Rows::default();
    let row = |(kind, source, target): &Relation| {
        *stamp += 1;
        let version = Version { stamp: *stamp, time: 0, deleted: false };
        let (source, target) = (file(*source), file(*target));
        RelationRow { kind: (*kind).into(), source, target, version, until: None, props: Props::default() }
    };
    let record = Record::Relations(relations.iter().map(row).collect()).encode();
    rows.add(CommitOrder { known: CommitKnown { since: 1, stamp: 1 }, user: 1 }, &record).unwrap();
    rows
}

/// Edges of a graph whose vertices have different degrees: in half of the graphs, each bit of both ends is
/// drawn as in RMAT; some graphs have a vertex with many edges.
fn graph(dice: &mut Random) -> Vec<Relation> {
    let bits = 6 + dice.below(3);
    let (skewed, hub) = (dice.one_in(2), dice.one_in(2));
    let mut relations = Vec::new();
    for _ in 0..300 + dice.below(1_200) {
        let (mut source, mut target) = (0, 0);
        for _ in 0..bits {
            let (a, b) = match dice.below(100) {
                _ if !skewed => (dice.below(2), dice.below(2)),
                0..45 => (0, 0),
                45..60 => (0, 1),
                60..75 => (1, 0),
                _ => (1, 1),
            };
            (source, target) = (source << 1 | a, target << 1 | b);
        }
        if hub && dice.one_in(4) {
            source = 0;
        }
        relations.push((*dice.pick(&["has", "read"]), source, target));
    }
    relations
}

/// The relations that a slot shows, read from its own shelf.
fn shown(slots: &Simulated, number: u16) -> BTreeSet<(VertexPlace, Half)> {
    let content = slots.cluster.contents().unwrap().swap_remove(number.into());
    let state = GraphState::of(content.segments.clone());
    let partitioner = slots.cluster.partitioner();
    let mut all = BTreeSet::new();
    for segment in &content.segments {
        for i in 0..segment.vertices() {
            let vertex = segment.place(i).unwrap();
            let splitting = content.splits.get(&vertex).cloned().unwrap_or_default();
            for edge in state.edges(vertex, &|_, _| true).unwrap() {
                let path = partitioner.path(vertex, edge.far);
                let top = partitioner.top(vertex, number);
                let leaf = partitioner.leaf_below(top, path, &|partition| splitting.finished.has(partition));
                if partitioner.slot(vertex, leaf) == number {
                    let direction = edge.direction;
                    all.insert((vertex, (direction.kind, direction.reverse, edge.far)));
                }
            }
        }
    }
    all
}

fn travel(start: u64, steps: usize, kinds: &[&str]) -> Travel {
    let test = VertexTest { named: Some(vec![file(start)]), ..VertexTest::default() };
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let mut all = vec![TravelStep::Vertices(test)];
    all.extend((0..steps).map(|_| TravelStep::Edges { kinds: kinds.clone(), versions: None }));
    Travel { steps: all, ..Travel::default() }
}

fn check(slots: &Simulated, model: &Model) {
    for (number, expected) in (0..).zip(model.slots()) {
        let own = shown(slots, number);
        assert!(own == expected, "slot {number}: {:?}", own.symmetric_difference(&expected));
    }
    let contents = slots.cluster.contents().unwrap();
    let splits = all_splits(&contents);
    for (vertex, own) in &splits {
        let numbers: BTreeSet<u32> = own.known.partitions().map(Partition::number).collect();
        assert_eq!(numbers, model.splits.get(vertex).cloned().unwrap_or_default());
        assert_eq!(own.known, own.finished, "all that is split is finished");
    }
    assert!(model.splits.keys().all(|vertex| splits.contains_key(vertex)));
}

#[test]
fn slots_have_and_count_what_the_rules_say() {
    let (mut split, mut moved, mut forwarded, mut restarts) = (0, 0, 0, 0);
    for seed in seeds(if full() { 100 } else { 40 }) {
        let dice = &mut *seeded(seed);
        let partitioning = Partitioning {
            slots: 1 + dice.below(32) as u16,
            scheme: PartitionScheme::ALL[seed as usize % 4],
            threshold: 2 + dice.below(40) as u32,
            labels: *dice.pick(&SlotLabels::ALL),
        };
        let faults = if dice.one_in(4) {
            NetworkFaults { lost: 50, twice: 50, damaged: 20 }
        } else {
            NetworkFaults::default()
        };
        let relations = graph(dice);
        let mut slots = Simulated::new(partitioning, faults, seed);
        let mut clients = [slots.cluster.client(), slots.cluster.client()];
        let (mut stamp, mut at) = (0, 0);
        while at < relations.len() {
            let end = relations.len().min(at + 1 + dice.index(200));
            // Some are put again: another version, but no new relation.
            let again = (0..dice.below(5)).map(|_| relations[dice.index(end)]);
            let batch: Vec<Relation> = relations[at..end].iter().copied().chain(again).collect();
            let rows = rows(&batch, &mut stamp);
            match dice.below(3) {
                0 => slots.cluster.insert(&rows).unwrap(),
                n => clients[n as usize - 1].insert(&rows).unwrap(),
            }
            at = end;
            if dice.one_in(12) {
                slots = slots.restarted(faults, seed + 1);
                clients = [slots.cluster.client(), slots.cluster.client()];
                restarts += 1;
            }
        }
        slots.cluster.settle().unwrap();
        let placed = |(kind, source, target): &Relation| (Arc::from(*kind), place(*source), place(*target));
        let model = Model::of(partitioning, &relations.iter().map(placed).collect::<Vec<_>>());
        check(&slots, &model);
        split += model.splits.len();
        let elsewhere = |(vertex, halves): (&VertexPlace, &BTreeMap<Half, u32>)| {
            halves.values().filter(|slot| **slot != model.home(*vertex)).count()
        };
        moved += model.halves.iter().map(elsewhere).sum::<usize>();

        let state = Arc::new(slots.state());
        let most = model.halves.iter().max_by_key(|(_, halves)| halves.len()).unwrap().0;
        let hub = relations.iter().find_map(|(_, source, target)| {
            [*source, *target].into_iter().find(|number| place(*number) == *most)
        });
        for start in [hub.unwrap(), dice.pick(&relations).2] {
            for (steps, kinds) in [(1, vec![]), (1, vec!["has"]), (3, vec!["has", "wasReadBy"]), (3, vec![])]
            {
                let direction = |half: &Half| match (&*half.0, half.1) {
                    ("has", false) => kinds.is_empty() || kinds.contains(&"has"),
                    ("read", true) => kinds.is_empty() || kinds.contains(&"wasReadBy"),
                    _ => kinds.is_empty(),
                };
                let expected = model.walk(place(start), steps, direction);
                forwarded += expected.forwards;
                for engine in Engine::ALL {
                    let plan = travel(start, steps, &kinds).plan(state.vocabulary()).unwrap();
                    let walk =
                        travels::begin(&slots.cluster, &state, &[], plan, engine, Limits::default()).unwrap();
                    let walked = walk.run().unwrap();
                    let figures = walked.slots().unwrap();
                    let (requests, forwards) = (figures.requests(), figures.forwards());
                    let own = WalkCost { requests, forwards, reads: figures.reads() };
                    assert_eq!(own, expected, "{partitioning:?} {engine:?} {steps} steps {kinds:?}");
                    assert_eq!(figures.communication(), requests + forwards);
                }
            }
        }
    }
    let least = |all: usize| if full() { all } else { all / 3 };
    let enough = split > least(500) && moved > least(5_000) && restarts > least(20);
    let enough = enough && forwarded > least(10_000) as u64;
    assert!(enough, "{split} {moved} {forwarded} {restarts}");
}

/// Slots of Fig. 6, level by level: below a part, from left to right, the slots where its relations end up.
const FIGURE: [&[(u32, &[u32])]; 4] = [
    &[(1, &[1, 5, 3, 6, 2, 7, 4, 8])],
    &[(1, &[1, 5, 3, 6]), (2, &[2, 7, 4, 8])],
    &[(1, &[1, 5]), (3, &[3, 6]), (2, &[2, 7]), (4, &[4, 8])],
    &[(1, &[1]), (5, &[5]), (3, &[3]), (6, &[6]), (2, &[2]), (7, &[7]), (4, &[4]), (8, &[8])],
];

#[test]
fn a_vertex_splits_as_in_the_papers_figure() {
    let (threshold, labels) = (7, SlotLabels::Paper);
    let partitioning = Partitioning { slots: 8, scheme: PartitionScheme::Dido, threshold, labels };
    let slots = Simulated::new(partitioning, NetworkFaults::default(), 6);
    let home = |number: u64| u32::from(slots.cluster.partitioner().home(place(number))) + 1;
    let v = (0..).find(|number| home(*number) == 1).unwrap();
    // The number of far ends with their home in each slot.
    let mut ends: Vec<Vec<u64>> = vec![Vec::new(); 8];
    for number in v + 1..v + 1_000 {
        ends[home(number) as usize - 1].push(number);
    }
    // The place of each relation of v, by the far end's home.
    let leaves = || -> BTreeSet<(u32, u32)> {
        let of_slot = |slot: u16| {
            let own = shown(&slots, slot).into_iter().filter(|(vertex, _)| *vertex == place(v));
            own.map(move |(_, (_, _, far))| (u32::from(slot) + 1, far)).collect::<Vec<_>>()
        };
        let far_home = |far: VertexPlace| u32::from(slots.cluster.partitioner().home(far)) + 1;
        (0..8).flat_map(of_slot).map(|(slot, far)| (slot, far_home(far))).collect()
    };
    let level = |depth: usize| -> BTreeSet<(u32, u32)> {
        FIGURE[depth].iter().flat_map(|(slot, below)| below.iter().map(move |end| (*slot, *end))).collect()
    };
    let (mut stamp, mut ways) = (0, vec![BTreeSet::from([1u32]); 9]);
    let mut depth = 0;
    // The last relation of each round is one too many: every leaf of the level splits.
    for (round, count) in [(1, 1), (2, 1), (3, 2)] {
        for end in (0..count).flat_map(|_| [1, 2, 3, 4, 5, 6, 7, 8usize]) {
            let far = ends[end - 1].pop().unwrap();
            slots.cluster.insert(&rows(&[("has", v, far)], &mut stamp)).unwrap();
            slots.cluster.settle().unwrap();
            for (slot, end) in leaves() {
                ways[end as usize].insert(slot);
                let ancestor = FIGURE.iter().flat_map(|level| level.iter());
                let mut ancestor = ancestor.filter(|(of, below)| *of == slot && below.contains(&end));
                assert!(ancestor.next().is_some(), "a relation to S{end} in S{slot}");
            }
        }
        depth += 1;
        assert_eq!(depth, round);
        assert_eq!(leaves(), level(depth), "level {depth}");
        let contents = slots.cluster.contents().unwrap();
        let split = all_splits(&contents)[&place(v)].known.len();
        assert_eq!(split, (1 << depth) - 1, "all leaves of the level above are split, and no more");
    }
    assert_eq!(ways[8], [1, 2, 4, 8].into(), "v1 is at home in S8: S1 gives its relation to S2, S2 to S4");
    assert_eq!(ways[7], [1, 2, 7].into(), "S2 splits to S4, then to S7");
}
