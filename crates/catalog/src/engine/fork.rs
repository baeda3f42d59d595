//! SQLite in a process that forks while other threads use it.
//!
//! SQLite forbids the use of an open connection across a fork. Two things that a child inherits break even a
//! connection of its own:
//!
//! * mutexes that other threads held at the fork, which no thread will ever release. So a fork waits until no
//!   thread holds one: [`enter`] and [`leave`] count the threads that do, and `before` waits until there are
//!   none. SQLite holds a mutex to look at some list, never during a query or a transaction, so the wait is
//!   short whatever the threads do;
//! * the list of open files with the locks that the process has on them. A child does not inherit the locks
//!   of a file, so one that trusted the list would read and write without locks. [`stat`] gives a file
//!   another number in every generation of processes, so a child finds no entry of its parent.
//!
//! Invariants:
//! * nothing uses SQLite before [`ready`] was called;
//! * a thread that holds a mutex of SQLite never waits for a fork;
//! * every wait here is on atomics alone, which the child can reset by itself;
//! * a child of a process in which this was not possible gets an error and does not hang.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use fieldstone_core::sync::thread;
use fieldstone_core::{Code, Result};
use rusqlite::ffi;

/// The pause between two looks while waiting.
const PAUSE: Duration = Duration::from_micros(50);
/// How often a fork checks whether threads still hold mutexes, for at least 10 s; after that the child may
/// not use SQLite.
const LOOKS: u32 = 200_000;

/// A fork is near: no thread may enter any more.
const FORKING: u32 = 1 << 31;

/// [`FORKING`], and the number of threads that hold a mutex.
static GATE: AtomicU32 = AtomicU32::new(0);
/// The number of forks between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether this process cannot use SQLite.
static BROKEN: AtomicBool = AtomicBool::new(false);
/// The progress of [`ready`]: nothing, all, or only what was possible; or process `n - AT_WORK` is busy with
/// it.
static STATE: AtomicU64 = AtomicU64::new(NOTHING);
const NOTHING: u64 = 0;
const DONE: u64 = 1;
const UNPROTECTED: u64 = 2;
const AT_WORK: u64 = 16;

/// SQLite's own mutexes.
static MUTEXES: OnceLock<ffi::sqlite3_mutex_methods> = OnceLock::new();
/// The function that [`stat`] calls.
static FSTAT: OnceLock<Fstat> = OnceLock::new();

type Fstat = unsafe extern "C" fn(c_int, *mut libc::stat) -> c_int;

thread_local! {
    /// Mutexes that this thread holds.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread has closed the gate for its fork.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Prepares SQLite for forks, once in each process. Call it before anything else of SQLite. Unavailable in a
/// forked child that cannot use SQLite.
pub(super) fn ready() -> Result<()> {
    let mine = AT_WORK + u64::from(std::process::id());
    loop {
        match STATE.load(Ordering::Acquire) {
            DONE | UNPROTECTED => break,
            NOTHING => {
                let begun = STATE.compare_exchange(NOTHING, mine, Ordering::AcqRel, Ordering::Acquire);
                if begun.is_ok() {
                    prepare();
                }
            }
            at_work if at_work == mine => thread::sleep(PAUSE),
            // A thread of the parent was busy here and had not touched SQLite yet: see `prepare`.
            at_work => {
                let _ = STATE.compare_exchange(at_work, NOTHING, Ordering::AcqRel, Ordering::Acquire);
            }
        }
    }
    if BROKEN.load(Ordering::Acquire) {
        let why = "this process was forked when the catalog's engine could not be prepared for a fork";
        return Err(Code::Forked
            .error(why)
            .with_hint("start a new process (spawn, exec), or use the catalog in the parent"));
    }
    Ok(())
}

fn prepare() {
    // SAFETY: three functions without arguments, which stay as long as the library is loaded. A second
    // registration in a child does no harm: see `before`.
    let registered =
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    // No fork happens from here to `leave`.
    enter();
    let done = registered == 0 && configure();
    STATE.store(if done { DONE } else { UNPROTECTED }, Ordering::Release);
    leave();
}

/// Wraps SQLite's mutexes and its access to files in our functions; `false` if other code in the process has
/// begun to use SQLite.
fn configure() -> bool {
    let mut methods = ffi::sqlite3_mutex_methods {
        xMutexInit: None,
        xMutexEnd: None,
        xMutexAlloc: None,
        xMutexFree: None,
        xMutexEnter: None,
        xMutexTry: None,
        xMutexLeave: None,
        xMutexHeld: None,
        xMutexNotheld: None,
    };
    let done = |code: c_int| code == ffi::SQLITE_OK;
    // SAFETY: each call of `sqlite3_config` has the argument that its option takes, before SQLite is
    // initialised or after it was shut down; otherwise the call fails. Nobody has a connection.
    unsafe {
        // SQLite's own methods exist only once it was initialised.
        if !done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMUTEX, &raw mut methods))
            || !done(ffi::sqlite3_initialize())
            || !done(ffi::sqlite3_shutdown())
            || !done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMUTEX, &raw mut methods))
        {
            return false;
        }
    }
    if methods.xMutexEnter.is_none() || methods.xMutexTry.is_none() || methods.xMutexLeave.is_none() {
        return false;
    }
    let original = *MUTEXES.get_or_init(|| methods);
    let wrapped = ffi::sqlite3_mutex_methods {
        xMutexEnter: Some(mutex_enter),
        xMutexTry: Some(mutex_try),
        xMutexLeave: Some(mutex_leave),
        ..original
    };
    // SAFETY: as above. SQLite copies the methods. Statistics of memory would take a mutex for each
    // allocation.
    unsafe {
        done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_MUTEX, &raw const wrapped))
            && done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int))
            && done(ffi::sqlite3_initialize())
            && wrap_fstat(c"unix", c"fstat")
    }
}

