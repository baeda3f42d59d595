//! Elements in and out: errors and the values after them, long runs, large and sparse files, and the number of file
//! calls for each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_array::container::access::fill::write_shared;
use fieldstone_array::container::access::{
    FillVar, Get, PastEnd, Put, Records, Selection, Target, get, get_all, put, put_all,
};
use fieldstone_array::container::{DimInfo, VarInfo};
use fieldstone_core::env::comm::layer::{CommLayer, FileLayer};
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::{Comm, CommFile, FileMode, Team, TeamFile, threads};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::{Attrs, NcType, Version};

fn var(ty: NcType, lens: &[u64], begin: u64, record_stride: u64) -> VarInfo {
    let dim = |(i, len): (usize, &u64)| DimInfo {
        id: i as u64,
        name: format!("d{i}"),
        len: *len,
        is_record: record_stride > 0 && i == 0,
    };
    let dims = lens.iter().enumerate().map(dim).collect();
    VarInfo { id: 0, name: "t".into(), ty, dims, attrs: Attrs::default(), begin, record_stride }
}

fn open(disk: Arc<dyn Disk>, path: &Path) -> TeamFile {
    Team::new(Arc::new(SingleComm::new(disk))).open("create", path, FileMode::CreateNew).unwrap()
}

fn in_memory() -> TeamFile {
    open(SimWorld::memory().disk, Path::new("/f.nc"))
}

fn target<'a>(file: &'a TeamFile, records: &'a Records) -> Target<'a> {
    Target { file, version: Version::Cdf5, records, filled: None, past_end: PastEnd::Zeros }
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn from_doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

/// A communicator that counts the calls to its files.
#[derive(Debug)]
struct Counted {
    comm: Arc<dyn Comm>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    written: AtomicU64,
}

impl CommLayer for Counted {
    fn below(&self) -> &dyn Comm {
        &*self.comm
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        Ok(Arc::new(CountedFile { file: self.comm.open(path, mode)?, counts: self.counts.clone() }))
    }
}

#[derive(Debug)]
struct CountedFile {
    file: Arc<dyn CommFile>,
    counts: Arc<Counts>,
}

impl FileLayer for CountedFile {
    fn below(&self) -> &dyn CommFile {
        &*self.file
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.counts.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.file.write_at(data, offset)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(buffer, offset)
    }
    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        self.counts.writes.fetch_add(parts.len() as u64, Ordering::Relaxed);
        self.file.write_all(parts)
    }
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        self.counts.reads.fetch_add(parts.len() as u64, Ordering::Relaxed);
        self.file.read_all(parts)
    }
}

fn counted() -> (TeamFile, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let comm = Arc::new(SingleComm::new(SimWorld::memory().disk));
    let comm = Arc::new(Counted { comm, counts: counts.clone() });
    (Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew).unwrap(), counts)
}

// ---- errors, and the values after them

#[test]
fn values_that_do_not_fit_are_told_and_replaced_and_all_others_converted() {
    let (file, records) = (in_memory(), Records::new(0, Version::Cdf5));
    let mut short = var(NcType::Short, &[2, 3], 0, 0);
    short.attrs.push("_FillValue", NcType::Short, &[0, 9]);
    let data = doubles(&[1.0, 2.9, 1e9, f64::NAN, -3.0, 40000.0]);
    let selection = Selection::all(&[2, 3]);
    let wrong = Put { var: &short, selection: &selection, data: &data, ty: NcType::Double };
    let error = put(&target(&file, &records), &[wrong]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.message(),
        "variable `t`: element 2 of the box, 1000000000, does not fit (short in the file, double in memory)"
    );
    let mut bytes = [0; 12];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [0, 1, 0, 2, 0, 9, 0, 9, 255, 253, 0, 9]);

    let mut into = [0; 6];
    let read = Get { var: &short, selection: &selection, into: &mut into, ty: NcType::UByte };
    let error = get(&target(&file, &records), &mut [read]).unwrap_err();
    assert!(error.message().contains("element 4 of the box, -3, does not fit"), "{error}");
    assert_eq!(into, [1, 2, 9, 9, 255, 9]);
}

