//! What queries read from the tables.

use std::ops::RangeInclusive;

use fieldstone_core::dtype::DType;
use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{AttributeId, RunDecl, RunName, TagDecl, VariableDecl, VariableName};

use super::declare::{run_decl, value_type, variable_decl};
use super::index::Index;
use super::owners::stored_first;
use super::writers;
use super::{
    AttrRow, Cell, CoordinateRange, Flow, GridRegion, MeshRegion, NO_STEP, Probe, RunId, RunRow, RunSelect,
    Series, Span, StepRow, Tables, TagId, TagRow, VariableId, VariableRow, WriterRow,
};

/// A run is shown if it is declared or something stands on it.
const SHOWN: &str = "(declared = 1 OR EXISTS (SELECT 1 FROM span WHERE span.run = run.run) \
                     OR EXISTS (SELECT 1 FROM held WHERE held.run = run.run) \
                     OR EXISTS (SELECT 1 FROM variable WHERE variable.run = run.run) \
                     OR EXISTS (SELECT 1 FROM step WHERE step.run = run.run))";

fn numbers(least: &Cell<'_>, greatest: &Cell<'_>) -> Result<Option<(f64, f64)>> {
    Ok(least.real_or_null()?.zip(greatest.real_or_null()?))
}

fn run_row(row: &[Cell<'_>]) -> Result<RunRow> {
    let run = RunName { project: row[1].text()?.to_owned(), name: row[2].text()?.to_owned() };
    let declared = row[3].int()? != 0;
    let decl = match row[4] {
        Cell::Null => None,
        content => run_decl(content.bytes()?)?,
    };
    // When somebody first flushed a field of it is all that is known of one that nobody declares.
    let written = row[6].int_or_null()?.unwrap_or(0);
    let nameless = || RunDecl { created: written, ..RunDecl::named(run) };
    let first = stored_first(&row[5])?.and_then(|(_, user)| u32::try_from(user).ok());
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
        self.regions_of(run, ranges)
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
        let mut found = Vec::new();
        let mut take = |row: &[Cell<'_>]| {
            found.push(run_row(row)?);
            Ok(Flow::More)
        };
        match which {
            RunSelect::All => {
                self.db.query(&format!("{COLUMNS}{SHOWN} ORDER BY run"), &[], &mut take)?;
            }
            RunSelect::Named(name) => {
                let sql = format!("{COLUMNS}name = $1 AND {SHOWN} ORDER BY run");
                self.db.query(&sql, &[Cell::Text(name)], &mut take)?;
            }
            RunSelect::Ids(ids) => {
                for id in ids {
                    self.db.query(&format!("{COLUMNS}run = $1 AND {SHOWN}"), &[Cell::Int(*id)], &mut take)?;
                }
            }
        }
        Ok(found)
    }

    fn run_names(&mut self, row: &mut dyn FnMut(RunId, &RunName) -> Result<Flow>) -> Result<()> {
        let sql = format!("SELECT run, project, name FROM run WHERE {SHOWN} ORDER BY run");
        let mut name = RunName { project: String::new(), name: String::new() };
        self.db.query(&sql, &[], &mut |cells| {
            name.project.clear();
            name.project.push_str(cells[1].text()?);
            name.name.clear();
            name.name.push_str(cells[2].text()?);
            row(cells[0].int()?, &name)
        })
    }

    fn steps(&mut self, run: RunId, steps: RangeInclusive<i64>) -> Result<Vec<StepRow>> {
        let mut found = Vec::new();
        let sql = "SELECT step, time FROM step WHERE run = $1 AND step BETWEEN $2 AND $3 ORDER BY step";
        self.db.query(sql, &[run, *steps.start(), *steps.end()].map(Cell::Int), &mut |row| {
            found.push(StepRow { run, step: row[0].int()?, time: row[1].real_or_null()? });
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn variables(&mut self, run: RunId) -> Result<Vec<VariableRow>> {
        let mut found = Vec::new();
        let sql = "SELECT v.variable, n.name, n.version, v.declared, v.content, v.field_dtype, v.field_shape \
                   FROM variable v JOIN variable_name n ON n.variable = v.variable \
                   WHERE v.run = $1 ORDER BY n.name, n.version";
        self.db.query(sql, &[Cell::Int(run)], &mut |row| {
            found.push(variable_row(run, row)?);
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn variable_names(&mut self) -> Result<Vec<(VariableId, VariableName)>> {
        let mut found = Vec::new();
        let sql = "SELECT variable, name, version FROM variable_name ORDER BY variable";
        self.db.query(sql, &[], &mut |row| {
            let name = VariableName { name: row[1].text()?.to_owned(), version: row[2].int()? };
            found.push((row[0].int()?, name));
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn held(&mut self, run: RunId, variable: VariableId) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        let sql = "SELECT step FROM held WHERE run = $1 AND variable = $2 AND step > $3 ORDER BY step";
        self.db.query(sql, &[run, variable, NO_STEP].map(Cell::Int), &mut |row| {
            found.push(row[0].int()?);
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn tags(&mut self) -> Result<Vec<TagRow>> {
        let mut found = Vec::new();
        let sql = "SELECT tag, name, version, kind, unit, shown FROM tag WHERE declared = 1 \
                   OR EXISTS (SELECT 1 FROM span WHERE span.tag = tag.tag) ORDER BY tag";
        self.db.query(sql, &[], &mut |row| {
            let decl = TagDecl {
                name: row[1].text()?.to_owned(),
                version: row[2].int()?,
                kind: value_type(row[3].int()?)?,
                unit: row[4].text()?.to_owned(),
            };
            found.push(TagRow { id: row[0].int()?, decl, version: row[5].int()? });
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn spans(&mut self, tag: TagId, run: Option<RunId>) -> Result<Vec<Span>> {
        let (which, cells) = match run {
            Some(run) => ("tag = $1 AND run = $2", vec![Cell::Int(tag), Cell::Int(run)]),
            None => ("tag = $1 ORDER BY run", vec![Cell::Int(tag)]),
        };
        self.some_spans(which, &cells)
    }

    fn spans_of_run(&mut self, run: RunId) -> Result<Vec<Span>> {
        self.some_spans("run = $1 ORDER BY tag", &[Cell::Int(run)])
    }

    fn series(&mut self, run: RunId, tag: TagId, steps: RangeInclusive<i64>) -> Result<Vec<Series>> {
        let mut found = Vec::new();
        let sql = "SELECT step, variable, n, least, greatest, levels, extent FROM series \
                   WHERE run = $1 AND tag = $2 AND step BETWEEN $3 AND $4 ORDER BY step, variable";
        self.db.query(sql, &[run, tag, *steps.start(), *steps.end()].map(Cell::Int), &mut |row| {
            found.push(Series {
                run,
                tag,
                step: row[0].int()?,
                variable: row[1].int()?,
                n: row[2].int()? as u64,
                numbers: numbers(&row[3], &row[4])?,
                levels: row[5].int()? as u64,
                extent: row[6].int()?,
            });
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        self.db.scan(probes, row)
    }

    fn source(&mut self, batch: i64) -> Result<(AttributeId, u32)> {
        let mut found = None;
        let sql = "SELECT l.writer, b.sequence, b.record, l.uid FROM batch b JOIN log l ON l.log = b.log \
                   WHERE b.batch = $1";
        self.db.query(sql, &[Cell::Int(batch)], &mut |row| {
            let writer = super::names::flushed(super::names::id(row[0].bytes()?)?);
            let (sequence, record) = (row[1].int()? as u64, row[2].int()? as u32);
            let user = u32::try_from(row[3].int()?).unwrap_or(u32::MAX);
            found = Some((AttributeId { writer, sequence, record, row: 0 }, user));
            Ok(Flow::Stop)
        })?;
        found.ok_or_else(|| {
            Code::EngineDamaged
                .error(format!("the catalog's engine holds attributes of batch {batch}, which is not there"))
                .with_hint("the catalog is an index: fieldstone rebuild makes it again")
        })
    }

    fn writers(&mut self) -> Result<Vec<WriterRow>> {
        let names = self.user_names.as_ref().map(|names| &names.0);
        writers::rows(&mut *self.db, names)
    }

    fn batches_of(&mut self, logs: &[i64]) -> Result<Vec<(i64, i64)>> {
        writers::batches(&mut *self.db, logs)
    }
}

impl Index {
    fn some_spans(&mut self, which: &str, cells: &[Cell<'_>]) -> Result<Vec<Span>> {
        let mut found = Vec::new();
        let sql = format!("SELECT tag, run, n, least, greatest, first, last FROM span WHERE {which}");
        self.db.query(&sql, cells, &mut |row| {
            found.push(Span {
                tag: row[0].int()?,
                run: row[1].int()?,
                n: row[2].int()? as u64,
                numbers: numbers(&row[3], &row[4])?,
                steps: (row[5].int()?, row[6].int()?),
            });
            Ok(Flow::More)
        })?;
        Ok(found)
    }
}
