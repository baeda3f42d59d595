//! The embedded engine and the index on it: errors, plans, views, fields, overlays, corrections.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_catalog::engine::{
    self, AttrRow, Cell, Database, Dialect, FieldRow, Flow, Index, Interrupt, Probe, RunSelect, Selection,
    Sqlite, Standing, Tables, Wait,
};
use fieldstone_core::dtype::DType;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, AttributeId, Boxes, Column, Record, Removal, RunDecl, RunName, TagDecl, Values,
    VariableName,
};
use fieldstone_format::log::{Decision, SideRecord, kinds};
use fieldstone_journal::feed::{Commit, TransactionState};
use fieldstone_journal::snapshot::ALL_KINDS;

const STORE: Id = Id([1; 16]);
const WRITER: Id = Id([2; 16]);
const TRANSACTION: Id = Id([3; 16]);

fn index() -> Index {
    Index::open(Box::new(Sqlite::memory().unwrap()), STORE).unwrap()
}

fn run() -> RunName {
    RunName { project: String::new(), name: "storm".into() }
}

fn tag() -> TagDecl {
    TagDecl { name: "maximum".into(), version: 1, kind: ValueType::Float, unit: "K".into() }
}

fn variable() -> VariableName {
    VariableName { name: "temperature".into(), version: 1 }
}

/// Attributes of step 1, each on a box of its own along a line.
fn attributes(from: i64, values: &[f64]) -> Record {
    let starts = (0..values.len() as i64).map(|i| 10 * (from + i));
    Record::Attributes(AttributeBatch {
        keywords: Vec::new(),
        run: run(),
        tag: tag(),
        rows: values.len(),
        step: Some(Column::One(1)),
        variables: vec![variable()],
        variable: Column::One(0),
        boxes: Some(Boxes { rank: 1, start: starts.collect(), count: vec![10; values.len()], cells: None }),
        values: Values::Float(values.to_vec()),
        one_value: false,
        continues: false,
        singles: false,
    })
}

fn declaration() -> Record {
    let params = vec![("nx".to_owned(), Value::Int(100))];
    Record::Runs(vec![RunDecl {
        run: run(),
        job: Some("job.17".into()),
        params,
        created: 5,
        grid: None,
        notes: None,
        outside: None,
        annotate: Default::default(),
        if_exists: None,
        state: None,
    }])
}

fn commit(sequence: u64, side: &[SideRecord], transaction: Option<Id>) -> Commit {
    Commit {
        writer: WRITER,
        owner: 0,
        sequence,
        stamp: sequence,
        time: 0,
        transaction,
        order: None,
        side: side.to_vec(),
    }
}

/// One decision, which covers a whole log.
fn state(stamp: u64, kinds: u32, writer: Id) -> TransactionState {
    let covers = vec![(writer, u64::MAX)];
    let decision = Decision { transaction: TRANSACTION, committed: true, kinds, covers };
    TransactionState::of_one_user(TRANSACTION, &[((stamp, WRITER), decision)])
}

fn apply(index: &mut Index, sequence: u64, records: &[Record]) {
    let side: Vec<SideRecord> = records.iter().map(Record::encode).collect();
    assert!(index.begin_apply(Wait::Yes).unwrap());
    index.apply_commit(&commit(sequence, &side, None)).unwrap();
    index.set_watermark(WRITER, sequence).unwrap();
    index.end_apply().unwrap();
}

fn values(index: &mut Index) -> Vec<f64> {
    let mut found = Vec::new();
    let tags = index.tags().unwrap();
    let Some(tag) = tags.first().map(|tag| tag.id) else { return found };
    for span in index.spans(tag, None).unwrap() {
        let steps = i64::MIN..=i64::MAX;
        let probe = Probe::Key { run: span.run, tag, steps, variable: None, curve: None };
        index
            .scan(&[probe], &mut |row| {
                found.push(row.num.unwrap());
                Ok(Flow::More)
            })
            .unwrap();
    }
    found
}

fn read(index: &mut Index) -> Vec<f64> {
    index.begin_read().unwrap();
    let found = values(index);
    index.end_read().unwrap();
    found
}

