//! A store at the far end of a loopback gives the same answers: the suite of field stores, and the calls that need both
//! ends. `make test-loopback` runs the other suites this way.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fieldstone::catalog::query::Query;
use fieldstone::catalog::{CatalogSettings, Interrupt};
use fieldstone::execution::{Execution, ExecutionOptions, Outcome};
use fieldstone::graph::{Engine, RelationPut, TraceOptions, Travel, VertexName, VertexPut, parse_travel};
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, Cancel, Code, ErrorKind, FieldStore, ListOptions, OpenOptions, ReadOptions, Request,
    Result, RetrieveOptions, Session, Store, Value, loopback,
};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_store::LocalStore;
use fieldstone_store::conformance::{Access, BEHAVIOURS, Harness, Opening, put_file, run};
use fieldstone_store::local::LocalOptions;

/// A simulated world that reaches all of its stores through loopbacks.
struct Far(SimWorld);

impl Harness for Far {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        let env: Env = self.0.process(["a", "b"][process % 2]);
        let fields = LocalStore::open(env, Path::new("/shared/store"), how.local("tested"))?;
        let store = Store::of(fields, CatalogSettings::default(), false);
        // Reads of a facade report that there is no store yet; those of a field store find nothing. Behaviours that
        // name a schema make the store themselves.
        if how.access == Access::Append && how.at.is_none() && how.schema.is_none() {
            store.backend().create()?;
        }
        Ok(loopback(store.backend().clone()))
    }

    fn settle(&self) {}

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&self.0.process("a"), Path::new("/shared").join(name), content)
    }

    fn inside(&self, name: &str, content: Option<&[u8]>) -> Result<Option<PathBuf>> {
        self.source(&format!("store/{name}"), content).map(Some)
    }
}

fn far() -> Store {
    let near = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    Store::over(loopback(near.backend().clone()), CatalogSettings::default())
}

#[test]
fn it_shows_every_behaviour_of_field_stores() {
    // For a facade, reading a store that does not exist is an error in every mode.
    let of_facades = |name: &str| name != "no_store_is_not_found";
    for (name, _) in BEHAVIOURS.iter().filter(|(name, _)| of_facades(name)) {
        let world = SimWorld::new(1);
        world.set_tracing(false);
        if let Err(error) = run(name, &Far(world)) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn a_filter_at_the_far_end_bounds_what_requests_mean() {
    let near = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let winds = near.filtered(Request::parse("variable=u/v").unwrap()).unwrap();
    let far = Store::over(loopback(winds.backend().clone()), CatalogSettings::default());
    let asked = Request::parse("run=a,variable=t/u,step=0/6").unwrap();
    for (store, keys) in [(&near, 4), (&winds, 2), (&far, 2)] {
        assert_eq!(store.select(&asked).unwrap().expand().unwrap().count(), keys);
    }
    // A filter over the far end counts in addition to the one there.
    let both = far.filtered(Request::parse("step=6").unwrap()).unwrap();
    assert_eq!(both.select(&asked).unwrap().expand().unwrap().count(), 1);
}

#[test]
fn authors_stay_with_the_client_and_say_what_a_commit_came_from() {
    let store = far();
    let key = [("run", "a"), ("variable", "t")];
    store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
    store.flush(None).unwrap();
    let options = ExecutionOptions { name: Some("regrid".into()), ..Default::default() };
    let regrid = Execution::begin(&store, options).unwrap();
    let job = regrid.vertex().clone();
    assert_eq!(store.get(&key, &ReadOptions::default()).unwrap().read().unwrap(), b"x");
    let result = [("run", "a"), ("variable", "u")];
    store.archive(&result, Value::Bytes(b"y"), &ArchiveOptions::default()).unwrap();
    regrid.finish(&Outcome::exit(0)).unwrap();
    let count = |kind| {
        let edges =
            store.graph().edges(&job, Some(kind), Default::default(), None, &Session::default()).unwrap();
        edges.len()
    };
    assert_eq!((count("read"), count("write")), (1, 1));
}

#[test]
fn a_call_that_waits_is_cancelled_from_the_client() {
    let store = far();
    store
        .archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())
        .unwrap();
    store.flush(None).unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    let session = Session::default().cancelled_by(cancel);
    let options = ListOptions { session, ..ListOptions::default() };
    let listed =
        store.list(&Request::new(), &options).and_then(|mut list| list.try_for_each(|e| e.map(drop)));
    assert_eq!(listed.unwrap_err().code(), Code::Cancelled);
}

/// A read of the graph by a session.
type Read<'a> = &'a dyn Fn(&Session) -> Result<()>;

/// A simulated clock ticks at each look, so a walk with a deadline takes longer by its looks at it.
#[test]
fn a_deadline_passes_during_a_walk_of_the_graph() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let (env, options) = (world.process("a"), LocalOptions { writable: true, ..LocalOptions::default() });
    let clock = env.clock.clone();
    let fields = LocalStore::open(env, Path::new("/shared/store"), options).unwrap();
    let near = Store::of(fields, CatalogSettings::default(), false);
    let (job, none) = (VertexName::new("job", "1"), Session::default());
    let read = |n: usize| RelationPut::new("read", job.clone(), VertexName::new("file", &format!("/{n}")));
    near.graph().put_relations((0..6_000).map(read).collect(), &none).unwrap();
    near.flush(None).unwrap();
    let far = Store::over(loopback(near.backend().clone()), CatalogSettings::default());
    let travel =
        Travel { steps: parse_travel("v(job:1).e(read).e(wasReadBy).e(read)").unwrap(), ..Travel::default() };
    for store in [near, far] {
        let trace =
            |session: &Session| store.graph().trace(&job, &TraceOptions::default(), session).map(drop);
        let walk = |session: &Session| store.graph().travel(&travel, Engine::default(), session).map(drop);
        for read in [&trace as Read<'_>, &walk] {
            let time = |session: &Session| {
                let begun = clock.monotonic();
                read(session).unwrap();
                clock.monotonic() - begun
            };
            // The first read follows the logs.
            time(&none);
            let (plain, limited) = (time(&none), time(&none.until(u64::MAX)));
            assert!(limited > 2 * plain, "{limited} with a deadline, {plain} without");
            let error = read(&none.until(clock.monotonic() + limited / 4 * 3)).unwrap_err();
            assert_eq!(error.code(), Code::DeadlinePassed);
        }
    }
}

