//! The logs that a takeover replaces.

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::attempt::Origin;
use fieldstone_format::bytes::Cursor;
use fieldstone_format::log::LogHeader;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{AttemptRow, Facts, NameRow, parse_taken_key, taken_key};
use fieldstone_format::{FORMAT_VERSION, Id};

use super::Takeover;
use crate::order::Order;

/// A log that a takeover replaces.
#[derive(Debug, Clone)]
pub struct TakenLog {
    /// Its writer.
    pub writer: Id,
    /// Its row in the table of names.
    pub row: Arc<NameRow>,
}

impl Takeover {
    /// The log of a writer, where this takeover replaces it.
    pub fn log(self: &Arc<Self>, writer: Id) -> Result<Option<TakenLog>> {
        let row = self.value(TakeoverTable::Names, &writer.0)?;
        let decoded = |value: Vec<u8>| NameRow::decode(&value).map_err(|e| self.named(e));
        Ok(row.map(decoded).transpose()?.map(|row| TakenLog { writer, row: Arc::new(row) }))
    }

    /// The log with a number in the table of names.
    pub fn log_by_number(self: &Arc<Self>, number: u64) -> Result<TakenLog> {
        let decode = |key: &[u8], value: &[u8]| {
            let row = Arc::new(NameRow::decode(value)?);
            Ok(TakenLog { writer: Cursor::new(key).id()?, row })
        };
        let found = self.logs.get(number, || self.leaf(TakeoverTable::Names, number, decode))?;
        found.ok_or_else(|| self.named(Error::corrupt("an entry names a missing log")))
    }

    /// All of them, in the order of their writers.
    pub fn each_log(self: &Arc<Self>, mut each: impl FnMut(TakenLog) -> Result<()>) -> Result<()> {
        self.each_below(TakeoverTable::Names, &[], |key, value| {
            each(TakenLog { writer: Cursor::new(key).id()?, row: Arc::new(NameRow::decode(value)?) })
        })
    }

    /// The logs that were taken over first by takeovers beyond a number, in the order of their numbers.
    pub fn taken_since(self: &Arc<Self>, number: u64) -> Result<Vec<Id>> {
        let Some(mut rows) = self.cursor(TakeoverTable::Taken) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let named = |e: Error| self.named(e);
        let first = taken_key(number.saturating_add(1), Id::LEAST);
        let mut more = rows.seek(&first).map_err(named)?;
        while more {
            found.push(parse_taken_key(rows.key()).map_err(named)?.1);
            more = rows.advance().map_err(named)?;
        }
        Ok(found)
    }

    /// The header of a log, as far as it is kept.
    pub fn log_header(self: &Arc<Self>, log: &TakenLog) -> Result<LogHeader> {
        let row = &log.row;
        let facts = self.facts(row.facts)?;
        Ok(LogHeader {
            version: FORMAT_VERSION,
            writer: log.writer,
            store: self.header.store,
            created: row.created,
            uid: row.uid,
            process: row.process,
            host: facts.host,
            user: facts.user,
            program: facts.program,
            schema: self.header.schema.clone(),
            origin: Origin {
                attempt: self.attempt_name(log)?.unwrap_or_default(),
                job: facts.job,
                rank: row.rank,
            },
            ..LogHeader::unknown(log.writer)
        })
    }

    fn facts(self: &Arc<Self>, number: u64) -> Result<Facts> {
        let facts = self.key_of(TakeoverTable::Facts, number)?;
        Facts::decode(&facts).map_err(|e| self.named(e))
    }

    /// The name of the attempt that a log is of.
    pub fn attempt_name(self: &Arc<Self>, log: &TakenLog) -> Result<Option<String>> {
        let Some(number) = log.row.attempt else { return Ok(None) };
        let name = String::from_utf8(self.key_of(TakeoverTable::Attempts, number)?);
        name.map(Some).map_err(|_| self.named(Error::corrupt("the name of an attempt is not UTF-8")))
    }

    /// When an attempt began, as far as the logs show that this takeover replaces.
    pub fn attempt(self: &Arc<Self>, name: &str) -> Result<Option<Order>> {
        let Some(value) = self.value(TakeoverTable::Attempts, name.as_bytes())? else { return Ok(None) };
        let row = AttemptRow::decode(&value).map_err(|e| self.named(e))?;
        Ok(Some((row.began, row.writer)))
    }

    /// The key of the row with a number.
    fn key_of(self: &Arc<Self>, table: TakeoverTable, number: u64) -> Result<Vec<u8>> {
        let missing = || self.named(Error::corrupt("a row names one that is missing"));
        let mut rows = self.cursor(table).ok_or_else(missing)?;
        match rows.seek_row(number).map_err(|e| self.named(e))? {
            true => Ok(rows.key().to_vec()),
            false => Err(missing()),
        }
    }

    /// The rows of the leaf that holds the row with a number, and the number of its first row.
    pub(super) fn leaf<T>(
        self: &Arc<Self>,
        table: TakeoverTable,
        number: u64,
        mut decode: impl FnMut(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<(u64, Vec<T>)>> {
        let Some(mut rows) = self.cursor(table) else { return Ok(None) };
        let named = |e: Error| self.named(e);
        if !rows.seek_row(number).map_err(named)? {
            return Ok(None);
        }
        let (first, count) = rows.leaf();
        let mut more = rows.seek_row(first).map_err(named)?;
        let mut leaf = Vec::with_capacity(count as usize);
        while more && rows.row() < first + count {
            leaf.push(decode(rows.key(), rows.value()).map_err(named)?);
            more = rows.advance().map_err(named)?;
        }
        Ok(Some((first, leaf)))
    }
}
