//! The graph in the simulated world: killed in a system call, by a power cut, and on a disk that fails. Flushed
//! relations are there in both directions, none is torn, no others appear, and the index agrees with a replay of the
//! logs.
//!
//! Half of the seeds divide the index into slots on the way, which split and are walked.
//!
//! `FIELDSTONE_CRASH=full` makes 1,000 kills, otherwise 40.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fieldstone::Session;
use fieldstone::env::Env;
use fieldstone::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone::graph::{
    Deletion, EdgeType, Engine, PartitionScheme, Partitioning, Props, RelationBatch, RelationPut, TextColumn,
    Travel, TravelStep, TypeDecl, Versions, VertexName, VertexPut, VertexTest,
};
use fieldstone::lineage::{GraphRows, TreePart};
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, OpenOptions, Result, Store};
use fieldstone_core::value::Value;
use fieldstone_testkit::random::Seeded;
use fieldstone_testkit::require::full;
use fieldstone_testkit::{Random, seeded};

/// The folder of the index's segments.
const INDEX: &str = "/s/graph";

/// Opens the store, with its index on the simulated disk.
fn open(env: &Env) -> Result<Store> {
    let store = fieldstone::open_in(env.clone(), "/s", Path::new("/s"), &OpenOptions::default())?;
    // If the folder cannot be made, the index stays in memory.
    let _ = env.disk.create_dir_all(Path::new(INDEX));
    // A kill may come before there is anything else.
    store.will_write();
    store.graph_with_slots(Path::new(INDEX), Default::default()).unwrap();
    Ok(store)
}

fn job(n: u64) -> VertexName {
    VertexName::new("job", &n.to_string())
}

fn file(n: u64) -> VertexName {
    VertexName::new("file", &format!("/data/{n}"))
}

fn props(n: u64) -> Props {
    Props::of([("note", &Value::Text(format!("{n:060}")))]).unwrap()
}

/// A version of a relation: its type, ends, stamp, whether it is a deletion, and its note.
type Line = (String, String, String, u64, bool, String);

/// The whole content of a graph, forwards; checks that both directions agree.
fn visible(store: &Store, vertices: &BTreeSet<VertexName>) -> Result<BTreeSet<Line>> {
    let (mut forward, mut back) = (BTreeSet::new(), BTreeSet::new());
    for vertex in vertices {
        for edge in store.graph().edges(vertex, None, Versions::ALL, None, &Session::default())? {
            let (near, far) = (edge.near.to_string(), edge.far.to_string());
            let note = match edge.props.iter().find(|(name, _)| name == "note") {
                Some((_, Value::Text(note))) => note.clone(),
                _ => String::new(),
            };
            let line = |a: String, b: String| (edge.kind.clone(), a, b, edge.stamp, edge.deleted, note);
            let fresh = match edge.reverse {
                false => forward.insert(line(near, far)),
                true => back.insert(line(far, near)),
            };
            assert!(fresh, "a version is there twice: {edge:?}");
        }
    }
    let ends = |lines: &BTreeSet<Line>| -> BTreeSet<(String, String, u64, bool, String)> {
        lines
            .iter()
            .map(|(_, a, b, stamp, deleted, note)| (a.clone(), b.clone(), *stamp, *deleted, note.clone()))
            .collect()
    };
    assert_eq!(ends(&forward), ends(&back), "a relation is there at one of its ends alone");
    Ok(forward)
}

/// The required content, and the possible one: each flush completely or not at all.
#[derive(Debug, Default, Clone)]
struct Model {
    vertices: BTreeSet<VertexName>,
    flushed: BTreeSet<Line>,
    /// Put and not flushed yet, or in flushes without a result.
    open: Vec<BTreeSet<Line>>,
}

impl Model {
    fn note(&mut self, put: &RelationPut, stamp: u64, deleted: bool) {
        self.vertices.extend([put.source.clone(), put.target.clone()]);
        let note = match put.props.get("note").unwrap() {
            Some(Value::Text(note)) => note,
            _ => String::new(),
        };
        let (source, target) = (put.source.to_string(), put.target.to_string());
        let line = (put.kind.to_string(), source, target, stamp, deleted, note);
        if self.open.is_empty() {
            self.open.push(BTreeSet::new());
        }
        self.open.last_mut().unwrap().insert(line);
    }

