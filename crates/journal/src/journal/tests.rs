//! Each part of a journal, over a store in a simulated world.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::schema::Schema;
use fieldstone_format::acceptance::{Acceptance, Lost};
use fieldstone_format::log::SideRecord;
use fieldstone_format::setting::Setting;
use fieldstone_format::{FORMAT_VERSION, Id};

use super::*;
use crate::medium::posix::checkpoint::CheckpointOptions;
use crate::session::SessionId;
use crate::snapshot::ALL_KINDS;

const ROOT: &str = "/store";

fn options() -> JournalOptions {
    JournalOptions { url: ROOT.into(), writable: true, ..JournalOptions::default() }
}

fn open_as(world: &SimWorld, host: &str, options: JournalOptions) -> Journal {
    Journal::open(world.process(host), Path::new(ROOT), options).unwrap()
}

fn open(world: &SimWorld, host: &str) -> Journal {
    open_as(world, host, options())
}

fn note(text: &str) -> SideRecord {
    SideRecord { kind: 0x7777, bytes: text.as_bytes().into() }
}

fn flush_note(journal: &Journal, session: &Session) {
    journal.unflushed().add(vec![note("n")], session).unwrap();
    journal.committer().flush(session).unwrap();
}

/// The commits that a handle sees.
fn seen(journal: &Journal) -> u64 {
    journal.looks().snapshot().unwrap().logs.iter().map(|log| log.record.sequence).sum()
}

fn kind<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorKind {
    outcome.unwrap_err().kind()
}

#[test]
fn a_look_sees_what_was_flushed_before_it() {
    let world = SimWorld::new(1);
    let (writer, session) = (open(&world, "a"), Session::default());
    flush_note(&writer, &session);
    let reader = open(&world, "b");
    let looks = reader.looks();
    let version = looks.snapshot().unwrap().version().encode();
    assert!(!looks.wait(&version, 5_000_000, &session).unwrap());
    flush_note(&writer, &session);
    assert!(looks.wait(&version, 5_000_000, &session).unwrap());
    assert_eq!(seen(&reader), 2);
    let before = looks.count();
    let older = looks.older(&looks.snapshot().unwrap(), &version).unwrap();
    assert_eq!((older.heads()[0].1, looks.count()), (1, before + 1));
    looks.refresh().unwrap();
    assert_eq!(looks.feed().unwrap().logs(), looks.snapshot().unwrap().heads());
    // A version that the handle was opened at stays.
    let pinned = open_as(&world, "b", JournalOptions { at: Some(version), writable: false, ..options() });
    flush_note(&writer, &session);
    assert_eq!((seen(&pinned), seen(&reader)), (1, 3));
    assert_eq!(kind(pinned.unflushed().add(vec![note("n")], &session)), ErrorKind::Denied);
}

#[test]
fn what_waits_is_its_sessions() {
    let journal = open(&SimWorld::new(1), "a");
    let (alice, bob) = (Session::new(SessionId::of(1)), Session::new(SessionId::of(2)));
    let unflushed = journal.unflushed();
    unflushed.add(vec![note("1")], &alice).unwrap();
    let cursor = unflushed.cursor(&alice);
    unflushed.add(vec![note("2")], &alice).unwrap();
    let losses = unflushed.keep(1, &alice);
    assert!(unflushed.add_kept(vec![note("3")], 1, losses, &alice));
    assert_eq!(unflushed.records(&alice), [note("1"), note("2"), note("3")]);
    assert_eq!(unflushed.behind(&alice, cursor).records, [note("2"), note("3")]);
    assert!(unflushed.holds(&alice) && !unflushed.holds(&bob) && unflushed.is_any());
    assert_eq!((unflushed.count(), unflushed.keys(&alice).len(), unflushed.arrays(&alice).len()), (0, 0, 0));
    journal.committer().flush(&bob).unwrap();
    assert!(unflushed.holds(&alice));
    unflushed.discard(&alice);
    assert!(!unflushed.is_any() && unflushed.all_losses().is_empty());
    assert_eq!((unflushed.losses(&alice), unflushed.check_lost(&alice).is_ok()), (0, true));
}

