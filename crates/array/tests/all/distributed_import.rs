//! Imports: raw and netCDF files read through views, on threads; files that are too short, damaged or replaced.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::BufferMut;
use fieldstone_array::distributed::import::Import;
use fieldstone_array::distributed::plan::{Method, Settings};
use fieldstone_array::distributed::view::View;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, Team};
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::env::{Disk, real::RealDisk, write_all_at};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{ImportFormat, ImportedVariable};
use fieldstone_format::netcdf::layout::{Alignment, Layout, lay_out};
use fieldstone_format::netcdf::{Header, NcType, Version, paths, write};
use fieldstone_testkit::{samples, seeded};

use crate::distributed_model::{Spec, exclusive, irregular, reading};

const PATH: &str = "/import.bin";
const DTYPES: [&str; 10] = ["<f8", ">f8", "<i4", ">i4", ">i2", "|u1", "<c16", ">c8", "|S3", ">M8[s]"];

fn disk_with(bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = SimWorld::memory().disk;
    let file = disk.create_new(Path::new(PATH)).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    disk
}

fn variable(name: &str, dtype: &str, offset: u64, shape: &[u64]) -> ImportedVariable {
    ImportedVariable { name: name.into(), dtype: DType::parse(dtype).unwrap(), offset, shape: shape.to_vec() }
}

/// Each rank's view of a variable: its bytes, in the machine's order.
fn read(import: &Import, name: &str, view: Option<&View>, settings: Settings) -> Result<Vec<u8>> {
    let local = import.view(name, view)?;
    let array = import.variable(name)?;
    let dtype = array.variable.dtype.to_native();
    let elements: u64 = local.local_shape().iter().product();
    let mut bytes = vec![0xcc; elements as usize * dtype.size()];
    let mut into = BufferMut::new(&mut bytes, array.element(dtype)?, local.local_shape())?;
    import.read(name, Ok((&local, &mut into)), settings)?;
    Ok(bytes)
}

fn on_ranks<T: Send>(
    ranks: usize,
    disk: &Arc<dyn Disk>,
    body: impl Fn(Team) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    threads::run(ranks, None, disk.clone(), Faults::none(), |comm: Arc<dyn Comm>| body(Team::new(comm)))
}

fn all<T>(results: Vec<Result<T>>) -> Vec<T> {
    results.into_iter().map(Result::unwrap).collect()
}

/// The error that all ranks return alike, except for its rank.
fn error_of<T>(results: Vec<Result<T>>, code: Code) -> Error {
    let mut errors: Vec<Error> = results.into_iter().map(|result| result.err().unwrap()).collect();
    assert!(
        errors.iter().all(|error| error.code() == code && error.message() == errors[0].message()),
        "{errors:?}"
    );
    errors.remove(0)
}

/// Element `at` of an array in the file, whose offset a test computes on its own.
fn native(file: &[u8], offset: usize, dtype: DType) -> Vec<u8> {
    let mut element = file[offset..offset + dtype.size()].to_vec();
    if !dtype.is_native() {
        dtype.swap_bytes(&mut element);
    }
    element
}

fn random_specs(random: &mut Random, shape: &[u64], ranks: usize) -> Vec<Spec> {
    match random.below(3) {
        0 => reading(random, shape, ranks),
        1 => irregular(random, shape, ranks, true),
        _ => exclusive(random, shape, ranks),
    }
}

fn check(
    file: &[u8],
    (dtype, shape): (DType, &[u64]),
    offset: impl Fn(u64) -> usize,
    (specs, got): (&[Spec], &[Vec<u8>]),
) {
    for (rank, (spec, bytes)) in specs.iter().zip(got).enumerate() {
        let (_, elements) = spec.model(shape, rank);
        assert_eq!(bytes.len(), elements.len() * dtype.size());
        for (element, bytes) in elements.iter().zip(bytes.chunks(dtype.size())) {
            match element {
                Some((at, _)) => assert_eq!(bytes, native(file, offset(*at), dtype), "{spec:?}"),
                None => assert!(bytes.iter().all(|byte| *byte == 0xcc), "what is outside stays"),
            }
        }
    }
}

