//! The end of define mode: the bytes of the file do not depend on the number of ranks or on the strategy,
//! contradictions are named, and a failure on one rank fails all.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::container::define::Definitions;
use fieldstone_array::container::enddef::{EnddefOptions, EnddefOutcome, Indexing, MAX_SLOTS, enddef, plan};
use fieldstone_array::container::{Format, Strategy};
use fieldstone_core::env::comm::{FileMode, Team, threads};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Clock, Disk};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::netcdf::layout::{Alignment, lay_out};
use fieldstone_format::netcdf::trailer::{CHUNK, STRIDE, Sums, join, path_hash};
use fieldstone_format::netcdf::{Header, NcType, Version, write};
use fieldstone_testkit::{Random, seeded};

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> u64 {
        0
    }
    fn sleep(&self, _: u64) {}
}

/// A definition by a rank.
#[derive(Debug, Clone, PartialEq)]
enum Op {
    Dim(String, Option<u64>),
    Var(String, NcType, Vec<String>, Vec<(String, Vec<u8>)>),
    Att(String, Vec<u8>),
}

impl Op {
    fn name(&self) -> (u8, &str) {
        match self {
            Op::Dim(name, _) => (0, name),
            Op::Var(name, ..) => (1, name),
            Op::Att(name, _) => (2, name),
        }
    }
    fn dim(name: &str, len: u64) -> Op {
        Op::Dim(name.into(), Some(len))
    }
    fn record(name: &str) -> Op {
        Op::Dim(name.into(), None)
    }
    fn var(name: &str, dims: &[&str]) -> Op {
        Op::Var(name.into(), NcType::Float, dims.iter().map(|dim| dim.to_string()).collect(), Vec::new())
    }
}

/// All strategies of classic files.
const STRATEGIES: [Strategy; 5] = [
    Strategy::Scalable,
    Strategy::App,
    Strategy::LibraryHash { slots: 7 },
    Strategy::LibraryHash { slots: 1 << 16 },
    Strategy::LibrarySort,
];

fn define(definitions: &mut Definitions, ops: &[Op]) -> Result<()> {
    for op in ops {
        match op {
            Op::Dim(name, len) => drop(definitions.def_dim(name, *len)?),
            Op::Var(name, ty, dims, attrs) => {
                let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
                let var = definitions.def_var(name, *ty, &dims)?;
                for (name, value) in attrs {
                    definitions.put_att(Some(var), name, NcType::Char, value)?;
                }
            }
            Op::Att(name, value) => definitions.put_att(None, name, NcType::Char, value)?,
        }
    }
    Ok(())
}

/// Definitions of each rank: objects of its own, and some that others have too.
fn random(draw: &mut Random, ranks: usize, paths: bool) -> Vec<Vec<Op>> {
    let parent = |draw: &mut Random| match (paths, draw.below(3)) {
        (true, 0) => format!("event_{}/", draw.below(5)),
        (true, 1) => format!("event_{}/plane.{}/", draw.below(5), draw.below(3)),
        _ => String::new(),
    };
    let types = [NcType::Byte, NcType::Char, NcType::Short, NcType::Float, NcType::Int64];
    let mut common = vec![Op::dim("x", 3), Op::dim("y~.", 1 + draw.below(9)), Op::Dim("time".into(), None)];
    common.extend((0..draw.below(4)).map(|i| Op::Att(format!("note{i}"), vec![b'n'; i as usize * 3])));
    let whole = common.clone();
    for i in 0..draw.below(6) {
        let own = parent(draw);
        let dims = [vec![], vec!["x"], vec!["time", "x"], vec!["time"]][draw.below(4) as usize].clone();
        let dims = dims.into_iter().map(String::from).collect();
        let attrs = (0..draw.below(3)).map(|k| (format!("a{k}"), vec![b'v'; k as usize + 1])).collect();
        common.push(Op::Var(format!("{own}shared{i}"), types[draw.below(5) as usize], dims, attrs));
    }
    let most = [3, 40, 200][draw.below(3) as usize];
    (0..ranks)
        .map(|rank| {
            let mut ops = whole.clone();
            ops.extend(common[whole.len()..].iter().filter(|_| draw.below(2) == 0).cloned());
            for i in 0..draw.below(most) {
                let dim = format!("{}d{rank}_{i}", parent(draw));
                ops.push(Op::dim(&dim, 1 + draw.below(20)));
                let own = parent(draw);
                let dims = [vec!["x"], vec![], vec!["time", "y~."], vec!["time"], vec!["y~.", "x"]];
                let dims = dims[draw.below(5) as usize].iter().map(|dim| dim.to_string()).collect();
                let attrs = (0..draw.below(3)).map(|k| (format!("a{k}"), vec![b'v'; k as usize])).collect();
                let ty = types[draw.below(5) as usize];
                ops.push(Op::Var(format!("{own}v{rank}_{i}"), ty, dims, attrs));
                if draw.below(8) == 0 {
                    ops.push(Op::Att(format!("{}g{rank}_{i}", parent(draw)), b"value".to_vec()));
                }
            }
            ops
        })
        .collect()
}

