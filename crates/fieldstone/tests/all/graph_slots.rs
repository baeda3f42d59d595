//! The index of the graph divided into slots, in a store: it gives the same answers as one piece, the next handle finds
//! it divided, and losing a slot during a traversal changes no answer.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fieldstone::Session;
use fieldstone::graph::{
    Address, Arrival, Deletion, Engine, Mailboxes, Network, Networks, PartitionScheme, Partitioning,
    RelationPut, SlotOptions, Traversal, VertexName, parse_travel,
};
use fieldstone::graph::{Path as Way, Travel};
use fieldstone::{OpenOptions, Result, Store};
use fieldstone_format::graph_message::{Frame, Message};
use fieldstone_testkit::{Random, seeded};

fn open(folder: &Path) -> Store {
    fieldstone::open(folder.join("s").to_str().unwrap(), &OpenOptions::default()).unwrap()
}

fn name(kind: &str, n: u64) -> VertexName {
    VertexName::new(kind, &n.to_string())
}

/// A relation of a workflow with one job that writes very much, and one file that very many read.
fn relation(dice: &mut Random) -> RelationPut {
    let job = if dice.one_in(3) { name("job", 0) } else { name("job", dice.below(12)) };
    let file = if dice.one_in(3) { name("file", 0) } else { name("file", dice.below(60)) };
    RelationPut::new(if dice.one_in(2) { "write" } else { "read" }, job, file)
}

fn travel(text: &str, causal: bool) -> Travel {
    Travel { causal, steps: parse_travel(text).unwrap(), ..Travel::default() }
}

const WALKS: [&str; 5] = [
    "v(job:0).e(write)",
    "v(file:0).e(wasWrittenBy).e(read).e(wasWrittenBy)",
    "v(file:3).e(wasWrittenBy).e(read).repeat()",
    "v(type=job).rtn().e(write).va(n>=2).e(wasReadBy)",
    "v(file:1).e(wasWrittenBy).e(read).return_fp()",
];

fn outcome(travelled: &Traversal) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for set in 0..travelled.summary().sets.len() {
        let names = travelled.names(set, 0, usize::MAX).unwrap();
        lines.extend(names.iter().map(|name| format!("{set} {name}")));
    }
    if let Some(mut paths) = travelled.paths() {
        while let Some(Way { vertices, edges }) = paths.next().transpose().unwrap() {
            let stamps: Vec<u64> = edges.iter().map(|edge| edge.stamp).collect();
            lines.insert(format!("{vertices:?} {stamps:?}"));
        }
    }
    lines
}

fn answers(store: &Store, engine: Engine) -> Vec<BTreeSet<String>> {
    let walk = |(text, causal): (&str, bool)| {
        outcome(&store.graph().travel(&travel(text, causal), engine, &Session::default()).unwrap())
    };
    WALKS.iter().flat_map(|text| [(*text, false), (*text, true)]).map(walk).collect()
}

fn fill(store: &Store, dice: &mut Random, count: usize) -> Result<()> {
    for _ in 0..count {
        store.graph().put_relations(vec![relation(dice)], &Session::default())?;
    }
    Ok(())
}

#[test]
fn an_index_in_slots_answers_as_one_in_one_piece() {
    let folder = tempfile::tempdir().unwrap();
    let dice = &mut *seeded(1);
    let store = open(folder.path());
    fill(&store, dice, 400).unwrap();
    store.flush(None).unwrap();
    let gone = name("file", 5);
    store.graph().delete(vec![Deletion::Vertex(gone)], None, &Session::default()).ok();
    for scheme in PartitionScheme::ALL {
        let partitioning = Partitioning { slots: 8, scheme, threshold: 4, ..Partitioning::default() };
        store.graph().partition(Partitioning::default()).unwrap();
        // Some of it is not flushed.
        fill(&store, dice, 20).unwrap();
        let expected = answers(&store, Engine::Sync);
        let partitions = store.graph().partition(partitioning).unwrap();
        assert_eq!((partitions.slots.len(), partitions.unfinished), (8, 0));
        let splits = matches!(scheme, PartitionScheme::Dido | PartitionScheme::Giga);
        assert_eq!(partitions.splits > 0, splits, "{scheme:?}");
        for engine in Engine::ALL {
            assert_eq!(answers(&store, engine), expected, "{scheme:?} {engine:?}");
        }
        assert!(store.graph().verify().unwrap().ok());
        store.flush(None).unwrap();
        // The next handle finds the slots, and keeps them.
        let other = open(folder.path());
        for _ in 0..2 {
            let found = other.graph().partitions().unwrap();
            assert_eq!(found.partitioning, partitioning);
            assert_eq!(answers(&other, Engine::Async), expected, "{scheme:?}, by another");
            other.graph().rebuild().unwrap();
        }
        other.close().unwrap();
    }
    let figures = store.graph().travel(&travel(WALKS[1], false), Engine::Sync, &Session::default()).unwrap();
    let slots = figures.summary().slots.as_ref().unwrap();
    assert!(slots.communication() > 0 && slots.reads() > 0 && slots.sent().0 > 0);
    store.close().unwrap();
}

