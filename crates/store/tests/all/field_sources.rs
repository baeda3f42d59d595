//! Fields from outside any folder store: what every implementation may return, alone and mixed with fields of a
//! folder.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::*;
use fieldstone_core::ErrorKind::{Corrupt, Invalid, NotFound};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::geometry::{IndexBox, Summary, Uncovered, copy_box, uncovered};
use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::keys::encode_key;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::{Field, FieldId, FieldSource, Fields, FieldsSource, Outline};

/// Bytes, or an array whose first elements were written, in memory.
#[derive(Debug)]
struct InMemory {
    key: Vec<u8>,
    shape: Option<[u64; 2]>,
    bytes: Vec<u8>,
    written: Vec<IndexBox>,
    reads: AtomicUsize,
}

impl InMemory {
    fn new(store: &Store, step: u64, shape: Option<[u64; 2]>, bytes: Vec<u8>, rows: u64) -> Arc<InMemory> {
        let step = step.to_string();
        let key = store.schema().resolve(&[("run", "held"), ("variable", "t"), ("step", &step)]).unwrap();
        let written = IndexBox::unbounded(vec![0, 0], vec![rows, 4]).unwrap();
        let (key, written) = (encode_key(&key).bytes, vec![written]);
        Arc::new(InMemory { key, shape, bytes, written, reads: AtomicUsize::new(0) })
    }
}

impl FieldSource for InMemory {
    fn id(&self) -> FieldId<'_> {
        let entry = EntryId { writer: Id([3; 16]), sequence: 1, ordinal: 0 };
        FieldId { store: "held".as_ref(), key: &self.key, entry }
    }

    fn version(&self) -> String {
        "held".to_owned()
    }

    fn time(&self) -> i64 {
        7
    }

    fn nbytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn array(&self) -> Result<Option<(DType, &[u64])>> {
        Ok(self.shape.as_ref().map(|shape| (DType::F4, &shape[..])))
    }

    fn missing(&self, limit: usize) -> Result<Uncovered> {
        match &self.shape {
            Some(shape) => uncovered(shape, &self.written, limit),
            None => Ok(Uncovered::default()),
        }
    }

    fn chunks(&self) -> Option<Vec<u64>> {
        None
    }

    fn outline(&self) -> Result<Option<Outline>> {
        Ok(None)
    }

    fn is_compressed(&self) -> Result<bool> {
        Ok(false)
    }

    fn summary(&self) -> Option<Summary> {
        None
    }

    fn read(&self, region: Option<&IndexBox>, lenient: bool, out: &mut [u8]) -> Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let Some(shape) = &self.shape else { return self.read_range(0, out) };
        let whole = IndexBox::whole(shape)?;
        let region = region.unwrap_or(&whole);
        if !lenient && self.missing(usize::MAX >> 8)?.boxes.iter().any(|hole| hole.overlaps(region)) {
            return Err(Error::not_found("it was never written"));
        }
        copy_box(&self.bytes, &whole, out, region, region, 4)
    }

    fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        out.copy_from_slice(&self.bytes[start as usize..][..out.len()]);
        Ok(())
    }
}

/// Arbitrary fields as the result of one retrieve.
#[derive(Debug)]
struct FoundFields(Vec<Field>);

impl FieldsSource for FoundFields {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Field> {
        Ok(self.0[index].clone())
    }

    fn missing(&self, limit: usize) -> Vec<String> {
        vec!["step=99".to_owned(); limit.min(1)]
    }

    fn missing_count(&self) -> u64 {
        1
    }

    fn version(&self) -> String {
        "held".to_owned()
    }
}

fn region(start: [u64; 2], count: [u64; 2]) -> IndexBox {
    IndexBox::unbounded(start.to_vec(), count.to_vec()).unwrap()
}

