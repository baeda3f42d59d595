//! Fortran programs over the module `fieldstone`, compiled as the guide says, and run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{FORTRAN_MODULES, capi, check_heat, fortran_objects, objects, open, printed, shared, succeed};
use fieldstone::Session;
use fieldstone::catalog::value::Value;
use fieldstone_testkit::require::program;

/// Compiles the modules that need no MPI and a program of `capi/` into `folder`, with warnings as errors.
fn compile(source: &str, folder: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join("program");
    let modules = fortran_objects(&FORTRAN_MODULES, flags);
    let mut gfortran = Command::new("gfortran");
    gfortran.args(["-Wall", "-Wextra", "-Werror"]).args(flags).arg("-J").arg(folder).arg("-I").arg(&modules);
    gfortran.arg(capi().join(source)).args(objects(&modules, &FORTRAN_MODULES)).arg("-o").arg(&program);
    gfortran.arg("-L").arg(common::library()).args(shared());
    succeed(&mut gfortran);
    program
}

#[test]
fn the_heat_example_writes_what_rust_reads() {
    if !program("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile("examples/heat.f90", folder.path(), &["-std=f2018", "-O2"]);
    let text = printed(Command::new(program).current_dir(folder.path()));
    check_heat(&folder.path().join("heat.store"), "heat-fortran");
    let last = &common::heat()[common::STEPS];
    let row = |y: usize| (30..34).map(|x| format!("{:9.3}", last[y * common::NX + x])).collect::<String>();
    let rows = format!("{}\n{}\n", row(12), row(13));
    assert_eq!(text, format!("{rows}the field is 96 by 64\nno step beyond the last\n"));
}

#[test]
fn every_procedure_does_what_it_says() {
    if !program("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // -cpp gives the line numbers of failed checks; the run-time checks make a wrong index an error;
    // -Wno-compare-reals allows the comparison of real results with the exact input.
    let flags = ["-cpp", "-g", "-fcheck=all,no-array-temps", "-Wno-compare-reals"];
    let program = compile("tests/fortran/calls.f90", folder.path(), &flags);
    let done = Command::new(program).arg(folder.path()).output().unwrap();
    let complaint = String::from_utf8_lossy(&done.stderr);
    // Its last call has to stop the program, with the number of NotFound and the message.
    assert_eq!(done.status.code(), Some(3), "{complaint}");
    assert!(complaint.contains("fieldstone: ") && complaint.contains("discarded"), "{complaint}");

    let store = open(&folder.path().join("store"));
    let key = [("run", "fortran"), ("step", "0"), ("variable", "grid")];
    let field = store.get(&key, &Default::default()).unwrap();
    assert_eq!(field.shape().unwrap(), Some(vec![4, 3]), "the dimensions are reversed");
    let numbers: Vec<u8> = (1..=12).flat_map(i32::to_ne_bytes).collect();
    assert_eq!(field.read().unwrap(), numbers, "the memory is unchanged");
    assert!(store.verify(&fieldstone::Request::new()).unwrap().ok());
}

#[test]
fn distributed_arrays_of_every_kind_come_back() {
    if !program("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-cpp", "-g", "-fcheck=all,no-array-temps", "-Wno-compare-reals"];
    let program = compile("tests/fortran/arrays.f90", folder.path(), &flags);
    succeed(Command::new(program).arg(folder.path()));

    let store = open(&folder.path().join("store"));
    let key = [("project", "p"), ("run", "f"), ("variable", "r8"), ("step", "0")];
    let field = store.get(&key, &Default::default()).unwrap();
    assert_eq!(field.shape().unwrap(), Some(vec![3, 2]), "the dimensions are reversed");
    let numbers: Vec<u8> = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0].into_iter().flat_map(f64::to_be_bytes).collect();
    assert_eq!(field.read().unwrap(), numbers);
    let key = [("project", "p"), ("run", "f"), ("variable", "i4"), ("step", "6")];
    assert!(store.get(&key, &Default::default()).is_err(), "it was discarded");
    assert!(store.verify(&fieldstone::Request::new()).unwrap().ok());

    let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
    let store = fieldstone::open(folder.path().join("store").to_str().unwrap(), &options).unwrap();
    let name = fieldstone::catalog::RunName { project: "p".to_owned(), name: "f".to_owned() };
    let group = fieldstone::Run::new(&store, name, &Session::default()).array_group("kinds").unwrap();
    let shown = |attrs: &[(String, Value)]| {
        attrs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    let of_group =
        "title=\"each kind\" i4=7 i8=8 r4=0.5 r8=0.25 rows=[1, 2] reals=[0.5, 1.5] doubles=[0.25, 0.75]";
    assert_eq!(shown(&group.attrs), of_group);
    assert_eq!(shown(&group.sets[0].attrs), format!("{of_group} units=\"K\" valid=[1, 12]"));
}

#[test]
fn imports_meshes_and_partitions_do_what_they_say() {
    if !program("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-cpp", "-g", "-fcheck=all,no-array-temps", "-Wno-compare-reals"];
    let program = compile("tests/fortran/meshes.f90", folder.path(), &flags);
    succeed(Command::new(program).arg(folder.path()));

    let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
    let store = fieldstone::open(folder.path().join("store").to_str().unwrap(), &options).unwrap();
    let meshes = store.catalog().meshes(&Session::default()).unwrap();
    let plate = meshes.iter().find(|mesh| mesh.name == "plate").unwrap();
    assert_eq!((meshes.len(), plate.counts), (2, [6, 0, 3, 0]));
    assert_eq!(plate.attrs, [("long_name".to_owned(), Value::Text("a plate".into()))]);
    let file = std::fs::read(folder.path().join("store").join(&plate.path)).unwrap();
    assert!(file.windows(8).any(|bytes| bytes == b"furlongs"), "an attribute of y is in the file");
    let run = store.run("m").unwrap();
    let import = &run.imports().unwrap()[0];
    assert!(import.checksum.is_some() && import.variables[5].shape == [6, 2], "in the file's order");
    assert_eq!(run.read("p", Some(0)).unwrap().shape().unwrap(), Some(vec![6]));
    assert_eq!(run.array_group("state").unwrap().sets[1].shape, [Some(6), Some(2)]);
}
