//! Visibility between processes of several hosts in one folder: `fieldstone doctor --peers N`, started N times.
//!
//! They meet in a folder that is named for the job, each under a random name, and the least of these reports. Every
//! round each of them appends a line to a file of its own, syncs it, and waits until it sees the lines of all others:
//! what a store's readers do, and how late a flush shows. The folder is removed by the one that reports, once all
//! others said that they are done.

use std::path::{Path, PathBuf};

use fieldstone::env::{Env, FileKind, write_all_at};
use fieldstone::{Code, Error, Result};

use super::{Finding, Outcome};

/// Rounds of appending and waiting.
const ROUNDS: u64 = 10;
/// Bytes of a line.
const LINE: usize = 32;
/// How long one waits for another, and how often one looks, nanoseconds.
const PATIENCE: u64 = 60_000_000_000;
const EVERY: u64 = 2_000_000;
/// A flush that shows later than this is worth a warning.
const LATE: u64 = 1_000_000_000;

/// One process among those that meet.
struct Peer<'e> {
    env: &'e Env,
    folder: PathBuf,
    id: String,
    /// All of them, this one too, in order.
    all: Vec<String>,
}

/// The findings of a round of meetings; `None` for processes that do not report.
pub(super) fn meet(env: &Env, parent: &Path, peers: usize, job: &str) -> Result<Option<Vec<Finding>>> {
    let folder = parent.join(format!(".fieldstone-doctor-peers-{job}"));
    env.disk.create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
    let mut random = [0; 8];
    env.rand.fill(&mut random);
    let id = format!("{:016x}", u64::from_ne_bytes(random));
    let mut peer = Peer { env, folder, id, all: Vec::new() };
    let named = peer.gather(peers)?;
    let shown = peer.rounds()?;
    let reports = peer.all.first() == Some(&peer.id);
    if !reports {
        peer.put("done", &format!("{shown}"))?;
        return Ok(None);
    }
    let mut latest = shown;
    let mut hosts = vec![env.identity.host()];
    for other in peer.all.clone().iter().filter(|other| **other != peer.id) {
        let said = peer.wait(&format!("{other}.done"), |text| !text.is_empty())?;
        latest = latest.max(said.trim().parse().unwrap_or(0));
        let host = peer.wait(&format!("{other}.here"), |text| !text.is_empty())?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    peer.leave();
    Ok(Some(findings(peers, &hosts, named, latest)))
}

impl Peer<'_> {
    /// Says that this process is here and waits for the others; how long their names took to show.
    fn gather(&mut self, peers: usize) -> Result<u64> {
        self.put("here", &self.env.identity.host())?;
        let since = self.env.clock.monotonic();
        loop {
            let names =
                self.env.disk.list_dir(&self.folder).map_err(|e| Error::io("list", &self.folder, e))?;
            let here = names.iter().filter(|(_, kind)| *kind == FileKind::File);
            let mut all: Vec<String> =
                here.filter_map(|(name, _)| name.strip_suffix(".here").map(str::to_owned)).collect();
            all.sort_unstable();
            let waited = self.env.clock.monotonic().saturating_sub(since);
            match all.len() {
                n if n == peers => {
                    self.all = all;
                    return Ok(waited);
                }
                n if n > peers => {
                    return Err(Code::Option
                        .error(format!(
                            "{n} processes met in {}, and --peers says {peers}",
                            self.folder.display()
                        ))
                        .with_hint(
                            "start as many as --peers says; remove the folder if an earlier test left it",
                        ));
                }
                n if waited > PATIENCE => {
                    return Err(Code::IoFailed
                        .error(format!("{n} of {peers} peers were seen in {} after 60 s", self.folder.display()))
                        .with_hint("start as many as --peers says, at once, on one folder: srun -n 2 -N 2 fieldstone doctor --peers 2 DIR"));
                }
                _ => self.env.clock.sleep(EVERY),
            }
        }
    }

    /// Appends and waits; how late the latest line of another was seen.
    fn rounds(&self) -> Result<u64> {
        let own = self.folder.join(format!("{}.lines", self.id));
        let file = self.env.disk.create_new(&own).map_err(|e| Error::io("create", &own, e))?;
        let mut latest = 0;
        for round in 0..ROUNDS {
            let line = format!("{:>width$}\n", round, width = LINE - 1);
            let put =
                write_all_at(&*file, line.as_bytes(), round * LINE as u64).and_then(|()| file.sync_data());
            put.map_err(|e| Error::io("write", &own, e))?;
            let since = self.env.clock.monotonic();
            for other in self.all.iter().filter(|other| **other != self.id) {
                let length = (round as usize + 1) * LINE;
                self.wait(&format!("{other}.lines"), |text| text.len() >= length)?;
            }
            latest = latest.max(self.env.clock.monotonic().saturating_sub(since));
        }
        Ok(latest)
    }

    /// The content of a file, once it is the wanted one. Each look opens the file again, as a reader of a store does.
    fn wait(&self, name: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let path = self.folder.join(name);
        let since = self.env.clock.monotonic();
        loop {
            if let Ok(text) = self.read(&path)
                && wanted(&text)
            {
                return Ok(text);
            }
            if self.env.clock.monotonic().saturating_sub(since) > PATIENCE {
                return Err(Code::IoFailed
                    .error(format!("what another peer wrote to {} does not show after 60 s", path.display()))
                    .with_hint("readers on this host would not see what that one flushes"));
            }
            self.env.clock.sleep(EVERY);
        }
    }

    fn read(&self, path: &Path) -> std::io::Result<String> {
        let file = self.env.disk.open_read(path)?;
        let mut bytes = vec![0; file.stat()?.len.min(1 << 16) as usize];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        // A tail of zeros is one that does not show yet.
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Writes a file of this process under its whole name at once.
    fn put(&self, what: &str, text: &str) -> Result<()> {
        let path = self.folder.join(format!("{}.{what}", self.id));
        let draft = self.folder.join(format!("{}.draft", self.id));
        let put = || {
            let file = self.env.disk.create_new(&draft)?;
            write_all_at(&*file, text.as_bytes(), 0)?;
            file.sync_data()?;
            self.env.disk.rename(&draft, &path)
        };
        put().map_err(|e| Error::io("write", &path, e))
    }

    /// Removes the folder with all that is in it.
    fn leave(&self) {
        for (name, _) in self.env.disk.list_dir(&self.folder).unwrap_or_default() {
            let _ = self.env.disk.unlink(&self.folder.join(name));
        }
        let _ = self.env.disk.remove_dir(&self.folder);
    }
}

fn findings(peers: usize, hosts: &[String], named: u64, latest: u64) -> Vec<Finding> {
    let time = |nanoseconds: u64| format!("{:.1} ms", nanoseconds as f64 / 1e6);
    let slow = |nanoseconds: u64| if nanoseconds > LATE { Outcome::Warning } else { Outcome::Ok };
    vec![
        Finding {
            name: "hosts",
            outcome: if hosts.len() > 1 { Outcome::Ok } else { Outcome::Warning },
            detail: match hosts {
                [one] => format!("all {peers} peers ran on {one}: nothing between hosts was tested"),
                hosts => format!("{peers} peers on {}", hosts.join(", ")),
            },
            store: "writers of any number of hosts share a store",
        },
        Finding {
            name: "peers' names",
            // Not all are started at one moment: this is an upper bound.
            outcome: Outcome::Ok,
            detail: format!("all seen {} after this one began", time(named)),
            store: "a store's logs are found by listing a folder",
        },
        Finding {
            name: "peers' syncs",
            outcome: slow(latest),
            detail: format!("the latest showed {} after it was waited for, in {ROUNDS} rounds", time(latest)),
            store: "what a flush returned from shows on other hosts so much later",
        },
    ]
}
