//! A script for `sh` that rebuilds a result: the upstream commands in causal order, each in its folder and environment.
//!
//! 1. The graph has no secrets: the script asks for them as variables; without them it stops and names the argument
//!    that needs one.
//! 2. Inputs that nothing here made must be unchanged: a recorded checksum is compared, and a different one stops the
//!    script.
//! 3. Each execution runs in a subshell: in its folder, with the recorded variables and arguments. One that ended with
//!    an exit code must end with the same one. Its input is the recorded file, and so is its output if that is the
//!    result or another execution reads it; otherwise it prints to the script's own output, and logs of old jobs stay.
//! 4. The result's checksum, if recorded, is compared at the end.
//!
//! The writes of an execution without a recorded command count as given. Texts from other users are in single quotes
//! or, in comments, on one line: only a recorded command can become a command (G-45).

mod order;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_graph::dossier::Dossier;

use super::VertexName;
use super::export::names::{folder, roots_text, stamp_text};
use super::units::{Contact, Unit, units};
use order::{by_cause, chosen, given, writers};
use words::{is_piped, is_variable, line, outputs, pieces, quoted, redirections};

/// Maximum number of inputs without a checksum that are listed.
const LISTED: usize = 200;

/// Computes the checksum of a file with the program or with xxhsum, and compares it.
const CHECK: &str = r#"checksum() {
    if command -v "${FIELDSTONE_PROGRAM:-fieldstone}" >/dev/null 2>&1; then
        "${FIELDSTONE_PROGRAM:-fieldstone}" graph checksum -- "$1" | cut -c1-37
    elif command -v xxhsum >/dev/null 2>&1; then
        printf 'xxh3:%s\n' "$(xxhsum -q -H2 - <"$1" | cut -c1-32)"
    else
        echo "cannot check files without fieldstone or xxhsum: put one in PATH, or set FIELDSTONE_UNCHECKED=1" >&2
        return 1
    fi
}
check() {
    if [ ! -e "$1" ]; then echo "missing: $1" >&2; exit 1; fi
    if [ -n "${FIELDSTONE_UNCHECKED:-}" ] || [ -z "$2" ]; then return 0; fi
    now=$(checksum "$1") || exit 1
    if [ "$now" != "$2" ]; then echo "$1 changed: its checksum is $now instead of $2" >&2; exit 1; fi
}
"#;

/// Unsets variables that would have been recorded and were not set then.
const FRESH: &str = r#"fresh() {
    for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
        case $name in
        PYTHONPATH | PYTHONHOME | PYTHONHASHSEED | VIRTUAL_ENV | CONDA_* | LD_LIBRARY_PATH | LD_PRELOAD) unset "$name" ;;
        LANG | LANGUAGE | LC_* | TZ | HDF5_* | CUDA_* | NVIDIA_* | ROCR_* | HIP_*) unset "$name" ;;
        OMP_* | KMP_* | GOMP_* | MKL_* | OPENBLAS_* | BLIS_* | NUMEXPR_* | NUMBA_* | ECCODES_* | GRIB_*) unset "$name" ;;
        esac
    done
}
"#;

/// One command: its words, folder and environment.
struct Command<'a> {
    runner: &'a VertexName,
    /// Words of sh.
    words: Vec<String>,
    folder: Option<&'a str>,
    env: Vec<(&'a str, String)>,
    left: Vec<&'a str>,
    /// Whether its environment was recorded.
    recorded: bool,
    /// Number of processes that ran it.
    processes: usize,
    /// The text before and after its words, for its input and output.
    around: (String, String),
    /// Whether its input came through a pipe.
    piped: bool,
}

/// A secret in an argument.
struct Secret {
    number: usize,
    what: String,
}

