//! One line of the shell: its words, and what the program is called with.

use clap::Command;
use fieldstone::{Error, Result};

use crate::complete::words::{Split, split};

/// The request of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Nothing: it is empty, or a comment.
    Empty,
    /// The end of the shell.
    Exit,
    /// Another store for the lines that follow.
    Open(String),
    /// A call of the program, without its name.
    Call(Vec<String>),
}

/// The words of a whole line; Invalid where a quote is not closed.
fn words(line: &str) -> Result<Vec<String>> {
    let Split { mut words, raw, quote } = split(line);
    if quote.is_some() {
        return Err(Error::invalid("a quote is not closed")
            .with_hint("quotes come in pairs: 'size > 10'; a single one is written \\'"));
    }
    if raw.is_empty() {
        words.pop();
    }
    Ok(words)
}

/// The end of a traversal on its line, after which options begin: the first blank outside brackets and quotes.
fn steps_end(line: &str) -> usize {
    let (mut depth, mut quote) = (0usize, None);
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) => quote = quote.filter(|_| c != open),
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, c) if c.is_whitespace() && depth == 0 && line[at..].trim_start().starts_with("--") => {
                return at;
            }
            _ => {}
        }
    }
    line.len()
}

/// Parses a line for a store; `global` are options that every call gets.
pub fn parse(line: &str, store: Option<&str>, global: &[String], program: &Command) -> Result<Line> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Empty);
    }
    if line.starts_with("v(") || line.starts_with("v.") {
        let (steps, options) = line.split_at(steps_end(line));
        let mut call = vec!["graph".to_owned(), "travel".to_owned(), opened(store)?, steps.to_owned()];
        call.extend(words(options)?);
        call.extend_from_slice(global);
        return Ok(Line::Call(call));
    }
    let mut call = words(line)?;
    match call.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["exit" | "quit"] => return Ok(Line::Exit),
        ["open", store] => return Ok(Line::Open((*store).to_owned())),
        ["shell", ..] => {
            return Err(Error::invalid("this is the shell").with_hint("open STORE takes another"));
        }
        ["fieldstone", ..] => drop(call.remove(0)),
        _ => {}
    }
    let at = verb_len(&call, program);
    if takes_store(&call[..at], program) && !call[at..].iter().any(|word| word == "--help" || word == "-h") {
        call.insert(at, opened(store)?);
    }
    call.splice(..0, global.iter().cloned());
    Ok(Line::Call(call))
}

fn opened(store: Option<&str>) -> Result<String> {
    let none =
        || Error::invalid("no store is open").with_hint("open STORE, or begin with: fieldstone shell STORE");
    store.map(str::to_owned).ok_or_else(none)
}

/// How many of the first words name the verb: `graph find` are two.
pub fn verb_len(call: &[String], program: &Command) -> usize {
    let mut command = program;
    for (i, word) in call.iter().enumerate() {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None => return i,
        }
    }
    call.len()
}

/// Whether a verb's first argument is the store.
pub fn takes_store(verb: &[String], program: &Command) -> bool {
    let command = verb.iter().try_fold(program, |command, word| command.find_subcommand(word));
    command
        .and_then(|command| command.get_positionals().next())
        .is_some_and(|first| first.get_id() == "store")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Result<Line> {
        let mut program = crate::command();
        program.build();
        parse(line, Some("my store"), &[], &program)
    }

    #[test]
    fn words_are_those_of_sh() {
        let expected = ["find", "tag=max", "value > 5", "a \"b\"", "c d", ""];
        assert_eq!(words(r#" find tag=max 'value > 5' "a \"b\"" c\ d ''"#).unwrap(), expected);
        assert_eq!(words("list ").unwrap(), ["list"]);
        assert!(words("find 'a").is_err());
    }

    #[test]
    fn the_store_stands_where_a_verb_has_it() {
        for (line, expected) in [
            ("list run=a", &["list", "my store", "run=a"][..]),
            ("graph edges job:17", &["graph", "edges", "my store", "job:17"]),
            ("trace /plot.png --down", &["trace", "my store", "/plot.png", "--down"]),
            ("help query", &["help", "query"]),
            ("list --help", &["list", "--help"]),
            ("fieldstone runs", &["runs", "my store"]),
            ("container show a.nc", &["container", "show", "a.nc"]),
        ] {
            let expected = expected.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(call(line).unwrap(), Line::Call(expected), "{line}");
        }
    }

    #[test]
    fn a_traversal_is_a_line_of_its_own() {
        let expected = |rest: &[&str]| {
            let words = ["graph", "travel", "my store"].iter().chain(rest);
            Line::Call(words.map(|word| (*word).to_owned()).collect())
        };
        let steps = "v(file:/a).e(write).ea(bytes > 5)";
        assert_eq!(call(steps).unwrap(), expected(&[steps]));
        assert_eq!(call(&format!("{steps} --limit 3")).unwrap(), expected(&[steps, "--limit", "3"]));
        let odd = r#"v("file:/a --b").e(read)"#;
        assert_eq!(call(odd).unwrap(), expected(&[odd]));
    }

    #[test]
    fn a_line_may_ask_the_shell_itself() {
        assert_eq!(call("  # a comment").unwrap(), Line::Empty);
        assert_eq!(call("exit").unwrap(), Line::Exit);
        assert_eq!(call("open other").unwrap(), Line::Open("other".into()));
        assert!(call("shell").is_err());
        assert!(parse("list", None, &[], &crate::command()).is_err(), "no store is open");
    }
}
