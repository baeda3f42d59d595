use fieldstone_format::graph::props_bytes;
use serde_json::json;

use super::*;

const NOON: u64 = 1_795_262_400_000_000_000;
const SECOND: u64 = 1_000_000_000;

fn run_event(kind: &str, time: &str, inputs: Json, outputs: Json) -> Json {
    json!({
        "eventType": kind, "eventTime": time, "producer": "x", "unknown": [1],
        "run": {"runId": "r1", "facets": {
            "parent": {"run": {"runId": "r0"}, "job": {"namespace": "ns", "name": "all"}},
            "engine": {"_producer": "x", "name": "spark", "cores": 8, "ratio": 0.5, "old": false, "list": [1]}}},
        "job": {"namespace": "ns", "name": "regrid", "facets": {"jobType": {"integration": kind}}},
        "inputs": inputs, "outputs": outputs,
    })
}

fn start() -> Json {
    run_event(
        "START",
        "2026-11-21T12:00:00Z",
        json!([{"namespace": "file", "name": "/data/a.nc"}]),
        json!([]),
    )
}

fn complete() -> Json {
    let statistics = json!({"outputStatistics": {"rowCount": 5, "size": 1234}});
    let outputs = json!([
        {"namespace": "postgres://db:5432", "name": "x.y", "outputFacets": statistics,
            "facets": {"schema": {"fields": []}, "version": {"datasetVersion": "7"}}},
        {"namespace": "file://other", "name": "/c"},
        {"namespace": "file", "name": "b.nc"},
    ]);
    let inputs = json!([{"namespace": "file", "name": "file:///data/a.nc"}]);
    run_event("complete", "2026-11-21T13:00:10.5+01:00", inputs, outputs)
}

fn rows(texts: &[String]) -> GraphRows {
    let mut events = OpenLineage::default();
    for text in texts {
        events.add(text.as_bytes()).unwrap();
    }
    events.rows().unwrap()
}

#[test]
fn the_events_of_a_run_count_as_one() {
    let whole = rows(&[format!("{}\n{}\n", start(), complete())]);
    let end = NOON + SECOND / 2 * 21;
    // Each has a version at each event, and the first has the properties.
    let (first, later): (Vec<&RelationPut>, Vec<&RelationPut>) =
        whole.relations.iter().partition(|put| put.time == Some(NOON));
    assert_eq!((first.len(), later.len()), (5, 4));
    assert!(later.iter().all(|r| (r.time, r.until, r.props.is_empty()) == (Some(end), Some(end), true)));
    let relations: Vec<String> =
        first.iter().map(|r| format!("{} {} {}", r.source, r.kind, r.target)).collect();
    let job = "job:openlineage:ns/regrid/r1";
    let expected = [
        format!("{job} read file:/data/a.nc"),
        format!("{job} write dataset:file://other//c"),
        format!("{job} write dataset:postgres://db:5432/x.y"),
        format!("{job} write file:/b.nc"),
    ];
    assert_eq!(relations[0], format!("job:openlineage:ns/all/r0 contains {job}"));
    assert_eq!(relations[1..], expected);
    assert!(first.iter().all(|r| r.until == Some(end)));
    let table = &first[3].props;
    let get = |name: &str| table.get(name).unwrap();
    assert_eq!(get("bytes"), Some(Value::Int(1234)));
    assert_eq!(get("outputStatistics.rowCount"), Some(Value::Int(5)));
    assert_eq!(get("version.datasetVersion"), Some(Value::Text("7".into())));
    let [begun, ended] = &whole.vertices[..] else { panic!("two versions") };
    assert_eq!((begun.time, ended.time), (Some(NOON), Some(end)));
    let text = |put: &super::super::VertexPut, name: &str| {
        put.props.get(name).unwrap().map(|v| v.to_string().replace('"', ""))
    };
    assert_eq!(text(begun, "jobType.integration").as_deref(), Some("START"));
    assert_eq!(text(ended, "jobType.integration").as_deref(), Some("complete"));
    assert_eq!((text(begun, "state"), text(ended, "state").as_deref()), (None, Some("COMPLETE")));
    assert_eq!(text(ended, "parent").as_deref(), Some("openlineage:ns/all/r0"));
    assert_eq!(text(begun, "engine.cores").as_deref(), Some("8"));
    assert_eq!((text(begun, "engine.list"), text(begun, "engine._producer")), (None, None));
}

