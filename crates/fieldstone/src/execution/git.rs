//! Which version of the sources lies in a folder, as the program `git` says.
//!
//! Nothing here fails: where there is no `git`, or no repository, there is nothing to say.

use std::path::Path;
use std::process::{Command, Stdio};

use fieldstone_core::value::Value;

use super::files::checksum_text;
use super::secrets::hide;

/// Root, commit, branch, whether tracked files differ from it (and then a checksum of the differences), and the URL of
/// the remote. `None` outside of a repository.
pub fn describe(folder: &Path) -> Option<Value> {
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
