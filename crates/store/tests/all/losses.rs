//! A failure is reported to everyone who lost fields by it: to the failed call, to other threads that had archived,
//! and to transactions with a part in the same files.

use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Session;
use fieldstone_journal::participant::{Buffered, Growing};
use fieldstone_journal::writer::PendingCursor;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::LocalStore;

const LARGE: usize = 2 << 20;

/// A task for a separate thread.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// A thread that takes tasks, so that the same thread runs all of them.
struct Worker(std::sync::mpsc::Sender<Box<dyn FnOnce() + Send>>);

impl Worker {
    fn new() -> Worker {
        let (orders, taken) = std::sync::mpsc::channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || taken.into_iter().for_each(|order| order()));
        Worker(orders)
    }

    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, answered) = std::sync::mpsc::channel();
        self.0.send(Box::new(move || answer.send(work()).unwrap())).unwrap();
        answered.recv().unwrap()
    }

    fn put(&self, store: &Store, key: &'static str, size: usize, session: Option<Id>) {
        let store = store.clone();
        self.run(move || put_into(&store, key, size, session)).unwrap();
    }

    fn flush(&self, store: &Store, session: Option<Id>) -> Result<()> {
        let store = store.clone();
        self.run(move || store.flush(&Session::from(session)))
    }
}

fn put_into(store: &Store, key: &str, size: usize, session: Option<Id>) -> Result<()> {
    let options = ArchiveOptions { session: Session::from(session), ..ArchiveOptions::default() };
    archive(store, key, Value::Bytes(&pattern(size, 1)), &options)
}

/// A flush that fails in the sync of the log, and its error.
fn failed(world: &SimWorld, store: &Store, session: Option<Id>) -> Error {
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData).path("/logs/"));
    let failure = error(store.flush(&Session::from(session)), ErrorKind::Unavailable);
    world.clear_faults();
    failure
}

fn names(failure: &Error, variables: &[&str]) -> bool {
    let all = ["mine", "yours", "theirs", "kept"];
    all.iter().all(|v| failure.message().contains(&format!("variable={v}")) == variables.contains(v))
}

#[test]
fn each_thread_that_was_robbed_hears_once_of_its_own() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let (two, three, none) = (Worker::new(), Worker::new(), Worker::new());
    put(&store, "run=a,variable=mine", b"x").unwrap();
    two.put(&store, "run=a,variable=yours", 100, None);
    three.put(&store, "run=a,variable=theirs", 100, None);
    let failure = failed(&world, &store, None);
    assert!(names(&failure, &["mine", "yours", "theirs"]), "{failure}");
    assert!(
        failure.message().starts_with("not archived: {run=a}{variable=mine}"),
        "its own first: {failure}"
    );
    assert!(none.flush(&store, None).is_ok(), "it lost nothing");
    store.flush(&Session::default()).unwrap();
    // Fields archived since then wait until the loss is reported.
    two.put(&store, "run=a,variable=kept", 100, None);
    let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["yours"]), "{failure}");
    assert!(failure.message().contains("cannot write"), "it gives the reason: {failure}");
    assert_eq!(listed(&open(&world, "b")).len(), 0);
    two.flush(&store, None).unwrap();
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=kept}{}"]);
    let failure = error(three.flush(&store, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["theirs"]), "{failure}");
    three.flush(&store, None).unwrap();
}

#[test]
fn who_archived_what_another_replaced_is_told_as_well() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let two = Worker::new();
    two.put(&store, "run=a,variable=mine", 100, None);
    put(&store, "run=a,variable=mine", b"newer").unwrap();
    failed(&world, &store, None);
    let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["mine"]), "{failure}");
}

#[test]
fn losses_add_up_until_they_are_told() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let two = Worker::new();
    for key in ["run=a,variable=yours", "run=a,variable=theirs"] {
        two.put(&store, key, 100, None);
        failed(&world, &store, None);
    }
    let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["yours", "theirs"]), "{failure}");
    two.flush(&store, None).unwrap();
}

