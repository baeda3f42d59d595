//! The client's end of a connection: sends frames, receives answers, and has a thread that reads the server's frames.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fieldstone_catalog::engine::Interrupt;
use fieldstone_core::env::Clock;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_journal::Session;
use fieldstone_journal::author::{AuthorPart, CommitAuthor};
use fieldstone_journal::fork::PerProcess;
use fieldstone_journal::session::Cancel;
use fieldstone_wire::{Ends, Out, Wire};

use super::frame::{BACKEND, Call, NOWHERE, Question, Request, Response, decoded, encoded};
use super::served::Served;
use crate::execution::current::current;

/// Interval at which a caller that may cancel checks whether it does.
const LOOK: Duration = Duration::from_millis(5);

/// Numbers of threads, for the workers that serve their calls.
static WORKERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static WORKER: Cell<u64> = Cell::new(next_worker());
}

fn next_worker() -> u64 {
    WORKERS.fetch_add(1, Ordering::Relaxed)
}

/// A server's frame, for the waiting caller.
enum Event {
    Answer(bool, Vec<u8>),
    Portion(u64, Vec<u8>),
}

/// Receives a portion of an answer.
type Take<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// The client's end of a connection to a served store.
pub struct Connection {
    requests: Mutex<Option<Sender<Vec<u8>>>>,
    shared: Arc<Inbox>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    next: AtomicU64,
    clock: Arc<dyn Clock>,
}

