//! Rows of attr in the binary form of COPY: the fastest way into PostgreSQL.
//!
//! This module lays out the rows itself, because the driver's own writer goes through a table of functions
//! for every cell.

use std::io::Write;

use fieldstone_core::{Code, Error, Result};

use super::super::{AttrRow, Cell};
use super::cells::escaped;

/// The beginning of a COPY stream; the columns are those of [`super::ATTR_COLUMNS`].
pub(super) const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();
const COLUMNS: i16 = 14;
/// The size of the pieces that the driver gets.
const BLOCK: usize = 64 << 10;

/// Writes rows to a running COPY; returns their number.
pub(super) fn rows(
    to: &mut dyn Write,
    rows: &mut dyn Iterator<Item = AttrRow<'_>>,
) -> std::result::Result<u64, Failure> {
    let mut block = Vec::with_capacity(BLOCK + 4096);
    block.extend_from_slice(SIGNATURE);
    let mut n = 0;
    for row in rows {
        put_row(&mut block, &row).map_err(Failure::Row)?;
        n += 1;
        if block.len() >= BLOCK {
            to.write_all(&block).map_err(Failure::Write)?;
            block.clear();
        }
    }
    block.extend_from_slice(&TRAILER);
    to.write_all(&block).map_err(Failure::Write)?;
    Ok(n)
}

/// The cause of a failure: a row that COPY cannot represent, or the connection.
pub(super) enum Failure {
    Row(Error),
    Write(std::io::Error),
}

fn put_row(out: &mut Vec<u8>, row: &AttrRow<'_>) -> Result<()> {
    // Each cell of fixed size has a length word: all are laid out in one array and copied once.
    let mut head = [0u8; 2 + 7 * 12 + 6];
    head[..2].copy_from_slice(&COLUMNS.to_be_bytes());
    let fixed = [row.run, row.tag, row.step, row.variable, row.curve, row.batch, row.row];
    for (cell, value) in head[2..2 + 7 * 12].chunks_exact_mut(12).zip(fixed) {
        cell[..4].copy_from_slice(&8i32.to_be_bytes());
        cell[4..].copy_from_slice(&value.to_be_bytes());
    }
    head[86..90].copy_from_slice(&2i32.to_be_bytes());
    head[90..].copy_from_slice(&(row.kind as i16).to_be_bytes());
    out.extend_from_slice(&head);
    match row.num {
        Some(num) => put(out, &num.to_be_bytes())?,
        None => absent(out),
    }
    match row.payload {
        Cell::Int(v) => put(out, &v.to_be_bytes())?,
        _ => absent(out),
    }
    match row.payload {
        Cell::Real(v) => put(out, &v.to_be_bytes())?,
        _ => absent(out),
    }
    match row.payload {
        Cell::Text(v) => put(out, escaped(v).as_bytes())?,
        _ => absent(out),
    }
    match row.payload {
        Cell::Bytes(v) => put(out, v)?,
        _ => absent(out),
    }
    put(out, row.region)
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let length = i32::try_from(bytes.len()).map_err(|_| {
        Code::TooLarge.error("an attribute's value of more than 2 GiB cannot go into PostgreSQL")
    })?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn absent(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i32).to_be_bytes());
}
