//! Random jobs of arrays in a store, compared element by element with a model: views of all kinds, every type, levels
//! and layouts, both orders, holes with and without a fill, sets and steps that are written again, 1 to 64 ranks. Other
//! ranks read the result by other views, programs read it as fields, and the same elements leave the same files however
//! they are distributed.
//!
//! `FIELDSTONE_CRASH=full` makes it 3,000 cases, and `FIELDSTONE_SEED` one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone::arrays::{
    ArrayGroup, ArrayJob, GroupOptions, JobOptions, LevelChoice, MemoryMut, SetOptions, View, WriteOptions,
};
use fieldstone::catalog::{ArrayLayout, StorageOrder};
use fieldstone::env::comm::Comm;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::env::sim::SimWorld;
use fieldstone::env::{Disk, Env};
use fieldstone::prelude::*;
use fieldstone::{
    ByteOrder, DType, ErrorKind, ListOptions, Mode, OpenOptions, ReadOptions, Request, Result, Store,
};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::{Random, require, seeded};

use crate::arrays_random_case::{Act, Case, Job, Shown, Stored, Write};
use crate::distributed_memory::{OwnMemory, Strided, turn};
use crate::distributed_model::{Spec, number_of_ranks, reading};

/// Names of files and their bytes, for each job.
type Files = Vec<Vec<(String, Vec<u8>)>>;

pub fn open(env: &Env, mode: Mode) -> Result<Store> {
    let options = OpenOptions { mode, ..OpenOptions::default() };
    fieldstone::open_in(env.clone(), "/s", Path::new("/s"), &options)
}

pub fn read_file(disk: &dyn Disk, path: &Path) -> (String, Vec<u8>) {
    let file = disk.open_plain(path, false).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    (path.file_name().unwrap().to_str().unwrap().to_owned(), bytes)
}

impl Job {
    fn open(&self, case: &Case, store: &Store, comm: Arc<dyn Comm>) -> Result<ArrayJob> {
        let Job { writers, buffer, .. } = *self;
        let (layout, readers) = (case.layout, writers);
        let options = JobOptions { layout, writers, readers, buffer, ..JobOptions::default() };
        ArrayJob::open(store, Some(comm), Some("r"), &options)
    }

    /// One rank's acts; returns the files of the job.
    fn perform(&self, case: &Case, env: &Env, comm: Arc<dyn Comm>) -> Result<Vec<PathBuf>> {
        let store = open(env, Mode::Append)?;
        let job = self.open(case, &store, comm)?;
        let group = match self.declares {
            true => job.group("g", &case.options())?,
            false => job.declared_group("g")?,
        };
        for (n, act) in self.acts.iter().enumerate() {
            match act {
                Act::Flush => job.flush()?,
                Act::Discard => job.discard()?,
                Act::Write(write) => self.write(case, &group, job.rank(), (write, n as u64))?,
            }
        }
        job.flush()?;
        let files = group.files();
        job.close()?;
        Ok(files)
    }

    fn write(&self, case: &Case, group: &ArrayGroup, rank: usize, (write, n): (&Write, u64)) -> Result<()> {
        let (set, spec) = (&case.sets[write.set], &write.held[rank]);
        group.view(&spec.view(), Some(&[&set.name]))?;
        let (local, elements) = spec.model(&write.stored.shape, rank);
        let mut memory = OwnMemory::new(set.dtype, &local, self.seed + n);
        for (offset, element) in memory.strided.offsets(&local).into_iter().zip(&elements) {
            if let Some((at, true)) = element {
                let at = case.place(spec, &write.stored.shape, *at);
                memory.put(offset, case.element(write.set, write.salt, at));
            }
        }
        let how = WriteOptions { wait: write.wait, ..WriteOptions::default() };
        group.write_with(&set.name, write.step, Ok(memory.shared(&local)), &how)?;
        // Before the flush the job reads it, by any view.
        let of = (write.set, write.step, &*write.stored);
        read(case, group, of, &write.asked[rank], (rank, self.seed))
    }
}

