//! Arrays in files of the store's own folder, to which more is added while they stand.
//!
//! A store without a folder takes none: there each behaviour shows that.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, copy_box};
use fieldstone_format::crc;
use fieldstone_journal::Session;

use super::*;

const KEY: &str = "run=a,variable=t,step=0";
const FILE: &str = "arrays/a/0123/t one.array";

/// An array of a file's content, in blocks of this number of bytes.
struct Stored<'a> {
    content: &'a [u8],
    offset: usize,
    dtype: DType,
    shape: &'a [u64],
    block: usize,
    holes: u64,
}

impl Stored<'_> {
    fn raw(&self) -> &[u8] {
        let length = self.shape.iter().product::<u64>() as usize * self.dtype.size();
        &self.content[self.offset..self.offset + length]
    }

    fn archive(&self, store: &Store, key: &str, transaction: Option<Id>) -> Result<()> {
        let sums: Vec<u32> = self.raw().chunks(self.block).map(crc).collect();
        let spec = StoredArraySpec {
            path: FILE,
            offset: self.offset as u64,
            dtype: self.dtype,
            shape: self.shape,
            fill: None,
            block: self.block as u64,
            sums: &sums,
            holes: self.holes,
        };
        archive(store, key, &spec, transaction)
    }
}

fn archive(store: &Store, key: &str, spec: &StoredArraySpec<'_>, transaction: Option<Id>) -> Result<()> {
    let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
    with_key(key, |pairs| store.archive_stored(pairs, spec, &options))
}

fn field(store: &Store, key: &str) -> Result<crate::Field> {
    with_key(key, |pairs| store.get(pairs, &ReadOptions::default()))
}

fn lines(store: &Store) -> Result<Vec<ListEntry>> {
    store.list(&Request::new(), &ListOptions::default())?.collect()
}

/// Puts the file into the store's folder; `false` where there is none, which refuses arrays in files.
fn put_inside(harness: &dyn Harness, content: &[u8]) -> Result<bool> {
    if harness.inside(FILE, Some(content))?.is_some() {
        return Ok(true);
    }
    let store = open(harness, 0)?;
    let array = Stored { content, offset: 0, dtype: DType::parse("|u1")?, shape: &[1], block: 1, holes: 0 };
    fails("a file of a store without a folder", ErrorKind::Invalid, array.archive(&store, KEY, None));
    assert_eq!(store.unflushed(), 0);
    Ok(false)
}

fn integers(head: &[u8], of: std::ops::Range<i32>) -> Vec<u8> {
    [head, &of.flat_map(i32::to_be_bytes).collect::<Vec<u8>>()].concat()
}

