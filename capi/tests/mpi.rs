//! `include/fieldstone_mpi.h` with the wheel's MPI: its mpicc compiles the programs and its mpiexec runs
//! them, both from the checkout's `.venv` or else from the path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{
    FORTRAN_MODULES, capi, check_digests, fortran_objects, library, objects, open, printed, succeed,
};
use fieldstone::catalog::value::Value;
use fieldstone::{DType, Request};
use fieldstone_testkit::require::{self, require};

/// A program of MPI, resolved, so that it finds the files next to it.
fn program(name: &str) -> Option<PathBuf> {
    let beside = capi().join("../.venv/bin").join(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::iter::once(beside).chain(std::env::split_paths(&path).map(|folder| folder.join(name)));
    found.filter_map(|path| path.canonicalize().ok()).next()
}

/// Compiles a program with mpicc into `folder`, as the guide says. A relative path is one of `capi/`.
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
    // More ranks than cores: a waiting rank lets others run.
    command.env("MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
    command.arg("-n").arg(ranks.to_string()).arg(built).arg(argument);
    command
}

#[test]
fn both_headers_are_valid_as_cpp() {
    let mpicxx = program("mpicxx");
    if !require("mpi", mpicxx.is_some(), "no mpicxx (pip install mpich)") || !require::program("g++") {
        return;
    }
    let Some(mpicxx) = mpicxx else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("headers.cpp");
    std::fs::write(&source, "#include \"fieldstone_mpi.h\"\n").unwrap();
    let mut mpicxx = Command::new(mpicxx);
    mpicxx.args(["-fsyntax-only", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-I"]);
    mpicxx.arg(capi().join("include")).arg(&source);
    succeed(&mut mpicxx);
}

#[test]
fn the_check_passes_and_each_rank_that_fails_at_any_step_is_named_on_all() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/comm.c", folder.path()) else { return };
    for ranks in [1, 2, 4] {
        let folder = folder.path().join(ranks.to_string());
        std::fs::create_dir(&folder).unwrap();
        let mut job = mpiexec(ranks, &built, &folder);
        // The tests of Python's communicator cover failures with four ranks.
        let failures = if ranks == 2 { 90 } else { 0 };
        if ranks == 2 {
            job.arg("fail");
        }
        let output = printed(&mut job);
        println!("{ranks} ranks: {}", output.trim());
        assert!(output.starts_with(&format!("{failures} failures")), "{ranks} ranks: {output}");
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
fn ranks_read_overlapping_bytes_together() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/overlap.c", folder.path()) else { return };
    succeed(&mut mpiexec(4, &built, &folder.path().join("file")));
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
fn what_one_rank_is_refused_of_arrays_fails_on_all_and_the_job_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/arrays_refused.c", folder.path()) else { return };
    for ranks in [2, 3] {
        succeed(&mut mpiexec(ranks, &built, &folder.path().join(format!("{ranks}.store"))));
    }
}

#[test]
fn what_one_rank_is_refused_of_meshes_fails_on_all_and_the_job_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/meshes_refused.c", folder.path()) else { return };
    for ranks in [2, 3] {
        succeed(&mut mpiexec(ranks, &built, &folder.path().join(format!("{ranks}.store"))));
    }
}

/// The values of a variable of a run at a step, read as any program reads them.
fn values<const N: usize>(
    store: &Path,
    run: &str,
    variable: &str,
    step: u64,
    dtype: DType,
) -> (Vec<u64>, Vec<[u8; N]>) {
    let key = [("run", run), ("variable", variable), ("step", &step.to_string())];
    let field = open(store).get(&key, &Default::default()).unwrap();
    assert_eq!(field.dtype().unwrap().map(DType::to_native), Some(dtype));
    let mut bytes = field.read().unwrap();
    if field.dtype().unwrap() != Some(dtype) {
        dtype.with_order(fieldstone::ByteOrder::Big).swap_bytes(&mut bytes);
    }
    (field.shape().unwrap().unwrap(), bytes.as_chunks().0.to_vec())
}

fn floats(found: (Vec<u64>, Vec<[u8; 8]>)) -> (Vec<u64>, Vec<f64>) {
    (found.0, found.1.into_iter().map(f64::from_ne_bytes).collect())
}

/// Checks the output of the examples of SDM's Figure 1: the cube of a restart set at a step, in C order of
/// (z, y, x).
fn check_astro3d(store: &Path, steps: u64) {
    let fields = open(store);
    let count = |variable: &str| {
        let request = Request::parse(&format!("variable={variable}")).unwrap();
        fields.list(&request, &Default::default()).unwrap().map(Result::unwrap).filter(|e| e.complete).count()
    };
    let steps = usize::try_from(steps).unwrap();
    assert_eq!((count("a5"), count("r5"), count("p6")), (steps / 2, steps / 4, steps));
    for step in (3..steps as u64).step_by(4) {
        let (shape, found) = floats(values(store, "astro3d", "r2", step, DType::F8));
        assert_eq!(shape, [16, 16, 16]);
        let expected = |cell: usize| 2000.0 + 100.0 * step as f64 + cell as f64 / 64.0;
        let wrong = found.iter().enumerate().find(|(cell, value)| **value != expected(*cell));
        assert_eq!(wrong, None, "step {step}");
    }
    assert!(fields.verify(&Request::new()).unwrap().ok());
}

#[test]
fn three_groups_are_written_at_their_own_frequencies_and_the_run_goes_on_with_fewer_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("astro3d.store");
    let Some(built) = compile("examples/astro3d.c", folder.path()) else { return };
    let said = printed(&mut mpiexec(4, &built, &store));
    assert!(said.starts_with("level ") && said.ends_with(", pictures up to step 3\n"), "{said}");
    check_astro3d(&store, 4);
    let said = printed(&mut mpiexec(2, &built, &store));
    assert!(said.starts_with("goes on after step 3\n") && said.ends_with("up to step 7\n"), "{said}");
    check_astro3d(&store, 8);
}

/// The files that the C program of two views writes.
#[test]
fn regular_and_irregular_views_write_what_any_program_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("views.store");
    let Some(built) = compile("examples/views.c", folder.path()) else { return };
    assert!(printed(&mut mpiexec(4, &built, &store)).ends_with(" by rank 0\n"));
    let (shape, matrix) = floats(values(&store, "views", "matrix", 0, DType::F8));
    assert_eq!(shape, [12, 10]);
    let expected: Vec<f64> = (0..12).flat_map(|y| (0..10).map(move |x| f64::from(y * 100 + x))).collect();
    assert_eq!(matrix, expected);
    let (shape, nodes) = floats(values(&store, "views", "displacement", 0, DType::F8));
    assert_eq!(shape, [60, 3]);
    let expected: Vec<f64> =
        (0..60).flat_map(|n| (0..3).map(move |c| f64::from(n) + f64::from(c) / 10.0)).collect();
    assert_eq!(nodes, expected);
}

