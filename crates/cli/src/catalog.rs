//! Parts shared by the verbs of the catalog: queries as words, the opened catalog, cells of values and boxes.

use clap::Args;
use fieldstone::catalog::query::text::{parse, parse_expr};
use fieldstone::catalog::query::{Expr, MissingName, NameTest, Query, Term};
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{CatalogAccess, VariableName, step_number};
pub use fieldstone::json::values::{moment as moment_cell, run as run_cell};
use fieldstone::{Error, Result};

use crate::output::Out;

/// The query that a verb gets, as words.
#[derive(Debug, Args)]
pub struct Asking {
    /// Which attributes, such as 'tag=maximum and value>9000' (see: fieldstone help query); all where it
    /// is not given
    #[arg(value_name = "QUERY")]
    pub query: Vec<String>,
    /// See also what this transaction holds
    #[arg(long, value_name = "ID")]
    pub txn: Option<String>,
}

impl Asking {
    /// The query.
    pub fn parse(&self) -> Result<Query> {
        let mut query = parse(&self.query.join(" ")).map_err(|error| match error.hint() {
            Some(_) => error,
            None => error.with_hint("how queries are written: fieldstone help query"),
        })?;
        if let Some(id) = &self.txn {
            // Read by the parser of queries, so that a wrong one is reported in the same words.
            query.session = parse(&format!("transaction={id}"))?.session;
        }
        Ok(query)
    }
}

/// Says why nothing was found where a query names something that does not exist.
pub fn note_why_nothing(catalog: &dyn CatalogAccess, query: &Query, out: &Out) {
    // A name that cannot be looked up stays an empty answer.
    if let Ok(Some(missing)) = catalog.missing_name(query) {
        let MissingName { what, name, did_you_mean } = missing;
        let listing = if what == "parameter" { "run" } else { what };
        let hint = did_you_mean.unwrap_or_else(|| format!("fieldstone {listing}s STORE lists what there is"));
        out.note(format_args!("nothing: there is no {what} '{name}'; {hint}"));
    }
}

/// The same for a query that deletes or moves: its names are literal.
pub fn note_why_nothing_goes(catalog: &dyn CatalogAccess, query: &Query, out: &Out) {
    let Some(name) = query.typed() else { return note_why_nothing(catalog, query, out) };
    out.note(format_args!("nothing has the name '{name}'; a pattern is asked for by like: run like 'a*'"));
}

/// A query for what has this name exactly.
pub fn exactly(term: fn(NameTest) -> Term, name: &str) -> Query {
    Query { expr: Expr::Term(term(NameTest::Is(name.to_owned()))), ..Query::all() }
}

/// A variable; its version where it is not 0.
pub fn variable_cell(name: &str, version: i64) -> String {
    if version == 0 { name.to_owned() } else { format!("{name};{version}") }
}

/// The same of a name with its version.
pub fn variable_name_cell(variable: &VariableName) -> String {
    variable_cell(&variable.name, variable.version)
}

/// Something that may be absent: `-` then.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A step as keys have it; `-` for none.
pub fn step_cell(step: Option<i64>) -> String {
    or_dash(step.map(step_number::text))
}

/// A float, distinguished from a whole number by its point; `-` for none.
pub fn float_cell(number: Option<f64>) -> String {
    or_dash(number.map(Value::Float))
}

/// A value, a text without its quotes.
pub fn value_cell(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A box as queries write it: `75:81,60:81`; `-` for none.
pub fn box_cell(start: &[i64], count: &[i64]) -> String {
    if start.is_empty() {
        return "-".to_owned();
    }
    let range = |(start, count): (&i64, &i64)| format!("{start}:{}", start.saturating_add(*count));
    start.iter().zip(count).map(range).collect::<Vec<_>>().join(",")
}

/// A box out of `75:81,60:81`: start and count.
pub fn parse_box(text: &str) -> Result<(Vec<i64>, Vec<i64>)> {
    use fieldstone::catalog::query::{Dim, Range};
    let wrong = || {
        Error::invalid(format!("'{text}' is not a box"))
            .with_hint("write FROM:TO for each dimension, half-open: 75:81,60:81,200:226")
    };
    let expr = parse_expr(&format!("box={text}"))?;
    let Expr::Term(Term::Region(parts, _)) = &expr else { return Err(wrong()) };
    let mut ends = (Vec::new(), Vec::new());
    for (i, part) in parts.iter().enumerate() {
        match part {
            (Dim::Index(dim), Range::Index(Some(from), Some(to))) if *dim == i => {
                ends.0.push(*from);
                ends.1.push(to.checked_sub(*from).ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    Ok(ends)
}
