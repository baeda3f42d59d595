//! A second implementation of views: element by element, without the library.

use std::collections::BTreeSet;

use fieldstone_array::distributed::view::{Halo, View};
use fieldstone_core::env::sim::Random;

/// One rank's declaration.
#[derive(Debug, Clone)]
pub enum Spec {
    Block { start: Vec<u64>, count: Vec<u64>, halo: Vec<(u64, u64)>, stride: Vec<u64> },
    Grid { grid: Vec<u64>, halo: u64 },
    Cyclic { grid: Vec<u64>, blocks: Vec<u64> },
    Irregular { map: Vec<i64>, owned: Option<u64>, dim: Option<usize> },
    Joined { count: u64, before: u64 },
}

/// For each element of a rank's memory in C order: its index in the array, and whether it is written.
pub type Elements = Vec<Option<(u64, bool)>>;

impl Spec {
    pub fn view(&self) -> View {
        match self {
            Spec::Block { start, count, halo, stride } => {
                View::block(start, count).halo(Halo::Each(halo.clone())).stride(stride)
            }
            Spec::Grid { grid, halo } => View::grid(grid).halo(*halo),
            Spec::Cyclic { grid, blocks } => View::cyclic(grid, blocks),
            Spec::Irregular { map, owned, dim } => View::irregular(map.clone(), *owned, *dim),
            Spec::Joined { count, .. } => View::joined(*count),
        }
    }

    pub fn before(&self) -> u64 {
        if let Spec::Joined { before, .. } = self { *before } else { 0 }
    }

    /// The shape of memory, and its elements.
    pub fn model(&self, shape: &[u64], rank: usize) -> (Vec<u64>, Elements) {
        // For each dimension: index and whether it is written, by position.
        type Places = Vec<Vec<Option<(u64, bool)>>>;
        let product =
            |places: &Places, shape: &[u64]| {
                let local: Vec<u64> = places.iter().map(|places| places.len() as u64).collect();
                let mut elements = vec![Some((0, true))];
                for (places, len) in places.iter().zip(shape) {
                    let mut next = Vec::new();
                    for element in &elements {
                        for place in places {
                            let both = element.zip(*place);
                            next.push(both.map(|((at, w), (i, w2)): ((u64, bool), (u64, bool))| {
                                (at * len + i, w && w2)
                            }));
                        }
                    }
                    elements = next;
                }
                (local, elements)
            };
        let grid_at = |grid: &[u64]| {
            let mut at = vec![0; grid.len()];
            for _ in 0..rank {
                for i in (0..grid.len()).rev() {
                    at[i] += 1;
                    if at[i] < grid[i] {
                        break;
                    }
                    at[i] = 0;
                }
            }
            at
        };
        let wide =
            |start: &[u64], count: &[u64], halo: &[(u64, u64)], stride: &dyn Fn(usize) -> u64| -> Places {
                (0..shape.len())
                    .map(|i| {
                        let (before, behind) = (halo[i].0 as i64, halo[i].1 as i64);
                        (-before..count[i] as i64 + behind)
                            .map(|n| {
                                let index = start[i] as i64 + n * stride(i) as i64;
                                let inside = index >= 0 && index < shape[i] as i64;
                                inside.then_some((index as u64, n >= 0 && n < count[i] as i64))
                            })
                            .collect()
                    })
                    .collect()
            };
        match self {
            Spec::Block { start, count, halo, stride } => {
                let stride = |i: usize| stride.get(i).copied().unwrap_or(1);
                product(&wide(start, count, halo, &stride), shape)
            }
            Spec::Grid { grid, halo } => {
                let at = grid_at(grid);
                let parts = (0..shape.len()).map(|i| {
                    let sizes: Vec<u64> = (0..grid[i])
                        .map(|p| shape[i] / grid[i] + u64::from(p < shape[i] % grid[i]))
                        .collect();
                    (sizes[..at[i] as usize].iter().sum::<u64>(), sizes[at[i] as usize])
                });
                let (start, count): (Vec<_>, Vec<_>) = parts.unzip();
                product(&wide(&start, &count, &vec![(*halo, *halo); shape.len()], &|_| 1), shape)
            }
            Spec::Cyclic { grid, blocks } => {
                let at = grid_at(grid);
                let places = (0..shape.len()).map(|i| {
                    let mine = (0..shape[i]).filter(|index| index / blocks[i] % grid[i] == at[i]);
                    mine.map(|index| Some((index, true))).collect()
                });
                product(&places.collect(), shape)
            }
            Spec::Irregular { map, owned, dim } => {
                let owned = owned.unwrap_or(map.len() as u64);
                let entry =
                    |(n, index): (usize, &i64)| (*index >= 0).then_some((*index as u64, (n as u64) < owned));
                let mapped: Vec<_> = map.iter().enumerate().map(entry).collect();
                let Some(dim) = dim else { return (vec![map.len() as u64], mapped) };
                let whole = |len: u64| (0..len).map(|index| Some((index, true))).collect();
                let places =
                    (0..shape.len()).map(|i| if i == *dim { mapped.clone() } else { whole(shape[i]) });
                product(&places.collect(), shape)
            }
            Spec::Joined { count, before } => {
                let mut places: Places = vec![(0..*count).map(|n| Some((before + n, true))).collect()];
                places.extend(
                    shape[1..].iter().map(|len| (0..*len).map(|index| Some((index, true))).collect()),
                );
                product(&places, shape)
            }
        }
    }
}

