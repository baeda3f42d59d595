//! Relations by type and property: with an index and without, in one piece and in slots, equal to a model
//! that looks at every row.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::ErrorKind;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::graph::{EdgeType, Props, Record, RelationRow, TypeDecl, Version, VertexName};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_graph::read::{Relation, Versions, edges};
use fieldstone_graph::relations::{RelationTest, TypeMatches, find_by_type, find_relations};
use fieldstone_graph::segment::{CommitOrder, Rows, Segment, build};
use fieldstone_graph::slot::Slots;
use fieldstone_graph::state::GraphState;
use fieldstone_journal::session::Limits;
use fieldstone_testkit::{Random, random::seeds, seeded};

use crate::history::History;
use crate::slots::{Simulated, faults, partitioning};

/// Kind, near, far, stamp.
type Found = (String, VertexName, VertexName, u64);

/// The names of a relation from either end.
const NAMES: [(&str, &str); 3] = [("derives", "wasDerivedFrom"), ("own", "~own"), ("exe", "exedBy")];
const ENDS: [&str; 3] = ["job", "process", "file"];

/// A value of the property `n`; it may be of several types.
fn value(dice: &mut Random) -> Value {
    let n = dice.below(4);
    match dice.below(6) {
        0 => Value::Float(n as f64 + 0.5),
        1 => Value::Text(format!("a{n}")),
        2 => Value::IntRange(n as i64, n as i64 + 2),
        _ => Value::Int(n as i64),
    }
}

/// A history in which data derive from one another, by a declared type and by an undeclared one.
fn history(dice: &mut Random) -> History {
    let mut history = if dice.one_in(3) { History::crowded(dice) } else { History::random(dice) };
    for (row, _) in &mut history.relations {
        row.kind = match &*row.kind {
            "write" => "derives".into(),
            "read" => "own".into(),
            _ => row.kind.clone(),
        };
        if !row.version.deleted && !dice.one_in(4) {
            row.props = Props::of([("n", &value(dice)), ("m", &Value::Bool(dice.one_in(2)))]).unwrap();
        }
    }
    history
}

fn declaration() -> Rows {
    let edge = EdgeType {
        name: "derives".into(),
        reverse: "wasDerivedFrom".into(),
        index: vec!["n".into()],
        ..EdgeType::default()
    };
    let mut rows = Rows::default();
    let order = CommitOrder { known: CommitKnown { since: 1, stamp: 1 }, user: 1 };
    rows.add(order, &Record::Types(vec![TypeDecl::Edge(edge)]).encode()).unwrap();
    rows
}

fn segments(parts: &[Rows]) -> Vec<Arc<Segment>> {
    parts.iter().filter(|part| !part.is_empty()).map(|part| Arc::new(build(part).unwrap())).collect()
}

fn tests(dice: &mut Random) -> Vec<(String, Test)> {
    let n = value(dice);
    let of_n = match dice.below(7) {
        0 => Test::Equal(n),
        1 => Test::Above(n),
        2 => Test::AtMost(n),
        3 => Test::Between(n, value(dice)),
        4 => Test::IsIn(vec![n, value(dice)]),
        5 => Test::Glob("a*".into()),
        _ => Test::Not(Box::new(Test::Equal(n))),
    };
    let of_m = ("m".to_owned(), Test::Equal(Value::Bool(true)));
    match dice.below(4) {
        0 => vec![],
        1 => vec![of_m, ("n".into(), of_n)],
        _ => vec![("n".into(), of_n)],
    }
}

fn passes(row: &RelationRow, tests: &[(String, Test)]) -> bool {
    let passes = |(name, test): &(String, Test)| {
        row.props.get(name).unwrap().is_some_and(|value| test.matches(&value))
    };
    tests.iter().all(passes)
}

fn listed(found: Vec<Relation>) -> Vec<Found> {
    let mut all: Vec<Found> =
        found.into_iter().map(|edge| (edge.kind, edge.near, edge.far, edge.stamp)).collect();
    all.sort();
    all
}

