//! `fieldstone graph get`: a vertex.

use clap::Args;
use fieldstone::Session;
use fieldstone::json;

use crate::catalog::moment_cell;
use crate::graph::{Graphed, props_cell, stamp, vertex};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph get store job:17
  fieldstone graph get store /data/a.nc --at 2026-11-21
  fieldstone graph get store /data/a.nc --versions --json

With --json: {\"versions\": [...]} of type, id, static, props, stamp, time, user, deleted and archived: the store
that properties were moved to, or null.";

/// Show a vertex
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// TYPE:ID, or the path of a file
    vertex: String,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME", conflicts_with = "versions")]
    at: Option<String>,
    /// All versions, newest first
    #[arg(long)]
    versions: bool,
}

/// Shows it.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let name = vertex(&arguments.vertex)?;
    let at = arguments.at.as_deref().map(stamp).transpose()?;
    let store = arguments.store.open()?;
    let graph = store.graph();
    let versions = match arguments.versions {
        true => graph.versions(&name, &Session::default())?,
        false => vec![graph.vertex(&name, at, &Session::default())?],
    };
    if out.json() {
        let rows =
            versions.iter().map(|vertex| Ok(json::graph::vertex(vertex, &graph.user_name(vertex.user))));
        return out.items("versions", rows);
    }
    for vertex in &versions {
        let gone = if vertex.deleted { " deleted" } else { "" };
        let user = graph.user_name(vertex.user);
        out.line(format_args!("{}{gone}  {}  {user}", vertex.name, moment_cell(vertex.time)))?;
        if let Some(url) = &vertex.archived {
            out.line(format_args!("  in {url}"))?;
        }
        for (what, props) in [("static", &vertex.fixed), ("props", &vertex.props)] {
            if !props.is_empty() {
                out.line(format_args!("  {what}: {}", props_cell(props)))?;
            }
        }
    }
    Ok(())
}
