//! A random run of a group: its sets, the jobs that write them one after another, and the final state, computed
//! separately, element by element.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone::arrays::{GroupOptions, LevelChoice, Method, SetOptions};
use fieldstone::catalog::{ArrayLayout, StorageOrder};
use fieldstone::{ByteOrder, DType};
use fieldstone_testkit::Random;

use crate::distributed_memory::{turn, value};
use crate::distributed_model::{
    Spec, dealt_anew, exclusive, irregular, joined, number_of_ranks, reading, stored,
};

/// Types that files can hold, then those that only logs can hold.
const TYPES: [&str; 21] = [
    "bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16", "S1", "S5", "S16",
    ">i4", "f2", "U3", "M8[ns]", "m8[s]",
];
const IN_FILES: usize = 17;

/// A set, as callers declare it; a first extent that varies differs at each write.
#[derive(Debug)]
pub struct Set {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub varies: bool,
    /// One element in this machine's byte order.
    pub fill: Option<Vec<u8>>,
}

/// An array as it is in files: big-endian, in their order.
#[derive(Debug)]
pub struct Stored {
    /// In the callers' order.
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
    /// Unwritten elements.
    pub missing: u64,
}

/// A write of all ranks, each rank's elements, and the views of the read that follows.
#[derive(Debug, Clone)]
pub struct Write {
    pub set: usize,
    pub step: i64,
    pub salt: u64,
    pub wait: bool,
    pub held: Vec<Spec>,
    pub asked: Vec<Spec>,
    pub stored: Arc<Stored>,
}

/// The acts of all ranks, in this order.
#[derive(Debug, Clone)]
pub enum Act {
    Write(Write),
    Flush,
    Discard,
}

/// The ranks of a job, and their acts.
#[derive(Debug, Clone)]
pub struct Job {
    pub ranks: usize,
    pub writers: Option<usize>,
    pub buffer: usize,
    pub seed: u64,
    /// Otherwise it takes the group that another job declared.
    pub declares: bool,
    pub acts: Vec<Act>,
}

/// By set and step.
pub type Shown = BTreeMap<(usize, i64), Arc<Stored>>;

/// A group, and the jobs that write it, one after another.
#[derive(Debug)]
pub struct Case {
    pub layout: ArrayLayout,
    /// Level of files; 0 if the library may choose.
    pub level: u64,
    pub method: Method,
    pub order: StorageOrder,
    pub sets: Vec<Set>,
    pub chunks: Option<Vec<u64>>,
    pub compression: Option<&'static str>,
    pub jobs: Vec<Job>,
}

impl Case {
    pub fn random(random: &mut Random) -> Case {
        let layout = if random.one_in(3) { ArrayLayout::Fields } else { ArrayLayout::Files };
        let in_files = layout == ArrayLayout::Files;
        let order = *random.pick(&[StorageOrder::C, StorageOrder::Fortran]);
        let sets: Vec<Set> =
            (0..1 + random.index(3)).map(|n| Set::random(random, n, in_files, order)).collect();
        let dims = sets[0].shape.len();
        let chunked = !in_files && random.coin() && sets.iter().all(|set| set.shape.len() == dims);
        let methods = [Method::Auto, Method::Direct, Method::Exchange, Method::View];
        let mut case = Case {
            layout,
            level: if in_files { random.below(4) } else { 0 },
            method: methods[random.index(if in_files { 4 } else { 3 })],
            order,
            chunks: chunked.then(|| (0..dims).map(|_| 1 + random.below(12)).collect()),
            compression: if in_files { None } else { *random.pick(&[None, Some("none"), Some("zstd:1")]) },
            sets,
            jobs: Vec::new(),
        };
        for _ in 0..1 + random.index(2) {
            let job = case.job(random);
            case.jobs.push(job);
        }
        case
    }

    fn job(&self, random: &mut Random) -> Job {
        let ranks = number_of_ranks(random);
        let declares = self.shown().is_empty() || random.coin();
        let mut said: BTreeMap<usize, Vec<Spec>> = BTreeMap::new();
        let mut acts = Vec::new();
        for _ in 0..1 + random.below(5) {
            match random.below(8) {
                0 => acts.push(Act::Discard),
                1 | 2 => acts.push(Act::Flush),
                _ => acts.push(Act::Write(self.write(random, ranks, &mut said))),
            }
        }
        let writers = random.coin().then(|| 1 + random.index(ranks));
        let buffer = *random.pick(&[1, 500, 20_000, 64 << 20]);
        Job { ranks, writers, buffer, seed: random.next_u64() >> 8, declares, acts }
    }

    /// `said`: the views of each set, which usually also serve the next write.
    fn write(&self, random: &mut Random, ranks: usize, said: &mut BTreeMap<usize, Vec<Spec>>) -> Write {
        let (set, step, salt) =
            (random.index(self.sets.len()), random.below(4) as i64 - 1, random.below(1000));
        let mut shape = self.sets[set].shape.clone();
        if self.sets[set].varies {
            shape[0] = random.below(shape[0] + 3);
            said.insert(set, joined(random, shape[0], ranks));
        } else if !said.contains_key(&set) || random.one_in(3) {
            let views = match random.below(5) {
                0 => irregular(random, &shape, ranks, true),
                _ => exclusive(random, &shape, ranks),
            };
            said.insert(set, views);
        }
        let (held, asked) = (said[&set].clone(), reading(random, &shape, ranks));
        let stored = Arc::new(self.stored_of((set, salt), &shape, &held));
        Write { set, step, salt, wait: random.coin(), held, asked, stored }
    }

