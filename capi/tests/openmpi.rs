//! `include/fieldstone_mpi.h` with Open MPI: its mpicc compiles the programs and its mpiexec runs them, under
//! the names that Debian gives them next to another MPI.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{capi, check_digests, library, open, printed, succeed};
use fieldstone::Request;
use fieldstone_testkit::require::require;

/// Compiles a program of `capi/`; `None` if Open MPI is not installed.
fn compile(source: &str, folder: &Path) -> Option<PathBuf> {
    let is_there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let found = is_there("mpicc.openmpi") && is_there("mpiexec.openmpi");
    if !require("openmpi", found, "no mpicc.openmpi (Debian: openmpi-bin, libopenmpi-dev)") {
        return None;
    }
    let built = folder.join("program");
    let mut mpicc = Command::new("mpicc.openmpi");
    mpicc.args(["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror"]);
    mpicc.arg("-I").arg(capi().join("include")).arg(capi().join(source)).arg("-o").arg(&built);
    mpicc.arg("-L").arg(library()).arg("-lfieldstone");
    mpicc.arg(format!("-Wl,-rpath,{}", library().display()));
    succeed(&mut mpicc);
    Some(built)
}

fn mpiexec(ranks: usize, built: &Path, argument: &Path) -> Command {
    let mut command = Command::new("mpiexec.openmpi");
    // CI may be root; more ranks than cores: a waiting rank lets others run.
    for name in ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(format!("OMPI_{name}"), "1");
    }
    for name in ["rmaps_base_oversubscribe", "mpi_yield_when_idle"] {
        command.env(format!("OMPI_MCA_{name}"), "1");
    }
    command.arg("-n").arg(ranks.to_string()).arg(built).arg(argument);
    command
}

#[test]
fn ranks_read_overlapping_bytes_together() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/overlap.c", folder.path()) else { return };
    succeed(&mut mpiexec(4, &built, &folder.path().join("file")));
}

#[test]
fn the_check_passes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/comm.c", folder.path()) else { return };
    let output = printed(&mut mpiexec(2, &built, folder.path()));
    assert!(output.starts_with("0 failures"), "{output}");
}

#[test]
fn groups_of_views_and_containers_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("views.store");
    let Some(built) = compile("examples/views.c", folder.path()) else { return };
    assert!(printed(&mut mpiexec(4, &built, &store)).ends_with(" by rank 0\n"));
    let fields = open(&store);
    let field =
        fields.get(&[("run", "views"), ("variable", "matrix"), ("step", "0")], &Default::default()).unwrap();
    let found: Vec<f64> =
        field.read().unwrap().as_chunks().0.iter().map(|word| f64::from_be_bytes(*word)).collect();
    let expected: Vec<f64> = (0..12).flat_map(|y| (0..10).map(move |x| f64::from(y * 100 + x))).collect();
    assert_eq!(found, expected);
    assert!(fields.verify(&Request::new()).unwrap().ok());
    let built = compile("examples/container_mpi.c", folder.path()).unwrap();
    let output = printed(&mut mpiexec(2, &built, &folder.path().join("events.nc")));
    assert_eq!(output.trim(), "7 variables, 2 records");
}

#[test]
fn groups_have_the_files_of_rust_and_python() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/array_digest.c", folder.path()) else { return };
    check_digests(&built, mpiexec);
}
