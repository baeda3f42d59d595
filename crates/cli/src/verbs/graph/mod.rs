//! `fieldstone graph`: vertices and relations of the provenance graph.

mod archive;
mod checksum;
mod edges;
mod export;
mod fields;
mod find;
mod get;
mod partition;
mod put;
mod search;
mod stats;
mod travel;
mod verify;

use clap::{Args, Subcommand};

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph put store job:17 write /data/a.nc bytes=10
  fieldstone graph get store job:17
  fieldstone graph edges store /data/a.nc wasWrittenBy
  fieldstone graph export store /data/a.nc --format svg --output lineage.svg
  fieldstone graph fields store job:17
  fieldstone graph stats store

A vertex is TYPE:ID, or the path of a file. Each put adds a version; it never changes an earlier one.";

/// Put and read users, executions, data, and how they are related
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Get(get::Arguments),
    Put(put::Arguments),
    Edges(edges::Arguments),
    Fields(fields::Arguments),
    Find(find::Arguments),
    Search(search::Arguments),
    Travel(travel::Arguments),
    Export(export::Arguments),
    Checksum(checksum::Arguments),
    Archive(archive::Arguments),
    Stats(stats::Arguments),
    Partition(partition::Arguments),
    Verify(verify::Arguments),
}

/// Does what the second word says.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    match &arguments.action {
        Action::Get(arguments) => get::run(arguments, out),
        Action::Put(arguments) => put::run(arguments, out),
        Action::Edges(arguments) => edges::run(arguments, out),
        Action::Fields(arguments) => fields::run(arguments, out),
        Action::Find(arguments) => find::run(arguments, out),
        Action::Search(arguments) => search::run(arguments, out),
        Action::Travel(arguments) => travel::run(arguments, out),
        Action::Export(arguments) => export::run(arguments, out),
        Action::Checksum(arguments) => checksum::run(arguments, out),
        Action::Archive(arguments) => archive::run(arguments, out),
        Action::Stats(arguments) => stats::run(arguments, out),
        Action::Partition(arguments) => partition::run(arguments, out),
        Action::Verify(arguments) => verify::run(arguments, out),
    }
}
