//! The index is a follower of the logs: the journal's suite of behaviours, on SQLite in memory and in files.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::common::history;
use crate::postgres_index;
use fieldstone_catalog::engine::{Database, Index, Postgres, Sqlite};
use fieldstone_catalog::follower::IndexFollower;
use fieldstone_core::Result;
use fieldstone_core::value::ValueType;
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Column, Record, Removal, RunName, TagDecl, Values};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::conformance::follower::{BEHAVIOURS, Harness, run, run_all};
use fieldstone_journal::conformance::history::History;
use fieldstone_journal::conformance::taken::r24_counted;
use fieldstone_journal::follower::Follower;
use fieldstone_testkit::Random;
use fieldstone_testkit::postgres::{Server, shared};

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

/// A batch of 2,000 attributes of one log.
fn many(log: u64) -> Vec<SideRecord> {
    let batch = AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: String::new(), name: format!("r{}", log % 3) },
        tag: TagDecl { name: "max".into(), version: 0, kind: ValueType::Float, unit: String::new() },
        rows: 2000,
        step: Some(Column::One(log as i64)),
        variables: Vec::new(),
        variable: Column::One(0),
        boxes: None,
        values: Values::Float((0..2000).map(f64::from).collect()),
        one_value: false,
        continues: false,
        singles: false,
    };
    vec![Record::Attributes(batch).encode()]
}

/// 100,000 attributes in 50 logs: a takeover of them makes the engine apply nothing.
#[test]
fn r24_attributes_are_applied_once_whatever_is_taken_over() {
    r24_counted(&mut in_files(), 50, &mut many).unwrap();
}

/// Engines on a PostgreSQL server.
struct OnServer(&'static Server, HashMap<usize, Id>);

impl Harness for OnServer {
    fn open(&mut self, engine: usize, history: &History) -> Result<Box<dyn Follower>> {
        let store = *self.1.entry(engine).or_insert_with(postgres_index::store);
        let index = Index::open(Box::new(Postgres::open(&self.0.url(), store)?), store)?;
        let user = history.env().identity.uid();
        Ok(Box::new(IndexFollower::new(index, history.schema().clone(), user)))
    }

    fn side(&mut self, dice: &mut Random, heads: &[(Id, u64)]) -> Vec<SideRecord> {
        side(&mut Random::new(dice.below(u64::MAX)), heads)
    }
}

#[test]
fn r24_tables_on_a_server_apply_takeovers_once() {
    let Some(server) = shared() else { return };
    run("r24_takeovers_are_applied_once", &mut OnServer(server, HashMap::new()), 0).unwrap();
    r24_counted(&mut OnServer(server, HashMap::new()), 6, &mut many).unwrap();
}
