//! The harm that a second user of a shared store can do to the first: he can only add files of his own, and those
//! count for him alone.

use std::path::{Path, PathBuf};

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::Lifetime;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::write_all_at;
use fieldstone_core::request::Request;
use fieldstone_format::attempt::Origin;
use fieldstone_format::board::Slot;
use fieldstone_format::log::{self, CommitRecord, Decision, LogHeader, encode_frame};
use fieldstone_format::{Id, claim};
use fieldstone_journal::Session;
use fieldstone_store::api::ListOptions;

const KEY: &str = "run=a,variable=t";

/// A store whose folders an administrator made for all: everyone adds files, no one removes another's. Alice has a
/// field.
fn shared() -> (SimWorld, Store) {
    let world = shared_folder();
    let alice = open(&world, "alice");
    flush_one(&alice, KEY, b"alice's");
    (world, alice)
}

/// Bob makes a file.
fn put_as_bob(world: &SimWorld, name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(ROOT).join(name);
    write_all_at(&*world.process("bob").disk.create_new(&path).unwrap(), bytes, 0).unwrap();
    path
}

fn store_id(world: &SimWorld) -> Id {
    let log = files(world, "logs").into_iter().find(|path| path.to_string_lossy().ends_with(".log")).unwrap();
    let bytes = world.read(&log).unwrap();
    let length = LogHeader::length(&bytes[..log::HEADER_PREFIX]).unwrap();
    LogHeader::decode(&bytes[..length as usize]).unwrap().store
}

/// Bob makes a log with one forged commit.
fn forge(world: &SimWorld, writer: Id, record: CommitRecord) {
    let header = LogHeader {
        version: 1,
        writer,
        store: store_id(world),
        created: 0,
        uid: BOB,
        process: 1,
        host: "bob".into(),
        user: "bob".into(),
        program: "forge".into(),
        schema: String::new(),
        sealed: Vec::new(),
        origin: Origin::default(),
        owner: None,
        lifetime: Lifetime::default(),
    }
    .encode();
    let record = CommitRecord { sequence: 1, ..record };
    let (frame, _) = encode_frame(header.len() as u64, &record, b"");
    put_as_bob(world, &format!("logs/{}", log::file_name(writer)), &[header, frame].concat());
}

fn check_alice(world: &SimWorld, alice: &Store) {
    for store in [alice, &open(world, "alice"), &open(world, "bob")] {
        assert_eq!(get(store, KEY).unwrap(), b"alice's");
    }
    flush_one(alice, "run=a,variable=t,step=1", b"more");
    assert_eq!(get(&open(world, "bob"), "run=a,variable=t,step=1").unwrap(), b"more");
}

#[test]
fn a_backdated_log_takes_nothing_over() {
    let (world, alice) = shared();
    // Bob's own store with the same id, written in 1971.
    let own = Path::new("/bob/store");
    let bob = world.process("bob");
    bob.disk.create_dir_all(&own.join("logs")).unwrap();
    let marker = world.read(&Path::new(ROOT).join("fieldstone.store")).unwrap();
    write_all_at(&*bob.disk.create_new(&own.join("fieldstone.store")).unwrap(), &marker, 0).unwrap();
    world.set_clock_offset("bob", -(53 * 365 * 24 * HOUR));
    let options = fieldstone_store::conformance::Opening::default().local("bob");
    let store: Store =
        std::sync::Arc::new(fieldstone_store::local::LocalStore::open(bob, own, options).unwrap());
    flush_one(&store, KEY, b"HIJACKED");
    flush_one(&store, "run=b,variable=t", b"bob's own");
    for path in world.files().into_iter().filter(|path| path.starts_with(own.join("logs"))) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        put_as_bob(&world, &format!("logs/{name}"), &world.read(&path).unwrap());
    }
    check_alice(&world, &alice);
    assert_eq!(get(&alice, "run=b,variable=t").unwrap(), b"bob's own");
    error(put(&alice, "run=b,variable=t", b"x"), ErrorKind::Denied);
    assert!(alice.verify(&Request::new()).unwrap().ok());
}

