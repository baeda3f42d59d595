//! The records of executions: commits that they make and read, their identity, and the stores that hold them.
//!
//! A program of its own: a thread that has entered no execution belongs to the one that is open in its process, and
//! here other tests have no threads. The tests run one after another.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fieldstone::Session;
use fieldstone::catalog::value::Value as Property;
use fieldstone::env::sim::SimWorld;
use fieldstone::execution::{self, Execution, ExecutionOptions, Outcome};
use fieldstone::graph::{
    Audit, AuditOptions, Lineage, LineageSubject, Relation, RelationPut, TraceOptions, Versions, VertexName,
    Way,
};
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, ErrorKind, ListOptions, Mode, OpenOptions, ReadOptions, Request, RetrieveOptions, Store,
    Target, Value,
};

static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn memory() -> Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

fn on_disk(folder: &Path, name: &str, mode: Mode) -> Store {
    let url = folder.join(name).display().to_string();
    fieldstone::open(&url, &OpenOptions { mode, ..OpenOptions::default() }).unwrap()
}

fn begin(store: &Store, name: &str) -> Execution {
    Execution::begin(store, ExecutionOptions { name: Some(name.into()), ..Default::default() }).unwrap()
}

fn finish(execution: Execution) {
    assert!(execution.finish(&Outcome::exit(0)).unwrap().is_empty());
}

fn archive(store: &Store, variable: &str, step: usize) {
    let step = step.to_string();
    let key = [("run", "a"), ("variable", variable), ("step", step.as_str())];
    store.archive(&key, Value::Bytes(b"12345"), &ArchiveOptions::default()).unwrap();
}

fn read(store: &Store, variable: &str, step: usize) {
    let step = step.to_string();
    let key = [("run", "a"), ("variable", variable), ("step", step.as_str())];
    store.get(&key, &ReadOptions::default()).unwrap().read().unwrap();
}

fn edges(store: &Store, vertex: &VertexName, kind: &str) -> Vec<Relation> {
    let mut edges =
        store.graph().edges(vertex, Some(kind), Versions::NOW, None, &Session::default()).unwrap();
    edges.sort_by_key(|edge| edge.stamp);
    edges
}

