//! Fields as the specification defines them: the newest attempt, the visible generation, painted in order.

use fieldstone_core::env::sim::Random;

use super::change::{CELLS, SHAPE, What};

/// A field as a reader sees it: whether all elements are there, the number of bytes, and their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Whether all elements were written.
    pub complete: bool,
    /// The number of bytes.
    pub length: usize,
    /// A checksum of the bytes.
    pub sum: u64,
}

impl Shown {
    /// Of these bytes.
    pub fn of(bytes: &[u8], complete: bool) -> Shown {
        Shown { complete, length: bytes.len(), sum: sum(bytes) }
    }
}

/// A checksum of bytes (FNV-1a over words of eight).
fn sum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().fold(0xcbf2_9ce4_8422_2325, |sum, word| step(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(whole, |sum, byte| step(sum, u64::from(*byte)))
}

/// The bytes of an opaque field.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    Random::new(seed).bytes(length)
}

/// The field under a key, from its changes, oldest first.
pub fn shown(changes: &[(Option<u32>, What)]) -> Option<Shown> {
    let newest = changes.iter().filter_map(|(attempt, _)| *attempt).max();
    let (mut began, mut counting) = (None, Vec::new());
    for (attempt, what) in changes {
        began = began.max(*attempt);
        let is_generation = matches!(what, What::Bytes(..) | What::Whole(_) | What::Create(_) | What::Remove);
        if attempt.is_some() && *attempt == began && is_generation {
            // Values that it hides stay hidden behind it, also when a newer attempt hides it in turn.
            counting.clear();
        }
        if attempt.is_none() || *attempt == newest {
            counting.push(what);
        }
    }
    let mut field: Option<(Vec<Option<i32>>, i32)> = None;
    let mut opaque = None;
    for what in counting {
        match what {
            What::Wiped | What::Hidden(..) => {}
            What::Remove => (field, opaque) = (None, None),
            What::Bytes(seed, length) => opaque = Some((*seed, *length)),
            What::Whole(value) => field = Some((vec![Some(*value); CELLS], 0)),
            What::Create(fill) => field = Some((vec![None; CELLS], *fill)),
            What::Piece(start, count, value) => {
                let (cells, _) = field.get_or_insert_with(|| (vec![None; CELLS], 0));
                for row in start[0]..start[0] + count[0] {
                    let from = (row * SHAPE[1] + start[1]) as usize;
                    cells[from..from + count[1] as usize].fill(Some(*value));
                }
            }
        }
    }
    if let Some((seed, length)) = opaque {
        return Some(Shown::of(&pattern(seed, length), true));
    }
    let (cells, fill) = field?;
    let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.unwrap_or(fill).to_ne_bytes()).collect();
    Some(Shown::of(&bytes, cells.iter().all(Option::is_some)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_attempt_alone_counts_whatever_its_stragglers_write() {
        let changes =
            [(Some(1), What::Whole(7)), (Some(0), What::Whole(8)), (None, What::Piece([0, 0], [1, 5], 9))];
        let expected: Vec<u8> =
            [[9; 5], [7; 5], [7; 5]].concat().iter().flat_map(|x: &i32| x.to_ne_bytes()).collect();
        assert_eq!(shown(&changes), Some(Shown::of(&expected, true)));
        assert_eq!(shown(&[(None, What::Whole(1)), (None, What::Remove)]), None);
        assert_eq!(shown(&[(None, What::Piece([0, 0], [1, 1], 1))]).map(|shown| shown.complete), Some(false));
    }
}
