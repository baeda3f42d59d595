//! Helpers for the fault tests: opening stores in a simulated world, a workload that writes in every way, and a plain
//! model of the visible state.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Session;
use fieldstone_journal::feed::TransactionState;
use fieldstone_store::api::*;
use fieldstone_store::local::{LocalOptions, LocalStore};
use fieldstone_testkit::random::Seeded;
pub use fieldstone_testkit::{require::full, seeded};

/// The store's path; making the store also makes two folders above it.
pub const ROOT: &str = "/scratch/project/store";

/// Opens the store at [`ROOT`] for writing.
pub fn open(env: &Env) -> Result<LocalStore> {
    let options = LocalOptions { url: ROOT.into(), writable: true, ..LocalOptions::default() };
    LocalStore::open(env.clone(), Path::new(ROOT), options)
}

/// Visible fields by the text of their key: their bytes, with holes filled. Also the visible side records, each with
/// its number of occurrences.
pub type State = BTreeMap<String, Vec<u8>>;

/// The kind of side records here, which decisions use.
pub const SIDE: u32 = 1 << 5;

/// Everything that a store shows, read back completely; the results of `list` and `retrieve` must agree.
pub fn visible(store: &LocalStore) -> Result<State> {
    let mut state = State::new();
    for field in store
        .retrieve(&Request::new(), &RetrieveOptions { strict: false, session: Session::default() })?
        .iter()
    {
        let field = field?;
        state.insert(field.key()?.to_string(), field.read()?);
    }
    let listed: Vec<String> = store
        .list(&Request::new(), &ListOptions::default())?
        .map(|entry| entry.map(|e| e.key.to_string()))
        .collect::<Result<_>>()?;
    assert!(listed.iter().eq(state.keys()), "list {listed:?} and retrieve {:?} differ", state.keys());
    for record in side_records(store)? {
        state.entry(record).or_insert_with(|| vec![0])[0] += 1;
    }
    Ok(state)
}

/// The side records that everyone sees, as texts.
fn side_records(store: &LocalStore) -> Result<Vec<String>> {
    let feed = store.journal().looks().feed()?;
    let decisions: BTreeMap<Id, TransactionState> =
        feed.decisions().into_iter().map(|decision| (decision.transaction, decision)).collect();
    let mut records = Vec::new();
    for (writer, _) in feed.logs() {
        for commit in feed.commits(writer, 0)? {
            let commit = commit?;
            let decided = |id| decisions.get(&id)?.visible(SIDE, writer, commit.sequence);
            if commit.transaction.is_none_or(|id| decided(id).is_some()) {
                let text = |record: SideRecord| String::from_utf8(record.bytes.to_vec()).unwrap();
                records.extend(commit.side.into_iter().map(text));
            }
        }
    }
    Ok(records)
}

/// A short text for a state in a message.
pub fn describe(state: &State) -> Vec<String> {
    let sum = |bytes: &Vec<u8>| fieldstone_format::crc(bytes);
    state.iter().map(|(key, bytes)| format!("{key} {} bytes {:08x}", bytes.len(), sum(bytes))).collect()
}

/// The states that may be visible: `before` was certainly visible; `after` is the state that the current call would
/// make.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub before: State,
    pub after: State,
    /// The number of publishing calls that have returned.
    pub acknowledged: usize,
}

impl Model {
    /// Whether a store may show this state, possibly with a call in progress.
    pub fn allows(&self, seen: &State) -> bool {
        *seen == self.before || *seen == self.after
    }

    fn acknowledge(&mut self) {
        self.before = self.after.clone();
        self.acknowledged += 1;
    }
}

/// The steps of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Small,
    Large,
    Overwrite,
    Pieces,
    Created,
    Commit,
    Abort,
    Kinds,
}

/// All kinds of steps.
pub const STEPS: [Step; 8] = [
    Step::Small,
    Step::Large,
    Step::Overwrite,
    Step::Pieces,
    Step::Created,
    Step::Commit,
    Step::Abort,
    Step::Kinds,
];

/// A writer at work: its actions, and the state that must be visible.
pub struct Work<'a> {
    pub store: &'a LocalStore,
    pub model: &'a mut Model,
    random: Seeded,
    /// The run of its fields.
    run: String,
    next: u64,
}

/// Elements in the array that pieces fill.
const ELEMENTS: u64 = 24;

