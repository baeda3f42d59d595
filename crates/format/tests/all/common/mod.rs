//! Random structures, and the expected effects of damage to their bytes.
#![allow(dead_code)] // each test file uses a part

use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{ChunkGrid, IndexBox, Scalar, Summary};
use fieldstone_core::key::{FieldKey, KeyValue, Level};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::block::{Block, INLINE_BLOCKS};
use fieldstone_format::entry::{
    ArrayInfo, AttemptTombstone, Blocks, Entry, EntryId, External, Grown, Location,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Changes every byte, and cuts to every shorter length: `read` must return Corrupt each time.
pub fn damage_is_seen<T: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T>) {
    for i in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[i] ^= change;
            let error =
                read(&damaged).expect_err(&format!("byte {i} of {} changed by {change:#x}", bytes.len()));
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {i}: {error}");
        }
    }
    cuts_are_seen(bytes, read);
}

/// Cuts to every shorter length: `read` must return Corrupt each time.
pub fn cuts_are_seen<T: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T>) {
    for n in 0..bytes.len() {
        let error = read(&bytes[..n]).expect_err(&format!("cut from {} to {n} bytes", bytes.len()));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "cut to {n}: {error}");
    }
}

/// Changes every byte, which no checksum covers here: `read` may succeed or return Corrupt.
pub fn damage_is_harmless<T: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T>) {
    for i in 0..bytes.len() {
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[i] ^= change;
            if let Err(error) = read(&damaged) {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {i}: {error}");
            }
        }
    }
    cuts_are_seen(bytes, read);
}

pub fn id() -> impl Strategy<Value = Id> {
    any::<[u8; 16]>().prop_map(Id)
}

/// Numbers of every length, including the bounds.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![(any::<u64>(), 0..64u32).prop_map(|(n, shift)| n >> shift), Just(0), Just(u64::MAX)]
}

pub fn signed() -> impl Strategy<Value = i64> {
    prop_oneof![
        (any::<i64>(), 0..64u32).prop_map(|(n, shift)| n >> shift),
        Just(i64::MIN),
        Just(i64::MAX),
        (1..64u32, -2..3i64).prop_map(|(shift, near)| (1i64 << (shift - 1)).wrapping_add(near)),
        (1..64u32, -2..3i64).prop_map(|(shift, near)| (-1i64 << (shift - 1)).wrapping_add(near)),
    ]
}

/// Text with characters that an encoding may mishandle.
pub fn text() -> impl Strategy<Value = String> {
    let c = prop_oneof![any::<char>(), Just('\0'), Just('\u{1}'), Just('ÿ'), Just('\u{3}'), Just('a')];
    vec(c, 0..6).prop_map(|chars| chars.into_iter().collect())
}

pub fn key_value() -> impl Strategy<Value = KeyValue> {
    let shared = |t: String| -> Arc<str> { t.into() };
    prop_oneof![
        Just(KeyValue::Absent),
        signed().prop_map(KeyValue::Int),
        (any::<f64>(), text()).prop_map(move |(x, t)| KeyValue::Real(x + 0.0, shared(t))),
        (signed(), signed(), text()).prop_map(move |(start, end, t)| KeyValue::Span {
            start,
            end,
            text: shared(t)
        }),
        text().prop_map(move |t| KeyValue::Text(shared(t))),
    ]
}

pub fn level() -> impl Strategy<Value = Arc<Level>> {
    vec(("[a-c]{1,3}", key_value()), 0..4).prop_map(|pairs| {
        let (names, values): (Vec<Arc<str>>, Vec<KeyValue>) =
            pairs.into_iter().map(|(name, value)| (Arc::from(name), value)).unzip();
        Arc::new(Level { names: names.into(), values })
    })
}

pub fn key() -> impl Strategy<Value = FieldKey> {
    [level(), level(), level()].prop_map(|levels| FieldKey { levels })
}

