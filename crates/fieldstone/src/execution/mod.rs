//! Executions: the origins of a store's data. An execution is a command that `fieldstone run` starts, a block of a
//! program, or a process of a job: the provenance graph records what it archives and reads, commit by commit
//! (docs/guide/executions.md).
//!
//! | module | |
//! |---|---|
//! | here | [`Execution`]: a part of this process, from its beginning to its end |
//! | `child` | [`run`]: a command as an execution |
//! | `current` | the execution that a call belongs to |
//! | `inner`, `ledger` | an execution's relations in commits; its reads |
//! | `capture` | fields that an execution asked for |
//! | `environment`, `git`, `files`, `interpreters`, `streams`, `link` | its known surroundings; the variable for child processes |
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::execution::{Execution, ExecutionOptions, Outcome};
//! use fieldstone::{ArchiveOptions, OpenOptions, Session, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let regrid = Execution::begin(&store, ExecutionOptions { name: Some("regrid".into()), ..Default::default() })?;
//! store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! let job = regrid.vertex().clone();
//! regrid.finish(&Outcome::exit(0))?;
//! assert_eq!(store.graph().edges(&job, Some("write"), Default::default(), None, &Session::default())?.len(), 1);
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod capture;
mod child;
pub(crate) mod current;
mod environment;
mod files;
mod git;
mod inner;
mod interpreters;
mod ledger;
mod link;
mod streams;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::Env;
use fieldstone_core::value::Value;
use fieldstone_core::{Code, Result};
use fieldstone_format::Id;
use fieldstone_format::graph::VertexName;
use fieldstone_graph::put::RelationPut;
use fieldstone_journal::Session;
use fieldstone_store::api::{FieldAccess, Transactions};

pub(crate) use capture::Asked;
pub use child::{Ended, run};
use environment::Variables;
use files::{FileIdentities, FileIdentity, NamedFile};
use inner::{ExecutionInner, Naming};
pub use link::{ExecutionLink, VARIABLE, reachable};
use streams::{StreamFile, StreamMode};

use crate::interop::lineage::GraphRows;
use crate::interop::lineage::props::{PropList, Span, count, relation};
use crate::{OpenOptions, Store, secrets};

/// Maximum lag of file times against the clock, nanoseconds: a tick of the kernel, at most 10 ms.
const LAG: u64 = 10_000_000;

/// Number of program blocks so far in jobs of this process.
static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// Description of an execution at its beginning.
#[derive(Debug, Clone, Default)]
pub struct ExecutionOptions {
    /// Its name; if absent, the program's.
    pub name: Option<String>,
    /// Its arguments, the program first; if empty, those of this process.
    pub argv: Vec<String>,
    /// The file that is executed.
    pub executable: Option<PathBuf>,
    /// Files that it reads, as paths and patterns of a shell.
    pub reads: Vec<String>,
    /// Files that it writes; those that are new or changed at its end count.
    pub writes: Vec<String>,
    /// Folders whose new and changed files count as its writes.
    pub watch: Vec<PathBuf>,
    /// Parameters.
    pub params: Vec<(String, Value)>,
    /// Environment variables to keep besides those of the list; a `*` at the end matches anything.
    pub env: Vec<String>,
    /// Whether it is this whole process and its children, not a block of it.
    pub whole: bool,
    /// Whether it has the standard input and output of this process, and so reads and writes the files of their
    /// redirections.
    pub streams: bool,
}

/// How an execution ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code; none if a signal ended it.
    pub exit: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i64>,
    /// The error text.
    pub error: Option<String>,
}

impl Outcome {
    /// The outcome of an exit code.
    pub fn exit(code: i64) -> Outcome {
        Outcome { exit: Some(code), ..Outcome::default() }
    }
}

/// An execution that runs in this process. If it is dropped without its end, its record has no end, as after a kill.
#[derive(Debug)]
pub struct Execution {
    inner: Arc<ExecutionInner>,
    store: Store,
    options: ExecutionOptions,
    folder: PathBuf,
    executable: Option<NamedFile>,
    reads: Vec<NamedFile>,
    before: FileIdentities,
    streams: Vec<StreamFile>,
    notes: Vec<String>,
}

/// Membership of a call in an execution.
#[derive(Debug, Clone)]
pub struct Membership(Arc<ExecutionInner>);

impl Membership {
    /// Makes this thread's calls belong to an execution from here on, or to none that it has entered.
    pub fn switch(to: Option<&Membership>) {
        drop(current::enter(to.map(|membership| membership.0.clone())));
    }

    /// Whether one is open in this process, so that it matters, now or in a moment, which one a thread has entered.
    pub fn matters() -> bool {
        current::is_any_open()
    }
}

