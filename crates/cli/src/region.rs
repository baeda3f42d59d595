//! Parts of arrays as the command line names them: `0:5,:,3`, in numpy's words.
//!
//! A range is half-open; an end that is left out is the array's; a single index takes its dimension
//! away; dimensions that are not named are taken whole.

use fieldstone::{Code, IndexBox, Result};

/// Largest part of an array that is held at once.
const SLAB_BYTES: u64 = 32 << 20;

/// The part of one dimension to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegionPart {
    Range(Option<u64>, Option<u64>),
    Index(u64),
}

/// A part of an array whose shape is not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Region(Vec<RegionPart>);

impl Region {
    /// Reads `0:5,:,3`.
    pub fn parse(text: &str) -> Result<Region> {
        let part = |(d, text): (usize, &str)| {
            let wrong = |why: &str| {
                Code::Box
                    .error(format!("box: dimension {d} is '{text}': {why}"))
                    .with_hint("write a half-open range, an index or a colon per dimension, such as 0:5,:,3")
            };
            let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
                true => digits.parse::<u64>().map_err(|_| wrong("it has no number below 2^64")),
                false => Err(wrong("dimensions are given by position, indices are whole numbers from 0")),
            };
            let optional = |digits: &str| Some(digits).filter(|d| !d.is_empty()).map(number).transpose();
            match text.split_once(':') {
                Some((_, end)) if end.contains(':') => {
                    Err(wrong("it has more than one colon; dimensions are given by position"))
                }
                Some((start, end)) => Ok(RegionPart::Range(optional(start.trim())?, optional(end.trim())?)),
                None => Ok(RegionPart::Index(number(text)?)),
            }
        };
        text.split(',').map(str::trim).enumerate().map(part).collect::<Result<_>>().map(Region)
    }

    /// The box in an array of `shape`, and the shape of its content without the dimensions that have a single index.
    /// Invalid if the box is not inside the array.
    pub fn within(&self, shape: &[u64]) -> Result<(IndexBox, Vec<u64>)> {
        let parts = self.0.len();
        if parts > shape.len() {
            return Err(Code::Box.error(format!("box: {parts} dimensions for an array of shape {shape:?}")));
        }
        let (mut start, mut count, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for (d, &extent) in shape.iter().enumerate() {
            let (first, end, keep) = match self.0.get(d).copied().unwrap_or(RegionPart::Range(None, None)) {
                RegionPart::Range(first, end) => (first.unwrap_or(0), end.unwrap_or(extent), true),
                RegionPart::Index(i) => (i, i.saturating_add(1), false),
            };
            let Some(length) = end.checked_sub(first) else {
                return Err(
                    Code::Box.error(format!("box: dimension {d} ends at {end}, before its start {first}"))
                );
            };
            start.push(first);
            count.push(length);
            if keep {
                kept.push(length);
            }
        }
        Ok((IndexBox::new(start, count, shape)?, kept))
    }
}

/// Cuts a box along its first dimension into parts of bounded size whose bytes, one after another, are
/// those of the box.
pub fn slabs(whole: &IndexBox, item_size: usize) -> Result<Vec<IndexBox>> {
    let (Some(&first), Some(&rows)) = (whole.start().first(), whole.count().first()) else {
        return Ok(vec![whole.clone()]);
    };
    let row = fieldstone::element_count(&whole.count()[1..])?.saturating_mul(item_size as u64);
    let step = (SLAB_BYTES / row.max(1)).max(1);
    let cut = |at: u64| {
        let (mut start, mut count) = (whole.start().to_vec(), whole.count().to_vec());
        (start[0], count[0]) = (first + at, step.min(rows - at));
        IndexBox::unbounded(start, count)
    };
    let mut slabs = Vec::new();
    let mut at = 0;
    while at < rows {
        slabs.push(cut(at)?);
        at = at.saturating_add(step);
    }
    Ok(slabs)
}

#[cfg(test)]
mod tests {
    use fieldstone::Error;

    use super::*;

    #[test]
    fn ranges_indices_and_colons() {
        let within = |text: &str, shape: &[u64]| {
            let (region, kept) = Region::parse(text)?.within(shape)?;
            Ok::<_, Error>((region.to_string(), kept))
        };
        assert_eq!(within("0:5,:,3", &[10, 4, 6]).unwrap(), ("0:5,0:4,3:4".into(), vec![5, 4]));
        assert_eq!(within("2:", &[10, 4]).unwrap(), ("2:10,0:4".into(), vec![8, 4]));
        assert_eq!(within(":3", &[10]).unwrap(), ("0:3".into(), vec![3]));
        for (text, why) in [
            ("z:0:5", "by position"),
            ("z", "whole numbers"),
            ("-1:2", "whole numbers"),
            ("3:1", "before its start"),
            ("0:11", "11"),
            ("0,0,0", "3 dimensions for an array of shape [10, 4]"),
        ] {
            let error = within(text, &[10, 4]).unwrap_err();
            assert!(error.message().contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn slabs_are_bounded_and_make_up_the_box() {
        let whole = IndexBox::unbounded(vec![5, 0], vec![10, 1 << 20]).unwrap();
        let slabs = slabs(&whole, 8).unwrap();
        assert_eq!(slabs.len(), 3);
        assert_eq!(slabs.iter().map(|s| s.count()[0]).sum::<u64>(), 10);
        assert_eq!(slabs[1].to_string(), format!("9:13,0:{}", 1 << 20));
        let scalar = IndexBox::unbounded(vec![], vec![]).unwrap();
        assert_eq!(super::slabs(&scalar, 8).unwrap(), [scalar]);
        let empty = IndexBox::unbounded(vec![0], vec![0]).unwrap();
        assert_eq!(super::slabs(&empty, 8).unwrap(), []);
    }
}
