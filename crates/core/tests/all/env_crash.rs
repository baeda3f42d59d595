//! Power cuts: no image breaks a promise, and the images show every loss that the promises allow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, write_all_at};
use proptest::prelude::*;

const SECTOR: usize = 512;

fn root() -> &'static Path {
    Path::new("/")
}

fn cuts(world: &SimWorld, path: &str) -> Vec<Option<Vec<u8>>> {
    (0..400).map(|seed| world.power_cut(seed).read(Path::new(path)).ok()).collect()
}

fn world_with(env: impl Fn(&Env)) -> SimWorld {
    let world = SimWorld::new(5);
    env(&world.host("a"));
    world
}

#[test]
fn the_same_seed_gives_the_same_image() {
    let world = world_with(|env| {
        let file = env.disk.create_new(Path::new("/f")).unwrap();
        (0..20).for_each(|i| write_all_at(&*file, &[i as u8; 700], i * 700).unwrap());
    });
    let image = |seed| world.power_cut(seed).read(Path::new("/f")).ok();
    assert!((0..50).all(|seed| image(seed) == image(seed)));
    assert!((0..50).map(image).collect::<BTreeSet<_>>().len() > 10);
}

#[test]
fn a_synced_file_without_a_synced_entry_may_be_lost() {
    let images = cuts(
        &world_with(|env| {
            let file = env.disk.create_new(Path::new("/f")).unwrap();
            file.write_at(b"synced", 0).unwrap();
            file.sync_data().unwrap();
        }),
        "/f",
    );
    let seen: BTreeSet<_> = images.into_iter().collect();
    assert_eq!(seen, BTreeSet::from([None, Some(b"synced".to_vec())]));
}

#[test]
fn an_entry_in_a_directory_without_a_synced_entry_may_be_lost() {
    let images = cuts(
        &world_with(|env| {
            env.disk.create_dir_all(Path::new("/d/e")).unwrap();
            let file = env.disk.create_new(Path::new("/d/e/f")).unwrap();
            file.sync_data().unwrap();
            env.disk.sync_dir(Path::new("/d/e")).unwrap();
            env.disk.sync_dir(Path::new("/")).unwrap();
        }),
        "/d/e/f",
    );
    assert!(images.contains(&None) && images.contains(&Some(Vec::new())), "/d was not synced");
}

