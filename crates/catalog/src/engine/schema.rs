//! The tables of an engine, in both dialects.
//!
//! | table | key | holds |
//! |---|---|---|
//! | meta | name | layout version, id of the store, a counter of transactions that applied something, the applied takeovers |
//! | log | log | a writer, the sequence up to which its log is applied, whether a takeover that is applied replaces it, the user who owns it, its process and place in a job |
//! | batch | batch | the source of rows of attr: log, sequence, record, call; the order of the commit |
//! | run | run | project and name; the declaration, in columns for people and as bytes for us; its owner |
//! | step | run, step | time; a row for each step that is declared, has fields, or has attributes |
//! | variable_name | variable | name and version; the same number in all runs |
//! | variable | run, variable | the declaration; type and shape of the array at the last step that has one |
//! | held | run, variable, step | fields: the variables at each step; says: arrays, opaque bytes, both |
//! | tag | tag | name, version asked for, type, unit; version shown |
//! | array_item | item | names of groups, imports, meshes and histories; the same number in all runs |
//! | array_group | run, item | groups of arrays: properties, and all their sets as bytes |
//! | array_set | run, item, place | sets of groups |
//! | import_file | run, item | files that runs import, with their variables as bytes |
//! | import_variable | run, item, place | variables of them |
//! | mesh | item | meshes |
//! | history | item | histories of partitions |
//! | history_rank | item, rank | each rank's share of finished parts |
//! | decl | kind, run, item, … | every declaration that is visible; the tables above show the oldest |
//! | conflict | kind, run, item, … | declarations that contradict the oldest |
//! | attr | run, tag, step, variable, curve, batch, row | the attributes, clustered |
//! | series | run, tag, step, variable | rows, least and greatest number, levels and extent of boxes |
//! | span | tag, run | rows, least and greatest number, first and last step |
//! | tombstone | | deletions of whole objects, for content that arrives later with an older order |
//! | tombstone_row | log, sequence, record, row, uid, own | attributes and declarations that were deleted individually, by which user, and the stamp of that |
//! | tombstone_cell | run, tag, step, variable, curve, batch, row | places of deleted attributes: older ones stay hidden |
//! | txn | txn | transactions: the decision in force, and how far it was applied |
//! | pending | txn, log, sequence, record | records of transactions that are not wholly decided |
//! | recheck | run, variable, step | places that the store was ever asked about; open: the answer is due |
//!
//! `row` is the row of an attribute in its record, `item` the number of a step, variable or tag. Numbers of
//! runs, tags, variables, logs and batches follow the order of arrival and mean nothing outside the engine.
//! Stamps are stored as their 64 bits; SQL never compares them.
//!
//! * A run's `written` is the time of the oldest flush of a field of it, visible or not.
//! * `uid` is a user's number, -1 if it is not known.
//! * A run's `first` is the place and the user of its oldest declaration, even if deleted. `annotate` is 1 if
//!   only the run's owner may annotate it, `shut` is 1 if attributes of others were left out for that reason.
//!   `owned` is 0 if the run's `owner` is not determined yet, 1 if the store names none (the oldest
//!   declaration decides), 2 if it names one.

use super::Dialect;

/// Version of the layout. An engine with another layout is built again by replay.
pub const LAYOUT: &str = "12";

/// Every table, so that all can be dropped.
const TABLES: &[&str] = &[
    "meta",
    "log",
    "batch",
    "run",
    "step",
    "variable_name",
    "variable",
    "held",
    "tag",
    "array_item",
    "array_group",
    "array_set",
    "import_file",
    "import_variable",
    "mesh",
    "history",
    "history_rank",
    "decl",
    "conflict",
    "attr",
    "series",
    "span",
    "tombstone",
    "tombstone_row",
    "tombstone_cell",
    "txn",
    "pending",
    "recheck",
];

/// Types are in braces, because they differ between the dialects.
const DDL: &str = "
CREATE TABLE meta (name {text} PRIMARY KEY, value {text} NOT NULL);
CREATE TABLE log (log {id}, writer {bytes} NOT NULL UNIQUE, sequence {int} NOT NULL, uid {int} NOT NULL,
  taken {int} NOT NULL, host {text}, process {int}, rank {int}, job {text}, attempt {text});
CREATE INDEX log_living ON log (writer, sequence) WHERE taken = 0 AND sequence > 0;
CREATE TABLE batch (batch {id}, log {int} NOT NULL, sequence {int} NOT NULL, record {int} NOT NULL,
  call {int} NOT NULL, singles {int} NOT NULL, stamp {int} NOT NULL, decider {int} NOT NULL,
  own {int} NOT NULL, txn {int} NOT NULL, bit {int} NOT NULL, run {int} NOT NULL, tag {int} NOT NULL,
  first {int} NOT NULL, last {int} NOT NULL);