#[test]
fn a_commit_is_seen_when_its_records_wait_no_more() {
    let journal = open(&SimWorld::new(1), "a");
    let session = Session::default();
    journal.committer().flush(&session).unwrap();
    assert_eq!(seen(&journal), 0, "a flush of nothing is not a commit");
    flush_note(&journal, &session);
    assert_eq!((seen(&journal), journal.unflushed().holds(&session)), (1, false));
    let cancel = crate::session::Cancel::default();
    cancel.cancel();
    let cancelled = session.cancelled_by(cancel);
    journal.unflushed().add(vec![note("n")], &session).unwrap();
    assert_eq!(kind(journal.committer().flush(&cancelled)), ErrorKind::Unavailable);
    assert_eq!((seen(&journal), journal.unflushed().holds(&session)), (1, true));
    journal.close(&session).unwrap();
    assert_eq!(seen(&journal), 2);
}

#[test]
fn an_attempt_is_announced_once() {
    let world = SimWorld::new(1);
    let mut options = options();
    options.origin.attempt = "first".into();
    let journal = open_as(&world, "a", options.clone());
    journal.committer().announce(&Session::default()).unwrap();
    journal.committer().announce(&Session::default()).unwrap();
    assert_eq!((seen(&journal), journal.access().attempt()), (1, "first"));
    let other = open_as(&world, "b", options);
    other.committer().announce(&Session::default()).unwrap();
    assert_eq!(seen(&other), 1);
}

#[test]
fn a_transaction_is_decided_once() {
    let world = SimWorld::new(1);
    let (opener, joined, session) = (open(&world, "a"), open(&world, "b"), Session::default());
    let transactions = opener.transactions();
    let id = transactions.begin().unwrap();
    flush_note(&opener, &session.within(id));
    flush_note(&joined, &session.within(id));
    transactions.set_active_kinds(id, ALL_KINDS, 0, &session).unwrap();
    transactions.decide(id, true, &session).unwrap();
    assert_eq!(kind(transactions.decide(id, false, &session)), ErrorKind::Conflict);
    joined.unflushed().add(vec![note("late")], &session.within(id)).unwrap();
    assert_eq!(kind(joined.committer().flush(&session.within(id))), ErrorKind::Conflict);
    // Nobody else has the id: its end is not written.
    let before = seen(&opener);
    let own = transactions.begin().unwrap();
    transactions.abandon(own, &session).unwrap();
    assert_eq!(seen(&opener), before);
    transactions.decide(own, false, &session).unwrap();
    assert_eq!(seen(&opener), before + 1);
}

#[test]
fn a_dataset_is_its_first_writers() {
    let world = SimWorld::new(1);
    for (host, user) in [("admin", 0), ("alice", 501), ("bob", 502)] {
        world.set_uid(host, user);
    }
    let admin = world.process("admin");
    for folder in ["", "logs", "data", "boards"] {
        let path = Path::new(ROOT).join(folder);
        admin.disk.create_dir_all(&path).unwrap();
        world.permissions().set_mode(&path, 0o1777).unwrap();
    }
    let (alice, bob, session) = (open(&world, "alice"), open(&world, "bob"), Session::default());
    let journal = alice.schema();
    let key = journal.make(|schema| schema.resolve(&[("run", "a"), ("variable", "t")])).unwrap();
    let key = fieldstone_format::keys::encode_key(&key).bytes;
    let level = key[..fieldstone_format::keys::level_ends(&key).unwrap()[0]].to_vec();
    // A claim goes with a commit: without one the dataset is free.
    alice.datasets().claim(level.clone(), &session).unwrap();
    assert_eq!(bob.datasets().owner(&level).unwrap(), None);
    bob.datasets().check(level.clone(), &session).unwrap();
    flush_note(&alice, &session);
    flush_note(&bob, &session);
    bob.looks().refresh().unwrap();
    assert_eq!(bob.datasets().owner(&level).unwrap(), Some(501));
    assert_eq!(kind(bob.datasets().claim(level.clone(), &session.of_user(501))), ErrorKind::Denied);
    let fresh = open(&world, "bob");
    assert_eq!(kind(fresh.datasets().check(level.clone(), &session)), ErrorKind::Denied);
    // A process remembers hints: its commit asks again.
    bob.datasets().claim(level, &session).unwrap();
    bob.unflushed().add(vec![note("n")], &session).unwrap();
    assert_eq!(kind(bob.committer().flush(&session)), ErrorKind::Denied);
}