/// While it lives, calls of this thread belong to an execution.
#[derive(Debug)]
#[must_use]
pub struct EntryScope(Option<Arc<ExecutionInner>>);

impl Drop for EntryScope {
    fn drop(&mut self) {
        drop(current::enter(self.0.take()));
    }
}

impl Naming {
    /// Names a process that found a link.
    fn of_process(link: &ExecutionLink, rank: Option<u64>) -> Naming {
        let mut place = environment::place(rank);
        // A rank's children inherit its variables, but are other processes.
        if link.process.as_deref() == Some(&*format!("{}/{place}", link.job)) {
            place = environment::place(None);
        }
        let vertex = VertexName::new("process", &format!("{}/{place}", link.job));
        let (job, store) = (VertexName::new("job", &link.job), link.store.clone());
        Naming { vertex, job, store, recorded: link.id, outer: None }
    }
}

impl Execution {
    /// Begins an execution with its record in `store`, inside the one that this thread has [entered](Self::enter), or
    /// the job that this process belongs to. This flushes earlier writes and the beginning of the record.
    pub fn begin(store: &Store, options: ExecutionOptions) -> Result<Execution> {
        store.will_write();
        store.flush(None)?;
        let env = store.backend().env().clone();
        let variables = Variables::own();
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let (naming, allocation) = name(store, &env, &variables, options.whole)?;
        let parent = naming.outer.as_ref().filter(|outer| !options.whole && outer.vertex != outer.job);
        let parent = parent.map(|outer| outer.vertex.id.to_string());
        let parent = parent.or_else(|| options.whole.then(ExecutionLink::of_environment)??.process);
        let mut notes = Vec::new();
        let without = store.backend().native_folder();
        let streams = if options.streams { streams::own(without.as_deref(), &mut notes) } else { Vec::new() };
        let mut begun = describe(&options, &variables, &folder, parent);
        let piped = options.streams && streams::is_piped();
        begun.set_some("streams", streams::described(&streams, piped));
        let inner = Arc::new(ExecutionInner::new(env, naming, begun));
        let mut absent = |pattern: &str| notes.push(format!("{pattern}: no file to read matches it"));
        let mut read = files::expand_reads(&options.reads, &folder, without.as_deref(), &mut absent);
        let input = streams.iter().find(|stream| stream.mode == StreamMode::Read);
        read.extend(input.map(|stream| stream.path.clone()));
        let mut reads: Vec<NamedFile> =
            read.iter().filter_map(|path| files::look(path, None, &mut notes)).collect();
        reads.sort_by(|a, b| a.path.cmp(&b.path));
        reads.dedup_by(|a, b| a.path == b.path);
        let executable =
            options.executable.as_deref().and_then(|path| files::look_at_program(path, &mut notes));
        let mut before = files::identities(&options.writes, &options.watch, &folder, without.as_deref());
        for stream in &streams {
            match stream.mode {
                StreamMode::Read | StreamMode::Joined => {}
                // The execution makes the file, whatever was there before.
                StreamMode::Write => drop(before.remove(&stream.path)),
                StreamMode::Append | StreamMode::Update => {
                    before.extend(
                        files::identity(&stream.path).map(|identity| (stream.path.clone(), identity)),
                    );
                }
            }
        }
        let store = store.clone();
        let mut execution =
            Execution { inner, store, options, folder, executable, reads, before, streams, notes };
        execution.record(allocation)?;
        Ok(execution)
    }

    /// Writes the beginning of the record.
    fn record(&mut self, allocation: Option<VertexName>) -> Result<()> {
        let span = Span { begin: self.inner.start, end: None };
        let mut rows = self.inner.description(Some(self.home_id()), None)?;
        if let Some(allocation) = allocation {
            rows.relations.push(relation("contains", &allocation, &self.inner.job, span));
        }
        self.put_inputs(&mut rows, span)?;
        current::open(&self.inner);
        let begun = self.put(rows);
        if begun.is_err() {
            current::close(&self.inner);
        }
        begun
    }

    /// Puts rows, and flushes them with all writes of the execution.
    fn put(&self, rows: GraphRows) -> Result<()> {
        let session = Session::default().by(self.inner.clone());
        let _entered = self.enter();
        self.store.graph().put(rows.vertices, rows.relations, &session)?;
        self.store.flush(session)?;
        self.inner.note_described(self.home_id());
        Ok(())
    }

    /// The id of its store; before the store is made, the id that it will get.
    fn home_id(&self) -> Id {
        self.store.backend().id()
    }

