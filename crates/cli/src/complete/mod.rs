//! Completion of the word before the cursor: verbs, options, files, stores, and the keywords and
//! values that a store holds now.
//!
//! A shell's script ([`scripts`]) calls `fieldstone __complete SHELL …` at each TAB. [`candidates`] walks
//! the words along the program's own command line, so that a new verb or option needs nothing here;
//! [`request`] completes inside a request, [`live`] asks the store.
//!
//! Invariants: it answers within [`live::PATIENCE`] or so with what it knows by then, prints nothing but
//! candidates, and ends with 0 whatever it is given.

mod files;
mod live;
mod query;
mod request;
pub mod scripts;
pub mod words;

use std::io::Write;

use clap::{Arg, ArgAction, Command};

use crate::help::TOPICS;

/// The most candidates that it offers.
const MOST: usize = 1000;

/// Something that the word at the cursor may become.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// The whole word. One that ends in `=` or `/` goes on: no blank follows it.
    pub word: String,
    /// A short description.
    pub about: String,
}

impl Candidate {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Candidate {
        Candidate { word: word.into(), about: about.into() }
    }
}

/// Answers `__complete SHELL …`: for bash the line up to the cursor and bash's own idea of the word, for
/// others the words after the program's name, the last of which is the one at the cursor.
pub fn answer(arguments: &[String]) -> String {
    let lines = match arguments {
        [shell, line, word] if shell == "bash" => words::for_bash(line, word, candidates),
        [shell, words @ ..] if !words.is_empty() => {
            let line = |c: &Candidate| match c.about.is_empty() || shell == "plain" {
                true => c.word.clone(),
                false => format!("{}\t{}", c.word, c.about),
            };
            candidates(words).iter().map(line).collect()
        }
        _ => Vec::new(),
    };
    let printable = |line: &String| !line.chars().any(|c| c.is_control() && c != '\t');
    lines.into_iter().filter(printable).map(|line| line + "\n").collect()
}

/// [`answer`] on stdout.
pub fn main(arguments: &[String]) {
    let _ = std::io::stdout().write_all(answer(arguments).as_bytes());
}

/// The candidates for the last of `words`.
pub fn candidates(words: &[String]) -> Vec<Candidate> {
    let Some((current, before)) = words.split_last() else { return Vec::new() };
    let mut command = crate::command();
    command.build();
    let mut place = CursorPosition { command: &command, positional: Vec::new(), option: None, bare: false };
    before.iter().for_each(|word| place.pass(word));
    let mut found = place.candidates(current);
    found.truncate(MOST);
    found
}

/// The position of the cursor on the command line.
struct CursorPosition<'a> {
    command: &'a Command,
    positional: Vec<&'a str>,
    /// The option that waits for its value.
    option: Option<&'a Arg>,
    /// Whether `--` was passed.
    bare: bool,
}