    /// The flush returned.
    fn settle(&mut self) {
        self.flushed.extend(self.open.pop().unwrap_or_default());
    }

    /// The outcome of the flush is unknown.
    fn leave(&mut self) {
        self.open.push(BTreeSet::new());
    }

    /// Whether this may be seen.
    fn check(&self, seen: &BTreeSet<Line>, place: &str) {
        let lacking: Vec<&Line> = self.flushed.difference(seen).collect();
        assert!(lacking.is_empty(), "{place}: what was flushed is lost: {lacking:?}");
        let mut beyond: BTreeSet<Line> = seen.difference(&self.flushed).cloned().collect();
        for flush in self.open.iter().filter(|flush| !flush.is_empty()) {
            let there = flush.iter().filter(|line| beyond.remove(*line)).count();
            assert!(there == 0 || there == flush.len(), "{place}: {there} of {} of a flush", flush.len());
        }
        assert!(beyond.is_empty(), "{place}: no process put {beyond:?}");
    }
}

/// A process that works on the graph.
struct Work<'a> {
    store: &'a Store,
    model: &'a mut Model,
    dice: Seeded,
    tree: &'a Path,
    seed: u64,
}

/// Whether a process puts thousands at once.
fn is_many(seed: u64) -> bool {
    seed % 2 == 1
}

/// Whether it divides the index into slots.
fn is_cut(seed: u64) -> bool {
    seed >= 2
}

/// Divisions of the index, by seed.
const SEEDS: u64 = 4;