/// The form in which an example of FUN3D writes its mesh.
#[derive(Clone, Copy)]
struct MeshFile {
    order: fieldstone::ByteOrder,
    base: i32,
}

/// Numbers of a mesh's file, from a byte offset, in this machine's order.
fn numbers<const N: usize>(bytes: &[u8], form: MeshFile, from: usize, count: usize) -> Vec<[u8; N]> {
    let mut all = bytes[from..].as_chunks::<N>().0[..count].to_vec();
    if !DType::F8.with_order(form.order).is_native() {
        all.iter_mut().for_each(|number| number.reverse());
    }
    all
}

/// Checks the output of the FUN3D examples: one process computes it again from the mesh's file.
fn check_fun3d(store: &Path, mesh: &Path, form: MeshFile, steps: u64) {
    const NODES: usize = 120;
    let bytes = std::fs::read(mesh).unwrap();
    // An edge takes two ends of 4 bytes and an area of 8; a node takes 8 for the volume and 24 for x, y, z.
    let edges = (bytes.len() - 32 * NODES) / 16;
    let ends = |side: usize| {
        let ends = numbers(&bytes, form, 4 * edges * side, edges).into_iter();
        ends.map(|end| (i32::from_ne_bytes(end) - form.base) as usize).collect::<Vec<_>>()
    };
    let floats = |from, count| -> Vec<f64> {
        numbers(&bytes, form, from, count).into_iter().map(f64::from_ne_bytes).collect()
    };
    let (first, second) = (ends(0), ends(1));
    let (area, volume) = (floats(8 * edges, edges), floats(16 * edges, NODES));
    let xyz = floats(16 * edges + 8 * NODES, 3 * NODES);
    let mut q: Vec<f64> = (0..NODES).map(|node| 64.0 * xyz[3 * node]).collect();
    for step in 0..steps {
        let mut flux = vec![0.0; NODES];
        for ((a, b), area) in first.iter().zip(&second).zip(&area) {
            flux[*a] += area * (q[*b] - q[*a]);
            flux[*b] += area * (q[*a] - q[*b]);
        }
        let before = q.clone();
        q.iter_mut().zip(&volume).zip(&flux).for_each(|((q, volume), flux)| *q += volume * flux);
        for (variable, expected) in
            [("q", q.clone()), ("residual", q.iter().zip(&before).map(|(now, then)| now - then).collect())]
        {
            let (shape, found) = self::floats(values(store, "fun3d", variable, step, DType::F8));
            assert_eq!(shape, [120]);
            // A rank has its edges in another order, so sums differ in the last bits.
            let wrong = found.iter().zip(&expected).position(|(found, sum)| (found - sum).abs() > 1e-9);
            assert_eq!(wrong, None, "{variable} at step {step}");
        }
    }
    assert!(open(store).verify(&Request::new()).unwrap().ok());
}

