//! Random groups, compared element by element with a model: views of all kinds, every type of a netCDF variable,
//! levels, orders, holes, 1 to 64 ranks. In whatever way a group is written, its files are equal byte by byte, and
//! any other ranks can read it back.
//!
//! `FIELDSTONE_CRASH=full` runs 3,000 cases, and `FIELDSTONE_SEED` one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::files::deferred::DeferredWriter;
use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::files::sets::SetDecl;
use fieldstone_array::distributed::group::{
    ArraySource, DurableArray, Group, GroupSettings, GroupSpec, MemoryMut,
};
use fieldstone_array::distributed::plan::{FileArray, Method, PastFileEnd};
use fieldstone_core::Result;
use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team};
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::env::{Disk, Env};
use fieldstone_format::netcdf::Attrs;
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::{require, seeded};

use crate::distributed_files::{FOLDER, METHODS, names, read_file, shown_by};
use crate::distributed_memory::{OwnMemory, Strided, turn, value};
use crate::distributed_model::{
    Spec, dealt_anew, exclusive, irregular, joined, number_of_ranks, reading, stored,
};

/// All types that a variable of CDF-5 can hold.
const TYPES: [&str; 17] = [
    "bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16", "S1", "S5", "S16", ">i4",
];

/// An action of all ranks on one set.
#[derive(Debug, Clone)]
enum Act {
    /// Writes the set at a step, with the extent if it varies, and the seed of its elements.
    Write {
        set: usize,
        step: i64,
        extent: u64,
        salt: u64,
    },
    Flush,
}

/// The set, the step, the extent and the salt of a write.
type WriteNumbers = (usize, i64, u64, u64);
/// The ranks' views for a write's array, and those for reading it directly afterwards.
type WriteViews = (Vec<Spec>, Vec<Spec>);

/// A group and the actions on it.
#[derive(Debug, Clone)]
struct Case {
    level: Level,
    reversed: bool,
    /// In the caller's order; the first extent of a set that varies changes with each write.
    shape: Vec<u64>,
    /// As in files.
    sets: Vec<SetDecl>,
    acts: Vec<Act>,
    buffer: usize,
}

/// The way in which a group is written: its ranks, and their views of each write's array.
#[derive(Clone)]
struct Job {
    ranks: usize,
    method: Method,
    writers: Option<usize>,
    buffer: usize,
    deferred: bool,
    seed: u64,
    /// For each write.
    views: Vec<WriteViews>,
    /// For each write: the resulting bytes, and the number of unwritten elements.
    expected: Arc<Vec<(Vec<u8>, u64)>>,
}

/// The durable arrays, with their expected bytes.
type Durable = Vec<(DurableArray, Vec<u8>)>;

impl Case {
    fn random(random: &mut Random) -> Case {
        let level = *random.pick(&[Level::One, Level::Two, Level::Three]);
        let reversed = random.coin();
        let dims = 1 + random.index(3);
        let shape: Vec<u64> = (0..dims).map(|_| 1 + random.below([900, 40, 12][dims - 1])).collect();
        let mut file_shape = shape.clone();
        if reversed {
            file_shape.reverse();
        }
        let set = |n: usize, random: &mut Random| {
            let dtype = DType::parse(TYPES[random.index(TYPES.len())]).unwrap();
            let mut shape: Vec<Option<u64>> = file_shape.iter().map(|len| Some(*len)).collect();
            if !reversed && random.one_in(4) {
                shape[0] = None;
            }
            // One netCDF value gives both parts of a complex number, and all characters.
            let word = dtype.word();
            let fill = random.coin().then(|| vec![7; word].repeat(dtype.size() / word));
            let (dims, attrs) = (vec![None; dims], Attrs::default());
            SetDecl { name: format!("set{n}"), dtype, shape, dims, attrs, fill }
        };
        let sets: Vec<SetDecl> = (0..1 + random.index(3)).map(|n| set(n, random)).collect();
        let mut acts = Vec::new();
        for salt in 0..2 + random.below(5) {
            let (set, step) = (random.index(sets.len()), random.below(3) as i64 - 1);
            let extent = random.below(shape[0] + 3);
            acts.push(Act::Write { set, step, extent, salt });
            if random.one_in(3) {
                acts.push(Act::Flush);
            }
        }
        acts.push(Act::Flush);
        let buffer = *random.pick(&[1, 500, 20_000, 64 << 20]);
        Case { level, reversed, shape, sets, acts, buffer }
    }