impl Work<'_> {
    /// Flushes; after an error the outcome is unknown.
    fn flush(&mut self) -> Result<()> {
        let flushed = self.store.flush(None);
        match &flushed {
            Ok(()) => self.model.settle(),
            Err(_) => self.model.leave(),
        }
        flushed
    }

    fn relation(&mut self) -> RelationPut {
        let n = self.dice.below(1 << 20);
        let kind = *self.dice.pick(&["read", "write", "derives"]);
        let put = RelationPut::new(kind, job(self.dice.below(12)), file(self.dice.below(40)));
        RelationPut { props: props(n), ..put }
    }

    fn singles(&mut self) -> Result<()> {
        for _ in 0..6 {
            let put = self.relation();
            let stamp = self.store.graph().put_relations(vec![put.clone()], &Session::default())?;
            self.model.note(&put, stamp, false);
        }
        self.flush()
    }

    /// Columns that form one record on their own.
    fn columns(&mut self) -> Result<()> {
        let one = |text: &str| TextColumn::One(text.as_bytes().to_vec());
        let rows = 4_200;
        let (mut sources, mut targets) = (TextColumn::default(), TextColumn::default());
        let n = self.dice.below(40);
        for row in 0..rows as u64 {
            sources.push(&job(row % 12).id);
            targets.push(&file(n + row % 3).id);
        }
        let batch = RelationBatch {
            kinds: one("write"),
            source_kinds: one("job"),
            source_ids: sources,
            target_kinds: one("file"),
            target_ids: targets,
            props: TextColumn::One(Vec::new()),
            times: None,
            until: None,
            rows,
        };
        let last = self.store.graph().put_batch(Vec::new(), &batch, &Session::default())?;
        for row in 0..rows as u64 {
            let put = RelationPut::new("write", job(row % 12), file(n + row % 3));
            self.model.note(&put, last - (rows as u64 - 1 - row), false);
        }
        self.flush()
    }

    fn deletions(&mut self) -> Result<()> {
        let put = self.relation();
        let stamp = self.store.graph().put_relations(vec![put.clone()], &Session::default())?;
        self.model.note(&put, stamp, false);
        let what = Deletion::Relation(put.kind.clone(), put.source.clone(), put.target.clone());
        let stamp = self.store.graph().delete(vec![what], None, &Session::default())?;
        self.model.note(&RelationPut { props: Props::default(), ..put }, stamp, true);
        // It ends relations, and takes none away.
        let vertex = file(self.dice.below(40));
        self.store.graph().put_vertices(vec![VertexPut::new(vertex.clone())], &Session::default())?;
        self.store.graph().delete(vec![Deletion::Vertex(vertex)], None, &Session::default())?;
        self.flush()
    }

    fn transaction(&mut self, commit: bool) -> Result<()> {
        let transaction = self.store.transaction()?;
        let put = self.relation();
        let stamp = self.store.graph().put_relations(vec![put.clone()], &Session::from(transaction.id()))?;
        let before = self.model.clone();
        self.model.note(&put, stamp, false);
        let decided = if commit { transaction.commit() } else { transaction.abort() };
        match &decided {
            Ok(()) if commit => self.model.settle(),
            Ok(()) => *self.model = before,
            Err(_) => self.model.leave(),
        }
        decided
    }

    fn ingest(&mut self) -> Result<()> {
        let mut taken: Vec<GraphRows> = Vec::new();
        fieldstone::lineage::tree(&Env::real(), self.tree, &mut |part| {
            if let TreePart::Rows(rows) = part {
                taken.push(rows);
            }
            Ok(())
        })?;
        for rows in taken {
            let mut relations = rows.relations;
            // With a time of each, the expected content is known.
            relations
                .iter_mut()
                .for_each(|put| put.time = put.time.or_else(|| Some(self.store.graph().now())));
            self.store.graph().put(rows.vertices, relations.clone(), &Session::default())?;
            relations.iter().for_each(|put| self.model.note(put, put.time.unwrap_or(0), false));
            self.flush()?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let seen = visible(self.store, &self.model.vertices)?;
        self.model.check(&seen, "the process itself");
        self.walk(&seen)
    }

    /// The result of one hop from each job, by one of three engines.
    fn walk(&mut self, seen: &BTreeSet<Line>) -> Result<()> {
        let starts = (0..12).map(job).collect();
        let start = VertexTest { named: Some(starts), ..VertexTest::default() };
        let along = TravelStep::Edges { kinds: vec!["derives".into()], versions: Some((0, u64::MAX)) };
        let travel = Travel { steps: vec![TravelStep::Vertices(start), along], ..Travel::default() };
        let engine = *self.dice.pick(&Engine::ALL);
        let walked = self.store.graph().travel(&travel, engine, &Session::default())?;
        let names: BTreeSet<String> =
            walked.names(0, 0, usize::MAX)?.iter().map(ToString::to_string).collect();
        let put = seen.iter().filter(|(kind, _, _, _, deleted, _)| kind == "derives" && !deleted);
        assert_eq!(names, put.map(|(_, _, target, ..)| target.clone()).collect(), "{engine:?}");
        Ok(())
    }

    /// Rebuilds the index, in slots if the seed says so.
    fn anew(&mut self) -> Result<()> {
        if !is_cut(self.seed) {
            return self.store.graph().rebuild().map(drop);
        }
        let (slots, scheme) = (3, *self.dice.pick(&PartitionScheme::ALL));
        let partitioning = Partitioning { slots, scheme, threshold: 2, ..Partitioning::default() };
        self.store.graph().partition(partitioning).map(drop)
    }

    /// All of it; stops at the first error.
    fn all(&mut self) -> Result<()> {
        let edge =
            EdgeType { name: "derives".into(), reverse: "wasDerivedFrom".into(), ..EdgeType::default() };
        self.store.graph().define(vec![TypeDecl::Edge(edge)], &Session::default())?;
        self.singles()?;
        self.read()?;
        self.anew()?;
        self.deletions()?;
        self.transaction(true)?;
        self.transaction(false)?;
        if is_many(self.seed) {
            self.columns()?;
        }
        self.read()?;
        self.ingest()?;
        self.store.graph().rebuild()?;
        self.singles()?;
        self.read()?;
        self.store.close()
    }
}

/// A directory tree to take in.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..5 {
        let below = folder.path().join(format!("d{}", i % 2));
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join(format!("f{i}")), "x").unwrap();
    }
    folder
}

