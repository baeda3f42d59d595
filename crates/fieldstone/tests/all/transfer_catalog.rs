//! The catalog's share of a transfer: runs, steps, variables, tags and attributes that go with fields, and those that
//! stay.

use std::path::Path;

use fieldstone::Session;
use fieldstone::catalog::query::text::parse;
use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, Coordinate, Deletion, Hit, Query, StorageOrder, TagDecl,
    Values, VariableName,
};
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::transfer::{LeftBehind, TransferOptions, TransferReport, What, copy, move_to};
use fieldstone::{
    ArchiveOptions, DType, ErrorKind, ListOptions, OpenOptions, Request, Result, Store, TagRef, Target,
    open_in,
};
use fieldstone_testkit::errors::error;

const HOT: &str = "/hot";
const COLD: &str = "/cold";

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    world.set_uid("a", 501);
    world.set_uid("b", 502);
    world
}

fn open_by(world: &SimWorld, who: &str, path: &str) -> Store {
    let store = open_in(world.process(who), path, Path::new(path), &OpenOptions::default()).unwrap();
    // A kill may come before there is anything.
    store.will_write();
    store
}

fn open(world: &SimWorld, path: &str) -> Store {
    open_by(world, "a", path)
}

fn put(store: &Store, run: &str, variable: &str, step: i64) {
    let step = step.to_string();
    let key = [("run", run), ("variable", variable), ("step", &step)];
    let value = fieldstone::Value::Array { data: &[1; 24], dtype: DType::F8, shape: &[3] };
    store.archive(&key, value, &ArchiveOptions::default()).unwrap();
}

fn requests(text: &str) -> Vec<Request> {
    vec![Request::parse(text).unwrap()]
}

fn copied(from: &Store, what: impl Into<What>, to: &Store) -> Result<TransferReport> {
    copy(from, what, to, &TransferOptions::default())
}

fn moved(from: &Store, what: impl Into<What>, to: &Store) -> Result<TransferReport> {
    move_to(from, what, to, &TransferOptions::default())
}

fn find(text: &str) -> Query {
    parse(text).unwrap()
}

fn count(store: &Store, text: &str) -> u64 {
    store.catalog().count(&find(text)).unwrap()
}

/// The content of the catalog, except for its writers.
fn said(store: &Store) -> Vec<String> {
    let (catalog, all) = (store.catalog(), Query::all());
    let mut lines = Vec::new();
    let runs = catalog.runs(&all).unwrap();
    lines.extend(runs.iter().map(|run| format!("{:?} {}", run.decl, run.declared)));
    lines.extend(catalog.steps(&all).unwrap().iter().map(|step| format!("{step:?}")));
    lines.extend(catalog.variables(&all).unwrap().iter().map(|variable| format!("{variable:?}")));
    lines.extend(catalog.tags(&all).unwrap().iter().map(|tag| format!("{tag:?}")));
    let hits = catalog.stream(&all).unwrap().map(|hit| hit.unwrap());
    lines.extend(hits.map(|hit| {
        format!(
            "{} {} {:?} {:?} {:?} {} {} {} {} {:?} {:?} {:?}",
            hit.project,
            hit.run,
            hit.step,
            hit.time,
            hit.variable,
            hit.variable_version,
            hit.tag,
            hit.tag_version,
            hit.unit,
            hit.value,
            hit.region,
            hit.cells
        )
    }));
    lines.sort();
    lines
}

fn listed(store: &Store) -> usize {
    store.list(&Request::new(), &ListOptions::default()).unwrap().count()
}

/// Nothing of a transfer is in a store, not even hidden.
fn untouched(store: &Store, before: &(Vec<String>, String)) {
    assert_eq!((said(store), store.version().unwrap()), *before);
    let status = store.status().unwrap();
    assert_eq!((status.unflushed, status.transactions.len()), (0, 0));
}

fn state(store: &Store) -> (Vec<String>, String) {
    (said(store), store.version().unwrap())
}

