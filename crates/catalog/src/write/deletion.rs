//! The request for a deletion, and its report.

use fieldstone_core::{Error, Result};

use crate::query::Query;

/// A request to delete.
#[derive(Debug, Clone)]
pub enum Deletion {
    /// Runs with everything below; their fields too, if requested.
    Runs(Query),
    /// Steps.
    Steps(Query),
    /// Variables.
    Variables(Query),
    /// Tags.
    Tags(Query),
    /// Attributes.
    Attributes(Query),
}

impl Deletion {
    /// The deletion for a query made from terms of these names, `where` being a condition of its own. It
    /// deletes the deepest named kind; a `level` names variables:
    ///
    /// * `run` alone: the run with everything below it; with `step` the step; with `variable` the variable;
    /// * `tag` alone: the tag; `tag` with others, `variable` with `step`, and anything with `where`: the
    ///   attributes.
    ///
    /// Invalid if nothing is named, and for the fields of kinds that have none.
    pub fn of_named(query: Query, named: &[&str], fields: bool) -> Result<Deletion> {
        let has = |name: &str| named.contains(&name) || (name == "variable" && named.contains(&"level"));
        let levels: Vec<&str> =
            ["run", "variable", "tag", "step"].into_iter().filter(|name| has(name)).collect();
        let attributes = has("where") || (has("tag") && levels.len() > 1) || (has("variable") && has("step"));
        let what = match levels.last() {
            _ if attributes => Deletion::Attributes(query),
            Some(&"run") => Deletion::Runs(query),
            Some(&"variable") => Deletion::Variables(query),
            Some(&"tag") => Deletion::Tags(query),
            Some(_) => Deletion::Steps(query),
            None => {
                return Err(Error::invalid("delete has no arguments that select anything").with_hint(
                    "give run=, variable=, tag=, step= or where=; run=fst.glob('*') means every run",
                ));
            }
        };
        let kind = match what {
            Deletion::Tags(_) => "tags",
            Deletion::Attributes(_) => "attributes",
            _ => return Ok(what),
        };
        match fields {
            true => Err(Error::invalid(format!("{kind} have no fields of their own"))
                .with_hint("leave out fields=, or remove fields with store.remove")),
            false => Ok(what),
        }
    }

    /// The query that selects the objects.
    pub fn query(&self) -> &Query {
        match self {
            Deletion::Runs(query)
            | Deletion::Steps(query)
            | Deletion::Variables(query)
            | Deletion::Tags(query)
            | Deletion::Attributes(query) => query,
        }
    }

    /// The same with literal names: see [`Query::exact`].
    pub(crate) fn exact(&self) -> Deletion {
        match self {
            Deletion::Runs(query) => Deletion::Runs(query.exact()),
            Deletion::Steps(query) => Deletion::Steps(query.exact()),
            Deletion::Variables(query) => Deletion::Variables(query.exact()),
            Deletion::Tags(query) => Deletion::Tags(query.exact()),
            Deletion::Attributes(query) => Deletion::Attributes(query.exact()),
        }
    }
}

/// The counts of a deletion, done or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteReport {
    /// Runs.
    pub runs: u64,
    /// Steps.
    pub steps: u64,
    /// Variables.
    pub variables: u64,
    /// Tags.
    pub tags: u64,
    /// Attributes.
    pub attributes: u64,
    /// Fields.
    pub fields: u64,
    /// Attributes that stay, because other users wrote them in runs of others.
    pub others: u64,
    /// Whether the deletion was carried out.
    pub done: bool,
}
