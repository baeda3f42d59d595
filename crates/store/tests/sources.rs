//! What others have for a handle's flushes is asked for before each flush, of its session alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use fieldstone_core::Result;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::log::{Ends, FOOT, decode_side};
use fieldstone_store::api::*;

#[derive(Debug, Default)]
struct Source {
    waiting: Mutex<Vec<(Option<Id>, SideRecord)>>,
    told: Mutex<Vec<(&'static str, Option<Id>)>>,
}

impl SideSource for Source {
    fn drain(&self, session: Option<Id>) -> Result<Vec<SideRecord>> {
        let mut waiting = self.waiting.lock().unwrap();
        let (given, kept) = waiting.drain(..).partition(|(owner, _)| *owner == session);
        *waiting = kept;
        let given: Vec<(Option<Id>, SideRecord)> = given;
        Ok(given.into_iter().map(|(_, record)| record).collect())
    }

    fn discarded(&self, session: Option<Id>) {
        self.waiting.lock().unwrap().retain(|(owner, _)| *owner != session);
        self.told.lock().unwrap().push(("discarded", session));
    }

    fn lost(&self, session: Option<Id>) -> Vec<SideRecord> {
        self.told.lock().unwrap().push(("lost", session));
        self.drain(session).unwrap()
    }

    fn flushed(&self, session: Option<Id>) {
        self.told.lock().unwrap().push(("flushed", session));
    }

    fn closed(&self) {
        self.told.lock().unwrap().push(("closed", None));
    }
}

fn record(byte: u8) -> SideRecord {
    SideRecord { kind: 0x7777, bytes: vec![byte].into() }
}

/// Side records of the last commit of the only log.
fn last_side(world: &SimWorld) -> Vec<SideRecord> {
    let bytes = commits(world, &files(world, "logs")[0]);
    let ends = Ends::decode_foot(&bytes[bytes.len() - FOOT..], bytes.len() as u64).unwrap();
    let at = ends.record_offsets()[0] as usize;
    let commit = ends.record(&bytes[at..at + ends.record_len as usize]).unwrap();
    let side = &commit.side;
    decode_side(&bytes[side.offset as usize..(side.offset + side.length) as usize], commit.side_count)
        .unwrap()
}

#[test]
fn a_flush_asks_those_who_joined() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let source = Arc::new(Source::default());
    let weak: Arc<dyn SideSource> = source.clone();
    store.attach(Arc::downgrade(&weak));
    let transaction = store.begin().unwrap();
    let wait = |session, byte| source.waiting.lock().unwrap().push((session, record(byte)));
    wait(None, 1);
    wait(Some(transaction), 2);
    wait(None, 3);
    store.archive_side(vec![record(0)], None).unwrap();
    assert_eq!(store.pending_side(None).unwrap(), [record(0), record(1), record(3)]);
    store.flush(None).unwrap();
    assert_eq!(last_side(&world), [record(0), record(1), record(3)]);
    store.decide(transaction, true).unwrap();
    assert!(source.waiting.lock().unwrap().is_empty(), "a commit flushes its session");
    let dropped = store.begin().unwrap();
    wait(Some(dropped), 4);
    store.discard(Some(dropped)).unwrap();
    wait(None, 5);
    store.close().unwrap();
    assert_eq!(last_side(&world), [record(5)]);
    let told = source.told.lock().unwrap().clone();
    let expected = [
        ("flushed", None),
        ("flushed", Some(transaction)),
        ("discarded", Some(dropped)),
        ("flushed", None),
        ("closed", None),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_home_is_named_by_the_store_that_was_made() {
    let world = SimWorld::new(1);
    let (early, other) = (open(&world, "a"), open(&world, "b"));
    assert_ne!(early.home().id, other.home().id);
    flush_one(&other, "run=a,variable=t,step=0", b"x");
    assert_eq!(early.home().id, other.home().id);
    assert_eq!(early.home().folder, None, "a simulated disk is none of this machine's");
    assert!(early.home().writable && !early.home().pinned);
}
