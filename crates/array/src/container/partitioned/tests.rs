//! Definitions made by separate ranks are all found in one file, whatever the number of ranks; damage is reported,
//! never trusted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::{FileMode, Team, TeamFile, threads};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::netcdf::layout::Alignment;
use fieldstone_format::netcdf::{NcType, Version};

use super::finished;
use super::reader::Reader;
use crate::container::define::Definitions;
use crate::container::enddef::{EnddefOptions, EnddefOutcome, enddef, plan};
use crate::container::model::{Counts, Format, Metadata, Object, PathTotals, Strategy, VarInfo, total_of};

const FILE: &str = "/c.fsp";

/// Rank `rank` of `ranks` defines its contiguous part of one sequence of events.
fn define(events: std::ops::Range<usize>) -> Result<Definitions> {
    let mut definitions = Definitions::new(Format::Partitioned);
    for event in events {
        let path = format!("event_{event}");
        definitions.def_dim(&format!("{path}/hits"), Some(event as u64 % 7 + 1))?;
        definitions.put_att(
            None,
            &format!("{path}/weight"),
            NcType::Double,
            &(event as f64).to_be_bytes(),
        )?;
        for (plane, ty) in [("u", NcType::Float), ("v", NcType::Short), ("y", NcType::Byte)] {
            let var = definitions.def_var(&format!("{path}/{plane}/charge"), ty, &["hits"])?;
            definitions.put_att(Some(var), "plane", NcType::Char, plane.as_bytes())?;
        }
        definitions.def_var(&format!("{path}/id"), NcType::Int64, &[])?;
    }
    Ok(definitions)
}

fn write_one(file: &TeamFile, definitions: &mut Definitions) -> Result<EnddefOutcome> {
    let env = SimWorld::memory();
    enddef(file, definitions, &EnddefOptions::new(Strategy::Partitioned, &*env.clock))
}

/// Does what the container does at the end.
fn publish(file: &TeamFile, numrecs: u64) -> Result<()> {
    let head = finished(numrecs);
    file.write_at(&head[4..], 4)?;
    file.write_at(&head[..4], 0)
}

/// A file of `events` events, defined by `ranks` ranks.
fn file_of(disk: &Arc<dyn Disk>, ranks: usize, events: usize) {
    let results = threads::run(ranks, None, disk.clone(), threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
        let part = |rank: usize| events * rank / ranks;
        let mut definitions = define(part(team.rank())..part(team.rank() + 1))?;
        write_one(&file, &mut definitions)?;
        team.barrier("written")?;
        if team.rank() == 0 {
            publish(&file, 0)?;
        }
        team.barrier("published")
    });
    results.into_iter().for_each(|result| result.unwrap());
}

fn open(disk: &Arc<dyn Disk>) -> Result<Reader> {
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    Reader::open(team.open("open", Path::new(FILE), FileMode::Read)?)
}

/// Everything a reader returns, except the positions of data.
fn all(reader: &Reader) -> Result<(Vec<VarInfo>, String)> {
    let mut vars = reader.vars(0, usize::MAX)?;
    let first = reader.head().data_begin;
    vars.iter_mut().for_each(|var| var.begin -= first);
    let rest = format!("{:?} {:?} {:?}", reader.counts()?, reader.dims(0, usize::MAX)?, reader.attrs()?);
    Ok((vars, format!("{rest} {:?}", reader.below("")?)))
}