/// The first user to flush owns the dataset, and the second gets an error, whatever each of them had seen.
#[test]
fn the_first_claim_holds() {
    let (world, alice) = shared();
    let bob = open(&world, "bob");
    put(&bob, "run=b,variable=t", b"bob").unwrap();
    put(&alice, "run=b,variable=t", b"alice").unwrap();
    bob.flush(&Session::default()).unwrap();
    let denied = error(alice.flush(&Session::default()), ErrorKind::Denied);
    assert!(denied.message().contains("user502") && denied.message().contains("run=b"), "{denied}");
    alice.discard(&Session::default()).unwrap();
    assert_eq!(get(&alice, "run=b,variable=t").unwrap(), b"bob");
    // The file alone is enough, even without a field.
    let level = {
        let mut level = Vec::new();
        let key = alice.schema().resolve(&[("run", "c"), ("variable", "t")]).unwrap();
        fieldstone_format::keys::encode_level(&key.levels[0], &mut level);
        level
    };
    bob.claim(level.clone(), &Session::default()).unwrap();
    flush_one(&bob, "run=b,variable=u", b"bob");
    let denied = error(put(&alice, "run=c,variable=t", b"alice"), ErrorKind::Denied);
    assert!(denied.message().contains("user502") && denied.message().contains("run=c"), "{denied}");
    assert_eq!(alice.owner(&level).unwrap(), Some(BOB));
}

/// Names that another user took with other content are skipped.
#[test]
fn a_claim_for_another_level_is_none() {
    let (world, alice) = shared();
    let mut level = Vec::new();
    let key = alice.schema().resolve(&[("run", "c"), ("variable", "t")]).unwrap();
    fieldstone_format::keys::encode_level(&key.levels[0], &mut level);
    put_as_bob(&world, &format!("logs/{}", claim::file_name(&level, 0)), &claim::encode(b"another"));
    flush_one(&alice, "run=c,variable=t", b"alice");
    assert_eq!(open(&world, "bob").owner(&level).unwrap(), Some(ALICE));
    assert!(alice.verify(&Request::new()).unwrap().ok());
}

/// A store that only one user may write to has no claims, and pays for none.
#[test]
fn a_store_of_one_user_has_no_claims() {
    let world = SimWorld::new(1);
    flush_one(&open(&world, "a"), KEY, b"x");
    assert!(files(&world, "logs").iter().all(|path| path.to_string_lossy().ends_with(".log")));
}

/// A power cut after a flush also keeps the claim.
#[test]
fn a_claim_is_durable_with_what_it_is_for() {
    let (world, _) = shared();
    for seed in 0..20 {
        let after = world.power_cut(seed);
        assert_eq!(get(&open(&after, "bob"), KEY).unwrap(), b"alice's");
        assert!(files(&after, "logs").iter().any(|path| path.to_string_lossy().ends_with(".claim")));
    }
}

#[test]
fn a_forged_decision_counts_for_nobody_else() {
    let (world, alice) = shared();
    let id = alice.begin().unwrap();
    put_in(&alice, "run=a,variable=t,step=5", b"committed", id).unwrap();
    alice.decide(id, true, &Session::default()).unwrap();
    let open_id = alice.begin().unwrap();
    put_in(&alice, "run=a,variable=t,step=6", b"open", open_id).unwrap();
    alice.flush(&Session::from(open_id)).unwrap();
    let alices = alice.journal().looks().feed().unwrap().logs();
    for (n, committed) in [(1, false), (2, true)] {
        let of = if committed { open_id } else { id };
        let decision = Decision { transaction: of, committed, kinds: u32::MAX, covers: alices.clone() };
        forge(
            &world,
            Id([n; 16]),
            CommitRecord { stamp: 5, decision: Some(decision), ..CommitRecord::default() },
        );
    }
    for store in [&alice, &open(&world, "alice"), &open(&world, "bob")] {
        store.refresh().unwrap();
        assert_eq!(get(store, "run=a,variable=t,step=5").unwrap(), b"committed");
        error(get(store, "run=a,variable=t,step=6"), ErrorKind::NotFound);
    }
    alice.decide(open_id, true, &Session::default()).unwrap();
    assert_eq!(get(&open(&world, "bob"), "run=a,variable=t,step=6").unwrap(), b"open");
}

#[test]
fn nobody_decides_on_anothers_transaction() {
    let (world, alice) = shared();
    let id = alice.begin().unwrap();
    put_in(&alice, "run=a,variable=t,step=5", b"tx", id).unwrap();
    alice.flush(&Session::from(id)).unwrap();
    let bob = open(&world, "bob");
    for commit in [true, false] {
        let denied = error(bob.decide(id, commit, &Session::default()), ErrorKind::Denied);
        assert!(denied.message().contains("user501"), "{denied}");
    }
    error(bob.set_active_kinds(id, 1, 0, &Session::default()), ErrorKind::Denied);
    alice.decide(id, true, &Session::default()).unwrap();
    assert_eq!(get(&bob, "run=a,variable=t,step=5").unwrap(), b"tx");
}