pub fn summary() -> impl Strategy<Value = Option<Summary>> {
    let extremes = prop_oneof![
        any::<(i64, i64)>().prop_map(|(a, b)| Some((Scalar::Int(a), Scalar::Int(b)))),
        any::<(u64, u64)>().prop_map(|(a, b)| Some((Scalar::UInt(a), Scalar::UInt(b)))),
        any::<(f64, f64)>().prop_map(|(a, b)| Some((Scalar::Float(a), Scalar::Float(b)))),
        Just(None),
    ];
    option::of((extremes, number()).prop_map(|(extremes, missing)| Summary {
        min: extremes.map(|e| e.0),
        max: extremes.map(|e| e.1),
        missing,
    }))
}

pub fn dtype() -> impl Strategy<Value = DType> {
    proptest::sample::select(vec![
        "<f8", ">i2", "|u1", "|b1", "<c16", "|S12", "<U3", "<M8[ns]", "<m8[25s]", ">f2",
    ])
    .prop_map(|name| DType::parse(name).unwrap())
}

/// `count` blocks of entries of `length` bytes, at an offset of an outside file.
fn external(length: u64, count: u64, arrays: bool, size: u64) -> impl Strategy<Value = Location> {
    let numbers = (0..1u64 << 40, 0..9u64, 0..1000u64, any::<i64>());
    (text(), numbers, blocks(count, arrays, size)).prop_map(
        move |(url, (offset, parts, gap, mtime), listed)| {
            let parts = if parts > 0 && length.is_multiple_of(parts) { parts } else { 1 };
            let stride = length / parts + gap;
            let nbytes = offset + parts * stride + 7;
            let Location::Blocks { file, blocks, .. } = listed else { unreachable!() };
            let file = if matches!(blocks, Blocks::Inline(_)) { 0 } else { file };
            Location::External(Box::new(External {
                url,
                nbytes,
                mtime,
                offset,
                parts,
                stride,
                size,
                file,
                blocks,
            }))
        },
    )
}

/// Whole arrays with elements in a file of the store.
fn grown() -> impl Strategy<Value = Entry> {
    let dims = vec(1..9u64, 0..4);
    let numbers = (number(), number(), 0..1u64 << 40, 0..5u64, number());
    (dims, dtype(), any::<bool>(), summary(), numbers).prop_flat_map(
        |(shape, dtype, filled, summary, numbers)| {
            let (commit, ordinal, offset, elements, holes) = numbers;
            let (count, item) = (shape.iter().product::<u64>(), dtype.size() as u64);
            let (length, size) = (count * item, elements * item);
            let n = if size == 0 { 1 } else { length.div_ceil(size) };
            let fill = filled.then(|| dtype.default_fill());
            let info = ArrayInfo { dtype, shape, piece: None, chunk: None, fill, summary };
            ("[a-z]{1,4}(/[a-z.]{3,9}x){0,2}", blocks(n, true, 0)).prop_map(move |(path, listed)| {
                let Location::Blocks { file, blocks, .. } = listed else { unreachable!() };
                let file = if matches!(blocks, Blocks::Inline(_)) { 0 } else { file };
                let holes = holes % (count + 1);
                let location = Location::Grown(Box::new(Grown { path, offset, size, holes, file, blocks }));
                Entry {
                    commit,
                    ordinal,
                    generation: true,
                    length,
                    array: Some(Box::new(info.clone())),
                    location,
                    holder: None,
                }
            })
        },
    )
}

fn removal() -> impl Strategy<Value = Entry> {
    let id = (any::<[u8; 16]>(), number(), number());
    (number(), number(), option::of(id)).prop_map(|(commit, ordinal, only)| Entry {
        commit,
        ordinal,
        generation: true,
        length: 0,
        array: None,
        location: Location::Removed {
            only: only.map(|(writer, sequence, ordinal)| EntryId { writer: Id(writer), sequence, ordinal }),
        },
        holder: None,
    })
}

fn attempt_tombstone() -> impl Strategy<Value = Entry> {
    (number(), number(), text(), any::<u64>(), id()).prop_map(|(commit, ordinal, attempt, began, writer)| {
        Entry {
            commit,
            ordinal,
            generation: false,
            length: 0,
            array: None,
            location: Location::AttemptTombstone(Box::new(AttemptTombstone { attempt, began, writer })),
            holder: None,
        }
    })
}

