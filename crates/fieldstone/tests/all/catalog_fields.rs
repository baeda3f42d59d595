//! Fields make runs, steps and variables of their own, and the catalog never contradicts the store's lists about them.

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::value::ValueType;
use fieldstone::catalog::{Deletion, Query};
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, ListOptions, OpenOptions, Request};
use fieldstone_format::catalog::*;
use fieldstone_testkit::samples::{python_with, sample};
use fieldstone_testkit::seeded;

const T1: &[(&str, &str)] = &[("run", "a"), ("variable", "t"), ("step", "1")];

#[test]
fn fields_can_be_tagged() {
    let both = Both::memory();
    both.archive(T1, &[8, 8], None);
    assert!(both.catalog.runs(&Query::all()).unwrap().is_empty(), "not flushed");
    both.flush();
    let runs = both.catalog.runs(&Query::all()).unwrap();
    assert_eq!((runs.len(), runs[0].declared), (1, false));
    assert_eq!(both.variables(), ["a t Some([8, 8]) [1]"]);
    both.annotate("a", "max", 1, [6, 6], 1.0);
    assert_eq!(both.try_annotate("a", "max", 1, [7, 6], 1.0, None).unwrap_err().kind(), ErrorKind::Invalid);
    both.flush();
    let key = both.catalog.key_of(&run("a"), Some("t"), Some(1)).unwrap();
    let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(key, T1);
    both.store.get(&key, &Default::default()).unwrap();
    // Declared now: consistent with its fields, or not declared.
    both.create_run("a");
    let declare = |shape: &[u64]| {
        both.catalog.create_variables(&run("a"), vec![variable("t", shape)], &Session::default())
    };
    assert_eq!(declare(&[8, 9]).unwrap_err().kind(), ErrorKind::Conflict);
    declare(&[8, 8]).unwrap();
    assert!(both.catalog.runs(&Query::all()).unwrap()[0].declared);
}

#[test]
fn removed_fields_are_held_no_more() {
    let both = Both::memory();
    let member = |member| [("run", "a"), ("variable", "t"), ("step", "1"), ("member", member)];
    both.archive(&member("1"), &[4], None);
    both.archive(&member("2"), &[4], None);
    both.archive(&[("run", "a"), ("variable", "t"), ("step", "2")], &[4], None);
    both.archive(&[("run", "b"), ("variable", "u"), ("step", "2")], &[4], None);
    both.flush();
    assert_eq!(both.variables(), ["a t Some([4]) [1, 2]", "b u Some([4]) [2]"]);
    assert_eq!(both.remove("run=a,member=1"), 1);
    both.flush();
    assert_eq!(both.variables()[0], "a t Some([4]) [1, 2]", "another member is there");
    assert_eq!(both.remove("run=a,member=2"), 1);
    both.flush();
    assert_eq!(both.variables()[0], "a t Some([4]) [2]");
    both.archive(&member("2"), &[4], None);
    both.flush();
    assert_eq!(both.variables()[0], "a t Some([4]) [1, 2]", "archived again");
    both.remove("run=a");
    both.flush();
    assert_eq!(both.variables(), ["b u Some([4]) [2]"]);
    assert_eq!(both.catalog.runs(&Query::all()).unwrap().len(), 1);
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}

#[test]
fn logs_may_be_read_in_any_order() {
    // The removal is in another log than the field, and is applied before or after it.
    for first in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (Both::at(folder.path()), Both::at(folder.path()));
        one.archive(T1, &[4], None);
        one.flush();
        if first {
            assert_eq!(one.variables().len(), 1);
        }
        assert_eq!(other.remove("run=a"), 1);
        other.flush();
        assert_eq!(Both::at(folder.path()).variables().len(), 0);
        std::fs::remove_dir_all(folder.path().join("catalog")).unwrap();
        assert_eq!(Both::at(folder.path()).variables().len(), 0, "from the newest entry to the oldest");
        one.archive(T1, &[4], None);
        one.flush();
        assert_eq!(other.variables(), ["a t Some([4]) [1]"]);
    }
}

#[test]
fn opaque_fields_have_no_shape() {
    let both = Both::memory();
    let value = fieldstone::Value::Bytes(b"bytes");
    both.store.archive(T1, value, &Default::default()).unwrap();
    both.flush();
    assert_eq!(both.variables(), ["a t None [1]"]);
    both.annotate("a", "max", 1, [100, 100], 1.0);
}

