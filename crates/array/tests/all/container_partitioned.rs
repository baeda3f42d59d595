//! Containers with the partitioned header, through the container's own calls; conversion both ways; merging.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::convert::convert;
use fieldstone_array::container::enddef::Indexing;
use fieldstone_array::container::merge::merge;
use fieldstone_array::container::stats;
use fieldstone_array::container::validate::validate;
use fieldstone_array::container::{Container, CreateOptions, Format, Mode};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::Comm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::read_exact_at;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::layout::Alignment;
use fieldstone_format::netcdf::{Header, NcType, Version, parse};
use fieldstone_testkit::samples::sample;

const CDF5: Format = Format::Classic(Version::Cdf5);

fn single(env: &Env) -> Arc<dyn Comm> {
    Arc::new(SingleComm::new(env.disk.clone()))
}

fn options(format: Format) -> CreateOptions {
    CreateOptions { format, ..CreateOptions::default() }
}

fn open(env: &Env, path: &str) -> Result<Container> {
    Container::open(Path::new(path), Mode::Read, single(env), env)
}

fn bytes(env: &Env, path: &str) -> Vec<u8> {
    let file = env.disk.open_read(Path::new(path)).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn put(container: &Container, path: &str, shape: &[u64], seed: u8) -> Result<()> {
    let var = container.var(path)?;
    let count: u64 = shape.iter().product();
    let data: Vec<u8> = (0..count).flat_map(|i| ((i as i32) * 7 + i32::from(seed)).to_ne_bytes()).collect();
    container.elements().put(&var, &Selection::of(&vec![0; shape.len()], shape), &data, NcType::Int, false)
}

/// The definitions and data of rank (or process) `rank`: its own events, and a grid that all share.
fn fill(container: &Container, rank: usize, grid: u64, seed: u8) -> Result<()> {
    container.define().dim("time", None)?;
    container.define().dim("x", Some(grid))?;
    container.define().put_att(None, "title", NcType::Char, b"events")?;
    container.define().var("grid", NcType::Int, &["x"])?;
    for event in rank * 3..rank * 3 + 3 {
        let path = format!("event_{event}");
        container.define().dim(&format!("{path}/hits"), Some(event as u64 + 1))?;
        let charge = container.define().var(&format!("{path}/v1.5/charge"), NcType::Short, &["hits"])?;
        container.define().put_att(Some(charge), "units", NcType::Char, b"pC")?;
        container.define().var(&format!("{path}/energy"), NcType::Int, &["time", "x"])?;
    }
    container.enddef()?;
    put(container, "grid", &[grid], seed)?;
    for event in rank * 3..rank * 3 + 3 {
        put(container, &format!("event_{event}/v1.5/charge"), &[event as u64 + 1], 3)?;
        put(container, &format!("event_{event}/energy"), &[4, grid], 5)?;
    }
    Ok(())
}

/// A container that `ranks` ranks write as one job.
fn job(env: &Env, path: &str, ranks: usize, format: Format) {
    let results = threads::run(ranks, None, env.disk.clone(), Faults::none(), |comm| {
        let rank = comm.rank();
        let container = Container::create(Path::new(path), comm, env, &options(format))?;
        fill(&container, rank, 5, 1)?;
        container.close()
    });
    results.into_iter().for_each(|result| result.unwrap());
}

/// All contents of a container, without positions.
fn contents(env: &Env, path: &str) -> String {
    let container = open(env, path).unwrap();
    let metadata = container.metadata().unwrap();
    let mut text = format!("{:?} {:?}", metadata.counts().unwrap(), metadata.attrs().unwrap());
    text += &format!("{:?}", metadata.dims(0, usize::MAX).unwrap());
    for mut var in metadata.vars(0, usize::MAX).unwrap() {
        let count: u64 = var.shape().iter().product();
        let mut data = vec![0; count as usize * var.ty.size()];
        container.elements().get(&var, &Selection::all(&var.shape()), &mut data, var.ty, false).unwrap();
        (var.begin, var.record_stride) = (0, 0);
        text += &format!("{var:?} {data:?}\n");
    }
    text
}

#[test]
fn ranks_write_and_anybody_reads() {
    let mut wanted = None;
    for ranks in [1, 2, 4] {
        let env = SimWorld::memory();
        job(&env, "p", ranks, Format::Partitioned);
        job(&env, "c", ranks, CDF5);
        assert_eq!(contents(&env, "p"), contents(&env, "c"), "{ranks} ranks");
        for path in ["p", "c"] {
            let metadata = open(&env, path).unwrap().metadata().unwrap();
            let above = |name: &str| name.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
            let all = metadata.vars(0, usize::MAX).unwrap();
            let mut paths: Vec<String> = all.iter().map(|var| above(&var.name)).collect();
            paths.extend(["absent", "event_1/v1", "event_1/v1.5/charge"].map(str::to_owned));
            for path in paths {
                let under: Vec<_> = all.iter().filter(|var| above(&var.name) == path).cloned().collect();
                assert_eq!(metadata.vars_of(&path).unwrap(), under, "{path}");
            }
        }
        for depth in 0..3 {
            let [p, c] = ["p", "c"].map(|path| {
                let container = open(&env, path).unwrap();
                stats::totals(&*container.metadata().unwrap(), depth).unwrap()
            });
            assert_eq!(p, c, "{ranks} ranks");
            assert_eq!((p.numrecs, p.counts.vars), (4, 1 + 6 * ranks as u64));
            let paths = [1, 1 + 3 * ranks, 1 + 6 * ranks][depth];
            assert_eq!((p.paths.len(), p.paths[0].bytes > 0), (paths, true));
        }
        let again = SimWorld::memory();
        job(&again, "p", ranks, Format::Partitioned);
        assert_eq!(bytes(&env, "p"), bytes(&again, "p"), "the same ranks write the same bytes");
        if ranks == 4 {
            wanted = Some(contents(&env, "p"));
        }
    }
    assert!(wanted.unwrap().contains("event_11/v1.5/charge"));
}

#[test]
fn records_are_added_to_a_finished_container() {
    let env = SimWorld::memory();
    job(&env, "p", 2, Format::Partitioned);
    let container = Container::open(Path::new("p"), Mode::Append, single(&env), &env).unwrap();
    put(&container, "event_4/energy", &[9, 5], 2).unwrap();
    assert_eq!(container.redef().unwrap_err().kind(), ErrorKind::Invalid);
    container.close().unwrap();
    let container = open(&env, "p").unwrap();
    assert_eq!(container.numrecs().unwrap(), 9);
    assert_eq!(container.var("event_0/energy").unwrap().shape(), [9, 5]);
    let var = container.var("grid").unwrap();
    let mut data = vec![0; 20];
    container.elements().get(&var, &Selection::all(&[5]), &mut data, NcType::Int, false).unwrap();
    assert_eq!(data[4..8], 8i32.to_ne_bytes());
}

fn converted(env: &Env, from: &str, to: &str, format: Format) -> Result<()> {
    let from = open(env, from)?;
    let target = Container::create(Path::new(to), single(env), env, &options(format))?;
    convert(&from, &target)?;
    target.close()
}

#[test]
fn there_and_back_again_is_the_same_file() {
    let env = SimWorld::memory();
    for ranks in [1, 3] {
        job(&env, "c", ranks, CDF5);
        converted(&env, "c", "p", Format::Partitioned).unwrap();
        assert_eq!(contents(&env, "c"), contents(&env, "p"));
        converted(&env, "p", "again", CDF5).unwrap();
        assert!(bytes(&env, "c") == bytes(&env, "again"), "{ranks} ranks");
        converted(&env, "p", "two", Format::Classic(Version::Cdf2)).unwrap();
        assert_eq!(contents(&env, "two"), contents(&env, "p"));
    }
}

#[test]
fn what_a_format_cannot_hold_is_named() {
    let env = SimWorld::memory();
    let container =
        Container::create(Path::new("p"), single(&env), &env, &options(Format::Partitioned)).unwrap();
    container.define().var("a/count", NcType::UInt64, &[]).unwrap();
    container.close().unwrap();
    let error = converted(&env, "p", "c", Format::Classic(Version::Cdf1)).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("a/count"), "{error}");
    assert!(open(&env, "c").is_err());
}

