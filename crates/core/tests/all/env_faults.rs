//! Every fault of the simulated world occurs, and is the same for the same seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::ErrorKind;
use std::path::Path;

use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld, SyncKind};
use fieldstone_core::env::{Env, write_all_at};

const F: &str = "/f";

fn create(env: &Env, path: &str) -> std::sync::Arc<dyn fieldstone_core::env::DiskFile> {
    env.disk.create_new(Path::new(path)).unwrap()
}

fn read(world: &SimWorld, path: &str) -> Vec<u8> {
    world.read(Path::new(path)).unwrap()
}

/// Runs `act` twice for each seed, checks that both runs agree, and returns the results by seed.
fn by_seed<T: PartialEq + std::fmt::Debug>(act: impl Fn(SimWorld) -> T) -> Vec<T> {
    let run = |seed| act(SimWorld::new(seed));
    (0..40)
        .map(|seed| {
            let result = run(seed);
            assert_eq!(result, run(seed), "seed {seed}");
            result
        })
        .collect()
}

#[test]
fn short_writes_and_reads_move_some_bytes() {
    let results = by_seed(|world| {
        let env = world.host("a");
        let file = create(&env, F);
        world.set_probability(OpKind::Write, Fault::Short, 0.5);
        world.set_probability(OpKind::Read, Fault::Short, 0.5);
        let n = file.write_at(&[7; 1000], 0).unwrap();
        assert_eq!(read(&world, F), vec![7; n]);
        write_all_at(&*file, &[7; 1000], 0).unwrap();
        (n, file.read_at(&mut [0; 1000], 0).unwrap())
    });
    assert!(results.iter().all(|(w, r)| (1..=1000).contains(w) && (1..=1000).contains(r)));
    assert!(results.iter().any(|r| r.0 < 1000) && results.iter().any(|r| r.0 == 1000));
    assert!(results.iter().any(|r| r.1 < 1000));
}

#[test]
fn a_short_append_fails_and_leaves_its_beginning() {
    let world = SimWorld::new(1);
    let file = world.host("a").disk.open_append(Path::new(F)).unwrap();
    file.append(b"abc").unwrap();
    world.fail_nth(OpKind::Append, 1, Fault::Short);
    assert_eq!(file.append(b"defgh").unwrap_err().kind(), ErrorKind::WriteZero);
    let bytes = read(&world, F);
    assert!(b"abcdefgh".starts_with(&bytes) && bytes.len() > 3 && bytes.len() < 8);
    assert_eq!(file.append(b"z").unwrap(), bytes.len() as u64);
}

