//! Hits together with their related attributes: `with …` of a query gives the attributes themselves here, not
//! only their existence (Q-32).
//!
//! A hit with several related attributes is in several rows, as in an SQL join; with several `with`, each
//! combination is a row. Terms inside `or` and `not` do not count. An attribute is never related to itself.
//!
//! ```
//! use fieldstone_catalog::query::{Query, text};
//!
//! let query: Query = text::parse("tag=hot and with overlapping (tag=low)")?;
//! // catalog.pairs(&query)?: row i of `hits` is a hot box, row i of `related[0]` a low one that overlaps it.
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::collections::{BTreeSet, HashMap};

use fieldstone_core::{Code, Result};

use super::exec::Exec;
use super::hits::hits;
use super::place::{OwnedRegion, RowRegion};
use super::relate::{Boxes, place_key};
use super::table::{HitTable, TableBuilder};
use super::{Expr, Hit, NameTest, Query, Term, Where};
use crate::engine::{Flow, NO_STEP, RunId, Tables, VariableId};

/// Maximum number of rows in one answer: 16,777,216.
pub const MOST_PAIRS: usize = 1 << 24;
/// Up to this many runs and steps of hits narrow the query for related attributes.
const NAMED: usize = 256;

/// Hits, each with one related attribute for every `with` of the query. All tables have the same number of
/// rows.
#[derive(Debug, Clone, Default)]
pub struct PairTable {
    /// The hits, in their order; a hit is in as many rows as it has combinations.
    pub hits: HitTable,
    /// For each `with`, in the order of the query: the attribute related to the hit of the same row.
    pub related: Vec<HitTable>,
}

/// An attribute, and the place that relates it to others.
struct Placed {
    hit: Hit,
    run: RunId,
    variable: VariableId,
    region: Option<OwnedRegion>,
}

impl Placed {
    fn step(&self) -> i64 {
        self.hit.step.unwrap_or(NO_STEP)
    }

    fn bounds(&self) -> Option<RowRegion<'_>> {
        self.region.as_ref().map(OwnedRegion::as_ref)
    }
}

/// All hits with their related attributes. `limit` counts hits, not rows.
///
/// # Errors
/// Invalid if the query has no term for related attributes, or if the answer has more than [`MOST_PAIRS`]
/// rows; see [`run`](super::run).
pub fn collect_pairs(tables: &mut dyn Tables, query: &Query) -> Result<PairTable> {
    let mut asked = Vec::new();
    beside(&query.expr, &mut asked);
    if asked.is_empty() {
        return Err(Code::QuerySyntax.error("the query has no term for related attributes").with_hint(
            "write with overlapping (tag=low), in Python with_related=fst.related(\"overlapping\", tag=\"low\")",
        ));
    }
    let (found, mut visited) = placed(tables, query)?;
    let mut mates = Vec::with_capacity(asked.len());
    for (place, expr) in asked {
        let mut all = Vec::new();
        if !found.is_empty() {
            let expr = near(expr, &query.expr, place, &found);
            let (some, more) =
                placed(tables, &Query { expr, session: query.session.clone(), ..Query::all() })?;
            (all, visited) = (some, visited + more);
        }
        mates.push(Mates::of(place, all));
    }
    let mut hits = TableBuilder::default();
    let mut related: Vec<TableBuilder> = mates.iter().map(|_| TableBuilder::default()).collect();
    for hit in &found {
        let beside: Vec<Vec<usize>> = mates.iter().map(|mates| mates.beside(hit)).collect();
        let combinations = beside.iter().map(Vec::len).fold(1, usize::saturating_mul);
        if hits.len().saturating_add(combinations) > MOST_PAIRS {
            return Err(Code::TooLarge
                .error(format!("the hits and their related attributes make more than {MOST_PAIRS} rows"))
                .with_hint("narrow the query, or run two queries and join their results"));
        }
        for row in 0..combinations {
            hits.push(hit.hit.with_value(hit.hit.value.clone()));
            // The last `with` varies fastest.
            let mut rest = row;
            for ((mates, beside), table) in mates.iter().zip(&beside).zip(&mut related).rev() {
                let mate = beside.get(rest % beside.len()).and_then(|at| mates.all.get(*at));
                rest /= beside.len();
                mate.iter().for_each(|mate| table.push(mate.hit.with_value(mate.hit.value.clone())));
            }
        }
    }
    let related = related.into_iter().map(|table| table.finish(0)).collect();
    Ok(PairTable { hits: hits.finish(visited), related })
}