    fn writes(&self) -> impl Iterator<Item = WriteNumbers> {
        self.acts.iter().filter_map(|act| match act {
            Act::Write { set, step, extent, salt } => Some((*set, *step, *extent, *salt)),
            Act::Flush => None,
        })
    }

    /// The shape of a set at a write, in the caller's order.
    fn shape(&self, set: usize, extent: u64) -> Vec<u64> {
        let mut shape = self.shape.clone();
        if self.sets[set].is_varying() {
            shape[0] = extent;
        }
        shape
    }

    /// The position of a view's element in the array as in files.
    fn stored(&self, spec: &Spec, shape: &[u64], at: u64) -> u64 {
        if self.reversed { stored(spec, shape, at) } else { at }
    }

    /// An element in a file.
    fn element(&self, set: usize, salt: u64, at: u64) -> Vec<u8> {
        let dtype = self.sets[set].dtype;
        let mut bytes = value(at + salt * 1009 + set as u64, dtype.size());
        if dtype == DType::BOOL {
            bytes[0] &= 1;
        }
        bytes
    }

    /// The file's value of an element that no rank writes.
    fn missing(&self, set: usize) -> Vec<u8> {
        let (dtype, native) = (self.sets[set].dtype, self.sets[set].dtype.to_native());
        let mut fill = self.sets[set].fill.clone().unwrap_or_else(|| native.default_fill());
        turn(native, dtype.with_order(ByteOrder::Big), &mut fill);
        fill
    }

    /// The array of each write as ranks leave it, with the number of unwritten elements.
    fn expected(&self, views: &[WriteViews]) -> Vec<(Vec<u8>, u64)> {
        let array = |((set, _, extent, salt), (specs, _)): (WriteNumbers, &WriteViews)| {
            let shape = self.shape(set, extent);
            let (total, size) = (shape.iter().product::<u64>(), self.sets[set].dtype.size());
            let mut bytes = self.missing(set).repeat(total as usize);
            let written = self.written(&shape, specs);
            for at in &written {
                bytes[*at as usize * size..][..size].copy_from_slice(&self.element(set, salt, *at));
            }
            (bytes, total - written.len() as u64)
        };
        self.writes().zip(views).map(array).collect()
    }

    /// The elements that some rank writes, in the files' order.
    fn written(&self, shape: &[u64], specs: &[Spec]) -> BTreeSet<u64> {
        let ranks = specs.iter().enumerate();
        ranks
            .flat_map(|(rank, spec)| spec.model(shape, rank).1.into_iter().flatten().map(move |e| (spec, e)))
            .filter(|(_, (_, is_written))| *is_written)
            .map(|(spec, (at, _))| self.stored(spec, shape, at))
            .collect()
    }

    fn group(&self, team: &Team, disk: &Arc<dyn Disk>, job: &Job) -> Result<Group> {
        let (name, level, sets) = ("g".to_owned(), Some(self.level), self.sets.clone());
        let spec = GroupSpec { name, level, sets, attrs: Attrs::default(), reversed: self.reversed };
        let Job { method, buffer, writers, .. } = *job;
        let settings =
            GroupSettings { method, buffer, writers, readers: writers, ..GroupSettings::default() };
        Group::new(team.clone(), disk.clone(), Path::new(FOLDER), spec, settings)
    }
}

impl Job {
    /// `like` has the views of another job, whose elements this one must write, too.
    fn random(random: &mut Random, case: &Case, ranks: usize, method: Method, like: Option<&Job>) -> Job {
        let mut fixed: BTreeMap<usize, Vec<Spec>> = BTreeMap::new();
        let mut views = Vec::new();
        for (n, (set, _, extent, _)) in case.writes().enumerate() {
            let shape = case.shape(set, extent);
            let specs = match (case.sets[set].is_varying(), like) {
                (true, _) => joined(random, extent, ranks),
                (false, Some(other)) => {
                    let elements = || case.written(&shape, &other.views[n].0);
                    fixed.entry(set).or_insert_with(|| dealt_anew(random, elements(), ranks)).clone()
                }
                (false, None) => {
                    let made = |random: &mut Random| match random.below(5) {
                        0 => irregular(random, &shape, ranks, true),
                        _ => exclusive(random, &shape, ranks),
                    };
                    fixed.entry(set).or_insert_with(|| made(random)).clone()
                }
            };
            views.push((specs, reading(random, &shape, ranks)));
        }
        let writers = random.coin().then(|| 1 + random.index(ranks));
        let (buffer, deferred, seed) = (case.buffer, random.coin(), random.next_u64() >> 8);
        let expected = like.map_or_else(|| Arc::new(case.expected(&views)), |like| like.expected.clone());
        Job { ranks, method, writers, buffer, deferred, seed, views, expected }
    }

