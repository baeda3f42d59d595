//! A writer or a reader of a store, as a process of its own. The tests stop and kill it.
//!
//! ```text
//! writer write STORE NAME FLUSHES [large]   prints the number of each flush when it has returned
//! writer read STORE TIMES                   lists and reads everything, so many times
//! ```
//! A flush holds three fields under run NAME; with `large`, every fourth one goes through a data log.

use std::io::Write;

use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, Error, ListOptions, OpenOptions, ReadOptions, Request, Result, RetrieveOptions, Value,
};
use fieldstone_testkit::fields::content;

fn write(url: &str, run: &str, flushes: u64, large: bool) -> Result<()> {
    let store = fieldstone::open(url, &OpenOptions::default())?;
    for flush in 0..flushes {
        for step in 3 * flush..3 * flush + 3 {
            let length = if large && flush % 4 == 3 { 500_000 } else { 100 + step as usize % 900 };
            let key = [("run", run), ("variable", "v"), ("step", &step.to_string())];
            store.archive(&key, Value::Bytes(&content(run, step, length)), &ArchiveOptions::default())?;
        }
        store.flush(None)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{flush}")
            .and_then(|()| out.flush())
            .map_err(|e| Error::io("write", "stdout".as_ref(), e))?;
    }
    store.close()
}

fn read(url: &str, times: u64) -> Result<()> {
    for _ in 0..times {
        let store = fieldstone::open(url, &OpenOptions::default())?;
        for entry in store.list(&Request::new(), &ListOptions::default())? {
            let entry = entry?;
            let pairs: Vec<(String, String)> = entry
                .key
                .levels
                .iter()
                .flat_map(|level| level.names.iter().zip(&level.values))
                .filter(|(_, value)| !value.is_absent())
                .map(|(name, value)| (name.to_string(), value.text().into_owned()))
                .collect();
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            store.get(&pairs, &ReadOptions::default())?.read()?;
        }
        let fields = store.retrieve(&Request::new(), &RetrieveOptions::default())?;
        for field in fields.iter() {
            field?.read()?;
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().map_err(|_| Error::invalid(format!("'{text}' is not a number")));
    let outcome = match arguments[..] {
        ["write", url, run, flushes] => number(flushes).and_then(|n| write(url, run, n, false)),
        ["write", url, run, flushes, "large"] => number(flushes).and_then(|n| write(url, run, n, true)),
        ["read", url, times] => number(times).and_then(|n| read(url, n)),
        _ => Err(Error::invalid("usage: writer write STORE NAME FLUSHES [large] | writer read STORE TIMES")),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