#[test]
fn neither_form_nor_order_nor_files_change_the_rows() {
    let whole = rows(&[format!("{}\n{}\n", start(), complete())]);
    let pretty = |event: &Json| serde_json::to_string_pretty(event).unwrap();
    for texts in [
        vec![json!([start(), complete()]).to_string()],
        vec![complete().to_string(), pretty(&start())],
        vec![format!("\u{feff}{} {}{}", pretty(&complete()), start(), start())],
    ] {
        assert_eq!(rows(&texts), whole);
    }
}

#[test]
fn a_run_that_was_not_seen_to_begin_or_end() {
    let running = rows(&[start().to_string()]);
    assert!(running.relations.iter().all(|r| (r.time, r.until) == (Some(NOON), None)));
    assert_eq!(running.vertices.len(), 1);
    // Its beginning is the same version once the end is known.
    assert_eq!(running.vertices[0], rows(&[json!([start(), complete()]).to_string()]).vertices[0]);
    let ended = rows(&[complete().to_string()]);
    let end = Some(NOON + SECOND / 2 * 21);
    assert!(ended.relations.iter().all(|r| (r.time, r.until) == (end, end)));
}

#[test]
fn what_a_run_reads_and_writes_lasts_from_its_first_event_to_its_last() {
    let at = |kind: &str, second: u64| {
        let inputs = json!([{"namespace": "file", "name": "/a"}]);
        run_event(kind, &format!("2026-11-21T12:00:0{second}Z"), inputs, json!([])).to_string()
    };
    let span = |mut texts: Vec<String>| {
        let put = rows(&texts).relations[1].clone();
        texts.reverse();
        assert_eq!(rows(&texts).relations[1], put, "whatever their order");
        let since = |time: u64| (time - NOON) / SECOND;
        (since(put.time.unwrap()), put.until.map(since))
    };
    assert_eq!(span(vec![at("RUNNING", 1), at("START", 2), at("OTHER", 5)]), (1, Some(5)));
    assert_eq!(span(vec![at("RUNNING", 3), at("OTHER", 1)]), (1, Some(3)));
    assert_eq!(span(vec![at("START", 1)]), (1, None));
    assert_eq!(span(vec![at("START", 1), at("FAIL", 3), at("COMPLETE", 6)]), (1, Some(6)));
}

#[test]
fn an_event_that_is_not_whole_is_named_by_its_line() {
    let cases: [(&str, Json, &str); 9] = [
        ("/run/runId", json!("r".repeat(NAME + 1)), "runId"),
        ("/eventTime", json!("noon"), "'noon'"),
        ("/eventTime", Json::Null, "eventTime"),
        ("/run", json!([]), "run"),
        ("/run/runId", json!(""), "runId"),
        ("/job/name", json!(7), "name"),
        ("/inputs", json!({}), "inputs"),
        ("/inputs/0", json!("a"), "inputs, number 1"),
        ("/inputs/0/namespace", Json::Null, "namespace"),
    ];
    for (pointer, value, named) in cases {
        let mut bad = start();
        *bad.pointer_mut(pointer).unwrap() = value;
        let mut events = OpenLineage::default();
        let error = events.add(format!("{}\n\n{bad}\n", complete()).as_bytes()).unwrap_err();
        assert!(error.message().starts_with("line 3: ") && error.message().contains(named), "{error}");
        assert!(events.rows().unwrap().is_empty(), "nothing of the text is taken");
        let error = events.add(json!([start(), bad]).to_string().as_bytes()).unwrap_err();
        assert!(error.message().starts_with("line 1, event 2: "), "{error}");
    }
    let error = OpenLineage::default().add(format!("{}\n{{\"a\": \n", start()).as_bytes()).unwrap_err();
    assert!(error.message().contains("line 3") || error.message().contains("line 2"), "{error}");
    assert!(OpenLineage::default().add(b"[7]").is_err());
}

