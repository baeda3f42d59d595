//! `fieldstone list`: lists fields, a line each, as it finds them.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fieldstone::Session;
use fieldstone::env::Clock;
use fieldstone::json::values::time_in_seconds;
use fieldstone::prelude::*;
use fieldstone::unpacked::unpacked;
use fieldstone::{
    Env, Error, ErrorKind, ListEntry, ListOptions, Listing, Mode, OpenOptions, Request, Store, json,
};

use crate::ahead::ahead;
use crate::arguments::{Reading, Selecting, version};
use crate::compact::Compact;
use crate::explain;
use crate::output::{Done, Format, Out, count};
use crate::table::{Column, Table, shape_cell};

const EXAMPLES: &str = "\
Examples:
  fieldstone list store
  fieldstone list store run=a,step=0/to/24/by/6 --long
  fieldstone list store --compact
  fieldstone list store --depth 1
  fieldstone list store run=a --jsonl | jq -r .key.variable
  fieldstone list store run=live --follow
  fieldstone list store --since $(cat seen) --long

When the output is not a terminal, each line is a key, which you can use as a request. --location adds a tab and
file:offset. With --long, each line has bytes, element type, shape, time of the flush, owner, location and key,
separated by tabs. On a terminal it prints a table that fits the width.

--since lists the fields that became visible after a version (`fieldstone version`): new fields, and those with a newer
version or piece. --follow then goes on with each field that is flushed from now on; a field appears again with each new
piece. It waits for the store if that does not exist yet. It ends on Ctrl-C, when nothing arrived for --timeout seconds,
or when its output is closed, as in: fieldstone list store --follow | grep -m1 step=240

With --json: {\"fields\": [...]}, with --jsonl the same objects, one a line: key, nbytes, dtype, shape,
complete, masked, time, owner, location and, for arrays of numbers, min, max and missing. For packed variables of
ingested files these describe the unpacked values; they are null if the index knows only a fill value.";

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
    /// Also list versions that newer ones hide
    #[arg(long)]
    masked: bool,
    /// List fields that became visible after this version, or with @FILE after the version in a file
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["masked", "at"])]
    since: Option<String>,
    /// Go on listing fields as they are flushed
    #[arg(short, long, conflicts_with_all = ["masked", "compact", "at"])]
    follow: bool,
    /// End when no field arrived for this number of seconds
    #[arg(long, value_name = "SECONDS", requires = "follow")]
    timeout: Option<f64>,
    /// Show size, type, shape, time, owner and location
    #[arg(short, long)]
    long: bool,
    /// Show where the bytes of each field begin
    #[arg(long)]
    location: bool,
    /// Print requests that select the fields, instead of the fields: variable=t/u,step=0/to/24/by/6
    #[arg(short, long, conflicts_with_all = ["depth", "masked", "long", "location"])]
    compact: bool,
}

/// Lists.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let options =
        ListOptions { depth: arguments.depth, masked: arguments.masked, session: Session::default() };
    if arguments.follow {
        return follow(arguments, requests, &options, out);
    }
    let store = arguments.store.open()?;
    if let Some(since) = &arguments.since {
        let (entries, _) = store.all_of(requests).list_since(&version(since)?, &options)?;
        return arguments.print(&store, requests, entries, out);
    }
    let mut entries = store.all_of(requests).list(&options)?.peekable();
    if entries.peek().is_none()
        && let [request] = requests
        && !request.is_empty()
        && let Some(why) = explain::why(&store, request)
    {
        out.note(format_args!("nothing: {why}"));
    }
    arguments.print(&store, requests, Box::new(entries), out)
}

impl Arguments {
    fn print(&self, store: &Store, requests: &[Request], entries: Listing, out: &mut Out) -> Done {
        if self.compact {
            return compact(entries, out);
        }
        if out.json() {
            let entries = unpacked(store, requests, entries);
            return out.items("fields", entries.map(|entry| Ok(json::fields::entry(&entry?))));
        }
        let columns = self.columns(out.width().is_some());
        let mut table = Table::new(columns.iter().map(|&(column, _)| column.layout()));
        let mut listed = 0;
        for entry in ahead(entries) {
            let entry = entry?;
            listed += 1;
            table.row(columns.iter().map(|(_, cell)| cell(&entry)).collect(), out)?;
        }
        table.finish(out)?;
        // More than a screen: who scrolled past the beginning wants to know how much it was.
        if out.is_terminal() && listed > SCREEN {
            out.note(count(listed, "field"));
        }
        Ok(())
    }
}

/// How often `--follow` checks that its output is still read, and whether the store exists by now.
const LOOK: Duration = Duration::from_millis(250);

/// The time limit of `--follow`, and the moment from which it counts.
struct Patience {
    clock: Arc<dyn Clock>,
    timeout: Duration,
    last: u64,
}

