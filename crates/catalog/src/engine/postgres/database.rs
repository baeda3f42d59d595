//! PostgreSQL as a [`Database`](super::Database): transactions, statements, scans, bulk inserts.

use std::time::Duration;

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use postgres::SimpleQueryMessage;
use postgres::types::{ToSql, Type};

use super::super::{AttrRow, Cell, Database, Dialect, Flow, Interrupt, Probe, Selection, Wait, statement};
use super::cells::{Parameter, Taken};
use super::rows::{Stopped, copy_rows, take, with_attr};
use super::scan::{Group, Shape};
use super::{ATTR_COLUMNS, Postgres, TOGETHER, many, short, texts};

impl Database for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn set_patience(&mut self, limit: Duration) -> Result<()> {
        self.patience = limit;
        Ok(())
    }

    fn begin(&mut self, write: bool, wait: Wait) -> Result<bool> {
        if self.within {
            return Err(Error::internal("a transaction within a transaction"));
        }
        self.client()?;
        if !write {
            self.simple("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
            self.within = true;
            return Ok(true);
        }
        // READ COMMITTED: a read must see everything that the previous writer left, so the state is taken
        // after the lock. No other process writes while the lock is held, so all statements see one state.
        let lock = self.lock;
        self.simple("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")?;
        self.within = true;
        let taken = match wait {
            Wait::No => {
                let mut taken = false;
                self.query("SELECT pg_try_advisory_xact_lock($1::int8)", &[Cell::Int(lock)], &mut |cells| {
                    taken = cells == [Cell::Int(1)];
                    Ok(Flow::More)
                })
                .map(|()| taken)
            }
            Wait::Yes => self
                .simple(&format!(
                    "SET LOCAL lock_timeout = {}; SELECT pg_advisory_xact_lock({lock}); \
                     SET LOCAL lock_timeout = 0",
                    // Zero would mean no limit.
                    self.patience.as_millis().clamp(1, i32::MAX as u128)
                ))
                .map(|()| true),
        };
        if !matches!(taken, Ok(true)) {
            // Report why the lock was not taken, not that a broken connection cannot roll back.
            let _ = self.end("ROLLBACK");
        }
        taken
    }

    fn commit(&mut self) -> Result<()> {
        self.end("COMMIT")
    }

    fn rollback(&mut self) -> Result<()> {
        match self.end("ROLLBACK") {
            // The server has rolled back the transaction of a lost connection.
            Err(e) if e.kind() == ErrorKind::Unavailable => Ok(()),
            other => other,
        }
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.simple(sql)
    }

    fn execute(&mut self, sql: &str, parameters: &[Cell<'_>]) -> Result<u64> {
        let statement = self.prepared(sql)?;
        let parameters: Vec<Parameter<'_>> = parameters.iter().map(|c| Parameter(*c)).collect();
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|p| p as _).collect();
        match self.client()?.execute(&statement, &parameters) {
            Ok(n) => Ok(n),
            Err(e) => Err(self.failed(&format!("run `{}`", short(sql)), e)),
        }
    }

    fn execute_many(&mut self, sql: &str, width: usize, cells: &[Cell<'_>]) -> Result<u64> {
        let width = width.max(1);
        let arrays = many::of_arrays(sql, self.prepared(sql)?.params());
        let mut n = 0;
        for part in cells.chunks(TOGETHER * width) {
            let Some(arrays) = &arrays else {
                for row in part.chunks_exact(width) {
                    n += self.execute(sql, row)?;
                }
                continue;
            };
            let statement = self.prepared(arrays)?;
            let columns: Vec<many::Array<'_>> =
                (0..width).map(|at| many::Array { cells: part, width, at }).collect();
            let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|c| c as _).collect();
            match self.client()?.execute(&statement, &columns) {
                Ok(changed) => n += changed,
                Err(e) => return Err(self.failed(&format!("run `{}`", short(arrays)), e)),
            }
        }
        Ok(n)
    }

    fn query(
        &mut self,
        sql: &str,
        parameters: &[Cell<'_>],
        row: &mut dyn FnMut(&[Cell<'_>]) -> Result<Flow>,
    ) -> Result<()> {
        let statement = self.prepared(sql)?;
        let parameters: Vec<Parameter<'_>> = parameters.iter().map(|c| Parameter(*c)).collect();
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|p| p as _).collect();
        self.rows(&statement, &parameters, &mut |r| {
            let taken = (0..r.len()).map(|i| take(r, i)).collect::<Result<Vec<Taken<'_>>>>()?;
            let cells: Vec<Cell<'_>> = taken.iter().map(Taken::cell).collect();
            row(&cells)
        })?;
        Ok(())
    }

    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        let mut n = 0;
        for group in Group::split(probes) {
            let more = self.scan_group(&group, &mut |r| {
                n += 1;
                with_attr(r, row)
            })?;
            if !more {
                break;
            }
        }
        Ok(n)
    }

    fn insert_attrs(&mut self, rows: &mut dyn Iterator<Item = AttrRow<'_>>) -> Result<u64> {
        let statement = self.prepared(&format!("COPY attr ({ATTR_COLUMNS}) FROM STDIN (FORMAT binary)"))?;
        copy_rows(self.client()?, &statement, rows).map_err(|stopped| match stopped {
            Stopped::Ours(error) => error,
            Stopped::Theirs(cause) => self.failed("insert attributes", cause),
        })
    }

    fn explain(&mut self, sql: &str) -> Result<String> {
        let nulls = vec!["NULL"; self.prepared(sql)?.params().len()].join(", ");
        self.simple(&format!("PREPARE fs_explain AS {sql}"))?;
        let nulls = if nulls.is_empty() { nulls } else { format!("({nulls})") };
        let mut plan = String::new();
        let explained = self.query(&format!("EXPLAIN EXECUTE fs_explain{nulls}"), &[], &mut |cells| {
            if let Some(Cell::Text(line)) = cells.first() {
                plan.push_str(line);
                plan.push('\n');
            }
            Ok(Flow::More)
        });
        let forgotten = self.simple("DEALLOCATE fs_explain");
        explained.and(forgotten).map(|()| plan)
    }

    fn probe_sql(&self, probe: &Probe) -> String {
        Shape::of(probe).sql()
    }

    /// Prepares the statement first: a prepared statement is exactly one statement, and its column types are
    /// known. A read-only transaction ensures that it changes nothing.
    fn select(&mut self, statement: &str, _stop: Option<&Interrupt>) -> Result<Selection> {
        let taken = statement::taken(statement, Dialect::Postgres)?;
        if !self.within {
            self.begin(false, Wait::Yes)?;
            let found = self.select(statement, None);
            let ended = self.rollback();
            return found.and_then(|found| ended.map(|()| found));
        }
        // The server's complaints about a statement from outside are errors of that statement.
        let blame = |e: Error| match e.kind() {
            ErrorKind::Unavailable => e,
            _ => Code::Sql.error(e.message()).with_hint("the guide lists the views and their columns"),
        };
        let prepared = self.prepared(&taken).map_err(blame)?;
        let columns: Vec<Type> = prepared.columns().iter().map(|column| column.type_().clone()).collect();
        let names = prepared.columns().iter().map(|column| column.name().to_owned()).collect();
        let messages = match self.client()?.simple_query(&taken) {
            Ok(messages) => messages,
            Err(e) => return Err(blame(self.failed("run a query", e))),
        };
        let row = |message: SimpleQueryMessage| -> Option<Vec<Value>> {
            let SimpleQueryMessage::Row(row) = message else { return None };
            Some(columns.iter().enumerate().map(|(at, of)| texts::value(of, row.get(at))).collect())
        };
        let rows = messages.into_iter().filter_map(row).collect();
        let kinds = columns.iter().map(texts::kind).collect();
        Ok(Selection { names: statement::distinct(names), kinds, rows })
    }
}
