//! Variables of containers, put and got through views.

use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, CreateOptions, Mode, VarInfo};
use fieldstone_array::distributed::plan::{Method, MoveReport, Settings};
use fieldstone_array::distributed::view::View;
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::NcType;

const METHODS: [Method; 4] = [Method::Direct, Method::Exchange, Method::View, Method::Auto];
const PATH: &str = "/views.nc";

fn doubles(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_ne_bytes).collect()
}

fn values(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
}

fn settings(method: Method) -> Settings {
    Settings { method, buffer: 3000, aggregators: None }
}

/// Puts doubles that are computed from their indices in memory.
fn put(
    file: &Container,
    var: &VarInfo,
    view: &View,
    record: Option<u64>,
    method: Method,
    value: impl Fn(usize) -> f64,
) -> Result<MoveReport> {
    let view = file.elements().view(var, view, record, true)?;
    let elements: u64 = view.local_shape().iter().product();
    let data = doubles((0..elements as usize).map(value));
    file.elements().put_view(var, &view, (&data, NcType::Double), settings(method))
}

fn get(
    file: &Container,
    var: &VarInfo,
    view: &View,
    record: Option<u64>,
    method: Method,
) -> Result<Vec<f64>> {
    let view = file.elements().view(var, view, record, false)?;
    let elements: u64 = view.local_shape().iter().product();
    let mut into = doubles(std::iter::repeat_n(-1.0, elements as usize));
    file.elements().get_view(var, &view, (&mut into, NcType::Double), settings(method))?;
    Ok(values(&into))
}

/// This rank's entries of a map of 1,000 numbers, shuffled.
fn map(rank: usize, size: usize) -> Vec<i64> {
    let own = (0..1000).filter(|n| n % size as i64 == rank as i64);
    own.map(|n| n * 7919 % 1000).collect()
}

fn create(comm: Arc<dyn Comm>, env: &Env, fill: bool) -> Result<Container> {
    let options = CreateOptions { fill, ..CreateOptions::default() };
    let file = Container::create(PATH.as_ref(), comm, env, &options)?;
    for (name, len) in [("t", None), ("n", Some(1000)), ("y", Some(20)), ("x", Some(30))] {
        file.define().dim(name, len)?;
    }
    file.define().var("mesh", NcType::Double, &["n"])?;
    file.define().var("grid", NcType::Float, &["y", "x"])?;
    file.define().var("steps", NcType::Double, &["t", "n"])?;
    file.define().var("parts", NcType::Short, &["t"])?;
    file.enddef()?;
    Ok(file)
}

fn bytes(env: &Env) -> Vec<u8> {
    let file = env.disk.open_read(PATH.as_ref()).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    let mut done = 0;
    while done < bytes.len() {
        done += file.read_at(&mut bytes[done..], done as u64).unwrap();
    }
    bytes
}

