//! 64 processes, as if on two hosts with clocks two hours apart, archive fields and annotate them in one folder,
//! without a server; many are killed, at random moments and in system calls of every kind. Field and attribute are both
//! there or neither, acknowledged data are there, nothing is there twice, and the engine that they left agrees with one
//! rebuilt from scratch.
//!
//! `FIELDSTONE_CRASH=full` makes ten rounds of longer work.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::processes::{Folder, acknowledged, check_clean, example, have_strace};
use fieldstone::catalog::{CatalogAccess, CatalogSettings, Query};
use fieldstone::{FieldStore, ListOptions, OpenOptions, Request};
use fieldstone_testkit::require::full;
use fieldstone_testkit::{Random, seeded};

/// Processes at a time.
const PROCESSES: u64 = 64;
/// The system calls that a writer or its engine makes.
const CALLS: [&str; 21] = [
    "openat",
    "pread64",
    "pwrite64",
    "pwritev",
    "write",
    "fdatasync",
    "fsync",
    "mkdir",
    "linkat",
    "link",
    "unlinkat",
    "unlink",
    "newfstatat",
    "statx",
    "fstat",
    "getdents64",
    "close",
    "fcntl",
    "flock",
    "mmap",
    "lseek",
];

/// How a process ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// On its own.
    Done,
    /// Killed after this many milliseconds.
    After(u64),
    /// Killed in a system call, the n-th of its kind.
    In(&'static str, u64),
}

