//! The engine as a view of the store's logs: how long it is waited for, and what it asks of the fields.

use fieldstone_core::Result;
use fieldstone_journal::Session;
use fieldstone_journal::feed::{Commit, Feed};
use fieldstone_journal::follow::{self, Followed, Following, Pace};
use fieldstone_journal::view::Wait;

use super::RebuildReport;
use super::connection::Patience;
use super::inner::Inner;
use crate::engine::Index;
use crate::view::IndexView;

impl Inner {
    fn view<'a>(
        &'a self,
        index: &'a mut Index,
        patience: Patience,
        user: u32,
    ) -> IndexView<'a, &'a mut Index> {
        let insist = Box::new(move |index: &mut Index, begin: &mut dyn FnMut(&mut Index) -> Result<bool>| {
            self.insist(index, patience, begin)
        });
        IndexView::with(index, self.journal.schema(), user, insist).of_process(self.own_writer())
    }

    fn following(&self, patience: Patience, newest: bool) -> Following<'_> {
        let wait = if patience == Patience::None { Wait::No } else { Wait::Yes };
        let pace = Pace::usual(&*self.env.clock);
        // In tests each commit is a transaction, and others, who look now and then, get their turn.
        #[cfg(test)]
        let pace = Pace { time: 1, rest: 2_000_000, ..pace };
        Following { wait, newest, pace }
    }

    /// Brings an engine up to a feed. `newest`: nobody can give a newer one.
    pub fn follow(
        &self,
        index: &mut Index,
        feed: &Feed,
        newest: bool,
        patience: Patience,
    ) -> Result<Followed> {
        let how = self.following(patience, newest);
        let view = &mut self.view(index, patience, self.env.identity.uid());
        follow::follow(view, feed, &*self.fields.standing(feed), &how)
    }

    /// Begins to read with what a transaction has prepared and what is not flushed overlaid on the tables;
    /// `false` where there is nothing of it, and nothing was begun.
    pub fn overlay(
        &self,
        index: &mut Index,
        feed: &Feed,
        session: &Session,
        own: &[Commit],
        patience: Patience,
    ) -> Result<bool> {
        let view = &mut self.view(index, patience, self.user(session));
        follow::overlay(view, feed, &*self.fields.standing(feed), session.transaction(), own)
    }

    /// Makes an engine's tables anew from the first commit on.
    pub fn replay(&self, index: &mut Index, feed: &Feed) -> Result<RebuildReport> {
        let mut view = self.view(index, Patience::Full, self.env.identity.uid());
        let how = self.following(Patience::Full, false);
        let (mut followed, applied) = follow::rebuild(&mut view, feed, &*self.fields.standing(feed), &how)?;
        let mut feed = feed.clone();
        while followed == Followed::Behind {
            // Others, who know of more, went on with it meanwhile.
            let (later, newest) = self.newer(&feed)?;
            let how = self.following(Patience::Full, newest);
            followed = follow::follow(&mut view, &later, &*self.fields.standing(&later), &how)?;
            feed = later;
        }
        Ok(RebuildReport {
            logs: applied.logs,
            commits: applied.commits,
            attributes: view.attributes(),
            fields: applied.entries,
            ..RebuildReport::default()
        })
    }

    /// A feed taken after every log was looked at; whether it knows of nothing that `feed` does not.
    pub fn newer(&self, feed: &Feed) -> Result<(Feed, bool)> {
        self.journal.refresh()?;
        let later = self.journal.feed()?;
        let newest = later.heads() == feed.heads();
        Ok((later, newest))
    }
}

#[cfg(test)]
mod tests {
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
    use fieldstone_journal::view::Holds;
    use fieldstone_store::Standing;
    use fieldstone_store::api::{ArchiveOptions, FieldAccess, Value};
    use fieldstone_store::local::{LocalOptions, LocalStore};

    use super::Session;
    use crate::access::{CatalogAdmin, CatalogQueries, CatalogWriter};
    use crate::engine::{CoordinateRange, GridRegion, MeshRegion, PointSource, VariableRow};
    use crate::live::{Catalog, CatalogSettings, FieldPort};
    use crate::query::Query;
    use fieldstone_journal::participant::FlushParticipant;

    /// The fields of a store, and nothing that changes them.
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
        fn standing(&self, feed: &Feed) -> Box<dyn Holds> {
            Box::new(Standing::at(feed, self.0.schema(), 0))
        }

        fn count(&self, _: &Request, _: &Session) -> Result<u64> {
            Err(Error::internal("nothing is counted"))
        }

        fn remove(&self, _: &Request, _: &Session) -> Result<u64> {
            Err(Error::internal("nothing is removed"))
        }

        fn decide_kinds(&self, _: Id, _: u32, _: u32, _: &Session) -> Result<()> {
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
            let run = RunName { project: String::new(), name: name.clone() };
            catalog.create_run(RunDecl::named(run.clone()), false, &Session::default()).unwrap();
            for step in 0..12 {
                let batch = AttributeBatch {
                    keywords: Vec::new(),
                    tag: TagDecl {
                        name: "q".into(),
                        version: 0,
                        kind: ValueType::Float,
                        unit: String::new(),
                    },
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
                catalog.inner.hand_over(&Session::default());
                catalog.inner.journal.flush(&Session::default()).unwrap();
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
}