/// Reads an array by a view of its own, and compares all memory, including elements outside the view.
fn read(
    case: &Case,
    group: &ArrayGroup,
    (set, step, stored): (usize, i64, &Stored),
    spec: &Spec,
    (rank, seed): (usize, u64),
) -> Result<()> {
    let dtype = case.sets[set].dtype;
    let request = group.begin_read(&case.sets[set].name, step, Some(&spec.view()))?;
    let (local, elements) = spec.model(&stored.shape, rank);
    assert_eq!(request.local_shape(), local);
    let [mut expected, mut memory] = [(); 2].map(|()| OwnMemory::new(dtype, &local, seed ^ rank as u64));
    for (offset, element) in expected.strided.offsets(&local).into_iter().zip(&elements) {
        if let Some((at, _)) = element {
            let from = case.place(spec, &stored.shape, *at) as usize * dtype.size();
            expected.put(offset, stored.bytes[from..from + dtype.size()].to_vec());
        }
    }
    let Strided { bytes, strides, origin } = &mut memory.strided;
    let into = MemoryMut { bytes, dtype: memory.dtype, shape: &local, strides, origin: *origin };
    group.read(&request, Ok(into))?;
    let same = memory.strided.bytes == expected.strided.bytes;
    assert!(same, "rank {rank} reads set {set} at {step} by {spec:?} of {:?}", stored.shape);
    Ok(())
}

/// Runs the jobs of a case, one after another, in a store of their own.
fn run(case: &Case) -> (Env, Files) {
    let env = SimWorld::memory();
    let each = |job: &Job| {
        let on_rank = |comm: Arc<dyn Comm>| job.perform(case, &env, comm);
        let all = threads::run(job.ranks, None, env.disk.clone(), Faults::none(), on_rank);
        let paths = all.into_iter().map(|paths| paths.unwrap()).next().unwrap();
        // A job that flushed no step into a file removes the file when it closes.
        let left = paths.iter().filter(|path| env.disk.stat(path).is_ok());
        left.map(|path| read_file(&*env.disk, path)).collect()
    };
    let files = case.jobs.iter().map(each).collect();
    (env, files)
}

/// Checks the store as programs see it.
fn check_fields(case: &Case, env: &Env, shown: &Shown) {
    let store = open(env, Mode::Read).unwrap();
    let listed = store.list(&Request::new(), &ListOptions::default()).unwrap();
    assert_eq!(listed.map(Result::unwrap).count(), shown.len());
    for ((set, step), stored) in shown {
        let (set, step) = (&case.sets[*set], step.to_string());
        let of = || {
            format!("{set:?} at {step}, {:?}, of {:?}, {} missing", case.layout, stored.shape, stored.missing)
        };
        let key = [("run", "r"), ("variable", set.name.as_str()), ("step", step.as_str())];
        let field = store.get(&key, &ReadOptions::default()).unwrap().lenient();
        let mut shape = stored.shape.clone();
        if case.order == StorageOrder::Fortran {
            shape.reverse();
        }
        assert_eq!(field.shape().unwrap().unwrap(), shape, "{}", of());
        let dtype = field.dtype().unwrap().unwrap();
        assert_eq!(dtype.to_native(), set.dtype.to_native(), "{}", of());
        assert_eq!(field.is_complete().unwrap(), set.fill.is_some() || stored.missing == 0, "{}", of());
        let mut bytes = field.read().unwrap();
        turn(dtype, dtype.with_order(ByteOrder::Big), &mut bytes);
        assert!(bytes == stored.bytes, "{}", of());
    }
    assert!(store.verify(&Request::new()).unwrap().damaged.is_empty());
}

