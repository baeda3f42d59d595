//! The calls that a store refuses, and the errors that it gives.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::schema::Schema;
use fieldstone_journal::Session;

use super::*;

/// Keys that lack a keyword, have one too many, or a list; unknown keywords in requests; values that
/// a schema does not take; broken schemas.
pub fn b19_wrong_keys_and_requests(harness: &dyn Harness) -> Result<()> {
    let text = "step: Integer;\n[ class=od/rd, expver [ type [ step, param ] ] ]";
    let schema = Schema::parse(text)?;
    let store = harness.open(0, &Opening { schema: Some(schema), ..Opening::default() })?;
    put(&store, "class=rd,expver=1,type=fc,step=0,param=t", b"x")?;
    flush(harness, &store)?;
    let archive = |pairs: &Pairs<'_>| store.archive(pairs, Value::Bytes(b"x"), &ArchiveOptions::default());
    let full = [("class", "rd"), ("expver", "1"), ("type", "fc"), ("step", "0"), ("param", "t")];
    let lacking =
        fails("a key without step", ErrorKind::Invalid, archive(&[full[0], full[1], full[2], full[4]]));
    names(&lacking, "step");
    let mut surplus = full.to_vec();
    surplus.push(("colour", "red"));
    names(&fails("a key too many", ErrorKind::Invalid, archive(&surplus)), "colour");
    let twice = [&full[..], &[("step", "1")]].concat();
    names(&fails("a keyword twice", ErrorKind::Invalid, archive(&twice)), "step");
    let mut listed_value = full;
    listed_value[3] = ("step", "0/6");
    names(&fails("a list in a key", ErrorKind::Invalid, archive(&listed_value)), "step");
    let mut class = full;
    class[0] = ("class", "notaclass");
    let refused = fails("a class the schema does not take", ErrorKind::Invalid, archive(&class));
    names(&refused, "class");
    assert!(["od", "rd"].iter().all(|c| refused.to_string().contains(c)), "{refused}");
    assert_eq!(store.unflushed(), 0, "nothing refused is archived");
    let unknown = store.list(&request("colour=red")?, &ListOptions::default()).map(|_| ());
    names(&fails("an unknown keyword", ErrorKind::Invalid, unknown), "colour");
    let unknown = store.retrieve(&request("stepp=0")?, &RetrieveOptions::default());
    assert!(fails("a misspelt keyword", ErrorKind::Invalid, unknown).to_string().contains("step"));
    let ill_typed = store.list(&request("step=noon")?, &ListOptions::default()).map(|_| ());
    names(&fails("an ill-typed value", ErrorKind::Invalid, ill_typed), "step");
    let broken = Schema::parse("[ a [ b [ c ] ] ]\n[ a [ b [ c [ d ] ] ] ]");
    names(&fails("four levels", ErrorKind::Invalid, broken), "line 2");
    Ok(())
}

/// A handle for reading refuses every writing call.
pub fn b32_reading_only(harness: &dyn Harness) -> Result<()> {
    let writer = open(harness, 0)?;
    put(&writer, "run=a,variable=t", b"x")?;
    flush(harness, &writer)?;
    let reader = harness.open(1, &Opening { access: Access::Read, ..Opening::default() })?;
    assert_eq!(get(&reader, "run=a,variable=t")?, b"x");
    let refused: [(&str, Result<()>); 5] = [
        ("archive", put(&reader, "run=a,variable=t", b"y")),
        ("flush", reader.flush(&Session::default())),
        ("begin", reader.begin().map(drop)),
        ("decide", reader.decide(Id([1; 16]), true, &Session::default())),
        (
            "create_field",
            with_key("run=a,variable=t", |key| {
                let spec = FieldSpec { dtype: DType::F8, shape: &[1], fill: None, chunks: None };
                reader.create_field(key, &spec, &ArchiveOptions::default())
            }),
        ),
    ];
    for (call, outcome) in refused {
        let error = fails(call, ErrorKind::Denied, outcome);
        assert!(error.hint().is_some());
    }
    reader.close(&Session::default())?;
    assert_eq!(count_all(&writer)?, 1);
    Ok(())
}

/// Reading where no store is: NotFound; nothing is made there.
pub fn no_store_is_not_found(harness: &dyn Harness) -> Result<()> {
    let read = Opening { access: Access::Read, ..Opening::default() };
    fails("reading no store", ErrorKind::NotFound, harness.open(0, &read));
    let at = Opening { at: Some(harness.foreign_version()), ..Opening::default() };
    fails("a version of no store", ErrorKind::NotFound, harness.open(0, &at));
    // A store opened for archiving that holds nothing yet is empty, and still not there.
    let store = open(harness, 0)?;
    assert_eq!(count_all(&store)?, 0);
    assert!(store.axes(&Request::new(), &ReadOptions::default())?.is_empty());
    assert!(store.verify(&Request::new())?.ok());
    fails("get from nothing", ErrorKind::NotFound, get(&store, "run=a,variable=t"));
    store.flush(&Session::default())?;
    store.close(&Session::default())?;
    harness.settle();
    fails("reading no store", ErrorKind::NotFound, harness.open(1, &read));
    Ok(())
}