#[test]
fn raw_variables_of_any_type_order_offset_and_shape_come_through_any_view() {
    for seed in 0..120 {
        let random = &mut *seeded(seed);
        let ranks = 1 + random.below(8) as usize;
        let mut file = vec![0; 20_000 + random.below(3000) as usize];
        random.fill(&mut file);
        let dtype = DType::parse(DTYPES[random.below(DTYPES.len() as u64) as usize]).unwrap();
        let dims = 1 + random.below(3) as usize;
        let shape: Vec<u64> = (0..dims).map(|_| 1 + random.below([900, 30, 10][dims - 1])).collect();
        let offset = random.below(3000);
        let specs = random_specs(random, &shape, ranks);
        let method = [Method::Auto, Method::Direct, Method::Exchange, Method::View][random.below(4) as usize];
        let settings = Settings { method, buffer: 3000, aggregators: None };
        let disk = disk_with(&file);
        let variables = [variable("x", &dtype.to_string(), offset, &shape), variable("rest", "|u1", 0, &[9])];
        let got = all(on_ranks(ranks, &disk, |team| {
            let import = Import::raw(&team, &*disk, Path::new(PATH), variables.to_vec())?;
            let bytes = read(&import, "x", Some(&specs[team.rank()].view()), settings)?;
            import.close()?;
            Ok(bytes)
        }));
        let at = |at: u64| offset as usize + at as usize * dtype.size();
        check(&file, (dtype, &shape), at, (&specs, &got));
    }
}

/// A file of fixed and record variables, with random data: its bytes, its header, and the offset of each record.
fn netcdf_file(random: &mut Random, version: Version, records: u64, lone: bool) -> (Vec<u8>, Header, Layout) {
    let mut header = Header::new(version);
    header.numrecs = Some(records);
    header.attrs.push(paths::ATTRIBUTE, NcType::Char, paths::RULE.as_bytes());
    let time = header.dims.push_record("time");
    let (x, y) = (header.dims.push("x", 5), header.dims.push("y", 3));
    header.vars.push("fixed", NcType::Double, &[y, x]);
    header.vars.push("scalar", NcType::Int, &[]);
    header.vars.push("bytes/odd", NcType::Byte, &[time, y]);
    if !lone {
        header.vars.push("wind", NcType::Float, &[time, y, x]);
        header.vars.push("time", NcType::Double, &[time]);
    }
    let layout = lay_out(&mut header, &Alignment::default(), true, None).unwrap();
    let mut file = write::header(&header, true);
    let len = layout.file_len(records).unwrap() as usize;
    let head = file.len();
    file.resize(len, 0);
    random.fill(&mut file[head..]);
    (file, header, layout)
}

#[test]
fn netcdf_variables_come_through_any_view_records_too() {
    for seed in 0..60 {
        let random = &mut *seeded(1000 + seed);
        let ranks = 1 + random.below(8) as usize;
        let version = [Version::Cdf1, Version::Cdf2, Version::Cdf5][random.below(3) as usize];
        let (records, lone) = (1 + random.below(7), random.below(3) == 0);
        let (mut file, header, layout) = netcdf_file(random, version, records, lone);
        if random.below(4) == 0 {
            // A streaming file: its length determines the number of records.
            file[4..4 + version.size_width()].fill(0xff);
        }
        let disk = disk_with(&file);
        for var in header.vars.iter().filter(|var| var.name() != "scalar") {
            let name = var.name();
            let dtype = DType::parse(&format!(">{}", var.ty().numpy())).unwrap();
            let mut shape: Vec<u64> = var.dims().iter().map(|dim| header.dims.lens[*dim as usize]).collect();
            let is_record = header.is_record(var);
            if is_record {
                shape[0] = records;
            }
            let slab: u64 = shape[usize::from(is_record)..].iter().product();
            let offset = |at: u64| match is_record {
                true => var.begin() + at / slab * layout.record_size + at % slab * dtype.size() as u64,
                false => var.begin() + at * dtype.size() as u64,
            };
            let specs = random_specs(random, &shape, ranks);
            let got = all(on_ranks(ranks, &disk, |team| {
                let import = Import::netcdf(&team, &*disk, Path::new(PATH), &[name, "scalar"])?;
                assert_eq!(import.variable(name)?.variable.shape, shape);
                read(&import, name, Some(&specs[team.rank()].view()), Settings::default())
            }));
            check(&file, (dtype, &shape), |at| offset(at) as usize, (&specs, &got));
        }
    }
}