/// A run with attributes on every kind of target, with values of every type.
fn rich(world: &SimWorld) -> Store {
    let store = open(world, HOT);
    let run = store.create_run("a").param("nx", 3).param("grid", Value::Float(f64::NAN)).job("17");
    let run = run.notes("of a test").created(77).annotated_by_owner().create().unwrap();
    let decl = run.create_variable("t", DType::F8, &[3]).dims(["x"]).attr("units", "K");
    decl.coord(0, Coordinate::Uniform { first: 0.5, spacing: 2.0 }).create().unwrap();
    run.create_variable("t", DType::F4, &[9]).version(3).create().unwrap();
    run.create_steps(vec![0, 1, 2], Some(vec![0.0, 0.1, 0.2])).unwrap();
    // A step that has nothing else.
    run.create_step(9, None).unwrap();
    for step in 0..3 {
        put(&store, "a", "t", step);
        put(&store, "a", "bare", step);
    }
    store.flush(None).unwrap();
    store.create_tag("rate", ValueType::Float, Some("K/s")).unwrap();
    store.create_tag("rate", ValueType::Int, Some("1/s")).unwrap();
    let array = Value::Array(vec![Value::Float(1.0), Value::Float(f64::NAN)]);
    let map = Value::Map(vec![("x".into(), Value::List(vec![Value::Null, Value::Bool(true)]))]);
    for (name, value) in [
        ("bool", Value::Bool(true)),
        ("int", Value::Int(-3)),
        ("uint", Value::UInt(u64::MAX)),
        ("float", Value::Float(-0.0)),
        ("text", Value::Text("…".into())),
        ("bytes", Value::Bytes(vec![0, 255])),
        ("moment", Value::DateTime(1)),
        ("ints", Value::IntRange(1, 2)),
        ("floats", Value::FloatRange(1.5, 2.5)),
        ("array", array),
        ("json", map),
    ] {
        run.annotate(name, value.clone(), &Target::run()).unwrap();
        run.annotate(name, value.clone(), &Target::default().step(1)).unwrap();
        run.annotate(name, value.clone(), &Target::variable("t")).unwrap();
        run.annotate(name, value.clone(), &Target::variable("t").version(3)).unwrap();
        run.annotate(name, value.clone(), &Target::variable("bare").step(2)).unwrap();
        run.annotate(name, value.clone(), &Target::variable("t").step(2).within(&[1], &[2])).unwrap();
        run.annotate(name, value, &Target::variable("t").step(2).on_cells([0, 2])).unwrap();
    }
    run.annotate(("rate", 0), 1.5, &Target::variable("t").step(0)).unwrap();
    run.annotate(("rate", 1), 2, &Target::variable("t").step(0)).unwrap();
    // Several at one place.
    let several = Values::Int(vec![1, 2, 2]);
    run.annotate_many("several", several, &Target::variable("t").step(1)).unwrap();
    store.flush(None).unwrap();
    let other = store.create_run("a").project("p").create().unwrap();
    other.annotate("bool", false, &Target::run()).unwrap();
    store.flush(None).unwrap();
    store
}

#[test]
fn all_that_stands_on_runs_steps_and_variables_comes_along_once() {
    let world = world();
    let (hot, cold) = (rich(&world), open(&world, COLD));
    let report = copied(&hot, requests(""), &cold).unwrap();
    let n = count(&hot, "");
    assert_eq!((report.fields, report.attributes, report.left.len()), (6, n, 0));
    assert_eq!(said(&cold), said(&hot));
    assert_eq!(said(&open(&world, COLD)), said(&hot));
    assert!(cold.catalog().verify().unwrap().ok() && cold.catalog().conflicts().unwrap().is_empty());
    // Again: nothing is written, whether all or in part.
    let before = state(&cold);
    for request in ["", "run=a,step=1", "variable=bare"] {
        let again = copied(&hot, requests(request), &cold).unwrap();
        assert_eq!((again.fields, again.attributes), (0, 0), "{request}");
        untouched(&cold, &before);
    }
    // A correction is corrected there; so are other values at the same place, and nothing else.
    let run = hot.run_of_project("", "a").unwrap();
    run.annotate_many("several", Values::Int(vec![2, 7]), &Target::variable("t").step(1)).unwrap();
    hot.flush(None).unwrap();
    assert_eq!(copied(&hot, requests("run=a"), &cold).unwrap().attributes, 2);
    assert_eq!(said(&cold), said(&hot));
}

