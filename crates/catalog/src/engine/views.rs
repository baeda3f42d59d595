//! Read-only views for people: the tables with names in place of numbers. The views are part of the promised
//! interface; the tables are not. `docs/guide/tag-and-find.md` lists their columns.
//!
//! On SQLite three functions read a box: `box_rank(box)`, `box_start(box, d)`, `box_count(box, d)`; they
//! return NULL for a dimension that does not exist. `keyword(box, name)` returns a further keyword of the
//! attribute, NULL if it has none of this name.

use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::schema::step_number;
use fieldstone_core::value::ValueType;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};

use super::Dialect;
use super::stored::{region_dims, region_keywords, region_rank};

const NAMES: &[&str] = &["attributes", "series_of_attributes", "tags", "variables", "steps", "runs"];

/// The six tables of SDM's database.
pub const ARRAY_TABLES: [&str; 6] = [
    "run_table",
    "access_pattern_table",
    "execution_table",
    "import_table",
    "index_table",
    "index_history_table",
];

const COMMON: &str = "
CREATE VIEW runs AS SELECT project, name AS run, declared, job, COALESCE(created, written) AS created, notes, grid,
  params FROM run
  WHERE declared = 1 OR EXISTS (SELECT 1 FROM span WHERE span.run = run.run)
  OR EXISTS (SELECT 1 FROM variable WHERE variable.run = run.run)
  OR EXISTS (SELECT 1 FROM step WHERE step.run = run.run)
  OR EXISTS (SELECT 1 FROM held WHERE held.run = run.run);
CREATE VIEW steps AS SELECT r.project, r.name AS run,
  CASE WHEN s.step < {whole} THEN NULL ELSE s.step END AS step, s.time, s.declared
  FROM step s JOIN run r ON r.run = s.run;
CREATE VIEW variables AS SELECT r.project, r.name AS run, n.name AS variable, n.version, v.declared,
  COALESCE(v.dtype, v.field_dtype) AS dtype, COALESCE(v.shape, v.field_shape) AS shape, v.dims, v.attrs
  FROM variable v JOIN run r ON r.run = v.run JOIN variable_name n ON n.variable = v.variable;
CREATE VIEW tags AS SELECT name AS tag, shown AS version, {type} AS type, unit, declared FROM tag
  WHERE declared = 1 OR EXISTS (SELECT 1 FROM span WHERE span.tag = tag.tag);
CREATE VIEW series_of_attributes AS SELECT r.project, r.name AS run, t.name AS tag, t.shown AS tag_version,
  CASE WHEN s.step < {whole} THEN NULL ELSE s.step END AS step, n.name AS variable, n.version AS variable_version, s.n AS count,
  s.least, s.greatest
  FROM series s JOIN run r ON r.run = s.run JOIN tag t ON t.tag = s.tag
  LEFT JOIN variable_name n ON n.variable = s.variable;
CREATE VIEW attributes AS SELECT r.project, r.name AS run, t.name AS tag, t.shown AS tag_version, t.unit,
  CASE WHEN a.step < {whole} THEN NULL ELSE a.step END AS step, n.name AS variable, n.version AS variable_version,
  a.kind AS value_type, a.num AS number, {text} AS text, {bool} AS bool, {datetime} AS datetime,
  a.region AS box, l.uid, l.host, l.process, l.rank, l.job, l.attempt
  FROM attr a JOIN run r ON r.run = a.run JOIN tag t ON t.tag = a.tag
  LEFT JOIN variable_name n ON n.variable = a.variable
  LEFT JOIN batch b ON b.batch = a.batch LEFT JOIN log l ON l.log = b.log;
CREATE VIEW run_table AS SELECT r.project, r.name AS runid, COALESCE(MAX(s.dimensions), 0) AS dimension,
  COALESCE(MAX(s.elements), 0) AS problem_size, (SELECT COUNT(*) FROM step t WHERE t.run = r.run) AS steps,
  COALESCE({created}, '') AS date_time
  FROM run r LEFT JOIN array_set s ON s.run = r.run
  WHERE EXISTS (SELECT 1 FROM array_group g WHERE g.run = r.run)
  OR EXISTS (SELECT 1 FROM import_file f WHERE f.run = r.run)
  GROUP BY r.run, r.project, r.name, r.created;
CREATE VIEW access_pattern_table AS SELECT r.project, r.name AS runid, n.name AS dataset, n.version,
  s.pattern AS basic_pattern, s.dtype AS data_type, g.storage_order, s.view_text AS access_pattern, s.shape,
  s.elements AS global_size, i.name AS data_group, g.level, g.layout, g.method, g.mesh, g.location
  FROM array_set s JOIN array_group g ON g.run = s.run AND g.item = s.item JOIN run r ON r.run = s.run
  JOIN array_item i ON i.item = s.item JOIN variable_name n ON n.variable = s.variable;
CREATE VIEW execution_table AS SELECT r.project, r.name AS runid, n.name AS dataset, n.version,
  h.step AS timestep, i.name AS data_group, g.level, g.layout
  FROM array_set s JOIN held h ON h.run = s.run AND h.variable = s.variable AND h.step <> {none}
  JOIN array_group g ON g.run = s.run AND g.item = s.item JOIN run r ON r.run = s.run
  JOIN array_item i ON i.item = s.item JOIN variable_name n ON n.variable = s.variable;