/// The script. NotFound if no execution wrote the vertex, or none of its writers has a recorded command.
pub fn script(dossier: &Dossier) -> Result<String> {
    let lineage = &dossier.lineage;
    let all = units(dossier);
    let mut secrets = Vec::new();
    let commands: Vec<Vec<Command<'_>>> =
        all.iter().map(|unit| commands(dossier, unit, &BTreeSet::new(), &mut secrets)).collect();
    let chosen = chosen(lineage, &all, &commands)?;
    let writers = writers(&all, &chosen);
    let order = by_cause(&all, &chosen, &writers);
    // Secrets are numbered in the order of the script, and only those of its commands.
    let mut secrets = Vec::new();
    let needed = needed(lineage, &all, &chosen);
    let commands: BTreeMap<usize, Vec<Command<'_>>> =
        order.iter().map(|i| (*i, self::commands(dossier, &all[*i], &needed, &mut secrets))).collect();

    let mut text = String::from("#!/bin/sh\n");
    // Writing to a String does not fail.
    let _ = writeln!(text, "# Rebuilds {}", line(&roots_text(lineage)));
    let _ = writeln!(text, "# from the records in Fieldstone's graph: {} executions.", order.len());
    if lineage.truncated {
        text.push_str("# The lineage stops at a limit: some steps upstream are missing here.\n");
    }
    text.push_str(
        "# Input is redirected if it was a file, output if it is a result. Pipes were not recorded.\n",
    );
    text.push_str("set -eu\n\n");
    for Secret { number, what } in &secrets {
        let say = quoted(&format!("set FIELDSTONE_SECRET_{number}: {what}"));
        let _ = writeln!(
            text,
            "if [ -z \"${{FIELDSTONE_SECRET_{number}+set}}\" ]; then echo {say} >&2; exit 1; fi"
        );
    }
    if !secrets.is_empty() {
        text.push('\n');
    }
    let results: Vec<_> =
        lineage.roots.iter().filter_map(|root| final_checksum(&all, &chosen, root)).collect();
    let given = given(&all, &chosen, &writers);
    let checks = !results.is_empty() || given.values().any(|contact| &*contact.data.kind == "file");
    if checks {
        text.push_str(CHECK);
        text.push('\n');
    }
    if commands.values().flatten().any(|command| command.recorded) {
        text.push_str(FRESH);
        text.push('\n');
    }
    inputs(&mut text, &given);
    for (n, i) in order.iter().enumerate() {
        let (unit, commands) = (&all[*i], commands.get(i).map(Vec::as_slice).unwrap_or_default());
        let _ = writeln!(text, "# ---- {} of {}: {}", n + 1, order.len(), heading(dossier, unit));
        step(&mut text, dossier, unit, commands, &needed);
    }
    if !results.is_empty() {
        text.push_str("# ---- the result, byte for byte\n");
    }
    for (checksum, path) in results {
        let _ = writeln!(text, "check {} {}", quoted(path), quoted(checksum));
    }
    Ok(text)
}

/// The files that the script must make: the subjects, and those that its executions read of one another. If an
/// execution is itself the subject, all but its output, unless it wrote nothing else.
fn needed<'a>(
    lineage: &'a fieldstone_graph::trace::Lineage,
    all: &'a [Unit],
    chosen: &BTreeSet<usize>,
) -> BTreeSet<&'a str> {
    let file = |data: &'a VertexName| (&*data.kind == "file").then_some(&*data.id);
    let mut needed: BTreeSet<&str> = lineage.roots.iter().filter_map(file).collect();
    for unit in chosen.iter().map(|i| &all[*i]) {
        needed.extend(unit.reads.iter().chain(&unit.programs).filter_map(|input| file(&input.data)));
        let is_root = lineage.roots.iter().any(|root| *root == unit.name || unit.parts.contains(root));
        if let ([only], true) = (&unit.writes[..], is_root) {
            needed.extend(file(&only.data));
        }
    }
    needed
}

/// Checks of inputs that must be unchanged.
fn inputs(text: &mut String, given: &BTreeMap<&VertexName, &Contact>) {
    if given.is_empty() {
        return;
    }
    text.push_str("# ---- inputs that nothing here makes\n");
    for (i, (data, contact)) in given.iter().enumerate() {
        let is_path = matches!(&*data.kind, "file" | "directory") && data.id.starts_with('/');
        let checksum = contact.checksum.as_deref().filter(|_| &*data.kind == "file").unwrap_or_default();
        let known = checksum.strip_prefix("xxh3:").is_some_and(|hex| hex.len() == 32);
        if is_path && known {
            let _ = writeln!(text, "check {} {}", quoted(&data.id), quoted(checksum));
        } else if i < LISTED {
            let when = stamp_text(contact.begin);
            let _ =
                writeln!(text, "# {} as it was at {when}; no checksum was recorded", line(&data.to_string()));
            if &*data.kind == "file" && is_path {
                let _ = writeln!(text, "check {} ''", quoted(&data.id));
            }
        }
    }
    text.push('\n');
}

