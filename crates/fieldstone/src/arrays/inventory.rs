//! A run's distributed arrays in a store: groups, steps, and files with the bytes that are in use in each.

use std::collections::BTreeMap;

use fieldstone_core::Result;
use fieldstone_format::catalog::{ArrayGroup, RunName};
use fieldstone_store::api::PlaceFile;

use crate::Session;
use crate::Store;
use crate::steps::entries;

/// A file of the store that holds arrays of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayFile {
    /// Its path, relative to the store's folder.
    pub path: String,
    /// Number of the group's arrays in it, in their newest versions.
    pub arrays: u64,
    /// Bytes of these arrays.
    pub bytes: u64,
}

/// A group with its steps, arrays and files.
#[derive(Debug, Clone)]
pub struct GroupInventory {
    /// The declared group.
    pub group: ArrayGroup,
    /// Steps, each with its sets, by their number in the group.
    pub steps: BTreeMap<i64, Vec<usize>>,
    /// Arrays, in files and logs.
    pub arrays: u64,
    /// Number of arrays that lack elements.
    pub incomplete: u64,
    /// Files that hold its arrays, by path.
    pub files: Vec<ArrayFile>,
}

/// The groups of a run, by name.
pub fn groups_of(store: &Store, run: &RunName) -> Result<Vec<GroupInventory>> {
    let groups = store.catalog().array_groups(run, &Session::default())?;
    groups.into_iter().map(|group| inventory(store, run, group)).collect()
}

fn inventory(store: &Store, run: &RunName, group: ArrayGroup) -> Result<GroupInventory> {
    let (mut steps, mut arrays, mut incomplete) = (BTreeMap::<i64, Vec<usize>>::new(), 0, 0);
    let mut files: BTreeMap<String, ArrayFile> = BTreeMap::new();
    for (number, set) in group.sets.iter().enumerate() {
        for entry in entries(store, run, &set.variable.name, &Session::default())? {
            let (step, entry) = entry?;
            steps.entry(step).or_default().push(number);
            arrays += 1;
            incomplete += u64::from(!entry.complete);
            if let Some(PlaceFile::Grown(path)) = entry.place.map(|place| place.file) {
                let path = path.to_string();
                let file = files.entry(path.clone()).or_insert(ArrayFile { path, arrays: 0, bytes: 0 });
                (file.arrays, file.bytes) = (file.arrays + 1, file.bytes + entry.nbytes);
            }
        }
    }
    Ok(GroupInventory { group, steps, arrays, incomplete, files: files.into_values().collect() })
}
