//! Distributed arrays of a store: after a flush, everyone sees the ranks' joint writes, as fields and in files, and a
//! run goes on with any number of ranks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fieldstone::arrays::{
    ArrayGroup, ArrayJob, GroupOptions, Hints, JobOptions, LevelChoice, Memory, Method, SetOptions, View,
    WriteOptions, dense_strides,
};
use fieldstone::catalog::{ArrayLayout, StorageOrder};
use fieldstone::env::Env;
use fieldstone::env::comm::Comm;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::prelude::*;
use fieldstone::{
    Code, DType, ErrorKind, Field, IfExists, ListOptions, OpenOptions, ReadOptions, Request, Result, Store,
};
use fieldstone_testkit::seeded;

fn open(folder: &Path) -> Store {
    fieldstone::open(&folder.join("store").display().to_string(), &OpenOptions::default()).unwrap()
}

/// Runs a body on ranks that are threads, each with a handle of its own on the store.
fn ranks<T: Send>(folder: &Path, size: usize, body: impl Fn(ArrayJob) -> Result<T> + Sync) -> Vec<Result<T>> {
    ranks_with(folder, size, &JobOptions::default(), body)
}

fn ranks_with<T: Send>(
    folder: &Path,
    size: usize,
    options: &JobOptions,
    body: impl Fn(ArrayJob) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let path = folder.join("store").display().to_string();
    let each = |comm: Arc<dyn Comm>| {
        let store = fieldstone::open(&path, &OpenOptions::default())?;
        body(ArrayJob::open(&store, Some(comm), Some("r"), options)?)
    };
    threads::run(size, None, Env::real().disk, Faults::none(), each)
}

fn whole<T>(results: Vec<Result<T>>) -> Vec<T> {
    results.into_iter().map(|result| result.unwrap()).collect()
}

/// Element `i` of a set of doubles at a step.
fn value(set: u64, step: i64, i: u64) -> f64 {
    (set * 1_000_000 + i) as f64 + step as f64 / 1024.0
}

fn bytes_of(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_ne_bytes).collect()
}

/// The bytes of a field of doubles, in this machine's byte order.
fn native(field: &Field) -> Vec<u8> {
    let (mut bytes, dtype) = (field.read().unwrap(), field.dtype().unwrap().unwrap());
    if !dtype.is_native() {
        dtype.swap_bytes(&mut bytes);
    }
    bytes
}

fn array(set: u64, step: i64, total: u64) -> Vec<u8> {
    bytes_of((0..total).map(|i| value(set, step, i)))
}

fn two_sets(level: LevelChoice) -> GroupOptions {
    let sets = [SetOptions::new("p", DType::F8, &[6, 10]), SetOptions::new("q", DType::F8, &[6, 10])];
    GroupOptions { level, ..GroupOptions::new(sets) }
}

/// The elements of this rank's part.
fn part(group: &ArrayGroup, job: &ArrayJob, set: u64, step: i64, view: &View) -> Vec<u8> {
    let local = view.resolve(&[6, 10], job.rank(), job.size()).unwrap();
    assert_eq!(group.local_shape("p").unwrap(), local.local_shape());
    let mut part = vec![f64::NAN; local.local_shape().iter().product::<u64>() as usize];
    for run in local.written().runs() {
        for n in 0..run.elements {
            part[(run.memory + n) as usize] = value(set, step, run.at + n);
        }
    }
    bytes_of(part)
}