#[test]
fn wrong_requests_are_named_and_nothing_of_the_call_is_written() {
    let (file, records) = (in_memory(), Records::new(2, Version::Cdf1));
    let fixed = var(NcType::Int, &[4], 0, 0);
    let text = var(NcType::Char, &[4], 16, 0);
    let record = var(NcType::Int, &[0, 3], 20, 12);
    let target = Target { version: Version::Cdf1, ..target(&file, &records) };
    let whole = Selection::all(&[4]);
    let good = Put { var: &fixed, selection: &whole, data: &[1; 16], ty: NcType::Int };
    let try_put = |var: &VarInfo, selection: &Selection, data: &[u8], ty| {
        let error = put(&target, &[good, Put { var, selection, data, ty }]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.message().to_owned()
    };
    assert_eq!(
        try_put(&fixed, &whole, &[1; 15], NcType::Int),
        "variable `t`: the box has 4 elements of 4 bytes in memory (int), but 15 bytes are given"
    );
    assert!(try_put(&text, &whole, &[1; 4], NcType::Byte).contains("text and numbers"));
    assert!(
        try_put(&fixed, &Selection::of(&[1], &[4]), &[1; 16], NcType::Int).contains("index 4 is outside")
    );
    let far = Selection::of(&[u64::from(u32::MAX) - 1, 0], &[1, 3]);
    assert_eq!(
        try_put(&record, &far, &[1; 12], NcType::Int),
        "variable `t`: 4294967295 records, but a CDF-1 file has at most 4294967294"
    );
    assert_eq!(file.len().unwrap(), 0);
    assert_eq!(records.get(), 2);

    let mut into = [0; 24];
    let outside = Selection::of(&[1, 0], &[2, 3]);
    let read = Get { var: &record, selection: &outside, into: &mut into, ty: NcType::Int };
    let error = get(&target, &mut [read]).unwrap_err();
    assert_eq!(error.message(), "variable `t`, dimension `d0`: index 2 is outside, there are 2 records");
}

#[test]
fn a_file_that_was_cut_is_corrupt_and_one_being_written_has_zeros() {
    let records = Records::new(0, Version::Cdf5);
    // One variable for each way of reading: joined, and directly to its destination.
    for (len, there) in [(100u64, 40u64), (100_000, 99_990)] {
        let results = threads::run(2, None, SimWorld::memory().disk, threads::Faults::none(), |comm| {
            let file = Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew)?;
            let var = var(NcType::Int, &[len], 0, 0);
            file.set_len("len", Ok(there * 4 + 2))?;
            let selection = Selection::all(&[len]);
            for past_end in [PastEnd::Zeros, PastEnd::Corrupt] {
                let target = Target { past_end, ..target(&file, &records) };
                for collective in [false, true] {
                    let mut into = vec![7; len as usize * 4];
                    let mut gets =
                        [Get { var: &var, selection: &selection, into: &mut into, ty: NcType::Int }];
                    let outcome =
                        if collective { get_all(&target, Ok(&mut gets)) } else { get(&target, &mut gets) };
                    file.team().barrier("read")?;
                    if past_end == PastEnd::Zeros {
                        outcome?;
                        assert!(into.iter().all(|byte| *byte == 0));
                        continue;
                    }
                    let error = outcome.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    let (end, needed) = (there * 4 + 2, len * 4);
                    let wanted = format!(
                        "variable `t`: the file ends at byte {end}, but the requested elements end at byte {needed}"
                    );
                    assert!(error.message().ends_with(&wanted), "{error}");
                }
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn one_of_several_ranks_does_not_add_records_where_they_are_filled() {
    let results = threads::run(2, Some(1), SimWorld::memory().disk, threads::Faults::none(), |comm| {
        let file = Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew)?;
        let records = Records::new(0, Version::Cdf5);
        let record = var(NcType::Int, &[0], 0, 4);
        let filled = [FillVar::of(&record)?];
        let mine = if file.team().rank() == 0 { &filled[..] } else { &[] };
        let target = Target { filled: Some(mine), ..target(&file, &records) };
        let selection = Selection::element(&[3]);
        let one = [Put { var: &record, selection: &selection, data: &5i32.to_ne_bytes(), ty: NcType::Int }];
        let error = put(&target, &one).unwrap_err();
        assert!(error.message().contains("from 0 to 4 records"), "{error}");
        put_all(&target, Ok(if file.team().rank() == 1 { &one } else { &[] }))?;
        put(&target, &one)?; // now it exists
        let mut into = [0; 16];
        let all = Selection::all(&[4]);
        get_all(&target, Ok(&mut [Get { var: &record, selection: &all, into: &mut into, ty: NcType::Int }]))?;
        Ok(into)
    });
    for result in results {
        let values: Vec<i32> =
            result.unwrap().chunks(4).map(|c| i32::from_ne_bytes(c.try_into().unwrap())).collect();
        assert_eq!(values, [-2147483647, -2147483647, -2147483647, 5]);
    }
}

#[test]
fn an_error_of_one_rank_is_everybodys_and_the_file_goes_on() {
    for wrong in 0..4 {
        let results = threads::run(4, Some(9), SimWorld::memory().disk, threads::Faults::none(), |comm| {
            let file = Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew)?;
            let (records, me) = (Records::new(0, Version::Cdf5), file.team().rank());
            let target = target(&file, &records);
            let fixed = var(NcType::Int, &[4], 0, 0);
            let at = |i: usize| Selection::element(&[i as u64]);
            let value = (me as i32).to_ne_bytes();
            let (own, outside) = (at(me), at(me + 4));
            let chosen = if me == wrong { &outside } else { &own };
            let request = |selection| [Put { var: &fixed, selection, data: &value, ty: NcType::Int }];
            let error = put_all(&target, Ok(&request(chosen))).unwrap_err();
            let named = format!("rank {wrong}: variable `t`, dimension `d0`: index {}", wrong + 4);
            assert!(error.message().starts_with(&named), "{error}");
            put_all(&target, Ok(&request(&own)))?;
            let (mut into, mut all) = ([0; 4], [0; 16]);
            let mut gets = [Get { var: &fixed, selection: chosen, into: &mut into, ty: NcType::Int }];
            let error = get_all(&target, Ok(&mut gets)).unwrap_err();
            assert!(error.message().starts_with(&named), "{error}");
            let whole = Selection::all(&[4]);
            let gets = [Get { var: &fixed, selection: &whole, into: &mut all, ty: NcType::Int }];
            get_all(&target, Ok(&mut { gets }))?;
            Ok(all)
        });
        for result in results {
            assert_eq!(result.unwrap()[8], 2);
        }
    }
}

/// Fills, adds records and reads them, all ranks together, and continues after an error.
fn collective_calls(comm: Arc<dyn Comm>) -> Result<Vec<u8>> {
    let file = Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew)?;
    let (records, team) = (Records::new(0, Version::Cdf5), file.team());
    let record = var(NcType::Int, &[0, 2], 0, 12);
    let filled = [FillVar::of(&record)?, FillVar::of(&var(NcType::Byte, &[0, 3], 8, 12))?];
    let mine = if team.rank() == 0 { &filled[..] } else { &[] };
    let target = Target { filled: Some(mine), ..target(&file, &records) };
    let own = Selection::of(&[team.rank() as u64, 0], &[1, 2]);
    let data = [7; 8];
    put_all(&target, Ok(&[Put { var: &record, selection: &own, data: &data, ty: NcType::Int }]))?;
    let all = Selection::all(&[team.size() as u64, 2]);
    let mut into = vec![0; team.size() * 8];
    get_all(&target, Ok(&mut [Get { var: &record, selection: &all, into: &mut into, ty: NcType::Int }]))?;
    Ok(into)
}

#[test]
fn whatever_fails_on_one_rank_ends_the_call_on_all() {
    let mut failed = 0;
    for rank in 0..3 {
        for nth in 1.. {
            let mut struck = false;
            for (fault, names) in
                [(threads::Faults::step(rank, nth), true), (threads::Faults::death(rank, nth), false)]
            {
                let disk = SimWorld::memory().disk;
                let seed = Some(nth * 31 + rank as u64);
                let results = threads::run(3, seed, disk, fault.clone(), collective_calls);
                struck |= fault.struck();
                for result in results {
                    match result {
                        Ok(values) => assert!(!(names && fault.struck()) && values == [7; 24]),
                        Err(error) => {
                            failed += 1;
                            assert!(
                                fault.struck() && error.message().contains(&format!("rank {rank}")),
                                "{error}"
                            );
                        }
                    }
                }
            }
            if !struck {
                assert!(nth > 10, "{nth}");
                break;
            }
        }
    }
    assert!(failed > 100, "{failed}");
}

// ---- filling

#[test]
fn ranks_fill_equal_parts_whoever_defined_the_variables() {
    const LEN: usize = 3_200_004;
    for ranks in [2, 3, 8] {
        let results =
            threads::run(ranks, Some(5), SimWorld::memory().disk, threads::Faults::none(), |comm| {
                let counts = Arc::new(Counts::default());
                let comm = Arc::new(Counted { comm, counts: counts.clone() });
                let file = Team::new(comm).open("create", Path::new("/f.nc"), FileMode::CreateNew)?;
                let mut jobs = Vec::new();
                if file.team().rank() == 1 {
                    // After four bytes, a chunk of the written data ends inside a double.
                    jobs.extend(FillVar::of(&var(NcType::Byte, &[3], 0, 0))?.job());
                    jobs.extend(FillVar::of(&var(NcType::Double, &[400_000], 4, 0))?.job());
                    jobs.extend(FillVar::of(&var(NcType::Short, &[0], LEN as u64, 0))?.job());
                }
                write_shared(&file, Ok(jobs))?;
                let mut bytes = vec![0; LEN];
                assert_eq!(file.read_at(&mut bytes, 0)?, LEN);
                assert!(bytes[4..].chunks(8).all(|value| value == [0x47, 0x9e, 0, 0, 0, 0, 0, 0]));
                assert_eq!(&bytes[..4], [0x81; 4]);
                assert_eq!(file.len()?, LEN as u64);
                Ok(counts.written.load(Ordering::Relaxed))
            });
        for written in results.into_iter().map(|result| result.unwrap()) {
            assert!(written.abs_diff((LEN / ranks) as u64) <= 16, "{ranks}: {written}");
        }
    }
}

// ---- long runs, large files

/// Values that differ from element to element.
fn pattern(elements: usize) -> Vec<f64> {
    (0..elements).map(|i| (i % 30_011) as f64 - 15_000.0).collect()
}

#[test]
fn long_runs_on_a_real_disk_by_two_threads() {
    let folder = tempfile::tempdir().unwrap();
    let file = open(Env::real().disk, &folder.path().join("f.nc"));
    assert!(file.is_concurrent());
    let records = Records::new(0, Version::Cdf5);
    let target = target(&file, &records);
    let elements = (10 << 20) / 2 + 12_345;
    let values = pattern(elements);
    let data = doubles(&values);
    // Rows of a box that leaves out a column are long runs, too.
    let columns = (elements / 3) as u64;
    let whole = Selection::all(&[elements as u64]);
    for ty in [NcType::Double, NcType::Short, NcType::Int64] {
        let long = var(ty, &[elements as u64], 40, 0);
        let copy = data.clone();
        put(&target, &[Put { var: &long, selection: &whole, data: &data, ty: NcType::Double }]).unwrap();
        assert!(copy == data);
        let mut last = [0; 8];
        let end = 40 + elements as u64 * ty.size() as u64;
        file.read_at(&mut last[..ty.size()], end - ty.size() as u64).unwrap();
        let expected = values[elements - 1];
        match ty {
            NcType::Double => assert_eq!(f64::from_be_bytes(last), expected),
            NcType::Short => assert_eq!(f64::from(i16::from_be_bytes([last[0], last[1]])), expected),
            _ => assert_eq!(i64::from_be_bytes(last) as f64, expected),
        }
        let mut into = vec![1; data.len()];
        get(&target, &mut [Get { var: &long, selection: &whole, into: &mut into, ty: NcType::Double }])
            .unwrap();
        assert!(from_doubles(&into) == values, "{ty:?}");

        let table = var(ty, &[3, columns], 40, 0);
        let inner = Selection::of(&[0, 1], &[3, columns - 1]);
        let mut into = vec![1; 3 * (columns as usize - 1) * 8];
        get(&target, &mut [Get { var: &table, selection: &inner, into: &mut into, ty: NcType::Double }])
            .unwrap();
        let rows = values.chunks(columns as usize).take(3).flat_map(|row| row[1..].to_vec());
        assert!(rows.eq(from_doubles(&into)), "{ty:?}");
    }
    // The first misfit in memory order, whichever thread finds one first.
    let mut data = values;
    (data[4_000_000], data[4_600_000]) = (1e10, 2e10);
    let long = var(NcType::Short, &[elements as u64], 40, 0);
    let data = doubles(&data);
    let error =
        put(&target, &[Put { var: &long, selection: &whole, data: &data, ty: NcType::Double }]).unwrap_err();
    assert!(error.message().contains("element 4000000 of the box, 10000000000, does"), "{error}");
}

#[test]
fn variables_beyond_four_gibibytes_in_a_sparse_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.nc");
    let file = open(Env::real().disk, &path);
    let records = Records::new(0, Version::Cdf5);
    let target = target(&file, &records);
    let large = var(NcType::Float, &[3, 1 << 31], 1024, 0);
    let record = var(NcType::Int, &[0, 5], (3 << 33) + 1024, 6 << 30);
    let corner = Selection::of(&[2, (1 << 31) - 3], &[1, 3]);
    let spread = Selection::of(&[0, 7], &[3, 2]).strided(&[1, 1 << 30]);
    let late = Selection::of(&[0, 1], &[3, 2]).strided(&[2, 3]);
    let data: Vec<u8> = (1..=6).flat_map(|i: i32| (i as f32).to_ne_bytes()).collect();
    let puts = |ty| {
        [
            Put { var: &large, selection: &corner, data: &data[..12], ty },
            Put { var: &large, selection: &spread, data: &data, ty },
            Put { var: &record, selection: &late, data: &data, ty },
        ]
    };
    put(&target, &puts(NcType::Float)).unwrap();
    assert_eq!(records.get(), 5);
    let mut two = [0; 4];
    file.read_at(&mut two, 1024 + 4 * (7 + (1 << 30))).unwrap();
    assert_eq!(f32::from_be_bytes(two), 2.0);
    file.read_at(&mut two, (3 << 33) + 1024 + 4 * (6 << 30) + 16).unwrap();
    assert_eq!(i32::from_be_bytes(two), 6);
    let (mut a, mut b, mut c) = ([0; 12], [0; 24], [0; 24]);
    let ty = NcType::Float;
    let mut gets = [
        Get { var: &large, selection: &corner, into: &mut a, ty },
        Get { var: &large, selection: &spread, into: &mut b, ty },
        Get { var: &record, selection: &late, into: &mut c, ty },
    ];
    get(&target, &mut gets).unwrap();
    assert_eq!((&a[..], &b[..], &c[..]), (&data[..12], &data[..], &data[..]));
}

#[test]
fn a_thousand_dimensions_in_and_out() {
    let (file, records) = (in_memory(), Records::new(0, Version::Cdf5));
    let mut lens = vec![1; 1000];
    (lens[0], lens[400], lens[999]) = (3, 4, 5);
    let many = var(NcType::Short, &lens, 0, 0);
    let data: Vec<u8> = (0..60i16).flat_map(i16::to_ne_bytes).collect();
    let whole = Selection::all(&lens);
    put(&target(&file, &records), &[Put { var: &many, selection: &whole, data: &data, ty: NcType::Short }])
        .unwrap();
    let mut count = lens.clone();
    (count[0], count[400]) = (2, 2);
    let mut stride = vec![1; 1000];
    (stride[0], stride[400]) = (2, 3);
    let some = Selection::of(&vec![0; 1000], &count).strided(&stride);
    let mut into = [0; 40];
    get(
        &target(&file, &records),
        &mut [Get { var: &many, selection: &some, into: &mut into, ty: NcType::Short }],
    )
    .unwrap();
    let found: Vec<i16> = into.chunks(2).map(|c| i16::from_ne_bytes([c[0], c[1]])).collect();
    let expected: Vec<i16> = [0, 15, 40, 55].iter().flat_map(|first| *first..*first + 5).collect();
    assert_eq!(found, expected);
}

// ---- number of calls

#[test]
fn many_small_requests_become_few_calls() {
    let (file, counts) = counted();
    let records = Records::new(0, Version::Cdf5);
    let target = target(&file, &records);
    let count = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);

    // 1,000 adjacent variables, in another order than in the file.
    let vars: Vec<VarInfo> = (0..1000).map(|i| var(NcType::Int, &[10], i * 40, 0)).collect();
    let whole = Selection::all(&[10]);
    let data = [3; 40];
    let order = (0..1000).map(|i| &vars[i * 7 % 1000]);
    let puts: Vec<_> =
        order.map(|var| Put { var, selection: &whole, data: &data, ty: NcType::Int }).collect();
    put(&target, &puts).unwrap();
    assert_eq!((count(&counts.writes), count(&counts.reads)), (1, 0));
    let mut into = vec![[0; 40]; 1000];
    let gets = vars.iter().zip(&mut into);
    let mut gets: Vec<_> =
        gets.map(|(var, into)| Get { var, selection: &whole, into, ty: NcType::Int }).collect();
    get(&target, &mut gets).unwrap();
    assert_eq!((count(&counts.writes), count(&counts.reads)), (0, 1));
    assert!(into.iter().all(|values| *values == data));

    // Every second element, written and read through the span that contains them.
    let long = var(NcType::Int, &[100_000], 0, 0);
    let half = Selection::of(&[0], &[50_000]).strided(&[2]);
    let data = vec![9; 200_000];
    put(&target, &[Put { var: &long, selection: &half, data: &data, ty: NcType::Int }]).unwrap();
    assert_eq!((count(&counts.writes), count(&counts.reads)), (1, 1));
    let mut into = vec![0; 400_000];
    let all = Selection::all(&[100_000]);
    get(&target, &mut [Get { var: &long, selection: &all, into: &mut into, ty: NcType::Int }]).unwrap();
    let (pairs, rest) = into.as_chunks::<8>();
    assert!(rest.is_empty());
    assert!(pairs[..5_000].iter().all(|pair| *pair == [9, 9, 9, 9, 3, 3, 3, 3]));
    assert!(pairs[5_000..].iter().all(|pair| *pair == [9, 9, 9, 9, 0, 0, 0, 0]));
    count(&counts.reads);

    // Elements that are far apart are read one by one, instead of a gigabyte for two numbers.
    let wide = var(NcType::Int, &[2, 1 << 28], 0, 0);
    let column = Selection::of(&[0, 5], &[2, 1]);
    let mut into = [0; 8];
    get(&target, &mut [Get { var: &wide, selection: &column, into: &mut into, ty: NcType::Int }]).unwrap();
    assert_eq!(count(&counts.reads), 2);
}