#[test]
fn fields_go_with_their_run() {
    let both = Both::memory();
    both.prepare("a");
    both.archive(T1, &[8, 8], None);
    both.annotate("a", "max", 1, [0, 0], 1.0);
    both.archive(&[("run", "b"), ("variable", "t"), ("step", "1")], &[8, 8], None);
    both.flush();
    let runs = Deletion::Runs(all_of(vec![run_is("a")]));
    assert_eq!(both.catalog.delete(&runs, true, false, &Session::default()).unwrap().fields, 1);
    let report = both.catalog.delete(&runs, true, true, &Session::default()).unwrap();
    assert_eq!((report.fields, report.attributes), (1, 1));
    both.flush();
    let listed = both.store.list(&Request::new(), &ListOptions::default()).unwrap();
    assert_eq!(listed.count(), 1);
    assert_eq!(both.variables(), ["b t Some([8, 8]) [1]"]);
    // The deletion leaves the fields, which still name the run.
    let runs = Deletion::Runs(all_of(vec![run_is("b")]));
    both.catalog.delete(&runs, false, true, &Session::default()).unwrap();
    both.flush();
    assert_eq!(both.variables(), ["b t Some([8, 8]) [1]"]);
    let tags = Deletion::Tags(Query::all());
    assert_eq!(
        both.catalog.delete(&tags, true, true, &Session::default()).unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn what_the_catalog_holds_is_what_the_store_lists() {
    // Random archiving and removing by two writers, with and without transactions.
    let mut random = seeded(1);
    for _ in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let writers = [Both::at(folder.path()), Both::at(folder.path())];
        for _ in 0..40 {
            let both = &writers[random.below(2) as usize];
            let (step, member) = (random.below(3).to_string(), random.below(3).to_string());
            let key = [("run", "a"), ("variable", "t"), ("step", &*step), ("member", &*member)];
            match random.below(6) {
                0 => drop(both.remove(&format!("run=a,step={step},member={member}"))),
                1 => drop(both.remove(&format!("run=a,step={step}"))),
                2 => {
                    let transaction = both.store.begin().unwrap();
                    both.archive(&key, &[4], Some(transaction));
                    both.store.flush(Some(transaction)).unwrap();
                    drop(both.variables());
                    both.store.decide(transaction, random.below(2) == 0).unwrap();
                }
                _ => both.archive(&key, &[4], None),
            }
            both.flush();
            let reader = &writers[random.below(2) as usize];
            let listed = reader.store.axes(&Request::new(), &Default::default()).unwrap();
            let steps = listed.iter().find(|(keyword, _)| &**keyword == "step");
            let steps: Vec<String> = steps
                .map(|(_, values)| values.iter().map(|v| v.text().into_owned()).collect())
                .unwrap_or_default();
            let held: Vec<String> =
                reader.catalog.steps(&Query::all()).unwrap().iter().map(|s| s.step.to_string()).collect();
            assert_eq!(held, steps);
        }
        let check = writers[0].catalog.verify().unwrap();
        assert!(check.ok(), "{check:#?}");
    }
}

#[test]
fn a_forecast_is_a_run() {
    let options = OpenOptions { schema: Some("mars".into()), ..OpenOptions::default() };
    let both = Both::open("memory:", &options);
    let key = |step| {
        [
            ("class", "od"),
            ("expver", "0001"),
            ("stream", "oper"),
            ("date", "20240229"),
            ("time", "1200"),
            ("type", "fc"),
            ("levtype", "sfc"),
            ("step", step),
            ("param", "167"),
        ]
    };
    for step in ["0", "6"] {
        both.store.archive(&key(step), fieldstone::Value::Bytes(b"GRIB"), &Default::default()).unwrap();
    }
    both.flush();
    let name = run("od/0001/oper/20240229/1200");
    assert_eq!(both.variables(), [format!("{} 167 None [0, 6]", name.name)]);
    let tag = both.catalog.tag_for("storm", None, ValueType::Bool, &Session::default()).unwrap();
    let batch = AttributeBatch {
        run: name.clone(),
        tag,
        step: Some(Column::One(6)),
        variables: vec![variable_name("167")],
        values: Values::Bool(vec![true]),
        ..on_run("", "", 0.0)
    };
    both.catalog.annotate(batch, &Session::default()).unwrap();
    both.flush();
    let hit = both.catalog.attributes(&Query::all()).unwrap().hit(0).unwrap();
    let pairs = both.catalog.key_of(&name, hit.variable.as_deref(), hit.step).unwrap();
    let request: String = pairs.iter().map(|(k, v)| format!("{k}={v},")).collect();
    let request = Request::parse(request.trim_end_matches(',')).unwrap();
    let found = both.store.retrieve(&request, &Default::default()).unwrap();
    assert_eq!(found.iter().count(), 1);
}

#[test]
fn an_imported_grib_forecast_can_be_tagged() {
    let Some(path) = sample("grib/O32_global.grib1") else { return };
    let options = OpenOptions { schema: Some("mars".into()), ..OpenOptions::default() };
    let both = Both::open("memory:", &options);
    let source = fieldstone::GribSource::Path(&path);
    let Some(python) = python_with("python", "fieldstone._helper.grib") else { return };
    let helper = fieldstone::helper::HelperOptions { python: Some(python), ..Default::default() };
    let options = fieldstone::GribOptions { helper, ..Default::default() };
    let n = fieldstone::archive_grib(&both.store, source, &options, &Default::default()).unwrap();
    both.flush();
    assert!(n > 0);
    let runs = both.catalog.runs(&Query::all()).unwrap();
    let variables = both.catalog.variables(&Query::all()).unwrap();
    assert!(!runs.is_empty() && !variables.is_empty());
    for variable in &variables {
        let name = &variable.decl.variable;
        let batch = AttributeBatch {
            run: variable.run.clone(),
            variables: vec![name.clone()],
            ..on_run("", "score", 0.5)
        };
        both.catalog.annotate(batch, &Session::default()).unwrap();
        let pairs = both.catalog.key_of(&variable.run, Some(&name.name), None).unwrap();
        let request: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let request = Request::parse(&request.join(",")).unwrap();
        assert!(both.store.list(&request, &ListOptions::default()).unwrap().next().is_some(), "{request}");
    }
    both.flush();
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), variables.len() as u64);
}