#[test]
fn a_part_takes_what_stands_on_it_alone() {
    let world = world();
    let (hot, cold) = (rich(&world), open(&world, COLD));
    copied(&hot, requests("run=a,step=2,variable=bare"), &cold).unwrap();
    let (catalog, all) = (cold.catalog(), Query::all());
    let steps: Vec<_> = catalog.steps(&all).unwrap().into_iter().map(|row| (row.step, row.time)).collect();
    assert_eq!((listed(&cold), steps), (1, vec![(2, Some(0.2))]));
    assert_eq!(catalog.runs(&all).unwrap()[0].decl.params.len(), 2);
    let variables: Vec<_> =
        catalog.variables(&all).unwrap().into_iter().map(|row| row.decl.variable).collect();
    assert_eq!(variables, [VariableName { name: "bare".into(), version: 0 }]);
    // On the run, and on the field: one of each of eleven tags.
    assert_eq!((count(&cold, ""), count(&cold, "variable=bare")), (22, 11));
    // The rest of the step.
    copied(&hot, requests("run=a,step=2"), &cold).unwrap();
    assert_eq!((count(&cold, "step=2"), count(&cold, "step=1")), (33, 0));
    assert_eq!(catalog.variables(&all).unwrap().len(), 3);
    assert_eq!(count(&cold, "variable=t"), count(&hot, "variable=t and not step=0 and not step=1"));
}

#[test]
fn what_is_declared_or_annotated_without_a_field_is_selected_by_its_name() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    let run = hot.create_run("elsewhere").create().unwrap();
    run.create_variable("t", DType::F8, &[3]).create().unwrap();
    run.create_steps(vec![0, 1], Some(vec![0.5, 1.5])).unwrap();
    run.annotate("front", 1.0, &Target::variable("t").step(1)).unwrap();
    run.annotate("front", 2.0, &Target::variable("t").step(0)).unwrap();
    hot.create_run("other").create().unwrap();
    hot.flush(None).unwrap();
    let report = copied(&hot, requests("run=elsewhere,step=1"), &cold).unwrap();
    assert_eq!((report.fields, report.attributes), (0, 1));
    assert_eq!((cold.catalog().runs(&Query::all()).unwrap().len(), count(&cold, "step=1")), (1, 1));
    assert_eq!(cold.catalog().variables(&Query::all()).unwrap().len(), 1);
    copied(&hot, requests("run=elsewhere"), &cold).unwrap();
    assert_eq!(count(&cold, ""), 2);
    // Fields alone: the target has no such run.
    let fields = TransferOptions { fields_only: true, ..TransferOptions::default() };
    error(copy(&hot, requests("run=elsewhere"), &cold, &fields), ErrorKind::NotFound);
    error(copied(&hot, requests("run=nowhere"), &cold), ErrorKind::NotFound);
}

