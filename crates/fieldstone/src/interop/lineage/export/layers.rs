//! Lays boxes out in columns, with data flowing from left to right, after Sugiyama: K. Sugiyama, S. Tagawa, M. Toda,
//! *Methods for Visual Understanding of Hierarchical System Structures*, 1981.
//!
//! 1. Arrows that close a cycle are reversed during layout.
//! 2. A box goes one column after the last box that leads to it; a box without predecessors goes just before its first
//!    reader.
//! 3. An arrow over several columns passes through a bend in each column between; arrows of one box share bends.
//! 4. In the columns, boxes take the mean rank of their neighbours, forwards and backwards; the order with the fewest
//!    crossings is kept.
//! 5. Heights are the closest to the mean of the neighbours that keep the order and the distances: an isotonic
//!    regression for each column.
//!
//! Ties are broken by the order in which boxes are given.

use std::collections::BTreeMap;

/// Gap between columns.
const GAP_X: f64 = 56.0;
/// Gap between boxes of a column.
const GAP_Y: f64 = 18.0;
/// Height of a bend.
const BEND: f64 = 4.0;
/// Passes over all columns that look for fewer crossings, and for better heights.
const PASSES: usize = 24;
/// Final passes that look at both sides.
const LAST: usize = 12;

/// A box to lay out.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    pub width: f64,
    pub height: f64,
    /// Parity of its columns: only odd ones, or only even ones.
    pub odd: bool,
    pub time: u64,
}

/// Positions of boxes, and routes of arrows.
#[derive(Debug, Default)]
pub struct Layout {
    /// Left upper corners.
    pub corners: Vec<(f64, f64)>,
    /// Points of each arrow: x on the left, x on the right, y; from its tail to its head.
    pub routes: Vec<Vec<(f64, f64, f64)>>,
    /// Whether an arrow leads from right to left.
    pub turned: Vec<bool>,
    pub width: f64,
    pub height: f64,
}

/// A box or a bend.
#[derive(Debug, Clone, Copy)]
struct Stop {
    column: usize,
    height: f64,
    bend: bool,
}

/// The layout of boxes and arrows.
pub fn layout(items: &[Item], arrows: &[(usize, usize)]) -> Layout {
    let turned = circles(items, arrows);
    let forward: Vec<(usize, usize)> = arrows
        .iter()
        .zip(&turned)
        .map(|((a, b), turned)| if *turned { (*b, *a) } else { (*a, *b) })
        .collect();
    let columns = columns(items, &forward);
    let mut stops: Vec<Stop> = items
        .iter()
        .zip(&columns)
        .map(|(item, column)| Stop { column: *column, height: item.height, bend: false })
        .collect();
    let mut bends: BTreeMap<(usize, usize, bool), usize> = BTreeMap::new();
    let mut links: Vec<(usize, usize)> = Vec::new();
    let mut paths: Vec<Vec<usize>> = Vec::new();
    for ((from, to), turned) in forward.iter().zip(&turned) {
        let mut path = vec![*from];
        for column in columns[*from] + 1..columns[*to] {
            let bend = *bends.entry((*from, column, *turned)).or_insert_with(|| {
                stops.push(Stop { column, height: BEND, bend: true });
                stops.len() - 1
            });
            path.push(bend);
        }
        path.push(*to);
        links.extend(path.windows(2).map(|pair| (pair[0], pair[1])));
        paths.push(path);
    }
    links.sort_unstable();
    links.dedup();
    let neighbours = Neighbours::of(stops.len(), &links);
    let order = ordered(&stops, items, &neighbours, &links);
    let middles = heights(&stops, &order, &neighbours);
    placed(items, &stops, &order, &middles, &paths, turned)
}