fn run_fun3d(built: &Path, folder: &Path, form: MeshFile) {
    let (store, mesh) = (folder.join("fun3d.store"), folder.join("uns3d.msh"));
    // Finished parts serve the same number of ranks; edges by node serve any number.
    for (run, (ranks, source)) in
        [(4, "computed"), (4, "parts"), (3, "edges"), (1, "edges")].into_iter().enumerate()
    {
        let said = printed(mpiexec(ranks, built, &store).arg(&mesh));
        let last = 2 * run + 1;
        assert_eq!(said, format!("partition: {source}; 120 nodes, up to step {last}\n"));
        check_fun3d(&store, &mesh, form, last as u64 + 1);
    }
}

#[test]
fn a_mesh_of_another_program_is_partitioned_and_its_values_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("examples/fun3d.c", folder.path()) else { return };
    run_fun3d(&built, folder.path(), MeshFile { order: fieldstone::ByteOrder::Big, base: 0 });
}

/// Compiles a Fortran program as the guide says: the modules with gfortran, the C file with mpicc, which links.
fn compile_fortran(source: &str, folder: &Path) -> Option<PathBuf> {
    let mpicc = program("mpicc");
    if !require("mpi", mpicc.is_some(), "no mpicc (pip install mpich)") || !require::program("gfortran") {
        return None;
    }
    let mpicc = mpicc?;
    // The wheel has no module `mpi`; another MPI has one, and its mpif90 finds it.
    let mut sources = vec!["tests/fortran/mpi.f90"];
    sources.extend(FORTRAN_MODULES);
    sources.push("fortran/fieldstone_mpi.f90");
    let flags = ["-std=f2018", "-O1", "-fcheck=all,no-array-temps"];
    let modules = fortran_objects(&sources, &flags);
    let mut gfortran = Command::new("gfortran");
    gfortran.args(["-Wall", "-Wextra", "-Werror"]).args(flags).arg("-I").arg(&modules);
    gfortran.arg("-c").arg(capi().join(source)).arg("-o").arg(folder.join("main.o"));
    succeed(gfortran.current_dir(folder));
    let mut converter = Command::new(&mpicc);
    converter.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"]).arg(capi().join("include"));
    converter.arg("-c").arg(capi().join("fortran/fieldstone_mpi_f.c")).current_dir(folder);
    succeed(&mut converter);
    let built = folder.join("program");
    let mut link = Command::new(&mpicc);
    link.arg("main.o").args(objects(&modules, &sources)).arg("fieldstone_mpi_f.o");
    link.arg("-o").arg(&built).arg("-L").arg(library()).arg("-lfieldstone").current_dir(folder);
    link.arg(format!("-Wl,-rpath,{}", library().display())).args(["-lgfortran", "-lm"]);
    succeed(&mut link);
    Some(built)
}