/// The state that callers share with the reading thread.
struct Inbox {
    pending: Mutex<HashMap<u64, Sender<Event>>>,
    /// Authors by number: index in the list.
    authors: Mutex<Vec<Arc<dyn CommitAuthor>>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends to `requests` and receives from `responses`. `threads` serve the other end; they end with the connection.
    pub fn new(
        requests: Sender<Vec<u8>>,
        responses: Receiver<Vec<u8>>,
        threads: Vec<JoinHandle<()>>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Connection> {
        let shared = Arc::new(Inbox { pending: Mutex::default(), authors: Mutex::default() });
        let connection = Arc::new(Connection {
            requests: Mutex::new(Some(requests)),
            shared: shared.clone(),
            threads: Mutex::new(threads),
            next: AtomicU64::new(1),
            clock,
        });
        let me = Arc::downgrade(&connection);
        let reading = thread::spawn(move || shared.read(&responses, &me));
        connection.threads.lock().push(reading);
        connection
    }

    fn send(&self, request: &Request) -> Result<()> {
        let frame = encoded(request);
        let requests = self.requests.lock();
        let sent = requests.as_ref().is_some_and(|requests| requests.send(frame).is_ok());
        if sent { Ok(()) } else { Err(gone()) }
    }

    /// Calls a method; returns the answer's bytes, and passes earlier portions to `take`.
    fn ask(&self, far: &Far, method: u16, put: &dyn Fn(&mut Out<'_>), take: Take<'_>) -> Result<Answered> {
        let caller = Caller { connection: self, watched: RefCell::default() };
        let mut out = Out::new(&caller);
        put(&mut out);
        let arguments = out.into_bytes();
        let watched: Vec<Interrupt> =
            caller.watched.take().into_iter().chain(far.watched.iter().cloned()).collect();
        let (answer, events) = channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.shared.pending.lock().insert(id, answer);
        let call = Call { id, worker: WORKER.get(), object: far.object, method, arguments };
        let sent = self.send(&Request::Call(call));
        let outcome = sent.and_then(|()| self.hear(id, &events, &watched, take));
        self.shared.pending.lock().remove(&id);
        let bytes = outcome?;
        Ok(Answered { bytes, watched })
    }

    /// Waits for a call's answer.
    fn hear(
        &self,
        id: u64,
        events: &Receiver<Event>,
        watched: &[Interrupt],
        take: Take<'_>,
    ) -> Result<Vec<u8>> {
        let cancelled = Cell::new(false);
        loop {
            let event = match watched.is_empty() || cancelled.get() {
                true => events.recv().map_err(|_| gone())?,
                false => match events.recv_timeout(LOOK) {
                    Ok(event) => event,
                    Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                    Err(RecvTimeoutError::Timeout) => {
                        if watched.iter().any(Interrupt::is_due) {
                            cancelled.set(true);
                            self.send(&Request::Cancel(id))?;
                        }
                        continue;
                    }
                },
            };
            match event {
                Event::Answer(true, bytes) => return Ok(bytes),
                Event::Answer(false, bytes) => return Err(decoded::<Error>(&bytes)?),
                Event::Portion(question, bytes) => {
                    // The waiting call occupies the worker: calls during it need another.
                    let worker = WORKER.replace(next_worker());
                    let taken: std::result::Result<(), Error> = take(&bytes);
                    WORKER.set(worker);
                    self.send(&Request::Reply(question, encoded(&taken)))?;
                }
            }
        }
    }

    fn number_of(&self, author: &Arc<dyn CommitAuthor>) -> u64 {
        let mut authors = self.shared.authors.lock();
        let known = authors.iter().position(|known| Arc::ptr_eq(known, author));
        let place = known.unwrap_or_else(|| {
            authors.push(author.clone());
            authors.len() - 1
        });
        place as u64
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        *self.requests.lock() = None;
        // The reading thread itself may be the last holder.
        let own = thread::current().id();
        for one in self.threads.lock().drain(..).filter(|one| one.thread().id() != own) {
            let _ = one.join();
        }
    }
}

impl Inbox {
    /// Reads the server's frames until the server ends.
    fn read(&self, responses: &Receiver<Vec<u8>>, connection: &Weak<Connection>) {
        for frame in responses {
            match decoded(&frame) {
                Ok(Response::Answer(call, ok, bytes)) => self.give(call, Event::Answer(ok, bytes)),
                Ok(Response::Ask(question, call, Question::Portion(bytes))) => {
                    self.give(call, Event::Portion(question, bytes));
                }
                Ok(Response::Ask(question, _, Question::HandIn(author, bytes))) => {
                    let part = self.author(author).zip(decoded(&bytes).ok());
                    let part = part.map_or_else(AuthorPart::default, |(author, store)| author.hand_in(store));
                    reply(connection, question, encoded(&part));
                }
                Ok(Response::Ask(question, _, Question::Landed(author, bytes))) => {
                    if let (Some(author), Ok(landed)) = (self.author(author), decoded(&bytes)) {
                        author.landed(&landed);
                    }
                    reply(connection, question, Vec::new());
                }
                Err(error) => tracing::error!(%error, "the server sent an invalid frame"),
            }
        }
        // Callers that still wait get an error: no answer will come.
        self.pending.lock().clear();
    }

    fn give(&self, call: u64, event: Event) {
        if let Some(caller) = self.pending.lock().get(&call) {
            let _ = caller.send(event);
        }
    }

    fn author(&self, number: u64) -> Option<Arc<dyn CommitAuthor>> {
        self.authors.lock().get(usize::try_from(number).ok()?).cloned()
    }
}

fn reply(connection: &Weak<Connection>, question: u64, bytes: Vec<u8>) {
    if let Some(connection) = connection.upgrade() {
        let _ = connection.send(&Request::Reply(question, bytes));
    }
}

fn in_portions() -> Error {
    Error::corrupt("an undivided answer came in portions")
}

fn gone() -> Error {
    Code::Unavailable.error("the connection to the store is gone").with_hint("open the store again")
}

/// The client's end during a call: sessions without an author get the thread's.
struct Caller<'a> {
    connection: &'a Connection,
    watched: RefCell<Vec<Interrupt>>,
}

impl Ends for Caller<'_> {
    fn now(&self) -> u64 {
        self.connection.clock.monotonic()
    }

    fn author_of(&self, session: &Session) -> Option<u64> {
        let number = |author: &Arc<dyn CommitAuthor>| self.connection.number_of(author);
        let own = || current().map(|own| number(&(own as Arc<dyn CommitAuthor>)));
        session.author().as_ref().map(number).or_else(own)
    }

    fn author(&self, _number: u64) -> Result<Arc<dyn CommitAuthor>> {
        Err(Error::corrupt("a served store does not name its authors"))
    }

