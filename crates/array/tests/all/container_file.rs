//! The life of a container: modes, handles, redefinition, publishing, refused calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode, VarRef};
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, read_exact_at};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::{NcType, Version};

const PATH: &str = "t.nc";

fn single(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

fn create(env: &Env, options: &CreateOptions) -> Container {
    Container::create(Path::new(PATH), single(env), env, options).unwrap()
}

fn open(env: &Env, mode: Mode) -> Result<Container> {
    Container::open(Path::new(PATH), mode, single(env), env)
}

fn bytes(env: &Env, path: &str) -> Vec<u8> {
    let file = env.disk.open_read(Path::new(path)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn names(env: &Env) -> Vec<String> {
    let folder = env.disk.absolute(Path::new(PATH)).unwrap();
    let list = env.disk.list_dir(folder.parent().unwrap()).unwrap();
    list.into_iter().map(|(name, _)| name).filter(|name| name.contains("t.nc")).collect()
}

fn put_ints(
    container: &Container,
    path: &str,
    start: &[u64],
    values: &[i32],
    collective: bool,
) -> Result<()> {
    let var = container.var(path)?;
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let selection = Selection::of(start, &[values.len() as u64]);
    container.elements().put(&var, &selection, &data, NcType::Int, collective)
}

fn ints(container: &Container, path: &str) -> Vec<i32> {
    let var = container.var(path).unwrap();
    let elements: u64 = var.shape().iter().product();
    let mut into = vec![0; elements as usize * 4];
    container.elements().get(&var, &Selection::all(&var.shape()), &mut into, NcType::Int, false).unwrap();
    into.chunks_exact(4).map(|value| i32::from_ne_bytes(value.try_into().unwrap())).collect()
}

#[test]
fn a_container_is_defined_written_closed_and_read() {
    for format in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let env = SimWorld::memory();
        let options = CreateOptions { format: Format::Classic(format), ..CreateOptions::default() };
        let container = create(&env, &options);
        container.define().dim("time", None).unwrap();
        container.define().dim("event_7/x", Some(3)).unwrap();
        let fixed = container.define().var("event_7/plane/fixed", NcType::Int, &["x"]).unwrap();
        container.define().var("r", NcType::Short, &["time"]).unwrap();
        container.define().put_att(Some(fixed), "units", NcType::Char, b"K").unwrap();
        container.define().put_att(None, "event_7/weight", NcType::Int, &[0, 0, 0, 5]).unwrap();
        container.enddef().unwrap();
        put_ints(&container, "event_7/plane/fixed", &[0], &[1, -2, 3], false).unwrap();
        put_ints(&container, "r", &[1], &[7, 8], true).unwrap();
        assert_eq!(container.numrecs().unwrap(), 3);
        assert_eq!(bytes(&env, PATH)[..3], *b"FSU", "unfinished until it is closed");
        container.close().unwrap();
        assert_eq!(bytes(&env, PATH)[..4], [b'C', b'D', b'F', format as u8]);

        let container = open(&env, Mode::Read).unwrap();
        let counts = container.metadata().unwrap().counts().unwrap();
        assert_eq!((counts.dims, counts.attrs, counts.vars), (2, 1, 2));
        assert_eq!(ints(&container, "event_7/plane/fixed"), [1, -2, 3]);
        assert_eq!(ints(&container, "r"), [0, 7, 8]);
        let attrs = container.metadata().unwrap().attrs().unwrap();
        assert_eq!(attrs.get(0).name, "event_7/weight");
        assert_eq!(container.var("event_7/plane/fixed").unwrap().attrs.get(0).value, b"K");
        assert_eq!(container.var("event_7/none").unwrap_err().kind(), ErrorKind::NotFound);
        let denied = put_ints(&container, "r", &[0], &[1], false).unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::Denied);
    }
}

#[test]
fn calls_out_of_order_are_refused_with_a_hint() {
    let env = SimWorld::memory();
    let container = create(&env, &CreateOptions::default());
    container.define().dim("x", Some(2)).unwrap();
    let var = container.define().var("v", NcType::Int, &["x"]).unwrap();
    let refused = |error: fieldstone_core::Error, hint: &str| {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.hint().unwrap_or("").contains(hint), "{error}: {:?}", error.hint());
        assert!(error.message().contains("t.nc"), "{error}");
    };
    refused(container.metadata().unwrap_err(), "enddef");
    refused(container.sync().unwrap_err(), "enddef");
    assert_eq!(container.var("v").unwrap().ty, NcType::Int);
    assert_eq!(container.var_of(var).unwrap().name, "v");
    assert!(container.redef().is_err());
    container.enddef().unwrap();
    refused(container.define().dim("y", Some(1)).unwrap_err(), "redef");
    refused(container.enddef().unwrap_err(), "redef");
    container.close().unwrap();
    container.close().unwrap();
    let phases: Vec<&str> = container.report().phases.iter().map(|phase| phase.name).collect();
    assert_eq!(phases, ["definition", "exchange", "check", "header write", "close"]);
    refused(container.var("v").unwrap_err(), "open");
    refused(container.define().dim("y", Some(1)).unwrap_err(), "open");
    refused(container.redef().unwrap_err(), "open");
    refused(container.enddef().unwrap_err(), "open");
    refused(container.sync().unwrap_err(), "open");
}

