//! Writers: terms about users and writers become sets of batches before rows are read.
//!
//! An engine has few logs compared with its rows, so each log is tested once, and the batch number then
//! decides a row. A set of all logs, or of none, decides whole runs and tags.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::{Test, Value};

use super::WriterPart;
use super::batches::Batches;
use super::cond::{Cond, Leaf, Names, Related, says};
use crate::engine::{Tables, Writer, WriterRow};

/// Replaces users and writers by batches.
pub(super) fn with_batches(
    tables: &mut dyn Tables,
    cond: Cond,
    mut related: Vec<Related>,
) -> Result<(Cond, Vec<Related>)> {
    let asks = |cond: &Cond| cond.has(&|leaf| matches!(leaf, Leaf::User(_) | Leaf::Writer(_)));
    if !asks(&cond) && !related.iter().any(|one| asks(&one.cond)) {
        return Ok((cond, related));
    }
    let writers = tables.writers()?;
    let cond = batches_in(tables, &writers, &cond)?;
    for one in &mut related {
        one.cond = batches_in(tables, &writers, &one.cond)?;
    }
    Ok((cond, related))
}

fn batches_in(tables: &mut dyn Tables, writers: &[WriterRow], cond: &Cond) -> Result<Cond> {
    let mut all =
        |list: &[Cond]| list.iter().map(|one| batches_in(tables, writers, one)).collect::<Result<_>>();
    Ok(match cond {
        Cond::All(list) => Cond::All(all(list)?),
        Cond::Any(list) => Cond::Any(all(list)?),
        Cond::Not(inner) => Cond::Not(Box::new(batches_in(tables, writers, inner)?)),
        Cond::Leaf(Leaf::User(names)) => {
            of_logs(tables, writers, &|row| row.user.as_ref().is_some_and(|user| is_user(names, user)))?
        }
        Cond::Leaf(Leaf::Writer(term)) => of_logs(tables, writers, &|row| is_writer(row, term.0, &term.1))?,
        Cond::Const(_) | Cond::Leaf(_) => cond.clone(),
    })
}

fn of_logs(tables: &mut dyn Tables, writers: &[WriterRow], is: &dyn Fn(&WriterRow) -> bool) -> Result<Cond> {
    // A log without a user has no applied commit, and so no attributes.
    let (is, not): (Vec<_>, Vec<_>) =
        writers.iter().filter(|row| row.user.is_some()).partition(|row| is(row));
    let logs: Vec<i64> = is.iter().map(|row| row.log).collect();
    let batches = if not.is_empty() { Batches::Every } else { Batches::Ranges(tables.batches_of(&logs)?) };
    Ok(Cond::Leaf(Leaf::Batches(Arc::new(batches))))
}

/// Whether a user has one of these names, or the number given in place of a name.
fn is_user(names: &Names, (number, name): &(u32, String)) -> bool {
    names.matches(name) || names.matches(&number.to_string())
}

/// Whether a test holds for a part of a log's writer.
fn is_writer(row: &WriterRow, part: WriterPart, test: &Test) -> bool {
    let Some(Writer { host, process, rank, job, attempt }) = &row.writer else {
        return match part {
            WriterPart::Name => says(&row.id.to_string(), test),
            _ => test.matches_absent(),
        };
    };
    let text = |text: &str| if text.is_empty() { test.matches_absent() } else { says(text, test) };
    match part {
        WriterPart::Name => text(&format!("{host}:{process}")) || says(&row.id.to_string(), test),
        WriterPart::Host => text(host),
        WriterPart::Process => test.matches(&Value::UInt((*process).into())),
        WriterPart::Rank => test.matches_maybe(rank.map(|rank| Value::UInt(rank.into())).as_ref()),
        WriterPart::Job => text(job),
        WriterPart::Attempt => text(attempt),
    }
}
