//! Work of a follower that nobody waits for: on a thread of its own, one at a time.

use fieldstone_core::sync::Mutex;
use fieldstone_core::sync::thread::{self, JoinHandle};

/// A place for one thread that works beside those who call.
#[derive(Debug, Default)]
pub struct Beside {
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Beside {
    /// Starts a thread with this name, unless one is at work. The error says that none can be started.
    pub fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut own = self.thread.lock();
        if own.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        *own = Some(thread::Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }

    /// Waits until nothing is at work. The next reader does the work of a thread that panicked.
    pub fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            drop(thread.join());
        }
    }
}
