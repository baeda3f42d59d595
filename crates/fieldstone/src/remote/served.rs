//! The server's end: a thread that reads frames, a worker for each calling thread, the objects that clients hold.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use fieldstone_catalog::access::{CatalogAccess, Hits};
use fieldstone_catalog::engine::Interrupt;
use fieldstone_core::env::Clock;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_graph::access::GraphAccess;
use fieldstone_graph::travel::{PathStream, Traversal};
use fieldstone_journal::Session;
use fieldstone_journal::author::{AuthorPart, CommitAuthor, Landed};
use fieldstone_journal::session::Cancel;
use fieldstone_store::api::Listing;
use fieldstone_store::{Field, Fields};
use fieldstone_wire::{Ends, Wire};

use super::frame::{BACKEND, Call, Question, Request, Response, decoded, encoded};
use crate::backend::Backend;
use crate::execution::current::serve_others;

/// An object that stays with the store.
#[derive(Clone)]
pub enum Exported {
    /// The backend.
    Backend(Arc<dyn Backend>),
    /// A catalog.
    Catalog(Arc<dyn CatalogAccess>),
    /// A graph.
    Graph(Arc<dyn GraphAccess>),
    /// A field.
    Field(Field),
    /// The fields of a retrieve.
    Fields(Fields),
    /// A list.
    Listing(Arc<Mutex<Listing>>),
    /// Hits of a query.
    Hits(Arc<Mutex<Hits>>),
    /// A traversal.
    Traversal(Traversal),
    /// Ways of a traversal.
    Paths(Arc<Mutex<PathStream>>),
}

/// Calls a method of an object; returns the answer's bytes.
pub type Serve = fn(&Serving<'_>, &Exported, u16, &[u8]) -> Result<Vec<u8>>;

/// A store, and the objects that its clients hold.
pub struct Served {
    backend: Arc<dyn Backend>,
    serve: Serve,
    clock: Arc<dyn Clock>,
    objects: Mutex<HashMap<u64, (Exported, Cancel)>>,
    next: AtomicU64,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl Served {
    /// A store without clients yet, and the function that calls its methods.
    pub fn new(backend: Arc<dyn Backend>, serve: Serve) -> Arc<Served> {
        let clock = backend.env().clock.clone();
        Arc::new(Served {
            backend,
            serve,
            clock,
            objects: Mutex::default(),
            next: AtomicU64::new(BACKEND + 1),
        })
    }

    /// The store itself.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Serves a client: returns the channel for its requests, that of the responses, and the thread that serves it.
    pub fn connect(self: &Arc<Self>) -> (Sender<Vec<u8>>, Receiver<Vec<u8>>, JoinHandle<()>) {
        let (requests, frames) = channel();
        let (responses, answers) = channel();
        let client = Arc::new(Client {
            served: self.clone(),
            responses: Mutex::new(responses),
            running: Mutex::default(),
            questions: Mutex::default(),
            authors: Mutex::default(),
            next: AtomicU64::new(0),
        });
        (requests, answers, thread::spawn(move || client.read(&frames)))
    }
}

/// The server's end of one connection.
pub struct Client {
    /// The store.
    pub served: Arc<Served>,
    responses: Mutex<Sender<Vec<u8>>>,
    /// Switches that end running calls: each call's own, and that of the object that it continues.
    running: Mutex<HashMap<u64, Vec<Cancel>>>,
    questions: Mutex<HashMap<u64, Sender<Vec<u8>>>>,
    authors: Mutex<HashMap<u64, Arc<dyn CommitAuthor>>>,
    next: AtomicU64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("served", &self.served).finish_non_exhaustive()
    }
}

impl Client {
    /// Reads frames until the client has ended, and waits for the client's calls.
    fn read(self: Arc<Self>, frames: &Receiver<Vec<u8>>) {
        let mut workers: HashMap<u64, (Sender<Call>, JoinHandle<()>)> = HashMap::new();
        for frame in frames {
            match decoded(&frame) {
                Ok(Request::Call(call)) => {
                    let (worker, _) = workers.entry(call.worker).or_insert_with(|| {
                        let (calls, own) = channel();
                        let client = self.clone();
                        (calls, thread::spawn(move || client.work(&own)))
                    });
                    let _ = worker.send(call);
                }
                Ok(Request::Cancel(id)) => {
                    self.running.lock().get(&id).into_iter().flatten().for_each(Cancel::cancel);
                }
                Ok(Request::Release(object)) => {
                    let released = self.served.objects.lock().remove(&object);
                    drop(released);
                }
                Ok(Request::Reply(question, bytes)) => {
                    if let Some(asking) = self.questions.lock().remove(&question) {
                        let _ = asking.send(bytes);
                    }
                }
                Err(error) => tracing::error!(%error, "a client sent an invalid frame"),
            }
        }
        // No more replies will come: callers that still wait continue without one.
        self.questions.lock().clear();
        for (calls, worker) in workers.into_values() {
            drop(calls);
            let _ = worker.join();
        }
    }

    /// Serves the calls of one thread.
    fn work(self: Arc<Self>, calls: &Receiver<Call>) {
        serve_others();
        for call in calls {
            let mut answering = Answering { client: &self, call: call.id, outcome: Err(unanswered()) };
            answering.outcome = self.answer(&call);
        }
    }

    fn answer(self: &Arc<Self>, call: &Call) -> Result<Vec<u8>> {
        let known = match call.object {
            BACKEND => Some((Exported::Backend(self.served.backend.clone()), Cancel::default())),
            other => self.served.objects.lock().get(&other).cloned(),
        };
        let none = || Code::Invalid.error("a call names an object that the connection does not hold");
        let (object, earlier) = known.ok_or_else(none)?;
        let own = Cancel::default();
        self.running.lock().insert(call.id, vec![own.clone(), earlier]);
        let serving = Serving { client: self, call: call.id, cancel: own };
        let answer = (self.served.serve)(&serving, &object, call.method, &call.arguments);
        self.running.lock().remove(&call.id);
        answer
    }

    fn send(&self, response: &Response) {
        // A client that has ended misses nothing.
        let _ = self.responses.lock().send(encoded(response));
    }

    /// Asks the client; `None` if it has ended.
    fn ask(&self, call: u64, question: Question) -> Option<Vec<u8>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, replied) = channel();
        self.questions.lock().insert(id, reply);
        self.send(&Response::Ask(id, call, question));
        replied.recv().ok()
    }
}