impl<'a> Work<'a> {
    pub fn new(store: &'a LocalStore, model: &'a mut Model, run: &str, seed: u64) -> Work<'a> {
        Work { store, model, random: seeded(seed), run: run.to_owned(), next: 0 }
    }

    /// All steps in an order drawn from the seed, with a small or a large one first.
    pub fn all(&mut self) -> Result<()> {
        let mut steps = STEPS.to_vec();
        for i in (1..steps.len()).rev() {
            steps.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        steps.iter().try_for_each(|&step| self.step(step))
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.random.next_u64().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    fn key(&self, variable: &str, step: u64) -> [(&'static str, String); 3] {
        [("run", self.run.clone()), ("variable", variable.to_owned()), ("step", step.to_string())]
    }

    fn text(&self, variable: &str, step: u64) -> String {
        format!("{{run={}}}{{variable={variable}}}{{step={step}}}", self.run)
    }

    fn put(&mut self, variable: &str, step: u64, length: usize, transaction: Option<Id>) -> Result<()> {
        let bytes = self.bytes(length);
        let key = self.key(variable, step);
        let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
        self.model.after.insert(self.text(variable, step), bytes.clone());
        self.store.archive(&pairs, Value::Bytes(&bytes), &options)
    }

    /// Adds a side record to the fields archived until the next flush; returns its text.
    fn side(&mut self, transaction: Option<Id>) -> Result<String> {
        let text = format!("{{run={}}} says {:x}", self.run, self.random.next_u64());
        let record = SideRecord { kind: 9, bytes: text.as_bytes().into() };
        self.model.after.insert(text.clone(), vec![1]);
        self.store.journal().unflushed().add(vec![record], &Session::from(transaction))?;
        Ok(text)
    }

    /// Flushes fields and a side record.
    fn flush(&mut self) -> Result<()> {
        self.side(None)?;
        self.store.flush(&Session::default())?;
        self.model.acknowledge();
        Ok(())
    }

    /// Runs one step, and flushes or decides its fields at the end.
    pub fn step(&mut self, step: Step) -> Result<()> {
        self.next += 1;
        let n = self.next;
        match step {
            Step::Small => {
                for i in 0..1 + self.random.below(4) {
                    let length = self.random.below(700) as usize;
                    self.put("small", 10 * n + i, length, None)?;
                }
                self.flush()
            }
            Step::Large => {
                let length = INLINE_MAX - 100;
                self.put("large", n, 3000, None)?;
                self.put("large", n + 1, length, None)?;
                self.flush()?;
                // The second one continues in the same data log.
                self.put("large", n, length, None)?;
                self.put("large", n + 2, 5000, None)?;
                self.flush()
            }
            Step::Overwrite => {
                for round in 0..3 {
                    let length = 300 + 10 * round;
                    self.put("again", 1, length, None)?;
                    self.put("again", 2, 2 * length, None)?;
                    self.flush()?;
                }
                Ok(())
            }
            Step::Pieces => {
                self.piece(0, 8)?;
                self.piece(8, 8)?;
                self.flush()?;
                self.piece(4, 8)?;
                self.flush()?;
                self.piece(12, 12)?;
                self.flush()
            }
            Step::Created => {
                let key = self.key("created", n);
                let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (*k, v.as_str())).collect();
                let fill = 7u64.to_le_bytes();
                let spec = FieldSpec { dtype: u64_type(), shape: &[4], fill: Some(&fill), chunks: None };
                self.model.after.insert(self.text("created", n), fill.repeat(4));
                self.store.create_field(&pairs, &spec, &ArchiveOptions::default())?;
                self.flush()
            }
            Step::Commit | Step::Abort => self.transaction(n, step == Step::Commit),
            Step::Kinds => self.kinds(n),
        }
    }

    /// A piece of this run's array, whose unwritten elements are 0.
    fn piece(&mut self, start: u64, count: u64) -> Result<()> {
        let data = self.bytes(8 * count as usize);
        let text = self.text("array", 1);
        let whole = self.model.after.entry(text).or_insert_with(|| vec![0; 8 * ELEMENTS as usize]);
        whole[8 * start as usize..8 * (start + count) as usize].copy_from_slice(&data);
        let key = self.key("array", 1);
        let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let value = Value::Piece {
            data: &data,
            dtype: u64_type(),
            start: &[start],
            count: &[count],
            shape: &[ELEMENTS],
        };
        self.store.archive(&pairs, value, &ArchiveOptions::default())
    }

    fn transaction(&mut self, n: u64, commit: bool) -> Result<()> {
        let id = self.store.begin()?;
        let old = self.model.after.clone();
        self.put("tx", n, 100, Some(id))?;
        self.put("tx", n + 1, 200, Some(id))?;
        self.side(Some(id))?;
        let new = std::mem::replace(&mut self.model.after, old.clone());
        // Prepared, and not yet visible.
        self.store.flush(&Session::from(id))?;
        self.put("tx", n + 2, 50, Some(id))?;
        let last = self.text("tx", n + 2);
        let bytes = self.model.after[&last].clone();
        let side = self.side(Some(id))?;
        self.model.after = old;
        self.store.flush(&Session::from(id))?;
        if commit {
            self.model.after = new;
            self.model.after.insert(last, bytes);
            self.model.after.insert(side, vec![1]);
        }
        self.store.decide(id, commit, &Session::default())?;
        self.model.acknowledge();
        Ok(())
    }

    /// A transaction that becomes visible kind by kind, and then invisible again.
    fn kinds(&mut self, n: u64) -> Result<()> {
        let id = self.store.begin()?;
        let old = self.model.after.clone();
        self.put("kinds", n, 70, Some(id))?;
        let field = self.text("kinds", n);
        let bytes = self.model.after[&field].clone();
        let side = self.side(Some(id))?;
        self.model.after = old;
        self.store.flush(&Session::from(id))?;
        let mut decide = |on: u32, off: u32, commit: bool, fields: bool, sides: bool| {
            let after = &mut self.model.after;
            after.remove(&field);
            after.remove(&side);
            if fields {
                after.insert(field.clone(), bytes.clone());
            }
            if sides {
                after.insert(side.clone(), vec![1]);
            }
            match commit {
                true => self.store.decide(id, true, &Session::default())?,
                false => self.store.set_active_kinds(id, on, off, &Session::default())?,
            }
            self.model.acknowledge();
            Result::Ok(())
        };
        decide(SIDE, 0, false, false, true)?;
        decide(1, SIDE, false, true, false)?;
        decide(0, 0, true, true, true)?;
        decide(0, 1, false, false, true)?;
        decide(1, 0, false, true, true)
    }
}

/// The most payload that a flush puts into the log.
pub const INLINE_MAX: usize = 1 << 20;

/// The element type of the arrays.
pub fn u64_type() -> DType {
    DType::parse("<u8").unwrap()
}

/// Opens the store in a new process and checks it against the model: its visible state, that it accepts writes, and
/// that `verify` finds nothing. An error describes the problem.
pub fn check(world: &SimWorld, host: &str, model: &Model) -> std::result::Result<(), String> {
    let env = world.process(host);
    let failed = |what: &str, e: fieldstone_core::Error| format!("{what}: {e}");
    let store = open(&env).map_err(|e| failed("open", e))?;
    let seen = visible(&store).map_err(|e| failed("read", e))?;
    if !model.allows(&seen) {
        return Err(format!(
            "{} calls were acknowledged\nseen   {:#?}\nbefore {:#?}\nafter  {:#?}",
            model.acknowledged,
            describe(&seen),
            describe(&model.before),
            describe(&model.after)
        ));
    }
    let verify = |store: &LocalStore| {
        let report = store.verify(&Request::new()).map_err(|e| failed("verify", e))?;
        if report.ok() { Ok(()) } else { Err(format!("verify: {:?}", report.damaged)) }
    };
    verify(&store)?;
    let key = [("run", "later"), ("variable", "v"), ("step", "1")];
    store
        .archive(&key, Value::Bytes(b"written later"), &ArchiveOptions::default())
        .and_then(|()| store.flush(&Session::default()))
        .map_err(|e| failed("write", e))?;
    let fresh = open(&world.process(host)).map_err(|e| failed("open again", e))?;
    let mut expected = seen;
    expected.insert("{run=later}{variable=v}{step=1}".into(), b"written later".to_vec());
    for store in [&store, &fresh] {
        let seen = visible(store).map_err(|e| failed("read again", e))?;
        if seen != expected {
            return Err(format!(
                "after a later write\nseen     {:#?}\nexpected {:#?}",
                describe(&seen),
                describe(&expected)
            ));
        }
    }
    verify(&fresh)
}
