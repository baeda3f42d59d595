//! `fieldstone annotate`: attributes on runs, steps and boxes of variables, one or a table of them.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fieldstone::Session;
use fieldstone::catalog::CatalogAccess;
use fieldstone::catalog::query::Term;
use fieldstone::catalog::value::ValueType;
use fieldstone::catalog::{RunName, TagDecl};
use fieldstone::helper::{Helper, HelperOptions};
use fieldstone::prelude::*;
use fieldstone::{Code, Error, ErrorKind, Request, Result, Run, Target, json};

use crate::arguments::{Writing, join};
use crate::catalog::exactly;
use crate::csv::{Cell, Csv};
use crate::output::{Done, Out, count, file_error};
use crate::rows::{COLUMNS, Defaults, Group, Rows};

/// Rows that are kept before they are given to the catalog.
const ROWS: u64 = 1_000_000;
/// Bytes that are read at a time.
const PART: usize = 1 << 20;
/// Characters of the progress bar.
const BAR: u64 = 30;

const EXAMPLES: &str = "\
Examples:
  fieldstone annotate store maximum 310.5 --run a --variable t --step 6 --box 75:81,60:81
  fieldstone annotate store quality good --run a
  fieldstone annotate store vortex true --run a --step 6 --create
  fieldstone annotate store storm 3.1 --run a --variable t --step 6 --keyword number=3
  fieldstone annotate store --csv features.csv --run a
  fieldstone annotate store --parquet features.parquet --run a --unit K

Without further options the attribute describes the run; --step makes it describe a step, --variable a variable,
--box a half-open box of elements, and --cells some cells of a mesh (or indices along the first dimension).
A tag that does not exist is created. Its type is the type of the values, or --type: bool int uint float text
bytes datetime int_range float_range array json. Write values as in queries: 310.5, true, 2026-11-21T06:00,
5..9, 0x0aff, [1, 2]. Everything else is text. So are values in quotes ('\"0042\"') and those that a number
would change: leading zeros, more than 64 bits, a commit such as 12e4567. A second value for the same place
corrects the first, unless another user gave the first.

The first line of a table names its columns: tag, value, run, project, variable, version, step, box (75:81,60:81)
or start and count (75 60; or start_0, start_1 …), cells (4 17 5), unit, type, tag_version. Give a value that all
rows share as an option instead. An empty cell means no value. Either all rows of a file are added or none, and
rows of one file do not correct one another. To read Parquet, the program runs a Python with pyarrow
(FIELDSTONE_PYTHON names one).

With --json: the number of attributes, runs and tags, and the store's version.";

/// The users who may annotate a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Annotators {
    All,
    Owner,
}

/// Tag runs, steps and boxes of variables
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The tag
    tag: Option<String>,
    /// The value
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// The run
    #[arg(long)]
    run: Option<String>,
    /// The run's project
    #[arg(long)]
    project: Option<String>,
    /// The variable
    #[arg(long)]
    variable: Option<String>,
    /// The variable's version
    #[arg(long, value_name = "N")]
    version: Option<i64>,
    /// The step
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    step: Option<i64>,
    /// The box, half-open: 75:81,60:81
    #[arg(long = "box", value_name = "FROM:TO,…", requires = "variable")]
    region: Option<String>,
    /// Cells of a variable on a mesh, in place of a box: 4,17,5
    #[arg(long, value_name = "CELL,…", requires = "variable", conflicts_with = "region")]
    cells: Option<String>,
    /// A further keyword of the schema that all attributes of this call share: number=3
    #[arg(long = "keyword", value_name = "KEYWORD=VALUE")]
    keywords: Vec<String>,
    /// The unit of the values
    #[arg(long)]
    unit: Option<String>,
    /// The type of the values
    #[arg(long = "type", value_name = "TYPE", value_parser = ValueType::ALL.map(ValueType::name))]
    kind: Option<String>,
    /// The tag's version
    #[arg(long, value_name = "N")]
    tag_version: Option<i64>,
    /// Create the runs that do not exist
    #[arg(long)]
    create: bool,
    /// The users who may annotate the runs that --create makes: all, each under their own name, or their owner alone
    #[arg(long = "annotate", value_name = "WHO", value_enum, default_value = "all", requires = "create")]
    annotators: Annotators,
    /// Read rows from this CSV file; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "parquet")]
    csv: Option<PathBuf>,
    /// Read rows from this Parquet file
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Annotate in this transaction: attributes become visible when it commits
    #[arg(long, value_name = "ID")]
    txn: Option<String>,
}