#[test]
fn several_ranks_share_the_work_of_a_conversion() {
    let env = SimWorld::memory();
    job(&env, "c", 2, CDF5);
    for ranks in [2, 5] {
        let results = threads::run(ranks, None, env.disk.clone(), Faults::none(), |comm| {
            let from = Container::open(Path::new("c"), Mode::Read, comm.clone(), &env)?;
            let to = Container::create(Path::new("p"), comm, &env, &options(Format::Partitioned))?;
            convert(&from, &to)?;
            to.close()
        });
        results.into_iter().for_each(|result| result.unwrap());
        assert_eq!(contents(&env, "c"), contents(&env, "p"), "{ranks} ranks");
    }
}

/// A file for each process, each with its own data of the shared grid.
fn pieces(env: &Env, format: Format, seeds: &[(u64, u8)]) -> Vec<PathBuf> {
    let files = seeds.iter().enumerate().map(|(rank, (grid, seed))| {
        let path = PathBuf::from(format!("piece_{rank}"));
        let container = Container::create(&path, single(env), env, &options(format)).unwrap();
        fill(&container, rank, *grid, *seed).unwrap();
        container.close().unwrap();
        path
    });
    files.collect()
}

#[test]
fn merged_files_are_what_ranks_of_one_job_write() {
    for format in [CDF5, Format::Partitioned] {
        for ranks in [1, 2, 5] {
            let env = SimWorld::memory();
            job(&env, "job", ranks, format);
            let files = pieces(&env, format, &vec![(5, 1); ranks]);
            let counts = merge(&files, Path::new("merged"), &env, &options(format)).unwrap();
            assert_eq!(counts.vars, 1 + 6 * ranks as u64);
            assert!(bytes(&env, "job") == bytes(&env, "merged"), "{format:?}, {ranks} ranks");
        }
    }
}

