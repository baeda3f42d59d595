//! The weak profile: hosts see each other's changes late, but never wrongly for longer than promised.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, write_all_at};

const SECOND: u64 = 1_000_000_000;

fn weak(seed: u64) -> (SimWorld, Env, Env) {
    let world = SimWorld::new(seed);
    world.weak(10 * SECOND);
    let (a, b) = (world.host("a"), world.host("b"));
    (world, a, b)
}

/// The results of `look` on host b in many worlds, one second apart, after host a acted.
fn looks<T: Ord + std::fmt::Debug>(act: impl Fn(&Env), look: impl Fn(&Env) -> T) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let run = || {
            let (world, a, b) = weak(seed);
            world.advance(100 * SECOND);
            act(&a);
            let mut shown = Vec::new();
            for _ in 0..9 {
                world.advance(SECOND);
                shown.push(look(&b));
            }
            world.advance(10 * SECOND);
            (shown, look(&b), look(&a))
        };
        let (shown, after, own) = run();
        assert_eq!((&shown, &after, &own), (&run().0, &run().1, &run().2), "seed {seed}");
        assert_eq!(after, own, "coherent after the staleness, seed {seed}");
        seen.extend(shown);
    }
    seen
}

#[test]
fn a_new_file_may_not_be_found_or_listed_for_a_while() {
    let create = |env: &Env| drop(env.disk.create_new(Path::new("/f")).unwrap());
    let found = looks(create, |env| env.disk.open_read(Path::new("/f")).is_ok());
    assert_eq!(found, BTreeSet::from([false, true]));
    let listed = looks(create, |env| env.disk.list_dir(Path::new("/")).unwrap().len());
    assert_eq!(listed, BTreeSet::from([0, 1]));
    let below = looks(
        |env| {
            env.disk.create_dir_all(Path::new("/d")).unwrap();
            env.disk.create_new(Path::new("/d/f")).unwrap();
        },
        |env| env.disk.stat(Path::new("/d/f")).map_err(|e| e.kind()).is_ok(),
    );
    assert_eq!(below, BTreeSet::from([false, true]));
}

#[test]
fn a_host_sees_its_own_doings_at_once() {
    let (_, a, b) = weak(1);
    for (i, env) in [&a, &b, &a, &b].into_iter().enumerate() {
        let path = format!("/{i}");
        let path = Path::new(&path);
        let file = env.disk.create_new(path).unwrap();
        write_all_at(&*file, b"own", 0).unwrap();
        assert_eq!(env.disk.stat(path).unwrap().len, 3);
        assert_eq!(env.disk.open_read(path).unwrap().stat().unwrap().len, 3);
        let mut buffer = [0; 9];
        assert_eq!((file.read_at(&mut buffer, 0).unwrap(), &buffer[..3]), (3, &b"own"[..]));
        assert!(env.disk.list_dir(Path::new("/")).unwrap().iter().any(|(n, _)| *n == i.to_string()));
        env.disk.unlink(path).unwrap();
        assert!(env.disk.stat(path).is_err());
    }
    let second = b.disk.create_new(Path::new("/f"));
    assert!(second.is_ok());
}

