//! The index: applies commits to the tables of a database, and reads them.
//!
//! ```text
//! set_owners               if there are several users, and hand-overs
//! begin_apply
//!   apply_decisions        all that changed; first, so that decided content is applied once
//!   per log: apply_commit … ascending, apply_entries …, set_watermark
//!   set_taken              logs that takeovers replace: `marks`
//!   recheck                places that the store must be asked about
//!   contested              an owner changed: clear_contested, and apply everything again
//! end_apply                one transaction of the database: rows and watermarks together
//! begin_read, or overlay (content that is not visible to all: end_read rolls it back)
//!   Tables …
//! end_read
//! ```
//!
//! Invariants:
//! * a commit at or below its log's watermark is skipped, so applying it again changes nothing;
//! * the tables depend on the applied commits and the decisions, not on the order of logs;
//! * after an error the caller must give up the transaction with [`Index::abort`].

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_journal::snapshot::HandOvers;

use super::decisions::Decisions;
use super::derive::recompute_declared;
use super::doomed::batches_of;
use super::fields::Fields;
use super::layout::EngineLayout;
use super::owners::{OwnerOf, is_contested, seeds_of};
use super::points::PointSource;
use super::workspace::Workspace;
use super::writers::{Callback, UserNames, WriterOf};
use super::{Database, Interrupt, RunId, Selection, TagId, Wait};

/// The activity of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing.
    Nothing,
    /// Applying; ends with a commit.
    Applying,
    /// Reading.
    Reading,
    /// Reading content that is not visible to all, applied and to be rolled back; with the named transaction,
    /// if any.
    Overlay(Option<Id>),
}

/// The catalog's tables in a database. See the module.
#[derive(Debug)]
pub struct Index {
    pub(super) work: Workspace,
    layout: EngineLayout,
    pub(super) doing: Doing,
    pub(super) fields: Fields,
    pub(super) decisions: Decisions,
    pub(super) problems: Vec<Error>,
    pub(super) points: Option<Arc<dyn PointSource>>,
    pub(super) writer_of: Option<Callback<WriterOf>>,
    pub(super) user_names: Option<Callback<UserNames>>,
}

impl Index {
    /// Sets a source of points: from now on regions in coordinates also select elements of meshes and grids.
    pub fn set_points(&mut self, source: Arc<dyn PointSource>) {
        self.points = Some(source);
    }

    /// Sets the source of descriptions of writers, used for each new log from now on.
    pub fn set_writers(&mut self, of: Option<WriterOf>) {
        self.writer_of = of.map(Callback);
    }

    /// Sets the names of users, so that queries can use them.
    pub fn set_user_names(&mut self, names: UserNames) {
        self.user_names = Some(Callback(names));
    }

    /// Opens the tables of a store. Creates them if they are absent, or belong to another store or layout.
    pub fn open(db: Box<dyn Database>, store: Id) -> Result<Index> {
        let layout = EngineLayout { store };
        let mut work = Workspace::new(db);
        layout.open(&mut *work.ground.db)?;
        Ok(Index {
            work,
            layout,
            doing: Doing::Nothing,
            fields: Fields::default(),
            decisions: Decisions::default(),
            problems: Vec::new(),
            points: None,
            writer_of: None,
            user_names: None,
        })
    }

    /// The database.
    pub fn database(&mut self) -> &mut dyn Database {
        &mut *self.work.ground.db
    }

    /// Begins to apply; `false` if another process is applying and `wait` is No.
    pub fn begin_apply(&mut self, wait: Wait) -> Result<bool> {
        self.begin_write(wait, Doing::Applying)
    }

    pub(super) fn begin_write(&mut self, wait: Wait, doing: Doing) -> Result<bool> {
        if self.doing != Doing::Nothing {
            return Err(Error::internal(
                "a transaction of the catalog's engine was begun inside another one",
            ));
        }
        let begun = self.work.ground.db.begin(true, wait);
        if begun.is_err() {
            // A server that was lost may come back with an older state.
            self.forget();
        }
        if !begun? {
            return Ok(false);
        }
        self.doing = doing;
        self.work.attributes = 0;
        self.decisions.overlaid = if let Doing::Overlay(transaction) = doing { transaction } else { None };
        let Workspace { ground, owners, .. } = &mut self.work;
        if let Err(error) = ground.refresh().and_then(|()| owners.begin(ground, doing == Doing::Applying)) {
            self.abort()?;
            return Err(error);
        }
        Ok(true)
    }

