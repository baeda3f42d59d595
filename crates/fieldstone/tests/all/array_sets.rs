//! Sets of groups: declared at once or later, by this job or the next, written or not; and their attributes.

use std::path::Path;

use fieldstone::arrays::{ArrayJob, GroupOptions, JobOptions, LevelChoice, SetOptions};
use fieldstone::catalog::ArrayLayout;
use fieldstone::catalog::value::Value;
use fieldstone::env::Env;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::prelude::*;
use fieldstone::{DType, ErrorKind, OpenOptions, Result, Store};

const LAYOUTS: [ArrayLayout; 2] = [ArrayLayout::Files, ArrayLayout::Fields];

fn open(folder: &Path) -> Store {
    fieldstone::open(&folder.join("store").display().to_string(), &OpenOptions::default()).unwrap()
}

fn job(store: &Store, layout: ArrayLayout) -> ArrayJob {
    let options = JobOptions { layout, ..JobOptions::default() };
    ArrayJob::open(store, None, Some("r"), &options).unwrap()
}

fn sets(names: &[&str]) -> GroupOptions {
    GroupOptions::new(names.iter().map(|name| SetOptions::new(name, DType::F8, &[4])))
}

fn names(group: &fieldstone::arrays::ArrayGroup) -> Vec<String> {
    group.sets().into_iter().map(|set| set.variable.name).collect()
}

fn doubles(value: f64) -> Vec<u8> {
    [value; 4].iter().flat_map(|x| x.to_ne_bytes()).collect()
}

#[test]
fn an_open_group_takes_further_sets_or_says_what_contradicts() {
    for level in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store").display().to_string();
        let ranks = threads::run(2, None, Env::real().disk, Faults::none(), |comm| -> Result<()> {
            let store = fieldstone::open(&path, &OpenOptions::default())?;
            let job = ArrayJob::open(&store, Some(comm), Some("r"), &JobOptions::default())?;
            let level = LevelChoice::number(level)?;
            let first = job.group("g", &GroupOptions { level, ..sets(&["a"]) })?;
            let whole = fieldstone::arrays::View::grid(&[2]);
            first.view(&whole, None)?;
            let half = |value: f64| doubles(value)[..16].to_vec();
            first.write_dense("a", 0, &half(1.0))?;
            let both = job.group("g", &sets(&["b"]))?;
            assert_eq!(
                (names(&both), names(&first)),
                (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()])
            );
            both.view(&whole, Some(&["b"]))?;
            both.write_dense("b", 0, &half(2.0))?;
            both.write_dense("a", 1, &half(3.0))?;
            first.write_dense("b", 1, &half(4.0))?;
            job.flush()?;
            // An equal declaration changes nothing; a different one is a Conflict, and adds nothing.
            job.group("g", &sets(&["b", "a"]))?;
            let mut other = sets(&["c", "b"]);
            other.sets[1].dtype = DType::F4;
            let refused = job.group("g", &other).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
            assert!(refused.message().contains("set 'b'"), "{refused}");
            assert_eq!(names(&first), ["a", "b"]);
            both.write_dense("a", 2, &half(5.0))?;
            both.write_dense("b", 2, &half(6.0))?;
            job.close()
        });
        ranks.into_iter().for_each(|rank| rank.unwrap());
        let store = open(folder.path());
        let run = store.run("r").unwrap();
        for (name, values) in [("a", [1.0, 3.0, 5.0]), ("b", [2.0, 4.0, 6.0])] {
            for (step, value) in (0..).zip(values) {
                let mut read = run.read(name, Some(step)).unwrap().read().unwrap();
                DType::F8.swap_bytes(&mut read);
                assert_eq!(read, doubles(value), "{name} at {step}, level {level}");
            }
        }
        let report = store.verify(&fieldstone::Request::default()).unwrap();
        assert!(report.ok() && report.notes.is_empty(), "{report:?}");
    }
}

#[test]
fn sets_that_are_declared_and_not_written_are_there_for_later_jobs() {
    for layout in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        {
            let store = open(folder.path());
            let job = job(&store, layout);
            job.group("g", &sets(&["a", "b"])).unwrap();
            job.close().unwrap();
        }
        let store = open(folder.path());
        assert_eq!(store.run("r").unwrap().array_group("g").unwrap().sets.len(), 2, "{layout:?}");
        {
            let job = job(&store, layout);
            let group = job.group("g", &sets(&["c"])).unwrap();
            assert_eq!(names(&group), ["a", "b", "c"], "{layout:?}");
            group.write_dense("c", 0, &doubles(1.0)).unwrap();
            job.flush().unwrap();
            // Declared later and not written, too.
            job.group("g", &sets(&["d"])).unwrap();
            job.close().unwrap();
        }
        let job = job(&store, layout);
        let group = job.declared_group("g").unwrap();
        assert_eq!(names(&group), ["a", "b", "c", "d"], "{layout:?}");
        group.write_dense("a", 0, &doubles(2.0)).unwrap();
        job.close().unwrap();
        assert_eq!(store.run("r").unwrap().array_group("g").unwrap().sets.len(), 4, "{layout:?}");
    }
}