/// The attributes that must be related to every hit.
fn beside<'e>(expr: &'e Expr, found: &mut Vec<(Where, &'e Expr)>) {
    match expr {
        Expr::All(list) => list.iter().for_each(|one| beside(one, found)),
        Expr::Related(place, inner) => found.push((*place, inner)),
        Expr::Any(_) | Expr::Not(_) | Expr::Term(_) => {}
    }
}

/// All hits of a query with their places, and the number of rows read for them.
fn placed(tables: &mut dyn Tables, query: &Query) -> Result<(Vec<Placed>, u64)> {
    let (mut exec, cond) = Exec::of(tables, &query.expr)?;
    let mut found = Vec::new();
    hits(&mut exec, &cond, query, true, &mut |row| {
        found.push(Placed {
            run: row.partition.run.id,
            variable: row.found_variable,
            region: row.bounds.map(RowRegion::to_own),
            hit: row.hit.to_hit(),
        });
        Ok(Flow::More)
    })?;
    Ok((found, exec.lookup.stats.visited))
}

/// The query for related attributes, narrowed to the places of hits: their runs and, except for
/// [`Where::SameRun`], their steps.
fn near(asked: &Expr, query: &Expr, place: Where, found: &[Placed]) -> Expr {
    let mut all = vec![asked.clone()];
    runs_of(query, &mut all);
    let names: BTreeSet<&str> = found.iter().map(|one| &*one.hit.run).collect();
    if names.len() <= NAMED {
        let names = names.into_iter().map(|name| NameTest::Is(name.into())).collect();
        all.push(Expr::Term(Term::Run(NameTest::Any(names))));
    }
    let steps: Option<BTreeSet<i64>> = found.iter().map(|one| one.hit.step).collect();
    if let Some(steps) = steps.filter(|steps| place != Where::SameRun && steps.len() <= NAMED) {
        all.push(Expr::Term(Term::Step(steps.into_iter().map(|step| (step, step)).collect())));
    }
    match Expr::All(all) {
        all if all.size().check().is_ok() => all,
        _ => asked.clone(),
    }
}

/// The tests of runs in a query, which hold for everything in those runs.
fn runs_of(expr: &Expr, all: &mut Vec<Expr>) {
    match expr {
        Expr::All(list) => list.iter().for_each(|one| runs_of(one, all)),
        Expr::Term(Term::Run(_) | Term::Project(_) | Term::Job(_) | Term::Param(..) | Term::Created(_)) => {
            all.push(expr.clone());
        }
        _ => {}
    }
}

/// Attributes by their place.
struct Mates {
    place: Where,
    all: Vec<Placed>,
    by_place: HashMap<(RunId, (i64, i64)), Vec<usize>>,
    /// By run, step and rank.
    by_box: HashMap<(RunId, i64, usize), Boxes<usize>>,
}

impl Mates {
    fn of(place: Where, all: Vec<Placed>) -> Mates {
        let mut by_place: HashMap<_, Vec<usize>> = HashMap::new();
        let mut by_box: HashMap<_, Boxes<usize>> = HashMap::new();
        for (at, mate) in all.iter().enumerate() {
            if place != Where::Overlapping {
                let key = place_key(place, mate.step(), mate.variable);
                key.into_iter().for_each(|key| by_place.entry((mate.run, key)).or_default().push(at));
            } else if let Some(region) = &mate.region {
                by_box
                    .entry((mate.run, mate.step(), region.start.len()))
                    .or_default()
                    .push(region.clone(), at);
            }
        }
        by_box.values_mut().for_each(Boxes::sort);
        Mates { place, all, by_place, by_box }
    }

    /// Those related to a hit, in their order.
    fn beside(&self, hit: &Placed) -> Vec<usize> {
        let mut found: Vec<usize> = match (self.place, hit.bounds()) {
            (Where::Overlapping, None) => Vec::new(),
            (Where::Overlapping, Some(bounds)) => {
                let boxes = self.by_box.get(&(hit.run, hit.step(), bounds.start.len()));
                boxes
                    .into_iter()
                    .flat_map(|boxes| boxes.overlapping(&bounds).copied().collect::<Vec<_>>())
                    .collect()
            }
            (place, _) => {
                let key = place_key(place, hit.step(), hit.variable);
                key.and_then(|key| self.by_place.get(&(hit.run, key))).cloned().unwrap_or_default()
            }
        };
        found.retain(|at| self.all.get(*at).is_some_and(|mate| mate.hit.id != hit.hit.id));
        found.sort_unstable();
        found
    }
}
