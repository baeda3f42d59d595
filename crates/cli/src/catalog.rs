//! What the verbs of the catalog share: queries as words, the opened catalog, cells and JSON of values,
//! boxes and hits.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use clap::Args;
use fieldstone::catalog::query::text::{parse, parse_expr};
use fieldstone::catalog::query::{Expr, MissingName, NameTest, Query, Term};
use fieldstone::catalog::value::{Value, moment_text};
use fieldstone::catalog::{Catalog, Hit, Writer, step_number};
use fieldstone::catalog::{RunName, VariableName};
use fieldstone::{Error, Id, Result};
use serde_json::{Map, Number, Value as Json, json};

use crate::arguments::{Reading, Writing};
use crate::output::Out;

/// What a verb is about, as words of one query.
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
            query.transaction = parse(&format!("transaction={id}"))?.transaction;
        }
        Ok(query)
    }
}

/// The catalog of a store that is read.
pub fn reading(store: &Reading) -> Result<Catalog> {
    Ok(store.open()?.catalog().clone())
}

/// The catalog of a store that is written, and the store.
pub fn writing(store: &Writing) -> Result<(fieldstone::Store, Catalog)> {
    let store = store.open()?;
    let catalog = store.catalog().clone();
    Ok((store, catalog))
}

/// Says why nothing was found where a query names something that does not exist.
pub fn note_why_nothing(catalog: &Catalog, query: &Query, out: &Out) {
    // What failed to be looked up was an answer of nothing before: it stays one.
    if let Ok(Some(missing)) = catalog.missing_name(query) {
        let MissingName { what, name, did_you_mean } = missing;
        let listing = if what == "parameter" { "run" } else { what };
        let hint = did_you_mean.unwrap_or_else(|| format!("fieldstone {listing}s STORE lists what there is"));
        out.note(format_args!("nothing: there is no {what} '{name}'; {hint}"));
    }
}

/// The same of a query of what goes, whose names are names.
pub fn note_why_nothing_goes(catalog: &Catalog, query: &Query, out: &Out) {
    let Some(name) = query.typed() else { return note_why_nothing(catalog, query, out) };
    out.note(format_args!("nothing has the name '{name}'; a pattern is asked for by like: run like 'a*'"));
}

/// A query for what has this name exactly.
pub fn exactly(term: fn(NameTest) -> Term, name: &str) -> Query {
    Query { expr: Expr::Term(term(NameTest::Is(name.to_owned()))), ..Query::all() }
}

/// A run, with its project in front.
pub fn run_cell(run: &RunName) -> String {
    if run.project.is_empty() { run.name.clone() } else { format!("{}:{}", run.project, run.name) }
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

/// A step in JSON: a number of hours, else the text that keys have ("15m").
pub fn step_json(step: Option<i64>) -> Json {
    step.map_or(Json::Null, |step| {
        step_number::whole(step).map_or_else(|| step_number::text(step).into(), Json::from)
    })
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

/// A moment, to the second; `-` for none.
pub fn moment_cell(moment: i64) -> String {
    if moment == 0 { "-".to_owned() } else { moment_text(moment) }
}

/// A float in JSON; NaN and infinities, for which JSON has no number, as text.
pub fn float(number: f64) -> Json {
    Number::from_f64(number).map_or_else(|| Value::Float(number).to_string().into(), Json::Number)
}

/// A value in JSON: ranges as two numbers, bytes and moments as text.
pub fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => (*n).into(),
        Value::UInt(n) => (*n).into(),
        Value::Float(n) => float(*n),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(_) | Value::DateTime(_) => value.to_string().into(),
        Value::IntRange(a, b) => json!([a, b]),
        Value::FloatRange(a, b) => json!([float(*a), float(*b)]),
        Value::Array(items) | Value::List(items) => items.iter().map(self::value).collect(),
        Value::Map(pairs) => named(pairs),
    }
}

