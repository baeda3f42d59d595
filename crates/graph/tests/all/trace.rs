//! Lineage by cause: against a walk that finds all that is reached again and again, until nothing changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName, VertexRow};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_graph::segment::{CommitOrder, Rows, build};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::trace::{TraceOptions, Way, trace};
use fieldstone_testkit::{Random, random::seeds, seeded};

/// What was put, row by row.
#[derive(Default)]
struct History {
    relations: Vec<(RelationRow, u32)>,
    vertices: Vec<(VertexRow, u32)>,
}

fn vertex(dice: &mut Random, kinds: &[&str]) -> VertexName {
    let kind: &str = dice.pick::<&str>(kinds);
    VertexName::new(kind, &dice.below(3).to_string())
}

impl History {
    fn random(dice: &mut Random) -> History {
        let mut history = History::default();
        let mut stamps: Vec<u64> = (1..40).collect();
        for _ in 0..5 + dice.below(30) {
            let stamp = stamps.remove(dice.index(stamps.len()));
            let user = 1 + u32::from(dice.one_in(6));
            let version = Version { stamp, time: 0, deleted: dice.one_in(9) };
            if version.deleted && dice.one_in(2) {
                let vertex = vertex(dice, &["file", "job"]);
                history
                    .vertices
                    .push((VertexRow { vertex, version, fixed: None, props: Props::default() }, user));
                continue;
            }
            let (kind, source, target) = match dice.below(9) {
                0 => ("contains", vertex(dice, &["job"]), vertex(dice, &["process"])),
                1 => ("exe", vertex(dice, &["job"]), vertex(dice, &["file"])),
                2..5 => ("read", vertex(dice, &["job", "process"]), vertex(dice, &["file"])),
                _ => ("write", vertex(dice, &["job", "process"]), vertex(dice, &["file"])),
            };
            let replaces = kind == "write" && !version.deleted && dice.one_in(3);
            let props = if replaces {
                Props::of([("replaces", &Value::Bool(true))]).unwrap()
            } else {
                Props::default()
            };
            let until = (!version.deleted && dice.one_in(3)).then(|| stamp + dice.below(6));
            let row = RelationRow { kind: kind.into(), source, target, version, until, props };
            history.relations.push((row, user));
        }
        history
    }

    fn state(&self, dice: &mut Random) -> GraphState {
        let mut parts = [Rows::default(), Rows::default()];
        for (row, user) in &self.relations {
            let part = &mut parts[dice.index(2)];
            part.add(
                CommitOrder { known: CommitKnown { since: 1, stamp: 1 }, user: *user },
                &Record::Relations(vec![row.clone()]).encode(),
            )
            .unwrap();
        }
        for (row, user) in &self.vertices {
            let part = &mut parts[dice.index(2)];
            part.add(
                CommitOrder { known: CommitKnown { since: 1, stamp: 1 }, user: *user },
                &Record::Vertices(vec![row.clone()]).encode(),
            )
            .unwrap();
        }
        GraphState::of(
            parts.iter().filter(|part| !part.is_empty()).map(|part| Arc::new(build(part).unwrap())).collect(),
        )
    }

