//! `fieldstone arrays`: lists the distributed arrays of runs and their files, or rewrites them.

use clap::Args;
use fieldstone::arrays::{GroupInventory, LevelChoice, groups_of, opens, rewrite, show};
use fieldstone::catalog::query::Query;
use fieldstone::catalog::{ArrayLayout, ArraySet, RunName};
use fieldstone::{OpenOptions, Store, json};

use crate::arguments::Reading;
use crate::catalog::{or_dash, run_cell};
use crate::output::{Done, Out, count};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone arrays store
  fieldstone arrays store astro3d-42
  fieldstone arrays store astro3d-42 --rewrite
  fieldstone arrays store astro3d-42 --rewrite --level 2
  fieldstone arrays store astro3d-42 --show

Lists the groups of distributed arrays of all runs, or of one: their sets, their steps, and the number of files that
hold their arrays. For a single run it also names the files.

--rewrite writes the arrays of a run into fewer files: one for each group (level 3), set (2), or set and step (1),
no matter how many jobs wrote them. Fields keep their keys, and all new versions become visible at the same moment.
No job may write the run at that time. The old files stay, because older versions refer to them.

A job that is killed during a flush may leave files that other programs cannot open, or that lack the last flushed
step. The list of a run's files names those that do not open. The run's next job repairs them, and so does --show.

With --json: {\"groups\": [...]} of project, run, name, layout, level, method, order, mesh, location, attrs, sets
(name, dtype, shape, dims, view), steps, arrays, incomplete and files (path, arrays, bytes; for a single run also
opens: whether other programs can open it). With --rewrite: name, level, arrays, bytes, before (the number of files
before) and files. With --show: {\"files\": [...], \"left\": [...]}, the paths that it changed, and path and why for
those that it could not change.";

/// List distributed arrays of runs, or rewrite them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    /// The run
    run: Option<String>,
    /// The run's project
    #[arg(long, requires = "run")]
    project: Option<String>,
    /// Rewrite the arrays of the run into fewer files
    #[arg(long, requires = "run", conflicts_with = "at")]
    rewrite: bool,
    /// 1: a file per set and step; 2: per set; 3: per group; by default the level that the group was declared with
    #[arg(long, requires = "rewrite", value_name = "LEVEL")]
    level: Option<u64>,
    /// Repair the run's files after a job was killed, so that they show everything flushed into them
    #[arg(long, requires = "run", conflicts_with_all = ["rewrite", "at"])]
    show: bool,
}

/// Lists, rewrites or repairs.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    if arguments.rewrite {
        return write_anew(arguments, out);
    }
    if arguments.show {
        return show_files(arguments, out);
    }
    let store = arguments.store.open()?;
    let runs: Vec<RunName> = match &arguments.run {
        Some(name) => {
            vec![store.run_of_project(arguments.project.as_deref().unwrap_or(""), name)?.name().clone()]
        }
        None => store.catalog().runs(&Query::all())?.into_iter().map(|run| run.decl.run).collect(),
    };
    let mut found = Vec::new();
    for run in &runs {
        found.extend(groups_of(&store, run)?.into_iter().map(|group| (run, group)));
    }
    if out.json() {
        let opens = |path: &str| arguments.run.is_some().then(|| opens(&store, path));
        return out
            .items("groups", found.iter().map(|(run, group)| Ok(json::arrays::group(run, group, &opens))));
    }
    if found.is_empty() {
        out.note("no run has distributed arrays");
    }
    let mut table = Table::new([
        Column::text("run").least(12).rank(7),
        Column::text("group").least(8).rank(9),
        Column::text("in").rank(6),
        Column::text("sets").least(12).rank(8),
        Column::text("steps").rank(5),
        Column::number("arrays").rank(4),
        Column::number("files").rank(4),
    ]);
    for (run, group) in &found {
        table.row(cells(run, group), out)?;
    }
    table.finish(out)?;
    if arguments.run.is_some() {
        for file in found.iter().flat_map(|(_, group)| &group.files) {
            let opens = if opens(&store, &file.path) { "" } else { "\tdoes not open: see --show" };
            let arrays = count(file.arrays, "array");
            out.line(format_args!("{}\t{arrays}\t{} bytes{opens}", file.path, file.bytes))?;
        }
    }
    Ok(())
}

fn cells(run: &RunName, found: &GroupInventory) -> Vec<String> {
    let group = &found.group;
    let place = match group.layout {
        ArrayLayout::Files => format!("files, level {}", group.level),
        ArrayLayout::Fields => "logs".to_owned(),
    };
    let sets: Vec<String> = group.sets.iter().map(set_cell).collect();
    let steps = match (found.steps.first_key_value(), found.steps.last_key_value()) {
        (Some((first, _)), Some((last, _))) if first == last => first.to_string(),
        (Some((first, _)), Some((last, _))) => format!("{first}..{last}, {}", found.steps.len()),
        _ => "-".to_owned(),
    };
    vec![
        run_cell(run),
        group.name.clone(),
        place,
        sets.join(" "),
        steps,
        found.arrays.to_string(),
        found.files.len().to_string(),
    ]
}

fn set_cell(set: &ArraySet) -> String {
    let extents: Vec<String> = set.shape.iter().map(|extent| or_dash(extent.as_ref())).collect();
    format!("{} {} {}", set.variable.name, set.dtype.name(), extents.join("x"))
}

/// The store, opened for writing, and the named run.
fn open_to_write(arguments: &Arguments) -> Done<(Store, RunName)> {
    let name = RunName {
        project: arguments.project.clone().unwrap_or_default(),
        name: arguments.run.clone().unwrap_or_default(),
    };
    // NotFound where no store is; and none is made.
    drop(arguments.store.open()?);
    Ok((fieldstone::open(&arguments.store.store, &OpenOptions::default())?, name))
}

fn show_files(arguments: &Arguments, out: &mut Out) -> Done {
    let (store, name) = open_to_write(arguments)?;
    let shown = show(&store, &name)?;
    if out.json() {
        return out.document(&json::arrays::shown(&shown));
    }
    for path in &shown.files {
        out.line(format_args!("{path}: shows all that is flushed"))?;
    }
    for (path, why) in &shown.left {
        out.line(format_args!("{path}: {why}"))?;
    }
    if shown.files.is_empty() && shown.left.is_empty() {
        out.note("all files show what is flushed into them");
    }
    Ok(())
}

fn write_anew(arguments: &Arguments, out: &mut Out) -> Done {
    let level = match arguments.level.map(LevelChoice::number).transpose()? {
        Some(LevelChoice::Is(level)) => Some(level),
        _ => None,
    };
    let (store, name) = open_to_write(arguments)?;
    let written = rewrite(&store, &name, level)?;
    if out.json() {
        return out.items("groups", written.iter().map(|group| Ok(json::arrays::rewritten(group))));
    }
    for group in &written {
        out.line(format_args!(
            "{}: {} of {} in {}, {} before",
            group.name,
            count(group.arrays, "array"),
            count(group.bytes, "byte"),
            count(group.files.len() as u64, "file"),
            count(group.files_before, "file")
        ))?;
    }
    Ok(())
}
