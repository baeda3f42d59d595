//! A catalog in PostgreSQL gives the same answers as the file next to the store; faults of the server change no answer
//! and delay no flush.

use std::path::Path;

use crate::shared::*;
use fieldstone::ErrorKind;
use fieldstone::Session;
use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::prelude::*;
use fieldstone_testkit::postgres::Server;

/// A store in a folder whose catalog is in PostgreSQL.
fn on(server: &Server, folder: &Path) -> Both {
    let Both { store, .. } = Both::at(folder);
    let settings = CatalogSettings { engine: Some(server.url()) };
    let catalog = store.catalog_with(settings);
    Both { store, catalog }
}

fn fill(both: &Both) {
    for name in ["a", "b"] {
        both.prepare(name);
        both.catalog.annotate(columns(name, "max", 500), &Session::default()).unwrap();
        both.annotate(name, "min", 3, [1, 1], 0.25);
        both.catalog.annotate(on_run(name, "cost", 7.0), &Session::default()).unwrap();
        both.flush();
    }
}

#[test]
fn the_answers_are_those_of_the_file() {
    let Some(server) = fieldstone_testkit::postgres::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let both = on(server, folder.path());
    fill(&both);
    let answers = both.answers();
    assert!(answers.lines().count() > 800, "{answers}");
    assert!(!Both::engine(folder.path()).exists(), "the engine is the server alone");
    assert_eq!(Both::at(folder.path()).answers(), answers);
    // Another handle, as of another process, sees the same; unflushed data are a handle's own.
    let other = on(server, folder.path());
    assert_eq!(other.answers(), answers);
    both.annotate("a", "min", 4, [2, 2], -1.0);
    assert_ne!(both.answers(), answers);
    assert_eq!(other.answers(), answers);
    both.flush();
    assert_eq!(other.answers(), both.answers());
    assert_eq!(Both::at(folder.path()).answers(), both.answers());
    let report = both.catalog.rebuild().unwrap();
    assert!(report.attributes >= 1000, "{report:?}");
    assert!(report.engine.contains("postgresql://"), "{report:?}");
    assert_eq!(other.answers(), both.answers());
}

#[test]
fn a_server_that_comes_and_goes_changes_no_answer() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let both = on(&server, folder.path());
    fill(&both);
    let answers = both.answers();
    server.stop();
    server.resume();
    assert_eq!(both.answers(), answers, "restarted between two reads");
    server.stop();
    let error = both.catalog.runs(&Query::all()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // Writing needs no engine.
    both.catalog.annotate(columns("a", "max", 20_000), &Session::default()).unwrap();
    both.flush();
    both.catalog.join_applying();
    server.resume();
    let error = both.catalog.runs(&Query::all()).unwrap_err();
    assert!(error.message().starts_with("while an earlier flush was applied"), "{error}");
    let later = both.answers();
    assert!(later.len() > answers.len());
    assert_eq!(Both::at(folder.path()).answers(), later);
    // An administrator drops all schemas.
    let url = server.url();
    let mut other = fieldstone_catalog::engine::Postgres::open(&url, fieldstone::Id([9; 16])).unwrap();
    let drop = format!("DROP SCHEMA fieldstone_{} CASCADE", both.store.status().unwrap().id.unwrap());
    fieldstone_catalog::engine::Database::batch(&mut other, &drop).unwrap();
    assert_eq!(both.answers(), later, "made again");
}