/// A world in which an earlier process worked, whose index is on the disk.
fn stage(seed: u64, tree: &Path) -> (SimWorld, Model) {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    let mut model = Model::default();
    if seed.is_multiple_of(2) {
        let store = open(&world.process("a")).unwrap();
        let mut work = Work { store: &store, model: &mut model, dice: seeded(seed ^ 5), tree, seed: 0 };
        work.singles().unwrap();
        work.read().unwrap();
        store.close().unwrap();
        assert!(world.files().contains(&PathBuf::from("/s/graph/manifest")), "the index was written");
    }
    (world, model)
}

/// Compares fresh processes' indexes with the model: one that finds the index as it is, and, after its close, another.
fn check(world: &SimWorld, model: &Model, place: &str) {
    let mut model = model.clone();
    for round in 0..2 {
        let store = open(&world.process("a")).unwrap_or_else(|e| panic!("{place}: {e}"));
        let seen = visible(&store, &model.vertices).unwrap_or_else(|e| panic!("{place}: {e}"));
        model.check(&seen, &format!("{place}, round {round}"));
        // Relations that exist now stay; no others appear.
        model.flushed = seen;
        model.open.clear();
        let check = store.graph().verify().unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(check.ok(), "{place}: {check:?}");
        let put = RelationPut::new("read", job(100 + round), file(100));
        let stamp = store.graph().put_relations(vec![put.clone()], &Session::default()).unwrap();
        model.note(&put, stamp, false);
        store.flush(None).unwrap();
        model.settle();
        let seen = visible(&store, &model.vertices).unwrap();
        model.check(&seen, &format!("{place}, after a further write"));
        store.close().unwrap();
    }
}

/// Calls that an undisturbed process makes, by kind.
fn count(seed: u64, tree: &Path) -> BTreeMap<OpKind, u64> {
    let (world, mut model) = stage(seed, tree);
    let env = world.process("a");
    let before = world.counters();
    let store = open(&env).unwrap();
    Work { store: &store, model: &mut model, dice: seeded(seed), tree, seed }.all().unwrap();
    assert!(model.open.iter().all(BTreeSet::is_empty));
    let calls = world.counters();
    check(&world, &model, "undisturbed");
    OpKind::ALL.map(|kind| (kind, calls.count(kind) - before.count(kind))).into_iter().collect()
}

/// Runs a process under a plan of faults; returns its result.
fn disturbed(
    seed: u64,
    tree: &Path,
    plan: impl FnOnce(&SimWorld, &Env),
) -> (SimWorld, Env, Model, Result<()>) {
    let (world, mut model) = stage(seed, tree);
    let env = world.process("a");
    plan(&world, &env);
    let outcome = open(&env).and_then(|store| {
        let outcome = Work { store: &store, model: &mut model, dice: seeded(seed), tree, seed }.all();
        std::mem::forget(store);
        outcome
    });
    (world, env, model, outcome)
}

/// A kind of call and its number, drawn so that rare kinds also come.
fn draw(dice: &mut Random, calls: &BTreeMap<OpKind, u64>) -> (OpKind, u64) {
    let kinds: Vec<(OpKind, u64)> =
        calls.iter().filter(|(_, n)| **n > 0).map(|(kind, n)| (*kind, *n)).collect();
    let (kind, most) = *dice.pick(&kinds);
    (kind, 1 + dice.below(most))
}

#[test]
fn a_kill_in_any_call_tears_no_relation_and_loses_none_that_was_flushed() {
    let tree = tree();
    let counts: Vec<_> = (0..SEEDS).map(|seed| count(seed, tree.path())).collect();
    let mut kills: BTreeMap<OpKind, u64> = BTreeMap::new();
    let mut dice = seeded(11);
    for round in 0..if full() { 1_000 } else { 40 } {
        let seed = round % SEEDS;
        let (kind, n) = draw(&mut dice, &counts[seed as usize]);
        let (world, env, model, outcome) =
            disturbed(seed, tree.path(), |world, env| world.kill_nth(env, Some(kind), n));
        let place = format!("killed at {kind:?} {n}, seed {seed}");
        // If slots split at the same time, one call fewer may be enough.
        let survived = env.identity.alive(env.identity.process());
        assert!(!survived || is_cut(seed), "{place}: it survived: {outcome:?}");
        check(&world, &model, &place);
        *kills.entry(kind).or_default() += u64::from(!survived);
    }
    let (all, rounds) = (kills.values().sum::<u64>(), if full() { 1_000 } else { 40 });
    assert!(10 * all >= 9 * rounds, "{all} kills of {rounds}");
    println!("kills: {kills:?}");
}