#[test]
fn a_job_that_is_discarded_declares_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let job = job(&store, ArrayLayout::Files);
    job.group("g", &sets(&["a"])).unwrap();
    job.abandon(fieldstone::Error::invalid("no"));
    assert!(store.run("r").unwrap().array_groups().unwrap().is_empty());
}

#[test]
fn a_view_that_is_said_after_a_flush_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let job = job(&store, ArrayLayout::Files);
    let group = job.group("g", &sets(&["a"])).unwrap();
    job.flush().unwrap();
    group.view(&fieldstone::arrays::View::irregular(vec![3_i64, 2, 1, 0], None, Some(0)), None).unwrap();
    group.write_dense("a", 0, &doubles(1.0)).unwrap();
    job.close().unwrap();
    let kept = store.run("r").unwrap().array_group("g").unwrap();
    assert!(kept.sets[0].view.starts_with("irregular"), "{:?}", kept.sets[0].view);
    assert_eq!(kept.sets[0].pattern, fieldstone::catalog::BasicPattern::Irregular);
}

#[test]
fn attributes_of_a_group_are_those_of_its_sets() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let with_attrs = |names: &[&str]| GroupOptions {
        attrs: vec![("units".into(), Value::Text("K".into())), ("n".into(), Value::Int(3))],
        ..sets(names)
    };
    let mut options = with_attrs(&["a", "b"]);
    options.sets[1] = options.sets[1].clone().attr("units", "Pa");
    {
        let job = job(&store, ArrayLayout::Files);
        let group = job.group("g", &options).unwrap();
        group.write_dense("a", 0, &doubles(1.0)).unwrap();
        job.flush().unwrap();
        // An omitted attribute stays as it was, and new sets get those of the group.
        job.group("g", &sets(&["a", "c"])).unwrap();
        job.close().unwrap();
    }
    let run = store.run("r").unwrap();
    let units = |name: &str| {
        let info = run.variable(name, None).unwrap();
        info.decl.attrs.iter().find(|(name, _)| name == "units").map(|(_, value)| value.to_string())
    };
    assert_eq!(["a", "b", "c"].map(units), ["K", "Pa", "K"].map(|text| Some(format!("{text:?}"))));
    // The next job gets the same result, whatever it restates.
    let job = job(&store, ArrayLayout::Files);
    job.group("g", &options).unwrap();
    let mut other = with_attrs(&["a"]);
    other.attrs[0].1 = Value::Text("m".into());
    assert_eq!(job.group("g", &other).unwrap_err().kind(), ErrorKind::Conflict);
    for name in ["_FillValue", "dtype"] {
        let attrs = vec![(name.to_owned(), Value::Int(0))];
        let mut of_set = sets(&["z"]);
        of_set.sets[0].attrs = attrs.clone();
        for reserved in [GroupOptions { attrs, ..sets(&["z"]) }, of_set] {
            let refused = job.group("h", &reserved).unwrap_err();
            assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains(name), "{refused}");
        }
    }
}

/// Sets that an earlier release declared lack the attributes of their group.
#[test]
fn a_run_of_an_earlier_release_goes_on_with_the_attributes_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let options = GroupOptions { attrs: vec![("units".into(), Value::Text("K".into()))], ..sets(&["a"]) };
    {
        let job = job(&store, ArrayLayout::Files);
        job.group("g", &options).unwrap();
        job.close().unwrap();
    }
    let mut record = store.run("r").unwrap().array_group("g").unwrap();
    record.sets[0].attrs.clear();
    record.name = "old".into();
    record.sets[0].variable.name = "old_a".into();
    store.run("r").unwrap().create_array_group(record).unwrap();
    store.flush(None).unwrap();
    let job = job(&store, ArrayLayout::Files);
    let again = GroupOptions { sets: vec![SetOptions::new("old_a", DType::F8, &[4])], ..options };
    let group = job.group("old", &again).unwrap();
    assert!(group.sets()[0].attrs.is_empty());
    group.write_dense("old_a", 0, &doubles(1.0)).unwrap();
    job.close().unwrap();
}