#[test]
fn any_number_of_ranks_makes_the_same_container() {
    let mut wanted = None;
    for ranks in [1, 2, 3, 7, 16, 64] {
        let disk = SimWorld::memory().disk;
        file_of(&disk, ranks, 90);
        let reader = open(&disk).unwrap();
        assert_eq!(reader.table().writers.len(), ranks);
        let found = all(&reader).unwrap();
        assert_eq!(wanted.get_or_insert_with(|| found.clone()), &found, "{ranks} ranks");
        for var in reader.vars(0, usize::MAX).unwrap() {
            assert_eq!(reader.find_var(&var.name).unwrap(), Some(var));
        }
        for dim in reader.dims(0, usize::MAX).unwrap() {
            assert_eq!(reader.find_dim(&dim.name).unwrap(), Some(dim));
        }
        for absent in ["charge", "event_7", "event_7/hits", "event_90/id", "event_7/u/charge/x", ""] {
            assert_eq!(reader.find_var(absent).unwrap(), None, "{absent}");
        }
        assert_eq!(reader.find_dim("event_7/id").unwrap(), None);
        let totals = reader.totals("event_3").unwrap();
        assert_eq!((totals.dims, totals.attrs, totals.vars), (1, 1, 1));
        assert_eq!(reader.totals("event_3/u").unwrap().vars, 1);
        assert_eq!(reader.totals("nowhere").unwrap(), Default::default());
        assert_eq!(reader.head().paths, 90 * 4);
    }
}

/// Begins are those of a CDF-5 file with the same definitions.
#[test]
fn data_lie_as_in_cdf5() {
    let disk = SimWorld::memory().disk;
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    let file = team.open("create", Path::new(FILE), FileMode::CreateNew).unwrap();
    for lone in [false, true] {
        let mut definitions = Definitions::new(Format::Partitioned);
        definitions.def_dim("x", Some(5)).unwrap();
        definitions.def_dim("time", None).unwrap();
        for (i, ty) in NcType::ALL.into_iter().enumerate() {
            definitions.def_var(&format!("fixed_{i}"), ty, &["x"]).unwrap();
            if !lone || i == 2 {
                definitions.def_var(&format!("record_{i}"), ty, &["time", "x"]).unwrap();
            }
        }
        let written = write_one(&file, &mut definitions).unwrap();
        publish(&file, 2).unwrap();
        let mut header = definitions.header().clone();
        header.version = Version::Cdf5;
        let layout =
            fieldstone_format::netcdf::layout::lay_out(&mut header, &Alignment::default(), false, None);
        let layout = layout.unwrap();
        assert_eq!(written.layout.record_size, layout.record_size);
        let reader = open(&disk).unwrap();
        assert_eq!(reader.numrecs().unwrap(), 2);
        for (i, var) in reader.vars(0, 100).unwrap().iter().enumerate() {
            let base = if var.is_record() { layout.record_begin } else { layout.data_begin };
            let own = if var.is_record() { written.layout.record_begin } else { written.layout.data_begin };
            assert_eq!(var.begin - own, header.vars.begins[i] - base, "{}", var.name);
            assert_eq!(var.begin, definitions.header().vars.begins[i]);
            assert_eq!(var.record_stride, if var.is_record() { layout.record_size } else { 0 });
            assert_eq!(var.shape(), if var.is_record() { vec![2, 5] } else { vec![5] });
        }
    }
}

#[test]
fn one_of_very_many_is_found_by_a_few_reads() {
    let disk = SimWorld::memory().disk;
    let mut definitions = Definitions::new(Format::Partitioned);
    for i in 0..60_000 {
        definitions.def_dim(&format!("a_dimension_with_a_long_name_{i}"), Some(i % 100 + 1)).unwrap();
        let dim = definitions.find_dim(&format!("a_dimension_with_a_long_name_{i}")).unwrap();
        definitions.def_var_by_ids(&format!("variable_{i}"), NcType::Float, &[dim]).unwrap();
    }
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    let file = team.open("create", Path::new(FILE), FileMode::CreateNew).unwrap();
    write_one(&file, &mut definitions).unwrap();
    publish(&file, 0).unwrap();
    let reader = open(&disk).unwrap();
    assert!(reader.table().blocks.len() > 20);
    let mut most = 0;
    for i in (0..60_000).step_by(997) {
        let fresh = open(&disk).unwrap();
        let var = fresh.find_var(&format!("variable_{i}")).unwrap().unwrap();
        assert_eq!((var.id, var.dims[0].len), (i, i % 100 + 1));
        assert!(fresh.memory() < 1 << 20);
        most = most.max(fresh.reads());
    }
    assert!(most <= 7, "{most} reads");
    // Reading everything in order reads each block once, and keeps only a few.
    let before = reader.reads();
    for from in (0..60_000).step_by(1000) {
        assert_eq!(reader.vars(from, 1000).unwrap().len(), 1000);
        assert!(reader.memory() < 5 << 20);
    }
    assert_eq!(reader.reads() - before, reader.table().blocks.len() as u64);
}

