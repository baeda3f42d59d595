//! Boxes of a global index space.

use super::check_rank;
use crate::{Code, Error, Result};
use std::fmt;
use std::str::FromStr;

/// A box: start and count for each dimension; `start + count` never overflows.
///
/// Its text has half-open ranges, `0:50,10:20`, and is `()` for the only box of a scalar.
///
/// ```
/// use fieldstone_core::geometry::IndexBox;
/// let piece = IndexBox::new(vec![0, 10], vec![50, 10], &[50, 40])?;
/// assert_eq!(piece.to_string(), "0:50,10:20");
/// assert_eq!(IndexBox::parse("0:50,10:20")?, piece);
/// # Ok::<(), fieldstone_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexBox {
    start: Vec<u64>,
    count: Vec<u64>,
}

impl IndexBox {
    /// Makes a box inside `shape`; `Invalid` names the dimension in which it is not inside.
    pub fn new(start: Vec<u64>, count: Vec<u64>, shape: &[u64]) -> Result<IndexBox> {
        let new = IndexBox::unbounded(start, count)?;
        new.check_within(shape)?;
        Ok(new)
    }

    /// Makes a box of a space whose shape is not known yet.
    pub fn unbounded(start: Vec<u64>, count: Vec<u64>) -> Result<IndexBox> {
        if start.len() != count.len() {
            return Err(Code::Box.error(format!(
                "a box with {} starts and {} counts; each dimension needs both",
                start.len(),
                count.len()
            )));
        }
        check_rank(start.len())?;
        for (d, (&first, &length)) in start.iter().zip(&count).enumerate() {
            if first.checked_add(length).is_none() {
                return Err(Code::Box.error(format!(
                    "dimension {d} of the box: start {first} + count {length} exceeds 2^64"
                )));
            }
        }
        Ok(IndexBox { start, count })
    }

    /// The box of the whole array; `Invalid` only for too many dimensions.
    pub fn whole(shape: &[u64]) -> Result<IndexBox> {
        IndexBox::unbounded(vec![0; shape.len()], shape.to_vec())
    }

    /// Makes a box from `start` and half-open `end`, with `start <= end` and the same rank: for parts of boxes that
    /// were checked already.
    pub(super) fn from_bounds(start: Vec<u64>, end: &[u64]) -> IndexBox {
        let count = start.iter().zip(end).map(|(s, e)| e.saturating_sub(*s)).collect();
        IndexBox { start, count }
    }

    /// Fails if the box extends beyond `shape` or has another rank.
    pub fn check_within(&self, shape: &[u64]) -> Result<()> {
        if self.rank() != shape.len() {
            return Err(Code::Box.error(format!(
                "box {self} has {} dimensions, the array has {} (shape {shape:?})",
                self.rank(),
                shape.len()
            )));
        }
        for (d, &extent) in shape.iter().enumerate() {
            if self.end(d) > extent {
                return Err(Code::Box
                    .error(format!(
                        "box {self}: dimension {d} reaches from {} to {}, the array has {extent} there",
                        self.start[d],
                        self.end(d)
                    ))
                    .with_hint("start + count must not exceed the shape"));
            }
        }
        Ok(())
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.start.len()
    }

    /// First index per dimension.
    pub fn start(&self) -> &[u64] {
        &self.start
    }

    /// Extent per dimension: the shape of a buffer that covers this box.
    pub fn count(&self) -> &[u64] {
        &self.count
    }

    /// First index after the box in dimension `d`; 0 if the box has no such dimension.
    pub fn end(&self, d: usize) -> u64 {
        // Checked when the box was made.
        self.start.get(d).zip(self.count.get(d)).map_or(0, |(s, c)| s.saturating_add(*c))
    }

    /// Whether the box has no elements. A scalar's box has one.
    pub fn is_empty(&self) -> bool {
        self.count.contains(&0)
    }

