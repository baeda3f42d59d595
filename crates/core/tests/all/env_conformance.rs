//! The promises of every disk, checked on that of the operating system, a simulated host's and `memory:`; also the
//! real clock, randomness and identity.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env, FileKind, Lifetime, read_exact_at, write_all_at};

/// Runs `check` on every disk, each with an empty folder of its own.
fn on_every_disk(check: impl Fn(&Arc<dyn Disk>, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    check(&Env::real().disk, folder.path());
    for env in [SimWorld::new(1).host("a"), SimWorld::memory()] {
        let root = Path::new("/root/of/all");
        env.disk.create_dir_all(root).unwrap();
        check(&env.disk, root);
    }
}

fn content(disk: &Arc<dyn Disk>, path: &Path) -> Vec<u8> {
    let file = disk.open_read(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.stat().unwrap().len).unwrap()];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn put(disk: &Arc<dyn Disk>, path: &Path, bytes: &[u8]) {
    write_all_at(&*disk.create_new(path).unwrap(), bytes, 0).unwrap();
}

fn kind_of<T>(result: std::io::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("should have failed"),
        Err(e) => e.kind(),
    }
}

#[test]
fn bytes_come_back_from_where_they_were_written() {
    on_every_disk(|disk, root| {
        let path = root.join("f");
        let file = disk.create_new(&path).unwrap();
        write_all_at(&*file, b"hello world", 0).unwrap();
        write_all_at(&*file, b"W", 6).unwrap();
        write_all_at(&*file, b"!", 15).unwrap();
        assert_eq!(content(disk, &path), b"hello World\0\0\0\0!");
        let mut buffer = [9; 8];
        assert_eq!(file.read_at(&mut buffer, 13).unwrap(), 3);
        assert_eq!(&buffer[..4], b"\0\0!\x09");
        assert_eq!(file.read_at(&mut buffer, 16).unwrap(), 0);
        assert_eq!(file.read_at(&mut buffer, 1 << 40).unwrap(), 0);
        let end = read_exact_at(&*file, &mut buffer, 13);
        assert_eq!(kind_of(end), ErrorKind::UnexpectedEof);
        file.start_writeback(0, 16);
        file.sync_data().unwrap();
        disk.sync_dir(root).unwrap();

        let again = disk.open_write(&path).unwrap();
        write_all_at(&*again, b"J", 0).unwrap();
        assert_eq!(content(disk, &path), b"Jello World\0\0\0\0!");
        assert!(disk.open_read(&path).unwrap().write_at(b"x", 0).is_err());
        assert!(file.write_at(b"x", u64::MAX).is_err());
        assert_eq!(file.stat().unwrap().len, 16);
    });
}

#[test]
fn a_length_is_cut_and_grows_by_zeros() {
    on_every_disk(|disk, root| {
        let path = root.join("f");
        let file = disk.create_new(&path).unwrap();
        write_all_at(&*file, b"hello world", 0).unwrap();
        file.set_len(5).unwrap();
        assert_eq!(content(disk, &path), b"hello");
        file.set_len(8).unwrap();
        assert_eq!(content(disk, &path), b"hello\0\0\0", "what was cut does not come back");
        file.sync_data().unwrap();
        write_all_at(&*file, b"!", 9).unwrap();
        assert_eq!(content(disk, &path), b"hello\0\0\0\0!");
        file.set_len(0).unwrap();
        assert_eq!(file.stat().unwrap().len, 0);
        assert!(disk.open_read(&path).unwrap().set_len(3).is_err());
        assert!(file.set_len(u64::MAX).is_err());
        assert_eq!(content(disk, &path), b"");
    });
}

#[test]
fn appends_say_where_they_went() {
    on_every_disk(|disk, root| {
        let path = root.join("log");
        let one = disk.open_append(&path).unwrap();
        let two = disk.open_append(&path).unwrap();
        assert_eq!(one.append(b"abc").unwrap(), 0);
        assert_eq!(two.append(b"defg").unwrap(), 3);
        assert_eq!(one.append(b"h").unwrap(), 7);
        let mut buffer = [0; 2];
        read_exact_at(&*one, &mut buffer, 6).unwrap();
        assert_eq!(&buffer, b"gh");
        assert_eq!(kind_of(one.write_at(b"x", 0)), ErrorKind::InvalidInput);
        let plain = disk.open_write(&path).unwrap();
        assert_eq!(kind_of(plain.append(b"x")), ErrorKind::InvalidInput);
        assert_eq!(content(disk, &path), b"abcdefgh");
    });
}

