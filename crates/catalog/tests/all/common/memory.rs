//! The tables of a [`World`] in sorted lists: the reference for an engine, in the plainest form.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use std::sync::Arc;

use fieldstone_catalog::engine::stored::{Stored, encode_cells, encode_keywords, encode_region};
use fieldstone_catalog::engine::{
    AttrRow, Cell, CoordinateRange, Flow, GridRegion, MeshRegion, NO_CURVE, NO_STEP, NO_VARIABLE, Probe,
    RunId, RunRow, RunSelect, Series, Span, StepRow, Tables, TagId, TagRow, VariableId, VariableRow,
    WriterRow, curve,
};
use fieldstone_core::Result;
use fieldstone_core::value::ValueType;
use fieldstone_format::catalog::{AttributeId, RunName, VariableName};

use super::meshes;
use super::world::{WRITER, World};

type RowKey = (RunId, TagId, i64, VariableId, i64, i64, i64);

#[derive(Debug)]
struct Row {
    key: RowKey,
    kind: ValueType,
    num: Option<f64>,
    payload: Payload,
    region: Vec<u8>,
    levels: u64,
    extent: i64,
}

#[derive(Debug)]
enum Payload {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// See the module.
#[derive(Debug)]
pub struct Memory {
    world: World,
    names: Vec<VariableName>,
    rows: Vec<Row>,
    sources: Vec<AttributeId>,
}

impl Memory {
    pub fn new(world: &World) -> Memory {
        let mut names: Vec<VariableName> = world.variables.iter().map(|v| v.decl.variable.clone()).collect();
        names.sort();
        names.dedup();
        names.reverse(); // numbers are not in the order of names
        let number = |name: &VariableName| names.iter().position(|n| n == name).unwrap() as i64 + 1;
        let mut sources: Vec<AttributeId> = Vec::new();
        let mut rows = Vec::new();
        for attr in &world.attrs {
            let first = AttributeId { row: 0, ..attr.id };
            let batch = sources.iter().position(|s| *s == first).unwrap_or_else(|| {
                sources.push(first);
                sources.len() - 1
            });
            let mut buffer = Vec::new();
            let stored = Stored::value(&attr.value, &mut buffer);
            let mut region = Vec::new();
            let (mut key, mut levels, mut extent) = (NO_CURVE, curve::OUTSIDE, 0);
            if let Some((start, count)) = &attr.region {
                encode_region(start, count, &mut region);
                key = curve::key(start, count);
                levels = curve::levels_of(start, count);
                extent = *count.iter().max().unwrap();
            }
            let keywords: Vec<(Arc<str>, Arc<str>)> = attr
                .keywords
                .iter()
                .map(|(keyword, value)| ((*keyword).into(), value.as_str().into()))
                .collect();
            encode_keywords(keywords.iter().map(|(keyword, value)| (keyword, value)), 0, &mut region);
            if let Some((dim, cells)) = &attr.cells {
                encode_cells(*dim, cells, &mut region);
            }
            rows.push(Row {
                key: (
                    attr.run as i64 + 1,
                    attr.tag as i64 + 1,
                    attr.step.unwrap_or(NO_STEP),
                    attr.variable.as_ref().map_or(NO_VARIABLE, number),
                    key,
                    batch as i64,
                    i64::from(attr.id.row),
                ),
                kind: stored.kind,
                num: stored.num,
                payload: match stored.payload {
                    Cell::Int(n) => Payload::Int(n),
                    Cell::Text(t) => Payload::Text(t.to_owned()),
                    Cell::Bytes(b) => Payload::Bytes(b.to_vec()),
                    _ => Payload::Null,
                },
                region,
                levels,
                extent,
            });
        }
        rows.sort_by_key(|row| row.key);
        Memory { world: world.clone(), names, rows, sources }
    }

