//! The bytes of the engine's files change on their own: every answer stays right, because reads compare checksums, and
//! damaged parts are rebuilt from the logs.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone_testkit::{Random, seeded};

/// A store with thousands of attributes, in many commits that the engine followed one by one.
fn filled(folder: &Path) -> Both {
    let both = Both::at(folder);
    for name in ["a", "b", "c"] {
        both.prepare(name);
        both.catalog.annotate(columns(name, "max", 1200), &Session::default()).unwrap();
        both.flush();
        for step in 0..12 {
            both.annotate(name, "min", step, [1, 1], 0.25 * step as f64);
            both.flush();
            both.catalog.count(&Query::all()).unwrap();
        }
    }
    both
}

/// The queries: everything, by value, and as a stream.
fn answers(both: &Both) -> String {
    let high = lines(&both.catalog.attributes(&all_of(vec![above(140.0)])).unwrap()).join("\n");
    let low = both.catalog.count(&all_of(vec![tag_is("min"), run_is("b")])).unwrap();
    let stream = both.catalog.stream(&all_of(vec![tag_is("max")])).unwrap();
    let mut values: Vec<String> = stream.map(|hit| hit.unwrap().value.to_string()).collect();
    values.sort();
    format!("{high}\n{low}\n{}\n{}", values.join(" "), both.answers())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let named = |name: &str| folder.join("catalog").join(name);
    [named("index.sqlite"), named("index.sqlite-wal")].into_iter().filter(|path| path.exists()).collect()
}

/// Changes a bit, or a range of bytes, in one of the files, in place.
fn change(dice: &mut Random, folder: &Path) -> String {
    let files = files(folder);
    let path = &files[dice.index(files.len())];
    let mut bytes = fs::read(path).unwrap();
    if bytes.is_empty() {
        return "an empty file".into();
    }
    let at = dice.index(bytes.len());
    let to = match dice.index(2) {
        0 => at + 1,
        _ => (at + 1 + dice.index(500)).min(bytes.len()),
    };
    match to - at {
        1 => bytes[at] ^= 1 << dice.index(8),
        _ => bytes[at..to].iter_mut().for_each(|byte| *byte = dice.index(256) as u8),
    }
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(&bytes[at..to], at as u64).unwrap();
    format!("{}, bytes {at} to {to}", path.display())
}

/// The engine's folder after its process was killed.
fn copy(from: &Path, to: &Path) {
    let to = to.join("catalog");
    fs::remove_dir_all(&to).unwrap();
    fs::create_dir(&to).unwrap();
    for path in files(from) {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn set_aside(folder: &Path) -> bool {
    let aside = folder.join("catalog/index.sqlite.damaged");
    let there = aside.exists();
    if there {
        fs::remove_file(&aside).unwrap();
    }
    there
}

#[test]
fn an_engine_whose_bytes_have_changed_gives_right_answers() {
    let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let both = filled(folder.path());
    let truth = answers(&both);
    assert!(truth.lines().count() > 3600);
    fs::create_dir(kept.path().join("catalog")).unwrap();
    // With the content of the log, and without.
    copy(folder.path(), kept.path());
    let mut dice = seeded(1);
    drop(both);
    let mut noticed = 0;
    for round in 0..60 {
        if round == 30 {
            copy(kept.path(), folder.path());
            drop(answers(&Both::at(folder.path())));
            copy(folder.path(), kept.path());
        }
        copy(kept.path(), folder.path());
        let what = change(&mut dice, folder.path());
        assert!(answers(&Both::at(folder.path())) == truth, "round {round}: {what}");
        noticed += u32::from(set_aside(folder.path()));
    }
    assert!(noticed > 20, "{noticed} of 60");
}

#[test]
fn bytes_that_change_under_open_handles_change_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut handles = [filled(folder.path()), Both::at(folder.path()), Both::at(folder.path())];
    let mut dice = seeded(2);
    let (mut noticed, mut step) = (0, 100);
    for round in 0..40 {
        // Most pages of the log have newer versions.
        let what: Vec<String> = (0..8).map(|_| change(&mut dice, folder.path())).collect();
        let which = dice.index(handles.len());
        if dice.index(2) == 0 {
            step += 1;
            handles[which].annotate("a", "min", step, [0, 0], step as f64);
            handles[which].flush();
        }
        let memory = CatalogSettings { engine: Some("memory:".to_owned()) };
        let store = handles[which].store.clone();
        let truth = answers(&Both { catalog: store.catalog_with(memory), store });
        // A handle that has read much of it, and one that now reads all of it.
        let reader = dice.index(3);
        assert!(answers(&handles[reader]) == truth, "round {round}: {what:?}");
        handles[reader] = Both::at(folder.path());
        assert!(answers(&handles[reader]) == truth, "round {round}, read again: {what:?}");
        noticed += u32::from(set_aside(folder.path()));
    }
    assert!(noticed > 5, "{noticed} of 40");
}

#[test]
fn a_stream_goes_on_where_its_engine_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let all = all_of(vec![tag_is("max")]);
    let mut truth: Vec<String> =
        both.catalog.stream(&all).unwrap().map(|hit| format!("{:?}", hit.unwrap().id)).collect();
    truth.sort();
    drop(both);
    // Every page after the first ones: some hits come before the damage, some do not.
    let path = Both::engine(folder.path());
    let length = fs::metadata(&path).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for page in length / 8192..length / 4096 {
        file.write_all_at(b"rot", page * 4096 + 1000).unwrap();
    }
    let stream = Both::at(folder.path()).catalog.stream(&all).unwrap();
    let mut found: Vec<String> = stream.map(|hit| format!("{:?}", hit.unwrap().id)).collect();
    found.sort();
    assert!(set_aside(folder.path()));
    assert!(found == truth, "{} hits, {} are right", found.len(), truth.len());
    let limited = Query { limit: Some(1000), ..all };
    assert_eq!(Both::at(folder.path()).catalog.stream(&limited).unwrap().count(), 1000);
}

/// Earlier releases made files without room for checksums: they are rebuilt.
#[test]
fn an_engine_of_an_earlier_release_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let truth = answers(&both);
    drop(both);
    let path = Both::engine(folder.path());
    let mut header = [0; 100];
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.read_exact_at(&mut header, 0).unwrap();
    assert_eq!(header[20], 16, "room for checksums");
    file.write_all_at(&[0], 20).unwrap();
    assert!(answers(&Both::at(folder.path())) == truth);
    file.read_exact_at(&mut header, 0).unwrap();
    assert_eq!(header[20], 0, "what another one may still read was not touched");
    assert!(set_aside(folder.path()));
}