#[test]
fn without_a_view_ranks_have_balanced_shares_in_their_order() {
    let file: Vec<u8> = (0..=255).collect();
    let disk = disk_with(&file);
    let variables = [variable("a", "|u1", 3, &[10, 4]), variable("one", "|u1", 200, &[])];
    for ranks in 1..=8 {
        let got = all(on_ranks(ranks, &disk, |team| {
            let import = Import::raw(&team, &*disk, Path::new(PATH), variables.to_vec())?;
            assert_eq!(
                read(&import, "one", None, Settings::default())?,
                [200],
                "all have what has no dimension"
            );
            read(&import, "a", None, Settings::default())
        }));
        assert_eq!(got.concat(), file[3..43]);
        let rows: Vec<usize> = got.iter().map(|part| part.len() / 4).collect();
        let expected: Vec<usize> = (0..ranks).map(|r| 10 / ranks + usize::from(r < 10 % ranks)).collect();
        assert_eq!(rows, expected);
    }
}

#[test]
fn a_description_says_what_the_file_is_and_its_checksum_does_not_depend_on_ranks() {
    let random = &mut *seeded(7);
    let (file, header, _) = netcdf_file(random, Version::Cdf2, 6, false);
    let sums_of = |file: &[u8], ranks: usize, names: &[&str]| {
        let disk = disk_with(file);
        let sums = all(on_ranks(ranks, &disk, |team| {
            let import = Import::netcdf(&team, &*disk, Path::new(PATH), names)?;
            let sum = import.checksum()?;
            let said = import.describe("grid", Some(sum));
            assert_eq!((&*said.name, &*said.source, said.format), ("grid", PATH, ImportFormat::NetCdf));
            assert_eq!((said.size, said.checksum.as_deref()), (file.len() as u64, Some(&sum[..])));
            assert_eq!(said.mtime, disk.stat_with_time(Path::new(PATH)).unwrap().1);
            let wind = said.variables.iter().find(|variable| variable.name == "wind").unwrap();
            assert_eq!((wind.dtype.to_string(), &wind.shape[..]), (">f4".into(), &[6, 3, 5][..]));
            Ok(sum)
        }));
        assert!(sums.iter().all(|sum| *sum == sums[0]));
        sums[0]
    };
    let first = sums_of(&file, 1, &["fixed", "wind"]);
    for ranks in 2..=8 {
        assert_eq!(sums_of(&file, ranks, &["fixed", "wind"]), first);
    }
    assert_ne!(sums_of(&file, 3, &["wind"]), first);
    let (fixed, wind) = (header.vars.get(0).begin(), header.vars.get(3).begin());
    for (offset, changes) in [(fixed, true), (wind, true), (wind + 59, true), (wind - 1, false)] {
        let mut file = file.clone();
        file[offset as usize] ^= 1;
        assert_eq!(sums_of(&file, 2, &["fixed", "wind"]) != first, changes, "byte {offset}");
    }
}

#[test]
fn a_checksum_of_more_than_a_block_takes_each_byte_once() {
    let random = &mut *seeded(8);
    let mut file = vec![0; (5 << 20) + 77];
    random.fill(&mut file);
    let sum_of = |file: &[u8], ranks: usize| {
        let disk = disk_with(file);
        let variables = vec![variable("x", "|S3", 5, &[(5 << 20) / 3])];
        all(on_ranks(ranks, &disk, |team| {
            Import::raw(&team, &*disk, Path::new(PATH), variables.clone())?.checksum()
        }))[0]
    };
    let first = sum_of(&file, 1);
    assert_eq!([2, 3, 7].map(|ranks| sum_of(&file, ranks)), [first; 3]);
    // In the last element of the first block.
    file[5 + ((1 << 20) / 3 - 1) * 3] ^= 1;
    assert_ne!(sum_of(&file, 2), first);
}

#[test]
fn a_file_that_is_shorter_than_its_import_says_what_it_lacks() {
    let disk = disk_with(&[0; 100]);
    for (dtype, offset, shape, needs) in [
        ("<f8", 60, &[5, 1][..], Some("60 to 100")),
        ("<f8", 61, &[5, 1], Some("61 to 101")),
        ("|u1", 101, &[1], Some("101 to 102")),
        ("|u1", 500, &[0], None),
        ("|u1", 99, &[], None),
    ] {
        let results = on_ranks(3, &disk, |team| {
            Import::raw(&team, &*disk, Path::new(PATH), vec![variable("edge1", dtype, offset, shape)])
        });
        match needs {
            Some(needs) if !needs.ends_with("100") => {
                let error = error_of(results, Code::Truncated);
                let expected =
                    format!("rank 0: variable `edge1` needs the bytes {needs} of {PATH}, which has 100");
                assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, &*expected));
            }
            _ => drop(all(results)),
        }
    }
    // A netCDF file without its last byte: the error names the record that is cut, and others can still be read.
    let (file, ..) = netcdf_file(&mut seeded(1), Version::Cdf5, 4, false);
    let disk = disk_with(&file[..file.len() - 1]);
    let open = |names: &'static [&'static str]| {
        on_ranks(2, &disk, |team| Import::netcdf(&team, &*disk, Path::new(PATH), names).map(drop))
    };
    assert!(
        error_of(open(&["fixed", "time"]), Code::Truncated)
            .message()
            .contains("variable `time` needs the bytes")
    );
    all(open(&["fixed", "wind"]));
}

