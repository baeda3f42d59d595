//! Wrong clocks: of two flushes, the one that began after the other returned wins.

use crate::common::*;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;

const CLOCKS: [(&str, i64); 4] = [("right", 0), ("behind", -HOUR), ("ahead", HOUR), ("far", TO_2099)];

fn world(seed: u64) -> SimWorld {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    CLOCKS.iter().for_each(|(host, offset)| world.set_clock_offset(host, *offset));
    world
}

/// All orders of two hosts, both ways, with old and new handles.
#[test]
fn the_later_flush_wins_whatever_the_clocks_say() {
    for (first, _) in CLOCKS {
        for (second, _) in CLOCKS {
            let world = world(1);
            let (a, b) = (open(&world, first), open(&world, second));
            for round in 0..3 {
                for (name, store) in [("first", &a), ("second", &b)] {
                    let value = format!("{name} {round}");
                    flush_one(store, "run=a,variable=t", value.as_bytes());
                    for (host, _) in CLOCKS {
                        let seen = get(&open(&world, host), "run=a,variable=t").unwrap();
                        assert_eq!(seen, value.as_bytes(), "{first} then {second}, read by {host}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_does_not_matter() {
    let world = world(1);
    let (a, b) = (open(&world, "right"), open(&world, "ahead"));
    for (i, offset) in [0, TO_2099, -HOUR, -TO_2099 / 2, 5].into_iter().enumerate() {
        world.set_clock_offset("right", offset);
        for (who, store) in [("a", &a), ("b", &b)] {
            let value = format!("{who}{i}");
            flush_one(store, "run=a,variable=t", value.as_bytes());
            assert_eq!(get(&b, "run=a,variable=t").unwrap(), value.as_bytes());
            assert_eq!(get(&a, "run=a,variable=t").unwrap(), value.as_bytes());
        }
    }
    assert!(a.verify(&Request::new()).unwrap().ok());
}

#[test]
fn newer_pieces_and_decisions_win_whatever_the_clocks_say() {
    let world = world(1);
    let stores: Vec<Store> = CLOCKS.iter().rev().map(|(host, _)| open(&world, host)).collect();
    let piece = |store: &Store, value: i32, options: &ArchiveOptions| {
        let data: Vec<u8> = [value; 4].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let value = Value::Piece { data: &data, dtype: DType::I4, start: &[0], count: &[4], shape: &[4] };
        archive(store, "run=a,variable=t", value, options).unwrap();
    };
    let seen =
        |store: &Store| i32::from_ne_bytes(get(store, "run=a,variable=t").unwrap()[..4].try_into().unwrap());
    for (i, store) in stores.iter().enumerate() {
        piece(store, i as i32, &ArchiveOptions::default());
        store.flush(&Session::default()).unwrap();
        assert!(stores.iter().all(|s| seen(s) == i as i32));
    }
    // Prepared by the clock of 2099, decided by the slow one, between two flushes of the correct one.
    let id = stores[0].begin().unwrap();
    piece(&stores[0], 50, &ArchiveOptions { session: Session::from(id), ..ArchiveOptions::default() });
    stores[0].flush(&Session::from(id)).unwrap();
    piece(&stores[3], 60, &ArchiveOptions::default());
    stores[3].flush(&Session::default()).unwrap();
    assert_eq!(seen(&stores[1]), 60);
    stores[2].decide(id, true, &Session::default()).unwrap();
    assert_eq!(seen(&stores[1]), 50);
    piece(&stores[3], 70, &ArchiveOptions::default());
    stores[3].flush(&Session::default()).unwrap();
    assert!(stores.iter().all(|s| seen(s) == 70));
}

/// The displayed time is the writer's own; status names the host whose clock is off.
#[test]
fn wrong_clocks_are_named() {
    let world = world(1);
    for (host, _) in CLOCKS {
        flush_one(&open(&world, host), &format!("run={host},variable=t"), b"x");
    }
    let reader = open(&world, "right");
    let status = reader.status().unwrap();
    for (host, offset) in CLOCKS {
        let writer = status.writers.iter().find(|w| w.host == host).unwrap();
        match writer.clock_offset {
            None => assert_eq!(offset, 0, "{host}"),
            Some(off) => assert!(off.abs_diff(offset) < SECOND, "{host}: {off} for {offset}"),
        }
        let request = Request::parse(&format!("run={host}")).unwrap();
        let entry = reader.list(&request, &ListOptions::default()).unwrap().next().unwrap().unwrap();
        assert!(entry.time.abs_diff(world.now() + offset) < SECOND, "{host}");
    }
}
