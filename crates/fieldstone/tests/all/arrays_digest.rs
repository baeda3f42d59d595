//! One group, written by every method, by 1 to 64 ranks with different views: its files have the same checksum as those
//! of Python and C under MPI.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone::arrays::{
    ArrayJob, GroupOptions, JobOptions, LevelChoice, Memory, Method, SetOptions, View, dense_strides,
};
use fieldstone::env::Env;
use fieldstone::env::comm::Comm;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::env::sim::SimWorld;
use fieldstone::{DType, Mode, Result};
use fieldstone_testkit::digest;

use crate::arrays_random::{open, read_file};

const SHAPE: [u64; 2] = [24, 10];
const KINDS: usize = 5;

/// A rank's view of `a`, and the number of each element in its memory.
fn held(kind: usize, rank: usize, ranks: usize) -> (View, Vec<Option<u64>>) {
    let (size, [rows, columns]) = (ranks as u64, SHAPE);
    let numbers = |view: View| {
        let local = view.resolve(&SHAPE, rank, ranks).unwrap();
        let mut numbers = vec![None; local.local_shape().iter().product::<u64>() as usize];
        for run in local.written().runs() {
            for n in 0..run.elements {
                numbers[(run.memory + n) as usize] = Some(run.at + n);
            }
        }
        (view, numbers)
    };
    match kind {
        0 => numbers(View::grid(&[size, 1])),
        1 => numbers(View::grid(&[1, size]).halo(1)),
        2 => numbers(View::cyclic(&[size, 1], &[1, 3])),
        3 => {
            let map: Vec<i64> = (0..rows as i64).rev().filter(|row| *row as usize % ranks == rank).collect();
            numbers(View::irregular(map, None, Some(0)))
        }
        _ => {
            let all = 0..(rows * columns) as i64;
            let mut map: Vec<i64> = all.filter(|at| *at as usize * 7 % ranks == rank).collect();
            let owned = map.len() as u64;
            map.extend([-1, 5]); // no element, and one that is another's
            numbers(View::irregular(map, Some(owned), None))
        }
    }
}

fn write(env: &Env, comm: Arc<dyn Comm>, level: u64, method: Method, kind: usize) -> Result<Vec<PathBuf>> {
    let store = open(env, Mode::Append)?;
    let job = ArrayJob::open(&store, Some(comm), Some("digest"), &JobOptions::default())?;
    let fill = Some((-1i32).to_ne_bytes().to_vec());
    let b = SetOptions { fill, ..SetOptions::new("b", DType::I4, &[60]) };
    let sets = [SetOptions::new("a", DType::F8, &SHAPE), b];
    let level = LevelChoice::number(level)?;
    let group = job.group("g", &GroupOptions { level, method, ..GroupOptions::new(sets) })?;
    let (rank, ranks) = (job.rank(), job.size());
    let (view, numbers) = held(kind, rank, ranks);
    group.view(&view, Some(&["a"]))?;
    let map: Vec<i64> = (0..60).filter(|at| at % 7 != 3 && at * 5 % ranks as i64 == rank as i64).collect();
    group.view(&View::irregular(map.clone(), None, Some(0)), Some(&["b"]))?;
    for step in 0..2 {
        let a = |at: &Option<u64>| at.map_or(f64::NAN, |at| (1000.0 * step as f64 + at as f64) / 8.0);
        let a: Vec<u8> = numbers.iter().map(a).flat_map(f64::to_ne_bytes).collect();
        let b: Vec<u8> = map.iter().flat_map(|at| (1000 * step as i32 + *at as i32).to_ne_bytes()).collect();
        for (name, dtype, bytes) in [("a", DType::F8, a), ("b", DType::I4, b)] {
            let shape = group.local_shape(name)?;
            let strides = dense_strides(dtype, &shape);
            let memory = Memory { bytes: &bytes, dtype, shape: &shape, strides: &strides, origin: 0 };
            group.write(name, step, Ok(memory))?;
        }
        job.flush()?;
    }
    let files = group.files();
    job.close()?;
    Ok(files)
}

fn sum(ranks: usize, level: u64, method: Method, kind: usize) -> String {
    let env = SimWorld::memory();
    let each = |comm: Arc<dyn Comm>| write(&env, comm, level, method, kind);
    let all = threads::run(ranks, None, env.disk.clone(), Faults::none(), each);
    let paths = all.into_iter().map(|paths| paths.unwrap()).next().unwrap();
    digest::of_files(paths.iter().map(|path| read_file(&*env.disk, path)).collect())
}

#[test]
fn all_methods_and_1_to_64_ranks_leave_files_of_one_sum() {
    let mut kind = 0;
    for level in 1..=3 {
        for method in [Method::Auto, Method::Direct, Method::Exchange, Method::View] {
            for ranks in [1, 2, 3, 8, 64] {
                let found = sum(ranks, level, method, kind % KINDS);
                assert_eq!(
                    found,
                    digest::of_level(level),
                    "level {level}, {method:?}, {ranks} ranks, view {kind}"
                );
                kind += 1;
            }
            kind += 1; // else each number of ranks had one view
        }
    }
}