/// The result's path, and its checksum at the last write.
fn final_checksum<'a>(
    all: &'a [Unit],
    chosen: &BTreeSet<usize>,
    root: &'a VertexName,
) -> Option<(&'a str, &'a str)> {
    let writes = chosen.iter().flat_map(|i| &all[*i].writes).filter(|write| write.data == *root);
    let last = writes.max_by_key(|write| write.end)?;
    let checksum =
        last.checksum.as_deref().filter(|sum| sum.starts_with("xxh3:") && &*root.kind == "file")?;
    root.id.starts_with('/').then_some((checksum, &root.id))
}

fn heading(dossier: &Dossier, unit: &Unit) -> String {
    let mut words = vec![format!("{}, {}", unit.title(dossier), unit.name)];
    let users = unit.user_names(dossier);
    if !users.is_empty() {
        words.push(format!("by {}", users.join(", ")));
    }
    words.extend(unit.text(dossier, "host").map(|host| format!("on {host}")));
    if unit.begin != u64::MAX {
        words.push(format!("at {}", stamp_text(unit.begin)));
    }
    line(&words.join(" "))
}

/// The commands of a unit: its job's, or one for all processes that ran the same.
fn commands<'a>(
    dossier: &'a Dossier,
    unit: &'a Unit,
    needed: &BTreeSet<&str>,
    secrets: &mut Vec<Secret>,
) -> Vec<Command<'a>> {
    let mut commands: Vec<(Vec<&Value>, Command<'a>)> = Vec::new();
    for runner in unit.runners(dossier) {
        let Some(Value::List(argv) | Value::Array(argv)) = dossier.prop(runner, "argv") else { continue };
        let mut said: Vec<&Value> = argv.iter().collect();
        said.extend(["cwd", "streams"].into_iter().filter_map(|name| dossier.prop(runner, name)));
        if let Some((_, known)) = commands.iter_mut().find(|(known, _)| *known == said) {
            known.processes += 1;
            continue;
        }
        let words = words(dossier, runner, argv, secrets);
        if words.is_empty() {
            continue;
        }
        let (mut env, mut left, mut recorded) = (Vec::new(), Vec::new(), false);
        if let Some(Value::Map(pairs)) = dossier.prop(runner, "env") {
            recorded = true;
            for (name, value) in pairs {
                let value = if let Value::Text(text) = value { text.clone() } else { value.to_string() };
                if is_variable(name) { env.push((name.as_str(), value)) } else { left.push(name.as_str()) }
            }
        }
        let folder = match dossier.prop(runner, "cwd") {
            Some(Value::Text(folder)) => Some(folder.as_str()),
            _ => None,
        };
        let streams = dossier.prop(runner, "streams");
        let is_needed = |path: &str| needed.contains(path);
        let (around, piped) = (redirections(streams, &is_needed), is_piped(streams));
        let command = Command { runner, words, folder, env, left, recorded, processes: 1, around, piped };
        commands.push((said, command));
    }
    commands.into_iter().map(|(_, command)| command).collect()
}

/// Arguments as words of sh; a secret is a variable.
fn words(dossier: &Dossier, runner: &VertexName, argv: &[Value], secrets: &mut Vec<Secret>) -> Vec<String> {
    let masked: BTreeSet<i64> = match dossier.prop(runner, "masked") {
        Some(Value::List(places) | Value::Array(places)) => places
            .iter()
            .filter_map(|place| if let Value::Int(n) = place { Some(*n) } else { None })
            .collect(),
        _ => BTreeSet::new(),
    };
    let mut words = Vec::with_capacity(argv.len());
    for (i, word) in argv.iter().enumerate() {
        let word = if let Value::Text(text) = word { text.clone() } else { word.to_string() };
        if !i64::try_from(i).is_ok_and(|i| masked.contains(&i)) {
            words.push(quoted(&word));
            continue;
        }
        let mut shell = String::new();
        for piece in pieces(&word) {
            match piece {
                Ok(literal) => shell.push_str(&quoted(literal)),
                Err(hidden) => {
                    let number = secrets.len() + 1;
                    let what = format!("the secret {} in argument {i} of {runner}, {word}", line(hidden));
                    secrets.push(Secret { number, what: line(&what) });
                    let _ = write!(shell, "\"$FIELDSTONE_SECRET_{number}\"");
                }
            }
        }
        words.push(shell);
    }
    words
}

