//! Moving hidden versions: reads from the moment on stay the same, no walk changes its way, and both stores
//! together have every version.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::graph::{
    Archive, Props, Record, RelationRow, TypeDecl, Version, VertexName, VertexRow, VertexType,
};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_format::log::SideRecord;
use fieldstone_graph::archive::{ArchiveReport, HiddenVersions, hidden};
use fieldstone_graph::find::{VertexTest, find};
use fieldstone_graph::follower::dump;
use fieldstone_graph::read::{Relation, Versions, Vertex, edges, versions, vertex};
use fieldstone_graph::segment::{CommitOrder, Rows, build, merge_young};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::trace::{TraceOptions, Way, trace};
use fieldstone_journal::session::Limits;
use fieldstone_testkit::{Random, random::seeds, seeded};

use crate::history::History;

const URL: &str = "/cold";
/// The user whose versions move.
const USER: u32 = 1;

/// Commits, each with a record.
type Commits = Vec<(CommitOrder, SideRecord)>;

fn by(user: u32, since: u64) -> CommitOrder {
    CommitOrder { known: CommitKnown { since, stamp: since }, user }
}

fn n(number: u64) -> Props {
    Props::of([("n", &Value::Int(number as i64))]).unwrap()
}

/// A history with many versions of the same.
fn commits(dice: &mut Random) -> (Commits, u64) {
    let history = History::random(dice);
    let mut commits = Commits::new();
    let rows = history.relations.iter();
    commits.extend(rows.map(|(row, user)| (by(*user, 1), Record::Relations(vec![row.clone()]).encode())));
    let rows = history.vertices.iter();
    commits.extend(rows.map(|(row, user)| (by(*user, 1), Record::Vertices(vec![row.clone()]).encode())));
    for stamp in 41..70 {
        let user = 1 + u32::from(dice.one_in(5));
        let version = Version { stamp, time: stamp as i64 + dice.below(2) as i64, deleted: dice.one_in(12) };
        let props = if version.deleted || dice.one_in(3) { Props::default() } else { n(stamp) };
        let record = if dice.one_in(2) {
            let fixed = (!version.deleted && dice.one_in(3)).then(|| n(stamp));
            let vertex = VertexName::new("file", &dice.below(2).to_string());
            Record::Vertices(vec![VertexRow { vertex, version, fixed, props }])
        } else {
            let replaces = !version.deleted && dice.one_in(4);
            let yes = Value::Bool(true);
            let props = if replaces { Props::of([("replaces", &yes), ("x", &yes)]).unwrap() } else { props };
            Record::Relations(vec![RelationRow {
                kind: dice.pick(&["write", "read"]).to_string().as_str().into(),
                source: VertexName::new("job", &dice.below(2).to_string()),
                target: VertexName::new("file", &dice.below(2).to_string()),
                version,
                until: (!version.deleted && dice.one_in(3)).then(|| stamp + dice.below(6)),
                props,
            }])
        };
        commits.push((by(user, 1), record.encode()));
    }
    (commits, dice.below(80))
}

/// The state of a reader that read the commits in random portions and merged some of them.
fn state(commits: &Commits, dice: &mut Random) -> GraphState {
    let mut parts: Vec<Rows> = (0..1 + dice.below(3)).map(|_| Rows::default()).collect();
    let last = parts.len();
    for (source, record) in dice.shuffled(commits.clone()) {
        parts[dice.index(last)].add(source, &record).unwrap();
    }
    let parts = parts.iter().filter(|part| !part.is_empty());
    let mut segments: Vec<_> = parts.map(|part| Arc::new(build(part).unwrap())).collect();
    if dice.coin() {
        merge_young(&mut segments).unwrap();
    }
    GraphState::of(segments)
}

fn all_hidden(state: &GraphState, before: u64) -> (HiddenVersions, ArchiveReport) {
    let mut all = HiddenVersions::default();
    let report = hidden(
        state,
        USER,
        before,
        &mut |found| {
            all.vertices.extend(found.vertices.clone());
            all.relations.extend(found.relations.clone());
            Ok(())
        },
        &mut Limits::default(),
    );
    (all, report.unwrap())
}

/// The commit that marks these versions as moved.
fn stubbed(found: &HiddenVersions, before: u64, since: u64) -> Commits {
    let (vertices, relations) = found.stubs();
    let archive = Archive { before, url: URL.into() };
    let records = Record::encode_archived(&archive, &vertices, &relations);
    records.into_iter().map(|record| (by(USER, since), record)).collect()
}