    /// Version shown of a tag: the world gives each its own.
    fn series_of(&self, keep: impl Fn(&Row) -> bool) -> Vec<Series> {
        let mut found: BTreeMap<(i64, i64, i64, i64), Series> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| keep(row)) {
            let (run, tag, step, variable, ..) = row.key;
            let series = found.entry((run, tag, step, variable)).or_insert(Series {
                run,
                tag,
                step,
                variable,
                n: 0,
                numbers: None,
                levels: 0,
                extent: 0,
            });
            series.n += 1;
            series.levels |= row.levels;
            series.extent = series.extent.max(row.extent);
            if let Some(num) = row.num {
                let (least, greatest) = series.numbers.unwrap_or((num, num));
                series.numbers = Some((least.min(num), greatest.max(num)));
            }
        }
        found.into_values().collect()
    }

    fn spans_where(&self, keep: impl Fn(&Row) -> bool) -> Vec<Span> {
        let mut found: BTreeMap<(i64, i64), Span> = BTreeMap::new();
        for series in self.series_of(keep) {
            let span = found.entry((series.run, series.tag)).or_insert(Span {
                tag: series.tag,
                run: series.run,
                n: 0,
                numbers: None,
                steps: (series.step, series.step),
            });
            span.n += series.n;
            span.steps = (span.steps.0.min(series.step), span.steps.1.max(series.step));
            span.numbers = match (span.numbers, series.numbers) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (a, b) => a.or(b),
            };
        }
        found.into_values().collect()
    }
}

impl Tables for Memory {
    fn mesh_regions(
        &mut self,
        run: RunId,
        ranges: &[CoordinateRange],
    ) -> Result<Vec<(Vec<VariableName>, MeshRegion)>> {
        let of_run = self.world.variables.iter().filter(|variable| variable.run as i64 + 1 == run);
        let found = of_run.filter_map(|variable| {
            let region = meshes::region(meshes::dimension(&variable.decl)?.1, ranges)?;
            Some((vec![variable.decl.variable.clone()], region))
        });
        Ok(found.collect())
    }