/// All threads share the batch outside transactions: one that discards it takes the others' fields as well.
#[test]
fn threads_whose_fields_another_one_discards_get_an_error() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let (two, three) = (Worker::new(), Worker::new());
    two.put(&store, "run=a,variable=yours", 100, None);
    put(&store, "run=a,variable=mine", b"x").unwrap();
    store.discard(&Session::default()).unwrap();
    three.put(&store, "run=a,variable=theirs", 100, None);
    store.flush(&Session::default()).unwrap();
    let failure = error(two.flush(&store, None), ErrorKind::Conflict);
    assert!(names(&failure, &["yours"]), "{failure}");
    two.flush(&store, None).unwrap();
    three.flush(&store, None).unwrap();
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=theirs}{}"]);
    put(&store, "run=a,variable=mine", b"x").unwrap();
    store.discard(&Session::default()).unwrap();
    store.close(&Session::default()).unwrap();
}

/// A failed archive also takes the fields that other threads had put into the batch.
#[test]
fn a_failed_archive_is_told_to_the_others() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let two = Worker::new();
    flush_one(&store, "run=a,variable=before", b"1");
    two.put(&store, "run=a,variable=yours", 100, None);
    world.set_capacity(Some(0));
    let failure = error(put_into(&store, "run=a,variable=mine", 8 << 20, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["mine", "yours"]), "{failure}");
    world.set_capacity(None);
    let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["yours"]), "{failure}");
    assert!(failure.hint().unwrap().contains("space"), "the hint is that of the failure: {failure}");
}

#[test]
fn a_close_tells_and_flushes_the_rest() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    put(&store, "run=a,variable=mine", b"x").unwrap();
    let other = store.clone();
    let failure = elsewhere(|| failed(&world, &other, None));
    assert!(names(&failure, &["mine"]), "{failure}");
    put(&store, "run=a,variable=kept", b"y").unwrap();
    let failure = error(store.close(&Session::default()), ErrorKind::Unavailable);
    assert!(names(&failure, &["mine"]), "{failure}");
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=kept}{}"]);
    store.close(&Session::default()).unwrap();
}

/// For threads that have ended, or that make no further call, only the close can report the loss.
#[test]
fn a_close_tells_what_other_threads_lost() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let (two, three) = (Worker::new(), Worker::new());
    two.put(&store, "run=a,variable=yours", 100, None);
    three.put(&store, "run=a,variable=theirs", 100, None);
    put(&store, "run=a,variable=mine", b"x").unwrap();
    failed(&world, &store, None);
    put(&store, "run=a,variable=kept", b"y").unwrap();
    let failure = error(store.close(&Session::default()), ErrorKind::Unavailable);
    assert!(names(&failure, &["yours", "theirs"]), "{failure}");
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=kept}{}"]);
    store.close(&Session::default()).unwrap();
    // A thread that continues also receives the error.
    let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
    assert!(names(&failure, &["yours"]), "{failure}");
}

/// A close flushes the rest, even if its own flush waits for one that fails.
#[test]
fn a_close_flushes_what_came_behind_a_failure() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let two = Worker::new();
    flush_one(&store, "run=a,variable=before", b"1");
    put(&store, "run=a,variable=mine", b"x").unwrap();
    let stall = world.stall(OpKind::SyncData, "/logs/");
    let failure = std::thread::scope(|scope| {
        let flush = scope.spawn(|| store.flush(&Session::default()));
        stall.wait_for(1);
        two.put(&store, "run=a,variable=kept", 100, None);
        world.fail_nth(OpKind::SyncData, 1, Fault::Io);
        // Not before the close waits for the flush.
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(stall);
        });
        let closed = error(store.close(&Session::default()), ErrorKind::Unavailable);
        error(flush.join().unwrap(), ErrorKind::Unavailable);
        closed
    });
    assert!(names(&failure, &["mine"]), "{failure}");
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=before}{}", "{run=a}{variable=kept}{}"]);
    two.flush(&store, None).unwrap();
}

