//! Help: examples first in every verb, verbs in groups, topics, and wrong calls answered in the words
//! and with the hint that every error has.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fieldstone::{Code, Error, nearest};

/// The verbs by purpose, in the order in which people need them.
pub const GROUPS: [(&str, &[&str]); 9] = [
    ("Write", &["init", "archive", "ingest"]),
    ("Find", &["list", "axes", "show", "where", "objects"]),
    ("Annotate and query", &["annotate", "find", "runs", "steps", "variables", "tags", "sql", "delete"]),
    ("Provenance", &["run", "trace", "audit", "graph"]),
    ("Read and export", &["get", "export", "plot", "mesh"]),
    ("Copy, move and remove", &["copy", "move", "prefetch", "remove", "wipe", "erase"]),
    (
        "Operate",
        &[
            "stats",
            "status",
            "verify",
            "repair",
            "accept",
            "lock",
            "unlock",
            "locks",
            "hide",
            "unhide",
            "overlay",
            "hand-over",
            "reindex",
            "compact",
            "purge",
            "retain",
            "maintain",
            "hold",
            "backup",
            "promote",
            "version",
            "upgrade",
            "dump",
            "rebuild",
            "repoint",
            "transaction",
            "doctor",
        ],
    ),
    ("Array files", &["arrays", "container"]),
    ("Schemas and shells", &["shell", "schema", "completions", "man", "help"]),
];

const VERB: &str = "{about}{after-help}\n\n{usage-heading} {usage}\n\n{all-args}\n";

/// Texts that `fieldstone help TOPIC` prints: name, what it is about, text.
pub const TOPICS: [(&str, &str, &str); 5] = [
    (
        "request",
        "how to select fields",
        "\
A request selects fields, in the MARS language.

Examples:
  fieldstone list store run=a                          all values of the other keywords
  fieldstone list store run=a,variable=t/u             a list
  fieldstone list store run=a step=0/to/24/by/6        a range, both ends included
  fieldstone list store 'run=*' 'variable=\"wind speed\"' signs of the shell are quoted
  fieldstone get store @wanted.req -o wanted.grib      a file with a request
  echo run=a,step=6 | fieldstone list store -          a request from stdin

The program joins words: run=a step=6 is run=a,step=6. A request may have a verb in front (retrieve, ...), blanks and
line ends, and it may be a key as list prints it: '{run=a}{variable=t}{step=6}'. Put values with blanks or one of
, / = { } * into double quotes. The schema defines the meaning of values (dates, steps, parameters): fieldstone
schema show STORE. To see the values that exist: fieldstone axes STORE.
",
    ),
    (
        "query",
        "how to select attributes",
        "\
A query selects attributes: terms, joined with and, or, not and brackets.

Examples:
  fieldstone find store 'tag=maximum and variable=temp* and value>9000'
  fieldstone find store 'run=a and step=0:24 and box=z:50:100,y:0:20'
  fieldstone find store 'tag in (maximum, minimum) and value between 1 and 5'
  fieldstone find store 'tag=maximum and with overlapping (tag=vortex)'
  fieldstone runs store 'param.nx>=256 and created>2026-01-01'
  fieldstone find store 'tag=maximum order by -value limit 5'

  names     run project job variable tag unit       = != in like contains
  values    value param.NAME created time           = != > >= < <= in between contains like exists
  sizes     extent.DIM volume                       the same, of elements
  numbers   version tag_version                     = != in
  steps     step=6   step=0:10   step=0/to/24/by/6   step in (0, 6)   step>12
  levels    level=1   level in (0, 1)   level>=1          of an adaptive mesh: level_1/rho is rho there
  place     scope=run   scope=step   scope=variable
  boxes     box=z:50:100,y:0:20   box=50:100,0:20   box(z=0.5..0.7)   within box=…   contains box=…
  beside    with same step (…)   with same variable (…)   with same run (…)   with overlapping (…)
            without … (…)
  last      first   last   order by -value, step   limit 10   transaction=ID

Names are exact and case matters. A bare word with * ? or [ is a pattern; in quotes it is literal. Values are
numbers, true, false, times (2026-11-21T06:00), ranges (5..9), bytes (0x0aff) and texts. Boxes in elements and
steps with : are half-open; between and .. include both ends. A range passes a test if one of its numbers does;
contains tests whether a range holds a number, a text a part, or an array an element. Put the query in quotes
for the shell.
",
    ),
    (
        "output",
        "tables, lines and JSON",
        "\
Only data go to stdout; messages, progress and errors go to stderr.

Examples:
  fieldstone list store                    a table that fits the terminal
  fieldstone list store | sort             a line per field, not truncated
  fieldstone list store --width 60 | less  the table, 60 columns wide
  fieldstone list store --json             one JSON document
  fieldstone list store --jsonl            one JSON object a line, as results are found
  NO_COLOR=1 fieldstone plot store run=a variable=t step=6

Every verb takes --json and --jsonl; its help describes their content. Tabs separate the parts of a line. The
program uses colours only on terminals, and not if NO_COLOR is set.
",
    ),
    (
        "errors",
        "exit codes and hints",
        "\
An error reports the failure and, as a hint, what to do or to type.

Examples:
  fieldstone get store run=a step=7 || test $? = 3
  fieldstone verify store || echo damaged

  0  ok              also if the reader of a pipe has ended
  1  internal        a defect of fieldstone: report it
  2  invalid         correct the call
  3  not found       ask for something that exists
  4  conflict        two statements contradict each other: decide
  5  corrupt         restore the named file; the rest can be read
  6  denied          ask the owner that the message names
  7  unavailable     repair the disk, or make room, and try again
",
    ),
    (
        "completion",
        "TAB for keywords and values",
        "\
Shells complete verbs, options, stores, keywords and the values that a store holds.

Examples:
  source <(fieldstone completions bash)                            for this shell
  fieldstone completions bash > ~/.local/share/bash-completion/completions/fieldstone
  fieldstone completions zsh > \"${fpath[1]}/_fieldstone\"
  fieldstone completions fish > ~/.config/fish/completions/fieldstone.fish

  fieldstone list store ru<TAB>            run=
  fieldstone list store run=<TAB>          the store's runs
  fieldstone list store run=a step=0/<TAB> its steps, to/ and by/

The script waits for a store for at most 40 milliseconds; FIELDSTONE_PATIENCE sets another limit in milliseconds.
",
    ),
];

/// Puts the examples of every verb first and the verbs into groups.
pub fn arrange(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let mut listed = String::new();
    let grouped = |name: &String| GROUPS.iter().any(|(_, verbs)| verbs.contains(&name.as_str()));
    let others: Vec<&str> = names.iter().filter(|name| !grouped(name)).map(String::as_str).collect();
    for (group, verbs) in GROUPS.into_iter().chain([("Others", &others[..])]) {
        let verbs: Vec<_> = verbs.iter().filter_map(|verb| command.find_subcommand(verb)).collect();
        if verbs.is_empty() {
            continue;
        }
        listed.push_str(&format!("{group}:\n"));
        for verb in verbs {
            let about = verb.get_about().map(StyledStr::to_string).unwrap_or_default();
            listed.push_str(&format!("  {:<12} {about}\n", verb.get_name()));
        }
        listed.push('\n');
    }
    let template =
        format!("{{about}}\n\n{{usage-heading}} {{usage}}{{after-help}}\n\n{listed}Options:\n{{options}}\n");
    let command = names.into_iter().fold(command, |command, name| command.mut_subcommand(name, verb));
    command.help_template(template)
}

fn verb(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| command.mut_subcommand(name, verb));
    command.help_template(VERB)
}

