//! Checks whether the boxes of ranks overlap.

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Step, Team};

use crate::distributed::view::Footprint;

/// Collective: whether it is certain that no element is on two ranks: the array is distributed by a decomposition, or
/// all ranks have boxes, which do not overlap.
pub(super) fn is_disjoint(team: &Team, step: Step, own: &Footprint, deal: u64) -> Result<bool> {
    let bounds = own.bounds();
    let dims = bounds.map_or(0, |(start, _)| start.len() as u64);
    let form = if bounds.is_some() { dims + 1 } else { 0 };
    let agreed = team.max(step, Ok(vec![deal, !deal, form, !form]))?;
    if agreed[0] == !agreed[1] && deal != 0 {
        return Ok(true);
    }
    if agreed[2] != !agreed[3] || form == 0 {
        return Ok(false);
    }
    let (start, count) = bounds.unwrap_or((&[], &[]));
    let words = start.iter().chain(count).flat_map(|word| word.to_le_bytes()).collect();
    let all = team.allgather(step, Ok(words))?;
    let boxes: Vec<Vec<u64>> = all.iter().map(|bytes| words_of(bytes)).collect();
    Ok(disjoint(boxes, dims as usize))
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Whether no two boxes share an element; each box has first indices, then counts.
fn disjoint(boxes: Vec<Vec<u64>>, dims: usize) -> bool {
    let mut boxes: Vec<Vec<u64>> =
        boxes.into_iter().filter(|words| words.len() == 2 * dims && !words[dims..].contains(&0)).collect();
    if dims == 0 {
        return boxes.len() < 2;
    }
    boxes.sort();
    let meets =
        |a: &[u64], b: &[u64]| (0..dims).all(|i| a[i] < b[i] + b[dims + i] && b[i] < a[i] + a[dims + i]);
    boxes.iter().enumerate().all(|(n, one)| {
        let behind = boxes[n + 1..].iter().take_while(|other| other[0] < one[0] + one[dims]);
        behind.into_iter().all(|other| !meets(one, other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_that_only_touch_do_not_overlap() {
        let boxes = |list: &[[u64; 4]]| list.iter().map(|words| words.to_vec()).collect::<Vec<_>>();
        assert!(disjoint(boxes(&[[0, 0, 2, 3], [2, 0, 2, 3], [0, 3, 4, 1]]), 2));
        assert!(!disjoint(boxes(&[[0, 0, 2, 3], [3, 0, 1, 1], [1, 2, 2, 2]]), 2));
        assert!(disjoint(boxes(&[[0, 0, 4, 4], [1, 1, 0, 2]]), 2), "nothing overlaps nothing");
        assert!(disjoint(vec![vec![]], 0) && !disjoint(vec![vec![], vec![]], 0), "scalars");
    }
}