#[test]
fn every_flipped_byte_is_an_error_or_changes_nothing() {
    let world = SimWorld::new(1);
    let disk = world.process("host").disk;
    file_of(&disk, 2, 4);
    let path = Path::new(FILE);
    let sound = world.read(path).unwrap();
    let reader = open(&disk).unwrap();
    let (wanted, end) = (all(&reader).unwrap(), reader.head().data_begin);
    let mut silent = 0u64;
    for at in 0..end {
        let mask = [0x01, 0x80, 0xff][at as usize % 3];
        world.flip(path, at, mask).unwrap();
        let found = open(&disk).and_then(|reader| {
            for var in &wanted.0 {
                let found = reader.find_var(&var.name)?;
                assert_eq!(found.map(|found| found.id), Some(var.id), "byte {at}: {}", var.name);
            }
            assert_eq!(reader.find_var("event_1/none")?, None);
            all(&reader)
        });
        match found {
            Ok(found) => {
                assert_eq!(found, wanted, "byte {at} changed by {mask:#x}");
                silent += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), fieldstone_core::ErrorKind::Corrupt, "byte {at}: {error}");
            }
        }
        world.flip(path, at, mask).unwrap();
    }
    assert_eq!(world.read(path).unwrap(), sound);
    assert!(silent < end, "nothing was refused");
    for len in 0..end {
        world.truncate(path, len).unwrap();
        let found = open(&disk).and_then(|reader| all(&reader));
        if let Ok(found) = found {
            assert_eq!(found, wanted);
        }
        world.overwrite(path, &sound).unwrap();
    }
}

#[test]
fn a_damaged_block_is_named_and_the_rest_stays_readable() {
    let world = SimWorld::new(2);
    let disk = world.process("host").disk;
    file_of(&disk, 3, 9);
    let block = open(&disk).unwrap().table().blocks[1];
    world.flip(Path::new(FILE), block.offset + 30, 0x10).unwrap();
    let reader = open(&disk).unwrap();
    assert!(reader.find_var("event_1/id").unwrap().is_some());
    assert!(reader.find_var("event_8/u/charge").unwrap().is_some());
    let error = reader.find_var("event_4/id").unwrap_err();
    assert!(error.message().contains("metadata block 1") && error.message().contains("event_3"), "{error}");
    assert!(error.hint().is_some());
}

/// A damaged name index makes a search slow, not wrong.
#[test]
fn without_its_indexes_a_name_is_found_all_the_same() {
    let world = SimWorld::new(3);
    let disk = world.process("host").disk;
    file_of(&disk, 3, 9);
    let reader = open(&disk).unwrap();
    let wanted = reader.vars(0, usize::MAX).unwrap();
    for page in 0..reader.head().paths_pages {
        world.flip(Path::new(FILE), reader.head().paths_offset + page * 4096 + 30, 1).unwrap();
    }
    for writer in &reader.table().writers {
        world.flip(Path::new(FILE), writer.names_offset + 10, 1).unwrap();
    }
    let reader = open(&disk).unwrap();
    assert!(reader.totals("event_1").unwrap_err().message().contains("path index at offset"));
    for var in wanted {
        assert_eq!(reader.find_var(&var.name).unwrap(), Some(var));
    }
    assert_eq!(reader.find_var("event_1/none").unwrap(), None);
}

#[test]
fn an_unfinished_file_is_not_opened() {
    let disk = SimWorld::memory().disk;
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    let file = team.open("create", Path::new(FILE), FileMode::CreateNew).unwrap();
    write_one(&file, &mut define(0..3).unwrap()).unwrap();
    assert!(open(&disk).unwrap_err().message().contains("never finished"));
    publish(&file, 0).unwrap();
    assert_eq!(open(&disk).unwrap().counts().unwrap().vars, 12);
}

