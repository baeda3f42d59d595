//! Faults of calls, their triggers, and the account of all calls made.
//!
//! A fault strikes by plan (the n-th matching call) or by chance (with a probability for each kind of call). The
//! world's seed determines both fully, as long as one thread at a time makes calls.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::clock::TICK;
use super::random::Random;
use super::{Process, WorldState};

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum OpKind {
    Create,
    OpenRead,
    OpenWrite,
    OpenAppend,
    Read,
    Write,
    Append,
    SyncData,
    Writeback,
    SetLen,
    StatFile,
    CreateDirAll,
    SyncDir,
    ListDir,
    Stat,
    Link,
    Rename,
    Unlink,
    RemoveDir,
    Space,
    Absolute,
}

impl OpKind {
    /// Every kind.
    pub const ALL: [OpKind; 21] = [
        OpKind::Create,
        OpKind::OpenRead,
        OpKind::OpenWrite,
        OpKind::OpenAppend,
        OpKind::Read,
        OpKind::Write,
        OpKind::Append,
        OpKind::SyncData,
        OpKind::Writeback,
        OpKind::SetLen,
        OpKind::StatFile,
        OpKind::CreateDirAll,
        OpKind::SyncDir,
        OpKind::ListDir,
        OpKind::Stat,
        OpKind::Link,
        OpKind::Rename,
        OpKind::Unlink,
        OpKind::RemoveDir,
        OpKind::Space,
        OpKind::Absolute,
    ];

    fn moves_bytes(self) -> bool {
        matches!(self, OpKind::Read | OpKind::Write | OpKind::Append)
    }
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A read or write moves fewer bytes than asked, but at least one. A short append leaves its first bytes in the
    /// file and fails.
    Short,
    /// `ENOSPC`, without effect.
    NoSpace,
    /// `EIO`. A write may leave some of its bytes. A `sync_data` loses all writes since the last one: readers still
    /// see them, and a later `sync_data` succeeds, but they are not durable (as on Linux, which marks the pages
    /// clean).
    Io,
    /// `EIO` of a `sync_data` that made part of the writes durable; otherwise as [`Fault::Io`].
    IoPartial,
    /// `EACCES`, without effect.
    Denied,
    /// The process dies in this call, whose effect may be complete, partial or absent.
    Kill,
    /// All processes of the world die in this call; see [`SimWorld::power_cut`](super::SimWorld).
    PowerOff,
}

/// A fault at the n-th call that matches. Without a restriction, all calls of all hosts match.
#[derive(Debug, Clone)]
pub struct Plan {
    fault: Fault,
    left: u64,
    kind: Option<OpKind>,
    host: Option<String>,
    process: Option<u32>,
    path: Option<String>,
}

impl Plan {
    /// Plans `fault` for the next call.
    pub fn new(fault: Fault) -> Plan {
        Plan { fault, left: 1, kind: None, host: None, process: None, path: None }
    }

    /// Plans it for the n-th matching call from now, counted from 1.
    pub fn nth(mut self, n: u64) -> Plan {
        self.left = n.max(1);
        self
    }

    /// Matches only calls of this kind.
    pub fn kind(mut self, kind: OpKind) -> Plan {
        self.kind = Some(kind);
        self
    }

    /// Matches only calls of this host.
    pub fn host(mut self, host: &str) -> Plan {
        self.host = Some(host.to_owned());
        self
    }

    /// Matches only calls of this process; ids are unique only on one host.
    pub fn process(mut self, process: u32) -> Plan {
        self.process = Some(process);
        self
    }

    /// Matches only calls on paths that contain `part`.
    pub fn path(mut self, part: &str) -> Plan {
        self.path = Some(part.to_owned());
        self
    }

    fn matches(&self, op: &Op) -> bool {
        self.kind.is_none_or(|k| k == op.kind)
            && self.host.as_deref().is_none_or(|h| h == &*op.host)
            && self.process.is_none_or(|p| p == op.process)
            && self.path.as_deref().is_none_or(|p| op.path.to_string_lossy().contains(p))
    }
}