fn property(relation: &Relation, name: &str) -> Option<Property> {
    relation.props.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

fn number(relation: &Relation, name: &str) -> i64 {
    match property(relation, name) {
        Some(Property::Int(n)) => n,
        other => panic!("{name} is {other:?}"),
    }
}

/// The commit of a field, as a vertex.
fn commit_of(store: &Store, variable: &str, step: usize) -> VertexName {
    let step = step.to_string();
    let key = [("run", "a"), ("variable", variable), ("step", step.as_str())];
    let commits = store.get(&key, &ReadOptions::default()).unwrap().commits();
    assert_eq!(commits.len(), 1);
    VertexName::new("commit", &commits[0].0.to_string())
}

#[test]
fn ten_thousand_fields_in_ten_flushes_make_ten_relations() {
    let _alone = alone();
    let store = memory();
    let model = begin(&store, "model");
    for flush in 0..10 {
        (0..1000).for_each(|n| archive(&store, "t", 1000 * flush + n));
        store.flush(None).unwrap();
    }
    let job = model.vertex().clone();
    finish(model);
    let writes = edges(&store, &job, "write");
    assert_eq!(writes.len(), 10);
    for (n, write) in writes.iter().enumerate() {
        assert_eq!((number(write, "fields"), number(write, "bytes")), (1000, 5000));
        assert_eq!(write.far, commit_of(&store, "t", 1000 * n + 7));
    }
    let all = store.graph().stats().unwrap().relations;
    // user run job, ten commits; the end is a second row of the first.
    assert!(all <= 12, "{all}");
}

#[test]
fn without_an_execution_nothing_is_recorded() {
    let _alone = alone();
    let store = memory();
    archive(&store, "t", 0);
    store.flush(None).unwrap();
    read(&store, "t", 0);
    assert_eq!(store.graph().stats().unwrap().relations, 0);
    let model = begin(&store, "model");
    let job = model.vertex().clone();
    archive(&store, "t", 1);
    finish(model);
    archive(&store, "t", 2);
    store.flush(None).unwrap();
    assert_eq!(edges(&store, &job, "write").len(), 1);
    for step in [0, 2] {
        assert!(edges(&store, &commit_of(&store, "t", step), "wasWrittenBy").is_empty());
    }
}

#[test]
fn what_was_archived_before_it_began_is_not_its_own() {
    let _alone = alone();
    let store = memory();
    archive(&store, "before", 0);
    let model = begin(&store, "model");
    archive(&store, "within", 0);
    let job = model.vertex().clone();
    finish(model);
    assert!(edges(&store, &commit_of(&store, "before", 0), "wasWrittenBy").is_empty());
    assert_eq!(edges(&store, &commit_of(&store, "within", 0), "wasWrittenBy")[0].far, job);
}

#[test]
fn each_commit_that_was_read_is_one_relation_with_request_and_counts() {
    let _alone = alone();
    let store = memory();
    for flush in 0..3 {
        (0..10).for_each(|n| archive(&store, "t", 10 * flush + n));
        store.flush(None).unwrap();
    }
    let regrid = begin(&store, "regrid");
    let request = Request::parse("run=a,variable=t,step=0/to/14").unwrap();
    let fields = store.retrieve(&request, &RetrieveOptions::default()).unwrap();
    assert!(edges(&store, regrid.vertex(), "read").is_empty());
    let mut all = vec![0; 75];
    fields.read_into(&mut all).unwrap();
    read(&store, "t", 3);
    // Listing does not count as reading.
    assert_eq!(store.list(&Request::new(), &ListOptions::default()).unwrap().count(), 30);
    let job = regrid.vertex().clone();
    finish(regrid);
    let reads = edges(&store, &job, "read");
    let of = |step: usize| {
        let commit = commit_of(&store, "t", step);
        reads.iter().find(|read| read.far == commit)
    };
    assert_eq!(reads.len(), 2);
    let (first, second) = (of(0).unwrap(), of(10).unwrap());
    assert_eq!((number(first, "fields"), number(first, "bytes")), (11, 55));
    assert_eq!((number(second, "fields"), number(second, "bytes")), (5, 25));
    let asked = property(first, "request").unwrap().to_string();
    assert!(asked.contains(&request.to_string()) && asked.contains("; run=a"), "{asked}");
    assert!(first.until > Some(first.stamp) && property(first, "store").is_none());
}

#[test]
fn parts_of_fields_are_read_as_bytes_of_one_field() {
    let _alone = alone();
    let store = memory();
    archive(&store, "t", 0);
    store.flush(None).unwrap();
    let regrid = begin(&store, "regrid");
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    let field = store.get(&key, &ReadOptions::default()).unwrap();
    field.read_range(1, &mut [0; 2]).unwrap();
    field.read_range(3, &mut [0; 1]).unwrap();
    let job = regrid.vertex().clone();
    finish(regrid);
    field.read().unwrap();
    let reads = edges(&store, &job, "read");
    assert_eq!(
        (number(&reads[0], "fields"), number(&reads[0], "bytes")),
        (1, 3),
        "after its end nothing counts"
    );
}

#[test]
fn executions_of_several_threads_never_share_a_commit() {
    let _alone = alone();
    let store = memory();
    archive(&store, "input", 0);
    store.flush(None).unwrap();
    let executions: Vec<Execution> = (0..4).map(|n| begin(&store, &format!("part {n}"))).collect();
    std::thread::scope(|scope| {
        for (n, execution) in executions.iter().enumerate() {
            let store = &store;
            scope.spawn(move || {
                let _within = execution.enter();
                read(store, "input", 0);
                for step in 0..50 {
                    archive(store, &format!("v{n}"), step);
                    if step % 10 == 9 {
                        store.flush(None).unwrap();
                    }
                }
            });
        }
        // A thread outside all executions has commits of its own.
        scope.spawn(|| (0..50).for_each(|step| archive(&store, "nobody", step)));
    });
    let vertices: Vec<VertexName> = executions.iter().map(|one| one.vertex().clone()).collect();
    // Each ends while fields of another one wait.
    let last = begin(&store, "last");
    for execution in executions {
        let within = last.enter();
        archive(&store, "last", 0);
        drop(within);
        finish(execution);
    }
    finish(last);
    let readers = edges(&store, &commit_of(&store, "input", 0), "wasReadBy");
    assert_eq!(readers.len(), 4, "what they read is recorded all the same");
    for (n, vertex) in vertices.iter().enumerate() {
        for step in 0..50 {
            let commit = commit_of(&store, &format!("v{n}"), step);
            let writers: Vec<VertexName> =
                edges(&store, &commit, "wasWrittenBy").into_iter().map(|edge| edge.far).collect();
            assert_eq!(writers, std::slice::from_ref(vertex), "v{n} {step}");
        }
        let fields: i64 = edges(&store, vertex, "write").iter().map(|write| number(write, "fields")).sum();
        assert_eq!(fields, 50);
    }
    assert!((0..50).all(|step| edges(&store, &commit_of(&store, "nobody", step), "wasWrittenBy").is_empty()));
}

#[test]
fn a_thread_that_a_program_starts_belongs_to_the_execution_that_is_open() {
    let _alone = alone();
    let store = memory();
    let outer = begin(&store, "outer");
    std::thread::scope(|scope| scope.spawn(|| archive(&store, "t", 0)).join().unwrap());
    let within = outer.enter();
    let inner = begin(&store, "inner");
    drop(within);
    std::thread::scope(|scope| scope.spawn(|| archive(&store, "t", 1)).join().unwrap());
    let (outer_vertex, inner_vertex) = (outer.vertex().clone(), inner.vertex().clone());
    finish(inner);
    archive(&store, "t", 2);
    finish(outer);
    let writer = |step: usize| edges(&store, &commit_of(&store, "t", step), "wasWrittenBy")[0].far.clone();
    assert_eq!(
        [writer(0), writer(1), writer(2)],
        [outer_vertex.clone(), inner_vertex.clone(), outer_vertex.clone()]
    );
    assert_eq!((&*outer_vertex.kind, &*inner_vertex.kind), ("job", "process"));
    assert_eq!(edges(&store, &outer_vertex, "contains")[0].far, inner_vertex);
    assert!(inner_vertex.id.starts_with(&format!("{}/", outer_vertex.id)));
}

#[test]
fn lineage_goes_through_commits_and_by_cause() {
    let _alone = alone();
    let store = memory();
    let mut jobs = Vec::new();
    let mut step = |name: &str, inputs: &[&str], output: &str| {
        let execution = begin(&store, name);
        inputs.iter().for_each(|input| read(&store, input, 0));
        archive(&store, output, 0);
        store.flush(None).unwrap();
        // A later read is not an input of earlier flushes.
        read(&store, output, 0);
        if name == "c" {
            read(&store, "late", 0);
        }
        jobs.push(execution.vertex().clone());
        finish(execution);
    };
    step("late", &[], "late");
    step("a", &[], "x");
    step("b", &["x"], "y");
    step("c", &["y"], "z");
    let trace = |root: &VertexName, way: Way| {
        let options = TraceOptions { way, ..TraceOptions::default() };
        let lineage = store.graph().trace(root, &options, &Session::default()).unwrap();
        lineage.vertices.iter().map(|step| step.name.clone()).collect::<Vec<_>>()
    };
    let up = trace(&commit_of(&store, "z", 0), Way::Up);
    for job in &jobs[1..] {
        assert!(up.contains(job), "{job} of {up:?}");
    }
    assert!(!up.contains(&jobs[0]), "it was read after the result was written");
    let down = trace(&commit_of(&store, "x", 0), Way::Down);
    assert!(down.contains(&commit_of(&store, "z", 0)));
}

#[test]
fn what_is_read_elsewhere_is_recorded_in_the_own_store() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    {
        let source = on_disk(folder.path(), "source", Mode::Append);
        archive(&source, "t", 0);
        source.close().unwrap();
    }
    let source = on_disk(folder.path(), "source", Mode::Read);
    let store = on_disk(folder.path(), "store", Mode::Append);
    let regrid = begin(&store, "regrid");
    read(&source, "t", 0);
    archive(&store, "n", 0);
    let job = regrid.vertex().clone();
    finish(regrid);
    let commit = commit_of(&source, "t", 0);
    let reads = edges(&store, &job, "read");
    assert_eq!(reads[0].far, commit);
    let url = folder.path().join("source").display().to_string();
    assert_eq!(property(&reads[0], "store"), Some(Property::Text(url)));
    assert_eq!(source.graph().stats().unwrap().relations, 0);
    let lineage = store
        .graph()
        .trace(&commit_of(&store, "n", 0), &TraceOptions::default(), &Session::default())
        .unwrap();
    assert!(lineage.vertices.iter().any(|step| step.name == commit));
    source.close().unwrap();
}