/// The same by looking at every row.
fn expected(
    history: &History,
    (kind, reverse): (&str, Option<&str>),
    tests: &[(String, Test)],
    at: u64,
) -> Vec<Found> {
    let mut newest: BTreeMap<(&VertexName, &VertexName), (u64, &RelationRow)> = BTreeMap::new();
    for (stamp, _, ended, row) in history.standing(at) {
        if *row.kind == *kind && ended == u64::MAX {
            let known = newest.entry((&row.source, &row.target)).or_insert((stamp, row));
            if known.0 < stamp {
                *known = (stamp, row);
            }
        }
    }
    let passing = newest.values().filter(|(_, row)| passes(row, tests));
    let mut all: Vec<Found> = passing
        .map(|(stamp, row)| match reverse {
            None => (kind.to_owned(), row.source.clone(), row.target.clone(), *stamp),
            Some(name) => (name.to_owned(), row.target.clone(), row.source.clone(), *stamp),
        })
        .collect();
    all.sort();
    all
}

#[test]
fn relations_are_found_as_a_model_has_them() {
    let (mut found_any, mut indexed) = (0, 0);
    for seed in seeds(1_500) {
        let dice = &mut *seeded(seed);
        let mut history = history(dice);
        // Rule G-3 decides between two versions at once, which the model does not know.
        let mut stamps = 1..;
        history.relations.iter_mut().for_each(|(row, _)| row.version.stamp = 3 * stamps.next().unwrap());
        let mut free: Vec<u64> = (1..120).collect();
        let mut stamp = || free.remove(dice.index(free.len()));
        history.vertices.iter_mut().for_each(|(row, _)| row.version.stamp = stamp());
        let at = dice.one_in(2).then(|| dice.below(120));
        let (kind, far) = *dice.pick(&NAMES);
        let asked = RelationTest { kind: kind.into(), tests: tests(dice) };
        let reverse = RelationTest { kind: far.into(), ..asked.clone() };
        let moment = at.unwrap_or(u64::MAX);
        let forth = expected(&history, (kind, None), &asked.tests, moment);
        let mut parts = history.parts(dice, 3);
        for declared in [false, true] {
            if declared {
                parts.push(declaration());
            } else if kind == "derives" {
                continue;
            }
            indexed +=
                usize::from(declared && kind == "derives" && asked.tests.iter().any(|(name, _)| name == "n"));
            let state = GraphState::of(segments(&parts));
            let found = find_relations(&state, &asked, at, None, &mut Limits::default()).unwrap();
            found_any += found.len();
            assert_eq!(listed(found), forth, "{asked:?}");
            let back = expected(&history, (kind, Some(far)), &asked.tests, moment);
            assert_eq!(
                listed(find_relations(&state, &reverse, at, None, &mut Limits::default()).unwrap()),
                back,
                "{asked:?}"
            );
            let few = find_relations(&state, &asked, at, Some(2), &mut Limits::default()).unwrap();
            assert_eq!(few.len(), forth.len().min(2));
            let TypeMatches::Relations(named) =
                find_by_type(&state, kind, &asked.tests, at, None, &mut Limits::default()).unwrap()
            else {
                // Nothing has such a type.
                assert!(kind == "own" && history.relations.iter().all(|(row, _)| &*row.kind != "own"));
                continue;
            };
            assert_eq!(listed(named), forth);
        }
    }
    assert!(found_any > 1_000 && indexed > 100, "{found_any} found, {indexed} times by the index");
}

/// The relations of all vertices, as `edges` gives them: each is found if both of its ends show it.
fn by_vertex(state: &GraphState, asked: &RelationTest, at: u64) -> Vec<Relation> {
    let mut all = Vec::new();
    for kind in ENDS {
        for id in 0..3 {
            let name = VertexName::new(kind, &id.to_string());
            all.extend(
                edges(state, &name, Some(&asked.kind), Versions::At(at), None, &mut Limits::default())
                    .unwrap(),
            );
        }
    }
    all
}