/// Annotates and flushes.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let table = arguments.csv.is_some() || arguments.parquet.is_some();
    if !table && (arguments.tag.is_none() || arguments.value.is_none()) {
        return Err(Code::CommandLine
            .error("there is no value to annotate with")
            .with_hint("give a tag and a value, --csv FILE or --parquet FILE")
            .into());
    }
    if !table && arguments.run.is_none() {
        return Err(Code::CommandLine
            .error("there is no run to annotate")
            .with_hint("name it: --run NAME")
            .into());
    }
    let session = match &arguments.txn {
        Some(id) => fieldstone::catalog::query::text::parse(&format!("transaction={id}"))?.session,
        None => Session::default(),
    };
    let store = arguments.store.open()?;
    let catalog = store.catalog();
    let keywords = Request::parse(&join(&arguments.keywords))?.single_pairs()?;
    let taken = Taken::default();
    let mut taking = Taking { store: &store, catalog, arguments, session: session.clone(), keywords, taken };
    let outcome = match (&arguments.csv, &arguments.parquet) {
        (Some(path), _) => taking.csv(path, out),
        (_, Some(path)) => taking.parquet(path, out),
        _ => taking.one(),
    };
    let Taken { attributes, runs, tags } = taking.taken;
    if let Err(stop) = outcome {
        // Whole or not at all: what was taken before the error goes with it.
        store.discard(session)?;
        return Err(stop);
    }
    store.flush(session)?;
    let version = store.version()?;
    if out.json() {
        let (runs, tags) = (runs.len(), tags.len());
        out.document(&json::catalog::annotated(attributes, runs, tags, &version))?;
    } else {
        let parts = [count(runs.len() as u64, "run"), count(tags.len() as u64, "tag")];
        let done = count(attributes, "attribute");
        out.note(format_args!("annotated {done}: {}", parts.join(", ")));
    }
    Ok(store.close()?)
}

/// Counts of the rows added so far.
#[derive(Debug, Default)]
struct Taken {
    attributes: u64,
    runs: Vec<RunName>,
    tags: Vec<String>,
}

/// A call that is being made.
struct Taking<'a> {
    store: &'a fieldstone::Store,
    catalog: &'a dyn CatalogAccess,
    arguments: &'a Arguments,
    session: Session,
    /// Further keywords of all rows.
    keywords: Vec<(String, String)>,
    taken: Taken,
}

