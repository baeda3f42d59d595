//! An open container: define mode, data mode, and the transition between them.
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_array::container::{Container, CreateOptions, Mode};
//! use fieldstone_core::env::{Env, comm::single::SingleComm, sim::SimWorld};
//! use fieldstone_format::netcdf::NcType;
//! # fn main() -> fieldstone_core::Result<()> {
//! let env = SimWorld::memory();
//! let comm = || Arc::new(SingleComm::new(env.disk.clone()));
//! let container = Container::create("t.nc".as_ref(), comm(), &env, &CreateOptions::default())?;
//! container.define().dim("event_7/hits", Some(3))?;
//! let charge = container.define().var("event_7/charge", NcType::Float, &["hits"])?;
//! container.define().put_att(Some(charge), "units", NcType::Char, b"pC")?;
//! container.enddef()?;
//! assert_eq!(container.var_of(charge)?.shape(), [3]);
//! container.close()?;
//!
//! let container = Container::open("t.nc".as_ref(), Mode::Read, comm(), &env)?;
//! assert_eq!(container.var("event_7/charge")?.attrs.len(), 1);
//! # Ok(()) }
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`options`] | options for creating and opening |
//! | [`staging`] | the file that is written until the container is finished |
//! | `header` | the queries of data mode to a header, which is one of the next three |
//! | `defined_header` | a header defined here: this rank's part is in memory |
//! | `loaded_header` | the header of an opened file, completely in memory |
//! | `indexed_header` | the header of an opened file, searched through the name index |
//! | `handles` | conversion of callers' numbers to those of the definitions |
//! | `name_index` | writes the name index |
//! | `state`, `data` | define mode and data mode |
//! | `elements` | moves data in and out |
//! | `relocate` | copies data to their new places in a redefinition |
//! | `truncation` | the check that a file has the data that its header describes |
//!
//! Invariants:
//! * `create`, `open`, `enddef`, `redef`, `sync` and `close` are collective: all ranks call them in the same order,
//!   and an error on one rank is raised on all;
//! * until `sync` or `close` has returned, a new container cannot be found under its path: the path leads to the old
//!   container, or to a file marked as unfinished;
//! * numbers returned by `def_*` are valid until the container is closed;
//! * a container dropped without `close` leaves unfinished files unfinished.

mod data;
mod defined_header;
mod defining;
mod elements;
mod handles;
mod header;
mod indexed_header;
mod inquire;
mod loaded_header;
mod name_index;
pub mod options;
mod relocate;
mod source;
pub mod staging;
mod state;
pub(in crate::container) mod truncation;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::Env;
use fieldstone_core::env::comm::{Comm, Hints, Team, TeamFile};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::layout::Layout;
use tracing::debug_span;
use tracing::field::Empty;

use super::enddef::{Phase, Report};
use super::model::{DimInfo, Metadata, VarInfo};
use crate::distributed::plan::Planner;

use data::DataMode;
pub use defining::Define;
pub use elements::Elements;
pub use options::{CreateOptions, Mode};
use state::{DefineMode, State};

/// A dimension, by the number that its definition returned on this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DimRef(pub u32);

/// A variable: in a container created here, by the number that its definition returned on this rank; in an opened
/// container, by its number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VarRef(pub u32);

/// An open container. See the module's documentation. Several threads may call its methods.
#[derive(Debug)]
pub struct Container {
    team: Team,
    env: Env,
    path: PathBuf,
    state: Mutex<State>,
    report: Mutex<Report>,
    /// Nanoseconds that calls of define mode took since the last `enddef`.
    defining: AtomicU64,
    /// The planner of views, shared by all variables.
    planner: Planner,
}

impl Container {
    /// Collective: creates a container, in define mode. A container with that path stays until `sync` or `close`.
    ///
    /// Errors: `Invalid` if the path cannot be a file's or options do not fit each other; `NotFound` if its folder is
    /// missing; `Denied` and `Unavailable` from the file system.
    pub fn create(path: &Path, comm: Arc<dyn Comm>, env: &Env, options: &CreateOptions) -> Result<Container> {
        let team = Team::new(comm);
        let _span = debug_span!("create", path = %path.display(), ranks = team.size()).entered();
        let define = DefineMode::create(&team, env, path, options)?;
        Ok(Container::begin(team, env, path, State::Define(Box::new(define))))
    }

    /// Collective: opens a container, in data mode.
    ///
    /// Errors: `NotFound`; `Corrupt`, with offset and rule, if its bytes are not a valid header, or if its writer did
    /// not finish it.
    pub fn open(path: &Path, mode: Mode, comm: Arc<dyn Comm>, env: &Env) -> Result<Container> {
        let team = Team::new(comm);
        let _span = debug_span!("open", path = %path.display(), ranks = team.size()).entered();
        let data = DataMode::open(&team, env, path, mode)?;
        Ok(Container::begin(team, env, path, State::Data(Arc::new(data))))
    }