/// The definitions of a single rank: all ranks' definitions in order, each object once.
fn serial(ranks: &[Vec<Op>]) -> Vec<Op> {
    let mut seen = std::collections::HashSet::new();
    let all = ranks.iter().flatten();
    all.filter(|op| seen.insert((op.name().0, op.name().1.to_owned()))).cloned().collect()
}

fn contents(disk: &Arc<dyn Disk>, path: &Path) -> Vec<u8> {
    let file = disk.open_read(path).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    fieldstone_core::env::read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// The result on one rank.
type Outcome = (EnddefOutcome, Header);

struct Made {
    bytes: Vec<u8>,
    ranks: Vec<EnddefOutcome>,
    headers: Vec<Header>,
}

fn options(strategy: Strategy) -> EnddefOptions<'static> {
    EnddefOptions { indexing: Indexing::Always, ..EnddefOptions::new(strategy, &NoClock) }
}

fn make_with(
    ranks: &[Vec<Op>],
    version: Version,
    options: EnddefOptions<'_>,
    faults: threads::Faults,
    seed: Option<u64>,
) -> (Arc<dyn Disk>, Vec<Result<Outcome>>) {
    let disk = SimWorld::memory().disk;
    let results = threads::run(ranks.len(), seed, disk.clone(), faults, |comm| {
        let team = Team::new(comm);
        let mut definitions = Definitions::new(Format::Classic(version));
        let local = define(&mut definitions, &ranks[team.rank()]);
        team.agree("definitions", local)?;
        let file = team.open("create", Path::new("/made.nc"), FileMode::CreateNew)?;
        let defined = enddef(&file, &mut definitions, &options)?;
        Ok((defined, definitions.header().clone()))
    });
    (disk, results)
}

fn make(ranks: &[Vec<Op>], version: Version, options: EnddefOptions<'_>) -> Made {
    let (disk, results) = make_with(ranks, version, options, threads::Faults::none(), None);
    let (ranks, headers) = results.into_iter().map(|result| result.unwrap()).unzip();
    Made { bytes: contents(&disk, Path::new("/made.nc")), ranks, headers }
}

/// The error that all ranks raise.
fn refused(ranks: &[Vec<Op>], version: Version, strategy: Strategy) -> (ErrorKind, String) {
    let (_, results) = make_with(ranks, version, options(strategy), threads::Faults::none(), None);
    let mut errors = results.into_iter().map(|result| match result {
        Err(error) => (error.kind(), error.message().to_owned()),
        Ok(_) => (ErrorKind::Internal, "nothing was refused".to_owned()),
    });
    let first = errors.next().unwrap();
    assert!(errors.all(|error| error == first), "ranks raise different errors");
    first
}

/// The file made by the functions that write a whole header, with the magic of an unfinished one.
fn reference(ops: &[Op], version: Version) -> (Vec<u8>, Header, bool) {
    let mut definitions = Definitions::new(Format::Classic(version));
    define(&mut definitions, ops).unwrap();
    let escaped = definitions.has_paths();
    let mut header = definitions.header().clone();
    let layout = lay_out(&mut header, &Alignment::default(), escaped, None).unwrap();
    let mut bytes = write::header(&header, escaped);
    bytes[..3].copy_from_slice(&write::UNFINISHED);
    bytes.resize(layout.file_len(0).unwrap() as usize, 0);
    (bytes, header, escaped)
}