/// # Safety
/// SQLite is initialised, and nobody has a file open through it.
unsafe fn wrap_fstat(vfs: &CStr, call: &CStr) -> bool {
    // On other systems SQLite's `struct stat` may differ from the library's.
    if cfg!(not(target_pointer_width = "64")) {
        return false;
    }
    // SAFETY: the name is a C string; a VFS that was found stays.
    let found = unsafe { ffi::sqlite3_vfs_find(vfs.as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: it is not null and came from SQLite.
    let (get, set) = unsafe { ((*found).xGetSystemCall, (*found).xSetSystemCall) };
    let (Some(get), Some(set)) = (get, set) else { return false };
    // SAFETY: the arguments are of the types that SQLite documents.
    let Some(original) = (unsafe { get(found, call.as_ptr()) }) else { return false };
    // SAFETY: SQLite keeps all its system calls as pointers of one type; this one is `fstat`'s.
    let original = unsafe { std::mem::transmute::<unsafe extern "C" fn(), Fstat>(original) };
    FSTAT.get_or_init(|| original);
    // SAFETY: SQLite casts it back to the type of `fstat` before it calls it.
    let ours = unsafe { std::mem::transmute::<Fstat, unsafe extern "C" fn()>(stat) };
    // SAFETY: as for `get`; nobody has a file open, so the same function gives all numbers.
    unsafe { set(found, call.as_ptr(), Some(ours)) == ffi::SQLITE_OK }
}

// ---- what SQLite calls

unsafe extern "C" fn mutex_enter(mutex: *mut ffi::sqlite3_mutex) {
    enter();
    if let Some(original) = MUTEXES.get().and_then(|methods| methods.xMutexEnter) {
        // SAFETY: passed on as it came.
        unsafe { original(mutex) };
    }
}

unsafe extern "C" fn mutex_try(mutex: *mut ffi::sqlite3_mutex) -> c_int {
    enter();
    let taken = match MUTEXES.get().and_then(|methods| methods.xMutexTry) {
        // SAFETY: passed on as it came.
        Some(original) => unsafe { original(mutex) },
        None => ffi::SQLITE_BUSY,
    };
    if taken != ffi::SQLITE_OK {
        leave();
    }
    taken
}

unsafe extern "C" fn mutex_leave(mutex: *mut ffi::sqlite3_mutex) {
    if let Some(original) = MUTEXES.get().and_then(|methods| methods.xMutexLeave) {
        // SAFETY: passed on as it came.
        unsafe { original(mutex) };
    }
    leave();
}

unsafe extern "C" fn stat(file: c_int, facts: *mut libc::stat) -> c_int {
    let Some(original) = FSTAT.get() else { return -1 };
    // SAFETY: passed on as it came.
    let code = unsafe { original(file, facts) };
    if code == 0 {
        // The uppermost bits of a device number are free on all systems that number devices by use.
        let mark = GENERATION.load(Ordering::Relaxed) << 44;
        // SAFETY: the caller's `struct stat`, just filled.
        unsafe { (*facts).st_dev ^= mark };
    }
    code
}

// ---- the gate

/// Counts this thread as about to hold a mutex; waits while another thread forks.
fn enter() {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    if depth > 0 {
        return;
    }
    while GATE.fetch_add(1, Ordering::SeqCst) & FORKING != 0 {
        GATE.fetch_sub(1, Ordering::SeqCst);
        thread::sleep(PAUSE);
    }
}

/// Counts one mutex less for this thread.
fn leave() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    if depth == 0 {
        GATE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The share of this thread in the gate's count.
fn own() -> u32 {
    u32::from(DEPTH.get() > 0)
}

/// Waits until a condition holds; `false` if that takes too long.
fn until(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS {
        if holds() {
            return true;
        }
        thread::sleep(PAUSE);
    }
    false
}

/// Before a fork: closes the gate and waits until at most this thread holds mutexes.
extern "C" fn before() {
    if CLOSED.get() {
        return;
    }
    // Another thread may be forking.
    if !until(|| GATE.fetch_or(FORKING, Ordering::SeqCst) & FORKING == 0) {
        return;
    }
    let alone = until(|| GATE.load(Ordering::SeqCst) == FORKING | own());
    CLOSED.set(alone);
    if !alone {
        GATE.fetch_and(!FORKING, Ordering::SeqCst);
    }
}

extern "C" fn after_in_parent() {
    if CLOSED.replace(false) {
        GATE.fetch_and(!FORKING, Ordering::SeqCst);
    }
}

extern "C" fn after_in_child() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    let alone = CLOSED.replace(false) || GATE.load(Ordering::SeqCst) == own();
    if !alone || STATE.load(Ordering::SeqCst) == UNPROTECTED {
        BROKEN.store(true, Ordering::SeqCst);
    }
    // The other threads that held mutexes do not exist in this process.
    GATE.store(own(), Ordering::SeqCst);
}
