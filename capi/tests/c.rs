//! C programs, compiled as the guide says, and run: the example, every call, every error, threads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{check_heat, compile_c, open, printed, shared, succeed};
use fieldstone::{Request, Session};
use fieldstone_testkit::require;

/// A program of `capi/`, linked with the shared library, in a folder of its own.
fn program(source: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let link = shared();
    let program = compile_c(source, folder.path(), &link.iter().map(String::as_str).collect::<Vec<_>>());
    (folder, program)
}

#[test]
fn the_heat_example_writes_what_rust_reads() {
    if !require::program("gcc") {
        return;
    }
    let (folder, program) = program("examples/heat.c");
    let text = printed(Command::new(&program).current_dir(folder.path()));
    check_heat(&folder.path().join("heat.store"), "heat-c");
    let last = &common::heat()[common::STEPS];
    let row = |y: usize| {
        (30..34).map(|x| format!("{:8.3}", last[y * common::NX + x])).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(text, format!("21 fields, 1032192 bytes\n{}\n{}\n", row(12), row(13)));
}

#[test]
fn the_static_library_links_too() {
    if !require::program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let link = ["-l:libfieldstone.a", "-lpthread", "-ldl", "-lm"];
    let program = compile_c("examples/heat.c", folder.path(), &link);
    succeed(Command::new(program).arg("store").current_dir(folder.path()));
    check_heat(&folder.path().join("store"), "heat-c");
}

#[test]
fn every_call_does_what_it_says() {
    if !require::program("gcc") {
        return;
    }
    let (folder, program) = program("tests/c/calls.c");
    succeed(Command::new(program).arg(folder.path().join("store")));
}

#[test]
fn every_call_of_distributed_arrays_does_what_it_says() {
    if !require::program("gcc") {
        return;
    }
    let (folder, program) = program("tests/c/arrays.c");
    succeed(Command::new(program).arg(folder.path().join("store")));
    let store = open(&folder.path().join("store"));
    let key = [("project", "C"), ("run", "all"), ("variable", "t"), ("step", "6")];
    let field = store.get(&key, &Default::default()).unwrap();
    assert_eq!((field.shape().unwrap(), field.is_complete().unwrap()), (Some(vec![3, 4]), true));
    assert!(store.verify(&Request::new()).unwrap().ok());
}

#[test]
fn every_call_of_imports_meshes_and_partitions_does_what_it_says() {
    if !require::program("gcc") {
        return;
    }
    let (folder, program) = program("tests/c/meshes.c");
    succeed(Command::new(program).arg(folder.path().join("store")));
    let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
    let store = fieldstone::open(folder.path().join("store").to_str().unwrap(), &options).unwrap();
    let mesh = &store.catalog().meshes(&Session::default()).unwrap()[0];
    assert_eq!((mesh.name.as_str(), mesh.counts), ("plate", [6, 0, 2, 0]));
    assert_eq!(format!("{:?}", mesh.attrs), r#"[("long_name", Text("plate"))]"#);
    let file = std::fs::read(folder.path().join("store").join(&mesh.path)).unwrap();
    assert!(file.windows(12).any(|bytes| bytes == b"degrees_east"), "an attribute of x is in the file");
    // Each file was imported several times, always with the description that the first import recorded.
    let imports = store.run("plate").unwrap().imports().unwrap();
    let raw = imports.iter().find(|import| import.source.ends_with(".raw")).unwrap();
    let xy = raw.variables.iter().find(|variable| variable.name == "xy").unwrap();
    assert_eq!((xy.shape.as_slice(), xy.offset), (&[6, 2][..], 60));
    assert!(raw.checksum.is_some() && imports.iter().any(|import| import.source.ends_with(".nc")));
    assert!(store.catalog().histories(&Session::default()).unwrap().iter().any(|history| history.edges == 7));
    assert!(open(&folder.path().join("store")).verify(&Request::new()).unwrap().ok());
}

#[test]
fn mistakes_are_errors_and_never_crashes() {
    if !require::program("gcc") {
        return;
    }
    let (folder, program) = program("tests/c/errors.c");
    succeed(Command::new(program).arg(folder.path().join("store")));
}

#[test]
fn threads_share_a_handle() {
    if !require::program("gcc") {
        return;
    }
    let (folder, program) = program("tests/c/threads.c");
    succeed(Command::new(program).arg(folder.path().join("store")));
    let store = open(&folder.path().join("store"));
    assert_eq!(store.list(&Request::new(), &Default::default()).unwrap().count(), 8 * 25);
}

#[test]
fn an_example_that_fails_says_why_and_ends_with_the_kind() {
    if !require::program("gcc") {
        return;
    }
    let (_folder, program) = program("examples/heat.c");
    let done = Command::new(program).arg("nowhere://x").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("nowhere://"), "{done:?}");
}