fn sql(index: &mut Index, statement: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    index.begin_read().unwrap();
    let answer = index.sql(statement, None).map(|found| (found.names, found.rows));
    index.end_read().unwrap();
    answer
}

#[test]
fn errors_have_the_kind_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    std::fs::write(&path, [b'x'; 5000]).unwrap();
    let opened = Sqlite::open(&path).and_then(|db| Index::open(Box::new(db), STORE));
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("index.sqlite"), "{error}");
    assert!(error.hint().unwrap().contains("rebuild"), "{error}");
    assert_eq!(Sqlite::open(folder.path()).unwrap_err().kind(), ErrorKind::Denied);
    let nowhere = Sqlite::open(&folder.path().join("no/index.sqlite")).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Denied, "{nowhere}");
}

#[test]
fn a_damaged_page_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    let mut index = Index::open(Box::new(Sqlite::open(&path).unwrap()), STORE).unwrap();
    let many: Vec<f64> = (0..20_000).map(f64::from).collect();
    apply(&mut index, 1, &[attributes(0, &many)]);
    drop(index);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[8192..end].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let opened = Sqlite::open(&path).and_then(|db| Index::open(Box::new(db), STORE));
    let error = opened.and_then(|mut index| {
        index.begin_read()?;
        engine::dump(&mut index)
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn who_may_not_wait_is_told_at_once_and_readers_never_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    let open = || Index::open(Box::new(Sqlite::open(&path).unwrap()), STORE).unwrap();
    let (mut one, mut other) = (open(), open());
    apply(&mut other, 1, &[attributes(0, &[1.0])]);
    assert!(one.begin_apply(Wait::Yes).unwrap());
    let side = [attributes(1, &[2.0]).encode()];
    one.apply_commit(&commit(2, &side, None)).unwrap();
    assert!(!other.begin_apply(Wait::No).unwrap());
    assert_eq!(read(&mut other), [1.0]);
    one.set_watermark(WRITER, 2).unwrap();
    other.begin_read().unwrap();
    assert_eq!(values(&mut other), [1.0]);
    one.end_apply().unwrap();
    assert_eq!(values(&mut other), [1.0], "a read sees one state");
    other.end_read().unwrap();
    assert_eq!(read(&mut other), [1.0, 2.0]);
    // The other engine's part in memory is older than the tables now.
    apply(&mut other, 3, &[attributes(1, &[3.0])]);
    assert_eq!(read(&mut one), [1.0, 3.0]);
}

#[test]
fn every_probe_is_a_search() {
    let mut index = index();
    let steps = || 1..=1;
    let probes = [
        Probe::Key { run: 1, tag: 1, steps: 0..=9, variable: None, curve: None },
        Probe::Key { run: 1, tag: 1, steps: steps(), variable: Some(1), curve: None },
        Probe::Key { run: 1, tag: 1, steps: steps(), variable: Some(1), curve: Some(0..=9) },
        Probe::Number { run: 1, tag: 1, numbers: 0.0..=1.0 },
        Probe::Text { run: 1, tag: 1, from: "a".into(), to: Some("b".into()) },
        Probe::Text { run: 1, tag: 1, from: "a".into(), to: None },
    ];
    for probe in &probes {
        let sql = index.database().probe_sql(probe);
        let plan = index.database().explain(&sql).unwrap();
        assert!(plan.contains("SEARCH attr") && !plan.contains("SCAN"), "{probe:?}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{probe:?} is sorted: {plan}");
    }
}

#[test]
fn numbers_and_texts_are_found_by_value() {
    let mut index = index();
    let mut texts = attributes(0, &[0.0, 0.0, 0.0]);
    let Record::Attributes(batch) = &mut texts else { unreachable!() };
    batch.tag.name = "note".into();
    batch.tag.kind = ValueType::Text;
    batch.values = Values::Text(vec!["b".into(), "a".into(), "c".into()]);
    let numbers = attributes(0, &[3.0, f64::NEG_INFINITY, f64::NAN, 1.0]);
    apply(&mut index, 1, &[numbers, texts]);
    index.begin_read().unwrap();
    let mut found = |probe: Probe| {
        let mut values = Vec::new();
        let read = index.scan(&[probe], &mut |row| {
            values.push(row.value()?.to_string());
            Ok(Flow::More)
        });
        assert_eq!(read.unwrap(), values.len() as u64);
        values
    };
    assert_eq!(found(Probe::Number { run: 1, tag: 1, numbers: f64::NEG_INFINITY..=2.0 }), ["-inf", "1.0"]);
    let text = |from: &str, to: Option<&str>| Probe::Text {
        run: 1,
        tag: 2,
        from: from.into(),
        to: to.map(str::to_owned),
    };
    assert_eq!(found(text("a", Some("b"))), ["\"a\"", "\"b\""]);
    assert_eq!(found(text("b", None)), ["\"b\"", "\"c\""]);
}

#[test]
fn other_stores_and_layouts_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    let open = |store| Index::open(Box::new(Sqlite::open(&path).unwrap()), store).unwrap();
    let mut index = open(STORE);
    apply(&mut index, 1, &[attributes(0, &[1.0])]);
    drop(index);
    let mut index = open(STORE);
    assert_eq!(read(&mut index), [1.0]);
    index.database().batch("UPDATE meta SET value = '0' WHERE name = 'layout'").unwrap();
    drop(index);
    let mut index = open(STORE);
    assert!(read(&mut index).is_empty() && index.watermarks().unwrap().is_empty());
    apply(&mut index, 1, &[attributes(0, &[1.0])]);
    drop(index);
    assert!(read(&mut open(Id([9; 16]))).is_empty());
}

