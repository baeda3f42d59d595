//! The name index: lookups through it agree with the whole header, also after any change to the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::define::{DimColumn, Types, VarColumns};
use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::Result;
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::env::{Env, read_exact_at, write_all_at};
use fieldstone_format::netcdf::trailer::Locator;
use fieldstone_format::netcdf::{Names, NcType, Version};
use fieldstone_testkit::Random;
use fieldstone_testkit::require::full;

fn single(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

fn bytes(env: &Env, path: &str) -> Vec<u8> {
    let file = env.disk.open_read(Path::new(path)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn write(env: &Env, path: &str, bytes: &[u8]) {
    let file = match env.disk.open_write(Path::new(path)) {
        Ok(file) => file,
        Err(_) => env.disk.create_new(Path::new(path)).unwrap(),
    };
    file.set_len(bytes.len() as u64).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
}

const EVENTS: usize = 700;

fn dim_name(i: usize, paths: bool) -> String {
    if paths { format!("event_{i}/hits") } else { format!("event_{i}_hits") }
}

fn var_name(i: usize, k: usize, paths: bool) -> String {
    if paths { format!("event_{i}/plane_{k}/charge") } else { format!("event_{i}_plane_{k}_charge") }
}

/// The events of one rank of `size`.
fn define(container: &Container, rank: usize, size: usize, paths: bool, records: bool) -> Result<()> {
    container.define().dim("time", None)?;
    container.define().put_att(None, "title", NcType::Char, b"events")?;
    for i in rank * EVENTS / size..(rank + 1) * EVENTS / size {
        container.define().dim(&dim_name(i, paths), Some(i as u64 % 9 + 1))?;
        for k in 0..3 {
            let name = var_name(i, k, paths);
            let dim = if paths { "hits".to_owned() } else { dim_name(i, false) };
            let var = match records && k == 2 && i % 50 == 0 {
                true => container.define().var(&name, NcType::Int, &["time", &dim])?,
                false => container.define().var(&name, NcType::Float, &[&dim])?,
            };
            if i % 3 == 0 {
                container.define().put_att(Some(var), "units", NcType::Char, format!("pC{i}").as_bytes())?;
            }
        }
    }
    container.enddef()?;
    container.close()
}

fn options(version: Version) -> CreateOptions {
    CreateOptions { format: Format::Classic(version), indexing: Indexing::Auto, ..CreateOptions::default() }
}

fn make(env: &Env, path: &str, version: Version, paths: bool, records: bool) {
    let container = Container::create(Path::new(path), single(env), env, &options(version)).unwrap();
    define(&container, 0, 1, paths, records).unwrap();
}

/// Opens the container as a reader does, and with the whole header.
fn both(env: &Env, path: &str) -> Result<(Container, Container)> {
    let read = Container::open(Path::new(path), Mode::Read, single(env), env)?;
    // A copy, because opening for writing removes an index over which records may grow.
    write(env, "copy.nc", &bytes(env, path));
    Ok((read, Container::open(Path::new("copy.nc"), Mode::Append, single(env), env)?))
}

fn is_indexed(container: &Container) -> bool {
    format!("{:?}", container.metadata().unwrap()).starts_with("Indexed")
}

/// Checks that every answer about these names and a few ranges is the same.
fn agree(read: &Container, whole: &Container, names: &[String], what: &str) {
    let (read, whole) = (read.metadata().unwrap(), whole.metadata().unwrap());
    assert_eq!(read.numrecs().unwrap(), whole.numrecs().unwrap(), "{what}");
    for name in names {
        assert_eq!(read.find_var(name).unwrap(), whole.find_var(name).unwrap(), "{what}: variable {name}");
        assert_eq!(read.find_dim(name).unwrap(), whole.find_dim(name).unwrap(), "{what}: dimension {name}");
    }
    assert_eq!(read.counts().unwrap(), whole.counts().unwrap(), "{what}");
    assert_eq!(read.attrs().unwrap(), whole.attrs().unwrap(), "{what}");
    let all = whole.vars(0, usize::MAX).unwrap();
    let above = |name: &str| name.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
    for path in [names.first(), names.last()].map(|name| above(name.map_or("", |name| name))) {
        let under: Vec<_> = all.iter().filter(|var| above(&var.name) == path).cloned().collect();
        assert_eq!(read.vars_of(&path).unwrap(), under, "{what}: path `{path}`");
        assert_eq!(whole.vars_of(&path).unwrap(), under, "{what}: path `{path}`");
    }
    for from in [0, 63, 700, 2090] {
        assert_eq!(read.vars(from, 3).unwrap(), whole.vars(from, 3).unwrap(), "{what}");
        assert_eq!(read.dims(from, 3).unwrap(), whole.dims(from, 3).unwrap(), "{what}");
    }
}

#[test]
fn every_object_is_found_through_the_index() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        for (paths, records) in [(false, false), (true, true)] {
            let env = SimWorld::memory();
            make(&env, "t.nc", version, paths, records);
            let (read, whole) = both(&env, "t.nc").unwrap();
            assert!(is_indexed(&read) && !is_indexed(&whole));
            let mut names: Vec<String> = (0..EVENTS).map(|i| dim_name(i, paths)).collect();
            names.extend((0..EVENTS).flat_map(|i| (0..3).map(move |k| var_name(i, k, paths))));
            names.extend(["nothing", "event_1", "title", ""].map(str::to_owned));
            agree(&read, &whole, &names, "as written");
            let all = read.metadata().unwrap().vars(0, usize::MAX).unwrap();
            assert_eq!(all, whole.metadata().unwrap().vars(0, usize::MAX).unwrap());
            assert_eq!(all.len(), 3 * EVENTS);
            let memory = read.metadata().unwrap().memory();
            assert!(memory < 700_000, "{memory} bytes: the header was not read whole");
        }
    }
}

#[test]
fn the_index_does_not_depend_on_ranks() {
    let env = SimWorld::memory();
    make(&env, "one.nc", Version::Cdf5, true, true);
    let one = bytes(&env, "one.nc");
    assert!(Locator::decode(&one[one.len() - 64..]).is_some());
    for (size, seed) in [(2, None), (3, Some(3)), (4, None), (7, Some(4)), (16, None)] {
        let env = SimWorld::memory();
        let results = threads::run(size, seed, env.disk.clone(), Faults::default(), |comm| {
            let rank = comm.rank();
            let container = Container::create(Path::new("t.nc"), comm, &env, &options(Version::Cdf5))?;
            define(&container, rank, size, true, true)
        });
        results.into_iter().for_each(|result| result.unwrap());
        assert!(bytes(&env, "t.nc") == one, "{size} ranks");
    }
}

/// Changes that other programs may make to a file, and damage.
fn edit(bytes: &mut Vec<u8>, random: &mut Random, header: usize, names: &mut Vec<String>) -> String {
    let len = bytes.len() as u64;
    let find = |bytes: &[u8], name: &str| {
        bytes[..header].windows(name.len()).position(|window| window == name.as_bytes())
    };
    match random.below(10) {
        0 | 1 => {
            let at = random.below(header as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
            format!("bit of the header at {at}")
        }
        2 => {
            let at = header as u64 + random.below(len - header as u64);
            bytes[at as usize] ^= 1 << random.below(8);
            format!("bit behind the header at {at}")
        }
        3..=5 => {
            // Renamed in place, as ncrename and nc_rename_var do with a name of equal length.
            let (i, k) = (random.below(EVENTS as u64) as usize, random.below(3) as usize);
            let name = if random.below(2) == 0 { dim_name(i, false) } else { var_name(i, k, false) };
            let Some(at) = find(bytes, &name) else { return "nothing".to_owned() };
            let new = name.replace("event", "shot_");
            bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
            names.extend([name.clone(), new]);
            format!("{name} renamed")
        }
        6 => {
            // An attribute's value.
            let i = random.below(EVENTS as u64 / 3) as usize * 3;
            let Some(at) = find(bytes, &format!("pC{i}")) else { return "nothing".to_owned() };
            bytes[at] = b'n';
            names.push(var_name(i, 0, false));
            names.push(var_name(i, 1, false));
            format!("attribute of event {i}")
        }
        7 => {
            let cut = random.below(len - header as u64).max(1) as usize;
            bytes.truncate(len as usize - cut);
            format!("{cut} bytes cut")
        }
        8 => {
            bytes.extend(std::iter::repeat_n(7, random.below(5000) as usize + 1));
            "bytes added".to_owned()
        }
        _ => {
            // Records are appended over the index.
            let more = random.below(bytes.len() as u64 - header as u64) as usize;
            let from = bytes.len() - more;
            bytes[from..].iter_mut().take(1 + more / 2).for_each(|byte| *byte = 0x41);
            bytes[11] = bytes[11].wrapping_add(1);
            "records over the index".to_owned()
        }
    }
}

#[test]
fn answers_are_right_after_thousands_of_edits() {
    let (mut used, mut compared) = (0, 0);
    for records in [false, true] {
        let env = SimWorld::memory();
        make(&env, "t.nc", Version::Cdf5, false, records);
        let original = bytes(&env, "t.nc");
        let locator = Locator::decode(&original[original.len() - 64..]).unwrap();
        for seed in 0..if full() { 1_000 } else { 250 } {
            let mut random = fieldstone_testkit::seeded(seed);
            let (mut edited, mut names) = (original.clone(), Vec::new());
            let mut what = format!("seed {seed}, records {records}");
            for _ in 0..random.below(3) + 1 {
                what += ": ";
                what += &edit(&mut edited, &mut random, locator.header_len as usize, &mut names);
                if edited.len() <= locator.header_len as usize {
                    break;
                }
            }
            for _ in 0..4 {
                let (i, k) = (random.below(EVENTS as u64) as usize, random.below(3) as usize);
                names.extend([dim_name(i, false), var_name(i, k, false)]);
            }
            names.push("nothing".to_owned());
            write(&env, "t.nc", &edited);
            // A header that cannot be read only has to cause no panic.
            let Ok((read, whole)) = both(&env, "t.nc") else { continue };
            let all = whole.metadata().unwrap().vars(0, usize::MAX).unwrap();
            let mut known: Vec<&str> = all.iter().map(|var| &*var.name).collect();
            known.sort_unstable();
            if known.windows(2).any(|pair| pair[0] == pair[1]) {
                continue;
            }
            used += usize::from(is_indexed(&read));
            compared += 1;
            agree(&read, &whole, &names, &what);
        }
    }
    // Files that are cut in their data are only opened for reading, and not compared.
    let (least, least_used) = if full() { (1_300, 350) } else { (300, 80) };
    assert!(compared > least && used > least_used, "{compared} compared, {used} through an index");
}

#[test]
fn the_index_is_there_where_it_is_asked_for() {
    for (indexing, expected) in [(Indexing::Always, true), (Indexing::Auto, false), (Indexing::Never, false)]
    {
        let env = SimWorld::memory();
        let options = CreateOptions { indexing, ..CreateOptions::default() };
        let container = Container::create(Path::new("t.nc"), single(&env), &env, &options).unwrap();
        container.define().dim("time", None).unwrap();
        container.define().var("r", NcType::Int, &["time"]).unwrap();
        container.enddef().unwrap();
        let put = |container: &Container, at: u64, value: i32| {
            let var = container.var("r").unwrap();
            let selection = Selection::element(&[at]);
            container.elements().put(&var, &selection, &value.to_ne_bytes(), NcType::Int, false).unwrap();
        };
        put(&container, 0, 1);
        container.sync().unwrap();
        put(&container, 3, 4);
        container.close().unwrap();
        for records in [4, 9] {
            let read = Container::open(Path::new("t.nc"), Mode::Read, single(&env), &env).unwrap();
            assert_eq!(is_indexed(&read), expected);
            assert_eq!(read.numrecs().unwrap(), records);
            let var = read.var("r").unwrap();
            let mut into = vec![0; records as usize * 4];
            read.elements().get(&var, &Selection::all(&var.shape()), &mut into, NcType::Int, false).unwrap();
            let values = into.chunks_exact(4).map(|value| i32::from_ne_bytes(value.try_into().unwrap()));
            let values: Vec<i32> = values.collect();
            assert_eq!(values[..4], [1, 0, 0, 4]);
            assert_eq!(values[4..], [0, 0, 0, 0, 9][..values.len() - 4], "nothing of the old index shows");
            let again = Container::open(Path::new("t.nc"), Mode::Append, single(&env), &env).unwrap();
            put(&again, 8, 9);
            again.close().unwrap();
        }
    }
}

#[test]
fn one_of_half_a_million_is_found_in_a_few_reads() {
    const VARS: usize = 568_480;
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let env = world.process("host");
    let options = CreateOptions::default();
    let container = Container::create(Path::new("t.nc"), single(&env), &env, &options).unwrap();
    let dims: Names = (0..VARS).map(|i| format!("run_5/subrun_{}/event_{i}/hits", i / 1000)).collect();
    let lens: Vec<u64> = (0..VARS as u64).map(|i| i % 7 + 1).collect();
    let ids = container.define().dims(&dims, &lens).unwrap();
    let vars: Names = (0..VARS).map(|i| format!("run_5/subrun_{}/event_{i}/charge", i / 1000)).collect();
    let (ids, ends): (Vec<u32>, Vec<u64>) = (ids.collect(), (1..=VARS as u64).collect());
    let dims = DimColumn::Ids(&ids, &ends);
    let columns = VarColumns { names: &vars, types: Types::One(NcType::Float), dims, attrs: None };
    container.define().vars(&columns).unwrap();
    container.close().unwrap();
    drop(container);
    let size = bytes(&env, "t.nc").len();

    world.clear_trace();
    let read = Container::open(Path::new("t.nc"), Mode::Read, single(&env), &env).unwrap();
    let name = "run_5/subrun_345/event_345678/charge";
    let var = read.var(name).unwrap();
    let mut data = [1; 28];
    let selection = Selection::all(&var.shape());
    read.elements()
        .get(&var, &selection, &mut data[..var.shape()[0] as usize * 4], NcType::Float, false)
        .unwrap();
    let counters = world.counters();
    let reads = counters.count(OpKind::Read);
    let memory = read.metadata().unwrap().memory();
    println!("file {size} bytes; {reads} reads, {} bytes, {memory} held", counters.bytes_read);
    assert!(reads < 40 && counters.bytes_read < 1_000_000 && memory < 1_000_000);
    assert!(size > 60_000_000);
    assert_eq!((var.id, var.shape()), (345_678, vec![345_678 % 7 + 1]));
    // A search for the variables of one path examines all names, and each block of the header once.
    world.clear_trace();
    assert_eq!(read.metadata().unwrap().vars_of("run_5/subrun_345/event_345678").unwrap(), [var]);
    let counters = world.counters();
    assert!(counters.bytes_read < size as u64, "{} bytes", counters.bytes_read);
    assert!(read.metadata().unwrap().memory() < 2_000_000);
}