#[test]
fn what_the_target_declares_otherwise_is_a_conflict_and_nothing_is_copied() {
    let world = world();
    let hot = rich(&world);
    let same = |cold: &Store| {
        let run = cold.create_run("a").param("nx", 3).param("grid", Value::Float(f64::NAN)).job("17");
        run.notes("of a test").annotated_by_owner().create().unwrap()
    };
    type Declare<'a> = &'a dyn Fn(&Store);
    let contradict: [(&str, Declare<'_>); 4] = [
        ("nx", &|cold| drop(cold.create_run("a").param("nx", 4).create().unwrap())),
        ("step 1", &|cold| same(cold).create_step(1, Some(7.0)).unwrap()),
        ("shape", &|cold| drop(same(cold).create_variable("t", DType::F8, &[4]).create().unwrap())),
        ("tag 'rate'", &|cold| drop(cold.create_tag("rate", ValueType::Float, Some("Pa/s")).unwrap())),
    ];
    for (number, (named, declare)) in contradict.into_iter().enumerate() {
        let cold = open(&world, &format!("/cold{number}"));
        declare(&cold);
        cold.flush(None).unwrap();
        let before = state(&cold);
        let refused = error(copied(&hot, requests(""), &cold), ErrorKind::Conflict);
        assert!(refused.message().contains(named), "{refused}");
        untouched(&cold, &before);
        let refused = error(moved(&hot, requests(""), &cold), ErrorKind::Conflict);
        assert!(refused.hint().is_some(), "{refused}");
        assert_eq!((listed(&hot), hot.unflushed(), hot.status().unwrap().transactions.len()), (6, 0, 0));
    }
}

#[test]
fn a_move_takes_away_what_it_carried_and_rows_of_which_nothing_stays() {
    let world = world();
    let (hot, cold) = (rich(&world), open(&world, COLD));
    let (all, version) = (said(&hot), hot.version().unwrap());
    hot.run_of_project("", "a").unwrap().annotate("late", 1, &Target::variable("t").step(2)).unwrap();
    let unflushed = error(moved(&hot, requests("run=a,step=2"), &cold), ErrorKind::Conflict);
    assert!(unflushed.hint().unwrap().contains("flush"), "{unflushed}");
    hot.discard(None).unwrap();
    assert_eq!((said(&hot), listed(&hot), listed(&cold)), (all.clone(), 6, 0));
    let report = moved(&hot, requests("run=a,step=2"), &cold).unwrap();
    assert_eq!((report.fields, report.removed), (2, 2));
    // The step is gone with all attributes on it; run and variables stay, with theirs.
    let steps: Vec<i64> = hot.catalog().steps(&Query::all()).unwrap().iter().map(|row| row.step).collect();
    assert_eq!((steps, count(&hot, "step=2"), count(&hot, "scope=run")), (vec![0, 1, 9], 0, 12));
    assert_eq!((count(&hot, "variable=t and tag=bool"), count(&cold, "variable=t and tag=bool")), (2, 4));
    moved(&hot, requests("variable=bare"), &cold).unwrap();
    assert_eq!(hot.catalog().variables(&Query::all()).unwrap().len(), 2);
    assert_eq!(count(&hot, "step=1"), 14, "the step stays, for it has a field");
    moved(&hot, requests(""), &cold).unwrap();
    assert_eq!((listed(&hot), count(&hot, ""), hot.catalog().runs(&Query::all()).unwrap().len()), (0, 0, 0));
    assert_eq!(said(&cold), all);
    let options = OpenOptions { at: Some(version), ..OpenOptions::default() };
    let old = open_in(world.process("a"), HOT, Path::new(HOT), &options).unwrap();
    assert_eq!(said(&old), all);
    for store in [&hot, &cold] {
        assert!(store.catalog().verify().unwrap().ok());
    }
}

#[test]
fn a_move_by_age_takes_old_fields_and_what_stands_on_them() {
    let world = world();
    let (hot, cold) = (rich(&world), open(&world, COLD));
    let all = said(&hot);
    world.advance(5 * 86_400_000_000_000);
    let run = hot.run_of_project("", "a").unwrap();
    put(&hot, "a", "t", 2);
    put(&hot, "a", "t", 3);
    run.annotate("late", 1, &Target::variable("t").step(3)).unwrap();
    hot.flush(None).unwrap();
    let before = Some(world.process("a").clock.now() - 86_400_000_000_000);
    let old = TransferOptions { before, ..TransferOptions::default() };
    let report = move_to(&hot, requests("run=a"), &cold, &old).unwrap();
    // Of seven fields that are listed, the new one and the one that was written again stay.
    assert_eq!((report.fields, report.removed, listed(&hot), listed(&cold)), (5, 5, 2, 5));
    assert_eq!((count(&cold, "step=3"), count(&hot, "step=3")), (0, 1), "an attribute stays with its field");
    assert_eq!(count(&hot, "step=0"), 0, "nothing of the step stays");
    assert!(hot.run_of_project("", "a").is_ok());
    let again = move_to(&hot, requests("run=a"), &cold, &old).unwrap();
    assert_eq!((again.fields, again.removed, again.attributes), (0, 0, 0));
    moved(&hot, requests(""), &cold).unwrap();
    assert_eq!((listed(&hot), listed(&cold)), (0, 7));
    assert!(all.iter().all(|line| said(&cold).contains(line)), "nothing is lost on the way");
    let of_hits = move_to(&cold, find("tag=late"), &hot, &old).unwrap_err();
    assert_eq!(of_hits.kind(), ErrorKind::Invalid, "{of_hits}");
}

#[test]
fn hits_bring_their_fields_and_what_they_stand_on() {
    let world = world();
    let (hot, cold) = (rich(&world), open(&world, COLD));
    let found = find("tag=rate or (tag=float and scope=run)");
    let hits: Vec<_> = hot.catalog().stream(&found).unwrap().map(|hit| hit.unwrap()).collect();
    assert_eq!(hits.len(), 3);
    let report = copied(&hot, found.clone(), &cold).unwrap();
    assert_eq!((report.fields, report.attributes, listed(&cold), count(&cold, "")), (1, 3, 1, 3));
    let of = |store: &Store| -> Vec<String> {
        let lines = said(store).into_iter();
        lines.filter(|line| line.contains(" rate ") || line.contains("RunDecl")).collect()
    };
    assert_eq!(of(&cold), of(&hot).into_iter().filter(|line| !line.contains("\"p\"")).collect::<Vec<_>>());
    assert_eq!(copied(&hot, hits.clone(), &cold).unwrap().attributes, 0);
    // A limit is applied in the order of hits.
    let some = Query { limit: Some(1), ..found };
    let few = open(&world, "/few");
    assert_eq!(copied(&hot, some, &few).unwrap().attributes, 1);
    // A move removes these attributes, and the fields under them.
    moved(&hot, hits.clone(), &cold).unwrap();
    assert_eq!((listed(&hot), count(&hot, "tag=rate"), count(&hot, "tag=float")), (5, 0, 6));
    assert_eq!(hot.catalog().steps(&Query::all()).unwrap().len(), 4, "bare is at step 0");
    // They are not attributes of it any more.
    let before = state(&cold);
    let gone = error(copied(&hot, hits, &cold), ErrorKind::Conflict);
    assert!(gone.message().contains("3 of 3 hits"), "{gone}");
    untouched(&cold, &before);
}

#[test]
fn fields_alone_say_what_stays_behind() {
    let world = world();
    let (hot, cold) = (rich(&world), open(&world, COLD));
    let fields = TransferOptions { fields_only: true, ..TransferOptions::default() };
    let left = |left: &[LeftBehind]| -> Vec<(String, u64)> {
        left.iter().map(|left| (left.kind.to_owned(), left.count)).collect()
    };
    let report = copy(&hot, requests("run=a,step=0"), &cold, &fields).unwrap();
    let expected = [("run", 1), ("step", 1), ("variable", 2), ("tag", 12), ("attribute", 35)]
        .map(|(a, n)| (a.to_owned(), n));
    assert_eq!((report.attributes, left(&report.left)), (0, expected.to_vec()));
    assert_eq!(report.left[1].names, ["0"]);
    assert!(report.left.iter().all(|left| left.why.contains("only")));
    assert_eq!((count(&cold, ""), cold.catalog().has_records().unwrap()), (0, false));
    // A move leaves them where they are.
    let n = count(&hot, "");
    move_to(&hot, requests("run=a,step=0"), &cold, &fields).unwrap();
    assert_eq!((count(&hot, ""), listed(&hot)), (n, 4));
}

#[test]
fn a_target_with_other_roles_gets_fields_alone_and_the_report_says_why() {
    let world = world();
    let hot = rich(&world);
    let schema = "catalog run = variable; step = step;\n[run[ variable[ step ]]]";
    let options = OpenOptions { schema: Some(schema.to_owned()), ..OpenOptions::default() };
    let cold = open_in(world.process("a"), COLD, Path::new(COLD), &options).unwrap();
    let report = copied(&hot, requests("run=a"), &cold).unwrap();
    assert_eq!((report.fields, report.attributes, count(&cold, "")), (6, 0, 0));
    assert!(report.left.iter().any(|left| left.kind == "attribute" && left.why.contains("schema")));
    // A move leaves the items that it did not carry.
    moved(&hot, requests("run=a"), &cold).unwrap();
    assert_eq!((listed(&hot), count(&hot, "variable=t and tag=bool")), (0, 4));
}

#[test]
fn attributes_become_those_of_who_copies_and_others_keep_theirs() {
    let world = world();
    let hot = open(&world, HOT);
    let run = hot.create_run("a").create().unwrap();
    put(&hot, "a", "t", 0);
    hot.flush(None).unwrap();
    run.annotate("q", 1, &Target::variable("t").step(0)).unwrap();
    hot.flush(None).unwrap();
    world.permissions().make_writable(Path::new(HOT)).unwrap();
    let bob = open_by(&world, "b", HOT);
    bob.run("a").unwrap().annotate("q", 2, &Target::variable("t").step(0)).unwrap();
    bob.flush(None).unwrap();
    let theirs = open_by(&world, "b", COLD);
    assert_eq!(copied(&bob, requests("run=a"), &theirs).unwrap().attributes, 2);
    let users = |store: &Store| -> Vec<u32> {
        store.catalog().stream(&Query::all()).unwrap().map(|hit| hit.unwrap().user).collect()
    };
    assert_eq!(
        (users(&theirs), count(&theirs, "value=1"), count(&theirs, "value=2")),
        (vec![502, 502], 1, 1)
    );
    // He may not move these; his own attribute is on a field of another user.
    error(moved(&bob, requests("run=a"), &theirs), ErrorKind::Denied);
    error(moved(&bob, find("value=2"), &theirs), ErrorKind::Denied);
    assert_eq!((count(&hot, ""), listed(&hot), bob.unflushed()), (2, 1, 0));
    // On the run itself he moves his own annotations; the run stays hers.
    hot.run("a").unwrap().annotate("own", 1, &Target::run()).unwrap();
    hot.create_run("empty").create().unwrap();
    hot.flush(None).unwrap();
    bob.run("a").unwrap().annotate("own", 2, &Target::run()).unwrap();
    bob.flush(None).unwrap();
    let took = moved(&bob, find("tag=own and value=2"), &open_by(&world, "b", "/took")).unwrap();
    assert_eq!((took.attributes, count(&hot, "tag=own")), (1, 1));
    error(moved(&bob, find("tag=own"), &theirs), ErrorKind::Denied);
    // He may not move a run without attributes either.
    error(moved(&bob, requests("run=empty"), &theirs), ErrorKind::Denied);
    assert_eq!((count(&theirs, "tag=own"), hot.catalog().runs(&Query::all()).unwrap().len()), (0, 2));
    hot.catalog().delete(&Deletion::Runs(find("run=empty")), false, true, &Session::default()).unwrap();
    hot.catalog().delete(&Deletion::Tags(find("tag=own")), false, true, &Session::default()).unwrap();
    hot.flush(None).unwrap();
    // A target that has them, under any user, gets no duplicates.
    world.permissions().make_writable(Path::new(COLD)).unwrap();
    let mine = open(&world, COLD);
    let again = copied(&hot, requests("run=a"), &mine).unwrap();
    assert_eq!((again.fields, again.attributes, count(&mine, "")), (0, 0, 2));
    // A run there that only its owner may annotate.
    let closed = open_by(&world, "b", "/closed");
    closed.create_run("a").annotated_by_owner().create().unwrap();
    closed.flush(None).unwrap();
    world.permissions().make_writable(Path::new("/closed")).unwrap();
    let refused = error(copied(&hot, find("tag=q"), &open(&world, "/closed")), ErrorKind::Denied);
    assert!(refused.message().contains('a'), "{refused}");
    assert_eq!(count(&open(&world, "/closed"), ""), 0);
    // The owner also moves the writes of others in her run.
    moved(&hot, requests("run=a"), &open(&world, "/own")).unwrap();
    assert_eq!((count(&hot, ""), count(&bob, "")), (0, 0));
}

#[test]
fn groups_of_jobs_go_along() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    let run = hot.create_run("a").create().unwrap();
    put(&hot, "a", "t", 0);
    let set = ArraySet {
        variable: VariableName { name: "t".into(), version: 0 },
        dtype: DType::F8,
        shape: vec![Some(3)],
        dims: Vec::new(),
        fill: None,
        attrs: Vec::new(),
        pattern: BasicPattern::Regular,
        view: String::new(),
    };
    let group = ArrayGroup {
        name: "g".into(),
        level: 2,
        layout: ArrayLayout::Files,
        method: "auto".into(),
        order: StorageOrder::C,
        mesh: None,
        location: None,
        chunks: None,
        compression: None,
        attrs: Vec::new(),
        sets: vec![set],
    };
    run.create_array_group(group).unwrap();
    run.annotate("q", 1, &Target::run()).unwrap();
    hot.flush(None).unwrap();
    let only = TransferOptions { fields_only: true, ..TransferOptions::default() };
    let report = copy(&hot, requests("run=a"), &open(&world, "/fields"), &only).unwrap();
    let group = report.left.iter().find(|left| left.kind == "group").unwrap();
    assert_eq!(group.names, ["g"]);
    let report = moved(&hot, requests("run=a"), &cold).unwrap();
    assert!(report.left.is_empty(), "{:?}", report.left);
    assert!(hot.catalog().runs(&Query::all()).unwrap().is_empty());
    assert_eq!(cold.run("a").unwrap().array_groups().unwrap().len(), 1);
    assert_eq!((count(&hot, "tag=q"), count(&cold, "tag=q"), listed(&hot)), (0, 1, 0));
}