/// Stores `a` and `b`, in which each step reads the output of the previous step in the other store, and the jobs of
/// these steps: `v0` in `a`, `v1` in `b`, `v2` in `a`, `v3` in `b`.
fn by_turns(folder: &Path) -> Vec<VertexName> {
    let mut jobs = Vec::new();
    for n in 0..4 {
        let names = if n % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        let store = on_disk(folder, names[0], Mode::Append);
        let step = begin(&store, &format!("step {n}"));
        if n > 0 {
            let other = on_disk(folder, names[1], Mode::Read);
            read(&other, &format!("v{}", n - 1), 0);
            other.close().unwrap();
        }
        archive(&store, &format!("v{n}"), 0);
        jobs.push(step.vertex().clone());
        finish(step);
        store.close().unwrap();
    }
    jobs
}

fn executions(lineage: &Lineage) -> Vec<VertexName> {
    let jobs = lineage.vertices.iter().filter(|step| &*step.name.kind == "job");
    jobs.map(|step| step.name.clone()).collect()
}

#[test]
fn lineage_goes_on_in_the_stores_that_were_read() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let jobs = by_turns(folder.path());
    let b = on_disk(folder.path(), "b", Mode::Read);
    let subject = LineageSubject::from(Request::parse("variable=v3").unwrap());
    let options = TraceOptions::default();
    let (lineage, stores) = b.tracer(&Session::default()).trace_across(&subject, &options).unwrap();
    assert_eq!(executions(&lineage), jobs.iter().rev().cloned().collect::<Vec<_>>(), "{}", lineage.tree(20));
    let depths: Vec<u32> = lineage.vertices.iter().map(|step| step.depth).collect();
    assert_eq!(depths, (0..8).collect::<Vec<_>>());
    let url = folder.path().join("a").display().to_string();
    assert_eq!((stores.len(), stores[0].commits, &stores[0].left), (1, 2, &None));
    assert_eq!(stores[0].url.as_deref(), Some(&*url));
    assert!(lineage.tree(20).contains(&format!("(1 field of {url})")), "{}", lineage.tree(20));
    assert_eq!(b.tracer(&Session::default()).trace(&subject, &options).unwrap().vertices.len(), 3);
    // The export includes the other store's records of its executions.
    let (dossier, _) = b.tracer(&Session::default()).dossier_across(&subject, &options).unwrap();
    assert_eq!(dossier.prop(&jobs[0], "name"), Some(&Property::Text("step 0".into())));
    assert!(dossier.runs.iter().any(|run| run.far == jobs[0]));
    assert_eq!(dossier.runs.len(), 4);

    // Both limits apply to all stores together.
    for depth in 0..8 {
        let options = TraceOptions { depth: Some(depth), ..options };
        let (bounded, _) = b.tracer(&Session::default()).trace_across(&subject, &options).unwrap();
        assert_eq!(bounded.vertices, lineage.vertices[..=depth as usize], "{depth}");
    }
    for limit in 1..8 {
        let options = TraceOptions { limit, ..options };
        let (bounded, _) = b.tracer(&Session::default()).trace_across(&subject, &options).unwrap();
        assert_eq!((bounded.vertices.len(), bounded.truncated), (limit, true));
    }
    // A commit of another store is a root like others, and a downstream walk opens no other store.
    let from = LineageSubject::Vertex(lineage.vertices[2].name.clone());
    let (lineage, _) = b.tracer(&Session::default()).trace_across(&from, &options).unwrap();
    assert_eq!(executions(&lineage).len(), 3);
    let down = TraceOptions { way: Way::Down, ..options };
    let (lineage, stores) = b.tracer(&Session::default()).trace_across(&from, &down).unwrap();
    assert_eq!((executions(&lineage), stores.len()), (vec![jobs[3].clone()], 0));
}

