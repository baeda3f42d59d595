//! Repair (J-56): damaged and missing parts are mended byte for byte, by a backup or by a second copy in the store. Bytes that nothing
//! vouches for stay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::backup::{T1, T2, TO, backup};
use crate::common::*;
use crate::takeovers::{close, compact};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Result};
use fieldstone_journal::journal::repair::mend_index;
use fieldstone_journal::medium::posix::repair::Bench;
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};
use fieldstone_store::repair::mend_fields;
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::{Random, seeded};

/// Looks at the store as it would be, and makes the changes.
fn try_mend(env: &Env, source: Option<&str>, doit: bool) -> Result<Bench> {
    let mut bench = Bench::new(env, Path::new(ROOT), source.map(Path::new))?;
    mend_index(&mut bench)?;
    mend_fields(&mut bench, &Request::new())?;
    bench.leave_others();
    if doit {
        bench.apply()?;
    }
    Ok(bench)
}

fn mend(world: &SimWorld, source: Option<&str>) -> Bench {
    try_mend(&world.process("a"), source, true).unwrap()
}

/// The damage of the store, as a new handle in a world names it.
fn damage_in(env: &Env) -> Vec<Damage> {
    let how = Opening { access: Access::Read, ..Opening::default() };
    let store = LocalStore::open(env.clone(), Path::new(ROOT), how.local(ROOT)).unwrap();
    store.verify(&Request::new()).unwrap().damaged
}

fn damage(world: &SimWorld) -> Vec<Damage> {
    world.advance(2 * SECOND);
    damage_in(&world.process("d"))
}

/// The files of the store that hold more than hints, with their bytes.
fn content(world: &SimWorld) -> BTreeMap<PathBuf, Vec<u8>> {
    let wanted = |path: &PathBuf| path.starts_with(ROOT) && !path.starts_with(Path::new(ROOT).join("boards"));
    let bytes = |path: PathBuf| {
        let bytes = world.read(&path).unwrap();
        (path, bytes)
    };
    world.files().into_iter().filter(wanted).map(bytes).collect()
}

fn differing<'a>(
    before: &'a BTreeMap<PathBuf, Vec<u8>>,
    now: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<&'a PathBuf> {
    before.iter().filter(|(path, bytes)| now.get(*path) != Some(bytes)).map(|(path, _)| path).collect()
}

/// Takeovers, closed logs, a living one, data logs of all, and their backup.
fn stage(seed: u64) -> (SimWorld, Store) {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    for n in 0..4u8 {
        let store = open(&world, "b");
        flush_one(&store, &format!("run=b,variable=t,step={n}"), &vec![n; 70_000]);
        flush_one(&store, &format!("run=b,variable=u,step={n}"), &noise(u64::from(n), 3 << 20));
        if n == 1 {
            close(&store);
            compact(&open(&world, "b"));
        } else {
            close(&store);
        }
    }
    let living = open(&world, "a");
    flush_one(&living, T1, b"first");
    flush_one(&living, T2, &noise(9, 2 << 20));
    flush_one(&living, T1, b"second");
    backup(&world);
    (world, living)
}

/// Bytes that no compression makes shorter.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    Random::new(seed).bytes(length)
}

/// The bytes of a file that count: behind the last commit of a log there may be zeros.
fn counted(path: &Path, bytes: &[u8]) -> u64 {
    let zeros = path.extension().is_some_and(|e| e == "log");
    let end = if zeros { bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1) } else { bytes.len() };
    end as u64
}

#[test]
fn two_hundred_damaged_bytes_are_all_named_and_all_mended() {
    for seed in seeds(6) {
        let (world, _living) = stage(seed);
        let (before, mut random) = (content(&world), seeded(seed));
        let files: Vec<(&PathBuf, u64)> =
            before.iter().map(|(path, bytes)| (path, counted(path, bytes))).collect();
        for n in 0..200 {
            // Each file in turn, as most bytes are in data logs.
            let (path, length) = files[n % files.len()];
            world.flip(path, random.below(length), 1 + random.below(255) as u8).unwrap();
        }
        let named = damage(&world);
        let now = content(&world);
        let seen = try_mend(&world.process("a"), Some(TO), false).unwrap();
        for path in differing(&before, &now) {
            let name = path.strip_prefix(ROOT).unwrap().display().to_string();
            // A takeover that cannot be read at all may hide which data logs there are.
            let is_named = named.iter().any(|damage| damage.file == name)
                || name.starts_with("data/") && seen.mended().iter().any(|part| part.file == name);
            assert!(is_named, "seed {seed}: {name} in {named:#?}");
        }
        assert_eq!(content(&world), now, "a dry run changes nothing");
        let made = mend(&world, Some(TO));
        assert_eq!(seen.mended(), made.mended());
        assert_eq!((damage(&world), made.unmended()), (Vec::new(), &[][..]), "seed {seed}");
        let after = content(&world);
        assert_eq!(differing(&before, &after), Vec::<&PathBuf>::new(), "seed {seed}");
        assert!(mend(&world, Some(TO)).mended().is_empty(), "nothing is mended twice");
    }
}

