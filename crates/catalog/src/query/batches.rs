//! A set of batches, which decides rows by their batch numbers.

/// Batches of attributes.
#[derive(Debug)]
pub(super) enum Batches {
    /// Those of every log.
    Every,
    /// Ranges of numbers, both ends included, ascending.
    Ranges(Vec<(i64, i64)>),
}

impl Batches {
    /// Whether the set holds all batches, or none; `None` if it depends on the batch.
    pub(super) fn decided(&self) -> Option<bool> {
        match self {
            Batches::Every => Some(true),
            Batches::Ranges(ranges) if ranges.is_empty() => Some(false),
            Batches::Ranges(_) => None,
        }
    }

    pub(super) fn contains(&self, batch: i64) -> bool {
        match self {
            Batches::Every => true,
            Batches::Ranges(ranges) => {
                let at = ranges.partition_point(|(_, last)| *last < batch);
                ranges.get(at).is_some_and(|(first, _)| *first <= batch)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_found_in_its_range() {
        let batches = Batches::Ranges(vec![(2, 4), (7, 7), (9, 12)]);
        let found: Vec<i64> = (0..14).filter(|batch| batches.contains(*batch)).collect();
        assert_eq!(found, [2, 3, 4, 7, 9, 10, 11, 12]);
        assert_eq!(
            (Batches::Every.decided(), Batches::Ranges(Vec::new()).decided()),
            (Some(true), Some(false))
        );
    }
}
