//! Threads of one handle archive, keep records as the catalog and the graph do, flush and commit, in an order that a
//! seed draws and on a disk that fails. Afterwards a fresh handle sees everything that was acknowledged, and every
//! loss was reported to its owner.
//!
//! `FIELDSTONE_CRASH=full` tries 10,000 seeds, otherwise 300; `FIELDSTONE_SEED` one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{Fault, OpKind, SimWorld};
use fieldstone_core::sync::{Mutex, schedule, thread};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::log::SideRecord;
use fieldstone_format::log::kinds::TAG;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_testkit::random::{Random, seeds};
use fieldstone_testkit::require::full;

use crate::common::{Store, get, open};

/// More than fits in a frame: it goes through the data log.
const LARGE: usize = (1 << 20) + 5;
/// Calls that the disk may refuse, and the errors.
const FAULTS: &[(OpKind, Fault)] = &[
    (OpKind::SyncData, Fault::Io),
    (OpKind::SyncData, Fault::IoPartial),
    (OpKind::Write, Fault::NoSpace),
    (OpKind::Write, Fault::Short),
    (OpKind::Create, Fault::NoSpace),
    (OpKind::SyncDir, Fault::Io),
    (OpKind::Link, Fault::Io),
    (OpKind::ListDir, Fault::Io),
];

/// The kinds of data that a thread gives to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Small,
    Large,
    Piece,
    /// A record that waits in a buffer until the next flush.
    Kept,
}

/// One piece of data: its kind, the thread that gives it, and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    kind: Kind,
    owner: u64,
    number: u64,
}

impl Thing {
    fn step(self) -> u64 {
        1000 * self.owner + self.number
    }

    fn bytes(self) -> Vec<u8> {
        let len = if self.kind == Kind::Large { LARGE } else { 16 };
        (0..len as u64).map(|i| (i * 31 + self.step()) as u8).collect()
    }

    fn key(self) -> (&'static str, String) {
        (if self.kind == Kind::Piece { "p" } else { "v" }, self.step().to_string())
    }

    fn give(self, scene: &Scene, session: Option<Id>) -> Result<()> {
        let options = ArchiveOptions { session: Session::from(session), ..ArchiveOptions::default() };
        let (bytes, (variable, step)) = (self.bytes(), self.key());
        let key = [("run", "a"), ("variable", variable), ("step", step.as_str())];
        match self.kind {
            Kind::Small | Kind::Large => scene.store.archive(&key, Value::Bytes(&bytes), &options),
            Kind::Piece => {
                let (data, dtype) = (&bytes[..], DType::U1);
                let value = Value::Piece { data, dtype, start: &[0], count: &[16], shape: &[16] };
                scene.store.archive(&key, value, &options)
            }
            Kind::Kept => {
                scene.keep(SideRecord { kind: 9, bytes: self.step().to_le_bytes()[..].into() }, session);
                Ok(())
            }
        }
    }
}

/// The events of a thread, in order.
#[derive(Debug)]
enum Event {
    Gave(Thing, Option<Id>),
    Flushed(Option<Id>),
    Committed(Id),
    Aborted(Id),
    /// A call that should have committed this transaction failed.
    Undecided(Id, Error),
    Failed(#[allow(dead_code, reason = "shown when a seed fails")] Error),
}

/// A participant's records for a session, and the session's number of losses when they arrived.
#[derive(Debug, Default)]
struct Buffer {
    losses: u64,
    records: Vec<SideRecord>,
}

/// The shared state of a run's threads.
struct Scene {
    store: Store,
    /// Buffers of records for a flush, as in the catalog and the graph.
    buffers: Mutex<HashMap<Option<Id>, Buffer>>,
    /// A transaction that others may join.
    joined: Mutex<Option<Id>>,
}

impl Scene {
    fn keep(&self, record: SideRecord, session: Option<Id>) {
        let losses = self.store.journal().unflushed().keep(1, &Session::from(session));
        let mut buffers = self.buffers.lock();
        let buffer = buffers.entry(session).or_default();
        if buffer.losses != losses {
            self.give(std::mem::replace(buffer, Buffer { losses, ..Buffer::default() }), session);
        }
        buffer.records.push(record);
    }

