//! Ctrl-C, and a request to terminate, for verbs that have something to say or to clear away before they end.
//!
//! While an [`Interrupt`] is there, the first signal is noted and the second ends the program; before and after, every
//! one does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The code of a program that Ctrl-C ended, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Signals that ask a program to end.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// For each signal: set where it came, and where it is to end the program at once.
static ASKED: OnceLock<[Arc<AtomicBool>; SIGNALS.len()]> = OnceLock::new();

/// Watches for signals that ask to end until it is dropped.
pub struct Interrupt(&'static [Arc<AtomicBool>; SIGNALS.len()]);

impl Interrupt {
    /// Begins to watch for signals. If the system does not allow that, signals end the program as usual.
    pub fn watch() -> Interrupt {
        let asked = ASKED.get_or_init(|| {
            SIGNALS.map(|signal| {
                let asked = Arc::new(AtomicBool::new(false));
                // In this order: a flag that is set already ends the program, then the flag is set.
                if flag::register_conditional_default(signal, asked.clone()).is_ok() {
                    let _ = flag::register(signal, asked.clone());
                }
                asked
            })
        });
        asked.iter().for_each(|asked| asked.store(false, Ordering::SeqCst));
        Interrupt(asked)
    }

    /// Whether a signal came.
    pub fn is_asked(&self) -> bool {
        self.code().is_some()
    }

    /// The code of a program that ends by the signal that came, as shells have it.
    pub fn code(&self) -> Option<u8> {
        let signal = SIGNALS.iter().zip(self.0).find(|(_, asked)| asked.load(Ordering::SeqCst));
        signal.and_then(|(signal, _)| u8::try_from(128 + signal).ok())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.iter().for_each(|asked| asked.store(true, Ordering::SeqCst));
    }
}
