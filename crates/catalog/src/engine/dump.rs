//! The tables as lines of text that do not depend on an engine's numbers: `verify` compares them with those of a replay.

use std::collections::HashMap;
use std::iter::once;
use std::ops::RangeInclusive;

use fieldstone_core::Result;
use fieldstone_format::catalog::AttributeId;
use fieldstone_journal::feed::OWN_LOG;

use super::arrays::{groups_of, histories, imports_of, meshes};
use super::conflicts::conflicts;
use super::index::Index;
use super::stored::{decode_region, region_cells, region_keywords};
use super::{Flow, NO_STEP, Probe, RunSelect, Tables};

/// Attributes whose rows are held at once, unless one step has more.
const ROWS: u64 = 1 << 16;

/// The content of all tables, a line each, sorted. Needs a read in progress. Holds everything in memory.
pub fn dump(index: &mut Index) -> Result<String> {
    let mut lines = Vec::new();
    each_line(index, &mut |line| lines.push(line))?;
    lines.sort();
    let mut text = lines.join("\n");
    text.push('\n');
    Ok(text)
}

/// Passes the content of all tables, a line each, in no order. Needs a read in progress.
pub fn each_line(index: &mut Index, line: &mut dyn FnMut(String)) -> Result<()> {
    let mut runs = HashMap::new();
    for run in index.runs(&RunSelect::All)? {
        let name = format!("{:?}/{:?}", run.decl.run.project, run.decl.run.name);
        line(format!("run {name} declared={} {:?}", run.declared, run.decl));
        runs.insert(run.id, name);
    }
    let variables: HashMap<i64, String> = (index.variable_names()?.into_iter())
        .map(|(id, variable)| (id, format!("{:?}:{}", variable.name, variable.version)))
        .collect();
    let name_of = |id: i64| variables.get(&id).map_or("-", String::as_str);
    let step_of = |step: i64| if step == NO_STEP { "-".to_owned() } else { step.to_string() };
    for (&run, name) in &runs {
        for group in groups_of(index.database(), run)? {
            line(format!("group {name} {group:?}"));
        }
        for import in imports_of(index.database(), run)? {
            line(format!("import {name} {import:?}"));
        }
        for step in index.steps(run, i64::MIN..=i64::MAX)? {
            line(format!("step {name} {} {:?}", step.step, step.time));
        }
        for variable in index.variables(run)? {
            line(format!("variable {name} declared={} {:?}", variable.declared, variable.decl));
        }
    }
    index.database().query("SELECT run, variable, step FROM held", &[], &mut |row| {
        let run = runs.get(&row[0].int()?).map_or("?", String::as_str);
        line(format!("held {run} {} {}", name_of(row[1].int()?), step_of(row[2].int()?)));
        Ok(Flow::More)
    })?;
    let tags = index.tags()?;
    for tag in &tags {
        let named =
            format!("{:?}:{}:{}:{:?}", tag.decl.name, tag.decl.version, tag.decl.kind.name(), tag.decl.unit);
        line(format!("tag {named} shown={}", tag.version));
        for span in index.spans(tag.id, None)? {
            let run = runs.get(&span.run).map_or("?", String::as_str);
            let (first, last) = (step_of(span.steps.0), step_of(span.steps.1));
            line(format!("span {named} {run} n={} {:?} {first}..{last}", span.n, span.numbers));
            let mut windows = Windows::default();
            for one in index.series(span.run, tag.id, i64::MIN..=i64::MAX)? {
                let (step, variable) = (step_of(one.step), name_of(one.variable));
                line(format!(
                    "series {named} {run} {step} {variable} n={} {:?} levels={:x} extent={}",
                    one.n, one.numbers, one.levels, one.extent
                ));
                windows.add(one.step, one.n);
            }
            for steps in windows.ended() {
                dump_attributes(index, (span.run, tag.id, steps), line, &|row| {
                    format!("{named} {run} {} {}", step_of(row.0), name_of(row.1))
                })?;
            }
        }
    }
    meshes(index.database())?.iter().for_each(|mesh| line(format!("{mesh:?}")));
    histories(index.database())?.iter().for_each(|history| line(format!("{history:?}")));
    conflicts(index.database())?.iter().for_each(|message| line(format!("conflict {message}")));
    Ok(())
}

/// Ranges of steps, each with few attributes; together they hold every step.
#[derive(Debug, Default)]
struct Windows {
    /// The last steps of the windows that are full.
    ends: Vec<i64>,
    attributes: u64,
    last: Option<i64>,
}

impl Windows {
    /// Counts the attributes of a step, the steps in their order.
    fn add(&mut self, step: i64, attributes: u64) {
        let begun = self.ends.last().copied();
        let is_end = |last: &i64| *last < step && begun.is_none_or(|begun| begun < *last);
        if let Some(last) = self.last.filter(is_end).filter(|_| self.attributes >= ROWS) {
            self.ends.push(last);
            self.attributes = 0;
        }
        self.attributes += attributes;
        self.last = Some(step);
    }

    /// The windows, in order.
    fn ended(self) -> impl Iterator<Item = RangeInclusive<i64>> {
        let begins = once(i64::MIN).chain(self.ends.clone().into_iter().map(|end| end + 1));
        begins.zip(self.ends.into_iter().chain(once(i64::MAX))).map(|(begin, end)| begin..=end)
    }
}

fn dump_attributes(
    index: &mut Index,
    (run, tag, steps): (i64, i64, RangeInclusive<i64>),
    line: &mut dyn FnMut(String),
    place: &dyn Fn((i64, i64)) -> String,
) -> Result<()> {
    let mut found = Vec::new();
    let probe = Probe::Key { run, tag, steps, variable: None, curve: None };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(of: &[(i64, u64)]) -> Vec<RangeInclusive<i64>> {
        let mut windows = Windows::default();
        of.iter().for_each(|(step, attributes)| windows.add(*step, *attributes));
        windows.ended().collect()
    }

    #[test]
    fn windows_hold_every_step_and_few_attributes() {
        assert_eq!(windows(&[]), [i64::MIN..=i64::MAX]);
        assert_eq!(windows(&[(0, ROWS), (0, 1), (6, 1)]), [i64::MIN..=0, 1..=i64::MAX]);
        assert_eq!(windows(&[(0, 1), (6, ROWS), (9, ROWS)]), [i64::MIN..=6, 7..=i64::MAX]);
        // Damaged tables may have them in another order.
        assert_eq!(windows(&[(9, ROWS), (10, ROWS), (3, ROWS), (4, 1)]), [i64::MIN..=9, 10..=i64::MAX]);
    }
}
