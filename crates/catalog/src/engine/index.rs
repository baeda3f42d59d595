//! The index: applies commits to the tables of a database, and reads them.
//!
//! ```text
//! set_owners               where there are several users
//! begin_apply
//!   apply_decisions        all that changed; first, so that what is decided is applied once
//!   per log: apply_commit … ascending, apply_entries …, set_watermark
//!   recheck                places that the store must be asked for
//!   contested              an owner is another: clear_contested, and all of it again
//! end_apply                one transaction of the database: rows and watermarks together
//!
//! begin_read, or overlay (what is not visible to all: rolled back by end_read)
//!   Tables …
//! end_read
//! ```
//!
//! Invariants:
//! * a commit at or below its log's watermark is passed over, so applying again changes nothing;
//! * the tables depend on which commits were applied and what is decided, not on the order of logs;
//! * after an error the transaction must be given up with [`Index::abort`].

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;

use super::decisions::Decisions;
use super::derive::recompute_declared;
use super::doomed::batches_of;
use super::fields::Fields;
use super::ground::id;
use super::layout::EngineLayout;
use super::owners::{OwnerOf, is_contested, seeds_of};
use super::points::PointSource;
use super::workspace::Workspace;
use super::writers::{Callback, UserNames, WriterOf};
use super::{Cell, Database, Interrupt, RunId, Selection, TagId, Wait};

