//! External records, imported file by file: the graph is the same whatever the division into files and calls, the
//! order, and the number of repetitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fieldstone::Session;
use fieldstone::catalog::value::Value;
use fieldstone::graph::{TraceOptions, Versions, VertexName};
use fieldstone::{IngestOptions, IngestReport, OpenOptions, Store};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::require::full;
use fieldstone_testkit::{Random, seeded};
use serde_json::{Value as Json, json};

/// A second of the day of all events.
fn moment(second: u64) -> String {
    format!("2026-11-21T07:{:02}:{:02}", second / 60, second % 60)
}

fn id(n: u64) -> Json {
    json!({"namespace": "db", "name": format!("t{n}")})
}

/// A data set, with facts from an event.
fn dataset(dice: &mut Random) -> Json {
    let mut set = id(dice.below(4));
    let mut facets = json!({});
    match dice.below(8) {
        0 => facets["lifecycleStateChange"] = json!({"lifecycleStateChange": "OVERWRITE"}),
        1 => facets["lifecycleStateChange"] = json!({"lifecycleStateChange": "DROP"}),
        2 => {
            let state = json!({"lifecycleStateChange": "RENAME", "previousIdentifier": id(dice.below(4))});
            facets["lifecycleStateChange"] = state;
        }
        3 => facets["symlinks"] = json!({"identifiers": [id(dice.below(4))]}),
        4 => facets["version"] = json!({"datasetVersion": dice.below(3).to_string()}),
        _ => {}
    }
    set["facets"] = facets;
    set
}

/// An event of one of three runs.
fn event(dice: &mut Random) -> Json {
    let run = dice.below(3);
    let sets = |dice: &mut Random| (0..dice.below(3)).map(|_| dataset(dice)).collect::<Vec<Json>>();
    let mut facets = json!({"engine": {"n": dice.below(3)}});
    if run == 2 {
        facets["parent"] = json!({"run": {"runId": "r0"}, "job": {"namespace": "ns", "name": "j0"}});
    }
    json!({
        "eventType": *dice.pick(&["START", "RUNNING", "RUNNING", "COMPLETE", "FAIL"]),
        "eventTime": format!("{}Z", moment(dice.below(12))),
        "run": {"runId": format!("r{run}"), "facets": facets},
        "job": {"namespace": "ns", "name": format!("j{run}")},
        "inputs": sets(dice), "outputs": sets(dice),
    })
}

/// Rows of SLURM's accounting by column; a job has the same facts in all listings.
fn accounting(dice: &mut Random) -> Vec<BTreeMap<&'static str, String>> {
    let row = |job: &str, dice: &mut Random| {
        let (begin, long) = (dice.below(30), dice.below(30));
        let state = *dice.pick(&["COMPLETED", "NODE_FAIL", "CANCELLED by 7"]);
        [
            ("JobID", job.to_owned()),
            ("Start", moment(begin)),
            ("End", moment(begin + long)),
            ("State", state.to_owned()),
            ("ExitCode", "0:0".to_owned()),
            ("UID", "1000".to_owned()),
            ("JobName", format!("n{}", dice.below(3))),
            ("Partition", "big".to_owned()),
            ("Elapsed", long.to_string()),
        ]
        .into_iter()
        .collect()
    };
    ["17", "17.0", "17.batch", "18"].into_iter().map(|job| row(job, dice)).collect()
}