#[test]
fn the_old_container_stays_until_the_new_one_is_finished() {
    let env = SimWorld::memory();
    let first = create(&env, &CreateOptions::default());
    first.define().dim("x", Some(2)).unwrap();
    first.define().var("v", NcType::Int, &["x"]).unwrap();
    first.enddef().unwrap();
    put_ints(&first, "v", &[0], &[1, 2], false).unwrap();
    first.close().unwrap();
    let old = bytes(&env, PATH);

    let second = create(&env, &CreateOptions::default());
    second.define().dim("x", Some(1)).unwrap();
    second.define().var("w", NcType::Int, &["x"]).unwrap();
    second.enddef().unwrap();
    put_ints(&second, "w", &[0], &[9], false).unwrap();
    assert_eq!(bytes(&env, PATH), old);
    assert_eq!(names(&env).len(), 2);
    second.sync().unwrap();
    assert_eq!(names(&env), [PATH]);
    assert_eq!(ints(&open(&env, Mode::Read).unwrap(), "w"), [9]);
    put_ints(&second, "w", &[0], &[10], false).unwrap();
    second.close().unwrap();
    let new = bytes(&env, PATH);

    let third = create(&env, &CreateOptions::default());
    third.define().dim("x", Some(1)).unwrap();
    third.abort(None);
    assert_eq!((bytes(&env, PATH), names(&env).len()), (new.clone(), 1));
    let fourth = create(&env, &CreateOptions::default());
    fourth.enddef().unwrap();
    drop(fourth);
    assert_eq!(bytes(&env, PATH), new, "dropping finishes nothing");
}

#[test]
fn what_was_once_finished_is_never_removed() {
    let env = SimWorld::memory();
    let container = create(&env, &CreateOptions::default());
    container.define().dim("x", Some(2)).unwrap();
    container.define().var("v", NcType::Int, &["x"]).unwrap();
    container.enddef().unwrap();
    container.close().unwrap();
    for further in [false, true] {
        let container = open(&env, Mode::Append).unwrap();
        container.redef().unwrap();
        container.define().put_att(None, "note", NcType::Char, b"a").unwrap();
        if further {
            container.enddef().unwrap();
        }
        container.abort(None);
        assert_eq!(names(&env), [PATH]);
        assert_eq!(open(&env, Mode::Read).is_ok(), !further, "defined further in place: unfinished");
    }
}

#[test]
fn an_unfinished_container_is_not_opened() {
    let env = SimWorld::memory();
    let container = create(&env, &CreateOptions::default());
    container.define().dim("x", Some(2)).unwrap();
    for _ in 0..2 {
        let error = open(&env, Mode::Read).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains("t.nc") && error.message().contains("finish"), "{error}");
        let _ = container.enddef();
    }
}

#[test]
fn redefinition_keeps_data_and_numbers() {
    for (records, free) in [(false, 0), (true, 0), (false, 4096), (true, 4096)] {
        let env = SimWorld::memory();
        let mut options = CreateOptions { indexing: Indexing::Always, ..CreateOptions::default() };
        options.alignment.h_minfree = free;
        let container = create(&env, &options);
        container.define().dim("x", Some(3)).unwrap();
        container.define().dim("time", None).unwrap();
        let fixed = container.define().var("fixed", NcType::Int, &["x"]).unwrap();
        if records {
            container.define().var("r", NcType::Int, &["time"]).unwrap();
            container.define().var("s", NcType::Int, &["time"]).unwrap();
        }
        container.enddef().unwrap();
        put_ints(&container, "fixed", &[0], &[1, 2, 3], false).unwrap();
        if records {
            put_ints(&container, "r", &[0], &[10, 11, 12], false).unwrap();
            put_ints(&container, "s", &[0], &[20, 21, 22], false).unwrap();
        }
        container.close().unwrap();

        let container = open(&env, Mode::Append).unwrap();
        assert_eq!(container.var_of(VarRef(0)).unwrap().name, "fixed");
        container.redef().unwrap();
        container.define().put_att(Some(fixed), "units", NcType::Char, b"kelvin").unwrap();
        container.enddef().unwrap();
        container.redef().unwrap();
        container.define().dim("y", Some(500)).unwrap();
        let late = container.define().var("late", NcType::Int, &["y"]).unwrap();
        if records {
            container.define().var("t", NcType::Int, &["time"]).unwrap();
        }
        container.define().rename_var(fixed, "steady").unwrap();
        container.enddef().unwrap();
        assert_eq!(container.var_of(late).unwrap().name, "late");
        assert_eq!(container.var_of(fixed).unwrap().name, "steady");
        put_ints(&container, "late", &[0], &[5; 500], false).unwrap();
        if records {
            put_ints(&container, "t", &[1], &[31], false).unwrap();
        }
        container.close().unwrap();

        let container = open(&env, Mode::Read).unwrap();
        assert_eq!(ints(&container, "steady"), [1, 2, 3]);
        assert_eq!(container.var("steady").unwrap().attrs.get(0).value, b"kelvin");
        assert_eq!(ints(&container, "late"), [5; 500]);
        if records {
            assert_eq!(ints(&container, "r"), [10, 11, 12]);
            assert_eq!(ints(&container, "s"), [20, 21, 22]);
            assert_eq!(ints(&container, "t"), [0, 31, 0]);
        }
        assert_eq!(names(&env), [PATH]);
    }
}