#[test]
fn what_disagrees_is_not_merged() {
    for format in [CDF5, Format::Partitioned] {
        let env = SimWorld::memory();
        let files = pieces(&env, format, &[(5, 1), (6, 1)]);
        let error = merge(&files, Path::new("merged"), &env, &options(format)).unwrap_err();
        assert!(error.kind() == ErrorKind::Conflict && error.message().contains("`x`"), "{error}");
        let (ranks, files_of) = ("6 on rank 1", "(rank 0 is piece_0, rank 1 is piece_1)");
        assert!(error.message().contains(ranks) && error.message().contains(files_of), "{error}");
        let files = pieces(&env, format, &[(5, 1), (5, 1), (5, 2)]);
        let error = merge(&files, Path::new("merged"), &env, &options(format)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let message = error.message();
        assert!(message.contains("`grid`") && message.contains("piece_2"), "{message}");
        assert_eq!(open(&env, "merged").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(
            merge(&[], Path::new("m"), &env, &options(format)).unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}

/// The file that is kept for readers of later releases, and for the reader in plain Python.
#[test]
fn the_kept_file_is_what_is_written() {
    let env = SimWorld::memory();
    job(&env, "p", 3, Format::Partitioned);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/partitioned/v0.fsp");
    let written = bytes(&env, "p");
    if std::env::var_os("UPDATE_PARTITIONED").is_some() {
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::write(&kept, &written).unwrap();
    }
    assert!(
        written == std::fs::read(&kept).unwrap(),
        "bytes change together with spec/partitioned-header.md"
    );
}

/// Bytes of the source's elements as a reader gets them, in pieces; checksums, because two copies of large data would
/// not fit in memory.
fn values(env: &Env, path: &str) -> Vec<(String, u32)> {
    let container = open(env, path).unwrap();
    let vars = container.metadata().unwrap().vars(0, usize::MAX).unwrap();
    let sum = |var: &fieldstone_array::container::VarInfo| {
        let shape = var.shape();
        let mut data = vec![0; shape.iter().product::<u64>() as usize * var.ty.size()];
        container.elements().get(var, &Selection::all(&shape), &mut data, var.ty, false).unwrap();
        fieldstone_format::crc(&data)
    };
    vars.iter().map(|var| (format!("{} {:?} {:?}", var.name, var.ty, var.shape()), sum(var))).collect()
}

/// Header of a classic file, without the positions of data.
fn defined(env: &Env, path: &str) -> (Header, Vec<u64>) {
    let mut header = parse::header(&bytes(env, path)).unwrap().0;
    let begins = std::mem::take(&mut header.vars.begins);
    header.vars.vsizes.clear();
    (header, begins)
}

/// Real files, through the partitioned header and back: the same bytes, or the same header and values and a reason
/// for different bytes.
#[test]
fn real_files_survive_conversion() {
    let mut files = Vec::new();
    for folder in ["netcdf-classic", "mesh"] {
        let Some(folder) = sample(folder) else { return };
        files.extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| {
        let bytes = std::fs::read(path).unwrap();
        // One file of the corpus breaks the format on purpose.
        bytes.starts_with(b"CDF") && !path.ends_with("bad_cdf5_begin.nc")
    });
    files.sort();
    let env = Env::real();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut reasons = std::collections::BTreeMap::new();
    for path in &files {
        let path = path.to_str().unwrap();
        let format = open(&env, path).unwrap().metadata().unwrap().format();
        converted(&env, path, &at("p"), Format::Partitioned)
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let checked = validate(&bytes(&env, &at("p"))).unwrap();
        assert!(checked.ok && checked.findings.is_empty(), "{path}: {:?}", checked.findings);
        let alignment = Alignment { v_align: 4, ..Alignment::default() };
        let packed = CreateOptions { alignment, indexing: Indexing::Never, ..options(format) };
        let from = open(&env, &at("p")).unwrap();
        let target = Container::create(Path::new(&at("c")), single(&env), &env, &packed).unwrap();
        convert(&from, &target).unwrap();
        target.close().unwrap();
        let (theirs, ours) = (bytes(&env, path), bytes(&env, &at("c")));
        let ((old, old_begins), (new, new_begins)) = (defined(&env, path), defined(&env, &at("c")));
        let reason = if theirs == ours {
            "none: the same bytes"
        } else {
            // Trailing zero bytes of a name are dropped, as all netCDF libraries do.
            assert!(old == new, "{path}");
            if old_begins == new_begins { "bytes between data" } else { "data begin elsewhere" }
        };
        assert!(values(&env, path) == values(&env, &at("c")), "{path}");
        *reasons.entry(reason).or_insert(0) += 1;
        println!("{path}: {reason}");
    }
    println!("{reasons:?}");
    assert!(files.len() >= 20 && reasons["none: the same bytes"] >= 10, "{reasons:?}");
}