/// Finds the arrows that close a cycle, by a depth-first walk from the oldest box on.
fn circles(items: &[Item], arrows: &[(usize, usize)]) -> Vec<bool> {
    let mut out: Vec<Vec<(usize, usize)>> = vec![Vec::new(); items.len()];
    for (i, (from, to)) in arrows.iter().enumerate() {
        out[*from].push((i, *to));
    }
    for list in &mut out {
        list.sort_by_key(|(i, to)| (items[*to].time, *i));
    }
    let led_to: Vec<bool> = {
        let mut led_to = vec![false; items.len()];
        arrows.iter().for_each(|(_, to)| led_to[*to] = true);
        led_to
    };
    let mut begins: Vec<usize> = (0..items.len()).collect();
    begins.sort_by_key(|i| (led_to[*i], items[*i].time, *i));
    let mut turned = vec![false; arrows.len()];
    // 0: not seen; 1: on the way down; 2: done.
    let mut state = vec![0u8; items.len()];
    for begin in begins {
        if state[begin] != 0 {
            continue;
        }
        state[begin] = 1;
        let mut open = vec![(begin, 0usize)];
        while let Some((at, next)) = open.last_mut() {
            let Some((i, to)) = out[*at].get(*next).copied() else {
                state[*at] = 2;
                open.pop();
                continue;
            };
            *next += 1;
            match state[to] {
                0 => {
                    state[to] = 1;
                    open.push((to, 0));
                }
                1 => turned[i] = true,
                _ => {}
            }
        }
    }
    turned
}