    fn give(&self, buffer: Buffer, session: Option<Id>) {
        let Buffer { losses, records } = buffer;
        let rows = records.len() as u64;
        if rows > 0 {
            self.store.journal().unflushed().add_kept(records, rows, losses, &Session::from(session));
        }
    }

    fn hand_over(&self, session: Option<Id>) {
        let mut buffers = self.buffers.lock();
        if let Some(buffer) = buffers.remove(&session) {
            self.give(buffer, session);
        }
    }

    fn flush(&self, session: Option<Id>) -> Result<()> {
        self.hand_over(session);
        self.store.flush(&Session::from(session))
    }

    fn decide(&self, id: Id, commit: bool) -> Result<()> {
        match commit {
            true => self.flush(Some(id))?,
            false => drop(self.buffers.lock().remove(&Some(id))),
        }
        self.store.decide(id, commit, &Session::default())
    }

    fn close(&self) -> Result<()> {
        self.hand_over(None);
        self.store.close(&Session::default())
    }
}

/// A thread that gives data, with its diary.
struct Worker<'a> {
    scene: &'a Scene,
    random: Random,
    owner: u64,
    given: u64,
    diary: Vec<Event>,
}

impl Worker<'_> {
    fn note(&mut self, outcome: Result<()>, event: impl FnOnce() -> Event) {
        self.diary.push(match outcome {
            Ok(()) => event(),
            Err(error) => Event::Failed(error),
        });
    }

    fn give(&mut self, session: Option<Id>) {
        let mut kinds = vec![Kind::Small, Kind::Small, Kind::Piece, Kind::Kept, Kind::Kept];
        if self.random.one_in(3) {
            kinds.push(Kind::Large);
        }
        self.given += 1;
        let thing = Thing { kind: *self.random.pick(&kinds), owner: self.owner, number: self.given };
        self.note(thing.give(self.scene, session), || Event::Gave(thing, session));
    }

    fn flush(&mut self, session: Option<Id>) {
        self.note(self.scene.flush(session), || Event::Flushed(session));
    }

    /// A transaction of this thread, which others may join during it.
    fn transaction(&mut self) {
        let Ok(id) = self.scene.store.begin() else { return };
        if self.random.coin() {
            *self.scene.joined.lock() = Some(id);
        }
        for _ in 0..=self.random.below(2) {
            self.give(Some(id));
            if self.random.coin() {
                self.flush(Some(id));
            }
        }
        let commit = self.random.below(4) > 0;
        self.diary.push(match self.scene.decide(id, commit) {
            Ok(()) if commit => Event::Committed(id),
            Ok(()) => Event::Aborted(id),
            Err(error) => Event::Undecided(id, error),
        });
    }

    fn join(&mut self) {
        let Some(id) = *self.scene.joined.lock() else { return };
        self.give(Some(id));
        self.flush(Some(id));
    }

    fn work(mut self) -> Vec<Event> {
        for _ in 0..1 + self.random.below(6) {
            match self.random.below(10) {
                0..4 => self.give(None),
                4..7 => self.flush(None),
                7 => self.transaction(),
                8 => self.join(),
                _ => {
                    let heard = self.scene.store.check_lost(&Session::default()).err();
                    self.diary.extend(heard.map(Event::Failed));
                }
            }
        }
        self.diary
    }
}

/// The events of the threads, and the result of the close.
struct Outcome {
    diaries: Vec<Vec<Event>>,
    closed: Result<()>,
}

/// Runs the threads on one handle. A timer flushes now and then for all of them, and keeps the errors that it gets.
fn threads(world: &SimWorld, seed: u64) -> Outcome {
    let mut random = Random::derived(seed, 1);
    let scene = Scene { store: open(world, "a"), buffers: Mutex::default(), joined: Mutex::default() };
    if random.coin() {
        scene.keep(SideRecord { kind: 9, bytes: [0; 8][..].into() }, None);
        scene.flush(None).unwrap();
    }
    for _ in 0..random.below(3) {
        let (kind, fault) = *random.pick(FAULTS);
        world.set_probability(kind, fault, *random.pick(&[0.05, 0.2, 0.6]));
    }
    let worker = |owner| Worker {
        scene: &scene,
        random: Random::derived(seed, 10 + owner),
        owner,
        given: 0,
        diary: Vec::new(),
    };
    let workers: Vec<Worker<'_>> = (1..2 + random.below(4)).map(worker).collect();
    let ticks = random.below(4);
    let diaries = thread::scope(|scope| {
        let timer = scope.spawn(|| (0..ticks).for_each(|_| drop(scene.flush(None))));
        let workers: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || worker.work())).collect();
        let diaries = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        timer.join().unwrap();
        diaries
    });
    if random.coin() {
        world.clear_faults();
    }
    Outcome { diaries, closed: scene.close() }
}

