//! Tests of the parts that apply records, each over tables in memory.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use fieldstone_core::value::ValueType;
use fieldstone_format::Id;
use fieldstone_format::catalog::{Annotate, Record, RunDecl, RunName, TagDecl, VariableName};

use super::decisions::Decisions;
use super::declaration::content;
use super::derive::recompute_declared;
use super::fields::{FieldRow, Fields, Standing};
use super::ground::Ground;
use super::kinds::{RUN, STEP};
use super::layout::EngineLayout;
use super::order::{EntrySource, User, UserAt};
use super::summary::Delta;
use super::workspace::Workspace;
use super::{AttrRow, Cell, Database, NO_CURVE, NO_STEP, Sqlite, Wait, conflicts, declare};

const STORE: Id = Id([7; 16]);
const WRITER: Id = Id([1; 16]);

/// A transaction over new tables.
fn work() -> Workspace {
    let mut db = Sqlite::memory().unwrap();
    EngineLayout { store: STORE }.open(&mut db).unwrap();
    let mut work = Workspace::new(Box::new(db));
    begin(&mut work);
    work
}

fn begin(work: &mut Workspace) {
    work.ground.db.begin(true, Wait::Yes).unwrap();
    work.ground.refresh().unwrap();
    work.owners.begin(&mut work.ground, true).unwrap();
}

fn run(name: &str) -> RunName {
    RunName { project: String::new(), name: name.to_owned() }
}

/// The source of a record of a user with this stamp.
fn source(work: &mut Workspace, user: User, stamp: u64) -> EntrySource {
    let writer = Id([user as u8; 16]);
    work.ground.log_of(writer, user).unwrap();
    let log = work.ground.log(writer).unwrap();
    EntrySource {
        log,
        writer,
        sequence: stamp,
        record: 0,
        call: 0,
        own: stamp,
        user,
        txn: 0,
        order: (stamp, writer),
        decider: log,
    }
}

fn int(ground: &mut Ground, sql: &str) -> Option<i64> {
    ground.db.int(sql, &[]).unwrap()
}

#[test]
fn tables_of_another_store_are_made_again() {
    let mut db = Sqlite::memory().unwrap();
    let layout = EngineLayout { store: STORE };
    layout.open(&mut db).unwrap();
    db.execute("INSERT INTO run (run, project, name, declared, annotate, shut, owned) VALUES (1, '', 'a', 0, 0, 0, 0)", &[])
        .unwrap();
    let runs = |db: &mut dyn Database| db.int("SELECT COUNT(*) FROM run", &[]).unwrap();
    layout.open(&mut db).unwrap();
    assert_eq!(runs(&mut db), Some(1));
    EngineLayout { store: WRITER }.open(&mut db).unwrap();
    assert_eq!(runs(&mut db), Some(0));
}

#[test]
fn names_keep_their_numbers() {
    let mut work = work();
    let ground = &mut work.ground;
    let (a, b) = (ground.run(&run("a")).unwrap(), ground.run(&run("b")).unwrap());
    assert!(a != b && ground.names.is_new(a));
    let tag = TagDecl { name: "hot".into(), version: 0, kind: ValueType::Float, unit: String::new() };
    let hot = ground.tag(&tag).unwrap();
    let txn = ground.txn(WRITER).unwrap();
    ground.not_revertible(txn.number).unwrap();
    ground.next_revision().unwrap();
    ground.db.commit().unwrap();
    ground.forget();
    begin(&mut work);
    let ground = &mut work.ground;
    assert_eq!((ground.run(&run("b")).unwrap(), ground.run(&run("a")).unwrap()), (b, a));
    assert_eq!(ground.tag(&tag).unwrap(), hot);
    assert!(!ground.names.is_new(a) && ground.txn(WRITER).unwrap().not_revertible);
    assert_eq!(ground.run_text(a).unwrap(), "run 'a'");
}

#[test]
fn sums_follow_their_rows() {
    let mut work = work();
    let Workspace { ground, sums, .. } = &mut work;
    sums.load_series(ground, 1, 2, &[(5, 3)]).unwrap();
    let mut delta = Delta { n: 1, ..Delta::default() };
    delta.number(Some(4.0));
    assert!(sums.add_rows(ground, 1, 2, (5, 3), &delta).unwrap(), "it was empty");
    assert!(!sums.add_rows(ground, 1, 2, (5, 3), &delta).unwrap());
    sums.flush(ground).unwrap();
    assert_eq!(int(ground, "SELECT n FROM series WHERE run = 1 AND tag = 2 AND step = 5"), Some(2));
    assert_eq!(int(ground, "SELECT n FROM span WHERE run = 1 AND tag = 2"), Some(2));
    let row = AttrRow {
        run: 1,
        tag: 2,
        step: 5,
        variable: 3,
        curve: NO_CURVE,
        batch: 1,
        row: 0,
        kind: ValueType::Float,
        num: Some(4.0),
        payload: Cell::Null,
        region: &[],
    };
    sums.take_row(ground, &row, false).unwrap();
    sums.take_row(ground, &row, false).unwrap();
    sums.flush(ground).unwrap();
    assert_eq!(int(ground, "SELECT COUNT(*) FROM series"), Some(0));
    assert_eq!(int(ground, "SELECT COUNT(*) FROM span"), Some(0));
    assert_eq!(ground.dirty.steps.get(&(1, 5)), Some(&false), "perhaps nothing stands there any more");
}

