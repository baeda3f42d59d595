//! Takeovers that copy much payload note how far they have come (R67): others leave their inputs alone, and go on from there
//! once the maker is gone.

use std::path::PathBuf;

use crate::common::*;
use crate::takeovers::{close, look_all};
use fieldstone_core::Result;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_format::data;
use fieldstone_format::takeover::TakeoverHeader;
use fieldstone_format::takeover::part::TakeoverPart;
use fieldstone_journal::Session;
use fieldstone_journal::compact::{CompactOptions, CompactReport};
use fieldstone_store::conformance::Opening;
use fieldstone_testkit::require::full;

/// A note for each 100,000 bytes that are copied.
fn compact_in_parts(store: &Store) -> Result<CompactReport> {
    let options = CompactOptions { grace: 0, part_every: 100_000, ..CompactOptions::default() };
    store.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(()))
}

fn named(world: &SimWorld, folder: &str, kind: &str) -> Vec<PathBuf> {
    let mut found = files(world, folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == kind));
    found
}

fn parts(world: &SimWorld) -> Vec<TakeoverPart> {
    named(world, "data", "part")
        .iter()
        .map(|path| TakeoverPart::decode(&world.read(path).unwrap()).unwrap())
        .collect()
}

fn key(n: u64) -> String {
    format!("run=r,variable=t,step={n}")
}

/// A store with an older takeover and five closed logs, which hold half a megabyte in their frames.
fn stage() -> (SimWorld, String) {
    let world = SimWorld::new(5);
    world.set_tracing(false);
    for n in 0..6 {
        let store = open(&world, "a");
        flush_one(&store, &key(n), &pattern(120_000, n));
        flush_one(&store, &key(n + 100), &pattern(3, n));
        close(&store);
        if n == 0 {
            compact_in_parts(&open(&world, "a")).unwrap();
        }
    }
    assert!(parts(&world).is_empty(), "what is done needs no note");
    let before = look_all(&world, &[], &[]);
    (world, before)
}

/// Everything is there, nothing is left of any maker, and payload is where entries say.
fn check(world: &SimWorld, before: &str, at: &str) {
    assert_eq!(look_all(world, &[], &[]), *before, "{at}");
    for n in 0..6 {
        assert_eq!(get(&open(world, "b"), &key(n)).unwrap(), pattern(120_000, n), "{at}");
    }
    let report = open(world, "b").verify(&Request::new()).unwrap();
    assert!(report.ok(), "{at}: {report:?}");
}

/// Data logs that no takeover has, notes, and unfinished takeovers.
fn leaks(world: &SimWorld) -> Vec<PathBuf> {
    let ids: Vec<String> = named(world, "logs", "takeover")
        .iter()
        .map(|path| TakeoverHeader::decode(&world.read(path).unwrap()).unwrap().id.to_string())
        .collect();
    let of_none = |path: &PathBuf| !ids.iter().any(|id| path.to_string_lossy().contains(id.as_str()));
    let mut found: Vec<PathBuf> = named(world, "data", "data").into_iter().filter(of_none).collect();
    found.extend(named(world, "data", "part").into_iter().chain(named(world, "data", "part-new")));
    found.extend(named(world, "logs", "takeover-new"));
    found
}

/// A maker that stops once it has noted something; the handle keeps its process alive.
fn stopped(world: &SimWorld) -> (fieldstone_core::env::Env, Store) {
    let env = world.process("a");
    let maker = open_in(&env, &Opening::default()).unwrap();
    // The third rename is that of the third note.
    world.kill_nth(&env, Some(OpKind::Rename), 3);
    assert!(compact_in_parts(&maker).is_err());
    assert_eq!(parts(world).len(), 1);
    (env, maker)
}

#[test]
fn r67_another_maker_goes_on_with_the_payload_of_a_dead_one() {
    let (world, before) = stage();
    let (_env, maker) = stopped(&world);
    let part = parts(&world).remove(0);
    assert_eq!(part.inputs.len(), 6, "{part:?}");
    let durable = part.data_logs[0].1;
    assert!(durable >= 200_000, "{durable}");
    let counted = world.counters().bytes_written;
    let report = compact_in_parts(&open(&world, "a")).unwrap();
    let written = world.counters().bytes_written - counted;
    assert_eq!(report.logs, (5, 0), "{report:?}");
    // 720,000 bytes are payload: it wrote what was missing.
    assert!(written < 720_000 - durable + 60_000, "{written} bytes, {durable} were there");
    std::mem::forget(maker);
    check(&world, &before, "continued");
    assert_eq!(leaks(&world), Vec::<PathBuf>::new());
    assert_eq!(named(&world, "logs", "takeover").len(), 1);
    let data = named(&world, "data", "data");
    assert!(
        data.len() == 1 && data::parse_file_name(&data[0].file_name().unwrap().to_string_lossy()).is_some()
    );
}