    /// Puts the program, and the named input files.
    fn put_inputs(&self, rows: &mut GraphRows, span: Span) -> Result<()> {
        for (kind, files) in [("exe", self.executable.as_slice()), ("read", &self.reads)] {
            for file in files {
                rows.relations.push(self.file_relation(kind, file, span)?);
            }
        }
        Ok(())
    }

    fn file_relation(&self, kind: &str, file: &NamedFile, span: Span) -> Result<RelationPut> {
        let target = VertexName::new(if file.folder { "directory" } else { "file" }, &file.path);
        let mut put = relation(kind, &self.inner.vertex, &target, span);
        let mut props = PropList::default();
        if !file.folder {
            props.set("bytes", count(file.bytes));
            props.set_some("checksum", file.checksum.clone().map(Value::Text));
        }
        if kind == "write" && file.replaces {
            props.set("replaces", Value::Bool(true));
        }
        put.props = props.props()?;
        Ok(put)
    }

    /// Its vertex in the graph.
    pub fn vertex(&self) -> &VertexName {
        &self.inner.vertex
    }

    /// The job that it belongs to, or is.
    pub fn job(&self) -> &VertexName {
        &self.inner.job
    }

    /// The value of `FIELDSTONE_EXECUTION` for processes that it starts.
    pub fn link(&self) -> ExecutionLink {
        self.inner.link()
    }

    /// Facts that could not be recorded so far, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// While the scope lives, calls of this thread belong to it, whatever else is open.
    pub fn enter(&self) -> EntryScope {
        EntryScope(current::enter(Some(self.inner.clone())))
    }

    /// For a language binding that decides which execution a call belongs to.
    pub fn membership(&self) -> Membership {
        Membership(self.inner.clone())
    }

    /// Ends it: flushes, and writes the end of the record. Returns the facts that could not be recorded. In a forked
    /// child this does nothing: the execution is the parent's.
    pub fn finish(mut self, outcome: &Outcome) -> Result<Vec<String>> {
        self.end(outcome)
    }

    /// As [`finish`](Self::finish), for a caller that cannot give it away; a second end does nothing.
    pub fn end(&mut self, outcome: &Outcome) -> Result<Vec<String>> {
        if !self.inner.is_open() || std::process::id() != self.inner.process {
            return Ok(Vec::new());
        }
        let ended = self.put_end(outcome);
        current::close(&self.inner);
        ended?;
        self.notes.extend(self.inner.take_unsaid());
        Ok(std::mem::take(&mut self.notes))
    }

    fn put_end(&mut self, outcome: &Outcome) -> Result<()> {
        let end = self.inner.stamp();
        let start = self.inner.start;
        let mut ended = PropList::default();
        ended.set_some("exit", outcome.exit.map(Value::Int));
        ended.set_some("signal", outcome.signal.map(Value::Int));
        ended.set_some("error", outcome.error.clone().map(Value::Text));
        let piped = self.options.streams && streams::is_piped();
        ended.set_some("streams", streams::described_again(&self.streams, piped));
        let mut rows = self.inner.description(Some(self.home_id()), Some((end, &ended)))?;
        // The store already has the version of its beginning.
        rows.vertices.retain(|put| put.time != Some(start) || end == start);
        self.put_inputs(&mut rows, Span { begin: start, end: Some(end) })?;
        let without = self.store.backend().native_folder();
        let (writes, watch) = (&self.options.writes, &self.options.watch);
        let mut absent = |pattern: &str| self.notes.push(format!("{pattern}: no written file matches it"));
        drop(files::expand(writes, &self.folder, &mut absent));
        // Fields of another execution may wait in the same session; then the next commit belongs to that one.
        rows.relations.extend(self.inner.reads(self.home_id())?);
        let mut after = files::identities(writes, watch, &self.folder, without.as_deref());
        let outputs = self.streams.iter().filter(|stream| stream.mode != StreamMode::Read);
        for (stream, (path, facts)) in outputs.filter_map(|stream| Some((stream, stream.now()?))) {
            if let Some(identity) = self.before.get(&stream.path).copied().filter(|_| path != stream.path) {
                self.before.insert(path.clone(), identity);
            }
            after.insert(path, FileIdentity::of(&facts));
        }
        for file in files::changed(&self.before, &after, &mut self.notes) {
            // An existing file may have been written from the beginning on.
            let begin = file.created.filter(|_| file.replaces).map_or(start, |made| made.clamp(start, end));
            // File times lag behind the clock: an earlier read must not seem to come later.
            let written = file.modified.saturating_add(LAG);
            let span = Span { begin, end: Some(written.clamp(begin, end)) };
            rows.relations.push(self.file_relation("write", &file, span)?);
        }
        self.put(rows)
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if self.inner.is_open() {
            current::close(&self.inner);
        }
    }
}