/// Fields that another thread archives into a transaction during its decision are left out, and that thread's flush
/// reports it.
#[test]
fn what_comes_behind_a_decision_is_refused() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let id = store.begin().unwrap();
    put_into(&store, "run=a,variable=mine", 100, Some(id)).unwrap();
    store.flush(&Session::from(id)).unwrap();
    let stall = world.stall(OpKind::SyncData, "/logs/");
    std::thread::scope(|scope| {
        let decided = scope.spawn(|| store.decide(id, true, &Session::default()));
        stall.wait_for(1);
        put_into(&store, "run=a,variable=yours", 100, Some(id)).unwrap();
        drop(stall);
        decided.join().unwrap().unwrap();
    });
    error(store.flush(&Session::from(id)), ErrorKind::Conflict);
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=mine}{}"]);
}

#[test]
fn what_was_lost_can_be_asked_for_and_given_up() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    for give_up in [false, true] {
        put(&store, "run=a,variable=mine", b"x").unwrap();
        let other = store.clone();
        elsewhere(|| failed(&world, &other, None));
        match give_up {
            true => store.discard(&Session::default()).unwrap(),
            false => drop(error(store.check_lost(&Session::default()), ErrorKind::Unavailable)),
        }
        store.check_lost(&Session::default()).unwrap();
        store.flush(&Session::default()).unwrap();
    }
}

/// A transaction with a part in the files of a failed flush is never committed without that part.
#[test]
fn a_robbed_transaction_can_only_be_aborted() {
    let world = SimWorld::new(1);
    let (store, joined) = (open(&world, "a"), open(&world, "b"));
    let id = store.begin().unwrap();
    put_into(&store, "run=a,variable=theirs", 100, Some(id)).unwrap();
    store.flush(&Session::from(id)).unwrap();
    put_into(&store, "run=a,variable=yours", LARGE, Some(id)).unwrap();
    put(&store, "run=a,variable=mine", b"x").unwrap();
    let failure = failed(&world, &store, None);
    assert!(names(&failure, &["mine", "yours"]) && failure.message().contains(&id.to_string()), "{failure}");
    for round in 0..2 {
        for outcome in [
            store.decide(id, true, &Session::default()),
            store.flush(&Session::from(id)),
            store.set_active_kinds(id, 1, 0, &Session::default()),
        ] {
            let failure = error(outcome, ErrorKind::Unavailable);
            assert!(
                names(&failure, &["yours"]) && failure.message().contains(&id.to_string()),
                "{round}: {failure}"
            );
            assert!(failure.hint().unwrap().contains("abort"), "{failure}");
        }
        store.discard(&Session::from(id)).unwrap();
    }
    // The plain session's own flush has reported the loss.
    store.flush(&Session::default()).unwrap();
    assert_eq!(listed(&open(&world, "c")).len(), 0);
    store.decide(id, false, &Session::default()).unwrap();
    put_into(&joined, "run=a,variable=kept", 10, Some(id)).unwrap();
    error(joined.flush(&Session::from(id)), ErrorKind::Conflict);
    assert_eq!(listed(&open(&world, "c")).len(), 0);
}

/// A failure does not lose data that another log can take: bytes in memory, and side records.
#[test]
fn what_is_in_memory_goes_into_the_next_log() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let id = store.begin().unwrap();
    put_into(&store, "run=a,variable=kept", 100, Some(id)).unwrap();
    store
        .journal()
        .unflushed()
        .add(vec![SideRecord { kind: 9, bytes: vec![1].into() }], &Session::from(id))
        .unwrap();
    put(&store, "run=a,variable=mine", b"x").unwrap();
    let failure = failed(&world, &store, None);
    assert!(names(&failure, &["mine"]), "{failure}");
    assert_eq!(store.unflushed(), 1);
    assert_eq!(store.journal().unflushed().records(&Session::from(id)).len(), 1);
    store.decide(id, true, &Session::default()).unwrap();
    for world in [&world, &world.power_cut(1)] {
        let reader = open(world, "b");
        assert_eq!(get(&reader, "run=a,variable=kept").unwrap(), pattern(100, 1));
        assert_eq!(listed(&reader).len(), 1);
    }
}

