//! The worked example of `spec/store-format.md`, written by this crate, so that the text cannot drift from
//! the code.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use std::fmt::Write;
use std::sync::Arc;

use fieldstone_core::env::Lifetime;
use fieldstone_core::key::{FieldKey, KeyValue, Level};
use fieldstone_format::attempt::Origin;
use fieldstone_format::block::Block;
use fieldstone_format::entry::{Blocks, Entry, Location};
use fieldstone_format::keys::encode_key;
use fieldstone_format::log::{CommitRecord, FOOT, FrameInfo, HEAD, LogHeader, Section, encode_frame};
use fieldstone_format::segment::{BlockCursor, CommitInfo, SegmentBuilder, SegmentMeta};
use fieldstone_format::{Id, crc};

const STAMP: u64 = 1_700_000_000_000_000_000;
const PAYLOAD: &[u8] = b"hello";

fn id(first: u8) -> Id {
    Id(std::array::from_fn(|i| first + i as u8))
}

fn level(keyword: &str, value: KeyValue) -> Arc<Level> {
    Arc::new(Level { names: [Arc::from(keyword)].into(), values: vec![value] })
}

fn key() -> Vec<u8> {
    let text = |t: &str| KeyValue::Text(t.into());
    let levels = [level("run", text("a")), level("variable", text("t")), level("step", KeyValue::Int(6))];
    encode_key(&FieldKey { levels }).bytes
}

/// A log with one commit of one field of five bytes.
fn log() -> Vec<u8> {
    let mut log = LogHeader {
        version: 1,
        writer: id(0x00),
        store: id(0x10),
        created: STAMP as i64,
        uid: 1000,
        process: 42,
        host: "h".into(),
        user: "u".into(),
        program: "p".into(),
        schema: "[run[variable[step]]]".into(),
        sealed: Vec::new(),
        origin: Origin::default(),
        owner: None,
        lifetime: Lifetime::default(),
    }
    .encode();
    let payload_at = (log.len() + HEAD) as u64;
    let entry = Entry {
        commit: 0,
        ordinal: 0,
        generation: true,
        length: PAYLOAD.len() as u64,
        array: None,
        location: Location::Blocks {
            file: 0,
            offset: payload_at,
            size: 0,
            blocks: Blocks::Inline(vec![Block {
                stored: PAYLOAD.len() as u64,
                crc: crc(PAYLOAD),
                summary: None,
            }]),
        },
        holder: None,
    };
    let mut value = Vec::new();
    entry.encode(&mut value);
    let mut segment = SegmentBuilder::new();
    segment.push(&key(), &value, 0, entry.length).unwrap();
    let commit = CommitInfo {
        sequence: 1,
        stamp: STAMP,
        time: STAMP as i64,
        transaction: None,
        origin: None,
        view: 0,
    };
    let (segment, mut reference) = segment.finish(vec![commit], 1).unwrap();
    reference.offset = payload_at + PAYLOAD.len() as u64;
    let record = CommitRecord {
        sequence: 1,
        stamp: STAMP,
        time: STAMP as i64,
        fields: 1,
        bytes: PAYLOAD.len() as u64,
        side: Section { offset: reference.offset + reference.length, length: 0, crc: 0 },
        segments: vec![reference],
        ..CommitRecord::default()
    };
    let (frame, _) = encode_frame(log.len() as u64, &record, &[PAYLOAD, &segment].concat());
    log.extend_from_slice(&frame);
    log
}

fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (i, row) in bytes.chunks(16).enumerate() {
        let hex = row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        let text: String =
            row.iter().map(|&b| if (0x20..0x7f).contains(&b) { b as char } else { '.' }).collect();
        writeln!(out, "{:04x}  {hex:<47}  {text}", 16 * i).unwrap();
    }
    out
}

#[test]
fn the_hex_dump_in_the_specification_is_what_this_crate_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/store-format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let expected = dump(&log());
    assert!(
        text.contains(&expected),
        "spec/store-format.md, section 18, does not hold this dump:\n{expected}"
    );
}

#[test]
fn the_example_key_in_the_specification_is_what_this_crate_writes() {
    let hex: String = key().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        hex,
        concat!(
            "0272756e000103",
            "30610001",
            "027661726961626c65000103",
            "30740001",
            "0273746570000103",
            "108106"
        )
    );
}

#[test]
fn the_example_is_read_from_its_end_as_the_specification_says() {
    let log = log();
    let header_len = LogHeader::length(&log).unwrap() as usize;
    assert_eq!(LogHeader::decode(&log).unwrap().host, "h");
    let ends = FrameInfo::decode_foot(&log[log.len() - FOOT..], log.len() as u64).unwrap();
    assert_eq!((ends.frame, ends.sequence), (header_len as u64, 1));
    assert_eq!(FrameInfo::decode_head(&log[header_len..], header_len as u64).unwrap(), ends);
    let (at, length) = ends.body();
    assert_eq!(crc(&log[at as usize..(at + length) as usize]), ends.body_crc);
    let records = ends.record_offsets().map(|from| {
        let from = from as usize;
        ends.record(&log[from..from + ends.record_len as usize]).unwrap()
    });
    assert_eq!(records[0], records[1]);
    let [record, _] = records;
    let reference = record.segments[0];
    for offset in reference.meta_offsets() {
        let bytes = &log[offset as usize..(offset + reference.meta_len) as usize];
        let meta = SegmentMeta::decode(bytes, reference.meta_crc, reference.length - 2 * reference.meta_len)
            .unwrap();
        assert_eq!((meta.commits[0].stamp, meta.commits[0].time), (STAMP, STAMP as i64));
        let block = &meta.directory[0];
        let start = (reference.offset + block.offset) as usize;
        let bytes = &log[start..start + block.length as usize];
        assert_eq!(crc(bytes), block.crc);
        let mut cursor = BlockCursor::new(bytes);
        assert!(cursor.advance().unwrap());
        assert_eq!(cursor.key(), key());
        let entry = Entry::decode(cursor.value()).unwrap();
        let Location::Blocks { offset, .. } = entry.location else { panic!("not in blocks") };
        assert_eq!(&log[offset as usize..offset as usize + 5], PAYLOAD);
        assert!(!cursor.advance().unwrap());
    }
}
