//! Traversals, against walks that try everything, round by round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::graph::{Props, RelationRow, VertexName};
use fieldstone_graph::travel::{Path, Travel, TravelStep, VertexTest, travel, travel_within};
use fieldstone_graph::vocabulary::Vocabulary;
use fieldstone_journal::session::Limits;
use fieldstone_testkit::{Random, random::seeds, seeded};

use crate::history::{History, vertex};

/// A hop in the test's own form.
#[derive(Debug, Clone, Default)]
struct Hop {
    kinds: Vec<&'static str>,
    versions: Option<(u64, u64)>,
    edge: Option<Test>,
    vertex: Option<Test>,
    returned: bool,
}

/// A traversal in the test's own form.
#[derive(Debug, Clone)]
pub struct Walk {
    at: u64,
    causal: bool,
    starts: Vec<VertexName>,
    start_returned: bool,
    hops: Vec<Hop>,
    /// Hops that are repeated, and the maximum number of rounds.
    repeat: Option<(usize, u32)>,
    pub paths: bool,
}

const KINDS: [&str; 8] =
    ["write", "wasWrittenBy", "read", "wasReadBy", "exe", "exedBy", "contains", "belongs"];
/// Rounds after which nothing new can come.
const ROUNDS: u32 = 60;

fn test(dice: &mut Random) -> Test {
    let n = Value::Int(dice.below(4) as i64);
    match dice.below(3) {
        0 => Test::Equal(n),
        1 => Test::AtLeast(n),
        _ => Test::IsIn(vec![n, Value::Int(1)]),
    }
}

impl Walk {
    pub fn random(dice: &mut Random) -> Walk {
        let hops: Vec<Hop> = (0..1 + dice.below(3))
            .map(|_| Hop {
                kinds: (0..dice.below(6)).map(|_| *dice.pick(&KINDS)).collect(),
                versions: dice.one_in(6).then(|| (dice.below(20), 10 + dice.below(30))),
                edge: dice.one_in(6).then(|| test(dice)),
                vertex: dice.one_in(8).then(|| test(dice)),
                returned: dice.one_in(2),
            })
            .collect();
        let repeat = dice.one_in(2).then(|| {
            let most = if dice.one_in(3) { u32::MAX } else { 1 + dice.below(3) as u32 };
            (1 + dice.index(hops.len()), most)
        });
        let kinds = ["file", "job", "process"];
        Walk {
            at: if dice.one_in(3) { dice.below(42) } else { u64::MAX },
            causal: dice.one_in(2),
            starts: (0..1 + dice.below(2)).map(|_| vertex(dice, &kinds)).collect(),
            start_returned: dice.one_in(4),
            hops,
            repeat,
            paths: dice.one_in(3),
        }
    }

    pub fn travel(&self) -> Travel {
        let test = VertexTest { named: Some(self.starts.clone()), ..VertexTest::default() };
        let mut steps = vec![TravelStep::Vertices(test)];
        let returned = |returned: bool| (returned && !self.paths).then_some(TravelStep::Return);
        steps.extend(returned(self.start_returned));
        for (i, hop) in self.hops.iter().enumerate() {
            let kinds = hop.kinds.iter().map(|kind| (*kind).to_owned()).collect();
            steps.push(TravelStep::Edges { kinds, versions: hop.versions });
            steps.extend(hop.edge.clone().map(|test| TravelStep::EdgeProperty("n".into(), test)));
            steps.extend(hop.vertex.clone().map(|test| TravelStep::VertexProperty("n".into(), test)));
            steps.extend(returned(hop.returned));
            if let Some((_, most)) = self.repeat.filter(|(body, _)| *body == i + 1) {
                steps.push(TravelStep::Repeat((most < u32::MAX).then_some(most)));
            }
        }
        steps.extend(self.paths.then_some(TravelStep::FullPaths));
        let at = (self.at < u64::MAX).then_some(self.at);
        Travel { at, causal: self.causal, steps, ..Travel::default() }
    }
}

/// A vertex and, by cause, a time.
type Here = (VertexName, Option<u64>);
/// A relation that was taken: its type as named from the near end, and its stamp.
type Way = (String, u64);