/// A wrong call as an error with a hint: what clap found, in our form.
pub fn wrong_call(error: &clap::Error, arguments: &[OsString]) -> Error {
    if error.kind() == ErrorKind::InvalidUtf8
        && let Some(wrong) = arguments.iter().find(|argument| argument.to_str().is_none())
    {
        return Code::CommandLine
            .error(format!("the argument {wrong:?} is not UTF-8"))
            .with_hint("give a file of that name on stdin: < FILE; or rename it");
    }
    let rendered = error.render().to_string();
    let text = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    // The error comes first, then tips, then the usage.
    let first = text.split("\n\n").next().unwrap_or(text);
    let message: Vec<&str> = first.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (verbs, at) = verb_of(arguments);
    let verbs: String = verbs.iter().map(|verb| format!("{verb} ")).collect();
    let help = format!("fieldstone {verbs}--help");
    let near =
        match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(word)) => {
                let names: Vec<&str> = at.get_subcommands().map(clap::Command::get_name).collect();
                nearest::did_you_mean(word, names)
            }
            _ => [ContextKind::SuggestedArg, ContextKind::SuggestedValue].into_iter().find_map(|kind| {
                match error.get(kind)? {
                    ContextValue::String(one) => Some(format!("did you mean `{one}`?")),
                    ContextValue::Strings(all) => all.first().map(|one| format!("did you mean `{one}`?")),
                    _ => None,
                }
            }),
        };
    Code::CommandLine.error(message.join(" ")).with_hint(match near {
        Some(near) => format!("{near} try: {help}"),
        None => format!("try: {help}"),
    })
}

/// The verb that is called, in as many words as it has, and its command line.
fn verb_of(arguments: &[OsString]) -> (Vec<String>, clap::Command) {
    let mut command = crate::command();
    let mut verbs = Vec::new();
    let words =
        arguments.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    for word in words {
        match command.find_subcommand(word) {
            Some(next) => command = next.clone(),
            None => break,
        }
        verbs.push(word.to_owned());
    }
    (verbs, command)
}