#[test]
fn what_ranks_write_is_fields_and_is_read_by_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    for (n, level) in ["1", "2", "3", "auto"].into_iter().enumerate() {
        let level = level.parse().map_or(Ok(LevelChoice::Auto), LevelChoice::number).unwrap();
        let name = format!("g{n}");
        let step0 = n as i64 * 100;
        whole(ranks(folder.path(), 4, |job| {
            let view = View::grid(&[2, 2]);
            let group = job.group(&name, &two_sets(level))?;
            group.view(&view, None)?;
            for step in step0..step0 + 3 {
                group.write_dense("p", step, &part(&group, &job, 0, step, &view))?;
                group.write_dense("q", step, &part(&group, &job, 1, step, &view))?;
                // Before the flush only the job reads it.
                let rows = View::block(&[job.rank() as u64, 0], &[1, 10]);
                let read = group.read_dense("q", step, Some(&rows))?;
                let first = job.rank() as u64 * 10;
                assert_eq!(read, bytes_of((first..first + 10).map(|i| value(1, step, i))));
                if step == step0 + 1 {
                    job.flush()?;
                }
            }
            job.close()
        }));
        let store = open(folder.path());
        for (set, variable) in [(0, "p"), (1, "q")] {
            for step in step0..step0 + 3 {
                let key = [("run", "r"), ("variable", variable), ("step", &step.to_string())];
                let field = store.get(&key, &ReadOptions::default()).unwrap();
                assert_eq!(field.shape().unwrap().unwrap(), [6, 10]);
                let bytes = native(&field);
                assert_eq!(bytes, array(set, step, 60), "{variable} at {step}, level {level:?}");
            }
        }
        assert!(store.verify(&Request::new()).unwrap().damaged.is_empty());
        // Three ranks go on, with another view, and read the writes of four.
        whole(ranks(folder.path(), 3, |job| {
            let group = job.declared_group(&name)?;
            assert_eq!(group.last_step()?, Some(step0 + 2));
            let view = View::cyclic(&[3, 1], &[1, 4]);
            let read = group.read_dense("p", step0 + 2, Some(&view))?;
            group.view(&view, None)?;
            assert_eq!(read, part(&group, &job, 0, step0 + 2, &view));
            group.write_dense("p", step0 + 3, &part(&group, &job, 0, step0 + 3, &view))?;
            group.write_dense("q", step0 + 3, &part(&group, &job, 1, step0 + 3, &view))?;
            job.close()
        }));
    }
    let store = open(folder.path());
    assert_eq!(store.list(&Request::new(), &ListOptions::default()).unwrap().count(), 4 * 4 * 2);
    assert!(store.verify(&Request::new()).unwrap().damaged.is_empty());
}

/// The acts of ranks in a random run, in this order.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A set and a step; the number that determines its elements; whether it waits.
    Write(u64, i64, u64, bool),
    Flush,
    Discard,
}

#[derive(Debug, Clone)]
struct WriteScript {
    ranks: usize,
    layout: ArrayLayout,
    level: u64,
    method: Method,
    order: StorageOrder,
    shape: Vec<u64>,
    /// For each set a seed of the map, or a grid.
    maps: [Option<u64>; 2],
    /// Hints of the job, the group and its calls.
    hints: [Hints; 3],
    acts: Vec<Act>,
}

impl WriteScript {
    fn new(seed: u64) -> WriteScript {
        let dice = &mut *seeded(seed);
        let shape = vec![1 + dice.below(9), 1 + dice.below(7), 1 + dice.below(5)];
        let method = [Method::Auto, Method::Direct, Method::Exchange, Method::View][dice.below(4) as usize];
        let order = [StorageOrder::C, StorageOrder::Fortran][dice.below(2) as usize];
        let count = 3 + dice.below(12);
        let act = |_| match dice.below(8) {
            0 | 1 => Act::Flush,
            2 => Act::Discard,
            _ => Act::Write(dice.below(2), dice.below(4) as i64, dice.below(1000), dice.below(2) == 0),
        };
        let acts = (0..count).map(act).collect();
        let maps = [dice.below(2), dice.below(2)].map(|irregular| (irregular == 1).then_some(seed));
        let (ranks, level) = (1 + dice.below(5) as usize, dice.below(4));
        let layout = [ArrayLayout::Files, ArrayLayout::Fields][dice.below(2) as usize];
        let (level, method) = match (layout, method) {
            (ArrayLayout::Files, method) => (level, method),
            (ArrayLayout::Fields, Method::View) => (0, Method::Auto),
            (ArrayLayout::Fields, method) => (0, method),
        };
        let mut hint = || match dice.below(6) {
            0 => vec![("cb_nodes", "1")],
            1 => vec![("cb_nodes", "2"), ("nobody_knows", "1")],
            2 => vec![("direct_write", "true")],
            3 => vec![("direct_read", "true"), ("direct_write", "true")],
            _ => vec![],
        };
        let hints = [hint(), hint(), hint()].map(|pairs| Hints::new(pairs).unwrap());
        WriteScript { ranks, layout, level, method, order, shape, maps, hints, acts }
    }