/// A store that is to be new must not be there.
pub fn existing_store_conflicts(harness: &dyn Harness) -> Result<()> {
    let create = Opening { access: Access::Create, ..Opening::default() };
    let store = harness.open(0, &create)?;
    put(&store, "run=a,variable=t", b"x")?;
    flush(harness, &store)?;
    fails("creating it again", ErrorKind::Conflict, harness.open(1, &create));
    put(&store, "run=a,variable=t", b"y")?;
    flush(harness, &store)?;
    assert_eq!(get(&open(harness, 1)?, "run=a,variable=t")?, b"y");
    Ok(())
}

/// A store keeps its schema: another one is refused at opening, or at the first flush of two first
/// writers.
pub fn another_schema_conflicts(harness: &dyn Harness) -> Result<()> {
    let simulation = open_as(harness, 0, "simulation")?;
    let mars = open_as(harness, 1, "mars")?;
    put(&simulation, "run=a,variable=t", b"x")?;
    flush(harness, &simulation)?;
    fails("opening with another schema", ErrorKind::Conflict, open_as(harness, 1, "mars"));
    assert_eq!(open_as(harness, 1, "simulation")?.schema().name(), Some("simulation"));
    assert_eq!(open(harness, 1)?.schema().name(), Some("simulation"));
    let key = "class=rd,expver=1,stream=oper,type=fc,param=130";
    fails(
        "flushing under another schema",
        ErrorKind::Conflict,
        put(&mars, key, b"x").and_then(|()| mars.flush(&Session::default())),
    );
    harness.settle();
    assert_eq!(count_all(&simulation)?, 1);
    Ok(())
}

/// Values whose bytes do not fit what is said of them; nothing of them is archived.
pub fn wrong_values(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let data = [0; 64];
    let plain = ArchiveOptions::default();
    let chunked =
        |chunks: &[u64]| ArchiveOptions { chunks: Some(chunks.to_vec()), ..ArchiveOptions::default() };
    let cases: [(&str, Value<'_>, ArchiveOptions); 7] = [
        ("too few bytes", Value::Array { data: &data, dtype: DType::F8, shape: &[9] }, plain.clone()),
        ("too many bytes", Value::Array { data: &data, dtype: DType::F8, shape: &[7] }, plain.clone()),
        (
            "a piece outside",
            Value::Piece { data: &data, dtype: DType::F8, start: &[3], count: &[8], shape: &[10] },
            plain.clone(),
        ),
        (
            "a piece of another rank",
            Value::Piece { data: &data, dtype: DType::F8, start: &[0], count: &[8], shape: &[8, 1] },
            plain.clone(),
        ),
        (
            "a shape beyond 64 bits",
            Value::Array { data: &data, dtype: DType::F8, shape: &[u64::MAX, u64::MAX] },
            plain,
        ),
        (
            "chunks of another rank",
            Value::Array { data: &data, dtype: DType::F8, shape: &[8] },
            chunked(&[2, 2]),
        ),
        ("chunks of opaque bytes", Value::Bytes(&data), chunked(&[8])),
    ];
    for (what, value, options) in cases {
        let outcome = with_key("run=a,variable=t", |key| store.archive(key, value, &options));
        names(&fails(what, ErrorKind::Invalid, outcome), "variable=t");
    }
    assert_eq!(store.unflushed(), 0);
    Ok(())
}

/// Boxes outside the array, of another rank, or beyond 64 bits.
pub fn wrong_boxes(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let data = doubles((0..12).map(f64::from));
    let value = Value::Array { data: &data, dtype: DType::F8, shape: &[3, 4] };
    with_key("run=a,variable=t", |key| store.archive(key, value, &ArchiveOptions::default()))?;
    flush(harness, &store)?;
    let field = with_key("run=a,variable=t", |key| store.get(key, &ReadOptions::default()))?;
    for (start, count) in [
        (vec![0, 0], vec![3, 5]),
        (vec![3, 0], vec![1, 1]),
        (vec![0], vec![1]),
        (vec![0, 0, 0], vec![1, 1, 1]),
        (vec![0, u64::MAX], vec![1, 1]),
        (vec![0, 1], vec![1, u64::MAX]),
    ] {
        let outcome = IndexBox::unbounded(start, count).and_then(|region| field.read_box(Some(&region)));
        fails("a box outside", ErrorKind::Invalid, outcome);
    }
    let region = IndexBox::unbounded(vec![1, 1], vec![2, 2])?;
    assert_eq!(field.read_box(Some(&region))?, doubles([5.0, 6.0, 9.0, 10.0]));
    fails("a range of an array", ErrorKind::Invalid, field.read_range(0, &mut [0]));
    Ok(())
}
