//! The shell: verbs and traversals, line after line, on one store.
//!
//! A line is a call of the program without its name and without the store, which is opened once; or a traversal, which
//! begins with `v(`. [`line`] says which; [`editor`] reads lines from a terminal, with completion and history. Each line
//! runs as the program would: the same output, the same errors, the same exit code.
//!
//! Invariants:
//! * a line that fails does not end the shell;
//! * where lines do not come from a terminal nothing is printed but what the verbs print, and the shell ends with the
//!   code of the first line that failed.

mod editor;
pub mod line;

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};

use fieldstone::Error;

use crate::output::{self, Done, EarlyEnd};
use editor::{Editor, Read};
use line::Line;

/// The state that all lines share.
#[derive(Debug)]
pub struct ShellContext {
    store: Option<String>,
    /// Options that every call gets.
    global: Vec<String>,
    json: bool,
    program: clap::Command,
    /// Of the first line that failed.
    failed: Option<u8>,
}

impl ShellContext {
    /// A session on a store; `global`: options that every call gets.
    pub fn new(store: Option<String>, global: Vec<String>) -> ShellContext {
        let mut program = crate::command();
        program.build();
        let json = global.iter().any(|option| option == "--json" || option == "--jsonl");
        ShellContext { store, global, json, program, failed: None }
    }

    /// Does what a line says; whether another may follow.
    fn run(&mut self, line: &str) -> bool {
        match line::parse(line, self.store.as_deref(), &self.global, &self.program) {
            Ok(Line::Empty) => {}
            Ok(Line::Exit) => return false,
            Ok(Line::Open(store)) => self.store = Some(store),
            Ok(Line::Call(words)) => {
                let name = OsString::from("fieldstone");
                let code = crate::call([name].into_iter().chain(words.into_iter().map(OsString::from)));
                self.note(code);
            }
            Err(error) => self.report(&error),
        }
        true
    }

    fn report(&mut self, error: &Error) {
        output::report(error, self.json);
        self.note(error.kind().exit_code());
    }

    fn note(&mut self, code: u8) {
        if code != 0 {
            self.failed.get_or_insert(code);
        }
    }
}

/// Reads lines until they end.
pub fn run(mut session: ShellContext) -> Done {
    if std::io::stdin().is_terminal() {
        let mut editor = Editor::new()?;
        loop {
            match editor.read(session.store.as_deref())? {
                Read::Line(line) if session.run(&line) => {}
                Read::Interrupted => {}
                Read::Line(_) | Read::End => return Ok(()),
            }
        }
    }
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Error::io("read", std::path::Path::new("<stdin>"), e))?;
        if !session.run(&line) {
            break;
        }
    }
    match session.failed {
        None => Ok(()),
        Some(code) => Err(EarlyEnd::Exit(code)),
    }
}