    /// Ends applying: everything is written, or after an error nothing.
    pub fn end_apply(&mut self) -> Result<()> {
        let done = self.update_derived().and_then(|()| self.work.ground.next_revision());
        let done = done.and_then(|()| self.work.ground.db.commit());
        match done {
            Ok(()) => {
                self.doing = Doing::Nothing;
                Ok(())
            }
            Err(error) => {
                let _ = self.abort();
                Err(error)
            }
        }
    }

    /// Updates everything that is derived from rows.
    pub(super) fn update_derived(&mut self) -> Result<()> {
        let Workspace { ground, sums, owners, .. } = &mut self.work;
        sums.flush(ground)?;
        let declared = ground.dirty.declared_runs();
        owners.expel_guests(ground, sums, &declared)?;
        self.fields.flush(ground)?;
        recompute_declared(ground, owners)?;
        owners.write(ground)
    }

    /// Gives up the transaction: nothing of it stays.
    pub fn abort(&mut self) -> Result<()> {
        self.forget();
        if self.doing == Doing::Nothing {
            return Ok(());
        }
        self.doing = Doing::Nothing;
        self.work.ground.db.rollback()
    }

    /// Begins to read one state of the tables.
    pub fn begin_read(&mut self) -> Result<()> {
        if self.doing != Doing::Nothing {
            return Err(Error::internal(
                "a transaction of the catalog's engine was begun inside another one",
            ));
        }
        let begun = self.work.ground.db.begin(false, Wait::Yes);
        match begun {
            Ok(_) => self.doing = Doing::Reading,
            Err(_) => self.forget(),
        }
        begun.map(|_| ())
    }

    /// Ends the read and drops the overlay, if there was one.
    pub fn end_read(&mut self) -> Result<()> {
        // The owners of runs belong to the state that was read.
        self.work.owners.forget_state();
        match self.doing {
            Doing::Overlay(_) => self.abort(),
            _ => {
                self.doing = Doing::Nothing;
                self.work.ground.db.rollback()
            }
        }
    }

    /// Empties all tables, during `begin_apply`. Logs must then be applied from their beginning.
    pub fn clear(&mut self) -> Result<()> {
        self.forget();
        self.decisions.clear();
        self.layout.create(&mut *self.work.ground.db)?;
        self.work.owners.forget_all();
        self.work.ground.refresh()?;
        self.work.owners.begin(&mut self.work.ground, true)
    }

    /// A counter that each transaction that applies something increases by one.
    pub fn revision(&mut self) -> Result<u64> {
        self.work.ground.revision()
    }

    /// Attributes that were inserted since `begin_apply`.
    pub fn attributes_applied(&self) -> u64 {
        self.work.attributes
    }

    /// Records that could not be read since the last call: damaged, or of a later release.
    pub fn take_problems(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.problems)
    }

    /// The result of one SQL statement of a user over the views. Needs a read in progress.
    pub fn sql(&mut self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.work.ground.db.select(statement, stop)
    }

    fn forget(&mut self) {
        self.work.forget();
        self.fields = Fields::default();
    }

    /// Sets the source of run owners, before [`Index::begin_apply`] and [`Index::overlay`]; `None` if all
    /// commits are, and were, of one user. `folder`: the owner of the folder of logs.
    pub fn set_owners(&mut self, of: Option<OwnerOf>, folder: Option<u32>, hand_overs: &Arc<HandOvers>) {
        self.work.owners.set(of, folder);
        self.work.owners.hand_overs = hand_overs.clone();
    }

    /// Forgets the source of run owners, which belongs to one state of the store.
    pub fn forget_owners(&mut self) {
        self.work.owners.forget_state();
    }

    /// Whether an owner differs from the one for whom records were applied. Then call
    /// [`Index::clear_contested`], and apply decisions and all logs from their beginning. Ask before
    /// applying, because another process may have stopped before it did this, and again after everything is
    /// applied.
    pub fn contested(&mut self) -> Result<bool> {
        self.update_derived()?;
        is_contested(&mut self.work.ground)
    }

    /// Empties contested tables as [`Index::clear`] does, but keeps the first declarations of runs.
    pub fn clear_contested(&mut self) -> Result<()> {
        let seeds = seeds_of(&mut self.work.ground)?;
        self.clear()?;
        self.work.owners.seed(seeds);
        Ok(())
    }

    /// Users who have attributes of a tag in a run. Needs a read in progress.
    pub fn users_of(&mut self, run: RunId, tag: TagId) -> Result<BTreeSet<u32>> {
        let ground = &mut self.work.ground;
        ground.refresh()?;
        let all = batches_of(ground, run, tag)?;
        Ok(all.into_iter().filter_map(|(_, by)| u32::try_from(by.user).ok()).collect())
    }
}