#[test]
fn stamps_centuries_ahead_are_not_followed() {
    let (world, alice) = shared();
    let year = 31_557_600 * SECOND;
    let now = world.now() as u64;
    let slot = Slot {
        writer: Id([7; 16]),
        closed: false,
        length: 1 << 20,
        sequence: 1,
        stamp: u64::MAX,
        frame: 100,
        hash: 0,
        process: 1,
        time: 0,
    };
    put_as_bob(&world, "boards/zz.board", &slot.encode());
    forge(&world, Id([1; 16]), CommitRecord { stamp: u64::MAX, ..CommitRecord::default() });
    forge(&world, Id([2; 16]), CommitRecord { stamp: now + 150 * year, ..CommitRecord::default() });
    check_alice(&world, &alice);
    let report = alice.verify(&Request::new()).unwrap();
    let forged = |n: u8| format!("logs/{}", log::file_name(Id([n; 16])));
    assert!(report.damaged.iter().any(|damage| damage.file == forged(1)), "{:?}", report.damaged);
    // A clock that is wrong by decades still counts as a clock: later commits are newer.
    world.set_clock_offset("bob", TO_2099);
    flush_one(&open(&world, "bob"), "run=b,variable=t", b"2099");
    flush_one(&alice, "run=a,variable=t,step=2", b"after");
    assert_eq!(get(&alice, "run=a,variable=t,step=2").unwrap(), b"after");
}

#[test]
fn a_clock_that_no_host_has_right_costs_nobody_anything() {
    let all = |store: &Store| {
        let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
        list.map(|entry| entry.unwrap().time).collect::<Vec<_>>()
    };
    // To 2142, beyond 2262, before 1970, before 1678.
    for offset in [118 * 8_766 * HOUR, i64::MAX, -60 * 8_766 * HOUR, i64::MIN] {
        let (world, alice) = shared();
        world.set_clock_offset("bob", offset);
        let bob = open(&world, "bob");
        for value in [b"1", b"2"] {
            flush_one(&bob, "run=b,variable=t", value);
            for reader in [&alice, &bob, &open(&world, "alice"), &open(&world, "bob")] {
                reader.refresh().unwrap();
                assert_eq!(listed(reader).len(), 2, "{offset}");
                assert_eq!(get(reader, "run=b,variable=t").unwrap(), value);
                assert!(reader.verify(&Request::new()).unwrap().ok());
            }
        }
        let times = all(&alice);
        let told = world.now().saturating_add(offset);
        assert!(times.iter().any(|time| time.abs_diff(told) < SECOND), "the time is the clock's: {times:?}");
        // A flush with a correct clock is the newest value, whichever came before.
        world.set_clock_offset("bob", 0);
        flush_one(&open(&world, "bob"), "run=b,variable=t", b"right");
        assert_eq!(get(&alice, "run=b,variable=t").unwrap(), b"right");
        world.set_clock_offset("bob", offset);
        flush_one(&open(&world, "bob"), "run=b,variable=t", b"wrong again");
        assert_eq!(get(&alice, "run=b,variable=t").unwrap(), b"wrong again");
    }
}

#[test]
fn what_may_not_be_read_is_skipped_and_named() {
    let (world, alice) = shared();
    flush_one(&open(&world, "bob"), "run=b,variable=t", b"x");
    let bobs: Vec<PathBuf> = ["logs", "boards"]
        .iter()
        .flat_map(|folder| files(&world, folder))
        .filter(|path| world.process("bob").disk.stat(path).unwrap().uid == BOB)
        .collect();
    assert!(bobs.len() >= 3, "log, claim, board: {bobs:?}");
    bobs.iter().for_each(|path| world.permissions().set_mode(path, 0o600).unwrap());
    let reader = open(&world, "alice");
    check_alice(&world, &reader);
    check_alice(&world, &alice);
    let notes = reader.verify(&Request::new()).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("this user may not")), "{notes:?}");
    assert!(!reader.status().unwrap().problems.is_empty());
    bobs.iter().for_each(|path| world.permissions().set_mode(path, 0o644).unwrap());
    reader.refresh().unwrap();
    assert_eq!(get(&reader, "run=b,variable=t").unwrap(), b"x");
    assert!(reader.status().unwrap().problems.is_empty(), "{:?}", reader.status().unwrap().problems);
}

