//! A session's deadline and its cancel end long reads on their way, not only before they start.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::{Clock, Env};
use fieldstone_core::{Code, Result};
use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
use fieldstone_format::graph_segment::CommitKnown;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_graph::archive::hidden;
use fieldstone_graph::audit::{AuditOptions, audit};
use fieldstone_graph::dossier::dossier;
use fieldstone_graph::find::{VertexTest, find, search};
use fieldstone_graph::read::{Versions, edges};
use fieldstone_graph::relations::{RelationTest, find_relations};
use fieldstone_graph::segment::{CommitOrder, Rows, build};
use fieldstone_graph::slot::{Engine, Slots};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::trace::{TraceOptions, trace};
use fieldstone_graph::travel::{Travel, TravelPlan, TravelStep, Travelled, travel, travel_within};
use fieldstone_journal::Session;
use fieldstone_journal::session::{Cancel, Limits};
use fieldstone_slots::simulated::NetworkFaults;
use fieldstone_slots::travels;

use crate::slots::Simulated;

/// Files that one job reads.
const FILES: u64 = 6_000;
/// A read of that many steps looks at its limits at least this often.
const LOOKS: u64 = 20;

/// A clock that counts how often it is asked, and may cancel a session then.
#[derive(Debug, Default)]
struct CountingClock {
    looks: AtomicU64,
    cancels: Option<(u64, Cancel)>,
}