#[test]
fn unsynced_writes_are_torn_at_sectors_reordered_and_cut() {
    let images = cuts(
        &world_with(|env| {
            let file = env.disk.create_new(Path::new("/f")).unwrap();
            env.disk.sync_dir(root()).unwrap();
            file.write_at(&[1; 4 * SECTOR], 0).unwrap();
            file.write_at(&[2; 4 * SECTOR], 4 * SECTOR as u64).unwrap();
        }),
        "/f",
    );
    let images: Vec<Vec<u8>> = images.into_iter().map(|i| i.expect("the entry is synced")).collect();
    let mut seen = BTreeSet::new();
    for image in &images {
        assert!([0, 4 * SECTOR, 8 * SECTOR].contains(&image.len()), "a length the file never had");
        for (n, sector) in image.chunks(SECTOR).enumerate() {
            assert!(sector.iter().all(|b| *b == sector[0]), "torn within a sector");
            assert!([0, 1 + n as u8 / 4].contains(&sector[0]));
        }
        let there: Vec<bool> = image.chunks(SECTOR).map(|s| s[0] != 0).collect();
        let whole = |part: &[bool]| part.iter().all(|t| *t);
        let none = |part: &[bool]| part.iter().all(|t| !*t);
        match there.len() {
            0 => {
                seen.insert("nothing");
            }
            4 => {
                seen.insert("first length");
            }
            _ => {
                let (first, second) = there.split_at(4);
                seen.extend((none(first) && none(second)).then_some("length without bytes"));
                seen.extend((whole(first) && whole(second)).then_some("everything"));
                seen.extend((none(first) && whole(second)).then_some("reordered"));
                seen.extend((!none(second) && !whole(second)).then_some("torn"));
            }
        }
    }
    let all = ["everything", "first length", "length without bytes", "nothing", "reordered", "torn"];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn a_cut_is_kept_or_not_and_what_grows_after_it_is_old_or_zero() {
    let images = cuts(
        &world_with(|env| {
            let file = env.disk.create_new(Path::new("/f")).unwrap();
            env.disk.sync_dir(root()).unwrap();
            write_all_at(&*file, &[1; 4 * SECTOR], 0).unwrap();
            file.sync_data().unwrap();
            file.set_len(SECTOR as u64).unwrap();
            file.set_len(3 * SECTOR as u64).unwrap();
        }),
        "/f",
    );
    let mut seen = BTreeSet::new();
    for image in images {
        let image = image.expect("the entry is synced");
        assert!(image[..SECTOR].iter().all(|b| *b == 1), "what was not cut is durable");
        seen.insert((image.len() / SECTOR, image.get(SECTOR).copied()));
    }
    let allowed = [(4, Some(0)), (4, Some(1)), (1, None), (3, Some(0)), (3, Some(1))];
    assert_eq!(seen, BTreeSet::from(allowed));
}

#[test]
fn a_synced_cut_is_durable() {
    let images = cuts(
        &world_with(|env| {
            let file = env.disk.create_new(Path::new("/f")).unwrap();
            env.disk.sync_dir(root()).unwrap();
            write_all_at(&*file, &[1; 4 * SECTOR], 0).unwrap();
            file.sync_data().unwrap();
            file.set_len(100).unwrap();
            file.set_len(300).unwrap();
            file.sync_data().unwrap();
        }),
        "/f",
    );
    let mut expected = vec![1; 100];
    expected.resize(300, 0);
    assert!(images.iter().all(|image| image.as_ref() == Some(&expected)));
}

#[test]
fn an_overwritten_sector_shows_one_of_its_states_in_order() {
    let images = cuts(
        &world_with(|env| {
            let file = env.disk.create_new(Path::new("/f")).unwrap();
            env.disk.sync_dir(root()).unwrap();
            file.write_at(b"aaaa", 0).unwrap();
            file.sync_data().unwrap();
            file.write_at(b"bb", 0).unwrap();
            file.write_at(b"cc", 2).unwrap();
        }),
        "/f",
    );
    let seen: BTreeSet<_> = images.into_iter().map(|i| String::from_utf8(i.unwrap()).unwrap()).collect();
    let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
    assert_eq!(seen, ["aaaa", "bbaa", "bbcc"]);
}

#[test]
fn a_rename_is_old_or_new_and_never_neither() {
    let world = world_with(|env| {
        for (path, content) in [("/new", b"2"), ("/board", b"1")] {
            let file = env.disk.create_new(Path::new(path)).unwrap();
            file.write_at(content, 0).unwrap();
            file.sync_data().unwrap();
        }
        env.disk.sync_dir(root()).unwrap();
        env.disk.rename(Path::new("/new"), Path::new("/board")).unwrap();
    });
    let seen: BTreeSet<_> = (0..100)
        .map(|seed| {
            let after = world.power_cut(seed);
            (after.read(Path::new("/board")).unwrap(), after.read(Path::new("/new")).ok())
        })
        .collect();
    assert_eq!(seen, BTreeSet::from([(b"1".to_vec(), Some(b"2".to_vec())), (b"2".to_vec(), None)]));
}

#[test]
fn a_name_taken_anew_does_not_lose_the_file_that_was_moved_away() {
    let world = world_with(|env| {
        let file = env.disk.create_new(Path::new("/a")).unwrap();
        file.write_at(b"old", 0).unwrap();
        file.sync_data().unwrap();
        env.disk.sync_dir(root()).unwrap();
        env.disk.rename(Path::new("/a"), Path::new("/b")).unwrap();
        env.disk.create_new(Path::new("/a")).unwrap();
    });
    let seen: BTreeSet<_> = (0..200)
        .map(|seed| {
            let after = world.power_cut(seed);
            ["/a", "/b"].map(|path| after.read(Path::new(path)).ok())
        })
        .collect();
    let old = || Some(b"old".to_vec());
    assert_eq!(seen, BTreeSet::from([[old(), None], [None, old()], [Some(Vec::new()), old()]]));
}

#[test]
fn a_rename_without_a_synced_file_may_show_nothing_in_it() {
    let images = cuts(
        &world_with(|env| {
            let file = env.disk.create_new(Path::new("/tmp")).unwrap();
            file.write_at(b"content", 0).unwrap();
            env.disk.rename(Path::new("/tmp"), Path::new("/final")).unwrap();
            env.disk.sync_dir(root()).unwrap();
        }),
        "/final",
    );
    assert!(images.contains(&Some(Vec::new())) && images.contains(&Some(vec![0; 7])));
    assert!(images.contains(&Some(b"content".to_vec())));
    assert!(!images.contains(&None));
}

#[test]
fn unsynced_links_and_unlinks_may_be_undone() {
    let make = |env: &Env| {
        env.disk.create_new(Path::new("/a")).unwrap().sync_data().unwrap();
        env.disk.create_new(Path::new("/b")).unwrap().sync_data().unwrap();
        env.disk.sync_dir(root()).unwrap();
        env.disk.link(Path::new("/a"), Path::new("/c")).unwrap();
        env.disk.unlink(Path::new("/b")).unwrap();
    };
    let seen = |world: &SimWorld| -> BTreeSet<_> { (0..100).map(|s| world.power_cut(s).files()).collect() };
    let paths = |names: &str| names.chars().map(|c| root().join(c.to_string())).collect::<Vec<_>>();
    let unsynced = seen(&world_with(make));
    assert_eq!(unsynced, ["a", "ab", "abc", "ac"].map(paths).into());
    let synced = seen(&world_with(|env| {
        make(env);
        env.disk.sync_dir(root()).unwrap();
    }));
    assert_eq!(synced, [paths("ac")].into());
}

#[test]
fn a_rename_between_directories_is_durable_once_its_target_is_synced() {
    let seen = |sync: &'static str| -> BTreeSet<_> {
        let world = world_with(|env| {
            env.disk.create_dir_all(Path::new("/from")).unwrap();
            env.disk.create_dir_all(Path::new("/to")).unwrap();
            env.disk.sync_dir(root()).unwrap();
            env.disk.create_new(Path::new("/from/f")).unwrap();
            env.disk.sync_dir(Path::new("/from")).unwrap();
            env.disk.rename(Path::new("/from/f"), Path::new("/to/f")).unwrap();
            env.disk.sync_dir(Path::new(sync)).unwrap();
        });
        (0..100).map(|s| world.power_cut(s).files()).collect()
    };
    let (old, new) = (vec![Path::new("/from/f").to_owned()], vec![Path::new("/to/f").to_owned()]);
    assert_eq!(seen("/to"), [new.clone()].into());
    assert_eq!(seen("/from"), [old, new].into());
}

