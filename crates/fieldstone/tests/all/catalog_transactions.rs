//! One transaction over fields and catalog: visible to callers that name it, to all at its decision or never, and by
//! kind if requested.

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::{Deletion, Query};
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, Id};
use fieldstone_format::catalog::*;

/// A run, a variable, an attribute and a field under a transaction, flushed.
fn prepared(both: &Both, name: &str) -> Id {
    let id = both.store.begin().unwrap();
    both.catalog.create_run(RunDecl::named(run(name)), false, &Session::from(id)).unwrap();
    both.catalog.create_variables(&run(name), vec![variable("t", &[8, 8])], &Session::from(id)).unwrap();
    both.try_annotate(name, "max", 1, [0, 0], 1.0, Some(id)).unwrap();
    both.catalog.annotate(on_run(name, "cost", 5.0), &Session::from(id)).unwrap();
    both.archive(&[("run", name), ("variable", "t"), ("step", "1")], &[8, 8], Some(id));
    id
}

#[test]
fn a_transaction_is_seen_by_those_who_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let (opener, other) = (Both::at(folder.path()), Both::at(folder.path()));
    let id = prepared(&opener, "a");
    assert_eq!(opener.hits_in(id).len(), 2, "own, before the flush");
    assert_eq!((opener.hits(vec![]).len(), other.hits_in(id).len()), (0, 0));
    opener.store.flush(Some(id)).unwrap();
    assert_eq!((other.hits_in(id).len(), other.hits(vec![]).len()), (2, 0));
    let query = Query { session: Session::from(id), ..Query::all() };
    assert_eq!(other.catalog.variables(&query).unwrap()[0].decl.shape, Some(vec![8, 8]));
    // Another process joins: it sees the run that the first one made.
    other.try_annotate("a", "max", 2, [0, 0], 2.0, Some(id)).unwrap();
    assert_eq!(other.try_annotate("a", "max", 2, [0, 0], 2.0, None).unwrap_err().kind(), ErrorKind::NotFound);
    other.store.flush(Some(id)).unwrap();
    assert_eq!(opener.hits_in(id).len(), 3);
    opener.store.decide(id, true).unwrap();
    for both in [&opener, &other, &Both::at(folder.path())] {
        assert_eq!(both.hits(vec![]).len(), 3);
        assert_eq!(both.variables(), ["a t Some([8, 8]) [1]"], "of fields there is one");
    }
    let check = other.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}

#[test]
fn an_aborted_transaction_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (both, other) = (Both::at(folder.path()), Both::at(folder.path()));
    both.prepare("kept");
    both.flush();
    let id = prepared(&both, "a");
    both.store.flush(Some(id)).unwrap();
    assert_eq!(other.hits_in(id).len(), 2);
    both.store.decide(id, false).unwrap();
    for both in [&both, &other] {
        assert_eq!((both.hits_in(id).len(), both.hits(vec![]).len()), (0, 0));
        assert_eq!(both.catalog.runs(&Query::all()).unwrap().len(), 1);
    }
    assert_eq!(both.try_annotate("a", "max", 1, [0, 0], 1.0, None).unwrap_err().kind(), ErrorKind::NotFound);
    let unflushed = prepared(&both, "b");
    both.store.decide(unflushed, false).unwrap();
    both.flush();
    assert_eq!(both.catalog.runs(&Query::all()).unwrap().len(), 1);
}

/// The simulation of the whole store found that steps of its fields were still listed.
#[test]
fn an_aborted_transaction_shows_no_field_to_those_who_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let (both, other) = (Both::at(folder.path()), Both::at(folder.path()));
    both.prepare("a");
    both.flush();
    let id = both.store.begin().unwrap();
    both.archive(&[("run", "a"), ("variable", "t"), ("step", "1")], &[8, 8], Some(id));
    both.store.flush(Some(id)).unwrap();
    let query = Query { session: Session::from(id), ..Query::all() };
    assert_eq!(other.catalog.steps(&query).unwrap().len(), 1);
    both.store.decide(id, false).unwrap();
    for both in [&both, &other] {
        assert!(both.catalog.steps(&query).unwrap().is_empty());
    }
}

