//! Records that a participant keeps for a handle's flushes count as unflushed, and only their session's flush takes
//! them.

use std::path::Path;

use crate::common::*;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::log::{FOOT, FrameInfo, SideRecord, decode_side};
use fieldstone_journal::Session;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::LocalStore;

fn record(byte: u8) -> SideRecord {
    SideRecord { kind: 0x7777, bytes: vec![byte].into() }
}

/// Side records of the last commit of the only log.
fn last_side(world: &SimWorld) -> Vec<SideRecord> {
    let bytes = commits(world, &files(world, "logs")[0]);
    let ends = FrameInfo::decode_foot(&bytes[bytes.len() - FOOT..], bytes.len() as u64).unwrap();
    let at = ends.record_offsets()[0] as usize;
    let commit = ends.record(&bytes[at..at + ends.record_len as usize]).unwrap();
    let side = &commit.side;
    decode_side(&bytes[side.offset as usize..(side.offset + side.length) as usize], commit.side_count)
        .unwrap()
}

#[test]
fn what_was_kept_goes_with_the_next_commit_of_its_session() {
    let world = SimWorld::new(1);
    let store =
        LocalStore::open(world.process("a"), Path::new(ROOT), Opening::default().local(ROOT)).unwrap();
    let journal = store.journal();
    let transaction = store.begin().unwrap();
    store.journal().unflushed().add(vec![record(0)], &Session::default()).unwrap();
    let losses = [
        journal.unflushed().keep(2, &Session::default()),
        journal.unflushed().keep(1, &Session::from(transaction)),
    ];
    assert_eq!(losses, [0, 0], "nothing was lost");
    assert_eq!(
        store.journal().unflushed().records(&Session::default()),
        [record(0)],
        "the journal has a number alone"
    );
    assert!(journal.unflushed().add_kept(vec![record(1), record(3)], 2, 0, &Session::default()));
    assert!(journal.unflushed().add_kept(vec![record(2)], 1, 0, &Session::from(transaction)));
    assert_eq!(store.journal().unflushed().records(&Session::default()), [record(0), record(1), record(3)]);
    store.flush(&Session::default()).unwrap();
    assert_eq!(last_side(&world), [record(0), record(1), record(3)]);
    store.decide(transaction, true, &Session::default()).unwrap();
    // Discarded records no longer count.
    let dropped = store.begin().unwrap();
    journal.unflushed().keep(4, &Session::from(dropped));
    store.discard(&Session::from(dropped)).unwrap();
    store.decide(dropped, true, &Session::default()).unwrap();
    assert!(journal.unflushed().all_losses().is_empty());
}

#[test]
fn a_home_is_named_by_the_store_that_was_made() {
    let world = SimWorld::new(1);
    let (early, other) = (open(&world, "a"), open(&world, "b"));
    assert_ne!(early.journal().home().id, other.journal().home().id);
    flush_one(&other, "run=a,variable=t,step=0", b"x");
    assert_eq!(early.journal().home().id, other.journal().home().id);
    assert_eq!(early.journal().home().folder, None, "a simulated disk is none of this machine's");
    assert!(early.journal().home().writable && !early.journal().home().pinned);
}
