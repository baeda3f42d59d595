//! One statement for many rows: `VALUES ($1, $2)` becomes a table of arrays, so that thousands of rows of the
//! small tables need one round trip.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

use super::super::Cell;
use super::cells::Parameter;

/// The statement that takes an array for each of `width` parameters; `None` if its values are not exactly
/// `$1` to `$width`.
pub(super) fn of_arrays(sql: &str, types: &[Type]) -> Option<String> {
    let plain = (1..=types.len()).map(|i| format!("${i}")).collect::<Vec<_>>().join(", ");
    let values = format!("VALUES ({plain})");
    let (before, after) = sql.split_once(&values)?;
    if after.contains('$') || before.contains('$') {
        return None;
    }
    let arrays: Vec<String> = types.iter().enumerate().map(|(i, t)| format!("${}::{t}[]", i + 1)).collect();
    // The list of a row's columns needs no names: they are in the order of the values.
    Some(format!("{before}SELECT * FROM unnest({}) AS given{after}", arrays.join(", ")))
}

/// Column `at` of rows of `width` cells, as an array.
#[derive(Debug)]
pub(super) struct Array<'a> {
    pub(super) cells: &'a [Cell<'a>],
    pub(super) width: usize,
    pub(super) at: usize,
}

impl ToSql for Array<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Kind::Array(member) = ty.kind() else {
            return Err(format!("{ty} is not an array").into());
        };
        let n = self.cells.len() / self.width;
        out.put_i32(1); // dimensions
        out.put_i32(1); // there may be absent ones
        out.put_u32(member.oid());
        out.put_i32(n.try_into()?);
        out.put_i32(1); // the first index
        for cell in self.cells.iter().skip(self.at).step_by(self.width) {
            let place = out.len();
            out.put_i32(-1);
            if let IsNull::No = Parameter(*cell).to_sql(member, out)? {
                let length = i32::try_from(out.len() - place - 4)?;
                out[place..place + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_values_become_arrays() {
        let types = [Type::INT8, Type::TEXT];
        assert_eq!(
            of_arrays("INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT DO NOTHING", &types).as_deref(),
            Some(
                "INSERT INTO t (a, b) SELECT * FROM unnest($1::int8[], $2::text[]) AS given ON CONFLICT DO NOTHING"
            )
        );
        for sql in [
            "INSERT INTO t VALUES ($1, $2 + 1)",
            "INSERT INTO t VALUES ($1, $2) ON CONFLICT DO UPDATE SET b = $2",
            "UPDATE t SET a = $1 WHERE b = $2",
            "INSERT INTO t VALUES ($1, $2, 7)",
        ] {
            assert_eq!(of_arrays(sql, &types), None, "{sql}");
        }
    }
}