#[test]
fn after_a_power_cut_the_index_is_whole_or_rebuilt() {
    let tree = tree();
    let counts: Vec<_> = (0..SEEDS).map(|seed| count(seed, tree.path())).collect();
    let mut dice = seeded(12);
    for round in 0..if full() { 300 } else { 10 } {
        let seed = round % SEEDS;
        let (kind, n) = draw(&mut dice, &counts[seed as usize]);
        let cut = Plan::new(Fault::PowerOff).kind(kind).nth(n);
        let (world, _, model, _) = disturbed(seed, tree.path(), |world, _| world.schedule(cut));
        for image in 0..2 {
            check(
                &world.power_cut(image),
                &model,
                &format!("power cut at {kind:?} {n}, seed {seed}, image {image}"),
            );
        }
    }
}

/// The folder of the index is on a disk that fails: no put, flush or read fails for it, and no answer is wrong.
#[test]
fn an_index_whose_disk_fails_delays_nothing_and_says_nothing_wrong() {
    let tree = tree();
    let of_view = |seed: u64| {
        let (world, mut model) = stage(seed, tree.path());
        world.set_tracing(true);
        let store = open(&world.process("a")).unwrap();
        Work { store: &store, model: &mut model, dice: seeded(seed), tree: tree.path(), seed }.all().unwrap();
        let calls = world.trace().iter().filter(|op| op.path.starts_with(INDEX)).count() as u64;
        assert!(calls > 20, "only {calls} calls are made in the index's folder");
        calls
    };
    let calls: Vec<u64> = (0..SEEDS).map(of_view).collect();
    let mut dice = seeded(13);
    for round in 0..if full() { 400 } else { 24 } {
        let seed = round % SEEDS;
        let fault = *dice.pick(&[Fault::NoSpace, Fault::Io, Fault::Short, Fault::Denied]);
        let n = 1 + dice.below(calls[seed as usize]);
        let lasting = dice.one_in(2);
        let place = format!(
            "{fault:?} at call {n} of the index{}, seed {seed}",
            if lasting { " and after" } else { "" }
        );
        let (world, _, model, outcome) = disturbed(seed, tree.path(), |world, _| {
            for n in n..n + if lasting { 60 } else { 1 } {
                world.schedule(Plan::new(fault).path(INDEX).nth(n));
            }
        });
        // A rebuild reports a list that cannot be removed; all other calls go on in memory.
        if let Err(error) = outcome {
            assert!(
                error.kind() != ErrorKind::Corrupt && error.message().contains(INDEX),
                "{place}: {error}"
            );
        }
        world.clear_faults();
        check(&world, &model, &place);
    }
}

/// Faults anywhere, also in the logs: acknowledged relations are there, those of a failed flush may be.
#[test]
fn a_disk_that_fails_tears_no_relation() {
    let tree = tree();
    let counts: Vec<_> = (0..SEEDS).map(|seed| count(seed, tree.path())).collect();
    let mut dice = seeded(14);
    for round in 0..if full() { 400 } else { 24 } {
        let seed = round % SEEDS;
        let (kind, n) = draw(&mut dice, &counts[seed as usize]);
        let fault = *dice.pick(&[Fault::NoSpace, Fault::Io, Fault::IoPartial, Fault::Short]);
        let plan = Plan::new(fault).kind(kind).nth(n);
        let (world, _, model, outcome) = disturbed(seed, tree.path(), |world, _| world.schedule(plan));
        world.clear_faults();
        check(&world, &model, &format!("{fault:?} at {kind:?} {n}, seed {seed}: {outcome:?}"));
    }
}
