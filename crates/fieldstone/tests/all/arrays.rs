//! Distributed arrays of a store: whatever ranks write together, all see after a flush, as fields and in files, and a run
//! goes on with any number of ranks.

use std::path::Path;
use std::sync::Arc;

use fieldstone::arrays::{
    ArrayGroup, ArrayJob, GroupOptions, JobOptions, LevelChoice, Method, SetOptions, View, dense_strides,
};
use fieldstone::env::Env;
use fieldstone::env::comm::Comm;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::{
    DType, ErrorKind, FieldStoreExt, ListOptions, Mode, OpenOptions, ReadOptions, Request, Result, Store,
};
use fieldstone_testkit::seeded;

fn open(folder: &Path) -> Store {
    fieldstone::open(&folder.join("store").display().to_string(), &OpenOptions::default()).unwrap()
}

/// Runs a body on ranks that are threads, each with a handle of its own on the store.
fn ranks<T: Send>(folder: &Path, size: usize, body: impl Fn(ArrayJob) -> Result<T> + Sync) -> Vec<Result<T>> {
    let path = folder.join("store").display().to_string();
    let each = |comm: Arc<dyn Comm>| {
        let store = fieldstone::open(&path, &OpenOptions::default())?;
        body(ArrayJob::open(&store, Some(comm), Some("r"), &JobOptions::default())?)
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
                // Before the flush the job reads it, and nobody else.
                let rows = View::block(&[job.rank() as u64, 0], &[1, 10]);
                let read = group.read_dense("q", step, Some(&rows))?;
                let first = job.rank() as u64 * 10;
                assert_eq!(read, bytes_of((first..first + 10).map(|i| value(1, step, i))));
                if step == step0 + 1 {
                    job.flush()?;
                }
            }
            assert_eq!(group.steps("p")?, if step0 == 0 { vec![0, 1] } else { group.steps("p")? });
            job.close()
        }));
        let store = open(folder.path());
        for (set, variable) in [(0, "p"), (1, "q")] {
            for step in step0..step0 + 3 {
                let key = [("run", "r"), ("variable", variable), ("step", &step.to_string())];
                let field = store.get(&key, &ReadOptions::default()).unwrap();
                assert_eq!(field.shape().unwrap().unwrap(), [6, 10]);
                let mut bytes = field.read().unwrap();
                field.dtype().unwrap().unwrap().swap_bytes(&mut bytes);
                assert_eq!(bytes, array(set, step, 60), "{variable} at {step}, level {level:?}");
            }
        }
        assert!(store.verify(&Request::new()).unwrap().damaged.is_empty());
        // Three ranks go on, by another view, and read what four have written.
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
