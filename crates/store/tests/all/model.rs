//! Random work of several processes, compared at every flush with a plain model of a store's semantics: an ordered
//! list of the changes that became visible.
//!
//! A failure prints its seed; `FIELDSTONE_SEED=n cargo test -p fieldstone-store --test all model::` runs only that
//! seed. Between flushes the system settles: the conformance suite tests what other processes see before that.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::Field;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::LocalStore;
use fieldstone_testkit::random::{Seeded, seeds};

const SHAPE: [u64; 2] = [5, 7];
const ARRAYS: [&str; 3] = ["run=a,variable=t,step=0", "run=a,variable=t,step=1", "run=b,variable=u"];
const OPAQUE: [&str; 3] = ["run=a,variable=o,step=0", "run=b,variable=o", "run=c,variable=o,step=-5"];

/// The effect of one call on one key.
#[derive(Debug, Clone)]
enum Change {
    Piece([u64; 2], [u64; 2], i32),
    Whole(i32),
    Create(i32),
    Bytes(u64, usize),
    Remove,
    /// Removes the version that this change made, if it is still the newest.
    RemoveVersion(i32),
}

/// Key, change, and a number for the resulting field.
type Batch = Vec<(&'static str, Change, i32)>;

/// A field of the model.
#[derive(Debug, Clone, PartialEq)]
enum Content {
    Array(Vec<Option<i32>>, i32),
    Bytes(Vec<u8>),
}

/// Fields, each with the number of the change that produced it.
type State = BTreeMap<&'static str, (Content, i32)>;

fn apply(state: &mut State, batch: &Batch) {
    let cells = (SHAPE[0] * SHAPE[1]) as usize;
    for (key, change, number) in batch {
        let mut put = |content| drop(state.insert(key, (content, *number)));
        match change {
            Change::Bytes(seed, length) => put(Content::Bytes(pattern(*length, *seed))),
            Change::Whole(value) => put(Content::Array(vec![Some(*value); cells], 0)),
            Change::Create(fill) => put(Content::Array(vec![None; cells], *fill)),
            Change::Remove => drop(state.remove(key)),
            Change::RemoveVersion(made) => {
                if state.get(key).is_some_and(|(_, number)| number == made) {
                    state.remove(key);
                }
            }
            Change::Piece(start, count, value) => {
                let fresh = (Content::Array(vec![None; cells], 0), 0);
                let (content, newest) = state.entry(key).or_insert(fresh);
                *newest = *number;
                let Content::Array(array, _) = content else { panic!("a piece of opaque bytes") };
                for row in start[0]..start[0] + count[0] {
                    for column in start[1]..start[1] + count[1] {
                        array[(row * SHAPE[1] + column) as usize] = Some(*value);
                    }
                }
            }
        }
    }
}

fn bytes(content: &Content) -> Vec<u8> {
    match content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::Array(array, fill) => array.iter().flat_map(|x| x.unwrap_or(*fill).to_ne_bytes()).collect(),
    }
}

/// A transaction of the model: its flushed changes, and its decision.
#[derive(Debug, Default, Clone)]
struct Transaction {
    prepared: Vec<Batch>,
    decided: Option<bool>,
}

/// A process: its handle, and its archived but unflushed changes.
struct Process {
    store: Store,
    sessions: BTreeMap<Option<Id>, Batch>,
}

/// The systems under test.
enum System {
    Posix(tempfile::TempDir),
    Simulated(SimWorld, u64),
}

impl System {
    fn open(&self, process: usize, how: &Opening) -> Store {
        let (env, root) = match self {
            System::Posix(folder) => (Env::real(), folder.path().join("store")),
            System::Simulated(world, _) => (world.process(["a", "b", "c"][process % 3]), ROOT.into()),
        };
        open_at(env, &root, how)
    }

    fn settle(&self) {
        if let System::Simulated(world, staleness) = self {
            world.advance(*staleness);
        }
    }
}

fn open_at(env: Env, root: &Path, how: &Opening) -> Store {
    Arc::new(LocalStore::open(env, root, how.local("model")).unwrap())
}

struct Run {
    rng: Seeded,
    system: System,
    processes: Vec<Process>,
    visible: State,
    transactions: BTreeMap<Id, Transaction>,
    /// Versions recorded during the run, with their visible state.
    versions: Vec<(String, State)>,
    /// Fields opened during the run, with their contents.
    held: Vec<(Field, Vec<u8>)>,
    next: i32,
}

