//! The processes of a simulation: handles on the store, what they have not flushed, and their troubles to come.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone::{Error, Id, Session, Store};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, ProcessStop, Random, SimWorld};
use fieldstone_core::sync::thread::{Builder, JoinHandle};

use crate::call::{self, Call};
use crate::model::change::CommitId;

/// The owner of the store, and of most runs.
pub const ALICE: u32 = 501;
/// The owner of another run.
pub const BOB: u32 = 502;
/// Host and user of each process.
pub const PLACES: [(&str, u32); crate::plan::PROCESSES] =
    [("ant", ALICE), ("ant", ALICE), ("bee", ALICE), ("cat", BOB), ("bee", ALICE)];

/// The run of a user, declared when the world begins.
pub fn run_of(user: u32, random: &mut Random) -> &'static str {
    match user {
        ALICE if random.coin() => "a",
        ALICE => "c",
        _ => "b",
    }
}

/// The outcome of calls: the error has the number of its call.
pub type Outcome = Result<(), (usize, Error)>;

/// The purpose of calls, which says what their outcome means.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// A flush of a commit, in a transaction or not.
    Flush(Option<u32>, CommitId),
    /// A decision: transaction, own commit that waits, decision, and whether it commits.
    Decide(u32, Option<CommitId>, CommitId, bool),
    /// Maintenance, which writes nothing.
    Maintain,
}

/// The troubles that strike a process in its next action.
#[derive(Debug, Clone, Default)]
pub struct Armed {
    /// The disk fails: kind of call, fault, number of the call.
    pub fault: Option<(OpKind, Fault, u64)>,
    /// The process dies in this call.
    pub kill: Option<u64>,
    /// It stops in this call.
    pub stop: Option<u64>,
}

/// An action that has stopped.
#[derive(Debug)]
pub struct Stopped {
    thread: JoinHandle<Outcome>,
    stop: ProcessStop,
    /// Its purpose.
    pub purpose: Purpose,
    /// Whether trouble was planned for it.
    pub is_troubled: bool,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its user.
    pub user: u32,
    /// Its environment.
    pub env: Env,
    /// Its handle, until it dies or closes.
    pub store: Option<Store>,
    /// The place of its attempt, if it has one.
    pub attempt: Option<u32>,
    /// Commits that wait for a flush, by transaction.
    pub pending: BTreeMap<Option<u32>, CommitId>,
    /// Whether a call has failed: the handle may report losses later.
    pub is_shaky: bool,
    /// Troubles to come.
    pub armed: Armed,
    /// The action in which it has stopped.
    pub stopped: Option<Stopped>,
}

impl Process {
    /// A process without a handle.
    pub fn new(env: Env, user: u32) -> Process {
        Process {
            user,
            env,
            store: None,
            attempt: None,
            pending: BTreeMap::new(),
            is_shaky: false,
            armed: Armed::default(),
            stopped: None,
        }
    }

    /// Its handle, if it can act.
    pub fn idle(&self) -> Option<&Store> {
        self.store.as_ref().filter(|_| self.stopped.is_none())
    }

    /// Whether it exists.
    pub fn is_alive(&self) -> bool {
        self.env.identity.alive(self.env.identity.process())
    }

    /// Plans its troubles; returns the stop, and whether there is any other.
    pub fn arm(&mut self, world: &SimWorld) -> (Option<ProcessStop>, bool) {
        let Armed { fault, kill, stop } = std::mem::take(&mut self.armed);
        let (host, process) = (self.env.identity.host(), self.env.identity.process());
        if let Some((kind, fault, nth)) = fault {
            world.schedule(Plan::new(fault).kind(kind).nth(nth).host(&host).process(process));
        }
        if let Some(nth) = kill {
            world.kill_nth(&self.env, None, nth);
        }
        (stop.map(|nth| world.stop_nth(&self.env, nth)), fault.is_some() || kill.is_some())
    }

    /// It dies: nothing that it does from here on has an effect.
    pub fn die(&mut self, world: &SimWorld) {
        world.kill(&self.env);
        self.store = None;
        self.pending.clear();
        self.armed = Armed::default();
    }
}

/// Makes calls in a thread of their own.
pub fn start(
    store: &Store,
    calls: Vec<Call>,
    session: Session,
    stop: Option<ProcessStop>,
) -> Result<JoinHandle<Outcome>, String> {
    let store = store.clone();
    let work = move || {
        let outcome = call::make(&store, &calls, &session);
        drop(store);
        stop.iter().for_each(ProcessStop::end);
        outcome
    };
    Builder::new().spawn(work).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Waits for the outcome of a thread.
pub fn join(thread: JoinHandle<Outcome>) -> Result<Outcome, String> {
    thread.join().map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        format!("a thread panicked: {}", text.unwrap_or_default())
    })
}

impl Stopped {
    /// An action that is suspended.
    pub fn new(
        thread: JoinHandle<Outcome>,
        stop: ProcessStop,
        purpose: Purpose,
        is_troubled: bool,
    ) -> Stopped {
        Stopped { thread, stop, purpose, is_troubled }
    }

    /// Lets it go on to its end.
    pub fn resume(self) -> Result<Outcome, String> {
        self.stop.resume();
        join(self.thread)
    }
}

/// The transactions of a simulation: their ids, and those at which steps may aim.
#[derive(Debug, Default)]
pub struct Transactions {
    /// Ids, by the numbers of the model.
    pub ids: Vec<Id>,
    /// Numbers of the last ones.
    pub slots: [Option<u32>; 2],
}

impl Transactions {
    /// The session of a transaction of the model, or of none.
    pub fn session(&self, transaction: Option<u32>) -> Session {
        Session::from(transaction.and_then(|number| self.ids.get(number as usize).copied()))
    }
}

/// The text of an error, for a report.
pub fn text(error: &Error) -> Arc<str> {
    format!("{:?}: {error}", error.kind()).into()
}
