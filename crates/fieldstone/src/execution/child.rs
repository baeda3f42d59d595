//! A command as an execution: `fieldstone run`.
//!
//! The command gets this process's input, output and environment, plus `FIELDSTONE_EXECUTION`. This process passes
//! signals that would end it on to the command, which decides. A terminal sends its signals to the command itself, as a
//! member of the same group. Ignored signals stay ignored, as `nohup` intends. When the command has ended, the process
//! has its earlier handlers again.
//!
//! Invariant: a signal only goes to a process that this one has not waited for yet, so that the number is still its
//! own.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use fieldstone_core::{Error, Result};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::{Execution, ExecutionOptions, Outcome, VARIABLE, files, interpreters};
use crate::Store;

/// Signals that this process passes on.
const PASSED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// The codes of a shell: a command that may not be executed, and one that does not exist.
const NOT_EXECUTABLE: i64 = 126;
const NOT_FOUND: i64 = 127;
/// Shells add this to the number of a signal.
const SIGNALLED: i64 = 128;

/// The process number of the running command; 0 before and after.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the command had a process number.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Whether a command of this process is receiving the signals.
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code for this process: the command's, 128 plus the signal's number, 126 or 127.
    pub code: i64,
    /// Why the command could not start.
    pub failed: Option<String>,
    /// Facts that could not be recorded, one line each.
    pub notes: Vec<String>,
    /// Why the end of the record is not in the store.
    pub unrecorded: Option<Error>,
}

/// Runs a command, the program first, as an execution with its record in `store`.
///
/// An error means that the command did not start, because its beginning could not be recorded.
pub fn run(store: &Store, command: &[OsString], mut options: ExecutionOptions) -> Result<Ended> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::invalid("the command is missing").with_hint("write it after --"));
    };
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    options.argv = command.iter().map(text).collect();
    options.whole = true;
    options.streams = true;
    let folder = std::env::current_dir().map_err(|e| Error::io("look at", ".".as_ref(), e))?;
    let path = std::env::var("PATH").ok();
    options.executable = files::program(&text(program), path.as_deref(), &folder);
    let scripts = interpreters::scripts(&options.argv, path.as_deref(), &folder);
    options.reads.extend(scripts.iter().filter_map(|script| script.to_str().map(str::to_owned)));
    let mut execution = Execution::begin(store, options)?;
    let caught = Caught::begin();
    let started = Command::new(program).args(arguments).env(VARIABLE, execution.link().encode()).spawn();
    let (outcome, code) = match started {
        Ok(mut child) => {
            if let Some(caught) = &caught {
                caught.pass_on_until_the_end_of(&child);
            }
            let status = child.wait();
            let status = status.map_err(|e| Error::internal(format!("cannot wait for the command: {e}")))?;
            match (status.code(), status.signal()) {
                (Some(code), _) => (Outcome::exit(i64::from(code)), i64::from(code)),
                (None, signal) => {
                    let signal = i64::from(signal.unwrap_or(0));
                    (Outcome { signal: Some(signal), ..Outcome::default() }, SIGNALLED + signal)
                }
            }
        }
        Err(e) => {
            let code = if e.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            let error = Some(format!("cannot start {}: {e}", text(program)));
            (Outcome { exit: Some(code), error, ..Outcome::default() }, code)
        }
    };
    // From here on a signal ends this process, even if the disk hangs.
    drop(caught);
    let failed = outcome.error.clone();
    let (notes, unrecorded) = match execution.end(&outcome) {
        Ok(notes) => (notes, None),
        Err(e) => (Vec::new(), Some(e)),
    };
    Ok(Ended { code, failed, notes, unrecorded })
}

fn pass(signal: libc::c_int) {
    if let (Some(child), Some(signal)) =
        (Pid::from_raw(CHILD.load(Ordering::SeqCst)), Signal::from_named_raw(signal))
    {
        let _ = kill_process(child, signal);
    }
}

extern "C" fn handle(signal: libc::c_int, facts: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes valid facts to a handler with SA_SIGINFO.
    let from_kernel = unsafe { facts.as_ref() }.is_some_and(|facts| facts.si_code == libc::SI_KERNEL);
    if from_kernel {
        return;
    }
    if CHILD.load(Ordering::SeqCst) == 0 {
        EARLY.store(signal, Ordering::SeqCst);
    }
    pass(signal);
}

/// Signals caught for a command, each with its earlier handler, which dropping this restores.
struct Caught(Vec<(libc::c_int, libc::sigaction)>);

impl Caught {
    /// Catches signals that are not ignored. `None` if another command of this process has them.
    fn begin() -> Option<Caught> {
        if CAUGHT.swap(true, Ordering::SeqCst) {
            return None;
        }
        EARLY.store(0, Ordering::SeqCst);
        let mut caught = Caught(Vec::with_capacity(PASSED.len()));
        for signal in PASSED {
            // SAFETY: both structures are plain numbers for which zeros are a valid value, and live through the calls;
            // the handler only calls functions that are safe in a handler.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &mut before) != 0
                    || before.sa_sigaction == libc::SIG_IGN
                {
                    continue;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, &action, std::ptr::null_mut()) == 0 {
                    caught.0.push((signal, before));
                }
            }
        }
        Some(caught)
    }

    /// Passes signals on to a child until it has ended. The caller must still wait for it, so that no other process
    /// takes its number.
    fn pass_on_until_the_end_of(&self, child: &Child) {
        let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
        CHILD.store(id.as_raw_nonzero().get(), Ordering::SeqCst);
        pass(EARLY.swap(0, Ordering::SeqCst));
        // If this wait fails, the caller's own wait reports it.
        let _ = retry_on_intr(|| waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        CHILD.store(0, Ordering::SeqCst);
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: `before` is the value that the kernel gave for this signal.
            unsafe {
                libc::sigaction(*signal, before, std::ptr::null_mut());
            }
        }
        CAUGHT.store(false, Ordering::SeqCst);
    }
}
