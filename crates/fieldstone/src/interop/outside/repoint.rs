//! Repoints runs to files outside the store that were moved.
//!
//! Invariants: all runs below the old folder are repointed, or none; the rest of a run's declaration stays; older
//! versions of the store answer as recorded.
//!
//! ```
//! use fieldstone::OpenOptions;
//! use fieldstone::catalog::{Query, value::Value};
//! use fieldstone::outside::repoint;
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let text = |text: &str| Value::Text(text.into());
//! let outside = [("template", text("{variable}.raw")), ("format", text("raw")), ("root", text("/scratch/a"))];
//! let outside = Value::Map(outside.map(|(key, value)| (key.to_owned(), value)).into());
//! store.create_run("a").outside(outside).create()?;
//! assert_eq!(repoint(&store, "/scratch", "/archive", &Query::all())?[0].name, "a");
//! let declared = store.run("a")?.info()?.decl.outside;
//! assert!(declared.is_some_and(|outside| outside.to_string().contains("/archive/a")));
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::BTreeSet;

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::RunName;

use crate::Session;
use crate::Store;
use crate::catalog::Query;

/// Maximum number of folders that an error names.
const NAMED: usize = 5;

/// Records that files outside the store below one folder now lie below another: for all runs that a query selects and
/// whose root, or absolute template, is the folder or below it. Returns these runs. Visible to all at flush. Names in
/// the query are literal; use `like` for a pattern.
///
/// Errors: `NotFound` if there is no such run, `Denied` if another user owns one: then nothing changes.
pub fn repoint(store: &Store, old: &str, new: &str, runs: &Query) -> Result<Vec<RunName>> {
    let (old, new) = (trimmed(old)?, trimmed(new)?);
    if runs.session.transaction().is_some() {
        return Err(Error::invalid("commit the transaction before you repoint its runs"));
    }
    let mut moved = Vec::new();
    let mut roots = BTreeSet::new();
    for info in store.catalog().runs_to_change(runs)? {
        let Some(outside) = &info.decl.outside else { continue };
        match repointed(outside, old, new) {
            Some(outside) => moved.push((info.decl.run, outside)),
            None => drop(root(outside).map(|root| roots.insert(root.to_owned()))),
        }
    }
    if moved.is_empty() {
        let error = Error::not_found(format!("no run has its data below {old}"));
        let known: Vec<&str> = roots.iter().take(NAMED).map(String::as_str).collect();
        return Err(match known.is_empty() {
            true => error.with_hint("none of the runs asked for has data outside the store"),
            false => error.with_hint(format!("runs have data below {}", known.join(", "))),
        });
    }
    let names = moved.iter().map(|(run, _)| run.clone()).collect();
    store.catalog().move_outside(moved, &Session::default())?;
    Ok(names)
}

/// A folder without `/` at its end.
fn trimmed(folder: &str) -> Result<&str> {
    match folder.trim_end_matches('/') {
        "" if folder.is_empty() => {
            Err(Error::invalid("the folder's name is empty").with_hint("give its path"))
        }
        trimmed => Ok(trimmed),
    }
}

fn root(outside: &Value) -> Option<&str> {
    let Value::Map(parts) = outside else { return None };
    parts.iter().find_map(|(key, value)| match value {
        Value::Text(text) if key == "root" => Some(text.as_str()),
        _ => None,
    })
}

/// The declaration with its paths moved to the new folder; `None` if none lies below the old one.
fn repointed(outside: &Value, old: &str, new: &str) -> Option<Value> {
    let Value::Map(parts) = outside else { return None };
    let mut any = false;
    let parts = parts.iter().map(|(key, value)| {
        let path = match value {
            Value::Text(text) if key == "root" || (key == "template" && text.starts_with('/')) => text,
            _ => return (key.clone(), value.clone()),
        };
        let below = path.strip_prefix(old).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(rest) = below else { return (key.clone(), value.clone()) };
        any = true;
        let path = format!("{new}{rest}");
        (key.clone(), Value::Text(if path.is_empty() { "/".into() } else { path }))
    });
    let parts = parts.collect();
    any.then_some(Value::Map(parts))
}
