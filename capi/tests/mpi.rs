//! `include/fieldstone_mpi.h` under the wheel's MPI: compiled by its mpicc and run by its mpiexec, which are
//! taken from the checkout's `.venv` or else from the path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{capi, library, printed, succeed};
use fieldstone_testkit::require::require;

/// A program of MPI, resolved, so that it finds what stands beside it.
fn program(name: &str) -> Option<PathBuf> {
    let beside = capi().join("../.venv/bin").join(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::iter::once(beside).chain(std::env::split_paths(&path).map(|folder| folder.join(name)));
    found.filter_map(|path| path.canonicalize().ok()).next()
}

/// Compiles a program with mpicc, as the guide says, into `folder`. A relative path is one of `capi/`.
fn compile(source: impl AsRef<Path>, folder: &Path) -> Option<PathBuf> {
    let mpicc = program("mpicc");
    if !require("mpi", mpicc.is_some(), "no mpicc (pip install mpich)") {
        return None;
    }
    let built = folder.join("program");
    let mut mpicc = Command::new(mpicc?);
    mpicc.args(["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror"]);
    mpicc.arg("-I").arg(capi().join("include")).arg(capi().join(source)).arg("-o").arg(&built);
    mpicc.arg("-L").arg(library()).arg("-lfieldstone");
    mpicc.arg(format!("-Wl,-rpath,{}", library().display()));
    succeed(&mut mpicc);
    Some(built)
}

fn mpiexec(ranks: usize, built: &Path, argument: &Path) -> Command {
    let mut command = Command::new(program("mpiexec").expect("mpicc is there"));
    // More ranks than cores: who waits lets others run.
    command.env("MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
    command.arg("-n").arg(ranks.to_string()).arg(built).arg(argument);
    command
}

#[test]
fn the_check_passes_and_each_rank_that_fails_at_any_step_is_named_on_all() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/comm.c", folder.path()) else { return };
    for ranks in [1, 2, 4] {
        let folder = folder.path().join(ranks.to_string());
        std::fs::create_dir(&folder).unwrap();
        let mut job = mpiexec(ranks, &built, &folder);
        // Of four ranks each fails in the tests of Python's communicator.
        let failures = if ranks == 2 { 90 } else { 0 };
        if ranks == 2 {
            job.arg("fail");
        }
        let told = printed(&mut job);
        println!("{ranks} ranks: {}", told.trim());
        assert!(told.starts_with(&format!("{failures} failures")), "{ranks} ranks: {told}");
    }
}

#[test]
fn a_rank_without_memory_keeps_no_other_waiting_and_views_are_no_matter_of_calls_at_offsets() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/file.c", folder.path()) else { return };
    for ranks in [2, 3] {
        let file = folder.path().join(ranks.to_string());
        succeed(&mut mpiexec(ranks, &built, &file));
        let bytes = std::fs::read(&file).unwrap();
        let set: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let of_rank = |rank: usize| [10, 11, 30, 31, 32, 60].map(|at| rank * 100 + at);
        assert_eq!(set, (0..ranks).flat_map(of_rank).collect::<Vec<_>>());
    }
}

#[test]
fn what_one_rank_is_refused_fails_on_all_and_the_container_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/refused.c", folder.path()) else { return };
    for ranks in [1, 2] {
        let file = folder.path().join(format!("{ranks}.nc"));
        succeed(&mut mpiexec(ranks, &built, &file));
    }
}

#[test]
fn the_example_writes_a_file_that_ncdump_prints() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("examples/container_mpi.c", folder.path()) else { return };
    for ranks in [1, 2] {
        let file = folder.path().join(format!("{ranks}.nc"));
        let told = printed(&mut mpiexec(ranks, &built, &file));
        assert_eq!(told.trim(), format!("{} variables, {ranks} records", 3 * ranks + 1));
    }
    let file = folder.path().join("events.nc");
    assert_eq!(printed(&mut mpiexec(4, &built, &file)).trim(), "13 variables, 4 records");
    let ncdump = Command::new("ncdump").arg("-h").arg(&file).output();
    if !require("ncdump", ncdump.is_ok(), "ncdump is not installed (Debian: netcdf-bin)") {
        return;
    }
    let text = printed(Command::new("ncdump").args(["-v", "gain,event_7.charge"]).arg(&file));
    assert!(text.contains("time = UNLIMITED ; // (4 currently)"), "{text}");
    assert!(text.contains("event_11.hits = 21 ;"), "{text}");
    assert!(text.contains("event_7.charge:energy = 4. ;"), "{text}");
    assert!(text.contains("gain:units = \"mV\" ;") && text.contains(":title = \"samples\" ;"), "{text}");
    assert!(text.contains("3, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7 ;"), "{text}");
    assert!(text.contains("event_7.charge = 700, 701, 702,"), "{text}");
    succeed(Command::new("ncvalidator").arg(&file));
}

#[test]
fn the_program_of_the_guide_writes_what_the_page_shows() {
    let page = std::fs::read_to_string(capi().join("../docs/guide/mpi.md")).unwrap();
    let block = |fence: &str| page.split(fence).nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("hits.c");
    std::fs::write(&source, block("```c\n")).unwrap();
    let Some(built) = compile(&source, folder.path()) else { return };
    assert_eq!(printed(mpiexec(2, &built, Path::new("")).current_dir(folder.path())), "");
    let ncdump = Command::new("ncdump").arg("hits.nc").current_dir(folder.path()).output();
    if require("ncdump", ncdump.is_ok(), "ncdump is not installed (Debian: netcdf-bin)") {
        assert_eq!(String::from_utf8(ncdump.unwrap().stdout).unwrap(), block("```text\n"));
    }
}