    /// Puts that count at a moment: begin, end, when one of the ends was deleted, row.
    fn standing(&self, at: u64) -> Vec<Standing<'_>> {
        let mut standing = Vec::new();
        for (row, user) in self.relations.iter().filter(|(row, _)| !row.version.deleted) {
            let stamp = row.version.stamp;
            let later = |version: &Version, by: u32| {
                version.deleted && by == *user && (stamp..=at).contains(&version.stamp)
            };
            let same = |other: &RelationRow| {
                (&other.kind, &other.source, &other.target) == (&row.kind, &row.source, &row.target)
            };
            let deleted = self.relations.iter().any(|(other, by)| same(other) && later(&other.version, *by));
            if stamp > at || deleted {
                continue;
            }
            let ended = self.vertices.iter().filter(|(other, by)| {
                [&row.source, &row.target].contains(&&other.vertex) && later(&other.version, *by)
            });
            let ended = ended.map(|(other, _)| other.version.stamp).min().unwrap_or(u64::MAX);
            standing.push((stamp, row.until.unwrap_or(stamp).min(ended), ended, row));
        }
        standing
    }

    /// After everything, or just before a vertex was removed that nothing names since.
    fn begins(&self, root: &VertexName, at: u64) -> u64 {
        let own = self.vertices.iter().filter(|(row, _)| row.vertex == *root && row.version.stamp <= at);
        let Some(last) = own.map(|(row, _)| row.version.stamp).max() else { return at };
        let there = |(_, _, ended, row): &Standing<'_>| {
            [&row.source, &row.target].contains(&root) && *ended == u64::MAX
        };
        if self.standing(at).iter().any(there) { at } else { last - 1 }
    }

    /// Relations that a walk takes. What is reached is found again and again from all that was reached before, until
    /// nothing changes; of one vertex, between the same writes that replace it, what allows more stays.
    fn walked(
        &self,
        root: &VertexName,
        options: &TraceOptions,
    ) -> BTreeSet<(String, VertexName, VertexName, u64)> {
        let up = options.way == Way::Up;
        let standing = self.standing(options.at.unwrap_or(u64::MAX));
        let start =
            if up { self.begins(root, options.at.unwrap_or(u64::MAX)) } else { options.since.unwrap_or(0) };
        let mut reached: BTreeSet<Reached> = BTreeSet::new();
        loop {
            let (mut next, mut taken) = (BTreeSet::from([(root.clone(), start, 0)]), BTreeSet::new());
            for state in &reached {
                self.hops(state, &standing, options, &mut next, &mut taken);
            }
            let epoch = |state: &Reached| epoch(&standing, &state.0, state.1, up);
            let allows_more = |other: &Reached, state: &Reached| {
                let no_less = if up { other.1 >= state.1 } else { other.1 <= state.1 };
                other != state
                    && other.0 == state.0
                    && no_less
                    && other.2 <= state.2
                    && epoch(other) == epoch(state)
            };
            let kept = next.iter().filter(|state| !next.iter().any(|other| allows_more(other, state)));
            let kept: BTreeSet<Reached> = kept.cloned().collect();
            if kept == reached {
                return taken;
            }
            reached = kept;
        }
    }

    fn hops(
        &self,
        (here, time, depth): &Reached,
        standing: &[Standing<'_>],
        options: &TraceOptions,
        next: &mut BTreeSet<Reached>,
        taken: &mut BTreeSet<(String, VertexName, VertexName, u64)>,
    ) {
        let up = options.way == Way::Up;
        let hiding = hiding(standing, here, *time, up);
        for (begin, end, ended, row) in standing {
            let (kind, from_here) = (&*row.kind, row.source == *here);
            let far = if from_here { &row.target } else { &row.source };
            if !from_here && row.target != *here {
                continue;
            }
            if kind == "contains" {
                next.insert((far.clone(), *time, *depth));
                continue;
            }
            if options.depth.is_some_and(|most| *depth >= most) {
                continue;
            }
            let wanted = match (kind, up) {
                ("write", true) | ("read", false) => !from_here,
                ("write", false) | ("read", true) => from_here,
                (_, up) => up && from_here,
            };
            let hidden = hiding.is_some_and(|hiding| if up { *begin < hiding } else { *begin > hiding });
            let in_time =
                if up { begin <= time && (time < ended || *ended == u64::MAX) } else { end >= time };
            if !wanted || (!from_here && hidden) || !in_time {
                continue;
            }
            let after = match (kind, up) {
                ("exe", _) => *time,
                (_, true) => *time.min(end),
                (_, false) => *time.max(begin),
            };
            taken.insert((kind.to_owned(), row.source.clone(), row.target.clone(), *begin));
            // Without a bound the hops to a vertex do not matter.
            next.insert((far.clone(), after, depth + u32::from(options.depth.is_some())));
        }
    }
}

/// Begin, end, when one of the ends was deleted, row.
type Standing<'a> = (u64, u64, u64, &'a RelationRow);
/// A vertex, a time and hops.
type Reached = (VertexName, u64, u32);

/// How many times at which something changes for a walk at a vertex are over: writes that replace it, and, upstream,
/// deletions that ended what it looks at.
fn epoch(standing: &[Standing<'_>], here: &VertexName, time: u64, up: bool) -> usize {
    let mut bounds = BTreeSet::new();
    for (begin, _, ended, row) in standing {
        let (from, to) = (row.source == *here, row.target == *here);
        let looked_at = match &*row.kind {
            "contains" => from || to,
            "write" => to,
            _ => from,
        };
        if &*row.kind == "write" && to && row.props.get("replaces").unwrap() == Some(Value::Bool(true)) {
            bounds.insert(*begin);
        }
        if up && looked_at && *ended != u64::MAX {
            bounds.insert(*ended);
        }
    }
    bounds.into_iter().filter(|bound| *bound <= time).count()
}

/// The write that hides others at a vertex and a time.
fn hiding(standing: &[Standing<'_>], here: &VertexName, time: u64, up: bool) -> Option<u64> {
    let replacing = standing.iter().filter(|(begin, .., row)| {
        let replaces = &*row.kind == "write"
            && row.target == *here
            && row.props.get("replaces").unwrap() == Some(Value::Bool(true));
        replaces && (*begin <= time) == up
    });
    let stamps = replacing.map(|(begin, ..)| *begin);
    if up { stamps.max() } else { stamps.min() }
}

#[test]
fn it_is_what_a_walk_finds_that_tries_all_it_reached_again() {
    for seed in seeds(2_000) {
        let dice = &mut *seeded(seed);
        let history = History::random(dice);
        let state = history.state(dice);
        let root = vertex(dice, &["file", "file", "job", "process"]);
        let options = TraceOptions {
            way: if dice.one_in(2) { Way::Up } else { Way::Down },
            depth: dice.one_in(3).then(|| dice.below(4) as u32),
            at: dice.one_in(3).then(|| dice.below(42)),
            since: dice.one_in(3).then(|| dice.below(42)),
            ..TraceOptions::default()
        };
        let Ok(lineage) = trace(&state, &root, &options) else {
            let named = |row: &RelationRow| [&row.source, &row.target].contains(&&root);
            assert!(!history.relations.iter().any(|(row, _)| named(row)));
            continue;
        };
        let found: BTreeSet<_> = lineage
            .edges
            .iter()
            .filter(|edge| edge.kind != "contains")
            .map(|edge| (edge.kind.clone(), edge.near.clone(), edge.far.clone(), edge.stamp))
            .collect();
        assert_eq!(found, history.walked(&root, &options), "{options:?}");
    }
}
