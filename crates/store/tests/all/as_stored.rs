//! Blocks as stored: the boxes that have one, their contents, the bytes read for them, damage.

use crate::common::*;
use crate::faults::seeded;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::block::unpack_checked;
use fieldstone_format::chunk;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::{Field, StoredBlock};

const KEY: &str = "run=a,variable=t";

fn region(start: &[u64], count: &[u64]) -> IndexBox {
    IndexBox::unbounded(start.to_vec(), count.to_vec()).unwrap()
}

fn options(chunks: &[u64], level: Option<i32>) -> ArchiveOptions {
    let compression = Some(level.map_or(Compression::None, Compression::Zstd));
    ArchiveOptions { chunks: Some(chunks.to_vec()), compression, ..ArchiveOptions::default() }
}

/// Elements of a block, decoded from its chunk as a reader does: checksum, then the frame.
fn decoded(block: &StoredBlock, packed: bool) -> Result<Vec<u8>> {
    let length = block.chunk_length(packed).ok_or_else(|| Error::internal("no such chunk"))?;
    let mut out = vec![0xee; length as usize];
    block.chunk_into(packed, &mut out)?;
    let (bytes, sum) = out.split_at(out.len() - chunk::SUM);
    assert_eq!(fieldstone_format::crc(bytes).to_le_bytes(), sum);
    let mut raw = vec![0; block.place().raw as usize];
    unpack_checked(bytes, &mut raw)?;
    Ok(raw)
}

/// The block of a box, which must hold the same as a read of the box.
fn found(field: &Field, region: &IndexBox) -> Option<StoredBlock> {
    let block = field.stored_block(region).unwrap()?;
    let expected = field.read_box(Some(region)).unwrap();
    assert_eq!(decoded(&block, true).unwrap(), expected, "[{region}]");
    match block.is_packed() {
        true => assert!(block.chunk_length(false).is_none() && block.chunk_into(false, &mut [0; 9]).is_err()),
        false => assert_eq!(decoded(&block, false).unwrap(), expected),
    }
    Some(block)
}

#[test]
fn exactly_the_chunks_that_nothing_lies_upon_are_blocks() {
    for seed in 0..60 {
        let mut random = seeded(seed);
        let mut below = |n: u64| random.next_u64() % n;
        let shape = [1 + below(9), 1 + below(9)];
        let world = SimWorld::new(seed);
        let store = open(&world, "a");
        // Boxes of parts, the newest last, and their chunks.
        let mut parts: Vec<(IndexBox, [u64; 2])> = Vec::new();
        for part in 0..1 + below(4) {
            let (start, count) = match part {
                0 => ([0, 0], shape),
                _ => {
                    let start = [below(shape[0]), below(shape[1])];
                    (start, [1 + below(shape[0] - start[0]), 1 + below(shape[1] - start[1])])
                }
            };
            let chunks = [1 + below(4), 1 + below(4)];
            let cut = [chunks[0].min(count[0]), chunks[1].min(count[1])];
            let raw: Vec<u8> = match below(2) {
                0 => (0..count[0] * count[1] * 128).map(|_| below(256) as u8).collect(),
                _ => vec![part as u8; (count[0] * count[1] * 128) as usize],
            };
            let dtype = DType::parse("|S128").unwrap();
            let value = match part {
                0 => Value::Array { data: &raw, dtype, shape: &shape },
                _ => Value::Piece { data: &raw, dtype, start: &start, count: &count, shape: &shape },
            };
            archive(&store, KEY, value, &options(&chunks, [None, Some(3)][below(2) as usize])).unwrap();
            store.flush(&Session::default()).unwrap();
            parts.push((region(&start, &count), cut));
        }
        let field = field(&store, KEY, None).unwrap();
        for (y, x) in (0..shape[0]).flat_map(|y| (0..shape[1]).map(move |x| (y, x))) {
            for (h, w) in (1..=shape[0] - y).flat_map(|h| (1..=shape[1] - x).map(move |w| (h, w))) {
                let asked = region(&[y, x], &[h, w]);
                let (own, cut) = parts.iter().rev().find(|(own, _)| own.overlaps(&asked)).unwrap();
                let is_chunk = own.contains(&asked)
                    && (0..2).all(|d| {
                        let from = asked.start()[d] - own.start()[d];
                        from.is_multiple_of(cut[d]) && asked.count()[d] == cut[d].min(own.count()[d] - from)
                    });
                assert_eq!(found(&field, &asked).is_some(), is_chunk, "seed {seed}, [{asked}] of {parts:?}");
            }
        }
        assert!(found(&field, &region(&[0, 0], &[0, 1])).is_none());
        let beyond = region(&[0, 0], &[shape[0] + 1, 1]);
        assert_eq!(field.stored_block(&beyond).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_block_costs_its_stored_bytes_and_the_table() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let raw: Vec<u8> = (0..64 * 4096u32).flat_map(|i| (i / 64).to_le_bytes()).collect();
    let value = Value::Array { data: &raw, dtype: DType::parse("<u4").unwrap(), shape: &[64, 4096] };
    archive(&store, KEY, value, &options(&[1, 4096], Some(3))).unwrap();
    store.flush(&Session::default()).unwrap();
    let field = field(&open(&world, "b"), KEY, None).unwrap();
    let block = found(&field, &region(&[63, 0], &[1, 4096])).unwrap();
    assert!(block.is_packed() && block.place().stored < 1000 && block.place().raw == 4 * 4096);
    world.clear_trace();
    let mut out = vec![0; block.place().stored as usize];
    block.read_into(&mut out).unwrap();
    assert_eq!(world.counters().bytes_read, block.place().stored);
    assert_eq!(block.read_into(&mut out[1..]).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn what_has_no_blocks_gives_none() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let spec = FieldSpec { dtype: DType::F4, shape: &[4], fill: None, chunks: Some(&[2]) };
    let key = pairs(KEY);
    let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    store.create_field(&key, &spec, &ArchiveOptions::default()).unwrap();
    flush_one(&store, "run=a,variable=o", b"opaque");
    let made = field(&store, KEY, None).unwrap();
    assert!(made.stored_block(&region(&[0], &[2])).unwrap().is_none(), "no one wrote it");
    let opaque = field(&store, "run=a,variable=o", None).unwrap();
    assert_eq!(opaque.stored_block(&region(&[0], &[6])).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn no_damaged_block_is_given_out() {
    for level in [None, Some(3)] {
        let world = SimWorld::new(1);
        let store = open(&world, "a");
        let raw: Vec<u8> = (0..400u32).flat_map(|i| (i / 9).to_le_bytes()).collect();
        let value = Value::Array { data: &raw, dtype: DType::parse("<u4").unwrap(), shape: &[2, 200] };
        archive(&store, KEY, value, &options(&[1, 200], level)).unwrap();
        store.flush(&Session::default()).unwrap();
        let field = field(&store, KEY, None).unwrap();
        let second = found(&field, &region(&[1, 0], &[1, 200])).unwrap();
        assert_eq!(second.is_packed(), level.is_some());
        let (place, log) = (*second.place(), &files(&world, "logs")[0]);
        for at in 0..place.stored {
            world.flip(log, place.offset + at, 0x10).unwrap();
            let error = decoded(&second, true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let text = error.to_string();
            assert!(text.contains("variable=t") && text.contains("logs/"), "{text}");
            assert!(found(&field, &region(&[0, 0], &[1, 200])).is_some(), "the other one can be read");
            world.flip(log, place.offset + at, 0x10).unwrap();
        }
        assert!(found(&field, &region(&[1, 0], &[1, 200])).is_some());
    }
}