CREATE VIEW import_table AS SELECT r.project, r.name AS runid, i.name AS import_name, f.source AS file_name,
  f.format AS file_format, v.name, v.file_offset, v.dtype AS data_type, v.shape, v.elements AS size,
  f.size AS file_size, f.mtime AS file_changed, f.checksum
  FROM import_file f JOIN import_variable v ON v.run = f.run AND v.item = f.item JOIN run r ON r.run = f.run
  JOIN array_item i ON i.item = f.item;
CREATE VIEW index_table AS SELECT i.name AS history_file, h.kind, h.edges AS problem_size, h.nodes, h.ranks,
  h.mesh, h.vector FROM history h JOIN array_item i ON i.item = h.item;
CREATE VIEW index_history_table AS SELECT i.name AS history_file, k.rank, k.nodes, k.ghosts, k.edges
  FROM history_rank k JOIN array_item i ON i.item = k.item;
";

const TYPES: &str = "CASE kind WHEN 1 THEN 'bool' WHEN 2 THEN 'int' WHEN 3 THEN 'uint' WHEN 4 THEN 'float' \
                     WHEN 5 THEN 'text' WHEN 6 THEN 'bytes' WHEN 7 THEN 'datetime' WHEN 8 THEN 'int_range' \
                     WHEN 9 THEN 'float_range' WHEN 10 THEN 'array' ELSE 'json' END";

/// Statements that create the views.
pub(super) fn create(dialect: Dialect) -> String {
    let (text, bool, datetime, created, ns) = match dialect {
        Dialect::Sqlite => (
            "CASE a.kind WHEN 5 THEN a.payload END",
            "CASE a.kind WHEN 1 THEN a.payload END",
            "CASE a.kind WHEN 7 THEN strftime('%Y-%m-%dT%H:%M:%S', ({ns} - {of_second}) / 1000000000, 'unixepoch') \
             || printf('.%03dZ', {of_second} / 1000000) END",
            "strftime('%Y-%m-%dT%H:%M:%SZ', r.created / 1000000000, 'unixepoch')",
            "COALESCE(a.payload, CAST(a.num AS INTEGER))",
        ),
        Dialect::Postgres => (
            "CASE a.kind WHEN 5 THEN a.payload_text END",
            "CASE a.kind WHEN 1 THEN a.payload_int <> 0 END",
            // Text, as in SQLite, so that a statement means the same in both.
            "CASE a.kind WHEN 7 THEN to_char(timestamp '1970-01-01' + ({ns} - {of_second}) / 1000000000 * interval '1 second', \
             'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' || lpad(({of_second} / 1000000)::text, 3, '0') || 'Z' END",
            "to_char(to_timestamp(r.created / 1000000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
            "COALESCE(a.payload_int, a.num::bigint)",
        ),
    };
    let (none, whole) = (i64::MIN.to_string(), step_number::WHOLE.to_string());
    let marks = [
        ("{type}", TYPES),
        ("{none}", &none),
        // The stored form of `15m` or `0-24` means nothing to SQL.
        ("{whole}", &whole),
        ("{text}", text),
        ("{bool}", bool),
        ("{datetime}", datetime),
        ("{created}", created),
        // Nanoseconds since the second before began.
        ("{of_second}", "((({ns} % 1000000000) + 1000000000) % 1000000000)"),
        ("{ns}", ns),
    ];
    marks.iter().fold(COMMON.to_owned(), |sql, (mark, text)| sql.replace(mark, text))
}

/// Statements that drop the views.
pub(super) fn drop() -> String {
    ARRAY_TABLES.iter().chain(NAMES).map(|name| format!("DROP VIEW IF EXISTS {name};\n")).collect()
}

/// The type of a column of a view, by its name: SQLite has a type for each value, not for a column.
pub(super) fn kind(name: &str) -> Option<ValueType> {
    Some(match name {
        "project" | "run" | "job" | "notes" | "grid" | "params" | "variable" | "dtype" | "shape" | "dims"
        | "attrs" | "tag" | "type" | "unit" | "text" | "datetime" | "host" | "attempt" => ValueType::Text,
        "number" | "time" | "least" | "greatest" => ValueType::Float,
        "declared" | "created" | "step" | "version" | "tag_version" | "variable_version" | "value_type"
        | "bool" | "uid" | "process" | "rank" | "count" => ValueType::Int,
        "box" => ValueType::Bytes,
        _ => return None,
    })
}

/// A hint for a table that does not exist: the nearest name, and the list of views.
pub(super) fn hint(said: &str) -> String {
    let there = "runs, steps, variables, tags, attributes, series_of_attributes";
    let asked = said.strip_prefix("no such table: ").unwrap_or_default();
    let near = did_you_mean(asked, NAMES.iter().chain(&ARRAY_TABLES).copied());
    near.map_or_else(|| format!("views: {there}"), |near| format!("{near} views: {there}"))
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
        Ok(Some(region_rank(region(context)?) as i64).filter(|rank| *rank > 0))
    })?;
    connection.create_scalar_function("keyword", 2, pure, |context| {
        let name = context.get_raw(1).as_str_or_null()?.unwrap_or_default();
        let keywords = region_keywords(region(context)?).ok().flatten();
        let found = keywords.as_ref().and_then(|all| all.iter().find(|(known, _)| **known == *name));
        Ok(found.map(|(_, value)| value.to_string()))
    })?;
    connection
        .create_scalar_function("box_start", 2, pure, |context| Ok(dim(context)?.map(|(start, _)| start)))?;
    connection
        .create_scalar_function("box_count", 2, pure, |context| Ok(dim(context)?.map(|(_, count)| count)))
}