/// Each thread's own flush reports lost fields outside transactions, including the thread whose call failed.
#[test]
fn a_flush_of_a_transaction_robs_the_rest() {
    for decision in [false, true] {
        let world = SimWorld::new(1);
        let store = open(&world, "a");
        let two = Worker::new();
        let (id, other) = (store.begin().unwrap(), store.begin().unwrap());
        two.put(&store, "run=a,variable=yours", LARGE, None);
        put(&store, "run=a,variable=mine", b"x").unwrap();
        put_into(&store, "run=a,variable=kept", 10, Some(id)).unwrap();
        if decision {
            // The prepared part is flushed; the deciding record is not.
            store.flush(&Session::from(id)).unwrap();
            world.fail_nth(OpKind::SyncData, 1, Fault::Io);
            let failure = error(store.decide(id, true, &Session::default()), ErrorKind::Unavailable);
            assert!(names(&failure, &["mine", "yours"]), "{failure}");
        } else {
            world.fail_nth(OpKind::SyncData, 1, Fault::Io);
            let failure = error(store.flush(&Session::from(id)), ErrorKind::Unavailable);
            assert!(names(&failure, &["mine", "yours", "kept"]), "{failure}");
        }
        let failure = error(store.flush(&Session::default()), ErrorKind::Unavailable);
        assert!(names(&failure, &["mine"]), "{failure}");
        store.flush(&Session::default()).unwrap();
        let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
        assert!(names(&failure, &["yours"]), "{failure}");
        // Either their own call has reported the loss, or they have none: both may continue.
        store.decide(other, true, &Session::default()).unwrap();
        store.decide(id, true, &Session::default()).unwrap();
        assert_eq!(listed(&open(&world, "b")).len(), usize::from(decision));
    }
}

/// Two threads share a transaction: a commit must not leave out fields of one thread that the other's failed flush
/// lost.
#[test]
fn a_thread_robs_its_own_transaction() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let two = Worker::new();
    let id = store.begin().unwrap();
    two.put(&store, "run=a,variable=yours", 100, Some(id));
    put_into(&store, "run=a,variable=mine", 100, Some(id)).unwrap();
    failed(&world, &store, Some(id));
    for flush in [store.decide(id, true, &Session::default()), two.flush(&store, Some(id))] {
        let failure = error(flush, ErrorKind::Unavailable);
        assert!(names(&failure, &["mine", "yours"]), "{failure}");
    }
    store.decide(id, false, &Session::default()).unwrap();
}

/// Attributes kept by a participant are lost with their sessions, and count; each session's number of losses informs
/// the participant.
#[test]
fn what_was_kept_is_lost_with_the_fields() {
    let world = SimWorld::new(1);
    let local =
        LocalStore::open(world.process("a"), Path::new(ROOT), Opening::default().local(ROOT)).unwrap();
    let journal = local.journal().clone();
    let store: Store = Arc::new(local);
    let (robbed, spared) = (store.begin().unwrap(), store.begin().unwrap());
    put_into(&store, "run=a,variable=yours", LARGE, Some(robbed)).unwrap();
    put_into(&store, "run=a,variable=kept", 100, Some(spared)).unwrap();
    put(&store, "run=a,variable=mine", b"x").unwrap();
    store
        .journal()
        .unflushed()
        .add(vec![SideRecord { kind: 9, bytes: vec![2].into() }], &Session::default())
        .unwrap();
    let sessions = [None, Some(robbed), Some(spared)];
    assert_eq!(sessions.map(|session| journal.unflushed().keep(2, &Session::from(session))), [0, 0, 0]);
    let failure = failed(&world, &store, None);
    let own = "not archived: {run=a}{variable=mine}{}, and 2 attributes, and 1 other record of the catalog; {run=a}";
    assert!(failure.message().starts_with(own), "{failure}");
    assert_eq!(sessions.map(|session| journal.unflushed().losses(&Session::from(session))), [1, 1, 0]);
    assert_eq!(journal.unflushed().all_losses().len(), 2);
    let taken =
        sessions.map(|session| journal.unflushed().add_kept(Vec::new(), 2, 0, &Session::from(session)));
    assert_eq!(taken, [false, false, true], "records counted as lost are not taken");
    assert_eq!(store.journal().unflushed().records(&Session::default()).len(), 0);
    let failure = error(store.decide(robbed, true, &Session::default()), ErrorKind::Unavailable);
    assert!(failure.message().contains("variable=yours}{}, and 2 attributes"), "{failure}");
    // A thread that had only these also gets the report.
    let two = Worker::new();
    let other = journal.clone();
    let losses = two.run(move || other.unflushed().keep(1, &Session::default()));
    assert_eq!(losses, 1);
    put(&store, "run=a,variable=mine", b"x").unwrap();
    failed(&world, &store, None);
    let failure = error(two.flush(&store, None), ErrorKind::Unavailable);
    assert!(failure.message().contains("{run=a}{variable=mine}{}, and 1 attribute:"), "{failure}");
}