fn check_index(made: &Made, header: &Header) {
    let parts: Vec<_> = made.ranks.iter().map(|rank| rank.index.as_ref().unwrap()).collect();
    let entries: Vec<u64> = parts.iter().flat_map(|part| part.entries.iter().copied()).collect();
    assert!(entries.is_sorted());
    assert_eq!(entries.len(), header.dims.len() + header.vars.len());
    for (id, name) in header.vars.names.iter().enumerate() {
        let entry = path_hash(name) & !0xffff_ffff | 1 << 31 | id as u64;
        assert!(entries.binary_search(&entry).is_ok(), "{name}");
    }
    let layout = made.ranks[0].layout;
    let mut sums = Sums::new(CHUNK);
    parts.iter().for_each(|part| sums.unpack(&part.header.pack()).unwrap());
    let lists = made.ranks[0].lists;
    let joined = join(&sums, lists[0], layout.header_len).unwrap();
    let mut whole = Sums::new(CHUNK);
    whole.add(lists[0], &made.bytes[lists[0] as usize..layout.header_len as usize]);
    assert_eq!(joined, join(&whole, lists[0], layout.header_len).unwrap());
    // Each kept offset is the begin of the entry's name.
    let escaped = made.ranks[0].escaped;
    let offsets: Vec<u64> = parts.iter().flat_map(|part| part.var_offsets.iter().copied()).collect();
    assert_eq!(offsets.len(), header.vars.len().div_ceil(STRIDE as usize));
    let mut at = lists[2] + write::list_head_size(header.version);
    for i in 0..header.vars.len() {
        if i % STRIDE as usize == 0 {
            assert_eq!(offsets[i / STRIDE as usize], at);
        }
        at += write::vars_size(header, i..i + 1, escaped);
    }
}

#[test]
fn the_file_is_the_same_for_any_number_of_ranks() {
    for seed in 0..6 {
        let mut draw = seeded(seed);
        let all = serial(&random(&mut draw, 64, seed % 2 == 1));
        let (expected, header, _) = reference(&all, Version::Cdf5);
        for ranks in [1, 2, 3, 4, 7, 16, 64] {
            // Contiguous parts; every rank that needs a dimension defines it.
            let dims: Vec<Op> = all.iter().take(3).cloned().collect();
            let cut = |rank: usize| all.len() * rank / ranks;
            let parts: Vec<Vec<Op>> = (0..ranks)
                .map(|rank| {
                    let own = &all[cut(rank)..cut(rank + 1)];
                    let missing = dims.iter().filter(|dim| !own.contains(dim)).cloned();
                    let missing: Vec<Op> = if rank == 0 { Vec::new() } else { missing.collect() };
                    missing.into_iter().chain(own.iter().cloned()).collect()
                })
                .collect();
            let made = make(&parts, Version::Cdf5, options(Strategy::Scalable));
            assert!(made.bytes == expected, "seed {seed}, {ranks} ranks");
            check_index(&made, &header);
        }
    }
}

#[test]
fn random_definitions_are_what_one_rank_would_make_of_them() {
    for seed in 0..60 {
        let mut draw = seeded(seed);
        let ranks = 1 + draw.below(9) as usize;
        let parts = random(&mut draw, ranks, seed % 3 == 0);
        let all = serial(&parts);
        let (expected, header, escaped) = reference(&all, Version::Cdf5);
        for strategy in STRATEGIES {
            let made = make(&parts, Version::Cdf5, options(strategy));
            assert!(made.bytes == expected, "seed {seed}, {ranks} ranks, {strategy:?}");
            check_index(&made, &header);
            for (rank, local) in made.ranks.iter().zip(&made.headers) {
                assert_eq!(rank.escaped, escaped);
                assert_eq!(rank.counts.vars, header.vars.len() as u64);
                for (id, name) in rank.var_ids.iter().zip(local.vars.names.iter()) {
                    assert_eq!(header.vars.names.get(*id as usize), name, "seed {seed} {strategy:?}");
                }
                for (id, name) in rank.dim_ids.iter().zip(local.dims.names.iter()) {
                    assert_eq!(header.dims.names.get(*id as usize), name, "seed {seed} {strategy:?}");
                }
            }
        }
    }
}