/// The name from one end of the type of a relation that begins or ends there.
fn called(row: &RelationRow, from: bool) -> String {
    Vocabulary::default().name(&row.kind, !from)
}

fn passes(test: &Option<Test>, props: Option<&Props>) -> bool {
    let value = || props.and_then(|props| props.get("n").unwrap());
    test.as_ref().is_none_or(|test| value().is_some_and(|value| test.matches(&value)))
}

struct Tried<'a> {
    history: &'a History,
    walk: &'a Walk,
}

impl Tried<'_> {
    /// The continuations of a hop from a place.
    fn hop(&self, (here, time): &Here, hop: &Hop) -> Vec<(Way, Here)> {
        let walk = self.walk;
        let standing = self.history.standing(walk.at);
        let mut found = Vec::new();
        let mut taken: Vec<(u64, u64, u64, &RelationRow)> = match (walk.causal, hop.versions) {
            (true, _) => standing.clone(),
            (false, Some(_)) => {
                let put = self.history.relations.iter().map(|(row, _)| row);
                let put = put.filter(|row| !row.version.deleted && row.version.stamp <= walk.at);
                put.map(|row| (row.version.stamp, u64::MAX, u64::MAX, row)).collect()
            }
            (false, None) => {
                let holds = standing.iter().filter(|(_, _, ended, _)| *ended == u64::MAX);
                let mut newest = BTreeMap::new();
                for held in holds {
                    let key = (&held.3.kind, &held.3.source, &held.3.target);
                    let known = newest.entry(key).or_insert(*held);
                    if held.0 > known.0 {
                        *known = *held;
                    }
                }
                newest.into_values().collect()
            }
        };
        taken.retain(|(stamp, ..)| hop.versions.is_none_or(|(from, to)| (from..=to).contains(stamp)));
        for (begin, end, ended, row) in taken {
            for from in [true, false] {
                let (near, far) = if from { (&row.source, &row.target) } else { (&row.target, &row.source) };
                let kind = called(row, from);
                let wanted = hop.kinds.is_empty() || hop.kinds.contains(&kind.as_str());
                if near != here || !wanted || !passes(&hop.edge, Some(&row.props)) {
                    continue;
                }
                if !self.is_such(far, &hop.vertex) {
                    continue;
                }
                let end = end.max(begin).min(ended);
                let after = match walk.causal {
                    false => Some(None),
                    true => self.after(here, *time, &kind, (begin, end, ended)),
                };
                found.extend(after.map(|after| ((kind, begin), (far.clone(), after))));
            }
        }
        found
    }

    fn is_such(&self, vertex: &VertexName, test: &Option<Test>) -> bool {
        let held = self.history.vertex(vertex, self.walk.at);
        let last = || {
            let own = self.history.vertices.iter().map(|(row, _)| row);
            let put = own.filter(|row| !row.version.deleted && row.version.stamp <= self.walk.at);
            put.filter(|row| row.vertex == *vertex).max_by_key(|row| row.version.stamp)
        };
        let row = held.or_else(|| last().filter(|_| self.walk.causal));
        passes(test, row.map(|row| &row.props))
    }

    /// The time after a relation by cause, if the walk takes it.
    fn after(
        &self,
        here: &VertexName,
        time: Option<u64>,
        kind: &str,
        (begin, end, ended): (u64, u64, u64),
    ) -> Option<Option<u64>> {
        let standing = self.history.standing(self.walk.at);
        let replaced = standing.iter().filter(|(.., row)| {
            &*row.kind == "write"
                && row.target == *here
                && row.props.get("replaces").unwrap() == Some(Value::Bool(true))
        });
        let replaced: Vec<u64> = replaced.map(|(begin, ..)| *begin).collect();
        let there = |time: u64| ended == u64::MAX || time < ended;
        match kind {
            "wasWrittenBy" | "read" | "exe" => {
                let time = time.unwrap_or(self.walk.at);
                let last = replaced.iter().filter(|stamp| **stamp <= time).max();
                let hidden = kind == "wasWrittenBy" && last.is_some_and(|last| begin < *last);
                // A program is read when it starts.
                let after = time.min(if kind == "exe" { begin } else { end });
                (begin <= time && there(time) && !hidden).then_some(Some(after))
            }
            "write" | "wasReadBy" => {
                let time = time.unwrap_or(0);
                let next = replaced.iter().filter(|stamp| **stamp > time).min();
                let hidden = kind == "wasReadBy" && next.is_some_and(|next| begin > *next);
                (end >= time && !hidden).then_some(Some(time.max(begin)))
            }
            _ => Some(time),
        }
    }

    fn starts(&self) -> BTreeSet<Here> {
        let names = |vertex: &VertexName| {
            let relations = self.history.relations.iter();
            relations.clone().any(|(row, _)| [&row.source, &row.target].contains(&vertex))
                || self.history.vertices.iter().any(|(row, _)| row.vertex == *vertex)
        };
        self.walk.starts.iter().filter(|vertex| names(vertex)).map(|vertex| (vertex.clone(), None)).collect()
    }

    /// The sets of each round and hop, forwards; and the parts of them that reach the end, backwards.
    fn sets(&self) -> Vec<BTreeSet<VertexName>> {
        let Walk { hops, repeat, .. } = self.walk;
        let (body, most) = repeat.unwrap_or((0, 1));
        let rounds = most.min(ROUNDS);
        // Layers: each a set of the walk, its number, and whether the walk may continue after the repeat.
        let mut layers: Vec<(usize, BTreeSet<Here>)> = vec![(0, self.starts())];
        for _ in 0..if body > 0 { rounds } else { 0 } {
            for (i, hop) in hops[..body].iter().enumerate() {
                let before = layers.last().unwrap().1.clone();
                let next = before.iter().flat_map(|here| self.hop(here, hop)).map(|(_, here)| here).collect();
                layers.push((i + 1, next));
            }
        }
        let of_tail = |from: BTreeSet<Here>| {
            let mut tail = vec![from];
            for hop in &hops[body..] {
                let next = tail.last().unwrap().iter().flat_map(|here| self.hop(here, hop));
                tail.push(next.map(|(_, here)| here).collect());
            }
            tail
        };
        let ends = |here: &Here| !of_tail(BTreeSet::from([here.clone()])).last().unwrap().is_empty();
        let ends: BTreeMap<Here, bool> =
            layers.iter().flat_map(|(_, layer)| layer).map(|here| (here.clone(), ends(here))).collect();
        // Backwards: the part of each layer that reaches an end.
        let mut good: Vec<BTreeSet<Here>> = vec![BTreeSet::new(); layers.len()];
        for i in (0..layers.len()).rev() {
            let (set, layer) = &layers[i];
            for here in layer {
                let leaves = *set == body && (body == 0 || i > 0) && ends[here];
                let goes_on = i + 1 < layers.len() && {
                    let next = self.hop(here, &hops[layers[i + 1].0 - 1]);
                    next.iter().any(|(_, there)| good[i + 1].contains(there))
                };
                if leaves || goes_on {
                    good[i].insert(here.clone());
                }
            }
        }
        let mut sets: Vec<BTreeSet<VertexName>> = vec![BTreeSet::new(); hops.len() + 1];
        for ((set, _), good) in layers.iter().zip(&good) {
            sets[*set].extend(good.iter().map(|(vertex, _)| vertex.clone()));
        }
        let yields: BTreeSet<Here> = layers
            .iter()
            .enumerate()
            .filter(|(i, (set, _))| *set == body && (body == 0 || *i > 0))
            .flat_map(|(_, (_, layer))| layer.clone())
            .collect();
        for start in yields {
            let tail = of_tail(BTreeSet::from([start]));
            for (i, layer) in tail.iter().enumerate().skip(1) {
                // Of the places that a start leads to, only those that reach the end.
                for here in layer {
                    let mut left = BTreeSet::from([here.clone()]);
                    for hop in &hops[body + i..] {
                        left = left.iter().flat_map(|here| self.hop(here, hop)).map(|(_, h)| h).collect();
                    }
                    if !left.is_empty() {
                        sets[body + i].insert(here.0.clone());
                    }
                }
            }
        }
        sets
    }

    /// All paths.
    fn ways(&self) -> BTreeSet<(Vec<VertexName>, Vec<Way>)> {
        let mut ways = BTreeSet::new();
        for start in self.starts() {
            let mut way = (vec![start.0.clone()], Vec::new());
            self.go_on(&start, 0, 1, &mut way, &mut ways);
        }
        ways
    }

    fn go_on(
        &self,
        here: &Here,
        set: usize,
        round: u32,
        way: &mut (Vec<VertexName>, Vec<Way>),
        ways: &mut BTreeSet<(Vec<VertexName>, Vec<Way>)>,
    ) {
        let Walk { hops, repeat, .. } = self.walk;
        let (body, most) = repeat.unwrap_or((0, 1));
        let mut next = Vec::new();
        if set == hops.len() {
            ways.insert(way.clone());
        } else {
            next.push((set, round));
        }
        if body > 0 && set == body && round < most {
            next.push((0, round + 1));
        }
        for (i, round) in next {
            for (taken, there) in self.hop(here, &hops[i]) {
                if body > 0 && way.0.contains(&there.0) {
                    continue;
                }
                way.0.push(there.0.clone());
                way.1.push(taken);
                self.go_on(&there, i + 1, round, way, ways);
                way.0.pop();
                way.1.pop();
            }
        }
    }
}

