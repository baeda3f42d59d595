//! `fieldstone objects`: names the files outside the store that hold a box of a variable.

use clap::Args;
use fieldstone::Error;
use fieldstone::IndexBox;
use fieldstone::Session;
use fieldstone::catalog::RunName;
use fieldstone::json;
use fieldstone::outside::plan_of;

use crate::arguments::Reading;
use crate::output::{Done, Out};
use crate::table::{self, Column};

const EXAMPLES: &str = "\
Examples:
  fieldstone objects store bump temperature --step 2
  fieldstone objects store bump temperature --step 2 --box 15:25,20:40
  fieldstone objects store bump temperature --step 2 | cut -f1 | xargs ls -l

Use it with a run that was declared with `outside`, for programs that write or read its files themselves. It computes
the names and does not look at any folder. When the output is not a terminal, each line has the path, the box that the
file holds, and the part of the requested box in it, separated by tabs; a box is FROM:TO for each dimension.

With --json: {\"objects\": [...]} of path, dataset, piece and part, these with start and count.";

/// Name the files outside the store that hold a box of a variable
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    /// The run
    run: String,
    /// The variable
    variable: String,
    /// The project of the run
    #[arg(long, default_value = "")]
    project: String,
    /// The version of the variable; by default the newest
    #[arg(long)]
    version: Option<i64>,
    /// The step
    #[arg(long, allow_negative_numbers = true)]
    step: Option<i64>,
    /// The half-open box, FROM:TO for each dimension; by default all of the variable
    #[arg(long = "box", value_name = "FROM:TO,…")]
    region: Option<String>,
}

/// Names them.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let region = arguments.region.as_deref().map(IndexBox::parse).transpose()?;
    let store = arguments.store.open()?;
    let catalog = store.catalog();
    let run = RunName { project: arguments.project.clone(), name: arguments.run.clone() };
    let of = (arguments.variable.as_str(), arguments.version);
    let ends =
        region.map_or((None, None), |region| (Some(region.start().to_vec()), Some(region.count().to_vec())));
    let plan = plan_of(catalog, &run, of, arguments.step, ends, &Session::default())?.ok_or_else(|| {
        Error::invalid(format!("run {} does not say that its data lie outside", arguments.run))
            .with_hint("a run says so when it is made: create_run(name, outside=…) in Python")
    })?;
    let columns =
        [Column::text("path").least(16).rank(9), Column::text("piece").rank(8), Column::text("part").rank(7)];
    table::list(out, "objects", plan.reads.iter().map(Ok), json::arrays::object, columns, |read| {
        vec![read.path.clone(), read.piece.to_string(), read.part.to_string()]
    })
}