    fn watch(&self, due: Interrupt) {
        self.watched.borrow_mut().push(due);
    }

    fn cancel(&self) -> Cancel {
        Cancel::default()
    }
}

/// An answer's bytes, and the cancellation of later calls on its objects.
pub struct Answered {
    bytes: Vec<u8>,
    watched: Vec<Interrupt>,
}

/// A served store, and each process's connection to it: a forked child serves the copy in its own memory with its own
/// threads.
#[derive(Debug)]
pub struct Link {
    served: Arc<Served>,
    connections: PerProcess<Arc<Connection>>,
}

impl Link {
    fn to(served: Arc<Served>) -> Link {
        let identity = served.backend().env().identity.clone();
        let connections = PerProcess::new(identity, Link::connect(&served));
        Link { served, connections }
    }

    fn connect(served: &Arc<Served>) -> Arc<Connection> {
        let (requests, responses, serving) = served.connect();
        let clock = served.backend().env().clock.clone();
        Connection::new(requests, responses, vec![serving], clock)
    }

    fn connection(&self) -> &Arc<Connection> {
        self.connections.get(|| Link::connect(&self.served))
    }
}

/// An object at the far end. It is released when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Far {
    link: Arc<Link>,
    object: u64,
    watched: Vec<Interrupt>,
    _release: Option<Arc<Release>>,
}

/// Releases an object on the server when it is dropped.
#[derive(Debug)]
struct Release {
    link: Weak<Link>,
    object: u64,
    process: u32,
}

impl Drop for Release {
    fn drop(&mut self) {
        // A forked child opens no connection for this: its copy of the object ends with its memory.
        if let Some(link) = self.link.upgrade().filter(|_| self.process == std::process::id()) {
            let _ = link.connection().send(&Request::Release(self.object));
        }
    }
}

impl Far {
    /// The backend of a served store.
    pub fn to(served: Arc<Served>) -> Far {
        Far { link: Arc::new(Link::to(served)), object: BACKEND, watched: Vec::new(), _release: None }
    }

    /// An object that does not exist: calls to it fail with that error.
    pub fn nowhere(&self) -> Far {
        Far { object: NOWHERE, ..self.clone() }
    }

    fn ask(&self, method: u16, put: &dyn Fn(&mut Out<'_>), take: Take<'_>) -> Result<Answered> {
        self.link.connection().ask(self, method, put, take)
    }

    /// Calls a method of it.
    pub fn call<T: Wire>(&self, method: u16, put: impl Fn(&mut Out<'_>)) -> Result<T> {
        self.call_in_portions(method, put, &mut |_| Err(in_portions()))
    }

    /// The same, for an answer that comes after portions.
    pub fn call_in_portions<T: Wire>(
        &self,
        method: u16,
        put: impl Fn(&mut Out<'_>),
        take: Take<'_>,
    ) -> Result<T> {
        decoded(&self.ask(method, &put, take)?.bytes)
    }

    /// Calls a method whose answer consists of bytes only.
    pub fn call_for_bytes(&self, method: u16, put: impl Fn(&mut Out<'_>)) -> Result<Vec<u8>> {
        Ok(self.ask(method, &put, &mut |_| Err(in_portions()))?.bytes)
    }

    /// Calls a method that cannot fail in a local store.
    pub fn call_or_default<T: Wire + Default>(&self, method: u16, put: impl Fn(&mut Out<'_>)) -> T {
        self.call(method, put).unwrap_or_else(|error| {
            tracing::warn!(%error, method, "a call got no answer");
            T::default()
        })
    }

    /// Calls a method whose answer begins with the number of an object that stays on the server.
    pub fn call_for_object<T: Wire>(&self, method: u16, put: impl Fn(&mut Out<'_>)) -> Result<(Far, T)> {
        let Answered { bytes, watched } = self.ask(method, &put, &mut |_| Err(in_portions()))?;
        let (object, rest) = decoded(&bytes)?;
        let link = Arc::downgrade(&self.link);
        let release = Some(Arc::new(Release { link, object, process: std::process::id() }));
        Ok((Far { link: self.link.clone(), object, watched, _release: release }, rest))
    }
}