    fn begin(team: Team, env: &Env, path: &Path, state: State) -> Container {
        Container {
            team,
            env: env.clone(),
            path: path.to_owned(),
            state: Mutex::new(state),
            report: Mutex::default(),
            defining: AtomicU64::new(0),
            planner: Planner::new(),
        }
    }

    /// The container's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The ranks that have it open.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The open file, for moving bytes at known offsets. In data mode.
    pub(super) fn file(&self) -> Result<TeamFile> {
        Ok(self.data("file")?.file.clone())
    }

    /// Raises the number of records to at least `numrecs`.
    pub(super) fn grow(&self, numrecs: u64) -> Result<()> {
        let data = self.data("grow")?;
        data.changing()?;
        data.records.raise(numrecs);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn data(&self, what: &str) -> Result<Arc<DataMode>> {
        match &*self.state() {
            State::Data(data) => Ok(data.clone()),
            State::Define(_) => Err(Code::ContainerMode
                .error(format!("{what}: {} is in define mode", self.path.display()))
                .with_hint("call enddef first, on all ranks")),
            State::Ended(why) => Err(self.ended(what, why)),
        }
    }

    fn ended(&self, what: &str, why: &str) -> Error {
        Code::Closed.error(format!("{what}: {} was {why}", self.path.display())).with_hint("open it again")
    }

    // ---- define mode

    /// The definitions of this rank; in define mode.
    pub fn define(&self) -> Define<'_> {
        Define { container: self }
    }

    /// Collective: ends define mode. All ranks agree on the container's header and write it.
    ///
    /// Errors: `Conflict` that names objects, differences and ranks if definitions of one name differ; the container
    /// is then still in define mode. If the file cannot be written, the container is abandoned, and an old one stays.
    pub fn enddef(&self) -> Result<Report> {
        let mut state = self.state();
        match &*state {
            State::Define(_) => self.end(&mut state)?,
            State::Data(_) => {
                let error =
                    Code::ContainerMode.error(format!("enddef: {} is in data mode", self.path.display()));
                self.team.agree("enddef", Err(error.with_hint("call redef first, on all ranks")))?;
            }
            State::Ended(why) => return Err(self.ended("enddef", why)),
        }
        Ok(self.report())
    }

    /// Changes from define mode to data mode. The report begins with the cost of definition. If definitions are
    /// refused, the container stays in define mode; if writing fails, it is abandoned.
    fn end(&self, state: &mut State) -> Result<()> {
        let State::Define(define) = state else { return Ok(()) };
        let span = debug_span!("enddef", path = %self.path.display(), collectives = Empty, sent = Empty);
        let _within = span.enter();
        let before = self.team.counters();
        let peak_bytes = define.definitions.memory();
        let data = match define.end(&self.team, &self.env) {
            Ok(data) => data,
            Err(error) if !define.writing => return Err(error),
            Err(error) => {
                define.give_up();
                if self.team.rank() == 0 {
                    state.discard();
                }
                *state = State::Ended("abandoned when enddef failed");
                return Err(error);
            }
        };
        let seconds = self.defining.swap(0, Ordering::Relaxed) as f64 / 1e9;
        let mut report = data.report.clone();
        report.phases.insert(0, Phase { name: "definition", seconds, peak_bytes });
        self.keep_report(&report);
        *state = State::Data(Arc::new(data));
        let after = self.team.counters();
        span.record("collectives", after.collectives - before.collectives);
        span.record("sent", after.sent - before.sent);
        Ok(())
    }

    /// Collective: returns to define mode. Data and definitions stay.
    pub fn redef(&self) -> Result<()> {
        let mut state = self.state();
        let data = match &*state {
            State::Data(data) => data.clone(),
            State::Define(_) => {
                let error =
                    Code::ContainerMode.error(format!("redef: {} is in define mode", self.path.display()));
                return self.team.agree("redef", Err(error));
            }
            State::Ended(why) => return Err(self.ended("redef", why)),
        };
        let define = DefineMode::of_existing(&self.team, data)?;
        *state = State::Define(Box::new(define));
        Ok(())
    }

    // ---- contents

    /// The header, as a reader of the whole file sees it. In data mode.
    pub fn metadata(&self) -> Result<Arc<dyn Metadata>> {
        let metadata: Arc<dyn Metadata> = self.data("metadata")?.metadata.clone();
        Ok(metadata)
    }

