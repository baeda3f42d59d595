//! Random declarations of distributed arrays, and the expected result, in the plainest form.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_catalog::engine::{self, Index};
use fieldstone_core::dtype::DType;
use fieldstone_format::catalog::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, HistoryContent, HistoryDecl, ImportDecl, ImportFormat,
    MeshDecl, RankSizes, Record, RunName, StorageOrder, VariableName,
};
use fieldstone_testkit::Random;

use super::text;

/// The text of a declaration, and for a group the text of each set.
pub type Words = (String, Vec<(String, String)>);

pub fn group(dice: &mut Random) -> ArrayGroup {
    let mut sets = Vec::new();
    for name in ["t", "u", "v"] {
        if dice.one_in(2) {
            sets.push(ArraySet {
                variable: VariableName { name: name.into(), version: 1 },
                dtype: DType::F8,
                shape: vec![Some(if dice.one_in(5) { 7 } else { 8 }), None],
                dims: Vec::new(),
                fill: None,
                attrs: Vec::new(),
                pattern: BasicPattern::Regular,
                view: String::new(),
            });
        }
    }
    ArrayGroup {
        name: ["g", "h"][dice.below(2) as usize].into(),
        level: if dice.one_in(6) { 1 } else { 2 },
        layout: ArrayLayout::Files,
        method: "auto".into(),
        order: StorageOrder::C,
        mesh: None,
        location: None,
        chunks: None,
        compression: None,
        attrs: Vec::new(),
        sets,
    }
}

pub fn import(dice: &mut Random) -> ImportDecl {
    ImportDecl {
        name: ["x", "y"][dice.below(2) as usize].into(),
        source: "/data/x".into(),
        format: ImportFormat::Raw,
        size: if dice.one_in(4) { 9 } else { 8 },
        mtime: 0,
        checksum: None,
        variables: Vec::new(),
    }
}

pub fn mesh(dice: &mut Random) -> MeshDecl {
    let (name, checksum) = (["m", "n"][dice.below(2) as usize].into(), vec![dice.below(2) as u8]);
    MeshDecl { name, checksum, path: "meshes/m".into(), counts: [4, 5, 2, 0], attrs: Vec::new(), sums: None }
}

pub fn kept_partition(dice: &mut Random) -> HistoryDecl {
    let content = match dice.one_in(2) {
        true => HistoryContent::Edges,
        false => HistoryContent::Parts {
            vector: vec![1],
            ranks: vec![RankSizes { nodes: 2, ghosts: 1, edges: 3 }; 1 + dice.below(2) as usize],
        },
    };
    let path = ["p", "q"][dice.below(2) as usize].into();
    HistoryDecl { path, mesh: vec![1], nodes: 4, edges: 5, content }
}

/// The kind of the object, with its run.
pub fn named(run: &Option<RunName>, what: &str) -> String {
    run.as_ref().map_or(what.to_owned(), |run| format!("{what} of {}", text(run)))
}

fn group_words(group: &ArrayGroup) -> Words {
    let sets = group.sets.iter().map(|set| (set.variable.name.clone(), format!("{set:?}")));
    (group.level.to_string(), sets.collect())
}

/// The run, the kind of the object, and its text.
pub fn words(record: &Record) -> (Option<RunName>, String, Words) {
    match record {
        Record::Groups(run, all) => {
            (Some(run.clone()), format!("group '{}'", all[0].name), group_words(&all[0]))
        }
        Record::Imports(run, all) => {
            (Some(run.clone()), format!("import '{}'", all[0].name), (format!("{:?}", all[0]), Vec::new()))
        }
        Record::Meshes(all) => {
            (None, format!("mesh '{}'", all[0].name), (format!("{:?}", all[0]), Vec::new()))
        }
        Record::Histories(all) => {
            (None, format!("history '{}'", all[0].path), (format!("{:?}", all[0]), Vec::new()))
        }
        other => panic!("{other:?}"),
    }
}

/// The declarations that count, oldest first, as lines; the others are conflicts.
pub fn holding(
    all: impl Iterator<Item = (String, Words)>,
    conflicts: &mut BTreeMap<String, usize>,
) -> BTreeSet<String> {
    let mut hold: BTreeMap<String, Words> = BTreeMap::new();
    for (what, (says, sets)) in all {
        let Some((known, there)) = hold.get_mut(&what) else {
            hold.insert(what, (says, sets));
            continue;
        };
        let other = |(name, set): &(String, String)| there.iter().any(|(n, s)| n == name && s != set);
        if *known != says || sets.iter().any(other) {
            *conflicts.entry(what).or_default() += 1;
            continue;
        }
        let new: Vec<(String, String)> = sets.into_iter().filter(|set| !there.contains(set)).collect();
        there.extend(new);
    }
    hold.into_iter().map(|(what, words)| format!("{what} says {words:?}")).collect()
}

/// The content of the index, as the same lines.
pub fn found(index: &mut Index, lines: &mut BTreeSet<String>) {
    let mut line = |what: String, words: Words| assert!(lines.insert(format!("{what} says {words:?}")));
    for (project, name) in [("", "a"), ("", "b"), ("p", "a"), ("p", "b")] {
        let run = RunName { project: project.into(), name: name.into() };
        for group in engine::array_groups(index.database(), &run).unwrap() {
            line(format!("group '{}' of {}", group.name, text(&run)), group_words(&group));
        }
        for import in engine::imports(index.database(), &run).unwrap() {
            let what = format!("import '{}' of {}", import.name, text(&run));
            line(what, (format!("{import:?}"), Vec::new()));
        }
    }
    for mesh in engine::meshes(index.database()).unwrap() {
        line(format!("mesh '{}'", mesh.name), (format!("{mesh:?}"), Vec::new()));
    }
    for history in engine::histories(index.database()).unwrap() {
        line(format!("history '{}'", history.path), (format!("{history:?}"), Vec::new()));
    }
}
