//! Sessions of one handle: only a client itself sees its unflushed catalog and graph records, and its flush publishes
//! none of another client's.

use fieldstone::catalog::Query;
use fieldstone::graph::{RelationPut, VertexName};
use fieldstone::{ErrorKind, Session, SessionId};
use fieldstone_format::catalog::RunDecl;

use crate::shared::*;

fn client(number: u64) -> Session {
    Session::new(SessionId::of(number))
}

fn runs(both: &Both, session: &Session) -> Vec<String> {
    let query = Query { session: session.clone(), ..Query::all() };
    both.catalog.runs(&query).unwrap().into_iter().map(|run| run.decl.run.name).collect()
}

#[test]
fn what_is_not_flushed_is_its_sessions_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (both, other) = (Both::at(folder.path()), Both::at(folder.path()));
    let (alice, bob) = (client(1), client(2));
    // The second time over copies of the engine.
    for round in 0..2 {
        let [of_alice, of_bob] = [format!("alice-{round}"), format!("bob-{round}")];
        both.catalog.create_run(RunDecl::named(run(&of_alice)), false, &alice).unwrap();
        both.catalog.create_run(RunDecl::named(run(&of_bob)), false, &bob).unwrap();
        both.catalog.annotate(on_run(&of_alice, "cost", 1.0), &alice).unwrap();
        assert!(runs(&both, &alice).contains(&of_alice) && !runs(&both, &alice).contains(&of_bob));
        assert!(runs(&both, &bob).contains(&of_bob) && !runs(&both, &bob).contains(&of_alice));
        assert!(runs(&both, &Session::default()).iter().all(|name| *name != of_alice && *name != of_bob));
        let unknown = both.catalog.annotate(on_run(&of_alice, "cost", 2.0), &bob).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::NotFound, "the run is not declared for bob");
        both.store.flush(bob.clone()).unwrap();
        assert!(runs(&other, &Session::default()).contains(&of_bob));
        assert!(!runs(&other, &Session::default()).contains(&of_alice), "bob's flush published it");
        both.store.flush(alice.clone()).unwrap();
        assert!(runs(&other, &Session::default()).contains(&of_alice));
        both.catalog.copy_overlays_at(0);
    }
    assert_eq!(other.hits(vec![]).len(), 2);
    assert!(other.catalog.verify().unwrap().ok());
}

#[test]
fn relations_that_are_not_flushed_are_their_sessions_alone() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    let (alice, bob) = (client(1), client(2));
    let (job, file) = (VertexName::new("job", "1"), VertexName::new("file", "/a"));
    let graph = both.store.graph();
    graph.put_relations(vec![RelationPut::new("write", job.clone(), file.clone())], &alice).unwrap();
    let count = |session: &Session| {
        graph.edges(&job, Some("write"), Default::default(), None, session).map_or(0, |edges| edges.len())
    };
    assert_eq!([count(&alice), count(&bob), count(&Session::default())], [1, 0, 0]);
    both.store.flush(bob.clone()).unwrap();
    assert_eq!([count(&alice), count(&bob)], [1, 0]);
    both.store.flush(alice.clone()).unwrap();
    assert_eq!([count(&alice), count(&bob), count(&Session::default())], [1, 1, 1]);
}

#[test]
fn a_session_of_another_user_declares_and_relates_nothing() {
    let both = Both::memory();
    let stranger = client(1).of_user(987_654_321);
    let refused = both.catalog.create_run(RunDecl::named(run("a")), false, &stranger).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    let put = RelationPut::new("write", VertexName::new("job", "1"), VertexName::new("file", "/a"));
    both.store.graph().put_relations(vec![put], &stranger).unwrap();
    assert_eq!(both.store.flush(stranger).unwrap_err().kind(), ErrorKind::Denied);
    both.store.flush(None).unwrap();
    assert!(runs(&both, &Session::default()).is_empty());
}
