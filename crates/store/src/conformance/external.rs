//! Fields whose bytes stay in files outside the store.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, copy_box};
use fieldstone_journal::Session;

use std::path::Path;

use super::*;

const KEY: &str = "run=a,variable=t,step=0";

/// Takes a contiguous array of a file.
fn take(store: &Store, key: &str, path: &Path, offset: u64, dtype: &str, shape: &[u64]) -> Result<()> {
    let content = ExternalContent::Array { dtype: DType::parse(dtype)?, shape };
    take_parts(store, key, &ExternalSpec { path, offset, parts: 1, stride: 0, content, seen: None }, None)
}

fn take_parts(store: &Store, key: &str, spec: &ExternalSpec<'_>, transaction: Option<Id>) -> Result<()> {
    let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
    with_key(key, |pairs| store.archive_external(pairs, spec, &options))
}

fn field(store: &Store, key: &str) -> Result<crate::Field> {
    with_key(key, |pairs| store.get(pairs, &ReadOptions::default()))
}

/// A field outside is listed, read, verified, replaced and removed like any other; its file stays.
pub fn external_fields_read_like_others(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let content: Vec<u8> =
        [&b"head"[..], &(0..24i32).flat_map(i32::to_be_bytes).collect::<Vec<u8>>()].concat();
    let path = harness.source("outside file.nc", Some(&content))?;
    take(&a, KEY, &path, 4, ">i4", &[4, 6])?;
    fails("before the flush", ErrorKind::NotFound, get(&b, KEY));
    flush(harness, &a)?;
    for store in [&a, &b, &open(harness, 2)?] {
        let found = field(store, KEY)?;
        assert_eq!((found.read()?, found.dtype()?), (content[4..].to_vec(), Some(DType::parse(">i4")?)));
        let part = IndexBox::unbounded(vec![1, 2], vec![2, 3])?;
        let expected: Vec<u8> = [8i32, 9, 10, 14, 15, 16].into_iter().flat_map(i32::to_be_bytes).collect();
        assert_eq!(found.read_box(Some(&part))?, expected);
        let summary = found.summary().map(|s| (s.min, s.max));
        let int = fieldstone_core::geometry::Scalar::Int;
        assert_eq!(summary, Some((Some(int(0)), Some(int(23)))));
        let entries: Vec<ListEntry> =
            store.list(&Request::new(), &ListOptions::default())?.collect::<Result<_>>()?;
        let place = entries[0].place.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(place.starts_with("file:///") && place.ends_with("/outside%20file.nc:4"), "{place}");
        assert!(entries[0].complete && entries[0].nbytes == 96);
        let fields = store.retrieve(&request("run=a")?, &RetrieveOptions::default())?;
        let mut out = vec![0; 96];
        assert_eq!((fields.read_into(&mut out)?, &out[..]), (96, &content[4..]));
        let stats = store.stats(&Request::new())?;
        assert_eq!((stats.fields, stats.bytes, stats.stored_bytes), (1, 96, 0));
        let report = store.verify(&Request::new())?;
        assert!(report.ok() && report.bytes == 96, "{:?}", report.damaged);
        assert!(store.dump(&Request::new())?.iter().any(|line| line.contains("outside%20file.nc at 4")));
    }
    let version = a.version()?;
    put(&b, KEY, b"replaced")?;
    flush(harness, &b)?;
    assert_eq!(get(&a, KEY)?, b"replaced");
    let old = harness.open(1, &Opening { at: Some(version), ..Opening::default() })?;
    assert_eq!(get(&old, KEY)?, content[4..]);
    a.remove(&request(KEY)?, &RemoveOptions::default())?;
    flush(harness, &a)?;
    assert_eq!((count_all(&b)?, get(&old, KEY)?), (2, content[4..].to_vec()));
    // A piece lies upon a field outside as upon any other.
    take(&a, KEY, &path, 4, ">i4", &[4, 6])?;
    let nine = 9i32.to_be_bytes();
    let dtype = DType::parse(">i4")?;
    let piece = Value::Piece { data: &nine, dtype, start: &[3, 5], count: &[1, 1], shape: &[4, 6] };
    with_key(KEY, |pairs| a.archive(pairs, piece, &ArchiveOptions::default()))?;
    flush(harness, &a)?;
    assert_eq!(get(&b, KEY)?, [&content[4..96], &nine].concat());
    Ok(())
}