/// Records are cut between places, so that values of one place do not hide one another.
#[test]
fn attributes_of_many_commits_arrive_all() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    let run = hot.create_run("a").create().unwrap();
    put(&hot, "a", "t", 0);
    hot.flush(None).unwrap();
    let rows = 34_000;
    let twice: Vec<i64> = (0..rows).flat_map(|step| [step, step]).collect();
    let values = Values::Int((0..2 * rows).collect());
    run.annotate_many("n", values, &Target::default().steps(twice)).unwrap();
    let tag =
        TagRef::Declared(TagDecl { name: "m".into(), version: 0, kind: ValueType::Float, unit: "K".into() });
    let shifts: Vec<i64> = (0..70_000).map(|row| row % 3).collect();
    let boxes = Target::variable("t").step(0).within_each(1, shifts, vec![1; 70_000]);
    run.annotate_many(tag, Values::Float((0..70_000).map(f64::from).collect()), &boxes).unwrap();
    hot.flush(None).unwrap();
    assert_eq!(copied(&hot, requests(""), &cold).unwrap().attributes, 138_000);
    assert_eq!(said(&cold), said(&hot));
    assert_eq!(copied(&hot, requests(""), &cold).unwrap().attributes, 0);
    let report = moved(&hot, requests(""), &cold).unwrap();
    assert_eq!((report.attributes, count(&hot, ""), count(&cold, "")), (0, 0, 138_000));
}