#[test]
fn events_of_no_run_are_noted_and_properties_bounded() {
    let of_job = json!({"eventTime": "2026-11-21T12:00:00Z", "job": {"namespace": "a", "name": "b"}});
    let found = rows(&[of_job.to_string()]);
    assert!(found.is_empty() && found.notes[0].starts_with("left out 1 OpenLineage"), "{found:?}");
    let mut many = start();
    let facet: Map<String, Json> = (0..500).map(|i| (format!("m{i}"), json!("é".repeat(9000)))).collect();
    many["run"]["facets"]["many"] = Json::Object(facet);
    let props = rows(&[many.to_string()]).vertices[0].props.clone();
    assert!(props_bytes(&props).len() < 66 * 4200, "{}", props_bytes(&props).len());
    assert_eq!(props.get("name").unwrap(), Some(Value::Text("regrid".into())));
}

/// A data set with its change, and its other names.
fn changed(name: &str, change: &str, before: Option<&str>, links: &[&str]) -> Json {
    let id = |name: &str| json!({"namespace": "db", "name": name});
    let links: Vec<Json> = links.iter().map(|name| id(name)).collect();
    let mut state = json!({"lifecycleStateChange": change});
    if let Some(before) = before {
        state["previousIdentifier"] = id(before);
    }
    json!({"namespace": "db", "name": name,
        "facets": {"lifecycleStateChange": state, "symlinks": {"identifiers": links}}})
}

/// The relations of one event at noon, without the job: `write db/t 0 replaces`, seconds since noon.
fn said(inputs: Json, outputs: Json) -> Vec<String> {
    let event = run_event("COMPLETE", "2026-11-21T12:00:00Z", inputs, outputs);
    let since = |time: Option<u64>| time.unwrap() as i64 - NOON as i64;
    let rows = rows(&[event.to_string()]);
    let of_data = rows.relations.iter().filter(|put| &*put.kind != "contains");
    let one = |put: &RelationPut| {
        let replaces = if put.props.replaces() { " replaces" } else { "" };
        format!("{} {} {}{replaces}", put.kind, put.target.id, since(put.time))
    };
    of_data.map(one).collect()
}

#[test]
fn what_became_of_a_data_set_and_its_names_count() {
    for change in ["OVERWRITE", "CREATE", "TRUNCATE", "DROP", "overwrite"] {
        assert_eq!(said(json!([]), json!([changed("t", change, None, &[])])), ["write db/t 0 replaces"]);
    }
    assert_eq!(said(json!([]), json!([changed("t", "ALTER", None, &[])])), ["write db/t 0"]);
    assert_eq!(said(json!([changed("t", "DROP", None, &[])]), json!([])), ["write db/t 0 replaces"]);
    let renamed = said(json!([]), json!([changed("new", "RENAME", Some("old"), &[])]));
    assert_eq!(renamed, ["read db/old -1", "write db/new 0 replaces", "write db/old 0 replaces"]);
    let linked =
        said(json!([changed("a", "", None, &["b"])]), json!([changed("c", "OVERWRITE", None, &["d"])]));
    assert_eq!(linked, ["read db/a 0", "read db/b 0", "write db/c 0 replaces", "write db/d 0 replaces"]);
    // If it replaces data in place, it read them before.
    let both = said(json!([changed("t", "", None, &[])]), json!([changed("t", "OVERWRITE", None, &[])]));
    assert_eq!(both, ["read db/t -1", "read db/t 0", "write db/t 0 replaces"]);
}

#[test]
fn secrets_of_facets_and_names_are_hidden() {
    let mut event = start();
    event["run"]["facets"]["engine"]["password"] = json!("hunter2");
    event["run"]["facets"]["engine"]["command"] = json!("curl -u anna:hunter2 https://x.org/a");
    event["inputs"] = json!([{"namespace": "postgres://anna:hunter2@db:5432", "name": "x.y"}]);
    let rows = rows(&[event.to_string()]);
    assert!(!format!("{:?} {:?}", rows.vertices, rows.relations).contains("hunter2"));
    assert!(rows.relations.iter().any(|put| put.target.id.contains("db:5432/x.y")));
}
