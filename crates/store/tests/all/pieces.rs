//! The bytes that a read of a part fetches, counted on the simulated disk.

use crate::common::*;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::geometry::IndexBox;
use fieldstone_journal::Session;
use fieldstone_store::Field;
use fieldstone_store::api::*;

const KEY: &str = "run=a,variable=t";

/// A field in a fresh handle on another host that has read the index.
fn opened(world: &SimWorld) -> Field {
    let field = field(&open(world, "b"), KEY, None).unwrap();
    world.clear_trace();
    field
}

fn region(start: &[u64], count: &[u64]) -> IndexBox {
    IndexBox::unbounded(start.to_vec(), count.to_vec()).unwrap()
}

/// The bytes that a read of a box takes from the disk.
fn cost(world: &SimWorld, field: &Field, start: &[u64], count: &[u64]) -> u64 {
    world.clear_trace();
    field.read_box(Some(&region(start, count))).unwrap();
    world.counters().bytes_read
}

#[test]
fn a_box_fetches_only_the_chunks_it_touches() {
    // Large: in the data log. Small: in the log, by chunks that the call gives.
    for (side, chunk) in [(2048u64, None), (64, Some(vec![16, 16]))] {
        let world = SimWorld::new(1);
        let writer = open(&world, "a");
        let data = pattern((side * side * 8) as usize, 1);
        let options = ArchiveOptions { chunks: chunk, ..ArchiveOptions::default() };
        let value = Value::Array { data: &data, dtype: DType::F8, shape: &[side, side] };
        archive(&writer, KEY, value, &options).unwrap();
        writer.flush(&Session::default()).unwrap();
        let field = opened(&world);
        let chunks = field.chunks().unwrap();
        let chunk_bytes = 8 * chunks.iter().product::<u64>();
        assert!(chunk_bytes <= 1 << 20 && chunk_bytes * 4 <= data.len() as u64, "{chunks:?}");
        // The table of blocks is read with them.
        let table = 64 * (data.len() as u64 / chunk_bytes);
        let one = cost(&world, &field, &[0, 0], &[1, 1]);
        assert!((chunk_bytes..=chunk_bytes + table).contains(&one), "{one} for a chunk of {chunk_bytes}");
        let inside = cost(&world, &field, &[chunks[0], chunks[1].min(side - 1)], &[chunks[0] / 2, 1]);
        assert!(inside <= chunk_bytes + table, "{inside}");
        let corner = cost(&world, &field, &[chunks[0] - 1, 0], &[2, 1]);
        assert!((2 * chunk_bytes..=2 * chunk_bytes + table).contains(&corner), "{corner}");
        assert_eq!(cost(&world, &field, &[5, 5], &[0, 3]), 0);
        // A box of 1 % of the array: at most 2 % of its bytes and 1 MiB.
        let tenth = side / 10;
        let percent = cost(&world, &field, &[3, 3], &[tenth, tenth]);
        assert!(percent <= data.len() as u64 / 50 + (1 << 20), "{percent}");
        let all = cost(&world, &field, &[0, 0], &[side, side]);
        assert!((data.len() as u64..=data.len() as u64 + table).contains(&all), "{all}");
    }
}

#[test]
fn a_range_of_opaque_bytes_fetches_only_its_blocks() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    let data = pattern(20 << 20, 1);
    flush_one(&writer, KEY, &data);
    let field = opened(&world);
    for (start, length) in [(0, 10), (7 << 20, 1000), ((20 << 20) - 1, 1)] {
        world.clear_trace();
        let mut part = vec![0; length];
        field.read_range(start, &mut part).unwrap();
        assert!(part == data[start as usize..start as usize + length]);
        let read = world.counters().bytes_read;
        assert!(read <= (1 << 20) + 4096, "{read} bytes for {length} at {start}");
    }
}

#[test]
fn only_the_pieces_that_show_are_fetched() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    let piece = |start: u64, count: u64, seed: u64| {
        let data = pattern((count * 8) as usize, seed);
        let value = Value::Piece {
            data: &data,
            dtype: DType::F8,
            start: &[start],
            count: &[count],
            shape: &[40_000],
        };
        archive(&writer, KEY, value, &ArchiveOptions::default()).unwrap();
        writer.flush(&Session::default()).unwrap();
        data
    };
    // Four adjacent pieces, the second written three times.
    for i in [0, 1, 1, 2, 3, 1] {
        piece(i * 10_000, 10_000, i);
    }
    let field = opened(&world);
    assert_eq!(cost(&world, &field, &[0], &[40_000]), 320_000, "hidden pieces are not fetched");
    assert_eq!(cost(&world, &field, &[10_000], &[10_000]), 80_000);
    assert_eq!(cost(&world, &field, &[0], &[10_001]), 160_000);
    assert_eq!(cost(&world, &field, &[25_000], &[2]), 80_000);
    // A new generation: no older pieces are fetched.
    let whole = piece(0, 40_000, 9);
    let field = opened(&world);
    assert_eq!(cost(&world, &field, &[0], &[40_000]), 320_000);
    assert!(field.read().unwrap() == whole);
}

/// Fetching found fields reads their bytes and nothing of the index again.
#[test]
fn reading_fields_reads_no_index() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    for step in 0..500 {
        put(&writer, &format!("{KEY},step={step}"), &pattern(1000, step)).unwrap();
    }
    writer.flush(&Session::default()).unwrap();
    let reader = open(&world, "b");
    let request = fieldstone_core::request::Request::parse(KEY).unwrap();
    let fields = reader.retrieve(&request, &RetrieveOptions::default()).unwrap();
    fields.get(0).unwrap();
    world.clear_trace();
    let mut buffer = vec![0; 500_000];
    assert_eq!(fields.read_into(&mut buffer).unwrap(), 500_000);
    assert_eq!(world.counters().bytes_read, 500_000);
    assert!(world.counters().count(OpKind::Read) <= 500);
}

#[test]
fn a_field_of_many_pieces_that_is_asked_for_again_is_never_an_older_one() {
    let world = SimWorld::new(4);
    let (writer, reader) = (open(&world, "a"), open(&world, "b"));
    let key = [("run", "a"), ("variable", "t")];
    let put = |at: u64, value: u8, transaction: Option<Id>| {
        let piece =
            Value::Piece { data: &[value; 4], dtype: DType::U1, start: &[at * 4], count: &[4], shape: &[80] };
        writer
            .archive(
                &key,
                piece,
                &ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() },
            )
            .unwrap();
    };
    let get = |at: u64, transaction: Option<Id>| {
        let field = reader.get(&key, &ReadOptions { session: Session::from(transaction) })?;
        field.read_box(Some(&region(&[at * 4 + 1], &[2])))
    };
    for at in (0..20).filter(|at| *at != 7) {
        put(at, at as u8, None);
    }
    writer.flush(&Session::default()).unwrap();
    for at in [0, 6, 8, 19] {
        assert_eq!(get(at, None).unwrap(), [at as u8; 2]);
    }
    // A reader misses an unwritten element only if it asks for it.
    assert!(get(7, None).is_err());
    put(3, 99, None);
    writer.flush(&Session::default()).unwrap();
    assert_eq!(get(3, None).unwrap(), [99; 2]);
    let id = writer.begin().unwrap();
    put(7, 77, Some(id));
    writer.flush(&Session::from(id)).unwrap();
    assert!(get(7, None).is_err());
    assert_eq!(get(7, Some(id)).unwrap(), [77; 2]);
    assert!(get(7, None).is_err());
    writer.decide(id, true, &Session::default()).unwrap();
    assert_eq!(get(7, None).unwrap(), [77; 2]);
}