#[test]
fn each_kind_of_conflict_is_named_with_its_ranks() {
    let own = |rank: usize| Op::dim(&format!("own{rank}"), 1);
    let with = |ops: [Vec<Op>; 3]| -> Vec<Vec<Op>> {
        ops.into_iter()
            .enumerate()
            .map(|(rank, mut ops)| {
                ops.push(own(rank));
                ops
            })
            .collect()
    };
    let x = || Op::dim("x", 3);
    let double = |name: &str| Op::Var(name.into(), NcType::Double, vec![], vec![]);
    let attr = |value: &str| Op::Var("v".into(), NcType::Int, vec![], vec![("units".into(), value.into())]);
    let cases = [
        (
            with([vec![Op::dim("x", 100)], vec![Op::dim("x", 200)], vec![Op::dim("x", 100)]]),
            "dimension `x`: length 100 on ranks 0, 2; 200 on rank 1",
        ),
        (
            with([vec![x()], vec![Op::Dim("x".into(), None)], vec![]]),
            "dimension `x`: length 3 on rank 0; unlimited on rank 1",
        ),
        (
            with([vec![Op::var("v", &[])], vec![double("v")], vec![]]),
            "variable `v`: type float on rank 0; double on rank 1",
        ),
        (
            with([vec![x(), Op::var("p/v", &["x"])], vec![], vec![x(), Op::var("p/v", &[])]]),
            "variable `p/v`: dimensions (x) on rank 0; () on rank 2",
        ),
        (
            with([vec![], vec![attr("m")], vec![attr("km")]]),
            "variable `v`: attribute `units` \"m\" on rank 1; \"km\" on rank 2",
        ),
        (
            with([vec![], vec![attr("m")], vec![Op::Var("v".into(), NcType::Int, vec![], vec![])]]),
            "variable `v`: attributes [units] on rank 1; [] on rank 2",
        ),
        (
            with([
                vec![Op::Att("title".into(), b"a".to_vec())],
                vec![Op::Att("title".into(), b"b".to_vec())],
                vec![],
            ]),
            "global attribute `title`: value \"a\" on rank 0; \"b\" on rank 1",
        ),
    ];
    for (parts, expected) in cases {
        for strategy in [Strategy::Scalable, Strategy::App, Strategy::LibrarySort] {
            let (kind, message) = refused(&parts, Version::Cdf5, strategy);
            assert_eq!(kind, ErrorKind::Conflict, "{message}");
            assert!(message.ends_with(expected), "{strategy:?}: {message}");
        }
    }
    let records = |name: &str| vec![Op::Dim(name.into(), None)];
    let (kind, message) =
        refused(&with([records("t"), vec![], records("time")]), Version::Cdf5, Strategy::Scalable);
    assert!(kind == ErrorKind::Conflict && message.ends_with("`t` on rank 0, `time` on rank 2"), "{message}");
}

#[test]
fn many_conflicts_are_counted_and_the_first_told() {
    let parts: Vec<Vec<Op>> =
        (0..4).map(|rank| (0..100).map(|i| Op::dim(&format!("d{i:02}"), 1 + rank)).collect()).collect();
    let (_, message) = refused(&parts, Version::Cdf5, Strategy::Scalable);
    assert!(message.starts_with("dimension `d00`: length 1 on rank 0; 2 on rank 1"), "{message}");
    assert!(message.contains("`d19`") && !message.contains("`d20`") && message.ends_with("and 80 more"));
}

#[test]
fn names_that_columns_repeat_are_named() {
    let disk = SimWorld::memory().disk;
    for ranks in [1, 3] {
        let results = threads::run(ranks, None, disk.clone(), threads::Faults::none(), |comm| {
            let team = Team::new(comm);
            let mut definitions = Definitions::new(Format::Classic(Version::Cdf5));
            let rank = team.rank();
            let names = [format!("a{rank}"), "b".into(), format!("c{rank}"), format!("a{rank}")];
            definitions
                .def_dims(names.iter().collect::<fieldstone_format::netcdf::Names>(), &[1, 2, 3, 1])?;
            let path = format!("/twice{}.nc", team.size());
            let file = team.open("create", Path::new(&path), FileMode::CreateNew)?;
            enddef(&file, &mut definitions, &options(Strategy::Scalable)).map(drop)
        });
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.message().contains("dimension `a0`: defined twice on rank 0"), "{error}");
        }
    }
}

