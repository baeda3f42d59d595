//! Writers: the process of each log and its place in a job, from the log's header.

use std::fmt;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::attempt::Origin;
use fieldstone_format::log::LogHeader;

use super::{Cell, Database, Flow};

/// Returns the known facts about a log's writer.
pub type WriterOf = Arc<dyn Fn(Id) -> Option<Writer> + Send + Sync>;
/// Returns the name of a user, by number.
pub type UserNames = Arc<dyn Fn(u32) -> String + Send + Sync>;

/// The process that writes a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writer {
    /// Its host.
    pub host: String,
    /// Its number on the host.
    pub process: u32,
    /// Its rank in the job.
    pub rank: Option<u32>,
    /// The scheduler's name of the job; empty if there is none.
    pub job: String,
    /// The attempt; empty if there is none.
    pub attempt: String,
}

impl Writer {
    /// The facts in a log's header, and the attempt that its commits name. `None` if the header is damaged.
    pub fn of(header: &LogHeader, attempt: Option<&str>) -> Option<Writer> {
        let Origin { attempt: named, job, rank } = &header.origin;
        header.known_store().map(|_| Writer {
            host: header.host.clone(),
            process: header.process,
            rank: *rank,
            job: job.clone(),
            attempt: attempt.unwrap_or(named).to_owned(),
        })
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.process)
    }
}

/// A log, as a query sees it.
#[derive(Debug, Clone)]
pub struct WriterRow {
    /// Its number.
    pub log: i64,
    /// Its id.
    pub id: Id,
    /// Number and name of the user who owns it; `None` if no commit of it was applied.
    pub user: Option<(u32, String)>,
    /// Its writer; `None` if the header is damaged.
    pub writer: Option<Writer>,
}

/// Stores the facts about a log's writer.
pub(super) fn describe(db: &mut dyn Database, log: i64, writer: &Writer) -> Result<()> {
    let Writer { host, process, rank, job, attempt } = writer;
    let text = |text: &'_ String| if text.is_empty() { None } else { Some(text.clone()) };
    let (job, attempt) = (text(job), text(attempt));
    let cells = [
        Cell::Int(log),
        Cell::Text(host),
        Cell::Int((*process).into()),
        rank.map_or(Cell::Null, |rank| Cell::Int(rank.into())),
        job.as_deref().map_or(Cell::Null, Cell::Text),
        attempt.as_deref().map_or(Cell::Null, Cell::Text),
    ];
    let sql = "UPDATE log SET host = $2, process = $3, rank = $4, job = $5, attempt = $6 WHERE log = $1";
    db.execute(sql, &cells).map(|_| ())
}

/// Every log, by number; `names` gives the names of users.
pub(super) fn rows(db: &mut dyn Database, names: Option<&UserNames>) -> Result<Vec<WriterRow>> {
    let sql = "SELECT log, writer, uid, host, process, rank, job, attempt FROM log ORDER BY log";
    db.all(sql, &[], |row| {
        let id = <[u8; 16]>::try_from(row[1].bytes()?).map(Id).unwrap_or(Id::LEAST);
        let user =
            number(&row[2])?.map(|user| (user, names.map_or_else(|| user.to_string(), |name| name(user))));
        Ok(WriterRow { log: row[0].int()?, id, user, writer: writer(&row[3..])? })
    })
}

/// From host, process, rank, job, attempt.
fn writer(row: &[Cell<'_>]) -> Result<Option<Writer>> {
    let text =
        |cell: &Cell<'_>| -> Result<String> { Ok(cell.text_or_null()?.unwrap_or_default().to_owned()) };
    let (Some(host), Some(process)) = (row[0].text_or_null()?, number(&row[1])?) else { return Ok(None) };
    let (rank, job, attempt) = (number(&row[2])?, text(&row[3])?, text(&row[4])?);
    Ok(Some(Writer { host: host.to_owned(), process, rank, job, attempt }))
}

fn number(cell: &Cell<'_>) -> Result<Option<u32>> {
    Ok(cell.int_or_null()?.and_then(|number| u32::try_from(number).ok()))
}

/// Batches of these logs, which must be ascending: ranges of numbers, both ends included, ascending.
pub(super) fn batches(db: &mut dyn Database, logs: &[i64]) -> Result<Vec<(i64, i64)>> {
    const FEW: usize = 32;
    let mut batches = Vec::new();
    let mut take = |row: &[Cell<'_>]| {
        if logs.len() <= FEW || logs.binary_search(&row[1].int()?).is_ok() {
            batches.push(row[0].int()?);
        }
        Ok(Flow::More)
    };
    if logs.len() <= FEW {
        for log in logs {
            let sql = "SELECT batch, log FROM batch WHERE log = $1";
            db.query(sql, &[Cell::Int(*log)], &mut take)?;
        }
    } else {
        db.query("SELECT batch, log FROM batch", &[], &mut take)?;
    }
    batches.sort_unstable();
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for batch in batches {
        match ranges.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(batch) => last.1 = batch,
            _ => ranges.push((batch, batch)),
        }
    }
    Ok(ranges)
}

/// Wraps a function, so that its owner can derive Debug.
#[derive(Clone)]
pub(super) struct Callback<F>(pub F);

impl<F> fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