#[test]
fn what_is_asked_of_a_source_is_right() {
    let store = open(&SimWorld::new(1), "a");
    let bytes = pattern(100, 1);
    let held = InMemory::new(&store, 0, None, bytes.clone(), 0);
    let field = Field::new(held.clone());
    assert_eq!(field.key().unwrap().to_string(), "{run=held}{variable=t}{step=0}");
    assert_eq!((field.nbytes().unwrap(), field.dtype().unwrap(), field.time()), (100, None, 7));
    assert!(field.is_complete().unwrap());
    assert_eq!((field.read().unwrap(), field.read_box(None).unwrap()), (bytes.clone(), bytes.clone()));
    let before = held.reads.load(Ordering::Relaxed);
    for refused in [
        error(field.read_into(&mut [0; 99]), Invalid),
        error(field.read_range(91, &mut [0; 10]), Invalid),
        error(field.read_range(u64::MAX, &mut [0; 10]), Invalid),
        error(field.read_box(Some(&region([0, 0], [1, 1]))), Invalid),
        error(field.written(), Invalid),
    ] {
        assert!(refused.message().contains("step=0"), "{refused}");
    }
    let array = InMemory::new(&store, 1, Some([6, 4]), pattern(96, 2), 5);
    let field = Field::new(array.clone());
    error(field.read_range(0, &mut [0; 4]), Invalid);
    error(field.read_box(Some(&region([0, 0], [7, 1]))), Invalid);
    error(field.read_box_into(&region([0, 0], [2, 2]), &mut [0; 15]), Invalid);
    assert_eq!(field.read_box(Some(&region([1, 1], [0, 2]))).unwrap(), b"", "there is nothing to read");
    assert_eq!((held.reads.load(Ordering::Relaxed), array.reads.load(Ordering::Relaxed)), (before, 0));
    assert_eq!(field.read_box(Some(&region([1, 1], [1, 2]))).unwrap(), &pattern(96, 2)[20..28]);
    error(field.read(), NotFound);
    assert_eq!(field.clone().lenient().read().unwrap(), pattern(96, 2));
    error(field.clone().lenient().strict().read(), NotFound);
    assert!(!field.is_complete().unwrap());
    assert_eq!(field.written().unwrap(), [region([0, 0], [5, 4])]);
    assert_eq!(array.reads.load(Ordering::Relaxed), 4, "each read is one call");
}

/// Fields of a folder that follow one another are read together and other fields separately, all into one buffer and
/// as one file.
#[test]
fn fields_of_any_source_mix() {
    let store = open(&SimWorld::new(1), "a");
    let mut expected = Vec::new();
    for step in 0..40 {
        put(&store, &format!("run=a,variable=t,step={step}"), &pattern(3_000, step)).unwrap();
    }
    // Large enough to be blocks of a data log that several threads read.
    for step in 40..46 {
        put(&store, &format!("run=a,variable=t,step={step}"), &pattern(900_000, step)).unwrap();
    }
    store.flush(&Session::default()).unwrap();
    let own = store.retrieve(&Request::parse("run=a").unwrap(), &RetrieveOptions::default()).unwrap();
    let mut mixed = Vec::new();
    for (step, field) in own.iter().enumerate() {
        let step = step as u64;
        mixed.push(field.unwrap());
        expected.extend(pattern(if step < 40 { 3_000 } else { 900_000 }, step));
        if step % 7 == 3 {
            let held = pattern(1_000 + step as usize, 100 + step);
            expected.extend(&held);
            mixed.push(Field::new(InMemory::new(&store, step, None, held, 0)));
        }
    }
    let count = mixed.len();
    let mixed = Fields::new(Arc::new(FoundFields(mixed)));
    let both = own.clone().concat(mixed.clone());
    assert_eq!(
        (both.len(), both.missing_count(), both.missing(5)),
        (46 + count, 1, vec!["step=99".to_owned()])
    );
    assert_eq!((both.version(), mixed.version()), (own.version(), "held".to_owned()));
    let mut out = vec![0; mixed.total_bytes().unwrap() as usize];
    assert_eq!(mixed.read_into(&mut out).unwrap() as usize, expected.len());
    assert!(out == expected);
    let mut reader = mixed.reader();
    reader.seek(SeekFrom::Start(25_000)).unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(rest == expected[25_000..]);
    error(mixed.get(count), Invalid);
    // This store cannot remove a field of another store.
    let foreign = Field::new(InMemory::new(&store, 1, None, Vec::new(), 0));
    error(store.remove_fields(&[foreign], &RemoveOptions::default()), Invalid);
    assert_eq!(own.get(3).unwrap().id().store, ROOT);
}

/// One read for many fields, in which every byte is compared with its checksum.
#[test]
fn neighbours_are_read_together_and_each_is_checked() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    for step in 0..64 {
        put(&store, &format!("run=a,variable=t,step={step}"), &pattern(3_000, step)).unwrap();
    }
    store.flush(&Session::default()).unwrap();
    let all = Request::parse("run=a").unwrap();
    let fields = store.retrieve(&all, &RetrieveOptions::default()).unwrap();
    let mut out = vec![0; 64 * 3_000];
    fields.read_into(&mut out).unwrap();
    world.clear_trace();
    fields.read_into(&mut out).unwrap();
    assert_eq!(calls(&world, OpKind::Read, "/store/").len(), 1);
    let places: Vec<FieldLocation> = store
        .list(&all, &ListOptions::default())
        .unwrap()
        .map(|entry| entry.unwrap().place.unwrap())
        .collect();
    let path = Path::new(ROOT).join(places[10].file.to_string());
    world.flip(&path, places[10].offset + 1_234, 0x10).unwrap();
    let corrupt = error(fields.read_into(&mut out), Corrupt);
    assert!(corrupt.message().contains("step=10"), "{corrupt}");
    let mut reader = fields.reader();
    let mut sound = vec![0; 10 * 3_000];
    reader.read_exact(&mut sound).unwrap();
    assert!((0..10).all(|i| sound[i * 3_000..][..3_000] == pattern(3_000, i as u64)));
}