fn names(state: &GraphState) -> BTreeSet<VertexName> {
    let of = |segment: &Arc<fieldstone_graph::segment::Segment>| {
        (0..segment.vertices()).map(|number| segment.name(number).unwrap()).collect::<Vec<_>>()
    };
    state.segments().iter().flat_map(of).collect()
}

/// A relation without its moved part.
fn bare(relation: Relation) -> Relation {
    Relation { props: Vec::new(), archived: None, ..relation }
}

fn bare_vertex(vertex: Vertex) -> Vertex {
    Vertex { props: Vec::new(), fixed: Vec::new(), archived: None, ..vertex }
}

#[test]
fn reads_from_the_moment_on_are_what_they_were_and_walks_take_no_other_way() {
    let (mut moved, mut others) = (0, 0);
    for seed in seeds(400) {
        let dice = &mut seeded(seed);
        let (mut commits, before) = commits(dice);
        let full = state(&commits, dice);
        let (found, report) = all_hidden(&full, before);
        assert_eq!(
            (report.vertices, report.relations),
            (found.vertices.len() as u64, found.relations.len() as u64)
        );
        (moved, others) = (moved + found.vertices.len() + found.relations.len(), others + report.others);
        commits.extend(stubbed(&found, before, 2));
        let left = state(&commits, dice);
        assert_eq!(dump(&left).unwrap(), dump(&state(&commits, dice)).unwrap(), "seed {seed}");
        for name in names(&full) {
            for at in [before, before + 1, 20, 45, 60, 1000] {
                let moment = at.max(before);
                let at = Some(moment);
                let read = |state| vertex(state, &name, at).map_err(|e| e.kind());
                assert_eq!(read(&left), read(&full), "seed {seed}: {name} at {at:?}, before {before}");
                let held = Versions::At(moment);
                let of = |state| edges(state, &name, None, held, None, &mut Limits::default()).unwrap();
                assert_eq!(of(&left), of(&full), "seed {seed}: {name} at {at:?}, before {before}");
            }
            // Every vertex keeps its name and stamps, and moved versions say where they are.
            let of = |state| edges(state, &name, None, Versions::ALL, None, &mut Limits::default()).unwrap();
            let (then, now) = (of(&full), of(&left));
            assert_eq!(
                now.iter().cloned().map(bare).collect::<Vec<_>>(),
                then.iter().cloned().map(bare).collect::<Vec<_>>()
            );
            for (then, now) in then.iter().zip(&now) {
                assert!(now == then || (now.archived.as_deref() == Some(URL) && now.props.is_empty()));
            }
            let of = |state| versions(state, &name).unwrap();
            let (then, now) = (of(&full), of(&left));
            assert_eq!(
                now.iter().cloned().map(bare_vertex).collect::<Vec<_>>(),
                then.iter().cloned().map(bare_vertex).collect::<Vec<_>>()
            );
            for (way, at) in [(Way::Up, None), (Way::Down, None), (Way::Up, Some(1 + dice.below(70)))] {
                let options = TraceOptions { way, at, ..TraceOptions::default() };
                let of = |state| trace(state, &name, &options, &mut Limits::default()).unwrap();
                let (then, now) = (of(&full), of(&left));
                assert_eq!(now.vertices, then.vertices, "seed {seed}: {name} {way:?}");
                let bared = |edges: Vec<Relation>| edges.into_iter().map(bare).collect::<Vec<_>>();
                assert_eq!(bared(now.edges), bared(then.edges));
            }
        }
        together(&full, &left, &found);
        assert_eq!(all_hidden(&left, before).0, HiddenVersions::default(), "a second time nothing moves");
    }
    assert!(moved > 1_000 && others > 100, "{moved} {others}");
}

