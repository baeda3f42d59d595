//! Rules that move fields to another store: by a request, or by a query of the catalog.

use std::path::Path;
use std::time::Duration;

use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, Code, ErrorKind, ListOptions, MaintainAction, MaintainOptions, MaintainStep, OpenOptions,
    Request, RetainOptions, Store, Target, Value, loopback,
};

fn open(path: &Path) -> Store {
    fieldstone::open(&path.display().to_string(), &OpenOptions::default()).unwrap()
}

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn keys(store: &Store) -> Vec<String> {
    let all = store.list(&Request::new(), &ListOptions::default()).unwrap();
    all.map(|entry| entry.unwrap().key.to_string()).collect()
}

/// Four steps of two variables, of which some have an extreme.
fn filled(path: &Path) -> Store {
    let store = open(path);
    let run = store.create_run("a").param("nx", 4).create().unwrap();
    for step in 0..4i64 {
        for variable in ["t", "u"] {
            let key = [("run", "a"), ("variable", variable), ("step", &step.to_string()[..])];
            store.archive(&key, Value::Bytes(variable.as_bytes()), &ArchiveOptions::default()).unwrap();
        }
        run.annotate("maximum", 300.0 + step as f64, &Target::variable("t").step(step)).unwrap();
        run.annotate("note", "seen", &Target::variable("t").step(step)).unwrap();
    }
    store.flush(None).unwrap();
    store
}

fn to(target: &Path) -> RetainOptions {
    RetainOptions { to: Some(target.display().to_string()), ..RetainOptions::default() }
}

fn by_query(query: &str, target: &Path) -> RetainOptions {
    RetainOptions { query: Some(query.into()), ..to(target) }
}

fn moves(store: &Store, dry_run: bool) -> Vec<MaintainStep> {
    let options = MaintainOptions { dry_run, ..MaintainOptions::default() };
    let report = store.maintain(&options).unwrap();
    assert!(report.failed().is_none(), "{report}");
    report.steps.into_iter().filter(|step| step.action == MaintainAction::Move).collect()
}

#[test]
fn fields_under_hits_move_with_everything_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = (folder.path().join("hot"), folder.path().join("cold"));
    let near = filled(&hot);
    for far in [near.clone(), Store::over(loopback(near.backend().clone()), CatalogSettings::default())] {
        let rule = far.retain(&Request::new(), &by_query("tag=maximum and value > 301", &cold)).unwrap();
        assert_eq!((rule.request.as_str(), rule.query.as_deref()), ("", Some("tag=maximum and value > 301")));
        assert_eq!(rule.to.as_deref(), cold.to_str(), "{rule}");
        assert_eq!(far.rules().unwrap(), [rule]);
    }
    // A target that is not there is not made.
    let report = near.maintain(&MaintainOptions::default()).unwrap();
    let step = report.steps[0].clone();
    let why = step.why.clone().unwrap();
    assert!(report.failed().is_some());
    assert!(!step.done && step.code == Some(Code::StoreNotFound) && why.contains("no store at"), "{step}");
    assert!(!cold.exists());
    assert_eq!((step.request.as_str(), step.fields), ("tag=maximum and value > 301", 2));
    let target = open(&cold);
    target.create_run("a").param("nx", 4).create().unwrap();
    target.flush(None).unwrap();
    let step = moves(&near, true).remove(0);
    assert_eq!((step.done, step.fields, step.why.as_deref()), (false, 2, Some("a dry run")));
    assert_eq!(keys(&target), Vec::<String>::new());
    let heard = std::sync::Mutex::new(Vec::new());
    let progress = |now: fieldstone::MaintainProgress| {
        heard.lock().unwrap().push((now.step, now.action));
        Ok(())
    };
    let options = MaintainOptions { progress: Some(&progress), ..MaintainOptions::default() };
    let report = near.maintain(&options).unwrap();
    assert_eq!((report.steps[0].done, report.steps[0].fields), (true, 2), "{report}");
    let heard = heard.into_inner().unwrap();
    assert_eq!(heard[0], (1, MaintainAction::Move));
    assert!(heard.contains(&(2, MaintainAction::Sweep)), "{heard:?}");
    assert_eq!((keys(&near).len(), keys(&target).len()), (6, 2));
    // The other attribute on these fields went along, and those on others stay.
    let count = |store: &Store, tag: &str| {
        let query = fieldstone::catalog::query::text::parse(&format!("tag={tag}")).unwrap();
        store.catalog().count(&query).unwrap()
    };
    assert_eq!((count(&target, "note"), count(&target, "maximum")), (2, 2));
    assert_eq!((count(&near, "note"), count(&near, "maximum")), (2, 2));
    assert_eq!(target.catalog().runs(&Query::all()).unwrap().len(), 1);
    let step = moves(&near, false).remove(0);
    assert_eq!((step.done, step.why.as_deref()), (false, Some("nothing of yours is found")));
    // The rule ends by its query.
    let drop = RetainOptions {
        drop: true,
        query: Some("tag=maximum and value > 301".into()),
        ..RetainOptions::default()
    };
    near.retain(&Request::new(), &drop).unwrap();
    assert!(near.rules().unwrap().is_empty());
    let again = near.retain(&Request::new(), &drop).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
}