impl Run {
    fn new(system: System, seed: u64) -> Run {
        let open = |i| Process { store: system.open(i, &Opening::default()), sessions: BTreeMap::new() };
        let processes = (0..4).map(open).collect();
        Run {
            rng: seeded(seed),
            system,
            processes,
            visible: State::new(),
            transactions: BTreeMap::new(),
            versions: Vec::new(),
            held: Vec::new(),
            next: 1,
        }
    }

    /// One call, or one flush with its checks.
    fn step(&mut self) {
        let who = self.rng.below(4) as usize;
        // Few transactions at once, so that processes meet in them; now and then a decided one.
        let open = self.undecided();
        let all: Vec<Id> = self.transactions.keys().copied().collect();
        let session = match self.rng.below(20) {
            0..=8 if !open.is_empty() => Some(*self.rng.pick(&open)),
            9 if !all.is_empty() => Some(*self.rng.pick(&all)),
            _ => None,
        };
        match self.rng.below(21) {
            20 => self.remove(who, session),
            0..=10 => self.archive(who, session),
            11..=15 => self.flush(who, session),
            16 => {
                self.processes[who].store.discard(&Session::from(session)).unwrap();
                self.processes[who].sessions.remove(&session);
            }
            17 if open.len() < 2 => {
                let id = self.processes[who].store.begin().unwrap();
                self.transactions.insert(id, Transaction::default());
            }
            18 => {
                if let Some(id) = session {
                    self.decide(who, id);
                }
            }
            17 => {}
            _ => {
                // A process ends without closing; another takes its place.
                let store = self.system.open(who, &Opening::default());
                self.processes[who] = Process { store, sessions: BTreeMap::new() };
            }
        }
    }

    fn remove(&mut self, who: usize, session: Option<Id>) {
        let options = RemoveOptions { session: Session::from(session) };
        let keys: Vec<&'static str> = ARRAYS.iter().chain(&OPAQUE).copied().collect();
        let key = *self.rng.pick(&keys);
        let store = &self.processes[who].store;
        let change = match self.visible.get(key) {
            Some((_, number)) if self.rng.below(2) == 0 => {
                let newest = field(store, key, None).unwrap();
                store.remove_fields(&[newest], &options).unwrap();
                Change::RemoveVersion(*number)
            }
            // If there is nothing to remove, nothing is written.
            _ if store.remove(&Request::parse(key).unwrap(), &options).unwrap() == 0 => return,
            _ => Change::Remove,
        };
        let number = self.next;
        self.next += 1;
        self.processes[who].sessions.entry(session).or_default().push((key, change, number));
    }

    fn undecided(&self) -> Vec<Id> {
        self.transactions.iter().filter(|(_, t)| t.decided.is_none()).map(|(id, _)| *id).collect()
    }