fn start(url: &str, name: &str, flushes: u64, number: u64, end: End) -> Child {
    let program = example("annotator");
    let mut command = match end {
        End::In(call, n) => {
            let mut command = Command::new("strace");
            let inject = format!("inject={call}:signal=SIGKILL:when={n}");
            let options = ["-f", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject, "--"];
            command.args(options).arg(program);
            command
        }
        _ => Command::new(program),
    };
    let (host, ahead) = if number.is_multiple_of(2) { ("east", "-3600") } else { ("west", "3600") };
    command
        .args([url, name, &flushes.to_string()])
        .env("FIELDSTONE_TEST_HOST", host)
        .env("FIELDSTONE_TEST_CLOCK", ahead)
        .env_remove("FIELDSTONE_CATALOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs all processes of a round at once; returns each one's number of acknowledged flushes, by name.
fn round(
    url: &str,
    round: u64,
    flushes: u64,
    random: &mut Random,
    traced: bool,
) -> BTreeMap<String, (u64, End)> {
    let children: Vec<(String, End, Child)> = (0..PROCESSES)
        .map(|number| {
            let end = match number % 4 {
                0 => End::Done,
                1 => End::After(random.below(1500)),
                _ if !traced => End::After(random.below(1500)),
                _ => {
                    let call =
                        CALLS[((round * PROCESSES + number) / 4 * 2 + number % 2) as usize % CALLS.len()];
                    // Most calls are frequent; faults strike the rare ones at their first.
                    let most = 1 << random.below(6);
                    End::In(call, 1 + random.below(most))
                }
            };
            let name = format!("r{round}p{number:02}");
            let child = start(url, &name, flushes, number, end);
            (name, end, child)
        })
        .collect();
    let waiting: Vec<_> = children
        .into_iter()
        .map(|(name, end, mut child)| {
            std::thread::spawn(move || {
                if let End::After(milliseconds) = end {
                    std::thread::sleep(Duration::from_millis(milliseconds));
                    let _ = child.kill();
                }
                (name, (count_acknowledged(child, end), end))
            })
        })
        .collect();
    waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn count_acknowledged(child: Child, end: End) -> u64 {
    match end {
        End::Done => {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "a process that was not killed failed: {said}");
            String::from_utf8(output.stdout).unwrap().lines().count() as u64
        }
        _ => acknowledged(child),
    }
}

/// All answers of the catalog, as sorted lines.
fn answers(catalog: &dyn CatalogAccess) -> Vec<String> {
    let all = Query::all();
    let hits = catalog.attributes(&all).unwrap();
    let mut lines: Vec<String> = (0..).map_while(|row| hits.hit(row)).map(|hit| format!("{hit:?}")).collect();
    lines.extend(catalog.runs(&all).unwrap().into_iter().map(|run| format!("{run:?}")));
    lines.extend(catalog.steps(&all).unwrap().into_iter().map(|step| format!("{step:?}")));
    lines.extend(catalog.variables(&all).unwrap().into_iter().map(|variable| format!("{variable:?}")));
    lines.extend(catalog.tags(&all).unwrap().into_iter().map(|tag| format!("{tag:?}")));
    lines.sort_unstable();
    lines
}

/// Steps with a field, and with an attribute as often as there is one, by run.
type Steps = BTreeMap<String, BTreeMap<i64, (u64, u64)>>;

fn steps(store: &dyn FieldStore, catalog: &dyn CatalogAccess) -> Steps {
    let mut steps = Steps::new();
    for entry in store.list(&Request::new(), &ListOptions::default()).unwrap() {
        let key = entry.unwrap().key;
        let text = |keyword| key.get(keyword).unwrap().text().into_owned();
        let of = steps.entry(text("run")).or_default().entry(text("step").parse().unwrap()).or_default();
        of.0 += 1;
    }
    let hits = catalog.attributes(&Query::all()).unwrap();
    for hit in (0..).map_while(|row| hits.hit(row)) {
        let of = steps.entry(hit.run.to_string()).or_default().entry(hit.step.unwrap()).or_default();
        of.1 += 1;
    }
    steps
}

#[test]
fn sixty_four_processes_lose_nothing_and_double_nothing() {
    let traced = have_strace();
    let folder = Folder::new("fleet");
    let url = folder.store();
    let mut random = seeded(17);
    let mut counts = BTreeMap::new();
    let (rounds, flushes) = if full() { (10, 40) } else { (1, 16) };
    for n in 0..rounds {
        counts.extend(round(&url, n, flushes, &mut random, traced));
        let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
        let catalog = store.catalog_with(CatalogSettings::default());
        let seen = steps(&store, &*catalog);
        let mut killed = 0;
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, (acknowledged, end)) in &counts {
            let none = BTreeMap::new();
            let of = seen.get(name).unwrap_or(&none);
            // Whole flushes from the first one on, each step once as a field and once as an attribute.
            let visible = of.len() as u64 / 3;
            let expected: BTreeMap<i64, (u64, u64)> =
                (0..3 * visible as i64).map(|step| (step, (1, 1))).collect();
            assert_eq!(*of, expected, "{name}, {end:?}, {acknowledged} flushes acknowledged");
            assert!(
                (*acknowledged..=acknowledged + 1).contains(&visible),
                "{name}, {end:?}: {acknowledged} flushes were acknowledged, {visible} are visible"
            );
            killed += u64::from(*acknowledged < flushes);
            if let (End::In(call, _), true) = (end, *acknowledged < flushes) {
                *calls.entry(call).or_default() += 1;
            }
        }
        assert_eq!(
            seen.len(),
            counts.values().zip(counts.keys()).filter(|(_, name)| seen.contains_key(*name)).count()
        );
        assert!(killed > 0 && killed < counts.len() as u64, "{killed} of {} were killed", counts.len());
        let check = catalog.verify().unwrap();
        assert!(check.ok(), "the engine as it was left: {check:#?}");
        let found = answers(&*catalog);
        catalog.rebuild().unwrap();
        assert_eq!(answers(&*catalog), found, "the rebuilt engine");
        check_clean(&store);
        let boards = std::fs::read_dir(format!("{url}/boards")).unwrap().count();
        assert_eq!(boards, 2, "as if on two hosts");
        println!("round {n}: {killed} of {} processes were killed, in calls: {calls:?}", counts.len());
    }
}
