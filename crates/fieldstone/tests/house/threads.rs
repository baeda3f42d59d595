//! Locks and threads of what threads share come from `core::sync`, where a test puts them into an order that a seed draws.

use super::{files, has_word, is_test, none, shipped};

/// Where they do.
const SHARED: &[&str] = &[
    "crates/catalog/src/",
    "crates/fieldstone/src/store/",
    "crates/graph/src/",
    "crates/journal/src/",
    "crates/store/src/",
];

/// Words of `std::sync` that are not to be used there.
const LOCKS: &[&str] =
    &["Condvar", "Mutex", "MutexGuard", "RwLock", "RwLockReadGuard", "RwLockWriteGuard", "mpsc"];

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
    let mut found: Vec<&'static str> = LOCKS.iter().filter(is_named).copied().collect();
    let is_thread =
        |path: &String| path.starts_with("thread") && !path[6..].starts_with(char::is_alphanumeric);
    if after("std::").iter().any(is_thread) || listed.iter().any(|list| has_word(list, "thread")) {
        found.push("thread");
    }
    found
}

#[test]
fn locks_and_threads_come_from_one_module() {
    let shared = |path: &str| SHARED.iter().any(|folder| path.starts_with(folder));
    let ships = |path: &str| !is_test(path) && !path.contains("/conformance/");
    let files = files(&["rs"]).into_iter().filter(|(path, _)| shared(path) && ships(path));
    let named = |(path, text): (String, String)| {
        let words = of_std(&shipped(&text)).into_iter();
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
    let fine =
        "use std::sync::{Arc, PoisonError};\nuse fieldstone_core::sync::{Mutex, thread};\nthread_local! {}";
    assert!(of_std(fine).is_empty(), "{:?}", of_std(fine));
    assert!(of_std("use std::sync::atomic::AtomicBool;").is_empty());
}