/// One unit: comments on its reads, writes and code, and its commands.
fn step(
    text: &mut String,
    dossier: &Dossier,
    unit: &Unit,
    commands: &[Command<'_>],
    needed: &BTreeSet<&str>,
) {
    for (verb, contacts) in [("executed", &unit.programs), ("reads", &unit.reads), ("writes", &unit.writes)] {
        for contact in contacts.iter().take(LISTED) {
            let version =
                contact.checksum.as_deref().map(|sum| format!(" ({})", line(sum))).unwrap_or_default();
            let _ = writeln!(text, "# {verb} {}{version}", line(&contact.data.to_string()));
        }
        if contacts.len() > LISTED {
            let _ = writeln!(text, "# {verb} {} more", contacts.len() - LISTED);
        }
    }
    if let Some(Value::Map(git)) = unit.prop(dossier, "git") {
        code(text, git);
    }
    if unit.prop(dossier, "slurm").is_some() {
        text.push_str("# It ran under SLURM; this script runs it here.\n");
    }
    let runners = unit.runners(dossier).into_iter();
    let logs: Vec<&str> = runners.flat_map(|runner| outputs(dossier.prop(runner, "streams"))).collect();
    let folders: BTreeSet<&str> = unit
        .writes
        .iter()
        .filter(|write| &*write.data.kind == "file")
        .filter(|write| needed.contains(&*write.data.id) || !logs.contains(&&*write.data.id))
        .filter_map(|write| folder(&write.data))
        .collect();
    for folder in folders {
        let _ = writeln!(text, "mkdir -p {}", quoted(folder));
    }
    for command in commands {
        run(text, dossier, command);
    }
    text.push('\n');
}

/// The commit of the code: prints a note if the present one differs.
fn code(text: &mut String, git: &[(String, Value)]) {
    let part = |name: &str| git.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let Some(Value::Text(commit)) = part("commit") else { return };
    let _ = writeln!(text, "# code: commit {}", line(commit));
    if part("dirty") == Some(&Value::Bool(true)) {
        text.push_str("# The working tree had uncommitted changes.\n");
    }
    if let Some(Value::Text(root)) = part("root") {
        let say = quoted(&format!("note: the code in {} is not at commit {}", line(root), line(commit)));
        let _ = writeln!(
            text,
            "[ \"$(git -C {} rev-parse HEAD 2>/dev/null || :)\" = {} ] || echo {say} >&2",
            quoted(root),
            quoted(commit),
        );
    }
}

fn run(text: &mut String, dossier: &Dossier, command: &Command<'_>) {
    text.push_str("(\n");
    if let Some(folder) = command.folder {
        // `--`, because the name of a recorded folder may begin with a dash.
        let _ = writeln!(text, "    cd -- {}", quoted(folder));
    }
    if command.recorded {
        text.push_str("    fresh\n");
    }
    for name in &command.left {
        let _ = writeln!(text, "    # sh does not accept the name of the variable {}", line(name));
    }
    for (name, value) in &command.env {
        let _ = writeln!(text, "    export {name}={}", quoted(value));
    }
    if command.piped {
        text.push_str("    # Its input came through a pipe, which was not recorded: here it reads the script's input.\n");
    }
    let mut words = command.words.join(" ");
    if command.processes > 1 {
        let _ = writeln!(text, "    # {} processes ran it", command.processes);
        words = format!("${{FIELDSTONE_MPIRUN:-mpirun}} -n {} {words}", command.processes);
    }
    let (before, behind) = &command.around;
    words = format!("{before}{words}{behind}");
    let number = |name: &str| match dossier.prop(command.runner, name) {
        Some(Value::Int(n)) => Some(*n),
        _ => None,
    };
    let expected = match (number("signal"), number("exit")) {
        (Some(signal), _) if signal > 0 => 128 + signal,
        (_, exit) => exit.unwrap_or(0),
    };
    if expected == 0 {
        let _ = writeln!(text, "    {words}");
    } else {
        let _ = writeln!(text, "    # it ended with {expected}, and must do so again");
        let _ = writeln!(text, "    {words} || [ $? -eq {expected} ]");
    }
    text.push_str(")\n");
}
