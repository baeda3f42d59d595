//! What views hold, said once more in the plainest way: index by index, as numpy would.

use fieldstone_array::distributed::view::View;
use fieldstone_testkit::Random;

/// Of each element of a buffer its element of the array, and whether it is written.
pub type Held = Vec<Option<(u64, bool)>>;

/// Every index of a shape, in C order.
pub fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![vec![]];
    for len in shape {
        all = all
            .into_iter()
            .flat_map(|index| (0..*len).map(move |i| [index.clone(), vec![i]].concat()))
            .collect();
    }
    all
}

fn flat(shape: &[u64], index: &[u64]) -> u64 {
    shape.iter().zip(index).fold(0, |at, (len, i)| at * len + i)
}

/// The indices of `len` that part `i` of `n` has when numpy's array_split cuts them.
fn split(len: u64, i: u64, n: u64) -> Vec<u64> {
    let ends: Vec<u64> = (0..=n).map(|k| k * (len / n) + k.min(len % n)).collect();
    (ends[i as usize]..ends[i as usize + 1]).collect()
}

/// Indices of each dimension in the buffer: `None` for a halo outside of the array; and whether they are written.
type Line = Vec<Option<(u64, bool)>>;

fn product(shape: &[u64], axes: &[Line]) -> Held {
    let widths: Vec<u64> = axes.iter().map(|axis| axis.len() as u64).collect();
    let at = |index: Vec<u64>| {
        let parts: Option<Vec<(u64, bool)>> =
            axes.iter().zip(&index).map(|(axis, i)| axis[*i as usize]).collect();
        let parts = parts?;
        let global: Vec<u64> = parts.iter().map(|(index, _)| *index).collect();
        Some((flat(shape, &global), parts.iter().all(|(_, written)| *written)))
    };
    indices(&widths).into_iter().map(at).collect()
}

fn with_halo(own: Vec<u64>, len: u64, start: u64, (before, behind): (u64, u64)) -> Line {
    let end = start + own.len() as u64;
    let inside = |i: i64| u64::try_from(i).ok().filter(|i| *i < len).map(|i| (i, false));
    let first = (start as i64 - before as i64..start as i64).map(inside);
    let last = (end as i64..end as i64 + behind as i64).map(inside);
    first.chain(own.into_iter().map(|i| Some((i, true)))).chain(last).collect()
}

/// What a view holds. `before` is where a joined part begins.
pub fn held(view: &View, shape: &[u64], before: u64, rank: usize) -> Held {
    let place = |grid: &[u64]| indices(grid)[rank].clone();
    match view {
        View::Block { start, count, stride, halo } => {
            let axis = |d: usize| {
                let every = stride.get(d).copied().unwrap_or(1);
                let own = (0..count[d]).map(|i| start[d] + i * every).collect();
                with_halo(own, shape[d], start[d], halo.get(d).copied().unwrap_or((0, 0)))
            };
            product(shape, &(0..shape.len()).map(axis).collect::<Vec<_>>())
        }
        View::Grid { grid, halo } => {
            let at = place(grid);
            let axis = |d: usize| {
                let own = split(shape[d], at[d], grid[d]);
                let ends: u64 = (0..at[d]).map(|i| split(shape[d], i, grid[d]).len() as u64).sum();
                with_halo(own, shape[d], ends, halo.get(d).copied().unwrap_or((0, 0)))
            };
            product(shape, &(0..shape.len()).map(axis).collect::<Vec<_>>())
        }
        View::Cyclic { grid, blocks } => {
            let at = place(grid);
            let has = |d: usize, i: u64| i / blocks[d] % grid[d] == at[d];
            let axis = |d: usize| (0..shape[d]).filter(|i| has(d, *i)).map(|i| Some((i, true))).collect();
            let axes: Vec<Line> = (0..shape.len()).map(axis).collect();
            product(shape, &axes)
        }
        View::Irregular { map, owned, dim } => {
            let entry = |i: usize| u64::try_from(map[i]).ok().map(|index| (index, i < *owned));
            let axis: Line = (0..map.len()).map(entry).collect();
            match dim {
                None => axis,
                Some(dim) => {
                    let all = |len: u64| (0..len).map(|i| Some((i, true))).collect();
                    let axes = (0..shape.len()).map(|d| if d == *dim { axis.clone() } else { all(shape[d]) });
                    product(shape, &axes.collect::<Vec<_>>())
                }
            }
        }
        View::Joined { count } => {
            let inner: u64 = shape[1..].iter().product();
            (before * inner..(before + count) * inner).map(|i| Some((i, true))).collect()
        }
    }
}