/// A grid of `ranks` ranks over `dims` dimensions.
fn grid(random: &mut Random, ranks: usize, dims: usize) -> Vec<u64> {
    let mut grid = vec![1; dims];
    let mut left = ranks as u64;
    while left > 1 {
        let factor = (2..=left).find(|factor| left.is_multiple_of(*factor)).unwrap();
        grid[random.below(dims as u64) as usize] *= factor;
        left /= factor;
    }
    grid
}

/// Views of all ranks in which no element is written twice.
pub fn exclusive(random: &mut Random, shape: &[u64], ranks: usize) -> Vec<Spec> {
    let dims = shape.len();
    match random.below(5) {
        0 => {
            let (grid, halo) = (grid(random, ranks, dims), random.below(3));
            vec![Spec::Grid { grid, halo }; ranks]
        }
        1 => {
            let grid = grid(random, ranks, dims);
            let blocks = shape.iter().map(|len| 1 + random.below(len.max(&1) + 1)).collect();
            vec![Spec::Cyclic { grid, blocks }; ranks]
        }
        2 => {
            let mut before = 0;
            let mut joined = Vec::new();
            for rank in 0..ranks {
                let left = shape[0] - before;
                let count = if rank + 1 == ranks { left } else { random.below(left + 1) };
                joined.push(Spec::Joined { count, before });
                before += count;
            }
            joined
        }
        3 => {
            // Slabs along one dimension, some of them missing.
            let dim = random.below(dims as u64) as usize;
            let mut at = 0;
            let mut blocks = Vec::new();
            for _ in 0..ranks {
                at += random.below(3).min(shape[dim] - at);
                let len = random.below(shape[dim] - at + 1).min(1 + shape[dim] / ranks as u64);
                let (mut start, mut count) = (vec![0; dims], shape.to_vec());
                (start[dim], count[dim]) = (at, len);
                let halo = (0..dims).map(|_| (random.below(3), random.below(3))).collect();
                blocks.push(Spec::Block { start, count, halo, stride: Vec::new() });
                at += len;
            }
            blocks
        }
        _ => irregular(random, shape, ranks, false),
    }
}

