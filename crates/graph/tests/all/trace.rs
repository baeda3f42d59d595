//! Lineage by cause, against a walk that continues from every vertex at every time at which it reaches it.

use std::collections::BTreeSet;

use fieldstone_core::value::Value;
use fieldstone_format::graph::{RelationRow, VertexName};
use fieldstone_graph::trace::{TraceOptions, Way, trace};
use fieldstone_journal::session::Limits;
use fieldstone_testkit::{random::seeds, seeded};

use crate::history::{History, Standing, vertex};

impl History {
    /// After everything, or just before a vertex was deleted that nothing has named since.
    fn begins(&self, root: &VertexName, at: u64) -> u64 {
        let own = self.vertices.iter().filter(|(row, _)| row.vertex == *root && row.version.stamp <= at);
        let deletions = own.filter(|(row, _)| row.version.deleted);
        let Some(last) = deletions.map(|(row, _)| row.version.stamp).max() else { return at };
        let there = |(_, _, ended, row): &Standing<'_>| {
            [&row.source, &row.target].contains(&root) && *ended == u64::MAX
        };
        let put = self.vertex(root, at).is_some();
        if put || self.standing(at).iter().any(there) { at } else { last - 1 }
    }

    /// The relations of a walk that continues from every vertex at every time at which it reaches it.
    fn walked(
        &self,
        root: &VertexName,
        options: &TraceOptions,
    ) -> BTreeSet<(String, VertexName, VertexName, u64)> {
        let up = options.way == Way::Up;
        let standing = self.standing(options.at.unwrap_or(u64::MAX));
        let start =
            if up { self.begins(root, options.at.unwrap_or(u64::MAX)) } else { options.since.unwrap_or(0) };
        let (mut reached, mut taken) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![(root.clone(), start, 0)];
        while let Some(state) = open.pop() {
            if reached.insert(state.clone()) {
                let mut next = BTreeSet::new();
                self.hops(&state, &standing, options, &mut next, &mut taken);
                open.extend(next);
            }
        }
        taken
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
                ("exe", _) => *time.min(begin),
                (_, true) => *time.min(end),
                (_, false) => *time.max(begin),
            };
            taken.insert((kind.to_owned(), row.source.clone(), row.target.clone(), *begin));
            // Without a bound the number of hops to a vertex does not matter.
            next.insert((far.clone(), after, depth + u32::from(options.depth.is_some())));
        }
    }
}

/// A vertex, a time and hops.
type Reached = (VertexName, u64, u32);

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
fn it_is_what_a_walk_finds_that_goes_on_from_every_time() {
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
        let Ok(lineage) = trace(&state, &root, &options, &mut Limits::default()) else {
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
