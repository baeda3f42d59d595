//! Distributed arrays in the catalog: declared; read back by their process at once and by others after a flush; in
//! transactions; against owners and deletions; with SDM's six tables over them.

use fieldstone::Session;
use fieldstone::catalog::query::text::parse;
use fieldstone::catalog::{
    ARRAY_TABLES, ArrayGroup, ArrayLayout, ArraySet, BasicPattern, Deletion, HistoryContent, HistoryDecl,
    ImportDecl, ImportFormat, ImportedVariable, MeshDecl, MeshLocation, RankSizes, StorageOrder,
    VariableName,
};
use fieldstone::prelude::*;
use fieldstone::{Array, DType, ErrorKind, OpenOptions, Store, WriteOptions};

fn set(name: &str, shape: &[Option<u64>]) -> ArraySet {
    ArraySet {
        variable: VariableName { name: name.into(), version: 0 },
        dtype: DType::F8,
        shape: shape.to_vec(),
        dims: Vec::new(),
        fill: None,
        attrs: Vec::new(),
        pattern: BasicPattern::Regular,
        view: "block 2x1 halo 1".into(),
    }
}

fn group(name: &str, sets: Vec<ArraySet>) -> ArrayGroup {
    ArrayGroup {
        name: name.into(),
        level: 2,
        layout: ArrayLayout::Files,
        method: "exchange".into(),
        order: StorageOrder::C,
        mesh: Some("wing".into()),
        location: Some(MeshLocation::Node),
        chunks: None,
        compression: None,
        attrs: vec![("title".into(), "flow".into())],
        sets,
    }
}

fn import(size: u64) -> ImportDecl {
    let x = ImportedVariable { name: "x".into(), dtype: DType::F8, offset: 32, shape: vec![2, 3] };
    ImportDecl {
        name: "uns3d".into(),
        source: "/data/uns3d.msh".into(),
        format: ImportFormat::Raw,
        size,
        mtime: 7,
        checksum: Some(vec![0xab, 1]),
        variables: vec![x],
    }
}

fn mesh(edges: u64) -> MeshDecl {
    let path = "meshes/wing.nc".into();
    MeshDecl {
        name: "wing".into(),
        checksum: vec![1, 2],
        path,
        counts: [4, edges, 2, 0],
        attrs: Vec::new(),
        sums: None,
    }
}

fn history(nodes: u64) -> HistoryDecl {
    let ranks = vec![RankSizes { nodes, ghosts: 1, edges: 3 }, RankSizes { nodes: 2, ghosts: 2, edges: 4 }];
    let content = HistoryContent::Parts { vector: vec![9], ranks };
    HistoryDecl { path: "histories/a".into(), mesh: vec![1, 2], nodes: 4, edges: 5, content }
}

fn open(url: &str) -> Store {
    fieldstone::init(url, &OpenOptions::default()).unwrap()
}

fn names(group: &ArrayGroup) -> Vec<&str> {
    group.sets.iter().map(|set| set.variable.name.as_str()).collect()
}

