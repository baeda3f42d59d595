//! The reads of the tables that queries need.

use std::ops::RangeInclusive;

use fieldstone_core::dtype::DType;
use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{AttributeId, RunDecl, RunName, TagDecl, VariableDecl, VariableName};

use super::arrays::regions_of;
use super::declaration::{run_decl, value_type, variable_decl};
use super::ground::{flushed, id, no_batch};
use super::index::Index;
use super::owners::first_by_now;
use super::rows::run_name;
use super::writers;
use super::{
    AttrRow, Cell, CoordinateRange, Database, Flow, GridRegion, MeshRegion, NO_STEP, Probe, RunId, RunRow,
    RunSelect, Series, Span, StepRow, Tables, TagId, TagRow, VariableId, VariableRow, WriterRow,
};

/// A run is shown if it is declared or anything belongs to it.
const SHOWN: &str = "(declared = 1 OR EXISTS (SELECT 1 FROM span WHERE span.run = run.run) \
                     OR EXISTS (SELECT 1 FROM held WHERE held.run = run.run) \
                     OR EXISTS (SELECT 1 FROM variable WHERE variable.run = run.run) \
                     OR EXISTS (SELECT 1 FROM step WHERE step.run = run.run))";

fn numbers(least: &Cell<'_>, greatest: &Cell<'_>) -> Result<Option<(f64, f64)>> {
    Ok(least.real_or_null()?.zip(greatest.real_or_null()?))
}

