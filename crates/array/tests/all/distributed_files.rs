//! Files of groups: whatever any number of ranks writes, flushes or takes back, every tool that reads netCDF finds
//! the flushed steps and no others, and the bytes do not depend on the ranks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, Mode};
use fieldstone_array::distributed::buffer::{Buffer, Element};
use fieldstone_array::distributed::files::deferred::DeferredWriter;
use fieldstone_array::distributed::files::group_files::{DurableSet, GroupFiles};
use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::files::sets::SetDecl;
use fieldstone_array::distributed::plan::{Method, Planner, Settings, Write};
use fieldstone_array::distributed::view::View;
use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, Team};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env};
use fieldstone_format::netcdf::Attrs;
use fieldstone_testkit::seeded;

pub const FOLDER: &str = "/arrays";
pub const METHODS: [Method; 4] = [Method::Auto, Method::Direct, Method::Exchange, Method::View];

fn sets() -> Vec<SetDecl> {
    let set = |name: &str, dtype: &str, shape: &[Option<u64>]| SetDecl {
        name: name.into(),
        dtype: DType::parse(dtype).unwrap(),
        shape: shape.to_vec(),
        dims: vec![None; shape.len()],
        attrs: Attrs::default(),
        fill: None,
    };
    vec![
        set("p", "<f8", &[Some(6), Some(5)]),
        set("rho/mean", "<i2", &[Some(7)]),
        set("v", "<c8", &[Some(3)]),
        set("parts", "<f4", &[None, Some(2)]),
    ]
}

/// An action of all ranks.
#[derive(Debug, Clone)]
enum Act {
    /// Writes a set at a step: with the seed of its elements, and the extent if it varies.
    Write(usize, i64, u8, u64),
    /// Prepares and shows.
    Flush,
    /// Prepares and takes back.
    Undo,
    Discard,
}

fn random_acts(seed: u64) -> (Level, Vec<Act>) {
    let dice = &mut *seeded(seed);
    let level = [Level::One, Level::Two, Level::Three][dice.below(3) as usize];
    let count = 4 + dice.below(24);
    let act = |_| match dice.below(12) {
        0 | 1 => Act::Flush,
        2 => {
            if dice.below(2) == 0 {
                Act::Undo
            } else {
                Act::Discard
            }
        }
        _ => {
            Act::Write(dice.below(4) as usize, dice.below(5) as i64, 1 + dice.below(200) as u8, dice.below(4))
        }
    };
    let mut acts: Vec<Act> = (0..count).map(act).collect();
    acts.push(Act::Flush);
    (level, acts)
}

fn shape_of(decl: &SetDecl, extent: u64) -> Vec<u64> {
    decl.shape.iter().map(|len| len.unwrap_or(extent)).collect()
}

/// The bytes of a set in the file: each number has `mark` in its last byte.
fn bytes_of(decl: &SetDecl, extent: u64, mark: u8) -> Vec<u8> {
    let variable = decl.variable(decl.is_varying().then_some(extent)).unwrap();
    let mut one = vec![0; variable.word];
    one[variable.word - 1] = mark;
    one.repeat(variable.bytes as usize / variable.word)
}

type Shown = BTreeMap<(usize, i64), (DurableSet, Vec<u8>)>;

/// Performs the acts; returns the result of each flush that was shown, with the expected bytes.
fn perform(comm: Arc<dyn Comm>, disk: &Arc<dyn Disk>, level: Level, acts: &[Act]) -> Result<Shown> {
    let team = Team::new(comm);
    let mut files =
        GroupFiles::new(team.clone(), disk.clone(), Path::new(FOLDER), "g", level, sets(), Attrs::default())?;
    let planner = Planner::new();
    let writer = DeferredWriter::new(64);
    let (mut shown, mut waiting) = (Shown::new(), BTreeMap::new());
    for act in acts {
        match act {
            Act::Write(set, step, mark, extent) => {
                let decl = &sets()[*set];
                let varying = decl.is_varying().then_some(*extent);
                let slot = match mark % 3 {
                    0 => files.slot(*set, *step, varying)?,
                    _ => files.slot_deferred(*set, *step, varying, &writer)?,
                };
                let shape = shape_of(decl, *extent);
                let grid = &[team.size() as u64, 1][..shape.len()];
                let view = View::grid(grid).resolve(&shape, team.rank(), team.size())?;
                let word = decl.variable(varying)?.word;
                let element = Element::new(decl.dtype.size(), word)?;
                let mut one = vec![0; word];
                one[0] = *mark;
                let elements = view.local_shape().iter().product::<u64>() as usize;
                let bytes = one.repeat(elements * element.size() / word);
                let from = Buffer::new(&bytes, element, view.local_shape())?;
                let method = METHODS[*mark as usize % METHODS.len()];
                let settings = Settings { method, ..Settings::default() };
                let write = Write { view: &view, array: slot.array, from: &from, fill: None, settings };
                planner.write(&slot.file, "put", Ok(write))?;
                files.wrote((*set, *step), varying, slot);
                waiting.insert((*set, *step), bytes_of(decl, *extent, *mark));
            }
            Act::Flush => {
                for durable in files.prepare()? {
                    let bytes = waiting.remove(&(durable.set, durable.step)).unwrap();
                    shown.insert((durable.set, durable.step), (durable, bytes));
                }
                files.show()?;
            }
            Act::Undo => {
                files.prepare()?;
                files.undo()?;
                waiting.clear();
            }
            Act::Discard => {
                files.discard()?;
                waiting.clear();
            }
        }
    }
    files.close()?;
    Ok(shown)
}