/// An array in a file of the store is listed, read, verified, replaced and removed like any other, whatever is
/// added to the file.
pub fn stored_arrays_read_like_others(harness: &dyn Harness) -> Result<()> {
    let content = integers(b"head", 0..24);
    if !put_inside(harness, &content)? {
        return Ok(());
    }
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let dtype = DType::parse(">i4")?;
    let array = Stored { content: &content, offset: 4, dtype, shape: &[4, 6], block: 20, holes: 0 };
    array.archive(&a, KEY, None)?;
    fails("before the flush", ErrorKind::NotFound, get(&b, KEY));
    flush(harness, &a)?;
    let grown = [&content[..], &pattern(500, 3)].concat();
    for state in [&content, &grown] {
        let path = harness.inside(FILE, Some(state))?;
        for store in [&a, &b, &open(harness, 2)?] {
            let found = field(store, KEY)?;
            assert_eq!((found.read()?, found.dtype()?), (content[4..].to_vec(), Some(dtype)));
            let part = IndexBox::unbounded(vec![1, 2], vec![2, 3])?;
            let expected: Vec<u8> =
                [8i32, 9, 10, 14, 15, 16].into_iter().flat_map(i32::to_be_bytes).collect();
            assert_eq!(found.read_box(Some(&part))?, expected);
            let stands =
                found.stored_array()?.map(|at| (at.path, at.offset, at.block, at.sums.len(), at.holes));
            assert_eq!(stands, path.clone().map(|path| (path, 4, 20, 5, 0)));
            let entries = lines(store)?;
            assert_eq!((entries[0].chunks.as_deref(), found.chunks()), (Some(&[1, 5][..]), Some(vec![1, 5])));
            assert_eq!(entries[0].place.as_ref().map(ToString::to_string), Some(format!("{FILE}:4")));
            assert!(
                entries[0].complete
                    && entries[0].nbytes == 96
                    && entries[0].shape.as_deref() == Some(&[4, 6])
            );
            let fields = store.retrieve(&request("run=a")?, &RetrieveOptions::default())?;
            let mut out = vec![0; 96];
            assert_eq!((fields.read_into(&mut out)?, &out[..]), (96, &content[4..]));
            let stats = store.stats(&Request::new())?;
            assert_eq!((stats.fields, stats.bytes, stats.stored_bytes), (1, 96, 96));
            let report = store.verify(&Request::new())?;
            assert!(report.ok() && report.bytes == 96, "{:?}", report.damaged);
            assert!(store.dump(&Request::new())?.iter().any(|line| line.contains("t one.array at 4")));
        }
    }
    // A piece lies upon it as upon any other; then it is not in that file alone any more.
    let nine = 9i32.to_be_bytes();
    let piece = Value::Piece { data: &nine, dtype, start: &[3, 5], count: &[1, 1], shape: &[4, 6] };
    with_key(KEY, |pairs| a.archive(pairs, piece, &ArchiveOptions::default()))?;
    flush(harness, &a)?;
    assert_eq!(get(&b, KEY)?, [&content[4..96], &nine].concat());
    assert_eq!(field(&b, KEY)?.stored_array()?, None);
    Ok(())
}