#[test]
fn ranks_with_other_record_dimensions_learn_so() {
    let disk = SimWorld::memory().disk;
    let results = threads::run(3, None, disk, threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
        let mut definitions = Definitions::new(Format::Partitioned);
        if team.rank() > 0 {
            definitions.def_dim(&format!("rank_{}/time", team.rank()), None)?;
        }
        write_one(&file, &mut definitions)
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), fieldstone_core::ErrorKind::Conflict);
        let message = error.message();
        assert!(
            message.contains("rank 1 defines `rank_1/time`") && message.contains("rank_2/time"),
            "{message}"
        );
    }
}

/// Definitions of ranks that each have a part of their own, and the same objects under shared paths.
fn shared_definitions(rank: usize, other: Option<usize>) -> Result<Definitions> {
    let mut definitions = Definitions::new(Format::Partitioned);
    definitions.def_dim(&format!("rank_{rank}/own"), Some(rank as u64 + 1))?;
    definitions.def_dim("run/x", Some(10))?;
    let len = if other == Some(rank) { 6 } else { 5 };
    definitions.def_dim("run/y", Some(len))?;
    definitions.def_dim("time", None)?;
    definitions.put_att(None, "run/title", NcType::Char, b"shared")?;
    let var = definitions.def_var("run/grid", NcType::Double, &["time", "x", "y"])?;
    definitions.put_att(Some(var), "units", NcType::Char, b"m")?;
    definitions.def_var(&format!("run/of_rank_{rank}"), NcType::Int, &["y"])?;
    definitions.def_var(&format!("rank_{rank}/v"), NcType::Int, &["own"])?;
    Ok(definitions)
}

#[test]
fn what_ranks_share_is_written_once_and_known_to_all() {
    // With 140 ranks, the entries of a shared path take more than a page of the path index.
    for ranks in [1, 2, 5, 140] {
        let disk = SimWorld::memory().disk;
        let results = threads::run(ranks, None, disk.clone(), threads::Faults::none(), |comm| {
            let team = Team::new(comm);
            let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
            let mut definitions = shared_definitions(team.rank(), None)?;
            let defined = write_one(&file, &mut definitions)?;
            let reader = defined.reader.clone().unwrap();
            let header = definitions.header();
            for (i, id) in defined.var_ids.iter().enumerate() {
                let var = reader.vars(*id, 1)?.remove(0);
                assert_eq!(var.name, header.vars.names.get(i));
                assert_eq!(reader.find_var(&var.name)?, Some(var.clone()));
                let dims: Vec<u64> = var.dims.iter().map(|dim| dim.id).collect();
                let own = header.vars.get(i).dims().iter().map(|dim| defined.dim_ids[*dim as usize]);
                assert_eq!(dims, own.collect::<Vec<_>>(), "{}", var.name);
                let begin = header.vars.get(i).begin();
                assert!(begin == var.begin || (begin == 0 && team.rank() > 0));
            }
            if team.rank() == 0 {
                publish(&file, 2)?;
            }
            Ok(defined.report)
        });
        let reports: Vec<_> = results.into_iter().map(|result| result.unwrap()).collect();
        let reader = open(&disk).unwrap();
        let counts = reader.counts().unwrap();
        let ranks = ranks as u64;
        assert_eq!((counts.dims, counts.attrs, counts.vars), (3 + ranks, 1, 1 + 2 * ranks));
        assert_eq!(reader.totals("run").unwrap().vars, 1 + ranks);
        assert_eq!(reader.find_var("run/grid").unwrap().unwrap().shape(), [2, 10, 5]);
        // Names under a rank's own paths are not compared: each rank sends 7 of its 9 names, and 3 paths.
        if ranks > 1 {
            let compared: u64 = reports.iter().map(|report| report.comparisons).sum();
            assert!(compared <= ranks * (7 + 4) + 6 * ranks, "{compared}");
        }
    }
}