#[test]
fn requests_move_by_age_and_give_their_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = (filled(&folder.path().join("hot")), folder.path().join("cold"));
    open(&cold).create_run("x").create().unwrap().store().flush(None).unwrap();
    let day = Some(Duration::from_secs(86_400));
    // A request of single fields, which a wipe could not select.
    hot.retain(&request("run=a,step=0/1"), &RetainOptions { older_than: day, ..to(&cold) }).unwrap();
    let step = moves(&hot, false).remove(0);
    assert_eq!((step.done, step.why.as_deref()), (false, Some("nothing is old enough")));
    let now = RetainOptions { older_than: Some(Duration::ZERO), ..to(&cold) };
    hot.retain(&request("run=a,step=0/1"), &now).unwrap();
    assert_eq!(hot.rules().unwrap().len(), 1);
    let step = moves(&hot, false).remove(0);
    assert_eq!((step.done, step.fields, step.nbytes), (true, 4, 4), "{step}");
    assert_eq!((keys(&hot).len(), keys(&open(&cold)).len()), (4, 4));
    hot.close().unwrap();
    let hot = open(&folder.path().join("hot"));
    let options = MaintainOptions { grace: Duration::ZERO, dry_run: true, ..MaintainOptions::default() };
    hot.compact(&Default::default()).unwrap();
    let report = hot.maintain(&options).unwrap();
    let purge = report.steps.iter().find(|step| step.action == MaintainAction::Purge).unwrap();
    // They were removed in one commit, which is final: only their few bytes keep the purge from them.
    assert_eq!(purge.fields, 4, "{report}");
    assert!(purge.why.as_deref().is_some_and(|why| why.contains("does not pay")), "{report}");
}

#[test]
fn a_rule_that_moves_is_refused_where_it_could_not_be_applied() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = (filled(&folder.path().join("hot")), folder.path().join("cold"));
    let refused = |text: &str, options: &RetainOptions, what: &str| {
        let error = hot.retain(&request(text), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    let target = |to: &str| RetainOptions { to: Some(to.into()), ..RetainOptions::default() };
    refused("run=a", &target("memory:"), "in memory");
    refused("run=a", &target("http://elsewhere/store"), "http");
    refused("run=a", &target(""), "where");
    refused("", &to(&cold), "everything");
    refused("run=a", &RetainOptions { versions: Some(2), ..to(&cold) }, "number of versions");
    refused("", &by_query("tag=maximum and", &cold), "query");
    refused("run=a", &by_query("tag=maximum", &cold), "request or a query");
    let query = Some("tag=maximum".to_owned());
    let age = Some(Duration::from_secs(1));
    refused("", &RetainOptions { query, older_than: age, ..RetainOptions::default() }, "where fields go");
    assert!(hot.rules().unwrap().is_empty());
    // Into itself: a step that fails, and no other.
    hot.retain(&request("run=a"), &to(&folder.path().join("hot"))).unwrap();
    let report = hot.maintain(&MaintainOptions::default()).unwrap();
    assert_eq!(report.steps[0].code, Some(Code::WrongStore), "{report}");
    assert_eq!((report.steps.len(), keys(&hot).len()), (4, 8));
}
