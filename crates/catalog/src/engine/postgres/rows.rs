//! Rows that travel while a statement runs: read one by one, or written by COPY.

use fieldstone_core::value::ValueType;
use fieldstone_core::{Code, Error, Result};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};

use super::super::{AttrRow, Cell, Flow};
use super::cells::Taken;
use super::copy;

/// The reason why a transfer stopped early.
pub(super) enum Stopped {
    Ours(Error),
    Theirs(postgres::Error),
}

/// Rows of one statement, one at a time; `false` if the receiver has enough.
pub(super) fn read_rows(
    client: &mut Client,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
    row: &mut dyn FnMut(&Row) -> Result<Flow>,
) -> std::result::Result<bool, Stopped> {
    let mut rows = client.query_raw(statement, parameters.iter().copied()).map_err(Stopped::Theirs)?;
    while let Some(r) = rows.next().map_err(Stopped::Theirs)? {
        if row(&r).map_err(Stopped::Ours)? == Flow::Stop {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes rows of attr by COPY.
pub(super) fn copy_rows(
    client: &mut Client,
    statement: &Statement,
    rows: &mut dyn Iterator<Item = AttrRow<'_>>,
) -> std::result::Result<u64, Stopped> {
    let mut writer = client.copy_in(statement).map_err(Stopped::Theirs)?;
    match copy::rows(&mut writer, rows) {
        Ok(n) => writer.finish().map(|_| n).map_err(Stopped::Theirs),
        Err(copy::Failure::Row(error)) => Err(Stopped::Ours(error)),
        // The server's answer at the end explains why the connection accepted no more data.
        Err(copy::Failure::Write(cause)) => Err(match writer.finish() {
            Err(why) => Stopped::Theirs(why),
            Ok(_) => Stopped::Ours(
                Code::EngineLost.error(format!("PostgreSQL: cannot send rows: {cause}")).with_source(cause),
            ),
        }),
    }
}

/// One column of a row.
pub(super) fn take(row: &Row, column: usize) -> Result<Taken<'_>> {
    row.try_get(column).map_err(|e| {
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        Code::EngineDamaged
            .error(format!("PostgreSQL: column {column} of a row cannot be read: {why}"))
            .with_hint("`fieldstone rebuild` builds the tables again")
    })
}

/// Passes a row of attr to a receiver.
pub(super) fn with_attr(row: &Row, to: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<Flow> {
    let int = |column| match take(row, column)?.cell() {
        Cell::Int(v) => Ok(v),
        cell => Err(damaged(column, cell)),
    };
    let kind = int(7)?;
    let kind = u8::try_from(kind).ok().and_then(ValueType::from_u8);
    let kind = kind.ok_or_else(|| damaged(7, Cell::Null))?;
    let num = match take(row, 8)?.cell() {
        Cell::Null => None,
        Cell::Real(v) => Some(v),
        cell => return Err(damaged(8, cell)),
    };
    let mut payload = Taken::Plain(Cell::Null);
    for column in 9..13 {
        let taken = take(row, column)?;
        if taken.cell() != Cell::Null {
            payload = taken;
            break;
        }
    }
    let region = take(row, 13)?;
    let region = match &region {
        Taken::Plain(Cell::Bytes(v)) => *v,
        other => return Err(damaged(13, other.cell())),
    };
    to(&AttrRow {
        run: int(0)?,
        tag: int(1)?,
        step: int(2)?,
        variable: int(3)?,
        curve: int(4)?,
        batch: int(5)?,
        row: int(6)?,
        kind,
        num,
        payload: payload.cell(),
        region,
    })
}

fn damaged(column: usize, cell: Cell<'_>) -> Error {
    Code::EngineDamaged
        .error(format!("PostgreSQL: column {column} of a row of attr holds {cell:?}"))
        .with_hint("`fieldstone rebuild` builds the tables again")
}