#[test]
fn fortran_writes_the_same_groups() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("astro3d.store");
    let Some(built) = compile_fortran("examples/astro3d.f90", folder.path()) else { return };
    let said = printed(&mut mpiexec(4, &built, &store));
    assert!(said.starts_with("level ") && said.ends_with(", pictures up to step 3\n"), "{said}");
    let said = printed(&mut mpiexec(2, &built, &store));
    assert!(said.starts_with("goes on after step 3\n") && said.ends_with("up to step 7\n"), "{said}");
    check_astro3d(&store, 8);
}

#[test]
fn fortran_partitions_a_mesh_of_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile_fortran("examples/fun3d.f90", folder.path()) else { return };
    run_fun3d(&built, folder.path(), MeshFile { order: fieldstone::ByteOrder::Little, base: 1 });
    let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
    let url = folder.path().join("fun3d.store").display().to_string();
    let run = fieldstone::open(&url, &options).unwrap().run("fun3d").unwrap();
    let group = run.array_group("results").unwrap();
    let attrs = |of: &[(String, Value)]| -> Vec<String> {
        of.iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    assert_eq!(attrs(&group.attrs), [r#"solver="explicit""#, "box=[6, 5, 4]"]);
    assert_eq!(attrs(&group.sets[0].attrs), [r#"solver="explicit""#, "box=[6, 5, 4]", r#"units="kg""#]);
    assert_eq!(run.imports().unwrap()[0].variables[4].shape, [120, 3], "xyz(3, nodes) in the file's order");
}

#[test]
fn fortran_has_the_same_views() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("views.store");
    let Some(built) = compile_fortran("examples/views.f90", folder.path()) else { return };
    assert_eq!(printed(&mut mpiexec(4, &built, &store)), "three groups\n");
    // Fortran's first dimension is the last one in C and Python.
    let (shape, matrix) = floats(values(&store, "views", "matrix", 0, DType::F8));
    assert_eq!(shape, [12, 10]);
    let expected: Vec<f64> = (1..=12).flat_map(|x| (1..=10).map(move |y| f64::from(x * 100 + y))).collect();
    assert_eq!(matrix, expected);
    let (shape, nodes) = floats(values(&store, "views", "velocity", 0, DType::F8));
    assert_eq!((shape, nodes.len()), (vec![60, 3], 180));
    assert!(nodes.iter().enumerate().all(|(i, u)| {
        let (node, component) = (i / 3 + 1, i % 3 + 1);
        (u - (node as f64 + component as f64 / 10.0)).abs() < 1e-9
    }));
    // In a group of order C it is the first one in C and Python, too.
    let (shape, x) = values::<4>(&store, "views", "x", 0, DType::F4);
    assert_eq!(shape, [10, 3]);
    let of_rank = |rank: usize| vec![rank as f32; 3 * (rank + 1)];
    let x: Vec<f32> = x.into_iter().map(f32::from_ne_bytes).collect();
    assert_eq!(x, (0..4).flat_map(of_rank).collect::<Vec<_>>());
}

#[test]
fn the_example_writes_a_file_that_ncdump_prints() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("examples/container_mpi.c", folder.path()) else { return };
    for ranks in [1, 2] {
        let file = folder.path().join(format!("{ranks}.nc"));
        let output = printed(&mut mpiexec(ranks, &built, &file));
        assert_eq!(output.trim(), format!("{} variables, {ranks} records", 3 * ranks + 1));
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

#[test]
fn groups_have_the_files_of_rust_and_python() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = compile("tests/c/array_digest.c", folder.path()) else { return };
    check_digests(&built, mpiexec);
}
