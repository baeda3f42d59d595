//! Why a query finds nothing: a name in it that nothing has.

use fieldstone_core::Result;
use fieldstone_core::nearest::did_you_mean;

use super::lists::{runs, tags, variables};
use super::{Expr, NameTest, Query, Term};
use crate::engine::Tables;

/// A name that a query asks for and nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingName {
    /// "run", "variable", "tag" or "parameter".
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// A question that offers names close to it; `None` where none is close.
    pub did_you_mean: Option<String>,
}

/// The first name that must be there for the query to find anything, and is not. Alternatives and negations are
/// not looked into.
pub fn missing_name(tables: &mut dyn Tables, query: &Query) -> Result<Option<MissingName>> {
    let mut needed = Vec::new();
    names(&query.expr, &mut needed);
    let all = Query { transaction: query.transaction, ..Query::all() };
    for (what, name) in needed {
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
            "variable" => {
                variables(tables, &all)?.into_iter().map(|variable| variable.decl.variable.name).collect()
            }
            _ => tags(tables, &all)?.into_iter().map(|tag| tag.decl.name).collect(),
        };
        if !known.iter().any(|known| known == name) {
            let near = did_you_mean(name, known.iter().map(String::as_str));
            return Ok(Some(MissingName { what, name: name.to_owned(), did_you_mean: near }));
        }
    }
    Ok(None)
}

/// Names that must be there for the expression to hold.
fn names<'a>(expr: &'a Expr, found: &mut Vec<(&'static str, &'a str)>) {
    match expr {
        Expr::All(all) => all.iter().for_each(|part| names(part, found)),
        Expr::Related(_, inner) => names(inner, found),
        Expr::Term(Term::Run(test)) => found.extend(only(test).map(|name| ("run", name))),
        Expr::Term(Term::Variable(test)) => found.extend(only(test).map(|name| ("variable", name))),
        Expr::Term(Term::Tag(test)) => found.extend(only(test).map(|name| ("tag", name))),
        Expr::Term(Term::Param(name, _)) => found.push(("parameter", name)),
        _ => {}
    }
}

/// The name that must be there; one of several need not.
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
