//! Finds the execution that a call belongs to.
//!
//! 1. The one that its thread has entered ([`enter`]).
//! 2. Else the innermost of this process's open executions, if each lies in the one before: a thread that a program
//!    starts during its execution belongs to it.
//! 3. Else the process itself, if `FIELDSTONE_EXECUTION` names a job.
//! 4. Else none, and nothing is recorded.
//!
//! If open executions do not lie in one another, a thread that has entered none belongs to none of them. A new
//! execution lies in the one that its thread has entered, else in the process itself; never in one that is merely open,
//! which may be unrelated (G-32).
//!
//! Invariants:
//! * without an execution a call costs one look at an atomic;
//! * a forked child has none of its parent's executions: it reads the variable again.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use fieldstone_core::env::Env;
use fieldstone_core::sync::Mutex;
use fieldstone_journal::fork::PerProcess;

pub use super::inner::ExecutionInner;
use super::inner::Naming;
use super::link::ExecutionLink;
use super::{environment, own_description};

/// Whether this process, or its parent before a fork, may have executions.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const SOME: u8 = 2;

/// Number of open executions; a forked child inherits its parent's number, which does no harm.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The executions of a process.
#[derive(Debug, Default)]
struct Executions {
    open: Mutex<Vec<Arc<ExecutionInner>>>,
    /// The process itself.
    ambient: OnceLock<Option<Arc<ExecutionInner>>>,
}

thread_local! {
    static SERVES: Cell<bool> = const { Cell::new(false) };
    static ENTERED: RefCell<Option<Arc<ExecutionInner>>> = const { RefCell::new(None) };
}

fn executions() -> &'static Executions {
    static ALL: OnceLock<PerProcess<Executions>> = OnceLock::new();
    ALL.get_or_init(|| PerProcess::new(Env::real().identity, Executions::default())).get(Executions::default)
}

/// Whether there may be an execution: if not, callers need not look for one.
pub fn is_used() -> bool {
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let state = if std::env::var_os(super::link::VARIABLE).is_some() { SOME } else { NONE };
            let _ = STATE.compare_exchange(UNKNOWN, state, Ordering::Relaxed, Ordering::Relaxed);
            STATE.load(Ordering::Relaxed) == SOME
        }
        state => state == SOME,
    }
}

/// The execution that calls of this thread belong to.
pub fn current() -> Option<Arc<ExecutionInner>> {
    if !is_used() || SERVES.with(Cell::get) {
        return None;
    }
    if let Some(own) = entered() {
        return Some(own);
    }
    let executions = executions();
    let open = executions.open.lock();
    let follows =
        |pair: &[Arc<ExecutionInner>]| matches!(&pair[1].outer, Some(outer) if Arc::ptr_eq(outer, &pair[0]));
    if let Some(last) = open.last()
        && open.windows(2).all(follows)
    {
        return Some(last.clone());
    }
    drop(open);
    executions.ambient.get_or_init(ambient).clone()
}

/// Whether one is open. A single one has all calls of its process, from any thread; but another thread may open a
/// second one between this look and the call, so that a thread that has one must have entered it by then.
pub fn is_any_open() -> bool {
    OPEN.load(Ordering::Relaxed) > 0
}

/// The execution that this thread has entered.
fn entered() -> Option<Arc<ExecutionInner>> {
    let is_here = |own: &Arc<ExecutionInner>| own.is_open() && own.process == std::process::id();
    ENTERED.with(|own| own.borrow().clone()).filter(is_here)
}

/// The execution in which a new one lies.
pub fn outer() -> Option<Arc<ExecutionInner>> {
    if is_used() { entered().or_else(own_process) } else { None }
}

/// This process, if it belongs to a job.
pub fn own_process() -> Option<Arc<ExecutionInner>> {
    let asked = is_used() && !SERVES.with(Cell::get);
    if asked { executions().ambient.get_or_init(ambient).clone() } else { None }
}

fn ambient() -> Option<Arc<ExecutionInner>> {
    let link = ExecutionLink::of_environment()?;
    let (env, variables) = (Env::real(), environment::Variables::own());
    let naming = Naming::of_process(&link, variables.rank());
    let begun = own_description(&env, &variables, link.process.as_deref());
    Some(Arc::new(ExecutionInner::new(env, naming, begun)))
}

/// From here on this thread serves the calls of others: their sessions name their authors, and it has none itself.
pub fn serve_others() {
    SERVES.with(|serves| serves.set(true));
}

/// From here on this thread's calls belong to `execution`, or to none of its own; returns the earlier one.
pub fn enter(execution: Option<Arc<ExecutionInner>>) -> Option<Arc<ExecutionInner>> {
    ENTERED.with(|own| own.replace(execution))
}

/// An execution has begun.
pub fn open(execution: &Arc<ExecutionInner>) {
    // Read the variable before there is an execution that may set it for its children.
    executions().ambient.get_or_init(ambient);
    STATE.store(SOME, Ordering::Relaxed);
    OPEN.fetch_add(1, Ordering::Relaxed);
    executions().open.lock().push(execution.clone());
}

/// An execution has ended.
pub fn close(execution: &Arc<ExecutionInner>) {
    execution.close();
    let mut open = executions().open.lock();
    let before = open.len();
    open.retain(|other| !Arc::ptr_eq(other, execution));
    OPEN.fetch_sub(before - open.len(), Ordering::Relaxed);
}