#[test]
fn a_statement_that_runs_for_long_is_ended_by_the_client() {
    let store = far();
    store.create_run("a").create().unwrap();
    store.flush(None).unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let own = asked.clone();
    let stop = Interrupt::new(move || own.fetch_add(1, Ordering::Relaxed) > 3);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let ended = store.catalog().sql_until(endless, Some(&stop)).unwrap_err();
    assert!(asked.load(Ordering::Relaxed) > 3 && ended.kind() == ErrorKind::Invalid, "{ended}");
}

#[test]
fn streams_traversals_and_portions_stay_with_the_store() {
    let store = far();
    let name = |n: usize| VertexName::new("file", &format!("/{n}"));
    let session = Session::default();
    store.graph().put_vertices((0..600).map(|n| VertexPut::new(name(n))).collect(), &session).unwrap();
    let next = |n: usize| RelationPut::new("depend", name(n), name(n + 1));
    store.graph().put_relations((0..599).map(next).collect(), &session).unwrap();
    store.flush(None).unwrap();
    let walk = |text: &str| {
        let travel = Travel { steps: parse_travel(text).unwrap(), ..Travel::default() };
        store.graph().travel(&travel, Engine::default(), &session).unwrap()
    };
    let reached = walk("v(file:/0).e(depend).repeat()");
    let set = reached.summary().sets[0];
    assert!(set >= 599 && reached.names(0, 0, usize::MAX).unwrap().len() == set);
    let ways = walk("v(file:/0).e(depend).e(depend).return_fp()").paths().unwrap();
    assert_eq!(ways.map(|way| way.unwrap().vertices.len()).collect::<Vec<_>>(), [3]);
    // Hidden versions come in portions, while the call lasts.
    store.graph().put_vertices(vec![VertexPut::new(name(0))], &session).unwrap();
    store.flush(None).unwrap();
    let (mut versions, now) = (0, store.graph().now());
    let mut take = |portion: &fieldstone::graph::HiddenVersions| {
        versions += portion.vertices.len();
        Ok(())
    };
    store.graph().hidden(now, &mut take, &session).unwrap();
    assert_eq!(versions, 1);
    assert_eq!(store.catalog().stream(&Query::all()).unwrap().count(), 0);
}

#[test]
fn what_a_handle_holds_outlives_it_and_is_released_with_it() {
    let store = far();
    let key = [("run", "a"), ("variable", "t")];
    store.archive(&key, Value::Bytes(b"held"), &ArchiveOptions::default()).unwrap();
    store.flush(None).unwrap();
    let fields = store.retrieve(&Request::new(), &RetrieveOptions::default()).unwrap();
    drop(store);
    assert_eq!(fields.get(0).unwrap().read().unwrap(), b"held");
}
