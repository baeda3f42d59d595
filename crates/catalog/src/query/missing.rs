//! The reason why a query finds nothing: a name in it that nothing has, or a value whose type differs from
//! that of its tag or parameter.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_core::{Result, amr};

use super::levels::short_name;
use super::lists::{runs, tags, variables};
use super::{Expr, NameTest, Query, Term, VariableInfo};
use crate::engine::Tables;

/// A name in a query that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingName {
    /// "run", "variable", "level", "tag" or "parameter"; "value" if there are values, but of another type.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// A question that offers similar names, or the type of the values; `None` if no name is similar.
    pub did_you_mean: Option<String>,
}

/// The first name that must exist for the query to find anything, and does not. Alternatives and negations
/// are not searched.
pub fn missing_name(tables: &mut dyn Tables, query: &Query) -> Result<Option<MissingName>> {
    query.expr.size().check()?;
    let mut needed = Vec::new();
    names(&query.expr, false, &mut needed);
    let all = Query { session: query.session.clone(), ..Query::all() };
    for (what, name, on_level) in needed {
        let known: Vec<String> = match what {
            "parameter" => {
                let mut known: Vec<String> = runs(tables, &all)?
                    .into_iter()
                    .flat_map(|run| run.decl.params)
                    .map(|(name, _)| name)
                    .collect();
                known.sort_unstable();
                known.dedup();
                known
            }
            "run" => runs(tables, &all)?.into_iter().map(|run| run.decl.run.name).collect(),
            "level" => {
                let all = variables(tables, &all)?.into_iter();
                let level = |row: &VariableInfo| amr::split(&row.decl.variable.name).map(|(level, _)| level);
                let levels: BTreeSet<i64> = all.filter_map(|row| level(&row)).collect();
                levels.iter().map(i64::to_string).collect()
            }
            "variable" => {
                let names = variables(tables, &all)?.into_iter().map(|row| row.decl.variable.name);
                match on_level {
                    true => names.flat_map(|name| [short_name(&name).to_owned(), name]).collect(),
                    false => names.collect(),
                }
            }
            _ => tags(tables, &all)?.into_iter().map(|tag| tag.decl.name).collect(),
        };
        if !known.iter().any(|known| *known == name) {
            let near = match what {
                "level" if known.is_empty() => None,
                "level" => Some(format!("there are {}", known.join(", "))),
                _ => did_you_mean(&name, known.iter().map(String::as_str)),
            };
            return Ok(Some(MissingName { what, name: name.into_owned(), did_you_mean: near }));
        }
    }
    other_type(tables, query)
}

/// A requested value that cannot be compared with any value there is.
fn other_type(tables: &mut dyn Tables, query: &Query) -> Result<Option<MissingName>> {
    let mut asked = Vec::new();
    tests(&query.expr, &mut asked);
    let all = Query { session: query.session.clone(), ..Query::all() };
    for (parameter, test) in asked {
        let (kinds, of) = match parameter {
            Some(name) => {
                let params = runs(tables, &all)?.into_iter().flat_map(|run| run.decl.params);
                let kinds =
                    params.filter(|(known, _)| known == name).map(|(_, value)| value.kind()).collect();
                (kinds, format!("parameter '{name}'"))
            }
            None => {
                let Some(named) = query.of_tags_alone() else { continue };
                let found = tags(tables, &named)?;
                let of = found.first().map_or_else(String::new, |tag| format!("tag '{}'", tag.decl.name));
                (found.into_iter().map(|tag| tag.decl.kind).collect::<Vec<_>>(), of)
            }
        };
        if kinds.is_empty() || kinds.iter().any(|kind| may_pass(test, *kind)) {
            continue;
        }
        let mut names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        let why = format!("the values of {of} are {}: give a value of that type", names.join(" and "));
        return Ok(Some(MissingName { what: "value", name: asked_value(test), did_you_mean: Some(why) }));
    }
    Ok(None)
}