/// Other ranks, with views of their own, read the result.
fn read_back(random: &mut Random, case: &Case, env: &Env, shown: &Shown) {
    let job = Job { ranks: number_of_ranks(random), writers: None, declares: false, ..case.jobs[0].clone() };
    let mode = if random.coin() { Mode::Read } else { Mode::Append };
    let asked: Vec<_> = shown.values().map(|stored| reading(random, &stored.shape, job.ranks)).collect();
    let each = |comm: Arc<dyn Comm>| {
        let store = open(env, mode)?;
        let opened = job.open(case, &store, comm)?;
        let group = opened.declared_group("g")?;
        for (((set, step), stored), asked) in shown.iter().zip(&asked) {
            let rank = opened.rank();
            read(case, &group, (*set, *step, stored), &asked[rank], (rank, job.seed))?;
        }
        opened.close()
    };
    let outcomes = threads::run(job.ranks, None, env.disk.clone(), Faults::none(), each);
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

fn one_case(seed: u64) -> (usize, usize) {
    let random = &mut *seeded(seed);
    let case = Case::random(random);
    let (env, files) = run(&case);
    let shown = case.shown();
    check_fields(&case, &env, &shown);
    if !shown.is_empty() {
        read_back(random, &case, &env, &shown);
    }
    // The library chooses a level by the present cost of an open.
    if case.layout == ArrayLayout::Files && case.level > 0 {
        let other = case.dealt_anew(random);
        let (_, found) = run(&other);
        assert!(found == files, "seed {seed}: {:?} and {:?} leave other files", case.method, other.method);
    }
    (shown.len(), files.iter().map(Vec::len).sum())
}

#[test]
fn random_jobs_leave_in_the_store_what_the_model_says_and_any_ranks_read_it_back() {
    let count = if require::full() { 3_000 } else { 40 };
    let (mut arrays, mut files) = (0, 0);
    for seed in seeds(count) {
        let found = one_case(seed);
        (arrays, files) = (arrays + found.0, files + found.1);
    }
    println!("{count} cases, {arrays} arrays, {files} files");
}

#[test]
fn a_box_goes_to_the_logs_in_pieces_of_which_the_last_is_smaller() {
    let env = SimWorld::memory();
    let each = |comm: Arc<dyn Comm>| -> Result<Vec<u8>> {
        let store = open(&env, Mode::Append)?;
        // Three rows of two bytes at a time, of five and of four.
        let options = JobOptions { layout: ArrayLayout::Fields, buffer: 6, ..JobOptions::default() };
        let job = ArrayJob::open(&store, Some(comm), Some("r"), &options)?;
        let group = job.group("g", &GroupOptions::new([SetOptions::new("p", DType::U1, &[9, 2])]))?;
        group.view(&View::grid(&[2, 1]), None)?;
        let own = if job.rank() == 0 { 0..10 } else { 10..18 };
        group.write_dense("p", 0, &own.collect::<Vec<u8>>())?;
        job.flush()?;
        group.read_dense("p", 0, Some(&View::block(&[0, 0], &[9, 2])))
    };
    for outcome in threads::run(2, None, env.disk.clone(), Faults::none(), each) {
        assert_eq!(outcome.unwrap(), (0..18).collect::<Vec<u8>>());
    }
}

#[test]
fn a_write_that_fails_takes_its_file_back_and_the_job_goes_on() {
    let env = SimWorld::memory();
    let each = |comm: Arc<dyn Comm>| -> Result<(u64, Vec<u8>)> {
        let store = open(&env, Mode::Append)?;
        let job = ArrayJob::open(&store, Some(comm), Some("r"), &JobOptions::default())?;
        let level = LevelChoice::number(1)?;
        let sets = [SetOptions::new("p", DType::U1, &[4])];
        let group = job.group("g", &GroupOptions { level, ..GroupOptions::new(sets) })?;
        group.view(&View::block(&[0], &[4]), None)?;
        group.write_dense("p", 0, &[1; 4])?;
        // Both ranks write all of it, and each its own.
        let error = group.write_dense("p", 0, &[job.rank() as u8; 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let opened = job.report().opened;
        group.write_dense("p", 0, &[2; 4])?;
        job.flush()?;
        Ok((opened, group.read_dense("p", 0, None)?))
    };
    for outcome in threads::run(2, None, env.disk.clone(), Faults::none(), each) {
        assert_eq!(outcome.unwrap(), (1, vec![2; 4]));
    }
}