#[test]
fn a_log_whose_name_begins_like_anothers_breaks_no_version() {
    let (world, alice) = shared();
    let before = alice.version().unwrap();
    let (id, _) = alice.journal().looks().feed().unwrap().logs()[0];
    let mut twin = [9; 16];
    twin[..8].copy_from_slice(&id.0[..8]);
    forge(&world, Id(twin), CommitRecord { stamp: 5, ..CommitRecord::default() });
    flush_one(&alice, KEY, b"newer");
    let after = open(&world, "bob").version().unwrap();
    for (version, value) in [(before, &b"alice's"[..]), (after, b"newer")] {
        let how = fieldstone_store::conformance::Opening {
            at: Some(version),
            ..fieldstone_store::conformance::Opening::default()
        };
        assert_eq!(get(&open_in(&world.process("alice"), &how).unwrap(), KEY).unwrap(), value);
    }
}

/// Bob's slot for alice's log, which has none, as all boards are bob's.
#[test]
fn a_slot_of_another_user_says_nothing_of_a_log() {
    let (world, _) = shared();
    let writer = open(&world, "alice");
    flush_one(&writer, KEY, b"v1");
    let reader = open(&world, "alice");
    assert_eq!(get(&reader, KEY).unwrap(), b"v1");
    for path in files(&world, "boards") {
        world.process("admin").disk.unlink(&path).unwrap();
    }
    let forged = |(writer, _): &(Id, u64)| {
        let (length, stamp) = (1 << 20, u64::MAX - 1);
        Slot {
            writer: *writer,
            closed: true,
            length,
            sequence: 99,
            stamp,
            frame: 9,
            hash: 0,
            process: 1,
            time: 0,
        }
        .encode()
    };
    let slots: Vec<u8> = writer.journal().looks().feed().unwrap().logs().iter().flat_map(forged).collect();
    put_as_bob(&world, "boards/aa.board", &slots);
    assert_eq!(get(&reader, KEY).unwrap(), b"v1", "nothing is lost");
    flush_one(&writer, KEY, b"v2");
    reader.refresh().unwrap();
    assert_eq!(get(&reader, KEY).unwrap(), b"v2");
}

#[test]
fn logs_of_another_store_are_not_read() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, KEY, b"own");
    let other = Path::new("/other");
    let options = fieldstone_store::conformance::Opening::default().local("other");
    let stranger: Store = std::sync::Arc::new(
        fieldstone_store::local::LocalStore::open(world.process("a"), other, options).unwrap(),
    );
    flush_one(&stranger, "run=stranger,variable=t", b"x");
    for path in world.files().into_iter().filter(|path| path.starts_with(other.join("logs"))) {
        let to = Path::new(ROOT).join("logs").join(path.file_name().unwrap());
        fieldstone_store::conformance::put_file(&world.process("a"), to, Some(&world.read(&path).unwrap()))
            .unwrap();
    }
    for store in [&store, &open(&world, "b")] {
        store.refresh().unwrap();
        assert_eq!(listed(store), ["{run=a}{variable=t}{}"]);
        let notes = store.verify(&Request::new()).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("another store")), "{notes:?}");
    }
}

/// The maker of a folder owns it and may rename it, so the maker of the store makes all folders himself.
#[test]
fn a_store_in_a_shared_folder_is_made_with_the_folders_of_all_files() {
    for (mode, made) in [(0o1777, true), (0o755, false)] {
        let world = SimWorld::new(2);
        world.set_uid("alice", ALICE);
        let alice = world.process("alice");
        alice.disk.create_dir_all(Path::new(ROOT)).unwrap();
        world.permissions().set_mode(Path::new(ROOT), mode).unwrap();
        flush_one(&open(&world, "alice"), KEY, b"alice's");
        for folder in ["arrays", "meshes", "histories"] {
            let stat = alice.disk.stat(&Path::new(ROOT).join(folder)).ok();
            assert_eq!(stat.map(|stat| (stat.uid, stat.mode)), made.then_some((ALICE, mode)), "{folder}");
        }
    }
}
