//! Real processes on the real disk, killed with SIGKILL at random moments.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::validate::validate;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::NcType;

const PLACE: &str = "FIELDSTONE_TEST_KILLED";
const FORMAT: &str = "FIELDSTONE_TEST_KILLED_PARTITIONED";
const VARS: usize = 600;
const RANKS: usize = 2;

fn value(container: &Container, name: &str) -> Result<i32> {
    let var = container.var(name)?;
    let mut data = [0; 4];
    container.elements().get(&var, &Selection::element(&[0]), &mut data, NcType::Int, false)?;
    Ok(i32::from_ne_bytes(data))
}

fn write(path: &Path, comm: Arc<dyn Comm>, env: &Env, generation: i32, format: Format) -> Result<()> {
    let rank = comm.rank();
    let options = CreateOptions { format, ..CreateOptions::default() };
    let container = Container::create(path, comm, env, &options)?;
    container.define().dim("x", Some(1))?;
    let names = (0..VARS).map(|i| format!("rank_{rank}/v{i}"));
    let put = |name: &str| -> Result<()> {
        let var = container.var(name)?;
        container.elements().put(
            &var,
            &Selection::element(&[0]),
            &generation.to_ne_bytes(),
            NcType::Int,
            false,
        )
    };
    for name in names.clone() {
        container.define().var(&name, NcType::Int, &["x"])?;
    }
    container.enddef()?;
    names.clone().try_for_each(|name| put(&name))?;
    if generation % 3 == 0 && format != Format::Partitioned {
        container.redef()?;
        container.define().put_att(None, "note", NcType::Char, &[b'n'; 2000])?;
        container.enddef()?;
    }
    container.close()
}

/// The action of the killed process; does nothing when run as a test.
#[test]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(PLACE) else { return };
    let env = Env::real();
    let partitioned = std::env::var_os(FORMAT).is_some();
    let format = if partitioned { Format::Partitioned } else { CreateOptions::default().format };
    for generation in 1.. {
        let path = Path::new(&path);
        let results = threads::run(RANKS, None, env.disk.clone(), Faults::none(), |comm| {
            write(path, comm, &env, generation, format)
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn a_killed_process_leaves_a_whole_container_or_an_unfinished_one() {
    killed(CreateOptions::default().format);
}

#[test]
fn a_killed_process_leaves_a_whole_partitioned_container_or_an_unfinished_one() {
    killed(Format::Partitioned);
}

fn killed(format: Format) {
    let folder = tempfile::tempdir().unwrap();
    let env = Env::real();
    let (mut whole, mut unfinished, mut newest) = (0, 0, 0);
    for round in 0..40u64 {
        let path = folder.path().join(format!("t{}.nc", round % 20));
        // The container left under a path is complete when the next process begins.
        let had_one = path.exists();
        let mut child = Command::new(std::env::current_exe().unwrap());
        if format == Format::Partitioned {
            child.env(FORMAT, "1");
        }
        let mut child = child
            .args(["container_kill::writes_until_it_is_killed", "--exact", "--test-threads=1"])
            .env(PLACE, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Half of them early, while the first container is being created.
        let wait = if round % 2 == 0 { 500 + round * 997 % 9_000 } else { 2_000 + round * 7_919 % 90_000 };
        std::thread::sleep(Duration::from_micros(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        if !path.exists() {
            continue;
        }
        let comm = Arc::new(fieldstone_core::env::comm::single::SingleComm::new(env.disk.clone()));
        let report = validate(&std::fs::read(&path).unwrap()).unwrap();
        match Container::open(&path, Mode::Read, comm, &env) {
            Ok(container) => {
                let first = value(&container, "rank_0/v0").unwrap();
                // If there was nothing before, the first generation is the earliest that may be found.
                assert!(first > 0 || had_one, "finished, and nothing is in it");
                for rank in 0..RANKS {
                    for i in 0..VARS {
                        assert_eq!(value(&container, &format!("rank_{rank}/v{i}")).unwrap(), first);
                    }
                }
                assert!(report.ok, "{:?}", report.findings);
                whole += 1;
                newest = newest.max(first);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                let bytes = std::fs::read(&path).unwrap();
                assert!(bytes.is_empty() || bytes.starts_with(b"FSU"), "{error}");
                let finding = &report.findings[0].message;
                assert!(finding.contains("never finished"), "{finding}");
                assert!(!had_one, "an old container was lost: {error}");
                unfinished += 1;
                // The next process begins with a complete container.
                std::fs::remove_file(&path).unwrap();
                let comm = Arc::new(fieldstone_core::env::comm::single::SingleComm::new(env.disk.clone()));
                write(&path, comm.clone(), &env, 0, CreateOptions::default().format).unwrap();
                let container = Container::open(&path, Mode::Append, comm, &env).unwrap();
                container.redef().unwrap();
                container.define().dim("y", Some(1)).unwrap();
                for i in 0..VARS {
                    container.define().var(&format!("rank_1/v{i}"), NcType::Int, &["y"]).unwrap();
                }
                container.close().unwrap();
            }
        }
    }
    println!("{whole} whole, {unfinished} unfinished, generation {newest}");
    assert!(whole >= 10, "{whole} whole, {unfinished} unfinished");
}
