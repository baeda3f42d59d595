//! Forwards records of native code to Python's `logging`: loggers `fieldstone.journal`, `fieldstone.catalog`, and so
//! on.
//!
//! A span becomes one record when it ends (B-13), with its name, counters and duration. Invariants:
//! * nothing here waits for the interpreter's lock: a span may end in any thread, under any of our locks, while
//!   another thread holds that lock and waits for ours. Records therefore go into a queue, whose sender never waits.
//!   A call that holds the interpreter's lock anyway delivers them after it has finished waiting;
//! * such calls ask, before they wait, which levels Python wants, and keep the answer in atomics. While Python wants
//!   none, the maximum level is off, and a span costs one atomic load;
//! * a forked child delivers no records of its parent, and cannot hang on a lock that a thread of the parent held;
//! * a handler that uses a store does not generate records of its own work.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};

use fieldstone::Env;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Loggers, each with the target prefix that it receives. The first match wins.
const LOGGERS: [(&str, &str); 6] = [
    ("fieldstone.core", "fieldstone_core"),
    ("fieldstone.journal", "fieldstone_journal"),
    ("fieldstone.store", "fieldstone_store"),
    ("fieldstone.array", "fieldstone_array"),
    ("fieldstone.catalog", "fieldstone_catalog"),
    ("fieldstone.catalog", "fieldstone::catalog"),
];

/// Python's number for the trace level, which has no name there.
const TRACE: u8 = 5;
const DEBUG: u8 = 10;

/// The lowest level that each logger wants, as Python's number; 0 for none.
static WANTED: [AtomicU8; LOGGERS.len()] = [const { AtomicU8::new(0) }; LOGGERS.len()];
/// The number of queued records; the limit matters because no call may ever deliver them.
static WAITING: AtomicUsize = AtomicUsize::new(0);
const MOST: usize = 10_000;
static LOST: AtomicBool = AtomicBool::new(false);

struct Queue {
    sender: Sender<PendingRecord>,
    receiver: Mutex<Receiver<PendingRecord>>,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();
static ENV: OnceLock<Env> = OnceLock::new();

thread_local! {
    /// Whether this thread is delivering records: calls by a handler generate none.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// A queued record.
struct PendingRecord {
    process: u32,
    logger: usize,
    level: u8,
    text: String,
}

/// The data kept for an open span.
struct Open {
    begun: u64,
    text: String,
}

fn now() -> u64 {
    ENV.get_or_init(Env::real).clock.monotonic()
}

fn logger_of(metadata: &Metadata<'_>) -> Option<usize> {
    LOGGERS.iter().position(|(_, target)| metadata.target().starts_with(target))
}

fn number(level: &Level) -> u8 {
    match *level {
        Level::TRACE => TRACE,
        Level::DEBUG => DEBUG,
        Level::INFO => 20,
        Level::WARN => 30,
        Level::ERROR => 40,
    }
}

fn is_wanted(metadata: &Metadata<'_>) -> bool {
    let wanted = logger_of(metadata).map_or(0, |logger| WANTED[logger].load(Ordering::Relaxed));
    wanted > 0 && number(metadata.level()) >= wanted
}

/// ` name=value` for each field.
struct Words<'a>(&'a mut String);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

struct ToPython;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ToPython {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_wanted(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_wanted(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let least =
            WANTED.iter().map(|wanted| wanted.load(Ordering::Relaxed)).filter(|wanted| *wanted > 0).min();
        Some(match least {
            None => LevelFilter::OFF,
            Some(TRACE) => LevelFilter::TRACE,
            Some(DEBUG) => LevelFilter::DEBUG,
            Some(_) => LevelFilter::INFO,
        })
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut text = span.name().to_owned();
            attributes.record(&mut Words(&mut text));
            span.extensions_mut().insert(Open { begun: now(), text });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            values.record(&mut Words(&mut open.text));
        }
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = event.metadata().name().to_owned();
        event.record(&mut Words(&mut text));
        keep(event.metadata(), text);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id)
            && let Some(mut open) = span.extensions_mut().remove::<Open>()
        {
            let took = now().saturating_sub(open.begun) as f64 / 1e6;
            let _ = write!(open.text, " took={took:.3}ms");
            keep(span.metadata(), open.text);
        }
    }
}

/// Queues a record without waiting.
fn keep(metadata: &Metadata<'_>, text: String) {
    let (Some(queue), Some(logger)) = (QUEUE.get(), logger_of(metadata)) else { return };
    if TELLING.get() {
        return;
    }
    if WAITING.fetch_add(1, Ordering::Relaxed) >= MOST {
        WAITING.fetch_sub(1, Ordering::Relaxed);
        LOST.store(true, Ordering::Relaxed);
        return;
    }
    let told = PendingRecord { process: std::process::id(), logger, level: number(metadata.level()), text };
    let _ = queue.sender.send(told);
}

