//! The verbs of the program, a file each: `Arguments` (with the help and its examples) and `run`. Four that list what a
//! query of the catalog finds share one.
//!
//! A new verb is a file here, a line in [`Verb`] and a line in [`run`].

mod accept;
mod annotate;
mod archive;
mod arrays;
mod audit;
mod axes;
mod backup;
mod compact;
mod completions;
mod container;
mod copy;
mod delete;
mod doctor;
mod dump;
mod erase;
mod export;
mod find;
mod get;
mod graph;
mod hand_over;
mod help;
mod hide;
mod hold;
mod ingest;
mod init;
mod list;
mod listed;
mod lock;
mod maintain;
mod man;
mod mesh;
mod r#move;
mod objects;
mod overlay;
mod plot;
mod prefetch;
mod promote;
mod purge;
mod rebuild;
mod reindex;
mod remove;
mod repair;
mod repoint;
mod retain;
mod run;
mod schema;
mod shell;
mod show;
mod sql;
mod stats;
mod status;
mod trace;
mod transaction;
mod upgrade;
mod verify;
mod version;
mod r#where;
mod wipe;

use clap::Subcommand;

use crate::output::{Done, Out};

/// The verbs of the program.
#[allow(missing_docs)] // the help at each verb's arguments describes it
#[derive(Debug, Subcommand)]
pub enum Verb {
    Init(init::Arguments),
    Archive(archive::Arguments),
    Get(get::Arguments),
    List(list::Arguments),
    Axes(axes::Arguments),
    Show(show::Arguments),
    Where(r#where::Arguments),
    Ingest(ingest::Arguments),
    Export(export::Arguments),
    Copy(copy::Arguments),
    Move(r#move::Arguments),
    Prefetch(prefetch::Arguments),
    Plot(plot::Arguments),
    Mesh(mesh::Arguments),
    Annotate(annotate::Arguments),
    Find(find::Arguments),
    /// List runs
    #[command(after_help = listed::RUNS)]
    Runs(listed::Arguments),
    /// List steps
    #[command(after_help = listed::STEPS)]
    Steps(listed::Arguments),
    /// List variables
    #[command(after_help = listed::VARIABLES)]
    Variables(listed::Arguments),
    /// List tags
    #[command(after_help = listed::TAGS)]
    Tags(listed::Arguments),
    Arrays(arrays::Arguments),
    Sql(sql::Arguments),
    Transaction(transaction::Arguments),
    Delete(delete::Arguments),
    Remove(remove::Arguments),
    Wipe(wipe::Arguments),
    /// Lock datasets against archives, lists, reads or wipes
    #[command(after_help = lock::LOCK)]
    Lock(lock::Arguments),
    /// Unlock datasets
    #[command(after_help = lock::UNLOCK)]
    Unlock(lock::Arguments),
    /// List the locks on datasets
    #[command(after_help = lock::LOCKS)]
    Locks(lock::Listed),
    /// Make a user's datasets and runs another's
    #[command(after_help = hand_over::EXAMPLES)]
    HandOver(hand_over::Arguments),
    /// Hide datasets and indexes from readers until unhide
    #[command(after_help = hide::HIDE)]
    Hide(hide::Arguments),
    /// Show again what is hidden
    #[command(after_help = hide::UNHIDE)]
    Unhide(crate::in_force::TargetFields),
    /// Show fields under other values, too, until that is ended
    #[command(after_help = overlay::OVERLAY)]
    Overlay(overlay::Arguments),
    Reindex(reindex::Arguments),
    Erase(erase::Arguments),
    Hold(hold::Arguments),
    Backup(backup::Arguments),
    Promote(promote::Arguments),
    Objects(objects::Arguments),
    Repoint(repoint::Arguments),
    Repair(repair::Arguments),
    Accept(accept::Arguments),
    Compact(compact::Arguments),
    Purge(purge::Arguments),
    Retain(retain::Arguments),
    Maintain(maintain::Arguments),
    Upgrade(upgrade::Arguments),
    Run(run::Arguments),
    Trace(trace::Arguments),
    Audit(audit::Arguments),
    Graph(graph::Arguments),
    Rebuild(rebuild::Arguments),
    Schema(schema::Arguments),
    Stats(stats::Arguments),
    Status(status::Arguments),
    Verify(verify::Arguments),
    Dump(dump::Arguments),
    Version(version::Arguments),
    Doctor(doctor::Arguments),
    Container(container::Arguments),
    Shell(shell::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    Help(help::Arguments),
}

/// Does what a verb says.
pub fn run(verb: &Verb, out: &mut Out) -> Done {
    match verb {
        Verb::Init(arguments) => init::run(arguments, out),
        Verb::Archive(arguments) => archive::run(arguments, out),
        Verb::Get(arguments) => get::run(arguments, out),
        Verb::List(arguments) => list::run(arguments, out),
        Verb::Show(arguments) => show::run(arguments, out),
        Verb::Axes(arguments) => axes::run(arguments, out),
        Verb::Where(arguments) => r#where::run(arguments, out),
        Verb::Ingest(arguments) => ingest::run(arguments, out),
        Verb::Export(arguments) => export::run(arguments, out),
        Verb::Copy(arguments) => copy::run(arguments, out),
        Verb::Move(arguments) => r#move::run(arguments, out),
        Verb::Prefetch(arguments) => prefetch::run(arguments, out),
        Verb::Plot(arguments) => plot::run(arguments, out),
        Verb::Mesh(arguments) => mesh::run(arguments, out),
        Verb::Annotate(arguments) => annotate::run(arguments, out),
        Verb::Find(arguments) => find::run(arguments, out),
        Verb::Runs(arguments) => listed::runs(arguments, out),
        Verb::Steps(arguments) => listed::steps(arguments, out),
        Verb::Variables(arguments) => listed::variables(arguments, out),
        Verb::Tags(arguments) => listed::tags(arguments, out),
        Verb::Arrays(arguments) => arrays::run(arguments, out),
        Verb::Sql(arguments) => sql::run(arguments, out),
        Verb::Transaction(arguments) => transaction::run(arguments, out),
        Verb::Delete(arguments) => delete::run(arguments, out),
        Verb::Remove(arguments) => remove::run(arguments, out),
        Verb::Wipe(arguments) => wipe::run(arguments, out),
        Verb::Lock(arguments) => lock::run(arguments, true, out),
        Verb::Unlock(arguments) => lock::run(arguments, false, out),
        Verb::Locks(arguments) => lock::list(arguments, out),
        Verb::HandOver(arguments) => hand_over::run(arguments, out),
        Verb::Hide(arguments) => hide::run(arguments, out),
        Verb::Unhide(arguments) => hide::show(arguments, out),
        Verb::Overlay(arguments) => overlay::run(arguments, out),
        Verb::Reindex(arguments) => reindex::run(arguments, out),
        Verb::Erase(arguments) => erase::run(arguments, out),
        Verb::Hold(arguments) => hold::run(arguments, out),
        Verb::Backup(arguments) => backup::run(arguments, out),
        Verb::Promote(arguments) => promote::run(arguments, out),
        Verb::Objects(arguments) => objects::run(arguments, out),
        Verb::Repoint(arguments) => repoint::run(arguments, out),
        Verb::Repair(arguments) => repair::run(arguments, out),
        Verb::Accept(arguments) => accept::run(arguments, out),
        Verb::Compact(arguments) => compact::run(arguments, out),
        Verb::Purge(arguments) => purge::run(arguments, out),
        Verb::Retain(arguments) => retain::run(arguments, out),
        Verb::Maintain(arguments) => maintain::run(arguments, out),
        Verb::Upgrade(arguments) => upgrade::run(arguments, out),
        Verb::Run(arguments) => run::run(arguments, out),
        Verb::Trace(arguments) => trace::run(arguments, out),
        Verb::Audit(arguments) => audit::run(arguments, out),
        Verb::Graph(arguments) => graph::run(arguments, out),
        Verb::Rebuild(arguments) => rebuild::run(arguments, out),
        Verb::Schema(arguments) => schema::run(arguments, out),
        Verb::Stats(arguments) => stats::run(arguments, out),
        Verb::Status(arguments) => status::run(arguments, out),
        Verb::Verify(arguments) => verify::run(arguments, out),
        Verb::Dump(arguments) => dump::run(arguments, out),
        Verb::Version(arguments) => version::run(arguments, out),
        Verb::Doctor(arguments) => doctor::run(arguments, out),
        Verb::Shell(arguments) => shell::run(arguments, out),
        Verb::Container(arguments) => container::run(arguments, out),
        Verb::Completions(arguments) => completions::run(arguments, out),
        Verb::Man(arguments) => man::run(arguments, out),
        Verb::Help(arguments) => help::run(arguments, out),
    }
}
