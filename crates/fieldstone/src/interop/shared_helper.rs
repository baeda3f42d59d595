//! The helper process that one call leaves for the next, so that a call for one message or file need not start Python
//! (B-5).
//!
//! Invariants: at most one helper waits; it only serves the process that started it, with the Python and the
//! environment of its start; a helper that may be in the middle of an answer is not left (its user sets
//! [`SharedHelper::helper`] to `None`).

use std::ffi::OsString;
use std::path::PathBuf;

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;

use crate::interop::helper::{Helper, HelperOptions};

/// A helper that waits for the next question.
static IDLE: Mutex<Option<IdleHelper>> = Mutex::new(None);

struct IdleHelper {
    helper: Helper,
    /// The process that started it.
    process: u32,
    origin: Origin,
}

/// The settings that a helper was started with: one with other settings may answer differently.
#[derive(Clone, PartialEq, Eq)]
struct Origin {
    python: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
}

/// A helper that is started when first needed, and again after it died. At the end it waits for the next call.
pub struct SharedHelper<'a> {
    pub options: &'a HelperOptions,
    pub helper: Option<Helper>,
    /// Whether a helper has ever answered: if none can start, no file can be read.
    pub answered: bool,
    /// Settings of the helper.
    origin: Option<Origin>,
    /// Whether an earlier call left the helper, and it has not answered yet: it may have ended since.
    pub reused: bool,
}

impl<'a> SharedHelper<'a> {
    /// Uses the helper of an earlier call, so that a call for one message or file need not start Python.
    pub fn new(options: &'a HelperOptions) -> SharedHelper<'a> {
        SharedHelper { options, helper: None, answered: false, origin: None, reused: false }
    }

    /// The helper, running.
    pub fn get(&mut self) -> Result<&mut Helper> {
        if self.helper.is_none() {
            let python = self.options.python.clone();
            self.origin = Some(Origin { python, environment: std::env::vars_os().collect() });
            let idle = IDLE.lock().take();
            if let Some(mut idle) = idle {
                if idle.process != std::process::id() {
                    // A forked child: the helper belongs to its parent, which alone may talk to it and end it.
                    std::mem::forget(idle.helper);
                } else if Some(&idle.origin) == self.origin.as_ref() && idle.helper.is_running() {
                    idle.helper.patience = self.options.patience;
                    self.helper = Some(idle.helper);
                    self.reused = true;
                }
            }
        }
        match &mut self.helper {
            Some(helper) => Ok(helper),
            none => Ok(none.insert(Helper::start(self.options)?)),
        }
    }
}

impl Drop for SharedHelper<'_> {
    fn drop(&mut self) {
        if let (Some(origin), Some(helper)) = (self.origin.take(), self.helper.take()) {
            *IDLE.lock() = Some(IdleHelper { helper, process: std::process::id(), origin });
        }
    }
}