#[test]
fn appends_of_many_threads_never_overlap() {
    on_every_disk(|disk, root| {
        let path = root.join("log");
        let shared = disk.open_append(&path).unwrap();
        let places: Vec<(u64, u8)> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4u8)
                .map(|id| {
                    // Two threads share a handle, two have their own.
                    let file = if id < 2 { shared.clone() } else { disk.open_append(&path).unwrap() };
                    scope.spawn(move || {
                        let append = |_| (file.append(&[id; 10]).unwrap(), id);
                        (0..100).map(append).collect::<Vec<_>>()
                    })
                })
                .collect();
            writers.into_iter().flat_map(|w| w.join().unwrap()).collect()
        });
        let bytes = content(disk, &path);
        assert_eq!(bytes.len(), 4000);
        for (place, id) in places {
            assert_eq!(bytes[place as usize..][..10], [id; 10], "at {place}");
        }
    });
}

#[test]
fn taken_names_are_refused_and_missing_ones_not_found() {
    on_every_disk(|disk, root| {
        let (a, b) = (root.join("a"), root.join("b"));
        assert_eq!(kind_of(disk.open_read(&a)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.open_write(&a)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.stat(&a)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.unlink(&a)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.link(&a, &b)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.rename(&a, &b)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.list_dir(&a)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.sync_dir(&a)), ErrorKind::NotFound);
        assert_eq!(kind_of(disk.create_new(&a.join("x"))), ErrorKind::NotFound);
        put(disk, &a, b"a");
        put(disk, &b, b"b");
        assert_eq!(kind_of(disk.create_new(&a)), ErrorKind::AlreadyExists);
        assert_eq!(kind_of(disk.link(&a, &b)), ErrorKind::AlreadyExists);
        assert_eq!(kind_of(disk.create_dir_all(&a)), ErrorKind::AlreadyExists);
        assert_eq!(kind_of(disk.create_dir_all(&a.join("x"))), ErrorKind::NotADirectory);
        assert_eq!(kind_of(disk.open_read(&a.join("x"))), ErrorKind::NotADirectory);
        assert_eq!(content(disk, &b), b"b");
    });
}

#[test]
fn names_of_a_file_are_counted_and_move_the_time_of_its_inode() {
    on_every_disk(|disk, root| {
        let (a, b) = (root.join("a"), root.join("b"));
        put(disk, &a, b"1");
        let file = disk.open_plain(&a, false).unwrap();
        let (links, before) = (file.stat().unwrap().links, file.inode_time().unwrap());
        assert_eq!((links, disk.stat(&a).unwrap().links), (1, 1));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let changed = disk.stat_with_time(&a).unwrap().1;
        disk.link(&a, &b).unwrap();
        assert!(file.inode_time().unwrap() > before);
        assert_eq!(disk.stat_with_time(&a).unwrap().1, changed, "a name changes no bytes");
        assert_eq!((file.stat().unwrap().links, disk.stat(&b).unwrap().links), (2, 2));
        disk.unlink(&a).unwrap();
        assert_eq!((file.stat().unwrap().links, disk.stat_with_time(&b).unwrap().0.links), (1, 1));
    });
}

#[test]
fn a_process_has_ended_only_where_that_is_certain() {
    let world = SimWorld::new(1);
    let ended = world.process("a");
    let lifetime = ended.identity.lifetime();
    world.kill(&ended);
    let (own, namesake) = (world.process("a").identity, world.namesake("a").identity);
    assert!(own.has_ended(ended.identity.process(), &lifetime));
    assert!(
        !own.has_ended(own.process(), &own.lifetime()) && namesake.has_ended(own.process(), &own.lifetime())
    );
    let real = Env::real().identity;
    if real.lifetime().is_known() {
        let (process, own) = (real.process(), real.lifetime());
        assert!(!real.has_ended(process, &own));
        let other = Lifetime { started: own.started + 1, ..own.clone() };
        assert!(real.has_ended(process, &other), "the number was given away again");
        let other = Lifetime { boot: "another".into(), ..own.clone() };
        assert!(real.has_ended(process, &other));
        let other = Lifetime { namespace: own.namespace + 1, ..other };
        assert!(real.has_ended(process, &other));
        let other = Lifetime { boot: own.boot.clone(), ..other };
        assert!(!real.has_ended(process, &other), "nobody here sees the processes of another namespace");
        assert!(!real.has_ended(process, &Lifetime::default()));
    }
}

