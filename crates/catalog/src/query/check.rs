//! Refusals: regions and extents that no matching variable can have.

use std::collections::BTreeSet;

use fieldstone_core::{Error, Result};

use super::cond::{Cond, Leaf, Related};
use super::lookup::Lookup;
use super::region::{BoxTest, Lengths, Misfit};
use super::{Dim, Range};

/// Refuses regions and extents that no matching variable can have.
pub(super) fn check(lookup: &mut Lookup<'_>, cond: &Cond, related: &[Related]) -> Result<()> {
    let mut terms = Vec::new();
    collect_terms(cond, &mut terms);
    let of_hits = terms.len();
    related.iter().for_each(|one| collect_terms(&one.cond, &mut terms));
    for (index, leaf) in terms.into_iter().enumerate() {
        // A related attribute may be on any variable of the run.
        let about = if index < of_hits { cond } else { &Cond::Const(true) };
        check_term(lookup, cond, about, leaf)?;
    }
    Ok(())
}

fn check_term(lookup: &mut Lookup<'_>, of_run: &Cond, about: &Cond, leaf: &Leaf) -> Result<()> {
    let mut misfits: Vec<(String, Misfit)> = Vec::new();
    let mut dims: BTreeSet<String> = BTreeSet::new();
    for run in lookup.runs(of_run, None)? {
        for variable in lookup.variables(run.id)?.values() {
            if about.rules_out(variable) {
                continue;
            }
            let misfit = match leaf {
                Leaf::Region(term) => BoxTest::of(&term.0, term.1, Some(variable), None)?.err(),
                Leaf::Extent(term) => Lengths::of(&term.0, Some(variable)).err(),
                _ => None,
            };
            let Some(misfit) = misfit else { return Ok(()) };
            let own = variable.row.iter().flat_map(|row| row.decl.dims.iter().cloned());
            dims.extend(own.filter(|dim| !dim.is_empty()).take(16));
            if misfits.len() < 16 {
                misfits.push((variable.name.to_string(), misfit));
            }
        }
    }
    let Some((variable, misfit)) = misfits.into_iter().min_by(|a, b| a.0.cmp(&b.0)) else {
        return Ok(());
    };
    let there: Vec<String> = dims.into_iter().map(|dim| format!("'{dim}'")).collect();
    Err(match misfit {
        Misfit::Dimension(dim) => {
            let error = Error::invalid(format!("no variable that matches has a dimension '{dim}'"));
            error.with_hint(match there.is_empty() {
                true => {
                    format!("variable '{variable}' does not name its dimensions: give their index, from 0")
                }
                false => format!("there are {}", there.join(", ")),
            })
        }
        Misfit::Coordinates(dim) => {
            Error::invalid(format!("no variable that matches has coordinates along '{dim}'")).with_hint(
                format!("give elements, as in box={dim}:50:100, or declare coordinates with the variable"),
            )
        }
    })
}

/// Regions and extents that name a dimension or use coordinates.
fn collect_terms<'a>(cond: &'a Cond, terms: &mut Vec<&'a Leaf>) {
    match cond {
        Cond::Const(_) => {}
        Cond::All(list) | Cond::Any(list) => list.iter().for_each(|one| collect_terms(one, terms)),
        Cond::Not(inner) => collect_terms(inner, terms),
        Cond::Leaf(leaf) => {
            let named = match leaf {
                Leaf::Region(term) => term
                    .0
                    .iter()
                    .any(|(dim, range)| matches!(dim, Dim::Name(_)) || matches!(range, Range::Physical(..))),
                Leaf::Extent(term) => matches!(term.0, Dim::Name(_)),
                _ => false,
            };
            if named {
                terms.push(leaf);
            }
        }
    }
}
