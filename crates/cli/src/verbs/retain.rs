//! `fieldstone retain`: rules of retention.

use std::time::Duration;

use clap::Args;
use fieldstone::json::values::time_in_seconds;
use fieldstone::{Code, Mode, OpenOptions, RetainOptions, RetentionRule, json};

use crate::arguments::{Selecting, Writing};
use crate::output::{Done, Out, count};
use crate::time::{parse_span, span};

const EXAMPLES: &str = "\
Examples:
  fieldstone retain store project=hot --older-than 5d
  fieldstone retain store run=a variable=t/u --versions 2
  fieldstone retain store --all --older-than 30d --versions 1
  fieldstone retain store project=hot --to /archive/store --older-than 5d
  fieldstone retain store --query 'tag=maximum and value>300' --to /archive/store
  fieldstone retain store project=hot --drop
  fieldstone retain store --list

Keeps a rule in the store, for the datasets or indexes that the request selects now and later: --older-than wipes fields
archived longer ago, --versions keeps this number of versions of each field. --to moves fields to another store, with all
on them, in place of wiping them; then the request may name single fields, or --query has those under the hits of a query
of the catalog. The other store must exist when the rule is applied. A rule does nothing by itself: `maintain`
applies it, which cron may call daily. The request is the name of its rule: another one replaces it, --drop ends it. A
rule counts for the data of whoever made it; those of root and of the store's owner count for all data.

Without a request it lists the rules. With --json: rules, each with request, query, to, older_than (seconds), versions,
owner, since.";

/// Keep rules about the age and the versions of fields
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// Take the fields under the attributes that this query finds, in place of a request
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// Move fields to this store, in place of wiping them
    #[arg(long, value_name = "OTHER")]
    to: Option<String>,
    /// Wipe, or move, fields archived longer ago than this, such as 12h or 5d
    #[arg(long, value_name = "AGE", value_parser = parse_span)]
    older_than: Option<Duration>,
    /// Keep this number of versions of each field, the visible one among them
    #[arg(long, value_name = "NUMBER")]
    versions: Option<u64>,
    /// End the rule of this request
    #[arg(long, conflicts_with_all = ["older_than", "versions", "to"])]
    drop: bool,
    /// Take the whole store where the request names no values
    #[arg(long)]
    all: bool,
    /// List the rules
    #[arg(long, conflicts_with_all = ["older_than", "versions", "drop", "all", "to", "query"])]
    list: bool,
}

/// Makes, ends or lists rules.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let Arguments { older_than, versions, drop, all, .. } = *arguments;
    let (query, to) = (arguments.query.clone(), arguments.to.clone());
    let is_named = !arguments.selecting.request.is_empty() || all || query.is_some();
    let is_change = older_than.is_some() || versions.is_some() || drop || to.is_some();
    if arguments.list || !is_named && !is_change {
        if is_named {
            let error = Code::CommandLine.error("--list takes no request: it lists all rules");
            return Err(error.with_hint("leave the request out").into());
        }
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        return list(&fieldstone::open(&arguments.store.store, &options)?.rules()?, out);
    }
    let request = arguments.selecting.parse()?;
    let store = arguments.store.open_existing()?;
    let rule = store.retain(&request, &RetainOptions { query, to, older_than, versions, drop, all })?;
    store.close()?;
    if out.json() {
        return out.document(&json::reports::rules(&[rule]));
    }
    out.line(format_args!("{} {}", if drop { "dropped" } else { "kept" }, line(&rule)))?;
    if !drop {
        out.note("nothing goes yet: fieldstone maintain applies it");
    }
    Ok(())
}

fn list(rules: &[RetentionRule], out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::reports::rules(rules));
    }
    if rules.is_empty() {
        return out.line("no rules");
    }
    let made = |rule: &RetentionRule| format!("by {} {}", rule.owner, time_in_seconds(rule.since));
    rules.iter().try_for_each(|rule| out.line(format_args!("{}, {}", line(rule), made(rule))))
}

fn line(rule: &RetentionRule) -> String {
    let request = match &rule.query {
        Some(query) => format!("(fields under) {query}"),
        None if rule.request.is_empty() => "(everything)".to_owned(),
        None => rule.request.clone(),
    };
    let old = |age| format!("older than {}", span(i64::try_from(age).unwrap_or(i64::MAX)));
    if let Some(to) = &rule.to {
        let old = rule.older_than.map_or_else(String::new, |age| format!("{} ", old(age)));
        return format!("{request}: {old}moves to {to}");
    }
    let age = |age| format!("{} goes", old(age));
    let versions =
        |n| format!("{} of a field {}", count(n, "version"), if n == 1 { "stays" } else { "stay" });
    let parts = rule.older_than.map(age).into_iter().chain(rule.versions.map(versions));
    format!("{request}: {}", parts.collect::<Vec<_>>().join(", "))
}