/// Boxes of arrays of many blocks equal those of the same array inside.
pub fn stored_arrays_of_every_layout(harness: &dyn Harness) -> Result<()> {
    let content = pattern(300_000, 7);
    if !put_inside(harness, &content)? {
        return Ok(());
    }
    let store = open(harness, 0)?;
    let cases: [(&str, &[u64], usize, usize); 7] = [
        (">f4", &[100, 300], 4_000, 100),
        (">i2", &[3, 7_000], 13_002, 13),
        ("<f8", &[4, 5, 100, 3], 520, 8),
        ("|S1", &[20_000], 999, 3),
        ("<c16", &[1, 9, 1, 11], 1 << 20, 0),
        (">i4", &[], 4, 1),
        ("|S12", &[17, 2], 12, 299_000),
    ];
    let stored = |case: &(&str, &'static [u64], usize, usize)| -> Result<Stored<'_>> {
        let (dtype, shape, block, offset) = *case;
        Ok(Stored { content: &content, offset, dtype: DType::parse(dtype)?, shape, block, holes: 0 })
    };
    for (i, case) in cases.iter().enumerate() {
        stored(case)?.archive(&store, &format!("run=a,variable=t,step={i}"), None)?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    for (i, case) in cases.iter().enumerate() {
        let array = stored(case)?;
        let (raw, shape, item) = (array.raw(), array.shape, array.dtype.size());
        let found = field(&reader, &format!("run=a,variable=t,step={i}"))?;
        assert!(found.read()? == raw, "{} {shape:?}", array.dtype);
        for round in 0..6u64 {
            let start: Vec<u64> = shape.iter().map(|n| n * round / 7).collect();
            let count = shape.iter().zip(&start).map(|(n, s)| (n - s).div_ceil(round % 3 + 1)).collect();
            let region = IndexBox::unbounded(start, count)?;
            let mut expected = vec![0; region.element_count()? as usize * item];
            copy_box(raw, &IndexBox::whole(shape)?, &mut expected, &region, &region, item)?;
            assert!(found.read_box(Some(&region))? == expected, "{} {shape:?} [{region}]", array.dtype);
        }
    }
    assert!(reader.verify(&Request::new())?.ok());
    Ok(())
}

/// An array that nobody wrote all of is incomplete, and read where that is allowed.
pub fn stored_arrays_with_holes(harness: &dyn Harness) -> Result<()> {
    let content = integers(b"", 0..24);
    if !put_inside(harness, &content)? {
        return Ok(());
    }
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let dtype = DType::parse(">i4")?;
    Stored { content: &content, offset: 0, dtype, shape: &[4, 6], block: 96, holes: 7 }
        .archive(&a, KEY, None)?;
    flush(harness, &a)?;
    let row = IndexBox::unbounded(vec![2, 0], vec![1, 6])?;
    for store in [&a, &b] {
        assert!(lines(store)?.iter().all(|line| !line.complete));
        let found = field(store, KEY)?;
        assert!(!found.is_complete()?);
        for refused in [
            fails("a strict read", ErrorKind::NotFound, found.read()),
            fails("a strict read of a box", ErrorKind::NotFound, found.read_box(Some(&row))),
            fails(
                "a strict retrieve",
                ErrorKind::NotFound,
                store.retrieve(&request("run=a")?, &RetrieveOptions::default()),
            ),
        ] {
            names(&refused, "7 of its 24 elements");
            names(&refused, "step=0");
        }
        assert_eq!((found.stored_array()?.map(|at| at.holes), found.holes()?), (Some(7), 7));
        fails("boxes that were written", ErrorKind::NotFound, found.written());
        let lenient = found.lenient();
        assert_eq!(
            (lenient.read()?, lenient.read_box(Some(&row))?),
            (content.clone(), content[48..72].to_vec())
        );
        let options = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
        assert_eq!(store.retrieve(&request("run=a")?, &options)?.get(0)?.read()?, content);
        assert!(store.verify(&Request::new())?.ok());
    }
    // The elements that pieces cover exist; together the pieces make the field whole.
    for (row, start) in [(2u64, 0u64), (0, 0), (1, 0), (3, 0)] {
        let nine = 9i32.to_be_bytes().repeat(6);
        let piece = Value::Piece { data: &nine, dtype, start: &[row, start], count: &[1, 6], shape: &[4, 6] };
        with_key(KEY, |pairs| a.archive(pairs, piece, &ArchiveOptions::default()))?;
        flush(harness, &a)?;
        let region = IndexBox::unbounded(vec![row, 0], vec![1, 6])?;
        assert_eq!(field(&b, KEY)?.read_box(Some(&region))?, nine);
        let whole = field(&b, KEY)?;
        assert_eq!(whole.is_complete()?, row == 3);
        assert_eq!(whole.read().is_ok(), row == 3);
        assert_eq!(whole.written().is_ok(), row == 3);
    }
    Ok(())
}

/// A file that is cut, gone or changed is Corrupt, named with the key; a partial read compares only the parts that it
/// touches. The rest stays readable.
pub fn a_damaged_file_of_the_store_is_corrupt(harness: &dyn Harness) -> Result<()> {
    let mut content = pattern(30_000, 1);
    if !put_inside(harness, &content)? {
        return Ok(());
    }
    let store = open(harness, 0)?;
    let dtype = DType::parse(">i4")?;
    let array = Stored { content: &content, offset: 0, dtype, shape: &[3, 2_500], block: 1_000, holes: 0 };
    array.archive(&store, KEY, None)?;
    put(&store, "run=b,variable=t", b"inside")?;
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let held = field(&reader, KEY)?;
    let corrupt = |what: &str, rows: &[u64]| -> Result<()> {
        for error in
            [fails(what, ErrorKind::Corrupt, get(&reader, KEY)), fails(what, ErrorKind::Corrupt, held.read())]
        {
            names(&error, "step=0");
            names(&error, "t one.array");
        }
        for row in 0..3 {
            let region = IndexBox::unbounded(vec![row, 0], vec![1, 2_500])?;
            assert_eq!(held.read_box(Some(&region)).is_ok(), rows.contains(&row), "{what}, row {row}");
        }
        let report = reader.verify(&Request::new())?;
        assert_eq!(report.damaged.len(), 1, "{what}: {:?}", report.damaged);
        assert!(report.damaged[0].key.as_deref().is_some_and(|key| key.contains("step=0")));
        assert_eq!(report.damaged[0].file, FILE);
        assert_eq!(listed(&reader, "")?.len(), 2);
        assert_eq!(get(&reader, "run=b,variable=t")?, b"inside");
        Ok(())
    };
    harness.inside(FILE, Some(&content[..29_999]))?;
    corrupt("a shorter file", &[])?;
    harness.inside(FILE, None)?;
    corrupt("no file", &[])?;
    content[15_000] ^= 1;
    harness.inside(FILE, Some(&content))?;
    corrupt("a changed file", &[0, 2])?;
    content[15_000] ^= 1;
    harness.inside(FILE, Some(&content))?;
    assert!(get(&reader, KEY)? == content && reader.verify(&Request::new())?.ok());
    Ok(())
}

/// Arrays in files take part in transactions and older versions; they are refused where none writes.
pub fn stored_arrays_in_transactions_and_versions(harness: &dyn Harness) -> Result<()> {
    let content = pattern(128, 1);
    if !put_inside(harness, &content)? {
        return Ok(());
    }
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let dtype = DType::parse(">i2")?;
    let at = |offset| Stored { content: &content, offset, dtype, shape: &[32], block: 10, holes: 0 };
    let id = a.begin()?;
    at(0).archive(&b, KEY, Some(id))?;
    b.flush(&Session::from(id))?;
    harness.settle();
    fails("before the commit", ErrorKind::NotFound, get(&a, KEY));
    assert_eq!(get_in(&a, KEY, Some(id))?, content[..64]);
    a.decide(id, true, &Session::default())?;
    harness.settle();
    assert_eq!(get(&b, KEY)?, content[..64]);
    let version = a.version()?;
    at(64).archive(&a, KEY, None)?;
    flush(harness, &a)?;
    assert_eq!((get(&b, KEY)?, count_all(&b)?), (content[64..].to_vec(), 2));
    b.remove(&request(KEY)?, &RemoveOptions::default())?;
    flush(harness, &b)?;
    fails("what was removed", ErrorKind::NotFound, get(&a, KEY));
    let old = harness.open(1, &Opening { at: Some(version), ..Opening::default() })?;
    assert_eq!(get(&old, KEY)?, content[..64]);
    let aborted = a.begin()?;
    at(0).archive(&a, KEY, Some(aborted))?;
    a.flush(&Session::from(aborted))?;
    a.decide(aborted, false, &Session::default())?;
    harness.settle();
    fails("what was aborted", ErrorKind::NotFound, get(&b, KEY));
    let reader = harness.open(1, &Opening { access: Access::Read, ..Opening::default() })?;
    fails("an array of a reader", ErrorKind::Denied, at(0).archive(&reader, KEY, None));
    Ok(())
}

/// A writer of ordinary fields goes on with arrays in files: what waited, in any session, is there with them,
/// and merging keeps all of it.
pub fn logs_of_both_versions_are_read_together(harness: &dyn Harness) -> Result<()> {
    let content = pattern(64, 1);
    if !put_inside(harness, &content)? {
        return Ok(());
    }
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let array = Stored { content: &content, offset: 0, dtype: DType::F8, shape: &[8], block: 16, holes: 0 };
    put(&a, "run=a,variable=u,step=0", b"before")?;
    flush(harness, &a)?;
    // More than a frame takes, equal bytes, and a transaction, all of which wait in the log that is left.
    let (large, shared) = (pattern(1_500_000, 2), pattern(700_000, 3));
    let id = a.begin()?;
    put_in(&a, "run=a,variable=v,step=1", &large, Some(id))?;
    let options = ArchiveOptions { share: true, ..ArchiveOptions::default() };
    let share = |step: &str| {
        let key = [("run", "a"), ("variable", "s"), ("step", step)];
        a.archive(&key, Value::Bytes(&shared), &options)
    };
    share("1")?;
    flush(harness, &a)?;
    share("2")?;
    put(&a, "run=a,variable=u,step=1", &large)?;
    array.archive(&a, KEY, None)?;
    put(&a, "run=a,variable=u,step=2", b"after")?;
    flush(harness, &a)?;
    for step in 3..9 {
        put(&a, &format!("run=a,variable=u,step={step}"), b"later")?;
        array.archive(&a, &format!("run=a,variable=t,step={step}"), None)?;
        flush(harness, &a)?;
    }
    fails("before the commit", ErrorKind::NotFound, get(&b, "run=a,variable=v,step=1"));
    a.decide(id, true, &Session::default())?;
    harness.settle();
    for store in [&a, &b, &open(harness, 2)?] {
        assert_eq!(get(store, "run=a,variable=u,step=0")?, b"before");
        assert!(get(store, "run=a,variable=v,step=1")? == large, "what a transaction had waiting");
        assert!(get(store, "run=a,variable=u,step=1")? == large);
        assert!(
            ["1", "2"]
                .iter()
                .all(|s| get(store, &format!("run=a,variable=s,step={s}")).ok().as_ref() == Some(&shared))
        );
        assert_eq!(get(store, "run=a,variable=u,step=2")?, b"after");
        assert_eq!(get(store, KEY)?, content);
        for step in 3..9 {
            assert_eq!(get(store, &format!("run=a,variable=u,step={step}"))?, b"later");
            assert_eq!(get(store, &format!("run=a,variable=t,step={step}"))?, content);
        }
        let report = store.verify(&Request::new())?;
        assert!(report.ok(), "{:?}", report.damaged);
    }
    Ok(())
}

/// Places that are none, and checksums that are not those of its blocks, are refused at once.
pub fn wrong_stored_places(harness: &dyn Harness) -> Result<()> {
    if !put_inside(harness, b"x")? {
        return Ok(());
    }
    let store = open(harness, 0)?;
    let right = StoredArraySpec {
        path: FILE,
        offset: 0,
        dtype: DType::F8,
        shape: &[4],
        fill: None,
        block: 16,
        sums: &[1, 2],
        holes: 0,
    };
    for (what, spec) in [
        ("an absolute path", StoredArraySpec { path: "/etc/passwd", ..right }),
        ("a path out of the store", StoredArraySpec { path: "arrays/../../x", ..right }),
        ("no path", StoredArraySpec { path: "", ..right }),
        ("a place beyond 64 bits", StoredArraySpec { offset: u64::MAX - 8, ..right }),
        ("blocks cut within elements", StoredArraySpec { block: 12, ..right }),
        ("too few checksums", StoredArraySpec { sums: &[1], ..right }),
        ("too many checksums", StoredArraySpec { sums: &[1, 2, 3], ..right }),
        ("more holes than elements", StoredArraySpec { holes: 5, ..right }),
        ("a fill value of another type", StoredArraySpec { fill: Some(b"ab"), ..right }),
        ("an array without elements", StoredArraySpec { shape: &[4, 0], sums: &[], ..right }),
        ("an array beyond 64 bits", StoredArraySpec { shape: &[1 << 40, 1 << 40], ..right }),
    ] {
        names(&fails(what, ErrorKind::Invalid, archive(&store, KEY, &spec, None)), "step=0");
    }
    assert_eq!(store.unflushed(), 0);
    Ok(())
}