#[test]
fn declarations_of_others_do_not_count() {
    let mut work = work();
    work.owners.set(Some(Arc::new(|_: &RunName| Some((10, 1)))), None);
    work.owners.begin(&mut work.ground, true).unwrap();
    let decl = RunDecl { annotate: Annotate::Owner, ..RunDecl::named(run("a")) };
    for (user, stamp) in [(11, 1), (10, 2)] {
        let source = source(&mut work, user, stamp);
        declare::declare_record(&mut work, source, &Record::Runs(vec![decl.clone()])).unwrap();
    }
    let a = work.ground.run(&run("a")).unwrap();
    let Workspace { ground, sums, owners, .. } = &mut work;
    let [ten, eleven] = [10, 11].map(|user| UserAt { user, stamp: 3 });
    assert!(owners.counts(ground, a, ten).unwrap() && !owners.counts(ground, a, eleven).unwrap());
    assert!(owners.takes(ground, a, ten, eleven).unwrap(), "the owner deletes what is others'");
    assert!(!owners.takes(ground, a, eleven, ten).unwrap());
    let (kept, others) = owners.declared_in(ground, RUN, a, 0).unwrap();
    assert_eq!((kept.len(), others.len()), (1, 1));
    assert_eq!(kept[0].content, content(&Record::Runs(vec![decl])));
    let declared = ground.dirty.declared_runs();
    owners.expel_guests(ground, sums, &declared).unwrap();
    assert!(owners.may_annotate(ground, a, ten).unwrap() && !owners.may_annotate(ground, a, eleven).unwrap());
    recompute_declared(ground, owners).unwrap();
    let found = conflicts(&mut *ground.db).unwrap();
    assert!(found.len() == 1 && found[0].contains("of user 11, who does not own the run"), "{found:?}");
}

#[test]
fn the_oldest_declaration_holds_whatever_came_first() {
    let mut work = work();
    let a = work.ground.run(&run("a")).unwrap();
    for (stamp, time) in [(9, 2.0f64), (3, 1.0)] {
        let source = source(&mut work, 10, stamp);
        let time = time.to_bits().to_le_bytes();
        declare::declare(&mut work, source, 0, (STEP, a, 5), &time).unwrap();
    }
    let Workspace { ground, owners, .. } = &mut work;
    recompute_declared(ground, owners).unwrap();
    assert_eq!(int(ground, "SELECT COUNT(*) FROM step WHERE step = 5 AND time = 1.0"), Some(1));
    assert_eq!(conflicts(&mut *ground.db).unwrap().len(), 1);
}

#[test]
fn fields_are_held_until_the_store_has_none() {
    let mut work = work();
    let (mut fields, decisions) = (Fields::default(), Decisions::default());
    let row = FieldRow {
        run: run("a"),
        variable: Some(VariableName { name: "t".into(), version: 0 }),
        step: Some(4),
        user: 10,
        sequence: 1,
        time: 5,
        transaction: None,
        removal: false,
        dtype: None,
        shape: Some(vec![3]),
    };
    let Workspace { ground, owners, .. } = &mut work;
    fields.apply(ground, owners, &decisions, WRITER, std::slice::from_ref(&row)).unwrap();
    assert!(fields.rechecks(ground, 10).unwrap().is_empty(), "what is archived is there");
    fields.flush(ground).unwrap();
    assert_eq!(int(ground, "SELECT field_step FROM variable"), Some(4));
    let removed = FieldRow { removal: true, ..row };
    fields.apply(ground, owners, &decisions, WRITER, &[removed]).unwrap();
    let asked = fields.rechecks(ground, 10).unwrap();
    assert!(asked.len() == 1 && asked[0].step == Some(4) && asked[0].array);
    fields.set_held(ground, &asked[0], &Standing::default()).unwrap();
    fields.flush(ground).unwrap();
    assert!(fields.rechecks(ground, 10).unwrap().is_empty());
    assert_eq!(int(ground, "SELECT COUNT(*) FROM held"), Some(0));
    assert_eq!(int(ground, "SELECT field_step FROM variable"), None);
    assert_ne!(Some(NO_STEP), asked[0].step);
}

#[test]
fn an_overlaid_transaction_shows_its_fields() {
    let mut decisions = Decisions::default();
    assert!(!decisions.shows_fields(STORE, WRITER, 1), "nothing is decided");
    decisions.overlaid = Some(STORE);
    assert!(decisions.shows_fields(STORE, WRITER, 1) && !decisions.shows_fields(WRITER, WRITER, 1));
    assert!(decisions.get(STORE).is_none());
}
