//! Containers opened for writing: changes that others made to the file in the meantime are kept, bytes after the data
//! never show, and a file that lost data does not become one that looks complete.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::convert::convert;
use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, read_exact_at, write_all_at};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::{NcType, Version};

const PATH: &str = "t.nc";

fn single(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

fn create(env: &Env, path: &str, options: &CreateOptions) -> Container {
    Container::create(Path::new(path), single(env), env, options).unwrap()
}

fn open(env: &Env, mode: Mode) -> Result<Container> {
    Container::open(Path::new(PATH), mode, single(env), env)
}

fn bytes(env: &Env) -> Vec<u8> {
    let file = env.disk.open_read(Path::new(PATH)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// A change of the file by another program.
fn change(env: &Env, bytes: &[u8]) {
    let file = env.disk.open_write(Path::new(PATH)).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
}

fn put(container: &Container, path: &str, start: u64, values: &[i32]) -> Result<()> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let selection = Selection::of(&[start], &[values.len() as u64]);
    container.elements().put(&container.var(path)?, &selection, &data, NcType::Int, false)
}

fn ints(container: &Container, path: &str) -> Result<Vec<i32>> {
    let var = container.var(path)?;
    let mut into = vec![0; var.shape().iter().product::<u64>() as usize * 4];
    container.elements().get(&var, &Selection::all(&var.shape()), &mut into, NcType::Int, false)?;
    Ok(into.as_chunks::<4>().0.iter().map(|value| i32::from_ne_bytes(*value)).collect())
}

/// A fixed variable `x`, and `a` and `b` with one record.
fn make(env: &Env, indexing: Indexing, format: Format) {
    let container = create(env, PATH, &CreateOptions { indexing, format, ..CreateOptions::default() });
    container.define().dim("time", None).unwrap();
    container.define().dim("n", Some(100)).unwrap();
    container.define().var("x", NcType::Int, &["n"]).unwrap();
    container.define().var("a", NcType::Int, &["time"]).unwrap();
    container.define().var("b", NcType::Int, &["time"]).unwrap();
    container.enddef().unwrap();
    put(&container, "x", 0, &[5; 100]).unwrap();
    put(&container, "a", 0, &[1]).unwrap();
    put(&container, "b", 0, &[2]).unwrap();
    container.close().unwrap();
}

const CLASSIC: Format = Format::Classic(Version::Cdf5);
const ALL: [(Indexing, Format); 3] =
    [(Indexing::Never, CLASSIC), (Indexing::Always, CLASSIC), (Indexing::Never, Format::Partitioned)];

#[test]
fn what_changes_nothing_writes_nothing() {
    for (indexing, format) in ALL {
        let env = SimWorld::memory();
        make(&env, indexing, format);
        let (before, stat) = (bytes(&env), env.disk.stat_with_time(Path::new(PATH)).unwrap());
        env.clock.sleep(1_000_000_000);
        let container = open(&env, Mode::Append).unwrap();
        assert_eq!(ints(&container, "a").unwrap(), [1]);
        container.sync().unwrap();
        container.close().unwrap();
        assert!(bytes(&env) == before);
        assert_eq!(env.disk.stat_with_time(Path::new(PATH)).unwrap(), stat, "{indexing:?}, {format:?}");
    }
}

#[test]
fn records_that_others_added_stay() {
    for (indexing, format) in ALL {
        let env = SimWorld::memory();
        make(&env, indexing, format);
        let notebook = open(&env, Mode::Append).unwrap();
        let simulation = open(&env, Mode::Append).unwrap();
        put(&simulation, "a", 1, &[10, 11, 12]).unwrap();
        simulation.close().unwrap();
        put(&notebook, "x", 0, &[6]).unwrap();
        notebook.close().unwrap();
        let read = open(&env, Mode::Read).unwrap();
        assert_eq!(ints(&read, "a").unwrap(), [1, 10, 11, 12], "{indexing:?}, {format:?}");
        assert_eq!(ints(&read, "b").unwrap(), [2, 0, 0, 0]);
        assert_eq!(ints(&read, "x").unwrap()[..2], [6, 5]);
    }
}

#[test]
fn a_redefinition_keeps_records_that_others_added() {
    for (indexing, room) in [(Indexing::Never, 4000), (Indexing::Always, 0)] {
        for long in [10, 3000] {
            let env = SimWorld::memory();
            make(&env, indexing, CLASSIC);
            let notebook = open(&env, Mode::Append).unwrap();
            let simulation = open(&env, Mode::Append).unwrap();
            put(&simulation, "a", 1, &[10, 11, 12]).unwrap();
            simulation.close().unwrap();
            notebook.redef().unwrap();
            notebook.define().put_att(None, "note", NcType::Char, &vec![b'x'; long + room]).unwrap();
            notebook.enddef().unwrap();
            notebook.close().unwrap();
            let read = open(&env, Mode::Read).unwrap();
            assert_eq!(ints(&read, "a").unwrap(), [1, 10, 11, 12], "{indexing:?}, {long}");
            assert_eq!(ints(&read, "b").unwrap(), [2, 0, 0, 0]);
        }
    }
}

#[test]
fn a_redefinition_does_not_replace_anothers_file() {
    let env = SimWorld::memory();
    make(&env, Indexing::Never, CLASSIC);
    let one = open(&env, Mode::Append).unwrap();
    make(&env, Indexing::Never, Format::Partitioned); // takes the place of the file
    assert_eq!(one.redef().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(open(&env, Mode::Read).unwrap().format().unwrap(), Format::Partitioned);
}

#[test]
fn what_follows_the_data_never_shows_in_records() {
    for indexing in [Indexing::Never, Indexing::Always] {
        for size in [1, 2] {
            let env = SimWorld::memory();
            make(&env, indexing, CLASSIC);
            // After this byte the index is not valid any more, but its bytes are still there.
            let mut edited = bytes(&env);
            edited.extend([0x55; 41]);
            change(&env, &edited);
            threads::run(size, Some(3), env.disk.clone(), Faults::default(), |comm| {
                let rank = comm.rank();
                let container = Container::open(Path::new(PATH), Mode::Append, comm, &env)?;
                if rank == 0 {
                    put(&container, "a", 3, &[7])?;
                }
                container.close()
            })
            .into_iter()
            .for_each(|result| result.unwrap());
            let read = open(&env, Mode::Read).unwrap();
            assert_eq!(ints(&read, "a").unwrap(), [1, 0, 0, 7], "{indexing:?}, {size} ranks");
            assert_eq!(ints(&read, "b").unwrap(), [2, 0, 0, 0], "{indexing:?}, {size} ranks");
        }
    }
}

#[test]
fn a_cut_file_is_neither_extended_nor_converted() {
    for (indexing, format) in ALL {
        let env = SimWorld::memory();
        make(&env, indexing, format);
        let (whole, begin) = {
            let container = open(&env, Mode::Read).unwrap();
            (bytes(&env), container.var("x").unwrap().begin as usize)
        };
        // In the fixed variable; in the last record of `b`.
        let records = begin + 400;
        for (len, name) in [(begin + 200, "`x`"), (records + 6, "`b`")] {
            change(&env, &whole[..len]);
            let refused = open(&env, Mode::Append).err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
            assert!(
                refused.message().contains(name) && refused.message().contains(&len.to_string()),
                "{refused}"
            );
            let to = create(&env, "to.nc", &CreateOptions::default());
            let refused = convert(&open(&env, Mode::Read).unwrap(), &to).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
            to.abort(None);
            assert!(bytes(&env) == whole[..len], "a file that is refused stays as it is");
        }
    }
}

#[test]
fn variables_that_nobody_wrote_are_no_cut() {
    let env = SimWorld::memory();
    make(&env, Indexing::Never, CLASSIC);
    let whole = bytes(&env);
    // The last record lacks `b`, as from a writer that does not extend files to their stated length.
    change(&env, &whole[..whole.len() - 4]);
    let container = open(&env, Mode::Append).unwrap();
    assert_eq!(ints(&container, "b").unwrap(), [0]);
    put(&container, "b", 0, &[9]).unwrap();
    container.close().unwrap();
    assert_eq!(ints(&open(&env, Mode::Read).unwrap(), "b").unwrap(), [9]);
}

#[test]
fn a_number_of_records_that_the_file_does_not_hold_is_an_error() {
    let env = SimWorld::memory();
    make(&env, Indexing::Never, CLASSIC);
    let mut edited = bytes(&env);
    edited[4..12].copy_from_slice(&(1u64 << 50).to_be_bytes());
    change(&env, &edited);
    let source = open(&env, Mode::Read).unwrap();
    let to = create(&env, "to.nc", &CreateOptions::default());
    let errors = [open(&env, Mode::Append).err().unwrap(), convert(&source, &to).unwrap_err()];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains("1125899906842624 records"), "{error}");
    }
}

#[test]
fn a_box_that_the_file_does_not_hold_is_known_before_memory_is_asked_for() {
    for indexing in [Indexing::Never, Indexing::Always] {
        let env = SimWorld::memory();
        make(&env, indexing, CLASSIC);
        let file = open(&env, Mode::Read).unwrap();
        let var = file.var("a").unwrap();
        assert!(file.elements().check_held(&var, &Selection::all(&[1])).is_ok());
        let mut edited = bytes(&env);
        edited[4..12].copy_from_slice(&(1u64 << 50).to_be_bytes());
        change(&env, &edited);
        let file = open(&env, Mode::Read).unwrap();
        let var = file.var("a").unwrap();
        let error = file.elements().check_held(&var, &Selection::all(&[1 << 50])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{indexing:?}: {error}");
        assert!(error.message().contains("variable `a`"), "{error}");
    }
}

#[test]
fn records_outside_of_their_record_are_read_and_not_extended() {
    let env = SimWorld::memory();
    make(&env, Indexing::Never, CLASSIC);
    let mut edited = bytes(&env);
    let layout = open(&env, Mode::Read).unwrap().layout().unwrap();
    // The header ends with the begin of `b`.
    let (header, at) = (layout.header_len as usize, layout.record_begin + 1000);
    edited[header - 8..header].copy_from_slice(&at.to_be_bytes());
    edited.resize(at as usize + 4, 0);
    edited[at as usize + 3] = 77;
    change(&env, &edited);
    assert_eq!(ints(&open(&env, Mode::Read).unwrap(), "b").unwrap(), [77]);
    let refused = open(&env, Mode::Append).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("`b`"), "{refused}");
}

#[test]
fn a_type_other_than_text_states_no_spelling() {
    let env = SimWorld::memory();
    let rule = fieldstone_format::netcdf::paths::RULE.as_bytes();
    let container = create(&env, PATH, &CreateOptions { format: CLASSIC, ..CreateOptions::default() });
    container.define().put_att(None, "fieldstone_pathz", NcType::Byte, rule).unwrap();
    container.define().dim("a.b", Some(3)).unwrap();
    container.enddef().unwrap();
    container.close().unwrap();
    let mut edited = bytes(&env);
    let at = edited.windows(16).position(|window| window == b"fieldstone_pathz").unwrap();
    edited[at + 15] = b's';
    change(&env, &edited);
    assert_eq!(open(&env, Mode::Read).unwrap().dim("a.b").unwrap().len, 3);
}

#[test]
fn nobody_removes_or_finishes_anothers_container() {
    for is_aborted in [true, false] {
        let env = SimWorld::memory();
        let first = create(&env, PATH, &CreateOptions::default());
        first.enddef().unwrap();
        make(&env, Indexing::Never, CLASSIC); // next to the first, whose name it takes
        if is_aborted {
            first.abort(None);
        } else {
            let refused = first.close().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        }
        assert_eq!(ints(&open(&env, Mode::Read).unwrap(), "a").unwrap(), [1]);
    }
}

#[test]
fn threads_of_one_container_add_records_that_are_filled() {
    let env = SimWorld::memory();
    let container = create(&env, PATH, &CreateOptions { fill: true, ..CreateOptions::default() });
    container.define().dim("time", None).unwrap();
    container.define().var("a", NcType::Int, &["time"]).unwrap();
    container.define().var("b", NcType::Int, &["time"]).unwrap();
    container.enddef().unwrap();
    const RECORDS: i32 = 5000;
    // Both add each new record at the same moment.
    let together = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let (container, together) = (&container, &together);
            scope.spawn(move || {
                for i in 0..RECORDS {
                    together.wait();
                    put(container, name, i as u64, &[i]).unwrap();
                }
            });
        }
    });
    let all: Vec<i32> = (0..RECORDS).collect();
    assert!(ints(&container, "a").unwrap() == all && ints(&container, "b").unwrap() == all);
}
