//! The version of the sources in a folder, from the program `git`.
//!
//! Nothing here fails: without `git`, or without a repository, there is no version. An answer is reused for two
//! seconds: otherwise a function whose every call is an execution would wait for `git` longer than it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fieldstone_core::env::Clock;
use fieldstone_core::sync::Mutex;
use fieldstone_core::value::Value;

use super::files::checksum_text;
use crate::secrets::hide;

/// Nanoseconds for which an answer is reused.
const HOLDS: u64 = 2_000_000_000;

/// A folder, the time of the question, and the answer.
type Said = (PathBuf, i64, Option<Value>);

/// The version in a folder; see [`ask`].
pub fn describe(folder: &Path, clock: &dyn Clock) -> Option<Value> {
    static LAST: Mutex<Option<Said>> = Mutex::new(None);
    let now = clock.now();
    // A lock that a thread held during a fork stays locked in the child, which then asks by itself.
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

/// Root, commit, branch, whether tracked files differ from it (if so, also a checksum of the differences), and the URL
/// of the remote. `None` outside a repository.
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

/// The line that git prints; `None` if it prints nothing.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let text = String::from_utf8(output(folder, arguments)?).ok()?;
    Some(text.trim_end_matches('\n').to_owned()).filter(|text| !text.is_empty())
}

fn output(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        // This query must not write into the repository.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}