#[test]
fn each_missing_file_and_each_end_of_one_comes_back() {
    let (world, living) = stage(3);
    close(&living);
    backup(&world);
    let before = content(&world);
    let env = world.process("a");
    for path in before.keys() {
        env.disk.unlink(path).unwrap();
        // Nothing but the backup knows of a takeover that is not there.
        let is_taken = path.extension().is_some_and(|e| e == "takeover");
        assert!(is_taken || !damage(&world).is_empty(), "{}", path.display());
        mend(&world, Some(TO));
        assert_eq!(damage(&world), [], "{}", path.display());
        let after = content(&world);
        assert_eq!(differing(&before, &after), Vec::<&PathBuf>::new(), "{}", path.display());
        world.truncate(path, before[path].len() as u64 / 2).unwrap();
        mend(&world, Some(TO));
        assert_eq!(damage(&world), [], "{}, cut", path.display());
        let after = content(&world);
        assert_eq!(differing(&before, &after), Vec::<&PathBuf>::new(), "{}, cut", path.display());
    }
    before.keys().for_each(|path| env.disk.unlink(path).unwrap());
    let error = try_mend(&env, Some(TO), true).map(drop).unwrap_err();
    assert_eq!(
        error.code(),
        Code::StoreNotFound,
        "a store of which nothing is left is restored, not mended: {error}"
    );
}

#[test]
fn what_a_store_has_twice_mends_it_without_a_backup() {
    let (world, _living) = stage(4);
    let before = content(&world);
    let mut wrong = 0;
    for (path, bytes) in &before {
        let end = counted(path, bytes);
        let places = match path.extension().and_then(|e| e.to_str()) {
            // The header of a takeover, the foot of a log's last frame, the header of a data log.
            Some("takeover") => vec![70, end - 30],
            Some("log") => vec![end - 20],
            Some("data") => vec![20],
            _ => vec![40],
        };
        for at in places {
            world.flip(path, at, 1).unwrap();
            wrong += usize::from(!damage(&world).is_empty());
            mend(&world, None);
            assert_eq!(damage(&world), [], "{} at {at}", path.display());
            assert_eq!(&world.read(path).unwrap(), bytes, "{} at {at}", path.display());
        }
    }
    assert!(wrong > before.len() / 2, "{wrong}");
}

#[test]
fn older_content_never_takes_the_place_of_newer() {
    let (world, living) = stage(5);
    flush_one(&living, T1, b"third");
    flush_one(&living, T2, &noise(10, 2 << 20));
    let log = files(&world, "logs").into_iter().find(|path| {
        path.extension().is_some_and(|e| e == "log")
            && commits(&world, path).windows(5).any(|w| w == b"third")
    });
    let log = log.unwrap();
    let before = world.read(&log).unwrap();
    let at = before.windows(5).position(|window| window == b"third").unwrap();
    world.flip(&log, at as u64, 1).unwrap();
    let named = damage(&world);
    assert!(named.iter().any(|damage| damage.key.is_some()), "{named:?}");
    let bench = mend(&world, Some(TO));
    assert_eq!(bench.mended(), [], "the backup is older");
    assert_eq!(damage(&world), named);
    assert!(get(&open(&world, "a"), T1).is_err(), "not the second value");
    backup_over(&world, &log, at, &before);
}

/// With a backup that has it, the same is mended.
fn backup_over(world: &SimWorld, log: &Path, at: usize, before: &[u8]) {
    world.flip(log, at as u64, 1).unwrap();
    backup(world);
    world.flip(log, at as u64, 1).unwrap();
    mend(world, Some(TO));
    assert_eq!(world.read(log).unwrap(), before);
}

#[test]
fn a_backup_that_is_damaged_at_the_same_place_mends_nothing_there() {
    let (world, _living) = stage(6);
    let data = files(&world, "data").into_iter().find(|path| world.read(path).unwrap().len() > 1 << 20);
    let data = data.unwrap();
    let of_copy = Path::new(TO).join(data.strip_prefix(ROOT).unwrap());
    world.flip(&data, 100_000, 1).unwrap();
    world.flip(&of_copy, 100_001, 1).unwrap();
    let named = damage(&world);
    let before = world.read(&data).unwrap();
    assert_eq!(mend(&world, Some(TO)).mended(), []);
    assert_eq!((damage(&world), world.read(&data).unwrap()), (named, before));
}

