//! The worked examples of `spec/graph-records.md` and `spec/graph-segments.md`, written by this crate, so
//! that the texts cannot drift from the code.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::value::Value;
use fieldstone_format::graph::{
    Archive, EdgeType, Props, ROWS_MAX, Record, RelationRow, TypeDecl, Version, VertexName, VertexRow,
    props_bytes,
};
use fieldstone_format::graph_segment::adjacency::{AdjacencyWriter, EdgeVersion};
use fieldstone_format::graph_segment::rows::{VertexVersion, put_name, put_row, put_vertex};
use fieldstone_format::graph_segment::{PAGE, VertexPlace};

fn spec(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../spec/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The bytes of an example, as text, from their columns in its lines.
fn bytes_of<'a>(lines: impl Iterator<Item = &'a str>, from: usize, to: usize) -> String {
    let columns = lines.map(|line| line.get(from..to.min(line.len())).unwrap_or(""));
    let words = columns.flat_map(|columns| columns.split_whitespace());
    words.map(|byte| format!("{:02x} ", u8::from_str_radix(byte, 16).unwrap())).collect()
}

/// One of the examples of records.
fn record_example(n: usize) -> String {
    let text = spec("graph-records.md");
    let part = text.split("## 6. Worked example").nth(1).unwrap();
    bytes_of(part.split("```").nth(2 * n + 1).unwrap().lines().skip(1), 0, 31)
}

/// One of the examples of sections.
fn section_example(name: &str) -> String {
    let text = spec("graph-segments.md");
    let block = text.split("## 9. Worked example").nth(1).unwrap().split("```").nth(1).unwrap();
    let part = block.split("\n\n").find(|part| part.trim_start_matches("text\n").starts_with(name)).unwrap();
    bytes_of(part.trim_start_matches("text\n").lines().skip(1), 4, 35)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

fn version(stamp: u64, time: i64, deleted: bool) -> Version {
    Version { stamp, time, deleted }
}

fn mode() -> Props {
    Props::of([("mode", &Value::Int(420))]).unwrap()
}

fn written() -> Props {
    Props::of([("n", &Value::Int(10))]).unwrap()
}

#[test]
fn the_examples_of_records_are_what_is_written() {
    let [job, a, b] =
        [VertexName::new("job", "17"), VertexName::new("file", "/a.nc"), VertexName::new("file", "/b.nc")];
    let relations = Record::Relations(vec![RelationRow {
        kind: "write".into(),
        source: job,
        target: a.clone(),
        version: version(1000, 1000, false),
        until: Some(1600),
        props: written(),
    }]);
    let put = VertexRow {
        vertex: a,
        version: version(1000, 1000, false),
        fixed: Some(mode()),
        props: Props::default(),
    };
    let gone =
        VertexRow { vertex: b, version: version(1005, 1007, true), fixed: None, props: Props::default() };
    let types = Record::Types(vec![TypeDecl::Edge(EdgeType {
        name: "derives".into(),
        reverse: "wasDerivedFrom".into(),
        target: Some("dataset".into()),
        ..EdgeType::default()
    })]);
    let archive = Archive { before: 3000, url: "/cold".into() };
    let Record::Relations(mut rows) = relations.clone() else { panic!("{relations:?}") };
    rows[0].props = Props::default();
    let all = [
        (relations, 0x0201),
        (Record::Vertices(vec![put, gone]), 0x0200),
        (Record::ArchivedRelations(archive, rows), 0x0204),
        (types, 0x0202),
    ];
    for (n, (record, kind)) in all.into_iter().enumerate() {
        let side = record.encode();
        assert_eq!(side.kind, kind);
        assert_eq!(hex(&side.bytes), record_example(n), "{kind:#06x}");
    }
}

#[test]
fn the_examples_of_sections_are_what_is_written() {
    let base = 1000;
    let own = |stamp: u64, time: i64, deleted: bool, fixed: Option<Props>| VertexVersion {
        stamp,
        time,
        known: 0,
        user: 0,
        deleted,
        archived: false,
        fixed,
        props: Props::default(),
    };
    let mut rows = Vec::new();
    put_vertex(&mut rows, base, &[own(1005, 1007, true, None)]);
    put_vertex(&mut rows, base, &[]);
    let row = put_row(&mut rows, 1000, 1000, props_bytes(&written())) as u32;
    put_vertex(&mut rows, base, &[own(1000, 1000, false, Some(mode()))]);
    assert_eq!(hex(&rows), section_example("rows"));

    let mut names = Vec::new();
    for (kind, id) in [(0, "/b.nc"), (1, "17"), (0, "/a.nc")] {
        put_name(&mut names, kind, id);
    }
    assert_eq!(hex(&names), section_example("names"));

    let mut writer = AdjacencyWriter::new(base);
    let mut adjacency = Vec::new();
    let mut group = |code: u32, number: u32, row: u32| {
        let version = EdgeVersion {
            stamp: 1000,
            known: 0,
            until: Some(1600),
            user: 0,
            deleted: false,
            replaces: false,
            archived: false,
            row,
        };
        writer.group(code, 0);
        writer.version(number, version);
        writer.finish(&mut adjacency);
    };
    group(4, 2, row);
    group(5, 1, 0);
    assert_eq!(hex(&adjacency), section_example("adjacency"));
}

/// Kinds, limits and offsets in the texts are those of the code.
#[test]
fn the_texts_name_the_kinds_limits_and_places() {
    let (records, segments) = (spec("graph-records.md"), spec("graph-segments.md"));
    for kind in 0x0200..0x0205 {
        assert!(records.contains(&format!("| {kind:#06x} |")), "{kind:#x}");
    }
    assert_eq!((ROWS_MAX, PAGE), (65_536, 16_384));
    for (kind, id) in [("file", "/b.nc"), ("job", "17"), ("file", "/a.nc")] {
        let place = VertexPlace::of(&VertexName::new(kind, id)).0;
        assert!(segments.contains(&format!("| {kind} `{id}` | {place:032x} |")), "{kind}:{id}");
    }
}
