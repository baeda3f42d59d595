//! `fieldstone graph put`: a vertex, or a relation of two.

use clap::Args;
use fieldstone::Session;
use fieldstone::catalog::query::text::parse_value;
use fieldstone::catalog::value::Value;
use fieldstone::graph::{Props, RelationPut, VertexPut};
use fieldstone::{Error, Result, json};

use crate::arguments::Writing;
use crate::graph::{stamp, vertex};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph put store file:/data/a.nc quality=3
  fieldstone graph put store job:17 write /data/a.nc bytes=10 --time 2026-11-21T06:00
  fieldstone graph put store /data/a.nc wasWrittenBy job:17

Give a vertex and NAME=VALUE; or a vertex, the type of a relation, another vertex and NAME=VALUE. It prints a stamp
that names the moment, for use with --at.

With --json: stamp.";

/// Put a vertex or a relation, as a version
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// TYPE:ID or the path of a file; for a relation its type and another vertex; then NAME=VALUE
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// When it began: a date, seconds since 1970, or a stamp; now where it is not given
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// When a relation ended
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// Puts it, and flushes.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let time = arguments.time.as_deref().map(stamp).transpose()?;
    let until = arguments.until.as_deref().map(stamp).transpose()?;
    let first =
        arguments.words.iter().position(|word| property(word).is_some()).unwrap_or(arguments.words.len());
    let (named, given) = arguments.words.split_at(first);
    let props = props(given)?;
    let store = arguments.store.open()?;
    let graph = store.graph();
    let stamp = match named {
        [one] if until.is_none() => {
            let put = VertexPut { props, time, ..VertexPut::new(vertex(one)?) };
            graph.put_vertices(vec![put], &Session::default())?
        }
        [source, kind, target] => {
            let put = RelationPut {
                props,
                time,
                until,
                ..RelationPut::new(kind, vertex(source)?, vertex(target)?)
            };
            graph.put_relations(vec![put], &Session::default())?
        }
        _ => {
            return Err(Error::invalid("neither a vertex nor a relation")
                .with_hint("write a vertex, or a vertex, a type and another vertex; then NAME=VALUE")
                .into());
        }
    };
    store.flush(None)?;
    store.close()?;
    if out.json() { out.document(&json::graph::put(stamp)) } else { out.line(stamp) }
}

/// Name and value of `NAME=VALUE`; a path or vertex may hold a `=` behind a `/` or `:`.
fn property(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains(['/', ':']))
}

fn props(words: &[String]) -> Result<Props> {
    let mut pairs: Vec<(&str, Value)> = Vec::with_capacity(words.len());
    for word in words {
        let (name, text) = property(word).ok_or_else(|| {
            Error::invalid(format!("'{word}' stands behind properties and is none"))
                .with_hint("write NAME=VALUE")
        })?;
        pairs.push((name, parse_value(text).unwrap_or_else(|_| Value::Text(text.to_owned()))));
    }
    Props::of(pairs.iter().map(|(name, value)| (*name, value)))
}