#[test]
fn what_is_not_written_reads_as_the_fill_value_where_that_is_asked_for() {
    let env = SimWorld::memory();
    let container = create(&env, &CreateOptions { fill: true, ..CreateOptions::default() });
    container.define().dim("time", None).unwrap();
    container.define().dim("x", Some(4)).unwrap();
    container.define().var("a", NcType::Int, &["x"]).unwrap();
    container.define().var("r", NcType::Int, &["time"]).unwrap();
    let own = container.define().var("s", NcType::Int, &["time"]).unwrap();
    container.define().put_att(Some(own), "_FillValue", NcType::Int, &[0, 0, 0, 9]).unwrap();
    container.enddef().unwrap();
    put_ints(&container, "a", &[1], &[5], false).unwrap();
    put_ints(&container, "r", &[2], &[7], false).unwrap();
    container.redef().unwrap();
    container.define().var("late", NcType::Int, &["x"]).unwrap();
    container.define().var("late_r", NcType::Int, &["time"]).unwrap();
    container.enddef().unwrap();
    put_ints(&container, "r", &[3], &[8], false).unwrap();
    put_ints(&container, "late_r", &[1], &[3], false).unwrap();
    container.close().unwrap();
    let container = open(&env, Mode::Read).unwrap();
    let fill = -2147483647;
    assert_eq!(ints(&container, "a"), [fill, 5, fill, fill]);
    assert_eq!(ints(&container, "late"), [fill; 4]);
    assert_eq!(ints(&container, "r"), [fill, fill, 7, 8]);
    assert_eq!(ints(&container, "late_r"), [fill, 3, fill, fill], "also in the records that were there");
    assert_eq!(ints(&container, "s"), [9; 4]);
}

/// Ranks define objects of their own and a shared one; all find the objects of others; numbers stay valid.
fn many(env: &Env, size: usize, seed: Option<u64>) -> Vec<u8> {
    let results = threads::run(size, seed, env.disk.clone(), Faults::default(), |comm| {
        let (rank, again) = (comm.rank(), comm.clone());
        let options = CreateOptions { indexing: Indexing::Always, ..CreateOptions::default() };
        let container = Container::create(Path::new(PATH), comm, env, &options)?;
        let share = |n: usize| n * 12 / size..(n + 1) * 12 / size;
        container.define().dim("time", None)?;
        container.define().dim("x", Some(2))?;
        let mut mine = Vec::new();
        for event in share(rank) {
            mine.push(container.define().var(&format!("event_{event}/v"), NcType::Int, &["x"])?);
        }
        container.define().var("r", NcType::Int, &["time"])?;
        container.enddef()?;
        for (event, var) in share(rank).zip(&mine) {
            let name = format!("event_{event}/v");
            assert_eq!(container.var_of(*var)?.name, name);
            put_ints(&container, &name, &[0], &[event as i32, rank as i32], false)?;
        }
        for event in 0..12 {
            assert_eq!(container.var(&format!("event_{event}/v"))?.shape(), [2]);
        }
        put_ints(&container, "r", &[rank as u64 * 2], &[1, 2], true)?;
        container.redef()?;
        let late = container.define().var(&format!("rank_{rank}/late"), NcType::Int, &["x"])?;
        container.define().put_att(Some(late), "rank", NcType::Int, &[0, 0, 0, 7])?;
        container.enddef()?;
        for (event, var) in share(rank).zip(&mine) {
            assert_eq!(container.var_of(*var)?.name, format!("event_{event}/v"));
            assert_eq!(ints(&container, &format!("event_{event}/v"))[0], event as i32);
        }
        assert_eq!(container.var_of(late)?.name, format!("rank_{rank}/late"));
        container.redef()?;
        container.define().rename_var(late, &format!("rank_{rank}/later"))?;
        container.enddef()?;
        assert_eq!(container.var_of(late)?.name, format!("rank_{rank}/later"));
        container.close()?;
        let again = Container::open(Path::new(PATH), Mode::Read, again, env)?;
        assert_eq!(again.numrecs()?, 2 * size as u64);
        Ok(())
    });
    for (rank, result) in results.into_iter().enumerate() {
        result.unwrap_or_else(|error| panic!("rank {rank} of {size}, seed {seed:?}: {error}"));
    }
    bytes(env, PATH)
}

