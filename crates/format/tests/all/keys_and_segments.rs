//! Keys sort as bytes in the order of keys; segments find their entries, merged or not, and detect damage.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers outside #[test] functions, too

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::*;
use fieldstone_core::key::{FieldKey, KeyValue, Level};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::crc;
use fieldstone_format::entry::{Entry, Location};
use fieldstone_format::keys::{KeyDecoder, decode_value, encode_key, encode_value, level_ends, level_values};
use fieldstone_format::segment::{
    AXIS_MAX, BlockCursor, CommitInfo, DATASETS_MAX, Filter, SegmentBuilder, SegmentMeta, SegmentRef,
    key_hash, merge_segments,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn encoded(value: &KeyValue) -> Vec<u8> {
    let mut out = Vec::new();
    encode_value(value, &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn values_sort_as_their_bytes(a in key_value(), b in key_value()) {
        prop_assert_eq!(encoded(&a).cmp(&encoded(&b)), a.cmp(&b));
        prop_assert_eq!(&decode_value(&mut &encoded(&a)[..]).unwrap(), &a);
        damage_is_harmless(&encoded(&a), |bytes| decode_value(&mut &bytes[..]));
    }

    #[test]
    fn keys_sort_as_their_bytes(a in key(), b in key()) {
        let (x, y) = (encode_key(&a), encode_key(&b));
        prop_assert_eq!(x.bytes.cmp(&y.bytes), a.cmp(&b));
    }

    #[test]
    fn a_key_comes_back_whatever_was_decoded_before(a in key(), b in key()) {
        let mut decoder = KeyDecoder::new();
        for key in [&a, &b, &a] {
            let bytes = encode_key(key);
            prop_assert_eq!(&decoder.decode(&bytes.bytes).unwrap(), key);
            prop_assert_eq!(level_ends(&bytes.bytes).unwrap(), bytes.ends);
            let (mut rest, mut values) = (&bytes.bytes[..], Vec::new());
            for _ in 0..3 {
                level_values(&mut rest, &mut values).unwrap();
            }
            let expected: Vec<Vec<u8>> =
                key.levels.iter().flat_map(|level| level.values.iter().map(encoded)).collect();
            prop_assert_eq!(values, expected);
        }
        damage_is_harmless(&encode_key(&a).bytes, |bytes| KeyDecoder::new().decode(bytes));
    }

    #[test]
    fn equal_keys_have_one_encoding(a in key(), at in any::<prop::sample::Index>(), change in 1..=255u8) {
        let bytes = encode_key(&a).bytes;
        let mut other = bytes.clone();
        other[at.index(bytes.len())] ^= change;
        if let Ok(key) = KeyDecoder::new().decode(&other) {
            // -0 and NaN are never written, and equal themselves.
            prop_assert_eq!(encode_key(&key).bytes, other);
        }
    }
}

#[test]
fn whole_numbers_in_a_longer_form_are_refused() {
    for bytes in [
        &[0x10, 0x81, 0][..],
        &[0x10, 0x82, 0, 1],
        &[0x10, 0x7e, 0xff],
        &[0x10, 0x77, 0x7f, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let error = decode_value(&mut &bytes[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:02x?}");
    }
    assert_eq!(encoded(&KeyValue::Int(-257)), [0x10, 0x7d, 0xfe, 0xff]);
    assert_eq!(encoded(&KeyValue::Int(i64::MIN)), [0x10, 0x77, 0x80, 0, 0, 0, 0, 0, 0, 0]);
}

/// A segment's entries, in order: key, value.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads a segment like a reader, from either copy of its meta part.
fn read_segment(bytes: &[u8], segment: &SegmentRef, copy: usize) -> Result<(SegmentMeta, Entries)> {
    let at = segment.meta_offsets()[copy] as usize;
    let part = |from: usize, n: u64| {
        let end = usize::try_from(n).ok().and_then(|n| from.checked_add(n));
        end.and_then(|end| bytes.get(from..end)).ok_or_else(|| fieldstone_core::Error::corrupt("cut"))
    };
    let meta = SegmentMeta::decode(
        part(at, segment.meta_len)?,
        segment.meta_crc,
        segment.length - 2 * segment.meta_len,
    )?;
    let filter = part(meta.filter_offset as usize, meta.filter_len)?;
    if crc(filter) != meta.filter_crc {
        return Err(fieldstone_core::Error::corrupt("filter"));
    }
    let filter = Filter::new(filter.into(), meta.filter_hashes);
    let mut entries = Vec::new();
    for block in &meta.directory {
        let bytes = part(block.offset as usize, block.length)?;
        if crc(bytes) != block.crc {
            return Err(fieldstone_core::Error::corrupt("block"));
        }
        let (mut cursor, before) = (BlockCursor::new(bytes), entries.len());
        while cursor.advance()? {
            assert!(filter.may_contain(key_hash(cursor.key())));
            entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        }
        assert_eq!((entries.len() - before) as u64, block.entries);
        assert_eq!(entries[before].0[..], block.first_key[..]);
    }
    Ok((meta, entries))
}

fn step_key(dataset: u64, step: i64) -> Vec<u8> {
    let level = |name: &str, value| Arc::new(Level { names: [Arc::from(name)].into(), values: vec![value] });
    let text = |t: String| KeyValue::Text(t.into());
    let levels = [
        level("run", text(format!("r{dataset}"))),
        level("variable", text("t".into())),
        level("step", KeyValue::Int(step)),
    ];
    encode_key(&FieldKey { levels }).bytes
}

fn value(commit: u64, ordinal: u64) -> Vec<u8> {
    let data = format!("{commit}.{ordinal}").into_bytes();
    let length = data.len() as u64;
    let location = Location::Inline { crc: crc(&data), data };
    let mut out = Vec::new();
    Entry { commit, ordinal, generation: true, length, array: None, location, holder: None }.encode(&mut out);
    out
}

/// Builds the segment of one commit from keys, which may repeat.
fn build(keys: &[Vec<u8>], commit: CommitInfo) -> (Vec<u8>, SegmentRef) {
    build_as(1, keys, commit)
}

fn build_as(version: u32, keys: &[Vec<u8>], commit: CommitInfo) -> (Vec<u8>, SegmentRef) {
    let mut items: Vec<(&Vec<u8>, u64)> = keys.iter().zip(0..).collect();
    items.sort_by(|a, b| a.0.cmp(b.0).then(b.1.cmp(&a.1)));
    let mut builder = SegmentBuilder::of(version);
    for (key, ordinal) in items {
        let value = value(0, ordinal);
        builder.push(key, &value, 0, Entry::decode(&value).unwrap().length).unwrap();
    }
    builder.finish(vec![commit], 1).unwrap()
}

fn commit() -> impl Strategy<Value = CommitInfo> {
    (any::<u64>(), any::<i64>(), option::of(id())).prop_map(|(stamp, time, transaction)| CommitInfo {
        sequence: 0,
        stamp,
        time,
        transaction,
        origin: None,
        view: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_small_run_shows_damage_to_any_byte(keys in vec((0..3u64, -2..5i64), 1..6), commit in commit()) {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(|(dataset, step)| step_key(dataset, step)).collect();
        let (bytes, segment) = build(&keys, CommitInfo { sequence: 1, ..commit });
        prop_assert_eq!(segment.length as usize, bytes.len());
        let (meta, entries) = read_segment(&bytes, &segment, 0).unwrap();
        prop_assert_eq!(read_segment(&bytes, &segment, 1).unwrap(), (meta, entries));
        // One of the two readings covers each byte, and both do unless it is in a meta part.
        damage_is_seen(&bytes, |bytes| read_segment(bytes, &segment, 0).and(read_segment(bytes, &segment, 1)));
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x20;
            let in_meta = (i as u64) < segment.meta_len || i as u64 >= segment.length - segment.meta_len;
            let readable = read_segment(&damaged, &segment, 0).is_ok() || read_segment(&damaged, &segment, 1).is_ok();
            prop_assert_eq!(readable, in_meta, "byte {}", i);
        }
    }

    #[test]
    fn merged_runs_hold_all_entries_newest_first(
        batches in vec((commit(), vec((0..3u64, 0..60i64), 1..80)), 1..6),
    ) {
        let mut model = Vec::new();
        let mut segments = Vec::new();
        let mut stamp = 0u64;
        let mut infos = Vec::new();
        for ((info, keys), index) in batches.into_iter().zip(0u64..) {
            // Stamps of a log ascend.
            stamp = stamp.saturating_add(info.stamp >> 3).saturating_add(1);
            let info = CommitInfo { sequence: 3 * index + 1, stamp, ..info };
            infos.push(info);
            let keys: Vec<Vec<u8>> = keys.into_iter().map(|(dataset, step)| step_key(dataset, step)).collect();
            model.extend(keys.iter().cloned().zip(0u64..).map(|(key, ordinal)| (key, index, ordinal)));
            segments.push(build_as(1 + u32::from(info.time % 2 == 0), &keys, info));
        }
        model.sort_by(|a, b| a.0.cmp(&b.0).then((b.1, b.2).cmp(&(a.1, a.2))));
        let expected: Entries = model.iter().map(|(key, commit, n)| (key.clone(), value_of(*commit, *n))).collect();
        // All at once, and one after another like a writer.
        let sources: Vec<(&[u8], SegmentRef)> = segments.iter().map(|(bytes, segment)| (&bytes[..], *segment)).collect();
        let at_once = merge_segments(&sources).unwrap();
        let mut stepwise = segments[0].clone();
        for (bytes, segment) in &segments[1..] {
            stepwise = merge_segments(&[(&stepwise.0[..], stepwise.1), (&bytes[..], *segment)]).unwrap();
        }
        prop_assert_eq!(&at_once, &stepwise);
        let (bytes, segment) = at_once;
        prop_assert_eq!((segment.weight, segment.entries), (segments.len() as u64, expected.len() as u64));
        let (meta, entries) = read_segment(&bytes, &segment, 0).unwrap();
        prop_assert_eq!(&meta.commits, &infos);
        prop_assert_eq!(meta.version == 2, infos.iter().any(|info| info.time % 2 == 0));
        prop_assert_eq!(&entries, &expected);
        prop_assert_eq!((&meta.first_key, &meta.last_key), (&entries[0].0, &entries[entries.len() - 1].0));
        for (i, (key, ..)) in entries.iter().enumerate() {
            let block = &meta.directory[meta.block_for(key)];
            prop_assert!(*block.first_key <= **key);
            let before: u64 = meta.directory[..meta.block_for(key)].iter().map(|b| b.entries).sum();
            let first = entries.iter().position(|(k, _)| k == key).unwrap();
            prop_assert!(before <= first as u64, "entry {} lies before its block", i);
        }
        let datasets: BTreeSet<Vec<u8>> =
            entries.iter().map(|(key, _)| key[..level_ends(key).unwrap()[0]].to_vec()).collect();
        let first = |prefix: &[u8]| model.iter().filter(|m| m.0.starts_with(prefix)).map(|m| m.1).min().unwrap();
        let datasets: Vec<(Vec<u8>, u64)> = datasets.into_iter().map(|d| (d.clone(), first(&d))).collect();
        prop_assert_eq!(meta.datasets.unwrap(), datasets);
    }
}

/// The value after commit 0 of a segment becomes commit `commit` of a merged one.
fn value_of(commit: u64, ordinal: u64) -> Vec<u8> {
    let mut entry = Entry::decode(&value(0, ordinal)).unwrap();
    entry.commit = commit;
    let mut out = Vec::new();
    entry.encode(&mut out);
    out
}

#[test]
fn lists_that_would_be_too_long_are_left_out() {
    let info = CommitInfo { sequence: 1, stamp: 1, time: 0, transaction: None, origin: None, view: 0 };
    let many: Vec<Vec<u8>> = (0..=AXIS_MAX as i64).map(|step| step_key(0, step)).collect();
    let (bytes, segment) = build(&many[1..], info);
    let values = |bytes: &[u8], segment: &SegmentRef| {
        let (meta, _) = read_segment(bytes, segment, 0).unwrap();
        let axis = meta.axes.into_iter().find(|axis| &*axis.keyword == "step").unwrap();
        axis.values.map(|values| values.len())
    };
    assert_eq!(values(&bytes, &segment), Some(AXIS_MAX));
    let (bytes, segment) = build(&many, info);
    assert_eq!(values(&bytes, &segment), None);
    // The same keyword in two lists of keywords, each just below the limit.
    let extra = |step: i64| {
        let level = |pairs: &[(&str, KeyValue)]| {
            let names: Vec<Arc<str>> = pairs.iter().map(|p| Arc::from(p.0)).collect();
            Arc::new(Level { names: names.into(), values: pairs.iter().map(|p| p.1.clone()).collect() })
        };
        let text = KeyValue::Text("t".into());
        let deepest = level(&[("member", KeyValue::Int(1)), ("step", KeyValue::Int(step))]);
        let levels = [level(&[("run", text.clone())]), level(&[("variable", text)]), deepest];
        encode_key(&FieldKey { levels }).bytes
    };
    let more: Vec<Vec<u8>> = (10_000..10_000 + AXIS_MAX as i64).map(extra).collect();
    let (bytes, segment) = build(&[&many[1..], &more].concat(), info);
    assert_eq!(values(&bytes, &segment), None);
    let datasets: Vec<Vec<u8>> = (0..=DATASETS_MAX as u64).map(|d| step_key(d, 0)).collect();
    let (bytes, segment) = build(&datasets[1..], info);
    assert_eq!(read_segment(&bytes, &segment, 0).unwrap().0.datasets.map(|d| d.len()), Some(DATASETS_MAX));
    let (bytes, segment) = build(&datasets, info);
    assert_eq!(read_segment(&bytes, &segment, 0).unwrap().0.datasets, None);
}

#[test]
fn a_filter_rules_most_absent_keys_out_and_no_present_one() {
    let hashes: Vec<u64> = (0..1000).map(|i| key_hash(&step_key(0, i))).collect();
    let filter = Filter::build(&hashes);
    assert_eq!((filter.bytes().len(), filter.hashes()), (1250, 6));
    assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
    let wrong = (1000..11_000).filter(|&i| filter.may_contain(key_hash(&step_key(0, i)))).count();
    assert!(wrong < 200, "{wrong} of 10,000 absent keys are let through");
    assert!(Filter::build(&hashes[..10]).bytes().is_empty());
    // The reference value of XXH3-64 with seed 0: other languages must find the same.
    assert_eq!(key_hash(b""), 0x2d06800538d394c2);
}

#[test]
fn entries_out_of_order_are_refused() {
    let mut builder = SegmentBuilder::new();
    builder.push(&step_key(0, 2), &value(0, 0), 0, 1).unwrap();
    assert_eq!(builder.push(&step_key(0, 1), &value(0, 1), 0, 1).unwrap_err().kind(), ErrorKind::Internal);
}