/// Answers a call, even if serving it panicked.
struct Answering<'a> {
    client: &'a Client,
    call: u64,
    outcome: Result<Vec<u8>>,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        let (ok, bytes) = match &mut self.outcome {
            Ok(bytes) => (true, std::mem::take(bytes)),
            Err(error) => (false, encoded(error)),
        };
        self.client.send(&Response::Answer(self.call, ok, bytes));
    }
}

fn unanswered() -> Error {
    Error::internal("the store failed while serving a call")
}

/// A call while it is served: the server's end of its arguments.
pub struct Serving<'a> {
    client: &'a Arc<Client>,
    call: u64,
    cancel: Cancel,
}

impl Serving<'_> {
    /// Keeps an object for the client; returns its number.
    pub fn keep(&self, object: Exported) -> u64 {
        let served = &self.client.served;
        let number = served.next.fetch_add(1, Ordering::Relaxed);
        served.objects.lock().insert(number, (object, self.cancel.clone()));
        number
    }

    /// Hands a portion of the answer to the caller.
    pub fn hand_over(&self, portion: &impl Wire) -> Result<()> {
        let reply = self.client.ask(self.call, Question::Portion(encoded(portion)));
        let gone = || Code::Unavailable.error("the caller is gone");
        let taken: std::result::Result<(), Error> = decoded(&reply.ok_or_else(gone)?)?;
        taken
    }
}

impl Ends for Serving<'_> {
    fn now(&self) -> u64 {
        self.client.served.clock.monotonic()
    }

    fn author_of(&self, _session: &Session) -> Option<u64> {
        None
    }

    fn author(&self, number: u64) -> Result<Arc<dyn CommitAuthor>> {
        let make = || -> Arc<dyn CommitAuthor> {
            Arc::new(FarAuthor { client: Arc::downgrade(self.client), number })
        };
        Ok(self.client.authors.lock().entry(number).or_insert_with(make).clone())
    }

    fn watch(&self, _due: Interrupt) {}

    fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

/// An author that stays with the client.
#[derive(Debug)]
struct FarAuthor {
    client: Weak<Client>,
    number: u64,
}

impl CommitAuthor for FarAuthor {
    fn hand_in(&self, store: Id) -> AuthorPart {
        let client = self.client.upgrade();
        let reply = client.and_then(|client| client.ask(0, Question::HandIn(self.number, encoded(&store))));
        reply.and_then(|bytes| decoded(&bytes).ok()).unwrap_or_default()
    }

    fn landed(&self, landed: &Landed) {
        let client = self.client.upgrade();
        client.and_then(|client| client.ask(0, Question::Landed(self.number, encoded(landed))));
    }
}
