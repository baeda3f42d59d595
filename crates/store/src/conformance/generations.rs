//! Pieces of array fields, and the generations they belong to.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::IndexBox;

use super::*;

pub(super) const KEY: &str = "run=a,variable=t,step=0";

/// Archives a row of numbers into a one-dimensional field of ten.
pub(super) fn piece(store: &Store, start: u64, values: &[f64]) -> Result<()> {
    let value = Value::Piece {
        data: &doubles(values.iter().copied()),
        dtype: DType::F8,
        start: &[start],
        count: &[values.len() as u64],
        shape: &[10],
    };
    with_key(KEY, |pairs| store.archive(pairs, value, &ArchiveOptions::default()))
}

pub(super) fn whole(store: &Store, value: f64) -> Result<()> {
    let data = doubles([value; 10]);
    let value = Value::Array { data: &data, dtype: DType::F8, shape: &[10] };
    with_key(KEY, |pairs| store.archive(pairs, value, &ArchiveOptions::default()))
}

pub(super) fn create(store: &Store, fill: Option<f64>) -> Result<()> {
    let fill = fill.map(f64::to_ne_bytes);
    let spec =
        FieldSpec { dtype: DType::F8, shape: &[10], fill: fill.as_ref().map(|f| &f[..]), chunks: None };
    with_key(KEY, |pairs| store.create_field(pairs, &spec, &ArchiveOptions::default()))
}

fn field(store: &Store) -> Result<crate::Field> {
    with_key(KEY, |pairs| store.get(pairs, &ReadOptions::default()))
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
}

pub(super) fn read(store: &Store) -> Result<Vec<f64>> {
    Ok(numbers(&field(store)?.read()?))
}

/// With the missing ones as they are filled; NaN is shown as -1.
pub(super) fn read_filled(store: &Store) -> Result<Vec<f64>> {
    let bytes = field(store)?.lenient().read()?;
    Ok(numbers(&bytes).into_iter().map(|x| if x.is_nan() { -1.0 } else { x }).collect())
}

/// Pieces of several processes and flushes make one field.
pub fn pieces_accumulate(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    piece(&a, 0, &[0.0, 1.0, 2.0])?;
    flush(harness, &a)?;
    piece(&b, 6, &[6.0, 7.0, 8.0, 9.0])?;
    flush(harness, &b)?;
    assert_eq!(read_filled(&a)?, [0.0, 1.0, 2.0, -1.0, -1.0, -1.0, 6.0, 7.0, 8.0, 9.0]);
    piece(&a, 3, &[3.0, 4.0, 5.0])?;
    flush(harness, &a)?;
    for store in [&a, &b, &open(harness, 2)?] {
        assert_eq!(read(store)?, (0..10).map(f64::from).collect::<Vec<_>>());
        let entries: Vec<ListEntry> =
            store.list(&Request::new(), &ListOptions::default())?.collect::<Result<_>>()?;
        assert_eq!(entries.len(), 1);
        assert!(entries[0].complete);
        assert_eq!((entries[0].nbytes, entries[0].shape.as_deref()), (80, Some(&[10][..])));
        let part = field(store)?.read_box(Some(&IndexBox::unbounded(vec![2], vec![5])?))?;
        assert_eq!(numbers(&part), [2.0, 3.0, 4.0, 5.0, 6.0]);
    }
    Ok(())
}

/// If pieces overlap, the newer flush wins, element by element.
pub fn newer_piece_wins(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    piece(&a, 0, &[1.0; 10])?;
    flush(harness, &a)?;
    piece(&b, 2, &[2.0; 4])?;
    flush(harness, &b)?;
    piece(&a, 4, &[3.0; 4])?;
    flush(harness, &a)?;
    let expected = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 1.0, 1.0];
    for store in [&a, &b] {
        assert_eq!(read(store)?, expected);
    }
    piece(&b, 0, &[4.0; 10])?;
    flush(harness, &b)?;
    assert_eq!(read(&a)?, [4.0; 10]);
    Ok(())
}