#[test]
fn a_full_disk_takes_what_fits_and_then_nothing() {
    let world = SimWorld::new(1);
    let env = world.host("a");
    world.set_capacity(Some(100));
    let file = create(&env, F);
    assert_eq!(file.write_at(&[1; 60], 0).unwrap(), 60);
    assert_eq!(env.disk.space(Path::new("/")).unwrap().free_bytes, 40);
    assert_eq!(file.write_at(&[2; 60], 60).unwrap(), 40);
    assert_eq!(file.write_at(&[2; 20], 100).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(&[3; 100], 0).unwrap(), 100, "what is there may be written again");
    assert_eq!(file.set_len(101).unwrap_err().kind(), ErrorKind::StorageFull);
    file.set_len(90).unwrap();
    file.set_len(100).unwrap();
    let log = env.disk.open_append(Path::new("/log")).unwrap();
    assert_eq!(log.append(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    env.disk.unlink(Path::new(F)).unwrap();
    assert_eq!(log.append(b"x").unwrap(), 0);
    world.set_max_files(Some(1));
    assert_eq!(env.disk.create_new(Path::new("/g")).unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn planned_faults_strike_the_call_they_name() {
    let world = SimWorld::new(1);
    let (a, b) = (world.host("a"), world.host("b"));
    let (fa, fb) = (create(&a, "/a"), create(&b, "/b"));
    world.fail_nth(OpKind::Write, 2, Fault::NoSpace);
    world.schedule(Plan::new(Fault::Io).host("b").kind(OpKind::Read).nth(2));
    world.schedule(Plan::new(Fault::Denied).path("/secret").nth(1));
    assert!(fa.write_at(b"1", 0).is_ok());
    assert_eq!(fb.write_at(b"2", 0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(read(&world, "/b"), b"", "without effect");
    for (file, expected) in [(&fa, [true, true, true]), (&fb, [true, false, true])] {
        assert_eq!(expected.map(|_| file.read_at(&mut [0], 0).is_ok()), expected);
    }
    let denied = a.disk.create_new(Path::new("/secret"));
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::PermissionDenied);
    world.fail_nth(OpKind::Stat, 1, Fault::Io);
    world.clear_faults();
    assert!(a.disk.stat(Path::new("/a")).is_ok());
}

#[test]
fn a_failing_write_may_leave_some_of_its_bytes() {
    let lens = by_seed(|world| {
        let file = create(&world.host("a"), F);
        world.fail_nth(OpKind::Write, 1, Fault::Io);
        assert_eq!(file.write_at(&[7; 100], 0).unwrap_err().raw_os_error(), Some(5));
        read(&world, F).len()
    });
    assert!(lens.contains(&0) && lens.iter().any(|n| *n > 0) && lens.iter().all(|n| *n < 100));
}

#[test]
fn after_a_failed_sync_the_next_one_succeeds_and_the_data_are_gone() {
    let world = SimWorld::new(1);
    let env = world.host("a");
    let file = create(&env, F);
    env.disk.sync_dir(Path::new("/")).unwrap();
    file.write_at(&[1; 10], 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(&[2; 10], 10).unwrap();
    world.fail_nth(OpKind::SyncData, 1, Fault::Io);
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    let hole = [[1; 10], [0; 10]].concat();
    assert!((0..20).all(|seed| read(&world.power_cut(seed), F) == hole), "the length is durable");
    file.write_at(&[3; 10], 20).unwrap();
    file.sync_data().unwrap();
    let mut expected = [1; 30];
    expected[10..20].fill(2);
    expected[20..].fill(3);
    assert_eq!(read(&world, F), expected, "still in the cache");
    expected[10..20].fill(0);
    for seed in 0..20 {
        assert_eq!(read(&world.power_cut(seed), F), expected);
    }
    world.drop_caches();
    assert_eq!(read(&world, F), expected);
}

#[test]
fn a_sync_can_fail_after_half_its_work() {
    let kept = by_seed(|world| {
        let env = world.host("a");
        let file = create(&env, F);
        for i in 0..8 {
            file.write_at(&[1; 512], i * 512).unwrap();
        }
        world.fail_nth(OpKind::SyncData, 1, Fault::IoPartial);
        assert!(file.sync_data().is_err());
        world.drop_caches();
        read(&world, F).chunks(512).filter(|c| c[0] == 1).count()
    });
    assert!(kept.iter().any(|n| (1..8).contains(n)));
    assert!(kept.iter().any(|n| *n != kept[0]));
}

#[test]
fn a_killed_process_did_all_part_or_nothing_of_its_last_call() {
    let lens = by_seed(|world| {
        let (env, other) = (world.process("a"), world.process("a"));
        let file = create(&env, F);
        world.kill_nth(&env, Some(OpKind::Write), 2);
        other.disk.open_write(Path::new(F)).unwrap().write_at(b"other", 0).unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        assert!(other.identity.alive(env.identity.process()));
        let error = file.write_at(&[2; 100], 100).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Other, "process killed"));
        assert!(file.read_at(&mut [0], 0).is_err() && file.sync_data().is_err());
        assert!(env.disk.stat(Path::new(F)).is_err());
        assert!(!other.identity.alive(env.identity.process()));
        assert!(other.identity.alive(other.identity.process()));
        assert!(other.disk.stat(Path::new(F)).is_ok());
        read(&world, F).len()
    });
    assert!(lens.contains(&100) && lens.contains(&200) && lens.iter().any(|n| (101..200).contains(n)));

    let created = by_seed(|world| {
        let env = world.host("a");
        world.kill_nth(&env, None, 1);
        assert!(env.disk.create_new(Path::new(F)).is_err());
        world.files().len()
    });
    assert!(created.contains(&0) && created.contains(&1));
}

#[test]
fn a_process_can_be_killed_at_any_kind_of_call() {
    type Act = fn(&Env) -> std::io::Result<()>;
    let f = || Path::new(F);
    let acts: [(OpKind, Act); 20] = [
        (OpKind::Create, |e| e.disk.create_new(Path::new("/new")).map(drop)),
        (OpKind::OpenRead, |e| e.disk.open_read(Path::new(F)).map(drop)),
        (OpKind::OpenWrite, |e| e.disk.open_write(Path::new(F)).map(drop)),
        (OpKind::OpenAppend, |e| e.disk.open_append(Path::new(F)).map(drop)),
        (OpKind::Read, |e| e.disk.open_read(Path::new(F))?.read_at(&mut [0; 4], 0).map(drop)),
        (OpKind::Write, |e| e.disk.open_write(Path::new(F))?.write_at(b"x", 0).map(drop)),
        (OpKind::Append, |e| e.disk.open_append(Path::new(F))?.append(b"x").map(drop)),
        (OpKind::SyncData, |e| e.disk.open_write(Path::new(F))?.sync_data()),
        (OpKind::SetLen, |e| e.disk.open_write(Path::new(F))?.set_len(9)),
        (OpKind::StatFile, |e| e.disk.open_read(Path::new(F))?.stat().map(drop)),
        (OpKind::CreateDirAll, |e| e.disk.create_dir_all(Path::new("/d/e"))),
        (OpKind::SyncDir, |e| e.disk.sync_dir(Path::new("/"))),
        (OpKind::ListDir, |e| e.disk.list_dir(Path::new("/")).map(drop)),
        (OpKind::Stat, |e| e.disk.stat(Path::new(F)).map(drop)),
        (OpKind::Link, |e| e.disk.link(Path::new(F), Path::new("/l"))),
        (OpKind::Rename, |e| e.disk.rename(Path::new(F), Path::new("/r"))),
        (OpKind::Unlink, |e| e.disk.unlink(Path::new(F))),
        (OpKind::RemoveDir, |e| e.disk.remove_dir(Path::new("/empty"))),
        (OpKind::Space, |e| e.disk.space(Path::new("/")).map(drop)),
        (OpKind::Absolute, |e| e.disk.absolute(Path::new("x")).map(drop)),
    ];
    for (kind, act) in acts {
        let world = SimWorld::new(3);
        let env = world.host("a");
        env.disk.create_new(f()).unwrap();
        env.disk.create_dir_all(Path::new("/empty")).unwrap();
        act(&world.process("a")).unwrap_or_else(|e| panic!("{kind:?} without a fault: {e}"));
        let world = SimWorld::new(3);
        let (env, victim) = (world.host("a"), world.host("a"));
        env.disk.create_new(f()).unwrap();
        env.disk.create_dir_all(Path::new("/empty")).unwrap();
        world.kill_nth(&victim, Some(kind), 1);
        assert!(act(&victim).is_err(), "{kind:?}");
        assert!(!env.identity.alive(victim.identity.process()), "{kind:?}");
    }
    // The last kind returns no error, but kills too.
    let world = SimWorld::new(3);
    let env = world.host("a");
    let file = create(&env, F);
    world.kill_nth(&env, Some(OpKind::Writeback), 1);
    file.start_writeback(0, 1);
    assert!(file.stat().is_err());
    assert_eq!(acts.len() + 1, OpKind::ALL.len());
}

#[test]
fn when_the_power_goes_all_hosts_stop() {
    let world = SimWorld::new(1);
    let (a, b) = (world.host("a"), world.host("b"));
    let file = create(&b, F);
    world.schedule(Plan::new(Fault::PowerOff).nth(3));
    assert!(file.stat().is_ok() && a.disk.stat(Path::new(F)).is_ok());
    assert!(a.disk.stat(Path::new(F)).is_err());
    assert!(file.stat().is_err());
    assert!(!b.identity.alive(b.identity.process()));
    let after = world.power_cut(1);
    assert!(after.host("a").disk.stat(Path::new("/")).is_ok());
    assert!(!after.host("b").identity.alive(b.identity.process()));
}

#[test]
fn the_trace_and_the_counters_hold_every_call() {
    let world = SimWorld::new(1);
    let env = world.host("a");
    let file = create(&env, F);
    file.write_at(&[1; 100], 5).unwrap();
    file.read_at(&mut [0; 500], 100).unwrap();
    file.sync_data().unwrap();
    env.disk.rename(Path::new(F), Path::new("/g")).unwrap();
    assert!(env.disk.open_read(Path::new(F)).is_err());
    let log = env.disk.open_append(Path::new("/log")).unwrap();
    log.append(b"123").unwrap();
    log.append(b"45").unwrap();
    let counters = world.counters();
    assert_eq!(counters.count(OpKind::SyncData), 1);
    assert_eq!(counters.count(OpKind::SyncDir), 0);
    assert_eq!((counters.bytes_written, counters.bytes_read), (105, 5));
    assert_eq!(counters.total(), 9);
    let trace = world.trace();
    let ops: Vec<_> = trace.iter().map(|o| (o.kind, o.offset, o.len, o.ok)).collect();
    assert_eq!(
        ops,
        [
            (OpKind::Create, 0, 0, true),
            (OpKind::Write, 5, 100, true),
            (OpKind::Read, 100, 5, true),
            (OpKind::SyncData, 0, 0, true),
            (OpKind::Rename, 0, 0, true),
            (OpKind::OpenRead, 0, 0, false),
            (OpKind::OpenAppend, 0, 0, true),
            (OpKind::Append, 0, 3, true),
            (OpKind::Append, 3, 2, true),
        ]
    );
    assert_eq!((&*trace[0].host, trace[0].process), ("a", env.identity.process()));
    assert_eq!((&*trace[4].path, trace[4].to.as_deref()), (Path::new(F), Some(Path::new("/g"))));
    world.clear_trace();
    assert!(world.trace().is_empty() && world.counters().total() == 0);
}

#[test]
fn clocks_are_wrong_by_their_offset_and_never_wait() {
    let world = SimWorld::new(1);
    let (a, b) = (world.host("a"), world.host("b"));
    let hour = 3_600_000_000_000i64;
    world.set_clock_offset("a", -hour);
    world.set_clock_offset("b", 76 * 365 * 24 * hour);
    let (now, seen, far) = (world.now(), a.clock.now(), b.clock.now());
    assert!((now - hour..now - hour + 1_000_000).contains(&seen));
    assert!(far > 4_070_000_000_000_000_000, "the year 2099");
    let (before, mono) = (a.clock.now(), a.clock.monotonic());
    a.clock.sleep(24 * hour as u64);
    assert!(a.clock.now() - before >= 24 * hour && a.clock.monotonic() - mono >= 24 * hour as u64);
    let file = create(&b, F);
    assert!((file.stat_with_time().unwrap().1 - world.now()).abs() < hour, "files bear the true time");
    world.advance(5);
    assert!(a.clock.now() < a.clock.now(), "time moves by itself");
}

#[test]
fn processes_draw_different_numbers_and_the_same_for_the_same_seed() {
    let draw = |env: &Env| {
        let mut bytes = [0; 16];
        env.rand.fill(&mut bytes);
        bytes
    };
    let all = || {
        let world = SimWorld::new(9);
        let (a, b, c) = (world.process("a"), world.process("a"), world.process("b"));
        let cut = world.power_cut(1);
        let d = cut.process("a");
        [draw(&a), draw(&a), draw(&b), draw(&c), draw(&d), draw(&world.power_cut(2).process("a"))]
    };
    let mut numbers = all();
    assert_eq!(numbers, all());
    numbers.sort();
    assert!(numbers.windows(2).all(|w| w[0] != w[1]));
    let other = SimWorld::new(10).process("a");
    assert!(!numbers.contains(&draw(&other)));
}

#[test]
fn users_own_what_they_create_and_may_be_kept_out() {
    let world = SimWorld::new(1);
    let (a, b) = (world.host("a"), world.host("b"));
    world.set_uid("b", 2000);
    let dir = Path::new("/d");
    a.disk.create_dir_all(dir).unwrap();
    let path = Path::new("/d/f");
    let kept = a.disk.create_new(path).unwrap();
    assert_eq!((kept.stat().unwrap().uid, b.identity.uid()), (1000, 2000));
    assert_eq!(b.disk.open_append(Path::new("/d/g")).unwrap().stat().unwrap().uid, 2000);
    assert_eq!(b.identity.user_name(1000), "user1000");
    world.permissions().make_read_only(dir, true).unwrap();
    assert!(a.disk.open_write(path).is_ok() && b.disk.open_read(path).is_ok());
    let denied = |r: std::io::Result<()>| assert_eq!(r.unwrap_err().kind(), ErrorKind::PermissionDenied);
    denied(b.disk.open_write(path).map(drop));
    denied(b.disk.open_append(path).map(drop));
    denied(b.disk.create_new(Path::new("/d/new")).map(drop));
    denied(b.disk.create_dir_all(Path::new("/d/new/er")));
    denied(b.disk.unlink(path));
    denied(b.disk.rename(path, Path::new("/f")));
    denied(b.disk.link(path, Path::new("/d/l")));
    world.permissions().chown(path, 2000).unwrap();
    assert!(b.disk.open_write(path).is_ok());
    assert_eq!(a.disk.stat(path).unwrap().uid, 2000);
    world.permissions().make_read_only(dir, false).unwrap();
    denied(a.disk.create_new(Path::new("/d/new")).map(drop));
    assert_eq!(kept.write_at(b"x", 0).unwrap(), 1, "what is open stays open");
    world.permissions().make_writable(dir).unwrap();
    assert!(a.disk.create_new(Path::new("/d/new")).is_ok());
}

#[test]
fn files_can_be_damaged_and_worlds_copied() {
    let world = SimWorld::new(1);
    let file = create(&world.host("a"), F);
    file.write_at(b"abcdef", 0).unwrap();
    let copy = world.fork_image();
    world.flip(Path::new(F), 1, 0x20).unwrap();
    assert_eq!(read(&world, F), b"aBcdef");
    world.truncate(Path::new(F), 3).unwrap();
    assert_eq!(read(&world, F), b"aBc");
    world.overwrite(Path::new(F), b"new").unwrap();
    let mut buffer = [0; 9];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 3);
    assert!(world.flip(Path::new(F), 3, 1).is_err());
    assert_eq!(read(&copy, F), b"abcdef");
    let env = copy.host("a");
    create(&env, "/a/../b");
    assert_eq!(copy.files(), [Path::new("/b"), Path::new(F)]);
    assert_eq!(world.files(), [Path::new(F)]);
}

#[test]
fn syncs_can_be_made_to_do_nothing() {
    let lost = |disable: fn(&SimWorld)| {
        let world = SimWorld::new(1);
        let env = world.host("a");
        disable(&world);
        for path in ["/one", "/two"] {
            let file = create(&env, path);
            file.write_at(b"x", 0).unwrap();
            file.sync_data().unwrap();
            env.disk.sync_dir(Path::new("/")).unwrap();
        }
        let cut = |seed| {
            let after = world.power_cut(seed);
            ["/one", "/two"].map(|p| after.read(Path::new(p)).is_ok_and(|b| b == b"x"))
        };
        let cuts: Vec<_> = (0..100).map(cut).collect();
        [0, 1].map(|i| cuts.iter().any(|c| !c[i]))
    };
    assert_eq!(lost(|_| {}), [false, false]);
    assert_eq!(lost(|w| w.disable_sync(SyncKind::Data, "")), [true, true]);
    assert_eq!(lost(|w| w.disable_sync(SyncKind::Data, "two")), [false, true]);
    assert_eq!(lost(|w| w.disable_nth_sync(SyncKind::Data, "", 1)), [true, false]);
    assert_eq!(lost(|w| w.disable_sync(SyncKind::Dir, "")), [true, true]);
    assert_eq!(lost(|w| w.disable_nth_sync(SyncKind::Dir, "", 2)), [false, true]);
}

#[test]
fn threads_may_share_a_world() {
    let world = SimWorld::new(1);
    std::thread::scope(|scope| {
        for t in 0..4 {
            let env = world.process("a");
            scope.spawn(move || {
                for i in 0..50 {
                    let file = create(&env, &format!("/{t}-{i}"));
                    write_all_at(&*file, &[t; 100], 0).unwrap();
                    file.sync_data().unwrap();
                }
            });
        }
    });
    assert_eq!((world.files().len(), world.counters().count(OpKind::SyncData)), (200, 200));
}
