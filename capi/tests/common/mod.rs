//! Helpers for the tests of the C and Fortran bindings: the library, the compilers, runs in separate folders.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use fieldstone_testkit::digest;

/// The Fortran modules that need no MPI, in compilation order.
pub const FORTRAN_MODULES: [&str; 9] = [
    "fortran/fieldstone.f90",
    "fortran/fieldstone_arrays_types.f90",
    "fortran/fieldstone_jobs.f90",
    "fortran/fieldstone_views.f90",
    "fortran/fieldstone_groups.f90",
    "fortran/fieldstone_imports.f90",
    "fortran/fieldstone_meshes.f90",
    "fortran/fieldstone_partitions.f90",
    "fortran/fieldstone_arrays.f90",
];

/// The folder `capi/`.
pub fn capi() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the built `libfieldstone.so` and `libfieldstone.a`: `FIELDSTONE_TEST_LIBRARY`, which `make
/// test` sets. Without it this function asks cargo to build them, because cargo builds no cdylib for
/// integration tests: with the profile and target folder of this test, and for the packages and
/// dev-dependencies of `make test`, so that nothing is built twice.
pub fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(built) = std::env::var_os("FIELDSTONE_TEST_LIBRARY") {
            return PathBuf::from(built);
        }
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().and_then(Path::parent).unwrap(); // of TARGET/PROFILE/deps/test
        let profile = match folder.file_name().and_then(|name| name.to_str()).unwrap() {
            "debug" => "dev",
            other => other,
        };
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args([
            "build",
            "--quiet",
            "--offline",
            "--locked",
            "--workspace",
            "--exclude",
            "fieldstone-python",
            "--lib",
            "--test",
            "header",
            "--profile",
            profile,
        ]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap()).current_dir(capi());
        succeed(&mut cargo);
        for name in ["libfieldstone.so", "libfieldstone.a"] {
            assert!(folder.join(name).exists(), "{name} is not in {}", folder.display());
        }
        folder.to_owned()
    })
}

/// Runs a command, which must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        done.status.success(),
        "{command:?}: {}\n{}{}",
        done.status,
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    done
}

/// The output of a command, which must succeed.
pub fn printed(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).unwrap()
}

/// Compiles a C program of `capi/` into `folder` as the guide says, with warnings as errors.
pub fn compile_c(source: &str, folder: &Path, link: &[&str]) -> PathBuf {
    let program = folder.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-D_POSIX_C_SOURCE=200809L"]);
    gcc.arg("-I").arg(capi().join("include")).arg(capi().join(source)).arg("-o").arg(&program);
    gcc.arg("-L").arg(library()).args(link);
    succeed(&mut gcc);
    program
}

/// Linker flags for the shared library; the program finds it in its build folder.
pub fn shared() -> Vec<String> {
    vec!["-lfieldstone".to_owned(), format!("-Wl,-rpath,{}", library().display()), "-lm".to_owned()]
}

/// The folder with the module files and objects of Fortran `sources` of `capi/`, compiled with warnings as
/// errors: once for all tests with the same sources and flags.
pub fn fortran_objects(sources: &[&str], flags: &[&str]) -> PathBuf {
    let texts = sources.iter().map(|source| std::fs::read(capi().join(source)).unwrap());
    let mut named: Vec<_> = sources.iter().map(|source| (*source).to_owned()).zip(texts).collect();
    named.push((format!("flags {}", flags.join(" ")), Vec::new()));
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = root.join(format!("fortran-{}", digest::of_files(named)));
    if folder.exists() {
        return folder;
    }
    let building = tempfile::tempdir_in(root).unwrap();
    let mut gfortran = Command::new("gfortran");
    gfortran.args(["-Wall", "-Wextra", "-Werror"]).args(flags).arg("-c");
    gfortran.args(sources.iter().map(|source| capi().join(source))).current_dir(building.path());
    succeed(&mut gfortran);
    // Another test may have been faster.
    if std::fs::rename(building.path(), &folder).is_ok() {
        let _ = building.keep();
    }
    folder
}

/// The objects of [`fortran_objects`].
pub fn objects(folder: &Path, sources: &[&str]) -> Vec<PathBuf> {
    let object = |source: &&str| folder.join(Path::new(source).with_extension("o").file_name().unwrap());
    sources.iter().map(object).collect()
}

/// The array field of a key as 64-bit floats, and its shape.
pub fn array(store: &dyn fieldstone::FieldStore, key: &fieldstone::Pairs<'_>) -> (Vec<u64>, Vec<f64>) {
    let field = store.get(key, &fieldstone::ReadOptions::default()).unwrap();
    assert_eq!(field.dtype().unwrap(), Some(fieldstone::DType::F8));
    let bytes = field.read().unwrap();
    let values = bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap()));
    (field.shape().unwrap().unwrap(), values.collect())
}

/// Opens a store for reading.
pub fn open(folder: &Path) -> std::sync::Arc<dyn fieldstone::FieldStore> {
    let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
    fieldstone::open(folder.to_str().unwrap(), &options).unwrap().fields()
}

pub const NX: usize = 96;
pub const NY: usize = 64;
pub const STEPS: usize = 20;

/// The results of both heat examples, computed independently: the temperature after each step, row by row.
pub fn heat() -> Vec<Vec<f64>> {
    let mut u = vec![0.0; NY * NX];
    for y in 8..16 {
        u[y * NX + 20..y * NX + 44].fill(100.0);
    }
    let mut steps = vec![u.clone()];
    for _ in 0..STEPS {
        let old = u.clone();
        for y in 1..NY - 1 {
            for x in 1..NX - 1 {
                let i = y * NX + x;
                u[i] = old[i] + 0.2 * (old[i - 1] + old[i + 1] + old[i - NX] + old[i + NX] - 4.0 * old[i]);
            }
        }
        steps.push(u.clone());
    }
    steps
}

/// Checks the output of a heat example: every step is complete, correct and under the expected key.
pub fn check_heat(folder: &Path, run: &str) {
    let store = open(folder);
    let listed = store.list(&fieldstone::Request::new(), &Default::default()).unwrap();
    let listed: Vec<_> = listed.map(Result::unwrap).collect();
    assert_eq!(listed.len(), STEPS + 1);
    assert!(listed.iter().all(|entry| entry.complete && entry.nbytes == (8 * NX * NY) as u64));
    for (step, expected) in heat().into_iter().enumerate() {
        let key = [("run", run), ("variable", "temperature"), ("step", &step.to_string())];
        let (shape, found) = array(&*store, &key);
        assert_eq!(shape, [NY as u64, NX as u64]);
        let far = found.iter().zip(&expected).position(|(a, b)| (a - b).abs() > 1e-9); // fused multiply-adds
        assert_eq!(far, None, "step {step} differs");
    }
    assert!(store.verify(&fieldstone::Request::new()).unwrap().ok());
}

/// Runs `array_digest.c`, built as `program`, on one rank and on four: at each level the files must have the
/// checksum that Rust's and Python's files have.
pub fn check_digests(program: &Path, mpiexec: impl Fn(usize, &Path, &Path) -> Command) {
    for ranks in [1, 4] {
        let folder = tempfile::tempdir().unwrap();
        succeed(&mut mpiexec(ranks, program, folder.path()));
        for level in 1..=3 {
            for method in ["auto", "direct", "exchange", "view"] {
                let found = digest::of_folder(&folder.path().join(format!("{level}-{method}")));
                assert_eq!(found, digest::of_level(level), "{ranks} ranks, level {level}, {method}");
            }
        }
    }
}
