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

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_journal::feed::TransactionState;

use super::names::NameTable;
use super::points::PointSource;
use super::summary::Sums;
use super::writers::{Callback, UserNames, WriterOf};
use super::{Cell, Database, Dialect, Flow, Interrupt, Selection, Wait, schema, views};

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
    pub(super) db: Box<dyn Database>,
    store: Id,
    pub(super) doing: Doing,
    pub(super) names: NameTable,
    pub(super) sums: Sums,
    pub(super) decisions: HashMap<Id, TransactionState>,
    pub(super) dirty: super::declare::Dirty,
    /// Of the record of declarations that is applied.
    pub(super) deleted_alone: Option<super::declare::DeletedAlone>,
    pub(super) owners: super::owners::Owners,
    pub(super) problems: Vec<Error>,
    pub(super) points: Option<Arc<dyn PointSource>>,
    pub(super) writer_of: Option<Callback<WriterOf>>,
    pub(super) user_names: Option<Callback<UserNames>>,
    attributes: u64,
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
        let mut index = Index {
            db,
            store,
            doing: Doing::Nothing,
            names: NameTable::default(),
            sums: Sums::default(),
            decisions: HashMap::new(),
            dirty: Default::default(),
            deleted_alone: None,
            owners: Default::default(),
            problems: Vec::new(),
            points: None,
            writer_of: None,
            user_names: None,
            attributes: 0,
        };
        if !index.is_ours()? {
            index.db.begin(true, Wait::Yes)?;
            // Another process may have made them while this one waited.
            let made = match index.ours_within() {
                Ok(true) => Ok(()),
                Ok(false) => index.create(),
                Err(error) => Err(error),
            };
            match made {
                Ok(()) => index.db.commit()?,
                Err(error) => {
                    let _ = index.db.rollback();
                    return Err(error);
                }
            }
        }
        Ok(index)
    }

    /// Whether the tables are there, of our layout and store. Their absence is an error of the statement.
    fn is_ours(&mut self) -> Result<bool> {
        self.db.begin(false, Wait::Yes)?;
        let found = self.meta();
        self.db.rollback()?;
        match found {
            Ok(found) => Ok(found == self.expected()),
            Err(error) => match error.kind() {
                // A server has no file that could be damaged as a whole: it is tables that are not there.
                ErrorKind::Corrupt if self.db.dialect() == Dialect::Postgres => Ok(false),
                ErrorKind::Corrupt | ErrorKind::Denied | ErrorKind::Unavailable => Err(error),
                _ => Ok(false),
            },
        }
    }

    fn ours_within(&mut self) -> Result<bool> {
        self.db.batch("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);")?;
        Ok(self.meta()? == self.expected())
    }

    fn expected(&self) -> (String, String) {
        (schema::LAYOUT.to_owned(), self.store.to_string())
    }

    fn meta(&mut self) -> Result<(String, String)> {
        let mut found = (String::new(), String::new());
        self.db.query("SELECT name, value FROM meta", &[], &mut |row| {
            match row[0].text()? {
                "layout" => found.0 = row[1].text()?.to_owned(),
                "store" => found.1 = row[1].text()?.to_owned(),
                _ => {}
            }
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn create(&mut self) -> Result<()> {
        let dialect = self.db.dialect();
        self.db.batch(&views::drop())?;
        self.db.batch(&schema::drop())?;
        self.db.batch(&schema::create(dialect))?;
        self.db.batch(&views::create(dialect))?;
        let (layout, store) = self.expected();
        if dialect == Dialect::Sqlite {
            // In the file's header: another release reads it before it believes anything.
            self.db.batch(&format!("PRAGMA user_version = {layout};"))?;
        }
        // Tables that are made anew count from elsewhere: who remembers the old ones must not take them for
        // these, whose numbers mean other things.
        let first = (RandomState::new().hash_one(self.store.0) >> 2).to_string();
        for (name, value) in [("layout", layout.as_str()), ("store", &store), ("generation", &first)] {
            let cells = [Cell::Text(name), Cell::Text(value)];
            self.db.execute("INSERT INTO meta (name, value) VALUES ($1, $2)", &cells)?;
        }
        Ok(())
    }

    /// The database.
    pub fn database(&mut self) -> &mut dyn Database {
        &mut *self.db
    }

    /// How far each log is applied; nothing where the tables are contested and all must be applied again.
    pub fn watermarks(&mut self) -> Result<HashMap<Id, u64>> {
        self.marks_of(
            "SELECT writer, sequence FROM log WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = 'contested')",
        )
    }

    /// How far each log was applied, also where the tables are contested.
    pub fn applied(&mut self) -> Result<HashMap<Id, u64>> {
        self.marks_of("SELECT writer, sequence FROM log")
    }

    fn marks_of(&mut self, sql: &str) -> Result<HashMap<Id, u64>> {
        let mut found = HashMap::new();
        self.db.query(sql, &[], &mut |row| {
            found.insert(super::names::id(row[0].bytes()?)?, row[1].int()? as u64);
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    /// Begins to apply; `false` where another process does and `wait` is No.
    pub fn begin_apply(&mut self, wait: Wait) -> Result<bool> {
        self.begin_write(wait, Doing::Applying)
    }

    pub(super) fn begin_write(&mut self, wait: Wait, doing: Doing) -> Result<bool> {
        if self.doing != Doing::Nothing {
            return Err(Error::internal("a transaction within a transaction of the catalog's engine"));
        }
        let begun = self.db.begin(true, wait);
        if begun.is_err() {
            // A server that was lost may come back with an older state.
            self.forget();
        }
        if !begun? {
            return Ok(false);
        }
        self.doing = doing;
        self.attributes = 0;
        if let Err(error) =
            self.names.refresh(&mut *self.db).and_then(|()| self.begin_owners(doing == Doing::Applying))
        {
            self.abort()?;
            return Err(error);
        }
        Ok(true)
    }

    /// Says that a log is applied up to `sequence`: its commits and its entries.
    pub fn set_watermark(&mut self, writer: Id, sequence: u64) -> Result<()> {
        let log = self.names.log(&mut *self.db, writer)?;
        let cells = [Cell::Int(log), Cell::Int(sequence as i64)];
        self.db.execute("UPDATE log SET sequence = $2 WHERE log = $1 AND sequence < $2", &cells)?;
        self.names.applied(writer, sequence);
        Ok(())
    }

    /// Ends applying: all of it is there, or after an error nothing.
    pub fn end_apply(&mut self) -> Result<()> {
        let done = self.update_derived().and_then(|()| self.names.next_generation(&mut *self.db));
        let done = done.and_then(|()| self.db.commit());
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
        self.flush_sums()?;
        let declared = self.dirty.declared_runs();
        self.settle_owners(&declared)?;
        self.recompute_declared()?;
        self.write_owners()
    }

    /// Gives up what was begun: nothing of it stays.
    pub fn abort(&mut self) -> Result<()> {
        self.forget();
        if self.doing == Doing::Nothing {
            return Ok(());
        }
        self.doing = Doing::Nothing;
        self.db.rollback()
    }

    fn forget(&mut self) {
        self.names = NameTable::default();
        self.sums = Sums::default();
        self.dirty = Default::default();
        self.owners.forget();
    }

    /// Begins to read one state of the tables.
    pub fn begin_read(&mut self) -> Result<()> {
        if self.doing != Doing::Nothing {
            return Err(Error::internal("a transaction within a transaction of the catalog's engine"));
        }
        let begun = self.db.begin(false, Wait::Yes);
        match begun {
            Ok(_) => self.doing = Doing::Reading,
            Err(_) => self.forget(),
        }
        begun.map(|_| ())
    }

    /// Ends reading; what was overlaid on the tables is gone.
    pub fn end_read(&mut self) -> Result<()> {
        // What says who owns runs is of the state that was read.
        self.forget_owners();
        match self.doing {
            Doing::Overlay(_) => self.abort(),
            _ => {
                self.doing = Doing::Nothing;
                self.db.rollback()
            }
        }
    }

    /// Empties all tables, within `begin_apply`. Logs must be applied from their beginning.
    pub fn clear(&mut self) -> Result<()> {
        self.forget();
        self.decisions.clear();
        self.create()?;
        self.owners.forget_all();
        self.names.refresh(&mut *self.db)?;
        self.begin_owners(true)
    }

    /// A number that each transaction which applies something increases by one.
    pub fn generation(&mut self) -> Result<u64> {
        let mut found = 0;
        let sql = "SELECT value FROM meta WHERE name = 'generation'";
        self.db.query(sql, &[], &mut |row| {
            found = row[0].text()?.parse().unwrap_or(0);
            Ok(Flow::Stop)
        })?;
        Ok(found)
    }

    /// Attributes that were inserted since `begin_apply`.
    pub fn attributes_applied(&self) -> u64 {
        self.attributes
    }

    pub(super) fn count_attributes(&mut self, n: u64) {
        self.attributes += n;
    }

    /// Records that could not be read since the last call: damaged, or of a later release.
    pub fn take_problems(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.problems)
    }

    /// What one statement of a user over the views gives. Within a read.
    pub fn sql(&mut self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.db.select(statement, stop)
    }

    /// What contradicts what, in words.
    pub fn conflicts(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let sql = "SELECT message FROM conflict ORDER BY kind, message";
        self.db.query(sql, &[], &mut |row| {
            found.push(row[0].text()?.to_owned());
            Ok(Flow::More)
        })?;
        found.sort();
        Ok(found)
    }
}
