//! Finds the part of a shape that no box covers.
//!
//! The search bisects the space: a part inside one box is covered, a part that no box touches is a hole, and any
//! other part is cut in two at the median of the box edges inside it, along the dimension with most of them. Each cut
//! halves those edges, so n tiles take O(n log n), and the recursion is at most rank * log2(2n) deep. On the way
//! back, holes that a cut divided are joined again.

use super::IndexBox;
use crate::{Code, Result};
use std::collections::HashMap;

/// The result of [`uncovered`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uncovered {
    /// Disjoint boxes that no given box covers, sorted by their start.
    pub boxes: Vec<IndexBox>,
    /// Whether `boxes` is incomplete, because the limit was reached.
    pub truncated: bool,
}

impl Uncovered {
    /// Whether every element is covered.
    pub fn is_complete(&self) -> bool {
        self.boxes.is_empty() && !self.truncated
    }
}

/// The elements of `shape` that none of `boxes` covers, as at most `limit` disjoint boxes. Boxes may overlap, be
/// empty, and extend beyond the shape; a box of another rank is `Invalid`.
pub fn uncovered(shape: &[u64], boxes: &[IndexBox], limit: usize) -> Result<Uncovered> {
    let whole = IndexBox::whole(shape)?;
    if let Some(other) = boxes.iter().find(|b| b.rank() != whole.rank()) {
        return Err(Code::Box.error(format!(
            "box {other} has {} dimensions, the array has {} (shape {shape:?})",
            other.rank(),
            whole.rank()
        )));
    }
    if whole.is_empty() {
        return Ok(Uncovered { boxes: Vec::new(), truncated: false });
    }
    // Joining reduces the number of holes (a long hole next to many tiles is cut at each of them), so look for many
    // more than the limit before giving up.
    let budget = limit.saturating_mul(8).saturating_add(10_000);
    let mut search = Search { boxes, budget, truncated: false };
    let touching: Vec<usize> = (0..boxes.len()).filter(|&i| whole.overlaps(&boxes[i])).collect();
    let mut holes = search.holes(&whole, &touching);
    holes.sort_unstable();
    let truncated = search.truncated || holes.len() > limit;
    holes.truncate(limit);
    Ok(Uncovered { boxes: holes, truncated })
}

struct Search<'a> {
    boxes: &'a [IndexBox],
    /// The number of holes that may still be found.
    budget: usize,
    truncated: bool,
}

impl Search<'_> {
    /// The holes of `part`, which is not empty; `touching` lists the boxes that overlap it.
    fn holes(&mut self, part: &IndexBox, touching: &[usize]) -> Vec<IndexBox> {
        if touching.is_empty() {
            if self.budget == 0 {
                self.truncated = true;
                return Vec::new();
            }
            self.budget -= 1;
            return vec![part.clone()];
        }
        if self.truncated || touching.iter().any(|&i| self.boxes[i].contains(part)) {
            return Vec::new();
        }
        let Some((d, cut)) = self.cut(part, touching) else { return Vec::new() };
        let (low, high) = halves(part, d, cut);
        let mut holes = Vec::new();
        for half in [low, high] {
            let inside: Vec<usize> =
                touching.iter().copied().filter(|&i| half.overlaps(&self.boxes[i])).collect();
            holes.push(self.holes(&half, &inside));
        }
        let above = holes.pop().unwrap_or_default();
        join(holes.pop().unwrap_or_default(), above, d, cut)
    }

    /// Dimension and position of the cut. A box that overlaps a part without containing it has an edge strictly
    /// inside, so there always is a cut.
    fn cut(&self, part: &IndexBox, touching: &[usize]) -> Option<(usize, u64)> {
        let mut best: Vec<u64> = Vec::new();
        let mut dimension = 0;
        let mut edges = Vec::new();
        for d in 0..part.rank() {
            edges.clear();
            let (low, high) = (part.start()[d], part.end(d));
            for &i in touching {
                let other = &self.boxes[i];
                edges.extend([other.start()[d], other.end(d)].iter().filter(|&&e| low < e && e < high));
            }
            if edges.len() > best.len() {
                std::mem::swap(&mut best, &mut edges);
                dimension = d;
            }
        }
        let middle = best.len() / 2;
        (!best.is_empty()).then(|| (dimension, *best.select_nth_unstable(middle).1))
    }
}

fn halves(part: &IndexBox, d: usize, cut: u64) -> (IndexBox, IndexBox) {
    let end: Vec<u64> = (0..part.rank()).map(|d| part.end(d)).collect();
    let (mut low_end, mut high_start) = (end.clone(), part.start().to_vec());
    low_end[d] = cut;
    high_start[d] = cut;
    (IndexBox::from_bounds(part.start().to_vec(), &low_end), IndexBox::from_bounds(high_start, &end))
}

/// Concatenates both lists, and merges boxes that meet at `cut` and agree in all other dimensions.
fn join(mut below: Vec<IndexBox>, above: Vec<IndexBox>, d: usize, cut: u64) -> Vec<IndexBox> {
    if below.is_empty() || above.is_empty() {
        below.extend(above);
        return below;
    }
    let face = |b: &IndexBox| -> Vec<u64> {
        let other = |values: &[u64]| -> Vec<u64> {
            values.iter().enumerate().filter(|(i, _)| *i != d).map(|(_, v)| *v).collect()
        };
        [other(b.start()), other(b.count())].concat()
    };
    let mut meeting: HashMap<Vec<u64>, usize> = HashMap::new();
    for (i, hole) in below.iter().enumerate().filter(|(_, hole)| hole.end(d) == cut) {
        meeting.insert(face(hole), i);
    }
    for hole in above {
        let partner = if hole.start()[d] == cut { meeting.get(&face(&hole)) } else { None };
        match partner {
            Some(&i) => {
                let end: Vec<u64> = (0..hole.rank()).map(|d| hole.end(d)).collect();
                below[i] = IndexBox::from_bounds(below[i].start().to_vec(), &end);
            }
            None => below.push(hole),
        }
    }
    below
}
