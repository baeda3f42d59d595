//! Hides, locks and overlays: what somebody sets on datasets, and what lists print as long as it holds.

use clap::Args;
use serde_json::Value;

use crate::arguments::{Selecting, Writing};
use crate::catalog::moment_cell;
use crate::output::{Done, Out, count};
use crate::table::{Column, Table};

/// The store, and the fields in it to which a verb does something.
#[derive(Debug, Args)]
pub struct TargetFields {
    #[command(flatten)]
    pub(crate) store: Writing,
    #[command(flatten)]
    pub(crate) selecting: Selecting,
}

/// Prints how many there are, under a name that is also their noun with an s.
pub fn print_count(number: u64, noun: &str, line: impl Fn(&str) -> String, out: &mut Out) -> Done {
    if out.json() {
        return out.document(&Value::from_iter([(format!("{noun}s"), number)]));
    }
    let what = if number == 0 { "nothing".to_owned() } else { count(number, noun) };
    out.line(line(&what))
}

/// Prints what is in force: some columns of its own, who set it, and since when.
pub fn print_list<'a, const N: usize>(
    names: [&'static str; N],
    rows: impl Iterator<Item = ([String; N], &'a str, i64)>,
    document: impl FnOnce() -> Value,
    out: &mut Out,
) -> Done {
    if out.json() {
        return out.document(&document());
    }
    let own = names.map(|name| Column::text(name).least(8).rank(9));
    let common = [Column::text("by").least(4).rank(8), Column::text("since").rank(7)];
    let mut table = Table::new(own.into_iter().chain(common));
    for (cells, by, since) in rows {
        let common = [by.to_owned(), moment_cell(since)];
        table.row(cells.into_iter().chain(common).collect(), out)?;
    }
    table.finish(out)
}