#[test]
fn views_say_names_and_only_reading_is_taken() {
    let mut index = index();
    apply(&mut index, 1, &[declaration(), attributes(3, &[271.5])]);
    let columns = "run, tag, unit, step, variable, number, box_rank(box), box_start(box, 0), box_count(box, 0), \
                   box_start(box, 1)";
    let (names, rows) = sql(&mut index, &format!("SELECT {columns} FROM attributes")).unwrap();
    assert_eq!(names[..3], ["run", "tag", "unit"]);
    let text = |text: &str| Value::Text(text.into());
    let Value::Null = rows[0][9] else { panic!("{rows:?}") };
    assert_eq!(
        rows[0][..9],
        [
            text("storm"),
            text("maximum"),
            text("K"),
            Value::Int(1),
            text("temperature"),
            Value::Float(271.5),
            Value::Int(1),
            Value::Int(30),
            Value::Int(10),
        ]
    );
    let (_, runs) = sql(&mut index, "SELECT run, job, params FROM runs").unwrap();
    assert_eq!(runs, [[text("storm"), text("job.17"), text("{\"nx\": 100}")]]);
    for view in ["steps", "variables", "tags", "series_of_attributes"] {
        let (_, rows) =
            sql(&mut index, &format!("WITH v AS (SELECT * FROM {view}) SELECT * FROM v")).unwrap();
        assert_eq!(rows.len(), 1, "{view}");
    }
    assert!(!sql(&mut index, "EXPLAIN QUERY PLAN SELECT * FROM attributes").unwrap().1.is_empty());
    for refused in [
        "DELETE FROM attr",
        "PRAGMA journal_mode = DELETE",
        "ATTACH 'x' AS y",
        "SELECT 1; DELETE FROM attr",
        "SELECT 1; SELECT 2",
        "WITH v AS (SELECT 1) DELETE FROM attr",
        "EXPLAIN SELECT 1; DROP TABLE attr",
        "",
        "SELECT nothing FROM attributes",
    ] {
        let error = sql(&mut index, refused).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{refused}: {error}");
        assert!(error.hint().is_some() || refused.is_empty(), "{refused}: {error}");
    }
    assert_eq!(read(&mut index), [271.5]);
}

fn field(step: i64, removal: bool, transaction: Option<Id>) -> FieldRow {
    let shape = (!removal).then(|| vec![4, 5]);
    FieldRow {
        user: 0,
        run: run(),
        variable: Some(variable()),
        step: Some(step),
        sequence: step as u64 + 1,
        time: 0,
        transaction,
        removal,
        dtype: None,
        shape,
    }
}

