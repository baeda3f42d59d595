//! `fieldstone graph find`: vertices and relations by what they are.

use clap::Args;
use fieldstone::Result;
use fieldstone::Session;
use fieldstone::catalog::query::text::parse_test;
use fieldstone::graph::TypeMatches;

use crate::graph::{Graphed, print_relations, print_vertices, stamp};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph find store file 'size > 1000000'
  fieldstone graph find store job 'name like \"regrid*\"' 'exit != 0'
  fieldstone graph find store dataset --at 2026-11-21
  fieldstone graph find store read 'bytes > 1000000'

Tests apply to static properties and to the users' own; all of them must hold. Write them as in find: size > 9000,
name in (a, b), path like '*.nc', quality between 1 and 3, title exists.

If TYPE is the name that either end gives to a relation, it finds relations. If vertices have that name, too, it finds
vertices: write ~wasRunBy for the relation run.

With --json: {\"vertices\": [...]} of type, id, static, props, stamp, time, user and deleted; or {\"edges\": [...]} as
graph edges has them.";

/// Find vertices or relations by their properties
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// Their type
    #[arg(value_name = "TYPE")]
    kind: String,
    /// Tests of their properties
    tests: Vec<String>,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The most to list
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

/// Finds.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let tests = arguments.tests.iter().map(|text| parse_test(text)).collect::<Result<Vec<_>>>()?;
    let at = arguments.at.as_deref().map(stamp).transpose()?;
    let store = arguments.store.open()?;
    let graph = store.graph();
    match graph.find_by_type(&arguments.kind, &tests, at, arguments.limit, &Session::default())? {
        TypeMatches::Vertices(found) => print_vertices(graph, &found, out),
        TypeMatches::Relations(found) => print_relations(graph, &found, true, out),
    }
}
