//! Declaring runs, variables, steps, and the groups and imports of distributed arrays.

use fieldstone_core::dtype::DType;
use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{
    Annotate, ArrayGroup, Coordinate, ImportDecl, MeshLocation, RunDecl, RunName, StepDecl, VariableDecl,
    VariableName,
};

use fieldstone_store::api::IfExists;

use super::Run;
use crate::Session;
use crate::Store;
use crate::catalog::VariableInfo;
use crate::finders::{Finder, check_dtype};
use crate::outside::Outside;

/// A run to declare. [`Store::create_run`] makes it.
#[derive(Debug, Clone)]
#[must_use = "a run is declared by create()"]
pub struct NewRun {
    store: Store,
    decl: RunDecl,
    exist_ok: bool,
    session: Session,
}

impl NewRun {
    pub(crate) fn new(store: Store, name: &str) -> NewRun {
        let decl = RunDecl::named(RunName { project: String::new(), name: name.to_owned() });
        NewRun { store, decl, exist_ok: false, session: Session::default() }
    }

    /// The project in which its name is unique.
    pub fn project(mut self, project: &str) -> NewRun {
        self.decl.run.project = project.to_owned();
        self
    }

    /// Adds a parameter.
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> NewRun {
        self.decl.params.push((name.to_owned(), value.into()));
        self
    }

    /// The job that makes it, by the batch system's name.
    pub fn job(mut self, job: &str) -> NewRun {
        self.decl.job = Some(job.to_owned());
        self
    }

    /// Time of creation, nanoseconds since 1970; now if absent.
    pub fn created(mut self, created: i64) -> NewRun {
        self.decl.created = created;
        self
    }

    /// A description of its grid; free form.
    pub fn grid(mut self, grid: impl Into<Value>) -> NewRun {
        self.decl.grid = Some(grid.into());
        self
    }

    /// Notes; free form.
    pub fn notes(mut self, notes: &str) -> NewRun {
        self.decl.notes = Some(notes.to_owned());
        self
    }

    /// The place of its data, if not in the store.
    pub fn outside(mut self, outside: impl Into<Value>) -> NewRun {
        self.decl.outside = Some(outside.into());
        self
    }

    /// Lets only the owner annotate it.
    pub fn annotated_by_owner(mut self) -> NewRun {
        self.decl.annotate = Annotate::Owner;
        self
    }

    /// How its writes treat existing fields; otherwise as the store says.
    pub fn if_exists(mut self, if_exists: IfExists) -> NewRun {
        self.decl.if_exists = Some(if_exists);
        self
    }

    /// Makes it part of this session's transaction.
    pub fn within(mut self, session: &Session) -> NewRun {
        self.session = session.clone();
        self
    }

    /// Accepts an existing run with the same declaration.
    pub fn exist_ok(mut self) -> NewRun {
        self.exist_ok = true;
        self
    }

    /// Declares it; this process sees it at once, all others after a flush. Conflict if it exists; Denied if its fields
    /// belong to another user.
    pub fn create(self) -> Result<Run> {
        if let Some(outside) = &self.decl.outside {
            Outside::parse(outside)?;
        }
        let name = self.decl.run.clone();
        self.store.catalog().create_run(self.decl, self.exist_ok, &self.session)?;
        Ok(Run::new(&self.store, name, &self.session))
    }
}

/// A variable to declare. [`Run::create_variable`] makes it.
#[derive(Debug, Clone)]
#[must_use = "a variable is declared by create()"]
pub struct NewVariable<'a> {
    run: &'a Run,
    decl: VariableDecl,
    finders: Vec<Finder>,
}