#[test]
fn what_survived_a_power_cut_survives_the_next() {
    let world = world_with(|env| {
        let file = env.disk.create_new(Path::new("/f")).unwrap();
        file.write_at(&[1; 5000], 0).unwrap();
    });
    for seed in 0..50 {
        let once = world.power_cut(seed);
        let twice = once.power_cut(seed + 1);
        assert_eq!(once.files(), twice.files());
        assert_eq!(once.read(Path::new("/f")).ok(), twice.read(Path::new("/f")).ok());
    }
}

/// A random step of a program that uses four files.
#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Write(u8, u16, u16),
    Sync(u8),
    SyncDir,
    Rename(u8, u8),
    Unlink(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4u8).prop_map(Step::Create),
        (0..4u8, 0..2000u16, 1..2000u16).prop_map(|(f, o, n)| Step::Write(f, o, n)),
        (0..4u8).prop_map(Step::Sync),
        Just(Step::SyncDir),
        (0..4u8, 0..4u8).prop_map(|(a, b)| Step::Rename(a, b)),
        (0..4u8).prop_map(Step::Unlink),
    ]
}

/// The promises about a file: every value that each byte had since (and at) the last sync.
#[derive(Debug, Clone, Default)]
struct Promise {
    now: Vec<u8>,
    lens: BTreeSet<usize>,
    bytes: BTreeMap<usize, BTreeSet<u8>>,
}

