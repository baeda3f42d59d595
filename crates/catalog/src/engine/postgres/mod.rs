//! PostgreSQL as the engine (Q-9): for catalogs that many hosts read, or that are too large for one file.
//!
//! Each store has a schema of its own, `fieldstone_<id of the store>`, in the database that the URL names.
//! Dropping the schema loses nothing: the store's logs are enough to build the index again.
//!
//! Invariants:
//! * all reads of one transaction see one state (REPEATABLE READ);
//! * at most one connection writes to a store's schema: it holds an advisory lock from `begin` to `commit` or
//!   `rollback`, and releases it when the connection ends;
//! * a commit need not wait for the server's disk (`synchronous_commit = off`): rows that a crash of the
//!   server loses are applied again, because the watermarks are lost with them;
//! * a lost connection makes one call Unavailable, the first that notices it; the next `begin` connects
//!   again;
//! * rows are streamed: a result of any size needs memory for some thousands of rows.
//!
//! ```no_run
//! use fieldstone_catalog::engine::{Database, Postgres, Wait};
//! use fieldstone_format::Id;
//!
//! let mut db = Postgres::open("postgresql://user@host/database", Id([7; 16]))?;
//! db.begin(false, Wait::Yes)?;
//! db.commit()?;
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod cells;
mod copy;
mod database;
mod errors;
mod many;
mod rows;
mod scan;
mod texts;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use postgres::config::{Host, SslMode};
use postgres::types::ToSql;
use postgres::{Client, Config, NoTls, Row, Statement};

use super::{Database, Flow};
use rows::{Stopped, read_rows};
use scan::{Group, Shape};

/// Columns of attr in PostgreSQL, in this order: each type of payload has a column. Queries do not use `*`.
pub const ATTR_COLUMNS: &str = "run, tag, step, variable, curve, batch, row, kind, num, payload_int, \
                                payload_real, payload_text, payload_bytes, region";

/// The definition of attr and of its indexes in PostgreSQL.
pub const ATTR_DEFINITION: &str = r#"
CREATE TABLE attr(
  run bigint NOT NULL, tag bigint NOT NULL, step bigint NOT NULL, variable bigint NOT NULL,
  curve bigint NOT NULL, batch bigint NOT NULL, row bigint NOT NULL, kind smallint NOT NULL,
  num double precision, payload_int bigint, payload_real double precision,
  payload_text text COLLATE "C", payload_bytes bytea, region bytea NOT NULL,
  PRIMARY KEY (run, tag, step, variable, curve, batch, row));
CREATE INDEX attr_num ON attr(run, tag, num) WHERE num IS NOT NULL;
CREATE INDEX attr_text ON attr(run, tag, payload_text) WHERE payload_text IS NOT NULL;
"#;

/// Settings of every connection. Each query goes by a key, and plans are made once: the planner must not
/// choose a scan of the table because it has no statistics about new rows.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_material = off; \
     SET jit = off; SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0; \
     SET synchronous_commit = off; SET client_min_messages = warning; SET timezone = 'UTC'; \
     SET datestyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1";

/// How long a writer waits for another by default.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of a scan that come in the first piece; later pieces are fetched one by one.
const PIECE: i64 = 16 << 10;
/// Maximum number of rows for one statement.
const TOGETHER: usize = 4096;
/// Maximum number of statements that stay prepared.
const PREPARED: usize = 256;

/// A connection to PostgreSQL.
pub struct Postgres {
    config: Config,
    place: String,
    schema: String,
    lock: i64,
    client: Option<Client>,
    statements: HashMap<String, Statement>,
    within: bool,
    patience: Duration,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({}, {})", self.place, self.schema)
    }
}

