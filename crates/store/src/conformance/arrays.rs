//! Values of every kind: element types, ranks, chunks, compression, parts of them.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Scalar};

use super::*;

fn archive(store: &Store, key: &str, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
    with_key(key, |pairs| store.archive(pairs, value, options))
}

fn field(store: &Store, key: &str) -> Result<crate::Field> {
    with_key(key, |pairs| store.get(pairs, &ReadOptions::default()))
}

fn region(start: &[u64], count: &[u64]) -> Result<IndexBox> {
    IndexBox::unbounded(start.to_vec(), count.to_vec())
}

/// The elements of a box of an array of `size`-byte elements, taken one by one.
fn cut(data: &[u8], size: usize, shape: &[u64], start: &[u64], count: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let total: u64 = count.iter().product();
    for i in 0..total {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for d in (0..shape.len()).rev() {
            at += (start[d] + rest % count[d]) * stride;
            rest /= count[d];
            stride *= shape[d];
        }
        out.extend_from_slice(&data[at as usize * size..][..size]);
    }
    out
}

/// Element types of all kinds and both byte orders keep type, shape and every bit.
pub fn dtypes_of_every_kind(harness: &dyn Harness) -> Result<()> {
    let types = [
        "|b1", "|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "|u1", "<u2", ">u2", "<u4", ">u4", "<u8",
        ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16", "|S1", "|S7", "<U3",
        ">U3", "<M8[ns]", ">M8[D]", "<m8[25s]", ">m8[ms]",
    ];
    let store = open(harness, 0)?;
    let shape = [3, 5];
    let value = |i: usize, dtype: DType| {
        let mut data = pattern(15 * dtype.size(), i as u64);
        if dtype == DType::BOOL {
            data.iter_mut().for_each(|b| *b &= 1);
        }
        data
    };
    for (i, name) in types.iter().enumerate() {
        let dtype = DType::parse(name)?;
        let data = value(i, dtype);
        let array = Value::Array { data: &data, dtype, shape: &shape };
        archive(
            &store,
            &format!("run=a,variable=t,step={i},type=\"{name}\""),
            array,
            &ArchiveOptions::default(),
        )?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    for (i, name) in types.iter().enumerate() {
        let dtype = DType::parse(name)?;
        let field = field(&reader, &format!("run=a,variable=t,step={i},type=\"{name}\""))?;
        assert_eq!((field.dtype()?, field.shape()?), (Some(dtype), Some(shape.to_vec())));
        assert_eq!(field.dtype()?.map(|d| d.to_string()).as_deref(), Some(*name));
        let data = value(i, dtype);
        assert_eq!(field.read()?, data, "{name}");
        let part = field.read_box(Some(&region(&[1, 2], &[2, 3])?))?;
        assert_eq!(part, cut(&data, dtype.size(), &shape, &[1, 2], &[2, 3]), "{name}");
    }
    let entries: Vec<ListEntry> =
        reader.list(&Request::new(), &ListOptions::default())?.collect::<Result<_>>()?;
    assert_eq!(entries.len(), types.len());
    for entry in &entries {
        let size = entry.dtype.map_or(0, DType::size) as u64;
        assert_eq!(
            (entry.nbytes, entry.shape.as_deref(), entry.complete),
            (15 * size, Some(&shape[..]), true)
        );
    }
    let data = doubles([3.0, f64::NAN, -7.5, 100.0]);
    archive(
        &store,
        "run=s,variable=t",
        Value::Array { data: &data, dtype: DType::F8, shape: &[4] },
        &ArchiveOptions::default(),
    )?;
    flush(harness, &store)?;
    let summary = field(&reader, "run=s,variable=t")?.summary();
    let extremes = summary.map(|s| (s.min, s.max, s.missing));
    assert_eq!(extremes, Some((Some(Scalar::Float(-7.5)), Some(Scalar::Float(100.0)), 1)));
    Ok(())
}

/// Arrays without dimensions, without elements, and with many dimensions.
pub fn arrays_of_every_rank(harness: &dyn Harness) -> Result<()> {
    let shapes: [&[u64]; 8] =
        [&[], &[1], &[0], &[7, 0, 2], &[3, 4], &[2, 3, 4], &[1, 1, 1, 1, 6], &[2, 1, 2, 1, 2, 1, 2, 1, 2]];
    let store = open(harness, 0)?;
    let value = |shape: &[u64]| pattern(4 * shape.iter().product::<u64>() as usize, shape.len() as u64);
    for (i, shape) in shapes.iter().enumerate() {
        let array = Value::Array { data: &value(shape), dtype: DType::I4, shape };
        archive(&store, &format!("run=a,variable=t,step={i}"), array, &ArchiveOptions::default())?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    for (i, shape) in shapes.iter().enumerate() {
        let field = field(&reader, &format!("run=a,variable=t,step={i}"))?;
        assert_eq!((field.shape()?, field.read()?), (Some(shape.to_vec()), value(shape)), "{shape:?}");
        assert_eq!(field.read_box(Some(&IndexBox::whole(shape)?))?, value(shape), "{shape:?}");
        assert!(field.is_complete()?, "{shape:?}");
    }
    Ok(())
}

/// Any range of opaque bytes that are stored in several blocks.
pub fn opaque_ranges_across_blocks(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let data = pattern(2_500_000, 9);
    for (key, compression) in
        [("run=plain,variable=t", None), ("run=packed,variable=t", Some(Compression::Zstd(1)))]
    {
        let options = ArchiveOptions { compression, ..ArchiveOptions::default() };
        archive(&store, key, Value::Bytes(&data), &options)?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let last = data.len() as u64;
    for key in ["run=plain,variable=t", "run=packed,variable=t"] {
        let field = field(&reader, key)?;
        for (start, length) in [
            (0, 1),
            (262_140, 10),
            (1_048_570, 20),
            (100, 2_400_000),
            (last - 1, 1),
            (last, 0),
            (0, 2_500_000),
        ] {
            let mut part = vec![0; length];
            field.read_range(start, &mut part)?;
            assert!(part == data[start as usize..start as usize + length], "{key}: {length} at {start}");
        }
        let beyond = fails("a range beyond the end", ErrorKind::Invalid, field.read_range(last, &mut [0]));
        names(&beyond, &last.to_string());
        fails("a range beyond 64 bits", ErrorKind::Invalid, field.read_range(u64::MAX, &mut [0]));
        fails("a box of bytes", ErrorKind::Invalid, field.read_box(Some(&region(&[0], &[1])?)));
        fails("a wrong buffer", ErrorKind::Invalid, field.read_into(&mut [0; 5]));
    }
    Ok(())
}

/// Boxes of arrays in chunks, at the chunks' borders and across them.
pub fn boxes_of_chunked_arrays(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let shape = [37, 41, 11];
    let data = pattern(2 * 37 * 41 * 11, 4);
    let dtype = DType::parse("<i2")?;
    let chunkings: [Option<&[u64]>; 4] = [None, Some(&[8, 8, 8]), Some(&[37, 1, 11]), Some(&[100, 100, 100])];
    for (i, chunks) in chunkings.iter().enumerate() {
        let options = ArchiveOptions {
            chunks: chunks.map(<[u64]>::to_vec),
            compression: (i == 1).then_some(Compression::Zstd(3)),
            ..ArchiveOptions::default()
        };
        let array = Value::Array { data: &data, dtype, shape: &shape };
        archive(&store, &format!("run=a,variable=t,step={i}"), array, &options)?;
    }
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let boxes: [([u64; 3], [u64; 3]); 7] = [
        ([0, 0, 0], [37, 41, 11]),
        ([36, 40, 10], [1, 1, 1]),
        ([7, 7, 7], [2, 2, 2]),
        ([8, 8, 0], [8, 8, 8]),
        ([0, 20, 0], [37, 1, 11]),
        ([5, 0, 3], [20, 41, 1]),
        ([3, 3, 3], [0, 5, 5]),
    ];
    for i in 0..chunkings.len() {
        let field = field(&reader, &format!("run=a,variable=t,step={i}"))?;
        assert!(field.read()? == data, "chunking {i}");
        for (start, count) in &boxes {
            let part = field.read_box(Some(&region(start, count)?))?;
            assert!(part == cut(&data, 2, &shape, start, count), "chunking {i}, {count:?} at {start:?}");
        }
    }
    assert_eq!(field(&reader, "run=a,variable=t,step=1")?.chunks(), Some(vec![8, 8, 8]));
    Ok(())
}

/// Compression is the call's to choose and does not show in what is read.
pub fn compression_per_call(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let even: Vec<u8> = doubles((0..20_000).map(|i| f64::from(i / 100)));
    let choices = [Compression::None, Compression::Zstd(1), Compression::Zstd(9)];
    for (i, compression) in choices.iter().enumerate() {
        let options = ArchiveOptions { compression: Some(*compression), ..ArchiveOptions::default() };
        let array = Value::Array { data: &even, dtype: DType::F8, shape: &[200, 100] };
        archive(&store, &format!("run={i},variable=array"), array, &options)?;
        archive(&store, &format!("run={i},variable=bytes"), Value::Bytes(&even), &options)?;
    }
    // Content that does not shrink is stored as it is.
    let noise = pattern(100_000, 77);
    let options = ArchiveOptions { compression: Some(Compression::Zstd(3)), ..ArchiveOptions::default() };
    archive(&store, "run=noise,variable=bytes", Value::Bytes(&noise), &options)?;
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    let stored = |text: &str| Ok::<u64, Error>(reader.stats(&request(text)?)?.stored_bytes);
    for i in 0..choices.len() {
        assert!(get(&reader, &format!("run={i},variable=array"))? == even);
        assert!(get(&reader, &format!("run={i},variable=bytes"))? == even);
    }
    assert_eq!(stored("run=0")?, 2 * even.len() as u64);
    assert!(stored("run=1")? < even.len() as u64 / 5);
    assert!(get(&reader, "run=noise,variable=bytes")? == noise);
    assert!(stored("run=noise")? <= noise.len() as u64);
    Ok(())
}

/// A flush of many MiB, archived in small and large values, with further flushes before and after.
pub fn large_flushes(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let mut values = Vec::new();
    for round in 0..3u64 {
        for length in [10, 400_000, 5_000_000, 70_000, 1 << 20, 0] {
            let step = values.len();
            values.push(pattern(length, round + step as u64));
            put(&store, &format!("run=a,variable=t,step={step}"), &values[step])?;
        }
        // The first stays small enough for one write; the others go through the data log.
        flush(harness, &store)?;
        let step = values.len();
        values.push(pattern(100, 5));
        put(&store, &format!("run=a,variable=t,step={step}"), &values[step])?;
        flush(harness, &store)?;
    }
    let reader = open(harness, 1)?;
    for (step, value) in values.iter().enumerate() {
        assert!(get(&reader, &format!("run=a,variable=t,step={step}"))? == *value, "step {step}");
    }
    let report = reader.verify(&Request::new())?;
    assert!(report.ok(), "{:?}", report.damaged);
    assert_eq!(report.fields, values.len() as u64);
    Ok(())
}

/// Values without bytes are fields like any other.
pub fn empty_values(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    put(&store, "run=a,variable=t", b"")?;
    flush(harness, &store)?;
    let reader = open(harness, 1)?;
    assert_eq!(get(&reader, "run=a,variable=t")?, b"");
    assert_eq!(field(&reader, "run=a,variable=t")?.nbytes()?, 0);
    put(&reader, "run=a,variable=t", b"now some")?;
    flush(harness, &reader)?;
    assert_eq!(get(&store, "run=a,variable=t")?, b"now some");
    put(&store, "run=a,variable=t", b"")?;
    flush(harness, &store)?;
    assert_eq!(get(&reader, "run=a,variable=t")?, b"");
    assert!(reader.verify(&Request::new())?.ok());
    Ok(())
}