/// Pieces of one flush all count; where they overlap the later call wins.
pub fn pieces_of_one_commit(harness: &dyn Harness) -> Result<()> {
    let a = open(harness, 0)?;
    piece(&a, 0, &[1.0; 6])?;
    piece(&a, 4, &[2.0; 6])?;
    piece(&a, 5, &[3.0])?;
    flush(harness, &a)?;
    let expected = [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 2.0];
    assert_eq!(read(&open(harness, 1)?)?, expected);
    // A whole array in the middle of a batch hides what the batch held before it.
    piece(&a, 0, &[7.0; 3])?;
    whole(&a, 8.0)?;
    piece(&a, 9, &[9.0])?;
    assert_eq!(a.unflushed(), 2);
    flush(harness, &a)?;
    let mut expected = [8.0; 10];
    expected[9] = 9.0;
    assert_eq!(read(&open(harness, 1)?)?, expected);
    Ok(())
}

/// A strict read of an incomplete field names what is missing; parts that are there can be read.
pub fn incomplete_is_named(harness: &dyn Harness) -> Result<()> {
    let (a, reader) = (open(harness, 0)?, open(harness, 1)?);
    piece(&a, 0, &[0.0, 1.0])?;
    piece(&a, 7, &[7.0, 8.0])?;
    flush(harness, &a)?;
    let missing = fails("a strict read", ErrorKind::NotFound, field(&reader)?.read());
    names(&missing, "step=0");
    for hole in ["2:7", "9:10"] {
        names(&missing, hole);
    }
    let retrieved = reader.retrieve(&request(KEY)?, &RetrieveOptions::default());
    names(&fails("a strict retrieve", ErrorKind::NotFound, retrieved), "2:7");
    let lenient = RetrieveOptions { strict: false, session: Session::default() };
    let bytes = reader.retrieve(&request(KEY)?, &lenient)?.get(0)?.read()?;
    assert!(numbers(&bytes)[2].is_nan() && numbers(&bytes)[8] == 8.0);
    let there = field(&reader)?.read_box(Some(&IndexBox::unbounded(vec![7], vec![2])?))?;
    assert_eq!(numbers(&there), [7.0, 8.0]);
    let gap = field(&reader)?.read_box(Some(&IndexBox::unbounded(vec![6], vec![2])?));
    fails("a box with a hole", ErrorKind::NotFound, gap);
    let entries: Vec<ListEntry> =
        reader.list(&Request::new(), &ListOptions::default())?.collect::<Result<_>>()?;
    assert!(!entries[0].complete && !field(&reader)?.is_complete()?);
    Ok(())
}

/// Pieces that disagree make reads fail, naming both writers, until a new generation begins.
pub fn disagreeing_pieces_conflict(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    piece(&a, 0, &[1.0; 10])?;
    flush(harness, &a)?;
    let data = [0; 40];
    let other = Value::Piece { data: &data, dtype: DType::F4, start: &[0], count: &[10], shape: &[10] };
    with_key(KEY, |pairs| b.archive(pairs, other, &ArchiveOptions::default()))?;
    flush(harness, &b)?;
    let reader = open(harness, 2)?;
    let writers: Vec<String> = reader.status()?.writers.iter().map(|w| w.writer.to_string()).collect();
    let conflict = fails("a read", ErrorKind::Conflict, field(&reader).and_then(|f| f.read()));
    assert_eq!(writers.iter().filter(|w| conflict.message().contains(*w)).count(), 2, "{conflict}");
    names(&conflict, "step=0");
    let retrieved = reader.retrieve(&request(KEY)?, &RetrieveOptions::default());
    fails("a retrieve", ErrorKind::Conflict, retrieved.and_then(|f| f.get(0)?.read()));
    assert_eq!(listed(&reader, "")?.len(), 1);
    // Another shape disagrees just so.
    let shaped = Value::Piece { data: &data, dtype: DType::F4, start: &[0], count: &[10], shape: &[20] };
    with_key("run=b,variable=t", |pairs| a.archive(pairs, shaped, &ArchiveOptions::default()))?;
    with_key("run=b,variable=t", |pairs| b.archive(pairs, other, &ArchiveOptions::default()))?;
    flush(harness, &a)?;
    flush(harness, &b)?;
    fails("another shape", ErrorKind::Conflict, get(&reader, "run=b,variable=t"));
    whole(&a, 5.0)?;
    flush(harness, &a)?;
    assert_eq!(read(&reader)?, [5.0; 10]);
    Ok(())
}