/// The name of an execution, and the SLURM job that contains its own job.
fn name(
    store: &Store,
    env: &Env,
    variables: &Variables,
    whole: bool,
) -> Result<(Naming, Option<VertexName>)> {
    let url = reachable(store.url());
    if let Some(outer) = current::outer() {
        let job = outer.job.clone();
        let vertex = match current::own_process().filter(|own| whole && Arc::ptr_eq(own, &outer)) {
            Some(own) => own.vertex.clone(),
            None => {
                let n = BLOCKS.fetch_add(1, Ordering::Relaxed) + 1;
                let rank = variables.rank();
                let link = outer.link();
                let own = Naming::of_process(&ExecutionLink { process: None, ..link }, rank);
                VertexName::new("process", &format!("{}.{n}", own.vertex.id))
            }
        };
        // Its children record in the store of the innermost execution.
        let recorded = outer.recorded();
        return Ok((Naming { vertex, job, store: url, recorded, outer: Some(outer) }, None));
    }
    let mut random = [0; 8];
    env.rand.fill(&mut random);
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let alone = |id: &str| {
        let job = VertexName::new("job", id);
        Naming { vertex: job.clone(), job, store: url.clone(), recorded: None, outer: None }
    };
    let Some(slurm) = variables.slurm_job() else { return Ok((alone(&random), None)) };
    if variables.rank().is_some() {
        let link = ExecutionLink { job: slurm, process: None, store: url, id: None };
        return Ok((Naming::of_process(&link, variables.rank()), None));
    }
    // Several commands of one batch script share one number (G-35).
    let job = VertexName::new("job", &slurm);
    match store.graph().versions(&job, &Session::default())?.is_empty() {
        true => Ok((alone(&slurm), None)),
        false => Ok((alone(&format!("{slurm}.{}", &random[..8])), Some(job))),
    }
}

/// Properties of an execution at its beginning.
fn describe(
    options: &ExecutionOptions,
    variables: &Variables,
    folder: &Path,
    parent: Option<String>,
) -> PropList {
    let own;
    let argv = match options.argv.is_empty() {
        true => {
            own = environment::arguments();
            &own
        }
        false => &options.argv,
    };
    let known = secrets::values(&variables.pairs());
    let masked = secrets::mask(argv, &known);
    let program = argv.first().map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
    let mut props = PropList::default();
    props.set_some("name", options.name.clone().or(program).map(Value::Text));
    props.set("argv", inner::texts(&masked.argv));
    if !masked.masked.is_empty() {
        props.set("masked", Value::List(masked.masked.iter().map(|index| count(*index as u64)).collect()));
    }
    props.set_some("cwd", folder.to_str().map(|folder| Value::Text(folder.to_owned())));
    props.set("host", Value::Text(Env::real().identity.host()));
    props.set_some("parent", parent.map(Value::Text));
    if !options.params.is_empty() {
        props.set("params", Value::Map(options.params.clone()));
    }
    props.set("env", variables.kept(&options.env));
    props.set_some("git", git::describe(folder, &*Env::real().clock));
    props.set_some("slurm", variables.slurm());
    props
}

/// Properties of this process, which belongs to a job.
fn own_description(env: &Env, variables: &Variables, parent: Option<&str>) -> PropList {
    let folder = env.disk.absolute(Path::new(".")).unwrap_or_else(|_| PathBuf::from("/"));
    // Its sources are usually those of the job; looking them up would cost each process some more processes.
    let mut props = describe(&ExecutionOptions::default(), variables, &folder, parent.map(str::to_owned));
    props.remove("git");
    props
}

/// If this process belongs to a job and has reads that no store has recorded, records them in the job's store. Programs
/// that read with this library call this as they end; closing a store does, too.
pub fn record_late_reads() -> Result<()> {
    let Some(own) = current::own_process().filter(|own| own.is_behind() && own.is_open()) else {
        return Ok(());
    };
    let Some(url) = own.store.clone() else { return Ok(()) };
    let store = crate::open(&url, &OpenOptions::default())?;
    let session = Session::default().by(own.clone());
    let id = store.backend().id();
    if own.recorded().is_some_and(|known| known != id) {
        return Err(Code::StoreNotFound.error(format!("the job's store is no longer at {url}")));
    }
    let rows = own.description(Some(id), None)?;
    store.graph().put(rows.vertices, rows.relations, &session)?;
    store.flush(session.clone())?;
    store.backend().close_quietly(&session)
}
