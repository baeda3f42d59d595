//! The engine as a view of the store's logs: how long it is waited for, and what it asks of the fields.

use fieldstone_catalog::engine::Index;
use fieldstone_catalog::view::IndexView;
use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_journal::feed::{Commit, Feed};
use fieldstone_journal::follow::{self, Followed, Following, Pace};
use fieldstone_journal::view::Wait;
use fieldstone_store::Standing;

use super::RebuildReport;
use super::inner::Inner;
use super::lend::Patience;

impl Inner {
    fn view<'a>(&'a self, index: &'a mut Index, patience: Patience) -> IndexView<'a, &'a mut Index> {
        let insist = Box::new(move |index: &mut Index, begin: &mut dyn FnMut(&mut Index) -> Result<bool>| {
            self.insist(index, patience, begin)
        });
        IndexView::with(index, self.schema.clone(), self.user(), insist)
    }

    fn standing(&self, feed: &Feed) -> Standing {
        Standing::at(feed, self.schema.clone(), self.env.clock.now())
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
        follow::follow(&mut self.view(index, patience), feed, &self.standing(feed), &how)
    }

    /// Begins to read with what a transaction has prepared and what is not flushed laid over the tables;
    /// `false` where there is nothing of it, and nothing was begun.
    pub fn lay_over(
        &self,
        index: &mut Index,
        feed: &Feed,
        transaction: Option<Id>,
        own: &[Commit],
        patience: Patience,
    ) -> Result<bool> {
        follow::lay_over(&mut self.view(index, patience), feed, &self.standing(feed), transaction, own)
    }

    /// Makes an engine's tables anew from the first commit on.
    pub fn replay(&self, index: &mut Index, feed: &Feed) -> Result<RebuildReport> {
        let mut view = self.view(index, Patience::Full);
        let how = self.following(Patience::Full, false);
        let (mut followed, applied) = follow::rebuild(&mut view, feed, &self.standing(feed), &how)?;
        let mut feed = feed.clone();
        while followed == Followed::Behind {
            // Others, who know of more, went on with it meanwhile.
            let (later, newest) = self.newer(&feed)?;
            let how = self.following(Patience::Full, newest);
            followed = follow::follow(&mut view, &later, &self.standing(&later), &how)?;
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
        self.store.refresh()?;
        let later = self.store.journal().feed()?;
        let newest = later.heads() == feed.heads();
        Ok((later, newest))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_format::catalog::{AttributeBatch, Column, RunDecl, RunName, TagDecl, Values};

    use super::super::value::ValueType;
    use super::super::{Catalog, CatalogSettings, Query};
    use crate::ArchiveOptions;

    fn at(folder: &std::path::Path) -> Catalog {
        let store = crate::open(&folder.display().to_string(), &crate::OpenOptions::default()).unwrap();
        Catalog::of(store, CatalogSettings::default()).unwrap()
    }

    #[test]
    fn several_that_apply_in_turns_and_begin_anew_leave_nothing_out() {
        let folder = tempfile::tempdir().unwrap();
        for writer in 0..3 {
            let catalog = at(folder.path());
            let name = format!("w{writer}");
            let run = RunName { project: String::new(), name: name.clone() };
            catalog.create_run(RunDecl::named(run.clone()), false, None).unwrap();
            for step in 0..12 {
                let batch = AttributeBatch {
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
                catalog.annotate(batch, None).unwrap();
                let text = step.to_string();
                let key = [("run", name.as_str()), ("variable", "t"), ("step", text.as_str())];
                let value = crate::Value::Bytes(b"x");
                catalog.inner.store.archive(&key, value, &ArchiveOptions::default()).unwrap();
                catalog.inner.store.flush(None).unwrap();
            }
        }
        for _ in 0..4 {
            std::fs::remove_dir_all(folder.path().join("catalog")).unwrap();
            std::thread::scope(|scope| {
                for reader in 0..5 {
                    let catalog = at(folder.path());
                    scope.spawn(move || {
                        if reader == 0 {
                            catalog.rebuild().unwrap();
                        }
                        assert_eq!(catalog.count(&Query::all()).unwrap(), 36);
                        assert_eq!(catalog.variables(&Query::all()).unwrap().len(), 3);
                    });
                }
            });
            let check = at(folder.path()).verify().unwrap();
            assert!(check.ok(), "{check:#?}");
        }
    }
}