/// Maps of all ranks; without `overlap`, no element is owned twice. Some elements have no owner, some entries are -1.
pub fn irregular(random: &mut Random, shape: &[u64], ranks: usize, overlap: bool) -> Vec<Spec> {
    let dim = Some(random.below(shape.len() as u64) as usize).filter(|_| random.below(2) == 0);
    let len = dim.map_or(shape.iter().product(), |dim| shape[dim]);
    let mut lists = vec![Vec::new(); ranks];
    let holes = random.below(3) * 10;
    let sorted = random.below(2) == 0;
    for index in 0..len {
        if random.below(100) >= holes {
            lists[random.below(ranks as u64) as usize].push(index as i64);
            if overlap && random.below(4) == 0 {
                lists[random.below(ranks as u64) as usize].push(index as i64);
            }
        }
    }
    lists
        .into_iter()
        .map(|mut map| {
            if !sorted {
                for n in (1..map.len()).rev() {
                    map.swap(n, random.below(n as u64 + 1) as usize);
                }
            }
            if random.below(3) == 0 {
                map.insert(random.below(map.len() as u64 + 1) as usize, -1);
            }
            let owned = Some(map.len() as u64).filter(|_| random.below(2) == 0);
            if owned.is_some() && len > 0 {
                map.extend((0..random.below(5)).map(|_| random.below(len + 1) as i64 - 1));
            }
            Spec::Irregular { map, owned, dim }
        })
        .collect()
}

/// Views for reading: also boxes anywhere, and strides.
pub fn reading(random: &mut Random, shape: &[u64], ranks: usize) -> Vec<Spec> {
    if random.below(2) == 0 {
        return exclusive(random, shape, ranks);
    }
    let mut block = |_| {
        let mut spec = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let strided = random.below(2) == 0;
        for len in shape {
            let stride = if strided { 1 + random.below(3) } else { 1 };
            let start = random.below(len + 1);
            let most = (len - start).div_ceil(stride);
            spec.0.push(start);
            spec.1.push(random.below(most + 1));
            let wide = !strided;
            spec.2.push(if wide { (random.below(3), random.below(3)) } else { (0, 0) });
            spec.3.push(stride);
        }
        Spec::Block { start: spec.0, count: spec.1, halo: spec.2, stride: spec.3 }
    };
    (0..ranks).map(&mut block).collect()
}

/// Position of element `at` (in C order of the caller's shape) in the file, counted in elements.
pub fn stored(spec: &Spec, shape: &[u64], at: u64) -> u64 {
    if matches!(spec, Spec::Irregular { dim: None, .. }) {
        return at;
    }
    let (mut left, mut index) = (at, vec![0; shape.len()]);
    for i in (0..shape.len()).rev() {
        index[i] = left % shape[i];
        left /= shape[i];
    }
    // The first index varies fastest.
    let (mut place, mut apart) = (0, 1);
    for (i, len) in shape.iter().enumerate() {
        place += index[i] * apart;
        apart *= len;
    }
    place
}

/// The same elements with another distribution: by number, to this number of ranks.
pub fn dealt_anew(random: &mut Random, elements: BTreeSet<u64>, ranks: usize) -> Vec<Spec> {
    let mut maps = vec![Vec::new(); ranks];
    elements.into_iter().for_each(|at| maps[random.index(ranks)].push(at as i64));
    let shuffled = random.coin();
    let mut spec = |map| {
        let map = if shuffled { random.shuffled(map) } else { map };
        Spec::Irregular { map, owned: None, dim: None }
    };
    maps.into_iter().map(&mut spec).collect()
}

/// Parts of these lengths, one after another.
pub fn joined(random: &mut Random, extent: u64, ranks: usize) -> Vec<Spec> {
    let mut cuts: Vec<u64> = (1..ranks).map(|_| random.below(extent + 1)).collect();
    cuts.extend([0, extent]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| Spec::Joined { count: cut[1] - cut[0], before: cut[0] }).collect()
}

/// 1 to 64, usually few.
pub fn number_of_ranks(random: &mut Random) -> usize {
    let most = if random.one_in(12) { 64 } else { 6 };
    1 + random.index(most)
}
