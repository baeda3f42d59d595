//! `fieldstone list`: what exists, a line each, as it is found.

use std::io::Write;

use clap::Args;
use fieldstone::{ListEntry, ListOptions, Quoted};

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out};
use crate::{json, time};

const EXAMPLES: &str = "\
Examples:
  fieldstone list store
  fieldstone list store run=a,step=0/to/24/by/6 --long
  fieldstone list store --depth 1
  fieldstone list store run=a --jsonl | jq -r .key.variable

A line of the list can be used as a request. With --long the key is the last column; before it stand
bytes, element type, shape, time of the flush, owner and location (file:offset).";

/// List fields in key order
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// 1: datasets, 2: indexes, 3: fields
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    depth: u8,
    /// List versions that newer ones hide, too
    #[arg(long)]
    masked: bool,
    /// Show size, type, shape, time, owner and location
    #[arg(short, long)]
    long: bool,
    /// Print one JSON object per line
    #[arg(long)]
    jsonl: bool,
}

/// Lists.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let request = arguments.selecting.parse()?;
    let store = arguments.store.open()?;
    let options = ListOptions { depth: arguments.depth, masked: arguments.masked, transaction: None };
    let mut entries = store.list(&request, &options)?.peekable();
    if entries.peek().is_none()
        && let Some(advice) = arguments.selecting.advice(&*store)
    {
        out.note(advice);
    }
    if arguments.jsonl {
        for entry in entries {
            out.json_line(&json::entry(&entry?))?;
        }
        return Ok(());
    }
    if out.json() {
        out.write_all(b"{\"fields\": [")?;
        for (i, entry) in entries.enumerate() {
            out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
            out.json_value(&json::entry(&entry?))?;
        }
        return Ok(out.write_all(b"\n]}\n")?);
    }
    for entry in entries {
        let entry = entry?;
        if arguments.long && entry.depth >= 3 {
            details(&entry, out)?;
        }
        key(&entry, out)?;
        if entry.masked {
            out.write_all(b" (masked)")?;
        } else if !entry.complete && entry.depth >= 3 {
            out.write_all(b" (incomplete)")?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// `{run=a}{variable=t}{step=6}`, as deep as the list goes.
fn key(entry: &ListEntry, out: &mut Out) -> Done {
    for level in entry.key.levels.iter().take(usize::from(entry.depth)) {
        let mut sign = "{";
        let pairs = level.names.iter().zip(&level.values);
        for (name, value) in pairs.filter(|(_, value)| !value.is_absent()) {
            write!(out, "{sign}{name}={}", Quoted(&value.text()))?;
            sign = ",";
        }
        out.write_all(if sign == "{" { b"{}" } else { b"}" })?;
    }
    Ok(())
}

fn details(entry: &ListEntry, out: &mut Out) -> Done {
    let shape = match &entry.shape {
        Some(shape) => shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x"),
        None => "-".to_owned(),
    };
    let shape = if shape.is_empty() { "scalar" } else { &shape };
    let dtype = entry.dtype.map_or_else(|| "bytes".to_owned(), |d| d.to_string());
    let place = entry.place.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let (time, owner) = (time::utc(entry.time, true), &entry.owner);
    Ok(write!(out, "{:>12} {dtype:<5} {shape:<12} {time} {owner:<8} {place} ", entry.nbytes)?)
}