/// Parameters or attributes in JSON.
pub fn named(pairs: &[(String, Value)]) -> Json {
    Json::Object(pairs.iter().map(|(name, item)| (name.clone(), value(item))).collect())
}

/// A hit in JSON.
pub fn hit(hit: &Hit, users: &Users) -> Json {
    let mut object = Map::new();
    object.insert("project".into(), (!hit.project.is_empty()).then(|| hit.project.to_string()).into());
    object.insert("run".into(), hit.run.as_ref().into());
    object.insert("step".into(), step_json(hit.step));
    object.insert("time".into(), hit.time.map_or(Json::Null, float));
    object.insert("variable".into(), hit.variable.as_deref().into());
    object.insert("variable_version".into(), hit.variable.as_ref().map(|_| hit.variable_version).into());
    object.insert("tag".into(), hit.tag.as_ref().into());
    object.insert("tag_version".into(), hit.tag_version.into());
    object.insert("unit".into(), (!hit.unit.is_empty()).then(|| hit.unit.to_string()).into());
    object.insert("type".into(), hit.value.kind().name().into());
    object.insert("value".into(), value(&hit.value));
    let (start, count) = hit.region.clone().map_or((None, None), |(start, count)| (Some(start), Some(count)));
    object.insert("start".into(), start.into());
    object.insert("count".into(), count.into());
    let cells = hit.cells.as_ref().map(|(_, cells)| cells.to_vec());
    object.insert("cells".into(), cells.into());
    let keywords = hit.keywords.iter().flat_map(|all| all.iter());
    let keywords = keywords.map(|(keyword, value)| (keyword.to_string(), serde_json::Value::from(&**value)));
    object.insert("keywords".into(), keywords.collect::<serde_json::Map<_, _>>().into());
    object.insert("user".into(), users.name(hit.user).as_ref().into());
    object.insert("writer".into(), users.writer(hit).map_or(Json::Null, |writer| self::writer(&writer)));
    Json::Object(object)
}

/// The process that wrote, in JSON.
fn writer(writer: &Writer) -> Json {
    let text = |text: &str| Json::from(Some(text).filter(|text| !text.is_empty()));
    json!({
        "host": writer.host,
        "process": writer.process,
        "rank": writer.rank,
        "job": text(&writer.job),
        "attempt": text(&writer.attempt),
    })
}

/// Names of users, and writers of logs, each asked for once.
pub struct Users<'a> {
    catalog: &'a Catalog,
    names: RefCell<HashMap<u32, Rc<str>>>,
    writers: RefCell<HashMap<Id, Option<Rc<Writer>>>>,
}

impl<'a> Users<'a> {
    /// The users of a store.
    pub fn of(catalog: &'a Catalog) -> Users<'a> {
        Users { catalog, names: RefCell::default(), writers: RefCell::default() }
    }

    /// The name of one.
    pub fn name(&self, user: u32) -> Rc<str> {
        let name = || self.catalog.user_name(user).into();
        self.names.borrow_mut().entry(user).or_insert_with(name).clone()
    }

    /// The process that wrote a hit; `None` where the header of its log is damaged, or cannot be read any more.
    pub fn writer(&self, hit: &Hit) -> Option<Rc<Writer>> {
        let log = hit.id.writer;
        let writer = || self.catalog.writer(log).ok().flatten().map(Rc::new);
        self.writers.borrow_mut().entry(log).or_insert_with(writer).clone()
    }
}

/// The project in JSON; null for none.
pub fn project(run: &RunName) -> Json {
    (!run.project.is_empty()).then(|| run.project.clone()).into()
}

/// A box out of `75:81,60:81`: start and count.
pub fn parse_box(text: &str) -> Result<(Vec<i64>, Vec<i64>)> {
    use fieldstone::catalog::query::{Dim, Range};
    let wrong = || {
        Error::invalid(format!("'{text}' is no box"))
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
