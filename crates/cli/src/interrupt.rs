//! Ctrl-C for verbs that have something to say before they end.
//!
//! While an [`Interrupt`] is there, the first Ctrl-C is noted and the second ends the program; before and after, every
//! one does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The code of a program that Ctrl-C ended, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Set where Ctrl-C was pressed, and where it is to end the program at once.
static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Watches for Ctrl-C until it is dropped.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to watch. Where the system lets nobody watch, Ctrl-C ends the program as ever.
    pub fn watch() -> Interrupt {
        let asked = ASKED.get_or_init(|| {
            let asked = Arc::new(AtomicBool::new(false));
            // In this order: a flag that is set already ends the program, then the flag is set.
            if flag::register_conditional_default(SIGINT, asked.clone()).is_ok() {
                let _ = flag::register(SIGINT, asked.clone());
            }
            asked
        });
        asked.store(false, Ordering::SeqCst);
        Interrupt(asked.clone())
    }

    /// Whether Ctrl-C was pressed.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
