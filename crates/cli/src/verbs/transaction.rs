//! `fieldstone transaction`: what scripts begin, and decide when their jobs have ended.

use clap::{Args, Subcommand};
use fieldstone::json::values::time_in_seconds;
use fieldstone::prelude::*;
use fieldstone::{Code, Error, Id, json};

use crate::arguments::{Reading, Writing};
use crate::output::{Done, Out, count};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  TX=$(fieldstone transaction begin store)
  export TX; srun ./model && fieldstone transaction commit store $TX || fieldstone transaction abort store $TX
  fieldstone transaction list store";

/// Begin, list and decide transactions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const BEGIN: &str = "\
Examples:
  TX=$(fieldstone transaction begin store)

Prints the id. Each process of the job joins the transaction by this id, in Python with
store.transaction(id=os.environ[\"TX\"]); the fields that it flushes are durable, and invisible until the commit. This
verb writes nothing: an unused id leaves no trace. With --json: {\"id\"}";

const LIST: &str = "\
Examples:
  fieldstone transaction list store
  fieldstone transaction list store --json | jq -r '.[].id'

Lists transactions with flushed fields that are neither committed nor aborted. With --json: [{\"id\", \"since\",
\"fields\", \"owners\"}]";

const COMMIT: &str = "\
Examples:
  fieldstone transaction commit store $TX

Makes everything visible at once that processes of this user flushed into the transaction. Later flushes under the id
are refused, so commit after the job has ended. Ends with 3 if nothing was flushed into it, and with 4 if it was
aborted; committing it again changes nothing. With --json: {\"id\", \"fields\"}";

const ABORT: &str = "\
Examples:
  fieldstone transaction list store --json | jq -r '.[].id' | xargs -n1 fieldstone transaction abort store

Everything flushed into the transaction stays invisible for good. Ends with 4 if it was committed; aborting it again
changes nothing.
With --json: {\"id\", \"fields\"}";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the id of a new transaction
    #[command(after_help = BEGIN)]
    Begin {
        #[command(flatten)]
        store: Writing,
    },
    /// List those that nobody has decided
    #[command(after_help = LIST)]
    List {
        #[command(flatten)]
        store: Reading,
    },
    /// Make all that was flushed into one visible
    #[command(after_help = COMMIT)]
    Commit {
        #[command(flatten)]
        store: Writing,
        /// Its id
        id: String,
    },
    /// Forget all that was flushed into one
    #[command(after_help = ABORT)]
    Abort {
        #[command(flatten)]
        store: Writing,
        /// Its id
        id: String,
    },
}

/// Does what the second word says.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    match &arguments.action {
        Action::Begin { store } => begin(store, out),
        Action::List { store } => list(store, out),
        Action::Commit { store, id } => decide(store, id, true, out),
        Action::Abort { store, id } => decide(store, id, false, out),
    }
}

fn begin(store: &Writing, out: &mut Out) -> Done {
    let id = store.open()?.begin()?;
    if out.json() {
        return out.document(&json::reports::begun(&id));
    }
    out.line(id)
}

fn list(store: &Reading, out: &mut Out) -> Done {
    let store = store.open()?;
    // Without its logs a store has no transactions, and status says so; here it is an error.
    store.version()?;
    let open = store.status()?.transactions;
    if out.json() {
        return out.document(&open.iter().map(json::reports::transaction).collect());
    }
    let mut table = Table::new([
        Column::text("id").least(32),
        Column::text("since"),
        Column::number("fields"),
        Column::text("by").rank(2),
    ]);
    for t in &open {
        let cells =
            vec![t.id.to_string(), time_in_seconds(t.since), t.fields.to_string(), t.owners.join(", ")];
        table.row(cells, out)?;
    }
    table.finish(out)
}

fn decide(store: &Writing, text: &str, commit: bool, out: &mut Out) -> Done {
    let id = Id::parse(text).ok_or_else(|| {
        Error::invalid(format!("'{text}' is not a valid transaction id")).with_hint(
            "give what `fieldstone transaction begin` printed, or see `fieldstone transaction list`",
        )
    })?;
    let store = store.open()?;
    let fields = store.status()?.transactions.iter().find(|t| t.id == id).map(|t| t.fields);
    if fields.is_none() && !store.is_decided(id)? {
        return Err(Code::NotFound
            .error(format!("nothing was flushed into transaction {id}"))
            .with_hint("see `fieldstone transaction list`; did the job join it, and flush?")
            .into());
    }
    store.decide(id, commit)?;
    store.close()?;
    if out.json() {
        return out.document(&json::reports::decided(&id, fields.unwrap_or(0)));
    }
    let done = if commit { "committed" } else { "aborted" };
    out.line(format_args!("{done} {}", count(fields.unwrap_or(0), "field")))
}
