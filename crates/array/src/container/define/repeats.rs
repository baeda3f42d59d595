//! Checks that names are distinct.

use std::collections::HashSet;
use std::hash::Hash;

/// Up to this number of names are compared one by one; from there on, a table of hashes is faster.
pub(super) const FEW: usize = 32;

/// The first of `names` that equals an earlier one.
pub(super) fn first_repeat<N: Copy + Eq + Hash>(
    names: impl ExactSizeIterator<Item = N> + Clone,
) -> Option<N> {
    if names.len() <= FEW {
        let mut all = names.clone().enumerate();
        return all
            .find(|(i, name)| names.clone().take(*i).any(|other| other == *name))
            .map(|(_, name)| name);
    }
    let mut seen = HashSet::with_capacity(names.len());
    let mut names = names;
    names.find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::container::counting_key::CountingKey;

    #[test]
    fn the_first_repeat_is_found_in_short_and_long_lists() {
        for len in [0, 1, 2, FEW, FEW + 1, 1000] {
            let mut list: Vec<usize> = (0..len).collect();
            assert_eq!(first_repeat(list.iter()), None);
            list.extend([7, len, 3, len]);
            let first = if len > 7 { 7 } else { len };
            assert_eq!(first_repeat(list.iter()), Some(&first), "{len}");
        }
    }

    #[test]
    fn long_lists_are_not_compared_pair_by_pair() {
        let compared = Cell::new(0);
        let list: Vec<_> = (0..20_000).map(|i| CountingKey(i, &compared)).collect();
        assert_eq!(first_repeat(list.iter().copied()), None);
        assert!(compared.get() < 2 * list.len(), "{}", compared.get());
    }
}