/// Rows of a table as text.
fn rows(store: &Store, table: &str) -> Vec<String> {
    let (_, rows) = store.catalog().array_table(table).unwrap();
    let row = |row: Vec<fieldstone::catalog::value::Value>| {
        row.iter().map(|cell| cell.to_string().replace('"', "")).collect::<Vec<String>>().join(" ")
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn what_is_declared_is_there_at_once_and_for_others_after_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store").display().to_string();
    let store = open(&url);
    let run = store.create_run("a").create().unwrap();
    run.create_array_group(group("flow", vec![set("t", &[Some(4), None])])).unwrap();
    run.create_import(import(80)).unwrap();
    store.catalog().create_meshes(vec![mesh(5)], &Session::default()).unwrap();
    store.catalog().create_histories(vec![history(2)], &Session::default()).unwrap();
    let see = |store: &Store| {
        let run = store.run("a").unwrap();
        assert_eq!(names(&run.array_group("flow").unwrap()), ["t"]);
        assert_eq!(
            format!("{:?}", run.array_groups().unwrap()[0].attrs),
            format!("{:?}", group("", vec![]).attrs)
        );
        assert_eq!(run.imports().unwrap(), [import(80)]);
        assert_eq!(store.catalog().meshes(&Session::default()).unwrap().len(), 1);
        assert_eq!(store.catalog().mesh("wing", &Session::default()).unwrap().counts, [4, 5, 2, 0]);
        assert_eq!(store.catalog().histories(&Session::default()).unwrap(), [history(2)]);
    };
    see(&store);
    store.flush(None).unwrap();
    let other = open(&url);
    see(&other);
    // Not flushed: other handles do not see it.
    run.create_array_group(group("flow", vec![set("u", &[Some(8)])])).unwrap();
    assert_eq!(names(&run.array_group("flow").unwrap()), ["t", "u"]);
    assert_eq!(names(&other.run("a").unwrap().array_group("flow").unwrap()), ["t"]);
    store.flush(None).unwrap();
    assert_eq!(names(&other.run("a").unwrap().array_group("flow").unwrap()), ["t", "u"]);
    let missing = run.array_group("flown").unwrap_err();
    assert!(missing.kind() == ErrorKind::NotFound && missing.to_string().contains("'flown'"), "{missing}");
    assert_eq!(store.catalog().mesh("win", &Session::default()).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(store.catalog().verify().unwrap().ok());
    store.catalog().rebuild().unwrap();
    assert_eq!(names(&run.array_group("flow").unwrap()), ["t", "u"]);
}

#[test]
fn the_same_again_writes_nothing_and_otherwise_is_a_conflict() {
    let store = open("memory:");
    let run = store.create_run("a").create().unwrap();
    let declare = |sets: Vec<ArraySet>| run.create_array_group(group("flow", sets));
    let all = || {
        declare(vec![set("t", &[Some(4)])])?;
        run.create_import(import(80))?;
        store.catalog().create_meshes(vec![mesh(5)], &Session::default())?;
        store.catalog().create_histories(vec![history(2)], &Session::default())
    };
    all().unwrap();
    store.flush(None).unwrap();
    let before = store.version().unwrap();
    all().unwrap();
    store.flush(None).unwrap();
    assert_eq!(store.version().unwrap(), before);
    let conflict = |outcome: fieldstone::Result<()>, part: &str| {
        let error = outcome.unwrap_err();
        assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains(part), "{error}");
    };
    conflict(declare(vec![set("t", &[Some(5)]), set("u", &[Some(4)])]), "another set 't'");
    assert_eq!(names(&run.array_group("flow").unwrap()), ["t"]);
    let other = ArrayGroup { level: 3, ..group("flow", vec![]) };
    conflict(run.create_array_group(other), "another level");
    conflict(run.create_import(import(81)), "import 'uns3d'");
    conflict(store.catalog().create_meshes(vec![mesh(6)], &Session::default()), "another counts");
    conflict(store.catalog().create_histories(vec![history(3)], &Session::default()), "other content");
    conflict(store.catalog().create_meshes(vec![mesh(5), mesh(6)], &Session::default()), "another counts");
    let absent = fieldstone::Run::new(
        &store,
        fieldstone::catalog::RunName { project: String::new(), name: "b".into() },
        &Session::default(),
    );
    assert_eq!(absent.create_array_group(group("g", vec![])).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn in_a_transaction_they_wait_for_its_commit() {
    let store = open("memory:");
    let run = store.create_run("a").create().unwrap();
    store.flush(None).unwrap();
    let transaction = store.transaction().unwrap();
    let within = Some(transaction.id());
    let inside = fieldstone::Run::new(&store, run.name().clone(), &Session::from(within));
    inside.create_array_group(group("flow", vec![set("t", &[Some(4)])])).unwrap();
    store.catalog().create_meshes(vec![mesh(5)], &Session::from(within)).unwrap();
    assert_eq!(inside.array_groups().unwrap().len(), 1);
    assert_eq!(store.catalog().meshes(&Session::from(within)).unwrap().len(), 1);
    assert!(
        run.array_groups().unwrap().is_empty()
            && store.catalog().meshes(&Session::default()).unwrap().is_empty()
    );
    transaction.commit().unwrap();
    assert!(
        run.array_groups().unwrap().len() == 1
            && store.catalog().meshes(&Session::default()).unwrap().len() == 1
    );
}

#[test]
fn they_go_with_their_run() {
    let store = open("memory:");
    let run = store.create_run("a").create().unwrap();
    run.create_array_group(group("flow", vec![set("t", &[Some(4)])])).unwrap();
    run.create_import(import(80)).unwrap();
    store.catalog().create_meshes(vec![mesh(5)], &Session::default()).unwrap();
    store.flush(None).unwrap();
    store
        .catalog()
        .delete(&Deletion::Runs(parse("run=a").unwrap()), false, true, &Session::default())
        .unwrap();
    store.flush(None).unwrap();
    assert_eq!(store.run("a").unwrap_err().kind(), ErrorKind::NotFound);
    let run = store.create_run("a").create().unwrap();
    assert!(run.array_groups().unwrap().is_empty() && run.imports().unwrap().is_empty());
    assert_eq!(store.catalog().meshes(&Session::default()).unwrap().len(), 1);
    for table in ["access_pattern_table", "import_table", "run_table"] {
        assert!(rows(&store, table).is_empty(), "{table}");
    }
}

/// The content of the views, in any engine.
fn check_tables(store: &Store) {
    for table in ARRAY_TABLES {
        assert!(rows(store, table).is_empty(), "{table}");
    }
    let run = store.create_run("a").project("p").created(86_400_000_000_000).create().unwrap();
    let sets = vec![set("t", &[Some(4), Some(3)]), set("u", &[None])];
    run.create_array_group(group("flow", sets)).unwrap();
    run.create_import(import(80)).unwrap();
    store.catalog().create_meshes(vec![mesh(5)], &Session::default()).unwrap();
    let sorted = HistoryDecl { path: "histories/b".into(), content: HistoryContent::Edges, ..history(2) };
    store.catalog().create_histories(vec![history(2), sorted], &Session::default()).unwrap();
    let elements = [0; 96];
    for step in [6, 12] {
        let array = Array::new(&elements, DType::F8, &[4, 3]).unwrap();
        run.write("t", Some(step), array, &WriteOptions::default()).unwrap();
    }
    store.flush(None).unwrap();
    let is = |table: &str, expected: &[&str]| {
        let mut found = rows(store, table);
        found.sort();
        assert_eq!(found, expected, "{table}: {:?}", store.catalog().array_table(table).unwrap().0);
    };
    is("run_table", &["p a 2 12 2 1970-01-02T00:00:00Z"]);
    let flow = "flow 2 files exchange wing node";
    let t = format!("p a t 0 regular <f8 C block 2x1 halo 1 4,3 12 {flow}");
    let u = format!("p a u 0 regular <f8 C block 2x1 halo 1 * null {flow}");
    is("access_pattern_table", &[&t, &u]);
    is("execution_table", &["p a t 0 12 flow 2 files", "p a t 0 6 flow 2 files"]);
    is("import_table", &["p a uns3d /data/uns3d.msh raw x 32 <f8 2,3 6 80 7 ab01"]);
    is("index_table", &["histories/a parts 5 4 2 0102 09", "histories/b edges 5 4 0 0102 "]);
    is("index_history_table", &["histories/a 0 2 1 3", "histories/a 1 2 2 4"]);
    let error = store.catalog().array_table("run").unwrap_err();
    assert!(
        error.kind() == ErrorKind::Invalid && error.hint().unwrap().contains("index_history_table"),
        "{error}"
    );
}

#[test]
fn the_papers_tables_are_views() {
    check_tables(&open("memory:"));
}

#[test]
fn the_papers_tables_are_views_of_a_server() {
    let Some(server) = fieldstone_testkit::postgres::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store").display().to_string();
    let options = OpenOptions { catalog: Some(server.url()), ..OpenOptions::default() };
    check_tables(&fieldstone::init(&url, &options).unwrap());
}
