//! Crashes: jobs killed at every call of the disk, ranks that die at every collective, power cuts, a full disk.
//! Afterwards, the path leads to the old container, the new one, or a file that is refused because it was never
//! finished: never to a file that looks finished but is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::validate::validate;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, read_exact_at};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::netcdf::NcType;

const PATH: &str = "/work/t.nc";
const RANKS: usize = 3;

/// The action of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Job {
    /// Creates a container and closes it.
    Create,
    /// Creates a container, syncs and then closes it.
    Sync,
    /// Creates a container with records and extends its definitions, so that data move.
    Move,
    /// Opens the old container and extends its definitions inside its free space.
    Further,
    /// Opens the old container and extends its definitions, so that data move.
    FurtherMove,
    /// Creates a container with the partitioned header and closes it.
    Partitioned,
    /// Creates the same, syncs and then closes it.
    PartitionedSync,
}

impl Job {
    const ALL: [Job; 7] = [
        Job::Create,
        Job::Sync,
        Job::Move,
        Job::Further,
        Job::FurtherMove,
        Job::Partitioned,
        Job::PartitionedSync,
    ];
    fn is_partitioned(self) -> bool {
        matches!(self, Job::Partitioned | Job::PartitionedSync)
    }
    fn needs_old(self) -> bool {
        matches!(self, Job::Further | Job::FurtherMove)
    }
}

fn put(container: &Container, name: &str, start: &[u64], values: &[i32]) -> Result<()> {
    let var = container.var(name)?;
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    container.elements().put(&var, &Selection::of(start, &[values.len() as u64]), &data, NcType::Int, true)
}

fn define(container: &Container, rank: usize) -> Result<()> {
    container.define().dim("time", None)?;
    container.define().dim("x", Some(4))?;
    container.define().var(&format!("rank_{rank}/v"), NcType::Int, &["x"])?;
    container.define().var("r", NcType::Int, &["time"])?;
    container.enddef()?;
    for other in 0..RANKS {
        let (values, start) = ([rank as i32 + 10; 4], [0]);
        let name = format!("rank_{other}/v");
        // Each rank writes its own data; the others take part.
        let values = if other == rank { &values[..] } else { &values[..0] };
        if container.var(&name).is_ok() {
            put(container, &name, &start, values)?;
        }
    }
    put(container, "r", &[rank as u64], &[rank as i32 + 1])
}

fn old(env: &Env) {
    let comm = Arc::new(SingleComm::new(env.disk.clone()));
    let mut options = CreateOptions { indexing: Indexing::Always, ..CreateOptions::default() };
    options.alignment.h_minfree = 2000;
    let container = Container::create(Path::new(PATH), comm, env, &options).unwrap();
    container.define().dim("y", Some(300)).unwrap();
    container.define().var("old", NcType::Int, &["y"]).unwrap();
    container.enddef().unwrap();
    put(&container, "old", &[0], &[77; 300]).unwrap();
    container.sync().unwrap();
    container.close().unwrap();
}

fn act(job: Job, comm: Arc<dyn Comm>, env: &Env) -> Result<()> {
    let rank = comm.rank();
    let path = Path::new(PATH);
    if job.needs_old() {
        let container = Container::open(path, Mode::Append, comm, env)?;
        container.redef()?;
        container.define().put_att(None, "note", NcType::Char, b"defined further")?;
        if job == Job::FurtherMove {
            container.define().put_att(None, "long", NcType::Char, &[b'x'; 3000])?;
        }
        container.define().dim("z", Some(2))?;
        container.define().var("late", NcType::Int, &["z"])?;
        container.enddef()?;
        put(&container, "late", &[0], if rank == 0 { &[5, 6] } else { &[] })?;
        return container.close();
    }
    let format = if job.is_partitioned() { Format::Partitioned } else { CreateOptions::default().format };
    let options = CreateOptions { indexing: Indexing::Always, format, ..CreateOptions::default() };
    let container = Container::create(path, comm, env, &options)?;
    define(&container, rank)?;
    if job == Job::Move {
        container.redef()?;
        container.define().put_att(None, "long", NcType::Char, &[b'x'; 3000])?;
        container.define().var(&format!("late_{rank}"), NcType::Int, &["time"])?;
        container.enddef()?;
        put(&container, &format!("late_{rank}"), &[0], &[3])?;
    }
    if matches!(job, Job::Sync | Job::PartitionedSync) {
        container.sync()?;
    }
    container.close()
}

/// Runs all ranks as one process, so that a kill stops all of them between two calls of the disk.
fn run(job: Job, env: &Env, size: usize, faults: Faults) -> Vec<Result<()>> {
    threads::run(size, Some(7), env.disk.clone(), faults, |comm| act(job, comm, env))
}

