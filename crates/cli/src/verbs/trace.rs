//! `fieldstone trace`: where a result came from, or what came from it.

use clap::Args;
use fieldstone::Session;
use fieldstone::graph::{Dossier, LineageSubject, TraceOptions, Way};
use fieldstone::lineage::{LineageFormat, compare, compared_by, export, script};
use fieldstone::{Code, json};

use crate::graph::{Graphed, note_archived, note_left, stamp, subject};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone trace store /data/plot.png
  fieldstone trace store run=a,variable=t,step=6
  fieldstone trace store job:17 --down
  fieldstone trace store plot.png --at 2026-11-21T06:00 --json
  fieldstone trace store plot.png --format svg > lineage.svg
  fieldstone trace store --compare job:17 job:18
  fieldstone trace store --compare run=a,variable=t run=b,variable=t
  fieldstone trace store plot.png --script > rebuild.sh

WHAT is a request (KEYWORD=…), the path of a file, or TYPE:ID. An execution writes fields by commits; fieldstone graph
fields lists the fields of one. The walk follows causes: data read after a result was written did not go into the
result, and a value that replaced another did not come from it. A job and its processes count as one.

If an execution read from another store, the walk goes on in that store if it can be read; a note names the stores that
cannot. --one-store stays in this store.

With --json: root, vertices of type, id and depth, edges of type, src, dst, props, stamp, time, until, user and deleted,
truncated, and stores of id, url, commits and left (the reason why the walk did not go there).

--compare prints the differences between executions, or between the executions that wrote several results: executable,
argument, environment, folder, host, input, version. Each line has a value for each WHAT. --script prints commands for
sh that rebuild a result. --format prints prov-json, openlineage, ro-crate, dot or svg.";

/// Show where a result came from, or what came from it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// A request, the path of a file, or TYPE:ID; several with --compare
    #[arg(required = true)]
    what: Vec<String>,
    /// Print the differences between several
    #[arg(long, conflicts_with_all = ["down", "depth", "since", "any_time", "script", "format"])]
    compare: bool,
    /// Commands for sh that rebuild it
    #[arg(long, conflicts_with_all = ["down", "depth", "since", "any_time", "format"])]
    script: bool,
    /// prov-json, openlineage, ro-crate, dot or svg
    #[arg(long, value_name = "FORMAT")]
    format: Option<LineageFormat>,
    /// Walk down to results derived from it, instead of up to its sources
    #[arg(long)]
    down: bool,
    /// Hops, at most
    #[arg(long, value_name = "HOPS")]
    depth: Option<u32>,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// With --down: from this moment on
    #[arg(long, value_name = "TIME", requires = "down")]
    since: Option<String>,
    /// Follow what holds now, whatever the times
    #[arg(long)]
    any_time: bool,
    /// Do not go on in other stores
    #[arg(long)]
    one_store: bool,
    /// Vertices, at most
    #[arg(long, value_name = "VERTICES", default_value_t = 10_000)]
    limit: usize,
    /// Lines, at most, where it is printed as a tree
    #[arg(long, value_name = "LINES", default_value_t = 1_000)]
    lines: usize,
}

/// Vertices of a script, at most: one that is cut off rebuilds nothing.
const ALL: usize = 1_000_000;

/// Traces.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    if arguments.compare {
        let each = arguments.what.iter().map(|what| subject(std::slice::from_ref(what)));
        return compared(arguments, &each.collect::<fieldstone::Result<Vec<_>>>()?, out);
    }
    let what = subject(&arguments.what)?;
    let options = TraceOptions {
        way: if arguments.down { Way::Down } else { Way::Up },
        depth: arguments.depth,
        at: arguments.at.as_deref().map(stamp).transpose()?,
        since: arguments.since.as_deref().map(stamp).transpose()?,
        causal: !arguments.any_time,
        limit: arguments.limit,
    };
    let store = arguments.store.open()?;
    let (graph, session) = (store.graph(), Session::default());
    let tracer = store.tracer(&session);
    let limit = if arguments.script { arguments.limit.max(ALL) } else { arguments.limit };
    let options = TraceOptions { limit, ..options };
    if arguments.script {
        let dossier = tracer.dossier(&what, &options)?;
        note_archived(&dossier.lineage, out);
        out.text(script(&dossier)?)?;
        return Ok(store.close()?);
    }
    if let Some(format) = arguments.format {
        let (dossier, stores) = match arguments.one_store {
            true => (tracer.dossier(&what, &options)?, Vec::new()),
            false => tracer.dossier_across(&what, &options)?,
        };
        note_archived(&dossier.lineage, out);
        note_left(&stores, out);
        out.text(export(&dossier, format))?;
        return Ok(store.close()?);
    }
    let (lineage, stores) = match arguments.one_store {
        true => (tracer.trace(&what, &options)?, Vec::new()),
        false => tracer.trace_across(&what, &options)?,
    };
    note_archived(&lineage, out);
    note_left(&stores, out);
    if out.json() {
        out.document(&json::graph::lineage(&lineage, &stores, &|user| graph.user_name(user)))?;
    } else {
        out.line(lineage.tree(arguments.lines.max(1)))?;
    }
    Ok(store.close()?)
}

/// Prints what differs.
fn compared(arguments: &Arguments, what: &[LineageSubject], out: &mut Out) -> Done {
    if what.len() < 2 {
        let why = "one is compared with nothing";
        return Err(Code::CommandLine.error(why).with_hint("give two or more").into());
    }
    let at = arguments.at.as_deref().map(stamp).transpose()?;
    let store = arguments.store.open()?;
    let session = Session::default();
    let dossier = |subject| store.tracer(&session).dossier(subject, &compared_by(subject, at));
    let dossiers = what.iter().map(dossier).collect::<fieldstone::Result<Vec<Dossier>>>()?;
    let rows = compare(&dossiers)?;
    if out.json() {
        out.document(&json::graph::compared(&dossiers, &rows))?;
    } else {
        let columns = [Column::text("what").rank(9), Column::text("name").least(8).rank(9)];
        let values = what.iter().map(|_| Column::text("").least(10).rank(8));
        let mut table = Table::new(columns.into_iter().chain(values));
        for row in rows {
            let values = row.values.into_iter().map(|value| value.unwrap_or_else(|| "-".to_owned()));
            table.row([row.what, row.name].into_iter().chain(values).collect(), out)?;
        }
        table.finish(out)?;
    }
    Ok(store.close()?)
}