/// What the index is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing.
    Nothing,
    /// Applying; ends with a commit.
    Applying,
    /// Reading.
    Reading,
    /// Reading what is not visible to all: applied, and rolled back. With the transaction that is named.
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
    /// From now on regions in coordinates are looked for on meshes, too.
    pub fn set_points(&mut self, source: Arc<dyn PointSource>) {
        self.points = Some(source);
    }

    /// From now on logs that are met first are described by this.
    pub fn set_writers(&mut self, of: Option<WriterOf>) {
        self.writer_of = of.map(Callback);
    }

    /// From now on queries know users by these names, too.
    pub fn set_user_names(&mut self, names: UserNames) {
        self.user_names = Some(Callback(names));
    }

    /// Opens the tables of a store, and makes them where there are none, or those of another store or
    /// layout.
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

    /// How far each log is applied; nothing where the tables are contested and all must be applied again.
    pub fn watermarks(&mut self) -> Result<HashMap<Id, u64>> {
        marks_of(
            &mut *self.work.ground.db,
            "SELECT writer, sequence FROM log WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = 'contested')",
        )
    }

    /// How far each log was applied, also where the tables are contested.
    pub fn applied(&mut self) -> Result<HashMap<Id, u64>> {
        marks_of(&mut *self.work.ground.db, "SELECT writer, sequence FROM log")
    }

    /// Begins to apply; `false` where another process does and `wait` is No.
    pub fn begin_apply(&mut self, wait: Wait) -> Result<bool> {
        self.begin_write(wait, Doing::Applying)
    }

    pub(super) fn begin_write(&mut self, wait: Wait, doing: Doing) -> Result<bool> {
        if self.doing != Doing::Nothing {
            return Err(Error::internal("a transaction within a transaction of the catalog's engine"));
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

    /// Says that a log is applied up to `sequence`: its commits and its entries.
    pub fn set_watermark(&mut self, writer: Id, sequence: u64) -> Result<()> {
        let ground = &mut self.work.ground;
        let cells = [Cell::Int(ground.log(writer)?), Cell::Int(sequence as i64)];
        ground.db.execute("UPDATE log SET sequence = $2 WHERE log = $1 AND sequence < $2", &cells)?;
        ground.names.applied(writer, sequence);
        Ok(())
    }

    /// Ends applying: all of it is there, or after an error nothing.
    pub fn end_apply(&mut self) -> Result<()> {
        let done = self.update_derived().and_then(|()| self.work.ground.next_generation());
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

    /// Brings what is derived from rows up to date.
    pub(super) fn update_derived(&mut self) -> Result<()> {
        let Workspace { ground, sums, owners, .. } = &mut self.work;
        sums.flush(ground)?;
        let declared = ground.dirty.declared_runs();
        owners.settle(ground, sums, &declared)?;
        self.fields.flush(ground)?;
        recompute_declared(ground, owners)?;
        owners.write(ground)
    }

    /// Gives up what was begun: nothing of it stays.
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
            return Err(Error::internal("a transaction within a transaction of the catalog's engine"));
        }
        let begun = self.work.ground.db.begin(false, Wait::Yes);
        match begun {
            Ok(_) => self.doing = Doing::Reading,
            Err(_) => self.forget(),
        }
        begun.map(|_| ())
    }

    /// Ends reading; what was overlaid on the tables is gone.
    pub fn end_read(&mut self) -> Result<()> {
        // What says who owns runs is of the state that was read.
        self.work.owners.forget_state();
        match self.doing {
            Doing::Overlay(_) => self.abort(),
            _ => {
                self.doing = Doing::Nothing;
                self.work.ground.db.rollback()
            }
        }
    }

    /// Empties all tables, within `begin_apply`. Logs must be applied from their beginning.
    pub fn clear(&mut self) -> Result<()> {
        self.forget();
        self.decisions.clear();
        self.layout.create(&mut *self.work.ground.db)?;
        self.work.owners.forget_all();
        self.work.ground.refresh()?;
        self.work.owners.begin(&mut self.work.ground, true)
    }

    /// A number that each transaction which applies something increases by one.
    pub fn generation(&mut self) -> Result<u64> {
        self.work.ground.generation()
    }

    /// Attributes that were inserted since `begin_apply`.
    pub fn attributes_applied(&self) -> u64 {
        self.work.attributes
    }

    /// Records that could not be read since the last call: damaged, or of a later release.
    pub fn take_problems(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.problems)
    }

    /// What one statement of a user over the views gives. Within a read.
    pub fn sql(&mut self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.work.ground.db.select(statement, stop)
    }

    fn forget(&mut self) {
        self.work.forget();
        self.fields = Fields::default();
    }

    /// Says who owns runs, before [`Index::begin_apply`] and [`Index::overlay`]; `None` where all commits
    /// are of one user. `folder`: who owns the folder of logs.
    pub fn set_owners(&mut self, of: Option<OwnerOf>, folder: Option<u32>) {
        self.work.owners.set(of, folder);
    }

    /// Forgets who says who owns runs: it is of one state of the store.
    pub fn forget_owners(&mut self) {
        self.work.owners.forget_state();
    }

    /// Whether an owner turned out to be another than records were applied for: call
    /// [`Index::clear_contested`] and apply decisions and all logs from their beginning. Ask before anything
    /// is applied, because another process may not have come to it, and when all is.
    pub fn contested(&mut self) -> Result<bool> {
        self.update_derived()?;
        is_contested(&mut self.work.ground)
    }

    /// Empties contested tables, as [`Index::clear`] does, but for who declared runs first.
    pub fn clear_contested(&mut self) -> Result<()> {
        let seeds = seeds_of(&mut self.work.ground)?;
        self.clear()?;
        self.work.owners.seed(seeds);
        Ok(())
    }

    /// Users who have attributes of a tag in a run. Within a read.
    pub fn users_of(&mut self, run: RunId, tag: TagId) -> Result<BTreeSet<u32>> {
        let ground = &mut self.work.ground;
        ground.refresh()?;
        let all = batches_of(ground, run, tag)?;
        Ok(all.into_iter().filter_map(|(_, user)| u32::try_from(user).ok()).collect())
    }
}

fn marks_of(db: &mut dyn Database, sql: &str) -> Result<HashMap<Id, u64>> {
    let marks = db.all(sql, &[], |row| Ok((id(row[0].bytes()?)?, row[1].int()? as u64)))?;
    Ok(marks.into_iter().collect())
}