    /// One run in four is free; the others repeat exactly.
    fn schedule(&self) -> Option<u64> {
        (!self.seed.is_multiple_of(4)).then_some(self.seed)
    }

    /// Writes everything, reads each write directly afterwards, and returns what each flush made durable.
    fn run(&self, case: &Case) -> (Env, Durable) {
        let env = SimWorld::memory();
        env.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let disk = env.disk.clone();
        let each = |comm: Arc<dyn Comm>| self.on_rank(case, &Team::new(comm), &disk);
        let all = threads::run(self.ranks, self.schedule(), disk.clone(), Faults::none(), each);
        let durable = all.into_iter().map(|durable| durable.unwrap()).next().unwrap();
        (env, durable)
    }

    fn on_rank(&self, case: &Case, team: &Team, disk: &Arc<dyn Disk>) -> Result<Durable> {
        let mut group = case.group(team, disk, self)?;
        let (rank, hints) = (team.rank(), Hints::default());
        let writer = self.deferred.then(|| DeferredWriter::new(64));
        let (mut durable, mut waiting, mut nth) = (Vec::new(), BTreeMap::new(), 0usize);
        for act in &case.acts {
            let Act::Write { set, step, extent, salt } = *act else {
                for array in group.prepare()? {
                    let of_write: Option<usize> = waiting.remove(&(array.set.set, array.set.step));
                    let (bytes, missing) = &self.expected[of_write.unwrap()];
                    let holes = if case.sets[array.set.set].fill.is_some() { 0 } else { *missing };
                    assert_eq!(array.holes, holes, "holes of {:?}", array.set);
                    durable.push((array, bytes.clone()));
                }
                group.show()?;
                continue;
            };
            let (specs, asked) = &self.views[nth];
            let (shape, spec) = (case.shape(set, extent), &specs[rank]);
            // A view that was declared once serves all steps; that of a varying set has another count each time.
            let is_said = group.view(set).is_some_and(|view| *view == spec.view());
            if !is_said {
                group.set_view(&spec.view(), &[set]);
            }
            let (local, elements) = spec.model(&shape, rank);
            let mut memory = OwnMemory::new(case.sets[set].dtype, &local, self.seed + nth as u64);
            for (offset, element) in memory.strided.offsets(&local).into_iter().zip(&elements) {
                if let Some((at, true)) = element {
                    let bytes = case.element(set, salt, case.stored(spec, &shape, *at));
                    memory.put(offset, bytes);
                }
            }
            group.write(set, step, Ok(memory.shared(&local)), (writer.as_ref(), &hints))?;
            let (whole, _) = &self.expected[nth];
            // Reads before the flush, from a file that does not show it.
            if let Some(source) = group.written(set, step)? {
                read(case, &mut group, (set, step), (&source, whole), &asked[rank], (rank, self.seed))?;
            }
            waiting.insert((set, step), nth);
            nth += 1;
        }
        group.close()?;
        Ok(durable)
    }
}

/// Reads an array by its own view, and compares all memory, including the part outside the view.
fn read(
    case: &Case,
    group: &mut Group,
    (set, step): (usize, i64),
    (source, whole): (&ArraySource, &[u8]),
    spec: &Spec,
    (rank, seed): (usize, u64),
) -> Result<()> {
    let (view, hints, mut shape) = (spec.view(), Hints::default(), source.shape.clone());
    if case.reversed {
        shape.reverse();
    }
    let joined = group.agree_read((set, step), (Some(&view), &hints), Ok(()))?;
    let resolved = group.begin_read(set, &source.shape, Some(&view), joined)?;
    let (local, elements) = spec.model(&shape, rank);
    assert_eq!(group.shown(&resolved), local);
    let mut expected = OwnMemory::new(case.sets[set].dtype, &local, seed ^ rank as u64);
    let mut memory = OwnMemory::new(case.sets[set].dtype, &local, seed ^ rank as u64);
    let size = case.sets[set].dtype.size();
    for (offset, element) in expected.strided.offsets(&local).into_iter().zip(&elements) {
        if let Some((at, _)) = element {
            let from = case.stored(spec, &shape, *at) as usize * size;
            expected.put(offset, whole[from..from + size].to_vec());
        }
    }
    let Strided { bytes, strides, origin } = &mut memory.strided;
    let into = MemoryMut { bytes, dtype: memory.dtype, shape: &local, strides, origin: *origin };
    group.read(set, source, (&resolved, &hints), Ok(into))?;
    assert!(memory.strided.bytes == expected.strided.bytes, "rank {rank} reads {spec:?} of {shape:?}");
    Ok(())
}