/// The two syncs that tests can disable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// `sync_data`.
    Data,
    /// `sync_dir`.
    Dir,
}

/// Syncs that succeed without doing anything.
#[derive(Debug, Clone)]
pub(super) struct Ignored {
    pub(super) kind: SyncKind,
    /// 0 for all, else the n-th from now.
    pub(super) nth: u64,
    pub(super) path: String,
}

/// One call of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The caller's host.
    pub host: Arc<str>,
    /// The caller's process.
    pub process: u32,
    /// The kind of the call.
    pub kind: OpKind,
    /// The path of the call; for a link or rename, its source. A handle keeps the path by which it was opened.
    pub path: Arc<Path>,
    /// Target of a link or rename.
    pub to: Option<PathBuf>,
    /// Offset of a read, write or append; the length, if the call sets one.
    pub offset: u64,
    /// Bytes read or written.
    pub len: u64,
    /// Whether the call reported success.
    pub ok: bool,
}

/// Calls and bytes so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of each kind, including failed ones.
    pub calls: BTreeMap<OpKind, u64>,
    /// Bytes that reads returned.
    pub bytes_read: u64,
    /// Bytes that successful writes and appends accepted.
    pub bytes_written: u64,
}

impl Counters {
    /// Calls of one kind.
    pub fn count(&self, kind: OpKind) -> u64 {
        self.calls.get(&kind).copied().unwrap_or(0)
    }

    /// Calls of every kind.
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }
}

/// All settings and counts.
#[derive(Debug, Clone)]
pub(super) struct Faults {
    pub(super) plans: Vec<Plan>,
    pub(super) chances: Vec<(OpKind, Fault, f64)>,
    pub(super) capacity: Option<u64>,
    pub(super) max_files: Option<u64>,
    pub(super) ignored: Vec<Ignored>,
    pub(super) tracing: bool,
    pub(super) trace: Vec<Op>,
    pub(super) counters: Counters,
}

impl Faults {
    pub(super) fn new() -> Faults {
        Faults {
            plans: Vec::new(),
            chances: Vec::new(),
            capacity: None,
            max_files: None,
            ignored: Vec::new(),
            tracing: true,
            trace: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Records a finished call.
    pub(super) fn record(&mut self, op: Op) {
        *self.counters.calls.entry(op.kind).or_default() += 1;
        match op.kind {
            OpKind::Read if op.ok => self.counters.bytes_read += op.len,
            OpKind::Write | OpKind::Append if op.ok => self.counters.bytes_written += op.len,
            _ => {}
        }
        if self.tracing {
            self.trace.push(op);
        }
    }

    /// Whether this sync is to do nothing.
    pub(super) fn ignores(&mut self, kind: SyncKind, path: &Path) -> bool {
        let path = path.to_string_lossy();
        let mut ignore = false;
        self.ignored.retain_mut(|i| {
            if i.kind != kind || !path.contains(&i.path) {
                return true;
            }
            match i.nth {
                0 => ignore = true,
                1 => {
                    ignore = true;
                    return false;
                }
                _ => i.nth -= 1,
            }
            true
        });
        ignore
    }

    /// The fault that strikes this call. Every matching plan counts the call.
    fn strike(&mut self, op: &Op, rng: &mut Random) -> Option<Fault> {
        let mut struck = None;
        self.plans.retain_mut(|plan| {
            if !plan.matches(op) {
                return true;
            }
            plan.left -= 1;
            if plan.left == 0 {
                struck = struck.or(Some(plan.fault));
            }
            plan.left > 0
        });
        for (kind, fault, probability) in &self.chances {
            if *kind == op.kind && rng.chance(*probability) {
                struck = struck.or(Some(*fault));
            }
        }
        struck
    }
}

/// The decision on a call.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It succeeds, for at most this number of bytes.
    Go(usize),
    /// It fails, after this effect, if there is one.
    Fail(io::Error, Option<Effect>),
}

/// The extent to which a call takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// As asked, for at most this number of bytes.
    UpTo(usize),
    /// A `sync_data` that loses everything that it should have made durable.
    LoseAll,
    /// A `sync_data` that loses part of it.
    LosePart,
}

