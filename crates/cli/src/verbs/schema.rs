//! `fieldstone schema`: shows and checks schemas, applies them to keys, and extends the schema of a store.

use std::io::Read;
use std::path::Path;

use clap::{Args, Subcommand};
use fieldstone::prelude::*;
use fieldstone::{Error, Mode, OpenOptions, Request, Result, RuleDescription, Schema, json};

use crate::arguments::{Selecting, join};
use crate::output::{Done, Format, Out, count, file_error};
use crate::table::{Column, Table};
use fieldstone::Session;

const EXAMPLES: &str = "\
Examples:
  fieldstone schema show mars
  fieldstone schema show store --json
  fieldstone schema check my.schema
  fieldstone schema key mars class=od expver=1 stream=oper date=20260101 type=an param=t
  fieldstone schema expand simulation run=a variable=t/u step=0/to/24/by/6
  fieldstone schema add store 'number?: Integer;'";

/// Show and check schemas, try keys on them, and extend a store's
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const CHECK: &str = "\
Examples:
  fieldstone schema check my.schema
  generate-schema | fieldstone schema check -

Ends with 2 if the schema is wrong, and shows line, column and the place in the line. A rule that no key reaches,
because an earlier rule takes all its keys, is a warning.
With --json: {\"ok\", \"errors\": [{\"line\", \"column\", \"message\", \"hint\"}], \"warnings\": [...], \"rules\"}";

const SHOW: &str = "\
Examples:
  fieldstone schema show mars > my.schema
  fieldstone schema show store --json | jq '.rules[0].levels[0].keywords[].name'

With --json: name (null for one of your own), text, catalog (which keywords are run, step and variable)
and rules, each with levels of keywords (name, type, required, hidden, default, only, except) and open.";

const KEY: &str = "\
Examples:
  fieldstone schema key simulation run=a step=06 variable=t
  fieldstone schema key store class=od,expver=1,stream=oper,date=20260101,type=an,param=t

Prints the rule by which a field with this key would be archived, the canonical form of the key, and the level of each
keyword.";

const EXPAND: &str = "\
Examples:
  fieldstone schema expand simulation run=a variable=t/u step=0/to/24/by/6
  fieldstone schema expand mars @request.mars | wc -l

Prints one key on each line, whether or not such a field exists. The request must list every keyword that the rule
requires.";

const ADD: &str = "\
Examples:
  fieldstone schema add store 'number?: Integer;'
  fieldstone schema add store more.schema
  echo '[centre [type [step]]]' | fieldstone schema add store -

New rules come after the existing ones, so that every key made by these stays the same, down to its bytes.
`number?: Integer;` adds an optional keyword to every rule that does not accept further ones (`*`). A new rule is
refused if an existing one takes all its keys. Only the owner of the store may extend the schema; every process that
has the store open picks up the new rules. With --json: {\"url\", \"rules\", \"added\": [...]}";

#[derive(Debug, Subcommand)]
enum Action {
    /// Add rules and optional keywords to a store's schema
    #[command(after_help = ADD)]
    Add {
        /// The store
        store: String,
        /// The rules and optional keywords, a file with them, or - for stdin
        #[arg(value_name = "TEXT|FILE")]
        text: String,
    },
    /// Read a schema and report its errors
    #[command(after_help = CHECK)]
    Check {
        /// A schema file; - reads stdin
        file: String,
    },
    /// Print a schema
    #[command(after_help = SHOW)]
    Show {
        /// simulation, mars, a store or a schema file
        #[arg(value_name = "SCHEMA|STORE")]
        of: String,
    },
    /// Show the key that keywords make
    #[command(after_help = KEY)]
    Key {
        /// simulation, mars, a store or a schema file
        #[arg(value_name = "SCHEMA|STORE")]
        of: String,
        /// The key as keyword=value
        #[arg(required = true)]
        key: Vec<String>,
    },
    /// Print the keys that a request names
    #[command(after_help = EXPAND)]
    Expand {
        /// simulation, mars, a store or a schema file
        #[arg(value_name = "SCHEMA|STORE")]
        of: String,
        #[command(flatten)]
        selecting: Selecting,
    },
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    match &arguments.action {
        Action::Add { store, text } => add(store, text, out),
        Action::Check { file } => check(file, out),
        Action::Show { of } => show(&find(of)?, out),
        Action::Key { of, key } => show_key(&find(of)?, key, out),
        Action::Expand { of, selecting } => expand(&find(of)?, &selecting.parse()?, out),
    }
}

/// The schema that a word names.
fn find(word: &str) -> Done<Schema> {
    if let Some(schema) = Schema::builtin(word).filter(|_| !Path::new(word).exists()) {
        return Ok(schema);
    }
    if word != "-" && !Path::new(word).is_file() {
        let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let opened = fieldstone::open(word, &reading);
        let store = opened.map_err(|e| e.with_hint("give simulation, mars, a store or a schema file"))?;
        return Ok(store.schema());
    }
    let text = read(word)?;
    Schema::parse(&text).map_err(|e| located(&e, &text, word).into())
}

fn read(file: &str) -> Done<String> {
    let mut bytes = Vec::new();
    match file {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(drop),
        _ => fieldstone::files::read(Path::new(file)).map(|read| bytes = read),
    }
    .map_err(|e| file_error("read", Path::new(file), e))?;
    String::from_utf8(bytes).map_err(|_| {
        let wrong = Error::invalid(format!("{file} is not UTF-8 text"));
        wrong.with_hint("a schema is a text; see fieldstone schema show simulation").into()
    })
}

/// Line and column that a message of the parser names, and the rest of it.
fn place(message: &str) -> Option<(usize, usize, &str)> {
    let (line, rest) = message.strip_prefix("schema line ")?.split_once(", column ")?;
    let (column, rest) = rest.split_once(": ")?;
    Some((line.parse().ok()?, column.parse().ok()?, rest))
}

/// The error with the line and a caret under the place.
fn located(error: &Error, text: &str, file: &str) -> Error {
    let hint = error.hint().unwrap_or("see fieldstone schema show simulation for one that is right");
    let Some((line, column, what)) = place(error.message()) else {
        return error.replicate().context(file).with_hint(hint);
    };
    // Tabs would put the caret elsewhere than the place.
    let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or("").replace('\t', " ");
    // A window of a very long line.
    let from = column.saturating_sub(60);
    let shown: String =
        shown.chars().skip(from).take(100).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let number = line.to_string();
    let caret = format!("{:>width$}^", "", width = column.saturating_sub(from + 1));
    let margin = " ".repeat(number.len());
    Error::new(
        error.code(),
        format!("{file}:{line}:{column}: {what}\n {number} | {shown}\n {margin} | {caret}"),
    )
    .with_hint(hint)
}

fn check(file: &str, out: &mut Out) -> Done {
    let text = read(file)?;
    let schema = match Schema::parse(&text) {
        Ok(schema) => schema,
        Err(error) => {
            if out.json() {
                let place = place(error.message());
                out.document(&json::fields::schema_refused(&error, place))?;
            }
            return Err(located(&error, &text, file).into());
        }
    };
    let rules = schema.rules();
    let warnings: Vec<String> = schema.unreachable().into_iter().map(|pair| warning(pair, &rules)).collect();
    if out.json() {
        return out.document(&json::fields::schema_checked(rules.len(), &warnings));
    }
    for warning in &warnings {
        out.line(format_args!("warning: {warning}"))?;
    }
    out.line(format_args!(
        "{file}: {}, {}: right",
        count(rules.len() as u64, "rule"),
        count(schema.keywords().len() as u64, "keyword")
    ))
}

/// Extends the schema of an existing store.
fn add(url: &str, given: &str, out: &mut Out) -> Done {
    // No path that anybody has holds these, and no extension lacks them.
    let is_text = given.contains(['[', ';', '?']);
    let (text, name) = if is_text { (given.to_owned(), "the text") } else { (read(given)?, given) };
    fieldstone::open(url, &OpenOptions { mode: Mode::Read, ..OpenOptions::default() })?;
    let store = fieldstone::open(url, &OpenOptions::default())?;
    let before = store.schema().rules().len();
    let schema = store.extend_schema(&text, &Session::default()).map_err(|e| match place(e.message()) {
        Some(_) => located(&e, &text, name),
        None => e,
    })?;
    store.close()?;
    let rules: Vec<String> = schema.rules().iter().map(ToString::to_string).collect();
    let added = rules.get(before..).unwrap_or_default();
    if out.json() {
        return out.document(&json::fields::schema_extended(url, rules.len(), added));
    }
    added.iter().try_for_each(|rule| out.line(format_args!("added: {rule}")))
}

fn warning((rule, by): (usize, usize), rules: &[RuleDescription]) -> String {
    let text = |i: usize| rules.get(i).map(ToString::to_string).unwrap_or_default();
    let (later, earlier) = (rule + 1, by + 1);
    format!("no key reaches rule {later}, {}: rule {earlier}, {}, takes them all", text(rule), text(by))
}

fn show(schema: &Schema, out: &mut Out) -> Done {
    if !out.json() {
        let text = schema.text();
        return out.text(if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") });
    }
    out.document(&json::fields::schema(schema))
}

fn show_key(schema: &Schema, words: &[String], out: &mut Out) -> Done {
    let pairs = Request::parse(&join(words))?.single_pairs()?;
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let key = schema.resolve(&pairs)?;
    let kind = |name: &str| schema.type_of(name).map_or("Text", |kind| kind.name());
    if out.json() {
        return out.document(&json::fields::key_in_levels(&key));
    }
    out.line(&key)?;
    let names = ["level", "keyword", "value", "type"];
    let mut table = Table::new(names.map(|name| Column::text(name).least(8)));
    for (level, word) in key.levels.iter().zip(["dataset", "index", "field"]) {
        for (name, value) in level.names.iter().zip(&level.values).filter(|(_, v)| !v.is_absent()) {
            table.row([word, name, &value.text(), kind(name)].map(str::to_owned).to_vec(), out)?;
        }
    }
    table.finish(out)
}

fn expand(schema: &Schema, request: &Request, out: &mut Out) -> Done {
    let keys = schema.select(request)?.keys().ok_or_else(|| open_keyword(schema, request))?;
    if out.format() == Format::Text {
        for key in keys {
            out.line(&key)?;
            out.line_done()?;
        }
        return Ok(());
    }
    out.items("keys", keys.map(|key| Result::Ok(json::fields::key(&key, 3))))
}

fn open_keyword(schema: &Schema, request: &Request) -> Error {
    let given = |name: &str| request.get(name).is_some();
    let lacks = schema.rules().first().map(|rule| {
        let all = rule.levels.iter().flat_map(|level| &level.keywords);
        let lacking: Vec<&str> = all.filter(|k| k.required && !given(&k.name)).map(|k| &*k.name).collect();
        lacking.join(", ")
    });
    let error =
        Error::invalid("the request names no keys outright: a required keyword has no list of values");
    match lacks.filter(|names| !names.is_empty()) {
        Some(names) => error.with_hint(format!("list values for {names}")),
        None => error,
    }
}
