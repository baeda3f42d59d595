//! A view of one rank: checks, the shape of its buffer, and the runs between buffer and array.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};

use super::axis::AxisIndices;
use super::{Halo, View, Whole};

/// Elements that follow one another in the array and in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First element in the array.
    pub global: u64,
    /// First element in the buffer.
    pub local: u64,
    /// How many.
    pub len: u64,
}

/// What one rank holds of an array. See [`View::local`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalView {
    whole: Whole,
    shape: Vec<u64>,
    holds: Holds,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Holds {
    Axes(Vec<AxisIndices>),
    /// Indices along an extent, with `outer` times `inner` elements around each.
    Map {
        map: Arc<[i64]>,
        owned: usize,
        outer: u64,
        extent: u64,
        inner: u64,
    },
}

fn invalid(rank: usize, text: String) -> Error {
    Code::Box.error(format!("rank {rank}: {text}"))
}

impl View {
    /// What the view holds of an array on a rank. Errors are `Invalid` and name rank, dimension or position, and value.
    pub fn local(&self, whole: &Whole, rank: usize, size: usize) -> Result<LocalView> {
        let shape = whole.shape();
        let fits = |what: &str, given: usize| match given == shape.len() {
            true => Ok(()),
            false => {
                Err(invalid(rank, format!("{what} has {given} dimensions, and the array {}", shape.len())))
            }
        };
        let axes = match self {
            View::Block { start, count, stride, halo } => {
                fits("start", start.len()).and_then(|()| fits("count", count.len()))?;
                if !stride.is_empty() {
                    fits("stride", stride.len())?;
                }
                let halo = halo_of(halo, shape.len(), rank)?;
                let given = start.iter().zip(count).zip(&halo).enumerate();
                given
                    .map(|(d, ((start, count), halo))| {
                        let stride = stride.get(d).copied().unwrap_or(1);
                        block_axis(shape[d], *start, *count, stride, *halo)
                            .map_err(|text| invalid(rank, format!("dimension {d}: {text}")))
                    })
                    .collect::<Result<_>>()?
            }
            View::Grid { grid, halo } => {
                fits("grid", grid.len())?;
                let at = place_in(grid, rank, size)?;
                let halo = halo_of(halo, shape.len(), rank)?;
                (0..shape.len()).map(|d| AxisIndices::balanced(shape[d], at[d], grid[d], halo[d])).collect()
            }
            View::Cyclic { grid, blocks } => {
                fits("grid", grid.len()).and_then(|()| fits("blocks", blocks.len()))?;
                if let Some(d) = blocks.iter().position(|block| *block == 0) {
                    return Err(invalid(rank, format!("dimension {d}: a block of 0 elements")));
                }
                let at = place_in(grid, rank, size)?;
                let axis = |d: usize| AxisIndices::cyclic(shape[d], at[d], grid[d], blocks[d]);
                (0..shape.len()).map(axis).collect::<Result<_>>()?
            }
            View::Irregular { map, owned, dim } => return by_map(whole, rank, map, *owned, *dim),
            View::Joined { .. } => {
                let text = "where a joined part begins is known to all ranks together only".to_owned();
                return Err(invalid(rank, text));
            }
        };
        Ok(LocalView::of_axes(whole, axes))
    }

    /// The same of a joined part, which begins behind `before` indices; of other views as above.
    pub fn local_behind(&self, whole: &Whole, before: u64, rank: usize, size: usize) -> Result<LocalView> {
        let View::Joined { count } = self else { return self.local(whole, rank, size) };
        let axis = |(d, len): (usize, &u64)| match d {
            0 => AxisIndices::box_of(before, *count, (0, 0)),
            _ => AxisIndices::box_of(0, *len, (0, 0)),
        };
        match whole.shape().first() {
            Some(len) if before.checked_add(*count).is_some_and(|end| end <= *len) => {
                Ok(LocalView::of_axes(whole, whole.shape().iter().enumerate().map(axis).collect()))
            }
            _ => Err(invalid(rank, format!("{count} indices behind {before} are not within the array"))),
        }
    }
}

