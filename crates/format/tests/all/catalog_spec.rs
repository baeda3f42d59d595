//! The worked example of `spec/catalog-records.md`, written by this crate, so that the text cannot drift from
//! the code.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::dtype::DType;
use fieldstone_core::value::ValueType;
use fieldstone_format::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, AttributeBatch, BasicPattern, Boxes, Column, Record, RunName,
    StorageOrder, TagDecl, Values, VariableName,
};

fn spec() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/catalog-records.md");
    std::fs::read_to_string(path).unwrap()
}

/// The bytes at the beginning of each line of the example.
fn example(title: &str) -> Vec<u8> {
    let text = spec();
    let block = text.split(title).nth(1).unwrap().split("```").nth(1).unwrap();
    let lines = block.lines().skip(1);
    let words = lines.flat_map(|line| line.get(..24).unwrap_or(line).split_whitespace());
    words.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_example_is_what_is_written() {
    let record = Record::Attributes(AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: String::new(), name: "a".into() },
        tag: TagDecl { name: "maximum".into(), version: 0, kind: ValueType::Float, unit: "K".into() },
        rows: 2,
        step: Some(Column::One(6)),
        variables: vec![VariableName { name: "t".into(), version: 0 }],
        variable: Column::One(0),
        boxes: Some(Boxes { rank: 2, start: vec![5, 10, 8, 10], count: vec![3, 2, 3, 2], cells: None }),
        values: Values::Float(vec![310.5]),
        one_value: true,
        continues: false,
        singles: false,
    });
    record.check().unwrap();
    let side = record.encode();
    assert_eq!(side.kind, 0x0104);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    assert_eq!(hex(&side.bytes), hex(&example("## 9. Worked example")));
}

#[test]
fn the_example_of_a_group_is_what_is_written() {
    let set = ArraySet {
        variable: VariableName { name: "t".into(), version: 0 },
        dtype: DType::F8,
        shape: vec![Some(4), None],
        dims: Vec::new(),
        fill: None,
        attrs: Vec::new(),
        pattern: BasicPattern::Regular,
        view: "joined".into(),
    };
    let group = ArrayGroup {
        name: "g".into(),
        level: 2,
        layout: ArrayLayout::Files,
        method: "auto".into(),
        order: StorageOrder::C,
        mesh: None,
        location: None,
        chunks: None,
        compression: None,
        attrs: Vec::new(),
        sets: vec![set],
    };
    let record = Record::Groups(RunName { project: String::new(), name: "a".into() }, vec![group]);
    record.check().unwrap();
    let side = record.encode();
    assert_eq!(side.kind, 0x0107);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    assert_eq!(hex(&side.bytes), hex(&example("## 10. Worked example")));
}

/// Kinds and limits in the text are those of the code.
#[test]
fn the_text_names_the_kinds_and_limits() {
    let text = spec();
    for kind in 0x0100..0x010b {
        assert!(text.contains(&format!("| {kind:#06x} |")), "{kind:#x}");
    }
    assert_eq!(fieldstone_format::catalog::ROWS_MAX, 65_536);
    assert_eq!(fieldstone_format::catalog::RANK_MAX, 64);
    assert_eq!(fieldstone_core::value::DEPTH, 64);
}