pub fn all_names(travelled: &fieldstone_graph::travel::Travelled, set: usize) -> BTreeSet<VertexName> {
    let names = travelled.names(set, 0, usize::MAX).unwrap();
    let distinct: BTreeSet<VertexName> = names.iter().cloned().collect();
    assert_eq!(distinct.len(), names.len());
    distinct
}

#[test]
fn a_traversal_gives_what_trying_everything_gives() {
    for seed in seeds(4_000) {
        let dice = &mut *seeded(seed);
        let history = History::random(dice);
        let state = Arc::new(history.state(dice));
        let walk = Walk::random(dice);
        let asked = walk.travel();
        let plan = asked.plan(state.vocabulary()).unwrap();
        let travelled = travel(state, plan, &*Env::real().clock, Limits::default()).unwrap();
        let tried = Tried { history: &history, walk: &walk };
        if walk.paths {
            let mut paths = travelled.paths().unwrap();
            let mut found = BTreeSet::new();
            while let Some(Path { vertices, edges }) = paths.next_path().unwrap() {
                let edges = edges.iter().map(|edge| (edge.kind.clone(), edge.stamp)).collect();
                assert!(found.insert((vertices, edges)), "no way comes twice: {walk:?}");
            }
            assert_eq!(found, tried.ways(), "{walk:?}");
            continue;
        }
        let sets = tried.sets();
        let last = walk.hops.len();
        let returned = |i: &usize| match *i {
            0 => walk.start_returned,
            i => walk.hops[i - 1].returned || i == last,
        };
        let expected: Vec<&BTreeSet<VertexName>> = (0..=last).filter(returned).map(|i| &sets[i]).collect();
        let found: Vec<BTreeSet<VertexName>> =
            (0..travelled.sets().len()).map(|set| all_names(&travelled, set)).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{walk:?}");
    }
}

#[test]
fn large_sets_are_walked_to_the_same_end() {
    for seed in seeds(4_000) {
        let dice = &mut *seeded(seed);
        let history = History::crowded(dice);
        let state = Arc::new(history.state(dice));
        let mut walk = Walk { causal: false, paths: false, start_returned: false, ..Walk::random(dice) };
        for hop in &mut walk.hops {
            *hop = Hop { kinds: std::mem::take(&mut hop.kinds), ..Hop::default() };
        }
        let plan = walk.travel().plan(state.vocabulary()).unwrap();
        let [few, many] = [u64::MAX, 0].map(|few| {
            let travelled =
                travel_within(state.clone(), plan.clone(), &*Env::real().clock, Limits::default(), few)
                    .unwrap();
            all_names(&travelled, 0)
        });
        assert_eq!(few, many, "{walk:?}");
    }
}