fn halo_of(halo: &Halo, rank_of_array: usize, rank: usize) -> Result<Halo> {
    match halo.len() {
        0 => Ok(vec![(0, 0); rank_of_array]),
        n if n == rank_of_array => Ok(halo.clone()),
        n => Err(invalid(rank, format!("a halo of {n} dimensions for {rank_of_array}"))),
    }
}

fn block_axis(
    len: u64,
    start: u64,
    count: u64,
    stride: u64,
    halo: (u64, u64),
) -> std::result::Result<AxisIndices, String> {
    if stride == 0 {
        return Err("a stride of 0".into());
    }
    let last = count.checked_sub(1).map(|n| n.checked_mul(stride).and_then(|n| n.checked_add(start)));
    let inside = match last {
        Some(last) => last.is_some_and(|last| last < len),
        None => start <= len,
    };
    if !inside {
        let every = if stride == 1 { String::new() } else { format!(", {stride} apart,") };
        return Err(format!("{count} indices from {start}{every} are not within {len}"));
    }
    let too_wide = || format!("a halo of {} and {} elements", halo.0, halo.1);
    halo.0
        .checked_add(halo.1)
        .and_then(|h| h.checked_add(count))
        .filter(|w| *w <= 1 << 62)
        .ok_or_else(too_wide)?;
    match (stride, halo) {
        (1, _) => Ok(AxisIndices::box_of(start, count, halo)),
        (_, (0, 0)) => Ok(AxisIndices::strided(start, count, stride)),
        _ => Err("a halo around every n-th index".into()),
    }
}

/// Where a rank stands in a grid of ranks, in C order.
fn place_in(grid: &[u64], rank: usize, size: usize) -> Result<Vec<u64>> {
    let ranks = grid.iter().try_fold(1u64, |all, n| all.checked_mul(*n));
    if ranks != Some(size as u64) {
        let text =
            format!("a grid of {grid:?} is for {} ranks, and there are {size}", ranks.unwrap_or(u64::MAX));
        return Err(invalid(rank, text));
    }
    let mut left = rank as u64;
    let mut at: Vec<u64> = grid.iter().rev().map(|n| (left % n, left /= n).0).collect();
    at.reverse();
    Ok(at)
}

fn by_map(
    whole: &Whole,
    rank: usize,
    map: &Arc<[i64]>,
    owned: usize,
    dim: Option<usize>,
) -> Result<LocalView> {
    let given = whole.shape();
    if owned > map.len() {
        return Err(invalid(rank, format!("{owned} owned elements of a map of {}", map.len())));
    }
    let (outer, extent, inner, shape) = match dim {
        None => (1, whole.elements(), 1, vec![map.len() as u64]),
        Some(d) if d < given.len() => {
            let mut shape = given.to_vec();
            shape[d] = map.len() as u64;
            (given[..d].iter().product(), given[d], given[d + 1..].iter().product(), shape)
        }
        Some(d) => {
            return Err(invalid(rank, format!("a map along dimension {d} of an array of {}", given.len())));
        }
    };
    let outside = |index: &i64| *index < -1 || u64::try_from(*index).is_ok_and(|index| index >= extent);
    if let Some(i) = map.iter().position(outside) {
        let text = format!("position {i} of its map is {}, and there are {extent} indices", map[i]);
        return Err(Code::Box.error(format!("rank {rank}: {text}")));
    }
    let holds = Holds::Map { map: map.clone(), owned, outer, extent, inner };
    Ok(LocalView { whole: whole.clone(), shape, holds })
}

impl LocalView {
    fn of_axes(whole: &Whole, axes: Vec<AxisIndices>) -> LocalView {
        let shape = axes.iter().map(AxisIndices::width).collect();
        LocalView { whole: whole.clone(), shape, holds: Holds::Axes(axes) }
    }