    /// The variable with this path; in define mode, only one that this rank defined.
    ///
    /// Errors: `NotFound`.
    pub fn var(&self, path: &str) -> Result<VarInfo> {
        let found = match &mut *self.state() {
            State::Define(define) => Ok(define.find_var(path)?),
            State::Data(data) => Err(data.clone()),
            State::Ended(why) => return Err(self.ended("var", why)),
        };
        let found = found.or_else(|data| data.metadata.find_var(path))?;
        found.ok_or_else(|| {
            Code::VariableNotFound.error(format!("{} has no variable `{path}`", self.path.display()))
        })
    }

    /// The dimension with this path; in define mode, only one that this rank defined.
    ///
    /// Errors: `NotFound`.
    pub fn dim(&self, path: &str) -> Result<DimInfo> {
        let found = match &mut *self.state() {
            State::Define(define) => Ok(define.find_dim(path)),
            State::Data(data) => Err(data.clone()),
            State::Ended(why) => return Err(self.ended("dim", why)),
        };
        let found = found.or_else(|data| data.metadata.find_dim(path))?;
        found.ok_or_else(|| Error::not_found(format!("{} has no dimension `{path}`", self.path.display())))
    }

    /// A variable by the number that its definition returned; see [`VarRef`].
    pub fn var_of(&self, var: VarRef) -> Result<VarInfo> {
        let data = match &mut *self.state() {
            State::Define(define) => return define.var(var.0),
            State::Data(data) => data.clone(),
            State::Ended(why) => return Err(self.ended("var_of", why)),
        };
        data.metadata.local_var(data.vars.local(var.0))
    }

    /// Number of records, as far as this rank knows: after `sync`, that of all ranks.
    pub fn numrecs(&self) -> Result<u64> {
        self.data("numrecs")?.metadata.numrecs()
    }

    /// The hints in force for the file, in data mode: see [`CommFile::taken_hints`](fieldstone_core::env::comm::CommFile::taken_hints).
    pub fn taken_hints(&self) -> Result<Hints> {
        self.data("hints")?.file.taken_hints()
    }

    /// The positions of the parts of the file.
    pub fn layout(&self) -> Result<Layout> {
        self.data("layout")?.metadata.layout()
    }

    /// The cost of this rank's definitions and last `enddef`, and of `close` once it is closed.
    pub fn report(&self) -> Report {
        self.report.lock().clone()
    }

    fn keep_report(&self, report: &Report) {
        self.report.lock().clone_from(report);
    }

    /// Elements of its variables, in and out; in data mode.
    pub fn elements(&self) -> Elements<'_> {
        Elements { container: self }
    }

    // ---- the end

    /// Collective: makes the writes of all ranks durable, and visible to every rank.
    pub fn sync(&self) -> Result<()> {
        let data = {
            let state = self.state();
            match &*state {
                State::Data(data) => Ok(data.clone()),
                State::Define(_) => Err(Code::ContainerMode
                    .error(format!("sync: {} is in define mode", self.path.display()))
                    .with_hint("call enddef first, on all ranks")),
                State::Ended(why) => return Err(self.ended("sync", why)),
            }
        };
        self.team.agree("sync", data)?.finish(&self.team, true, false)
    }

    /// Collective: finishes the container; in define mode, ends that first. A container that was closed or aborted
    /// stays so.
    pub fn close(&self) -> Result<()> {
        let mut state = self.state();
        self.end(&mut state)?;
        if let State::Data(data) = &*state {
            let before = self.env.clock.monotonic();
            let closed = data.finish(&self.team, false, true);
            let closed = match closed {
                Ok(()) => data.file.close("close", Ok(())),
                Err(error) => {
                    data.file.give_up();
                    Err(error)
                }
            };
            let seconds = self.env.clock.monotonic().saturating_sub(before) as f64 / 1e9;
            let mut report = self.report();
            report.phases.push(Phase { name: "close", seconds, peak_bytes: data.memory() });
            self.keep_report(&report);
            if closed.is_err() && self.team.rank() == 0 {
                data.discard();
                data.discard_temporary();
            }
            *state = State::Ended(if closed.is_ok() { "closed" } else { "left by a failed close" });
            return closed;
        }
        Ok(())
    }

    /// Reports to the other ranks, in the collective call that they are in, that this one cannot take part. Returns
    /// the error, with this rank's number.
    pub fn fail(&self, error: Error) -> Error {
        self.team.fail(error)
    }

    /// Abandons the container. The other ranks' next collective call raises `error`, with this rank's number. Removes
    /// a container that was never finished; one that was finished stays, but is marked as unfinished if its header
    /// was changed in place since then.
    pub fn abort(&self, error: Option<Error>) {
        let mut state = self.state();
        if matches!(*state, State::Ended(_)) {
            return;
        }
        let error = error.unwrap_or_else(|| Code::Closed.error("the container was abandoned"));
        let _ = self.team.leave(error);
        if self.team.rank() == 0 {
            state.discard();
        }
        *state = State::Ended("abandoned");
    }
}