#[test]
fn limits_hold_over_all_ranks() {
    let large = |name: &str| Op::Var(name.into(), NcType::Double, vec!["big".into()], vec![]);
    let big = || Op::dim("big", (1 << 29) + 5);
    let parts = [vec![big(), large("a")], vec![big(), large("b")]];
    let (kind, message) = refused(&parts, Version::Cdf2, Strategy::Scalable);
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("`a`") && message.contains("4294967292"), "{message}");
    // The last variable may be that large; nothing is written, because a simulated disk keeps its contents in memory.
    let good = [vec![big(), Op::var("a", &[])], vec![big(), large("b")]];
    for layout in threads::run(2, None, SimWorld::memory().disk, threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let mut definitions = Definitions::new(Format::Classic(Version::Cdf2));
        define(&mut definitions, &good[team.rank()])?;
        Ok(plan(&team, &mut definitions, &options(Strategy::Scalable))?.layout())
    }) {
        assert_eq!(layout.unwrap().data_end, 512 + 4 + ((1 << 29) + 5) * 8);
    }
    let medium = |rank: usize| vec![Op::dim("m", 1 << 28), Op::var(&format!("v{rank}"), &["m"])];
    let (_, message) = refused(&[medium(0), medium(1), medium(2)], Version::Cdf1, Strategy::Scalable);
    assert!(message.contains("`v2` would begin at byte 2147"), "{message}");
    let huge = |rank: usize| {
        let dims = vec![format!("h{rank}")];
        let var = Op::Var(format!("v{rank}"), NcType::Byte, dims, vec![]);
        vec![Op::dim(&format!("h{rank}"), i64::MAX as u64 - 7), var]
    };
    for ranks in [2, 3, 4] {
        let parts: Vec<Vec<Op>> = (0..ranks).map(huge).collect();
        let (_, message) = refused(&parts, Version::Cdf5, Strategy::Scalable);
        assert!(message.contains("no file is larger"), "{message}");
    }
    let long = "a.".repeat(100);
    let (_, message) =
        refused(&[vec![Op::dim(&long, 1)], vec![Op::dim("p/q", 1)]], Version::Cdf5, Strategy::Scalable);
    assert!(message.contains("300 bytes") && message.contains("256"), "{message}");
}

#[test]
fn what_fails_on_one_rank_fails_on_all() {
    let mut draw = seeded(5);
    let parts = random(&mut draw, 3, true);
    for strategy in [Strategy::Scalable, Strategy::App, Strategy::LibrarySort] {
        let mut struck = 0;
        for rank in 0..3 {
            for nth in 1.. {
                let faults = threads::Faults::step(rank, nth);
                let (_, results) =
                    make_with(&parts, Version::Cdf5, options(strategy), faults.clone(), Some(nth));
                if !faults.struck() {
                    break;
                }
                struck += 1;
                for result in results {
                    let error = result.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{strategy:?} {rank} {nth}: {error}");
                    assert!(error.message().contains(&format!("rank {rank}")), "{error}");
                }
            }
        }
        assert!(struck > 15, "{struck}");
    }
}

#[test]
fn a_rank_that_dies_takes_none_along_in_waiting() {
    let mut draw = seeded(9);
    let parts = random(&mut draw, 3, false);
    for rank in 0..3 {
        for nth in 1.. {
            let faults = threads::Faults::death(rank, nth);
            let (_, results) =
                make_with(&parts, Version::Cdf5, options(Strategy::Scalable), faults.clone(), Some(nth));
            if !faults.struck() {
                break;
            }
            assert!(results.iter().any(|result| result.is_err()));
        }
    }
}

#[test]
fn work_is_shared_evenly() {
    for ranks in [2usize, 4, 16] {
        let per = 4000 / ranks;
        let parts: Vec<Vec<Op>> = (0..ranks)
            .map(|rank| {
                let objects = (0..per).flat_map(|i| {
                    let dim = format!("dim_{rank:03}_{i:05}");
                    let var = Op::var(&format!("event_{rank:03}_{i:05}.x"), &[&dim]);
                    [Op::dim(&dim, 7), var]
                });
                objects.collect()
            })
            .collect();
        let made = make(&parts, Version::Cdf5, options(Strategy::Scalable));
        let share = (per * 2) as f64;
        let reports: Vec<_> = made.ranks.iter().map(|rank| &rank.report).collect();
        let written: Vec<u64> = reports.iter().map(|report| report.header_bytes_written).collect();
        let (least, most) = (written.iter().min().unwrap(), written.iter().max().unwrap());
        assert!(*most as f64 <= *least as f64 * 1.1, "{written:?}");
        for report in &reports {
            assert!(report.comparisons as f64 <= 1.2 * share, "{} of {share}", report.comparisons);
            assert!(report.names_held as f64 <= 2.4 * share, "{} of {share}", report.names_held);
        }
        let others = reports[1..].iter().map(|report| report.peak_bytes()).max().unwrap();
        assert!(reports[0].peak_bytes() as f64 <= 1.2 * others as f64);
    }
}