impl Clock for CountingClock {
    fn now(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> u64 {
        let look = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((_, cancel)) = self.cancels.as_ref().filter(|(at, _)| *at == look) {
            cancel.cancel();
        }
        look
    }

    fn sleep(&self, _: u64) {}
}

/// The outcome of a read with these limits, and how often it looked at them.
fn limited(
    deadline: u64,
    cancels: Option<(u64, Cancel)>,
    read: &dyn Fn(Limits) -> Result<()>,
) -> (Result<()>, u64) {
    let session = Session::default().until(deadline);
    let session = match &cancels {
        Some((_, cancel)) => session.cancelled_by(cancel.clone()),
        None => session,
    };
    let counting = Arc::new(CountingClock { cancels, ..CountingClock::default() });
    let clock: Arc<dyn Clock> = counting.clone();
    let outcome = read(session.limits(&clock));
    (outcome, counting.looks.load(Ordering::Relaxed))
}

/// Checks that a read ends at each of several looks at its limits, for either reason.
fn ends_early(name: &str, read: &dyn Fn(Limits) -> Result<()>) {
    read(Limits::default()).unwrap();
    let (outcome, looks) = limited(u64::MAX, None, read);
    outcome.unwrap();
    assert!(looks >= LOOKS, "{name} looked at its limits {looks} times");
    for at in [1, 2, looks / 2] {
        let (outcome, asked) = limited(at, None, read);
        let code = outcome.expect_err(name).code();
        assert_eq!((code, asked), (Code::DeadlinePassed, at), "{name}");
        let (outcome, asked) = limited(u64::MAX, Some((at, Cancel::default())), read);
        assert_eq!((outcome.expect_err(name).code(), asked), (Code::Cancelled, at), "{name}");
    }
}

fn file(number: u64) -> VertexName {
    VertexName::new("file", &format!("/part/{number}"))
}

fn job() -> VertexName {
    VertexName::new("job", "1")
}

/// A user's job that reads all files.
fn rows() -> Rows {
    let row = |kind: &str, source: VertexName, target: VertexName, stamp: u64| {
        let version = Version { stamp, time: 0, deleted: false };
        RelationRow { kind: kind.into(), source, target, version, until: None, props: Props::default() }
    };
    let mut all = vec![row("run", VertexName::new("user", "1"), job(), 1)];
    all.extend((0..FILES).map(|number| row("read", job(), file(number), 2 + number)));
    let mut rows = Rows::default();
    let known = CommitKnown { since: 1, stamp: 1 };
    rows.add(CommitOrder { known, user: 1 }, &Record::Relations(all).encode()).unwrap();
    rows
}

fn state() -> Arc<GraphState> {
    Arc::new(GraphState::of(vec![Arc::new(build(&rows()).unwrap())]))
}

/// From the job to all files, and back.
fn plan(state: &GraphState, paths: bool) -> TravelPlan {
    let test = VertexTest { named: Some(vec![job()]), ..VertexTest::default() };
    let hop = |kind: &str| TravelStep::Edges { kinds: vec![kind.to_owned()], versions: None };
    let mut steps = vec![TravelStep::Vertices(test), hop("read"), hop("wasReadBy")];
    steps.extend(paths.then_some(TravelStep::FullPaths));
    Travel { steps, ..Travel::default() }.plan(state.vocabulary()).unwrap()
}

/// Reads all paths of a walk.
fn all_paths(travelled: &Travelled) -> Result<()> {
    let mut paths = travelled.paths().unwrap();
    while paths.next_path()?.is_some() {}
    Ok(())
}

#[test]
fn limits_end_finds_and_reports() {
    let state = &*state();
    let options = TraceOptions::default();
    let named = |user: u32| user.to_string();
    let files = VertexTest { kind: Some("file".into()), ..VertexTest::default() };
    let reads = RelationTest { kind: "read".into(), tests: Vec::new() };
    let of_user = AuditOptions { user: Some("1".into()), ..AuditOptions::default() };
    ends_early("find", &|mut limits| find(state, &files, None, None, &mut limits).map(drop));
    ends_early("search", &|mut limits| search(state, "part", None, None, &mut limits).map(drop));
    ends_early("find_relations", &|mut limits| {
        find_relations(state, &reads, None, None, &mut limits).map(drop)
    });
    ends_early("edges", &|mut limits| edges(state, &job(), None, Versions::ALL, None, &mut limits).map(drop));
    ends_early("dossier", &|mut limits| dossier(state, &job(), &options, &named, &mut limits).map(drop));
    ends_early("audit", &|mut limits| audit(state, &of_user, &named, &mut limits).map(drop));
    ends_early("hidden", &|mut limits| hidden(state, 1, u64::MAX, &mut |_| Ok(()), &mut limits).map(drop));
}

#[test]
fn limits_end_traces() {
    let state = state();
    ends_early("trace", &|mut limits| trace(&state, &job(), &TraceOptions::default(), &mut limits).map(drop));
    let plain = TraceOptions { causal: false, ..TraceOptions::default() };
    ends_early("trace of now", &|mut limits| trace(&state, &job(), &plain, &mut limits).map(drop));
}

#[test]
fn limits_end_traversals() {
    let (state, clock) = (state(), Env::real().clock);
    // One by one, and over numbers of segments.
    for few in [u64::MAX, 0] {
        let plan = plan(&state, false);
        ends_early("travel", &|limits| {
            travel_within(state.clone(), plan.clone(), &*clock, limits, few).map(drop)
        });
    }
}

/// The paths of a traversal are read after its call, and the limits hold for them too.
#[test]
fn limits_end_the_reading_of_paths() {
    let (state, clock) = (state(), Env::real().clock);
    let plan = plan(&state, true);
    let walk = |limits: Limits| travel(state.clone(), plan.clone(), &*clock, limits);
    let (outcome, walked) = limited(u64::MAX, None, &|limits| walk(limits).map(drop));
    outcome.unwrap();
    let read = |limits: Limits| all_paths(&walk(limits)?);
    ends_early("paths", &read);
    let (outcome, looks) = limited(u64::MAX, None, &read);
    outcome.unwrap();
    assert!(looks >= walked + LOOKS, "{looks} looks, {walked} of them before the first path");
}

#[test]
fn limits_end_walks_of_slots() {
    let partitioning = Partitioning { slots: 4, ..Partitioning::default() };
    for engine in Engine::ALL {
        let slots = Simulated::new(partitioning, NetworkFaults::default(), 1);
        slots.cluster.insert(&rows()).unwrap();
        let state = Arc::new(slots.state());
        let plan = plan(&state, false);
        let walk = |limits: Limits| {
            travels::begin(&slots.cluster, &state, &[], plan.clone(), engine, limits)?.run().map(drop)
        };
        ends_early(engine.name(), &walk);
    }
}