pub fn names(disk: &dyn Disk) -> Vec<String> {
    let mut names: Vec<String> =
        disk.list_dir(Path::new(FOLDER)).unwrap().into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

pub fn read_file(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open_plain(&Path::new(FOLDER).join(name), false).unwrap();
    let mut bytes = vec![0; file.stat().unwrap().len as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn run(env: &Env, ranks: usize, level: Level, acts: &[Act]) -> Shown {
    env.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let disk = env.disk.clone();
    let all =
        threads::run(ranks, None, disk.clone(), Faults::none(), |comm| perform(comm, &disk, level, acts));
    all.into_iter().map(|shown| shown.unwrap()).next().unwrap()
}

/// Each variable of a file at each step that it shows, as bytes of the file.
pub fn shown_by(env: &Env, name: &str) -> Vec<(String, i64, Vec<u8>)> {
    let comm = Arc::new(SingleComm::new(env.disk.clone()));
    let file = Container::open(&Path::new(FOLDER).join(name), Mode::Read, comm, env).unwrap();
    let get = |var: &fieldstone_array::container::VarInfo, selection: &Selection| {
        let mut into = vec![0; selection.count.iter().product::<u64>() as usize * var.ty.size()];
        file.elements().get(var, selection, &mut into, var.ty, true).unwrap();
        into.chunks_mut(var.ty.size()).for_each(<[u8]>::reverse);
        into
    };
    let step = file.var("step").unwrap();
    let has_records = step.shape().len() == 1;
    let steps = get(&step, &Selection::all(&step.shape()));
    let mut all = Vec::new();
    for (record, number) in (0..).zip(steps.as_chunks::<8>().0) {
        for var in file.vars(0, 100).unwrap().iter().filter(|var| &*var.name != "step") {
            let mut selection = Selection::all(&var.shape());
            if has_records {
                (selection.start[0], selection.count[0]) = (record, 1);
            }
            all.push((var.name.to_string(), i64::from_be_bytes(*number), get(var, &selection)));
        }
    }
    all
}

#[test]
fn files_show_what_was_flushed_and_nothing_else_whatever_the_ranks() {
    for seed in 0..300 {
        let (level, acts) = random_acts(seed);
        let env = SimWorld::memory();
        let shown = run(&env, 1 + (seed % 4) as usize, level, &acts);
        let mut found: BTreeMap<(String, String, i64), Vec<u8>> = BTreeMap::new();
        for name in names(&*env.disk) {
            for (var, step, bytes) in shown_by(&env, &name) {
                found.insert((name.clone(), var, step), bytes);
            }
        }
        for ((set, step), (durable, bytes)) in &shown {
            let file = read_file(&*env.disk, &durable.file);
            let extent =
                durable.extent.offset as usize..(durable.extent.offset + durable.extent.len) as usize;
            assert!(file.get(extent).unwrap_or_default() == bytes, "seed {seed}: {durable:?} {acts:?}");
            let sums: Vec<u32> = if bytes.is_empty() { Vec::new() } else { vec![crc32c::crc32c(bytes)] };
            assert_eq!(durable.sums, sums, "seed {seed}");
            let key = (durable.file.clone(), sets()[*set].name.clone(), *step);
            assert_eq!(found.get(&key), Some(bytes), "seed {seed}: {key:?} {acts:?}");
        }
        // Data replaced by a newer version are still in their file, but it shows only flushed data.
        let mut flushed = 0;
        let mut open = std::collections::BTreeSet::new();
        for act in &acts {
            match act {
                Act::Write(set, step, ..) => drop(open.insert((*set, *step))),
                Act::Flush => (flushed, open) = (flushed + open.len(), Default::default()),
                Act::Undo | Act::Discard => open.clear(),
            }
        }
        assert_eq!(found.len(), flushed, "seed {seed}: {acts:?}");
    }
}

#[test]
fn bytes_do_not_depend_on_the_ranks() {
    for seed in 0..60 {
        let (level, acts) = random_acts(seed);
        let all = [1, 2, 3, 7].map(|ranks| {
            let env = SimWorld::memory();
            run(&env, ranks, level, &acts);
            names(&*env.disk).into_iter().map(|name| (read_file(&*env.disk, &name), name)).collect::<Vec<_>>()
        });
        assert!(all.iter().all(|files| *files == all[0]), "seed {seed}");
    }
}

/// Before it is shown, no file shows the step.
#[test]
fn what_is_prepared_is_seen_by_nobody() {
    for level in [Level::One, Level::Two, Level::Three] {
        let env = SimWorld::memory();
        env.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let disk = env.disk.clone();
        let seen = Mutex::new(Vec::new());
        let results = threads::run(1, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let mut files = GroupFiles::new(
                team.clone(),
                disk.clone(),
                Path::new(FOLDER),
                "g",
                level,
                sets(),
                Attrs::default(),
            )?;
            for set in 0..3 {
                let slot = files.slot(set, 0, None)?;
                let bytes = vec![7; sets()[set].variable(None)?.bytes as usize];
                slot.file.write_at(&bytes, slot.array.begin)?;
                files.wrote((set, 0), None, slot);
            }
            let count = || {
                let comm = |env: &Env| Arc::new(SingleComm::new(env.disk.clone()));
                let open = |name: &String| {
                    Container::open(&Path::new(FOLDER).join(name), Mode::Read, comm(&env), &env)
                };
                let has_step = |name: &String| {
                    open(name).is_ok_and(|file| file.numrecs().unwrap() > 0 || level == Level::One)
                };
                names(&*disk).iter().filter(|name| has_step(name)).count()
            };
            files.prepare()?;
            let before = count();
            files.show()?;
            seen.lock().unwrap().extend([before, count()]);
            files.close()
        });
        results.into_iter().for_each(|result| result.unwrap());
        assert_eq!(*seen.lock().unwrap(), [0, if level == Level::Three { 1 } else { 3 }], "{level:?}");
    }
}

/// In whatever way blocks are written (whole, in pieces, one element at a time, over filled data), their checksums
/// match the bytes in the file.
#[test]
fn checksums_are_those_of_the_bytes_that_are_written() {
    const ELEMENTS: u64 = 150_000;
    for seed in 0..24 {
        let dice = &mut *seeded(seed);
        let ranks = 1 + dice.below(4) as usize;
        let env = SimWorld::memory();
        env.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let disk = env.disk.clone();
        let mut all: Vec<i64> = (0..ELEMENTS as i64).collect();
        let how = dice.below(3);
        if how == 1 {
            (1..all.len()).for_each(|i| all.swap(i, dice.below(i as u64 + 1) as usize));
        }
        // Some elements have no writer: they are filled.
        all.truncate(all.len() - if how == 2 { 1_000 } else { 0 });
        let results = threads::run(ranks, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let shape = vec![Some(ELEMENTS)];
            let (dtype, dims, attrs) = (DType::F4, vec![None], Attrs::default());
            let set = SetDecl { name: "a".into(), dtype, shape, dims, attrs: attrs.clone(), fill: None };
            let folder = Path::new(FOLDER);
            let mut files =
                GroupFiles::new(team.clone(), disk.clone(), folder, "g", Level::Two, vec![set], attrs)?;
            let slot = files.slot(0, 5, None)?;
            let each = all.len().div_ceil(ranks);
            let map = all.chunks(each).nth(team.rank()).unwrap_or_default();
            let view = View::irregular(map, None, None).resolve(&[ELEMENTS], team.rank(), ranks)?;
            let bytes: Vec<u8> = map.iter().flat_map(|element| (*element as f32).to_ne_bytes()).collect();
            let from = Buffer::new(&bytes, Element::new(4, 4)?, view.local_shape())?;
            let method = METHODS[seed as usize % METHODS.len()];
            let settings = Settings { method, buffer: 1 << 18, ..Settings::default() };
            let fill: &[u8] = &[9, 9, 9, 9];
            let write = Write { view: &view, array: slot.array, from: &from, fill: Some(fill), settings };
            Planner::new().write(&slot.file, "put", Ok(write))?;
            files.wrote((0, 5), None, slot);
            let durable = files.prepare()?;
            files.show()?;
            files.close()?;
            Ok(durable)
        });
        let durable = results.into_iter().map(|durable| durable.unwrap()).next().unwrap();
        let file = read_file(&*env.disk, &durable[0].file);
        let extent = durable[0].extent;
        let slab = &file[extent.offset as usize..(extent.offset + extent.len) as usize];
        let sums: Vec<u32> = slab.chunks(4 * 65_536).map(crc32c::crc32c).collect();
        assert_eq!(durable[0].sums, sums, "seed {seed}");
        let element = |i: usize| f32::from_be_bytes(*slab[i * 4..].first_chunk().unwrap());
        assert!((0..all.len() - 1).all(|i| how == 1 || element(i) == i as f32), "seed {seed}");
    }
}