/// Tests that must pass: of the value, or of a parameter.
fn tests<'a>(expr: &'a Expr, found: &mut Vec<(Option<&'a str>, &'a Test)>) {
    match expr {
        Expr::All(all) => all.iter().for_each(|part| tests(part, found)),
        Expr::Term(Term::Value(test)) => found.push((None, test)),
        Expr::Term(Term::Param(name, test)) => found.push((Some(name), test)),
        _ => {}
    }
}

/// Whether some value of a type can pass a test.
fn may_pass(test: &Test, kind: ValueType) -> bool {
    match test {
        Test::All(tests) => tests.iter().all(|test| may_pass(test, kind)),
        Test::Any(tests) => tests.iter().any(|test| may_pass(test, kind)),
        Test::Exists | Test::Not(_) => true,
        Test::IsIn(values) => values.is_empty() || values.iter().any(|value| comparable(value, kind)),
        Test::Above(value)
        | Test::AtLeast(value)
        | Test::Below(value)
        | Test::AtMost(value)
        | Test::Equal(value)
        | Test::Contains(value)
        | Test::Between(value, _) => comparable(value, kind),
        Test::Glob(_) | Test::Typed(_) => comparable(&Value::Text(String::new()), kind),
    }
}

/// Whether values of a type compare with a value, or can contain it.
fn comparable(value: &Value, kind: ValueType) -> bool {
    use ValueType as T;
    match (kind, value) {
        (T::Json | T::Array, _) => true,
        (
            T::Int | T::UInt | T::Float | T::IntRange | T::FloatRange,
            Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::IntRange(..) | Value::FloatRange(..),
        ) => true,
        (kind, value) => value.kind() == kind,
    }
}

/// The first value in a test, with its type if the text does not show it.
fn asked_value(test: &Test) -> String {
    match test {
        Test::All(tests) | Test::Any(tests) => tests.first().map_or_else(String::new, asked_value),
        Test::IsIn(values) => values.first().map_or_else(String::new, Value::to_string),
        Test::Above(value)
        | Test::AtLeast(value)
        | Test::Below(value)
        | Test::AtMost(value)
        | Test::Equal(value)
        | Test::Contains(value)
        | Test::Between(value, _) => value.to_string(),
        Test::Glob(text) | Test::Typed(text) => text.clone(),
        Test::Not(_) | Test::Exists => String::new(),
    }
}

/// Names that must exist for the expression to hold, each with whether it may be the name of a variable on
/// its level.
fn names<'a>(expr: &'a Expr, on_level: bool, found: &mut Vec<(&'static str, Cow<'a, str>, bool)>) {
    let mut add =
        |what, test: &'a NameTest| found.extend(only(test).map(|name| (what, name.into(), on_level)));
    match expr {
        Expr::All(all) => {
            let on_level = on_level || expr.says_level();
            all.iter().for_each(|part| names(part, on_level, found));
        }
        Expr::Related(_, inner) => names(inner, false, found),
        Expr::Term(Term::Run(test)) => add("run", test),
        Expr::Term(Term::Variable(test)) => add("variable", test),
        Expr::Term(Term::Tag(test)) => add("tag", test),
        Expr::Term(Term::Level(ranges)) => {
            if let [(from, to)] = ranges[..]
                && from == to
            {
                found.push(("level", from.to_string().into(), on_level));
            }
        }
        Expr::Term(Term::Param(name, test)) if !test.matches_absent() => {
            found.push(("parameter", name.into(), on_level));
        }
        _ => {}
    }
}

/// The name that must exist; an alternative among several need not.
fn only(test: &NameTest) -> Option<&str> {
    match test {
        NameTest::Is(name) => Some(name),
        NameTest::Any(list) => match &list[..] {
            [one] => only(one),
            _ => None,
        },
        NameTest::Glob(_) | NameTest::Typed(_) => None,
    }
}
