//! The programs of `docs/guide/c-fortran.md` and `docs/guide/sdm.md` compile and print the output that the
//! pages show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{FORTRAN_MODULES, capi, library, open, printed, shared, succeed};
use fieldstone_testkit::require::program;

/// The blocks of a page of the guide in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = fs::read_to_string(capi().join("../docs/guide").join(page)).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Compiles and runs a program in `folder`, where it puts its store.
fn run(compiler: &str, sources: &[&Path], folder: &Path) -> String {
    let program = folder.join(compiler);
    let mut command = Command::new(compiler);
    command.arg("-I").arg(capi().join("include")).args(sources).arg("-o").arg(&program);
    command.arg("-L").arg(library()).args(shared()).current_dir(folder);
    succeed(&mut command);
    printed(Command::new(program).current_dir(folder))
}

#[test]
fn the_programs_of_the_guide_run() {
    let of = |language| blocks("c-fortran.md", language);
    let (c, fortran, shown) = (of("c"), of("fortran"), of("text"));
    assert_eq!((c.len(), fortran.len()), (1, 1), "one program each");
    if !program("gcc") || !program("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (plate_c, plate_f90) = (folder.path().join("plate.c"), folder.path().join("plate.f90"));
    fs::write(&plate_c, &c[0]).unwrap();
    fs::write(&plate_f90, &fortran[0]).unwrap();

    let text = run("gcc", &[&plate_c], folder.path());
    assert!(shown.contains(&text), "the page does not show\n{text}");

    let module = capi().join("fortran/fieldstone.f90");
    let text = run("gfortran", &[&module, &plate_f90], folder.path());
    let (message, rest) = text.split_once('\n').unwrap();
    assert!(message.contains("{run=demo}{variable=t}{step=6}: box"), "{message}");
    assert!(shown.iter().any(|block| block == rest), "the page does not show\n{rest}");

    let store = open(&folder.path().join("plate.store"));
    let listed = store.list(&fieldstone::Request::new(), &Default::default()).unwrap();
    let listed: String = listed.map(|entry| format!("{}\n", entry.unwrap().key)).collect();
    assert!(shown.iter().any(|block| block.ends_with(&listed)), "the page does not show\n{listed}");
}

#[test]
fn the_programs_of_the_page_on_arrays_run() {
    let of = |language| blocks("sdm.md", language);
    let (c, fortran, shown) = (of("c"), of("fortran"), of("text"));
    assert_eq!((c.len(), fortran.len()), (1, 1), "one program each");
    if !program("gcc") || !program("gfortran") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (ring_c, ring_f90) = (folder.path().join("ring.c"), folder.path().join("ring.f90"));
    fs::write(&ring_c, &c[0]).unwrap();
    fs::write(&ring_f90, &fortran[0]).unwrap();
    let text = run("gcc", &[&ring_c], folder.path());
    assert!(shown.contains(&text), "the page does not show\n{text}");

    let modules = FORTRAN_MODULES.map(|module| capi().join(module));
    let sources: Vec<&Path> = modules.iter().chain([&ring_f90]).map(PathBuf::as_path).collect();
    let text = run("gfortran", &sources, folder.path());
    assert!(shown.contains(&text), "the page does not show\n{text}");

    let store = open(&folder.path().join("ring.store"));
    let listed = store.list(&fieldstone::Request::new(), &Default::default()).unwrap();
    let listed: String = listed.map(|entry| format!("{}\n", entry.unwrap().key)).collect();
    assert!(shown.iter().any(|block| block.ends_with(&listed)), "the page does not show\n{listed}");

    let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
    let folder = folder.path().canonicalize().unwrap();
    let url = folder.join("ring.store").display().to_string();
    let imports = fieldstone::open(&url, &options).unwrap().run("ring").unwrap().imports().unwrap();
    let names: Vec<&Path> = imports.iter().map(|import| Path::new(&import.name)).collect();
    assert_eq!(names, [folder.join("ring.raw")], "both programs took one file");

    // The pages' command names all modules, in an order that compiles.
    let command = of("bash").concat();
    let named = command.split_once("fieldstone{,").and_then(|(_, rest)| rest.split_once('}')).unwrap().0;
    let files: Vec<String> =
        std::iter::once("").chain(named.split(',')).map(|n| format!("fortran/fieldstone{n}.f90")).collect();
    assert_eq!(files[..9], FORTRAN_MODULES);
}