    fn archive(&mut self, who: usize, session: Option<Id>) {
        let value = self.next;
        self.next += 1;
        let start = [self.rng.below(SHAPE[0]), self.rng.below(SHAPE[1])];
        let count = [1 + self.rng.below(SHAPE[0] - start[0]), 1 + self.rng.below(SHAPE[1] - start[1])];
        let (key, change) = match self.rng.below(12) {
            0..=6 => (*self.rng.pick(&ARRAYS), Change::Piece(start, count, value)),
            7 => (*self.rng.pick(&ARRAYS), Change::Whole(value)),
            8 => (*self.rng.pick(&ARRAYS), Change::Create(-value)),
            9 if self.rng.below(4) == 0 => (*self.rng.pick(&OPAQUE), Change::Bytes(value as u64, 1_200_000)),
            _ => {
                let length = self.rng.below(2000) as usize;
                (*self.rng.pick(&OPAQUE), Change::Bytes(value as u64, length))
            }
        };
        let compression = match self.rng.below(3) {
            0 => Some(Compression::Zstd(1)),
            _ => None,
        };
        let chunks = (self.rng.below(3) == 0).then(|| vec![1 + self.rng.below(5), 1 + self.rng.below(5)]);
        let share = self.rng.below(2) == 0;
        let mut options = ArchiveOptions {
            session: Session::from(session),
            compression,
            chunks,
            share,
            ..ArchiveOptions::default()
        };
        let store = &self.processes[who].store;
        match &change {
            Change::Bytes(seed, length) => {
                options.chunks = None;
                archive(store, key, Value::Bytes(&pattern(*length, *seed)), &options).unwrap();
            }
            Change::Whole(value) => {
                let data = value.to_ne_bytes().repeat((SHAPE[0] * SHAPE[1]) as usize);
                let value = Value::Array { data: &data, dtype: DType::I4, shape: &SHAPE };
                archive(store, key, value, &options).unwrap();
            }
            Change::Piece(start, count, value) => {
                let data = value.to_ne_bytes().repeat((count[0] * count[1]) as usize);
                let value = Value::Piece { data: &data, dtype: DType::I4, start, count, shape: &SHAPE };
                archive(store, key, value, &options).unwrap();
            }
            Change::Remove | Change::RemoveVersion(_) => unreachable!(),
            Change::Create(fill) => {
                let fill = fill.to_ne_bytes();
                let spec = FieldSpec { dtype: DType::I4, shape: &SHAPE, fill: Some(&fill), chunks: None };
                let pairs = pairs(key);
                let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
                store.create_field(&pairs, &spec, &options).unwrap();
            }
        }
        self.processes[who].sessions.entry(session).or_default().push((key, change, value));
    }

    fn flush(&mut self, who: usize, session: Option<Id>) {
        let process = &mut self.processes[who];
        let outcome = process.store.flush(&Session::from(session));
        let batch = process.sessions.remove(&session).unwrap_or_default();
        match session {
            None => {
                outcome.unwrap();
                apply(&mut self.visible, &batch);
            }
            Some(id) => {
                let transaction = self.transactions.get_mut(&id).unwrap();
                if transaction.decided.is_some() && !batch.is_empty() {
                    error(outcome, ErrorKind::Conflict);
                    process.store.discard(&Session::from(session)).unwrap();
                } else {
                    outcome.unwrap();
                    if !batch.is_empty() {
                        transaction.prepared.push(batch);
                    }
                }
            }
        }
        self.check();
    }

    fn decide(&mut self, who: usize, id: Id) {
        let commit = self.rng.below(3) > 0;
        let process = &mut self.processes[who];
        let own = process.sessions.remove(&Some(id)).filter(|batch| !batch.is_empty());
        let transaction = self.transactions.get_mut(&id).unwrap();
        let outcome = process.store.decide(id, commit, &Session::default());
        match transaction.decided {
            Some(_) if own.is_some() && commit => {
                error(outcome, ErrorKind::Conflict);
                process.store.discard(&Session::from(id)).unwrap();
            }
            Some(decided) if decided != commit => drop(error(outcome, ErrorKind::Conflict)),
            Some(_) => outcome.unwrap(),
            None => {
                outcome.unwrap();
                transaction.decided = Some(commit);
                transaction.prepared.extend(own.filter(|_| commit));
                if commit {
                    transaction.prepared.iter().for_each(|batch| apply(&mut self.visible, batch));
                }
            }
        }
        self.check();
    }

    /// Compares the view of one process, in one of its ways of looking, with the model.
    fn check(&mut self) {
        self.system.settle();
        let who = self.rng.below(5) as usize;
        let store = match self.processes.get(who) {
            Some(process) => process.store.clone(),
            None => self.system.open(who, &Opening::default()),
        };
        compare(&store, &self.visible, None, &mut self.rng);
        let undecided = self.undecided();
        if !undecided.is_empty() {
            let id = *self.rng.pick(&undecided);
            let mut state = self.visible.clone();
            self.transactions[&id].prepared.iter().for_each(|batch| apply(&mut state, batch));
            compare(&store, &state, Some(id), &mut self.rng);
        }
        if self.rng.below(4) == 0 && !self.visible.is_empty() {
            self.versions.push((store.version().unwrap(), self.visible.clone()));
            let keys: Vec<&str> = self.visible.keys().copied().collect();
            let key = *self.rng.pick(&keys);
            let held = field(&store, key, None).unwrap().lenient();
            self.held.push((held, bytes(&self.visible[key].0)));
        }
    }

