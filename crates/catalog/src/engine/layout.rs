//! The tables of a store in a database: checks that they exist in our layout, and creates them if not.

use std::hash::{BuildHasher, RandomState};

use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;

use super::{Cell, Database, Dialect, Flow, Wait, schema, views};

/// Tables of this release, for one store.
#[derive(Debug, Clone, Copy)]
pub(super) struct EngineLayout {
    pub store: Id,
}

impl EngineLayout {
    /// Creates the tables if they are absent, or belong to another store or layout.
    pub fn open(self, db: &mut dyn Database) -> Result<()> {
        if self.is_there(db)? {
            return Ok(());
        }
        db.begin(true, Wait::Yes)?;
        // Another process may have created them while this one waited.
        let made = match self.is_there_within(db) {
            Ok(true) => Ok(()),
            Ok(false) => self.create(db),
            Err(error) => Err(error),
        };
        match made {
            Ok(()) => db.commit(),
            Err(error) => {
                let _ = db.rollback();
                Err(error)
            }
        }
    }

    /// Whether the tables exist, in our layout and for our store. If they are absent, the statement fails.
    fn is_there(self, db: &mut dyn Database) -> Result<bool> {
        db.begin(false, Wait::Yes)?;
        let found = meta(db);
        db.rollback()?;
        match found {
            Ok(found) => Ok(found == self.expected()),
            Err(error) => match error.kind() {
                // A server has no single file that could be damaged: the tables are absent.
                ErrorKind::Corrupt if db.dialect() == Dialect::Postgres => Ok(false),
                ErrorKind::Corrupt | ErrorKind::Denied | ErrorKind::Unavailable => Err(error),
                _ => Ok(false),
            },
        }
    }

    fn is_there_within(self, db: &mut dyn Database) -> Result<bool> {
        db.batch("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);")?;
        Ok(meta(db)? == self.expected())
    }

    fn expected(self) -> (String, String) {
        (schema::LAYOUT.to_owned(), self.store.to_string())
    }

    /// Creates the tables, in place of any that exist.
    pub fn create(self, db: &mut dyn Database) -> Result<()> {
        let dialect = db.dialect();
        db.batch(&views::drop())?;
        db.batch(&schema::drop())?;
        db.batch(&schema::create(dialect))?;
        db.batch(&views::create(dialect))?;
        let (layout, store) = self.expected();
        if dialect == Dialect::Sqlite {
            // Stored in the file's header, which another release reads before it trusts anything else.
            db.batch(&format!("PRAGMA user_version = {layout};"))?;
        }
        // New tables count from another number. A process that remembers the old tables must not mistake the
        // new ones for them: their numbers have other meanings.
        let first = (RandomState::new().hash_one(self.store.0) >> 2).to_string();
        for (name, value) in [("layout", layout.as_str()), ("store", &store), ("generation", &first)] {
            let cells = [Cell::Text(name), Cell::Text(value)];
            db.execute("INSERT INTO meta (name, value) VALUES ($1, $2)", &cells)?;
        }
        Ok(())
    }
}

fn meta(db: &mut dyn Database) -> Result<(String, String)> {
    let mut found = (String::new(), String::new());
    db.query("SELECT name, value FROM meta", &[], &mut |row| {
        match row[0].text()? {
            "layout" => found.0 = row[1].text()?.to_owned(),
            "store" => found.1 = row[1].text()?.to_owned(),
            _ => {}
        }
        Ok(Flow::More)
    })?;
    Ok(found)
}