impl Taking<'_> {
    fn one(&mut self) -> Done {
        let mut rows = Rows::new(&[], None, self.arguments.defaults())?;
        rows.push(1, &[]).map_err(without_line)?;
        Ok(self.give(&mut rows).map_err(without_line)?)
    }

    fn csv(&mut self, path: &Path, out: &Out) -> Done {
        let (mut from, of): (Box<dyn Read>, u64) = if path == Path::new("-") {
            (Box::new(std::io::stdin()), 0)
        } else {
            let file = fieldstone::files::open(path).map_err(|e| file_error("read", path, e))?;
            let length = file.metadata().map_or(0, |facts| facts.len());
            (Box::new(file), length)
        };
        let bar = Bar::new();
        let mut csv = Csv::new();
        let mut rows: Option<Rows> = None;
        let (mut part, mut done) = (vec![0; PART], 0);
        loop {
            let n = from.read(&mut part).map_err(|e| file_error("read", path, e))?;
            done += n as u64;
            let mut take = |line: u64, cells: &[Cell]| match &mut rows {
                Some(rows) => {
                    rows.push(line, cells)?;
                    if rows.len() >= ROWS { self.give(rows) } else { Ok(()) }
                }
                None => {
                    let names: Vec<String> = cells.iter().map(|cell| cell.text.clone()).collect();
                    rows = Some(Rows::new(&names, None, self.arguments.defaults())?);
                    Ok(())
                }
            };
            let named = |error: Error| error.context(path.display());
            match n {
                0 => csv.finish(&mut take).map_err(named)?,
                n => csv.push(&part[..n], &mut take).map_err(named)?,
            }
            bar.show(done, of, rows.as_ref().map_or(0, Rows::len) + self.taken.attributes, out);
            if n == 0 {
                break;
            }
        }
        bar.clear(out);
        match &mut rows {
            Some(rows) => Ok(self.give(rows).map_err(|error| error.context(path.display()))?),
            None => Err(Error::invalid(format!("{}: the file is empty", path.display()))
                .with_hint("its first line names the columns")
                .into()),
        }
    }

    fn parquet(&mut self, path: &Path, out: &Out) -> Done {
        let bar = Bar::new();
        let mut rows: Option<Rows> = None;
        let mut helper = Helper::start(&HelperOptions::default())?;
        let mut line = 0;
        let named = |error: Error| error.context(path.display());
        helper
            .rows(path, |columns, done, of, bytes| {
                let rows = match &mut rows {
                    Some(rows) => rows,
                    None => {
                        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
                        let kind = columns.iter().find(|(name, _)| name == "value").map(|(_, kind)| kind);
                        let kind = kind.map(|kind| ValueType::parse(kind)).transpose()?;
                        rows.insert(Rows::new(&names, kind, self.arguments.defaults())?)
                    }
                };
                let mut csv = Csv::commas();
                let mut take = |_: u64, cells: &[Cell]| {
                    line += 1;
                    rows.push(line, cells)
                };
                csv.push(bytes, &mut take)?;
                csv.finish(&mut take)?;
                if rows.len() >= ROWS {
                    self.give(rows)?;
                }
                bar.show(done, of, done, out);
                Ok(())
            })
            .map_err(named)?;
        bar.clear(out);
        if let Some(rows) = &mut rows {
            self.give(rows).map_err(named)?;
        }
        Ok(())
    }

    /// Gives all rows to the catalog.
    fn give(&mut self, rows: &mut Rows) -> Result<()> {
        let batches = rows.take(|group| self.kind_of(group), |group, kind| self.tag_of(group, kind))?;
        for batch in batches {
            if !self.taken.runs.contains(&batch.run) {
                self.make_run(&batch.run)?;
                self.taken.runs.push(batch.run.clone());
            }
            if !self.taken.tags.contains(&batch.tag.name) {
                self.taken.tags.push(batch.tag.name.clone());
            }
            let is_first = self.taken.attributes == 0;
            self.taken.attributes += batch.rows as u64;
            let run = Run::new(self.store, batch.run, &self.session);
            let named = |target: Target, (keyword, value): &(String, String)| target.keyword(keyword, value);
            let target = self.keywords.iter().fold(batch.target, named);
            // A file is one call, however many parts it is taken in.
            match is_first {
                true => run.annotate_rows(batch.tag, batch.values, false, &target)?,
                false => run.annotate_more(batch.tag, batch.values, &target)?,
            }
        }
        Ok(())
    }

    fn make_run(&self, run: &RunName) -> Result<()> {
        if !self.arguments.create {
            return Ok(());
        }
        match self.catalog.run(Some(&run.project), &run.name, &self.session) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
        let new = self.store.create_run(&run.name).project(&run.project).within(&self.session).exist_ok();
        let new = match self.arguments.annotators {
            Annotators::All => new,
            Annotators::Owner => new.annotated_by_owner(),
        };
        new.create().map(drop)
    }

    /// The tags of a group's name that are there.
    fn known(&self, group: &Group) -> Result<Vec<TagDecl>> {
        let mut query = exactly(Term::Tag, &group.tag);
        query.session = self.session.clone();
        let tags = match self.catalog.tags(&query) {
            // The store is made by the commit that this is on its way to.
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            tags => tags?,
        };
        Ok(tags
            .into_iter()
            .filter(|tag| group.tag_version.is_none_or(|version| tag.version == version))
            .filter(|tag| group.unit.as_ref().is_none_or(|unit| tag.decl.unit == *unit))
            .map(|tag| tag.decl)
            .collect())
    }

    fn kind_of(&self, group: &Group) -> Result<Option<ValueType>> {
        Ok(match &self.known(group)?[..] {
            [only] => Some(only.kind),
            _ => None,
        })
    }

    fn tag_of(&self, group: &Group, kind: ValueType) -> Result<TagDecl> {
        let asked = || Ok::<_, Error>(self.known(group)?.iter().any(|tag| tag.kind == kind));
        if group.unit.is_none() && (group.kind.is_none() || asked()?) {
            return self.catalog.tag_for(&group.tag, group.tag_version, kind, &self.session);
        }
        let unit = group.unit.as_deref().unwrap_or_default();
        self.catalog.tag_in_unit(&group.tag, group.tag_version, kind, unit, &self.session)
    }
}

impl Arguments {
    fn defaults(&self) -> Defaults {
        let number = |n: Option<i64>| n.map(|n| n.to_string());
        let given = [
            ("tag", self.tag.clone()),
            ("value", self.value.clone()),
            ("run", self.run.clone()),
            ("project", self.project.clone()),
            ("variable", self.variable.clone()),
            ("version", number(self.version)),
            ("step", number(self.step)),
            ("box", self.region.clone()),
            ("cells", self.cells.clone()),
            ("unit", self.unit.clone()),
            ("type", self.kind.clone()),
            ("tag_version", number(self.tag_version)),
        ];
        let mut defaults = Defaults::default();
        for (name, text) in given {
            if let Some(at) = COLUMNS.iter().position(|known| *known == name) {
                defaults.cells[at] = text;
            }
        }
        defaults
    }
}

/// An error about the single attribute of the command line, which has no line number.
fn without_line(error: Error) -> Error {
    let message = error.message().strip_prefix("line 1: ").unwrap_or(error.message()).to_owned();
    let hint = error.hint().map(str::to_owned);
    let error = Error::new(error.code(), message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Progress on stderr: a bar on a terminal, otherwise nothing.
struct Bar {
    on_terminal: bool,
}

impl Bar {
    fn new() -> Bar {
        Bar { on_terminal: std::io::stderr().is_terminal() }
    }

    fn show(&self, done: u64, of: u64, rows: u64, out: &Out) {
        if self.on_terminal {
            let filled = done.saturating_mul(BAR).checked_div(of).unwrap_or(0).min(BAR) as usize;
            let bar = "█".repeat(filled) + &"·".repeat(BAR as usize - filled);
            out.status(format_args!("{bar} {}", count(rows, "row")));
        }
    }

    fn clear(&self, out: &Out) {
        if self.on_terminal {
            out.status("");
        }
    }
}