#[test]
fn fields_make_rows_and_removed_ones_are_asked_for() {
    let mut index = index();
    let apply = |index: &mut Index, rows: &[FieldRow]| {
        index.begin_apply(Wait::Yes).unwrap();
        index.apply_entries(WRITER, rows).unwrap();
    };
    apply(&mut index, &[field(0, false, None), field(1, false, None), field(1, false, None)]);
    assert!(index.rechecks(9).unwrap().is_empty());
    index.end_apply().unwrap();
    let held = |index: &mut Index| {
        index.begin_read().unwrap();
        let run = index.runs(&RunSelect::All).unwrap().first().map(|run| run.id);
        let found = run.map(|run| {
            let variables = index.variables(run).unwrap();
            let shape = variables.first().and_then(|v| v.decl.shape.clone());
            let held = variables.iter().flat_map(|v| index.held(run, v.id).unwrap()).collect::<Vec<_>>();
            (held, index.steps(run, 0..=9).unwrap().len(), shape)
        });
        index.end_read().unwrap();
        found
    };
    assert_eq!(held(&mut index), Some((vec![0, 1], 2, Some(vec![4, 5]))));
    apply(&mut index, &[field(0, true, None), field(1, true, None), field(7, true, None)]);
    let places = index.rechecks(9).unwrap();
    // No field of step 7 was read yet; an older one may come from another log.
    assert_eq!(places.iter().map(|place| place.step).collect::<Vec<_>>(), [Some(0), Some(1), Some(7)]);
    assert_eq!((&places[0].run, places[0].variable.as_ref()), (&run(), Some(&variable())));
    let opaque = Standing { held: true, array: None };
    let array = Standing { held: true, array: Some((DType::F8, vec![4, 5])) };
    assert!(places[1].array, "of the last step it must be known which array is there");
    index.set_held(&places[0], &Standing::default()).unwrap();
    index.set_held(&places[1], &array).unwrap();
    index.set_held(&places[2], &Standing::default()).unwrap();
    assert!(index.rechecks(9).unwrap().is_empty());
    assert_eq!(index.held_fields().places(None, 9).unwrap().len(), 1);
    index.end_apply().unwrap();
    assert_eq!(held(&mut index), Some((vec![1], 1, Some(vec![4, 5]))));
    apply(&mut index, &[]);
    let last = index.held_fields().places(None, 9).unwrap();
    index.set_held(&last[0], &opaque).unwrap();
    index.end_apply().unwrap();
    assert_eq!(held(&mut index), Some((vec![1], 1, None)), "no array is left");
    apply(&mut index, &[]);
    index.set_held(&last[0], &Standing::default()).unwrap();
    index.end_apply().unwrap();
    assert_eq!(held(&mut index), None, "nothing stands on the run");
}

#[test]
fn fields_of_a_transaction_wait_for_its_decision() {
    let mut index = index();
    let decide = |kinds: u32| [state(9 + u64::from(kinds), kinds, WRITER)];
    let prepared = [field(0, false, Some(TRANSACTION))];
    index.begin_apply(Wait::Yes).unwrap();
    index.apply_entries(WRITER, &prepared).unwrap();
    assert!(index.held_fields().places(None, 9).unwrap().is_empty());
    assert!(index.apply_decisions(&decide(kinds::RUN)).unwrap().fields == [TRANSACTION]);
    index.apply_entries(WRITER, &prepared).unwrap();
    assert!(index.held_fields().places(None, 9).unwrap().is_empty());
    assert!(index.apply_decisions(&decide(kinds::FIELDS)).unwrap().fields == [TRANSACTION]);
    assert!(index.apply_decisions(&decide(kinds::FIELDS)).unwrap().fields.is_empty());
    index.apply_entries(WRITER, &prepared).unwrap();
    assert_eq!(index.held_fields().places(None, 9).unwrap().len(), 1);
    index.end_apply().unwrap();
}

