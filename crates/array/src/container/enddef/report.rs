//! What a collective moment took: seconds and memory of each phase, comparisons, names, bytes.
//!
//! Memory is counted, not measured: each phase adds up the buffers that it holds at once, so that the
//! figure is the same on every machine and for ranks that are threads of one process.

use fieldstone_core::env::Clock;
use fieldstone_core::env::comm::Counters;

/// A phase of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// `definition`, `exchange`, `check`, `header write` or `close`.
    pub name: &'static str,
    /// Seconds it took on this rank, waiting included.
    pub seconds: f64,
    /// The most bytes that definitions and buffers held at once in it.
    pub peak_bytes: u64,
}

/// What one rank did at a collective moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Its phases, in order.
    pub phases: Vec<Phase>,
    /// What it exchanged.
    pub counters: Counters,
    /// Names or hashes that it compared with another.
    pub comparisons: u64,
    /// Names whose definition or hash it held.
    pub names_held: u64,
    /// Bytes of the header that it wrote.
    pub header_bytes_written: u64,
    /// Objects of this rank that a lower rank defines too.
    pub shared: u64,
}

impl Report {
    /// The most bytes held at once in any phase.
    pub fn peak_bytes(&self) -> u64 {
        self.phases.iter().map(|phase| phase.peak_bytes).max().unwrap_or(0)
    }

    /// Seconds of all phases together.
    pub fn seconds(&self) -> f64 {
        self.phases.iter().map(|phase| phase.seconds).sum()
    }
}

/// How far a watch came, between two steps.
#[derive(Debug, Default)]
pub(super) struct Progress {
    report: Report,
    held: u64,
}

/// Follows the phases of one rank.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    clock: &'a dyn Clock,
    since: u64,
    held: u64,
    peak: u64,
    pub report: Report,
}

impl<'a> Watch<'a> {
    /// Begins to watch; `held` bytes are held throughout.
    pub fn new(clock: &'a dyn Clock, held: u64) -> Watch<'a> {
        Watch { clock, since: clock.monotonic(), held, peak: held, report: Report::default() }
    }

    /// What goes over into the watch of a later step.
    pub fn pause(self) -> Progress {
        Progress { report: self.report, held: self.held }
    }

    /// Goes on where another left off.
    pub fn resume(clock: &'a dyn Clock, progress: Progress) -> Watch<'a> {
        Watch { report: progress.report, ..Watch::new(clock, progress.held) }
    }

    /// `bytes` more are held from now on.
    pub fn hold(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
        self.peak = self.peak.max(self.held);
    }

    /// `bytes` are held no longer.
    pub fn release(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Ends a phase.
    pub fn end(&mut self, name: &'static str) {
        let now = self.clock.monotonic();
        let seconds = now.saturating_sub(self.since) as f64 / 1e9;
        match self.report.phases.iter_mut().find(|phase| phase.name == name) {
            Some(phase) => {
                phase.seconds += seconds;
                phase.peak_bytes = phase.peak_bytes.max(self.peak);
            }
            None => self.report.phases.push(Phase { name, seconds, peak_bytes: self.peak }),
        }
        self.since = now;
        self.peak = self.held;
    }
}