#[test]
fn stores_that_are_not_there_are_named_and_no_error() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let jobs = by_turns(folder.path());
    let b = on_disk(folder.path(), "b", Mode::Read);
    let subject = LineageSubject::from(Request::parse("variable=v3").unwrap());
    let left = || {
        let (lineage, stores) =
            b.tracer(&Session::default()).trace_across(&subject, &TraceOptions::default()).unwrap();
        assert_eq!(executions(&lineage), [jobs[3].clone()]);
        assert_eq!((stores.len(), stores[0].commits), (1, 1));
        b.tracer(&Session::default()).dossier_across(&subject, &TraceOptions::default()).unwrap();
        stores[0].left.clone().unwrap()
    };
    let [a, aside] = ["a", "aside"].map(|name| folder.path().join(name));
    std::fs::rename(&a, &aside).unwrap();
    assert!(left().contains("no store"), "{}", left());
    let other = on_disk(folder.path(), "a", Mode::Create);
    archive(&other, "t", 0);
    other.close().unwrap();
    assert!(left().contains("another store"), "{}", left());
    std::fs::remove_dir_all(&a).unwrap();
    std::fs::write(&a, "no folder").unwrap();
    assert!(!left().is_empty());
    std::fs::remove_file(&a).unwrap();
    std::fs::rename(&aside, &a).unwrap();
    assert_eq!(
        executions(
            &b.tracer(&Session::default()).trace_across(&subject, &TraceOptions::default()).unwrap().0
        )
        .len(),
        4
    );
}

