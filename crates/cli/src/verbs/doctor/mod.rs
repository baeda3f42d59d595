//! `fieldstone doctor`: what a file system does, tried out, and what the store will do there.
//!
//! Everything goes through the calls that the store itself makes (`fieldstone::Env`). All files are made
//! in a folder of their own, which is removed at the end.

mod peers;
mod tests_of_disk;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::{Code, Env, Error, scheduler};
use serde_json::json;

use crate::output::{Done, Out, count, file_error, size};

const EXAMPLES: &str = "\
Examples:
  fieldstone doctor /scratch/me
  fieldstone doctor . --json | jq '.tests[] | select(.outcome != \"ok\")'
  srun -N 2 -n 2 fieldstone doctor --peers 2 /scratch/me

For --peers N, start it N times at once, on N hosts; it measures how late they see one another's syncs, and one of
them reports. Without a batch system, give all of them the same --job.

Ends with 7 if a store could not keep its promises on this file system.";

/// Test a file system and say what the store will do there
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A folder on the file system, writable
    path: PathBuf,
    /// How many of these processes meet in the folder
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    peers: Option<u32>,
    /// A word that those share which meet; the batch system's job where it is not given
    #[arg(long, requires = "peers", value_parser = job_word)]
    job: Option<String>,
}

fn job_word(text: &str) -> Result<String, String> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if plain { Ok(text.to_owned()) } else { Err("letters, digits, _, - and . alone".to_owned()) }
}

/// The job and step of a batch system, of which all processes have the same.
fn job_of_environment() -> String {
    scheduler::job(scheduler::own).filter(|job| job_word(job).is_ok()).unwrap_or_else(|| "now".to_owned())
}

/// Bytes without which nothing can be tried.
const LEAST_FREE: u64 = 8 << 20;

/// How a test went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As the store needs it.
    Ok,
    /// The store works, with the consequence that is reported.
    Warning,
    /// The store cannot work.
    Failed,
    /// Nothing to test.
    Unused,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Failed => "failed",
            Outcome::Unused => "unused",
        })
    }
}

/// One test with what was found and what the store does about it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub name: &'static str,
    pub outcome: Outcome,
    pub detail: String,
    pub store: &'static str,
}

/// Tests and reports.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let path = &arguments.path;
    let facts = std::fs::metadata(path).map_err(|e| file_error("look at", path, e))?;
    if !facts.is_dir() {
        return Err(Code::FileKind
            .error(format!("{} is not a folder", path.display()))
            .with_hint("name the folder where the store is to be")
            .into());
    }
    let env = Env::real();
    let mount = Mount::of(path);
    check_room(path, env.disk.space(path).map_or(u64::MAX, |space| space.free_bytes))?;
    let findings = match arguments.peers {
        Some(peers) => {
            let job = arguments.job.clone().unwrap_or_else(job_of_environment);
            match peers::meet(&env, path, peers as usize, &job)? {
                Some(findings) => findings,
                None => return Ok(()),
            }
        }
        None => {
            let scratch = Scratch::new(&env, path)?;
            tests_of_disk::all(&env, scratch.path(), mount.as_ref())
        }
    };

    let failed = findings.iter().filter(|f| f.outcome == Outcome::Failed).count();
    if out.json() {
        let test = |f: &Finding| json!({"name": f.name, "outcome": f.outcome.to_string(), "detail": f.detail, "store": f.store});
        out.document(&json!({
            "path": path.to_string_lossy(),
            "file_system": mount.as_ref().map(|m| &m.kind),
            "mounted_at": mount.as_ref().map(|m| &m.at),
            "ok": failed == 0,
            "tests": findings.iter().map(test).collect::<Vec<_>>(),
        }))?;
    } else {
        let (kind, at) = mount.as_ref().map_or(("unknown", "?"), |m| (&m.kind, &m.at));
        writeln!(out, "{}: file system {kind}, mounted at {at}", path.display())?;
        for f in &findings {
            let colour = match f.outcome {
                Outcome::Ok => "\x1b[32m",
                Outcome::Warning => "\x1b[33m",
                Outcome::Failed => "\x1b[31m",
                Outcome::Unused => "\x1b[2m",
            };
            let (on, off) = if out.colour() { (colour, "\x1b[0m") } else { ("", "") };
            writeln!(out, "{on}{:<8}{off} {:<13} {}", f.outcome, f.name, f.detail)?;
            writeln!(out, "{:22} {}", "", f.store)?;
        }
    }
    match failed {
        0 => Ok(()),
        n => Err(Error::unavailable(format!(
            "{} failed: a store in {} is not safe",
            count(n as u64, "test"),
            path.display()
        ))
        .with_hint("use another file system, or ask its administrator about the failed tests")
        .into()),
    }
}

/// A full disk says nothing about what it does when it is not.
fn check_room(path: &Path, free: u64) -> Done {
    if free >= LEAST_FREE {
        return Ok(());
    }
    Err(Code::DiskFull
        .error(format!(
            "the disk of {} is full, with {} free: nothing can be tried",
            path.display(),
            size(free)
        ))
        .with_hint("make room, then ask again")
        .into())
}

/// The folder of the tests; gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(env: &Env, parent: &Path) -> Done<Scratch> {
        let mut id = [0; 8];
        env.rand.fill(&mut id);
        let path = parent.join(format!(".fieldstone-doctor-{:016x}", u64::from_ne_bytes(id)));
        std::fs::create_dir(&path).map_err(|e| file_error("create", &path, e))?;
        Ok(Scratch(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The mount point and the type of a path's file system.
pub(crate) struct Mount {
    pub kind: String,
    pub at: String,
}

impl Mount {
    fn of(path: &Path) -> Option<Mount> {
        let path = path.canonicalize().ok()?;
        Mount::find(&path, &std::fs::read_to_string("/proc/self/mountinfo").ok()?)
    }

    /// The last mount of the longest folder that holds the path. A line of mountinfo is
    /// `id parent major:minor root MOUNTED_AT options … - KIND source options`, blanks as `\040`.
    fn find(path: &Path, mountinfo: &str) -> Option<Mount> {
        let mount = |line: &str| {
            let (left, right) = line.split_once(" - ")?;
            let at = left.split(' ').nth(4)?.replace("\\040", " ");
            Some(Mount { kind: right.split(' ').next()?.to_owned(), at })
        };
        let holding = mountinfo.lines().filter_map(mount).filter(|m| path.starts_with(&m.at));
        holding.max_by_key(|m| m.at.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_bad_one() {
        let path = Path::new("/scratch");
        assert!(check_room(path, LEAST_FREE).is_ok());
        let Err(crate::output::EarlyEnd::Error(error)) = check_room(path, 12 << 10) else {
            panic!("it is full")
        };
        assert_eq!(error.code(), Code::DiskFull);
        assert_eq!(error.message(), "the disk of /scratch is full, with 12.0 KiB free: nothing can be tried");
    }

    #[test]
    fn the_deepest_mount_counts() {
        let table = "1 0 8:1 / / rw - ext4 /dev/a rw\n\
                     2 1 0:5 / /data rw shared:1 - nfs4 host:/x rw\n\
                     3 1 0:6 / /my\\040disk rw - xfs /dev/b rw\n";
        let kind = |path: &str| Mount::find(Path::new(path), table).map(|m| m.kind);
        assert_eq!(kind("/data/store").as_deref(), Some("nfs4"));
        assert_eq!(kind("/database").as_deref(), Some("ext4"));
        assert_eq!(kind("/my disk/a").as_deref(), Some("xfs"));
        assert_eq!(kind("relative"), None);
    }
}
