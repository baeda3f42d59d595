//! The checks that resolve a view for a given shape: each error names the position and value at fault. The agreement
//! of ranks adds the rank.

use fieldstone_core::{Code, Error, Result};

use super::axis::ViewAxis;
use super::{Halo, LocalView, View, ViewKind};

pub(super) fn resolve(
    view: &View,
    shape: &[u64],
    (rank, size): (usize, usize),
    before: u64,
) -> Result<LocalView> {
    product(shape, "the array")?;
    let is_block = matches!(view.kind, ViewKind::Block { .. } | ViewKind::Grid { .. });
    let has_halo = view.halo != Halo::All(0) || view.stride.iter().any(|stride| *stride != 1);
    if has_halo && !is_block {
        return Err(Code::Option
            .error(format!("a {} view cannot have a halo or a stride", view.word()))
            .with_hint("halo and stride belong to fst.block"));
    }
    let of = |axes: Vec<ViewAxis>| {
        let local_shape: Vec<u64> = axes.iter().map(ViewAxis::len).collect();
        product(&local_shape, "this rank's part")?;
        Ok(LocalView::new(shape, local_shape, 0, axes, None))
    };
    match &view.kind {
        ViewKind::Block { start, count } => block(view, shape, start, count),
        ViewKind::Grid { grid } => {
            let at = coordinates(grid, shape, rank, size)?;
            let parts = grid.iter().zip(&at).zip(shape).map(|((parts, at), len)| split(*len, *parts, *at));
            let (start, count): (Vec<_>, Vec<_>) = parts.unzip();
            block(view, shape, &start, &count)
        }
        ViewKind::Cyclic { grid, blocks } => {
            let at = coordinates(grid, shape, rank, size)?;
            check_dims("blocks", blocks.len(), shape)?;
            let axis = |i: usize| match blocks[i] {
                0 => Err(Code::Option.error(format!("blocks[{i}] is 0")).with_hint("a block has an element")),
                block => Ok(ViewAxis::Cyclic {
                    first: at[i].saturating_mul(block).min(shape[i]),
                    block,
                    period: block.saturating_mul(grid[i]),
                    extent: shape[i],
                }),
            };
            of((0..shape.len()).map(axis).collect::<Result<_>>()?)
        }
        ViewKind::Irregular { map, owned, dim } => {
            let owned = owned_of(*owned, map.len())?;
            irregular(map, owned, *dim, shape)
        }
        ViewKind::Joined { count } => {
            let Some(first) = shape.first() else {
                return Err(Code::Shape.error("a joined view needs an array with dimensions"));
            };
            if before.checked_add(*count).is_none_or(|end| end > *first) {
                return Err(Code::Box.error(format!(
                    "a joined view of {count} indices after {before} on the lower ranks exceeds dimension \
                     0, which has {first}"
                )));
            }
            let range = ViewAxis::Range { start: before, step: 1, count: *count, memory: 0 };
            of(std::iter::once(range).chain(shape[1..].iter().map(|len| ViewAxis::whole(*len))).collect())
        }
    }
}

/// The product of a shape, for which offsets of bytes must fit.
fn product(shape: &[u64], what: &str) -> Result<u64> {
    let product =
        shape.iter().filter(|len| **len > 0).try_fold(1u64, |product, len| product.checked_mul(*len));
    product.filter(|product| *product <= i64::MAX as u64 / 16).ok_or_else(|| {
        Code::TooLarge.error(format!("{what} has the shape {shape:?}, which is 2^59 elements or more"))
    })
}

fn check_dims(what: &str, given: usize, shape: &[u64]) -> Result<()> {
    match given == shape.len() {
        true => Ok(()),
        false => Err(Code::Shape
            .error(format!("{what} has {given} entries, but the array has {} dimensions", shape.len()))
            .with_hint("give one for each dimension")),
    }
}

/// The position of `rank` in a grid of `size` ranks, in C order.
fn coordinates(grid: &[u64], shape: &[u64], rank: usize, size: usize) -> Result<Vec<u64>> {
    check_dims("grid", grid.len(), shape)?;
    let ranks = grid.iter().try_fold(1u64, |ranks, parts| ranks.checked_mul(*parts));
    if ranks != Some(size as u64) {
        return Err(Code::Option
            .error(format!("grid {grid:?} does not fit {size} ranks"))
            .with_hint("the product of the grid must be the number of ranks"));
    }
    let mut left = rank as u64;
    let mut at: Vec<u64> = grid
        .iter()
        .rev()
        .map(|parts| {
            let at = left % parts;
            left /= parts;
            at
        })
        .collect();
    at.reverse();
    Ok(at)
}