#[test]
fn names_move_link_and_vanish_while_handles_stay() {
    on_every_disk(|disk, root| {
        let [a, b, c] = ["a", "b", "c"].map(|n| root.join(n));
        put(disk, &a, b"first");
        put(disk, &b, b"second");
        let old = disk.open_read(&b).unwrap();
        let inode = disk.stat(&a).unwrap().inode;
        assert_ne!(inode, disk.stat(&b).unwrap().inode);
        disk.link(&a, &c).unwrap();
        disk.rename(&a, &b).unwrap();
        assert_eq!(disk.stat(&b).unwrap().inode, inode);
        assert_eq!(disk.stat(&c).unwrap().inode, inode);
        assert_eq!(kind_of(disk.stat(&a)), ErrorKind::NotFound);
        assert_eq!(content(disk, &b), b"first");
        let mut buffer = [0; 6];
        read_exact_at(&*old, &mut buffer, 0).unwrap();
        assert_eq!(&buffer, b"second");
        // Two names of one file: there is nothing to rename.
        disk.rename(&b, &c).unwrap();
        assert_eq!(content(disk, &b), b"first");
        disk.unlink(&b).unwrap();
        assert_eq!(content(disk, &c), b"first");
        let last = disk.open_write(&c).unwrap();
        disk.unlink(&c).unwrap();
        write_all_at(&*last, b"F", 0).unwrap();
        assert_eq!(last.stat().unwrap().len, 5);
        assert!(disk.list_dir(root).unwrap().is_empty());
    });
}

#[test]
fn directories_nest_list_and_go_when_empty() {
    on_every_disk(|disk, root| {
        let deep = root.join("x/y/z");
        disk.create_dir_all(&deep).unwrap();
        disk.create_dir_all(&deep).unwrap();
        put(disk, &root.join("x/file"), b"1");
        let listed: BTreeSet<_> = disk
            .list_dir(&root.join("x"))
            .unwrap()
            .into_iter()
            .map(|(n, k)| (n, k == FileKind::File))
            .collect();
        assert_eq!(listed, BTreeSet::from([("file".to_owned(), true), ("y".to_owned(), false)]));
        assert_eq!(disk.stat(&deep).unwrap().kind, FileKind::Directory);
        assert_eq!(kind_of(disk.remove_dir(&root.join("x"))), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind_of(disk.remove_dir(&root.join("x/file"))), ErrorKind::NotADirectory);
        assert!(disk.unlink(&deep).is_err());
        assert!(disk.link(&deep, &root.join("l")).is_err());
        assert!(disk.rename(&root.join("x"), &root.join("x/y/inside")).is_err());
        assert!(disk.rename(&root.join("x/file"), &root.join("x/y")).is_err());
        assert_eq!(kind_of(disk.list_dir(&root.join("x/file"))), ErrorKind::NotADirectory);
        disk.rename(&root.join("x"), &root.join("moved")).unwrap();
        assert_eq!(content(disk, &root.join("moved/file")), b"1");
        disk.remove_dir(&root.join("moved/y/z")).unwrap();
        assert_eq!(kind_of(disk.stat(&root.join("moved/y/z"))), ErrorKind::NotFound);
        // A directory may open or not, but never reads as a file.
        let read = disk.open_read(root).and_then(|f| f.read_at(&mut [0; 4], 0));
        assert_eq!(kind_of(read), ErrorKind::IsADirectory);
    });
}

#[test]
fn facts_space_and_absolute_paths() {
    on_every_disk(|disk, root| {
        let path = root.join("f");
        put(disk, &path, b"12345");
        let stat = disk.stat(&path).unwrap();
        let handle = disk.open_read(&path).unwrap().stat().unwrap();
        assert_eq!((stat.kind, stat.len), (FileKind::File, 5));
        assert_eq!((handle.len, handle.inode, handle.uid), (5, stat.inode, stat.uid));
        let opened = disk.open_read(&path).unwrap();
        let timed = disk.stat_with_time(&path).unwrap();
        assert_eq!(timed, opened.stat_with_time().unwrap());
        assert_eq!(timed.0, stat, "facts are the same with the time and without it");
        assert!(timed.1 > 1_600_000_000_000_000_000);
        assert_eq!(disk.stat(root).unwrap(), disk.stat_with_time(root).unwrap().0);
        assert_eq!(disk.stat(root).unwrap().kind, FileKind::Directory);
        assert_eq!(disk.stat(&root.join("none")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        let space = disk.space(root).unwrap();
        assert!(space.free_bytes > 0 && space.free_inodes > 0);
        let real = disk.absolute(root).unwrap();
        assert!(real.is_absolute());
        assert_eq!(disk.absolute(&root.join("no/../such/./file")).unwrap(), real.join("such/file"));
    });
}

#[test]
fn the_real_disk_resolves_links() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("target")).unwrap();
    std::os::unix::fs::symlink(root.join("target"), root.join("link")).unwrap();
    std::os::unix::fs::symlink(root.join("nowhere"), root.join("dangling")).unwrap();
    let disk = Env::real().disk;
    assert_eq!(disk.absolute(&root.join("link/new")).unwrap(), root.join("target/new"));
    let mut kinds = disk.list_dir(&root).unwrap();
    kinds.sort_by(|a, b| a.0.cmp(&b.0));
    let kinds: Vec<_> = kinds.into_iter().map(|(_, k)| k).collect();
    assert_eq!(kinds, [FileKind::Other, FileKind::Other, FileKind::Directory]);
}

