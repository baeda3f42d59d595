//! The index is a follower of the logs: the journal's suite of behaviours, on SQLite in memory and in files.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::common::history;
use fieldstone_catalog::engine::{Database, Index, Sqlite};
use fieldstone_catalog::follower::IndexFollower;
use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::catalog::{Record, Removal};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::conformance::follower::{BEHAVIOURS, Harness, run, run_all};
use fieldstone_journal::conformance::history::History;
use fieldstone_journal::follower::Follower;
use fieldstone_testkit::Random;

/// Engines of a test: in memory if there is no folder.
#[derive(Default)]
struct Engines {
    folder: Option<tempfile::TempDir>,
    files: HashMap<usize, PathBuf>,
}

fn in_files() -> Engines {
    Engines { folder: Some(tempfile::tempdir().unwrap()), ..Engines::default() }
}

/// Side records of a commit of a real log; `heads`: the existing logs with their last commits.
fn side(dice: &mut Random, heads: &[(Id, u64)]) -> Vec<SideRecord> {
    let mut records: Vec<Record> = Vec::new();
    for _ in 0..dice.below(4) {
        let mut next = history::record(dice, records.last(), 1);
        if let Record::Remove(removals) = &mut next
            && let [Removal::Attributes(ids)] = &mut removals[..]
        {
            for id in ids.iter_mut().filter(|id| id.writer.is_some() && !heads.is_empty()) {
                let (writer, head) = heads[dice.below(heads.len() as u64) as usize];
                (id.writer, id.sequence) = (Some(writer), 1 + dice.below(head));
            }
        }
        records.push(next);
    }
    records.iter().map(Record::encode).collect()
}

impl Harness for Engines {
    fn open(&mut self, engine: usize, history: &History) -> Result<Box<dyn Follower>> {
        let database: Box<dyn Database> = match &self.folder {
            Some(folder) => {
                let path = folder.path().join(format!("{engine}.sqlite"));
                Box::new(Sqlite::open(self.files.entry(engine).or_insert(path))?)
            }
            None => Box::new(Sqlite::memory()?),
        };
        let index = Index::open(database, Id([7; 16]))?;
        let user = history.env().identity.uid();
        Ok(Box::new(IndexFollower::new(index, history.schema().clone(), user)))
    }

    fn shares(&self) -> bool {
        self.folder.is_some()
    }

    fn side(&mut self, dice: &mut Random, heads: &[(Id, u64)]) -> Vec<SideRecord> {
        side(&mut Random::new(dice.below(u64::MAX)), heads)
    }
}

#[test]
fn tables_in_memory_show_every_behaviour_of_a_follower() {
    run_all(Engines::default, 0..15).unwrap();
}

/// Several connections to one file, as several processes have them.
#[test]
fn tables_in_a_file_are_shared_by_those_who_follow() {
    for seed in 100..115 {
        run("others_in_pauses", &mut in_files(), seed).unwrap();
    }
    for (name, _) in BEHAVIOURS {
        run(name, &mut in_files(), 200).unwrap();
    }
}