#[test]
fn ranks_that_share_no_path_tell_no_names() {
    let disk = SimWorld::memory().disk;
    let results = threads::run(8, None, disk, threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
        let mut definitions = Definitions::new(Format::Partitioned);
        for i in 0..5_000 {
            let dim = definitions.def_dim(&format!("rank_{}/dimension_{i}", team.rank()), Some(3))?;
            definitions.def_var_by_ids(&format!("rank_{}/variable_{i}", team.rank()), NcType::Int, &[dim])?;
        }
        Ok(write_one(&file, &mut definitions)?.report)
    });
    for result in results {
        let report = result.unwrap();
        assert!(report.comparisons <= 8, "{}", report.comparisons);
        assert!(report.counters.sent < 10_000, "{} bytes for 10,000 names", report.counters.sent);
        assert!(report.header_bytes_written > 400_000);
    }
}

#[test]
fn ranks_that_disagree_learn_about_what() {
    let disk = SimWorld::memory().disk;
    let results = threads::run(4, None, disk, threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
        write_one(&file, &mut shared_definitions(team.rank(), Some(2))?)
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), fieldstone_core::ErrorKind::Conflict);
        assert!(error.message().contains("run/y") && error.message().contains('2'), "{error}");
    }
}

/// A name that one rank gives twice is found, although no other rank has its path.
#[test]
fn a_name_given_twice_by_one_rank_is_found() {
    for ranks in [1, 3] {
        let disk = SimWorld::memory().disk;
        let results = threads::run(ranks, None, disk, threads::Faults::none(), |comm| {
            let team = Team::new(comm);
            let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
            let mut definitions = Definitions::new(Format::Partitioned);
            let names = ["a", "b", "a"].map(|name| format!("rank_{}/{name}", team.rank()));
            definitions.def_dims(names.iter().collect::<fieldstone_format::netcdf::Names>(), &[1, 2, 3])?;
            write_one(&file, &mut definitions)
        });
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), fieldstone_core::ErrorKind::Conflict);
            assert!(error.message().contains("/a`"), "{error}");
        }
    }
}

/// A rank that fails in any step makes all fail, with its number; no rank hangs.
#[test]
fn a_failure_in_any_step_reaches_all_ranks() {
    for nth in 1..60 {
        let disk = SimWorld::memory().disk;
        let faults = threads::Faults::step(1, nth);
        let results = threads::run(3, Some(nth), disk.clone(), faults.clone(), |comm| {
            let team = Team::new(comm);
            let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
            write_one(&file, &mut shared_definitions(team.rank(), None)?)
        });
        if !faults.struck() {
            assert!(nth > 20, "only {nth} calls");
            assert!(results.iter().all(Result::is_ok));
            return;
        }
        assert!(results.iter().all(Result::is_err), "call {nth}");
        assert!(open(&disk).is_err(), "call {nth}");
    }
}