CREATE UNIQUE INDEX batch_source ON batch (log, sequence, record);
CREATE INDEX batch_txn ON batch (txn) WHERE txn <> 0;
CREATE TABLE run (run {id}, project {text} NOT NULL, name {text} NOT NULL, declared {int} NOT NULL,
  job {text}, created {int}, notes {text}, grid {text}, params {text}, content {bytes},
  annotate {int} NOT NULL, shut {int} NOT NULL, owned {int} NOT NULL, owner {int}, first {bytes}, written {int},
  UNIQUE (name, project));
CREATE INDEX run_unclaimed ON run (run) WHERE owned = 1;
CREATE TABLE step (run {int} NOT NULL, step {int} NOT NULL, declared {int} NOT NULL, time {real},
  PRIMARY KEY (run, step)) {clustered};
CREATE TABLE variable_name (variable {id}, name {text} NOT NULL, version {int} NOT NULL,
  UNIQUE (name, version));
CREATE TABLE variable (run {int} NOT NULL, variable {int} NOT NULL, declared {int} NOT NULL,
  dtype {text}, shape {text}, dims {text}, attrs {text}, content {bytes},
  field_step {int}, field_dtype {text}, field_shape {text},
  PRIMARY KEY (run, variable)) {clustered};
CREATE TABLE held (run {int} NOT NULL, variable {int} NOT NULL, step {int} NOT NULL, says {int} NOT NULL,
  PRIMARY KEY (run, variable, step)) {clustered};
CREATE TABLE tag (tag {id}, name {text} NOT NULL, version {int} NOT NULL, kind {int} NOT NULL,
  unit {text} NOT NULL, shown {int} NOT NULL, declared {int} NOT NULL,
  UNIQUE (name, version, kind, unit));
CREATE TABLE array_item (item {id}, kind {int} NOT NULL, name {text} NOT NULL, UNIQUE (kind, name));
CREATE TABLE array_group (run {int} NOT NULL, item {int} NOT NULL, level {int} NOT NULL, layout {text} NOT NULL,
  method {text} NOT NULL, storage_order {text} NOT NULL, mesh {text}, location {text}, content {bytes} NOT NULL,
  PRIMARY KEY (run, item)) {clustered};
CREATE TABLE array_set (run {int} NOT NULL, item {int} NOT NULL, place {int} NOT NULL, variable {int} NOT NULL,
  dtype {text} NOT NULL, shape {text} NOT NULL, dimensions {int} NOT NULL, elements {int},
  pattern {text} NOT NULL, view_text {text} NOT NULL, PRIMARY KEY (run, item, place)) {clustered};
CREATE TABLE import_file (run {int} NOT NULL, item {int} NOT NULL, source {text} NOT NULL, format {text} NOT NULL,
  size {int} NOT NULL, mtime {int} NOT NULL, checksum {text}, content {bytes} NOT NULL,
  PRIMARY KEY (run, item)) {clustered};
CREATE TABLE import_variable (run {int} NOT NULL, item {int} NOT NULL, place {int} NOT NULL, name {text} NOT NULL,
  dtype {text} NOT NULL, file_offset {int} NOT NULL, shape {text} NOT NULL, elements {int},
  PRIMARY KEY (run, item, place)) {clustered};
CREATE TABLE mesh (item {id}, checksum {text} NOT NULL, path {text} NOT NULL, nodes {int} NOT NULL,
  edges {int} NOT NULL, faces {int} NOT NULL, volumes {int} NOT NULL, content {bytes} NOT NULL);
CREATE TABLE history (item {id}, mesh {text} NOT NULL, kind {text} NOT NULL, vector {text} NOT NULL,
  ranks {int} NOT NULL, nodes {int} NOT NULL, edges {int} NOT NULL, content {bytes} NOT NULL);
CREATE TABLE history_rank (item {int} NOT NULL, rank {int} NOT NULL, nodes {int} NOT NULL, ghosts {int} NOT NULL,
  edges {int} NOT NULL, PRIMARY KEY (item, rank)) {clustered};
CREATE TABLE decl (kind {int} NOT NULL, run {int} NOT NULL, item {int} NOT NULL, log {int} NOT NULL,
  sequence {int} NOT NULL, record {int} NOT NULL, place {int} NOT NULL, stamp {int} NOT NULL,
  decider {int} NOT NULL, own {int} NOT NULL, txn {int} NOT NULL, content {bytes},
  PRIMARY KEY (kind, run, item, log, sequence, record, place)) {clustered};
CREATE INDEX decl_txn ON decl (txn) WHERE txn <> 0;
CREATE INDEX decl_source ON decl (log, sequence, record);
CREATE TABLE conflict (kind {int} NOT NULL, run {int} NOT NULL, item {int} NOT NULL, place {int} NOT NULL,
  message {text} NOT NULL, PRIMARY KEY (kind, run, item, place)) {clustered};
