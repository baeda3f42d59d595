//! The catalog end to end: declarations and annotations are found, with user and time.

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::query::{Dim, Range, Relation, Term};
use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{By, Deletion, Query};
use fieldstone::prelude::*;
use fieldstone::{Code, ErrorKind, OpenOptions};
use fieldstone_format::catalog::*;

#[test]
fn what_is_annotated_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 3.5);
    both.annotate("a", "max", 2, [4, 4], 9.5);
    both.catalog.annotate(on_run("a", "cost", 7.0), &Session::default()).unwrap();
    let expected = ["a - - cost 7.0 -", "a 1 t max 3.5 [0, 0]", "a 2 t max 9.5 [4, 4]"];
    for _ in 0..2 {
        let mut all = both.hits(vec![]);
        all.sort();
        assert_eq!(all, expected, "before the flush and after it");
        assert_eq!(both.hits(vec![tag_is("max"), above(4.0)]), [expected[2]]);
        let region = vec![(Dim::Index(0), Range::Index(Some(0), Some(2)))];
        assert_eq!(both.hits(vec![Term::Region(region, Relation::Overlaps)]), [expected[1]]);
        assert_eq!(both.catalog.count(&all_of(vec![tag_is("max")])).unwrap(), 2);
        let groups = both.catalog.aggregate(&all_of(vec![tag_is("max")]), &[By::Run, By::Step]).unwrap();
        assert_eq!(
            groups.iter().map(|g| (g.step, g.max)).collect::<Vec<_>>(),
            [(Some(1), Some(3.5)), (Some(2), Some(9.5))]
        );
        let streamed: Vec<_> = both.catalog.stream(&all_of(vec![tag_is("max")])).unwrap().collect();
        assert_eq!(streamed.len(), 2);
        assert!(streamed.iter().all(|hit| hit.is_ok()));
        both.flush();
    }
    let steps: Vec<i64> = both.catalog.steps(&Query::all()).unwrap().iter().map(|step| step.step).collect();
    assert_eq!(steps, [1, 2], "steps appear by themselves");
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
    assert!(Both::engine(folder.path()).exists());
}

#[test]
fn nothing_is_made_before_the_first_commit() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store");
    let both = Both::open(&url.display().to_string(), &OpenOptions::default());
    assert_eq!(both.catalog.runs(&Query::all()).unwrap_err().code(), Code::StoreNotFound);
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 1.0);
    assert_eq!(both.hits(vec![]).len(), 1);
    assert!(!url.exists());
}

#[test]
fn what_is_not_flushed_is_seen_by_its_own_process_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = (Both::at(folder.path()), Both::at(folder.path()));
    writer.prepare("a");
    writer.flush();
    writer.annotate("a", "max", 1, [0, 0], 1.0);
    assert_eq!((writer.hits(vec![]).len(), reader.hits(vec![]).len()), (1, 0));
    writer.flush();
    assert_eq!((writer.hits(vec![]).len(), reader.hits(vec![]).len()), (1, 1));
    writer.annotate("a", "max", 2, [0, 0], 1.0);
    writer.store.discard(None).unwrap();
    assert_eq!((writer.hits(vec![]).len(), reader.hits(vec![]).len()), (1, 1));
}