impl Postgres {
    /// Connects to the database that `url` names (`postgresql://user@host:port/database`, or `key=value`
    /// words) and creates the store's schema if it is absent.
    ///
    /// # Errors
    /// Invalid for the URL; Unavailable if there is no such server; Denied for user, password or rights;
    /// NotFound if there is no such database. No message holds the password.
    pub fn open(url: &str, store: Id) -> Result<Postgres> {
        let mut config: Config = url.parse().map_err(|e: postgres::Error| {
            let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
            if url.contains("sslmode=verify") {
                return without_tls();
            }
            Code::Url
                .error(format!("the catalog's URL is not a valid PostgreSQL URL: {why}"))
                .with_hint("write postgresql://user:password@host:port/database")
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(without_tls());
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        config.application_name("fieldstone");
        let (id, mut lock) = (store.0, [0; 8]);
        lock.copy_from_slice(&id[..8]);
        let schema: String = id.iter().map(|b| format!("{b:02x}")).collect();
        let mut db = Postgres {
            place: place(&config),
            config,
            schema: format!("fieldstone_{schema}"),
            lock: i64::from_be_bytes(lock),
            client: None,
            statements: HashMap::new(),
            within: false,
            patience: PATIENCE,
        };
        db.connect()?;
        Ok(db)
    }

    /// The schema that holds the store's tables.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The server of the connection: host, port and database, without user and password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The plans of the statements that [`Database::scan`] uses, for tests.
    pub fn explain_scans(&mut self) -> Result<Vec<String>> {
        [Shape::Steps, Shape::Variable, Shape::Curve, Shape::Number, Shape::Text, Shape::TextFrom]
            .into_iter()
            .map(|shape| self.explain(&Shape::of(&scan::sample(shape)).sql()))
            .collect()
    }

    fn connect(&mut self) -> Result<()> {
        self.statements.clear();
        self.within = false;
        self.client = None;
        let mut client = self.config.connect(NoTls).map_err(|e| errors::of_connecting(&self.place, e))?;
        // Look for the schema first: creating it needs a right that readers need not have.
        let schema = &self.schema;
        let failed = |e| errors::sorted("create the schema of the store", &self.place, e);
        client.batch_execute(&format!("{SETTINGS}; SET search_path = {schema}")).map_err(failed)?;
        let there = client
            .query_one("SELECT to_regnamespace($1) IS NOT NULL", &[schema])
            .map_err(failed)?
            .get::<_, bool>(0);
        if !there && let Err(e) = client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")) {
            // If two connections create it at once, the server may refuse one of them because of the other's
            // rows.
            if e.code().map(postgres::error::SqlState::code) != Some("23505") {
                return Err(failed(e));
            }
        }
        self.client = Some(client);
        Ok(())
    }

    /// The connection. A lost connection is reported once, so that no caller continues with what it knew of
    /// the tables; the next call outside of a transaction connects again.
    fn client(&mut self) -> Result<&mut Client> {
        match &self.client {
            Some(client) if !client.is_closed() => {}
            None if !self.within => self.connect()?,
            _ => {
                self.client = None;
                return Err(self.lost());
            }
        }
        self.client.as_mut().ok_or_else(|| Error::internal("a connection that was just made is absent"))
    }

    fn lost(&self) -> Error {
        Code::EngineLost
            .error(format!("PostgreSQL at {}: the connection was lost", self.place))
            .with_hint("check that the server is running, then try again")
    }

    /// Maps an error; if tables are gone, drops all prepared statements.
    fn failed(&mut self, action: &str, cause: postgres::Error) -> Error {
        if self.client.as_ref().is_some_and(Client::is_closed) {
            self.client = None;
        }
        let error = errors::sorted(action, &self.place, cause);
        if error.kind() == ErrorKind::Corrupt {
            self.statements.clear();
        }
        error
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql)
            && self.client.as_ref().is_some_and(|c| !c.is_closed())
        {
            return Ok(statement.clone());
        }
        let statement = match self.client()?.prepare(sql) {
            Ok(statement) => statement,
            Err(e) => return Err(self.failed(&format!("prepare `{}`", short(sql)), e)),
        };
        if self.statements.len() >= PREPARED {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn simple(&mut self, sql: &str) -> Result<()> {
        match self.client()?.batch_execute(sql) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.failed(&format!("run `{}`", short(sql)), e)),
        }
    }

    /// Ends a transaction by commit or rollback.
    fn end(&mut self, sql: &str) -> Result<()> {
        let was = std::mem::replace(&mut self.within, false);
        if !was {
            return Err(Error::internal(format!("{sql} outside of a transaction")));
        }
        let Some(client) = self.client.as_mut() else {
            return Err(self.lost());
        };
        match client.batch_execute(sql) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.failed(&format!("run `{sql}`"), e)),
        }
    }

    /// Rows of one statement, one at a time; `false` if the receiver has enough.
    fn rows(
        &mut self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
        row: &mut dyn FnMut(&Row) -> Result<Flow>,
    ) -> Result<bool> {
        read_rows(self.client()?, statement, parameters, row).map_err(|stopped| match stopped {
            Stopped::Ours(error) => error,
            Stopped::Theirs(cause) => self.failed("run a query", cause),
        })
    }

    /// Rows of one group of probes. The first piece takes one round trip; a cursor fetches the rest, so that
    /// the server does not keep computing after the receiver has enough.
    fn scan_group(&mut self, group: &Group, row: &mut dyn FnMut(&Row) -> Result<Flow>) -> Result<bool> {
        let sql = group.shape.sql();
        let mut parameters = group.parameters();
        if !self.within {
            let statement = self.prepared(&sql)?;
            return self.rows(&statement, &parameters, row);
        }
        let piece = group.shape.arrays() + 1;
        let first = self.prepared(&format!("{sql} LIMIT ${piece}"))?;
        parameters.push(&PIECE);
        let mut n = 0;
        let more = self.rows(&first, &parameters, &mut |r| {
            n += 1;
            row(r)
        })?;
        if !more || n < PIECE {
            return Ok(more);
        }
        let declare =
            self.prepared(&format!("DECLARE fs_scan NO SCROLL CURSOR FOR {sql} OFFSET ${piece}"))?;
        if let Err(e) = self.client()?.execute(&declare, &parameters) {
            return Err(self.failed("declare a cursor", e));
        }
        let mut more = true;
        while more {
            // Not prepared: an earlier cursor of this name may have had other columns.
            let mut n = 0;
            let fetch = self.prepared(&format!("FETCH {PIECE} FROM fs_scan"))?;
            more = self.rows(&fetch, &[], &mut |r| {
                n += 1;
                row(r)
            })?;
            if n < PIECE {
                break;
            }
        }
        self.simple("CLOSE fs_scan")?;
        Ok(more)
    }
}

fn without_tls() -> Error {
    Code::Url
        .error(
            "the catalog's URL asks for TLS, which this build of Fieldstone does not support for PostgreSQL",
        )
        .with_hint("use a Unix socket, or a tunnel (ssh -L, stunnel) with sslmode=disable")
}

/// The beginning of a statement, for messages.
fn short(sql: &str) -> String {
    let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.len() <= 80 { words } else { words.chars().take(80).chain("…".chars()).collect() }
}

/// Host, port and database of a configuration: the parts that messages may contain.
fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("{host}:{port}/{database}")
}