/// A rank's changes of existing objects, and the objects that it adds.
type Again = (Vec<fn(&mut Definitions) -> Result<()>>, Vec<Op>);

/// The file's bytes, whether data must move, and the numbers of a rank's variables.
type Redefined = (Vec<u8>, bool, Vec<u64>);

/// A redefinition of `old` by ranks; returns the bytes of the new header, as each rank's own definitions see it too.
fn redefine(old: &Header, ranks: &[Again], strategy: Strategy) -> Vec<Result<Redefined>> {
    let disk = SimWorld::memory().disk;
    let path = Path::new("/again.nc");
    let results = threads::run(ranks.len(), None, disk.clone(), threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let mut definitions = Definitions::from_header(Format::Classic(old.version), old.clone());
        let (changes, ops) = &ranks[team.rank()];
        let local = changes.iter().try_for_each(|change| change(&mut definitions));
        team.agree("definitions", local.and_then(|()| define(&mut definitions, ops)))?;
        let options = EnddefOptions { old: Some(old), ..options(strategy) };
        let planned = plan(&team, &mut definitions, &options)?;
        let moves = planned.moves();
        let file = team.open("create", path, FileMode::CreateNew)?;
        let defined = planned.write(&file, &mut definitions, &options)?;
        Ok((moves, defined.var_ids))
    });
    let bytes = disk.stat(path).map_or_else(|_| Vec::new(), |_| contents(&disk, path));
    results.into_iter().map(|one| one.map(|(moves, ids)| (bytes.clone(), moves, ids))).collect()
}

/// A file of two fixed and two record variables, and its header.
fn before(alignment: &Alignment) -> Header {
    let mut definitions = Definitions::new(Format::Classic(Version::Cdf5));
    let time = || Op::Dim("time".into(), None);
    let ops = [
        time(),
        Op::dim("x", 5),
        Op::Att("title".into(), b"old".to_vec()),
        Op::Var("a".into(), NcType::Short, vec!["x".into()], vec![("units".into(), b"m".to_vec())]),
        Op::var("r", &["time", "x"]),
        Op::var("b", &["x"]),
        Op::var("s", &["time"]),
    ];
    define(&mut definitions, &ops).unwrap();
    let mut header = definitions.header().clone();
    lay_out(&mut header, alignment, false, None).unwrap();
    header
}

/// The file that one rank makes from `old` by a redefinition.
fn again(definitions: &mut Definitions, old: &Header) -> Vec<u8> {
    let escaped = definitions.has_paths();
    let mut header = definitions.header().clone();
    let layout = lay_out(&mut header, &Alignment::default(), escaped, Some(old)).unwrap();
    let mut bytes = write::header(&header, escaped);
    bytes[..3].copy_from_slice(&write::UNFINISHED);
    bytes.resize(layout.file_len(0).unwrap() as usize, 0);
    bytes
}

fn title(d: &mut Definitions, text: &str) -> Result<()> {
    d.put_att(None, "title", NcType::Char, text.as_bytes())
}

fn units(d: &mut Definitions, text: &str) -> Result<()> {
    d.put_att(Some(0), "units", NcType::Char, text.as_bytes())
}

