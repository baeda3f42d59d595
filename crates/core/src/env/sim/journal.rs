//! The changes to directory entries that no `sync_dir` has covered yet.
//!
//! Invariants:
//! * a change (create, link, rename, unlink) is atomic: a power cut leaves all its edits or none;
//! * a change is kept only with the earlier changes to the same names;
//! * a sync of the target directory settles a rename between directories.

use std::collections::BTreeSet;

use super::tree::{Ino, Node, ROOT, Tree};

/// A new value of one entry.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) dir: Ino,
    pub(super) name: String,
    pub(super) to: Option<Ino>,
}

/// Edits that form one atomic change.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The directory whose sync makes the change durable.
    pub(super) home: Ino,
    pub(super) edits: Vec<Edit>,
}

impl Tree {
    /// Makes the entries of a directory durable.
    pub(super) fn sync_dir(&mut self, dir: Ino) {
        let chosen = self.journal.iter().map(|c| c.home == dir).collect();
        self.make_durable(chosen);
        self.collect();
    }

    /// Makes the chosen changes durable, each with the earlier changes to the same names.
    pub(super) fn make_durable(&mut self, mut chosen: Vec<bool>) {
        let mut names = BTreeSet::new();
        for (change, chosen) in self.journal.iter().zip(&mut chosen).rev() {
            *chosen |= change.edits.iter().any(|e| names.contains(&(e.dir, &e.name)));
            if *chosen {
                names.extend(change.edits.iter().map(|e| (e.dir, &e.name)));
            }
        }
        let journal = std::mem::take(&mut self.journal);
        for (change, chosen) in journal.into_iter().zip(chosen) {
            if !chosen {
                self.journal.push(change);
                continue;
            }
            for edit in change.edits {
                let Some(dir) = self.dir_mut(edit.dir) else { continue };
                match edit.to {
                    Some(ino) => drop(dir.durable.insert(edit.name, ino)),
                    None => drop(dir.durable.remove(&edit.name)),
                }
            }
        }
    }

    /// Discards the files and directories that no name leads to, now or after a power cut.
    pub(super) fn collect(&mut self) {
        if !std::mem::take(&mut self.garbage) {
            return;
        }
        let mut kept = BTreeSet::from([ROOT]);
        let mut queue = vec![ROOT];
        queue.extend(self.journal.iter().flat_map(|c| c.edits.iter().filter_map(|e| e.to)));
        kept.extend(queue.iter());
        while let Some(ino) = queue.pop() {
            let Some(Node::Dir(dir)) = self.nodes.get(&ino) else { continue };
            for child in dir.entries.values().chain(dir.durable.values()) {
                if kept.insert(*child) {
                    queue.push(*child);
                }
            }
        }
        self.nodes.retain(|ino, _| kept.contains(ino));
    }

    /// After a change in a world without power cuts: discards an unnamed node at once.
    pub(super) fn collect_now(&mut self, ino: Ino) {
        if self.tracked {
            return;
        }
        let named = match self.nodes.get(&ino) {
            Some(Node::File(file)) => file.read().links > 0,
            _ => false,
        };
        if !named {
            self.nodes.remove(&ino);
        }
        self.garbage = false;
    }
}