#[test]
fn a_store_of_its_own_gets_job_and_user_too() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (store, other) =
        (on_disk(folder.path(), "store", Mode::Append), on_disk(folder.path(), "other", Mode::Append));
    let model = begin(&store, "model");
    let within = model.enter();
    let inner = begin(&store, "inner");
    drop(within);
    archive(&other, "t", 0);
    other.flush(None).unwrap();
    let (job, process) = (model.vertex().clone(), inner.vertex().clone());
    finish(inner);
    finish(model);
    assert_eq!(edges(&other, &commit_of(&other, "t", 0), "wasWrittenBy")[0].far, process);
    assert_eq!(edges(&other, &process, "belongs")[0].far, job);
    assert_eq!(&*edges(&other, &job, "wasRunBy")[0].far.kind, "user");
    assert_eq!(edges(&store, &job, "wasRunBy").len(), 1);
    let name =
        other.graph().vertex(&process, None, &Session::default()).unwrap().props.into_iter().next().unwrap();
    assert_eq!(name, ("name".to_owned(), Property::Text("inner".into())));
}

#[test]
fn a_transaction_takes_the_record_with_it() {
    let _alone = alone();
    let store = memory();
    let model = begin(&store, "model");
    let transaction = store.transaction().unwrap();
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    transaction.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
    transaction.flush().unwrap();
    let job = model.vertex().clone();
    assert!(edges(&store, &job, "write").is_empty());
    transaction.commit().unwrap();
    assert_eq!(edges(&store, &job, "write")[0].far, commit_of(&store, "t", 0));
    finish(model);
    assert_eq!(edges(&store, &job, "write").len(), 1);
}

#[test]
fn attributes_are_results_as_fields_are() {
    let _alone = alone();
    let store = memory();
    let run = store.create_run("a").create().unwrap();
    let tagger = begin(&store, "tagger");
    let job = tagger.vertex().clone();
    run.annotate("cause", "a shock", &Target::run()).unwrap();
    finish(tagger);
    let writes = edges(&store, &job, "write");
    assert_eq!((writes.len(), number(&writes[0], "fields")), (1, 0));
}