#[test]
fn declarations_are_checked() {
    let both = Both::memory();
    both.prepare("a");
    let kind = |outcome: fieldstone::Result<()>| outcome.map_err(|e| e.kind());
    let again = |decl: RunDecl, exist_ok| kind(both.catalog.create_run(decl, exist_ok, &Session::default()));
    assert_eq!(again(RunDecl::named(run("a")), false), Err(ErrorKind::Conflict));
    assert_eq!(again(RunDecl::named(run("a")), true), Ok(()));
    let other = RunDecl { params: vec![("nx".into(), Value::Int(1))], ..RunDecl::named(run("a")) };
    assert_eq!(again(other, true), Err(ErrorKind::Conflict));
    let project = RunName { project: "p".into(), name: "a".into() };
    assert_eq!(again(RunDecl::named(project.clone()), false), Ok(()), "unique within its project");
    assert_eq!(both.catalog.run(None, "a", &Session::default()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(both.catalog.run(Some("p"), "a", &Session::default()).unwrap().decl.run, project);

    let variables = |decl| kind(both.catalog.create_variables(&run("a"), vec![decl], &Session::default()));
    assert_eq!(variables(variable("t", &[8, 8])), Ok(()));
    assert_eq!(variables(variable("t", &[8, 9])), Err(ErrorKind::Conflict));
    assert_eq!(both.catalog.variables(&Query::all()).unwrap().len(), 1);
    let dims = VariableDecl { dims: vec!["x".into()], ..variable("u", &[8, 8]) };
    assert_eq!(variables(dims), Err(ErrorKind::Invalid));

    let steps = |number, time| {
        kind(both.catalog.create_steps(&run("a"), vec![StepDecl { number, time }], &Session::default()))
    };
    assert_eq!(steps(1, None), Ok(()));
    assert_eq!(steps(1, Some(0.5)), Ok(()));
    assert_eq!(steps(1, Some(0.5)), Ok(()));
    assert_eq!(steps(1, Some(0.6)), Err(ErrorKind::Conflict));
    both.flush();
    assert_eq!(steps(1, Some(0.6)), Err(ErrorKind::Conflict));
    assert_eq!(both.catalog.steps(&Query::all()).unwrap()[0].time, Some(0.5));

    let tags = |kind| TagDecl { kind, ..float_tag("max") };
    let shown = both
        .catalog
        .create_tags(vec![tags(ValueType::Float), tags(ValueType::Int)], &Session::default())
        .unwrap();
    assert_eq!(shown.iter().map(|tag| tag.version).collect::<Vec<_>>(), [0, 1], "its own version");
    both.flush();
    assert_eq!(
        both.catalog.create_tags(vec![tags(ValueType::Int)], &Session::default()).unwrap()[0].version,
        1
    );
    assert!(both.catalog.conflicts().unwrap().is_empty());
}

#[test]
fn attributes_stand_on_what_is_there() {
    let both = Both::memory();
    both.prepare("astro");
    let error = both.try_annotate("astrp", "max", 1, [0, 0], 1.0, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("astro"), "{error}");
    let mut batch = AttributeBatch { variables: vec![variable_name("tt")], ..on_run("astro", "max", 1.0) };
    let error = both.catalog.annotate(batch.clone(), &Session::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("no variable 'tt'"), "{error}");
    assert_eq!(
        both.try_annotate("astro", "max", 1, [7, 0], 1.0, None).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    batch.variables = Vec::new();
    batch.tag.kind = ValueType::Int;
    let error = both.catalog.annotate(batch, &Session::default()).unwrap_err();
    assert_eq!(error.message(), "tag 'max' takes int, not 1.0 (float)");
    assert!(both.hits(vec![]).is_empty(), "a refused call leaves nothing");
}

#[test]
fn a_tag_is_chosen_by_name_and_type() {
    let both = Both::memory();
    both.prepare("a");
    let made = both.catalog.tag_for("max", None, ValueType::Float, &Session::default()).unwrap();
    assert_eq!((made.kind, made.version), (ValueType::Float, 0));
    both.annotate("a", "max", 1, [0, 0], 1.0);
    let int = both.catalog.tag_for("max", None, ValueType::Int, &Session::default()).unwrap();
    assert_eq!(int.kind, ValueType::Float, "an int goes where floats go");
    let text = both.catalog.tag_for("max", None, ValueType::Text, &Session::default()).unwrap();
    assert_eq!(text.kind, ValueType::Float, "what does not fit is refused with the value");
    assert_eq!(
        both.catalog.tag_for("max", Some(3), ValueType::Text, &Session::default()).unwrap().version,
        3
    );
}

#[test]
fn columns_of_a_call_stay_and_a_later_call_corrects() {
    let both = Both::memory();
    both.prepare("a");
    let mut batch = columns("a", "max", 200);
    batch.step = Some(Column::One(5));
    batch.boxes = None;
    both.catalog.annotate(batch, &Session::default()).unwrap();
    assert_eq!(both.hits(vec![]).len(), 200, "rows of one call never replace each other");
    let one = AttributeBatch {
        step: Some(Column::One(5)),
        variables: vec![variable_name("t")],
        ..on_run("a", "max", 1.5)
    };
    both.catalog.annotate(one, &Session::default()).unwrap();
    assert_eq!(both.hits(vec![]), ["a 5 t max 1.5 -"]);
    both.flush();
    assert_eq!(both.hits(vec![]), ["a 5 t max 1.5 -"]);
    for value in [2.5, 3.5] {
        both.annotate("a", "max", 6, [0, 0], value);
    }
    assert_eq!(
        both.hits(vec![Term::Step(vec![(6, 6)])]),
        ["a 6 t max 3.5 [0, 0]"],
        "of two single calls too"
    );
}

#[test]
fn many_columns_travel_in_many_records() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    both.catalog.annotate(columns("a", "max", 150_000), &Session::default()).unwrap();
    both.flush();
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 150_000);
    let streamed = both.catalog.stream(&Query::all()).unwrap();
    assert_eq!(streamed.filter(Result::is_ok).count(), 150_000);
    let mut begun = both.catalog.stream(&Query::all()).unwrap();
    assert!(begun.next().unwrap().is_ok());
    drop(begun);
    assert_eq!(both.hits(vec![above(18_749.8)]).len(), 1);
}

#[test]
fn deletions_take_what_stands_below_and_leave_older_versions() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    for name in ["a", "b"] {
        both.prepare(name);
        both.annotate(name, "max", 1, [0, 0], 1.0);
        both.annotate(name, "max", 2, [0, 0], 2.0);
        both.annotate(name, "min", 2, [0, 0], 0.5);
    }
    both.flush();
    let before = both.store.version().unwrap();
    let runs = Deletion::Runs(all_of(vec![run_is("a")]));
    let report = both.catalog.delete(&runs, false, false, &Session::default()).unwrap();
    assert_eq!((report.runs, report.steps, report.variables, report.attributes), (1, 2, 1, 3));
    assert!(!report.done);
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 6, "only said");
    assert!(both.catalog.delete(&runs, false, true, &Session::default()).unwrap().done);
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 3, "own, before the flush");
    assert_eq!(both.try_annotate("a", "max", 1, [0, 0], 1.0, None).unwrap_err().kind(), ErrorKind::NotFound);
    both.flush();
    assert_eq!(both.hits(vec![run_is("a")]).len(), 0);
    let attributes = Deletion::Attributes(all_of(vec![tag_is("max"), above(1.5)]));
    assert_eq!(both.catalog.delete(&attributes, false, true, &Session::default()).unwrap().attributes, 1);
    assert_eq!(both.hits(vec![]), ["b 1 t max 1.0 [0, 0]", "b 2 t min 0.5 [0, 0]"]);
    let steps = Deletion::Steps(all_of(vec![Term::Step(vec![(1, 1)])]));
    assert_eq!(both.catalog.delete(&steps, false, true, &Session::default()).unwrap().attributes, 1);
    let tags = Deletion::Tags(all_of(vec![tag_is("min")]));
    assert_eq!(both.catalog.delete(&tags, false, true, &Session::default()).unwrap().tags, 1);
    both.flush();
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 0);
    // Made again later, it exists again.
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 8.0);
    both.flush();
    assert_eq!(both.hits(vec![]), ["a 1 t max 8.0 [0, 0]"]);
    let older = OpenOptions { at: Some(before), ..OpenOptions::default() };
    let older = Both::open(&folder.path().display().to_string(), &older);
    assert_eq!(older.catalog.count(&Query::all()).unwrap(), 6);
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}

#[test]
fn what_is_not_flushed_can_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    both.flush();
    let delete = |value| {
        let attributes = Deletion::Attributes(all_of(vec![above(value)]));
        both.catalog.delete(&attributes, false, true, &Session::default()).unwrap().attributes
    };
    for step in 0..4 {
        both.annotate("a", "max", step, [0, 0], step as f64);
    }
    both.catalog.annotate(columns("a", "other", 10), &Session::default()).unwrap();
    assert_eq!(delete(2.5), 1);
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 13);
    both.annotate("a", "max", 3, [0, 0], 30.0);
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 14, "a later one lives");
    both.flush();
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), 14);
    assert_eq!(both.hits(vec![above(2.5)]), ["a 3 t max 30.0 [0, 0]"]);
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}
