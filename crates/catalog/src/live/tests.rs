//! Catalogs of one store: their knowledge and reads, and how several of them take turns to apply.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Weak};

use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_core::value::ValueType;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Column, RunDecl, RunName, TagDecl, Values};
use fieldstone_format::catalog::{MeshDecl, MeshLocation};
use fieldstone_journal::feed::Feed;
use fieldstone_journal::follower::FieldLookup;
use fieldstone_store::Standing;
use fieldstone_store::api::{ArchiveOptions, FieldAccess, Value};
use fieldstone_store::local::{LocalOptions, LocalStore};

use super::{Catalog, CatalogSettings, FieldPort};
use crate::access::{CatalogAdmin, CatalogQueries, CatalogWriter};
use crate::engine::{CoordinateRange, GridRegion, MeshRegion, PointSource, RunSelect, Tables, VariableRow};
use crate::query::Query;
use crate::reader::Visibility;
use fieldstone_journal::Session;
use fieldstone_journal::participant::FlushParticipant;

/// The fields of a store that do not change.
#[derive(Debug)]
struct Fields(LocalStore);

impl PointSource for Fields {
    fn region(&self, _: &MeshDecl, _: MeshLocation, _: &[CoordinateRange]) -> Result<Option<MeshRegion>> {
        Ok(None)
    }

    fn grids(
        &self,
        _: &RunName,
        variables: &[VariableRow],
        _: &[bool],
        _: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        Ok(vec![None; variables.len()])
    }
}

impl FieldPort for Fields {
    fn standing(&self, feed: &Feed) -> Box<dyn FieldLookup> {
        Box::new(Standing::at(feed, self.0.schema(), 0))
    }

    fn count(&self, _: &Request, _: &Session) -> Result<u64> {
        Err(Error::internal("nothing is counted"))
    }

    fn remove(&self, _: &Request, _: &Session) -> Result<u64> {
        Err(Error::internal("nothing is removed"))
    }

    fn set_active_kinds(&self, _: Id, _: u32, _: u32, _: &Session) -> Result<()> {
        Err(Error::internal("nothing is decided"))
    }

    fn changed(&self, _: &Session) -> Result<()> {
        Ok(())
    }

    fn join(&self, _: Weak<dyn FlushParticipant>) {}
}

fn at(folder: &std::path::Path) -> (Arc<Fields>, Catalog) {
    let options = LocalOptions { writable: true, native: true, ..LocalOptions::default() };
    let fields = Arc::new(Fields(LocalStore::open(Env::real(), folder, options).unwrap()));
    let journal = fields.0.journal().clone();
    (fields.clone(), Catalog::new(fields, journal, CatalogSettings::default()))
}

#[test]
fn several_that_apply_in_turns_and_begin_anew_leave_nothing_out() {
    let folder = tempfile::tempdir().unwrap();
    for writer in 0..3 {
        let (fields, catalog) = at(folder.path());
        let name = format!("w{writer}");
        let run = run(&name);
        catalog.create_run(RunDecl::named(run.clone()), false, &Session::default()).unwrap();
        for step in 0..12 {
            let batch = AttributeBatch {
                keywords: Vec::new(),
                tag: TagDecl { name: "q".into(), version: 0, kind: ValueType::Float, unit: String::new() },
                run: run.clone(),
                rows: 1,
                step: Some(Column::One(step)),
                variables: Vec::new(),
                variable: Column::One(0),
                boxes: None,
                values: Values::Float(vec![0.5]),
                one_value: true,
                continues: false,
                singles: false,
            };
            catalog.annotate(batch, &Session::default()).unwrap();
            let text = step.to_string();
            let key = [("run", name.as_str()), ("variable", "t"), ("step", text.as_str())];
            fields.0.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
            flush(&catalog);
        }
    }
    for _ in 0..4 {
        std::fs::remove_dir_all(folder.path().join("catalog")).unwrap();
        std::thread::scope(|scope| {
            for reader in 0..5 {
                let (_, catalog) = at(folder.path());
                scope.spawn(move || {
                    if reader == 0 {
                        catalog.rebuild().unwrap();
                    }
                    assert_eq!(catalog.count(&Query::all()).unwrap(), 36);
                    assert_eq!(catalog.variables(&Query::all()).unwrap().len(), 3);
                });
            }
        });
        let check = at(folder.path()).1.verify().unwrap();
        assert!(check.ok(), "{check:#?}");
    }
}

fn run(name: &str) -> RunName {
    RunName { project: String::new(), name: name.into() }
}

fn flush(catalog: &Catalog) {
    catalog.inner.hand_over(&Session::default());
    catalog.inner.store.journal.committer().flush(&Session::default()).unwrap();
}

#[test]
fn a_registry_knows_what_is_declared_here_at_once_and_by_others_once_it_is_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let (_fields, here) = at(folder.path());
    let (_others, there) = at(folder.path());
    let session = Session::default();
    here.create_run(RunDecl::named(run("a")), false, &session).unwrap();
    let (ours, theirs) = (here.inner.registry(), there.inner.registry());
    assert!(ours.find_run(&session, &run("a")).unwrap().is_some_and(|info| info.declared));
    assert_eq!(ours.reader.overlays.laid(), 0, "the engine is not asked");
    assert!(theirs.find_run(&session, &run("a")).unwrap().is_none());
    flush(&here);
    assert!(theirs.find_run(&session, &run("a")).unwrap().is_some());
    let me = here.inner.store.user(&session);
    assert_eq!(theirs.run_owner(&session, &run("a")).unwrap(), Some(me));
    theirs.refuse_others(&session, &run("a")).unwrap();
    let error = theirs.known_run(&session, &run("aa")).unwrap_err();
    assert!(error.message().contains("there is no run 'aa'"), "{error}");
}

#[test]
fn a_reader_sees_as_much_as_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let (_fields, catalog) = at(folder.path());
    let session = Session::default();
    let reader = catalog.inner.reader();
    let runs =
        |visibility| reader.look(visibility, &mut |index| Ok(index.runs(&RunSelect::All)?.len())).unwrap();
    catalog.create_run(RunDecl::named(run("a")), false, &session).unwrap();
    assert_eq!((runs(Visibility::Synced), runs(Visibility::All(&session))), (0, 1));
    assert!(
        reader.overlays.laid() > 0 && reader.consistent_read(Visibility::All(&session)).unwrap().has_own()
    );
    flush(&catalog);
    assert!(reader.catch_up().unwrap());
    assert_eq!((runs(Visibility::AsIs), runs(Visibility::All(&session))), (1, 1));
    assert!(!reader.consistent_read(Visibility::All(&session)).unwrap().has_own());
    reader.raise_apply_error().unwrap();
}