fn blocks(count: u64, arrays: bool, size: u64) -> impl Strategy<Value = Location> {
    let block = (number(), any::<u32>(), summary()).prop_map(move |(stored, crc, summary)| Block {
        stored,
        crc,
        summary: summary.filter(|_| arrays),
    });
    let inline = vec(block, count as usize..=count as usize);
    let table = (number(), number(), any::<u32>());
    (any::<u32>(), number(), inline, table, any::<bool>()).prop_map(
        move |(file, offset, inline, table, in_table)| {
            let blocks = match in_table || inline.len() > INLINE_BLOCKS {
                true => Blocks::Table { offset: table.0, length: table.1, crc: table.2 },
                false => Blocks::Inline(inline),
            };
            Location::Blocks { file, offset, size, blocks }
        },
    )
}

fn opaque() -> impl Strategy<Value = Entry> {
    let place = prop_oneof![
        (1..5000u64, 0..1500u64).prop_flat_map(|(length, size)| {
            let count = if size == 0 { 1 } else { length.div_ceil(size) };
            blocks(count, false, size).prop_map(move |location| (length, location))
        }),
        (1..5000u64, 0..1500u64).prop_flat_map(|(length, size)| {
            let count = if size == 0 { 1 } else { length.div_ceil(size) };
            external(length, count, false, size).prop_map(move |location| (length, location))
        }),
        (vec(any::<u8>(), 0..20), any::<u32>())
            .prop_map(|(data, crc)| (data.len() as u64, Location::Inline { data, crc })),
    ];
    (number(), number(), any::<bool>(), place).prop_map(
        |(commit, ordinal, generation, (length, location))| Entry {
            commit,
            ordinal,
            generation,
            length,
            array: None,
            location,
            holder: None,
        },
    )
}

fn array() -> impl Strategy<Value = Entry> {
    // For each dimension: start, count, the elements after the box, and the chunk's extent.
    let dims = vec((0..9u64, 0..9u64, 0..9u64, 1..9u64), 0..4);
    (dims, dtype(), any::<[bool; 5]>(), summary(), number(), number()).prop_flat_map(
        |(dims, dtype, flags, summary, commit, ordinal)| {
            let [piece, chunked, filled, generation, created] = flags;
            let count: Vec<u64> = dims.iter().map(|d| d.1).collect();
            let shape: Vec<u64> =
                if piece { dims.iter().map(|d| d.0 + d.1 + d.2).collect() } else { count.clone() };
            let start = dims.iter().map(|d| d.0).collect();
            let chunk: Vec<u64> = dims.iter().map(|d| d.3).collect();
            let whole: Vec<u64> = count.iter().map(|&n| n.max(1)).collect();
            let grid = ChunkGrid::new(count.clone(), if chunked { chunk.clone() } else { whole }).unwrap();
            let info = ArrayInfo {
                dtype,
                piece: piece.then(|| IndexBox::new(start, count.clone(), &shape).unwrap()),
                shape,
                chunk: chunked.then_some(chunk),
                fill: filled.then(|| dtype.default_fill()),
                summary,
            };
            let length = count.iter().product::<u64>() * dtype.size() as u64;
            let inside = blocks(grid.chunk_count(), true, 0)
                .prop_map(move |location| if created { Location::None } else { location });
            let place = prop_oneof![inside, external(length, grid.chunk_count(), true, 0)];
            let generation = generation && !piece;
            place.prop_map(move |location| Entry {
                commit,
                ordinal,
                generation,
                length,
                array: Some(Box::new(info.clone())),
                location,
                holder: None,
            })
        },
    )
}

pub fn entry() -> impl Strategy<Value = Entry> {
    // In a takeover the file may be another writer's.
    (prop_oneof![opaque(), array(), grown(), removal(), attempt_tombstone()], option::of(number())).prop_map(
        |(entry, holder)| {
            let in_file =
                matches!(entry.location, Location::Blocks { .. }) || entry.location.own_range().is_some();
            Entry { holder: holder.filter(|_| in_file), ..entry }
        },
    )
}