impl Promise {
    fn sync(&mut self) {
        self.lens = BTreeSet::from([self.now.len()]);
        self.bytes = self.now.iter().enumerate().map(|(i, b)| (i, BTreeSet::from([*b]))).collect();
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if self.now.len() < end {
            for i in self.now.len()..end {
                self.bytes.entry(i).or_default().insert(0);
            }
            self.now.resize(end, 0);
        }
        self.now[offset..end].copy_from_slice(data);
        for (i, byte) in data.iter().enumerate() {
            self.bytes.entry(offset + i).or_default().insert(*byte);
        }
        self.lens.insert(self.now.len());
    }

    fn allows(&self, image: &[u8]) -> bool {
        self.lens.contains(&image.len()) && image.iter().enumerate().all(|(i, b)| self.bytes[&i].contains(b))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares with a model: a name leads to a file that it had at or since the last `sync_dir`, and the file has
    /// bytes and a length that it had at or since its last `sync_data`.
    #[test]
    fn only_allowed_images(steps in prop::collection::vec(step(), 1..40), seed in any::<u64>()) {
        let world = SimWorld::new(seed);
        let env = world.host("a");
        let path = |f: u8| Path::new("/").join(f.to_string());
        let mut promises: Vec<Promise> = Vec::new();
        // By name: the current file (if any), and every one that the name had at or since the last sync of the root.
        let mut names: [Option<usize>; 4] = [None; 4];
        let mut past: [BTreeSet<Option<usize>>; 4] = std::array::from_fn(|_| BTreeSet::from([None]));
        for (n, step) in steps.iter().enumerate() {
            match *step {
                Step::Create(f) => {
                    prop_assert_eq!(env.disk.create_new(&path(f)).is_ok(), names[usize::from(f)].is_none());
                    if names[usize::from(f)].is_none() {
                        promises.push(Promise { lens: BTreeSet::from([0]), ..Promise::default() });
                        names[usize::from(f)] = Some(promises.len() - 1);
                    }
                }
                Step::Write(f, offset, len) => if let Some(id) = names[usize::from(f)] {
                    let data = vec![n as u8 + 1; usize::from(len)];
                    let file = env.disk.open_write(&path(f)).unwrap();
                    write_all_at(&*file, &data, u64::from(offset)).unwrap();
                    promises[id].write(usize::from(offset), &data);
                },
                Step::Sync(f) => if let Some(id) = names[usize::from(f)] {
                    env.disk.open_write(&path(f)).unwrap().sync_data().unwrap();
                    promises[id].sync();
                },
                Step::SyncDir => {
                    env.disk.sync_dir(root()).unwrap();
                    past = names.map(|id| BTreeSet::from([id]));
                }
                Step::Rename(a, b) => {
                    let moved = env.disk.rename(&path(a), &path(b)).is_ok();
                    prop_assert_eq!(moved, names[usize::from(a)].is_some());
                    if moved && a != b {
                        names[usize::from(b)] = names[usize::from(a)].take();
                    }
                }
                Step::Unlink(f) => {
                    let gone = env.disk.unlink(&path(f)).is_ok();
                    prop_assert_eq!(gone, names[usize::from(f)].take().is_some());
                }
            }
            for (now, past) in names.iter().zip(&mut past) {
                past.insert(*now);
            }
        }
        for cut in 0..10 {
            let after = world.power_cut(cut);
            for f in 0..4u8 {
                let image = after.read(&path(f)).ok();
                let allowed = past[usize::from(f)].iter().any(|id| match (id, &image) {
                    (None, None) => true,
                    (Some(id), Some(image)) => promises[*id].allows(image),
                    _ => false,
                });
                prop_assert!(allowed, "file {} of cut {} of world {}", f, cut, seed);
            }
        }
    }
}