#[test]
fn ranks_redefine_together() {
    let roomy = Alignment { h_minfree: 4096, v_minfree: 4096, ..Alignment::default() };
    let cases: [(Alignment, [Vec<Op>; 3], bool); 4] = [
        (roomy, [vec![Op::var("c0", &["x"])], vec![Op::var("c1", &["x"])], vec![]], false),
        (roomy, [vec![], vec![Op::var("p/c", &["x"])], vec![Op::var("t", &["time"])]], true),
        (Alignment::default(), [vec![Op::var("c0", &["x"])], vec![], vec![]], true),
        (roomy, [vec![Op::dim("n", 3), Op::var("c", &["n"])], vec![], vec![Op::dim("n", 3)]], false),
    ];
    for (alignment, added, expected_moves) in cases {
        let old = before(&alignment);
        // One rank does what all do, in their order.
        let mut alone = Definitions::from_header(Format::Classic(Version::Cdf5), old.clone());
        alone.rename_var(0, "renamed").unwrap();
        alone.put_att(Some(0), "units", NcType::Char, b"kilometres").unwrap();
        alone.put_att(None, "title", NcType::Char, b"a new title").unwrap();
        alone.rename_dim(1, "columns").unwrap();
        let named = |op: &Op| match op {
            Op::Var(name, ty, dims, attrs) => {
                let dims = dims.iter().map(|dim| dim.replace('x', "columns")).collect();
                Op::Var(name.clone(), *ty, dims, attrs.clone())
            }
            other => other.clone(),
        };
        let ops: Vec<Op> = serial(&added).iter().map(named).collect();
        define(&mut alone, &ops).unwrap();
        let expected = again(&mut alone, &old);
        let [a, b, c] = added;
        let ranks: [Again; 3] = [
            (vec![|d| d.put_att(None, "title", NcType::Char, b"a new title")], a),
            (
                vec![|d| d.rename_var(0, "renamed"), |d| {
                    d.put_att(Some(0), "units", NcType::Char, b"kilometres")
                }],
                b,
            ),
            (
                vec![|d| d.rename_dim(1, "columns").and_then(|()| d.rename_dim(1, "x")), |d| {
                    d.rename_dim(1, "columns")
                }],
                vec![],
            ),
        ];
        let mut ranks = ranks.to_vec();
        ranks[2].1 = c.iter().map(named).collect();
        for strategy in [Strategy::Scalable, Strategy::LibrarySort, Strategy::App] {
            for (rank, result) in redefine(&old, &ranks, strategy).into_iter().enumerate() {
                let (bytes, moves, ids) = result.unwrap();
                assert!(bytes == expected, "{strategy:?}");
                assert_eq!(moves, expected_moves);
                assert_eq!(ids[..4], [0, 1, 2, 3], "rank {rank}: the file's numbers stay");
            }
        }
    }
}

#[test]
fn a_thing_that_is_changed_several_times_is_as_it_is_at_last() {
    type Step = fn(&mut Definitions) -> Result<()>;
    let twice: [Step; 6] = [
        |d| title(d, "a").and_then(|()| title(d, "b")),
        |d| units(d, "km").and_then(|()| units(d, "mm")),
        |d| d.rename_var(0, "once").and_then(|()| d.rename_var(0, "twice")),
        |d| d.rename_dim(1, "once").and_then(|()| d.rename_dim(1, "twice")),
        // Objects exchange names.
        |d| d.rename_var(0, "t").and_then(|()| d.rename_var(2, "a")).and_then(|()| d.rename_var(0, "b")),
        // An attribute is deleted and put again: it is the last one now.
        |d| d.del_att(None, "title").and_then(|()| title(d, "new")),
    ];
    let at_last: [Step; 6] = [
        |d| title(d, "b"),
        |d| units(d, "mm"),
        |d| d.rename_var(0, "twice"),
        |d| d.rename_dim(1, "twice"),
        twice[4],
        twice[5],
    ];
    let old = before(&Alignment::default());
    for (twice, at_last) in twice.into_iter().zip(at_last) {
        let mut alone = Definitions::from_header(Format::Classic(Version::Cdf5), old.clone());
        twice(&mut alone).unwrap();
        let expected = again(&mut alone, &old);
        let nothing: Step = |_| Ok(());
        for ranks in
            [[twice; 3], [twice, nothing, nothing], [nothing, twice, at_last], [at_last, twice, nothing]]
        {
            let ranks = ranks.map(|step| (vec![step], vec![]));
            for strategy in [Strategy::Scalable, Strategy::LibrarySort] {
                for result in redefine(&old, &ranks, strategy) {
                    assert!(result.unwrap().0 == expected);
                }
            }
        }
    }
}

