//! Rows that are found by their number, kept as they were decoded: entries name commits and logs so.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;

/// Most rows that are kept, about 150 bytes each.
const ROWS: usize = 1 << 17;

/// Decoded leaves of a table.
#[derive(Debug)]
pub struct Leaves<T> {
    kept: Mutex<KeptLeaves<T>>,
}

#[derive(Debug)]
struct KeptLeaves<T> {
    /// By the number of its first row.
    leaves: BTreeMap<u64, Arc<[T]>>,
    rows: usize,
}

impl<T> Default for Leaves<T> {
    fn default() -> Leaves<T> {
        Leaves { kept: Mutex::new(KeptLeaves { leaves: BTreeMap::new(), rows: 0 }) }
    }
}

impl<T: Clone> Leaves<T> {
    /// The row with a number; `load` gives the leaf that holds it, and the number of the leaf's first row.
    pub fn get(&self, row: u64, load: impl FnOnce() -> Result<Option<(u64, Vec<T>)>>) -> Result<Option<T>> {
        let within = |first: u64, leaf: &[T]| leaf.get(usize::try_from(row - first).ok()?).cloned();
        {
            let kept = self.kept.lock();
            let leaf = kept.leaves.range(..=row).next_back();
            if let Some(found) = leaf.and_then(|(first, leaf)| within(*first, leaf)) {
                return Ok(Some(found));
            }
        }
        let Some((first, leaf)) = load()? else { return Ok(None) };
        let found = within(first, &leaf);
        let mut kept = self.kept.lock();
        if kept.rows + leaf.len() > ROWS {
            kept.leaves.clear();
            kept.rows = 0;
        }
        let added = leaf.len();
        if kept.leaves.insert(first, leaf.into()).is_none() {
            kept.rows += added;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::Leaves;

    #[test]
    fn a_leaf_is_loaded_once() {
        let leaves = Leaves::default();
        let mut loads = 0;
        for row in [3u64, 5, 4, 3] {
            let found = leaves.get(row, || {
                loads += 1;
                Ok(Some((3, vec![30, 40, 50])))
            });
            assert_eq!(found.unwrap(), Some(row * 10));
        }
        assert_eq!(loads, 1);
        // A row behind the leaf is looked for again.
        assert_eq!(leaves.get(6, || Ok(Some((6, vec![60])))).unwrap(), Some(60));
        assert_eq!(leaves.get(9, || Ok(None)).unwrap(), None);
        assert_eq!(leaves.get(4, || panic!("it is there")).unwrap(), Some(40));
    }
}