    /// Whether an act is the first write: then it makes files, with its hints.
    fn is_first(&self, act: &Act) -> bool {
        let mut writes = self.acts.iter().filter(|act| matches!(act, Act::Write(..)));
        writes.next().is_some_and(|first| std::ptr::eq(first, act))
    }

    fn total(&self) -> u64 {
        self.shape.iter().product()
    }

    /// If the map says so, no rank has every third element.
    fn view(&self, set: usize, rank: usize) -> View {
        match self.maps[set] {
            None => View::grid(&[1, self.ranks as u64, 1]),
            Some(seed) => {
                let mut all: Vec<i64> = (0..self.total() as i64).collect();
                let dice = &mut *seeded(seed);
                for i in (1..all.len()).rev() {
                    all.swap(i, dice.below(i as u64 + 1) as usize);
                }
                let own: Vec<i64> = all
                    .into_iter()
                    .enumerate()
                    .filter(|(i, n)| i % self.ranks == rank && n % 3 != 0)
                    .map(|(_, n)| n)
                    .collect();
                View::irregular(own, None, None)
            }
        }
    }

    /// Elements of a step in the order of files, and the number of unwritten ones.
    fn stored(&self, set: usize, mark: u64) -> (Vec<f64>, u64) {
        let hole = |n: u64| self.maps[set].is_some() && n.is_multiple_of(3);
        let value = |n: u64| if hole(n) { f64::NAN } else { (mark * 10_000 + n) as f64 };
        ((0..self.total()).map(value).collect(), (0..self.total()).filter(|n| hole(*n)).count() as u64)
    }

    fn perform(&self, job: &ArrayJob) -> Result<()> {
        let sets = ["s0", "s1"].map(|name| SetOptions::new(name, DType::F8, &self.shape));
        let level = if self.level == 0 { Ok(LevelChoice::Auto) } else { LevelChoice::number(self.level) }?;
        let in_logs = self.layout == ArrayLayout::Fields;
        let options = GroupOptions {
            level,
            method: self.method,
            order: self.order,
            chunks: in_logs.then(|| vec![2, 3, 4]),
            compression: in_logs.then(|| "zstd:1".to_owned()),
            hints: self.hints[1].clone(),
            ..GroupOptions::new(sets)
        };
        let group = job.group("g", &options)?;
        for (set, name) in ["s0", "s1"].into_iter().enumerate() {
            group.view(&self.view(set, job.rank()), Some(&[name]))?;
        }
        for act in &self.acts {
            match *act {
                Act::Flush => job.flush()?,
                Act::Discard => job.discard()?,
                Act::Write(set, step, mark, wait) => {
                    let local = self.local(set as usize, job, mark);
                    let shape = group.local_shape(["s0", "s1"][set as usize])?;
                    let bytes = bytes_of(local);
                    let strides = dense_strides(DType::F8, &shape);
                    let memory = Memory {
                        bytes: &bytes,
                        dtype: DType::F8,
                        shape: &shape,
                        strides: &strides,
                        origin: 0,
                    };
                    let name = ["s0", "s1"][set as usize];
                    let how = WriteOptions { wait, hints: self.hints[2].clone() };
                    group.write_with(name, step, Ok(memory), &how)?;
                    if mark.is_multiple_of(4) {
                        // The job reads its unflushed writes.
                        let read = group.read_dense(name, step, None)?;
                        assert!(read == bytes, "{:?} and not {:?}", read, bytes);
                    }
                    let all = self.hints[0].with(&self.hints[1]).with(&self.hints[2]);
                    let untaken = group.why().contains("no library took the hints nobody_knows=1");
                    let asked = all.get("nobody_knows").is_some();
                    assert!(!untaken || asked, "{}: {all}", group.why());
                    assert!(untaken || !asked || in_logs || !self.is_first(act), "{}: {all}", group.why());
                }
            }
        }
        job.close()
    }