#[test]
fn a_transaction_is_walked_by_who_names_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    fill(&store, &mut seeded(2), 100).unwrap();
    store.flush(None).unwrap();
    let partitioning = Partitioning { slots: 3, threshold: 4, ..Partitioning::default() };
    store.graph().partition(partitioning).unwrap();
    let transaction = store.transaction().unwrap();
    let put = RelationPut::new("write", name("job", 0), name("file", 1000));
    store.graph().put_relations(vec![put], &Session::from(transaction.id())).unwrap();
    let walked = |of: &Session| {
        let walk = travel("v(job:0).e(write)", false);
        outcome(&store.graph().travel(&walk, Engine::Async, of).unwrap()).contains("0 file:1000")
    };
    assert_eq!([walked(&Session::from(transaction.id())), walked(&Session::default())], [true, false]);
    transaction.commit().unwrap();
    assert!(walked(&Session::default()));
    store.close().unwrap();
}

/// Networks; on the first a slot is lost before its third step.
#[derive(Debug, Default)]
struct Losing {
    made: AtomicU32,
}

#[derive(Debug)]
struct LosingNetwork {
    inner: Mailboxes,
    loses: Mutex<bool>,
}

impl Networks for Losing {
    fn network(&self) -> Arc<dyn Network> {
        // The first division made this index.
        let loses = Mutex::new(self.made.fetch_add(1, Ordering::Relaxed) == 0);
        Arc::new(LosingNetwork { inner: Mailboxes::default(), loses })
    }
}

impl Network for LosingNetwork {
    fn open(&self, end: Address) {
        self.inner.open(end);
    }

    fn send(&self, to: Address, frame: Vec<u8>) {
        let mut loses = self.loses.lock().unwrap();
        if *loses
            && to == Address::Slot(1)
            && let Ok(Frame { message: Message::Step { hop: 2, .. }, .. }) = Frame::decode(&frame)
        {
            *loses = false;
            self.inner.close(to);
            return;
        }
        self.inner.send(to, frame);
    }

    fn receive(&self, end: Address, wait: Duration) -> Arrival {
        self.inner.receive(end, wait)
    }

    fn is_reliable(&self) -> bool {
        true
    }

    fn close(&self, end: Address) {
        self.inner.close(end);
    }
}

#[test]
fn a_slot_that_is_lost_in_the_third_step_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index");
    std::fs::create_dir(&index).unwrap();
    let store = open(folder.path());
    let networks = Arc::new(Losing::default());
    let options = SlotOptions { networks: Some(networks.clone()), ..SlotOptions::default() };
    store.graph_with_slots(&index, options).unwrap();
    fill(&store, &mut seeded(3), 300).unwrap();
    store.flush(None).unwrap();
    let partitioning = Partitioning { slots: 4, threshold: 4, ..Partitioning::default() };
    store.graph().partition(partitioning).unwrap();
    // Relations newer than the list on disk are in the slots' memory and in the log.
    fill(&store, &mut seeded(4), 50).unwrap();
    store.flush(None).unwrap();
    let walk = travel(WALKS[1], false);
    let whole = open(folder.path());
    let expected = outcome(&whole.graph().travel(&walk, Engine::Sync, &Session::default()).unwrap());
    let walked = store.graph().travel(&walk, Engine::Sync, &Session::default()).unwrap();
    assert_eq!(networks.made.load(Ordering::Relaxed), 2, "slots were started again");
    assert_eq!(outcome(&walked), expected);
    assert_eq!(store.graph().partitions().unwrap().partitioning, partitioning);
    store.close().unwrap();
}
