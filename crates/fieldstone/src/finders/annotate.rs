//! Records the features of a piece as attributes.

use fieldstone_catalog::query::{Dim, Expr, NameTest, Query, Range, Relation, Term};
use fieldstone_core::dtype::DType;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{RunName, VariableName};

use super::{Finder, annotations, find};
use crate::Session;
use crate::catalog::{CatalogAccess, Deletion};

/// A piece of a variable that was just archived.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The run.
    pub run: &'a RunName,
    /// The variable.
    pub variable: &'a VariableName,
    /// The step.
    pub step: Option<i64>,
    /// Elements in C order.
    pub data: &'a [u8],
    /// Their type.
    pub dtype: DType,
    /// The first index of the piece.
    pub start: &'a [u64],
    /// Its extents.
    pub count: &'a [u64],
}

/// Finds features of a piece and records them as attributes, which join the commit of all that this process archived
/// since its last flush; returns their number. With `again`, deletes the regions that an earlier write of the piece
/// left inside its box: the new ones may lie elsewhere.
pub fn annotate(
    catalog: &dyn CatalogAccess,
    piece: &Piece<'_>,
    finders: &[Finder],
    again: bool,
    session: &Session,
) -> Result<u64> {
    let found = find(piece.data, piece.dtype, piece.start, piece.count, finders)?;
    if again {
        forget(catalog, piece, finders, session)?;
    }
    if !found.is_empty() {
        catalog.annotate_all(annotations(piece.run, piece.variable, piece.step, &found), session)?;
    }
    Ok(found.len() as u64)
}

fn forget(
    catalog: &dyn CatalogAccess,
    piece: &Piece<'_>,
    finders: &[Finder],
    session: &Session,
) -> Result<()> {
    let regions = finders.iter().filter(|finder| matches!(finder, Finder::Region { .. }));
    let tags: Vec<NameTest> = regions
        .flat_map(|finder| [finder.tag().to_owned(), format!("{}.more", finder.tag())])
        .map(NameTest::Is)
        .collect();
    if tags.is_empty() || piece.start.is_empty() {
        return Ok(());
    }
    let index =
        |i: u64| i64::try_from(i).map_err(|_| Error::invalid(format!("index {i} of a piece exceeds 2^63")));
    let mut region = Vec::new();
    for (d, (&start, &count)) in piece.start.iter().zip(piece.count).enumerate() {
        let (from, to) = (index(start)?, index(start.saturating_add(count))?);
        region.push((Dim::Index(d), Range::Index(Some(from), Some(to))));
    }
    let mut terms = vec![
        Term::Run(NameTest::Is(piece.run.name.clone())),
        Term::Project(NameTest::Is(piece.run.project.clone())),
        Term::Variable(NameTest::Is(piece.variable.name.clone())),
        Term::VariableVersion(vec![piece.variable.version]),
        Term::Tag(NameTest::Any(tags)),
        Term::Region(region, Relation::Within),
    ];
    terms.extend(piece.step.map(|step| Term::Step(vec![(step, step)])));
    let expr = Expr::All(terms.into_iter().map(Expr::Term).collect());
    let query = Query { expr, session: session.clone(), ..Query::all() };
    catalog.delete(&Deletion::Attributes(query), false, true, session).map(drop)
}