    /// This rank's elements in C order of its memory.
    fn local(&self, set: usize, job: &ArrayJob, mark: u64) -> Vec<f64> {
        let view = self.view(set, job.rank()).resolve(&self.shape, job.rank(), job.size()).unwrap();
        let mut part = vec![0.0; view.local_shape().iter().product::<u64>() as usize];
        for run in view.written().runs() {
            for n in 0..run.elements {
                let at = self.in_file(run.at + n, set);
                part[(run.memory + n) as usize] = (mark * 10_000 + at) as f64;
            }
        }
        part
    }

    /// The place in files of an element of the declared shape; flat maps count like files.
    fn in_file(&self, at: u64, set: usize) -> u64 {
        if self.order == StorageOrder::C || self.maps[set].is_some() {
            return at;
        }
        let [x, y, z] = [self.shape[0], self.shape[1], self.shape[2]];
        let (i, j, k) = (at / (y * z), at / z % y, at % z);
        (k * y + j) * x + i
    }

    /// The final steps: for each set the number that determines its elements.
    fn expected(&self) -> BTreeMap<(u64, i64), u64> {
        let (mut shown, mut waiting) = (BTreeMap::new(), BTreeMap::new());
        for act in self.acts.iter().chain([&Act::Flush]) {
            match act {
                Act::Write(set, step, mark, _) => drop(waiting.insert((*set, *step), *mark)),
                Act::Flush => shown.append(&mut waiting),
                Act::Discard => waiting.clear(),
            }
        }
        shown
    }
}

#[test]
fn random_runs_leave_what_the_model_says() {
    for seed in 0..80 {
        let run = WriteScript::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let hints = run.hints[0].clone();
        let options = JobOptions { layout: run.layout, hints, ..JobOptions::default() };
        for result in ranks_with(folder.path(), run.ranks, &options, |job| run.perform(&job)) {
            result.unwrap_or_else(|error| panic!("seed {seed}: {error}: {run:?}"));
        }
        let store = open(folder.path());
        let mut found = 0;
        for entry in store.list(&Request::new(), &ListOptions::default()).unwrap() {
            entry.unwrap();
            found += 1;
        }
        let expected = run.expected();
        assert_eq!(found, expected.len(), "seed {seed}: {run:?}");
        for ((set, step), mark) in &expected {
            let (set_name, step) = (format!("s{set}"), step.to_string());
            let key = [("run", "r"), ("variable", set_name.as_str()), ("step", step.as_str())];
            let field = store.get(&key, &ReadOptions::default()).unwrap().lenient();
            let (values, holes) = run.stored(*set as usize, *mark);
            assert_eq!(field.is_complete().unwrap(), holes == 0, "seed {seed}");
            let bytes = native(&field);
            assert_eq!(bytes, bytes_of(values), "seed {seed}, set {set} at {step}: {run:?}");
            let shape = field.shape().unwrap().unwrap();
            let mut declared = run.shape.clone();
            if run.order == StorageOrder::Fortran {
                declared.reverse();
            }
            assert_eq!(shape, declared);
        }
        assert!(store.verify(&Request::new()).unwrap().damaged.is_empty(), "seed {seed}");
    }
}

/// A job of three ranks in which a call fails: the errors of each rank, and the store's state afterwards.
fn failing(folder: &Path, layout: ArrayLayout, faults: Faults) -> Vec<Result<()>> {
    let path = folder.join("store").display().to_string();
    let body = |comm: Arc<dyn Comm>| {
        let store = fieldstone::open(&path, &OpenOptions::default())?;
        let options = JobOptions { layout, ..JobOptions::default() };
        let job = ArrayJob::open(&store, Some(comm), Some("r"), &options)?;
        let level = if layout == ArrayLayout::Files { LevelChoice::number(3)? } else { LevelChoice::Auto };
        let group = job.group("g", &two_sets(level))?;
        group.view(&View::grid(&[3, 1]), None)?;
        for step in 0..2 {
            for (set, name) in [(0, "p"), (1, "q")] {
                group.write_dense(name, step, &part(&group, &job, set, step, &View::grid(&[3, 1])))?;
            }
            job.flush()?;
        }
        job.close()
    };
    threads::run(3, None, Env::real().disk, faults, body)
}