    fn grid_regions(
        &mut self,
        _: RunId,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>> {
        Ok(meshes::grids(variables, asked, ranges))
    }

    fn runs(&mut self, which: &RunSelect) -> Result<Vec<RunRow>> {
        let rows = self.world.runs.iter().zip(1..).map(|(decl, id)| RunRow {
            id,
            decl: decl.clone(),
            declared: true,
            first: None,
        });
        Ok(rows
            .filter(|row| match which {
                RunSelect::All => true,
                RunSelect::Named(name) => row.decl.run.name == *name,
                RunSelect::Ids(ids) => ids.contains(&row.id),
            })
            .collect())
    }
    fn run_names(&mut self, row: &mut dyn FnMut(RunId, &RunName) -> Result<Flow>) -> Result<()> {
        for (decl, id) in self.world.runs.iter().zip(1..) {
            if row(id, &decl.run)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
    fn steps(&mut self, run: RunId, steps: RangeInclusive<i64>) -> Result<Vec<StepRow>> {
        let own = self.world.steps.iter().filter(|s| s.run as i64 + 1 == run && steps.contains(&s.step));
        let mut rows: Vec<StepRow> = own.map(|s| StepRow { run, step: s.step, time: s.time }).collect();
        rows.sort_by_key(|row| row.step);
        Ok(rows)
    }
    fn variables(&mut self, run: RunId) -> Result<Vec<VariableRow>> {
        let own = self.world.variables.iter().filter(|v| v.run as i64 + 1 == run);
        let number = |name: &VariableName| self.names.iter().position(|n| n == name).unwrap() as i64 + 1;
        Ok(own
            .map(|v| VariableRow { run, id: number(&v.decl.variable), decl: v.decl.clone(), declared: true })
            .collect())
    }
    fn variable_names(&mut self) -> Result<Vec<(VariableId, VariableName)>> {
        Ok((1..).zip(self.names.iter().cloned()).collect())
    }
    fn held(&mut self, run: RunId, variable: VariableId) -> Result<Vec<i64>> {
        let name = &self.names[variable as usize - 1];
        let own = self.world.held.iter().filter(|h| h.run as i64 + 1 == run && h.variable == *name);
        let mut steps: Vec<i64> = own.map(|h| h.step).collect();
        steps.sort_unstable();
        Ok(steps)
    }
    fn tags(&mut self) -> Result<Vec<TagRow>> {
        let rows = self.world.tags.iter().zip(1..);
        Ok(rows.map(|(decl, id)| TagRow { id, decl: decl.clone(), version: decl.version }).collect())
    }
    fn spans(&mut self, tag: TagId, run: Option<RunId>) -> Result<Vec<Span>> {
        Ok(self.spans_where(|row| row.key.1 == tag && run.is_none_or(|run| row.key.0 == run)))
    }
    fn spans_of_run(&mut self, run: RunId) -> Result<Vec<Span>> {
        Ok(self.spans_where(|row| row.key.0 == run))
    }
    fn series(&mut self, run: RunId, tag: TagId, steps: RangeInclusive<i64>) -> Result<Vec<Series>> {
        Ok(self.series_of(|row| row.key.0 == run && row.key.1 == tag && steps.contains(&row.key.2)))
    }
    fn scan(&mut self, probes: &[Probe], each: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64> {
        let mut visited = 0;
        for probe in probes {
            let mut rows: Vec<&Row> = self
                .rows
                .iter()
                .filter(|row| {
                    let (of_run, of_tag, at, on, key, ..) = row.key;
                    match probe {
                        Probe::Key { run, tag, steps, variable, curve } => {
                            assert!(variable.is_none() || steps.start() == steps.end(), "{probe:?}");
                            assert!(curve.is_none() || variable.is_some(), "{probe:?}");
                            (of_run, of_tag) == (*run, *tag)
                                && steps.contains(&at)
                                && variable.is_none_or(|variable| variable == on)
                                && curve.as_ref().is_none_or(|curve| curve.contains(&key))
                        }
                        Probe::Number { run, tag, numbers } => {
                            let inside = row.num.is_some_and(|num| numbers.contains(&num));
                            (of_run, of_tag) == (*run, *tag) && inside
                        }
                        Probe::Text { run, tag, from, to } => {
                            let Payload::Text(text) = &row.payload else { return false };
                            (of_run, of_tag) == (*run, *tag)
                                && row.kind == ValueType::Text
                                && text >= from
                                && to.as_ref().is_none_or(|to| text <= to)
                        }
                    }
                })
                .collect();
            if matches!(probe, Probe::Number { .. }) {
                rows.sort_by(|a, b| a.num.partial_cmp(&b.num).unwrap());
            }
            for row in rows {
                visited += 1;
                let (run, tag, step, variable, curve, batch, number) = row.key;
                let payload = match &row.payload {
                    Payload::Null => Cell::Null,
                    Payload::Int(n) => Cell::Int(*n),
                    Payload::Text(t) => Cell::Text(t),
                    Payload::Bytes(b) => Cell::Bytes(b),
                };
                let lent = AttrRow {
                    run,
                    tag,
                    step,
                    variable,
                    curve,
                    batch,
                    row: number,
                    kind: row.kind,
                    num: row.num,
                    payload,
                    region: &row.region,
                };
                if each(&lent)? == Flow::Stop {
                    return Ok(visited);
                }
            }
        }
        Ok(visited)
    }
    fn source(&mut self, batch: i64) -> Result<(AttributeId, u32)> {
        Ok((self.sources[batch as usize], 0))
    }
    fn writers(&mut self) -> Result<Vec<WriterRow>> {
        Ok(vec![WriterRow { log: 1, id: WRITER, user: Some((0, "0".into())), writer: None }])
    }
    fn batches_of(&mut self, logs: &[i64]) -> Result<Vec<(i64, i64)>> {
        Ok(logs.iter().map(|_| (0, i64::MAX)).collect())
    }
}
