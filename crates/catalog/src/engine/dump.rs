//! The tables as text that does not depend on an engine's numbers: `verify` compares it with the text of a
//! replay.

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_format::catalog::AttributeId;
use fieldstone_journal::feed::OWN_LOG;

use super::arrays::{groups_of, histories, imports_of, meshes};
use super::conflicts::conflicts;
use super::index::Index;
use super::stored::{decode_region, region_cells, region_keywords};
use super::{Flow, NO_STEP, Probe, RunSelect, Tables};

/// The content of all tables, a line each, sorted. Needs a read in progress. Holds everything in memory.
pub fn dump(index: &mut Index) -> Result<String> {
    let mut lines = Vec::new();
    let mut runs = HashMap::new();
    for run in index.runs(&RunSelect::All)? {
        let name = format!("{:?}/{:?}", run.decl.run.project, run.decl.run.name);
        lines.push(format!("run {name} declared={} {:?}", run.declared, run.decl));
        runs.insert(run.id, name);
    }
    let variables: HashMap<i64, String> = (index.variable_names()?.into_iter())
        .map(|(id, variable)| (id, format!("{:?}:{}", variable.name, variable.version)))
        .collect();
    let name_of = |id: i64| variables.get(&id).map_or("-", String::as_str);
    let step_of = |step: i64| if step == NO_STEP { "-".to_owned() } else { step.to_string() };
    for (&run, name) in &runs {
        lines.extend(groups_of(index.database(), run)?.iter().map(|group| format!("group {name} {group:?}")));
        lines.extend(
            imports_of(index.database(), run)?.iter().map(|import| format!("import {name} {import:?}")),
        );
        for step in index.steps(run, i64::MIN..=i64::MAX)? {
            lines.push(format!("step {name} {} {:?}", step.step, step.time));
        }
        for variable in index.variables(run)? {
            lines.push(format!("variable {name} declared={} {:?}", variable.declared, variable.decl));
        }
    }
    index.database().query("SELECT run, variable, step FROM held", &[], &mut |row| {
        let run = runs.get(&row[0].int()?).map_or("?", String::as_str);
        lines.push(format!("held {run} {} {}", name_of(row[1].int()?), step_of(row[2].int()?)));
        Ok(Flow::More)
    })?;
    let tags = index.tags()?;
    for tag in &tags {
        let named =
            format!("{:?}:{}:{}:{:?}", tag.decl.name, tag.decl.version, tag.decl.kind.name(), tag.decl.unit);
        lines.push(format!("tag {named} shown={}", tag.version));
        for span in index.spans(tag.id, None)? {
            let run = runs.get(&span.run).map_or("?", String::as_str);
            let (first, last) = (step_of(span.steps.0), step_of(span.steps.1));
            lines.push(format!("span {named} {run} n={} {:?} {first}..{last}", span.n, span.numbers));
            for one in index.series(span.run, tag.id, i64::MIN..=i64::MAX)? {
                let (step, variable) = (step_of(one.step), name_of(one.variable));
                lines.push(format!(
                    "series {named} {run} {step} {variable} n={} {:?} levels={:x} extent={}",
                    one.n, one.numbers, one.levels, one.extent
                ));
            }
            dump_attributes(index, span.run, tag.id, &mut |line| lines.push(line), &|row| {
                format!("{named} {run} {} {}", step_of(row.0), name_of(row.1))
            })?;
        }
    }
    lines.extend(meshes(index.database())?.iter().map(|mesh| format!("{mesh:?}")));
    lines.extend(histories(index.database())?.iter().map(|history| format!("{history:?}")));
    lines.extend(conflicts(index.database())?.into_iter().map(|message| format!("conflict {message}")));
    lines.sort();
    let mut text = lines.join("\n");
    text.push('\n');
    Ok(text)
}

fn dump_attributes(
    index: &mut Index,
    run: i64,
    tag: i64,
    line: &mut dyn FnMut(String),
    place: &dyn Fn((i64, i64)) -> String,
) -> Result<()> {
    let mut found = Vec::new();
    let probe = Probe::Key { run, tag, steps: i64::MIN..=i64::MAX, variable: None, curve: None };
    index.database().scan(&[probe], &mut |row| {
        let region = decode_region(row.region)?;
        let cells = region_cells(row.region)?;
        let cells = cells.map_or_else(String::new, |(dim, cells)| format!(" {dim}:{cells:?}"));
        let keywords = region_keywords(row.region)?;
        let keywords = keywords.map_or_else(String::new, |keywords| format!(" {keywords:?}"));
        let text =
            format!("{} {region:?}{keywords}{cells} {:?}", place((row.step, row.variable)), row.value()?);
        found.push((row.batch, row.row, text));
        Ok(Flow::More)
    })?;
    for (batch, row, text) in found {
        let (id, user) = index.source(batch)?;
        let AttributeId { writer, sequence, record, .. } = id;
        let writer = writer.unwrap_or(OWN_LOG);
        line(format!("attribute {text} by {user} from {writer} {sequence} {record} {row}"));
    }
    Ok(())
}