    /// Number of elements of the box; `Invalid` if it does not fit in `u64`.
    pub fn element_count(&self) -> Result<u64> {
        super::element_count(&self.count)
    }

    /// The elements that both boxes have; `None` if there are none or the ranks differ.
    pub fn intersect(&self, other: &IndexBox) -> Option<IndexBox> {
        if self.rank() != other.rank() {
            return None;
        }
        let mut part =
            IndexBox { start: Vec::with_capacity(self.rank()), count: Vec::with_capacity(self.rank()) };
        for d in 0..self.rank() {
            let first = self.start[d].max(other.start[d]);
            let end = self.end(d).min(other.end(d));
            if first >= end {
                return None;
            }
            part.start.push(first);
            part.count.push(end - first);
        }
        Some(part)
    }

    /// Whether the boxes share an element.
    pub fn overlaps(&self, other: &IndexBox) -> bool {
        self.rank() == other.rank()
            && (0..self.rank()).all(|d| self.start[d].max(other.start[d]) < self.end(d).min(other.end(d)))
    }

    /// Whether `inner` is inside this box (its bounds, if it is empty).
    pub fn contains(&self, inner: &IndexBox) -> bool {
        self.rank() == inner.rank()
            && (0..self.rank()).all(|d| self.start[d] <= inner.start[d] && inner.end(d) <= self.end(d))
    }

    /// The same elements with indices counted from `origin`'s start; `Invalid` unless `origin`
    /// contains this box.
    pub fn relative_to(&self, origin: &IndexBox) -> Result<IndexBox> {
        if !origin.contains(self) {
            return Err(Code::Box.error(format!("box {self} is not inside box {origin}")));
        }
        let start = self.start.iter().zip(&origin.start).map(|(s, o)| s - o).collect();
        Ok(IndexBox { start, count: self.count.clone() })
    }

    /// The inverse of [`relative_to`](Self::relative_to): indices counted from `origin`'s start become global;
    /// `Invalid` unless the result is inside `origin`.
    pub fn shifted_into(&self, origin: &IndexBox) -> Result<IndexBox> {
        self.check_within(&origin.count)?;
        let start = self.start.iter().zip(&origin.start).map(|(s, o)| s + o).collect();
        Ok(IndexBox { start, count: self.count.clone() })
    }

    /// Parses the text that `Display` writes.
    pub fn parse(text: &str) -> Result<IndexBox> {
        let text = text.trim();
        if text.is_empty() || text == "()" {
            return IndexBox::unbounded(Vec::new(), Vec::new());
        }
        let (mut start, mut count) = (Vec::new(), Vec::new());
        for (d, range) in text.split(',').enumerate() {
            let wrong = |why: &str| {
                let shown: String = range.chars().take(60).collect();
                Code::Box
                    .error(format!("box: dimension {d} is {shown:?}: {why}"))
                    .with_hint("write a box as half-open ranges, such as 0:50,10:20")
            };
            let (first, end) = range.split_once(':').ok_or_else(|| wrong("it has no ':'"))?;
            let number = |digits: &str| {
                let digits = digits.trim();
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                let number = if plain { digits.parse::<u64>().ok() } else { None };
                number.ok_or_else(|| wrong("an index is a whole number from 0 to 2^64 - 1"))
            };
            let (first, end) = (number(first)?, number(end)?);
            let length = end.checked_sub(first).ok_or_else(|| wrong("it ends before it starts"))?;
            start.push(first);
            count.push(length);
        }
        IndexBox::unbounded(start, count)
    }
}

impl FromStr for IndexBox {
    type Err = Error;

    fn from_str(text: &str) -> Result<IndexBox> {
        IndexBox::parse(text)
    }
}

impl fmt::Display for IndexBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start.is_empty() {
            return f.write_str("()");
        }
        for d in 0..self.rank() {
            let comma = if d == 0 { "" } else { "," };
            write!(f, "{comma}{}:{}", self.start[d], self.end(d))?;
        }
        Ok(())
    }
}