/// The data that must be visible, the data that must not, and sets that are visible together or not at all.
#[derive(Debug, Default)]
struct Model {
    there: BTreeSet<Thing>,
    absent: BTreeSet<Thing>,
    together: Vec<BTreeSet<Thing>>,
}

impl Model {
    fn of(outcome: &Outcome) -> Model {
        let mut model = Model::default();
        let mut prepared: BTreeMap<Id, BTreeSet<Thing>> = BTreeMap::new();
        let mut unsure: BTreeSet<Id> = BTreeSet::new();
        for diary in &outcome.diaries {
            let mut waiting: BTreeMap<Option<Id>, BTreeSet<Thing>> = BTreeMap::new();
            for event in diary {
                match event {
                    Event::Gave(thing, session) => drop(waiting.entry(*session).or_default().insert(*thing)),
                    Event::Flushed(None) => model.there.extend(waiting.remove(&None).unwrap_or_default()),
                    Event::Flushed(Some(id)) => {
                        let flushed = waiting.remove(&Some(*id)).unwrap_or_default();
                        prepared.entry(*id).or_default().extend(flushed);
                    }
                    Event::Committed(id) => {
                        let committed = waiting.remove(&Some(*id)).unwrap_or_default();
                        prepared.entry(*id).or_default().extend(committed);
                    }
                    // The owner got an error, which may concern anything that he gave before.
                    Event::Failed(_) | Event::Undecided(..) => waiting.clear(),
                    Event::Aborted(_) => {}
                }
                // A transaction that raced is committed, without the data that came late.
                if let Event::Undecided(id, error) = event
                    && error.kind() == ErrorKind::Conflict
                {
                    unsure.insert(*id);
                }
            }
            // A thread that neither flushed nor got an error relies on the close.
            if outcome.closed.is_ok() {
                model.there.extend(waiting.remove(&None).unwrap_or_default());
            }
        }
        let events = || outcome.diaries.iter().flatten();
        for (id, things) in prepared {
            if events().any(|event| matches!(event, Event::Committed(own) if *own == id)) {
                model.there.extend(things);
            } else if events().any(|event| matches!(event, Event::Aborted(own) if *own == id)) {
                model.absent.extend(things);
            } else if !unsure.contains(&id) {
                model.together.push(things);
            }
        }
        model
    }

    /// Compares the model with the view of a fresh process.
    fn check(&self, world: &SimWorld) -> std::result::Result<(), String> {
        let seen = self.seen(&open(world, "b")).map_err(|error| format!("it cannot be read: {error}"))?;
        let lost: Vec<_> = self.there.difference(&seen).collect();
        if !lost.is_empty() {
            return Err(format!("acknowledged, or never reported, and lost: {lost:?}"));
        }
        if let Some(thing) = self.absent.intersection(&seen).next() {
            return Err(format!("{thing:?} is visible, and was aborted"));
        }
        for things in &self.together {
            let found = things.intersection(&seen).count();
            if found != 0 && found != things.len() {
                return Err(format!("{found} of the {} things of a transaction", things.len()));
            }
        }
        Ok(())
    }

    /// The data of the model that are visible, with the right bytes.
    fn seen(&self, store: &Store) -> Result<BTreeSet<Thing>> {
        let records = records(store)?;
        let mut seen = BTreeSet::new();
        for thing in self.all() {
            let (variable, step) = thing.key();
            let key = [("run", "a"), ("variable", variable), ("step", step.as_str())];
            let there = match thing.kind {
                Kind::Kept => records.contains(&thing.step()),
                _ => match store.get(&key, &ReadOptions::default()) {
                    Err(error) if error.kind() == ErrorKind::NotFound => false,
                    field => {
                        assert_eq!(field?.read()?, thing.bytes(), "{thing:?}");
                        true
                    }
                },
            };
            if there {
                seen.insert(thing);
            }
        }
        Ok(seen)
    }