/// Boxes of arrays of many blocks, in one piece and in records, equal those of the same array inside.
pub fn external_arrays_of_every_layout(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let content = pattern(5_000_000, 7);
    let path = harness.source("records.nc", Some(&content))?;
    let cases: [(&str, &[u64], u64, u64, u64); 7] = [
        (">f4", &[1000, 1000], 1, 0, 100),
        (">i2", &[3, 700_000], 1, 0, 13),
        (">f8", &[40, 20, 100], 40, 20_004, 8),
        (">i2", &[9, 1500], 9, 400_000, 0),
        ("|S1", &[200_000], 200_000, 12, 3),
        (">i4", &[], 1, 0, 1),
        (">i4", &[0, 5], 1, 0, 1),
    ];
    for (i, (dtype, shape, parts, stride, offset)) in cases.iter().enumerate() {
        let key = format!("run=a,variable=t,step={i}");
        let content = ExternalContent::Array { dtype: DType::parse(dtype)?, shape };
        let spec = ExternalSpec {
            path: &path,
            offset: *offset,
            parts: *parts,
            stride: *stride,
            content,
            seen: None,
        };
        take_parts(&store, &key, &spec, None)?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    for (i, (dtype, shape, parts, stride, offset)) in cases.iter().enumerate() {
        let item = DType::parse(dtype)?.size();
        let length = shape.iter().product::<u64>() as usize * item;
        let part = length / *parts as usize;
        let raw: Vec<u8> = (0..*parts)
            .flat_map(|n| content[(offset + n * stride) as usize..][..part].iter().copied())
            .collect();
        let found = field(&reader, &format!("run=a,variable=t,step={i}"))?;
        assert!(found.read()? == raw, "{dtype} {shape:?}");
        for round in 0..4u64 {
            let start: Vec<u64> = shape.iter().map(|n| n * round / 5).collect();
            let count: Vec<u64> =
                shape.iter().zip(&start).map(|(n, s)| (n - s).div_ceil(round + 1)).collect();
            let region = IndexBox::unbounded(start, count)?;
            let mut expected = vec![0; region.element_count()? as usize * item];
            copy_box(&raw, &IndexBox::whole(shape)?, &mut expected, &region, &region, item)?;
            assert!(found.read_box(Some(&region))? == expected, "{dtype} {shape:?} [{region}]");
        }
    }
    assert!(reader.verify(&Request::new())?.ok());
    Ok(())
}

/// Opaque bytes outside, of one block and of several, whole and in ranges.
pub fn external_bytes_and_ranges(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let content = pattern(10_500_000, 3);
    let path = harness.source("messages.grib", Some(&content))?;
    for (step, (offset, length)) in [(5, 1000), (1, 10_400_000), (7, 0)].into_iter().enumerate() {
        let content = ExternalContent::Bytes(length);
        let spec = ExternalSpec { path: &path, offset, parts: 1, stride: 0, content, seen: None };
        take_parts(&store, &format!("run=a,variable=t,step={step}"), &spec, None)?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    assert!(get(&reader, "run=a,variable=t,step=0")? == content[5..1005]);
    assert!(get(&reader, "run=a,variable=t,step=1")? == content[1..10_400_001]);
    assert_eq!(get(&reader, "run=a,variable=t,step=2")?, b"");
    let found = field(&reader, "run=a,variable=t,step=1")?;
    for (start, length) in [(0usize, 10usize), (1_048_570, 20), (3_000_000, 2_500_000), (10_399_990, 10)] {
        let mut out = vec![0; length];
        found.read_range(start as u64, &mut out)?;
        assert!(out == content[1 + start..1 + start + length], "{length} at {start}");
    }
    Ok(())
}

/// A file that was changed, in size, time or content, or is gone, is Corrupt, named with the key; a partial read
/// compares only the parts that it touches. The rest stays readable.
pub fn a_changed_source_is_corrupt(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let mut content = pattern(3_000_000, 1);
    let path = harness.source("s.nc", Some(&content))?;
    take(&store, KEY, &path, 0, ">i4", &[3, 250_000])?;
    put(&store, "run=b,variable=t", b"inside")?;
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let held = field(&reader, KEY)?;
    let corrupt = |what: &str| -> Result<()> {
        for error in
            [fails(what, ErrorKind::Corrupt, get(&reader, KEY)), fails(what, ErrorKind::Corrupt, held.read())]
        {
            names(&error, "step=0");
            names(&error, "s.nc");
            assert!(error.hint().is_some() || error.message().contains("checksum"), "{error}");
        }
        let report = reader.verify(&Request::new())?;
        assert_eq!(report.damaged.len(), 1, "{what}: {:?}", report.damaged);
        assert!(report.damaged[0].key.as_deref().is_some_and(|key| key.contains("step=0")));
        assert!(report.damaged[0].file.ends_with("/s.nc"));
        assert_eq!(listed(&reader, "")?.len(), 2);
        assert_eq!(get(&reader, "run=b,variable=t")?, b"inside");
        Ok(())
    };
    harness.source("s.nc", Some(&content[..2_999_999]))?;
    corrupt("a shorter file")?;
    harness.source("s.nc", Some(&[&content[..], b"x"].concat()))?;
    corrupt("a longer file")?;
    harness.source("s.nc", None)?;
    corrupt("no file")?;
    content[2_500_000] ^= 1;
    harness.source("s.nc", Some(&content))?;
    corrupt("a changed file")?;
    // Archiving the same file again makes a new version.
    take(&store, KEY, &path, 0, ">i4", &[3, 250_000])?;
    flush(harness, &store)?;
    assert!(get(&reader, KEY)? == content);
    Ok(())
}

/// Fields outside take part in transactions; they are refused where others own the dataset or none writes.
pub fn external_fields_in_transactions(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let path = harness.source("s.nc", Some(&pattern(64, 1)))?;
    let id = a.begin()?;
    let content = ExternalContent::Array { dtype: DType::parse(">i2")?, shape: &[32] };
    let spec = ExternalSpec { path: &path, offset: 0, parts: 1, stride: 0, content, seen: None };
    take_parts(&b, KEY, &spec, Some(id))?;
    b.flush(&Session::from(id))?;
    harness.settle();
    fails("before the commit", ErrorKind::NotFound, get(&a, KEY));
    assert_eq!(get_in(&a, KEY, Some(id))?, pattern(64, 1));
    a.decide(id, true, &Session::default())?;
    harness.settle();
    assert_eq!(get(&b, KEY)?, pattern(64, 1));
    let reader = harness.open(1, &Opening { access: Access::Read, ..Opening::default() })?;
    fails("taking by a reader", ErrorKind::Denied, take_parts(&reader, KEY, &spec, None));
    Ok(())
}

/// Places that are not in the file, files that are not there or were changed since are refused at once.
pub fn wrong_external_places(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let path = harness.source("s.nc", Some(&pattern(100, 1)))?;
    let with = |offset, parts, stride, length| ExternalSpec {
        path: &path,
        offset,
        parts,
        stride,
        content: ExternalContent::Bytes(length),
        seen: None,
    };
    for spec in [
        with(0, 1, 0, 101),
        with(100, 1, 0, 1),
        with(u64::MAX, 1, 0, 2),
        with(0, 0, 1, 10),
        with(0, 3, 10, 10),
        with(0, 2, 4, 10),
        with(0, 11, 10, 22),
        with(0, u64::MAX, u64::MAX, u64::MAX),
    ] {
        names(&fails("a wrong place", ErrorKind::Invalid, take_parts(&store, KEY, &spec, None)), "s.nc");
    }
    let seen = Some(FileState { nbytes: 100, mtime: 12 });
    let spec = ExternalSpec { seen, ..with(0, 1, 0, 100) };
    fails("a file changed since", ErrorKind::Conflict, take_parts(&store, KEY, &spec, None));
    let missing = path.with_file_name("missing.nc");
    let spec = ExternalSpec { path: &missing, ..with(0, 1, 0, 100) };
    names(&fails("no file", ErrorKind::NotFound, take_parts(&store, KEY, &spec, None)), "missing.nc");
    assert_eq!(store.unflushed(), 0);
    Ok(())
}
