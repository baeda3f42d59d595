//! Retrieving by request.

use std::io::{Read, Seek, SeekFrom};

use fieldstone_core::{Error, Result};

use super::visibility::strict;
use super::*;

fn steps(store: &Store, harness: &dyn Harness, steps: &[&str]) -> Result<()> {
    for step in steps {
        put(store, &format!("run=a,variable=t,step={step}"), step.as_bytes())?;
    }
    flush(harness, store)
}

fn joined(fields: &crate::Fields) -> Result<String> {
    let mut all = Vec::new();
    for field in fields.iter() {
        all.extend(field?.read()?);
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// Fields come in the order of the request, whatever the order they were stored in.
pub fn b09_request_order(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    steps(&a, harness, &["3", "1"])?;
    steps(&b, harness, &["2"])?;
    let order =
        |text: &str| joined(&b.retrieve(&request(&format!("run=a,variable=t,step={text}"))?, &strict())?);
    assert_eq!(order("1/2/3")?, "123");
    assert_eq!(order("3/2/1")?, "321");
    assert_eq!(order("1/1")?, "1");
    assert_eq!(order("*")?, "123");
    put(&a, "run=a,variable=s,step=1", b"s")?;
    put(&a, "run=a,variable=s,step=2", b"S")?;
    flush(harness, &a)?;
    let both = b.retrieve(&request("run=a,variable=t/s,step=2/1")?, &strict())?;
    assert_eq!(joined(&both)?, "21Ss");
    // That many values make the store walk the index instead of looking each of them up.
    let many: Vec<String> = (0..400).rev().map(|step| step.to_string()).collect();
    let lenient = RetrieveOptions { strict: false, ..strict() };
    let many = request(&format!("run=a,variable=t,step={}", many.join("/")))?;
    let fields = b.retrieve(&many, &lenient)?;
    assert_eq!((joined(&fields)?, fields.missing_count()), ("321".to_owned(), 397));
    Ok(())
}

/// Strict retrieves refuse before any byte and name what is missing; lenient ones give the rest.
pub fn b10_strict_and_lenient(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    steps(&store, harness, &["0", "6"])?;
    let asked = request("run=a,variable=t/u,step=0/6/99")?;
    let error = fails("a strict retrieve", ErrorKind::NotFound, store.retrieve(&asked, &strict()));
    names(&error, "99");
    names(&error, "u");
    let lenient = RetrieveOptions { strict: false, ..strict() };
    let fields = store.retrieve(&asked, &lenient)?;
    assert_eq!((fields.len(), fields.missing_count(), joined(&fields)?), (2, 4, "06".to_owned()));
    let missing = fields.missing(10);
    assert_eq!(missing.len(), 4);
    assert!(missing[0].contains("99") && missing[0].contains('t'), "{missing:?}");
    // Never for an absent keyword, or for everything.
    assert_eq!(store.retrieve(&request("run=a")?, &strict())?.len(), 2);
    assert_eq!(store.retrieve(&request("run=a,step=*")?, &strict())?.len(), 2);
    assert_eq!(store.retrieve(&Request::new(), &strict())?.len(), 2);
    fails("a run that is not there", ErrorKind::NotFound, store.retrieve(&request("run=z")?, &strict()));
    assert_eq!(store.retrieve(&request("run=z")?, &lenient)?.len(), 0);
    Ok(())
}

/// A schema's one-value exclusion excludes that value.
pub fn b32_one_value_is_left_out(harness: &dyn Harness) -> Result<()> {
    let text = "step: Integer;\n[ run=!x [ variable [ step ] ] ]\n[ run=x [ variable, member [ step ] ] ]";
    let schema = fieldstone_core::schema::Schema::parse(text)?;
    let store = harness.open(0, &Opening { schema: Some(schema), ..Opening::default() })?;
    put(&store, "run=a,variable=t,step=1", b"a")?;
    put(&store, "run=x,variable=t,member=1,step=1", b"x")?;
    fails("the excluded value", ErrorKind::Invalid, put(&store, "run=x,variable=t,step=1", b"no"));
    flush(harness, &store)?;
    assert_eq!(listed(&open(harness, 1)?, "")?.len(), 2);
    Ok(())
}

/// Ranges, gaps and wildcards select what exists among them in a list.
pub fn ranges_and_everything(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    for run in ["a", "b"] {
        for step in 0..20 {
            put(&store, &format!("run={run},variable=t,step={step}"), b"x")?;
        }
    }
    flush(harness, &store)?;
    for (text, expected) in [
        ("", 40),
        ("run=a", 20),
        ("step=0/to/10/by/5", 6),
        ("run=a/b/c,step=19/20/21", 2),
        ("run=*,step=18/to/30", 4),
        ("run=b,variable=*,step=*", 20),
        ("variable=none", 0),
    ] {
        assert_eq!(listed(&store, text)?.len(), expected, "{text}");
    }
    Ok(())
}

/// Two retrieves concatenate; a field of each is found by its index.
pub fn fields_concatenate(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    steps(&store, harness, &["1", "2", "3"])?;
    let first = store.retrieve(&request("run=a,variable=t,step=3/1")?, &strict())?;
    let second = store.retrieve(&request("run=a,variable=t,step=2/3")?, &strict())?;
    let both = first.concat(second);
    assert_eq!((both.len(), joined(&both)?), (4, "3123".to_owned()));
    assert_eq!(both.get(2)?.read()?, b"2");
    fails("a field behind the last", ErrorKind::Invalid, both.get(4));
    let mut buffer = vec![0; both.total_bytes()? as usize];
    assert_eq!((both.read_into(&mut buffer)?, &buffer[..]), (4, &b"3123"[..]));
    fails("a buffer that is too short", ErrorKind::Invalid, both.read_into(&mut buffer[..3]));
    Ok(())
}

/// The fields of a retrieve as one file: reading and seeking anywhere.
pub fn a_reader_seeks(harness: &dyn Harness) -> Result<()> {
    let store = open(harness, 0)?;
    let values = [pattern(700_000, 1), Vec::new(), pattern(10, 2), pattern(1_300_000, 3)];
    for (i, value) in values.iter().enumerate() {
        put(&store, &format!("run=a,variable=t,step={i}"), value)?;
    }
    flush(harness, &store)?;
    let all = values.concat();
    let fields = open(harness, 1)?.retrieve(&request("run=a,variable=t,step=0/1/2/3")?, &strict())?;
    let io = |e: std::io::Error| Error::internal("reading the file of fields").with_source(e);
    let mut reader = fields.reader();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).map_err(io)?;
    assert!(read == all);
    for (to, length) in [(699_990, 30), (0, 5), (1_999_000, 1_010), (700_005, 100_000)] {
        reader.seek(SeekFrom::Start(to)).map_err(io)?;
        let mut part = vec![0; length];
        reader.read_exact(&mut part).map_err(io)?;
        assert!(part == all[to as usize..to as usize + length], "{length} bytes at {to}");
    }
    assert_eq!(reader.seek(SeekFrom::End(-1)).map_err(io)?, all.len() as u64 - 1);
    Ok(())
}
