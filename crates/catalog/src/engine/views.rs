//! Read-only views for people: the tables with names in place of numbers. They are promised; the tables
//! are not. `docs/guide/tag-and-find.md` lists their columns.
//!
//! On SQLite three functions read a box: `box_rank(box)`, `box_start(box, d)`, `box_count(box, d)`; NULL
//! where there is no such dimension.

use fieldstone_core::{Code, Result};
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};

use super::Dialect;
use super::stored::{region_dims, region_rank};

const NAMES: &[&str] = &["attributes", "series_of_attributes", "tags", "variables", "steps", "runs"];

const COMMON: &str = "
CREATE VIEW runs AS SELECT project, name AS run, declared, job, created, notes, grid, params FROM run
  WHERE declared = 1 OR EXISTS (SELECT 1 FROM span WHERE span.run = run.run)
  OR EXISTS (SELECT 1 FROM variable WHERE variable.run = run.run)
  OR EXISTS (SELECT 1 FROM step WHERE step.run = run.run)
  OR EXISTS (SELECT 1 FROM held WHERE held.run = run.run);
CREATE VIEW steps AS SELECT r.project, r.name AS run, s.step, s.time, s.declared
  FROM step s JOIN run r ON r.run = s.run;
CREATE VIEW variables AS SELECT r.project, r.name AS run, n.name AS variable, n.version, v.declared,
  COALESCE(v.dtype, v.field_dtype) AS dtype, COALESCE(v.shape, v.field_shape) AS shape, v.dims, v.attrs
  FROM variable v JOIN run r ON r.run = v.run JOIN variable_name n ON n.variable = v.variable;
CREATE VIEW tags AS SELECT name AS tag, shown AS version, {type} AS type, unit, declared FROM tag
  WHERE declared = 1 OR EXISTS (SELECT 1 FROM span WHERE span.tag = tag.tag);
CREATE VIEW series_of_attributes AS SELECT r.project, r.name AS run, t.name AS tag, t.shown AS tag_version,
  NULLIF(s.step, {none}) AS step, n.name AS variable, n.version AS variable_version, s.n AS count,
  s.least, s.greatest
  FROM series s JOIN run r ON r.run = s.run JOIN tag t ON t.tag = s.tag
  LEFT JOIN variable_name n ON n.variable = s.variable;
CREATE VIEW attributes AS SELECT r.project, r.name AS run, t.name AS tag, t.shown AS tag_version, t.unit,
  NULLIF(a.step, {none}) AS step, n.name AS variable, n.version AS variable_version,
  a.kind AS value_type, a.num AS number, {text} AS text, {bool} AS bool, {datetime} AS datetime,
  a.region AS box, l.uid
  FROM attr a JOIN run r ON r.run = a.run JOIN tag t ON t.tag = a.tag
  LEFT JOIN variable_name n ON n.variable = a.variable
  LEFT JOIN batch b ON b.batch = a.batch LEFT JOIN log l ON l.log = b.log;
";

const TYPES: &str = "CASE kind WHEN 1 THEN 'bool' WHEN 2 THEN 'int' WHEN 3 THEN 'uint' WHEN 4 THEN 'float' \
                     WHEN 5 THEN 'text' WHEN 6 THEN 'bytes' WHEN 7 THEN 'datetime' WHEN 8 THEN 'int_range' \
                     WHEN 9 THEN 'float_range' WHEN 10 THEN 'array' ELSE 'json' END";

/// Statements that make the views.
pub(super) fn create(dialect: Dialect) -> String {
    let (text, bool, datetime) = match dialect {
        Dialect::Sqlite => (
            "CASE a.kind WHEN 5 THEN a.payload END",
            "CASE a.kind WHEN 1 THEN a.payload END",
            "CASE a.kind WHEN 7 THEN strftime('%Y-%m-%dT%H:%M:%fZ', \
             COALESCE(a.payload, CAST(a.num AS INTEGER)) / 1e9, 'unixepoch') END",
        ),
        Dialect::Postgres => (
            "CASE a.kind WHEN 5 THEN a.payload_text END",
            "CASE a.kind WHEN 1 THEN a.payload_int <> 0 END",
            "CASE a.kind WHEN 7 THEN to_timestamp(COALESCE(a.payload_int::float8, a.num) / 1e9) END",
        ),
    };
    let none = i64::MIN.to_string();
    let marks =
        [("{type}", TYPES), ("{none}", &none), ("{text}", text), ("{bool}", bool), ("{datetime}", datetime)];
    marks.iter().fold(COMMON.to_owned(), |sql, (mark, text)| sql.replace(mark, text))
}

/// Statements that drop the views.
pub(super) fn drop() -> String {
    NAMES.iter().map(|name| format!("DROP VIEW IF EXISTS {name};\n")).collect()
}

/// Refuses what is not a statement that reads; the database refuses the rest.
pub(super) fn check(statement: &str) -> Result<()> {
    let word: String = statement.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let reads = ["SELECT", "WITH", "EXPLAIN", "VALUES"].iter().any(|first| word.eq_ignore_ascii_case(first));
    if reads {
        return Ok(());
    }
    Err(Code::Sql
        .error(format!("SQL: '{word}' is not taken: only statements that read are"))
        .with_hint("begin with SELECT, WITH or EXPLAIN; attributes are written with annotate"))
}

fn region<'a>(context: &'a Context<'_>) -> rusqlite::Result<&'a [u8]> {
    Ok(context.get_raw(0).as_blob_or_null()?.unwrap_or_default())
}

fn dim(context: &Context<'_>) -> rusqlite::Result<Option<(i64, i64)>> {
    let d = usize::try_from(context.get::<i64>(1)?).unwrap_or(usize::MAX);
    Ok(region_dims(region(context)?).nth(d).and_then(std::result::Result::ok))
}

/// Registers the functions of boxes.
pub(super) fn functions(connection: &Connection) -> rusqlite::Result<()> {
    let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("box_rank", 1, pure, |context| {
        let region = region(context)?;
        Ok(Some(region_rank(region) as i64).filter(|_| !region.is_empty()))
    })?;
    connection
        .create_scalar_function("box_start", 2, pure, |context| Ok(dim(context)?.map(|(start, _)| start)))?;
    connection
        .create_scalar_function("box_count", 2, pure, |context| Ok(dim(context)?.map(|(_, count)| count)))
}