/// Attributes that a thread adds during a commit are in no batch yet: the thread still learns of their loss, with
/// that commit or with the one that another thread puts them into.
#[test]
fn who_keeps_something_during_a_commit_hears_of_its_loss() {
    for fails_at_once in [true, false] {
        let world = SimWorld::new(1);
        let store = open(&world, "a");
        let journal = store.journal().clone();
        let two = Worker::new();
        flush_one(&store, "run=a,variable=before", b"1");
        put(&store, "run=a,variable=mine", b"x").unwrap();
        let stall = world.stall(OpKind::SyncData, "/logs/");
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| store.flush(&Session::default()));
            stall.wait_for(1);
            let other = journal.clone();
            assert_eq!(two.run(move || other.unflushed().keep(1, &Session::default())), 0);
            if fails_at_once {
                world.fail_nth(OpKind::SyncData, 1, Fault::Io);
            }
            drop(stall);
            assert_eq!(flush.join().unwrap().is_err(), fails_at_once);
        });
        let record = SideRecord { kind: 9, bytes: vec![2].into() };
        assert_eq!(journal.unflushed().add_kept(vec![record], 1, 0, &Session::default()), !fails_at_once);
        if !fails_at_once {
            failed(&world, &store, None);
        }
        error(two.flush(&store, None), ErrorKind::Unavailable);
        two.flush(&store, None).unwrap();
    }
}

/// A cursor over pending records continues from its position as long as every record that it has read still waits.
#[test]
fn a_cursor_reads_on_while_what_it_has_read_still_waits() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let journal = store.journal();
    let transaction = store.begin().unwrap();
    let mut given = 0;
    let mut give = |session: &Session| {
        given += 1;
        journal.unflushed().add(vec![SideRecord { kind: 9, bytes: vec![given].into() }], session).unwrap();
        SideRecord { kind: 9, bytes: vec![given].into() }
    };
    let first = [give(&Session::default()), give(&Session::default())];
    let read = journal.unflushed().behind(&Session::default(), PendingCursor::default());
    assert!(read.continues && read.records == first && read.end.records == 2);
    // Nothing is new, including in another session.
    give(&Session::from(transaction));
    assert_eq!(journal.unflushed().behind(&Session::default(), read.end).records, []);
    assert_eq!(journal.unflushed().cursor(&Session::default()), read.end);
    let third = give(&Session::default());
    let more = journal.unflushed().behind(&Session::default(), read.end);
    assert!(more.continues && more.records == [third]);
    assert!(more.end.continues(read.end) && !read.end.continues(more.end));
    // Records that are discarded, flushed or lost no longer wait; this also holds while the session is kept because
    // another thread has not yet received its loss.
    let two = Worker::new();
    for robbed in [false, true] {
        if robbed {
            two.put(&store, "run=a,variable=yours", 100, None);
            failed(&world, &store, None);
        }
        let ends: [&dyn Fn(); 3] = [
            &|| store.discard(&Session::default()).unwrap(),
            &|| store.flush(&Session::default()).unwrap(),
            &|| drop(failed(&world, &store, None)),
        ];
        for (n, end) in ends.iter().enumerate() {
            let all = [give(&Session::default()), give(&Session::default()), give(&Session::default())];
            let read = journal.unflushed().behind(&Session::default(), PendingCursor::default());
            assert!(read.records.ends_with(&all), "way {n}");
            end();
            assert!(!journal.unflushed().cursor(&Session::default()).continues(read.end), "way {n}");
            let next: Vec<SideRecord> = (0..12).map(|_| give(&Session::default())).collect();
            assert!(!journal.unflushed().cursor(&Session::default()).continues(read.end), "way {n}");
            let again = journal.unflushed().behind(&Session::default(), read.end);
            assert!(!again.continues && again.records == next, "way {n}: {again:?}");
            store.discard(&Session::default()).unwrap();
        }
    }
    error(two.flush(&store, None), ErrorKind::Unavailable);
    // The other session still waits.
    assert_eq!(journal.unflushed().cursor(&Session::from(transaction)).records, 1);
}