/// Random containers of many shapes, compared with their definitions.
#[test]
fn random_definitions_come_back() {
    for seed in 0..40 {
        let env = SimWorld::new(seed).process("host");
        let random = |below: u64| {
            let mut bytes = [0; 8];
            env.rand.fill(&mut bytes);
            u64::from_le_bytes(bytes) % below
        };
        let mut definitions = Definitions::new(Format::Partitioned);
        let mut dims = Vec::new();
        for i in 0..random(30) {
            let path = ["", "a/", "a/b/", "ö/"][random(4) as usize];
            let len = if i == 3 { None } else { Some(random(9) + 1) };
            dims.push((definitions.def_dim(&format!("{path}d{i}"), len).unwrap(), len.is_none()));
        }
        for i in 0..random(60) {
            let path = ["", "a/", "c/d/e/", "ö/"][random(4) as usize];
            let mut own: Vec<u32> = Vec::new();
            for place in 0..random(4) {
                if let Some((dim, is_record)) = dims.get(random(30) as usize)
                    && (place == 0 || !is_record)
                {
                    own.push(*dim);
                }
            }
            if own.iter().skip(1).any(|dim| dims[*dim as usize].1) {
                own.truncate(1);
            }
            let ty = NcType::ALL[random(11) as usize];
            let var = definitions.def_var_by_ids(&format!("{path}v{i}"), ty, &own).unwrap();
            for j in 0..random(3) {
                let value = vec![7; ty.size() * random(5) as usize];
                definitions.put_att(Some(var), &format!("att{j}"), ty, &value).unwrap();
            }
        }
        if random(4) == 0 {
            definitions.put_att(None, "large", NcType::Char, &vec![b'x'; 300_000]).unwrap();
            definitions.put_att(None, "x/empty", NcType::Int, b"").unwrap();
        }
        let team = Team::new(Arc::new(SingleComm::new(env.disk.clone())));
        let file = team.open("create", Path::new(FILE), FileMode::CreateNew).unwrap();
        let written = write_one(&file, &mut definitions).unwrap();
        publish(&file, 3).unwrap();
        let reader = open(&env.disk).unwrap();
        let header = definitions.header();
        assert_eq!(reader.attrs().unwrap(), header.attrs, "seed {seed}");
        let found = reader.vars(0, usize::MAX).unwrap();
        assert_eq!(found.len(), header.vars.len());
        for (found, var) in found.iter().zip(header.vars.iter()) {
            assert_eq!((found.name.as_str(), found.ty), (var.name(), var.ty()), "seed {seed}");
            let dims: Vec<u64> = found.dims.iter().map(|dim| dim.id).collect();
            assert_eq!(dims, var.dims().iter().map(|dim| written.dim_ids[*dim as usize]).collect::<Vec<_>>());
            assert!(found.attrs.iter().eq(var.attrs()));
            assert_eq!(reader.find_var(var.name()).unwrap().as_ref(), Some(found));
        }
        for (found, dim) in reader.dims(0, usize::MAX).unwrap().iter().zip(header.dims.iter()) {
            assert_eq!((found.name.as_str(), found.is_record), (dim.name, dim.is_record));
            assert_eq!(found.len, if dim.is_record { 3 } else { dim.len });
        }
        assert_eq!(from_lists(&reader), from_blocks(&reader), "seed {seed}");
    }
}

type Totals = BTreeMap<String, PathTotals>;

/// Totals from the entries of the objects.
fn from_blocks(reader: &Reader) -> Totals {
    let mut found = Totals::new();
    let mut add = |object: Object<'_>| {
        let (path, totals) = total_of(&object)?;
        let sum = found.entry(path.to_owned()).or_default();
        sum.counts.add(&totals.counts);
        sum.bytes += totals.bytes;
        Ok(())
    };
    reader.each(&mut add).unwrap();
    found
}

/// Totals from the path lists: by one read, in a file whose lists are complete.
fn from_lists(reader: &Reader) -> Totals {
    let mut found = Totals::new();
    let mut add = |path: &str, totals: PathTotals| {
        let sum = found.entry(path.to_owned()).or_default();
        sum.counts.add(&totals.counts);
        sum.bytes += totals.bytes;
        Ok(())
    };
    reader.each_path("", &mut add).unwrap();
    found
}

/// A file of `ranks` ranks with shared paths and paths of their own, and two records.
fn shared_file(disk: &Arc<dyn Disk>, ranks: usize) {
    let results = threads::run(ranks, None, disk.clone(), threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let file = team.open("create", Path::new(FILE), FileMode::CreateNew)?;
        write_one(&file, &mut shared_definitions(team.rank(), None)?)?;
        if team.rank() == 0 { publish(&file, 2) } else { Ok(()) }
    });
    results.into_iter().for_each(|result| result.unwrap());
}

