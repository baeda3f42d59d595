//! Exported lineages: PROV-JSON, OpenLineage, RO-Crate, Graphviz, pictures. The Python tests, which have the other
//! programs, check how these read them.

use std::collections::BTreeSet;

use fieldstone::Session;
use fieldstone::graph::{Dossier, Props, RelationPut, TraceOptions, VertexName, VertexPut, Way};
use fieldstone::lineage::{GraphRows, LineageFormat, OpenLineage, export};
use fieldstone::{OpenOptions, Store};
use fieldstone_core::value::Value;
use serde_json::{Value as Json, json};

const SECOND: u64 = 1_000_000_000;

pub fn vertex(text: &str) -> VertexName {
    let (kind, id) = text.split_once(':').unwrap();
    VertexName::new(kind, id)
}

pub fn relation(source: &str, kind: &str, target: &str, time: u64, props: &[(&str, Value)]) -> RelationPut {
    let mut put = RelationPut::new(kind, vertex(source), vertex(target));
    put.time = Some(time * SECOND);
    put.until = Some(time * SECOND + SECOND / 2);
    put.props = Props::of(props.iter().map(|(name, value)| (*name, value))).unwrap();
    put
}

pub fn put(name: &str, time: u64, props: &[(&str, Value)]) -> VertexPut {
    let props = Props::of(props.iter().map(|(name, value)| (*name, value))).unwrap();
    VertexPut { vertex: vertex(name), fixed: None, props, time: Some(time * SECOND) }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn memory() -> Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

fn dossier(store: &Store, root: &str) -> Dossier {
    store.graph().dossier(&vertex(root), &TraceOptions::default(), &Session::default()).unwrap()
}

/// Job 17 of two ranks writes t.nc; job 18 appends to it, and fails; job 19 plots both states of it.
fn story() -> Store {
    let store = memory();
    let bytes = |n: i64| ("bytes", Value::Int(n));
    let vertices = vec![
        put(
            "job:17",
            1,
            &[
                ("name", text("model")),
                ("start", Value::DateTime(SECOND as i64)),
                ("end", Value::DateTime(30 * SECOND as i64)),
                ("argv", Value::List(vec![text("/opt/model"), text("-n"), Value::Int(2)])),
                ("env", Value::Map(vec![("OMP_NUM_THREADS".into(), text("4"))])),
            ],
        ),
        put("job:18", 40, &[("exit", Value::Int(3)), ("start", Value::DateTime(40 * SECOND as i64))]),
    ];
    let relations = vec![
        relation("user:1000", "run", "job:17", 1, &[]),
        relation("user:1000", "run", "job:18", 40, &[]),
        relation("job:17", "contains", "process:17/0", 1, &[]),
        relation("job:17", "contains", "process:17/1", 1, &[]),
        relation("job:17", "exe", "file:/opt/model", 1, &[("checksum", text("xxh3:00"))]),
        relation("process:17/0", "read", "file:/mesh.nc", 2, &[bytes(5)]),
        relation("process:17/0", "write", "file:/t.nc", 10, &[bytes(50)]),
        relation("process:17/1", "write", "file:/t.nc", 11, &[bytes(50)]),
        relation("job:18", "write", "file:/t.nc", 41, &[bytes(7)]),
        relation("job:19", "read", "file:/t.nc", 50, &[]),
        relation("job:19", "read", "dataset:s3://bucket/a/b", 50, &[]),
        relation("job:19", "write", "file:/plot.png", 60, &[("checksum", text("xxh3:11"))]),
    ];
    store.graph().put(vertices, relations, &Session::default()).unwrap();
    store
}

fn json_of(store: &Store, root: &str, format: LineageFormat) -> Json {
    serde_json::from_str(&export(&dossier(store, root), format)).unwrap()
}

#[test]
fn data_that_several_wrote_are_versions_in_prov() {
    let document = json_of(&story(), "file:/plot.png", LineageFormat::ProvJson);
    let records =
        |section: &str| document[section].as_object().unwrap().values().cloned().collect::<Vec<_>>();
    let (first, second) = ("fst:file/t.nc@10000000000", "fst:file/t.nc@41000000000");
    let ids: BTreeSet<&str> = document["entity"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(
        [first, second, "fst:file/t.nc", "fst:file/plot.png"].iter().all(|id| ids.contains(id)),
        "{ids:?}"
    );
    let made = |entity: &str| {
        let found = records("wasGeneratedBy").into_iter().find(|record| record["prov:entity"] == entity);
        found.unwrap()["prov:activity"].as_str().unwrap().to_owned()
    };
    // Two ranks wrote the first version: it is their job's.
    assert_eq!((made(first), made(second)), ("fst:job/17".to_owned(), "fst:job/18".to_owned()));
    let used: Vec<Json> =
        records("used").into_iter().filter(|record| record["prov:activity"] == "fst:job/19").collect();
    assert!(used.iter().any(|record| record["prov:entity"] == second), "it read the newest: {used:?}");
    let derived = records("wasDerivedFrom");
    assert_eq!(derived.len(), 1);
    assert_eq!(
        (&derived[0]["prov:generatedEntity"], &derived[0]["prov:usedEntity"]),
        (&json!(second), &json!(first))
    );
    assert_eq!(records("specializationOf").len(), 2);
    assert_eq!(document["activity"]["fst:job/17"]["prov:startTime"], "1970-01-01T00:00:01Z");
    let associated: BTreeSet<String> = records("wasAssociatedWith")
        .iter()
        .map(|r| r["prov:activity"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(associated, BTreeSet::from(["fst:job/17".to_owned(), "fst:job/18".to_owned()]));
    assert_eq!(document["agent"]["fst:user/1000"]["prov:type"]["$"], "prov:Person");
    assert_eq!(records("wasStartedBy").len(), 2);
    let program =
        records("used").into_iter().find(|record| record["prov:entity"] == "fst:file/opt/model").unwrap();
    assert_eq!(program["prov:role"]["$"], "fst:executable");
}

#[test]
fn a_write_that_replaces_is_no_revision_in_prov() {
    let store = memory();
    let relations = vec![
        relation("job:1", "write", "file:/a", 1, &[]),
        relation("job:2", "read", "file:/a", 2, &[]),
        relation("job:2", "write", "file:/a", 3, &[("replaces", Value::Bool(true))]),
        relation("job:1", "read", "file:/a", 4, &[]),
        relation("job:1", "write", "file:/b", 5, &[]),
    ];
    store.graph().put(Vec::new(), relations, &Session::default()).unwrap();
    let options = TraceOptions { causal: false, ..TraceOptions::default() };
    let all = store.graph().dossier(&vertex("file:/b"), &options, &Session::default()).unwrap();
    let document: Json = serde_json::from_str(&export(&all, LineageFormat::ProvJson)).unwrap();
    assert!(document.get("wasDerivedFrom").is_none(), "{document}");
    let used = document["used"].as_object().unwrap();
    let of = |activity: &str| {
        let record = used.values().find(|record| record["prov:activity"] == activity).unwrap();
        record["prov:entity"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (of("fst:job/2"), of("fst:job/1")),
        ("fst:file/a@1000000000".into(), "fst:file/a@3000000000".into())
    );
}

/// Relations as type, ends, times and properties.
fn facts(rows: &[RelationPut]) -> BTreeSet<String> {
    let fact = |put: &RelationPut| {
        let (times, props) = ((put.time, put.until), put.props.pairs().unwrap());
        format!("{} {} {} {times:?} {props:?}", put.source, put.kind, put.target)
    };
    rows.iter().map(fact).collect()
}

fn back(text: &str) -> GraphRows {
    let mut events = OpenLineage::default();
    events.add(text.as_bytes()).unwrap();
    events.rows().unwrap()
}

#[test]
fn openlineage_comes_back_as_the_same_relations() {
    let store = story();
    let first = dossier(&store, "file:/plot.png");
    let text = export(&first, LineageFormat::OpenLineage);
    let rows = back(&text);
    let expected: Vec<RelationPut> = first
        .relations()
        .map(|edge| {
            let mut put = RelationPut::new(&edge.kind, edge.near.clone(), edge.far.clone());
            (put.time, put.until) = (Some(edge.stamp), edge.until);
            put.props = Props::of(edge.props.iter().map(|(name, value)| (name.as_str(), value))).unwrap();
            put
        })
        .collect();
    assert_eq!(facts(&rows.relations), facts(&expected));
    let other = memory();
    other.graph().put(rows.vertices, rows.relations, &Session::default()).unwrap();
    let again = dossier(&other, "file:/plot.png");
    assert!(export(&again, LineageFormat::OpenLineage) == text, "and those give the same events");
    assert_eq!(again.prop(&vertex("job:17"), "argv"), first.prop(&vertex("job:17"), "argv"));
    assert_eq!(again.prop(&vertex("job:18"), "exit"), Some(&Value::Int(3)));
}

#[test]
fn openlineage_events_are_what_its_readers_expect() {
    let events = json_of(&story(), "file:/plot.png", LineageFormat::OpenLineage);
    let of = |name: &str, kind: &str| {
        let fits = |event: &&Json| event["job"]["name"] == name && event["eventType"] == kind;
        events
            .as_array()
            .unwrap()
            .iter()
            .find(fits)
            .unwrap_or_else(|| panic!("{name} {kind}: {events}"))
            .clone()
    };
    assert_eq!(of("model", "START")["eventTime"], "1970-01-01T00:00:01Z");
    assert_eq!(of("model", "COMPLETE")["eventTime"], "1970-01-01T00:00:30Z");
    let rank = of("17/0", "START");
    assert_eq!(rank["run"]["facets"]["parent"]["run"]["runId"], of("model", "START")["run"]["runId"]);
    assert_eq!(rank["inputs"][0]["name"], "/mesh.nc");
    assert_eq!(rank["inputs"][0]["inputFacets"]["inputStatistics"]["size"], 5);
    let plot = of("19", "START");
    let sets: Vec<(&str, &str)> = plot["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| (set["namespace"].as_str().unwrap(), set["name"].as_str().unwrap()))
        .collect();
    assert_eq!(sets, [("s3://bucket", "a/b"), ("file", "/t.nc")]);
    assert_eq!(plot["outputs"][0]["facets"]["version"]["datasetVersion"], "xxh3:11");
    for event in events.as_array().unwrap() {
        let id = event["run"]["runId"].as_str().unwrap();
        assert!(id.len() == 36 && id.as_bytes()[14] == b'8', "{id}");
        assert!(event["schemaURL"].as_str().unwrap().starts_with("https://openlineage.io/spec/"));
    }
}

#[test]
fn an_execution_that_failed_is_said_to_have_failed() {
    let store = story();
    let ended = put("job:18", 45, &[("end", Value::DateTime(45 * SECOND as i64)), ("signal", Value::Int(9))]);
    store.graph().put_vertices(vec![ended], &Session::default()).unwrap();
    let events = json_of(&store, "file:/plot.png", LineageFormat::OpenLineage);
    let failed = events.as_array().unwrap().iter().find(|event| event["eventType"] == "FAIL").unwrap();
    assert_eq!(failed["run"]["facets"]["errorMessage"]["message"], "ended by signal 9");
    let graph = json_of(&store, "file:/plot.png", LineageFormat::RoCrate);
    let action = graph["@graph"].as_array().unwrap().iter().find(|e| e["@id"] == "#job/18").unwrap().clone();
    assert_eq!(action["actionStatus"], "http://schema.org/FailedActionStatus");
    assert_eq!(action["error"], "ended by signal 9");
}

#[test]
fn a_crate_has_an_action_for_each_job() {
    let graph = json_of(&story(), "file:/plot.png", LineageFormat::RoCrate);
    let entities = graph["@graph"].as_array().unwrap();
    let of =
        |id: &str| entities.iter().find(|e| e["@id"] == id).unwrap_or_else(|| panic!("no {id}: {graph:#}"));
    assert_eq!(of("./")["conformsTo"]["@id"], "https://w3id.org/ro/wfrun/process/0.5");
    assert_eq!(of("./")["mainEntity"]["@id"], "file:///plot.png");
    let action = of("#job/17");
    assert_eq!(
        (&action["@type"], &action["object"]["@id"]),
        (&json!("CreateAction"), &json!("file:///mesh.nc"))
    );
    assert_eq!(action["result"]["@id"], "file:///t.nc");
    assert_eq!(action["endTime"], "1970-01-01T00:00:30.000+00:00");
    assert_eq!(of(action["agent"]["@id"].as_str().unwrap())["@type"], "Person");
    assert_eq!(of(action["instrument"]["@id"].as_str().unwrap())["name"], "model");
    assert_eq!(of(action["environment"]["@id"].as_str().unwrap())["value"], "4");
    assert!(entities.iter().all(|e| e["@id"] != "#process/17/0"), "ranks are their job");
    assert_eq!(of("./")["hasPart"].as_array().unwrap().len(), 3, "mesh, t, plot");
    // The targets of all references exist.
    let ids: BTreeSet<&str> = entities.iter().map(|e| e["@id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), entities.len(), "no id twice");
    for entity in entities {
        for name in ["object", "result", "agent", "instrument", "hasPart", "identifier", "mentions"] {
            let list = match &entity[name] {
                Json::Array(list) => list.clone(),
                Json::Null => Vec::new(),
                one => vec![one.clone()],
            };
            assert!(list.iter().all(|one| ids.contains(one["@id"].as_str().unwrap())), "{entity}");
        }
    }
}

#[test]
fn the_same_lineage_gives_the_same_text() {
    for format in LineageFormat::ALL {
        let texts: Vec<String> =
            (0..2).map(|_| export(&dossier(&story(), "file:/plot.png"), format)).collect();
        assert_eq!(texts[0], texts[1], "{format}");
        assert_eq!(format.name().parse::<LineageFormat>().unwrap(), format);
    }
    assert!("pdf".parse::<LineageFormat>().unwrap_err().hint().unwrap().contains("prov-json"));
}

#[test]
fn ids_of_any_characters_are_escaped() {
    let store = memory();
    let odd = [
        "/a\"b\\c".to_owned(),
        "/new\nline\tand\u{1}\u{1b}[31m".to_owned(),
        "<script>alert(1)</script>&amp;".to_owned(),
        "/日本語/été/😀.nc".to_owned(),
        "--> ]]> \u{202e}gnp.exe".to_owned(),
        "/x.".to_owned(),
        " ".to_owned(),
        "é".repeat(30_000),
        "fst:a@1!{}'$(x)`".to_owned(),
    ];
    let mut relations = Vec::new();
    for (i, id) in odd.iter().enumerate() {
        for kind in ["file", "odd kind \"<&\n"] {
            let mut read = RelationPut::new("read", VertexName::new("job", id), VertexName::new(kind, id));
            read.time = Some(1 + i as u64);
            read.props = Props::of([(id.get(..40).unwrap_or("n"), &text(id))]).unwrap();
            relations.push(read);
        }
        let mut write = RelationPut::new("write", VertexName::new("job", id), vertex("file:/out"));
        write.time = Some(100 + i as u64);
        relations.push(write);
        relations.push(RelationPut::new("run", VertexName::new("user", id), VertexName::new("job", id)));
    }
    let named = odd.iter().map(|id| {
        let props = [("name", text(id)), ("argv", Value::List(vec![text(id)])), ("error", text(id))];
        let props = Props::of(props.iter().map(|(name, value)| (*name, value))).unwrap();
        VertexPut { props, ..VertexPut::new(VertexName::new("job", id)) }
    });
    store.graph().put(named.collect(), relations, &Session::default()).unwrap();
    let all = dossier(&store, "file:/out");
    assert_eq!(all.lineage.vertices.len(), 1 + 3 * odd.len());

    let document = json_of(&store, "file:/out", LineageFormat::ProvJson);
    assert_eq!(document["activity"].as_object().unwrap().len(), odd.len());
    let local = |id: &str| {
        let name = id.strip_prefix("fst:").unwrap();
        !name.ends_with('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || "%-_./@!".contains(c))
    };
    for section in ["entity", "activity", "agent"] {
        assert!(document[section].as_object().unwrap().keys().all(|id| local(id)), "{section}");
    }
    let events = export(&all, LineageFormat::OpenLineage);
    assert_eq!(back(&events).relations.len(), 4 * odd.len());
    let crated = json_of(&store, "file:/out", LineageFormat::RoCrate);
    for entity in crated["@graph"].as_array().unwrap() {
        let id = entity["@id"].as_str().unwrap();
        assert!(id.chars().all(|c| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c)), "{}", &id[..60]);
    }
    let dot = export(&all, LineageFormat::Dot);
    for line in dot.lines() {
        let quotes = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert!(quotes % 2 == 0 && !line.contains('\u{1b}'), "{line}");
    }
    let svg = export(&all, LineageFormat::Svg);
    assert!(!svg.contains("<script") && !svg.contains('\u{1}') && !svg.contains('\u{202e}'));
    assert!(svg.contains("&lt;script&gt;") && svg.len() < 400_000, "{}", svg.len());
}

/// The number of boxes of a picture: arrows also have titles, and so has the picture.
fn texts(svg: &str) -> usize {
    svg.matches("text-anchor=\"middle\"").count()
}

#[test]
fn a_picture_has_a_box_for_each_job_and_its_data() {
    let svg = export(&dossier(&story(), "file:/plot.png"), LineageFormat::Svg);
    // Three jobs, four files and data sets; no ranks, no program, no user.
    assert_eq!(texts(&svg), 7, "{svg}");
    for part in ["model", "2 processes", "ended with exit code 3", "plot.png", ">failed<", "a/b"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(!svg.contains("not shown"));
}

#[test]
fn alike_data_are_one_stack_and_a_large_picture_says_that_it_is_cut() {
    let store = memory();
    let mut relations = vec![relation("job:all", "write", "file:/out", 50, &[])];
    for i in 0..500 {
        relations.push(relation("job:all", "read", &format!("file:/parts/{i:03}.nc"), 1, &[]));
    }
    store.graph().put_relations(relations, &Session::default()).unwrap();
    let svg = export(&dossier(&store, "file:/out"), LineageFormat::Svg);
    assert_eq!(texts(&svg), 3, "{svg}");
    assert!(svg.contains("000.nc … 499.nc") && svg.contains("500 files in /parts"), "{svg}");
    // A chain of 600 jobs: 1,201 boxes.
    let chain = (0..600).flat_map(|i| {
        let (before, after) = (format!("file:/{i}"), format!("file:/{}", i + 1));
        let job = format!("job:{i}");
        [relation(&job, "read", &before, 10 * i + 1, &[]), relation(&job, "write", &after, 10 * i + 5, &[])]
    });
    store.graph().put_relations(chain.collect(), &Session::default()).unwrap();
    let svg = export(&dossier(&store, "file:/600"), LineageFormat::Svg);
    assert_eq!(texts(&svg), 400);
    assert!(svg.contains("801 more distant vertices are not shown."), "{}", &svg[svg.len() - 500..]);
}

#[test]
fn a_commit_is_shown_by_its_fields() {
    let store = memory();
    let commit = "commit:00112233445566778899aabbccddeeff/00112233445566778899aabbccddeeff/7";
    let fields = |n: i64| ("fields", Value::Int(n));
    let relations = vec![
        relation("job:1", "write", commit, 1, &[fields(10), ("bytes", Value::Int(1 << 20))]),
        relation("job:2", "read", commit, 2, &[fields(4), ("request", text("run=a,variable=u"))]),
        relation("job:2", "write", "file:/plot", 3, &[]),
    ];
    store.graph().put_relations(relations, &Session::default()).unwrap();
    let svg = export(&dossier(&store, "file:/plot"), LineageFormat::Svg);
    assert!(svg.contains(">10 fields<") && svg.contains(">run=a,variable=u · 1.0 MiB<"), "{svg}");
}

#[test]
fn what_was_removed_is_still_described() {
    let store = memory();
    store
        .graph()
        .put_vertices(vec![put("file:/a", 1, &[("size", Value::Int(2048))])], &Session::default())
        .unwrap();
    let relations =
        vec![relation("job:1", "write", "file:/a", 2, &[]), relation("user:7", "run", "job:1", 2, &[])];
    store.graph().put_relations(relations, &Session::default()).unwrap();
    let deletions = ["file:/a", "job:1"].map(|name| fieldstone::graph::Deletion::Vertex(vertex(name)));
    store.graph().delete(deletions.to_vec(), None, &Session::default()).unwrap();
    let svg = export(&dossier(&store, "file:/a"), LineageFormat::Svg);
    assert!(svg.contains("2.0 KiB") && texts(&svg) == 2, "{svg}");
}

#[test]
fn a_lineage_downstream_and_one_without_relations_are_drawn_too() {
    let store = story();
    let options = TraceOptions { way: Way::Down, ..TraceOptions::default() };
    let down = store.graph().dossier(&vertex("file:/mesh.nc"), &options, &Session::default()).unwrap();
    assert!(export(&down, LineageFormat::Svg).contains("plot.png"));
    store.graph().put_vertices(vec![put("file:/alone", 1, &[])], &Session::default()).unwrap();
    for format in LineageFormat::ALL {
        let text = export(&dossier(&store, "file:/alone"), format);
        assert!(!text.is_empty(), "{format}");
    }
    assert_eq!(texts(&export(&dossier(&store, "file:/alone"), LineageFormat::Svg)), 1);
}