#[test]
fn the_real_disk_opens_plain_files_alone_where_others_may_put_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, at) = (Env::real().disk, |name: &str| folder.path().join(name));
    put(&disk, &at("file"), b"x");
    std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    assert!(disk.open_plain(&at("file"), false).is_ok() && disk.open_plain(&at("file"), true).is_ok());
    for name in ["link", "dangling", "pipe"] {
        for write in [false, true] {
            assert_eq!(kind_of(disk.open_plain(&at(name), write)), ErrorKind::InvalidInput, "{name} {write}");
        }
        assert_eq!(kind_of(disk.open_append(&at(name))), ErrorKind::InvalidInput, "{name}");
        let listed = disk.list_dir(folder.path()).unwrap();
        assert!(listed.contains(&(name.to_owned(), FileKind::Other)), "{listed:?}");
    }
    assert!(!at("nowhere").exists());
    assert_eq!(kind_of(disk.open_plain(&at("absent"), false)), ErrorKind::NotFound);
    assert_ne!(kind_of(disk.open_plain(folder.path(), false)), ErrorKind::NotFound);
}

#[test]
fn what_is_made_alike_takes_its_folders_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    // The strictest; files of other tests in this process belong to their owner in any case.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let folder = tempfile::tempdir().unwrap();
    let disk = Env::real().disk;
    for (mode, file_mode) in [(0o1777, 0o644), (0o755, 0o644), (0o2750, 0o640), (0o700, 0o600)] {
        let above = folder.path().join(format!("{mode:o}"));
        std::fs::create_dir(&above).unwrap();
        std::fs::set_permissions(&above, std::fs::Permissions::from_mode(mode)).unwrap();
        disk.create_dir_alike(&above.join("inner")).unwrap();
        disk.create_dir_alike(&above.join("inner")).unwrap();
        let of = |name: &str| std::fs::metadata(above.join(name)).unwrap().mode() & 0o7777;
        assert_eq!(of("inner"), mode);
        disk.create_alike(&above.join("file")).unwrap();
        assert_eq!(kind_of(disk.create_alike(&above.join("file"))), ErrorKind::AlreadyExists);
        disk.open_append(&above.join("board")).unwrap();
        assert_eq!((of("file"), of("board")), (file_mode, file_mode));
        assert_eq!(disk.stat(&above).unwrap().mode, mode);
        assert_eq!(disk.stat(&above).unwrap().is_shared(), mode == 0o1777);
    }
}

#[test]
fn the_real_process_knows_itself_and_whether_others_live() {
    let me = Env::real().identity;
    assert_eq!(me.process(), std::process::id());
    assert!(me.alive(me.process()));
    assert!(me.alive(1), "a process of another user is alive");
    assert!(!me.host().is_empty());
    assert_eq!(me.user_name(0), "root");
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    assert!(me.alive(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!me.alive(child.id()));
    assert!(!me.alive(0) && !me.alive(u32::MAX));
}

#[test]
fn the_real_clock_runs_and_random_bytes_fill_the_whole_buffer() {
    let env = Env::real();
    let (wall, mono) = (env.clock.now(), env.clock.monotonic());
    env.clock.sleep(2_000_000);
    assert!(env.clock.monotonic() - mono >= 2_000_000);
    assert!(env.clock.now() > wall && wall > 1_700_000_000_000_000_000);
    let draw = || {
        let mut bytes = vec![0; 1000];
        env.rand.fill(&mut bytes);
        bytes
    };
    let (a, b) = (draw(), draw());
    assert_ne!(a, b);
    assert!(a.chunks(16).all(|c| c.iter().any(|x| *x != 0)));
}

#[test]
fn clones_of_a_memory_disk_are_one_disk_and_others_are_not() {
    let (env, other) = (SimWorld::memory(), SimWorld::memory());
    put(&env.clone().disk, Path::new("/f"), b"x");
    assert_eq!(content(&env.disk, Path::new("/f")), b"x");
    assert_eq!(kind_of(other.disk.stat(Path::new("/f"))), ErrorKind::NotFound);
}