#[test]
fn names_are_taken_for_all_hosts_at_once() {
    for seed in 0..20 {
        let (_, a, b) = weak(seed);
        a.disk.create_new(Path::new("/f")).unwrap();
        assert_eq!(b.disk.create_new(Path::new("/f")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        b.disk.create_new(Path::new("/g")).unwrap();
        assert_eq!(
            a.disk.link(Path::new("/f"), Path::new("/g")).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    }
}

#[test]
fn a_tail_grows_late_and_may_read_as_zeros() {
    let write = |env: &Env| {
        let file = match env.disk.create_new(Path::new("/log")) {
            Ok(file) => file,
            Err(_) => env.disk.open_write(Path::new("/log")).unwrap(),
        };
        write_all_at(&*file, b"one", 0).unwrap();
        env.clock.sleep(4 * SECOND);
        write_all_at(&*file, b"two", 3).unwrap();
    };
    let contents = looks(write, |env| {
        let Ok(file) = env.disk.open_read(Path::new("/log")) else { return None };
        let mut buffer = [0; 9];
        let n = file.read_at(&mut buffer, 0).unwrap();
        Some(String::from_utf8(buffer[..n].to_vec()).unwrap())
    });
    let contents: Vec<_> = contents.iter().map(|c| c.as_deref()).collect();
    let expected = [
        None,
        Some(""),
        Some("\0\0\0"),
        Some("\0\0\0\0\0\0"),
        Some("one"),
        Some("one\0\0\0"),
        Some("onetwo"),
    ];
    assert_eq!(contents, expected);
    let lens = looks(write, |env| env.disk.stat(Path::new("/log")).map_or(9, |s| s.len));
    assert_eq!(lens, BTreeSet::from([0, 3, 6, 9]));
}

#[test]
fn a_cut_and_a_hole_are_seen_late() {
    let write = |env: &Env| {
        let file = match env.disk.create_new(Path::new("/f")) {
            Ok(file) => file,
            Err(_) => env.disk.open_write(Path::new("/f")).unwrap(),
        };
        write_all_at(&*file, b"four", 0).unwrap();
        env.clock.sleep(4 * SECOND);
        file.set_len(2).unwrap();
        env.clock.sleep(4 * SECOND);
        file.set_len(3).unwrap();
    };
    let contents = looks(write, |env| {
        let Ok(file) = env.disk.open_read(Path::new("/f")) else { return None };
        let mut buffer = [0; 9];
        let n = file.read_at(&mut buffer, 0).unwrap();
        Some(String::from_utf8(buffer[..n].to_vec()).unwrap())
    });
    let of = |text: &str| contents.contains(&Some(text.to_owned()));
    assert!(of("four") && of("fo") && of("fo\0"), "{contents:?}");
    assert!(!of("fou\0"), "{contents:?}");
}

#[test]
fn no_host_sees_a_file_go_back() {
    for seed in 0..50 {
        let (world, a, b) = weak(seed);
        let file = a.disk.create_new(Path::new("/f")).unwrap();
        world.advance(20 * SECOND);
        let reader = b.disk.open_read(Path::new("/f")).unwrap();
        let (mut len, mut first) = (0, 0);
        for i in 1..40u8 {
            write_all_at(&*file, &[i], u64::from(i)).unwrap();
            write_all_at(&*file, &[i], 0).unwrap();
            world.advance(SECOND / 2);
            let mut buffer = [0];
            reader.read_at(&mut buffer, 0).unwrap();
            assert!(buffer[0] >= first);
            first = buffer[0];
            let now = reader.stat().unwrap().len;
            assert!(now >= len);
            len = now;
        }
        assert!(len > 15 && first > 15, "no staler than promised");
    }
}

#[test]
fn processes_of_a_host_share_its_view() {
    let (world, a, _) = weak(1);
    a.disk.create_new(Path::new("/f")).unwrap();
    assert!(world.process("a").disk.open_read(Path::new("/f")).is_ok());
}

#[test]
fn a_removed_file_is_still_listed_but_not_opened() {
    let remove = |env: &Env| {
        let path = Path::new("/f");
        env.disk.create_new(path).unwrap();
        env.clock.sleep(20 * SECOND);
        env.disk.unlink(path).unwrap();
    };
    let listed = looks(remove, |env| env.disk.list_dir(Path::new("/")).unwrap().len());
    assert_eq!(listed, BTreeSet::from([0, 1]));
    let opened = looks(remove, |env| env.disk.open_read(Path::new("/f")).is_ok());
    assert_eq!(opened, BTreeSet::from([false]));
}

#[test]
fn there_is_no_append_and_links_can_be_missing() {
    let (world, a, _) = weak(1);
    assert_eq!(a.disk.open_append(Path::new("/f")).unwrap_err().kind(), ErrorKind::Unsupported);
    a.disk.create_new(Path::new("/f")).unwrap();
    a.disk.link(Path::new("/f"), Path::new("/g")).unwrap();
    world.set_links(false);
    assert_eq!(a.disk.link(Path::new("/f"), Path::new("/h")).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_weak_world_loses_power_like_any_other() {
    let (world, a, _) = weak(1);
    let file = a.disk.create_new(Path::new("/f")).unwrap();
    write_all_at(&*file, b"synced", 0).unwrap();
    file.sync_data().unwrap();
    a.disk.sync_dir(Path::new("/")).unwrap();
    write_all_at(&*file, b" not", 6).unwrap();
    for seed in 0..20 {
        let after = world.power_cut(seed);
        assert!(after.read(Path::new("/f")).unwrap().starts_with(b"synced"));
        assert!(after.host("c").disk.open_read(Path::new("/f")).is_ok());
        assert!(after.host("c").disk.open_append(Path::new("/f")).is_err(), "still weak");
    }
}

#[test]
fn a_second_name_is_counted_late_and_never_later_than_promised() {
    let mut late = 0;
    for seed in 0..40 {
        let (world, a, b) = weak(seed);
        let (path, second) = (Path::new("/f"), Path::new("/g"));
        a.disk.create_new(path).unwrap();
        world.advance(11 * SECOND);
        assert_eq!(a.disk.stat(path).unwrap().links, 1);
        b.disk.link(path, second).unwrap();
        assert_eq!(b.disk.stat(path).unwrap().links, 2, "its own change at once");
        world.advance(5 * SECOND);
        late += u32::from(a.disk.stat(path).unwrap().links == 1);
        world.advance(11 * SECOND);
        assert_eq!(a.disk.stat(path).unwrap().links, 2);
    }
    assert!(late > 10 && late < 40, "{late}");
}
