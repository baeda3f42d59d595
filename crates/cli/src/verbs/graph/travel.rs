//! `fieldstone graph travel`: from vertices along relations, step by step.

use clap::Args;
use fieldstone::Session;
use fieldstone::graph::{Engine, SlotFigures, SlotStep, Travel, Traversal, parse_travel};
use fieldstone::json;

use crate::graph::{Graphed, stamp};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

/// Vertices that are read at once.
const CHUNK: usize = 4096;

const EXAMPLES: &str = "\
Examples:
  fieldstone graph travel store 'v(file:/plot.png).e(wasWrittenBy).e(read)'
  fieldstone graph travel store 'v(file:/plot.png).e(wasWrittenBy).e(read).repeat().return_fp()' --causal
  fieldstone graph travel store 'v(type=file, size>1000000).e(wasWrittenBy).rtn().e(wasRunBy)' --explain

Steps: v(WHAT) is the start, by TYPE:ID, a path, type=TYPE or tests of properties; e(TYPE, ...) follows relations, by
default all; va(TEST) and ea(TEST) test vertices and relations; rtn returns the vertices at that point; repeat(N)
repeats all hops so far until they bring nothing new; return_fp gives whole paths. Write tests as in find:
size > 9000, name in (a, b), path like '*.nc'.

Each line is a vertex, or a path: vertices with the relations between them. With rtn, an empty line separates the sets.

With --json: {\"vertices\": [[type, id], ...]}, with rtn {\"sets\": [...]}, or {\"paths\": [{vertices, edges}]}; and
truncated.";

/// Walk along relations, step by step
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// The steps, with dots between
    steps: String,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Only along what can have had a part in the next
    #[arg(long)]
    causal: bool,
    /// A job and its processes count as the job
    #[arg(long)]
    jobs: bool,
    /// Results, at most
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Print the work of each hop instead of the result; of a graph in slots, slot by slot
    #[arg(long)]
    explain: bool,
    /// How slots walk it: step by step with reading ahead, step by step, each vertex as it is reached
    #[arg(long, default_value = "sync",
        value_parser = clap::builder::PossibleValuesParser::new(Engine::ALL.map(Engine::name)))]
    engine: String,
}

/// Walks.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let travel = Travel {
        at: arguments.at.as_deref().map(stamp).transpose()?,
        causal: arguments.causal,
        jobs: arguments.jobs,
        limit: arguments.limit,
        steps: parse_travel(&arguments.steps)?,
    };
    let store = arguments.store.open()?;
    let graph = store.graph();
    let engine = Engine::ALL.into_iter().find(|engine| engine.name() == arguments.engine);
    let travelled = graph.travel(&travel, engine.unwrap_or_default(), &Session::default())?;
    if arguments.explain {
        return explain(&travelled, out);
    }
    let users = |user| graph.user_name(user);
    if travelled.summary().has_paths {
        return paths(&travelled, &users, out);
    }
    let sets = &travelled.summary().sets;
    if out.json() {
        return out.document(&json::graph::travelled(&travelled)?);
    }
    for (set, len) in sets.iter().enumerate() {
        if set > 0 {
            out.line("")?;
        }
        for from in (0..*len).step_by(CHUNK) {
            for name in travelled.names(set, from, CHUNK)? {
                out.line(name)?;
            }
        }
    }
    if travelled.summary().truncated {
        out.note("cut off at the limit");
    }
    Ok(store.close()?)
}

/// Whole ways, as they are found.
fn paths(travelled: &Traversal, users: &dyn Fn(u32) -> String, out: &mut Out) -> Done {
    let Some(mut paths) = travelled.paths() else { return Ok(()) };
    let mut all = Vec::new();
    let mut left = travelled.summary().limit;
    let mut truncated = false;
    while let Some(path) = paths.next().transpose()? {
        if left == 0 {
            truncated = true;
            break;
        }
        left -= 1;
        if out.json() {
            all.push(json::graph::path(&path, users));
        } else {
            let mut line = path.vertices.first().map(ToString::to_string).unwrap_or_default();
            for (edge, vertex) in path.edges.iter().zip(path.vertices.iter().skip(1)) {
                line.push_str(&format!(" {} {vertex}", edge.kind));
            }
            out.line(line)?;
        }
    }
    if out.json() {
        out.document(&json::graph::paths(all, truncated))?;
    } else if truncated {
        out.note("cut off at the limit");
    }
    Ok(())
}

fn explain(travelled: &Traversal, out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::graph::figures(travelled));
    }
    let numbers = ["hop", "round", "frontier", "reached", "vertices", "relations", "ms"];
    let mut table = Table::new(numbers.map(|name| Column::number(name).rank(5)));
    for step in &travelled.summary().figures {
        let row = vec![
            step.hop.to_string(),
            step.round.to_string(),
            step.frontier.to_string(),
            step.reached.to_string(),
            step.vertices.to_string(),
            step.relations.to_string(),
            milliseconds(step.nanoseconds),
        ];
        table.row(row, out)?;
    }
    table.finish(out)?;
    travelled.summary().slots.as_ref().map_or(Ok(()), |slots| explain_slots(slots, out))
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.3}", nanoseconds as f64 / 1e6)
}

fn explain_slots(slots: &SlotFigures, out: &mut Out) -> Done {
    out.line("")?;
    let numbers = [
        "hop",
        "round",
        "slot",
        "frontier",
        "reached",
        "relations",
        "requests",
        "forwards",
        "messages",
        "bytes",
        "vertex ms",
        "edge ms",
        "ahead ms",
    ];
    let mut table = Table::new(numbers.map(|name| Column::number(name).rank(5)));
    let steps = slots.steps.iter().enumerate();
    let mut rows: Vec<(usize, &SlotStep)> =
        steps.flat_map(|(slot, own)| own.iter().map(move |step| (slot, step))).collect();
    rows.sort_by_key(|(slot, step)| (step.round == 0, step.round, step.hop, *slot));
    for (slot, step) in rows {
        let mut row = vec![step.hop.to_string(), step.round.to_string(), slot.to_string()];
        let counts = [
            step.frontier,
            step.reached,
            step.relations,
            step.requests,
            step.forwards,
            step.frames,
            step.bytes,
        ];
        row.extend(counts.iter().map(u64::to_string));
        row.extend([step.vertex_time, step.edge_time, step.prefetch_time].map(milliseconds));
        table.row(row, out)?;
    }
    table.finish(out)?;
    let (requests, forwards) = (slots.requests(), slots.forwards());
    let sum = slots.communication();
    out.line(format_args!(
        "StatComm {sum} ({requests} requests, {forwards} forwards), StatReads {}",
        slots.reads()
    ))
}