    fn finish(mut self) {
        for (held, expected) in &self.held {
            assert!(held.read().unwrap() == *expected, "an opened field changed");
        }
        for (version, state) in std::mem::take(&mut self.versions) {
            let old = self.system.open(0, &Opening { at: Some(version), ..Opening::default() });
            compare(&old, &state, None, &mut self.rng);
        }
        let report = self.processes[0].store.verify(&Request::new()).unwrap();
        assert!(report.ok(), "{:?}", report.damaged);
        let status = self.processes[0].store.status().unwrap();
        let open =
            self.transactions.values().filter(|t| t.decided.is_none() && !t.prepared.is_empty()).count();
        assert_eq!((status.transactions.len(), status.problems), (open, Vec::new()));
    }
}

fn compare(store: &Store, state: &State, transaction: Option<Id>, rng: &mut Random) {
    let options = ListOptions { session: Session::from(transaction), ..ListOptions::default() };
    let list: Vec<ListEntry> = store.list(&Request::new(), &options).unwrap().map(Result::unwrap).collect();
    assert_eq!(list.len(), state.len(), "fields listed");
    let lenient = RetrieveOptions { strict: false, session: Session::from(transaction) };
    let fields = store.retrieve(&Request::new(), &lenient).unwrap();
    assert_eq!(fields.len(), state.len(), "fields retrieved");
    let mut all = BTreeMap::new();
    for field in fields.iter().map(Result::unwrap) {
        all.insert(field.key().unwrap().to_string(), field.read().unwrap());
    }
    for (key, (content, _)) in state {
        let field = field(store, key, transaction).unwrap();
        let name = field.key().unwrap().to_string();
        let entry = list.iter().find(|e| e.key.to_string() == name).expect("a field is listed");
        let expected = bytes(content);
        let complete = match content {
            Content::Array(array, _) => array.iter().all(Option::is_some),
            Content::Bytes(_) => true,
        };
        assert!(all[&name] == expected, "{key} differs when retrieved");
        assert_eq!((entry.complete, entry.nbytes), (complete, expected.len() as u64), "{key}");
        assert!(field.clone().lenient().read().unwrap() == expected, "{key} reads otherwise");
        if complete {
            assert!(field.read().unwrap() == expected, "{key}");
        } else {
            error(field.read(), ErrorKind::NotFound);
        }
        let Content::Array(array, fill) = content else { continue };
        let start = [rng.below(SHAPE[0]), rng.below(SHAPE[1])];
        let count = [1 + rng.below(SHAPE[0] - start[0]), 1 + rng.below(SHAPE[1] - start[1])];
        let region = IndexBox::unbounded(start.to_vec(), count.to_vec()).unwrap();
        let rows = (start[0]..start[0] + count[0])
            .flat_map(|r| (start[1]..start[1] + count[1]).map(move |c| (r * SHAPE[1] + c) as usize));
        let cells: Vec<Option<i32>> = rows.map(|i| array[i]).collect();
        let part = field.read_box(Some(&region));
        if cells.iter().all(Option::is_some) {
            part.unwrap();
        } else {
            error(part, ErrorKind::NotFound);
        }
        let filled: Vec<u8> = cells.iter().flat_map(|x| x.unwrap_or(*fill).to_ne_bytes()).collect();
        assert!(field.lenient().read_box(Some(&region)).unwrap() == filled, "{key}: box [{region}]");
    }
}

fn run_seeds(runs: u64, steps: usize, system: impl Fn(u64) -> System) {
    for seed in seeds(runs) {
        let mut run = Run::new(system(seed), seed);
        (0..steps).for_each(|_| run.step());
        run.finish();
    }
}

#[test]
fn random_work_on_a_real_disk() {
    run_seeds(6, 150, |_| System::Posix(tempfile::tempdir().unwrap()));
}

#[test]
fn random_work_on_a_shared_disk() {
    run_seeds(25, 150, |seed| {
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        System::Simulated(world, 0)
    });
}

#[test]
fn random_work_on_a_weak_disk_with_wrong_clocks() {
    run_seeds(25, 150, |seed| {
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        let staleness = (1 + seed % 30) * SECOND;
        world.weak(staleness);
        world.set_clock_offset("a", -HOUR);
        world.set_clock_offset("b", if seed % 2 == 0 { HOUR } else { TO_2099 });
        System::Simulated(world, staleness)
    });
}
