//! Lines from a terminal: editing, history, completion.

use std::path::PathBuf;

use fieldstone::{Error, Result};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Context};

use super::line::{takes_store, verb_len};
use crate::complete::candidates;
use crate::complete::words::{Split, split};
use crate::explain::shell_word;

/// Lines of the history that are kept.
const HISTORY: usize = 10_000;

/// An input from the terminal.
pub enum Read {
    /// A line.
    Line(String),
    /// Ctrl-C: the line was given up.
    Interrupted,
    /// Ctrl-D.
    End,
}

/// Reads lines.
pub struct Editor {
    editor: rustyline::Editor<Words, FileHistory>,
    history: Option<PathBuf>,
}

fn failed(error: ReadlineError) -> Error {
    Error::unavailable(format!("the terminal cannot be read: {error}"))
}

/// The file with the history of all shells of a user.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = state.or_else(|| home().map(|home| home.join(".local/state")))?.join("fieldstone");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

impl Editor {
    pub fn new() -> Result<Editor> {
        let config =
            Config::builder().max_history_size(HISTORY).map_err(failed)?.auto_add_history(true).build();
        let mut editor = rustyline::Editor::with_config(config).map_err(failed)?;
        let mut program = crate::command();
        program.build();
        editor.set_helper(Some(Words { store: None, program }));
        let history = history_file();
        if let Some(path) = &history {
            // A shell without a history is better than none.
            let _ = editor.load_history(path);
        }
        Ok(Editor { editor, history })
    }

    /// The next line; the prompt names the store.
    pub fn read(&mut self, store: Option<&str>) -> Result<Read> {
        if let Some(words) = self.editor.helper_mut() {
            words.store = store.map(str::to_owned);
        }
        let prompt = format!("{}> ", store.unwrap_or("fieldstone"));
        let read = match self.editor.readline(&prompt) {
            Ok(line) => Read::Line(line),
            Err(ReadlineError::Interrupted) => Read::Interrupted,
            Err(ReadlineError::Eof) => Read::End,
            Err(error) => return Err(failed(error)),
        };
        if let Some(path) = &self.history {
            let _ = self.editor.append_history(path);
        }
        Ok(read)
    }
}

/// Completes the word at the cursor as the program's own completion does.
struct Words {
    store: Option<String>,
    program: clap::Command,
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..cursor];
        let Split { words: mut call, raw, .. } = split(before);
        let start = before.len() - raw.len();
        let at = verb_len(&call[..call.len() - 1], &self.program);
        if let Some(store) = self.store.as_ref().filter(|_| takes_store(&call[..at], &self.program)) {
            call.insert(at, store.clone());
        }
        let pairs = candidates(&call).into_iter().map(|candidate| {
            let goes_on = candidate.word.ends_with(['=', '/']);
            let replacement = shell_word(&candidate.word) + if goes_on { "" } else { " " };
            Pair { display: candidate.word, replacement }
        });
        Ok((start, pairs.collect()))
    }
}

impl rustyline::hint::Hinter for Words {
    type Hint = String;
}
impl rustyline::highlight::Highlighter for Words {}
impl rustyline::validate::Validator for Words {}
impl rustyline::Helper for Words {}