/// Checks that the moved versions and the remaining ones together have everything.
fn together(full: &GraphState, left: &GraphState, found: &HiddenVersions) {
    let mut both = Rows::default();
    both.add(by(USER, 1), &Record::Types(Vec::new()).encode()).unwrap();
    Record::encode_rows(&found.vertices, &found.relations)
        .iter()
        .for_each(|side| both.add(by(USER, 1), side).unwrap());
    let there = GraphState::of(vec![Arc::new(build(&both).unwrap())]);
    for name in names(full) {
        for then in edges(full, &name, None, Versions::ALL, None, &mut Limits::default()).unwrap() {
            let same = |known: &Relation| {
                (&known.kind, &known.far, known.stamp, known.user)
                    == (&then.kind, &then.far, then.stamp, then.user)
            };
            let all = |state| edges(state, &name, None, Versions::ALL, None, &mut Limits::default()).unwrap();
            let of = |state| all(state).into_iter().find(same);
            let own = of(left).unwrap();
            let whole = if own.archived.is_some() { of(&there).unwrap() } else { own };
            assert_eq!(whole, then);
        }
        for then in versions(full, &name).unwrap() {
            let of = |state: &GraphState| {
                versions(state, &name)
                    .unwrap()
                    .into_iter()
                    .find(|v| (v.stamp, v.user) == (then.stamp, then.user))
            };
            let own = of(left).unwrap();
            let whole = if own.archived.is_some() { of(&there).unwrap() } else { own };
            assert_eq!(whole, then);
        }
    }
}

fn put(stamp: u64, number: u64) -> SideRecord {
    let version = Version { stamp, time: stamp as i64, deleted: false };
    let vertex = VertexName::new("file", "a");
    Record::Vertices(vec![VertexRow { vertex, version, fixed: Some(n(number)), props: n(number) }]).encode()
}

#[test]
fn who_asks_for_what_was_moved_is_told_where_it_is() {
    let mut commits: Commits =
        vec![(by(USER, 1), put(10, 1)), (by(USER, 1), put(20, 2)), (by(2, 1), put(15, 3))];
    let dice = &mut seeded(1);
    let (found, report) = all_hidden(&state(&commits, dice), 30);
    assert_eq!((report.vertices, report.others, found.vertices[0].version.stamp), (1, 0, 10));
    commits.extend(stubbed(&found, 30, 2));
    let left = state(&commits, dice);
    let file = VertexName::new("file", "a");
    let error = vertex(&left, &file, Some(12)).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, Code::VersionArchived));
    assert!(error.message().contains(URL), "{error}");
    assert_eq!(vertex(&left, &file, Some(16)).unwrap().user, 2);
    // A test of properties in another store cannot be decided, with an index or without.
    let test = |tests| VertexTest { kind: Some("file".into()), tests, ..VertexTest::default() };
    let above = vec![("n".to_owned(), fieldstone_core::value::Test::Exists)];
    assert_eq!(
        find(&left, &test(above.clone()), Some(12), None, &mut Limits::default()).unwrap_err().code(),
        Code::VersionArchived
    );
    assert_eq!(find(&left, &test(above), Some(25), None, &mut Limits::default()).unwrap().len(), 1);
    // An index of this store does not know them.
    let index = VertexType { name: "file".into(), index: vec!["n".into()], ..VertexType::default() };
    let mut whole = Rows::default();
    whole.add(by(USER, 1), &Record::Types(vec![TypeDecl::Vertex(index)]).encode()).unwrap();
    commits.iter().for_each(|(source, record)| whole.add(*source, record).unwrap());
    let indexed = GraphState::of(vec![Arc::new(build(&whole).unwrap())]);
    let one = test(vec![("n".to_owned(), fieldstone_core::value::Test::Equal(Value::Int(1)))]);
    assert_eq!(
        find(&indexed, &one, Some(12), None, &mut Limits::default()).unwrap_err().code(),
        Code::VersionArchived
    );
    assert!(find(&indexed, &one, None, None, &mut Limits::default()).unwrap().is_empty());
    let shown = find(&left, &test(Vec::new()), Some(12), None, &mut Limits::default()).unwrap();
    assert_eq!(shown[0].archived.as_deref(), Some(URL));
}

#[test]
fn a_row_that_is_put_again_later_is_here_again() {
    let mut commits: Commits = vec![(by(USER, 1), put(10, 1)), (by(USER, 1), put(20, 2))];
    let dice = &mut seeded(2);
    let (found, _) = all_hidden(&state(&commits, dice), 30);
    commits.extend(stubbed(&found, 30, 2));
    // A version of a moment in between is late; one of the same moment was put again.
    commits.push((by(USER, 3), put(12, 4)));
    commits.push((by(USER, 3), put(10, 5)));
    let file = VertexName::new("file", "a");
    for _ in 0..8 {
        let left = state(&commits, dice);
        for (at, number) in [(11, 5), (13, 4), (21, 2)] {
            let read = vertex(&left, &file, Some(at)).unwrap();
            assert_eq!(read.props, [("n".to_owned(), Value::Int(number))], "at {at}");
        }
    }
}