    /// The same writes by other ranks, with the elements distributed differently, by another method.
    pub fn dealt_anew(&self, random: &mut Random) -> Case {
        let mut jobs = self.jobs.clone();
        for job in &mut jobs {
            (job.ranks, job.seed) = (number_of_ranks(random), random.next_u64() >> 8);
            job.writers = random.coin().then(|| 1 + random.index(job.ranks));
            for act in &mut job.acts {
                let Act::Write(write) = act else { continue };
                let shape = &write.stored.shape;
                write.held = match self.sets[write.set].varies {
                    true => joined(random, shape[0], job.ranks),
                    false => dealt_anew(random, self.written(shape, &write.held), job.ranks),
                };
                write.asked = reading(random, shape, job.ranks);
                write.wait = random.coin();
            }
        }
        let method = *random.pick(&[Method::Auto, Method::Direct, Method::Exchange, Method::View]);
        let sets = self.sets.iter().map(Set::again).collect();
        Case {
            layout: self.layout,
            level: self.level,
            order: self.order,
            method,
            sets,
            jobs,
            chunks: None,
            compression: None,
        }
    }

    /// The place of a view's element in the array of a file.
    pub fn place(&self, spec: &Spec, shape: &[u64], at: u64) -> u64 {
        if self.order == StorageOrder::Fortran { stored(spec, shape, at) } else { at }
    }

    /// An element in a file's byte order.
    pub fn element(&self, set: usize, salt: u64, at: u64) -> Vec<u8> {
        let dtype = self.sets[set].dtype;
        let mut bytes = value(at + salt * 1009 + set as u64, dtype.size());
        if dtype == DType::BOOL {
            bytes[0] &= 1;
        }
        bytes
    }

    /// The elements that some rank writes, in a file's byte order.
    fn written(&self, shape: &[u64], specs: &[Spec]) -> BTreeSet<u64> {
        let mut written = BTreeSet::new();
        for (rank, spec) in specs.iter().enumerate() {
            let own = spec.model(shape, rank).1.into_iter().flatten().filter(|(_, is_written)| *is_written);
            written.extend(own.map(|(at, _)| self.place(spec, shape, at)));
        }
        written
    }

    fn stored_of(&self, (set, salt): (usize, u64), shape: &[u64], specs: &[Spec]) -> Stored {
        let (native, total) = (self.sets[set].dtype.to_native(), shape.iter().product::<u64>());
        let mut fill = self.sets[set].fill.clone().unwrap_or_else(|| native.default_fill());
        turn(native, native.with_order(ByteOrder::Big), &mut fill);
        let (mut bytes, written) = (fill.repeat(total as usize), self.written(shape, specs));
        for at in &written {
            bytes[*at as usize * native.size()..][..native.size()]
                .copy_from_slice(&self.element(set, salt, *at));
        }
        Stored { shape: shape.to_vec(), bytes, missing: total - written.len() as u64 }
    }

    pub fn options(&self) -> GroupOptions {
        let level =
            if self.level == 0 { LevelChoice::Auto } else { LevelChoice::number(self.level).unwrap() };
        GroupOptions {
            level,
            method: self.method,
            order: self.order,
            chunks: self.chunks.clone(),
            compression: self.compression.map(str::to_owned),
            ..GroupOptions::new(self.sets.iter().map(Set::options))
        }
    }

    /// The state after all jobs: each ends with a flush.
    pub fn shown(&self) -> Shown {
        let (mut shown, mut waiting) = (Shown::new(), Shown::new());
        for job in &self.jobs {
            for act in job.acts.iter().chain([&Act::Flush]) {
                match act {
                    Act::Write(write) => drop(waiting.insert((write.set, write.step), write.stored.clone())),
                    Act::Flush => shown.append(&mut waiting),
                    Act::Discard => waiting.clear(),
                }
            }
        }
        shown
    }
}

impl Set {
    fn random(random: &mut Random, n: usize, in_files: bool, order: StorageOrder) -> Set {
        let dtype = DType::parse(TYPES[random.index(if in_files { IN_FILES } else { TYPES.len() })]).unwrap();
        let dims = 1 + random.index(3);
        let shape = (0..dims).map(|_| 1 + random.below([300, 24, 8][dims - 1])).collect();
        // One value of netCDF is a part of a complex number, or a single character.
        let word = dtype.word();
        let fill = random.coin().then(|| vec![1; word].repeat(dtype.size() / word));
        let varies = order == StorageOrder::C && random.one_in(4);
        Set { name: format!("set{n}"), dtype, shape, varies, fill }
    }

    fn again(&self) -> Set {
        let Set { name, dtype, shape, varies, fill } = self;
        Set { name: name.clone(), dtype: *dtype, shape: shape.clone(), varies: *varies, fill: fill.clone() }
    }

    fn options(&self) -> SetOptions {
        let mut options = SetOptions::new(&self.name, self.dtype, &self.shape);
        if self.varies {
            options.shape[0] = None;
        }
        SetOptions { fill: self.fill.clone(), ..options }
    }
}