#[test]
fn what_is_laid_over_is_seen_and_goes() {
    let mut index = index();
    apply(&mut index, 1, &[attributes(0, &[1.0, 2.0])]);
    let prepared = [attributes(5, &[5.0]).encode()];
    index.begin_apply(Wait::Yes).unwrap();
    index.apply_commit(&commit(2, &prepared, Some(TRANSACTION))).unwrap();
    index.set_watermark(WRITER, 2).unwrap();
    index.end_apply().unwrap();
    assert_eq!(read(&mut index), [1.0, 2.0]);
    // This process corrects one value and adds one.
    let own = [attributes(1, &[20.0, 30.0]).encode()];
    let own = [commit(3, &own, None)];
    for _ in 0..2 {
        assert!(index.overlay(None, &own).unwrap());
        assert_eq!(values(&mut index), [1.0, 20.0, 30.0]);
        index.end_read().unwrap();
        assert!(index.overlay(Some(TRANSACTION), &own).unwrap());
        assert_eq!(values(&mut index), [1.0, 20.0, 30.0, 5.0]);
        index.end_read().unwrap();
        assert_eq!(read(&mut index), [1.0, 2.0]);
    }
    assert!(!index.overlay(None, &[]).unwrap());
    assert_eq!(index.watermarks().unwrap().of(WRITER), 2);
}

#[test]
fn damaged_and_unknown_records_are_skipped_and_named() {
    let mut index = index();
    let mut damaged = attributes(0, &[1.0; 40]).encode();
    damaged.bytes = damaged.bytes[..20].into();
    let unknown = SideRecord { kind: 0x01ff, bytes: vec![0, 1].into() };
    let other = SideRecord { kind: 0x0900, bytes: vec![7].into() };
    let side = [damaged, unknown, other, attributes(0, &[4.0]).encode()];
    index.begin_apply(Wait::Yes).unwrap();
    index.apply_commit(&commit(1, &side, None)).unwrap();
    index.end_apply().unwrap();
    assert_eq!(read(&mut index), [4.0]);
    let problems = index.take_problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(problems[0].kind(), ErrorKind::Corrupt);
    assert!(problems[0].message().contains("side record 0 of commit 1"), "{}", problems[0]);
    assert!(index.take_problems().is_empty());
}

/// Counts rows of attr that are read.
#[derive(Debug)]
struct Counting(Sqlite, Arc<AtomicU64>);