#[test]
fn one_name_given_to_two_objects_of_the_file_is_refused() {
    let old = before(&Alignment::default());
    let cases: [[Again; 2]; 2] = [
        [(vec![|d| d.rename_var(0, "c")], vec![]), (vec![|d| d.rename_var(2, "c")], vec![])],
        [(vec![|d| d.rename_var(0, "c")], vec![]), (vec![], vec![Op::var("c", &["x"])])],
    ];
    for ranks in cases {
        for result in redefine(&old, &ranks, Strategy::Scalable) {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert!(error.message().contains("variable `c` is already defined"), "{error}");
        }
    }
}

#[test]
fn a_rank_tells_its_own_changes_only_when_enddef_is_tried_again() {
    let old = before(&Alignment::default());
    let mut alone = Definitions::from_header(Format::Classic(Version::Cdf5), old.clone());
    alone.rename_var(0, "two").unwrap();
    title(&mut alone, "two").unwrap();
    units(&mut alone, "two").unwrap();
    define(&mut alone, &[Op::dim("n", 1), Op::dim("m", 2)]).unwrap();
    let expected = again(&mut alone, &old);
    let results = threads::run(2, None, SimWorld::memory().disk, threads::Faults::none(), |comm| {
        let team = Team::new(comm);
        let rank = team.rank();
        let mut d = Definitions::from_header(Format::Classic(old.version), old.clone());
        let change = |d: &mut Definitions, text: &str| match rank {
            0 => d.rename_var(0, text).and_then(|()| title(d, text)).and_then(|()| units(d, text)),
            _ => Ok(()),
        };
        change(&mut d, "one")?;
        let own = d.def_dim("n", Some(rank as u64 + 1))?;
        let options = EnddefOptions { old: Some(&old), ..options(Strategy::Scalable) };
        let refused = plan(&team, &mut d, &options).unwrap_err();
        assert!(refused.message().contains("dimension `n`"), "{refused}");
        // Rank 1 has adopted the change of rank 0, which now makes another one.
        assert_eq!(d.header().vars.names.get(0), "one");
        change(&mut d, "two")?;
        if rank == 1 {
            d.rename_dim(own, "m")?;
        }
        let planned = plan(&team, &mut d, &options)?;
        let file = team.open("create", Path::new("/again.nc"), FileMode::CreateNew)?;
        planned.write(&file, &mut d, &options)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    });
    for result in results {
        assert!(result.unwrap() == expected);
    }
}

#[test]
fn a_hash_table_that_no_memory_holds_is_refused_on_all_ranks() {
    let ranks = [vec![Op::dim("x", 3)], vec![Op::dim("y", 3)], vec![]];
    for slots in [MAX_SLOTS + 1, 1 << 40, 1 << 62, usize::MAX] {
        let (kind, message) = refused(&ranks, Version::Cdf5, Strategy::LibraryHash { slots });
        assert_eq!(kind, ErrorKind::Invalid);
        assert!(message.contains(&format!("{slots} slots exceeds the limit of {MAX_SLOTS}")), "{message}");
    }
}

#[test]
fn two_record_dimensions_are_told_with_their_ranks_by_every_strategy() {
    let ranks = [
        vec![Op::dim("n", 3)],
        vec![Op::record("a/time")],
        vec![Op::record("step")],
        vec![Op::record("a/time")],
    ];
    for strategy in STRATEGIES {
        let (kind, message) = refused(&ranks, Version::Cdf5, strategy);
        assert_eq!(kind, ErrorKind::Conflict);
        assert!(message.contains("`a/time` on rank 1, `step` on rank 2"), "{strategy:?}: {message}");
    }
}

#[test]
fn changes_of_one_thing_in_two_ways_are_in_conflict() {
    let old = before(&Alignment::default());
    let ranks: [Again; 3] = [
        (vec![|d| d.rename_var(0, "one")], vec![]),
        (vec![], vec![]),
        (vec![|d| d.rename_var(0, "other")], vec![]),
    ];
    for result in redefine(&old, &ranks, Strategy::Scalable) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(
            error.message().contains("ranks 0 and 2 change the name of variable number 0 differently"),
            "{error}"
        );
    }
    let ranks: [Again; 2] = [(vec![], vec![Op::dim("n", 1)]), (vec![], vec![Op::dim("n", 2)])];
    for result in redefine(&old, &ranks, Strategy::Scalable) {
        assert!(result.unwrap_err().message().contains("length 1 on rank 0; 2 on rank 1"));
    }
}