fn content(world: &SimWorld, path: &str) -> Option<Vec<u8>> {
    let env = world.process("reader");
    let file = env.disk.open_read(Path::new(path)).ok()?;
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    Some(bytes)
}

fn open(world: &SimWorld) -> Result<Container> {
    let env = world.process("reader");
    Container::open(Path::new(PATH), Mode::Read, Arc::new(SingleComm::new(env.disk.clone())), &env)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CrashState {
    Nothing,
    Old,
    New,
    Unfinished,
}

/// The contents of a container as a reader sees them.
fn dump(container: &Container) -> String {
    let metadata = container.metadata().unwrap();
    let mut text = format!("{:?} {:?}\n", metadata.counts().unwrap(), metadata.attrs().unwrap());
    for var in metadata.vars(0, usize::MAX).unwrap() {
        assert_eq!(container.var(&var.name).unwrap(), var);
        let mut data = vec![0; var.shape().iter().product::<u64>() as usize * 4];
        container.elements().get(&var, &Selection::all(&var.shape()), &mut data, NcType::Int, false).unwrap();
        text += &format!("{var:?} {data:?}\n");
    }
    text
}

/// The contents of a file with these bytes as a reader sees them.
fn dump_of(bytes: &[u8]) -> String {
    let world = SimWorld::new(1);
    let env = world.process("writer");
    env.disk.create_dir_all(Path::new("/work")).unwrap();
    let file = env.disk.create_new(Path::new(PATH)).unwrap();
    fieldstone_core::env::write_all_at(&*file, bytes, 0).unwrap();
    dump(&open(&world).unwrap())
}

/// Checks the file under the path; panics if it is a container that was not finished.
fn judge(world: &SimWorld, old: Option<&[u8]>, new: &[u8], what: &str) -> CrashState {
    let found = match content(world, PATH) {
        None if old.is_none() => return CrashState::Nothing,
        None => panic!("{what}: the old container is gone"),
        Some(found) => found,
    };
    match open(world) {
        Ok(_) if Some(&found[..]) == old => CrashState::Old,
        Ok(_) if found == new => {
            assert!(validate(&found).unwrap().ok, "{what}");
            CrashState::New
        }
        Ok(container) => {
            // It was synced, and about to get its index; or it still has parts of the old one's.
            let found = dump(&container);
            match old {
                Some(old) if found == dump_of(old) => CrashState::Old,
                _ if found == dump_of(new) => CrashState::New,
                _ => panic!("{what}: it looks finished and is neither the old nor the new container"),
            }
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            // The magic is four bytes in one write; the simulated disk tears it nevertheless, and a power cut may
            // leave zeros.
            let refused = |((found, a), b): ((&u8, &u8), &u8)| [*a, *b, 0].contains(found);
            let torn = |magic: &[u8; 3]| found.iter().zip(magic).zip(b"FSU").all(refused);
            assert!(torn(b"CDF") || torn(b"FSP"), "{what}: {error}");
            let report = validate(&found).unwrap();
            assert!(!report.ok, "{what}: validate takes an unfinished file for a finished one");
            if found.starts_with(b"FSU") {
                let finding = report.findings[0].message.as_str();
                assert!(finding.contains("never finished"), "{what}: {finding}");
                if found.starts_with(b"FSUP") {
                    let stages = ["during definition", "in enddef", "while writing data"];
                    assert!(stages.iter().any(|stage| finding.contains(stage)), "{what}: {finding}");
                }
            }
            CrashState::Unfinished
        }
    }
}

fn world(with_old: bool) -> (SimWorld, Option<Vec<u8>>) {
    let world = SimWorld::new(5);
    let env = world.process("maker");
    env.disk.create_dir_all(Path::new("/work")).unwrap();
    env.disk.sync_dir(Path::new("/")).unwrap();
    if with_old {
        old(&env);
    }
    let old = content(&world, PATH);
    (world, old)
}

fn finished(job: Job, with_old: bool, size: usize) -> Vec<u8> {
    let (world, _) = world(with_old);
    let results = run(job, &world.process("job"), size, Faults::none());
    results.into_iter().for_each(|result| result.unwrap_or_else(|error| panic!("{job:?}: {error}")));
    content(&world, PATH).unwrap()
}

fn cases() -> impl Iterator<Item = (Job, bool, usize)> {
    let jobs = Job::ALL.into_iter().flat_map(|job| [(job, true), (job, false)]);
    let jobs = jobs.filter(|(job, with_old)| *with_old || !job.needs_old());
    jobs.flat_map(|(job, with_old)| [(job, with_old, 1), (job, with_old, RANKS)])
}

#[test]
fn a_job_killed_at_any_call_of_the_disk_leaves_old_new_or_unfinished() {
    let mut seen = std::collections::BTreeMap::new();
    for (job, with_old, size) in cases() {
        let new = finished(job, with_old, size);
        for n in 1.. {
            let (world, old) = world(with_old);
            let env = world.process("job");
            world.kill_nth(&env, None, n);
            let results = run(job, &env, size, Faults::none());
            if results.iter().all(Result::is_ok) {
                break;
            }
            let what = format!("{job:?} by {size}, killed at call {n}");
            *seen.entry(judge(&world, old.as_deref(), &new, &what)).or_insert(0) += 1;
        }
    }
    println!("{seen:?}");
    assert!(seen.len() == 4 && seen.values().sum::<i32>() > 200, "{seen:?}");
}

#[test]
fn a_rank_that_dies_at_any_collective_leaves_old_new_or_unfinished() {
    let mut deaths = 0;
    for (job, with_old, size) in cases().filter(|(_, _, size)| *size > 1) {
        let new = finished(job, with_old, size);
        for rank in 0..size {
            for n in 1.. {
                let (world, old) = world(with_old);
                let faults = Faults::death(rank, n);
                let results = run(job, &world.process("job"), size, faults.clone());
                if !faults.struck() {
                    break;
                }
                let what = format!("{job:?}, rank {rank} dead at collective {n}");
                assert!(results.iter().any(Result::is_err), "{what}: no rank returned an error");
                judge(&world, old.as_deref(), &new, &what);
                deaths += 1;
            }
        }
    }
    assert!(deaths > 100, "{deaths}");
}

#[test]
fn an_error_of_a_rank_at_any_step_reaches_all() {
    for (job, with_old, size) in cases().filter(|(_, with_old, size)| *size > 1 && *with_old) {
        let new = finished(job, with_old, size);
        for rank in 0..size {
            for n in 1.. {
                let (world, old) = world(with_old);
                let faults = Faults::step(rank, n);
                let results = run(job, &world.process("job"), size, faults.clone());
                if !faults.struck() {
                    break;
                }
                let what = format!("{job:?}, rank {rank} fails in step {n}");
                for result in results {
                    let error = result.err().unwrap_or_else(|| panic!("{what}: a rank returned no error"));
                    assert!(error.message().contains(&format!("rank {rank}")), "{what}: {error}");
                }
                judge(&world, old.as_deref(), &new, &what);
            }
        }
    }
}

#[test]
fn a_power_cut_takes_nothing_that_was_synced_or_replaced() {
    let mut cuts = 0;
    for (job, with_old, size) in cases() {
        // Only a container under a free path is durable after `sync`; one written in place is not.
        let synced = matches!(job, Job::Sync | Job::PartitionedSync);
        if !(synced || with_old && job != Job::Further) {
            continue;
        }
        let new = finished(job, with_old, size);
        for n in 1.. {
            let (world, old) = world(with_old);
            let env = world.process("job");
            world.kill_nth(&env, None, n);
            let done = run(job, &env, size, Faults::none()).iter().all(Result::is_ok);
            for seed in 0..4 {
                let after = world.power_cut(seed);
                let what = format!("{job:?} by {size}, power cut {seed} at call {n}");
                let found = judge(&after, old.as_deref(), &new, &what);
                assert!(!done || !synced || found == CrashState::New, "{what}: {found:?}");
                cuts += 1;
            }
            if done {
                break;
            }
        }
    }
    assert!(cuts > 400, "{cuts}");
}

#[test]
fn a_full_disk_is_an_error_and_the_old_container_stays() {
    let jobs = [(Job::Create, 1), (Job::Create, RANKS), (Job::FurtherMove, RANKS)];
    for (job, size) in jobs.into_iter().chain([(Job::Partitioned, 1), (Job::Partitioned, RANKS)]) {
        let new = finished(job, true, size);
        let mut failures = 0;
        for room in (0..new.len() as u64).step_by(97) {
            let (world, old) = world(true);
            world.set_capacity(Some(old.as_ref().unwrap().len() as u64 + room));
            let results = run(job, &world.process("job"), size, Faults::none());
            let what = format!("{job:?} by {size}, room for {room} bytes");
            if results.iter().all(Result::is_ok) {
                continue;
            }
            failures += 1;
            for result in results {
                let error: Error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
            }
            assert_eq!(judge(&world, old.as_deref(), &new, &what), CrashState::Old, "{what}");
        }
        assert!(failures > 3, "{job:?}: {failures}");
    }
}