impl<'a> CursorPosition<'a> {
    fn pass(&mut self, word: &'a str) {
        if self.option.take().is_some() {
            return;
        }
        match word {
            "--" if !self.bare => self.bare = true,
            _ if word.starts_with("--") && !self.bare => {
                self.option = self.long(&word[2..]).filter(|arg| takes_value(arg));
            }
            _ if word.len() > 1 && word.starts_with('-') && !self.bare => {
                let letter = word.chars().next_back();
                let arg = self.command.get_arguments().find(|arg| arg.get_short() == letter);
                self.option = arg.filter(|arg| takes_value(arg));
            }
            _ => match self.command.find_subcommand(word) {
                Some(command) if self.positional.is_empty() => self.command = command,
                _ => self.positional.push(word),
            },
        }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|arg| arg.get_long() == Some(name))
    }

    fn candidates(&self, current: &str) -> Vec<Candidate> {
        if let Some(option) = self.option {
            return self.values(option, current);
        }
        if !self.bare
            && let Some(rest) = current.strip_prefix("--")
            && let Some((name, value)) = rest.split_once('=')
        {
            let values = self.long(name).map(|arg| self.values(arg, value)).unwrap_or_default();
            let whole = |c: Candidate| Candidate { word: format!("--{name}={}", c.word), ..c };
            return values.into_iter().map(whole).collect();
        }
        if !self.bare && current.starts_with('-') {
            return self.options(current);
        }
        let verbs: Vec<&Command> = self.command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
        if !verbs.is_empty() {
            if !self.positional.is_empty() {
                return Vec::new();
            }
            let verb = |c: &&Command| {
                Candidate::new(c.get_name(), c.get_about().map(ToString::to_string).unwrap_or_default())
            };
            return starting(current, verbs.iter().map(verb));
        }
        let slots: Vec<&Arg> = self.command.get_positionals().collect();
        let repeated =
            || slots.last().copied().filter(|arg| arg.get_num_args().is_some_and(|n| n.max_values() > 1));
        match slots.get(self.positional.len()).copied().or_else(repeated) {
            Some(slot) => self.values(slot, current),
            None => Vec::new(),
        }
    }

    fn options(&self, current: &str) -> Vec<Candidate> {
        let shown = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let option = |arg: &Arg| {
            let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
            Some(Candidate::new(format!("--{}", arg.get_long()?), about))
        };
        starting(current, shown.filter_map(option))
    }

    /// Values of an option or of a place.
    fn values(&self, arg: &Arg, current: &str) -> Vec<Candidate> {
        let given = arg.get_possible_values();
        if !given.is_empty() {
            return starting(current, given.iter().map(|v| Candidate::new(v.get_name(), "")));
        }
        let builtin = || {
            let schemas = ["simulation", "mars", "mixed"].map(|name| Candidate::new(name, "built-in schema"));
            starting(current, schemas)
        };
        match arg.get_id().as_str() {
            "store" | "to" => files::stores(current),
            "of" => [builtin(), files::any(current)].concat(),
            "schema" => [builtin(), files::any(current)].concat(),
            "compression" => starting(current, ["none", "zstd", "zstd:9"].map(|c| Candidate::new(c, ""))),
            "dtype" => starting(current, ["f4", "f8", "i2", "i4", "i8", "u1"].map(|t| Candidate::new(t, ""))),
            "request" | "key" => self.request(current),
            "query" => match self.positional.split_first() {
                // Of `delete` a word says what goes.
                Some((store, words)) if self.command.get_name() == "delete" => {
                    query::candidates(store, words.get(1..).unwrap_or_default(), current)
                }
                Some((store, words)) => query::candidates(store, words, current),
                None => Vec::new(),
            },
            "words" if self.command.get_name() == "archive" => match current.contains('=') {
                true => self.request(current),
                false => [self.request(current), files::any(current)].concat(),
            },
            "words" => topics(current),
            // A number, a box or a version: nothing to offer, and no file either.
            _ if arg
                .get_value_names()
                .is_some_and(|names| names.iter().any(|n| n.contains("FILE") || n.contains("PATH"))) =>
            {
                files::any(current)
            }
            "file" | "files" | "path" | "paths" | "output" => files::any(current),
            _ => Vec::new(),
        }
    }

    fn request(&self, current: &str) -> Vec<Candidate> {
        if let Some(file) = current.strip_prefix('@') {
            let whole = |c: Candidate| Candidate { word: format!("@{}", c.word), ..c };
            return files::any(file).into_iter().map(whole).collect();
        }
        match self.positional.split_first() {
            Some((store, words)) => request::candidates(store, words, current),
            None => Vec::new(),
        }
    }
}

/// Verbs and topics of `fieldstone help`.
fn topics(current: &str) -> Vec<Candidate> {
    let command = crate::command();
    let verbs = command.get_subcommands().map(|c| Candidate::new(c.get_name(), "verb"));
    let topics = TOPICS.iter().map(|(name, about, _)| Candidate::new(*name, *about));
    starting(current, verbs.chain(topics).collect::<Vec<_>>())
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn starting(current: &str, all: impl IntoIterator<Item = Candidate>) -> Vec<Candidate> {
    all.into_iter().filter(|c| c.word.starts_with(current)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        candidates(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .into_iter()
            .map(|c| c.word)
            .collect()
    }

    #[test]
    fn verbs_and_options_come_from_the_command_line_itself() {
        assert_eq!(words("li"), ["list"]);
        assert_eq!(words("schema s"), ["show"]);
        assert!(words("").contains(&"completions".to_owned()));
        assert_eq!(words("list x --dep"), ["--depth"]);
        assert!(words("list x --").contains(&"--jsonl".to_owned()), "options of all verbs, too");
        assert_eq!(words("completions z"), ["zsh"]);
        assert_eq!(words("help req"), ["request"]);
        assert_eq!(words("init x --schema m"), ["mars", "mixed"]);
        assert_eq!(words("init x --schema=m"), ["--schema=mars", "--schema=mixed"]);
        assert_eq!(words("archive x --dtype f"), ["f4", "f8"]);
        for nothing in ["list x --depth ", "no-such-verb x ", "list x --at ", "version x y "] {
            assert_eq!(words(nothing), [""; 0], "{nothing}");
        }
    }

    #[test]
    fn whatever_is_asked_is_answered() {
        for line in
            ["--", "-- --", "list /nowhere \u{0}=", "get \" ' \\", "list --json=", "-", "list memory: a=/"]
        {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            candidates(&words);
            for shell in ["bash", "zsh", "fish", "plain", "tcsh"] {
                answer(&[vec![shell.to_owned()], words.clone()].concat());
            }
        }
        assert_eq!(answer(&[]), "");
        assert_eq!(answer(&["zsh".to_owned()]), "");
    }
}
