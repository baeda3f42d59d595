//! An erasure is disturbed at every call: the process dies, and the power fails. Its content is readable or not, nothing else is
//! lost, and the same call ends the work.
//!
//! `FIELDSTONE_CRASH=full` tries every call, otherwise every seventh.

use std::collections::BTreeMap;

use crate::common::*;
use crate::purge::visible;
use crate::takeovers::{close, compact};
use fieldstone_core::Result;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::erase;
use fieldstone_testkit::require::full;

/// A value that was recorded by mistake.
const SECRET: &[u8] = b"MARKER of a value that is a mistake";

/// Erases hidden fields of a run, and no attributes: a store of fields has none.
fn try_erase(store: &Store, request: &str, doit: bool) -> Result<ErasureReport> {
    let what = Erasing { requests: vec![Request::parse(request)?], doit, ..Erasing::default() };
    erase::begin(store.journal(), &what)?;
    erase::erase(store.journal(), &what, &mut |_, _| Ok(None))
}

/// Files that hold the secret.
fn holding(world: &SimWorld) -> Vec<String> {
    let all = ["logs", "data", "boards"].into_iter().flat_map(|folder| files(world, folder));
    let holds = |path: &std::path::PathBuf| {
        let bytes = world.read(path).unwrap();
        bytes.windows(SECRET.len()).any(|window| window == SECRET)
    };
    all.filter(holds).map(|path| path.display().to_string()).collect()
}

/// Secrets in a takeover, in a data log that is alive for the most part, in frames, and below visible fields.
fn stage() -> (SimWorld, BTreeMap<String, String>) {
    let world = SimWorld::new(36);
    world.set_tracing(false);
    let a = open(&world, "a");
    for n in 0..3 {
        put(&a, &format!("run=b,variable=large{n}"), &pattern(INLINE_MAX + 1000, n)).unwrap();
    }
    put(&a, "run=a,variable=t,step=1", SECRET).unwrap();
    a.flush(&Session::default()).unwrap();
    flush_one(&a, "run=a,variable=t,step=2", SECRET);
    close(&a);
    compact(&open(&world, "a"));
    let b = open(&world, "b");
    flush_one(&b, "run=a,variable=t,step=2", b"what was meant");
    flush_one(&b, "run=a,variable=t,step=3", SECRET);
    flush_one(&b, "run=c,variable=t,step=3", b"of another run");
    let removed = Request::parse("run=a,variable=t,step=1/3").unwrap();
    b.remove(&removed, &RemoveOptions::default()).unwrap();
    b.flush(&Session::default()).unwrap();
    close(&b);
    let before = visible(&open(&world, "b"), None);
    (world, before)
}

fn check(world: &SimWorld, before: &BTreeMap<String, String>, at: &str) {
    let reader = open(world, "b");
    assert_eq!(visible(&reader, None), *before, "{at}");
    let report = reader.verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{at}: {report:?}");
}

#[test]
fn r36_a_kill_at_any_call_of_an_erasure_loses_nothing_and_the_next_one_ends_it() {
    let (world, before) = stage();
    assert!(holding(&world).len() >= 2, "{:?}", holding(&world));
    let store = open(&world, "a");
    assert_eq!(try_erase(&store, "run=a", false).unwrap().versions, 5);
    world.clear_trace();
    let report = try_erase(&store, "run=a", true).unwrap();
    assert_eq!((report.fields, report.versions, report.visible, &report.left[..]), (3, 5, 1, &[][..]));
    let calls = world.counters().total();
    assert_eq!(holding(&world), Vec::<String>::new());
    check(&world, &before, "undisturbed");
    let mut kills = 0;
    for n in (1..=calls).step_by(if full() { 1 } else { 7 }) {
        let (world, before) = stage();
        let env = world.process("a");
        let store = open_in(&env, &Opening::default()).unwrap();
        world.kill_nth(&env, None, n);
        let outcome = try_erase(&store, "run=a", true);
        if env.identity.alive(env.identity.process()) {
            assert!(outcome.is_ok(), "{outcome:?}");
            break;
        }
        std::mem::forget(store);
        let at = format!("killed at call {n}");
        check(&world, &before, &at);
        for world in [world.power_cut(0), world] {
            // A power cut may take the word that a log is closed: then it ends by its silence.
            for _ in 0..2 {
                world.advance(25 * 3_600 * SECOND);
                try_erase(&open(&world, "a"), "run=a", true).unwrap();
            }
            let report = try_erase(&open(&world, "a"), "run=a", true).unwrap();
            assert_eq!(report.left, [], "{at}");
            assert_eq!(holding(&world), Vec::<String>::new(), "{at}");
            check(&world, &before, &format!("{at}, ended"));
        }
        kills += 1;
    }
    println!("{kills} kills");
    assert!(kills > 20, "{kills}");
}

#[test]
fn r36_what_an_open_transaction_may_bring_back_stays_and_is_named() {
    let (world, before) = stage();
    let store = open(&world, "a");
    let id = store.begin().unwrap();
    put_in(&store, "run=a,variable=t,step=2", b"in a transaction", id).unwrap();
    store.flush(&Session::from(id)).unwrap();
    // The field that it would hide is visible, and prepared content may be meant.
    let report = try_erase(&store, "run=a", true).unwrap();
    assert_eq!((report.visible, &report.left[..]), (1, &[][..]), "{report:?}");
    assert_eq!(visible(&open(&world, "b"), None), before);
    store.decide(id, true, &Session::default()).unwrap();
    let report = try_erase(&store, "run=a", true).unwrap();
    assert_eq!(report.versions, 0, "{report:?}");
    assert!(!report.left.is_empty(), "{report:?}");
    store.close(&Session::default()).unwrap();
}