/// The job's steps in the store: each complete with both sets, or absent.
fn check_steps(folder: &Path, context: &str) -> usize {
    let store = match fieldstone::open(
        &folder.join("store").display().to_string(),
        &OpenOptions { mode: fieldstone::Mode::Read, ..OpenOptions::default() },
    ) {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::NotFound => return 0,
        Err(error) => panic!("{context}: {error}"),
    };
    let report = match store.verify(&Request::new()) {
        Ok(report) => report,
        Err(error) if error.kind() == ErrorKind::NotFound => return 0,
        Err(error) => panic!("{context}: {error}"),
    };
    assert!(report.damaged.is_empty(), "{context}: {:?}", report.damaged);
    let mut steps = 0;
    for step in 0..2 {
        let read = ["p", "q"].map(|variable| {
            let key = [("run", "r"), ("variable", variable), ("step", &step.to_string())];
            let field = store.get(&key, &ReadOptions::default()).ok()?;
            let bytes = native(&field);
            Some(bytes)
        });
        match read {
            [Some(p), Some(q)] => {
                assert_eq!((p, q), (array(0, step, 60), array(1, step, 60)), "{context}");
                steps += 1;
            }
            [None, None] => {}
            _ => panic!("{context}: step {step} is there by half"),
        }
    }
    steps
}

#[test]
fn what_fails_in_any_step_reaches_all_ranks_and_leaves_whole_steps() {
    strike_steps(ArrayLayout::Files);
}

#[test]
fn what_fails_in_any_step_of_arrays_in_the_logs_leaves_whole_steps() {
    strike_steps(ArrayLayout::Fields);
}

fn strike_steps(layout: ArrayLayout) {
    let mut struck = 0;
    for nth in (1..).step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        let (rank, death) = (nth as usize % 3, nth % 2 == 1);
        let faults = if death { Faults::death(rank, nth) } else { Faults::step(rank, nth) };
        let results = failing(folder.path(), layout, faults);
        let failed = results.iter().filter(|result| result.is_err()).count();
        if failed == 0 {
            break;
        }
        struck += 1;
        assert_eq!(failed, 3, "step {nth} of rank {rank}: {results:?}");
        let context = format!("step {nth} of rank {rank}, death {death}");
        check_steps(folder.path(), &context);
        // The run goes on, in files of its own.
        whole(failing(folder.path(), layout, Faults::none()));
        assert_eq!(check_steps(folder.path(), &context), 2);
    }
    assert!(struck > 10, "only {struck} steps were struck");
}

#[test]
fn a_step_in_the_logs_that_is_written_again_has_nothing_of_the_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = JobOptions { layout: ArrayLayout::Fields, ..JobOptions::default() };
    let ones = bytes_of([1.0; 4]);
    whole(ranks_with(folder.path(), 2, &options, |job| {
        let group = job.group("g", &GroupOptions::new([SetOptions::new("p", DType::F8, &[8])]))?;
        let first = job.rank() as u64 * 4;
        group.view(&View::block(&[first], &[4]), None)?;
        group.write_dense("p", 0, &ones)?;
        job.flush()?;
        group.view(&View::block(&[first], &[2]), None)?;
        group.write_dense("p", 0, &ones[..16])?;
        // Before the flush a handle of the same session sees it, as its ranks do; others do not.
        let error = group.read_dense("p", 1, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        group.view(&View::block(&[0], &[0]), None)?;
        group.write_dense("p", 1, &[])?;
        job.close()
    }));
    let store = open(folder.path());
    let entry = |step: &str| {
        let key = [("run", "r"), ("variable", "p"), ("step", step)];
        store.get(&key, &ReadOptions::default()).unwrap()
    };
    let again = entry("0");
    assert!(!again.is_complete().unwrap());
    let error = again.read().unwrap_err();
    assert!(error.message().contains("2:4") && error.message().contains("6:8"), "{error}");
    assert_eq!(native(&again.lenient())[..24], bytes_of([1.0, 1.0, f64::NAN]));
    assert!(!entry("1").is_complete().unwrap());
}