/// Columns by the longest path.
fn columns(items: &[Item], forward: &[(usize, usize)]) -> Vec<usize> {
    let mut waits = vec![0usize; items.len()];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for (from, to) in forward {
        waits[*to] += 1;
        out[*from].push(*to);
    }
    let sources: Vec<usize> = (0..items.len()).filter(|i| waits[*i] == 0).collect();
    let mut columns: Vec<usize> = items.iter().map(|item| usize::from(item.odd)).collect();
    let mut ready = sources.clone();
    while let Some(at) = ready.pop() {
        for to in &out[at] {
            columns[*to] = columns[*to].max(columns[at] + 1);
            waits[*to] -= 1;
            if waits[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    for source in sources {
        if let Some(first) = out[source].iter().map(|to| columns[*to]).min() {
            columns[source] = columns[source].max(first.saturating_sub(1));
        }
    }
    let least = columns.iter().copied().min().unwrap_or(0);
    columns.iter_mut().for_each(|column| *column -= least);
    columns
}

struct Neighbours {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Neighbours {
    fn of(n: usize, links: &[(usize, usize)]) -> Neighbours {
        let mut neighbours = Neighbours { before: vec![Vec::new(); n], after: vec![Vec::new(); n] };
        for (from, to) in links {
            neighbours.after[*from].push(*to);
            neighbours.before[*to].push(*from);
        }
        neighbours
    }
}

/// Ranks in the columns.
fn ranks(order: &[Vec<usize>], n: usize) -> Vec<usize> {
    let mut ranks = vec![0; n];
    for column in order {
        column.iter().enumerate().for_each(|(rank, stop)| ranks[*stop] = rank);
    }
    ranks
}

/// The boxes and bends of each column, with few crossings.
fn ordered(
    stops: &[Stop],
    items: &[Item],
    neighbours: &Neighbours,
    links: &[(usize, usize)],
) -> Vec<Vec<usize>> {
    let last = stops.iter().map(|stop| stop.column).max().unwrap_or(0);
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); last + 1];
    let mut first: Vec<usize> = (0..stops.len()).collect();
    first.sort_by_key(|i| (items.get(*i).map_or(u64::MAX, |item| item.time), *i));
    first.iter().for_each(|i| order[stops[*i].column].push(*i));
    let mut best = (crossings(&order, stops, links), order.clone());
    for pass in 0..PASSES {
        let forwards = pass % 2 == 0;
        let sweep: Vec<usize> = if forwards { (1..=last).collect() } else { (0..last).rev().collect() };
        let mut ranks = ranks(&order, stops.len());
        for column in sweep {
            let of = |stop: usize| if forwards { &neighbours.before[stop] } else { &neighbours.after[stop] };
            let mean = |stop: usize| {
                let near = of(stop);
                match near.len() {
                    0 => ranks[stop] as f64,
                    n => near.iter().map(|other| ranks[*other] as f64).sum::<f64>() / n as f64,
                }
            };
            let mut keyed: Vec<(f64, usize, usize)> =
                order[column].iter().enumerate().map(|(rank, stop)| (mean(*stop), rank, *stop)).collect();
            // Swapping equal means on every second pass gets out of dead ends.
            let other = pass % 4 >= 2;
            keyed.sort_by(|a, b| {
                a.0.total_cmp(&b.0).then_with(|| if other { b.1.cmp(&a.1) } else { a.1.cmp(&b.1) })
            });
            order[column] = keyed.into_iter().map(|(.., stop)| stop).collect();
            order[column].iter().enumerate().for_each(|(rank, stop)| ranks[*stop] = rank);
        }
        let now = crossings(&order, stops, links);
        if now < best.0 {
            best = (now, order.clone());
        }
        if best.0 == 0 {
            break;
        }
    }
    best.1
}

/// Number of crossings of links between neighbouring columns.
fn crossings(order: &[Vec<usize>], stops: &[Stop], links: &[(usize, usize)]) -> usize {
    let ranks = ranks(order, stops.len());
    let mut by_column: Vec<Vec<(usize, usize)>> = vec![Vec::new(); order.len()];
    for (from, to) in links {
        by_column[stops[*from].column].push((ranks[*from], ranks[*to]));
    }
    let mut crossings = 0;
    for (column, mut pairs) in by_column.into_iter().enumerate() {
        pairs.sort_unstable();
        // Inversions of the far ranks, counted in a Fenwick tree.
        let size = order.get(column + 1).map_or(0, Vec::len);
        let mut tree = vec![0usize; size + 1];
        for (seen, (_, to)) in pairs.iter().enumerate() {
            let (mut at, mut not_after) = (to + 1, 0);
            while at > 0 {
                not_after += tree[at];
                at &= at - 1;
            }
            crossings += seen - not_after;
            let mut at = to + 1;
            while at <= size {
                tree[at] += 1;
                at += at & at.wrapping_neg();
            }
        }
    }
    crossings
}

/// The vertical centres of all boxes and bends.
fn heights(stops: &[Stop], order: &[Vec<usize>], neighbours: &Neighbours) -> Vec<f64> {
    let mut middles = vec![0.0; stops.len()];
    let distance = |a: usize, b: usize| {
        let gap = if stops[a].bend && stops[b].bend { GAP_Y / 2.0 } else { GAP_Y };
        (stops[a].height + stops[b].height) / 2.0 + gap
    };
    for column in order {
        let mut at = 0.0;
        for (i, stop) in column.iter().enumerate() {
            at += if i > 0 { distance(column[i - 1], *stop) } else { 0.0 };
            middles[*stop] = at;
        }
        column.iter().for_each(|stop| middles[*stop] -= at / 2.0);
    }
    // Keeping a line through bends straight has the greatest weight.
    let weight = |a: usize, b: usize| match (stops[a].bend, stops[b].bend) {
        (true, true) => 8.0,
        (false, false) => 1.0,
        _ => 2.0,
    };
    for pass in 0..PASSES + LAST {
        let sweep: Vec<usize> =
            if pass % 2 == 0 { (0..order.len()).collect() } else { (0..order.len()).rev().collect() };
        for column in sweep {
            let mut wanted: Vec<(f64, f64)> = Vec::with_capacity(order[column].len());
            for stop in &order[column] {
                let (before, after) = (&neighbours.before[*stop], &neighbours.after[*stop]);
                let near: Vec<usize> = match pass {
                    PASSES.. => before.iter().chain(after).copied().collect(),
                    _ if pass % 2 == 0 => before.clone(),
                    _ => after.clone(),
                };
                let sum: f64 = near.iter().map(|other| weight(*stop, *other)).sum();
                let mean: f64 = near.iter().map(|other| weight(*stop, *other) * middles[*other]).sum();
                wanted.push(if sum > 0.0 { (mean / sum, sum) } else { (middles[*stop], 0.1) });
            }
            let gaps: Vec<f64> = order[column].windows(2).map(|pair| distance(pair[0], pair[1])).collect();
            for (stop, middle) in order[column].iter().zip(nearest(&wanted, &gaps)) {
                middles[*stop] = middle;
            }
        }
    }
    middles
}

/// The heights closest to the wanted ones (with weights), each at least a gap after the one before.
fn nearest(wanted: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    // Without the gaps this is an isotonic regression: neighbours in the wrong order become one block at their mean.
    let mut shifts = Vec::with_capacity(wanted.len());
    let mut shift = 0.0;
    for i in 0..wanted.len() {
        shift += if i > 0 { gaps[i - 1] } else { 0.0 };
        shifts.push(shift);
    }
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for ((at, weight), shift) in wanted.iter().zip(&shifts) {
        let mut block = (at - shift, *weight, 1);
        while let Some(last) = blocks.pop_if(|last| last.0 > block.0) {
            let weight = last.1 + block.1;
            block = ((last.0 * last.1 + block.0 * block.1) / weight, weight, last.2 + block.2);
        }
        blocks.push(block);
    }
    let values = blocks.iter().flat_map(|(at, _, n)| std::iter::repeat_n(*at, *n));
    values.zip(&shifts).map(|(at, shift)| at + shift).collect()
}

/// Corners and routes.
fn placed(
    items: &[Item],
    stops: &[Stop],
    order: &[Vec<usize>],
    middles: &[f64],
    paths: &[Vec<usize>],
    turned: Vec<bool>,
) -> Layout {
    let mut lefts = Vec::with_capacity(order.len());
    let mut widths = Vec::with_capacity(order.len());
    let mut x = 0.0;
    for column in order {
        let width =
            column.iter().filter_map(|stop| items.get(*stop)).map(|item| item.width).fold(0.0, f64::max);
        lefts.push(x);
        widths.push(width);
        x += width + GAP_X;
    }
    let width = (x - GAP_X).max(0.0);
    let top = (0..stops.len()).map(|i| middles[i] - stops[i].height / 2.0).fold(f64::INFINITY, f64::min);
    let bottom =
        (0..stops.len()).map(|i| middles[i] + stops[i].height / 2.0).fold(f64::NEG_INFINITY, f64::max);
    if stops.is_empty() {
        return Layout::default();
    }
    let span = |stop: usize| {
        let (left, own) = (lefts[stops[stop].column], widths[stops[stop].column]);
        match items.get(stop) {
            Some(item) => {
                let left = left + (own - item.width) / 2.0;
                (left, left + item.width, middles[stop] - top)
            }
            None => (left, left + own, middles[stop] - top),
        }
    };
    let corners = (0..items.len()).map(|i| {
        let (left, _, middle) = span(i);
        (left, middle - items[i].height / 2.0)
    });
    let routes = paths.iter().zip(&turned).map(|(path, turned)| {
        let mut route: Vec<_> = path.iter().map(|stop| span(*stop)).collect();
        if *turned {
            route.reverse();
        }
        route
    });
    Layout { corners: corners.collect(), routes: routes.collect(), turned, width, height: bottom - top }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(odd: bool, time: u64) -> Item {
        Item { width: 100.0, height: 30.0, odd, time }
    }

    #[test]
    fn arrows_go_from_left_to_right_and_boxes_do_not_overlap() {
        // Three inputs of one job, one of which a later job also reads; two results.
        let items: Vec<Item> = [false, false, false, true, false, true, false]
            .iter()
            .zip(0..)
            .map(|(odd, t)| item(*odd, t))
            .collect();
        let arrows = [(0, 3), (1, 3), (2, 3), (3, 4), (4, 5), (0, 5), (5, 6)];
        let layout = layout(&items, &arrows);
        for (from, to) in arrows {
            assert!(layout.corners[from].0 + 100.0 < layout.corners[to].0, "{from} to {to}: {layout:?}");
        }
        for a in 0..items.len() {
            for b in 0..a {
                let ((ax, ay), (bx, by)) = (layout.corners[a], layout.corners[b]);
                assert!((ax - bx).abs() >= 100.0 || (ay - by).abs() >= 30.0 + GAP_Y - 0.01, "{a} {b}");
            }
        }
        assert!(layout.corners.iter().all(|(x, y)| *x >= 0.0 && *y >= 0.0));
        assert_eq!(layout.turned, [false; 7]);
    }

    #[test]
    fn a_circle_has_one_arrow_that_goes_back() {
        let items = [item(false, 1), item(true, 2)];
        let layout = layout(&items, &[(0, 1), (1, 0)]);
        assert_eq!(layout.turned, [false, true]);
        assert!(layout.routes[1][0].0 > layout.routes[1][1].0, "{layout:?}");
    }

    #[test]
    fn crossings_are_undone_where_that_is_possible() {
        // Four inputs of four jobs, in reverse order.
        let items: Vec<Item> = (0..8).map(|i| item(i >= 4, i)).collect();
        let arrows: Vec<(usize, usize)> = (0..4).map(|i| (i, 7 - i)).collect();
        let layout = layout(&items, &arrows);
        for (from, to) in arrows {
            assert!((layout.corners[from].1 - layout.corners[to].1).abs() < 0.01, "{layout:?}");
        }
    }

    #[test]
    fn heights_keep_their_order_and_their_distance() {
        let values = nearest(&[(5.0, 1.0), (0.0, 1.0), (20.0, 1.0)], &[4.0, 4.0]);
        assert_eq!(values, [0.5, 4.5, 20.0]);
        assert!(nearest(&[], &[]).is_empty());
    }
}