#[test]
fn what_was_read_is_older_than_what_came_of_it_whatever_clocks_say() {
    let _alone = alone();
    let world = SimWorld::new(1);
    let options = OpenOptions::default();
    let open = |host: &str, path: &str| {
        fieldstone::open_in(world.process(host), path, Path::new(path), &options).unwrap()
    };
    let store = open("ahead", "/s");
    archive(&store, "x", 0);
    store.flush(None).unwrap();
    world.set_clock_offset("behind", -3_600_000_000_000);
    // Nothing in its own store is as new as its input.
    let (source, own) = (open("behind", "/s"), open("behind", "/own"));
    let regrid = begin(&own, "regrid");
    read(&source, "x", 0);
    archive(&own, "y", 0);
    finish(regrid);
    let lineage =
        own.graph().trace(&commit_of(&own, "y", 0), &TraceOptions::default(), &Session::default()).unwrap();
    let input = commit_of(&source, "x", 0);
    assert!(lineage.vertices.iter().any(|step| step.name == input), "{}", lineage.tree(20));
}

/// Times beyond 64 bits of nanoseconds, and before 1970.
#[test]
fn a_clock_that_no_host_has_right_costs_readers_nothing() {
    let _alone = alone();
    for offset in [i64::MAX, 118 * 31_557_600_000_000_000, i64::MIN] {
        let world = SimWorld::new(1);
        let options = OpenOptions::default();
        let open =
            |host: &str| fieldstone::open_in(world.process(host), "/s", Path::new("/s"), &options).unwrap();
        world.set_clock_offset("wrong", offset);
        let store = open("wrong");
        archive(&store, "plain", 0);
        store.flush(None).unwrap();
        let model = begin(&store, "model");
        read(&store, "plain", 0);
        archive(&store, "t", 0);
        let job = model.vertex().clone();
        finish(model);
        store.create_run("r").create().unwrap();
        store.flush(None).unwrap();
        let put = |time| RelationPut {
            time,
            ..RelationPut::new("write", job.clone(), VertexName::new("file", "/a"))
        };
        store.graph().put_relations(vec![put(None)], &Session::default()).unwrap();
        let told = u64::try_from(world.now().saturating_add(offset)).ok().filter(|told| *told > 1 << 62);
        if told.is_some() {
            let error = store.graph().put_relations(vec![put(told)], &Session::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "others would follow the stamp of nobody's clock");
        }
        store.flush(None).unwrap();
        for store in [&store, &open("right")] {
            let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
            assert_eq!(list.collect::<Result<Vec<_>, _>>().unwrap().len(), 2);
            assert!(store.verify(&Request::new()).unwrap().ok() && store.status().unwrap().code() == 0);
            assert!(store.run("r").is_ok());
            assert_eq!(edges(store, &job, "write").len(), 2);
            let user = edges(store, &job, "wasRunBy")[0].far.id.to_string();
            let audit = AuditOptions { user: Some(user), ..AuditOptions::default() };
            assert!(
                store
                    .graph()
                    .audit(&audit, &Session::default())
                    .unwrap()
                    .rows
                    .iter()
                    .any(|row| row.execution == job)
            );
            let input = commit_of(store, "plain", 0);
            let trace = store
                .graph()
                .trace(&commit_of(store, "t", 0), &TraceOptions::default(), &Session::default())
                .unwrap();
            assert!(trace.vertices.iter().any(|step| step.name == input), "{}", trace.tree(20));
        }
        let store = open("right");
        archive(&store, "t", 0);
        store.flush(None).unwrap();
        assert_eq!(commit_of(&open("wrong"), "t", 0), commit_of(&store, "t", 0), "the newest is the newest");
    }
}

#[test]
fn an_execution_needs_a_store_that_it_may_write_to() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    {
        let store = on_disk(folder.path(), "store", Mode::Append);
        archive(&store, "t", 0);
        store.close().unwrap();
    }
    let store = on_disk(folder.path(), "store", Mode::Read);
    let error = Execution::begin(&store, ExecutionOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let other = memory();
    archive(&other, "t", 0);
    other.flush(None).unwrap();
    assert_eq!(other.graph().stats().unwrap().relations, 0, "nothing is open");
}