    /// The array.
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    /// The shape of the buffer.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements of the buffer.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Gives the runs that are written: in ascending order of both, but for maps, whose order is the buffer's.
    pub fn written(&self, each: &mut dyn FnMut(Run)) {
        match &self.holds {
            Holds::Axes(axes) => runs_of(self.whole.shape(), axes, each),
            Holds::Map { owned, .. } => self.runs_of_map(*owned, each),
        }
    }

    /// Gives the runs that are read: with the halo, as far as it lies within the array, and all of a map.
    pub fn read(&self, each: &mut dyn FnMut(Run)) {
        match &self.holds {
            Holds::Axes(axes) => {
                let shape = self.whole.shape();
                let wide: Vec<AxisIndices> =
                    axes.iter().zip(shape).map(|(axis, len)| axis.with_halo(*len)).collect();
                runs_of(shape, if axes.iter().any(|axis| axis.halo != (0, 0)) { &wide } else { axes }, each);
            }
            Holds::Map { map, .. } => self.runs_of_map(map.len(), each),
        }
    }

    /// How many elements are written.
    pub fn written_len(&self) -> u64 {
        match &self.holds {
            Holds::Axes(axes) => axes.iter().map(|axis| axis.count).product(),
            Holds::Map { map, owned, outer, inner, .. } => {
                map[..*owned].iter().filter(|index| **index >= 0).count() as u64 * outer * inner
            }
        }
    }

    /// Whether it is a map, of which nothing is known but element by element.
    pub fn is_irregular(&self) -> bool {
        matches!(self.holds, Holds::Map { .. })
    }

    fn runs_of_map(&self, len: usize, each: &mut dyn FnMut(Run)) {
        let Holds::Map { map, outer, extent, inner, .. } = &self.holds else { return };
        if *inner == 0 {
            return;
        }
        for o in 0..*outer {
            let (global, local) = (o * extent, o * map.len() as u64);
            let mut open: Option<Run> = None;
            for (i, index) in map[..len].iter().enumerate() {
                let Ok(index) = u64::try_from(*index) else { continue };
                let run =
                    Run { global: (global + index) * inner, local: (local + i as u64) * inner, len: *inner };
                match &mut open {
                    Some(last)
                        if last.global + last.len == run.global && last.local + last.len == run.local =>
                    {
                        last.len += run.len;
                    }
                    _ => open.replace(run).into_iter().for_each(&mut *each),
                }
            }
            open.into_iter().for_each(&mut *each);
        }
    }
}

/// The runs of a box, or of blocks in each dimension.
fn runs_of(shape: &[u64], axes: &[AxisIndices], each: &mut dyn FnMut(Run)) {
    if axes.iter().any(|axis| axis.count == 0) {
        return;
    }
    let is_whole =
        |d: usize| axes[d].count == shape[d] && axes[d].width() == shape[d] && axes[d].run(0) == shape[d];
    // Dimensions behind this one are whole: runs go along it.
    if axes.is_empty() {
        return each(Run { global: 0, local: 0, len: 1 });
    }
    let along = (0..axes.len()).rev().find(|d| !is_whole(*d)).unwrap_or(0);
    let inner: u64 = shape[along + 1..].iter().product();
    let strides = |widths: &dyn Fn(usize) -> u64| {
        let mut strides = vec![inner; along + 1];
        (0..along).rev().for_each(|d| strides[d] = strides[d + 1] * widths(d + 1));
        strides
    };
    let (of_array, of_buffer) = (strides(&|d| shape[d]), strides(&|d| axes[d].width()));
    let mut at = vec![0u64; along + 1];
    loop {
        let (mut global, mut local) = (0, 0);
        for d in 0..along {
            global += axes[d].index(at[d]) * of_array[d];
            local += (at[d] + axes[d].halo.0) * of_buffer[d];
        }
        let axis = &axes[along];
        let mut i = 0;
        while i < axis.count {
            let len = axis.run(i);
            each(Run {
                global: global + axis.index(i) * inner,
                local: local + (i + axis.halo.0) * inner,
                len: len * inner,
            });
            i += len;
        }
        let Some(d) = (0..along).rev().find(|d| at[*d] + 1 < axes[*d].count) else { return };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
}