/// A listing of some rows and columns.
fn listing(rows: &[BTreeMap<&'static str, String>], dice: &mut Random) -> String {
    let columns: Vec<&str> = rows[0]
        .keys()
        .copied()
        .filter(|name| ["JobID", "Start", "End"].contains(name) || dice.one_in(2))
        .collect();
    let mut text = format!("{}\n", columns.join("|"));
    for row in rows.iter().filter(|_| !dice.one_in(3)) {
        let cells: Vec<&str> = columns.iter().map(|column| row[column].as_str()).collect();
        text.push_str(&format!("{}\n", cells.join("|")));
    }
    text
}

fn store() -> Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

fn take(store: &Store, folder: &tempfile::TempDir, texts: &[String]) {
    let write = |(i, text): (usize, &String)| {
        let path = folder.path().join(format!("{i}.json"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let paths: Vec<PathBuf> = texts.iter().enumerate().map(write).collect();
    let mut report = IngestReport::default();
    fieldstone::ingest_into(store, &paths, &IngestOptions::default(), &mut report).unwrap();
    assert!(report.skipped.is_empty(), "{:?}", report.skipped);
}

/// A value as text; a map in the order of names, which has no meaning.
fn text(value: &Value) -> String {
    let Value::Map(pairs) = value else { return value.to_string() };
    let mut pairs = pairs.clone();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Map(pairs).to_string()
}

/// The content of the graph: lineages of all data, the span of each relation, and the facts of each job.
fn said(store: &Store) -> Vec<String> {
    let graph = store.graph();
    let mut all = Vec::new();
    for n in 0..4 {
        let data = VertexName::new("dataset", &format!("db/t{n}"));
        let Ok(lineage) = graph.trace(&data, &TraceOptions::default(), &Session::default()) else { continue };
        let names: BTreeSet<String> = lineage.vertices.iter().map(|step| step.name.to_string()).collect();
        let edges: BTreeSet<String> =
            lineage.edges.iter().map(|e| format!("{} {} {}", e.near, e.kind, e.far)).collect();
        all.push(format!("{data}: {names:?} {edges:?}"));
    }
    let runs = (0..3).map(|n| format!("openlineage:ns/j{n}/r{n}"));
    let jobs = runs.chain(["17", "17.0", "17.batch", "18"].map(str::to_owned));
    for job in jobs.map(|job| VertexName::new("job", &job)) {
        let mut spans: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for edge in graph.edges(&job, None, Versions::ALL, None, &Session::default()).unwrap() {
            let end = edge.until.unwrap_or(edge.stamp);
            let span = spans.entry(format!("{} {}", edge.kind, edge.far)).or_insert((u64::MAX, 0));
            *span = match edge.kind.as_str() {
                "read" | "write" => (span.0.min(edge.stamp), span.1.max(end)),
                _ => (0, 0),
            };
        }
        let props: BTreeMap<String, String> = match graph.vertex(&job, None, &Session::default()) {
            Ok(known) => known.props.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            Err(_) => BTreeMap::new(),
        };
        all.push(format!("{job}: {spans:?} {props:?}"));
    }
    all
}

/// Parts in another order, some of them twice, in several calls of several files.
fn bundled(parts: &[String], dice: &mut Random, join: impl Fn(&[String]) -> Vec<String>) -> Vec<String> {
    let mut parts = parts.to_vec();
    let again: Vec<String> = parts.iter().filter(|_| dice.one_in(5)).cloned().collect();
    parts.extend(again);
    let mut order: Vec<String> = Vec::new();
    while !parts.is_empty() {
        order.push(parts.remove(dice.index(parts.len())));
    }
    let (store, folder) = (store(), tempfile::tempdir().unwrap());
    while !order.is_empty() {
        let n = 1 + dice.index(order.len());
        let of_call: Vec<String> = order.drain(..n).collect();
        take(&store, &folder, &join(&of_call));
    }
    said(&store)
}

/// Histories, and the number of divisions of each.
fn effort() -> (u64, usize) {
    if full() { (40, 200) } else { (12, 5) }
}

#[test]
fn events_come_to_the_same_however_they_are_bundled() {
    let (histories, bundlings) = effort();
    for seed in seeds(histories) {
        let dice = &mut *seeded(seed);
        let events: Vec<String> = (0..2 + dice.below(8)).map(|_| event(dice).to_string()).collect();
        let whole = {
            let (store, folder) = (store(), tempfile::tempdir().unwrap());
            take(&store, &folder, &[events.join("\n")]);
            said(&store)
        };
        for _ in 0..bundlings {
            let other =
                bundled(&events, dice, |events| events.chunks(2).map(|events| events.join("\n")).collect());
            assert_eq!(other, whole, "{events:#?}");
        }
    }
}

#[test]
fn listings_come_to_the_same_however_they_are_bundled() {
    let (histories, bundlings) = effort();
    for seed in seeds(histories) {
        let dice = &mut *seeded(seed);
        let rows = accounting(dice);
        let listings: Vec<String> = (0..1 + dice.below(4)).map(|_| listing(&rows, dice)).collect();
        let whole = {
            let (store, folder) = (store(), tempfile::tempdir().unwrap());
            take(&store, &folder, &listings);
            said(&store)
        };
        for _ in 0..bundlings {
            assert_eq!(bundled(&listings, dice, <[String]>::to_vec), whole, "{listings:#?}");
        }
    }
}
