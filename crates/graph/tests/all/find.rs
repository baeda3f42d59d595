//! Vertices by type, property and word: the same with an index and without, for any segments.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_core::value::{Test, Value};
use fieldstone_format::graph::{Props, Record, TypeDecl, Version, VertexName, VertexRow, VertexType};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_graph::find::{find, search};
use fieldstone_graph::segment::{CommitOrder, Rows, build};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::VertexTest;
use fieldstone_journal::session::Limits;
use fieldstone_testkit::{Random, random::seeds, seeded};

const TITLES: [&str; 5] = ["Plasma turbulence", "plasma", "turbulences, long", "Turbine", "sea"];

/// Versions of a few data sets in three segments, with the property `n` and a title.
fn rows(dice: &mut Random) -> Vec<VertexRow> {
    let mut stamps: Vec<u64> = (1..30).collect();
    let row = |_| {
        let stamp = stamps.remove(dice.index(stamps.len()));
        let version = Version { stamp, time: 0, deleted: dice.one_in(5) };
        let vertex = VertexName::new("dataset", &format!("/data/{}.nc", dice.below(5)));
        let (n, title) = (Value::Int(dice.below(4) as i64), Value::Text((*dice.pick(&TITLES)).to_owned()));
        let props = match version.deleted {
            true => Props::default(),
            false => Props::of([("n", &n), ("title", &title)]).unwrap(),
        };
        VertexRow { vertex, version, fixed: None, props }
    };
    (0..12).map(row).collect()
}

fn state(dice: &mut Random, rows: &[VertexRow], declared: bool) -> GraphState {
    let order = CommitOrder { known: CommitKnown { since: 1, stamp: 1 }, user: 1 };
    let mut parts = [Rows::default(), Rows::default(), Rows::default()];
    for row in rows {
        parts[dice.index(3)].add(order, &Record::Vertices(vec![row.clone()]).encode()).unwrap();
    }
    let dataset = VertexType {
        name: "dataset".into(),
        index: if declared { vec!["n".into()] } else { Vec::new() },
        text: vec!["title".into()],
        ..VertexType::default()
    };
    parts[0].add(order, &Record::Types(vec![TypeDecl::Vertex(dataset)]).encode()).unwrap();
    let segments = parts.iter().filter(|part| !part.is_empty()).map(|part| Arc::new(build(part).unwrap()));
    GraphState::of(segments.collect())
}

/// The newest put of each data set that nobody deleted since.
fn holding(rows: &[VertexRow], at: u64) -> Vec<&VertexRow> {
    let newest = |row: &&VertexRow| {
        let later = |other: &VertexRow| {
            other.vertex == row.vertex && other.version.stamp > row.version.stamp && other.version.stamp <= at
        };
        !row.version.deleted && row.version.stamp <= at && !rows.iter().any(later)
    };
    rows.iter().filter(newest).collect()
}

#[test]
fn an_index_changes_no_answer() {
    for seed in seeds(300) {
        let dice = &mut *seeded(seed);
        let rows = rows(dice);
        let at = dice.one_in(2).then(|| dice.below(30));
        let n = Value::Int(dice.below(4) as i64);
        let test = match dice.below(4) {
            0 => Test::Equal(n),
            1 => Test::Above(n),
            2 => Test::AtMost(n),
            _ => Test::Not(Box::new(Test::Equal(n))),
        };
        let holding = holding(&rows, at.unwrap_or(u64::MAX));
        let passes = |row: &&&VertexRow| test.matches(&row.props.get("n").unwrap().unwrap());
        let expected: BTreeSet<&VertexName> = holding.iter().filter(passes).map(|row| &row.vertex).collect();
        for declared in [true, false] {
            let state = state(dice, &rows, declared);
            let kind = Some("dataset".to_owned());
            let asked = VertexTest { kind, tests: vec![("n".into(), test.clone())], ..VertexTest::default() };
            let found = find(&state, &asked, at, None, &mut Limits::default()).unwrap();
            assert_eq!(
                found.iter().map(|vertex| &vertex.name).collect::<BTreeSet<_>>(),
                expected,
                "{asked:?}"
            );
            assert_eq!(found.len(), expected.len());
            let all = VertexTest { kind: Some("dataset".into()), ..VertexTest::default() };
            assert_eq!(find(&state, &all, at, None, &mut Limits::default()).unwrap().len(), holding.len());
            assert_eq!(
                find(&state, &all, at, Some(1), &mut Limits::default()).unwrap().len(),
                holding.len().min(1)
            );
        }
    }
}

#[test]
fn words_are_found_as_vertices_have_them_now() {
    for seed in seeds(200) {
        let dice = &mut *seeded(seed);
        let rows = rows(dice);
        let state = state(dice, &rows, true);
        for (text, words) in [
            ("turbulence", &["turbulence"][..]),
            ("PLASMA tur*", &["plasma", "turbulence"]),
            ("tur*", &["tur"]),
            ("data 3.nc", &["3"]),
            ("tsunami", &["tsunami"]),
        ] {
            let has = |row: &&&VertexRow| {
                let title = row.props.get("title").unwrap().unwrap();
                let Value::Text(title) = title else { panic!("a text") };
                let all = format!(" {} {}", title.to_lowercase(), row.vertex.id.replace(['/', '.'], " "));
                words.iter().all(|word| match text.contains('*') && *word != "plasma" {
                    true => all.contains(" tur"),
                    false => all.split([' ', ',']).any(|known| known == *word),
                })
            };
            let expected: Vec<VertexName> = {
                let holding = holding(&rows, u64::MAX);
                let names = holding.iter().filter(has).map(|row| row.vertex.clone());
                names.collect::<BTreeSet<_>>().into_iter().collect()
            };
            let found = search(&state, text, Some("dataset"), None, &mut Limits::default()).unwrap();
            assert_eq!(
                found.iter().map(|vertex| vertex.name.clone()).collect::<Vec<_>>(),
                expected,
                "{text}"
            );
        }
        assert!(search(&state, " * ", None, None, &mut Limits::default()).is_err());
        assert!(search(&state, "data", Some("file"), None, &mut Limits::default()).unwrap().is_empty());
    }
}