#[test]
fn a_file_that_is_cut_after_it_was_opened_is_corrupt() {
    let disk = disk_with(&[1; 1000]);
    let results = on_ranks(2, &disk, |team| {
        let import = Import::raw(&team, &*disk, Path::new(PATH), vec![variable("x", "<f8", 0, &[125])])?;
        if team.rank() == 0 {
            disk.open_write(Path::new(PATH)).unwrap().set_len(999).unwrap();
        }
        team.barrier("cut")?;
        let error = import.checksum().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("variable `x` of /import.bin"), "{error}");
        read(&import, "x", None, Settings::default())
    });
    assert!(error_of(results, Code::Truncated).message().starts_with("variable `x` of /import.bin: rank 1"));
}

#[test]
fn what_is_no_import_is_refused_by_name() {
    let (file, ..) = netcdf_file(&mut seeded(2), Version::Cdf1, 2, false);
    let disk = disk_with(&file);
    let netcdf = |disk: &Arc<dyn Disk>, names: &'static [&'static str]| {
        on_ranks(2, disk, |team| Import::netcdf(&team, &**disk, Path::new(PATH), names).map(drop))
    };
    let error = error_of(netcdf(&disk, &["fixed", "winds"]), Code::VariableNotFound);
    assert!(error.message().ends_with("/import.bin: the file has no variable `winds`"), "{error}");
    assert_eq!(error.hint(), Some("did you mean `wind`?"));
    let error = error_of(netcdf(&disk, &["pressure"]), Code::VariableNotFound);
    assert_eq!(error.hint(), Some("it has `fixed`, `scalar`, `bytes/odd`, `wind`, `time`"));
    let error = error_of(netcdf(&disk, &["wind", "wind"]), Code::Name);
    assert!(error.message().contains("two variables have the name `wind`"));

    let error = error_of(netcdf(&disk_with(b"\x89HDF\r\n\x1a\n and so on"), &["x"]), Code::FileFormat);
    assert!(
        error.message().contains("netCDF-4 file, which is HDF5") && error.hint().unwrap().contains("nccopy")
    );
    for damaged in [&b"CDF\x05\0\0"[..], b"", b"no netCDF", &file[..60]] {
        let error = error_of(netcdf(&disk_with(damaged), &["x"]), Code::Corrupt);
        assert!(error.message().starts_with("rank 0: /import.bin: "), "{error}");
    }
    let absent = on_ranks(3, &disk, |team| Import::netcdf(&team, &*disk, Path::new("/none.nc"), &[]));
    assert!(error_of(absent, Code::FileNotFound).message().contains("/none.nc"));
    let raw = |dtype: &'static str, shape: &'static [u64]| {
        on_ranks(2, &disk, move |team| {
            Import::raw(&team, &*disk_of(&team), Path::new(PATH), vec![variable("x", dtype, 0, shape)])
                .map(drop)
        })
    };
    fn disk_of(_: &Team) -> Arc<dyn Disk> {
        disk_with(&[0; 64])
    }
    let error = error_of(raw("<U5", &[1]), Code::Dtype);
    assert!(error.message().contains("variable `x`: elements of 20 bytes"), "{error}");
    assert!(error_of(raw("<f8", &[u64::MAX, 2]), Code::TooLarge).message().contains("variable `x`"));
    assert!(error_of(raw("<f8", &[1 << 61]), Code::TooLarge).message().contains("beyond byte 2^63"));
}

