//! Records of the catalog as lines of JSON: the metadata of an exported file (`spec/exported-metadata.md`).
//!
//! One line is one run, its steps, a variable, a tag, attributes of one tag in one run, or the state of a
//! run. Other records have no line.
//!
//! Invariants:
//! * every value keeps its type and, for floats, every bit;
//! * a line that breaks the rules is Corrupt, never a panic; unknown keywords are skipped.
//!
//! ```
//! use fieldstone_core::value::ValueType;
//! use fieldstone_format::catalog::{Record, TagDecl, line_of, record_of};
//!
//! let tag = TagDecl { name: "maximum".into(), version: 0, kind: ValueType::Float, unit: "K".into() };
//! let line = line_of(&Record::Tags(vec![tag]));
//! assert_eq!(line[0], r#"{"kind":"tag","name":"maximum","version":0,"type":"float","unit":"K"}"#);
//! assert!(matches!(record_of(&line[0])?, Record::Tags(tags) if tags[0].unit == "K"));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod attributes;
mod value;

use fieldstone_core::dtype::DType;
use fieldstone_core::value::ValueType;
use fieldstone_core::{Error, Result};
use serde_json::{Map, Value as Json, json};

use super::{
    Annotate, Coordinate, Record, RunDecl, RunName, RunPhase, RunState, StepDecl, TagDecl, VariableDecl,
    VariableName,
};
use crate::setting::IfExists;
use value::{float, float_of, given_json, value_json, value_of};

/// The lines of a record; none if its kind has no line.
pub fn line_of(record: &Record) -> Vec<String> {
    let lines: Vec<Json> = match record {
        Record::Runs(runs) => runs.iter().map(run_line).collect(),
        Record::Steps(run, steps) => vec![json!({
            "kind": "steps",
            "run": run_json(run),
            "numbers": steps.iter().map(|step| step.number).collect::<Vec<_>>(),
            "times": steps.iter().map(|step| step.time.map_or(Json::Null, float)).collect::<Vec<_>>(),
        })],
        Record::Variables(run, variables) => variables.iter().map(|decl| variable_line(run, decl)).collect(),
        Record::Tags(tags) => tags.iter().map(|tag| with_kind("tag", tag_json(tag))).collect(),
        Record::Attributes(batch) => vec![attributes::line(batch)],
        Record::States(states) => states.iter().map(|(run, state)| state_line(run, state)).collect(),
        _ => Vec::new(),
    };
    lines.iter().map(Json::to_string).collect()
}

/// Reads the record of a line. It passes the same checks as a record that a store writes.
pub fn record_of(line: &str) -> Result<Record> {
    let json: Json = serde_json::from_str(line).map_err(|e| broken(&format!("no JSON: {e}")))?;
    let facts = Facts(json.as_object().ok_or_else(|| broken("no object"))?);
    let record = match facts.text("kind")? {
        "run" => Record::Runs(vec![run_decl(&facts)?]),
        "steps" => steps(&facts)?,
        "variable" => Record::Variables(facts.run()?, vec![variable(&facts)?]),
        "tag" => Record::Tags(vec![tag(&facts)?]),
        "attributes" => Record::Attributes(attributes::batch(&facts)?),
        "state" => state(&facts)?,
        kind => return Err(broken(&format!("the kind {kind:?} is unknown"))),
    };
    record.check().map_err(|e| broken(e.message()))?;
    Ok(record)
}

fn broken(what: &str) -> Error {
    Error::corrupt(format!("a line of exported metadata: {what}"))
}

/// The object of a line, or a part of it.
struct Facts<'a>(&'a Map<String, Json>);

impl<'a> Facts<'a> {
    fn of(json: &'a Json, what: &str) -> Result<Facts<'a>> {
        json.as_object().map(Facts).ok_or_else(|| broken(&format!("{what} is not an object")))
    }

    /// The value of `name`, if present and not null.
    fn get(&self, name: &str) -> Option<&'a Json> {
        self.0.get(name).filter(|json| !json.is_null())
    }

