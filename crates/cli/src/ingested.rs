//! The report of an ingest, as text: each file with its key, what was left out by reasons, totals.

use std::io::Write;

use fieldstone::{IngestReport, Reason};

use crate::output::{Done, Out, count};

/// Most files of one reason that are named.
const NAMED: usize = 20;

/// Prints a report; `meshes`: what was taken are meshes.
pub fn print(report: &IngestReport, meshes: bool, out: &mut Out) -> Done {
    for taken in &report.taken {
        let what = if meshes { "a mesh".to_owned() } else { count(taken.fields, "field") };
        write!(out, "taken    {}: {what}, {} bytes", taken.path.display(), taken.bytes)?;
        if taken.relations > 0 {
            write!(out, ", {} of the graph", count(taken.relations, "row"))?;
        }
        if taken.unchanged > 0 {
            write!(out, ", {} there already", taken.unchanged)?;
        }
        if !taken.key.is_empty() {
            write!(out, ", under {}", taken.request())?;
        }
        out.write_all(b"\n")?;
    }
    for reason in report.reasons() {
        write_reason(&reason, out)?;
    }
    if report.files > 1 || report.missed() > 0 {
        write!(out, "in all   {} of {} taken", report.taken.len(), count(report.files as u64, "file"))?;
        if !meshes {
            write!(out, ": {}, {} bytes", count(report.fields(), "new field"), report.nbytes())?;
        }
        if report.done < report.files {
            write!(out, "; {} not looked at", report.files - report.done)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_reason(reason: &Reason<'_>, out: &mut Out) -> Done {
    let [first, more @ ..] = &reason.skipped[..] else { return Ok(()) };
    if more.is_empty() {
        return out.line(format_args!("skipped  {first}"));
    }
    let what = if first.is_whole() { "file" } else { "part" };
    out.line(format_args!("skipped  {}: {}", count(reason.skipped.len() as u64, what), reason.why))?;
    for skipped in reason.skipped.iter().take(NAMED) {
        match skipped.is_whole() {
            true => out.line(format_args!("         {}", skipped.path.display()))?,
            false => out.line(format_args!("         {}: {}", skipped.path.display(), skipped.what))?,
        }
    }
    match reason.skipped.len().saturating_sub(NAMED) {
        0 => Ok(()),
        n => out.line(format_args!("         and {n} more; --json names all")),
    }
}
