//! Tables give back every row by key, by number and from end to end; damage is found and never believed.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_format::table::{CheckedRows, MemoryBlocks, TableBuilder, TableCursor, TableRef};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn build(rows: &Rows) -> (Option<TableRef>, MemoryBlocks) {
    let (mut blocks, mut builder) = (MemoryBlocks::default(), TableBuilder::new());
    for (key, value) in rows {
        builder.push(key, value, &mut blocks).unwrap();
    }
    (builder.finish(&mut blocks).unwrap(), blocks)
}

fn read(table: &TableRef, blocks: &MemoryBlocks) -> Result<Rows> {
    let mut rows = Vec::new();
    CheckedRows::walk(table, blocks, |key, value| {
        rows.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    Ok(rows)
}

fn numbered(n: u32, value: usize) -> Rows {
    // Values that zstd cannot shorten much, so that trees become high.
    let noise = |i: u32, j: usize| (u64::from(i) * 2_654_435_761 + j as u64 * 40_503) as u8;
    (0..n).map(|i| (i.to_be_bytes().to_vec(), (0..value).map(|j| noise(i, j)).collect())).collect()
}

#[test]
fn a_table_without_rows_is_none() {
    let (table, blocks) = build(&Vec::new());
    assert!(table.is_none() && blocks.bytes.is_empty());
}

#[test]
fn every_row_of_a_high_tree_is_found_by_key_and_by_number() {
    for (n, value) in [(1, 10), (3, 20_000), (1_000, 40), (700, 20_000), (40_000, 20)] {
        let rows = numbered(n, value);
        let (table, blocks) = build(&rows);
        let table = table.unwrap();
        assert_eq!(table.rows, u64::from(n));
        let most = if n >= 700 { 2 } else { 1 };
        assert!(table.height <= most, "{n} rows of {value} bytes make a tree of height {}", table.height);
        assert_eq!(read(&table, &blocks).unwrap(), rows);
        let mut cursor = TableCursor::new(&table, &blocks);
        for i in (0..n).step_by(1 + n as usize / 300).rev() {
            assert!(cursor.seek(&i.to_be_bytes()).unwrap());
            assert_eq!((cursor.row(), cursor.key()), (u64::from(i), &i.to_be_bytes()[..]));
            assert!(cursor.seek_row(u64::from(i)).unwrap());
            assert_eq!(cursor.value(), rows[i as usize].1);
            assert_eq!(cursor.advance().unwrap(), i + 1 < n);
        }
        assert!(!cursor.seek(&n.to_be_bytes()).unwrap());
        assert!(!cursor.seek_row(u64::from(n)).unwrap());
    }
}

#[test]
fn rows_with_one_key_are_all_found_where_they_span_blocks() {
    let mut rows: Rows = numbered(3, 10);
    rows.extend((0..200).map(|_| (vec![0, 0, 0, 3], vec![7; 1_000])));
    rows.push((vec![0, 0, 0, 4], vec![]));
    let (table, blocks) = build(&rows);
    let table = table.unwrap();
    let mut cursor = TableCursor::new(&table, &blocks);
    assert!(cursor.seek(&[0, 0, 0, 3]).unwrap());
    assert_eq!(cursor.row(), 3);
    for _ in 0..199 {
        assert!(cursor.advance().unwrap());
        assert_eq!(cursor.key(), [0, 0, 0, 3]);
    }
    assert!(cursor.advance().unwrap());
    assert_eq!((cursor.key(), cursor.row()), (&[0, 0, 0, 4][..], 203));
}

#[test]
fn rows_out_of_order_are_refused() {
    let (mut blocks, mut builder) = (MemoryBlocks::default(), TableBuilder::new());
    builder.push(b"b", b"", &mut blocks).unwrap();
    assert!(builder.push(b"a", b"", &mut blocks).is_err());
}

#[test]
fn a_changed_byte_is_an_error_or_changes_nothing() {
    let rows = numbered(900, 40);
    let (table, blocks) = build(&rows);
    let table = table.unwrap();
    for i in 0..blocks.bytes.len() {
        let mut damaged = blocks.clone();
        damaged.bytes[i] ^= 1 << (i % 8);
        assert!(read(&table, &damaged).is_err(), "byte {i}");
    }
    for end in (0..blocks.bytes.len()).step_by(97) {
        let cut = MemoryBlocks { bytes: blocks.bytes[..end].to_vec() };
        assert!(read(&table, &cut).is_err(), "cut at {end}");
    }
}

#[test]
fn a_reader_goes_on_behind_a_damaged_block() {
    let rows = numbered(3_000, 40);
    let (table, blocks) = build(&rows);
    let table = table.unwrap();
    let mut cursor = TableCursor::new(&table, &blocks);
    assert!(cursor.seek_row(1_500).unwrap());
    let (first, lost) = cursor.leaf();
    assert!(first <= 1_500 && 1_500 < first + lost && lost < 3_000);
    // The leaves follow one another: the one with the row lies at this part of the file.
    let at = blocks.bytes.len() * 1_500 / 3_200;
    let mut damaged = blocks.clone();
    damaged.bytes[at] ^= 1;
    let mut cursor = TableCursor::new(&table, &damaged);
    let (mut read, mut errors) = (0, 0);
    loop {
        match cursor.advance() {
            Ok(true) => read += 1,
            Ok(false) => break,
            Err(_) => errors += 1,
        }
    }
    assert_eq!(errors, 1);
    assert!(read < 3_000 && read >= 3_000 - 2 * lost, "{read} of 3,000 rows are left");
}

#[test]
fn a_reference_that_contradicts_its_table_is_an_error() {
    let (table, blocks) = build(&numbered(3_000, 40));
    let table = table.unwrap();
    let wrong = [
        TableRef { rows: table.rows + 1, ..table.clone() },
        TableRef { rows: table.rows - 1, ..table.clone() },
        TableRef { height: table.height + 1, ..table.clone() },
        TableRef { height: 0, ..table.clone() },
        TableRef { first_key: vec![0], ..table.clone() },
        TableRef { last_key: vec![9], ..table.clone() },
    ];
    for reference in wrong {
        assert!(read(&reference, &blocks).is_err(), "{reference:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rows_come_back(
        rows in btree_map(vec(any::<u8>(), 0..12), vec(any::<u8>(), 0..300), 1..400),
        asked in vec(vec(any::<u8>(), 0..12), 20),
    ) {
        let list: Rows = rows.clone().into_iter().collect();
        let (table, blocks) = build(&list);
        let table = table.unwrap();
        prop_assert_eq!(&read(&table, &blocks).unwrap(), &list);
        let mut cursor = TableCursor::new(&table, &blocks);
        for key in asked.iter().chain(rows.keys().take(20)) {
            let expected = BTreeMap::range(&rows, key.clone()..).next();
            prop_assert_eq!(cursor.seek(key).unwrap(), expected.is_some());
            if let Some((key, value)) = expected {
                prop_assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
                let number = BTreeMap::range(&rows, ..key.clone()).count() as u64;
                prop_assert_eq!(cursor.row(), number);
            }
        }
    }
}
