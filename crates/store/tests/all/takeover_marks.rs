//! A follower whose marks cover a takeover pays nothing for it, however much it holds.

use crate::common::*;
use crate::takeovers::{close, compact};
use fieldstone_core::Result;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;
use fieldstone_format::version::TakeoverName;
use fieldstone_journal::Session;
use fieldstone_journal::feed::{Commit, EntryChange, Feed, TransactionState};
use fieldstone_journal::follow::{Followed, Following, Pace, follow};
use fieldstone_journal::follower::{Again, FieldLookup, Follower, HeldField, Marks, Wait};

/// A follower that keeps its marks, and counts what it is given.
#[derive(Default)]
struct Counting {
    marks: Marks,
    entries: u64,
    commits: u64,
}

impl Follower for Counting {
    fn marks(&mut self) -> Result<Marks> {
        Ok(self.marks.clone())
    }

    fn attend(&mut self, _feed: &Feed) {}

    fn leave(&mut self) {}

    fn begin(&mut self, _wait: Wait) -> Result<bool> {
        Ok(true)
    }

    fn decide(&mut self, _states: &[TransactionState]) -> Result<Again> {
        Ok(Again::Entries(Vec::new(), Vec::new()))
    }

    fn entries(&mut self, entries: &mut dyn Iterator<Item = Result<EntryChange>>) -> Result<u64> {
        let before = self.entries;
        for entry in entries {
            entry?;
            self.entries += 1;
        }
        Ok(self.entries - before)
    }

    fn commit(&mut self, _commit: &Commit) -> Result<()> {
        self.commits += 1;
        Ok(())
    }

    fn mark(&mut self, log: Id, sequence: u64) -> Result<()> {
        self.marks.logs.insert(log, sequence);
        Ok(())
    }

    fn take(&mut self, newest: &[TakeoverName], logs: &[Id]) -> Result<()> {
        self.marks.take(newest, logs);
        Ok(())
    }

    fn ask(&mut self, _fields: &dyn FieldLookup, _transaction: Option<Id>) -> Result<()> {
        Ok(())
    }

    fn revision(&mut self) -> Result<u64> {
        Ok(0)
    }

    fn end(&mut self) -> Result<()> {
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        self.marks = Marks::default();
        Ok(())
    }

    fn overlay(&mut self, _transaction: Option<Id>, _own: &[Commit]) -> Result<bool> {
        Ok(false)
    }

    fn dump(&mut self) -> Result<String> {
        Ok(String::new())
    }
}

/// Fields that nobody asks for.
struct NoFields;

impl FieldLookup for NoFields {
    fn fields(
        &self,
        _request: &Request,
        _transaction: Option<Id>,
        _field: &mut dyn FnMut(&HeldField) -> Result<bool>,
    ) -> Result<()> {
        Ok(())
    }
}

/// Flushes fields with a side record.
fn write(store: &Store, run: &str, fields: u64) {
    for step in 0..fields {
        put(store, &format!("run={run},variable=t,step={step}"), &step.to_le_bytes()).unwrap();
    }
    let record = SideRecord { kind: 1, bytes: vec![7; 300].into() };
    store.journal().unflushed().add(vec![record], &Session::default()).unwrap();
    store.flush(&Session::default()).unwrap();
}

/// Opens the store in a new process and brings a follower up to it; bytes and calls that reads took.
fn follow_by_a_new_process(world: &SimWorld, follower: &mut Counting) -> (u64, u64) {
    let before = world.counters();
    let env = world.process("b");
    let store = open_in(&env, &Default::default()).unwrap();
    let feed = store.journal().looks().feed().unwrap();
    let how = Following { wait: Wait::Yes, newest: true, pace: Pace::usual(&*env.clock) };
    assert_eq!(follow(follower, &feed, &NoFields, &how).unwrap(), Followed::Done);
    let after = world.counters();
    (after.bytes_read - before.bytes_read, after.count(OpKind::Read) - before.count(OpKind::Read))
}

#[test]
fn r24_takeovers_that_marks_cover_are_not_walked() {
    let mut costs = Vec::new();
    for logs in [4, 150] {
        let world = SimWorld::new(1);
        for n in 0..logs {
            let store = open(&world, "a");
            write(&store, &format!("r{n}"), 40);
            close(&store);
        }
        compact(&open(&world, "a"));
        let mut follower = Counting::default();
        follow_by_a_new_process(&world, &mut follower);
        assert_eq!((follower.entries, follower.commits), (40 * logs, logs));
        // Nothing new; then one commit in a living log; then that log is taken over.
        let same = follow_by_a_new_process(&world, &mut follower);
        let living = open(&world, "a");
        write(&living, "later", 1);
        let commit = follow_by_a_new_process(&world, &mut follower);
        assert_eq!((follower.entries, follower.commits), (40 * logs + 1, logs + 1));
        close(&living);
        compact(&open(&world, "a"));
        let taken = follow_by_a_new_process(&world, &mut follower);
        assert_eq!((follower.entries, follower.commits), (40 * logs + 1, logs + 1), "nothing comes twice");
        costs.push([same, commit, taken]);
    }
    println!("bytes and calls of reads: {costs:?}");
    for (few, many) in costs[0].iter().zip(&costs[1]) {
        assert!(many.0 <= few.0 + 16 * 1024 && many.1 <= few.1 + 2, "{costs:?}");
    }
}
