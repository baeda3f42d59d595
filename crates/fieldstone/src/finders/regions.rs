//! Labelling: groups elements that pass into connected regions.
//!
//! The array is read row by row along its last dimension. The passing elements of a row form a list of runs; a run is
//! joined with the runs that it touches in the preceding neighbouring rows. Work and memory depend on the number of
//! runs, not of elements.

use super::bounds::Bounds;
use super::elements::{Element, load};

/// Neighbouring elements that pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// First index per dimension.
    pub first: Vec<u64>,
    /// First index after it, per dimension.
    pub end: Vec<u64>,
    /// Number of elements.
    pub elements: u64,
    /// The least of them.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// Consecutive elements of a row that pass.
#[derive(Debug, Clone, Copy)]
struct RowRun {
    first: usize,
    end: usize,
    least: f64,
    most: f64,
}

/// Joined sets: each run's parent; the representative of a set is its own parent.
struct Sets(Vec<usize>);

impl Sets {
    fn root(&mut self, mut of: usize) -> usize {
        while self.0[of] != of {
            self.0[of] = self.0[self.0[of]];
            of = self.0[of];
        }
        of
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The older one represents both.
        let (low, high) = (a.min(b), a.max(b));
        self.0[high] = low;
    }
}

/// Regions of elements in bounds, in the order of their first element.
pub fn label<T: Element<N>, const N: usize>(
    data: &[u8],
    swap: bool,
    count: &[u64],
    bounds: &Bounds,
) -> Vec<Region> {
    let (from, to) = T::bounds(bounds);
    let extents: Vec<usize> = count.iter().map(|&n| n as usize).collect();
    let width = extents.last().copied().unwrap_or(1);
    let outer = &extents[..extents.len().saturating_sub(1)];
    let elements = data.as_chunks::<N>().0;
    if width == 0 || elements.is_empty() {
        return Vec::new();
    }
    // Distance in rows to the neighbouring row, per outer dimension.
    let mut strides = vec![1; outer.len()];
    for d in (0..outer.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1] * outer[d + 1];
    }
    let (mut runs, mut sets) = (Vec::<RowRun>::new(), Sets(Vec::new()));
    // Runs of row r are runs[rows[r]..rows[r + 1]].
    let mut rows = vec![0];
    let mut place = vec![0; outer.len()];
    for row in elements.chunks_exact(width) {
        let before = runs.len();
        find_runs::<T, N>(row, swap, from, to, &mut runs);
        sets.0.extend(before..runs.len());
        let now = rows.len() - 1;
        if runs.len() > before {
            for (d, stride) in strides.iter().enumerate() {
                if place[d] > 0 {
                    let (low, high) = (rows[now - stride], rows[now - stride + 1]);
                    join_rows(&runs, &mut sets, low..high, before..runs.len());
                }
            }
        }
        rows.push(runs.len());
        for d in (0..outer.len()).rev() {
            place[d] += 1;
            if place[d] < outer[d] {
                break;
            }
            place[d] = 0;
        }
    }
    collect(&runs, &mut sets, &rows, &extents, &strides)
}

fn find_runs<T: Element<N>, const N: usize>(
    row: &[[u8; N]],
    swap: bool,
    from: T,
    to: T,
    runs: &mut Vec<RowRun>,
) {
    let passes = |bytes: &[u8; N]| {
        let element = load::<T, N>(*bytes, swap);
        (element >= from) & (element <= to)
    };
    // Most stretches hold nothing: they are skipped without a branch per element.
    let mut open: Option<RowRun> = None;
    for (part, elements) in row.chunks(64).enumerate() {
        if open.is_none() && !elements.iter().fold(false, |any, bytes| any | passes(bytes)) {
            continue;
        }
        for (i, bytes) in elements.iter().enumerate() {
            let at = part * 64 + i;
            if !passes(bytes) {
                runs.extend(open.take());
                continue;
            }
            let value = load::<T, N>(*bytes, swap).float();
            let run = open.get_or_insert(RowRun { first: at, end: at, least: value, most: value });
            run.end = at + 1;
            run.least = run.least.min(value);
            run.most = run.most.max(value);
        }
    }
    runs.extend(open);
}

/// Joins the runs of two neighbouring rows that overlap; both lists are in order.
fn join_rows(runs: &[RowRun], sets: &mut Sets, a: std::ops::Range<usize>, b: std::ops::Range<usize>) {
    let (mut i, mut j) = (a.start, b.start);
    while i < a.end && j < b.end {
        let (x, y) = (&runs[i], &runs[j]);
        if x.first < y.end && y.first < x.end {
            sets.join(i, j);
        }
        if x.end <= y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
}

fn collect(
    runs: &[RowRun],
    sets: &mut Sets,
    rows: &[usize],
    extents: &[usize],
    strides: &[usize],
) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let mut of_root = std::collections::HashMap::new();
    for row in 0..rows.len() - 1 {
        for (i, run) in runs.iter().enumerate().take(rows[row + 1]).skip(rows[row]) {
            // Positions along the outer dimensions, then the run's along the last.
            let mut first: Vec<u64> = Vec::with_capacity(extents.len());
            let mut rest = row;
            for stride in strides {
                first.push((rest / stride) as u64);
                rest %= stride;
            }
            let mut end: Vec<u64> = first.iter().map(|i| i + 1).collect();
            if !extents.is_empty() {
                first.push(run.first as u64);
                end.push(run.end as u64);
            }
            let elements = (run.end - run.first) as u64;
            let at = *of_root.entry(sets.root(i)).or_insert(regions.len());
            match regions.get_mut(at) {
                None => regions.push(Region { first, end, elements, least: run.least, most: run.most }),
                Some(region) => {
                    for d in 0..first.len() {
                        region.first[d] = region.first[d].min(first[d]);
                        region.end[d] = region.end[d].max(end[d]);
                    }
                    region.elements += elements;
                    region.least = region.least.min(run.least);
                    region.most = region.most.max(run.most);
                }
            }
        }
    }
    regions
}