/// Killed at any system call: the target has all fields with all attributes or nothing, and a repeated move completes
/// the first.
#[test]
fn a_killed_move_leaves_attributes_with_their_fields() {
    for n in (1..).step_by(5) {
        let world = SimWorld::new(n);
        world.set_tracing(false);
        let all = {
            let hot = open(&world, HOT);
            let run = hot.create_run("a").param("nx", 1).create().unwrap();
            for step in 0..3 {
                put(&hot, "a", "t", step);
                hot.flush(None).unwrap();
                run.annotate("q", step, &Target::variable("t").step(step)).unwrap();
            }
            run.annotate("cause", "a test", &Target::run()).unwrap();
            hot.flush(None).unwrap();
            open(&world, COLD).flush(None).unwrap();
            said(&hot)
        };
        let env = world.process("a");
        let open_as = |path: &str| open_in(env.clone(), path, Path::new(path), &OpenOptions::default());
        world.kill_nth(&env, None, n);
        let done = open_as(HOT).and_then(|hot| moved(&hot, requests(""), &open_as(COLD)?)).is_ok();
        let world = if n % 2 == 0 { world.power_cut(n) } else { world };
        let (hot, cold) = (open(&world, HOT), open(&world, COLD));
        let arrived = listed(&cold);
        match arrived {
            0 => assert_eq!((said(&cold).len(), said(&hot)), (0, all.clone()), "killed at call {n}"),
            3 => assert_eq!(said(&cold), all, "killed at call {n}"),
            some => panic!("killed at call {n}: {some} fields arrived"),
        }
        assert!(matches!((listed(&hot), count(&hot, "")), (3, 4) | (0, 0)), "killed at call {n}");
        let lenient = TransferOptions { strict: false, ..TransferOptions::default() };
        move_to(&hot, requests(""), &cold, &lenient).unwrap();
        assert_eq!((said(&hot).len(), said(&cold)), (0, all), "killed at call {n}");
        if done {
            return;
        }
        assert!(n < 5000, "the move never ends");
    }
}

