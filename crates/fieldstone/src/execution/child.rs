//! A command as an execution: `fieldstone run`.
//!
//! The command has this process's input, output and environment, and `FIELDSTONE_EXECUTION` besides. Signals that would
//! end this process are passed on to it; it decides. What a terminal sends it has got itself, as a member of
//! the same group. A signal that is ignored here stays so, as `nohup` means it.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use fieldstone_core::{Error, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::{Execution, ExecutionOptions, Outcome, VARIABLE, files, interpreters};
use crate::Store;

/// Signals that are passed on.
const PASSED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
/// The codes of a shell: a command that may not be executed, and one that is not there.
const NOT_EXECUTABLE: i64 = 126;
const NOT_FOUND: i64 = 127;
/// What a shell adds to the number of a signal.
const SIGNALLED: i64 = 128;

/// The command that runs; 0 before and after.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the command had a number.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The code that this process is to end with: the command's, 128 and the signal's number, 126 or 127.
    pub code: i64,
    /// Why the command could not be started.
    pub failed: Option<String>,
    /// What could not be recorded, a line each.
    pub notes: Vec<String>,
    /// Why the end of the record is not in the store.
    pub unrecorded: Option<Error>,
}

/// Runs a command, the program first, as an execution whose record is in `store`.
///
/// An error says that it was not started, because its beginning could not be recorded.
pub fn run(store: &Store, command: &[OsString], mut options: ExecutionOptions) -> Result<Ended> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::invalid("there is no command").with_hint("write it behind --"));
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
    catch();
    let started = Command::new(program).args(arguments).env(VARIABLE, execution.link().encode()).spawn();
    let (outcome, code) = match started {
        Ok(mut child) => {
            let id = i32::try_from(child.id()).unwrap_or(0);
            CHILD.store(id, Ordering::SeqCst);
            pass(EARLY.swap(0, Ordering::SeqCst));
            let status = child.wait();
            CHILD.store(0, Ordering::SeqCst);
            let status = status.map_err(|e| Error::internal(format!("the command is lost: {e}")))?;
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
            let error = Some(format!("{} cannot be started: {e}", text(program)));
            (Outcome { exit: Some(code), error, ..Outcome::default() }, code)
        }
    };
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
        // Between the end of the child and CHILD being 0 its number is nobody's, or not another process's yet.
        let _ = kill_process(child, signal);
    }
}

extern "C" fn handle(signal: libc::c_int, facts: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO facts that are there.
    let from_kernel = unsafe { facts.as_ref() }.is_some_and(|facts| facts.si_code == libc::SI_KERNEL);
    if from_kernel {
        return;
    }
    if CHILD.load(Ordering::SeqCst) == 0 {
        EARLY.store(signal, Ordering::SeqCst);
    }
    pass(signal);
}

/// Catches signals that are not ignored.
fn catch() {
    for signal in PASSED {
        // SAFETY: both structures are plain numbers for which zeros are a value, and live through the calls; the
        // handler calls nothing but what may be called in one.
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
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}