/// One read gives counts and bytes under every path, without reading a block.
#[test]
fn what_stands_under_all_paths_takes_one_read() {
    for ranks in [1, 2, 5, 64] {
        let disk = SimWorld::memory().disk;
        shared_file(&disk, ranks);
        let reader = open(&disk).unwrap();
        let found = from_lists(&reader);
        assert_eq!(reader.reads(), 3, "head, index table, lists");
        assert_eq!(found, from_blocks(&reader));
        let run = Counts { dims: 2, attrs: 1, vars: 1 + ranks as u64 };
        // A grid of 2 records of 10 by 5, and 5 of each rank.
        let bytes = 2 * 50 * 8 + ranks as u64 * 20;
        assert_eq!(found["run"], PathTotals { counts: run, bytes });
        assert_eq!(found.len() as u64, reader.head().paths);
        let fresh = open(&disk).unwrap();
        let counts: BTreeMap<_, _> =
            found.iter().map(|(path, totals)| (path.clone(), totals.counts)).collect();
        assert_eq!(fresh.below("").unwrap(), counts);
        assert_eq!(fresh.reads(), 3);
    }
}

#[test]
fn data_beyond_the_largest_file_are_refused() -> Result<()> {
    let half = 1u64 << 62;
    for (record, format) in [
        (half - (1 << 20), Format::Partitioned),
        (half, Format::Partitioned),
        (half, Format::Classic(Version::Cdf5)),
    ] {
        let results = threads::run(2, None, SimWorld::memory().disk, threads::Faults::none(), |comm| {
            let (team, env) = (Team::new(comm), SimWorld::memory());
            let mut definitions = Definitions::new(format);
            let dims = [definitions.def_dim("t", None)?, definitions.def_dim("x", Some(half))?];
            let short = definitions.def_dim("y", Some(record))?;
            match team.rank() {
                0 => definitions.def_var_by_ids("fixed", NcType::Byte, &dims[1..])?,
                _ => definitions.def_var_by_ids("records", NcType::Byte, &[dims[0], short])?,
            };
            let strategy = match format {
                Format::Partitioned => Strategy::Partitioned,
                Format::Classic(_) => Strategy::Scalable,
            };
            let options = EnddefOptions::new(strategy, &*env.clock);
            plan(&team, &mut definitions, &options).map(|planned| planned.layout())
        });
        for result in results {
            match (record == half, result) {
                (true, Err(error)) => {
                    assert_eq!(error.kind(), fieldstone_core::ErrorKind::Invalid, "{error}")
                }
                (false, Ok(layout)) => assert!(layout.file_len(1).is_some()),
                (refused, other) => assert!(other.is_err() && refused, "{record}: {other:?}"),
            }
        }
    }
    Ok(())
}

/// A path's entries name the range of blocks with its objects, for each writer.
#[test]
fn a_path_leads_to_its_blocks() {
    let disk = SimWorld::memory().disk;
    file_of(&disk, 4, 12_000);
    let reader = open(&disk).unwrap();
    let mut wanted: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for number in 0..reader.table().blocks.len() {
        let block = reader.block(number).unwrap();
        for path in (0..block.paths()).map(|i| block.path(i).unwrap()) {
            wanted.entry(path.to_owned()).or_default().push(number);
        }
    }
    assert!(wanted.values().any(|blocks| blocks.len() > 1), "no path in two blocks");
    let in_several = wanted.iter().filter(|(_, blocks)| blocks.len() > 1).take(5);
    for (path, blocks) in wanted.iter().step_by(4_001).chain(in_several) {
        let found = reader.blocks_of(path).unwrap();
        assert_eq!((found.first(), found.last()), (blocks.first(), blocks.last()), "{path}");
    }
    assert!(reader.blocks_of("event_1/none").unwrap().is_empty());
}