#[test]
fn kinds_are_activated_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let (both, other) = (Both::at(folder.path()), Both::at(folder.path()));
    let id = prepared(&both, "a");
    let state = || {
        let all = Query::all();
        let declared = other.catalog.runs(&all).unwrap().iter().filter(|run| run.declared).count();
        (declared, other.hits(vec![tag_is("cost")]).len(), other.hits(vec![tag_is("max")]).len())
    };
    assert_eq!(state(), (0, 0, 0));
    both.catalog.activate(id, &["run", "run_attribute"], &Session::default()).unwrap();
    assert_eq!(state(), (1, 1, 0));
    both.catalog.activate(id, &["variable", "variable_attribute"], &Session::default()).unwrap();
    assert_eq!(state(), (1, 1, 1));
    assert!(other.store.axes(&Default::default(), &Default::default()).unwrap().is_empty(), "fields are not");
    both.catalog.deactivate(id, &["run_attribute"], &Session::default()).unwrap();
    assert_eq!(state(), (1, 0, 1));
    both.catalog.activate(id, &["run_attribute", "fields"], &Session::default()).unwrap();
    assert_eq!(state(), (1, 1, 1));
    assert_eq!(other.variables(), ["a t Some([8, 8]) [1]"]);
    let error = both.catalog.activate(id, &["runs"], &Session::default()).unwrap_err();
    assert!(error.hint().unwrap().contains("run_attribute"), "{error}");
    both.store.decide(id, true).unwrap();
    assert_eq!(state(), (1, 1, 1));
    both.catalog.deactivate(id, &["fields", "variable_attribute"], &Session::default()).unwrap();
    assert_eq!(state(), (1, 1, 0));
    let check = other.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}

#[test]
fn a_correction_within_a_transaction_counts_from_its_decision() {
    let both = Both::memory();
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 1.0);
    both.flush();
    let id = both.store.begin().unwrap();
    both.try_annotate("a", "max", 1, [0, 0], 2.0, Some(id)).unwrap();
    both.store.flush(Some(id)).unwrap();
    both.annotate("a", "max", 1, [0, 0], 3.0);
    both.flush();
    assert_eq!(both.hits_in(id), ["a 1 t max 2.0 [0, 0]"]);
    assert_eq!(both.hits(vec![]), ["a 1 t max 3.0 [0, 0]"]);
    both.store.decide(id, true).unwrap();
    assert_eq!(both.hits(vec![]), ["a 1 t max 2.0 [0, 0]"]);
    let gone = both.store.begin().unwrap();
    let all = Deletion::Attributes(Query { session: Session::from(gone), ..Query::all() });
    assert_eq!(both.catalog.delete(&all, false, true, &Session::from(gone)).unwrap().attributes, 1);
    assert_eq!((both.hits_in(gone).len(), both.hits(vec![]).len()), (0, 1));
    both.store.decide(gone, true).unwrap();
    assert!(both.hits(vec![]).is_empty());
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}

#[test]
fn prepared_fields_stand_in_the_catalog_of_their_transaction() {
    let both = Both::memory();
    let key = |step| [("run", "a"), ("variable", "t"), ("step", step)];
    both.archive(&key("1"), &[4], None);
    both.flush();
    let id = both.store.begin().unwrap();
    both.archive(&key("2"), &[4], Some(id));
    let request = fieldstone::Request::parse("run=a,step=1").unwrap();
    both.store.remove(&request, &fieldstone::RemoveOptions { session: Session::from(id) }).unwrap();
    both.store.flush(Some(id)).unwrap();
    let steps = |transaction| {
        let found =
            both.catalog.steps(&Query { session: Session::from(transaction), ..Query::all() }).unwrap();
        found.iter().map(|step| step.step).collect::<Vec<_>>()
    };
    assert_eq!((steps(Some(id)), steps(None)), (vec![2], vec![1]));
    both.store.decide(id, true).unwrap();
    assert_eq!(steps(None), [2]);
}