#[test]
fn ranks_find_what_others_made_and_numbers_hold() {
    for (size, seed) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None), (7, Some(3))] {
        let env = SimWorld::memory();
        many(&env, size, seed);
        let container = open(&env, Mode::Read).unwrap();
        for event in 0..12 {
            assert_eq!(ints(&container, &format!("event_{event}/v"))[0], event);
        }
        assert_eq!(ints(&container, "r"), [1, 2].repeat(size));
    }
}

#[test]
fn the_partitioned_header_is_a_container_like_any_other() {
    for size in [1, 3] {
        let env = SimWorld::memory();
        let results = threads::run(size, Some(4), env.disk.clone(), Faults::default(), |comm| {
            let rank = comm.rank();
            let options = CreateOptions { format: Format::Partitioned, ..CreateOptions::default() };
            let container = Container::create(Path::new(PATH), comm, &env, &options)?;
            container.define().dim("time", None)?;
            container.define().dim(&format!("rank_{rank}/x"), Some(3))?;
            let own = container.define().var(&format!("rank_{rank}/v"), NcType::Int, &["x"])?;
            container.define().put_att(Some(own), "units", NcType::Char, b"K")?;
            container.define().var("r", NcType::Int, &["time"])?;
            container.enddef()?;
            assert_eq!(container.var_of(own)?.name, format!("rank_{rank}/v"));
            put_ints(&container, &format!("rank_{rank}/v"), &[0], &[rank as i32, 1, 2], false)?;
            for other in 0..size {
                assert_eq!(container.var(&format!("rank_{other}/v"))?.shape(), [3]);
            }
            put_ints(&container, "r", &[rank as u64], &[rank as i32 + 7], true)?;
            assert!(Container::open(Path::new(PATH), Mode::Read, single(&env), &env).is_err());
            let again = container.redef().unwrap_err();
            assert!(again.hint().unwrap_or("").contains("cdf5"), "{again}");
            container.close()
        });
        results.into_iter().for_each(|result| result.unwrap());
        for mode in [Mode::Append, Mode::Read] {
            let container = open(&env, mode).unwrap();
            assert_eq!(container.metadata().unwrap().format(), Format::Partitioned);
            for rank in 0..size as i32 {
                assert_eq!(ints(&container, &format!("rank_{rank}/v")), [rank, 1, 2]);
            }
            let records: Vec<i32> = (0..size as i32).map(|rank| rank + 7).collect();
            assert_eq!(ints(&container, "r")[..size], records);
            if mode == Mode::Append {
                put_ints(&container, "r", &[size as u64], &[99], false).unwrap();
            } else {
                assert_eq!(ints(&container, "r")[size..], [99]);
            }
            container.close().unwrap();
        }
    }
}

#[test]
fn calls_in_another_order_are_named() {
    let env = SimWorld::memory();
    let results = threads::run(2, Some(5), env.disk.clone(), Faults::default(), |comm| {
        let rank = comm.rank();
        let container = Container::create(Path::new(PATH), comm, &env, &CreateOptions::default())?;
        container.define().dim("x", Some(2))?;
        container.enddef()?;
        if rank == 0 { container.redef() } else { container.sync() }
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("redef") && error.message().contains("sync"), "{error}");
    }
}

#[test]
fn giving_up_on_one_rank_reaches_all() {
    let env = SimWorld::memory();
    let results = threads::run(3, Some(9), env.disk.clone(), Faults::default(), |comm| {
        let rank = comm.rank();
        let container = Container::create(Path::new(PATH), comm, &env, &CreateOptions::default())?;
        container.define().dim("x", Some(2))?;
        if rank == 1 {
            container.abort(Some(fieldstone_core::Error::unavailable("the detector is off")));
            return Ok(());
        }
        let error = container.enddef().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("rank 1: the detector is off"), "{error}");
        Ok(())
    });
    assert!(results.into_iter().all(|result| result.is_ok()));
}