/// Installs the subscriber that forwards to Python. It is silent until a logger wants a level.
pub fn start() {
    let (sender, receiver) = channel();
    if QUEUE.set(Queue { sender, receiver: Mutex::new(receiver) }).is_ok() {
        // A program that embeds Python may have installed its own subscriber.
        let _ = tracing::subscriber::set_global_default(Registry::default().with(ToPython));
    }
}

/// Python's loggers, if `logging` is loaded: until something imports it, nothing listens.
fn loggers(py: Python<'_>) -> PyResult<Option<&'static [Py<PyAny>]>> {
    static FOUND: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    if let Some(found) = FOUND.get(py) {
        return Ok(Some(found));
    }
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(logging) = modules.get_item("logging")? else { return Ok(None) };
    let get = |(name, _): &(&str, &str)| Ok(logging.call_method1("getLogger", (*name,))?.unbind());
    let found = FOUND.get_or_try_init(py, || LOGGERS.iter().map(get).collect::<PyResult<_>>())?;
    Ok(Some(found))
}

/// Asks which levels Python's loggers want.
fn ask(py: Python<'_>) -> PyResult<()> {
    let Some(loggers) = loggers(py)? else { return Ok(()) };
    let mut changed = false;
    for (logger, asked) in loggers.iter().enumerate() {
        let wants =
            |level: u8| asked.bind(py).call_method1(intern!(py, "isEnabledFor"), (level,))?.is_truthy();
        let level = match () {
            () if !wants(DEBUG)? => 0,
            () if wants(TRACE)? => TRACE,
            () => DEBUG,
        };
        changed |= WANTED[logger].load(Ordering::Relaxed) != level;
        WANTED[logger].store(level, Ordering::Relaxed);
    }
    if changed {
        tracing::callsite::rebuild_interest_cache();
    }
    Ok(())
}

/// Delivers the queued records to Python.
fn tell(py: Python<'_>) -> PyResult<()> {
    if WAITING.load(Ordering::Relaxed) == 0 || TELLING.get() {
        return Ok(());
    }
    let (Some(queue), Some(loggers)) = (QUEUE.get(), loggers(py)?) else { return Ok(()) };
    // Another thread that is delivering also takes these.
    let told: Vec<PendingRecord> = match queue.receiver.try_lock() {
        Ok(receiver) => receiver.try_iter().collect(),
        Err(_) => return Ok(()),
    };
    WAITING.fetch_sub(told.len(), Ordering::Relaxed);
    TELLING.set(true);
    for told in told.iter().filter(|told| told.process == std::process::id()) {
        let logger = loggers[told.logger].bind(py);
        shown(py, logger.call_method1(intern!(py, "log"), (told.level, "%s", told.text.as_str())));
    }
    if LOST.swap(false, Ordering::Relaxed) {
        let text = "records were dropped: more than %s waited";
        shown(py, loggers[0].bind(py).call_method1("warning", (text, MOST)));
    }
    TELLING.set(false);
    Ok(())
}

/// Prints an exception of a logger or handler: it is not the caller's fault and must not cost the caller a result.
/// Ctrl-C is re-raised in the main thread.
fn shown<T>(py: Python<'_>, outcome: PyResult<T>) {
    let Err(error) = outcome else { return };
    if error.is_instance_of::<PyKeyboardInterrupt>(py)
        && py.import("_thread").and_then(|threads| threads.call_method0("interrupt_main")).is_ok()
    {
        return;
    }
    error.write_unraisable(py, None);
}

/// Runs calls that may wait.
pub trait Waiting<'py> {
    /// Runs `call` without the interpreter's lock. First asks which levels Python's loggers want, and afterwards
    /// delivers the records.
    fn waiting<T: Ungil>(self, call: impl Ungil + FnOnce() -> T) -> T;
}

impl<'py> Waiting<'py> for Python<'py> {
    fn waiting<T: Ungil>(self, call: impl Ungil + FnOnce() -> T) -> T {
        // An exception of a logger or handler is not the caller's fault and must not cost the caller a result.
        let shown =
            |outcome: PyResult<()>| outcome.unwrap_or_else(|error| error.write_unraisable(self, None));
        shown(ask(self));
        crate::context::sync(self);
        let outcome = self.detach(call);
        shown(tell(self));
        outcome
    }
}