/// Other ranks, with their own views, read the data that a job has left.
fn read_back(random: &mut Random, case: &Case, env: &Env, durable: &Durable) {
    let (ranks, method) = (number_of_ranks(random), *random.pick(&METHODS));
    let job = Job::random(random, case, ranks, method, None);
    let mut views = |(array, _): &(DurableArray, Vec<u8>)| {
        let mut shape = array.shape.clone();
        if case.reversed {
            shape.reverse();
        }
        reading(random, &shape, ranks)
    };
    let asked: Vec<Vec<Spec>> = durable.iter().map(&mut views).collect();
    let disk = env.disk.clone();
    let outcomes = threads::run(ranks, job.schedule(), disk.clone(), Faults::none(), |comm| {
        let team = Team::new(comm);
        let mut group = case.group(&team, &disk, &job)?;
        for ((array, whole), asked) in durable.iter().zip(&asked) {
            let file = team.open("read", &Path::new(FOLDER).join(&array.set.file), FileMode::Read)?;
            let dtype = case.sets[array.set.set].dtype;
            let source = ArraySource {
                file: file.reader(),
                array: FileArray::dense(array.set.extent.offset, dtype.size() as u64),
                shape: array.shape.clone(),
                dtype: dtype.with_order(ByteOrder::Big),
                past_end: PastFileEnd::Corrupt,
            };
            let (set, step) = (array.set.set, array.set.step);
            let rank = team.rank();
            read(case, &mut group, (set, step), (&source, whole), &asked[rank], (rank, job.seed))?;
            file.close("read", Ok(()))?;
        }
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

fn one_case(seed: u64) -> usize {
    let random = &mut *seeded(seed);
    let case = Case::random(random);
    let ranks = number_of_ranks(random);
    let first = Job::random(random, &case, ranks, Method::Exchange, None);
    let (env, durable) = first.run(&case);
    let files = |env: &Env| -> Vec<(String, Vec<u8>)> {
        names(&*env.disk).into_iter().map(|name| (name.clone(), read_file(&*env.disk, &name))).collect()
    };
    let expected = files(&env);
    let mut found = BTreeMap::new();
    for (name, _) in &expected {
        for (variable, step, bytes) in shown_by(&env, name) {
            found.insert((name.clone(), variable, step), bytes);
        }
    }
    for (array, bytes) in &durable {
        let set = &array.set;
        let key = (set.file.clone(), case.sets[set.set].name.clone(), set.step);
        assert!(found.get(&key) == Some(bytes), "seed {seed}: {key:?} of {case:?}");
    }
    read_back(random, &case, &env, &durable);
    // The same elements by all methods, and by other ranks with another distribution.
    let mut jobs = vec![first.clone(); 3];
    for (job, method) in jobs.iter_mut().zip([Method::Auto, Method::Direct, Method::View]) {
        (job.method, job.deferred) = (method, random.coin());
    }
    for ranks in [1, number_of_ranks(random)] {
        let method = *random.pick(&METHODS);
        jobs.push(Job::random(random, &case, ranks, method, Some(&first)));
    }
    for job in &jobs {
        let (env, other) = job.run(&case);
        assert_eq!(other, durable, "seed {seed}: {:?} by {} ranks", job.method, job.ranks);
        assert!(files(&env) == expected, "seed {seed}: {:?} by {} ranks: {case:?}", job.method, job.ranks);
    }
    1 + jobs.len()
}

#[test]
fn random_groups_leave_equal_files_whoever_writes_them_and_any_ranks_read_them_back() {
    let count = if require::full() { 3_000 } else { 60 };
    let jobs: usize = seeds(count).map(one_case).sum();
    println!("{count} cases, written by {jobs} jobs");
}