#[test]
fn r67_others_leave_the_inputs_of_a_living_maker_alone() {
    let (world, _) = stage();
    let maker = open(&world, "a");
    let options = CompactOptions { grace: 0, part_every: 100_000, ..CompactOptions::default() };
    let mut begun = false;
    // Another maker takes over a later log, and with it the number that this one has.
    let report = maker.journal().maintenance().compact(&options, &Session::default(), &mut |_| {
        if !std::mem::replace(&mut begun, true) {
            let late = open(&world, "a");
            flush_one(&late, "run=late,variable=t", b"late");
            close(&late);
            let report = compact_in_parts(&open(&world, "a")).unwrap();
            assert_eq!(report.logs, (6, 5), "{report:?}");
            assert_eq!(parts(&world).len(), 1);
        }
        Ok(())
    });
    assert_eq!(report.unwrap().logs, (5, 0));
    assert_eq!(get(&open(&world, "b"), "run=late,variable=t").unwrap(), b"late");
    assert_eq!(leaks(&world), Vec::<PathBuf>::new());
    for n in 0..6 {
        assert_eq!(get(&open(&world, "b"), &key(n)).unwrap(), pattern(120_000, n));
    }
    assert!(open(&world, "b").verify(&Request::new()).unwrap().ok());
}

/// The copy of a dead maker is of no use once one of its inputs is taken over otherwise.
#[test]
fn r67_a_copy_that_nobody_can_go_on_with_is_removed() {
    let (world, before) = stage();
    let (_env, maker) = stopped(&world);
    std::mem::forget(maker);
    let path = named(&world, "data", "part").remove(0);
    let part = parts(&world).remove(0);
    let changed = TakeoverPart {
        inputs: part.inputs[1..].iter().cloned().chain(["logs/gone.log".into()]).collect(),
        ..part
    };
    fieldstone_store::conformance::put_file(&world.process("a"), path, Some(&changed.encode())).unwrap();
    assert_eq!(compact_in_parts(&open(&world, "a")).unwrap().logs, (5, 0));
    check(&world, &before, "removed");
    assert_eq!(leaks(&world), Vec::<PathBuf>::new());
}

/// A maker that only slept, for longer than a day, gives its takeover no name, and harms nobody's payload.
#[test]
fn r67_a_maker_that_slept_too_long_is_too_late() {
    let mut late = 0;
    for n in (1..).step_by(if full() { 1 } else { 7 }) {
        let (world, before) = stage();
        let env = world.process("s");
        let maker = open_in(&env, &Opening::default()).unwrap();
        let stop = world.stop_nth(&env, n);
        let thread = std::thread::spawn({
            let (maker, stop) = (maker.clone(), stop.clone());
            move || {
                let outcome = compact_in_parts(&maker);
                stop.end();
                outcome
            }
        });
        let stopped = stop.wait();
        if stopped {
            for _ in 0..2 {
                world.advance(25 * HOUR as u64);
                compact_in_parts(&open(&world, "a")).unwrap();
            }
        }
        stop.resume();
        late += usize::from(thread.join().unwrap().is_err());
        check(&world, &before, &format!("slept at call {n}"));
        if !stopped {
            break;
        }
        world.advance(25 * HOUR as u64);
        compact_in_parts(&open(&world, "a")).unwrap();
        world.advance(25 * HOUR as u64);
        compact_in_parts(&open(&world, "a")).unwrap();
        check(&world, &before, &format!("slept at call {n}, ended"));
        assert_eq!(leaks(&world), Vec::<PathBuf>::new(), "slept at call {n}");
    }
    println!("{late} heard that they were late");
}

/// The maker is killed at a call, the next one, which goes on, at another; then power fails.
#[test]
fn r67_kills_at_any_call_leak_nothing() {
    let (mut kills, mut gone_on) = (0, 0);
    let step = if full() { 1 } else { 5 };
    for n in (1..).step_by(step) {
        let (world, before) = stage();
        let kill = |n: u64| {
            let env = world.process("a");
            let maker = open_in(&env, &Opening::default()).unwrap();
            world.kill_nth(&env, None, n);
            let _ = compact_in_parts(&maker);
            let was_killed = !env.identity.alive(env.identity.process());
            std::mem::forget(maker);
            was_killed
        };
        if !kill(n) {
            break;
        }
        kills += 1;
        let had_part = !parts(&world).is_empty();
        check(&world, &before, &format!("killed at {n}"));
        // At calls around those that go on with the copy.
        let second = 20 + n * 7 % 60;
        kill(second);
        gone_on += usize::from(had_part);
        for image in 0..2 {
            let after = world.power_cut(image);
            let at = format!("killed at {n}, then at {second}, image {image}");
            check(&after, &before, &at);
            for _ in 0..3 {
                after.advance(25 * HOUR as u64);
                compact_in_parts(&open(&after, "a")).unwrap();
            }
            check(&after, &before, &format!("{at}, ended"));
            assert_eq!(leaks(&after), Vec::<PathBuf>::new(), "{at}");
            assert!(named(&after, "logs", "log").is_empty(), "{at}");
        }
    }
    println!("{kills} kills, {gone_on} with a note");
    assert!(gone_on > 0);
}