/// A case: the array, what each of some ranks holds of it, and where joined parts begin.
#[derive(Debug)]
pub struct Case {
    pub shape: Vec<u64>,
    pub views: Vec<View>,
    pub before: Vec<u64>,
}

fn grid_of(dice: &mut Random, ranks: u64, dims: usize) -> Vec<u64> {
    let mut grid = vec![1; dims];
    let mut left = ranks;
    for factor in [2, 3, 5, 7] {
        while left.is_multiple_of(factor) {
            left /= factor;
            grid[dice.below(dims as u64) as usize] *= factor;
        }
    }
    grid[0] *= left;
    grid
}

/// A random shape: of few elements, or of some blocks.
pub fn random_shape(dice: &mut Random, large: bool) -> Vec<u64> {
    let dims = 1 + dice.below(3) as usize;
    let scale = if large { [40_000, 70, 9][dims - 1] } else { 1 };
    (0..dims).map(|_| dice.below(9) * scale).collect()
}

/// What some ranks hold of an array: each kind of view, with halos, holes, and elements that several ranks write where
/// `shared` allows it.
pub fn random_case(dice: &mut Random, shape: &[u64], ranks: usize, shared: bool) -> Case {
    let (dims, all) = (shape.len(), ranks as u64);
    let halo = |dice: &mut Random| match dice.below(2) {
        0 => Vec::new(),
        _ => (0..dims).map(|_| (dice.below(3), dice.below(3))).collect(),
    };
    let mut before = vec![0; ranks];
    let views: Vec<View> = match dice.below(6) {
        0 => {
            let (grid, halo) = (grid_of(dice, all, dims), halo(dice));
            (0..ranks).map(|_| View::grid(&grid).with_halo(halo.clone())).collect()
        }
        1 => {
            let grid = grid_of(dice, all, dims);
            let blocks: Vec<u64> = (0..dims).map(|_| 1 + dice.below(4)).collect();
            (0..ranks).map(|_| View::cyclic(&grid, &blocks)).collect()
        }
        2 => {
            let mut ends: Vec<u64> = (1..all).map(|_| dice.below(shape[0] + 1)).collect();
            ends.sort_unstable();
            before[1..].copy_from_slice(&ends);
            ends.push(shape[0]);
            ends.iter().zip(&before).map(|(end, begin)| View::joined(end - begin)).collect()
        }
        3 if shared => (0..ranks)
            .map(|_| {
                let start: Vec<u64> = shape.iter().map(|len| dice.below(len + 1)).collect();
                let rest = shape.iter().zip(&start).map(|(len, start)| len - start);
                let count: Vec<u64> = rest.map(|rest| dice.below(rest + 1)).collect();
                View::block(&start, &count).with_halo(halo(dice))
            })
            .collect(),
        _ => random_maps(dice, shape, ranks, shared),
    };
    Case { shape: shape.to_vec(), views, before }
}

fn random_maps(dice: &mut Random, shape: &[u64], ranks: usize, shared: bool) -> Vec<View> {
    let dim = (dice.below(2) == 0).then(|| dice.below(shape.len() as u64) as usize);
    let extent = dim.map_or(shape.iter().product(), |dim| shape[dim]);
    let (mut maps, mut ghosts) = (vec![Vec::new(); ranks], vec![Vec::new(); ranks]);
    for index in 0..extent as i64 {
        // One more than there are: what nobody has.
        let owner = dice.below(ranks as u64 + 1) as usize;
        maps.get_mut(owner).into_iter().for_each(|map| map.push(index));
        for rank in (0..ranks).filter(|rank| *rank != owner) {
            if dice.below(5) == 0 {
                ghosts[rank].push(index);
                if shared && owner < ranks && dice.below(3) == 0 {
                    maps[rank].push(index);
                }
            }
        }
    }
    let views = maps.into_iter().zip(ghosts).map(|(mut map, ghosts)| {
        if dice.below(3) == 0 {
            map.push(-1);
        }
        (1..map.len()).for_each(|i| map.swap(i, dice.below(i as u64 + 1) as usize));
        let owned = map.len();
        View::irregular([map, ghosts].concat(), Some(owned), dim)
    });
    views.collect()
}