/// First index and count of part `at` of `parts`, as in numpy's `array_split`.
fn split(len: u64, parts: u64, at: u64) -> (u64, u64) {
    let (each, longer) = (len / parts, len % parts);
    (each * at + at.min(longer), each + u64::from(at < longer))
}

fn block(view: &View, shape: &[u64], start: &[u64], count: &[u64]) -> Result<LocalView> {
    check_dims("start", start.len(), shape)?;
    check_dims("count", count.len(), shape)?;
    if !view.stride.is_empty() {
        check_dims("stride", view.stride.len(), shape)?;
    }
    let halo = match &view.halo {
        Halo::All(width) => vec![(*width, *width); shape.len()],
        Halo::Each(widths) => {
            check_dims("halo", widths.len(), shape)?;
            widths.clone()
        }
    };
    let stride = |i: usize| view.stride.get(i).copied().unwrap_or(1);
    let (mut own, mut all, mut local) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..shape.len() {
        let (step, (before, behind)) = (stride(i), halo[i]);
        let far = start[i].checked_add(count[i].saturating_sub(1).saturating_mul(step));
        let (far, is_empty) = (far.unwrap_or(u64::MAX), count[i] == 0);
        if step == 0 {
            return Err(Code::Option.error(format!("stride[{i}] is 0")).with_hint("1 takes every element"));
        }
        if step > 1 && (before, behind) != (0, 0) {
            return Err(Code::Option.error(format!("dimension {i} has both a stride and a halo")));
        }
        if if is_empty { start[i] > shape[i] } else { far >= shape[i] } {
            return Err(outside(i, start[i], count[i], step, shape[i]));
        }
        let wide = count[i].checked_add(before).and_then(|wide| wide.checked_add(behind));
        local.push(wide.ok_or_else(|| Code::TooLarge.error(format!("halo[{i}] is {before}, {behind}")))?);
        own.push(ViewAxis::Range { start: start[i], step, count: count[i], memory: before });
        let left = before.min(start[i]);
        let right = behind.min(shape[i] - start[i].saturating_add(count[i]).min(shape[i]));
        all.push(match step {
            1 => ViewAxis::Range {
                start: start[i] - left,
                step,
                count: count[i] + left + right,
                memory: before - left,
            },
            _ => ViewAxis::Range { start: start[i], step, count: count[i], memory: 0 },
        });
    }
    product(&local, "this rank's part")?;
    let written = (own != all).then_some(own);
    Ok(LocalView::new(shape, local, 0, all, written))
}

fn outside(dim: usize, start: u64, count: u64, step: u64, len: u64) -> Error {
    let apart = if step == 1 { String::new() } else { format!(", {step} apart") };
    Code::Box.error(format!("dimension {dim}: {count} indices from {start} on{apart} reach beyond its {len}"))
}

fn owned_of(owned: Option<u64>, len: usize) -> Result<usize> {
    let Some(owned) = owned else { return Ok(len) };
    usize::try_from(owned)
        .ok()
        .filter(|owned| *owned <= len)
        .ok_or_else(|| Code::Option.error(format!("owned is {owned}, but the map has only {len} entries")))
}

fn irregular(
    map: &std::sync::Arc<[i64]>,
    owned: usize,
    dim: Option<usize>,
    shape: &[u64],
) -> Result<LocalView> {
    let flat = [shape.iter().product::<u64>()];
    let (shape, dim) = match dim {
        None => (&flat[..], 0),
        Some(dim) => (shape, dim),
    };
    let Some(len) = shape.get(dim).copied() else {
        return Err(Code::Option.error(format!("dim is {dim}, but the array has {} dimensions", shape.len())));
    };
    if u32::try_from(map.len()).is_err() {
        return Err(Code::TooLarge.error(format!("a map of {} entries reaches the limit of 2^32", map.len())));
    }
    let limit = i64::try_from(len).unwrap_or(i64::MAX);
    if let Some((place, index)) = map.iter().enumerate().find(|(_, index)| **index < -1 || **index >= limit) {
        return Err(Code::Value
            .error(format!(
                "map[{place}] is {index}, but indices along it are 0 to {}, or -1",
                len as i128 - 1
            ))
            .with_hint("-1 means no element"));
    }
    let local: Vec<u64> =
        shape.iter().enumerate().map(|(i, len)| if i == dim { map.len() as u64 } else { *len }).collect();
    product(&local, "this rank's part")?;
    let axes = |count: usize| -> Vec<ViewAxis> {
        let axis = |(i, len): (usize, &u64)| match i == dim {
            true => ViewAxis::Map { map: map.clone(), count },
            false => ViewAxis::whole(*len),
        };
        shape.iter().enumerate().map(axis).collect()
    };
    let written = (owned < map.len()).then(|| axes(owned));
    Ok(LocalView::new(shape, local, 0, axes(map.len()), written))
}
