//! Finds objects by name among those defined here.
//!
//! Each kind of object (dimensions, global attributes, variables) keeps a 64-bit hash of every path, and builds an
//! open-addressing table over them only for the first search by name. A million objects defined in columns and
//! referred to by number are hashed once, at `enddef`, and need no table.
//!
//! Variables mostly name dimensions in the order of their definition. So a search first compares the name found last
//! and the one after it: if all searches succeed there, no table is ever built.
//!
//! Invariants: `hashes` covers the first objects of the kind, in order; the table has those of the first `in_table`
//! objects whose name no earlier one has, and is at most half full, so that names repeated any number of times in
//! foreign files take one slot. A search may find any of several equal names: `enddef` refuses them.

use fieldstone_format::netcdf::Names;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes and table of one kind of object. See the module's documentation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lookup {
    hashes: Vec<u64>,
    /// Upper half of a hash, then the object's number plus one; 0 if the slot is free.
    slots: Vec<u64>,
    in_table: usize,
    /// The object found last.
    last: usize,
}

/// The hash of a path, the same on every rank.
pub(crate) fn hash_of(path: &str) -> u64 {
    xxh3_64(path.as_bytes())
}

impl Lookup {
    /// The hash of each of `names`, which are the names of this kind, in order.
    pub fn hashes(&mut self, names: &Names) -> &[u64] {
        let known = self.hashes.len();
        if known < names.len() {
            self.hashes.reserve_exact(names.len() - known);
            self.hashes.extend((known..names.len()).map(|i| hash_of(names.get(i))));
        }
        &self.hashes
    }

    /// Number of the object with this path.
    pub fn find(&mut self, names: &Names, path: &str) -> Option<u32> {
        let near = self.last..names.len().min(self.last + 2);
        let found = near.clone().find(|i| names.get(*i) == path);
        let found = found.map(|i| i as u32).or_else(|| self.search(names, path));
        if let Some(found) = found {
            self.last = found as usize;
        }
        found
    }

    /// Number of the first object with this path, also if a foreign file has several.
    pub fn search(&mut self, names: &Names, path: &str) -> Option<u32> {
        let hash = hash_of(path);
        self.bring_up(names);
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let id = (self.slots[at] as u32).wrapping_sub(1);
            if self.slots[at] >> 32 == hash >> 32 && names.get(id as usize) == path {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Discards everything, because names have changed.
    pub fn clear(&mut self) {
        *self = Lookup::default();
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> u64 {
        (self.hashes.capacity() + self.slots.capacity()) as u64 * 8
    }

    fn bring_up(&mut self, names: &Names) {
        if self.in_table == names.len() {
            return;
        }
        self.hashes(names);
        if names.len() * 2 > self.slots.len() {
            self.slots = vec![0; (names.len() * 2).next_power_of_two().max(16)];
            self.in_table = 0;
        }
        let mask = self.slots.len() - 1;
        for (i, hash) in self.hashes.iter().enumerate().skip(self.in_table) {
            let mut at = *hash as usize & mask;
            loop {
                let slot = self.slots[at];
                if slot == 0 {
                    self.slots[at] = (hash >> 32) << 32 | (i as u64 + 1);
                    break;
                }
                // A search finds the first of equal names. If the table kept the others, every later name would have
                // to pass over them.
                let other = (slot as u32).wrapping_sub(1) as usize;
                if self.hashes.get(other) == Some(hash) && names.get(other) == names.get(i) {
                    break;
                }
                at = (at + 1) & mask;
            }
        }
        self.in_table = names.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_order_need_no_table() {
        let mut names = Names::default();
        (0..100).for_each(|i| names.push(&format!("x{i}")));
        let mut lookup = Lookup::default();
        for i in 0..200 {
            assert_eq!(lookup.find(&names, &format!("x{}", i / 2)), Some(i / 2));
        }
        assert_eq!(lookup.memory(), 0);
        names.push("x7");
        assert_eq!(lookup.search(&names, "x7"), Some(7));
    }

    #[test]
    fn finds_every_name_and_no_other() {
        let mut names = Names::default();
        let mut lookup = Lookup::default();
        for i in 0..5000 {
            let name = format!("event_{i}/x");
            assert_eq!(lookup.find(&names, &name), None);
            names.push(&name);
            assert_eq!(lookup.find(&names, &name), Some(i));
        }
        for i in (0..5000).step_by(7) {
            let name = format!("event_{i}/x");
            assert_eq!(lookup.find(&names, &name), Some(i));
        }
        for i in 0..4990 {
            let name = format!("event_{}/x", i + i % 10);
            assert_eq!(lookup.find(&names, &name), Some(i + i % 10));
            assert_eq!(lookup.find(&names, &name[1..]), None);
        }
        assert_eq!(lookup.hashes(&names).len(), 5000);
    }

    #[test]
    fn repeated_names_take_one_slot_and_the_first_is_found() {
        let mut names = Names::default();
        for i in 0..3000 {
            names.push(["same", "other", &format!("x{i}")][i % 3]);
        }
        let mut lookup = Lookup::default();
        for (name, first) in [("same", Some(0)), ("other", Some(1)), ("x2", Some(2)), ("x3", None)] {
            assert_eq!(lookup.search(&names, name), first);
        }
        // A probe may have to pass over every taken slot.
        assert_eq!(lookup.slots.iter().filter(|slot| **slot != 0).count(), 1002);
        // Including objects that come later, after the table has grown.
        (0..9000).for_each(|_| names.push("same"));
        assert_eq!(lookup.search(&names, "same"), Some(0));
        assert_eq!(lookup.slots.iter().filter(|slot| **slot != 0).count(), 1002);
    }
}