fn killed() -> io::Error {
    io::Error::other("process killed")
}

impl WorldState {
    /// Begins a call: advances time, and decides whether and how far the call takes effect.
    pub(super) fn gate(&mut self, op: &Op) -> io::Result<Verdict> {
        self.now = self.now.saturating_add(TICK);
        let process = Process { host: op.host.clone(), id: op.process };
        let alive = self.processes.get(&process).is_some_and(|alive| *alive);
        if self.halted || !alive {
            return Err(killed());
        }
        let len = usize::try_from(op.len).unwrap_or(usize::MAX);
        let Some(fault) = self.faults.strike(op, &mut self.rng) else { return Ok(Verdict::Go(len)) };
        let part = match op.kind.moves_bytes() && len > 1 {
            true => 1 + self.rng.below(op.len - 1) as usize,
            false => len,
        };
        let written = matches!(op.kind, OpKind::Write | OpKind::Append) && len > 1;
        let fail = |e: Errno, effect| Ok(Verdict::Fail(e.into(), effect));
        match fault {
            Fault::Short => Ok(Verdict::Go(part)),
            Fault::NoSpace => fail(Errno::NOSPC, None),
            Fault::Denied => fail(Errno::ACCESS, None),
            Fault::Io if op.kind == OpKind::SyncData => fail(Errno::IO, Some(Effect::LoseAll)),
            Fault::IoPartial if op.kind == OpKind::SyncData => fail(Errno::IO, Some(Effect::LosePart)),
            Fault::Io | Fault::IoPartial => {
                let partial = written && self.rng.coin();
                fail(Errno::IO, partial.then_some(Effect::UpTo(part)))
            }
            Fault::Kill | Fault::PowerOff => {
                if fault == Fault::PowerOff {
                    self.halted = true;
                }
                self.processes.insert(process, false);
                let effect = match self.rng.below(3) {
                    0 => None,
                    1 if written => Some(part),
                    1 if self.rng.coin() => None,
                    _ => Some(len),
                };
                Ok(Verdict::Fail(killed(), effect.map(Effect::UpTo)))
            }
        }
    }

    /// The number of bytes, up to `len`, that still fit on the disk at `offset` of a file of `old_len` bytes.
    pub(super) fn fitting(&self, len: usize, offset: u64, old_len: u64) -> io::Result<usize> {
        let Some(capacity) = self.faults.capacity else { return Ok(len) };
        let free = capacity.saturating_sub(self.used().0);
        let end = offset.saturating_add(len as u64);
        let missing = end.saturating_sub(old_len).saturating_sub(free);
        match (len as u64).saturating_sub(missing) {
            0 if len > 0 => Err(Errno::NOSPC.into()),
            fitting => Ok(fitting as usize),
        }
    }

    /// Checks that the disk has an inode for one more file.
    pub(super) fn inode_left(&self) -> io::Result<()> {
        match self.faults.max_files {
            Some(max) if self.used().1 >= max => Err(Errno::NOSPC.into()),
            _ => Ok(()),
        }
    }

    /// Number of bytes and of files on the disk, counting only files with names.
    pub(super) fn used(&self) -> (u64, u64) {
        let mut used = (0u64, 0u64);
        for node in self.tree.nodes.values() {
            if let super::tree::Node::File(file) = node {
                let data = file.read();
                if data.links > 0 {
                    used = (used.0.saturating_add(data.len()), used.1 + 1);
                }
            }
        }
        used
    }
}