/// Two sessions in one transaction: if a failure takes fields of one, the other cannot commit without them.
#[test]
fn a_transaction_that_was_robbed_in_one_session_is_committed_by_none() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let id = store.begin().unwrap();
    let [alice, bob] = [1, 2].map(|number| Session::new(SessionId::of(number)).within(id));
    let options =
        |session: &Session| ArchiveOptions { session: session.clone(), ..ArchiveOptions::default() };
    let large = pattern(LARGE, 1);
    archive(&store, "run=a,variable=yours", Value::Bytes(&large), &options(&bob)).unwrap();
    archive(&store, "run=a,variable=mine", Value::Bytes(b"x"), &options(&alice)).unwrap();
    // Another thread archived for bob as well, and has not received the failure of this thread's flush.
    let (other, session) = (store.clone(), bob.clone());
    elsewhere(move || {
        let options = ArchiveOptions { session, ..ArchiveOptions::default() };
        archive(&other, "run=a,variable=theirs", Value::Bytes(b"x"), &options).unwrap();
    });
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData));
    error(store.flush(&bob), ErrorKind::Unavailable);
    world.clear_faults();
    for session in [&alice, &bob] {
        let failure = error(store.decide(id, true, session), ErrorKind::Unavailable);
        assert!(failure.message().contains("lost a part"), "{failure}");
    }
    store.decide(id, false, &alice).unwrap();
    assert_eq!(listed(&open(&world, "b")).len(), 0);
}

/// Numbers that a participant collects.
#[derive(Debug, Default)]
struct Numbers(Vec<u8>);

impl Growing for Numbers {
    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn into_records(self) -> Vec<SideRecord> {
        vec![SideRecord { kind: 9, bytes: self.0.into() }]
    }
}

/// A failure that takes a session's batch also takes the participant's rows for it, but no later ones.
#[test]
fn what_a_participant_buffers_is_lost_with_its_session() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let (journal, session) = (store.journal(), Session::default());
    let buffered = Buffered::<Numbers>::default();
    let put = |number: u8| {
        buffered.put(journal.unflushed(), &session, 1, |own| {
            own.0.push(number);
            None
        });
    };
    put(1);
    put(2);
    // A value that cannot get a place in the data log takes the whole session's data with it.
    world.schedule(Plan::new(Fault::Io).kind(OpKind::Write));
    let options = ArchiveOptions::default();
    let large = pattern(LARGE, 1);
    error(archive(&store, "run=a,variable=mine", Value::Bytes(&large), &options), ErrorKind::Unavailable);
    world.clear_faults();
    put(3);
    put(4);
    buffered.pass(journal.unflushed(), &session, 1, vec![SideRecord { kind: 9, bytes: vec![5].into() }]);
    put(6);
    buffered.hand_over(journal.unflushed(), &session);
    put(7);
    buffered.discard(&session);
    buffered.hand_over(journal.unflushed(), &session);
    let pending = journal.unflushed().records(&session);
    let bytes: Vec<&[u8]> = pending.iter().map(|record| &*record.bytes).collect();
    assert_eq!(bytes, [&[3, 4][..], &[5], &[6]]);
}
