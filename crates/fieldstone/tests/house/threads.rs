//! Locks come from `core::sync`, which has them without poison. So do threads of shared code: a test puts both into
//! an order that a seed draws.

use super::{files, has_word, is_test, none, shipped};

/// The places of threads.
const SHARED: &[&str] = &[
    "crates/catalog/src/",
    "crates/fieldstone/src/store/",
    "crates/graph/src/",
    "crates/journal/src/",
    "crates/store/src/",
];

/// The places of locks.
const LOCKED: &[&str] = &[
    "crates/array/src/",
    "crates/catalog/src/",
    "crates/core/src/",
    "crates/fieldstone/src/",
    "crates/graph/src/",
    "crates/journal/src/",
    "crates/store/src/",
];
/// The module itself.
const SYNC: &str = "crates/core/src/sync/";

/// Words of `std::sync` that are not to be used there.
const LOCKS: &[&str] =
    &["Condvar", "Mutex", "MutexGuard", "PoisonError", "RwLock", "RwLockReadGuard", "RwLockWriteGuard"];

/// Which locks and threads of std the code names, also in lists.
fn of_std(code: &str) -> Vec<&'static str> {
    let packed: String = code.split_whitespace().collect();
    let after = |path: &str| -> Vec<String> {
        let rests = packed.split(path).skip(1);
        rests.map(|rest| rest.split(';').next().unwrap_or("").to_owned()).collect()
    };
    let locks = after("std::sync::");
    let listed = after("std::{");
    let is_named = |word: &&&str| {
        let first = |path: &String| {
            let end = path.find(|c: char| !c.is_alphanumeric()).unwrap_or(path.len());
            path[..end] == ***word
                || path.starts_with('{') && has_word(path.split('}').next().unwrap_or(""), word)
        };
        locks.iter().any(first)
    };
    let mut found: Vec<&'static str> = LOCKS.iter().chain(&["mpsc"]).filter(is_named).copied().collect();
    let is_thread =
        |path: &String| path.starts_with("thread") && !path[6..].starts_with(char::is_alphanumeric);
    if after("std::").iter().any(is_thread) || listed.iter().any(|list| has_word(list, "thread")) {
        found.push("thread");
    }
    found
}

#[test]
fn locks_and_threads_come_from_one_module() {
    let within = |path: &str, folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let ships = |path: &str| !is_test(path) && !path.contains("/conformance/") && !path.starts_with(SYNC);
    let files = files(&["rs"]).into_iter().filter(|(path, _)| ships(path));
    let named = |(path, text): (String, String)| {
        let (is_locked, is_shared) = (within(&path, LOCKED), within(&path, SHARED));
        let words = of_std(&shipped(&text)).into_iter();
        let words = words.filter(move |word| if LOCKS.contains(word) { is_locked } else { is_shared });
        words.map(move |word| format!("{path} uses std's {word}: take that of core::sync"))
    };
    none(files.flat_map(named).collect());
}

#[test]
fn the_check_can_fail() {
    assert_eq!(of_std("use std::sync::{Arc, Mutex};"), ["Mutex"]);
    assert_eq!(of_std("let lock = std::sync::RwLock::new(1);"), ["RwLock"]);
    assert_eq!(of_std("use std::sync::mpsc::channel;\nstd::thread::yield_now();"), ["mpsc", "thread"]);
    assert_eq!(of_std("use std::{iter, thread};"), ["thread"]);
    assert_eq!(of_std("use std::sync::{Arc, PoisonError};"), ["PoisonError"]);
    let fine = "use std::sync::Arc;\nuse fieldstone_core::sync::{Mutex, thread};\nthread_local! {}";
    assert!(of_std(fine).is_empty(), "{:?}", of_std(fine));
    assert!(of_std("use std::sync::atomic::AtomicBool;").is_empty());
}