#[test]
fn files_are_recorded_with_what_is_in_them() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let path = |name: &str| root.join(name).display().to_string();
    std::fs::write(path("in.nc"), "input").unwrap();
    std::fs::write(path("appended"), "a").unwrap();
    let store = memory();
    let options = ExecutionOptions {
        reads: vec![path("*.nc"), path("absent")],
        writes: vec![path("out*")],
        watch: vec![root.clone()],
        params: vec![("n".into(), Property::Int(80)), ("password".into(), Property::Text("hunter2".into()))],
        ..ExecutionOptions::default()
    };
    let regrid = Execution::begin(&store, options).unwrap();
    let job = regrid.vertex().clone();
    std::fs::write(path("out 1\n'"), "output").unwrap();
    std::fs::write(path("appended"), "ab").unwrap();
    let notes = regrid.finish(&Outcome::exit(0)).unwrap();
    assert_eq!(notes, [format!("{}: no file to read matches it", path("absent"))]);
    let [read] = &edges(&store, &job, "read")[..] else { panic!("one file is read") };
    assert_eq!((&*read.far.id, number(read, "bytes")), (&*path("in.nc"), 5));
    let checksum = property(read, "checksum").unwrap().to_string();
    assert!(checksum.contains("xxh3:") && checksum.len() >= 37, "{checksum}");
    let writes = edges(&store, &job, "write");
    let mut facts: Vec<_> = writes
        .iter()
        .map(|write| (write.far.id.to_string(), number(write, "bytes"), property(write, "replaces")))
        .collect();
    facts.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(facts, [(path("appended"), 2, None), (path("out 1\n'"), 6, Some(Property::Bool(true)))]);
    let vertex = store.graph().vertex(&job, None, &Session::default()).unwrap();
    let get = |name: &str| vertex.props.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let params = [("n".to_owned(), Property::Int(80)), ("password".to_owned(), Property::Text("***".into()))];
    assert_eq!(get("params"), Property::Map(params.to_vec()));
    assert_eq!(get("exit"), Property::Int(0));
    assert!(matches!((get("start"), get("end")), (Property::DateTime(a), Property::DateTime(b)) if a < b));
}

#[test]
fn an_audit_that_is_cut_off_shows_no_commit_of_an_execution_as_a_plain_one() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(folder.path(), "store", Mode::Append);
    let job = begin(&store, "first");
    let user = edges(&store, job.vertex(), "wasRunBy")[0].far.id.to_string();
    finish(job);
    archive(&store, "plain", 0);
    store.flush(None).unwrap();
    for step in 0..6 {
        let job = begin(&store, "model");
        read(&store, "plain", 0);
        archive(&store, "t", step);
        finish(job);
    }
    archive(&store, "plain", 1);
    store.flush(None).unwrap();
    let plain = [commit_of(&store, "plain", 0), commit_of(&store, "plain", 1)];
    let audit = |limit: usize| {
        let options = AuditOptions { user: Some(user.clone()), limit, ..AuditOptions::default() };
        store.graph().audit(&options, &Session::default()).unwrap()
    };
    let all = audit(usize::MAX);
    // A commit that an execution read, and none wrote, is still a plain one.
    let of_commits = |audit: &Audit| -> Vec<VertexName> {
        audit.rows.iter().map(|row| &row.execution).filter(|name| &*name.kind == "commit").cloned().collect()
    };
    assert_eq!(of_commits(&all), plain, "{:#?}", all.rows);
    assert!(!all.truncated && all.rows.is_sorted_by_key(|row| row.stamp) && all.rows[0].stamp > 0);
    for limit in 0..all.rows.len() {
        let cut = audit(limit);
        assert!(cut.truncated && cut.rows.len() == limit);
        assert!(of_commits(&cut).iter().all(|commit| plain.contains(commit)), "{limit}: {:#?}", cut.rows);
    }
}

#[test]
fn a_command_leaves_signals_as_they_were() {
    let _alone = alone();
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigCgt:")).unwrap().to_owned()
    };
    let before = caught();
    let command = ["sh", "-c", "exit 3"].map(std::ffi::OsString::from);
    for _ in 0..2 {
        let ended = execution::run(&memory(), &command, ExecutionOptions::default()).unwrap();
        assert_eq!((ended.code, caught()), (3, before.clone()));
    }
}

#[test]
fn a_graph_with_options_of_its_own_is_asked_for_first() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let store = memory();
    store.graph_with_slots(folder.path(), Default::default()).unwrap();
    let late = store.graph_with_slots(folder.path(), Default::default()).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Invalid);
}