CREATE TABLE series (run {int} NOT NULL, tag {int} NOT NULL, step {int} NOT NULL, variable {int} NOT NULL,
  n {int} NOT NULL, least {real}, greatest {real}, levels {int} NOT NULL, extent {int} NOT NULL,
  PRIMARY KEY (run, tag, step, variable)) {clustered};
CREATE TABLE span (tag {int} NOT NULL, run {int} NOT NULL, n {int} NOT NULL, least {real}, greatest {real},
  first {int} NOT NULL, last {int} NOT NULL, PRIMARY KEY (tag, run)) {clustered};
CREATE INDEX span_run ON span (run, tag);
CREATE TABLE tombstone (kind {int} NOT NULL, run {int} NOT NULL, item {int} NOT NULL, log {int} NOT NULL,
  sequence {int} NOT NULL, record {int} NOT NULL, place {int} NOT NULL, stamp {int} NOT NULL,
  decider {int} NOT NULL, own {int} NOT NULL, txn {int} NOT NULL,
  PRIMARY KEY (log, sequence, record, place)) {clustered};
CREATE TABLE tombstone_row (log {int} NOT NULL, sequence {int} NOT NULL, record {int} NOT NULL,
  row {int} NOT NULL, uid {int} NOT NULL, own {int} NOT NULL, txn {int} NOT NULL,
  PRIMARY KEY (log, sequence, record, row, uid, own)) {clustered};
CREATE TABLE tombstone_cell (run {int} NOT NULL, tag {int} NOT NULL, step {int} NOT NULL, variable {int} NOT NULL,
  curve {int} NOT NULL, batch {int} NOT NULL, row {int} NOT NULL, region {bytes},
  PRIMARY KEY (run, tag, step, variable, curve, batch, row)) {clustered};
CREATE TABLE txn (txn {id}, name {bytes} NOT NULL UNIQUE, decided {bytes} NOT NULL,
  not_revertible {int} NOT NULL, dropped {int} NOT NULL);
CREATE TABLE pending (txn {int} NOT NULL, log {int} NOT NULL, sequence {int} NOT NULL,
  record {int} NOT NULL, own {int} NOT NULL, call {int} NOT NULL, bit {int} NOT NULL,
  applied {int} NOT NULL, stamp {int} NOT NULL, decider {int} NOT NULL, kind {int} NOT NULL,
  content {bytes} NOT NULL, PRIMARY KEY (txn, log, sequence, record)) {clustered};
CREATE TABLE recheck (run {int} NOT NULL, variable {int} NOT NULL, step {int} NOT NULL,
  open {int} NOT NULL, PRIMARY KEY (run, variable, step)) {clustered};
CREATE INDEX recheck_open ON recheck (run, variable, step) WHERE open = 1;
";

/// The attributes in SQLite: the payload column has no type of its own. A bool is not a number and is in no
/// index.
const ATTR: &str = "
CREATE TABLE attr (run INTEGER NOT NULL, tag INTEGER NOT NULL, step INTEGER NOT NULL,
  variable INTEGER NOT NULL, curve INTEGER NOT NULL, batch INTEGER NOT NULL, row INTEGER NOT NULL,
  kind INTEGER NOT NULL, num REAL, payload, region BLOB,
  PRIMARY KEY (run, tag, step, variable, curve, batch, row)) WITHOUT ROWID;
CREATE INDEX attr_number ON attr (run, tag, num) WHERE num IS NOT NULL;
CREATE INDEX attr_text ON attr (run, tag, payload) WHERE kind = 5;
";

/// Statements that create every table.
pub fn create(dialect: Dialect) -> String {
    let types: [(&str, &str); 6] = match dialect {
        Dialect::Sqlite => [
            ("{id}", "INTEGER PRIMARY KEY"),
            ("{int}", "INTEGER"),
            ("{real}", "REAL"),
            ("{text}", "TEXT"),
            ("{bytes}", "BLOB"),
            ("{clustered}", "WITHOUT ROWID"),
        ],
        Dialect::Postgres => [
            ("{id}", "BIGINT PRIMARY KEY"),
            ("{int}", "BIGINT"),
            ("{real}", "DOUBLE PRECISION"),
            ("{text}", "TEXT COLLATE \"C\""),
            ("{bytes}", "BYTEA"),
            ("{clustered}", ""),
        ],
    };
    let mut sql = DDL.to_owned();
    for (name, text) in types {
        sql = sql.replace(name, text);
    }
    sql + match dialect {
        Dialect::Sqlite => ATTR,
        Dialect::Postgres => super::postgres::ATTR_DEFINITION,
    }
}

/// Statements that drop every table, including tables of another layout with the same names.
pub fn drop() -> String {
    TABLES.iter().map(|table| format!("DROP TABLE IF EXISTS {table};\n")).collect()
}
