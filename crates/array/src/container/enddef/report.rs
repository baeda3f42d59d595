//! Cost report of a collective call: seconds and memory of each phase, comparisons, names, bytes.
//!
//! Memory is counted, not measured: each phase adds up the buffers that it holds at the same time, so the figure is
//! the same on every machine, and for ranks that are threads of one process.

use fieldstone_core::env::Clock;
use fieldstone_core::env::comm::Counters;

/// A phase of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// `definition`, `exchange`, `check`, `header write` or `close`.
    pub name: &'static str,
    /// Seconds on this rank, including waiting.
    pub seconds: f64,
    /// Maximum number of bytes that definitions and buffers held at a time.
    pub peak_bytes: u64,
}

/// The work of one rank in a collective call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Its phases, in order.
    pub phases: Vec<Phase>,
    /// The traffic that it exchanged.
    pub counters: Counters,
    /// Number of comparisons between names or hashes.
    pub comparisons: u64,
    /// Number of names whose definition or hash it held.
    pub names_held: u64,
    /// Bytes of the header that it wrote.
    pub header_bytes_written: u64,
    /// Objects of this rank that a lower rank defines too.
    pub shared: u64,
}

impl Report {
    /// Maximum number of bytes held at a time in any phase.
    pub fn peak_bytes(&self) -> u64 {
        self.phases.iter().map(|phase| phase.peak_bytes).max().unwrap_or(0)
    }

    /// Seconds of all phases together.
    pub fn seconds(&self) -> f64 {
        self.phases.iter().map(|phase| phase.seconds).sum()
    }
}

/// The state of a paused watch, between two steps.
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
    /// Starts a watch; `held` bytes are held throughout.
    pub fn new(clock: &'a dyn Clock, held: u64) -> Watch<'a> {
        Watch { clock, since: clock.monotonic(), held, peak: held, report: Report::default() }
    }

    /// Stops; returns the state for the watch of a later step.
    pub fn pause(self) -> Progress {
        Progress { report: self.report, held: self.held }
    }

    /// Continues from a paused watch.
    pub fn resume(clock: &'a dyn Clock, progress: Progress) -> Watch<'a> {
        Watch { report: progress.report, ..Watch::new(clock, progress.held) }
    }

    /// Adds `bytes` to those held.
    pub fn hold(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
        self.peak = self.peak.max(self.held);
    }

    /// Subtracts `bytes` from those held.
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
