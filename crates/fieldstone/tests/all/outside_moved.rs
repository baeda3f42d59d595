//! External files that were moved: the users who may repoint runs, the effects, and the answers of older versions.

use std::path::Path;

use fieldstone::Session;
use fieldstone::catalog::query::text::parse;
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{Deletion, Query, RunName};
use fieldstone::env::sim::SimWorld;
use fieldstone::outside::repoint;
use fieldstone::prelude::*;
use fieldstone::transfer::{TransferOptions, copy};
use fieldstone::{ErrorKind, OpenOptions, Request, Store, open_in};
use fieldstone_testkit::errors::error;

const STORE: &str = "/s";

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    world.set_uid("a", 501);
    world.set_uid("b", 502);
    world
}

fn open_by(world: &SimWorld, who: &str, path: &str) -> Store {
    open_in(world.process(who), path, Path::new(path), &OpenOptions::default()).unwrap()
}

fn outside(parts: &[(&str, &str)]) -> Value {
    Value::Map(parts.iter().map(|(key, value)| ((*key).into(), Value::Text((*value).into()))).collect())
}

fn declare(store: &Store, run: &str, root: &str) {
    let parts = [("template", "{variable}.raw"), ("format", "raw"), ("root", root)];
    store.create_run(run).outside(outside(&parts)).create().unwrap();
}

fn text(value: &Value) -> String {
    value.to_string().trim_matches('"').to_owned()
}

fn roots(store: &Store) -> Vec<String> {
    let runs = store.catalog().runs(&Query::all()).unwrap();
    let root = |value: Option<Value>| match value {
        Some(Value::Map(parts)) => parts.iter().find(|(key, _)| key == "root").map(|(_, root)| text(root)),
        _ => None,
    };
    runs.into_iter()
        .map(|run| format!("{} {}", run.decl.run.name, root(run.decl.outside).unwrap_or_default()))
        .collect()
}

fn names(runs: &[RunName]) -> Vec<&str> {
    runs.iter().map(|run| run.name.as_str()).collect()
}

#[test]
fn runs_below_a_folder_lie_below_another_one_and_older_versions_answer_as_recorded() {
    let world = world();
    let store = open_by(&world, "a", STORE);
    for (run, root) in [("a", "/old"), ("b", "/old/b"), ("c", "/older"), ("d", "/else")] {
        declare(&store, run, root);
    }
    let absolute = [("template", "/old/{variable}.raw"), ("format", "raw"), ("root", "/else")];
    store.create_run("e").param("nx", 1).outside(outside(&absolute)).create().unwrap();
    store.create_run("f").create().unwrap();
    store.flush(None).unwrap();
    let version = store.version().unwrap();
    let before = roots(&store);

    let moved = repoint(&store, "/old/", "/new/place", &Query::all()).unwrap();
    assert_eq!(names(&moved), ["a", "b", "e"]);
    let expected = ["a /new/place", "b /new/place/b", "c /older", "d /else", "e /else", "f "];
    assert_eq!(roots(&store), expected, "at once in this process");
    assert_eq!(roots(&open_by(&world, "a", STORE)), before, "for all at the flush");
    store.flush(None).unwrap();
    for store in [&store, &open_by(&world, "a", STORE)] {
        assert_eq!(roots(store), expected);
        let run = store.run("e").unwrap().info().unwrap().decl;
        assert!(run.outside.unwrap().to_string().contains("/new/place/{variable}.raw"));
        assert_eq!(run.params.len(), 1);
        assert!(store.catalog().verify().unwrap().ok() && store.catalog().conflicts().unwrap().is_empty());
    }
    let options = OpenOptions { at: Some(version), ..OpenOptions::default() };
    let old = open_in(world.process("a"), STORE, Path::new(STORE), &options).unwrap();
    assert_eq!(roots(&old), before);
    // The newest counts; a query chooses.
    repoint(&store, "/new/place", "/newest", &parse("run=b").unwrap()).unwrap();
    store.flush(None).unwrap();
    assert_eq!(roots(&open_by(&world, "a", STORE))[..2], ["a /new/place", "b /newest/b"]);
    // Declared again as it is now, and as it was.
    let parts = |root| outside(&[("template", "{variable}.raw"), ("format", "raw"), ("root", root)]);
    store.create_run("b").exist_ok().outside(parts("/newest/b")).create().unwrap();
    error(store.create_run("b").exist_ok().outside(parts("/old/b")).create(), ErrorKind::Conflict);
    // A run that was deleted and declared again has its own.
    store
        .catalog()
        .delete(&Deletion::Runs(parse("run=b").unwrap()), false, true, &Session::default())
        .unwrap();
    declare(&store, "b", "/third");
    store.flush(None).unwrap();
    assert_eq!(roots(&open_by(&world, "a", STORE))[1], "b /third");
    assert!(store.catalog().verify().unwrap().ok());
    // A copy has the new place.
    let copied = open_by(&world, "a", "/copy");
    copy(&store, vec![Request::parse("run=a").unwrap()], &copied, &TransferOptions::default()).unwrap();
    assert_eq!(roots(&copied), ["a /new/place"]);
}

#[test]
fn who_does_not_own_a_run_does_not_say_where_its_data_lie() {
    let world = world();
    let alice = open_by(&world, "a", STORE);
    declare(&alice, "hers", "/old");
    alice.flush(None).unwrap();
    world.permissions().make_writable(Path::new(STORE)).unwrap();
    let bob = open_by(&world, "b", STORE);
    declare(&bob, "his", "/old");
    bob.flush(None).unwrap();
    let refused = error(repoint(&bob, "/old", "/new", &Query::all()), ErrorKind::Denied);
    assert!(refused.message().contains("hers"), "{refused}");
    bob.flush(None).unwrap();
    assert_eq!(roots(&alice), ["hers /old", "his /old"]);
    assert_eq!(names(&repoint(&bob, "/old", "/new", &parse("run=his").unwrap()).unwrap()), ["his"]);
    bob.flush(None).unwrap();
    assert_eq!(roots(&alice), ["hers /old", "his /new"]);
    let missing = error(repoint(&alice, "/nowhere", "/new", &Query::all()), ErrorKind::NotFound);
    assert!(missing.hint().unwrap().contains("/old"), "{missing}");
    error(repoint(&alice, "", "/new", &Query::all()), ErrorKind::Invalid);
}
