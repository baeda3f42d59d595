//! The codes of errors in the guide and in C's header are those of `fieldstone::Code`; `python/tests/test_errors.py`
//! compares Python's with the guide's. And the calls that the guide names fail with its codes.

use std::fs;
use std::path::PathBuf;

use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, Code, Mode, OpenOptions, ReadOptions, Result, Value};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The expected table of the page.
fn table() -> String {
    let row = |code: &Code| {
        let again = if code.is_retryable() { "yes" } else { "" };
        let (kind, meaning, action) = (code.kind().name(), code.meaning(), code.action());
        format!("| `{code}` | {kind} | {again} | {meaning} | {action} |\n")
    };
    Code::ALL.iter().map(row).collect()
}

#[test]
fn the_guides_page_has_every_code() {
    let path = file("docs/guide/error-codes.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once("|---|---|---|---|---|\n").unwrap();
    let tail: String = rest.split_inclusive('\n').skip_while(|line| line.starts_with('|')).collect();
    let due = format!("{head}|---|---|---|---|---|\n{}{tail}", table());
    if std::env::var("UPDATE_CODES").is_ok_and(|value| value == "1") {
        fs::write(&path, &due).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == due,
        "the table differs from crates/core/src/error/code.rs; rewrite it with \
         UPDATE_CODES=1 cargo test -p fieldstone --test all codes::"
    );
}

#[test]
fn the_header_has_every_code() {
    let header = fs::read_to_string(file("capi/include/fieldstone.h")).unwrap();
    let found: Vec<(&str, &str)> = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define FS_CODE_")?.split_once(' '))
        .map(|(name, text)| (name, text.trim_matches('"')))
        .collect();
    let due: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(found.iter().map(|(_, text)| *text).collect::<Vec<_>>(), due);
    for (name, text) in found {
        assert_eq!(name.to_lowercase().replace('_', "-"), text);
    }
}

fn code<T>(outcome: Result<T>) -> Code {
    outcome.err().map(|error| error.code()).expect("it fails")
}

#[test]
fn a_program_can_tell_one_conflict_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("store").to_string_lossy().into_owned();
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    assert_eq!(code(fieldstone::open(&url, &reading)), Code::StoreNotFound);
    let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    let archive = |key: &[(&str, &str)]| store.archive(key, Value::Bytes(b"x"), &ArchiveOptions::default());
    archive(&key).unwrap();
    store.flush(None).unwrap();
    assert_eq!(code(archive(&key[1..])), Code::KeywordMissing);
    assert_eq!(
        code(archive(&[("run", "a"), ("variable", "t"), ("step", "0"), ("target", "f")])),
        Code::KeywordUnknown
    );
    assert_eq!(code(archive(&[("run", "a"), ("variable", "t"), ("step", "six")])), Code::KeywordValue);
    let other = [("run", "a"), ("variable", "t"), ("step", "6")];
    assert_eq!(code(store.get(&other, &ReadOptions::default())), Code::FieldNotFound);
    let reader = fieldstone::open(&url, &reading).unwrap();
    assert_eq!(code(reader.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())), Code::ReadOnly);
    let new = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    assert_eq!(code(fieldstone::open(&url, &new)), Code::StoreExists);
    let mars = OpenOptions { schema: Some("mars".into()), ..OpenOptions::default() };
    assert_eq!(code(fieldstone::open(&url, &mars)), Code::SchemaDiffers);
    assert_eq!(code(fieldstone::open("ftp://x", &reading)), Code::Url);
}