impl Patience {
    /// The time that is left; none once it is over.
    fn left(&self) -> Option<Duration> {
        let waited = Duration::from_nanos(self.clock.monotonic() - self.last);
        self.timeout.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

/// The store, once it exists, and whether it was created during the wait; none if the time ran out or the output was
/// closed.
fn opened(arguments: &Arguments, patience: &Patience, out: &Out) -> Done<Option<(Store, bool)>> {
    let mut waits = false;
    loop {
        match arguments.store.open() {
            Ok(store) => return Ok(Some((store, waits))),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let Some(left) = patience.left().filter(|_| out.is_read()) else { return Ok(None) };
        if !std::mem::replace(&mut waits, true) {
            out.note(format_args!("no store at {} yet: waiting for it", arguments.store.store));
        }
        patience.clock.sleep(left.min(LOOK).as_nanos() as u64);
    }
}

/// Lists fields as they become visible, until the time is over or the output is closed.
fn follow(arguments: &Arguments, requests: &[Request], options: &ListOptions, out: &mut Out) -> Done {
    if out.format() == Format::Json {
        return Err(Error::invalid("--follow cannot print one JSON document")
            .with_hint("use --jsonl: an object a line")
            .into());
    }
    let timeout = match arguments.timeout.map(Duration::try_from_secs_f64).transpose() {
        Ok(timeout) => timeout.unwrap_or(Duration::MAX),
        Err(_) => return Err(Error::invalid("--timeout is not a number of seconds").into()),
    };
    let clock = Env::real().clock;
    let mut patience = Patience { last: clock.monotonic(), clock, timeout };
    let columns = arguments.columns(out.width().is_some());
    let mut table = Table::new(columns.iter().map(|&(column, _)| column.layout()));
    let mut print = |entries: Listing, store: &Store, out: &mut Out| -> Done<bool> {
        let mut some = false;
        let entries = if out.json() { unpacked(store, requests, entries) } else { entries };
        for entry in entries {
            let entry = entry?;
            match out.json() {
                true => out.document(&json::fields::entry(&entry))?,
                false => table.row(columns.iter().map(|(_, cell)| cell(&entry)).collect(), out)?,
            }
            some = true;
        }
        table.finish(out)?;
        out.finish()?;
        Ok(some)
    };
    let Some((store, came)) = opened(arguments, &patience, out)? else { return Ok(()) };
    let mut seen = match &arguments.since {
        Some(since) => version(since)?,
        None => store.version()?,
    };
    if came && arguments.since.is_none() {
        // All of it was flushed since this began.
        let at = Some(seen.clone());
        let then = fieldstone::open(
            &arguments.store.store,
            &OpenOptions { mode: Mode::Read, at, ..OpenOptions::default() },
        )?;
        if print(then.all_of(requests).list(options)?, &then, out)? {
            patience.last = patience.clock.monotonic();
        }
    }
    while let Some(left) = patience.left().filter(|_| out.is_read()) {
        if store.wait(&seen, left.min(LOOK))? {
            let (entries, now) = store.all_of(requests).list_since(&seen, options)?;
            seen = now;
            if print(entries, &store, out)? {
                patience.last = patience.clock.monotonic();
            }
        }
    }
    Ok(())
}

/// Lines that a terminal shows at once, about.
const SCREEN: u64 = 24;

/// A column of the list.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Bytes,
    Type,
    Shape,
    Flushed,
    Owner,
    Location,
    Key,
}

type Cell = fn(&ListEntry) -> String;

impl Shown {
    fn layout(self) -> Column {
        match self {
            Shown::Bytes => Column::number("bytes").rank(8),
            Shown::Type => Column::text("type").rank(6),
            Shown::Shape => Column::text("shape").rank(7),
            Shown::Flushed => Column::text("flushed").rank(4),
            Shown::Owner => Column::text("owner").least(6).rank(2),
            Shown::Location => Column::text("location").least(16).rank(3),
            Shown::Key => Column::text("key").least(20).rank(9),
        }
    }

    fn cell(self) -> Cell {
        match self {
            Shown::Bytes => |e| e.nbytes.to_string(),
            Shown::Type => |e| e.dtype.map_or_else(|| "bytes".to_owned(), |d| d.to_string()),
            Shown::Shape => |e| shape_cell(e.shape.as_deref()),
            Shown::Flushed => |e| time_in_seconds(e.time),
            Shown::Owner => |e| e.owner.to_string(),
            Shown::Location => |e| e.place.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            Shown::Key => key,
        }
    }
}

impl Arguments {
    fn columns(&self, on_terminal: bool) -> Vec<(Shown, Cell)> {
        use Shown::{Bytes, Flushed, Key, Location, Owner, Shape, Type};
        let shown = match (self.depth < 3, self.long, self.location) {
            (true, ..) => vec![Key],
            (_, true, _) => vec![Bytes, Type, Shape, Flushed, Owner, Location, Key],
            (_, _, true) => vec![Key, Location],
            _ if on_terminal => vec![Bytes, Type, Shape, Key],
            _ => vec![Key],
        };
        shown.into_iter().map(|shown| (shown, shown.cell())).collect()
    }
}

/// `{run=a}{variable=t}{step=6}`, as deep as the list goes.
fn key(entry: &ListEntry) -> String {
    let mut text = String::with_capacity(64);
    entry.key.write(usize::from(entry.depth), &mut text);
    if entry.masked {
        text.push_str(" (masked)");
    } else if !entry.complete && entry.depth >= 3 {
        text.push_str(" (incomplete)");
    }
    text
}

/// Requests, each of which names exactly its fields; index by index.
fn compact(entries: Listing, out: &mut Out) -> Done {
    let requests = Compact::new(entries);
    if out.json() {
        return out.items("requests", requests.map(|r| r.map(|r| r.json())));
    }
    let columns = [Column::number("fields").rank(8), Column::text("request").least(20).rank(9)];
    let mut table = Table::new(columns);
    for request in requests {
        let request = request?;
        match out.width() {
            Some(_) => table.row(vec![request.fields.to_string(), request.to_string()], out)?,
            None => {
                out.line(&request)?;
                out.line_done()?;
            }
        }
    }
    table.finish(out)
}
