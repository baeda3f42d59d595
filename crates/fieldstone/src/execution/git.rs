//! Which version of the sources lies in a folder, as the program `git` says.
//!
//! Nothing here fails: where there is no `git`, or no repository, there is nothing to say. What it said last is taken again
//! for two seconds: a function of which each call is an execution would wait for it longer than it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fieldstone_core::env::Clock;
use fieldstone_core::sync::Mutex;
use fieldstone_core::value::Value;

use super::files::checksum_text;
use crate::secrets::hide;

/// How long what was said holds, nanoseconds.
const HOLDS: u64 = 2_000_000_000;

/// A folder, when it was asked for, and what was said.
type Said = (PathBuf, i64, Option<Value>);

/// What is known of a folder; see [`ask`].
pub fn describe(folder: &Path, clock: &dyn Clock) -> Option<Value> {
    static LAST: Mutex<Option<Said>> = Mutex::new(None);
    let now = clock.now();
    // A lock that a thread held as its process was forked stays locked in the child, which asks by itself then.
    let Some(mut last) = LAST.try_lock() else { return ask(folder) };
    if let Some((known, then, said)) = &*last
        && known == folder
        && now.abs_diff(*then) < HOLDS
    {
        return said.clone();
    }
    let said = ask(folder);
    *last = Some((folder.to_owned(), clock.now(), said.clone()));
    said
}

/// Root, commit, branch, whether tracked files differ from it (and then a checksum of the differences), and the URL of
/// the remote. `None` outside of a repository.
fn ask(folder: &Path) -> Option<Value> {
    let root = git(folder, &["rev-parse", "--show-toplevel"])?;
    let mut all = vec![("root".to_owned(), Value::Text(root))];
    let mut add = |name: &str, value: Option<Value>| all.extend(value.map(|value| (name.to_owned(), value)));
    add("commit", git(folder, &["rev-parse", "--verify", "-q", "HEAD"]).map(Value::Text));
    add("branch", git(folder, &["symbolic-ref", "--short", "-q", "HEAD"]).map(Value::Text));
    let changed = output(folder, &["status", "--porcelain", "--untracked-files=no"]);
    let dirty = changed.map(|changed| !changed.is_empty());
    add("dirty", dirty.map(Value::Bool));
    if dirty == Some(true) {
        let changes = output(folder, &["diff", "--no-ext-diff", "--binary", "HEAD"]);
        add("changes", changes.map(|changes| Value::Text(checksum_text(&changes))));
    }
    add("remote", git(folder, &["config", "--get", "remote.origin.url"]).map(|url| Value::Text(hide(&url))));
    Some(Value::Map(all))
}

/// A line that git says; `None` where it says nothing.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let text = String::from_utf8(output(folder, arguments)?).ok()?;
    Some(text.trim_end_matches('\n').to_owned()).filter(|text| !text.is_empty())
}

fn output(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        // A look must not write into the repository.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}
