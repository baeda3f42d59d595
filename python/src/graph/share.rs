//! Output of the graph for people and other programs: exports, comparisons, scripts, audits.

use std::path::PathBuf;

use fieldstone::graph::{AuditOptions, Dossier, TraceOptions};
use fieldstone::lineage::{self, LineageFormat, compared_by, write_text};
use pyo3::prelude::*;

use super::read::{Pair, pair};
use super::subject::asked_for;
use super::{PyGraph, name};
use crate::errors::Raise;
use crate::log::Waiting as _;

/// The most vertices of an export or a script.
const ALL: usize = 1_000_000;

/// The trace options of an export or a script.
fn all() -> TraceOptions {
    TraceOptions { limit: ALL, ..TraceOptions::default() }
}

/// Kind, name, values.
type DifferenceRow = (String, String, Vec<Option<String>>);
/// Stamp, time in nanoseconds, user, execution, action, object.
type ActionRow = (u64, i64, String, Pair, String, Pair);

/// The upstream lineage, or a traced one, as text in the given format; None if it is written to a path.
#[pyfunction]
#[pyo3(name = "_export_lineage")]
pub fn export(
    py: Python<'_>,
    graph: &Bound<'_, PyGraph>,
    subject: &Bound<'_, PyAny>,
    format: &str,
    path: Option<PathBuf>,
) -> PyResult<Option<String>> {
    let this = graph.get();
    this.open()?;
    let (subject, format): (_, LineageFormat) = (asked_for(subject)?, format.parse().or_raise()?);
    let exported = py.waiting(|| {
        let text = lineage::export(&subject.dossier(this, true, |_| all())?, format);
        match path {
            Some(path) => write_text(&path, &text).map(|()| None),
            None => Ok(Some(text)),
        }
    });
    exported.or_raise()
}

/// Kind, name and values of each difference.
#[pyfunction]
#[pyo3(name = "_compare_lineages")]
pub fn compare(
    py: Python<'_>,
    graph: &Bound<'_, PyGraph>,
    subjects: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<DifferenceRow>> {
    let this = graph.get();
    this.open()?;
    let subjects = subjects.iter().map(asked_for).collect::<PyResult<Vec<_>>>()?;
    let compared = py.waiting(|| {
        let each = subjects.iter().map(|one| one.dossier(this, false, |subject| compared_by(subject, None)));
        lineage::compare(&each.collect::<fieldstone::Result<Vec<Dossier>>>()?)
    });
    Ok(compared.or_raise()?.into_iter().map(|row| (row.what, row.name, row.values)).collect())
}

/// The commands as a script for sh.
#[pyfunction]
#[pyo3(name = "_lineage_script")]
pub fn script(py: Python<'_>, graph: &Bound<'_, PyGraph>, subject: &Bound<'_, PyAny>) -> PyResult<String> {
    let this = graph.get();
    this.open()?;
    let subject = asked_for(subject)?;
    py.waiting(|| lineage::script(&subject.dossier(this, false, |_| all())?)).or_raise()
}

/// Rows, facts from the file, whether it was cut off.
#[pyfunction]
#[pyo3(name = "_audit_graph")]
pub fn audit(
    py: Python<'_>,
    graph: &Bound<'_, PyGraph>,
    user: Option<&str>,
    file: Option<&Bound<'_, PyAny>>,
    since: Option<u64>,
    until: Option<u64>,
) -> PyResult<(Vec<ActionRow>, Vec<Pair>, bool)> {
    let (this, graph) = (graph.get(), graph.get().open()?);
    let number = |user: &str| graph.user_number(user).map_or_else(|| user.to_owned(), |uid| uid.to_string());
    let file = file.map(name).transpose()?;
    let options = AuditOptions { user: user.map(number), file, since, until, ..AuditOptions::default() };
    let audit = py.waiting(|| graph.audit(&options, &this.session)).or_raise()?;
    let rows = audit
        .rows
        .into_iter()
        .map(|row| (row.stamp, row.time, row.user, pair(&row.execution), row.action, pair(&row.object)));
    Ok((rows.collect(), audit.derived.iter().map(pair).collect(), audit.truncated))
}