/// A whole array begins a generation: older pieces are hidden, newer ones lie upon it.
pub fn whole_field_hides_pieces(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    piece(&a, 0, &[1.0; 10])?;
    flush(harness, &a)?;
    whole(&b, 2.0)?;
    flush(harness, &b)?;
    assert_eq!(read(&a)?, [2.0; 10]);
    piece(&a, 3, &[3.0; 2])?;
    flush(harness, &a)?;
    let expected = [2.0, 2.0, 2.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0];
    assert_eq!(read(&b)?, expected);
    // Opaque bytes hide an array, and the other way round.
    put(&a, KEY, b"opaque")?;
    flush(harness, &a)?;
    assert_eq!(field(&b)?.read()?, b"opaque");
    assert_eq!(field(&b)?.dtype()?, None);
    whole(&b, 4.0)?;
    flush(harness, &b)?;
    assert_eq!(read(&a)?, [4.0; 10]);
    Ok(())
}

/// A created field hides older pieces and whole arrays; it is incomplete until pieces cover it.
pub fn created_field_hides_pieces(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    whole(&a, 1.0)?;
    flush(harness, &a)?;
    create(&b, None)?;
    piece(&b, 0, &[5.0; 3])?;
    flush(harness, &b)?;
    fails("an incomplete field", ErrorKind::NotFound, read(&a));
    assert_eq!(read_filled(&a)?, [5.0, 5.0, 5.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0]);
    piece(&a, 3, &[6.0; 7])?;
    flush(harness, &a)?;
    assert_eq!(read(&b)?, [5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0]);
    create(&a, None)?;
    flush(harness, &a)?;
    assert_eq!(read_filled(&b)?, [-1.0; 10]);
    assert_eq!((listed(&b, "")?.len(), field(&b)?.is_complete()?), (1, false));
    Ok(())
}

/// Unwritten elements read as the created field's fill.
pub fn created_field_fills(harness: &dyn Harness) -> Result<()> {
    let a = open(harness, 0)?;
    create(&a, Some(42.0))?;
    flush(harness, &a)?;
    piece(&a, 1, &[1.0, 2.0])?;
    flush(harness, &a)?;
    let reader = open(harness, 1)?;
    let mut expected = [42.0; 10];
    (expected[1], expected[2]) = (1.0, 2.0);
    assert_eq!(read_filled(&reader)?, expected);
    let spec = FieldSpec { dtype: DType::F8, shape: &[10], fill: Some(&[0; 3]), chunks: None };
    let outcome = with_key(KEY, |pairs| a.create_field(pairs, &spec, &ArchiveOptions::default()));
    fails("a fill of another size", ErrorKind::Invalid, outcome);
    Ok(())
}

/// A reader that began before a new generation reads the old one to its end.
pub fn mixed_generations_never_show(harness: &dyn Harness) -> Result<()> {
    let (a, reader) = (open(harness, 0)?, open(harness, 1)?);
    whole(&a, 0.0)?;
    flush(harness, &a)?;
    for round in 1..6 {
        let before = field(&reader)?;
        create(&a, None)?;
        for start in 0..10 {
            piece(&a, start, &[f64::from(round)])?;
        }
        flush(harness, &a)?;
        assert_eq!(numbers(&before.read()?), [f64::from(round - 1); 10]);
        assert_eq!(read(&reader)?, [f64::from(round); 10]);
    }
    Ok(())
}