#[test]
fn what_the_owner_adds_to_the_schema_is_in_force_for_all() {
    let world = SimWorld::new(1);
    let schema = Schema::parse("step: Integer; [run [variable [step]]]").unwrap();
    let writer = open_as(&world, "a", JournalOptions { schema: Some(schema), ..options() });
    flush_note(&writer, &Session::default());
    let reader = open(&world, "b");
    let key = [("level", "1"), ("run", "a"), ("step", "1")];
    assert_eq!(kind(reader.schema().make(|schema| schema.resolve(&key))), ErrorKind::Invalid);
    let grown = writer.schema().extend("[level [run [step]]]", &Session::default()).unwrap();
    assert!(grown == writer.schema().now());
    assert!(reader.schema().make(|schema| schema.resolve(&key)).is_ok(), "it looks where it is refused");
}

#[test]
fn settings_and_the_format_are_the_stores() {
    let world = SimWorld::new(1);
    let (owner, session) = (open(&world, "a"), Session::default());
    owner.format().pin(1, &session).unwrap();
    assert_eq!(kind(owner.format().check(FORMAT_VERSION, "what is new")), ErrorKind::Denied);
    let setting = Setting { name: "exist".to_owned(), value: "keep".to_owned() };
    owner.settings().set(&setting, &session).unwrap();
    let reader = open(&world, "b");
    assert_eq!(reader.settings().get("exist").as_deref(), Some("keep"));
    assert_eq!((reader.settings().get("another"), reader.format().now().unwrap()), (None, 1));
    assert_eq!(owner.format().upgrade(&session).unwrap(), (1, FORMAT_VERSION));
    reader.format().check(FORMAT_VERSION, "what is new").unwrap();
    assert_eq!(reader.format().now().unwrap(), FORMAT_VERSION);
}

#[test]
fn a_loss_is_accepted_where_there_is_one() {
    let world = SimWorld::new(1);
    let (journal, session) = (open(&world, "a"), Session::default());
    flush_note(&journal, &session);
    let writer = journal.looks().snapshot().unwrap().logs[0].writer;
    let acceptances = journal.acceptances();
    let sound = acceptances.file_state(writer).unwrap();
    assert_eq!((sound.beyond, sound.is_alive), (None, true));
    acceptances.check_may(writer, sound.owner, &journal.looks().snapshot().unwrap(), &session).unwrap();
    let lost = Lost::Entries(vec![(1, 0)]);
    let acceptance = Acceptance { writer, number: 0, lost, why: "old".into(), fields: 0, keys: Vec::new() };
    let accepted = acceptances.accept(acceptance, &session).unwrap();
    assert_eq!(
        (accepted.log, accepted.sequence),
        (writer, 2),
        "the record stands in the log of whoever accepts"
    );
    let of_nobody = Acceptance { writer: Id([7; 16]), lost: Lost::Whole, ..accepted.acceptance.clone() };
    assert_eq!(kind(acceptances.accept(of_nobody, &session)), ErrorKind::Conflict);
}

#[test]
fn a_store_in_memory_is_copied_into_a_folder() {
    let world = SimWorld::new(1);
    let outside = world.process("a").disk;
    let memory = || {
        Journal::open(
            SimWorld::memory(),
            Path::new("/"),
            JournalOptions { outside: Some(outside.clone()), ..options() },
        )
    };
    let (journal, session) = (memory().unwrap(), Session::default());
    journal.unflushed().add(vec![note("n")], &session).unwrap();
    let options = CheckpointOptions::default();
    journal.checkpoints().write(Path::new(ROOT), &options, &session).unwrap();
    let copy = open(&world, "a");
    assert_eq!((seen(&copy), copy.access().is_in_memory()), (1, false));
    let refused = copy.checkpoints().write(Path::new("/other"), &options, &session);
    assert_eq!(kind(refused), ErrorKind::Invalid);
}

#[test]
fn a_store_is_there_when_it_was_made() {
    let world = SimWorld::new(1);
    let (reader, maker) = (open(&world, "a"), open(&world, "b"));
    assert_eq!(kind(reader.check_there()), ErrorKind::NotFound);
    let mut waits = vec![note("n")];
    reader.unflushed().add(std::mem::take(&mut waits), &Session::default()).unwrap();
    reader.check_there().unwrap();
    reader.unflushed().discard(&Session::default());
    maker.create().unwrap();
    reader.check_there().unwrap();
    assert_eq!(reader.home().id, maker.home().id);
    assert_eq!((maker.made_id(), reader.home().folder), (Some(maker.home().id), None));
    let taken =
        Journal::open(world.process("a"), Path::new(ROOT), JournalOptions { must_be_new: true, ..options() });
    assert_eq!(kind(taken), ErrorKind::Conflict);
    assert!(Arc::ptr_eq(reader.medium(), reader.files().medium()));
}