/// Fields of an ensemble, and attributes on members of it.
fn members(world: &SimWorld) -> Store {
    let store = open(world, HOT);
    for member in 0..5 {
        for variable in ["t", "u"] {
            let member = member.to_string();
            let key = [("run", "a"), ("variable", variable), ("step", "0"), ("number", &*member)];
            store.archive(&key, fieldstone::Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        }
    }
    store.flush(None).unwrap();
    let run = store.run("a").unwrap();
    let on = |variable: &str, member: &str| Target::variable(variable).step(0).keyword("number", member);
    for member in ["1", "3"] {
        run.annotate("storm", 1.0, &on("t", member)).unwrap();
    }
    run.annotate("mean", 2.0, &Target::variable("t").step(0)).unwrap();
    store.flush(None).unwrap();
    store
}

fn numbers(store: &Store) -> Vec<String> {
    let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
    list.map(|entry| entry.unwrap().key.get("number").unwrap().text().into_owned()).collect()
}

/// An attribute that names a member is only on its field, whichever way it is queried.
#[test]
fn attributes_of_a_member_take_its_field_alone() {
    let world = world();
    let hot = members(&world);
    let all: Vec<_> = hot.catalog().stream(&find("tag=storm")).unwrap().map(|hit| hit.unwrap()).collect();
    let third = |hit: &&Hit| hit.keywords.iter().flat_map(|all| all.iter()).any(|(_, value)| &**value == "3");
    let hits: Vec<Hit> = all.iter().filter(third).cloned().collect();
    let by_hits = open(&world, "/hits");
    let report = copied(&hot, hits.clone(), &by_hits).unwrap();
    assert_eq!((report.fields, report.attributes, numbers(&by_hits)), (1, 1, vec!["3".to_owned()]));
    let fields = TransferOptions { fields_only: true, ..TransferOptions::default() };
    let alone = open(&world, "/alone");
    assert_eq!(copy(&hot, hits.clone(), &alone, &fields).unwrap().fields, 1);
    // One without a member is on all members.
    let mean = open(&world, "/mean");
    assert_eq!(copied(&hot, find("tag=mean"), &mean).unwrap().fields, 5);
    // By request: attributes on the requested member, and those that name none.
    let by_request = open(&world, "/request");
    let report = copied(&hot, requests("run=a,variable=t,step=0,number=3"), &by_request).unwrap();
    assert_eq!((report.fields, report.attributes, count(&by_request, "tag=storm")), (1, 2, 1));
    let none = open(&world, "/none");
    copied(&hot, requests("run=a,variable=t,step=0,number=0"), &none).unwrap();
    assert_eq!((count(&none, "tag=storm"), count(&none, "tag=mean")), (0, 1));
    let written = fieldstone::transfer::written(&hot, &requests("number=1,variable=t")).unwrap().concat();
    assert!(written.contains("storm") && !written.contains("\"3\""), "{written}");
    // An attribute on a member goes with it, although other members stay.
    let cold = open(&world, COLD);
    moved(&hot, requests("run=a,variable=t,step=0,number=3"), &cold).unwrap();
    assert_eq!((count(&hot, "tag=storm"), count(&hot, "tag=mean"), numbers(&hot).len()), (1, 1, 9));
    assert_eq!((count(&cold, "tag=storm"), count(&cold, "tag=mean"), numbers(&cold).len()), (1, 1, 1));
    moved(&hot, vec![all[0].clone()], &cold).unwrap();
    assert_eq!((count(&hot, "tag=storm"), numbers(&hot).len(), numbers(&cold).len()), (0, 8, 2));
}