    fn need<T>(&self, name: &str, read: impl Fn(&'a Json) -> Option<T>) -> Result<T> {
        self.get(name).and_then(read).ok_or_else(|| broken(&format!("{name} has an invalid value")))
    }

    fn maybe<T>(&self, name: &str, read: impl Fn(&'a Json) -> Option<T>) -> Result<Option<T>> {
        self.get(name).map(|_| self.need(name, read)).transpose()
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        self.need(name, Json::as_str)
    }

    fn list<T>(&self, name: &str, read: impl Fn(&'a Json) -> Option<T>) -> Result<Vec<T>> {
        self.need(name, |json| list(json, &read))
    }

    fn run(&self) -> Result<RunName> {
        let name = self.list("run", Json::as_str)?;
        let [project, name] = name[..] else { return Err(broken("a run needs a project and a name")) };
        Ok(RunName { project: project.to_owned(), name: name.to_owned() })
    }

    /// Names with values.
    fn pairs(&self, name: &str) -> Result<Vec<(String, fieldstone_core::value::Value)>> {
        let pair = |json: &Json| match json.as_array().map(Vec::as_slice) {
            Some([name, value]) => Some((name.as_str()?.to_owned(), value_of(value)?)),
            _ => None,
        };
        self.get(name).map_or(Ok(Vec::new()), |_| self.list(name, pair))
    }
}

fn list<'a, T>(json: &'a Json, read: impl Fn(&'a Json) -> Option<T>) -> Option<Vec<T>> {
    json.as_array()?.iter().map(read).collect()
}

fn with_kind(kind: &str, facts: Json) -> Json {
    let Json::Object(facts) = facts else { return facts };
    let mut line = Map::new();
    line.insert("kind".to_owned(), kind.into());
    line.extend(facts.into_iter().filter(|(_, value)| !value.is_null()));
    Json::Object(line)
}

fn run_json(run: &RunName) -> Json {
    json!([run.project, run.name])
}

fn pairs_json(pairs: &[(String, fieldstone_core::value::Value)]) -> Json {
    pairs.iter().map(|(name, value)| json!([name, value_json(value)])).collect()
}

fn run_line(decl: &RunDecl) -> Json {
    let annotate = (decl.annotate == Annotate::Owner).then_some("owner");
    with_kind(
        "run",
        json!({
            "run": run_json(&decl.run),
            "job": decl.job,
            "params": pairs_json(&decl.params),
            "created": decl.created,
            "grid": decl.grid.as_ref().map(given_json),
            "notes": decl.notes,
            "outside": decl.outside.as_ref().map(given_json),
            "annotate": annotate,
            "exist": decl.if_exists.map(IfExists::name),
        }),
    )
}

fn run_decl(facts: &Facts<'_>) -> Result<RunDecl> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(RunDecl {
        run: facts.run()?,
        job: owned(facts.maybe("job", Json::as_str)?),
        params: facts.pairs("params")?,
        created: facts.maybe("created", Json::as_i64)?.unwrap_or(0),
        grid: facts.maybe("grid", value_of)?,
        notes: owned(facts.maybe("notes", Json::as_str)?),
        outside: facts.maybe("outside", value_of)?,
        annotate: match facts.maybe("annotate", Json::as_str)? {
            None => Annotate::All,
            Some("owner") => Annotate::Owner,
            Some(_) => return Err(broken("`annotate` has an unknown value")),
        },
        if_exists: facts.maybe("exist", |json| IfExists::parse(json.as_str()?).ok())?,
        state: None,
    })
}

fn steps(facts: &Facts<'_>) -> Result<Record> {
    let numbers = facts.list("numbers", Json::as_i64)?;
    let time = |json: &Json| if json.is_null() { Some(None) } else { float_of(json).map(Some) };
    let times = facts.list("times", time)?;
    if numbers.len() != times.len() {
        return Err(broken("numbers and times of steps differ in length"));
    }
    let steps = numbers.into_iter().zip(times).map(|(number, time)| StepDecl { number, time });
    Ok(Record::Steps(facts.run()?, steps.collect()))
}

fn variable_line(run: &RunName, decl: &VariableDecl) -> Json {
    let coords = decl.coords.iter().map(|(dim, coordinate)| match coordinate {
        Coordinate::Uniform { first, spacing } => {
            json!({"dim": dim, "first": float(*first), "spacing": float(*spacing)})
        }
        Coordinate::Rectilinear(values) => {
            json!({"dim": dim, "values": values.iter().map(|x| float(*x)).collect::<Vec<_>>()})
        }
        Coordinate::Other(grid) => json!({"dim": dim, "grid": grid}),
    });
    with_kind(
        "variable",
        json!({
            "run": run_json(run),
            "name": decl.variable.name,
            "version": decl.variable.version,
            "dtype": decl.dtype.map(|dtype| dtype.to_string()),
            "shape": decl.shape,
            "dims": decl.dims,
            "attrs": pairs_json(&decl.attrs),
            "coords": coords.collect::<Vec<_>>(),
            "decomposition": decl.decomposition,
            "finders": decl.finders.as_ref().map(given_json),
        }),
    )
}

fn variable(facts: &Facts<'_>) -> Result<VariableDecl> {
    let coordinate = |json: &Json| {
        let facts = Facts::of(json, "a coordinate").ok()?;
        let dim = u32::try_from(facts.get("dim")?.as_u64()?).ok()?;
        let coordinate = if let Some(values) = facts.get("values") {
            Coordinate::Rectilinear(list(values, float_of)?)
        } else if let Some(grid) = facts.get("grid") {
            Coordinate::Other(grid.as_str()?.to_owned())
        } else {
            let (first, spacing) = (float_of(facts.get("first")?)?, float_of(facts.get("spacing")?)?);
            Coordinate::Uniform { first, spacing }
        };
        Some((dim, coordinate))
    };
    let name = |json: &Json| json.as_str().map(str::to_owned);
    Ok(VariableDecl {
        variable: VariableName {
            name: facts.text("name")?.to_owned(),
            version: facts.need("version", Json::as_i64)?,
        },
        dtype: facts.maybe("dtype", |json| DType::parse(json.as_str()?).ok())?,
        shape: facts.maybe("shape", |json| list(json, Json::as_u64))?,
        dims: facts.list("dims", name)?,
        attrs: facts.pairs("attrs")?,
        coords: facts.list("coords", coordinate)?,
        decomposition: facts.maybe("decomposition", |json| list(json, Json::as_u64))?,
        finders: facts.maybe("finders", value_of)?,
    })
}

fn tag_json(tag: &TagDecl) -> Json {
    json!({"name": tag.name, "version": tag.version, "type": tag.kind.name(), "unit": tag.unit})
}

fn tag(facts: &Facts<'_>) -> Result<TagDecl> {
    Ok(TagDecl {
        name: facts.text("name")?.to_owned(),
        version: facts.need("version", Json::as_i64)?,
        kind: facts.need("type", |json| ValueType::parse(json.as_str()?).ok())?,
        unit: facts.text("unit")?.to_owned(),
    })
}

const PHASES: [(RunPhase, &str); 3] =
    [(RunPhase::Running, "running"), (RunPhase::Finished, "finished"), (RunPhase::Failed, "failed")];

fn state_line(run: &RunName, state: &RunState) -> Json {
    let phase = PHASES.iter().find(|(phase, _)| *phase == state.phase).map(|(_, name)| *name);
    with_kind("state", json!({"run": run_json(run), "state": phase, "note": state.note}))
}

fn state(facts: &Facts<'_>) -> Result<Record> {
    let phase = |json: &Json| Some(PHASES.iter().find(|(_, name)| Some(*name) == json.as_str())?.0);
    let state =
        RunState { phase: facts.need("state", phase)?, note: facts.text("note")?.to_owned(), writer: None };
    Ok(Record::States(vec![(facts.run()?, state)]))
}