fn write_all(ranks: usize, method: Method, fill: bool) -> Vec<u8> {
    let env = SimWorld::memory();
    let outcomes = threads::run(ranks, None, env.disk.clone(), Faults::none(), |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let file = create(comm, &env, fill)?;
        let (mesh, grid, steps) = (file.var("mesh")?, file.var("grid")?, file.var("steps")?);
        let parts = file.var("parts")?;
        let map = map(rank, size);
        let irregular = View::irregular(map.clone(), None, None);
        put(&file, &mesh, &irregular, None, method, |n| map[n] as f64)?;
        // Doubles become floats; ranks have columns, with a halo that is not written and would not fit.
        let columns = View::grid(&[1, size as u64]).halo(1);
        let view = file.elements().view(&grid, &columns, None, true)?;
        let wide = view.local_shape()[1] as usize;
        let start = (0..rank).map(|rank| 30 / size + usize::from(rank < 30 % size)).sum::<usize>();
        put(&file, &grid, &columns, None, method, |n| {
            let (y, x) = (n / wide, n % wide);
            let inside = (1..=20).contains(&y) && (1..wide - 1).contains(&x);
            if inside { ((y - 1) * 30 + start + x - 1) as f64 } else { 1e300 }
        })?;
        for record in [0, 2] {
            put(&file, &steps, &irregular, Some(record), method, |n| {
                map[n] as f64 + 10_000.0 * record as f64
            })?;
        }
        assert_eq!(file.numrecs()?, 3);
        // Seven in rank order, whatever the number of ranks.
        let counts = [&[7][..], &[4, 3], &[4, 0, 3], &[], &[0, 1, 3, 3, 0]][size - 1];
        let before: u64 = counts[..rank].iter().sum();
        put(&file, &parts, &View::joined(counts[rank]), None, method, |n| (before + n as u64) as f64)?;
        assert_eq!(file.numrecs()?, 7);
        file.close()?;
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    bytes(&env)
}

#[test]
fn views_leave_the_same_file_for_every_method_and_number_of_ranks() {
    for fill in [false, true] {
        let first = write_all(1, Method::Direct, fill);
        for ranks in [1, 2, 3, 5] {
            for method in METHODS {
                assert!(write_all(ranks, method, fill) == first, "{ranks} ranks, {method:?}, fill {fill}");
            }
        }
    }
}

#[test]
fn what_is_put_by_views_is_got_by_boxes_and_by_other_views() {
    let env = SimWorld::memory();
    let disk = write_all(3, Method::Auto, true);
    let file = env.disk.create_new(PATH.as_ref()).unwrap();
    file.write_at(&disk, 0).unwrap();
    let outcomes = threads::run(4, None, env.disk.clone(), Faults::none(), |comm| {
        let rank = comm.rank();
        let file = Container::open(PATH.as_ref(), Mode::Read, comm, &env)?;
        let (mesh, grid) = (file.var("mesh")?, file.var("grid")?);
        let (steps, parts) = (file.var("steps")?, file.var("parts")?);
        let mut all = vec![0; 8000];
        file.elements().get(&mesh, &Selection::all(&[1000]), &mut all, NcType::Double, true)?;
        assert!(values(&all).into_iter().eq((0..1000).map(f64::from)));
        for method in METHODS {
            let ghosts = View::irregular(vec![5, -1, 999, rank as i64, 5], Some(1), Some(0));
            let got = get(&file, &mesh, &ghosts, None, method)?;
            assert_eq!(got, [5.0, -1.0, 999.0, rank as f64, 5.0], "-1 stays as it was");
            // Records and elements of one variable, by a map over all of it.
            let got = get(&file, &steps, &View::irregular(vec![1, 2999, 1003], None, None), None, method)?;
            assert_eq!((got[0], got[1]), (1.0, 20_999.0));
            assert!(got[2] > 9e36, "the record that nobody wrote is filled");
            let got = get(&file, &steps, &View::cyclic(&[4], &[3]), Some(2), method)?;
            assert_eq!((got[0], got[3]), (20_000.0 + 3.0 * rank as f64, 20_012.0 + 3.0 * rank as f64));
            let rows = View::grid(&[4, 1]).halo(vec![(1, 0), (0, 2)]);
            let got = get(&file, &grid, &rows, None, method)?;
            let above = if rank == 0 { -1.0 } else { (rank * 150 - 30) as f64 };
            assert_eq!((got.len(), got[0], got[32], got[30]), (6 * 32, above, rank as f64 * 150.0, -1.0));
            let strided = View::block(&[rank as u64, 1], &[3, 2]).stride(&[5, 7]);
            let got = get(&file, &grid, &strided, None, method)?;
            let expected = [0, 7, 150, 157, 300, 307].map(|n| f64::from(n + 1) + 30.0 * rank as f64);
            assert_eq!(got, expected);
            let counts = [2, 0, 4, 1];
            let got = get(&file, &parts, &View::joined(counts[rank]), None, method)?;
            let before: u64 = counts[..rank].iter().sum();
            assert!(got.into_iter().eq((before..before + counts[rank]).map(|n| n as f64)));
        }
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

#[test]
fn what_does_not_fit_is_said_on_all_ranks_and_they_go_on() {
    let env = SimWorld::memory();
    let outcomes = threads::run(2, None, env.disk.clone(), Faults::none(), |comm| {
        let rank = comm.rank();
        let file = create(comm.clone(), &env, false)?;
        let (mesh, parts, steps) = (file.var("mesh")?, file.var("parts")?, file.var("steps")?);
        let refused = |outcome: Result<MoveReport>, text: &str| {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(text), "{error}");
        };
        let map = |entry: i64| View::irregular(vec![entry + rank as i64], None, None);
        refused(
            put(&file, &mesh, &map(999), None, Method::Auto, |_| 1.0),
            "rank 1: variable `mesh`: map[0] is 1000",
        );
        refused(put(&file, &mesh, &map(0), Some(1), Method::Auto, |_| 1.0), "variable `mesh` has no records");
        refused(
            put(&file, &mesh, &View::joined(400), None, Method::Auto, |_| 1.0),
            "add up to 800, but its first dimension",
        );
        let mixed = if rank == 0 { View::joined(1) } else { map(0) };
        refused(put(&file, &parts, &mixed, None, Method::Auto, |_| 1.0), "some ranks pass a joined view");
        refused(
            put(&file, &parts, &View::joined(2), None, Method::Auto, |n| 1e9 * (n * rank) as f64),
            "rank 1: variable `parts`: element 1 of this rank's memory, 1000000000",
        );
        assert_eq!(file.numrecs()?, 4);
        let view = file.elements().view(&mesh, &map(0), None, true)?;
        let short = vec![0; 8 - rank];
        refused(
            file.elements().put_view(&mesh, &view, (&short, NcType::Double), Settings::default()),
            "rank 1: variable `mesh`: the view has the local shape [1]",
        );
        let error = get(&file, &steps, &map(0), Some(4), Method::Auto).unwrap_err();
        assert!(error.message().contains("record 4 is requested, but there are 4"), "{error}");
        let error = get(&file, &parts, &View::joined(3), None, Method::Auto).unwrap_err();
        assert!(error.message().contains("add up to 6, but there are 4 records"), "{error}");
        // Afterwards everything works.
        put(&file, &mesh, &map(0), None, Method::Exchange, |_| 5.0)?;
        file.close()?;
        let file = Container::open(PATH.as_ref(), Mode::Read, comm, &env)?;
        let error = file.elements().view(&file.var("mesh")?, &map(0), None, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}
