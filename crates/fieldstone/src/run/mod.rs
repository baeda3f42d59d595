//! Runs: one handle to declare, write, tag and read a simulation's data. Its rules are the same in every language
//! (B-10).
//!
//! * `declare`: runs, variables and steps, each by a builder that ends in `create()`; groups and imports of arrays;
//! * `fields`: arrays of variables at steps, checked against declarations, and searched for features;
//! * `target`: the target of one attribute or many;
//! * `annotate`: attributes; `cells`: sets of cells as the catalog keeps them;
//! * `state`: the state of a run.
//!
//! ```
//! use fieldstone::{Array, DType, OpenOptions, Target, WriteOptions};
//! use fieldstone::catalog::Query;
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let run = store.create_run("demo").param("nx", 4).create()?;
//! run.create_variable("t", DType::F8, &[4]).dims(["x"]).create()?;
//! let elements: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
//! run.write("t", Some(0), Array::new(&elements, DType::F8, &[4])?, &WriteOptions::default())?;
//! run.annotate("hot", true, &Target::variable("t").step(0).within(&[2], &[2]))?;
//! store.flush(None)?;
//! assert_eq!(run.read("t", Some(0))?.read()?, elements);
//! assert_eq!(store.catalog().count(&Query::all())?, 1);
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod annotate;
mod cells;
mod declare;
mod fields;
mod state;
mod target;

use fieldstone_core::Result;
use fieldstone_format::catalog::{RunName, RunPhase, RunState};
use fieldstone_store::api::Admin;

pub use annotate::TagRef;
pub use declare::{NewRun, NewVariable};
pub use fields::{Array, WriteOptions};
pub use state::RunStatus;
pub use target::Target;

use crate::Session;
use crate::Store;
use crate::catalog::RunInfo;

/// A run of an open store. If it belongs to a transaction, so do all its calls.
#[derive(Debug, Clone)]
pub struct Run {
    store: Store,
    name: RunName,
    session: Session,
}

impl Run {
    /// A run that is known to exist.
    pub fn new(store: &Store, name: RunName, session: &Session) -> Run {
        Run { store: store.clone(), name, session: session.clone() }
    }

    /// The run of a name; NotFound, or Invalid if several projects have one and `project` is absent.
    pub(crate) fn find(store: &Store, project: Option<&str>, name: &str, session: &Session) -> Result<Run> {
        let info = store.catalog().run(project, name, session)?;
        Ok(Run::new(store, info.decl.run, session))
    }

    /// Its project and name.
    pub fn name(&self) -> &RunName {
        &self.name
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The session that its calls belong to.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Its declaration.
    pub fn info(&self) -> Result<RunInfo> {
        self.store.catalog().run(Some(&self.name.project), &self.name.name, &self.session)
    }

    /// Its state.
    pub fn state(&self) -> Result<RunStatus> {
        let Some(said) = self.info()?.decl.state else { return Ok(RunStatus::Unknown) };
        Ok(match said.phase {
            RunPhase::Finished => RunStatus::Finished,
            RunPhase::Failed => RunStatus::Failed(said.note),
            // Unflushed data of this handle are its own.
            RunPhase::Running if said.writer.is_none() => RunStatus::Running,
            RunPhase::Running => {
                let writers = self.store.status()?.writers;
                let open =
                    writers.iter().any(|writer| Some(writer.writer) == said.writer && writer.state == "open");
                if open { RunStatus::Running } else { RunStatus::Unknown }
            }
        })
    }

    /// Marks it as running, and flushes: visible to all when this returns.
    pub fn begin(&self) -> Result<()> {
        self.say(RunPhase::Running, "")?;
        self.flush()
    }

    /// Marks it as finished, and flushes.
    pub fn finish(&self) -> Result<()> {
        self.say(RunPhase::Finished, "")?;
        self.flush()
    }

    /// Marks it as failed, with the reason. Visible to all when this returns; this does not flush archived data.
    pub fn fail(&self, why: &str) -> Result<()> {
        if self.session.transaction().is_some() {
            return self.say(RunPhase::Failed, why);
        }
        let transaction = self.store.transaction()?;
        let alone = Run { session: self.session.within(transaction.id()), ..self.clone() };
        alone.say(RunPhase::Failed, why)?;
        transaction.commit()
    }

    fn say(&self, phase: RunPhase, note: &str) -> Result<()> {
        let state = RunState { phase, note: note.to_owned(), writer: None };
        self.store.catalog().set_state(&self.name, state, &self.session)
    }

    /// Flushes, except for a run of a transaction, which its holder decides.
    fn flush(&self) -> Result<()> {
        match self.session.transaction() {
            None => self.store.flush(self.session.clone()),
            Some(_) => Ok(()),
        }
    }
}