#[test]
fn a_backup_of_another_store_is_refused_by_name() {
    let (world, _living) = stage(7);
    let other = LocalStore::open(world.process("a"), Path::new("/other"), Opening::default().local("/other"));
    let other = std::sync::Arc::new(other.unwrap());
    flush_one(&other, T1, b"its own");
    let error = try_mend(&world.process("a"), Some("/other"), true).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::TargetDiffers, "{error}");
    for id in [other.journal().home().id, open(&world, "a").journal().home().id] {
        assert!(error.message().contains(&id.to_string()), "{error}");
    }
    assert!(try_mend(&world.process("a"), Some(ROOT), true).is_err());
}

#[test]
fn a_living_writer_goes_on_in_a_log_that_is_mended_under_it() {
    let (world, living) = stage(8);
    for path in files(&world, "logs").into_iter().chain(files(&world, "data")) {
        let end = counted(&path, &world.read(&path).unwrap());
        world.flip(&path, end / 2, 1).unwrap();
    }
    mend(&world, Some(TO));
    flush_one(&living, T1, b"after");
    assert_eq!(damage(&world), []);
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"after");
}

#[test]
fn each_user_mends_files_of_his_own_and_root_those_of_all() {
    let world = shared_folder();
    for (host, run) in [("alice", "a"), ("bob", "b")] {
        let store = open(&world, host);
        flush_one(&store, &format!("run={run},variable=t"), &noise(1, 2 << 20));
        close(&store);
    }
    let env = world.process("admin");
    let options = fieldstone_journal::journal::JournalOptions { must_exist: true, ..Default::default() };
    let source = fieldstone_journal::journal::Journal::open(env.clone(), Path::new(ROOT), options).unwrap();
    source.back_up((&env, Path::new(TO)), false, &mut |_| Ok(())).unwrap();
    let before = content(&world);
    for path in before.keys().filter(|path| path.extension().is_some_and(|e| e == "data")) {
        world.flip(path, 1 << 20, 1).unwrap();
    }
    let bench = try_mend(&world.process("alice"), Some(TO), true).unwrap();
    assert_eq!(bench.mended().len(), 1, "{:?}", bench.mended());
    assert!(bench.mended()[0].key.as_ref().is_some_and(|key| key.contains("run=a")), "{:?}", bench.mended());
    assert!(bench.unmended()[0].why.contains("belongs to"), "{:?}", bench.unmended());
    assert_eq!(damage(&world).len(), 1);
    try_mend(&env, Some(TO), true).unwrap();
    assert_eq!(damage(&world), []);
    // A file that root makes again belongs to whom it belonged.
    let log = before.keys().find(|path| env.disk.stat(path).unwrap().uid == BOB).unwrap();
    env.disk.unlink(log).unwrap();
    try_mend(&env, Some(TO), true).unwrap();
    assert_eq!(env.disk.stat(log).unwrap().uid, BOB);
    assert_eq!(damage(&world), []);
}

#[test]
fn a_kill_or_a_power_cut_at_any_call_leaves_each_byte_as_it_was_or_mended() {
    let damaged = || {
        let (world, living) = stage(9);
        close(&living);
        backup(&world);
        let before = content(&world);
        for (n, (path, bytes)) in before.iter().enumerate() {
            match n % 4 {
                0 => world.process("b").disk.unlink(path).unwrap(),
                _ => world.flip(path, counted(path, bytes) / 3, 1).unwrap(),
            }
        }
        let wrong = content(&world);
        (world, before, wrong)
    };
    // A dry run makes no change: what it does comes first.
    let planned = {
        let (world, ..) = damaged();
        let env = world.process("a");
        world.clear_trace();
        try_mend(&env, Some(TO), false).unwrap();
        world.counters().total()
    };
    let mut kills = 0;
    for n in (planned + 1..).step_by(2) {
        let (world, before, wrong) = damaged();
        let env = world.process("a");
        world.kill_nth(&env, None, n);
        let outcome = try_mend(&env, Some(TO), true);
        if env.identity.alive(env.identity.process()) {
            outcome.unwrap();
            break;
        }
        kills += 1;
        for world in [world.power_cut(n), world] {
            for (path, now) in content(&world) {
                let (Some(before), wrong) = (before.get(&path), wrong.get(&path)) else { continue };
                let is_either = |at: usize| {
                    now[at] == before[at] || wrong.is_some_and(|wrong| wrong.get(at) == Some(&now[at]))
                };
                assert_eq!(now.len(), before.len(), "killed at call {n}: {}", path.display());
                assert!((0..now.len()).all(is_either), "killed at call {n}: {}", path.display());
            }
            mend(&world, Some(TO));
            assert_eq!(damage(&world), [], "killed at call {n}");
            let after = content(&world);
            assert_eq!(differing(&before, &after), Vec::<&PathBuf>::new(), "killed at call {n}");
        }
    }
    assert!(kills > 10, "{kills}");
}
