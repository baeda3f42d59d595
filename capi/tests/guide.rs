//! The programs of `docs/guide/c-fortran.md` compile and print what the page says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{capi, library, open, printed, shared, succeed};
use fieldstone_testkit::require::program;

/// The blocks of the guide in a language.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(capi().join("../docs/guide/c-fortran.md")).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Compiles and runs a program in `folder`, where its store goes.
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
    let (c, fortran, shown) = (blocks("c"), blocks("fortran"), blocks("text"));
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