#[test]
fn calls_that_differ_between_ranks_are_conflicts() {
    let disk = disk_with(&[3; 100]);
    let results = on_ranks(3, &disk, |team| {
        let offset = u64::from(team.rank() == 2);
        Import::raw(&team, &*disk, Path::new(PATH), vec![variable("x", "|u1", offset, &[9])]).map(drop)
    });
    let error = error_of(results, Code::CollectiveMismatch);
    assert!(
        error.message().contains("`x` |u1 0 [9]; rank 2 gives /import.bin with `x` |u1 1 [9]"),
        "{error}"
    );

    let variables = [variable("x", "|u1", 0, &[9]), variable("y", "|u1", 9, &[9])];
    all(on_ranks(3, &disk, |team| {
        let import = Import::raw(&team, &*disk, Path::new(PATH), variables.to_vec())?;
        let name = if team.rank() == 1 { "y" } else { "x" };
        let view = import.view(name, None)?;
        let (mut bytes, element) = ([0; 3], import.variable(name)?.element(DType::U1)?);
        let mut into = BufferMut::new(&mut bytes, element, view.local_shape())?;
        let error = import.read(name, Ok((&view, &mut into)), Settings::default()).err().unwrap();
        assert_eq!(error.code(), Code::CollectiveMismatch);
        // All ranks report a name that is wrong on one; another type is reported before any read.
        let error = import.view(if team.rank() == 1 { "z" } else { "x" }, None).err().unwrap();
        assert_eq!(error.code(), Code::VariableNotFound);
        assert!(
            error.message().starts_with("rank 1: the import of /import.bin has no variable `z`"),
            "{error}"
        );
        let error = import.variable("x")?.element(DType::F8).err().unwrap();
        assert_eq!(error.message(), "variable `x` has elements of uint8, not float64");
        // The ranks continue.
        read(&import, "x", None, Settings::default()).map(drop)
    }));
}

#[test]
fn what_fails_on_one_rank_fails_on_all_and_a_later_import_works() {
    let (file, ..) = netcdf_file(&mut seeded(3), Version::Cdf5, 3, false);
    let disk = disk_with(&file);
    let import = |comm: Arc<dyn Comm>| {
        let team = Team::new(comm);
        let import = Import::netcdf(&team, &*disk, Path::new(PATH), &["wind", "fixed"])?;
        let bytes = read(&import, "wind", None, Settings::default())?;
        import.checksum()?;
        import.close()?;
        Ok(bytes)
    };
    let mut nth = 1;
    loop {
        let faults = Faults::step(2, nth);
        let results = threads::run(3, None, disk.clone(), faults.clone(), import);
        if !faults.struck() {
            all(results);
            break;
        }
        for result in results {
            let error = result.err().unwrap();
            assert!(
                error.kind() == ErrorKind::Unavailable && error.message().contains("rank 2: "),
                "{error}"
            );
        }
        nth += 1;
    }
    assert!(nth > 12, "{nth}");
}

#[test]
fn joined_parts_follow_one_another() {
    let disk = disk_with(&(0..100).collect::<Vec<u8>>());
    let got = all(on_ranks(4, &disk, |team| {
        let import = Import::raw(&team, &*disk, Path::new(PATH), vec![variable("x", "|u1", 0, &[20, 5])])?;
        let counts = [3, 0, 16, 1];
        let view = View::joined(counts[team.rank()]);
        let wide = View::joined(if team.rank() == 1 { 21 } else { 0 });
        assert!(import.view("x", Some(&wide)).err().unwrap().message().contains("joined view of 21"));
        read(&import, "x", Some(&view), Settings::default())
    }));
    assert_eq!(got.concat(), (0..100).collect::<Vec<u8>>());
}

/// Its numbers are those that netCDF4 reads.
#[test]
fn a_real_file_is_read() {
    let Some(path) = samples::sample("mesh/mug.e") else { return };
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::default());
    let got = all(on_ranks(3, &disk, |team| {
        let import = Import::netcdf(&team, &*disk, &path, &["vals_nod_var1", "connect1"])?;
        let values = read(&import, "vals_nod_var1", None, Settings::default())?;
        Ok((values, read(&import, "connect1", Some(&View::grid(&[3, 1])), Settings::default())?))
    }));
    let (values, corners): (Vec<_>, Vec<_>) = got.into_iter().unzip();
    let (values, corners) = (values.concat(), corners.concat());
    let values: Vec<f64> = values.as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect();
    let corners: Vec<i32> = corners.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect();
    assert_eq!((values.len(), corners.len()), (21 * 3774, 1716 * 8));
    assert_eq!((values[7 * 3774 + 100], values[20 * 3774 + 3773]), (0.9938173658110778, 0.9999993287354739));
    assert_eq!(corners[1715 * 8..], [3774, 3752, 3753, 3757, 3389, 3345, 3347, 3354]);
    assert_eq!(corners.iter().map(|corner| i64::from(*corner)).sum::<i64>(), 29_476_730);
}
