//! Decomposition files of ParallelIO: both forms, with any number of tasks on any number of ranks, give the maps that
//! were written.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::view::decomposition::Decomposition;
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{FileMode, Team};
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::{Header, NcType, Version, layout, write};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

const PATH: &str = "/decomp";

/// A file as PIOc_writemap writes it: counted from 1, with a trace of the call after the maps.
fn text(shape: &[u64], maps: &[Vec<i64>]) -> Vec<u8> {
    let mut text = format!("version 2001 npes {} ndims {} \n", maps.len(), shape.len());
    shape.iter().for_each(|len| text += &format!("{len} "));
    for (task, map) in maps.iter().enumerate() {
        text += &format!("\n{task} {}\n", map.len());
        map.iter().for_each(|entry| text += &format!("{} ", entry + 1));
    }
    (text + "\n\nObtained 2 stack frames.\n./program(main+0x12) [0x4005]\n").into_bytes()
}

/// A file as PIOc_write_nc_decomp writes it: counted from 0, with padded rows.
fn netcdf(shape: &[u64], maps: &[Vec<i64>], version: Version, ty: NcType) -> Vec<u8> {
    let room = maps.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut header = Header::new(version);
    header.attrs.push("array_order", NcType::Char, b"C\0");
    let dims = header.dims.push("dims", shape.len() as u64);
    let task = header.dims.push("task", maps.len() as u64);
    let element = header.dims.push("map_element", room as u64);
    header.vars.push("global_size", ty, &[dims]);
    header.vars.push("maplen", ty, &[task]);
    header.vars.push("map", ty, &[task, element]);
    layout::lay_out(&mut header, &layout::Alignment::default(), false, None).unwrap();
    let mut bytes = write::header(&header, false);
    let filled = |map: &Vec<i64>| {
        map.iter().copied().chain(std::iter::repeat(i64::from(-2147483647_i32))).take(room).collect()
    };
    let rows: Vec<Vec<i64>> = maps.iter().map(filled).collect();
    let columns: [Vec<i64>; 3] = [
        shape.iter().map(|len| *len as i64).collect(),
        maps.iter().map(|map| map.len() as i64).collect(),
        rows.concat(),
    ];
    for (var, column) in columns.iter().enumerate() {
        bytes.resize(header.vars.begins[var] as usize, 0);
        for number in column {
            match ty {
                NcType::Int => bytes.extend((*number as i32).to_be_bytes()),
                _ => bytes.extend(number.to_be_bytes()),
            }
        }
    }
    bytes
}

fn disk_of(bytes: &[u8]) -> Arc<dyn Disk> {
    let disk = SimWorld::memory().disk;
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    team.open("create", Path::new(PATH), FileMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
    disk
}

fn read(bytes: &[u8], ranks: usize) -> Vec<Result<Decomposition>> {
    threads::run(ranks, None, disk_of(bytes), Faults::none(), |comm| {
        Decomposition::read(&Team::new(comm), Path::new(PATH))
    })
}

fn random_maps(random: &mut Random) -> (Vec<u64>, Vec<Vec<i64>>) {
    let shape: Vec<u64> = (0..1 + random.below(3)).map(|_| 1 + random.below(12)).collect();
    let total: u64 = shape.iter().product();
    let tasks = 1 + random.below(9) as usize;
    let mut maps = vec![Vec::new(); tasks];
    for at in 0..total {
        maps[random.below(tasks as u64) as usize].push(if random.below(9) == 0 { -1 } else { at as i64 });
    }
    (shape, maps)
}

#[test]
fn maps_of_tasks_are_dealt_out_to_any_number_of_ranks() {
    for seed in seeds(60) {
        let mut random = seeded(seed);
        let (shape, maps) = random_maps(&mut random);
        let ranks = 1 + random.below(9) as usize;
        let forms = [
            text(&shape, &maps),
            netcdf(&shape, &maps, Version::Cdf1, NcType::Int),
            netcdf(&shape, &maps, Version::Cdf5, NcType::Int64),
        ];
        // numpy.array_split of the tasks.
        let (each, longer) = (maps.len() / ranks, maps.len() % ranks);
        let mut expected: Vec<Vec<i64>> = vec![Vec::new(); ranks];
        let mut tasks = maps.iter();
        for (rank, part) in expected.iter_mut().enumerate() {
            tasks.by_ref().take(each + usize::from(rank < longer)).for_each(|map| part.extend(map));
        }
        for form in &forms {
            for (found, expected) in read(form, ranks).into_iter().zip(&expected) {
                let found = found.unwrap();
                assert_eq!((&found.shape, found.tasks), (&shape, maps.len() as u64), "seed {seed}");
                assert_eq!(&*found.map, expected, "seed {seed}");
                let local = found.view().resolve(&shape, 0, 1).unwrap();
                assert_eq!(local.written().elements(), expected.iter().filter(|at| **at >= 0).count() as u64);
            }
        }
    }
}

#[test]
fn a_text_that_is_longer_than_a_piece_is_read_whole() {
    let maps: Vec<Vec<i64>> = (0..3).map(|task| (0..300_000).map(|n| n * 3 + task).collect()).collect();
    for (rank, found) in read(&text(&[900_000], &maps), 3).into_iter().enumerate() {
        assert!(*found.unwrap().map == maps[rank]);
    }
}

#[test]
fn what_is_wrong_is_named_on_all_ranks() {
    let maps = vec![vec![0, 1, -1], vec![2, 3]];
    let (good, table) = (text(&[4], &maps), netcdf(&[4], &maps, Version::Cdf5, NcType::Int));
    let cut = |bytes: &[u8], end: usize| bytes[..end].to_vec();
    let mut beyond = table.clone();
    let last = beyond.len() - 8;
    beyond[last..last + 4].copy_from_slice(&7i32.to_be_bytes());
    let mut renamed = table.clone();
    let place = renamed.windows(6).position(|part| part == b"maplen").unwrap();
    renamed[place..place + 6].copy_from_slice(b"maplem");
    for (bytes, kind, says) in [
        (cut(&good, 40), ErrorKind::Corrupt, "the file ends within the map of task 0 of 2"),
        (cut(&table, table.len() - 12), ErrorKind::Corrupt, "end beyond byte"),
        (beyond, ErrorKind::Corrupt, "`map[1, 1]` is 7, and the array has 4 elements"),
        (renamed, ErrorKind::Corrupt, "no variable `maplen`"),
        (b"\x89HDF\r\n\x1a\n".to_vec(), ErrorKind::Invalid, "not a decomposition file"),
        (Vec::new(), ErrorKind::Invalid, "not a decomposition file"),
    ] {
        for outcome in read(&bytes, 3) {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), kind, "{}", error.message());
            assert!(error.message().contains(says) && error.message().contains(PATH), "{}", error.message());
        }
    }
}