impl Database for Counting {
    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }
    fn begin(&mut self, write: bool, wait: Wait) -> Result<bool> {
        self.0.begin(write, wait)
    }
    fn commit(&mut self) -> Result<()> {
        self.0.commit()
    }
    fn rollback(&mut self) -> Result<()> {
        self.0.rollback()
    }
    fn batch(&mut self, sql: &str) -> Result<()> {
        self.0.batch(sql)
    }
    fn execute(&mut self, sql: &str, parameters: &[Cell<'_>]) -> Result<u64> {
        self.0.execute(sql, parameters)
    }
    fn query(
        &mut self,
        sql: &str,
        parameters: &[Cell<'_>],
        row: &mut dyn FnMut(&[Cell<'_>]) -> Result<Flow>,
    ) -> Result<()> {
        self.0.query(sql, parameters, row)
    }
    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        let read = self.0.scan(probes, row)?;
        self.1.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
    fn insert_attrs(&mut self, rows: &mut dyn Iterator<Item = AttrRow<'_>>) -> Result<u64> {
        self.0.insert_attrs(rows)
    }
    fn explain(&mut self, sql: &str) -> Result<String> {
        self.0.explain(sql)
    }
    fn probe_sql(&self, probe: &Probe) -> String {
        self.0.probe_sql(probe)
    }
    fn select(&mut self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.0.select(statement, stop)
    }
}

#[test]
fn a_correction_reads_its_own_place_alone() {
    let read = Arc::new(AtomicU64::new(0));
    let counting = Counting(Sqlite::memory().unwrap(), Arc::clone(&read));
    let mut index = Index::open(Box::new(counting), STORE).unwrap();
    let many: Vec<f64> = (0..20_000).map(f64::from).collect();
    apply(&mut index, 1, &[attributes(0, &many)]);
    assert_eq!(read.swap(0, Ordering::Relaxed), 0, "a new series needs no look");
    apply(&mut index, 2, &[attributes(5_000, &[-0.5 + 5_000.0])]);
    assert!(read.swap(0, Ordering::Relaxed) <= 16, "boxes near the corrected one alone");
    apply(&mut index, 3, &[attributes(20_000, &[7.0])]);
    assert!(read.swap(0, Ordering::Relaxed) <= 16, "a row on a new place");
    // The greatest value goes: the sum of its series is computed again.
    apply(&mut index, 4, &[attributes(19_999, &[1.0])]);
    index.begin_read().unwrap();
    let series = index.series(1, 1, 0..=9).unwrap();
    assert_eq!((series[0].n, series[0].numbers), (20_001, Some((0.0, 19_998.0))));
    index.end_read().unwrap();
}

/// Applies one record of a log as its commit `sequence`, with a stamp.
fn apply_of(index: &mut Index, writer: u8, stamp: u64, transaction: Option<Id>, record: &Record) {
    let writer = Id([writer; 16]);
    assert!(index.begin_apply(Wait::Yes).unwrap());
    let commit = Commit { writer, ..commit(stamp, &[record.encode()], transaction) };
    index.apply_commit(&commit).unwrap();
    index.set_watermark(writer, stamp).unwrap();
    index.end_apply().unwrap();
}

#[test]
fn what_a_deleted_attribute_had_replaced_stays_hidden_when_it_is_read_late() {
    let deleted = AttributeId { writer: Some(Id([11; 16])), sequence: 10, record: 0, row: 0 };
    let removal = Record::Remove(vec![Removal::Attributes(vec![deleted])]);
    let (old, new) = (attributes(0, &[1.0, 2.0]), attributes(0, &[10.0]));
    for late in [false, true] {
        let mut index = index();
        if !late {
            apply_of(&mut index, 12, 5, None, &old);
        }
        apply_of(&mut index, 11, 10, None, &new);
        apply_of(&mut index, 13, 20, None, &removal);
        if late {
            apply_of(&mut index, 12, 5, None, &old);
        }
        assert_eq!(read(&mut index), [2.0], "late: {late}");
    }
}

#[test]
fn what_a_transaction_kept_out_comes_back_by_replay() {
    let mut index = index();
    let decide = |stamp: u64, kinds: u32| [state(stamp, kinds, Id([11; 16]))];
    apply_of(&mut index, 11, 3, Some(TRANSACTION), &attributes(0, &[10.0]));
    index.begin_apply(Wait::Yes).unwrap();
    assert!(!index.apply_decisions(&decide(20, kinds::VARIABLE_ATTRIBUTE)).unwrap().rebuild);
    index.end_apply().unwrap();
    // Older than the decision, and read after it: it is not taken.
    apply_of(&mut index, 12, 15, None, &attributes(0, &[1.0]));
    assert_eq!(read(&mut index), [10.0]);
    index.begin_apply(Wait::Yes).unwrap();
    assert!(index.apply_decisions(&decide(30, kinds::RUN)).unwrap().rebuild);
    index.abort().unwrap();
    assert_eq!(read(&mut index), [10.0], "what was given up changed nothing");
    index.begin_apply(Wait::Yes).unwrap();
    index.clear().unwrap();
    assert!(!index.apply_decisions(&decide(30, kinds::RUN)).unwrap().rebuild);
    index.end_apply().unwrap();
    apply_of(&mut index, 11, 3, Some(TRANSACTION), &attributes(0, &[10.0]));
    apply_of(&mut index, 12, 15, None, &attributes(0, &[1.0]));
    assert_eq!(read(&mut index), [1.0]);
}

/// Only the transaction's own records are read again.
#[test]
fn a_kind_of_a_whole_transaction_is_switched_off_and_on_without_a_replay() {
    let mut index = index();
    let decide = |stamp: u64, kinds: u32| [state(stamp, kinds, Id([11; 16]))];
    apply_of(&mut index, 12, 2, None, &attributes(0, &[1.0]));
    let records = [attributes(5, &[10.0]), attributes(6, &[20.0])];
    for (i, record) in records.iter().enumerate() {
        apply_of(&mut index, 11, 3 + i as u64, Some(TRANSACTION), record);
    }
    let decided = |index: &mut Index, stamp, kinds, is_lacking| {
        assert!(index.begin_apply(Wait::Yes).unwrap());
        let answer = index.apply_decisions(&decide(stamp, kinds)).unwrap();
        assert_eq!((answer.rebuild, answer.lacking.len()), (false, usize::from(is_lacking)));
        if is_lacking {
            let commits = records.iter().enumerate().map(|(i, record)| {
                let commit = commit(3 + i as u64, &[record.encode()], Some(TRANSACTION));
                Ok(Commit { writer: Id([11; 16]), ..commit })
            });
            engine::restore(index, TRANSACTION, &mut commits.into_iter()).unwrap();
            let answer = index.apply_decisions(&decide(stamp, kinds)).unwrap();
            assert!(!answer.rebuild && answer.lacking.is_empty() && answer.fields == [TRANSACTION]);
        }
        index.end_apply().unwrap();
        read(index)
    };
    assert_eq!(decided(&mut index, 20, ALL_KINDS, false), [1.0, 10.0, 20.0]);
    assert_eq!(decided(&mut index, 30, ALL_KINDS & !kinds::VARIABLE_ATTRIBUTE, true), [1.0]);
    assert_eq!(decided(&mut index, 40, ALL_KINDS, false), [1.0, 10.0, 20.0]);
    assert_eq!(decided(&mut index, 50, ALL_KINDS & !kinds::RUN_ATTRIBUTE, true), [1.0, 10.0, 20.0]);
}

#[test]
fn many_open_one_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    std::thread::scope(|scope| {
        for thread in 0..12_u8 {
            let path = &path;
            scope.spawn(move || {
                let mut index = Index::open(Box::new(Sqlite::open(path).unwrap()), STORE).unwrap();
                apply_of(&mut index, 20 + thread, 7, None, &attributes(i64::from(thread), &[1.0]));
            });
        }
    });
    let mut index = Index::open(Box::new(Sqlite::open(&path).unwrap()), STORE).unwrap();
    assert_eq!(read(&mut index).len(), 12);
}

/// A process that follows a newer feed has applied a decision and stopped. Then another one, which does not
/// know the decision, applies content that it covers.
#[test]
fn a_decision_that_the_tables_were_told_too_early_is_told_again() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Index::open(Box::new(Sqlite::open(&folder.path().join("x")).unwrap()), STORE).unwrap();
    let (mut knows, mut other) = (open(), open());
    let decided = [state(20, kinds::VARIABLE_ATTRIBUTE, Id([11; 16]))];
    assert!(knows.begin_apply(Wait::Yes).unwrap());
    assert!(!knows.apply_decisions(&decided).unwrap().rebuild);
    knows.end_apply().unwrap();
    apply_of(&mut other, 11, 3, Some(TRANSACTION), &attributes(0, &[10.0]));
    assert!(knows.begin_apply(Wait::Yes).unwrap());
    assert_eq!(knows.apply_decisions(&decided).unwrap().fields, [TRANSACTION]);
    knows.end_apply().unwrap();
    assert_eq!(read(&mut knows), [10.0]);
}

#[test]
fn what_a_transaction_does_not_cover_is_not_laid_over_after_its_end() {
    let mut index = index();
    for writer in [11, 12] {
        apply_of(&mut index, writer, 3, Some(TRANSACTION), &attributes(0, &[f64::from(writer)]));
    }
    // The end covers one of the logs; then its attributes are hidden again.
    let decision = |kinds| Decision {
        transaction: TRANSACTION,
        committed: true,
        kinds,
        covers: vec![(Id([11; 16]), u64::MAX)],
    };
    let decisions = [((20, WRITER), decision(u32::MAX)), ((30, WRITER), decision(kinds::RUN))];
    assert!(index.begin_apply(Wait::Yes).unwrap());
    let states = [TransactionState::of_one_user(TRANSACTION, &decisions)];
    assert!(!index.apply_decisions(&states).unwrap().rebuild);
    index.end_apply().unwrap();
    assert!(index.overlay(Some(TRANSACTION), &[]).unwrap());
    assert_eq!(values(&mut index), [11.0]);
    index.end_read().unwrap();
}
