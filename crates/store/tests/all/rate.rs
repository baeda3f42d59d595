//! Maintenance at a rate: nobody who writes beside it waits for more than a part of it.

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::close;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_journal::Session;
use fieldstone_store::api::*;

const MIB: u64 = 1 << 20;

/// A store in which two of four MiB are live, in small frames and in a data log that is mostly dead.
fn half_dead(world: &SimWorld) {
    world.set_tracing(false);
    let store = open(world, "a");
    for n in 0..64u64 {
        put(&store, &format!("run=a,variable=t,step={}", n / 2), &pattern(MIB as usize / 16, n)).unwrap();
        store.flush(&Session::default()).unwrap();
    }
    close(&store);
}

#[test]
fn a_purge_and_a_compaction_take_as_long_as_their_rate_says() {
    for is_purge in [true, false] {
        let took = [None, Some(MIB / 4)].map(|rate| {
            let world = SimWorld::new(1);
            half_dead(&world);
            let (store, clock) = (open(&world, "b"), world.process("b").clock);
            let begin = clock.monotonic();
            if is_purge {
                try_purge(&store, &Purging { rate, ..at_once() }).unwrap();
            } else {
                let what = Compaction { rate, grace: 0, ..Compaction::default() };
                store.compact(&what, &mut |_| Ok(())).unwrap();
            }
            clock.monotonic() - begin
        });
        // Two MiB, or four, at a quarter of a MiB a second.
        let seconds = if is_purge { 8 } else { 16 };
        assert!(took[0] < 1_000_000_000, "purge {is_purge}: {took:?}");
        assert!(took[1] >= seconds * 1_000_000_000, "purge {is_purge}: {took:?}");
        assert!(took[1] < (seconds + 3) * 1_000_000_000, "purge {is_purge}: {took:?}");
    }
}