/// A damaged list makes counting slow, not wrong; only counts read it.
#[test]
fn without_its_lists_a_file_says_the_same() {
    let world = SimWorld::new(5);
    let disk = world.process("host").disk;
    shared_file(&disk, 5);
    let reader = open(&disk).unwrap();
    let (wanted, below) = (from_lists(&reader), reader.below("rank_3").unwrap());
    let vars = reader.vars(0, usize::MAX).unwrap();
    let (begin, _) = reader.table().lists(reader.head());
    for writers in [&[3][..], &[0, 1, 2, 3, 4]] {
        for writer in writers {
            let at = begin + reader.table().list_of_writer(*writer) + 3;
            world.flip(Path::new(FILE), at, 0x40).unwrap();
        }
        let fresh = open(&disk).unwrap();
        assert_eq!(from_lists(&fresh), wanted);
        assert_eq!(
            fresh.reads(),
            3 + writers.len() as u64 + u64::from(writers.len() == 1),
            "blocks of {writers:?}"
        );
        assert_eq!(fresh.below("").unwrap().len(), wanted.len());
        assert_eq!(fresh.below("rank_3").unwrap(), below);
        assert_eq!(fresh.blocks_of("rank_3").unwrap(), reader.blocks_of("rank_3").unwrap());
        for var in &vars {
            assert_eq!(fresh.find_var(&var.name).unwrap().as_ref(), Some(var));
        }
        if writers.len() == 1 {
            world.flip(Path::new(FILE), begin + reader.table().list_of_writer(3) + 3, 0x40).unwrap();
        }
    }
}

/// Ranges of paths in the index table show which blocks a search can skip; a pass over everything reads each block
/// once.
#[test]
fn paths_below_one_are_listed_without_the_blocks_of_others() {
    let disk = SimWorld::memory().disk;
    file_of(&disk, 4, 12_000);
    let reader = open(&disk).unwrap();
    let blocks = reader.table().blocks.len() as u64;
    assert!(blocks >= 12, "{blocks}");
    let before = reader.reads();
    let mut passed = (0, 0, 0);
    reader
        .each(&mut |object| {
            match object {
                Object::Dim(_) => passed.0 += 1,
                Object::Attr(_) => passed.1 += 1,
                Object::Var(_) => passed.2 += 1,
            }
            Ok(())
        })
        .unwrap();
    let counts = reader.counts().unwrap();
    assert_eq!(passed, (counts.dims, counts.attrs, counts.vars));
    assert_eq!(reader.reads() - before, blocks, "a block was read twice");
    let all = reader.below("").unwrap();
    assert_eq!(all.len() as u64, reader.head().paths);
    assert_eq!(reader.reads() - before, blocks + 1, "all paths are one read, of the lists");
    for event in [0, 7, 4_444, 11_999] {
        let fresh = open(&disk).unwrap();
        let path = format!("event_{event}");
        let wanted: Vec<_> = ["", "/u", "/v", "/y"].iter().map(|below| format!("{path}{below}")).collect();
        let found = fresh.below(&path).unwrap();
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), wanted);
        assert_eq!(found.values().map(|counts| counts.vars).collect::<Vec<_>>(), [1, 1, 1, 1]);
        assert!(fresh.reads() <= 2 + blocks / 2, "{} reads for {path}, {blocks} blocks", fresh.reads());
        assert_eq!(fresh.below(&format!("{path}/u")).unwrap().len(), 1);
        assert!(fresh.below(&format!("{path}/none")).unwrap().is_empty());
    }
    // The numbers of all objects, and of those directly under a path: head and table, then one read of the path
    // index.
    let mut most = 0;
    for event in (0..12_000).step_by(501) {
        let fresh = open(&disk).unwrap();
        let totals = fresh.totals(&format!("event_{event}")).unwrap();
        assert_eq!((totals.dims, totals.attrs, totals.vars), (1, 1, 1));
        most = most.max(fresh.reads());
    }
    assert!(most <= 4, "{most} reads");
    // Opening, and finding a name, do not read the lists, which are long here.
    assert!(reader.table().lists(reader.head()).1 > 2 << 20);
    for event in (0..12_000).step_by(1_009) {
        let fresh = open(&disk).unwrap();
        assert!(fresh.find_var(&format!("event_{event}/u/charge")).unwrap().is_some());
        assert!(fresh.reads() <= 8 && fresh.memory() < 1 << 20, "{} reads", fresh.reads());
    }
}
