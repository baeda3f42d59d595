//! Progress of long work on a terminal: a line on stderr, which disappears when the work is done.

use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::output::Out;

/// Columns of the bar.
const BAR: u64 = 30;
/// How long work may take before anything is shown, and how often that is renewed.
const EVERY: Duration = Duration::from_secs(1);

/// A bar of work whose amount is known.
pub struct Bar<'o> {
    out: &'o Out,
    is_seen: bool,
    /// Which item was shown last, and how much of the work, in two-hundredths.
    shown: Cell<Option<(usize, u64)>>,
}

/// The number of times that the line is redrawn: more than a bar has characters, and few for a terminal.
const PARTS: u64 = 200;

impl<'o> Bar<'o> {
    /// A bar that nobody has seen.
    pub fn new(out: &'o Out) -> Bar<'o> {
        Bar { out, is_seen: std::io::stderr().is_terminal(), shown: Cell::new(None) }
    }

    /// Whether there is a terminal for it.
    pub fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Shows how much is done, with words behind the bar; `item`: which of the things that the words name.
    pub fn show(&self, item: usize, done: u64, of: u64, words: impl FnOnce() -> String) {
        let part = done.saturating_mul(PARTS).checked_div(of).unwrap_or(PARTS);
        if self.is_seen && self.shown.replace(Some((item, part))) != Some((item, part)) {
            self.out.status(format_args!("{} {}", bar(done, of), words()));
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if self.shown.get().is_some() {
            self.out.status("");
        }
    }
}

fn bar(done: u64, of: u64) -> String {
    let filled = done.saturating_mul(BAR).checked_div(of).unwrap_or(BAR).min(BAR);
    "█".repeat(filled as usize) + &"·".repeat((BAR - filled) as usize)
}

/// A line with the seconds so far, of work whose amount is not known; nothing where it is over within one.
pub struct Ticker {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Begins to count, beside the work.
    pub fn start(doing: String, out: &Out) -> Ticker {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        if !std::io::stderr().is_terminal() {
            return Ticker { over, thread: None };
        }
        let (ends, line) = (over.clone(), out.status_line());
        let count = move || {
            let (over, changed) = &*ends;
            let mut seconds = 0;
            let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_over {
                let waited = changed.wait_timeout(is_over, EVERY).unwrap_or_else(PoisonError::into_inner);
                is_over = waited.0;
                if !*is_over {
                    seconds += 1;
                    line(&format!("{doing}: {seconds} s"));
                }
            }
            if seconds > 0 {
                line("");
            }
        };
        // If no thread can be started, no progress is shown.
        Ticker { over, thread: std::thread::Builder::new().name("progress".into()).spawn(count).ok() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_fills_from_the_left() {
        assert_eq!(bar(1, 2), "█".repeat(15) + &"·".repeat(15));
        assert_eq!(bar(0, 0), "█".repeat(30));
        assert_eq!(bar(3, 2), "█".repeat(30));
    }
}