#[test]
fn a_step_in_the_logs_that_is_there_is_refused_before_anything_is_taken() {
    for (size, of_run) in [(1, false), (2, false), (3, true)] {
        let folder = tempfile::tempdir().unwrap();
        let part = 12 / size as u64;
        let first = |of: f64| bytes_of(vec![of; part as usize]);
        if of_run {
            let store = open(folder.path());
            store.create_run("r").if_exists(IfExists::Error).create().unwrap();
            store.flush(None).unwrap();
        }
        let if_exists = (!of_run).then_some(IfExists::Error);
        let options = JobOptions { layout: ArrayLayout::Fields, if_exists, ..JobOptions::default() };
        whole(ranks_with(folder.path(), size, &options, |job| {
            let group = job.group("g", &GroupOptions::new([SetOptions::new("p", DType::F8, &[12])]))?;
            group.view(&View::block(&[job.rank() as u64 * part], &[part]), None)?;
            group.write_dense("p", 0, &first(1.0))?;
            group.write_dense("p", 0, &first(2.0))?; // nobody saw the one before
            job.flush()?;
            group.write_dense("p", 1, &first(3.0))?;
            let error = group.write_dense("p", 0, &first(4.0)).unwrap_err();
            assert_eq!(error.code(), Code::FieldExists, "{size} ranks: {error}");
            job.close() // what was written beside it is kept
        }));
        // The next job sees the same.
        let again = ranks_with(folder.path(), size, &options, |job| {
            let group = job.group("g", &GroupOptions::new([SetOptions::new("p", DType::F8, &[12])]))?;
            group.view(&View::block(&[job.rank() as u64 * part], &[part]), None)?;
            group.write_dense("p", 1, &first(5.0)).map(drop)
        });
        assert!(again.into_iter().all(|one| one.unwrap_err().code() == Code::FieldExists));
        let store = open(folder.path());
        for (step, of) in [("0", 2.0), ("1", 3.0)] {
            let key = [("run", "r"), ("variable", "p"), ("step", step)];
            let field = store.get(&key, &ReadOptions::default()).unwrap();
            assert_eq!(native(&field), bytes_of(vec![of; 12]), "{size} ranks, step {step}");
        }
    }
}

#[test]
fn what_files_have_and_logs_have_not_is_refused_and_the_other_way_round() {
    let folder = tempfile::tempdir().unwrap();
    let group = GroupOptions::new([SetOptions::new("h", DType::parse("f2").unwrap(), &[4])]);
    let with = |layout, change: &dyn Fn(&mut GroupOptions)| {
        let mut asked = group.clone();
        change(&mut asked);
        let options = JobOptions { layout, ..JobOptions::default() };
        let mut results = ranks_with(folder.path(), 1, &options, |job| job.group("g", &asked).map(drop));
        results.remove(0).unwrap_err()
    };
    let fields = ArrayLayout::Fields;
    for (layout, change, expected) in [
        (ArrayLayout::Files, (&|_: &mut GroupOptions| {}) as &dyn Fn(&mut GroupOptions), "has no type"),
        (ArrayLayout::Files, &|g| g.chunks = Some(vec![2]), "neither chunks nor compression"),
        (fields, &|g| g.method = Method::View, "MPI-IO call on a file"),
        (fields, &|g| g.level = LevelChoice::number(2).unwrap(), "level 2 for a group"),
        (fields, &|g| g.chunks = Some(vec![2, 2]), "chunks [2, 2] for set h of 1 dimensions"),
        (fields, &|g| g.chunks = Some(vec![0]), "chunks [0] for set h"),
        (fields, &|g| g.compression = Some("lz4".into()), "'lz4' is not a compression"),
    ] {
        let error = with(layout, change);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(expected), "{error}");
    }
    // A type that netCDF lacks goes to the logs; another layout is another declaration.
    let options = JobOptions { layout: fields, ..JobOptions::default() };
    whole(ranks_with(folder.path(), 1, &options, |job| {
        job.group("g", &group)?.write_dense("h", 0, &[1; 8])?;
        job.close()
    }));
    let mut single = GroupOptions::new([SetOptions::new("h", DType::F4, &[4])]);
    single.sets[0].dtype = DType::parse("f2").unwrap();
    let again = ranks(folder.path(), 1, |job| job.group("g", &single).map(drop)).remove(0).unwrap_err();
    assert!(again.message().contains("another layout"), "{again}");
}