#[test]
fn slots_give_each_relation_once_and_as_edges_has_it() {
    let (mut found_any, mut unanswered) = (0, 0);
    for seed in seeds(700) {
        let dice = &mut *seeded(seed);
        let stubbed = dice.one_in(2);
        let history = if stubbed { history(dice).stubbed(dice) } else { history(dice) };
        let mut parts = history.parts(dice, 4);
        parts.insert(0, declaration());
        let whole = GraphState::of(segments(&parts));
        let slots = Simulated::new(partitioning(dice), faults(dice), seed);
        let mut client = slots.cluster.client();
        for part in &parts[..4] {
            if dice.one_in(2) { slots.cluster.insert(part) } else { client.insert(part) }.unwrap();
        }
        if dice.one_in(2) {
            slots.cluster.settle().unwrap();
        }
        let state = slots.state().with(segments(&parts[4..]));
        for _ in 0..4 {
            let (kind, far) = *dice.pick(&NAMES);
            let kind = if dice.one_in(2) { kind } else { far };
            let asked = RelationTest { kind: kind.into(), tests: tests(dice) };
            // Versions that count now are never moved to another store.
            let at = if stubbed || dice.one_in(2) { Some(dice.below(40)) } else { None };
            let all = by_vertex(&whole, &asked, at.unwrap_or(u64::MAX));
            let moved = !asked.tests.is_empty() && all.iter().any(|relation| relation.archived.is_some());
            for state in [&whole, &state] {
                let found = match find_relations(state, &asked, at, None, &mut Limits::default()) {
                    Ok(found) if !moved => found,
                    Err(error) if moved => {
                        assert_eq!(error.kind(), ErrorKind::NotFound);
                        assert!(error.message().contains("/cold"), "{error}");
                        unanswered += 1;
                        continue;
                    }
                    other => panic!("{other:?}, of which some was moved: {moved}"),
                };
                found_any += found.len();
                let passing = |relation: &&Relation| {
                    let value = |name: &str| relation.props.iter().find(|(known, _)| known == name);
                    asked.tests.iter().all(|(name, test)| value(name).is_some_and(|(_, v)| test.matches(v)))
                };
                let order = |relation: &Relation| {
                    (relation.near.clone(), relation.far.clone(), format!("{relation:?}"))
                };
                let mut expected: Vec<Relation> = all.iter().filter(passing).cloned().collect();
                expected.sort_by_key(order);
                let mut found = found;
                found.sort_by_key(order);
                assert_eq!(found, expected, "{asked:?} at {at:?}");
            }
        }
    }
    assert!(found_any > 1_000 && unanswered > 100, "{found_any} found, {unanswered} moved");
}

#[test]
fn a_name_that_vertices_have_is_theirs() {
    let mut rows = Rows::default();
    let order = CommitOrder { known: CommitKnown { since: 1, stamp: 1 }, user: 1 };
    let relation = |kind: &str, source: &str, target: &str, stamp| RelationRow {
        kind: kind.into(),
        source: VertexName::new(source, "1"),
        target: VertexName::new(target, "2"),
        version: Version { stamp, time: 0, deleted: false },
        until: None,
        props: Props::of([("n", &Value::Int(1))]).unwrap(),
    };
    let all = vec![
        relation("run", "user", "job", 1),
        relation("own", "user", "x", 2),
        relation("x", "job", "own2", 3),
    ];
    rows.add(order, &Record::Relations(all).encode()).unwrap();
    let state = GraphState::of(vec![Arc::new(build(&rows).unwrap())]);
    let relations =
        |kind: &str| match find_by_type(&state, kind, &[], None, None, &mut Limits::default()).unwrap() {
            TypeMatches::Vertices(found) => (found.len(), 0),
            TypeMatches::Relations(found) => (0, found.len()),
        };
    assert_eq!(relations("run"), (0, 0), "runs are vertices that every store may have");
    assert_eq!(relations("~wasRunBy"), (0, 1));
    assert_eq!(relations("wasRunBy"), (0, 1));
    assert_eq!(relations("own"), (0, 1), "nobody declared it, and relations have it");
    assert_eq!(relations("x"), (1, 0), "vertices have it, too");
    assert_eq!(relations("~x"), (0, 1));
    assert_eq!(relations("job"), (2, 0));
    assert_eq!(relations("nobody"), (0, 0));
}
