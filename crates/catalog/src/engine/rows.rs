//! Queries with few rows: returns all of them at once, or the first one.

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::RunName;

use super::{Cell, Database, Flow};

impl dyn Database + '_ {
    /// The results of `read`, row by row.
    pub(super) fn all<T>(
        &mut self,
        sql: &str,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&[Cell<'_>]) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.query(sql, cells, &mut |row| {
            rows.push(read(row)?);
            Ok(Flow::More)
        })?;
        Ok(rows)
    }

    /// The result of `read` for the first row, if there is one.
    pub(super) fn first<T>(
        &mut self,
        sql: &str,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&[Cell<'_>]) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.query(sql, cells, &mut |row| {
            first = Some(read(row)?);
            Ok(Flow::Stop)
        })?;
        Ok(first)
    }

    /// The integer at the beginning of the first row, if there is one.
    pub(super) fn int(&mut self, sql: &str, cells: &[Cell<'_>]) -> Result<Option<i64>> {
        Ok(self.first(sql, cells, |row| row[0].int_or_null())?.flatten())
    }
}

/// The first cells of a row, all of them integers.
pub(super) fn ints<const N: usize>(row: &[Cell<'_>]) -> Result<[i64; N]> {
    let mut found = [0; N];
    for (found, cell) in found.iter_mut().zip(row) {
        *found = cell.int()?;
    }
    Ok(found)
}

/// The name of a run, from its project and its own name.
pub(super) fn run_name(row: &[Cell<'_>]) -> Result<RunName> {
    Ok(RunName { project: row[0].text()?.to_owned(), name: row[1].text()?.to_owned() })
}

/// The value for an unknown name.
pub(super) fn no_name() -> RunName {
    RunName { project: String::new(), name: String::new() }
}

/// The error for content that the tables cannot hold.
pub(super) fn damaged(what: impl std::fmt::Display) -> Error {
    Code::EngineDamaged
        .error(format!("the catalog's engine {what}"))
        .with_hint("the catalog is an index: `fieldstone rebuild` builds it again")
}
