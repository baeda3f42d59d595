//! A process that puts relations into a graph, or reads them while others put: the tests run several at once.
//!
//! ```text
//! grapher write STORE NAME SECONDS    after each flush: how many relations NAME has, and the moment it returned
//! grapher read STORE SECONDS A B      whenever it finds more of A's or B's: the name, how many, and the moment
//! ```
//! A moment is nanoseconds since 1970. A flush holds 20 relations `write` from the job NAME. The reader fails if it
//! finds fewer than before, or a relation without its file.

use std::io::Write;

use fieldstone::Session;
use fieldstone::catalog::value::Value as CatalogValue;
use fieldstone::graph::{Props, RelationPut, Versions, VertexName};
use fieldstone::{Env, Error, Mode, OpenOptions, Result, Store};

/// Relations of a flush.
const FLUSH: usize = 20;
/// Pause between two flushes, and between two looks.
const PAUSE: u64 = 20_000_000;

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| Error::io("write", "stdout".as_ref(), e))
}

fn file(name: &str, number: usize) -> VertexName {
    VertexName::new("file", &format!("/{name}/{number}"))
}

fn write(env: &Env, store: &Store, name: &str, end: u64) -> Result<()> {
    let job = VertexName::new("job", name);
    // Long enough that a few seconds of writing fill a file of the index.
    let props = Props::of([("note", &CatalogValue::Text("x".repeat(200)))])?;
    let mut there = 0;
    loop {
        let put = |number: usize| RelationPut {
            props: props.clone(),
            ..RelationPut::new("write", job.clone(), file(name, number))
        };
        store.graph().put_relations((there..there + FLUSH).map(put).collect(), &Session::default())?;
        store.flush(None)?;
        there += FLUSH;
        say(&format!("{there} {}", env.clock.now()))?;
        if env.clock.monotonic() >= end {
            return Ok(());
        }
        env.clock.sleep(PAUSE);
    }
}

fn read(env: &Env, store: &Store, names: &[&str], end: u64) -> Result<()> {
    let mut last = vec![0; names.len()];
    while env.clock.monotonic() < end {
        for (name, last) in names.iter().zip(&mut last) {
            let job = VertexName::new("job", name);
            let found =
                store.graph().edges(&job, Some("write"), Versions::NOW, None, &Session::default())?.len();
            if found < *last {
                return Err(Error::internal(format!("{found} relations of {name}, and {last} before")));
            }
            if found > *last {
                let newest = file(name, found - 1);
                let back = store.graph().edges(
                    &newest,
                    Some("wasWrittenBy"),
                    Versions::NOW,
                    None,
                    &Session::default(),
                )?;
                if back.len() != 1 {
                    return Err(Error::internal(format!("{newest} was written {} times", back.len())));
                }
                *last = found;
                say(&format!("{name} {found} {}", env.clock.now()))?;
            }
        }
        env.clock.sleep(PAUSE);
    }
    Ok(())
}

fn run(arguments: &[&str]) -> Result<()> {
    let env = Env::real();
    let end = |seconds: &str| {
        let seconds: u64 =
            seconds.parse().map_err(|_| Error::invalid(format!("'{seconds}' is not a number of seconds")))?;
        Ok::<u64, Error>(env.clock.monotonic() + seconds * 1_000_000_000)
    };
    let open = |url: &str, mode: Mode| fieldstone::open(url, &OpenOptions { mode, ..OpenOptions::default() });
    match arguments {
        ["write", url, name, seconds] => {
            let store = open(url, Mode::Append)?;
            write(&env, &store, name, end(seconds)?)?;
            store.close()
        }
        ["read", url, seconds, names @ ..] => {
            let store = open(url, Mode::Read)?;
            read(&env, &store, names, end(seconds)?)?;
            store.close()
        }
        _ => Err(Error::invalid(
            "usage: grapher write STORE NAME SECONDS, or grapher read STORE SECONDS NAME...",
        )),
    }
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