fn run_row(row: &[Cell<'_>]) -> Result<RunRow> {
    let run = run_name(&row[1..])?;
    let declared = row[3].int()? != 0;
    let decl = match row[4] {
        Cell::Null => None,
        content => run_decl(content.bytes()?)?,
    };
    // The first flush of one of its fields is all that is known about a run that nobody declared.
    let written = row[6].int_or_null()?.unwrap_or(0);
    let nameless = || RunDecl { created: written, ..RunDecl::named(run) };
    let first = first_by_now(&row[5])?;
    Ok(RunRow { id: row[0].int()?, decl: decl.unwrap_or_else(nameless), declared, first })
}

fn variable_row(run: RunId, row: &[Cell<'_>]) -> Result<VariableRow> {
    let name = VariableName { name: row[1].text()?.to_owned(), version: row[2].int()? };
    let decl = match row[4] {
        Cell::Null => None,
        content => variable_decl(content.bytes()?)?,
    };
    let mut decl = decl.unwrap_or_else(|| VariableDecl::named(name));
    if decl.dtype.is_none() {
        decl.dtype = row[5].text_or_null()?.map(DType::parse).transpose()?;
    }
    if decl.shape.is_none()
        && let Some(text) = row[6].text_or_null()?
    {
        let extents = text.split(',').filter(|part| !part.is_empty()).map(str::parse);
        let shape = extents.collect::<std::result::Result<_, _>>();
        decl.shape =
            Some(shape.map_err(|_| {
                Code::EngineDamaged.error(format!("the catalog's engine holds shape '{text}'"))
            })?);
    }
    Ok(VariableRow { run, id: row[0].int()?, decl, declared: row[3].int()? != 0 })
}

impl Tables for Index {
    fn mesh_regions(
        &mut self,
        run: RunId,
        ranges: &[CoordinateRange],
    ) -> Result<Vec<(Vec<VariableName>, MeshRegion)>> {
        let Some(source) = self.points.clone() else { return Ok(Vec::new()) };
        regions_of(self.database(), &*source, run, ranges)
    }

    fn grid_regions(
        &mut self,
        run: RunId,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        let name = self.runs(&RunSelect::Ids(vec![run]))?.pop().map(|row| row.decl.run);
        match (self.points.clone(), name) {
            (Some(source), Some(name)) => source.grids(&name, variables, asked, ranges),
            _ => Ok(vec![None; variables.len()]),
        }
    }

    fn runs(&mut self, which: &RunSelect) -> Result<Vec<RunRow>> {
        const COLUMNS: &str = "SELECT run, project, name, declared, content, first, written FROM run WHERE ";
        let mut some = |which: &str, cells: &[Cell<'_>]| {
            self.database().all(&format!("{COLUMNS}{which}{SHOWN} ORDER BY run"), cells, run_row)
        };
        match which {
            RunSelect::All => some("", &[]),
            RunSelect::Named(name) => some("name = $1 AND ", &[Cell::Text(name)]),
            RunSelect::Ids(ids) => {
                let found: Result<Vec<_>> =
                    ids.iter().map(|id| some("run = $1 AND ", &[Cell::Int(*id)])).collect();
                Ok(found?.concat())
            }
        }
    }

    fn run_names(&mut self, row: &mut dyn FnMut(RunId, &RunName) -> Result<Flow>) -> Result<()> {
        let sql = format!("SELECT run, project, name FROM run WHERE {SHOWN} ORDER BY run");
        let mut name = RunName { project: String::new(), name: String::new() };
        self.database().query(&sql, &[], &mut |cells| {
            name.project.clear();
            name.project.push_str(cells[1].text()?);
            name.name.clear();
            name.name.push_str(cells[2].text()?);
            row(cells[0].int()?, &name)
        })
    }

    fn steps(&mut self, run: RunId, steps: RangeInclusive<i64>) -> Result<Vec<StepRow>> {
        let sql = "SELECT step, time FROM step WHERE run = $1 AND step BETWEEN $2 AND $3 ORDER BY step";
        self.database().all(sql, &[run, *steps.start(), *steps.end()].map(Cell::Int), |row| {
            Ok(StepRow { run, step: row[0].int()?, time: row[1].real_or_null()? })
        })
    }

    fn variables(&mut self, run: RunId) -> Result<Vec<VariableRow>> {
        let sql = "SELECT v.variable, n.name, n.version, v.declared, v.content, v.field_dtype, v.field_shape \
                   FROM variable v JOIN variable_name n ON n.variable = v.variable \
                   WHERE v.run = $1 ORDER BY n.name, n.version";
        self.database().all(sql, &[Cell::Int(run)], |row| variable_row(run, row))
    }

    fn variable_names(&mut self) -> Result<Vec<(VariableId, VariableName)>> {
        let sql = "SELECT variable, name, version FROM variable_name ORDER BY variable";
        self.database().all(sql, &[], |row| {
            let name = VariableName { name: row[1].text()?.to_owned(), version: row[2].int()? };
            Ok((row[0].int()?, name))
        })
    }

    fn held(&mut self, run: RunId, variable: VariableId) -> Result<Vec<i64>> {
        let sql = "SELECT step FROM held WHERE run = $1 AND variable = $2 AND step > $3 ORDER BY step";
        self.database().all(sql, &[run, variable, NO_STEP].map(Cell::Int), |row| row[0].int())
    }

    fn tags(&mut self) -> Result<Vec<TagRow>> {
        let sql = "SELECT tag, name, version, kind, unit, shown FROM tag WHERE declared = 1 \
                   OR EXISTS (SELECT 1 FROM span WHERE span.tag = tag.tag) ORDER BY tag";
        self.database().all(sql, &[], |row| {
            let decl = TagDecl {
                name: row[1].text()?.to_owned(),
                version: row[2].int()?,
                kind: value_type(row[3].int()?)?,
                unit: row[4].text()?.to_owned(),
            };
            Ok(TagRow { id: row[0].int()?, decl, version: row[5].int()? })
        })
    }

    fn spans(&mut self, tag: TagId, run: Option<RunId>) -> Result<Vec<Span>> {
        let (which, cells) = match run {
            Some(run) => ("tag = $1 AND run = $2", vec![Cell::Int(tag), Cell::Int(run)]),
            None => ("tag = $1 ORDER BY run", vec![Cell::Int(tag)]),
        };
        some_spans(self.database(), which, &cells)
    }

    fn spans_of_run(&mut self, run: RunId) -> Result<Vec<Span>> {
        some_spans(self.database(), "run = $1 ORDER BY tag", &[Cell::Int(run)])
    }

    fn series(&mut self, run: RunId, tag: TagId, steps: RangeInclusive<i64>) -> Result<Vec<Series>> {
        let sql = "SELECT step, variable, n, least, greatest, levels, extent FROM series \
                   WHERE run = $1 AND tag = $2 AND step BETWEEN $3 AND $4 ORDER BY step, variable";
        self.database().all(sql, &[run, tag, *steps.start(), *steps.end()].map(Cell::Int), |row| {
            Ok(Series {
                run,
                tag,
                step: row[0].int()?,
                variable: row[1].int()?,
                n: row[2].int()? as u64,
                numbers: numbers(&row[3], &row[4])?,
                levels: row[5].int()? as u64,
                extent: row[6].int()?,
            })
        })
    }

    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        self.database().scan(probes, row)
    }

    fn source(&mut self, batch: i64) -> Result<(AttributeId, u32)> {
        let sql = "SELECT l.writer, b.sequence, b.record, l.uid FROM batch b JOIN log l ON l.log = b.log \
                   WHERE b.batch = $1";
        let found = self.database().first(sql, &[Cell::Int(batch)], |row| {
            let writer = flushed(id(row[0].bytes()?)?);
            let (sequence, record) = (row[1].int()? as u64, row[2].int()? as u32);
            let user = u32::try_from(row[3].int()?).unwrap_or(u32::MAX);
            Ok((AttributeId { writer, sequence, record, row: 0 }, user))
        })?;
        found.ok_or_else(|| no_batch(batch))
    }

    fn writers(&mut self) -> Result<Vec<WriterRow>> {
        let names = self.user_names.as_ref().map(|names| &names.0);
        writers::rows(&mut *self.work.ground.db, names)
    }

    fn batches_of(&mut self, logs: &[i64]) -> Result<Vec<(i64, i64)>> {
        writers::batches(self.database(), logs)
    }
}

fn some_spans(db: &mut dyn Database, which: &str, cells: &[Cell<'_>]) -> Result<Vec<Span>> {
    let sql = format!("SELECT tag, run, n, least, greatest, first, last FROM span WHERE {which}");
    db.all(&sql, cells, |row| {
        Ok(Span {
            tag: row[0].int()?,
            run: row[1].int()?,
            n: row[2].int()? as u64,
            numbers: numbers(&row[3], &row[4])?,
            steps: (row[5].int()?, row[6].int()?),
        })
    })
}