impl NewVariable<'_> {
    /// Names of its dimensions.
    pub fn dims<'d>(mut self, dims: impl IntoIterator<Item = &'d str>) -> Self {
        self.decl.dims = dims.into_iter().map(str::to_owned).collect();
        self
    }

    /// Its version.
    pub fn version(mut self, version: i64) -> Self {
        self.decl.variable.version = version;
        self
    }

    /// An attribute of its own, such as units.
    pub fn attr(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.decl.attrs.push((name.to_owned(), value.into()));
        self
    }

    /// Coordinates along a dimension, by its index.
    pub fn coord(mut self, dimension: u32, coordinate: Coordinate) -> Self {
        self.decl.coords.push((dimension, coordinate));
        self
    }

    /// The extents of the pieces in which it is written.
    pub fn decomposition(mut self, extents: &[u64]) -> Self {
        self.decl.decomposition = Some(extents.to_vec());
        self
    }

    /// A feature that [`Run::write`] searches in each piece.
    pub fn find(mut self, finder: Finder) -> Self {
        self.finders.push(finder);
        self
    }

    /// Declares it. Declaring the same again is fine; other content is Conflict.
    pub fn create(mut self) -> Result<VariableInfo> {
        if !self.finders.is_empty() {
            if let Some(dtype) = self.decl.dtype {
                check_dtype(dtype)?;
            }
            self.decl.finders = Some(Finder::declare(&self.finders)?);
        }
        let VariableName { name, version } = self.decl.variable.clone();
        self.run.create_variables(vec![self.decl])?;
        self.run.variable(&name, Some(version))
    }
}

impl Run {
    /// Declares a variable with its element type and global shape, by [`NewVariable::create`].
    pub fn create_variable(&self, name: &str, dtype: DType, shape: &[u64]) -> NewVariable<'_> {
        let decl = VariableDecl {
            variable: VariableName { name: name.to_owned(), version: 0 },
            dtype: Some(dtype),
            shape: Some(shape.to_vec()),
            dims: Vec::new(),
            attrs: Vec::new(),
            coords: Vec::new(),
            decomposition: None,
            finders: None,
        };
        NewVariable { run: self, decl, finders: Vec::new() }
    }

    /// Declares many variables.
    pub fn create_variables(&self, variables: Vec<VariableDecl>) -> Result<()> {
        self.store.catalog().create_variables(&self.name, variables, &self.session)
    }

    /// A variable; its newest version if `version` is absent.
    pub fn variable(&self, name: &str, version: Option<i64>) -> Result<VariableInfo> {
        self.store.catalog().variable(&self.name, name, version, &self.session)
    }

    /// Declares a step and its time, in the run's unit. Another time for the same step is Conflict.
    pub fn create_step(&self, number: i64, time: Option<f64>) -> Result<()> {
        self.create_steps(vec![number], time.map(|time| vec![time]))
    }

    /// Declares many steps and, if given, their times, as many as steps.
    pub fn create_steps(&self, numbers: Vec<i64>, times: Option<Vec<f64>>) -> Result<()> {
        if let Some(times) = times.as_ref().filter(|times| times.len() != numbers.len()) {
            let (numbers, times) = (numbers.len(), times.len());
            return Err(Error::invalid(format!("numbers has {numbers} rows and times has {times}"))
                .with_hint("give as many times as steps"));
        }
        let time = |i: usize| times.as_ref().map(|times| times[i]);
        let steps =
            numbers.iter().enumerate().map(|(i, &number)| StepDecl { number, time: time(i) }).collect();
        self.store.catalog().create_steps(&self.name, steps, &self.session)
    }

    /// Declares a group of distributed arrays. An existing group takes the sets that it lacks; its properties and
    /// existing sets must be equal, else Conflict.
    pub fn create_array_group(&self, group: ArrayGroup) -> Result<()> {
        self.store.catalog().create_groups(&self.name, vec![group], &self.session)
    }

    /// A declared group with all its sets; NotFound if there is none of this name.
    pub fn array_group(&self, name: &str) -> Result<ArrayGroup> {
        self.store.catalog().array_group(&self.name, name, &self.session)
    }

    /// Groups, by name.
    pub fn array_groups(&self) -> Result<Vec<ArrayGroup>> {
        self.store.catalog().array_groups(&self.name, &self.session)
    }

    /// Declares an external file, and the variables that this run takes from it. Conflict if another file has the name.
    pub fn create_import(&self, import: ImportDecl) -> Result<()> {
        self.store.catalog().create_imports(&self.name, vec![import], &self.session)
    }

    /// Imports, by name.
    pub fn imports(&self) -> Result<Vec<ImportDecl>> {
        self.store.catalog().imports(&self.name, &self.session)
    }

    /// The mesh of a variable, from its group, and the location on it; nothing for a variable without a mesh.
    pub fn mesh_of(&self, variable: &str) -> Result<Option<(String, MeshLocation)>> {
        let groups = self.array_groups()?;
        let group = groups.into_iter().find(|group| group.sets.iter().any(|s| s.variable.name == variable));
        Ok(group.and_then(|group| group.mesh.zip(group.location)))
    }
}
