//! Units: numbers of one tag in several units cannot be combined.

use std::collections::HashMap;

use fieldstone_core::value::ValueType;
use fieldstone_core::{Code, Error, Result};

use super::{Expr, Key, NameTest, Query, TagInfo, Term, tags};
use crate::engine::Tables;

impl Query {
    /// Whether it combines or compares values, by their order.
    pub(crate) fn is_by_value(&self) -> bool {
        self.order.iter().any(|(key, _)| *key == Key::Value)
    }

    /// The same query for the tags of the attributes that it finds.
    fn of_its_tags(&self) -> Query {
        let tagged = Expr::Term(Term::Tag(NameTest::Glob("*".to_owned())));
        let expr = Expr::All(vec![self.expr.clone(), tagged]);
        Query { expr, session: self.session.clone(), pick: self.pick, ..Query::all() }
    }
}

/// Refuses to combine numbers of one tag that are in several units.
pub fn check_units(tables: &mut dyn Tables, query: &Query) -> Result<()> {
    let every = || Query { session: query.session.clone(), ..Query::all() };
    let named = tags(tables, &query.of_tags_alone().unwrap_or_else(every))?;
    if two_units(&named).is_none() {
        return Ok(());
    }
    // Perhaps only some of them have attributes that match.
    two_units(&tags(tables, &query.of_its_tags())?).map_or(Ok(()), Err)
}

/// The error for number tags with the same name and different units.
fn two_units(tags: &[TagInfo]) -> Option<Error> {
    let mut numbers = tags
        .iter()
        .map(|tag| &tag.decl)
        .filter(|decl| matches!(decl.kind, ValueType::Int | ValueType::UInt | ValueType::Float));
    let mut units: HashMap<&str, &str> = HashMap::new();
    numbers.find_map(|decl| {
        let (name, unit) = (decl.name.as_str(), decl.unit.as_str());
        let known = *units.entry(name).or_insert(unit);
        (known != unit).then(|| {
            Code::Conflict
                .error(format!(
                    "values of tag '{name}' are in units '{known}' and '{unit}' and cannot be combined"
                ))
                .with_hint(format!("select one of them: unit='{known}'"))
        })
    })
}