    fn all(&self) -> impl Iterator<Item = Thing> {
        let together = self.together.iter().flatten();
        self.there.iter().chain(&self.absent).chain(together).copied()
    }
}

/// Numbers of the side records that everyone sees.
fn records(store: &Store) -> Result<BTreeSet<u64>> {
    let feed = store.journal().looks().feed()?;
    let decisions = feed.decisions();
    let mut found = BTreeSet::new();
    for (writer, _) in feed.logs() {
        for commit in feed.commits(writer, 0)? {
            let commit = commit?;
            let decision = |id| decisions.iter().find(|decision| decision.transaction == id);
            let visible = |id| decision(id)?.visible(TAG, writer, commit.sequence);
            if commit.transaction.is_none_or(|id| visible(id).is_some()) {
                let numbers = commit.side.iter().filter_map(|record| record.bytes[..].try_into().ok());
                found.extend(numbers.map(u64::from_le_bytes));
            }
        }
    }
    Ok(found)
}

/// Runs one schedule; returns the events of its threads, and a checksum of their order.
fn one(seed: u64) -> (usize, u64) {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    let run = schedule::run(seed, || threads(&world, seed));
    let again =
        format!("seed {seed}: FIELDSTONE_SEED={seed} cargo test -p fieldstone-store --test all schedules::");
    let outcome = run.outcome.unwrap_or_else(|why| panic!("{why}; {again}"));
    world.clear_faults();
    let model = Model::of(&outcome);
    let mut worlds = vec![(world.fork_image(), "")];
    if seed.is_multiple_of(4) {
        worlds.push((world.power_cut(seed), " after a power cut"));
    }
    for (world, when) in worlds {
        if let Err(why) = model.check(&world) {
            for (owner, diary) in outcome.diaries.iter().enumerate() {
                eprintln!("{}: {diary:#?}", owner + 1);
            }
            panic!("{why}{when}; the close: {:?}; {again}", outcome.closed);
        }
    }
    (model.there.len(), run.digest)
}

#[test]
fn what_a_flush_acknowledges_is_there_and_what_is_lost_is_told() {
    let (mut acknowledged, mut runs) = (0, 0);
    for seed in seeds(if full() { 10_000 } else { 300 }) {
        acknowledged += one(seed).0;
        runs += 1;
    }
    println!("{acknowledged} things acknowledged in {runs} schedules");
    assert!(runs == 1 || acknowledged > runs, "{acknowledged} things acknowledged in {runs} schedules");
}

#[test]
fn a_seed_is_one_schedule() {
    for seed in seeds(5) {
        assert_eq!(one(seed), one(seed), "seed {seed}");
    }
}

/// A decision is prepared and then written: a thread whose flush returns between the two relies on it.
#[test]
fn a_flush_that_returns_beside_the_commit_of_its_transaction_is_in_it() {
    for seed in seeds(if full() { 3_000 } else { 200 }) {
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        let run = schedule::run(seed, || {
            let store = open(&world, "a");
            let put = |step: u64, id: Id| {
                let options = ArchiveOptions { session: Session::from(id), ..ArchiveOptions::default() };
                let step = step.to_string();
                store.archive(
                    &[("run", "a"), ("variable", "v"), ("step", &step)],
                    Value::Bytes(b"x"),
                    &options,
                )?;
                store.flush(&Session::from(id))
            };
            let (id, other) = (store.begin()?, store.begin()?);
            put(0, id)?;
            thread::scope(|scope| {
                let beside =
                    scope.spawn(|| (1..4).filter(|step| put(*step, id).is_ok()).collect::<Vec<u64>>());
                // After its commit, a commit of another transaction no longer lists this one as prepared.
                let third = scope
                    .spawn(|| put(10, other).and_then(|()| store.decide(other, true, &Session::default())));
                let committed = store.decide(id, true, &Session::default());
                third.join().unwrap()?;
                committed.map(|()| beside.join().unwrap())
            })
        });
        let flushed = run.outcome.unwrap().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let store = open(&world, "b");
        for step in flushed {
            let found = get(&store, &format!("run=a,variable=v,step={step}"));
            assert!(found.is_ok(), "seed {seed}, step {step}: {found:?}");
        }
    }
}
