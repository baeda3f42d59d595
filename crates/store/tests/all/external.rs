//! Files outside the store that change without its knowledge, in ways that only a checksum or a change time reveals.

use std::path::Path;

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::put_file;

const KEY: &str = "run=a,variable=t";
const SOURCE: &str = "/data/source.nc";
const SHAPE: [u64; 2] = [1000, 1000];

/// A world with a file of 4 MB, and a store that references it.
fn taken() -> (SimWorld, Store, Vec<u8>) {
    let world = SimWorld::new(1);
    let content = pattern(4_000_000, 1);
    put_file(&world.process("a"), SOURCE.into(), Some(&content)).unwrap();
    let store = open(&world, "a");
    let content_of = ExternalContent::Array { dtype: DType::parse(">f4").unwrap(), shape: &SHAPE };
    let path = Path::new(SOURCE);
    let spec = ExternalSpec { path, offset: 0, parts: 1, stride: 0, content: content_of, seen: None };
    store.archive_external(&[("run", "a"), ("variable", "t")], &spec, &ArchiveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    (world, store, content)
}

fn rows(first: u64, count: u64) -> IndexBox {
    IndexBox::unbounded(vec![first, 0], vec![count, 1000]).unwrap()
}

#[test]
fn a_flipped_byte_is_found_by_the_checksum_of_its_block_alone() {
    let (world, store, content) = taken();
    let held = field(&store, KEY, None).unwrap();
    world.flip(Path::new(SOURCE), 3_500_000, 1).unwrap();
    let damage = error(held.read(), ErrorKind::Corrupt);
    for part in ["variable=t", "source.nc", "checksum"] {
        assert!(damage.message().contains(part), "{damage}");
    }
    error(held.read_box(Some(&rows(874, 2))), ErrorKind::Corrupt);
    assert!(held.read_box(Some(&rows(100, 600))).unwrap() == content[400_000..2_800_000]);
    let report = store.verify(&Request::new()).unwrap();
    assert_eq!(report.damaged.len(), 1);
    assert_eq!(report.damaged[0].file, "file:///data/source.nc");
}

#[test]
fn a_file_written_again_is_not_the_one_that_was_taken() {
    let (world, store, content) = taken();
    let held = field(&store, KEY, None).unwrap();
    world.advance(SECOND);
    put_file(&world.process("a"), SOURCE.into(), Some(&content)).unwrap();
    let damage = error(held.read(), ErrorKind::Corrupt);
    assert!(damage.message().contains("change time") && damage.hint().is_some(), "{damage}");
}

#[test]
fn a_box_reads_only_the_blocks_that_it_touches() {
    let (world, store, _) = taken();
    let held = field(&store, KEY, None).unwrap();
    world.clear_trace();
    held.read_box(Some(&rows(500, 1))).unwrap();
    let read: u64 = calls(&world, OpKind::Read, "source.nc").iter().map(|op| op.len).sum();
    assert!(read > 0 && read <= 1 << 20, "{read} bytes were read for a row of 4,000");
    assert_eq!(calls(&world, OpKind::Write, "source.nc").len(), 0);
}
